//! `conform --fault FILE… [--suite DIR]`: with how many operations seeded faults of a machine are
//! found, and fewest litmus tests that find all of them.
//!
//! Each fault is a machine of its own: the text of the right one with the edits of a `.faults`
//! file, or a model beside it. It is searched with one operation of each processor, then with
//! two, and so on up to `--operations`, until one of the models to which the right machine conforms
//! forbids something. If a fault sets parameters, the right machine is asked with the same ones, so
//! that what they change is not taken for the fault. What is found is confirmed as for the machine
//! itself. The tests of a suite come from `mu_conform::suite`; the route of `litmus` runs each of
//! them again.

use super::super::args::ConformArgs;
use super::super::files::{FileKind, write_text};
use super::super::load::Origin;
use super::super::pipeline::{Session, file_error};
use super::super::{find_path, output};
use super::{Explored, Shown, Text, explored, judge, language_of, show, symmetries};
use mu_axioms::history::History;
use mu_base::{Diagnostic, Stage, Stop, ending, ends_in};
use mu_conform::faults::Fault;
use mu_conform::interface::Interface;
use mu_conform::judge::MemoryModel;
use mu_conform::machine::Machine;
use mu_conform::search::{Bound, search};
use mu_conform::suite::{Cover, Executions, detecting_programs, executions, outcomes};
use mu_conform::symmetry::Group;
use mu_conform::write::self_checking;
use mu_litmus::paths::Bounds;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A faulty machine.
pub(super) struct Faulty {
    name: String,
    defines: Vec<(String, String)>,
    made: Made,
}

enum Made {
    /// By edits: its text.
    Edited(String),
    /// A model of its own.
    Beside(PathBuf),
}

/// How a fault is found.
pub(super) struct Finding {
    /// The least number of operations of each processor.
    pub operations: usize,
    /// The models that forbid an execution of this size, by name; the first one's test is shown.
    pub models: Vec<String>,
    /// The test, the run.
    pub shown: Shown,
}

/// What is said of a fault.
pub(super) struct Told {
    /// Its name.
    pub name: String,
    /// How it is found; none if it is not, within the bound.
    pub found: Option<Finding>,
    /// States of the faulty machine.
    pub states: u64,
    /// Why its search ended.
    pub stop: Stop,
}

/// A test of a suite.
pub(super) struct Test {
    /// Its name; the file has it too.
    pub name: String,
    /// What is run.
    pub program: History,
    /// The faults that it finds, by their place in the list, each with an execution that shows it.
    pub detecting_programs: Vec<(usize, History)>,
    /// How many outcomes the model allows.
    pub allowed: usize,
    text: String,
}

/// A suite.
pub(super) struct Suite {
    /// Its tests.
    pub tests: Vec<Test>,
    /// Most operations of each processor in a candidate.
    pub longest: usize,
    /// How many programs find a fault.
    pub candidates: usize,
    /// Whether no smaller set of the candidates finds all the faults.
    pub is_least: bool,
}

/// All that there is to say.
pub(super) struct Faults {
    /// The faults, in order.
    pub faults: Vec<Told>,
    /// The suite, if it is asked for and no limit came first.
    pub suite: Option<Suite>,
}

/// Reads the faulty machines of `--fault`.
pub(super) fn read(session: &mut Session, args: &ConformArgs) -> Result<Vec<Faulty>, Diagnostic> {
    let mut out: Vec<Faulty> = Vec::new();
    for path in &args.fault {
        if ends_in(path, "faults") {
            if FileKind::of(&args.model) != FileKind::Other {
                let message = format!(
                    "the edits of `{}` are for a specification, which `{}` is not",
                    path.display(),
                    args.model.display()
                );
                return Err(Diagnostic::new(Stage::Usage, message)
                    .note("expected faulty machines as files, or a folder of them"));
            }
            let (source, text) = session.read_source(path)?;
            let right = session.read(&args.model)?;
            for fault in Fault::parse(source, &text)? {
                let text = fault.apply(&right)?;
                out.push(Faulty {
                    name: fault.name,
                    defines: fault.defines,
                    made: Made::Edited(text),
                });
            }
            continue;
        }
        let mut files = vec![path.clone()];
        if mu_base::host::is_dir(path) {
            let entries =
                mu_base::host::read_dir(path).map_err(|e| file_error("cannot read", path, &e))?;
            let wanted = ending(&args.model);
            files = entries
                .flatten()
                .map(|e| e.path())
                .filter(|p| mu_base::host::is_file(p) && ending(p) == wanted)
                .collect();
            files.sort();
            if files.is_empty() {
                let ending = wanted.map(|e| format!(" that ends in .{e}")).unwrap_or_default();
                return Err(Diagnostic::new(
                    Stage::File,
                    format!("`{}` holds no model{ending}", path.display()),
                ));
            }
        }
        out.extend(files.into_iter().map(|p| Faulty {
            name: find_path::stem(&p),
            defines: Vec::new(),
            made: Made::Beside(p),
        }));
    }
    Ok(out)
}

/// What all searches share.
pub(super) struct Asked<'a> {
    pub args: &'a ConformArgs,
    pub interface: &'a Interface,
    /// The memory models, with the texts of those made of axioms.
    pub models: &'a [MemoryModel],
    pub texts: &'a [Option<Text>],
    /// The right machine.
    pub right: (&'a Machine, &'a Group),
    /// The models to which it conforms.
    pub conforming: &'a [usize],
}

/// The right machine with other parameters, and the models to which it conforms, by the number of
/// operations for which they were asked.
struct Control {
    defines: Vec<(String, String)>,
    machine: Machine,
    group: Group,
    conforming: Vec<Vec<usize>>,
}

/// Parameters with their values.
type Defines = Vec<(String, String)>;

/// A faulty machine that is found: its place in the list, with the parameters that the fault needs.
type Found<'f> = ((usize, &'f Defines), Machine, Group);

impl Asked<'_> {
    /// Runs something with more parameters.
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
    /// The models to which the right machine conforms with these parameters, up to so many
    /// operations.
    fn conforming(
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
            let Explored { machine, .. } = Self::with(session, defines, |s| {
                explored(s, self.interface, &model, self.args.operations)
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
            let asked: Vec<&MemoryModel> = before.iter().map(|&m| &self.models[m]).collect();
            let bound = Bound::of(k, session.threads());
            let answer = search(
                self.interface,
                &control.machine,
                &control.group,
                &asked,
                bound,
                &session.budget,
            )?;
            if answer.stop != Stop::Complete {
                return Err(Diagnostic::stopped(answer.stop));
            }
            let kept: Vec<usize> = before
                .iter()
                .zip(&answer.found)
                .filter(|(_, f)| f.is_none())
                .map(|(&m, _)| m)
                .collect();
            if kept.is_empty() {
                let set: Vec<String> = defines.iter().map(|(n, v)| format!("{n}={v}")).collect();
                let message = format!(
                    "with {} the machine without a fault does not conform either",
                    set.join(", ")
                );
                return Err(Diagnostic::new(Stage::Usage, message)
                    .note("a fault is told by a model to which the right machine conforms"));
            }
            control.conforming.push(kept);
        }
        Ok(control.conforming[operations].clone())
    }
    /// Searches a faulty machine.
    fn one(
        &self,
        session: &mut Session,
        fault: &Faulty,
        controls: &mut Vec<Control>,
    ) -> Result<(Told, Machine, Group), Diagnostic> {
        let origin = match &fault.made {
            Made::Edited(text) => Origin::Text(
                format!("{} with the fault \"{}\"", self.args.model.display(), fault.name),
                text,
            ),
            Made::Beside(path) => Origin::File(path),
        };
        session.log(format!("fault: {}", fault.name));
        let explored = |s: &mut Session| explored(s, self.interface, &origin, self.args.operations);
        let Explored { model, machine, .. } = Self::with(session, &fault.defines, explored)?;
        let group = symmetries(session, self.args, &machine);
        self.models.iter().try_for_each(|m| m.check(self.interface, &machine.alphabet))?;
        let mut told = Told {
            name: fault.name.clone(),
            found: None,
            states: machine.outcome.states,
            stop: Stop::Complete,
        };
        for k in 1..=self.args.operations as usize {
            let conforming = self.conforming(session, &fault.defines, k, controls)?;
            let asked: Vec<&MemoryModel> = conforming.iter().map(|&m| &self.models[m]).collect();
            let bound = Bound { first: true, ..Bound::of(k, session.threads()) };
            let answer = search(self.interface, &machine, &group, &asked, bound, &session.budget)?;
            told.stop = answer.stop.clone();
            let found: Vec<usize> =
                (0..conforming.len()).filter(|&i| answer.found[i].is_some()).collect();
            if let Some(&first) = found.first() {
                let m = conforming[first];
                let against = (&self.models[m], self.texts[m].as_ref());
                let Some(history) = &answer.found[first] else { continue };
                let shown = show(session, self.interface, &*model, &machine, against, history)?;
                let models =
                    found.iter().map(|&i| self.models[conforming[i]].name.clone()).collect();
                told.found = Some(Finding { operations: k, models, shown });
                return Ok((told, machine, group));
            }
            if answer.stop != Stop::Complete {
                break;
            }
        }
        Ok((told, machine, group))
    }
    /// Searches all faulty machines, and makes a suite if it is asked for.
    pub(super) fn run(
        &self,
        session: &mut Session,
        faults: &[Faulty],
    ) -> Result<Faults, Diagnostic> {
        output::begin_stage("searching faulty machines");
        let mut out = Faults { faults: Vec::new(), suite: None };
        let mut machines = Vec::new();
        let mut controls = Vec::new();
        for fault in faults {
            match self.one(session, fault, &mut controls) {
                Ok((told, machine, group)) => {
                    if self.args.suite.is_some() && told.found.is_some() {
                        machines.push(((out.faults.len(), &fault.defines), machine, group));
                    }
                    out.faults.push(told);
                }
                Err(Diagnostic { stop: Some(stop), .. }) => {
                    out.faults.push(Told {
                        name: fault.name.clone(),
                        found: None,
                        states: 0,
                        stop,
                    });
                }
                Err(e) => return Err(e),
            }
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
            let suite = self.suite(session, &machines, &controls, longest)?;
            self.write(folder, &out.faults, &suite)?;
            out.suite = Some(suite);
        }
        Ok(out)
    }
    /// Fewest programs of at most so many operations of each processor.
    fn suite(
        &self,
        session: &Session,
        machines: &[Found<'_>],
        controls: &[Control],
        longest: usize,
    ) -> Result<Suite, Diagnostic> {
        output::begin_stage("choosing tests");
        let (against, text) = (&self.models[0], self.texts[0].as_ref());
        let all = |machine: (&Machine, &Group)| {
            executions(self.interface, machine, (longest, session.threads()), &session.budget)
        };
        let mut right: Vec<(&Defines, Executions)> = Vec::new();
        let mut found: Vec<(usize, BTreeMap<History, History>)> = Vec::new();
        for ((fault, defines), machine, group) in machines {
            let known = right.iter().position(|r| r.0 == *defines);
            let at = known.unwrap_or(right.len());
            if known.is_none() {
                let control = controls
                    .iter()
                    .find(|c| c.defines == **defines)
                    .map(|c| (&c.machine, &c.group));
                right.push((defines, all(control.unwrap_or(self.right))?));
            }
            found.push((
                *fault,
                detecting_programs(all((machine, group))?, &right[at].1, against, &session.budget)?,
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
            let language = language_of(against, program)[0];
            let litmus = self_checking(program, &allowed, &name, language);
            if let Some(text) = text {
                confirm(session, against, text, &litmus)?;
            }
            let detecting_programs = found
                .iter()
                .filter_map(|(fault, by)| by.get(program).map(|h| (*fault, h.clone())))
                .collect();
            tests.push(Test {
                name,
                program: program.clone(),
                detecting_programs,
                allowed: allowed.len(),
                text: litmus,
            });
        }
        Ok(Suite { tests, longest, candidates: programs.len(), is_least: cover.is_least })
    }
    fn write(&self, folder: &Path, faults: &[Told], suite: &Suite) -> Result<(), Diagnostic> {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        for test in &suite.tests {
            write_text(&folder.join(format!("{}.litmus", test.name)), &test.text)?;
        }
        let mut out = format!(
            "# Litmus tests for {} under `{}`\n\n",
            find_path::file_name(&self.args.model),
            self.models[0].name
        );
        out += "Each test lists the outcomes that the model allows: on a right machine the condition holds in every run (`Ok`). Every other outcome is a fault.\n\n";
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
        out +=
            "\nK: the least number of operations of each processor at which the fault is found.\n";
        write_text(&folder.join("README.md"), &out)
    }
}

/// A history as a cell of a table.
fn cell(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

impl Suite {
    /// Its tests, as a table in Markdown.
    pub(super) fn table(&self, faults: &[Told]) -> String {
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
    /// Whether all were found.
    pub(super) fn all_found(&self) -> bool {
        self.faults.iter().all(|f| f.found.is_some())
    }
    /// Whether a limit came first somewhere.
    pub(super) fn is_limited(&self) -> bool {
        self.faults.iter().any(|f| f.found.is_none() && f.stop != Stop::Complete)
    }
    /// For people: tables in Markdown.
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
                None if f.stop != Stop::Complete => {
                    writeln!(out, "| {name} | ? | {} | | unknown: {} |", f.states, f.stop.word())
                }
                None => writeln!(
                    out,
                    "| {name} | – | {} | | not found up to {} operations |",
                    f.states, args.operations
                ),
            };
        }
        if let (Some(suite), Some(folder)) = (&self.suite, &args.suite) {
            let least =
                if suite.is_least { "no fewer do" } else { "the search for fewer was cut short" };
            let _ = writeln!(
                out,
                "\nsuite        {} tests in {}: {least}, of the {} programs of up to {} operations of each processor that find a fault\n",
                suite.tests.len(),
                folder.display(),
                suite.candidates,
                suite.longest
            );
            out += &suite.table(&self.faults);
        }
        out
    }
    /// As an object: the faults and the suite.
    pub(super) fn json(&self) -> (serde_json::Value, Option<serde_json::Value>) {
        use serde_json::json;
        let faults = self.faults.iter().map(|f| {
            let mut object = json!({ "name": f.name, "states": f.states, "stop": f.stop.word() });
            if let Some(found) = &f.found {
                object["operations"] = json!(found.operations);
                object["models"] = json!(found.models);
                object["test"] = json!(found.shown.found.history.text());
                object["names"] = super::told::names(&found.shown.meaning);
                object["axiom"] = json!(found.shown.reason.axiom);
                object["confirmed"] =
                    json!({ "litmus": found.shown.confirmed.is_ok(), "replay": true });
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

/// Runs a test on the litmus route: all outcomes that the model allows must be in its list.
fn confirm(
    session: &Session,
    against: &MemoryModel,
    text: &Text,
    litmus: &str,
) -> Result<(), Diagnostic> {
    let Ok((judge, test)) = judge(against, text, litmus) else { return Ok(()) };
    let report = mu_litmus::run(test, &judge, Bounds { loops: 1 }, &session.budget)?;
    match report.answer.verdict {
        mu_outcome::Verdict::Ok => Ok(()),
        mu_outcome::Verdict::Unknown => Err(Diagnostic::stopped(report.stop)),
        mu_outcome::Verdict::No => Err(Diagnostic::internal(format!(
            "as a litmus test `{}` allows an outcome that it forbids as a history: {litmus}",
            against.name
        ))),
    }
}
