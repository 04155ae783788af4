//! The names that models of each architecture expect: tags of events and relations that its front end may give.
//!
//! The lists are the names that the herd tools and Dartagnan give their models. A front end that gives less leaves sets empty: an execution
//! has no fence of a kind that its program does not have. Names of what user programs never do (translation tables, instruction
//! fetches) are there so that models which speak of them compile; their sets stay empty.

use crate::execution::Vocabulary;

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
    /// C and C++ atomics.
    C11,
}

/// What models of every architecture may speak of.
pub(crate) const COMMON: &[&str] = &["Exp", "NExp", "Rreg", "Wreg", "ADDR", "DATA", "BCC", "PRED", "UB"];

const X86: &[&str] = &["MFENCE", "LFENCE", "SFENCE", "mfence", "lfence", "sfence", "X", "A"];

/// Tags of RISC-V.
pub const RISCV: &[&str] = &[
    "Acq",
    "Rel",
    "AcqRel",
    "Sc",
    "X",
    "AMO",
    "D",
    "A",
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
    "X",
    "NoRet",
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
    "T",
    "TagCheck",
    "FAULT",
    "MMU",
    "Translation",
    "AccessFlag",
    "TLBI",
    "TLBIIS",
    "TLBInXS",
    "DC.CVAU",
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
    "PTEXS",
    "Instr",
    "Restricted-CMODX",
];
const AARCH64_RELATIONS: &[&str] = &["inv-domain", "same-low-order-bits", "same-tag-loc", "tag-locs"];

const C11: &[&str] = &["NA", "RLX", "CON", "ACQ", "REL", "ACQ_REL", "SC", "A", "NAL", "LK", "UL", "LS", "STRONG"];
const C11_RELATIONS: &[&str] = &["casdep", "lo"];

impl Architecture {
    /// The vocabulary of the architecture.
    pub fn vocabulary(self) -> Vocabulary {
        let (sets, relations): (&[&str], &[&str]) = match self {
            Architecture::X86 => (X86, &[]),
            Architecture::RiscV => (RISCV, &[]),
            Architecture::AArch64 => (AARCH64, AARCH64_RELATIONS),
            Architecture::C11 => (C11, C11_RELATIONS),
        };
        let mut v = Vocabulary::new();
        for name in sets.iter().chain(COMMON) {
            v.set(name);
        }
        for name in relations {
            v.relation(name);
        }
        v
    }
}
