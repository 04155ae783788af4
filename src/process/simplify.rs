//! Static simplification of linear processes, by name: unreachable control flow, unused parameters,
//! sums over small finite sorts. (Constants, duplicates and sum elimination by one-point rules are
//! part of linearisation itself.)
//!
//! In and out: [`LinearProcess`]. After Groote, Lisser, "Computer assisted manipulation of
//! algebraic process specifications" (2001), and Keiren, Wesselink, Willemse, "Liveness analysis
//! for parameterised Boolean equation systems" (2014), of which [`control`] uses only the reachable
//! values of single parameters. [`control`] and [`instantiate`] preserve the transition system;
//! [`remove_dead_parameters`] gives a strongly bisimilar one, which may have fewer states. Cost:
//! rounds over all summands, each linear in their size; evaluation of conditions on one parameter
//! for each of its values.

use super::anatomy::Anatomy;
use super::linear::{LinearProcess, Summand};
use super::open_constants::OpenConstants;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::engine::{Code, Engine, Program};
use mu_data::expr::{Expr, Substitution};
use mu_data::value::Value;
use std::collections::BTreeSet;

/// Limit on the values of one parameter in [`control`]; a parameter with more counts as
/// unrestricted.
const MAX_VALUES: usize = 4096;
/// The same limit for a parameter with values computed from its own.
const MAX_COMPUTED: usize = 64;
/// Limits on the equations that one evaluation of [`control`] may apply and on the number of
/// evaluations, so that it is cheap and terminates.
const MAX_STEPS: u64 = 2_000;
const MAX_EVALUATIONS: u32 = 20_000;
/// Limit on the summands that [`instantiate`] makes of one; beyond it, the sum stays.
const MAX_INSTANCES: usize = 1024;

/// Value of some parameter: an index into [`ReachableValues::all`].
type ValueId = usize;

/// Expression on one parameter: the parameter, the expression, and its number among all of them.
#[derive(Clone)]
struct Site {
    param: usize,
    expr: Expr,
    number: usize,
}

/// Reachable values of the parameters, as far as known.
struct ReachableValues<'a> {
    process: &'a LinearProcess,
    open: &'a OpenConstants,
    /// Values by parameter; `None` if unrestricted. Sorted, so that the result at a limit is
    /// deterministic.
    values: Vec<Option<BTreeSet<ValueId>>>,
    engine: Option<Engine>,
    evaluations: u32,
    /// All values, stored once: a value may be a long list, so it is hashed only when it is
    /// created.
    all: Vec<Value>,
    of_value: AHashMap<Value, ValueId>,
    /// Results of sites at values of their parameters.
    known: AHashMap<(usize, ValueId), Option<ValueId>>,
    /// Values of closed expressions.
    constants: AHashMap<Expr, Option<ValueId>>,
    /// Code by site, compiled when first needed.
    codes: AHashMap<usize, Option<Code>>,
}

/// Returns the single parameter on which an expression depends; `None` if it depends on anything
/// else.
fn only_param(of_var: &AHashMap<VarId, usize>, e: &Expr) -> Option<usize> {
    let mut free = Vec::new();
    e.free_vars(&mut free);
    match free[..] {
        [v] => of_var.get(&v).copied(),
        _ => None,
    }
}

impl ReachableValues<'_> {
    fn engine(&mut self) -> Option<&mut Engine> {
        if self.engine.is_none() {
            let mut engine = Engine::new(Program::compile(&self.process.data).ok()?);
            engine.set_step_limit(MAX_STEPS);
            engine.set_growth_limit(MAX_STEPS);
            self.engine = Some(engine);
        }
        self.engine.as_mut()
    }

    fn id(&mut self, value: Value) -> ValueId {
        let next = self.all.len();
        *self.of_value.entry(value).or_insert_with_key(|value| {
            self.all.push(value.clone());
            next
        })
    }

    /// Returns the value of a closed expression; `None` if it cannot be evaluated.
    fn closed_value(&mut self, e: &Expr) -> Option<ValueId> {
        if let Some(known) = self.constants.get(e) {
            return *known;
        }
        self.evaluations += 1;
        if self.evaluations > MAX_EVALUATIONS || self.open.is_hidden_in(e) {
            return None;
        }
        let value = self.engine()?.from_expr(e).ok();
        let id = value.map(|v| self.id(v));
        self.constants.insert(e.clone(), id);
        id
    }

    /// Returns the value of a site for this value of its parameter; `None` if it cannot be
    /// evaluated.
    fn at(&mut self, site: &Site, value: ValueId) -> Option<ValueId> {
        if let Some(known) = self.known.get(&(site.number, value)) {
            return *known;
        }
        let answer = self.evaluate(site, value);
        self.known.insert((site.number, value), answer);
        answer
    }

    fn evaluate(&mut self, site: &Site, value: ValueId) -> Option<ValueId> {
        self.evaluations += 1;
        if self.evaluations > MAX_EVALUATIONS || self.open.is_hidden_in(&site.expr) {
            return None;
        }
        if !self.codes.contains_key(&site.number) {
            let var = self.process.params[site.param].var;
            let code = self.engine()?.code(&site.expr, &[var]).ok();
            self.codes.insert(site.number, code);
        }
        let (code, engine) = (self.codes[&site.number].as_ref()?, self.engine.as_mut()?);
        let value = engine.eval(code, std::slice::from_ref(&self.all[value])).ok()?;
        Some(self.id(value))
    }

    /// True if a condition may hold for this value of its parameter.
    fn possible(&mut self, condition: &Site, value: ValueId) -> bool {
        self.at(condition, value).is_none_or(|v| !self.all[v].is_false())
    }

    /// Adds values of a parameter. True if some are new.
    fn add(&mut self, param: usize, new: Option<Vec<ValueId>>, limit: usize) -> bool {
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

/// Summand in the analysis [`reachable`]: its conditions on one parameter, and its updates; with a
/// site for updates that depend on one parameter.
struct AnalysedSummand {
    conditions: Vec<Site>,
    updates: Vec<(usize, Expr, Option<Site>)>,
}

/// Returns for each summand whether it is reachable, according to the values of single parameters.
fn reachable(process: &LinearProcess, open: &OpenConstants) -> Vec<bool> {
    let of_var: AHashMap<VarId, usize> =
        process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
    // Summands of one composition have most of their conditions and updates in common.
    let mut sites: AHashMap<Expr, Option<Site>> = AHashMap::new();
    let mut site = |expr: &Expr| {
        if let Some(known) = sites.get(expr) {
            return known.clone();
        }
        let number = sites.len();
        let new = only_param(&of_var, expr).map(|param| Site { param, expr: expr.clone(), number });
        sites.insert(expr.clone(), new.clone());
        new
    };
    let summands: Vec<AnalysedSummand> = (process.summands.iter())
        .map(|s| AnalysedSummand {
            conditions: s
                .guard
                .conjuncts(&process.data.signature)
                .iter()
                .filter_map(&mut site)
                .collect(),
            updates: s.updates.iter().map(|(p, e)| (*p, e.clone(), site(e))).collect(),
        })
        .collect();
    let mut reach = ReachableValues {
        process,
        open,
        values: vec![None; process.params.len()],
        engine: None,
        evaluations: 0,
        all: Vec::new(),
        of_value: AHashMap::new(),
        known: AHashMap::new(),
        constants: AHashMap::new(),
        codes: AHashMap::new(),
    };
    for (i, param) in process.params.iter().enumerate() {
        // A probabilistic choice may have any outcome.
        reach.values[i] = if param.init.is_closed() {
            reach.closed_value(&param.init).map(|v| BTreeSet::from([v]))
        } else {
            None
        };
    }
    let mut enabled = vec![false; process.summands.len()];
    // Parameters on which a summand depends, with the time of their last change and of the
    // summand's last analysis.
    let sources: Vec<Vec<usize>> = (summands.iter())
        .map(|s| {
            s.conditions
                .iter()
                .chain(s.updates.iter().filter_map(|u| u.2.as_ref()))
                .map(|site| site.param)
                .collect()
        })
        .collect();
    let mut changed_at = vec![1u64; process.params.len()];
    let mut seen_at = vec![0u64; process.summands.len()];
    let mut now = 1;
    loop {
        let mut changed = false;
        for (s, summand) in summands.iter().enumerate() {
            if seen_at[s] > 0 && sources[s].iter().all(|p| changed_at[*p] <= seen_at[s]) {
                continue;
            }
            seen_at[s] = now;
            // Values that a parameter may have when the summand is enabled.
            let mut here: AHashMap<usize, Vec<ValueId>> = AHashMap::new();
            let mut blocked = false;
            for condition in &summand.conditions {
                let Some(all) = &reach.values[condition.param] else { continue };
                let mut values =
                    here.remove(&condition.param).unwrap_or_else(|| all.iter().copied().collect());
                values.retain(|v| reach.possible(condition, *v));
                blocked = values.is_empty();
                here.insert(condition.param, values);
                if blocked {
                    break;
                }
            }
            if blocked {
                continue;
            }
            let before = std::mem::replace(&mut enabled[s], true);
            for (param, e, site) in &summand.updates {
                if reach.values[*param].is_none() || (before && e.is_closed()) {
                    continue;
                }
                let (new, limit) = if e.is_closed() {
                    (reach.closed_value(e).map(|v| vec![v]), MAX_VALUES)
                } else {
                    let values = site.as_ref().and_then(|site| {
                        let values = match here.get(&site.param) {
                            Some(values) => values.clone(),
                            None => reach.values[site.param].as_ref()?.iter().copied().collect(),
                        };
                        values
                            .into_iter()
                            .map(|v| reach.at(site, v))
                            .collect::<Option<Vec<ValueId>>>()
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

/// Removes unreachable summands: their conditions are false for all values that some parameter ever
/// has, such as unreachable control locations. `open`: operations that are not evaluated.
pub fn control(process: &mut LinearProcess, open: &OpenConstants) {
    let mut enabled = reachable(process, open).into_iter();
    process.summands.retain(|_| enabled.next().expect("one for each summand"));
}

/// Removes parameters on which neither an action nor a condition depends, directly or through other
/// parameters.
pub fn remove_dead_parameters(process: &mut LinearProcess) {
    let of_var: AHashMap<VarId, usize> =
        process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
    let mut used = vec![false; process.params.len()];
    let mut vars = Vec::new();
    for s in &process.summands {
        s.guard.free_vars(&mut vars);
        s.time
            .iter()
            .chain(s.chance.as_ref().map(|c| &c.weight))
            .for_each(|e| e.free_vars(&mut vars));
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
    let number: Vec<usize> =
        used.iter().scan(0, |n, &u| Some(std::mem::replace(n, *n + usize::from(u)))).collect();
    for s in &mut process.summands {
        s.updates.retain(|u| used[u.0]);
        s.updates.iter_mut().for_each(|u| u.0 = number[u.0]);
        // Hidden actions are for messages only: they may refer to removed parameters, which they do
        // not count as using.
        s.hidden.retain(|a| {
            let mut vars = Vec::new();
            a.args.iter().for_each(|e| e.free_vars(&mut vars));
            vars.iter().all(|v| of_var.get(v).is_none_or(|p| used[*p]))
        });
        drop_unused_sums(s);
    }
    let mut flags = used.iter();
    process.params.retain(|_| *flags.next().expect("one for each parameter"));
    // The components may refer to removed parameters.
    process.anatomy = Anatomy::default();
}

/// Removes unused sum variables: every sort has an element, so a sum over an unused variable is
/// redundant.
fn drop_unused_sums(s: &mut Summand) {
    let mut vars = Vec::new();
    s.guard.free_vars(&mut vars);
    s.actions.iter().chain(&s.hidden).flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut vars));
    s.updates.iter().for_each(|u| u.1.free_vars(&mut vars));
    s.time.iter().chain(s.chance.as_ref().map(|c| &c.weight)).for_each(|e| e.free_vars(&mut vars));
    s.sum_vars.retain(|v| vars.contains(v));
}

/// Replaces sums over small finite sorts by a summand for each value. `open`: operations that are
/// not evaluated.
pub fn instantiate(process: &mut LinearProcess, open: &OpenConstants) -> Result<(), Diagnostic> {
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
            instances = instances
                .iter()
                .flat_map(|by| values.iter().map(move |value| with(by, value)))
                .collect();
        }
        for by in instances {
            let mut instance = summand.clone();
            instance.sum_vars.retain(|v| !by.contains_key(v));
            instance.guard = Expr::boolean(&mut process.data.signature, true);
            let mut possible = true;
            for c in summand.guard.conjuncts(&process.data.signature) {
                let c = c.substitute(&by);
                let is_value = c.is_closed() && !open.is_hidden_in(&c);
                let value = if is_value { engine.from_expr(&c).ok() } else { None };
                match value {
                    Some(v) if v.is_true() => {}
                    Some(v) if v.is_false() => possible = false,
                    _ => instance.guard = Expr::and(&mut process.data.signature, instance.guard, c),
                }
            }
            if !possible {
                continue;
            }
            instance
                .actions
                .iter_mut()
                .chain(&mut instance.hidden)
                .flat_map(|a| a.args.iter_mut())
                .for_each(|e| *e = e.substitute(&by));
            instance.updates.iter_mut().for_each(|u| u.1 = u.1.substitute(&by));
            let weight = instance.chance.iter_mut().map(|c| &mut c.weight);
            instance.time.iter_mut().chain(weight).for_each(|e| *e = e.substitute(&by));
            out.push(instance);
        }
    }
    process.summands = out;
    Ok(())
}
