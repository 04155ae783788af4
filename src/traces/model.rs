//! Models of traces: the built-in ones, strongest first, and axiomatic ones for small traces.

/// Memory model.
#[derive(Debug)]
#[non_exhaustive]
pub enum Model {
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
    /// POWER of Axe: as [`Model::Wmo`], but a store reaches threads at different times.
    Pow,
    /// RISC-V weak memory ordering, without dependencies: logs have none.
    Rvwmo,
    /// Armv8, multi-copy atomic, without dependencies: logs have none.
    Armv8,
}

impl Model {
    /// Built-in models, strongest first.
    pub const BUILT_IN: [Model; 7] =
        [Model::Sc, Model::Tso, Model::Pso, Model::Rvwmo, Model::Armv8, Model::Wmo, Model::Pow];

    /// Returns its name, as on the command line.
    pub fn name(&self) -> &str {
        match self {
            Model::Sc => "sc",
            Model::Tso => "tso",
            Model::Pso => "pso",
            Model::Wmo => "wmo",
            Model::Pow => "pow",
            Model::Rvwmo => "rvwmo",
            Model::Armv8 => "armv8",
        }
    }
    /// Returns its description in one line.
    pub fn summary(&self) -> &str {
        match self {
            Model::Sc => "sequential consistency",
            Model::Tso => "total store order (SPARC, x86)",
            Model::Pso => "partial store order",
            Model::Wmo => "weak memory order of Axe: fences and times order",
            Model::Pow => "POWER as far as Axe: stores reach threads at different times",
            Model::Rvwmo => "RISC-V weak memory ordering, without dependencies",
            Model::Armv8 => "Armv8, multi-copy atomic, without dependencies",
        }
    }
    /// Returns the built-in model with a name. `None` if there is none.
    pub fn by_name(name: &str) -> Option<Model> {
        Model::BUILT_IN.into_iter().find(|m| m.name() == name)
    }
}
