//! Value range analysis of a parameter: follows its updates from its initial value.
//!
//! In: a linear process and a parameter. Out: a superset of its values in reachable states. If the
//! condition of a summand is false for a value, independent of the other parameters, the summand
//! adds no successor of it: this bounds a position to its board. Sum variables must be bound by the
//! condition on them alone. Cost: for each value an evaluation of each summand that changes the
//! parameter, for each value of its sums.

use super::{UnfoldedSummand, Unfolding};
use mu_base::ids::VarId;
use mu_data::expr::{Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;

/// Limit on the values of a parameter by which summands are split; with more, the range is unknown.
const MAX_RANGE: usize = 64;

/// Collects the closed expressions among which a conditional expression chooses; `None` if one is
/// not closed.
fn choices(signature: &Signature, e: &Expr, out: &mut Vec<Expr>) -> Option<()> {
    match e.as_builtin(signature) {
        Some((Builtin::If, [_, a, b])) => {
            choices(signature, a, out)?;
            choices(signature, b, out)
        }
        _ => {
            let literal = match &e.kind {
                ExprKind::Number(_) => true,
                ExprKind::Op(op) => {
                    matches!(
                        signature.op(*op).kind,
                        OpKind::Constructor(_) | OpKind::Builtin(Builtin::True | Builtin::False)
                    )
                }
                _ => false,
            };
            literal.then(|| out.push(e.clone()))
        }
    }
}

impl Unfolding<'_> {
    /// True if values of a parameter's sort can be indices, and it is not unfolded itself.
    fn may_index(&self, param: usize) -> bool {
        let signature = &self.process.data.signature;
        let sort = signature.var(self.process.params[param].var).sort;
        match signature.sorts.kind(sort) {
            SortKind::Pos | SortKind::Nat | SortKind::Int => true,
            SortKind::Named(_) => signature.sorts.declared_sort(sort).is_some_and(|n| {
                n.constructors.len() > 1
                    && n.constructors
                        .iter()
                        .all(|c| signature.domain_range(signature.op(*c).sort).0.is_empty())
            }),
            _ => false,
        }
    }

    /// Returns the values that a parameter takes; `None` if they are many or unknown.
    fn range(&mut self, param: usize) -> Option<Vec<Expr>> {
        if let Some(known) = self.ranges.get(&param) {
            return known.clone();
        }
        let range = self.compute_range(param);
        self.ranges.insert(param, range.clone());
        range
    }

    fn compute_range(&mut self, param: usize) -> Option<Vec<Expr>> {
        if self.process.chance.is_some() || self.process.summands.iter().any(|s| s.chance.is_some())
        {
            return None;
        }
        let var = self.process.params[param].var;
        let mut found = Vec::new();
        let init = self.init(param)?;
        choices(&self.process.data.signature, &init, &mut found)?;
        let mut done = 0;
        while done < found.len() {
            let value = found[done].clone();
            done += 1;
            for i in 0..self.process.summands.len() {
                let s = &self.process.summands[i];
                let Some(update) = s.updates.iter().find(|u| u.0 == param).map(|u| u.1.clone())
                else {
                    continue;
                };
                if matches!(update.kind, ExprKind::Var(v) if v == var) {
                    continue;
                }
                let (sums, here) =
                    (s.sum_vars.clone(), Substitution::from_iter([(var, value.clone())]));
                let guard = s.guard.substitute(&here);
                // Sums that do not occur in the update need no values.
                let mut used = Vec::new();
                update.free_vars(&mut used);
                let sums: Vec<VarId> = sums.into_iter().filter(|v| used.contains(v)).collect();
                let update = update.substitute(&here);
                for all in self.values(&sums, &guard)? {
                    if self.guard(&guard.substitute(&all)).is_none() {
                        continue;
                    }
                    let next = self.open(&update.substitute(&all))?;
                    let before = found.len();
                    let mut new = Vec::new();
                    choices(&self.process.data.signature, &next, &mut new)?;
                    new.into_iter().for_each(|e| {
                        if !found.contains(&e) {
                            found.push(e)
                        }
                    });
                    if found.len() > before && (found.len() > MAX_RANGE || !self.within_limits(0)) {
                        return None;
                    }
                }
            }
        }
        Some(found)
    }

    /// Returns the parameters with few values that occur in an expression together with fields.
    pub(super) fn indices(
        &mut self,
        touched: &[usize],
        summand: &super::Summand,
    ) -> Vec<(VarId, Vec<Expr>)> {
        let board: Vec<VarId> = touched.iter().map(|p| self.process.params[*p].var).collect();
        let mut others: Vec<VarId> = Vec::new();
        let mut look = |e: &Expr| {
            let mut vars = Vec::new();
            e.free_vars(&mut vars);
            if vars.iter().any(|v| board.contains(v)) {
                others.extend(vars.into_iter().filter(|v| !board.contains(v)));
            }
        };
        summand.guard.conjuncts(&self.process.data.signature).iter().for_each(&mut look);
        summand.actions.iter().chain(&summand.hidden).flat_map(|a| &a.args).for_each(&mut look);
        summand.updates.iter().for_each(|u| look(&u.1));
        let mut out = Vec::new();
        for param in 0..self.process.params.len() {
            let var = self.process.params[param].var;
            if others.contains(&var)
                && !self.candidates.contains_key(&param)
                && self.may_index(param)
            {
                out.extend(self.range(param).map(|range| (var, range)));
            }
        }
        out
    }

    /// Returns the average number of fields of parameters that instances use.
    pub(super) fn width(&self, touched: &[usize], instances: &[UnfoldedSummand]) -> f64 {
        let fields: Vec<VarId> = touched
            .iter()
            .filter_map(|p| self.candidates.get(p))
            .flat_map(|c| c.fields.iter().copied())
            .collect();
        let mut read = 0;
        for UnfoldedSummand { summand, updates } in instances {
            let mut vars = Vec::new();
            summand.guard.free_vars(&mut vars);
            updates.iter().for_each(|u| u.1.free_vars(&mut vars));
            read += fields.iter().filter(|f| vars.contains(f)).count();
        }
        read as f64 / (fields.len() * instances.len()).max(1) as f64
    }
}

/// Returns all assignments of values to some variables; `None` if there are more than `most`.
pub(super) fn combinations(
    ranges: &[(VarId, Vec<Expr>)],
    most: usize,
) -> Option<Vec<Substitution>> {
    let many = ranges.iter().try_fold(1usize, |n, r| n.checked_mul(r.1.len()))?;
    (many <= most).then(|| {
        let mut out = vec![Substitution::new()];
        for (var, values) in ranges {
            out = (out.iter())
                .flat_map(|by| {
                    values.iter().map(move |v| {
                        let mut by = by.clone();
                        by.insert(*var, v.clone());
                        by
                    })
                })
                .collect();
        }
        out
    })
}
