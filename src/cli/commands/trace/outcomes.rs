//! Outcomes of litmus tests on a processor, as litmus7 prints them: each line of a histogram is a
//! trace, which a model allows if it allows the outcome.
//!
//! ```text
//! Test SB Allowed
//! Histogram (4 states)
//! 96    *>0:EAX=0; 1:EAX=0;
//! 499878:>0:EAX=1; 1:EAX=0;
//! ```
//!
//! The test is `NAME.litmus` in the folder of `--tests`, or in that of the log; otherwise the text
//! of the test in the log, above `Generated assembler`. The layer `litmus` computes all outcomes of
//! the test under the axioms of the model once.

use super::against::Against;
use super::log::Log;
use super::results::{TraceAnswer, TraceReport, TraceResult};
use crate::args::TraceArgs;
use crate::output;
use crate::pipeline::Session;
use mu_base::{Diagnostic, SourceMap, Stage, Stop};
use mu_litmus::paths::PathBounds;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Backward jumps of a path that are followed.
const LOOPS: u32 = 2;

/// A value of a register or location in an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FinalValue {
    Number(i128),
    /// Address or other value that is printed as a text.
    Address(String),
    /// Any value, the same at all places of the outcome.
    Any,
}

/// An outcome: values by register or location.
type FinalValues = BTreeMap<String, FinalValue>;

/// The outcomes of a test in a log.
struct Histogram {
    name: String,
    /// Line of `Test NAME`.
    line: (u64, String),
    /// Text of the test in the log.
    text: Option<String>,
    /// Line, text, and values of each outcome.
    outcomes: Vec<(u64, String, FinalValues)>,
}

/// Reads the histograms of a log.
fn histograms(log: &mut dyn BufRead, file: &str) -> Result<Vec<Histogram>, Diagnostic> {
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).map_err(|e| {
        Diagnostic::new(Stage::File, format!("{file}: cannot read the log to its end: {e}"))
    })?;
    let text = mu_base::files::decode(bytes, file, 1)?;
    let mut all: Vec<Histogram> = Vec::new();
    let mut left = 0usize;
    let (mut test, mut in_test): (Vec<&str>, bool) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate().map(|(i, l)| (i as u64 + 1, l)) {
        let error = |column: usize, message: String| {
            Diagnostic::in_line(Stage::Syntax, number, column, line, message).in_file(file)
        };
        if left > 0 {
            let outcome = outcome(line).map_err(|(column, message)| error(column, message))?;
            if let Some(last) = all.last_mut() {
                last.outcomes.push((number, outcome.0, outcome.1));
            }
            left -= 1;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Test", name, "Allowed" | "Required" | "Forbidden"] => {
                let text = (!test.is_empty()).then(|| test.join("\n") + "\n");
                test.clear();
                in_test = false;
                let line = (number, line.to_string());
                all.push(Histogram { name: name.to_string(), line, text, outcomes: Vec::new() });
            }
            ["Histogram", count, "states)"] => {
                in_test = false;
                let count = count.trim_start_matches('(').parse::<usize>();
                left = count.map_err(|_| error(11, "expected `(N states)`".into()))?;
                if all.is_empty() {
                    return Err(error(1, "a histogram without `Test NAME` above it".into()));
                }
            }
            [first, ..] if first.starts_with('%') => in_test = true,
            ["Generated", "assembler"] => in_test = false,
            _ if !in_test && outcome(line).is_ok() => {
                let name = all.last().map_or("", |h| h.name.as_str());
                let message =
                    format!("the histogram of `{name}` has more outcomes than its head says");
                return Err(
                    error(1, message).note("`Histogram (N states)` has the number of lines")
                );
            }
            _ if in_test && (!test.is_empty() || !line.trim().is_empty()) => test.push(line),
            _ => {}
        }
    }
    if left > 0 {
        let last = all.last().map_or(String::new(), |h| h.name.clone());
        let number = text.lines().count() as u64;
        let shown = text.lines().last().unwrap_or("");
        let message = format!("the histogram of `{last}` lacks {left} outcomes");
        return Err(Diagnostic::in_line(Stage::Syntax, number, 1, shown, message)
            .in_file(file)
            .note("the log is cut off"));
    }
    Ok(all)
}

/// Reads a line `96    *>0:EAX=0; x=1;`. Errors: column and message.
fn outcome(line: &str) -> Result<(String, FinalValues), (usize, String)> {
    let Some((count, rest)) = line.split_once('>') else {
        return Err((1, "expected a line `N :>0:EAX=0; x=1;`".into()));
    };
    let digits = count.trim_end_matches(['*', ':']).trim();
    if digits.parse::<u64>().is_err() {
        return Err((1, format!("expected a number of runs, found `{digits}`")));
    }
    let mut values = FinalValues::new();
    let mut column = count.chars().count() + 2;
    for part in rest.split(';') {
        let text = part.trim();
        if !text.is_empty() {
            let (name, value) = text
                .split_once('=')
                .ok_or((column, format!("expected `NAME=VALUE`, found `{text}`")))?;
            let value = number(value)
                .or_else(|| address(value))
                .ok_or((column, format!("expected a number or an address in `{text}`")))?;
            values.insert(plain(name), value);
        }
        column += part.chars().count() + 1;
    }
    Ok((rest.trim().to_string(), values))
}

fn number(text: &str) -> Option<FinalValue> {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |d| (-1, d));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(FinalValue::Number(sign * value))
}

/// Reads the address of a location, such as `x`, `&x`, or `x[1]`.
fn address(text: &str) -> Option<FinalValue> {
    let text = text.trim().trim_start_matches('&');
    let is_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let text = text.strip_suffix("[0]").unwrap_or(text);
    is_name.then(|| FinalValue::Address(text.to_string()))
}

/// Reads a value that the layer `litmus` prints.
fn parse_computed(text: &str) -> FinalValue {
    match text {
        "?" => FinalValue::Any,
        _ => number(text).unwrap_or_else(|| FinalValue::Address(text.to_string())),
    }
}

/// Returns a name without brackets.
fn plain(name: &str) -> String {
    name.trim().trim_start_matches('[').trim_end_matches(']').to_string()
}

/// The outcomes that a model allows for a test.
enum AllowedOutcomes {
    /// All of them; the stop reason if some may be missing.
    Outcomes(Vec<FinalValues>, Option<(Stop, String)>),
    /// Every outcome, because the program is undefined.
    All,
    /// The reason why the model cannot judge the test.
    Unknown(String),
}

/// Returns the text of a test with its name for messages.
fn test_of(
    args: &TraceArgs,
    log: &str,
    histogram: &Histogram,
) -> Result<(String, String), Diagnostic> {
    let folder = args
        .tests
        .clone()
        .unwrap_or_else(|| Path::new(log).parent().map_or_else(PathBuf::new, Path::to_path_buf));
    let path = folder.join(format!("{}.litmus", histogram.name));
    if mu_base::host::is_file(&path) {
        return Ok((path.display().to_string(), mu_base::files::read_text(&path)?));
    }
    match &histogram.text {
        Some(text) => Ok((format!("{} in {log}", histogram.name), text.clone())),
        None => {
            let (number, line) = &histogram.line;
            let message = format!("there is no test of this name: `{}`", path.display());
            Err(Diagnostic::in_line(Stage::File, *number, 6, line.as_str(), message)
                .in_file(log)
                .note("`--tests DIR` sets the folder of the tests"))
        }
    }
}

/// Computes the outcomes of a test under a model.
fn allowed_outcomes(
    session: &Session,
    model: &Against,
    name: &str,
    text: &str,
) -> Result<(AllowedOutcomes, usize, usize), Diagnostic> {
    let mut sources = SourceMap::new();
    let source = sources.add(name, text);
    let located = |d: Diagnostic, sources: &SourceMap| {
        // The source is not one of the session: its place becomes a line.
        let Some(span) = d.span.filter(|s| sources.holds(s.source)) else { return d };
        let (line, column) = sources.line_column(span);
        let shown = text.lines().nth(line - 1).unwrap_or("");
        let mut moved = Diagnostic::in_line(d.stage, line as u64, column, shown, d.message.clone())
            .in_file(name);
        moved.notes = d.notes;
        moved
    };
    let arch = mu_litmus::file::architecture(source, text).map_err(|d| located(d, &sources))?;
    let parsed = |pairs| {
        mu_litmus::parse(
            source,
            text,
            mu_litmus::file::ParserOptions { pairs, ..Default::default() },
        )
    };
    let size = |test: &mu_litmus::LitmusTest| {
        (test.threads.iter().map(|t| t.texts.len()).sum::<usize>(), test.threads.len())
    };
    let Some(axioms) = &model.axioms else {
        let (instructions, threads) = size(&parsed(false).map_err(|d| located(d, &sources))?);
        let reason = format!("there are no axioms of `{}`", model.name);
        return Ok((AllowedOutcomes::Unknown(reason), instructions, threads));
    };
    let included = |name: &str| axioms.included_text(name);
    let judge = mu_litmus::Judge::compile(&mut sources, arch, &model.name, &axioms.text, &included);
    let judge = match judge {
        Ok(judge) => judge,
        Err(d) => {
            let (instructions, threads) = size(&parsed(false).map_err(|d| located(d, &sources))?);
            let reason = format!("`{}` does not judge {} tests: {d}", model.name, arch.name());
            return Ok((AllowedOutcomes::Unknown(reason), instructions, threads));
        }
    };
    let test = parsed(judge.pairs).map_err(|d| located(d, &sources))?;
    let (instructions, threads) = size(&test);
    let report = mu_litmus::run(test, &judge, PathBounds { loops: LOOPS }, &session.budget)
        .map_err(|d| located(d, &sources))?;
    if report.answer.undefined {
        return Ok((AllowedOutcomes::All, instructions, threads));
    }
    let outcomes = report
        .answer
        .outcomes
        .iter()
        .map(|o| o.iter().map(|(n, v)| (plain(n), parse_computed(v))).collect())
        .collect();
    let missing = (!report.answer.complete)
        .then(|| (report.stop.clone(), "some outcomes of the test were not computed".to_string()));
    Ok((AllowedOutcomes::Outcomes(outcomes, missing), instructions, threads))
}

/// Judges an outcome.
fn judge(allowed: &AllowedOutcomes, outcome: &FinalValues) -> TraceAnswer {
    let (outcomes, missing) = match allowed {
        AllowedOutcomes::Unknown(reason) => {
            return TraceAnswer {
                reason: Some(reason.clone()),
                stop: Some(Stop::Complete),
                ..TraceAnswer::default()
            };
        }
        AllowedOutcomes::All => {
            return TraceAnswer {
                truth: Some(true),
                reason: Some("the program is undefined, so every outcome is allowed".to_string()),
                ..TraceAnswer::default()
            };
        }
        AllowedOutcomes::Outcomes(outcomes, missing) => (outcomes, missing),
    };
    let found = outcomes.iter().find(|o| agree(outcome, o));
    let unobserved =
        outcomes.first().and_then(|o| outcome.keys().find(|name| !o.contains_key(*name)));
    match (found, unobserved, missing) {
        (Some(_), None, _) => TraceAnswer { truth: Some(true), ..TraceAnswer::default() },
        (Some(_), Some(name), _) => TraceAnswer {
            reason: Some(format!("the test does not observe `{name}`")),
            ..TraceAnswer::default()
        },
        (None, _, Some((stop, reason))) => TraceAnswer {
            reason: Some(reason.clone()),
            stop: Some(stop.clone()),
            ..TraceAnswer::default()
        },
        (None, _, None) => TraceAnswer { truth: Some(false), ..TraceAnswer::default() },
    }
}

/// True if an outcome of a log is one that was computed. Names that the test does not observe are
/// left out.
fn agree(outcome: &FinalValues, computed: &FinalValues) -> bool {
    let mut any: Option<&FinalValue> = None;
    outcome.iter().all(|(name, value)| match (value, computed.get(name)) {
        (_, None) => true,
        (_, Some(FinalValue::Any)) => any.replace(value).is_none_or(|before| before == value),
        (FinalValue::Number(a), Some(FinalValue::Number(b))) => is_same_value(*a, *b),
        (a, Some(b)) => a == b,
    })
}

/// True if two printed values are the same, one of them possibly without its sign: a negative value
/// of 32 or 64 bits is printed as its two's complement.
fn is_same_value(a: i128, b: i128) -> bool {
    let (low, high) = (a.min(b), a.max(b));
    let is_complement = |bits: u32| low >= -(1 << (bits - 1)) && low + (1 << bits) == high;
    low == high || low < 0 && (is_complement(32) || is_complement(64))
}

/// Reads a log of outcomes and judges each.
pub(super) fn read(
    session: &Session,
    args: &TraceArgs,
    models: &[Against],
    mut log: Log,
    results: &TraceReport,
) -> Result<(), Diagnostic> {
    for histogram in histograms(&mut log.bytes, &log.name)? {
        output::begin_stage("running litmus tests");
        let (name, text) = match test_of(args, &log.name, &histogram) {
            Err(error) if args.repair => {
                results.lock().skipped.push(error);
                continue;
            }
            test => test?,
        };
        let mut by_model = Vec::new();
        for model in models {
            by_model.push(allowed_outcomes(session, model, &name, &text)?);
        }
        for (_, shown, outcome) in &histogram.outcomes {
            results.lock().traces.push(TraceResult {
                file: log.name.clone(),
                name: format!("{} {shown}", histogram.name),
                operations: by_model.first().map_or(0, |m| m.1),
                threads: by_model.first().map_or(0, |m| m.2),
                answers: by_model.iter().map(|m| judge(&m.0, outcome)).collect(),
            });
        }
        if let Err(stop) = session.budget.check(0).and_then(|()| session.budget.check_memory()) {
            results.lock().stop = stop;
            return Ok(());
        }
    }
    Ok(())
}
