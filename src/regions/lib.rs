//! Parameters without a value: is a formula true for every number?
//!
//! In: a linear process over constants without a value, a formula. Out: a [`Study`]: finitely many
//! [`Case`]s of these constants, and of the numbers that the formula quantifies over, and for each
//! an abstract [`Regions`] model, finite where the process is but for its counters, with the
//! formula for it. If the formula is true in each case, it is true for every value. If it is false
//! in one, that says nothing: the abstract model may have steps that no value has.
//! docs/unbounded.md has the argument, with the literature.
//!
//! The way: [`overloads`] refuses names whose meaning depends on a value; [`rigid`] makes the
//! constants parameters of the process; [`flow`] finds the numbers that flow together with them,
//! and whether nothing but copying, comparing and adding literals is done with these; [`rewrite`]
//! and [`ask`] find what the formula tells apart; [`cuts`] cuts the number line there; [`sample`]
//! finds enough concrete numbers for each question, fewer where [`apart`] may; [`abstraction`] puts
//! the concrete answers together, and puts to the test that they are enough; [`measure`] finds
//! steps that no run takes for ever. Sorts that may have any number of constants go another way:
//! [`sizes`] finds them and what a formula tells apart of them, [`merged`] merges the others. If
//! there are components for each such constant, [`replicas`] finds them, [`crowd`] keeps those that
//! are told apart, with the local states of [`others`] for the rest and [`words`] for lists;
//! [`ends`] proves that all runs end there. The abstractions can be put on each other ([`base`]).
#![warn(missing_docs)]

pub mod abstraction;
pub mod apart;
pub mod ask;
pub mod audit;
pub mod base;
pub mod counted;
pub mod crowd;
pub mod cuts;
pub mod ends;
pub mod flow;
pub mod growth;
pub mod measure;
pub mod merged;
pub mod numbers;
pub mod others;
pub mod overloads;
pub mod replicas;
pub mod rewrite;
pub mod rigid;
pub mod sample;
pub mod sizes;
pub mod study;
pub mod words;

pub use abstraction::Regions;
pub use audit::components::{Components, Instance, audit_components};
pub use audit::{Audit, audit};
pub use base::Base;
pub use crowd::Crowd;
pub use cuts::Case;
pub use ends::{Endless, Least, endless, least};
pub use measure::{Measure, measures};
pub use merged::Merged;
pub use others::others;
pub use overloads::overloaded;
pub use replicas::Replicas;
pub use rigid::{Defined, Rigid, with_parameters};
pub use sizes::{Assigned, Family};
pub use study::{Levels, Study};
