//! Static simplification of linear processes, by name: unreachable control flow, parameters that nothing depends on, sums over small
//! finite sorts. (Constants, duplicates and sum elimination by one-point rules are part of linearisation itself.)
//!
//! In and out: [`LinearProcess`]. After Groote, Lisser, "Computer assisted manipulation of algebraic process specifications" (2001), and
//! Keiren, Wesselink, Willemse, "Liveness analysis for parameterised Boolean equation systems" (2014), of which [`control`] takes the
//! reachable values of single parameters only. [`control`] and [`instantiate`] leave the transition system as it is; [`dead`] gives a
//! strongly bisimilar one, which may have fewer states.
//! Cost: rounds over all summands, each linear in their size; evaluation of conditions on one parameter for each of its values.

use super::linear::{LinearProcess, Summand};
use crate::base::Diagnostic;
use crate::base::ids::VarId;
use crate::data::engine::{Engine, Program};
use crate::data::expr::{Expr, ExprKind, Substitution};
use crate::data::signature::Builtin;
use ahash::{AHashMap, AHashSet};

/// Values of one parameter that [`control`] follows; a parameter with more may have any.
const MAX_VALUES: usize = 4096;
/// The same for a parameter that gets values computed from its own.
const MAX_COMPUTED: usize = 64;
/// Equations that one evaluation of [`control`] may apply, and how many evaluations there may be: it is to cost little and to end.
const MAX_STEPS: u64 = 2_000;
const MAX_EVALUATIONS: u32 = 20_000;
/// Summands that [`instantiate`] makes of one.
const MAX_INSTANCES: usize = 1024;

/// What is known of the reachable values of the parameters.
struct Reach<'a> {
    process: &'a LinearProcess,
    /// By parameter: its values, none if any.
    values: Vec<Option<AHashSet<Expr>>>,
    of_var: AHashMap<VarId, usize>,
    engine: Option<Engine>,
    evaluations: u32,
    /// Whether a condition can hold for a value.
    known: AHashMap<(Expr, Expr), bool>,
}

/// The single parameter that an expression depends on, if there is nothing else in it.
fn only_param(of_var: &AHashMap<VarId, usize>, e: &Expr) -> Option<usize> {
    let mut free = Vec::new();
    e.free_vars(&mut free);
    match free[..] {
        [v] => of_var.get(&v).copied(),
        _ => None,
    }
}

impl Reach<'_> {
    /// The normal form of a closed expression; none if there is no telling.
    fn normal(&mut self, e: &Expr) -> Option<Expr> {
        if matches!(e.kind, ExprKind::Number(_)) {
            return Some(e.clone());
        }
        if self.engine.is_none() {
            let mut engine = Engine::new(Program::compile(&self.process.data).ok()?);
            engine.set_step_limit(MAX_STEPS);
            engine.set_growth_limit(MAX_STEPS);
            self.engine = Some(engine);
        }
        self.evaluations += 1;
        if self.evaluations > MAX_EVALUATIONS {
            return None;
        }
        let engine = self.engine.as_mut()?;
        let value = engine.from_expr(e).ok()?;
        Some(engine.to_expr_at(&value, e.sort))
    }

    /// Whether a condition on one parameter may hold for this value of it.
    fn possible(&mut self, condition: &Expr, var: VarId, value: &Expr) -> bool {
        if let Some((Builtin::Equal, [a, b])) = condition.as_builtin(&self.process.data.signature) {
            for (x, k) in [(a, b), (b, a)] {
                if let (ExprKind::Var(_), ExprKind::Number(k), ExprKind::Number(v)) = (&x.kind, &k.kind, &value.kind) {
                    return k == v;
                }
            }
        }
        let key = (condition.clone(), value.clone());
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let closed = condition.substitute(&Substitution::from([(var, value.clone())]));
        let normal = self.normal(&closed);
        let answer = match (&normal, &self.engine) {
            (Some(e), Some(engine)) => e.as_bool(engine.program().signature()) != Some(false),
            _ => true,
        };
        self.known.insert(key, answer);
        answer
    }

    /// Adds values of a parameter; whether that is news.
    fn add(&mut self, param: usize, new: Option<Vec<Expr>>, limit: usize) -> bool {
        let Some(old) = &mut self.values[param] else { return false };
        let Some(new) = new else {
            self.values[param] = None;
            return true;
        };
        let before = old.len();
        old.extend(new);
        let changed = old.len() > before;
        if changed && old.len() > limit {
            self.values[param] = None;
        }
        changed
    }
}

/// Which summands can ever happen, as far as single parameters tell.
fn reachable(process: &LinearProcess) -> Vec<bool> {
    let of_var: AHashMap<VarId, usize> = process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
    let conditions: Vec<Vec<(usize, Expr)>> = (process.summands.iter())
        .map(|s| {
            let parts = s.guard.conjuncts(&process.data.signature).into_iter();
            parts.filter_map(|c| Some((only_param(&of_var, &c)?, c))).collect()
        })
        .collect();
    let mut reach =
        Reach { process, values: vec![None; process.params.len()], of_var, engine: None, evaluations: 0, known: AHashMap::new() };
    for (i, param) in process.params.iter().enumerate() {
        reach.values[i] = reach.normal(&param.init).map(|v| AHashSet::from([v]));
    }
    let mut enabled = vec![false; process.summands.len()];
    // The parameters that decide what a summand adds, and when they and it were last looked at.
    let sources: Vec<Vec<usize>> = (process.summands.iter().zip(&conditions))
        .map(|(s, conditions)| {
            let computed = s.updates.iter().filter_map(|u| only_param(&reach.of_var, &u.1));
            conditions.iter().map(|c| c.0).chain(computed).collect()
        })
        .collect();
    let mut changed_at = vec![1u64; process.params.len()];
    let mut seen_at = vec![0u64; process.summands.len()];
    let mut now = 1;
    loop {
        let mut changed = false;
        for (s, summand) in process.summands.iter().enumerate() {
            if seen_at[s] > 0 && sources[s].iter().all(|p| changed_at[*p] <= seen_at[s]) {
                continue;
            }
            seen_at[s] = now;
            // The values that a parameter may have where the summand is enabled.
            let mut here: AHashMap<usize, Vec<Expr>> = AHashMap::new();
            let mut blocked = false;
            for (param, condition) in &conditions[s] {
                let Some(all) = reach.values[*param].clone() else { continue };
                let values = here.remove(param).unwrap_or_else(|| all.into_iter().collect());
                let var = process.params[*param].var;
                let values: Vec<Expr> = values.into_iter().filter(|v| reach.possible(condition, var, v)).collect();
                blocked |= values.is_empty();
                here.insert(*param, values);
                if blocked {
                    break;
                }
            }
            if blocked {
                continue;
            }
            enabled[s] = true;
            for (param, e) in &summand.updates {
                if reach.values[*param].is_none() {
                    continue;
                }
                let (new, limit) = if e.is_closed() {
                    (reach.normal(e).map(|v| vec![v]), MAX_VALUES)
                } else {
                    let values = only_param(&reach.of_var, e).and_then(|q| {
                        let values = match here.get(&q) {
                            Some(values) => values.clone(),
                            None => reach.values[q].clone()?.into_iter().collect(),
                        };
                        let var = process.params[q].var;
                        let at = |v: Expr| reach.normal(&e.substitute(&Substitution::from([(var, v)])));
                        values.into_iter().map(at).collect::<Option<Vec<Expr>>>()
                    });
                    (values, MAX_COMPUTED)
                };
                if reach.add(*param, new, limit) {
                    changed = true;
                    now += 1;
                    changed_at[*param] = now;
                }
            }
        }
        if !changed {
            return enabled;
        }
    }
}

/// Removes summands that can never happen: their conditions are false for all values that some parameter ever has, such as the control
/// locations that are reached.
pub fn control(process: &mut LinearProcess) {
    let mut enabled = reachable(process).into_iter();
    process.summands.retain(|_| enabled.next().expect("one for each summand"));
}

/// Removes parameters on which neither an action nor a condition depends, also by way of other parameters.
pub fn dead(process: &mut LinearProcess) {
    let of_var: AHashMap<VarId, usize> = process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
    let mut used = vec![false; process.params.len()];
    let mut vars = Vec::new();
    for s in &process.summands {
        s.guard.free_vars(&mut vars);
        s.actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
    }
    let mut todo: Vec<usize> = vars.iter().filter_map(|v| of_var.get(v).copied()).collect();
    while let Some(p) = todo.pop() {
        if std::mem::replace(&mut used[p], true) {
            continue;
        }
        let mut vars = Vec::new();
        let updates = process.summands.iter().flat_map(|s| &s.updates);
        updates.filter(|u| u.0 == p).for_each(|u| u.1.free_vars(&mut vars));
        todo.extend(vars.iter().filter_map(|v| of_var.get(v).copied()).filter(|q| !used[*q]));
    }
    let number: Vec<usize> = used.iter().scan(0, |n, &u| Some(std::mem::replace(n, *n + usize::from(u)))).collect();
    for s in &mut process.summands {
        s.updates.retain(|u| used[u.0]);
        s.updates.iter_mut().for_each(|u| u.0 = number[u.0]);
        // What was hidden is remembered for messages only: it may speak of what is gone, which then counts as not used.
        s.hidden.retain(|a| {
            let mut vars = Vec::new();
            a.args.iter().for_each(|e| e.free_vars(&mut vars));
            vars.iter().all(|v| of_var.get(v).is_none_or(|p| used[*p]))
        });
        drop_unused_sums(s);
    }
    let mut kept = used.iter();
    process.params.retain(|_| *kept.next().expect("one for each parameter"));
}

/// Every sort has an element, so a sum over a variable that nothing depends on is no sum.
fn drop_unused_sums(s: &mut Summand) {
    let mut vars = Vec::new();
    s.guard.free_vars(&mut vars);
    s.actions.iter().chain(&s.hidden).flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
    s.updates.iter().for_each(|u| u.1.free_vars(&mut vars));
    s.sum_vars.retain(|v| vars.contains(v));
}

/// Replaces sums over small finite sorts by a summand for each value.
pub fn instantiate(process: &mut LinearProcess) -> Result<(), Diagnostic> {
    let mut engine = Engine::new(Program::compile(&process.data)?);
    // Values may need operations that only the engine has.
    process.data.signature = engine.program().signature().clone();
    let mut out = Vec::with_capacity(process.summands.len());
    for summand in std::mem::take(&mut process.summands) {
        let mut instances = vec![Substitution::new()];
        for &v in &summand.sum_vars {
            let sort = process.data.signature.var(v).sort;
            let Some(values) = engine.values_of(sort)? else { continue };
            if values.is_empty() || values.len().saturating_mul(instances.len()) > MAX_INSTANCES {
                continue;
            }
            let values: Vec<Expr> = values.iter().map(|x| engine.to_expr_at(x, sort)).collect();
            let with = |by: &Substitution, value: &Expr| {
                let mut by = by.clone();
                by.insert(v, value.clone());
                by
            };
            instances = instances.iter().flat_map(|by| values.iter().map(move |value| with(by, value))).collect();
        }
        for by in instances {
            let mut instance = summand.clone();
            instance.sum_vars.retain(|v| !by.contains_key(v));
            instance.guard = Expr::boolean(&mut process.data.signature, true);
            let mut possible = true;
            for c in summand.guard.conjuncts(&process.data.signature) {
                let c = c.substitute(&by);
                let value = if c.is_closed() { engine.from_expr(&c).ok() } else { None };
                match value {
                    Some(v) if v.is_true() => {}
                    Some(v) if v.is_false() => possible = false,
                    _ => instance.guard = Expr::and(&mut process.data.signature, instance.guard, c),
                }
            }
            if !possible {
                continue;
            }
            instance.actions.iter_mut().chain(&mut instance.hidden).flat_map(|a| a.args.iter_mut()).for_each(|e| *e = e.substitute(&by));
            instance.updates.iter_mut().for_each(|u| u.1 = u.1.substitute(&by));
            out.push(instance);
        }
    }
    process.summands = out;
    Ok(())
}
