//! The plan of a check: what the formula asks of the initial state, divided into tasks with a route
//! each.
//!
//! The operands of the outermost conjunction or disjunction that fit the product search
//! ([`super::product`]) go there together; one that fits the dual search goes there alone; the
//! others make one parity game. Cost: linear in the operands.

use super::automaton::{Automaton, Demand, FormulaState, Start};
use super::product::shape;
use super::rules::When;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_formula::normal::{Node, NodeId};

/// How the value of a task is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the product search, or by a game where that fails.
    Product,
    /// By a game.
    Game,
}

/// The conjunction or disjunction of some formula states at the initial state.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Whether all must hold, or one.
    pub all: bool,
    pub roots: Vec<FormulaState>,
    pub way: Way,
}

/// What there is to do.
pub(super) enum Plan {
    /// The formula has this value in every model.
    Constant(bool),
    /// The conjunction (`true`) or disjunction of the tasks.
    Tasks(bool, Vec<Task>),
}

/// Divides what the formula asks of the initial state.
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
        tasks.push(Task { all, roots: quick, way: Way::Product });
    }
    let mut rest = Vec::new();
    for q in hard {
        // A single state of the other connective may fit the dual search: `<true*.a>true` as an
        // operand of nothing.
        if !force_game && shape(automaton, &[q], !all).is_some() {
            tasks.push(Task { all: !all, roots: vec![q], way: Way::Product });
        } else {
            rest.push(q);
        }
    }
    if !rest.is_empty() {
        tasks.push(Task { all, roots: rest, way: Way::Game });
    }
    Ok(Plan::Tasks(all, tasks))
}

/// The start's states with those that merely stand for others of their connective (`forall x. …`)
/// taken apart; none if one is decided.
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
