//! Expressions: terms of sort `Cell` over the memory `m` and the number `b` of the first cell of
//! the frame.

use super::cells::size;
use super::{Result, Writer, reject};
use crate::typed::{
    Argument, Binary, Domain, Expr, ExprKind, FunctionId, LocalId, LocalKind, Place, TypeId,
    TypeKind, Unary,
};
use mu_base::Span;

impl Writer<'_> {
    /// Translates an operand of a simple type: undefined is an error.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<String> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.value_node(expr))
    }
    fn value_node(&mut self, expr: &Expr) -> Result<String> {
        Ok(match &expr.kind {
            ExprKind::Constant(n) => format!("ok({n})"),
            ExprKind::Read(place) => format!("def({})", self.address(place)?.read()),
            ExprKind::Unary(operator, inner) => {
                let name = match operator {
                    Unary::Not => "inv",
                    Unary::Negate => "neg",
                    Unary::Complement => "cpl",
                };
                format!("{name}({})", self.value(inner)?)
            }
            ExprKind::Binary(operator, left, right) => {
                return self.operation(*operator, left, right);
            }
            ExprKind::Conditional(condition, yes, no) => {
                let condition = self.value(condition)?;
                format!("choice({condition}, {}, {})", self.value(yes)?, self.value(no)?)
            }
            ExprKind::Quantified { all, local, domain, body } => {
                return self.quantified_expression(*all, *local, domain, body);
            }
            ExprKind::Call(function, arguments) => {
                let call = self.pure_call(*function, arguments, expr.span)?;
                format!("def(value({call}, #m))")
            }
            ExprKind::IsUndefined(place) => format!("unset({})", self.address(place)?.read()),
            ExprKind::IsMember(inner, ty) => {
                let value = self.value(inner)?;
                let k = self.member(*ty);
                format!("e{k}({value})")
            }
            ExprKind::MultisetCount { local, multiset, predicate } => {
                return self.multiset_count(*local, multiset, predicate);
            }
        })
    }
    /// Returns the number of the mapping `e` that is true for the values of a type.
    fn member(&mut self, ty: TypeId) -> usize {
        let domain = self.domain(ty);
        let k = self.fresh();
        self.map(&format!("e{k}"), "Cell -> Cell");
        self.equation(&format!("e{k}(ok(n)) = truth(f{domain}(ok(n)) != bad)"));
        self.equation(&format!("!is_ok(x) -> e{k}(x) = bad"));
        k
    }
    fn operation(&mut self, operator: Binary, left: &Expr, right: &Expr) -> Result<String> {
        let equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        if equality && !self.model.types.is_simple(left.ty) {
            let (a, b) = (self.contents(left, left.ty)?, self.contents(right, left.ty)?);
            let same = format!("same({a}, {b})");
            return Ok(if operator == Binary::Equal { same } else { format!("inv({same})") });
        }
        let (a, b) = (self.value(left)?, self.value(right)?);
        let (name, a, b) = match operator {
            Binary::Add => ("add", a, b),
            Binary::Subtract => ("sub", a, b),
            Binary::Multiply => ("mul", a, b),
            Binary::Divide => ("quo", a, b),
            Binary::Modulo => ("rem", a, b),
            Binary::ShiftLeft => ("shl", a, b),
            Binary::ShiftRight => ("shr", a, b),
            Binary::BitAnd => ("band", a, b),
            Binary::BitOr => ("bor", a, b),
            Binary::BitXor => ("bxor", a, b),
            Binary::Less => ("lt", a, b),
            Binary::LessEqual => ("le", a, b),
            Binary::Greater => ("lt", b, a),
            Binary::GreaterEqual => ("le", b, a),
            Binary::Equal => ("eq", a, b),
            Binary::NotEqual => ("ne", a, b),
            Binary::And => ("conj", a, b),
            Binary::Or => ("disj", a, b),
            Binary::Implies => ("impl", a, b),
        };
        Ok(format!("{name}({a}, {b})"))
    }
    /// Translates a value of any type that is copied to a place or parameter of type `to`: a list
    /// of cells. A copy of a place may be undefined.
    pub(super) fn contents(&mut self, expr: &Expr, to: TypeId) -> Result<String> {
        if self.model.types.is_simple(to) {
            let raw = match &expr.kind {
                ExprKind::Read(place) => self.address(place)?.read(),
                _ => self.value(expr)?,
            };
            let k = self.domain(to);
            return Ok(format!("[f{k}({raw})]"));
        }
        let n = size(&self.model.types, to);
        Ok(match &expr.kind {
            ExprKind::Read(place) => format!("part(m, {}, {n})", self.address(place)?.term()),
            ExprKind::Call(function, arguments) => {
                let call = self.pure_call(*function, arguments, expr.span)?;
                format!("values({call}, #m, {n})")
            }
            ExprKind::Conditional(condition, yes, no) => {
                let condition = self.value(condition)?;
                let (yes, no) = (self.contents(yes, to)?, self.contents(no, to)?);
                format!("if({condition} == ok(1), {yes}, if({condition} == ok(0), {no}, [bad]))")
            }
            _ => return reject(expr.span, "this value has no cells"),
        })
    }
    /// Translates the arguments of a call: a list of cells.
    pub(super) fn arguments(
        &mut self,
        function: FunctionId,
        arguments: &[Argument],
    ) -> Result<String> {
        let model = self.model;
        let parameters = &model.functions[function.index()].frame.locals;
        let mut parts = Vec::new();
        for (argument, parameter) in arguments.iter().zip(parameters) {
            parts.push(match argument {
                Argument::Value(expr) => self.contents(expr, parameter.ty)?,
                Argument::Place(place) => format!("[{}]", self.address(place)?.term()),
                Argument::Undefined(_) => {
                    format!("blank({})", size(&self.model.types, parameter.ty))
                }
            });
        }
        Ok(if parts.is_empty() { "[]".into() } else { parts.join(" ++ ") })
    }
    /// Translates a call in an expression, which may do nothing but compute its result.
    fn pure_call(
        &mut self,
        function: FunctionId,
        arguments: &[Argument],
        span: Span,
    ) -> Result<String> {
        if self.effects[function.index()] {
            return reject(
                span,
                "a call that writes outside of its function, or assumes, is an operand; assign it first",
            );
        }
        let arguments = self.arguments(function, arguments)?;
        Ok(format!("c{}(m, {arguments})", function.0))
    }

    /// Returns the cell of the variable of a quantifier or loop.
    pub(super) fn bound_cell(&self, local: LocalId) -> String {
        debug_assert_eq!(self.frame.get(local).kind, LocalKind::Bound);
        format!("b + {}", self.locals[local.index()])
    }
    fn quantified_expression(
        &mut self,
        all: bool,
        local: LocalId,
        domain: &Domain,
        body: &Expr,
    ) -> Result<String> {
        let body = self.value(body)?;
        let (k, slot) = (self.fresh(), self.bound_cell(local));
        let (connect, end) = if all { ("conj", "ok(1)") } else { ("disj", "ok(0)") };
        self.map(&format!("h{k}"), "List(Cell) # Int -> Cell");
        self.equation(&format!("h{k}(m, b) = {body}"));
        match domain {
            Domain::Type(ty) => {
                let (w, count) = (self.domain(*ty), self.model.types.count(*ty).unwrap_or(0));
                self.map(&format!("x{k}"), "List(Cell) # Int # Int -> Cell");
                self.equation(&format!(
                    "x{k}(m, b, i) = if(i < {count}, {connect}(h{k}(set(m, {slot}, ok(w{w}(i))), b), x{k}(m, b, i + 1)), {end})"
                ));
                Ok(format!("x{k}(m, b, 0)"))
            }
            Domain::Range { from, to, by } => {
                let (from, to, by) = self.range(from, to, by.as_ref())?;
                self.map(&format!("x{k}"), "List(Cell) # Int # Cell # Cell # Cell -> Cell");
                self.equation(&format!(
                    "x{k}(m, b, ok(i), ok(j), ok(n)) = if(n == 0, bad, if(n > 0 && i <= j || n < 0 && i >= j, {connect}(h{k}(set(m, {slot}, ok(i)), b), x{k}(m, b, ok(i + n), ok(j), ok(n))), {end}))"
                ));
                self.map(&format!("y{k}"), "List(Cell) # Int # Cell # Cell # Cell -> Cell");
                self.equation(&format!(
                    "y{k}(m, b, x, y, ok(n)) = if(is_ok(x) && is_ok(y), x{k}(m, b, x, y, ok(n)), bad)"
                ));
                self.equation(&format!("y{k}(m, b, x, y, undef) = bad"));
                self.equation(&format!("y{k}(m, b, x, y, bad) = bad"));
                Ok(format!("y{k}(m, b, {from}, {to}, {by})"))
            }
        }
    }
    /// Translates the bounds and the step of a range.
    pub(super) fn range(
        &mut self,
        from: &Expr,
        to: &Expr,
        by: Option<&Expr>,
    ) -> Result<(String, String, String)> {
        let (from, to) = (self.value(from)?, self.value(to)?);
        let by = match by {
            Some(by) => self.value(by)?,
            None => "ok(1)".into(),
        };
        Ok((from, to, by))
    }
    fn multiset_count(
        &mut self,
        local: LocalId,
        multiset: &Place,
        predicate: &Expr,
    ) -> Result<String> {
        let predicate = self.value(predicate)?;
        let (capacity, block) = self.blocks(multiset)?;
        let set = self.address(multiset)?.term();
        let (k, slot) = (self.fresh(), self.local(local).term());
        self.map(&format!("h{k}"), "Result # Int -> Cell");
        self.equation(&format!("h{k}(go(m), b) = {predicate}"));
        self.equation(&format!("h{k}(cut, b) = ok(0)"));
        self.equation(&format!("h{k}(fail, b) = bad"));
        self.map(&format!("x{k}"), "List(Cell) # Int # Int # Cell -> Cell");
        self.equation(&format!(
            "x{k}(m, b, i, x) = if(i < {capacity}, add(h{k}(occupied(m, x, {slot}, ok(i)), b), x{k}(m, b, i + 1, plus(x, {block}))), ok(0))"
        ));
        Ok(format!("x{k}(m, b, 0, {set})"))
    }
    /// Returns the capacity of a multiset and the number of cells of a block.
    pub(super) fn blocks(&self, multiset: &Place) -> Result<(u32, u64)> {
        match *self.model.types.kind(multiset.ty) {
            TypeKind::Multiset { capacity, element } => {
                Ok((capacity, 1 + size(&self.model.types, element)))
            }
            _ => reject(multiset.span, "this is no multiset"),
        }
    }
}
