//! Static simplification of one component before composition: constant, duplicate and dead
//! variables, by location.
//!
//! In and out: [`Automaton`]. The first two analyses are optimistic fixed points over the edges
//! (Groote, Lisser, "Computer assisted manipulation of algebraic process specifications", 2001,
//! done per location instead of per parameter). Neither changes the transition system: the state
//! space is mapped one to one. Removal of dead variables merges states that differ only in them.
//! Cost: (locations + edges) times variables, a few rounds.

use super::sequential::Automaton;
use crate::open_constants::OpenConstants;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::VarId;
use mu_data::engine::{Engine, Program};
use mu_data::expr::{DataSpec, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, OpKind, Signature};

/// Rewrites an edge's expressions by a substitution for the variables of its source.
fn substitute_edge(edge: &mut super::sequential::LocationEdge, by: &Substitution) {
    if by.is_empty() {
        return;
    }
    edge.guard.iter_mut().for_each(|g| *g = g.substitute(by));
    edge.acts.iter_mut().flat_map(|a| a.args.iter_mut()).for_each(|e| *e = e.substitute(by));
    edge.assigns.iter_mut().for_each(|(_, e)| *e = e.substitute(by));
    edge.time
        .iter_mut()
        .chain(edge.chance.iter_mut().map(|c| &mut c.weight))
        .for_each(|e| *e = e.substitute(by));
}

/// Limit on the parts of a normal form that replaces a term; a larger one is discarded.
const MAX_PARTS: usize = 16;
/// Limit on the equations that one evaluation may apply; beyond it the term is retained.
const MAX_STEPS: u64 = 10_000;
/// Limit on the terms without a small normal form; beyond it no further term is evaluated.
const MAX_FAILURES: u32 = 100;

/// Evaluator of closed terms in actions and conditions, for terms with small normal forms.
/// Composition then recognises communications with equal arguments, and decided conditions
/// disappear.
pub(super) struct Evaluator<'a> {
    data: &'a DataSpec,
    open: &'a OpenConstants,
    engine: Option<Engine>,
    known: AHashMap<Expr, Option<Expr>>,
    failures: u32,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(data: &'a DataSpec, open: &'a OpenConstants) -> Self {
        Self { data, open, engine: None, known: AHashMap::new(), failures: 0 }
    }

    /// Evaluates the terms of an automaton, and removes edges with a false condition.
    pub(super) fn evaluate_automaton(&mut self, automaton: &mut Automaton) {
        let signature = &self.data.signature;
        automaton.edges.retain_mut(|edge| {
            edge.acts
                .iter_mut()
                .flat_map(|a| a.args.iter_mut())
                .for_each(|e| *e = self.evaluate_subterms(e));
            let mut possible = true;
            edge.guard.retain_mut(|g| {
                *g = self.evaluate_condition(g);
                let decided = g.as_bool(signature);
                possible &= decided != Some(false);
                decided.is_none()
            });
            possible
        });
    }

    /// Evaluates the closed conjuncts and disjuncts of a condition.
    fn evaluate_condition(&mut self, e: &Expr) -> Expr {
        let signature = &self.data.signature;
        if e.is_closed() {
            return self
                .normal_form(e)
                .filter(|n| n.as_bool(signature).is_some())
                .unwrap_or_else(|| e.clone());
        }
        let (ExprKind::Apply(head, args), Some((Builtin::And | Builtin::Or, _))) =
            (&e.kind, e.as_builtin(signature))
        else {
            return e.clone();
        };
        let all = matches!(e.as_builtin(signature), Some((Builtin::And, _)));
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let (a, b) = (self.evaluate_condition(&args[0]), self.evaluate_condition(&args[1]));
            match (a.as_bool(signature), b.as_bool(signature)) {
                (Some(value), _) if value == all => b,
                (_, Some(value)) if value == all => a,
                (Some(_), _) => a,
                (_, Some(_)) => b,
                _ => Expr::new(ExprKind::Apply(head.clone(), vec![a, b]), e.sort, e.span),
            }
        })
    }

    /// Evaluates closed subterms of an expression, below constructors and other operations.
    fn evaluate_subterms(&mut self, e: &Expr) -> Expr {
        let ExprKind::Apply(head, args) = &e.kind else {
            return match e.kind {
                ExprKind::Op(_) => self.normal_form(e).unwrap_or_else(|| e.clone()),
                _ => e.clone(),
            };
        };
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            if e.is_closed() {
                return self.normal_form(e).unwrap_or_else(|| e.clone());
            }
            // The operands of a lazy operation may not be needed, so they are not evaluated.
            if matches!(
                e.as_builtin(&self.data.signature),
                Some((Builtin::If | Builtin::And | Builtin::Or | Builtin::Implies, _))
            ) {
                return e.clone();
            }
            let args = args.iter().map(|a| self.evaluate_subterms(a)).collect();
            Expr::new(ExprKind::Apply(head.clone(), args), e.sort, e.span)
        })
    }

    /// Returns the normal form of a closed term, from the cache; `None` if the term is retained.
    fn normal_form(&mut self, closed: &Expr) -> Option<Expr> {
        let mut needed = false;
        closed.each_op(&mut |op| {
            needed |= !matches!(self.data.signature.op(op).kind, OpKind::Constructor(_))
        });
        if !needed || self.open.is_used_by(closed) {
            return None;
        }
        if let Some(known) = self.known.get(closed) {
            return known.clone();
        }
        if self.failures > MAX_FAILURES {
            return None;
        }
        let normal = self.evaluate(closed);
        self.failures += u32::from(normal.is_none());
        self.known.insert(closed.clone(), normal.clone());
        normal
    }

    /// Evaluates a closed term; `None` if its normal form is large, no term, or found too late.
    fn evaluate(&mut self, closed: &Expr) -> Option<Expr> {
        if self.engine.is_none() {
            let mut engine = Engine::new(Program::compile(self.data).ok()?);
            engine.set_step_limit(MAX_STEPS);
            engine.set_growth_limit(MAX_STEPS);
            self.engine = Some(engine);
        }
        let engine = self.engine.as_mut()?;
        let value = engine.from_expr(closed).ok()?;
        if !value.is_within(4 * MAX_PARTS) {
            return None;
        }
        let normal = engine.to_expr_at(&value, closed.sort);
        // A normal form may need operations that only the engine has. A term with variables is not
        // a value.
        let (mut parts, mut is_value) = (0, normal.is_closed());
        normal.each_op(&mut |op| {
            parts += 1;
            is_value &= op.index() < self.data.signature.op_count();
        });
        (is_value && parts <= MAX_PARTS).then_some(normal)
    }
}

/// Value of a variable at a location, from least to greatest information.
#[derive(Clone, PartialEq)]
enum Value {
    /// No edge to the location is known to be possible.
    Unknown,
    Constant(Expr),
    Varies,
}

/// The values of the live variables of each location.
type Values = AHashMap<(usize, VarId), Value>;

/// Adds a value to those that a variable may have. Returns true if they changed.
fn join(values: &mut Values, key: (usize, VarId), new: Value) -> bool {
    let old = values.get(&key).cloned().unwrap_or(Value::Varies);
    let joined = match (&old, new) {
        (Value::Unknown, n) => n,
        (_, Value::Unknown) | (Value::Varies, _) => old.clone(),
        (Value::Constant(a), Value::Constant(b)) if *a == b => old.clone(),
        _ => Value::Varies,
    };
    let changed = joined != old;
    values.insert(key, joined);
    changed
}

/// Returns the value of an expression at a location.
fn value_of(e: &Expr, location: usize, values: &Values) -> Value {
    if let ExprKind::Var(w) = e.kind {
        return values.get(&(location, w)).cloned().unwrap_or(Value::Varies);
    }
    let mut free = Vec::new();
    e.free_vars(&mut free);
    // Only variables of the location can be known: sums range over many values.
    let known: Vec<Option<&Value>> = free.iter().map(|f| values.get(&(location, *f))).collect();
    if known.contains(&Some(&Value::Unknown)) {
        return Value::Unknown;
    }
    if known.iter().any(|k| matches!(k, None | Some(Value::Varies))) {
        return Value::Varies;
    }
    let constant = |(v, k): (&VarId, &Option<&Value>)| match k {
        Some(Value::Constant(e)) => Some((*v, e.clone())),
        _ => None,
    };
    let by: Substitution = free.iter().zip(&known).filter_map(constant).collect();
    Value::Constant(e.substitute(&by))
}

/// Removes variables that have one closed value at all locations where they are live.
pub(super) fn remove_constant_variables(automaton: &mut Automaton) {
    let values = propagate_constants(automaton);
    apply_constants(automaton, &values);
}

/// Computes the values of the variables, with as many constants as the edges permit.
fn propagate_constants(automaton: &Automaton) -> Values {
    let mut values = Values::new();
    for (l, location) in automaton.locations.iter().enumerate() {
        for v in &location.vars {
            values.insert((l, *v), Value::Unknown);
        }
    }
    for (v, e) in &automaton.initial_values {
        let value = if e.is_closed() { Value::Constant(e.clone()) } else { Value::Varies };
        join(&mut values, (automaton.initial, *v), value);
    }
    loop {
        let mut changed = false;
        for edge in &automaton.edges {
            for (v, e) in &edge.assigns {
                if values.get(&(edge.to, *v)).is_none_or(|known| *known == Value::Varies) {
                    continue;
                }
                let new = value_of(e, edge.from, &values);
                changed |= join(&mut values, (edge.to, *v), new);
            }
        }
        if !changed {
            return values;
        }
    }
}

/// Replaces constants by their values, and removes their variables.
fn apply_constants(automaton: &mut Automaton, values: &Values) {
    // Unreachable locations remain `Unknown`: their edges are never taken.
    let constant = |l: usize, v: VarId| match values.get(&(l, v)) {
        Some(Value::Constant(e)) => Some(e.clone()),
        _ => None,
    };
    let locations = automaton.locations.clone();
    for edge in &mut automaton.edges {
        let by: Substitution = locations[edge.from]
            .vars
            .iter()
            .filter_map(|v| Some((*v, constant(edge.from, *v)?)))
            .collect();
        substitute_edge(edge, &by);
        edge.assigns.retain(|(v, _)| constant(edge.to, *v).is_none());
    }
    automaton.initial_values.retain(|(v, _)| constant(automaton.initial, *v).is_none());
    for (l, location) in automaton.locations.iter_mut().enumerate() {
        location.vars.retain(|v| constant(l, *v).is_none());
    }
}

/// For each location and each of its variables: the index of the first variable of the location
/// that equals it.
type Classes = Vec<Vec<usize>>;

/// Returns the representatives of the variables of a location that are not their own ones.
fn representatives(
    classes: &Classes,
    automaton: &Automaton,
    l: usize,
    signature: &Signature,
) -> Substitution {
    let vars = &automaton.locations[l].vars;
    (0..vars.len())
        .filter(|&i| classes[l][i] != i)
        .map(|i| (vars[i], Expr::var(signature, vars[classes[l][i]])))
        .collect()
}

/// Splits the classes of a location by the values assigned to its variables. Returns true if a
/// class was split.
fn split_classes(class: &mut [usize], values: &[Expr]) -> bool {
    let old = class.to_vec();
    for i in 0..class.len() {
        class[i] = (0..=i).find(|&j| old[j] == old[i] && values[j] == values[i]).unwrap_or(i);
    }
    *class != *old
}

/// Returns the assigned values in the order of the variables of a location.
fn values_in_order(automaton: &Automaton, l: usize, assigns: &[(VarId, Expr)]) -> Vec<Expr> {
    if assigns.iter().map(|a| &a.0).eq(&automaton.locations[l].vars) {
        return assigns.iter().map(|a| a.1.clone()).collect();
    }
    let by: AHashMap<VarId, &Expr> = assigns.iter().map(|(v, e)| (*v, e)).collect();
    automaton.locations[l].vars.iter().map(|v| by[v].clone()).collect()
}

/// Removes variables that always equal another variable of their location.
pub(super) fn remove_duplicate_variables(automaton: &mut Automaton, signature: &Signature) {
    let classes = refine_classes(automaton, signature);
    apply_classes(automaton, &classes, signature);
}

/// Computes the coarsest classes of equal variables that all edges preserve.
fn refine_classes(automaton: &Automaton, signature: &Signature) -> Classes {
    let mut classes: Classes = (automaton.locations.iter())
        .map(|l| {
            let sort = |i: usize| signature.var(l.vars[i]).sort;
            (0..l.vars.len()).map(|i| (0..=i).find(|&j| sort(j) == sort(i)).unwrap_or(i)).collect()
        })
        .collect();
    let initial = values_in_order(automaton, automaton.initial, &automaton.initial_values);
    split_classes(&mut classes[automaton.initial], &initial);
    loop {
        let mut changed = false;
        for edge in &automaton.edges {
            if classes[edge.to].iter().enumerate().all(|(i, c)| *c == i) {
                continue;
            }
            let by = representatives(&classes, automaton, edge.from, signature);
            let values: Vec<Expr> = values_in_order(automaton, edge.to, &edge.assigns)
                .iter()
                .map(|e| e.substitute(&by))
                .collect();
            changed |= split_classes(&mut classes[edge.to], &values);
        }
        if !changed {
            return classes;
        }
    }
}

/// Replaces variables by their representatives, and removes them.
fn apply_classes(automaton: &mut Automaton, classes: &Classes, signature: &Signature) {
    for i in 0..automaton.edges.len() {
        let by = representatives(classes, automaton, automaton.edges[i].from, signature);
        substitute_edge(&mut automaton.edges[i], &by);
    }
    let dropped: Vec<AHashSet<VarId>> = (automaton.locations.iter().enumerate())
        .map(|(l, location)| {
            (0..location.vars.len())
                .filter(|&i| classes[l][i] != i)
                .map(|i| location.vars[i])
                .collect()
        })
        .collect();
    automaton.initial_values.retain(|(v, _)| !dropped[automaton.initial].contains(v));
    for edge in &mut automaton.edges {
        edge.assigns.retain(|(v, _)| !dropped[edge.to].contains(v));
    }
    for (location, dropped) in automaton.locations.iter_mut().zip(&dropped) {
        location.vars.retain(|v| !dropped.contains(v));
    }
}

/// Removes variables on which no action and no condition depends from their location on.
pub(super) fn remove_dead_variables(automaton: &mut Automaton) {
    let free = |e: &Expr| {
        let mut vars = Vec::new();
        e.free_vars(&mut vars);
        vars
    };
    // For each edge: the assigned variables, each with the variables of its term.
    let dependencies: Vec<Vec<(VarId, Vec<VarId>)>> = automaton
        .edges
        .iter()
        .map(|edge| edge.assigns.iter().map(|(v, e)| (*v, free(e))).collect())
        .collect();
    let locations = automaton.locations.clone();
    let mut used: AHashSet<(usize, VarId)> = AHashSet::new();
    for edge in &automaton.edges {
        let parts = edge.guard.iter().chain(edge.acts.iter().flat_map(|a| &a.args));
        let parts = parts.chain(&edge.time).chain(edge.chance.as_ref().map(|c| &c.weight));
        used.extend(
            parts
                .flat_map(free)
                .filter(|v| locations[edge.from].vars.contains(v))
                .map(|v| (edge.from, v)),
        );
    }
    loop {
        let before = used.len();
        for (edge, dependencies) in automaton.edges.iter().zip(&dependencies) {
            for (v, of) in dependencies {
                if used.contains(&(edge.to, *v)) {
                    used.extend(
                        of.iter()
                            .filter(|v| locations[edge.from].vars.contains(v))
                            .map(|v| (edge.from, *v)),
                    );
                }
            }
        }
        if used.len() == before {
            break;
        }
    }
    automaton.initial_values.retain(|(v, _)| used.contains(&(automaton.initial, *v)));
    for edge in &mut automaton.edges {
        edge.assigns.retain(|(v, _)| used.contains(&(edge.to, *v)));
    }
    for (l, location) in automaton.locations.iter_mut().enumerate() {
        location.vars.retain(|v| used.contains(&(l, *v)));
    }
}
