//! Growing set of reachable states of one instance, from breadth-first exploration and from runs
//! that a search has found. It serves to refute approximations, never to prove.
//!
//! States are stored by columns: for each cell and value the set of states, as bits, and the same
//! for the values that some process may still read from the cell. A conjunction over finite domains
//! is a conjunction of columns; arithmetic, order and stages are tested on the remaining states one
//! by one. Exploration is limited by numbers of states and of tried steps, so that nothing depends
//! on the clock.
//!
//! If `init` leaves cells open, the number of initial states is unbounded. Only a few are used, so
//! that the exploration proceeds beyond them.

use crate::atom::{Atom, Signature};
use crate::cube::{Cube, Mix};
use crate::initial::try_arrangements;
use crate::instance::{Instance, InstanceState, PreparedAtoms};
use crate::parallel;
use crate::rules::Rules;
use mu_base::narrow;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

/// Limit on initial states: this fraction of the requested states, or [`LEAST_INITIAL`] if that is
/// more.
const PART_INITIAL: usize = 16;
const LEAST_INITIAL: usize = 32;
/// Limit on tried bindings of rules, for each requested state.
const TRIES: usize = 100;
/// Number of writes that a process may lag behind in exploration and in repeated runs.
const LAG: usize = 2;
const LAG_ALONG: usize = 6;
/// Number of column words that cost as much as one state.
const WORDS_OF_STATE: usize = 20;
/// Limit on the states at each step of a repeated run, and on those explored from its end.
const MAX_ALONG: usize = 64;
const MAX_BEYOND: usize = 300;

/// Sets of states, by cell and value.
type Columns = Vec<HashMap<i64, Vec<u64>, BuildHasherDefault<Mix>>>;

/// Numbers of waiting states from which their steps are computed by several threads, and of states
/// per portion.
const MANY_WAITING: usize = 512;
const PART_WAITING: usize = 64;

/// The states of one instance.
pub struct Bank<'a> {
    /// The instance.
    pub instance: Instance<'a>,
    /// The same instance with a larger lag.
    along: Instance<'a>,
    /// True if it was explored from its initial states, not only along runs.
    pub explored: bool,
    /// True if it includes initial states in which each cell has a value of the instance.
    determined: bool,
    /// The assumed cubes, for each choice of their processes. They contain no states of the system.
    assumed: Vec<PreparedAtoms>,
    fixed: usize,
    states: Vec<InstanceState>,
    seen: HashSet<InstanceState, BuildHasherDefault<Mix>>,
    /// For each cell, its values with the states that have them.
    columns: Columns,
    /// The same for values that the cell has or had before writes that some process may not have
    /// seen.
    visible: Columns,
    /// The first unexpanded state.
    at: usize,
}

impl<'a> Bank<'a> {
    /// Creates the empty set for this number of processes; states in an assumed cube are excluded.
    pub fn new(rules: &'a Rules, processes: usize, assumed: &[Cube]) -> Bank<'a> {
        let instance = Instance::new(rules, processes, LAG);
        let along = Instance::new(rules, processes, LAG_ALONG);
        let columns: Columns = vec![HashMap::default(); instance.cells];
        let named: Vec<u8> = (0..narrow::byte(rules.signature.fixed)).collect();
        let assumed = assumed
            .iter()
            .filter(|c| c.processes <= processes)
            .flat_map(|c| place_cube(&instance, c, &named))
            .collect();
        Bank {
            instance,
            along,
            explored: false,
            determined: false,
            assumed,
            fixed: rules.signature.fixed,
            states: Vec::new(),
            seen: HashSet::default(),
            visible: columns.clone(),
            columns,
            at: 0,
        }
    }
    fn push(&mut self, state: InstanceState) -> bool {
        if self.seen.contains(&state)
            || self.assumed.iter().any(|c| self.instance.satisfies(&state, c))
        {
            return false;
        }
        let i = self.states.len();
        let mark = |columns: &mut Columns, cell: usize, value: i64| {
            let column = columns[cell].entry(value).or_default();
            column.resize(i / 64 + 1, 0);
            column[i / 64] |= 1 << (i % 64);
        };
        for (cell, v) in state.values.iter().enumerate() {
            mark(&mut self.columns, cell, *v);
        }
        if self.instance.has_views() {
            let before =
                state.writes.iter().flat_map(|w| &w.old).map(|(cell, v)| (*cell as usize, *v));
            for (cell, v) in state.values.iter().copied().enumerate().chain(before) {
                mark(&mut self.visible, cell, v);
            }
        }
        self.seen.insert(state.clone());
        self.states.push(state);
        true
    }
    /// Returns the known states.
    pub fn states(&self) -> &[InstanceState] {
        &self.states
    }
    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.states.len()
    }
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
    /// Returns the processes that are constants.
    fn constant_processes(&self) -> Vec<u8> {
        (0..narrow::byte(self.fixed)).collect()
    }
    /// Explores up to `most` states. Returns true if these are all. The result does not depend on
    /// the threads.
    pub fn explore(&mut self, most: usize, threads: usize, stop: &dyn Fn() -> bool) -> bool {
        let mut tries = most.saturating_mul(TRIES);
        if !self.explored {
            self.explored = true;
            for s in self.instance.initial(LEAST_INITIAL, None, true) {
                self.push(s);
            }
        }
        let all = self.go_on(most / 2, &mut tries, threads, stop);
        if !self.determined && (all || self.states.len() >= most / 2) {
            self.determined = true;
            for s in self.instance.initial((most / PART_INITIAL).max(LEAST_INITIAL), None, false) {
                self.push(s);
            }
        }
        self.go_on(most, &mut tries, threads, stop)
    }
    /// Expands further states up to the limit.
    fn go_on(
        &mut self,
        most: usize,
        tries: &mut usize,
        threads: usize,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        let bindings = self.instance.bindings().max(1);
        while self.at < self.states.len() {
            // Small portions, so that little work is lost at the limit.
            let waiting = &self.states[self.at..];
            let count = if waiting.len() < MANY_WAITING { 1 } else { MANY_WAITING };
            let steps = |i: usize| {
                let mut next = Vec::new();
                self.instance.successors(&waiting[i], &mut next);
                next
            };
            for next in parallel::map(threads, count, PART_WAITING, steps) {
                if self.states.len() >= most
                    || *tries < bindings
                    || (self.at.is_multiple_of(256) && stop())
                {
                    return false;
                }
                *tries -= bindings;
                self.at += 1;
                for s in next {
                    self.push(s);
                }
            }
        }
        true
    }
    /// Executes the steps (rule, processes) from the initial states in a cube with the first
    /// processes. Adds the states on the path and some after its end.
    pub fn follow(&mut self, rules: &Rules, start: &Cube, steps: &[(usize, Vec<u8>)]) {
        let mut here: Vec<InstanceState> =
            self.instance.initial(MAX_ALONG * 16, Some(start), false);
        here.truncate(MAX_ALONG);
        let mut next = Vec::new();
        for (rule, binding) in steps {
            for s in &here {
                self.along.step(s, &rules.rules[*rule], binding, &mut next);
            }
            for s in here.drain(..) {
                self.push(s);
            }
            let mut reached: HashSet<InstanceState, BuildHasherDefault<Mix>> = HashSet::default();
            here.extend(next.drain(..).filter(|s| reached.insert(s.clone())).take(MAX_ALONG));
            if here.is_empty() {
                return;
            }
        }
        let from = self.states.len();
        for s in here {
            self.push(s);
        }
        let mut at = from;
        while at < self.states.len() && self.states.len() < from + MAX_BEYOND {
            self.along.successors(&self.states[at], &mut next);
            at += 1;
            for s in next.drain(..) {
                self.push(s);
            }
        }
    }
    /// True if some state is in the cube; adds the cost to `spent`, in units of inspected states.
    pub fn meets(&self, signature: &Signature, cube: &Cube, spent: &mut u64) -> bool {
        let processes = narrow::byte(self.instance.processes);
        try_arrangements(cube.processes, processes, &mut self.constant_processes(), &mut |place| {
            self.has(signature, cube, place, spent)
        })
    }
    fn has(&self, signature: &Signature, cube: &Cube, place: &[u8], spent: &mut u64) -> bool {
        let words = self.states.len().div_ceil(64);
        *spent += 1;
        let mut left: Option<Vec<u64>> = None;
        let of_columns = |a: &&Atom| matches!(a, Atom::In(c, _) if c.view().is_none());
        for a in &cube.atoms {
            let Atom::In(c, set) = a else { continue };
            // Every value in a view is among the visible ones.
            let columns = if c.view().is_none() { &self.columns } else { &self.visible };
            let c = c.current();
            let cell = self.instance.cell(c.map(|p| place[usize::from(p)]));
            let mut union = vec![0u64; words];
            *spent += (words / WORDS_OF_STATE) as u64;
            for (v, column) in &columns[cell] {
                if self.instance.member(*v, *set, signature.sort(c), place) {
                    for (u, w) in union.iter_mut().zip(column) {
                        *u |= w;
                    }
                }
            }
            match &mut left {
                None => left = Some(union),
                Some(l) => {
                    let mut any = 0;
                    for (x, y) in l.iter_mut().zip(&union) {
                        *x &= y;
                        any |= *x;
                    }
                    if any == 0 {
                        return false;
                    }
                }
            }
        }
        let mut rest = cube.atoms.iter().filter(|a| !of_columns(a)).peekable();
        if rest.peek().is_none() {
            return left.map_or(!self.states.is_empty(), |l| l.iter().any(|w| *w != 0));
        }
        let rest = self.instance.prepare(rest, place);
        let all = |i: usize| left.as_ref().is_none_or(|l| l[i / 64] & (1 << (i % 64)) != 0);
        (0..self.states.len()).any(|i| {
            all(i) && {
                *spent += 1;
                self.instance.satisfies(&self.states[i], &rest)
            }
        })
    }
}

/// Prepares a cube for each choice of processes of the instance that begins with those in `named`.
fn place_cube(instance: &Instance<'_>, cube: &Cube, named: &[u8]) -> Vec<PreparedAtoms> {
    let mut all = Vec::new();
    try_arrangements(
        cube.processes,
        narrow::byte(instance.processes),
        &mut named.to_vec(),
        &mut |place| {
            all.push(instance.prepare(cube.atoms.iter(), place));
            false
        },
    );
    all
}
