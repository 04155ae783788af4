//! `check`: formulas on a model, with verdicts, figures and evidence.
//!
//! All formulas are read before any is checked. One that is refused among several does not stop the
//! others: its verdict is *unknown*, its reason `error`, and the exit code 2.

use super::args::{
    CheckArgs, Counting, EngineRef, ExploreArgs, Format, GoalArgs, Reduction, Relabelling,
};
use super::by_equations;
use super::checkpoint::{Folder, Kept, Shelf};
use super::cluster::{self, Company};
use super::engines;
use super::files::{expect_writable, write, write_text};
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
use super::properties::{self, Text};
use super::quantity;
use super::systems;
use super::ways::file_name;
use mu_base::host::{Instant, real_path};
use mu_base::{Budget, Diagnostic, Span, Stage, Stop};
use mu_engines::{Options, Subject, Task};
use mu_evidence::checker::{self, Checked};
use mu_formula::typed::TypedFormula;
use mu_game::pg;
use mu_lts::reduce::Equivalence;
use mu_pbes::{Answer, Order, Priority, Reduced, Route, Verdict};
use mu_report::junit::{Case, Outcome};
use mu_report::page::Shown;
use mu_report::story::{MOST_IN_ANSWER, MOST_IN_TEXT, Story, ending, story};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

pub(super) fn run(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    let answer = checked(session, args);
    // What is refused stands in the report too: whoever reads nothing else would see nothing.
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
        // If it cannot be written either, the first error is the one to tell.
        let _ = write_junit(args, &names.map(case).collect::<Vec<_>>());
    }
    answer
}

fn checked(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    memory::read_interface(session, &args.model, args.interface.as_deref())?;
    if args.formulas.is_empty() && args.formula.is_empty() {
        return overview(session, args);
    }
    if !args.terminal.is_empty() {
        return Err(Diagnostic::new(
            Stage::Usage,
            "`--terminal` says what counts as an end when a model is explored, and a formula is given",
        )
        .note("a formula says itself which states it speaks of; without one, or with `explore`, ends are counted"));
    }
    let texts = properties::gather(session, &args.formulas, &args.formula)?;
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
        Ok(subject) if quantity::is_meant(&subject, &texts) => {
            quantity::run(session, args, &subject, &texts)
        }
        Ok(subject) => all(session, args, &subject, &texts),
        Err(Diagnostic { stop: Some(stop), .. }) => none_checked(session, args, &texts, &stop),
        Err(error) => Err(error),
    }
}

/// A model without a formula is explored and reported on.
fn overview(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    if args.evidence.is_some() || args.game.is_some() || args.checkpoints.is_requested() {
        return Err(Diagnostic::new(
            Stage::Usage,
            "a formula is missing: `--evidence`, `--game`, `--checkpoint` and `--resume` are for formulas here",
        )
        .note("`explore` has `--evidence`, `--checkpoint` and `--resume` for a model alone"));
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
        reading: args.reading.clone(),
        common: args.common.clone(),
    };
    super::explore::run(session, &explore)
}

/// The formulas that could be read, and the refusals of the others. Error: the refusal of the only
/// one.
fn read<'t>(
    session: &Session,
    subject: &Loaded,
    texts: &'t [Text],
    args: &CheckArgs,
) -> Result<(Vec<(&'t Text, TypedFormula)>, Vec<&'t Text>), Diagnostic> {
    let (mut formulas, mut refused) = (Vec::new(), Vec::new());
    for text in texts {
        match properties::read_over(session, text, subject) {
            Ok(formula) => formulas.push((
                text,
                TypedFormula { as_written: args.count == Counting::AllParameters, ..formula },
            )),
            Err(diagnostic) if texts.len() == 1 => return Err(diagnostic),
            Err(diagnostic) => {
                refuse(session, args, text, &diagnostic)?;
                refused.push(text);
            }
        }
    }
    Ok((formulas, refused))
}

/// Says that a formula among several is refused.
pub(super) fn refuse(
    session: &Session,
    args: &CheckArgs,
    text: &Text,
    diagnostic: &Diagnostic,
) -> Result<(), Diagnostic> {
    eprint!("{}", diagnostic.render(&session.sources));
    let unknown = stopped(Stop::Interrupted, "explicit");
    let mut object = as_json(&text.name, &unknown, None, &[], 0.0);
    object["reason"] = "error".into();
    object["error"] = output::error_as_json(diagnostic, &session.sources);
    let line = format!("{}: unknown (error)\n", text.name.display());
    let line = says_lines(session, args).then_some(line);
    output::record_verdict(&text.name, Some(object), line, false)
}

fn all(
    session: &mut Session,
    args: &CheckArgs,
    subject: &Loaded,
    texts: &[Text],
) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.evidence {
        Picture::of(path)?;
        expect_writable(path)?;
    }
    if let Some(path) = &args.game {
        expect_writable(path)?;
    }
    output::begin_stage("reading the formulas");
    // Every formula is read before any is checked: a slip in the last one is told of before the
    // work on the first.
    let (formulas, refused) = read(session, subject, texts, args)?;
    let company = cluster::join(session, args, &*subject.model, texts)?;
    let kept = if company.is_some() { None } else { kept(session, args, subject)? };
    let mut options = session.explore_options(&*subject.model, &args.without);
    // Where equations are told apart as written, all are meant.
    options.partial_order &= args.count == Counting::Merged;
    write_game(session, args, subject, &formulas, &options)?;
    let wishes = engines::wishes_of_check(args);
    engines::expect_taken(args.engine(), &wishes)?;
    let checking = Checking {
        session,
        args,
        subject,
        kept,
        options,
        wishes,
        several: texts.len() > 1,
        beside: formulas.len(),
    };
    let refusals = refused
        .iter()
        .map(|t| case(args, t, 0.0, Outcome::Error("the formula is refused".into())))
        .collect();
    let mut results =
        Results { violated: false, unknown: false, refused: !refused.is_empty(), cases: refusals };
    let workers =
        if args.engine().shares_a_formula() { 1 } else { session.threads().min(formulas.len()) };
    let mut processes = None;
    if let Some(company) = company {
        checking.together(&company, &formulas, &mut results)?;
        let reports = company.reports();
        processes = Some(company.close(session, args, results.unknown));
        if !reports {
            return Ok(results.code());
        }
    } else if workers > 1 {
        output::begin_stage("checking the formulas");
        let one = |formula: &(&Text, TypedFormula), alone: bool| checking.one(formula, alone);
        side_by_side(&session.budget, workers, &formulas, &one, &mut |formula, found| {
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

/// Sorts results as the formulas stand on the command line. Of equal formulas, each gets the next
/// place of their name.
fn in_order_of_texts(results: Vec<Value>, texts: &[Text]) -> Vec<Value> {
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

/// What became of all formulas.
struct Results {
    violated: bool,
    unknown: bool,
    refused: bool,
    cases: Vec<Case>,
}

impl Results {
    fn code(&self) -> u8 {
        match self {
            Results { refused: true, .. } => 2,
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

/// What all formulas are checked with.
struct Checking<'a> {
    session: &'a Session,
    args: &'a CheckArgs,
    subject: &'a Loaded,
    kept: Option<(Folder<'a>, Option<Kept>)>,
    options: mu_explore::Options,
    wishes: Vec<mu_engines::Wish>,
    several: bool,
    /// How many formulas there are.
    beside: usize,
}

impl Checking<'_> {
    /// Checks a formula; `alone`: no other one at the same time.
    fn one(&self, formula: &(&Text, TypedFormula), alone: bool) -> Result<Found, Diagnostic> {
        self.by(self.args.engine(), formula, &self.session.budget, alone, None)
    }

    fn by(
        &self,
        engine: EngineRef,
        (text, formula): &(&Text, TypedFormula),
        budget: &Budget,
        shows: bool,
        peers: Option<&dyn mu_explore::Peers>,
    ) -> Result<Found, Diagnostic> {
        let Checking { session, args, subject, .. } = self;
        let start = Instant::now();
        let bar = Bar::new(shows && !session.common.no_progress && !session.common.quiet);
        let shelf = self.kept.as_ref().map(|(folder, kept)| {
            Shelf::new(folder, &text.name, &text.identity(formula), kept.as_ref())
        });
        let chosen = Options {
            solver: Some(solver(args.solver.as_ref())),
            progress: &bar,
            shelf: shelf.as_ref().map(|s| s as &dyn mu_pbes::Shelf),
            quotient: !args.without.contains(&Reduction::Quotient),
            witnesses: args.evidence.is_some(),
            beside: self.beside,
            peers,
            ..Options::new(self.options.clone())
        };
        let asked = Subject { model: &*subject.model, labels: &*subject.labels };
        let (answer, why) = match engine.check(
            asked,
            formula,
            Task { wishes: &self.wishes, options: &chosen, budget },
        ) {
            Err(Diagnostic { stop: Some(stop), .. }) => (stopped(stop, engine.name()), None),
            Err(refusal) if peers.is_none() && by_equations::may_help(&refusal, subject) => {
                match by_equations::decide(session, subject, formula, solver(args.solver.as_ref()))
                {
                    Ok(Some((value, equations))) => {
                        let why = format!(
                            "equations: the search of states fails ({}); there is no run to show",
                            refusal.message
                        );
                        let verdict = if value { Verdict::True } else { Verdict::False };
                        (
                            Answer {
                                verdict,
                                equations,
                                route: Route::Game,
                                telling: false,
                                ..stopped(Stop::Complete, "explicit")
                            },
                            Some(why),
                        )
                    }
                    Err(Diagnostic { stop: Some(stop), .. }) => (stopped(stop, "explicit"), None),
                    // The first refusal names the place in the model.
                    _ => return Err(refusal),
                }
            }
            found => {
                let found = found?;
                if let Some(sets) = &found.sets {
                    engines::say_diagrams(session, asked.model, &sets.outcome);
                    session.log(format!(
                        "{} obligations met states, {} pairs",
                        sets.obligations, sets.pairs
                    ));
                }
                (found.answer, found.reason.map(|why| format!("{}: {why}", found.engine)))
            }
        };
        bar.finish();
        let mut answer = answer;
        if session.buffers_were_cut() {
            let verdict = systems::verdict_for_all_steps(answer.verdict.clone(), formula);
            if verdict != answer.verdict {
                // The evidence justifies the verdict on a part of the steps only.
                answer = Answer { verdict, evidence: None, ..answer };
            }
        }
        Ok(Found { answer, why, at: None, seconds: start.elapsed().as_secs_f64() })
    }

    /// Prints what was found of a formula. A refusal does not stop the other formulas.
    fn settle(
        &self,
        formula: &(&Text, TypedFormula),
        found: Result<Found, Diagnostic>,
        results: &mut Results,
    ) -> Result<(), Diagnostic> {
        match found {
            Err(refusal) if self.several && refusal.stage != Stage::Internal => {
                results.refused = true;
                refuse(self.session, self.args, formula.0, &refusal)?;
                results.cases.push(case(
                    self.args,
                    formula.0,
                    0.0,
                    Outcome::Error("the formula is refused".into()),
                ));
                Ok(())
            }
            found => self.tell(formula, found?, results),
        }
    }

    /// Says what was found of a formula.
    fn tell(
        &self,
        (text, formula): &(&Text, TypedFormula),
        found: Found,
        results: &mut Results,
    ) -> Result<(), Diagnostic> {
        let (verdict, seconds) = (found.answer.verdict.clone(), found.seconds);
        results.note(&verdict);
        if self.args.checkpoints.is_requested() && found.answer.route == Route::Game {
            eprintln!("{}: it needs a game, of which no checkpoints are kept", text.name.display());
        }
        let told =
            tell(self.session, self.args, self.subject, (text, self.several), formula, found)?;
        let outcome = match verdict {
            Verdict::True => Outcome::Passed,
            Verdict::False => {
                Outcome::Failed { message: "the formula does not hold".into(), text: told }
            }
            Verdict::Unknown(stop) => Outcome::Unknown(stop.word().into()),
        };
        results.cases.push(case(self.args, text, seconds, outcome));
        Ok(())
    }

    /// Checks all formulas by several processes; the first one tells. All refuse the same ones.
    fn together(
        &self,
        company: &Company,
        formulas: &[(&Text, TypedFormula)],
        results: &mut Results,
    ) -> Result<(), Diagnostic> {
        for formula in formulas {
            let (text, typed) = formula;
            if company.reports() {
                output::begin_stage_on("checking a formula", &text.name);
            }
            let peers = company.peers(text, typed);
            match self.by(
                &mu_engines::cluster::Cluster,
                formula,
                &company.budget,
                company.reports(),
                Some(peers),
            ) {
                Err(refusal) if self.several && refusal.stage == Stage::Unsupported => {
                    results.refused = true;
                    if company.reports() {
                        refuse(self.session, self.args, text, &refusal)?;
                        results.cases.push(case(
                            self.args,
                            text,
                            0.0,
                            Outcome::Error("the formula is refused".into()),
                        ));
                    }
                }
                found if company.reports() => self.tell(formula, found?, results)?,
                found => results.note(&found?.answer.verdict),
            }
        }
        Ok(())
    }
}

/// Whether all results are wanted as one object: printed, shown on a page, or told to a program.
fn wants_object(session: &Session, args: &CheckArgs) -> bool {
    session.common.format == Format::Json
        || args.junit.is_some()
        || args.evidence.as_deref().is_some_and(page::is_named_so)
}

/// Whether each verdict is printed as lines: not if standard output is to be something else.
pub(super) fn says_lines(session: &Session, args: &CheckArgs) -> bool {
    session.common.format == Format::Text && args.junit.as_deref() != Some(Path::new("-"))
}

/// Writes the JUnit report, if that is asked for.
fn write_junit(args: &CheckArgs, cases: &[Case]) -> Result<(), Diagnostic> {
    let Some(path) = &args.junit else { return Ok(()) };
    let suite = mu_report::junit::suite(&args.model.display().to_string(), cases);
    if path == Path::new("-") { print(&suite) } else { write_text(path, &suite) }
}

/// The same from results as they stand in JSON.
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

/// Writes the object of all results to the page, prints it, or both, as is asked.
pub(super) fn publish(
    session: &Session,
    args: &CheckArgs,
    object: Value,
) -> Result<(), Diagnostic> {
    if let Some(path) = args.evidence.as_deref().filter(|p| page::is_named_so(p)) {
        page::write(
            session,
            path,
            &file_name(&args.model),
            &[Shown::of("check", output::with_head(object.clone()))],
        )?;
    }
    if session.common.format == Format::Json { output::print_object(object) } else { Ok(()) }
}

/// Adds a formula's text to its result, from the first line that is not blank.
pub(super) fn with_text(mut object: Value, text: &Text) -> Value {
    let blank = text.text.lines().take_while(|l| l.trim().is_empty()).count();
    let own: Vec<&str> = text.text.lines().skip(blank).collect();
    object["text"] = own.join("\n").trim_end().into();
    object["first_line"] = (blank + 1).into();
    object
}

/// Writes the game of a single formula, if that is asked for.
fn write_game(
    session: &Session,
    args: &CheckArgs,
    subject: &Loaded,
    formulas: &[(&Text, TypedFormula)],
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

/// A formula as a case of a test suite.
fn case(args: &CheckArgs, text: &Text, seconds: f64, outcome: Outcome) -> Case {
    Case {
        class: args.model.display().to_string(),
        name: text.name.display().to_string(),
        seconds,
        outcome,
    }
}

/// What became of a formula.
pub(super) struct Found {
    pub answer: Answer,
    /// Why by this engine, if that was to be found out.
    pub why: Option<String>,
    /// Of parameters set to `any`, values for which it is false.
    pub at: Option<At>,
    pub seconds: f64,
}

/// Values of parameters that are set to `any`.
pub(super) struct At {
    pub values: String,
    /// True if the formula holds for all smaller ones.
    pub least: bool,
}

/// Several formulas at a time; they are told of in their order. One that ran out of memory beside
/// others is done again by itself.
fn side_by_side<F: Sync>(
    budget: &Budget,
    workers: usize,
    formulas: &[F],
    one: &(dyn Fn(&F, bool) -> Result<Found, Diagnostic> + Sync),
    tell: &mut dyn FnMut(&F, Result<Found, Diagnostic>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let next = AtomicUsize::new(0);
    // Shared by those that run beside each other.
    let company = RwLock::new(());
    let work = |formula: &F| {
        let beside = company.read();
        let found = one(formula, false);
        drop(beside);
        match found {
            Ok(found) if found.answer.verdict == Verdict::Unknown(Stop::Memory) => {
                let _alone = company.write();
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
        let mut found: Vec<Option<Result<Found, Diagnostic>>> =
            formulas.iter().map(|_| None).collect();
        let mut next_told = 0;
        for (at, result) in arrivals {
            found[at] = Some(result);
            while let Some(result) = found.get_mut(next_told).and_then(Option::take) {
                if let Err(error) = tell(&formulas[next_told], result) {
                    // Nobody waits for the others any more.
                    budget.interrupt_flag().store(true, Ordering::Relaxed);
                    return Err(error);
                }
                next_told += 1;
            }
        }
        Ok(())
    })
}

/// Says what was found of a formula, with its evidence, which is checked before. The explanation is
/// given back as text.
pub(super) fn tell(
    session: &Session,
    args: &CheckArgs,
    subject: &Loaded,
    (text, several): (&Text, bool),
    formula: &TypedFormula,
    found: Found,
) -> Result<String, Diagnostic> {
    let path = text.name.as_path();
    let Found { answer, why, at, seconds } = found;
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
    let priority = say_priority(session, &answer);
    let order = session.log_partial_order(answer.order);
    answer.reduced.as_ref().inspect(|reduced| say_quotient(session, reduced));
    if answer.alone {
        session.log("process 0 found this alone, with its own part of the memory: games are not divided among processes");
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
        let warning = "warning: no transition that was met ever fitted this modality, so nothing was tested here";
        eprintln!("{}:{}:{}: {warning}: {}", v.name, v.line, v.column, v.excerpt);
    }
    let whole = !args.distribution.is_requested();
    let seen = NoteContext {
        model: &*subject.model,
        labels: &*subject.labels,
        sources: &session.sources,
        whole,
    };
    let notes = by_equations::unless_without_value(notes::notes(&seen, formula, &answer))?;
    for note in notes.iter().filter(|_| !session.common.quiet) {
        eprintln!("{}", note.text(&session.sources));
    }
    let story = match &answer.evidence {
        Some(evidence) if answer.telling || args.evidence.is_some() => {
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
        _ if args.evidence.as_deref().is_some_and(|p| !page::is_named_so(p)) => {
            eprintln!("{}: no evidence: nothing is written", path.display());
        }
        _ => {}
    }
    let violated = answer.verdict == Verdict::False;
    let line = || as_text(session, path, &answer, at.as_ref(), story.as_ref(), seconds);
    let line = says_lines(session, args).then(line);
    let object = wants_object(session, args).then(|| {
        let mut object = with_text(as_json(path, &answer, story.as_ref(), &vacuous, seconds), text);
        if let Some(why) = why {
            object["engine_reason"] = why.into();
        }
        for (key, told) in [("confluence", priority), ("partial_order", order)] {
            if let Some(told) = told {
                object[key] = told;
            }
        }
        tell_symmetries(&mut object, subject, args, &answer);
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

fn say_quotient(session: &Session, Reduced { equivalence, states, classes }: &Reduced) {
    let why = match equivalence {
        Equivalence::Strong => "the formula does not name every label",
        _ => "no formula state tells a step that the formula does not name",
    };
    session.log(format!(
        "quotient: {states} states in {classes} classes of {} bisimilarity: {why}",
        equivalence.name()
    ));
}

/// Adds which symmetries were used and which not, of an explicit search.
fn tell_symmetries(object: &mut Value, subject: &Loaded, args: &CheckArgs, answer: &Answer) {
    if answer.route != Route::Symbolic {
        let proven = subject.model.is_priority_proven();
        object["symmetries"] =
            pipeline::symmetries(proven, answer.symmetries, &args.without, &answer.dropped);
    }
}

/// Says whether confluent steps were taken at once, if that was asked for; the same for JSON.
fn say_priority(session: &Session, answer: &Answer) -> Option<Value> {
    match answer.priority {
        Priority::None => None,
        Priority::Used => {
            session.log("confluence: used, no part of the formula tells the system with priority from the whole one");
            Some(json!({ "used": true }))
        }
        Priority::Forbidden(ban, place) => {
            let (line, column) = session.sources.line_column(place);
            let name = &session.sources.get(place.source).name;
            session.log(format!(
                "confluence: not used, all steps were searched: {name}:{line}:{column}: {}",
                ban.text()
            ));
            Some(
                json!({ "used": false, "forbidden_by": ban.word(), "why": ban.text(), "line": line, "column": column }),
            )
        }
    }
}

/// The folder in which searches are kept, and what there is to go on with.
fn kept<'a>(
    session: &Session,
    args: &CheckArgs,
    subject: &'a Loaded,
) -> Result<Option<(Folder<'a>, Option<Kept>)>, Diagnostic> {
    let Some(path) = args.checkpoints.folder() else { return Ok(None) };
    if mu_base::host::IS_PAGE {
        return Err(Diagnostic::new(
            Stage::Unsupported,
            "a page keeps no checkpoints of formulas: they need a second thread",
        ));
    }
    let model = &*subject.model;
    let locks = Locks::of_checkpoints(&args.checkpoints)?;
    let kept =
        args.checkpoints.resume.as_deref().map(|from| Kept::read(model, from)).transpose()?;
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
    if !goes_on || kept.as_ref().is_some_and(Kept::is_empty) {
        folder.mark()?;
    }
    Ok(Some((folder, kept)))
}

/// The answer if a limit is met inside an evaluation.
fn stopped(stop: Stop, engine: &str) -> Answer {
    let route = if engine == "symbolic" { Route::Symbolic } else { Route::Constant };
    Answer {
        verdict: Verdict::Unknown(stop),
        route,
        equations: 0,
        states: 0,
        evidence: None,
        telling: true,
        never_met: Vec::new(),
        symmetries: 1,
        reduced: None,
        priority: Priority::None,
        order: Order::None,
        dropped: Vec::new(),
        alone: false,
    }
}

/// The answers if a limit is met before there is a model.
fn none_checked(
    session: &Session,
    args: &CheckArgs,
    texts: &[Text],
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
    if says_lines(session, args) {
        print(
            &texts
                .iter()
                .map(|t| as_text(session, &t.name, &answer, None, None, seconds))
                .collect::<String>(),
        )?;
    }
    Ok(3)
}

/// A modality that was never put to the test: its place in the formula and its text.
struct Vacuous {
    name: String,
    line: usize,
    column: usize,
    text: String,
    /// The text as far as it fits in a line.
    excerpt: String,
}

/// Modalities that no transition ever fitted, if the whole state space was seen.
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
    story: Option<&Story>,
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
    at: Option<&At>,
    story: Option<&Story>,
    seconds: f64,
) -> String {
    let (verdict, reason) = word(&answer.verdict);
    let mut text = format!("{}: {verdict}", path.display());
    if let Some(at) = at {
        text += &format!(
            " for {}{}",
            at.values,
            if at.least { ", the least of its values" } else { "" }
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
