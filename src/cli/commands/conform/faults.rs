//! Seeded faults of a machine (`conform --fault FILE… [--suite DIR]`): the number of operations
//! that finds each fault, and a minimum set of litmus tests that finds all of them.
//!
//! Each fault is a separate machine: the text of the correct machine with the edits of a `.faults`
//! file, or another model. It is searched with one operation per processor, then with two, up to
//! `--operations`, until a model that the correct machine conforms to forbids an execution. If a
//! fault sets parameters, the correct machine is searched with the same ones, so that a difference
//! caused by the parameter is not blamed on the fault. Violations are confirmed as for the machine
//! itself. The tests of a suite come from `mu_conform::suite`; the layer `litmus` runs each of them
//! again.

use super::{
    ConfirmedViolation, ExploredMachine, ModelSource, confirm_violation, explore_machine, judge,
    language_of, monitored, symmetries,
};
use crate::args::ConformArgs;
use crate::commands::explore::find_path;
use crate::output;
use crate::output::progress::count_text;
use crate::pipeline::files::write_text;
use crate::pipeline::load::Origin;
use crate::pipeline::{Session, file_error};
use mu_axioms::history::History;
use mu_base::{Diagnostic, Stage, Stop, ends_in, file_extension};
use mu_conform::faults::MachineFault;
use mu_conform::interface::Interface;
use mu_conform::judge::MemoryModel;
use mu_conform::machine::ReducedMachine;
use mu_conform::search::{Bound, search};
use mu_conform::suite::{Cover, Executions, detecting_programs, executions, outcomes};
use mu_conform::symmetry::SymmetryGroup;
use mu_conform::write::self_checking;
use mu_frontends::{Input, machines};
use mu_litmus::paths::PathBounds;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A faulty machine.
pub(super) struct FaultyMachine {
    name: String,
    defines: Vec<(String, String)>,
    model: FaultyModel,
}

enum FaultyModel {
    /// The text after edits.
    Edited(String),
    /// A separate model.
    Beside(PathBuf),
}

/// The result of a fault that is found.
pub(super) struct Finding {
    /// The smallest number of operations per processor.
    pub operations: usize,
    /// Names of the models that forbid an execution of this size; the test is for the first one.
    pub models: Vec<String>,
    /// The test and the run.
    pub shown: ConfirmedViolation,
}

/// Result for a fault.
pub(super) struct FaultResult {
    /// Its name.
    pub name: String,
    /// `None` if the fault is not found within the bound.
    pub found: Option<Finding>,
    /// States of the faulty machine.
    pub states: u64,
    /// Reason for the end of the search.
    pub stop: Stop,
    /// True if the search has not begun.
    pub pending: bool,
}

/// A test of a suite.
pub(super) struct SuiteTest {
    /// Name of the test and its file.
    pub name: String,
    /// The program.
    pub program: History,
    /// Indices of the faults that it finds, each with an execution that shows the fault.
    pub detecting_programs: Vec<(usize, History)>,
    /// Number of outcomes that the model allows.
    pub allowed: usize,
    text: String,
}

/// A suite of litmus tests.
pub(super) struct Suite {
    /// The tests.
    pub tests: Vec<SuiteTest>,
    /// Maximum number of operations per processor in a candidate.
    pub longest: usize,
    /// Number of programs that find a fault.
    pub candidates: usize,
    /// True if no smaller set of candidates finds all the faults.
    pub is_least: bool,
}

/// Results for all faults.
pub(super) struct Faults {
    /// The faults, in order.
    pub faults: Vec<FaultResult>,
    /// The suite, if the user requested one and no limit was reached.
    pub suite: Option<Suite>,
    /// The limit that ended the choice of a suite.
    suite_stop: Stop,
    /// Maximum number of operations of each processor in histories.
    bound: u32,
}

/// Reads the faulty machines of `--fault`.
pub(super) fn read(
    session: &mut Session,
    args: &ConformArgs,
) -> Result<Vec<FaultyMachine>, Diagnostic> {
    let mut out: Vec<FaultyMachine> = Vec::new();
    for path in &args.fault {
        if ends_in(path, "faults") {
            let built_in = machines::faults(path).filter(|_| !mu_base::host::is_file(path));
            let (source, text) = match built_in {
                Some(text) => (session.sources.add(path.display().to_string(), text), text.into()),
                None => session.read_source(path)?,
            };
            let front_end = Origin::File(&args.model).front_end();
            let Some(correct) = front_end.text(&Input::file(&args.model))? else {
                let message = format!(
                    "the edits of `{}` need a model with a text, but `{}` is {}",
                    path.display(),
                    args.model.display(),
                    front_end.language()
                );
                return Err(Diagnostic::new(Stage::Usage, message)
                    .note("expected faulty machines as files, or a folder of them"));
            };
            for fault in MachineFault::parse(source, &text)? {
                let text = fault.apply(&correct)?;
                out.push(FaultyMachine {
                    name: fault.name,
                    defines: fault.defines,
                    model: FaultyModel::Edited(text),
                });
            }
            continue;
        }
        let mut files = vec![path.clone()];
        if mu_base::host::is_dir(path) {
            let entries =
                mu_base::host::read_dir(path).map_err(|e| file_error("cannot read", path, &e))?;
            let wanted = file_extension(&args.model);
            files = entries
                .flatten()
                .map(|e| e.path())
                .filter(|p| mu_base::host::is_file(p) && file_extension(p) == wanted)
                .collect();
            files.sort();
            if files.is_empty() {
                let ending = wanted.map(|e| format!(" that ends in .{e}")).unwrap_or_default();
                return Err(Diagnostic::new(
                    Stage::File,
                    format!("`{}` contains no model{ending}", path.display()),
                ));
            }
        }
        out.extend(files.into_iter().map(|p| FaultyMachine {
            name: find_path::stem(&p),
            defines: Vec::new(),
            model: FaultyModel::Beside(p),
        }));
    }
    Ok(out)
}

/// Common input of all searches.
pub(super) struct FaultSearch<'a> {
    pub args: &'a ConformArgs,
    pub interface: &'a Interface,
    /// The memory models, with the texts of those made of axioms.
    pub models: &'a [MemoryModel],
    pub texts: &'a [Option<ModelSource>],
    /// The correct machine.
    pub correct: (&'a ReducedMachine, &'a SymmetryGroup),
    /// The models that it conforms to.
    pub conforming: &'a [usize],
    /// Maximum number of operations of each processor in histories.
    pub bound: u32,
    /// True if faults that need more operations are searched with the monitors.
    pub monitored: bool,
}

/// The correct machine with other parameters, and the models that it conforms to, by number of
/// operations.
struct Control {
    defines: Vec<(String, String)>,
    machine: ReducedMachine,
    group: SymmetryGroup,
    conforming: Vec<Vec<usize>>,
}

/// Parameters with their values.
type Defines = Vec<(String, String)>;

/// A detected fault with its machine: its index, and the parameters of the fault.
type DetectedFault<'f> = ((usize, &'f Defines), ReducedMachine, SymmetryGroup);

impl FaultSearch<'_> {
    /// Runs a closure with additional parameters.
    fn with<T>(
        session: &mut Session,
        defines: &[(String, String)],
        run: impl FnOnce(&mut Session) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let before = session.common.define.clone();
        let given = |d: &String| {
            d.split_once('=').is_some_and(|(n, _)| defines.iter().any(|(name, _)| name == n.trim()))
        };
        session.common.define.retain(|d| !given(d));
        session.common.define.extend(defines.iter().map(|(n, v)| format!("{n}={v}")));
        let result = run(session);
        session.common.define = before;
        result
    }
    /// Returns the models that the correct machine conforms to with these parameters, up to a
    /// number of operations.
    fn conforming_models(
        &self,
        session: &mut Session,
        defines: &[(String, String)],
        operations: usize,
        controls: &mut Vec<Control>,
    ) -> Result<Vec<usize>, Diagnostic> {
        if defines.is_empty() {
            return Ok(self.conforming.to_vec());
        }
        let known = controls.iter().position(|c| c.defines == defines);
        let at = known.unwrap_or(controls.len());
        if known.is_none() {
            let model = Origin::File(&self.args.model);
            let ExploredMachine { machine, .. } = Self::with(session, defines, |s| {
                explore_machine(s, self.interface, &model, self.bound)
            })?;
            let group = symmetries(session, self.args, &machine);
            controls.push(Control {
                defines: defines.to_vec(),
                machine,
                group,
                conforming: vec![self.conforming.to_vec()],
            });
        }
        let control = &mut controls[at];
        for k in control.conforming.len()..=operations {
            let before = control.conforming[k - 1].clone();
            let selected: Vec<&MemoryModel> = before.iter().map(|&m| &self.models[m]).collect();
            let bound = Bound::of(k, session.threads());
            let answer = search(
                self.interface,
                &control.machine,
                &control.group,
                &selected,
                bound,
                &session.budget,
            )?;
            if answer.stop != Stop::Complete {
                return Err(Diagnostic::stopped(answer.stop));
            }
            let conforming_models: Vec<usize> = before
                .iter()
                .zip(&answer.found)
                .filter(|(_, f)| f.is_none())
                .map(|(&m, _)| m)
                .collect();
            if conforming_models.is_empty() {
                let set: Vec<String> = defines.iter().map(|(n, v)| format!("{n}={v}")).collect();
                let message = format!(
                    "with {} the machine without the fault does not conform either",
                    set.join(", ")
                );
                return Err(Diagnostic::new(Stage::Usage, message)
                    .note("a fault is detected by a model that the correct machine conforms to"));
            }
            control.conforming.push(conforming_models);
        }
        Ok(control.conforming[operations].clone())
    }
    /// Searches a faulty machine.
    fn search_fault(
        &self,
        session: &mut Session,
        fault: &FaultyMachine,
        controls: &mut Vec<Control>,
    ) -> Result<(FaultResult, ReducedMachine, SymmetryGroup), Diagnostic> {
        let origin = match &fault.model {
            FaultyModel::Edited(text) => Origin::Text(
                format!("{} with the fault \"{}\"", self.args.model.display(), fault.name),
                text,
                Origin::File(&self.args.model).front_end(),
            ),
            FaultyModel::Beside(path) => Origin::File(path),
        };
        session.log(format!("fault: {}", fault.name));
        let explored = |s: &mut Session| explore_machine(s, self.interface, &origin, self.bound);
        let ExploredMachine { model, machine, .. } = Self::with(session, &fault.defines, explored)?;
        let group = symmetries(session, self.args, &machine);
        for m in self.conforming {
            self.models[*m].check(self.interface, &machine.alphabet)?;
        }
        let mut result = FaultResult {
            name: fault.name.clone(),
            found: None,
            states: machine.outcome.states,
            stop: Stop::Complete,
            pending: false,
        };
        for k in 1..=self.bound as usize {
            let conforming = self.conforming_models(session, &fault.defines, k, controls)?;
            let selected: Vec<&MemoryModel> = conforming.iter().map(|&m| &self.models[m]).collect();
            let bound = Bound { first: true, ..Bound::of(k, session.threads()) };
            let answer =
                search(self.interface, &machine, &group, &selected, bound, &session.budget)?;
            result.stop = answer.stop.clone();
            let found: Vec<usize> =
                (0..conforming.len()).filter(|&i| answer.found[i].is_some()).collect();
            if let Some(&first) = found.first() {
                let m = conforming[first];
                let against = (&self.models[m], self.texts[m].as_ref());
                let Some(history) = &answer.found[first] else { continue };
                let shown = confirm_violation(
                    session,
                    self.interface,
                    &*model,
                    &machine.alphabet,
                    against,
                    history,
                )?;
                let models =
                    found.iter().map(|&i| self.models[conforming[i]].name.clone()).collect();
                result.found = Some(Finding { operations: k, models, shown });
                return Ok((result, machine, group));
            }
            if answer.stop != Stop::Complete {
                break;
            }
        }
        if self.monitored && result.stop == Stop::Complete {
            let conforming =
                self.conforming_models(session, &fault.defines, self.bound as usize, controls)?;
            let models = (self.models, self.texts);
            result.found = Self::with(session, &fault.defines, |s| {
                monitored::find(s, self.interface, &origin, models, &conforming)
            })?;
        }
        Ok((result, machine, group))
    }
    /// Searches all faulty machines, and builds a suite if the user requested one. `register`
    /// receives the results so far after each machine.
    pub(super) fn run(
        &self,
        session: &mut Session,
        faults: &[FaultyMachine],
        register: &mut dyn FnMut(&Session, &Faults),
    ) -> Result<Faults, Diagnostic> {
        output::begin_stage("searching faulty machines");
        let pending = |fault: &FaultyMachine| FaultResult {
            name: fault.name.clone(),
            found: None,
            states: 0,
            stop: Stop::Interrupted,
            pending: true,
        };
        let mut out = Faults {
            faults: faults.iter().map(pending).collect(),
            suite: None,
            suite_stop: Stop::Complete,
            bound: self.bound,
        };
        register(session, &out);
        let mut machines = Vec::new();
        let mut controls = Vec::new();
        for (i, fault) in faults.iter().enumerate() {
            // Reading the rest after a limit would take longer than the time until the run ends.
            let limit = session.budget.check(0).and_then(|()| session.budget.check_memory());
            let result = match limit {
                Ok(()) => self.search_fault(session, fault, &mut controls),
                Err(stop) => Err(Diagnostic::stopped(stop)),
            };
            match result {
                Ok((result, machine, group)) => {
                    if self.args.suite.is_some() && result.found.is_some() {
                        machines.push(((i, &fault.defines), machine, group));
                    }
                    out.faults[i] = result;
                }
                Err(Diagnostic { stop: Some(stop), .. }) => {
                    out.faults[i] = FaultResult { stop, pending: false, ..pending(fault) };
                }
                Err(e) => return Err(e),
            }
            register(session, &out);
        }
        if let (Some(folder), true) =
            (&self.args.suite, out.faults.iter().all(|f| f.stop == Stop::Complete))
        {
            let longest = out
                .faults
                .iter()
                .filter_map(|f| f.found.as_ref())
                .map(|f| f.operations)
                .max()
                .unwrap_or(0);
            match self.suite(session, &machines, &controls, longest) {
                Ok(suite) => {
                    self.write(folder, &out.faults, &suite)?;
                    out.suite = Some(suite);
                }
                // The faults are known; the suite is left out.
                Err(Diagnostic { stop: Some(stop), .. }) => out.suite_stop = stop,
                Err(error) => return Err(error),
            }
        }
        Ok(out)
    }
    /// Chooses a minimum set of programs with at most `longest` operations per processor.
    fn suite(
        &self,
        session: &Session,
        machines: &[DetectedFault<'_>],
        controls: &[Control],
        longest: usize,
    ) -> Result<Suite, Diagnostic> {
        output::begin_stage("choosing tests");
        let (against, text) = (&self.models[0], self.texts[0].as_ref());
        let all = |machine: (&ReducedMachine, &SymmetryGroup)| {
            executions(self.interface, machine, (longest, session.threads()), &session.budget)
        };
        let mut correct: Vec<(&Defines, Executions)> = Vec::new();
        let mut found: Vec<(usize, BTreeMap<History, History>)> = Vec::new();
        for ((fault, defines), machine, group) in machines {
            let known = correct.iter().position(|r| r.0 == *defines);
            let at = known.unwrap_or(correct.len());
            if known.is_none() {
                let control = controls
                    .iter()
                    .find(|c| c.defines == **defines)
                    .map(|c| (&c.machine, &c.group));
                correct.push((defines, all(control.unwrap_or(self.correct))?));
            }
            found.push((
                *fault,
                detecting_programs(
                    all((machine, group))?,
                    &correct[at].1,
                    against,
                    &session.budget,
                )?,
            ));
        }
        let mut programs: Vec<&History> = found.iter().flat_map(|f| f.1.keys()).collect();
        programs.sort_unstable();
        programs.dedup();
        let covers = |p: &&History| {
            let by: Vec<usize> =
                (0..found.len()).filter(|&i| found[i].1.contains_key(*p)).collect();
            (by, p.len())
        };
        let candidates: Vec<_> = programs.iter().map(covers).collect();
        let cover = Cover::least(found.len(), &candidates);
        let mut worker = against.worker();
        let mut tests = Vec::new();
        for (number, &at) in cover.taken.iter().enumerate() {
            let program = programs[at];
            let allowed = outcomes(program, &mut worker)?;
            let name = format!("{}-{:02}", against.name, number + 1);
            let litmus = self.suite_test(session, (against, text), (program, &allowed), &name)?;
            let detecting_programs = found
                .iter()
                .filter_map(|(fault, by)| by.get(program).map(|h| (*fault, h.clone())))
                .collect();
            tests.push(SuiteTest {
                name,
                program: program.clone(),
                detecting_programs,
                allowed: allowed.len(),
                text: litmus,
            });
        }
        Ok(Suite { tests, longest, candidates: programs.len(), is_least: cover.is_least })
    }
    /// Writes a self-checking test, in the first language in which the litmus layer judges it.
    fn suite_test(
        &self,
        session: &Session,
        (against, text): (&MemoryModel, Option<&ModelSource>),
        (program, allowed): (&History, &[Vec<u64>]),
        name: &str,
    ) -> Result<String, Diagnostic> {
        let mut first: Option<String> = None;
        let mut reason = String::new();
        for &language in language_of(against, program) {
            let litmus = match self_checking(program, allowed, name, language) {
                Ok(litmus) => litmus,
                Err(why) => {
                    reason = why;
                    continue;
                }
            };
            if let Some(text) = text {
                match confirm(session, against, text, &litmus)? {
                    Ok(()) => return Ok(litmus),
                    Err(why) => reason = why,
                }
            }
            first.get_or_insert(litmus);
        }
        first.ok_or_else(|| {
            let message =
                format!("the program `{}` has no litmus test: {reason}", program.program_text());
            Diagnostic::new(Stage::Unsupported, message)
        })
    }
    fn write(
        &self,
        folder: &Path,
        faults: &[FaultResult],
        suite: &Suite,
    ) -> Result<(), Diagnostic> {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        for test in &suite.tests {
            write_text(&folder.join(format!("{}.litmus", test.name)), &test.text)?;
        }
        let mut out = format!(
            "{TITLE}{} under `{}`\n\n",
            find_path::file_name(&self.args.model),
            self.models[0].name
        );
        out += "Each test lists the outcomes that the model allows: on a correct machine the condition holds in every run (`Ok`). Every other outcome is a fault.\n\n";
        out += &suite.table(faults);
        out += "\n| fault | K | found by | execution that shows it |\n|---|---|---|---|\n";
        for (i, fault) in faults.iter().enumerate() {
            let by: Vec<(&str, &History)> = suite
                .tests
                .iter()
                .filter_map(|t| {
                    t.detecting_programs.iter().find(|f| f.0 == i).map(|f| (t.name.as_str(), &f.1))
                })
                .collect();
            let k = fault.found.as_ref().map_or("–".to_string(), |f| f.operations.to_string());
            let names: Vec<&str> = by.iter().map(|b| b.0).collect();
            let first =
                by.first().map_or("not found within the bound".to_string(), |b| cell(&b.1.text()));
            let _ = writeln!(
                out,
                "| {} | {k} | {} | {first} |",
                fault.name.replace('|', "\\|"),
                names.join(", ")
            );
        }
        out += "\nK: the smallest number of operations per processor that finds the fault.\n";
        write_text(&folder.join("README.md"), &out)
    }
}

/// First words of the table of a suite.
const TITLE: &str = "# Litmus tests for ";

/// Rejects a folder for a suite that has a `README.md` of another origin, before any work is done.
pub(super) fn expect_own_readme(folder: &Path) -> Result<(), Diagnostic> {
    let path = folder.join("README.md");
    match mu_base::host::fs::read(&path) {
        Ok(text) if !text.starts_with(TITLE.as_bytes()) => {
            let text = format!(
                "`--suite {}`: `{}` is not the table of a suite, and would be overwritten",
                folder.display(),
                path.display()
            );
            Err(Diagnostic::new(Stage::File, text).note("name another folder, or rename the file"))
        }
        _ => Ok(()),
    }
}

/// Formats a history as a cell of a table.
fn cell(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

impl Suite {
    /// Returns the tests as a Markdown table.
    pub(super) fn table(&self, faults: &[FaultResult]) -> String {
        let mut out =
            "| test | program | outcomes allowed | finds |\n|---|---|---|---|\n".to_string();
        for t in &self.tests {
            let names: Vec<String> =
                t.detecting_programs.iter().map(|f| faults[f.0].name.replace('|', "\\|")).collect();
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                t.name,
                cell(&t.program.program_text()),
                t.allowed,
                names.join(", ")
            );
        }
        out
    }
}

impl Faults {
    /// True if all faults were found.
    pub(super) fn all_found(&self) -> bool {
        self.faults.iter().all(|f| f.found.is_some())
    }
    /// True if a limit ended some search.
    pub(super) fn is_limited(&self) -> bool {
        self.suite_stop != Stop::Complete
            || self.faults.iter().any(|f| f.found.is_none() && f.stop != Stop::Complete)
    }
    /// Returns Markdown tables for people.
    pub(super) fn text(&self, args: &ConformArgs, conforming: usize) -> String {
        let found = self.faults.iter().filter(|f| f.found.is_some()).count();
        let mut out = format!("\nfaults       {found} of {} found\n\n", self.faults.len());
        out += "| fault | K | states | forbidden by | smallest test |\n|---|---|---|---|---|\n";
        for f in &self.faults {
            let name = f.name.replace('|', "\\|");
            let _ = match &f.found {
                Some(found) => {
                    let models = if found.models.len() == conforming && conforming > 1 {
                        "all".into()
                    } else {
                        found.models.join(", ")
                    };
                    let test = cell(&found.shown.found.history.text());
                    writeln!(
                        out,
                        "| {name} | {} | {} | {models} | {test} |",
                        found.operations, f.states
                    )
                }
                None if f.pending => writeln!(out, "| {name} | ? | | | unknown: not searched |"),
                None if f.stop != Stop::Complete => {
                    writeln!(out, "| {name} | ? | {} | | unknown: {} |", f.states, f.stop.word())
                }
                None => writeln!(
                    out,
                    "| {name} | – | {} | | not found up to {} operations |",
                    f.states, self.bound
                ),
            };
        }
        if let (Some(suite), Some(folder)) = (&self.suite, &args.suite) {
            let least = if suite.is_least { "minimum" } else { "possibly not minimum" };
            let _ = writeln!(
                out,
                "\nsuite        {} in {} ({least}), chosen from {} programs of up to {} operations per processor that find a fault\n",
                count_text(suite.tests.len() as u64, "test"),
                folder.display(),
                suite.candidates,
                suite.longest
            );
            out += &suite.table(&self.faults);
        }
        if self.suite_stop != Stop::Complete {
            let _ = writeln!(out, "\nsuite        none: stopped: {}", self.suite_stop.word());
        }
        out
    }
    /// Returns the faults and the suite as objects.
    pub(super) fn json(&self) -> (serde_json::Value, Option<serde_json::Value>) {
        use serde_json::json;
        let faults = self.faults.iter().map(|f| {
            let mut object = json!({ "name": f.name, "states": f.states, "stop": f.stop.word() });
            if let Some(found) = &f.found {
                object["operations"] = json!(found.operations);
                object["models"] = json!(found.models);
                object["test"] = json!(found.shown.found.history.text());
                object["names"] = super::results::names_json(&found.shown.meaning);
                object["axiom"] = json!(found.shown.reason.axiom);
                object["confirmed"] =
                    json!({ "litmus": found.shown.litmus_confirmation.is_ok(), "replay": true });
            }
            object
        });
        let faults = json!(faults.collect::<Vec<_>>());
        let suite = self.suite.as_ref().map(|s| {
            let tests = s.tests.iter().map(|t| {
                let detecting_programs = t.detecting_programs.iter().map(|(i, h)| json!({ "fault": self.faults[*i].name, "execution": h.text() }));
                json!({
                    "name": t.name,
                    "program": t.program.program_text(),
                    "allowed": t.allowed,
                    "finds": detecting_programs.collect::<Vec<_>>(),
                    "litmus": t.text,
                })
            });
            json!({ "tests": tests.collect::<Vec<_>>(), "candidates": s.candidates, "operations": s.longest, "least": s.is_least })
        });
        (faults, suite)
    }
}

/// Runs a test in the litmus layer: the test must list all outcomes that the model allows. The
/// inner error: the reason why the layer rejects it.
fn confirm(
    session: &Session,
    against: &MemoryModel,
    text: &ModelSource,
    litmus: &str,
) -> Result<Result<(), String>, Diagnostic> {
    let (judge, test) = match judge(against, text, litmus) {
        Ok(both) => both,
        Err(d) => return Ok(Err(d.to_string())),
    };
    let report = mu_litmus::run(test, &judge, PathBounds { loops: 1 }, &session.budget)?;
    match report.answer.verdict {
        mu_program::outcome::Verdict::Ok => Ok(Ok(())),
        mu_program::outcome::Verdict::Unknown => Err(Diagnostic::stopped(report.stop)),
        mu_program::outcome::Verdict::No => Err(Diagnostic::internal(format!(
            "`{}` forbids a history but allows its litmus test: {litmus}",
            against.name
        ))),
    }
}
