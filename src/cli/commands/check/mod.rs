//! `check`: plan, run, report.
//!
//! In: arguments, which become a [`CheckPlan`] at the entrance. A [`Strategy`] checks the formulas:
//! by search ([`by_search`]), for every value of a parameter ([`every_value`]), or to values of
//! real-valued formulas ([`real_values`]). Each gives an outcome per formula to the
//! [`CheckReport`], which alone prints, writes files, and computes the exit code.
//!
//! All formulas are read before any is checked. If one of several formulas is rejected, the others
//! are still checked: its verdict is *unknown* with the reason `error`, and the exit code is 2.

mod by_equations;
mod path_proof;
mod by_search;
mod component_samples;
mod every_value;
mod explanation;
mod instances;
mod phases;
mod plan;
mod real_values;
mod report;
mod sampled;
mod spent;
mod verified;

pub(crate) use self::every_value::{hidden_name, parameters};
pub(crate) use self::path_proof::verify_formula;
pub(crate) use self::plan::CheckPlan;

use self::by_search::SearchStrategy;
use self::every_value::EveryValueStrategy;
use self::real_values::RealValueStrategy;
use self::report::{CheckReport, Summary, report_error};
use crate::args::CheckArgs;
use crate::commands::explore;
use crate::commands::explore::plan::Exploration;
use crate::commands::lts::note_internal;
use crate::output;
use crate::pipeline::Session;
use crate::pipeline::cluster;
use crate::pipeline::files::expect_writable;
use crate::pipeline::memory;
use mu_base::{Diagnostic, Stage, Stop};
use mu_lts::relabel::Relabel;

/// Method by which formulas are checked.
trait Strategy {
    /// Checks all formulas of the plan. Adds an outcome for each to the report.
    ///
    /// # Errors
    /// Those that end the run: the only formula is rejected; a broken invariant; standard output or
    /// a file cannot be written.
    fn check(
        &mut self,
        session: &mut Session,
        plan: &CheckPlan,
        report: &mut CheckReport,
    ) -> Result<Summary, Diagnostic>;
}

/// Checks formulas on a model; explores the model if there are none.
pub(crate) fn run(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    let answer = run_check(session, args);
    // Report the error in the JUnit file too: other tools may read nothing else.
    if let (Err(error), Some(junit)) = (&answer, &args.junit) {
        let files = args.formulas.iter().map(|f| f.display().to_string());
        let names = files.chain(args.formula.iter().cloned());
        report_error(junit, &args.model, names, error.render(&session.sources));
    }
    answer
}

fn run_check(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    session.relabel = relabel(session, args)?;
    memory::read_interface(session, &args.model, args.interface.as_deref())?;
    if args.formulas.is_empty() && args.formula.is_empty() {
        return explore::run_plan(session, &Exploration::overview(args)?);
    }
    let plan = CheckPlan::new(session, args)?;
    let mut report = CheckReport::new(&plan);
    cluster::expect_checkable(&plan, session.common.threads)?;
    if let Some(path) = plan.timings.as_ref().filter(|_| plan.distribution.reports()) {
        expect_writable(path)?;
        output::write_timings_to(path);
    }
    let summary = strategy(session, &plan)?.check(session, &plan, &mut report)?;
    report.finish(session, summary)
}

/// Returns the actions to hide and to rename.
///
/// # Errors
/// A renaming without `=`; a method that reads the model in another way.
fn relabel(session: &Session, args: &CheckArgs) -> Result<Relabel, Diagnostic> {
    let relabel = args.relabelling.relabel()?;
    let other = if !parameters(session).is_empty() {
        "`-D NAME=any`"
    } else if args.checkpoints.is_requested() {
        "`--checkpoint` and `--resume`"
    } else if args.distribution.is_requested() {
        "distributed searches"
    } else {
        return Ok(relabel);
    };
    if relabel.is_empty() {
        return Ok(relabel);
    }
    let message = format!("`--hide` and `--rename` of `check` do not support {other}");
    Err(Diagnostic::new(Stage::Usage, message).note("hide and rename actions in the model"))
}

/// Chooses the strategy; loads the model if it has a value for each parameter.
fn strategy(session: &mut Session, plan: &CheckPlan) -> Result<Box<dyn Strategy>, Diagnostic> {
    if !plan.any.is_empty() {
        return Ok(Box::new(EveryValueStrategy));
    }
    let subject = match session.load_any(&plan.model, &plan.search.confluence) {
        Err(Diagnostic { stop: Some(stop), .. }) => return Ok(Box::new(NoModel(stop))),
        subject => subject?,
    };
    if let Some(lts) = &subject.stored {
        let names_tau = plan.texts.iter().any(|t| t.text.contains("tau"));
        note_internal(session, &[lts], names_tau);
    }
    plan.texts.iter().for_each(|t| t.set_model(&subject));
    mu_base::host::leave(subject.labels.clone());
    memory::expect_actions(session, &plan.model, plan.interface.is_some(), &subject)?;
    if real_values::has_real_values(&subject, &plan.texts) {
        return Ok(Box::new(RealValueStrategy { subject }));
    }
    Ok(Box::new(SearchStrategy { subject }))
}

/// Strategy after a limit that was reached before the model existed: all formulas are unknown.
struct NoModel(Stop);

impl Strategy for NoModel {
    fn check(
        &mut self,
        session: &mut Session,
        plan: &CheckPlan,
        report: &mut CheckReport,
    ) -> Result<Summary, Diagnostic> {
        let answer = explanation::answer_after_limit(self.0.clone(), plan.search.engine().name());
        let seconds = session.budget.elapsed().as_secs_f64();
        for formula in 0..plan.texts.len() {
            report.add(explanation::without_evidence(session, plan, formula, &answer, seconds))?;
        }
        Ok(Summary::default())
    }
}
