//! Expressions of the parameter layer: parser and evaluator. Integers (64 bits, checked) and
//! booleans over parameters and loop variables, with the operators and precedences of mCRL2 data
//! expressions. Linear in the text; nesting is limited, but not the length.

use std::fmt;

use super::{Fault, MAX_NESTING};
use mu_base::Stage;

/// Value of a parameter or expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// An unknown number: that of a parameter set to `any`, plus a number.
    Any {
        /// The parameter's position among the parameters.
        param: u32,
        /// Number added to it; not negative.
        plus: i64,
    },
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => n.fmt(f),
            Value::Bool(b) => b.fmt(f),
            Value::Any { plus: 0, .. } => f.write_str("any"),
            Value::Any { plus, .. } => write!(f, "any + {plus}"),
        }
    }
}

/// Cursor in a text. Inside directives white space and `%` comments separate tokens.
pub(super) struct Cursor<'a> {
    pub text: &'a str,
    pub at: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    /// Skips white space and comments.
    pub fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.trim_start();
            self.at += rest.len() - blank.len();
            if !blank.starts_with('%') {
                return;
            }
            self.at += blank.find('\n').unwrap_or(blank.len());
        }
    }
    /// Returns the identifier or number at the cursor without consuming it; empty if there is none.
    pub fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        &rest[..rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '\''))
            .unwrap_or(rest.len())]
    }
    /// Consumes `token` after white space, if it comes next; words only as a whole.
    pub fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let found = if token.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.peek_word() == token
        } else {
            self.rest().starts_with(token)
        };
        if found {
            self.at += token.len();
        }
        found
    }
    /// Consumes `$word` directly at the cursor.
    pub fn eat_directive(&mut self, word: &str) -> bool {
        let found =
            self.rest().strip_prefix('$').is_some_and(|rest| Cursor::new(rest).peek_word() == word);
        if found {
            self.at += 1 + word.len();
        }
        found
    }
    /// Consumes `token`. Error: another text is next.
    pub fn expect(&mut self, token: &str, context: &str) -> Result<(), Fault> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}` {context}"))) }
    }
    /// Consumes a name: letters, digits, `_`, not starting with a digit.
    pub fn name(&mut self, what: &str) -> Result<(&'a str, usize), Fault> {
        self.skip();
        let (word, start) = (self.peek_word(), self.at);
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit() || c == '\'') {
            return Err(self.unexpected(what));
        }
        if RESERVED.contains(&word) {
            return Err(Fault::at(
                Stage::Syntax,
                start,
                start + word.len(),
                format!("`{word}` is a keyword of the parameter layer, not a name"),
            ));
        }
        self.at += word.len();
        Ok((word, start))
    }
    /// Returns the error "expected … but here is …" at the cursor.
    pub fn unexpected(&self, expected: &str) -> Fault {
        let word = self.peek_word();
        let (found, length) = match self.rest().chars().next() {
            None => ("the file ends".to_string(), 0),
            Some(_) if !word.is_empty() => (format!("here is `{word}`"), word.len()),
            Some('\n') => ("the line ends".to_string(), 1),
            Some(c) => (format!("here is `{c}`"), c.len_utf8()),
        };
        Fault::at(
            Stage::Syntax,
            self.at,
            self.at + length,
            format!("expected {expected}, but {found}"),
        )
    }
    /// Runs `f` one level deeper; rejects nesting beyond the limit, so that no input exhausts the
    /// stack.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == MAX_NESTING {
            return Err(Fault::at(
                Stage::Syntax,
                self.at,
                self.at + 1,
                format!("directives are nested deeper than {MAX_NESTING}"),
            ));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }
}

const RESERVED: [&str; 8] = ["div", "mod", "true", "false", "in", "join", "where", "param"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Implies,
    Or,
    And,
    Equal,
    NotEqual,
    LessEqual,
    GreaterEqual,
    Less,
    Greater,
    Add,
    Subtract,
    Div,
    Mod,
    Multiply,
    Not,
    Negate,
}

/// Binary operators: token, operator, level. Tokens precede their prefixes. All except `=>` are
/// left associative.
const BINARY: [(&str, Op, u8); 14] = [
    ("=>", Op::Implies, 2),
    ("||", Op::Or, 3),
    ("&&", Op::And, 4),
    ("==", Op::Equal, 5),
    ("!=", Op::NotEqual, 5),
    ("<=", Op::LessEqual, 6),
    (">=", Op::GreaterEqual, 6),
    ("<", Op::Less, 6),
    (">", Op::Greater, 6),
    ("+", Op::Add, 10),
    ("-", Op::Subtract, 10),
    ("div", Op::Div, 11),
    ("mod", Op::Mod, 11),
    ("*", Op::Multiply, 12),
];

impl Op {
    fn token(self) -> &'static str {
        match self {
            Op::Not => "!",
            Op::Negate => "-",
            _ => BINARY.iter().find(|b| b.1 == self).map_or("?", |b| b.0),
        }
    }
}

/// Expression with its place.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    kind: Kind,
    pub start: usize,
    pub end: usize,
    /// Height of the tree, at most [`MAX_NESTING`], which bounds the stack for evaluation.
    height: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Literal(Value),
    Name(String),
    Unary(Op, Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
}

/// Parses the longest expression at the cursor.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Expr, Fault> {
    binary(cursor, 0)
}

fn binary(cursor: &mut Cursor<'_>, least: u8) -> Result<Expr, Fault> {
    let mut left = cursor.nested(operand)?;
    loop {
        cursor.skip();
        let next = BINARY.iter().find(|(token, ..)| {
            if token.starts_with(|c: char| c.is_ascii_alphabetic()) {
                cursor.peek_word() == *token
            } else {
                cursor.rest().starts_with(token)
            }
        });
        let Some(&(token, op, level)) = next.filter(|n| n.2 >= least) else { return Ok(left) };
        cursor.at += token.len();
        let right =
            cursor.nested(|c| binary(c, if op == Op::Implies { level } else { level + 1 }))?;
        let (start, end, height) = (left.start, right.end, left.height.max(right.height) + 1);
        if height > MAX_NESTING {
            return Err(Fault::at(
                Stage::Syntax,
                start,
                end,
                format!("an expression with operators nested more than {MAX_NESTING} deep"),
            ));
        }
        left = Expr { kind: Kind::Binary(op, Box::new(left), Box::new(right)), start, end, height };
    }
}

fn operand(cursor: &mut Cursor<'_>) -> Result<Expr, Fault> {
    cursor.skip();
    let start = cursor.at;
    for op in [Op::Not, Op::Negate] {
        if cursor.rest().starts_with(op.token()) {
            cursor.at += 1;
            let inner = cursor.nested(operand)?;
            let (end, height) = (inner.end, inner.height + 1);
            return Ok(Expr { kind: Kind::Unary(op, Box::new(inner)), start, end, height });
        }
    }
    if cursor.eat("(") {
        let inner = cursor.nested(|c| binary(c, 0))?;
        cursor.expect(")", "to close the parenthesis")?;
        return Ok(Expr { start, end: cursor.at, ..inner });
    }
    let word = cursor.peek_word();
    let kind = match word {
        "true" | "false" => Kind::Literal(Value::Bool(word == "true")),
        _ if word.starts_with(|c: char| c.is_ascii_digit()) => match word.parse() {
            Ok(n) => Kind::Literal(Value::Int(n)),
            Err(_) => {
                let why = if word.bytes().all(|b| b.is_ascii_digit()) {
                    "is too large"
                } else {
                    "is not a number"
                };
                return Err(Fault::at(
                    Stage::Syntax,
                    start,
                    start + word.len(),
                    format!("`{word}` {why}"),
                ));
            }
        },
        _ => {
            let (name, _) = cursor.name("a number, a parameter or a loop variable")?;
            return Ok(Expr {
                kind: Kind::Name(name.to_string()),
                start,
                end: cursor.at,
                height: 1,
            });
        }
    };
    cursor.at += word.len();
    Ok(Expr { kind, start, end: cursor.at, height: 1 })
}

impl Expr {
    /// Evaluates in a scope of names, innermost last.
    pub fn value(&self, scope: &[(String, Value)]) -> Result<Value, Fault> {
        match &self.kind {
            Kind::Literal(v) => Ok(*v),
            Kind::Name(name) => {
                scope.iter().rev().find(|s| s.0 == *name).map(|s| s.1).ok_or_else(|| {
                    let known: Vec<&str> = scope.iter().map(|s| s.0.as_str()).collect();
                    let known = if known.is_empty() {
                        "no parameter is declared above".into()
                    } else {
                        format!("known here: {}", known.join(", "))
                    };
                    Fault::at(
                        Stage::Type,
                        self.start,
                        self.end,
                        format!("unknown parameter or loop variable `{name}`"),
                    )
                    .note(known)
                })
            }
            Kind::Unary(Op::Not, e) => Ok(Value::Bool(!e.boolean(scope, "!")?)),
            Kind::Unary(_, e) => {
                e.integer(scope, "-")?.checked_neg().map(Value::Int).ok_or_else(|| self.overflow())
            }
            Kind::Binary(op, a, b) => self.binary_value(*op, a, b, scope),
        }
    }

    fn binary_value(
        &self,
        op: Op,
        a: &Expr,
        b: &Expr,
        scope: &[(String, Value)],
    ) -> Result<Value, Fault> {
        let token = op.token();
        match op {
            Op::Implies => {
                return Ok(Value::Bool(!a.boolean(scope, token)? || b.boolean(scope, token)?));
            }
            Op::Or => return Ok(Value::Bool(a.boolean(scope, token)? || b.boolean(scope, token)?)),
            Op::And => {
                return Ok(Value::Bool(a.boolean(scope, token)? && b.boolean(scope, token)?));
            }
            Op::Equal | Op::NotEqual => {
                let (x, y) = (a.value(scope)?, b.value(scope)?);
                if let Some(order) = self.without_value(x, y)? {
                    return Ok(Value::Bool(order.is_eq() == (op == Op::Equal)));
                }
                if matches!(x, Value::Int(_)) != matches!(y, Value::Int(_)) {
                    return Err(self.mismatch(format!(
                        "`{token}` compares a number with a truth value: {x} and {y}"
                    )));
                }
                return Ok(Value::Bool((x == y) == (op == Op::Equal)));
            }
            _ => {}
        }
        match (op, a.value(scope)?, b.value(scope)?) {
            (Op::Add, Value::Any { param, plus }, Value::Int(n))
            | (Op::Add, Value::Int(n), Value::Any { param, plus })
                if plus + n >= 0 =>
            {
                return Ok(Value::Any {
                    param,
                    plus: plus.checked_add(n).ok_or_else(|| self.overflow())?,
                });
            }
            (Op::Subtract, Value::Any { param, plus }, Value::Int(n)) if plus >= n => {
                return Ok(Value::Any { param, plus: plus - n });
            }
            (Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual, x, y) => {
                if let Some(order) = self.without_value(x, y)? {
                    return Ok(Value::Bool(match op {
                        Op::Less => order.is_lt(),
                        Op::LessEqual => order.is_le(),
                        Op::Greater => order.is_gt(),
                        _ => order.is_ge(),
                    }));
                }
            }
            _ => {}
        }
        let (x, y) = (a.integer(scope, token)?, b.integer(scope, token)?);
        let number = match op {
            Op::Less => return Ok(Value::Bool(x < y)),
            Op::LessEqual => return Ok(Value::Bool(x <= y)),
            Op::Greater => return Ok(Value::Bool(x > y)),
            Op::GreaterEqual => return Ok(Value::Bool(x >= y)),
            Op::Add => x.checked_add(y),
            Op::Subtract => x.checked_sub(y),
            Op::Multiply => x.checked_mul(y),
            _ if y <= 0 => {
                return Err(Fault::at(
                    Stage::Type,
                    b.start,
                    b.end,
                    format!("`{token}` needs a positive divisor, but this is {y}"),
                ));
            }
            Op::Div => x.checked_div_euclid(y),
            _ => x.checked_rem_euclid(y),
        };
        number.map(Value::Int).ok_or_else(|| self.overflow())
    }

    /// Evaluates to a number.
    pub fn integer(&self, scope: &[(String, Value)], user: &str) -> Result<i64, Fault> {
        match self.value(scope)? {
            Value::Int(n) => Ok(n),
            Value::Bool(b) => {
                Err(self.mismatch(format!("`{user}` needs a number, but this is {b}")))
            }
            Value::Any { .. } => Err(self.no_value(user)),
        }
    }

    /// Compares two numbers of which one is unknown: by the added numbers, if both are the same
    /// parameter's.
    fn without_value(&self, x: Value, y: Value) -> Result<Option<std::cmp::Ordering>, Fault> {
        match (x, y) {
            (Value::Any { param, plus }, Value::Any { param: other, plus: added })
                if param == other =>
            {
                Ok(Some(plus.cmp(&added)))
            }
            (Value::Any { .. }, _) | (_, Value::Any { .. }) => Err(self.no_value("a comparison")),
            _ => Ok(None),
        }
    }

    fn no_value(&self, user: &str) -> Fault {
        let message =
            format!("`{user}` needs a value, but this is a parameter that is set to `any`");
        Fault::at(Stage::Unsupported, self.start, self.end, message)
            .note("a parameter with the value `any` may only occur in expressions such as `${name}` and `${name + 1}`: the text must not depend on its value")
    }

    /// Evaluates to a truth value.
    pub fn boolean(&self, scope: &[(String, Value)], user: &str) -> Result<bool, Fault> {
        match self.value(scope)? {
            Value::Bool(b) => Ok(b),
            Value::Int(n) => {
                Err(self.mismatch(format!("`{user}` needs a truth value, but this is {n}")))
            }
            Value::Any { .. } => {
                Err(self.mismatch(format!("`{user}` needs a truth value, but this is a number")))
            }
        }
    }

    /// True if a name that the predicate accepts occurs.
    pub fn mentions(&self, accepts: &dyn Fn(&str) -> bool) -> bool {
        match &self.kind {
            Kind::Literal(_) => false,
            Kind::Name(name) => accepts(name),
            Kind::Unary(_, e) => e.mentions(accepts),
            Kind::Binary(_, a, b) => a.mentions(accepts) || b.mentions(accepts),
        }
    }

    /// Returns an upper bound of a parameter that this condition implies; `None` if none is found.
    /// `known`: upper bounds of other parameters without a value.
    pub fn greatest(
        &self,
        name: &str,
        scope: &[(String, Value)],
        known: &[(String, i64)],
    ) -> Option<i64> {
        let Kind::Binary(op, a, b) = &self.kind else { return None };
        let is_name = |e: &Expr| matches!(&e.kind, Kind::Name(n) if n == name);
        let at_most = |e: &Expr, less: i64| e.upper_bound(name, scope, known)?.checked_sub(less);
        match op {
            Op::And => {
                let each = [a, b].map(|e| e.greatest(name, scope, known));
                each.into_iter().flatten().min()
            }
            Op::Or => Some(a.greatest(name, scope, known)?.max(b.greatest(name, scope, known)?)),
            Op::LessEqual | Op::Equal if is_name(a) => at_most(b, 0),
            Op::Less if is_name(a) => at_most(b, 1),
            Op::GreaterEqual | Op::Equal if is_name(b) => at_most(a, 0),
            Op::Greater if is_name(b) => at_most(a, 1),
            _ => None,
        }
    }

    /// Returns an upper bound of a number that does not depend on the parameter `name`.
    fn upper_bound(
        &self,
        name: &str,
        scope: &[(String, Value)],
        known: &[(String, i64)],
    ) -> Option<i64> {
        if self.mentions(&|n| n == name) {
            return None;
        }
        if let Ok(Value::Int(n)) = self.value(scope) {
            return Some(n);
        }
        match &self.kind {
            Kind::Name(other) => known.iter().find(|k| k.0 == *other).map(|k| k.1),
            Kind::Binary(Op::Add, a, b) => {
                let upper = |e: &Expr| e.upper_bound(name, scope, known);
                upper(a)?.checked_add(upper(b)?)
            }
            Kind::Binary(Op::Subtract, a, b) => match b.value(scope) {
                Ok(Value::Int(n)) => a.upper_bound(name, scope, known)?.checked_sub(n),
                _ => None,
            },
            _ => None,
        }
    }

    fn mismatch(&self, message: String) -> Fault {
        Fault::at(Stage::Type, self.start, self.end, message)
    }
    fn overflow(&self) -> Fault {
        self.mismatch("the value does not fit in 64 bits".into())
    }
}
