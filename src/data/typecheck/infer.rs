//! Bottom-up pass: each subterm gets the set of its possible types, with the cheapest choice for
//! each.
//!
//! A *candidate* is a type, its cost (implicit coercions below it, one for each step
//! Pos-Nat-Int-Real, FSet-Set, FBag-Bag; one for an operation used as a function value) and the
//! choice that produces it. Overloads are tried against the candidates of the arguments; a
//! candidate that a cheaper one reaches by coercion is dropped, so operators over numbers have one.
//! Literals of lists, sets and bags have one candidate for each element sort that suits all
//! elements. Names are resolved here, local variables first.
//!
//! Cost: linear in the size of the expression times the number of overloads and candidates; the
//! latter is capped.

use super::builtins::{Scheme, SortPattern, binary_name, schemes, unary_name};
use super::types::{Ty, TyKind};
use super::{Checker, error};
use crate::expr::{Binder, Expr};
use crate::sort::SortKind;
use mu_base::ids::{OpId, VarId};
use mu_base::{Diagnostic, Span, id_types};
use mu_syntax::ast::{self, DataKind};
use num_bigint::BigInt;

/// Limit on the candidates of a node; further ones are dropped. Only nested literals of literals
/// approach it.
const MAX_CANDIDATES: usize = 64;

id_types! {
    /// Number of a node of an [`Inference`].
    pub(crate) SubtermId,
}

/// Choice that produces a candidate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum CandidateChoice {
    /// Variable or number.
    Leaf,
    /// A user operation, applied or not.
    Op(OpId),
    /// A built-in at these values of its sort variables.
    Builtin(&'static Scheme, [Ty; 2]),
    /// The head has this function type.
    Head(Ty),
    /// The elements have this type.
    Elements(Ty),
    /// The body has this type.
    Body(Ty),
}

/// Possible type of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeCandidate {
    pub(super) ty: Ty,
    pub(super) cost: u32,
    pub(super) choice: CandidateChoice,
    /// True if another choice gives the same type at the same cost.
    pub(super) ambiguous: bool,
}

/// Kind of a node.
#[derive(Debug)]
pub(super) enum NodeKind {
    Var(VarId),
    Number(BigInt),
    /// An operation as a value.
    Name(String),
    /// A named operation applied to the children.
    Call(String),
    /// The first child applied to the others.
    Apply,
    List,
    Set,
    /// Children alternate between elements and multiplicities.
    Bag,
    Bind(Binder, Vec<VarId>),
    /// A set or a bag, depending on the sort of the body: Bool or a number.
    Comprehension(VarId),
    Where(Vec<(VarId, Expr)>),
}

/// Subterm.
#[derive(Debug)]
pub(super) struct InferenceNode {
    pub(super) span: Span,
    pub(super) kind: NodeKind,
    pub(super) children: Vec<SubtermId>,
    pub(super) candidates: Vec<TypeCandidate>,
}

/// Annotated tree of some expressions.
#[derive(Default, Debug)]
pub(crate) struct Inference {
    nodes: Vec<InferenceNode>,
}

impl Inference {
    /// Returns the node of an id.
    pub(super) fn node(&self, id: SubtermId) -> &InferenceNode {
        &self.nodes[id.index()]
    }
    fn add(
        &mut self,
        span: Span,
        kind: NodeKind,
        children: Vec<SubtermId>,
        candidates: Vec<TypeCandidate>,
    ) -> SubtermId {
        let id = SubtermId::new(self.nodes.len());
        self.nodes.push(InferenceNode { span, kind, children, candidates });
        id
    }
}

/// Constraints on scheme variables while arguments are matched.
#[derive(Clone, Copy)]
struct SchemeBounds {
    /// Join of the argument types directly at the variable.
    lower: [Ty; 2],
    /// Type required by an argument below a container.
    exact: [Option<Ty>; 2],
}

impl Checker {
    /// Annotates an expression; fails if it has no type at all.
    pub(crate) fn infer(
        &mut self,
        inference: &mut Inference,
        data: &ast::Data,
    ) -> Result<SubtermId, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || self.infer_node(inference, data))
    }

    fn infer_all(
        &mut self,
        inference: &mut Inference,
        data: &[ast::Data],
    ) -> Result<Vec<SubtermId>, Diagnostic> {
        data.iter().map(|d| self.infer(inference, d)).collect()
    }

    fn infer_node(
        &mut self,
        inference: &mut Inference,
        data: &ast::Data,
    ) -> Result<SubtermId, Diagnostic> {
        let span = data.span;
        match &data.kind {
            DataKind::Name(name) => self.infer_name(inference, name, span),
            DataKind::Number(digits) => {
                let value: BigInt = digits
                    .parse()
                    .map_err(|_| error(span, format!("`{digits}` is not a number")))?;
                let ty = if value == BigInt::ZERO { Ty::NAT } else { Ty::POS };
                Ok(inference.add(span, NodeKind::Number(value), Vec::new(), vec![leaf(ty)]))
            }
            DataKind::List(elements) => {
                let children = self.infer_all(inference, elements)?;
                let candidates = self.literal(inference, &children, "list", TyKind::List)?;
                Ok(inference.add(span, NodeKind::List, children, candidates))
            }
            DataKind::Set(elements) => {
                let children = self.infer_all(inference, elements)?;
                let candidates = self.literal(inference, &children, "set", TyKind::FSet)?;
                Ok(inference.add(span, NodeKind::Set, children, candidates))
            }
            DataKind::Bag(pairs) => self.infer_bag(inference, pairs, span),
            DataKind::Comprehension(decl, body) => {
                self.infer_comprehension(inference, decl, body, span)
            }
            DataKind::Apply(head, args) => {
                if let DataKind::Name(name) = &head.kind
                    && !self.hides_operation(name, args.len())
                {
                    if !self.is_operation(name) {
                        return Err(self.undeclared_error(name, head.span));
                    }
                    let children = self.infer_all(inference, args)?;
                    return self.infer_call(inference, name, children, span);
                }
                self.infer_application(inference, head, args, span)
            }
            DataKind::Update(function, argument, value) => {
                let children = vec![
                    self.infer(inference, function)?,
                    self.infer(inference, argument)?,
                    self.infer(inference, value)?,
                ];
                self.infer_call(inference, "@func_update", children, span)
            }
            DataKind::Unary(op, operand) => {
                let children = vec![self.infer(inference, operand)?];
                self.infer_call(inference, unary_name(*op), children, span)
            }
            DataKind::Binary(op, left, right) => {
                let children = vec![self.infer(inference, left)?, self.infer(inference, right)?];
                self.infer_call(inference, binary_name(*op), children, span)
            }
            DataKind::Lambda(decls, body) => self.infer_lambda(inference, decls, body, span),
            DataKind::Forall(decls, body) => {
                self.infer_quantifier(inference, Binder::Forall, "forall", decls, body, span)
            }
            DataKind::Exists(decls, body) => {
                self.infer_quantifier(inference, Binder::Exists, "exists", decls, body, span)
            }
            DataKind::Where(body, definitions) => {
                self.infer_where(inference, body, definitions, span)
            }
        }
    }

    /// Annotates elements with their multiplicities.
    fn infer_bag(
        &mut self,
        inference: &mut Inference,
        pairs: &[(ast::Data, ast::Data)],
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let mut elements = Vec::with_capacity(pairs.len());
        let mut children = Vec::with_capacity(2 * pairs.len());
        let mut extra = 0u32;
        for (element, count) in pairs {
            let element = self.infer(inference, element)?;
            let count = self.infer(inference, count)?;
            extra = extra.saturating_add(self.require(
                inference,
                count,
                Ty::NAT,
                "the multiplicity in a bag",
            )?);
            elements.push(element);
            children.extend([element, count]);
        }
        let mut candidates = self.literal(inference, &elements, "bag", TyKind::FBag)?;
        candidates.iter_mut().for_each(|c| c.cost = c.cost.saturating_add(extra));
        Ok(inference.add(span, NodeKind::Bag, children, candidates))
    }

    /// Annotates `{ x: S | body }`: a set if the body is a truth value, a bag if it is a number.
    fn infer_comprehension(
        &mut self,
        inference: &mut Inference,
        decl: &ast::VarDecl,
        body: &ast::Data,
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let (vars, child) =
            self.infer_scope(inference, std::slice::from_ref(decl), body, "comprehension", span)?;
        let element = self.var_type(vars[0]);
        let mut candidates = Vec::new();
        if let Some(cost) = self.cost_at(inference, child, Ty::BOOL) {
            let ty = self.types.intern(TyKind::Set(element));
            candidates.push(TypeCandidate {
                ty,
                cost,
                choice: CandidateChoice::Body(Ty::BOOL),
                ambiguous: false,
            });
        }
        if let Some(cost) = self.cost_at(inference, child, Ty::NAT) {
            let ty = self.types.intern(TyKind::Bag(element));
            candidates.push(TypeCandidate {
                ty,
                cost,
                choice: CandidateChoice::Body(Ty::NAT),
                ambiguous: false,
            });
        }
        if candidates.is_empty() {
            let found = self.found_text(inference, child);
            return Err(error(body.span, format!("the body of a comprehension has sort {found}"))
                .note("expected Bool (a set) or Nat (a bag)"));
        }
        Ok(inference.add(span, NodeKind::Comprehension(vars[0]), vec![child], candidates))
    }

    /// Annotates a function, with a candidate for each sort of its body.
    fn infer_lambda(
        &mut self,
        inference: &mut Inference,
        decls: &[ast::VarDecl],
        body: &ast::Data,
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let (vars, child) = self.infer_scope(inference, decls, body, "lambda", span)?;
        let domain: Box<[Ty]> = vars.iter().map(|v| self.var_type(*v)).collect();
        let mut candidates = Vec::new();
        for c in inference.node(child).candidates.clone() {
            for range in self.types.above(c.ty) {
                let distance = self.types.distance(c.ty, range);
                let cost = c.cost + distance.expect("a type is below those above it");
                let ty = self.types.intern(TyKind::Function(domain.clone(), range));
                insert(
                    &mut candidates,
                    TypeCandidate {
                        ty,
                        cost,
                        choice: CandidateChoice::Body(range),
                        ambiguous: false,
                    },
                    false,
                );
            }
        }
        Ok(inference.add(
            span,
            NodeKind::Bind(Binder::Lambda, vars),
            vec![child],
            self.prune(candidates),
        ))
    }

    /// Annotates `body whr x = e end`: the definitions are not in scope of each other.
    fn infer_where(
        &mut self,
        inference: &mut Inference,
        body: &ast::Data,
        definitions: &[(ast::Ident, ast::Data)],
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let mut typed = Vec::with_capacity(definitions.len());
        for (name, value) in definitions {
            if definitions.iter().any(|d| d.0.kind == name.kind && d.0.span.start < name.span.start)
            {
                return Err(error(
                    name.span,
                    format!("`{}` is defined twice in one `whr`", name.kind),
                ));
            }
            let value = self.check(value, None)?;
            let var = self.data.signature.declare_var(name.kind.clone(), value.sort, name.span);
            typed.push((var, value));
        }
        let mark = self.open_scope();
        for ((name, _), (var, _)) in definitions.iter().zip(&typed) {
            self.bind(&name.kind, *var);
        }
        let child = self.infer(inference, body);
        self.close_scope(mark, "whr", span);
        let child = child?;
        let mut candidates = inference.node(child).candidates.clone();
        for c in &mut candidates {
            c.choice = CandidateChoice::Body(c.ty);
            c.ambiguous = false;
        }
        Ok(inference.add(span, NodeKind::Where(typed), vec![child], candidates))
    }

    fn infer_name(
        &mut self,
        inference: &mut Inference,
        name: &str,
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        if let Some(var) = self.lookup_var(name) {
            let ty = self.var_type(var);
            return Ok(inference.add(span, NodeKind::Var(var), Vec::new(), vec![leaf(ty)]));
        }
        let mut candidates = Vec::new();
        for op in self.operations(name) {
            let ty = self.op_type(op);
            let cost = u32::from(matches!(self.types.kind(ty), TyKind::Function(..)));
            insert(
                &mut candidates,
                TypeCandidate { ty, cost, choice: CandidateChoice::Op(op), ambiguous: false },
                false,
            );
        }
        for scheme in schemes(name) {
            let vars = [Ty::BOTTOM; 2];
            let mut ty = scheme.result.at(&mut self.types, vars);
            if !scheme.params.is_empty() {
                let domain = scheme.params.iter().map(|p| p.at(&mut self.types, vars)).collect();
                ty = self.types.intern(TyKind::Function(domain, ty));
            }
            let cost = u32::from(!scheme.params.is_empty());
            insert(
                &mut candidates,
                TypeCandidate {
                    ty,
                    cost,
                    choice: CandidateChoice::Builtin(scheme, vars),
                    ambiguous: false,
                },
                true,
            );
        }
        if candidates.is_empty() {
            return Err(self.undeclared_error(name, span));
        }
        Ok(inference.add(span, NodeKind::Name(name.into()), Vec::new(), candidates))
    }

    /// True if a variable shadows the operations of this name in an application to `arguments`
    /// arguments. A variable that cannot be applied to that number does not.
    fn hides_operation(&mut self, name: &str, arguments: usize) -> bool {
        let Some(var) = self.lookup_var(name) else { return false };
        let ty = self.var_type(var);
        matches!(self.types.kind(ty), TyKind::Function(domain, _) if domain.len() == arguments)
            || !self.is_operation(name)
    }

    /// Annotates an application of a head other than a named operation.
    fn infer_application(
        &mut self,
        inference: &mut Inference,
        head: &ast::Data,
        args: &[ast::Data],
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let head_node = self.infer(inference, head)?;
        let mut children = vec![head_node];
        children.extend(self.infer_all(inference, args)?);
        let mut candidates = Vec::new();
        for c in inference.node(head_node).candidates.clone() {
            if let Some((range, cost)) = self.function_cost(inference, c.ty, &children[1..]) {
                let cost = c.cost.saturating_add(cost);
                insert(
                    &mut candidates,
                    TypeCandidate {
                        ty: range,
                        cost,
                        choice: CandidateChoice::Head(c.ty),
                        ambiguous: false,
                    },
                    false,
                );
            }
        }
        let candidates = self.prune(candidates);
        if candidates.is_empty() {
            let found = self.found_text(inference, head_node);
            let what = match &head.kind {
                DataKind::Name(name) => format!("variable `{name}`"),
                _ => "expression".into(),
            };
            let arguments = self.arguments_text(inference, &children[1..]);
            return Err(error(
                span,
                format!("the {what} of sort {found} cannot be applied to ({arguments})"),
            ));
        }
        Ok(inference.add(span, NodeKind::Apply, children, candidates))
    }

    /// Returns the range of a function type and the cost to coerce the arguments to its domain.
    fn function_cost(
        &self,
        inference: &Inference,
        function: Ty,
        args: &[SubtermId],
    ) -> Option<(Ty, u32)> {
        let TyKind::Function(domain, range) = self.types.kind(function) else { return None };
        if domain.len() != args.len() {
            return None;
        }
        let mut cost = 0u32;
        for (ty, arg) in domain.iter().zip(args) {
            cost = cost.saturating_add(self.cost_at(inference, *arg, *ty)?);
        }
        Some((*range, cost))
    }

    /// Returns the least cost to read a node at a type.
    pub(super) fn cost_at(&self, inference: &Inference, node: SubtermId, ty: Ty) -> Option<u32> {
        let candidates = &inference.node(node).candidates;
        candidates
            .iter()
            .filter_map(|c| Some(c.cost.saturating_add(self.types.distance(c.ty, ty)?)))
            .min()
    }

    /// Computes [`Self::cost_at`], with an error if the node does not have the type.
    fn require(
        &self,
        inference: &Inference,
        node: SubtermId,
        ty: Ty,
        what: &str,
    ) -> Result<u32, Diagnostic> {
        self.cost_at(inference, node, ty).ok_or_else(|| {
            let sorts = &self.data.signature.sorts;
            let found = self.found_text(inference, node);
            let message = format!(
                "{what} has sort {found}, where {} is expected",
                self.types.text(sorts, ty)
            );
            self.with_conversion(error(inference.node(node).span, message), inference, node, ty)
        })
    }

    /// Adds a note with the conversion function from a wider number sort to the expected one, if
    /// that is the problem.
    pub(super) fn with_conversion(
        &self,
        diagnostic: Diagnostic,
        inference: &Inference,
        node: SubtermId,
        wanted: Ty,
    ) -> Diagnostic {
        let found = inference.node(node).candidates.iter().min_by_key(|c| c.cost).map(|c| c.ty);
        let Some(found) = found.filter(|f| self.types.distance(wanted, *f).is_some_and(|d| d > 0))
        else {
            return diagnostic;
        };
        let which = match self.types.kind(wanted) {
            TyKind::Pos => "one that is above zero",
            TyKind::Nat => "one that is not below zero",
            TyKind::Int => "one that is whole",
            _ => return diagnostic,
        };
        let sorts = &self.data.signature.sorts;
        let (from, to) = (self.types.text(sorts, found), self.types.text(sorts, wanted));
        diagnostic.note(format!("`{from}2{to}(…)` makes a {to} of {which}"))
    }

    fn infer_call(
        &mut self,
        inference: &mut Inference,
        name: &str,
        children: Vec<SubtermId>,
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let mut candidates = Vec::new();
        for op in self.operations(name) {
            let function = self.op_type(op);
            if let Some((ty, cost)) = self.function_cost(inference, function, &children) {
                insert(
                    &mut candidates,
                    TypeCandidate { ty, cost, choice: CandidateChoice::Op(op), ambiguous: false },
                    false,
                );
            }
        }
        for scheme in schemes(name) {
            if scheme.params.len() == children.len() && !children.is_empty() {
                if scheme.is_polymorphic() {
                    self.instances(inference, scheme, &children, &mut candidates);
                } else {
                    self.fixed_instance(inference, scheme, &children, &mut candidates);
                }
            }
        }
        let candidates = self.prune(candidates);
        if candidates.is_empty() {
            return Err(self.no_overload(inference, name, &children, span));
        }
        Ok(inference.add(span, NodeKind::Call(name.into()), children, candidates))
    }

    fn fixed_instance(
        &self,
        inference: &Inference,
        scheme: &'static Scheme,
        args: &[SubtermId],
        out: &mut Vec<TypeCandidate>,
    ) {
        let mut cost = 0u32;
        for (pattern, arg) in scheme.params.iter().zip(args) {
            let SortPattern::Sort(ty) = pattern else { return };
            let Some(step) = self.cost_at(inference, *arg, *ty) else { return };
            cost = cost.saturating_add(step);
        }
        let SortPattern::Sort(ty) = scheme.result else { return };
        // `abs` of a natural number is one: a widening that the result undoes costs nothing.
        if let [arg] = args
            && let Some(step) = self.cost_at(inference, *arg, ty)
        {
            cost = cost.min(step);
        }
        let choice = CandidateChoice::Builtin(scheme, [Ty::BOTTOM; 2]);
        // Overloads with one sort at one cost agree in their values; the narrower comes first, as
        // in the reference.
        insert(out, TypeCandidate { ty, cost, choice, ambiguous: false }, true);
    }

    fn any_open(&self, inference: &Inference, args: &[SubtermId]) -> bool {
        args.iter().any(|a| inference.node(*a).candidates.iter().any(|c| self.types.is_open(c.ty)))
    }

    /// Adds all instances of a polymorphic scheme that match the arguments.
    fn instances(
        &mut self,
        inference: &Inference,
        scheme: &'static Scheme,
        args: &[SubtermId],
        out: &mut Vec<TypeCandidate>,
    ) {
        let bounds = SchemeBounds { lower: [Ty::BOTTOM; 2], exact: [None; 2] };
        let mut chosen = Vec::with_capacity(args.len());
        self.match_arguments(inference, scheme, args, bounds, &mut chosen, out);
    }

    fn match_arguments(
        &mut self,
        inference: &Inference,
        scheme: &'static Scheme,
        args: &[SubtermId],
        bounds: SchemeBounds,
        chosen: &mut Vec<TypeCandidate>,
        out: &mut Vec<TypeCandidate>,
    ) {
        let Some(arg) = args.get(chosen.len()) else {
            return self.solve(inference, scheme, args, bounds, chosen, out);
        };
        for c in &inference.node(*arg).candidates {
            let mut next = bounds;
            if self.match_pattern(scheme.params[chosen.len()], c.ty, &mut next) {
                chosen.push(*c);
                self.match_arguments(inference, scheme, args, next, chosen, out);
                chosen.pop();
            }
        }
    }

    /// Narrows the bounds by an argument type at a parameter. False if they do not match.
    fn match_pattern(&mut self, pattern: SortPattern, ty: Ty, bounds: &mut SchemeBounds) -> bool {
        if let SortPattern::Sort(sort) = pattern {
            return self.types.distance(ty, sort).is_some();
        }
        if let SortPattern::Var(v) = pattern {
            let Some(join) = self.types.join(bounds.lower[v], ty) else { return false };
            bounds.lower[v] = join;
            return true;
        }
        if ty == Ty::BOTTOM {
            return true;
        }
        let parts = match (pattern, self.types.kind(ty)) {
            (SortPattern::List(v), TyKind::List(e))
            | (SortPattern::Set(v), TyKind::Set(e) | TyKind::FSet(e))
            | (SortPattern::Bag(v), TyKind::Bag(e) | TyKind::FBag(e))
            | (SortPattern::FSet(v), TyKind::FSet(e))
            | (SortPattern::FBag(v), TyKind::FBag(e)) => [Some((v, *e)), None],
            (SortPattern::Function(v, w), TyKind::Function(domain, range)) if domain.len() == 1 => {
                [Some((v, domain[0])), Some((w, *range))]
            }
            _ => return false,
        };
        for (v, ty) in parts.into_iter().flatten() {
            let exact = bounds.exact[v].unwrap_or(Ty::BOTTOM);
            let Some(exact) = self.types.unify(exact, ty) else { return false };
            bounds.exact[v] = Some(exact);
        }
        true
    }

    /// Adds a candidate for each solution of the scheme's variables within the bounds.
    fn solve(
        &mut self,
        inference: &Inference,
        scheme: &'static Scheme,
        args: &[SubtermId],
        bounds: SchemeBounds,
        chosen: &[TypeCandidate],
        out: &mut Vec<TypeCandidate>,
    ) {
        let mut values = [vec![Ty::BOTTOM], vec![Ty::BOTTOM]];
        for (v, values) in values.iter_mut().enumerate() {
            let (lower, exact) = (bounds.lower[v], bounds.exact[v]);
            if let Some(exact) = exact.filter(|e| !self.types.is_open(*e)) {
                if self.types.distance(lower, exact).is_none() {
                    return;
                }
                *values = vec![exact];
                continue;
            }
            let exact = exact.unwrap_or(Ty::BOTTOM);
            let Some(base) = self.types.join(lower, exact) else { return };
            let nested = scheme.result.variables().any(|(w, nested)| w == v && nested);
            *values = if nested { self.types.above(base) } else { vec![base] };
            values.retain(|value| self.types.instance(exact, *value));
        }
        let open = self.any_open(inference, args);
        for &first in &values[0] {
            for &second in &values[1] {
                let vars = [first, second];
                let mut cost = 0u32;
                let mut matches = true;
                for (c, pattern) in chosen.iter().zip(scheme.params) {
                    let param = pattern.at(&mut self.types, vars);
                    match self.types.distance(c.ty, param) {
                        Some(step) => cost = cost.saturating_add(c.cost).saturating_add(step),
                        None => matches = false,
                    }
                }
                if matches {
                    let ty = scheme.result.at(&mut self.types, vars);
                    insert(
                        out,
                        TypeCandidate {
                            ty,
                            cost,
                            choice: CandidateChoice::Builtin(scheme, vars),
                            ambiguous: false,
                        },
                        open,
                    );
                }
            }
        }
    }

    /// Returns the candidates of a list, set or bag literal: one for each element type that suits
    /// all elements.
    fn literal(
        &mut self,
        inference: &Inference,
        elements: &[SubtermId],
        what: &str,
        make: fn(Ty) -> TyKind,
    ) -> Result<Vec<TypeCandidate>, Diagnostic> {
        let mut types: Option<Vec<Ty>> = None;
        let mut last: Vec<Ty> = Vec::new();
        for &element in elements {
            let now: Vec<Ty> = inference.node(element).candidates.iter().map(|c| c.ty).collect();
            if now == last {
                continue;
            }
            let mut above: Vec<Ty> = Vec::new();
            for ty in &now {
                for up in self.types.above(*ty) {
                    if !above.contains(&up) {
                        above.push(up);
                    }
                }
            }
            types = Some(match types {
                None => above,
                Some(types) => {
                    let mut joined = Vec::new();
                    for &a in &types {
                        for &b in &above {
                            if let Some(join) = self.types.unify(a, b)
                                && !joined.contains(&join)
                            {
                                joined.push(join);
                            }
                        }
                    }
                    if joined.is_empty() {
                        let sorts = &self.data.signature.sorts;
                        let before = self.types.text(sorts, types[0]);
                        let found = self.found_text(inference, element);
                        return Err(error(
                            inference.node(element).span,
                            format!(
                                "this element of a {what} has sort {found}, but those before it have sort {before}"
                            ),
                        ));
                    }
                    joined
                }
            });
            last = now;
        }
        let types = types.unwrap_or_else(|| vec![Ty::BOTTOM]);
        let mut candidates = Vec::with_capacity(types.len());
        'types: for ty in types {
            let mut cost = 0u32;
            for &element in elements {
                let Some(step) = self.cost_at(inference, element, ty) else { continue 'types };
                cost = cost.saturating_add(step);
            }
            let whole = self.types.intern(make(ty));
            candidates.push(TypeCandidate {
                ty: whole,
                cost,
                choice: CandidateChoice::Elements(ty),
                ambiguous: false,
            });
        }
        candidates.sort_by_key(|c| c.cost);
        candidates.truncate(MAX_CANDIDATES);
        Ok(candidates)
    }

    fn infer_scope(
        &mut self,
        inference: &mut Inference,
        decls: &[ast::VarDecl],
        body: &ast::Data,
        word: &'static str,
        span: Span,
    ) -> Result<(Vec<VarId>, SubtermId), Diagnostic> {
        let vars = self.declare_vars(decls)?;
        let mark = self.open_scope();
        for (decl, var) in decls.iter().zip(&vars) {
            self.bind(&decl.name.kind, *var);
        }
        let child = self.infer(inference, body);
        self.close_scope(mark, word, span);
        Ok((vars, child?))
    }

    fn infer_quantifier(
        &mut self,
        inference: &mut Inference,
        binder: Binder,
        word: &'static str,
        decls: &[ast::VarDecl],
        body: &ast::Data,
        span: Span,
    ) -> Result<SubtermId, Diagnostic> {
        let (vars, child) = self.infer_scope(inference, decls, body, word, span)?;
        let cost = self.require(inference, child, Ty::BOOL, &format!("the body of `{word}`"))?;
        let candidate = TypeCandidate {
            ty: Ty::BOOL,
            cost,
            choice: CandidateChoice::Body(Ty::BOOL),
            ambiguous: false,
        };
        Ok(inference.add(span, NodeKind::Bind(binder, vars), vec![child], vec![candidate]))
    }

    /// Drops candidates that a cheaper one reaches by coercion, and all beyond the limit.
    fn prune(&self, mut candidates: Vec<TypeCandidate>) -> Vec<TypeCandidate> {
        if candidates.len() > 1 {
            candidates.sort_by_key(|c| c.cost);
            let all = candidates.clone();
            candidates.retain(|c| {
                !all.iter().any(|d| {
                    d.ty != c.ty
                        && self
                            .types
                            .distance(d.ty, c.ty)
                            .is_some_and(|step| step > 0 && d.cost.saturating_add(step) <= c.cost)
                })
            });
            candidates.truncate(MAX_CANDIDATES);
        }
        candidates
    }

    /// Returns the type of a variable.
    pub(super) fn var_type(&mut self, var: VarId) -> Ty {
        let signature = &self.data.signature;
        self.types.of_sort(&signature.sorts, signature.var(var).sort)
    }

    fn op_type(&mut self, op: OpId) -> Ty {
        let signature = &self.data.signature;
        self.types.of_sort(&signature.sorts, signature.op(op).sort)
    }

    /// Returns the cheapest types of a node as text, joined by "or".
    pub(super) fn found_text(&self, inference: &Inference, node: SubtermId) -> String {
        let candidates = &inference.node(node).candidates;
        let least = candidates.iter().map(|c| c.cost).min().unwrap_or(0);
        let sorts = &self.data.signature.sorts;
        let mut texts: Vec<String> = Vec::new();
        for c in candidates.iter().filter(|c| c.cost == least).take(4) {
            texts.push(self.types.text(sorts, c.ty));
        }
        texts.join(" or ")
    }

    /// Returns the types of some nodes as text, separated by commas.
    pub(super) fn arguments_text(&self, inference: &Inference, nodes: &[SubtermId]) -> String {
        nodes.iter().map(|n| self.found_text(inference, *n)).collect::<Vec<_>>().join(", ")
    }

    fn no_overload(
        &self,
        inference: &Inference,
        name: &str,
        children: &[SubtermId],
        span: Span,
    ) -> Diagnostic {
        let sorts = &self.data.signature.sorts;
        let shown = if name == "@func_update" { "[_ -> _]" } else { name };
        // For a single operation with the right number of arguments: names the mismatching
        // argument.
        let mut fitting = self.operations(name).into_iter().filter_map(|op| {
            match sorts.kind(self.data.signature.op(op).sort) {
                SortKind::Function(domain, _) if domain.len() == children.len() => Some(domain),
                _ => None,
            }
        });
        if let (Some(domain), None) = (fitting.next(), fitting.next())
            && schemes(name).is_empty()
        {
            for (i, (sort, child)) in domain.iter().zip(children).enumerate() {
                let matches = inference.node(*child).candidates.iter().any(|c| {
                    let ty = self.types.find_type(*sort);
                    ty.is_some_and(|ty| self.types.distance(c.ty, ty).is_some())
                });
                if !matches {
                    let found = self.found_text(inference, *child);
                    let message = format!(
                        "argument {} of `{name}` has sort {found}, where {} is expected",
                        i + 1,
                        sorts.text(*sort)
                    );
                    let refused = error(inference.node(*child).span, message);
                    let refused = match self.types.find_type(*sort) {
                        Some(ty) => self.with_conversion(refused, inference, *child, ty),
                        None => refused,
                    };
                    return self.with_candidates(refused, name);
                }
            }
        }
        let arguments = self.arguments_text(inference, children);
        self.with_candidates(
            error(
                span,
                format!("no overload of `{shown}` matches arguments of sorts ({arguments})"),
            ),
            name,
        )
    }

    /// Adds a note for each operation of that name.
    fn with_candidates(&self, mut diagnostic: Diagnostic, name: &str) -> Diagnostic {
        const SHOWN: usize = 12;
        let signature = &self.data.signature;
        let own =
            self.operations(name).into_iter().map(|op| signature.sorts.text(signature.op(op).sort));
        let texts: Vec<String> = own.chain(schemes(name).iter().map(Scheme::text)).collect();
        for text in texts.iter().take(SHOWN) {
            diagnostic = diagnostic.note(format!("candidate: {name}: {text}"));
        }
        if texts.len() > SHOWN {
            diagnostic = diagnostic.note(format!("and {} more", texts.len() - SHOWN));
        }
        diagnostic
    }
}

fn leaf(ty: Ty) -> TypeCandidate {
    TypeCandidate { ty, cost: 0, choice: CandidateChoice::Leaf, ambiguous: false }
}

/// Adds a candidate; the cheaper of two with the same type remains. Equal costs are ambiguous
/// unless `first_wins`.
fn insert(candidates: &mut Vec<TypeCandidate>, new: TypeCandidate, first_wins: bool) {
    match candidates.iter_mut().find(|c| c.ty == new.ty) {
        None => candidates.push(new),
        Some(old) if new.cost < old.cost => *old = new,
        Some(old) if new.cost == old.cost && new.choice != old.choice && !first_wins => {
            old.ambiguous = true
        }
        Some(_) => {}
    }
}
