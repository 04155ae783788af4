//! Models of traces: the built-in ones, strongest first, and axiomatic ones for small traces.

use crate::trace::Annotations;

/// Memory model.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceModel {
    /// Sequential consistency.
    Sc,
    /// Total store order: a FIFO store buffer for each thread.
    Tso,
    /// Partial store order: a FIFO store buffer for each thread and location; updates wait for
    /// earlier stores to their own location only.
    Pso,
    /// Weak memory order of Axe: accesses to different locations are unordered unless a fence or
    /// times order them; one memory for all threads.
    Wmo,
    /// POWER of Axe: as [`TraceModel::Wmo`], but a store reaches threads at different times.
    Pow,
    /// RISC-V weak memory ordering, without dependencies: logs have none.
    Rvwmo,
    /// Armv8, multi-copy atomic, without dependencies: logs have none.
    Armv8,
}

impl TraceModel {
    /// Built-in models, strongest first.
    pub const BUILT_IN: [TraceModel; 7] = [
        TraceModel::Sc,
        TraceModel::Tso,
        TraceModel::Pso,
        TraceModel::Rvwmo,
        TraceModel::Armv8,
        TraceModel::Wmo,
        TraceModel::Pow,
    ];

    /// True if an update with these annotations is two operations: in `armv8` each, in `rvwmo` a
    /// pair of a load-reserve and a store-conditional.
    pub(crate) fn splits(&self, mark: Annotations) -> bool {
        match self {
            TraceModel::Armv8 => true,
            TraceModel::Rvwmo => mark.is_pair(),
            _ => false,
        }
    }

    /// Returns its name, as on the command line.
    pub fn name(&self) -> &str {
        match self {
            TraceModel::Sc => "sc",
            TraceModel::Tso => "tso",
            TraceModel::Pso => "pso",
            TraceModel::Wmo => "wmo",
            TraceModel::Pow => "pow",
            TraceModel::Rvwmo => "rvwmo",
            TraceModel::Armv8 => "armv8",
        }
    }
    /// Returns its description in one line.
    pub fn summary(&self) -> &str {
        match self {
            TraceModel::Sc => "sequential consistency",
            TraceModel::Tso => "total store order (SPARC, x86)",
            TraceModel::Pso => "partial store order",
            TraceModel::Wmo => "weak memory order of Axe: fences and times order",
            TraceModel::Pow => "POWER as far as Axe: stores reach threads at different times",
            TraceModel::Rvwmo => "RISC-V weak memory ordering, without dependencies",
            TraceModel::Armv8 => "Armv8, multi-copy atomic, without dependencies",
        }
    }
    /// Returns the built-in model with a name. `None` if there is none.
    pub fn by_name(name: &str) -> Option<TraceModel> {
        TraceModel::BUILT_IN.into_iter().find(|m| m.name() == name)
    }
}
