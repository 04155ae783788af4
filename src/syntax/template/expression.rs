//! Expressions of the parameter layer: parser and evaluator. Integers (64 bits, checked) and
//! booleans over parameters and loop variables, with the operators and precedences of mCRL2 data
//! expressions. Linear in the text; nesting is limited, but not the length.

use std::fmt;

use super::{MAX_NESTING, TemplateFault};
use mu_base::Stage;

/// Value of a parameter or expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TemplateValue {
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

impl fmt::Display for TemplateValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateValue::Int(n) => n.fmt(f),
            TemplateValue::Bool(b) => b.fmt(f),
            TemplateValue::Any { plus: 0, .. } => f.write_str("any"),
            TemplateValue::Any { plus, .. } => write!(f, "any + {plus}"),
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
    pub fn expect(&mut self, token: &str, context: &str) -> Result<(), TemplateFault> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}` {context}"))) }
    }
    /// Consumes a name: letters, digits, `_`, not starting with a digit.
    pub fn name(&mut self, what: &str) -> Result<(&'a str, usize), TemplateFault> {
        self.skip();
        let (word, start) = (self.peek_word(), self.at);
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit() || c == '\'') {
            return Err(self.unexpected(what));
        }
        if RESERVED.contains(&word) {
            return Err(TemplateFault::at(
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
    pub fn unexpected(&self, expected: &str) -> TemplateFault {
        let word = self.peek_word();
        let (found, length) = match self.rest().chars().next() {
            None => ("the file ends".to_string(), 0),
            Some(_) if !word.is_empty() => (format!("here is `{word}`"), word.len()),
            Some('\n') => ("the line ends".to_string(), 1),
            Some(c) => (format!("here is `{c}`"), c.len_utf8()),
        };
        TemplateFault::at(
            Stage::Syntax,
            self.at,
            self.at + length,
            format!("expected {expected}, but {found}"),
        )
    }
    /// Runs `f` one level deeper; rejects nesting beyond the limit, so that no input exhausts the
    /// stack.
    pub fn nest<T>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<T, TemplateFault>,
    ) -> Result<T, TemplateFault> {
        if self.depth == MAX_NESTING {
            return Err(TemplateFault::at(
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
pub(super) enum TemplateOp {
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
const BINARY: [(&str, TemplateOp, u8); 14] = [
    ("=>", TemplateOp::Implies, 2),
    ("||", TemplateOp::Or, 3),
    ("&&", TemplateOp::And, 4),
    ("==", TemplateOp::Equal, 5),
    ("!=", TemplateOp::NotEqual, 5),
    ("<=", TemplateOp::LessEqual, 6),
    (">=", TemplateOp::GreaterEqual, 6),
    ("<", TemplateOp::Less, 6),
    (">", TemplateOp::Greater, 6),
    ("+", TemplateOp::Add, 10),
    ("-", TemplateOp::Subtract, 10),
    ("div", TemplateOp::Div, 11),
    ("mod", TemplateOp::Mod, 11),
    ("*", TemplateOp::Multiply, 12),
];

impl TemplateOp {
    fn token(self) -> &'static str {
        match self {
            TemplateOp::Not => "!",
            TemplateOp::Negate => "-",
            _ => BINARY.iter().find(|b| b.1 == self).map_or("?", |b| b.0),
        }
    }
}

/// Expression with its place.
#[derive(Clone, Debug)]
pub(super) struct TemplateExpr {
    kind: TemplateExprKind,
    pub start: usize,
    pub end: usize,
    /// Height of the tree, at most [`MAX_NESTING`], which bounds the stack for evaluation.
    height: usize,
}

#[derive(Clone, Debug)]
enum TemplateExprKind {
    Literal(TemplateValue),
    Name(String),
    Unary(TemplateOp, Box<TemplateExpr>),
    Binary(TemplateOp, Box<TemplateExpr>, Box<TemplateExpr>),
}

/// Parses the longest expression at the cursor.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<TemplateExpr, TemplateFault> {
    binary(cursor, 0)
}

fn binary(cursor: &mut Cursor<'_>, least: u8) -> Result<TemplateExpr, TemplateFault> {
    let mut left = cursor.nest(operand)?;
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
        let right = cursor
            .nest(|c| binary(c, if op == TemplateOp::Implies { level } else { level + 1 }))?;
        let (start, end, height) = (left.start, right.end, left.height.max(right.height) + 1);
        if height > MAX_NESTING {
            return Err(TemplateFault::at(
                Stage::Syntax,
                start,
                end,
                format!("an expression with operators nested more than {MAX_NESTING} deep"),
            ));
        }
        left = TemplateExpr {
            kind: TemplateExprKind::Binary(op, Box::new(left), Box::new(right)),
            start,
            end,
            height,
        };
    }
}

fn operand(cursor: &mut Cursor<'_>) -> Result<TemplateExpr, TemplateFault> {
    cursor.skip();
    let start = cursor.at;
    for op in [TemplateOp::Not, TemplateOp::Negate] {
        if cursor.rest().starts_with(op.token()) {
            cursor.at += 1;
            let inner = cursor.nest(operand)?;
            let (end, height) = (inner.end, inner.height + 1);
            return Ok(TemplateExpr {
                kind: TemplateExprKind::Unary(op, Box::new(inner)),
                start,
                end,
                height,
            });
        }
    }
    if cursor.eat("(") {
        let inner = cursor.nest(|c| binary(c, 0))?;
        cursor.expect(")", "to close the parenthesis")?;
        return Ok(TemplateExpr { start, end: cursor.at, ..inner });
    }
    let word = cursor.peek_word();
    let kind = match word {
        "true" | "false" => TemplateExprKind::Literal(TemplateValue::Bool(word == "true")),
        _ if word.starts_with(|c: char| c.is_ascii_digit()) => match word.parse() {
            Ok(n) => TemplateExprKind::Literal(TemplateValue::Int(n)),
            Err(_) => {
                let why = if word.bytes().all(|b| b.is_ascii_digit()) {
                    "is too large"
                } else {
                    "is not a number"
                };
                return Err(TemplateFault::at(
                    Stage::Syntax,
                    start,
                    start + word.len(),
                    format!("`{word}` {why}"),
                ));
            }
        },
        _ => {
            let (name, _) = cursor.name("a number, a parameter or a loop variable")?;
            return Ok(TemplateExpr {
                kind: TemplateExprKind::Name(name.to_string()),
                start,
                end: cursor.at,
                height: 1,
            });
        }
    };
    cursor.at += word.len();
    Ok(TemplateExpr { kind, start, end: cursor.at, height: 1 })
}

impl TemplateExpr {
    /// Evaluates in a scope of names, innermost last.
    pub fn value(&self, scope: &[(String, TemplateValue)]) -> Result<TemplateValue, TemplateFault> {
        match &self.kind {
            TemplateExprKind::Literal(v) => Ok(*v),
            TemplateExprKind::Name(name) => {
                scope.iter().rev().find(|s| s.0 == *name).map(|s| s.1).ok_or_else(|| {
                    let known: Vec<&str> = scope.iter().map(|s| s.0.as_str()).collect();
                    let known = if known.is_empty() {
                        "no parameter is declared above".into()
                    } else {
                        format!("known here: {}", known.join(", "))
                    };
                    TemplateFault::at(
                        Stage::Type,
                        self.start,
                        self.end,
                        format!("unknown parameter or loop variable `{name}`"),
                    )
                    .note(known)
                })
            }
            TemplateExprKind::Unary(TemplateOp::Not, e) => {
                Ok(TemplateValue::Bool(!e.boolean(scope, "!")?))
            }
            TemplateExprKind::Unary(_, e) => e
                .integer(scope, "-")?
                .checked_neg()
                .map(TemplateValue::Int)
                .ok_or_else(|| self.overflow()),
            TemplateExprKind::Binary(op, a, b) => self.binary_value(*op, a, b, scope),
        }
    }

    fn binary_value(
        &self,
        op: TemplateOp,
        a: &TemplateExpr,
        b: &TemplateExpr,
        scope: &[(String, TemplateValue)],
    ) -> Result<TemplateValue, TemplateFault> {
        let token = op.token();
        match op {
            TemplateOp::Implies => {
                return Ok(TemplateValue::Bool(
                    !a.boolean(scope, token)? || b.boolean(scope, token)?,
                ));
            }
            TemplateOp::Or => {
                return Ok(TemplateValue::Bool(
                    a.boolean(scope, token)? || b.boolean(scope, token)?,
                ));
            }
            TemplateOp::And => {
                return Ok(TemplateValue::Bool(
                    a.boolean(scope, token)? && b.boolean(scope, token)?,
                ));
            }
            TemplateOp::Equal | TemplateOp::NotEqual => {
                let (x, y) = (a.value(scope)?, b.value(scope)?);
                if let Some(order) = self.without_value(x, y)? {
                    return Ok(TemplateValue::Bool(order.is_eq() == (op == TemplateOp::Equal)));
                }
                if matches!(x, TemplateValue::Int(_)) != matches!(y, TemplateValue::Int(_)) {
                    return Err(self.mismatch(format!(
                        "`{token}` compares a number with a truth value: {x} and {y}"
                    )));
                }
                return Ok(TemplateValue::Bool((x == y) == (op == TemplateOp::Equal)));
            }
            _ => {}
        }
        match (op, a.value(scope)?, b.value(scope)?) {
            (TemplateOp::Add, TemplateValue::Any { param, plus }, TemplateValue::Int(n))
            | (TemplateOp::Add, TemplateValue::Int(n), TemplateValue::Any { param, plus })
                if plus.checked_add(n).is_none_or(|sum| sum >= 0) =>
            {
                return Ok(TemplateValue::Any {
                    param,
                    plus: plus.checked_add(n).ok_or_else(|| self.overflow())?,
                });
            }
            (TemplateOp::Subtract, TemplateValue::Any { param, plus }, TemplateValue::Int(n))
                if plus >= n =>
            {
                let plus = plus.checked_sub(n).ok_or_else(|| self.overflow())?;
                return Ok(TemplateValue::Any { param, plus });
            }
            (
                TemplateOp::Less
                | TemplateOp::LessEqual
                | TemplateOp::Greater
                | TemplateOp::GreaterEqual,
                x,
                y,
            ) => {
                if let Some(order) = self.without_value(x, y)? {
                    return Ok(TemplateValue::Bool(match op {
                        TemplateOp::Less => order.is_lt(),
                        TemplateOp::LessEqual => order.is_le(),
                        TemplateOp::Greater => order.is_gt(),
                        _ => order.is_ge(),
                    }));
                }
            }
            _ => {}
        }
        let (x, y) = (a.integer(scope, token)?, b.integer(scope, token)?);
        let number = match op {
            TemplateOp::Less => return Ok(TemplateValue::Bool(x < y)),
            TemplateOp::LessEqual => return Ok(TemplateValue::Bool(x <= y)),
            TemplateOp::Greater => return Ok(TemplateValue::Bool(x > y)),
            TemplateOp::GreaterEqual => return Ok(TemplateValue::Bool(x >= y)),
            TemplateOp::Add => x.checked_add(y),
            TemplateOp::Subtract => x.checked_sub(y),
            TemplateOp::Multiply => x.checked_mul(y),
            _ if y <= 0 => {
                return Err(TemplateFault::at(
                    Stage::Type,
                    b.start,
                    b.end,
                    format!("`{token}` needs a positive divisor, but this is {y}"),
                ));
            }
            TemplateOp::Div => x.checked_div_euclid(y),
            _ => x.checked_rem_euclid(y),
        };
        number.map(TemplateValue::Int).ok_or_else(|| self.overflow())
    }

    /// Evaluates to a number.
    pub fn integer(
        &self,
        scope: &[(String, TemplateValue)],
        user: &str,
    ) -> Result<i64, TemplateFault> {
        match self.value(scope)? {
            TemplateValue::Int(n) => Ok(n),
            TemplateValue::Bool(b) => {
                Err(self.mismatch(format!("`{user}` needs a number, but this is {b}")))
            }
            TemplateValue::Any { .. } => Err(self.no_value(user)),
        }
    }

    /// Compares two numbers of which one is unknown: by the added numbers, if both are the same
    /// parameter's.
    fn without_value(
        &self,
        x: TemplateValue,
        y: TemplateValue,
    ) -> Result<Option<std::cmp::Ordering>, TemplateFault> {
        match (x, y) {
            (
                TemplateValue::Any { param, plus },
                TemplateValue::Any { param: other, plus: added },
            ) if param == other => Ok(Some(plus.cmp(&added))),
            (TemplateValue::Any { .. }, _) | (_, TemplateValue::Any { .. }) => {
                Err(self.no_value("a comparison"))
            }
            _ => Ok(None),
        }
    }

    fn no_value(&self, user: &str) -> TemplateFault {
        let message =
            format!("`{user}` needs a value, but this is a parameter that is set to `any`");
        TemplateFault::at(Stage::Unsupported, self.start, self.end, message)
            .note("a parameter with the value `any` may only occur in expressions such as `${name}` and `${name + 1}`: the text must not depend on its value")
    }

    /// Evaluates to a truth value.
    pub fn boolean(
        &self,
        scope: &[(String, TemplateValue)],
        user: &str,
    ) -> Result<bool, TemplateFault> {
        match self.value(scope)? {
            TemplateValue::Bool(b) => Ok(b),
            TemplateValue::Int(n) => {
                Err(self.mismatch(format!("`{user}` needs a truth value, but this is {n}")))
            }
            TemplateValue::Any { .. } => {
                Err(self.mismatch(format!("`{user}` needs a truth value, but this is a number")))
            }
        }
    }

    /// True if a name that the predicate accepts occurs.
    pub fn mentions(&self, accepts: &dyn Fn(&str) -> bool) -> bool {
        match &self.kind {
            TemplateExprKind::Literal(_) => false,
            TemplateExprKind::Name(name) => accepts(name),
            TemplateExprKind::Unary(_, e) => e.mentions(accepts),
            TemplateExprKind::Binary(_, a, b) => a.mentions(accepts) || b.mentions(accepts),
        }
    }

    /// Returns an upper bound of a parameter that this condition implies; `None` if none is found.
    /// `known`: upper bounds of other parameters without a value.
    pub fn greatest(
        &self,
        name: &str,
        scope: &[(String, TemplateValue)],
        known: &[(String, i64)],
    ) -> Option<i64> {
        let TemplateExprKind::Binary(op, a, b) = &self.kind else { return None };
        let is_name = |e: &TemplateExpr| matches!(&e.kind, TemplateExprKind::Name(n) if n == name);
        let at_most =
            |e: &TemplateExpr, less: i64| e.upper_bound(name, scope, known)?.checked_sub(less);
        match op {
            TemplateOp::And => {
                let each = [a, b].map(|e| e.greatest(name, scope, known));
                each.into_iter().flatten().min()
            }
            TemplateOp::Or => {
                Some(a.greatest(name, scope, known)?.max(b.greatest(name, scope, known)?))
            }
            TemplateOp::LessEqual | TemplateOp::Equal if is_name(a) => at_most(b, 0),
            TemplateOp::Less if is_name(a) => at_most(b, 1),
            TemplateOp::GreaterEqual | TemplateOp::Equal if is_name(b) => at_most(a, 0),
            TemplateOp::Greater if is_name(b) => at_most(a, 1),
            _ => None,
        }
    }

    /// Returns an upper bound of a number that does not depend on the parameter `name`.
    fn upper_bound(
        &self,
        name: &str,
        scope: &[(String, TemplateValue)],
        known: &[(String, i64)],
    ) -> Option<i64> {
        if self.mentions(&|n| n == name) {
            return None;
        }
        if let Ok(TemplateValue::Int(n)) = self.value(scope) {
            return Some(n);
        }
        match &self.kind {
            TemplateExprKind::Name(other) => known.iter().find(|k| k.0 == *other).map(|k| k.1),
            TemplateExprKind::Binary(TemplateOp::Add, a, b) => {
                let upper = |e: &TemplateExpr| e.upper_bound(name, scope, known);
                upper(a)?.checked_add(upper(b)?)
            }
            TemplateExprKind::Binary(TemplateOp::Subtract, a, b) => match b.value(scope) {
                Ok(TemplateValue::Int(n)) => a.upper_bound(name, scope, known)?.checked_sub(n),
                _ => None,
            },
            _ => None,
        }
    }

    fn mismatch(&self, message: String) -> TemplateFault {
        TemplateFault::at(Stage::Type, self.start, self.end, message)
    }
    fn overflow(&self) -> TemplateFault {
        self.mismatch("the value does not fit in 64 bits".into())
    }
}
