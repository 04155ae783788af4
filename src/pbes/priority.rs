//! Priority of confluent steps in a check: its conditions, and the first part of a formula that
//! violates them.
//!
//! In: product analysis and automaton of a formula. Out: a [`Priority`]. Priority of confluent tau
//! steps preserves branching bisimilarity (Groote, van de Pol 2000) but not divergence. So it
//! preserves the verdict of each formula that depends on weak traces alone. Three conditions are
//! sufficient. The formula is conjunctive without least fixed points, or dually disjunctive. It
//! does not depend on the outgoing labels of a state. A tau step leaves each reached formula state
//! unchanged. Cost: one query for each reached formula state.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::product::{ObligationKind, ProductAnalysis};
use super::rules::{Effect, RuleCondition};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Span};
use mu_formula::normal::{NodeId, NormalNode};
use mu_process::labels::ActionLabels;

/// Use of confluent steps in a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Priority {
    /// Not requested, or the model has no such steps.
    #[default]
    None,
    /// Confluent steps had priority.
    Used,
    /// This part of the formula forbids priority.
    Forbidden(ForbiddenReason, Span),
}

/// Property of a formula that priority or reduction does not preserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForbiddenReason {
    /// A least fixed point: runs must end, and priority does not preserve divergence.
    Endless,
    /// Dependence on the outgoing steps of a state.
    Next,
    /// Distinction between a tau step and no step.
    Hidden,
    /// Distinction between a step that the formula does not name and no step.
    Unnamed,
    /// Both universal and existential parts: a game.
    Game,
    /// Too many obligations for one search.
    Size,
}

impl ForbiddenReason {
    /// Returns the reason as text, for a message that begins with "not used:".
    pub fn text(self) -> &'static str {
        match self {
            ForbiddenReason::Endless => {
                "a least fixed point requires that runs end, and runs of tau steps are not preserved"
            }
            ForbiddenReason::Next => {
                "this depends on the outgoing steps of a state, and not all of them are preserved"
            }
            ForbiddenReason::Hidden => "this distinguishes a tau step from no step",
            ForbiddenReason::Unnamed => {
                "this distinguishes a step that the formula does not name from no step"
            }
            ForbiddenReason::Game => "this needs a game, which uses all steps",
            ForbiddenReason::Size => "there are too many obligations for one search",
        }
    }
    /// Returns the stable keyword for reports.
    pub fn word(self) -> &'static str {
        match self {
            ForbiddenReason::Endless => "least fixed point",
            ForbiddenReason::Next => "next steps",
            ForbiddenReason::Hidden => "hidden steps",
            ForbiddenReason::Unnamed => "unnamed steps",
            ForbiddenReason::Game => "game",
            ForbiddenReason::Size => "size",
        }
    }
}

impl Priority {
    /// Combines the values for two parts of a formula.
    pub(super) fn and(self, other: Priority) -> Priority {
        match (self, other) {
            (Priority::Forbidden(..), _) | (Priority::Used, Priority::None | Priority::Used) => {
                self
            }
            _ => other,
        }
    }
}

/// Returns the violated condition that follows from the formula alone; `None` if there is none.
pub(super) fn violated_condition(
    automaton: &Automaton,
    analysis: &ProductAnalysis,
) -> Option<Priority> {
    let normal = automaton.normal();
    let span = |node: &NodeId| match normal.node(*node) {
        NormalNode::Head(fix) => normal.fix(*fix).span,
        _ => normal.spans[node.index()],
    };
    if let Some(place) = analysis
        .hostile
        .iter()
        .filter(|n| matches!(normal.node(**n), NormalNode::Head(_)))
        .map(span)
        .min()
    {
        return Some(Priority::Forbidden(ForbiddenReason::Endless, place));
    }
    let local = analysis
        .kinds
        .iter()
        .filter(|(_, kind)| **kind == ObligationKind::Local)
        .map(|(node, _)| span(node))
        .min();
    local.map(|place| Priority::Forbidden(ForbiddenReason::Next, place))
}

/// Returns `Used` if a tau step leaves these formula states unchanged, else the modality that
/// distinguishes it from no step.
pub(super) fn priority_of_states(
    automaton: &mut Automaton,
    labels: &dyn ActionLabels,
    reached: &[u32],
) -> Result<Priority, Diagnostic> {
    for q in reached.iter().map(|q| FormulaState::of(*q)) {
        let obligations = automaton.step(q, LabelId::TAU, labels)?;
        if obligations == ObligationSet::Decided || automaton.set(obligations)[..] != [q] {
            return Ok(Priority::Forbidden(
                ForbiddenReason::Hidden,
                modality(automaton, q, automaton.rules().class(&[])),
            ));
        }
    }
    Ok(Priority::Used)
}

/// Returns the position of a modality of formula state `q` that a label of the class may match. A
/// modality that leads to another node than that of `q` is preferred.
pub(super) fn modality(automaton: &Automaton, q: FormulaState, class: usize) -> Span {
    let (normal, node) = (automaton.normal(), automaton.node(q));
    let rules = &automaton.rules().states[&node];
    let fitting = rules
        .rules
        .iter()
        .filter(|r| matches!(&r.when, RuleCondition::Label(list) if list[class].is_some()));
    let back = |effect: Effect| match effect {
        Effect::Step(n) => {
            n == node
                || matches!(normal.node(n), NormalNode::Call(fix, _) if normal.fix(*fix).head == node)
        }
        _ => false,
    };
    let mut places: Vec<(bool, Span)> = fitting.map(|r| (back(r.effect), r.span)).collect();
    places.sort_unstable();
    places.first().map_or(normal.spans[node.index()], |p| p.1)
}
