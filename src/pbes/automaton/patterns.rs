//! Patterns: the modalities of a formula state that a label matches, with values for their
//! quantified variables.
//!
//! A match depends only on the values that the conditions of modalities read (the *context*, mostly
//! the instance of the outer quantifiers), not on the other live values of a state. The successors
//! of a state depend on the label only through the pattern. So instead of
//! `instances x memories x labels` evaluations there are `instances x labels` matches and, for each
//! state, one evaluation for each of a few patterns. Labels are not indexed in advance; a pattern
//! is computed on first use.
//!
//! Cost: a lookup for (context, label) and one for (state, pattern). Invariant: states of one
//! context have the same patterns; a pattern has all solutions of its conditions, at most
//! [`MAX_MATCHES`].

use super::{Automaton, FormulaState, Key, Label, LabelView, ObligationSet, ObligationSetBuilder};
use crate::rules::{Effect, RuleCondition};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::Stage;
use mu_base::ids::VarId;
use mu_base::narrow;
use mu_data::engine::Value;
use mu_formula::normal::NodeId;
use std::rc::Rc;

/// Limit on the matches in a pattern; labels with more are evaluated for each state.
const MAX_MATCHES: usize = 64;

/// A rule, by its index among those of the node, and a solution for its unknowns if the target uses
/// them.
type Match = (u32, Rc<[Value]>);

/// The patterns so far, and the answers by pattern.
#[derive(Default)]
pub(super) struct Patterns {
    /// Positions of the live values that form the context; `None` if these are all, so that
    /// patterns save nothing.
    read: AHashMap<NodeId, Option<Rc<[usize]>>>,
    contexts: AHashMap<Key, u32>,
    /// By formula state, from 1; 0: unknown.
    context_of: Vec<u32>,
    /// By context and label; `None` if it has no pattern.
    found: AHashMap<(u32, LabelView), Option<u32>>,
    numbers: AHashMap<Rc<[Match]>, u32>,
    patterns: Vec<Rc<[Match]>>,
    answers: AHashMap<(FormulaState, u32), ObligationSet>,
}

impl Patterns {
    pub(super) fn answer(&self, q: FormulaState, pattern: u32) -> Option<ObligationSet> {
        self.answers.get(&(q, pattern)).copied()
    }
    pub(super) fn remember(&mut self, q: FormulaState, pattern: u32, answer: ObligationSet) {
        self.answers.insert((q, pattern), answer);
    }
}

impl Automaton {
    /// Returns the pattern of a label for a state; `None` if the state must be evaluated
    /// individually.
    pub(super) fn pattern(
        &mut self,
        q: FormulaState,
        name: LabelView,
        label: &Label,
    ) -> Result<Option<u32>, Diagnostic> {
        let Some(context) = self.context(q) else { return Ok(None) };
        if let Some(&pattern) = self.patterns.found.get(&(context, name)) {
            return Ok(pattern);
        }
        let matches = match self.matches(q, label) {
            Ok(matches) => matches,
            // Another rule may decide nevertheless; the individual evaluation handles this.
            Err(d) if d.stage == Stage::Data => None,
            Err(d) => return Err(d),
        };
        let pattern = matches.map(|matches| {
            let Patterns { numbers, patterns, .. } = &mut self.patterns;
            *numbers.entry(matches.into()).or_insert_with_key(|matches| {
                patterns.push(matches.clone());
                narrow::index(patterns.len()) - 1
            })
        });
        self.patterns.found.insert((context, name), pattern);
        Ok(pattern)
    }

    fn context(&mut self, q: FormulaState) -> Option<u32> {
        if let Some(context @ 1..) = self.patterns.context_of.get(q.index()) {
            return Some(*context);
        }
        let (node, values) = self.states[q.index()].clone();
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
        let next = narrow::index(contexts.len()) + 1;
        let context = *contexts.entry(key).or_insert(next);
        if context_of.len() <= q.index() {
            context_of.resize(q.index() + 1, 0);
        }
        context_of[q.index()] = context;
        Some(context)
    }

    fn positions_read(&self, node: NodeId) -> Option<Rc<[usize]>> {
        let mut used: Vec<VarId> = Vec::new();
        for rule in &self.rules.states[&node].rules {
            if let (RuleCondition::Label(conditions), Effect::Step(_)) = (&rule.when, rule.effect) {
                conditions.iter().flatten().for_each(|c| c.free_vars(&mut used));
            }
        }
        let live = self.normal.live(node);
        let read: Rc<[usize]> = (0..live.len()).filter(|&at| used.contains(&live[at])).collect();
        (read.len() < live.len()).then_some(read)
    }

    /// Returns the matches of a label; `None` if there are too many.
    fn matches(
        &mut self,
        q: FormulaState,
        label: &Label,
    ) -> Result<Option<Vec<Match>>, Diagnostic> {
        let (node, values) = self.states[q.index()].clone();
        self.with_rules(node, |automaton, rules, compiled| {
            let mut matches: Vec<Match> = Vec::new();
            for ((i, rule), run) in (0..).zip(&rules.rules).zip(compiled) {
                if !matches!((&rule.when, rule.effect), (RuleCondition::Label(_), Effect::Step(_)))
                {
                    continue;
                }
                let full = automaton.each_match(
                    node,
                    &values,
                    rules.universal,
                    rule,
                    run,
                    Some(label),
                    &mut |_, _, _, env| {
                        matches.push((i, env[values.len()..].into()));
                        Ok(matches.len() >= MAX_MATCHES)
                    },
                )?;
                if full {
                    return Ok(None);
                }
            }
            Ok(Some(matches))
        })
    }

    /// Returns the obligations of a state after a label with this pattern.
    pub(super) fn follow(
        &mut self,
        q: FormulaState,
        pattern: u32,
    ) -> Result<ObligationSet, Diagnostic> {
        let (node, values) = self.states[q.index()].clone();
        let matches = self.patterns.patterns[pattern as usize].clone();
        self.with_rules(node, |automaton, rules, compiled| {
            let mut sum = ObligationSetBuilder::default();
            for (i, solution) in matches.iter() {
                let Some(target) = &compiled[*i as usize].target else {
                    return Err(Diagnostic::new(
                        Stage::Internal,
                        "a matching modality has no target",
                    ));
                };
                let env: Vec<Value> = values.iter().chain(solution.iter()).cloned().collect();
                let decided = automaton.run_target(target, rules.universal, &env, &mut sum.out);
                if sum.add(decided.map_err(|d| automaton.explain(d, &rules.rules[*i as usize])))? {
                    return Ok(ObligationSet::Decided);
                }
            }
            automaton.intern_sum(sum)
        })
    }
}
