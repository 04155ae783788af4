//! Check of a formula on a model: plans the methods, runs them, explains the verdict.
//!
//! Input: model, its labels' multi-actions, typed formula. Output: verdict with counts, evidence,
//! and warnings about parts of the formula that were never tested. `plan` divides the formula at
//! the initial state into tasks, each with its method; `run` computes the value of a task;
//! `explain` turns a strategy into evidence. A limit gives `Unknown`, never true or false.

use super::automaton::{Automaton, Start};
use super::batches::BatchSizes;
use super::explain::finish;
use super::parallel_product::CheckpointStore;
use super::plan::{Plan, plan};
use super::priority::Priority;
use super::proviso::ReductionUse;
use super::quotient::QuotientSize;
use super::run::CheckRun;
use super::transitions::LazyTransitions;
use mu_base::{Budget, Diagnostic, Span, Stop};
use mu_evidence::{Builder, Evidence};
use mu_explore::{Peers, Progress, RejectedSymmetry, Silent};
use mu_formula::typed::{Modalities, TypedFormula};
use mu_game::solve::Solver;
use mu_model::Model;
use mu_process::labels::ActionLabels;

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The formula holds.
    True,
    /// It does not.
    False,
    /// A limit ended the check.
    Unknown(Stop),
}

impl Verdict {
    /// Returns the limit that ended the check, if any.
    pub fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Unknown(stop) => Some(stop),
            Self::True | Self::False => None,
        }
    }

    /// Returns the verdict for all transitions, given the verdict for a part of them, because a
    /// bound on store buffers cut the others: the same if the part is decisive.
    #[must_use]
    pub fn for_all_transitions(self, formula: &TypedFormula) -> Self {
        let Modalities { may, must } = formula.modalities();
        match self {
            Self::True if must => Self::Unknown(Stop::Buffer),
            Self::False if may => Self::Unknown(Stop::Buffer),
            decided => decided,
        }
    }
}

/// Method by which a verdict was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The formula is a constant.
    Constant,
    /// Reachability in the product; no game.
    Product,
    /// The parity game.
    Game,
    /// Symbolic search of the product.
    Symbolic,
    /// The parity game over sets of states.
    SymbolicGame,
    /// Pairs of components ([`super::pairs`]).
    Pairs,
}

impl Method {
    /// Returns the stable keyword for reports.
    pub fn word(self) -> &'static str {
        match self {
            Method::Constant => "constant",
            Method::Product => "product",
            Method::Game => "game",
            Method::Symbolic => "symbolic product",
            Method::SymbolicGame => "symbolic game",
            Method::Pairs => "pairs",
        }
    }
    /// True for symbolic search.
    pub fn is_symbolic(self) -> bool {
        matches!(self, Method::Symbolic | Method::SymbolicGame)
    }
}

/// Options of a check.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Compute evidence.
    pub evidence: bool,
    /// Also compute evidence that only shows that a conjunction or a modality `[..]` holds
    /// everywhere, see [`Answer::informative`]: it is as large as the model.
    pub witnesses: bool,
    /// Always solve a game.
    pub force_game: bool,
    /// Options of the exploration: caches, confluent groups.
    pub explore: &'a mu_explore::Options,
    /// Solver of games; `None`: the default one.
    pub solver: Option<&'a dyn Solver>,
    /// Receives progress reports.
    pub progress: &'a dyn Progress,
    /// Checkpoint store for product searches.
    pub checkpoint_store: Option<&'a dyn CheckpointStore>,
    /// Number of vertices from which a game is tried on a quotient of the model (0: always);
    /// `None`: never; see [`super::quotient`].
    pub quotient_at: Option<usize>,
    /// Sizes of the batches in which the sequential product search divides the initial obligations.
    pub batches: BatchSizes,
    /// True if termination of all runs was proved separately; cycles of the (abstract) model are
    /// then ignored.
    pub runs_end: bool,
    /// The other processes of a distributed search, all with the same arguments; `None`: this one
    /// alone.
    pub peers: Option<&'a dyn Peers>,
}

/// Number of vertices below which a game is not worth a quotient.
const SMALL_GAME: usize = 1 << 16;

impl<'a> Options<'a> {
    /// True if evidence for `value` is wanted; `informative` as in [`Answer::informative`].
    pub(super) fn wants_evidence(&self, informative: bool, value: bool) -> bool {
        self.evidence && (self.witnesses || informative || !value)
    }

    /// Returns the default options: evidence, method by the form of the formula, default solver.
    pub fn new(explore: &'a mu_explore::Options) -> Self {
        Self {
            evidence: true,
            witnesses: true,
            force_game: false,
            explore,
            solver: None,
            progress: &Silent,
            checkpoint_store: None,
            quotient_at: Some(SMALL_GAME),
            batches: BatchSizes::USUAL,
            runs_end: false,
            peers: None,
        }
    }
}

/// Result of a check.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// The method that found it.
    pub method: Method,
    /// Boolean equations generated: pairs of system state and formula state.
    pub equations: u64,
    /// Distinct system states.
    pub states: u64,
    /// Evidence, if requested and available.
    pub evidence: Option<Evidence>,
    /// True if evidence should be shown by default: the verdict is false, or
    /// [`TypedFormula::asks_for_witness`].
    pub informative: bool,
    /// Order of the largest symmetry group used; at most 1: none.
    pub symmetries: usize,
    /// The quotient on which the game was solved, if any.
    pub reduced: Option<QuotientSize>,
    /// Use of confluent steps.
    pub priority: Priority,
    /// Use of partial-order reduction.
    pub order: ReductionUse,
    /// Candidates for symmetries that were not used.
    pub dropped: Vec<RejectedSymmetry>,
    /// True if process 0 did part of the work alone while the others waited.
    pub alone: bool,
    /// Positions of modalities that no transition matched; complete only if the whole state space
    /// was explored.
    pub unmatched_modalities: Vec<Span>,
}

/// Checks a formula on a model.
///
/// # Errors
/// A value cannot be evaluated, or an invariant is broken. Limits are no errors: they give
/// [`Verdict::Unknown`].
pub fn check(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    options: Options,
    budget: &Budget,
) -> Result<Answer, Diagnostic> {
    let mut automaton = Automaton::new(formula)?.with_budget(budget);
    if let Some(checkpoint_store) = options.checkpoint_store {
        automaton.import_states(&checkpoint_store.names())?;
    }
    // Games and evidence use all steps; the product search decides when confluent steps may have
    // priority.
    let plain = options.explore.without_confluence();
    let source = LazyTransitions::new(model, &plain)?;
    let mut answer = Answer::constant(true);
    let (all, tasks) = match plan(&mut automaton, options.force_game)? {
        Plan::Constant(value) => {
            let mut answer = Answer::constant(value);
            if options.evidence {
                answer.evidence =
                    Some(finish(Builder::new((source.initial(), 0)), value, &source)?);
            }
            return Ok(answer);
        }
        Plan::Tasks(all, tasks) => (all, tasks),
    };
    answer.informative = formula.asks_for_witness();
    let mut run = CheckRun { model, labels, source, automaton, options, budget, answer };
    let mut stopped = None;
    let mut value = all;
    for (n, task) in tasks.iter().enumerate() {
        run.answer.evidence = None;
        match run.task(task, &format!("{n}"))? {
            Err(stop) => stopped = Some(stop),
            Ok(v) if v != all => {
                value = v;
                break;
            }
            Ok(_) => {}
        }
    }
    let CheckRun { source, automaton, mut answer, .. } = run;
    answer.states = answer.states.max(source.state_count() as u64);
    answer.verdict = match (value == all, stopped) {
        (true, Some(stop)) => Verdict::Unknown(stop),
        _ if value => Verdict::True,
        _ => Verdict::False,
    };
    if value == all && tasks.len() > 1 {
        // Evidence for one operand does not show the whole.
        answer.evidence = None;
    }
    answer.informative |= answer.verdict == Verdict::False;
    answer.unmatched_modalities = automaton.unmatched_modalities();
    answer.equations += automaton.more_equations();
    Ok(answer)
}

/// Returns the value of a formula that needs no model; `None` for other formulas.
///
/// # Errors
/// A value cannot be evaluated, or a limit.
pub fn constant_value(formula: &TypedFormula, budget: &Budget) -> Result<Option<bool>, Diagnostic> {
    Ok(match Automaton::new(formula)?.with_budget(budget).start()? {
        Start::Constant(value) => Some(value),
        Start::States(..) => None,
    })
}

impl Answer {
    /// Creates an answer without equations, states, evidence, and reductions.
    pub fn new(verdict: Verdict, method: Method) -> Self {
        Answer {
            verdict,
            method,
            equations: 0,
            states: 0,
            evidence: None,
            informative: true,
            symmetries: 1,
            reduced: None,
            priority: Priority::None,
            order: ReductionUse::None,
            dropped: Vec::new(),
            alone: false,
            unmatched_modalities: Vec::new(),
        }
    }
    /// Returns the answer for a formula that needs no model.
    pub(super) fn constant(value: bool) -> Self {
        let verdict = if value { Verdict::True } else { Verdict::False };
        Answer { states: 1, ..Answer::new(verdict, Method::Constant) }
    }
}
