//! `litmus --model FILE.cat`: litmus tests under an axiomatic model.
//!
//! The model is compiled once for each architecture that the tests have. Exit codes are those of `litmus`; with `--expected`, 1 if a verdict differs from the table.

use super::args::{Format, LitmusArgs};
use super::files::write_text;
use super::litmus::{Picture, parallel};
use super::pipeline::{Session, file_error, read_source, read_text};
use super::print;
use mu_base::{Diagnostic, SourceMap, Stage, Stop};
use mu_litmus::code::Arch;
use mu_litmus::file::{Options, architecture};
use mu_litmus::judge::family;
use mu_litmus::paths::Bounds;
use mu_litmus::report::{Verdict, deciding};
use mu_litmus::{Judge, Report};
use mu_report::judged;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

/// A test's report, or its refusal as text with the exit code.
type Answer = Result<Report, (String, u8)>;

/// A model, compiled for each architecture when a test asks for it.
struct Models {
    name: String,
    text: String,
    folders: Vec<PathBuf>,
    compiled: [OnceLock<Result<Judge, (String, u8)>>; 4],
}

impl Models {
    /// Finds the model that is meant.
    fn find(args: &LitmusArgs) -> Result<Self, Diagnostic> {
        let mut folders = args.include.clone();
        let given = PathBuf::from(&args.model);
        let candidates = std::iter::once(given.clone())
            .chain(folders.iter().flat_map(|f| [f.join(&given), f.join(format!("{}.cat", args.model))]))
            .chain([Path::new("specs/memory").join(format!("{}.cat", args.model))]);
        let Some(path) = candidates.into_iter().find(|p| p.is_file()) else {
            let error = Diagnostic::new(Stage::Usage, format!("there is no memory model `{}`", args.model));
            return Err(error.note("expected sc, tso, pso, a file in the language cat, or the name of one in a folder of --include"));
        };
        let text = read_text(&path, &mut SourceMap::new())?;
        folders.push(path.parent().unwrap_or(Path::new("")).to_path_buf());
        Ok(Self { name: path.display().to_string(), text, folders, compiled: Default::default() })
    }
    /// The model for an architecture.
    fn judge(&self, arch: Arch) -> Result<&Judge, (String, u8)> {
        let place = &self.compiled[family(arch) as usize];
        let compiled = place.get_or_init(|| {
            let mut sources = SourceMap::new();
            let resolver = |name: &str| self.folders.iter().find_map(|f| std::fs::read_to_string(f.join(name)).ok());
            Judge::compile(&mut sources, arch, &self.name, &self.text, &resolver).map_err(|d| (d.render(&sources), d.exit_code()))
        });
        compiled.as_ref().map_err(Clone::clone)
    }
}

/// Runs tests under the model that is named.
pub(super) fn run(session: &mut Session, args: &LitmusArgs, files: &[PathBuf], folders: bool) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    let models = Models::find(args)?;
    let picture = args.evidence.as_deref().map(|path| Picture::of(path, files, folders)).transpose()?;
    let expected = args.expected.as_deref().map(read_expected).transpose()?;
    let answers = parallel(session, files, |path| one(session, args, &models, path))?;
    let seconds = start.elapsed().as_secs_f64();
    let compared: Vec<Option<bool>> =
        (files.iter().zip(&answers)).map(|(path, answer)| expected.as_ref().and_then(|table| agrees(table, path, answer))).collect();
    match session.common.format {
        Format::Json => print(&format!("{}\n", as_json(files, &answers, &compared, &args.model, seconds)))?,
        Format::Text if folders => print(&as_table(session, files, &answers, &compared, &args.model, seconds))?,
        Format::Text => print(&answers.iter().flatten().map(Report::text).collect::<Vec<_>>().join("\n"))?,
    }
    if let (Some(picture), Some(Ok(_))) = (picture, answers.first()) {
        draw(session, args, &models, &files[0], picture)?;
    }
    let mut told: Vec<&str> = Vec::new();
    for (text, _) in answers.iter().filter_map(|a| a.as_ref().err()) {
        // A model that does not compile is told once.
        if !told.contains(&text.as_str()) {
            told.push(text);
            eprint!("{text}");
        }
    }
    let has = |v: Verdict| answers.iter().flatten().any(|r| r.verdict == v);
    let refused = answers.iter().filter_map(|a| a.as_ref().err()).map(|e| e.1).max();
    if expected.is_some() && refused.is_none() {
        for (path, _) in files.iter().zip(&compared).filter(|(_, c)| **c == Some(false)) {
            eprintln!("{}: the verdict differs from the table", path.display());
        }
        let missing = compared.iter().filter(|c| c.is_none()).count();
        if missing > 0 && !session.common.quiet {
            eprintln!("warning: the table has no verdict for {missing} tests");
        }
        return Ok(if compared.contains(&Some(false)) {
            1
        } else if has(Verdict::Unknown) {
            3
        } else {
            0
        });
    }
    Ok(refused.unwrap_or(if has(Verdict::No) {
        1
    } else if has(Verdict::Unknown) {
        3
    } else {
        0
    }))
}

fn one(session: &Session, args: &LitmusArgs, models: &Models, path: &Path) -> Answer {
    let mut sources = SourceMap::new();
    let read = read_source(path, &mut sources).and_then(|(source, text)| architecture(source, &text).map(|arch| (source, text, arch)));
    let (source, text, arch) = read.map_err(|d| (d.render(&sources), d.exit_code()))?;
    let judge = models.judge(arch)?;
    let options = Options { pairs: judge.pairs };
    let result = mu_litmus::parse(source, &text, options)
        .and_then(|test| mu_litmus::run(test, judge, Bounds { loops: args.unroll }, &session.budget));
    result.map_err(|d| (d.render(&sources), d.exit_code()))
}

/// Draws an execution that decides a test.
fn draw(session: &mut Session, args: &LitmusArgs, models: &Models, path: &Path, picture: Picture) -> Result<(), Diagnostic> {
    let Some(out) = &args.evidence else { return Ok(()) };
    let (source, text) = session.read_source(path)?;
    // The model was compiled to answer the test.
    let Ok(judge) = models.judge(architecture(source, &text)?) else { return Ok(()) };
    let test = mu_litmus::parse(source, &text, Options { pairs: judge.pairs })?;
    let title = format!("{} under {}", test.name, judge.model.name());
    let (found, stop) = deciding(test, judge, Bounds { loops: args.unroll }, &session.budget)?;
    let Some(drawn) = found else {
        let why = if stop == Stop::Complete { "no execution decides it" } else { "none was found within the limits" };
        eprintln!("{}: {why}: nothing is written", path.display());
        return Ok(());
    };
    let picture = match picture {
        Picture::Svg => judged::svg(&drawn, &title),
        Picture::Dot => judged::dot(&drawn, &title),
    };
    write_text(out, &picture)?;
    session.say(format!("wrote {}: {} events", out.display(), drawn.events.len()));
    Ok(())
}

/// The verdicts of a table, by file name.
fn read_expected(path: &Path) -> Result<HashMap<String, bool>, Diagnostic> {
    let text = std::fs::read_to_string(path).map_err(|e| file_error("cannot read", path, &e))?;
    let mut table = HashMap::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (Some(file), Some(holds @ ("0" | "1"))) = (fields.first(), fields.last().copied()) else {
            let error =
                Diagnostic::in_line(Stage::Syntax, i as u64 + 1, 1, line, "expected a file, a model, and 0 or 1, separated by tabs");
            return Err(error.in_file(&path.display().to_string()));
        };
        table.insert((*file).to_string(), holds == "1");
    }
    Ok(table)
}

/// Whether a verdict is that of the table; none if the table does not have the test.
fn agrees(table: &HashMap<String, bool>, path: &Path, answer: &Answer) -> Option<bool> {
    let text = path.display().to_string();
    let mut rest = text.as_str();
    let holds = loop {
        if let Some(holds) = table.get(rest) {
            break *holds;
        }
        rest = &rest[rest.find('/')? + 1..];
    };
    Some(answer.as_ref().is_ok_and(|r| r.verdict == if holds { Verdict::Ok } else { Verdict::No }))
}

/// Numbers of verdicts: Ok, No, Unknown, refused.
fn counts(answers: &[Answer]) -> [usize; 4] {
    let of = |v: Verdict| answers.iter().flatten().filter(|r| r.verdict == v).count();
    [of(Verdict::Ok), of(Verdict::No), of(Verdict::Unknown), answers.iter().filter(|a| a.is_err()).count()]
}

fn as_table(session: &Session, files: &[PathBuf], answers: &[Answer], compared: &[Option<bool>], model: &str, seconds: f64) -> String {
    let mut out = String::new();
    if !session.common.quiet {
        for (path, answer) in files.iter().zip(answers) {
            let _ = match answer {
                Ok(r) => {
                    let flags: String = r.flags.iter().map(|f| format!(" Flag {f}")).collect();
                    let word = r.verdict.word();
                    let seen = r.observation();
                    writeln!(out, "{word:<8}Observation {} {seen} {} {}{flags}  ({})", r.name, r.positive, r.negative, path.display())
                }
                Err(_) => writeln!(out, "Refused ({})", path.display()),
            };
        }
        out.push('\n');
    }
    let [ok, no, unknown, refused] = counts(answers);
    let _ = writeln!(out, "model        {model}\ntests        {}\nOk           {ok}\nNo           {no}", answers.len());
    let _ = writeln!(out, "Unknown      {unknown}\nrefused      {refused}");
    for word in ["Always", "Sometimes", "Never"] {
        let _ = writeln!(out, "{word:<13}{}", answers.iter().flatten().filter(|r| r.observation() == word).count());
    }
    let _ = writeln!(out, "flagged      {}", answers.iter().flatten().filter(|r| !r.flags.is_empty()).count());
    if compared.iter().any(Option::is_some) {
        let of = |v: bool| compared.iter().filter(|c| **c == Some(v)).count();
        let _ = writeln!(out, "as expected  {}\ndiffer       {}", of(true), of(false));
    }
    let executions: u64 = answers.iter().flatten().map(|r| r.executions).sum();
    let _ = writeln!(out, "executions   {executions}\nseconds      {seconds:.3}");
    out
}

fn as_json(files: &[PathBuf], answers: &[Answer], compared: &[Option<bool>], model: &str, seconds: f64) -> Value {
    let tests: Vec<Value> = (files.iter().zip(answers).zip(compared))
        .map(|((path, answer), compared)| match answer {
            Ok(r) => {
                let states: Vec<Value> = (r.outcomes.iter())
                    .map(|line| Value::Object(line.iter().map(|(n, v)| (n.clone(), Value::String(v.clone()))).collect()))
                    .collect();
                let mut test = json!({
                    "file": path.display().to_string(),
                    "name": r.name,
                    "kind": r.quantifier.kind(),
                    "condition": format!("{} ({})", r.quantifier.word(), r.condition),
                    "verdict": r.verdict.word(),
                    "observation": r.observation(),
                    "positive": r.positive,
                    "negative": r.negative,
                    "states": states,
                    "flags": r.flags,
                    "executions": r.executions,
                    "unrolled": r.unrolled,
                    "paths_left_out": r.dropped,
                    "stop": r.stop.word(),
                });
                if let Some(agrees) = compared {
                    test["as_expected"] = json!(agrees);
                }
                test
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
