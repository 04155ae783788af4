//! Patterns: which modalities of a formula state a label fits, and with what values for their
//! quantified variables.
//!
//! Whether a label fits depends only on the values that the conditions of modalities read (the
//! *context*: the instance of the outer quantifiers, mostly), not on what a state remembers of the
//! past; and what a state becomes depends on the label only by the pattern. Thus of `instances x
//! memories x labels` questions there remain `instances x labels` about fitting and, for each
//! state, as many as there are patterns: a handful. Labels are not indexed beforehand; a pattern is
//! found when it is first asked for.
//!
//! Cost: a lookup for (context, label) and one for (state, pattern). Invariant: states of one
//! context have the same patterns; a pattern has all solutions of its conditions, of which there
//! are at most [`MOST`].

use super::{Automaton, Demand, FormulaState, Key, Label, Seen, Sum};
use crate::rules::{Effect, When};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::Stage;
use mu_base::ids::VarId;
use mu_data::engine::Value;
use mu_formula::normal::NodeId;
use std::rc::Rc;

/// Most instances of modalities in a pattern; labels with more are evaluated for each state.
const MOST: usize = 64;

/// A rule, by its place among those of the node, and a solution for its unknowns if the target uses
/// them.
type Fit = (u32, Rc<[Value]>);

/// The patterns met, and the answers by pattern.
#[derive(Default)]
pub(super) struct Patterns {
    /// Positions of the live values that make the context; none if these are all: then patterns
    /// gain nothing.
    read: AHashMap<NodeId, Option<Rc<[usize]>>>,
    contexts: AHashMap<Key, u32>,
    /// By formula state, from 1; 0 is unknown.
    context_of: Vec<u32>,
    /// By context and label; none if it has no pattern.
    found: AHashMap<(u32, Seen), Option<u32>>,
    numbers: AHashMap<Rc<[Fit]>, u32>,
    patterns: Vec<Rc<[Fit]>>,
    answers: AHashMap<(FormulaState, u32), Demand>,
}

impl Patterns {
    pub(super) fn answer(&self, q: FormulaState, pattern: u32) -> Option<Demand> {
        self.answers.get(&(q, pattern)).copied()
    }
    pub(super) fn remember(&mut self, q: FormulaState, pattern: u32, answer: Demand) {
        self.answers.insert((q, pattern), answer);
    }
}

impl Automaton {
    /// The pattern of a label (under a name that equal labels share) for a state; none if the state
    /// is to be asked itself.
    pub(super) fn pattern(
        &mut self,
        q: FormulaState,
        name: Seen,
        label: &Label,
    ) -> Result<Option<u32>, Diagnostic> {
        let Some(context) = self.context(q) else { return Ok(None) };
        if let Some(&pattern) = self.patterns.found.get(&(context, name)) {
            return Ok(pattern);
        }
        let fits = match self.fits(q, label) {
            Ok(fits) => fits,
            // Another rule may decide all the same: that is for the state itself.
            Err(d) if d.stage == Stage::Data => None,
            Err(d) => return Err(d),
        };
        let pattern = fits.map(|fits| {
            let Patterns { numbers, patterns, .. } = &mut self.patterns;
            *numbers.entry(fits.into()).or_insert_with_key(|fits| {
                patterns.push(fits.clone());
                patterns.len() as u32 - 1
            })
        });
        self.patterns.found.insert((context, name), pattern);
        Ok(pattern)
    }

    fn context(&mut self, q: FormulaState) -> Option<u32> {
        if let Some(context @ 1..) = self.patterns.context_of.get(q.0 as usize) {
            return Some(*context);
        }
        let (node, values) = self.states[q.0 as usize].clone();
        let read = match self.patterns.read.get(&node) {
            Some(read) => read.clone(),
            None => {
                let read = self.positions_read(node);
                self.patterns.read.insert(node, read.clone());
                read
            }
        }?;
        let key: Key = (node, read.iter().map(|&at| values[at].clone()).collect());
        let Patterns { contexts, context_of, .. } = &mut self.patterns;
        let next = contexts.len() as u32 + 1;
        let context = *contexts.entry(key).or_insert(next);
        if context_of.len() <= q.0 as usize {
            context_of.resize(q.0 as usize + 1, 0);
        }
        context_of[q.0 as usize] = context;
        Some(context)
    }

    fn positions_read(&self, node: NodeId) -> Option<Rc<[usize]>> {
        let mut used: Vec<VarId> = Vec::new();
        for rule in &self.rules.states[&node].rules {
            if let (When::Label(conditions), Effect::Step(_)) = (&rule.when, rule.effect) {
                conditions.iter().flatten().for_each(|c| c.free_vars(&mut used));
            }
        }
        let live = self.normal.live(node);
        let read: Rc<[usize]> = (0..live.len()).filter(|&at| used.contains(&live[at])).collect();
        (read.len() < live.len()).then_some(read)
    }

    /// The instances of modalities that fit a label; none if there are too many.
    fn fits(&mut self, q: FormulaState, label: &Label) -> Result<Option<Vec<Fit>>, Diagnostic> {
        let (node, values) = self.states[q.0 as usize].clone();
        self.with_rules(node, |automaton, rules, compiled| {
            let mut fits: Vec<Fit> = Vec::new();
            for ((i, rule), run) in (0..).zip(&rules.rules).zip(compiled) {
                if !matches!((&rule.when, rule.effect), (When::Label(_), Effect::Step(_))) {
                    continue;
                }
                let full = automaton.each_fit(
                    node,
                    &values,
                    rules.universal,
                    rule,
                    run,
                    Some(label),
                    &mut |_, _, _, env| {
                        fits.push((i, env[values.len()..].into()));
                        Ok(fits.len() >= MOST)
                    },
                )?;
                if full {
                    return Ok(None);
                }
            }
            Ok(Some(fits))
        })
    }

    /// What a state demands along a label of a pattern.
    pub(super) fn follow(&mut self, q: FormulaState, pattern: u32) -> Result<Demand, Diagnostic> {
        let (node, values) = self.states[q.0 as usize].clone();
        let fits = self.patterns.patterns[pattern as usize].clone();
        self.with_rules(node, |automaton, rules, compiled| {
            let mut sum = Sum::default();
            for (i, solution) in fits.iter() {
                let Some(target) = &compiled[*i as usize].target else {
                    return Err(Diagnostic::new(
                        Stage::Internal,
                        "a matching modality has no target",
                    ));
                };
                let env: Vec<Value> = values.iter().chain(solution.iter()).cloned().collect();
                let decided = automaton.run_target(target, rules.universal, &env, &mut sum.out);
                if sum.add(decided.map_err(|d| automaton.explain(d, &rules.rules[*i as usize])))? {
                    return Ok(Demand::Decided);
                }
            }
            automaton.demand(sum)
        })
    }
}
