//! Murphi models (`.m`), in the languages of CMurphi and Rumur: text, syntax tree, typed tree,
//! compiled rules.
//!
//! [`typed::Model`] is the central representation. It has no unresolved names and no unfolded
//! constants, so that everything behind it (compilation, exploration, printing of states) needs no
//! scope.
#![warn(missing_docs)]

mod accesses;
mod actions;
pub mod additions;
pub mod ast;
pub mod check;
pub mod expand;
mod foreign;
pub mod format;
pub mod lexer;
pub mod parse;
pub mod typed;

pub mod code;
pub mod compile;
mod equivariance;
pub mod footprint;
mod guards;
pub mod labels;
pub mod layout;
mod liveness;
mod lower;
mod lower_expr;
mod lower_stmt;
pub mod model;
mod normal;
pub mod order_check;
pub mod origin;
pub mod parametric;
pub mod parents;
pub mod path;
mod peephole;
pub mod run;
mod scan;
pub mod search;
pub mod states;
mod symmetry;
mod run_cache;
pub mod variables;
mod walk;

pub use additions::read_with;
pub use check::{Settings, check};
pub use compile::compile;
pub use expand::expand;
pub use parse::parse;
pub use typed::Model;

use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId};

/// Reads a model: parses and checks its text.
///
/// # Errors
///
/// The first error of the text.
pub fn read(source: SourceId, text: &str, settings: &Settings) -> Result<Model, Diagnostic> {
    check(&parse(source, text)?, text, settings)
}

/// Resolves the names of a text for editors, as far as it is free of errors.
pub fn names(source: SourceId, text: &str) -> Naming {
    let (file, _) = parse::parse_all(source, text);
    check::check_all(&file, text, &Settings::default()).naming
}
