//! Code in columns: `P0 | P1 ; …`, with labels. Each cell is an instruction of some architecture.
//!
//! Input: tokens, an [`Assembler`] for each thread. Output: threads of [`crate::code`]. Jumps lead
//! to labels of the same thread.

use crate::code::{Arch, Expr, Op, Register, Thread};
use mu_base::words::{Cursor, Kind};
use mu_base::{Diagnostic, Span, Stage};
use mu_outcome::table;
use std::collections::HashMap;

/// Assembler of one thread.
pub struct Assembler {
    /// The architecture.
    pub arch: Arch,
    /// The thread so far.
    pub thread: Thread,
    /// True if an atomic read-modify-write becomes two events instead of one.
    pub pairs: bool,
    labels: HashMap<String, u32>,
    jumps: Vec<(usize, String, Span)>,
    /// True if the flags contain the order of two numbers, because a comparison has set them last.
    /// On AArch64, this is the unsigned order.
    pub ordered: bool,
}

impl Assembler {
    /// Creates an assembler without code.
    pub fn new(arch: Arch, pairs: bool) -> Self {
        Self {
            arch,
            pairs,
            thread: Thread::default(),
            labels: HashMap::new(),
            jumps: Vec::new(),
            ordered: arch != Arch::AArch64,
        }
    }
    /// Adds an operation to the current instruction.
    pub fn push(&mut self, op: Op) {
        self.thread.ops.push(op);
        self.thread.instruction.push(self.thread.texts.len() as u32);
    }
    /// Adds a jump.
    pub fn jump(&mut self, when: Option<Expr>, label: String, span: Span) {
        self.jumps.push((self.thread.ops.len(), label, span));
        self.push(Op::Branch { when, to: 0 });
    }
    /// Returns the register with a name.
    pub fn register(&mut self, name: &str) -> Register {
        self.thread.register(name)
    }
    /// Returns the registers that store the operands of a comparison for conditions. Initially the
    /// operands are unequal, as with flags that are 0.
    pub fn flags(&mut self) -> (Register, Register) {
        let known = self.thread.registers.len();
        let left = self.thread.register("flags.left");
        if usize::from(left) == known {
            self.thread.registers[known].1 = 1;
        }
        (left, self.thread.register("flags.right"))
    }
    /// Defines a label at the current position.
    pub fn label(&mut self, name: &str, span: Span) -> Result<(), Diagnostic> {
        if self.labels.insert(name.to_string(), self.thread.ops.len() as u32).is_some() {
            return Err(Diagnostic::at(
                Stage::Type,
                span,
                format!("the label `{name}` stands twice"),
            ));
        }
        Ok(())
    }
    /// Parses a cell: labels, and an optional instruction.
    fn cell(&mut self, cursor: &mut Cursor<'_, '_>, text: &str) -> Result<(), Diagnostic> {
        while matches!(cursor.peek().kind, Kind::Name | Kind::Number) && cursor.ahead(1).text == ":"
        {
            let label = cursor.take();
            cursor.take();
            self.label(label.text, label.span)?;
        }
        if cursor.is("|") || cursor.is(";") || cursor.at_end() {
            return Ok(());
        }
        let start = cursor.peek().span;
        match self.arch {
            Arch::RiscV => crate::riscv::instruction(self, cursor)?,
            Arch::AArch64 => crate::aarch64::instruction(self, cursor)?,
            // Tests of x86 and C have separate parsers.
            arch => return Err(unknown(start, cursor.peek().text, arch)),
        }
        let end = cursor.before().span.end;
        let written = text
            .get(start.start as usize..end as usize)
            .unwrap_or("")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        self.thread.texts.push((written, Span { end, ..start }));
        Ok(())
    }
    /// Returns the thread, with all jumps resolved.
    pub fn finish(mut self) -> Result<Thread, Diagnostic> {
        for (at, label, span) in self.jumps {
            let Some(&place) = self.labels.get(&label) else {
                return Err(Diagnostic::at(
                    Stage::Type,
                    span,
                    format!("there is no label `{label}` in this thread"),
                ));
            };
            if let Op::Branch { to, .. } = &mut self.thread.ops[at] {
                *to = place;
            }
        }
        Ok(self.thread)
    }
}

/// Builds the error for an unknown mnemonic.
pub fn unknown(span: Span, text: &str, arch: Arch) -> Diagnostic {
    let known = match arch {
        Arch::RiscV => crate::riscv::SUPPORTED,
        Arch::AArch64 => crate::aarch64::SUPPORTED,
        _ => "",
    };
    Diagnostic::at(
        Stage::Unsupported,
        span,
        format!("the {} instruction `{text}` is not supported", arch.name()),
    )
    .note(format!("supported: {known}"))
}

/// Parses the code: the heads of the columns and all rows.
pub fn code(
    cursor: &mut Cursor<'_, '_>,
    arch: Arch,
    pairs: bool,
    text: &str,
) -> Result<Vec<Assembler>, Diagnostic> {
    let mut threads: Vec<Assembler> =
        (0..table::columns(cursor)?).map(|_| Assembler::new(arch, pairs)).collect();
    table::rows(cursor, threads.len(), |i, cursor| threads[i].cell(cursor, text))?;
    Ok(threads)
}
