//! Unfolding of structured parameters: records, lists of constant length, and functions that change
//! at few arguments become one parameter per field.
//!
//! Sums over few values become a summand for each value, if summands then depend on fewer fields. A
//! summand that selects fields by the value of another parameter, such as a position on a board, is
//! split by the values of that parameter if they are few (`range`).
//!
//! In and out: [`LinearProcess`] with the same transition system. A record is an element of a sort
//! with one free constructor; its fields may be records, lists or functions again (`shape`).
//! Expressions on a record are evaluated as far as possible without the values of the fields
//! ([`Engine::open`]): `at(3, board)` becomes the third field. A condition that is a disjunction of
//! conditions on few fields each becomes a summand for each of them: a test for four pieces in a
//! row is evaluated row by row, and rows recur more often than boards. After Groote, Lisser,
//! "Computer assisted manipulation of algebraic process specifications" (2001), where such
//! unfolding needs functions that distinguish cases; records need none.
//!
//! Conditions that several summands share are evaluated once per state (`mu_compile`), so they
//! count once. A parameter is not unfolded if an update of it is not a record (or list of that
//! length) of expressions. Nor is it if its summands would still read more than half of its fields
//! on average: a single number is shorter in the state then. Cost: a bounded number of evaluations
//! for the expressions of each instance, in a few rounds; each round that rejects parameters causes
//! another.

mod range;
mod shape;

use self::range::combinations;
use self::shape::{FieldTree, Keys, ShapeBuilder, SplitFields};
use super::confluence::fixes;
use super::linear::{Act, LinearProcess, Param, Summand};
use super::open_constants::OpenConstants;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{Binder, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::{SortKind, basic};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

/// Limit on the instances of a summand.
const MAX_VALUES: usize = 512;
/// Limit on the instances of a summand due to a disjunction in its condition.
const MAX_ALTERNATIVES: usize = 1024;
/// Limit on the instances of all summands.
const MAX_INSTANCES: usize = 4096;
/// Limit on the equations that an evaluation may apply.
const MAX_STEPS: u64 = 50_000;
/// Limits on the undecided conditions below which calls are evaluated: at first, and after that
/// takes too many steps.
const PATIENCE: u32 = 100;
const IMPATIENCE: u32 = 4;
const MAX_TRIED: u64 = 10_000;
/// Share of the fields above which a summand is split by the values of parameters.
const WIDE: f64 = 0.5;
/// Limits on the number of evaluations, and on the equations that they apply in total.
const MAX_EVALUATIONS: u64 = 200_000;
const MAX_WORK: u64 = 4_000_000;

/// Parameter that may be unfolded.
struct UnfoldCandidate {
    shape: FieldTree,
    fields: Vec<VarId>,
    /// Depth to which lists within lists are unfolded.
    lists: usize,
    /// Arguments at which functions in it change, as far as known.
    keys: Keys,
}

/// Statistics on the fields of a record that its summands read.
#[derive(Default)]
struct Reads {
    summands: usize,
    share: f64,
}

/// Summand with updates by variable.
struct UnfoldedSummand {
    summand: Summand,
    updates: Vec<(VarId, Expr)>,
}

/// Candidate parameters in the instances of a summand, and the range of these instances.
type Touching = (Vec<usize>, Range<usize>);

/// Number of uses of a condition.
#[derive(Default)]
struct ConditionUses {
    times: usize,
    /// Parameters for which it has been counted.
    by: Vec<usize>,
}

/// Strips a negation from a condition.
fn plain<'e>(signature: &Signature, e: &'e Expr) -> &'e Expr {
    match e.as_builtin(signature) {
        Some((Builtin::Not, [inner])) => inner,
        _ => e,
    }
}

/// Returns a function that counts the fields that an expression reads.
fn reads_of(by: &Substitution) -> impl Fn(&Expr) -> usize {
    let mut fields = Vec::new();
    by.values().for_each(|e| e.free_vars(&mut fields));
    move |e| {
        let mut vars = Vec::new();
        e.free_vars(&mut vars);
        vars.iter().filter(|v| fields.contains(v)).count()
    }
}

/// Returns the parts of a disjunction without duplicates.
fn disjuncts(signature: &Signature, e: &Expr) -> Vec<Expr> {
    let (mut out, mut todo, mut seen) = (Vec::new(), vec![e], AHashSet::new());
    while let Some(e) = todo.pop() {
        match e.as_builtin(signature) {
            Some((Builtin::Or, [a, b])) => todo.extend([b, a]),
            Some((Builtin::False, _)) => {}
            _ if seen.insert(e) => out.push(e.clone()),
            _ => {}
        }
    }
    out
}

struct Unfolding<'a> {
    process: &'a mut LinearProcess,
    engine: Engine,
    evaluations: u64,
    /// Cache of evaluated expressions.
    opened: AHashMap<Expr, Option<Expr>>,
    special: AHashSet<SortId>,
    /// By parameter.
    candidates: BTreeMap<usize, UnfoldCandidate>,
    /// Candidates that do not preserve their shape.
    refuted: BTreeSet<usize>,
    /// By refuted candidate: arguments at which functions change that its shape does not include.
    unknown: BTreeMap<usize, Keys>,
    /// By parameter: its initial value, if computed.
    inits: AHashMap<usize, Option<Expr>>,
    /// By parameter: its possible values, if computed.
    ranges: AHashMap<usize, Option<Vec<Expr>>>,
    /// True if summands may be split by these values.
    positions: bool,
    /// Constants of sorts of which the values must not be enumerated.
    any_size: &'a [String],
    /// Operations that are not evaluated.
    open_constants: &'a OpenConstants,
}

/// Unfolds parameters if that reduces dependencies. `positions`: splits summands by the values of
/// parameters that select fields as well. `any_size`: constants of sorts of which the values must
/// not be enumerated. `open_constants`: operations that are not evaluated.
pub fn unfold(
    process: &mut LinearProcess,
    positions: bool,
    any_size: &[String],
    open_constants: &OpenConstants,
) -> Result<(), Diagnostic> {
    let sort_of = |process: &LinearProcess, p: &Param| process.data.signature.var(p.var).sort;
    let signature = &process.data.signature;
    let promising = |sort: SortId| {
        matches!(signature.sorts.kind(sort), SortKind::List(_) | SortKind::Function(..))
            || signature.sorts.declared_sort(sort).is_some_and(|n| n.constructors.len() == 1)
    };
    if !process.params.iter().any(|p| promising(sort_of(process, p))) {
        return Ok(());
    }
    let special = process.data.special_sorts();
    for value in [true, false] {
        Expr::boolean(&mut process.data.signature, value);
    }
    let program = Program::compile(&process.data)?;
    process.data.signature = program.signature().clone();
    let mut engine = Engine::new(program);
    engine.set_step_limit(MAX_STEPS);
    engine.set_growth_limit(MAX_TRIED);
    let mut unfolding = Unfolding {
        process,
        engine,
        evaluations: 0,
        opened: AHashMap::new(),
        special,
        candidates: BTreeMap::new(),
        refuted: BTreeSet::new(),
        unknown: BTreeMap::new(),
        inits: AHashMap::new(),
        ranges: AHashMap::new(),
        positions,
        any_size,
        open_constants,
    };
    for param in 0..unfolding.process.params.len() {
        unfolding.candidate(param, usize::MAX, Keys::new());
    }
    while !unfolding.candidates.is_empty() {
        if let Some((inits, summands)) = unfolding.attempt() {
            unfolding.replace(&inits, summands);
            break;
        }
    }
    Ok(())
}

impl Unfolding<'_> {
    /// Makes a parameter a candidate, if it has a shape with several fields.
    fn candidate(&mut self, param: usize, lists: usize, keys: Keys) {
        let var = self.process.data.signature.var(self.process.params[param].var).clone();
        let shaped = match self.process.data.signature.sorts.kind(var.sort) {
            SortKind::List(_) | SortKind::Function(..) => true,
            _ => self
                .process
                .data
                .signature
                .sorts
                .declared_sort(var.sort)
                .is_some_and(|n| n.constructors.len() == 1),
        };
        if !shaped {
            return;
        }
        let init = self.init(param);
        let (engine, hidden) = (&mut self.engine, self.open_constants);
        let mut shaper = ShapeBuilder {
            signature: &mut self.process.data.signature,
            special: &self.special,
            lists,
            keys: &keys,
            placeholders: &self.process.anatomy.placeholders,
            apply: &mut |e| match hidden.is_hidden_in(e) {
                true => None,
                false => engine.open(e, &[]).ok(),
            },
            fields: Vec::new(),
        };
        if let Some(shape) = shaper.shape(&var.name, var.sort, init.as_ref())
            && (shaper.fields.len() > 1 || shape.has_functions() && keys.len() <= MAX_VALUES)
        {
            let fields = shaper.fields;
            self.candidates.insert(param, UnfoldCandidate { shape, fields, lists, keys });
        }
    }

    /// Returns the initial value of a parameter, if it can be computed.
    fn init(&mut self, param: usize) -> Option<Expr> {
        if let Some(known) = self.inits.get(&param) {
            return known.clone();
        }
        let init = self.process.params[param].init.clone();
        let init = self.open(&init);
        self.inits.insert(param, init.clone());
        init
    }

    /// Removes refuted candidates. True if there were any.
    fn remove_refuted(&mut self) -> bool {
        let refuted = std::mem::take(&mut self.refuted);
        refuted.iter().for_each(|p| self.refute(*p));
        !refuted.is_empty()
    }

    /// Refutes a guess: functions in this parameter change at further arguments, lists within its
    /// lists vary in length, or it cannot be unfolded at all.
    fn refute(&mut self, param: usize) {
        let unknown = self.unknown.remove(&param).unwrap_or_default();
        let Some(UnfoldCandidate { shape, lists, mut keys, .. }) = self.candidates.remove(&param)
        else {
            return;
        };
        let known = keys.len();
        unknown.into_iter().for_each(|k| {
            if !keys.contains(&k) {
                keys.push(k)
            }
        });
        if known < keys.len() {
            return self.candidate(param, lists, keys);
        }
        match lists {
            _ if !shape.has_lists() => {}
            0 => {}
            1 => self.candidate(param, 0, keys),
            _ => self.candidate(param, 1, keys),
        }
    }

    /// Rewrites the process with the candidates unfolded. `None` if candidates were refuted instead
    /// (all of them, if it takes too long).
    fn attempt(&mut self) -> Option<(Substitution, Vec<UnfoldedSummand>)> {
        let before = self.candidates.len();
        let mut inits = Substitution::new();
        let params: Vec<usize> = self.candidates.keys().copied().collect();
        for p in params {
            let mut parts = SplitFields::default();
            let split = self.init(p).and_then(|e| {
                self.candidates[&p].shape.split(&mut self.process.data.signature, &e, &mut parts)
            });
            match split {
                Some(()) => inits.extend(parts.values),
                None => drop(self.refuted.insert(p)),
            }
        }
        if self.remove_refuted() {
            return None;
        }
        let LinearProcess { data, params, .. } = &mut *self.process;
        let by: Substitution = self
            .candidates
            .iter()
            .map(|(p, c)| (params[*p].var, c.shape.term(&mut data.signature)))
            .collect();
        let mut reads: AHashMap<usize, Reads> = AHashMap::new();
        let mut touching: Vec<Touching> = Vec::new();
        let mut out = Vec::new();
        for i in 0..self.process.summands.len() {
            let summand = self.process.summands[i].clone();
            let touched: Vec<usize> = self.touched_params(&summand);
            if touched.is_empty() {
                let updates = summand
                    .updates
                    .iter()
                    .map(|(p, e)| (self.process.params[*p].var, e.clone()))
                    .collect();
                out.push(UnfoldedSummand { summand, updates });
                continue;
            }
            match self.instances_of(&touched, &summand, &by) {
                Ok(instances) if self.within_limits(out.len() + instances.len()) => {
                    touching.push((touched, out.len()..out.len() + instances.len()));
                    out.extend(instances);
                }
                Ok(_) => {
                    self.candidates.clear();
                    return None;
                }
                // The remaining summands are examined all the same, to reduce the number of rounds.
                Err(param) => drop(self.refuted.insert(param)),
            }
        }
        if self.remove_refuted() {
            return None;
        }
        (out, touching) = self.split_shared_disjunctions(out, touching);
        let mut common = self.common(&out);
        for (touched, instances) in touching {
            for p in touched {
                let here = reads.entry(p).or_default();
                here.summands += 1;
                here.share += self.share(p, &out[instances.clone()], &mut common);
            }
        }
        self.candidates
            .retain(|p, _| reads.get(p).is_some_and(|r| r.share <= 0.5 * r.summands as f64));
        (self.candidates.len() == before).then_some((inits, out))
    }

    fn within_limits(&self, summands: usize) -> bool {
        summands <= MAX_INSTANCES + self.process.summands.len()
            && self.evaluations <= MAX_EVALUATIONS
            && self.engine.steps() <= MAX_WORK
    }

    fn touched_params(&self, s: &Summand) -> Vec<usize> {
        let mut vars = Vec::new();
        s.guard.free_vars(&mut vars);
        s.actions
            .iter()
            .chain(&s.hidden)
            .flat_map(|a| &a.args)
            .for_each(|e| e.free_vars(&mut vars));
        s.updates.iter().for_each(|u| u.1.free_vars(&mut vars));
        let mut touched: Vec<usize> = (self.candidates.keys().copied())
            .filter(|p| {
                vars.contains(&self.process.params[*p].var) || s.updates.iter().any(|u| u.0 == *p)
            })
            .collect();
        touched.sort_unstable();
        touched
    }

    /// Evaluates an expression as far as its variables allow, within a limit on steps.
    fn open(&mut self, e: &Expr) -> Option<Expr> {
        if let Some(known) = self.opened.get(e) {
            return known.clone();
        }
        self.evaluations += 1;
        if self.open_constants.is_hidden_in(e) {
            return None;
        }
        let mut vars = Vec::new();
        e.free_vars(&mut vars);
        // A large limit first: code that inspects one part of a structure after the other is
        // decided by their values.
        self.engine.set_patience(PATIENCE);
        let mut open = self.engine.open(e, &vars).ok();
        self.engine.set_patience(IMPATIENCE);
        if open.is_none() {
            open = self.engine.open(e, &vars).ok();
        }
        self.opened.insert(e.clone(), open.clone());
        open
    }

    /// True if the values of a variable are, or contain, elements of a sort of any size.
    fn has_any_size(&self, var: VarId) -> bool {
        let signature = &self.process.data.signature;
        let is_constant = |op: &OpId| self.any_size.contains(&signature.op(*op).name);
        let mut open = vec![signature.var(var).sort];
        let mut seen = AHashSet::new();
        while let Some(sort) = open.pop() {
            if self.any_size.is_empty() || !seen.insert(sort) {
                continue;
            }
            match signature.sorts.kind(sort) {
                SortKind::Function(arguments, result) => {
                    open.extend(arguments.iter().copied().chain([*result]));
                }
                SortKind::List(of)
                | SortKind::Set(of)
                | SortKind::Bag(of)
                | SortKind::FSet(of)
                | SortKind::FBag(of) => open.push(*of),
                _ => {}
            }
            let Some(named) = signature.sorts.declared_sort(sort) else { continue };
            if named.constructors.iter().any(is_constant) {
                return true;
            }
            open.extend(named.constructors.iter().map(|c| signature.op(*c).sort));
        }
        false
    }

    /// Returns the values of variables that satisfy the conditions on them alone; `None` if they
    /// are not few.
    fn values(&mut self, bound: &[VarId], condition: &Expr) -> Option<Vec<Substitution>> {
        if bound.is_empty() {
            return Some(vec![Substitution::new()]);
        }
        if bound.iter().any(|v| self.has_any_size(*v)) {
            return None;
        }
        let signature = &mut self.process.data.signature;
        let mut bounds = Expr::boolean(signature, true);
        for c in condition.conjuncts(signature) {
            let mut vars = Vec::new();
            c.free_vars(&mut vars);
            if vars.iter().all(|v| bound.contains(v)) && !self.open_constants.is_hidden_in(&c) {
                bounds = Expr::and(signature, bounds, c);
            }
        }
        let problem = self.engine.problem(bound, &bounds, &[]).ok()?;
        let mut found = Vec::new();
        let mut all = true;
        let solved = self.engine.solve(&problem, &[], &mut |engine, values| {
            let value = |(v, value): (&VarId, _)| {
                (*v, engine.to_expr_at(value, engine.program().signature().var(*v).sort))
            };
            found.push(bound.iter().zip(values).map(value).collect());
            all = found.len() <= MAX_VALUES;
            Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        (solved.is_ok() && all).then_some(found)
    }

    /// Returns the instances of a summand, split by the values of parameters that select fields if
    /// that reduces the fields read.
    fn instances_of(
        &mut self,
        touched: &[usize],
        s: &Summand,
        by: &Substitution,
    ) -> Result<Vec<UnfoldedSummand>, usize> {
        let unknown = self.unknown.clone();
        let whole = self.rewrite(s, by, &[Substitution::new()]);
        let narrow = whole.as_ref().is_ok_and(|instances| self.width(touched, instances) <= WIDE);
        if narrow || !self.positions {
            return whole;
        }
        let indices = self.indices(touched, s);
        let Some(each) = combinations(&indices, MAX_VALUES).filter(|c| c.len() > 1) else {
            return whole;
        };
        let before = std::mem::replace(&mut self.unknown, unknown);
        match (self.rewrite(s, by, &each), &whole) {
            (Ok(split), Err(_)) => Ok(split),
            // The arguments at which functions change are known now.
            (Err(param), Err(_)) if self.unknown.contains_key(&param) => Err(param),
            (Ok(split), Ok(instances))
                if 2.0 * self.width(touched, &split) <= self.width(touched, instances) =>
            {
                Ok(split)
            }
            _ => {
                self.unknown = before;
                whole
            }
        }
    }

    /// Returns the instances of a summand, one for each of these values of parameters; the
    /// parameter as error if an update of it cannot be split.
    fn rewrite(
        &mut self,
        s: &Summand,
        by: &Substitution,
        each: &[Substitution],
    ) -> Result<Vec<UnfoldedSummand>, usize> {
        let values = self.values(&s.sum_vars, &s.guard);
        let bound = values.is_some();
        let (mut out, mut failed) = (Vec::new(), None);
        let values = values.unwrap_or_else(|| vec![Substitution::new()]);
        if values.len() * each.len() > MAX_INSTANCES {
            return Err(*self
                .touched_params(s)
                .first()
                .expect("rewritten summands involve a candidate"));
        }
        for (mut all, indices) in
            values.iter().flat_map(|all| each.iter().map(move |indices| (all.clone(), indices)))
        {
            all.extend(by.iter().map(|(v, e)| (*v, e.clone())));
            let at = self.at(indices);
            all.extend(indices.iter().map(|(v, e)| (*v, e.clone())));
            let (mut instance, mut updates) = (s.clone(), Vec::new());
            if bound {
                instance.sum_vars.clear();
            }
            let Some(guard) = self.guard(&s.guard.substitute(&all)) else { continue };
            instance.guard = Expr::and(&mut self.process.data.signature, at, guard);
            for e in instance
                .actions
                .iter_mut()
                .chain(&mut instance.hidden)
                .flat_map(|a: &mut Act| a.args.iter_mut())
            {
                let plain = e.substitute(&all);
                *e = self.open(&plain).unwrap_or(plain);
            }
            for (p, e) in &s.updates {
                let plain = e.substitute(&all);
                let value = self.open(&plain).unwrap_or(plain);
                // For a refuted candidate, all arguments at which it changes must be known in the
                // next round.
                let open = |p: &usize| !self.refuted.contains(p) || self.unknown.contains_key(p);
                if self.candidates.get(p).is_none_or(|_| !open(p)) {
                    let var = self.process.params[*p].var;
                    if indices.get(&var) != Some(&value) {
                        updates.push((var, value));
                    }
                    continue;
                }
                let mut parts = SplitFields::default();
                if self.split(*p, &value, &mut parts).is_none() {
                    if parts.unknown.is_empty() {
                        return Err(*p);
                    }
                    self.unknown.entry(*p).or_default().append(&mut parts.unknown);
                    failed = Some(*p);
                    continue;
                }
                updates.extend(
                    parts
                        .values
                        .into_iter()
                        .filter(|(v, e)| !matches!(e.kind, ExprKind::Var(w) if w == *v)),
                );
            }
            for guard in self.alternatives(&instance.guard, by, MAX_ALTERNATIVES / out.len().max(1))
            {
                out.push(UnfoldedSummand {
                    summand: Summand { guard, ..instance.clone() },
                    updates: updates.clone(),
                });
            }
        }
        failed.map_or(Ok(out), Err)
    }

    /// Returns the condition that parameters have certain values.
    fn at(&mut self, indices: &Substitution) -> Expr {
        let signature = &mut self.process.data.signature;
        let mut at = Expr::boolean(signature, true);
        for p in &self.process.params {
            if let Some(value) = indices.get(&p.var) {
                let var = Expr::var(signature, p.var);
                let here = Expr::equal(signature, var, value.clone());
                at = Expr::and(signature, at, here);
            }
        }
        at
    }

    /// Returns the new values of a candidate's fields. If it is not live, any values are correct;
    /// the initial ones are used.
    fn split(&mut self, param: usize, value: &Expr, parts: &mut SplitFields) -> Option<()> {
        let candidate = self.candidates.get(&param)?;
        if candidate.shape.is_built()
            && value.head().is_some_and(|op| self.process.anatomy.placeholders.contains(&op))
            && let Some(init) = self.inits.get(&param).cloned().flatten()
        {
            return candidate.shape.split(&mut self.process.data.signature, &init, parts);
        }
        candidate.shape.split(&mut self.process.data.signature, value, parts)
    }

    /// Splits a condition into the parts of a disjunction: if a disjunction reads many fields and
    /// each of its parts few, there is one for each part. A step occurs once even if several of
    /// them hold.
    fn alternatives(&mut self, guard: &Expr, by: &Substitution, most: usize) -> Vec<Expr> {
        let signature = &mut self.process.data.signature;
        let reads = reads_of(by);
        let conjuncts = guard.conjuncts(signature);
        let widest = conjuncts.iter().enumerate().map(|(i, c)| (reads(c), i)).max();
        let Some((width, at)) = widest.filter(|w| w.0 > 2) else { return vec![guard.clone()] };
        let parts = disjuncts(signature, &conjuncts[at]);
        if parts.len() < 2
            || parts.len() > most.min(MAX_VALUES)
            || parts.iter().any(|p| 2 * reads(p) > width)
        {
            return vec![guard.clone()];
        }
        // If the rest reads most of the fields anyway, nothing is gained.
        let mut rest = Expr::boolean(signature, true);
        for c in conjuncts.iter().enumerate().filter(|c| c.0 != at) {
            rest = Expr::and(signature, rest, c.1.clone());
        }
        if 2 * reads(&rest) > reads(guard) {
            return vec![guard.clone()];
        }
        let mut out = Vec::new();
        for part in parts {
            let mut all = Expr::boolean(signature, true);
            for (i, c) in conjuncts.iter().enumerate() {
                all = Expr::and(signature, all, if i == at { part.clone() } else { c.clone() });
            }
            out.push(all);
        }
        out
    }

    /// Evaluates a condition conjunct by conjunct; `None` if it is false.
    fn guard(&mut self, e: &Expr) -> Option<Expr> {
        let mut guard = Expr::boolean(&mut self.process.data.signature, true);
        for c in e.conjuncts(&self.process.data.signature) {
            let c = self.open(&c).unwrap_or(c);
            for c in self.expand_quantifiers(&c).conjuncts(&self.process.data.signature) {
                match c.as_bool(&self.process.data.signature) {
                    Some(true) => {}
                    Some(false) => return None,
                    None => guard = Expr::and(&mut self.process.data.signature, guard, c),
                }
            }
        }
        Some(guard)
    }

    /// Expands quantifiers over few values in a condition.
    fn expand_quantifiers(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Bind(binder @ (Binder::Exists | Binder::Forall), vars, body) = &e.kind {
            let forall = *binder == Binder::Forall;
            let found = match forall {
                true => {
                    let against = Expr::negate(&mut self.process.data.signature, body.clone());
                    self.open(&against).and_then(|against| self.values(vars, &against))
                }
                false => self.values(vars, body),
            };
            let Some(found) = found else { return e.clone() };
            let mut all = Expr::boolean(&mut self.process.data.signature, forall);
            for by in found.iter().rev() {
                let part = body.substitute(by);
                let part = self.open(&part).unwrap_or(part);
                let part = self.expand_quantifiers(&part);
                all = match (all.as_bool(&self.process.data.signature), forall) {
                    (Some(true), true) | (Some(false), false) => part,
                    _ => {
                        self.join(if forall { Builtin::And } else { Builtin::Or }, vec![part, all])
                    }
                };
            }
            return self.open(&all).unwrap_or(all);
        }
        let (connective, parts) = match e.as_builtin(&self.process.data.signature) {
            Some((c @ (Builtin::Not | Builtin::And | Builtin::Or), parts)) => (c, parts.to_vec()),
            _ => return e.clone(),
        };
        let new: Vec<Expr> = parts.iter().map(|p| self.expand_quantifiers(p)).collect();
        if new == parts {
            return e.clone();
        }
        let new = self.join(connective, new);
        self.open(&new).unwrap_or(new)
    }

    fn join(&mut self, connective: Builtin, parts: Vec<Expr>) -> Expr {
        Expr::builtin(&mut self.process.data.signature, connective, parts, basic::BOOL)
    }

    /// Splits a disjunction into summands if other summands share all its parts: their answers are
    /// cached then.
    fn split_shared_disjunctions(
        &mut self,
        instances: Vec<UnfoldedSummand>,
        touching: Vec<Touching>,
    ) -> (Vec<UnfoldedSummand>, Vec<Touching>) {
        let signature = &mut self.process.data.signature;
        let mut uses: AHashMap<Expr, usize> = AHashMap::new();
        for i in &instances {
            i.summand
                .guard
                .conjuncts(signature)
                .iter()
                .for_each(|c| *uses.entry(plain(signature, c).clone()).or_default() += 1);
        }
        let (mut out, mut starts) = (Vec::new(), Vec::new());
        for UnfoldedSummand { summand, updates } in instances {
            starts.push(out.len());
            let conjuncts = summand.guard.conjuncts(signature);
            let mut parts: Vec<Vec<Expr>> =
                conjuncts.iter().map(|c| disjuncts(signature, c)).collect();
            let alone = |c: &Expr| uses.get(plain(signature, c)).is_some_and(|times| *times == 1);
            let known = |part: &Expr| uses.contains_key(plain(signature, part));
            let at = (0..parts.len()).find(|&i| {
                (2..=MAX_VALUES).contains(&parts[i].len())
                    && alone(&conjuncts[i])
                    && parts[i].iter().all(known)
            });
            let Some(at) = at else {
                out.push(UnfoldedSummand { summand, updates });
                continue;
            };
            for part in std::mem::take(&mut parts[at]) {
                let mut guard = Expr::boolean(signature, true);
                for (i, c) in conjuncts.iter().enumerate() {
                    guard =
                        Expr::and(signature, guard, if i == at { part.clone() } else { c.clone() });
                }
                out.push(UnfoldedSummand {
                    summand: Summand { guard, ..summand.clone() },
                    updates: updates.clone(),
                });
            }
        }
        starts.push(out.len());
        let touching = touching
            .into_iter()
            .map(|(params, range)| (params, starts[range.start]..starts[range.end]))
            .collect();
        (out, touching)
    }

    /// Returns the conditions without sum variables that several instances share.
    fn common(&self, instances: &[UnfoldedSummand]) -> AHashMap<Expr, ConditionUses> {
        let mut times: AHashMap<Expr, ConditionUses> = AHashMap::new();
        for UnfoldedSummand { summand: s, .. } in instances {
            for c in s.guard.conjuncts(&self.process.data.signature) {
                times.entry(plain(&self.process.data.signature, &c).clone()).or_default().times +=
                    1;
            }
        }
        times.retain(|e, uses| {
            let mut vars = Vec::new();
            e.free_vars(&mut vars);
            uses.times > 1
                && vars.iter().all(|v| instances.iter().all(|i| !i.summand.sum_vars.contains(v)))
        });
        times
    }

    /// Returns the share of a parameter's fields that the instances of a summand read on average.
    /// Required values are not read, and a shared condition is read by its first instance only.
    fn share(
        &mut self,
        param: usize,
        instances: &[UnfoldedSummand],
        common: &mut AHashMap<Expr, ConditionUses>,
    ) -> f64 {
        let fields = &self.candidates[&param].fields;
        let mut read = 0;
        for UnfoldedSummand { summand: s, updates } in instances {
            let mut vars = Vec::new();
            let mut fixed = Vec::new();
            for c in s.guard.conjuncts(&self.process.data.signature) {
                match fixes(&mut self.process.data.signature, &self.special, &c) {
                    Some((v, _)) => fixed.push(v),
                    None => {
                        let mut here = Vec::new();
                        c.free_vars(&mut here);
                        // A condition on most of the fields is answered by the fields that its
                        // evaluation inspects, which are few if it depends on the state alone.
                        let narrow =
                            2 * fields.iter().filter(|f| here.contains(f)).count() <= fields.len();
                        if !narrow && here.iter().all(|v| !s.sum_vars.contains(v)) {
                            continue;
                        }
                        match common.get_mut(plain(&self.process.data.signature, &c)) {
                            Some(uses) if narrow && uses.by.contains(&param) => {}
                            uses => {
                                uses.into_iter().for_each(|a| a.by.push(param));
                                vars.append(&mut here);
                            }
                        }
                    }
                }
            }
            s.actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
            updates.iter().for_each(|u| u.1.free_vars(&mut vars));
            read += fields.iter().filter(|v| vars.contains(v) && !fixed.contains(v)).count();
        }
        read as f64 / (fields.len() * instances.len().max(1)) as f64
    }

    /// Replaces the parameters by their fields.
    fn replace(self, inits: &Substitution, instances: Vec<UnfoldedSummand>) {
        let Unfolding { process, candidates, .. } = self;
        let mut params = Vec::new();
        for (p, candidate) in &candidates {
            process
                .anatomy
                .defined
                .insert(process.params[*p].var, candidate.shape.term(&mut process.data.signature));
        }
        for (p, param) in std::mem::take(&mut process.params).into_iter().enumerate() {
            match candidates.get(&p) {
                Some(c) => params.extend(c.fields.iter().map(|v| Param {
                    var: *v,
                    role: param.role.clone(),
                    init: inits[v].clone(),
                })),
                None => params.push(param),
            }
        }
        let number: AHashMap<VarId, usize> =
            params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
        let numbered = |UnfoldedSummand { mut summand, updates }: UnfoldedSummand| {
            summand.updates = updates.into_iter().map(|(v, e)| (number[&v], e)).collect();
            summand.updates.sort_by_key(|u| u.0);
            summand
        };
        process.summands = instances.into_iter().map(numbered).collect();
        process.params = params;
    }
}
