//! Conformance for programs of every length.
//!
//! An execution violates a memory model that forbids cycles iff one of finitely many
//! kinds of shortest violations occurs in it. Each kind has a monitor that runs in parallel with
//! the machine ([`monitor`]): if no run of the product reaches its alarm, no program of any length
//! violates the model. docs/memory-models.md has the proof for each answer.
//!
//! [`effects`] reads labels, [`order`] has the models, [`cycle`] and [`coherence`] are the
//! monitors, [`product`] composes them with the machine, `orbits` extends its symmetries to them,
//! [`decide`] searches, and `extend` makes violations visible to loads. An answer rests on checks
//! of the machine: stores can commit ([`pending`]), values can be merged ([`values`]); and on a
//! second computation of the states of the product ([`recheck`]). Random runs are judged by the
//! axioms ([`sampled`]). A proof can be written as a [`certificate`], which [`verify`] checks.
//!
//! Sources: D. Shasha, M. Snir, "Efficient and correct execution of parallel programs that share
//! memory" (TOPLAS 1988) for critical cycles; S. Qadeer, "Verifying sequential consistency on
//! shared-memory multiprocessors by model checking" (TPDS 2003) for monitors of cycles of bounded
//! length, under the assumption that the order of stores is known. Different here: orders weaker
//! than program order, composed segments, two distinguished stores of each address, and checked
//! assumptions.

pub mod certificate;
pub mod coherence;
pub mod cycle;
pub mod decide;
pub mod effects;
mod extend;
pub mod monitor;
mod orbits;
pub mod order;
pub mod pending;
pub mod product;
pub mod recheck;
pub mod sampled;
pub mod values;
pub mod verify;
