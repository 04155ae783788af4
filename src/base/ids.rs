//! `u32` newtypes for everything that is numbered, so that no bare integer travels between modules.
//!
//! Each is an index into the table that its name says; the tables are append-only, so an id stays valid for the table's life.

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

impl LabelId {
    /// The label of the empty multi-action.
    pub const TAU: LabelId = LabelId(0);
}
