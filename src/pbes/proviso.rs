//! What a search for a formula keeps while it leaves out steps (`mu_explore`'s partial-order
//! reduction), and whether the formula lets it.
//!
//! In: shape and automaton of a formula, the groups of a model. Out: an [`Visibility`]; after the search,
//! an [`Order`]. A group is visible if some multi-action of the formula has the action names of its
//! labels. A reduced search keeps each sequence of visible labels, and each state without steps
//! with the sequences before it. So it keeps the verdict of a conjunctive formula (dually a
//! disjunctive one) without least fixed points, of which steps with other labels leave each state
//! that is met as it is, and which asks of the labels that leave a state only whether there are
//! any, as `[true*]<true>true` does. That formula states stay as they are is asked of the
//! automaton, when a step comes up and for all states at the end; a verdict that a step decides
//! needs none of this, since steps of a reduced search are steps of the model. Cost: one question
//! for each formula state that is met.

use super::automaton::{Automaton, Demand, FormulaState};
use super::confluence::{Ban, Priority, forbidden, modality};
use super::parallel_product::Task;
use super::product::{Kind, Shape};
use super::rules::{Effect, When};
use mu_base::{Diagnostic, Span};
use mu_explore::{PartialOrder, ReductionObstacle, ReductionSavings, Visibility};
use mu_formula::normal::{Node, NodeId};

/// Whether steps were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// There was no search of a product.
    #[default]
    None,
    /// They were.
    Used(ReductionSavings),
    /// They were not.
    Unused(ReductionObstacle),
    /// They were not: this part of the formula forbids it.
    Forbidden(Ban, Span),
}

impl From<PartialOrder> for Order {
    fn from(of: PartialOrder) -> Self {
        match of {
            PartialOrder::None => Order::None,
            PartialOrder::Used(saved) => Order::Used(saved),
            PartialOrder::Unused(why) => Order::Unused(why),
        }
    }
}

impl Order {
    /// That of a formula of two parts.
    pub(super) fn and(self, other: Order) -> Order {
        match (self, other) {
            (Order::None, _) => other,
            (_, Order::None) => self,
            (Order::Used(mut saved), Order::Used(more)) => {
                saved += more;
                Order::Used(saved)
            }
            (Order::Used(_), _) => other,
            _ => self,
        }
    }
}

/// What a search is to keep, or why it takes all steps.
pub(super) fn visibility(
    task: Task,
    automaton: &Automaton,
    shape: &Shape,
) -> Result<Visibility, Order> {
    if !task.explore.partial_order {
        return Err(Order::Unused(ReductionObstacle::Disabled));
    }
    if task.shelf.is_some() {
        return Err(Order::Unused(ReductionObstacle::Checkpoints));
    }
    let locals: Vec<NodeId> = shape
        .kinds
        .iter()
        .filter(|(_, kind)| **kind == Kind::Local)
        .map(|(node, _)| *node)
        .collect();
    if let Some(Priority::Forbidden(ban, place)) = forbidden(automaton, shape)
        && (ban != Ban::Next || !locals.iter().all(|n| asks_for_any(automaton, *n)))
    {
        return Err(Order::Forbidden(ban, place));
    }
    let groups = task.model.groups();
    let visible = groups
        .iter()
        .map(|g| g.actions.as_ref().is_none_or(|names| automaton.has_names(names)))
        .collect();
    Ok(Visibility { visible, ends: !locals.is_empty() })
}

/// Whether a node is decided by whether there are labels, whatever they are.
fn asks_for_any(automaton: &Automaton, node: NodeId) -> bool {
    let rules = automaton.rules();
    rules.states.get(&node).is_some_and(|state| {
        let any = |when: &When| match when {
            When::Label(list) => list.iter().all(|c| c.as_ref() == Some(&rules.always)),
            When::Always(_) => true,
        };
        let decides = |effect: Effect| match effect {
            Effect::Decide => true,
            Effect::Step(n) => matches!(automaton.normal().node(n), Node::Const(_)),
            Effect::Here(_) => false,
        };
        state.rules.iter().all(|r| decides(r.effect) && r.unknowns.is_empty() && any(&r.when))
    })
}

/// Whether a step with a label that the formula does not name makes something else of a state.
pub(super) fn tells(automaton: &mut Automaton, q: FormulaState) -> Result<bool, Diagnostic> {
    let demand = automaton.step_other(q)?;
    Ok(demand == Demand::Decided || automaton.set(demand)[..] != [q])
}

/// What a state that tells such a step forbids.
pub(super) fn of_state(automaton: &Automaton, q: FormulaState) -> Order {
    Order::Forbidden(Ban::Unnamed, modality(automaton, q, 0))
}

/// The same of the first such state, if there is one.
pub(super) fn of_states(
    automaton: &mut Automaton,
    shape: &Shape,
    met: &[u32],
) -> Result<Option<Order>, Diagnostic> {
    for q in met.iter().map(|q| FormulaState(*q)) {
        if shape.kinds.get(&automaton.node(q)) != Some(&Kind::Local) && tells(automaton, q)? {
            return Ok(Some(of_state(automaton, q)));
        }
    }
    Ok(None)
}
