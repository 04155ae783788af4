//! Faulty machines for programs of every length (`conform --operations any --fault FILE…`).
//!
//! The correct machine is judged for every length. A fault is first searched in histories up to
//! [`FAULT_OPERATIONS`] operations of each processor, so that its test is a smallest one. A fault
//! that needs more is searched with the monitors; its test is then that of the confirmed run.

use super::every_length::ConformanceVerdict;
use super::faults::{FaultSearch, Faults, FaultyMachine, Finding};
use super::target::TargetMachine;
use super::{
    ConfirmedViolation, ExploredMachine, ModelSource, Operations, confirm_violation,
    explore_machine, load_machine, symmetries,
};
use crate::args::ConformArgs;
use crate::pipeline::Session;
use crate::pipeline::load::Origin;
use mu_base::{Diagnostic, Stage};
use mu_conform::every_length::decide::Subject;
use mu_conform::every_length::monitor::{Guess, coherence_guesses, cycle_guesses};
use mu_conform::every_length::order::{Marks, ModelForm};
use mu_conform::interface::Interface;
use mu_conform::judge::MemoryModel;

/// Operations of each processor up to which faults are searched in histories.
pub(super) const FAULT_OPERATIONS: u32 = 4;

/// Searches the faulty machines; `None` if the correct machine conforms to no model. `register`
/// receives the results so far after each machine.
pub(super) fn faults(
    session: &mut Session,
    args: &ConformArgs,
    (models, texts): (&[MemoryModel], &[Option<ModelSource>]),
    (machine, verdicts): (&TargetMachine<'_>, &[ConformanceVerdict]),
    faulty: &[FaultyMachine],
    register: &mut dyn FnMut(&Session, &Faults),
) -> Result<Option<Faults>, Diagnostic> {
    if faulty.is_empty() {
        return Ok(None);
    }
    if !machine.any.is_empty() {
        let message = "faulty machines need a value of every parameter";
        return Err(Diagnostic::new(Stage::Unsupported, message));
    }
    let holds = |m: &usize| matches!(verdicts[*m], ConformanceVerdict::Holds(_));
    let conforming: Vec<usize> = (0..models.len()).filter(holds).collect();
    if conforming.is_empty() {
        return Ok(None);
    }
    let origin = Origin::File(&args.model);
    let ExploredMachine { machine: correct, .. } =
        explore_machine(session, machine.interface, &origin, FAULT_OPERATIONS)?;
    let group = symmetries(session, args, &correct);
    let search = FaultSearch {
        args,
        interface: machine.interface,
        models,
        texts,
        correct: (&correct, &group),
        conforming: &conforming,
        bound: FAULT_OPERATIONS,
        monitored: true,
    };
    search.run(session, faulty, register).map(Some)
}

/// Searches a machine with the monitors of some models, in this order. `None` if no violation is
/// found and confirmed.
pub(super) fn find(
    session: &mut Session,
    interface: &Interface,
    origin: &Origin<'_>,
    (models, texts): (&[MemoryModel], &[Option<ModelSource>]),
    selected: &[usize],
) -> Result<Option<Finding>, Diagnostic> {
    let machine = load_machine(session, interface, origin, Operations::Any)?;
    let searched = &**machine.searched_model();
    let options = session.explore_options(searched, &[]);
    let subject = Subject {
        machine: searched,
        interface,
        options: &options,
        budget: &session.budget,
        progress: &mu_explore::Silent,
    };
    let survey = subject.survey()?;
    let marks = Marks::of(interface, &survey.alphabet);
    let coherence = subject.search_coherence(&survey)?;
    for &m in selected {
        let text = texts[m].as_ref();
        let order = match ModelForm::of(&models[m].name, models[m].is_builtin(), marks) {
            ModelForm::Ordered(order) => Some(order),
            ModelForm::Coherent => None,
            ModelForm::WeakerThan(_) | ModelForm::Unsupported(_) => continue,
        };
        let mut lists: Vec<Vec<Guess>> = Vec::new();
        if coherence.violated.is_some() {
            lists.push(coherence_guesses(survey.size));
        }
        lists.extend(order.map(|o| cycle_guesses(survey.size, o)));
        if let Some(found) = subject.confirm(&survey, &lists, &models[m])? {
            let whole = &*machine.whole.model;
            let against = (&models[m], text);
            let shown: ConfirmedViolation =
                confirm_violation(session, interface, whole, &survey.alphabet, against, &found)?;
            let operations = found.history.threads.iter().map(Vec::len).max().unwrap_or(0);
            return Ok(Some(Finding { operations, models: vec![models[m].name.clone()], shown }));
        }
    }
    Ok(None)
}
