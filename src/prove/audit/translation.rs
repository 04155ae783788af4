//! Audit of the translation of a model to a system, and of the certificate of the system, by
//! sampling states of both.
//!
//! Input: a system, a certificate, instances of the model ([`Origin`]). Output: statistics of the
//! samples, or an internal error with the rule, the state, and the next state. A state of the
//! system stands for one state of the model at most, its origin (`CellMap`); the declaration of
//! the symbols determines it. A proof of the system is one of the model if
//!
//! - each start state of the model is the origin of an initial state, or of a state after the
//!   choice of one;
//! - for each state of the system with an origin, each step of the model from the origin is one of
//!   the transitions of this rule, to a state that has the next state of the model as its origin;
//! - if the model fails in the origin, the state of the system is unsafe, or a transition leads to
//!   a failure.
//!
//! These conditions do not mention reachability, so they are checked for arbitrary states: random
//! ones, ones of random runs, mutations of both, and ones close to cubes and guards. The
//! certificate is checked with them: a reachable state is in no cube, a step from a state outside
//! all cubes does not lead into one, and in such a state the model does not fail.
//!
//! The only code shared with the translation is the declaration of the symbols; with the prover and
//! the verifier, the typed system. Cost: the time that the caller allows; for each state one
//! evaluation of each rule of the model, and of the guards of the rules with a step.

use super::invariant::{Timeline, read};
use super::machine::{AuditMachine, Env, MachineState};
use super::random_states::{StateGenerator, constants};
use super::value::AuditValue;
use super::{Audit, AuditRequest, InstanceAudit};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_cubicle::origin::{Origin, OriginState, OriginStep, OriginUndefined, OriginValues};
use mu_cubicle::system::{
    AssignedValue, Atom, CellAccess, Claim, ConsId, Cube, Proc, System, Term, Transition, TypeId,
    Update,
};
use std::collections::BTreeSet;

/// Number of states of a run.
const LENGTH: usize = 12;
/// Number of mutated states for each state of a run.
const MUTATED: usize = 2;
/// Limit on the cells of an instance; larger ones are skipped.
const MAX_CELLS: usize = 4_000;
/// Limit on the choices of processes for a transition, a claim, or `init`; instances with more are
/// skipped.
const MAX_CHOICES: usize = 200_000;

/// Result of the audit of a translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationAudit {
    /// Number of states.
    pub samples: usize,
    /// Number of states on runs from start states among them.
    pub reached: usize,
    /// Number of states outside all cubes among them.
    pub outside: usize,
    /// Number of steps of the model to another state, each with its transition.
    pub steps: usize,
    /// Number of rules with such a step.
    pub rules: usize,
    /// Number of failures of the model, all in states that the proof excludes.
    pub failures: usize,
    /// The least and the largest number of processes of a sample.
    pub processes: Option<(u32, u32)>,
    /// The seed.
    pub seed: u64,
}

/// Representation of a part without a value.
enum MappedUndefined {
    Never,
    Constructor(u32),
    /// The slot of a boolean that is false.
    Flag(usize),
}

/// Part of a state of the model with its cell.
struct MappedPart {
    slot: usize,
    /// Constructors of the values; none for processes.
    values: Vec<u32>,
    undefined: MappedUndefined,
}

/// Relation between the states of a system and those of its origin.
struct CellMap {
    parts: Vec<MappedPart>,
    /// Slots of the flags.
    started: Option<usize>,
    failed: Option<usize>,
}

const FALSE: AuditValue = AuditValue::Constructor(ConsId::FALSE.number());
const TRUE: AuditValue = AuditValue::Constructor(ConsId::TRUE.number());

impl CellMap {
    /// Relates the cells of a machine to the parts of an origin.
    ///
    /// # Errors
    ///
    /// Internal: a cell that has no part or several, or a value that is none or several.
    fn new(machine: &AuditMachine, origin: &dyn Origin) -> Result<Self, Diagnostic> {
        let system = machine.system;
        let mut used = vec![false; machine.slots];
        let mut slot = |name: &str, args: &[u32], sort: Option<TypeId>| {
            let found = system.symbols.iter().position(|s| s.name == name);
            let found = found.filter(|at| {
                let symbol = &system.symbols[*at];
                symbol.arity == args.len() && sort.is_none_or(|sort| symbol.sort == sort)
            });
            let at = found.ok_or_else(|| Diagnostic::internal(format!("no symbol `{name}`")))?;
            let slot = machine.slot(at, args.iter().copied());
            if std::mem::replace(&mut used[slot], true) {
                return Err(Diagnostic::internal(format!("two parts in one cell of `{name}`")));
            }
            Ok(slot)
        };
        let mut parts = Vec::new();
        for part in origin.parts() {
            let at = slot(&part.symbol, &part.args, None)?;
            let mut rest = match machine.sort(at) {
                TypeId::PROC => Vec::new(),
                sort => system.type_of(sort).constructors.clone(),
            };
            let mut constructor = |name: &String| {
                let is = |c: &ConsId| system.constructors[c.index()].name == *name;
                let found = rest.iter().position(is);
                let text =
                    || Diagnostic::internal(format!("no value `{name}` of `{}`", part.symbol));
                Ok::<u32, Diagnostic>(rest.swap_remove(found.ok_or_else(text)?).number())
            };
            let values = match &part.values {
                OriginValues::Processes => Vec::new(),
                OriginValues::Constructors(names) => {
                    names.iter().map(&mut constructor).collect::<Result<_, _>>()?
                }
            };
            let undefined = match &part.undefined {
                OriginUndefined::Never => MappedUndefined::Never,
                OriginUndefined::Constructor(name) => {
                    MappedUndefined::Constructor(constructor(name)?)
                }
                OriginUndefined::Flag(name) => {
                    MappedUndefined::Flag(slot(name, &part.args, Some(TypeId::BOOL))?)
                }
            };
            if (part.values == OriginValues::Processes) != (machine.sort(at) == TypeId::PROC) {
                return Err(Diagnostic::internal(format!("a value of `{}`", part.symbol)));
            }
            parts.push(MappedPart { slot: at, values, undefined });
        }
        let mut flag = |name: Option<&str>| match name {
            Some(name) => slot(name, &[], Some(TypeId::BOOL)).map(Some),
            None => Ok(None),
        };
        let (started, failed) = (flag(origin.start_symbol())?, flag(origin.failure_symbol())?);
        match used.iter().position(|is| !is) {
            Some(at) => {
                let name = &system.symbols[machine.cell(at).0].name;
                Err(Diagnostic::internal(format!("a cell of `{name}` without a part")))
            }
            None => Ok(CellMap { parts, started, failed }),
        }
    }
    /// Returns the state of the model that a state stands for. `None`: there is none.
    fn origin(&self, n: u32, state: &MachineState) -> Option<OriginState> {
        let is_false = |slot: usize| state.cells[slot] == FALSE;
        if self.started.is_some_and(is_false) || self.failed.is_some_and(|s| !is_false(s)) {
            return None;
        }
        let value = |part: &MappedPart| {
            if matches!(part.undefined, MappedUndefined::Flag(flag) if is_false(flag)) {
                return Some(None);
            }
            match state.cells[part.slot] {
                AuditValue::Process(p) => (p < n).then_some(Some(p)),
                AuditValue::Constructor(c) => match part.undefined {
                    MappedUndefined::Constructor(undefined) if c == undefined => Some(None),
                    _ => {
                        let at = part.values.iter().position(|v| *v == c)?;
                        Some(Some(narrow::index(at)))
                    }
                },
                _ => None,
            }
        };
        self.parts.iter().map(value).collect()
    }
    /// Writes a state of the model into a state of the system; cells without a content remain.
    /// Returns false if a part without a value has no representation.
    fn write(&self, origin: &OriginState, state: &mut MachineState) -> bool {
        let mut all = true;
        for (part, value) in self.parts.iter().zip(origin) {
            if let MappedUndefined::Flag(flag) = part.undefined {
                state.cells[flag] = if value.is_some() { TRUE } else { FALSE };
            }
            match (value, &part.undefined) {
                (None, MappedUndefined::Never) => all = false,
                (None, MappedUndefined::Flag(_)) => {}
                (None, MappedUndefined::Constructor(c)) => {
                    state.cells[part.slot] = AuditValue::Constructor(*c);
                }
                (Some(value), _) => {
                    state.cells[part.slot] = match part.values.get(*value as usize) {
                        Some(constructor) => AuditValue::Constructor(*constructor),
                        None => AuditValue::Process(*value),
                    };
                }
            }
        }
        all
    }
    /// Sets the flags, and gives a value to parts that always have one.
    fn normalise(&self, generator: &mut StateGenerator, state: &mut MachineState) {
        for (flag, value) in [(self.started, TRUE), (self.failed, FALSE)] {
            if let Some(slot) = flag {
                state.cells[slot] = value;
            }
        }
        for part in &self.parts {
            if let AuditValue::Constructor(c) = state.cells[part.slot]
                && matches!(part.undefined, MappedUndefined::Never)
                && !part.values.contains(&c)
            {
                let value = *generator.random.choose(&part.values);
                state.cells[part.slot] = AuditValue::Constructor(value);
            }
        }
    }
}

/// Returns the number of parameters that a choice needs before the atom is decided.
fn needed_params(atom: &Atom, params: usize) -> usize {
    let of = |p: &Proc| match p {
        Proc::Var(v) => *v as usize + 1,
        Proc::Fixed(_) => 0,
    };
    let cell = |c: &CellAccess| c.args.iter().chain(&c.by).map(of).max().unwrap_or(0);
    let term = |t: &Term| match t {
        Term::Proc(p) => of(p),
        Term::Cell(c) => cell(c),
        Term::Cons(_) => 0,
        Term::Sum(s) => s.terms.iter().map(|t| cell(&t.0)).max().unwrap_or(0),
    };
    match atom {
        Atom::False => 0,
        Atom::Compare(a, _, b) => term(a).max(term(b)),
        Atom::Fence(p) => of(p),
        Atom::Words(_) => params,
    }
}

/// Conditions on distinct processes, by the number of processes that decides them.
struct Conditions<'s> {
    params: usize,
    atoms: Vec<Vec<&'s Atom>>,
}

impl<'s> Conditions<'s> {
    fn new(cube: &'s Cube, params: usize) -> Self {
        let mut atoms = vec![Vec::new(); params + 1];
        for atom in cube {
            atoms[needed_params(atom, params).min(params)].push(atom);
        }
        Conditions { params, atoms }
    }
    /// Tries the choices of processes that satisfy the conditions, until `found` returns true.
    fn try_choices(
        &self,
        machine: &AuditMachine,
        state: &MachineState,
        env: &mut Env,
        found: &mut dyn FnMut(&Env) -> bool,
    ) -> bool {
        let holds = |atom: &&Atom| machine.atom(state, env, atom) == Some(true);
        if !self.atoms[env.len()].iter().all(holds) {
            return false;
        }
        if env.len() == self.params {
            return found(env);
        }
        (0..machine.n).any(|p| {
            if env.contains(&p) {
                return false;
            }
            env.push(p);
            let is_found = self.try_choices(machine, state, env, found);
            env.pop();
            is_found
        })
    }
}

/// Instance with its conditions.
struct TranslatedInstance<'s, 'o> {
    machine: AuditMachine<'s>,
    origin: &'o mut dyn Origin,
    map: CellMap,
    guards: Vec<Conditions<'s>>,
    claims: Vec<Conditions<'s>>,
    /// Transitions that set the flag of a failure.
    failing: Vec<usize>,
    starts: Vec<OriginStep>,
}

/// State of a run: of the system, with its origin.
struct Sample {
    state: MachineState,
    origin: OriginState,
    is_reached: bool,
}

/// Input of the audit of a translation.
pub struct TranslationRequest<'a> {
    /// The system.
    pub system: &'a System,
    /// The certificate. `None`: the translation alone is audited.
    pub certificate: Option<&'a str>,
    /// Number of samples.
    pub samples: usize,
    /// Seed, for replay.
    pub seed: u64,
    /// True when the time is used up.
    pub enough: &'a dyn Fn() -> bool,
}

/// Certificate without a cube.
const NO_CUBES: &str = "mu-check certificate 1\nmemory sc\n";

struct TranslationCheck<'a> {
    audit: InstanceAudit<'a>,
    /// True if states outside all cubes are safe.
    has_certificate: bool,
    found: TranslationAudit,
    rules: BTreeSet<(u32, u32)>,
}

/// Audits a translation and a verified certificate.
///
/// # Errors
///
/// Internal: the system does not have a step or a failure of the model, or the certificate
/// contradicts one.
pub fn audit_translation(
    wanted: &TranslationRequest,
    origins: &mut [&mut dyn Origin],
) -> Result<TranslationAudit, Diagnostic> {
    let TranslationRequest { system, samples, seed, enough, .. } = *wanted;
    let has_certificate = wanted.certificate.is_some();
    let certificate = wanted.certificate.unwrap_or(NO_CUBES);
    let wanted = &AuditRequest { system, certificate, samples, seed, enough };
    let invariant = read(system, certificate)
        .map_err(|e| Diagnostic::internal(format!("a certificate: {e}")))?;
    let most = invariant.most();
    let generator = StateGenerator::new(wanted.seed, constants(wanted.system).into_iter());
    let audit = InstanceAudit { wanted, invariant, generator, audit: Audit::default() };
    let found = TranslationAudit { seed: wanted.seed, ..TranslationAudit::default() };
    let mut check = TranslationCheck { audit, has_certificate, found, rules: BTreeSet::new() };
    let mut instances = Vec::new();
    for origin in origins {
        let n = origin.processes();
        if most.is_none_or(|m| u64::from(n) <= m) && is_small(wanted.system, n) {
            instances.push(TranslatedInstance::new(wanted.system, n, &mut **origin)?);
        }
    }
    for instance in &mut instances {
        check.starts(instance)?;
    }
    while !check.is_done() && !instances.is_empty() {
        let before = check.found.samples;
        for instance in &mut instances {
            check.run(instance)?;
        }
        if check.found.samples == before {
            break;
        }
    }
    check.found.rules = check.rules.len();
    Ok(check.found)
}

/// True if an instance is small enough.
fn is_small(system: &System, n: u32) -> bool {
    let n = n as usize;
    let power = |arity: usize| n.checked_pow(narrow::index(arity));
    let cells = system.symbols.iter().try_fold(0usize, |all, s| all.checked_add(power(s.arity)?));
    let params = system.transitions.iter().map(|t| t.params.len());
    let params = params.chain(system.unsafes.iter().map(|c| c.params.len())).max().unwrap_or(0);
    // Choices of distinct processes.
    let choices = (0..params.min(n)).try_fold(1usize, |all, p| all.checked_mul(n - p));
    cells.is_some_and(|c| c <= MAX_CELLS)
        && choices.is_some_and(|c| c <= MAX_CHOICES)
        && power(system.init.params.len()).is_some_and(|c| c <= MAX_CHOICES)
}

impl<'s, 'o> TranslatedInstance<'s, 'o> {
    fn new(system: &'s System, n: u32, origin: &'o mut dyn Origin) -> Result<Self, Diagnostic> {
        let machine = AuditMachine::new(system, n, false);
        let map = CellMap::new(&machine, origin)?;
        let guard = |t: &'s Transition| Conditions::new(&t.guard, t.params.len());
        let claim = |c: &'s Claim| Conditions::new(&c.cube, c.params.len());
        let fails = |at: &usize| {
            let sets = |u: &Update| {
                matches!(u, Update::Assign { symbol, value: AssignedValue::Term(Term::Cons(ConsId::TRUE)), .. }
                    if Some(machine.slot(symbol.index(), [].into_iter())) == map.failed)
            };
            map.failed.is_some() && system.transitions[*at].updates.iter().any(sets)
        };
        let failing = (0..system.transitions.len()).filter(fails).collect();
        Ok(TranslatedInstance {
            starts: origin.starts(),
            guards: system.transitions.iter().map(guard).collect(),
            claims: system.unsafes.iter().map(claim).collect(),
            machine,
            origin,
            map,
            failing,
        })
    }
    /// Returns the first state to which transitions with a place lead, and that is accepted.
    fn transition(
        &self,
        generator: &mut StateGenerator,
        state: &MachineState,
        place: Span,
        accepts: &dyn Fn(&MachineState) -> bool,
    ) -> Option<MachineState> {
        let mut result = None;
        for (number, guard) in self.guards.iter().enumerate() {
            let t = &self.machine.system.transitions[number];
            let at = t.place.0;
            // The text may have been read more than once, under several numbers.
            if (at.start, at.end) != (place.start, place.end) {
                continue;
            }
            let machine = &self.machine;
            let is_found = guard.try_choices(machine, state, &mut Env::new(), &mut |env| {
                if machine.is_enabled(state, env, t) != Some(true) {
                    return false;
                }
                let fired =
                    machine.fire(state, env, t, &mut |sort| generator.value(machine, sort, None));
                result = fired.map(|(next, _)| next).filter(|next| accepts(next));
                result.is_some()
            });
            if is_found {
                return result;
            }
        }
        None
    }
    /// True if a claim holds, or a transition leads to a failure.
    fn is_unsafe(&self, state: &MachineState) -> bool {
        let (machine, mut env) = (&self.machine, Env::new());
        let holds = |c: &Conditions| c.try_choices(machine, state, &mut env, &mut |_| true);
        if self.claims.iter().any(holds) {
            return true;
        }
        self.failing.iter().any(|at| {
            let t = &machine.system.transitions[*at];
            self.guards[*at].try_choices(machine, state, &mut Env::new(), &mut |env| {
                machine.is_enabled(state, env, t) == Some(true)
            })
        })
    }
}

impl TranslationCheck<'_> {
    fn is_done(&self) -> bool {
        self.found.samples >= self.audit.wanted.samples || (self.audit.wanted.enough)()
    }
    /// Returns the cube that contains a state.
    fn cube(&self, instance: &TranslatedInstance, state: &MachineState) -> Option<usize> {
        self.audit.invariant.cube_of(&Timeline::new(&instance.machine, state, &[]))
    }
    /// Checks all start states of an instance.
    fn starts(&mut self, instance: &TranslatedInstance) -> Result<(), Diagnostic> {
        for step in &instance.starts {
            if (self.audit.wanted.enough)() {
                break;
            }
            self.start(instance, step)?;
        }
        Ok(())
    }
    /// Checks a start state, and returns a state of the system for it.
    fn start(
        &mut self,
        instance: &TranslatedInstance,
        step: &OriginStep,
    ) -> Result<Sample, Diagnostic> {
        let origin = match &step.next {
            Ok(origin) => origin,
            Err(why) => {
                let text = format!("{} fails ({why}), and the system is safe", step.rule);
                return Err(self.violation(instance, &text, None));
            }
        };
        let mut state = self.audit.generator.random_state(&instance.machine);
        instance.map.normalise(&mut self.audit.generator, &mut state);
        let fails = |check: &Self, text: &str| {
            let text = format!("{}: {text}", step.rule);
            Err(check.violation(instance, &text, Some((origin, None))))
        };
        if let Some(started) = instance.map.started {
            state.cells[started] = FALSE;
            if !instance.machine.not_initial(&state).is_empty()
                || self.cube(instance, &state).is_some()
            {
                return fails(self, "the state before the choice is not initial");
            }
            let accepts = |next: &MachineState| {
                instance.map.origin(instance.machine.n, next).as_ref() == Some(origin)
            };
            match instance.transition(&mut self.audit.generator, &state, step.place, &accepts) {
                Some(next) => state = next,
                None => return fails(self, "no transition leads to this start state"),
            }
        } else {
            if !instance.map.write(origin, &mut state) {
                return fails(self, "a variable without a value has one in the system");
            }
            if !instance.machine.not_initial(&state).is_empty() {
                return fails(self, "this start state is not initial in the system");
            }
        }
        if self.cube(instance, &state).is_some() {
            return fails(self, "this start state is in a cube of the certificate");
        }
        Ok(Sample { state, origin: origin.clone(), is_reached: true })
    }
    /// Follows a run, with mutations of its states.
    fn run(&mut self, instance: &mut TranslatedInstance) -> Result<(), Diagnostic> {
        let mut sample = None;
        if !instance.starts.is_empty() && self.audit.generator.random.chance(4, 5) {
            let start = self.audit.generator.random.choose(&instance.starts);
            sample = Some(self.start(instance, start)?);
        }
        if sample.is_none() {
            let state = self.audit.generator.random_state(&instance.machine);
            sample = self.mutate(instance, &state);
        }
        let mut next = sample;
        for _ in 0..LENGTH {
            let Some(sample) = next.take() else { break };
            for _ in 0..MUTATED {
                if self.is_done() {
                    return Ok(());
                }
                if let Some(mutated) = self.mutate(instance, &sample.state) {
                    let step = self.check_state(instance, &mutated)?;
                    // A run may leave the reachable states.
                    if step.is_some() && self.audit.generator.random.chance(1, 12) {
                        next = step;
                    }
                }
            }
            let step = self.check_state(instance, &sample)?;
            next = next.or(step);
        }
        Ok(())
    }
    /// Returns a mutation of a state, one close to a cube or a guard, or any state.
    fn mutate(&mut self, instance: &TranslatedInstance, from: &MachineState) -> Option<Sample> {
        let machine = &instance.machine;
        let mut state = match self.audit.generator.random.below(6) {
            0 => self.audit.generator.random_state(machine),
            1 if !self.audit.invariant.cubes.is_empty() => self.audit.near_cube(machine, from),
            _ => from.clone(),
        };
        self.audit.generator.mutate(machine, &mut state, &[]);
        if self.audit.generator.random.chance(1, 3) {
            self.audit.generator.repair_for_transition(machine, &mut state);
        }
        instance.map.normalise(&mut self.audit.generator, &mut state);
        let origin = instance.map.origin(machine.n, &state)?;
        Some(Sample { state, origin, is_reached: false })
    }
    /// Checks all steps and failures of a state. Returns the state after a random step.
    fn check_state(
        &mut self,
        instance: &mut TranslatedInstance,
        sample: &Sample,
    ) -> Result<Option<Sample>, Diagnostic> {
        let n = instance.machine.n;
        let cube = self.cube(instance, &sample.state);
        self.found.samples += 1;
        self.found.reached += usize::from(sample.is_reached);
        let is_outside = self.has_certificate && cube.is_none();
        self.found.outside += usize::from(is_outside);
        let (least, most) = self.found.processes.unwrap_or((n, n));
        self.found.processes = Some((least.min(n), most.max(n)));
        if let (true, Some(cube)) = (sample.is_reached, cube) {
            let text = format!("a reachable state is in cube {} of the certificate", cube + 1);
            return Err(self.violation(instance, &text, Some((&sample.origin, None))));
        }
        let steps = instance.origin.steps(&sample.origin);
        let mut failures = instance.origin.failures(&sample.origin);
        let mut nexts = Vec::new();
        for step in &steps {
            match &step.next {
                Err(why) => failures.push(format!("{}: {why}", step.rule)),
                Ok(next) if *next == sample.origin => {}
                Ok(next) => {
                    let accepts =
                        |state: &MachineState| instance.map.origin(n, state).as_ref() == Some(next);
                    let generator = &mut self.audit.generator;
                    let found = instance.transition(generator, &sample.state, step.place, &accepts);
                    let by = Some((&sample.origin, Some(next)));
                    let Some(state) = found else {
                        let text = format!("the system has no transition for {}", step.rule);
                        return Err(self.violation(instance, &text, by));
                    };
                    self.found.steps += 1;
                    self.rules.insert((step.place.start, step.place.end));
                    if let (None, Some(cube)) = (cube, self.cube(instance, &state)) {
                        let text = format!(
                            "a state is in no cube of the certificate, and {} leads into cube {}",
                            step.rule,
                            cube + 1
                        );
                        return Err(self.violation(instance, &text, by));
                    }
                    nexts.push((state, next));
                }
            }
        }
        self.found.failures += failures.len();
        if let Some(failure) = failures.first()
            && (is_outside || !instance.is_unsafe(&sample.state))
        {
            let text = match is_outside {
                true => format!(
                    "a state is in no cube of the certificate, and the model fails: {failure}"
                ),
                false => {
                    format!("the system is safe in a state where the model fails: {failure}")
                }
            };
            return Err(self.violation(instance, &text, Some((&sample.origin, None))));
        }
        if nexts.is_empty() {
            return Ok(None);
        }
        let (state, origin) = nexts.swap_remove(self.audit.generator.random.below(nexts.len()));
        Ok(Some(Sample { state, origin: origin.clone(), is_reached: sample.is_reached }))
    }
    /// Builds the error, with a state and the state after a step.
    fn violation(
        &self,
        instance: &TranslatedInstance,
        text: &str,
        states: Option<(&OriginState, Option<&OriginState>)>,
    ) -> Diagnostic {
        let text = format!("the check of the translation by samples failed: {text}");
        let mut error = Diagnostic::new(Stage::Internal, text)
            .note(format!("elements: {}", instance.machine.n));
        if let Some((state, next)) = states {
            error = error.note(format!("state: {}", instance.origin.text(state, None)));
            if let Some(next) = next {
                let changed: Vec<usize> =
                    (0..state.len()).filter(|at| state[*at] != next[*at]).collect();
                let changed = instance.origin.text(next, Some(&changed));
                error = error.note(format!("changes: {changed}"));
            }
        }
        error.note(format!("seed: {}", self.found.seed))
    }
}
