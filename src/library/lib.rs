//! Library interface: a specification with its parameters, or a file of any registered front end,
//! becomes a model, which counts its states and checks formulas.
//!
//! In: texts and files. Out: values of this module, without internal ids. The stages in between
//! (parse, type check, linearise, compile, search) are those of the command line; for a single
//! stage, use its layer. Invariants: the evidence of a verdict has been replayed on the model; an
//! error has a place and the message of the command line; reaching a limit is not an error, but an
//! unknown answer.
#![warn(missing_docs)]

mod error;
mod traces;
mod walk;

pub use error::{Error, Place};
pub use traces::{
    CheckedLog, CheckedTrace, CycleStep, LoggedOperation, TraceAnswer, TraceCheck, TraceConflict,
};
pub use walk::{Enabled, Walk};

use mu_base::{Budget, Diagnostic, Limits, SourceMap, Stage};
use mu_compile::Confluence;
use mu_engines::{Capability, Engine, EngineOptions, EngineTask, Subject};
use mu_evidence::checker;
use mu_explore::{CountExtras, Progress};
use mu_formula::typecheck::check_formula;
use mu_frontends::state_conditions::ConditionedFormula;
use mu_frontends::{FrontEnd, Input, Loaded, Loading, Silent};
use mu_lts::Lts;
use mu_pbes::Answer;
use mu_report::chart::chart;
use mu_report::evidence_tree::branches;
use mu_report::printed_evidence::{PrintedEvidence, story};
use num_bigint::BigUint;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

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

/// A specification text, or a model of another language, with values for its parameters.
#[derive(Clone)]
pub struct Specification {
    path: PathBuf,
    /// The text; `None` for a file in a binary format.
    text: Option<String>,
    front_end: &'static dyn FrontEnd,
    defines: Vec<String>,
    options: mu_frontends::LoadOptions,
}

impl std::fmt::Debug for Specification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Specification")
            .field("path", &self.path)
            .field("language", &self.front_end.language())
            .field("defines", &self.defines)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Specification {
    /// Creates a specification from text. The ending of the name selects the language, as for
    /// files; any other name is that of mCRL2, with or without a parameter layer. Messages contain
    /// the name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (PathBuf::from(name.into()), text.into());
        let front_end = mu_frontends::of(&Input::text_named(&path, &text));
        Self::with_front_end(front_end, path, Some(text))
    }

    /// Reads a model from a file of any language that the command line reads.
    ///
    /// # Errors
    /// The file cannot be read, or is a text that is not UTF-8.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let input = Input::file(path);
        let front_end = mu_frontends::of(&input);
        let text = front_end.text(&input).map_err(|e| Error::new(e, &SourceMap::new()))?;
        Ok(Self::with_front_end(front_end, path.to_path_buf(), text))
    }

    /// Creates a model from text in a language of the program's own.
    pub fn in_language(
        front_end: &'static dyn FrontEnd,
        name: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self::with_front_end(front_end, PathBuf::from(name.into()), Some(text.into()))
    }

    fn with_front_end(
        front_end: &'static dyn FrontEnd,
        path: PathBuf,
        text: Option<String>,
    ) -> Self {
        let options = mu_frontends::LoadOptions::default();
        Self { path, text, front_end, defines: Vec::new(), options }
    }

    /// Sets a parameter, as `-D NAME=VALUE` does.
    #[must_use]
    pub fn with(mut self, parameter: impl Into<String>, value: impl ToString) -> Self {
        self.defines.push(format!("{}={}", parameter.into(), value.to_string()));
        self
    }

    /// Selects the hidden steps with priority.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.options.confluence = match priority {
            Priority::Proven => Confluence::Auto,
            Priority::None => Confluence::None,
            Priority::Named(names) => Confluence::Named(names),
        };
        self
    }

    /// Sets options of front ends, as the number of threads of a program, or its memory.
    #[must_use]
    pub fn with_load_options(
        mut self,
        change: impl FnOnce(&mut mu_frontends::LoadOptions),
    ) -> Self {
        change(&mut self.options);
        self
    }

    /// Reads the model: for a specification, parses, type checks, linearises and compiles it.
    ///
    /// # Errors
    /// An error in the text or in a parameter, with its place.
    pub fn model(&self) -> Result<Model, Error> {
        self.model_within(&Run::new())
    }

    /// Reads the model within the limits of a run: initial values are evaluated, which may take
    /// long.
    ///
    /// # Errors
    /// As [`Specification::model`]; of stage `limit` if a limit or the interrupt ends the reading.
    pub fn model_within(&self, run: &Run) -> Result<Model, Error> {
        let mut sources = SourceMap::new();
        match self.load(&mut sources, &run.budget) {
            Ok(loaded) => {
                let required = [
                    (!matches!(self.options.confluence, Confluence::None), Capability::Priority),
                    (loaded.stored.is_some(), Capability::Stored),
                ];
                let capabilities = required.into_iter().filter_map(|(is, c)| is.then_some(c));
                Ok(Model {
                    capabilities: capabilities.collect(),
                    loaded: Arc::new(loaded),
                    sources,
                    turn: Arc::default(),
                })
            }
            Err(diagnostic) => Err(Error::new(diagnostic, &sources)),
        }
    }

    fn load(&self, sources: &mut SourceMap, budget: &Budget) -> Result<Loaded, Diagnostic> {
        let input = match &self.text {
            Some(text) => Input::text_named(&self.path, text),
            None => Input::file(&self.path),
        };
        let loading = &mut Loading {
            sources,
            defines: &self.defines,
            budget,
            options: &self.options,
            journal: &Silent,
        };
        let loaded = mu_frontends::load_with(self.front_end, &input, loading)?;
        if loaded.model.is_probabilistic() {
            let message =
                "this specification is probabilistic (`dist`), which the library does not support";
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
        Ok(loaded)
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
        Self::with_limits(Limits::default())
    }

    /// Creates options with limits.
    pub fn with_limits(limits: Limits) -> Self {
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
    pub fn with_watcher(self, watcher: impl Fn(&Snapshot) + Send + Sync + 'static) -> Self {
        Self { watcher: Some(Arc::new(watcher)), ..self }
    }

    /// Returns a flag that ends the run when it is set: the answer is then unknown.
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        self.budget.interrupt_flag()
    }

    fn explore(&self, model: &dyn mu_model::Model) -> mu_explore::Options {
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

/// A model that is ready to be searched.
#[derive(Clone)]
pub struct Model {
    loaded: Arc<Loaded>,
    sources: SourceMap,
    /// Capabilities that an engine needs for correct counts of the model.
    capabilities: Vec<Capability>,
    /// Held during a search: its limits are those of the model's evaluations.
    turn: Arc<Mutex<()>>,
}

/// Interval in which a search that waits for another one polls its limits.
const WAIT: Duration = Duration::from_millis(5);

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("parameters", &self.loaded.parameters).finish_non_exhaustive()
    }
}

impl Model {
    /// Returns names and values of the parameters of its specification.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, String)> {
        self.loaded.parameters.iter().map(|(name, value)| (name.as_str(), value.clone()))
    }

    /// Counts states, transitions and deadlocks. Searches of one model run one after the other.
    ///
    /// # Errors
    /// A value cannot be evaluated, or an invariant of the program is broken.
    pub fn explore(&self, run: &Run) -> Result<Counts, Error> {
        let counted = self.count_with(run, &[])?;
        let cut = counted.stop == Stop::Complete && self.buffers_were_cut();
        Ok(Counts {
            states: counted.states,
            transitions: counted.transitions,
            deadlocks: counted.deadlocks,
            stop: if cut { Stop::Buffer } else { counted.stop },
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

    /// True if a bound on store buffers cut transitions from the model, so that counts and some
    /// verdicts are only those of a part of its behaviour.
    pub fn buffers_were_cut(&self) -> bool {
        self.loaded.buffers.as_ref().is_some_and(|b| b.were_cut())
    }

    fn count_with(
        &self,
        run: &Run,
        capabilities: &[Capability],
    ) -> Result<mu_engines::CountResult, Error> {
        let capabilities = &[capabilities, &self.capabilities[..]].concat();
        self.expect(run, capabilities)?;
        let _turn = self.turn(run).map_err(|d| Error::new(d, &self.sources))?;
        let watched = WatchedProgress(&run.watcher);
        let options = EngineOptions {
            progress: &watched,
            ..EngineOptions::new(run.explore(&*self.loaded.model))
        };
        let task = EngineTask { capabilities, options: &options, budget: &run.budget };
        run.engine
            .count(&*self.loaded.model, task, CountExtras::default())
            .map_err(|d| Error::new(d, &self.sources))
    }

    fn expect(&self, run: &Run, capabilities: &[Capability]) -> Result<(), Error> {
        match run.engine.unsupported_capability(capabilities) {
            Some(wish) => Err(Error::plain(
                Stage::Unsupported,
                format!("the engine `{}` has no {}", run.engine.name(), wish.words()),
            )),
            None => Ok(()),
        }
    }

    /// Waits until no other search of this model runs, and applies the limits of the run to
    /// evaluations. Errors: a limit ends the wait.
    fn turn(&self, run: &Run) -> Result<MutexGuard<'_, ()>, Diagnostic> {
        let turn = loop {
            match self.turn.try_lock() {
                Ok(turn) => break turn,
                Err(TryLockError::Poisoned(turn)) => break turn.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    run.budget.check(0).map_err(Diagnostic::stopped)?;
                    std::thread::sleep(WAIT);
                }
            }
        };
        self.loaded.model.limit_evaluations(&run.budget);
        Ok(turn)
    }

    /// Checks a formula of the first-order modal mu-calculus. Searches of one model run one after
    /// the other.
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
        let Loaded { model, labels, data, actions, .. } = &*self.loaded;
        let written = ConditionedFormula::plain(text);
        let source = sources.add("formula", text);
        let tree = self.loaded.names.parse(&written, source, &[&written])?;
        let formula = check_formula(&tree, data, actions)?;
        let _turn = self.turn(run)?;
        let watched = WatchedProgress(&run.watcher);
        let options = EngineOptions {
            witnesses: true,
            progress: &watched,
            ..EngineOptions::new(run.explore(&*self.loaded.model))
        };
        let task =
            EngineTask { capabilities: &self.capabilities, options: &options, budget: &run.budget };
        let subject = Subject { model: &**model, labels: &**labels };
        let Answer { mut verdict, states, equations, mut evidence, .. } =
            run.engine.check(subject, &formula, task)?.answer;
        if self.buffers_were_cut() {
            let whole = verdict.clone().for_all_transitions(&formula);
            // The evidence justifies only the verdict on a part of the transitions.
            evidence = evidence.filter(|_| whole == verdict);
            verdict = whole;
        }
        let evidence = match evidence {
            None => None,
            Some(evidence) => {
                checker::check(&evidence, &**model, &**labels, &formula)?;
                let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let verdict = if evidence.verdict { "true" } else { "false" };
                Some(Evidence {
                    story: story(&evidence, &**model, false, usize::MAX)?,
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
