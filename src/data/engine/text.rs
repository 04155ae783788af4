//! Values as text, in mCRL2 notation if that is short, truncated to a readable length for messages.

use super::compile::Program;
use super::machine::EvaluationMachine;
use crate::expr::Binder;
use crate::signature::{Builtin, Op, OpKind};
use crate::value::{Lambda, Rich, Value};
use mu_base::narrow;
use std::fmt::Write;

/// Limit on the length of a text in a message.
const MAX_LENGTH: usize = 400;

/// Limit on the parts in the name of an unknown.
const MAX_PATH: usize = 6;

/// Function from unknowns to their names.
type Naming<'a> = &'a dyn Fn(u32) -> String;

impl EvaluationMachine {
    /// Returns the text of a value, shortened with `…`; unknowns have the names of their variables.
    pub(crate) fn value_text(&self, p: &Program, v: &Value) -> String {
        text_with_names(p, v, MAX_LENGTH, &|u| self.unknown_name(p, u))
    }

    /// Returns the name of an unknown: that of its variable, or for a part of another unknown its
    /// projection, as in `head(l)`.
    pub(crate) fn unknown_name(&self, p: &Program, u: u32) -> String {
        let mut u = u;
        let mut path: Vec<String> = Vec::new();
        // A part is newer than the whole, so this terminates.
        while self.unknowns.var(u).is_none() && path.len() < 100 {
            let Some((whole, part)) = self.whole_of(p, u) else { break };
            path.push(part);
            u = whole;
        }
        let name = match self.unknowns.var(u) {
            Some(v) if v.index() < p.signature.var_count() => p.signature.var(v).name.clone(),
            _ => "an element".to_string(),
        };
        if path.len() > MAX_PATH {
            return format!("a part of {name}");
        }
        path.iter().rev().fold(name, |inner, part| {
            if part.starts_with('.') { inner + part } else { format!("{part}({inner})") }
        })
    }

    /// Returns the unknown of which another is a part, and the name of the part.
    fn whole_of(&self, p: &Program, u: u32) -> Option<(u32, String)> {
        let is = |v: &Value| matches!(v, Value::Unknown(x) if *x == u);
        (0..u).find_map(|whole| match self.unknowns.binding(whole)? {
            Value::Cons(cell) if is(&cell.head) => Some((whole, "head".to_string())),
            Value::Cons(cell) if is(&cell.tail) => Some((whole, "tail".to_string())),
            v => {
                let (op, args) = v.as_app()?;
                let at = narrow::index(args.iter().position(is)?);
                let projects = |o: &Op| matches!(&o.kind, OpKind::Projection(parts) if parts.contains(&(op, at)));
                let projection = p.signature.ops().find(|(_, o)| projects(o)).map(|(_, o)| o.name.clone());
                Some((whole, projection.unwrap_or_else(|| format!(".{}", at + 1))))
            }
        })
    }
}

/// Returns the text of a value, truncated after about `limit` bytes.
pub fn text(p: &Program, v: &Value, limit: usize) -> String {
    text_with_names(p, v, limit, &|u| format!("_{u}"))
}

fn text_with_names(p: &Program, v: &Value, limit: usize, naming: Naming) -> String {
    let mut out = String::new();
    write(p, v, limit, 0, naming, &mut out);
    if out.len() > limit {
        let mut end = limit;
        while !out.is_char_boundary(end) {
            end -= 1;
        }
        out.truncate(end);
        out.push('…');
    }
    out
}

fn write(p: &Program, v: &Value, limit: usize, depth: usize, naming: Naming, out: &mut String) {
    if out.len() > limit || depth > 200 {
        if !out.ends_with('…') {
            out.push('…');
        }
        return;
    }
    let sequence =
        |out: &mut String, open: &str, items: &mut dyn Iterator<Item = &Value>, close: &str| {
            write_sequence(p, items, (open, close), limit, depth, naming, out);
        };
    match v {
        Value::Bool(b) => _ = write!(out, "{b}"),
        Value::Int(n) => _ = write!(out, "{n}"),
        Value::Con(op) | Value::Sym(op) => out.push_str(&p.signature.op(*op).name),
        Value::Nil(_) => out.push_str("[]"),
        Value::Unknown(u) => out.push_str(&naming(*u)),
        Value::Cons(_) => match v.list_elements() {
            Some(elements) => sequence(out, "[", &mut elements.iter(), "]"),
            None => {
                let Value::Cons(cell) = v else { return };
                write(p, &cell.head, limit, depth + 1, naming, out);
                out.push_str(" |> ");
                write(p, &cell.tail, limit, depth + 1, naming, out);
            }
        },
        Value::Rich(node) => match &node.kind {
            Rich::Integer(n) => _ = write!(out, "{n}"),
            Rich::Rational(r) => _ = write!(out, "{}/{}", r.numer(), r.denom()),
            Rich::Set(_, elements) => sequence(out, "{", &mut elements.iter(), "}"),
            Rich::Bag(_, entries) => {
                out.push('{');
                for (i, (e, n)) in entries.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    write(p, e, limit, depth + 1, naming, out);
                    out.push_str(": ");
                    write(p, n, limit, depth + 1, naming, out);
                }
                if entries.is_empty() {
                    out.push(':');
                }
                out.push('}');
            }
            Rich::Closure(c) => write_head(p, &c.lambda, out),
            Rich::Table(_, base, entries) => {
                write(p, base, limit, depth + 1, naming, out);
                for (k, v) in entries.iter() {
                    out.push('[');
                    write(p, k, limit, depth + 1, naming, out);
                    out.push_str(" -> ");
                    write(p, v, limit, depth + 1, naming, out);
                    out.push(']');
                }
            }
            Rich::Apply(head, args) => {
                write(p, head, limit, depth + 1, naming, out);
                sequence(out, "(", &mut args.iter(), ")");
            }
        },
        _ => write_application(p, v, limit, depth, naming, out),
    }
}

/// Writes `open` item, .. `close`
fn write_sequence(
    p: &Program,
    items: &mut dyn Iterator<Item = &Value>,
    (open, close): (&str, &str),
    limit: usize,
    depth: usize,
    naming: Naming,
    out: &mut String,
) {
    out.push_str(open);
    for (i, item) in items.enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        write(p, item, limit, depth + 1, naming, out);
        if out.len() > limit {
            break;
        }
    }
    out.push_str(close);
}

/// Writes a binder without its body.
fn write_head(p: &Program, lambda: &Lambda, out: &mut String) {
    let (open, dot, close) = match lambda.binder {
        Binder::Lambda => ("lambda ", ". ", ""),
        Binder::Forall => ("forall ", ". ", ""),
        Binder::Exists => ("exists ", ". ", ""),
        Binder::SetComprehension | Binder::BagComprehension => ("{ ", " | ", " }"),
    };
    out.push_str(open);
    for (i, (var, sort)) in lambda.vars.iter().zip(&lambda.sorts).enumerate() {
        let name = if var.index() < p.signature.var_count() {
            p.signature.var(*var).name.as_str()
        } else {
            "x"
        };
        _ = write!(
            out,
            "{}{name}: {}",
            if i > 0 { ", " } else { "" },
            p.signature.sorts.text(*sort)
        );
    }
    out.push_str(dot);
    out.push('…');
    out.push_str(close);
}

fn write_application(
    p: &Program,
    v: &Value,
    limit: usize,
    depth: usize,
    naming: Naming,
    out: &mut String,
) {
    let Some((op, args)) = v.as_app() else { return };
    let name = &p.signature.op(op).name;
    match (&p.signature.op(op).kind, args) {
        (
            OpKind::Builtin(Builtin::Not | Builtin::Negate | Builtin::Complement | Builtin::Size),
            [a],
        ) => {
            out.push_str(name);
            write_operand(p, a, limit, depth, naming, out);
        }
        (OpKind::Builtin(b), [x, y])
            if !matches!(
                b,
                Builtin::Max | Builtin::Min | Builtin::Count | Builtin::Exp | Builtin::SetInsert
            ) =>
        {
            write_operand(p, x, limit, depth, naming, out);
            _ = write!(out, " {name} ");
            write_operand(p, y, limit, depth, naming, out);
        }
        (OpKind::Builtin(Builtin::FSetToSet | Builtin::FBagToBag), [a]) => {
            write(p, a, limit, depth + 1, naming, out)
        }
        _ => {
            out.push_str(name);
            let mut from = 0;
            for &to in &p.op(op).levels[1..] {
                let to = (to as usize).min(args.len());
                if from < to {
                    write_sequence(
                        p,
                        &mut args[from..to].iter(),
                        ("(", ")"),
                        limit,
                        depth,
                        naming,
                        out,
                    );
                }
                from = to;
            }
        }
    }
}

fn write_operand(
    p: &Program,
    v: &Value,
    limit: usize,
    depth: usize,
    naming: Naming,
    out: &mut String,
) {
    let infix = v.as_app().is_some_and(|(op, args)| {
        args.len() == 2 && matches!(p.signature.op(op).kind, OpKind::Builtin(_))
    });
    if infix {
        out.push('(');
        write(p, v, limit, depth + 1, naming, out);
        out.push(')');
    } else {
        write(p, v, limit, depth + 1, naming, out);
    }
}
