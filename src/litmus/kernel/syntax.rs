//! Syntax of the C that litmus tests of the Linux kernel use, and of the primitives to which its
//! macros expand.
//!
//! The grammar is that of the herd tools: assignments, stores through pointers, calls, `if`,
//! `while`, blocks; expressions with `+ - * /`, `& | ^`, comparisons and casts. Input: tokens.
//! Output: trees that [`super::macros`] expands. Other constructs of C are rejected with their
//! position.

use mu_base::words::{Cursor, TokenKind};
use mu_base::{Diagnostic, Span, Stage};
use mu_program::outcome::question::DEPTH;

/// An operator on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`.
    Add,
    /// `-`.
    Sub,
    /// `*`.
    Mul,
    /// `/`.
    Div,
    /// `&`.
    And,
    /// `|`.
    Or,
    /// `^`.
    Xor,
    /// `&~` of an atomic operation.
    AndNot,
    /// `==`.
    Eq,
    /// `!=`.
    Ne,
    /// `<`.
    Less,
    /// `>`.
    Greater,
    /// `<=`.
    LessEqual,
    /// `>=`.
    GreaterEqual,
}

impl BinaryOperator {
    /// True for a comparison.
    pub fn compares(self) -> bool {
        use BinaryOperator::*;
        matches!(self, Eq | Ne | Less | Greater | LessEqual | GreaterEqual)
    }
}

/// An expression with its position.
#[derive(Clone, Debug)]
pub struct Exp {
    /// Its position.
    pub span: Span,
    /// Its form.
    pub node: ExpressionKind,
}

/// The annotations of a primitive: `{MB}`.
pub type Annotations = Vec<String>;

/// The form of an expression.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
    /// A number.
    Number(i64),
    /// A local variable or a parameter.
    Name(String),
    /// `*e` without annotations, or `__load{a}(e)`; the argument must be `*e`.
    Load(Box<Exp>, Annotations),
    /// An operator on two values.
    Binary(BinaryOperator, Box<Exp>, Box<Exp>),
    /// `__xchg{a}(p, v)`.
    Exchange(Box<[Exp; 2]>, Annotations),
    /// `__cmpxchg{a}(p, old, new)`.
    CompareExchange(Box<[Exp; 3]>, Annotations),
    /// `__atomic_op_return{a}(p, op, v)`; `__atomic_fetch_op` if `fetch`.
    Atomic {
        /// The pointer and the operand.
        of: Box<[Exp; 2]>,
        /// The operator.
        op: BinaryOperator,
        /// True if the result is the old value.
        fetch: bool,
        /// The annotations.
        annotations: Annotations,
    },
    /// `__atomic_add_unless{a}(p, v, unless)`.
    AddUnless(Box<[Exp; 3]>, Annotations),
    /// `__trylock(p)`.
    TryLock(Box<Exp>),
    /// `__islocked(p)`.
    IsLocked(Box<Exp>),
    /// `__srcu{a}(p)`.
    Srcu(Box<Exp>, Annotations),
    /// A call of a macro.
    Call(String, Vec<Exp>),
}

/// A statement with its position.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its position.
    pub span: Span,
    /// Its form.
    pub form: StatementForm,
}

/// The form of a statement.
#[derive(Clone, Debug)]
pub enum StatementForm {
    /// `{ … }`.
    Block(Vec<Statement>),
    /// `if (c) s else t`.
    If(Exp, Box<Statement>, Option<Box<Statement>>),
    /// `while (c) s`.
    While(Exp, Box<Statement>),
    /// `int r;`.
    Declare(String),
    /// `r = e;`, possibly with a type.
    Set(String, Exp),
    /// `e;`, `(void) e;`.
    Evaluate(Exp),
    /// `*p = e;` without annotations, or `__store{a}(e, v)`; its first argument must be `*e`.
    Store(Exp, Exp, Annotations),
    /// `__fence{a}`.
    Fence(Annotations),
    /// `__lock(p)`.
    Lock(Exp),
    /// `__unlock(p)`.
    Unlock(Exp),
    /// `__atomic_op{a}(p, op, v)`.
    Atomic(Exp, BinaryOperator, Exp, Annotations),
    /// `__srcu{a}(p)`, `__srcu{a}(p, v)`.
    Srcu(Exp, Annotations, Option<Exp>),
    /// A call of a macro.
    Call(String, Vec<Exp>),
}

/// A function: `P0(int *x) { … }`.
#[derive(Clone, Debug)]
pub struct KernelFunction {
    /// The names of its parameters, with their positions.
    pub parameters: Vec<(String, Span)>,
    /// Its body.
    pub body: Vec<Statement>,
}

/// Names of types of one word.
const TYPES: [&str; 21] = [
    "int",
    "char",
    "long",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "__int128_t",
    "__uint128_t",
    "__int128",
    "__uint128",
    "intptr_t",
    "uintptr_t",
    "mtx_t",
    "spinlock_t",
    "atomic_t",
    "atomic_int",
];

/// Words that are no variables.
const RESERVED: [&str; 7] = ["if", "else", "while", "struct", "volatile", "const", "void"];

type Parsed<T> = Result<T, Diagnostic>;

/// Parser over a cursor.
pub struct KernelReader<'c, 'a, 't> {
    /// The tokens.
    pub cursor: &'c mut Cursor<'a, 't>,
    depth: u32,
}

impl<'c, 'a, 't> KernelReader<'c, 'a, 't> {
    /// Creates a parser.
    pub fn new(cursor: &'c mut Cursor<'a, 't>) -> Self {
        Self { cursor, depth: 0 }
    }
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            let place = self.cursor.peek().span;
            let message = format!("code that nests more than {DEPTH} deep");
            return Err(Diagnostic::at(Stage::Syntax, place, message));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }
    fn span_since(&self, start: Span) -> Span {
        start.to(self.cursor.previous().span)
    }

    // Functions and statements.

    /// Parses all functions.
    pub fn functions(&mut self) -> Parsed<Vec<KernelFunction>> {
        let mut list = Vec::new();
        loop {
            let number = list.len();
            let c = &mut *self.cursor;
            let mut ahead = c.clone();
            if ahead.peek().text == "void" {
                ahead.take();
                ahead.eat("*");
            }
            let (name, next) = (ahead.peek(), ahead.ahead(1));
            if name.kind != TokenKind::Name || next.text != "(" || !is_function(name.text) {
                break;
            }
            if name.text != format!("P{number}") {
                let message = format!("expected the function `P{number}`, found `{}`", name.text);
                return Err(Diagnostic::at(Stage::Syntax, name.span, message));
            }
            *c = ahead;
            c.take();
            let parameters = self.parameters()?;
            self.cursor.expect("{")?;
            let body = self.statements()?;
            list.push(KernelFunction { parameters, body });
        }
        if list.is_empty() {
            return Err(self.cursor.unexpected("a function: `P0(int *x) { … }`"));
        }
        Ok(list)
    }
    fn parameters(&mut self) -> Parsed<Vec<(String, Span)>> {
        self.cursor.expect("(")?;
        let mut list: Vec<(String, Span)> = Vec::new();
        if self.cursor.eat(")") {
            return Ok(list);
        }
        loop {
            let start = self.cursor.peek().span;
            let Some(pointer) = self.take_type()? else {
                return Err(self.cursor.unexpected("a parameter with a type, such as `int *x`"));
            };
            let name = self.cursor.name("the name of a parameter")?;
            if !pointer {
                let place = start.to(name.span);
                let error = Diagnostic::at(Stage::Type, place, "a parameter that is no pointer");
                return Err(error.note("expected the address of a variable, such as `int *x`"));
            }
            if list.iter().any(|p| p.0 == name.text) {
                let message = format!("`{}` is a parameter twice", name.text);
                return Err(Diagnostic::at(Stage::Type, name.span, message));
            }
            list.push((name.text.to_string(), name.span));
            if self.cursor.eat(")") {
                return Ok(list);
            }
            self.cursor.expect(",")?;
        }
    }
    /// Parses a type, if there is one. Returns true for a pointer.
    fn take_type(&mut self) -> Parsed<Option<bool>> {
        let start = self.cursor.peek();
        let mut base = false;
        let mut any = false;
        loop {
            let token = self.cursor.peek();
            if token.kind != TokenKind::Name {
                break;
            }
            match token.text {
                "volatile" | "const" | "_Atomic" => {}
                "struct" => {
                    self.cursor.take();
                    let name = self.cursor.name("`srcu_struct`")?;
                    if name.text != "srcu_struct" {
                        let message = format!("the type `struct {}` is not supported", name.text);
                        let place = start.span.to(name.span);
                        return Err(Diagnostic::at(Stage::Unsupported, place, message)
                            .note("supported: struct srcu_struct, integers, and pointers"));
                    }
                    (base, any) = (true, true);
                    continue;
                }
                "void" if !base => base = true,
                word if TYPES.contains(&word) && !base => base = true,
                "unsigned" | "signed" | "short" | "bool" | "_Bool" => {
                    let message = format!("the type `{}` is not supported", token.text);
                    return Err(Diagnostic::at(Stage::Unsupported, token.span, message)
                        .note("supported: int, char, long, int8_t to uint64_t, atomic_t, spinlock_t, struct srcu_struct, and pointers"));
                }
                _ => break,
            }
            any = true;
            self.cursor.take();
        }
        if !any {
            return Ok(None);
        }
        if !base {
            return Err(self.cursor.unexpected("a type"));
        }
        let mut pointer = false;
        loop {
            if self.cursor.eat("*") {
                pointer = true;
            } else if self.cursor.peek().kind == TokenKind::Name
                && matches!(self.cursor.peek().text, "volatile" | "const")
            {
                self.cursor.take();
            } else {
                return Ok(Some(pointer));
            }
        }
    }
    /// Parses statements up to the end of their block.
    pub fn statements(&mut self) -> Parsed<Vec<Statement>> {
        let mut list = Vec::new();
        while !self.cursor.eat("}") {
            if self.cursor.at_end() {
                return Err(self.cursor.unexpected("`}`"));
            }
            list.push(self.statement(true)?);
        }
        if list.is_empty() {
            let place = self.cursor.previous().span;
            let error = Diagnostic::at(Stage::Syntax, place, "a block without statements");
            return Err(error.note("expected a statement, such as `smp_mb();`"));
        }
        Ok(list)
    }
    fn statement(&mut self, declarations: bool) -> Parsed<Statement> {
        self.deeper(|r| r.statement_node(declarations))
    }
    fn statement_node(&mut self, declarations: bool) -> Parsed<Statement> {
        let start = self.cursor.peek();
        let form = match start.text {
            "{" => {
                self.cursor.take();
                StatementForm::Block(self.statements()?)
            }
            "if" => {
                self.cursor.take();
                let condition = self.parenthesised_expression()?;
                let yes = Box::new(self.statement(false)?);
                let no = if self.cursor.peek().text == "else" {
                    self.cursor.take();
                    Some(Box::new(self.statement(false)?))
                } else {
                    None
                };
                StatementForm::If(condition, yes, no)
            }
            "while" => {
                self.cursor.take();
                let condition = self.parenthesised_expression()?;
                StatementForm::While(condition, Box::new(self.statement(false)?))
            }
            "for" | "do" | "goto" | "return" | "break" | "continue" | "switch"
                if self.cursor.ahead(1).text != "=" =>
            {
                let message = format!("the statement `{}` is not supported", start.text);
                return Err(Diagnostic::at(Stage::Unsupported, start.span, message)
                    .note("supported: if, while, assignments and calls"));
            }
            _ => {
                let form = self.simple(declarations)?;
                self.cursor.expect(";")?;
                form
            }
        };
        Ok(Statement { span: self.span_since(start.span), form })
    }
    fn parenthesised_expression(&mut self) -> Parsed<Exp> {
        self.cursor.expect("(")?;
        let e = self.expression()?;
        self.cursor.expect(")")?;
        Ok(e)
    }
    /// Parses a statement up to its semicolon.
    fn simple(&mut self, declarations: bool) -> Parsed<StatementForm> {
        let start = self.cursor.peek();
        if start.text == "("
            && self.cursor.ahead(1).text == "void"
            && self.cursor.ahead(2).text == ")"
        {
            for _ in 0..3 {
                self.cursor.take();
            }
            return Ok(StatementForm::Evaluate(self.expression()?));
        }
        if start.kind == TokenKind::Sign && start.text == "*" {
            let place = self.place()?;
            if self.cursor.eat("=") {
                let value = self.expression()?;
                return Ok(StatementForm::Store(place, value, Vec::new()));
            }
            return Err(self.cursor.unexpected("`=`"));
        }
        if start.kind == TokenKind::Name {
            if self.take_type()?.is_some() {
                let name = self.variable()?;
                if self.cursor.eat("=") {
                    return Ok(StatementForm::Set(name, self.expression()?));
                }
                if !self.cursor.is(";") || !declarations {
                    return Err(self.cursor.unexpected("`=`"));
                }
                return Ok(StatementForm::Declare(name));
            }
            if let Some(form) = self.primitive()? {
                return Ok(form);
            }
            if self.cursor.ahead(1).text == "=" {
                let name = self.variable()?;
                self.cursor.take();
                return Ok(StatementForm::Set(name, self.expression()?));
            }
            if self.cursor.ahead(1).text == "(" && !start.text.starts_with("__") {
                let mut ahead = self.cursor.clone();
                let mut call = KernelReader { cursor: &mut ahead, depth: self.depth };
                call.cursor.take();
                let arguments = call.arguments()?;
                if call.cursor.is(";") {
                    *self.cursor = ahead;
                    return Ok(StatementForm::Call(start.text.to_string(), arguments));
                }
            }
        }
        Ok(StatementForm::Evaluate(self.expression()?))
    }
    /// Parses the place of a plain store: `*p`, `**p`, `*(e)`.
    fn place(&mut self) -> Parsed<Exp> {
        let start = self.cursor.expect("*")?.span;
        let inner = if self.cursor.is("*") {
            self.deeper(Self::place)?
        } else if self.cursor.is("(") {
            self.after_star()?
        } else {
            self.name_expression()?
        };
        Ok(Exp {
            span: self.span_since(start),
            node: ExpressionKind::Load(Box::new(inner), Vec::new()),
        })
    }
    fn variable(&mut self) -> Parsed<String> {
        self.cursor.eat("%");
        let name = self.cursor.name("a variable")?;
        if RESERVED.contains(&name.text) {
            let message = format!("`{}` is no variable", name.text);
            return Err(Diagnostic::at(Stage::Syntax, name.span, message));
        }
        Ok(name.text.to_string())
    }
    fn name_expression(&mut self) -> Parsed<Exp> {
        let start = self.cursor.peek().span;
        let name = self.variable()?;
        Ok(Exp { span: self.span_since(start), node: ExpressionKind::Name(name) })
    }
    /// Parses a primitive that is a statement.
    fn primitive(&mut self) -> Parsed<Option<StatementForm>> {
        let name = self.cursor.peek().text;
        match name {
            "__fence" => {
                self.cursor.take();
                Ok(Some(StatementForm::Fence(self.annotations()?)))
            }
            "__store" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                let [place, value] = self.fixed_arguments("__store")?;
                Ok(Some(StatementForm::Store(place, value, annotations)))
            }
            "__lock" | "__unlock" => {
                self.cursor.take();
                let [lock] = self.fixed_arguments(name)?;
                Ok(Some(if name == "__lock" {
                    StatementForm::Lock(lock)
                } else {
                    StatementForm::Unlock(lock)
                }))
            }
            "__atomic_op" => {
                self.cursor.take();
                let annotations =
                    if self.cursor.is("{") { self.annotations()? } else { Vec::new() };
                let (place, op, value) = self.atomic()?;
                Ok(Some(StatementForm::Atomic(place, op, value, annotations)))
            }
            "__srcu" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                let mut list = self.arguments()?.into_iter();
                match (list.next(), list.next(), list.next()) {
                    (Some(place), value, None) => {
                        Ok(Some(StatementForm::Srcu(place, annotations, value)))
                    }
                    _ => Err(self.cursor.unexpected("one or two arguments of `__srcu`")),
                }
            }
            _ => Ok(None),
        }
    }
    /// Parses `{a, b}`.
    fn annotations(&mut self) -> Parsed<Annotations> {
        self.cursor.expect("{")?;
        let mut list = Vec::new();
        loop {
            let mut text = self.cursor.name("an annotation")?.text.to_string();
            while self.cursor.eat("-") {
                text.push('-');
                text += self.cursor.name("the rest of an annotation")?.text;
            }
            list.push(text);
            if self.cursor.eat("}") {
                return Ok(list);
            }
            self.cursor.expect(",")?;
        }
    }
    fn arguments(&mut self) -> Parsed<Vec<Exp>> {
        self.cursor.expect("(")?;
        let mut list = Vec::new();
        while !self.cursor.eat(")") {
            list.push(self.expression()?);
            if !self.cursor.is(")") {
                self.cursor.expect(",")?;
                if self.cursor.is(")") {
                    return Err(self.cursor.unexpected("an argument"));
                }
            }
        }
        Ok(list)
    }
    /// Parses a fixed number of arguments.
    fn fixed_arguments<const N: usize>(&mut self, name: &str) -> Parsed<[Exp; N]> {
        let place = self.cursor.peek().span;
        let list = self.arguments()?;
        let count = list.len();
        list.try_into().map_err(|_| {
            let message = format!("`{name}` has {N} arguments, not {count}");
            Diagnostic::at(Stage::Type, place, message)
        })
    }
    /// Parses `(p, op, v)`.
    fn atomic(&mut self) -> Parsed<(Exp, BinaryOperator, Exp)> {
        self.cursor.expect("(")?;
        let place = self.expression()?;
        self.cursor.expect(",")?;
        let token = self.cursor.take();
        let op = match token.text {
            "+" => BinaryOperator::Add,
            "-" => BinaryOperator::Sub,
            "&" if self.cursor.eat("~") => BinaryOperator::AndNot,
            "&" => BinaryOperator::And,
            "^" => BinaryOperator::Xor,
            "|" => BinaryOperator::Or,
            _ => {
                let message = format!("`{}` is no operator: expected + - & | ^ &~", token.text);
                return Err(Diagnostic::at(Stage::Syntax, token.span, message));
            }
        };
        self.cursor.expect(",")?;
        let value = self.expression()?;
        self.cursor.expect(")")?;
        Ok((place, op, value))
    }

    // Expressions.

    /// Parses an expression.
    pub fn expression(&mut self) -> Parsed<Exp> {
        self.deeper(|r| r.level(0))
    }
    /// Parses operators that bind at least as tightly as a level.
    fn level(&mut self, level: u8) -> Parsed<Exp> {
        let start = self.cursor.peek().span;
        let mut left = self.unary()?;
        let mut compared = false;
        let mut operators = 0;
        while let Some((own, op)) = self.operator().filter(|o| o.0 >= level) {
            let token = self.cursor.take();
            if op.compares() && std::mem::replace(&mut compared, true) {
                let message = "comparisons in a row: expected parentheses";
                return Err(Diagnostic::at(Stage::Syntax, token.span, message));
            }
            operators += 1;
            if operators > 1000 {
                let message = "an expression of more than 1000 operators";
                return Err(Diagnostic::at(Stage::Syntax, token.span, message));
            }
            let right = self.deeper(|r| r.level(own + 1))?;
            left = Exp {
                span: self.span_since(start),
                node: ExpressionKind::Binary(op, Box::new(left), Box::new(right)),
            };
        }
        Ok(left)
    }
    fn operator(&self) -> Option<(u8, BinaryOperator)> {
        let token = self.cursor.peek();
        if token.kind != TokenKind::Sign {
            return None;
        }
        Some(match token.text {
            "|" => (0, BinaryOperator::Or),
            "^" => (1, BinaryOperator::Xor),
            "&" => (2, BinaryOperator::And),
            "==" => (3, BinaryOperator::Eq),
            "!=" => (3, BinaryOperator::Ne),
            "<" => (3, BinaryOperator::Less),
            ">" => (3, BinaryOperator::Greater),
            "<=" => (3, BinaryOperator::LessEqual),
            ">=" => (3, BinaryOperator::GreaterEqual),
            "+" => (4, BinaryOperator::Add),
            "-" => (4, BinaryOperator::Sub),
            "*" => (5, BinaryOperator::Mul),
            "/" => (5, BinaryOperator::Div),
            _ => return None,
        })
    }
    fn unary(&mut self) -> Parsed<Exp> {
        self.deeper(Self::unary_node)
    }
    fn unary_node(&mut self) -> Parsed<Exp> {
        let start = self.cursor.peek();
        let finish = |r: &Self, node| Ok(Exp { span: r.span_since(start.span), node });
        if self.cursor.is_number() {
            let value = self.cursor.number()?;
            return finish(self, ExpressionKind::Number(value));
        }
        match start.text {
            "*" => {
                self.cursor.take();
                let inner =
                    if self.cursor.is("(") { self.after_star()? } else { self.name_expression()? };
                return finish(self, ExpressionKind::Load(Box::new(inner), Vec::new()));
            }
            "(" => {
                self.cursor.take();
                if self.take_type()?.is_some() {
                    // Values have one width, so that a cast changes nothing.
                    self.cursor.expect(")")?;
                    return self.unary();
                }
                let inner = self.expression()?;
                self.cursor.expect(")")?;
                return Ok(inner);
            }
            "!" | "~" | "-" | "+" | "&" | "++" | "--" => {
                let message = format!("the operator `{}` is not supported here", start.text);
                return Err(Diagnostic::at(Stage::Unsupported, start.span, message)
                    .note("supported: `*p`, and + - * / & | ^ == != < > <= >= between values"));
            }
            _ => {}
        }
        if start.kind != TokenKind::Name && !self.cursor.is("%") {
            return Err(self.cursor.unexpected("a value"));
        }
        if let Some(node) = self.primitive_value()? {
            return finish(self, node);
        }
        if self.cursor.ahead(1).text == "(" {
            let name = self.cursor.take().text.to_string();
            let arguments = self.arguments()?;
            return finish(self, ExpressionKind::Call(name, arguments));
        }
        self.name_expression()
    }
    /// Parses the pointer after a star: `(e)`, `(T) p`, `((T) e)`.
    fn after_star(&mut self) -> Parsed<Exp> {
        self.cursor.expect("(")?;
        if self.take_type()?.is_some() {
            self.cursor.expect(")")?;
            return if self.cursor.is("(") { self.after_star() } else { self.name_expression() };
        }
        let inner = self.expression()?;
        self.cursor.expect(")")?;
        Ok(inner)
    }
    /// Parses a primitive that has a value.
    fn primitive_value(&mut self) -> Parsed<Option<ExpressionKind>> {
        let name = self.cursor.peek().text;
        Ok(Some(match name {
            "__load" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                let [place] = self.fixed_arguments(name)?;
                ExpressionKind::Load(Box::new(place), annotations)
            }
            "__xchg" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                ExpressionKind::Exchange(Box::new(self.fixed_arguments(name)?), annotations)
            }
            "__cmpxchg" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                ExpressionKind::CompareExchange(Box::new(self.fixed_arguments(name)?), annotations)
            }
            "__atomic_op_return" | "__atomic_fetch_op" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                let (place, op, value) = self.atomic()?;
                let fetch = name == "__atomic_fetch_op";
                ExpressionKind::Atomic { of: Box::new([place, value]), op, fetch, annotations }
            }
            "__atomic_add_unless" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                ExpressionKind::AddUnless(Box::new(self.fixed_arguments(name)?), annotations)
            }
            "__trylock" | "__islocked" => {
                self.cursor.take();
                let [lock] = self.fixed_arguments(name)?;
                if name == "__trylock" {
                    ExpressionKind::TryLock(Box::new(lock))
                } else {
                    ExpressionKind::IsLocked(Box::new(lock))
                }
            }
            "__srcu" => {
                self.cursor.take();
                let annotations = self.annotations()?;
                let [place] = self.fixed_arguments(name)?;
                ExpressionKind::Srcu(Box::new(place), annotations)
            }
            _ => return Ok(None),
        }))
    }
}

/// True for the name of a thread's function.
fn is_function(name: &str) -> bool {
    name.strip_prefix('P').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
