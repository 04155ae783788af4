//! Litmus tests for RISC-V, AArch64, x86 and C11: text -> candidate executions -> outcomes under an
//! axiomatic memory model.
//!
//! In: the text of a `.litmus` file as the herd tools read it ([`mod@file`]). Each thread is
//! lowered to a small code ([`code`]) and run over the values that its reads may take ([`paths`]),
//! which gives events, dependencies and final registers. Paths of all threads are put together with
//! choices of reads-from and coherence ([`candidates`]); a model of the layer `axioms` judges each
//! ([`judge`]). Out: a [`report`].
//!
//! The method is that of Alglave, Maranget, Tautschnig, "Herding cats" (TOPLAS 2014). It departs
//! from theirs where it saves work: values come first, so that no equations are solved; paths that
//! differ in values only share one skeleton; an outcome that was allowed once is not asked again.
#![warn(missing_docs)]

pub mod aarch64;
pub mod asm;
pub mod c;
pub mod candidates;
pub mod code;
pub mod condition;
pub mod cycles;
pub mod file;
pub mod init;
pub mod judge;
pub mod layout;
mod names;
pub mod paths;
pub mod report;
pub mod riscv;
mod speculation;
pub mod x86;

pub use code::Arch;
pub use file::{Test, parse};
pub use judge::Judge;
pub use names::names;
pub use report::{Report, run};
