//! Abstractions for symbolic parameters: proof of a formula for all values at once.
//!
//! Input: a linear process over symbolic constants, a formula. Output: a [`Study`]: finitely many
//! [`Case`]s of these constants and of the numbers that the formula quantifies over, and for each
//! case an abstract [`Regions`] model and the formula for it. The model is finite if the process is
//! finite except for its counters. If the formula is true in each case, it is true for every value.
//! If it is false in one, nothing follows, because the abstract model may have steps that no
//! instance has. docs/regions.md contains the proof, with the literature.
//!
//! Pipeline: [`overloads`] rejects names with a meaning that depends on a value;
//! [`symbolic_constants`] converts the constants to parameters of the process; [`flow`] finds the
//! numbers that flow together with them, and checks that these are only copied, compared and
//! increased by literals; [`rewrite`] and [`formula_constants`] find the numbers that the formula
//! distinguishes; [`cuts`] cuts the number line there; [`sample`] finds enough concrete numbers for
//! each query, or [`separation`] fewer if possible; [`abstraction`] unites the concrete answers,
//! and tests that they are enough; [`measure`] finds steps that no run takes infinitely often. For
//! sorts with any number of constants, [`sizes`] finds the constants that a formula distinguishes,
//! and [`merged_constants`] merges the others. If each such constant has components, [`replicas`]
//! finds them, [`thread_modular`] tracks some of them and represents the rest by the local states
//! of [`local_states`], with [`words`] for lists; [`termination`] proves that all runs terminate.
//! The abstractions can be stacked ([`abstractable_model`]).
#![warn(missing_docs)]

pub mod abstraction;
pub mod separation;
pub mod formula_constants;
pub mod audit;
pub mod abstractable_model;
pub mod constant_counts;
pub mod thread_modular;
pub mod cuts;
pub mod termination;
pub mod flow;
pub mod growth;
pub mod measure;
pub mod merged_constants;
pub mod numbers;
pub mod local_states;
pub mod overloads;
pub mod replicas;
pub mod rewrite;
pub mod symbolic_constants;
pub mod sample;
pub mod sizes;
pub mod study;
pub mod words;

pub use abstractable_model::AbstractableModel;
pub use abstraction::Regions;
pub use audit::components::{Components, ExpandedInstance, audit_components};
pub use audit::{Audit, audit};
pub use cuts::Case;
pub use local_states::reachable_local_states;
pub use measure::{Measure, measures};
pub use merged_constants::MergedConstants;
pub use overloads::find_overload;
pub use replicas::Replicas;
pub use sizes::{Assigned, Family};
pub use study::{Levels, Study};
pub use symbolic_constants::{SymbolicConstant, SymbolicConstants, with_parameters};
pub use termination::{Least, TerminationResult, least, prove_termination};
pub use thread_modular::ThreadModularAbstraction;
