//! Elements of finite sorts: constructors applied to elements in all ways, sets over a finite sort. Listed once for each machine.

use crate::base::ids::SortId;
use crate::data::engine::compile::Program;
use crate::data::engine::machine::{Machine, Outcome};
use crate::data::sort::SortKind;
use crate::data::value::Value;
use ahash::AHashSet;
use std::rc::Rc;

impl Machine {
    /// All values of a finite sort, in the order of its constructors; `None` if it is infinite, unknown, or larger than `limit`.
    pub(in crate::data) fn values_of(&mut self, p: &Program, sort: SortId, limit: usize) -> Outcome<Option<Rc<[Value]>>> {
        if let Some(known) = self.values.get(&(sort, limit)) {
            return Ok(known.clone());
        }
        let values: Option<Rc<[Value]>> =
            if infinite(p, sort, &mut Vec::new()) { None } else { self.list_values(p, sort, limit)?.map(Into::into) };
        self.values.insert((sort, limit), values.clone());
        Ok(values)
    }

    fn list_values(&mut self, p: &Program, sort: SortId, limit: usize) -> Outcome<Option<Vec<Value>>> {
        let mut out = Vec::new();
        match p.signature.sorts.kind(sort) {
            SortKind::Bool => out = vec![Value::Bool(false), Value::Bool(true)],
            SortKind::Named(n) => {
                let mut free = true;
                for &c in &p.signature.sorts.named[*n as usize].constructors {
                    free &= p.op(c).flags == 0;
                    let (domain, _) = p.signature.domain_range(p.signature.op(c).sort);
                    let mut tuples: Vec<Vec<Value>> = vec![vec![]];
                    for d in domain {
                        let Some(values) = self.values_of(p, *d, limit)? else { return Ok(None) };
                        if tuples.len().saturating_mul(values.len()) > limit {
                            return Ok(None);
                        }
                        tuples = tuples
                            .iter()
                            .flat_map(|t| values.iter().map(move |v| t.iter().cloned().chain([v.clone()]).collect()))
                            .collect();
                    }
                    for args in tuples {
                        out.push(self.apply_op(p, c, args)?);
                    }
                }
                if !free {
                    let mut seen = AHashSet::new();
                    out.retain(|v| seen.insert(v.clone()));
                }
            }
            SortKind::FSet(e) | SortKind::Set(e) => {
                let Some(values) = self.values_of(p, *e, 20)? else { return Ok(None) };
                if 1usize << values.len() > limit {
                    return Ok(None);
                }
                for subset in 0usize..1 << values.len() {
                    let elements = values.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1).map(|(_, v)| v.clone());
                    out.push(self.set_of(p, sort, elements.collect())?);
                }
            }
            _ => return Ok(None),
        }
        Ok((out.len() <= limit).then_some(out))
    }
}

/// Whether a sort has infinitely many elements, or elements that cannot be listed.
pub(super) fn infinite(p: &Program, sort: SortId, path: &mut Vec<SortId>) -> bool {
    match p.signature.sorts.kind(sort) {
        SortKind::Bool => false,
        SortKind::Named(n) => {
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            if constructors.is_empty() || path.contains(&sort) {
                return true;
            }
            path.push(sort);
            let answer =
                constructors.iter().any(|c| p.signature.domain_range(p.signature.op(*c).sort).0.iter().any(|d| infinite(p, *d, path)));
            path.pop();
            answer
        }
        SortKind::FSet(e) | SortKind::Set(e) => infinite(p, *e, path),
        _ => true,
    }
}
