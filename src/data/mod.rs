//! The data language: sorts, signature, typed expressions, type checking, values, rewriting, enumeration.

pub mod builtins;
pub mod engine;
pub mod enumerate;
pub mod expr;
pub mod naive;
pub mod print;
pub mod signature;
pub mod sort;
pub mod text;
pub mod typecheck;
pub mod value;
