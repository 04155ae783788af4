//! Compilation of a linear process to a model with slots and transition groups.
//!
//! In: [`LinearProcess`]. Out: [`Compiled`], which implements [`Model`] and [`ActionLabels`]. A
//! parameter is a slot, a summand a group. Conjuncts `parameter == constant` of a guard become the
//! group's requirements and are substituted in the rest, so that a group reads as few slots as
//! possible. Slots of one sort share a value table, so that copying a parameter copies a number.
//! Cost: a few rewrites to evaluate a group; engines memoise it. Invariant: value and label tables
//! only grow; equal values of one sort have equal numbers, in every thread.
#![warn(missing_docs)]

mod dead_actions;
mod termination;
mod chance;
mod shared_conditions;
pub mod decision_tree;
mod terminal_conditions;
mod groups;
mod offers;
mod step_templates;
mod step_parts;
mod position;
pub mod answer_cache;
mod shared_results;
mod solution_cache;
mod deadlock;
mod symmetry;
mod tables;
pub mod typed;
mod slot_conditions;
mod undefined_labels;
mod values;
mod worker;

use self::groups::{GroupBuilder, SlotLayout};
use self::slot_conditions::SlotConditions;
use self::tables::ValueTable;
use self::worker::LinearWorker;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, OpId, SortId, VarId};
use mu_base::label_time;
use mu_base::{Budget, Diagnostic, Span, Stage, narrow};
use mu_data::digests::Digests;
use mu_data::engine::{Engine, Program};
use mu_data::expr::{DataSpec, Expr, ExprKind};
use mu_data::terms::Terms;
use mu_data::{portable, portable_terms, text};
use mu_model::table::LabelTable;
use mu_model::{Group, Model, Portable, Slot, SlotInfo, Symmetry, Worker};
use mu_process::confluence::{commuting_summands, confluent_summands};
use mu_process::labels::{ActionLabels, MultiAction, TIME_STAMP};
use mu_process::linear::{Act, LinearProcess};
use num_rational::BigRational;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Choice of the tau steps that take priority.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Confluence {
    /// None.
    #[default]
    None,
    /// Steps that the static analysis proves confluent.
    Auto,
    /// Steps made by hiding these actions. If the static analysis does not prove them confluent,
    /// the user is responsible.
    Named(Vec<String>),
    /// Steps that the sharper analysis proves to commute with all others. As far as it does, this
    /// includes steps with one of these actions alone, which stay visible and take priority.
    Commuting(Vec<String>),
}

/// Code of a group, with the required parameters substituted.
#[derive(Clone, Debug)]
pub(crate) struct GroupCode {
    /// Index of the summand.
    pub summand: usize,
    pub reads: Vec<VarId>,
    pub sum_vars: Vec<VarId>,
    pub guard: Expr,
    pub actions: Vec<Act>,
    pub hidden: Vec<Act>,
    pub updates: Vec<Expr>,
    /// Probabilistic choice after the actions.
    pub chance: Option<chance::ProbabilisticChoice>,
    /// Place for messages.
    pub span: Span,
}

/// Model of a linear process.
pub struct Compiled {
    process: LinearProcess,
    program: Arc<Program>,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    codes: Vec<GroupCode>,
    /// Conditions that several groups share.
    common: AHashSet<Expr>,
    /// Updates and arguments that several groups share.
    shared: AHashSet<Expr>,
    initial: Vec<u32>,
    /// Initial vectors with their probabilities, if the start is probabilistic.
    starts: Vec<(BigRational, Vec<u32>)>,
    probabilistic: bool,
    /// Conditions that groups place on each slot that is not a control location.
    conditions: Vec<SlotConditions>,
    /// Table of each slot.
    table_of: Vec<usize>,
    /// Sort of each slot.
    sort_of: Vec<SortId>,
    tables: Vec<ValueTable>,
    /// Shared terms of the values of all tables.
    terms: Arc<Terms>,
    digests: Mutex<Digests>,
    /// Cache: (table, index) to expression.
    expr_cache: RwLock<AHashMap<(usize, u32), Expr>>,
    labels: LabelTable<MultiAction>,
    /// Termination criteria of the front end: conditions on parameters of components.
    ends: Vec<String>,
    /// Labels in which a term has no value.
    undefined_labels: undefined_labels::UndefinedLabelRegister,
    /// Candidates for symmetries.
    symmetries: Vec<Symmetry>,
    /// Image of constants under each candidate.
    constant_maps: Vec<symmetry::ConstantMap>,
    /// True if the static analysis proves all marked steps confluent.
    priority_proven: bool,
    /// Limits of evaluations.
    budget: RwLock<Budget>,
}

impl Compiled {
    /// Compiles a linear process. Errors: an initial value has no normal form, or the name of a
    /// step to be prioritised is unknown.
    pub fn new(process: LinearProcess, confluence: &Confluence) -> Result<Self, Diagnostic> {
        Self::with_budget(process, confluence, &Budget::default())
    }

    /// Compiles a linear process under the limits of a run. Evaluations end with an error of stage
    /// `Limit` when a limit is reached.
    pub fn with_budget(
        mut process: LinearProcess,
        confluence: &Confluence,
        budget: &Budget,
    ) -> Result<Self, Diagnostic> {
        mu_process::time::stamp(&mut process);
        let flags = confluence_flags(&mut process, confluence)?;
        let named = matches!(confluence, Confluence::Named(_)) && flags.contains(&true);
        let priority_proven = !named
            || confluent_summands(&mut process)
                .iter()
                .zip(&flags)
                .all(|(proven, flag)| *proven || !flag);
        chance::declare(&mut process);
        let program = Program::compile(&process.data)?;
        // Labels and values are terms over the program's operations, so formulas and other data
        // built on this process need these operations as well.
        process.data.signature = program.signature().clone();
        let terms = Arc::new(Terms::default());
        let mut engine = Engine::new(program.clone()).with_budget(budget).with_shared_terms(&terms);
        let mut layout = SlotLayout::new(&process, &mut engine)?;
        let special = process.data.special_sorts();
        let (mut groups, mut codes) = (Vec::new(), Vec::new());
        let mut builder = GroupBuilder {
            process: &mut process,
            engine: &mut engine,
            layout: &mut layout,
            special,
        };
        for (i, confluent) in flags.iter().enumerate() {
            if let Some((group, code)) = builder.group(i, *confluent)? {
                groups.push(group);
                codes.push(code);
            }
        }
        layout.decide(&process, &mut engine)?;
        let probabilistic = process.is_probabilistic();
        let SlotLayout { slots, initial, starts, table_of, sort_of, tables, conditions, .. } =
            layout;
        let (symmetries, constant_maps) = if probabilistic {
            Default::default()
        } else {
            symmetry::candidates(&process, &slots, &sort_of, &groups, &codes)
        };
        let common = shared_conditions::common(program.signature(), &codes);
        let shared = shared_results::common(&codes);
        let labels = LabelTable::new(MultiAction::default());
        let budget = RwLock::new(budget.clone());
        Ok(Self {
            process,
            program,
            slots,
            groups,
            codes,
            common,
            shared,
            conditions,
            initial,
            starts,
            probabilistic,
            table_of,
            sort_of,
            tables,
            terms,
            digests: Mutex::default(),
            expr_cache: RwLock::default(),
            labels,
            ends: Vec::new(),
            undefined_labels: undefined_labels::UndefinedLabelRegister::default(),
            symmetries,
            constant_maps,
            priority_proven,
            budget,
        })
    }

    /// Adds termination criteria of the front end, each a condition on a parameter: the component
    /// of the parameter counts as terminated if it holds. A criterion is ignored if its parameter
    /// was eliminated because it never changes.
    #[must_use]
    pub fn with_terminal_conditions(mut self, ends: Vec<(String, String)>) -> Self {
        let known = |name: &String| self.slots.iter().any(|s| s.name == *name);
        self.ends = ends
            .into_iter()
            .filter(|(name, _)| known(name))
            .map(|(_, condition)| condition)
            .collect();
        self
    }

    /// Returns the linear process.
    pub fn process(&self) -> &LinearProcess {
        &self.process
    }

    /// Returns the data of the process with the operations of the program, over which the tables'
    /// values are terms.
    fn data_with_operations(&self) -> DataSpec {
        DataSpec { signature: self.program.signature().clone(), ..self.process.data.clone() }
    }

    /// Returns one slot of each table.
    fn slots_of_tables(&self) -> Vec<Slot> {
        let mut slots = vec![0; self.tables.len()];
        self.table_of.iter().enumerate().for_each(|(slot, t)| slots[*t] = slot as Slot);
        slots
    }

    fn action_text(&self, multi: &MultiAction) -> String {
        if multi.is_empty() {
            return "tau".into();
        }
        let one = |(a, args): &(mu_base::ids::ActId, Vec<Expr>)| {
            let name = &self.process.actions[a.index()].name;
            if args.is_empty() {
                return name.clone();
            }
            let args: Vec<String> = args
                .iter()
                .map(|e| mu_data::print::expression(self.program.signature(), e))
                .collect();
            format!("{name}({})", args.join(", "))
        };
        let (actions, time) = self.without_time(multi);
        let actions = if actions.is_empty() {
            "tau".into()
        } else {
            actions.iter().map(one).collect::<Vec<_>>().join("|")
        };
        match time {
            Some(time) => {
                let time = mu_data::print::expression(self.program.signature(), time);
                label_time::join(&actions, &time)
            }
            None => actions,
        }
    }

    /// Splits a label into its actions and its time, which comes last.
    fn without_time<'a>(
        &self,
        multi: &'a MultiAction,
    ) -> (&'a [(mu_base::ids::ActId, Vec<Expr>)], Option<&'a Expr>) {
        match multi.split_last() {
            Some(((a, args), actions)) if self.process.actions[a.index()].name == TIME_STAMP => {
                (actions, args.first())
            }
            _ => (multi, None),
        }
    }
}

/// Computes the confluence flag of each summand. A name of an action selects the summands that hide
/// it.
fn confluence_flags(
    process: &mut LinearProcess,
    confluence: &Confluence,
) -> Result<Vec<bool>, Diagnostic> {
    match confluence {
        Confluence::None => Ok(vec![false; process.summands.len()]),
        Confluence::Auto => Ok(confluent_summands(process)),
        Confluence::Commuting(first) => {
            let names: Vec<String> = process.actions.iter().map(|a| a.name.clone()).collect();
            let is_first = |s: &mu_process::linear::Summand| match s.actions.as_slice() {
                [a] => first.contains(&names[a.action.index()]),
                _ => false,
            };
            Ok(commuting_summands(process, &is_first))
        }
        Confluence::Named(names) => {
            let hidden_names = |s: &mu_process::linear::Summand| -> Vec<String> {
                s.hidden.iter().map(|a| process.actions[a.action.index()].name.clone()).collect()
            };
            let mut candidates: Vec<String> = process
                .summands
                .iter()
                .filter(|s| s.actions.is_empty())
                .flat_map(hidden_names)
                .collect();
            candidates.sort();
            candidates.dedup();
            if let Some(unknown) = names.iter().find(|n| !candidates.contains(n)) {
                return Err(Diagnostic::new(
                    Stage::Usage,
                    format!("`{unknown}` is not the name of a hidden action, so it selects no step to prioritise"),
                )
                .note(format!("hidden actions: {}", if candidates.is_empty() { "none".into() } else { candidates.join(", ") })));
            }
            let flag = |s: &mu_process::linear::Summand| {
                let hidden = hidden_names(s);
                s.actions.is_empty()
                    && !hidden.is_empty()
                    && hidden.iter().all(|h| names.contains(h))
            };
            Ok(process.summands.iter().map(flag).collect())
        }
    }
}

impl Model for Compiled {
    fn fingerprint(&self) -> Option<String> {
        let confluent: Vec<String> = (self.groups.iter().enumerate())
            .filter(|(_, g)| g.confluent)
            .map(|(i, _)| i.to_string())
            .collect();
        let process = mu_process::print::linear_process(&self.process);
        Some(format!(
            "mu-check {}; confluent summands: {}; {process}",
            env!("CARGO_PKG_VERSION"),
            confluent.join(",")
        ))
    }

    fn export_values(&self) -> Result<Vec<Vec<String>>, Diagnostic> {
        let (slots, mut expr_engine) = (self.slots_of_tables(), self.expr_engine());
        let mut convert = |(table, slot): (&ValueTable, &Slot)| {
            (0..narrow::index(table.len()))
                .map(|id| self.expr_of(&mut expr_engine, *slot, id))
                .collect()
        };
        let tables: Vec<Vec<Expr>> = self.tables.iter().zip(&slots).map(&mut convert).collect();
        let sorts = slots.iter().map(|slot| self.sort_of[*slot as usize]);
        let all: Vec<(&Expr, Option<SortId>)> = tables
            .iter()
            .zip(sorts)
            .flat_map(|(t, sort)| t.iter().map(move |v| (v, Some(sort))))
            .collect();
        let mut texts = text::round_trip_texts(&self.data_with_operations(), &all)?.into_iter();
        Ok(tables.iter().map(|t| texts.by_ref().take(t.len()).collect()).collect())
    }

    fn unexportable_slot(&self) -> Option<String> {
        let signature = self.program.signature();
        let slot = (0..self.slots.len())
            .find(|slot| text::may_hold_functions(signature, self.sort_of[*slot]))?;
        let sort = signature.sorts.text(self.sort_of[slot]);
        Some(format!("parameter `{}` of sort {sort}", self.slots[slot].name))
    }

    fn import_values(&self, texts: &[Vec<String>]) -> Result<(), Diagnostic> {
        let other = || {
            Diagnostic::new(Stage::File, "the values in the checkpoint are not those of this model")
        };
        if texts.len() != self.tables.len() {
            return Err(other());
        }
        let (slots, mut expr_engine) = (self.slots_of_tables(), self.expr_engine());
        let sorts = slots.iter().map(|slot| self.sort_of[*slot as usize]);
        let all = texts
            .iter()
            .zip(sorts)
            .flat_map(|(t, sort)| t.iter().map(move |v| (&v[..], Some(sort))));
        let mut values =
            text::read(&self.data_with_operations(), all).map_err(|_| other())?.into_iter();
        for (slot, texts) in slots.into_iter().zip(texts) {
            for (i, value) in values.by_ref().take(texts.len()).enumerate() {
                if self.number(&mut expr_engine, slot, &value).map_err(|_| other())? as usize != i {
                    return Err(other());
                }
            }
        }
        Ok(())
    }
    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        self.initial.clone()
    }
    fn is_probabilistic(&self) -> bool {
        self.probabilistic
    }
    fn initial_chances(&self) -> Vec<(BigRational, Vec<u32>)> {
        self.starts.clone()
    }
    fn limit_evaluations(&self, budget: &Budget) {
        *self.budget.write().unwrap_or_else(PoisonError::into_inner) = budget.clone();
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(LinearWorker::new(self))
    }
    fn label_text(&self, label: LabelId) -> String {
        self.action_text(&self.labels.get(label))
    }
    fn label_count(&self) -> usize {
        self.labels.count()
    }
    fn is_priority_proven(&self) -> bool {
        self.priority_proven
    }
    fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
    }
    fn components(&self) -> Vec<String> {
        self.process.components.clone()
    }
    fn deadlock_explainer<'m>(
        &'m self,
        terminal: &[String],
    ) -> Result<Option<Box<dyn mu_model::deadlock::DeadlockExplainer + 'm>>, Diagnostic> {
        if self.process.anatomy.components.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(deadlock::DeadlockAnalysis::new(self, terminal)?)))
    }
    fn undefined_labels(&self) -> Vec<mu_model::UndefinedLabel> {
        self.undefined_labels.list()
    }
    fn is_live(&self, slot: Slot, state: &[u32]) -> bool {
        self.is_parameter_live(slot, state)
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        let e = self.value(slot, value);
        if let Some(text) = self.position(slot, &e) {
            return text;
        }
        mu_data::print::expression(self.program.signature(), &e)
    }
}

impl Compiled {
    /// Returns the limits of evaluations.
    pub fn budget(&self) -> Budget {
        self.budget.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Portable for Compiled {
    fn encoding_fingerprint(&self) -> String {
        let slots = self.slots.iter().map(|s| format!("{}:{} ", s.name, s.component));
        let flags = [
            self.fingerprint().unwrap_or_default(),
            portable::encoding_fingerprint(self.program.signature()),
        ];
        flags.into_iter().chain(slots).collect()
    }
    fn export(&self, slot: Slot, value: u32) -> Result<Vec<u8>, Diagnostic> {
        let term = self.tables[self.table_of[slot as usize]].get(value);
        portable_terms::write(self.program.signature(), &self.terms, term)
            .map_err(|e| e.note(format!("it is the value of `{}`", self.slots[slot as usize].name)))
    }
    fn digest(&self, slot: Slot, value: u32) -> Result<u64, Diagnostic> {
        let term = self.tables[self.table_of[slot as usize]].get(value);
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        digests
            .of(self.program.signature(), &self.terms, term)
            .map_err(|e| e.note(format!("it is the value of `{}`", self.slots[slot as usize].name)))
    }
    fn import(&self, slot: Slot, bytes: &[u8]) -> Result<u32, Diagnostic> {
        let term = portable_terms::read(self.program.signature(), &self.terms, bytes)?;
        Ok(self.tables[self.table_of[slot as usize]].intern(term).0)
    }
}

impl ActionLabels for Compiled {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        let multi = self.labels.get(label);
        match self.without_time(&multi) {
            (actions, Some(_)) => Arc::new(actions.to_vec()),
            _ => multi,
        }
    }
    fn constructor_images(&self, symmetry: usize) -> Option<&[(OpId, OpId)]> {
        self.constant_maps.get(symmetry).map(Vec::as_slice)
    }
}

/// Returns the variable if an expression is just a variable.
pub(crate) fn as_var(e: &Expr) -> Option<VarId> {
    match e.kind {
        ExprKind::Var(v) => Some(v),
        _ => None,
    }
}
