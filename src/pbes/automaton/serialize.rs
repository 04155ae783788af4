//! Serialisation of formula states: as text for checkpoints, and as bytes for other processes.
//!
//! A state is the number of its node in the normal form, which depends on the formula only, and the
//! values of its live variables. Invariant: states that are read get their previous numbers.

use super::target::Interner;
use super::{Automaton, CompiledRule, FormulaState};
use mu_base::ids::SortId;
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{DataSpec, Expr};
use mu_data::{portable, text};
use mu_formula::normal::NodeId;

impl Automaton {
    /// Returns all states by number: node, values.
    ///
    /// # Errors
    /// A value without a textual form.
    pub fn export_states(&mut self) -> Result<Vec<Vec<String>>, Diagnostic> {
        let states = self.states.clone();
        let mut values: Vec<(Expr, Option<SortId>)> = Vec::new();
        for (node, own) in &states {
            for (value, sort) in own.iter().zip(self.sorts_of(*node)) {
                values.push((self.engine.to_expr_at(value, sort), Some(sort)));
            }
        }
        let values: Vec<(&Expr, Option<SortId>)> = values.iter().map(|(v, s)| (v, *s)).collect();
        let mut texts = text::round_trip_texts(&self.data_for_text(), &values)?.into_iter();
        let one = |(node, own): &super::Key| {
            std::iter::once(node.number().to_string())
                .chain(texts.by_ref().take(own.len()))
                .collect()
        };
        Ok(states.iter().map(one).collect())
    }

    /// Restores the numbers of states.
    ///
    /// # Errors
    /// States of another formula, or states exist already.
    pub fn import_states(&mut self, states: &[Vec<String>]) -> Result<(), Diagnostic> {
        let mismatch = || {
            Diagnostic::new(
                Stage::File,
                "the formula's states in the checkpoint are not those of this formula",
            )
        };
        let mut nodes = Vec::with_capacity(states.len());
        let mut texts = Vec::new();
        for state in states {
            let (node, own) = state.split_first().ok_or_else(mismatch)?;
            let node = node
                .parse()
                .ok()
                .map(NodeId::of)
                .filter(|n| self.rules.states.contains_key(n))
                .ok_or_else(mismatch)?;
            let sorts = self.sorts_of(node);
            if sorts.len() != own.len() {
                return Err(mismatch());
            }
            nodes.push((node, own.len()));
            texts.extend(own.iter().map(|t| &t[..]).zip(sorts.into_iter().map(Some)));
        }
        let mut values = text::read(&self.data_for_text(), texts.into_iter())
            .map_err(|_| mismatch())?
            .into_iter();
        for (n, (node, count)) in nodes.into_iter().enumerate() {
            let own = values
                .by_ref()
                .take(count)
                .map(|v| self.engine.from_expr(&v))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| mismatch())?;
            let Self { states, state_ids, .. } = self;
            if (Interner { states, state_ids }).number((node, own.into())).0 as usize != n {
                return Err(mismatch());
            }
        }
        Ok(())
    }

    /// Encodes a state as the same bytes in every process that has this formula.
    ///
    /// # Errors
    /// A value that is not portable.
    pub fn encode_state(&mut self, q: FormulaState) -> Result<Vec<u8>, Diagnostic> {
        let (node, own) = self.states[q.index()].clone();
        let mut out = Vec::new();
        put(&mut out, node.number().into());
        for (value, sort) in own.iter().zip(self.sorts_of(node)) {
            let value = self.engine.to_expr_at(value, sort);
            let bytes = portable::write(self.engine.program().signature(), &value)?;
            put(&mut out, bytes.len() as u64);
            out.extend(bytes);
        }
        Ok(out)
    }

    /// Returns an encoded state.
    ///
    /// # Errors
    /// The bytes encode no state of this formula.
    pub fn decode_state(&mut self, mut bytes: &[u8]) -> Result<FormulaState, Diagnostic> {
        let mismatch = || {
            Diagnostic::new(
                Stage::File,
                "another process sent a state that is not one of this formula",
            )
        };
        let node = take(&mut bytes)
            .and_then(|n| u32::try_from(n).ok())
            .map(NodeId::of)
            .ok_or_else(mismatch)?;
        let node = Some(node).filter(|n| self.rules.states.contains_key(n)).ok_or_else(mismatch)?;
        let mut own = Vec::new();
        for _ in 0..self.normal.live(node).len() {
            let length =
                take(&mut bytes).and_then(|n| usize::try_from(n).ok()).ok_or_else(mismatch)?;
            let (value, rest) = bytes.split_at_checked(length).ok_or_else(mismatch)?;
            bytes = rest;
            let value = portable::read(self.engine.program().signature(), value)?;
            own.push(self.engine.from_expr(&value)?);
        }
        if !bytes.is_empty() {
            return Err(mismatch());
        }
        let Self { states, state_ids, .. } = self;
        Ok(Interner { states, state_ids }.number((node, own.into())))
    }

    /// Encodes which rules were evaluated, and which of them matched; see
    /// [`Automaton::unmatched_modalities`].
    pub fn match_record(&self) -> Vec<u8> {
        let mut nodes: Vec<(&NodeId, &Vec<CompiledRule>)> = self.compiled.iter().collect();
        nodes.sort_unstable_by_key(|n| n.0);
        let mut out = Vec::new();
        put(&mut out, nodes.len() as u64);
        for (node, rules) in nodes {
            put(&mut out, node.number().into());
            out.extend(rules.iter().map(|rule| u8::from(rule.matched)));
        }
        out
    }

    /// Adds the record of another process.
    ///
    /// # Errors
    /// The bytes do not belong to this formula.
    pub fn merge_record(&mut self, bytes: &mut &[u8]) -> Result<(), Diagnostic> {
        let mismatch = || {
            Diagnostic::new(
                Stage::File,
                "the record of another process does not belong to this formula",
            )
        };
        for _ in 0..take(bytes).ok_or_else(mismatch)? {
            let node = take(bytes)
                .and_then(|n| u32::try_from(n).ok())
                .map(NodeId::of)
                .ok_or_else(mismatch)?;
            let rules = self.rules.clone();
            let rules = rules.states.get(&node).ok_or_else(mismatch)?;
            let (matched, rest) = bytes.split_at_checked(rules.rules.len()).ok_or_else(mismatch)?;
            *bytes = rest;
            let own = self.compiled.entry(node);
            let own = own.or_insert_with(|| {
                rules.rules.iter().map(|rule| CompiledRule::new(&rule.when)).collect()
            });
            own.iter_mut().zip(matched).for_each(|(rule, matched)| rule.matched |= *matched == 1);
        }
        Ok(())
    }

    fn sorts_of(&self, node: NodeId) -> Vec<SortId> {
        let signature = self.engine.program().signature();
        self.normal.live(node).iter().map(|v| signature.var(*v).sort).collect()
    }

    /// Returns the formula's data with the operations of its program, which the states' values use.
    fn data_for_text(&self) -> DataSpec {
        DataSpec { signature: self.engine.program().signature().clone(), ..self.data.clone() }
    }
}
