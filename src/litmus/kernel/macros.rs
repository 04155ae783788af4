//! Macro files of the Linux kernel (`.def`): calls as primitives, and their expansion.
//!
//! A file lists definitions `name(X, Y) expression` and `name(X, Y) { statements }`. A macro of the
//! first form is called in expressions, one of the second form as a statement. Arguments are trees,
//! not values: each use of a parameter evaluates the argument again, and a parameter that is
//! assigned must be a local variable or a place `*p`. Recursion is an error.

use super::syntax::{Exp, ExpressionKind, KernelReader, Statement, StatementForm};
use mu_base::words::{self, Cursor};
use mu_base::{Diagnostic, SourceId, Span, Stage};
use std::collections::HashMap;

/// The macros of a file.
#[derive(Clone, Debug, Default)]
pub struct Macros {
    values: HashMap<String, (Vec<String>, Exp)>,
    procedures: HashMap<String, (Vec<String>, Vec<Statement>)>,
}

/// Largest nesting depth of calls.
const DEPTH: u32 = 100;

type Expanded<T> = Result<T, Diagnostic>;

/// The arguments of a call, by the names of parameters.
type Frame = HashMap<String, Exp>;

impl Macros {
    /// Parses a macro file.
    ///
    /// # Errors
    ///
    /// A syntax error.
    pub fn parse(source: SourceId, text: &str) -> Expanded<Self> {
        let list = words::tokens(source, text, 0, words::LexicalForm::Code)?;
        let mut cursor = Cursor::new(&list);
        let mut macros = Macros::default();
        while !cursor.at_end() {
            let name = cursor.name("the name of a macro")?.text.to_string();
            cursor.expect("(")?;
            let mut parameters = Vec::new();
            while !cursor.eat(")") {
                parameters.push(cursor.name("a parameter")?.text.to_string());
                if !cursor.is(")") {
                    cursor.expect(",")?;
                }
            }
            if cursor.eat("{") {
                let body = KernelReader::new(&mut cursor).statements()?;
                macros.procedures.insert(name, (parameters, body));
            } else {
                let body = KernelReader::new(&mut cursor).expression()?;
                macros.values.insert(name, (parameters, body));
            }
        }
        Ok(macros)
    }
    /// Returns the names of all macros, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut all: Vec<&str> =
            self.values.keys().chain(self.procedures.keys()).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
    /// Expands the macros of a function's body.
    ///
    /// # Errors
    ///
    /// A call of an unknown macro, or with a wrong number of arguments; a place that cannot be
    /// assigned.
    pub fn expand(&self, body: &[Statement]) -> Expanded<Vec<Statement>> {
        body.iter().map(|s| self.statement(s, &Frame::new(), None, 0)).collect()
    }
    fn frame(
        &self,
        call: (&str, Span),
        parameters: &[String],
        arguments: &[Exp],
        (frame, at, depth): (&Frame, Option<Span>, u32),
    ) -> Expanded<Frame> {
        let (name, span) = call;
        if depth >= DEPTH {
            let message = format!("the macro `{name}` calls itself");
            return Err(Diagnostic::at(Stage::Type, span, message));
        }
        if parameters.len() != arguments.len() {
            let (expected, found) = (parameters.len(), arguments.len());
            let message = format!("`{name}` has {expected} arguments, not {found}");
            return Err(Diagnostic::at(Stage::Type, span, message));
        }
        let mut out = Frame::new();
        for (parameter, argument) in parameters.iter().zip(arguments) {
            out.insert(parameter.clone(), self.value(argument, frame, at, depth)?);
        }
        Ok(out)
    }
    fn unknown_name(&self, name: &str, span: Span, procedure: bool) -> Diagnostic {
        let (here, there) = (self.values.contains_key(name), self.procedures.contains_key(name));
        let message = match (here, there) {
            (_, true) if !procedure => format!("`{name}` has no value"),
            (true, _) if procedure => format!("the value of `{name}` is not used"),
            _ => format!("unknown function `{name}`"),
        };
        let error = Diagnostic::at(Stage::Unsupported, span, message);
        match (here, there) {
            (true, _) => error.note("assign it to a variable: `r = …;`"),
            (_, true) => error.note("expected it as a statement of its own"),
            _ => error.note("the macro file of the model defines the functions of the kernel"),
        }
    }
    fn values<const N: usize>(
        &self,
        list: &[Exp; N],
        (frame, at, depth): (&Frame, Option<Span>, u32),
    ) -> Expanded<Box<[Exp; N]>> {
        let all: Expanded<Vec<Exp>> =
            list.iter().map(|e| self.value(e, frame, at, depth)).collect();
        let all: [Exp; N] =
            all?.try_into().map_err(|_| Diagnostic::internal("the number of arguments changes"))?;
        Ok(Box::new(all))
    }
    /// Expands an expression. `at` is the position of the outermost call, which its parts then
    /// have.
    fn value(&self, e: &Exp, frame: &Frame, at: Option<Span>, depth: u32) -> Expanded<Exp> {
        let here = (frame, at, depth);
        let boxed = |e: &Exp| self.value(e, frame, at, depth).map(Box::new);
        let span = at.unwrap_or(e.span);
        let node = match &e.node {
            ExpressionKind::Number(v) => ExpressionKind::Number(*v),
            ExpressionKind::Name(name) => match frame.get(name) {
                Some(argument) => return Ok(argument.clone()),
                None => ExpressionKind::Name(name.clone()),
            },
            ExpressionKind::Load(p, a) => ExpressionKind::Load(boxed(p)?, a.clone()),
            ExpressionKind::Binary(op, x, y) => ExpressionKind::Binary(*op, boxed(x)?, boxed(y)?),
            ExpressionKind::Exchange(list, a) => {
                ExpressionKind::Exchange(self.values(list, here)?, a.clone())
            }
            ExpressionKind::CompareExchange(list, a) => {
                ExpressionKind::CompareExchange(self.values(list, here)?, a.clone())
            }
            ExpressionKind::AddUnless(list, a) => {
                ExpressionKind::AddUnless(self.values(list, here)?, a.clone())
            }
            ExpressionKind::Atomic { of, op, fetch, annotations } => ExpressionKind::Atomic {
                of: self.values(of, here)?,
                op: *op,
                fetch: *fetch,
                annotations: annotations.clone(),
            },
            ExpressionKind::TryLock(p) => ExpressionKind::TryLock(boxed(p)?),
            ExpressionKind::IsLocked(p) => ExpressionKind::IsLocked(boxed(p)?),
            ExpressionKind::Srcu(p, a) => ExpressionKind::Srcu(boxed(p)?, a.clone()),
            ExpressionKind::Call(name, arguments) => {
                let Some((parameters, body)) = self.values.get(name) else {
                    // A primitive of the first edition of the language, without a macro.
                    let primitive = <&[Exp; 3]>::try_from(arguments.as_slice());
                    if let (Ok(list), "atomic_add_unless") = (primitive, name.as_str()) {
                        let list = self.values(list, here)?;
                        return Ok(Exp { span, node: ExpressionKind::AddUnless(list, Vec::new()) });
                    }
                    return Err(self.unknown_name(name, span, false));
                };
                let frame = self.frame((name, span), parameters, arguments, here)?;
                return self.value(body, &frame, Some(span), depth + 1);
            }
        };
        Ok(Exp { span, node })
    }
    fn statement(
        &self,
        s: &Statement,
        frame: &Frame,
        at: Option<Span>,
        depth: u32,
    ) -> Expanded<Statement> {
        let value = |e: &Exp| self.value(e, frame, at, depth);
        let inner = |s: &Statement| self.statement(s, frame, at, depth);
        let span = at.unwrap_or(s.span);
        let form = match &s.form {
            StatementForm::Block(list) => {
                StatementForm::Block(list.iter().map(inner).collect::<Expanded<_>>()?)
            }
            StatementForm::If(c, yes, no) => StatementForm::If(
                value(c)?,
                Box::new(inner(yes)?),
                no.as_ref().map(|n| inner(n).map(Box::new)).transpose()?,
            ),
            StatementForm::While(c, body) => {
                StatementForm::While(value(c)?, Box::new(inner(body)?))
            }
            StatementForm::Declare(name) => StatementForm::Declare(name.clone()),
            StatementForm::Set(name, e) => match frame.get(name).map(|a| (&a.node, a.span)) {
                None => StatementForm::Set(name.clone(), value(e)?),
                Some((ExpressionKind::Name(variable), _)) => {
                    StatementForm::Set(variable.clone(), value(e)?)
                }
                Some((ExpressionKind::Load(p, a), place)) => {
                    let to = Exp { span: place, node: ExpressionKind::Load(p.clone(), Vec::new()) };
                    StatementForm::Store(to, value(e)?, a.clone())
                }
                Some((_, place)) => {
                    let message = "a macro assigns to this argument: expected a variable or `*p`";
                    return Err(Diagnostic::at(Stage::Type, place, message));
                }
            },
            StatementForm::Evaluate(e) => StatementForm::Evaluate(value(e)?),
            StatementForm::Store(p, v, a) => StatementForm::Store(value(p)?, value(v)?, a.clone()),
            StatementForm::Fence(a) => StatementForm::Fence(a.clone()),
            StatementForm::Lock(p) => StatementForm::Lock(value(p)?),
            StatementForm::Unlock(p) => StatementForm::Unlock(value(p)?),
            StatementForm::Atomic(p, op, v, a) => {
                StatementForm::Atomic(value(p)?, *op, value(v)?, a.clone())
            }
            StatementForm::Srcu(p, a, v) => {
                StatementForm::Srcu(value(p)?, a.clone(), v.as_ref().map(value).transpose()?)
            }
            StatementForm::Call(name, arguments) => {
                let Some((parameters, body)) = self.procedures.get(name) else {
                    return Err(self.unknown_name(name, span, true));
                };
                let here = (frame, at, depth);
                let frame = self.frame((name, span), parameters, arguments, here)?;
                let each = |s| self.statement(s, &frame, Some(span), depth + 1);
                StatementForm::Block(body.iter().map(each).collect::<Expanded<_>>()?)
            }
        };
        Ok(Statement { span, form })
    }
}
