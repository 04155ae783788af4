//! Check of formulas on a model: verdicts, figures and evidence (`check`).
//!
//! All formulas are read before any is checked. If one of several formulas is rejected, the others
//! are still checked: its verdict is *unknown* with the reason `error`, and the exit code is 2.

use super::args::{
    CheckArgs, Counting, EngineRef, ExploreArgs, Format, GoalArgs, Reduction, Relabelling,
};
use super::by_equations;
use super::checkpoint::{Folder, FormulaCheckpoints, Shelf};
use super::cluster::{self, ProcessGroup};
use super::engines;
use super::files::{expect_writable, write, write_text};
use super::find_path::file_name;
use super::folder_lock::Locks;
use super::game::solver;
use super::load::Loaded;
use super::memory;
use super::notes::{self, NoteContext};
use super::output;
use super::page;
use super::picture::{Picture, write_evidence};
use super::pipeline::{self, Session};
use super::print;
use super::progress::Bar;
use super::properties::{self, FormulaText};
use super::quantity;
use mu_base::host::{Instant, real_path};
use mu_base::{Budget, Diagnostic, Span, Stage, Stop};
use mu_engines::{Options, Subject, Task};
use mu_evidence::checker::{self, Checked};
use mu_formula::typed::TypedFormula;
use mu_game::pg;
use mu_pbes::{Answer, Order, Priority, Reduced, Route, Verdict};
use mu_report::junit::{Case, Outcome};
use mu_report::page::PageResult;
use mu_report::printed_evidence::{MOST_IN_ANSWER, MOST_IN_TEXT, PrintedEvidence, ending, story};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

pub(super) fn run(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    let answer = check(session, args);
    // Report the error in the JUnit file too: other tools may read nothing else.
    if let (Err(error), true) = (&answer, args.junit.is_some()) {
        let names = args
            .formulas
            .iter()
            .map(|f| f.display().to_string())
            .chain(args.formula.iter().cloned());
        let (class, message) = (args.model.display().to_string(), error.render(&session.sources));
        let case = |name| Case {
            class: class.clone(),
            name,
            seconds: 0.0,
            outcome: Outcome::Error(message.clone()),
        };
        // If the file cannot be written either, the first error is reported.
        let _ = write_junit(args, &names.map(case).collect::<Vec<_>>());
    }
    answer
}

fn check(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    memory::read_interface(session, &args.model, args.interface.as_deref())?;
    if args.formulas.is_empty() && args.formula.is_empty() {
        return overview(session, args);
    }
    if !args.terminal.is_empty() {
        return Err(Diagnostic::new(
            Stage::Usage,
            "`--terminal` is for the exploration of a model, and cannot be combined with formulas",
        )
        .note("omit the formula, or use `explore`, to count terminations"));
    }
    let texts = properties::formula_texts(session, &args.formulas, &args.formula)?;
    output::expect_verdicts(texts.iter().map(|t| t.name.display().to_string()));
    let any = super::unbounded::parameters(session);
    cluster::expect_checkable(args, session.common.threads, !any.is_empty())?;
    if let Some(path) = args.timings.as_ref().filter(|_| args.distribution.reports()) {
        expect_writable(path)?;
        output::write_timings_to(path);
    }
    if !any.is_empty() {
        return super::unbounded::run(session, args, &texts, &any);
    }
    let subject = session.load_any(&args.model, &args.confluence);
    if let Ok(subject) = &subject {
        mu_base::host::leave(subject.labels.clone());
        memory::expect_actions(session, &args.model, args.interface.is_some(), subject)?;
    }
    match subject {
        Ok(subject) if quantity::has_real_values(&subject, &texts) => {
            quantity::run(session, args, &subject, &texts)
        }
        Ok(subject) => all(session, args, &subject, &texts),
        Err(Diagnostic { stop: Some(stop), .. }) => {
            report_all_unknown(session, args, &texts, &stop)
        }
        Err(error) => Err(error),
    }
}

/// Explores a model if no formula is given.
fn overview(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    if args.evidence.is_some() || args.game.is_some() || args.checkpoints.is_requested() {
        return Err(Diagnostic::new(
            Stage::Usage,
            "a formula is missing: in `check`, `--evidence`, `--game`, `--checkpoint` and `--resume` need a formula",
        )
        .note("use `explore` for `--evidence`, `--checkpoint` and `--resume` without a formula"));
    }
    let explore = ExploreArgs {
        spill: None,
        model: args.model.clone(),
        out: None,
        reduce: None,
        timings: args.timings.clone(),
        goal: GoalArgs {
            terminal: args.terminal.clone(),
            interface: args.interface.clone(),
            ..GoalArgs::default()
        },
        distribution: args.distribution.clone(),
        checkpoints: args.checkpoints.clone(),
        confluence: args.confluence.clone(),
        without: args.without.clone(),
        relabelling: Relabelling::default(),
        engine: args.engine(),
        overview: true,
        strategy: None,
        deadlocks: None,
        reading: args.reading.clone(),
        common: args.common.clone(),
    };
    super::explore::run(session, &explore)
}

/// Reads the formulas. Returns those that are valid and the texts that are rejected. Error: there
/// is a single formula, and it is rejected.
fn read<'t>(
    session: &Session,
    subject: &Loaded,
    texts: &'t [FormulaText],
    args: &CheckArgs,
) -> Result<(Vec<(&'t FormulaText, TypedFormula)>, Vec<&'t FormulaText>), Diagnostic> {
    let (mut formulas, mut rejected) = (Vec::new(), Vec::new());
    for text in texts {
        match properties::read_over(session, text, subject) {
            Ok(formula) => formulas.push((
                text,
                TypedFormula { as_written: args.count == Counting::AllParameters, ..formula },
            )),
            Err(diagnostic) if texts.len() == 1 => return Err(diagnostic),
            Err(diagnostic) => {
                report_rejection(session, args, text, &diagnostic)?;
                rejected.push(text);
            }
        }
    }
    Ok((formulas, rejected))
}

/// Reports that one of several formulas is rejected.
pub(super) fn report_rejection(
    session: &Session,
    args: &CheckArgs,
    text: &FormulaText,
    diagnostic: &Diagnostic,
) -> Result<(), Diagnostic> {
    eprint!("{}", diagnostic.render(&session.sources));
    let unknown = stopped(Stop::Interrupted, "explicit");
    let mut object = as_json(&text.name, &unknown, None, &[], 0.0);
    object["reason"] = "error".into();
    object["error"] = output::error_as_json(diagnostic, &session.sources);
    let line = format!("{}: unknown (error)\n", text.name.display());
    let line = prints_lines(session, args).then_some(line);
    output::record_verdict(&text.name, Some(object), line, false)
}

fn all(
    session: &mut Session,
    args: &CheckArgs,
    subject: &Loaded,
    texts: &[FormulaText],
) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.evidence {
        Picture::of(path)?;
        expect_writable(path)?;
    }
    if let Some(path) = &args.game {
        expect_writable(path)?;
    }
    output::begin_stage("reading the formulas");
    // Read every formula before checking any: an error in the last one is reported before work on
    // the first begins.
    let (formulas, rejected) = read(session, subject, texts, args)?;
    let process_group = cluster::join(session, args, &*subject.model, texts)?;
    let kept = if process_group.is_some() { None } else { kept(session, args, subject)? };
    let mut options = session.explore_options(&*subject.model, &args.without);
    // Counting as written includes all equations.
    options.partial_order &= args.count == Counting::Merged;
    write_game(session, args, subject, &formulas, &options)?;
    let capabilities = engines::capabilities_of_check(args);
    engines::expect_supported(args.engine(), &capabilities)?;
    let checking = Checking {
        session,
        args,
        subject,
        kept,
        options,
        capabilities,
        several: texts.len() > 1,
        concurrent_formulas: formulas.len(),
    };
    let refusals = rejected
        .iter()
        .map(|t| case(args, t, 0.0, Outcome::Error("the formula is rejected".into())))
        .collect();
    let mut results = Results {
        violated: false,
        unknown: false,
        rejected: !rejected.is_empty(),
        cases: refusals,
    };
    let workers =
        if args.engine().shares_a_formula() { 1 } else { session.threads().min(formulas.len()) };
    let mut processes = None;
    if let Some(process_group) = process_group {
        checking.check_distributed(&process_group, &formulas, &mut results)?;
        let reports = process_group.reports();
        processes = Some(process_group.close(session, args, results.unknown));
        if !reports {
            return Ok(results.code());
        }
    } else if workers > 1 {
        output::begin_stage("checking the formulas");
        let one =
            |formula: &(&FormulaText, TypedFormula), alone: bool| checking.one(formula, alone);
        check_concurrently(&session.budget, workers, &formulas, &one, &mut |formula, found| {
            checking.settle(formula, found, &mut results)
        })?;
    } else {
        for formula in &formulas {
            output::begin_stage_on("checking a formula", &formula.0.name);
            checking.settle(formula, checking.one(formula, true), &mut results)?;
        }
    }
    let warnings = notes::report_flaws(session, &*subject.model)?;
    if wants_object(session, args) {
        let all = in_order_of_texts(output::recorded_verdicts(), texts);
        let memory = processes.as_ref().map_or_else(|| session.peak_memory(), |p| p.1);
        let mut object = json!({ "results": all, "peak_memory_bytes": memory });
        if !warnings.is_empty() {
            object["warnings"] = warnings.into();
        }
        if let Some((figures, _)) = processes {
            object["processes"] = figures;
        }
        publish(session, args, object)?;
    }
    write_junit(args, &results.cases)?;
    Ok(results.code())
}

/// Sorts results in the order of the formulas on the command line. Equal formulas get successive
/// positions of their name.
fn in_order_of_texts(results: Vec<Value>, texts: &[FormulaText]) -> Vec<Value> {
    let names: Vec<String> = texts.iter().map(|t| t.name.display().to_string()).collect();
    let mut taken = vec![false; names.len()];
    let mut placed: Vec<(usize, Value)> = Vec::with_capacity(results.len());
    for result in results {
        let place = (0..names.len()).find(|&i| !taken[i] && result["formula"] == names[i].as_str());
        if let Some(place) = place {
            taken[place] = true;
        }
        placed.push((place.unwrap_or(names.len()), result));
    }
    placed.sort_by_key(|p| p.0);
    placed.into_iter().map(|p| p.1).collect()
}

/// Results of all formulas.
struct Results {
    violated: bool,
    unknown: bool,
    rejected: bool,
    cases: Vec<Case>,
}

impl Results {
    fn code(&self) -> u8 {
        match self {
            Results { rejected: true, .. } => 2,
            Results { violated: true, .. } => 1,
            Results { unknown: true, .. } => 3,
            _ => 0,
        }
    }
    fn note(&mut self, verdict: &Verdict) {
        self.violated |= *verdict == Verdict::False;
        self.unknown |= matches!(verdict, Verdict::Unknown(_));
    }
}

/// Shared input of the checks of all formulas.
struct Checking<'a> {
    session: &'a Session,
    args: &'a CheckArgs,
    subject: &'a Loaded,
    kept: Option<(Folder<'a>, Option<FormulaCheckpoints>)>,
    options: mu_explore::Options,
    capabilities: Vec<mu_engines::Capability>,
    several: bool,
    /// Number of formulas that are checked concurrently.
    concurrent_formulas: usize,
}

impl Checking<'_> {
    /// Checks a formula. `alone`: true if no other formula is checked at the same time.
    fn one(
        &self,
        formula: &(&FormulaText, TypedFormula),
        alone: bool,
    ) -> Result<FormulaResult, Diagnostic> {
        self.by(self.args.engine(), formula, &self.session.budget, alone, None)
    }

    fn by(
        &self,
        engine: EngineRef,
        (text, formula): &(&FormulaText, TypedFormula),
        budget: &Budget,
        shows: bool,
        peers: Option<&dyn mu_explore::Peers>,
    ) -> Result<FormulaResult, Diagnostic> {
        let Checking { session, args, subject, .. } = self;
        let start = Instant::now();
        let bar = Bar::new(shows && !session.common.no_progress && !session.common.quiet);
        let shelf = self.kept.as_ref().map(|(folder, kept)| {
            Shelf::new(folder, &text.name, &text.identity(formula), kept.as_ref())
        });
        let chosen = Options {
            solver: Some(solver(args.solver.as_ref())),
            progress: &bar,
            checkpoint_store: shelf.as_ref().map(|s| s as &dyn mu_pbes::CheckpointStore),
            quotient: !args.without.contains(&Reduction::Quotient),
            witnesses: args.evidence.is_some(),
            concurrent_formulas: self.concurrent_formulas,
            peers,
            ..Options::new(self.options.clone())
        };
        let subject_ref = Subject { model: &*subject.model, labels: &*subject.labels };
        let (answer, why) = match engine.check(
            subject_ref,
            formula,
            Task { capabilities: &self.capabilities, options: &chosen, budget },
        ) {
            Err(Diagnostic { stop: Some(stop), .. }) => (stopped(stop, engine.name()), None),
            Err(refusal) if peers.is_none() && by_equations::lacks_value(&refusal, subject) => {
                match by_equations::decide(session, subject, formula, solver(args.solver.as_ref()))
                {
                    Ok(Some((value, equations))) => {
                        let why = format!(
                            "equations: the search of states fails ({}); there is no path to show",
                            refusal.message
                        );
                        let verdict = if value { Verdict::True } else { Verdict::False };
                        (
                            Answer {
                                verdict,
                                equations,
                                route: Route::Game,
                                informative: false,
                                ..stopped(Stop::Complete, "explicit")
                            },
                            Some(why),
                        )
                    }
                    Err(Diagnostic { stop: Some(stop), .. }) => (stopped(stop, "explicit"), None),
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
        Ok(FormulaResult { answer, why, at: None, seconds: start.elapsed().as_secs_f64() })
    }

    /// Reports the result of a formula. An error does not stop the other formulas.
    fn settle(
        &self,
        formula: &(&FormulaText, TypedFormula),
        found: Result<FormulaResult, Diagnostic>,
        results: &mut Results,
    ) -> Result<(), Diagnostic> {
        match found {
            Err(refusal) if self.several && refusal.stage != Stage::Internal => {
                results.rejected = true;
                report_rejection(self.session, self.args, formula.0, &refusal)?;
                results.cases.push(case(
                    self.args,
                    formula.0,
                    0.0,
                    Outcome::Error("the formula is rejected".into()),
                ));
                Ok(())
            }
            found => self.report_formula(formula, found?, results),
        }
    }

    /// Prints the result of a formula and adds its test case.
    fn report_formula(
        &self,
        (text, formula): &(&FormulaText, TypedFormula),
        found: FormulaResult,
        results: &mut Results,
    ) -> Result<(), Diagnostic> {
        let (verdict, seconds) = (found.answer.verdict.clone(), found.seconds);
        results.note(&verdict);
        if self.args.checkpoints.is_requested() && found.answer.route == Route::Game {
            eprintln!("{}: no checkpoint, because the formula needs a game", text.name.display());
        }
        let reported = report_formula(
            self.session,
            self.args,
            self.subject,
            (text, self.several),
            formula,
            found,
        )?;
        let outcome = match verdict {
            Verdict::True => Outcome::Passed,
            Verdict::False => {
                Outcome::Failed { message: "the formula does not hold".into(), text: reported }
            }
            Verdict::Unknown(stop) => Outcome::Unknown(stop.word().into()),
        };
        results.cases.push(case(self.args, text, seconds, outcome));
        Ok(())
    }

    /// Checks all formulas with several processes; process 0 reports. All processes reject the same
    /// formulas.
    fn check_distributed(
        &self,
        process_group: &ProcessGroup,
        formulas: &[(&FormulaText, TypedFormula)],
        results: &mut Results,
    ) -> Result<(), Diagnostic> {
        for formula in formulas {
            let (text, typed) = formula;
            if process_group.reports() {
                output::begin_stage_on("checking a formula", &text.name);
            }
            let peers = process_group.peers(text, typed);
            match self.by(
                &mu_engines::cluster::Cluster,
                formula,
                &process_group.budget,
                process_group.reports(),
                Some(peers),
            ) {
                Err(refusal) if self.several && refusal.stage == Stage::Unsupported => {
                    results.rejected = true;
                    if process_group.reports() {
                        report_rejection(self.session, self.args, text, &refusal)?;
                        results.cases.push(case(
                            self.args,
                            text,
                            0.0,
                            Outcome::Error("the formula is rejected".into()),
                        ));
                    }
                }
                found if process_group.reports() => {
                    self.report_formula(formula, found?, results)?
                }
                found => results.note(&found?.answer.verdict),
            }
        }
        Ok(())
    }
}

/// True if the results are needed as one object: for JSON, JUnit, or a page.
fn wants_object(session: &Session, args: &CheckArgs) -> bool {
    session.common.format == Format::Json
        || args.junit.is_some()
        || args.evidence.as_deref().is_some_and(page::is_page)
}

/// True if each verdict is printed as a line; false if standard output is used otherwise.
pub(super) fn prints_lines(session: &Session, args: &CheckArgs) -> bool {
    session.common.format == Format::Text && args.junit.as_deref() != Some(Path::new("-"))
}

/// Writes the JUnit report if the user requested one.
fn write_junit(args: &CheckArgs, cases: &[Case]) -> Result<(), Diagnostic> {
    let Some(path) = &args.junit else { return Ok(()) };
    let suite = mu_report::junit::suite(&args.model.display().to_string(), cases);
    if path == Path::new("-") { print(&suite) } else { write_text(path, &suite) }
}

/// Writes the JUnit report from JSON results.
pub(super) fn write_junit_of(args: &CheckArgs, results: &[Value]) -> Result<(), Diagnostic> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let of = |result: &Value| {
        let steps = result["evidence"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|s| word(&s["action"]) + "\n")
            .collect();
        let outcome = match result["verdict"].as_str() {
            Some("true") => Outcome::Passed,
            Some("false") => {
                Outcome::Failed { message: "the formula does not hold".into(), text: steps }
            }
            _ => Outcome::Unknown(word(&result["reason"])),
        };
        let seconds = result["seconds"].as_f64().unwrap_or_default();
        Case {
            class: args.model.display().to_string(),
            name: word(&result["formula"]),
            seconds,
            outcome,
        }
    };
    write_junit(args, &results.iter().map(of).collect::<Vec<_>>())
}

/// Writes the object of all results to the page, or prints it, or both.
pub(super) fn publish(
    session: &Session,
    args: &CheckArgs,
    object: Value,
) -> Result<(), Diagnostic> {
    if let Some(path) = args.evidence.as_deref().filter(|p| page::is_page(p)) {
        page::write(
            session,
            path,
            &file_name(&args.model),
            &[PageResult::of("check", output::with_head(object.clone()))],
        )?;
    }
    if session.common.format == Format::Json { output::print_object(object) } else { Ok(()) }
}

/// Adds the formula text to its result, from the first line that is not blank.
pub(super) fn with_text(mut object: Value, text: &FormulaText) -> Value {
    let blank = text.text.lines().take_while(|l| l.trim().is_empty()).count();
    let own: Vec<&str> = text.text.lines().skip(blank).collect();
    object["text"] = own.join("\n").trim_end().into();
    object["first_line"] = (blank + 1).into();
    object
}

/// Writes the game of a single formula if the user requested it.
fn write_game(
    session: &Session,
    args: &CheckArgs,
    subject: &Loaded,
    formulas: &[(&FormulaText, TypedFormula)],
    options: &mu_explore::Options,
) -> Result<(), Diagnostic> {
    let Some(path) = &args.game else { return Ok(()) };
    let [(_, formula)] = formulas else {
        return Err(Diagnostic::new(Stage::Usage, "`--game` takes a single formula"));
    };
    output::begin_stage_on("writing the game", path);
    match mu_pbes::game::game(&*subject.model, &*subject.labels, formula, options, &session.budget)?
    {
        Ok(game) => {
            write(path, |file| pg::write(&game, file))?;
            session.log(format!(
                "wrote {}: {} vertices, {} moves",
                path.display(),
                game.vertex_count(),
                game.edge_count()
            ));
        }
        Err(stop) => eprintln!(
            "{}: not written, the game was not complete ({})",
            path.display(),
            stop.word()
        ),
    }
    Ok(())
}

/// Returns the test case of a formula.
fn case(args: &CheckArgs, text: &FormulaText, seconds: f64, outcome: Outcome) -> Case {
    Case {
        class: args.model.display().to_string(),
        name: text.name.display().to_string(),
        seconds,
        outcome,
    }
}

/// Result of a formula.
pub(super) struct FormulaResult {
    pub answer: Answer,
    /// Reason for the choice of the engine, if known.
    pub why: Option<String>,
    /// Counterexample values of parameters set to `any`.
    pub at: Option<ParameterValues>,
    pub seconds: f64,
}

/// Values of parameters that are set to `any`.
pub(super) struct ParameterValues {
    pub values: String,
    /// True if the formula holds for all smaller values.
    pub least: bool,
}

/// Checks several formulas concurrently and reports them in order. A formula that ran out of memory
/// next to others is checked again alone.
fn check_concurrently<F: Sync>(
    budget: &Budget,
    workers: usize,
    formulas: &[F],
    one: &(dyn Fn(&F, bool) -> Result<FormulaResult, Diagnostic> + Sync),
    report_formula: &mut dyn FnMut(&F, Result<FormulaResult, Diagnostic>) -> Result<(), Diagnostic>,
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
                if let Err(error) = report_formula(&formulas[next_reported], result) {
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

/// Checks the evidence of a formula and reports the result. Returns the explanation as text.
pub(super) fn report_formula(
    session: &Session,
    args: &CheckArgs,
    subject: &Loaded,
    (text, several): (&FormulaText, bool),
    formula: &TypedFormula,
    found: FormulaResult,
) -> Result<String, Diagnostic> {
    let path = text.name.as_path();
    let FormulaResult { answer, why, at, seconds } = found;
    if let Some(why) = &why {
        session.log(format!("engine {why}"));
    }
    session.log(format!(
        "{}: {} by {}, {} equations in {seconds:.3} s",
        path.display(),
        word(&answer.verdict).0,
        answer.route.word(),
        answer.equations
    ));
    session.log_symmetries(answer.symmetries, &args.without, &answer.dropped);
    let priority = log_priority(session, &answer);
    let order = session.log_partial_order(answer.order);
    answer.reduced.as_ref().inspect(|reduced| log_quotient(session, reduced));
    if answer.alone {
        session.log("process 0 solved this alone, with its own part of the memory: games are not distributed");
    }
    if let Some(evidence) = &answer.evidence {
        output::begin_stage_on("checking the evidence", path);
        match checker::check(evidence, &*subject.model, &*subject.labels, formula)? {
            Checked::Confirmed => session.log("evidence: every step was replayed and the verdict confirmed on it"),
            Checked::StepsOnly => session.log("evidence: every step was replayed; the formula was too large to evaluate on it directly"),
        }
    }
    let vacuous = vacuous(session, &answer);
    for v in vacuous.iter().filter(|_| !session.common.quiet) {
        let warning = "warning: no transition ever matched this modality, so this part of the formula was not tested";
        eprintln!("{}:{}:{}: {warning}: {}", v.name, v.line, v.column, v.excerpt);
    }
    let whole = !args.distribution.is_requested();
    let note_context = NoteContext {
        model: &*subject.model,
        labels: &*subject.labels,
        sources: &session.sources,
        whole,
    };
    let notes = by_equations::unless_without_value(notes::notes(&note_context, formula, &answer))?;
    for note in notes.iter().filter(|_| !session.common.quiet) {
        eprintln!("{}", note.text(&session.sources));
    }
    let story = match &answer.evidence {
        Some(evidence) if answer.informative || args.evidence.is_some() => {
            let picture = args.evidence.as_deref().map(Picture::of).transpose()?;
            let most = match session.common.format {
                _ if matches!(picture, Some(Picture::Json | Picture::Chart)) => usize::MAX,
                _ if matches!(picture, Some(Picture::Page)) => MOST_IN_ANSWER,
                Format::Json => MOST_IN_ANSWER,
                Format::Text => MOST_IN_TEXT,
            };
            let mut story = story(evidence, &*subject.model, args.full_states, most)?;
            story.ending = by_equations::unless_without_value(ending(
                evidence,
                &*subject.model,
                &[],
                &session.sources,
            ))?;
            Some(story)
        }
        _ => None,
    };
    match (&answer.evidence, &story) {
        (Some(evidence), Some(story)) => {
            write_evidence(session, args, subject, (text, several), (evidence, story))?
        }
        _ if args.evidence.as_deref().is_some_and(|p| !page::is_page(p)) => {
            eprintln!("{}: no evidence: nothing is written", path.display());
        }
        _ => {}
    }
    let violated = answer.verdict == Verdict::False;
    let line = || as_text(session, path, &answer, at.as_ref(), story.as_ref(), seconds);
    let line = prints_lines(session, args).then(line);
    let object = wants_object(session, args).then(|| {
        let mut object = with_text(as_json(path, &answer, story.as_ref(), &vacuous, seconds), text);
        if let Some(why) = why {
            object["engine_reason"] = why.into();
        }
        for (key, reported) in [("confluence", priority), ("partial_order", order)] {
            if let Some(reported) = reported {
                object[key] = reported;
            }
        }
        add_symmetries(&mut object, subject, args, &answer);
        if !notes.is_empty() {
            object["notes"] = notes.iter().map(|n| n.json(&session.sources)).collect();
        }
        if let Some(ending) = story.as_ref().and_then(|s| s.ending.as_ref()) {
            object["ending"] = ending.json();
        }
        if let Some(graph) =
            story.as_ref().and_then(|s| memory::operations(session, &args.model, s))
        {
            object["execution"] = graph;
        }
        if let Some(at) = at {
            object["for"] = at.values.into();
        }
        object
    });
    output::record_verdict(path, object, line, violated)?;
    let notes: String = notes.iter().map(|n| n.text(&session.sources) + "\n").collect();
    Ok(notes + &story.map(|s| s.text(false)).unwrap_or_default())
}

fn log_quotient(session: &Session, Reduced { equivalence, states, classes }: &Reduced) {
    let why = if equivalence.abstracts() {
        "no formula state distinguishes steps that the formula does not name"
    } else {
        "the formula does not name every label"
    };
    session.log(format!(
        "quotient: {states} states in {classes} classes of {} bisimilarity: {why}",
        equivalence.name()
    ));
}

/// Adds the symmetries of an explicit search to the result.
fn add_symmetries(object: &mut Value, subject: &Loaded, args: &CheckArgs, answer: &Answer) {
    if answer.route != Route::Symbolic {
        let proven = subject.model.is_priority_proven();
        object["symmetries"] =
            pipeline::symmetries(proven, answer.symmetries, &args.without, &answer.dropped);
    }
}

/// Logs the use of confluence if the user requested it. Returns the same as JSON.
fn log_priority(session: &Session, answer: &Answer) -> Option<Value> {
    match answer.priority {
        Priority::None => None,
        Priority::Used => {
            session.log("confluence: used, the formula cannot distinguish the system with priority from the full system");
            Some(json!({ "used": true }))
        }
        Priority::Forbidden(ban, place) => {
            let (line, column) = session.sources.line_column(place);
            let name = &session.sources.get(place.source).name;
            session.log(format!("confluence: not used: {name}:{line}:{column}: {}", ban.text()));
            Some(
                json!({ "used": false, "forbidden_by": ban.word(), "why": ban.text(), "line": line, "column": column }),
            )
        }
    }
}

/// Opens the checkpoint folder and the checkpoint to resume from.
fn kept<'a>(
    session: &Session,
    args: &CheckArgs,
    subject: &'a Loaded,
) -> Result<Option<(Folder<'a>, Option<FormulaCheckpoints>)>, Diagnostic> {
    let Some(path) = args.checkpoints.folder() else { return Ok(None) };
    if mu_base::host::IS_PAGE {
        return Err(Diagnostic::new(
            Stage::Unsupported,
            "checkpoints of formulas are not supported on a page, because they need a second thread",
        ));
    }
    let model = &*subject.model;
    let locks = Locks::of_checkpoints(&args.checkpoints)?;
    let kept = args
        .checkpoints
        .resume
        .as_deref()
        .map(|from| FormulaCheckpoints::read(model, from))
        .transpose()?;
    let folder = Folder::new(
        model,
        path,
        args.checkpoints.checkpoint_every,
        session.common.verbose > 0,
        locks,
    )?;
    let goes_on =
        args.checkpoints.resume.as_ref().is_some_and(|from| real_path(from) == real_path(path));
    if !goes_on {
        folder.clear()?;
    }
    if !goes_on || kept.as_ref().is_some_and(FormulaCheckpoints::is_empty) {
        folder.mark()?;
    }
    Ok(Some((folder, kept)))
}

/// Returns the answer if a limit is reached inside an evaluation.
fn stopped(stop: Stop, engine: &str) -> Answer {
    let route = if engine == "symbolic" { Route::Symbolic } else { Route::Constant };
    Answer {
        verdict: Verdict::Unknown(stop),
        route,
        equations: 0,
        states: 0,
        evidence: None,
        informative: true,
        never_met: Vec::new(),
        symmetries: 1,
        reduced: None,
        priority: Priority::None,
        order: Order::None,
        dropped: Vec::new(),
        alone: false,
    }
}

/// Reports all formulas as unknown if a limit is reached before the model exists.
fn report_all_unknown(
    session: &Session,
    args: &CheckArgs,
    texts: &[FormulaText],
    stop: &Stop,
) -> Result<u8, Diagnostic> {
    let answer = stopped(stop.clone(), args.engine().name());
    let seconds = session.budget.elapsed().as_secs_f64();
    if wants_object(session, args) {
        let results: Vec<Value> = texts
            .iter()
            .map(|t| with_text(as_json(&t.name, &answer, None, &[], seconds), t))
            .collect();
        write_junit_of(args, &results)?;
        publish(
            session,
            args,
            json!({ "results": results, "peak_memory_bytes": session.peak_memory() }),
        )?;
    }
    if prints_lines(session, args) {
        print(
            &texts
                .iter()
                .map(|t| as_text(session, &t.name, &answer, None, None, seconds))
                .collect::<String>(),
        )?;
    }
    Ok(3)
}

/// A modality that was never tested: its place in the formula and its text.
struct Vacuous {
    name: String,
    line: usize,
    column: usize,
    text: String,
    /// The text, cut to one line.
    excerpt: String,
}

/// Returns the modalities that no transition ever matched, if the whole state space was searched.
fn vacuous(session: &Session, answer: &Answer) -> Vec<Vacuous> {
    if answer.verdict != Verdict::True {
        return Vec::new();
    }
    let of = |span: &Span| {
        let (line, column) = session.sources.line_column(*span);
        let text = session.sources.text(*span).split_whitespace().collect::<Vec<_>>().join(" ");
        let excerpt = notes::excerpt(&session.sources, *span);
        Vacuous { name: session.sources.get(span.source).name.clone(), line, column, text, excerpt }
    };
    answer.never_met.iter().map(of).collect()
}

fn word(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::True => ("true", Stop::Complete.word().into()),
        Verdict::False => ("false", Stop::Complete.word().into()),
        Verdict::Unknown(stop) => ("unknown", stop.word().into()),
    }
}

fn as_json(
    path: &Path,
    answer: &Answer,
    story: Option<&PrintedEvidence>,
    vacuous: &[Vacuous],
    seconds: f64,
) -> Value {
    let (verdict, reason) = word(&answer.verdict);
    let mut object = json!({
        "formula": path.display().to_string(),
        "verdict": verdict,
        "reason": if reason == "complete" { answer.route.word().to_string() } else { reason },
        "equations": answer.equations,
        "states": answer.states,
        "engine": if answer.route.is_symbolic() { "symbolic" } else { "explicit" },
        "seconds": seconds,
        "evidence": story.map(|s| s.steps_json(MOST_IN_ANSWER)).unwrap_or_default(),
        "evidence_left_out": story.map_or(0, |s| s.left_out(MOST_IN_ANSWER)),
        "back_to": story.and_then(|s| s.back_to),
        "vacuous": vacuous.iter().map(|v| json!({ "line": v.line, "column": v.column, "text": v.text })).collect::<Vec<_>>(),
    });
    if answer.alone {
        object["alone"] = true.into();
    }
    if let (Some(story), Some(object)) =
        (story.filter(|s| !s.steps.is_empty()), object.as_object_mut())
    {
        object.extend(story.setting_json());
    }
    object
}

fn as_text(
    session: &Session,
    path: &Path,
    answer: &Answer,
    at: Option<&ParameterValues>,
    story: Option<&PrintedEvidence>,
    seconds: f64,
) -> String {
    let (verdict, reason) = word(&answer.verdict);
    let mut text = format!("{}: {verdict}", path.display());
    if let Some(at) = at {
        text += &format!(
            " for {}{}",
            at.values,
            if at.least { ", the smallest such value" } else { "" }
        );
    }
    if reason != "complete" {
        text += &format!(" ({reason})");
    }
    if !session.common.quiet {
        let of = if matches!(answer.order, Order::Used(left) if left.steps > 0) {
            " of a reduced search"
        } else {
            ""
        };
        text += &format!("  [{} equations{of}, {seconds:.3} s]", answer.equations);
    }
    text.push('\n');
    if let Some(story) = story.filter(|s| !s.steps.is_empty() && !session.common.quiet) {
        text += &story.text(session.common.verbose > 0);
    }
    text
}
