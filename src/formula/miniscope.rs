//! Miniscoping of state formulas: moves quantifiers inwards during normalisation, to the part that
//! uses their variables.
//!
//! `exists` distributes over `||`, moves past the operands of `&&` that do not use its variables,
//! past `<R>` if `R` does not use them, and into tests, where it becomes a quantifier of data;
//! dually `forall`. A test that it guards moves along: `val(c) && <R>f` is `<R>(val(c) && f)`. So
//! in `forall n: Nat. val(n < 9) => [true*.a(n)]f` values of `n` are needed only if an action of
//! the model provides one, and there is one fixed point for `true*`, not one for each `n`.
//! Variables are separated if labels determine them, or if no test that moves along links them.
//! This is miniscoping as in first-order logic; moving past modalities and `R*` is sound because
//! quantifiers commute with those of their own kind.
//!
//! Cost: linear in the formula, times the variables in scope. Invariant: the value is that of the
//! quantified formula; sorts are not empty.

use super::normal::{NodeId, NormalNode, Normaliser, action_free_vars};
use super::typed::{Action, Regular, StateKind, TypedStateFormula};
use ahash::AHashMap;
use mu_base::ids::VarId;
use mu_base::{Diagnostic, Span};
use mu_data::expr::{Binder, Expr, ExprKind};
use mu_data::sort::basic;
use std::rc::Rc;

/// Free data variables of parts of a formula, by their address.
pub(super) type Uses = AHashMap<*const TypedStateFormula, Rc<[VarId]>>;

/// Quantifiers that are moved inwards.
#[derive(Clone)]
pub(super) struct QuantifierBlock {
    /// `forall` or `exists`.
    all: bool,
    vars: Vec<VarId>,
    /// Tests that move along: conjuncts of a part under `exists`, negated disjuncts under `forall`.
    tests: Vec<Expr>,
    /// Their position in the source.
    span: Span,
}

impl QuantifierBlock {
    pub(super) fn new(all: bool, vars: &[VarId], span: Span) -> Self {
        Self { all, vars: vars.to_vec(), tests: Vec::new(), span }
    }

    fn is_empty(&self) -> bool {
        self.vars.is_empty() && self.tests.is_empty()
    }

    /// Splits off these variables, and the tests on them without another remaining variable.
    fn alone(&mut self, vars: Vec<VarId>) -> QuantifierBlock {
        self.vars.retain(|v| !vars.contains(v));
        let (there, here) = self
            .tests
            .drain(..)
            .partition(|test| of_expr(test).iter().any(|v| self.vars.contains(v)));
        self.tests = there;
        QuantifierBlock { vars, tests: here, ..*self }
    }

    /// Splits off the variables that tests link to `linked`, and those tests.
    fn part(&mut self, mut linked: Vec<VarId>) -> QuantifierBlock {
        let mut tests = Vec::new();
        loop {
            let before = tests.len();
            self.tests.retain(|test| {
                let vars = of_expr(test);
                let links = vars.iter().any(|v| linked.contains(v));
                if links {
                    linked.extend(vars.into_iter().filter(|v| self.vars.contains(v)));
                    tests.push(test.clone());
                }
                !links
            });
            if tests.len() == before {
                break;
            }
        }
        let (here, there) = self.vars.iter().partition(|v| linked.contains(v));
        self.vars = there;
        QuantifierBlock { vars: here, tests, ..*self }
    }
}

fn of_expr(e: &Expr) -> Vec<VarId> {
    let mut vars = Vec::new();
    e.free_vars(&mut vars);
    vars
}

fn of_regular(r: &Regular) -> Vec<VarId> {
    let mut vars = Vec::new();
    let mut open = vec![r];
    while let Some(r) = open.pop() {
        match r {
            Regular::Action(a) => action_free_vars(a, &mut vars),
            Regular::Seq(a, b) | Regular::Alt(a, b) => open.extend([&**a, &**b]),
            Regular::Star(a) | Regular::Plus(a) => open.push(a),
        }
    }
    vars
}

/// True if the labels that a regular formula matches determine a variable.
fn determines(r: &Regular, v: VarId) -> bool {
    fn by(action: &Action, v: VarId) -> bool {
        match action {
            Action::Multi(acts) => {
                acts.iter().flat_map(|a| &a.1).any(|e| matches!(e.kind, ExprKind::Var(w) if w == v))
            }
            Action::And(a, b) => by(a, v) || by(b, v),
            Action::Or(a, b) => by(a, v) && by(b, v),
            Action::Exists(bound, a) => !bound.contains(&v) && by(a, v),
            _ => false,
        }
    }
    matches!(r, Regular::Action(a) if stacker::maybe_grow(64 << 10, 1 << 20, || by(a, v)))
}

/// Returns the parts of a sequence, first to last.
fn elements(r: &Regular) -> Vec<&Regular> {
    let (mut list, mut open) = (Vec::new(), vec![r]);
    while let Some(r) = open.pop() {
        match r {
            Regular::Seq(a, b) => open.extend([&**b, &**a]),
            _ => list.push(r),
        }
    }
    list
}

impl Normaliser<'_> {
    /// Normalises a formula under quantifiers.
    pub(super) fn normalise_quantified(
        &mut self,
        mut scope: QuantifierBlock,
        f: &TypedStateFormula,
        positive: bool,
    ) -> Result<NodeId, Diagnostic> {
        if scope.is_empty() {
            return self.state(f, positive);
        }
        stacker::maybe_grow(128 << 10, 4 << 20, || match &f.kind {
            StateKind::Not(g) => self.normalise_quantified(scope, g, !positive),
            StateKind::Forall(vars, body) | StateKind::Exists(vars, body)
                if matches!(f.kind, StateKind::Forall(..)) == (positive == scope.all) =>
            {
                scope.vars.extend(vars);
                self.normalise_quantified(scope, body, positive)
            }
            StateKind::And(..) | StateKind::Or(..) | StateKind::Implies(..) => {
                let all = matches!(f.kind, StateKind::And(..)) == positive;
                let mut operands = Vec::new();
                Self::chain(f, positive, all, &mut operands);
                if all != scope.all {
                    return self.split(scope, &operands, f.span);
                }
                let parts: Result<Vec<_>, _> = operands
                    .into_iter()
                    .map(|(g, positive)| self.normalise_quantified(scope.clone(), g, positive))
                    .collect();
                Ok(self.junction(all, parts?, f.span))
            }
            StateKind::Must(r, body) | StateKind::May(r, body)
                if matches!(f.kind, StateKind::Must(..)) == (positive == scope.all) =>
            {
                self.past(scope, &elements(r), body, positive, f.span)
            }
            _ => self.split(scope, &[(f, positive)], f.span),
        })
    }

    /// Normalises operands of the connective over which the quantifiers do not distribute.
    fn split(
        &mut self,
        mut scope: QuantifierBlock,
        operands: &[(&TypedStateFormula, bool)],
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let mut parts = Vec::new();
        let mut rest = Vec::new();
        for &(g, positive) in operands {
            if let StateKind::Val(e) = &g.kind {
                scope.tests.push(if positive {
                    e.clone()
                } else {
                    Expr::negate(self.signature, e.clone())
                });
            } else {
                rest.push((g, positive, self.uses(g)));
            }
        }
        while let Some((_, _, first)) = rest.first() {
            // The operands and tests that share variables with the first operand, directly or
            // indirectly.
            let mut linked: Vec<VarId> =
                first.iter().copied().filter(|v| scope.vars.contains(v)).collect();
            let mut here = scope.part(linked.clone());
            let mut group = vec![rest.remove(0)];
            loop {
                linked.extend(&here.vars);
                let Some(i) = rest.iter().position(|r| r.2.iter().any(|v| linked.contains(v)))
                else {
                    break;
                };
                let more: Vec<VarId> =
                    rest[i].2.iter().copied().filter(|v| scope.vars.contains(v)).collect();
                let more = scope.part(more);
                here.vars.extend(more.vars);
                here.tests.extend(more.tests);
                group.push(rest.remove(i));
            }
            parts.push(match group[..] {
                [(g, positive, _)] if self.may_enter(&here, g, positive) => {
                    self.normalise_quantified(here, g, positive)?
                }
                _ => {
                    let nodes: Result<Vec<_>, _> =
                        group.iter().map(|(g, positive, _)| self.state(g, *positive)).collect();
                    self.quantify(here, nodes?, span)
                }
            });
        }
        // Remaining tests.
        while let Some(test) = scope.tests.first() {
            let vars: Vec<VarId> =
                of_expr(test).into_iter().filter(|v| scope.vars.contains(v)).collect();
            let here = if vars.is_empty() {
                QuantifierBlock { vars, tests: vec![scope.tests.remove(0)], ..scope }
            } else {
                scope.part(vars)
            };
            parts.push(self.test(here, span));
        }
        Ok(self.junction(!scope.all, parts, span))
    }

    /// True if quantifiers move further into a formula.
    fn may_enter(&self, scope: &QuantifierBlock, f: &TypedStateFormula, positive: bool) -> bool {
        let own = positive == scope.all;
        match &f.kind {
            StateKind::Forall(..) | StateKind::Must(..) => own,
            StateKind::Exists(..) | StateKind::May(..) => !own,
            StateKind::And(..) | StateKind::Or(..) | StateKind::Implies(..) | StateKind::Not(_) => {
                true
            }
            _ => false,
        }
    }

    /// Moves quantifiers past the parts of a modality of their kind that do not use their
    /// variables.
    fn past(
        &mut self,
        mut scope: QuantifierBlock,
        elements: &[&Regular],
        body: &TypedStateFormula,
        positive: bool,
        span: Span,
    ) -> Result<NodeId, Diagnostic> {
        let all = scope.all;
        let Some((first, rest)) = elements.split_first() else {
            return self.normalise_quantified(scope, body, positive);
        };
        let used: Vec<VarId> =
            of_regular(first).into_iter().filter(|v| scope.vars.contains(v)).collect();
        let here = if used.is_empty() {
            QuantifierBlock { vars: used, tests: Vec::new(), ..scope }
        } else if used.iter().all(|v| determines(first, *v)) {
            scope.alone(used)
        } else {
            scope.part(used)
        };
        let inner = stacker::maybe_grow(128 << 10, 4 << 20, || {
            self.past(scope, rest, body, positive, span)
        })?;
        let node = self.modality(first, all, inner, span);
        Ok(if here.is_empty() { node } else { self.quantify(here, vec![node], span) })
    }

    /// Creates the quantifiers before their tests and some operands.
    fn quantify(
        &mut self,
        scope: QuantifierBlock,
        mut operands: Vec<NodeId>,
        span: Span,
    ) -> NodeId {
        let QuantifierBlock { all, vars, tests, span: place } = scope;
        for test in tests {
            let node = self.value(test, span);
            operands.push(node);
        }
        let inner = self.junction(!all, operands, span);
        if vars.is_empty() || self.as_const(inner).is_some() {
            return inner;
        }
        // Merge `forall x. forall y. f` into one quantifier.
        let (vars, inner) = match &self.nodes[inner.index()] {
            NormalNode::Forall(more, body) if all => ([&vars[..], more].concat(), *body),
            NormalNode::Exists(more, body) if !all => ([&vars[..], more].concat(), *body),
            _ => (vars, inner),
        };
        self.add(
            if all { NormalNode::Forall(vars, inner) } else { NormalNode::Exists(vars, inner) },
            place,
        )
    }

    /// Creates quantifiers before tests only.
    fn test(&mut self, scope: QuantifierBlock, span: Span) -> NodeId {
        let QuantifierBlock { all, vars, tests, span: place } = scope;
        if vars.is_empty() {
            let nodes = tests.into_iter().map(|test| self.value(test, span)).collect();
            return self.junction(!all, nodes, span);
        }
        let mut joined: Option<Expr> = None;
        for test in tests {
            let test = if all { Expr::negate(self.signature, test) } else { test };
            joined = Some(match joined {
                Some(before) => Expr::and(self.signature, before, test),
                None => test,
            });
        }
        let Some(joined) = joined else { return self.constant(!all, span) };
        let body = if all { Expr::negate(self.signature, joined) } else { joined };
        let binder = if all { Binder::Forall } else { Binder::Exists };
        self.value(Expr::new(ExprKind::Bind(binder, vars, body), basic::BOOL, place), span)
    }

    /// Returns the free data variables.
    fn uses(&mut self, f: &TypedStateFormula) -> Rc<[VarId]> {
        if let Some(known) = self.uses.get(&std::ptr::from_ref(f)) {
            return known.clone();
        }
        let vars: Rc<[VarId]> = stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut vars = Vec::new();
            let mut add = |more: &[VarId], bound: &[VarId]| {
                for v in more {
                    if !bound.contains(v) && !vars.contains(v) {
                        vars.push(*v);
                    }
                }
            };
            match &f.kind {
                StateKind::True | StateKind::False => {}
                StateKind::Val(e) => add(&of_expr(e), &[]),
                StateKind::Not(g) => add(&self.uses(g), &[]),
                StateKind::And(g, h) | StateKind::Or(g, h) | StateKind::Implies(g, h) => {
                    add(&self.uses(g), &[]);
                    add(&self.uses(h), &[]);
                }
                StateKind::Forall(bound, g) | StateKind::Exists(bound, g) => {
                    add(&self.uses(g), bound)
                }
                StateKind::Must(r, g) | StateKind::May(r, g) => {
                    add(&of_regular(r), &[]);
                    add(&self.uses(g), &[]);
                }
                StateKind::Fix { params, body, .. } => {
                    params.iter().for_each(|p| add(&of_expr(&p.1), &[]));
                    let bound: Vec<VarId> = params.iter().map(|p| p.0).collect();
                    add(&self.uses(body), &bound);
                }
                StateKind::Var(_, args) => args.iter().for_each(|e| add(&of_expr(e), &[])),
            }
            vars.into()
        });
        self.uses.insert(std::ptr::from_ref(f), vars.clone());
        vars
    }
}
