//! Verification of an answer without a certificate: a proof of its own, by cells of numbers.
//!
//! In: a [`Question`]. Out: the numbers of checks ([`Verified`]), or the reason why the formula is
//! not confirmed. An abstract state has a value for each parameter, in which numbers are known by
//! their cells ([`super::cells`]). The steps of a summand depend only on the parameters that it
//! reads; they are evaluated once for these values, by the naive rewriter, in each case of the
//! numbers (*consecution*). The product of states with the positions of the formula is explored as
//! a graph: each state with the set of modalities that must hold of it. No position may be false
//! (*formula*), and the first states are covered (*initiation*).
//!
//! Cuts are not given: a comparison that a failed exploration has met becomes a cut, first those of
//! the formula, then those of the process. The bases have one order in a *case*; where an
//! evaluation distinguishes orders of bases, the case is divided, so all orders are covered.
//!
//! Each `forall` over numbers has one value in a case, a base. A violation is finite (there are no
//! least fixed points), and it chooses the value once (no quantifier is below a recursion that it
//! is in), so it is one for that value of the base. Supported are formulas without choices of the
//! prover. Neither the regions nor the paths of the search take part. Cost: an evaluation for each
//! summand and values that it reads; a pass over states and their sets of modalities.

use super::cells::{Abstract, Cuts, Table};
use super::evaluate::{Cases, Evaluator, MAX_NUMBERS, Term, Values, fails, number_variables};
use super::numbers::{Case, Constraint};
use super::states::States;
use super::{Verified, terms};
use crate::obligations::Question;
use crate::positions::{Position, Positions};
use ahash::AHashMap;
use mu_base::ids::VarId;
use mu_base::random::Random;
use mu_base::{Diagnostic, Span};
use mu_data::builtins::linear::least;
use mu_data::engine::Program;
use mu_data::expr::{DataSpec, Expr, ExprKind, Substitution};
use mu_data::sort::SortKind;
use mu_process::linear::ParamRole;
use std::collections::VecDeque;
use std::rc::Rc;

/// Number and length of random walks that look for cuts.
const WALKS: usize = 200;
const WALK_LENGTH: usize = 60;
/// Every walk of this number is longer by this factor.
const LONG: usize = 10;
/// Walks without anything new that end them.
const IDLE: usize = 40;
/// Limit on repetitions of the walks.
const MAX_WALKS: usize = 12;
/// Limit on explorations after which comparisons of the process become cuts.
const MAX_REFINED: u32 = 3;
/// Limit on explorations.
const MAX_ROUNDS: usize = 60;
/// Limit on cases of the order of the bases.
const MAX_CASES: usize = 200;
/// Limit on abstract states.
const MAX_STATES: usize = 6_000_000;

/// Reason why an exploration ends early.
enum Stop {
    /// A violation is reachable in the abstraction.
    Refuted,
    /// The constraint on bases is not decided.
    Divide(Constraint),
    /// A place has become vague.
    Again,
    /// Anything else.
    Failed(Diagnostic),
}

impl From<Diagnostic> for Stop {
    fn from(why: Diagnostic) -> Self {
        Self::Failed(why)
    }
}

/// A step of a summand: the number of its label, and the new values of parameters.
type Answer = (u32, Vec<(u16, u16)>);
/// Values of parameters.
type State = Vec<u16>;

/// A modality that must hold: its position, and the values of its variables.
type Modality = (usize, Vec<(VarId, u32)>);

/// The parameters that a summand reads.
struct Group {
    reads: Vec<usize>,
    /// Steps by the values that the summand reads: up to eight in one number.
    answers: AHashMap<u128, Rc<[Answer]>>,
    others: AHashMap<State, Rc<[Answer]>>,
}

impl Group {
    /// Returns the values that the summand reads, as one number if there are few.
    fn key(&self, state: &[u16]) -> Option<u128> {
        let small = self.reads.len() <= 8;
        small.then(|| self.reads.iter().fold(0, |key, r| key << 16 | u128::from(state[*r])))
    }

    fn read(&self, state: &[u16]) -> State {
        self.reads.iter().map(|r| state[*r]).collect()
    }

    fn known(&self, state: &[u16]) -> Option<Rc<[Answer]>> {
        match self.key(state) {
            Some(key) => self.answers.get(&key).cloned(),
            None => self.others.get(&self.read(state)).cloned(),
        }
    }
}

struct Product<'a> {
    question: &'a Question<'a>,
    positions: &'a Positions,
    terms: AHashMap<(usize, usize), Term>,
    by: Evaluator<'a>,
    cuts: Cuts,
    /// For each parameter its base, if it has one.
    base_of: AHashMap<usize, usize>,
    /// Base of each quantified number.
    quantified: AHashMap<VarId, usize>,
    /// Constraints on the bases.
    order: Vec<Constraint>,
    groups: Vec<Group>,
    tables: Vec<Table>,
    /// For each parameter and value, the summands that it does not exclude.
    possible: Vec<Vec<Vec<u64>>>,
    /// Values of the formula's variables.
    values: Table,
    labels: AHashMap<(usize, Vec<Abstract>), u32>,
    all_labels: Vec<(usize, Vec<Abstract>)>,
    modalities: AHashMap<Modality, u32>,
    all_modalities: Vec<Modality>,
    sets: AHashMap<Vec<u32>, u32>,
    all_sets: Vec<Vec<u32>>,
    unions: AHashMap<(u32, u32), u32>,
    next: AHashMap<(u32, u32), u32>,
    matches: AHashMap<(u32, u32), bool>,
    /// Cuts that comparisons suggest: of the formula, of the process.
    met: [Vec<(usize, i64)>; 2],
    /// Comparisons of bases that the process makes.
    splits: Vec<Constraint>,
    /// True during random walks, which no result depends on.
    walking: bool,
    /// True after the walks: what they miss, an exploration finds.
    walked: bool,
    found: Verified,
    enough: &'a dyn Fn() -> bool,
}

/// Proves by cells that a formula holds for all values. `enough`: true when the time is used up.
///
/// # Errors
///
/// The reason why the formula is not confirmed, or a limit of the run.
pub fn confirm(question: &Question, enough: &dyn Fn() -> bool) -> Result<Verified, Diagnostic> {
    let Question { process, formula, .. } = question;
    let mut signature = formula.data.signature.clone();
    let positions = Positions::new(process, &mut signature, question.constants, &formula.formula)?;
    if positions.chooses {
        return Err(fails("the formula leaves choices to a strategy"));
    }
    if positions.priorities.iter().any(|p| p % 2 == 1) {
        return Err(fails("the formula has a least fixed point"));
    }
    let pool = number_variables(&mut signature);
    let data = DataSpec { signature, equations: formula.data.equations.clone() };
    let program = Program::compile(&data)?;
    let data = DataSpec { signature: program.signature().clone(), ..data };
    let by = Evaluator::new(process, &data, &pool, question.budget);
    let mut cuts = Cuts::default();
    let mut base_of = AHashMap::new();
    for (at, _) in question.symbolic {
        let var = process.params[*at].var;
        cuts.bases.push(data.signature.var(var).sort);
        base_of.insert(*at, cuts.bases.len());
        cuts.fixed.insert(place(var));
    }
    let mut quantified = AHashMap::new();
    for (at, position) in positions.all.iter().enumerate() {
        let Position::Forall(var, after, _) = position else { continue };
        let sort = data.signature.var(*var).sort;
        if !matches!(data.signature.sorts.kind(sort), SortKind::Pos | SortKind::Nat | SortKind::Int)
        {
            continue;
        }
        if reaches(&positions, *after, at) {
            return Err(fails("a quantifier over numbers is below its own recursion"));
        }
        cuts.bases.push(sort);
        quantified.insert(*var, cuts.bases.len());
        cuts.fixed.insert(place(*var));
    }
    for p in process.params.iter().filter(|p| matches!(p.role, ParamRole::Control(_))) {
        cuts.fixed.insert(place(p.var));
    }
    let groups = groups(question, &base_of);
    let mut product = Product {
        question,
        positions: &positions,
        terms: terms(&positions),
        by,
        cuts,
        base_of,
        quantified,
        order: Vec::new(),
        groups,
        tables: Vec::new(),
        possible: Vec::new(),
        values: Table::default(),
        labels: AHashMap::new(),
        all_labels: Vec::new(),
        modalities: AHashMap::new(),
        all_modalities: Vec::new(),
        sets: AHashMap::new(),
        all_sets: Vec::new(),
        unions: AHashMap::new(),
        next: AHashMap::new(),
        matches: AHashMap::new(),
        met: Default::default(),
        splits: Vec::new(),
        walking: false,
        walked: false,
        found: Verified::default(),
        enough,
    };
    product.cases()
}

/// Returns the place of a whole value of a variable.
fn place(var: VarId) -> u64 {
    (u64::from(var.number()) + 1).wrapping_mul(0xa076_1d64_78bd_642f)
}

/// True if a position is reachable from another one.
fn reaches(positions: &Positions, from: usize, to: usize) -> bool {
    let mut seen = vec![false; positions.all.len()];
    let mut pending = vec![from];
    while let Some(at) = pending.pop() {
        if at == to {
            return true;
        }
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        match &positions.all[at] {
            Position::True | Position::False | Position::Test(..) => {}
            Position::All(next) | Position::Any(next) => pending.extend(next),
            Position::Unless(_, _, _, next)
            | Position::Forall(_, next, _)
            | Position::Exists(_, next, _)
            | Position::Box(_, next)
            | Position::Assign(_, next) => pending.push(*next),
        }
    }
    false
}

/// Returns the parameters that each summand reads, those that never change excepted.
fn groups(question: &Question, base_of: &AHashMap<usize, usize>) -> Vec<Group> {
    let process = question.process;
    let of = |s: &mu_process::linear::Summand| {
        let mut free = Vec::new();
        s.guard.free_vars(&mut free);
        s.actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut free));
        s.updates.iter().for_each(|(_, e)| e.free_vars(&mut free));
        let reads = (0..process.params.len())
            .filter(|at| free.contains(&process.params[*at].var) && !base_of.contains_key(at));
        Group { reads: reads.collect(), answers: AHashMap::new(), others: AHashMap::new() }
    };
    process.summands.iter().map(of).collect()
}

impl Product<'_> {
    /// Explores all cases of the order of the bases.
    fn cases(&mut self) -> Result<Verified, Diagnostic> {
        let bases = self.cuts.bases.iter().enumerate();
        let first: Vec<Constraint> =
            bases.filter_map(|(i, sort)| Some((0, i + 1, -least(*sort)?))).collect();
        let own = self.question.symbolic.iter().enumerate().map(|(i, s)| (0, i + 1, -s.1));
        let mut cases = vec![first.into_iter().chain(own).collect::<Vec<Constraint>>()];
        let (mut rounds, mut divided) = (0, 1);
        let (mut guards, mut refined) = (false, 0);
        while let Some(order) = cases.pop() {
            rounds += 1;
            if rounds > MAX_ROUNDS + divided {
                return Err(fails("the cells of numbers are refined too often"));
            }
            let found = self.case(&order, guards);
            let split = match found {
                Ok(()) => continue,
                Err(Stop::Failed(why)) => return Err(why),
                Err(Stop::Divide(split)) => Some(split),
                Err(Stop::Again) => None,
                Err(Stop::Refuted) => {
                    refined += u32::from(guards);
                    let new = refined <= MAX_REFINED && self.refine(guards)?;
                    let split = if new { None } else { self.splits.pop() };
                    if !new && split.is_none() && guards {
                        return Err(fails("cells of numbers do not show the formula"));
                    }
                    guards |= !new && split.is_none();
                    split
                }
            };
            let Some((x, y, c)) = split else {
                cases.push(order);
                continue;
            };
            divided += 1;
            if divided > MAX_CASES {
                return Err(fails(format!("there are more than {MAX_CASES} orders")));
            }
            for more in [(x, y, c), (y, x, -c - 1)] {
                let order: Vec<Constraint> = order.iter().copied().chain([more]).collect();
                if Case::of(self.cuts.bases.len() + 1, &order).is_some() {
                    cases.push(order);
                }
            }
        }
        Ok(self.found)
    }

    /// Shows the formula in one case.
    fn case(&mut self, order: &[Constraint], guards: bool) -> Result<(), Stop> {
        self.begin(order.to_vec());
        self.splits.clear();
        // What no label can violate holds.
        match self.closure(self.positions.start, &[], true) {
            Ok(_) => return Ok(()),
            Err(Stop::Refuted) => {}
            Err(stop) => return Err(stop),
        }
        for seed in 0..MAX_WALKS {
            if self.walked {
                break;
            }
            self.walking = true;
            let found = self.walk(seed as u64);
            self.walking = false;
            let changed = std::mem::take(&mut self.cuts.changed);
            found?;
            let new = self.refine(guards)?;
            self.begin(order.to_vec());
            self.walked = !new && !changed || seed + 1 == MAX_WALKS;
        }
        self.explore()
    }

    /// Follows random runs: numbers get vague, and comparisons are met.
    fn walk(&mut self, seed: u64) -> Result<(), Stop> {
        let mut random = Random::new(seed);
        let start = match self.closure(self.positions.start, &[], false) {
            Err(Stop::Refuted) => 0,
            start => start?,
        };
        let mut idle = 0;
        for walk in 0..WALKS {
            let before = (self.cuts.vague(), self.met[0].len());
            idle += 1;
            if idle > IDLE {
                break;
            }
            let length = if walk % LONG == 0 { LONG * WALK_LENGTH } else { WALK_LENGTH };
            let first = self.initial()?;
            let (mut state, mut set) = (random.choose(&first).clone(), start);
            for _ in 0..length {
                let mut next = Vec::new();
                self.successors(&state, &mut |label, state| next.push((label, state.to_vec())))?;
                if next.is_empty() {
                    break;
                }
                let (label, target) = random.choose(&next).clone();
                set = match self.after(label, set) {
                    Err(Stop::Refuted) => start,
                    after => after?,
                };
                state = target;
            }
            if before != (self.cuts.vague(), self.met[0].len()) {
                idle = 0;
            }
            if (self.enough)() {
                return Err(fails("it takes longer than it may").into());
            }
        }
        Ok(())
    }

    /// Adds cuts. True if one is new.
    fn refine(&mut self, guards: bool) -> Result<bool, Diagnostic> {
        let mut new = false;
        let kinds = if guards { 2 } else { 1 };
        for kind in 0..kinds {
            for cut in std::mem::take(&mut self.met[kind]) {
                new |= self.cuts.add(cut)?;
            }
        }
        Ok(new)
    }

    /// Clears the tables for an exploration.
    fn begin(&mut self, order: Vec<Constraint>) {
        self.order = order;
        self.cuts.changed = false;
        let params = self.question.process.params.len();
        self.tables = (0..params).map(|_| Table::default()).collect();
        self.possible = vec![Vec::new(); params];
        for g in &mut self.groups {
            g.answers.clear();
            g.others.clear();
        }
        self.values = Table::default();
        self.labels.clear();
        self.all_labels.clear();
        self.modalities.clear();
        self.all_modalities.clear();
        self.sets.clear();
        self.all_sets.clear();
        self.unions.clear();
        self.next.clear();
        self.matches.clear();
        self.set(Vec::new());
    }

    /// Returns the number of a set of modalities; 0 is the empty one.
    fn set(&mut self, mut set: Vec<u32>) -> u32 {
        set.sort_unstable();
        set.dedup();
        if let Some(id) = self.sets.get(&set) {
            return *id;
        }
        let id = self.all_sets.len() as u32;
        self.sets.insert(set.clone(), id);
        self.all_sets.push(set);
        id
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(id) = self.unions.get(&key) {
            return *id;
        }
        let both = [&self.all_sets[a as usize][..], &self.all_sets[b as usize]].concat();
        let id = self.set(both);
        self.unions.insert(key, id);
        id
    }

    /// Starts an evaluation over these abstract values: the cases, the numbers, and the terms.
    fn evaluation(
        &self,
        given: &[&Abstract],
    ) -> Result<(Cases, Vec<VarId>, Vec<Expr>), Diagnostic> {
        let bases = self.cuts.bases.len();
        let mut vars = self.cuts.base_vars(&self.by);
        let mut constraints = self.order.clone();
        let mut terms = Vec::with_capacity(given.len());
        for value in given {
            let first = vars.len();
            let mut by = Substitution::new();
            for (i, cell) in value.cells.iter().enumerate() {
                let pool = self.by.pool.get(&cell.0);
                let var = |at: usize| pool.and_then(|all| all.get(at)).copied();
                let (Some(old), Some(new)) = (var(bases + i), var(first + i)) else {
                    return Err(fails("too many numbers"));
                };
                vars.push(new);
                self.cuts.constraints(first + i + 1, *cell, &mut constraints);
                if first != bases {
                    by.insert(old, Expr::new(ExprKind::Var(new), cell.0, Span::default()));
                }
            }
            terms.push(value.e.substitute(&by));
        }
        if vars.len() >= MAX_NUMBERS {
            return Err(fails("too many numbers"));
        }
        let case = Case::of(vars.len() + 1, &constraints);
        Ok((Cases::of(case), vars, terms))
    }

    /// Ends a case: keeps its comparisons.
    fn end(&mut self, cases: &mut Cases, of_process: bool) -> Result<(), Stop> {
        let bases = self.cuts.bases.len();
        for (x, y, c) in &self.by.numbers.case.borrow().atoms {
            let cut = match (*x <= bases, *y <= bases) {
                (true, true) => {
                    if !of_process && !self.walking {
                        return Err(Stop::Divide((*x, *y, *c)));
                    }
                    if of_process && !self.splits.contains(&(*x, *y, *c)) {
                        self.splits.push((*x, *y, *c));
                    }
                    continue;
                }
                (false, true) => (*y, *c),
                // y >= x - c
                (true, false) => match c.checked_neg().and_then(|c| c.checked_sub(1)) {
                    Some(c) => (*x, c),
                    None => continue,
                },
                _ => continue,
            };
            let met = &mut self.met[usize::from(of_process)];
            if !met.contains(&cut) {
                met.push(cut);
            }
        }
        cases.end(&self.by);
        if self.cuts.changed && !self.walking { Err(Stop::Again) } else { Ok(()) }
    }

    /// Returns the values of the parameters without a value.
    fn constants(&self) -> Result<Values, Diagnostic> {
        let mut values = Values::default();
        for (at, base) in &self.base_of {
            values.insert(self.question.process.params[*at].var, self.cuts.base(&self.by, *base)?);
        }
        Ok(values)
    }

    /// Explores all states of a case.
    fn explore(&mut self) -> Result<(), Stop> {
        let start = self.closure(self.positions.start, &[], false)?;
        let mut states = States::new(self.question.process.params.len());
        // For each state: the set of modalities, and the steps once they are known.
        let mut sets: Vec<u32> = Vec::new();
        let mut steps: Vec<Option<(u32, u32)>> = Vec::new();
        let mut all_steps: Vec<(u32, u32)> = Vec::new();
        let mut queue = VecDeque::new();
        let mut queued: Vec<bool> = Vec::new();
        for state in self.initial()? {
            let at = states.id(&state) as usize;
            if at == sets.len() {
                sets.push(start);
                steps.push(None);
                queued.push(true);
                queue.push_back(at);
            }
            self.found.initiation += 1;
        }
        let (mut count, mut state) = (0u64, State::new());
        while let Some(at) = queue.pop_front() {
            queued[at] = false;
            count += 1;
            if count.is_multiple_of(1024) {
                self.question.budget.check(states.len() as u64).map_err(Diagnostic::stopped)?;
                if (self.enough)() {
                    let (all, steps) = (states.len(), self.found.consecution);
                    let text = "it takes longer than it may";
                    return Err(fails(format!("{text}: {all} states, {steps} steps")).into());
                }
            }
            let (from, to) = match steps[at] {
                Some(range) => range,
                None => {
                    let from = all_steps.len() as u32;
                    states.copy(at, &mut state);
                    self.successors(&state, &mut |label, next| {
                        all_steps.push((label, states.id(next)));
                    })?;
                    let range = (from, all_steps.len() as u32);
                    steps[at] = Some(range);
                    let new = states.len();
                    if new > MAX_STATES {
                        return Err(
                            fails(format!("there are more than {MAX_STATES} states")).into()
                        );
                    }
                    sets.resize(new, 0);
                    steps.resize(new, None);
                    queued.resize(new, false);
                    range
                }
            };
            for i in from..to {
                let (label, target) = all_steps[i as usize];
                let after = match self.next.get(&(label, sets[at])) {
                    Some(after) => *after,
                    None => self.after(label, sets[at])?,
                };
                if after == 0 {
                    continue;
                }
                let target = target as usize;
                let set = self.union(sets[target], after);
                if set != sets[target] {
                    sets[target] = set;
                    if !std::mem::replace(&mut queued[target], true) {
                        queue.push_back(target);
                    }
                }
            }
        }
        let sizes = sets.iter().map(|s| self.all_sets[*s as usize].len());
        self.found.obligations += sizes.sum::<usize>();
        Ok(())
    }

    /// Returns the first states.
    fn initial(&mut self) -> Result<Vec<State>, Stop> {
        let process = self.question.process;
        let (mut cases, vars, _) = self.evaluation(&[])?;
        let given = self.constants()?;
        let mut out = Vec::new();
        while cases.begin(&self.by, &vars)? {
            let mut state = Vec::new();
            for (i, p) in process.params.iter().enumerate() {
                let e = match given.get(p.var) {
                    Some(e) => e.clone(),
                    None => {
                        let own =
                            self.question.initial.iter().find(|(at, _)| *at == i).map(|(_, e)| e);
                        self.by.normal(&own.unwrap_or(&p.init).substitute(&given.by))?
                    }
                };
                state.push(self.value(i, &e)?);
            }
            self.end(&mut cases, true)?;
            out.push(state);
        }
        Ok(out)
    }

    /// Returns the number of a value of a parameter.
    fn value(&mut self, param: usize, e: &Expr) -> Result<u16, Diagnostic> {
        let var = self.question.process.params[param].var;
        let value = self.cuts.lift(&self.by, e, place(var))?;
        let (id, new) = self.tables[param].id(value);
        if new {
            let count = self.groups.len();
            let mut possible = vec![u64::MAX; count.div_ceil(64)];
            let own = self.tables[param].all[id as usize].clone();
            if own.cells.is_empty() && own.e.is_closed() && !self.base_of.contains_key(&param) {
                let mut values = Values::default();
                values.insert(var, own.e);
                for g in 0..count {
                    if self.groups[g].reads.contains(&param) && self.by.is_disabled(g, &values)? {
                        possible[g / 64] &= !(1 << (g % 64));
                    }
                }
            }
            self.possible[param].push(possible);
        }
        u16::try_from(id).map_err(|_| fails("a parameter has more than 65,536 values"))
    }

    /// Calls `see` with each step of a state: the label and the next state.
    fn successors(&mut self, state: &[u16], see: &mut dyn FnMut(u32, &[u16])) -> Result<(), Stop> {
        let mut next = state.to_vec();
        let words = self.groups.len().div_ceil(64);
        for word in 0..words {
            let mut left = u64::MAX;
            for (param, id) in state.iter().enumerate() {
                left &= self.possible[param][usize::from(*id)][word];
            }
            while left != 0 {
                let g = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if g >= self.groups.len() {
                    break;
                }
                let answers = match self.groups[g].known(state) {
                    Some(answers) => answers,
                    None => self.answers(g, state)?,
                };
                for (label, written) in answers.iter() {
                    written.iter().for_each(|(param, id)| next[usize::from(*param)] = *id);
                    see(*label, &next);
                    for (param, _) in written {
                        next[usize::from(*param)] = state[usize::from(*param)];
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores the steps of a summand.
    fn store(&mut self, g: usize, state: &[u16], steps: Vec<Answer>) -> Rc<[Answer]> {
        let steps: Rc<[Answer]> = steps.into();
        let group = &mut self.groups[g];
        match group.key(state) {
            Some(key) => group.answers.insert(key, steps.clone()),
            None => group.others.insert(group.read(state), steps.clone()),
        };
        steps
    }

    /// Evaluates the steps of a summand for the values that it reads.
    fn answers(&mut self, g: usize, state: &[u16]) -> Result<Rc<[Answer]>, Stop> {
        let process = self.question.process;
        let reads = self.groups[g].reads.clone();
        let given: Vec<&Abstract> =
            reads.iter().map(|r| &self.tables[*r].all[usize::from(state[*r])]).collect();
        let (mut cases, vars, terms) = self.evaluation(&given)?;
        let mut written = self.constants()?;
        let mut foreign = Vec::new();
        for (r, e) in reads.iter().zip(terms) {
            let var = process.params[*r].var;
            if !self.by.is_plain(&e) && !e.is_closed() {
                foreign.push((var, e.clone()));
            }
            written.insert(var, e);
        }
        let mut out: Vec<Answer> = Vec::new();
        let summands = self.by.summands.clone();
        if foreign.is_empty() && self.by.is_disabled(g, &written)? {
            return Ok(self.store(g, state, out));
        }
        while cases.begin(&self.by, &vars)? {
            let mut values = written.clone();
            for (v, e) in &foreign {
                values.insert(*v, self.by.normal(e)?);
            }
            if let Some(values) = self.by.step(g, &values)? {
                let mut label = Vec::new();
                for (v, term) in self.positions.arguments[g].iter().zip(&summands[g].arguments) {
                    let e = self.by.value(term, &values)?;
                    label.push(self.cuts.lift(&self.by, &e, place(*v))?);
                }
                let mut changes = Vec::new();
                for ((param, _), (_, term)) in
                    process.summands[g].updates.iter().zip(&summands[g].updates)
                {
                    let e = self.by.value(term, &values)?;
                    changes.push((*param as u16, self.value(*param, &e)?));
                }
                let label = self.label(g, label);
                if !out.iter().any(|o| o.0 == label && o.1 == changes) {
                    out.push((label, changes));
                }
                self.found.consecution += 1;
            }
            self.end(&mut cases, true)?;
        }
        Ok(self.store(g, state, out))
    }

    fn label(&mut self, summand: usize, args: Vec<Abstract>) -> u32 {
        let key = (summand, args);
        if let Some(id) = self.labels.get(&key) {
            return *id;
        }
        let id = self.all_labels.len() as u32;
        self.labels.insert(key.clone(), id);
        self.all_labels.push(key);
        id
    }

    /// Returns the modalities after a label.
    fn after(&mut self, label: u32, set: u32) -> Result<u32, Stop> {
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
        let Some(condition) = self.terms.get(&(position, summand)).cloned() else {
            return Ok(false);
        };
        let mut names: Vec<VarId> = self.positions.arguments[summand].clone();
        names.extend(vars.iter().map(|v| v.0));
        let own = vars.iter().map(|v| &self.values.all[v.1 as usize]);
        let given: Vec<&Abstract> = args.iter().chain(own).collect();
        let (mut cases, numbers, terms) = self.evaluation(&given)?;
        let mut values = self.constants()?;
        names.into_iter().zip(terms).for_each(|(v, e)| values.insert(v, e));
        let mut found = false;
        while cases.begin(&self.by, &numbers)? {
            found |= self.by.holds(&condition, &values)?;
            self.found.formula += 1;
            self.end(&mut cases, false)?;
        }
        Ok(found)
    }

    /// Returns the set of modalities that must hold at a position. `through`: also after any
    /// labels.
    fn closure(
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
                    for vars in self.assigned(at, &set, &vars)? {
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
        let sort = self.by.signature.var(var).sort;
        let Some(all) = self.by.naive.elements(sort) else {
            return Err(fails("a `forall` over values of any size").into());
        };
        Ok(all.into_iter().map(|e| Abstract { e, cells: Vec::new() }).collect())
    }

    /// Returns an evaluation over the values of the formula's variables.
    fn over(&self, vars: &[(VarId, u32)]) -> Result<(Cases, Vec<VarId>, Values), Diagnostic> {
        let given: Vec<&Abstract> = vars.iter().map(|v| &self.values.all[v.1 as usize]).collect();
        let (cases, numbers, terms) = self.evaluation(&given)?;
        let mut values = self.constants()?;
        vars.iter().zip(terms).for_each(|(v, e)| values.insert(v.0, e));
        Ok((cases, numbers, values))
    }

    /// Returns the possible results of a test.
    fn tests(&mut self, at: usize, vars: &[(VarId, u32)]) -> Result<Vec<bool>, Stop> {
        let test = self.terms.get(&(at, 0)).cloned();
        let test = test.ok_or_else(|| Diagnostic::internal("a test has no term"))?;
        let (mut cases, numbers, values) = self.over(vars)?;
        let mut out = Vec::new();
        while cases.begin(&self.by, &numbers)? {
            out.push(self.by.holds(&test, &values)?);
            self.found.formula += 1;
            self.end(&mut cases, false)?;
        }
        Ok(out)
    }

    /// Returns the possible values of variables after an assignment.
    fn assigned(
        &mut self,
        at: usize,
        set: &[(VarId, Expr)],
        vars: &[(VarId, u32)],
    ) -> Result<Vec<Vec<(VarId, u32)>>, Stop> {
        let Position::Assign(_, next) = self.positions.all[at] else { return Ok(Vec::new()) };
        let (mut cases, numbers, values) = self.over(vars)?;
        let mut out: Vec<Vec<(VarId, u32)>> = Vec::new();
        while cases.begin(&self.by, &numbers)? {
            let mut new = vars.to_vec();
            for (i, (v, _)) in set.iter().enumerate() {
                let Some(term) = self.terms.get(&(at, i)).cloned() else { continue };
                if !self.positions.live[next].contains(v) {
                    continue;
                }
                let e = self.by.value(&term, &values)?;
                let value = self.cuts.lift(&self.by, &e, place(*v))?;
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
