//! Interned sorts: equal sorts have equal ids. Aliases are resolved before.

use ahash::AHashMap;
use mu_base::ids::{OpId, SortId};
use mu_base::narrow;

/// Kind of a sort.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SortKind {
    Bool,
    Pos,
    Nat,
    Int,
    Real,
    List(SortId),
    Set(SortId),
    Bag(SortId),
    FSet(SortId),
    FBag(SortId),
    /// A function sort; the domain is not empty.
    Function(Box<[SortId]>, SortId),
    /// A declared sort: structured, with user constructors, or without any (then its elements
    /// cannot be enumerated).
    Named(u32),
}

/// Declared sort.
#[derive(Clone, Debug)]
pub struct NamedSort {
    /// Name (for an anonymous `struct`, derived from its text, in parentheses).
    pub name: String,
    /// Constructors in order of declaration.
    pub constructors: Vec<OpId>,
    /// True if it was declared as `struct` (or by an anonymous one).
    pub structured: bool,
}

/// Sorts of a specification. Ids 0 to 4 are Bool, Pos, Nat, Int, Real.
#[derive(Clone, Debug)]
pub struct Sorts {
    kinds: Vec<SortKind>,
    ids: AHashMap<SortKind, SortId>,
    /// Declared sorts, indexed by `SortKind::Named`.
    pub named: Vec<NamedSort>,
}

/// The five basic sorts.
#[allow(missing_docs)]
pub mod basic {
    use super::SortId;
    pub const BOOL: SortId = SortId::of(0);
    pub const POS: SortId = SortId::of(1);
    pub const NAT: SortId = SortId::of(2);
    pub const INT: SortId = SortId::of(3);
    pub const REAL: SortId = SortId::of(4);
}

impl Default for Sorts {
    fn default() -> Self {
        let mut sorts = Self { kinds: Vec::new(), ids: AHashMap::new(), named: Vec::new() };
        for kind in [SortKind::Bool, SortKind::Pos, SortKind::Nat, SortKind::Int, SortKind::Real] {
            sorts.intern(kind);
        }
        sorts
    }
}

impl Sorts {
    /// Returns the id of a sort; O(1).
    pub fn intern(&mut self, kind: SortKind) -> SortId {
        if let Some(&id) = self.ids.get(&kind) {
            return id;
        }
        let id = SortId::new(self.kinds.len());
        self.kinds.push(kind.clone());
        self.ids.insert(kind, id);
        id
    }
    /// Declares a new sort, different from all others, without constructors yet.
    pub fn declare(&mut self, name: impl Into<String>, structured: bool) -> SortId {
        let index = narrow::index(self.named.len());
        self.named.push(NamedSort { name: name.into(), constructors: Vec::new(), structured });
        self.intern(SortKind::Named(index))
    }
    /// Returns the kind of a sort.
    pub fn kind(&self, id: SortId) -> &SortKind {
        &self.kinds[id.index()]
    }
    /// Returns the declared sort behind an id, if it is one.
    pub fn declared_sort(&self, id: SortId) -> Option<&NamedSort> {
        match self.kind(id) {
            SortKind::Named(i) => Some(&self.named[*i as usize]),
            _ => None,
        }
    }
    /// Returns the number of sorts.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }
    /// Always false: the basic sorts exist.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
    /// Returns the sort as mCRL2 text.
    pub fn text(&self, id: SortId) -> String {
        match self.kind(id) {
            SortKind::Bool => "Bool".into(),
            SortKind::Pos => "Pos".into(),
            SortKind::Nat => "Nat".into(),
            SortKind::Int => "Int".into(),
            SortKind::Real => "Real".into(),
            SortKind::List(s) => format!("List({})", self.text(*s)),
            SortKind::Set(s) => format!("Set({})", self.text(*s)),
            SortKind::Bag(s) => format!("Bag({})", self.text(*s)),
            SortKind::FSet(s) => format!("FSet({})", self.text(*s)),
            SortKind::FBag(s) => format!("FBag({})", self.text(*s)),
            SortKind::Named(i) => self.named[*i as usize].name.clone(),
            SortKind::Function(domain, range) => {
                let part = |s: &SortId| {
                    if matches!(self.kind(*s), SortKind::Function(..)) {
                        format!("({})", self.text(*s))
                    } else {
                        self.text(*s)
                    }
                };
                let domain: Vec<String> = domain.iter().map(part).collect();
                format!("{} -> {}", domain.join(" # "), self.text(*range))
            }
        }
    }
}
