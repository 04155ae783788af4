//! Outcomes of litmus tests on a machine, compared with those that a memory model allows (`litmus
//! --machine MODEL --interface FILE`).
//!
//! One search collects all histories up to `--operations`, by default those of the longest test;
//! each test is then a lookup. Exit code: 1 if a test shows a forbidden outcome, 2 if a test cannot
//! be read, 3 if a limit was reached, a test that the command names was not run, or none was run;
//! otherwise 0. Tests that the machine cannot run are listed with the reason.

use super::{ExploredMachine, Read, read};
use crate::args::{LitmusArgs, MAX_MACHINE_OPERATIONS};
use crate::commands::litmus::TestError;
use crate::commands::models::{NamedModel, compile_models};
use crate::output;
use crate::output::answers::{self, Report};
use crate::output::progress::count_text;
use crate::pipeline::{Session, read_source};
use mu_base::{Diagnostic, SourceMap, Stop};
use mu_conform::litmus_outcomes::{Behaviour, NO_PROGRAM, Outcomes, longest_thread, outcomes};
use mu_conform::search::{Bound, search};
use mu_conform::symmetry::SymmetryGroup;
use mu_litmus::{Arch, Judge, LitmusTest};
use mu_program::outcome::question::Observed;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Result of a test.
enum TestResult {
    /// Outcomes on the machine; the search may be incomplete.
    Outcomes(Box<LitmusTest>, Outcomes),
    /// The machine cannot run the test.
    Not(String),
    /// The test cannot be read.
    Refused(Box<TestError>),
    /// Not known yet, or a limit ended the run before its outcomes were known.
    Open(Stop),
}

/// The results so far: the report of the run.
struct MachineReport {
    /// Name of the memory model.
    against: String,
    /// The files that the command names.
    given: Vec<PathBuf>,
    /// The machine.
    path: PathBuf,
    /// The tests.
    files: Vec<PathBuf>,
    operations: u32,
    results: Mutex<MachineResults>,
}

struct MachineResults {
    /// The limit that ended the search of the machine.
    stop: Stop,
    tests: Vec<TestResult>,
}

impl MachineReport {
    fn lock(&self) -> MutexGuard<'_, MachineResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Returns the results after a limit: it is the reason of open tests.
    fn results_after(&self, stop: Option<&Stop>) -> MutexGuard<'_, MachineResults> {
        let mut results = self.lock();
        if let Some(stop) = stop {
            results.stop = stop.clone();
            for test in &mut results.tests {
                if let TestResult::Open(Stop::Complete) = test {
                    *test = TestResult::Open(stop.clone());
                }
            }
        }
        results
    }
}

impl Report for MachineReport {
    fn object(&self, stop: Option<&Stop>) -> Value {
        self.json(&self.results_after(stop))
    }
    fn text(&self, stop: Option<&Stop>) -> String {
        self.table(&self.results_after(stop))
    }
    fn code(&self, stop: Option<&Stop>) -> u8 {
        self.exit_code(&self.results_after(stop))
    }
}

pub(crate) fn run(
    session: &mut Session,
    args: &LitmusArgs,
    (path, interface): (&Path, &Path),
    files: &[PathBuf],
) -> Result<u8, Diagnostic> {
    let against = compile_models(session, std::slice::from_ref(&args.model))?.remove(0);
    let mut judges = Judges { against, made: Vec::new() };
    let operations = args.operations.unwrap_or_else(|| longest(files));
    let open = |_: &PathBuf| TestResult::Open(Stop::Complete);
    let tests = files.iter().map(open).collect();
    let report = Arc::new(MachineReport {
        against: args.model.clone(),
        given: args.files.clone(),
        path: path.to_path_buf(),
        files: files.to_vec(),
        operations,
        results: Mutex::new(MachineResults { stop: Stop::Complete, tests }),
    });
    answers::set(report.clone());
    let (behaviour, stop) = behaviour(session, path, interface, operations)?;
    report.lock().stop = stop.clone();
    for (i, file) in files.iter().enumerate() {
        let result = match judge_test(session, file, &mut judges, &behaviour) {
            Err(Diagnostic { stop: Some(stop), .. }) => TestResult::Open(stop),
            // A limit ended the search of the machine before this program.
            Ok(TestResult::Not(why)) if stop != Stop::Complete && why == NO_PROGRAM => {
                TestResult::Open(stop.clone())
            }
            result => result?,
        };
        report.lock().tests[i] = result;
    }
    let code = answers::finish(session.common.format)?;
    for result in &report.lock().tests {
        if let TestResult::Refused(refused) = result {
            eprint!("{}", refused.text);
        }
    }
    Ok(code)
}

/// Returns the number of operations of the longest thread of the tests that can be read, at most
/// [`MAX_MACHINE_OPERATIONS`].
fn longest(files: &[PathBuf]) -> u32 {
    let length = |path: &PathBuf| {
        let mut sources = SourceMap::new();
        let (source, text) = read_source(path, &mut sources).ok()?;
        let test =
            mu_litmus::parse(source, &text, mu_litmus::file::ParserOptions::default()).ok()?;
        u32::try_from(longest_thread(&test)).ok()
    };
    files.iter().filter_map(length).max().unwrap_or(0).clamp(1, MAX_MACHINE_OPERATIONS)
}

/// Computes all histories of a machine up to a number of operations of each processor, with the
/// stop reason of the search.
pub(crate) fn behaviour(
    session: &mut Session,
    path: &Path,
    interface: &Path,
    operations: u32,
) -> Result<(Behaviour, Stop), Diagnostic> {
    let Read { interface, explored: ExploredMachine { machine, .. } } =
        read(session, path, interface, operations)?;
    let group = SymmetryGroup::find(&machine.alphabet, &machine.lts, session.threads());
    output::begin_stage("searching histories");
    let bound = Bound { collect: usize::MAX, ..Bound::of(operations as usize, session.threads()) };
    let answer = search(&interface, &machine, &group, &[], bound, &session.budget)?;
    let histories = answer.judged_histories.into_iter().collect();
    Ok((Behaviour::new(answer.programs.into_set(), histories), answer.stop))
}

/// The memory model, compiled for each architecture of the tests.
struct Judges {
    against: NamedModel,
    made: Vec<(Arch, Judge)>,
}

impl Judges {
    fn of(&mut self, arch: Arch, sources: &mut SourceMap) -> Result<&Judge, Diagnostic> {
        let at = match self.made.iter().position(|m| m.0 == arch) {
            Some(at) => at,
            None => {
                let against = &self.against;
                let included =
                    |name: &str| NamedModel::included_file(against.folder.as_deref(), name);
                let judge = Judge::compile(sources, arch, &against.name, &against.text, &included)?;
                self.made.push((arch, judge));
                self.made.len() - 1
            }
        };
        Ok(&self.made[at].1)
    }
}

fn judge_test(
    session: &Session,
    path: &Path,
    judges: &mut Judges,
    machine: &Behaviour,
) -> Result<TestResult, Diagnostic> {
    let mut sources = SourceMap::new();
    let read = read_source(path, &mut sources).and_then(|(source, text)| {
        let judge = judges.of(mu_litmus::file::architecture(source, &text)?, &mut sources)?;
        mu_litmus::parse(
            source,
            &text,
            mu_litmus::file::ParserOptions { pairs: judge.pairs, ..Default::default() },
        )
        .map(|test| (test, judge))
    });
    let (test, judge) = match read {
        Ok(both) => both,
        Err(d) => return Ok(TestResult::Refused(Box::new(TestError::new(&d, &sources)))),
    };
    Ok(match outcomes(test, judge, machine, &session.budget)? {
        Ok((test, outcomes)) => TestResult::Outcomes(Box::new(test), outcomes),
        Err(why) => TestResult::Not(why),
    })
}

/// Formats outcomes like the herd tools, with normalised spelling.
fn lines<'o>(test: &LitmusTest, outcomes: impl Iterator<Item = &'o Vec<u64>>) -> Vec<String> {
    let observed = &test.question.observed;
    let one = |o: &Vec<u64>| {
        observed
            .iter()
            .zip(o)
            .map(|(seen, &v)| format!("{}={};", seen.text, Observed::text(seen, v, &test.layout)))
            .collect::<Vec<_>>()
    };
    outcomes.map(|o| one(o).join(" ")).collect()
}

impl MachineReport {
    fn exit_code(&self, MachineResults { stop, tests: results }: &MachineResults) -> u8 {
        let limited = |s: &TestResult| match s {
            TestResult::Outcomes(_, o) => o.stop != Some(Stop::Complete),
            TestResult::Open(_) => true,
            TestResult::Not(_) | TestResult::Refused(_) => false,
        };
        let code = |s: &TestResult| match s {
            TestResult::Refused(refused) => Some(refused.code),
            _ => None,
        };
        let refused = results.iter().filter_map(code).max();
        let broken = results.iter().any(|s| matches!(s, TestResult::Outcomes(_, o) if !limited(s) && o.shown.difference(&o.allowed).next().is_some()));
        // A folder may contain tests for other machines; a test that the command names was meant.
        let not_run = |s: &TestResult| matches!(s, TestResult::Not(_));
        let mut named =
            self.files.iter().zip(results).filter(|(file, _)| self.given.contains(file));
        let left_out = results.iter().all(not_run) || named.any(|(_, s)| not_run(s));
        let decided = *stop == Stop::Complete && !left_out && !results.iter().any(limited);
        refused.unwrap_or(match (broken, decided) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => 3,
        })
    }
    fn table(&self, MachineResults { stop, tests: results }: &MachineResults) -> String {
        let Self { against, operations, files, .. } = self;
        let mut out = String::new();
        let (mut counts, mut open) = ([0usize; 4], 0);
        for (path, results) in files.iter().zip(results) {
            match results {
                TestResult::Open(stop) => {
                    open += 1;
                    let _ =
                        writeln!(out, "?  {}: unknown: stopped: {}", path.display(), stop.word());
                }
                TestResult::Refused(..) => counts[3] += 1,
                TestResult::Not(why) => {
                    counts[2] += 1;
                    let _ = writeln!(out, "-  {}: {why}", path.display());
                }
                TestResult::Outcomes(test, o) => {
                    let (broken, never) = (
                        lines(test, o.shown.difference(&o.allowed)),
                        lines(test, o.allowed.difference(&o.shown)),
                    );
                    counts[usize::from(broken.is_empty())] += 1;
                    let mark = if broken.is_empty() { "✔" } else { "✘" };
                    let _ = writeln!(
                        out,
                        "{mark}  {}: shows {} of {} outcomes",
                        test.name,
                        o.shown.intersection(&o.allowed).count(),
                        o.allowed.len()
                    );
                    broken.iter().for_each(|l| out += &format!("     forbidden, shown: {l}\n"));
                    never.iter().for_each(|l| out += &format!("     allowed, not shown: {l}\n"));
                    lines(test, o.not_compared.iter()).iter().for_each(|l| {
                        out += &format!(
                            "     allowed if an atomic instruction fails, not compared: {l}\n"
                        )
                    });
                }
            }
        }
        let [broken, fine, not, refused] = counts;
        let _ = writeln!(
            out,
            "\nmodel        {}\nbound        {} per processor",
            against,
            count_text(u64::from(*operations), "operation")
        );
        let _ = writeln!(
            out,
            "as allowed   {fine}\nforbidden    {broken}\nnot run      {not}\nrejected     {refused}"
        );
        if open > 0 {
            let _ = writeln!(out, "unknown      {open}");
        }
        if *stop != Stop::Complete {
            let _ = writeln!(out, "stopped      {}: the machine may show more", stop.word());
        }
        out
    }

    fn json(&self, MachineResults { stop, tests: results }: &MachineResults) -> Value {
        let Self { against, operations, path, files, .. } = self;
        let tests = files.iter().zip(results).map(|(file, results)| {
            let file = file.display().to_string();
            match results {
                TestResult::Refused(refused) => json!({ "file": file, "error": refused.error }),
                TestResult::Not(why) => json!({ "file": file, "not_asked": why }),
                TestResult::Open(stop) => {
                    json!({ "file": file, "verdict": "unknown", "stop": stop.word() })
                }
                TestResult::Outcomes(test, o) => json!({
                    "file": file,
                    "name": test.name,
                    "shown": lines(test, o.shown.iter()),
                    "allowed": lines(test, o.allowed.iter()),
                    "forbidden_but_shown": lines(test, o.shown.difference(&o.allowed)),
                    "allowed_not_shown": lines(test, o.allowed.difference(&o.shown)),
                    "not_compared": lines(test, o.not_compared.iter()),
                    "stop": o.stop.as_ref().map(|s| s.word()),
                }),
            }
        });
        json!({
            "machine": path.display().to_string(),
            "against": against,
            "operations": operations,
            "tests": tests.collect::<Vec<_>>(),
            "stop": stop.word(),
        })
    }
}
