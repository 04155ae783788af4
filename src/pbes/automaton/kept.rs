//! Formula states as text, so that a later run numbers them alike.
//!
//! A state is the number of its node in the normal form, which depends on the formula only, and the values of its live variables.
//! Invariant: states that are read get the numbers that they had.

use super::Automaton;
use super::target::Interner;
use mu_base::ids::SortId;
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{DataSpec, Expr};
use mu_data::text;
use mu_formula::normal::NodeId;

impl Automaton {
    /// All states by number: node, values. Error: a value that cannot be kept as text.
    pub fn export_states(&mut self) -> Result<Vec<Vec<String>>, Diagnostic> {
        let states = self.states.clone();
        let mut values: Vec<(Expr, Option<SortId>)> = Vec::new();
        for (node, own) in &states {
            for (value, sort) in own.iter().zip(self.sorts_of(*node)) {
                values.push((self.engine.to_expr_at(value, sort), Some(sort)));
            }
        }
        let values: Vec<(&Expr, Option<SortId>)> = values.iter().map(|(v, s)| (v, *s)).collect();
        let mut texts = text::faithful(&self.kept_data(), &values)?.into_iter();
        let one = |(node, own): &super::Key| std::iter::once(node.0.to_string()).chain(texts.by_ref().take(own.len())).collect();
        Ok(states.iter().map(one).collect())
    }

    /// Gives states the numbers that they had. Error: they are not those of this formula, or others were met before.
    pub fn import_states(&mut self, states: &[Vec<String>]) -> Result<(), Diagnostic> {
        let other = || Diagnostic::new(Stage::File, "the formula's states in the checkpoint are not those of this formula");
        let mut nodes = Vec::with_capacity(states.len());
        let mut texts = Vec::new();
        for state in states {
            let (node, own) = state.split_first().ok_or_else(other)?;
            let node = node.parse().ok().map(NodeId).filter(|n| self.rules.states.contains_key(n)).ok_or_else(other)?;
            let sorts = self.sorts_of(node);
            if sorts.len() != own.len() {
                return Err(other());
            }
            nodes.push((node, own.len()));
            texts.extend(own.iter().map(|t| &t[..]).zip(sorts.into_iter().map(Some)));
        }
        let mut values = text::read(&self.kept_data(), texts.into_iter()).map_err(|_| other())?.into_iter();
        for (n, (node, count)) in nodes.into_iter().enumerate() {
            let own = values.by_ref().take(count).map(|v| self.engine.from_expr(&v)).collect::<Result<Vec<_>, _>>().map_err(|_| other())?;
            let Self { states, state_ids, .. } = self;
            if (Interner { states, state_ids }).number((node, own.into())).0 as usize != n {
                return Err(other());
            }
        }
        Ok(())
    }

    fn sorts_of(&self, node: NodeId) -> Vec<SortId> {
        let signature = self.engine.program().signature();
        self.normal.live(node).iter().map(|v| signature.var(*v).sort).collect()
    }

    /// The formula's data with the operations of its program, which are those of the states' values.
    fn kept_data(&self) -> DataSpec {
        DataSpec { signature: self.engine.program().signature().clone(), ..self.data.clone() }
    }
}
