//! Proofs for any number of processes: backward reachability over cubes of parameterised systems,
//! under sequential consistency and total store order, with inferred invariants, certificates, and
//! their independent verification.
//!
//! [`rules::translate`] converts the typed system of `mu_cubicle`; [`search`] searches for an
//! inductive invariant.
#![warn(missing_docs)]

pub mod rational;
pub mod parallel;
pub mod simplex;
pub mod residues;
pub mod atom;
pub mod decide;
pub mod stages;
pub mod cube;
pub mod premises;
pub mod rules;
pub mod image;
pub mod initial;
pub mod counts;
pub mod trie;
pub mod subsume;
pub mod search;
pub mod instance;
pub mod bank;
pub mod names;
pub mod numbers;
pub mod replay;
pub mod derive;
pub mod oracle;
pub mod lemmas;
pub mod certificate;
pub mod verify;
pub mod audit;
pub mod prover;

pub use audit::{Audit, audit};
pub use prover::{ProofOutcome, ProofVerdict, ProverOptions, UnknownReason, prove};
pub use verify::verify;
