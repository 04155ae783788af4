//! What litmus tests ask and answer, whatever runs them: the head of a file ([`mod@head`]), the
//! table of its code ([`table`]), the question about its outcomes ([`question`]), verdicts and
//! reports ([`answer`]).
//!
//! Two routes use it: machines of the layer `program` and axioms of the layer `litmus`. An outcome
//! is a list of values, one for each register or cell that the question observes. Form of files and reports: Alglave, Maranget, "The diy toolsuite", <http://diy.inria.fr/doc/>.
#![warn(missing_docs)]

pub mod answer;
pub mod head;
pub mod question;
pub mod table;

pub use answer::{Answer, Verdict};
pub use head::{Head, head};
pub use question::{Addresses, Names, Observed, Prop, Quantifier, Question};
