//! `litmus`: litmus tests under a memory model, one or thousands.
//!
//! Tests named one by one are printed as the herd tools print them; of folders each test gets a line, and all a table. Exit code: 2 if a test
//! cannot be read, else 1 if a condition does not hold, else 3 if a limit left one open, else 0. Of a single test, an execution that decides it
//! can be drawn. With `--expected` the answers are compared with wanted ones, and the exit code says whether all are as wanted.

use super::args::{Format, LitmusArgs, MemoryName};
use super::expected::{self, Expected, Wanted};
use super::files::{expect_writable, no_form_of_evidence, write_text};
use super::output;
use super::pipeline::{Session, file_error, read_source};
use super::print;
use mu_base::{Diagnostic, SourceMap, Stage, Stop};
use mu_program::herd::{self, Report, Verdict};
use mu_program::litmus;
use mu_program::memory::{self, MemoryModel};
use mu_report::execution;
use mu_report::junit::{Case, Outcome};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

impl MemoryName {
    /// The model meant.
    pub(super) fn model(self) -> &'static dyn MemoryModel {
        match self {
            MemoryName::Sc => memory::SC,
            MemoryName::Tso => memory::TSO,
            MemoryName::Pso => memory::PSO,
        }
    }
}

/// A test's report, or its refusal as text with the exit code.
type Answer = Result<Report, (String, u8)>;

/// Runs a pure function over items on the session's threads; a single item starts none.
pub(super) fn parallel<T: Sync, R: Send>(
    session: &Session,
    items: &[T],
    work: impl Fn(&T) -> R + Sync + Send,
) -> Result<Vec<R>, Diagnostic> {
    if items.len() < 2 || session.threads() == 1 {
        return Ok(items.iter().map(work).collect());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(session.threads()).build();
    let pool = pool.map_err(|e| Diagnostic::new(Stage::Internal, format!("cannot start threads: {e}")))?;
    Ok(pool.install(|| items.par_iter().map(work).collect()))
}

pub(super) fn run(session: &mut Session, args: &LitmusArgs) -> Result<u8, Diagnostic> {
    super::output::stage("running litmus tests");
    let start = Instant::now();
    let (files, folders) = collect(&args.files, "litmus")?;
    let Some(memory) = memory::by_name(&args.model) else { return super::axioms::run(session, args, &files, folders) };
    let picture = args.evidence.as_deref().map(|path| Picture::of(path, &files, folders)).transpose()?;
    let wanted = args.expected.as_deref().map(expectations).transpose()?;
    let answers = parallel(session, &files, |path| one(session, path, memory, args.buffer))?;
    let seconds = start.elapsed().as_secs_f64();
    match session.common.format {
        Format::Json => {
            let mut object = as_json(&files, &answers, memory.name(), seconds);
            if let Some(wanted) = &wanted {
                object["expected"] = compared_json(&files, &answers, wanted);
            }
            output::object(object)?;
        }
        Format::Text if folders => print(&as_table(session, &files, &answers, memory.name(), seconds))?,
        Format::Text => print(&as_text(&answers))?,
    }
    if let Some(path) = &args.junit {
        write_text(path, &junit(memory.name(), &files, &answers, wanted.as_ref()))?;
    }
    for (text, _) in answers.iter().filter_map(|a| a.as_ref().err()) {
        eprint!("{text}");
    }
    if let (Some(picture), Some(Ok(_))) = (picture, answers.first()) {
        draw(session, &files[0], memory, args, picture)?;
    }
    if answers.iter().flatten().any(|r| r.bound_reached) && !session.common.quiet {
        let names: Vec<&str> = answers.iter().flatten().filter(|r| r.bound_reached).map(|r| r.name.as_str()).take(5).collect();
        eprintln!("warning: a store buffer was full in {}; an outcome that is not listed may need more room (--buffer)", names.join(", "));
    }
    let Some(wanted) = wanted else { return Ok(exit_code(&answers)) };
    let differing = differences(&files, &answers, &wanted);
    if session.common.format == Format::Text {
        print(&comparison(&answers, &wanted, &differing))?;
    }
    Ok(match answers.iter().any(Result::is_err) {
        true => 2,
        false => u8::from(!differing.is_empty()),
    })
}

/// The wanted answers of a file.
fn expectations(path: &Path) -> Result<Expected, Diagnostic> {
    let text = super::pipeline::read_text(path, &mut SourceMap::new())?;
    expected::read(&text).map_err(|(line, what)| Diagnostic::new(Stage::File, format!("{}:{line}: {what}", path.display())))
}

/// The tests whose answers are not as wanted: file, report, what is wanted.
fn differences<'a>(files: &'a [PathBuf], answers: &'a [Answer], wanted: &Expected) -> Vec<(&'a Path, &'a Report, Wanted)> {
    let one = |(path, answer): (&'a PathBuf, &'a Answer)| {
        let report = answer.as_ref().ok()?;
        let wanted = *wanted.get(&report.name)?;
        (!wanted.met_by(report)).then_some((path.as_path(), report, wanted))
    };
    files.iter().zip(answers).filter_map(one).collect()
}

/// Tests of which nothing is wanted, and wanted answers of which there is no test.
fn unmatched<'a>(answers: &'a [Answer], wanted: &'a Expected) -> [Vec<&'a str>; 2] {
    let names: Vec<&str> = answers.iter().flatten().map(|r| r.name.as_str()).collect();
    let free = names.iter().copied().filter(|n| !wanted.contains_key(*n)).collect();
    let missing = wanted.keys().map(String::as_str).filter(|n| !names.contains(n)).collect();
    [free, missing]
}

fn comparison(answers: &[Answer], wanted: &Expected, differing: &[(&Path, &Report, Wanted)]) -> String {
    let [free, missing] = unmatched(answers, wanted);
    let compared = answers.iter().flatten().count() - free.len();
    let mut out = format!("\nas wanted    {} of {compared}\n", compared - differing.len());
    for (path, report, wanted) in differing {
        let (found, demand) = (report.observation(), report.verdict.word());
        let _ = writeln!(out, "differs      {}: wanted {}, found {found} ({demand})  ({})", report.name, wanted.word(), path.display());
    }
    for (what, names) in [("not compared", free), ("no such test", missing)] {
        if !names.is_empty() {
            let more = if names.len() > 5 { ", …" } else { "" };
            let _ = writeln!(out, "{what:<13}{}: {}{more}", names.len(), names[..names.len().min(5)].join(", "));
        }
    }
    out
}

fn compared_json(files: &[PathBuf], answers: &[Answer], wanted: &Expected) -> Value {
    let differing = differences(files, answers, wanted);
    let [free, missing] = unmatched(answers, wanted);
    let differs: Vec<Value> = (differing.iter())
        .map(|(path, report, wanted)| {
            let found = report.observation();
            json!({ "file": path.display().to_string(), "name": report.name, "wanted": wanted.word(), "observation": found, "herd": report.verdict.word() })
        })
        .collect();
    let compared = answers.iter().flatten().count() - free.len();
    json!({ "compared": compared, "as_wanted": compared - differing.len(), "differs": differs, "not_compared": free, "no_such_test": missing })
}

/// The tests as cases of a suite: a failure is an answer that is not as wanted, or a demand that is not met where nothing is wanted.
fn junit(model: &str, files: &[PathBuf], answers: &[Answer], wanted: Option<&Expected>) -> String {
    let case = |(path, answer): (&PathBuf, &Answer)| {
        let (name, outcome) = match answer {
            Err((text, _)) => (path.display().to_string(), Outcome::Error(text.lines().next().unwrap_or_default().to_string())),
            Ok(report) => {
                let wanted = wanted.and_then(|w| w.get(&report.name)).copied().unwrap_or(Wanted::Demand(true));
                let outcome = match report.verdict {
                    Verdict::Unknown => Outcome::Unknown(report.stop.word().to_string()),
                    _ if wanted.met_by(report) => Outcome::Passed,
                    _ => Outcome::Failed {
                        message: format!("wanted {}, found {}", wanted.word(), report.observation()),
                        text: report.text(),
                    },
                };
                (report.name.clone(), outcome)
            }
        };
        Case { class: format!("litmus.{model}"), name, seconds: 0.0, outcome }
    };
    let cases: Vec<Case> = files.iter().zip(answers).map(case).collect();
    mu_report::junit::suite(&format!("litmus under {model}"), &cases)
}

/// How an execution is drawn.
#[derive(Clone, Copy)]
pub(super) enum Picture {
    Svg,
    Dot,
}

impl Picture {
    /// What the name of a file asks for, if it can be done.
    pub(super) fn of(path: &Path, files: &[PathBuf], folders: bool) -> Result<Self, Diagnostic> {
        let picture = match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
            Some("svg") => Self::Svg,
            Some("dot") => Self::Dot,
            _ => return Err(no_form_of_evidence(path, ".svg or .dot")),
        };
        if folders || files.len() != 1 {
            return Err(Diagnostic::new(Stage::Usage, "`--evidence` takes a single test"));
        }
        expect_writable(path)?;
        Ok(picture)
    }
}

/// Draws an execution that decides a test.
fn draw(
    session: &mut Session,
    path: &Path,
    memory: &'static dyn MemoryModel,
    args: &LitmusArgs,
    picture: Picture,
) -> Result<(), Diagnostic> {
    let Some(out) = &args.evidence else { return Ok(()) };
    super::output::stage_of("drawing an execution", path);
    let (source, text) = session.read_source(path)?;
    let test = litmus::parse(source, &text)?;
    let found = herd::deciding(&test, memory, args.buffer, &session.budget)?;
    let Some((execution, outcome)) = found.execution else {
        let why = if found.stop == Stop::Complete { "no execution decides it" } else { "none was found within the limits" };
        eprintln!("{}: {why}: nothing is written", path.display());
        return Ok(());
    };
    let what = format!("an execution under {}: {}", memory.name().to_uppercase(), herd::outcome_text(&test, &outcome));
    write_text(
        out,
        &match picture {
            Picture::Svg => execution::svg(&test, &execution, &what),
            Picture::Dot => execution::dot(&test, &execution, &what),
        },
    )?;
    session.say(format!("wrote {}: {} events", out.display(), execution.events.len()));
    Ok(())
}

/// The files that a list names, one in a line, relative to its folder; lists may name lists. The herd tools call such a list `@all`.
fn listed(list: &Path, within: &mut Vec<PathBuf>, files: &mut Vec<PathBuf>) -> Result<(), Diagnostic> {
    let text = std::fs::read_to_string(list).map_err(|e| file_error("cannot read", list, &e))?;
    if within.iter().any(|l| l == list) {
        return Err(Diagnostic::new(Stage::File, format!("the list `{}` includes itself", list.display())));
    }
    within.push(list.to_path_buf());
    let folder = list.parent().unwrap_or(Path::new(""));
    for name in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let path = folder.join(name);
        if is_list(&path) { listed(&path, within, files)? } else { files.push(path) }
    }
    within.pop();
    Ok(())
}

fn is_list(path: &Path) -> bool {
    path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('@')) && !path.is_dir()
}

/// The files meant, lists read, folders searched for files with the extension; whether there were lists or folders.
pub(super) fn collect(given: &[PathBuf], extension: &str) -> Result<(Vec<PathBuf>, bool), Diagnostic> {
    let mut files = Vec::new();
    let mut folders = false;
    for path in given {
        if is_list(path) {
            folders = true;
            listed(path, &mut Vec::new(), &mut files)?;
            continue;
        }
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        folders = true;
        let before = files.len();
        let mut todo = vec![path.clone()];
        while let Some(folder) = todo.pop() {
            for entry in std::fs::read_dir(&folder).map_err(|e| file_error("cannot read", &folder, &e))? {
                let entry = entry.map_err(|e| file_error("cannot read", &folder, &e))?;
                let kind = entry.file_type().map_err(|e| file_error("cannot read", &entry.path(), &e))?;
                let path = entry.path();
                if kind.is_dir() {
                    todo.push(path);
                } else if path.extension().is_some_and(|e| e == extension) {
                    files.push(path);
                }
            }
        }
        files[before..].sort();
        if files.len() == before {
            return Err(Diagnostic::new(Stage::File, format!("no file in `{}` ends in .{extension}", path.display())));
        }
    }
    Ok((files, folders))
}

fn one(session: &Session, path: &Path, memory: &'static dyn MemoryModel, buffer: Option<u32>) -> Answer {
    let mut sources = SourceMap::new();
    let result = read_source(path, &mut sources).and_then(|(source, text)| {
        let test = litmus::parse(source, &text)?;
        herd::run(&test, memory, buffer, &session.budget)
    });
    result.map_err(|d| (d.render(&sources), d.exit_code()))
}

fn exit_code(answers: &[Answer]) -> u8 {
    let has = |v: Verdict| answers.iter().flatten().any(|r| r.verdict == v);
    let refused = answers.iter().filter_map(|a| a.as_ref().err()).map(|e| e.1).max();
    refused.unwrap_or(if has(Verdict::No) {
        1
    } else if has(Verdict::Unknown) {
        3
    } else {
        0
    })
}

fn as_text(answers: &[Answer]) -> String {
    let texts: Vec<String> = answers.iter().flatten().map(Report::text).collect();
    texts.join("\n")
}

/// Numbers of verdicts: Ok, No, Unknown, refused.
fn counts(answers: &[Answer]) -> [usize; 4] {
    let of = |v: Verdict| answers.iter().flatten().filter(|r| r.verdict == v).count();
    [of(Verdict::Ok), of(Verdict::No), of(Verdict::Unknown), answers.iter().filter(|a| a.is_err()).count()]
}

fn as_table(session: &Session, files: &[PathBuf], answers: &[Answer], model: &str, seconds: f64) -> String {
    let mut out = String::new();
    if !session.common.quiet {
        for (path, answer) in files.iter().zip(answers) {
            let _ = match answer {
                Ok(r) => writeln!(
                    out,
                    "{:<8}Observation {} {} {} {}  ({})",
                    r.verdict.word(),
                    r.name,
                    r.observation(),
                    r.positive,
                    r.negative,
                    path.display()
                ),
                Err(_) => writeln!(out, "Refused ({})", path.display()),
            };
        }
        out.push('\n');
    }
    let [ok, no, unknown, refused] = counts(answers);
    let observed = |word: &str| answers.iter().flatten().filter(|r| r.observation() == word).count();
    let _ = writeln!(out, "model        {model}\ntests        {}\nOk           {ok}\nNo           {no}", answers.len());
    let _ = writeln!(out, "Unknown      {unknown}\nrefused      {refused}");
    for word in ["Always", "Sometimes", "Never"] {
        let _ = writeln!(out, "{word:<13}{}", observed(word));
    }
    let states: u64 = answers.iter().flatten().map(|r| r.states).sum();
    let _ = writeln!(out, "states       {states}\nseconds      {seconds:.3}");
    out
}

fn as_json(files: &[PathBuf], answers: &[Answer], model: &str, seconds: f64) -> Value {
    let tests: Vec<Value> = (files.iter().zip(answers))
        .map(|(path, answer)| match answer {
            Ok(r) => {
                let states: Vec<Value> = (r.outcomes.iter())
                    .map(|line| Value::Object(line.iter().map(|(n, v)| (n.clone(), Value::String(v.clone()))).collect()))
                    .collect();
                json!({
                    "file": path.display().to_string(),
                    "name": r.name,
                    "kind": r.quantifier.kind(),
                    "condition": format!("{} ({})", r.quantifier.word(), r.condition),
                    "verdict": output::verdict_word(r.verdict.word()),
                    "herd": r.verdict.word(),
                    "observation": r.observation(),
                    "positive": r.positive,
                    "negative": r.negative,
                    "states": states,
                    "searched_states": r.states,
                    "bound_reached": r.bound_reached,
                    "stop": r.stop.word(),
                })
            }
            Err((text, _)) => json!({ "file": path.display().to_string(), "error": text }),
        })
        .collect();
    let [ok, no, unknown, refused] = counts(answers);
    json!({
        "model": model,
        "tests": tests,
        "summary": { "tests": answers.len(), "ok": ok, "no": no, "unknown": unknown, "refused": refused },
        "seconds": seconds,
    })
}
