//! The machine as a small explicit engine of its own: successors, reachable states, replay of a
//! run. For the prover, which asks instances of few processes what is reachable, and for tests.
//! (Large searches go through the waist: [`crate::model`].)
//!
//! Open cells are split when they are asked for, so that one state here stands for many. Cost of
//! [`Machine::reach`]: a hash of the state for each step.

use crate::ground::{Ground, GroundCube};
use crate::machine::{Act, Machine, Memory, Need};
use crate::system::Claim;
use crate::value::ANY;
use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Diagnostic, Stage};
use std::ops::ControlFlow::{self, Break, Continue};

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The states, in the order in which they were found; initial ones first.
    pub states: Vec<Box<[u32]>>,
    /// For each state, the state before it and what was done; none for initial ones.
    pub from: Vec<Option<(u32, Act)>>,
    /// Whether these are all: no limit came first, and no bound on buffers left steps out.
    pub complete: bool,
    /// The first state found where a claim holds that must not, with the claim and its processes.
    pub violation: Option<(u32, usize, Vec<u32>)>,
    /// Number of steps.
    pub steps: u64,
}

/// A claim for all choices of processes, ready to be asked of states.
pub struct Asked {
    cubes: Vec<(Vec<u32>, GroundCube)>,
}

/// A run that was replayed.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The first state.
    pub start: Vec<u32>,
    /// What was done, flushes included, and the state after it.
    pub steps: Vec<(Act, Vec<u32>)>,
}

impl Reach {
    /// The run to a state.
    pub fn run(&self, state: u32) -> Replayed {
        let mut steps = Vec::new();
        let mut at = state;
        while let Some((before, act)) = &self.from[at as usize] {
            steps.push((act.clone(), self.states[at as usize].to_vec()));
            at = *before;
        }
        steps.reverse();
        Replayed { start: self.states[at as usize].to_vec(), steps }
    }
}

/// A depth-first search for a run that does given acts in their order, with flushes in between.
struct Replay<'a, 's> {
    machine: &'a Machine<'s>,
    acts: &'a [Act],
    /// What must hold at the end.
    claim: Asked,
    /// Pairs of the number of acts done and a state, from which the end is not reached.
    visited: AHashSet<(usize, Vec<u32>)>,
    /// The steps to the current state, with the states after them.
    steps: Vec<(Act, Vec<u32>)>,
    /// The largest number of acts done.
    deepest: usize,
}

impl Replay<'_, '_> {
    /// Returns true, with the steps left in place, if the remaining acts lead from a state to one
    /// where the claim holds. An act comes before a flush, so that stores stay in buffers as long
    /// as they can.
    fn reaches_claim(&mut self, done: usize, state: &[u32]) -> Result<bool, Diagnostic> {
        if !self.visited.insert((done, state.to_vec())) {
            return Ok(false);
        }
        self.deepest = self.deepest.max(done);
        let machine = self.machine;
        let found = match self.acts.get(done) {
            None => machine.may_hold(state, &self.claim).is_some(),
            Some(act @ Act::Flush(p)) => match machine.flushed(state, *p) {
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
            if let Some(next) = machine.flushed(state, p)
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
    /// A claim, made ready.
    pub fn ask(&self, claim: &Claim) -> Asked {
        Asked { cubes: self.claim_cubes(claim) }
    }
    /// Returns the first choice of processes for which a claim holds in a state, with any values in
    /// open cells. `None` as well if a limit comes first.
    pub fn may_hold(&self, state: &[u32], asked: &Asked) -> Option<Vec<u32>> {
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
        asked.cubes.iter().find(|(_, cube)| holds(cube)).map(|(procs, _)| procs.clone())
    }
    /// Runs a function on a state; if it reads an open cell, on the state with each value of the
    /// cell, until it breaks.
    fn split(
        &self,
        state: Vec<u32>,
        f: &mut dyn FnMut(&[u32]) -> Result<ControlFlow<()>, Need>,
    ) -> Result<ControlFlow<()>, Diagnostic> {
        match f(&state) {
            Ok(flow) => Ok(flow),
            Err(Need::Fault(d)) => Err(d),
            Err(Need::Slot(slot)) => {
                for value in self.domain(slot).ok_or_else(|| self.undetermined(slot))? {
                    self.count_choice()?;
                    let mut next = state.clone();
                    next[slot as usize] = value;
                    if self.assumed(&next) && self.split(next, f)?.is_break() {
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
    /// A number is asked for that nothing determines.
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
            if let Some(next) = self.flushed(state, p) {
                f(Act::Flush(p), next);
            }
        }
        Ok(())
    }
    /// Runs a function on each result of an instance of a transition, until it breaks.
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
                if self.assumed(&next) && f(next).map_err(Need::Fault)?.is_break() {
                    return Ok(Break(()));
                }
            }
            Ok(Continue(()))
        })
    }
    fn flushed(&self, state: &[u32], process: u32) -> Option<Vec<u32>> {
        let changes = self.flush(state, process)?;
        let mut next = state.to_vec();
        changes.into_iter().for_each(|(slot, code)| next[slot as usize] = code);
        self.assumed(&next).then_some(next)
    }
    /// Searches breadth first, until all is found, a limit comes first, or, if `stop_at_violation`,
    /// a claim of [`crate::System::unsafes`] holds.
    ///
    /// # Errors
    /// As [`Machine::successors`] and [`Machine::initial_states`].
    pub fn reach(
        &self,
        most: usize,
        stop_at_violation: bool,
        budget: &Budget,
    ) -> Result<Reach, Diagnostic> {
        let mut reach = Reach::default();
        let mut index: AHashMap<Box<[u32]>, u32> = AHashMap::new();
        let unsafes: Vec<_> = self.system.unsafes.iter().map(|c| self.ask(c)).collect();
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
                self.add(&mut reach, &mut index, &unsafes, next, Some((at as u32, act)));
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
        unsafes: &[Asked],
        state: Vec<u32>,
        from: Option<(u32, Act)>,
    ) {
        let state: Box<[u32]> = state.into();
        if index.contains_key(&state) {
            return;
        }
        let id = reach.states.len() as u32;
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
    /// Replays a run of transitions from some initial state to one where a claim holds of the given
    /// processes. Flushes need not be told: any may happen in between. The result is a run,
    /// flushes included.
    ///
    /// # Errors
    /// No run does these transitions, with the first that cannot happen; or the claim does not hold
    /// at the end of any.
    pub fn replay(
        &self,
        acts: &[Act],
        claim: &Claim,
        procs: &[u32],
    ) -> Result<Replayed, Diagnostic> {
        let Some(cube) =
            self.claim_cubes(claim).into_iter().find(|(p, _)| p == procs).map(|(_, c)| c)
        else {
            return Err(Diagnostic::new(
                Stage::Internal,
                "what must not hold cannot hold of these processes",
            ));
        };
        let claim = Asked { cubes: vec![(procs.to_vec(), cube)] };
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
                return Ok(Replayed { start, steps: replay.steps });
            }
        }
        let message = match acts.get(replay.deepest) {
            Some(act) => format!(
                "step {} of the run, `{}`, cannot happen there",
                replay.deepest + 1,
                self.act_text(act)
            ),
            None => "the run can be done and what must not hold does not hold at its end".into(),
        };
        Err(Diagnostic::new(Stage::Internal, message))
    }
    /// A run with a value in each open cell, that of the state after it, and at the end one with
    /// which the claim holds of the processes. Open cells are those that no step asks for
    /// before they are written or the run ends, so any value fits that is not contradicted by an
    /// assumption.
    pub fn settled(&self, run: &Replayed, claim: &Claim, procs: &[u32]) -> Option<Replayed> {
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
        // Where a number has no candidates, nothing is settled.
        let _ = tried.ok()?;
        let mut after = last?;
        for slot in (0..self.layout.cells).filter(|s| after[*s as usize] == ANY).collect::<Vec<_>>()
        {
            let mut fits = self.domain(slot)?.into_iter().map(|value| {
                let mut state = after.clone();
                state[slot as usize] = value;
                state
            });
            after = fits.find(|s| self.assumed(s))?;
        }
        let mut states = vec![after];
        for state in run
            .steps
            .iter()
            .rev()
            .skip(1)
            .map(|s| &s.1)
            .chain((!run.steps.is_empty()).then_some(&run.start))
        {
            let after = &states[states.len() - 1];
            let cells = state
                .iter()
                .enumerate()
                .map(|(s, code)| if *code == ANY { after[s] } else { *code });
            states.push(cells.collect());
        }
        let start = states.pop()?;
        states.reverse();
        Some(Replayed { start, steps: run.steps.iter().map(|s| s.0.clone()).zip(states).collect() })
    }
    /// A step as text: `t1(1,2)`, `flush(1)`. Processes that the guard alone chooses are not shown.
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
    /// A state as text: the cells that hold something, then the buffers that do.
    pub fn state_text(&self, state: &[u32]) -> String {
        let cells = (0..self.layout.cells)
            .map(|s| format!("{} = {}", self.cell_name(s), self.code_text(s, state[s as usize])));
        let buffers = (0..self.layout.n).filter(|p| self.buffered(state, *p) > 0).map(|p| {
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
    /// A slot's value as text.
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
    /// A buffer as text, oldest entry first.
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
