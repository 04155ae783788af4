//! Whether confluent steps may be taken at once for a formula, and if not, which part of it forbids
//! that.
//!
//! In: shape and automaton of a formula. Out: a [`Priority`]. Priority for confluent hidden steps
//! keeps branching bisimilarity (Groote, van de Pol 2000) but not divergence, so it keeps the
//! verdict of a formula that asks for weak traces alone: a conjunctive one (dually a disjunctive
//! one) without least fixed points, which asks nothing of the labels that leave a state, and of
//! which hidden steps leave each state that is met as it is. Cost: one question for each formula
//! state that is met.

use super::automaton::{Automaton, Demand, FormulaState};
use super::product::{Kind, Shape};
use super::rules::{Effect, When};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Span};
use mu_formula::normal::{Node, NodeId};
use mu_labels::ActionLabels;

/// Whether confluent steps were taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Priority {
    /// Nobody asked for it, or the model has no such steps.
    #[default]
    None,
    /// They were.
    Used,
    /// They were not: this part of the formula forbids it.
    Forbidden(Ban, Span),
}

/// What a part of a formula says that the system with priority need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ban {
    /// Whether runs end.
    Endless,
    /// What is possible next in a state.
    Next,
    /// What comes after a hidden step.
    Hidden,
    /// What comes after a step that the formula does not name.
    Unnamed,
    /// Both what must and what may happen: a game.
    Game,
    /// So much at once that one search does not hold it.
    Size,
}

impl Ban {
    /// Why, after "not used:".
    pub fn text(self) -> &'static str {
        match self {
            Ban::Endless => {
                "a least fixed point asks whether runs end, and a run of hidden steps alone is not kept"
            }
            Ban::Next => "this asks which steps leave a state, and not all of them are kept",
            Ban::Hidden => "this tells a hidden step from none",
            Ban::Unnamed => "this tells a step that the formula does not name from none",
            Ban::Game => "this needs a game, which is played on all steps",
            Ban::Size => "the obligations are too many for one search",
        }
    }
    /// Stable word for reports.
    pub fn word(self) -> &'static str {
        match self {
            Ban::Endless => "least fixed point",
            Ban::Next => "next steps",
            Ban::Hidden => "hidden steps",
            Ban::Unnamed => "unnamed steps",
            Ban::Game => "game",
            Ban::Size => "size",
        }
    }
}

impl Priority {
    /// That of a formula of two parts.
    pub(super) fn and(self, other: Priority) -> Priority {
        match (self, other) {
            (Priority::Forbidden(..), _) | (Priority::Used, Priority::None | Priority::Used) => {
                self
            }
            _ => other,
        }
    }
}

/// What forbids priority whatever the model does.
pub(super) fn forbidden(automaton: &Automaton, shape: &Shape) -> Option<Priority> {
    let normal = automaton.normal();
    let span = |node: &NodeId| match normal.node(*node) {
        Node::Head(fix) => normal.fix(*fix).span,
        _ => normal.spans[node.index()],
    };
    if let Some(place) =
        shape.hostile.iter().filter(|n| matches!(normal.node(**n), Node::Head(_))).map(span).min()
    {
        return Some(Priority::Forbidden(Ban::Endless, place));
    }
    let local = shape
        .kinds
        .iter()
        .filter(|(_, kind)| **kind == Kind::Local)
        .map(|(node, _)| span(node))
        .min();
    local.map(|place| Priority::Forbidden(Ban::Next, place))
}

/// Whether a hidden step leaves these formula states as they are.
pub(super) fn of_states(
    automaton: &mut Automaton,
    labels: &dyn ActionLabels,
    met: &[u32],
) -> Result<Priority, Diagnostic> {
    for q in met.iter().map(|q| FormulaState(*q)) {
        let demand = automaton.step(q, LabelId::TAU, labels)?;
        if demand == Demand::Decided || automaton.set(demand)[..] != [q] {
            return Ok(Priority::Forbidden(
                Ban::Hidden,
                modality(
                    automaton,
                    q,
                    automaton.rules().class_of.get(&Vec::new()).copied().unwrap_or(0),
                ),
            ));
        }
    }
    Ok(Priority::Used)
}

/// The place of a modality of a state that a step of a class of labels may fit and that does not
/// lead back to the state's own node.
pub(super) fn modality(automaton: &Automaton, q: FormulaState, class: usize) -> Span {
    let (normal, node) = (automaton.normal(), automaton.node(q));
    let rules = &automaton.rules().states[&node];
    let fitting = rules
        .rules
        .iter()
        .filter(|r| matches!(&r.when, When::Label(list) if list[class].is_some()));
    let back = |effect: Effect| match effect {
        Effect::Step(n) => {
            n == node
                || matches!(normal.node(n), Node::Call(fix, _) if normal.fix(*fix).head == node)
        }
        _ => false,
    };
    let mut places: Vec<(bool, Span)> = fitting.map(|r| (back(r.effect), r.span)).collect();
    places.sort_unstable();
    places.first().map_or(normal.spans[node.index()], |p| p.1)
}
