//! Evaluator of the groups of a compiled linear process, for one thread.
//!
//! It holds a rewriter, compiled code of the groups used so far, and its own copies of table
//! entries in both directions.

use super::answer_cache::{AnswerCache, KeyProjection};
use super::chance::{Dependency, Distribution};
use super::shared_conditions::{ConditionUse, SharedConditions};
use super::shared_results::{Compute, SharedResults};
use super::solution_cache::SolutionCache;
use super::step_parts::StepExplainer;
use super::step_templates::StepTemplates;
use super::undefined_labels::UndefinedLabelCache;
use super::{Compiled, chance};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, LabelId, VarId};
use mu_base::{Diagnostic, Span};
use mu_data::engine::{Engine, Problem, Receiver, Value};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::terms::TermId;
use mu_model::{Chances, Slot, StepPart, Steps, Worker};
use mu_process::labels::MultiAction;
use std::ops::ControlFlow;
use std::rc::Rc;

struct CompiledGroup {
    /// Shared conditions that are evaluated before the problem. The problem is the remaining
    /// condition.
    shared: Vec<ConditionUse>,
    problem: Problem,
    /// The whole condition, compiled on demand.
    whole: Option<Problem>,
    sum_vars: Vec<VarId>,
    /// Cached solutions of the problem, if they may recur.
    solutions: Option<SolutionCache>,
    /// Step templates, if they may recur.
    templates: Option<StepTemplates>,
    actions: Vec<(ActId, Vec<Compute>)>,
    updates: Vec<Compute>,
    /// Probabilistic choice.
    chance: Option<chance::CompiledChoice>,
    /// Cached steps by the slots read after the shared conditions, if those are fewer than the
    /// group reads.
    body: Option<Body>,
}

/// Steps of a group if its shared conditions hold: they depend on fewer slots than the conditions.
struct Body {
    by: KeyProjection,
    steps: AnswerCache<Steps>,
    key: Vec<u32>,
}

impl Body {
    /// Appends the steps if they are cached. True if they were.
    fn append_cached(&mut self, reads: &[u32], out: &mut Steps) -> bool {
        self.by.project(reads, &mut self.key);
        let Some(known) = self.steps.get(&self.key) else { return false };
        out.labels.extend_from_slice(&known.labels);
        out.values.extend_from_slice(&known.values);
        true
    }
}

/// Number of heap values after which a copy of a table drops values unused since the last time.
const GENERATION: usize = 1 << 16;

/// Copy of a value table: all values used so far that need no heap memory, and the recently used
/// others.
#[derive(Default)]
struct TableCopy {
    values: Vec<Option<Value>>,
    /// Numbers of values that need no heap memory.
    ids: AHashMap<TermId, u32>,
    /// Heap values of the current and of the previous generation.
    young: AHashMap<u32, Value>,
    old: AHashMap<u32, Value>,
}

impl TableCopy {
    /// Returns the value of a number; `None` if there is no copy.
    fn value(&mut self, id: u32) -> Option<Value> {
        if let Some(Some(v)) = self.values.get(id as usize) {
            return Some(v.clone());
        }
        if let Some(v) = self.young.get(&id) {
            return Some(v.clone());
        }
        let value = self.old.get(&id)?.clone();
        self.insert(&value, id);
        Some(value)
    }
    /// Copies a value.
    fn insert(&mut self, value: &Value, id: u32) {
        if value.is_on_heap() {
            if self.young.len() >= GENERATION {
                self.old = std::mem::take(&mut self.young);
            }
            self.young.insert(id, value.clone());
            return;
        }
        let at = id as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, None);
        }
        self.values[at] = Some(value.clone());
    }
}

/// Evaluator of one thread.
pub(super) struct LinearWorker<'m> {
    pub(super) model: &'m Compiled,
    pub(super) engine: Engine,
    groups: Vec<Option<CompiledGroup>>,
    /// Explainers of the groups used so far.
    pub(super) explainers: AHashMap<usize, Rc<StepExplainer>>,
    locals: Vec<TableCopy>,
    /// Value read last from each slot: the groups of a state are evaluated one after the other.
    last: Vec<Option<(u32, Value)>>,
    conditions: SharedConditions,
    results: SharedResults,
    /// Labels by actions and terms.
    labels: AHashMap<Box<[u32]>, LabelId>,
    /// Buffer for the key of a label.
    key: Vec<u32>,
    /// Labels with a term that has no value.
    undefined_labels: UndefinedLabelCache,
    /// Values other than data that leave no condition on their slot undecided.
    decided: AHashSet<(Slot, u32)>,
    /// Cached distributions.
    draws: chance::DistributionCache,
}

impl<'m> LinearWorker<'m> {
    pub(super) fn new(model: &'m Compiled) -> Self {
        Self {
            model,
            engine: Engine::new(model.program.clone())
                .with_budget(&model.budget())
                .with_shared_terms(&model.terms),
            groups: model.groups.iter().map(|_| None).collect(),
            explainers: AHashMap::new(),
            locals: model.tables.iter().map(|_| TableCopy::default()).collect(),
            last: vec![None; model.slots.len()],
            conditions: SharedConditions::default(),
            results: SharedResults::default(),
            labels: AHashMap::new(),
            key: Vec::new(),
            undefined_labels: UndefinedLabelCache::default(),
            decided: AHashSet::new(),
            draws: chance::DistributionCache::default(),
        }
    }

    fn compile(&mut self, group: usize) -> Result<CompiledGroup, Diagnostic> {
        let code = &self.model.codes[group];
        // A variable that does not occur needs no enumeration: any value is possible.
        let mut used = Vec::new();
        code.guard.free_vars(&mut used);
        code.actions
            .iter()
            .flat_map(|a| &a.args)
            .chain(&code.updates)
            .for_each(|e| e.free_vars(&mut used));
        code.chance.iter().for_each(|c| c.weight.free_vars(&mut used));
        let sum_vars: Vec<VarId> =
            code.sum_vars.iter().copied().filter(|v| used.contains(v)).collect();
        let (shared, left) =
            self.conditions.of(&mut self.engine, (&code.guard, &code.reads), &self.model.common)?;
        let rest = if shared.is_empty() {
            code.guard.clone()
        } else {
            conjunction(self.engine.program().signature(), &left)
        };
        let problem = self.engine.problem(&sum_vars, &rest, &code.reads)?;
        let solutions = SolutionCache::new(&rest, &sum_vars, &code.reads);
        let templates = StepTemplates::new(self.model, group, &rest);
        let mut env: Vec<VarId> = code.reads.iter().chain(&sum_vars).copied().collect();
        env.extend(code.chance.iter().flat_map(|c| &c.vars));
        // A label is evaluated before the variables of a choice have values.
        let before = &env[..env.len() - code.chance.iter().map(|c| c.vars.len()).sum::<usize>()];
        let mut compute =
            |e, env: &[VarId]| self.results.compute(&mut self.engine, e, env, &self.model.shared);
        let mut actions = Vec::new();
        for act in &code.actions {
            let args: Result<Vec<Compute>, Diagnostic> =
                act.args.iter().map(|e| compute(e, before)).collect();
            actions.push((act.action, args?));
        }
        let updates: Result<Vec<Compute>, Diagnostic> =
            code.updates.iter().map(|e| compute(e, &env)).collect();
        let chance = match &code.chance {
            Some(chosen) => {
                Some(chance::CompiledChoice::new(&mut self.engine, chosen, before, &code.updates)?)
            }
            None => None,
        };
        let mut used = Vec::new();
        rest.free_vars(&mut used);
        code.actions
            .iter()
            .flat_map(|a| &a.args)
            .chain(&code.updates)
            .for_each(|e| e.free_vars(&mut used));
        let by = KeyProjection::new(&code.reads, &used)
            .filter(|_| !shared.is_empty() && chance.is_none());
        let body = by.map(|by| Body { by, steps: AnswerCache::default(), key: Vec::new() });
        Ok(CompiledGroup {
            shared,
            problem,
            whole: None,
            sum_vars,
            solutions,
            templates,
            actions,
            updates: updates?,
            chance,
            body,
        })
    }

    pub(super) fn value(&mut self, slot: Slot, id: u32) -> Result<Value, Diagnostic> {
        if let Some((known, value)) = &self.last[slot as usize]
            && *known == id
        {
            return Ok(value.clone());
        }
        let table = self.model.table_of[slot as usize];
        let value = match self.locals[table].value(id) {
            Some(value) => value,
            None => {
                let value = self.engine.of_term(self.model.tables[table].get(id))?;
                self.locals[table].insert(&value, id);
                value
            }
        };
        self.last[slot as usize] = Some((id, value.clone()));
        Ok(value)
    }
}

impl LinearWorker<'_> {
    /// Returns the number of a slot's value.
    pub(super) fn id(&mut self, slot: Slot, value: &Value) -> u32 {
        id_of(self.model, &mut self.locals, &mut self.engine, slot, value)
    }

    /// Returns the number of a multi-action.
    pub(super) fn label(&mut self, multi: Vec<(ActId, Vec<Value>)>) -> LabelId {
        if multi.is_empty() {
            return LabelId::TAU;
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for (action, args) in &multi {
            label_key(self.model, &mut self.engine, *action, args, &mut key);
        }
        let label = match self.labels.get(&key[..]) {
            Some(&known) => known,
            None => {
                let label = label_of(self.model, &mut self.engine, &multi);
                self.labels.insert(key[..].into(), label);
                label
            }
        };
        self.key = key;
        label
    }
}

impl CompiledGroup {
    /// Appends the steps if they are cached; the shared conditions hold. True if they were.
    fn append_cached(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        out: &mut Steps,
    ) -> bool {
        self.body.as_mut().is_some_and(|b| b.append_cached(reads, out))
            || self.templates.as_mut().is_some_and(|o| o.append_cached(model, group, reads, out))
    }

    /// Caches the full answer, or only the part that does not depend on list tails.
    fn cache(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        (labels, values): (&[LabelId], &[u32]),
    ) {
        if let Some(Body { by, steps, key }) = self.body.as_mut().filter(|b| !b.steps.is_disabled())
        {
            by.project(reads, key);
            steps.insert(
                key,
                Steps { labels: labels.to_vec(), values: values.to_vec() },
                labels.len() + values.len(),
            );
        }
        if let Some(templates) = &mut self.templates {
            templates.cache(model, group, reads, (labels, values));
        }
    }

    /// Enumerates the solutions of the remaining condition if the shared conditions hold, or of the
    /// whole condition.
    fn for_each_solution(
        &self,
        engine: &mut Engine,
        known: KnownPart,
        reads: &[u32],
        env: &[Value],
        each: &mut Receiver,
    ) -> Result<(), Diagnostic> {
        match (known, &self.whole, &self.solutions) {
            (KnownPart::Nothing, Some(whole), _) => engine.solve(whole, env, each),
            (_, _, Some(solutions)) => solutions.for_each(engine, &self.problem, reads, env, each),
            _ => engine.solve(&self.problem, env, each),
        }
    }
}

/// Part of a group's condition that is already known to hold.
#[derive(Clone, Copy)]
enum KnownPart {
    /// The shared conditions.
    SharedConditions,
    /// No part: some shared condition has no truth value.
    Nothing,
}

impl SharedConditions {
    /// Evaluates a group's shared conditions; `None` if one of them is false.
    fn known_part(
        &mut self,
        engine: &mut Engine,
        (model, group): (&Compiled, usize),
        code: &mut CompiledGroup,
        reads: &[u32],
        env: &[Value],
    ) -> Result<Option<KnownPart>, Diagnostic> {
        match self.hold(engine, &code.shared, reads, env) {
            Some(true) => Ok(Some(KnownPart::SharedConditions)),
            Some(false) => Ok(None),
            None => {
                if code.whole.is_none() {
                    let own = &model.codes[group];
                    code.whole = Some(engine.problem(&code.sum_vars, &own.guard, &own.reads)?);
                }
                Ok(Some(KnownPart::Nothing))
            }
        }
    }
}

/// Joins expressions of the program by `&&`.
fn conjunction(signature: &Signature, parts: &[Expr]) -> Expr {
    let find = |builtin: Builtin, arity: usize| {
        let fits = |op: &Op| {
            op.kind == OpKind::Builtin(builtin) && signature.domain_range(op.sort).0.len() == arity
        };
        signature
            .ops()
            .find(|(_, op)| fits(op))
            .map(|(id, _)| id)
            .expect("a program has the connectives and truth values")
    };
    match parts {
        [] => Expr::op(signature, find(Builtin::True, 0)),
        [first, rest @ ..] => rest.iter().fold(first.clone(), |all, c| {
            Expr::apply(signature, find(Builtin::And, 2), vec![all, c.clone()])
        }),
    }
}

/// Appends an action with its arguments to the key of a label.
fn label_key(
    model: &Compiled,
    engine: &mut Engine,
    action: ActId,
    args: &[Value],
    key: &mut Vec<u32>,
) {
    key.push(action.number());
    let sorts = &model.process.actions[action.index()].sorts;
    key.extend(args.iter().zip(sorts).map(|(v, sort)| engine.term_at(v, *sort).word()));
}

/// Returns the number of a value in a table, using the thread's copy.
fn id_of(
    model: &Compiled,
    locals: &mut [TableCopy],
    engine: &mut Engine,
    slot: Slot,
    value: &Value,
) -> u32 {
    let table = model.table_of[slot as usize];
    let term = engine.term_at(value, model.sort_of[slot as usize]);
    if value.is_on_heap() {
        let (id, new) = model.tables[table].intern(term);
        if new {
            locals[table].insert(value, id);
        }
        return id;
    }
    if let Some(&id) = locals[table].ids.get(&term) {
        return id;
    }
    let (id, _) = model.tables[table].intern(term);
    locals[table].insert(value, id);
    locals[table].ids.insert(term, id);
    id
}

impl Worker for LinearWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        if self.groups[group].is_none() {
            self.groups[group] = Some(self.compile(group)?);
        }
        let info = &self.model.groups[group];
        let code = self.groups[group].as_mut().expect("compiled above");
        let known = if code.shared.is_empty() {
            Some(true)
        } else {
            self.conditions.cached_truth(&code.shared, reads)
        };
        match known {
            Some(false) => return Ok(()),
            Some(true) if code.append_cached(self.model, group, reads, out) => return Ok(()),
            _ => {}
        }
        let mut env: Vec<Value> = Vec::with_capacity(reads.len() + 4);
        for (slot, id) in info.reads.iter().zip(reads) {
            env.push(self.value(*slot, *id)?);
        }
        let span = self.model.codes[group].span;
        let Self {
            model,
            engine,
            groups,
            locals,
            labels,
            key,
            undefined_labels,
            decided,
            draws,
            conditions,
            results,
            ..
        } = self;
        let code = groups[group].as_mut().expect("compiled above");
        if code.chance.is_some() {
            return Err(chance::choice_error(span));
        }
        let Some(known) = conditions.known_part(engine, (model, group), code, reads, &env)? else {
            return Ok(());
        };
        let (code, before) = (&*code, (out.labels.len(), out.values.len()));
        let mut full = env.clone();
        let mut setting = StepContext {
            model,
            locals,
            labels,
            key,
            undefined_labels,
            decided,
            draws,
            results,
            reads,
            group,
            code,
        };
        code.for_each_solution(
            engine,
            known,
            reads,
            &env,
            &mut |engine: &mut Engine, solution: &[Value]| {
                full.truncate(env.len());
                full.extend_from_slice(solution);
                out.labels.push(setting.label(engine, &full)?);
                setting.written_values(engine, &full, &mut out.values)?;
                Ok(ControlFlow::Continue(()))
            },
        )
        .map_err(|e| e.or_span(span))?;
        if let (KnownPart::SharedConditions, Some(code)) = (known, &mut groups[group]) {
            code.cache(model, group, reads, (&out.labels[before.0..], &out.values[before.1..]));
        }
        Ok(())
    }
    fn chances(
        &mut self,
        group: usize,
        reads: &[u32],
        out: &mut Chances,
    ) -> Result<(), Diagnostic> {
        if self.groups[group].is_none() {
            self.groups[group] = Some(self.compile(group)?);
        }
        let mut env: Vec<Value> = Vec::with_capacity(reads.len() + 4);
        for (slot, id) in self.model.groups[group].reads.iter().zip(reads) {
            env.push(self.value(*slot, *id)?);
        }
        let span = self.model.codes[group].span;
        let Self {
            model,
            engine,
            groups,
            locals,
            labels,
            key,
            undefined_labels,
            decided,
            draws,
            conditions,
            results,
            ..
        } = self;
        let code = groups[group].as_mut().expect("compiled above");
        let Some(known) = conditions.known_part(engine, (model, group), code, reads, &env)? else {
            return Ok(());
        };
        let code = &*code;
        let mut setting = StepContext {
            model,
            locals,
            labels,
            key,
            undefined_labels,
            decided,
            draws,
            results,
            reads,
            group,
            code,
        };
        let mut full = env.clone();
        code.for_each_solution(
            engine,
            known,
            reads,
            &env,
            &mut |engine: &mut Engine, solution: &[Value]| {
                full.truncate(env.len());
                full.extend_from_slice(solution);
                out.labels.push(setting.label(engine, &full)?);
                setting.outcomes(engine, &mut full, span, out)?;
                Ok(ControlFlow::Continue(()))
            },
        )
        .map_err(|e| e.or_span(span))
    }
    fn parts(
        &mut self,
        group: usize,
        before: &[u32],
        label: LabelId,
        after: &[u32],
    ) -> Result<Option<Vec<StepPart>>, Diagnostic> {
        self.step_parts(group, before, label, after).map(Some)
    }
    fn image(
        &mut self,
        symmetry: usize,
        slot: Slot,
        value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        let target = self.model.symmetries[symmetry].slots[slot as usize];
        let value = self.value(slot, value)?;
        let Some(image) = self.engine.image(&value, &self.model.constant_maps[symmetry]) else {
            return Ok(None);
        };
        Ok(Some(id_of(self.model, &mut self.locals, &mut self.engine, target, &image)))
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        let mut multi: Vec<(ActId, Vec<Value>)> = Vec::new();
        for (action, args) in self.model.labels.get(label).iter() {
            let mut images = Vec::new();
            for arg in args {
                let value = self.engine.from_expr(arg)?;
                let Some(image) = self.engine.image(&value, &self.model.constant_maps[symmetry])
                else {
                    return Ok(None);
                };
                images.push(image);
            }
            multi.push((*action, images));
        }
        Ok(Some(label_of(self.model, &mut self.engine, &multi)))
    }
}

/// Context in which the steps of a group are built.
struct StepContext<'a> {
    model: &'a Compiled,
    locals: &'a mut [TableCopy],
    labels: &'a mut AHashMap<Box<[u32]>, LabelId>,
    key: &'a mut Vec<u32>,
    undefined_labels: &'a mut UndefinedLabelCache,
    decided: &'a mut AHashSet<(Slot, u32)>,
    draws: &'a mut chance::DistributionCache,
    results: &'a mut SharedResults,
    /// Numbers of the values that the group reads.
    reads: &'a [u32],
    group: usize,
    code: &'a CompiledGroup,
}

impl StepContext<'_> {
    /// Returns the label of the step for these values of the variables that the group reads and
    /// sums over.
    fn label(&mut self, engine: &mut Engine, full: &[Value]) -> Result<LabelId, Diagnostic> {
        if self.code.actions.is_empty() {
            return Ok(LabelId::TAU);
        }
        let mut multi = Vec::with_capacity(self.code.actions.len());
        for (action, args) in &self.code.actions {
            let args: Result<Vec<Value>, Diagnostic> =
                args.iter().map(|a| self.results.of(engine, a, self.reads, full)).collect();
            multi.push((*action, args?));
        }
        self.key.clear();
        for (action, args) in &multi {
            label_key(self.model, engine, *action, args, self.key);
        }
        if let Some(&label) = self.labels.get(&self.key[..]) {
            self.undefined_labels.note_place(self.model, &self.model.codes[self.group], label);
            return Ok(label);
        }
        let label = label_of(self.model, engine, &multi);
        self.undefined_labels.examine(
            self.model,
            engine,
            &self.model.codes[self.group],
            label,
            &multi,
        );
        self.labels.insert(self.key[..].into(), label);
        Ok(label)
    }

    /// Appends the values of the written slots.
    fn written_values(
        &mut self,
        engine: &mut Engine,
        full: &[Value],
        out: &mut Vec<u32>,
    ) -> Result<(), Diagnostic> {
        for (slot, update) in self.model.groups[self.group].writes.iter().zip(&self.code.updates) {
            let value = self.results.of(engine, update, self.reads, full)?;
            out.push(self.number(engine, *slot, &value)?);
        }
        Ok(())
    }

    /// Returns the number of a value that is written to a slot.
    #[inline]
    fn number(
        &mut self,
        engine: &mut Engine,
        slot: Slot,
        value: &Value,
    ) -> Result<u32, Diagnostic> {
        let model = self.model;
        let id = id_of(model, self.locals, engine, slot, value);
        let conditions = &model.conditions[slot as usize];
        if !value.is_data() && !conditions.is_empty() && !self.decided.contains(&(slot, id)) {
            conditions.decide(engine, model.process.params[slot as usize].var, value)?;
            self.decided.insert((slot, id));
        }
        Ok(id)
    }

    /// Appends the outcomes of a step with their probabilities. `full` is restored afterwards.
    fn outcomes(
        &mut self,
        engine: &mut Engine,
        full: &mut Vec<Value>,
        span: Span,
        out: &mut Chances,
    ) -> Result<(), Diagnostic> {
        let Some(chance) = &self.code.chance else {
            out.weights.push(self.draws.certain());
            let mut values = Vec::with_capacity(self.code.updates.len());
            self.written_values(engine, full, &mut values)?;
            out.values.push(values.into());
            return Ok(());
        };
        let which = chance.select_weight(engine, full)?;
        let draw = self.draws.draw(engine, (self.group, chance, which), full, span)?;
        out.weights.push(draw.weights.clone());
        let known = full.len();
        let writes = &self.model.groups[self.group].writes;
        // Updates that do not depend on the choice are computed once, and updates that depend on
        // the distribution alone once per distribution.
        let mut columns: Vec<Column> = Vec::with_capacity(writes.len());
        let mut same = Vec::new();
        for (at, (slot, rests)) in writes.iter().zip(&chance.weight(which).rests).enumerate() {
            columns.push(match rests {
                Dependency::Before => {
                    full.resize(known + chance.width, Value::Bool(false));
                    let value = self.results.of(engine, &self.code.updates[at], self.reads, full);
                    full.truncate(known);
                    let id = self.number(engine, *slot, &value?)?;
                    same.push(id);
                    Column::Same(id)
                }
                Dependency::Drawn => {
                    Column::Known(self.column(engine, (at, *slot), &draw, full, chance.width)?)
                }
                Dependency::Both => Column::Each,
            });
        }
        if !columns.iter().any(|c| matches!(c, Column::Each)) {
            let value = |outcome: usize, column: &Column| match column {
                Column::Known(ids) => ids[outcome],
                Column::Same(id) => *id,
                Column::Each => unreachable!("columns are computed per outcome only"),
            };
            let all = |outcome| columns.iter().map(move |column| value(outcome, column));
            out.values.push(
                draw.written_values(same.into(), || {
                    (0..draw.weights.len()).flat_map(all).collect()
                }),
            );
            return Ok(());
        }
        let mut values = Vec::with_capacity(draw.weights.len() * writes.len());
        for (outcome, chosen) in draw.values.chunks(chance.width.max(1)).enumerate() {
            full.truncate(known);
            full.extend_from_slice(chosen);
            for (at, slot) in writes.iter().enumerate() {
                values.push(match &columns[at] {
                    Column::Same(id) => *id,
                    Column::Known(ids) => ids[outcome],
                    Column::Each => {
                        let value =
                            self.results.of(engine, &self.code.updates[at], self.reads, full)?;
                        self.number(engine, *slot, &value)?
                    }
                });
            }
        }
        full.truncate(known);
        out.values.push(values.into());
        Ok(())
    }

    /// Returns the value numbers of an update for each outcome of a distribution on which alone it
    /// depends.
    fn column(
        &mut self,
        engine: &mut Engine,
        (at, slot): (usize, Slot),
        draw: &Distribution,
        full: &mut Vec<Value>,
        width: usize,
    ) -> Result<Rc<[u32]>, Diagnostic> {
        if let Some(known) = draw.columns.borrow().get(&at) {
            return Ok(known.clone());
        }
        let known = full.len();
        let mut ids = Vec::new();
        for chosen in draw.values.chunks(width.max(1)) {
            full.truncate(known);
            full.extend_from_slice(chosen);
            let value = self.results.of(engine, &self.code.updates[at], self.reads, full)?;
            ids.push(self.number(engine, slot, &value)?);
        }
        full.truncate(known);
        let ids: Rc<[u32]> = ids.into();
        draw.columns.borrow_mut().insert(at, ids.clone());
        Ok(ids)
    }
}

/// Values of an update for the outcomes of a distribution.
enum Column {
    Same(u32),
    Known(Rc<[u32]>),
    Each,
}

/// Returns the number of a multi-action.
fn label_of(model: &Compiled, engine: &mut Engine, multi: &[(ActId, Vec<Value>)]) -> LabelId {
    let mut portable: MultiAction = multi
        .iter()
        .map(|(a, args)| {
            let sorts = &model.process.actions[a.index()].sorts;
            let args = args.iter().zip(sorts).map(|(v, sort)| {
                let value = engine.normal_functions(v, *sort);
                engine.to_expr_at(&value, *sort)
            });
            (*a, args.collect())
        })
        .collect();
    let signature = model.program.signature();
    portable.sort_by_cached_key(|(a, args)| {
        (*a, args.iter().map(|e| mu_data::print::expression(signature, e)).collect::<Vec<_>>())
    });
    model.labels.intern(portable)
}
