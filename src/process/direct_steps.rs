//! Direct semantics of a linear process: the steps of a concrete state, summand by summand, with
//! the naive rewriter.
//!
//! Input: a linear process, values of the constants without equations; a state, values for summed
//! variables. Output: steps of the process. Each conjunct of a condition is tested as soon as its
//! variables have values; `x == e` determines the value of `x`. Evaluations that the rewriter does
//! not decide are counted and skipped. This shares no code with the engine, the compiler, or
//! abstractions. Cost: conditions times values of sums, up to `MAX_TESTS` for each summand.

use crate::labels::MultiAction;
use crate::linear::LinearProcess;
use ahash::AHashSet;
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::expr::{DataSpec, Equation, Expr, ExprKind, Substitution};
use mu_data::naive::Naive;
use mu_data::signature::{Builtin, OpKind, Signature};

/// Limit on the rewrite steps for one state; beyond it an evaluation is undecided.
const STEP_LIMIT: u64 = 200_000;
/// Limit on the conditions tested for one summand and state; beyond it further values are skipped.
const MAX_TESTS: usize = 400;

/// A step of a concrete state.
pub struct ConcreteStep {
    /// The summand.
    pub summand: usize,
    /// The multi-action, with normal forms.
    pub label: MultiAction,
    /// The next state.
    pub target: Vec<Expr>,
}

/// Callback that returns values for a summed variable of a sort.
pub type Source<'s> = dyn FnMut(SortId, &mut Naive, &[Expr]) -> Vec<Expr> + 's;

/// Evaluator of the direct semantics.
pub struct DirectSteps<'a> {
    process: &'a LinearProcess,
    /// The rewriter, with the values of the constants.
    pub naive: Naive,
    /// For each summand: the conjuncts of the condition, with their free summed variables.
    conditions: Vec<Vec<(Expr, Vec<VarId>)>>,
    /// Constants without equations, such as the values of parameters that are not used yet.
    opaque: AHashSet<OpId>,
    /// Number of evaluations without a result.
    pub undecided: u64,
}

/// Extends the data of a process by the values of constants.
pub fn with_constants(
    data: &DataSpec,
    signature: &Signature,
    constants: &[(OpId, i64)],
) -> DataSpec {
    let mut data = DataSpec { signature: signature.clone(), equations: data.equations.clone() };
    for (op, n) in constants {
        let (lhs, sort) = (Expr::op(signature, *op), signature.op(*op).sort);
        let rhs = Expr::number(*n, sort);
        data.equations.push(Equation {
            vars: Vec::new(),
            condition: None,
            lhs,
            rhs,
            span: Span::default(),
        });
    }
    data
}

impl<'a> DirectSteps<'a> {
    /// Creates the evaluator of a process over these data.
    pub fn new(process: &'a LinearProcess, data: DataSpec) -> Self {
        let conditions = process.summands.iter().map(|s| {
            let parts = s.guard.conjuncts(&data.signature);
            let free = |e: &Expr| {
                let mut free = Vec::new();
                e.free_vars(&mut free);
                free.retain(|v| s.sum_vars.contains(v));
                free
            };
            parts.into_iter().map(|e| (e.clone(), free(&e))).collect()
        });
        let conditions = conditions.collect();
        let signature = &data.signature;
        let constant = |o: &mu_data::signature::Op| {
            o.kind == OpKind::Mapping && signature.domain_range(o.sort).0.is_empty()
        };
        let mut opaque: AHashSet<OpId> =
            signature.ops().filter(|(_, o)| constant(o)).map(|(op, _)| op).collect();
        data.equations.iter().filter_map(|e| e.lhs.head()).for_each(|op| {
            opaque.remove(&op);
        });
        Self { process, naive: Naive::of(data, STEP_LIMIT), conditions, opaque, undecided: 0 }
    }

    /// Returns the initial state; `None` if it is not decided.
    pub fn initial(&mut self) -> Option<Vec<Expr>> {
        self.naive.allow(STEP_LIMIT);
        let process = self.process;
        process.params.iter().map(|p| self.value(&p.init, &Substitution::new())).collect()
    }

    /// Returns the steps of a state.
    pub fn steps(&mut self, state: &[Expr], source: &mut Source) -> Vec<ConcreteStep> {
        let process = self.process;
        let by: Substitution =
            process.params.iter().zip(state).map(|(p, e)| (p.var, e.clone())).collect();
        let mut out = Vec::new();
        for summand in 0..process.summands.len() {
            self.naive.allow(STEP_LIMIT);
            let closed = |this: &mut Self, i: usize| this.holds(summand, i, &by);
            let first: Vec<usize> = (0..self.conditions[summand].len())
                .filter(|i| self.conditions[summand][*i].1.is_empty())
                .collect();
            if first.into_iter().any(|i| closed(self, i) != Some(true)) {
                continue;
            }
            let mut tests = MAX_TESTS;
            self.assign(summand, 0, &mut by.clone(), state, source, &mut tests, &mut out);
        }
        out
    }

    /// Assigns values to the summed variables from `at` on.
    #[allow(clippy::too_many_arguments)]
    fn assign(
        &mut self,
        summand: usize,
        at: usize,
        by: &mut Substitution,
        state: &[Expr],
        source: &mut Source,
        tests: &mut usize,
        out: &mut Vec<ConcreteStep>,
    ) {
        let process = self.process;
        let vars = &process.summands[summand].sum_vars;
        let Some(var) = vars.get(at).copied() else {
            match self.step(summand, by, state) {
                Some(step) => out.push(step),
                None => self.undecided += 1,
            }
            return;
        };
        let ready: Vec<usize> = (0..self.conditions[summand].len())
            .filter(|i| {
                let free = &self.conditions[summand][*i].1;
                free.contains(&var) && free.iter().all(|v| vars[..=at].contains(v))
            })
            .collect();
        let sort = self.naive.signature().var(var).sort;
        let mut values = self.equal_to(summand, &ready, var, by);
        values.extend(source(sort, &mut self.naive, state));
        for value in values {
            if *tests == 0 {
                return;
            }
            *tests -= 1;
            by.insert(var, value);
            if ready.iter().all(|i| self.holds(summand, *i, by) == Some(true)) {
                self.assign(summand, at + 1, by, state, source, tests, out);
            }
        }
        by.remove(&var);
    }

    /// Returns the values of a variable that a condition `x == e` determines.
    fn equal_to(
        &mut self,
        summand: usize,
        ready: &[usize],
        var: VarId,
        by: &Substitution,
    ) -> Vec<Expr> {
        let mut out = Vec::new();
        for i in ready {
            let condition = self.conditions[summand][*i].0.clone();
            let Some((Builtin::Equal, [a, b])) = condition.as_builtin(self.naive.signature())
            else {
                continue;
            };
            for (x, e) in [(a, b), (b, a)] {
                let given = e.substitute(by);
                if x.kind == ExprKind::Var(var) && given.is_closed() {
                    out.extend(self.value(&given, &Substitution::new()));
                }
            }
        }
        out
    }

    fn holds(&mut self, summand: usize, condition: usize, by: &Substitution) -> Option<bool> {
        let e = self.conditions[summand][condition].0.substitute(by);
        let found = self.naive.normal(&e).and_then(|e| e.as_bool(self.naive.signature()));
        self.undecided += u64::from(found.is_none());
        found
    }

    fn value(&mut self, e: &Expr, by: &Substitution) -> Option<Expr> {
        let normal = self.naive.normal(&e.substitute(by))?;
        is_data(self.naive.signature(), &self.opaque, &normal).then_some(normal)
    }

    fn step(&mut self, summand: usize, by: &Substitution, state: &[Expr]) -> Option<ConcreteStep> {
        let own = &self.process.summands[summand];
        let mut label = MultiAction::new();
        for act in &own.actions {
            label.push((
                act.action,
                act.args.iter().map(|e| self.value(e, by)).collect::<Option<_>>()?,
            ));
        }
        let mut target = state.to_vec();
        for (at, e) in &own.updates {
            target[*at] = self.value(e, by)?;
        }
        Some(ConcreteStep { summand, label, target })
    }
}

/// True if a normal form consists of constructors, numbers and functions.
fn is_data(signature: &Signature, opaque: &AHashSet<OpId>, e: &Expr) -> bool {
    use Builtin::*;
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let constructs = |op: OpId, applied: bool| match &signature.op(op).kind {
            OpKind::Constructor(_) => true,
            OpKind::Mapping => {
                !applied
                    && (opaque.contains(&op)
                        || !signature.domain_range(signature.op(op).sort).0.is_empty())
            }
            OpKind::Builtin(b) => {
                matches!(
                    b,
                    True | False
                        | EmptyList
                        | Cons
                        | EmptySet
                        | SetInsert
                        | EmptyBag
                        | BagInsert
                        | Update
                ) || !applied
            }
            OpKind::Projection(_) | OpKind::Recogniser(_) => !applied,
        };
        match &e.kind {
            ExprKind::Number(_) => true,
            ExprKind::Op(op) => constructs(*op, false),
            ExprKind::Apply(head, args) => {
                matches!(head.kind, ExprKind::Op(op) if constructs(op, true))
                    && args.iter().all(|a| is_data(signature, opaque, a))
            }
            ExprKind::Bind(..) => e.is_closed(),
            ExprKind::Var(_) | ExprKind::Where(..) => false,
        }
    })
}

/// Prints a step's label.
pub fn label_text(process: &LinearProcess, signature: &Signature, label: &MultiAction) -> String {
    let one = |(action, args): &(mu_base::ids::ActId, Vec<Expr>)| {
        let name = &process.actions[action.index()].name;
        let args: Vec<String> =
            args.iter().map(|e| mu_data::print::expression(signature, e)).collect();
        if args.is_empty() { name.clone() } else { format!("{name}({})", args.join(", ")) }
    };
    if label.is_empty() {
        "tau".into()
    } else {
        label.iter().map(one).collect::<Vec<_>>().join("|")
    }
}

/// Prints a concrete state.
pub fn state_text(process: &LinearProcess, signature: &Signature, state: &[Expr]) -> String {
    let names = crate::print::parameter_names(process);
    let all = names
        .iter()
        .zip(state)
        .map(|(name, e)| format!("{name} = {}", mu_data::print::expression(signature, e)));
    all.collect::<Vec<_>>().join(", ")
}
