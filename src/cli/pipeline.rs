//! From files to models: the chain of stages, with what each says of itself under `-v`.

use super::args::{Common, Reading, Reduction};
use super::files::Form;
use super::output;
pub(super) use mu_base::files::{file_error, read_source, read_text};
use mu_base::host::{self, Instant};
use mu_base::limits::{available_memory, peak_resident_bytes};
use mu_base::{Budget, Diagnostic, Limits, SourceId, SourceMap, Stage};
use mu_compile::{Compiled, Confluence};
use mu_explore::{ReductionSavings, RejectedSymmetry};
use mu_model::Model;
use mu_pbes::Order;
use mu_process::linear::LinearProcess;
use mu_process::linearise;
use mu_process::spec::ProcSpec;
use mu_syntax::template;
use serde_json::{Value, json};
use std::path::Path;

/// A run: options, sources read so far, limits.
pub struct Session {
    /// Common options.
    pub common: Common,
    /// All texts, for diagnostics.
    pub sources: SourceMap,
    /// Limits and the clock.
    pub budget: Budget,
    /// How files of some front ends are read.
    pub reading: Reading,
    /// The systems of any number of processes that were read as models.
    pub systems: Vec<std::sync::Arc<mu_cubicle::model::SystemModel<'static>>>,
    /// The machine of the program that was read last, with a bound on its store buffers.
    pub machine: Option<mu_program::machine::Machine>,
    /// True if a store buffer of a program's machine is full in some state.
    pub cut: bool,
    /// Of the program that was read last: when its threads are done, by parameter and condition.
    pub ends: Vec<(String, String)>,
    /// Which labels of the model are memory operations, for graphs of its runs.
    pub interface: Option<mu_conform::interface::Interface>,
    /// Warnings about the text of the model, printed when it was read, for JSON.
    pub warnings: Vec<serde_json::Value>,
}

impl Session {
    /// Starts the clock and listens for signals.
    pub fn new(common: Common, reading: Reading) -> Self {
        let session = Self::unwatched(common, reading);
        output::watch(&session.budget, session.common.format, listen);
        session
    }

    /// The same for a run that polls its budget from early on, and may be over before a thread that
    /// watches it has begun: that begins once the run is long.
    pub fn brief(common: Common, reading: Reading) -> Self {
        let session = Self::unwatched(common, reading);
        let (budget, format) = (session.budget.clone(), session.common.format);
        session.budget.once_long(move || output::watch(&budget, format, listen));
        session
    }

    fn unwatched(common: Common, reading: Reading) -> Self {
        let limits = Limits {
            max_states: common.max_states,
            // Tables grow by leaps: a little is kept back, so that the last one does not go far
            // beyond what was said.
            max_memory: common
                .max_memory
                .or_else(|| available_memory().map(|m| m / 10 * 9))
                .map(|m| m - m / 32),
            timeout: common.timeout,
        };
        Self::with_limits(common, reading, limits)
    }

    /// A run whose options limit the processes that it starts, and not itself.
    pub fn of_processes(common: Common, reading: Reading) -> Self {
        let session = Self::with_limits(common, reading, Limits::default());
        listen(&session.budget);
        session
    }

    fn with_limits(common: Common, reading: Reading, limits: Limits) -> Self {
        let budget = Budget::new(limits);
        if common.progress_lines {
            output::read_along();
        }
        if common.end_with_input {
            end_with_input(&budget);
        }
        Self {
            common,
            sources: SourceMap::new(),
            budget,
            reading,
            systems: Vec::new(),
            machine: None,
            cut: false,
            ends: Vec::new(),
            interface: None,
            warnings: Vec::new(),
        }
    }

    /// Threads to use.
    pub fn threads(&self) -> usize {
        if host::IS_PAGE {
            return 1;
        }
        self.common.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, |n| n.get()),
            |n| n as usize,
        )
    }

    /// Says something under `-v`.
    pub fn say(&self, text: impl AsRef<str>) {
        if self.common.verbose > 0 && !self.common.quiet {
            eprintln!("[{:9.3} s] {}", self.budget.elapsed().as_secs_f64(), text.as_ref());
        }
    }

    /// Reads a text file.
    pub fn read(&mut self, path: &Path) -> Result<String, Diagnostic> {
        read_text(path)
    }

    /// Text of a file that is a source by itself.
    pub fn read_source(&mut self, path: &Path) -> Result<(SourceId, String), Diagnostic> {
        read_source(path, &mut self.sources)
    }

    /// A specification file, with its parameters filled in: plain mCRL2 text.
    pub fn expand(&mut self, path: &Path) -> Result<template::Expanded, Diagnostic> {
        let form = Form::of(path);
        if form.is_lts() || form == Form::Dot || matches!(form, Form::Pg | Form::Bes) {
            return Err(no_specification(path));
        }
        let (name, text) = super::files::model_text(self, path)?;
        self.expand_text(&name, &text)
    }

    /// The text of a specification, with its parameters filled in. Its name is for messages.
    pub fn expand_text(
        &mut self,
        name: &str,
        text: &str,
    ) -> Result<template::Expanded, Diagnostic> {
        let mut defines = Vec::new();
        for d in &self.common.define {
            match d.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() => {
                    defines.push((name.trim().to_string(), value.trim().to_string()))
                }
                _ => {
                    return Err(Diagnostic::new(
                        Stage::Usage,
                        format!("`-D {d}` is not of the form NAME=VALUE"),
                    ));
                }
            }
        }
        let expanded = template::expand(name, text, &defines, &mut self.sources)?;
        output::parameters(expanded.params.iter().map(|p| (p.name.clone(), p.value.to_string())));
        Ok(expanded)
    }

    /// Refuses `-D` for a model that has no parameters to give.
    pub fn expect_no_parameters(&self, path: &Path) -> Result<(), Diagnostic> {
        match self.common.define.first() {
            Some(d) => Err(Diagnostic::new(
                Stage::Usage,
                format!(
                    "`-D {d}` gives a parameter of a specification, which `{}` is not",
                    path.display()
                ),
            )),
            None => Ok(()),
        }
    }

    /// A linear process.
    pub fn linear_process(
        &mut self,
        path: &Path,
        options: &linearise::Options,
    ) -> Result<LinearProcess, Diagnostic> {
        let spec = self.specification(path)?;
        self.linearised(&spec, options)
    }

    /// The linear process of a typed specification.
    pub fn linearised(
        &self,
        spec: &ProcSpec,
        options: &linearise::Options,
    ) -> Result<LinearProcess, Diagnostic> {
        let start = Instant::now();
        output::stage("linearising");
        let process = linearise::linearise(spec, options)?;
        self.say(format!(
            "linear process: {} components, {} parameters, {} summands in {:.3} s",
            process.components.len(),
            process.params.len(),
            process.summands.len(),
            start.elapsed().as_secs_f64()
        ));
        Ok(process)
    }

    /// The model of a linear process.
    pub fn compiled(
        &self,
        process: LinearProcess,
        confluence: &str,
    ) -> Result<Compiled, Diagnostic> {
        let confluence = match confluence {
            "none" => Confluence::None,
            "auto" => Confluence::Auto,
            names => Confluence::Named(names.split(',').map(|n| n.trim().to_string()).collect()),
        };
        self.compiled_by(process, &confluence)
    }

    /// The same, where steps are taken at once as `confluence` says.
    pub fn compiled_by(
        &self,
        process: LinearProcess,
        confluence: &Confluence,
    ) -> Result<Compiled, Diagnostic> {
        let start = Instant::now();
        output::stage("compiling the linear process");
        let model = Compiled::limited(process, confluence, &self.budget)?;
        output::stage("searching");
        let groups = mu_model::Model::groups(&model);
        let mut confluent: Vec<&str> =
            groups.iter().filter(|g| g.confluent).map(|g| g.name.as_str()).collect();
        confluent.sort_unstable();
        confluent.dedup();
        self.say(format!(
            "compiled {} groups in {:.3} s",
            groups.len(),
            start.elapsed().as_secs_f64()
        ));
        if !confluent.is_empty() {
            self.say(format!("confluent steps with priority: {}", confluent.join(", ")));
        }
        Ok(model)
    }

    /// How to explore a model. Steps that are prioritised by name only, without proof, are not
    /// known to lead to one state, which symmetries need.
    pub fn explore_options(&self, model: &dyn Model, without: &[Reduction]) -> mu_explore::Options {
        let symmetry = match no_symmetries(model.is_priority_proven(), without) {
            None => true,
            Some(_) if without.contains(&Reduction::Symmetry) => false,
            Some(why) => {
                self.say(format!("symmetries: not looked for, since {why}"));
                false
            }
        };
        let partial_order = !without.contains(&Reduction::Por);
        mu_explore::Options {
            threads: self.threads(),
            symmetry,
            partial_order,
            ..Default::default()
        }
        .with_confluence_of(model)
    }

    /// Says which symmetries a search used, and which candidates it did not.
    pub fn say_symmetries(
        &self,
        order: usize,
        without: &[Reduction],
        dropped: &[RejectedSymmetry],
    ) {
        match order {
            _ if without.contains(&Reduction::Symmetry) => {
                self.say("symmetries: done without, as asked")
            }
            0 | 1 => self.say("symmetries: none used"),
            n => self.say(format!(
                "symmetries: one state represents up to {n}; verified at every evaluation"
            )),
        }
        dropped.iter().for_each(|d| self.say(format!("symmetries: without {}: {}", d.name, d.why)));
    }

    /// Says whether steps were left out in a search, or why not; the same for JSON. None if the
    /// question was never put.
    pub fn say_order(&self, order: Order) -> Option<Value> {
        match order {
            Order::None => None,
            Order::Used(ReductionSavings { states, steps }) => {
                self.say(format!("partial order: {steps} steps of {states} states were left out, since the answer does not rest on them"));
                Some(json!({ "used": true, "states": states, "steps": steps }))
            }
            Order::Unused(why) => {
                self.say(format!("partial order: not used: {}", why.text()));
                Some(json!({ "used": false, "reason": why.word(), "why": why.text() }))
            }
            Order::Forbidden(ban, place) => {
                let (line, column) = self.sources.line_column(place);
                let name = &self.sources.get(place.source).name;
                self.say(format!(
                    "partial order: not used: {name}:{line}:{column}: {}",
                    ban.text()
                ));
                Some(
                    json!({ "used": false, "reason": ban.word(), "why": ban.text(), "line": line, "column": column }),
                )
            }
        }
    }

    /// Peak resident memory so far.
    pub fn peak_memory(&self) -> u64 {
        peak_resident_bytes()
    }
}

/// Why symmetries are not looked for, if they are not.
fn no_symmetries(priority_proven: bool, without: &[Reduction]) -> Option<&'static str> {
    if without.contains(&Reduction::Symmetry) {
        return Some("they are switched off");
    }
    (!priority_proven).then_some("the steps named by `--confluence` are not proven confluent")
}

/// Which symmetries a search used, and which candidates it did not, for JSON. `priority_proven`:
/// see [`Model::is_priority_proven`].
pub(super) fn symmetries(
    priority_proven: bool,
    order: usize,
    without: &[Reduction],
    dropped: &[RejectedSymmetry],
) -> Value {
    let mut object = json!({
        "order": order.max(1),
        "dropped": dropped.iter().map(|d| json!({ "generator": d.name, "why": d.why })).collect::<Vec<_>>(),
    });
    if let Some(why) = no_symmetries(priority_proven, without) {
        object["off"] = why.into();
    }
    object
}

/// The error for a file that holds no specification.
pub(super) fn no_specification(path: &Path) -> Diagnostic {
    let what = match Form::of(path) {
        Form::System => "a system of any number of processes",
        form if form.is_game() => "a game",
        _ => "a transition system",
    };
    Diagnostic::new(
        Stage::Usage,
        format!("`{}` is not a specification: its name says that it is {what}", path.display()),
    )
    .note("expected an mCRL2 specification, such as a file that ends in .mcrl2 or .spec")
}

/// A signal asks the run to end, and a second one ends it.
#[cfg(not(target_arch = "wasm32"))]
fn listen(budget: &Budget) {
    let (flag, handled) = (budget.interrupt_flag(), budget.clone());
    // Failing to listen leaves the system's default, which ends the process: nothing wrong is
    // reported.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, std::sync::atomic::Ordering::Relaxed) {
            output::give_up(&handled, &mu_base::Stop::Interrupted);
            std::process::exit(3);
        }
    });
}

/// There are no signals: whoever runs an instance of the module ends it.
#[cfg(target_arch = "wasm32")]
fn listen(_: &Budget) {}

/// From now on the end of standard input is an interrupt: whoever holds its other end is gone.
pub(super) fn end_with_input(budget: &Budget) {
    let flag = budget.interrupt_flag();
    let wait = move || {
        let _ = std::io::copy(&mut mu_base::host::input().lock(), &mut std::io::sink());
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    // Without this thread the process lives on, as it would without the option.
    let _ = std::thread::Builder::new().name("input".into()).spawn(wait);
}
