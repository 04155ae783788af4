//! The foundation of all layers: atomic words, identifiers, source positions, diagnostics, limits, components of graphs. Imports no other layer.
#![warn(missing_docs)]

pub mod atomics;
pub mod components;
pub mod diagnostic;
pub mod ids;
pub mod limits;
pub mod random;
pub mod source;

pub use diagnostic::{Diagnostic, Stage};
pub use limits::{Budget, Limits, Stop};
pub use source::{Place, SourceId, SourceMap, Span};
