//! Store-buffer safety: whether a program has the same executions under total store order as under sequential consistency.
//!
//! In: a [`Program`]. Out: a [`Robustness`]: robust, or a shortest *borderline* interleaving, which is sequentially consistent and ends before a
//! load that a store buffer would let take a value that no interleaving allows. Only sequentially consistent interleavings are explored; a
//! program is safe exactly if none is borderline (Burckhardt, Musuvathi 2008, theorems 7, 9, 10).
//!
//! - [`check`] searches breadth first over states of the machine together with the monitor's ([`Monitor::key`], which recurs in loops).
//! - [`count`] goes through interleavings one by one, without a store, as the paper does: with sleep sets (Godefroid 1996), so that of those
//!   that differ in the order of independent events only one is met, or all with at most so many preemptions. An interleaving that comes back
//!   to a state that it was in, as a waiting thread does, is not followed further.
//!
//! Steps without memory and fences commute with all that other threads do, and are taken at once.

use ahash::AHashSet;

use super::monitor::{Action, Monitor};
use crate::reach::{Interleaving, Moved};
use mu_base::{Budget, Diagnostic, Stop};
use mu_program::machine::{Event, Machine};
use mu_program::memory;
use mu_program::{Access, Fence, Program};

/// An interleaving and the load that makes it borderline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Borderline {
    /// The threads that go, step by step: each runs its next step.
    pub schedule: Vec<usize>,
    /// The thread whose load it is.
    pub thread: usize,
    /// The cell.
    pub cell: usize,
    /// What the load takes next in memory.
    pub newest: u64,
    /// What a store buffer lets it take.
    pub stale: u64,
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct Robustness {
    /// A borderline interleaving.
    pub borderline: Option<Borderline>,
    /// States of machine and monitor together.
    pub states: u64,
    /// Why the search ended.
    pub stop: Stop,
}

impl Robustness {
    /// Whether the program is robust, if that is known.
    pub fn robust(&self) -> Option<bool> {
        match (&self.borderline, &self.stop) {
            (Some(_), _) => Some(false),
            (None, Stop::Complete) => Some(true),
            _ => None,
        }
    }
}

/// Numbers of interleavings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Interleavings to the end of all threads, or to a state that recurs.
    pub interleavings: u64,
    /// Those that are borderline somewhere.
    pub borderline: u64,
    /// Those that ended in a state that recurs.
    pub recurring: u64,
    /// Why the count ended.
    pub stop: Stop,
}

/// The machine under sequential consistency, with a monitor.
pub(super) struct Watched {
    pub machine: Machine,
}

/// A state of both.
#[derive(Clone)]
pub(super) struct State {
    pub slots: Box<[u32]>,
    pub monitor: Monitor,
}

/// Steps without memory that a thread takes in a row before it counts as waiting.
const PATIENCE: usize = 1 << 12;

impl Watched {
    pub fn new(program: Program) -> Self {
        Self { machine: Machine::new(program, memory::SC, None, &[]) }
    }
    pub fn initial(&self) -> State {
        let (threads, cells) = (self.machine.program.threads.len(), self.machine.program.cells.len());
        State { slots: self.machine.initial().into(), monitor: Monitor::new(threads, cells) }
    }
    /// What a thread will do to memory next; none at its end. Its cell is known only when it runs if a register has the address.
    pub fn next(&self, thread: usize, state: &State) -> Option<&Access> {
        let at = self.machine.place(thread, &state.slots);
        self.machine.program.threads[thread].steps.get(at).map(|s| &s.access)
    }
    /// Lets a thread take a step.
    pub fn step(&self, thread: usize, state: &mut State) -> Result<Option<Action>, Diagnostic> {
        let Some(event) = self.machine.advance(thread, &mut state.slots)? else { return Ok(None) };
        let Some(action) = action(event) else { return Ok(None) };
        state.monitor.take(thread, action);
        Ok(Some(action))
    }
    /// Lets all threads take steps without memory, and fences.
    pub fn settle(&self, state: &mut State, schedule: &mut Vec<usize>) -> Result<(), Diagnostic> {
        for t in 0..self.machine.program.threads.len() {
            for _ in 0..PATIENCE {
                match self.next(t, state) {
                    Some(Access::None | Access::Fence(_)) => {
                        self.step(t, state)?;
                        schedule.push(t);
                    }
                    _ => break,
                }
            }
        }
        Ok(())
    }
    /// What a thread's next step does to which cell. That stays so until another thread writes that cell.
    pub fn intent(&self, thread: usize, state: &State) -> Result<Option<Action>, Diagnostic> {
        if self.next(thread, state).is_none() {
            return Ok(None);
        }
        let mut probe = state.slots.clone();
        Ok(self.machine.advance(thread, &mut probe)?.map(|event| action(event).unwrap_or(Action::Fence)))
    }
    /// Whether a thread's next load makes an interleaving borderline there: the cell and the oldest store that it need not see.
    pub fn borderline(&self, thread: usize, intent: Action, state: &State) -> Option<(usize, u32)> {
        let Action::Load(cell) = intent else { return None };
        state.monitor.borderline(thread, cell).map(|number| (cell, number))
    }
}

/// What an event is to the monitor.
fn action(event: Event) -> Option<Action> {
    match event {
        Event::Read { cell, .. } => Some(Action::Load(cell as usize)),
        Event::Write { cell, .. } => Some(Action::Store(cell as usize)),
        Event::Update { cell, wrote: true, .. } => Some(Action::Locked(cell as usize)),
        Event::Update { cell, .. } => Some(Action::Test(cell as usize)),
        Event::Fence(Fence::Full) => Some(Action::Fence),
        Event::Fence(_) | Event::Local | Event::Flush { .. } => None,
    }
}

/// Whether a program is robust.
pub fn check(program: &Program, budget: &Budget) -> Result<Robustness, Diagnostic> {
    let watched = Watched::new(program.clone());
    let threads = program.threads.len();
    // Of each state: the one before and what went; monitors by number.
    let mut found: Vec<(Option<u32>, Vec<usize>)> = Vec::new();
    let mut seen: AHashSet<(Box<[u32]>, Vec<u32>)> = AHashSet::new();
    let mut level: Vec<(u32, State)> = Vec::new();
    let mut start = watched.initial();
    let mut schedule = Vec::new();
    watched.settle(&mut start, &mut schedule)?;
    seen.insert((start.slots.clone(), start.monitor.key()));
    found.push((None, schedule));
    level.push((0, start));
    while !level.is_empty() {
        let mut next_level = Vec::new();
        for (number, state) in &level {
            if let Err(stop) = budget.check(seen.len() as u64).and_then(|()| budget.check_memory()) {
                return Ok(Robustness { borderline: None, states: seen.len() as u64, stop });
            }
            for t in 0..threads {
                let Some(intent) = watched.intent(t, state)? else { continue };
                if let Some((cell, store)) = watched.borderline(t, intent, state) {
                    let mut at = Some(*number);
                    let mut parts = Vec::new();
                    while let Some(state) = at {
                        let (before, part) = &found[state as usize];
                        parts.push(part);
                        at = *before;
                    }
                    let schedule: Vec<usize> = parts.into_iter().rev().flatten().copied().collect();
                    let (stale, newest) = values(program, &schedule, cell, store - 1)?;
                    let borderline = Some(Borderline { schedule, thread: t, cell, newest, stale });
                    return Ok(Robustness { borderline, states: seen.len() as u64, stop: Stop::Complete });
                }
                let mut next = state.clone();
                let mut schedule = vec![t];
                watched.step(t, &mut next)?;
                watched.settle(&mut next, &mut schedule)?;
                if seen.insert((next.slots.clone(), next.monitor.key())) {
                    found.push((Some(*number), schedule));
                    next_level.push((found.len() as u32 - 1, next));
                }
            }
        }
        level = next_level;
    }
    Ok(Robustness { borderline: None, states: seen.len() as u64, stop: Stop::Complete })
}

/// The value of a store to a cell by number, and of the newest one, after a schedule.
fn values(program: &Program, schedule: &[usize], cell: usize, number: u32) -> Result<(u64, u64), Diagnostic> {
    let watched = Watched::new(program.clone());
    let mut state = watched.initial();
    let mut history = vec![program.cells[cell].initial];
    for &t in schedule {
        match watched.step(t, &mut state)? {
            Some(Action::Store(c) | Action::Locked(c)) if c == cell => history.push(watched.machine.cell(cell, &state.slots)),
            _ => {}
        }
    }
    let newest = history[history.len() - 1];
    let stale = history.get(number as usize).copied();
    Ok((stale.ok_or_else(|| Diagnostic::internal(format!("the schedule has no store {number} to the cell")))?, newest))
}

/// A place of the search for interleavings.
struct Frame {
    state: State,
    /// What each thread does next.
    intents: Vec<Option<Action>>,
    /// Threads that need not go here: what they do was done before in another order.
    asleep: Vec<bool>,
    next: usize,
    borderline: bool,
    last: Option<usize>,
    preemptions: u32,
    /// The threads that went from here.
    went: Vec<bool>,
    /// Whether some thread would have come back to a state of this interleaving.
    recurs: bool,
}

/// Counts interleavings: all that differ in more than the order of independent events, or all with so many preemptions.
pub fn count(program: &Program, preemptions: Option<u32>, budget: &Budget) -> Result<Count, Diagnostic> {
    let watched = Watched::new(program.clone());
    let threads = program.threads.len();
    let mut out = Count { interleavings: 0, borderline: 0, recurring: 0, stop: Stop::Complete };
    let mut on_path: AHashSet<(Box<[u32]>, Vec<u32>)> = AHashSet::new();
    let frame = |state: State, asleep: Vec<bool>, last, preemptions, before: bool| -> Result<Frame, Diagnostic> {
        let intents = (0..threads).map(|t| watched.intent(t, &state)).collect::<Result<Vec<_>, _>>()?;
        let went = vec![false; threads];
        Ok(Frame { state, intents, asleep, next: 0, borderline: before, last, preemptions, went, recurs: false })
    };
    let mut start = watched.initial();
    watched.settle(&mut start, &mut Vec::new())?;
    on_path.insert((start.slots.clone(), start.monitor.key()));
    let mut stack = vec![frame(start, vec![false; threads], None, 0, false)?];
    while let Some(top) = stack.last_mut() {
        if let Err(stop) = budget.check(out.interleavings) {
            out.stop = stop;
            break;
        }
        let t = top.next;
        if t == threads {
            let ended = top.intents.iter().all(Option::is_none);
            if ended || top.recurs && !top.went.contains(&true) {
                out.interleavings += 1;
                out.borderline += u64::from(top.borderline);
                out.recurring += u64::from(!ended);
            }
            on_path.remove(&(top.state.slots.clone(), top.state.monitor.key()));
            stack.pop();
            continue;
        }
        top.next += 1;
        let Some(intent) = top.intents[t] else { continue };
        if top.asleep[t] {
            continue;
        }
        let mut next = top.state.clone();
        watched.step(t, &mut next)?;
        watched.settle(&mut next, &mut Vec::new())?;
        let key = (next.slots.clone(), next.monitor.key());
        if on_path.contains(&key) {
            top.recurs = true;
            continue;
        }
        let mut cost = 0;
        let mut asleep = vec![false; threads];
        match preemptions {
            Some(most) => {
                // Leaving a thread that could go on is a preemption, unless it only waits.
                if let Some(last) = top.last.filter(|&l| l != t && top.intents[l].is_some()) {
                    let mut on = top.state.clone();
                    watched.step(last, &mut on)?;
                    watched.settle(&mut on, &mut Vec::new())?;
                    cost = u32::from(!on_path.contains(&(on.slots.clone(), on.monitor.key())));
                }
                if top.preemptions + cost > most {
                    continue;
                }
            }
            None => {
                // What went before in this state need not go after an independent step.
                for u in (0..threads).filter(|&u| u != t) {
                    asleep[u] = (top.asleep[u] || top.went[u]) && top.intents[u].is_some_and(|i| !i.conflicts(intent));
                }
            }
        }
        top.went[t] = true;
        let before = top.borderline || watched.borderline(t, intent, &top.state).is_some();
        let spent = top.preemptions + cost;
        on_path.insert(key);
        let child = frame(next, asleep, Some(t), spent, before)?;
        stack.push(child);
    }
    Ok(out)
}

/// A borderline interleaving step by step, without the steps that touch no memory, and the machine that ran it.
pub fn replay(program: &Program, way: &Borderline) -> Result<(Machine, Interleaving), Diagnostic> {
    let machine = Machine::new(program.clone(), memory::SC, None, &[]);
    let initial = machine.initial();
    let mut state = initial.clone();
    let mut steps = Vec::new();
    for &thread in &way.schedule {
        let instruction = instruction(&machine, thread, &state);
        match machine.advance(thread, &mut state)? {
            None | Some(Event::Local) => {}
            Some(event) => steps.push(Moved { thread, event, instruction, state: state.clone() }),
        }
    }
    // The load itself, as it goes in memory.
    let instruction = instruction(&machine, way.thread, &state);
    if let Some(event) = machine.advance(way.thread, &mut state)? {
        steps.push(Moved { thread: way.thread, event, instruction, state });
    }
    Ok((machine, Interleaving { initial, steps, property: 0, threads: Vec::new() }))
}

/// The text of the instruction where a thread is.
fn instruction(machine: &Machine, thread: usize, state: &[u32]) -> Option<String> {
    let code = &machine.program.threads[thread];
    code.steps.get(machine.place(thread, state)).map(|s| code.instructions[s.instruction as usize].text.clone())
}
