//! Reachability of unsafe states of a program under a memory model.
//!
//! Input: an [`X86Program`], a memory model, the bound of its buffers. Output: a [`ReachResult`]
//! with a shortest interleaving to an unsafe state, including memory and buffers after each step,
//! or the verdict that there is none. The search is `explore::goal_search` over the machine's slots
//! and groups; steps without memory access take priority if the property cannot distinguish them.
//! Before it is returned, an interleaving is replayed move by move on the machine, independently of
//! the search; unnecessary steps without memory access are removed.

use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use mu_explore::{FindOutcome, Options, PathStep, Progress, SearchTarget, find};
use mu_model::{Model, Slot};
use mu_program::liveness::successors;
use mu_program::machine::{Machine, MoveEffect};
use mu_program::memory::{BufferEntry, MemoryModel};
use mu_program::model::{Goal, GroupMove, ProgramModel};
use mu_program::nasm::X86Program;
use mu_program::property::Property;

/// A step of an interleaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterleavingStep {
    /// The thread.
    pub thread: usize,
    /// Its event.
    pub event: MoveEffect,
    /// Text of the instruction that the step is part of; `None` if a buffered store reaches memory.
    pub instruction: Option<String>,
    /// The state after it.
    pub state: Vec<u32>,
}

/// An interleaving to an unsafe state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interleaving {
    /// The initial state.
    pub initial: Vec<u32>,
    /// The steps.
    pub steps: Vec<InterleavingStep>,
    /// The index of the property that holds at the end.
    pub property: usize,
    /// The threads for which it holds, one for each of its variables.
    pub threads: Vec<usize>,
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// No unsafe state is reachable.
    Safe,
    /// An unsafe state is reachable.
    Unsafe,
    /// A limit, or the bound of the buffers, was reached before the verdict was determined.
    Unknown,
}

impl Safety {
    /// Returns the word for output.
    pub fn word(self) -> &'static str {
        match self {
            Safety::Safe => "safe",
            Safety::Unsafe => "unsafe",
            Safety::Unknown => "unknown",
        }
    }
}

/// The result of a search.
pub struct ReachResult {
    /// The machine, which decodes the slots of states.
    pub machine: Machine,
    /// The verdict.
    pub safety: Safety,
    /// Number of stored states.
    pub states: u64,
    /// Number of explored transitions.
    pub transitions: u64,
    /// The stop reason.
    pub stop: Stop,
    /// True if a store had to wait for a full buffer. The absence of unsafe states then proves
    /// nothing.
    pub bound_reached: bool,
    /// A path to an unsafe state; `None` if a limit stopped its search.
    pub interleaving: Option<Interleaving>,
}

/// A machine with the observations of the program's properties.
pub(super) struct ObservedMachine {
    pub machine: Machine,
    /// The distinguished positions of each thread.
    pub places: Vec<Vec<u32>>,
    pub reads: Vec<Slot>,
    /// The properties, each with the possible choices of its threads.
    pub choices: Vec<(Property, Vec<Vec<usize>>)>,
}

/// Builds the machine of a program under a memory model.
pub(super) fn observed_machine(
    program: &X86Program,
    memory: &'static dyn MemoryModel,
    bound: Option<u32>,
) -> ObservedMachine {
    let count = program.program.threads.len();
    let mut monitored = vec![Vec::new(); count];
    let mut places = vec![Vec::new(); count];
    for p in &program.unsafe_states {
        monitored.iter_mut().zip(p.registers(count)).for_each(|(w, r)| w.extend(r));
        places.iter_mut().zip(p.places(&program.program)).for_each(|(w, r)| w.extend(r));
    }
    let machine = Machine::with_observed(program.program.clone(), memory, bound, &monitored);
    let reads: Vec<Slot> = program.unsafe_states.iter().flat_map(|p| p.slots(&machine)).collect();
    let choices = program.unsafe_states.iter().map(|p| (p.clone(), p.choices(count))).collect();
    ObservedMachine { machine, places, reads, choices }
}

/// Searches for an unsafe state.
pub fn reach(
    program: &X86Program,
    memory: &'static dyn MemoryModel,
    requested: Option<u32>,
    threads: usize,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<ReachResult, Diagnostic> {
    let ObservedMachine { machine, places, reads, choices } =
        observed_machine(program, memory, program.program.buffer_bound(requested));
    let goal: Goal = (
        reads.clone(),
        Box::new(move |m, state| {
            choices.iter().any(|(p, all)| all.iter().any(|c| p.holds(m, state, c)))
        }),
    );
    let model = ProgramModel::new(machine, Some(goal));
    let options =
        Options { threads, confluent: invisible(&model, &places, &reads), ..Options::default() };
    let is_goal = |group: usize, _| model.movement(group) == GroupMove::Goal;
    let found = find(&model, &options, budget, progress, SearchTarget::Step(&is_goal))?;
    let FindOutcome { outcome, reached, path } = found;
    let bound_reached = model.machine.bound_reached();
    let safety = match (reached, &outcome.stop) {
        (true, _) => Safety::Unsafe,
        (false, Stop::Complete) if !bound_reached => Safety::Safe,
        _ => Safety::Unknown,
    };
    let interleaving = path.map(|p| replay(&model, program, &p)).transpose()?;
    let (states, transitions, stop) = (outcome.states, outcome.transitions, outcome.stop);
    Ok(ReachResult {
        machine: model.machine,
        safety,
        states,
        transitions,
        stop,
        bound_reached,
        interleaving,
    })
}

/// Returns the groups with steps that no property observes: they do not access memory, change no
/// observed register, and their positions are not distinguished.
fn invisible(model: &ProgramModel, places: &[Vec<u32>], reads: &[Slot]) -> Vec<bool> {
    let m = &model.machine;
    (model.groups().iter().enumerate())
        .map(|(g, group)| match model.movement(g) {
            GroupMove::Step { thread, place } if group.tau && group.confluent => {
                let (t, at) = (thread as usize, m.place_slot(thread as usize) as Slot);
                let steps = &m.program.threads[t].steps;
                let observed = |p: usize| places[t].contains(&(narrow::index(p)));
                !observed(place as usize)
                    && !successors(&steps[place as usize], place as usize, steps.len())
                        .any(observed)
                    && group.writes.iter().all(|w| *w == at || !reads.contains(w))
            }
            _ => false,
        })
        .collect()
}

/// Replays a path.
fn replay(
    model: &ProgramModel,
    program: &X86Program,
    path: &[PathStep],
) -> Result<Interleaving, Diagnostic> {
    let wrong = |what: &str| {
        Diagnostic::new(
            Stage::Internal,
            format!("the interleaving that was found cannot be replayed: {what}"),
        )
    };
    let mut moves: Vec<GroupMove> =
        path.iter().map(|s| model.movement(s.group)).filter(|m| *m != GroupMove::Goal).collect();
    let mut replayed = run(&model.machine, program, &moves)?
        .ok_or_else(|| wrong("a step is blocked, or the end is not unsafe"))?;
    for (step, found) in replayed.steps.iter().zip(path) {
        if step.state != found.state
            || model.label_text(found.label)
                != model.event_text(narrow::index(step.thread), step.event)
        {
            return Err(wrong("a step does something else"));
        }
    }
    for i in (0..moves.len()).rev() {
        if replayed.steps[i].event == MoveEffect::Local {
            let shorter: Vec<GroupMove> =
                moves.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, m)| *m).collect();
            if let Some(found) = run(&model.machine, program, &shorter)? {
                (moves, replayed) = (shorter, found);
            }
        }
    }
    Ok(replayed)
}

/// Executes moves on a machine; `None` if one is not possible or no property holds at the end.
fn run(
    m: &Machine,
    program: &X86Program,
    moves: &[GroupMove],
) -> Result<Option<Interleaving>, Diagnostic> {
    let initial = m.initial();
    let mut state = initial.clone();
    let mut steps = Vec::new();
    for movement in moves {
        let (thread, event, instruction) = match *movement {
            GroupMove::Goal => break,
            GroupMove::Step { thread, place } => {
                let t = thread as usize;
                if m.place(t, &state) != place as usize {
                    return Ok(None);
                }
                let Some(event) = m.advance(t, &mut state)? else { return Ok(None) };
                let code = &m.program.threads[t];
                (
                    t,
                    event,
                    Some(
                        code.instructions[code.steps[place as usize].instruction as usize]
                            .text
                            .clone(),
                    ),
                )
            }
            GroupMove::Flush { thread, cell } => {
                let (t, mut at) = (thread as usize, None);
                let Some(slot) = m.buffer_slot(t) else { return Ok(None) };
                let buffer = m.buffer(state[slot]);
                m.ready(t, &state, &mut |i| {
                    at = at.or((buffer[i].cell() == Some(cell)).then_some(i))
                });
                let Some(at) = at else { return Ok(None) };
                let (cell, value) = m.flush(t, at, &mut state)?;
                (t, MoveEffect::Flush { cell, value }, None)
            }
        };
        steps.push(InterleavingStep { thread, event, instruction, state: state.clone() });
    }
    let end = program
        .unsafe_states
        .iter()
        .enumerate()
        .find_map(|(i, p)| p.witnesses(m, &state).map(|w| (i, w)));
    Ok(end.map(|(property, threads)| Interleaving { initial, steps, property, threads }))
}

/// Returns the content of a thread's buffer, oldest first: variables and values.
pub fn buffer_content(m: &Machine, thread: usize, state: &[u32]) -> Vec<(String, i64)> {
    let Some(slot) = m.buffer_slot(thread) else { return Vec::new() };
    let entry = |e: &BufferEntry| match *e {
        BufferEntry::Store { cell, value } => {
            let cell = &m.program.cells[cell as usize];
            (cell.name.clone(), cell.width.to_signed(m.decode(value)))
        }
        BufferEntry::Mark => ("|".into(), 0),
    };
    m.buffer(state[slot]).iter().map(entry).collect()
}

/// Returns the content of memory: variables and values.
pub fn in_memory(m: &Machine, state: &[u32]) -> Vec<(String, i64)> {
    m.program
        .cells
        .iter()
        .enumerate()
        .map(|(i, c)| (c.name.clone(), c.width.to_signed(m.cell(i, state))))
        .collect()
}
