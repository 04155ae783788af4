//! Litmus tests for RISC-V, AArch64, x86, Power, Armv7, C11 and the Linux kernel: text -> candidate
//! executions -> outcomes under an axiomatic memory model.
//!
//! Input: the text of a `.litmus` file in the format of the herd tools ([`mod@file`]). Each thread
//! is lowered to intermediate code ([`code`]) and executed for all values that its reads may take
//! ([`paths`], [`inside`]), which gives events, dependencies and final registers. Paths of all
//! threads are combined with choices of reads-from and coherence ([`candidates`]); a model of the
//! layer `axioms` judges each ([`judge`]). Output: a [`report`].
//!
//! The method is that of Alglave, Maranget, Tautschnig, "Herding cats" (TOPLAS 2014), with three
//! optimisations: values are chosen first, so that no equations are solved; paths that differ only
//! in values share one skeleton; an outcome that was allowed once is not judged again.
#![warn(missing_docs)]

pub mod aarch64;
pub mod arm;
pub mod asm;
pub mod c;
pub mod candidates;
mod circles;
pub mod code;
pub mod code_sections;
pub mod condition;
pub mod file;
pub mod init;
pub mod inside;
pub mod instruction_values;
pub mod judge;
pub mod layout;
pub mod kernel;
mod known_bits;
mod names;
pub mod paths;
pub mod power;
pub mod report;
pub mod riscv;
mod speculation;
pub mod x86;

pub use code::Arch;
pub use file::{LitmusTest, parse};
pub use judge::Judge;
pub use names::names;
pub use report::{TestReport, run};
