//! Assembler from x86 instructions to steps.
//!
//! Input: the tokens of instructions, in Intel's or AT&T's order of operands. Output: a [`Thread`].
//! An instruction becomes one step, or two if it reads and writes memory without `lock`: it is not
//! atomic then, and other threads may act between the two. `xchg` with memory is always locked.
//! Semantics: Intel SDM volume 2 for registers and flags; see [`super::memory`] for the rest.

mod encoding;
pub mod statement;
mod lower;
mod operand;
pub mod table;
mod undefined;

use std::collections::HashMap;

use self::statement::{Element, Statement};
use super::expr::{Expr, Width};
use super::variables::{Use, Variables};
use super::{Access, Instruction, Next, Step, Thread};
use mu_base::words::{Cursor, TokenKind};
use mu_base::{Diagnostic, Span, Stage, narrow};

/// The order of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandOrder {
    /// Destination first.
    Intel,
    /// Destination last.
    Att,
}

/// Builds the message for a number that is not representable in a width, signed or unsigned.
pub(crate) fn too_wide(number: i64, width: Width, of: &str) -> String {
    format!("{number} does not fit in the {} bits of `{of}`", width.bits())
}

/// Builds the message for the prefix `lock` with a destination that is not in memory.
pub fn unlockable(word: &str) -> String {
    format!("`lock` before `{word}`, but its destination is not in memory")
}

/// Assembler of one thread.
pub(super) struct Assembler {
    order: OperandOrder,
    /// The number of the thread.
    number: usize,
    /// The thread so far.
    pub thread: Thread,
    /// Its memory accesses.
    pub uses: Vec<Use>,
    labels: HashMap<String, (u32, Span)>,
    jumps: Vec<(usize, String, Span)>,
    /// Steps that end the thread.
    returns: Vec<usize>,
    /// Names of numbers.
    constants: HashMap<String, i64>,
    /// Names of threads, which denote numbers only after `$`.
    threads: HashMap<String, i64>,
    /// The instructions as written, for readers that do not lower them.
    pub statements: Vec<Statement>,
    /// The thread that the current operand names after `$`.
    element: Option<Element>,
    /// The variable that the current operand names, if any.
    named: Option<String>,
    /// True if the current operand uses the number of threads, `N`.
    counts_threads: bool,
    /// The size in the text of the current operand, if it is a number.
    immediate_size: Option<Width>,
    /// The first operand with a number of this reading: it uses `N` in a sum or after `$`, or is
    /// the number of a thread or the address of its thread data.
    pub fixed_threads: Option<Span>,
}

/// An error, marked if the other order of operands should be tried.
pub(super) struct OperandError {
    pub diagnostic: Diagnostic,
    pub order: bool,
}

impl From<Diagnostic> for OperandError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostic, order: false }
    }
}

impl Assembler {
    pub fn new(number: usize, order: OperandOrder) -> Self {
        Self {
            order,
            number,
            thread: Thread::new(format!("P{number}")),
            uses: Vec::new(),
            labels: HashMap::new(),
            jumps: Vec::new(),
            returns: Vec::new(),
            constants: HashMap::new(),
            threads: HashMap::new(),
            statements: Vec::new(),
            element: None,
            named: None,
            counts_threads: false,
            immediate_size: None,
            fixed_threads: None,
        }
    }
    /// Defines a name for a number.
    pub fn constant(&mut self, name: &str, value: i64) {
        self.constants.insert(name.into(), value);
    }
    /// Defines a name for a thread, after `$`.
    pub fn thread_name(&mut self, name: &str, thread: usize) {
        self.threads.insert(name.into(), thread as i64);
    }
    /// Returns the labels with the steps after them.
    pub fn labels(&self) -> &HashMap<String, (u32, Span)> {
        &self.labels
    }
    /// Reads labels and an optional instruction. `text` is the source text.
    pub fn line(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
        text: &str,
    ) -> Result<(), OperandError> {
        while cursor.peek().kind == TokenKind::Name && cursor.ahead(1).text == ":" {
            let label = cursor.take();
            cursor.take();
            let current_span = (narrow::index(self.thread.steps.len()), label.span);
            if let Some((_, before)) = self.labels.insert(label.text.into(), current_span) {
                let error = Diagnostic::at(
                    Stage::Type,
                    label.span,
                    format!("the label `{}` is defined twice", label.text),
                );
                return Err(error.related(before, "the other one").into());
            }
        }
        if cursor.peek().kind != TokenKind::Name {
            return Ok(());
        }
        let start = cursor.peek().span;
        let first = narrow::index(self.thread.steps.len());
        self.thread.instructions.push(Instruction {
            text: String::new(),
            span: start,
            first,
            locked: None,
        });
        self.instruction(cursor, variables)?;
        let span = start.to(cursor.previous().span);
        let words: Vec<&str> = text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
            .split_whitespace()
            .collect();
        if let Some(last) = self.thread.instructions.last_mut() {
            last.text = words.join(" ");
            last.span = span;
        }
        for u in self.uses.iter_mut().rev().take_while(|u| u.span == start) {
            u.span = span;
        }
        Ok(())
    }
    /// Resolves the jumps.
    pub fn finish(mut self) -> Result<(Thread, Vec<Use>), Diagnostic> {
        for (at, label, span) in std::mem::take(&mut self.jumps) {
            let Some(&(to, _)) = self.labels.get(&label) else {
                let mut known: Vec<&str> = self.labels.keys().map(String::as_str).collect();
                known.sort_unstable();
                let mut error = Diagnostic::at(
                    Stage::Type,
                    span,
                    format!(
                        "jump to an undefined label: `{}` has no label `{label}`",
                        self.thread.name
                    ),
                );
                if !known.is_empty() {
                    error = error.note(format!("its labels: {}", known.join(", ")));
                }
                return Err(error);
            };
            match &mut self.thread.steps[at].next {
                Next::Jump(target) | Next::Branch(_, target) => *target = to,
                Next::Fall => {}
            }
        }
        self.compute_parity();
        // A return jumps past the last step.
        let end = narrow::index(self.thread.steps.len());
        for at in self.returns {
            self.thread.steps[at].next = Next::Jump(end);
        }
        undefined::check(&self.thread)?;
        Ok((self.thread, self.uses))
    }
    /// Computes the parity flag only where some step tests it; elsewhere it would only distinguish
    /// equivalent states.
    fn compute_parity(&mut self) {
        let tested = self.thread.steps.iter().flat_map(Step::expressions).any(Expr::tests_parity);
        if !tested {
            return;
        }
        let locked = self.thread.instructions.iter_mut().filter_map(|i| i.locked.as_deref_mut());
        for (register, value) in
            self.thread.steps.iter_mut().chain(locked).flat_map(|s| &mut s.assigns)
        {
            if *register == super::FLAGS {
                *value = std::mem::replace(value, Expr::Const(0)).with_parity();
            }
        }
    }
    fn push(
        &mut self,
        access: Access,
        assigns: Vec<(super::Register, super::expr::Expr)>,
        next: Next,
    ) {
        let instruction = narrow::index(self.thread.instructions.len()) - 1;
        self.thread.steps.push(Step { access, assigns, next, instruction });
    }
    /// Records the step of the current instruction with the prefix `lock`.
    fn lockable(&mut self, access: Access, assigns: Vec<(super::Register, super::expr::Expr)>) {
        let instruction = narrow::index(self.thread.instructions.len()) - 1;
        if let Some(last) = self.thread.instructions.last_mut() {
            last.locked = Some(Box::new(Step { access, assigns, next: Next::Fall, instruction }));
        }
    }
    /// Returns the position of the current instruction.
    fn current_span(&self) -> Span {
        self.thread.instructions.last().map_or(Span::default(), |i| i.span)
    }
}
