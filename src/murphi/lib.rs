//! Murphi models (`.m`), in the languages of CMurphi and Rumur: text, syntax tree, typed tree,
//! compiled rules.
//!
//! [`typed::Model`] is the central representation. It has no unresolved names and no unfolded
//! constants, so that everything behind it (compilation, exploration, printing of states) needs no
//! scope.
#![warn(missing_docs)]

pub mod typed;

pub use typed::Model;
