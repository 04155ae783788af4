//! The verdict of a formula on a model: chooses the route, runs it, gives evidence.
//!
//! Input: model, its labels' multi-actions, typed formula. Output: verdict with figures, evidence, and warnings about parts of the formula
//! that were never put to the test. Routes: the product search for conjunctive and disjunctive formulas ([`super::product`]), else the
//! parity game ([`super::instantiate`]). A limit gives `Unknown`, never true or false.

use super::automaton::{Automaton, Demand, FormulaState, Start};
use super::flow::{self, Shelf};
use super::instantiate::{self, Instance, Instantiation};
use super::priority::{Ban, Priority};
use super::product::{self, Product, Shape, shape};
use super::quotient::{self, Reduced, Whole};
use super::rules::When;
use super::source::Source;
use super::trace;
use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Diagnostic, Span, Stop};
use mu_evidence::{Builder, Evidence};
use mu_explore::{Dropped, Progress, Silent};
use mu_formula::normal::{Node, NodeId};
use mu_formula::typed::TypedFormula;
use mu_labels::ActionLabels;
use mu_model::Model;
use mu_model::from_lts::LtsModel;
use mu_solve::{Solver, default_solver};
use std::time::Instant;

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
}

impl Route {
    /// Stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Route::Constant => "constant",
            Route::Product => "product",
            Route::Game => "game",
            Route::Symbolic => "symbolic product",
        }
    }
}

/// What is wanted.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Evidence wanted.
    pub evidence: bool,
    /// Also where it only says that a conjunction or a modality `[..]` holds everywhere, see [`Answer::telling`]: it is as large as the model.
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
    /// A game with as many vertices is tried on a quotient of the model (0: always, however large), none: never; see [`super::quotient`].
    pub quotient_at: Option<usize>,
    /// Whether it is known that each run that the verdict is about ends. The model may stand for such runs and have cycles of its own.
    pub runs_end: bool,
}

/// Vertices of a game that is not worth a quotient.
const SMALL_GAME: usize = 1 << 16;

impl<'a> Options<'a> {
    /// Whether evidence of this value is wanted, if a true verdict is `telling` or not.
    fn wants_evidence(&self, telling: bool, value: bool) -> bool {
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
    /// Whether one who is told the verdict wants to see why: it is false, or [`TypedFormula::asks_for_witness`].
    pub telling: bool,
    /// Order of the largest group of symmetries that was used; at most 1: none.
    pub symmetries: usize,
    /// The quotient on which the game was played, if one was.
    pub reduced: Option<Reduced>,
    /// Whether confluent steps were taken at once.
    pub priority: Priority,
    /// Candidates for symmetries that were not used.
    pub dropped: Vec<Dropped>,
    /// Places of modalities that no transition met has ever fitted; complete only if the whole state space was met.
    pub never_met: Vec<Span>,
}

/// Checks a formula on a model.
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
    // Games and evidence are of all steps; the product search knows when confluent ones may be taken at once.
    let plain = options.explore.without_confluence();
    let mut source = Source::new(model, &plain)?;
    let mut answer = Answer {
        verdict: Verdict::True,
        route: Route::Constant,
        equations: 0,
        states: 1,
        evidence: None,
        telling: true,
        symmetries: 1,
        reduced: None,
        priority: Priority::None,
        dropped: Vec::new(),
        never_met: Vec::new(),
    };
    let (all, roots) = match automaton.start()? {
        Start::Constant(value) => {
            answer.verdict = if value { Verdict::True } else { Verdict::False };
            if options.evidence {
                answer.evidence = Some(finish(Builder::new((source.initial(), 0)), value, &source)?);
            }
            return Ok(answer);
        }
        Start::States(all, roots) => (all, roots),
    };
    let Some(roots) = operands(&mut automaton, all, roots)? else {
        answer.verdict = if all { Verdict::False } else { Verdict::True };
        if options.evidence {
            answer.evidence = Some(finish(Builder::new((source.initial(), 0)), !all, &source)?);
        }
        return Ok(answer);
    };
    // The start's operands that fit the product route go there together; the others make one game.
    answer.telling = formula.asks_for_witness();
    let (mut quick, mut hard) = (Vec::new(), Vec::new());
    let mut fitting: AHashMap<NodeId, bool> = AHashMap::new();
    for q in roots {
        let node = automaton.node(q);
        let fits = !options.force_game && *fitting.entry(node).or_insert_with(|| shape(&automaton, &[q], all).is_some());
        if fits { quick.push(q) } else { hard.push(q) }
    }
    // A single state of the other connective may fit the dual search: `<true*.a>true` as an operand of nothing.
    let mut tasks: Vec<(bool, Vec<FormulaState>, bool)> = Vec::new();
    if !quick.is_empty() {
        tasks.push((all, quick, true));
    }
    let mut rest = Vec::new();
    for q in hard {
        if !options.force_game && shape(&automaton, &[q], !all).is_some() {
            tasks.push((!all, vec![q], true));
        } else {
            rest.push(q);
        }
    }
    if !rest.is_empty() {
        tasks.push((all, rest, false));
    }
    let mut stopped = None;
    let mut value = all;
    let single = tasks.len() == 1;
    for (n, (connective, roots, by_product)) in tasks.into_iter().enumerate() {
        answer.evidence = None;
        let by_product = by_product.then(|| format!("{n}"));
        let by_product = by_product.as_deref();
        let result = one(model, &mut source, labels, &mut automaton, (connective, &roots), by_product, options, budget, &mut answer)?;
        match result {
            Err(stop) => stopped = Some(stop),
            Ok(v) if v != all => {
                value = v;
                break;
            }
            Ok(_) => {}
        }
    }
    answer.states = answer.states.max(source.state_count() as u64);
    answer.verdict = match (value == all, stopped) {
        (true, Some(stop)) => Verdict::Unknown(stop),
        _ if value => Verdict::True,
        _ => Verdict::False,
    };
    if value == all && !single {
        // That of one operand does not show the whole.
        answer.evidence = None;
    }
    answer.telling |= answer.verdict == Verdict::False;
    answer.never_met = automaton.never_met();
    answer.equations += automaton.more_equations();
    Ok(answer)
}

/// Value of the conjunction or disjunction of some states at the initial system state. `by_product`: the name of the search of the product, if
/// that is the route.
#[allow(clippy::too_many_arguments)]
fn one(
    model: &dyn Model,
    source: &mut Source,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    start: (bool, &[FormulaState]),
    by_product: Option<&str>,
    options: Options,
    budget: &Budget,
    answer: &mut Answer,
) -> Result<Result<bool, Stop>, Diagnostic> {
    if let Some(name) = by_product
        && let Some(shape) = shape(automaton, start.1, start.0)
    {
        if answer.route == Route::Constant {
            answer.route = Route::Product;
        }
        let shelf = options.shelf.map(|s| (s, name));
        let task =
            flow::Task { model, labels, explore: options.explore, budget, progress: options.progress, shelf, runs_end: options.runs_end };
        let flow::Searched { found, priority, dropped } = flow::search(task, automaton, &shape, start.1)?;
        dropped.into_iter().for_each(|d| {
            if !answer.dropped.contains(&d) {
                answer.dropped.push(d)
            }
        });
        answer.priority = answer.priority.and(priority);
        let outcome = match found {
            Some((outcome, figures)) if outcome != product::Outcome::Cycle => {
                answer.equations += figures.configurations;
                answer.states = answer.states.max(figures.states);
                answer.symmetries = answer.symmetries.max(figures.symmetries);
                outcome
            }
            // Cycles matter, or there are too many different sets for one search: then on all steps.
            other => {
                if priority == Priority::Used && other.is_none() {
                    answer.priority = Priority::Forbidden(Ban::Size, source_of(automaton, start.1));
                }
                in_batches(source, labels, automaton, &shape, start.1, budget, answer)?
            }
        };
        match outcome {
            product::Outcome::Stopped(stop) => return Ok(Err(stop)),
            product::Outcome::Verdict(value) => {
                if options.wants_evidence(answer.telling, value) && value != start.0 {
                    answer.evidence = match trace::shortest(source, labels, automaton, &shape, start.1, budget)? {
                        Some(builder) => Some(finish(builder, value, source)?),
                        None => None,
                    };
                }
                return Ok(Ok(value));
            }
            product::Outcome::Cycle => {}
        }
    }
    answer.route = Route::Game;
    if options.explore.confluent.iter().any(|c| *c) {
        answer.priority = answer.priority.and(Priority::Forbidden(Ban::Game, source_of(automaton, start.1)));
    }
    let solver = options.solver.unwrap_or(default_solver());
    let mut game = Instantiation::new(source, automaton, start);
    let mut most = options.quotient_at.unwrap_or(usize::MAX);
    let outcome = loop {
        if let Some(outcome) = game.run(source, labels, automaton, solver, most, budget)? {
            break outcome;
        }
        // As many states as the game has vertices cost about as much as the game did.
        let states = if options.quotient_at == Some(0) { usize::MAX } else { game.vertex_count() };
        match Whole::explore(source, automaton, labels, states, budget)? {
            Err(stop) => break instantiate::Outcome::Stopped(stop),
            Ok(None) => most = most.max(1).saturating_mul(4),
            Ok(Some(whole)) => {
                if let Some(result) = on_quotient(&whole, source, labels, automaton, start, options, budget, answer)? {
                    return Ok(result);
                }
                most = usize::MAX;
            }
        }
    };
    let instance = game.instance();
    answer.equations += instance.arena.len() as u64;
    match outcome {
        instantiate::Outcome::Stopped(stop) => Ok(Err(stop)),
        instantiate::Outcome::Verdict(value) => {
            if options.wants_evidence(answer.telling, value) {
                let builder = game_evidence(&instance, value, source);
                answer.evidence = Some(finish(builder, value, source)?);
            }
            Ok(Ok(value))
        }
    }
}

/// The place of the first of some formula states.
fn source_of(automaton: &Automaton, states: &[FormulaState]) -> Span {
    states.iter().map(|q| automaton.normal().spans[automaton.node(*q).index()]).min().unwrap_or_default()
}

/// The game on the states' classes; none if there are too many of them.
#[allow(clippy::too_many_arguments)]
fn on_quotient(
    whole: &Whole,
    source: &mut Source,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    start: (bool, &[FormulaState]),
    options: Options,
    budget: &Budget,
    answer: &mut Answer,
) -> Result<Option<Result<bool, Stop>>, Diagnostic> {
    let plain = options.explore.without_confluence();
    let solver = options.solver.unwrap_or(default_solver());
    let mut blind = quotient::blind(automaton, labels)?;
    loop {
        let quotient = whole.quotient(blind, plain.thread_count());
        if options.quotient_at != Some(0) && quotient.reduced.classes > whole.state_count() / 4 * 3 {
            return Ok(None);
        }
        let model = LtsModel::new(quotient.lts.clone());
        let mut classes = Source::new(&model, &plain)?;
        let mut game = Instantiation::new(&classes, automaton, start);
        let Some(outcome) = game.run(&mut classes, labels, automaton, solver, usize::MAX, budget)? else { return Ok(None) };
        // The game may have met formula states that tell hidden steps.
        if blind && !quotient::blind(automaton, labels)? {
            blind = false;
            continue;
        }
        let instance = game.instance();
        answer.equations += instance.arena.len() as u64;
        answer.reduced = Some(quotient.reduced);
        return Ok(Some(match outcome {
            instantiate::Outcome::Stopped(stop) => Err(stop),
            instantiate::Outcome::Verdict(value) => {
                if options.wants_evidence(answer.telling, value) {
                    let builder = whole.evidence(&quotient, &instance, value, source, &classes)?;
                    answer.evidence = Some(finish(builder, value, source)?);
                }
                Ok(value)
            }
        }));
    }
}

/// The start's states with those that merely stand for others of their connective (`forall x. …`) taken apart; none if one is decided.
fn operands(automaton: &mut Automaton, all: bool, roots: Vec<FormulaState>) -> Result<Option<Vec<FormulaState>>, Diagnostic> {
    let mut seen = AHashSet::new();
    let mut out = Vec::new();
    let mut stack = roots;
    while let Some(q) = stack.pop() {
        if !seen.insert(q) {
            continue;
        }
        let node = automaton.node(q);
        let rules = &automaton.rules().states[&node];
        let apart = rules.universal == all
            && !matches!(automaton.normal().node(node), Node::Head(_))
            && rules.rules.iter().all(|r| matches!(r.when, When::Always(_)));
        if !apart {
            out.push(q);
            continue;
        }
        let here = automaton.here(q)?;
        if here == Demand::Decided {
            return Ok(None);
        }
        stack.extend(automaton.set(here).iter());
    }
    out.sort_unstable();
    Ok(Some(out))
}

/// Obligations that start one search together, if there are too many for one: fewer of them share more of their sets, more of them
/// share the exploration.
const FIRST_BATCH: usize = 16;

/// The product search, for many starting obligations in batches whose size is adapted to the time that they take.
fn in_batches(
    source: &mut Source,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
    budget: &Budget,
    answer: &mut Answer,
) -> Result<product::Outcome, Diagnostic> {
    let mut size = if roots.len() <= 4 * FIRST_BATCH { roots.len() } else { FIRST_BATCH };
    let (mut at, mut growing) = (0, true);
    // Seconds an obligation in the batch before; the first batch explores the model and says nothing.
    let mut before: Option<f64> = None;
    let mut acyclic = None;
    while at < roots.len() {
        let batch = &roots[at..(at + size).min(roots.len())];
        let start = Instant::now();
        let mut product = Product::new(source, labels, automaton, shape);
        let outcome = product.run(batch, &mut acyclic, budget)?;
        answer.equations += product.figures.configurations;
        if outcome != product::Outcome::Verdict(shape.universal) {
            return Ok(outcome);
        }
        let cost = start.elapsed().as_secs_f64() / batch.len() as f64;
        if at > 0 && growing {
            if before.is_none_or(|b| cost < 0.95 * b) {
                size *= 2;
            } else {
                size = (size / 2).max(1);
                growing = false;
            }
            before = Some(cost);
        }
        at += batch.len();
    }
    Ok(product::Outcome::Verdict(shape.universal))
}

/// The transitions that the winner's strategy needs from the start.
fn game_evidence(instance: &Instance, value: bool, source: &Source) -> Builder {
    let mut builder = Builder::new((source.initial(), 0));
    let mut seen = AHashSet::new();
    let mut queue = std::collections::VecDeque::from([0u32]);
    seen.insert(0u32);
    while let Some(v) = queue.pop_front() {
        let (s, _) = instance.configurations[v as usize];
        if let Some(&(label, target)) = instance.deciding.get(&v) {
            builder.step((s, 0), label, (target, 0));
            continue;
        }
        let mut follow = Vec::new();
        if instance.arena.is_universal(v) != value {
            // The winner's own vertex: its choice (none if a rule decided it here).
            follow.extend(instance.arena.chosen(v));
        } else {
            follow.extend(instance.arena.edges(v));
        }
        for edge in follow {
            if let Some(label) = edge.label {
                builder.step((s, 0), label, (instance.configurations[edge.to as usize].0, 0));
            }
            if seen.insert(edge.to) {
                queue.push_back(edge.to);
            }
        }
    }
    builder
}

fn finish(builder: Builder, verdict: bool, source: &Source) -> Result<Evidence, Diagnostic> {
    let mut explainer = source.explainer();
    let before = explainer.initial()?;
    builder.finish(verdict, before, &mut |s| source.vector(s), &mut |from, label, to| explainer.step(from, label, to))
}
