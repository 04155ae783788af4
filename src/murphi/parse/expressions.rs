//! Expressions, by precedence climbing.
//!
//! From loosest to tightest: `?:`, `->`, `||`, `&&`, `|`, `^`, `&`, `!`, comparisons, shifts, sums,
//! products, `~`. `?:`, `->` and comparisons do not associate: `a = b = c` is an error. A prefix
//! `!` reaches over comparisons, a prefix `-` only over products' operands.

use super::{MAX_DEPTH, Parsed, Parser};
use crate::ast::{BinarySign, Domain, Expr, ExprKind, Quantifier, UnarySign};
use crate::lexer::{Key, Tok};
use mu_base::{Diagnostic, Span, Stage};

const CONDITIONAL: u8 = 0;
const IMPLIES: u8 = 1;
const NOT: u8 = 7;
const COMPARISON: u8 = 8;
const PRODUCT: u8 = 11;
const OPERAND: u8 = 12;

/// Returns an operator with its level.
fn operator(tok: Tok) -> Option<(BinarySign, u8)> {
    let Tok::Sign(sign) = tok else { return None };
    Some(match sign {
        "->" => (BinarySign::Implies, IMPLIES),
        "||" => (BinarySign::Or, 2),
        "&&" => (BinarySign::And, 3),
        "|" => (BinarySign::Pipe, 4),
        "^" => (BinarySign::Caret, 5),
        "&" => (BinarySign::Ampersand, 6),
        "<" => (BinarySign::Less, COMPARISON),
        "<=" => (BinarySign::LessEqual, COMPARISON),
        ">" => (BinarySign::Greater, COMPARISON),
        ">=" => (BinarySign::GreaterEqual, COMPARISON),
        "=" | "==" => (BinarySign::Equal, COMPARISON),
        "!=" => (BinarySign::NotEqual, COMPARISON),
        "<<" => (BinarySign::ShiftLeft, 9),
        ">>" => (BinarySign::ShiftRight, 9),
        "+" => (BinarySign::Plus, 10),
        "-" => (BinarySign::Minus, 10),
        "*" => (BinarySign::Times, PRODUCT),
        "/" => (BinarySign::Divide, PRODUCT),
        "%" => (BinarySign::Percent, PRODUCT),
        _ => return None,
    })
}

fn expr(kind: ExprKind, span: Span) -> Expr {
    Expr { kind, span }
}

impl Parser<'_> {
    /// Parses an expression.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.expression_from(CONDITIONAL)
    }
    /// Parses an expression with operators of this level and tighter ones.
    fn expression_from(&mut self, level: u8) -> Parsed<Expr> {
        let siblings = std::mem::take(&mut self.height);
        let parsed = self.deeper(|p| p.operators(level));
        self.height = self.height.max(siblings);
        parsed
    }
    /// Adds a level to the tree that is under construction.
    fn grow(&mut self) -> Parsed<()> {
        self.height += 1;
        if self.height <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("more than {MAX_DEPTH} operands without parentheses");
        Err(self.fail(self.span(), message))
    }
    fn operators(&mut self, level: u8) -> Parsed<Expr> {
        let mut left = self.operand()?;
        self.grow()?;
        // Operators of this level and looser ones end the expression; after an operator that does
        // not associate, another one of its level is an error.
        let mut last = None;
        loop {
            if level == CONDITIONAL && self.is("?") {
                if last == Some(CONDITIONAL) {
                    return Err(self.ambiguous("?:"));
                }
                last = Some(CONDITIONAL);
                self.next();
                let yes = self.expression()?;
                self.expect(":")?;
                let no = self.expression_from(IMPLIES)?;
                let span = left.span.to(no.span);
                left =
                    expr(ExprKind::Conditional(Box::new(left), Box::new(yes), Box::new(no)), span);
                self.grow()?;
                continue;
            }
            let Some((sign, own)) = operator(self.peek()).filter(|o| o.1 >= level) else {
                return Ok(left);
            };
            if matches!(own, IMPLIES | COMPARISON) && last == Some(own) {
                return Err(self.ambiguous(sign.text()));
            }
            last = Some(own);
            self.next();
            let right = self.expression_from(own + 1)?;
            let span = left.span.to(right.span);
            left = expr(ExprKind::Binary(sign, Box::new(left), Box::new(right)), span);
            self.grow()?;
        }
    }
    fn ambiguous(&self, sign: &str) -> Diagnostic {
        let message =
            format!("`{sign}` behind another operator of its level, expected parentheses");
        self.fail(self.span(), message)
    }

    fn operand(&mut self) -> Parsed<Expr> {
        let from = self.span();
        let (sign, level) = match self.peek() {
            Tok::Sign("!") => (UnarySign::Not, NOT),
            Tok::Sign("~") => (UnarySign::Tilde, OPERAND),
            Tok::Sign("-") => (UnarySign::Minus, OPERAND),
            Tok::Sign("+") => (UnarySign::Plus, OPERAND),
            _ => return self.primary(),
        };
        self.next();
        // A number with its sign may be the lowest one, which has no positive counterpart.
        if sign == UnarySign::Minus && self.peek() == Tok::Number {
            let span = from.to(self.span());
            return Ok(expr(ExprKind::Number(self.number(true)?), span));
        }
        let inner = self.expression_from(level)?;
        let span = from.to(inner.span);
        Ok(expr(ExprKind::Unary(sign, Box::new(inner)), span))
    }
    pub(super) fn number(&mut self, negative: bool) -> Parsed<i64> {
        let span = self.next().span;
        let written = self.source_text(span);
        let value = match written.get(..2) {
            Some("0x" | "0X") => i128::from_str_radix(&written[2..], 16),
            _ => written.parse(),
        };
        let value = value.ok().map(|v| if negative { -v } else { v });
        let fitting = value.and_then(|v| i64::try_from(v).ok()).filter(|v| *v != i64::MIN);
        fitting.ok_or_else(|| {
            let message = format!("`{written}` does not fit into 64 bits with a sign");
            Diagnostic::at(Stage::Unsupported, span, message).note(format!(
                "numbers range from {} to {}",
                i64::MIN + 1,
                i64::MAX
            ))
        })
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let from = self.span();
        match self.peek() {
            Tok::Number => {
                let value = self.number(false)?;
                Ok(expr(ExprKind::Number(value), from))
            }
            Tok::Sign("(") => {
                self.next();
                let mut inner = self.expression()?;
                inner.span = from.to(self.expect(")")?);
                Ok(inner)
            }
            Tok::Key(key @ (Key::Forall | Key::Exists)) => {
                self.next();
                let quantifiers = self.quantifiers()?;
                self.do_or_colon()?;
                let body = self.expression()?;
                let all = key == Key::Forall;
                let end = self.end(if all { Key::Endforall } else { Key::Endexists }, from)?;
                Ok(expr(ExprKind::Quantified(all, quantifiers, Box::new(body)), from.to(end)))
            }
            Tok::Key(Key::Isundefined) => {
                self.next();
                self.expect("(")?;
                let place = self.designator()?;
                let end = self.expect(")")?;
                Ok(expr(ExprKind::IsUndefined(Box::new(place)), from.to(end)))
            }
            Tok::Key(Key::Ismember) => {
                self.next();
                self.expect("(")?;
                let value = self.expression()?;
                self.expect(",")?;
                let ty = self.type_expression()?;
                let end = self.expect(")")?;
                Ok(expr(ExprKind::IsMember(Box::new(value), Box::new(ty)), from.to(end)))
            }
            Tok::Name if self.is_word("multisetcount") && self.is_sign_at(1, "(") => {
                self.next();
                let (name, set, predicate) = self.multiset_predicate()?;
                let kind = ExprKind::MultisetCount(name, Box::new(set), Box::new(predicate));
                Ok(expr(kind, from.to(self.last())))
            }
            Tok::Name if self.is_sign_at(1, "(") => {
                let name = self.name("a function")?;
                let arguments = self.arguments()?;
                Ok(expr(ExprKind::Call(name, arguments), from.to(self.last())))
            }
            Tok::Name => self.designator(),
            _ => Err(self.unexpected("an expression")),
        }
    }
    /// Parses `(name : multiset, predicate)`.
    pub(super) fn multiset_predicate(&mut self) -> Parsed<(crate::ast::Name, Expr, Expr)> {
        self.expect("(")?;
        let name = self.name("a name for the position")?;
        self.expect(":")?;
        let set = self.designator()?;
        self.expect(",")?;
        let predicate = self.expression()?;
        self.expect(")")?;
        Ok((name, set, predicate))
    }
    /// Parses arguments in parentheses; a comma may follow the last one.
    pub(super) fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            arguments.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        if !self.is(")") {
            return Err(self.unexpected("`,` or `)`"));
        }
        self.next();
        Ok(arguments)
    }
    /// Parses a variable with its selections.
    pub(super) fn designator(&mut self) -> Parsed<Expr> {
        let name = self.name("a variable")?;
        let mut place = expr(ExprKind::Name(name.text), name.span);
        loop {
            let opened = self.span();
            let kind = if self.eat(".") {
                ExprKind::Field(Box::new(place), self.name("a field")?)
            } else if self.eat("[") {
                let index = self.expression()?;
                let brackets = opened.to(self.expect("]")?);
                ExprKind::Index(Box::new(place), Box::new(index), brackets)
            } else {
                return Ok(place);
            };
            self.grow()?;
            place = expr(kind, name.span.to(self.last()));
        }
    }

    /// Parses quantifiers with semicolons between them.
    pub(super) fn quantifiers(&mut self) -> Parsed<Vec<Quantifier>> {
        let mut all = vec![self.quantifier()?];
        while self.semicolons() {
            all.push(self.quantifier()?);
        }
        Ok(all)
    }
    fn quantifier(&mut self) -> Parsed<Quantifier> {
        let name = self.name("a variable (`name: type` or `name := from to last`)")?;
        let domain = if self.eat(":") {
            Domain::Type(self.type_expression()?)
        } else if self.eat(":=") {
            let from = self.expression()?;
            self.expect_key(Key::To)?;
            let to = self.expression()?;
            let by = if self.eat_key(Key::By) { Some(Box::new(self.expression()?)) } else { None };
            Domain::Range(Box::new(from), Box::new(to), by)
        } else {
            return Err(self.unexpected("`:` and a type, or `:=` and a range"));
        };
        let span = name.span.to(self.last());
        Ok(Quantifier { name, domain, span })
    }
    /// Reads `do`, or the colon that older models have.
    pub(super) fn do_or_colon(&mut self) -> Parsed<()> {
        if self.eat_key(Key::Do) || self.eat(":") { Ok(()) } else { Err(self.unexpected("`do`")) }
    }
}
