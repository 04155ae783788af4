//! Programs on weak memory: the second front end above the waist.
//!
//! In: litmus files ([`litmus`]) and x86 programs ([`nasm`]). They are lowered ([`x86`]) to a
//! [`Program`]: threads of [`Step`]s, each of which reads or writes memory at most once, over cells
//! of memory. Out: a [`machine::Machine`] under a memory model ([`memory`]: sequential consistency,
//! total store order, partial store order), which is a model of slots and transition groups
//! ([`model`]) for every engine, and which [`outcomes`] searches by itself where a test is too
//! small for them.
//!
//! The machines follow Owens, Sarkar, Sewell, "A better x86 memory model: x86-TSO" (TPHOLs 2009),
//! and the instruction semantics of Conchon, Declerck, Zaïdi, "Compiling Parameterized X86-TSO
//! Concurrent Programs to Cubicle-W" (ICFEM 2017).
//!
//! Invariant: a step of a thread is deterministic; choices are which thread goes on and which
//! buffered store reaches memory.
#![warn(missing_docs)]

pub mod axiomatic;
pub mod condition;
pub mod expansion;
pub mod expr;
pub mod generate;
pub mod herd;
pub mod litmus;
mod litmus_init;
pub mod liveness;
pub mod machine;
pub mod memory;
pub mod model;
mod names;
pub mod nasm;
pub mod outcomes;
pub mod parametric;
pub mod property;
pub mod registers;
pub mod variables;
#[cfg(test)]
mod tests;
pub mod witness;
pub mod x86;

pub use names::names;

use self::expr::{Expr, Width};
use mu_base::Span;

/// A register of a thread: an index into [`Thread::registers`].
pub type Register = u16;

/// The register of every thread that holds the flags, see [`expr::flags`].
pub const FLAGS: Register = 0;
/// The register of every thread that carries a value from the read of an unlocked read-modify-write
/// instruction to its write.
pub const CARRIED: Register = 1;

/// A cell of memory: the unit of access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The variable, with `[i]` for an element of an array.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// Bits that it keeps.
    pub width: Width,
    /// Bits that instructions access: a store has just so many, a load at most.
    pub access: Width,
    /// What it holds at first.
    pub initial: u64,
}

/// A register by name with its value at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Full register, `rax`, or a symbolic name.
    pub name: String,
    /// Initial value.
    pub initial: u64,
}

/// An instruction as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// Its first step.
    pub first: u32,
    /// If it reads and writes memory in two steps: the one step that it is with the prefix `lock`.
    pub locked: Option<Box<Step>>,
}

/// What a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// All accesses before with all after.
    Full,
    /// Stores before with stores after.
    Store,
}

/// What a step does to memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// A load.
    Read {
        /// From where.
        address: Expr,
        /// How many bits.
        width: Width,
    },
    /// A store, unless `when` is zero.
    Write {
        /// To where.
        address: Expr,
        /// How many bits.
        width: Width,
        /// What.
        value: Expr,
        /// Whether.
        when: Option<Expr>,
    },
    /// A locked instruction: a load and, unless `when` is zero, a store at the same moment. Orders
    /// like a full fence.
    Update {
        /// Where.
        address: Expr,
        /// How many bits.
        width: Width,
        /// What is stored, may use the loaded value.
        value: Expr,
        /// Whether something is stored, may use the loaded value.
        when: Option<Expr>,
    },
    /// A fence.
    Fence(Fence),
}

/// Where control goes after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the next step.
    Fall,
    /// There.
    Jump(u32),
    /// There unless the condition is zero, else to the next step.
    Branch(Expr, u32),
}

/// A part of an instruction that accesses memory at most once. Registers get their values together,
/// after the access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The access.
    pub access: Access,
    /// Registers that it sets; the expressions may use the loaded value and see the registers as
    /// they were before.
    pub assigns: Vec<(Register, Expr)>,
    /// Where control goes.
    pub next: Next,
    /// The instruction that it is part of.
    pub instruction: u32,
}

impl Access {
    /// All expressions that it evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let of = match self {
            Access::None | Access::Fence(_) => [None; 3],
            Access::Read { address, .. } => [Some(address), None, None],
            Access::Write { address, value, when, .. }
            | Access::Update { address, value, when, .. } => {
                [Some(address), Some(value), when.as_ref()]
            }
        };
        of.into_iter().flatten()
    }
}

impl Step {
    /// All expressions that it evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let branch = if let Next::Branch(e, _) = &self.next { Some(e) } else { None };
        self.access.expressions().chain(self.assigns.iter().map(|a| &a.1)).chain(branch)
    }
}

/// The code of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its name, `P0`.
    pub name: String,
    /// Registers; the first two are [`FLAGS`] and [`CARRIED`].
    pub registers: Vec<RegisterInfo>,
    /// Steps. The thread has ended when control is past the last one.
    pub steps: Vec<Step>,
    /// Instructions, in order.
    pub instructions: Vec<Instruction>,
}

impl Thread {
    /// A thread without code.
    pub fn new(name: impl Into<String>) -> Self {
        let special = ["flags", "carried"].map(|n| RegisterInfo { name: n.into(), initial: 0 });
        Self {
            name: name.into(),
            registers: special.into(),
            steps: Vec::new(),
            instructions: Vec::new(),
        }
    }
    /// The register of a name, made if there is none.
    pub fn register(&mut self, name: &str) -> Register {
        let at = self.registers.iter().position(|r| r.name == name).unwrap_or_else(|| {
            self.registers.push(RegisterInfo { name: name.into(), initial: 0 });
            self.registers.len() - 1
        });
        Register::try_from(at).expect("as many registers as names in a text")
    }
    /// Whether no step goes back.
    pub fn is_loop_free(&self) -> bool {
        self.steps.iter().enumerate().all(|(at, s)| match s.next {
            Next::Fall => true,
            Next::Jump(to) | Next::Branch(_, to) => to as usize > at,
        })
    }
}

/// Threads over memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Memory, addresses ascending.
    pub cells: Vec<Cell>,
    /// The threads.
    pub threads: Vec<Thread>,
}

impl Program {
    /// The cell at an address.
    pub fn cell_at(&self, address: u64) -> Option<usize> {
        self.cells.binary_search_by_key(&address, |c| c.address).ok()
    }
    /// Whether no thread has a loop.
    pub fn is_loop_free(&self) -> bool {
        self.threads.iter().all(Thread::is_loop_free)
    }
    /// The most stores a buffer is to hold, if nobody asked for another bound: any number for code
    /// without loops, since then a buffer never holds more than the stores of its thread; else
    /// 4.
    pub fn buffer_bound(&self, asked: Option<u32>) -> Option<u32> {
        asked.or_else(|| (!self.is_loop_free()).then_some(4))
    }
    /// Number of instructions of all threads.
    pub fn size(&self) -> usize {
        self.threads.iter().map(|t| t.instructions.len()).sum()
    }
}
