//! Code in columns: `P0 | P1 ; …`, with labels, each cell an instruction of some architecture.
//!
//! In: tokens, an [`Assembler`] for each thread. Out: threads of [`crate::code`]. Jumps go to
//! labels of their own thread.

use crate::code::{Arch, Expr, Op, Register, Thread};
use mu_base::words::{Cursor, Kind};
use mu_base::{Diagnostic, Span, Stage};
use mu_outcome::table;
use std::collections::HashMap;

/// Makes a thread.
pub struct Assembler {
    /// The architecture.
    pub arch: Arch,
    /// The thread so far.
    pub thread: Thread,
    /// Whether a read-modify-write that could be one event is two.
    pub pairs: bool,
    labels: HashMap<String, u32>,
    jumps: Vec<(usize, String, Span)>,
    /// True if the flags have the order of two numbers: a comparison is the last to set them.
    /// On AArch64, the order without sign.
    pub ordered: bool,
}

impl Assembler {
    /// No code.
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
    /// Adds an operation to the instruction that is being read.
    pub fn push(&mut self, op: Op) {
        self.thread.ops.push(op);
        self.thread.instruction.push(self.thread.texts.len() as u32);
    }
    /// Adds a jump.
    pub fn jump(&mut self, when: Option<Expr>, label: String, span: Span) {
        self.jumps.push((self.thread.ops.len(), label, span));
        self.push(Op::Branch { when, to: 0 });
    }
    /// The register of a name.
    pub fn register(&mut self, name: &str) -> Register {
        self.thread.register(name)
    }
    /// The registers whose values a comparison leaves for conditions. At first they say that
    /// nothing was equal, as flags that are 0 do.
    pub fn flags(&mut self) -> (Register, Register) {
        let known = self.thread.registers.len();
        let left = self.thread.register("flags.left");
        if usize::from(left) == known {
            self.thread.registers[known].1 = 1;
        }
        (left, self.thread.register("flags.right"))
    }
    /// Names the place that comes next.
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
    /// Reads a cell: labels, and an instruction if there is one.
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
            // Tests of x86 and of C have readers of their own.
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
    /// The thread, with all jumps resolved.
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

/// The complaint about a mnemonic.
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

/// Takes the code: the heads of the columns and all rows.
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
