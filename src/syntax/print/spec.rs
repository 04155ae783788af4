//! Printer of sections, one declaration per line. See the parent module.

use super::{Context, Printer};
use crate::ast::*;

impl Printer {
    pub(super) fn sections(&mut self, sections: &[Section]) {
        for section in sections {
            if !self.out.is_empty() {
                self.out.push('\n');
            }
            self.section(section);
        }
    }

    fn section(&mut self, section: &Section) {
        match section {
            Section::Sorts(sorts) => self.lines("sort", sorts, |p, (name, definition)| {
                p.word(&name.kind);
                if let Some(definition) = definition {
                    p.word(" = ");
                    p.sort(definition);
                }
            }),
            Section::Constructors(decls) => self.lines("cons", decls, |p, d| p.declaration(d)),
            Section::Mappings(decls) => self.lines("map", decls, |p, d| p.declaration(d)),
            Section::Globals(vars) => {
                self.lines("glob", vars, |p, v| p.var_decls(std::slice::from_ref(v)))
            }
            Section::Equations(vars, equations) => {
                if !vars.is_empty() {
                    self.lines("var", vars, |p, v| p.var_decls(std::slice::from_ref(v)));
                }
                self.lines("eqn", equations, |p, e| {
                    if let Some(condition) = &e.condition {
                        p.data(condition, Context::TOP);
                        p.word(" -> ");
                    }
                    p.data(&e.lhs, Context::TOP);
                    p.word(" = ");
                    p.data(&e.rhs, Context::TOP);
                });
            }
            Section::Actions(actions) => self.lines("act", actions, |p, (name, sorts)| {
                p.word(&name.kind);
                if !sorts.is_empty() {
                    p.word(": ");
                    p.sort_product(sorts);
                }
            }),
            Section::Processes(equations) => self.lines("proc", equations, |p, e| {
                p.word(&e.name.kind);
                if !e.params.is_empty() {
                    p.word("(");
                    p.var_decls(&e.params);
                    p.word(")");
                }
                p.word(if matches!(e.body.kind, ProcessKind::Choice(..)) {
                    " =\n    "
                } else {
                    " = "
                });
                p.summands(&e.body);
            }),
            Section::Init(process) => {
                self.lines("init", std::slice::from_ref(process), |p, q| p.summands(q))
            }
        }
    }

    fn lines<T>(&mut self, word: &str, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.word(word);
        self.word("\n");
        for item in items {
            self.word("  ");
            each(self, item);
            self.word(";\n");
        }
    }

    fn declaration(&mut self, (name, sort): &(Ident, Sort)) {
        self.word(&name.kind);
        self.word(": ");
        self.sort(sort);
    }

    /// Prints a process with its outermost summands on separate lines.
    fn summands(&mut self, process: &Process) {
        let mut rest = process;
        let mut summands = Vec::new();
        while let ProcessKind::Choice(left, right) = &rest.kind {
            summands.push(&**right);
            rest = left;
        }
        let level = crate::precedence::process::CHOICE;
        if summands.is_empty() {
            return self.process(rest, Context::TOP, false);
        }
        self.word("  ");
        self.process(rest, Context::left_of(level, crate::precedence::Assoc::Left), false);
        for summand in summands.into_iter().rev() {
            self.word("\n    + ");
            self.process(
                summand,
                Context::TOP.right_of(level, crate::precedence::Assoc::Left),
                false,
            );
        }
    }
}
