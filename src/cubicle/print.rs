//! Printer of syntax trees, as text that parses to an equal tree.
//!
//! Memory accesses have one spelling (`p @ X`), conjunction is `&&`, and parentheses are printed
//! only where necessary. Cost: linear; recursion is as deep as the parser allows
//! ([`crate::parse::MAX_DEPTH`]).

use crate::ast::{DeclarationKind, File, Formula, Item, Name, Right, Term, Update, Value};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;
use std::fmt::{Display, Formatter, Result, Write};

/// The binding strength of an operator; an operand that binds more weakly needs parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Loosest,
    Implication,
    Or,
    And,
    Not,
    Sum,
    Product,
    Factor,
}

fn names(f: &mut Formatter<'_>, all: &[Name], separator: &str) -> Result {
    for (i, name) in all.iter().enumerate() {
        f.write_str(if i > 0 { separator } else { "" })?;
        f.write_str(&name.text)?;
    }
    Ok(())
}

fn cell(f: &mut Formatter<'_>, name: &Name, args: &[Name]) -> Result {
    f.write_str(&name.text)?;
    if args.is_empty() {
        return Ok(());
    }
    f.write_char('[')?;
    names(f, args, ", ")?;
    f.write_char(']')
}

/// Prints a number in the form that the lexer reads: an integer, or with a decimal point if `real`
/// or if it is not an integer. Fractions with other prime factors than 2 and 5 in the denominator
/// have no such form and do not occur in files.
fn number(f: &mut Formatter<'_>, value: &BigRational, real: bool) -> Result {
    let whole = value.to_integer();
    write!(f, "{whole}")?;
    let mut part = value - BigRational::from(whole);
    if !real && part.is_zero() {
        return Ok(());
    }
    f.write_char('.')?;
    if part.is_zero() {
        return f.write_char('0');
    }
    let ten = BigRational::from(BigInt::from(10));
    for _ in 0..400 {
        if part.is_zero() {
            break;
        }
        part *= &ten;
        let digit = part.to_integer();
        write!(f, "{digit}")?;
        part -= BigRational::from(digit);
    }
    Ok(())
}

fn term(f: &mut Formatter<'_>, t: &Term, level: Level) -> Result {
    let own = match t {
        Term::Add(..) | Term::Sub(..) => Level::Sum,
        Term::Mul(..) => Level::Product,
        _ => Level::Factor,
    };
    if own < level {
        f.write_char('(')?;
    }
    match t {
        Term::Number(n, real, _) => number(f, n, *real)?,
        Term::Name(name) => f.write_str(&name.text)?,
        Term::Cell(name, args) => cell(f, name, args)?,
        Term::By(by, of) => {
            write!(f, "{} @ ", by.text)?;
            term(f, of, Level::Factor)?;
        }
        Term::Add(a, b) | Term::Sub(a, b) => {
            term(f, a, Level::Sum)?;
            f.write_str(if matches!(t, Term::Add(..)) { " + " } else { " - " })?;
            term(f, b, Level::Product)?;
        }
        Term::Mul(a, b) => {
            term(f, a, Level::Factor)?;
            f.write_str(" * ")?;
            term(f, b, Level::Factor)?;
        }
        Term::Neg(a) => {
            f.write_char('-')?;
            term(f, a, Level::Factor)?;
        }
        Term::Signed(a) => {
            f.write_str("signed(")?;
            term(f, a, Level::Sum)?;
            f.write_char(')')?;
        }
        Term::Mask(a, mask) => {
            f.write_str("mask(")?;
            term(f, a, Level::Sum)?;
            write!(f, ", {mask})")?;
        }
    }
    if own < level {
        f.write_char(')')?;
    }
    Ok(())
}

fn several(f: &mut Formatter<'_>, all: &[Formula], sign: &str, level: Level) -> Result {
    for (i, e) in all.iter().enumerate() {
        f.write_str(if i > 0 { sign } else { "" })?;
        expr(f, e, level)?;
    }
    Ok(())
}

fn expr(f: &mut Formatter<'_>, e: &Formula, level: Level) -> Result {
    let own = match e {
        Formula::Quantified(..) => Level::Loosest,
        Formula::Implies(..) | Formula::Iff(..) => Level::Implication,
        Formula::Or(_) => Level::Or,
        Formula::And(_) => Level::And,
        // `if` ends with an operand of this level, so it needs no parentheses in an operand of
        // `not`.
        Formula::Not(_) | Formula::If(..) => Level::Not,
        Formula::Constant(..) | Formula::Compare(..) | Formula::Fence(..) | Formula::Call(..) => {
            Level::Factor
        }
    };
    if own < level {
        f.write_char('(')?;
    }
    match e {
        Formula::Constant(value, _) => write!(f, "{value}")?,
        Formula::Compare(a, cmp, b) => {
            term(f, a, Level::Sum)?;
            write!(f, " {} ", cmp.sign())?;
            term(f, b, Level::Sum)?;
        }
        Formula::Fence(by, _) => write!(f, "fence({})", by.as_ref().map_or("", |n| &n.text))?,
        Formula::Call(name, args) => {
            write!(f, "{}(", name.text)?;
            for (i, arg) in args.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                term(f, arg, Level::Sum)?;
            }
            f.write_char(')')?;
        }
        Formula::Not(a) => {
            f.write_str("not ")?;
            expr(f, a, Level::Not)?;
        }
        Formula::And(all) => several(f, all, " && ", Level::Not)?,
        Formula::Or(all) => several(f, all, " || ", Level::And)?,
        Formula::Implies(a, b) | Formula::Iff(a, b) => {
            expr(f, a, Level::Or)?;
            f.write_str(if matches!(e, Formula::Implies(..)) { " => " } else { " <=> " })?;
            expr(f, b, Level::Implication)?;
        }
        Formula::If(c, a, b) => {
            f.write_str("if ")?;
            expr(f, c, Level::Implication)?;
            f.write_str(" then ")?;
            expr(f, a, Level::Implication)?;
            f.write_str(" else ")?;
            expr(f, b, Level::Not)?;
        }
        Formula::Quantified(q, vars, body) => {
            f.write_str(if q.all { "forall" } else { "exists" })?;
            f.write_str(if q.other { "_other " } else { " " })?;
            names(f, vars, " <> ")?;
            f.write_str(". ")?;
            expr(f, body, Level::Loosest)?;
        }
    }
    if own < level {
        f.write_char(')')?;
    }
    Ok(())
}

impl Display for Formula {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        expr(f, self, Level::Loosest)
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        term(f, self, Level::Sum)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Value::Any => f.write_char('.'),
            Value::Term(t) => t.fmt(f),
        }
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(by) = &self.by {
            write!(f, "{} @ ", by.text)?;
        }
        cell(f, &self.name, &self.args)?;
        f.write_str(" := ")?;
        match &self.right {
            Right::Value(value) => value.fmt(f),
            Right::Cases(cases) => {
                f.write_str("case")?;
                for (condition, value) in cases {
                    match condition {
                        Some(c) => write!(f, "\n    | {c} : {value}")?,
                        None => write!(f, "\n    | _ : {value}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

fn claim(f: &mut Formatter<'_>, word: &str, params: &[Name], body: &Formula) -> Result {
    write!(f, "{word} (")?;
    names(f, params, " ")?;
    writeln!(f, ") {{ {body} }}")
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Item::Processes(n, _) => writeln!(f, "number_procs {n}"),
            Item::Type(name, constructors) => {
                write!(f, "type {}", name.text)?;
                f.write_str(if constructors.is_empty() { "" } else { " = " })?;
                names(f, constructors, " | ")?;
                f.write_char('\n')
            }
            Item::Symbol { declared, name, indices, sort } => {
                f.write_str(match (declared, indices.is_empty()) {
                    (DeclarationKind::Constant, _) => "const ",
                    (DeclarationKind::Plain, true) => "var ",
                    (DeclarationKind::Plain, false) => "array ",
                    (DeclarationKind::Weak, true) => "weak var ",
                    (DeclarationKind::Weak, false) => "weak array ",
                })?;
                cell(f, name, indices)?;
                writeln!(f, " : {}", sort.text)
            }
            Item::Predicate(name, params, body) => {
                write!(f, "\npredicate {} (", name.text)?;
                names(f, params, ", ")?;
                writeln!(f, ") {{ {body} }}")
            }
            Item::Init(params, body, _) => {
                f.write_char('\n')?;
                claim(f, "init", params, body)
            }
            Item::Invariant(params, body, _) => claim(f, "invariant", params, body),
            Item::Unsafe(params, body, _) => claim(f, "unsafe", params, body),
            Item::Transition { name, params, requires, updates } => {
                write!(f, "\ntransition {} (", name.text)?;
                for (i, (param, actor)) in params.iter().enumerate() {
                    f.write_str(if i > 0 { " " } else { "" })?;
                    if *actor { write!(f, "[{}]", param.text)? } else { f.write_str(&param.text)? }
                }
                f.write_str(")\n")?;
                if let Some(e) = requires {
                    writeln!(f, "requires {{ {e} }}")?;
                }
                f.write_str("{\n")?;
                for (i, update) in updates.iter().enumerate() {
                    writeln!(f, "  {update}{}", if i + 1 < updates.len() { ";" } else { "" })?;
                }
                f.write_str("}\n")
            }
        }
    }
}

impl Display for File {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.items.iter().try_for_each(|item| item.fmt(f))
    }
}
