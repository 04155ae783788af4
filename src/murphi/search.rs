//! Breadth-first search of all states of a compiled model, with all checks of the language.
//!
//! In: a compiled model and [`SearchOptions`]. Out: [`Explored`]: the numbers of states and of
//! rules that fired, a verdict, and a shortest path to the first failure. Checks: invariants and
//! the errors of guards and rules (assertions, `error`, undefined values, ranges, divisions),
//! deadlocks, claims `cover`, liveness; `assume` discards states.
//!
//! A state is checked when it is new, and expanded in place: guards and rules work on the memory of
//! the [`Interpreter`]; its first words are restored after each rule. Successors are collected in
//! batches, so that the memory accesses of their searches overlap. Invariant: states have numbers
//! in the order of their distance from the start, so the path by parents is a shortest one. With
//! symmetries the path is computed again as a run of the model itself ([`crate::path`]).
//!
//! Cost: one run of the guard for each state and instance that the tables select, one run of the
//! rule for each that is enabled.

use crate::code::{Fault, Instance, Program};
use crate::footprint::{footprint, has_assumption};
use crate::guards::Guards;
use crate::liveness::followed_scalarsets;
use crate::normal::Normal;
use crate::order_check::{Asymmetry, OrderCheck};
use crate::parents::Parents;
use crate::run::{Ended, Interpreter};
use crate::run_cache::{LANES, RunCache};
use crate::states::States;
use crate::typed::{Claim, Model};
use mu_base::Span;
use mu_base::limits::{Budget, Stop};
use std::hint::black_box;
use std::ops::Range;

/// Definition of a deadlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deadlocks {
    /// A state without a step to another state.
    #[default]
    Stuttering,
    /// A state in which no rule is enabled.
    Stuck,
    /// None.
    Off,
}

/// Options of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Definition of a deadlock.
    pub deadlocks: Deadlocks,
    /// True to store one state of each orbit under permutations of scalarsets.
    pub symmetry: bool,
    /// True to check invariants, deadlocks, `cover` and liveness; false to count states only.
    /// Errors of rules end the search in any case.
    pub checks: bool,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { deadlocks: Deadlocks::Stuttering, symmetry: true, checks: true }
    }
}

/// Violated property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// An instance of an invariant (index in `Program::properties`).
    Invariant(u32),
    /// An instance of a liveness property: from the state no state is reachable that satisfies it.
    Liveness(u32),
    /// A deadlock.
    Deadlock,
    /// A failing instruction.
    Fault(Fault, Span),
}

/// Part of the model that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The state itself.
    State,
    /// The guard of an instance of a rule.
    Guard(u32),
    /// The body of an instance of a rule.
    Rule(u32),
    /// An instance of a start state.
    Start(u32),
    /// An instance of a property.
    Property(u32),
}

/// Failure in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The violated property.
    pub broken: Broken,
    /// The part that fails.
    pub culprit: Culprit,
    /// Number of the state in the store; `None` before any state.
    pub state: Option<u32>,
}

/// Result of a search.
pub struct Explored {
    /// Number of states.
    pub states: u64,
    /// Number of rules that fired.
    pub rules: u64,
    /// Longest distance of a state from the start, in rules.
    pub depth: u32,
    /// Number of states without a step, by the definition in use.
    pub deadlocks: u64,
    /// Reason why the search ended.
    pub stop: Stop,
    /// First failure, if there is one.
    pub failure: Option<Failure>,
    /// Claims `cover` in statements that never held, by number. Complete searches only.
    pub uncovered_claims: Vec<u32>,
    /// Instances of `cover` properties that never held. Complete searches only.
    pub uncovered: Vec<u32>,
    /// Bytes of the store.
    pub memory: usize,
    /// Size of the group of permutations in use, at most `u64::MAX`; 1 without.
    pub symmetries: u64,
    /// Scalarsets that are no symmetry of the model, or that liveness properties follow, so that
    /// their permutations are not in use.
    pub asymmetries: Vec<Asymmetry>,
    /// Places of the loops and quantifiers that were executed in every order, because the text does
    /// not show that they do not depend on it.
    pub suspects: Vec<Span>,
    pub(crate) parents: Parents,
    pub(crate) store: States,
}

/// Number of states that are expanded together.
const BLOCK: usize = 128;
/// States between two polls of the memory.
const POLL_MEMORY: usize = 1 << 15;
/// Classes of invariants, for masks of 64 bits.
const CLASSES: usize = 64;
/// Parent of a start state.
const NO_PARENT: u32 = u32::MAX;

/// Place of a step in the order of the search: the state in its block, and the rule.
type Order = (u32, u32);
/// Order of a deadlock, behind all rules of its state.
const LAST: u32 = u32::MAX;

/// Steps that the expansion of a state finds.
#[derive(Clone, Copy, Default)]
struct Moves {
    /// Some rule is enabled.
    enabled: bool,
    /// Some rule leads to another state.
    progress: bool,
}

/// Search for one thread.
struct Search<'p> {
    model: &'p Model,
    program: &'p Program,
    options: SearchOptions,
    guards: Guards,
    /// Priorities of the instances of rules; empty if all are equal.
    priorities: Vec<i64>,
    interpreter: Interpreter<'p>,
    /// Cached runs: two trees for each instance of a rule, one for each of a property.
    run_cache: RunCache,
    normal: Normal,
    /// Check of the parts of the model that may depend on an order, and its result.
    order_check: Option<Box<OrderCheck<'p>>>,
    asymmetry: Option<Asymmetry>,
    states: States,
    parents: Parents,
    /// States that are expanded together, and what is known of each.
    block: Vec<u64>,
    moves: Vec<Moves>,
    /// For each instance the states of the block in which its guard may be true, with the code that
    /// decides it.
    selected: Vec<Vec<(u32, Option<u32>)>>,
    /// Bits that the invariants of a class read.
    reads: Vec<u64>,
    /// Earliest failure of the block.
    broken: Option<(Order, Failure)>,
    /// Successors, their hashes, their parents, and their order.
    batch: Vec<u64>,
    hashes: Vec<u64>,
    /// For each successor a state that may be the same.
    candidates: Vec<u32>,
    origins: Vec<u32>,
    places: Vec<Order>,
    /// Classes of invariants that a successor can violate, with symmetries.
    touched: Vec<u64>,
    sorted: Vec<u32>,
    rules: u64,
    deadlocks: u64,
    failure: Option<Failure>,
    stop: Stop,
    /// Instances of properties by kind.
    invariants: Vec<u32>,
    assumptions: Vec<u32>,
    /// Invariants that discard states, as [`discarding_invariants`].
    discarding: Vec<u32>,
    covers: Vec<u32>,
    liveness: Vec<u32>,
    covered: Vec<bool>,
    /// For liveness: the steps (from, to), and the properties that hold in each state.
    steps: Vec<(u32, u32)>,
    satisfied: Vec<bool>,
}

/// Searches all states. If a step depends on the order of a scalarset's elements, the search starts
/// again without permutations of that scalarset. Scalarsets that liveness properties follow are not
/// permuted.
pub fn explore(
    model: &Model,
    program: &Program,
    options: SearchOptions,
    budget: &Budget,
    progress: &mut dyn FnMut(u64, u64),
) -> Explored {
    let permutes = options.symmetry && Normal::new(model, program, true).permutes();
    let mut asymmetries =
        if permutes && options.checks { followed_scalarsets(model) } else { Vec::new() };
    loop {
        match explore_with(model, program, options, &asymmetries, (budget, progress)) {
            Ok(explored) => return Explored { asymmetries, ..explored },
            Err(asymmetry) => asymmetries.push(asymmetry),
        }
    }
}

/// Searches all states without permutations of some scalarsets.
///
/// # Errors
/// A further scalarset that is no symmetry.
fn explore_with(
    model: &Model,
    program: &Program,
    options: SearchOptions,
    asymmetries: &[Asymmetry],
    (budget, progress): (&Budget, &mut dyn FnMut(u64, u64)),
) -> Result<Explored, Asymmetry> {
    let normal = Normal::without_scalarsets(model, program, options.symmetry, sets(asymmetries));
    let poll = budget.clone();
    let order_check = OrderCheck::new(model, program, &normal, move || poll.check(0).is_err())?;
    let poll = budget.clone();
    let of = |claim: Claim| -> Vec<u32> {
        let all = program.properties.iter().enumerate();
        all.filter(|(_, p)| model.properties[p.number as usize].claim == claim)
            .map(|(at, _)| at as u32)
            .collect()
    };
    let words = program.layout.words;
    let checked = |all: Vec<u32>| if options.checks { all } else { Vec::new() };
    let mut search = Search {
        model,
        program,
        options,
        guards: Guards::new(&program.rules),
        priorities: priorities(model, program),
        interpreter: Interpreter::new(program, model.claims.len(), move || poll.check(0).is_err()),
        run_cache: RunCache::new(words, 2 * program.rules.len() + program.properties.len()),
        normal,
        order_check: order_check.map(Box::new),
        asymmetry: None,
        states: States::new(words, program.layout.state_bits as usize),
        parents: Parents::default(),
        block: Vec::new(),
        moves: Vec::new(),
        selected: vec![Vec::new(); program.rules.len()],
        reads: Vec::new(),
        broken: None,
        batch: Vec::new(),
        hashes: Vec::new(),
        candidates: Vec::new(),
        origins: Vec::new(),
        places: Vec::new(),
        touched: Vec::new(),
        sorted: Vec::new(),
        rules: 0,
        deadlocks: 0,
        failure: None,
        stop: Stop::Complete,
        invariants: checked(of(Claim::Assert)),
        assumptions: of(Claim::Assume),
        discarding: discarding_invariants(model, program, model.properties.len()),
        covers: checked(of(Claim::Cover)),
        liveness: checked(of(Claim::Liveness)),
        covered: Vec::new(),
        steps: Vec::new(),
        satisfied: Vec::new(),
    };
    search.covered = vec![false; search.covers.len()];
    search.reads = search.reads_of_invariants();
    let depth = search.run(budget, progress);
    match search.asymmetry.take() {
        Some(asymmetry) => Err(asymmetry),
        None => Ok(search.finish(depth)),
    }
}

/// Returns the mask of the scalarsets that are no symmetry.
pub(crate) fn sets(asymmetries: &[Asymmetry]) -> u64 {
    asymmetries.iter().fold(0, |n, a| n | a.sets)
}

/// Returns the instances of the first `own` properties that are invariants, up to the last one with
/// an `assume` in a function, which discards the state; none if no invariant has one.
pub(crate) fn discarding_invariants(model: &Model, program: &Program, own: usize) -> Vec<u32> {
    let is_invariant = |at: &u32| {
        let number = program.properties[*at as usize].number as usize;
        number < own && model.properties[number].claim == Claim::Assert
    };
    let discards = |at: &u32| has_assumption(program, program.properties[*at as usize].guard);
    let mut all: Vec<u32> = (0..program.properties.len() as u32).filter(is_invariant).collect();
    all.truncate(all.iter().rposition(discards).map_or(0, |last| last + 1));
    all
}

/// Returns the priorities of the instances of rules; none if all are equal.
pub(crate) fn priorities(model: &Model, program: &Program) -> Vec<i64> {
    let of = |i: &Instance| model.rules[i.number as usize].priority;
    let all: Vec<i64> = program.rules.iter().map(of).collect();
    if all.windows(2).all(|w| w[0] == w[1]) { Vec::new() } else { all }
}

impl Explored {
    /// Returns the number of states in the orbits of all stored states. Cost: all permutations of
    /// each stored state, for tests.
    pub fn all_states(&self, model: &Model, program: &Program) -> u64 {
        let words = program.layout.words;
        let excluded = sets(&self.asymmetries);
        let mut normal = Normal::without_scalarsets(model, program, self.symmetries > 1, excluded);
        let mut all = ahash::AHashSet::default();
        let mut state = vec![0; words];
        let exchanges = normal.exchanges();
        for number in 0..self.store.len() {
            self.store.get(number, &mut state);
            let mut open = vec![state.clone()];
            all.insert(state.clone());
            while let Some(next) = open.pop() {
                for exchange in &exchanges {
                    let image = normal.permute(&next, exchange).to_vec();
                    if all.insert(image.clone()) {
                        open.push(image);
                    }
                }
            }
        }
        all.len() as u64
    }
}

impl Search<'_> {
    fn run(&mut self, budget: &Budget, progress: &mut dyn FnMut(u64, u64)) -> u32 {
        let program = self.program;
        let guards = std::mem::take(&mut self.guards);
        if let Some(order_check) = &mut self.order_check {
            self.asymmetry = order_check.check_starts().err();
            if self.has_ended() {
                return 0;
            }
        }
        for (at, start) in program.starts.iter().enumerate() {
            self.interpreter.memory.fill(0);
            match self.interpreter.run(start.body) {
                Ended::Done => self.collect(NO_PARENT, (0, 0), u64::MAX),
                Ended::Fault(pc) => self.fault(pc, Culprit::Start(at as u32), None),
                Ended::Stopped => self.record_stop(budget),
                _ => {}
            }
            self.flush(budget);
            if self.has_ended() {
                return 0;
            }
        }
        let (mut depth, mut level_end) = (0, self.states.len());
        let (mut number, mut checked) = (0, 0);
        while number < self.states.len() && !self.has_ended() {
            progress(self.states.len() as u64, self.rules);
            let memory = number >= checked;
            checked = if memory { number + POLL_MEMORY } else { checked };
            let poll = budget.check(self.states.len() as u64);
            let poll = poll.and_then(|()| if memory { budget.check_memory() } else { Ok(()) });
            if let Err(stop) = poll {
                self.stop = stop;
                break;
            }
            if number == level_end {
                (depth, level_end) = (depth + 1, self.states.len());
            }
            let end = level_end.min(number + BLOCK);
            self.expand(&guards, number..end, budget);
            self.flush(budget);
            number = end;
        }
        depth
    }
    fn has_ended(&self) -> bool {
        self.failure.is_some() || self.asymmetry.is_some() || self.stop != Stop::Complete
    }
    fn record_stop(&mut self, budget: &Budget) {
        self.stop = budget.check(self.states.len() as u64).err().unwrap_or(Stop::Interrupted);
    }
    fn fault(&mut self, pc: u32, culprit: Culprit, state: Option<u32>) {
        let (fault, span) = match self.program.site(pc) {
            Some(site) => (site.fault.clone(), site.span),
            None => (Fault::Error("internal: an instruction failed".into()), Default::default()),
        };
        self.failure = Some(Failure { broken: Broken::Fault(fault, span), culprit, state });
    }
    /// Evaluates an instance of a property in the state of the interpreter. `None` if the search
    /// ended.
    fn holds(
        &mut self,
        at: u32,
        (state, words): (Option<u32>, &[u64]),
        budget: &Budget,
    ) -> Option<bool> {
        let guard = self.program.properties[at as usize].guard;
        let root = 2 * self.program.rules.len() + at as usize;
        let code = (Some(guard), None);
        match self.run_cache.run(&mut self.interpreter, (root, 0), code, words).1 {
            Ended::Yes => Some(true),
            Ended::Fault(pc) => {
                self.fault(pc, Culprit::Property(at), state);
                None
            }
            Ended::Stopped => {
                self.record_stop(budget);
                None
            }
            _ => Some(false),
        }
    }
    /// Returns the class of an invariant: the instances of one property are in one class, so that a
    /// permutation of scalarsets leaves the classes as they are.
    fn class(&self, invariant: u32) -> usize {
        let number = |at: u32| self.program.properties[at as usize].number;
        let first = self.invariants.first().map_or(0, |first| number(*first));
        (number(invariant) - first) as usize % CLASSES
    }
    /// Returns the bits that the invariants read, by class.
    fn reads_of_invariants(&self) -> Vec<u64> {
        let words = self.program.layout.words;
        let classes = self.invariants.iter().map(|at| self.class(*at) + 1).max().unwrap_or(0);
        let mut reads = vec![0; classes * words];
        for at in &self.invariants {
            let class = self.class(*at);
            let read = footprint(self.program, self.program.properties[*at as usize].guard).reads;
            for bit in read.into_iter().flat_map(|(first, end)| first..end) {
                reads[class * words + bit as usize / 64] |= 1 << (bit % 64);
            }
        }
        reads
    }
    /// Returns the classes of invariants that read a difference of two states, as a mask. All
    /// others have one answer in both states.
    #[inline(always)]
    fn touched_classes(&self, state: &[u64], parent: &[u64]) -> u64 {
        let mut touched = 0;
        for (class, reads) in self.reads.chunks_exact(state.len()).enumerate() {
            let words = state.iter().zip(parent).zip(reads);
            let differs = words.fold(0, |all, ((a, b), reads)| all | (a ^ b) & reads) != 0;
            touched |= u64::from(differs) << class;
        }
        touched
    }
    /// Checks the properties of a new state, which the interpreter has; of the invariants those of
    /// some classes. False if the search ends.
    fn check_state(&mut self, number: u32, state: &[u64], touched: u64, budget: &Budget) -> bool {
        for n in 0..self.invariants.len() {
            let at = self.invariants[n];
            if touched >> self.class(at) & 1 == 0 {
                continue;
            }
            match self.holds(at, (Some(number), state), budget) {
                Some(true) => {}
                Some(false) => {
                    self.failure = Some(Failure {
                        broken: Broken::Invariant(at),
                        culprit: Culprit::State,
                        state: Some(number),
                    });
                    return false;
                }
                None => return false,
            }
            self.restore_if(at, state);
        }
        // Also those that held before: they may read an undefined value here.
        for n in 0..self.covers.len() {
            match self.holds(self.covers[n], (Some(number), state), budget) {
                Some(held) => self.covered[n] |= held,
                None => return false,
            }
            self.restore_if(self.covers[n], state);
        }
        for n in 0..self.liveness.len() {
            match self.holds(self.liveness[n], (Some(number), state), budget) {
                Some(held) => self.satisfied.push(held),
                None => return false,
            }
            self.restore_if(self.liveness[n], state);
        }
        true
    }
    fn restore_if(&mut self, property: u32, state: &[u64]) {
        if self.program.properties[property as usize].writes_in_guard {
            self.interpreter.memory[..state.len()].copy_from_slice(state);
        }
    }
    /// Fires all enabled rules in some states of one distance; of rules with different priorities
    /// those with the lowest number. Each rule runs in all states before the next rule, so that its
    /// code is near and its jumps are predicted; the results are ordered by state again.
    fn expand(&mut self, guards: &Guards, numbers: Range<usize>, budget: &Budget) {
        let words = self.program.layout.words;
        let first = numbers.start as u32;
        let mut block = std::mem::take(&mut self.block);
        block.resize(numbers.len() * words, 0);
        self.moves.clear();
        self.moves.resize(numbers.len(), Moves::default());
        let mut selected = std::mem::take(&mut self.selected);
        for (at, number) in numbers.enumerate() {
            let state = &mut block[at * words..(at + 1) * words];
            self.states.get(number, state);
            guards.visit(state, &mut |rule, guard| {
                selected[rule as usize].push((at as u32, guard));
                true
            });
        }
        let has_hidden = !self.priorities.is_empty();
        let all = (has_hidden && self.order_check.is_some()).then(|| selected.clone());
        if has_hidden {
            self.keep_lowest(&mut selected, &block, first, budget);
        }
        if let Some(order_check) = &mut self.order_check {
            let all = all.as_ref().unwrap_or(&selected);
            self.asymmetry = order_check.check_block(&block, words, (all, &selected)).err();
        }
        for (rule, some) in selected.iter_mut().enumerate() {
            for some in some.chunks(LANES) {
                let mut lanes = [(0, 0); LANES];
                for (lane, (at, guard)) in lanes.iter_mut().zip(some) {
                    *lane = (self.root(rule as u32, *guard), *at as usize * words);
                }
                let starts = self.run_cache.descend(&lanes[..some.len()], &block);
                for ((at, guard), start) in some.iter().zip(starts) {
                    if self.broken.as_ref().is_some_and(|b| b.0 < (*at, rule as u32)) {
                        continue;
                    }
                    let state = &block[*at as usize * words..(*at as usize + 1) * words];
                    put(&mut self.interpreter.memory, state);
                    self.fire((rule as u32, *guard, start), state, (first, *at), budget);
                    if let Some(failure) = self.failure.take() {
                        self.broken = Some(((*at, rule as u32), failure));
                    }
                }
            }
            some.clear();
            if self.stop != Stop::Complete {
                break;
            }
        }
        selected.iter_mut().for_each(Vec::clear);
        (self.block, self.selected) = (block, selected);
        if self.stop == Stop::Complete {
            self.find_deadlocks(first);
        }
    }
    /// Removes the instances that are not enabled, or have a higher priority number than one that
    /// is.
    fn keep_lowest(
        &mut self,
        selected: &mut [Vec<(u32, Option<u32>)>],
        block: &[u64],
        first: u32,
        budget: &Budget,
    ) {
        let words = self.program.layout.words;
        let mut lowest = vec![i64::MAX; self.moves.len()];
        for (rule, some) in selected.iter_mut().enumerate() {
            some.retain(|(at, guard)| {
                let state = &block[*at as usize * words..(*at as usize + 1) * words];
                self.interpreter.memory[..words].copy_from_slice(state);
                let enabled = self.is_enabled(rule as u32, *guard, first + at, budget);
                if let Some(failure) = self.failure.take() {
                    let order = (*at, rule as u32);
                    if self.broken.as_ref().is_none_or(|b| order < b.0) {
                        self.broken = Some((order, failure));
                    }
                }
                if enabled == Some(true) {
                    let low = &mut lowest[*at as usize];
                    *low = (*low).min(self.priorities[rule]);
                }
                enabled == Some(true)
            });
        }
        for (rule, some) in selected.iter_mut().enumerate() {
            some.retain(|(at, _)| self.priorities[rule] == lowest[*at as usize]);
        }
    }
    fn find_deadlocks(&mut self, first: u32) {
        for at in 0..self.moves.len() as u32 {
            if self.broken.as_ref().is_some_and(|b| b.0 < (at, LAST)) {
                break;
            }
            let Moves { enabled, progress } = self.moves[at as usize];
            let dead = match self.options.deadlocks {
                Deadlocks::Stuttering => !progress,
                Deadlocks::Stuck => !enabled,
                Deadlocks::Off => false,
            };
            if !dead {
                continue;
            }
            self.deadlocks += 1;
            if self.options.checks {
                let (broken, state) = (Broken::Deadlock, Some(first + at));
                let failure = Failure { broken, culprit: Culprit::State, state };
                self.broken = Some(((at, LAST), failure));
            }
        }
    }
    /// Decides the guard of an instance in the state of the interpreter. `None` if it fails, or if
    /// the search ends.
    #[inline(always)]
    fn is_enabled(
        &mut self,
        at: u32,
        guard: Option<u32>,
        number: u32,
        budget: &Budget,
    ) -> Option<bool> {
        let Some(guard) = guard else { return Some(true) };
        match self.interpreter.run(guard) {
            Ended::Yes => Some(true),
            Ended::Fault(pc) => {
                self.fault(pc, Culprit::Guard(at), Some(number));
                None
            }
            Ended::Stopped => {
                self.record_stop(budget);
                None
            }
            _ => Some(false),
        }
    }
    /// Returns the tree of an instance with the code that decides its guard.
    #[inline(always)]
    fn root(&self, rule: u32, guard: Option<u32>) -> usize {
        2 * rule as usize + usize::from(guard != self.program.rules[rule as usize].rest)
    }
    /// Runs an instance, if its guard is true, in a state of the block, which the interpreter has.
    #[inline(always)]
    fn fire(
        &mut self,
        (rule, guard, start): (u32, Option<u32>, u32),
        current: &[u64],
        (first, at): (u32, u32),
        budget: &Budget,
    ) {
        let number = first + at;
        let instance = &self.program.rules[rule as usize];
        let root = self.root(rule, guard);
        let code = (guard, Some(instance.body));
        match self.run_cache.run(&mut self.interpreter, (root, start), code, current) {
            (_, Ended::Done) => {}
            (in_guard, Ended::Fault(pc)) => {
                let culprit = if in_guard { Culprit::Guard(rule) } else { Culprit::Rule(rule) };
                return self.fault(pc, culprit, Some(number));
            }
            (_, Ended::Stopped) => return self.record_stop(budget),
            _ => return,
        }
        self.rules += 1;
        let mut moves = self.moves[at as usize];
        moves.enabled = true;
        if differs(&self.interpreter.memory, current) {
            self.normal.sort_changed(&mut self.interpreter.memory, current);
            let changed = differs(&self.interpreter.memory, current);
            moves.progress |= changed;
            if changed {
                let touched = match self.normal.permutes() {
                    true => {
                        self.touched_classes(&self.interpreter.memory[..current.len()], current)
                    }
                    false => 0,
                };
                self.collect(number, (at, rule), touched);
            } else if !self.liveness.is_empty() {
                self.steps.push((number, number));
            }
        }
        self.moves[at as usize] = moves;
    }
    /// Adds the state of the interpreter to the batch, unless an assumption discards it. `touched`:
    /// with symmetries the classes of invariants that it can violate.
    fn collect(&mut self, parent: u32, place: Order, touched: u64) {
        let words = self.program.layout.words;
        if parent == NO_PARENT {
            self.normal.sort(&mut self.interpreter.memory);
        }
        if !self.assumptions.is_empty() || !self.discarding.is_empty() {
            let state = self.interpreter.memory[..words].to_vec();
            let stays = (self.assumptions.is_empty() || self.is_assumed(parent))
                && (self.discarding.is_empty()
                    || !self.interpreter.discards(&self.discarding, &state));
            if !stays {
                if self.asymmetry.is_none()
                    && self.failure.is_none()
                    && let Some(order_check) = &mut self.order_check
                {
                    self.asymmetry = order_check.check_discarded(&state).err();
                }
                return;
            }
        }
        self.normal.canonical(&mut self.interpreter.memory);
        let state = &self.interpreter.memory[..words];
        self.batch.extend_from_slice(state);
        self.hashes.push(States::hash(state));
        self.origins.push(parent);
        self.places.push(place);
        if self.normal.permutes() {
            self.touched.push(touched);
        }
    }
    /// Evaluates the assumptions in the state of the interpreter, as
    /// [`Interpreter::check_assumptions`].
    fn is_assumed(&mut self, parent: u32) -> bool {
        let (words, budget) = (self.program.layout.words, Budget::default());
        let from = (parent != NO_PARENT).then_some(parent);
        let state: Vec<u64> = self.interpreter.memory[..words].to_vec();
        let mut failed: Option<(u32, Failure)> = None;
        for n in 0..self.assumptions.len() {
            let at = self.assumptions[n];
            let number = self.program.properties[at as usize].number;
            if failed.as_ref().is_some_and(|f| f.0 != number) {
                break;
            }
            match (self.holds(at, (from, &state), &budget), self.failure.take()) {
                (Some(true), _) => {}
                (None, Some(failure)) => failed = failed.or(Some((number, failure))),
                _ => return false,
            }
            self.interpreter.memory[..words].copy_from_slice(&state);
        }
        self.failure = failed.map(|f| f.1);
        self.failure.is_none()
    }
    /// Adds the states of the batch to the store and checks those that are new. All states of one
    /// distance are thus checked before a rule fires in one of them. The first failure is that of a
    /// search that expands one state after the other.
    fn flush(&mut self, budget: &Budget) {
        let words = self.program.layout.words;
        let mut touched = 0;
        for hash in &self.hashes {
            touched ^= self.states.touch(*hash);
        }
        black_box(touched);
        let mut touched = 0;
        self.candidates.clear();
        self.candidates.extend(self.hashes.iter().map(|hash| {
            let (candidate, part) = self.states.candidate(*hash);
            touched ^= part;
            candidate
        }));
        black_box(touched);
        let checks = !self.covers.is_empty() || !self.liveness.is_empty();
        // Rules are in the order of the text for each state; a state has at most all rules.
        let mut sorted = std::mem::take(&mut self.sorted);
        self.sort_places(&mut sorted);
        let later = self.broken.take();
        let batch = std::mem::take(&mut self.batch);
        for n in sorted.iter().map(|n| *n as usize) {
            if later.as_ref().is_some_and(|l| l.0 < self.places[n]) {
                break;
            }
            let state = &batch[n * words..(n + 1) * words];
            let inserted = self.states.insert(state, self.hashes[n], self.candidates[n]);
            let Some((number, new)) = inserted else {
                self.stop = Stop::States;
                break;
            };
            let origin = self.origins[n];
            if !self.liveness.is_empty() && origin != NO_PARENT {
                self.steps.push((origin, number));
            }
            if new {
                self.parents.push((origin != NO_PARENT).then_some(origin));
                // Most bits that an invariant reads are as in the parent, where it holds.
                let touched = if origin == NO_PARENT {
                    u64::MAX
                } else if self.normal.permutes() {
                    self.touched[n]
                } else {
                    let first = self.places[n].0 as usize * words;
                    self.touched_classes(state, &self.block[first..first + words])
                };
                if touched != 0 || checks {
                    put(&mut self.interpreter.memory, state);
                    if !self.check_state(number, state, touched, budget) {
                        break;
                    }
                }
            }
        }
        self.failure = self.failure.take().or(later.map(|l| l.1));
        (self.sorted, self.batch) = (sorted, batch);
        self.batch.clear();
        self.hashes.clear();
        self.origins.clear();
        self.places.clear();
        self.touched.clear();
    }
    /// Orders the successors by their state in the block; those of one state stay in their order.
    fn sort_places(&self, sorted: &mut Vec<u32>) {
        let mut next = [0u32; BLOCK + 1];
        self.places.iter().for_each(|p| next[p.0 as usize + 1] += 1);
        for n in 0..BLOCK {
            next[n + 1] += next[n];
        }
        sorted.clear();
        sorted.resize(self.places.len(), 0);
        for (n, place) in (0u32..).zip(&self.places) {
            let to = &mut next[place.0 as usize];
            sorted[*to as usize] = n;
            *to += 1;
        }
    }
    /// Returns the first liveness property, with a state, from which no state satisfies it.
    fn dead_end(&self) -> Option<(u32, u32)> {
        let (count, kinds) = (self.states.len(), self.liveness.len());
        // Steps by target, in compressed rows.
        let mut first = vec![0u32; count + 1];
        self.steps.iter().for_each(|s| first[s.1 as usize + 1] += 1);
        for n in 0..count {
            first[n + 1] += first[n];
        }
        let mut next = first.clone();
        let mut sources = vec![0u32; self.steps.len()];
        for (from, to) in &self.steps {
            sources[next[*to as usize] as usize] = *from;
            next[*to as usize] += 1;
        }
        for kind in 0..kinds {
            let mut good: Vec<bool> =
                (0..count).map(|n| self.satisfied[n * kinds + kind]).collect();
            let mut open: Vec<u32> = (0..count as u32).filter(|n| good[*n as usize]).collect();
            while let Some(to) = open.pop() {
                let to = to as usize;
                for from in &sources[first[to] as usize..first[to + 1] as usize] {
                    if !std::mem::replace(&mut good[*from as usize], true) {
                        open.push(*from);
                    }
                }
            }
            if let Some(bad) = good.iter().position(|g| !g) {
                return Some((self.liveness[kind], bad as u32));
            }
        }
        None
    }
    fn finish(mut self, depth: u32) -> Explored {
        let complete = !self.has_ended();
        if complete
            && !self.liveness.is_empty()
            && let Some((at, state)) = self.dead_end()
        {
            self.failure = Some(Failure {
                broken: Broken::Liveness(at),
                culprit: Culprit::State,
                state: Some(state),
            });
        }
        let (mut uncovered, mut uncovered_claims) = (Vec::new(), Vec::new());
        if complete && self.options.checks {
            // A cover property in a ruleset holds if one of its instances does.
            let held = |number: u32| {
                self.covers.iter().zip(&self.covered).any(|(at, held)| {
                    *held && self.program.properties[*at as usize].number == number
                })
            };
            let mut seen = Vec::new();
            for at in &self.covers {
                let number = self.program.properties[*at as usize].number;
                if !held(number) && !seen.contains(&number) {
                    seen.push(number);
                    uncovered.push(*at);
                }
            }
            uncovered_claims = (0..self.model.claims.len() as u32)
                .filter(|n| {
                    let also =
                        self.order_check.as_ref().is_some_and(|o| o.covered_claims()[*n as usize]);
                    self.model.claims[*n as usize].claim == Claim::Cover
                        && !self.interpreter.covered[*n as usize]
                        && !also
                })
                .collect();
        }
        let memory = self.states.memory() + self.parents.memory();
        Explored {
            states: self.states.len() as u64,
            rules: self.rules,
            depth,
            deadlocks: self.deadlocks,
            stop: self.stop,
            failure: self.failure,
            uncovered_claims,
            uncovered,
            memory,
            symmetries: self.normal.order(),
            asymmetries: Vec::new(),
            suspects: self.order_check.as_ref().map_or_else(Vec::new, |o| o.places()),
            parents: self.parents,
            store: self.states,
        }
    }
}

/// Copies a state to the memory. Short states are copied in place, without a call.
#[inline(always)]
fn put(memory: &mut [u64], state: &[u64]) {
    macro_rules! short {
        ($($words:literal)*) => {
            match state.len() {
                $($words => memory[..$words].copy_from_slice(&state[..$words]),)*
                words => memory[..words].copy_from_slice(state),
            }
        };
    }
    short!(1 2 3 4 5 6 7 8)
}

/// True if the memory has another state.
#[inline(always)]
fn differs(memory: &[u64], state: &[u64]) -> bool {
    state.iter().zip(memory).fold(0, |all, (a, b)| all | (a ^ b)) != 0
}
