//! Library interface: a specification with its parameters becomes a model, which counts its states
//! and checks formulas.
//!
//! In: texts and files. Out: values of this module, without internal ids. The stages in between
//! (parse, type check, linearise, compile, search) are those of the command line; for a single
//! stage, use its layer. Invariants: the evidence of a verdict has been replayed on the model; an
//! error has a place and the message of the command line; reaching a limit is not an error, but an
//! unknown answer.
#![warn(missing_docs)]

mod error;
mod walk;

pub use error::{Error, Place};
pub use walk::{Enabled, Walk};

use mu_base::files::read_text;
use mu_base::{Budget, Diagnostic, Limits, SourceMap, Stage};
use mu_compile::{Compiled, Confluence};
use mu_engines::{Capability, Engine, Options, Subject, Task};
use mu_evidence::checker;
use mu_explore::{Extras, Progress};
use mu_formula::typecheck::check_formula;
use mu_lts::Lts;
use mu_model::Model as _;
use mu_pbes::Answer;
use mu_process::{linearise, typecheck::check_specification};
use mu_report::chart::chart;
use mu_report::evidence_tree::branches;
use mu_report::printed_evidence::{PrintedEvidence, story};
use mu_syntax::template::{self, Param};
use num_bigint::BigUint;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use mu_base::Stop;
pub use mu_explore::Snapshot;
pub use mu_pbes::Verdict;

/// Callback for the progress of a search, a few times per second.
pub type Watcher = Arc<dyn Fn(&Snapshot) + Send + Sync>;

struct WatchedProgress<'a>(&'a Option<Watcher>);

impl Progress for WatchedProgress<'_> {
    fn report(&self, snapshot: &Snapshot) {
        if let Some(watcher) = self.0 {
            watcher(snapshot);
        }
    }
}

/// Hidden steps with priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Priority {
    /// None.
    #[default]
    None,
    /// Steps that are proved confluent.
    Proven,
    /// Steps with hidden actions of these names, assumed to be confluent.
    Named(Vec<String>),
}

/// A specification text with values for its parameters.
#[derive(Clone, Debug)]
pub struct Specification {
    name: String,
    text: String,
    defines: Vec<(String, String)>,
    priority: Priority,
}

impl Specification {
    /// Creates a specification from text: mCRL2, with or without a parameter layer. The name is
    /// used in messages.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            defines: Vec::new(),
            priority: Priority::default(),
        }
    }

    /// Reads a specification from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = read_text(path).map_err(|e| Error::new(e, &SourceMap::new()))?;
        Ok(Self::new(path.display().to_string(), text))
    }

    /// Sets a parameter, as `-D NAME=VALUE` does.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<String>, value: impl ToString) -> Self {
        self.defines.push((parameter.into(), value.to_string()));
        self
    }

    /// Selects the hidden steps with priority.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Parses, type checks, linearises and compiles the specification.
    ///
    /// # Errors
    /// An error in the text or in a parameter, with its place.
    pub fn model(&self) -> Result<Model, Error> {
        let mut sources = SourceMap::new();
        let build = |sources: &mut SourceMap| {
            let expanded = template::expand(&self.name, &self.text, &self.defines, sources)?;
            let tree = mu_syntax::parse_specification(expanded.source, &expanded.text)?;
            let process =
                linearise::linearise(&check_specification(&tree)?, &linearise::Options::default())?;
            if process.is_probabilistic() {
                let message = "this specification is probabilistic (`dist`), which the library does not support";
                return Err(Diagnostic::new(Stage::Unsupported, message));
            }
            let confluence = match &self.priority {
                Priority::Proven => Confluence::Auto,
                Priority::None => Confluence::None,
                Priority::Named(names) => Confluence::Named(names.clone()),
            };
            Ok((expanded.params, Compiled::new(process, &confluence)?))
        };
        match build(&mut sources) {
            Ok((parameters, compiled)) => {
                let capabilities = if self.priority == Priority::None {
                    Vec::new()
                } else {
                    vec![Capability::Priority]
                };
                Ok(Model { compiled: Arc::new(compiled), parameters, sources, capabilities })
            }
            Err(diagnostic) => Err(Error::new(diagnostic, &sources)),
        }
    }
}

/// Limits and options of a search.
#[derive(Clone)]
pub struct Run {
    threads: Option<usize>,
    engine: &'static dyn Engine,
    symmetry: bool,
    partial_order: bool,
    budget: Budget,
    watcher: Option<Watcher>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("threads", &self.threads)
            .field("engine", &self.engine.name())
            .field("symmetry", &self.symmetry)
            .field("partial_order", &self.partial_order)
            .field("limits", self.budget.limits())
            .finish_non_exhaustive()
    }
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    /// Creates options without limits: all processors, symmetry reduction, the explicit engine. The
    /// clock of a time limit starts here.
    pub fn new() -> Self {
        Self::limited(Limits::default())
    }

    /// Creates options with limits.
    pub fn limited(limits: Limits) -> Self {
        Self {
            threads: None,
            engine: mu_engines::engines()[0],
            symmetry: true,
            partial_order: true,
            budget: Budget::new(limits),
            watcher: None,
        }
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads.max(1)), ..self }
    }

    /// Switches symmetry reduction on or off; counts and verdicts do not change.
    #[must_use]
    pub fn symmetry(self, symmetry: bool) -> Self {
        Self { symmetry, ..self }
    }

    /// Switches partial-order reduction of checks on or off. It skips transitions that cannot
    /// affect the verdict: verdicts do not change, but a check may have fewer states and equations.
    /// Counts of a model always include all states.
    #[must_use]
    pub fn partial_order(self, partial_order: bool) -> Self {
        Self { partial_order, ..self }
    }

    /// Selects the engine: `explicit`, `symbolic`, `auto`.
    ///
    /// # Errors
    /// There is no such engine.
    pub fn engine(self, name: &str) -> Result<Self, Error> {
        let engine = mu_engines::by_name(name).ok_or_else(|| {
            let known: Vec<&str> = mu_engines::engines().iter().map(|e| e.name()).collect();
            Error::plain(
                Stage::Usage,
                format!("there is no engine `{name}`, expected one of {}", known.join(", ")),
            )
        })?;
        Ok(Self { engine, ..self })
    }

    /// Sets a progress callback. The search thread calls it; it should return quickly.
    #[must_use]
    pub fn watched(self, watcher: impl Fn(&Snapshot) + Send + Sync + 'static) -> Self {
        Self { watcher: Some(Arc::new(watcher)), ..self }
    }

    /// Returns a flag that ends the run when it is set: the answer is then unknown.
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        self.budget.interrupt_flag()
    }

    fn explore(&self, model: &Compiled) -> mu_explore::Options {
        let threads = self
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        let symmetry = self.symmetry && model.is_priority_proven();
        mu_explore::Options {
            threads,
            symmetry,
            partial_order: self.partial_order,
            ..Default::default()
        }
        .with_confluence_of(model)
    }
}

/// Numbers of states and transitions; exact if the search is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// States.
    pub states: BigUint,
    /// Transitions, if the engine counts them.
    pub transitions: Option<BigUint>,
    /// States without outgoing transitions, if the engine counts them.
    pub deadlocks: Option<BigUint>,
    /// Stop reason.
    pub stop: Stop,
}

/// A verdict with its evidence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Reached states.
    pub states: u64,
    /// Generated boolean equations.
    pub equations: u64,
    /// Evidence, if there is any.
    pub evidence: Option<Evidence>,
}

/// A counterexample or witness that has been replayed on the model.
#[derive(Clone, Debug)]
pub struct Evidence {
    story: PrintedEvidence,
    title: String,
    verdict: &'static str,
}

impl Evidence {
    /// True if it shows that the formula holds.
    pub fn is_witness(&self) -> bool {
        self.story.verdict
    }

    /// Returns the labels of its steps in order; for branching evidence, of all its steps.
    pub fn actions(&self) -> Vec<String> {
        self.story.steps.iter().map(|s| s.action.clone()).collect()
    }

    /// Returns text for people.
    pub fn text(&self) -> String {
        self.story.text(true)
    }

    /// Returns JSON; the format is `evidence.json` of the schemas.
    pub fn json(&self) -> String {
        self.story.json().to_string()
    }

    /// Returns a picture: a chart of a path, or a tree of branching evidence.
    pub fn svg(&self) -> String {
        chart(&self.story, &self.title, self.verdict)
            .unwrap_or_else(|| branches(&self.story, &self.title, self.verdict))
    }
}

/// A compiled model.
#[derive(Clone)]
pub struct Model {
    compiled: Arc<Compiled>,
    parameters: Vec<Param>,
    sources: SourceMap,
    /// Capabilities that an engine needs for correct counts of the model.
    capabilities: Vec<Capability>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl Model {
    /// Returns names and values of the parameters of its specification.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, String)> {
        self.parameters.iter().map(|p| (p.name.as_str(), p.value.to_string()))
    }

    /// Counts states, transitions and deadlocks.
    ///
    /// # Errors
    /// A value cannot be evaluated, or an invariant of the program is broken.
    pub fn explore(&self, run: &Run) -> Result<Counts, Error> {
        let counted = self.count_with(run, &[])?;
        Ok(Counts {
            states: counted.states,
            transitions: counted.transitions,
            deadlocks: counted.deadlocks,
            stop: counted.stop,
        })
    }

    /// Returns the transition system, without symmetry reduction, as far as the limits allow.
    ///
    /// # Errors
    /// As [`Model::explore`].
    pub fn transition_system(&self, run: &Run) -> Result<Lts, Error> {
        let run = run.clone().symmetry(false);
        let counted = self.count_with(&run, &[Capability::TransitionSystem])?;
        counted.lts.ok_or_else(|| {
            Error::plain(Stage::Internal, "an engine for transition systems returned none".into())
        })
    }

    fn count_with(
        &self,
        run: &Run,
        capabilities: &[Capability],
    ) -> Result<mu_engines::Counted, Error> {
        let capabilities = &[capabilities, &self.capabilities[..]].concat();
        self.expect(run, capabilities)?;
        let watched = WatchedProgress(&run.watcher);
        let options = Options { progress: &watched, ..Options::new(run.explore(&self.compiled)) };
        let task = Task { capabilities, options: &options, budget: &run.budget };
        run.engine
            .count(&*self.compiled, task, Extras::default())
            .map_err(|d| Error::new(d, &self.sources))
    }

    fn expect(&self, run: &Run, capabilities: &[Capability]) -> Result<(), Error> {
        match run.engine.unsupported(capabilities) {
            Some(wish) => Err(Error::plain(
                Stage::Unsupported,
                format!("the engine `{}` has no {}", run.engine.name(), wish.words()),
            )),
            None => Ok(()),
        }
    }

    /// Checks a formula of the first-order modal mu-calculus.
    ///
    /// # Errors
    /// An error in the formula, with its place; a value that cannot be evaluated; a broken
    /// invariant.
    pub fn check(&self, formula: &str, run: &Run) -> Result<Judgement, Error> {
        self.expect(run, &self.capabilities)?;
        let mut sources = self.sources.clone();
        self.check_formula(formula, run, &mut sources).map_err(|d| Error::new(d, &sources))
    }

    fn check_formula(
        &self,
        text: &str,
        run: &Run,
        sources: &mut SourceMap,
    ) -> Result<Judgement, mu_base::Diagnostic> {
        let process = self.compiled.process();
        let tree = mu_syntax::parse_formula(sources.add("formula", text), text)?;
        let formula = check_formula(&tree, &process.data, &process.actions)?;
        let watched = WatchedProgress(&run.watcher);
        let options = Options {
            witnesses: true,
            progress: &watched,
            ..Options::new(run.explore(&self.compiled))
        };
        let task =
            Task { capabilities: &self.capabilities, options: &options, budget: &run.budget };
        let subject = Subject { model: &*self.compiled, labels: &*self.compiled };
        let Answer { verdict, states, equations, evidence, .. } =
            run.engine.check(subject, &formula, task)?.answer;
        let evidence = match evidence {
            None => None,
            Some(evidence) => {
                checker::check(&evidence, &*self.compiled, &*self.compiled, &formula)?;
                let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let verdict = if evidence.verdict { "true" } else { "false" };
                Some(Evidence {
                    story: story(&evidence, &*self.compiled, false, usize::MAX)?,
                    title,
                    verdict,
                })
            }
        };
        Ok(Judgement { verdict, states, equations, evidence })
    }

    /// Starts a walk in the initial state. `seed`: for random steps.
    ///
    /// # Errors
    /// As [`Model::explore`].
    pub fn walk(&self, seed: u64) -> Result<Walk<'_>, Error> {
        Walk::start(self, seed)
    }
}
