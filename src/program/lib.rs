//! Programs on weak memory: the second front end above the model interface.
//!
//! Input: litmus files ([`litmus`]) and x86 programs ([`nasm`]). They are lowered ([`x86`]) to a
//! [`Program`]: threads of [`Step`]s, each of which accesses memory at most once, over cells of
//! memory. Output: a [`machine::Machine`] under a memory model ([`memory`]: sequential consistency,
//! total store order, partial store order). Every engine can use it as a model of slots and
//! transition groups ([`model`]). [`outcome_search`] searches it directly if a test is too small
//! for the engines.
//!
//! The machines follow Owens, Sarkar, Sewell, "A better x86 memory model: x86-TSO" (TPHOLs 2009),
//! and the instruction semantics of Conchon, Declerck, Zaïdi, "Compiling Parameterized X86-TSO
//! Concurrent Programs to Cubicle-W" (ICFEM 2017).
//!
//! Invariant: a step of a thread is deterministic. The only choices are the thread that takes the
//! next step and the buffered store that moves to memory.
#![warn(missing_docs)]

pub mod axiomatic;
pub mod condition;
pub mod expansion;
pub mod expr;
pub mod herd;
pub mod litmus;
mod litmus_init;
pub mod liveness;
pub mod machine;
pub mod memory;
pub mod model;
mod names;
pub mod nasm;
pub mod outcome;
pub mod outcome_search;
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

/// The register of every thread that contains the flags, see [`expr::flags`].
pub const FLAGS: Register = 0;
/// The register of every thread that passes the loaded value of an unlocked read-modify-write
/// instruction to its store.
pub const CARRIED: Register = 1;

/// A cell of memory: the unit of access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The name of the variable, with `[i]` for an element of an array.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// Width of its content.
    pub width: Width,
    /// Width of accesses: exactly that of stores, and the largest of loads.
    pub access: Width,
    /// Its initial value.
    pub initial: u64,
}

/// A register with its name and initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterInfo {
    /// Name of the full register, such as `rax`, or a symbolic name.
    pub name: String,
    /// Initial value.
    pub initial: u64,
}

/// An instruction of the source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its text.
    pub text: String,
    /// Its position.
    pub span: Span,
    /// Its first step.
    pub first: u32,
    /// For an instruction that reads and writes memory in two steps: its single step with the
    /// prefix `lock`.
    pub locked: Option<Box<Step>>,
}

/// The accesses that a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fence {
    /// All accesses before with all accesses after.
    Full,
    /// Stores before with stores after.
    Store,
}

/// The memory access of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// No access.
    None,
    /// A load.
    Read {
        /// The address.
        address: Expr,
        /// The width.
        width: Width,
    },
    /// A store, unless `when` is zero.
    Write {
        /// The address.
        address: Expr,
        /// The width.
        width: Width,
        /// The value.
        value: Expr,
        /// The condition; `None` if unconditional.
        when: Option<Expr>,
    },
    /// A locked instruction: a load and, unless `when` is zero, a store, atomically. It orders like
    /// a full fence.
    Update {
        /// The address.
        address: Expr,
        /// The width.
        width: Width,
        /// The stored value; may use the loaded value.
        value: Expr,
        /// The condition of the store; may use the loaded value.
        when: Option<Expr>,
    },
    /// A fence.
    Fence(Fence),
}

/// The control flow after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the next step.
    Fall,
    /// To the given step.
    Jump(u32),
    /// To the given step unless the condition is zero, else to the next step.
    Branch(Expr, u32),
}

/// A part of an instruction that accesses memory at most once. Its registers are assigned
/// simultaneously, after the access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The access.
    pub access: Access,
    /// Assignments of registers. The expressions may use the loaded value and read the registers
    /// before the step.
    pub assigns: Vec<(Register, Expr)>,
    /// The control flow after it.
    pub next: Next,
    /// The index of its instruction.
    pub instruction: u32,
}

impl Access {
    /// Returns all expressions of the access.
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
    /// Returns all expressions of the step.
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
    /// Creates a thread without code.
    pub fn new(name: impl Into<String>) -> Self {
        let special = ["flags", "carried"].map(|n| RegisterInfo { name: n.into(), initial: 0 });
        Self {
            name: name.into(),
            registers: special.into(),
            steps: Vec::new(),
            instructions: Vec::new(),
        }
    }
    /// Returns the register with a name, creating it if necessary.
    pub fn register(&mut self, name: &str) -> Register {
        let at = self.registers.iter().position(|r| r.name == name).unwrap_or_else(|| {
            self.registers.push(RegisterInfo { name: name.into(), initial: 0 });
            self.registers.len() - 1
        });
        Register::try_from(at).expect("at most as many registers as names in the text")
    }
    /// True if no step jumps backwards.
    pub fn is_loop_free(&self) -> bool {
        self.steps.iter().enumerate().all(|(at, s)| match s.next {
            Next::Fall => true,
            Next::Jump(to) | Next::Branch(_, to) => to as usize > at,
        })
    }
}

/// A program: threads over memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The cells of memory, by ascending address.
    pub cells: Vec<Cell>,
    /// The threads.
    pub threads: Vec<Thread>,
}

impl Program {
    /// Finds the cell at an address; `None` if there is none.
    pub fn cell_at(&self, address: u64) -> Option<usize> {
        self.cells.binary_search_by_key(&address, |c| c.address).ok()
    }
    /// True if no thread has a loop.
    pub fn is_loop_free(&self) -> bool {
        self.threads.iter().all(Thread::is_loop_free)
    }
    /// Returns the capacity of buffers: the requested one, or by default unlimited for code without
    /// loops, and 4 for code with loops. In code without loops a buffer never holds more than the
    /// stores of its thread. `None`: unlimited.
    pub fn buffer_bound(&self, requested: Option<u32>) -> Option<u32> {
        requested.or_else(|| (!self.is_loop_free()).then_some(4))
    }
    /// Counts the instructions of all threads.
    pub fn size(&self) -> usize {
        self.threads.iter().map(|t| t.instructions.len()).sum()
    }
}
