//! Vocabularies of the architectures: the tags and relations that models may use.
//!
//! The lists are the names that the herd tools and Dartagnan provide to models. Names of features
//! that user programs never use (translation tables, instruction fetches, locks) denote the empty
//! set or relation; tests with such instructions are rejected. Events of registers and the order
//! inside instructions are provided for machine code ([`REGISTERS`], [`INSIDE`]). Names that front
//! ends do not provide are declared missing: a model that depends on one is rejected.

use crate::execution::{NameMeaning, SetId, Vocabulary};

/// An architecture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Architecture {
    /// x86.
    X86,
    /// RISC-V.
    RiscV,
    /// Arm, 64 bits.
    AArch64,
    /// Power.
    Power,
    /// Arm, 32 bits.
    Arm,
    /// C and C++ atomics.
    C11,
    /// The Linux kernel. A `.bell` file adds the sets of annotations.
    Linux,
}

impl Architecture {
    /// All architectures.
    pub const ALL: [Architecture; 7] = [
        Architecture::X86,
        Architecture::RiscV,
        Architecture::AArch64,
        Architecture::Power,
        Architecture::Arm,
        Architecture::C11,
        Architecture::Linux,
    ];
}

/// Sets that are empty in every execution of every architecture.
const NEVER: &[&str] = &["NExp", "SPEC", "SPURIOUS", "UB"];
/// Sets of events of registers and branches, which front ends of machine code provide if a model
/// reads one of them.
pub const REGISTERS: &[&str] = &["B", "Rreg", "Wreg", "ADDR", "DATA", "BCC", "PRED"];
/// Relations between events of one instruction, and between a write and a read of a register,
/// provided like [`REGISTERS`].
pub const INSIDE: &[&str] = &["iico_data", "iico_ctrl", "iico_order", "rf-reg"];
/// Relations that no front end provides.
const MISSING_RELATIONS: &[&str] = &[
    "partial_po",
    "depend",
    "control",
    "aligned",
    "success",
    "same-instr",
    "same-static",
    "equiv-spec",
    "tst",
    "instr",
    "pco",
    "casdep",
];

// Names of each architecture. No suffix: sets that front ends provide. `_NEVER`: empty in every
// execution. `_MISSING`: a model that uses one is rejected. `_RELATIONS`: relations, not sets.
const X86: &[&str] = &["MFENCE", "LFENCE", "SFENCE", "mfence", "lfence", "sfence", "X", "A"];
const X86_NEVER: &[&str] = &["NT", "EX"];

const RISCV: &[&str] = &[
    "Acq",
    "Rel",
    "AcqRel",
    "Sc",
    "EX",
    "X",
    "AMO",
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
];

const AARCH64: &[&str] = &[
    "A",
    "L",
    "Q",
    "EX",
    "X",
    "NoRet",
    "NT",
    "AMO",
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
];
const AARCH64_NEVER: &[&str] = &[
    "S",
    "T",
    "TagCheck",
    "FAULT",
    "MMU",
    "Translation",
    "AccessFlag",
    "TLBI",
    "TLBIIS",
    "TLBInXS",
    "TLBIVA",
    "TagAlloc",
    "Permission",
    "UndefinedInstruction",
    "DC.CVAU",
    "DC.CVAC",
    "IC.IVAU",
    "IC.IALLU",
    "IC.IALLUIS",
    "EXC-ENTRY",
    "EXC-RET",
    "SVC",
    "SPURIOUS",
    "AF",
    "DB",
    "PTE",
    "PTEV",
    "PTEINV",
    "PTEAF0",
    "PTEXS",
    "D-PTE",
    "I-PTE",
    "D-MMU",
    "I-MMU",
    "PTEMemAttr",
    "PTEDevice-GRE",
    "PTEDevice-nGRE",
    "PTEDevice-nGnRE",
    "PTEDevice-nGnRnE",
    "PTENSH",
    "PTEISH",
    "PTEOSH",
    "PTEiWB",
    "PTEiWT",
    "PTEiNC",
    "PTEoWB",
    "PTEoWT",
    "PTEoNC",
    "PTETaggedNormal",
    "PTENormal",
    "Instr",
    "Restricted-CMODX",
];
const AARCH64_NEVER_RELATIONS: &[&str] =
    &["inv-domain", "inv-field", "same-tag-loc", "tag-locs", "PTEtoPA"];
/// Relations beyond the names of the herd tools: the data flow inside atomic instructions, and pick
/// dependencies, which start at the compared value of a compare-and-swap.
const AARCH64_RELATIONS: &[&str] = &["amo-data", "amo-ctrl", "pick-addr", "pick-data", "pick-ctrl"];
const AARCH64_MISSING_RELATIONS: &[&str] = &["same-low-order-bits"];

/// Fences have the names of the herd tools in capitals, and those of Dartagnan in small letters.
const POWER: &[&str] =
    &["EX", "X", "SYNC", "LWSYNC", "EIEIO", "ISYNC", "sync", "lwsync", "eieio", "isync"];

const ARM: &[&str] = &["A", "L", "EX", "X", "ISB", "DMB", "DMB.ISH", "DMB.ST", "DSB", "DSB.ST"];

const C11: &[&str] = &["NA", "RLX", "CON", "ACQ", "REL", "ACQ_REL", "SC", "A", "NAL"];
const C11_NEVER: &[&str] = &["EX", "LK", "LKR", "LKW", "UL", "LS", "LF", "RL", "RU"];
const C11_NEVER_RELATIONS: &[&str] = &["lo"];
const C11_MISSING: &[&str] = &["STRONG", "annot"];

/// Sets of the Linux kernel without annotations: accesses of atomic operations (`X`), and events of
/// spin locks.
const LINUX: &[&str] = &["EX", "X", "LK", "LKR", "LKW", "UL", "LS", "LF", "RL", "RU"];

impl Architecture {
    /// Returns the vocabulary of the architecture.
    pub fn vocabulary(self) -> Vocabulary {
        let mut v = plain();
        match self {
            Architecture::X86 => {
                sets(&mut v, X86, |_, _| ());
                sets(&mut v, X86_NEVER, Vocabulary::never);
            }
            Architecture::RiscV => sets(&mut v, RISCV, |_, _| ()),
            Architecture::AArch64 => {
                sets(&mut v, AARCH64, |_, _| ());
                sets(&mut v, AARCH64_NEVER, Vocabulary::never);
                relations(&mut v, AARCH64_RELATIONS, |_, _| ());
                relations(&mut v, AARCH64_NEVER_RELATIONS, Vocabulary::never);
                relations(&mut v, AARCH64_MISSING_RELATIONS, Vocabulary::declare_missing);
            }
            Architecture::Power => sets(&mut v, POWER, |_, _| ()),
            Architecture::Arm => sets(&mut v, ARM, |_, _| ()),
            Architecture::Linux => sets(&mut v, LINUX, |_, _| ()),
            Architecture::C11 => {
                sets(&mut v, C11, |_, _| ());
                // The herd library uses this name for atomic instructions.
                v.alias("X", NameMeaning::Set(SetId::UPDATES));
                sets(&mut v, C11_NEVER, Vocabulary::never);
                sets(&mut v, C11_MISSING, Vocabulary::declare_missing);
                sets(&mut v, REGISTERS, Vocabulary::declare_missing);
                relations(&mut v, INSIDE, Vocabulary::declare_missing);
                relations(&mut v, C11_NEVER_RELATIONS, Vocabulary::never);
            }
        }
        v
    }
}

/// Returns the vocabulary that all architectures share. [`Architecture::vocabulary`] adds the names
/// of one architecture.
pub(crate) fn plain() -> Vocabulary {
    let mut v = Vocabulary::new();
    sets(&mut v, NEVER, Vocabulary::never);
    sets(&mut v, REGISTERS, |_, _| ());
    relations(&mut v, INSIDE, |_, _| ());
    relations(&mut v, MISSING_RELATIONS, Vocabulary::declare_missing);
    v
}

fn sets(v: &mut Vocabulary, names: &[&str], declare: fn(&mut Vocabulary, NameMeaning)) {
    for name in names {
        let id = v.set(name);
        declare(v, NameMeaning::Set(id));
    }
}

fn relations(v: &mut Vocabulary, names: &[&str], declare: fn(&mut Vocabulary, NameMeaning)) {
    for name in names {
        let id = v.relation(name);
        declare(v, NameMeaning::Relation(id));
    }
}
