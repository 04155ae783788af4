//! Intermediate code of threads, common to all architectures.
//!
//! A thread is a list of operations over registers of 64 bits. An operation reads or writes memory
//! at most once, or does both atomically. Registers carry syntactic dependencies: the events that
//! their values come from, so that `xor x,x` depends on `x`. Branches add them to the control
//! dependencies of all later events.
//!
//! Tags of events are bits; the architecture defines their names ([`Arch::tags`]).

use crate::known_bits;
use mu_base::Span;
use mu_base::narrow;

/// The architecture of a test.
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
    /// Power, 64 bits.
    Power,
    /// Arm, 32 bits.
    Arm,
    /// C11.
    C,
    /// C of the Linux kernel. Files say `C`; the model decides.
    Linux,
}

impl Arch {
    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86 => "X86",
            Arch::X86_64 => "X86_64",
            Arch::RiscV => "RISCV",
            Arch::AArch64 => "AArch64",
            Arch::Power => "PPC",
            Arch::Arm => "ARM",
            Arch::C | Arch::Linux => "C",
        }
    }
    /// Looks up an architecture by name, in upper or lower case. `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        let all =
            [Arch::X86, Arch::X86_64, Arch::RiscV, Arch::AArch64, Arch::Power, Arch::Arm, Arch::C];
        all.into_iter().find(|a| a.name().eq_ignore_ascii_case(name))
    }
    /// Returns the size of a pointer in bytes.
    pub fn pointer(self) -> u8 {
        if matches!(self, Arch::X86 | Arch::Arm) { 4 } else { 8 }
    }
    /// Returns the names of the bits of tags, empty for the Linux kernel, since its tags depend on
    /// a file ([`crate::kernel::KernelLanguage`]). A bit may have several names, separated by
    /// blanks.
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
                "NT",
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
            Arch::Power => &["EX", "SYNC sync", "LWSYNC lwsync", "EIEIO eieio", "ISYNC isync"],
            Arch::Arm => &["A", "L", "EX", "ISB", "DMB", "DMB.ISH", "DMB.ST", "DSB", "DSB.ST"],
            Arch::Linux => &[],
            Arch::C => &["NA", "RLX", "CON", "ACQ", "REL", "ACQ_REL", "SC", "A", "NAL"],
        }
    }
    /// Returns the bit of a tag, by its first name; 0 if there is none.
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
    /// Logical shift to the right.
    Shr,
    /// Arithmetic shift to the right.
    Sar,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Signed less.
    Less,
    /// Signed less or equal.
    LessEqual,
    /// Unsigned less.
    Below,
    /// Unsigned less or equal.
    BelowEqual,
    /// Signed minimum.
    Min,
    /// Signed maximum.
    Max,
    /// Unsigned minimum.
    MinU,
    /// Unsigned maximum.
    MaxU,
    /// Signed quotient, rounded towards 0; 0 if the divisor is 0.
    Div,
    /// Unsigned quotient; 0 if the divisor is 0.
    DivU,
    /// Remainder, with the sign of the dividend; 0 if the divisor is 0.
    Rem,
    /// Unsigned remainder; 0 if the divisor is 0.
    RemU,
    /// The upper 64 bits of the product of signed numbers.
    MulHigh,
    /// The upper 64 bits of the product of unsigned numbers.
    MulHighU,
    /// The flags N, Z, C, V of Arm (bits 3 to 0) after an addition of this many bits.
    AddFlags(u8),
    /// The flags of Arm after a subtraction of this many bits.
    SubFlags(u8),
}

/// Operators on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// Bitwise complement.
    Not,
    /// Negation.
    Neg,
    /// 1 for 0, otherwise 0.
    IsZero,
    /// Zero extension from this number of bits.
    Zero(u8),
    /// Sign extension from this number of bits.
    Sign(u8),
    /// The absolute value of a signed number of this many bits.
    Abs(u8),
    /// Bytes reversed in each group of this many bits.
    ReverseBytes(u8),
    /// Bits reversed, of this many.
    ReverseBits(u8),
    /// Number of leading zeros, of this many bits.
    LeadingZeros(u8),
    /// The flags N, Z, C, V of Arm (bits 3 to 0) of a result of this many bits; C and V are 0.
    Flags(u8),
    /// True if a condition of Arm, by its code, holds for flags.
    Holds(u8),
}

/// A value computed from registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterExpr {
    /// A number.
    Const(u64),
    /// A register.
    Register(Register),
    /// The value that the operation has read from memory.
    Loaded,
    /// An operator on one value.
    Unary(Unary, Box<RegisterExpr>),
    /// An operator on two.
    Binary(Binary, Box<RegisterExpr>, Box<RegisterExpr>),
    /// An expression of x86 code over the same registers, with the register of the loaded value, if
    /// any.
    X86(Box<mu_program::expr::Expr>, Option<Register>),
}

impl RegisterExpr {
    /// Builds an operator on one value.
    pub fn unary(op: Unary, a: RegisterExpr) -> Self {
        RegisterExpr::Unary(op, Box::new(a))
    }
    /// Builds an operator on two values.
    pub fn binary(op: Binary, a: RegisterExpr, b: RegisterExpr) -> Self {
        RegisterExpr::Binary(op, Box::new(a), Box::new(b))
    }
    /// Builds a sum with a constant.
    #[must_use]
    pub fn plus(self, offset: u64) -> Self {
        if offset == 0 {
            self
        } else {
            RegisterExpr::binary(Binary::Add, self, RegisterExpr::Const(offset))
        }
    }
    /// Extends the lowest `bytes` bytes by sign or zero; 8 bytes stay unchanged.
    #[must_use]
    pub fn extend_bytes(self, bytes: u8, signed: bool) -> Self {
        match (bytes, signed) {
            (8.., _) => self,
            (_, true) => RegisterExpr::unary(Unary::Sign(bytes * 8), self),
            (_, false) => RegisterExpr::unary(Unary::Zero(bytes * 8), self),
        }
    }
    /// Evaluates the expression. Parsers limit its depth
    /// ([`mu_program::outcome::question::DEPTH`]).
    pub fn value(&self, registers: &[u64], loaded: u64) -> u64 {
        match self {
            RegisterExpr::Const(v) => *v,
            RegisterExpr::Register(r) => registers[*r as usize],
            RegisterExpr::Loaded => loaded,
            RegisterExpr::Unary(op, a) => apply(*op, a.value(registers, loaded)),
            RegisterExpr::Binary(op, a, b) => {
                combine(*op, a.value(registers, loaded), b.value(registers, loaded))
            }
            RegisterExpr::X86(e, from) => {
                e.eval(&|r| registers[r as usize], from.map_or(loaded, |r| registers[r as usize]))
            }
        }
    }
    /// Returns the value if it is the same for all values of its registers: `x ^ x`, `x & 0`.
    /// `None` also for an expression that is constant for a reason beyond its known bits.
    pub fn constant(&self) -> Option<u64> {
        known_bits::known_bits(self).value()
    }
    /// As [`RegisterExpr::sources`], for the registers that the value depends on.
    pub fn value_sources(&self, visit: &mut dyn FnMut(Register)) -> bool {
        match self {
            e if e.constant().is_some() => false,
            RegisterExpr::Unary(_, a) => a.value_sources(visit),
            RegisterExpr::Binary(_, a, b) => a.value_sources(visit) | b.value_sources(visit),
            other => other.sources(visit),
        }
    }
    /// True if the value is that of the loaded value, or of one register for which `of` holds,
    /// possibly extended or cut off at a width.
    pub fn is_copy(&self, of: &dyn Fn(Register) -> bool) -> bool {
        known_bits::is_copy(self, of)
    }
    /// Calls `visit` for each of its registers. Returns true if it uses the loaded value.
    pub fn sources(&self, visit: &mut dyn FnMut(Register)) -> bool {
        match self {
            RegisterExpr::Const(_) => false,
            RegisterExpr::Register(r) => {
                visit(*r);
                false
            }
            RegisterExpr::Loaded => true,
            RegisterExpr::Unary(_, a) => a.sources(visit),
            RegisterExpr::Binary(_, a, b) => a.sources(visit) | b.sources(visit),
            RegisterExpr::X86(e, from) => {
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

/// Returns the lowest `bits` bits of a value.
pub fn low(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// Returns the lowest `bits` bits of a value as a signed number.
pub fn to_signed(value: u64, bits: u32) -> i64 {
    if bits >= 64 { value as i64 } else { ((value << (64 - bits)) as i64) >> (64 - bits) }
}

pub(crate) fn apply(op: Unary, a: u64) -> u64 {
    match op {
        Unary::Not => !a,
        Unary::Neg => a.wrapping_neg(),
        Unary::IsZero => u64::from(a == 0),
        Unary::Zero(bits) => low(a, u32::from(bits)),
        Unary::Sign(bits) => to_signed(a, u32::from(bits)) as u64,
        Unary::Abs(bits) => to_signed(a, u32::from(bits)).unsigned_abs(),
        Unary::ReverseBytes(bits) => reverse_bytes(a, u32::from(bits)),
        Unary::ReverseBits(bits) => a.reverse_bits() >> (64 - u32::from(bits)),
        Unary::LeadingZeros(bits) => {
            let bits = u32::from(bits);
            u64::from(low(a, bits).leading_zeros() - (64 - bits))
        }
        Unary::Flags(bits) => sign_and_zero(a, u32::from(bits)),
        Unary::Holds(code) => u64::from(holds(code, a)),
    }
}

/// Reverses the bytes in each group of `bits` bits.
fn reverse_bytes(value: u64, bits: u32) -> u64 {
    match bits {
        64 => value.swap_bytes(),
        32 => value.swap_bytes().rotate_left(32),
        _ => (value & 0x00ff_00ff_00ff_00ff) << 8 | (value >> 8) & 0x00ff_00ff_00ff_00ff,
    }
}

/// Returns the flags N and Z of Arm, as bits 3 and 2.
fn sign_and_zero(result: u64, bits: u32) -> u64 {
    let result = low(result, bits);
    (result >> (bits - 1)) << 3 | u64::from(result == 0) << 2
}

/// Returns the flags of Arm after `a + b + carry` of `bits` bits.
fn sum_flags(a: u64, b: u64, carry: u64, bits: u32) -> u64 {
    let (a, b) = (low(a, bits), low(b, bits));
    let sum = u128::from(a) + u128::from(b) + u128::from(carry);
    let result = low(sum as u64, bits);
    let overflow = ((a ^ result) & (b ^ result)) >> (bits - 1) & 1;
    sign_and_zero(result, bits) | u64::from(sum >> bits != 0) << 1 | overflow
}

/// Returns whether a condition of Arm holds for the flags N, Z, C, V (bits 3 to 0): table C1-1 of
/// the Arm manual.
fn holds(code: u8, flags: u64) -> bool {
    let (n, z, c, v) = (flags >> 3 & 1, flags >> 2 & 1, flags >> 1 & 1, flags & 1);
    let positive = match code >> 1 {
        0 => z == 1,
        1 => c == 1,
        2 => n == 1,
        3 => v == 1,
        4 => c == 1 && z == 0,
        5 => n == v,
        6 => n == v && z == 0,
        _ => return true,
    };
    positive != (code & 1 == 1)
}

pub(crate) fn combine(op: Binary, a: u64, b: u64) -> u64 {
    let (i, j) = (a as i64, b as i64);
    match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl => a.wrapping_shl(narrow::low(b)),
        Binary::Shr => a.wrapping_shr(narrow::low(b)),
        Binary::Sar => i.wrapping_shr(narrow::low(b)) as u64,
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
        Binary::MulHigh => ((i128::from(i) * i128::from(j)) >> 64) as u64,
        Binary::MulHighU => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Binary::AddFlags(bits) => sum_flags(a, b, 0, u32::from(bits)),
        Binary::SubFlags(bits) => sum_flags(a, !b, 1, u32::from(bits)),
    }
}

/// The events of a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// One event that reads and writes.
    One,
    /// A read and a write, related by `amo`.
    Pair,
    /// A read and a write that are not atomic.
    None,
}

/// The dependencies inside a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The write depends on its condition and on its value.
    Plain,
    /// As the Linux kernel: the write depends on its value only, which may use the value read.
    Kernel,
    /// A compare-and-swap of Armv8: the comparison is a pick dependency. If the values are equal,
    /// the result depends on the read or, by a pick dependency, on the expected value. Otherwise
    /// the old value may be written back.
    Pick,
}

/// An operation of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes a register.
    Let(Register, RegisterExpr),
    /// Reads memory. The register becomes `value`, which may use the loaded value.
    Load {
        /// The register of the result.
        into: Option<Register>,
        /// The result.
        value: RegisterExpr,
        /// The address.
        address: RegisterExpr,
        /// Width in bytes.
        width: u8,
        /// The event's tags.
        tags: u64,
        /// True if a store-conditional may pair with it. If it is also `joined`, it is the second
        /// load of an exclusive pair.
        reserve: bool,
        /// True if it belongs to the previous operation and is not ordered with it.
        joined: bool,
    },
    /// Writes memory.
    Store {
        /// The address.
        address: RegisterExpr,
        /// Width in bytes.
        width: u8,
        /// The value.
        value: RegisterExpr,
        /// The event's tags.
        tags: u64,
        /// True if it belongs to the previous operation and is not ordered with it.
        joined: bool,
    },
    /// Writes memory if there is a valid reservation, but may always fail; `status` becomes 0 on
    /// success, else 1.
    StoreConditional {
        /// The register of the status.
        status: Option<Register>,
        /// The address.
        address: RegisterExpr,
        /// Width in bytes.
        width: u8,
        /// The value.
        value: RegisterExpr,
        /// The event's tags.
        tags: u64,
        /// True if uses of `status` depend on the write and its address, as on RISC-V; false on
        /// Arm.
        carries: bool,
        /// The value of a second write to the next `width` bytes: a store of an exclusive pair.
        second: Option<RegisterExpr>,
    },
    /// Reads memory and, unless `when` is zero, writes it.
    Update {
        /// The register of the result, and the result.
        into: Option<(Register, RegisterExpr)>,
        /// The address.
        address: RegisterExpr,
        /// Width in bytes.
        width: u8,
        /// The value to write; may use the loaded value.
        value: RegisterExpr,
        /// The condition of the write; may use the loaded value.
        when: Option<RegisterExpr>,
        /// Tags of the read, or of the single event.
        read: u64,
        /// Tags of the write.
        write: u64,
        /// Tags of the read if nothing is written.
        failed: u64,
        /// The number of events and their atomicity.
        atomicity: Atomicity,
        /// The dependencies between its events.
        flow: Flow,
        /// True if it is not ordered with the previous operation.
        joined: bool,
    },
    /// A fence.
    Fence(u64),
    /// An event at a location that neither reads nor writes it by itself: operations on locks, for
    /// which the model decides the sources, and of SRCU.
    Mark {
        /// The register of the result, and the result, which depends on the event.
        into: Option<(Register, RegisterExpr)>,
        /// The address.
        address: RegisterExpr,
        /// The event's tags.
        tags: u64,
        /// True if coherence orders it.
        ordered: bool,
        /// The value of the event.
        value: RegisterExpr,
    },
    /// The start of an `if` or `while` of the Linux kernel: branches up to the corresponding
    /// [`Op::Leave`] control only the operations before it.
    Enter,
    /// The end of an `if` or `while`.
    Leave,
    /// Nondeterministic choice: continues with the next operation or with a later one.
    Either {
        /// The index of the operation.
        to: u32,
    },
    /// Drops the path if this is zero.
    Assume(RegisterExpr),
    /// Drops the path if this is zero. The rest of the instruction depends on it by a pick
    /// dependency.
    Choose(RegisterExpr),
    /// The accesses of the instruction up to here come before its later ones.
    Ordered,
    /// Drops and reports the path as undefined behaviour if this is zero.
    Defined(RegisterExpr),
    /// Jumps, unless `when` is zero.
    Branch {
        /// The condition; `None` if unconditional.
        when: Option<RegisterExpr>,
        /// The index of an operation.
        to: u32,
    },
    /// Jumps to the instruction with this address ([`code_address`]).
    Jump(RegisterExpr),
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its operations.
    pub ops: Vec<Op>,
    /// The instruction of each operation.
    pub instruction: Vec<u32>,
    /// The instructions of the source text.
    pub texts: Vec<(String, Span)>,
    /// Its registers: name and initial value. Those with a name that begins with a dot exist
    /// during one instruction only.
    pub registers: Vec<(String, u64)>,
    /// The tag of accesses of atomic instructions: a store with it is the second half of an update
    /// if its instruction has read the same bytes with it. 0 if there is none.
    pub atomic: u64,
    /// The labels with their instructions, sorted.
    pub labels: Vec<(String, u32)>,
    /// The code that jumps to addresses may reach, its own first; empty if it has no such jumps.
    pub sections: Vec<CodeSection>,
    /// True if a jump to the address 0 ends it: the thread is a function that returns.
    pub returns: bool,
}

/// The code of a thread as a part of the operations of a thread ([`crate::code_sections`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// The thread with this code.
    pub thread: u32,
    /// Its first instruction.
    pub first: u32,
    /// The number of its instructions. A jump to the end of all code follows.
    pub length: u32,
    /// The instructions with labels, counted in the section.
    pub labels: Vec<u32>,
}

impl CodeSection {
    fn instruction(&self, at: u32) -> u32 {
        self.first + at.min(self.length)
    }
}

/// The first address of code, and the number of bytes of a thread. Addresses differ in their lowest
/// 32 bits, in which conditions compare registers without a type.
const CODE: u64 = 0x6000_0000;
const CODE_OF_THREAD: u64 = 1 << 20;

/// Returns the address of an instruction of a thread.
pub fn code_address(thread: u32, instruction: u32) -> u64 {
    CODE + u64::from(thread) * CODE_OF_THREAD + u64::from(instruction) * 4
}

/// True if a value is an address of code.
pub fn is_code(address: u64) -> bool {
    instruction_at(address).is_some()
}

/// Returns the thread and the instruction with an address of code; `None` for other values.
fn instruction_at(address: u64) -> Option<(u32, u32)> {
    let offset = address.checked_sub(CODE)?;
    let (thread, byte) = (offset / CODE_OF_THREAD, offset % CODE_OF_THREAD);
    (thread < 512 && byte.is_multiple_of(4)).then(|| (narrow::word(thread), narrow::word(byte) / 4))
}

impl Thread {
    /// Returns the first operation of an instruction; the end of the code for later ones.
    pub fn operation(&self, instruction: u32) -> u32 {
        narrow::index(self.instruction.partition_point(|i| *i < instruction))
    }
    /// Returns the operation at an address of code; `None` if there is none.
    pub fn target(&self, address: u64) -> Option<u32> {
        if self.returns && address == 0 {
            return Some(narrow::index(self.ops.len()));
        }
        let (of, at) = instruction_at(address)?;
        let section = self.sections.iter().find(|s| s.thread == of)?;
        Some(self.operation(section.instruction(at)))
    }
    /// Returns the operations with labels, of all its sections.
    pub fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        let of = |s: &CodeSection| s.labels.iter().map(|l| s.instruction(*l)).collect::<Vec<_>>();
        self.sections.iter().flat_map(of).map(|i| self.operation(i))
    }
    /// Returns the register with a name, creating it if necessary.
    pub fn register(&mut self, name: &str) -> Register {
        if let Some(i) = self.registers.iter().position(|r| r.0 == name) {
            return i as Register;
        }
        self.registers.push((name.to_string(), 0));
        (self.registers.len() - 1) as Register
    }
}
