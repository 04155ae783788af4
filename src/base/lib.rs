//! Foundation of all layers: atomic integers, identifiers, source positions, tokens of program
//! texts, diagnostics, limits, graph components. Imports no other layer.
#![warn(missing_docs)]

pub mod atomics;
pub mod components;
pub mod diagnostic;
pub mod endings;
pub mod files;
pub mod host;
pub mod ids;
pub mod label_time;
pub mod limits;
pub mod mixing;
pub mod naming;
pub mod narrow;
pub mod permutations;
pub mod random;
pub mod similar;
pub mod source;
pub mod varint;
pub mod words;

pub use diagnostic::{Diagnostic, Stage};
pub use endings::{ending, ends_in};
pub use limits::{Budget, Grace, Limits, Stop};
pub use source::{Place, SourceId, SourceMap, Span};
