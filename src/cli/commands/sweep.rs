//! Sweep of a model and formulas over ranges of parameters, with a row for each combination and job
//! (`sweep`).
//!
//! In: the plan of all rows; the rows that an earlier run left in the folder. Out: `sweep.json`,
//! `sweep.csv`, `sweep.md` and plots, rewritten completely after each row. Each row runs in its own
//! process ([`process`]), so that its peak memory is measured separately and the system can kill it
//! without ending the sweep. Limits apply to each row, not to this process. An interrupt also ends
//! the row's process. If this process dies, a row ends by itself, because its standard input is a
//! pipe from here. Invariant: a row is in the file when its run is over, and a row in the file with
//! the same inputs is not run again.

use crate::args::Format;
use crate::args::sweep::{Axis, SweepArgs, axes, combinations};
use crate::output;
use crate::output::print;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::files::write_text;
use crate::pipeline::folder_lock::Locks;
use crate::pipeline::process::{self, Exit};
use crate::pipeline::properties::{find_conditions, formula_texts, only_formula, read_over};
use crate::pipeline::{Session, file_error, read_text};
use clap::ValueEnum;
use mu_base::host::{self, Instant};
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_formula::typecheck::check_formula;
use mu_frontends::murphi::MURPHI;
use mu_frontends::{FrontEnd as _, Input};
use mu_report::junit::{CaseOutcome, TestCase};
use mu_report::reference::Reference;
use mu_report::sweep::{COMPLETE, EXPLORE, NotRun, Row, Sweep, number};
use mu_syntax::template;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Stop reason of a row that ended with an error message or was killed; it runs again the next
/// time.
const FAILED_ROW: &str = "failed";

/// A job: exploration of a model, or check of a formula.
struct Job {
    name: String,
    /// Path and text of the formula.
    formula: Option<(PathBuf, String)>,
    /// The steps with priority.
    confluence: String,
}

type Combination = Vec<(String, String)>;

pub(crate) fn run(session: &mut Session, args: &SweepArgs) -> Result<u8, Diagnostic> {
    let front_end = mu_frontends::by_name(&args.model);
    if !front_end.properties().mcrl2 && !MURPHI.has_ending(&args.model) {
        let message = format!(
            "`{}` is {}, and only specifications and Murphi models have parameters to sweep",
            args.model.display(),
            front_end.language()
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    for path in std::iter::once(&args.model).chain(&args.formulas) {
        if host::is_device(path) {
            let message = format!("`{}` is no regular file", path.display());
            return Err(Diagnostic::new(Stage::File, message).note("each row reads it again"));
        }
    }
    let axes = axes(&session.common.define)?;
    let all = combinations(&axes)?;
    let text = front_end.text(&Input::file(&args.model))?.unwrap_or_default();
    let jobs = jobs(session, args)?;
    let reference = reference(args)?;
    let Plan { combinations, faulty, not_run } = plan(session, args, all, &jobs)?;
    host::fs::create_dir_all(&args.out)
        .map_err(|e| file_error("cannot create the folder", &args.out, &e))?;
    let mut locks = Locks::default();
    locks.write(&args.out)?;
    if let Some(folder) = &args.evidence {
        host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        locks.write(folder)?;
    }
    let runner = Runner { session, args, text, limits: limits(session) };
    let mut sweep = Sweep {
        model: args.model.display().to_string(),
        command: output::command_line(),
        order: varying_parameters(&axes)
            .into_iter()
            .chain(axes.iter().filter(|a| a.values.len() == 1))
            .map(|a| a.name.clone())
            .collect(),
        rows: Vec::new(),
        not_run,
        kept: runner.reusable_rows(&jobs)?,
    };
    let interrupted = runner.run_rows(&mut sweep, &combinations, &faulty, &jobs, &reference)?;
    if interrupted {
        let left = combinations.len() * jobs.len() - sweep.rows.len();
        eprintln!(
            "interrupted: {} rows are in {}, up to {left} remain; run the same command to resume",
            sweep.rows.len(),
            args.out.display()
        );
    }
    if let Some(path) = &args.junit {
        write_text(path, &junit(&sweep))?;
    }
    print(&match session.common.format {
        Format::Json => sweep.json(),
        Format::Text => sweep.to_markdown(&reference),
    })?;
    Ok(match () {
        () if sweep.rows.iter().any(|r| r.verdict.as_deref() == Some("false")) => 1,
        () if sweep.rows.iter().any(|r| r.stop == FAILED_ROW) => 2,
        () if interrupted || sweep.rows.iter().any(|r| !r.is_complete()) => 3,
        () => 0,
    })
}

/// Returns the rows as test cases.
fn junit(sweep: &Sweep) -> String {
    let case = |row: &Row| {
        let parameters: Vec<String> =
            row.parameters.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let result = match row.verdict.as_deref() {
            Some("false") => CaseOutcome::Failed {
                message: match row.formula.is_some() {
                    true => "the formula does not hold".into(),
                    false => "a claim of the model fails".into(),
                },
                text: row.evidence.clone().unwrap_or_default(),
            },
            _ if row.stop == FAILED_ROW => CaseOutcome::Error(
                row.error.clone().unwrap_or_else(|| "the row failed to run".into()),
            ),
            _ if !row.is_complete() => CaseOutcome::Unknown(row.stop.clone()),
            _ => CaseOutcome::Passed,
        };
        TestCase {
            class: row.job.clone(),
            name: parameters.join(" "),
            seconds: row.seconds,
            outcome: result,
        }
    };
    mu_report::junit::suite(&sweep.model, &sweep.rows.iter().map(case).collect::<Vec<_>>())
}

/// Returns the parameters with several values.
fn varying_parameters(axes: &[Axis]) -> Vec<&Axis> {
    axes.iter().filter(|a| a.values.len() > 1).collect()
}

fn jobs(session: &mut Session, args: &SweepArgs) -> Result<Vec<Job>, Diagnostic> {
    let mut jobs: Vec<Job> = Vec::new();
    let settings: BTreeSet<&String> = args.confluence.iter().collect();
    if settings.len() < args.confluence.len() {
        return Err(Diagnostic::new(Stage::Usage, "a value of `--confluence` is given twice"));
    }
    let with_each = |name: &str, formula: Option<(PathBuf, String)>| {
        let one = move |c: &String| Job {
            name: name.into(),
            formula: formula.clone(),
            confluence: c.clone(),
        };
        args.confluence.iter().map(one).collect::<Vec<Job>>()
    };
    if !args.no_explore {
        jobs.extend(with_each(EXPLORE, None));
    }
    for path in &args.formulas {
        let text = session.read(path)?;
        if only_formula(&text).is_none() {
            let message =
                format!("`{}` has several properties, and a row has one formula", path.display());
            return Err(Diagnostic::new(Stage::Usage, message)
                .note("write each property to a file of its own"));
        }
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let shown = path.display().to_string();
        let name = if jobs.iter().any(|j| j.name == stem) { shown } else { stem };
        if jobs.iter().any(|j| j.name == name) {
            return Err(Diagnostic::new(
                Stage::Usage,
                format!("the formula `{name}` is given twice"),
            ));
        }
        jobs.extend(with_each(&name, Some((path.clone(), text))));
    }
    Ok(jobs)
}

fn reference(args: &SweepArgs) -> Result<Reference, Diagnostic> {
    let Some(path) = &args.reference else { return Ok(Reference::default()) };
    let text = read_text(path)?;
    let refused = |(line, what): (usize, String)| {
        Diagnostic::new(Stage::File, format!("{}:{line}: {what}", path.display()))
    };
    Reference::read(&text).map_err(refused)
}

/// Combinations of a sweep after their inputs were read.
struct Plan {
    /// The combinations to run.
    combinations: Vec<Combination>,
    /// Those of them with an error in the model or a formula: their rows fail, and later rows of
    /// the series run.
    faulty: BTreeSet<Combination>,
    /// The rows of combinations that violate a constraint of a parameter.
    not_run: Vec<NotRun>,
}

/// Finds errors in the model, the formulas and the parameters before the first row is run.
///
/// After an interrupt the inputs of the other combinations are not read: rows of an earlier run are
/// printed without them.
///
/// # Errors
/// Every combination has an error, or violates a constraint.
fn plan(
    session: &mut Session,
    args: &SweepArgs,
    all: Vec<Combination>,
    jobs: &[Job],
) -> Result<Plan, Diagnostic> {
    let given = session.common.define.clone();
    let verbose = std::mem::take(&mut session.common.verbose);
    let mut plan = Plan { combinations: Vec::new(), faulty: BTreeSet::new(), not_run: Vec::new() };
    let (mut error_of_a_row, mut violated) = (None, None);
    for combination in all {
        if is_interrupted(session) {
            plan.combinations.push(combination);
            continue;
        }
        session.common.define = defines(&combination);
        // The number of sources is bounded; drop those of earlier rounds, because an error is from
        // this round.
        session.sources = SourceMap::new();
        let checked = match MURPHI.has_ending(&args.model) {
            true => validate_murphi(session, args),
            false => validate(session, args, jobs),
        };
        match checked {
            Ok(()) => plan.combinations.push(combination),
            Err(_) if is_interrupted(session) => plan.combinations.push(combination),
            Err(error) if template::is_constraint_violation(&error) => {
                plan.not_run.extend(jobs.iter().map(|job| NotRun {
                    job: job.name.clone(),
                    parameters: combination.clone(),
                    reason: error.message.clone(),
                }));
                violated = Some(error);
            }
            Err(error) => {
                plan.faulty.insert(combination.clone());
                plan.combinations.push(combination);
                if error_of_a_row.is_none() {
                    // The places of the error are in these sources.
                    error_of_a_row =
                        Some((error, std::mem::replace(&mut session.sources, SourceMap::new())));
                }
            }
        }
    }
    (session.common.define, session.common.verbose) = (given, verbose);
    match (error_of_a_row, violated) {
        (Some((error, sources)), _) if plan.faulty.len() == plan.combinations.len() => {
            session.sources = sources;
            Err(error)
        }
        (_, Some(error)) if plan.combinations.is_empty() => Err(error),
        _ => Ok(plan),
    }
}

/// Checks a specification and the formulas for the parameters of the session.
fn validate(session: &mut Session, args: &SweepArgs, jobs: &[Job]) -> Result<(), Diagnostic> {
    let spec = session.specification(&args.model)?;
    for (path, text) in jobs.iter().filter_map(|j| j.formula.as_ref()) {
        let text = only_formula(text).unwrap_or_default();
        let source = session.sources.add(path.display().to_string(), text.clone());
        check_formula(&mu_syntax::parse_formula(source, &text)?, &spec.data, &spec.actions)?;
    }
    Ok(())
}

/// Does the same for a Murphi model, with conditions on its variables in formulas.
fn validate_murphi(session: &mut Session, args: &SweepArgs) -> Result<(), Diagnostic> {
    let defines = session.common.define.clone();
    let input = Input::file(&args.model);
    mu_frontends::murphi::model(&input, &mut session.sources, &defines)?;
    if args.formulas.is_empty() {
        return Ok(());
    }
    session.conditions.clear();
    let mut texts = formula_texts(session, &args.formulas, &[])?;
    if let Some(error) = texts.iter().find_map(|t| t.unreadable.clone()) {
        return Err(error);
    }
    find_conditions(session, &args.model, &mut texts)?;
    let loaded = session.load(&args.model, "none")?;
    for text in &texts {
        text.set_model(&loaded);
        read_over(session, text, &loaded)?;
    }
    Ok(())
}

fn defines(combination: &Combination) -> Vec<String> {
    combination.iter().map(|(n, v)| format!("{n}={v}")).collect()
}

/// Returns the limits of each row, as text.
fn limits(session: &Session) -> String {
    let c = &session.common;
    let of = |name: &str, value: Option<String>| value.map(|v| format!("{name}={v}"));
    let all = [
        of("states", c.max_states.map(|n| n.to_string())),
        of("memory", c.max_memory.map(|n| n.to_string())),
        of("seconds", c.timeout.map(|t| t.as_secs_f64().to_string())),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn write_all(args: &SweepArgs, sweep: &Sweep, reference: &Reference) -> Result<(), Diagnostic> {
    write_text(&args.out.join("sweep.json"), &sweep.json())?;
    write_text(&args.out.join("sweep.csv"), &sweep.csv())?;
    write_text(&args.out.join("sweep.md"), &sweep.to_markdown(reference))?;
    sweep
        .plots(reference)
        .iter()
        .try_for_each(|(name, picture)| write_text(&args.out.join(name), picture))
}

/// Runner of rows.
struct Runner<'a> {
    session: &'a Session,
    args: &'a SweepArgs,
    text: String,
    limits: String,
}

impl Runner<'_> {
    /// Reuses the requested rows of an earlier run, and runs the others. Returns true if it was
    /// interrupted.
    fn run_rows(
        &self,
        sweep: &mut Sweep,
        combinations: &[Combination],
        faulty: &BTreeSet<Combination>,
        jobs: &[Job],
        reference: &Reference,
    ) -> Result<bool, Diagnostic> {
        let mut names: Vec<String> = jobs.iter().map(|j| j.name.clone()).collect();
        names.dedup();
        let bar = Bar::new(!self.session.common.no_progress && !self.session.common.quiet);
        // Series that ended early, with the reason for their further rows.
        let mut ended: Vec<((&str, &str, Combination), &str)> = Vec::new();
        let mut interrupted = false;
        'all: for combination in combinations {
            for job in jobs {
                // The series of this row: the job with all parameters except the first one with
                // several values.
                let others = combination
                    .iter()
                    .filter(|p| Some(&p.0) != sweep.order.first())
                    .cloned()
                    .collect();
                let series = (job.name.as_str(), job.confluence.as_str(), others);
                if let Some((_, reason)) = ended.iter().find(|e| e.0 == series) {
                    sweep.not_run.push(NotRun {
                        job: job.name.clone(),
                        parameters: combination.clone(),
                        reason: (*reason).into(),
                    });
                    continue;
                }
                let inputs = self.inputs(job, combination);
                let still = |r: &Row| {
                    let shown = r.evidence.as_ref().is_none_or(|e| host::is_file(Path::new(e)));
                    r.inputs == inputs
                        && shown
                        && (r.is_complete() || r.limits.as_deref() == Some(&self.limits))
                };
                let row = match sweep.kept.iter().position(still) {
                    Some(at) => sweep.kept.remove(at),
                    None if self.is_interrupted() => {
                        interrupted = true;
                        break 'all;
                    }
                    None => match self.row(job, combination, &inputs, &bar)? {
                        Some(row) if !self.is_interrupted() || row.is_complete() => row,
                        _ => {
                            interrupted = true;
                            break 'all;
                        }
                    },
                };
                if !row.is_complete() && !faulty.contains(combination) {
                    let reason = match row.stop.as_str() {
                        FAILED_ROW => "a smaller row failed",
                        "unknown" => "a smaller row is unknown",
                        _ => "a smaller row reached a limit",
                    };
                    ended.push((series, reason));
                }
                sweep.kept.retain(|r| r.inputs != inputs);
                sweep.rows.push(row);
                sweep.sort(&names);
                write_all(self.args, sweep, reference)?;
            }
        }
        bar.finish();
        sweep.sort(&names);
        write_all(self.args, sweep, reference)?;
        Ok(interrupted)
    }

    /// Computes the fingerprint of all inputs of a row, except limits.
    fn inputs(&self, job: &Job, combination: &Combination) -> String {
        let count =
            if job.formula.is_some() { value_name(&self.args.count) } else { String::new() };
        let mut sorted = combination.clone();
        sorted.sort();
        let pieces = [
            env!("CARGO_PKG_VERSION"),
            &self.text,
            job.formula.as_ref().map_or("", |f| &f.1),
            &job.confluence,
            &count,
            &format!("{} {} {sorted:?}", self.args.engine.name(), self.session.threads()),
            &self.evidence(job, combination).map_or_else(String::new, |e| e.display().to_string()),
        ];
        fingerprint(&pieces)
    }

    /// Returns the evidence file of a row if the user requested one; its name contains the formula
    /// and the parameters.
    fn evidence(&self, job: &Job, combination: &Combination) -> Option<PathBuf> {
        let folder = self.args.evidence.as_ref().filter(|_| job.formula.is_some())?;
        let plain = |c: char| if c.is_alphanumeric() || "-_.=+".contains(c) { c } else { '_' };
        let mut sorted = combination.clone();
        sorted.sort();
        let setting = (self.args.confluence.len() > 1).then(|| job.confluence.clone());
        let parts = std::iter::once(job.name.clone()).chain(setting).chain(defines(&sorted));
        let name: String = parts
            .collect::<Vec<_>>()
            .join(",")
            .chars()
            .map(|c| if c == ',' { c } else { plain(c) })
            .collect();
        Some(folder.join(format!("{name}.{}", self.args.evidence_form.file_extension())))
    }

    /// Returns the rows of an earlier run that are still valid. If some are not, all rows are saved
    /// in another file.
    fn reusable_rows(&self, jobs: &[Job]) -> Result<Vec<Row>, Diagnostic> {
        let path = self.args.out.join("sweep.json");
        if !host::is_file(&path) {
            return Ok(Vec::new());
        }
        let text = read_text(&path)?;
        let damaged = |e: String| {
            let message = format!("`{}` was not written by a sweep: {e}", path.display());
            Diagnostic::new(Stage::File, message)
                .note("choose another folder, or remove the file to start over")
        };
        let old = Sweep::read(&text).map_err(damaged)?;
        let valid = |row: &Row| {
            let setting = || row.confluence.clone().unwrap_or_default();
            let job = jobs.iter().find(|j| j.name == row.job && j.confluence == setting());
            // A job of an earlier run may not be requested now.
            let other = || {
                let path = PathBuf::from(row.formula.as_ref()?);
                let text = read_text(&path).ok()?;
                Some(Job {
                    name: row.job.clone(),
                    formula: Some((path, text)),
                    confluence: setting(),
                })
            };
            let explore = Job { name: EXPLORE.into(), formula: None, confluence: setting() };
            let same = |j: &Job| self.inputs(j, &row.parameters) == row.inputs;
            let same = match job {
                Some(job) => same(job),
                None if row.job == EXPLORE => same(&explore),
                None => other().is_some_and(|j| same(&j)),
            };
            same && row.stop != FAILED_ROW
        };
        let (reusable_rows, dropped): (Vec<Row>, Vec<Row>) =
            old.rows.into_iter().chain(old.kept).partition(valid);
        if !dropped.is_empty() {
            let free = (1..)
                .map(|n| self.args.out.join(format!("sweep.before-{n}.json")))
                .find(|p| !host::is_file(p));
            let free = free.unwrap_or_else(|| self.args.out.join("sweep.before.json"));
            write_text(&free, &text)?;
            eprintln!(
                "{} rows have other inputs; they are saved in {}",
                dropped.len(),
                free.display()
            );
        }
        self.session.log(format!("{} rows are already done", reusable_rows.len()));
        Ok(reusable_rows)
    }

    /// Returns the command line of a row, without the program name.
    fn words(&self, job: &Job, combination: &Combination) -> Vec<OsString> {
        let common = &self.session.common;
        let mut words: Vec<OsString> = Vec::new();
        let mut log = |more: &[&str]| words.extend(more.iter().map(OsString::from));
        match &job.formula {
            None => log(&[EXPLORE]),
            // Tables of counts show all states.
            Some(_) => {
                log(&["check", "--without", "por", "--count", &value_name(&self.args.count)])
            }
        }
        log(&[
            "--confluence",
            &job.confluence,
            "--format",
            "json",
            "--no-progress",
            "--end-with-input",
        ]);
        log(&[
            "--engine",
            self.args.engine.name(),
            "--threads",
            &self.session.threads().to_string(),
        ]);
        defines(combination).iter().for_each(|d| log(&["-D", d]));
        if let Some(n) = common.max_states {
            log(&["--max-states", &n.to_string()]);
        }
        if let Some(n) = common.max_memory {
            log(&["--max-memory", &n.to_string()]);
        }
        if let Some(t) = common.timeout {
            log(&["--timeout", &format!("{}s", t.as_secs_f64())]);
        }
        if let Some(path) = self.evidence(job, combination) {
            words.extend(["--evidence".into(), path.into_os_string()]);
        }
        words.extend(["--".into(), self.args.model.clone().into_os_string()]);
        words.extend(job.formula.as_ref().map(|f| f.0.clone().into_os_string()));
        words
    }

    /// Runs a row. Returns `None` if it was interrupted.
    fn row(
        &self,
        job: &Job,
        combination: &Combination,
        inputs: &str,
        bar: &Bar,
    ) -> Result<Option<Row>, Diagnostic> {
        let setting = if self.args.confluence.len() > 1 {
            format!(" ({})", job.confluence)
        } else {
            String::new()
        };
        let what = format!("{}{setting} {}", job.name, defines(combination).join(" "));
        let start = Instant::now();
        let evidence = self.evidence(job, combination);
        // Remove the file that an earlier run left.
        let _ = evidence.as_ref().map(host::fs::remove_file);
        let wait = || bar.note(|| format!("{what}: {:.0} s", start.elapsed().as_secs_f64()));
        let ended = process::run(&self.words(job, combination), &|| self.is_interrupted(), &wait)?;
        let Some(Exit { how, out: stdout, err: stderr }) = ended else { return Ok(None) };
        let seconds = start.elapsed().as_secs_f64();
        let object: Value = serde_json::from_slice(&stdout).unwrap_or_default();
        let mut parameters = combination.clone();
        parameters.sort();
        let mut row = Row {
            job: job.name.clone(),
            formula: job.formula.as_ref().map(|f| f.0.display().to_string()),
            confluence: Some(job.confluence.clone()),
            parameters,
            seconds,
            memory: object["peak_memory_bytes"].as_u64().unwrap_or(0),
            version: env!("CARGO_PKG_VERSION").into(),
            inputs: inputs.into(),
            ..Row::default()
        };
        let answer = if job.formula.is_some() { &object["results"][0] } else { &object };
        let stop = if job.formula.is_none() {
            answer["stop"].as_str()
        } else {
            answer["verdict"].as_str()
        };
        row.stop = match stop {
            Some("unknown") => answer["reason"].as_str().unwrap_or(FAILED_ROW).into(),
            Some("true" | "false") => COMPLETE.into(),
            Some(word) => word.into(),
            None => FAILED_ROW.into(),
        };
        // A terminal also sends the signal to the row's process: its answer still counts.
        if row.stop == "interrupted" || (self.is_interrupted() && !row.is_complete()) {
            return Ok(None);
        }
        if row.stop == FAILED_ROW {
            let why = String::from_utf8_lossy(&stderr);
            let why = if why.trim().is_empty() {
                format!("the process ended with {how} and without an answer")
            } else {
                why.into_owned()
            };
            bar.log(&format!("{what}: failed\n{}", why.trim_end()));
            row.error = Some(why.trim_end().to_string());
        }
        row.states = number(answer.get("states"));
        // A Murphi model counts the rules that fired.
        row.transitions = number(answer.get("transitions").or_else(|| answer.get("rules")));
        row.equations = number(answer.get("equations"));
        row.verdict = answer["verdict"].as_str().map(|word| match (job.formula.is_some(), word) {
            (true, _) | (false, "unknown") => word.to_string(),
            // An exploration of a Murphi model names the kind of claim that fails.
            (false, "ok") => "true".to_string(),
            (false, _) => "false".to_string(),
        });
        if row.verdict.as_deref() == Some("unknown") && row.is_complete() {
            row.stop = "unknown".into();
        }
        row.engine = answer["engine"].as_str().map(String::from);
        row.limits = (!row.is_complete()).then(|| self.limits.clone());
        row.evidence = evidence.filter(|e| host::is_file(e)).map(|e| e.display().to_string());
        if !self.session.common.quiet {
            let size = row
                .size()
                .and_then(|n| u64::try_from(n).ok())
                .map_or_else(String::new, group_digits);
            let kind = if row.formula.is_some() { "equations" } else { "states" };
            let verdict = row.verdict.as_ref().map_or_else(String::new, |v| format!("{v}, "));
            let stop = if row.is_complete() { String::new() } else { format!(" ({})", row.stop) };
            bar.log(&format!(
                "{what}: {verdict}{size} {kind}, {seconds:.2} s, {} MiB{stop}",
                group_digits((row.memory + (1 << 19)) >> 20)
            ));
        }
        Ok(Some(row))
    }

    fn is_interrupted(&self) -> bool {
        is_interrupted(self.session)
    }
}

/// True if the user interrupted the sweep, which has no limits of its own.
fn is_interrupted(session: &Session) -> bool {
    session.budget.check(0).is_err()
}

/// Returns the name of a value on the command line.
fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|v| v.get_name().to_string()).unwrap_or_default()
}

/// Computes the 128-bit FNV-1a hash of strings and their lengths, as hexadecimal digits; it is the
/// same on every machine.
fn fingerprint(pieces: &[&str]) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut eat = |bytes: &[u8]| {
        bytes.iter().for_each(|b| hash = (hash ^ u128::from(*b)).wrapping_mul((1 << 88) + 0x13b))
    };
    for piece in pieces {
        eat(&(piece.len() as u64).to_le_bytes());
        eat(piece.as_bytes());
    }
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_distinguish() {
        // The published value of the empty string is the offset basis; the length adds eight zero
        // bytes here.
        assert_eq!(fingerprint(&[]), "6c62272e07bb014262b821756295c58d");
        assert_ne!(fingerprint(&["a", "b"]), fingerprint(&["ab", ""]));
        assert_eq!(fingerprint(&["a", "b"]), fingerprint(&["a", "b"]));
    }
}
