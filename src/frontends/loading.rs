//! Context in which a front end reads a file: sources, parameters, limits, options, and a journal
//! of its stages; and the stages that several front ends share.
//!
//! Invariant: nothing here depends on a command line; all output goes through [`Journal`].

use crate::{FrontEnd, Input};
use mu_base::host::Instant;
use mu_base::{Budget, Diagnostic, SourceMap, Span, Stage};
use mu_compile::{Compiled, Confluence};
use mu_lts::relabel::Relabel;
use mu_model::Model as _;
use mu_murphi::additions::{Condition, ShownValue};
use mu_process::linear::LinearProcess;
use mu_process::linearise;
use mu_process::spec::ProcSpec;
use mu_program::memory::{self, MemoryModel};
use mu_syntax::template::{self, ExpandedText};
use std::path::PathBuf;

/// Receiver of the events of a reading. All methods ignore the event by default.
pub trait Journal {
    /// Begins a stage, which ends when the next one begins.
    fn begin_stage(&self, _name: &'static str) {}
    /// Logs a line for a user who requested details.
    fn log(&self, _line: &str) {}
    /// Prints a warning without a place in a source.
    fn warn(&self, _text: &str) {}
    /// Prints warnings about the text of a model.
    fn warn_at(&self, _sources: &SourceMap, _warnings: &[(Span, String)]) {}
    /// Records the parameters of the model with their values.
    fn record_parameters(&self, _parameters: &[(String, String)]) {}
}

/// Journal that ignores all events.
pub struct Silent;

impl Journal for Silent {}

/// Memory of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramMemory {
    /// Memory model.
    pub model: &'static dyn MemoryModel,
    /// Capacity of a store buffer. `None`: unbounded for code without loops, otherwise 4.
    pub buffer: Option<u32>,
}

/// Options that front ends consult; each front end ignores those that do not apply to it.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Steps with priority, for specifications.
    pub confluence: Confluence,
    /// Number of threads that run a program.
    pub threads: u32,
    /// Memory of a program or of a system of processes.
    pub memory: ProgramMemory,
    /// Specification with the data types and actions of the labels of a transition system.
    pub data: Option<PathBuf>,
    /// Labels of transition systems that denote the internal action.
    pub internal: Vec<String>,
    /// Conditions on states as steps, for models with named variables.
    pub conditions: Vec<Condition>,
    /// Values of variables in labels, for models with named variables.
    pub shown: Vec<ShownValue>,
    /// Actions to hide and to rename, for specifications and transition systems.
    pub relabel: Relabel,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            confluence: Confluence::None,
            threads: 2,
            memory: ProgramMemory { model: memory::TSO, buffer: None },
            data: None,
            internal: Vec::new(),
            conditions: Vec::new(),
            shown: Vec::new(),
            relabel: Relabel::default(),
        }
    }
}

/// Context of a reading.
pub struct Loading<'a> {
    /// All texts, for the places of diagnostics.
    pub sources: &'a mut SourceMap,
    /// Values of parameters, each as `NAME=VALUE`.
    pub defines: &'a [String],
    /// Limits and the clock.
    pub budget: &'a Budget,
    /// Options.
    pub options: &'a LoadOptions,
    /// Receiver of stages, details and warnings.
    pub journal: &'a dyn Journal,
}

impl Loading<'_> {
    /// Returns names and values of the parameters.
    ///
    /// # Errors
    /// An entry that is not of the form `NAME=VALUE`.
    pub fn parameters(&self) -> Result<Vec<(String, String)>, Diagnostic> {
        let split = |d: &String| match d.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_string(), value.trim().to_string()))
            }
            _ => Err(Diagnostic::new(
                Stage::Usage,
                format!("parameter `{d}` is not of the form NAME=VALUE"),
            )),
        };
        self.defines.iter().map(split).collect()
    }

    /// Rejects parameters for a file that has none.
    ///
    /// # Errors
    /// There are parameters.
    pub fn expect_no_parameters(&self, input: &Input<'_>) -> Result<(), Diagnostic> {
        match self.defines.first() {
            Some(d) => Err(Diagnostic::new(
                Stage::Usage,
                format!("parameter `{d}` is set, but `{}` has no parameters", input.name()),
            )),
            None => Ok(()),
        }
    }

    /// Replaces the parameters of a text in the parameter layer. `name`: for messages.
    ///
    /// # Errors
    /// An error in the parameter layer, or in the value of a parameter.
    pub fn expand_text(&mut self, name: &str, text: &str) -> Result<ExpandedText, Diagnostic> {
        let expanded = template::expand(name, text, &self.parameters()?, self.sources)?;
        self.journal.record_parameters(&values(&expanded));
        Ok(expanded)
    }

    /// Reads a typed specification and reports its warnings.
    ///
    /// # Errors
    /// As [`FrontEnd::specification`].
    pub fn specification_of(
        &mut self,
        front_end: &dyn FrontEnd,
        input: &Input<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        if !front_end.properties().specification {
            return Err(front_end.no_specification(input));
        }
        self.read_timed(input, |loading| front_end.specification(input, loading))
    }

    /// Runs the reader of a specification as a stage, and reports the warnings of its result.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn read_timed(
        &mut self,
        input: &Input<'_>,
        read: impl FnOnce(&mut Self) -> Result<ProcSpec, Diagnostic>,
    ) -> Result<ProcSpec, Diagnostic> {
        let start = Instant::now();
        self.journal.begin_stage("reading the specification");
        let spec = read(self)?;
        self.journal.warn_at(self.sources, &spec.warnings);
        self.journal.log(&format!(
            "parsed and type checked {} in {:.3} s",
            input.name(),
            start.elapsed().as_secs_f64()
        ));
        Ok(spec)
    }

    /// Linearises and compiles a typed specification with the options of this reading.
    ///
    /// # Errors
    /// As [`fn@linearise`] and [`compile`].
    pub fn compile_specification(&self, spec: &ProcSpec) -> Result<Compiled, Diagnostic> {
        let process = linearise(spec, &linearise::LineariserOptions::default(), self.journal)?;
        compile(process, &self.options.confluence, self.budget, self.journal)
    }
}

/// Linearises a typed specification.
///
/// # Errors
/// An unsupported construct, with its place.
pub fn linearise(
    spec: &ProcSpec,
    options: &linearise::LineariserOptions,
    journal: &dyn Journal,
) -> Result<LinearProcess, Diagnostic> {
    let start = Instant::now();
    journal.begin_stage("linearising");
    let process = linearise::linearise(spec, options)?;
    journal.log(&format!(
        "linear process: {} components, {} parameters, {} summands in {:.3} s",
        process.components.len(),
        process.params.len(),
        process.summands.len(),
        start.elapsed().as_secs_f64()
    ));
    Ok(process)
}

/// Compiles a linear process with the given priority of confluent steps.
///
/// # Errors
/// An initial value without a normal form; an unknown name in `confluence`; a limit.
pub fn compile(
    process: LinearProcess,
    confluence: &Confluence,
    budget: &Budget,
    journal: &dyn Journal,
) -> Result<Compiled, Diagnostic> {
    let start = Instant::now();
    journal.begin_stage("compiling the linear process");
    let model = Compiled::with_budget(process, confluence, budget)?;
    journal.begin_stage("searching");
    let groups = model.groups();
    let mut confluent: Vec<&str> =
        groups.iter().filter(|g| g.confluent).map(|g| g.name.as_str()).collect();
    confluent.sort_unstable();
    confluent.dedup();
    let seconds = start.elapsed().as_secs_f64();
    journal.log(&format!("compiled {} groups in {seconds:.3} s", groups.len()));
    if !confluent.is_empty() {
        journal.log(&format!("confluent steps with priority: {}", confluent.join(", ")));
    }
    Ok(model)
}

/// Returns names and values of the parameters of an expanded text.
pub(crate) fn values(expanded: &ExpandedText) -> Vec<(String, String)> {
    expanded.params.iter().map(|p| (p.name.clone(), p.value.to_string())).collect()
}
