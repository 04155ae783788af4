//! Check of certificates: that the obligations of a file are an inductive invariant.
//!
//! In: the process and the formula of a [`Question`], a [`Certificate`]. Out: the numbers of checks
//! of each kind ([`Verified`]), or the obligation that fails. Checked are *initiation* (the first
//! obligations are covered), *consecution* (each successor of an obligation by a step is covered),
//! and the *formula* (tests hold, other successors are covered, no violation is among them, and no
//! cycle of obligations passes through a least fixed point as the outermost one). The terms are
//! evaluated by the naive rewriter (`data::naive`) from the linear process, summand by summand;
//! comparisons of numbers are decided by shortest paths over the constraints (Floyd, Warshall).
//! Neither the engine, nor the matrices, the paths, and the exploration of the search take part;
//! the positions of the formula are shared. What the rewriter does not decide makes the check fail.
//! Cost: naive evaluations for each obligation.

mod assignments;
mod atoms;
mod cells;
mod cover;
mod evaluate;
mod identities;
mod late;
mod letters;
mod merged;
mod modalities;
mod numbers;
mod pairs;
mod product;
mod relations;
mod states;

use crate::certificate::{Certificate, Obligation};
use crate::obligations::Question;
use crate::positions::{Position, Positions};
use ahash::{AHashMap, AHashSet};
use cover::{Index, index_obligations};
use evaluate::{Cases, Evaluator, Term, Values, fails, number_variables, wrong};
use mu_base::ids::{SortId, VarId};
use mu_base::{Diagnostic, Span};
use mu_data::builtins::linear::least;
use mu_data::engine::Program;
use mu_data::expr::{DataSpec, Expr, ExprKind};
use numbers::{Case, Constraint};

pub use evaluate::{MAX_NUMBERS, equation_value};
pub use identities::Identities;
pub use merged::AnySize;
pub use product::confirm;

/// Numbers of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Obligations of the certificate.
    pub obligations: usize,
    /// Checks that a first obligation is covered.
    pub initiation: usize,
    /// Checks that an obligation after a step is covered.
    pub consecution: usize,
    /// Checks of tests, and that other successors are covered.
    pub formula: usize,
}

/// Checker of one certificate.
struct Checker<'a> {
    question: &'a Question<'a>,
    positions: &'a Positions,
    certificate: &'a Certificate,
    by: Evaluator<'a>,
    /// The number that each variable stands for.
    place_of: AHashMap<VarId, usize>,
    at: Index,
    /// For each obligation those that cover its successors.
    edges: Vec<AHashSet<usize>>,
    /// Terms of the formula: tests and assigned values by position, conditions of labels by
    /// position and summand.
    terms: AHashMap<(usize, usize), Term>,
    found: Verified,
}

/// Checks the text of a certificate.
///
/// # Errors
///
/// Of stage `File`: the text is not a certificate. Of stage `Formula`: the certificate does not
/// prove the formula, with the obligation. Of stage `Unsupported`: the rewriter does not decide a
/// part, with the obligation. A limit of the run.
pub fn verify(question: &Question, text: &str) -> Result<Verified, Diagnostic> {
    let Question { process, formula, .. } = question;
    let mut signature = formula.data.signature.clone();
    let positions = Positions::new(process, &mut signature, question.constants, formula)?;
    let pool = number_variables(&mut signature);
    // All operations that values need.
    let data = DataSpec { signature, equations: formula.data.equations.clone() };
    let program = Program::compile(&data)?;
    let mut data = DataSpec { signature: program.signature().clone(), ..data };
    let signature = data.signature.clone();
    let sorts = |position: usize| {
        let live = positions.live.get(position)?.iter().copied();
        let vars = process.params.iter().map(|p| p.var).chain(live);
        Some(vars.map(|v| signature.var(v).sort).collect())
    };
    let certificate = Certificate::read(text, &mut data, &pool, &sorts, question.budget)?;
    let place_of = pool.values().flat_map(|all| all.iter().enumerate().map(|(i, v)| (*v, i)));
    let count = certificate.obligations.len();
    let mut checker = Checker {
        question,
        positions: &positions,
        certificate: &certificate,
        place_of: place_of.collect(),
        at: index_obligations(&data.signature, &certificate.obligations),
        edges: vec![AHashSet::new(); count],
        terms: terms(&positions),
        by: Evaluator::new(process, &data, &pool, question.budget),
        found: Verified { obligations: count, ..Verified::default() },
    };
    checker.initiation()?;
    for (i, o) in certificate.obligations.iter().enumerate() {
        question.budget.check(0).map_err(Diagnostic::stopped)?;
        if i % 64 == 0 {
            question.budget.check_memory().map_err(Diagnostic::stopped)?;
        }
        let place = |why: Diagnostic| {
            let (at, position) = (i + 1, o.position);
            why.note(format!("obligation {at} of the certificate, at position {position}"))
        };
        checker.obligation(i).map_err(place)?;
    }
    checker.fixed_points()?;
    Ok(checker.found)
}

/// Returns the terms of the formula.
fn terms(positions: &Positions) -> AHashMap<(usize, usize), Term> {
    let mut out = AHashMap::new();
    for (at, position) in positions.all.iter().enumerate() {
        match position {
            Position::Test(e, ..) | Position::Unless(e, ..) => {
                out.insert((at, 0), Term::new(e));
            }
            Position::Assign(set, _) => {
                out.extend(set.iter().enumerate().map(|(i, (_, e))| ((at, i), Term::new(e))));
            }
            Position::Box(conditions, _) => {
                let given = conditions.iter().enumerate();
                let given = given.filter_map(|(i, c)| Some(((at, i), Term::new(c.as_ref()?))));
                out.extend(given);
            }
            _ => {}
        }
    }
    out
}

impl Checker<'_> {
    /// Checks that the first obligations are covered.
    fn initiation(&mut self) -> Result<(), Diagnostic> {
        let question = self.question;
        let process = question.process;
        let symbolic: Vec<VarId> =
            question.symbolic.iter().map(|(at, _)| process.params[*at].var).collect();
        let sorts: Vec<SortId> = symbolic.iter().map(|v| self.by.signature.var(*v).sort).collect();
        let bounds: Vec<Constraint> =
            question.symbolic.iter().enumerate().map(|(i, (_, low))| (0, i + 1, -low)).collect();
        let vars = self.number_variables(&sorts);
        let mut cases = Cases::of(start(&sorts, &bounds));
        while cases.begin(&self.by, &vars)? {
            let mut values = Values::default();
            for ((p, v), sort) in symbolic.iter().zip(&vars).zip(&sorts) {
                values.insert(*p, Expr::new(ExprKind::Var(*v), *sort, Span::default()));
            }
            let given = values.by.clone();
            for (i, p) in process.params.iter().enumerate() {
                if !given.contains_key(&p.var) {
                    let own = question.initial.iter().find(|(at, _)| *at == i).map(|(_, e)| e);
                    let e = self.by.normal(&own.unwrap_or(&p.init).substitute(&given))?;
                    values.insert(p.var, e);
                }
            }
            self.find_cover(self.positions.start, &values)?;
            self.found.initiation += 1;
            cases.end(&self.by);
        }
        Ok(())
    }

    /// Returns the variables of numbers of these sorts.
    fn number_variables(&self, sorts: &[SortId]) -> Vec<VarId> {
        let of = |(i, sort): (usize, &SortId)| {
            self.by.pool.get(sort).and_then(|all| all.get(i)).copied()
        };
        sorts.iter().enumerate().filter_map(of).collect()
    }

    /// Checks one obligation.
    fn obligation(&mut self, at: usize) -> Result<(), Diagnostic> {
        let certificate = self.certificate;
        let o = &certificate.obligations[at];
        let vars = self.number_variables(&o.sorts);
        if vars.len() != o.sorts.len() || vars.len() >= MAX_NUMBERS {
            return Err(fails("an obligation has too many numbers"));
        }
        let params = self.question.process.params.iter().map(|p| p.var);
        let live = self.positions.live[o.position].iter().copied();
        let names: Vec<VarId> = params.chain(live).collect();
        if names.len() != o.values.len() {
            return Err(wrong("an obligation has no value for some variable"));
        }
        let position = &self.positions.all[o.position];
        match position {
            Position::Any(next) => {
                let chosen = o.choice.filter(|c| next.contains(c));
                if chosen.is_none() {
                    return Err(wrong("an obligation has no choice"));
                }
            }
            Position::Exists(..) => {
                return Err(fails("a certificate does not show the values of an `exists`"));
            }
            Position::False => return Err(wrong("an obligation is a violation")),
            _ => {}
        }
        let mut written = Values::default();
        names.iter().zip(&o.values).for_each(|(v, e)| written.insert(*v, e.clone()));
        // Values are normal forms of the engine; those of the rewriter are its own.
        let foreign: Vec<(VarId, Term)> = names
            .iter()
            .zip(&o.values)
            .filter(|(_, e)| !self.by.is_plain(e))
            .map(|(v, e)| (*v, Term { e: e.clone(), free: Vec::new() }))
            .collect();
        let mut summands: Vec<Option<usize>> = vec![None];
        if let Position::Box(conditions, _) = position {
            summands =
                (0..conditions.len()).filter(|i| conditions[*i].is_some()).map(Some).collect();
        }
        let first = start(&o.sorts, &o.bounds);
        for summand in summands {
            if let Some(i) = summand
                && foreign.is_empty()
                && self.by.is_disabled(i, &written)?
            {
                continue;
            }
            let mut cases = Cases::of(first.as_ref().map(|case| case.with(Vec::new())));
            while cases.begin(&self.by, &vars)? {
                let mut values = written.clone();
                for (v, term) in &foreign {
                    values.insert(*v, self.by.normal(&term.e)?);
                }
                for (position, values) in self.successors(o, position, summand, &values)? {
                    let by = self.find_cover(position, &values)?;
                    self.edges[at].insert(by);
                    match summand {
                        Some(_) => self.found.consecution += 1,
                        None => self.found.formula += 1,
                    }
                }
                cases.end(&self.by);
            }
        }
        Ok(())
    }

    /// Returns the term of the formula at a position.
    fn term(&self, position: usize, i: usize) -> Result<Term, Diagnostic> {
        let found = self.terms.get(&(position, i)).cloned();
        found.ok_or_else(|| Diagnostic::internal("a position has no term"))
    }

    /// Returns the successors of an obligation in the current case.
    fn successors(
        &mut self,
        o: &Obligation,
        position: &Position,
        summand: Option<usize>,
        values: &Values,
    ) -> Result<Vec<(usize, Values)>, Diagnostic> {
        Ok(match position {
            Position::True => Vec::new(),
            Position::False | Position::Exists(..) => return Err(wrong("an obligation is open")),
            Position::Test(_, expected, _) => {
                let test = self.term(o.position, 0)?;
                if self.by.holds(&test, values)? != *expected {
                    return Err(wrong("a test of the formula fails"));
                }
                self.found.formula += 1;
                Vec::new()
            }
            Position::Unless(_, expected, _, other) => {
                let test = self.term(o.position, 0)?;
                match self.by.holds(&test, values)? == *expected {
                    true => Vec::new(),
                    false => vec![(*other, values.clone())],
                }
            }
            Position::All(next) => next.iter().map(|n| (*n, values.clone())).collect(),
            Position::Any(_) => o.choice.map(|next| (next, values.clone())).into_iter().collect(),
            Position::Forall(var, next, _) => {
                let sort = self.by.signature.var(*var).sort;
                let Some(e) = self.by.any_value(sort, 0)? else {
                    return Err(fails("a `forall` over values of any size"));
                };
                let mut values = values.clone();
                values.insert(*var, e);
                vec![(*next, values)]
            }
            Position::Assign(set, next) => {
                let mut new = values.clone();
                for (i, (v, _)) in set.iter().enumerate() {
                    if self.positions.live[*next].contains(v) {
                        let term = self.term(o.position, i)?;
                        new.insert(*v, self.by.value(&term, values)?);
                    }
                }
                vec![(*next, new)]
            }
            Position::Box(_, next) => {
                let Some(i) = summand else {
                    return Err(fails("a modality without a summand"));
                };
                let condition = self.term(o.position, i)?;
                let Some(values) = self.by.step(i, values.clone())? else { return Ok(Vec::new()) };
                let mut label = values.clone();
                let summands = self.by.summands.clone();
                for (v, term) in self.positions.arguments[i].iter().zip(&summands[i].arguments) {
                    if condition.free.contains(v) {
                        label.insert(*v, self.by.value(term, &values)?);
                    }
                }
                if !self.by.holds(&condition, &label)? {
                    return Ok(Vec::new());
                }
                let mut after = values.clone();
                for (v, term) in &summands[i].updates {
                    after.insert(*v, self.by.value(term, &values)?);
                }
                vec![(*next, after)]
            }
        })
    }

    /// Checks that no cycle of obligations has a least fixed point as its outermost one.
    fn fixed_points(&mut self) -> Result<(), Diagnostic> {
        let priority =
            |i: usize| self.positions.priorities[self.certificate.obligations[i].position];
        let mut odd: Vec<u32> =
            (0..self.edges.len()).map(priority).filter(|p| p % 2 == 1).collect();
        odd.sort_unstable();
        odd.dedup();
        for p in odd {
            // A cycle through obligations of at most this priority that passes one of it?
            let left: Vec<bool> = (0..self.edges.len()).map(|i| priority(i) <= p).collect();
            let component = components(&self.edges, &left);
            let cyclic = (0..self.edges.len()).filter(|i| priority(*i) == p).any(|i| {
                self.edges[i].iter().any(|next| left[*next] && component[*next] == component[i])
            });
            if cyclic {
                return Err(wrong("a least fixed point may be passed forever"));
            }
            self.found.formula += 1;
        }
        Ok(())
    }
}

/// Returns the constraints of an obligation, with the least values of the sorts.
fn start(sorts: &[SortId], bounds: &[Constraint]) -> Option<Case> {
    let own = sorts.iter().enumerate();
    let own = own.filter_map(|(i, sort)| Some((0, i + 1, -least(*sort)?)));
    let all: Vec<Constraint> = bounds.iter().copied().chain(own).collect();
    Case::of(sorts.len() + 1, &all)
}

/// Returns a number of the strongly connected component of each vertex, among those of `left`
/// (forward and backward search in the order of leaving: Kosaraju, Sharir).
fn components(edges: &[AHashSet<usize>], left: &[bool]) -> Vec<usize> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
    for (i, next) in edges.iter().enumerate().filter(|(i, _)| left[*i]) {
        next.iter().filter(|n| left[**n]).for_each(|n| before[*n].push(i));
    }
    let mut order = Vec::new();
    let mut seen = vec![false; edges.len()];
    for root in (0..edges.len()).filter(|i| left[*i]) {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut pending: Vec<(usize, Vec<usize>)> =
            vec![(root, edges[root].iter().copied().collect())];
        while let Some((at, rest)) = pending.last_mut() {
            match rest.pop() {
                Some(next) if left[next] && !std::mem::replace(&mut seen[next], true) => {
                    pending.push((next, edges[next].iter().copied().collect()));
                }
                Some(_) => {}
                None => {
                    order.push(*at);
                    pending.pop();
                }
            }
        }
    }
    let mut component = vec![usize::MAX; edges.len()];
    for root in order.into_iter().rev() {
        let mut pending = vec![root];
        while let Some(at) = pending.pop() {
            if component[at] == usize::MAX {
                component[at] = root;
                pending.extend(before[at].iter().filter(|b| component[**b] == usize::MAX));
            }
        }
    }
    component
}
