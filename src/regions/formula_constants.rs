//! Uses of numbers in a formula: predicates on numbers of labels, and comparisons of constants.
//!
//! Input: a formula in the form of [`crate::rewrite`], and the terms of its variables. Output:
//! [`LabelPredicate`]s of numbers in labels, and tests ([`Distinction`]) of constants. Any other
//! use of a number of a label (a comparison of two of them, a mapping) is rejected with its
//! position, because abstract labels determine a number only up to the predicates. Numbers in
//! parameters of fixed points come from constants alone, since no quantifier over labels' numbers
//! extends beyond its action formula. Mappings may compare them, so the orders of all these
//! constants are tested. Cost: linear.

use crate::cuts::{CutTerm, Distinction, LabelPredicate};
use crate::flow::{Flow, FlowSort};
use ahash::AHashMap;
use mu_base::ids::{ActId, OpId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_formula::typed::{Action, Regular, StateKind, TypedStateFormula};
use std::collections::BTreeSet;

/// Collector of predicates and tests.
pub struct ConstantCollector<'f, 'a> {
    flow: &'f mut Flow<'a>,
    signature: &'f Signature,
    /// The terms of variables with fixed values, and of operations.
    vars: AHashMap<VarId, CutTerm>,
    ops: AHashMap<OpId, CutTerm>,
    bases: usize,
    /// Numbers of labels in scope. For each multi-action, by its names: the action and the argument
    /// that give the number.
    labels: Vec<(VarId, AHashMap<Vec<ActId>, (usize, usize)>)>,
    /// Predicates on numbers in labels.
    pub predicates: Vec<LabelPredicate>,
    tests: Vec<Distinction>,
    /// Bases that parameters of fixed points contain or mappings compare, with the largest offset
    /// that these add.
    carried: BTreeSet<usize>,
    offset: i64,
}

/// A side of a comparison.
enum ComparisonSide {
    Term(CutTerm),
    Label(i64),
}

fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, f)
}

fn reject<T>(text: &str, span: Span) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, text).or_span(span))
}

impl<'f, 'a> ConstantCollector<'f, 'a> {
    /// Creates a collector. `vars`, `ops`: the terms of variables and operations; `bases`: the
    /// number of bases, including zero.
    pub fn new(
        flow: &'f mut Flow<'a>,
        signature: &'f Signature,
        vars: AHashMap<VarId, CutTerm>,
        ops: AHashMap<OpId, CutTerm>,
        bases: usize,
    ) -> Self {
        Self {
            flow,
            signature,
            vars,
            ops,
            bases,
            labels: Vec::new(),
            predicates: Vec::new(),
            tests: Vec::new(),
            carried: BTreeSet::new(),
            offset: 0,
        }
    }

    /// Collects the predicates and tests of a formula.
    pub fn state(&mut self, f: &TypedStateFormula) -> Result<(), Diagnostic> {
        deep(|| match &f.kind {
            StateKind::True | StateKind::False => Ok(()),
            StateKind::Val(e) => self.test(e),
            StateKind::Not(g) | StateKind::Forall(_, g) | StateKind::Exists(_, g) => self.state(g),
            StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
                self.state(a)?;
                self.state(b)
            }
            StateKind::Must(r, g) | StateKind::May(r, g) => {
                self.regular(r, f.span)?;
                self.state(g)
            }
            StateKind::Fix { params, body, .. } => {
                params.iter().try_for_each(|p| self.collect_argument(&p.1, f.span))?;
                self.state(body)
            }
            StateKind::Var(_, args) => {
                args.iter().try_for_each(|e| self.collect_argument(e, f.span))
            }
        })
    }

    fn regular(&mut self, r: &Regular, span: Span) -> Result<(), Diagnostic> {
        deep(|| match r {
            Regular::Action(a) => self.action(a, span),
            Regular::Seq(a, b) | Regular::Alt(a, b) => {
                self.regular(a, span)?;
                self.regular(b, span)
            }
            Regular::Star(a) | Regular::Plus(a) => self.regular(a, span),
        })
    }

    fn holds_counters(&mut self, v: VarId) -> bool {
        let ty = self.flow.type_of_var(v);
        self.flow.has_counter(&ty)
    }

    fn action(&mut self, a: &Action, span: Span) -> Result<(), Diagnostic> {
        deep(|| match a {
            Action::True | Action::False => Ok(()),
            Action::Val(e) => self.test(e).map_err(|d| d.or_span(span)),
            Action::Not(a) => self.action(a, span),
            Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
                self.action(a, span)?;
                self.action(b, span)
            }
            Action::Multi(acts) => self.multi(acts, span),
            Action::Forall(vars, a) => {
                if vars.iter().any(|v| self.holds_counters(*v)) {
                    return reject(
                        "`forall` in an action formula over a number that flows together with a symbolic parameter",
                        span,
                    );
                }
                self.action(a, span)
            }
            Action::Exists(vars, a) => {
                let before = self.labels.len();
                for v in vars {
                    if self.holds_counters(*v) {
                        if uses(a, *v) && !binds(a, *v) {
                            let name = &self.signature.var(*v).name;
                            return reject(
                                &format!(
                                    "no action determines the value of `{name}` everywhere it is used"
                                ),
                                span,
                            );
                        }
                        self.labels.push((*v, AHashMap::new()));
                    }
                }
                self.action(a, span)?;
                self.labels.truncate(before);
                Ok(())
            }
        })
    }

    fn multi(&mut self, acts: &[(ActId, Vec<Expr>)], span: Span) -> Result<(), Diagnostic> {
        let names: Vec<ActId> = acts.iter().map(|a| a.0).collect();
        // Equal actions of a label may be matched in either order.
        let ambiguous = names.windows(2).any(|w| w[0] == w[1]);
        for (i, (action, args)) in acts.iter().enumerate() {
            for (j, e) in args.iter().enumerate() {
                let Some(ty) = self.flow.argument(*action, j).cloned() else { continue };
                if !self.flow.has_counter(&ty) {
                    continue;
                }
                if let ExprKind::Var(v) = e.kind
                    && let Some(at) = self.labels.iter().position(|l| l.0 == v)
                {
                    let place = *self.labels[at].1.entry(names.clone()).or_insert((i, j));
                    if place != (i, j) || ambiguous {
                        return reject(
                            "two numbers of a label are compared, which regions do not support",
                            span,
                        );
                    }
                    continue;
                }
                match self.term(e) {
                    Some(term) if matches!(ty, FlowSort::Number(_)) => {
                        self.predicates.push(LabelPredicate::Equal(term))
                    }
                    _ => {
                        return reject(
                            "an argument of an action is neither a constant plus a literal nor a quantified variable",
                            span,
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Parses a constant plus a literal.
    fn term(&self, e: &Expr) -> Option<CutTerm> {
        if let Some(n) = self.flow.literal(e) {
            return Some(CutTerm::literal(n));
        }
        match &e.kind {
            ExprKind::Var(v) => self.vars.get(v).copied(),
            ExprKind::Op(op) => self.ops.get(op).copied(),
            _ => match e.as_builtin(self.signature)? {
                (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [a]) => self.term(a),
                (Builtin::Succ, [a]) => self.term(a).map(|t| t.plus(1)),
                (Builtin::Add, [a, b]) => match (self.flow.literal(a), self.flow.literal(b)) {
                    (_, Some(n)) => self.term(a).map(|t| t.plus(n)),
                    (Some(n), _) => self.term(b).map(|t| t.plus(n)),
                    _ => None,
                },
                _ => None,
            },
        }
    }

    /// Parses a side of a comparison: a term, or a number of a label plus a literal; `None` for
    /// other expressions.
    fn side(&self, e: &Expr) -> Option<ComparisonSide> {
        if let Some(term) = self.term(e) {
            return Some(ComparisonSide::Term(term));
        }
        match &e.kind {
            ExprKind::Var(v) => {
                self.labels.iter().any(|l| l.0 == *v).then_some(ComparisonSide::Label(0))
            }
            _ => match e.as_builtin(self.signature)? {
                (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt, [a]) => self.side(a),
                (Builtin::Add, [a, b]) => {
                    match (self.flow.literal(a), self.flow.literal(b), self.side(a), self.side(b)) {
                        (_, Some(n), Some(ComparisonSide::Label(m)), _)
                        | (Some(n), _, _, Some(ComparisonSide::Label(m))) => {
                            Some(ComparisonSide::Label(m + n))
                        }
                        _ => None,
                    }
                }
                _ => None,
            },
        }
    }

    /// Returns whether the expression contains numbers of labels, and whether it contains numbers
    /// that flow together with constants.
    fn depends(&mut self, e: &Expr) -> (bool, bool) {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        let of_label = free.iter().any(|v| self.labels.iter().any(|l| l.0 == *v));
        let any = of_label
            || self.flow.uses_symbolic(e)
            || free.into_iter().any(|v| self.holds_counters(v));
        (of_label, any)
    }

    /// Collects a test. Comparisons are handled one by one; any other expression may compare all
    /// its arguments.
    fn test(&mut self, e: &Expr) -> Result<(), Diagnostic> {
        deep(|| {
            let (of_label, any) = self.depends(e);
            if !any {
                return Ok(());
            }
            match e.as_builtin(self.signature) {
                Some((Builtin::Not | Builtin::And | Builtin::Or | Builtin::Implies, parts)) => {
                    return parts.iter().try_for_each(|p| self.test(p));
                }
                Some((Builtin::Equal | Builtin::NotEqual, [a, b])) => {
                    if let (Some(x), Some(y)) = (self.side(a), self.side(b)) {
                        return self.comparison(x, y, true, e.span);
                    }
                }
                Some((Builtin::Less | Builtin::GreaterEqual, [a, b])) => {
                    if let (Some(x), Some(y)) = (self.side(a), self.side(b)) {
                        return self.comparison(x, y, false, e.span);
                    }
                }
                Some((Builtin::LessEqual | Builtin::Greater, [a, b])) => {
                    if let (Some(x), Some(y)) = (self.side(b), self.side(a)) {
                        return self.comparison(x, y, false, e.span);
                    }
                }
                _ => {}
            }
            if of_label {
                return reject(
                    "a number of a label is used other than in a comparison with a constant, which regions do not support",
                    e.span,
                );
            }
            self.hand(e);
            Ok(())
        })
    }

    /// Collects `x == y`, or `x < y` (which is `!(y <= x)`).
    fn comparison(
        &mut self,
        x: ComparisonSide,
        y: ComparisonSide,
        equal: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let lower = |term: CutTerm, n: i64| {
            let offset = term.offset - n;
            if offset < 0 {
                reject("a number of a label plus a literal is compared with a constant", span)
            } else {
                Ok(CutTerm { offset, ..term })
            }
        };
        match (x, y) {
            (ComparisonSide::Term(a), ComparisonSide::Term(b)) => self.tests.push(if equal {
                Distinction::order(a, b)
            } else {
                Distinction::less(a, b)
            }),
            (ComparisonSide::Label(n), ComparisonSide::Term(t)) if equal => {
                self.predicates.push(LabelPredicate::Equal(lower(t, n)?))
            }
            (ComparisonSide::Term(t), ComparisonSide::Label(n)) if equal => {
                self.predicates.push(LabelPredicate::Equal(lower(t, n)?))
            }
            // m + n < t
            (ComparisonSide::Label(n), ComparisonSide::Term(t)) => {
                self.predicates.push(LabelPredicate::Less(lower(t, n)?))
            }
            // t < m + n, that is, not m + n < t + 1
            (ComparisonSide::Term(t), ComparisonSide::Label(n)) => {
                self.predicates.push(LabelPredicate::Less(lower(t.plus(1), n)?))
            }
            (ComparisonSide::Label(_), ComparisonSide::Label(_)) => {
                return reject(
                    "two numbers of a label are compared, which regions do not support",
                    span,
                );
            }
        }
        Ok(())
    }

    /// Collects an argument of a fixed point, which comes from constants and must not grow.
    fn collect_argument(&mut self, e: &Expr, span: Span) -> Result<(), Diagnostic> {
        let (of_label, any) = self.depends(e);
        if !any {
            return Ok(());
        }
        if of_label {
            return reject(
                "a parameter of a fixed point stores a number of a label, which regions do not support",
                span,
            );
        }
        if self.flow.growth(e) > 0 {
            return reject(
                "the formula counts: a parameter of a fixed point grows together with a symbolic parameter",
                span,
            );
        }
        self.hand(e);
        Ok(())
    }

    /// Records the constants of an expression, which may be compared with each other.
    fn hand(&mut self, e: &Expr) {
        self.offset = self.offset.max(self.flow.growth(e));
        let mut free = Vec::new();
        e.free_vars(&mut free);
        self.carried.extend(free.iter().filter_map(|v| self.vars.get(v)).map(|t| t.base));
        let mut hidden = false;
        e.each_op(&mut |op| match self.ops.get(&op) {
            Some(term) => {
                self.carried.insert(term.base);
            }
            None => hidden |= self.flow.is_symbolic(op),
        });
        if hidden {
            // For equations that use symbolic parameters, all bases are an over-approximation.
            self.carried.extend(1..self.bases);
        }
    }

    /// Returns all tests of constants.
    pub fn tests(&mut self) -> Vec<Distinction> {
        let literals = self.flow.literals();
        let mut tests = std::mem::take(&mut self.tests);
        for &a in self.carried.range(1..) {
            for offset in 0..=self.offset {
                for &b in self.carried.range(1..a) {
                    tests.push(Distinction::order(CutTerm::of(a), CutTerm::of(b).plus(offset)));
                    tests.push(Distinction::order(CutTerm::of(b), CutTerm::of(a).plus(offset)));
                }
                for literal in &literals {
                    tests.push(Distinction::order(
                        CutTerm::of(a),
                        CutTerm::literal(literal + offset),
                    ));
                    tests.push(Distinction::order(
                        CutTerm::of(a).plus(offset),
                        CutTerm::literal(*literal),
                    ));
                }
            }
        }
        tests
    }
}

fn uses(a: &Action, v: VarId) -> bool {
    let mut free = Vec::new();
    mu_formula::normal::action_free_vars(a, &mut free);
    free.contains(&v)
}

/// True if each multi-action that matches determines the value of a variable.
pub fn binds(a: &Action, v: VarId) -> bool {
    deep(|| match a {
        Action::Multi(acts) => {
            acts.iter().flat_map(|a| &a.1).any(|e| matches!(e.kind, ExprKind::Var(w) if w == v))
        }
        Action::And(a, b) => binds(a, v) || binds(b, v),
        Action::Or(a, b) => binds(a, v) && binds(b, v),
        Action::Exists(bound, a) => !bound.contains(&v) && binds(a, v),
        Action::False => true,
        _ => false,
    })
}
