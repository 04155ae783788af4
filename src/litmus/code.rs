//! The small code that threads of every architecture are lowered to.
//!
//! A thread is a list of operations over registers of 64 bits. An operation reads or writes memory
//! at most once, or reads and writes it at once. Registers carry dependencies: which events their
//! values come from, by syntax, so that `xor x,x` depends on `x`. Branches carry them on to all
//! that follows.
//!
//! Tags of events are bits; which names they have is the architecture's business ([`Arch::tags`]).

use mu_base::Span;

/// What a test is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// 32-bit x86, destinations first.
    X86,
    /// 64-bit x86, destinations last.
    X86_64,
    /// RISC-V, 64 bits.
    RiscV,
    /// Arm, 64 bits.
    AArch64,
    /// C11.
    C,
}

impl Arch {
    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86 => "X86",
            Arch::X86_64 => "X86_64",
            Arch::RiscV => "RISCV",
            Arch::AArch64 => "AArch64",
            Arch::C => "C",
        }
    }
    /// The architecture of a name, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        [Arch::X86, Arch::X86_64, Arch::RiscV, Arch::AArch64, Arch::C]
            .into_iter()
            .find(|a| a.name().eq_ignore_ascii_case(name))
    }
    /// Bytes of a pointer.
    pub fn pointer(self) -> u32 {
        if self == Arch::X86 { 4 } else { 8 }
    }
    /// The names of the bits of tags. A bit may have several names, separated by blanks.
    pub fn tags(self) -> &'static [&'static str] {
        match self {
            Arch::X86 | Arch::X86_64 => &["X", "A", "MFENCE mfence", "LFENCE", "SFENCE"],
            Arch::RiscV => &[
                "Acq",
                "Rel",
                "AcqRel",
                "EX",
                "AMO X",
                "Fence.r.r",
                "Fence.r.w",
                "Fence.r.rw",
                "Fence.w.r",
                "Fence.w.w",
                "Fence.w.rw",
                "Fence.rw.r",
                "Fence.rw.w",
                "Fence.rw.rw",
                "Fence.tso",
                "Fence.i",
            ],
            Arch::AArch64 => &[
                "A",
                "L",
                "Q",
                "EX",
                "AMO X",
                "NoRet",
                "ISB",
                "DMB.SY",
                "DMB.LD",
                "DMB.ST",
                "DMB.ISH",
                "DMB.ISHLD",
                "DMB.ISHST",
                "DMB.OSH",
                "DMB.OSHLD",
                "DMB.OSHST",
                "DMB.NSH",
                "DMB.NSHLD",
                "DMB.NSHST",
                "DSB.SY",
                "DSB.LD",
                "DSB.ST",
                "DSB.ISH",
                "DSB.ISHLD",
                "DSB.ISHST",
                "DSB.OSH",
                "DSB.OSHLD",
                "DSB.OSHST",
                "DSB.NSH",
                "DSB.NSHLD",
                "DSB.NSHST",
            ],
            Arch::C => &["NA", "RLX", "CON", "ACQ", "REL", "ACQ_REL", "SC", "A", "NAL"],
        }
    }
    /// The bit of a tag, by its first name; 0 if there is none.
    pub fn tag(self, name: &str) -> u64 {
        self.tags().iter().position(|t| t.split(' ').next() == Some(name)).map_or(0, |i| 1 << i)
    }
}

/// A register of a thread: an index into [`Thread::registers`].
pub type Register = u16;

/// Operators on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift to the left.
    Shl,
    /// Shift to the right, zeros come in.
    Shr,
    /// Shift to the right, the sign comes in.
    Sar,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less, with sign.
    Less,
    /// Less or equal, with sign.
    LessEqual,
    /// Less, without sign.
    Below,
    /// Less or equal, without sign.
    BelowEqual,
    /// The lesser, with sign.
    Min,
    /// The greater, with sign.
    Max,
    /// The lesser, without sign.
    MinU,
    /// The greater, without sign.
    MaxU,
    /// Quotient, with sign, rounded towards 0; 0 if the divisor is 0.
    Div,
    /// Quotient, without sign; 0 if the divisor is 0.
    DivU,
    /// Remainder, with the sign of the dividend; 0 if the divisor is 0.
    Rem,
    /// Remainder, without sign; 0 if the divisor is 0.
    RemU,
}

/// Operators on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// Bitwise complement.
    Not,
    /// Negation.
    Neg,
    /// 1 of 0, 0 of all others.
    IsZero,
    /// The lowest bits, zeros above them.
    Zero(u8),
    /// The lowest bits, their sign above them.
    Sign(u8),
}

/// A value computed from registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number.
    Const(u64),
    /// A register.
    Register(Register),
    /// What the operation has read from memory.
    Loaded,
    /// An operator on one value.
    Unary(Unary, Box<Expr>),
    /// An operator on two.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// A value of x86 code over the same registers, with what was loaded in a register if that is
    /// given.
    X86(Box<mu_program::expr::Expr>, Option<Register>),
}

impl Expr {
    /// An operator on one value.
    pub fn unary(op: Unary, a: Expr) -> Self {
        Expr::Unary(op, Box::new(a))
    }
    /// An operator on two values.
    pub fn binary(op: Binary, a: Expr, b: Expr) -> Self {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }
    /// The lowest `bytes` bytes, extended by sign or zero. All of it if that is 8.
    #[must_use]
    pub fn extended(self, bytes: u8, signed: bool) -> Self {
        match (bytes, signed) {
            (8.., _) => self,
            (_, true) => Expr::unary(Unary::Sign(bytes * 8), self),
            (_, false) => Expr::unary(Unary::Zero(bytes * 8), self),
        }
    }
    /// Its value. Parsers bound how deep it nests ([`mu_outcome::question::DEPTH`]).
    pub fn value(&self, registers: &[u64], loaded: u64) -> u64 {
        match self {
            Expr::Const(v) => *v,
            Expr::Register(r) => registers[*r as usize],
            Expr::Loaded => loaded,
            Expr::Unary(op, a) => apply(*op, a.value(registers, loaded)),
            Expr::Binary(op, a, b) => {
                combine(*op, a.value(registers, loaded), b.value(registers, loaded))
            }
            Expr::X86(e, from) => {
                e.eval(&|r| registers[r as usize], from.map_or(loaded, |r| registers[r as usize]))
            }
        }
    }
    /// Calls `visit` for each register in it; says whether it uses what was loaded.
    pub fn sources(&self, visit: &mut dyn FnMut(Register)) -> bool {
        match self {
            Expr::Const(_) => false,
            Expr::Register(r) => {
                visit(*r);
                false
            }
            Expr::Loaded => true,
            Expr::Unary(_, a) => a.sources(visit),
            Expr::Binary(_, a, b) => a.sources(visit) | b.sources(visit),
            Expr::X86(e, from) => {
                e.registers(visit);
                match (e.uses_loaded(), from) {
                    (true, Some(register)) => visit(*register),
                    (loaded, _) => return loaded,
                }
                false
            }
        }
    }
}

/// The lowest `bits` bits of a value.
pub fn low(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// The lowest `bits` bits of a value with their sign.
pub fn signed(value: u64, bits: u32) -> i64 {
    if bits >= 64 { value as i64 } else { ((value << (64 - bits)) as i64) >> (64 - bits) }
}

fn apply(op: Unary, a: u64) -> u64 {
    match op {
        Unary::Not => !a,
        Unary::Neg => a.wrapping_neg(),
        Unary::IsZero => u64::from(a == 0),
        Unary::Zero(bits) => low(a, u32::from(bits)),
        Unary::Sign(bits) => signed(a, u32::from(bits)) as u64,
    }
}

fn combine(op: Binary, a: u64, b: u64) -> u64 {
    let (i, j) = (a as i64, b as i64);
    match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl => a.wrapping_shl(b as u32),
        Binary::Shr => a.wrapping_shr(b as u32),
        Binary::Sar => i.wrapping_shr(b as u32) as u64,
        Binary::Eq => u64::from(a == b),
        Binary::Ne => u64::from(a != b),
        Binary::Less => u64::from(i < j),
        Binary::LessEqual => u64::from(i <= j),
        Binary::Below => u64::from(a < b),
        Binary::BelowEqual => u64::from(a <= b),
        Binary::Min => i.min(j) as u64,
        Binary::Max => i.max(j) as u64,
        Binary::MinU => a.min(b),
        Binary::MaxU => a.max(b),
        Binary::Div => {
            if j == 0 {
                0
            } else {
                i.wrapping_div(j) as u64
            }
        }
        Binary::DivU => a.checked_div(b).unwrap_or(0),
        Binary::Rem => {
            if j == 0 {
                0
            } else {
                i.wrapping_rem(j) as u64
            }
        }
        Binary::RemU => a.checked_rem(b).unwrap_or(0),
    }
}

/// How a read-modify-write becomes events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// One event that reads and writes.
    One,
    /// A read and a write, related by `amo`.
    Pair,
    /// A read and a write that others may come between.
    None,
}

/// How values flow through a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The write depends on what decides it and on its value.
    Plain,
    /// A compare-and-swap of Armv8: what is compared decides by a choice. If the values are equal,
    /// the result depends on the read or, by the choice, on the expected value. If not, the old
    /// value may be written back.
    Pick,
}

/// Something that a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes.
    Let(Register, Expr),
    /// Reads memory; the register becomes `value`, which may use what was loaded.
    Load {
        /// Where it goes.
        into: Option<Register>,
        /// As what.
        value: Expr,
        /// From where.
        address: Expr,
        /// How many bytes.
        width: u8,
        /// The event's tags.
        tags: u64,
        /// Whether a store-conditional may pair with it.
        reserve: bool,
        /// Whether it belongs to the operation before: not ordered with it.
        joined: bool,
    },
    /// Writes memory.
    Store {
        /// To where.
        address: Expr,
        /// How many bytes.
        width: u8,
        /// What.
        value: Expr,
        /// The event's tags.
        tags: u64,
        /// Whether it belongs to the operation before: not ordered with it.
        joined: bool,
    },
    /// Writes memory if the reservation is there and holds, which may fail at will; `status`
    /// becomes 0, else 1.
    StoreConditional {
        /// Where it says how it went.
        status: Option<Register>,
        /// To where.
        address: Expr,
        /// How many bytes.
        width: u8,
        /// What.
        value: Expr,
        /// The event's tags.
        tags: u64,
        /// Whether what uses `status` depends on the write: so on RISC-V, not on Arm.
        carries: bool,
    },
    /// Reads memory and, unless `when` is zero, writes it.
    Update {
        /// Where it goes, and as what.
        into: Option<(Register, Expr)>,
        /// Where.
        address: Expr,
        /// How many bytes.
        width: u8,
        /// What is written; may use what was loaded.
        value: Expr,
        /// Whether something is written; may use what was loaded.
        when: Option<Expr>,
        /// Tags of the read, and of the one event.
        read: u64,
        /// Tags of the write.
        write: u64,
        /// Tags of the read if nothing is written.
        failed: u64,
        /// How many events.
        atomicity: Atomicity,
        /// How values flow between its events.
        flow: Flow,
    },
    /// A fence.
    Fence(u64),
    /// Goes on here, and also elsewhere: at an operation that follows.
    Either {
        /// The number of the operation.
        to: u32,
    },
    /// Nothing comes of a path on which this is zero.
    Assume(Expr),
    /// The behaviour of a path on which this is zero is undefined: the path is left out and
    /// reported.
    Defined(Expr),
    /// Goes on elsewhere, unless `when` is zero.
    Branch {
        /// Whether; always, if none.
        when: Option<Expr>,
        /// The number of an operation.
        to: u32,
    },
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// What it does.
    pub ops: Vec<Op>,
    /// The instruction that each operation is part of.
    pub instruction: Vec<u32>,
    /// The instructions as written.
    pub texts: Vec<(String, Span)>,
    /// Its registers: name and first value.
    pub registers: Vec<(String, u64)>,
}

impl Thread {
    /// The register of a name, which becomes known if it was not.
    pub fn register(&mut self, name: &str) -> Register {
        if let Some(i) = self.registers.iter().position(|r| r.0 == name) {
            return i as Register;
        }
        self.registers.push((name.to_string(), 0));
        (self.registers.len() - 1) as Register
    }
}
