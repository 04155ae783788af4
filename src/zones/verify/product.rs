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

use super::atoms::Condition;
use super::cells::{Abstract, Cuts, Table};
use super::evaluate::{Cases, Evaluator, MAX_NUMBERS, Term, Values, fails, number_variables};
use super::identities::{CaseIdentities, Uses, eliminate_determined};
use super::late::choose_late;
use super::merged::{MergedSort, add_arrays};
use super::numbers::{Case, Constraint};
use super::states::States;
use super::{Verified, terms};
use crate::obligations::Question;
use crate::positions::{Position, Positions};
use ahash::AHashMap;
use mu_base::ids::{SortId, VarId};
use mu_base::random::Random;
use mu_base::{Diagnostic, Span};
use mu_data::builtins::linear::least;
use mu_data::engine::Program;
use mu_data::expr::{DataSpec, Expr, ExprKind, Substitution};
use mu_data::sort::{SortKind, basic};
use mu_process::linear::{LinearProcess, ParamRole};
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
pub(super) enum Stop {
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
pub(super) type Answer = (u32, Vec<(u16, u16)>);
/// Stands for an argument of a label that no condition reads.
pub(super) const UNHEARD: u32 = u32::MAX;

/// Values of parameters.
pub(super) type State = Vec<u16>;

/// A modality that must hold: its position, and the values of its variables.
pub(super) type Modality = (usize, Vec<(VarId, u32)>);

/// An evaluation over abstract values.
pub(super) struct Open {
    pub cases: Cases,
    /// The variables of the numbers.
    pub numbers: Vec<VarId>,
    pub terms: Vec<Expr>,
    /// The variables of untracked identities, with their kinds.
    pub identities: Vec<(VarId, u64)>,
}

/// The parameters that a summand reads.
pub(super) struct Group {
    pub reads: Vec<usize>,
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

    pub fn cached_answers(&self, state: &[u16]) -> Option<Rc<[Answer]>> {
        match self.key(state) {
            Some(key) => self.answers.get(&key).cloned(),
            None => self.others.get(&self.read(state)).cloned(),
        }
    }
}

pub(super) struct Product<'a> {
    pub question: &'a Question<'a>,
    pub positions: &'a Positions,
    pub terms: AHashMap<(usize, usize), Term>,
    pub by: Evaluator<'a>,
    pub cuts: Cuts,
    /// For each parameter its base, if it has one.
    pub base_of: AHashMap<usize, usize>,
    /// Base of each quantified number.
    pub quantified: AHashMap<VarId, usize>,
    /// Constraints on the bases.
    pub order: Vec<Constraint>,
    pub groups: Vec<Group>,
    pub tables: Vec<Table>,
    /// For each parameter and value, the summands that it does not exclude.
    pub possible: Vec<Vec<Vec<u64>>>,
    /// Values of the formula's variables.
    pub values: Table,
    /// Labels: a summand, and values of its arguments.
    pub labels: AHashMap<(usize, Vec<u32>), u32>,
    pub all_labels: Vec<(usize, Vec<u32>)>,
    /// For each summand and argument of its label whether a condition of the formula reads it.
    pub heard: Vec<Vec<bool>>,
    /// For each summand and argument of its label its place, the same for the same actions.
    pub argument_places: Vec<Vec<u64>>,
    /// Conditions of labels by position and summand.
    pub conditions: AHashMap<(usize, usize), Rc<Condition>>,
    /// Values of atoms for values without open numbers; `None` if the rewriter does not decide it.
    pub atoms: AHashMap<(u32, Vec<u32>), Option<bool>>,
    /// Values of conditions by their number, the values of atoms, and what the other atoms read.
    pub rests: AHashMap<Vec<u32>, bool>,
    pub modalities: AHashMap<Modality, u32>,
    pub all_modalities: Vec<Modality>,
    pub sets: AHashMap<Vec<u32>, u32>,
    pub all_sets: Vec<Vec<u32>>,
    pub unions: AHashMap<(u32, u32), u32>,
    pub next: AHashMap<(u32, u32), u32>,
    pub matches: AHashMap<(u32, u32), bool>,
    /// Cuts that comparisons suggest: of the formula, of the process.
    pub met: [Vec<(usize, i64)>; 2],
    /// Comparisons of bases that the process makes.
    pub splits: Vec<Constraint>,
    /// True during random walks, which no result depends on.
    pub walking: bool,
    /// True after the walks: what they miss, an exploration finds.
    pub walked: bool,
    /// True until the pairs of components do not show the formula.
    pub by_pairs: bool,
    /// The identities of the case, if there are components of any number.
    pub crowd: Option<Rc<CaseIdentities>>,
    /// Constant of each variable of the formula over identities.
    pub assigned: AHashMap<VarId, Expr>,
    /// For each parameter of the state those that it stands for.
    pub users: Vec<Vec<usize>>,
    /// For each summand, parts of its condition, and values of parameters: false if the part is.
    pub parts: AHashMap<(u32, u32, [u16; 3]), bool>,
    /// Values after updates that inspect a list: by summand, parameter, values that are read, and
    /// the number of identities that are named.
    pub known_words: AHashMap<(usize, usize, Vec<Expr>, usize), Vec<u16>>,
    /// For each summand the parts of its condition that read few parameters.
    pub few: Vec<Vec<(u32, Vec<usize>)>>,
    pub found: Verified,
    pub enough: &'a dyn Fn() -> bool,
}

/// Proves by cells that a formula holds for all values. `enough`: true when the time is used up.
///
/// # Errors
///
/// The reason why the formula is not confirmed, or a limit of the run.
pub fn confirm(question: &Question, enough: &dyn Fn() -> bool) -> Result<Verified, Diagnostic> {
    let Question { process, formula, .. } = question;
    let mut signature = formula.data.signature.clone();
    let mut positions = Positions::new(process, &mut signature, question.constants, formula)?;
    if positions.chooses {
        return Err(fails("the formula leaves choices to a strategy"));
    }
    if positions.priorities.iter().any(|p| p % 2 == 1) {
        return Err(fails("the formula has a least fixed point"));
    }
    choose_late(process, &mut signature, &mut positions);
    let mut pool = number_variables(&mut signature);
    if let Some(given) = question.identities {
        let own = crate::certificate::numbers(&mut signature, 2 * MAX_NUMBERS, given.sort);
        pool.insert(given.sort, own);
    }
    let sizes = question.sizes.iter();
    let merged: Vec<MergedSort> =
        sizes.map(|given| MergedSort::new(&signature, given)).collect::<Result<_, _>>()?;
    for own in &merged {
        let vars = crate::certificate::numbers(&mut signature, 2 * MAX_NUMBERS, own.sort);
        pool.insert(own.sort, vars);
    }
    add_arrays(&mut signature, &merged, 2 * MAX_NUMBERS, &mut pool);
    let mut terms = terms(&positions);
    for term in terms.values_mut() {
        *term = Term::new(&eliminate_determined(&mut signature, &term.e));
    }
    let data = DataSpec { signature, equations: formula.data.equations.clone() };
    let program = Program::compile(&data)?;
    let data = DataSpec { signature: program.signature().clone(), ..data };
    let by = Evaluator::new(process, &data, &pool, question.budget);
    by.numbers.merged.replace(merged);
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
    let few = (0..groups.len()).map(|g| few(process, &by, g, &base_of)).collect();
    let mut numbers = AHashMap::new();
    let mut conditions = AHashMap::new();
    let mut heard: Vec<Vec<bool>> =
        positions.arguments.iter().map(|all| vec![false; all.len()]).collect();
    for (at, position) in positions.all.iter().enumerate() {
        let Position::Box(summands, _) = position else { continue };
        for g in 0..summands.len() {
            let Some(term) = terms.get(&(at, g)) else { continue };
            for (v, heard) in positions.arguments[g].iter().zip(&mut heard[g]) {
                *heard |= term.free.contains(v);
            }
            let number = conditions.len() as u32;
            let condition = Condition::new(&data.signature, number, &term.e, &mut numbers);
            conditions.insert((at, g), Rc::new(condition));
        }
    }
    let mut product = Product {
        question,
        positions: &positions,
        terms,
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
        heard,
        argument_places: argument_places(process, &positions),
        conditions,
        atoms: AHashMap::new(),
        rests: AHashMap::new(),
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
        by_pairs: true,
        crowd: None,
        assigned: AHashMap::new(),
        users: (0..process.params.len()).map(|at| vec![at]).collect(),
        parts: AHashMap::new(),
        known_words: AHashMap::new(),
        few,
        found: Verified::default(),
        enough,
    };
    product.assignments(question.identities, &data)
}

/// Returns the parts of a summand's condition that read at most three parameters of the state, and
/// nothing else but those that never change.
fn few(
    process: &LinearProcess,
    by: &Evaluator,
    g: usize,
    base_of: &AHashMap<usize, usize>,
) -> Vec<(u32, Vec<usize>)> {
    let of = |var: &VarId| process.params.iter().position(|p| p.var == *var);
    let parts = (0u32..).zip(&by.summands[g].guard);
    let few = parts.filter_map(|(i, term)| {
        let mut free = term.free.clone();
        free.sort_unstable();
        free.dedup();
        let mut reads: Vec<usize> = free.iter().map(of).collect::<Option<_>>()?;
        reads.retain(|at| !base_of.contains_key(at));
        (reads.len() <= 3).then_some((i, reads))
    });
    few.collect()
}

/// Returns the place of a whole value of a variable.
pub(super) fn place(var: VarId) -> u64 {
    (u64::from(var.number()) + 1).wrapping_mul(0xa076_1d64_78bd_642f)
}

/// Returns the places of the arguments of labels: those of the first summand with these actions.
fn argument_places(process: &LinearProcess, positions: &Positions) -> Vec<Vec<u64>> {
    let actions = |g: usize| process.summands[g].actions.iter().map(|a| (a.action, a.args.len()));
    let mut first = AHashMap::new();
    let of = |g: usize| {
        let own = *first.entry(actions(g).collect::<Vec<_>>()).or_insert(g);
        positions.arguments[own].iter().map(|v| place(*v)).collect()
    };
    (0..process.summands.len()).map(of).collect()
}

/// True if a position is reachable from another one.
pub(super) fn reaches(positions: &Positions, from: usize, to: usize) -> bool {
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
    pub(super) fn cases(&mut self) -> Result<Verified, Diagnostic> {
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
                        if !self.by_pairs || self.crowd.is_some() {
                            return Err(fails("cells of numbers do not show the formula"));
                        }
                        // Three components may have to occur together.
                        (self.by_pairs, refined) = (false, 0);
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
            if self.walked || self.crowd.is_some() {
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
        if self.by_pairs
            && let Some(found) = self.pairs()
        {
            // A place that is vague by now has other values.
            return match found {
                Err(Stop::Refuted) if self.cuts.changed => {
                    self.refine(guards)?;
                    Err(Stop::Again)
                }
                found => found,
            };
        }
        if self.crowd.is_some() {
            return Err(fails("components of any number without parts").into());
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
                set = match self.modalities_after(label, set) {
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
        self.atoms.clear();
        self.rests.clear();
        self.modalities.clear();
        self.all_modalities.clear();
        self.sets.clear();
        self.all_sets.clear();
        self.unions.clear();
        self.next.clear();
        self.matches.clear();
        self.parts.clear();
        self.known_words.clear();
        self.set(Vec::new());
    }

    /// Returns the number of a set of modalities; 0 is the empty one.
    pub(super) fn set(&mut self, mut set: Vec<u32>) -> u32 {
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

    pub(super) fn union(&mut self, a: u32, b: u32) -> u32 {
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

    /// Starts an evaluation over these abstract values.
    pub(super) fn evaluation(&self, given: &[&Abstract]) -> Result<Open, Diagnostic> {
        let bases = self.cuts.bases.len();
        let mut numbers = self.cuts.base_vars(&self.by);
        let mut constraints = self.order.clone();
        let mut terms = Vec::with_capacity(given.len());
        let mut identities = Vec::new();
        let identity = self.crowd.as_ref().map(|crowd| crowd.sort);
        let merged = self.by.numbers.merged.borrow();
        let is_number = |s: SortId| [basic::POS, basic::NAT, basic::INT].contains(&s);
        for value in given {
            let mut by = Substitution::new();
            for (i, cell) in value.cells.iter().enumerate() {
                let pool = self.by.pool.get(&cell.0);
                let var = |at: usize| pool.and_then(|all| all.get(at)).copied();
                let own = identity == Some(cell.0) || !merged.is_empty() && !is_number(cell.0);
                let place = if own { identities.len() } else { numbers.len() };
                let (Some(old), Some(new)) = (var(bases + i), var(place)) else {
                    return Err(fails("too many numbers"));
                };
                if own {
                    identities.push((new, cell.1));
                } else {
                    numbers.push(new);
                    self.cuts.constraints(numbers.len(), *cell, &mut constraints);
                }
                if old != new {
                    by.insert(old, Expr::new(ExprKind::Var(new), cell.0, Span::default()));
                }
            }
            terms.push(value.e.substitute(&by));
        }
        if numbers.len() >= MAX_NUMBERS {
            return Err(fails("too many numbers"));
        }
        let case = Case::of(numbers.len() + 1, &constraints);
        Ok(Open { cases: Cases::of(case), numbers, terms, identities })
    }

    /// Ends a case: keeps its comparisons.
    pub(super) fn end(&mut self, cases: &mut Cases, of_process: bool) -> Result<(), Stop> {
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
        if self.cuts.changed && !self.walking && !self.by_pairs { Err(Stop::Again) } else { Ok(()) }
    }

    /// Returns the values of the parameters without a value.
    pub(super) fn constants(&self) -> Result<Values, Diagnostic> {
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
                    None => self.modalities_after(label, sets[at])?,
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
    pub(super) fn initial(&mut self) -> Result<Vec<State>, Stop> {
        let process = self.question.process;
        let Open { mut cases, numbers, .. } = self.evaluation(&[])?;
        let given = self.constants()?;
        let mut out = Vec::new();
        while cases.begin(&self.by, &numbers)? {
            let mut state = Vec::new();
            for (i, p) in process.params.iter().enumerate() {
                if self.users[i].is_empty() {
                    state.push(0);
                    continue;
                }
                if let Some(crowd) = self.crowd.clone().filter(|crowd| crowd.all == Some(i)) {
                    let word = self.list_of_all(&crowd)?;
                    state.push(self.intern(i, word)?);
                    continue;
                }
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
    pub(super) fn value(&mut self, param: usize, e: &Expr) -> Result<u16, Diagnostic> {
        let mut home = param;
        if let Some(crowd) = &self.crowd {
            home = crowd.canonical[param];
            self.cuts.own = crowd.participant[param].map(|k| crowd.tracked + k);
        }
        // Components of any number have the same places.
        let alike = self.crowd.as_ref().map_or(home, |crowd| crowd.alike[home]);
        let var = self.question.process.params[alike].var;
        self.cuts.words = true;
        let value = self.cuts.lift(&mut self.by, e, place(var));
        (self.cuts.own, self.cuts.words) = (None, false);
        self.intern(home, value?)
    }

    /// Returns the number of an abstract value of a parameter of the state.
    fn intern(&mut self, home: usize, value: Abstract) -> Result<u16, Diagnostic> {
        let (id, new) = self.tables[home].id(value);
        if new {
            let count = self.groups.len();
            let own = self.tables[home].all[id as usize].clone();
            for at in self.users[home].clone() {
                let mut possible = vec![u64::MAX; count.div_ceil(64)];
                if own.cells.is_empty() && own.e.is_closed() && !self.base_of.contains_key(&at) {
                    let mut values = Values::default();
                    values.insert(self.question.process.params[at].var, self.term_of(at, &own.e));
                    for g in 0..count {
                        if self.groups[g].reads.contains(&at) && self.by.is_disabled(g, &values)? {
                            possible[g / 64] &= !(1 << (g % 64));
                        }
                    }
                }
                self.possible[at].push(possible);
            }
        }
        u16::try_from(id).map_err(|_| fails("a parameter has more than 65,536 values"))
    }

    /// True if a part of a summand's condition is false for the values that it reads.
    pub(super) fn is_excluded(&mut self, g: usize, state: &[u16]) -> Result<bool, Diagnostic> {
        for i in 0..self.few[g].len() {
            let (part, reads) = &self.few[g][i];
            let mut key = (g as u32, *part, [u16::MAX; 3]);
            key.2.iter_mut().zip(reads).for_each(|(k, r)| *k = state[*r]);
            match self.parts.get(&key) {
                Some(true) => {}
                Some(false) => return Ok(true),
                None => {
                    let (part, reads) = (*part as usize, reads.clone());
                    let may = self.may_hold(g, part, &reads, state)?;
                    self.parts.insert(key, may);
                    if !may {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// True if a part of a summand's condition may hold for the values that it reads. What is not
    /// decided may be excluded by another part.
    fn may_hold(
        &mut self,
        g: usize,
        part: usize,
        reads: &[usize],
        state: &[u16],
    ) -> Result<bool, Diagnostic> {
        let value = |r: &usize| &self.tables[self.home(*r)].all[usize::from(state[*r])];
        let given: Vec<&Abstract> = reads.iter().map(value).collect();
        let Open { mut cases, numbers, terms, identities } = self.evaluation(&given)?;
        let crowd = self.crowd.clone();
        let participants = crowd.as_ref().and_then(|crowd| crowd.considered[g]).unwrap_or(0);
        let mut written = self.constants()?;
        let mut foreign = Vec::new();
        for ((r, e), value) in reads.iter().zip(terms).zip(&given) {
            let e = self.term_for(g, *r, value, &e);
            let var = self.question.process.params[*r].var;
            if !e.is_closed() {
                // Its letters are chosen with all that the summand reads.
                if crowd.as_ref().is_some_and(|c| c.list.is_some_and(|l| l.0 == e.sort)) {
                    return Ok(true);
                }
                if !self.by.is_plain(&e) {
                    foreign.push(var);
                }
            }
            written.insert(var, e);
        }
        let term = self.by.summands[g].guard[part].clone();
        while cases.begin(&self.by, &numbers)? {
            let mut by = Substitution::new();
            self.choose_identities(&identities, participants, &mut by)?;
            let mut values = written.clone().with(&by);
            let mut found = Ok(true);
            for v in &foreign {
                match values.get(*v).cloned().map(|e| self.by.normal(&e)) {
                    Some(Ok(e)) => values.insert(*v, e),
                    Some(Err(why)) => found = Err(why),
                    None => {}
                }
            }
            match found.and_then(|_| self.by.holds(&term, &values)) {
                Ok(false) => {}
                Err(why) if why.stop.is_some() => return Err(why),
                Ok(true) | Err(_) => return Ok(true),
            }
            cases.end(&self.by);
        }
        Ok(false)
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
                let answers = match self.groups[g].cached_answers(state) {
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
    pub(super) fn answers(&mut self, g: usize, state: &[u16]) -> Result<Rc<[Answer]>, Stop> {
        let process = self.question.process;
        let reads = self.groups[g].reads.clone();
        let value = |r: &usize| &self.tables[self.home(*r)].all[usize::from(state[*r])];
        let given: Vec<&Abstract> = reads.iter().map(value).collect();
        let Open { mut cases, numbers, terms, identities } = self.evaluation(&given)?;
        let crowd = self.crowd.clone();
        let (uses, participants) = crowd.as_ref().map_or((Uses::default(), 0), |crowd| {
            (crowd.uses[g], crowd.considered[g].unwrap_or(0))
        });
        let mut written = self.constants()?;
        // Values that are normal forms only after numbers and identities are known.
        let mut foreign = Vec::new();
        let mut lists = Vec::new();
        for ((r, e), value) in reads.iter().zip(terms).zip(&given) {
            let var = process.params[*r].var;
            let e = self.term_for(g, *r, value, &e);
            let is_list = crowd.as_ref().is_some_and(|c| c.list.is_some_and(|l| l.0 == e.sort));
            if is_list && !e.is_closed() {
                lists.push((var, *r));
            } else if !self.by.is_plain(&e) && !e.is_closed() {
                foreign.push(var);
            }
            written.insert(var, e);
        }
        let mut out: Vec<Answer> = Vec::new();
        let summands = self.by.summands.clone();
        if foreign.is_empty() && self.by.is_disabled(g, &written)? {
            return Ok(self.store(g, state, out));
        }
        while cases.begin(&self.by, &numbers)? {
            let mut values = written.clone();
            let (mut possible, mut named) = (true, 0);
            if !identities.is_empty() || crowd.is_some() {
                let mut by = Substitution::new();
                named = self.choose_identities(&identities, participants, &mut by)?;
                values = values.with(&by);
            }
            for v in &foreign {
                if let Some(e) = values.get(*v).cloned() {
                    values.insert(*v, self.by.normal(&e)?);
                }
            }
            if let Some(crowd) = &crowd
                && !lists.is_empty()
            {
                // No letters are chosen where the rest of the condition is false.
                possible = !self.by.is_excluded(g, &values, &lists)?;
                for (var, r) in &lists {
                    let word = (written.get(*var).cloned()).zip(Some(crowd.all == Some(*r)));
                    let Some((word, is_all)) = word else { continue };
                    // The updates choose the letters.
                    if crowd.is_separate[g] || !possible {
                        continue;
                    }
                    let looked = crowd.inspected[g] == Some(*var);
                    let uses = if looked { uses } else { Uses::default() };
                    let given = (&word, is_all);
                    match self.choose_letters(crowd, given, &identities, uses, &mut named)? {
                        Some(list) => values.insert(*var, list),
                        None => possible = false,
                    }
                }
            }
            if possible && let Some(values) = self.by.step(g, values)? {
                let mut label = Vec::new();
                for (i, term) in summands[g].arguments.iter().enumerate() {
                    if self.heard[g][i] {
                        let e = self.by.value(term, &values)?;
                        let value = self.cuts.lift(&mut self.by, &e, self.argument_places[g][i])?;
                        label.push(self.values.id(value).0);
                    } else {
                        label.push(UNHEARD);
                    }
                }
                let mut all: Vec<Vec<(u16, u16)>> = vec![Vec::new()];
                for ((param, _), (_, term)) in
                    process.summands[g].updates.iter().zip(&summands[g].updates)
                {
                    let at = u16::try_from(*param).map_err(|_| fails("too many parameters"))?;
                    let new = match &crowd {
                        Some(crowd) if crowd.is_separate[g] && crowd.inspects(g, term) => {
                            self.words(g, *param, (term, &values), (&identities, &lists, named))?
                        }
                        _ => {
                            let e = self.by.value(term, &values)?;
                            vec![self.value(*param, &e)?]
                        }
                    };
                    let longer = |row: &Vec<(u16, u16)>| {
                        new.iter().map(|id| [&row[..], &[(at, *id)]].concat()).collect::<Vec<_>>()
                    };
                    all = all.iter().flat_map(longer).collect();
                }
                let label = self.label(g, label);
                for changes in all {
                    if !out.iter().any(|o| o.0 == label && o.1 == changes) {
                        out.push((label, changes));
                    }
                }
                self.found.consecution += 1;
            }
            self.end(&mut cases, true)?;
        }
        Ok(self.store(g, state, out))
    }

    fn label(&mut self, summand: usize, args: Vec<u32>) -> u32 {
        let key = (summand, args);
        if let Some(id) = self.labels.get(&key) {
            return *id;
        }
        let id = self.all_labels.len() as u32;
        self.labels.insert(key.clone(), id);
        self.all_labels.push(key);
        id
    }
}
