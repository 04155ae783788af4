//! Recording of the composition structure for explanations: see [`crate::anatomy`].
//!
//! In: the composed automata, their placement among the parameters, the network. Out: the same as
//! plain data over parameters. Cost: one substitution for each expression of the components'
//! summands.

use super::assemble::Placement;
use super::network::{ActionNames, Bag, Name, Network};
use super::sequential;
use crate::anatomy::{
    Anatomy, Automaton, ComponentEdge, ComponentOperator, Location, OperatorKind,
};
use crate::linear::{Act, Param};
use mu_base::ids::VarId;
use mu_data::expr::{Expr, Substitution};
use mu_data::signature::Signature;

/// Automata with their placement among the parameters of the linear process.
pub(super) struct PlacedAutomata<'a> {
    pub params: &'a [Param],
    pub placements: &'a [Placement],
    /// Variables of locations by parameters.
    pub as_param: &'a Substitution,
    /// Values for global variables.
    pub globals: &'a Substitution,
}

impl PlacedAutomata<'_> {
    /// Returns the automata over parameters.
    pub(super) fn automata(
        &self,
        automata: &[sequential::Automaton],
        signature: &mut Signature,
    ) -> Vec<Automaton> {
        automata
            .iter()
            .zip(self.placements)
            .map(|(a, placement)| self.automaton(a, placement, signature))
            .collect()
    }

    fn automaton(
        &self,
        automaton: &sequential::Automaton,
        placement: &Placement,
        signature: &mut Signature,
    ) -> Automaton {
        let over = |e: &Expr| e.substitute(self.as_param).substitute(self.globals);
        let locations = (automaton.locations.iter())
            .map(|l| Location {
                live: l
                    .vars
                    .iter()
                    .map(|v| self.params[placement.of_var[v]].var)
                    .collect::<Vec<VarId>>(),
                terminated: l.terminated,
            })
            .collect();
        let mut edges = Vec::with_capacity(automaton.edges.len());
        for e in &automaton.edges {
            let mut guard = Expr::boolean(signature, true);
            for conjunct in &e.guard {
                guard = Expr::and(signature, guard, over(conjunct));
            }
            let act = |a: &Act| Act { args: a.args.iter().map(over).collect(), ..a.clone() };
            edges.push(ComponentEdge {
                from: e.from,
                to: e.to,
                sum_vars: e.sum_vars.clone(),
                guard,
                acts: e.acts.iter().map(act).collect(),
            });
        }
        Automaton { locations, edges, initial: automaton.initial, is_phase: automaton.phase }
    }
}

/// Adds the operators of a network, and the list of operators above each component.
pub(super) fn operators(network: &Network, names: &ActionNames, anatomy: &mut Anatomy) {
    anatomy.above = vec![Vec::new(); anatomy.components.len()];
    let mut todo = vec![(network, Vec::new())];
    while let Some((node, above)) = todo.pop() {
        let text = |n: &Name| names.text(*n).to_string();
        let bag = |b: &Bag| {
            let mut texts: Vec<String> = b.iter().map(text).collect();
            texts.sort();
            texts
        };
        let (kind, inner, place) = match node {
            Network::Component(c) => {
                anatomy.above[*c] = above.into_iter().rev().collect();
                continue;
            }
            Network::Parallel(children) => {
                todo.extend(children.iter().map(|c| (c, above.clone())));
                continue;
            }
            Network::First { phase, left, right, .. } => {
                anatomy.above[*phase] = above.iter().rev().copied().collect();
                todo.extend([(&**left, above.clone()), (&**right, above)]);
                continue;
            }
            Network::Block(set, inner, place) => {
                (OperatorKind::Block(set.iter().map(text).collect()), inner, place)
            }
            Network::Hide(set, inner, place) => {
                (OperatorKind::Hide(set.iter().map(text).collect()), inner, place)
            }
            Network::Allow(bags, inner, place) => {
                (OperatorKind::Allow(bags.iter().map(bag).collect()), inner, place)
            }
            Network::Rename(map, inner, place) => (
                OperatorKind::Rename(map.iter().map(|(a, b)| (text(a), text(b))).collect()),
                inner,
                place,
            ),
            Network::Comm(rules, inner, place) => (
                OperatorKind::Comm(
                    rules.iter().map(|(lhs, to)| (bag(lhs), to.as_ref().map(text))).collect(),
                ),
                inner,
                place,
            ),
        };
        anatomy.operators.push(ComponentOperator { kind, place: *place });
        let mut above = above;
        above.push(anatomy.operators.len() - 1);
        todo.push((inner, above));
    }
}
