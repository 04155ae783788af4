//! Unknowns of open values, and the trail of bindings.
//!
//! Unknowns are numbered in the order of creation. Code that creates or binds some takes a
//! [`TrailMark`] first and undoes to it when done: later unknowns are removed, and later bindings
//! are undone. Marks nest as calls do. Cost: constant for each, as in Prolog's machine (Warren, "An
//! abstract Prolog instruction set", 1983).

use crate::value::{Rich, Value};
use mu_base::ids::{SortId, VarId};
use mu_base::narrow;

/// Unknown.
#[derive(Debug)]
struct Unknown {
    sort: SortId,
    /// Variable of a problem or a binder that it stands for, if any.
    var: Option<VarId>,
    /// Value, once bound.
    binding: Option<Value>,
    /// True if it stands for any number of its sort: no search may choose its value.
    rigid: bool,
}

/// All unknowns of a machine.
#[derive(Debug, Default)]
pub(crate) struct Unknowns {
    all: Vec<Unknown>,
    /// Bound unknowns, in the order of binding.
    trail: Vec<u32>,
    /// True if a rigid unknown was bound, so that results since then are wrong.
    broken: bool,
}

/// State of the trail to undo to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrailMark {
    unknowns: usize,
    bound: usize,
}

impl Unknowns {
    /// Creates an unknown of a sort, for a variable if one is given.
    pub fn fresh(&mut self, sort: SortId, var: Option<VarId>) -> Value {
        self.all.push(Unknown { sort, var, binding: None, rigid: false });
        Value::Unknown(narrow::index(self.all.len()) - 1)
    }

    /// Creates a rigid unknown of a sort of numbers, for a variable.
    pub fn rigid(&mut self, sort: SortId, var: VarId) -> Value {
        self.all.push(Unknown { sort, var: Some(var), binding: None, rigid: true });
        Value::Unknown(narrow::index(self.all.len()) - 1)
    }

    /// True if an unknown is rigid.
    pub fn is_rigid(&self, u: u32) -> bool {
        self.all.get(u as usize).is_some_and(|u| u.rigid)
    }

    /// True if a rigid unknown was bound since the last call.
    pub fn take_broken(&mut self) -> bool {
        std::mem::take(&mut self.broken)
    }

    /// True if an unknown that is not rigid occurs in a value.
    pub fn is_loose(&self, v: &Value) -> bool {
        let mut loose = false;
        v.each_unknown(&mut |u| loose |= !self.is_rigid(u));
        loose
    }

    /// Returns the current state.
    pub fn mark(&self) -> TrailMark {
        TrailMark { unknowns: self.all.len(), bound: self.trail.len() }
    }

    /// Undoes creations and bindings since a mark.
    pub fn undo(&mut self, mark: TrailMark) {
        for u in self.trail.drain(mark.bound..) {
            self.all[u as usize].binding = None;
        }
        self.all.truncate(mark.unknowns);
    }

    /// Returns the numbers of the unknowns created since.
    pub fn created_since(&self, mark: TrailMark) -> std::ops::Range<u32> {
        narrow::index(mark.unknowns)..narrow::index(self.all.len())
    }

    /// Binds an unknown, until the previous mark is undone.
    pub fn bind(&mut self, u: u32, value: Value) {
        self.broken |= self.all[u as usize].rigid;
        self.all[u as usize].binding = Some(value);
        self.trail.push(u);
    }

    /// Returns the sort of an unknown.
    pub fn sort(&self, u: u32) -> SortId {
        self.all[u as usize].sort
    }

    /// Returns the variable it stands for; `None` if it stands for none.
    pub fn var(&self, u: u32) -> Option<VarId> {
        self.all[u as usize].var
    }

    /// Returns the last unknown that stands for a variable.
    pub fn of_var(&self, var: VarId) -> Option<Value> {
        let at = self.all.iter().rposition(|u| u.var == Some(var))?;
        Some(Value::Unknown(narrow::index(at)))
    }

    /// Returns its binding; `None` if it is unbound.
    pub fn binding(&self, u: u32) -> Option<&Value> {
        self.all[u as usize].binding.as_ref()
    }

    /// Adds the unbound unknowns that occur in a value, directly or through bindings, except rigid
    /// ones; each once, in the order of the value.
    pub fn collect_unbound(&self, v: &Value, out: &mut Vec<u32>) {
        if !v.is_open() {
            return;
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || match v {
            Value::Unknown(u) => match self.binding(*u) {
                Some(b) => self.collect_unbound(b, out),
                None => {
                    if !self.is_rigid(*u) && !out.contains(u) {
                        out.push(*u);
                    }
                }
            },
            Value::Cons(_) => {
                let mut at = v;
                while let Value::Cons(cell) = at {
                    self.collect_unbound(&cell.head, out);
                    at = &cell.tail;
                }
                self.collect_unbound(at, out);
            }
            Value::Rich(n) => match &n.kind {
                Rich::Set(_, s) => s.iter().for_each(|e| self.collect_unbound(e, out)),
                Rich::Bag(_, s) => s.iter().for_each(|(e, c)| {
                    self.collect_unbound(e, out);
                    self.collect_unbound(c, out);
                }),
                Rich::Closure(c) => c.captures.iter().for_each(|e| self.collect_unbound(e, out)),
                Rich::Table(_, f, s) => {
                    self.collect_unbound(f, out);
                    s.iter().for_each(|(k, e)| {
                        self.collect_unbound(k, out);
                        self.collect_unbound(e, out);
                    });
                }
                Rich::Apply(f, s) => {
                    self.collect_unbound(f, out);
                    s.iter().for_each(|e| self.collect_unbound(e, out));
                }
                Rich::Integer(_) | Rich::Rational(_) => {}
            },
            _ => {
                if let Some((_, args)) = v.as_app() {
                    args.iter().for_each(|a| self.collect_unbound(a, out));
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_undoes_later_changes() {
        let mut all = Unknowns::default();
        let start = all.mark();
        let x = all.fresh(SortId::of(0), None);
        let outer = all.mark();
        let y = all.fresh(SortId::of(0), None);
        all.bind(0, y.clone());
        let inner = all.mark();
        all.bind(1, Value::Int(7));
        let open = |all: &Unknowns, v: &Value| {
            let mut out = Vec::new();
            all.collect_unbound(v, &mut out);
            out
        };
        let pair = Value::cons(x.clone(), Value::cons(y.clone(), Value::Nil(SortId::of(0))));
        assert!(open(&all, &pair).is_empty(), "through what x is bound to");
        all.undo(inner);
        assert_eq!(open(&all, &pair), [1]);
        assert_eq!(all.created_since(start), 0..2);
        all.undo(outer);
        assert_eq!((open(&all, &x), all.created_since(start)), (vec![0], 0..1));
        all.undo(start);
        assert_eq!(all.created_since(start), 0..0);
    }
}
