//! Text to syntax tree and back, without name resolution.
#![warn(missing_docs)]

pub mod ast;
mod drop;
pub mod format;
mod parse;
mod precedence;
pub mod print;
pub mod template;
pub mod tokens;

pub use parse::{
    MAX_DEPTH, is_formula, parse_data, parse_data_in, parse_formula, parse_formula_in,
    parse_head_in, parse_multi_action, parse_process, parse_sort, parse_specification,
    parse_variables_in,
};
