//! Plan of a check: divides the formula at the initial state into tasks, each with a route.
//!
//! The operands of the outermost conjunction or disjunction that suit the product search
//! ([`super::product`]) form one task; an operand that suits the dual search is a task of its own;
//! the others form one parity game. Cost: linear in the operands.

use super::automaton::{Automaton, Demand, FormulaState, Start};
use super::product::shape;
use super::rules::When;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_formula::normal::{NodeId, NormalNode};

/// Route of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskRoute {
    /// Product search, or a game if that fails.
    Product,
    /// A game.
    Game,
}

/// The conjunction or disjunction of some formula states at the initial state.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// True for a conjunction.
    pub all: bool,
    pub roots: Vec<FormulaState>,
    pub route: TaskRoute,
}

/// The tasks of a check.
pub(super) enum Plan {
    /// The formula has this value in every model.
    Constant(bool),
    /// The conjunction (`true`) or disjunction of the tasks.
    Tasks(bool, Vec<Task>),
}

/// Plans the check of the formula at the initial state.
pub(super) fn plan(automaton: &mut Automaton, force_game: bool) -> Result<Plan, Diagnostic> {
    let (all, roots) = match automaton.start()? {
        Start::Constant(value) => return Ok(Plan::Constant(value)),
        Start::States(all, roots) => (all, roots),
    };
    let Some(roots) = operands(automaton, all, roots)? else { return Ok(Plan::Constant(!all)) };
    let (mut quick, mut hard) = (Vec::new(), Vec::new());
    let mut fitting: AHashMap<NodeId, bool> = AHashMap::new();
    for q in roots {
        let node = automaton.node(q);
        let fits = !force_game
            && *fitting.entry(node).or_insert_with(|| shape(automaton, &[q], all).is_some());
        if fits { quick.push(q) } else { hard.push(q) }
    }
    let mut tasks = Vec::new();
    if !quick.is_empty() {
        tasks.push(Task { all, roots: quick, route: TaskRoute::Product });
    }
    let mut rest = Vec::new();
    for q in hard {
        // A single state of the other connective may suit the dual search: `<true*.a>true` on its
        // own.
        if !force_game && shape(automaton, &[q], !all).is_some() {
            tasks.push(Task { all: !all, roots: vec![q], route: TaskRoute::Product });
        } else {
            rest.push(q);
        }
    }
    if !rest.is_empty() {
        tasks.push(Task { all, roots: rest, route: TaskRoute::Game });
    }
    Ok(Plan::Tasks(all, tasks))
}

/// Returns the formula states at the initial state, with nested ones of the same connective
/// (`forall x. …`) expanded; `None` if one is decided.
fn operands(
    automaton: &mut Automaton,
    all: bool,
    roots: Vec<FormulaState>,
) -> Result<Option<Vec<FormulaState>>, Diagnostic> {
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
            && !matches!(automaton.normal().node(node), NormalNode::Head(_))
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
