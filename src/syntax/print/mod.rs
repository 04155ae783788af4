//! Printer of syntax trees: parsing its output gives the same tree.
//!
//! Input: a tree. Output: text with the parentheses that the levels of `precedence.rs` require, and
//! a few more if a looser prefix operator ends a left operand (`(a && forall x: S. b) || c`), since
//! readers misread such text. There is one declaration per line. Cost: linear in the tree; the
//! machine stack is enlarged for deep trees. Invariant: `parse(print(t)) == t` for every tree that
//! the parser can make.

mod data;
mod formula;
mod process;
mod spec;

use super::ast;

/// Prints a whole specification, one declaration per line.
pub fn specification(spec: &ast::Specification) -> String {
    let mut p = Printer::default();
    p.sections(&spec.sections);
    p.out
}

/// Prints a formula file; a formula without declarations is printed alone.
pub fn formula(file: &ast::FormulaFile) -> String {
    let mut p = Printer::default();
    if file.sections.is_empty() {
        p.state(&file.formula, Context::TOP);
        p.out.push('\n');
    } else {
        p.sections(&file.sections);
        p.out.push_str("\nform\n  ");
        p.state(&file.formula, Context::TOP);
        p.out.push_str(";\n");
    }
    p.out
}

/// Prints a data expression.
pub fn data(expression: &ast::Data) -> String {
    let mut p = Printer::default();
    p.data(expression, Context::TOP);
    p.out
}

/// Prints a process expression.
pub fn process(process: &ast::Process) -> String {
    let mut p = Printer::default();
    p.process(process, Context::TOP, false);
    p.out
}

/// Prints a sort expression.
pub fn sort(sort: &ast::Sort) -> String {
    let mut p = Printer::default();
    p.sort(sort);
    p.out
}

/// Context of an expression, as far as parentheses depend on it.
#[derive(Clone, Copy)]
struct Context {
    /// Infix and postfix operators below this level need parentheses.
    least: u8,
    /// The level of the operator that follows; prefix operators below it need parentheses.
    before: u8,
}

impl Context {
    /// Within brackets, or alone.
    const TOP: Context = Context { least: 0, before: 0 };
    /// Returns the context left of an infix or postfix operator.
    fn left_of(level: u8, assoc: super::precedence::Assoc) -> Context {
        let least = if assoc == super::precedence::Assoc::Left { level } else { level + 1 };
        Context { least, before: level }
    }
    /// Returns the context right of an infix operator.
    fn right_of(self, level: u8, assoc: super::precedence::Assoc) -> Context {
        let least = if assoc == super::precedence::Assoc::Left { level + 1 } else { level };
        Context { least, before: self.before }
    }
    /// Returns the context after a prefix operator.
    fn after_prefix(self, level: u8) -> Context {
        Context { least: self.least.max(level), before: self.before }
    }
}

/// Text so far.
#[derive(Default)]
struct Printer {
    out: String,
}

impl Printer {
    fn word(&mut self, text: &str) {
        self.out.push_str(text);
    }
    fn list<T>(&mut self, items: &[T], separator: &str, mut each: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.word(separator);
            }
            each(self, item);
        }
    }
    /// Opens a parenthesis if needed; the result is an argument of [`close`](Self::close).
    fn open(&mut self, needed: bool) -> bool {
        if needed {
            self.out.push('(');
        }
        needed
    }
    fn close(&mut self, opened: bool) {
        if opened {
            self.out.push(')');
        }
    }
}

/// Runs a step of a recursion over a tree that may be deep.
fn deep<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, step)
}
