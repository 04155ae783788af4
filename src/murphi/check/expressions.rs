//! Expressions and places.

use super::constants::{fold_binary, fold_unary, value};
use super::types::{has_multiset, same};
use super::{Checker, Meaning, Result, wrong};
use crate::ast::{self, BinarySign, Expr as Tree, ExprKind as Kind, Name, Quantifier, UnarySign};
use crate::typed::{
    Argument, Binary, Domain, Expr, ExprKind, FunctionId, LocalId, LocalKind, Place, Root, Step,
    TypeId, TypeKind, Unary,
};
use mu_base::{Diagnostic, Span, Stage};

/// Functions of real numbers, which CMurphi reserves.
const REAL_FUNCTIONS: [&str; 18] = [
    "log", "log10", "exp", "sin", "cos", "tan", "fabs", "floor", "ceil", "sqrt", "fmod", "pow",
    "asin", "acos", "atan", "sinh", "cosh", "tanh",
];
/// Reason why a bound variable cannot be written.
pub(super) const BOUND: &str = "it is the variable of a loop, quantifier or ruleset";

fn expr(kind: ExprKind, ty: TypeId, span: Span) -> Expr {
    Expr { kind, ty, span }
}
fn constant(value: i64, ty: TypeId, span: Span) -> Expr {
    expr(ExprKind::Constant(value), ty, span)
}

/// Place with the reason why it cannot be written, if it cannot.
pub(super) type Target = (Place, Option<&'static str>);

impl Checker<'_> {
    /// Checks an expression.
    pub(super) fn expr(&mut self, tree: &Tree) -> Result<Expr> {
        stacker::maybe_grow(128 * 1024, 1024 * 1024, || self.expr_node(tree))
    }
    fn expr_node(&mut self, tree: &Tree) -> Result<Expr> {
        let span = tree.span;
        match &tree.kind {
            Kind::Number(n) => Ok(constant(*n, TypeId::INTEGER, span)),
            Kind::Name(name) => {
                if self.is_undefined_word(tree) {
                    return wrong(
                        span,
                        "`undefined` is no operand, expected an argument or the right side of `:=`",
                    );
                }
                match self.resolve(name, span, "a variable or constant")? {
                    Meaning::Constant(ty, value) => Ok(constant(value, ty, span)),
                    Meaning::Type(_) => {
                        wrong(span, format!("`{name}` is a type, expected a value"))
                    }
                    Meaning::Function(_) => wrong(
                        span,
                        format!("`{name}` is a function, expected its arguments: `{name}(…)`"),
                    ),
                    _ => self.read(tree),
                }
            }
            Kind::Field(..) | Kind::Index(..) => self.read(tree),
            Kind::Call(name, arguments) => self.call_expression(name, arguments, span),
            Kind::Unary(sign, inner) => self.unary(*sign, inner, span),
            Kind::Binary(sign, left, right) => {
                let left = self.expr(left)?;
                let right = self.expr(right)?;
                self.binary(*sign, left, right, span)
            }
            Kind::Conditional(condition, yes, no) => {
                let condition = self.boolean(condition, "the condition of `?:`")?;
                let (yes, no) = (self.expr(yes)?, self.expr(no)?);
                self.conditional(condition, yes, no, span)
            }
            Kind::Quantified(all, quantifiers, body) => {
                self.in_scope(|c| c.quantified_expression(*all, quantifiers, body, span))
            }
            Kind::IsUndefined(place) => {
                let (place, _) = self.place(place)?;
                if !self.is_simple(place.ty) {
                    let message = format!(
                        "`isundefined` of a value of {}, expected a simple type",
                        self.type_text(place.ty)
                    );
                    return wrong(place.span, message);
                }
                Ok(expr(ExprKind::IsUndefined(place), TypeId::BOOLEAN, span))
            }
            Kind::IsMember(inner, ty) => {
                let value = self.simple(inner, "`ismember`")?;
                let of = self.type_of(ty)?;
                if !self.is_simple(of) || !self.agree(value.ty, of) {
                    let message = format!(
                        "a value of {} is never in {}",
                        self.type_text(value.ty),
                        self.type_text(of)
                    );
                    return wrong(ty.span, message);
                }
                Ok(expr(ExprKind::IsMember(Box::new(value), of), TypeId::BOOLEAN, span))
            }
            Kind::MultisetCount(name, set, predicate) => {
                let (local, multiset, predicate) = self.multiset_predicate(name, set, predicate)?;
                let predicate = Box::new(predicate);
                let kind = ExprKind::MultisetCount { local, multiset, predicate };
                Ok(expr(kind, TypeId::INTEGER, span))
            }
        }
    }
    /// Checks a position and a predicate on it.
    pub(super) fn multiset_predicate(
        &mut self,
        name: &Name,
        set: &Tree,
        predicate: &Tree,
    ) -> Result<(LocalId, Place, Expr)> {
        self.in_scope(|c| {
            let (local, multiset) = c.position(name, set)?;
            let predicate = c.boolean(predicate, "the predicate on elements of a multiset")?;
            Ok((local, multiset, predicate))
        })
    }
    /// Checks a multiset and declares a position in it.
    pub(super) fn position(&mut self, name: &Name, set: &Tree) -> Result<(LocalId, Place)> {
        let (multiset, _) = self.multiset(set)?;
        let ty = self.position_type(multiset.ty, name.span);
        let local = self.declare_local(name, ty, LocalKind::Position, Some(BOUND), "a position");
        Ok((local, multiset))
    }
    fn position_type(&mut self, multiset: TypeId, span: Span) -> TypeId {
        let found = self.out.types.all.iter().position(
            |t| matches!(t.kind, TypeKind::Position { multiset: other } if other == multiset),
        );
        let kind = TypeKind::Position { multiset };
        found.map_or_else(
            || self.out.types.add(crate::typed::Type { name: None, span, kind }),
            TypeId::new,
        )
    }
    /// Checks a place that is a multiset.
    pub(super) fn multiset(&mut self, tree: &Tree) -> Result<Target> {
        let target = self.place(tree)?;
        if matches!(self.out.types.kind(target.0.ty), TypeKind::Multiset { .. }) {
            return Ok(target);
        }
        let message = format!("found {}, expected a multiset", self.type_text(target.0.ty));
        wrong(tree.span, message)
    }
    /// Checks an expression of a simple type.
    pub(super) fn simple(&mut self, tree: &Tree, of: &str) -> Result<Expr> {
        let value = self.expr(tree)?;
        if self.is_simple(value.ty) {
            return Ok(value);
        }
        wrong(
            tree.span,
            format!("{of} has a value of {}, expected a simple type", self.type_text(value.ty)),
        )
    }
    /// Checks a boolean expression.
    pub(super) fn boolean(&mut self, tree: &Tree, of: &str) -> Result<Expr> {
        let value = self.expr(tree)?;
        if self.is_boolean(value.ty) {
            return Ok(value);
        }
        let text = format!("{of} is a value of {}, expected boolean", self.type_text(value.ty));
        let error = Diagnostic::at(Stage::Type, tree.span, text);
        Err(match self.agree(value.ty, TypeId::BOOLEAN) {
            true => error.note("not all values of the union are booleans; compare it with `true`"),
            false => error,
        })
    }
    /// True if all values of a type are booleans.
    fn is_boolean(&self, ty: TypeId) -> bool {
        let is_union = matches!(self.out.types.kind(ty), TypeKind::Union { .. });
        self.agree(ty, TypeId::BOOLEAN) && !is_union
    }
    /// Checks a numeric expression.
    pub(super) fn integer(&mut self, tree: &Tree, of: &str) -> Result<Expr> {
        let value = self.expr(tree)?;
        if self.out.types.is_integer(value.ty) {
            return Ok(value);
        }
        wrong(
            tree.span,
            format!("{of} is a value of {}, expected a number", self.type_text(value.ty)),
        )
    }
    fn read(&mut self, tree: &Tree) -> Result<Expr> {
        let (place, _) = self.place(tree)?;
        let ty = place.ty;
        Ok(expr(ExprKind::Read(place), ty, tree.span))
    }

    fn unary(&mut self, sign: UnarySign, inner: &Tree, span: Span) -> Result<Expr> {
        let (value, operator) = match sign {
            UnarySign::Not => (self.boolean(inner, "the operand of `!`")?, Unary::Not),
            UnarySign::Minus => (self.integer(inner, "the operand of `-`")?, Unary::Negate),
            UnarySign::Tilde => (self.integer(inner, "the operand of `~`")?, Unary::Complement),
            UnarySign::Plus => {
                let value = self.integer(inner, "the operand of `+`")?;
                return Ok(Expr { span, ..value });
            }
        };
        let ty = if operator == Unary::Not { TypeId::BOOLEAN } else { TypeId::INTEGER };
        if let ExprKind::Constant(n) = value.kind
            && let Some(folded) = fold_unary(operator, n)
        {
            return Ok(constant(folded, ty, span));
        }
        Ok(expr(ExprKind::Unary(operator, Box::new(value)), ty, span))
    }
    fn binary(&mut self, sign: BinarySign, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        let types = &self.out.types;
        let integers = types.is_integer(left.ty) && types.is_integer(right.ty);
        let booleans = self.is_boolean(left.ty) && self.is_boolean(right.ty);
        let (operator, ty) = match sign {
            BinarySign::Implies if booleans => (Binary::Implies, TypeId::BOOLEAN),
            BinarySign::Or | BinarySign::Pipe if booleans => (Binary::Or, TypeId::BOOLEAN),
            BinarySign::And | BinarySign::Ampersand if booleans => (Binary::And, TypeId::BOOLEAN),
            BinarySign::Pipe if integers => (Binary::BitOr, TypeId::INTEGER),
            BinarySign::Ampersand if integers => (Binary::BitAnd, TypeId::INTEGER),
            BinarySign::Caret if integers => (Binary::BitXor, TypeId::INTEGER),
            BinarySign::Plus if integers => (Binary::Add, TypeId::INTEGER),
            BinarySign::Minus if integers => (Binary::Subtract, TypeId::INTEGER),
            BinarySign::Times if integers => (Binary::Multiply, TypeId::INTEGER),
            BinarySign::Divide if integers => (Binary::Divide, TypeId::INTEGER),
            BinarySign::Percent if integers => (Binary::Modulo, TypeId::INTEGER),
            BinarySign::ShiftLeft if integers => (Binary::ShiftLeft, TypeId::INTEGER),
            BinarySign::ShiftRight if integers => (Binary::ShiftRight, TypeId::INTEGER),
            BinarySign::Less if integers => (Binary::Less, TypeId::BOOLEAN),
            BinarySign::LessEqual if integers => (Binary::LessEqual, TypeId::BOOLEAN),
            BinarySign::Greater if integers => (Binary::Greater, TypeId::BOOLEAN),
            BinarySign::GreaterEqual if integers => (Binary::GreaterEqual, TypeId::BOOLEAN),
            BinarySign::Equal | BinarySign::NotEqual if self.comparable(left.ty, right.ty) => {
                let equal = sign == BinarySign::Equal;
                (if equal { Binary::Equal } else { Binary::NotEqual }, TypeId::BOOLEAN)
            }
            _ => return Err(self.mismatch(sign, &left, &right, span)),
        };
        if let (ExprKind::Constant(a), ExprKind::Constant(b)) = (&left.kind, &right.kind)
            && let Some(folded) = fold_binary(operator, *a, *b)
        {
            return Ok(constant(folded, ty, span));
        }
        Ok(expr(ExprKind::Binary(operator, Box::new(left), Box::new(right)), ty, span))
    }
    fn comparable(&self, a: TypeId, b: TypeId) -> bool {
        let position = |ty| matches!(self.out.types.kind(ty), TypeKind::Position { .. });
        self.agree(a, b) && !has_multiset(&self.out.types, a) && !position(a)
    }
    fn mismatch(&self, sign: BinarySign, left: &Expr, right: &Expr, span: Span) -> Diagnostic {
        let expected = match sign {
            BinarySign::Implies | BinarySign::Or | BinarySign::And => "two booleans",
            BinarySign::Pipe | BinarySign::Ampersand => "two booleans or two numbers",
            BinarySign::Equal | BinarySign::NotEqual => "two values of equal types",
            _ => "two numbers",
        };
        let message = format!(
            "`{}` between {} and {}, expected {expected}",
            sign.text(),
            self.type_text(left.ty),
            self.type_text(right.ty)
        );
        let mut error = Diagnostic::at(Stage::Type, span, message);
        let scalarset = |e: &Expr| matches!(self.out.types.kind(e.ty), TypeKind::Scalarset { .. });
        if scalarset(left) || scalarset(right) {
            error = error.note("elements of a scalarset have no order and are no numbers");
        }
        error
    }
    fn conditional(&mut self, condition: Expr, yes: Expr, no: Expr, span: Span) -> Result<Expr> {
        if !self.agree(yes.ty, no.ty) {
            let message = format!(
                "`?:` between {} and {}, expected two values of equal types",
                self.type_text(yes.ty),
                self.type_text(no.ty)
            );
            return wrong(span, message);
        }
        if let ExprKind::Constant(n) = condition.kind {
            return Ok(Expr { span, ..if n != 0 { yes } else { no } });
        }
        let types = &self.out.types;
        let ty = if same(types, yes.ty, no.ty) {
            yes.ty
        } else if types.is_integer(yes.ty) {
            TypeId::INTEGER
        } else {
            self.union_of(yes.ty, no.ty, span)
        };
        let parts = (Box::new(condition), Box::new(yes), Box::new(no));
        Ok(expr(ExprKind::Conditional(parts.0, parts.1, parts.2), ty, span))
    }
    fn quantified_expression(
        &mut self,
        all: bool,
        quantifiers: &[Quantifier],
        body: &Tree,
        span: Span,
    ) -> Result<Expr> {
        let mut bound = Vec::new();
        for quantifier in quantifiers {
            bound.push(self.quantifier(quantifier)?);
        }
        let word = if all { "the body of `forall`" } else { "the body of `exists`" };
        let mut result = self.boolean(body, word)?;
        for (local, domain) in bound.into_iter().rev() {
            let (domain, body) = (Box::new(domain), Box::new(result));
            let kind = ExprKind::Quantified { all, local, domain, body };
            result = expr(kind, TypeId::BOOLEAN, span);
        }
        Ok(result)
    }
    /// Checks a quantifier and declares its variable.
    pub(super) fn quantifier(&mut self, tree: &Quantifier) -> Result<(LocalId, Domain)> {
        let (ty, domain) = match &tree.domain {
            ast::Domain::Type(of) => {
                let ty = self.type_of(of)?;
                if !self.is_simple(ty) {
                    let message = format!(
                        "a variable cannot take all values of {}, expected a simple type",
                        self.type_text(ty)
                    );
                    return wrong(of.span, message);
                }
                (ty, Domain::Type(ty))
            }
            ast::Domain::Range(from, to, by) => {
                let first = self.integer(from, "the first value")?;
                let last = self.integer(to, "the last value")?;
                let step = match by {
                    None => None,
                    Some(by) => {
                        let step = self.integer(by, "the step")?;
                        if value(&step) == Some(0) {
                            return wrong(by.span, "a loop in steps of 0 does not end");
                        }
                        Some(step)
                    }
                };
                // Bounds that are constant give the variable a range.
                let ty = match (value(&first), value(&last)) {
                    (Some(a), Some(b)) => self.add_range(tree.span, a.min(b), a.max(b)),
                    _ => TypeId::INTEGER,
                };
                (ty, Domain::Range { from: first, to: last, by: step })
            }
        };
        let local = self.declare_local(&tree.name, ty, LocalKind::Bound, Some(BOUND), BOUND);
        Ok((local, domain))
    }

    fn call_expression(&mut self, name: &Name, arguments: &[Tree], span: Span) -> Result<Expr> {
        let (id, arguments) = self.call(name, arguments, span)?;
        match self.out.functions[id.index()].result {
            Some(ty) => Ok(expr(ExprKind::Call(id, arguments), ty, span)),
            None => wrong(
                span,
                format!("`{}` is a procedure and has no value, expected a function", name.text),
            ),
        }
    }
    /// Checks a call.
    pub(super) fn call(
        &mut self,
        name: &Name,
        trees: &[Tree],
        span: Span,
    ) -> Result<(FunctionId, Vec<Argument>)> {
        let real = REAL_FUNCTIONS.iter().find(|f| name.text.eq_ignore_ascii_case(f));
        if let Some(real) = real.filter(|_| self.find(&name.text).is_none()) {
            let message = format!("`{real}` is not supported: there are no real numbers");
            return Err(Diagnostic::at(Stage::Unsupported, name.span, message));
        }
        let id = match self.resolve(&name.text, name.span, "a function or procedure")? {
            Meaning::Function(id) => id,
            other => {
                let message = format!("`{}` is a {}, expected a function", name.text, other.word());
                return wrong(name.span, message);
            }
        };
        let function = &self.out.functions[id.index()];
        let declared = function.span;
        let parameters: Vec<_> = function.frame.locals[..function.parameters as usize].to_vec();
        if parameters.len() != trees.len() {
            let message = format!(
                "`{}` has {}, found {}",
                name.text,
                count_text(parameters.len(), "parameter"),
                count_text(trees.len(), "argument")
            );
            return Err(Diagnostic::at(Stage::Type, span, message)
                .related(declared, "the function is declared here"));
        }
        let mut arguments = Vec::with_capacity(trees.len());
        for (parameter, tree) in parameters.iter().zip(trees) {
            let by_reference = parameter.kind == LocalKind::Reference;
            let argument = self.argument(tree, parameter.ty, by_reference).map_err(|e| {
                if e.message.is_empty() {
                    e
                } else {
                    e.related(parameter.span, "the parameter is declared here")
                }
            })?;
            arguments.push(argument);
        }
        Ok((id, arguments))
    }
    fn argument(&mut self, tree: &Tree, ty: TypeId, by_reference: bool) -> Result<Argument> {
        if !by_reference {
            if self.is_undefined_word(tree) {
                return Ok(Argument::Undefined(tree.span));
            }
            let value = self.expr(tree)?;
            if self.agree(value.ty, ty) {
                return Ok(Argument::Value(value));
            }
            let message = format!(
                "the argument has a value of {}, expected {}",
                self.type_text(value.ty),
                self.type_text(ty)
            );
            return wrong(tree.span, message);
        }
        let place = self.target(tree, "passed to a `var` parameter")?;
        if same(&self.out.types, place.ty, ty) {
            return Ok(Argument::Place(place));
        }
        let message = format!(
            "the argument of a `var` parameter has the type {}, expected exactly {}",
            self.type_text(place.ty),
            self.type_text(ty)
        );
        wrong(tree.span, message)
    }

    /// Checks a place that is written.
    pub(super) fn target(&mut self, tree: &Tree, done: &str) -> Result<Place> {
        let (place, readonly) = self.place(tree)?;
        if let Some(reason) = readonly {
            let written = mu_base::naming::line(self.source_text(tree.span));
            return wrong(tree.span, format!("`{written}` cannot be {done}: {reason}"));
        }
        Ok(place)
    }
    /// Checks a place.
    pub(super) fn place(&mut self, tree: &Tree) -> Result<Target> {
        match &tree.kind {
            Kind::Name(name) => {
                let (root, ty, readonly) = match self.resolve(name, tree.span, "a variable")? {
                    Meaning::Global(id) => {
                        (Root::Global(id), self.out.globals[id.index()].ty, None)
                    }
                    Meaning::Local(id, readonly) => {
                        (Root::Local(id), self.frame.get(id).ty, readonly)
                    }
                    other => {
                        let message =
                            format!("`{name}` is a {}, expected a variable", other.word());
                        return wrong(tree.span, message);
                    }
                };
                Ok((Place { root, steps: Vec::new(), ty, span: tree.span }, readonly))
            }
            Kind::Field(record, field) => {
                let (mut place, readonly) = self.place(record)?;
                let TypeKind::Record { fields } = self.out.types.kind(place.ty) else {
                    let message = format!(
                        "the field `{}` of a value of {}, expected a record",
                        field.text,
                        self.type_text(place.ty)
                    );
                    return wrong(field.span, message);
                };
                let Some(at) = fields.iter().position(|f| f.name == field.text) else {
                    let names = fields.iter().map(|f| f.name.as_str());
                    let all = names.collect::<Vec<_>>().join("`, `");
                    let message =
                        format!("{} has no field `{}`", self.type_text(place.ty), field.text);
                    return Err(Diagnostic::at(Stage::Type, field.span, message)
                        .note(format!("its fields: `{all}`")));
                };
                let ty = fields[at].ty;
                let (record, at) = (place.ty, at as u32);
                if let Some(binding) = self.fields.get(&(record, at)).copied() {
                    self.mention(field.span, binding);
                }
                place.steps.push(Step::Field { record, field: at, span: field.span });
                (place.ty, place.span) = (ty, tree.span);
                Ok((place, readonly))
            }
            Kind::Index(array, index, brackets) => {
                let (place, readonly) = self.place(array)?;
                Ok((self.index(place, index, *brackets, tree.span)?, readonly))
            }
            _ => {
                let message = "found a value, expected a variable or a part of one";
                wrong(tree.span, message)
            }
        }
    }
    fn index(
        &mut self,
        mut place: Place,
        index: &Tree,
        brackets: Span,
        span: Span,
    ) -> Result<Place> {
        match *self.out.types.kind(place.ty) {
            TypeKind::Array { index: of, element } => {
                let value = self.expr(index)?;
                if !self.agree(value.ty, of) {
                    let message = format!(
                        "the index is a value of {}, expected {}",
                        self.type_text(value.ty),
                        self.type_text(of)
                    );
                    return wrong(index.span, message);
                }
                place.steps.push(Step::Index { array: place.ty, index: value, span: brackets });
                place.ty = element;
            }
            TypeKind::Multiset { element, .. } => {
                let position = self.position_in(index, place.ty)?;
                place.steps.push(Step::Element { multiset: place.ty, position, span: brackets });
                place.ty = element;
            }
            _ => {
                let message = format!(
                    "an index of a value of {}, expected an array or a multiset",
                    self.type_text(place.ty)
                );
                return wrong(brackets, message);
            }
        }
        place.span = span;
        Ok(place)
    }
    /// Checks a bound position in a multiset.
    pub(super) fn position_in(&mut self, tree: &Tree, multiset: TypeId) -> Result<LocalId> {
        if let Kind::Name(name) = &tree.kind
            && let Meaning::Local(local, _) = self.resolve(name, tree.span, "a position")?
            && let TypeKind::Position { multiset: of } =
                self.out.types.kind(self.frame.get(local).ty)
            && same(&self.out.types, *of, multiset)
        {
            return Ok(local);
        }
        Err(Diagnostic::at(
            Stage::Type,
            tree.span,
            format!("this is no position in {}", self.type_text(multiset)),
        )
        .note("`choose`, `multisetcount` and `multisetremovepred` bind positions"))
    }
}

/// Returns `1 parameter`, `2 parameters`.
fn count_text(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
