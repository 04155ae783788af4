//! Audit of a certificate by sampling machine states, before *safe for any number of processes* is
//! reported.
//!
//! Input: a system, a certificate as text. Output: statistics of the samples ([`Audit`]), or an
//! internal error with the state and the step if the certificate contradicts the machine. For
//! instances of 1 to 5 processes, with a direct semantics of the typed system ([`machine`]):
//!
//! - Random runs from random initial states: no state is unsafe, and no state is in a cube
//!   ([`invariant`]), for any order in which the entries of store buffers reach memory.
//! - Random states outside all cubes, with entries in store buffers, and with numbers far from
//!   those of the text ([`random_states`]): none is unsafe, and no step leads into a cube. A store
//!   is last in the order, and a locked access requires empty buffers, because a proof describes
//!   runs in this order of writes.
//!
//! The only code shared with the prover and the verifier is the typed system. Cost: the time that
//! the caller allows. Invariant: every sampled step is a step of an instance, so a violation is an
//! error of the proof.

pub mod random_states;
pub mod invariant;
pub mod machine;
mod cube_states;
pub mod translation;
pub mod value;

use invariant::{Invariant, Timeline, read};
use machine::{AuditMachine, Effect, MachineState, MachineStep};
use mu_base::{Diagnostic, Stage, narrow};
use mu_cubicle::system::System;
use random_states::{MAX_ENTRIES, StateGenerator, buffered_slots, constants};

/// Largest number of processes of an instance.
const MAX_PROCESSES: u32 = 5;
/// Number of steps of a run.
const LENGTH: usize = 16;
/// Number of drawn states for each state of a run.
const DRAWN: usize = 3;
/// Limit on the choices of processes for the parameters of `init`; larger instances are skipped.
const MAX_CHOICES: usize = 2_000;
/// Limit on the number of cells; larger instances are skipped.
const MAX_CELLS: usize = 2_000;
/// Number of attempts to find an initial state for a number of processes.
const ATTEMPTS: usize = 4;
/// Limit on consecutive instances without a sample; then the audit ends, because nearly all states
/// are in cubes.
const FRUITLESS: usize = 50;

/// The result of an audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Number of machine states.
    pub samples: usize,
    /// Number of initial states among them.
    pub initial: usize,
    /// Number of states with an entry in a store buffer among them.
    pub buffered: usize,
    /// Number of steps.
    pub steps: usize,
    /// The least and the largest number of processes of a sample.
    pub processes: Option<(u32, u32)>,
    /// Number of states on random walks of the program from which the system was translated, if
    /// any.
    pub walked: Option<usize>,
    /// The seed.
    pub seed: u64,
}

/// Input of the audit.
pub struct AuditRequest<'a> {
    /// The system.
    pub system: &'a System,
    /// The certificate.
    pub certificate: &'a str,
    /// Number of samples.
    pub samples: usize,
    /// Seed, for replay.
    pub seed: u64,
    /// True when the time is used up.
    pub enough: &'a dyn Fn() -> bool,
}

struct InstanceAudit<'a> {
    wanted: &'a AuditRequest<'a>,
    invariant: Invariant,
    generator: StateGenerator,
    audit: Audit,
}

/// An instance under audit.
struct AuditedInstance<'s> {
    machine: AuditMachine<'s>,
    /// Slots that are written through buffers.
    buffered: Vec<usize>,
    /// Number of attempts without an initial state.
    failed: usize,
}

/// Audits a certificate.
///
/// # Errors
///
/// Internal: a state of the machine contradicts the certificate.
pub fn audit(wanted: &AuditRequest) -> Result<Audit, Diagnostic> {
    let invariant = read(wanted.system, wanted.certificate)
        .map_err(|e| Diagnostic::internal(format!("a certificate: {e}")))?;
    let numbers =
        constants(wanted.system).into_iter().chain(invariant.numbers().collect::<Vec<_>>());
    let generator = StateGenerator::new(wanted.seed, numbers);
    let mut check = InstanceAudit {
        wanted,
        invariant,
        generator,
        audit: Audit { seed: wanted.seed, ..Audit::default() },
    };
    let mut instances = instances(wanted.system, check.invariant.tso);
    let most = check.invariant.most();
    instances.retain(|i| most.is_none_or(|m| u64::from(i.machine.n) <= m));
    let mut fruitless = 0;
    while !check.is_done() && !instances.is_empty() && fruitless < FRUITLESS {
        for instance in &mut instances {
            let before = check.audit.samples;
            check.run(instance)?;
            fruitless = if check.audit.samples > before { 0 } else { fruitless + 1 };
        }
    }
    Ok(check.audit)
}

/// Returns the sufficiently small machines of 1 to 5 processes.
fn instances(system: &System, tso: bool) -> Vec<AuditedInstance<'_>> {
    let least = system.fixed.max(1);
    let most = system.processes.map_or(MAX_PROCESSES, |n| n.min(MAX_PROCESSES)).max(least);
    let is_small = |n: u32| {
        let power = |arity: usize| (n as usize).checked_pow(narrow::index(arity));
        let cells =
            system.symbols.iter().try_fold(0usize, |all, s| all.checked_add(power(s.arity)?));
        power(system.init.params.len()).is_some_and(|c| c <= MAX_CHOICES)
            && cells.is_some_and(|c| c <= MAX_CELLS)
    };
    let sizes = (least..=most).filter(|n| is_small(*n));
    let instance = |n| {
        let machine = AuditMachine::new(system, n, tso);
        AuditedInstance { buffered: buffered_slots(&machine), machine, failed: 0 }
    };
    sizes.map(instance).collect()
}

impl InstanceAudit<'_> {
    fn is_done(&self) -> bool {
        self.audit.samples >= self.wanted.samples || (self.wanted.enough)()
    }

    /// Follows a run and draws further states around its states.
    fn run(&mut self, instance: &mut AuditedInstance) -> Result<(), Diagnostic> {
        let machine = &instance.machine;
        if self.is_done() {
            return Ok(());
        }
        let initial =
            if instance.failed < ATTEMPTS { self.generator.initial(machine) } else { None };
        let is_run = initial.is_some();
        let mut state = initial.unwrap_or_else(|| self.generator.random_state(machine));
        if is_run {
            self.audit.initial += 1;
            self.check_reachable(machine, &state, "is initial", None)?;
        } else {
            instance.failed += 1;
        }
        for _ in 0..if is_run { LENGTH } else { 1 } {
            for _ in 0..DRAWN {
                if self.is_done() {
                    return Ok(());
                }
                let drawn = self.draw_state(machine, &state, &instance.buffered);
                self.outside(machine, &drawn)?;
            }
            if !is_run {
                break;
            }
            let mut steps = self.steps(machine, &state);
            steps.retain(|s| s.next.entries() <= MAX_ENTRIES);
            if steps.is_empty() {
                break;
            }
            let step = steps.swap_remove(self.generator.random.below(steps.len()));
            self.check_reachable(machine, &step.next, "is reached", Some((&state, &step)))?;
            state = step.next;
        }
        Ok(())
    }

    fn steps(&mut self, machine: &AuditMachine, state: &MachineState) -> Vec<MachineStep> {
        let generator = &mut self.generator;
        machine.steps(state, &mut |sort| generator.value(machine, sort, Some(state)))
    }

    /// Draws a state: a mutation of the given one, a state close to a cube, or any state.
    fn draw_state(
        &mut self,
        machine: &AuditMachine,
        state: &MachineState,
        buffered: &[usize],
    ) -> MachineState {
        let mut drawn = match self.generator.random.below(6) {
            0 => self.generator.random_state(machine),
            1 | 2 if !self.invariant.cubes.is_empty() => self.near_cube(machine, state),
            _ => state.clone(),
        };
        self.generator.mutate(machine, &mut drawn, buffered);
        if self.generator.random.chance(1, 2) {
            self.generator.repair_for_transition(machine, &mut drawn);
        }
        drawn
    }

    /// Checks a reachable state: it is not unsafe and in no cube, for some orders of its buffers.
    fn check_reachable(
        &mut self,
        machine: &AuditMachine,
        state: &MachineState,
        how: &str,
        by: Option<(&MachineState, &MachineStep)>,
    ) -> Result<(), Diagnostic> {
        self.count(machine, state);
        if let Some(claim) = unsafe_claim(machine, state) {
            return Err(self.violation(
                machine,
                &format!("a state {how} and satisfies `unsafe` number {}", claim + 1),
                state,
                by,
            ));
        }
        for _ in 0..if state.entries() > 1 { 2 } else { 1 } {
            let order = self.order(state);
            if let Some(cube) = self.invariant.cube_of(&Timeline::new(machine, state, &order)) {
                let text = format!("a state {how} and is in cube {} of the certificate", cube + 1);
                return Err(self.violation(machine, &text, state, by));
            }
        }
        Ok(())
    }

    /// Checks any state: if it is outside all cubes, it is not unsafe, and its steps do not lead
    /// into one.
    fn outside(&mut self, machine: &AuditMachine, state: &MachineState) -> Result<(), Diagnostic> {
        let order = self.order(state);
        let timeline = Timeline::new(machine, state, &order);
        if !machine.is_state(state)
            || self.invariant.cube_of(&timeline).is_some()
            || timeline.is_undecided()
        {
            return Ok(());
        }
        self.count(machine, state);
        if let Some(claim) = unsafe_claim(machine, state) {
            let text = format!(
                "a state is in no cube of the certificate and satisfies `unsafe` number {}",
                claim + 1
            );
            return Err(self.violation(machine, &text, state, None));
        }
        for step in self.steps(machine, state) {
            let Some(order) = order_after(&order, &step) else { continue };
            self.audit.steps += 1;
            if let Some(cube) = self.invariant.cube_of(&Timeline::new(machine, &step.next, &order))
            {
                let text = format!(
                    "a state is in no cube of the certificate, and a step leads into cube {}",
                    cube + 1
                );
                return Err(self.violation(machine, &text, &step.next, Some((state, &step))));
            }
        }
        Ok(())
    }

    fn count(&mut self, machine: &AuditMachine, state: &MachineState) {
        self.audit.samples += 1;
        self.audit.buffered += usize::from(state.entries() > 0);
        let (least, most) = self.audit.processes.unwrap_or((machine.n, machine.n));
        self.audit.processes = Some((least.min(machine.n), most.max(machine.n)));
    }

    /// Draws an order in which the entries of buffers reach memory.
    fn order(&mut self, state: &MachineState) -> Vec<u32> {
        let mut order: Vec<u32> = state
            .buffers
            .iter()
            .enumerate()
            .flat_map(|(p, b)| vec![narrow::index(p); b.len()])
            .collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.generator.random.below(i + 1));
        }
        order
    }

    /// Builds the error. `by`: the state before the step that leads to the state.
    fn violation(
        &self,
        machine: &AuditMachine,
        text: &str,
        state: &MachineState,
        by: Option<(&MachineState, &MachineStep)>,
    ) -> Diagnostic {
        let mut error = Diagnostic::new(
            Stage::Internal,
            format!("the check of the answer by samples failed: {text}"),
        );
        error = error.note(format!("processes: {}", machine.n));
        let before = by.map_or(state, |b| b.0);
        error = describe_state(error, machine, "state", before);
        if let Some((_, step)) = by {
            if let Some(t) = step.transition {
                error = error.or_span(machine.system.transitions[t].place.0);
            }
            error = describe_state(
                error.note(format!("step: {}", machine.step_text(step))),
                machine,
                "next state",
                &step.next,
            );
        }
        error.note(format!("seed: {}", self.wanted.seed))
    }
}

/// Adds a state with its buffers to an error.
fn describe_state(
    error: Diagnostic,
    machine: &AuditMachine,
    name: &str,
    state: &MachineState,
) -> Diagnostic {
    let mut error = error.note(format!("{name}: {}", machine.cells_text(state)));
    for (p, buffer) in state.buffers.iter().enumerate().filter(|(_, b)| !b.is_empty()) {
        error = error.note(format!(
            "store buffer of #{}, oldest first: {}",
            p + 1,
            machine.buffer_text(buffer)
        ));
    }
    error
}

/// Returns the index of an `unsafe` claim that holds.
fn unsafe_claim(machine: &AuditMachine, state: &MachineState) -> Option<usize> {
    machine.system.unsafes.iter().position(|c| machine.claim(state, c) == Some(true))
}

/// Returns the order of the buffers after a step; `None` if the proof describes the step in another
/// order.
fn order_after(order: &[u32], step: &MachineStep) -> Option<Vec<u32>> {
    match step.effect {
        Effect::None => Some(order.to_vec()),
        Effect::Store(p) => Some([order, &[p]].concat()),
        Effect::Flush(p) => {
            order.split_first().filter(|(first, _)| **first == p).map(|(_, rest)| rest.to_vec())
        }
        Effect::Locked => order.is_empty().then(Vec::new),
    }
}
