//! From a linear process to a model on slots and transition groups.
//!
//! In: [`LinearProcess`]. Out: [`Compiled`], which implements [`Model`] and [`ActionLabels`]. A parameter is a slot, a summand a
//! group. Conjuncts `parameter == constant` of a guard become the group's requirements and are substituted in the rest, so that a
//! group reads as few slots as its text allows. Slots of one sort share a value table, so that copying a parameter copies a number.
//! Cost: evaluating a group once is a few rewrites; engines memoise it.
//! Invariant: value and label tables only grow; equal values of one sort have equal numbers, in every thread.
#![warn(missing_docs)]

mod absence;
mod offers;
mod parts;
mod position;
mod standing;
mod symmetry;
mod tables;
mod undecided;
mod values;
mod worker;

use self::tables::{LabelTable, ValueTable};
use self::undecided::Conditions;
use self::worker::LinearWorker;
use ahash::AHashMap;
use mu_base::ids::{LabelId, OpId, SortId, VarId};
use mu_base::{Budget, Diagnostic, Span, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{DataSpec, Expr, ExprKind, Substitution};
use mu_data::{portable, text};
use mu_labels::{ActionLabels, MultiAction};
use mu_model::{Group, Model, Portable, Slot, SlotInfo, Symmetry, Worker};
use mu_process::confluence::{confluent_summands, fixes};
use mu_process::linear::{Act, LinearProcess, ParamRole};
use std::sync::Arc;

/// Which tau steps may be taken at once.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Confluence {
    /// None.
    #[default]
    None,
    /// Those that the static analysis proves confluent.
    Auto,
    /// Those made by hiding these actions only; where the static analysis does not prove them confluent, the user answers for it.
    Named(Vec<String>),
}

/// What a group computes, with the required parameters substituted.
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
    /// A place for messages.
    pub span: Span,
}

/// A linear process as a model.
pub struct Compiled {
    process: LinearProcess,
    program: Arc<Program>,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    codes: Vec<GroupCode>,
    initial: Vec<u32>,
    /// What groups require of each slot that is no control location.
    conditions: Vec<Conditions>,
    /// Table of each slot.
    table_of: Vec<usize>,
    /// Sort of each slot.
    sort_of: Vec<SortId>,
    tables: Vec<ValueTable>,
    labels: LabelTable,
    /// Candidates, and what each makes of constants.
    symmetries: Vec<Symmetry>,
    constant_maps: Vec<symmetry::ConstantMap>,
    /// Whether the static analysis proves all steps confluent that are marked so.
    priority_proven: bool,
    budget: Budget,
}

impl Compiled {
    /// Compiles a linear process. Errors: initial values that do not rewrite, an unknown name among steps to be prioritised.
    pub fn new(process: LinearProcess, confluence: &Confluence) -> Result<Self, Diagnostic> {
        Self::limited(process, confluence, &Budget::default())
    }

    /// The same under the limits of a run: evaluations end with an error of stage `Limit` when one is met.
    pub fn limited(mut process: LinearProcess, confluence: &Confluence, budget: &Budget) -> Result<Self, Diagnostic> {
        let flags = confluence_flags(&mut process, confluence)?;
        let named = matches!(confluence, Confluence::Named(_)) && flags.contains(&true);
        let priority_proven = !named || confluent_summands(&mut process).iter().zip(&flags).all(|(proven, flag)| *proven || !flag);
        let program = Program::compile(&process.data)?;
        // Labels and values are terms over the program's operations: what is built on this process, such as a formula, must know them too.
        process.data.signature = program.signature().clone();
        let mut engine = Engine::new(program.clone()).limited(budget);
        let mut tables: Vec<ValueTable> = Vec::new();
        let mut by_sort: AHashMap<SortId, usize> = AHashMap::new();
        let mut table_of = Vec::new();
        let mut sort_of = Vec::new();
        let mut slots = Vec::new();
        let mut initial = Vec::new();
        let slot_of: AHashMap<VarId, Slot> = process.params.iter().enumerate().map(|(i, p)| (p.var, i as Slot)).collect();
        let names = mu_process::print::parameter_names(&process);
        for (param, name) in process.params.iter().zip(names) {
            let var = process.data.signature.var(param.var);
            let (component, control) = match param.role {
                ParamRole::Control(c) => (c, true),
                ParamRole::Data(c) => (c, false),
            };
            let name = if control { position::name(&process.components, component) } else { name };
            // Control locations have a table of their own, so that their numbers are small and dense.
            let table = if control {
                tables.push(ValueTable::default());
                tables.len() - 1
            } else {
                *by_sort.entry(var.sort).or_insert_with(|| {
                    tables.push(ValueTable::default());
                    tables.len() - 1
                })
            };
            slots.push(SlotInfo { name, component, control });
            table_of.push(table);
            let value = engine.from_expr(&param.init)?;
            initial.push(tables[table].intern(&engine.to_expr_at(&value, var.sort)));
            sort_of.push(var.sort);
        }
        let mut conditions: Vec<Conditions> = slots.iter().map(|_| Conditions::default()).collect();
        let special = process.data.special_sorts();
        let mut groups = Vec::new();
        let mut codes = Vec::new();
        'summands: for (i, summand) in process.summands.iter().enumerate() {
            let mut fixed = Substitution::new();
            let mut requires: Vec<(Slot, u32)> = Vec::new();
            let mut rest = Vec::new();
            for conjunct in summand.guard.conjuncts(&process.data.signature) {
                let conjunct = conjunct.substitute(&fixed);
                match fixes(&mut process.data.signature, &special, &conjunct) {
                    Some((v, k)) if slot_of.contains_key(&v) => {
                        let slot = slot_of[&v];
                        let value = engine.from_expr(&k).map_err(|e| e.placed(summand.span()))?;
                        let canonical = engine.to_expr_at(&value, sort_of[slot as usize]);
                        requires.push((slot, tables[table_of[slot as usize]].intern(&canonical)));
                        if !slots[slot as usize].control {
                            conditions[slot as usize].add(&conjunct, summand.span());
                        }
                        fixed.insert(v, k);
                    }
                    _ => rest.push(conjunct),
                }
            }
            let mut guard = Expr::boolean(&mut process.data.signature, true);
            for conjunct in rest {
                let conjunct = conjunct.substitute(&fixed);
                let mut free = Vec::new();
                conjunct.free_vars(&mut free);
                if free.is_empty() {
                    // A closed conjunct is decided here and now.
                    let value = engine.from_expr(&conjunct).map_err(|e| e.placed(summand.span()))?;
                    if value.is_false() {
                        continue 'summands;
                    }
                    if value.is_true() {
                        continue;
                    }
                }
                guard = Expr::and(&mut process.data.signature, guard, conjunct);
            }
            let with_fixed = |acts: &[Act]| -> Vec<Act> {
                acts.iter().map(|a| Act { args: a.args.iter().map(|e| e.substitute(&fixed)).collect(), ..a.clone() }).collect()
            };
            let actions = with_fixed(&summand.actions);
            let mut writes = Vec::new();
            let mut updates = Vec::new();
            for (p, e) in &summand.updates {
                let e = e.substitute(&fixed);
                writes.push(*p as Slot);
                updates.push(e);
            }
            let mut used = Vec::new();
            guard.free_vars(&mut used);
            actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut used));
            updates.iter().for_each(|e| e.free_vars(&mut used));
            let mut reads: Vec<Slot> = used.iter().filter_map(|v| slot_of.get(v).copied()).collect();
            reads.sort_unstable();
            requires.sort_unstable();
            let hidden: Vec<String> = summand.hidden.iter().map(|a| process.actions[a.action.index()].name.clone()).collect();
            let mut name: Vec<&str> = summand.actions.iter().map(|a| process.actions[a.action.index()].name.as_str()).collect();
            if name.is_empty() {
                name = hidden.iter().map(String::as_str).collect();
            }
            groups.push(Group {
                name: if name.is_empty() { "tau".into() } else { name.join("|") },
                requires,
                reads: reads.clone(),
                writes,
                hidden,
                tau: summand.actions.is_empty(),
                confluent: flags[i],
            });
            codes.push(GroupCode {
                summand: i,
                reads: reads.iter().map(|s| process.params[*s as usize].var).collect(),
                sum_vars: summand.sum_vars.clone(),
                guard,
                actions,
                hidden: with_fixed(&summand.hidden),
                updates,
                span: summand.span(),
            });
        }
        for ((param, &id), (conditions, &table)) in process.params.iter().zip(&initial).zip(conditions.iter().zip(&table_of)) {
            if conditions.is_empty() {
                continue;
            }
            let value = engine.from_normal(&tables[table].get(id))?;
            if !value.is_data() {
                conditions.decide(&mut engine, param.var, &value)?;
            }
        }
        let (symmetries, constant_maps) = symmetry::candidates(&process, &slots, &sort_of, &groups, &codes);
        let labels = LabelTable::default();
        let budget = budget.clone();
        Ok(Self {
            process,
            program,
            slots,
            groups,
            codes,
            conditions,
            initial,
            table_of,
            sort_of,
            tables,
            labels,
            symmetries,
            constant_maps,
            priority_proven,
            budget,
        })
    }

    /// The linear process.
    pub fn process(&self) -> &LinearProcess {
        &self.process
    }

    /// The data of the process with the operations of the program, which are those of the tables' values.
    fn kept_data(&self) -> DataSpec {
        DataSpec { signature: self.program.signature().clone(), ..self.process.data.clone() }
    }

    /// The sort of the values of each table that slots use.
    fn sorts_of_tables(&self) -> Vec<Option<SortId>> {
        let mut sorts = vec![None; self.tables.len()];
        self.table_of.iter().zip(&self.sort_of).for_each(|(t, s)| sorts[*t] = Some(*s));
        sorts
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
            let args: Vec<String> = args.iter().map(|e| mu_data::print::expression(self.program.signature(), e)).collect();
            format!("{name}({})", args.join(", "))
        };
        multi.iter().map(one).collect::<Vec<_>>().join("|")
    }
}

/// Names by which a summand's hidden steps can be called, and the flags that a choice gives.
fn confluence_flags(process: &mut LinearProcess, confluence: &Confluence) -> Result<Vec<bool>, Diagnostic> {
    match confluence {
        Confluence::None => Ok(vec![false; process.summands.len()]),
        Confluence::Auto => Ok(confluent_summands(process)),
        Confluence::Named(names) => {
            let hidden_names = |s: &mu_process::linear::Summand| -> Vec<String> {
                s.hidden.iter().map(|a| process.actions[a.action.index()].name.clone()).collect()
            };
            let mut candidates: Vec<String> = process.summands.iter().filter(|s| s.actions.is_empty()).flat_map(hidden_names).collect();
            candidates.sort();
            candidates.dedup();
            if let Some(unknown) = names.iter().find(|n| !candidates.contains(n)) {
                return Err(Diagnostic::new(
                    Stage::Usage,
                    format!("`{unknown}` is not the name of a hidden action, so no step can be prioritised by it"),
                )
                .note(format!("hidden actions: {}", if candidates.is_empty() { "none".into() } else { candidates.join(", ") })));
            }
            let flag = |s: &mu_process::linear::Summand| {
                let hidden = hidden_names(s);
                s.actions.is_empty() && !hidden.is_empty() && hidden.iter().all(|h| names.contains(h))
            };
            Ok(process.summands.iter().map(flag).collect())
        }
    }
}

impl Model for Compiled {
    fn fingerprint(&self) -> Option<String> {
        let confluent: Vec<String> = (self.groups.iter().enumerate()).filter(|(_, g)| g.confluent).map(|(i, _)| i.to_string()).collect();
        let process = mu_process::print::linear_process(&self.process);
        Some(format!("mu-check {}; confluent summands: {}; {process}", env!("CARGO_PKG_VERSION"), confluent.join(",")))
    }

    fn export_values(&self) -> Result<Vec<Vec<String>>, Diagnostic> {
        let tables: Vec<Vec<Expr>> = self.tables.iter().map(ValueTable::values).collect();
        let sorts = self.sorts_of_tables();
        let all: Vec<(&Expr, Option<SortId>)> = tables.iter().zip(sorts).flat_map(|(t, sort)| t.iter().map(move |v| (v, sort))).collect();
        let mut texts = text::faithful(&self.kept_data(), &all)?.into_iter();
        Ok(tables.iter().map(|t| texts.by_ref().take(t.len()).collect()).collect())
    }

    fn import_values(&self, texts: &[Vec<String>]) -> Result<(), Diagnostic> {
        let other = || Diagnostic::new(Stage::File, "the values in the checkpoint are not those of this model");
        if texts.len() != self.tables.len() {
            return Err(other());
        }
        let all = texts.iter().zip(self.sorts_of_tables()).flat_map(|(t, sort)| t.iter().map(move |v| (&v[..], sort)));
        let mut values = text::read(&self.kept_data(), all).map_err(|_| other())?.into_iter();
        for (table, texts) in self.tables.iter().zip(texts) {
            for (i, value) in values.by_ref().take(texts.len()).enumerate() {
                if table.intern(&value) as usize != i {
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
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(LinearWorker::new(self))
    }
    fn label_text(&self, label: LabelId) -> String {
        self.action_text(&self.labels.get(label))
    }
    fn label_count(&self) -> usize {
        self.labels.len()
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
    fn standings<'m>(&'m self, terminal: &[String]) -> Option<Box<dyn mu_model::standing::Standings + 'm>> {
        let known = !self.process.anatomy.components.is_empty();
        known.then(|| Box::new(standing::Teller::new(self, terminal)) as Box<dyn mu_model::standing::Standings + 'm>)
    }
    fn is_live(&self, slot: Slot, state: &[u32]) -> bool {
        self.means_something(slot, state)
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        let e = self.tables[self.table_of[slot as usize]].get(value);
        if let Some(text) = self.position(slot, &e) {
            return text;
        }
        mu_data::print::expression(self.program.signature(), &e)
    }
}

impl Portable for Compiled {
    fn basis(&self) -> String {
        let slots = self.slots.iter().map(|s| format!("{}:{} ", s.name, s.component));
        let flags = [self.fingerprint().unwrap_or_default(), portable::basis(self.program.signature())];
        flags.into_iter().chain(slots).collect()
    }
    fn export(&self, slot: Slot, value: u32) -> Result<Vec<u8>, Diagnostic> {
        let value = self.tables[self.table_of[slot as usize]].get(value);
        portable::write(self.program.signature(), &value)
            .map_err(|e| e.note(format!("it is the value of `{}`", self.slots[slot as usize].name)))
    }
    fn import(&self, slot: Slot, bytes: &[u8]) -> Result<u32, Diagnostic> {
        let value = portable::read(self.program.signature(), bytes)?;
        Ok(self.tables[self.table_of[slot as usize]].intern(&value))
    }
}

impl ActionLabels for Compiled {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.labels.get(label)
    }
    fn constructor_images(&self, symmetry: usize) -> Option<&[(OpId, OpId)]> {
        self.constant_maps.get(symmetry).map(Vec::as_slice)
    }
}

/// A variable if an expression is just that.
pub(crate) fn as_var(e: &Expr) -> Option<VarId> {
    match e.kind {
        ExprKind::Var(v) => Some(v),
        _ => None,
    }
}
