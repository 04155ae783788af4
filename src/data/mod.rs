//! The data language: sorts, signature, typed expressions, type checking, values, rewriting, enumeration.

pub mod expr;
pub mod signature;
pub mod sort;
pub mod typecheck;
