//! Parameterised systems in the language of Cubicle and its extension by weak memory: text, syntax
//! tree, typed system, explicit machine.
//!
//! [`system::System`] is the central representation: [`parse::parse`] and [`check::check`] build it
//! from a file. The language is defined in weak-memory-arrays (Conchon, Declerck, Zaïdi 2018),
//! tso-partial-order (the same, 2020) and x86-tso-programs (the same, 2017).
#![warn(missing_docs)]

pub mod ast;
pub mod check;
mod formula;
mod ground;
pub mod instance;
pub mod lexer;
mod literals;
pub mod machine;
pub mod model;
mod names;
pub mod origin;
pub mod parse;
pub mod print;
mod start;
pub mod system;
pub mod value;
mod words;
pub mod x86;

pub use check::check;
pub use formula::MAX_CUBES;
pub use names::names;
pub use parse::parse;
pub use system::System;
