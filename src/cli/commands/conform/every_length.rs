//! Conformance for programs of every length (`conform --operations any`).
//!
//! The layer `conform` searches the product of the machine with the monitors of a memory model.
//! This file decides from these searches what holds for each model, and what the answer rests on.
//! A violation counts only if the judge of histories confirms it on a run in which loads show it;
//! it is then confirmed by the litmus layer and by replay, as one of a bounded number of
//! operations. Otherwise the answer is unknown, with the reason.

mod answer;
mod decider;
pub(super) mod premises;
mod verdict;

pub(super) use self::verdict::ConformanceVerdict;

use self::answer::Results;
use self::decider::{Decider, Models};
use self::premises::{list_premises, samples_premise};
use super::certificate;
use super::faults::{self, Faults, FaultyMachine};
use super::junit;
use super::monitored;
use super::numbers::{AnyNumber, fix_sizes};
use super::results;
use super::sorts::Sorts;
use super::target::TargetMachine;
use super::{
    COMPARED_OPERATIONS, ConfirmedViolation, ModelSource, Operations, ViolationFiles, load_machine,
    models, write_files,
};
use crate::args::{ConformArgs, Reduction};
use crate::commands::litmus;
use crate::output;
use crate::output::progress::Bar;
use crate::pipeline::Session;
use crate::pipeline::files::expect_writable;
use crate::pipeline::load::Origin;
use mu_base::{Diagnostic, Stage, Stop};
use mu_conform::completeness::{Completeness, completeness};
use mu_conform::every_length::decide::{Subject, Survey};
use mu_conform::every_length::order::{Marks, ModelForm, ProcessorOrder};
use mu_conform::every_length::values::Merging;
use mu_conform::interface::Interface;
use mu_conform::judge::MemoryModel;
use mu_conform::machine::ReducedMachine;
use mu_conform::search::{Bound, search};
use mu_conform::symmetry::SymmetryGroup;
use mu_model::Model;

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
            return Err(Diagnostic::internal("a model without symbolic sizes has several cases"));
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
        return decide_and_print(session, args, all, &target, (&faulty, execution));
    }
    let machine = load_machine(session, &interface, &Origin::File(&args.model), Operations::Any)?;
    let target = TargetMachine { sizes: &sizes, ..TargetMachine::of(&machine) };
    decide_and_print(session, args, all, &target, (&faulty, execution))
}

/// Decides all models, and prints the answer.
fn decide_and_print(
    session: &mut Session,
    args: &ConformArgs,
    all: (&[MemoryModel], &[Option<ModelSource>]),
    target: &TargetMachine<'_>,
    (faulty, execution): (&[FaultyMachine], Option<litmus::Picture>),
) -> Result<u8, Diagnostic> {
    let found = decide(session, args, all, target, (faulty, false))?;
    let results = found.ok_or_else(|| {
        Diagnostic::internal("`decide` returned no results although no proof was required")
    })?;
    finish(session, results, &*target.checked_machine().whole.model, all, execution)
}

/// Tries a proof for programs of every length in the place of a search up to a bound. Returns the
/// exit code after the output; `None` if some model is not proved, or the interface has no commits.
pub(super) fn try_proof(
    session: &mut Session,
    args: &ConformArgs,
) -> Result<Option<u8>, Diagnostic> {
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

/// Returns for each model the reason why it cannot judge the machine; `None` if it can. With
/// `--against` such a model is an error.
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

/// Explores the machine, and checks that the labels that it declares have the sorts of the
/// interface.
fn explore_and_survey(
    subject: &Subject<'_>,
    machine: &TargetMachine<'_>,
) -> Result<Survey, Diagnostic> {
    output::begin_stage("exploring the machine");
    let survey = subject.survey()?;
    let mut sorted = subject.interface.clone();
    Sorts::check(&mut sorted, machine.typed)?.expect_covered(
        &survey.alphabet,
        machine.typed,
        machine.declared,
    )?;
    Ok(survey)
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
    let without = args.without_symmetry.then_some(Reduction::Symmetry);
    let options = session.explore_options(machine.searched, without.as_slice());
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let subject = Subject {
        machine: machine.searched,
        interface,
        options: &options,
        budget: &session.budget,
        progress: &bar,
    };
    let survey = explore_and_survey(&subject, machine)?;
    let unjudged = unjudged_of(args, models, (interface, &survey))?;
    let marks = Marks::of(interface, &survey.alphabet);
    let forms: Vec<ModelForm> =
        models.iter().map(|m| ModelForm::of(&m.name, m.is_builtin(), marks)).collect();
    let orders = searched_orders(args, marks, models, &forms);
    output::begin_stage("searching for violations at one address");
    let coherence = subject.search_coherence(&survey)?;
    let all = Models { models, texts, forms: &forms, unjudged: &unjudged };
    let mut decider = Decider::new((&*session, &subject, &survey), machine, &coherence, answers);
    decider.verdicts.resize_with(models.len(), || None);
    if coherence.is_clean() {
        output::begin_stage("searching for cycles");
        decider.search_cycles(&orders, &all, proof_only)?;
    }
    let clean = decider.clean();
    let checked = decider.check_premises()?;
    let instance = checked.as_ref().map_or_else(String::new, |c| machine.instances_text(c));
    let checks = checked.map(|c| c.checks);
    bar.finish();
    decider.find_proof_gap(checks.as_ref());
    let is_proved = |(model, form): (&MemoryModel, &ModelForm)| match form {
        ModelForm::Ordered(order) | ModelForm::WeakerThan(order) => {
            clean.is_some_and(|c| c <= *order)
        }
        ModelForm::Coherent => coherence.is_clean(),
        ModelForm::Unsupported(_) => clean == Some(ProcessorOrder::Sc) && model.is_builtin(),
    };
    let omitted = checks.as_ref().is_some_and(|c| c.merging == Merging::Omitted);
    let all_hold = || models.iter().zip(&forms).all(is_proved);
    if proof_only && (decider.proof_gap.is_some() || omitted || !all_hold()) {
        return Ok(None);
    }
    decider.decide_all(&all)?;
    let samples = decider.sample(&all)?;
    let strongest = clean.filter(|_| decider.proof_gap.is_none());
    // Instances stop their processors after few operations, so they do not show all outcomes.
    let whole = strongest.filter(|_| machine.any.is_empty());
    let known = whole.and_then(|o| models.iter().find(|m| m.name == o.name() && m.is_builtin()));
    let completeness = match known {
        Some(model) => decider.record_limit(compare(session, machine, model))?.flatten(),
        None => None,
    };
    let Decider { cycles, stopped, verdicts, .. } = decider;
    let mut premises =
        list_premises((machine.any, &instance), &survey, &coherence, checks.as_ref());
    let samples = samples.filter(|(_, s)| s.runs > 0);
    premises.checked.extend(samples.map(|(m, s)| samples_premise(machine, &models[m].name, s)));
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
            .map(|v| v.unwrap_or_else(ConformanceVerdict::undecided))
            .collect(),
        premises,
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
