//! Decision: trace, model -> verdict.
//!
//! Prechecks, a replay of the model's machine backwards in the order of the log, with inference in
//! windows where it is blocked (`fast`), a search of a run forwards, and a saturation of the order
//! with search where it remains open; the first method with an answer decides. An allowed trace has
//! a witness that independent code checks, a forbidden one a cycle.

mod explain;
mod fast;
mod mixed;
mod open;
mod pow;
mod problem;
mod replay;
mod saturate;
mod search;
mod sources;
mod window;

use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};

use explain::conflict;
use problem::{NodeRole, PreservedOrder, Problem};
use saturate::{Saturation, topological};
use search::Outcome;
use sources::{OpenSource, Sources};

use crate::model::TraceModel;
use crate::trace::{Fence, Initial, OperationKind, Trace};

/// Options of a decision.
#[derive(Clone, Debug)]
pub struct DecisionOptions {
    /// Maximum number of decisions that a search may revise before the answer is unknown.
    pub max_revisions: u64,
    /// True if the replay of the machine in the order of the log is tried first.
    pub replay: bool,
}

impl Default for DecisionOptions {
    fn default() -> Self {
        DecisionOptions { max_revisions: 10_000_000, replay: true }
    }
}

/// Step of a witness.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WitnessStep {
    /// An operation takes effect: a load takes its value, a store enters the buffer of its thread
    /// (or memory, in models without buffers), a fence or an update is complete.
    Perform(u32),
    /// A store leaves the buffer of its thread and reaches memory.
    Reach(u32),
}

/// Justification of an allowed trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Witness {
    /// A run of the model's machine.
    Run(Vec<WitnessStep>),
    /// An order of all operations without a single memory (`pow`), and the stores to each location
    /// in the order of memory.
    Order {
        /// Operations.
        operations: Vec<u32>,
        /// Stores by location.
        coherence: Vec<Vec<u32>>,
        /// Pairs of a load and its source, `None` for the initial value.
        reads_from: Vec<(u32, Option<u32>)>,
    },
    /// The source of each load, `None` for the initial value, and the stores to each location in
    /// the order of memory.
    Execution {
        /// Pairs of a load and its source.
        reads_from: Vec<(u32, Option<u32>)>,
        /// Stores by location.
        coherence: Vec<Vec<u32>>,
    },
}

/// Reason of an edge of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The model preserves the program order of the two operations.
    Program,
    /// A fence lies between them.
    Fence(u32),
    /// The first one ended before the second one began.
    Time,
    /// An acquire or a release orders them.
    Annotation,
    /// The second one loads the value of the first one.
    ReadsFrom,
    /// The first one loads a value that the second one replaces later.
    FromReads,
    /// Memory takes the first store before the second one.
    Coherence,
    /// The second one loads the initial value's location before this store; it is an update or the
    /// required final value that determines the order.
    Atomicity,
    /// The required final value is that of the second store.
    Final,
}

impl Reason {
    /// Returns its name in explanations.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Program => "program order",
            Reason::Fence(_) => "fence",
            Reason::Time => "time",
            Reason::Annotation => "annotation",
            Reason::ReadsFrom => "reads from",
            Reason::FromReads => "from reads",
            Reason::Coherence => "coherence",
            Reason::Atomicity => "atomicity",
            Reason::Final => "final value",
        }
    }
}

/// Edge of a cycle: the first operation takes effect before the second one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderEdge {
    /// First operation.
    pub from: u32,
    /// Second operation.
    pub to: u32,
    /// Reason.
    pub reason: Reason,
    /// Further operations that imply the edge, in ascending order.
    pub because: Vec<u32>,
}

/// Justification of a forbidden trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// A cycle, each edge starting where the one before it ends; empty if one operation alone is
    /// impossible, or if a search without a single cycle found no order.
    pub cycle: Vec<OrderEdge>,
    /// Operations that matter, in ascending order: those of the cycle, those that imply its edges,
    /// and a source for each of their loads. The model forbids them without the rest of the trace.
    pub operations: Vec<u32>,
    /// The updates among them of which only the store matters, in ascending order.
    pub only_stores: Vec<u32>,
    /// Indices of the required final values that matter.
    pub finals: Vec<usize>,
    /// The conflict in one sentence.
    pub message: String,
}

/// Answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The model allows the trace.
    Allowed {
        /// Its justification, checked.
        witness: Witness,
    },
    /// The model forbids the trace.
    Forbidden {
        /// Its justification.
        conflict: Conflict,
    },
    /// A limit left the question open.
    Unknown {
        /// Limit.
        stop: Stop,
        /// The open question in one sentence.
        reason: String,
    },
}

impl Verdict {
    /// Returns true for allowed, false for forbidden, `None` for unknown.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Verdict::Allowed { .. } => Some(true),
            Verdict::Forbidden { .. } => Some(false),
            Verdict::Unknown { .. } => None,
        }
    }
}

/// Limit on the choices that the first search, before the saturation, may revise.
const FIRST_REVISIONS: u64 = 1_000;

/// Decides whether a model allows a trace.
///
/// # Errors
/// A construct of the trace that the model does not know; a violated invariant.
pub fn decide(
    trace: &Trace,
    model: &TraceModel,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<Verdict, Diagnostic> {
    if let Some(line) = trace.unknown_bytes {
        let reason = format!(
            "the access of line {line} has no size, and accesses with a size may share its bytes"
        );
        return Ok(Verdict::Unknown { stop: Stop::States, reason });
    }
    let verdict = match trace.open.is_empty() {
        true => decide_closed(trace, model, options, budget)?,
        false => open::decide(trace, model, options, budget)?,
    };
    Ok(match verdict {
        Verdict::Forbidden { conflict } if !trace.skipped.is_empty() => {
            open::verdict_with_skipped(trace, &conflict)
        }
        verdict => verdict,
    })
}

/// Decides a trace that leaves nothing open.
fn decide_closed(
    trace: &Trace,
    model: &TraceModel,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<Verdict, Diagnostic> {
    if trace.has_mixed_sizes() {
        return Ok(mixed::decide(trace, model, options, budget));
    }
    let sources = Sources::of(trace, &[]);
    let verdict = with_sources(trace, model, &sources, options, budget)?;
    if sources.free.is_empty() || verdict.truth() != Some(false) {
        return Ok(verdict);
    }
    unknown_initial(trace, model, &sources, verdict, options, budget)
}

/// Limit on the choices of unknown initial values; beyond it the answer is unknown.
const MAX_INITIAL: usize = 4_096;

/// Decides a trace that is forbidden if nobody reads the unknown initial values: by trying each
/// value that is loaded.
fn unknown_initial(
    trace: &Trace,
    model: &TraceModel,
    s: &Sources,
    forbidden: Verdict,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<Verdict, Diagnostic> {
    let mut values: Vec<Vec<Option<u64>>> = vec![vec![None]; s.free.len()];
    for i in (0..trace.len()).filter(|i| trace.kind(*i).loads()) {
        if let Ok(k) = s.free.binary_search(&trace.location(i)) {
            let value = Some(trace.loaded_value(i));
            if !values[k].contains(&value) {
                values[k].push(value);
            }
        }
    }
    let count = values.iter().try_fold(1usize, |n, v| n.checked_mul(v.len()));
    if count.is_none_or(|n| n > MAX_INITIAL) {
        let open = values.iter().filter(|v| v.len() > 1).count();
        let reason = format!(
            "the initial values of {open} locations are unknown, and with new ones it is forbidden"
        );
        return Ok(Verdict::Unknown { stop: Stop::States, reason });
    }
    let mut digits = vec![0; values.len()];
    let (mut open, mut all) = (None, ConflictUnion::default());
    all.add(&forbidden);
    while step(&mut digits, &values) {
        let chosen = digits.iter().zip(&values).map(|(d, v)| v[*d]);
        let bound: Vec<(u32, u64)> =
            s.free.iter().zip(chosen).filter_map(|(l, v)| Some((*l, v?))).collect();
        let verdict = with_sources(trace, model, &Sources::of(trace, &bound), options, budget)?;
        match verdict {
            Verdict::Allowed { .. } => return Ok(verdict),
            Verdict::Unknown { .. } => open = Some(verdict),
            Verdict::Forbidden { .. } => all.add(&verdict),
        }
    }
    let Verdict::Forbidden { conflict } = forbidden else { return Ok(forbidden) };
    Ok(open.unwrap_or_else(|| Verdict::Forbidden { conflict: all.extend(conflict) }))
}

/// Operations and required final values of the conflicts of several choices.
#[derive(Default)]
struct ConflictUnion {
    operations: std::collections::BTreeSet<u32>,
    /// Updates that some conflict needs as a whole.
    wholes: std::collections::BTreeSet<u32>,
    finals: std::collections::BTreeSet<usize>,
}

impl ConflictUnion {
    fn add(&mut self, verdict: &Verdict) {
        let Verdict::Forbidden { conflict } = verdict else { return };
        self.operations.extend(&conflict.operations);
        let is_whole = |i: &u32| conflict.only_stores.binary_search(i).is_err();
        self.wholes.extend(conflict.operations.iter().copied().filter(is_whole));
        self.finals.extend(&conflict.finals);
    }
    /// Returns a conflict with the operations of all.
    fn extend(self, conflict: Conflict) -> Conflict {
        let only_stores = self.operations.difference(&self.wholes).copied().collect();
        Conflict {
            operations: self.operations.into_iter().collect(),
            only_stores,
            finals: self.finals.into_iter().collect(),
            ..conflict
        }
    }
}

/// Advances a number with one digit for each list. Returns false at the end.
fn step<T>(digits: &mut [usize], lists: &[Vec<T>]) -> bool {
    for (digit, list) in digits.iter_mut().zip(lists) {
        *digit += 1;
        if *digit < list.len() {
            return true;
        }
        *digit = 0;
    }
    false
}

/// Decides a trace with known initial values, and checks the witness.
fn with_sources(
    trace: &Trace,
    model: &TraceModel,
    sources: &Sources,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<Verdict, Diagnostic> {
    if let Some(conflict) = impossible(trace, sources) {
        return Ok(Verdict::Forbidden { conflict });
    }
    if options.replay
        && let Some(verdict) = fast::decide(trace, model, sources, budget)?
    {
        return Ok(verdict);
    }
    let verdict = match PreservedOrder::of(model) {
        Some(rules) if rules.depends_on_sources() => {
            let decide = |s: &Sources| order(trace, model, rules, s, options, budget);
            match by_stronger(trace, model, sources, options, budget) {
                Some(verdict) => verdict,
                None => each_source(trace, sources, options, budget, &decide),
            }
        }
        Some(rules) => one_memory(trace, model, rules, sources, options, budget),
        None => {
            expect_full_fences(trace)?;
            let decide = |s: &Sources| power(trace, s, options, budget);
            // Each store is a value of its own.
            let decide_each = |s: &Sources| match s.has_single_stores() {
                true => decide(s),
                false => decide(&s.with_answers(&[])),
            };
            match power_by_sc(trace, sources, options, budget) {
                Some(verdict) => verdict,
                None => each_source(trace, sources, options, budget, &decide_each),
            }
        }
    };
    if let Verdict::Allowed { witness } = &verdict {
        crate::witness::check(trace, model, witness)?;
    }
    Ok(verdict)
}

/// Limit on the choices of a search under a stronger model.
const STRONGER_REVISIONS: u64 = 100_000;

/// Decides a trace with several sources of loads by a run of a stronger model, which needs no
/// choice of sources. `None` if no such run is found. The run is checked under the model itself, so
/// nothing depends on the order of the models.
fn by_stronger(
    trace: &Trace,
    model: &TraceModel,
    s: &Sources,
    options: &DecisionOptions,
    budget: &Budget,
) -> Option<Verdict> {
    if s.questions(trace).is_empty() {
        return None;
    }
    let revisions = options.max_revisions.min(STRONGER_REVISIONS);
    let options = DecisionOptions { max_revisions: revisions, ..options.clone() };
    for stronger in [TraceModel::Sc, TraceModel::Tso, TraceModel::Pso] {
        if stronger.name() == model.name() {
            break;
        }
        let rules = PreservedOrder::of(&stronger).expect("it has one memory");
        let Verdict::Allowed { witness: Witness::Run(run) } =
            order(trace, &stronger, rules, s, &options, budget)
        else {
            continue;
        };
        let steps = run.into_iter().flat_map(|step| match step {
            // Each store has a step of its own, also that of an update with two events.
            WitnessStep::Perform(i) => match trace.kind(i as usize) {
                OperationKind::Update if model.splits(trace.mark(i as usize)) => {
                    vec![WitnessStep::Perform(i), WitnessStep::Reach(i)]
                }
                OperationKind::Store => vec![WitnessStep::Reach(i)],
                _ => vec![WitnessStep::Perform(i)],
            },
            reach => vec![reach],
        });
        let witness = Witness::Run(steps.collect());
        if crate::witness::check(trace, model, &witness).is_ok() {
            return Some(Verdict::Allowed { witness });
        }
    }
    None
}

/// Decides under a model with one memory: `pso` and `wmo` by a stronger model, if several sources
/// of loads leave a short search open.
fn one_memory(
    trace: &Trace,
    model: &TraceModel,
    rules: PreservedOrder,
    s: &Sources,
    options: &DecisionOptions,
    budget: &Budget,
) -> Verdict {
    if matches!(model, TraceModel::Pso | TraceModel::Wmo) && !s.questions(trace).is_empty() {
        let revisions = options.max_revisions.min(STRONGER_REVISIONS);
        let short = DecisionOptions { max_revisions: revisions, ..options.clone() };
        let first = order(trace, model, rules, s, &short, budget);
        if first.truth().is_some() {
            return first;
        }
        if let Some(verdict) = by_stronger(trace, model, s, options, budget) {
            return verdict;
        }
    }
    order(trace, model, rules, s, options, budget)
}

/// Decides a trace with several sources of loads under `pow` by an order of `sc`, checked under
/// `pow`. `None` if none is found.
fn power_by_sc(
    trace: &Trace,
    s: &Sources,
    options: &DecisionOptions,
    budget: &Budget,
) -> Option<Verdict> {
    if s.questions(trace).is_empty() {
        return None;
    }
    let revisions = options.max_revisions.min(STRONGER_REVISIONS);
    let options = DecisionOptions { max_revisions: revisions, ..options.clone() };
    let rules = PreservedOrder::of(&TraceModel::Sc).expect("it has one memory");
    let Verdict::Allowed { witness } = order(trace, &TraceModel::Sc, rules, s, &options, budget)
    else {
        return None;
    };
    let witness = open::as_order(trace, &witness)?;
    let is_right = crate::witness::check(trace, &TraceModel::Pow, &witness).is_ok();
    is_right.then_some(Verdict::Allowed { witness })
}

/// Decides under a model with edges that depend on the sources of loads: by trying all sources of
/// loads that have several.
fn each_source(
    trace: &Trace,
    s: &Sources,
    options: &DecisionOptions,
    budget: &Budget,
    decide: &dyn Fn(&Sources) -> Verdict,
) -> Verdict {
    let questions = s.questions(trace);
    if questions.is_empty() {
        return decide(s);
    }
    let lists: Vec<Vec<u32>> = questions.iter().map(|q| q.1.clone()).collect();
    if lists.iter().any(Vec::is_empty) {
        return Verdict::Forbidden { conflict: no_order(trace) };
    }
    let mut digits = vec![0; lists.len()];
    let (mut tried, mut open, mut all) = (0, None, ConflictUnion::default());
    loop {
        let answers: Vec<(OpenSource, u32)> =
            (0..lists.len()).map(|k| (questions[k].0, lists[k][digits[k]])).collect();
        let verdict = decide(&s.with_answers(&answers));
        match verdict {
            Verdict::Allowed { .. } => return verdict,
            Verdict::Unknown { .. } => open = Some(verdict),
            Verdict::Forbidden { .. } => all.add(&verdict),
        }
        tried += 1;
        if let Err(stop) = budget.check(tried) {
            return unknown_verdict(stop, "the choice of sources for loads of repeated values");
        }
        if tried > options.max_revisions {
            return revisions_exhausted("the choice of sources for loads of repeated values");
        }
        if !step(&mut digits, &lists) {
            break;
        }
    }
    open.unwrap_or_else(|| Verdict::Forbidden { conflict: all.extend(no_order(trace)) })
}

/// Returns the conflict of a value that no operation explains.
fn impossible(trace: &Trace, s: &Sources) -> Option<Conflict> {
    if let Some(&load) = s.unsupplied.first() {
        let message = format!(
            "line {} loads {}, which is neither stored nor the initial value",
            trace.line(load as usize),
            trace.loaded_value(load as usize)
        );
        // An unknown initial value is that of the first load which no store explains.
        let place = trace.location(load as usize);
        let is_initial = |i: &u32| s.want[*i as usize] == place;
        let initial = match trace.locations[place as usize].initial {
            Initial::Unknown => (0..narrow::index(trace.len())).find(is_initial),
            _ => None,
        };
        let mut operations: Vec<u32> = initial.into_iter().chain([load]).collect();
        operations.sort_unstable();
        return Some(Conflict::without_cycle(operations, Vec::new(), message));
    }
    if let Some(conflict) = future_load(trace, s) {
        return Some(conflict);
    }
    let wrong = s.wrong_final?;
    let last = &trace.finals[wrong];
    let message = format!(
        "the final value {} of {} is neither stored nor the initial value, or it contradicts another one",
        last.value, trace.locations[last.location as usize].name
    );
    let finals = (0..=wrong).filter(|f| trace.finals[*f].location == last.location).collect();
    Some(Conflict::without_cycle(Vec::new(), finals, message))
}

/// Returns the conflict of a load with its only source behind it in its own thread, or in itself.
fn future_load(trace: &Trace, s: &Sources) -> Option<Conflict> {
    for thread in 0..trace.threads.len() {
        let range = trace.range(thread);
        for load in range.clone() {
            let want = s.want[load];
            if want == sources::NONE || !s.is_unique(want) {
                continue;
            }
            let store = s.only[want as usize];
            if store == sources::NONE || !(load..range.end).contains(&(store as usize)) {
                continue;
            }
            let (line, value) = (trace.line(load), trace.loaded_value(load));
            let store = store as usize;
            let message = match store == load {
                true => format!("line {line} loads {value}, which only it stores"),
                false => format!(
                    "line {line} loads {value}, which only line {}, behind it in its thread, stores",
                    trace.line(store)
                ),
            };
            let mut operations = vec![narrow::index(load), narrow::index(store)];
            operations.dedup();
            return Some(Conflict::without_cycle(operations, Vec::new(), message));
        }
    }
    None
}

/// Decides by a memory order.
fn order(
    trace: &Trace,
    model: &TraceModel,
    rules: PreservedOrder,
    s: &Sources,
    options: &DecisionOptions,
    budget: &Budget,
) -> Verdict {
    let p = problem::build(trace, s, rules);
    let found = |p: &Problem, nodes: Vec<u32>| Verdict::Allowed {
        witness: Witness::Run(steps(model, p, &nodes)),
    };
    let mut exhausted = false;
    if options.replay {
        let first = match saturate::first(&p, s, trace, rules) {
            Saturation::Open(first, _) => first,
            Saturation::Cycle(cycle) => {
                return Verdict::Forbidden { conflict: conflict(trace, model, &p, s, &cycle) };
            }
            Saturation::Stopped(stop) => return unknown_verdict(stop, "the first edges"),
        };
        let deadlines =
            search::deadlines(&first, s, trace, &topological(&first), rules.is_immediate());
        let revisions = FIRST_REVISIONS.min(options.max_revisions);
        match search::search(&first, s, trace, &deadlines, revisions, budget) {
            Outcome::Found(nodes) => return found(&first, nodes),
            Outcome::Exhausted => exhausted = true,
            Outcome::Revisions => {}
            Outcome::Stopped(stop) => return unknown_verdict(stop, "the replay of the log"),
        }
    }
    let extended = match saturate::saturate(&p, s, trace, rules, budget) {
        Saturation::Cycle(cycle) => {
            return Verdict::Forbidden { conflict: conflict(trace, model, &p, s, &cycle) };
        }
        Saturation::Stopped(stop) => return unknown_verdict(stop, "the saturation of the order"),
        Saturation::Open(extended, _) => extended,
    };
    if exhausted {
        return Verdict::Forbidden { conflict: no_order(trace) };
    }
    let first = topological(&extended);
    let deadlines = search::deadlines(&extended, s, trace, &first, rules.is_immediate());
    match search::search(&extended, s, trace, &deadlines, options.max_revisions, budget) {
        Outcome::Found(nodes) => found(&extended, nodes),
        Outcome::Exhausted => Verdict::Forbidden { conflict: no_order(trace) },
        Outcome::Revisions => revisions_exhausted("the search for an order"),
        Outcome::Stopped(stop) => unknown_verdict(stop, "the search for an order"),
    }
}

/// Rejects fences that `pow` does not have.
fn expect_full_fences(trace: &Trace) -> Result<(), Diagnostic> {
    for i in 0..trace.len() {
        if let OperationKind::Fence(fence) = trace.kind(i)
            && fence != Fence::FULL
        {
            let message = format!(
                "line {}: `{}` has no meaning under `pow`, which has only full fences",
                trace.line(i),
                fence.name()
            );
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
    }
    Ok(())
}

/// Decides by an order of values for each location. Each class has one store or the initial value.
fn power(trace: &Trace, s: &Sources, options: &DecisionOptions, budget: &Budget) -> Verdict {
    let rules = PreservedOrder::of(&TraceModel::Wmo).expect("wmo has one memory");
    let p = problem::build(trace, s, rules);
    match pow::search(trace, s, &p, options.max_revisions, budget) {
        pow::Outcome::Found(operations, coherence) => {
            let loads =
                (0..narrow::index(trace.len())).filter(|i| s.want[*i as usize] != sources::NONE);
            let source = |i: u32| {
                let store = s.only[s.want[i as usize] as usize];
                (i, (store != sources::NONE).then_some(store))
            };
            let reads_from = loads.map(source).collect();
            Verdict::Allowed { witness: Witness::Order { operations, coherence, reads_from } }
        }
        pow::Outcome::Exhausted => Verdict::Forbidden { conflict: no_order(trace) },
        pow::Outcome::Revisions => revisions_exhausted("the search for an order"),
        pow::Outcome::Stopped(stop) => unknown_verdict(stop, "the search for an order"),
    }
}

fn unknown_verdict(stop: Stop, reason: &str) -> Verdict {
    Verdict::Unknown { reason: format!("{reason} ended early ({})", stop.word()), stop }
}

fn revisions_exhausted(what: &str) -> Verdict {
    let reason = format!("{what} revised as many choices as `--max-revisions` allows");
    Verdict::Unknown { reason, stop: Stop::States }
}

fn no_order(trace: &Trace) -> Conflict {
    let message = "no order of the stores explains all values".to_string();
    whole(trace, message)
}

/// Returns the conflict of all operations and required final values.
fn whole(trace: &Trace, message: String) -> Conflict {
    let operations = (0..narrow::index(trace.len())).collect();
    Conflict::without_cycle(operations, (0..trace.finals.len()).collect(), message)
}

/// Returns the steps of a memory order.
fn steps(model: &TraceModel, p: &Problem, nodes: &[u32]) -> Vec<WitnessStep> {
    let sc = matches!(model, TraceModel::Sc);
    let mut out = Vec::with_capacity(nodes.len());
    for &n in nodes {
        let Some(o) = p.operation(n) else { continue };
        match p.roles[n as usize] {
            // A fence may have two nodes; the first one is its own.
            NodeRole::Order if n != o => {}
            NodeRole::Half => out.push(WitnessStep::Reach(o)),
            NodeRole::Store if !sc => out.push(WitnessStep::Reach(o)),
            _ => out.push(WitnessStep::Perform(o)),
        }
    }
    out
}
