//! Arguments of the commands on programs: litmus tests, x86 programs, store-buffer safety.

use super::Common;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Memory models.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryName {
    /// Sequential consistency.
    Sc,
    /// Total store order: x86.
    Tso,
    /// Partial store order.
    Pso,
}

/// `litmus`
#[derive(Args, Debug)]
pub struct LitmusArgs {
    /// Litmus tests for X86 or X86_64, and folders of them.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Memory model.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = MemoryName::Tso)]
    pub model: MemoryName,
    /// Most stores in a buffer (default: no bound for code without loops, else 4).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub buffer: Option<u32>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
