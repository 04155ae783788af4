//! Code in columns: `P0 | P1 ; …`, with labels. Each cell is an instruction of some architecture.
//!
//! Input: tokens, an [`Assembler`] for each thread. Output: threads of [`crate::code`]. Jumps lead
//! to labels of the same thread.

use crate::code::{Arch, Atomicity, Binary, Op, Register, RegisterExpr, Thread, code_address};
use mu_base::words::{Cursor, TokenKind};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_program::outcome::table;
use std::collections::HashMap;

/// The target of a jump.
pub enum JumpTarget {
    /// A label.
    Label(String, Span),
    /// A number of instructions from the jump.
    Distance(i64, Span),
}

/// A reference to an instruction that may follow.
struct Reference {
    /// The operation.
    at: usize,
    target: JumpTarget,
}

/// Assembler of one thread.
pub struct Assembler {
    /// The architecture.
    pub arch: Arch,
    /// The number of the thread.
    pub number: u32,
    /// The thread so far.
    pub thread: Thread,
    /// True if an atomic read-modify-write becomes two events instead of one.
    pub pairs: bool,
    /// The instruction at each label.
    labels: HashMap<String, u32>,
    references: Vec<Reference>,
}

impl Assembler {
    /// Creates an assembler without code.
    pub fn new(arch: Arch, number: u32, pairs: bool) -> Self {
        Self {
            arch,
            number,
            pairs,
            thread: Thread::default(),
            labels: HashMap::new(),
            references: Vec::new(),
        }
    }
    /// Assigns the result of a store-conditional, which depends on the operands of the instruction.
    pub fn assign_status(
        &mut self,
        into: Register,
        result: RegisterExpr,
        [value, address]: [RegisterExpr; 2],
    ) {
        let operands = RegisterExpr::binary(Binary::Xor, value, address);
        let none = RegisterExpr::binary(Binary::And, operands, RegisterExpr::Const(0));
        self.push(Op::Let(into, RegisterExpr::binary(Binary::Or, result, none)));
    }
    /// Returns the events of an atomic read-modify-write of RISC-V.
    pub fn atomicity(&self) -> Atomicity {
        if self.pairs { Atomicity::Pair } else { Atomicity::One }
    }
    /// Adds an operation to the current instruction.
    pub fn push(&mut self, op: Op) {
        self.thread.ops.push(op);
        self.thread.instruction.push(narrow::index(self.thread.texts.len()));
    }
    /// Adds a jump.
    pub fn jump(&mut self, when: Option<RegisterExpr>, target: JumpTarget) {
        self.references.push(Reference { at: self.thread.ops.len(), target });
        self.push(Op::Branch { when, to: 0 });
    }
    /// Adds an assignment of the address of an instruction.
    pub fn load_address(&mut self, into: Register, target: JumpTarget) {
        self.references.push(Reference { at: self.thread.ops.len(), target });
        self.push(Op::Let(into, RegisterExpr::Const(0)));
    }
    /// Returns the address of the next instruction.
    pub fn next_address(&self) -> u64 {
        code_address(self.number, narrow::index(self.thread.texts.len()) + 1)
    }
    /// Adds lists of operations of the current instruction, one of which is executed.
    pub fn alternatives(&mut self, lists: Vec<Vec<Op>>) {
        let mut ends = Vec::new();
        let last = lists.len().saturating_sub(1);
        for (i, list) in lists.into_iter().enumerate() {
            let fork = self.thread.ops.len();
            if i < last {
                self.push(Op::Either { to: 0 });
            }
            list.into_iter().for_each(|op| self.push(op));
            if i < last {
                ends.push(self.thread.ops.len());
                self.push(Op::Branch { when: None, to: 0 });
                let next = narrow::index(self.thread.ops.len());
                self.thread.ops[fork] = Op::Either { to: next };
            }
        }
        // The operation at the end belongs to the instruction, so that a jump to it stays inside.
        let end = narrow::index(self.thread.ops.len());
        self.push(Op::Fence(0));
        for at in ends {
            self.thread.ops[at] = Op::Branch { when: None, to: end };
        }
    }
    /// Returns the register with a name.
    pub fn register(&mut self, name: &str) -> Register {
        self.thread.register(name)
    }
    /// Defines a label at the current position.
    pub fn label(&mut self, name: &str, span: Span) -> Result<(), Diagnostic> {
        if self.labels.insert(name.to_string(), narrow::index(self.thread.texts.len())).is_some() {
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
        while matches!(cursor.peek().kind, TokenKind::Name | TokenKind::Number)
            && cursor.ahead(1).text == ":"
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
            Arch::Power => crate::power::instruction(self, cursor)?,
            Arch::Arm => crate::arm::instruction(self, cursor)?,
            // Tests of x86 and C have separate parsers.
            arch => return Err(unknown_mnemonic(start, cursor.peek().text, arch)),
        }
        let end = cursor.previous().span.end;
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
        for Reference { at, target } in self.references {
            let place = match target {
                JumpTarget::Label(label, span) => *self.labels.get(&label).ok_or_else(|| {
                    Diagnostic::at(
                        Stage::Type,
                        span,
                        format!("there is no label `{label}` in this thread"),
                    )
                })?,
                JumpTarget::Distance(by, span) => {
                    let to = i64::from(self.thread.instruction[at]) + by;
                    let end = self.thread.texts.len() as i64;
                    u32::try_from(to).ok().filter(|_| to <= end).ok_or_else(|| {
                        Diagnostic::at(Stage::Type, span, "a jump beyond the code of this thread")
                    })?
                }
            };
            let operation = self.thread.operation(place);
            match &mut self.thread.ops[at] {
                Op::Branch { to, .. } => *to = operation,
                Op::Let(_, value) => *value = RegisterExpr::Const(code_address(self.number, place)),
                _ => {}
            }
        }
        self.thread.labels = self.labels.into_iter().collect();
        self.thread.labels.sort();
        Ok(self.thread)
    }
}

/// Parses a symbolic register, `%name`; `None` if there is none.
pub fn symbolic(
    a: &mut Assembler,
    cursor: &mut Cursor<'_, '_>,
) -> Result<Option<Register>, Diagnostic> {
    if !cursor.eat("%") {
        return Ok(None);
    }
    let name = cursor.name("the name of a register")?;
    Ok(Some(a.register(&format!("%{}", name.text))))
}

/// Builds the error for an unknown mnemonic.
pub fn unknown_mnemonic(span: Span, text: &str, arch: Arch) -> Diagnostic {
    let known = match arch {
        Arch::RiscV => crate::riscv::SUPPORTED,
        Arch::AArch64 => crate::aarch64::SUPPORTED,
        Arch::Power => crate::power::SUPPORTED,
        Arch::Arm => crate::arm::SUPPORTED,
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
    let mut threads: Vec<Assembler> = (0..table::columns(cursor)?)
        .map(|i| Assembler::new(arch, narrow::index(i), pairs))
        .collect();
    table::rows(cursor, threads.len(), |i, cursor| threads[i].cell(cursor, text))?;
    Ok(threads)
}
