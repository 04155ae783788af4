//! Evaluates groups of a compiled linear process in one thread.
//!
//! Keeps a rewriter, compiled code of the groups it has met, and its own copies of table entries
//! both ways.

use super::chance::{Draw, Rests};
use super::conditions::{Question, Shared};
use super::outlines::Outlines;
use super::parts::Told;
use super::recall::{Narrow, Recall};
use super::results::{Compute, Results};
use super::solutions::Solutions;
use super::undefined_labels::UndefinedLabelCache;
use super::{Compiled, chance};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, LabelId, VarId};
use mu_base::{Diagnostic, Span};
use mu_data::engine::{Engine, Problem, Receiver, Value};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::terms::TermId;
use mu_labels::MultiAction;
use mu_model::{Chances, Slot, StepPart, Steps, Worker};
use std::ops::ControlFlow;
use std::rc::Rc;

struct Compiledgroup {
    /// What is asked before the problem, which is what is left of the condition then.
    questions: Vec<Question>,
    problem: Problem,
    /// The whole condition, if it was needed.
    whole: Option<Problem>,
    sum_vars: Vec<VarId>,
    /// Solutions of the problem, where they may recur.
    solutions: Option<Solutions>,
    /// The steps but for what lists hold behind their new elements, where that may recur.
    outlines: Option<Outlines>,
    actions: Vec<(ActId, Vec<Compute>)>,
    updates: Vec<Compute>,
    /// What chance may choose.
    chance: Option<chance::Drawing>,
    /// The steps by what is read once the questions are answered, if that is less than what the
    /// group reads.
    body: Option<Body>,
}

/// What a group does where its questions are answered well: it depends on fewer slots than these
/// do.
struct Body {
    by: Narrow,
    steps: Recall<Steps>,
    key: Vec<u32>,
}

impl Body {
    /// Appends the steps, if they are known.
    fn recall(&mut self, reads: &[u32], out: &mut Steps) -> bool {
        self.by.ask(reads, &mut self.key);
        let Some(known) = self.steps.get(&self.key) else { return false };
        out.labels.extend_from_slice(&known.labels);
        out.values.extend_from_slice(&known.values);
        true
    }
}

/// Values on the heap after which a copy of a table forgets what it has not used since it last
/// forgot.
const GENERATION: usize = 1 << 16;

/// Copies of a value table: of values that take no memory of their own all that were seen, of
/// others those that were used lately.
#[derive(Default)]
struct Local {
    values: Vec<Option<Value>>,
    /// Numbers of values that take no memory of their own.
    ids: AHashMap<TermId, u32>,
    /// Values on the heap that are used now, and that were used before.
    young: AHashMap<u32, Value>,
    old: AHashMap<u32, Value>,
}

impl Local {
    /// The value of a number, if it is here.
    fn value(&mut self, id: u32) -> Option<Value> {
        if let Some(Some(v)) = self.values.get(id as usize) {
            return Some(v.clone());
        }
        if let Some(v) = self.young.get(&id) {
            return Some(v.clone());
        }
        let value = self.old.get(&id)?.clone();
        self.keep(&value, id);
        Some(value)
    }
    /// Keeps a value by its number.
    fn keep(&mut self, value: &Value, id: u32) {
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

/// The evaluator of one thread.
pub(super) struct LinearWorker<'m> {
    pub(super) model: &'m Compiled,
    pub(super) engine: Engine,
    groups: Vec<Option<Compiledgroup>>,
    /// Groups whose steps have been told.
    pub(super) told: AHashMap<usize, Rc<Told>>,
    locals: Vec<Local>,
    /// What was read last of each slot: the groups of a state come one after the other.
    last: Vec<Option<(u32, Value)>>,
    conditions: Shared,
    results: Results,
    /// By actions and terms.
    labels: AHashMap<Box<[u32]>, LabelId>,
    /// A key of labels in the making.
    key: Vec<u32>,
    /// Of these, those in which a term has no value.
    noticed: UndefinedLabelCache,
    /// Values other than data that leave no condition on their slot open.
    decided: AHashSet<(Slot, u32)>,
    /// What chance chose between so far.
    draws: chance::Draws,
}

impl<'m> LinearWorker<'m> {
    pub(super) fn new(model: &'m Compiled) -> Self {
        Self {
            model,
            engine: Engine::new(model.program.clone()).limited(&model.budget).sharing(&model.terms),
            groups: model.groups.iter().map(|_| None).collect(),
            told: AHashMap::new(),
            locals: model.tables.iter().map(|_| Local::default()).collect(),
            last: vec![None; model.slots.len()],
            conditions: Shared::default(),
            results: Results::default(),
            labels: AHashMap::new(),
            key: Vec::new(),
            noticed: UndefinedLabelCache::default(),
            decided: AHashSet::new(),
            draws: chance::Draws::default(),
        }
    }

    fn compile(&mut self, group: usize) -> Result<Compiledgroup, Diagnostic> {
        let code = &self.model.codes[group];
        // A variable that occurs nowhere need not be enumerated: any value would do.
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
        let (questions, left) =
            self.conditions.of(&mut self.engine, (&code.guard, &code.reads), &self.model.common)?;
        let rest = if questions.is_empty() {
            code.guard.clone()
        } else {
            conjunction(self.engine.program().signature(), &left)
        };
        let problem = self.engine.problem(&sum_vars, &rest, &code.reads)?;
        let solutions = Solutions::new(&rest, &sum_vars, &code.reads);
        let outlines = Outlines::new(self.model, group, &rest);
        let mut env: Vec<VarId> = code.reads.iter().chain(&sum_vars).copied().collect();
        env.extend(code.chance.iter().flat_map(|c| &c.vars));
        let mut compute = |e| self.results.compute(&mut self.engine, e, &env, &self.model.shared);
        let mut actions = Vec::new();
        for act in &code.actions {
            let args: Result<Vec<Compute>, Diagnostic> =
                act.args.iter().map(&mut compute).collect();
            actions.push((act.action, args?));
        }
        let updates: Result<Vec<Compute>, Diagnostic> =
            code.updates.iter().map(&mut compute).collect();
        let chance = match &code.chance {
            Some(chosen) => {
                let before = &env[..env.len() - chosen.vars.len()];
                Some(chance::Drawing::new(&mut self.engine, chosen, before, &code.updates)?)
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
        let by =
            Narrow::new(&code.reads, &used).filter(|_| !questions.is_empty() && chance.is_none());
        let body = by.map(|by| Body { by, steps: Recall::default(), key: Vec::new() });
        Ok(Compiledgroup {
            questions,
            problem,
            whole: None,
            sum_vars,
            solutions,
            outlines,
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
                self.locals[table].keep(&value, id);
                value
            }
        };
        self.last[slot as usize] = Some((id, value.clone()));
        Ok(value)
    }
}

impl LinearWorker<'_> {
    /// The number of a slot's value.
    pub(super) fn id(&mut self, slot: Slot, value: &Value) -> u32 {
        id_of(self.model, &mut self.locals, &mut self.engine, slot, value)
    }

    /// The number of a multi-action.
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

impl Compiledgroup {
    /// Appends the steps, if they are known; the questions have been answered well.
    fn recall(&mut self, model: &Compiled, group: usize, reads: &[u32], out: &mut Steps) -> bool {
        self.body.as_mut().is_some_and(|b| b.recall(reads, out))
            || self.outlines.as_mut().is_some_and(|o| o.recall(model, group, reads, out))
    }

    /// Keeps what the steps are, or what of them may recur.
    fn keep(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        (labels, values): (&[LabelId], &[u32]),
    ) {
        if let Some(Body { by, steps, key }) = self.body.as_mut().filter(|b| !b.steps.is_given_up())
        {
            by.ask(reads, key);
            steps.keep(
                key,
                Steps { labels: labels.to_vec(), values: values.to_vec() },
                labels.len() + values.len(),
            );
        }
        if let Some(outlines) = &mut self.outlines {
            outlines.keep(model, group, reads, (labels, values));
        }
    }

    /// The solutions of what is left of the condition once its questions are answered, or of all of
    /// it.
    fn each(
        &self,
        engine: &mut Engine,
        asked: Asked,
        reads: &[u32],
        env: &[Value],
        each: &mut Receiver,
    ) -> Result<(), Diagnostic> {
        match (asked, &self.whole, &self.solutions) {
            (Asked::Nothing, Some(whole), _) => engine.solve(whole, env, each),
            (_, _, Some(solutions)) => solutions.each(engine, &self.problem, reads, env, each),
            _ => engine.solve(&self.problem, env, each),
        }
    }
}

/// Which part of a group's condition holds already.
#[derive(Clone, Copy)]
enum Asked {
    /// What its questions ask.
    Questions,
    /// None: some question has no answer.
    Nothing,
}

impl Shared {
    /// Asks a group's questions; none: one of them is answered with no.
    fn asked(
        &mut self,
        engine: &mut Engine,
        (model, group): (&Compiled, usize),
        code: &mut Compiledgroup,
        reads: &[u32],
        env: &[Value],
    ) -> Result<Option<Asked>, Diagnostic> {
        match self.hold(engine, &code.questions, reads, env) {
            Some(true) => Ok(Some(Asked::Questions)),
            Some(false) => Ok(None),
            None => {
                if code.whole.is_none() {
                    let own = &model.codes[group];
                    code.whole = Some(engine.problem(&code.sum_vars, &own.guard, &own.reads)?);
                }
                Ok(Some(Asked::Nothing))
            }
        }
    }
}

/// Expressions of the program joined by `&&`.
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

/// Adds an action with its arguments to the key of a label.
fn label_key(
    model: &Compiled,
    engine: &mut Engine,
    action: ActId,
    args: &[Value],
    key: &mut Vec<u32>,
) {
    key.push(action.0);
    let sorts = &model.process.actions[action.index()].sorts;
    key.extend(args.iter().zip(sorts).map(|(v, sort)| engine.term_at(v, *sort).word()));
}

/// The number of a value in a table, by way of the thread's own copy.
fn id_of(
    model: &Compiled,
    locals: &mut [Local],
    engine: &mut Engine,
    slot: Slot,
    value: &Value,
) -> u32 {
    let table = model.table_of[slot as usize];
    let term = engine.term_at(value, model.sort_of[slot as usize]);
    if value.is_on_heap() {
        let (id, new) = model.tables[table].intern(term);
        if new {
            locals[table].keep(value, id);
        }
        return id;
    }
    if let Some(&id) = locals[table].ids.get(&term) {
        return id;
    }
    let (id, _) = model.tables[table].intern(term);
    locals[table].keep(value, id);
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
        let known = if code.questions.is_empty() {
            Some(true)
        } else {
            self.conditions.known(&code.questions, reads)
        };
        match known {
            Some(false) => return Ok(()),
            Some(true) if code.recall(self.model, group, reads, out) => return Ok(()),
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
            noticed,
            decided,
            draws,
            conditions,
            results,
            ..
        } = self;
        let code = groups[group].as_mut().expect("compiled above");
        if code.chance.is_some() {
            return Err(chance::unexpected(span));
        }
        let Some(asked) = conditions.asked(engine, (model, group), code, reads, &env)? else {
            return Ok(());
        };
        let (code, before) = (&*code, (out.labels.len(), out.values.len()));
        let mut full = env.clone();
        let mut setting = Setting {
            model,
            locals,
            labels,
            key,
            noticed,
            decided,
            draws,
            results,
            reads,
            group,
            code,
        };
        code.each(engine, asked, reads, &env, &mut |engine: &mut Engine, solution: &[Value]| {
            full.truncate(env.len());
            full.extend_from_slice(solution);
            out.labels.push(setting.label(engine, &full)?);
            setting.written(engine, &full, &mut out.values)?;
            Ok(ControlFlow::Continue(()))
        })
        .map_err(|e| e.or_span(span))?;
        if let (Asked::Questions, Some(code)) = (asked, &mut groups[group]) {
            code.keep(model, group, reads, (&out.labels[before.0..], &out.values[before.1..]));
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
            noticed,
            decided,
            draws,
            conditions,
            results,
            ..
        } = self;
        let code = groups[group].as_mut().expect("compiled above");
        let Some(asked) = conditions.asked(engine, (model, group), code, reads, &env)? else {
            return Ok(());
        };
        let code = &*code;
        let mut setting = Setting {
            model,
            locals,
            labels,
            key,
            noticed,
            decided,
            draws,
            results,
            reads,
            group,
            code,
        };
        let mut full = env.clone();
        code.each(engine, asked, reads, &env, &mut |engine: &mut Engine, solution: &[Value]| {
            full.truncate(env.len());
            full.extend_from_slice(solution);
            out.labels.push(setting.label(engine, &full)?);
            setting.outcomes(engine, &mut full, span, out)?;
            Ok(ControlFlow::Continue(()))
        })
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

/// What the steps of a group are made with.
struct Setting<'a> {
    model: &'a Compiled,
    locals: &'a mut [Local],
    labels: &'a mut AHashMap<Box<[u32]>, LabelId>,
    key: &'a mut Vec<u32>,
    noticed: &'a mut UndefinedLabelCache,
    decided: &'a mut AHashSet<(Slot, u32)>,
    draws: &'a mut chance::Draws,
    results: &'a mut Results,
    /// The numbers of what the group reads.
    reads: &'a [u32],
    group: usize,
    code: &'a Compiledgroup,
}

impl Setting<'_> {
    /// The label of the step for these values of what the group reads and sums over.
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
            self.noticed.again(self.model, &self.model.codes[self.group], label);
            return Ok(label);
        }
        let label = label_of(self.model, engine, &multi);
        self.noticed.look(self.model, engine, &self.model.codes[self.group], label, &multi);
        self.labels.insert(self.key[..].into(), label);
        Ok(label)
    }

    /// Appends the values of the written slots.
    fn written(
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

    /// The number of a value that a slot is to hold.
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

    /// Appends where a step may lead, with the probabilities. `full` is left as it was.
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
            self.written(engine, full, &mut values)?;
            out.values.push(values.into());
            return Ok(());
        };
        let which = chance.decided(engine, full)?;
        let draw = self.draws.draw(engine, (self.group, chance, which), full, span)?;
        out.weights.push(draw.weights.clone());
        let known = full.len();
        let writes = &self.model.groups[self.group].writes;
        // What chance has nothing to do with is computed once, and what rests on the draw alone
        // once for the draw.
        let mut columns: Vec<Column> = Vec::with_capacity(writes.len());
        let mut same = Vec::new();
        for (at, (slot, rests)) in writes.iter().zip(&chance.weight(which).rests).enumerate() {
            columns.push(match rests {
                Rests::Before => {
                    full.resize(known + chance.width, Value::Bool(false));
                    let value = self.results.of(engine, &self.code.updates[at], self.reads, full);
                    full.truncate(known);
                    let id = self.number(engine, *slot, &value?)?;
                    same.push(id);
                    Column::Same(id)
                }
                Rests::Drawn => {
                    Column::Known(self.column(engine, (at, *slot), &draw, full, chance.width)?)
                }
                Rests::Both => Column::Each,
            });
        }
        if !columns.iter().any(|c| matches!(c, Column::Each)) {
            let value = |outcome: usize, column: &Column| match column {
                Column::Known(ids) => ids[outcome],
                Column::Same(id) => *id,
                Column::Each => unreachable!("no column is computed for each outcome"),
            };
            let all = |outcome| columns.iter().map(move |column| value(outcome, column));
            out.values.push(
                draw.written(same.into(), || (0..draw.weights.len()).flat_map(all).collect()),
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

    /// What an update comes to for each outcome of a draw, of which it is known that nothing else
    /// matters.
    fn column(
        &mut self,
        engine: &mut Engine,
        (at, slot): (usize, Slot),
        draw: &Draw,
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

/// What an update comes to for the outcomes of a draw.
enum Column {
    Same(u32),
    Known(Rc<[u32]>),
    Each,
}

/// The number of a multi-action.
fn label_of(model: &Compiled, engine: &mut Engine, multi: &[(ActId, Vec<Value>)]) -> LabelId {
    let mut portable: MultiAction = multi
        .iter()
        .map(|(a, args)| {
            let sorts = &model.process.actions[a.index()].sorts;
            (*a, args.iter().zip(sorts).map(|(v, sort)| engine.to_expr_at(v, *sort)).collect())
        })
        .collect();
    let signature = model.program.signature();
    portable.sort_by_cached_key(|(a, args)| {
        (*a, args.iter().map(|e| mu_data::print::expression(signature, e)).collect::<Vec<_>>())
    });
    model.labels.intern(portable)
}
