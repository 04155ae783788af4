//! A run: options, sources, limits; the stages from files to models, each of which logs a line
//! under `-v`.

use crate::args::{Common, ReadArgs, Reduction};
use crate::output;
use crate::pipeline::load::PrintedJournal;
use mu_base::files::{read_source, read_text};
use mu_base::host;
use mu_base::limits::{available_memory, peak_resident_bytes};
use mu_base::{Budget, Diagnostic, Limits, SourceId, SourceMap, Stage};
use mu_compile::{Compiled, Confluence};
use mu_explore::{ReductionSavings, RejectedSymmetry};
use mu_frontends::{Input, machines};
use mu_model::Model;
use mu_pbes::ReductionUse;
use mu_process::linear::LinearProcess;
use mu_process::linearise;
use mu_process::spec::ProcSpec;
use mu_syntax::template;
use serde_json::{Value, json};
use std::path::Path;

/// A run: options, sources, limits.
pub struct Session {
    /// Common options.
    pub common: Common,
    /// All texts, for diagnostics.
    pub sources: SourceMap,
    /// Limits and the clock.
    pub budget: Budget,
    /// Options for reading files of some front ends.
    pub reading: ReadArgs,
    /// The bounded store buffers of the models that were read.
    pub buffers: Vec<std::sync::Arc<dyn mu_frontends::StoreBuffers>>,
    /// Memory operations among the labels, for execution graphs of paths.
    pub interface: Option<mu_conform::interface::Interface>,
    /// Conditions on states that the model shows as steps.
    pub conditions: Vec<mu_frontends::Condition>,
    /// Values of variables that the labels of the model show.
    pub shown: Vec<mu_frontends::ShownValue>,
    /// Actions that are hidden and renamed while a model is read.
    pub relabel: mu_lts::relabel::Relabel,
    /// Warnings about the text of the model, for JSON; they are already printed.
    pub warnings: Vec<serde_json::Value>,
}

impl Session {
    /// Starts the clock and handles signals.
    pub fn new(common: Common, reading: ReadArgs) -> Self {
        let session = Self::without_watchdog(common, reading);
        output::watch(&session.budget, session.common.format, listen);
        session
    }

    /// Does the same for a run that polls its budget early and may end soon: the watchdog thread
    /// starts only if the run is long.
    pub fn brief(common: Common, reading: ReadArgs) -> Self {
        let session = Self::without_watchdog(common, reading);
        let (budget, format) = (session.budget.clone(), session.common.format);
        session.budget.defer_until_long(move || output::watch(&budget, format, listen));
        session
    }

    fn without_watchdog(common: Common, reading: ReadArgs) -> Self {
        let limits = Limits {
            max_states: common.max_states,
            // Tables grow in large steps: reserve a part, so that the last step does not far exceed
            // the limit.
            max_memory: common
                .max_memory
                .or_else(|| available_memory().map(|m| m / 10 * 9))
                .map(|m| m - m / 32),
            timeout: common.timeout,
        };
        Self::with_limits(common, reading, limits)
    }

    /// Returns a session with options that limit the processes it starts, and not itself.
    pub fn for_subprocesses(common: Common, reading: ReadArgs) -> Self {
        let session = Self::with_limits(common, reading, Limits::default());
        listen(&session.budget);
        session
    }

    fn with_limits(common: Common, reading: ReadArgs, limits: Limits) -> Self {
        let budget = Budget::new(limits);
        if common.progress_lines {
            output::enable_progress_lines();
        }
        if common.end_with_input {
            end_with_input(&budget);
        }
        Self {
            common,
            sources: SourceMap::new(),
            budget,
            reading,
            buffers: Vec::new(),
            interface: None,
            conditions: Vec::new(),
            shown: Vec::new(),
            relabel: mu_lts::relabel::Relabel::default(),
            warnings: Vec::new(),
        }
    }

    /// Returns the number of threads to use.
    pub fn threads(&self) -> usize {
        if host::IS_PAGE {
            return 1;
        }
        self.common.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, |n| n.get()),
            |n| n as usize,
        )
    }

    /// Logs a line under `-v`.
    pub fn log(&self, text: impl AsRef<str>) {
        if self.common.verbose > 0 && !self.common.quiet {
            eprintln!("[{:9.3} s] {}", self.budget.elapsed().as_secs_f64(), text.as_ref());
        }
    }

    /// Reads a text file.
    pub fn read(&mut self, path: &Path) -> Result<String, Diagnostic> {
        read_text(path)
    }

    /// Reads a file and registers it as a source.
    pub fn read_source(&mut self, path: &Path) -> Result<(SourceId, String), Diagnostic> {
        read_source(path, &mut self.sources)
    }

    /// Checks that a machine is a file or a built-in one.
    ///
    /// # Errors
    /// A word without a folder or an ending that is neither.
    pub fn expect_machine(path: &Path) -> Result<(), Diagnostic> {
        let is_word = path.extension().is_none() && path.components().count() == 1;
        if !is_word || host::is_file(path) || machines::machine(path).is_some() {
            return Ok(());
        }
        let message = format!("there is no machine `{}`", path.display());
        let names = machines::machine_names().join(", ");
        Err(Diagnostic::new(Stage::File, message)
            .note(format!("expected a file, or a built-in machine: {names}")))
    }

    /// Reads an interface of `conform`, a file or a built-in one, and registers it as a source.
    ///
    /// # Errors
    /// The file cannot be read, and its name is not that of a built-in interface.
    pub fn read_interface(&mut self, path: &Path) -> Result<(SourceId, String), Diagnostic> {
        let built_in = machines::interface(path).filter(|_| !host::is_file(path));
        match built_in {
            Some(text) => Ok((self.sources.add(path.display().to_string(), text), text.into())),
            None => self.read_source(path).map_err(|error| {
                let names = machines::interface_names().join(", ");
                error.note(format!("expected a file, or a built-in interface: {names}"))
            }),
        }
    }

    /// Reads a specification file and expands its parameters. Returns plain mCRL2 text.
    pub fn expand(&mut self, path: &Path) -> Result<template::ExpandedText, Diagnostic> {
        let input = Input::file(path);
        self.with_loading(|loading| mu_frontends::of(&input).expand(&input, loading))
    }

    /// Rejects `-D` for a model without parameters.
    pub fn expect_no_parameters(&mut self, path: &Path) -> Result<(), Diagnostic> {
        self.with_loading(|loading| loading.expect_no_parameters(&Input::file(path)))
    }

    /// Reads and linearises a specification.
    pub fn linear_process(
        &mut self,
        path: &Path,
        options: &linearise::LineariserOptions,
    ) -> Result<LinearProcess, Diagnostic> {
        let spec = self.specification(path)?;
        self.linearise(&spec, options)
    }

    /// Linearises a typed specification.
    pub fn linearise(
        &self,
        spec: &ProcSpec,
        options: &linearise::LineariserOptions,
    ) -> Result<LinearProcess, Diagnostic> {
        mu_frontends::linearise(spec, options, &PrintedJournal::new(&self.common, &self.budget))
    }

    /// Compiles a linear process. `confluence`: the value of `--confluence`.
    pub fn compile(
        &self,
        process: LinearProcess,
        confluence: &str,
    ) -> Result<Compiled, Diagnostic> {
        self.compile_with(process, &crate::pipeline::load::confluence(confluence))
    }

    /// Compiles a linear process with the given priority of confluent steps.
    pub fn compile_with(
        &self,
        process: LinearProcess,
        confluence: &Confluence,
    ) -> Result<Compiled, Diagnostic> {
        let journal = PrintedJournal::new(&self.common, &self.budget);
        mu_frontends::compile(process, confluence, &self.budget, &journal)
    }

    /// Returns the options of an exploration. Steps that have priority by name only, without proof,
    /// may not be confluent; symmetry reduction needs that, so it is off.
    pub fn explore_options(&self, model: &dyn Model, without: &[Reduction]) -> mu_explore::Options {
        let symmetry = match no_symmetries(model.is_priority_proven(), without) {
            None => true,
            Some(_) if without.contains(&Reduction::Symmetry) => false,
            Some(why) => {
                self.log(format!("symmetries: not searched for, because {why}"));
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

    /// Logs the symmetries that a search used, and the candidates that it dropped.
    pub fn log_symmetries(
        &self,
        order: usize,
        without: &[Reduction],
        dropped: &[RejectedSymmetry],
    ) {
        match order {
            _ if without.contains(&Reduction::Symmetry) => self.log("symmetries: switched off"),
            0 | 1 => self.log("symmetries: none used"),
            n => self.log(format!(
                "symmetries: one state represents up to {n}; verified at every evaluation"
            )),
        }
        dropped.iter().for_each(|d| self.log(format!("symmetries: without {}: {}", d.name, d.why)));
    }

    /// Logs the use of partial-order reduction, or the reason against it. Returns the same as JSON;
    /// `None` if it was not considered.
    pub fn log_partial_order(&self, order: ReductionUse) -> Option<Value> {
        match order {
            ReductionUse::None => None,
            ReductionUse::Used(ReductionSavings { states, steps }) => {
                self.log(format!("partial order: {steps} steps of {states} states were skipped, because the answer does not depend on them"));
                Some(json!({ "used": true, "states": states, "steps": steps }))
            }
            ReductionUse::Unused(why) => {
                self.log(format!("partial order: not used: {}", why.text()));
                Some(json!({ "used": false, "reason": why.word(), "why": why.text() }))
            }
            ReductionUse::Forbidden(ban, place) => {
                let (line, column) = self.sources.line_column(place);
                let name = &self.sources.get(place.source).name;
                self.log(format!(
                    "partial order: not used: {name}:{line}:{column}: {}",
                    ban.text()
                ));
                Some(
                    json!({ "used": false, "reason": ban.word(), "why": ban.text(), "line": line, "column": column }),
                )
            }
        }
    }

    /// Returns the peak resident memory so far.
    pub fn peak_memory(&self) -> u64 {
        peak_resident_bytes()
    }
}

/// Returns the reason why symmetries are off; `None` if they are on.
fn no_symmetries(priority_proven: bool, without: &[Reduction]) -> Option<&'static str> {
    if without.contains(&Reduction::Symmetry) {
        return Some("they are switched off");
    }
    (!priority_proven).then_some("the steps named by `--confluence` are not proven confluent")
}

/// Returns the symmetries that a search used, and the candidates that it dropped, as JSON.
/// `priority_proven`: see [`Model::is_priority_proven`].
pub(crate) fn symmetries(
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

/// Handles signals: the first requests the end of the run, the second ends it.
#[cfg(not(target_arch = "wasm32"))]
fn listen(budget: &Budget) {
    let (flag, handled) = (budget.interrupt_flag(), budget.clone());
    // If no handler can be installed, the default of the system ends the process; no wrong result
    // is printed.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, std::sync::atomic::Ordering::Relaxed) {
            output::give_up(&handled, &mu_base::Stop::Interrupted);
            std::process::exit(3);
        }
    });
}

/// WebAssembly has no signals: the host ends the instance.
#[cfg(target_arch = "wasm32")]
fn listen(_: &Budget) {}

/// Treats the end of standard input as an interrupt: the process at its other end is gone.
pub(crate) fn end_with_input(budget: &Budget) {
    let flag = budget.interrupt_flag();
    let wait = move || {
        let _ = std::io::copy(&mut mu_base::host::input().lock(), &mut std::io::sink());
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    // Without this thread, the process runs on as without the option.
    let _ = std::thread::Builder::new().name("input".into()).spawn(wait);
}
