//! Syntax tree to text, such that parsing the text gives the tree back.
//!
//! Input: a tree. Output: text with the parentheses that the levels of `precedence.rs` ask for, and
//! a few more where a looser prefix operator ends a left operand (`(a && forall x: S. b) || c`),
//! since readers take such text either way. Declarations stand one a line. Cost: linear in the
//! tree; the machine stack is enlarged where the tree is deep. Invariant: `parse(print(t)) == t`
//! for every tree that the parser can make.

mod data;
mod formula;
mod process;
mod spec;

use super::ast;

/// A whole specification, one declaration a line.
pub fn specification(spec: &ast::Specification) -> String {
    let mut p = Printer::default();
    p.sections(&spec.sections);
    p.out
}

/// A formula file; a formula without declarations is printed bare.
pub fn formula(file: &ast::FormulaFile) -> String {
    let mut p = Printer::default();
    if file.sections.is_empty() {
        p.state(&file.formula, Place::TOP);
        p.out.push('\n');
    } else {
        p.sections(&file.sections);
        p.out.push_str("\nform\n  ");
        p.state(&file.formula, Place::TOP);
        p.out.push_str(";\n");
    }
    p.out
}

/// A data expression.
pub fn data(expression: &ast::Data) -> String {
    let mut p = Printer::default();
    p.data(expression, Place::TOP);
    p.out
}

/// A process expression.
pub fn process(process: &ast::Process) -> String {
    let mut p = Printer::default();
    p.process(process, Place::TOP, false);
    p.out
}

/// A sort expression.
pub fn sort(sort: &ast::Sort) -> String {
    let mut p = Printer::default();
    p.sort(sort);
    p.out
}

/// What surrounds an expression, as far as parentheses depend on it.
#[derive(Clone, Copy)]
struct Place {
    /// Infix and postfix operators below this level need parentheses.
    least: u8,
    /// The level of the operator that follows; prefix operators below it need parentheses.
    before: u8,
}

impl Place {
    /// Within brackets, or alone.
    const TOP: Place = Place { least: 0, before: 0 };
    /// Left of an infix or postfix operator.
    fn left_of(level: u8, assoc: super::precedence::Assoc) -> Place {
        let least = if assoc == super::precedence::Assoc::Left { level } else { level + 1 };
        Place { least, before: level }
    }
    /// Right of an infix operator.
    fn right_of(self, level: u8, assoc: super::precedence::Assoc) -> Place {
        let least = if assoc == super::precedence::Assoc::Left { level + 1 } else { level };
        Place { least, before: self.before }
    }
    /// After a prefix operator.
    fn after_prefix(self, level: u8) -> Place {
        Place { least: self.least.max(level), before: self.before }
    }
}

/// The text so far.
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
    /// Opens a parenthesis if one is needed, and says so for [`close`](Self::close).
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

#[cfg(test)]
mod tests;
