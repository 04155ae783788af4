//! What every other module stands on: atomic words, identifiers, source positions, diagnostics, limits. Imports nothing of the rest.

pub mod atomics;
pub mod diagnostic;
pub mod ids;
pub mod limits;
pub mod random;
pub mod source;

pub use diagnostic::{Diagnostic, Stage};
pub use limits::{Budget, Limits, Stop};
pub use source::{Place, SourceId, SourceMap, Span};
