//! Targets of rules: the obligations of rule instances, compiled for an environment of values, and
//! the numbers of formula states.

use super::{Automaton, FormulaState, Key};
use ahash::AHashMap;
use mu_base::ids::{FixId, SortId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::engine::{Code, Engine, Value};
use mu_data::expr::Expr;
use mu_formula::normal::{NodeId, NormalNode};
use std::rc::Rc;

/// Origin of a live variable's value in a target.
#[derive(Clone, Debug)]
pub(super) enum ValueOrigin {
    /// Position in the environment.
    Copy(usize),
    /// A term over the environment, and its sort.
    Term(Code, SortId),
}

/// A target, compiled for an environment: the live variables of the formula state with the rule,
/// then the rule's unknowns.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Const(bool),
    Test(Code),
    /// Operands are inlined if that formula state has the same connective. Otherwise tests are
    /// evaluated, and if more than one operand remains, the node itself becomes a state.
    Junction {
        all: bool,
        tests: Vec<Code>,
        rest: Vec<Target>,
        whole: Option<(NodeId, Vec<ValueOrigin>)>,
    },
    State(NodeId, Vec<ValueOrigin>),
}

impl Automaton {
    fn sources(
        &mut self,
        node: NodeId,
        fix: Option<(FixId, &[Expr])>,
        layout: &[VarId],
    ) -> Result<Vec<ValueOrigin>, Diagnostic> {
        let live = self.normal.live(node).to_vec();
        let mut out = Vec::with_capacity(live.len());
        for v in live {
            if let Some((fix, args)) = fix
                && let Some(i) = self.normal.fix(fix).params.iter().position(|p| *p == v)
            {
                out.push(ValueOrigin::Term(self.engine.code(&args[i], layout)?, args[i].sort));
                continue;
            }
            let at = layout.iter().position(|l| *l == v).ok_or_else(|| {
                Diagnostic::new(
                    Stage::Internal,
                    "a live variable of a formula state is not in scope",
                )
            })?;
            out.push(ValueOrigin::Copy(at));
        }
        Ok(out)
    }

    pub(super) fn compile_target(
        &mut self,
        node: NodeId,
        all: bool,
        layout: &[VarId],
    ) -> Result<Target, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            Ok(match self.normal.node(node).clone() {
                NormalNode::Const(b) => Target::Const(b),
                NormalNode::Val(e) => Target::Test(self.engine.code(&e, layout)?),
                NormalNode::All(list) | NormalNode::Any(list) => {
                    let conjunction = matches!(self.normal.node(node), NormalNode::All(_));
                    let (mut tests, mut rest) = (Vec::new(), Vec::new());
                    for n in list {
                        if let NormalNode::Val(e) = self.normal.node(n).clone() {
                            tests.push(self.engine.code(&e, layout)?);
                        } else {
                            rest.push(n);
                        }
                    }
                    let single = rest.len() <= 1 || conjunction == all;
                    let rest = if single {
                        rest.into_iter()
                            .map(|n| self.compile_target(n, all, layout))
                            .collect::<Result<_, _>>()?
                    } else {
                        Vec::new()
                    };
                    let whole =
                        if single { None } else { Some((node, self.sources(node, None, layout)?)) };
                    Target::Junction { all: conjunction, tests, rest, whole }
                }
                NormalNode::Call(fix, args) => {
                    let head = self.normal.fix(fix).head;
                    Target::State(head, self.sources(head, Some((fix, &args)), layout)?)
                }
                NormalNode::Forall(..)
                | NormalNode::Exists(..)
                | NormalNode::Must(..)
                | NormalNode::May(..)
                | NormalNode::Head(_) => Target::State(node, self.sources(node, None, layout)?),
            })
        })
    }

    pub(super) fn run_target(
        &mut self,
        target: &Target,
        all: bool,
        env: &[Value],
        out: &mut Vec<FormulaState>,
    ) -> Result<bool, Diagnostic> {
        let Self { engine, states, state_ids, .. } = self;
        Interner { states, state_ids }.run(engine, target, all, env, out)
    }
}

/// Evaluates a condition. One that rewrites to neither constant is an error of stage `Data`: it is
/// raised only if nothing else decides.
pub(super) fn test(engine: &mut Engine, code: &Code, env: &[Value]) -> Result<bool, Diagnostic> {
    let value = engine.eval(code, env)?;
    match (value.is_true(), value.is_false()) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => {
            let text = engine.text(&value, 120);
            Err(Diagnostic::new(
                Stage::Data,
                "a condition of the formula rewrites to neither true nor false",
            )
            .note(format!("to: {text}")))
        }
    }
}

/// The part of the automaton that targets need while the engine is borrowed.
pub(super) struct Interner<'a> {
    pub(super) states: &'a mut Vec<Key>,
    pub(super) state_ids: &'a mut AHashMap<Key, FormulaState>,
}

impl Interner<'_> {
    pub(super) fn number(&mut self, key: Key) -> FormulaState {
        if let Some(&q) = self.state_ids.get(&key) {
            return q;
        }
        let q = FormulaState::new(self.states.len());
        self.states.push(key.clone());
        self.state_ids.insert(key, q);
        q
    }
    fn state(
        &mut self,
        engine: &mut Engine,
        node: NodeId,
        sources: &[ValueOrigin],
        env: &[Value],
        out: &mut Vec<FormulaState>,
    ) -> Result<bool, Diagnostic> {
        let mut values = Vec::with_capacity(sources.len());
        for s in sources {
            values.push(match s {
                ValueOrigin::Copy(i) => env[*i].clone(),
                ValueOrigin::Term(code, sort) => {
                    let value = engine.eval(code, env)?;
                    engine.normal_functions(&value, *sort).into_owned()
                }
            });
        }
        let q = self.number((node, Rc::from(values)));
        out.push(q);
        Ok(false)
    }

    /// Adds the obligations of the target. Returns true if it decides the formula state with the
    /// rule, a universal one if `all`.
    pub(super) fn run(
        &mut self,
        engine: &mut Engine,
        target: &Target,
        all: bool,
        env: &[Value],
        out: &mut Vec<FormulaState>,
    ) -> Result<bool, Diagnostic> {
        match target {
            Target::Const(b) => Ok(*b != all),
            Target::Test(code) => Ok(test(engine, code, env)? != all),
            Target::State(node, sources) => self.state(engine, *node, sources, env, out),
            Target::Junction { all: conjunction, tests, rest, whole } => {
                let mut error = None;
                for code in tests {
                    match test(engine, code, env) {
                        // A test that decides the junction.
                        Ok(value) if value != *conjunction => return Ok(*conjunction == all),
                        Ok(_) => {}
                        Err(d) if d.stage == Stage::Data => error = Some(d),
                        Err(d) => return Err(d),
                    }
                }
                if let Some(d) = error {
                    return Err(d);
                }
                if let Some((node, sources)) = whole {
                    return self.state(engine, *node, sources, env, out);
                }
                if rest.is_empty() {
                    return Ok(*conjunction != all);
                }
                for t in rest {
                    if self.run(engine, t, all, env, out)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
