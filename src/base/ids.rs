//! `u32` newtypes for all numbered entities, so that no bare integer passes between modules.
//!
//! Each is an index into the table that its name indicates. The tables are append-only, so an id
//! stays valid as long as its table.

use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name(u32);
        impl $name {
            /// Returns the id with a number.
            #[inline]
            pub const fn of(number: u32) -> Self { Self(number) }
            /// Returns the number.
            #[inline]
            pub const fn number(self) -> u32 { self.0 }
            /// Returns the number as an index, for subscripting.
            #[inline]
            pub const fn index(self) -> usize { self.0 as usize }
            /// Returns the id of index `i`. Panics if `i` does not fit in 32 bits.
            #[inline]
            pub fn new(i: usize) -> Self { Self(u32::try_from(i).expect("more than 2^32 items")) }
        }
    )+};
}
ids! {
    /// Sort in the signature's sort table.
    SortId,
    /// Operation (constructor, mapping, or built-in at given sorts) of the signature.
    OpId,
    /// Data variable; every binder makes a fresh one, so substitution never captures.
    VarId,
    /// Action name with given argument sorts.
    ActId,
    /// Process equation.
    ProcId,
    /// Fixed-point variable of a formula.
    FixId,
    /// Transition label (a multi-action with its values); 0 is tau.
    LabelId,
    /// State of an explicit transition system.
    StateId,
    /// Vertex of a parity game.
    VertexId,
}

impl VarId {
    /// Returns the `i`th local variable of a term that declares its variables itself. Local
    /// variables are numbered from the top, where no declared variable is.
    #[inline]
    pub fn local(i: usize) -> Self {
        Self(!Self::new(i).number())
    }
}

/// Optional number below 2^32 - 1 in 4 bytes, stored as its successor; zero stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Maybe(u32);

impl Maybe {
    /// No number.
    pub const NONE: Maybe = Maybe(0);
    /// Wraps a number below 2^32 - 1. Panics if it is higher.
    #[inline]
    pub fn some(n: u32) -> Self {
        Maybe(n.checked_add(1).expect("a number below 2^32 - 1"))
    }
    /// Returns the number; `None` if there is none.
    #[inline]
    pub fn get(self) -> Option<u32> {
        self.0.checked_sub(1)
    }
    /// True if there is a number.
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl From<Option<u32>> for Maybe {
    #[inline]
    fn from(n: Option<u32>) -> Self {
        n.map_or(Maybe::NONE, Maybe::some)
    }
}

/// Atomic optional number below 2^32 - 1 in 4 bytes. Reads and writes are relaxed; each use states
/// what orders them.
#[derive(Debug, Default)]
pub struct AtomicMaybe(AtomicU32);

impl AtomicMaybe {
    /// Returns the number; `None` if there is none.
    #[inline]
    pub fn get(&self) -> Option<u32> {
        Maybe(self.0.load(Ordering::Relaxed)).get()
    }
    /// Stores an optional number below 2^32 - 1. Panics if it is higher.
    #[inline]
    pub fn set(&self, n: Option<u32>) {
        self.0.store(Maybe::from(n).0, Ordering::Relaxed);
    }
}

impl LabelId {
    /// Label of the empty multi-action.
    pub const TAU: LabelId = LabelId::of(0);
}
