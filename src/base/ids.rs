//! `u32` newtypes for all numbered entities, so that no bare integer passes between modules.
//!
//! Each is an index into the table that its name indicates. The tables are append-only, so an id
//! stays valid as long as its table.

use std::sync::atomic::{AtomicU32, Ordering};

/// Declares types of ids: `u32` newtypes with the conversions `of`, `number`, `index`, and `new`,
/// of which `new` checks that an index fits. The number itself is private to the module.
#[macro_export]
macro_rules! id_types {
    ($($(#[$doc:meta])* $vis:vis $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        $vis struct $name(u32);
        #[allow(dead_code)]
        impl $name {
            /// Returns the id with a number.
            #[inline]
            #[must_use]
            $vis const fn of(number: u32) -> Self { Self(number) }
            /// Returns the number.
            #[inline]
            #[must_use]
            $vis const fn number(self) -> u32 { self.0 }
            /// Returns the number as an index, for subscripting.
            #[inline]
            #[must_use]
            $vis const fn index(self) -> usize { self.0 as usize }
            /// Returns the id of index `i`. Panics if `i` does not fit in 32 bits.
            #[inline]
            #[must_use]
            $vis fn new(i: usize) -> Self { Self($crate::narrow::index(i)) }
            /// Returns the ids of the first `count` indices, in order.
            #[inline]
            $vis fn all(
                count: usize,
            ) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
                (0..$crate::narrow::index(count)).map(Self)
            }
        }
    )+};
}
id_types! {
    /// Sort in the signature's sort table.
    pub SortId,
    /// Operation (constructor, mapping, or built-in at given sorts) of the signature.
    pub OpId,
    /// Data variable; every binder makes a fresh one, so substitution never captures.
    pub VarId,
    /// Action name with given argument sorts.
    pub ActId,
    /// Process equation.
    pub ProcId,
    /// Fixed-point variable of a formula.
    pub FixId,
    /// Transition label (a multi-action with its values); 0 is tau.
    pub LabelId,
    /// State of an explicit transition system.
    pub StateId,
    /// Vertex of a parity game.
    pub VertexId,
}

impl VarId {
    /// Returns the `i`th local variable of a term that declares its variables itself. Local
    /// variables are numbered from the top, where no declared variable is.
    #[inline]
    pub fn local(i: usize) -> Self {
        Self(!Self::new(i).number())
    }

    /// Returns `i` if this is the `i`th local variable, or a declared one of a very long text.
    #[inline]
    pub fn local_index(self) -> Option<usize> {
        usize::try_from(!self.number()).ok()
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
