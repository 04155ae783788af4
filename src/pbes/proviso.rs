//! Conditions for partial-order reduction (`mu_explore`) in a product search, and the visible steps
//! that it must preserve.
//!
//! In: product analysis and automaton of a formula, the groups of a model. Out: a [`Visibility`];
//! after the search, a [`ReductionUse`]. A group is visible if some multi-action of the formula has
//! the action names of its labels. A reduced search preserves each sequence of visible labels, and
//! each state without steps with the sequences before it. So it preserves the verdict of a
//! conjunctive formula (dually a disjunctive one) under these conditions: it has no least fixed
//! points; steps with other labels leave each reached formula state as it is; and its local
//! obligations test only the existence of an outgoing transition. The second condition is checked
//! on the automaton, for each step and for all states at the end. A verdict that a step decides
//! needs none of this, since steps of a reduced search are steps of the model. Cost: one query for
//! each reached formula state.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::parallel_product::ProductTask;
use super::priority::{ForbiddenReason, Priority, modality, violated_condition};
use super::product::{ObligationKind, ProductAnalysis};
use super::rules::{Effect, RuleCondition};
use mu_base::{Diagnostic, Span};
use mu_explore::{PartialOrder, ReductionObstacle, ReductionSavings, Visibility};
use mu_formula::normal::{NodeId, NormalNode};

/// Use of partial-order reduction in a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReductionUse {
    /// There was no product search.
    #[default]
    None,
    /// Reduction was used.
    Used(ReductionSavings),
    /// Reduction was not used.
    Unused(ReductionObstacle),
    /// This part of the formula forbids reduction.
    Forbidden(ForbiddenReason, Span),
}

impl From<PartialOrder> for ReductionUse {
    fn from(of: PartialOrder) -> Self {
        match of {
            PartialOrder::None => ReductionUse::None,
            PartialOrder::Used(saved) => ReductionUse::Used(saved),
            PartialOrder::Unused(why) => ReductionUse::Unused(why),
        }
    }
}

impl ReductionUse {
    /// Combines the values for two parts of a formula.
    pub(super) fn and(self, other: ReductionUse) -> ReductionUse {
        match (self, other) {
            (ReductionUse::None, _) => other,
            (_, ReductionUse::None) => self,
            (ReductionUse::Used(mut saved), ReductionUse::Used(more)) => {
                saved += more;
                ReductionUse::Used(saved)
            }
            (ReductionUse::Used(_), _) => other,
            _ => self,
        }
    }
}

/// Returns the visibility for a search, or the reason against a reduction.
pub(super) fn visibility(
    task: ProductTask,
    automaton: &Automaton,
    analysis: &ProductAnalysis,
) -> Result<Visibility, ReductionUse> {
    if !task.explore.partial_order {
        return Err(ReductionUse::Unused(ReductionObstacle::Disabled));
    }
    if task.checkpoint_store.is_some() {
        return Err(ReductionUse::Unused(ReductionObstacle::Checkpoints));
    }
    let locals: Vec<NodeId> = analysis
        .kinds
        .iter()
        .filter(|(_, kind)| **kind == ObligationKind::Local)
        .map(|(node, _)| *node)
        .collect();
    if let Some(Priority::Forbidden(ban, place)) = violated_condition(automaton, analysis)
        && (ban != ForbiddenReason::Next
            || !locals.iter().all(|n| depends_on_any_label(automaton, *n)))
    {
        return Err(ReductionUse::Forbidden(ban, place));
    }
    let groups = task.model.groups();
    let visible = groups
        .iter()
        .map(|g| g.actions.as_ref().is_none_or(|names| automaton.has_names(names)))
        .collect();
    Ok(Visibility { visible, preserves_deadlocks: !locals.is_empty() })
}

/// True if a node is decided by the existence of outgoing labels alone.
fn depends_on_any_label(automaton: &Automaton, node: NodeId) -> bool {
    let rules = automaton.rules();
    rules.states.get(&node).is_some_and(|state| {
        let any = |when: &RuleCondition| match when {
            RuleCondition::Label(list) => list.iter().all(|c| c.as_ref() == Some(&rules.always)),
            RuleCondition::Always(_) => true,
        };
        let decides = |effect: Effect| match effect {
            Effect::Decide => true,
            Effect::Step(n) => matches!(automaton.normal().node(n), NormalNode::Const(_)),
            Effect::Here(_) => false,
        };
        state.rules.iter().all(|r| decides(r.effect) && r.unknowns.is_empty() && any(&r.when))
    })
}

/// True if a step with a label that the formula does not name changes a state.
pub(super) fn distinguishes_unnamed(
    automaton: &mut Automaton,
    q: FormulaState,
) -> Result<bool, Diagnostic> {
    let obligations = automaton.step_other(q)?;
    Ok(obligations == ObligationSet::Decided || automaton.set(obligations)[..] != [q])
}

/// Returns the reason against reduction that a formula state changes under unnamed labels.
pub(super) fn unnamed_label_obstacle(automaton: &Automaton, q: FormulaState) -> ReductionUse {
    ReductionUse::Forbidden(ForbiddenReason::Unnamed, modality(automaton, q, 0))
}

/// Returns [`unnamed_label_obstacle`] of the first such state; `None` if there is none.
pub(super) fn first_unnamed_label_obstacle(
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    reached: &[u32],
) -> Result<Option<ReductionUse>, Diagnostic> {
    for q in reached.iter().map(|q| FormulaState::of(*q)) {
        if analysis.kinds.get(&automaton.node(q)) != Some(&ObligationKind::Local)
            && distinguishes_unnamed(automaton, q)?
        {
            return Ok(Some(unnamed_label_obstacle(automaton, q)));
        }
    }
    Ok(None)
}
