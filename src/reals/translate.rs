//! Translation of a real-valued formula on a probabilistic transition system to an equation system.
//!
//! A node represents a part of the formula with the values of its live variables, at a state: a
//! body of a fixed point or the operand of a modality; inner operators become nodes of their own.
//! Only nodes reachable from the first one are created. A quantifier `sup` above `<..>` (`inf`
//! above `[..]`) ranges over values in matching labels, so it may have no bound of its own; other
//! quantifiers need a finite sort. Negations are pushed inwards during the translation. Cost: the
//! nodes; a modality is matched once with each label for each value of its variables.

use crate::additive::{self, Slope, SlopeData};
use crate::number::Real;
use crate::system::{NodeId, RealEquations, RealOp};
use ahash::AHashMap;
use mu_base::ids::{ActId, FixId, LabelId, StateId, VarId};
use mu_base::{Budget, Diagnostic, Span, Stage, narrow};
use mu_chance::{DistId, ProbabilisticSystem};
use mu_data::engine::{Code, Engine, Problem, Program, Value};
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use mu_formula::normal::action_free_vars;
use mu_formula::real::{Real as Formula, RealFormula, RealKind};
use mu_formula::typed::Action;
use mu_process::labels::{ActionLabels, MultiAction};
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Values of the variables in scope, innermost last.
type Scope = Vec<(VarId, Value)>;

/// A part of the formula.
struct FormulaPart<'f> {
    formula: &'f Formula,
    /// Its free variables.
    live: Vec<VarId>,
}

/// A modality with the variables that matching labels determine.
struct Modality<'f> {
    part: usize,
    action: &'f Action,
    given: Vec<VarId>,
    /// Free variables of the action that matching labels do not determine.
    read: Vec<VarId>,
}

/// A pending node: its part, its sign, the state, values of the live variables.
struct PendingNode {
    node: NodeId,
    part: usize,
    negated: bool,
    state: StateId,
    values: u32,
}

struct Translation<'f> {
    system: &'f ProbabilisticSystem,
    labels: &'f dyn ActionLabels,
    data: DataSpec,
    engine: Engine,
    equations: RealEquations,
    parts: Vec<FormulaPart<'f>>,
    by_formula: AHashMap<*const Formula, usize>,
    /// Bodies of fixed points with their parameters and signs.
    fixes: AHashMap<FixId, Fix<'f>>,
    tuples: Vec<Rc<[Value]>>,
    by_tuple: AHashMap<Rc<[Value]>, u32>,
    known: AHashMap<(u32, bool, StateId, u32), NodeId>,
    /// Means created so far, by distribution and formula.
    means: AHashMap<(DistId, u32, bool, u32), NodeId>,
    todo: Vec<PendingNode>,
    modalities: AHashMap<*const Formula, Rc<Modality<'f>>>,
    /// Solutions of modalities: by part, label and the values read.
    fits: AHashMap<(usize, LabelId, Box<[Value]>), Rc<[Box<[Value]>]>>,
    problems: AHashMap<(usize, LabelId), Option<Rc<Problem>>>,
    codes: AHashMap<*const Expr, (Code, Vec<VarId>)>,
    /// Variables that each fixed point reads in addition to its parameters, and passes along.
    carried: AHashMap<FixId, Vec<VarId>>,
    truths: [NodeId; 2],
    /// Additive parameters: they are 0 in every scope.
    additive: Vec<VarId>,
    growth: SlopeData,
    /// Instances with an addition, by the addition.
    more: AHashMap<(NodeId, Slope), NodeId>,
}

#[derive(Clone, Copy)]
struct Fix<'f> {
    least: bool,
    params: &'f [(VarId, Expr)],
    body: &'f Formula,
}

/// Translates a formula on a system with typed labels. Node 0 is the value at the initial
/// distribution.
pub fn translate(
    formula: &RealFormula,
    system: &ProbabilisticSystem,
    labels: &dyn ActionLabels,
    budget: &Budget,
) -> Result<RealEquations, Diagnostic> {
    let additive = additive::parameters(&formula.formula, &formula.data.signature);
    if !additive.is_empty()
        && let Some(equations) = translate_with(formula, system, labels, budget, additive)?
    {
        return Ok(equations);
    }
    translate_with(formula, system, labels, budget, Vec::new())?
        .ok_or_else(|| Diagnostic::internal("nothing is added, and does not fit"))
}

/// Translates with additive parameters; `None` if their slopes do not match.
fn translate_with(
    formula: &RealFormula,
    system: &ProbabilisticSystem,
    labels: &dyn ActionLabels,
    budget: &Budget,
    additive: Vec<VarId>,
) -> Result<Option<RealEquations>, Diagnostic> {
    let mut data = formula.data.clone();
    for value in [true, false] {
        Expr::boolean(&mut data.signature, value);
    }
    // Conditions on labels are conjunctions and disjunctions of equations on values. The program
    // must know their operations.
    declare_equality(
        &mut data.signature,
        &formula.actions.iter().flat_map(|a| a.sorts.iter().copied()).collect::<Vec<_>>(),
    );
    let program = Program::compile(&data)?;
    data.signature = program.signature().clone();
    let mut translation = Translation {
        system,
        labels,
        data,
        engine: Engine::new(program).with_budget(budget),
        equations: RealEquations::default(),
        parts: Vec::new(),
        by_formula: AHashMap::new(),
        fixes: AHashMap::new(),
        tuples: Vec::new(),
        by_tuple: AHashMap::new(),
        known: AHashMap::new(),
        means: AHashMap::new(),
        todo: Vec::new(),
        modalities: AHashMap::new(),
        fits: AHashMap::new(),
        problems: AHashMap::new(),
        codes: AHashMap::new(),
        carried: AHashMap::new(),
        truths: [0, 0],
        additive,
        growth: SlopeData::default(),
        more: AHashMap::new(),
    };
    let start = translation.equations.reserve();
    translation.truths = [false, true].map(|value| {
        let value = translation.equations.value(Real::truth(value));
        translation.equations.add(RealOp::Value(value))
    });
    loop {
        let before = translation.carried.clone();
        translation.parts.clear();
        translation.collect(&formula.formula);
        if translation.carried == before {
            break;
        }
    }
    let whole = translation.mean(system.initial, &formula.formula, false, &Scope::new())?;
    translation.equations.nodes[start as usize] = RealOp::Least([whole].into());
    let mut steps = 0u64;
    while let Some(task) = translation.todo.pop() {
        if steps.is_multiple_of(1024) {
            budget.check(0).and_then(|()| budget.check_memory()).map_err(Diagnostic::stopped)?;
        }
        steps += 1;
        translation.work(&task)?;
    }
    let width = translation.additive.len();
    if width > 0
        && additive::settle(&mut translation.equations, &translation.growth, width).is_none()
    {
        return Ok(None);
    }
    Ok(Some(translation.equations))
}

fn declare_equality(signature: &mut Signature, sorts: &[mu_base::ids::SortId]) {
    for sort in sorts {
        let v = signature.fresh_var("x", *sort);
        let x = Expr::var(signature, v);
        Expr::builtin(signature, Builtin::Equal, vec![x.clone(), x], basic::BOOL);
    }
    let yes = Expr::boolean(signature, true);
    Expr::negate(signature, yes.clone());
    for builtin in [Builtin::And, Builtin::Or, Builtin::Not] {
        let args = if builtin == Builtin::Not {
            vec![yes.clone()]
        } else {
            vec![yes.clone(), yes.clone()]
        };
        Expr::builtin(signature, builtin, args, basic::BOOL);
    }
}

/// Returns the direct subformulas.
pub(crate) fn children(formula: &Formula) -> Vec<&Formula> {
    match &formula.kind {
        RealKind::Truth(_) | RealKind::Val(_) | RealKind::Var(..) => Vec::new(),
        RealKind::And(a, b) | RealKind::Or(a, b) | RealKind::Add(a, b) => vec![a, b],
        RealKind::Negate(a)
        | RealKind::Scale(_, a)
        | RealKind::Infimum(_, a)
        | RealKind::Supremum(_, a)
        | RealKind::Sum(_, a)
        | RealKind::Must(_, a)
        | RealKind::May(_, a)
        | RealKind::Fix { body: a, .. } => vec![a],
    }
}

/// Returns the place of a fixed-point variable that occurs in a formula but is bound outside it.
/// `bound`: the variables of the fixed points around `formula` that count as bound.
fn free_fixed_point(formula: &Formula, bound: &mut Vec<FixId>) -> Option<Span> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &formula.kind {
        RealKind::Var(var, _) => (!bound.contains(var)).then_some(formula.span),
        RealKind::Fix { var, body, .. } => {
            bound.push(*var);
            let found = free_fixed_point(body, bound);
            bound.pop();
            found
        }
        _ => children(formula).into_iter().find_map(|part| free_fixed_point(part, bound)),
    })
}

impl<'f> Translation<'f> {
    /// Numbers the parts of the formula and computes their free variables. Returns those of
    /// `formula`.
    fn collect(&mut self, formula: &'f Formula) -> Vec<VarId> {
        let mut live = Vec::new();
        let mut add = |vars: Vec<VarId>, bound: &[VarId]| {
            for v in vars {
                if !bound.contains(&v) && !live.contains(&v) {
                    live.push(v);
                }
            }
        };
        let free = |e: &Expr| {
            let mut vars = Vec::new();
            e.free_vars(&mut vars);
            vars
        };
        let inner = stacker::maybe_grow(64 << 10, 1 << 20, || {
            children(formula).into_iter().map(|c| self.collect(c)).collect::<Vec<Vec<VarId>>>()
        });
        let bound: Vec<VarId> = match &formula.kind {
            RealKind::Infimum(vars, _) | RealKind::Supremum(vars, _) | RealKind::Sum(vars, _) => {
                vars.clone()
            }
            RealKind::Fix { params, .. } => params.iter().map(|p| p.0).collect(),
            _ => Vec::new(),
        };
        inner.into_iter().for_each(|vars| add(vars, &bound));
        match &formula.kind {
            RealKind::Val(e) | RealKind::Scale(e, _) => add(free(e), &[]),
            RealKind::Var(var, args) => {
                args.iter().for_each(|a| add(free(a), &[]));
                add(self.carried.get(var).cloned().unwrap_or_default(), &[]);
            }
            RealKind::Must(action, _) | RealKind::May(action, _) => add(action_vars(action), &[]),
            RealKind::Fix { params, least, var, body } => {
                params.iter().for_each(|p| add(free(&p.1), &[]));
                self.carried.insert(*var, live.clone());
                self.fixes.insert(*var, Fix { least: *least, params, body });
            }
            _ => {}
        }
        self.by_formula.insert(formula, self.parts.len());
        self.parts.push(FormulaPart { formula, live: live.clone() });
        live
    }

    /// Returns the node of the mean of a formula over a distribution.
    fn mean(
        &mut self,
        dist: DistId,
        formula: &'f Formula,
        negated: bool,
        scope: &Scope,
    ) -> Result<NodeId, Diagnostic> {
        let system = self.system;
        let mut outcomes = system.distributions.outcomes(dist);
        if let (Some((state, _)), None) = (outcomes.next(), outcomes.next()) {
            return self.at(formula, negated, state, scope);
        }
        let part = self.by_formula[&std::ptr::from_ref(formula)];
        let values: Vec<Value> =
            self.parts[part].live.iter().map(|v| value_of(scope, *v)).collect();
        let key = (dist, narrow::index(part), negated, self.tuple(values));
        if let Some(&known) = self.means.get(&key) {
            return Ok(known);
        }
        let mut terms = Vec::new();
        for (state, weight) in system.distributions.outcomes(dist) {
            let factor = self.equations.factor(weight);
            terms.push((factor, self.at(formula, negated, state, scope)?));
        }
        let mean = self.equations.add(RealOp::Sum(terms.into(), negated));
        self.means.insert(key, mean);
        Ok(mean)
    }

    /// Returns the node of a part at a state; its equation is created later.
    fn at(
        &mut self,
        formula: &'f Formula,
        negated: bool,
        state: StateId,
        scope: &Scope,
    ) -> Result<NodeId, Diagnostic> {
        let part = self.by_formula[&std::ptr::from_ref(formula)];
        let values: Vec<Value> =
            self.parts[part].live.iter().map(|v| value_of(scope, *v)).collect();
        let values = self.tuple(values);
        let key = (narrow::index(part), negated, state, values);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let node = self.equations.reserve();
        self.known.insert(key, node);
        self.todo.push(PendingNode { node, part, negated, state, values });
        Ok(node)
    }

    fn tuple(&mut self, values: Vec<Value>) -> u32 {
        if let Some(&known) = self.by_tuple.get(&values[..]) {
            return known;
        }
        let id = narrow::index(self.tuples.len());
        let values: Rc<[Value]> = values.into();
        self.tuples.push(values.clone());
        self.by_tuple.insert(values, id);
        id
    }

    fn work(&mut self, task: &PendingNode) -> Result<(), Diagnostic> {
        let values = self.tuples[task.values as usize].clone();
        let part = &self.parts[task.part];
        let formula = part.formula;
        let scope: Scope = part.live.iter().copied().zip(values.iter().cloned()).collect();
        let made = self.node(formula, task.negated, task.state, &scope)?;
        self.equations.nodes[task.node as usize] = RealOp::Least([made].into());
        Ok(())
    }

    fn truth(&self, value: bool) -> NodeId {
        self.truths[usize::from(value)]
    }

    fn number(&mut self, value: Real) -> NodeId {
        match value {
            Real::Number(_) => {
                let value = self.equations.value(value);
                self.equations.add(RealOp::Value(value))
            }
            infinity => self.truth(infinity == Real::Plus),
        }
    }

    /// Returns the minimum or maximum of nodes; `least` is the operator of a positive formula.
    fn either(&mut self, least: bool, mut nodes: Vec<NodeId>) -> NodeId {
        let (neutral, absorbing) = (self.truth(least), self.truth(!least));
        if nodes.contains(&absorbing) {
            return absorbing;
        }
        nodes.retain(|n| *n != neutral);
        nodes.sort_unstable();
        nodes.dedup();
        match nodes[..] {
            [] => neutral,
            [one] => one,
            _ if least => self.equations.add(RealOp::Least(nodes.into())),
            _ => self.equations.add(RealOp::Greatest(nodes.into())),
        }
    }

    /// Returns the node of a formula, with nodes for the operators inside.
    fn node(
        &mut self,
        formula: &'f Formula,
        negated: bool,
        state: StateId,
        scope: &Scope,
    ) -> Result<NodeId, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || match &formula.kind {
            RealKind::Truth(value) => Ok(self.truth(*value != negated)),
            RealKind::Val(e) => {
                let value = self.value(e, scope)?;
                let value = self.real(&value, e.span)?;
                let slope = self.slope(e, &value, negated, scope)?;
                let node = self.number(if negated { value.negation() } else { value });
                slope.into_iter().for_each(|s| _ = self.growth.leaves.insert(node, s));
                Ok(node)
            }
            RealKind::Negate(a) => self.node(a, !negated, state, scope),
            RealKind::And(a, b) | RealKind::Or(a, b) => {
                let least = matches!(formula.kind, RealKind::And(..)) != negated;
                let a = self.node(a, negated, state, scope)?;
                if a == self.truth(!least) {
                    return Ok(a);
                }
                let b = self.node(b, negated, state, scope)?;
                Ok(self.either(least, vec![a, b]))
            }
            RealKind::Add(a, b) => {
                let one = self.equations.factor(&BigRational::one());
                let terms = [
                    (one, self.node(a, negated, state, scope)?),
                    (one, self.node(b, negated, state, scope)?),
                ];
                Ok(self.equations.add(RealOp::Sum(terms.into(), negated)))
            }
            RealKind::Scale(c, a) => {
                let value = self.value(c, scope)?;
                let Real::Number(factor) = self.real(&value, c.span)? else {
                    return Err(Diagnostic::at(Stage::Data, c.span, "a factor must be a number"));
                };
                // A subformula with factor zero need not terminate.
                if factor.is_zero() {
                    return Ok(self.number(Real::zero()));
                }
                if factor.is_negative()
                    && let Some(span) = free_fixed_point(a, &mut Vec::new())
                {
                    return Err(Diagnostic::at(
                        Stage::Data,
                        c.span,
                        "a negative factor stands before a fixed-point variable",
                    )
                    .related(span, "the variable: where it rises, the value would fall"));
                }
                let below = negated != factor.is_negative();
                let inner = self.node(a, below, state, scope)?;
                let factor = self.equations.factor(&factor.abs());
                Ok(self.equations.add(RealOp::Sum([(factor, inner)].into(), below)))
            }
            RealKind::Infimum(..)
            | RealKind::Supremum(..)
            | RealKind::Must(..)
            | RealKind::May(..) => match self.modality(formula) {
                Some(modality) => self.steps(&modality, formula, negated, state, scope),
                None => self.expand_quantifier(formula, negated, state, scope),
            },
            RealKind::Sum(..) => self.expand_quantifier(formula, negated, state, scope),
            RealKind::Fix { params, var, .. } => {
                let values = params
                    .iter()
                    .map(|p| self.value(&p.1, scope))
                    .collect::<Result<Vec<_>, _>>()?;
                self.instance(*var, values, negated, state, scope)
            }
            RealKind::Var(var, args) => {
                let values =
                    args.iter().map(|a| self.value(a, scope)).collect::<Result<Vec<_>, _>>()?;
                self.instance(*var, values, negated, state, scope)
            }
        })
    }

    /// Returns the head of an instance of a fixed point; its rank is the position of the fixed
    /// point in the text, from the outside.
    fn instance(
        &mut self,
        var: FixId,
        mut values: Vec<Value>,
        negated: bool,
        state: StateId,
        scope: &Scope,
    ) -> Result<NodeId, Diagnostic> {
        let fix = self.fixes[&var];
        let mut scope = scope.clone();
        let more = self.extract_additions(fix.params, &mut values)?;
        scope.extend(fix.params.iter().map(|p| p.0).zip(values));
        let body = self.at(fix.body, negated, state, &scope)?;
        let rank = 2 * var.number() + u32::from(negated);
        while self.equations.least.len() <= rank as usize {
            self.equations.least.push(false);
        }
        self.equations.least[rank as usize] = fix.least != negated;
        // The body's own node is the head and represents the instance.
        self.equations.ranks[body as usize] = Some(rank);
        let Some(more) = more else { return Ok(body) };
        if let Some(&known) = self.more.get(&(body, more.clone())) {
            return Ok(known);
        }
        let (added, one) = (self.equations.reserve(), self.equations.factor(&BigRational::one()));
        let node = self.equations.add(RealOp::Sum([(one, body), (one, added)].into(), negated));
        self.growth.added.push((added, body, more.clone()));
        self.more.insert((body, more), node);
        Ok(node)
    }

    /// Moves the additions to additive parameters out of their values; `None` if there are none.
    fn extract_additions(
        &self,
        params: &[(VarId, Expr)],
        values: &mut [Value],
    ) -> Result<Option<Slope>, Diagnostic> {
        let mut more: Slope = vec![BigRational::zero(); self.additive.len()];
        for ((v, init), value) in params.iter().zip(values) {
            let Some(at) = self.additive.iter().position(|a| a == v) else { continue };
            if let Real::Number(k) = self.real(value, init.span)? {
                more[at] = k;
                *value = Value::integer(0.into());
            }
        }
        Ok(more.iter().any(|k| !k.is_zero()).then_some(more))
    }

    /// Returns the slope of an expression in the additive parameters; `None` if it is zero.
    fn slope(
        &mut self,
        e: &'f Expr,
        value: &Real,
        negated: bool,
        scope: &Scope,
    ) -> Result<Option<Slope>, Diagnostic> {
        let Real::Number(value) = value else { return Ok(None) };
        if self.additive.is_empty() {
            return Ok(None);
        }
        let mut vars = Vec::new();
        e.free_vars(&mut vars);
        let mut slope: Slope = vec![BigRational::zero(); self.additive.len()];
        for (at, v) in self.additive.clone().into_iter().enumerate() {
            if !vars.contains(&v) {
                continue;
            }
            let mut scope = scope.clone();
            scope.push((v, Value::integer(1.into())));
            let next = self.value(e, &scope)?;
            if let Real::Number(next) = self.real(&next, e.span)? {
                slope[at] = if negated { value - next } else { next - value };
            }
        }
        Ok(slope.iter().any(|s| !s.is_zero()).then_some(slope))
    }

    /// Returns the modality, or the modality below a quantifier over its matches.
    fn modality(&mut self, formula: &'f Formula) -> Option<Rc<Modality<'f>>> {
        if let Some(known) = self.modalities.get(&std::ptr::from_ref(formula)) {
            return Some(known.clone());
        }
        let (given, inner, may): (Vec<VarId>, &Formula, bool) = match &formula.kind {
            RealKind::Supremum(vars, a) if matches!(a.kind, RealKind::May(..)) => {
                (vars.clone(), a, true)
            }
            RealKind::Infimum(vars, a) if matches!(a.kind, RealKind::Must(..)) => {
                (vars.clone(), a, false)
            }
            RealKind::May(..) => (Vec::new(), formula, true),
            RealKind::Must(..) => (Vec::new(), formula, false),
            _ => return None,
        };
        let action = match &inner.kind {
            RealKind::May(action, _) if may => action,
            RealKind::Must(action, _) if !may => action,
            _ => return None,
        };
        let mut free = action_vars(action);
        // A variable without influence on the action belongs to the operand.
        if !given.iter().all(|v| free.contains(v)) {
            return None;
        }
        free.retain(|v| !given.contains(v));
        let part = self.by_formula[&std::ptr::from_ref(formula)];
        let modality = Rc::new(Modality { part, action, given, read: free });
        self.modalities.insert(formula, modality.clone());
        Some(modality)
    }

    /// Returns the minimum or maximum over the targets of matching steps.
    fn steps(
        &mut self,
        modality: &Modality<'f>,
        formula: &'f Formula,
        negated: bool,
        state: StateId,
        scope: &Scope,
    ) -> Result<NodeId, Diagnostic> {
        let (must, after) = match &formula.kind {
            RealKind::Must(_, a) => (true, a),
            RealKind::May(_, a) => (false, a),
            RealKind::Infimum(_, inner) | RealKind::Supremum(_, inner) => match &inner.kind {
                RealKind::Must(_, a) => (true, a),
                RealKind::May(_, a) => (false, a),
                _ => return Err(Diagnostic::internal("a quantifier over a modality lost it")),
            },
            _ => return Err(Diagnostic::internal("a modality became something else")),
        };
        let steps: Vec<(LabelId, DistId)> = self.system.steps(state).collect();
        let mut nodes = Vec::with_capacity(steps.len());
        for (label, dist) in steps {
            for solution in self.match_label(modality, label, scope)?.iter() {
                let mut inner = scope.clone();
                inner.extend(modality.given.iter().copied().zip(solution.iter().cloned()));
                nodes.push(self.mean(dist, after, negated, &inner)?);
            }
        }
        Ok(self.either(must != negated, nodes))
    }

    /// Returns the values of the determined variables with which a label matches a modality.
    fn match_label(
        &mut self,
        modality: &Modality<'f>,
        label: LabelId,
        scope: &Scope,
    ) -> Result<Rc<[Box<[Value]>]>, Diagnostic> {
        let read: Box<[Value]> = modality.read.iter().map(|v| value_of(scope, *v)).collect();
        let key = (modality.part, label, read);
        if let Some(known) = self.fits.get(&key) {
            return Ok(known.clone());
        }
        let mut found: Vec<Box<[Value]>> = Vec::new();
        if let Some(problem) = self.problem(modality, label)? {
            self.engine.solve(&problem, &key.2, &mut |_, solution| {
                found.push(solution.into());
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let found: Rc<[Box<[Value]>]> = found.into();
        self.fits.insert(key, found.clone());
        Ok(found)
    }

    /// Returns the condition under which a label matches a modality; `None` if it never does.
    fn problem(
        &mut self,
        modality: &Modality<'f>,
        label: LabelId,
    ) -> Result<Option<Rc<Problem>>, Diagnostic> {
        let key = (modality.part, label);
        if let Some(known) = self.problems.get(&key) {
            return Ok(known.clone());
        }
        let multi = self.labels.multi_action(label);
        let condition = condition(&mut self.data.signature, modality.action, &multi);
        let problem = if condition.as_bool(&self.data.signature) == Some(false) {
            None
        } else {
            Some(Rc::new(self.engine.problem(&modality.given, &condition, &modality.read)?))
        };
        self.problems.insert(key, problem.clone());
        Ok(problem)
    }

    /// Expands a quantifier over a finite sort.
    fn expand_quantifier(
        &mut self,
        formula: &'f Formula,
        negated: bool,
        state: StateId,
        scope: &Scope,
    ) -> Result<NodeId, Diagnostic> {
        let (vars, body) = match &formula.kind {
            RealKind::Infimum(vars, body)
            | RealKind::Supremum(vars, body)
            | RealKind::Sum(vars, body) => (vars, body),
            _ => return Err(Diagnostic::internal("a quantifier became something else")),
        };
        let mut scopes = vec![scope.clone()];
        for v in vars {
            let sort = self.data.signature.var(*v).sort;
            let Some(values) = self.engine.values_of(sort)? else {
                let variable = self.data.signature.var(*v);
                let message = format!(
                    "no bound for `{}: {}` in a quantifier",
                    variable.name,
                    self.data.signature.sorts.text(sort)
                );
                return Err(Diagnostic::at(Stage::Data, formula.span, message)
                    .note("a sort without bound is possible right above a modality whose action speaks of the variable"));
            };
            let with = |scope: &Scope, value: &Value| {
                scope.iter().cloned().chain([(*v, value.clone())]).collect::<Scope>()
            };
            scopes = scopes
                .iter()
                .flat_map(|s| values.iter().map(move |value| with(s, value)))
                .collect();
        }
        let nodes = scopes
            .iter()
            .map(|s| self.node(body, negated, state, s))
            .collect::<Result<Vec<NodeId>, _>>()?;
        Ok(match formula.kind {
            RealKind::Infimum(..) => self.either(!negated, nodes),
            RealKind::Supremum(..) => self.either(negated, nodes),
            _ => {
                let one = self.equations.factor(&BigRational::one());
                let terms = nodes.into_iter().map(|n| (one, n)).collect();
                self.equations.add(RealOp::Sum(terms, negated))
            }
        })
    }

    /// Evaluates an expression.
    fn value(&mut self, e: &'f Expr, scope: &Scope) -> Result<Value, Diagnostic> {
        if let ExprKind::Var(v) = e.kind {
            return Ok(value_of(scope, v));
        }
        let key = std::ptr::from_ref(e);
        if !self.codes.contains_key(&key) {
            let mut vars = Vec::new();
            e.free_vars(&mut vars);
            let code = self.engine.code(e, &vars)?;
            self.codes.insert(key, (code, vars));
        }
        let (code, vars) = &self.codes[&key];
        let env: Vec<Value> = vars.iter().map(|v| value_of(scope, *v)).collect();
        self.engine.eval(code, &env)
    }

    /// Converts a value to a number or an infinity.
    fn real(&self, value: &Value, span: Span) -> Result<Real, Diagnostic> {
        if value.is_true() || value.is_false() {
            return Ok(Real::truth(value.is_true()));
        }
        value.to_rational().map(Real::Number).ok_or_else(|| {
            let text = self.engine.text(value, 60);
            Diagnostic::at(Stage::Data, span, format!("`{text}` has no value as a number"))
        })
    }
}

/// Returns the value of a variable in scope.
fn value_of(scope: &Scope, var: VarId) -> Value {
    scope
        .iter()
        .rev()
        .find(|(v, _)| *v == var)
        .map(|(_, value)| value.clone())
        .expect("a variable in scope has a value")
}

/// Returns the free variables of an action formula.
fn action_vars(action: &Action) -> Vec<VarId> {
    let mut out = Vec::new();
    action_free_vars(action, &mut out);
    out
}

/// Returns the condition under which a multi-action matches an action formula.
fn condition(signature: &mut Signature, action: &Action, multi: &MultiAction) -> Expr {
    let truth = |signature: &mut Signature, value| Expr::boolean(signature, value);
    match action {
        Action::True => truth(signature, true),
        Action::False => truth(signature, false),
        Action::Val(e) => e.clone(),
        Action::Multi(acts) => same_multiset(signature, acts, multi),
        Action::Not(a) => {
            let a = condition(signature, a, multi);
            negation(signature, a)
        }
        Action::And(a, b) => {
            let (a, b) = (condition(signature, a, multi), condition(signature, b, multi));
            join(signature, true, a, b)
        }
        Action::Or(a, b) => {
            let (a, b) = (condition(signature, a, multi), condition(signature, b, multi));
            join(signature, false, a, b)
        }
        Action::Implies(a, b) => {
            let (a, b) = (condition(signature, a, multi), condition(signature, b, multi));
            let a = negation(signature, a);
            join(signature, false, a, b)
        }
        Action::Forall(vars, a) | Action::Exists(vars, a) => {
            let binder =
                if matches!(action, Action::Forall(..)) { Binder::Forall } else { Binder::Exists };
            let a = condition(signature, a, multi);
            match a.as_bool(signature) {
                Some(_) => a,
                None => {
                    let span = a.span;
                    Expr::new(ExprKind::Bind(binder, vars.clone(), a), basic::BOOL, span)
                }
            }
        }
    }
}

fn negation(signature: &mut Signature, a: Expr) -> Expr {
    match a.as_bool(signature) {
        Some(value) => Expr::boolean(signature, !value),
        None => Expr::negate(signature, a),
    }
}

fn join(signature: &mut Signature, and: bool, a: Expr, b: Expr) -> Expr {
    match (a.as_bool(signature), b.as_bool(signature)) {
        (Some(value), _) => {
            if value == and {
                b
            } else {
                a
            }
        }
        (_, Some(value)) => {
            if value == and {
                a
            } else {
                b
            }
        }
        _ => Expr::builtin(
            signature,
            if and { Builtin::And } else { Builtin::Or },
            vec![a, b],
            basic::BOOL,
        ),
    }
}

/// Returns the condition that actions are the same multiset: in some order of those with one name.
fn same_multiset(
    signature: &mut Signature,
    acts: &[(ActId, Vec<Expr>)],
    multi: &MultiAction,
) -> Expr {
    if acts.len() != multi.len() {
        return Expr::boolean(signature, false);
    }
    let Some(((action, args), rest)) = acts.split_first() else {
        return Expr::boolean(signature, true);
    };
    let mut any = Expr::boolean(signature, false);
    for (i, (other, values)) in multi.iter().enumerate() {
        if other != action {
            continue;
        }
        let mut all = Expr::boolean(signature, true);
        for (a, v) in args.iter().zip(values) {
            let equal = Expr::equal(signature, a.clone(), v.clone());
            all = join(signature, true, all, equal);
        }
        let mut left = multi.clone();
        left.remove(i);
        let others = same_multiset(signature, rest, &left);
        let all = join(signature, true, all, others);
        any = join(signature, false, any, all);
    }
    any
}
