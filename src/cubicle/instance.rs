//! Small explicit engine over the machine: successors, reachable states, replay of a run. For the
//! prover, which computes reachable states of instances with few processes, and for tests. Large
//! searches use [`crate::model`].
//!
//! Open cells are split only when they are read, so that one state represents many. Cost of
//! [`Machine::reach`]: a hash of the state for each step.

use crate::ground::{Ground, GroundCube};
use crate::machine::{Act, Machine, Memory, StepObstacle};
use crate::system::Claim;
use crate::value::ANY;
use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Diagnostic, Stage, narrow};
use std::ops::ControlFlow::{self, Break, Continue};

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The states, in the order in which they were found; initial ones first.
    pub states: Vec<Box<[u32]>>,
    /// For each state, its predecessor and the step from it; `None` for initial states.
    pub from: Vec<Option<(u32, Act)>>,
    /// True if these are all states: no limit was reached, and no bound on buffers excluded steps.
    pub complete: bool,
    /// The first violation: the state, the claim, and its processes.
    pub violation: Option<(u32, usize, Vec<u32>)>,
    /// Number of steps.
    pub steps: u64,
}

/// A claim, instantiated for all choices of processes.
pub struct PreparedClaim {
    cubes: Vec<(Vec<u32>, GroundCube)>,
}

/// A replayed run.
#[derive(Clone, Debug)]
pub struct ReplayedRun {
    /// The initial state.
    pub start: Vec<u32>,
    /// The steps, including flushes, each with the state after it.
    pub steps: Vec<(Act, Vec<u32>)>,
}

impl Reach {
    /// Returns the run to a state.
    pub fn run(&self, state: u32) -> ReplayedRun {
        let mut steps = Vec::new();
        let mut at = state;
        while let Some((before, act)) = &self.from[at as usize] {
            steps.push((act.clone(), self.states[at as usize].to_vec()));
            at = *before;
        }
        steps.reverse();
        ReplayedRun { start: self.states[at as usize].to_vec(), steps }
    }
}

/// Depth-first search for a run that executes given acts in order, with flushes in between.
struct Replay<'a, 's> {
    machine: &'a Machine<'s>,
    acts: &'a [Act],
    /// The claim that must hold at the end.
    claim: PreparedClaim,
    /// Pairs of the number of executed acts and a state from which the end is unreachable.
    visited: AHashSet<(usize, Vec<u32>)>,
    /// The steps to the current state, with the states after them.
    steps: Vec<(Act, Vec<u32>)>,
    /// The largest number of executed acts.
    deepest: usize,
}

impl Replay<'_, '_> {
    /// Returns true, leaving the steps in place, if the remaining acts lead from a state to one in
    /// which the claim holds. An act is tried before a flush, so that stores stay in buffers as
    /// long as possible.
    fn reaches_claim(&mut self, done: usize, state: &[u32]) -> Result<bool, Diagnostic> {
        if !self.visited.insert((done, state.to_vec())) {
            return Ok(false);
        }
        self.deepest = self.deepest.max(done);
        let machine = self.machine;
        let found = match self.acts.get(done) {
            None => machine.may_hold(state, &self.claim).is_some(),
            Some(act @ Act::Flush(p)) => match machine.state_after_flush(state, *p) {
                Some(next) => self.step(done + 1, act, next)?,
                None => false,
            },
            Some(act @ Act::Fire(t, procs)) => {
                let mut found = false;
                let matches = |g: &&Ground| g.transition == *t && g.procs == *procs;
                for g in machine.ground.iter().filter(matches) {
                    let flow = machine.fire_split(state, g, &mut |next| {
                        Ok(if self.step(done + 1, act, next)? { Break(()) } else { Continue(()) })
                    })?;
                    if flow.is_break() {
                        found = true;
                        break;
                    }
                }
                found
            }
        };
        if found || machine.memory == Memory::Sc {
            return Ok(found);
        }
        for p in 0..machine.layout.n {
            if let Some(next) = machine.state_after_flush(state, p)
                && self.step(done, &Act::Flush(p), next)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    fn step(&mut self, done: usize, act: &Act, next: Vec<u32>) -> Result<bool, Diagnostic> {
        self.steps.push((act.clone(), next.clone()));
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || self.reaches_claim(done, &next))?;
        if !found {
            self.steps.pop();
        }
        Ok(found)
    }
}

impl Machine<'_> {
    /// Instantiates a claim.
    pub fn prepare_claim(&self, claim: &Claim) -> PreparedClaim {
        PreparedClaim { cubes: self.claim_cubes(claim) }
    }
    /// Returns the first choice of processes for which a claim may hold in a state, for some values
    /// of open cells. `None` also if a limit is reached.
    pub fn may_hold(&self, state: &[u32], prepared: &PreparedClaim) -> Option<Vec<u32>> {
        let holds = |cube: &GroundCube| match self.holds(state, cube) {
            Ok(answer) => answer,
            Err(_) => {
                let found = self.split(state.to_vec(), &mut |s| {
                    Ok(if self.holds(s, cube)? { Break(()) } else { Continue(()) })
                });
                match found {
                    Ok(found) => found.is_break(),
                    // Without candidates for a number, some value may satisfy the claim.
                    Err(error) => error.stop.is_none(),
                }
            }
        };
        prepared.cubes.iter().find(|(_, cube)| holds(cube)).map(|(procs, _)| procs.clone())
    }
    /// Calls a function on a state. If it reads an open cell, calls it on the state with each value
    /// of the cell, until it breaks.
    fn split(
        &self,
        state: Vec<u32>,
        f: &mut dyn FnMut(&[u32]) -> Result<ControlFlow<()>, StepObstacle>,
    ) -> Result<ControlFlow<()>, Diagnostic> {
        match f(&state) {
            Ok(flow) => Ok(flow),
            Err(StepObstacle::Fault(d)) => Err(d),
            Err(StepObstacle::Slot(slot)) => {
                for value in
                    self.open_domain(&state, slot).ok_or_else(|| self.undetermined_error(slot))?
                {
                    self.count_choice()?;
                    let mut next = state.clone();
                    next[slot as usize] = value;
                    if self.respects_assumptions(&next) && self.split(next, f)?.is_break() {
                        return Ok(Break(()));
                    }
                }
                Ok(Continue(()))
            }
        }
    }
    /// Calls a function with each step of a state and its result.
    ///
    /// # Errors
    ///
    /// An undetermined number is read.
    pub fn successors(
        &self,
        state: &[u32],
        f: &mut dyn FnMut(Act, Vec<u32>),
    ) -> Result<(), Diagnostic> {
        for g in &self.ground {
            let _ = self.fire_split(state, g, &mut |next| {
                f(Act::Fire(g.transition, g.procs.clone()), next);
                Ok(Continue(()))
            })?;
        }
        for p in 0..self.layout.n {
            if let Some(next) = self.state_after_flush(state, p) {
                f(Act::Flush(p), next);
            }
        }
        Ok(())
    }
    /// Calls a function on each result of an instance of a transition, until it breaks.
    fn fire_split(
        &self,
        state: &[u32],
        g: &Ground,
        f: &mut dyn FnMut(Vec<u32>) -> Result<ControlFlow<()>, Diagnostic>,
    ) -> Result<ControlFlow<()>, Diagnostic> {
        let mut results = Vec::new();
        self.split(state.to_vec(), &mut |s| {
            self.fire(s, g, false, &mut results)?;
            for result in results.drain(..) {
                let mut next = s.to_vec();
                result.into_iter().for_each(|(slot, code)| next[slot as usize] = code);
                if self.respects_assumptions(&next)
                    && f(next).map_err(StepObstacle::Fault)?.is_break()
                {
                    return Ok(Break(()));
                }
            }
            Ok(Continue(()))
        })
    }
    fn state_after_flush(&self, state: &[u32], process: u32) -> Option<Vec<u32>> {
        let changes = self.flush(state, process)?;
        let mut next = state.to_vec();
        changes.into_iter().for_each(|(slot, code)| next[slot as usize] = code);
        self.respects_assumptions(&next).then_some(next)
    }
    /// Searches breadth first until all states are found, a limit is reached, or, if
    /// `stop_at_violation`, a claim of [`crate::System::unsafes`] holds.
    ///
    /// # Errors
    ///
    /// As [`Machine::successors`] and [`Machine::initial_states`].
    pub fn reach(
        &self,
        most: usize,
        stop_at_violation: bool,
        budget: &Budget,
    ) -> Result<Reach, Diagnostic> {
        let mut reach = Reach::default();
        let mut index: AHashMap<Box<[u32]>, u32> = AHashMap::new();
        let unsafes: Vec<_> = self.system.unsafes.iter().map(|c| self.prepare_claim(c)).collect();
        for state in self.initial_states()? {
            self.add(&mut reach, &mut index, &unsafes, state, None);
        }
        let mut at = 0;
        while at < reach.states.len() {
            if stop_at_violation && reach.violation.is_some() || reach.states.len() > most {
                return Ok(reach);
            }
            if at % 1024 == 0 && budget.check(at as u64).is_err() {
                return Ok(reach);
            }
            let state = reach.states[at].clone();
            self.successors(&state, &mut |act, next| {
                reach.steps += 1;
                self.add(&mut reach, &mut index, &unsafes, next, Some((narrow::index(at), act)));
            })?;
            at += 1;
        }
        let is_cut = self.was_cut() || self.was_stopped();
        reach.complete = !(is_cut || stop_at_violation && reach.violation.is_some());
        Ok(reach)
    }
    fn add(
        &self,
        reach: &mut Reach,
        index: &mut AHashMap<Box<[u32]>, u32>,
        unsafes: &[PreparedClaim],
        state: Vec<u32>,
        from: Option<(u32, Act)>,
    ) {
        let state: Box<[u32]> = state.into();
        if index.contains_key(&state) {
            return;
        }
        let id = narrow::index(reach.states.len());
        index.insert(state.clone(), id);
        if reach.violation.is_none() {
            reach.violation = unsafes
                .iter()
                .enumerate()
                .find_map(|(i, a)| Some((id, i, self.may_hold(&state, a)?)));
        }
        reach.states.push(state);
        reach.from.push(from);
    }
    /// Replays transitions from some initial state to one in which a claim holds for the given
    /// processes. Flushes may be omitted in `acts`; the result contains them.
    ///
    /// # Errors
    ///
    /// No run executes these transitions, with the first impossible one; or the claim does not hold
    /// at the end of any run.
    pub fn replay(
        &self,
        acts: &[Act],
        claim: &Claim,
        procs: &[u32],
    ) -> Result<ReplayedRun, Diagnostic> {
        let Some(cube) =
            self.claim_cubes(claim).into_iter().find(|(p, _)| p == procs).map(|(_, c)| c)
        else {
            return Err(Diagnostic::new(
                Stage::Internal,
                "the unsafe claim cannot hold for these processes",
            ));
        };
        let claim = PreparedClaim { cubes: vec![(procs.to_vec(), cube)] };
        let mut replay = Replay {
            machine: self,
            acts,
            claim,
            visited: AHashSet::new(),
            steps: Vec::new(),
            deepest: 0,
        };
        for start in self.initial_states()? {
            if replay.reaches_claim(0, &start)? {
                return Ok(ReplayedRun { start, steps: replay.steps });
            }
        }
        let message = match acts.get(replay.deepest) {
            Some(act) => format!(
                "step {} of the run, `{}`, is not enabled",
                replay.deepest + 1,
                self.act_text(act)
            ),
            None => "the run is possible, but the unsafe claim does not hold at its end".into(),
        };
        Err(Diagnostic::new(Stage::Internal, message))
    }
    /// Chooses values for the open cells of a run, so that the claim holds for the processes at the
    /// end and each step is enabled. A cell that no step reads before it is written gets a value
    /// that no assumption contradicts.
    pub fn choose_open_values(
        &self,
        run: &ReplayedRun,
        claim: &Claim,
        procs: &[u32],
    ) -> Option<ReplayedRun> {
        let cube = self.claim_cubes(claim).into_iter().find(|(p, _)| p == procs)?.1;
        let mut last: Option<Vec<u32>> = None;
        let end = run.steps.last().map_or(&run.start, |s| &s.1);
        let tried = self.split(end.clone(), &mut |s| {
            if self.holds(s, &cube)? {
                last = Some(s.to_vec());
                return Ok(Break(()));
            }
            Ok(Continue(()))
        });
        // Without candidates for a number, no values are chosen.
        let _ = tried.ok()?;
        let mut after = last?;
        for slot in (0..self.layout.cells).filter(|s| after[*s as usize] == ANY).collect::<Vec<_>>()
        {
            let mut fits = self.open_domain(&after, slot)?.into_iter().map(|value| {
                let mut state = after.clone();
                state[slot as usize] = value;
                state
            });
            after = fits.find(|s| self.respects_assumptions(s))?;
        }
        let mut states = vec![after];
        let befores = std::iter::once(&run.start).chain(run.steps.iter().map(|s| &s.1));
        let befores: Vec<&Vec<u32>> = befores.take(run.steps.len()).collect();
        for (before, (act, _)) in befores.into_iter().zip(&run.steps).rev() {
            let after = &states[states.len() - 1];
            let before = self.open_values_before(before, act, after)?;
            states.push(before);
        }
        let start = states.pop()?;
        states.reverse();
        Some(ReplayedRun {
            start,
            steps: run.steps.iter().map(|s| s.0.clone()).zip(states).collect(),
        })
    }
    /// Chooses values for the open cells of a state, so that a step leads to a state without open
    /// cells.
    fn open_values_before(&self, open: &[u32], act: &Act, after: &[u32]) -> Option<Vec<u32>> {
        let mut found: Option<(Vec<u32>, Vec<u32>)> = None;
        match act {
            Act::Flush(p) => {
                let written = self.flush(open, *p)?.into_iter().map(|c| c.0).collect();
                found = Some((open.to_vec(), written));
            }
            Act::Fire(t, procs) => {
                let matches = |g: &&Ground| g.transition == *t && g.procs == *procs;
                let mut results = Vec::new();
                for g in self.ground.iter().filter(matches) {
                    let _ = self
                        .split(open.to_vec(), &mut |s| {
                            self.fire(s, g, false, &mut results)?;
                            for result in results.drain(..) {
                                let mut next = s.to_vec();
                                result.iter().for_each(|&(slot, code)| next[slot as usize] = code);
                                let agrees = |(n, a): (&u32, &u32)| *n == ANY || n == a;
                                if next.iter().zip(after).all(agrees) {
                                    let written = result.into_iter().map(|c| c.0).collect();
                                    found = Some((s.to_vec(), written));
                                    return Ok(Break(()));
                                }
                            }
                            Ok(Continue(()))
                        })
                        .ok()?;
                    if found.is_some() {
                        break;
                    }
                }
            }
        }
        let (mut state, written) = found?;
        for slot in (0..self.layout.cells).filter(|s| open[*s as usize] == ANY) {
            if state[slot as usize] != ANY {
                continue;
            }
            let mut values = vec![after[slot as usize]];
            if written.contains(&slot) {
                values.extend(self.open_domain(&state, slot).into_iter().flatten());
            }
            let mut fits = values.into_iter().map(|value| {
                let mut state = state.clone();
                state[slot as usize] = value;
                state
            });
            state = fits.find(|s| self.respects_assumptions(s))?;
        }
        Some(state)
    }
    /// Prints a step: `t1(1,2)`, `flush(1)`. Existential processes of the guard are omitted.
    pub fn act_text(&self, act: &Act) -> String {
        match act {
            Act::Flush(p) => format!("flush({})", p + 1),
            Act::Fire(t, procs) => {
                let t = &self.system.transitions[*t as usize];
                let args: Vec<_> =
                    procs.iter().take(t.declared).map(|p| (p + 1).to_string()).collect();
                if args.is_empty() {
                    t.name.clone()
                } else {
                    format!("{}({})", t.name, args.join(","))
                }
            }
        }
    }
    /// Prints a state: the cells with a value, then the non-empty buffers.
    pub fn state_text(&self, state: &[u32]) -> String {
        let cells = (0..self.layout.cells)
            .map(|s| format!("{} = {}", self.cell_name(s), self.code_text(s, state[s as usize])));
        let buffers = (0..self.layout.n).filter(|p| self.buffer_length(state, *p) > 0).map(|p| {
            let buffer = state[self.buffer_slot(p)];
            format!("buffer #{} = {}", p + 1, self.buffer_text(buffer))
        });
        cells.chain(buffers).collect::<Vec<_>>().join(", ")
    }
    /// True if every number in a state has a value.
    pub fn numbers_are_known(&self, state: &[u32]) -> bool {
        let numeric = |s: u32| crate::ground::sort(self.system, &self.layout, s).is_numeric();
        (0..self.layout.cells).all(|s| state[s as usize] != ANY || !numeric(s))
    }
    /// Prints a slot's value.
    pub(crate) fn code_text(&self, slot: u32, code: u32) -> String {
        match self.val(slot, code) {
            crate::value::Val::Any => "?".into(),
            crate::value::Val::Proc(p) if p >= self.layout.n => "other".into(),
            crate::value::Val::Proc(p) => format!("#{}", p + 1),
            crate::value::Val::Cons(c) => self.system.constructor(c).name.clone(),
            crate::value::Val::Number(n) => n.to_string(),
            crate::value::Val::Element(e) => format!("element {e}"),
        }
    }
    /// Prints a buffer, oldest entry first.
    pub(crate) fn buffer_text(&self, buffer: u32) -> String {
        let entries = self.buffers.get(buffer);
        let texts = entries.iter().map(|e| {
            let cells = self.shapes[e.shape as usize]
                .iter()
                .zip(&e.values)
                .filter(|(_, v)| **v != crate::value::NOTHING);
            cells
                .map(|(s, v)| format!("{} := {}", self.cell_name(*s), self.code_text(*s, *v)))
                .collect::<Vec<_>>()
                .join(" and ")
        });
        format!("[{}]", texts.collect::<Vec<_>>().join("; "))
    }
}
