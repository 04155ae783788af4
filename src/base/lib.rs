//! Foundation of all layers: atomic integers, identifiers, source positions, tokens of program
//! texts, diagnostics, limits, graph components. Imports no other layer.
#![warn(missing_docs)]

pub mod atomics;
pub mod components;
pub mod diagnostic;
pub mod file_names;
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
pub use file_names::{ends_in, file_extension};
pub use limits::{Budget, Grace, Limits, Stop};
pub use source::{Place, SourceId, SourceMap, Span};
