//! Rewriting engine: compiles a data specification, evaluates its terms to normal forms, and
//! enumerates solutions of conditions.
//!
//! [`Program`] is the compiled specification, shared by all threads. An [`Engine`] evaluates for
//! one thread; it caches the values of closed subexpressions. Expressions are the portable form,
//! [`Value`]s belong to a thread. Expressions given to an engine must use sorts and operations of
//! [`Program::signature`] (variables may be newer).
//!
//! Semantics: mCRL2's data language, innermost rewriting with lazy connectives, equations in file
//! order (more specific ones first). A term that no equation and no built-in rule reduces is a
//! normal form.

pub(crate) mod cases;
pub mod code;
pub mod compile;
mod image;
mod inline;
mod lazy;
pub mod machine;
pub mod matching;
mod meter;
mod partial_evaluation;
pub mod paths;
mod polling;
mod error_context;
mod fast_path;
mod functions;
pub mod reflect;
mod reevaluate;
mod term_conversion;
pub(crate) mod terms;
pub mod text;
pub(crate) mod unknowns;
mod updates;
mod undefined;

#[cfg(test)]
mod tests;

use super::builtins::list::rebuild;
use super::enumerate::{self, SolutionSearch};
use super::expr::{Expr, ExprKind, ExprNode};
use super::signature::Builtin;
pub use super::value::Value;
use ahash::AHashMap;
pub use compile::Program;
use compile::{Compiler, Sharing, VariableLocations};
pub use image::image_of;
use machine::EvaluationMachine;
use mu_base::diagnostic::Diagnostic;
use mu_base::ids::{SortId, VarId};
use mu_base::{Budget, Span};
pub use partial_evaluation::PartialValue;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// A compiled expression over an environment; belongs to the engine that made it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Code(Rc<(code::CodeNode, usize, Span)>);

/// A compiled condition with unknowns.
#[derive(Clone, Debug)]
pub struct Problem {
    condition: Code,
    /// Source form of the condition, for messages.
    text: Expr,
    env: Vec<VarId>,
    unknowns: Vec<(VarId, SortId)>,
    /// Binder of the unknowns, for messages.
    binder: &'static str,
}

impl Problem {
    /// Sets the binder that messages name for the unknowns; the default is a sum.
    #[must_use]
    pub fn with_binder(self, binder: &'static str) -> Problem {
        Problem { binder, ..self }
    }
}

/// Receiver of solutions; it breaks to end the search.
pub type Receiver<'a> =
    dyn FnMut(&mut Engine, &[Value]) -> Result<ControlFlow<()>, Diagnostic> + 'a;

/// Limit on the shared parts of values and expressions in caches; beyond it, the caches are
/// cleared.
const MAX_CACHED: usize = 1 << 17;
/// Note for the place where an evaluation started, if the error has another place.
const STARTED: &str = "this was being evaluated";

/// Evaluator; one per thread.
#[derive(Debug)]
pub struct Engine {
    program: Arc<Program>,
    machine: EvaluationMachine,
    /// Spare machine that replaces the machine while that is in use elsewhere.
    spare: Option<Box<EvaluationMachine>>,
    sharing: Sharing,
    /// Cached values of shared expressions; the entries hold the expressions, so that addresses
    /// stay valid.
    built: AHashMap<*const ExprNode, (Expr, Value)>,
    sharer: term_conversion::TermConverter,
    functions: functions::NormalFunctions,
    total_steps: u64,
}

impl Engine {
    /// Creates an engine with empty caches. Cheap.
    pub fn new(program: Arc<Program>) -> Engine {
        let machine = EvaluationMachine::new(&program);
        let sharing = Sharing { next: program.shared, enabled: true, ..Sharing::default() };
        Engine {
            program,
            machine,
            spare: None,
            sharing,
            built: AHashMap::new(),
            sharer: term_conversion::TermConverter::default(),
            functions: functions::NormalFunctions::default(),
            total_steps: 0,
        }
    }

    /// Sets the limits of a run: an evaluation or enumeration that reaches one ends with an error
    /// of stage `Limit`.
    #[must_use]
    pub fn with_budget(mut self, budget: &Budget) -> Engine {
        self.machine.meter.set_budget(budget);
        self
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Compiles an expression with free variables among `env`; the position in `env` is the slot.
    pub fn code(&mut self, expr: &Expr, env: &[VarId]) -> Result<Code, Diagnostic> {
        let node = Compiler::new(&self.program, &mut self.sharing)
            .root(expr, &VariableLocations::of(env))?;
        Ok(Code(Rc::new((node, env.len(), expr.span))))
    }

    /// Evaluates an expression in an environment to its normal form.
    pub fn eval(&mut self, code: &Code, env: &[Value]) -> Result<Value, Diagnostic> {
        debug_assert_eq!(env.len(), code.0.1);
        let program = self.program.clone();
        self.run(|m| {
            let frame = m.stack.len();
            m.stack.extend_from_slice(env);
            m.eval(&program, &code.0.0, frame)
        })
        .map_err(|e| e.within(code.0.2, STARTED))
    }

    /// Runs with fresh counters; restores the machine in any case.
    pub fn equal(&mut self, sort: SortId, a: &Value, b: &Value) -> Result<Value, Diagnostic> {
        let program = self.program.clone();
        self.run(|m| m.equal(&program, sort, a, b))
    }

    /// Runs with fresh counters; restores the machine whether it succeeds or not.
    fn run<T>(
        &mut self,
        f: impl FnOnce(&mut EvaluationMachine) -> machine::Outcome<T>,
    ) -> Result<T, Diagnostic> {
        let m = &mut self.machine;
        let before = m.interrupt();
        let result = f(m);
        self.total_steps += m.meter.steps();
        m.resume(before);
        result.map_err(|e| *e)
    }

    /// Evaluates a closed expression to its normal form.
    pub fn from_expr(&mut self, closed: &Expr) -> Result<Value, Diagnostic> {
        self.build(closed, false)
    }

    /// Returns the value of an expression that [`Engine::to_expr_at`] created, in this or another
    /// engine on the same program.
    pub fn from_normal(&mut self, normal: &Expr) -> Result<Value, Diagnostic> {
        self.build(normal, true)
    }

    /// Builds constructor terms directly, each shared part once, even if several expressions share
    /// it; evaluates all other terms.
    fn build(&mut self, closed: &Expr, normal: bool) -> Result<Value, Diagnostic> {
        let ExprKind::Apply(head, args) = &closed.kind else { return self.evaluate_closed(closed) };
        let shared = Arc::strong_count(&closed.0) > 1;
        if let Some((_, value)) = self.built.get(&Arc::as_ptr(&closed.0)).filter(|_| shared) {
            return Ok(value.clone());
        }
        let program = self.program.clone();
        let (mut heads, mut tail) = (Vec::new(), closed);
        while let Some((Builtin::Cons, [head, rest])) = tail.as_builtin(&program.signature) {
            if !heads.is_empty() && self.built.contains_key(&Arc::as_ptr(&tail.0)) {
                break;
            }
            heads.push(self.built_part(head, normal)?);
            tail = rest;
        }
        let value = if heads.is_empty() {
            let op = match head.kind {
                ExprKind::Op(op) if self.program.builds(op, args.len()) => op,
                _ => return self.evaluate_closed(closed),
            };
            let args: Result<Vec<Value>, Diagnostic> =
                args.iter().map(|a| self.built_part(a, normal)).collect();
            Value::app(op, 0, args?)
        } else {
            rebuild(heads, self.built_part(tail, normal)?)
        };
        if shared {
            if normal {
                self.machine.reflects(&value, closed);
            }
            if self.built.len() > MAX_CACHED {
                self.built.clear();
            }
            self.built.insert(Arc::as_ptr(&closed.0), (closed.clone(), value.clone()));
        }
        Ok(value)
    }

    fn built_part(&mut self, part: &Expr, normal: bool) -> Result<Value, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || self.build(part, normal))
    }

    /// Compiles an expression that is evaluated once, so that none of its parts is cached.
    fn code_for_once(
        &mut self,
        expr: &Expr,
        scope: &VariableLocations,
    ) -> Result<code::CodeNode, Diagnostic> {
        self.sharing.enabled = false;
        let node = Compiler::new(&self.program, &mut self.sharing).root(expr, scope);
        self.sharing.enabled = true;
        node
    }

    fn evaluate_closed(&mut self, closed: &Expr) -> Result<Value, Diagnostic> {
        let node = self.code_for_once(closed, &VariableLocations::default())?;
        let program = self.program.clone();
        self.run(|m| {
            let frame = m.stack.len();
            m.eval(&program, &node, frame)
        })
        .map_err(|e| e.within(closed.span, STARTED))
    }

    /// Evaluates an expression as far as possible without values for these variables, which may
    /// occur in the result.
    pub fn open(&mut self, expr: &Expr, vars: &[VarId]) -> Result<Expr, Diagnostic> {
        let sorts = vars
            .iter()
            .map(|v| compile::sort_of_var(&self.program.signature, *v, expr))
            .collect::<Result<Vec<_>, _>>()?;
        let node = self.code_for_once(expr, &VariableLocations::of(vars))?;
        let (program, mark) = (self.program.clone(), self.machine.unknowns.mark());
        let value = self.run(|m| {
            let frame = m.stack.len();
            m.stack
                .extend(vars.iter().zip(sorts).map(|(v, sort)| m.unknowns.fresh(sort, Some(*v))));
            m.eval(&program, &node, frame)
        });
        let open =
            value.map(|v| self.to_expr_at(&v, expr.sort)).map_err(|e| e.within(expr.span, STARTED));
        self.machine.unknowns.undo(mark);
        open
    }

    /// Returns the closed normal form as an expression; equal values give equal expressions. A
    /// top-level number gets the narrowest sort that contains it, see [`Engine::to_expr_at`].
    pub fn to_expr(&mut self, value: &Value) -> Expr {
        let sort = self.machine.sort_of(&self.program, value);
        self.to_expr_at(value, sort)
    }

    /// Converts as [`Engine::to_expr`] a value of a known sort: a number gets this sort.
    pub fn to_expr_at(&mut self, value: &Value, sort: SortId) -> Expr {
        self.machine.to_expr(&self.program, value, sort)
    }

    /// Returns the value as text in mCRL2 notation, truncated after about `limit` bytes.
    pub fn text(&self, value: &Value, limit: usize) -> String {
        text::text(&self.program, value, limit)
    }

    /// Compiles a condition to be solved for `unknowns`, given values for `env`.
    pub fn problem(
        &mut self,
        unknowns: &[VarId],
        condition: &Expr,
        env: &[VarId],
    ) -> Result<Problem, Diagnostic> {
        let all: Vec<VarId> = env.iter().chain(unknowns).copied().collect();
        let sorts: Vec<(VarId, SortId)> = unknowns
            .iter()
            .map(|v| compile::sort_of_var(&self.program.signature, *v, condition).map(|s| (*v, s)))
            .collect::<Result<_, _>>()?;
        Ok(Problem {
            condition: self.code(condition, &all)?,
            text: condition.clone(),
            env: env.to_vec(),
            unknowns: sorts,
            binder: "a sum",
        })
    }

    /// Calls `each` once with every solution of a problem, as values of the unknowns in order;
    /// stops if it breaks.
    pub fn solve(
        &mut self,
        problem: &Problem,
        env: &[Value],
        each: &mut Receiver,
    ) -> Result<(), Diagnostic> {
        let mut inside = false;
        let result = self.solutions(problem, env, &mut |engine, values| {
            inside = true;
            let flow = each(engine, values)?;
            inside = false;
            Ok(flow)
        });
        // Errors of the receiver have places of their own.
        result.map_err(|e| if inside { e } else { self.explain(problem, env, e) })
    }

    fn solutions(
        &mut self,
        problem: &Problem,
        env: &[Value],
        each: &mut Receiver,
    ) -> Result<(), Diagnostic> {
        let program = self.program.clone();
        let mark = self.machine.unknowns.mark();
        let condition = self.open_value(problem, env);
        let wanted: Vec<u32> = self.machine.unknowns.created_since(mark).collect();
        let result = condition.and_then(|condition| {
            if condition.is_false() {
                return Ok(());
            }
            if problem.unknowns.is_empty() && condition.is_true() {
                return each(self, &[]).map(|_| ());
            }
            let mut search = SolutionSearch::new(wanted, false, false, problem.binder);
            // The search runs on the machine, the callback on the whole engine: the machine is
            // moved between them.
            let spare =
                self.spare.take().unwrap_or_else(|| Box::new(EvaluationMachine::new(&program)));
            let mut machine = std::mem::replace(&mut self.machine, *spare);
            let before = machine.interrupt();
            let flow = search.run(
                &mut machine,
                &program,
                condition,
                &mut |m: &mut EvaluationMachine, values| {
                    std::mem::swap(m, &mut self.machine);
                    let flow = each(self, values);
                    std::mem::swap(m, &mut self.machine);
                    flow.map_err(Box::new)
                },
            );
            machine.resume(before);
            self.spare = Some(Box::new(std::mem::replace(&mut self.machine, machine)));
            flow.map(|_| ()).map_err(|e| *e)
        });
        self.machine.unknowns.undo(mark);
        result
    }

    /// Evaluates the condition of a problem with new unknowns, which the caller removes again.
    fn open_value(&mut self, problem: &Problem, env: &[Value]) -> Result<Value, Diagnostic> {
        let program = self.program.clone();
        self.run(|m| {
            let frame = m.stack.len();
            m.stack.extend_from_slice(env);
            m.stack.extend(
                problem.unknowns.iter().map(|&(var, sort)| m.unknowns.fresh(sort, Some(var))),
            );
            m.eval(&program, &problem.condition.0.0, frame)
        })
    }

    /// Returns all elements of a finite sort, in the order of its constructors; `None` if it is
    /// infinite or larger than a million.
    pub fn values_of(&mut self, sort: SortId) -> Result<Option<Vec<Value>>, Diagnostic> {
        let program = self.program.clone();
        self.run(|m| enumerate::values_of(m, &program, sort, 1 << 20))
            .map(|v| v.map(|v| v.to_vec()))
    }

    /// Sets the limit on steps of one evaluation; unlimited by default.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.machine.meter.set_limit(steps);
    }

    /// Sets the number of undecided conditions behind which a call with unknowns is still
    /// evaluated; 4 by default. With limited steps, a larger number reduces conditions over
    /// structures of known shape to conditions over their parts.
    pub fn set_patience(&mut self, conditions: u32) {
        self.machine.patience = conditions;
    }

    /// Returns the number of steps so far.
    pub fn steps(&self) -> u64 {
        self.total_steps
    }

    /// Sets the limit on candidates for unknowns of infinite sorts in one search; 100,000 by
    /// default.
    pub fn set_growth_limit(&mut self, candidates: u64) {
        self.machine.listings.growth_limit = candidates;
    }
}
