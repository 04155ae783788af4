//! The data language: sorts, signature, typed expressions, type checking, values, rewriting,
//! enumeration.
#![warn(missing_docs)]

// Lets the naive rewriter, which tests share, name this layer as others do.
#[cfg(test)]
extern crate self as mu_data;

pub mod builtins;
pub mod contradictions;
pub mod engine;
pub mod enumerate;
pub mod expr;
pub mod naive;
pub mod portable;
pub mod digests;
pub mod portable_terms;
pub mod print;
pub(crate) mod shape;
pub mod signature;
pub mod sort;
pub mod terms;
pub mod text;
pub mod typecheck;
pub mod value;
