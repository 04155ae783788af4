//! Top-down pass: an annotated tree at an expected type becomes a typed expression with explicit
//! coercions.

use super::builtins::{Scheme, SortPattern};
use super::infer::{CandidateChoice, Inference, NodeKind, SubtermId, TypeCandidate};
use super::types::{Ty, TyKind};
use super::{Checker, error};
use crate::expr::{Binder, Expr, ExprKind};
use crate::signature::Builtin;
use crate::sort::SortKind;
use mu_base::ids::{OpId, SortId};
use mu_base::{Diagnostic, Span};

impl Checker {
    /// Returns the cheapest candidate of a node, for an expected type or for any.
    pub(super) fn choose(
        &self,
        inference: &Inference,
        id: SubtermId,
        expected: Option<Ty>,
    ) -> Result<TypeCandidate, Diagnostic> {
        let node = inference.node(id);
        let mut best: Option<(u32, TypeCandidate)> = None;
        let mut tie: Option<TypeCandidate> = None;
        for c in &node.candidates {
            let Some(step) = expected.map_or(Some(0), |e| self.types.distance(c.ty, e)) else {
                continue;
            };
            let cost = c.cost.saturating_add(step);
            match best {
                Some((least, _)) if cost > least => {}
                Some((least, _)) if cost == least => tie = Some(*c),
                _ => {
                    best = Some((cost, *c));
                    tie = None;
                }
            }
        }
        let sorts = &self.data.signature.sorts;
        let Some((_, chosen)) = best else {
            let wanted = expected.map_or_else(String::new, |e| self.types.text(sorts, e));
            let found = self.found_text(inference, id);
            let refused =
                error(node.span, format!("expression of sort {found}, where {wanted} is expected"));
            return Err(match expected {
                Some(expected) => self.with_conversion(refused, inference, id, expected),
                None => refused,
            });
        };
        if let Some(other) = tie {
            let (a, b) = (self.types.text(sorts, chosen.ty), self.types.text(sorts, other.ty));
            return Err(self.ambiguous(inference, id, &format!("it may have sort {a} or {b}")));
        }
        if chosen.ambiguous {
            let sort = self.types.text(sorts, chosen.ty);
            return Err(self.ambiguous(
                inference,
                id,
                &format!("several overloads give sort {sort}"),
            ));
        }
        Ok(chosen)
    }

    fn ambiguous(&self, inference: &Inference, id: SubtermId, why: &str) -> Diagnostic {
        let node = inference.node(id);
        let message = match &node.kind {
            NodeKind::Name(name) | NodeKind::Call(name) => {
                format!("`{name}` is ambiguous here: {why}")
            }
            _ => format!("the expression is ambiguous: {why}"),
        };
        let mut diagnostic = error(node.span, message);
        if let NodeKind::Name(name) | NodeKind::Call(name) = &node.kind {
            let signature = &self.data.signature;
            for op in self.operations(name).into_iter().take(12) {
                diagnostic = diagnostic.note(format!(
                    "candidate: {name}: {}",
                    signature.sorts.text(signature.op(op).sort)
                ));
            }
        }
        diagnostic
    }

    /// Builds the expression of a node at a closed type.
    pub(super) fn elaborate(
        &mut self,
        inference: &Inference,
        id: SubtermId,
        target: Ty,
    ) -> Result<Expr, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || {
            let chosen = self.choose(inference, id, Some(target))?;
            let natural = self.types.fill(chosen.ty, target);
            let expr = self.build(inference, id, chosen, natural)?;
            Ok(self.coerce(expr, natural, target))
        })
    }

    /// Builds the expression of a node at its own type: `natural` is the chosen candidate's type,
    /// closed.
    fn build(
        &mut self,
        inference: &Inference,
        id: SubtermId,
        chosen: TypeCandidate,
        natural: Ty,
    ) -> Result<Expr, Diagnostic> {
        let node = inference.node(id);
        let span = node.span;
        let sort = self.sort_of(natural);
        match (&node.kind, chosen.choice) {
            (NodeKind::Var(var), _) => Ok(Expr::new(ExprKind::Var(*var), sort, span)),
            (NodeKind::Number(value), _) => {
                Ok(Expr::new(ExprKind::Number(value.clone()), sort, span))
            }
            (NodeKind::Name(_), CandidateChoice::Op(op)) => {
                Ok(Expr::new(ExprKind::Op(op), sort, span))
            }
            (NodeKind::Name(name), CandidateChoice::Builtin(scheme, _)) => {
                self.build_value(scheme, natural, name, span)
            }
            (NodeKind::Call(_), CandidateChoice::Op(op)) => {
                let function = self.data.signature.op(op).sort;
                let SortKind::Function(domain, _) =
                    self.data.signature.sorts.kind(function).clone()
                else {
                    return Err(internal(span));
                };
                let mut args = Vec::with_capacity(domain.len());
                for (child, sort) in node.children.iter().zip(&domain) {
                    let ty = self.type_of(*sort);
                    args.push(self.elaborate(inference, *child, ty)?);
                }
                Ok(self.apply_op(op, args, sort, span))
            }
            (NodeKind::Call(_), CandidateChoice::Builtin(scheme, vars)) => {
                let vars = self.close_vars(scheme, vars, natural);
                let mut args = Vec::with_capacity(node.children.len());
                for (child, pattern) in node.children.iter().zip(scheme.params) {
                    let ty = pattern.at(&mut self.types, vars);
                    args.push(self.elaborate(inference, *child, ty)?);
                }
                Ok(self.build_builtin(scheme, vars, args, sort, span))
            }
            (NodeKind::Apply, CandidateChoice::Head(function)) => {
                let TyKind::Function(domain, _) = self.types.kind(function).clone() else {
                    return Err(internal(span));
                };
                let domain: Box<[Ty]> = domain.iter().map(|t| self.types.close(*t)).collect();
                let function = self.types.intern(TyKind::Function(domain.clone(), natural));
                let head = self.elaborate(inference, node.children[0], function)?;
                let mut args = Vec::with_capacity(domain.len());
                for (child, ty) in node.children[1..].iter().zip(&domain) {
                    args.push(self.elaborate(inference, *child, *ty)?);
                }
                Ok(Expr::new(ExprKind::Apply(head, args), sort, span))
            }
            (NodeKind::List, CandidateChoice::Elements(_)) => {
                let TyKind::List(element) = *self.types.kind(natural) else {
                    return Err(internal(span));
                };
                self.build_chain(
                    inference,
                    &node.children,
                    1,
                    element,
                    sort,
                    (Builtin::EmptyList, Builtin::Cons),
                    span,
                )
            }
            (NodeKind::Set, CandidateChoice::Elements(_)) => {
                let TyKind::FSet(element) = *self.types.kind(natural) else {
                    return Err(internal(span));
                };
                self.build_chain(
                    inference,
                    &node.children,
                    1,
                    element,
                    sort,
                    (Builtin::EmptySet, Builtin::SetInsert),
                    span,
                )
            }
            (NodeKind::Bag, CandidateChoice::Elements(_)) => {
                let TyKind::FBag(element) = *self.types.kind(natural) else {
                    return Err(internal(span));
                };
                self.build_chain(
                    inference,
                    &node.children,
                    2,
                    element,
                    sort,
                    (Builtin::EmptyBag, Builtin::BagInsert),
                    span,
                )
            }
            (NodeKind::Bind(binder, vars), CandidateChoice::Body(body)) => {
                let body = match self.types.kind(natural) {
                    TyKind::Function(_, range) => *range,
                    _ => body,
                };
                let body = self.elaborate(inference, node.children[0], body)?;
                Ok(Expr::new(ExprKind::Bind(*binder, vars.clone(), body), sort, span))
            }
            (NodeKind::Comprehension(var), CandidateChoice::Body(body)) => {
                let binder = if body == Ty::BOOL {
                    Binder::SetComprehension
                } else {
                    Binder::BagComprehension
                };
                let body = self.elaborate(inference, node.children[0], body)?;
                Ok(Expr::new(ExprKind::Bind(binder, vec![*var], body), sort, span))
            }
            (NodeKind::Where(definitions), _) => {
                let body = self.elaborate(inference, node.children[0], natural)?;
                Ok(Expr::new(ExprKind::Where(body, definitions.clone()), sort, span))
            }
            _ => Err(internal(span)),
        }
    }

    /// Determines the scheme's variables from the result type; undetermined ones become Bool.
    fn close_vars(&mut self, scheme: &Scheme, mut vars: [Ty; 2], result: Ty) -> [Ty; 2] {
        self.read_vars(scheme.result, result, &mut vars);
        vars.map(|ty| self.types.close(ty))
    }

    fn read_vars(&self, pattern: SortPattern, ty: Ty, vars: &mut [Ty; 2]) {
        match (pattern, self.types.kind(ty)) {
            (SortPattern::Var(v), _) => vars[v] = ty,
            (SortPattern::List(v), TyKind::List(e))
            | (SortPattern::Set(v), TyKind::Set(e))
            | (SortPattern::Bag(v), TyKind::Bag(e))
            | (SortPattern::FSet(v), TyKind::FSet(e))
            | (SortPattern::FBag(v), TyKind::FBag(e)) => vars[v] = *e,
            (SortPattern::Function(v, w), TyKind::Function(domain, range)) if domain.len() == 1 => {
                vars[v] = domain[0];
                vars[w] = *range;
            }
            _ => {}
        }
    }

    /// Applies a built-in to all its arguments. Comparison of sets and bags is inclusion; `>` and
    /// `>=` swap their arguments.
    fn build_builtin(
        &mut self,
        scheme: &Scheme,
        vars: [Ty; 2],
        mut args: Vec<Expr>,
        sort: SortId,
        span: Span,
    ) -> Expr {
        let inclusion = matches!(
            self.types.kind(vars[0]),
            TyKind::Set(_) | TyKind::FSet(_) | TyKind::Bag(_) | TyKind::FBag(_)
        );
        let builtin = match scheme.builtin {
            Builtin::Less if inclusion => Builtin::ProperSubset,
            Builtin::LessEqual if inclusion => Builtin::Subset,
            Builtin::Greater if inclusion => {
                args.reverse();
                Builtin::ProperSubset
            }
            Builtin::GreaterEqual if inclusion => {
                args.reverse();
                Builtin::Subset
            }
            other => other,
        };
        self.apply_builtin(builtin, args, sort, span)
    }

    /// Builds a built-in as a value.
    fn build_value(
        &mut self,
        scheme: &'static Scheme,
        natural: Ty,
        name: &str,
        span: Span,
    ) -> Result<Expr, Diagnostic> {
        let sort = self.sort_of(natural);
        let mut vars = [Ty::BOTTOM; 2];
        if let TyKind::Function(domain, range) = self.types.kind(natural).clone()
            && !scheme.params.is_empty()
        {
            for (pattern, ty) in scheme.params.iter().zip(&domain) {
                self.read_vars(*pattern, *ty, &mut vars);
            }
            self.read_vars(scheme.result, range, &mut vars);
            let fits =
                scheme.params.iter().zip(&domain).all(|(p, t)| p.at(&mut self.types, vars) == *t)
                    && scheme.result.at(&mut self.types, vars) == range;
            if !fits {
                let text = self.types.text(&self.data.signature.sorts, natural);
                return Err(error(span, format!("`{name}` cannot have sort {text}"))
                    .note(format!("candidate: {name}: {}", scheme.text())));
            }
        }
        let op = self.data.signature.builtin(scheme.builtin, sort);
        Ok(Expr::new(ExprKind::Op(op), sort, span))
    }

    /// Builds a literal as a chain of insertions, last element innermost; each takes `width`
    /// children.
    #[allow(clippy::too_many_arguments)]
    fn build_chain(
        &mut self,
        inference: &Inference,
        children: &[SubtermId],
        width: usize,
        element: Ty,
        sort: SortId,
        (empty, insert): (Builtin, Builtin),
        span: Span,
    ) -> Result<Expr, Diagnostic> {
        let mut chain = self.apply_builtin(empty, Vec::new(), sort, span);
        if children.is_empty() {
            return Ok(chain);
        }
        let mut domain = vec![self.sort_of(element)];
        if width == 2 {
            domain.push(crate::sort::basic::NAT);
        }
        domain.push(sort);
        let function = self.data.signature.sorts.intern(SortKind::Function(domain.into(), sort));
        let op = self.data.signature.builtin(insert, function);
        let head = Expr::new(ExprKind::Op(op), function, span);
        for group in children.chunks(width).rev() {
            let mut args = vec![self.elaborate(inference, group[0], element)?];
            for count in &group[1..] {
                args.push(self.elaborate(inference, *count, Ty::NAT)?);
            }
            args.push(chain);
            chain = Expr::new(ExprKind::Apply(head.clone(), args), sort, span);
        }
        Ok(chain)
    }

    /// Lifts an expression from a type to one above it. Literal numbers change their sort instead.
    pub(super) fn coerce(&mut self, expr: Expr, from: Ty, to: Ty) -> Expr {
        if from == to {
            return expr;
        }
        let sort = self.sort_of(to);
        if let ExprKind::Number(value) = &expr.kind {
            return Expr::new(ExprKind::Number(value.clone()), sort, expr.span);
        }
        let builtin = match (from, to) {
            (Ty::POS, Ty::NAT) => Builtin::PosToNat,
            (Ty::POS, Ty::INT) => Builtin::PosToInt,
            (Ty::POS, Ty::REAL) => Builtin::PosToReal,
            (Ty::NAT, Ty::INT) => Builtin::NatToInt,
            (Ty::NAT, Ty::REAL) => Builtin::NatToReal,
            (Ty::INT, Ty::REAL) => Builtin::IntToReal,
            _ if matches!(self.types.kind(from), TyKind::FSet(_)) => Builtin::FSetToSet,
            _ => Builtin::FBagToBag,
        };
        let span = expr.span;
        self.apply_builtin(builtin, vec![expr], sort, span)
    }

    fn apply_builtin(
        &mut self,
        builtin: Builtin,
        args: Vec<Expr>,
        sort: SortId,
        span: Span,
    ) -> Expr {
        let function = if args.is_empty() {
            sort
        } else {
            let domain = args.iter().map(|a| a.sort).collect();
            self.data.signature.sorts.intern(SortKind::Function(domain, sort))
        };
        let op = self.data.signature.builtin(builtin, function);
        self.apply_op(op, args, sort, span)
    }

    fn apply_op(&self, op: OpId, args: Vec<Expr>, sort: SortId, span: Span) -> Expr {
        let head = Expr::new(ExprKind::Op(op), self.data.signature.op(op).sort, span);
        if args.is_empty() { head } else { Expr::new(ExprKind::Apply(head, args), sort, span) }
    }

    /// Returns the sort of a closed type.
    pub(super) fn sort_of(&mut self, ty: Ty) -> SortId {
        self.types.sort_of(&mut self.data.signature.sorts, ty)
    }

    /// Returns the type of a sort.
    pub(super) fn type_of(&mut self, sort: SortId) -> Ty {
        self.types.of_sort(&self.data.signature.sorts, sort)
    }
}

fn internal(span: Span) -> Diagnostic {
    Diagnostic::at(mu_base::Stage::Internal, span, "type inference and elaboration disagree")
}
