//! Strategy of `check` for models with a value for each parameter: a search by an engine, for each
//! formula; several formulas concurrently, or each by several processes.
//!
//! In: a loaded model. Out: an outcome for each formula, in the order of the command line. A
//! formula that no search decides becomes an equation system ([`by_equations`]). Invariant: every
//! formula is read before any is checked, so that an error in the last one is reported before work
//! on the first begins.

use super::explanation::{self, FormulaResult, answer_after_limit};
use super::plan::CheckPlan;
use super::report::{CheckReport, ReportedVerdict, Summary};
use super::{Strategy, by_equations};
use crate::args::{CheckpointArgs, EngineRef, Reduction};
use crate::output;
use crate::output::notes;
use crate::output::picture::Picture;
use crate::output::progress::Bar;
use crate::pipeline::Session;
use crate::pipeline::checkpoint::{Folder, FormulaCheckpoints, Shelf};
use crate::pipeline::cluster::{self, ProcessGroup};
use crate::pipeline::engines;
use crate::pipeline::files::{expect_writable, write};
use crate::pipeline::folder_lock::Locks;
use crate::pipeline::load::Loaded;
use crate::pipeline::properties;
use mu_base::host::{Instant, real_path};
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_engines::{EngineOptions, EngineTask, Subject};
use mu_formula::typed::TypedFormula;
use mu_game::pg;
use mu_pbes::{Answer, Method, Verdict};
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// A formula with its index in the plan.
type Formula = (usize, TypedFormula);

/// The strategy.
pub(super) struct SearchStrategy {
    /// The model.
    pub subject: Loaded,
}

impl Strategy for SearchStrategy {
    fn check(
        &mut self,
        session: &mut Session,
        plan: &CheckPlan,
        report: &mut CheckReport,
    ) -> Result<Summary, Diagnostic> {
        check(session, plan, &self.subject, report)
    }
}

/// Reads the formulas; rejects those that are not well typed. Error: there is a single formula, and
/// it is rejected.
fn read(
    session: &Session,
    plan: &CheckPlan,
    subject: &Loaded,
    report: &mut CheckReport,
) -> Result<Vec<Formula>, Diagnostic> {
    let mut formulas = Vec::new();
    for (index, text) in plan.texts.iter().enumerate() {
        match properties::read_over(session, text, subject) {
            Ok(formula) => formulas
                .push((index, TypedFormula { as_written: plan.search.as_written, ..formula })),
            Err(why) if plan.has_several() => report.reject(session, index, &why)?,
            Err(why) => return Err(why),
        }
    }
    Ok(formulas)
}

fn check(
    session: &Session,
    plan: &CheckPlan,
    subject: &Loaded,
    report: &mut CheckReport,
) -> Result<Summary, Diagnostic> {
    if let Some(path) = &plan.output.evidence {
        Picture::of(path)?;
        expect_writable(path)?;
    }
    if let Some(path) = &plan.game {
        expect_writable(path)?;
    }
    output::begin_stage("reading the formulas");
    let formulas = read(session, plan, subject, report)?;
    let process_group = cluster::join(session, plan, &*subject.model)?;
    let kept = if process_group.is_some() {
        None
    } else {
        open_checkpoints(session, &plan.checkpoints, subject)?
    };
    let mut options = session.explore_options(&*subject.model, &plan.search.without);
    // Counting as written includes all equations.
    options.partial_order &= !plan.search.as_written;
    write_game(session, plan, subject, &formulas, &options)?;
    let capabilities = engines::capabilities_of_check(plan);
    engines::expect_supported(plan.search.engine(), &capabilities)?;
    let concurrent_formulas = formulas.len();
    let checking =
        Checking { session, plan, subject, kept, options, capabilities, concurrent_formulas };
    let shares = plan.search.engine().shares_a_formula();
    let workers = if shares { 1 } else { session.threads().min(formulas.len()) };
    let mut summary = Summary::default();
    if let Some(process_group) = process_group {
        checking.check_distributed(&process_group, &formulas, report)?;
        summary.silent = !process_group.reports();
        let figures = process_group.close(session, &plan.checkpoints, report.is_unknown());
        summary.processes = Some(figures);
        if summary.silent {
            return Ok(summary);
        }
    } else if workers > 1 {
        output::begin_stage("checking the formulas");
        let one = |formula: &Formula, alone: bool| checking.check_one(formula, alone);
        check_concurrently(&session.budget, workers, &formulas, &one, &mut |formula, found| {
            checking.settle(formula, found, report)
        })?;
    } else {
        for formula in &formulas {
            output::begin_stage_on("checking a formula", &plan.texts[formula.0].name);
            checking.settle(formula, checking.check_one(formula, true), report)?;
        }
    }
    summary.warnings = notes::report_flaws(session, &*subject.model)?;
    Ok(summary)
}

/// Shared input of the checks of all formulas.
struct Checking<'a> {
    session: &'a Session,
    plan: &'a CheckPlan,
    subject: &'a Loaded,
    kept: Option<(Folder<'a>, Option<FormulaCheckpoints>)>,
    options: mu_explore::Options,
    capabilities: Vec<mu_engines::Capability>,
    /// Number of formulas that are checked concurrently.
    concurrent_formulas: usize,
}

impl Checking<'_> {
    /// Checks a formula. `alone`: true if no other formula is checked at the same time.
    fn check_one(&self, formula: &Formula, alone: bool) -> Result<FormulaResult, Diagnostic> {
        self.by(self.plan.search.engine(), formula, &self.session.budget, alone, None)
    }

    fn by(
        &self,
        engine: EngineRef,
        (index, formula): &Formula,
        budget: &Budget,
        shows: bool,
        peers: Option<&dyn mu_explore::Peers>,
    ) -> Result<FormulaResult, Diagnostic> {
        let Checking { session, plan, subject, .. } = self;
        let text = &plan.texts[*index];
        let start = Instant::now();
        let bar = Bar::new(shows && !session.common.no_progress && !session.common.quiet);
        let shelf = self.kept.as_ref().map(|(folder, kept)| {
            Shelf::new(folder, &text.name, &text.identity(formula), kept.as_ref())
        });
        let chosen = EngineOptions {
            solver: Some(plan.search.solver),
            progress: &bar,
            checkpoint_store: shelf.as_ref().map(|s| s as &dyn mu_pbes::CheckpointStore),
            quotient: !plan.search.without.contains(&Reduction::Quotient),
            witnesses: plan.search.witnesses,
            concurrent_formulas: self.concurrent_formulas,
            peers,
            ..EngineOptions::new(self.options.clone())
        };
        let subject_ref = Subject { model: &*subject.model, labels: &*subject.labels };
        let mut by_equations = false;
        let (answer, why) = match engine.check(
            subject_ref,
            formula,
            EngineTask { capabilities: &self.capabilities, options: &chosen, budget },
        ) {
            Err(Diagnostic { stop: Some(stop), .. }) => {
                (answer_after_limit(stop, engine.name()), None)
            }
            Err(refusal) if by_equations::lacks_value(&refusal, subject) => {
                let solver = plan.search.solver;
                let mut decide = || by_equations::decide(session, subject, formula, solver, budget);
                match by_equations::decide_with(peers, budget, &mut decide) {
                    Ok(Some((value, equations))) => {
                        by_equations = true;
                        (
                            by_equations::answer(value, equations),
                            Some(by_equations::reason(&refusal)),
                        )
                    }
                    Err(Diagnostic { stop: Some(stop), .. }) => {
                        (answer_after_limit(stop, "explicit"), None)
                    }
                    // The first error names the place in the model.
                    _ => return Err(refusal),
                }
            }
            found => {
                let found = found?;
                if let Some(sets) = &found.sets {
                    engines::log_diagrams(session, subject_ref.model, &sets.outcome);
                    session.log(format!(
                        "{} obligations have states, {} pairs",
                        sets.obligations, sets.pairs
                    ));
                }
                (found.answer, found.reason.map(|why| format!("{}: {why}", found.engine)))
            }
        };
        bar.finish();
        let mut answer = answer;
        if session.buffers_were_cut() {
            let verdict = answer.verdict.clone().for_all_transitions(formula);
            if verdict != answer.verdict {
                // The evidence justifies only the verdict on a part of the transitions.
                answer = Answer { verdict, evidence: None, ..answer };
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(FormulaResult { answer, why, by_equations, at: None, seconds })
    }

    /// Reports the result of a formula. An error does not stop the other formulas.
    fn settle(
        &self,
        formula: &Formula,
        found: Result<FormulaResult, Diagnostic>,
        report: &mut CheckReport,
    ) -> Result<(), Diagnostic> {
        match found {
            Err(refusal) if self.plan.has_several() && refusal.stage != Stage::Internal => {
                report.reject(self.session, formula.0, &refusal)
            }
            found => self.explain(formula, found?, report),
        }
    }

    /// Adds the outcome of a formula to the report.
    fn explain(
        &self,
        (index, formula): &Formula,
        found: FormulaResult,
        report: &mut CheckReport,
    ) -> Result<(), Diagnostic> {
        let Checking { session, plan, subject, .. } = self;
        if plan.checkpoints.is_requested() && found.answer.method == Method::Game {
            let name = plan.texts[*index].name.display();
            eprintln!("{name}: no checkpoint, because the formula needs a game");
        }
        report.add(explanation::outcome(session, plan, subject, (*index, formula), found)?)
    }

    /// Checks all formulas with several processes; process 0 reports. All processes reject the same
    /// formulas.
    fn check_distributed(
        &self,
        process_group: &ProcessGroup,
        formulas: &[Formula],
        report: &mut CheckReport,
    ) -> Result<(), Diagnostic> {
        for formula in formulas {
            let text = &self.plan.texts[formula.0];
            if process_group.reports() {
                output::begin_stage_on("checking a formula", &text.name);
            }
            let peers = process_group.peers(text, &formula.1);
            match self.by(
                &mu_engines::cluster::Cluster,
                formula,
                &process_group.budget,
                process_group.reports(),
                Some(peers),
            ) {
                // All processes have the same error of the model or the formula.
                Err(refusal)
                    if self.plan.has_several()
                        && !matches!(
                            refusal.stage,
                            Stage::Internal | Stage::File | Stage::Usage
                        ) =>
                {
                    report.reject(self.session, formula.0, &refusal)?;
                }
                found if process_group.reports() => self.explain(formula, found?, report)?,
                found => report.record(&ReportedVerdict::of(&found?.answer.verdict, String::new())),
            }
        }
        Ok(())
    }
}

/// Writes the game of a single formula if the user requested it.
fn write_game(
    session: &Session,
    plan: &CheckPlan,
    subject: &Loaded,
    formulas: &[Formula],
    options: &mu_explore::Options,
) -> Result<(), Diagnostic> {
    let Some(path) = &plan.game else { return Ok(()) };
    let [(_, formula)] = formulas else {
        return Err(Diagnostic::new(Stage::Usage, "`--game` takes a single formula"));
    };
    output::begin_stage_on("writing the game", path);
    let (model, labels) = (&*subject.model, &*subject.labels);
    match mu_pbes::game::game(model, labels, formula, options, &session.budget) {
        Ok(game) => {
            write(path, |file| pg::write(&game, file))?;
            session.log(format!(
                "wrote {}: {} vertices, {} moves",
                path.display(),
                game.vertex_count(),
                game.edge_count()
            ));
        }
        Err(Diagnostic { stop: Some(stop), .. }) => eprintln!(
            "{}: not written, the game was not complete ({})",
            path.display(),
            stop.word()
        ),
        Err(why) => return Err(why),
    }
    Ok(())
}

/// Opens the checkpoint folder and the checkpoint to resume from.
fn open_checkpoints<'a>(
    session: &Session,
    checkpoints: &CheckpointArgs,
    subject: &'a Loaded,
) -> Result<Option<(Folder<'a>, Option<FormulaCheckpoints>)>, Diagnostic> {
    let Some(path) = checkpoints.folder() else { return Ok(None) };
    if mu_base::host::IS_PAGE {
        return Err(Diagnostic::new(
            Stage::Unsupported,
            "checkpoints of formulas are not supported on a page, because they need a second thread",
        ));
    }
    let model = &*subject.model;
    let locks = Locks::of_checkpoints(checkpoints)?;
    let kept = checkpoints
        .resume
        .as_deref()
        .map(|from| FormulaCheckpoints::read(model, from))
        .transpose()?;
    let folder =
        Folder::new(model, path, checkpoints.checkpoint_every, session.common.verbose > 0, locks)?;
    let goes_on =
        checkpoints.resume.as_ref().is_some_and(|from| real_path(from) == real_path(path));
    if !goes_on {
        folder.clear()?;
    }
    if !goes_on || kept.as_ref().is_some_and(FormulaCheckpoints::is_empty) {
        folder.mark()?;
    }
    Ok(Some((folder, kept)))
}

/// Checks several formulas concurrently and reports them in order. A formula that ran out of memory
/// next to others is checked again alone.
fn check_concurrently<F: Sync>(
    budget: &Budget,
    workers: usize,
    formulas: &[F],
    one: &(dyn Fn(&F, bool) -> Result<FormulaResult, Diagnostic> + Sync),
    settle: &mut dyn FnMut(&F, Result<FormulaResult, Diagnostic>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let next = AtomicUsize::new(0);
    // Read lock: concurrent checks. Write lock: a check that runs alone.
    let process_group = RwLock::new(());
    let work = |formula: &F| {
        let connection_reader = process_group.read();
        let found = one(formula, false);
        drop(connection_reader);
        match found {
            Ok(found) if found.answer.verdict == Verdict::Unknown(Stop::Memory) => {
                let _alone = process_group.write();
                one(formula, true)
            }
            found => found,
        }
    };
    std::thread::scope(|scope| {
        let (results, arrivals) = channel();
        for _ in 0..workers {
            let (results, next, work) = (results.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(formula) = formulas.get(i) else { break };
                    if results.send((i, work(formula))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        let mut found: Vec<Option<Result<FormulaResult, Diagnostic>>> =
            formulas.iter().map(|_| None).collect();
        let mut next_reported = 0;
        for (at, result) in arrivals {
            found[at] = Some(result);
            while let Some(result) = found.get_mut(next_reported).and_then(Option::take) {
                if let Err(error) = settle(&formulas[next_reported], result) {
                    // Cancel the remaining formulas.
                    budget.interrupt_flag().store(true, Ordering::Relaxed);
                    return Err(error);
                }
                next_reported += 1;
            }
        }
        Ok(())
    })
}
