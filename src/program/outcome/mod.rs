//! Questions and answers of litmus tests, independent of the route that runs them: the head of a
//! file ([`mod@head`]), the table of its code ([`table`]), the question about its outcomes
//! ([`question`]), verdicts and reports ([`answer`]).
//!
//! Two routes use it: the machines of this layer and the axioms of the layer `litmus`. An
//! outcome is a list of values, one for each observed register or cell. Format of files and
//! reports: Alglave, Maranget, "The diy toolsuite", <http://diy.inria.fr/doc/>.

pub mod answer;
pub mod head;
pub mod question;
pub mod table;

pub use answer::{Answer, Verdict};
pub use head::{Head, head};
pub use question::{Addresses, NameResolver, Observed, OutcomeQuantifier, Prop, Question};
