//! Decisions on the models from the searches, with the confirmation of violations on runs.

use super::premises::{unfixed_sizes_reason, unproved_premise, vacuity_reason};
use super::verdict::ConformanceVerdict;
use crate::commands::conform::target::{InstanceChecks, TargetMachine, checks_of};
use crate::commands::conform::{ConfirmedViolation, ModelSource, confirm_violation};
use crate::output;
use crate::output::answers::{AnswerList, KnownAnswer};
use crate::output::progress::group_digits;
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage, Stop};
use mu_conform::every_length::decide::{Checks, ProductSearchResult, Subject, Survey};
use mu_conform::every_length::monitor::{Guess, coherence_guesses, cycle_guesses};
use mu_conform::every_length::order::{ModelForm, ProcessorOrder};
use mu_conform::every_length::sampled::{Effort, Samples, sample};
use mu_conform::judge::MemoryModel;
use mu_conform::machine::ReducedMachine;
use mu_conform::search::{Bound, Violation, search};
use mu_conform::symmetry::SymmetryGroup;
use mu_conform::witness;
use mu_explore::Outcome;
use std::sync::Arc;

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

/// The decisions on all models, as far as they are made.
pub(super) struct Decider<'a> {
    pub(super) session: &'a Session,
    pub(super) subject: &'a Subject<'a>,
    pub(super) survey: &'a Survey,
    pub(super) machine: &'a TargetMachine<'a>,
    pub(super) coherence: &'a ProductSearchResult,
    pub(super) cycles: Vec<(ProcessorOrder, ProductSearchResult)>,
    /// The limit that ended a search or a check.
    pub(super) stopped: Option<Stop>,
    /// The reason why nothing is proved.
    pub(super) proof_gap: Option<String>,
    /// Histories of runs that violate some order.
    pub(super) runs: Vec<Violation>,
    /// Models without a confirmed run, although the commits of some run violate them.
    pub(super) unconfirmed: Vec<usize>,
    /// By model.
    pub(super) verdicts: Vec<Option<ConformanceVerdict>>,
    /// The verdicts so far, for the output after a limit.
    pub(super) answers: Arc<AnswerList>,
}

/// The memory models, with the texts and the forms of those made of axioms.
pub(super) struct Models<'a> {
    pub(super) models: &'a [MemoryModel],
    pub(super) texts: &'a [Option<ModelSource>],
    pub(super) forms: &'a [ModelForm],
    /// The reason why a model cannot judge the operations of the machine.
    pub(super) unjudged: &'a [Option<String>],
}

impl<'a> Decider<'a> {
    pub(super) fn new(
        (session, subject, survey): (&'a Session, &'a Subject<'a>, &'a Survey),
        machine: &'a TargetMachine<'a>,
        coherence: &'a ProductSearchResult,
        answers: Arc<AnswerList>,
    ) -> Self {
        Self {
            session,
            subject,
            survey,
            machine,
            coherence,
            cycles: Vec::new(),
            stopped: None,
            proof_gap: None,
            runs: Vec::new(),
            unconfirmed: Vec::new(),
            verdicts: Vec::new(),
            answers,
        }
    }
}

impl Decider<'_> {
    /// Checks the commits and the values of the machine. `None` if they have no influence, or after
    /// a limit.
    pub(super) fn check_premises(&mut self) -> Result<Option<InstanceChecks>, Diagnostic> {
        if !self.coherence.is_clean() || !self.survey.size.commits {
            return Ok(None);
        }
        output::begin_stage("checking commits and values");
        let found = checks_of(self.session, self.machine, (self.subject, self.survey));
        let checked = self.record_limit(found)?;
        if let (None, Some(stop)) = (&checked, &self.stopped) {
            self.proof_gap = Some(format!("stopped: {}", stop.word()));
        }
        Ok(checked)
    }

    /// Finds the reason why nothing is proved, if there is one and none is known.
    pub(super) fn find_proof_gap(&mut self, checks: Option<&Checks>) {
        if self.proof_gap.is_none() {
            self.proof_gap = vacuity_reason(self.subject.interface, self.survey)
                .or_else(|| unproved_premise(self.survey, checks))
                .or_else(|| unfixed_sizes_reason(self.machine.sizes));
        }
    }

    /// Returns the strongest order without violation.
    pub(super) fn clean(&self) -> Option<ProcessorOrder> {
        self.cycles.iter().find(|(_, s)| s.is_clean()).map(|(o, _)| *o)
    }

    /// Records the limit that a result ended with, and returns `None` then.
    pub(super) fn record_limit<T>(
        &mut self,
        result: Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        match result {
            Err(Diagnostic { stop: Some(stop), .. }) => {
                self.stopped.get_or_insert(stop);
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Sets a verdict, and adds it to the answers so far.
    pub(super) fn set(&mut self, all: &Models<'_>, m: usize, verdict: ConformanceVerdict) {
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
    pub(super) fn search_cycles(
        &mut self,
        orders: &[ProcessorOrder],
        all: &Models<'_>,
        proof_only: bool,
    ) -> Result<(), Diagnostic> {
        for &order in orders {
            let found = self.subject.search_cycles(self.survey, order);
            let Some(found) = self.record_limit(found)? else { return Ok(()) };
            let Outcome { states, stored, symmetries, .. } = &found.outcome;
            self.session.log(format!(
                "{}: {} states, {} stored with {symmetries} symmetries",
                order.name(),
                group_digits(*states),
                group_digits(*stored)
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
                let found = self.find_confirmed_run(all, m, Some(order));
                match self.record_limit(found)? {
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
    pub(super) fn sample(
        &mut self,
        all: &Models<'_>,
    ) -> Result<Option<(usize, Samples)>, Diagnostic> {
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
        Ok(self.record_limit(found)?.map(|samples| (m, samples)))
    }

    /// Decides the models without a verdict.
    pub(super) fn decide_all(&mut self, all: &Models<'_>) -> Result<(), Diagnostic> {
        for m in 0..all.models.len() {
            if self.verdicts[m].is_some() {
                continue;
            }
            let verdict = match self.verdict(all, m) {
                Err(Diagnostic { stop: Some(stop), .. }) => ConformanceVerdict::after_limit(&stop),
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
                let Some(Some(found)) = self.record_limit(known)? else { continue };
                let shown =
                    self.confirm_on_instances((&all.models[m], all.texts[m].as_ref()), &found);
                if let Some(shown) = self.record_limit(shown)? {
                    self.set(all, m, ConformanceVerdict::Violated(Box::new(shown)));
                }
            }
        }
        Ok(())
    }

    /// Returns the verdict of a model that no run violates.
    pub(super) fn proved_verdict(&self, implied: Option<&'static str>) -> ConformanceVerdict {
        match &self.proof_gap {
            None => ConformanceVerdict::Holds(implied),
            Some(why) => ConformanceVerdict::Unknown(why.clone()),
        }
    }

    pub(super) fn verdict(
        &mut self,
        all: &Models<'_>,
        m: usize,
    ) -> Result<ConformanceVerdict, Diagnostic> {
        if let Some(why) = &all.unjudged[m] {
            return Ok(ConformanceVerdict::Unknown(why.clone()));
        }
        let model = &all.models[m];
        let clean = self.clean();
        match &all.forms[m] {
            ModelForm::Ordered(order) => {
                if let Some(stronger) = clean.filter(|o| o <= order) {
                    let implied = (stronger != *order).then(|| stronger.name());
                    return Ok(self.proved_verdict(implied));
                }
                self.violation(all, m, Some(*order))
            }
            ModelForm::Coherent if self.coherence.is_clean() => {
                let implied = clean.filter(|o| *o == ProcessorOrder::Sc).map(ProcessorOrder::name);
                Ok(self.proved_verdict(implied))
            }
            ModelForm::Coherent => self.violation(all, m, None),
            ModelForm::WeakerThan(order) => match clean.filter(|o| o <= order) {
                Some(stronger) => Ok(self.proved_verdict(Some(stronger.name()))),
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
                Ok(self.proved_verdict(Some(ProcessorOrder::Sc.name())))
            }
            ModelForm::Unsupported(why) => Ok(ConformanceVerdict::Unknown(why.clone())),
        }
    }

    /// Searches a run that violates the order (`None`: coherence) and confirms it. `None` if there
    /// is no confirmed run.
    pub(super) fn find_confirmed_run(
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
        match self.confirm_on_instances((model, text), &found) {
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
    pub(super) fn violation(
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
            return Ok(ConformanceVerdict::after_limit(stop));
        }
        if !self.unconfirmed.contains(&m)
            && let Some(verdict) = self.find_confirmed_run(all, m, order)?
        {
            return Ok(verdict);
        }
        if let Some(confirmed) = self.search_bounded_histories((model, text))? {
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
            "some run commits stores in an order that `{}` forbids, but no run was found in which loads observe it{what}",
            model.name
        )))
    }

    /// Searches for a violation up to a number of operations, where that of the commits is not
    /// confirmed; `None` if there is none, or for an abstraction.
    pub(super) fn search_bounded_histories(
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
    pub(super) fn known_violation(
        &self,
        model: &MemoryModel,
    ) -> Result<Option<Violation>, Diagnostic> {
        let mut worker = model.worker_within(&self.session.budget);
        for found in &self.runs {
            if !worker.allows(&found.history)? {
                return Ok(Some(found.clone()));
            }
        }
        Ok(None)
    }

    /// Confirms a violation on the machine, or on the first instance that has a run with it.
    pub(super) fn confirm_on_instances(
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
