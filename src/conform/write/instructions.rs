//! Instructions of litmus tests for operations of a history, by language.
//!
//! Input: the operations of a thread. Output: its lines, the registers of its loads, and those of
//! the results of its store-conditionals. Registers have fixed roles: those of loads in order, two
//! for computed values and addresses, one for each address.

use super::TestLanguage;
use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, History, Operation, location_name};
use mu_axioms::models::{FenceSide, MemoryOrdering};

/// The registers of a language, by role.
struct Bank {
    /// The letter of a register in instructions that load.
    letter: &'static str,
    /// The letter of a register in addresses and conditions.
    full: &'static str,
    loads: &'static [u32],
    statuses: &'static [u32],
    value: u32,
    address: u32,
    bases: &'static [u32],
}

const RISCV: Bank = Bank {
    letter: "x",
    full: "x",
    loads: &[5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19],
    statuses: &[28, 29, 30, 31],
    value: 12,
    address: 13,
    bases: &[20, 21, 22, 23, 24, 25, 26, 27],
};
const AARCH64: Bank = Bank {
    letter: "W",
    full: "X",
    loads: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    statuses: &[14, 15, 16, 17],
    value: 12,
    address: 13,
    bases: &[20, 21, 22, 23, 24, 25, 26, 27],
};
const POWER: Bank = Bank {
    letter: "r",
    full: "r",
    loads: &[3, 4, 5, 6, 7, 8, 9, 10, 11],
    statuses: &[],
    value: 12,
    address: 13,
    bases: &[20, 21, 22, 23, 24, 25, 26, 27],
};
const ARM: Bank = Bank {
    letter: "R",
    full: "R",
    loads: &[0, 1, 2, 3],
    statuses: &[11, 12],
    value: 4,
    address: 5,
    bases: &[6, 7, 8, 9, 10],
};
/// The registers of loads on x86.
const X86: [&str; 6] = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI"];

fn bank(language: TestLanguage) -> Option<&'static Bank> {
    match language {
        TestLanguage::RiscV => Some(&RISCV),
        TestLanguage::AArch64 => Some(&AARCH64),
        TestLanguage::Power => Some(&POWER),
        TestLanguage::Arm => Some(&ARM),
        TestLanguage::X86 | TestLanguage::C | TestLanguage::Kernel => None,
    }
}

/// Returns the register that holds the address of a location; `None` if the language names
/// locations.
pub(super) fn base(language: TestLanguage, location: u32) -> Option<String> {
    let bank = bank(language)?;
    bank.bases.get(location as usize).map(|n| format!("{}{n}", bank.full))
}

/// Rejects histories that cannot be written in C.
pub(super) fn check_c(history: &History) -> Result<(), String> {
    for o in history.threads.iter().flatten() {
        if o.exclusive {
            return Err("C has no load-reserve and store-conditional".into());
        }
        if o.depends != Dependencies::NONE {
            return Err("dependencies are not written in C, where they have no order".into());
        }
        if matches!(o.mark, MemoryOrdering::Between(..)) {
            return Err("C has no fence that orders exactly these accesses".into());
        }
    }
    Ok(())
}

/// The text of a thread.
#[derive(Default)]
pub(super) struct ThreadText {
    /// Its lines.
    pub lines: Vec<String>,
    /// The register of each load, in order, as in conditions.
    pub loads: Vec<String>,
    /// The register of the result of each store-conditional, as in conditions.
    pub statuses: Vec<String>,
    /// Number of branches so far.
    branches: usize,
}

impl ThreadText {
    /// Writes a thread.
    pub(super) fn of(language: TestLanguage, thread: &[Operation]) -> Result<Self, String> {
        let mut out = ThreadText::default();
        let Some(bank) = bank(language) else {
            thread.iter().try_for_each(|o| out.x86(o))?;
            return Ok(out);
        };
        let mut sources: Vec<Option<u32>> = Vec::new();
        for o in thread {
            let into = match o.kind.reads() {
                false => None,
                true => {
                    let few = || "the language has too few registers for the loads".to_string();
                    Some(*bank.loads.get(out.loads.len()).ok_or_else(few)?)
                }
            };
            let of = |bits: u32| -> Vec<u32> {
                Dependencies::positions(bits)
                    .filter_map(|p| sources.get(p).copied().flatten())
                    .collect()
            };
            for source in of(o.depends.control) {
                out.branch(language, bank, source);
            }
            out.operation(language, bank, o, into, [of(o.depends.address), of(o.depends.data)])?;
            if let Some(n) = into {
                out.loads.push(format!("{}{n}", bank.full));
            }
            sources.push(into);
        }
        Ok(out)
    }

    fn line(&mut self, text: String) {
        self.lines.push(text);
    }

    /// Writes a branch on a loaded value to the next line.
    fn branch(&mut self, language: TestLanguage, bank: &Bank, source: u32) {
        let label = format!("LC{:02}", self.branches);
        self.branches += 1;
        let r = format!("{}{source}", bank.letter);
        match language {
            TestLanguage::RiscV => self.line(format!("bne {r},x0,{label}")),
            TestLanguage::AArch64 => self.line(format!("CBNZ {r},{label}")),
            TestLanguage::Power => {
                self.line(format!("cmpw {r},{r}"));
                self.line(format!("bne {label}"));
            }
            _ => {
                self.line(format!("CMP {r},{r}"));
                self.line(format!("BNE {label}"));
            }
        }
        self.line(format!("{label}:"));
    }

    /// Writes 0 to a register, computed from loaded values.
    fn zero(&mut self, language: TestLanguage, letter: &str, into: u32, sources: &[u32]) {
        let (or, xor) = match language {
            TestLanguage::RiscV | TestLanguage::Power => ("or", "xor"),
            _ => ("ORR", "EOR"),
        };
        let mut last = format!("{letter}{}", sources[0]);
        for source in &sources[1..] {
            self.line(format!("{or} {letter}{into},{last},{letter}{source}"));
            last = format!("{letter}{into}");
        }
        self.line(format!("{xor} {letter}{into},{last},{last}"));
    }

    fn operation(
        &mut self,
        language: TestLanguage,
        bank: &Bank,
        o: &Operation,
        into: Option<u32>,
        [address, data]: [Vec<u32>; 2],
    ) -> Result<(), String> {
        if o.kind == EventKind::Fence {
            let fence = fence(language, o.mark)
                .ok_or("the language has no fence that orders exactly these accesses")?;
            self.line(fence.to_string());
            return Ok(());
        }
        let (letter, full) = (bank.letter, bank.full);
        let few = "the language has too few registers for the addresses";
        let mut at = *bank.bases.get(o.location as usize).ok_or(few)?;
        if !address.is_empty() {
            self.zero(language, full, bank.address, &address);
            let add = if matches!(language, TestLanguage::RiscV | TestLanguage::Power) {
                "add"
            } else {
                "ADD"
            };
            self.line(format!("{add} {full}{0},{full}{0},{full}{at}", bank.address));
            at = bank.address;
        }
        let value = format!("{letter}{}", bank.value);
        if o.kind.writes() {
            match (language, data.is_empty()) {
                (TestLanguage::RiscV, true) => self.line(format!("ori {value},x0,{}", o.value)),
                (TestLanguage::Power, true) => self.line(format!("li {value},{}", o.value)),
                (_, true) => self.line(format!("MOV {value},#{}", o.value)),
                (_, false) => {
                    self.zero(language, letter, bank.value, &data);
                    self.line(match language {
                        TestLanguage::RiscV => format!("ori {value},{value},{}", o.value),
                        TestLanguage::Power => format!("addi {value},{value},{}", o.value),
                        _ => format!("ADD {value},{value},#{}", o.value),
                    });
                }
            }
        }
        let place = match language {
            TestLanguage::RiscV | TestLanguage::Power => format!("0({full}{at})"),
            _ => format!("[{full}{at}]"),
        };
        let loaded = into.map(|n| format!("{letter}{n}")).unwrap_or_default();
        let status = if o.exclusive && o.kind == EventKind::Write {
            let few = "the language has too few registers for store-conditionals";
            let n = bank.statuses.get(self.statuses.len()).ok_or(few)?;
            self.statuses.push(format!("{full}{n}"));
            format!("{letter}{n}")
        } else {
            String::new()
        };
        let line = access(language, o, [&loaded, &value, &status, &place])
            .ok_or("the language has no such atomic instruction")?;
        self.line(line);
        Ok(())
    }

    fn x86(&mut self, o: &Operation) -> Result<(), String> {
        if o.exclusive {
            return Err("x86 has no load-reserve and store-conditional".into());
        }
        if o.depends != Dependencies::NONE {
            return Err("dependencies are not written for x86, where they have no order".into());
        }
        let (x, value) = (location_name(o.location), o.value);
        let r = X86
            .get(self.loads.len())
            .filter(|_| o.kind.reads())
            .or((!o.kind.reads()).then_some(&""))
            .ok_or("x86 has too few registers for the loads")?;
        match o.kind {
            EventKind::Fence => {
                let fence = fence(TestLanguage::X86, o.mark)
                    .ok_or("x86 has no fence that orders exactly these accesses")?;
                self.line(fence.to_string());
            }
            EventKind::Write => self.line(format!("MOV [{x}],${value}")),
            EventKind::Update => {
                self.line(format!("MOV {r},${value}"));
                self.line(format!("XCHG [{x}],{r}"));
            }
            _ => self.line(format!("MOV {r},[{x}]")),
        }
        if o.kind.reads() {
            self.loads.push((*r).to_string());
        }
        Ok(())
    }
}

/// Returns the instruction of a fence.
fn fence(language: TestLanguage, mark: MemoryOrdering) -> Option<&'static str> {
    use FenceSide::{All, Reads, Writes};
    let acquire = matches!(mark, MemoryOrdering::Acquire | MemoryOrdering::Between(Reads, All));
    let writes = mark == MemoryOrdering::Between(Writes, Writes);
    Some(match (language, mark) {
        (TestLanguage::RiscV, MemoryOrdering::Plain | MemoryOrdering::Between(All, All)) => {
            "fence rw,rw"
        }
        (TestLanguage::RiscV, MemoryOrdering::Acquire | MemoryOrdering::Between(Reads, All)) => {
            "fence r,rw"
        }
        (TestLanguage::RiscV, MemoryOrdering::Release | MemoryOrdering::Between(All, Writes)) => {
            "fence rw,w"
        }
        (TestLanguage::RiscV, MemoryOrdering::AcquireRelease) => "fence.tso",
        (TestLanguage::RiscV, MemoryOrdering::Between(Reads, Reads)) => "fence r,r",
        (TestLanguage::RiscV, MemoryOrdering::Between(Reads, Writes)) => "fence r,w",
        (TestLanguage::RiscV, MemoryOrdering::Between(Writes, Reads)) => "fence w,r",
        (TestLanguage::RiscV, MemoryOrdering::Between(Writes, Writes)) => "fence w,w",
        (TestLanguage::RiscV, MemoryOrdering::Between(Writes, All)) => "fence w,rw",
        (TestLanguage::RiscV, MemoryOrdering::Between(All, Reads)) => "fence rw,r",
        (TestLanguage::X86, MemoryOrdering::Plain) => "MFENCE",
        (TestLanguage::X86, _) if acquire => "LFENCE",
        (TestLanguage::X86, _) if writes => "SFENCE",
        (TestLanguage::AArch64, MemoryOrdering::Plain) => "DMB SY",
        (TestLanguage::AArch64, _) if acquire => "DMB LD",
        (TestLanguage::AArch64, _) if writes => "DMB ST",
        (TestLanguage::Power, MemoryOrdering::Plain) => "sync",
        (TestLanguage::Power, MemoryOrdering::AcquireRelease) => "lwsync",
        (TestLanguage::Power, _) if writes => "eieio",
        (TestLanguage::Arm, MemoryOrdering::Plain) => "DMB",
        (TestLanguage::Arm, _) if writes => "DMB ST",
        _ => return None,
    })
}

/// Returns the instruction of an access; `None` if the language has none.
fn access(
    language: TestLanguage,
    o: &Operation,
    [loaded, value, status, place]: [&str; 4],
) -> Option<String> {
    let (acquires, releases) = (o.mark.acquires(), o.mark.releases());
    Some(match (language, o.kind, o.exclusive) {
        (TestLanguage::RiscV, kind, exclusive) => {
            let order = match (acquires, releases) {
                (true, true) => ".aqrl",
                (true, false) => ".aq",
                (false, true) => ".rl",
                (false, false) => "",
            };
            match (kind, exclusive) {
                (EventKind::Update, _) => {
                    format!("amoswap.w{order} {loaded},{value},({})", inner(place))
                }
                (EventKind::Write, true) => {
                    format!("sc.w{order} {status},{value},({})", inner(place))
                }
                (EventKind::Write, false) => format!("sw{order} {value},{place}"),
                (_, true) => format!("lr.w{order} {loaded},({})", inner(place)),
                (_, false) => format!("lw{order} {loaded},{place}"),
            }
        }
        (TestLanguage::AArch64, EventKind::Update, _) => {
            let order = match (acquires, releases) {
                (true, true) => "AL",
                (true, false) => "A",
                (false, true) => "L",
                (false, false) => "",
            };
            format!("SWP{order} {value},{loaded},{place}")
        }
        (TestLanguage::AArch64, EventKind::Write, true) => {
            format!("{} {status},{value},{place}", if releases { "STLXR" } else { "STXR" })
        }
        (TestLanguage::AArch64, EventKind::Write, false) => {
            format!("{} {value},{place}", if releases { "STLR" } else { "STR" })
        }
        (TestLanguage::AArch64, _, exclusive) => {
            let name = match (acquires, exclusive) {
                (true, true) => "LDAXR",
                (false, true) => "LDXR",
                (true, false) => "LDAR",
                (false, false) => "LDR",
            };
            format!("{name} {loaded},{place}")
        }
        (TestLanguage::Power, EventKind::Write, false) => format!("stw {value},{place}"),
        (TestLanguage::Power, EventKind::Read, false) => format!("lwz {loaded},{place}"),
        (TestLanguage::Arm, EventKind::Write, true) => {
            format!("{} {status},{value},{place}", if releases { "STLEX" } else { "STREX" })
        }
        (TestLanguage::Arm, EventKind::Write, false) => {
            format!("{} {value},{place}", if releases { "STL" } else { "STR" })
        }
        (TestLanguage::Arm, EventKind::Read, exclusive) => {
            let name = match (acquires, exclusive) {
                (true, true) => "LDAEX",
                (false, true) => "LDREX",
                (true, false) => "LDA",
                (false, false) => "LDR",
            };
            format!("{name} {loaded},{place}")
        }
        _ => return None,
    })
}

/// Returns the register of `0(register)`.
fn inner(place: &str) -> &str {
    place.trim_start_matches("0(").trim_end_matches(')')
}
