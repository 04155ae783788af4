//! Text to syntax tree and back. Knows nothing of what a name means.

pub mod ast;
pub mod template;
