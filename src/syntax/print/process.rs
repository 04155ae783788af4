//! Printer of process expressions. See the parent module for the rules. In addition, a `c -> p`
//! without `<>` is in parentheses within the text between a `->` and its `<>`, which would
//! otherwise belong to it.

use super::{Context, Printer, deep};
use crate::ast::*;
use crate::precedence::{Assoc, process as level};

impl Printer {
    /// Prints a process; `closed`: a `<>` follows in the same brackets.
    pub(super) fn process(&mut self, p: &Process, context: Context, closed: bool) {
        deep(|| self.process_step(p, context, closed));
    }

    fn process_step(&mut self, p: &Process, context: Context, closed: bool) {
        match &p.kind {
            ProcessKind::Call { name, args, parens } => {
                self.word(&name.kind);
                if *parens || !args.is_empty() {
                    self.word("(");
                    self.data_list(args);
                    self.word(")");
                }
            }
            ProcessKind::CallAssign(name, assignments) => {
                self.word(&name.kind);
                self.word("(");
                self.list(assignments, ", ", |p, (var, value)| {
                    p.word(&var.kind);
                    p.word(" = ");
                    p.data(value, Context::TOP);
                });
                self.word(")");
            }
            ProcessKind::Delta => self.word("delta"),
            ProcessKind::Tau => self.word("tau"),
            ProcessKind::At(inner, time) => {
                let opened = self.open(level::AT < context.least);
                let closed = closed && !opened;
                self.left_operand(inner, level::AT, Assoc::Left, closed);
                self.word(" @ ");
                self.data_unit(time);
                self.close(opened);
            }
            ProcessKind::If(condition, then, otherwise) => {
                let opened =
                    self.open(level::CONDITION < context.before || closed && otherwise.is_none());
                let context = self.inside(opened, context);
                let closed = closed && !opened;
                self.data_unit(condition);
                self.word(" -> ");
                let last = match otherwise {
                    None => then,
                    Some(otherwise) => {
                        self.process(then, Context::TOP, true);
                        self.word(" <> ");
                        otherwise
                    }
                };
                self.process(last, context.after_prefix(level::CONDITION), closed);
                self.close(opened);
            }
            ProcessKind::Sum(vars, body) => {
                let opened = self.open(level::SUM < context.before);
                self.word("sum ");
                self.var_decls(vars);
                self.word(". ");
                self.process(
                    body,
                    self.inside(opened, context).after_prefix(level::SUM),
                    closed && !opened,
                );
                self.close(opened);
            }
            ProcessKind::Dist(vars, weight, body) => {
                let opened = self.open(level::SUM < context.before);
                self.word("dist ");
                self.var_decls(vars);
                self.word("[");
                self.data(weight, Context::TOP);
                self.word("]. ");
                self.process(
                    body,
                    self.inside(opened, context).after_prefix(level::SUM),
                    closed && !opened,
                );
                self.close(opened);
            }
            ProcessKind::Block(names, body) | ProcessKind::Hide(names, body) => {
                self.word(if matches!(p.kind, ProcessKind::Block(..)) {
                    "block({"
                } else {
                    "hide({"
                });
                self.list(names, ", ", |p, n| p.word(&n.kind));
                self.operator_body(body);
            }
            ProcessKind::Allow(names, body) => {
                self.word("allow({");
                self.list(names, ", ", |p, n| p.action_names(n));
                self.operator_body(body);
            }
            ProcessKind::Rename(renamings, body) => {
                self.word("rename({");
                self.list(renamings, ", ", |p, (from, to)| {
                    p.word(&from.kind);
                    p.word(" -> ");
                    p.word(&to.kind);
                });
                self.operator_body(body);
            }
            ProcessKind::Comm(communications, body) => {
                self.word("comm({");
                self.list(communications, ", ", |p, (from, to)| {
                    p.action_names(from);
                    p.word(" -> ");
                    p.word(to.as_ref().map_or("tau", |t| &t.kind));
                });
                self.operator_body(body);
            }
            _ => self.infix(p, context, closed),
        }
    }

    fn infix(&mut self, p: &Process, context: Context, closed: bool) {
        let Some((level, assoc, symbol, left, right)) = infix_parts(p) else { return };
        let opened = self.open(level < context.least);
        let context = self.inside(opened, context);
        let closed = closed && !opened;
        self.left_operand(left, level, assoc, closed);
        self.word(symbol);
        self.process(right, context.right_of(level, assoc), closed);
        self.close(opened);
    }

    /// Prints the left side of an infix or postfix operator.
    fn left_operand(&mut self, p: &Process, level: u8, assoc: Assoc, closed: bool) {
        let opened = self.open(ends_in_looser_prefix(p, level));
        self.process(p, self.inside(opened, Context::left_of(level, assoc)), closed && !opened);
        self.close(opened);
    }

    fn operator_body(&mut self, body: &Process) {
        self.word("}, ");
        self.process(body, Context::TOP, false);
        self.word(")");
    }

    fn action_names(&mut self, names: &ActionNames) {
        self.list(&names.kind, "|", |p, n| p.word(&n.kind));
    }
}

/// Returns level, associativity, symbol and sides of an infix expression; `None` if it is not
/// infix.
pub(super) fn infix_parts(p: &Process) -> Option<(u8, Assoc, &'static str, &Process, &Process)> {
    Some(match &p.kind {
        ProcessKind::Choice(a, b) => (level::CHOICE, Assoc::Left, " + ", a, b),
        ProcessKind::Parallel(a, b) => (level::PARALLEL, Assoc::Right, " || ", a, b),
        ProcessKind::LeftMerge(a, b) => (level::LEFT_MERGE, Assoc::Right, " ||_ ", a, b),
        ProcessKind::BoundedInit(a, b) => (level::UNTIL, Assoc::Left, " << ", a, b),
        ProcessKind::Seq(a, b) => (level::SEQUENCE, Assoc::Right, " . ", a, b),
        ProcessKind::Sync(a, b) => (level::SYNC, Assoc::Left, "|", a, b),
        _ => return None,
    })
}

/// True if the text of `p` ends in the operand of a prefix operator looser than `level`, without
/// parentheses around it.
fn ends_in_looser_prefix(mut p: &Process, level: u8) -> bool {
    let mut within = false;
    loop {
        let own = match &p.kind {
            ProcessKind::If(..) => level::CONDITION,
            ProcessKind::Sum(..) | ProcessKind::Dist(..) => level::SUM,
            _ => match infix_parts(p) {
                Some((own, .., right)) if own >= level => {
                    p = right;
                    within = true;
                    continue;
                }
                _ => return false,
            },
        };
        if own < level {
            return within;
        }
        p = match &p.kind {
            ProcessKind::If(_, then, otherwise) => otherwise.as_ref().unwrap_or(then),
            ProcessKind::Sum(_, body) | ProcessKind::Dist(_, _, body) => body,
            _ => return false,
        };
        within = true;
    }
}
