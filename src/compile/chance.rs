//! Choices by chance in a compiled process: which values have a probability, and what it is.
//!
//! A weight says the probability of all values; those that have one are found by enumeration. So that enumeration finds bounds, a weight is turned into the
//! condition that it is positive: products ask it of both factors, conditionals of the branch that is taken, functions with one equation of their right-hand
//! side. Cost: linear in the weight with what it calls, up to [`MOST`] calls. Invariant: the probabilities of one choice are positive and add up to 1 exactly.

use super::groups::Layout;
use ahash::AHashMap;
use mu_base::ids::{OpId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::engine::{Engine, Value};
use mu_data::expr::{DataSpec, Equation, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use mu_process::linear::{Chance, LinearProcess};
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::ops::ControlFlow;

/// Calls that are followed in one weight.
const MOST: usize = 64;

/// A choice by chance.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub vars: Vec<VarId>,
    /// Holds for all values that have a probability.
    pub possible: Expr,
    pub weight: Expr,
}

impl Chosen {
    pub(super) fn new(chance: &Chance, by: &Substitution, data: &mut DataSpec) -> Self {
        let weight = chance.weight.substitute(by);
        let mut single: AHashMap<OpId, Option<&Equation>> = AHashMap::new();
        for equation in &data.equations {
            let Some(op) = equation.lhs.head() else { continue };
            single.entry(op).and_modify(|e| *e = None).or_insert(Some(equation));
        }
        let mut positive = Positive { signature: &mut data.signature, single, calls: 0 };
        let possible = positive.condition(&weight);
        Self { vars: chance.vars.clone(), possible, weight }
    }
}

/// Makes the operations known that conditions on weights are made of, before the data are compiled.
pub(super) fn declare(process: &mut LinearProcess) {
    let chances: Vec<Chance> = process.chance.iter().chain(process.summands.iter().filter_map(|s| s.chance.as_ref())).cloned().collect();
    for chance in chances {
        Chosen::new(&chance, &Substitution::new(), &mut process.data);
    }
}

struct Positive<'a> {
    signature: &'a mut Signature,
    /// The equation of each operation that has just one.
    single: AHashMap<OpId, Option<&'a Equation>>,
    calls: usize,
}

impl Positive<'_> {
    fn both(&mut self, builtin: Builtin, a: Expr, b: Expr) -> Expr {
        let (absorbs, neutral) = if builtin == Builtin::And { (false, true) } else { (true, false) };
        match (a.as_bool(self.signature), b.as_bool(self.signature)) {
            (Some(x), _) if x == absorbs => a,
            (Some(x), _) if x == neutral => b,
            (_, Some(x)) if x == absorbs => b,
            (_, Some(x)) if x == neutral => a,
            _ => Expr::builtin(self.signature, builtin, vec![a, b], basic::BOOL),
        }
    }

    /// When an expression that is not negative is positive.
    fn condition(&mut self, e: &Expr) -> Expr {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            if let ExprKind::Number(n) = &e.kind {
                return Expr::boolean(self.signature, n.is_positive());
            }
            match e.as_builtin(self.signature) {
                Some((Builtin::If, [c, a, b])) => {
                    let (c, a, b) = (c.clone(), a.clone(), b.clone());
                    let (a, b) = (self.condition(&a), self.condition(&b));
                    let other = Expr::negate(self.signature, c.clone());
                    let (a, b) = (self.both(Builtin::And, c, a), self.both(Builtin::And, other, b));
                    self.both(Builtin::Or, a, b)
                }
                Some((Builtin::Multiply, [a, b])) => {
                    let (a, b) = (a.clone(), b.clone());
                    let (a, b) = (self.condition(&a), self.condition(&b));
                    self.both(Builtin::And, a, b)
                }
                Some((Builtin::Divide, [a, _])) => {
                    let a = a.clone();
                    self.condition(&a)
                }
                Some((
                    Builtin::PosToNat
                    | Builtin::PosToInt
                    | Builtin::PosToReal
                    | Builtin::NatToInt
                    | Builtin::NatToReal
                    | Builtin::IntToReal,
                    [a],
                )) => {
                    let a = a.clone();
                    self.condition(&a)
                }
                _ => match self.called(e) {
                    Some(body) => self.condition(&body),
                    None => {
                        let mut zero = Expr::number(0, if e.sort == basic::REAL { basic::INT } else { e.sort });
                        if e.sort == basic::REAL {
                            zero = Expr::builtin(self.signature, Builtin::IntToReal, vec![zero], basic::REAL);
                        }
                        Expr::builtin(self.signature, Builtin::Greater, vec![e.clone(), zero], basic::BOOL)
                    }
                },
            }
        })
    }

    /// The right-hand side of a call of a function with one equation, without condition or patterns.
    fn called(&mut self, e: &Expr) -> Option<Expr> {
        let equation = *self.single.get(&e.head()?)?.as_ref()?;
        let args: &[Expr] = match &e.kind {
            ExprKind::Apply(_, args) => args,
            _ => &[],
        };
        let params: &[Expr] = match &equation.lhs.kind {
            ExprKind::Apply(_, params) => params,
            _ => &[],
        };
        if equation.condition.is_some() || params.len() != args.len() || self.calls >= MOST {
            return None;
        }
        let mut by = Substitution::new();
        for (param, arg) in params.iter().zip(args) {
            let ExprKind::Var(v) = param.kind else { return None };
            if by.insert(v, arg.clone()).is_some() {
                return None;
            }
        }
        self.calls += 1;
        Some(equation.rhs.substitute(&by))
    }
}

/// The error for a group of a probabilistic process whose probabilities nobody asked for.
pub(super) fn unexpected(span: Span) -> Diagnostic {
    Diagnostic::at(Stage::Unsupported, span, "chance decides where this step leads, and this way of searching knows no probabilities")
        .note("`explore` and `check` take probabilistic processes with the explicit engine, `compare` and `reduce` with `probabilistic`")
}

/// A weight as a number.
pub(super) fn weight(engine: &Engine, value: &Value, span: Span) -> Result<BigRational, Diagnostic> {
    let weight = value.to_rational().filter(|w| !w.is_negative());
    weight.ok_or_else(|| {
        let text = engine.text(value, 60);
        Diagnostic::at(Stage::Data, span, format!("a probability is `{text}` here, where a number that is not negative is expected"))
    })
}

/// Refuses probabilities that do not add up to 1.
pub(super) fn expect_whole(weights: &[BigRational], span: Span) -> Result<(), Diagnostic> {
    let sum: BigRational = weights.iter().sum();
    if sum.is_one() {
        return Ok(());
    }
    let message = format!("the probabilities of a `dist` add up to {sum} here, where 1 is expected");
    Err(Diagnostic::at(Stage::Data, span, message).note("they are summed over all values of its variables"))
}

/// Where the process starts.
pub(super) fn starts(process: &LinearProcess, engine: &mut Engine, layout: &mut Layout) -> Result<(), Diagnostic> {
    let vector = |engine: &mut Engine, values: &mut dyn FnMut(&mut Engine, usize) -> Result<Value, Diagnostic>| {
        let mut vector = Vec::with_capacity(process.params.len());
        for (i, sort) in layout.sort_of.iter().enumerate() {
            let value = values(engine, i)?;
            vector.push(layout.tables[layout.table_of[i]].intern(&engine.to_expr_at(&value, *sort)));
        }
        Ok::<Vec<u32>, Diagnostic>(vector)
    };
    let Some(chance) = &process.chance else {
        let initial = vector(engine, &mut |engine, i| engine.from_expr(&process.params[i].init))?;
        layout.starts.push((BigRational::one(), initial.clone()));
        layout.initial = initial;
        return Ok(());
    };
    let mut data = process.data.clone();
    data.signature = engine.program().signature().clone();
    let chosen = Chosen::new(chance, &Substitution::new(), &mut data);
    let problem = engine.problem(&chosen.vars, &chosen.possible, &[])?.bound_by("a `dist`");
    let weigh = engine.code(&chosen.weight, &chosen.vars)?;
    let codes = process.params.iter().map(|p| engine.code(&p.init, &chosen.vars)).collect::<Result<Vec<_>, Diagnostic>>()?;
    let span = chance.weight.span;
    let mut starts: Vec<(BigRational, Vec<u32>)> = Vec::new();
    engine.solve(&problem, &[], &mut |engine: &mut Engine, values: &[Value]| {
        let value = engine.eval(&weigh, values)?;
        let weight = weight(engine, &value, span)?;
        if !weight.is_zero() {
            starts.push((weight, vector(engine, &mut |engine, i| engine.eval(&codes[i], values))?));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let weights: Vec<BigRational> = starts.iter().map(|s| s.0.clone()).collect();
    expect_whole(&weights, span)?;
    layout.initial = starts[0].1.clone();
    layout.starts = starts;
    Ok(())
}
