//! Routes within this process: the stages of the program one after another, as its commands call
//! them. A specification is read once for all routes, so that only the search of an answer is
//! repeated.
//!
//! [`subject`] makes a case with the answers of the main path: one thread, one process, the
//! explicit engine, no reduction. [`Inside::by_options`] reads the words of the command line, so
//! that a row of the table means the same in both forms.

use super::formula::formula;
use super::plain::{Found, Main};
use super::process::{Kind, specification};
use super::runs::{Answer, Counts};
use super::small::Needed;
use crate::support::random_text::Kind as Formulas;
use crate::support::tape::Tape;
use mu_check::base::{Budget, Diagnostic, Limits, SourceId, Stage};
use mu_check::compile::{Compiled, Confluence};
use mu_check::data::expr::DataSpec;
use mu_check::engines::{self, Capability, Engine, EngineOptions, EngineTask, Subject};
use mu_check::explore::{self, CountExtras, Silent};
use mu_check::formula::typecheck::check_formula;
use mu_check::formula::typed::TypedFormula;
use mu_check::lts::Lts;
use mu_check::model::Model;
use mu_check::pbes::Verdict;
use mu_check::process::labels::{ActionDecl, ActionLabels};
use mu_check::process::linear::LinearProcess;
use mu_check::process::spec::ProcSpec;
use mu_check::process::{linearise, typecheck};
use mu_check::symbolic::Strategy;
use mu_check::syntax;
use mu_check::syntax::ast::FormulaFile;
use std::sync::OnceLock;
use std::time::Duration;

/// Larger systems are left out.
const MOST_STATES: u64 = 1500;
/// States of the product after which the main path leaves a formula out.
const MOST_PAIRS: u64 = 4000;

/// Formulas that may need declarations which the specification does not.
const FIRST: usize = 4;

/// A case after reading, with the answers of the main path.
pub struct Inside {
    pub main: Main,
    pub(super) spec: ProcSpec,
    pub(super) linear: LinearProcess,
    pub(super) model: Compiled,
    pub(super) trees: Vec<FormulaFile>,
    pub(super) formulas: Vec<TypedFormula>,
    lts: OnceLock<Lts>,
    marked: OnceLock<(Compiled, Vec<TypedFormula>)>,
}

/// Most resident memory of the process, in bytes, before a search gives up.
const MEMORY: u64 = 6 << 30;

/// Returns a budget of states and time.
pub fn budget(states: Option<u64>, milliseconds: u64) -> Budget {
    let timeout = Some(Duration::from_millis(milliseconds));
    Budget::new(Limits { max_states: states, timeout, max_memory: Some(MEMORY) })
}

/// Converts the result of a command; an internal error is a failure.
///
/// # Errors
/// The internal error.
pub fn answer(found: Result<Verdict, Diagnostic>) -> Result<Answer, String> {
    match found {
        Ok(Verdict::True) => Ok(Answer::True),
        Ok(Verdict::False) => Ok(Answer::False),
        Ok(Verdict::Unknown(stop)) => Ok(Answer::Open(stop.word().into())),
        Err(Diagnostic { stop: Some(stop), .. }) => Ok(Answer::Open(stop.word().into())),
        Err(d) if d.stage == Stage::Internal => Err(format!("internal error: {}", d.message)),
        Err(d) => Ok(Answer::Refused(d.message)),
    }
}

/// Names the stage that failed.
pub fn at_stage(what: &'static str) -> impl Fn(Diagnostic) -> String {
    move |d| format!("{what}: {}", d.message)
}

/// Search options of a command, by their words.
pub struct Settings {
    engine: &'static dyn Engine,
    threads: usize,
    symmetry: bool,
    partial_order: bool,
    quotient: bool,
    strategy: Strategy,
    solver: Option<&'static dyn mu_check::game::solve::Solver>,
    confluence: bool,
    as_written: bool,
    pub(super) processes: usize,
}

impl Settings {
    /// Reads the words.
    pub fn of(words: &str) -> Self {
        let mut found = Self {
            engine: engines::engines()[0],
            threads: 2,
            symmetry: true,
            partial_order: true,
            quotient: true,
            strategy: Strategy::Saturation,
            solver: None,
            confluence: false,
            as_written: false,
            processes: 1,
        };
        let mut words = words.split_whitespace();
        while let Some(option) = words.next() {
            let value = words.next().expect("a value of the option");
            match (option, value) {
                ("--threads", n) => found.threads = n.parse().expect("a number"),
                ("--processes", n) => found.processes = n.parse().expect("a number"),
                ("--engine", name) => found.engine = engines::by_name(name).expect("an engine"),
                ("--solver", name) => {
                    found.solver = Some(mu_check::game::solve::by_name(name).expect("a solver"))
                }
                ("--strategy", "breadth-first") => found.strategy = Strategy::BreadthFirst,
                ("--strategy", "chaining") => found.strategy = Strategy::Chaining,
                ("--confluence", "auto") => found.confluence = true,
                ("--count", "all-parameters") => found.as_written = true,
                ("--without", names) => {
                    for name in names.split(',') {
                        match name {
                            "symmetry" => found.symmetry = false,
                            "quotient" => found.quotient = false,
                            "por" => found.partial_order = false,
                            other => panic!("`{other}` is no reduction"),
                        }
                    }
                }
                (option, value) => panic!("`{option} {value}` has no form within the process"),
            }
        }
        found
    }
    fn explore(&self, model: &dyn Model) -> explore::Options {
        let symmetry = self.symmetry && model.is_priority_proven();
        // Where equations are counted as written, all are meant.
        let partial_order = self.partial_order && !self.as_written;
        let options = explore::Options {
            threads: self.threads,
            symmetry,
            partial_order,
            expected_states: 64,
            ..Default::default()
        };
        options.with_confluence_of(model)
    }
    pub(super) fn confluence(&self) -> Confluence {
        if self.confluence { Confluence::Auto } else { Confluence::None }
    }
    fn wishes(&self) -> Vec<Capability> {
        if self.confluence { vec![Capability::Priority] } else { Vec::new() }
    }
    /// Returns the options of an engine.
    pub(super) fn options<'a>(&'a self, model: &dyn Model) -> EngineOptions<'a> {
        let solver = self.solver.map(|s| s as &dyn mu_check::game::solve::Solver);
        EngineOptions {
            solver,
            strategy: self.strategy,
            quotient: self.quotient,
            ..EngineOptions::new(self.explore(model))
        }
    }
    pub(super) fn check(
        &self,
        (model, labels): (&dyn Model, &dyn ActionLabels),
        formula: &TypedFormula,
        budget: &Budget,
    ) -> Result<Answer, String> {
        let (options, wishes) = (self.options(model), self.wishes());
        let task = EngineTask { capabilities: &wishes, options: &options, budget };
        let written;
        let formula = if self.as_written {
            written = TypedFormula { as_written: true, ..formula.clone() };
            &written
        } else {
            formula
        };
        answer(
            self.engine
                .check(Subject { model, labels }, formula, task)
                .map(|found| found.answer.verdict),
        )
    }
    pub(super) fn count(
        &self,
        model: &dyn Model,
        budget: &Budget,
    ) -> Result<Option<Counts>, String> {
        let (options, wishes) = (self.options(model), self.wishes());
        complete_counts(self.engine.count(
            model,
            EngineTask { capabilities: &wishes, options: &options, budget },
            CountExtras::default(),
        ))
    }
}

/// Returns the counts of a complete search.
pub(super) fn complete_counts(
    found: Result<engines::CountResult, Diagnostic>,
) -> Result<Option<Counts>, String> {
    let found = match found {
        Ok(found) => found,
        Err(d) if d.stop.is_some() => return Ok(None),
        Err(d) => return Err(format!("explore: {}", d.message)),
    };
    let number = |n: &num_bigint::BigUint| u64::try_from(n).unwrap_or(u64::MAX);
    match (found.stop, &found.transitions, &found.deadlocks) {
        (mu_check::base::Stop::Complete, Some(t), Some(d)) => {
            Ok(Some((number(&found.states), number(t), number(d))))
        }
        (mu_check::base::Stop::Complete, ..) => Err("explore: no counts".into()),
        _ => Ok(None),
    }
}

/// The main path.
const MAIN: &str = "--threads 1 --without symmetry,quotient,por";

/// Returns a linear process as a model.
pub(super) fn compile(process: LinearProcess, confluence: &Confluence) -> Result<Compiled, String> {
    Compiled::new(process, confluence).map_err(at_stage("compile"))
}

/// Returns a typed specification.
pub(super) fn read(text: &str) -> Result<ProcSpec, Diagnostic> {
    typecheck::check_specification(&syntax::parse_specification(SourceId::FIRST, text)?)
}

/// Makes a case with `most` formulas at most, one for each tape but the first, and asks the main
/// path. None if the system is too large or refused; formulas that the main path refuses or does
/// not decide are left out.
pub fn subject(
    seed: u64,
    tapes: &mut [Tape],
    most: usize,
    open: &mut dyn FnMut(&str),
) -> Result<Option<Inside>, String> {
    let kind = if seed % 12 == 11 { Kind::Timed } else { Kind::Usual };
    let mut made = specification(&mut tapes[0], kind);
    let kind_of = |i: usize| if i.is_multiple_of(3) { Formulas::Weak } else { Formulas::Any };
    let texts = tapes
        .iter_mut()
        .enumerate()
        .skip(1)
        .map(|(i, tape)| (i, formula(tape, kind_of(i), &made.mappings, made.bound)));
    let mut texts: Vec<(usize, String)> = texts.collect();
    let first: Vec<String> = texts.iter().take(FIRST).map(|t| t.1.clone()).collect();
    let needed = Needed::by(&made.text, &first);
    made.text = needed.cut(&made.text);
    texts.retain(|(_, text)| needed.allows(text));
    texts.truncate(most);
    let failed = |e: String| format!("main path: {e}\n--- m.mcrl2\n{}", made.text);
    let refused = |d: Diagnostic, open: &mut dyn FnMut(&str)| match d.stage {
        Stage::Internal => Err(failed(d.message)),
        _ => {
            open("refused specifications");
            Ok(None)
        }
    };
    let spec = match read(&made.text) {
        Ok(spec) => spec,
        Err(d) => return refused(d, open),
    };
    let linear = match linearise::linearise(&spec, &linearise::LineariserOptions::default()) {
        Ok(linear) => linear,
        Err(d) => return refused(d, open),
    };
    let model = match Compiled::new(linear.clone(), &Confluence::None) {
        Ok(model) => model,
        Err(d) => return refused(d, open),
    };
    let settings = Settings::of(MAIN);
    let counts = match settings.count(&model, &budget(Some(MOST_STATES), 4000)) {
        Ok(Some(counts)) => counts,
        Ok(None) => {
            open("too large");
            return Ok(None);
        }
        Err(e) if e.contains("internal") => return Err(failed(e)),
        Err(_) => {
            open("refused specifications");
            return Ok(None);
        }
    };
    let main = Main {
        seed,
        formulas: Vec::new(),
        tapes: Vec::new(),
        kinds: Vec::new(),
        answers: Vec::new(),
        counts,
        specification: made,
    };
    let mut found = Inside {
        main,
        spec,
        linear,
        model,
        trees: Vec::new(),
        formulas: Vec::new(),
        lts: OnceLock::new(),
        marked: OnceLock::new(),
    };
    for (i, text) in texts {
        let tree = syntax::parse_formula(SourceId::FIRST, &text).map_err(at_stage("formula"))?;
        let Ok(typed) = found.check_formula_over(&tree, &found.model) else {
            open("refused formulas");
            continue;
        };
        let said =
            settings.check((&found.model, &found.model), &typed, &budget(Some(MOST_PAIRS), 500));
        match said.map_err(|e| {
            format!(
                "main path: {e}\n--- formula\n{text}\n--- m.mcrl2\n{}",
                found.main.specification.text
            )
        })? {
            Answer::Open(_) => open("hard formulas"),
            Answer::Refused(_) => open("refused formulas"),
            answer => {
                found.main.formulas.push(text);
                found.main.tapes.push(i);
                found.main.kinds.push(kind_of(i));
                found.main.answers.push(answer);
                found.trees.push(tree);
                found.formulas.push(typed);
            }
        }
    }
    Ok(Some(found))
}

/// Time for a formula on a route.
const TIME: u64 = 4000;

impl Inside {
    /// Returns a formula over the data of a model.
    fn check_formula_over(
        &self,
        tree: &FormulaFile,
        model: &Compiled,
    ) -> Result<TypedFormula, Diagnostic> {
        check_formula(tree, &model.process().data, &model.process().actions)
    }
    /// Returns the transition system.
    ///
    /// # Errors
    /// Those of the model.
    pub fn lts(&self) -> Result<&Lts, String> {
        if let Some(lts) = self.lts.get() {
            return Ok(lts);
        }
        let options = explore::Options { threads: 1, ..Default::default() };
        let (_, lts) = explore::explore_lts(&self.model, &options, &Budget::default(), &Silent)
            .map_err(at_stage("explore"))?;
        Ok(self.lts.get_or_init(|| lts))
    }
    /// Answers by options of `check`, and of `explore` unless they are `-`.
    ///
    /// # Errors
    /// Those of the route.
    pub fn by_options(&self, check: &str, explore: &str) -> Result<Found, String> {
        let mut found = Found::default();
        if check.contains("--processes") || explore.contains("--processes") {
            return super::together::by_processes(self, check, explore);
        }
        if explore != "-" {
            found.counts = Settings::of(explore).count(&self.model, &budget(None, TIME))?;
        }
        if check != "-" {
            let settings = Settings::of(check);
            found.answers = if settings.confluence {
                let (model, formulas) = match self.marked.get() {
                    Some(known) => known,
                    None => {
                        let model = compile(self.linear.clone(), &Confluence::Auto)?;
                        let formulas = self.formulas_over(&model)?;
                        self.marked.get_or_init(|| (model, formulas))
                    }
                };
                check_all(&settings, (model, model), formulas)?
            } else {
                check_all(&settings, (&self.model, &self.model), &self.formulas)?
            };
        }
        Ok(found)
    }
    /// Returns the formulas over the data of another model of the same specification.
    ///
    /// # Errors
    /// A formula is refused there.
    pub(super) fn formulas_over(&self, model: &Compiled) -> Result<Vec<TypedFormula>, String> {
        self.trees
            .iter()
            .map(|tree| self.check_formula_over(tree, model).map_err(at_stage("formula")))
            .collect()
    }
    /// Finds the answers and the counts on another model, with these declarations of its labels.
    ///
    /// # Errors
    /// Those of the model.
    pub(super) fn answers_on(
        &self,
        words: &str,
        (model, labels): (&dyn Model, &dyn ActionLabels),
        (data, actions): (&DataSpec, &[ActionDecl]),
    ) -> Result<Found, String> {
        let settings = Settings::of(words);
        let mut found =
            Found { counts: settings.count(model, &budget(None, TIME))?, ..Found::default() };
        for tree in &self.trees {
            found.answers.push(Some(match check_formula(tree, data, actions) {
                Ok(formula) => settings.check((model, labels), &formula, &budget(None, TIME))?,
                Err(d) => Answer::Refused(d.message),
            }));
        }
        Ok(found)
    }
}

fn check_all(
    settings: &Settings,
    subject: (&dyn Model, &dyn ActionLabels),
    formulas: &[TypedFormula],
) -> Result<Vec<Option<Answer>>, String> {
    formulas
        .iter()
        .map(|formula| settings.check(subject, formula, &budget(None, TIME)).map(Some))
        .collect()
}
