//! The formula in the product: which modalities must hold after a label, and after positions.
//!
//! In: a case of [`Product`]. Out: sets of modalities by number. A position that is no modality is
//! replaced by what it requires; its tests are evaluated in each case of the numbers in its
//! variables. Cost: an evaluation for each label and modality, and for each test and values.

use super::atoms::Condition;
use super::cells::Abstract;
use super::evaluate::{Term, Values, fails};
use super::product::{Modality, Open, Product, Stop, place};
use crate::positions::Position;
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::expr::Expr;

impl Product<'_> {
    /// Returns the modalities after a label.
    pub(super) fn modalities_after(&mut self, label: u32, set: u32) -> Result<u32, Stop> {
        let mut out = 0;
        for m in self.all_sets[set as usize].clone() {
            let matches = match self.matches.get(&(label, m)) {
                Some(known) => *known,
                None => {
                    let found = self.does_match(label, m)?;
                    self.matches.insert((label, m), found);
                    found
                }
            };
            if matches {
                let (position, vars) = self.all_modalities[m as usize].clone();
                if let Position::Box(_, next) = self.positions.all[position] {
                    let after = self.closure(next, &vars, false)?;
                    out = self.union(out, after);
                }
            }
        }
        self.next.insert((label, set), out);
        Ok(out)
    }

    /// True if a label may satisfy the condition of a modality.
    fn does_match(&mut self, label: u32, modality: u32) -> Result<bool, Stop> {
        let (summand, args) = self.all_labels[label as usize].clone();
        let (position, vars) = self.all_modalities[modality as usize].clone();
        let Some(condition) = self.conditions.get(&(position, summand)).cloned() else {
            return Ok(false);
        };
        let names = &self.positions.arguments[summand];
        let of = |v: VarId| match names.iter().position(|n| *n == v) {
            Some(i) => Some(args[i]),
            None => vars.iter().find(|w| w.0 == v).map(|w| w.1),
        };
        // Most labels differ from a modality in one value.
        let mut known: Vec<Option<Option<bool>>> = vec![None; condition.atoms.len()];
        let mut stopped = None;
        let decided = condition.truth(&mut |i| match self.atom(&condition.atoms[i], &of) {
            Ok(found) => *known[i].insert(found),
            Err(why) => {
                stopped = Some(why);
                None
            }
        });
        if let Some(why) = stopped {
            return Err(why.into());
        }
        self.found.formula += 1;
        match decided {
            Some(decided) => Ok(decided),
            None => {
                let known: Vec<Option<bool>> = known.into_iter().map(Option::flatten).collect();
                self.rest(&condition, &known, &of)
            }
        }
    }

    /// Returns the value of an atom of which all variables have values without open numbers.
    fn atom(
        &mut self,
        (number, term): &(u32, Term),
        of: &dyn Fn(VarId) -> Option<u32>,
    ) -> Result<Option<bool>, Diagnostic> {
        let closed = |v: &VarId| of(*v).filter(|id| self.values.closed[*id as usize]);
        let Some(ids) = term.free.iter().map(closed).collect::<Option<Vec<u32>>>() else {
            return Ok(None);
        };
        if let Some(known) = self.atoms.get(&(*number, ids.clone())) {
            return Ok(*known);
        }
        let mut values = Values::default();
        for (v, id) in term.free.iter().zip(&ids) {
            values.insert(*v, self.values.all[*id as usize].e.clone());
        }
        let found = match self.by.holds(term, &values) {
            Ok(found) => Some(found),
            Err(why) if why.stop.is_some() => return Err(why),
            // Another atom may decide the condition.
            Err(_) => None,
        };
        self.atoms.insert((*number, ids), found);
        Ok(found)
    }

    /// True if a condition may hold, for known values of some of its atoms.
    fn rest(
        &mut self,
        condition: &Condition,
        known: &[Option<bool>],
        of: &dyn Fn(VarId) -> Option<u32>,
    ) -> Result<bool, Stop> {
        let mut key = vec![condition.number];
        key.extend(known.iter().map(|k| k.map_or(2, u32::from)));
        let mut names: Vec<VarId> = Vec::new();
        for ((_, term), _) in condition.atoms.iter().zip(known).filter(|(_, k)| k.is_none()) {
            names.extend(&term.free);
        }
        names.sort_unstable();
        names.dedup();
        // The others are parameters without a value.
        let read = names.iter().filter_map(|v| Some((*v, of(*v)?)));
        let (names, ids): (Vec<VarId>, Vec<u32>) = read.unzip();
        key.extend(&ids);
        if let Some(found) = self.rests.get(&key) {
            return Ok(*found);
        }
        let given: Vec<&Abstract> = ids.iter().map(|id| &self.values.all[*id as usize]).collect();
        let Open { mut cases, numbers, terms, identities } = self.evaluation(&given)?;
        let mut values = self.constants()?;
        names.into_iter().zip(terms).for_each(|(v, e)| values.insert(v, e));
        let mut found = false;
        while cases.begin(&self.by, &numbers)? {
            let values = self.with_identities(&values, &identities)?;
            let mut failed = None;
            let value = condition.truth(&mut |i| {
                known[i].or_else(|| match self.by.holds(&condition.atoms[i].1, &values) {
                    Ok(value) => Some(value),
                    Err(why) => {
                        failed.get_or_insert(why);
                        None
                    }
                })
            });
            match (value, failed) {
                (_, Some(why)) if why.stop.is_some() => return Err(why.into()),
                (Some(value), _) => found |= value,
                (None, why) => {
                    let why = why.unwrap_or_else(|| fails("a condition is not decided"));
                    return Err(why.into());
                }
            }
            self.found.formula += 1;
            self.end(&mut cases, false)?;
        }
        self.rests.insert(key, found);
        Ok(found)
    }

    /// Returns the set of modalities that must hold at a position. `through`: also after any
    /// labels.
    pub(super) fn closure(
        &mut self,
        position: usize,
        vars: &[(VarId, u32)],
        through: bool,
    ) -> Result<u32, Stop> {
        let mut out = Vec::new();
        let mut seen: Vec<Modality> = Vec::new();
        let mut pending: Vec<Modality> = vec![(position, vars.to_vec())];
        while let Some((at, mut vars)) = pending.pop() {
            vars.retain(|v| self.positions.live[at].contains(&v.0));
            vars.sort_unstable();
            if seen.contains(&(at, vars.clone())) {
                continue;
            }
            seen.push((at, vars.clone()));
            match self.positions.all[at].clone() {
                Position::True => {}
                Position::False => return Err(Stop::Refuted),
                Position::All(next) => pending.extend(next.iter().map(|n| (*n, vars.clone()))),
                Position::Test(_, expected, _) => {
                    if self.tests(at, &vars)?.contains(&!expected) {
                        return Err(Stop::Refuted);
                    }
                }
                Position::Unless(_, expected, _, other) => {
                    if self.tests(at, &vars)?.contains(&!expected) {
                        pending.push((other, vars));
                    }
                }
                Position::Forall(var, next, _) => {
                    for e in self.choices(var)? {
                        let mut vars = vars.clone();
                        vars.retain(|v| v.0 != var);
                        vars.push((var, self.values.id(e).0));
                        pending.push((next, vars));
                    }
                }
                Position::Assign(set, next) => {
                    for vars in self.values_after(at, &set, &vars)? {
                        pending.push((next, vars));
                    }
                }
                Position::Box(_, next) if through => pending.push((next, vars)),
                Position::Box(..) => {
                    let key = (at, vars);
                    let new = self.all_modalities.len() as u32;
                    let id = *self.modalities.entry(key.clone()).or_insert(new);
                    if id == new {
                        self.all_modalities.push(key);
                    }
                    out.push(id);
                }
                Position::Any(_) | Position::Exists(..) => {
                    return Err(fails("the formula leaves choices to a strategy").into());
                }
            }
        }
        Ok(self.set(out))
    }

    /// Returns the values that a `forall` chooses.
    fn choices(&mut self, var: VarId) -> Result<Vec<Abstract>, Stop> {
        if let Some(base) = self.quantified.get(&var) {
            let e = self.cuts.base(&self.by, *base)?;
            return Ok(vec![Abstract { e, cells: Vec::new() }]);
        }
        if let Some(e) = self.assigned.get(&var) {
            return Ok(vec![Abstract { e: e.clone(), cells: Vec::new() }]);
        }
        let sort = self.by.signature.var(var).sort;
        let Some(all) = self.by.naive.elements(sort) else {
            return Err(fails("a `forall` over values of any size").into());
        };
        Ok(all.into_iter().map(|e| Abstract { e, cells: Vec::new() }).collect())
    }

    /// Returns an evaluation over the values of the formula's variables.
    fn evaluation_over(&self, vars: &[(VarId, u32)]) -> Result<(Open, Values), Diagnostic> {
        let given: Vec<&Abstract> = vars.iter().map(|v| &self.values.all[v.1 as usize]).collect();
        let mut open = self.evaluation(&given)?;
        let mut values = self.constants()?;
        let terms = std::mem::take(&mut open.terms);
        vars.iter().zip(terms).for_each(|(v, e)| values.insert(v.0, e));
        Ok((open, values))
    }

    /// Returns the possible results of a test.
    fn tests(&mut self, at: usize, vars: &[(VarId, u32)]) -> Result<Vec<bool>, Stop> {
        let test = self.terms.get(&(at, 0)).cloned();
        let test = test.ok_or_else(|| Diagnostic::internal("a test has no term"))?;
        let (Open { mut cases, numbers, identities, .. }, values) = self.evaluation_over(vars)?;
        let mut out = Vec::new();
        while cases.begin(&self.by, &numbers)? {
            let values = self.with_identities(&values, &identities)?;
            out.push(self.by.holds(&test, &values)?);
            self.found.formula += 1;
            self.end(&mut cases, false)?;
        }
        Ok(out)
    }

    /// Returns the possible values of variables after an assignment.
    fn values_after(
        &mut self,
        at: usize,
        set: &[(VarId, Expr)],
        vars: &[(VarId, u32)],
    ) -> Result<Vec<Vec<(VarId, u32)>>, Stop> {
        let Position::Assign(_, next) = self.positions.all[at] else { return Ok(Vec::new()) };
        let (Open { mut cases, numbers, identities, .. }, values) = self.evaluation_over(vars)?;
        let mut out: Vec<Vec<(VarId, u32)>> = Vec::new();
        while cases.begin(&self.by, &numbers)? {
            let values = self.with_identities(&values, &identities)?;
            let mut new = vars.to_vec();
            for (i, (v, _)) in set.iter().enumerate() {
                let Some(term) = self.terms.get(&(at, i)).cloned() else { continue };
                if !self.positions.live[next].contains(v) {
                    continue;
                }
                let e = self.by.value(&term, &values)?;
                let value = self.cuts.lift(&mut self.by, &e, place(*v))?;
                new.retain(|w| w.0 != *v);
                new.push((*v, self.values.id(value).0));
            }
            self.end(&mut cases, false)?;
            new.sort_unstable();
            if !out.contains(&new) {
                out.push(new);
            }
        }
        Ok(out)
    }
}
