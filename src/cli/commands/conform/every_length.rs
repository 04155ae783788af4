//! Conformance for programs of every length (`conform --operations any`).
//!
//! The layer `conform` searches the product of the machine with the monitors of a memory model.
//! This file decides from these searches what holds for each model, and what the answer rests on.
//! A violation counts only if the judge of histories confirms it on a run in which loads show it;
//! it is then confirmed by the litmus layer and by replay, as one of a bounded number of
//! operations. Otherwise the answer is unknown, with the reason.

use super::certificate;
use super::faults::{self, Faults, FaultyMachine};
use super::junit;
use super::monitored;
use super::numbers::{AnyNumber, fix_sizes};
use super::results::{self, add_violation, behaviour_json, behaviour_text, violation_text};
use super::sorts::Sorts;
use super::target::{TargetMachine, checks_of};
use super::{
    COMPARED_OPERATIONS, ConfirmedViolation, ModelSource, Operations, ViolationFiles,
    confirm_violation, load_machine, models, write_files,
};
use crate::args::ConformArgs;
use crate::commands::litmus;
use crate::output;
use crate::output::answers::{self, AnswerList, KnownAnswer};
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::Session;
use crate::pipeline::files::expect_writable;
use crate::pipeline::load::Origin;
use mu_base::{Diagnostic, Stage, Stop};
use mu_conform::alphabet::{LabelEvent, Phase};
use mu_conform::completeness::{Completeness, completeness};
use mu_conform::every_length::decide::{Checks, ProductSearchResult, Subject, Survey};
use mu_conform::every_length::monitor::{Guess, coherence_guesses, cycle_guesses};
use mu_conform::every_length::order::{Marks, ModelForm, ProcessorOrder};
use mu_conform::every_length::sampled::{Effort, Samples, sample};
use mu_conform::every_length::values::Merging;
use mu_conform::interface::Interface;
use mu_conform::judge::MemoryModel;
use mu_conform::machine::ReducedMachine;
use mu_conform::search::{Bound, Violation, search};
use mu_conform::symmetry::SymmetryGroup;
use mu_conform::witness;
use mu_model::Model;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// The verdict of a model.
pub(super) enum ConformanceVerdict {
    /// No program violates it. The name of a stronger model from which this follows, if it was not
    /// searched itself.
    Holds(Option<&'static str>),
    /// A program violates it.
    Violated(Box<ConfirmedViolation>),
    /// Undecided, with the reason.
    Unknown(String),
}

impl ConformanceVerdict {
    /// Returns the verdict after a limit.
    fn stopped(stop: &Stop) -> Self {
        Self::Unknown(format!("stopped: {}", stop.word()))
    }
    /// Returns the verdict of a model that was not decided.
    fn open() -> Self {
        Self::Unknown("not decided".into())
    }
    /// Returns the verdict as an object.
    fn json(&self, name: &str) -> Value {
        let word = match self {
            Self::Holds(_) => "true",
            Self::Violated(_) => "false",
            Self::Unknown(_) => "unknown",
        };
        let mut object = json!({ "name": name, "verdict": word });
        match self {
            Self::Holds(None) => {}
            Self::Holds(Some(by)) => object["implied_by"] = json!(by),
            Self::Violated(s) => add_violation(&mut object, s),
            Self::Unknown(why) => object["reason"] = json!(why),
        }
        object
    }
    /// Returns the verdict as text; `single`: of the only model, else as a line of a table.
    fn text(&self, session: &Session, name: &str, single: bool) -> String {
        match self {
            Self::Violated(s) if single => violation_text(session, name, s),
            Self::Holds(None) if single => {
                format!("conforms: {name}, for programs of every length\n")
            }
            Self::Holds(Some(by)) if single => format!(
                "conforms: {name}, for programs of every length, because it conforms to {by}\n"
            ),
            Self::Unknown(why) if single => format!("unknown: {name}\nreason       {why}\n"),
            Self::Holds(None) => format!("{name:<16}✔  programs of every length\n"),
            Self::Holds(Some(by)) => {
                format!("{name:<16}✔  programs of every length, because of {by}\n")
            }
            Self::Violated(s) => format!("{name:<16}✘  {}\n", s.found.history.text()),
            Self::Unknown(why) => format!("{name:<16}?  unknown: {why}\n"),
        }
    }
}

/// A check on which answers rest, or an assumption.
pub(super) struct Ground {
    key: &'static str,
    pub(super) text: String,
}

/// The assumption on the labels of a machine.
pub(super) const LABELS: &str = "the interface is right: a load, an update, or a commit takes effect at its label, or between its beginning and its end";

pub(super) fn ground(key: &'static str, text: impl Into<String>) -> Ground {
    Ground { key, text: text.into() }
}

/// Number of operations per processor up to which a violation of the commits is searched in
/// histories, if no run with it is confirmed.
const CONFIRMED_OPERATIONS: usize = 3;
/// Least and largest number of random runs. Between them, one for each [`STATES_PER_RUN`] states of
/// the products, so that runs take at most a tenth of the time, or some hundredths of a second.
const SAMPLED_RUNS: std::ops::RangeInclusive<u64> = 20..=100;
/// Number of states of products for each random run.
const STATES_PER_RUN: u64 = 500;
/// Largest number of operations of each processor in a random run.
const SAMPLED_OPERATIONS: usize = 8;
/// The same for models without an order of their own: their time grows fast.
const SAMPLED_OPERATIONS_WITHOUT_ORDER: usize = 3;

/// Compares the outcomes that a model allows with those that the machine shows; `None` if a limit
/// is reached.
fn compare(
    session: &Session,
    machine: &TargetMachine<'_>,
    model: &MemoryModel,
) -> Result<Option<Completeness>, Diagnostic> {
    output::begin_stage("comparing outcomes");
    let searched = machine.checked_machine().searched_model();
    let options = session.explore_options(&**searched, &[]);
    let explored = ReducedMachine::explore(
        &**searched,
        machine.interface,
        &options,
        &session.budget,
        &mu_explore::Silent,
    )?;
    let group = SymmetryGroup::find(&explored.alphabet, &explored.lts, session.threads());
    let bound = Bound { collect: usize::MAX, ..Bound::of(COMPARED_OPERATIONS, session.threads()) };
    let answer = search(machine.interface, &explored, &group, &[], bound, &session.budget)?;
    if answer.stop != Stop::Complete {
        return Ok(None);
    }
    let executions = answer.judged_histories.into_iter().collect();
    let programs = answer.programs.iter().collect();
    completeness(&programs, &executions, model, &session.budget).map(Some)
}

/// All results.
struct Results<'a> {
    args: &'a ConformArgs,
    interface: &'a Interface,
    survey: Survey,
    /// The bound on operations of the run, which the answer includes.
    bound: Option<u32>,
    coherence: ProductSearchResult,
    cycles: Vec<(ProcessorOrder, ProductSearchResult)>,
    checks: Option<Checks>,
    /// A model of axioms that the machine satisfies, the strongest.
    strongest: Option<ProcessorOrder>,
    /// The outcomes of the strongest model that the machine shows.
    completeness: Option<Completeness>,
    /// The order of which a certificate was written.
    certified: Option<ProcessorOrder>,
    /// The limit that ended a search or a check.
    stopped: Option<Stop>,
    names: Vec<String>,
    verdicts: Vec<ConformanceVerdict>,
    checked: Vec<Ground>,
    assumed: Vec<Ground>,
    seconds: f64,
    peak: u64,
}

pub(super) fn run(
    session: &mut Session,
    args: &ConformArgs,
    execution: Option<litmus::Picture>,
) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.certificate {
        expect_writable(path)?;
    }
    let faulty = faults::read(session, args)?;
    let (models, texts) = models(session, args)?;
    results::register(args, models.iter().map(|m| m.name.as_str()));
    let (source, text) = session.read_interface(&args.interface)?;
    let interface = Interface::parse(source, &text)?;
    let all = (&models[..], &texts[..]);
    let sizes = fix_sizes(session, args)?;
    if let Some(machine) = AnyNumber::read(session, args, &interface)? {
        if args.certificate.is_some() {
            let message = format!(
                "a certificate lists the states of a machine: expected a value of {}",
                machine.parameters.join(", ")
            );
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
        let study = machine.study()?;
        let [case] = study.cases() else {
            return Err(Diagnostic::internal("a study with one case has another one"));
        };
        let regions = study.model(case)?;
        let target = TargetMachine {
            searched: &regions,
            interface: &machine.interface,
            typed: machine.typed_machine(),
            declared: &machine.declared,
            instances: &machine.instances,
            values: &machine.values,
            any: &machine.parameters,
            sizes: &sizes,
        };
        return judged(session, args, all, &target, (&faulty, execution));
    }
    let machine = load_machine(session, &interface, &Origin::File(&args.model), Operations::Any)?;
    let target = TargetMachine { sizes: &sizes, ..TargetMachine::of(&machine) };
    judged(session, args, all, &target, (&faulty, execution))
}

/// Decides all models, and prints the answer.
fn judged(
    session: &mut Session,
    args: &ConformArgs,
    all: (&[MemoryModel], &[Option<ModelSource>]),
    target: &TargetMachine<'_>,
    (faulty, execution): (&[FaultyMachine], Option<litmus::Picture>),
) -> Result<u8, Diagnostic> {
    let found = decide(session, args, all, target, (faulty, false))?;
    let results = found.ok_or_else(|| Diagnostic::internal("an answer is left out"))?;
    finish(session, results, &*target.checked_machine().whole.model, all, execution)
}

/// Tries a proof for programs of every length in the place of a search up to a bound. Returns the
/// exit code after the output; `None` if some model is not proved, or the interface has no commits.
pub(super) fn proved(session: &mut Session, args: &ConformArgs) -> Result<Option<u8>, Diagnostic> {
    let (source, text) = session.read_interface(&args.interface)?;
    let interface = Interface::parse(source, &text)?;
    let unsuitable = interface.commits.is_empty() || args.against.is_empty();
    if unsuitable || !args.fault.is_empty() || args.without_symmetry {
        return Ok(None);
    }
    let (models, texts) = models(session, args)?;
    let all = (&models[..], &texts[..]);
    let machine = load_machine(session, &interface, &Origin::File(&args.model), Operations::Any);
    // The search up to the bound reports what is wrong with a machine.
    let Ok(machine) = machine else { return Ok(None) };
    let target = TargetMachine::of(&machine);
    match decide(session, args, all, &target, (&[], true)) {
        Ok(Some(results)) => finish(session, results, &*machine.whole.model, all, None).map(Some),
        Ok(None) => Ok(None),
        Err(d) if d.stop.is_none() && d.stage != Stage::Internal => Ok(None),
        Err(d) => Err(d),
    }
}

/// Returns for each model the reason why it is listed without a verdict: without `--against`, it is
/// listed if it cannot express some operation.
fn unjudged_of(
    args: &ConformArgs,
    models: &[MemoryModel],
    (interface, survey): (&Interface, &Survey),
) -> Result<Vec<Option<String>>, Diagnostic> {
    let mut out = Vec::with_capacity(models.len());
    for model in models {
        match model.check(interface, &survey.alphabet) {
            Err(d) if !args.against.is_empty() => return Err(d),
            checked => out.push(checked.err().map(|d| format!("not judged: {}", d.message))),
        }
    }
    Ok(out)
}

/// Returns the orders of which cycles are searched, the strongest first.
fn searched_orders(
    args: &ConformArgs,
    marks: Marks,
    models: &[MemoryModel],
    forms: &[ModelForm],
) -> Vec<ProcessorOrder> {
    let is_wanted = |order: ProcessorOrder| {
        let is_for = |(model, form): (&MemoryModel, &ModelForm)| match form {
            ModelForm::Ordered(x) | ModelForm::WeakerThan(x) => *x == order,
            ModelForm::Coherent => false,
            // A machine that is sequentially consistent conforms to each built-in model.
            ModelForm::Unsupported(_) => order == ProcessorOrder::Sc && model.is_builtin(),
        };
        args.against.is_empty() || models.iter().zip(forms).any(is_for)
    };
    let all = ProcessorOrder::ALL.into_iter();
    all.filter(|o| !(marks.halves && *o == ProcessorOrder::Pso) && is_wanted(*o)).collect()
}

/// Decides all models. `proof_only`: `None` unless all of them are proved.
fn decide<'a>(
    session: &mut Session,
    args: &'a ConformArgs,
    (models, texts): (&[MemoryModel], &[Option<ModelSource>]),
    machine: &TargetMachine<'a>,
    (faulty, proof_only): (&[FaultyMachine], bool),
) -> Result<Option<(Results<'a>, Option<Faults>)>, Diagnostic> {
    let interface = machine.interface;
    let answers = results::register(args, models.iter().map(|m| m.name.as_str()));
    let options = session.explore_options(machine.searched, &[]);
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let subject = Subject {
        machine: machine.searched,
        interface,
        options: &options,
        budget: &session.budget,
        progress: &bar,
    };
    output::begin_stage("exploring the machine");
    let survey = subject.survey()?;
    let mut sorted = interface.clone();
    Sorts::check(&mut sorted, machine.typed)?.expect_covered(
        &survey.alphabet,
        machine.typed,
        machine.declared,
    )?;
    let unjudged = unjudged_of(args, models, (interface, &survey))?;
    let marks = Marks::of(interface, &survey.alphabet);
    let forms: Vec<ModelForm> =
        models.iter().map(|m| ModelForm::of(&m.name, m.is_builtin(), marks)).collect();
    let orders = searched_orders(args, marks, models, &forms);
    output::begin_stage("searching for violations at one address");
    let coherence = subject.search_coherence(&survey)?;
    let all = Models { models, texts, forms: &forms, unjudged: &unjudged };
    let mut decider = Decider {
        session,
        subject: &subject,
        survey: &survey,
        machine,
        coherence: &coherence,
        cycles: Vec::new(),
        stopped: None,
        obstacle: None,
        runs: Vec::new(),
        unconfirmed: Vec::new(),
        verdicts: models.iter().map(|_| None).collect(),
        answers,
    };
    if coherence.is_clean() {
        output::begin_stage("searching for cycles");
        decider.search_cycles(&orders, &all, proof_only)?;
    }
    let clean = decider.clean();
    let mut checked = None;
    if coherence.is_clean() && survey.size.commits {
        output::begin_stage("checking commits and values");
        checked = decider.limited(checks_of(session, machine, (&subject, &survey)))?;
        if let (None, Some(stop)) = (&checked, &decider.stopped) {
            decider.obstacle = Some(format!("stopped: {}", stop.word()));
        }
    }
    let instance = checked.as_ref().map_or_else(String::new, |c| machine.instances_text(c));
    let checks = checked.map(|c| c.checks);
    bar.finish();
    if decider.obstacle.is_none() {
        decider.obstacle = vacuous(interface, &survey)
            .or_else(|| obstacle(&survey, checks.as_ref()))
            .or_else(|| unfollowed(machine.sizes));
    }
    let holds = |(model, form): (&MemoryModel, &ModelForm)| match form {
        ModelForm::Ordered(order) | ModelForm::WeakerThan(order) => {
            clean.is_some_and(|c| c <= *order)
        }
        ModelForm::Coherent => coherence.is_clean(),
        ModelForm::Unsupported(_) => clean == Some(ProcessorOrder::Sc) && model.is_builtin(),
    };
    let omitted = checks.as_ref().is_some_and(|c| c.merging == Merging::Omitted);
    let all_hold = || models.iter().zip(&forms).all(holds);
    if proof_only && (decider.obstacle.is_some() || omitted || !all_hold()) {
        return Ok(None);
    }
    decider.decide_all(&all)?;
    let samples = decider.sample(&all)?;
    let strongest = clean.filter(|_| decider.obstacle.is_none());
    // Instances with few operations do not show all outcomes, because cores stop.
    let whole = strongest.filter(|_| machine.any.is_empty());
    let known = whole.and_then(|o| models.iter().find(|m| m.name == o.name() && m.is_builtin()));
    let completeness = match known {
        Some(model) => decider.limited(compare(session, machine, model))?.flatten(),
        None => None,
    };
    let Decider { cycles, stopped, verdicts, .. } = decider;
    let (mut checked, assumed) =
        grounds((machine.any, &instance), &survey, &coherence, checks.as_ref());
    let samples = samples.filter(|(_, s)| s.runs > 0);
    checked.extend(samples.map(|(m, s)| samples_ground(machine, &models[m].name, s)));
    let mut results = Results {
        args,
        interface,
        survey,
        bound: proof_only.then(|| args.operations.bound()),
        coherence,
        cycles,
        checks,
        strongest,
        completeness,
        certified: None,
        stopped,
        names: models.iter().map(|m| m.name.clone()).collect(),
        verdicts: verdicts
            .into_iter()
            .map(|v| v.unwrap_or_else(ConformanceVerdict::open))
            .collect(),
        checked,
        assumed,
        seconds: session.budget.elapsed().as_secs_f64(),
        peak: session.peak_memory(),
    };
    results.register(session, None);
    if let (Some(path), Some(order)) = (&args.certificate, strongest) {
        certificate::write(session, machine.checked_machine(), interface, (order, path))?;
    }
    results.certified = strongest.filter(|_| args.certificate.is_some());
    let mut register = |s: &Session, faults: &Faults| results.register(s, Some(faults));
    let verdicts = (machine, &results.verdicts[..]);
    let faults =
        monitored::faults(session, args, (models, texts), verdicts, faulty, &mut register)?;
    results.seconds = session.budget.elapsed().as_secs_f64();
    results.peak = session.peak_memory();
    results.register(session, faults.as_ref());
    Ok(Some((results, faults)))
}

/// Writes the requested files, and prints the registered results.
fn finish(
    session: &Session,
    (mut results, faults): (Results<'_>, Option<Faults>),
    model: &dyn Model,
    (models, texts): (&[MemoryModel], &[Option<ModelSource>]),
    execution: Option<litmus::Picture>,
) -> Result<u8, Diagnostic> {
    let (json, code) = (results.json(faults.as_ref()), results.code(faults.as_ref()));
    let names = std::mem::take(&mut results.names);
    let verdicts = std::mem::take(&mut results.verdicts);
    let shown: Vec<Option<ConfirmedViolation>> = verdicts
        .into_iter()
        .map(|v| match v {
            ConformanceVerdict::Violated(s) => Some(*s),
            _ => None,
        })
        .collect();
    let written = ViolationFiles {
        args: results.args,
        names: &names,
        shown: &shown,
        interface: results.interface,
    };
    write_files(session, &written, &json, model, (models, texts), execution)?;
    junit::publish(session, results.args, &json, code)
}

/// Returns the reason why a proof would be vacuous: no load returns a value, or the operations of a
/// line of the interface never end.
fn vacuous(interface: &Interface, survey: &Survey) -> Option<String> {
    let events = &survey.alphabet.events;
    let line = |e: &LabelEvent| &interface.operations[e.operation as usize];
    let ends = |e: &&LabelEvent| e.phase != Phase::Begin;
    let open = events.iter().find(|b| {
        b.phase == Phase::Begin && !events.iter().filter(ends).any(|e| e.operation == b.operation)
    });
    if let Some(begin) = open {
        return Some(format!(
            "the {} that `{}` begins never ends",
            line(begin).name(),
            survey.alphabet.event_text(interface, begin)
        ));
    }
    let reads = events.iter().filter(ends).any(|e| line(e).kind.reads());
    (!reads).then(|| {
        "no label of the machine is a load that returns a value, so no memory model forbids anything"
            .to_string()
    })
}

/// Returns the reason why a search that found nothing proves nothing; `None` if it proves that no
/// program violates the model.
fn obstacle(survey: &Survey, checks: Option<&Checks>) -> Option<String> {
    if !survey.size.commits {
        return Some("no label of the machine is a `commit` of the interface, so the order of stores in memory is unknown: faults are found, but nothing is proved".into());
    }
    let checks = checks?;
    if let Some(a) = checks.continuation.stuck {
        return Some(format!(
            "a store to `{}` may never reach memory after it is issued, so some violations would have no order of commits",
            survey.alphabet.names.addresses[a as usize]
        ));
    }
    if let Merging::Fails(u, v) = &checks.merging {
        return Some(format!(
            "the machine distinguishes the values `{u}` and `{v}`: a run with `{v}` in place of each `{u}` may not exist, so merging all other stores may lose executions"
        ));
    }
    if let Merging::Apart(u, v) = &checks.merging {
        return Some(format!(
            "the machine distinguishes the value `{u}` from `{v}`: exchanging the two gives runs that it does not have, and the search follows no stores of `{u}`"
        ));
    }
    if let Merging::Tied(u, v) = &checks.merging {
        return Some(format!(
            "the values of stores depend on each other: in some run a store of `{v}` cannot store `{u}` instead, so stores cannot be distinguished"
        ));
    }
    None
}

/// Returns the reason why a proof about a machine does not decide all of its sizes; `None` if all
/// sizes have values.
fn unfollowed(sizes: &[(String, String)]) -> Option<String> {
    let any: Vec<String> = sizes.iter().map(|(name, _)| format!("{name}=any")).collect();
    let fixed: Vec<String> = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!sizes.is_empty()).then(|| {
        format!(
            "no program violates it with {}; {} is not decided, because the monitors follow processors, addresses, and values by name: each number needs a proof of its own",
            fixed.join(", "),
            any.join(", ")
        )
    })
}

/// Lists what was checked, and what is assumed. `instance`: describes the instances on which
/// commits and values were checked.
fn grounds(
    (any, instance): (&[String], &str),
    survey: &Survey,
    coherence: &ProductSearchResult,
    checks: Option<&Checks>,
) -> (Vec<Ground>, Vec<Ground>) {
    let names = &survey.alphabet.names;
    let (mut checked, mut assumed) = (Vec::new(), Vec::new());
    if !any.is_empty() {
        checked.push(ground(
            "numbers",
            format!(
                "every value of {}: by an abstraction of numbers that is verified at every evaluation",
                any.join(", ")
            ),
        ));
    }
    if coherence.is_clean() {
        checked.push(ground(
            "sources",
            "no load returns a value that was not stored at its address, or a later one of its own",
        ));
        checked.push(ground(
            "in_order",
            "an operation of a processor begins only after the previous one has ended",
        ));
        if survey.size.commits {
            checked.push(ground(
                "commits",
                "no store commits twice, before it is issued, or at another address",
            ));
        }
        if survey.size.absorbs {
            checked.push(ground(
                "absorbed",
                "a store is absorbed only while it and the next store of its processor to its address are pending, with no fence between them, and no other processor loads it",
            ));
        }
    }
    if let Some(c) = checks {
        let states = group_digits(c.continuation.states);
        if c.continuation.stuck.is_none() {
            checked.push(ground(
                "commits_possible",
                if any.is_empty() {
                    format!("every store that is issued can commit ({states} states)")
                } else {
                    format!("every store that is issued can commit as long as no processor has stopped ({states} states{instance})")
                },
            ));
        }
        match c.continuation.stopped.filter(|_| any.is_empty()) {
            None if !any.is_empty() => assumed.push(ground(
                "instances",
                format!("commits and values are checked{instance}, and assumed for other values"),
            )),
            None => checked.push(ground(
                "unbounded",
                "every processor can always begin a further operation",
            )),
            Some(p) => assumed.push(ground(
                "bounded",
                format!(
                    "programs are those that the machine runs to their end: after some runs `{}` begins no further operation",
                    names.processors[p as usize]
                ),
            )),
        }
        match &c.merging {
            Merging::Verified(pairs) => checked.push(ground(
                "values",
                format!("values are interchangeable: in each of {pairs} pairs, one can replace the other everywhere, and at any one store{instance}"),
            )),
            Merging::Omitted => assumed.push(ground(
                "values",
                "values are interchangeable: not checked, because the machine has too many states",
            )),
            Merging::Fails(..) | Merging::Tied(..) | Merging::Apart(..) => {}
        }
    }
    if coherence.is_clean() {
        assumed.push(ground(
            "more_values",
            format!(
                "with more than {} values, the machine treats them as it treats these",
                names.values.len()
            ),
        ));
        assumed.push(ground("labels", LABELS));
    }
    checked.push(ground(
        "symmetry",
        "no symmetry is assumed: the first step chooses processors and addresses",
    ));
    (checked, assumed)
}

/// Reports the random runs of a machine that a model allows.
fn samples_ground(machine: &TargetMachine<'_>, model: &str, samples: Samples) -> Ground {
    let of = machine.values.last().map_or_else(String::new, |value| {
        let set: Vec<String> = machine.any.iter().map(|p| format!("{p}={value}")).collect();
        format!(" of the machine with {}", set.join(", "))
    });
    ground(
        "samples",
        format!(
            "{} random runs{of} with {} operations, up to {} of a processor: the axioms of {model} allow each",
            group_digits(samples.runs),
            group_digits(samples.operations),
            samples.longest
        ),
    )
}

struct Decider<'a> {
    session: &'a Session,
    subject: &'a Subject<'a>,
    survey: &'a Survey,
    machine: &'a TargetMachine<'a>,
    coherence: &'a ProductSearchResult,
    cycles: Vec<(ProcessorOrder, ProductSearchResult)>,
    /// The limit that ended a search or a check.
    stopped: Option<Stop>,
    obstacle: Option<String>,
    /// Histories of runs that violate some order.
    runs: Vec<Violation>,
    /// Models without a confirmed run, although the commits of some run violate them.
    unconfirmed: Vec<usize>,
    /// By model.
    verdicts: Vec<Option<ConformanceVerdict>>,
    /// The verdicts so far, for the output after a limit.
    answers: Arc<AnswerList>,
}

/// The memory models, with the texts and the forms of those made of axioms.
struct Models<'a> {
    models: &'a [MemoryModel],
    texts: &'a [Option<ModelSource>],
    forms: &'a [ModelForm],
    /// The reason why a model cannot judge the operations of the machine.
    unjudged: &'a [Option<String>],
}

impl Decider<'_> {
    /// Returns the strongest order without violation.
    fn clean(&self) -> Option<ProcessorOrder> {
        self.cycles.iter().find(|(_, s)| s.is_clean()).map(|(o, _)| *o)
    }

    /// Records the limit that a result ended with, and returns `None` then.
    fn limited<T>(&mut self, result: Result<T, Diagnostic>) -> Result<Option<T>, Diagnostic> {
        match result {
            Err(Diagnostic { stop: Some(stop), .. }) => {
                self.stopped.get_or_insert(stop);
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Sets a verdict, and adds it to the answers so far.
    fn set(&mut self, all: &Models<'_>, m: usize, verdict: ConformanceVerdict) {
        let (name, single) = (&all.models[m].name, all.models.len() == 1);
        self.answers.set(
            m,
            KnownAnswer {
                object: verdict.json(name),
                text: verdict.text(self.session, name, single),
                violated: matches!(verdict, ConformanceVerdict::Violated(_)),
            },
        );
        self.verdicts[m] = Some(verdict);
    }

    /// Searches for cycles under each order until one has none. Violations are confirmed at once,
    /// so that a limit in a later search does not lose them.
    fn search_cycles(
        &mut self,
        orders: &[ProcessorOrder],
        all: &Models<'_>,
        proof_only: bool,
    ) -> Result<(), Diagnostic> {
        for &order in orders {
            let found = self.subject.search_cycles(self.survey, order);
            let Some(found) = self.limited(found)? else { return Ok(()) };
            self.session.log(format!(
                "{}: {} states",
                order.name(),
                group_digits(found.outcome.states)
            ));
            let (clean, violated) = (found.is_clean(), found.violated.is_some());
            self.cycles.push((order, found));
            if clean {
                return Ok(());
            }
            for (m, form) in all.forms.iter().enumerate().filter(|_| violated && !proof_only) {
                if !matches!(form, ModelForm::Ordered(o) if *o == order) {
                    continue;
                }
                let found = self.confirm(all, m, Some(order));
                match self.limited(found)? {
                    Some(Some(verdict)) => self.set(all, m, verdict),
                    Some(None) => self.unconfirmed.push(m),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// Judges random runs of the machine by the strongest model that holds. Returns its number;
    /// `None` if there is no such model, or a limit was reached. Error: the model forbids a run.
    fn sample(&mut self, all: &Models<'_>) -> Result<Option<(usize, Samples)>, Diagnostic> {
        let order = |m: &usize| match all.forms[*m] {
            ModelForm::Ordered(order) => Some(order),
            _ => None,
        };
        let holds = |m: &usize| matches!(self.verdicts[*m], Some(ConformanceVerdict::Holds(_)));
        let held: Vec<usize> = (0..all.models.len()).filter(holds).collect();
        let ordered =
            ProcessorOrder::ALL.iter().find_map(|o| held.iter().find(|m| order(m) == Some(*o)));
        let Some(&m) = ordered.or(held.first()) else { return Ok(None) };
        let Some(last) = self.machine.instances.last() else { return Ok(None) };
        let operations =
            if ordered.is_some() { SAMPLED_OPERATIONS } else { SAMPLED_OPERATIONS_WITHOUT_ORDER };
        let searches = self.cycles.iter().map(|(_, s)| s).chain([self.coherence]);
        let states: u64 = searches.map(|s| s.outcome.states).sum();
        let runs = (states / STATES_PER_RUN).clamp(*SAMPLED_RUNS.start(), *SAMPLED_RUNS.end());
        output::begin_stage("judging random runs");
        let (names, budget) = (&self.survey.alphabet.names, &self.session.budget);
        let (searched, interface) = (&**last.searched_model(), self.machine.interface);
        let effort = Effort { runs, operations };
        let found = sample(searched, interface, names, (&all.models[m], effort), budget);
        Ok(self.limited(found)?.map(|samples| (m, samples)))
    }

    /// Decides the models without a verdict.
    fn decide_all(&mut self, all: &Models<'_>) -> Result<(), Diagnostic> {
        for m in 0..all.models.len() {
            if self.verdicts[m].is_some() {
                continue;
            }
            let verdict = match self.verdict(all, m) {
                Err(Diagnostic { stop: Some(stop), .. }) => ConformanceVerdict::stopped(&stop),
                other => other?,
            };
            self.set(all, m, verdict);
        }
        // Runs found for other models may violate models that are not supported.
        for (m, form) in all.forms.iter().enumerate() {
            if matches!(self.verdicts[m], Some(ConformanceVerdict::Unknown(_)))
                && all.unjudged[m].is_none()
                && matches!(form, ModelForm::WeakerThan(_) | ModelForm::Unsupported(_))
            {
                let known = self.known_violation(&all.models[m]);
                let Some(Some(found)) = self.limited(known)? else { continue };
                let shown = self.confirmed((&all.models[m], all.texts[m].as_ref()), &found);
                if let Some(shown) = self.limited(shown)? {
                    self.set(all, m, ConformanceVerdict::Violated(Box::new(shown)));
                }
            }
        }
        Ok(())
    }

    fn holds(&self, implied: Option<&'static str>) -> ConformanceVerdict {
        match &self.obstacle {
            None => ConformanceVerdict::Holds(implied),
            Some(why) => ConformanceVerdict::Unknown(why.clone()),
        }
    }

    fn verdict(&mut self, all: &Models<'_>, m: usize) -> Result<ConformanceVerdict, Diagnostic> {
        if let Some(why) = &all.unjudged[m] {
            return Ok(ConformanceVerdict::Unknown(why.clone()));
        }
        let model = &all.models[m];
        let clean = self.clean();
        match &all.forms[m] {
            ModelForm::Ordered(order) => {
                if let Some(stronger) = clean.filter(|o| o <= order) {
                    let implied = (stronger != *order).then(|| stronger.name());
                    return Ok(self.holds(implied));
                }
                self.violation(all, m, Some(*order))
            }
            ModelForm::Coherent if self.coherence.is_clean() => {
                let implied = clean.filter(|o| *o == ProcessorOrder::Sc).map(ProcessorOrder::name);
                Ok(self.holds(implied))
            }
            ModelForm::Coherent => self.violation(all, m, None),
            ModelForm::WeakerThan(order) => match clean.filter(|o| o <= order) {
                Some(stronger) => Ok(self.holds(Some(stronger.name()))),
                None => Ok(ConformanceVerdict::Unknown(format!(
                    "the machine is not shown to implement `{}`, which would imply `{}` for its operations, and the order of `{}` within a processor does not have the required form",
                    order.name(),
                    model.name,
                    model.name
                ))),
            },
            ModelForm::Unsupported(_)
                if clean == Some(ProcessorOrder::Sc) && model.is_builtin() =>
            {
                Ok(self.holds(Some(ProcessorOrder::Sc.name())))
            }
            ModelForm::Unsupported(why) => Ok(ConformanceVerdict::Unknown(why.clone())),
        }
    }

    /// Confirms a violation of an order, or of coherence alone, on a run. `None` if no run with one
    /// is confirmed.
    fn confirm(
        &mut self,
        all: &Models<'_>,
        m: usize,
        order: Option<ProcessorOrder>,
    ) -> Result<Option<ConformanceVerdict>, Diagnostic> {
        let size = self.survey.size;
        let mut lists: Vec<Vec<Guess>> = Vec::new();
        if self.coherence.violated.is_some() {
            lists.push(coherence_guesses(size));
        }
        lists.extend(order.map(|o| cycle_guesses(size, o)));
        let (model, text) = (&all.models[m], all.texts[m].as_ref());
        let Some(found) = self.subject.confirm(self.survey, &lists, model)? else {
            return Ok(None);
        };
        match self.confirmed((model, text), &found) {
            Err(why) if why.stage == Stage::Unsupported && why.stop.is_none() => {
                Ok(Some(ConformanceVerdict::Unknown(why.message)))
            }
            confirmed => {
                let confirmed = confirmed?;
                self.runs.push(found);
                Ok(Some(ConformanceVerdict::Violated(Box::new(confirmed))))
            }
        }
    }

    /// Decides a model for which a search found a violation.
    fn violation(
        &mut self,
        all: &Models<'_>,
        m: usize,
        order: Option<ProcessorOrder>,
    ) -> Result<ConformanceVerdict, Diagnostic> {
        let (model, text) = (&all.models[m], all.texts[m].as_ref());
        let place = self.cycles.iter().position(|c| Some(c.0) == order);
        let stop = match place {
            Some(at) => &self.cycles[at].1.outcome.stop,
            // Without a search of this order, a limit ended the searches, or one address suffices.
            None if self.coherence.is_clean() => self.stopped.as_ref().unwrap_or(&Stop::Complete),
            None => &self.coherence.outcome.stop,
        };
        let violated = place.map_or(self.coherence, |at| &self.cycles[at].1).violated.clone();
        if *stop != Stop::Complete && violated.is_none() {
            return Ok(ConformanceVerdict::stopped(stop));
        }
        if !self.unconfirmed.contains(&m)
            && let Some(verdict) = self.confirm(all, m, order)?
        {
            return Ok(verdict);
        }
        if let Some(confirmed) = self.bounded((model, text))? {
            return Ok(ConformanceVerdict::Violated(Box::new(confirmed)));
        }
        let names = &self.survey.alphabet.names;
        let mut what = violated.as_ref().map_or(String::new(), |g| {
            format!(": {}", g.text(&names.processors, &names.addresses))
        });
        if violated.as_ref().is_some_and(Guess::is_reordering) && !self.survey.size.absorbs {
            what += " (if a later store of a processor can replace one that waits, the interface needs an `absorb` line)";
        }
        Ok(ConformanceVerdict::Unknown(format!(
            "the commits of some run are in an order that violates `{}`, but no run was found in which loads show it{what}",
            model.name
        )))
    }

    /// Searches for a violation up to a number of operations, where that of the commits is not
    /// confirmed; `None` if there is none, or for an abstraction.
    fn bounded(
        &self,
        (model, text): (&MemoryModel, Option<&ModelSource>),
    ) -> Result<Option<ConfirmedViolation>, Diagnostic> {
        if !self.machine.any.is_empty() {
            return Ok(None);
        }
        output::begin_stage("searching histories");
        let (interface, session) = (self.subject.interface, self.session);
        let explored = ReducedMachine::explore(
            self.subject.machine,
            interface,
            self.subject.options,
            &session.budget,
            &mu_explore::Silent,
        )?;
        let group = SymmetryGroup::find(&explored.alphabet, &explored.lts, session.threads());
        for operations in 1..=CONFIRMED_OPERATIONS {
            let bound = Bound { first: true, ..Bound::of(operations, session.threads()) };
            let answer = search(interface, &explored, &group, &[model], bound, &session.budget)?;
            if let Some(found) = &answer.found[0] {
                let whole = &*self.machine.checked_machine().whole.model;
                let names = &explored.alphabet;
                return confirm_violation(session, interface, whole, names, (model, text), found)
                    .map(Some);
            }
        }
        Ok(None)
    }

    /// Returns a history found before that a model forbids.
    fn known_violation(&self, model: &MemoryModel) -> Result<Option<Violation>, Diagnostic> {
        let mut worker = model.worker_within(&self.session.budget);
        for found in &self.runs {
            if !worker.allows(&found.history)? {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// Confirms a violation on the machine, or on the first instance that has a run with it.
    fn confirmed(
        &self,
        against: (&MemoryModel, Option<&ModelSource>),
        found: &Violation,
    ) -> Result<ConfirmedViolation, Diagnostic> {
        let interface = self.subject.interface;
        if self.machine.any.is_empty() {
            let model = &*self.machine.checked_machine().whole.model;
            let alphabet = &self.survey.alphabet;
            return confirm_violation(self.session, interface, model, alphabet, against, found);
        }
        for instance in self.machine.instances {
            let searched = instance.searched_model();
            let options = self.session.explore_options(&**searched, &[]);
            let subject =
                Subject { machine: &**searched, interface, options: &options, ..*self.subject };
            // An instance of a small value may have no operation, or not all values.
            let alphabet = match subject.survey() {
                Ok(survey) => survey.alphabet,
                Err(d) if d.stop.is_none() && d.stage != Stage::Internal => continue,
                Err(d) => return Err(d),
            };
            let wanted = &found.concrete;
            if alphabet.names != self.survey.alphabet.names {
                continue;
            }
            let budget = &self.session.budget;
            if witness::run(&**searched, interface, &alphabet, wanted, &options, budget)?.is_some()
            {
                let model = &*instance.whole.model;
                return confirm_violation(
                    self.session,
                    interface,
                    model,
                    &alphabet,
                    against,
                    found,
                );
            }
        }
        let message = format!(
            "no instance up to {} has the run that violates `{}` in the abstraction",
            self.machine.values.last().map_or(0, |v| *v),
            against.0.name
        );
        Err(Diagnostic::new(Stage::Unsupported, message))
    }
}

impl Results<'_> {
    /// Registers the results.
    fn register(&self, session: &Session, faults: Option<&Faults>) {
        let text = self.text(session, faults);
        answers::set_complete(self.json(faults), text, self.code(faults));
    }

    /// Returns the reason for the end of the first search that is not complete.
    fn stop(&self) -> &Stop {
        let searches = std::iter::once(&self.coherence).chain(self.cycles.iter().map(|c| &c.1));
        let mut stops = searches.map(|s| &s.outcome.stop).chain(&self.stopped);
        stops.find(|s| **s != Stop::Complete).unwrap_or(&Stop::Complete)
    }

    fn code(&self, faults: Option<&Faults>) -> u8 {
        let faults = match faults {
            Some(f) if f.is_limited() => 3,
            Some(f) if !f.all_found() => 1,
            _ => 0,
        };
        match self.verdict_code() {
            0 => faults,
            code => code,
        }
    }

    /// Returns the exit code of the verdicts alone.
    fn verdict_code(&self) -> u8 {
        let is_violated = |v: &&ConformanceVerdict| matches!(v, ConformanceVerdict::Violated(_));
        let is_open = |v: &&ConformanceVerdict| matches!(v, ConformanceVerdict::Unknown(_));
        let all = &self.verdicts;
        if self.args.against.is_empty() {
            return match () {
                () if all.iter().any(|v| matches!(v, ConformanceVerdict::Holds(_))) => 0,
                () if all.iter().any(|v| is_open(&v)) => 3,
                () => 1,
            };
        }
        match (all.iter().any(|v| is_violated(&v)), all.iter().any(|v| is_open(&v))) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        }
    }

    fn text(&self, session: &Session, faults: Option<&Faults>) -> String {
        let names = &self.survey.alphabet.names;
        let mut out = String::new();
        let mut line = |what: &str, text: String| {
            let _ = writeln!(out, "{what:<13}{text}");
        };
        line("machine", self.args.model.display().to_string());
        line(
            "programs",
            format!(
                "of every length; {} processors, {} addresses, {} values",
                names.processors.len(),
                names.addresses.len(),
                names.values.len()
            ),
        );
        if let Some(bound) = self.bound {
            line("bound", format!("{bound} operations per processor: included in every length"));
        }
        line("states", format!("{} of the machine", group_digits(self.survey.outcome.states)));
        let searched = |s: &ProductSearchResult| {
            let found = match &s.violated {
                Some(g) => g.text(&names.processors, &names.addresses),
                None => "none".to_string(),
            };
            format!("{} guesses, {} states: {found}", s.guesses, group_digits(s.outcome.states))
        };
        line("one address", searched(&self.coherence));
        for (order, s) in &self.cycles {
            line(&format!("cycles, {}", order.name()), searched(s));
        }
        for (what, all) in [("checked", &self.checked), ("assumed", &self.assumed)] {
            for (i, g) in all.iter().enumerate() {
                line(if i == 0 { what } else { "" }, g.text.clone());
            }
        }
        if let Some(path) = &self.args.certificate {
            line(
                "certificate",
                match self.certified {
                    Some(order) => format!("of {}, in {}", order.name(), path.display()),
                    None => "none: `sc`, `tso`, or `pso` was not proved".into(),
                },
            );
        }
        line("seconds", format!("{:.3}", self.seconds));
        line("peak memory", format!("{} MiB", self.peak >> 20));
        out.push('\n');
        for (name, verdict) in self.names.iter().zip(&self.verdicts) {
            out += &verdict.text(session, name, self.names.len() == 1);
        }
        if let Some(order) = self.strongest.filter(|_| self.args.against.is_empty()) {
            let _ = writeln!(out, "\nstrongest    {}", order.name());
        }
        if let (Some(order), Some(c)) = (self.strongest, &self.completeness) {
            out += &behaviour_text(order.name(), c, COMPARED_OPERATIONS);
        }
        let holds =
            self.verdicts.iter().filter(|v| matches!(v, ConformanceVerdict::Holds(_))).count();
        match faults {
            Some(faults) => out += &faults.text(self.args, holds),
            None if !self.args.fault.is_empty() && holds == 0 => {
                out += "\nfaults       not searched: the machine without faults conforms to no model\n";
            }
            None => {}
        }
        out
    }

    fn json(&self, faults: Option<&Faults>) -> Value {
        let names = &self.survey.alphabet.names;
        let searched = |what: &str, order: Option<ProcessorOrder>, s: &ProductSearchResult| {
            let mut object = json!({
                "what": what,
                "guesses": s.guesses,
                "states": s.outcome.states,
                "transitions": s.outcome.transitions,
                "levels": s.outcome.levels,
                "violated": s.violated.as_ref().map(|g| g.text(&names.processors, &names.addresses)),
            });
            if let Some(order) = order {
                object["order"] = json!(order.name());
            }
            if let Some((states, all)) = s.rechecked {
                object["rechecked"] = json!({ "states": states, "all": all });
            }
            object
        };
        let mut searches = vec![searched("coherence", None, &self.coherence)];
        searches.extend(self.cycles.iter().map(|(o, s)| searched("cycles", Some(*o), s)));
        let grounds = |all: &[Ground]| {
            all.iter().map(|g| json!({ "what": g.key, "text": g.text })).collect::<Vec<_>>()
        };
        let models = self.names.iter().zip(&self.verdicts).map(|(name, v)| v.json(name));
        let mut object = json!({
            "model": self.args.model.display().to_string(),
            "interface": self.args.interface.display().to_string(),
            "operations": "any",
            "processors": names.processors,
            "addresses": names.addresses,
            "values": names.values,
            "states": self.survey.outcome.states,
            "transitions": self.survey.outcome.transitions,
            "searches": searches,
            "checked": grounds(&self.checked),
            "assumed": grounds(&self.assumed),
            "bounded": self.checks.as_ref().is_some_and(|c| c.continuation.stopped.is_some()),
            "certificate": self.certified.map(ProcessorOrder::name),
            "strongest": self.strongest.map(ProcessorOrder::name),
            "behaviour": self.completeness.as_ref().map(|c| behaviour_json(c, COMPARED_OPERATIONS)),
            "models": models.collect::<Vec<_>>(),
            "verdict": answers::word(self.code(faults)),
            "stop": self.stop().word(),
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak,
        });
        if let Some((faults, suite)) = faults.map(Faults::json) {
            object["faults"] = faults;
            if let Some(suite) = suite {
                object["suite"] = suite;
            }
        }
        object
    }
}
