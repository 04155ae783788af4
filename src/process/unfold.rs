//! Parameters that are records become one parameter for each field, and sums over few values a summand for each of them, where summands come
//! to depend on fewer fields by that.
//!
//! In and out: [`LinearProcess`] with the same transition system. A record is an element of a sort with one constructor, which is free;
//! its fields may be records again. What a summand says of a record is evaluated as far as the fields' values need not be known
//! ([`Engine::open`]): `at(3, board)` becomes the third field. After Groote, Lisser, "Computer assisted manipulation of algebraic process
//! specifications" (2001), where such unfolding needs functions that tell cases apart; records need none.
//!
//! A parameter stays as it is if an update of it is no record of expressions, or if its summands would go on to read more than half of its
//! fields on average: its value is one number in a state then, which is shorter. Cost: an evaluation for each expression of each
//! instance, of which there are limits, and a few rounds: one more after parameters were found that are to stay.

use super::confluence::fixes;
use super::linear::{Act, LinearProcess, Param, Summand};
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, OpKind, Signature};
use std::ops::ControlFlow;

/// Most fields of a parameter, with those of its fields.
const MAX_FIELDS: usize = 128;
/// Most instances of a summand.
const MAX_VALUES: usize = 512;
/// Most instances in all.
const MAX_INSTANCES: usize = 4096;
/// Equations that an evaluation may apply, and values that an enumeration may try.
const MAX_STEPS: u64 = 10_000;
const MAX_TRIED: u64 = 2_000;
/// Evaluations, and equations that they may apply together.
const MAX_EVALUATIONS: u64 = 200_000;
const MAX_WORK: u64 = 4_000_000;

/// A parameter as a tree of fields.
enum Shape {
    Field(VarId),
    Record(OpId, Vec<Shape>),
}

impl Shape {
    fn term(&self, signature: &Signature) -> Expr {
        match self {
            Shape::Field(v) => Expr::var(signature, *v),
            Shape::Record(op, fields) => Expr::apply(signature, *op, fields.iter().map(|f| f.term(signature)).collect()),
        }
    }

    /// What each field of a record becomes; none if the expression is no record of expressions.
    fn split(&self, signature: &mut Signature, e: &Expr, out: &mut Vec<(VarId, Expr)>) -> Option<()> {
        let (op, fields) = match self {
            Shape::Record(op, fields) => (op, fields),
            Shape::Field(v) => {
                out.push((*v, e.clone()));
                return Some(());
            }
        };
        let ExprKind::Apply(head, args) = &e.kind else { return None };
        if matches!(head.kind, ExprKind::Op(o) if o == *op) && args.len() == fields.len() {
            return fields.iter().zip(args).try_for_each(|(f, a)| f.split(signature, a, out));
        }
        let Some((Builtin::If, [condition, a, b])) = e.as_builtin(signature) else { return None };
        let (condition, a, b) = (condition.clone(), a.clone(), b.clone());
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        self.split(signature, &a, &mut yes)?;
        self.split(signature, &b, &mut no)?;
        for ((v, a), (_, b)) in yes.into_iter().zip(no) {
            let sort = signature.var(v).sort;
            let e = if a == b { a } else { Expr::builtin(signature, Builtin::If, vec![condition.clone(), a, b], sort) };
            out.push((v, e));
        }
        Some(())
    }
}

/// A parameter that may be unfolded.
struct Candidate {
    shape: Shape,
    fields: Vec<VarId>,
}

/// How much of a record its summands read.
#[derive(Default)]
struct Reads {
    summands: usize,
    share: f64,
}

/// A summand whose updates are by variable.
struct Instance {
    summand: Summand,
    updates: Vec<(VarId, Expr)>,
}

struct Unfolding<'a> {
    process: &'a mut LinearProcess,
    engine: Engine,
    evaluations: u64,
    special: AHashSet<SortId>,
    /// By parameter.
    candidates: AHashMap<usize, Candidate>,
}

/// Makes the shape of a parameter; none if it has too many fields.
fn shape(signature: &mut Signature, special: &AHashSet<SortId>, name: &str, sort: SortId, fields: &mut Vec<VarId>) -> Option<Shape> {
    let constructor = match signature.sorts.named_of(sort).map(|n| &n.constructors[..]) {
        Some([op]) if !special.contains(&sort) => Some(*op),
        _ => None,
    };
    let parts = constructor.map(|op| signature.domain_range(signature.op(op).sort).0.to_vec()).unwrap_or_default();
    let Some(op) = constructor.filter(|_| !parts.is_empty()) else {
        let v = signature.fresh_var(name, sort);
        fields.push(v);
        return (fields.len() <= MAX_FIELDS).then_some(Shape::Field(v));
    };
    let projection = |i: usize| {
        let of = |kind: &OpKind| matches!(kind, OpKind::Projection(parts) if parts.contains(&(op, i as u32)));
        signature.ops().find(|(_, o)| of(&o.kind)).map_or_else(|| (i + 1).to_string(), |(_, o)| o.name.clone())
    };
    let names: Vec<String> = (0..parts.len()).map(|i| format!("{name}_{}", projection(i))).collect();
    let mut all = Vec::with_capacity(parts.len());
    for (name, part) in names.iter().zip(parts) {
        all.push(shape(signature, special, name, part, fields)?);
    }
    Some(Shape::Record(op, all))
}

/// Unfolds where that pays.
pub fn unfold(process: &mut LinearProcess) -> Result<(), Diagnostic> {
    let special = process.data.special_sorts();
    let mut candidates = AHashMap::new();
    for param in 0..process.params.len() {
        let signature = &mut process.data.signature;
        let var = signature.var(process.params[param].var).clone();
        if signature.sorts.named_of(var.sort).is_none_or(|n| n.constructors.len() != 1) {
            continue;
        }
        let mut fields = Vec::new();
        if let Some(shape) = shape(signature, &special, &var.name, var.sort, &mut fields)
            && fields.len() > 1
        {
            candidates.insert(param, Candidate { shape, fields });
        }
    }
    if candidates.is_empty() {
        return Ok(());
    }
    for value in [true, false] {
        Expr::boolean(&mut process.data.signature, value);
    }
    let program = Program::compile(&process.data)?;
    process.data.signature = program.signature().clone();
    let mut engine = Engine::new(program);
    engine.set_step_limit(MAX_STEPS);
    engine.set_growth_limit(MAX_TRIED);
    let mut unfolding = Unfolding { process, engine, evaluations: 0, special, candidates };
    while !unfolding.candidates.is_empty() {
        if let Some((inits, summands)) = unfolding.attempt() {
            unfolding.replace(&inits, summands);
            break;
        }
    }
    Ok(())
}

impl Unfolding<'_> {
    /// Everything with the candidates unfolded; none if some were struck off instead (all of them, where that takes too long).
    fn attempt(&mut self) -> Option<(Substitution, Vec<Instance>)> {
        let before = self.candidates.len();
        let mut inits = Substitution::new();
        let params: Vec<usize> = self.candidates.keys().copied().collect();
        for p in params {
            let init = self.process.params[p].init.clone();
            let mut values = Vec::new();
            let split = self.open(&init).and_then(|e| self.candidates[&p].shape.split(&mut self.process.data.signature, &e, &mut values));
            match split {
                Some(()) => inits.extend(values),
                None => drop(self.candidates.remove(&p)),
            }
        }
        let signature = &self.process.data.signature;
        let by: Substitution = self.candidates.iter().map(|(p, c)| (self.process.params[*p].var, c.shape.term(signature))).collect();
        let mut reads: AHashMap<usize, Reads> = AHashMap::new();
        let mut out = Vec::new();
        for i in 0..self.process.summands.len() {
            let summand = self.process.summands[i].clone();
            let touched: Vec<usize> = self.touched(&summand);
            if touched.is_empty() {
                let updates = summand.updates.iter().map(|(p, e)| (self.process.params[*p].var, e.clone())).collect();
                out.push(Instance { summand, updates });
                continue;
            }
            match self.rewrite(&summand, &by) {
                Ok(instances) if self.within_limits(out.len() + instances.len()) => {
                    for p in touched {
                        let here = reads.entry(p).or_default();
                        here.summands += 1;
                        here.share += self.share(p, &instances);
                    }
                    out.extend(instances);
                }
                Ok(_) => {
                    self.candidates.clear();
                    return None;
                }
                // The others are looked at all the same, so that there are few rounds.
                Err(param) => drop(self.candidates.remove(&param)),
            }
        }
        self.candidates.retain(|p, _| reads.get(p).is_some_and(|r| r.share <= 0.5 * r.summands as f64));
        (self.candidates.len() == before).then_some((inits, out))
    }

    fn within_limits(&self, summands: usize) -> bool {
        summands <= MAX_INSTANCES + self.process.summands.len() && self.evaluations <= MAX_EVALUATIONS && self.engine.steps() <= MAX_WORK
    }

    fn touched(&self, s: &Summand) -> Vec<usize> {
        let mut vars = Vec::new();
        s.guard.free_vars(&mut vars);
        s.actions.iter().chain(&s.hidden).flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
        s.updates.iter().for_each(|u| u.1.free_vars(&mut vars));
        let mut touched: Vec<usize> = (self.candidates.keys().copied())
            .filter(|p| vars.contains(&self.process.params[*p].var) || s.updates.iter().any(|u| u.0 == *p))
            .collect();
        touched.sort_unstable();
        touched
    }

    /// An expression evaluated as far as its variables allow, if that ends soon.
    fn open(&mut self, e: &Expr) -> Option<Expr> {
        self.evaluations += 1;
        let mut vars = Vec::new();
        e.free_vars(&mut vars);
        self.engine.open(e, &vars).ok()
    }

    /// Values of the sum variables that the conditions on them alone leave; none if these are not few.
    fn values(&mut self, s: &Summand) -> Option<Vec<Substitution>> {
        if s.sum_vars.is_empty() {
            return Some(vec![Substitution::new()]);
        }
        let signature = &mut self.process.data.signature;
        let mut bounds = Expr::boolean(signature, true);
        for c in s.guard.conjuncts(signature) {
            let mut vars = Vec::new();
            c.free_vars(&mut vars);
            if vars.iter().all(|v| s.sum_vars.contains(v)) {
                bounds = Expr::and(signature, bounds, c);
            }
        }
        let problem = self.engine.problem(&s.sum_vars, &bounds, &[]).ok()?;
        let mut found = Vec::new();
        let mut all = true;
        let solved = self.engine.solve(&problem, &[], &mut |engine, values| {
            let value = |(v, value): (&VarId, _)| (*v, engine.to_expr_at(value, engine.program().signature().var(*v).sort));
            found.push(s.sum_vars.iter().zip(values).map(value).collect());
            all = found.len() <= MAX_VALUES;
            Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        (solved.is_ok() && all).then_some(found)
    }

    /// The instances of a summand; a parameter if an update of it cannot be split.
    fn rewrite(&mut self, s: &Summand, by: &Substitution) -> Result<Vec<Instance>, usize> {
        let values = self.values(s);
        let bound = values.is_some();
        let mut out = Vec::new();
        for mut all in values.unwrap_or_else(|| vec![Substitution::new()]) {
            all.extend(by.iter().map(|(v, e)| (*v, e.clone())));
            let (mut instance, mut updates) = (s.clone(), Vec::new());
            if bound {
                instance.sum_vars.clear();
            }
            let Some(guard) = self.guard(&s.guard.substitute(&all)) else { continue };
            instance.guard = guard;
            for e in instance.actions.iter_mut().chain(&mut instance.hidden).flat_map(|a: &mut Act| a.args.iter_mut()) {
                let plain = e.substitute(&all);
                *e = self.open(&plain).unwrap_or(plain);
            }
            for (p, e) in &s.updates {
                let plain = e.substitute(&all);
                let value = self.open(&plain).unwrap_or(plain);
                let Some(candidate) = self.candidates.get(p) else {
                    updates.push((self.process.params[*p].var, value));
                    continue;
                };
                let mut parts = Vec::new();
                candidate.shape.split(&mut self.process.data.signature, &value, &mut parts).ok_or(*p)?;
                updates.extend(parts.into_iter().filter(|(v, e)| !matches!(e.kind, ExprKind::Var(w) if w == *v)));
            }
            out.push(Instance { summand: instance, updates });
        }
        Ok(out)
    }

    /// A condition evaluated conjunct by conjunct; none if it is false.
    fn guard(&mut self, e: &Expr) -> Option<Expr> {
        let mut guard = Expr::boolean(&mut self.process.data.signature, true);
        for c in e.conjuncts(&self.process.data.signature) {
            let c = self.open(&c).unwrap_or(c);
            match c.as_bool(&self.process.data.signature) {
                Some(true) => {}
                Some(false) => return None,
                None => guard = Expr::and(&mut self.process.data.signature, guard, c),
            }
        }
        Some(guard)
    }

    /// Which part of the fields of a parameter the instances of a summand read on average. What must have a certain value is not read.
    fn share(&mut self, param: usize, instances: &[Instance]) -> f64 {
        let fields = &self.candidates[&param].fields;
        let mut read = 0;
        for Instance { summand: s, updates } in instances {
            let mut vars = Vec::new();
            let mut fixed = Vec::new();
            for c in s.guard.conjuncts(&self.process.data.signature) {
                match fixes(&mut self.process.data.signature, &self.special, &c) {
                    Some((v, _)) => fixed.push(v),
                    None => c.free_vars(&mut vars),
                }
            }
            s.actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
            updates.iter().for_each(|u| u.1.free_vars(&mut vars));
            read += fields.iter().filter(|v| vars.contains(v) && !fixed.contains(v)).count();
        }
        read as f64 / (fields.len() * instances.len().max(1)) as f64
    }

    /// Puts the fields in the place of their parameters.
    fn replace(self, inits: &Substitution, instances: Vec<Instance>) {
        let Unfolding { process, candidates, .. } = self;
        let mut params = Vec::new();
        for (p, candidate) in &candidates {
            process.anatomy.defined.insert(process.params[*p].var, candidate.shape.term(&process.data.signature));
        }
        for (p, param) in std::mem::take(&mut process.params).into_iter().enumerate() {
            match candidates.get(&p) {
                Some(c) => params.extend(c.fields.iter().map(|v| Param { var: *v, role: param.role.clone(), init: inits[v].clone() })),
                None => params.push(param),
            }
        }
        let number: AHashMap<VarId, usize> = params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
        let numbered = |Instance { mut summand, updates }: Instance| {
            summand.updates = updates.into_iter().map(|(v, e)| (number[&v], e)).collect();
            summand.updates.sort_by_key(|u| u.0);
            summand
        };
        process.summands = instances.into_iter().map(numbered).collect();
        process.params = params;
    }
}
