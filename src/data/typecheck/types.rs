//! Sorts under inference: the sorts of the language plus one *bottom* sort, the unknown element
//! sort of `[]`, `{}` and `{:}`.
//!
//! Subsorting: Pos below Nat below Int below Real; FSet below Set, FBag below Bag at equal
//! elements; bottom below everything, and a sort that contains bottom is below each of its
//! instances. Containers are otherwise invariant (a variable of sort List(Pos) is not a List(Nat));
//! candidate sets represent the several element sorts of *literals*.
//!
//! Types are interned; all operations are linear in the size of a sort and constant for the basic
//! ones.

use super::super::sort::{SortKind, Sorts};
use ahash::AHashMap;
use mu_base::ids::SortId;

/// Interned type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ty(u32);

impl Ty {
    pub(super) const BOTTOM: Ty = Ty(0);
    pub(super) const BOOL: Ty = Ty(1);
    pub(super) const POS: Ty = Ty(2);
    pub(super) const NAT: Ty = Ty(3);
    pub(super) const INT: Ty = Ty(4);
    pub(super) const REAL: Ty = Ty(5);

    /// Returns the position in Pos, Nat, Int, Real, if it is one of them.
    fn rank(self) -> Option<u32> {
        (Ty::POS.0..=Ty::REAL.0).contains(&self.0).then(|| self.0 - Ty::POS.0)
    }
}

/// Kind of a type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum TyKind {
    Bottom,
    Bool,
    Pos,
    Nat,
    Int,
    Real,
    List(Ty),
    Set(Ty),
    Bag(Ty),
    FSet(Ty),
    FBag(Ty),
    Function(Box<[Ty]>, Ty),
    Named(u32),
}

/// Table of types.
#[derive(Debug)]
pub(super) struct Types {
    kinds: Vec<TyKind>,
    open: Vec<bool>,
    ids: AHashMap<TyKind, Ty>,
    from: AHashMap<SortId, Ty>,
    to: AHashMap<Ty, SortId>,
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Self {
            kinds: Vec::new(),
            open: Vec::new(),
            ids: AHashMap::new(),
            from: AHashMap::new(),
            to: AHashMap::new(),
        };
        for kind in
            [TyKind::Bottom, TyKind::Bool, TyKind::Pos, TyKind::Nat, TyKind::Int, TyKind::Real]
        {
            types.intern(kind);
        }
        types
    }
}

impl Types {
    /// Returns the type of a kind.
    pub(super) fn intern(&mut self, kind: TyKind) -> Ty {
        if let Some(&ty) = self.ids.get(&kind) {
            return ty;
        }
        let ty = Ty(u32::try_from(self.kinds.len()).expect("more than 2^32 types"));
        let open = match &kind {
            TyKind::Bottom => true,
            TyKind::List(e)
            | TyKind::Set(e)
            | TyKind::Bag(e)
            | TyKind::FSet(e)
            | TyKind::FBag(e) => self.is_open(*e),
            TyKind::Function(domain, range) => {
                domain.iter().any(|t| self.is_open(*t)) || self.is_open(*range)
            }
            _ => false,
        };
        self.kinds.push(kind.clone());
        self.open.push(open);
        self.ids.insert(kind, ty);
        ty
    }
    /// Returns the kind of a type.
    pub(super) fn kind(&self, ty: Ty) -> &TyKind {
        &self.kinds[ty.0 as usize]
    }
    /// True if bottom occurs in the type.
    pub(super) fn is_open(&self, ty: Ty) -> bool {
        self.open[ty.0 as usize]
    }
    /// Returns the type of a sort.
    pub(super) fn of_sort(&mut self, sorts: &Sorts, sort: SortId) -> Ty {
        if let Some(&ty) = self.from.get(&sort) {
            return ty;
        }
        let kind = match sorts.kind(sort) {
            SortKind::Bool => TyKind::Bool,
            SortKind::Pos => TyKind::Pos,
            SortKind::Nat => TyKind::Nat,
            SortKind::Int => TyKind::Int,
            SortKind::Real => TyKind::Real,
            SortKind::List(s) => TyKind::List(self.of_sort(sorts, *s)),
            SortKind::Set(s) => TyKind::Set(self.of_sort(sorts, *s)),
            SortKind::Bag(s) => TyKind::Bag(self.of_sort(sorts, *s)),
            SortKind::FSet(s) => TyKind::FSet(self.of_sort(sorts, *s)),
            SortKind::FBag(s) => TyKind::FBag(self.of_sort(sorts, *s)),
            SortKind::Function(domain, range) => {
                let domain = domain.iter().map(|s| self.of_sort(sorts, *s)).collect();
                TyKind::Function(domain, self.of_sort(sorts, *range))
            }
            SortKind::Named(i) => TyKind::Named(*i),
        };
        let ty = self.intern(kind);
        self.from.insert(sort, ty);
        self.to.insert(ty, sort);
        ty
    }
    /// Returns the sort of a type; bottom becomes Bool.
    pub(super) fn sort_of(&mut self, sorts: &mut Sorts, ty: Ty) -> SortId {
        if let Some(&sort) = self.to.get(&ty) {
            return sort;
        }
        let kind = match self.kind(ty).clone() {
            TyKind::Bottom | TyKind::Bool => SortKind::Bool,
            TyKind::Pos => SortKind::Pos,
            TyKind::Nat => SortKind::Nat,
            TyKind::Int => SortKind::Int,
            TyKind::Real => SortKind::Real,
            TyKind::List(e) => SortKind::List(self.sort_of(sorts, e)),
            TyKind::Set(e) => SortKind::Set(self.sort_of(sorts, e)),
            TyKind::Bag(e) => SortKind::Bag(self.sort_of(sorts, e)),
            TyKind::FSet(e) => SortKind::FSet(self.sort_of(sorts, e)),
            TyKind::FBag(e) => SortKind::FBag(self.sort_of(sorts, e)),
            TyKind::Function(domain, range) => {
                let domain = domain.iter().map(|t| self.sort_of(sorts, *t)).collect();
                SortKind::Function(domain, self.sort_of(sorts, range))
            }
            TyKind::Named(i) => SortKind::Named(i),
        };
        let sort = sorts.intern(kind);
        self.to.insert(ty, sort);
        sort
    }
    /// Returns the type of a sort that is already in the table; `None` if it is not there.
    pub(super) fn find_type(&self, sort: SortId) -> Option<Ty> {
        self.from.get(&sort).copied()
    }
    /// Replaces bottom by Bool everywhere.
    pub(super) fn close(&mut self, ty: Ty) -> Ty {
        self.fill(ty, Ty::BOOL)
    }
    /// Returns the number of coercion steps from `a` to `b`, if `a` is below `b`.
    pub(super) fn distance(&self, a: Ty, b: Ty) -> Option<u32> {
        if a == b || a == Ty::BOTTOM {
            return Some(0);
        }
        if let (Some(i), Some(j)) = (a.rank(), b.rank()) {
            return j.checked_sub(i);
        }
        match (self.kind(a), self.kind(b)) {
            (TyKind::FSet(x), TyKind::Set(y)) | (TyKind::FBag(x), TyKind::Bag(y)) => {
                self.instance(*x, *y).then_some(1)
            }
            _ => self.instance(a, b).then_some(0),
        }
    }
    /// True if `b` is `a` with each bottom replaced by some type.
    pub(super) fn instance(&self, a: Ty, b: Ty) -> bool {
        if a == b || a == Ty::BOTTOM {
            return true;
        }
        if !self.is_open(a) {
            return false;
        }
        match (self.kind(a), self.kind(b)) {
            (TyKind::List(x), TyKind::List(y))
            | (TyKind::Set(x), TyKind::Set(y))
            | (TyKind::Bag(x), TyKind::Bag(y))
            | (TyKind::FSet(x), TyKind::FSet(y))
            | (TyKind::FBag(x), TyKind::FBag(y)) => self.instance(*x, *y),
            (TyKind::Function(d, r), TyKind::Function(e, s)) => {
                d.len() == e.len()
                    && d.iter().zip(e).all(|(x, y)| self.instance(*x, *y))
                    && self.instance(*r, *s)
            }
            _ => false,
        }
    }
    /// Returns the least type above both; `None` if there is none.
    pub(super) fn join(&mut self, a: Ty, b: Ty) -> Option<Ty> {
        if self.distance(a, b).is_some() {
            return Some(b);
        }
        if self.distance(b, a).is_some() {
            return Some(a);
        }
        match (self.kind(a).clone(), self.kind(b).clone()) {
            (TyKind::FSet(x), TyKind::Set(y)) | (TyKind::Set(x), TyKind::FSet(y)) => {
                let e = self.unify(x, y)?;
                Some(self.intern(TyKind::Set(e)))
            }
            (TyKind::FBag(x), TyKind::Bag(y)) | (TyKind::Bag(x), TyKind::FBag(y)) => {
                let e = self.unify(x, y)?;
                Some(self.intern(TyKind::Bag(e)))
            }
            _ => self.unify(a, b),
        }
    }
    /// Returns the least common instance of both; `None` if there is none.
    pub(super) fn unify(&mut self, a: Ty, b: Ty) -> Option<Ty> {
        if self.instance(a, b) {
            return Some(b);
        }
        if self.instance(b, a) {
            return Some(a);
        }
        if !self.is_open(a) || !self.is_open(b) {
            return None;
        }
        let kind = match (self.kind(a).clone(), self.kind(b).clone()) {
            (TyKind::List(x), TyKind::List(y)) => TyKind::List(self.unify(x, y)?),
            (TyKind::Set(x), TyKind::Set(y)) => TyKind::Set(self.unify(x, y)?),
            (TyKind::Bag(x), TyKind::Bag(y)) => TyKind::Bag(self.unify(x, y)?),
            (TyKind::FSet(x), TyKind::FSet(y)) => TyKind::FSet(self.unify(x, y)?),
            (TyKind::FBag(x), TyKind::FBag(y)) => TyKind::FBag(self.unify(x, y)?),
            (TyKind::Function(d, r), TyKind::Function(e, s)) if d.len() == e.len() => {
                let domain = d
                    .iter()
                    .zip(e)
                    .map(|(x, y)| self.unify(*x, y))
                    .collect::<Option<Box<[Ty]>>>()?;
                TyKind::Function(domain, self.unify(r, s)?)
            }
            _ => return None,
        };
        Some(self.intern(kind))
    }
    /// Returns all types that implicit coercions reach, the type itself first.
    pub(super) fn above(&mut self, ty: Ty) -> Vec<Ty> {
        if let Some(rank) = ty.rank() {
            return (Ty::POS.0 + rank..=Ty::REAL.0).map(Ty).collect();
        }
        let mut out = vec![ty];
        match *self.kind(ty) {
            TyKind::FSet(e) => out.push(self.intern(TyKind::Set(e))),
            TyKind::FBag(e) => out.push(self.intern(TyKind::Bag(e))),
            _ => {}
        }
        out
    }
    /// Replaces each bottom of `open` by the corresponding part of `target` (which is above it), or
    /// by the whole target if there is no such part.
    pub(super) fn fill(&mut self, open: Ty, target: Ty) -> Ty {
        if !self.is_open(open) {
            return open;
        }
        let element = |types: &Self| match types.kind(target) {
            TyKind::List(e)
            | TyKind::Set(e)
            | TyKind::Bag(e)
            | TyKind::FSet(e)
            | TyKind::FBag(e) => *e,
            _ => target,
        };
        let kind = match self.kind(open).clone() {
            TyKind::Bottom => return target,
            TyKind::List(e) => TyKind::List(self.fill(e, element(self))),
            TyKind::Set(e) => TyKind::Set(self.fill(e, element(self))),
            TyKind::Bag(e) => TyKind::Bag(self.fill(e, element(self))),
            TyKind::FSet(e) => TyKind::FSet(self.fill(e, element(self))),
            TyKind::FBag(e) => TyKind::FBag(self.fill(e, element(self))),
            TyKind::Function(domain, range) => {
                let (to_domain, to_range) = match self.kind(target).clone() {
                    TyKind::Function(d, r) if d.len() == domain.len() => (d, r),
                    _ => (vec![target; domain.len()].into(), target),
                };
                let domain = domain.iter().zip(to_domain).map(|(x, y)| self.fill(*x, y)).collect();
                TyKind::Function(domain, self.fill(range, to_range))
            }
            _ => return open,
        };
        self.intern(kind)
    }
    /// Returns the type as text; `?` for unknown parts.
    pub(super) fn text(&self, sorts: &Sorts, ty: Ty) -> String {
        match self.kind(ty) {
            TyKind::Bottom => "?".into(),
            TyKind::Bool => "Bool".into(),
            TyKind::Pos => "Pos".into(),
            TyKind::Nat => "Nat".into(),
            TyKind::Int => "Int".into(),
            TyKind::Real => "Real".into(),
            TyKind::List(e) => format!("List({})", self.text(sorts, *e)),
            TyKind::Set(e) => format!("Set({})", self.text(sorts, *e)),
            TyKind::Bag(e) => format!("Bag({})", self.text(sorts, *e)),
            TyKind::FSet(e) => format!("FSet({})", self.text(sorts, *e)),
            TyKind::FBag(e) => format!("FBag({})", self.text(sorts, *e)),
            TyKind::Named(i) => sorts.named[*i as usize].name.clone(),
            TyKind::Function(domain, range) => {
                let part = |t: &Ty| {
                    let text = self.text(sorts, *t);
                    if matches!(self.kind(*t), TyKind::Function(..)) {
                        format!("({text})")
                    } else {
                        text
                    }
                };
                format!(
                    "{} -> {}",
                    domain.iter().map(part).collect::<Vec<_>>().join(" # "),
                    self.text(sorts, *range)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let mut t = Types::default();
        assert_eq!(t.distance(Ty::POS, Ty::REAL), Some(3));
        assert_eq!(t.distance(Ty::INT, Ty::NAT), None);
        assert_eq!(t.distance(Ty::BOOL, Ty::NAT), None);
        let fset = t.intern(TyKind::FSet(Ty::POS));
        let set = t.intern(TyKind::Set(Ty::POS));
        let set_nat = t.intern(TyKind::Set(Ty::NAT));
        let empty = t.intern(TyKind::FSet(Ty::BOTTOM));
        assert_eq!(t.distance(fset, set), Some(1));
        assert_eq!(t.distance(fset, set_nat), None);
        assert_eq!(t.distance(empty, set_nat), Some(1));
        assert_eq!(t.join(set_nat, empty), Some(set_nat));
        let open = t.intern(TyKind::Set(Ty::BOTTOM));
        assert_eq!(t.join(open, fset), Some(set));
        assert_eq!(t.fill(empty, set_nat), t.intern(TyKind::FSet(Ty::NAT)));
    }

    #[test]
    fn unification_is_invariant() {
        let mut t = Types::default();
        let pos = t.intern(TyKind::List(Ty::POS));
        let nat = t.intern(TyKind::List(Ty::NAT));
        let none = t.intern(TyKind::List(Ty::BOTTOM));
        assert_eq!(t.join(pos, nat), None);
        assert_eq!(t.join(none, nat), Some(nat));
        let f = t.intern(TyKind::Function([none, pos].into(), Ty::BOOL));
        let g = t.intern(TyKind::Function([nat, none].into(), Ty::BOOL));
        let both = t.intern(TyKind::Function([nat, pos].into(), Ty::BOOL));
        assert_eq!(t.unify(f, g), Some(both));
        assert_eq!(t.close(f), t.fill(f, Ty::BOOL));
        assert!(!t.is_open(both));
    }
}
