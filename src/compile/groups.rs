//! Slots of a linear process and transition groups of its summands.
//!
//! A conjunct `parameter == constant` of a guard becomes a requirement and is substituted in the
//! rest of the summand. A closed conjunct is evaluated here; a summand with a false one has no
//! group. Control locations have value tables of their own, so that their numbers are small and
//! dense; the other slots of one sort share a table. Cost: one evaluation for each constant.

use super::slot_conditions::SlotConditions;
use super::tables::ValueTable;
use super::{GroupCode, chance, position};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{SortId, VarId};
use mu_base::{Diagnostic, Span};
use mu_data::engine::Engine;
use mu_data::expr::{Expr, Substitution};
use mu_model::{Group, Slot, SlotInfo};
use mu_process::confluence::fixes;
use mu_process::linear::{Act, LinearProcess, ParamRole, Summand};
use num_rational::BigRational;

/// Slots and their value tables.
#[derive(Default)]
pub(super) struct SlotLayout {
    pub slots: Vec<SlotInfo>,
    pub initial: Vec<u32>,
    /// Initial vectors with their probabilities.
    pub starts: Vec<(BigRational, Vec<u32>)>,
    /// Table of each slot.
    pub table_of: Vec<usize>,
    /// Sort of each slot.
    pub sort_of: Vec<SortId>,
    pub tables: Vec<ValueTable>,
    /// Conditions that groups place on each slot that is not a control location.
    pub conditions: Vec<SlotConditions>,
    slot_of: AHashMap<VarId, Slot>,
}

impl SlotLayout {
    /// Creates the slots of the process's parameters.
    ///
    /// # Errors
    /// An initial value cannot be evaluated.
    pub fn new(process: &LinearProcess, engine: &mut Engine) -> Result<Self, Diagnostic> {
        let mut layout = Self {
            slot_of: process.params.iter().enumerate().map(|(i, p)| (p.var, i as Slot)).collect(),
            ..Self::default()
        };
        let mut by_sort: AHashMap<SortId, usize> = AHashMap::new();
        let names = mu_process::print::parameter_names(process);
        for (param, name) in process.params.iter().zip(names) {
            let sort = process.data.signature.var(param.var).sort;
            let (component, control) = match param.role {
                ParamRole::Control(c) => (c, true),
                ParamRole::Data(c) => (c, false),
            };
            let name = if control { position::name(&process.components, component) } else { name };
            let tables = &mut layout.tables;
            let mut fresh = || {
                tables.push(ValueTable::default());
                tables.len() - 1
            };
            let table = if control { fresh() } else { *by_sort.entry(sort).or_insert_with(fresh) };
            layout.slots.push(SlotInfo { name, component, control });
            layout.table_of.push(table);
            layout.sort_of.push(sort);
            layout.conditions.push(SlotConditions::default());
        }
        chance::starts(process, engine, &mut layout)?;
        Ok(layout)
    }

    /// Decides the conditions on slots with an initial term that has no value.
    ///
    /// # Errors
    /// Such a condition cannot be decided.
    pub fn decide(&self, process: &LinearProcess, engine: &mut Engine) -> Result<(), Diagnostic> {
        for (i, param) in
            process.params.iter().enumerate().filter(|(i, _)| !self.conditions[*i].is_empty())
        {
            let value = engine.of_term(self.tables[self.table_of[i]].get(self.initial[i]))?;
            if !value.is_data() {
                self.conditions[i].decide(engine, param.var, &value)?;
            }
        }
        Ok(())
    }
}

/// Parts of a guard.
struct Guard {
    /// Slots and the numbers of the constants that they must hold.
    requires: Vec<(Slot, u32)>,
    /// The same as variables and constants.
    fixed: Substitution,
    /// Remaining condition.
    rest: Expr,
}

/// Builder of groups from summands.
pub(super) struct GroupBuilder<'a> {
    pub process: &'a mut LinearProcess,
    pub engine: &'a mut Engine,
    pub layout: &'a mut SlotLayout,
    pub special: AHashSet<SortId>,
}

impl GroupBuilder<'_> {
    /// Returns the group of a summand and its code; `None` if its guard is false.
    ///
    /// # Errors
    /// A constant of the guard cannot be evaluated.
    pub fn group(
        &mut self,
        summand: usize,
        confluent: bool,
    ) -> Result<Option<(Group, GroupCode)>, Diagnostic> {
        let of = self.process.summands[summand].clone();
        let Some(Guard { requires, fixed, rest: guard }) = self.guard(&of)? else {
            return Ok(None);
        };
        let with_fixed = |acts: &[Act]| -> Vec<Act> {
            acts.iter()
                .map(|a| Act {
                    args: a.args.iter().map(|e| e.substitute(&fixed)).collect(),
                    ..a.clone()
                })
                .collect()
        };
        let actions = with_fixed(&of.actions);
        let writes = of.updates.iter().map(|u| u.0 as Slot).collect();
        let updates: Vec<Expr> = of.updates.iter().map(|u| u.1.substitute(&fixed)).collect();
        let chance = of
            .chance
            .as_ref()
            .map(|c| chance::ProbabilisticChoice::new(c, &fixed, &mut self.process.data));
        let slots = |used: &[VarId]| -> Vec<Slot> {
            let mut slots: Vec<Slot> =
                used.iter().filter_map(|v| self.layout.slot_of.get(v).copied()).collect();
            slots.sort_unstable();
            slots
        };
        let mut used = Vec::new();
        guard.free_vars(&mut used);
        let tests = slots(&used);
        actions.iter().flat_map(|a| &a.args).chain(&updates).for_each(|e| e.free_vars(&mut used));
        chance.iter().for_each(|c| c.weight.free_vars(&mut used));
        let reads = slots(&used);
        let names = |acts: &[Act]| -> Vec<String> {
            acts.iter().map(|a| self.process.actions[a.action.index()].name.clone()).collect()
        };
        let hidden = names(&of.hidden);
        let mut shown = names(&of.actions);
        shown.sort_unstable();
        let name = match (of.actions.as_slice(), hidden.as_slice()) {
            ([], []) => "tau".into(),
            ([], hidden) => hidden.join("|"),
            (actions, _) => names(actions).join("|"),
        };
        let code = GroupCode {
            summand,
            reads: reads.iter().map(|s| self.process.params[*s as usize].var).collect(),
            sum_vars: of.sum_vars.clone(),
            guard,
            actions,
            hidden: with_fixed(&of.hidden),
            updates,
            chance,
            span: of.span(),
        };
        Ok(Some((
            Group {
                name,
                requires,
                reads,
                tests,
                writes,
                actions: Some(shown),
                hidden,
                tau: of.actions.is_empty(),
                confluent,
            },
            code,
        )))
    }

    fn guard(&mut self, summand: &Summand) -> Result<Option<Guard>, Diagnostic> {
        let mut fixed = Substitution::new();
        let mut requires: Vec<(Slot, u32)> = Vec::new();
        let mut others = Vec::new();
        for conjunct in summand.guard.conjuncts(&self.process.data.signature) {
            let conjunct = conjunct.substitute(&fixed);
            match fixes(&mut self.process.data.signature, &self.special, &conjunct) {
                Some((v, constant)) if self.layout.slot_of.contains_key(&v) => {
                    let slot = self.layout.slot_of[&v];
                    requires.push((slot, self.constant(slot, &constant, summand.span())?));
                    if !self.layout.slots[slot as usize].control {
                        self.layout.conditions[slot as usize].add(&conjunct, summand.span());
                    }
                    fixed.insert(v, constant);
                }
                _ => others.push(conjunct),
            }
        }
        requires.sort_unstable();
        let mut rest = Expr::boolean(&mut self.process.data.signature, true);
        for conjunct in others {
            let conjunct = conjunct.substitute(&fixed);
            let mut free = Vec::new();
            conjunct.free_vars(&mut free);
            if free.is_empty() {
                let value =
                    self.engine.from_expr(&conjunct).map_err(|e| e.or_span(summand.span()))?;
                if value.is_false() {
                    return Ok(None);
                }
                if value.is_true() {
                    continue;
                }
            }
            rest = Expr::and(&mut self.process.data.signature, rest, conjunct);
        }
        Ok(Some(Guard { requires, fixed, rest }))
    }

    /// Returns the number of a constant in the table of a slot.
    fn constant(&mut self, slot: Slot, constant: &Expr, span: Span) -> Result<u32, Diagnostic> {
        let (value, slot) =
            (self.engine.from_expr(constant).map_err(|e| e.or_span(span))?, slot as usize);
        let term = self.engine.term_at(&value, self.layout.sort_of[slot]);
        Ok(self.layout.tables[self.layout.table_of[slot]].intern(term).0)
    }
}
