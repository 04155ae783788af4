//! The verdict of a formula on a model: plans the routes, runs them, explains.
//!
//! Input: model, its labels' multi-actions, typed formula. Output: verdict with figures, evidence,
//! and warnings about parts of the formula that were never put to the test. `plan` divides what the
//! formula asks of the initial state into tasks, each with its route; `run` finds the value of a
//! task; `explain` turns a strategy into evidence. A limit gives `Unknown`, never true or false.

use super::automaton::Automaton;
use super::confluence::Priority;
use super::explain::finish;
use super::parallel_product::Shelf;
use super::plan::{Plan, plan};
use super::proviso::Order;
use super::quotient::Reduced;
use super::run::Run;
use super::transitions::Source;
use mu_base::{Budget, Diagnostic, Span, Stop};
use mu_evidence::{Builder, Evidence};
use mu_explore::{Peers, Progress, RejectedSymmetry, Silent};
use mu_formula::typed::TypedFormula;
use mu_labels::ActionLabels;
use mu_model::Model;
use mu_solve::Solver;

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The formula holds.
    True,
    /// It does not.
    False,
    /// A limit came first.
    Unknown(Stop),
}

impl Verdict {
    /// The limit that came first, if one did.
    pub fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Unknown(stop) => Some(stop),
            Self::True | Self::False => None,
        }
    }
}

/// How a verdict was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
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
}

impl Route {
    /// Stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Route::Constant => "constant",
            Route::Product => "product",
            Route::Game => "game",
            Route::Symbolic => "symbolic product",
            Route::SymbolicGame => "symbolic game",
        }
    }
    /// Whether sets of states were searched.
    pub fn is_symbolic(self) -> bool {
        matches!(self, Route::Symbolic | Route::SymbolicGame)
    }
}

/// What is wanted.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Evidence wanted.
    pub evidence: bool,
    /// Also where it only says that a conjunction or a modality `[..]` holds everywhere, see
    /// [`Answer::telling`]: it is as large as the model.
    pub witnesses: bool,
    /// Take the game route whatever the formula's shape.
    pub force_game: bool,
    /// How to explore: caches, confluent groups.
    pub explore: &'a mu_explore::Options,
    /// Solver of games; none: the default one.
    pub solver: Option<&'a dyn Solver>,
    /// Who watches the search.
    pub progress: &'a dyn Progress,
    /// Where searches of the product are kept and gone on with.
    pub shelf: Option<&'a dyn Shelf>,
    /// A game with as many vertices is tried on a quotient of the model (0: always, however
    /// large), none: never; see [`super::quotient`].
    pub quotient_at: Option<usize>,
    /// Whether it is known that each run that the verdict is about ends. The model may stand for
    /// such runs and have cycles of its own.
    pub runs_end: bool,
    /// Processes that search together, all with the same arguments; none: this one alone.
    pub peers: Option<&'a dyn Peers>,
}

/// Vertices of a game that is not worth a quotient.
const SMALL_GAME: usize = 1 << 16;

impl<'a> Options<'a> {
    /// Whether evidence of this value is wanted, if a true verdict is `telling` or not.
    pub(super) fn wants_evidence(&self, telling: bool, value: bool) -> bool {
        self.evidence && (self.witnesses || telling || !value)
    }

    /// Evidence wanted, route by shape, default solver.
    pub fn new(explore: &'a mu_explore::Options) -> Self {
        Self {
            evidence: true,
            witnesses: true,
            force_game: false,
            explore,
            solver: None,
            progress: &Silent,
            shelf: None,
            quotient_at: Some(SMALL_GAME),
            runs_end: false,
            peers: None,
        }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// How it was found.
    pub route: Route,
    /// Boolean equations met: pairs of system state and formula state.
    pub equations: u64,
    /// Distinct system states met.
    pub states: u64,
    /// Why, if asked for and known.
    pub evidence: Option<Evidence>,
    /// Whether one who is told the verdict wants to see why: it is false, or
    /// [`TypedFormula::asks_for_witness`].
    pub telling: bool,
    /// Order of the largest group of symmetries that was used; at most 1: none.
    pub symmetries: usize,
    /// The quotient on which the game was played, if one was.
    pub reduced: Option<Reduced>,
    /// Whether confluent steps were taken at once.
    pub priority: Priority,
    /// Whether steps that do not matter were left out.
    pub order: Order,
    /// Candidates for symmetries that were not used.
    pub dropped: Vec<RejectedSymmetry>,
    /// Whether the first of several processes found some of it alone, while the others waited.
    pub alone: bool,
    /// Places of modalities that no transition met has ever fitted; complete only if the whole
    /// state space was met.
    pub never_met: Vec<Span>,
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
    let mut automaton = Automaton::new(formula)?.limited(budget);
    if let Some(shelf) = options.shelf {
        automaton.import_states(&shelf.names())?;
    }
    // Games and evidence are of all steps; the product search knows when confluent ones may be
    // taken at once.
    let plain = options.explore.without_confluence();
    let source = Source::new(model, &plain)?;
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
    answer.telling = formula.asks_for_witness();
    let mut run = Run { model, labels, source, automaton, options, budget, answer };
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
    let Run { source, automaton, mut answer, .. } = run;
    answer.states = answer.states.max(source.state_count() as u64);
    answer.verdict = match (value == all, stopped) {
        (true, Some(stop)) => Verdict::Unknown(stop),
        _ if value => Verdict::True,
        _ => Verdict::False,
    };
    if value == all && tasks.len() > 1 {
        // That of one operand does not show the whole.
        answer.evidence = None;
    }
    answer.telling |= answer.verdict == Verdict::False;
    answer.never_met = automaton.never_met();
    answer.equations += automaton.more_equations();
    Ok(answer)
}

impl Answer {
    /// The answer to a formula that needs no model.
    pub(super) fn constant(value: bool) -> Self {
        Answer {
            verdict: if value { Verdict::True } else { Verdict::False },
            route: Route::Constant,
            equations: 0,
            states: 1,
            evidence: None,
            telling: true,
            symmetries: 1,
            reduced: None,
            priority: Priority::None,
            order: Order::None,
            dropped: Vec::new(),
            alone: false,
            never_met: Vec::new(),
        }
    }
}
