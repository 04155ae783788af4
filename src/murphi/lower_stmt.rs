//! Lowering of statements and calls.
//!
//! A function is inlined if it is small or all its callers are, and not recursive; then its known
//! arguments are folded into its body. Otherwise it has code of its own: arguments and results are
//! in the registers of its window, values that are not simple as addresses of copies.

use crate::code::{Fault, Op, Reg, Table, UNDEFINED};
use crate::layout::Shape;
use crate::lower::{BASE, Bound, Loc, Lower, Lowered, Returns, Scope, Spot, Val};
use crate::lower_expr::{LARGE, calls};
use crate::typed::{
    Alias, AliasTarget, Argument, Case, Claim, Expr, ExprKind, FunctionId, LocalKind, Place, Put,
    Root, Stmt, StmtKind, TypeId,
};
use crate::walk;
use mu_base::{Diagnostic, Span};

/// Parts of a body that is inlined.
const INLINED: u32 = 250;
/// Most values in a jump table.
const TABLE: i64 = 512;

impl<'m> Lower<'m> {
    /// Lowers statements.
    pub(crate) fn statements(&mut self, all: &'m [Stmt]) -> Lowered<()> {
        for stmt in all {
            let mark = (self.top, self.memory_top);
            stacker::maybe_grow(64 << 10, 1 << 20, || self.statement(stmt))?;
            (self.top, self.memory_top) = mark;
        }
        Ok(())
    }
    fn statement(&mut self, stmt: &'m Stmt) -> Lowered<()> {
        match &stmt.kind {
            StmtKind::Assign { target, value } => {
                let to = self.place(target)?;
                self.assign(to, value, stmt.span)
            }
            StmtKind::Undefine(target) => {
                let spot = self.place(target)?;
                match spot.loc {
                    Loc::Reg(_) => self.store(spot, Val::Const(UNDEFINED), true),
                    loc => self.zero(loc, self.layout.size(spot.ty)),
                }
            }
            StmtKind::Clear(target) => {
                let spot = self.place(target)?;
                self.clear(spot)
            }
            StmtKind::If { clauses, otherwise } => {
                let end = self.label();
                for clause in clauses {
                    match self.constant(&clause.condition) {
                        Some(0) => continue,
                        Some(_) => {
                            self.statements(&clause.body)?;
                            self.place_label(end);
                            return Ok(());
                        }
                        None => {}
                    }
                    let next = self.label();
                    self.branch(&clause.condition, false, next)?;
                    self.statements(&clause.body)?;
                    self.emit(Op::Jump { to: end });
                    self.place_label(next);
                }
                self.statements(otherwise)?;
                self.place_label(end);
                Ok(())
            }
            StmtKind::Switch { value, cases, otherwise } => self.switch(value, cases, otherwise),
            StmtKind::For { local, domain, body } => {
                let mut size = 1;
                walk::statements(body, &mut |_| size += 1);
                self.each_value(*local, domain, size, stmt.span, &mut |lower| {
                    lower.statements(body)
                })
            }
            StmtKind::While { condition, body } => {
                let (again, end) = (self.label(), self.label());
                self.place_label(again);
                self.branch(condition, false, end)?;
                self.statements(body)?;
                self.emit(Op::Loop { to: again });
                self.place_label(end);
                Ok(())
            }
            StmtKind::Return(value) => self.returns(value.as_ref(), stmt.span),
            StmtKind::Put(Put::Value(value)) => match &value.kind {
                // A place is printed even if it is undefined; its indices are evaluated.
                ExprKind::Read(place) => self.place(place).map(|_| ()),
                _ if self.layout.simple_or_number(value.ty) => self.value(value).map(|_| ()),
                _ => self.complex(value).map(|_| ()),
            },
            StmtKind::Put(Put::Text(_)) => Ok(()),
            StmtKind::Error(message) => {
                self.fail(stmt.span, Fault::Error(message.clone()));
                Ok(())
            }
            StmtKind::Claim { number, condition } => self.claim(*number, condition, stmt.span),
            StmtKind::Alias { aliases, body } => {
                for alias in aliases {
                    self.alias(alias)?;
                }
                self.statements(body)
            }
            StmtKind::Call(function, arguments) => {
                self.call(*function, arguments, stmt.span).map(|_| ())
            }
            StmtKind::MultisetAdd { element, multiset } => {
                let element = self.place(element)?;
                let element = self.in_memory(element, stmt.span)?;
                let spot = self.place(multiset)?;
                let Shape::Multiset { element: ty, .. } = *self.layout.shape_of(spot.ty) else {
                    return Err(Diagnostic::internal("this type is no multiset"));
                };
                let element = if self.layout.same_encoding(element.ty, ty) {
                    element
                } else {
                    let loc = self.memory(self.layout.size(ty))?;
                    let copy = Spot { loc, ty };
                    self.copy(copy, element, stmt.span)?;
                    copy
                };
                let number = self.multiset(spot.ty)?;
                let (at, from) = (self.address(spot.loc)?, self.address(element.loc)?);
                let op = Op::MultisetAdd { at, from, multiset: number };
                self.emit_at(op, stmt.span, Fault::Full);
                Ok(())
            }
            StmtKind::MultisetRemove { position, multiset } => {
                let spot = self.place(multiset)?;
                let slot = self.position(*position)?;
                self.remove(spot, slot, stmt.span)
            }
            StmtKind::MultisetRemovePredicate { local, multiset, predicate } => {
                let spot = self.place(multiset)?;
                self.each_element(*local, (spot, multiset.span), &mut |lower| {
                    let skip = lower.label();
                    lower.branch(predicate, false, skip)?;
                    let slot = lower.position(*local)?;
                    lower.remove(spot, slot, stmt.span)?;
                    lower.place_label(skip);
                    Ok(())
                })
            }
        }
    }
    fn remove(&mut self, spot: Spot, slot: Val, span: Span) -> Lowered<()> {
        let mark = self.top;
        let number = self.multiset(spot.ty)?;
        let at = self.address(spot.loc)?;
        let a = self.in_register(slot)?;
        let op = Op::MultisetRemove { at, a, multiset: number };
        self.emit_at(op, span, Fault::NoElement);
        self.top = mark;
        Ok(())
    }
    /// Returns the spot, or a copy in memory of a value in a register.
    fn in_memory(&mut self, spot: Spot, span: Span) -> Lowered<Spot> {
        if matches!(spot.loc, Loc::At(..)) {
            return Ok(spot);
        }
        let loc = self.memory(self.layout.size(spot.ty))?;
        let copy = Spot { loc, ty: spot.ty };
        self.copy(copy, spot, span)?;
        Ok(copy)
    }
    /// Assigns an expression of any type.
    fn assign(&mut self, to: Spot, value: &'m Expr, span: Span) -> Lowered<()> {
        if !self.layout.simple_or_number(value.ty) {
            let from = self.complex(value)?;
            return self.copy(to, from, span);
        }
        if let (Loc::At(..), ExprKind::Read(place), None) =
            (to.loc, &value.kind, self.constant(value))
        {
            let known = match (place.root, &place.steps[..]) {
                (crate::typed::Root::Local(l), []) => {
                    !matches!(self.scope.bound[l.index()], Bound::Spot(_))
                }
                _ => false,
            };
            if !known {
                let from = self.place(place)?;
                if self.layout.simple(from.ty).is_some() && matches!(from.loc, Loc::At(..)) {
                    let same = self.layout.same_encoding(to.ty, from.ty);
                    if same {
                        return self.copy(to, from, span);
                    }
                }
                let a = self.load(from, false, place.span)?;
                if !self.fits(value, to.ty) {
                    self.check_range(Val::Reg(a), to.ty, span)?;
                }
                return self.store(to, Val::Reg(a), true);
            }
        }
        let (from, maybe) = self.evaluate_copy(value)?;
        if !self.fits(value, to.ty) {
            self.check_range(from, to.ty, span)?;
        }
        self.store(to, from, maybe)
    }
    /// Evaluates an expression of a simple type where an undefined value is copied. True if it may
    /// be undefined.
    fn evaluate_copy(&mut self, value: &'m Expr) -> Lowered<(Val, bool)> {
        if let Some(value) = self.constant(value) {
            return Ok((Val::Const(value), false));
        }
        match &value.kind {
            ExprKind::Read(place) => Ok((self.peek(place)?, true)),
            ExprKind::Call(function, arguments) => {
                match self.call(*function, arguments, value.span)? {
                    Some(Spot { loc: Loc::Reg(a), .. }) => Ok((Val::Reg(a), true)),
                    _ => Err(Diagnostic::internal("a procedure has no value")),
                }
            }
            _ => Ok((self.value(value)?, false)),
        }
    }
    fn clear(&mut self, spot: Spot) -> Lowered<()> {
        let mark = self.top;
        match self.layout.shape_of(spot.ty).clone() {
            Shape::Simple(simple) => {
                let first = simple.parts.first().map_or(UNDEFINED, |p| p.0);
                self.store(spot, Val::Const(first), true)?;
            }
            Shape::Record(fields) => {
                let Loc::At(base, at) = spot.loc else {
                    return Err(Diagnostic::internal("a record in a register"));
                };
                for (offset, ty) in fields {
                    self.clear(Spot { loc: Loc::At(base, at + offset), ty })?;
                }
            }
            Shape::Array { low, count, stride, element, index } => {
                let Loc::At(base, at) = spot.loc else {
                    return Err(Diagnostic::internal("an array in a register"));
                };
                // Elements in the gaps of an index type stay undefined, as no part of the value.
                let over = self.simple(index)?;
                let mut all = (0..count).filter(|n| over.contains(low + i64::from(*n)));
                let place = |n: u32| Spot { loc: Loc::At(base, at + n * stride), ty: element };
                let Some(first) = all.next().map(place) else { return Ok(()) };
                self.clear(first)?;
                for next in all.map(place) {
                    self.copy(next, first, Span::default())?;
                }
            }
            Shape::Multiset { .. } => self.zero(spot.loc, self.layout.size(spot.ty))?,
            Shape::None => {}
        }
        self.top = mark;
        Ok(())
    }
    fn switch(&mut self, value: &'m Expr, cases: &'m [Case], otherwise: &'m [Stmt]) -> Lowered<()> {
        let known: Option<Vec<Vec<i64>>> =
            cases.iter().map(|c| c.matches.iter().map(|m| self.constant(m)).collect()).collect();
        if let (Some(value), Some(known)) = (self.constant(value), &known) {
            let found = known.iter().position(|k| k.contains(&value));
            return match found {
                Some(at) => self.statements(&cases[at].body),
                None => self.statements(otherwise),
            };
        }
        let mark = self.top;
        let scrutinee = self.value(value)?;
        let mut a = self.in_register(scrutinee)?;
        if cases.iter().flat_map(|c| &c.matches).any(calls) {
            let d = self.register()?;
            self.emit(Op::Move { d, a });
            a = d;
        }
        let end = self.label();
        let labels: Vec<u32> = cases.iter().map(|_| self.label()).collect();
        let other = self.label();
        let all = known.iter().flatten().flatten();
        let (low, high) = (all.clone().min().copied(), all.max().copied());
        match (&known, low, high) {
            (Some(known), Some(low), Some(high))
                if cases.len() >= 3 && high.saturating_sub(low) < TABLE =>
            {
                let mut targets = vec![other; (high - low + 1) as usize];
                for (values, label) in known.iter().zip(&labels).rev() {
                    for value in values {
                        targets[(value - low) as usize] = *label;
                    }
                }
                self.tables.push(Table { low, targets, otherwise: other });
                let table = self.tables.len() as u32 - 1;
                self.emit(Op::Switch { a, table });
            }
            _ => {
                for (case, to) in cases.iter().zip(&labels) {
                    for expr in &case.matches {
                        let mark = self.top;
                        let to = *to;
                        match self.constant(expr).map(i32::try_from) {
                            Some(Ok(value)) => self.emit(Op::JumpEqual { a, value, to }),
                            _ => {
                                let value = self.value(expr)?;
                                let b = self.in_register(value)?;
                                let relation = crate::code::Relation::Equal;
                                self.emit(Op::JumpCompare { relation, a, b, to });
                            }
                        }
                        self.top = mark;
                    }
                }
                self.emit(Op::Jump { to: other });
            }
        }
        self.top = mark;
        for (case, label) in cases.iter().zip(labels) {
            self.place_label(label);
            self.statements(&case.body)?;
            self.emit(Op::Jump { to: end });
        }
        self.place_label(other);
        self.statements(otherwise)?;
        self.place_label(end);
        Ok(())
    }
    fn claim(&mut self, number: u32, condition: &'m Expr, span: Span) -> Lowered<()> {
        let end = self.label();
        match self.model.claims[number as usize].claim {
            Claim::Assert => {
                self.branch(condition, true, end)?;
                self.fail(span, Fault::Assertion(number));
            }
            Claim::Assume => {
                self.branch(condition, true, end)?;
                self.emit(Op::Discard);
            }
            Claim::Cover => {
                self.branch(condition, false, end)?;
                self.emit(Op::Cover { claim: number });
            }
            Claim::Liveness => return Err(Diagnostic::internal("liveness in a statement")),
        }
        self.place_label(end);
        Ok(())
    }
    /// Binds an alias. Its registers stay allocated.
    pub(crate) fn alias(&mut self, alias: &'m Alias) -> Lowered<()> {
        let bound = match &alias.target {
            AliasTarget::Place(place) => Bound::Spot(self.place(place)?),
            AliasTarget::Value(value) if self.layout.simple_or_number(value.ty) => {
                match self.constant(value) {
                    Some(value) => Bound::Const(value),
                    None => {
                        let reg = self.register()?;
                        let value = self.value(value)?;
                        self.move_to(reg, value);
                        self.top = u16::from(reg) + 1;
                        Bound::Reg { reg, maybe: false }
                    }
                }
            }
            AliasTarget::Value(value) => Bound::Spot(self.complex(value)?),
        };
        self.scope.bound[alias.local.index()] = bound;
        Ok(())
    }
    fn returns(&mut self, value: Option<&'m Expr>, span: Span) -> Lowered<()> {
        let returns = self.scope.returns;
        let result = match returns {
            Returns::Body => None,
            Returns::Inline { result, .. } | Returns::Call { result } => result,
        };
        if let (Some(result), Some(value)) = (result, value) {
            self.assign_result(result, value, span)?;
        }
        match returns {
            Returns::Body => self.emit(Op::Done),
            Returns::Inline { end, .. } => self.emit(Op::Jump { to: end }),
            Returns::Call { .. } => self.emit(Op::Return),
        }
        Ok(())
    }
    fn assign_result(&mut self, result: Spot, value: &'m Expr, span: Span) -> Lowered<()> {
        if self.layout.simple_or_number(value.ty) {
            let (from, maybe) = self.evaluate_copy(value)?;
            if maybe || !self.fits(value, result.ty) {
                self.check_range(from, result.ty, span)?;
            }
            return self.store(result, from, maybe);
        }
        let from = self.complex(value)?;
        self.copy(result, from, span)
    }

    // ---- calls -------------------------------------------------------------------------------

    /// Calls a function. Returns the spot of its result.
    pub(crate) fn call(
        &mut self,
        id: FunctionId,
        arguments: &'m [Argument],
        span: Span,
    ) -> Lowered<Option<Spot>> {
        let called = self.functions[id.index()];
        let inline = !called.recursive
            && (called.size <= INLINED && self.code.len() < LARGE || called.size <= 20);
        if inline { self.inline(id, arguments, span) } else { self.call_code(id, arguments, span) }
    }
    fn inline(
        &mut self,
        id: FunctionId,
        arguments: &'m [Argument],
        span: Span,
    ) -> Lowered<Option<Spot>> {
        let function = &self.model.functions[id.index()];
        let result = match function.result {
            Some(ty) if self.layout.simple(ty).is_some() => {
                Some(Spot { loc: Loc::Reg(self.register()?), ty })
            }
            Some(ty) => Some(Spot { loc: self.memory(self.layout.size(ty))?, ty }),
            None => None,
        };
        let mark = self.top;
        let mut bound = vec![Bound::Nothing; function.frame.locals.len()];
        for (at, argument) in arguments.iter().enumerate() {
            bound[at] = self.argument(argument, function.frame.locals[at].ty, span)?;
        }
        let end = self.label();
        let scope = Scope {
            frame: &function.frame,
            bound,
            returns: Returns::Inline { result, end },
            recursive: self.scope.recursive,
        };
        let outer = std::mem::replace(&mut self.scope, scope);
        let addressed = self.addressed_locals(&function.body);
        self.locals(arguments.len(), &addressed)?;
        self.statements(&function.body)?;
        if result.is_some() && !ends_with_return(&function.body) {
            self.fail(span, Fault::NoReturn(function.name.clone()));
        }
        self.place_label(end);
        self.scope = outer;
        self.top = mark;
        Ok(result)
    }
    /// Evaluates an argument of an inlined call.
    fn argument(&mut self, argument: &'m Argument, ty: TypeId, span: Span) -> Lowered<Bound> {
        match argument {
            Argument::Place(place) => Ok(Bound::Spot(self.place(place)?)),
            Argument::Undefined(_) if self.layout.simple(ty).is_some() => {
                Ok(Bound::Const(UNDEFINED))
            }
            Argument::Undefined(_) => {
                let bits = self.layout.size(ty);
                let loc = self.memory(bits)?;
                self.zero(loc, bits)?;
                Ok(Bound::Spot(Spot { loc, ty }))
            }
            Argument::Value(value) if self.layout.simple_or_number(value.ty) => {
                if let Some(known) = self.constant(value) {
                    self.check_range(Val::Const(known), ty, span)?;
                    return Ok(Bound::Const(known));
                }
                // The callee writes neither its parameter nor a register of its caller.
                if let ExprKind::Read(Place { root: Root::Local(local), steps, .. }) = &value.kind
                    && let (Bound::Reg { reg, maybe }, []) =
                        (self.scope.bound[local.index()], &steps[..])
                {
                    if !self.fits(value, ty) {
                        self.check_range(Val::Reg(reg), ty, span)?;
                    }
                    return Ok(Bound::Reg { reg, maybe });
                }
                let reg = self.register()?;
                let mark = self.top;
                let (from, maybe) = self.evaluate_copy(value)?;
                if !self.fits(value, ty) {
                    self.check_range(from, ty, span)?;
                }
                if from == Val::Const(UNDEFINED) {
                    return Ok(Bound::Const(UNDEFINED));
                }
                self.result_to(reg, from);
                self.top = mark;
                Ok(Bound::Reg { reg, maybe })
            }
            Argument::Value(value) => {
                let from = self.complex(value)?;
                let loc = self.memory(self.layout.size(ty))?;
                let copy = Spot { loc, ty };
                self.copy(copy, from, span)?;
                Ok(Bound::Spot(copy))
            }
        }
    }
    /// Calls the code of a function.
    fn call_code(
        &mut self,
        id: FunctionId,
        arguments: &'m [Argument],
        span: Span,
    ) -> Lowered<Option<Spot>> {
        let function = &self.model.functions[id.index()];
        if self.entries[id.index()] == u32::MAX && !self.pending.contains(&id) {
            self.pending.push(id);
        }
        let memory = match function.result {
            Some(ty) if self.layout.simple(ty).is_none() => {
                Some(Spot { loc: self.memory(self.layout.size(ty))?, ty })
            }
            _ => None,
        };
        // The window begins behind the arguments' temporaries, which may be needed by addresses.
        let mut values: Vec<Val> = Vec::new();
        for (argument, local) in arguments.iter().zip(&function.frame.locals) {
            let value = match self.argument(argument, local.ty, span)? {
                Bound::Const(value) => Val::Const(value),
                Bound::Reg { reg, .. } => Val::Reg(reg),
                Bound::Spot(spot) if local.kind == LocalKind::Value => {
                    Val::Reg(self.address(spot.loc)?)
                }
                Bound::Spot(spot) => {
                    if !self.layout.same_encoding(spot.ty, local.ty) {
                        let text = format!(
                            "a place of type `{}` is passed to a parameter of type `{}`",
                            self.model.types.text(spot.ty),
                            self.model.types.text(local.ty)
                        );
                        let stage = mu_base::Stage::Unsupported;
                        return Err(Diagnostic::at(stage, span, text));
                    }
                    match spot.loc {
                        Loc::Reg(_) => {
                            return Err(Diagnostic::internal("a register is passed by reference"));
                        }
                        loc => Val::Reg(self.address(loc)?),
                    }
                }
                Bound::Nothing => return Err(Diagnostic::internal("an argument is missing")),
            };
            values.push(value);
        }
        if let Some(spot) = memory {
            values.push(Val::Reg(self.address(spot.loc)?));
        }
        let window = self.top;
        for value in values {
            let d = self.register()?;
            self.move_to(d, value);
        }
        self.top = window;
        let window = self.register()?;
        let fault = Fault::Depth;
        self.emit_at(Op::Call { function: id.0, window }, span, fault);
        Ok(match (memory, function.result) {
            (Some(spot), _) => Some(spot),
            (None, Some(ty)) => Some(Spot { loc: Loc::Reg(window as Reg), ty }),
            (None, None) => None,
        })
    }
    /// Evaluates the place of a multiset for `choose`.
    pub(crate) fn choose_place(&mut self, multiset: &'m Place) -> Lowered<Spot> {
        self.place(multiset)
    }
}

/// True if the last statement returns.
fn ends_with_return(body: &[Stmt]) -> bool {
    matches!(body.last(), Some(Stmt { kind: StmtKind::Return(_), .. }))
}

// The base of a recursive function's locals is no register that code allocates.
const _: () = assert!(BASE > 250);
