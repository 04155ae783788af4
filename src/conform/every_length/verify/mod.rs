//! Check of certificates of conformance by code of its own.
//!
//! In: a [`Certificate`], an interface, and a [`NaiveMachine`], which evaluates the steps of one
//! state. Checked are
//!
//! - *initiation*: the first state of the machine is a state of the certificate, and so is the
//!   first state of the product with each pattern of a violation ([`patterns`]);
//! - *consecution*: each step of the machine leads to such a state, for the machine alone and for
//!   each pattern that does not exclude the run;
//! - *safety*: no state has a violation;
//! - the premises of the proof: each store can still reach memory, values are interchangeable
//!   ([`equivalence`]), operations do not overlap, some load returns a value, operations end.
//!
//! The search, its monitors, its product, and its reading of labels take no part. Cost: one naive
//! evaluation for each state of the machine, one table access for each step of a product.

pub mod equivalence;
pub mod labels;
pub mod patterns;

use super::certificate::{Certificate, Members};
use crate::interface::Interface;
use ahash::{AHashMap, AHashSet};
use labels::{LabelPart, Labels, OperationPart};
use mu_axioms::EventKind;
use mu_base::{Budget, Diagnostic, Stage, narrow};
use patterns::{
    Digits, Dimensions, HistoryPattern, MAX_PLACES, PatternAccess, RoleValues, Strength,
};

/// The steps of a machine, evaluated one state at a time.
pub trait NaiveMachine {
    /// Returns the number of parameters.
    fn parameters(&self) -> usize;
    /// Reads the values of each parameter, before anything else. Equal values have one number.
    /// Error: a text is not a value of the parameter.
    fn read(&mut self, values: &[Vec<String>]) -> Result<Vec<Vec<u32>>, Diagnostic>;
    /// Returns the first state.
    fn initial(&mut self) -> Result<Vec<u32>, Diagnostic>;
    /// Returns the steps of a state: the actions of the label, and the state after it. Error: some
    /// term has no value.
    fn steps(&mut self, state: &[u32]) -> Result<Vec<(Vec<LabelPart>, Vec<u32>)>, Diagnostic>;
}

/// Numbers of checks, and what holds of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerificationCounts {
    /// The order within a processor.
    pub order: String,
    /// States of the machine.
    pub states: usize,
    /// Steps of these states.
    pub steps: usize,
    /// Patterns of violations.
    pub patterns: usize,
    /// States of the products.
    pub products: usize,
    /// Checks that a first state is in the certificate.
    pub initiation: usize,
    /// Checks that a state after a step is in the certificate.
    pub consecution: usize,
    /// Pairs of values that are interchangeable; `None` if the machine has too many states or sets
    /// of states to decide this.
    pub values: Option<usize>,
    /// A processor that may be unable to begin a further operation.
    pub stopped: Option<String>,
    /// Number of values in labels.
    pub value_count: usize,
}

/// Limit on the states of a machine of which the values are checked.
const MAX_VALUE_STATES: usize = 400_000;

/// Creates the error that refuses a certificate.
pub(super) fn fails(text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, text.into())
}

/// The machine, restricted to the states of the certificate.
struct MachineSteps {
    /// Labels: their actions.
    labels: Vec<Vec<LabelPart>>,
    /// For each state the label and the target of each step.
    of: Vec<Vec<(u32, u32)>>,
}

/// Checks a certificate. Error: of stage `File` if a value of it is unreadable, of stage
/// `Unsupported` if it proves nothing, with the reason; a limit.
pub fn verify(
    certificate: &Certificate,
    interface: &Interface,
    machine: &mut dyn NaiveMachine,
    budget: &Budget,
) -> Result<VerificationCounts, Diagnostic> {
    let strength = Strength::from_name(&certificate.order)
        .ok_or_else(|| fails(format!("`{}` is no order", certificate.order)))?;
    let steps = machine_steps(certificate, machine, budget)?;
    let mut out = VerificationCounts {
        order: certificate.order.clone(),
        states: steps.of.len(),
        steps: steps.of.iter().map(Vec::len).sum(),
        initiation: 1,
        ..VerificationCounts::default()
    };
    out.consecution = out.steps;
    let mut labels = Labels::new(interface, &certificate.processors, &certificate.addresses)?;
    let mut happenings = Vec::with_capacity(steps.labels.len());
    for label in &steps.labels {
        happenings.push(labels.happenings(label)?);
    }
    expect_judged(interface, &labels, &happenings)?;
    expect_form(certificate, interface, &happenings, strength)?;
    let [initial, first, second, other] = certificate.roles.each_ref().map(|v| labels.value(v));
    let values = RoleValues { initial, first, second, other };
    if [first, second].contains(&initial) || first == second || [first, second].contains(&other) {
        return Err(fails("the values of the roles are not different"));
    }
    if initial != 0 {
        return Err(fails("the initial value is not that of the interface"));
    }
    let stores_initial = expect_storable(certificate, &labels, &happenings, values)?;
    let updates = |h: &OperationPart| match h {
        OperationPart::Whole(_, f) | OperationPart::End(_, f) => {
            interface.operations[f.line].kind == EventKind::Update
        }
        _ => false,
    };
    let size = Dimensions {
        processors: certificate.processors.len(),
        addresses: certificate.addresses.len(),
        updates: happenings.iter().flatten().any(updates),
        absorbs: happenings.iter().flatten().any(|h| matches!(h, OperationPart::Absorb(..))),
    };
    let mut read = Vec::new();
    for (text, _) in &certificate.guesses {
        read.push(HistoryPattern::read(text, size, strength)?);
    }
    let all = HistoryPattern::all(size, strength);
    for pattern in &all {
        let found = read.iter().position(|p| p == pattern);
        let (name, members) = found
            .map(|i| &certificate.guesses[i])
            .ok_or_else(|| fails(format!("no states of the pattern `{}`", pattern.text())))?;
        let product = Product {
            interface,
            labels: &labels,
            happenings: &happenings,
            steps: &steps,
            pattern,
            name,
            values,
        };
        let checked = product.check(certificate, members, budget)?;
        out.patterns += 1;
        out.products += checked.states;
        out.initiation += 1;
        out.consecution += checked.steps;
    }
    out.stopped = stopping_processor(&steps, &happenings, size.processors)
        .map(|p| certificate.processors[p].clone());
    if steps.of.len() <= MAX_VALUE_STATES {
        // All values in labels, also those that no pattern follows.
        let storable: Vec<usize> =
            (0..labels.names.values.len()).filter(|v| *v != initial).collect();
        let merged = equivalence::Merging {
            interface,
            labels: &happenings,
            names: &labels.names,
            steps: &steps.of,
        };
        let into_initial = stores_initial.then_some(initial);
        out.values = merged.check(&storable, into_initial, budget)?;
    }
    out.value_count = labels.names.values.len();
    Ok(out)
}

/// Evaluates the steps of all states, and checks that they lead to such states.
fn machine_steps(
    certificate: &Certificate,
    machine: &mut dyn NaiveMachine,
    budget: &Budget,
) -> Result<MachineSteps, Diagnostic> {
    if certificate.values.len() != machine.parameters() {
        return Err(fails(format!(
            "the machine has {} parameters, and the certificate {}",
            machine.parameters(),
            certificate.values.len()
        )));
    }
    let values = machine.read(&certificate.values)?;
    let mut numbers: AHashMap<Vec<u32>, u32> = AHashMap::new();
    let mut states = Vec::with_capacity(certificate.states.len());
    for (at, row) in certificate.states.iter().enumerate() {
        let state: Vec<u32> = row.iter().zip(&values).map(|(n, v)| v[*n as usize]).collect();
        if numbers.insert(state.clone(), narrow::index(at)).is_some() {
            return Err(fails(format!("state {at} of the certificate occurs twice")));
        }
        states.push(state);
    }
    let initial = machine.initial()?;
    if numbers.get(&initial) != Some(&0) {
        return Err(fails("the first state of the machine is not state 0 of the certificate"));
    }
    let mut out = MachineSteps { labels: Vec::new(), of: Vec::with_capacity(states.len()) };
    let mut known: AHashMap<Vec<LabelPart>, u32> = AHashMap::new();
    for (at, state) in states.iter().enumerate() {
        budget.check(at as u64).map_err(Diagnostic::stopped)?;
        let mut own = Vec::new();
        for (label, target) in machine.steps(state)? {
            let next = narrow::index(out.labels.len());
            let label = *known.entry(label).or_insert_with_key(|l| {
                out.labels.push(l.clone());
                next
            });
            let Some(target) = numbers.get(&target) else {
                let step = step_text(&out.labels[label as usize]);
                return Err(fails(format!(
                    "{step} leads from state {at} of the certificate out of its states"
                )));
            };
            own.push((label, *target));
        }
        own.sort_unstable();
        own.dedup();
        out.of.push(own);
    }
    Ok(out)
}

/// Checks that the answer is about something: some load returns a value, and the operations of each
/// line that begin also end.
fn expect_judged(
    interface: &Interface,
    labels: &Labels<'_>,
    happenings: &[Vec<OperationPart>],
) -> Result<(), Diagnostic> {
    for (i, line) in interface.operations.iter().enumerate() {
        if labels.started[i] && !labels.ended[i] {
            return Err(fails(format!("no operation of `{}` ends", line.text())));
        }
    }
    let loads = |h: &OperationPart| match h {
        OperationPart::Whole(_, f) | OperationPart::End(_, f) => {
            interface.operations[f.line].kind.reads()
        }
        _ => false,
    };
    let commits = |h: &OperationPart| matches!(h, OperationPart::Commit(..));
    let some = |of: &dyn Fn(&OperationPart) -> bool| happenings.iter().flatten().any(of);
    let updates = interface.operations.iter().any(|o| o.kind == EventKind::Update);
    if !some(&loads) {
        return Err(fails("no label of the machine is a load"));
    }
    if !some(&commits) && !updates {
        return Err(fails("no label of the machine is a commit"));
    }
    Ok(())
}

/// Checks that the patterns are all violations of the model: no cycle has more places, and under
/// partial store order each fence orders a store with all that follows, or with nothing.
fn expect_form(
    certificate: &Certificate,
    interface: &Interface,
    happenings: &[Vec<OperationPart>],
    strength: Strength,
) -> Result<(), Diagnostic> {
    if certificate.addresses.len() > MAX_PLACES {
        return Err(fails(format!("at most {MAX_PLACES} addresses are supported")));
    }
    let is_half = |h: &OperationPart| match h {
        OperationPart::Whole(_, f) | OperationPart::End(_, f) => {
            let line = &interface.operations[f.line];
            line.kind == EventKind::Fence
                && line.mark.orders(true, false) != line.mark.orders(true, true)
        }
        _ => false,
    };
    if strength == Strength::Pso && happenings.iter().flatten().any(is_half) {
        return Err(fails(
            "a fence orders a store with later loads only, or with later stores only: expected a certificate of `tso`",
        ));
    }
    Ok(())
}

/// Checks that each processor that stores at an address can store there all values of labels and
/// roles; the initial one only if it has another role or some label stores it. Returns true then.
fn expect_storable(
    certificate: &Certificate,
    labels: &Labels<'_>,
    happenings: &[Vec<OperationPart>],
    roles: RoleValues,
) -> Result<bool, Diagnostic> {
    let mut stored: AHashSet<(usize, usize, usize)> = AHashSet::new();
    for h in happenings.iter().flatten() {
        let (p, fields) = match h {
            OperationPart::Begin(p, number) => (*p, &labels.names.begun[*number].2),
            OperationPart::Whole(p, fields) | OperationPart::End(p, fields) => (*p, fields),
            OperationPart::Commit(..) | OperationPart::Absorb(..) => continue,
        };
        let kind = labels.interface.operations[fields.line].kind;
        let value = if kind == EventKind::Update { fields.written } else { fields.value };
        if kind.writes()
            && let (Some(a), Some(v)) = (fields.address, value)
        {
            stored.insert((p, a, v));
        }
    }
    let places: AHashSet<(usize, usize)> = stored.iter().map(|s| (s.0, s.1)).collect();
    let initial = roles.initial;
    let stores_initial = roles.other == initial || stored.iter().any(|s| s.2 == initial);
    let mut values: Vec<(&String, usize)> =
        labels.names.values.iter().map(|(text, v)| (text, *v)).collect();
    values.retain(|(_, v)| *v != initial || stores_initial);
    values.sort_unstable_by_key(|(_, v)| *v);
    for (text, v) in values {
        let missing = places.iter().filter(|(p, a)| !stored.contains(&(*p, *a, v))).min();
        if let Some((p, a)) = missing {
            return Err(fails(format!(
                "`{}` never stores the value `{text}` at `{}`",
                certificate.processors[*p], certificate.addresses[*a]
            )));
        }
    }
    Ok(stores_initial)
}

/// Counts of one product.
struct ProductCounts {
    states: usize,
    steps: usize,
}

/// The product of the machine with one pattern.
struct Product<'a> {
    interface: &'a Interface,
    labels: &'a Labels<'a>,
    happenings: &'a [Vec<OperationPart>],
    steps: &'a MachineSteps,
    pattern: &'a HistoryPattern,
    /// The pattern as in the certificate.
    name: &'a str,
    values: RoleValues,
}

/// The part of a product that is added to the machine: the state of the pattern, and for each
/// processor the beginning of the operation in progress.
type PatternState = (Digits, Vec<Option<usize>>);

impl Product<'_> {
    /// Checks initiation, consecution, and safety for one pattern.
    fn check(
        &self,
        certificate: &Certificate,
        members: &[Members],
        budget: &Budget,
    ) -> Result<ProductCounts, Diagnostic> {
        let mut numbers: AHashMap<PatternState, u32> = AHashMap::new();
        let mut all: Vec<PatternState> = Vec::new();
        let mut within: AHashSet<(u32, u32)> = AHashSet::new();
        for m in members {
            let digits = self.pattern.state(&m.monitor);
            let digits =
                digits.ok_or_else(|| fails(format!("`{}` is no state of a pattern", m.monitor)))?;
            if self.pattern.is_violation(&digits) {
                return Err(fails("a state of the certificate has a violation"));
            }
            if m.open.len() != certificate.processors.len() {
                return Err(fails("a state without the operations of all processors"));
            }
            let mut open = Vec::new();
            for o in &m.open {
                let number = o.map(|o| {
                    let text = &certificate.begun[o as usize];
                    let known = self.labels.names.begun.iter().position(|b| b.0 == *text);
                    known.ok_or_else(|| fails(format!("`{text}` begins no operation")))
                });
                open.push(number.transpose()?);
            }
            let added = (digits, open);
            let next = narrow::index(all.len());
            let number = *numbers.entry(added.clone()).or_insert(next);
            if number == next {
                all.push(added);
            }
            within.extend(m.states.iter().map(|s| (*s, number)));
        }
        let start = (self.pattern.start(), vec![None; certificate.processors.len()]);
        if !numbers.get(&start).is_some_and(|n| within.contains(&(0, *n))) {
            return Err(fails("the first state of a product is not in the certificate"));
        }
        let mut next: AHashMap<(u32, u32), Option<u32>> = AHashMap::new();
        let mut edges: Vec<((u32, u32), (u32, u32))> = Vec::new();
        let follows = self.pattern.follows();
        let mut counts = ProductCounts { states: within.len(), steps: 0 };
        for &(state, added) in &within {
            budget.check(counts.steps as u64).map_err(Diagnostic::stopped)?;
            for &(label, target) in &self.steps.of[state as usize] {
                let after = match next.get(&(added, label)) {
                    Some(known) => *known,
                    None => {
                        let after = self.apply_label(&all[added as usize], label)?;
                        // `u32::MAX`: no state of the certificate.
                        let number = after.map(|a| numbers.get(&a).copied().unwrap_or(u32::MAX));
                        next.insert((added, label), number);
                        number
                    }
                };
                let Some(after) = after else { continue };
                counts.steps += 1;
                if !within.contains(&(target, after)) {
                    return Err(fails(format!(
                        "{} leads from state {state}, with the pattern `{}` in state {}, out of the certificate",
                        step_text(&self.steps.labels[label as usize]),
                        self.name,
                        all[added as usize].0.iter().map(u8::to_string).collect::<String>()
                    )));
                }
                if follows.is_some() {
                    edges.push(((target, after), (state, added)));
                }
            }
        }
        if let Some(address) = follows {
            let issue = |s: &(u32, u32)| all[s.1 as usize].0[0];
            if !commits(&within, edges, &issue) {
                return Err(fails(format!(
                    "a store to `{}` may never reach memory after it is issued",
                    certificate.addresses[address]
                )));
            }
        }
        Ok(counts)
    }

    /// Applies a label; `None` if the pattern excludes the run. Error: operations overlap.
    fn apply_label(
        &self,
        added: &PatternState,
        label: u32,
    ) -> Result<Option<PatternState>, Diagnostic> {
        let (mut digits, mut open) = added.clone();
        for h in &self.happenings[label as usize] {
            let mut accesses = Vec::new();
            match h {
                OperationPart::Begin(p, number) => {
                    if open[*p].replace(*number).is_some() {
                        return Err(fails("the operations of a processor overlap"));
                    }
                    let (_, _, fields) = &self.labels.names.begun[*number];
                    if self.interface.operations[fields.line].kind == EventKind::Write {
                        accesses.extend(self.access(*p, fields)?);
                    }
                }
                OperationPart::End(p, end) => {
                    let number = open[*p].take();
                    let begun = number.map(|n| &self.labels.names.begun[n].2);
                    let begun =
                        begun.ok_or_else(|| fails("an operation ends that has not begun"))?;
                    let whole = begun.join(end);
                    let whole =
                        whole.ok_or_else(|| fails("another operation ends than has begun"))?;
                    if self.interface.operations[end.line].kind != EventKind::Write {
                        accesses.extend(self.access(*p, &whole)?);
                    }
                }
                OperationPart::Whole(p, fields) => {
                    if open[*p].is_some() {
                        return Err(fails("the operations of a processor overlap"));
                    }
                    accesses.extend(self.access(*p, fields)?);
                }
                OperationPart::Commit(a, v) => accesses.push(PatternAccess::Commit(*a, *v)),
                OperationPart::Absorb(p, a, v) => accesses.push(PatternAccess::Absorb(*p, *a, *v)),
            }
            for access in accesses {
                match self.pattern.apply(&self.values, &digits, access) {
                    Some(next) => digits = next,
                    None => return Ok(None),
                }
            }
        }
        Ok(Some((digits, open)))
    }

    /// Returns the access of an operation. Error: a field is missing.
    fn access(
        &self,
        p: usize,
        fields: &labels::Fields,
    ) -> Result<Option<PatternAccess>, Diagnostic> {
        let line = &self.interface.operations[fields.line];
        let missing = || fails(format!("`{}` has no address or value", line.text()));
        let place = || fields.address.zip(fields.value).ok_or_else(missing);
        Ok(Some(match line.kind {
            EventKind::Read => place().map(|(a, v)| PatternAccess::Load(p, a, v))?,
            EventKind::Write => place().map(|(a, v)| PatternAccess::Store(p, a, v))?,
            EventKind::Update => {
                let (a, v) = place()?;
                PatternAccess::Update(p, a, v, fields.written.ok_or_else(missing)?)
            }
            _ => {
                PatternAccess::Fence(p, line.mark.orders(true, false), line.mark.orders(true, true))
            }
        }))
    }
}

/// Returns the description of a step for messages.
fn step_text(label: &[LabelPart]) -> String {
    if label.is_empty() {
        return "an internal step".into();
    }
    let parts: Vec<String> = label.iter().map(LabelPart::text).collect();
    format!("`{}`", parts.join("|"))
}

/// True if every state in which the store is issued (1) has a path to one in which it is in memory,
/// or not issued. From a state in which it is absorbed (3) none is needed, and none leads there.
fn commits(
    within: &AHashSet<(u32, u32)>,
    edges: Vec<((u32, u32), (u32, u32))>,
    issue: &dyn Fn(&(u32, u32)) -> u8,
) -> bool {
    let mut sources: AHashMap<(u32, u32), Vec<(u32, u32)>> = AHashMap::new();
    for (target, source) in edges {
        sources.entry(target).or_default().push(source);
    }
    let is_free = |s: &(u32, u32)| !matches!(issue(s), 1 | 3);
    let mut open: Vec<(u32, u32)> = within.iter().copied().filter(is_free).collect();
    let mut reached: AHashSet<(u32, u32)> = open.iter().copied().collect();
    while let Some(s) = open.pop() {
        for source in sources.get(&s).into_iter().flatten() {
            if reached.insert(*source) {
                open.push(*source);
            }
        }
    }
    within.iter().all(|s| issue(s) != 1 || reached.contains(s))
}

/// Returns a processor that cannot begin an operation after some state.
fn stopping_processor(
    steps: &MachineSteps,
    happenings: &[Vec<OperationPart>],
    processors: usize,
) -> Option<usize> {
    let mut sources: Vec<Vec<u32>> = vec![Vec::new(); steps.of.len()];
    for (s, own) in steps.of.iter().enumerate() {
        own.iter().for_each(|(_, t)| sources[*t as usize].push(narrow::index(s)));
    }
    (0..processors).find(|p| {
        let begins = |label: u32| {
            happenings[label as usize].iter().any(
                |h| matches!(h, OperationPart::Begin(q, _) | OperationPart::Whole(q, _) if q == p),
            )
        };
        let starts = (0..narrow::index(steps.of.len()))
            .filter(|s| steps.of[*s as usize].iter().any(|(l, _)| begins(*l)));
        let mut open: Vec<u32> = starts.collect();
        let mut reached = vec![false; steps.of.len()];
        open.iter().for_each(|s| reached[*s as usize] = true);
        while let Some(s) = open.pop() {
            for &source in &sources[s as usize] {
                if !std::mem::replace(&mut reached[source as usize], true) {
                    open.push(source);
                }
            }
        }
        reached.contains(&false)
    })
}
