//! Numbers without a value: proofs of formulas for all values of parameters, by evaluation along
//! paths.
//!
//! Input: a linear process with symbolic parameters, a formula. Output: a proof that the formula
//! holds for all values, or the obstacle ([`prove`]). A number without a value is a base plus an
//! offset; comparisons of such numbers split an evaluation ([`path`]), and the conditions of a path
//! are constraints on differences ([`differences`]). A state is the control part of the process,
//! the position in the formula ([`positions`]), and the differences of all numbers in it, rounded
//! to those that evaluations have compared ([`thresholds`]). [`obligations`] explores these states
//! as a game. No text is scanned: what evaluations do not compare, the proof does not need.
//! [`audit`] samples instances of a proof; [`verify`](mod@verify) checks certificates.
#![warn(missing_docs)]

pub mod audit;
pub mod certificate;
pub mod differences;
mod expansion;
pub mod obligations;
pub mod path;
pub mod positions;
pub mod thresholds;
pub mod verify;

pub use audit::AuditCounts;
pub use differences::Differences;
pub use obligations::{Answer, NoProof, Proof, Question, Samples, prove};
pub use verify::{AnySize, Identities, Verified, confirm, verify};
