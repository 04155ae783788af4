//! Answers of litmus tests as text, table, JSON and JUnit, with a comparison to expected answers,
//! for any route.

use super::expected::{ExpectedAnswer, ExpectedAnswers};
use super::{TestError, TestResult, limit_text};
use crate::commands::explore::find_path::stem;
use mu_report::junit::{CaseOutcome, TestCase, suite};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Tests with their results and expected answers.
pub(super) struct VerdictTable<'a> {
    /// The memory model's name.
    pub model: &'a str,
    /// Unit of effort of the route: states or executions.
    pub unit: &'static str,
    /// The file of each result.
    pub files: &'a [PathBuf],
    /// A result or an error.
    pub results: &'a [Result<TestResult, TestError>],
    /// Expected answers.
    pub expected: Option<&'a ExpectedAnswers>,
    /// Wall time.
    pub seconds: f64,
}

/// A test with an unexpected answer.
struct Difference<'a> {
    file: String,
    ran: &'a TestResult,
    expected: ExpectedAnswer,
}

impl<'a> VerdictTable<'a> {
    fn completed_runs(&self) -> impl Iterator<Item = &'a TestResult> {
        self.results.iter().flatten()
    }
    /// Returns all results as text. `lines`: true if each test gets a line.
    pub(super) fn text(&self, lines: bool, quiet: bool) -> String {
        let mut text = if lines { self.lines(quiet) } else { self.blocks() };
        if let Some(expected) = self.expected {
            text += &self.comparison(expected);
        }
        text
    }
    /// Returns each test in the form of the herd tools.
    fn blocks(&self) -> String {
        let one = |(path, result): (&PathBuf, &Result<TestResult, TestError>)| match result {
            Ok(ran) => Some(ran.text()),
            Err(TestError { limit: Some(stop), .. }) => {
                Some(format!("Test {}\nUnknown\n{}\n", stem(path), limit_text(stop)))
            }
            Err(_) => None,
        };
        self.files.iter().zip(self.results).filter_map(one).collect::<Vec<_>>().join("\n")
    }
    /// Returns the reasons for which tests were rejected.
    pub(super) fn rejections(&self) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for refused in self.results.iter().filter_map(|r| r.as_ref().err()) {
            if refused.limit.is_none() && !texts.contains(&refused.text) {
                texts.push(refused.text.clone());
            }
        }
        texts
    }
    /// Returns the tests that a limit left without outcomes.
    fn open(&self) -> usize {
        self.results.iter().filter(|r| matches!(r, Err(TestError { limit: Some(_), .. }))).count()
    }
    /// Returns the exit code: 2 or more for an error; 1 if an answer is not as expected or, without
    /// expected answers, a condition does not hold; 3 if an answer is open, or an expected answer
    /// has no test; otherwise 0.
    pub(super) fn exit_code(&self) -> u8 {
        if let Some(code) = (self.results.iter().filter_map(|r| r.as_ref().err()))
            .filter(|r| r.limit.is_none())
            .map(|r| r.code)
            .max()
        {
            return code;
        }
        // Classify each test by its own condition or the expected answer: right, wrong, or open.
        let compared = |r: &TestResult| match self.expected {
            Some(expected) => expected.of(&r.file, &r.answer.name).map(|w| w.compare(&r.answer)),
            None => Some(r.answer.meets_demand()),
        };
        let has =
            |result: Option<bool>| self.completed_runs().filter_map(compared).any(|r| r == result);
        // Expected answers without a test are open; so is a comparison with no tests.
        let missing = self.expected.is_some_and(|w| {
            !self.unmatched_names(w).1.is_empty()
                || !self.completed_runs().any(|r| compared(r).is_some())
        });
        if has(Some(false)) {
            1
        } else if has(None) || missing || self.open() > 0 {
            3
        } else {
            0
        }
    }
    fn differences(&self, expected: &ExpectedAnswers) -> Vec<Difference<'a>> {
        let one = |ran: &'a TestResult| {
            let expected = expected.of(&ran.file, &ran.answer.name)?;
            (!expected.is_met_by(&ran.answer)).then(|| Difference {
                file: ran.file.clone(),
                ran,
                expected,
            })
        };
        self.completed_runs().filter_map(one).collect()
    }
    /// Returns tests without expected answers, and expected answers without a test.
    fn unmatched_names<'w>(&self, expected: &'w ExpectedAnswers) -> (Vec<&'a str>, Vec<&'w str>) {
        let free = self
            .completed_runs()
            .filter(|r| expected.of(&r.file, &r.answer.name).is_none())
            .map(|r| r.answer.name.as_str())
            .collect();
        let names: Vec<&str> = self.completed_runs().map(|r| r.answer.name.as_str()).collect();
        (free, expected.names().filter(|n| !names.contains(n)).collect())
    }
    fn comparison(&self, expected: &ExpectedAnswers) -> String {
        let differing = self.differences(expected);
        let (free, missing) = self.unmatched_names(expected);
        let compared = self.completed_runs().count() - free.len();
        let mut out = format!("\nas expected  {} of {compared}\n", compared - differing.len());
        for Difference { file, ran, expected } in &differing {
            let answer = &ran.answer;
            let (found, demand) = (answer.observation(), answer.word());
            let _ = writeln!(
                out,
                "differs      {}: expected {}, found {found} ({demand})  ({file})",
                answer.name,
                expected.word()
            );
        }
        for (what, names) in [("not compared", &free[..]), ("no such test", &missing[..])] {
            if !names.is_empty() {
                let more = if names.len() > 5 { ", …" } else { "" };
                let _ = writeln!(
                    out,
                    "{what:<13}{}: {}{more}",
                    names.len(),
                    names[..names.len().min(5)].join(", ")
                );
            }
        }
        out
    }
    /// Counts verdicts: Ok, No (with undefined programs), Unknown, refused.
    fn counts(&self) -> [usize; 4] {
        let of = |met: Option<bool>| {
            self.completed_runs().filter(|r| r.answer.meets_demand() == met).count()
        };
        [
            of(Some(true)),
            of(Some(false)),
            of(None) + self.open(),
            self.results.iter().filter(|a| a.is_err()).count() - self.open(),
        ]
    }
    fn lines(&self, quiet: bool) -> String {
        let mut out = String::new();
        for (path, result) in self.files.iter().zip(self.results).filter(|_| !quiet) {
            let _ = match result {
                Ok(ran) => {
                    let a = &ran.answer;
                    let flags: String = a.flags.iter().map(|f| format!(" Flag {f}")).collect();
                    let (word, seen, path) = (a.word(), a.observation(), path.display());
                    let why = ran
                        .reason()
                        .filter(|_| !a.complete)
                        .map(|why| format!("  {why}"))
                        .unwrap_or_default();
                    writeln!(
                        out,
                        "{word:<8}Observation {} {seen} {} {}{flags}  ({path}){why}",
                        a.name, a.positive, a.negative
                    )
                }
                Err(TestError { limit: Some(stop), .. }) => {
                    let (name, path) = (stem(path), path.display());
                    let why = limit_text(stop);
                    writeln!(out, "Unknown Observation {name} Unknown 0 0  ({path})  {why}")
                }
                Err(_) => writeln!(out, "Refused ({})", path.display()),
            };
        }
        if !quiet {
            out.push('\n');
        }
        let [ok, no, unknown, refused] = self.counts();
        let _ = writeln!(
            out,
            "model        {}\ntests        {}\nOk           {ok}\nNo           {no}",
            self.model,
            self.results.len()
        );
        let _ = writeln!(out, "Unknown      {unknown}\nrejected     {refused}");
        let observed =
            |word: &str| self.completed_runs().filter(|r| r.answer.observation() == word).count();
        for word in ["Always", "Sometimes", "Never"] {
            let _ = writeln!(out, "{word:<13}{}", observed(word));
        }
        if observed("Unknown") > 0 {
            let _ = writeln!(out, "not observed {}", observed("Unknown"));
        }
        let flagged = self.completed_runs().filter(|r| !r.answer.flags.is_empty()).count();
        if flagged > 0 {
            let _ = writeln!(out, "flagged      {flagged}");
        }
        let effort: u64 = self.completed_runs().map(|r| r.effort).sum();
        let _ = writeln!(out, "{:<13}{effort}\nseconds      {:.3}", self.unit, self.seconds);
        out
    }
    pub(super) fn json(&self) -> Value {
        let one = |(path, result): (&PathBuf, &Result<TestResult, TestError>)| match result {
            Ok(ran) => ran.json(self.unit),
            Err(TestError { limit: Some(stop), .. }) => json!({
                "file": path.display().to_string(),
                "name": stem(path),
                "verdict": "unknown",
                "herd": "Unknown",
                "observation": "Unknown",
                "reason": limit_text(stop),
                "stop": stop.word(),
            }),
            Err(refused) => json!({ "file": path.display().to_string(), "error": refused.error }),
        };
        let tests: Vec<Value> = self.files.iter().zip(self.results).map(one).collect();
        let [ok, no, unknown, refused] = self.counts();
        let mut object = json!({
            "model": self.model,
            "tests": tests,
            "summary": { "tests": self.results.len(), "ok": ok, "no": no, "unknown": unknown, "refused": refused },
            "seconds": self.seconds,
        });
        if let Some(expected) = self.expected {
            object["expected"] = self.comparison_json(expected);
        }
        object
    }
    fn comparison_json(&self, expected: &ExpectedAnswers) -> Value {
        let differing = self.differences(expected);
        let (free, missing) = self.unmatched_names(expected);
        let one = |d: &Difference<'_>| {
            let answer = &d.ran.answer;
            let (found, herd) = (answer.observation(), answer.word());
            json!({ "file": d.file, "name": answer.name, "wanted": d.expected.word(), "observation": found, "herd": herd })
        };
        let compared = self.completed_runs().count() - free.len();
        json!({
            "compared": compared,
            "as_wanted": compared - differing.len(),
            "differs": differing.iter().map(one).collect::<Vec<_>>(),
            "not_compared": free,
            "no_such_test": missing,
        })
    }
    /// Returns the tests as test cases. A failure is an unexpected answer or, without an expected
    /// answer, a condition that does not hold.
    pub(super) fn junit(&self) -> String {
        let case = |(path, result): (&PathBuf, &Result<TestResult, TestError>)| {
            let (name, outcome) = match result {
                Err(TestError { limit: Some(stop), .. }) => {
                    (stem(path), CaseOutcome::Unknown(limit_text(stop)))
                }
                Err(refused) => (
                    path.display().to_string(),
                    CaseOutcome::Error(refused.text.lines().next().unwrap_or_default().to_string()),
                ),
                Ok(ran) => {
                    let answer = &ran.answer;
                    let expected = self
                        .expected
                        .and_then(|w| w.of(&ran.file, &answer.name))
                        .unwrap_or(ExpectedAnswer::Demand(true));
                    let outcome = match expected.compare(answer) {
                        None => CaseOutcome::Unknown(
                            ran.reason().unwrap_or_else(|| "a bound was reached".to_string()),
                        ),
                        Some(true) => CaseOutcome::Passed,
                        Some(false) => CaseOutcome::Failed {
                            message: format!(
                                "expected {}, found {}",
                                expected.word(),
                                answer.observation()
                            ),
                            text: ran.text(),
                        },
                    };
                    (answer.name.clone(), outcome)
                }
            };
            TestCase { class: format!("litmus.{}", self.model), name, seconds: 0.0, outcome }
        };
        let cases: Vec<TestCase> = self.files.iter().zip(self.results).map(case).collect();
        suite(&format!("litmus under {}", self.model), &cases)
    }
}
