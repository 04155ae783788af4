//! Replay of a path of cubes as a run of the explicit machine: a number of processes, the
//! transitions with their processes, the flushes between them.
//!
//! The names of each step come from the path: the cube closest to the start names processes 0, 1,
//! ..; after that, a dropped process gets the least free name at that step. The machine of that
//! number of processes then executes the steps; it alone decides whether they are possible and
//! whether the unsafe claim holds at the end. Under total store order the path describes writes as
//! if they reached memory immediately. If its order is impossible, the steps of different processes
//! are interleaved anew by a depth-first search that preserves the order of each process.
//!
//! The abstraction of `forall_other` may give paths that no machine can execute; they are reported
//! as such.

use crate::initial::needs_further_process;
use crate::names::{NamedPath, steps};
use crate::numbers::{self, TrialNumbers};
use crate::rules::{FIXED, Memory, Rules};
use crate::search::CubeNode;
use mu_base::Diagnostic;
use mu_base::limits::Budget;
use mu_base::narrow;
use mu_cubicle::instance::ReplayedRun;
use mu_cubicle::machine::{Act, Machine, Memory as MachineMemory, Setup};
use mu_cubicle::system::{Claim, System};
use std::collections::HashSet;

/// A run of the machine.
#[derive(Clone, Debug)]
pub struct ReplayRun {
    /// Number of processes.
    pub processes: u32,
    /// The run, including flushes.
    pub replayed: ReplayedRun,
    /// Its steps as text.
    pub steps: Vec<String>,
    /// Its states as text, starting with the initial one.
    pub states: Vec<String>,
    /// The index of the `unsafe` claim that holds at the end, and its processes (from 0).
    pub claim: (usize, Vec<u32>),
    /// The numbers that the machine tries for undetermined cells.
    pub numbers: TrialNumbers,
}

impl ReplayRun {
    /// Creates a machine that executes the run, with the same numbers.
    ///
    /// # Errors
    ///
    /// Those of the machine.
    pub fn machine<'s>(
        &self,
        system: &'s System,
        memory: Memory,
    ) -> Result<Machine<'s>, Diagnostic> {
        with_numbers(system, memory, self.processes, self.numbers.clone(), None)
    }
}

/// The reason why no machine executes a path.
#[derive(Clone, Debug)]
pub struct ReplayFailure {
    /// The reason of the machine.
    pub reason: String,
    /// True if the run may exist with other numbers for undetermined cells.
    pub numbers: bool,
}

/// Creates the machine for this number of processes, with numbers of the file for undetermined
/// cells.
///
/// # Errors
///
/// Those of the machine.
pub fn machine<'s>(
    system: &'s System,
    memory: Memory,
    processes: u32,
    budget: Option<&Budget>,
) -> Result<Machine<'s>, Diagnostic> {
    with_numbers(system, memory, processes, TrialNumbers::of_file(system), budget)
}

/// Creates the machine for this number of processes, with these numbers for undetermined cells.
fn with_numbers<'s>(
    system: &'s System,
    memory: Memory,
    processes: u32,
    numbers: TrialNumbers,
    budget: Option<&Budget>,
) -> Result<Machine<'s>, Diagnostic> {
    let memory = if memory == Memory::Tso { MachineMemory::Tso } else { MachineMemory::Sc };
    let TrialNumbers { candidates, start } = numbers;
    let budget = budget.cloned();
    let setup = Setup { candidates, start, budget, ..Setup::default() };
    Machine::new(system, processes, memory, setup)
}

/// Creates the machine for this number of processes, without values for undetermined numbers:
/// reading one is an error.
///
/// # Errors
///
/// Those of the machine.
pub fn bare_machine<'s>(
    system: &'s System,
    memory: Memory,
    processes: u32,
    budget: Option<&Budget>,
) -> Result<Machine<'s>, Diagnostic> {
    let memory = if memory == Memory::Tso { MachineMemory::Tso } else { MachineMemory::Sc };
    let setup = Setup { budget: budget.cloned(), ..Setup::default() };
    Machine::new(system, processes, memory, setup)
}

/// Executes the path on the machine.
///
/// # Errors
///
/// The reason why this is impossible.
pub fn replay(
    system: &System,
    rules: &Rules,
    path: &[CubeNode],
    budget: &Budget,
) -> Result<ReplayRun, ReplayFailure> {
    let solved = TrialNumbers::of_path(system, rules, path);
    let free = TrialNumbers { start: Vec::new(), ..solved.clone() };
    let found = replay_with(system, rules, path, budget, &solved);
    let found = if solved.start.is_empty() {
        found
    } else {
        found.or_else(|_| replay_with(system, rules, path, budget, &free))
    };
    found.map_err(|reason| {
        let least = narrow::index(
            system.processes.map_or(1, |n| n as usize).max(system.fixed as usize).max(1),
        );
        let bare = bare_machine(system, rules.memory, least, Some(budget)).ok();
        let determined = bare.is_some_and(|m| {
            m.initial_states().is_ok_and(|states| states.iter().all(|s| m.numbers_are_known(s)))
        });
        ReplayFailure { reason, numbers: numbers::are_open(system, determined) }
    })
}

fn replay_with(
    system: &System,
    rules: &Rules,
    path: &[CubeNode],
    budget: &Budget,
    numbers: &TrialNumbers,
) -> Result<ReplayRun, String> {
    let NamedPath { steps, processes: most, .. } = steps(rules, path);
    let steps: Vec<(usize, Vec<u32>)> = steps
        .into_iter()
        .map(|(rule, who)| (rules.rules[rule].transition, who.into_iter().map(u32::from).collect()))
        .collect();
    let params = system.unsafes.iter().map(|c| c.params.len()).max().unwrap_or(0);
    let least = system.processes.map_or(1, |n| n as usize).max(most).max(1);
    let admitted = system.processes.map_or(usize::MAX, |n| n as usize);
    let mut reason = "the run needs more processes than the file admits".to_string();
    for processes in least..=least.max(params).min(admitted) {
        let processes = narrow::index(processes);
        let machine = with_numbers(system, rules.memory, processes, numbers.clone(), Some(budget))
            .map_err(|d| d.message.clone())?;
        let acts: Vec<Act> =
            steps.iter().map(|(t, who)| Act::Fire(narrow::index(*t), who.clone())).collect();
        let found = on_machine(&machine, &acts, numbers);
        if machine.opens_beyond() && !needs_further_process(rules, processes as usize) {
            reason = "`init` may need no further process with other numbers".to_string();
            continue;
        }
        match found {
            Ok(run) => return Ok(run),
            Err(r) => reason = r,
        }
        if rules.memory == Memory::Tso {
            let mut search = Interleaving {
                machine: &machine,
                queues: queues(rules, &steps, processes),
                seen: HashSet::new(),
                acts: Vec::new(),
                budget,
            };
            let starts = machine.initial_states().map_err(|d| d.message.clone())?;
            let first = vec![0; processes as usize];
            if starts.into_iter().any(|s| search.go(s, first.clone())) {
                let acts = std::mem::take(&mut search.acts);
                return on_machine(&machine, &acts, numbers);
            }
        }
    }
    Err(reason)
}

/// Returns the states of a run as text, with values for open cells where possible.
pub(crate) fn states_of(
    machine: &Machine<'_>,
    run: &ReplayedRun,
    claim: &Claim,
    procs: &[u32],
) -> Vec<String> {
    let settled = machine.choose_open_values(run, claim, procs);
    let run = settled.as_ref().unwrap_or(run);
    std::iter::once(&run.start)
        .chain(run.steps.iter().map(|s| &s.1))
        .map(|s| machine.state_text(s))
        .collect()
}

/// Returns the acts of each process.
fn queues(rules: &Rules, steps: &[(usize, Vec<u32>)], processes: u32) -> Vec<Vec<Act>> {
    let mut queues = vec![Vec::new(); processes as usize];
    for (transition, who) in steps {
        let rule = rules.rules.iter().find(|r| r.transition == *transition);
        let actor = match rule.and_then(|r| r.actor) {
            Some(a) if a >= FIXED => u32::from(a - FIXED),
            Some(a) => who[usize::from(a)],
            None => who.first().copied().unwrap_or(0),
        };
        queues[actor as usize].push(Act::Fire(narrow::index(*transition), who.clone()));
    }
    queues
}

fn on_machine(
    machine: &Machine<'_>,
    acts: &[Act],
    numbers: &TrialNumbers,
) -> Result<ReplayRun, String> {
    let mut reason = String::new();
    for (i, claim) in machine.system().unsafes.iter().enumerate() {
        let mut done = None;
        crate::initial::try_arrangements(
            claim.params.len(),
            narrow::byte(machine.processes() as usize),
            &mut Vec::new(),
            &mut |procs| {
                let procs: Vec<u32> = procs.iter().copied().map(u32::from).collect();
                match machine.replay(acts, claim, &procs) {
                    Ok(replayed) => {
                        let steps =
                            replayed.steps.iter().map(|(a, _)| machine.act_text(a)).collect();
                        let states = states_of(machine, &replayed, claim, &procs);
                        done = Some(ReplayRun {
                            processes: machine.processes(),
                            replayed,
                            steps,
                            states,
                            claim: (i, procs),
                            numbers: numbers.clone(),
                        });
                    }
                    Err(d) => reason = d.message.clone(),
                }
                done.is_some()
            },
        );
        if let Some(run) = done {
            return Ok(run);
        }
    }
    Err(reason)
}

/// Search for an order of the steps that the machine can execute.
struct Interleaving<'a> {
    machine: &'a Machine<'a>,
    queues: Vec<Vec<Act>>,
    seen: HashSet<(Vec<u32>, Vec<usize>)>,
    acts: Vec<Act>,
    budget: &'a Budget,
}

impl Interleaving<'_> {
    fn go(&mut self, state: Vec<u32>, at: Vec<usize>) -> bool {
        if self.seen.len() > 200_000
            || self.budget.check(0).is_err()
            || !self.seen.insert((state.clone(), at.clone()))
        {
            return false;
        }
        if at.iter().zip(&self.queues).all(|(i, q)| *i == q.len()) {
            let system = self.machine.system();
            if system
                .unsafes
                .iter()
                .any(|c| self.machine.may_hold(&state, &self.machine.prepare_claim(c)).is_some())
            {
                return true;
            }
        }
        let mut next = Vec::new();
        let queues = &self.queues;
        let found = self.machine.successors(&state, &mut |act, to| {
            let who = match &act {
                Act::Flush(_) => Some(None),
                fire => at
                    .iter()
                    .enumerate()
                    .find(|(p, i)| queues[*p].get(**i) == Some(fire))
                    .map(|(p, _)| Some(p)),
            };
            if let Some(who) = who {
                next.push((act, to, who));
            }
        });
        if found.is_err() {
            return false;
        }
        for (act, to, who) in next {
            let mut at = at.clone();
            if let Some(p) = who {
                at[p] += 1;
            }
            self.acts.push(act);
            if self.go(to, at) {
                return true;
            }
            self.acts.pop();
        }
        false
    }
}
