//! `u32` newtypes for everything that is numbered, so that no bare integer travels between modules.
//!
//! Each is an index into the table that its name says; the tables are append-only, so an id stays
//! valid for the table's life.

use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as `usize`, for subscripting.
            #[inline]
            pub fn index(self) -> usize { self.0 as usize }
            /// The id of index `i`. Panics if `i` does not fit in 32 bits.
            #[inline]
            pub fn new(i: usize) -> Self { Self(u32::try_from(i).expect("more than 2^32 items")) }
        }
    )+};
}
ids! {
    /// A sort in the signature's sort table.
    SortId,
    /// An operation (constructor, mapping, or built-in at given sorts) of the signature.
    OpId,
    /// A data variable; every binder makes a fresh one, so substitution never captures.
    VarId,
    /// An action name with given argument sorts.
    ActId,
    /// A process equation.
    ProcId,
    /// A fixed-point variable of a formula.
    FixId,
    /// A transition label (a multi-action with its values); 0 is tau.
    LabelId,
    /// A state of an explicit transition system.
    StateId,
    /// A vertex of a parity game.
    VertexId,
}

impl VarId {
    /// The `i`th variable of a term that declares its variables itself and leaves them to nobody:
    /// numbered from the top, where no declared one is.
    #[inline]
    pub fn local(i: usize) -> Self {
        Self(!Self::new(i).0)
    }
}

/// A number that may be missing, in 4 bytes: kept one higher, so that zero says that there is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Maybe(u32);

impl Maybe {
    /// No number.
    pub const NONE: Maybe = Maybe(0);
    /// A number below 2^32 - 1. Panics if it is higher.
    #[inline]
    pub fn some(n: u32) -> Self {
        Maybe(n.checked_add(1).expect("a number below 2^32 - 1"))
    }
    /// The number, if there is one.
    #[inline]
    pub fn get(self) -> Option<u32> {
        self.0.checked_sub(1)
    }
    /// Whether there is one.
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

/// A number that may be missing, in 4 bytes that threads share. Reads and writes are relaxed: what
/// orders them is told where it is used.
#[derive(Debug, Default)]
pub struct AtomicMaybe(AtomicU32);

impl AtomicMaybe {
    /// The number, if there is one.
    #[inline]
    pub fn get(&self) -> Option<u32> {
        Maybe(self.0.load(Ordering::Relaxed)).get()
    }
    /// Stores a number below 2^32 - 1, or that there is none. Panics if it is higher.
    #[inline]
    pub fn set(&self, n: Option<u32>) {
        self.0.store(Maybe::from(n).0, Ordering::Relaxed);
    }
}

impl LabelId {
    /// The label of the empty multi-action.
    pub const TAU: LabelId = LabelId(0);
}
