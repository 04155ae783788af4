//! Store-buffer safety (robustness): check whether a program has the same executions under total
//! store order as under sequential consistency.
//!
//! Input: a [`Program`]. Output: a [`Robustness`]: robust, or a shortest *borderline* interleaving.
//! It is sequentially consistent and ends before a load that could take, through a store buffer, a
//! value that no interleaving allows. Only sequentially consistent interleavings are explored. A
//! program is robust exactly if none is borderline (Burckhardt, Musuvathi 2008, theorems 7, 9, 10).
//!
//! - [`check`] searches breadth first over states of the machine combined with the monitor
//!   ([`Monitor::key`], which recurs in loops).
//! - [`check_with_assertions`] also searches for unsafe states. A program that is robust and safe
//!   here is safe under total store order, because it has no other executions there.
//! - [`count`](super::count) enumerates interleavings one by one, without storing states, as in the
//!   paper.
//!
//! Steps without memory access and fences commute with all steps of other threads, and take
//! priority, unless an assertion observes them.

use ahash::AHashSet;

use super::monitor::{Monitor, ThreadAction};
use crate::reach::{Interleaving, InterleavingStep, ObservedMachine, observed_machine};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_model::Slot;
use mu_program::machine::{Machine, MoveEffect};
use mu_program::memory;
use mu_program::nasm::X86Program;
use mu_program::property::Property;
use mu_program::{Access, Fence, Program};

/// An interleaving and the load that makes it borderline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Borderline {
    /// The thread of each step.
    pub schedule: Vec<usize>,
    /// The thread of the load.
    pub thread: usize,
    /// The cell.
    pub cell: usize,
    /// The value of the cell in memory.
    pub newest: u64,
    /// The older value that a store buffer makes possible.
    pub stale: u64,
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Robustness {
    /// A borderline interleaving.
    pub borderline: Option<Borderline>,
    /// Number of combined states of machine and monitor.
    pub states: u64,
    /// A path to a state that violates an assertion.
    pub unsafe_state: Option<Unsafe>,
    /// The stop reason.
    pub stop: Stop,
}

/// A path to an unsafe state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// The thread of each step.
    pub schedule: Vec<usize>,
    /// The index of the assertion.
    pub property: usize,
    /// The threads for which it holds.
    pub threads: Vec<usize>,
}

impl Robustness {
    /// Returns whether the program is robust; `None` if unknown.
    pub fn robust(&self) -> Option<bool> {
        match (&self.borderline, &self.stop) {
            (Some(_), _) => Some(false),
            (None, Stop::Complete) => Some(true),
            _ => None,
        }
    }
}

/// The machine under sequential consistency, with a monitor.
pub(super) struct MonitoredMachine {
    pub machine: Machine,
    /// The observations of assertions: positions of each thread, and slots.
    observed: Vec<Vec<u32>>,
    reads: Vec<Slot>,
    assertions: Vec<(Property, Vec<Vec<usize>>)>,
}

/// A combined state.
#[derive(Clone)]
pub(super) struct MonitoredState {
    pub slots: Box<[u32]>,
    pub monitor: Monitor,
}

/// Number of consecutive steps without memory access after which a thread counts as waiting.
const MAX_SILENT_STEPS: usize = 1 << 12;

impl MonitoredMachine {
    pub fn new(program: Program) -> Self {
        let observed = vec![Vec::new(); program.threads.len()];
        Self {
            machine: Machine::new(program, memory::SC, None, &[]),
            observed,
            reads: Vec::new(),
            assertions: Vec::new(),
        }
    }
    /// Creates the machine with the program's assertions.
    pub fn with_assertions(program: &X86Program) -> Self {
        let ObservedMachine { machine, places: observed, reads, choices: assertions } =
            observed_machine(program, memory::SC, None);
        Self { machine, observed, reads, assertions }
    }
    /// Returns the first assertion that a state violates.
    fn unsafe_at(&self, state: &MonitoredState) -> Option<(usize, Vec<usize>)> {
        let of = |(p, choices): &(Property, Vec<Vec<usize>>)| {
            choices.iter().find(|c| p.holds(&self.machine, &state.slots, c)).cloned()
        };
        self.assertions.iter().enumerate().find_map(|(i, a)| of(a).map(|threads| (i, threads)))
    }
    /// True if an assertion may distinguish the states before and after a step without memory
    /// access.
    fn may_distinguish(&self, thread: usize, before: &[u32], after: &[u32]) -> bool {
        let place = |slots: &[u32]| {
            self.observed[thread].contains(&(narrow::index(self.machine.place(thread, slots))))
        };
        let at = self.machine.place_slot(thread) as Slot;
        place(before)
            || place(after)
            || self.reads.iter().any(|&r| r != at && before[r as usize] != after[r as usize])
    }
    pub fn initial(&self) -> MonitoredState {
        self.initial_with(self.machine.program.cells.len())
    }
    /// Returns the initial state with additional cells in the monitor.
    pub fn initial_with(&self, cells: usize) -> MonitoredState {
        let threads = self.machine.program.threads.len();
        MonitoredState {
            slots: self.machine.initial().into(),
            monitor: Monitor::new(threads, cells),
        }
    }
    /// Returns the next memory access of a thread; `None` at its end. If its address is in a
    /// register, the cell is known only during execution.
    pub fn next(&self, thread: usize, state: &MonitoredState) -> Option<&Access> {
        let at = self.machine.place(thread, &state.slots);
        self.machine.program.threads[thread].steps.get(at).map(|s| &s.access)
    }
    /// Executes a step of a thread; `None` if it is not enabled, or is not an event for
    /// the monitor.
    pub fn step(
        &self,
        thread: usize,
        state: &mut MonitoredState,
    ) -> Result<Option<ThreadAction>, Diagnostic> {
        let Some(event) = self.machine.advance(thread, &mut state.slots)? else { return Ok(None) };
        let Some(action) = action(event) else { return Ok(None) };
        state.monitor.process_event(thread, action);
        Ok(Some(action))
    }
    /// True if the next step of a thread accesses no memory: also a store under a condition that
    /// does not hold, as that of a failed `cmpxchg`.
    fn is_silent(&self, thread: usize, state: &MonitoredState) -> Result<bool, Diagnostic> {
        Ok(match self.next(thread, state) {
            Some(Access::None | Access::Fence(_)) => true,
            Some(Access::Write { when: Some(_), .. }) => {
                let mut probe = state.slots.clone();
                matches!(self.machine.advance(thread, &mut probe)?, Some(MoveEffect::Local))
            }
            _ => false,
        })
    }
    /// Executes steps without memory access, and fences, of all threads.
    pub fn settle(
        &self,
        state: &mut MonitoredState,
        schedule: &mut Vec<usize>,
    ) -> Result<(), Diagnostic> {
        for t in 0..self.machine.program.threads.len() {
            for _ in 0..MAX_SILENT_STEPS {
                if !self.is_silent(t, state)? {
                    break;
                }
                let before = (!self.assertions.is_empty()).then(|| state.clone());
                self.step(t, state)?;
                if let Some(before) =
                    before.filter(|b| self.may_distinguish(t, &b.slots, &state.slots))
                {
                    *state = before;
                    break;
                }
                schedule.push(t);
            }
        }
        Ok(())
    }
    /// Returns the next action of a thread. It stays the same until another thread writes its cell.
    /// `None` if the thread has ended or its next step is not enabled.
    pub fn intent(
        &self,
        thread: usize,
        state: &MonitoredState,
    ) -> Result<Option<ThreadAction>, Diagnostic> {
        if self.next(thread, state).is_none() {
            return Ok(None);
        }
        let mut probe = state.slots.clone();
        Ok(self
            .machine
            .advance(thread, &mut probe)?
            .map(|event| action(event).unwrap_or(ThreadAction::Fence)))
    }
    /// Returns the cell and the oldest store that a thread's next load may miss, if the load makes
    /// the interleaving borderline.
    pub fn borderline(
        &self,
        thread: usize,
        intent: ThreadAction,
        state: &MonitoredState,
    ) -> Option<(usize, u32)> {
        let ThreadAction::Load(cell) = intent else { return None };
        state.monitor.borderline(thread, cell).map(|number| (cell, number))
    }
}

/// Converts an event for the monitor.
fn action(event: MoveEffect) -> Option<ThreadAction> {
    match event {
        MoveEffect::Read { cell, .. } => Some(ThreadAction::Load(cell as usize)),
        MoveEffect::Write { cell, .. } => Some(ThreadAction::Store(cell as usize)),
        MoveEffect::Update { cell, wrote: true, .. } => Some(ThreadAction::Locked(cell as usize)),
        MoveEffect::Update { cell, .. } => Some(ThreadAction::Test(cell as usize)),
        MoveEffect::Fence(Fence::Full) => Some(ThreadAction::Fence),
        MoveEffect::Fence(_) | MoveEffect::Local | MoveEffect::Flush { .. } => None,
    }
}

/// Checks whether a program is robust.
pub fn check(program: &Program, budget: &Budget) -> Result<Robustness, Diagnostic> {
    RobustnessSearch::run(MonitoredMachine::new(program.clone()), budget)
}

/// Checks whether a program is robust, and whether it reaches an unsafe state under sequential
/// consistency.
pub fn check_with_assertions(
    program: &X86Program,
    budget: &Budget,
) -> Result<Robustness, Diagnostic> {
    RobustnessSearch::run(MonitoredMachine::with_assertions(program), budget)
}

/// The search of [`check`].
struct RobustnessSearch {
    monitored: MonitoredMachine,
    /// For each state: its predecessor and the threads that ran since.
    found: Vec<(Option<u32>, Vec<usize>)>,
    /// Combined states that were reached.
    seen: AHashSet<(Box<[u32]>, Vec<u32>)>,
    next: Vec<(u32, MonitoredState)>,
    out: Robustness,
}

impl RobustnessSearch {
    fn run(monitored: MonitoredMachine, budget: &Budget) -> Result<Robustness, Diagnostic> {
        let out =
            Robustness { borderline: None, states: 0, unsafe_state: None, stop: Stop::Complete };
        let mut search = RobustnessSearch {
            monitored,
            found: Vec::new(),
            seen: AHashSet::new(),
            next: Vec::new(),
            out,
        };
        let (mut start, mut schedule) = (search.monitored.initial(), Vec::new());
        search.monitored.settle(&mut start, &mut schedule)?;
        search.add_state(None, start, schedule);
        'all: while !search.next.is_empty() {
            for (number, state) in std::mem::take(&mut search.next) {
                if search.is_answered() {
                    break 'all;
                }
                if let Err(stop) =
                    budget.check(search.seen.len() as u64).and_then(|()| budget.check_memory())
                {
                    search.out.stop = stop;
                    break 'all;
                }
                search.expand(number, &state)?;
            }
        }
        search.out.states = search.seen.len() as u64;
        Ok(search.out)
    }

    /// True if both questions are decided.
    fn is_answered(&self) -> bool {
        self.out.borderline.is_some()
            && (self.monitored.assertions.is_empty() || self.out.unsafe_state.is_some())
    }

    fn add_state(&mut self, before: Option<u32>, state: MonitoredState, schedule: Vec<usize>) {
        if !self.seen.insert((state.slots.clone(), state.monitor.key())) {
            return;
        }
        self.found.push((before, schedule));
        let number = narrow::index(self.found.len()) - 1;
        if self.out.unsafe_state.is_none()
            && let Some((property, threads)) = self.monitored.unsafe_at(&state)
        {
            self.out.unsafe_state =
                Some(Unsafe { schedule: self.schedule_to(number), property, threads });
        }
        self.next.push((number, state));
    }

    fn expand(&mut self, number: u32, state: &MonitoredState) -> Result<(), Diagnostic> {
        for t in 0..self.monitored.machine.program.threads.len() {
            let Some(intent) = self.monitored.intent(t, state)? else { continue };
            if self.out.borderline.is_none()
                && let Some((cell, store)) = self.monitored.borderline(t, intent, state)
            {
                let schedule = self.schedule_to(number);
                let (stale, newest) =
                    values(&self.monitored.machine.program, &schedule, cell, store - 1)?;
                self.out.borderline = Some(Borderline { schedule, thread: t, cell, newest, stale });
                if self.is_answered() {
                    return Ok(());
                }
            }
            let mut next = state.clone();
            let mut schedule = vec![t];
            self.monitored.step(t, &mut next)?;
            self.monitored.settle(&mut next, &mut schedule)?;
            self.add_state(Some(number), next, schedule);
        }
        Ok(())
    }

    /// Returns the schedule to a state.
    fn schedule_to(&self, number: u32) -> Vec<usize> {
        let (mut at, mut parts) = (Some(number), Vec::new());
        while let Some(state) = at {
            let (before, part) = &self.found[state as usize];
            parts.push(part);
            at = *before;
        }
        parts.into_iter().rev().flatten().copied().collect()
    }
}

/// Returns the value of a store to a cell, by its number, and the value of the newest store, after
/// a schedule.
fn values(
    program: &Program,
    schedule: &[usize],
    cell: usize,
    number: u32,
) -> Result<(u64, u64), Diagnostic> {
    let monitored = MonitoredMachine::new(program.clone());
    let mut state = monitored.initial();
    let mut history = vec![program.cells[cell].initial];
    for &t in schedule {
        match monitored.step(t, &mut state)? {
            Some(ThreadAction::Store(c) | ThreadAction::Locked(c)) if c == cell => {
                history.push(monitored.machine.cell(cell, &state.slots))
            }
            _ => {}
        }
    }
    let newest = history[history.len() - 1];
    let stale = history.get(number as usize).copied();
    Ok((
        stale.ok_or_else(|| {
            Diagnostic::internal(format!("the schedule has no store {number} to the cell"))
        })?,
        newest,
    ))
}

/// Replays a path to an unsafe state step by step, without the steps that do not access memory.
/// Returns also the machine.
pub fn replay_unsafe(
    program: &X86Program,
    path: &Unsafe,
) -> Result<(Machine, Interleaving), Diagnostic> {
    let machine = observed_machine(program, memory::SC, None).machine;
    let initial = machine.initial();
    let (steps, end) = run(&machine, &path.schedule)?;
    if !program.unsafe_states[path.property].holds(&machine, &end, &path.threads) {
        return Err(Diagnostic::internal(
            "the interleaving that was found does not end in an unsafe state",
        ));
    }
    Ok((
        machine,
        Interleaving { initial, steps, property: path.property, threads: path.threads.clone() },
    ))
}

/// Executes a schedule. Returns the steps with memory access, and the final state.
fn run(
    machine: &Machine,
    schedule: &[usize],
) -> Result<(Vec<InterleavingStep>, Vec<u32>), Diagnostic> {
    let (mut state, mut steps) = (machine.initial(), Vec::new());
    for &thread in schedule {
        let instruction = instruction(machine, thread, &state);
        match machine.advance(thread, &mut state)? {
            None | Some(MoveEffect::Local) => {}
            Some(event) => {
                steps.push(InterleavingStep { thread, event, instruction, state: state.clone() })
            }
        }
    }
    Ok((steps, state))
}

/// Replays a borderline interleaving step by step, without the steps that do not access memory.
/// Returns also the machine.
pub fn replay(program: &Program, path: &Borderline) -> Result<(Machine, Interleaving), Diagnostic> {
    let machine = Machine::new(program.clone(), memory::SC, None, &[]);
    let initial = machine.initial();
    let (mut steps, mut state) = run(&machine, &path.schedule)?;
    // The load itself, executed in memory.
    let instruction = instruction(&machine, path.thread, &state);
    if let Some(event) = machine.advance(path.thread, &mut state)? {
        steps.push(InterleavingStep { thread: path.thread, event, instruction, state });
    }
    Ok((machine, Interleaving { initial, steps, property: 0, threads: Vec::new() }))
}

/// Returns the text of a thread's next instruction.
fn instruction(machine: &Machine, thread: usize, state: &[u32]) -> Option<String> {
    let code = &machine.program.threads[thread];
    code.steps
        .get(machine.place(thread, state))
        .map(|s| code.instructions[s.instruction as usize].text.clone())
}
