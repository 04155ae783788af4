//! Printer of sorts, variable declarations and data expressions. See the parent module for the
//! rules.

use super::{Context, Printer, deep};
use crate::ast::*;
use crate::precedence::data as level;

impl Printer {
    // ---- sorts

    pub(super) fn sort(&mut self, sort: &Sort) {
        deep(|| match &sort.kind {
            SortKind::Bool => self.word("Bool"),
            SortKind::Pos => self.word("Pos"),
            SortKind::Nat => self.word("Nat"),
            SortKind::Int => self.word("Int"),
            SortKind::Real => self.word("Real"),
            SortKind::List(s) => self.container("List", s),
            SortKind::Set(s) => self.container("Set", s),
            SortKind::Bag(s) => self.container("Bag", s),
            SortKind::FSet(s) => self.container("FSet", s),
            SortKind::FBag(s) => self.container("FBag", s),
            SortKind::Name(name) => self.word(name),
            SortKind::Struct(constructors) => {
                self.word("struct ");
                self.list(constructors, " | ", |p, c| p.constructor(c));
            }
            SortKind::Function(domain, range) => {
                self.list(domain, " # ", |p, s| p.sort_operand(s));
                self.word(" -> ");
                match range.kind {
                    SortKind::Function(..) => self.sort(range),
                    _ => self.sort_operand(range),
                }
            }
        });
    }

    fn container(&mut self, name: &str, element: &Sort) {
        self.word(name);
        self.word("(");
        self.sort(element);
        self.word(")");
    }

    /// Prints a sort next to `#`, `->` or `|`.
    fn sort_operand(&mut self, sort: &Sort) {
        let opened = self.open(matches!(sort.kind, SortKind::Function(..) | SortKind::Struct(_)));
        self.sort(sort);
        self.close(opened);
    }

    /// Prints `A # B`, as in the declaration of an action.
    pub(super) fn sort_product(&mut self, sorts: &[Sort]) {
        match sorts {
            [sort] => self.sort(sort),
            _ => self.list(sorts, " # ", |p, s| p.sort_operand(s)),
        }
    }

    fn constructor(&mut self, constructor: &StructConstructor) {
        self.word(&constructor.name.kind);
        if !constructor.args.is_empty() {
            self.word("(");
            self.list(&constructor.args, ", ", |p, (projection, sort)| {
                if let Some(projection) = projection {
                    p.word(&projection.kind);
                    p.word(": ");
                }
                p.sort(sort);
            });
            self.word(")");
        }
        if let Some(recogniser) = &constructor.recogniser {
            self.word("?");
            self.word(&recogniser.kind);
        }
    }

    /// Prints `x, y: S, z: T`.
    pub(super) fn var_decls(&mut self, vars: &[VarDecl]) {
        for (i, group) in vars.chunk_by(|a, b| a.sort == b.sort).enumerate() {
            if i > 0 {
                self.word(", ");
            }
            self.list(group, ", ", |p, v| p.word(&v.name.kind));
            self.word(": ");
            self.sort(&group[0].sort);
        }
    }

    // ---- expressions

    pub(super) fn data(&mut self, e: &Data, context: Context) {
        deep(|| match &e.kind {
            DataKind::Name(text) | DataKind::Number(text) => self.word(text),
            DataKind::List(elements) => {
                self.word("[");
                self.data_list(elements);
                self.word("]");
            }
            DataKind::Set(elements) => {
                self.word("{");
                self.data_list(elements);
                self.word("}");
            }
            DataKind::Bag(elements) if elements.is_empty() => self.word("{:}"),
            DataKind::Bag(elements) => {
                self.word("{");
                self.list(elements, ", ", |p, (element, count)| {
                    p.data(element, Context::TOP);
                    p.word(": ");
                    p.data(count, Context::TOP);
                });
                self.word("}");
            }
            DataKind::Comprehension(var, body) => {
                self.word("{");
                self.word(&var.name.kind);
                self.word(": ");
                self.sort_operand(&var.sort);
                self.word(" | ");
                self.data(body, Context::TOP);
                self.word("}");
            }
            DataKind::Apply(head, args) => {
                self.data_head(head);
                self.word("(");
                self.data_list(args);
                self.word(")");
            }
            DataKind::Update(head, at, value) => {
                self.data_head(head);
                self.word("[");
                self.data(at, Context::TOP);
                self.word(" -> ");
                self.data(value, Context::TOP);
                self.word("]");
            }
            DataKind::Unary(op, operand) => {
                let opened = self.open(level::UNARY < context.before);
                self.word(op.symbol());
                self.data(operand, self.inside(opened, context).after_prefix(level::UNARY));
                self.close(opened);
            }
            DataKind::Binary(op, left, right) => {
                let (level, assoc) = op.level();
                let opened = self.open(level < context.least);
                let context = self.inside(opened, context);
                let left_opened = self.open(ends_in_looser_prefix(left, level));
                self.data(left, self.inside(left_opened, Context::left_of(level, assoc)));
                self.close(left_opened);
                self.word(" ");
                self.word(op.symbol());
                self.word(" ");
                self.data(right, context.right_of(level, assoc));
                self.close(opened);
            }
            DataKind::Lambda(vars, body) => self.binder("lambda ", vars, body, context),
            DataKind::Forall(vars, body) => self.binder("forall ", vars, body, context),
            DataKind::Exists(vars, body) => self.binder("exists ", vars, body, context),
            DataKind::Where(body, definitions) => {
                let opened =
                    self.open(level::WHERE < context.least || level::WHERE < context.before);
                self.data(body, Context::TOP);
                self.word(" whr ");
                self.list(definitions, ", ", |p, (name, value)| {
                    p.word(&name.kind);
                    p.word(" = ");
                    p.data(value, Context::TOP);
                });
                self.word(" end");
                self.close(opened);
            }
        });
    }

    /// Returns the context inside, depending on whether a parenthesis was opened.
    pub(super) fn inside(&self, opened: bool, context: Context) -> Context {
        if opened { Context::TOP } else { context }
    }

    pub(super) fn data_list(&mut self, elements: &[Data]) {
        self.list(elements, ", ", |p, e| p.data(e, Context::TOP));
    }

    fn binder(&mut self, word: &str, vars: &[VarDecl], body: &Data, context: Context) {
        let opened = self.open(level::BINDER < context.before);
        self.word(word);
        self.var_decls(vars);
        self.word(". ");
        self.data(body, self.inside(opened, context).after_prefix(level::BINDER));
        self.close(opened);
    }

    /// Prints the head of an application or update.
    fn data_head(&mut self, head: &Data) {
        let plain = !matches!(
            head.kind,
            DataKind::Unary(..)
                | DataKind::Binary(..)
                | DataKind::Lambda(..)
                | DataKind::Forall(..)
                | DataKind::Exists(..)
                | DataKind::Where(..)
        );
        let opened = self.open(!plain);
        self.data(head, Context::TOP);
        self.close(opened);
    }

    /// Prints a condition of a process or a time. Parentheses enclose everything except a name, a
    /// number, an application or a prefix of those.
    pub(super) fn data_unit(&mut self, e: &Data) {
        let opened = self.open(!is_unit(e));
        self.data(e, Context::TOP);
        self.close(opened);
    }
}

fn is_unit(mut e: &Data) -> bool {
    while let DataKind::Unary(_, operand) = &e.kind {
        e = operand;
    }
    loop {
        match &e.kind {
            DataKind::Name(_) | DataKind::Number(_) => return true,
            DataKind::Apply(head, _) => e = head,
            _ => return false,
        }
    }
}

/// True if the text of `e` ends in the operand of a prefix operator looser than `level`, without
/// parentheses around it.
fn ends_in_looser_prefix(mut e: &Data, level: u8) -> bool {
    // Skips the first step: a prefix operator directly before the infix one gets its parentheses
    // anyway.
    let mut within = false;
    loop {
        e = match &e.kind {
            DataKind::Binary(op, _, right) if op.level().0 >= level => right,
            DataKind::Unary(_, operand) => operand,
            DataKind::Lambda(..) | DataKind::Forall(..) | DataKind::Exists(..) => {
                return within && level::BINDER < level;
            }
            _ => return false,
        };
        within = true;
    }
}
