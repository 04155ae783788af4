//! Values of the formula's variables over identities and over sorts of any size: which are equal.
//!
//! In: a [`Product`]. Out: its cases for each choice. By symmetry, the values are the first
//! constants of the sort in the order of the variables, or constants that are no part of the
//! family. Choices of different sorts are independent. Cost: the product of the numbers of
//! partitions.

use super::Verified;
use super::evaluate::fails;
use super::identities::{CaseIdentities, Identities, holds_identities, is_plain};
use super::merged::{self, MergedSort};
use super::product::{Product, reaches};
use crate::positions::Position;
use mu_base::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::expr::{DataSpec, Expr};
use mu_data::signature::Signature;
use std::rc::Rc;

/// Values of variables over one sort, and the number of constants that these are.
type Row = (Vec<OpId>, usize);

/// Returns the choices of values for some variables over a family of constants, of which any number
/// may be equal. `others`: constants that are no part of it. Error: there are not enough constants
/// for different values.
fn rows(count: usize, constants: &[OpId], others: &[OpId]) -> Result<Vec<Row>, Diagnostic> {
    if count > constants.len() {
        return Err(fails("the formula quantifies over too many constants"));
    }
    let mut all: Vec<Row> = vec![(Vec::new(), 0)];
    for _ in 0..count {
        let longer = |(row, tracked): &Row| {
            let known = constants.iter().take(tracked + 1).enumerate();
            let known = known.map(|(i, op)| (*op, (*tracked).max(i + 1)));
            let all = known.chain(others.iter().map(|op| (*op, *tracked)));
            all.map(|(op, n)| ([&row[..], &[op]].concat(), n)).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

impl Product<'_> {
    /// Returns the variables of the formula over a sort.
    fn quantified_variables(
        &self,
        signature: &Signature,
        sort: SortId,
    ) -> Result<Vec<VarId>, Diagnostic> {
        let mut chosen: Vec<VarId> = Vec::new();
        for (at, position) in self.positions.all.iter().enumerate() {
            let Position::Forall(var, after, _) = position else { continue };
            let own = signature.var(*var).sort;
            if own == sort {
                if reaches(self.positions, *after, at) {
                    return Err(fails("a quantifier over identities is below its own recursion"));
                }
                chosen.push(*var);
            } else if holds_identities(signature, own, sort) {
                return Err(fails("a quantifier over data with identities"));
            }
        }
        Ok(chosen)
    }

    /// Explores all cases of the values of variables over identities and sorts of any size.
    pub(super) fn assignments(
        &mut self,
        given: Option<&Identities>,
        data: &DataSpec,
    ) -> Result<Verified, Diagnostic> {
        let signature = data.signature.clone();
        let merged: Vec<MergedSort> = self.by.numbers.merged.borrow().clone();
        for own in &merged {
            merged::check(own, self.question.process, self.question.initial, data)?;
            for term in self.terms.values() {
                merged::independent(&signature, own, &term.e)?;
            }
        }
        let mut variables: Vec<Vec<VarId>> = Vec::new();
        let mut all: Vec<Vec<Row>> = vec![Vec::new()];
        let mut extend = |rows: Vec<Row>| {
            let longer = |known: &Vec<Row>| -> Vec<Vec<Row>> {
                rows.iter().map(|row| [&known[..], std::slice::from_ref(row)].concat()).collect()
            };
            all = all.iter().flat_map(longer).collect();
        };
        for own in &merged {
            let chosen = self.quantified_variables(&signature, own.sort)?;
            extend(rows(chosen.len(), &own.constants, &own.others)?);
            variables.push(chosen);
        }
        if let Some(given) = given {
            for term in self.terms.values() {
                let mut named = false;
                term.e.each_op(&mut |op| named |= given.constants.contains(&op));
                if named {
                    return Err(fails("the formula names an identity"));
                }
                is_plain(&signature, given.sort, &term.e)?;
            }
            let constructors = signature.sorts.declared_sort(given.sort);
            let constructors = constructors.map(|n| n.constructors.as_slice());
            let others = constructors.unwrap_or_default().iter().copied();
            let others: Vec<OpId> = others.filter(|op| !given.constants.contains(op)).collect();
            if others.iter().any(|op| signature.op(*op).sort != given.sort) {
                return Err(fails("an identity with parts"));
            }
            let chosen = self.quantified_variables(&signature, given.sort)?;
            extend(rows(chosen.len(), &given.constants, &others)?);
            variables.push(chosen);
        }
        for rows in all {
            self.assigned.clear();
            for (vars, (row, _)) in variables.iter().zip(&rows) {
                let values = row.iter().map(|op| Expr::op(&signature, *op));
                self.assigned.extend(vars.iter().copied().zip(values));
            }
            for (own, (_, tracked)) in self.by.numbers.merged.borrow_mut().iter_mut().zip(&rows) {
                own.tracked = *tracked;
            }
            // The identities are the last.
            if let Some((given, (_, tracked))) = given.zip(rows.last()) {
                self.track(given, data, *tracked)?;
            }
            self.cases()?;
        }
        Ok(self.found)
    }

    /// Prepares a case with some tracked identities.
    fn track(
        &mut self,
        given: &Identities,
        data: &DataSpec,
        tracked: usize,
    ) -> Result<(), Diagnostic> {
        let crowd = Rc::new(CaseIdentities::new(given, self.question.process, data, tracked)?);
        let most = crowd.considered.iter().flatten().max().copied().unwrap_or(0);
        let stands = |at: usize| crowd.participant[at].is_none_or(|k| k < most);
        self.users = vec![Vec::new(); crowd.canonical.len()];
        for (at, home) in crowd.canonical.iter().enumerate().filter(|(at, _)| stands(*at)) {
            self.users[*home].push(at);
        }
        self.cuts.crowd = Some(crowd.clone());
        self.crowd = Some(crowd);
        Ok(())
    }
}
