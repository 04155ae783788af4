//! Plan of a check: divides the formula at the initial state into tasks, each with a method.
//!
//! The operands of the outermost conjunction or disjunction that suit the product search
//! ([`super::product`]) form one task; an operand that suits the dual search is a task of its own;
//! the others form one parity game. Cost: linear in the operands.

use super::automaton::{Automaton, FormulaState, ObligationSet, Start};
use super::product::analyse;
use super::rules::RuleCondition;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_formula::normal::{NodeId, NormalNode};

/// Method that computes the value of a task first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskMethod {
    /// Product search, or a game if that fails.
    Product,
    /// A game.
    Game,
}

/// The conjunction or disjunction of some formula states at the initial state.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// True for a conjunction.
    pub conjunctive: bool,
    pub roots: Vec<FormulaState>,
    pub method: TaskMethod,
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
    let (mut by_product, mut others) = (Vec::new(), Vec::new());
    let mut suits: AHashMap<NodeId, bool> = AHashMap::new();
    for q in roots {
        let node = automaton.node(q);
        let suitable = !force_game
            && *suits.entry(node).or_insert_with(|| analyse(automaton, &[q], all).is_some());
        if suitable { by_product.push(q) } else { others.push(q) }
    }
    let mut tasks = Vec::new();
    if !by_product.is_empty() {
        tasks.push(Task { conjunctive: all, roots: by_product, method: TaskMethod::Product });
    }
    let mut by_game = Vec::new();
    for q in others {
        // A single state of the other connective may suit the dual search: `<true*.a>true` on its
        // own.
        if !force_game && analyse(automaton, &[q], !all).is_some() {
            tasks.push(Task { conjunctive: !all, roots: vec![q], method: TaskMethod::Product });
        } else {
            by_game.push(q);
        }
    }
    if !by_game.is_empty() {
        tasks.push(Task { conjunctive: all, roots: by_game, method: TaskMethod::Game });
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
        let is_nested = rules.universal == all
            && !matches!(automaton.normal().node(node), NormalNode::Head(_))
            && rules.rules.iter().all(|r| matches!(r.when, RuleCondition::Always(_)));
        if !is_nested {
            out.push(q);
            continue;
        }
        let here = automaton.obligations_here(q)?;
        if here == ObligationSet::Decided {
            return Ok(None);
        }
        stack.extend(automaton.set(here).iter());
    }
    out.sort_unstable();
    Ok(Some(out))
}
