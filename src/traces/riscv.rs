//! Decoder of the RISC-V instructions that access or order memory.
//!
//! In: one instruction word of RV32 or RV64 with the extensions I, M, A, F, D, C, and those of
//! Zabha, Zacas, Zalasr, and Zcb. Out: the kind of access, its size in bytes, and its ordering
//! bits; other instructions give `None`. The encodings are those of the unprivileged manual
//! (20240411), chapters 2, 4, 13, 27, and 34; those of Zalasr, which is not in it, are of its own
//! specification. Constant time per word.
//!
//! Invariant: an instruction of these extensions, or of F, D, Q, V, Zicboz, or H, that accesses
//! memory in a form that the decoder does not know, such as a vector load, is an error and never
//! `None`.

/// One access to memory, or one fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryInstruction {
    /// A load of `size` bytes into a register.
    Load {
        /// Bytes of the access.
        size: u8,
        /// Target register.
        target: Register,
        /// The ordering bits.
        order: AcquireRelease,
    },
    /// A store of `size` bytes.
    Store {
        /// Bytes of the access.
        size: u8,
        /// The ordering bits.
        order: AcquireRelease,
    },
    /// A load that sets a reservation.
    LoadReserved {
        /// Bytes of the access.
        size: u8,
        /// Target register.
        target: Register,
        /// The ordering bits.
        order: AcquireRelease,
    },
    /// A store that succeeds only under a reservation; its register receives 0 on success.
    StoreConditional {
        /// Bytes of the access.
        size: u8,
        /// Register of the result.
        target: Register,
        /// The ordering bits.
        order: AcquireRelease,
    },
    /// A load and a store in one step.
    Update {
        /// The operation between load and store.
        operation: AtomicOperation,
        /// Bytes of the access.
        size: u8,
        /// Register that receives the loaded value.
        target: Register,
        /// Number of the integer register of the operand.
        operand: u8,
        /// The ordering bits.
        order: AcquireRelease,
    },
    /// A fence between accesses.
    Fence {
        /// Accesses before the fence that it orders.
        before: FenceAccesses,
        /// Accesses after the fence that it orders.
        after: FenceAccesses,
        /// True for `fence.tso`, which does not order stores before loads.
        tso: bool,
    },
}

/// A register of the integer or of the floating-point file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `x0` to `x31`.
    Integer(u8),
    /// `f0` to `f31`.
    Float(u8),
}

/// The bits `aq` and `rl`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcquireRelease {
    /// The bit `aq`.
    pub acquire: bool,
    /// The bit `rl`.
    pub release: bool,
}

/// Accesses to main memory that a fence orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceAccesses {
    /// True if loads are ordered.
    pub loads: bool,
    /// True if stores are ordered.
    pub stores: bool,
}

/// Operation of an atomic memory operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOperation {
    /// Stores the operand.
    Swap,
    /// Stores the sum.
    Add,
    /// Stores the exclusive disjunction.
    Xor,
    /// Stores the conjunction.
    And,
    /// Stores the disjunction.
    Or,
    /// Stores the minimum of signed numbers.
    Min,
    /// Stores the maximum of signed numbers.
    Max,
    /// Stores the minimum of unsigned numbers.
    UnsignedMin,
    /// Stores the maximum of unsigned numbers.
    UnsignedMax,
    /// Stores the operand if the target register has the loaded value.
    CompareAndSwap,
}

/// An access to memory in a form that the decoder does not know: its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAccess(pub &'static str);

/// Decodes an instruction word. `bits`: the width of integer registers, 32 or 64, on which only the
/// meaning of compressed instructions depends; others are decoded as those of RV64. `None` if the
/// instruction neither accesses nor orders memory.
///
/// # Errors
/// The instruction accesses memory in a form that is not supported.
pub fn decode(word: u32, bits: u8) -> Result<Option<MemoryInstruction>, UnknownAccess> {
    match word & 3 {
        3 => decode_32(word),
        _ => Ok(decode_16(word & 0xffff, bits)),
    }
}

fn field(word: u32, low: u32, width: u32) -> u32 {
    (word >> low) & ((1 << width) - 1)
}

/// Returns a size or the number of a register as a byte.
///
/// # Panics
/// If the number is above 255, which none of them is.
pub(crate) fn narrow_byte(number: usize) -> u8 {
    u8::try_from(number).expect("a size or a register has at most 8 bits")
}

/// Returns the number of a register.
fn register(word: u32, low: u32) -> u8 {
    narrow_byte(field(word, low, 5) as usize)
}

/// Decodes an instruction of 32 bits.
fn decode_32(word: u32) -> Result<Option<MemoryInstruction>, UnknownAccess> {
    let funct3 = field(word, 12, 3);
    let register = register(word, 7);
    Ok(match word & 0x7f {
        0x03 => match funct3 {
            7 => None,
            _ => Some(load(1 << (funct3 & 3), Register::Integer(register))),
        },
        0x07 => match funct3 {
            1..=3 => Some(load(1 << funct3, Register::Float(register))),
            4 => return Err(UnknownAccess("a load of 16 bytes")),
            _ => return Err(UnknownAccess("a vector load")),
        },
        0x23 => (funct3 < 4).then(|| store(1 << funct3)),
        0x27 => match funct3 {
            1..=3 => Some(store(1 << funct3)),
            4 => return Err(UnknownAccess("a store of 16 bytes")),
            _ => return Err(UnknownAccess("a vector store")),
        },
        0x0f if funct3 == 0 => Some(MemoryInstruction::Fence {
            before: accesses(field(word, 24, 4)),
            after: accesses(field(word, 20, 4)),
            tso: field(word, 28, 4) == 8,
        }),
        0x0f if funct3 == 2 && field(word, 20, 12) == 4 => {
            return Err(UnknownAccess("a block that is set to zero (`cbo.zero`)"));
        }
        0x2f => atomic(word)?,
        0x73 if funct3 == 4 && field(word, 28, 4) == 0b0110 => {
            return Err(UnknownAccess("an access of a hypervisor"));
        }
        _ => None,
    })
}

/// Returns the accesses to main memory of the bits `iorw`.
fn accesses(bits: u32) -> FenceAccesses {
    FenceAccesses { loads: bits & 2 != 0, stores: bits & 1 != 0 }
}

fn load(size: u8, target: Register) -> MemoryInstruction {
    MemoryInstruction::Load { size, target, order: AcquireRelease::default() }
}

fn store(size: u8) -> MemoryInstruction {
    MemoryInstruction::Store { size, order: AcquireRelease::default() }
}

/// Decodes an instruction of the major opcode `AMO`.
fn atomic(word: u32) -> Result<Option<MemoryInstruction>, UnknownAccess> {
    let size = match field(word, 12, 3) {
        width @ 0..=3 => 1u8 << width,
        4 => return Err(UnknownAccess("an atomic access of 16 bytes")),
        _ => return Ok(None),
    };
    let order =
        AcquireRelease { acquire: field(word, 26, 1) == 1, release: field(word, 25, 1) == 1 };
    let target = Register::Integer(register(word, 7));
    let operand = register(word, 20);
    let update = |operation| MemoryInstruction::Update { operation, size, target, operand, order };
    Ok(Some(match field(word, 27, 5) {
        0b00010 => MemoryInstruction::LoadReserved { size, target, order },
        0b00011 => MemoryInstruction::StoreConditional { size, target, order },
        0b00001 => update(AtomicOperation::Swap),
        0b00000 => update(AtomicOperation::Add),
        0b00100 => update(AtomicOperation::Xor),
        0b00101 => update(AtomicOperation::CompareAndSwap),
        0b01000 => update(AtomicOperation::Or),
        0b01100 => update(AtomicOperation::And),
        0b10000 => update(AtomicOperation::Min),
        0b10100 => update(AtomicOperation::Max),
        0b11000 => update(AtomicOperation::UnsignedMin),
        0b11100 => update(AtomicOperation::UnsignedMax),
        0b00110 => MemoryInstruction::Load { size, target, order },
        0b00111 => MemoryInstruction::Store { size, order },
        _ => return Err(UnknownAccess("an unknown atomic access")),
    }))
}

/// Decodes a compressed instruction.
fn decode_16(word: u32, bits: u8) -> Option<MemoryInstruction> {
    let is_rv64 = bits == 64;
    let rd_prime = narrow_byte(field(word, 2, 3) as usize) + 8;
    let rd = register(word, 7);
    match (word & 3, field(word, 13, 3)) {
        (0, 1) => Some(load(8, Register::Float(rd_prime))),
        (0, 2) => Some(load(4, Register::Integer(rd_prime))),
        (0, 3) if is_rv64 => Some(load(8, Register::Integer(rd_prime))),
        (0, 3) => Some(load(4, Register::Float(rd_prime))),
        (0, 4) => match field(word, 10, 3) {
            0 => Some(load(1, Register::Integer(rd_prime))),
            1 => Some(load(2, Register::Integer(rd_prime))),
            2 => Some(store(1)),
            3 => Some(store(2)),
            _ => None,
        },
        (0, 5) | (2, 5) => Some(store(8)),
        (0, 6) | (2, 6) => Some(store(4)),
        (0, 7) | (2, 7) => Some(store(if is_rv64 { 8 } else { 4 })),
        (2, 1) => Some(load(8, Register::Float(rd))),
        (2, 2) => Some(load(4, Register::Integer(rd))),
        (2, 3) if is_rv64 => Some(load(8, Register::Integer(rd))),
        (2, 3) => Some(load(4, Register::Float(rd))),
        _ => None,
    }
}
