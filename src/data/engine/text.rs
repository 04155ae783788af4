//! Values as text, in mCRL2 notation where that is short; for messages, cut to a readable length.

use super::compile::Program;
use crate::data::expr::Binder;
use crate::data::signature::{Builtin, OpKind};
use crate::data::value::{Rich, Value};
use std::fmt::Write;

/// Longest text in a message.
const MAX_LENGTH: usize = 400;

/// The text of a value, shortened with `…`.
pub fn shortened(p: &Program, v: &Value) -> String {
    text(p, v, MAX_LENGTH)
}

/// The text of a value, cut after about `limit` bytes.
pub fn text(p: &Program, v: &Value, limit: usize) -> String {
    let mut out = String::new();
    write(p, v, limit, 0, &mut out);
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

fn write(p: &Program, v: &Value, limit: usize, depth: usize, out: &mut String) {
    if out.len() > limit || depth > 200 {
        if !out.ends_with('…') {
            out.push('…');
        }
        return;
    }
    let sequence = |out: &mut String, open: &str, items: &mut dyn Iterator<Item = &Value>, close: &str| {
        out.push_str(open);
        for (i, item) in items.enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            write(p, item, limit, depth + 1, out);
            if out.len() > limit {
                break;
            }
        }
        out.push_str(close);
    };
    match v {
        Value::Bool(b) => _ = write!(out, "{b}"),
        Value::Int(n) => _ = write!(out, "{n}"),
        Value::Con(op) | Value::Sym(op) => out.push_str(&p.signature.op(*op).name),
        Value::Nil(_) => out.push_str("[]"),
        Value::Unknown(u) => _ = write!(out, "_{u}"),
        Value::Cons(_) => match v.list_elements() {
            Some(elements) => sequence(out, "[", &mut elements.iter(), "]"),
            None => {
                let Value::Cons(cell) = v else { return };
                write(p, &cell.head, limit, depth + 1, out);
                out.push_str(" |> ");
                write(p, &cell.tail, limit, depth + 1, out);
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
                    write(p, e, limit, depth + 1, out);
                    out.push_str(": ");
                    write(p, n, limit, depth + 1, out);
                }
                if entries.is_empty() {
                    out.push(':');
                }
                out.push('}');
            }
            Rich::Closure(c) => {
                let (open, dot, close) = match c.lambda.binder {
                    Binder::Lambda => ("lambda ", ". ", ""),
                    Binder::Forall => ("forall ", ". ", ""),
                    Binder::Exists => ("exists ", ". ", ""),
                    Binder::SetComprehension | Binder::BagComprehension => ("{ ", " | ", " }"),
                };
                out.push_str(open);
                for (i, (var, sort)) in c.lambda.vars.iter().zip(&c.lambda.sorts).enumerate() {
                    let name = if var.index() < p.signature.var_count() { p.signature.var(*var).name.as_str() } else { "x" };
                    _ = write!(out, "{}{name}: {}", if i > 0 { ", " } else { "" }, p.signature.sorts.text(*sort));
                }
                out.push_str(dot);
                out.push('…');
                out.push_str(close);
            }
            Rich::Table(_, base, entries) => {
                write(p, base, limit, depth + 1, out);
                for (k, v) in entries.iter() {
                    out.push('[');
                    write(p, k, limit, depth + 1, out);
                    out.push_str(" -> ");
                    write(p, v, limit, depth + 1, out);
                    out.push(']');
                }
            }
            Rich::Apply(head, args) => {
                write(p, head, limit, depth + 1, out);
                sequence(out, "(", &mut args.iter(), ")");
            }
        },
        _ => {
            let Some((op, args)) = v.as_app() else { return };
            let name = &p.signature.op(op).name;
            match (&p.signature.op(op).kind, args) {
                (OpKind::Builtin(Builtin::Not | Builtin::Negate | Builtin::Complement | Builtin::Size), [a]) => {
                    out.push_str(name);
                    write_operand(p, a, limit, depth, out);
                }
                (OpKind::Builtin(b), [x, y])
                    if !matches!(b, Builtin::Max | Builtin::Min | Builtin::Count | Builtin::Exp | Builtin::SetInsert) =>
                {
                    write_operand(p, x, limit, depth, out);
                    _ = write!(out, " {name} ");
                    write_operand(p, y, limit, depth, out);
                }
                (OpKind::Builtin(Builtin::FSetToSet | Builtin::FBagToBag), [a]) => write(p, a, limit, depth + 1, out),
                _ => {
                    out.push_str(name);
                    let mut from = 0;
                    for &to in &p.op(op).levels[1..] {
                        let to = (to as usize).min(args.len());
                        if from < to {
                            sequence(out, "(", &mut args[from..to].iter(), ")");
                        }
                        from = to;
                    }
                }
            }
        }
    }
}

fn write_operand(p: &Program, v: &Value, limit: usize, depth: usize, out: &mut String) {
    let infix = v.as_app().is_some_and(|(op, args)| args.len() == 2 && matches!(p.signature.op(op).kind, OpKind::Builtin(_)));
    if infix {
        out.push('(');
        write(p, v, limit, depth + 1, out);
        out.push(')');
    } else {
        write(p, v, limit, depth + 1, out);
    }
}
