//! Append-only tables shared by all threads: values of a sort, labels.
//!
//! Writers hold a lock; readers too, but workers keep copies of what they have seen, so a table is asked once a thread and value, or seldom more.
//!
//! A value costs what it adds: of equal terms within the values of a table there is one (Van den Brand, de Jong, Klint, Olivier: "Efficient annotated
//! terms", 2000). So a list that is one longer than another at its front costs a cell, and so does one that is longer at its end if what follows its
//! head is a value too, as in a queue. Cost of a new value: a lookup for each of its parts that is not known, or not the known one.

use ahash::{AHashMap, AHashSet};
use mu_base::Span;
use mu_data::expr::{Expr, ExprKind};
use std::sync::{Arc, PoisonError, RwLock};

/// The values of a sort by number.
#[derive(Default)]
pub(super) struct ValueTable {
    inner: RwLock<Values>,
}

#[derive(Default)]
struct Values {
    ids: AHashMap<Expr, u32>,
    by_id: Vec<Expr>,
    /// Terms that occur in values and are none themselves.
    parts: AHashSet<Expr>,
}

impl Values {
    /// The term that stands for all that are equal to it.
    fn known(&self, e: &Expr) -> Option<&Expr> {
        self.ids.get_key_value(e).map(|(known, _)| known).or_else(|| self.parts.get(e))
    }

    /// A term whose parts are all known ones; what is new of them is known from now on, except for itself.
    fn shared(&mut self, e: &Expr) -> Expr {
        // A loop along the last arguments, as lists have them; the stack grows along all others.
        let (mut new, mut at) = (Vec::new(), e);
        let mut below = loop {
            match &at.kind {
                ExprKind::Apply(head, args) if !args.is_empty() => {
                    if let Some(known) = self.known(at) {
                        break known.clone();
                    }
                    new.push((at, head, args));
                    at = &args[args.len() - 1];
                }
                _ => break at.clone(),
            }
        };
        let mut levels = new.len();
        for (node, head, args) in new.into_iter().rev() {
            let mut parts: Vec<Expr> = Vec::with_capacity(args.len());
            for arg in &args[..args.len() - 1] {
                parts.push(stacker::maybe_grow(64 << 10, 1 << 20, || self.part(arg)));
            }
            parts.push(below);
            let same = parts.iter().zip(args).all(|(a, b)| Arc::ptr_eq(&a.0, &b.0));
            below = if same { node.clone() } else { Expr::new(ExprKind::Apply(head.clone(), parts), node.sort, Span::default()) };
            levels -= 1;
            if levels > 0 {
                self.parts.insert(below.clone());
            }
        }
        below
    }

    /// The same for a term that occurs in a value.
    fn part(&mut self, e: &Expr) -> Expr {
        let shared = self.shared(e);
        if matches!(shared.kind, ExprKind::Apply(..)) && self.known(&shared).is_none() {
            self.parts.insert(shared.clone());
        }
        shared
    }
}

impl ValueTable {
    /// The number of a value (a closed normal form in canonical shape).
    pub(super) fn intern(&self, value: &Expr) -> u32 {
        if let Some(&id) = self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(value) {
            return id;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = inner.ids.get(value) {
            return id;
        }
        let value = inner.shared(value);
        inner.parts.remove(&value);
        let id = inner.by_id.len() as u32;
        inner.by_id.push(value.clone());
        inner.ids.insert(value, id);
        id
    }
    /// All values by number.
    pub(super) fn values(&self) -> Vec<Expr> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_id.clone()
    }
    /// The value of a number that was given out.
    pub(super) fn get(&self, id: u32) -> Expr {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_id[id as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::ids::{OpId, SortId};

    fn leaf(op: u32) -> Expr {
        Expr::new(ExprKind::Op(OpId(op)), SortId(0), Span::default())
    }

    fn list(elements: &[u32]) -> Expr {
        let cons = |tail: Expr, head: &u32| Expr::new(ExprKind::Apply(leaf(1), vec![leaf(10 + head), tail]), SortId(0), Span::default());
        elements.iter().rev().fold(leaf(0), cons)
    }

    fn tail(e: &Expr) -> &Expr {
        match &e.kind {
            ExprKind::Apply(_, args) => &args[1],
            _ => panic!("no cell: {e:?}"),
        }
    }

    #[test]
    fn values_share_equal_parts() {
        let table = ValueTable::default();
        // A part before it is a value, a value before it is a part, and in both orders again.
        for elements in [&[1, 2, 3][..], &[2, 3], &[9, 2, 3], &[7, 8], &[5, 7, 8], &[], &[1, 2, 3]] {
            let id = table.intern(&list(elements));
            assert_eq!(table.get(id), list(elements));
            assert_eq!(table.intern(&list(elements)), id);
        }
        assert_eq!(table.values().len(), 6);
        let values = table.values();
        assert!(Arc::ptr_eq(&tail(&values[0]).0, &values[1].0) && Arc::ptr_eq(&tail(&values[2]).0, &values[1].0));
        assert!(Arc::ptr_eq(&tail(&values[4]).0, &values[3].0));
        // The rest [3] of the first three, and [8].
        assert_eq!(table.inner.read().unwrap().parts.len(), 2);
    }

    #[test]
    fn a_queue_costs_a_cell_a_value() {
        let table = ValueTable::default();
        let mut lists = vec![Vec::new()];
        for at in 0..200 {
            table.intern(&list(&lists[at]));
            for last in 0..3 {
                lists.push(lists[at].iter().copied().chain([last]).collect());
            }
        }
        // Rests of queues are queues, met before.
        assert_eq!(table.inner.read().unwrap().parts.len(), 0);
        let mut cells = std::collections::HashSet::new();
        for value in table.values() {
            let mut at = &value;
            while let ExprKind::Apply(_, args) = &at.kind {
                cells.insert(Arc::as_ptr(&at.0));
                at = &args[1];
            }
        }
        assert_eq!(cells.len(), 199);
    }
}
