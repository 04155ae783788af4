//! Expansion of an obligation: its successors in the game, by evaluation along paths.
//!
//! In: a node of `obligations`. Out: the nodes that remain, and whether the prover chooses among
//! them. Each part is evaluated once for each path. What has no value along a path leaves the
//! obligation open: the numbers in unevaluated operations become exact. Invariant: every concrete
//! successor of every solution of the node is covered by some successor. Cost: evaluations, one for
//! each path of each part.

use crate::differences::Differences;
use crate::obligations::{Compiled, Env, Fail, Node, Prover, root};
use crate::path::{Paths, SharedPath};
use crate::positions::Position;
use crate::thresholds::{Flow, ZERO};
use mu_base::ids::VarId;
use mu_base::{Diagnostic, Span, Stage};
use mu_data::builtins::linear::least;
use mu_data::engine::Value;
use mu_data::engine::paths::NumberLeaf;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Limit on the numbers in one state.
const MAX_NUMBERS: usize = 48;

/// Result of one evaluation along a path.
type Run<T> = Result<T, Diagnostic>;

impl Prover<'_> {
    /// Returns the first obligations: one for each case of the initial state.
    pub(crate) fn start(&mut self) -> Result<Vec<usize>, Fail> {
        let question = self.question;
        let process = question.process;
        let mut zone = Differences::default();
        let (mut places, mut sorts, mut env) = (Vec::new(), Vec::new(), Env::default());
        for (i, (param, least)) in question.symbolic.iter().enumerate() {
            let var = process.params[*param].var;
            zone.add(Some(*least));
            places.push(root(var));
            sorts.push(self.signature.var(var).sort);
            env.insert(var, Value::Unknown(i as u32));
        }
        let node = Node {
            position: self.positions.start,
            values: Rc::new([]),
            places: places.into(),
            sorts: sorts.into(),
            zone: Rc::new(zone),
        };
        let mut initial = Vec::new();
        for (i, p) in process.params.iter().enumerate() {
            if !question.symbolic.iter().any(|s| s.0 == i) {
                let own = question.initial.iter().find(|(at, _)| *at == i).map(|(_, e)| e);
                initial.push((p.var, self.compile_expr(own.unwrap_or(&p.init))?));
            }
        }
        let mut found = Vec::new();
        self.assign(&node, &env, &initial, node.position, &mut found)?;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Returns the values of the variables at a node.
    fn env(&self, node: &Node) -> Env {
        let params = self.question.process.params.iter().map(|p| p.var);
        let live = self.positions.live[node.position].iter().copied();
        params.chain(live).zip(node.values.iter().cloned()).collect()
    }

    /// Prepares an evaluation from a node along a path.
    fn enter(&mut self, node: &Node, path: &SharedPath) {
        self.paths += 1;
        self.drawn.clear();
        self.engine.forget_unknowns();
        for (i, sort) in node.sorts.iter().enumerate() {
            self.engine.rigid(*sort, self.pool[i]);
        }
        self.engine.set_oracle(Some(path.clone()));
    }

    /// Evaluates an expression.
    fn value(&mut self, e: &Compiled, env: &Env) -> Run<Value> {
        let values = values(&e.env, env)?;
        self.engine.eval(&e.code, &values)
    }

    /// Evaluates a condition, which must have a truth value.
    fn truth(&mut self, e: &Compiled, env: &Env) -> Run<bool> {
        let v = self.value(e, env)?;
        match v {
            _ if v.is_true() => Ok(true),
            _ if v.is_false() => Ok(false),
            _ => Err(undecided_error(&self.engine.value_text(&v), e.span)),
        }
    }

    /// Ends an evaluation: records its comparisons, and returns the reason if it has no value.
    fn finish_evaluation<T>(
        &mut self,
        node: &Node,
        path: &SharedPath,
        run: Run<T>,
        span: Span,
    ) -> Result<T, Fail> {
        let path = path.borrow();
        let place = |x: usize| match x {
            0 => Some(ZERO),
            x => node.places.get(x - 1).copied(),
        };
        for (x, y, c) in &path.atoms {
            if let (Some(x), Some(y)) = (place(*x), place(*y)) {
                self.met.insert((x, y, *c));
            }
        }
        if self.engine.is_broken() {
            let text = "a search chose the value of a number that has any value";
            return Err(Fail::Stop(Diagnostic::new(Stage::Unsupported, text).or_span(span)));
        }
        let why = match run {
            Ok(value) => return Ok(value),
            Err(why) => why,
        };
        if why.stop.is_some() || why.stage == Stage::Internal {
            return Err(Fail::Stop(why));
        }
        let why = why.or_span(span);
        let message = self.with_names(node, &why.message);
        let why = Diagnostic { stage: Stage::Unsupported, message, ..why };
        if path.refused.is_empty() {
            return Err(Fail::Refuted(why));
        }
        let exact: Option<Vec<u64>> =
            path.refused.iter().map(|u| node.places.get(*u as usize).copied()).collect();
        Err(match exact {
            Some(places) => Fail::Exact(places, Box::new(why)),
            None => Fail::Refuted(why),
        })
    }

    /// Returns the node of a position with values after a path; an included one if there is one.
    fn node(
        &mut self,
        position: usize,
        before: &Node,
        env: &Env,
        path: &SharedPath,
    ) -> Result<usize, Fail> {
        let (mut sums, mut places, mut sorts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut flows, mut fresh) = (Vec::new(), Vec::new());
        let params = self.question.process.params.iter().map(|p| p.var);
        let vars: Vec<VarId> =
            params.chain(self.positions.live[position].iter().copied()).collect();
        let mut values = Vec::with_capacity(vars.len());
        for v in vars {
            let value =
                env.get(&v).ok_or_else(|| Diagnostic::internal("a variable has no value"))?;
            let sort = self.signature.var(v).sort;
            let found = self.engine.numbers(value, sort, root(v), &mut |leaf: NumberLeaf| {
                let base = leaf.base.map_or(0, |u| u as usize + 1);
                let from = match base {
                    0 => Some(ZERO),
                    at => before.places.get(at - 1).copied(),
                };
                match from {
                    Some(from) => flows.push(Flow { to: leaf.place, from, offset: leaf.offset }),
                    None => fresh.push(leaf.place),
                }
                sums.push((base, leaf.offset));
                places.push(leaf.place);
                sorts.push(leaf.sort);
                Value::Unknown(places.len() as u32 - 1)
            });
            match found {
                Ok(value) => values.push(value),
                Err(part) => return Err(self.no_value(before, v, &part)),
            }
        }
        if places.len() > MAX_NUMBERS {
            let text = format!("a state has more than {MAX_NUMBERS} numbers");
            return Err(Fail::Stop(Diagnostic::new(Stage::Unsupported, text)));
        }
        self.flows.extend(flows);
        self.fresh.extend(fresh);
        let mut zone = path.borrow().zone.select(&sums);
        let lowest: Vec<Option<i64>> = sorts.iter().map(|s| least(*s)).collect();
        for (i, low) in lowest.iter().enumerate() {
            let fits = low.is_none_or(|low| zone.constrain(0, i + 1, -low));
            if !fits {
                let text = "a number is outside of its sort";
                return Err(Fail::Refuted(Diagnostic::new(Stage::Unsupported, text)));
            }
        }
        let zone = Rc::new(self.thresholds.round_up(&zone, &places, &lowest));
        let values: Rc<[Value]> = values.into();
        let key = (position, values.clone());
        let known = self.known.entry(key).or_default();
        for at in known.iter() {
            if self.nodes[*at].zone.includes(&zone) {
                return Ok(*at);
            }
        }
        known.push(self.nodes.len());
        self.nodes.push(Node {
            position,
            values,
            places: places.into(),
            sorts: sorts.into(),
            zone,
        });
        Ok(self.nodes.len() - 1)
    }

    /// Returns the failure for a value that is no normal form.
    fn no_value(&mut self, node: &Node, var: VarId, part: &Value) -> Fail {
        let name = self.signature.var(var).name.clone();
        let shown = self.with_names(node, &self.engine.value_text(part));
        let text = format!("`{name}` gets the value `{shown}`, which is undecided");
        let why = Diagnostic::new(Stage::Unsupported, text);
        let unknowns = self.engine.rigid_unknowns(part);
        let places: Option<Vec<u64>> =
            unknowns.iter().map(|u| node.places.get(*u as usize).copied()).collect();
        match places {
            Some(places) if !places.is_empty() => Fail::Exact(places, Box::new(why)),
            _ => Fail::Refuted(why),
        }
    }

    /// Returns the successors of a node, and whether the prover chooses among them.
    pub(crate) fn expand(&mut self, at: usize) -> Result<(bool, Vec<usize>), Fail> {
        let node = self.nodes[at].clone();
        let mut next = Vec::new();
        match self.positions.all[node.position].clone() {
            Position::True => return Ok((false, next)),
            Position::False => return Err(self.violation(&node)),
            Position::Test(_, expected, span) => {
                self.test(&node, expected, span, None, &mut next)?;
            }
            Position::Unless(_, expected, span, other) => {
                self.test(&node, expected, span, Some(other), &mut next)?;
            }
            Position::All(positions) => self.add_successors(&node, &positions, &mut next)?,
            Position::Any(positions) => {
                self.add_successors(&node, &positions, &mut next)?;
                return Ok((true, next));
            }
            Position::Forall(var, after, span) => {
                self.add_quantified(&node, var, after, span, &mut next)?;
            }
            Position::Exists(var, after, span) => {
                let sort = self.signature.var(var).sort;
                if self.holds_numbers(sort, &mut Vec::new()) != Some(false) {
                    let text = format!(
                        "`exists {}` requires one value for all runs",
                        self.signature.var(var).name
                    );
                    return Err(Fail::Stop(
                        Diagnostic::new(Stage::Unsupported, text).or_span(span),
                    ));
                }
                self.add_quantified(&node, var, after, span, &mut next)?;
                return Ok((true, next));
            }
            Position::Box(conditions, after) => {
                for (i, condition) in conditions.iter().enumerate() {
                    if condition.is_some() {
                        self.steps(&node, i, after, &mut next)?;
                    }
                }
            }
            Position::Assign(_, after) => {
                let (env, values) = (self.env(&node), self.tests[&node.position].clone());
                self.assign(&node, &env, &values, after, &mut next)?;
            }
        }
        next.sort_unstable();
        next.dedup();
        Ok((false, next))
    }

    fn violation(&self, _node: &Node) -> Fail {
        let text = "the abstraction has runs that violate the formula, but possibly no value has such a run";
        Fail::Refuted(Diagnostic::new(Stage::Unsupported, text))
    }

    fn test(
        &mut self,
        node: &Node,
        expected: bool,
        span: Span,
        other: Option<usize>,
        next: &mut Vec<usize>,
    ) -> Result<(), Fail> {
        let env = self.env(node);
        let test = self.tests[&node.position][0].1.clone();
        let mut paths = Paths::new(&node.zone);
        while let Some(path) = paths.start()? {
            self.enter(node, &path);
            let run = self.truth(&test, &env);
            self.engine.set_oracle(None);
            if self.finish_evaluation(node, &path, run, span)? != expected {
                match other {
                    Some(other) => next.push(self.node(other, node, &env, &path)?),
                    None => return Err(self.violation(node)),
                }
            }
            paths.end(&path);
        }
        Ok(())
    }

    /// Adds the same values at other positions.
    fn add_successors(
        &mut self,
        node: &Node,
        positions: &[usize],
        next: &mut Vec<usize>,
    ) -> Result<(), Fail> {
        let env = self.env(node);
        let mut paths = Paths::new(&node.zone);
        while let Some(path) = paths.start()? {
            self.enter(node, &path);
            self.engine.set_oracle(None);
            for position in positions {
                next.push(self.node(*position, node, &env, &path)?);
            }
            paths.end(&path);
        }
        Ok(())
    }

    fn add_quantified(
        &mut self,
        node: &Node,
        var: VarId,
        after: usize,
        span: Span,
        next: &mut Vec<usize>,
    ) -> Result<(), Fail> {
        let env = self.env(node);
        let mut paths = Paths::new(&node.zone);
        while let Some(path) = paths.start()? {
            self.enter(node, &path);
            let run = self.any_value(var, &path).and_then(|value| {
                value.ok_or_else(|| {
                    let text = format!(
                        "`forall {}` is over a sort with values of any size",
                        self.signature.var(var).name
                    );
                    Diagnostic::new(Stage::Unsupported, text)
                })
            });
            self.engine.set_oracle(None);
            let value = self.finish_evaluation(node, &path, run, span)?;
            let mut env = env.clone();
            env.insert(var, value);
            next.push(self.node(after, node, &env, &path)?);
            paths.end(&path);
        }
        Ok(())
    }

    /// Evaluates expressions for variables along all paths, and appends the nodes at a position
    /// with these values.
    fn assign(
        &mut self,
        node: &Node,
        env: &Env,
        values: &[(VarId, Compiled)],
        position: usize,
        next: &mut Vec<usize>,
    ) -> Result<(), Fail> {
        let mut paths = Paths::new(&node.zone);
        while let Some(path) = paths.start()? {
            self.enter(node, &path);
            let mut new = env.clone();
            let mut run = || -> Run<()> {
                for (v, e) in values {
                    let value = self.value(e, env)?;
                    new.insert(*v, value);
                }
                Ok(())
            };
            let run = run();
            self.engine.set_oracle(None);
            self.finish_evaluation(node, &path, run, Span::default())?;
            next.push(self.node(position, node, &new, &path)?);
            paths.end(&path);
        }
        Ok(())
    }

    /// Adds the obligations after the steps of a summand.
    fn steps(
        &mut self,
        node: &Node,
        summand: usize,
        after: usize,
        next: &mut Vec<usize>,
    ) -> Result<(), Fail> {
        let env = self.env(node);
        let span = self.steps[summand].span;
        let mut paths = Paths::new(&node.zone);
        while let Some(path) = paths.start()? {
            self.enter(node, &path);
            let run = self.step(node, summand, env.clone(), &path);
            self.engine.set_oracle(None);
            if let Some(env) = self.finish_evaluation(node, &path, run, span)? {
                next.push(self.node(after, node, &env, &path)?);
            }
            paths.end(&path);
        }
        Ok(())
    }

    /// Evaluates one step of a summand; `None` if the path has none.
    fn step(
        &mut self,
        node: &Node,
        summand: usize,
        mut env: Env,
        path: &SharedPath,
    ) -> Run<Option<Env>> {
        let process = self.question.process;
        for var in self.steps[summand].drawn.clone() {
            let Some(value) = self.any_value(var, path)? else {
                let name = &self.signature.var(var).name;
                let text = format!("`sum {name}` is over values of any size");
                return Err(Diagnostic::new(Stage::Unsupported, text));
            };
            env.insert(var, value);
        }
        let step = &self.steps[summand];
        let given = values(&step.env, &env)?;
        let condition = self.conditions.get(&(node.position, summand));
        let mut found = None;
        self.engine.solve(&step.problem, &given, &mut |engine, solution| {
            // The other option: a later solution.
            if path.borrow_mut().choose(2) == 1 {
                return Ok(ControlFlow::Continue(()));
            }
            let mut env = env.clone();
            env.extend(step.solved.iter().copied().zip(solution.iter().cloned()));
            let mut eval = |e: &Compiled, env: &Env| -> Run<Value> {
                let given = values(&e.env, env)?;
                engine.eval(&e.code, &given)
            };
            if let Some(condition) = condition {
                for (v, e) in self.positions.arguments[summand].iter().zip(&step.arguments) {
                    if condition.env.contains(v) {
                        let value = eval(e, &env)?;
                        env.insert(*v, value);
                    }
                }
                let holds = eval(condition, &env)?;
                if holds.is_false() {
                    return Ok(ControlFlow::Break(()));
                }
                if !holds.is_true() {
                    return Err(undecided_error(&engine.value_text(&holds), condition.span));
                }
            }
            let mut after = env.clone();
            for (at, e) in &step.updates {
                let value = eval(e, &env)?;
                after.insert(process.params[*at].var, value);
            }
            found = Some(after);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

/// Returns the values of variables.
fn values(vars: &[VarId], env: &Env) -> Run<Vec<Value>> {
    let of = |v: &VarId| {
        env.get(v).cloned().ok_or_else(|| Diagnostic::internal("a variable has no value"))
    };
    vars.iter().map(of).collect()
}

fn undecided_error(shown: &str, span: Span) -> Diagnostic {
    let text = format!("a condition is neither true nor false: {shown}");
    Diagnostic::new(Stage::Unsupported, text).or_span(span)
}
