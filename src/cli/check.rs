//! `check`: formulas on a model, with verdicts, figures and evidence.

use super::args::{CheckArgs, Engine, Format, Reduction};
use super::checkpoint::{Folder, Kept, Shelf};
use super::files::{Form, expect_writable, no_form_of_evidence, read_lts, write, write_lts, write_text};
use super::game::solver;
use super::output;
use super::pipeline::{Session, file_error};
use super::print;
use super::progress::Bar;
use crate::base::{Budget, Diagnostic, Span, Stage, Stop};
use crate::compile::Compiled;
use crate::data::expr::DataSpec;
use crate::evidence::Evidence;
use crate::evidence::checker::{self, Checked};
use crate::formula::file_labels::FileLabels;
use crate::formula::typecheck::check_formula;
use crate::formula::typed::TypedFormula;
use crate::game::pg;
use crate::lts::reduce::Equivalence;
use crate::model::Model;
use crate::model::from_lts::LtsModel;
use crate::pbes::{Answer, Options, Reduced, Route, Verdict, check};
use crate::process::linear::ActionLabels;
use crate::process::spec::ActionDecl;
use crate::report::branches::branches;
use crate::report::chart::chart;
use crate::report::story::{MOST_IN_ANSWER, MOST_IN_TEXT, Story, story};
use serde_json::{Value, json};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, RwLock};
use std::time::Instant;

/// A model with what formulas need of it.
struct Subject<'a> {
    model: &'a dyn Model,
    labels: &'a dyn ActionLabels,
    data: &'a DataSpec,
    actions: &'a [ActionDecl],
    /// The model, if it is that of a specification.
    compiled: Option<&'a Compiled>,
}

pub(super) fn run(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    output::expect(args.formulas.iter().map(|f| f.display().to_string()));
    if let Some(path) = &args.timings {
        expect_writable(path)?;
        output::time_stages(path);
    }
    if Form::of(&args.model).is_lts() {
        session.expect_no_parameters(&args.model)?;
        let lts = Arc::new(read_lts(&args.model)?);
        let labels = FileLabels::new(&lts.table)?;
        let model = LtsModel::new(lts);
        let subject = Subject { model: &model, labels: &labels, data: labels.data(), actions: labels.actions(), compiled: None };
        all(session, args, &subject)
    } else {
        let model = match session.model(&args.model, &args.confluence) {
            Ok(model) => model,
            Err(Diagnostic { stop: Some(stop), .. }) => return none_checked(session, args, &stop),
            Err(error) => return Err(error),
        };
        let process = model.process();
        let subject = Subject { model: &model, labels: &model, data: &process.data, actions: &process.actions, compiled: Some(&model) };
        all(session, args, &subject)
    }
}

fn all(session: &mut Session, args: &CheckArgs, subject: &Subject) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.evidence {
        Picture::of(path)?;
        expect_writable(path)?;
    }
    if let Some(path) = &args.game {
        expect_writable(path)?;
    }
    output::stage("reading the formulas");
    // Every formula is read before any is checked: a slip in the last one should not cost the work on the first.
    let mut formulas = Vec::new();
    for path in &args.formulas {
        let (source, text) = session.read_source(path)?;
        let tree = crate::syntax::parse_formula(source, &text)?;
        formulas.push((path, text, check_formula(&tree, subject.data, subject.actions)?));
    }
    let kept = kept(session, args, subject)?;
    let options = session.explore_options(subject.model, &args.confluence, &args.without);
    if let Some(path) = &args.game {
        let [(_, _, formula)] = &formulas[..] else {
            return Err(Diagnostic::new(Stage::Usage, "`--game` takes one formula: a game is that of one"));
        };
        output::stage_of("writing the game", path);
        match crate::pbes::game::game(subject.model, subject.labels, formula, &options, &session.budget)? {
            Ok(game) => {
                write(path, |file| pg::write(&game, file))?;
                session.say(format!("wrote {}: {} vertices, {} moves", path.display(), game.vertex_count(), game.edge_count()));
            }
            Err(stop) => eprintln!("{}: not written, the game was not complete ({})", path.display(), stop.word()),
        }
    }
    let solver = solver(args.solver.as_ref());
    let one = |(path, text, formula): &(&PathBuf, String, TypedFormula), alone: bool| {
        let start = Instant::now();
        let bar = Bar::new(alone && !session.common.no_progress && !session.common.quiet);
        let shelf = kept.as_ref().map(|(folder, kept)| Shelf::new(folder, path, text, kept.as_ref()));
        let shelf = shelf.as_ref().map(|s| s as &dyn crate::pbes::Shelf);
        let plain = Options::new(&options);
        let quotient_at = plain.quotient_at.filter(|_| !args.without.contains(&Reduction::Quotient));
        let chosen = Options { solver: Some(solver), progress: &bar, shelf, quotient_at, witnesses: args.evidence.is_some(), ..plain };
        let model = (subject.model, subject.labels);
        let explicit = |budget: &_| check(subject.model, subject.labels, formula, chosen, budget);
        let result = match args.engine {
            Engine::Explicit => explicit(&session.budget).map(|a| (a, None)),
            Engine::Symbolic => super::symbolic::check(session, args, model, formula).map(|a| (a, None)),
            Engine::Auto => super::symbolic::check_by_either(session, args, model, formula, &explicit).map(|(a, why)| (a, Some(why))),
        };
        let (answer, why) = match result {
            Err(Diagnostic { stop: Some(stop), .. }) => (stopped(stop, args.engine), None),
            result => result?,
        };
        bar.finish();
        Ok(Found { answer, why, seconds: start.elapsed().as_secs_f64() })
    };
    // The explicit engine has work for all threads on one formula, the symbolic one on several.
    let workers = if args.engine == Engine::Explicit { 1 } else { session.threads().min(formulas.len()) };
    let (mut violated, mut unknown) = (false, false);
    let mut tell = |(path, _, formula): &(&PathBuf, String, TypedFormula), found: Found| {
        violated |= found.answer.verdict == Verdict::False;
        unknown |= matches!(found.answer.verdict, Verdict::Unknown(_));
        if kept.is_some() && found.answer.route == Route::Game {
            eprintln!("{}: it needs a game, of which no checkpoints are kept", path.display());
        }
        tell(session, args, subject, path, formula, found)
    };
    if workers > 1 {
        output::stage("checking the formulas");
        side_by_side(&session.budget, workers, &formulas, &one, &mut tell)?;
    } else {
        for formula in &formulas {
            output::stage_of("checking a formula", formula.0);
            tell(formula, one(formula, true)?)?;
        }
    }
    if session.common.format == Format::Json {
        let object = json!({ "results": output::verdicts(), "peak_memory_bytes": session.peak_memory() });
        print(&format!("{object}\n"))?;
    }
    Ok(if violated {
        1
    } else if unknown {
        3
    } else {
        0
    })
}

/// What became of a formula.
struct Found {
    answer: Answer,
    /// Why by this engine, if that was to be found out.
    why: Option<String>,
    seconds: f64,
}

/// Several formulas at a time; they are told of in their order. One that ran out of memory beside others is done again by itself.
fn side_by_side<F: Sync>(
    budget: &Budget,
    workers: usize,
    formulas: &[F],
    one: &(dyn Fn(&F, bool) -> Result<Found, Diagnostic> + Sync),
    tell: &mut dyn FnMut(&F, Found) -> Result<(), Diagnostic>,
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
        let mut found: Vec<Option<Result<Found, Diagnostic>>> = formulas.iter().map(|_| None).collect();
        let mut next_told = 0;
        for (at, result) in arrivals {
            found[at] = Some(result);
            while let Some(result) = found.get_mut(next_told).and_then(Option::take) {
                if let Err(error) = result.and_then(|f| tell(&formulas[next_told], f)) {
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

/// Says what was found of a formula, with its evidence, which is checked before.
fn tell(
    session: &Session,
    args: &CheckArgs,
    subject: &Subject,
    path: &Path,
    formula: &TypedFormula,
    found: Found,
) -> Result<(), Diagnostic> {
    let Found { answer, why, seconds } = found;
    if let Some(why) = &why {
        session.say(format!("engine {why}"));
    }
    session.say(format!(
        "{}: {} by {}, {} equations in {seconds:.3} s",
        path.display(),
        word(&answer.verdict).0,
        answer.route.word(),
        answer.equations
    ));
    session.say_symmetries(answer.symmetries, &args.without);
    if let Some(Reduced { equivalence, states, classes }) = answer.reduced {
        let why = match equivalence {
            Equivalence::Strong => "the formula does not name every label",
            _ => "no formula state tells a step that the formula does not name",
        };
        session.say(format!("quotient: {states} states in {classes} classes of {} bisimilarity: {why}", equivalence.name()));
    }
    if let Some(evidence) = &answer.evidence {
        output::stage_of("checking the evidence", path);
        match checker::check(evidence, subject.model, subject.labels, formula)? {
            Checked::Confirmed => session.say("evidence: every step was replayed and the verdict confirmed on it"),
            Checked::StepsOnly => session.say("evidence: every step was replayed; the formula was too large to evaluate on it directly"),
        }
    }
    let vacuous = vacuous(session, &answer);
    for v in vacuous.iter().filter(|_| !session.common.quiet) {
        let warning = "warning: no transition that was met ever fitted this modality, so nothing was tested here";
        eprintln!("{}:{}:{}: {warning}: {}", v.name, v.line, v.column, v.text);
    }
    let story = match &answer.evidence {
        Some(evidence) if answer.telling || args.evidence.is_some() => {
            let picture = args.evidence.as_deref().map(Picture::of).transpose()?;
            let most = match session.common.format {
                _ if matches!(picture, Some(Picture::Json | Picture::Chart)) => usize::MAX,
                Format::Json => MOST_IN_ANSWER,
                Format::Text => MOST_IN_TEXT,
            };
            Some(story(evidence, subject.model, args.full_states, most)?)
        }
        _ => None,
    };
    match (&answer.evidence, &story) {
        (Some(evidence), Some(story)) => write_evidence(session, args, subject, path, evidence, story)?,
        _ if args.evidence.is_some() => eprintln!("{}: no evidence: nothing is written", path.display()),
        _ => {}
    }
    match session.common.format {
        Format::Json => {
            let mut object = as_json(path, &answer, story.as_ref(), &vacuous, seconds);
            if let Some(why) = why {
                object["engine_reason"] = why.into();
            }
            output::verdict(Some(object), None, answer.verdict == Verdict::False)
        }
        Format::Text => {
            let text = as_text(session, path, &answer, story.as_ref(), seconds);
            output::verdict(None, Some(text), answer.verdict == Verdict::False)
        }
    }
}

/// The folder in which searches are kept, and what there is to go on with.
fn kept<'a>(session: &Session, args: &CheckArgs, subject: &Subject<'a>) -> Result<Option<(Folder<'a>, Option<Kept>)>, Diagnostic> {
    let Some(path) = args.keeping.folder() else { return Ok(None) };
    let Some(model) = subject.compiled else {
        return Err(Diagnostic::new(Stage::Usage, "`--checkpoint` and `--resume` are for formulas on a specification"));
    };
    let kept = args.keeping.resume.as_deref().map(|from| Kept::read(model, from)).transpose()?;
    let folder = Folder::new(model, path, args.keeping.checkpoint_every, session.common.verbose > 0)?;
    if args.keeping.resume.as_deref() != Some(path) {
        folder.clear()?;
    }
    Ok(Some((folder, kept)))
}

/// The answer if a limit is met inside an evaluation.
fn stopped(stop: Stop, engine: Engine) -> Answer {
    let route = if engine == Engine::Symbolic { Route::Symbolic } else { Route::Constant };
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
    }
}

/// The answers if a limit is met before there is a model.
fn none_checked(session: &Session, args: &CheckArgs, stop: &Stop) -> Result<u8, Diagnostic> {
    let answer = stopped(stop.clone(), args.engine);
    let seconds = session.budget.elapsed().as_secs_f64();
    match session.common.format {
        Format::Json => {
            let results: Vec<Value> = args.formulas.iter().map(|path| as_json(path, &answer, None, &[], seconds)).collect();
            print(&format!("{}\n", json!({ "results": results, "peak_memory_bytes": session.peak_memory() })))?;
        }
        Format::Text => print(&args.formulas.iter().map(|path| as_text(session, path, &answer, None, seconds)).collect::<String>())?,
    }
    Ok(3)
}

/// A modality that was never put to the test: its place in the formula and its text.
struct Vacuous {
    name: String,
    line: usize,
    column: usize,
    text: String,
}

/// Modalities that no transition ever fitted, if the whole state space was seen.
fn vacuous(session: &Session, answer: &Answer) -> Vec<Vacuous> {
    if answer.verdict != Verdict::True {
        return Vec::new();
    }
    let of = |span: &Span| {
        let (line, column) = session.sources.line_column(*span);
        let text = session.sources.text(*span).split_whitespace().collect::<Vec<_>>().join(" ");
        Vacuous { name: session.sources.get(span.source).name.clone(), line, column, text }
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

fn as_json(path: &Path, answer: &Answer, story: Option<&Story>, vacuous: &[Vacuous], seconds: f64) -> Value {
    let (verdict, reason) = word(&answer.verdict);
    json!({
        "formula": path.display().to_string(),
        "verdict": verdict,
        "reason": if reason == "complete" { answer.route.word().to_string() } else { reason },
        "equations": answer.equations,
        "states": answer.states,
        "engine": if answer.route == Route::Symbolic { "symbolic" } else { "explicit" },
        "seconds": seconds,
        "evidence": story.map(|s| s.steps_json(MOST_IN_ANSWER)).unwrap_or_default(),
        "evidence_left_out": story.map_or(0, |s| s.left_out(MOST_IN_ANSWER)),
        "back_to": story.and_then(|s| s.back_to),
        "vacuous": vacuous.iter().map(|v| json!({ "line": v.line, "column": v.column, "text": v.text })).collect::<Vec<_>>(),
    })
}

fn as_text(session: &Session, path: &Path, answer: &Answer, story: Option<&Story>, seconds: f64) -> String {
    let (verdict, reason) = word(&answer.verdict);
    let mut text = format!("{}: {verdict}", path.display());
    if reason != "complete" {
        text += &format!(" ({reason})");
    }
    if !session.common.quiet {
        text += &format!("  [{} equations, {seconds:.3} s]", answer.equations);
    }
    text.push('\n');
    if let Some(story) = story.filter(|s| !s.steps.is_empty() && !session.common.quiet) {
        text += &story.text(session.common.verbose > 0);
    }
    text
}

/// Writes evidence to the file that `--evidence` names; with several formulas the name of each goes before the ending.
fn write_evidence(
    session: &Session,
    args: &CheckArgs,
    subject: &Subject,
    formula: &Path,
    evidence: &Evidence,
    story: &Story,
) -> Result<(), Diagnostic> {
    let Some(path) = &args.evidence else { return Ok(()) };
    let stem = formula.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let path = match path.extension() {
        Some(ending) if args.formulas.len() > 1 => path.with_extension(format!("{stem}.{}", ending.to_string_lossy())),
        _ => path.clone(),
    };
    match Picture::of(&path)? {
        Picture::Json => {
            let names = [("formula", formula), ("model", &args.model)];
            let names = names.map(|(key, path)| (key.to_string(), json!(path.display().to_string())));
            write(&path, |file| {
                let written = story.write_json(names.into_iter().collect(), BufWriter::new(file));
                written.map_err(|e| file_error("cannot write", &path, &e))
            })?;
        }
        Picture::Lts => write_lts(&evidence.lts(subject.model).0, &path)?,
        Picture::Chart => {
            let title = format!("{} on {}", file_name(formula), file_name(&args.model));
            let what = if story.verdict { "holds; a witness" } else { "does not hold; a counterexample" };
            let n = story.steps.len();
            let verdict = format!("{what} of {n} step{}", if n == 1 { "" } else { "s" });
            let picture = chart(story, &title, &verdict).unwrap_or_else(|| branches(story, &title, &verdict));
            write_text(&path, &picture)?;
        }
    }
    session.say(format!("wrote {}", path.display()));
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Forms of evidence files.
enum Picture {
    Json,
    Lts,
    Chart,
}

impl Picture {
    fn of(path: &Path) -> Result<Picture, Diagnostic> {
        match Form::of(path) {
            form if form.is_lts() || form == Form::Dot => return Ok(Picture::Lts),
            _ => {}
        }
        match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
            Some("json") => Ok(Picture::Json),
            Some("svg") => Ok(Picture::Chart),
            _ => Err(no_form_of_evidence(path, ".json, .svg, .aut, .aut.gz, .blts, .lts or .dot")),
        }
    }
}
