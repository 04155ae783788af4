//! Report of `check`: outcomes of formulas, from any strategy, become lines, one object, files, and
//! the exit code.
//!
//! Lines are printed as outcomes arrive; the object, the page, and the JUnit file are written at
//! the end, in the order of the command line. The outcomes so far are the registered report of the
//! run ([`Report`]), which the watchdog of [`crate::output`] prints if a limit ends the run.
//! Invariant: a formula has at most one outcome.

use super::plan::{CheckPlan, OutputPlan};
use crate::args::Format;
use crate::commands::explore::find_path::file_name;
use crate::output;
use crate::output::answers::{self, Report};
use crate::output::page;
use crate::pipeline::Session;
use crate::pipeline::files::write_junit;
use crate::pipeline::properties::FormulaText;
use mu_base::{Diagnostic, Stop};
use mu_pbes::Verdict;
use mu_report::junit::{self, TestCase};
use mu_report::page::PageResult;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Verdict on a formula as the exit code and the JUnit report distinguish it.
pub(super) enum ReportedVerdict {
    /// The formula is true, or its value is not minus infinity.
    NotViolated,
    /// The formula is false, or its value is minus infinity. The text describes the evidence.
    Violated(String),
    /// The formula is unknown, for the reason in the text.
    Unknown(String),
    /// The formula was not checked. The text is the reason with its place.
    Rejected(String),
}

impl ReportedVerdict {
    /// Converts the verdict of a search; `evidence`: the text for a false formula.
    pub fn of(found: &Verdict, evidence: String) -> Self {
        match found {
            Verdict::True => ReportedVerdict::NotViolated,
            Verdict::False => ReportedVerdict::Violated(evidence),
            Verdict::Unknown(stop) => ReportedVerdict::Unknown(stop.word().into()),
        }
    }
}

/// Outcome of a formula, from any strategy.
pub(super) struct FormulaOutcome {
    /// Index of the formula in the plan.
    pub formula: usize,
    /// The verdict.
    pub verdict: ReportedVerdict,
    /// Time of the check.
    pub seconds: f64,
    /// The result as JSON, if the plan needs it.
    pub object: Option<Value>,
    /// The result as text, if the plan prints lines.
    pub line: Option<String>,
}

/// Figures of a run that belong to no single formula.
#[derive(Default)]
pub(super) struct Summary {
    /// Warnings about the model, for JSON; they are already printed.
    pub warnings: Vec<Value>,
    /// Figures of the processes of a distributed search, and the sum of their peak memory.
    pub processes: Option<(Value, u64)>,
    /// True if another process reports.
    pub silent: bool,
}

/// Outcomes so far, shared with the watchdog.
struct CollectedOutcomes {
    names: Vec<String>,
    state: Mutex<CollectedState>,
}

/// State of [`CollectedOutcomes`].
#[derive(Default)]
struct CollectedState {
    objects: Vec<(usize, Value)>,
    /// Formulas without an outcome.
    waiting: Vec<usize>,
    violated: bool,
    rejected: bool,
}

impl CollectedOutcomes {
    fn lock(&self) -> MutexGuard<'_, CollectedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CollectedOutcomes {
    /// Returns the formulas without an outcome.
    fn formulas_without_outcome(&self) -> Vec<String> {
        self.lock().waiting.iter().map(|&i| self.names[i].clone()).collect()
    }
}

impl Report for CollectedOutcomes {
    fn object(&self, stop: Option<&Stop>) -> Value {
        let reason = stop.map_or("", Stop::word);
        let unknown = |formula: String| json!({ "formula": formula, "verdict": "unknown", "reason": reason, "evidence": [], "vacuous": [] });
        // The caller holds the lock of `output`, as each update in `CheckReport::add` does: the
        // lists do not change between these two lines.
        let waiting = self.formulas_without_outcome();
        let known = self.lock().objects.iter().map(|o| o.1.clone()).collect::<Vec<_>>();
        let all: Vec<Value> = known.into_iter().chain(waiting.into_iter().map(unknown)).collect();
        json!({ "results": all })
    }
    fn text(&self, stop: Option<&Stop>) -> String {
        let reason = stop.map_or("", Stop::word);
        self.formulas_without_outcome()
            .iter()
            .map(|formula| format!("{formula}: unknown ({reason})\n"))
            .collect()
    }
    fn code(&self, _: Option<&Stop>) -> u8 {
        match &*self.lock() {
            CollectedState { rejected: true, .. } => 2,
            CollectedState { violated: true, .. } => 1,
            _ => 3,
        }
    }
    fn is_complete(&self) -> bool {
        self.lock().waiting.is_empty()
    }
    fn shows_figures(&self) -> bool {
        true
    }
}

/// The report of a run.
pub(super) struct CheckReport<'p> {
    plan: &'p CheckPlan,
    collected: Arc<CollectedOutcomes>,
    cases: Vec<(usize, TestCase)>,
    fails: bool,
    unknown: bool,
    rejected: bool,
}

impl<'p> CheckReport<'p> {
    /// Creates the report, which lets the watchdog read the outcomes.
    pub fn new(plan: &'p CheckPlan) -> Self {
        let names: Vec<String> = plan.texts.iter().map(|t| t.name.display().to_string()).collect();
        let waiting = (0..names.len()).collect();
        let state = CollectedState { waiting, ..CollectedState::default() };
        let collected = Arc::new(CollectedOutcomes { names, state: Mutex::new(state) });
        answers::set(collected.clone());
        Self { plan, collected, cases: Vec::new(), fails: false, unknown: false, rejected: false }
    }

    /// True if some formula is unknown so far.
    pub fn is_unknown(&self) -> bool {
        self.unknown
    }

    /// Adds an outcome and prints its line.
    pub fn add(&mut self, outcome: FormulaOutcome) -> Result<(), Diagnostic> {
        let FormulaOutcome { formula, verdict, seconds, object, line } = outcome;
        self.record(&verdict);
        let violated = matches!(verdict, ReportedVerdict::Violated(_));
        let rejected = matches!(verdict, ReportedVerdict::Rejected(_));
        if let Some(object) = &object {
            output::print_verdict_progress(&self.collected.names[formula], &object["verdict"]);
        }
        let update = || {
            let mut state = self.collected.lock();
            state.waiting.retain(|&i| i != formula);
            state.violated |= violated;
            state.rejected |= rejected;
            state.objects.extend(object.map(|object| (formula, object)));
            state.waiting.is_empty()
        };
        output::print_after(update, line.as_deref())?;
        let name = self.collected.names[formula].clone();
        let case = case(&self.plan.output.model, name, seconds, case_outcome(verdict));
        self.cases.push((formula, case));
        Ok(())
    }

    /// Records a verdict for the exit code: all that this process does for a formula that another
    /// process reports.
    pub fn record(&mut self, verdict: &ReportedVerdict) {
        match verdict {
            ReportedVerdict::NotViolated => {}
            ReportedVerdict::Violated(_) => self.fails = true,
            ReportedVerdict::Unknown(_) => self.unknown = true,
            ReportedVerdict::Rejected(_) => self.rejected = true,
        }
    }

    /// Adds the rejection of one of several formulas and prints its reason. Of several processes,
    /// only the one that reports prints it.
    pub fn reject(
        &mut self,
        session: &Session,
        formula: usize,
        why: &Diagnostic,
    ) -> Result<(), Diagnostic> {
        let reason = why.render(&session.sources);
        if !self.plan.distribution.reports() {
            self.record(&ReportedVerdict::Rejected(reason));
            return Ok(());
        }
        eprint!("{reason}");
        let name = self.collected.names[formula].clone();
        let object = json!({
            "formula": name, "verdict": "unknown", "reason": "error", "equations": 0, "states": 0,
            "engine": "explicit", "seconds": 0.0, "evidence": [], "evidence_left_out": 0,
            "back_to": null, "vacuous": [], "error": output::error_as_json(why, &session.sources),
        });
        self.add(FormulaOutcome {
            formula,
            verdict: ReportedVerdict::Rejected(reason),
            seconds: 0.0,
            object: Some(object),
            line: self.plan.output.lines.then(|| format!("{name}: unknown (error)\n")),
        })
    }

    fn code(&self) -> u8 {
        match self {
            CheckReport { rejected: true, .. } => 2,
            CheckReport { fails: true, .. } => 1,
            CheckReport { unknown: true, .. } => 3,
            _ => 0,
        }
    }

    /// Writes the object and the files of all outcomes. Returns the exit code.
    pub fn finish(mut self, session: &Session, summary: Summary) -> Result<u8, Diagnostic> {
        let Summary { warnings, processes, silent } = summary;
        let output = &self.plan.output;
        if silent {
            return Ok(self.code());
        }
        if output.object {
            let mut all = self.collected.lock().objects.clone();
            all.sort_by_key(|(formula, _)| *formula);
            let results: Vec<Value> = all.into_iter().map(|o| o.1).collect();
            let memory = processes.as_ref().map_or_else(|| session.peak_memory(), |p| p.1);
            let mut object = json!({ "results": results, "peak_memory_bytes": memory });
            if !warnings.is_empty() {
                object["warnings"] = warnings.into();
            }
            if let Some((figures, _)) = processes {
                object["processes"] = figures;
            }
            publish(session, output, object)?;
        }
        if let Some(path) = &output.junit {
            self.cases.sort_by_key(|(formula, _)| *formula);
            let code = self.code();
            let cases: Vec<TestCase> = self.cases.into_iter().map(|c| c.1).collect();
            write_junit(path, &output.model, &cases)?;
            return Ok(code);
        }
        Ok(self.code())
    }
}

/// Writes the object of all results to the page, or prints it, or both.
fn publish(session: &Session, output: &OutputPlan, object: Value) -> Result<(), Diagnostic> {
    if let Some(path) = output.page() {
        let result = PageResult::of("check", output::with_head(object.clone()));
        page::write(session, path, &file_name(&output.model), &[result])?;
    }
    if session.common.format == Format::Json { output::print_object(object) } else { Ok(()) }
}

/// Returns the object with the text of its formula, from the first line that is not blank.
pub(super) fn with_text(mut object: Value, text: &FormulaText) -> Value {
    let blank = text.text.lines().take_while(|l| l.trim().is_empty()).count();
    let own: Vec<&str> = text.text.lines().skip(blank).collect();
    object["text"] = own.join("\n").trim_end().into();
    object["first_line"] = (blank + 1).into();
    object
}

/// Returns the test case of a formula.
fn case(model: &Path, name: String, seconds: f64, outcome: junit::CaseOutcome) -> TestCase {
    TestCase { class: model.display().to_string(), name, seconds, outcome }
}

fn case_outcome(verdict: ReportedVerdict) -> junit::CaseOutcome {
    match verdict {
        ReportedVerdict::NotViolated => junit::CaseOutcome::Passed,
        ReportedVerdict::Violated(text) => {
            junit::CaseOutcome::Failed { message: "the formula does not hold".into(), text }
        }
        ReportedVerdict::Unknown(why) => junit::CaseOutcome::Unknown(why),
        ReportedVerdict::Rejected(reason) => junit::CaseOutcome::Error(reason),
    }
}

/// Writes a JUnit report in which each formula has an error that ended the run.
pub(super) fn report_error(
    path: &Path,
    model: &Path,
    names: impl Iterator<Item = String>,
    message: String,
) {
    let error = |name| case(model, name, 0.0, junit::CaseOutcome::Error(message.clone()));
    // If the file cannot be written either, the first error is reported.
    let _ = write_junit(path, model, &names.map(error).collect::<Vec<_>>());
}
