//! Function values: update in canonical form, application of tables, equality.
//!
//! A table is sorted by key, holds each key once, and has no entry that equals its base function.
//! So two functions that updates of one base give are equal if and only if their tables are.

use crate::engine::compile::Program;
use crate::engine::machine::{EvaluationMachine, Outcome};
use crate::enumerate;
use crate::sort::SortKind;
use crate::value::{IMPURE, Rich, Value};
use mu_base::ids::{OpId, SortId};
use std::rc::Rc;

/// Largest domain over which functions are compared point by point.
const MAX_DOMAIN: usize = 4096;

impl EvaluationMachine {
    /// Evaluates `f[key -> value]`.
    pub(crate) fn update(
        &mut self,
        p: &Program,
        op: OpId,
        f: Value,
        key: Value,
        value: Value,
    ) -> Outcome<Value> {
        self.update_at(p, p.op(op).range, f, key, value)
    }

    /// Evaluates `f[key -> value]` for a function sort.
    pub(crate) fn update_at(
        &mut self,
        p: &Program,
        sort: SortId,
        f: Value,
        key: Value,
        value: Value,
    ) -> Outcome<Value> {
        let (domain, range) = p.signature.domain_range(sort);
        let key_sort = domain[0];
        let (base, entries) = match f.as_rich() {
            Some(Rich::Table(_, base, entries)) => (base.clone(), entries.clone()),
            _ => (f.clone(), Rc::new([]) as Rc<[(Value, Value)]>),
        };
        // Position of the key.
        let mut place = Err(entries.partition_point(|e| e.0 < key));
        for (i, (k, _)) in entries.iter().enumerate() {
            match self.equal(p, key_sort, k, &key)? {
                Value::Bool(true) => place = Ok(i),
                Value::Bool(false) => {}
                _ => {
                    let update = p.sort(sort).insert.expect("unary function sorts have an update");
                    return Ok(Value::app3(update, IMPURE, f, key, value));
                }
            }
        }
        let old = self.apply_value(p, base.clone(), vec![key.clone()])?;
        let same = self.equal(p, range, &old, &value)?.is_true();
        let mut new: Vec<(Value, Value)> = entries.to_vec();
        match (place, same) {
            (Ok(i), true) => {
                new.remove(i);
            }
            (Ok(i), false) => new[i].1 = value,
            (Err(_), true) => return Ok(f),
            (Err(i), false) => new.insert(i, (key, value)),
        }
        Ok(if new.is_empty() { base } else { Value::rich(Rich::Table(sort, base, new.into())) })
    }

    /// Returns the value of a table at a key.
    pub(crate) fn lookup(
        &mut self,
        p: &Program,
        table: Value,
        base: Value,
        entries: &[(Value, Value)],
        key: &Value,
    ) -> Outcome<Value> {
        if key.is_data() && entries.iter().all(|e| e.0.is_data()) {
            return match entries.binary_search_by(|e| e.0.cmp(key)) {
                Ok(i) => Ok(entries[i].1.clone()),
                Err(_) => self.apply_value(p, base, vec![key.clone()]),
            };
        }
        let sort = match table.as_rich() {
            Some(Rich::Table(sort, ..)) => *sort,
            _ => return self.apply_value(p, base, vec![key.clone()]),
        };
        let key_sort = p.signature.domain_range(sort).0[0];
        for (k, v) in entries {
            match self.equal(p, key_sort, k, key)? {
                Value::Bool(true) => return Ok(v.clone()),
                Value::Bool(false) => {}
                _ => return Ok(Value::rich(Rich::Apply(table, [key.clone()].into()))),
            }
        }
        self.apply_value(p, base, vec![key.clone()])
    }

    /// Decides equality of functions that are not the same term: by a point where they differ, by
    /// equal base and entries, by a small finite domain, or by bodies that agree for any argument.
    /// `None` if none of these decides.
    pub(crate) fn equal_functions(
        &mut self,
        p: &Program,
        sort: SortId,
        f: &Value,
        g: &Value,
    ) -> Outcome<Option<Value>> {
        if f.is_open() || g.is_open() {
            return Ok(None);
        }
        let SortKind::Function(domain, range) = p.signature.sorts.kind(sort) else {
            return Ok(None);
        };
        let parts = |v: &Value| match v.as_rich() {
            Some(Rich::Table(_, base, entries)) => (base.clone(), entries.clone()),
            _ => (v.clone(), Rc::new([]) as Rc<[(Value, Value)]>),
        };
        let ((f_base, f_entries), (g_base, g_entries)) = (parts(f), parts(g));
        let mut all = f_base == g_base;
        for (key, _) in f_entries.iter().chain(g_entries.iter()) {
            match self.equal_at(p, *range, f, g, vec![key.clone()])? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(Some(Value::Bool(false))),
                _ => all = false,
            }
        }
        if all {
            return Ok(Some(Value::Bool(true)));
        }
        let mut tuples: Vec<Vec<Value>> = vec![vec![]];
        for sort in domain.iter() {
            let Some(values) = enumerate::values_of(self, p, *sort, MAX_DOMAIN)? else {
                return self.equal_bodies(p, domain, *range, f, g);
            };
            if values.len().saturating_mul(tuples.len()) > MAX_DOMAIN {
                return self.equal_bodies(p, domain, *range, f, g);
            }
            tuples = tuples
                .iter()
                .flat_map(|t| {
                    values.iter().map(move |v| t.iter().cloned().chain([v.clone()]).collect())
                })
                .collect();
        }
        let mut all = true;
        for tuple in tuples {
            match self.equal_at(p, *range, f, g, tuple)? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(Some(Value::Bool(false))),
                _ => all = false,
            }
        }
        Ok(all.then_some(Value::Bool(true)))
    }

    fn equal_at(
        &mut self,
        p: &Program,
        range: SortId,
        f: &Value,
        g: &Value,
        args: Vec<Value>,
    ) -> Outcome<Value> {
        let x = self.apply_value(p, f.clone(), args.clone())?;
        let y = self.apply_value(p, g.clone(), args)?;
        self.equal(p, range, &x, &y)
    }

    fn equal_bodies(
        &mut self,
        p: &Program,
        domain: &[SortId],
        range: SortId,
        f: &Value,
        g: &Value,
    ) -> Outcome<Option<Value>> {
        let mark = self.unknowns.mark();
        let args: Vec<Value> = domain.iter().map(|&sort| self.unknowns.fresh(sort, None)).collect();
        let wanted = self.unknowns.created_since(mark).collect();
        let verdict = self.equal_at(p, range, f, g, args).and_then(|same| match same {
            v @ Value::Bool(_) => Ok(Some(v)),
            // Equality of functions is a universal quantifier.
            same => {
                let differ = self.not(p, same);
                enumerate::search_difference(self, p, wanted, differ, "a comparison of functions")
            }
        });
        self.unknowns.undo(mark);
        verdict
    }
}
