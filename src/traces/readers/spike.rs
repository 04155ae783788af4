//! Reader of the commit log of Spike (`spike -l --log-commits`), the simulator of RISC-V
//! International; other simulators and processors write it too.
//!
//! ```text
//! core   0: 3 0x0000000080000010 (0x0005b503) x10 0x0000000000000007 mem 0x0000000080002000
//! core   0: 3 0x0000000080000014 (0x00a5b023) mem 0x0000000080002000 0x0000000000000008
//! ```
//!
//! A line has the privilege, the program counter, the instruction, the registers that it writes,
//! and its accesses: an address for a load, an address and a value for a store. The value of a load
//! is in its register; kind, size, annotations, and fences follow from the instruction
//! ([`crate::riscv`]). Initial values are not in the log.
//!
//! The value of a load into `x0` is open. So is that of an atomic operation with the target `x0`,
//! unless it follows from the stored value and the operand. Memory: the trace.

use super::hart::{Hart, HartAccess, lowest};
use super::lines::{Line, LineEffect, LineReader, Scanner, Word, read_lines};
use super::{ReadOptions, Sink, TraceReader};
use crate::riscv::{AtomicOperation, MemoryInstruction, Register, decode, narrow_byte};
use crate::trace::{Initial, TraceBuilder};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::BufRead;

/// Commit logs of Spike.
pub struct Spike;

impl TraceReader for Spike {
    fn name(&self) -> &'static str {
        "spike"
    }
    fn summary(&self) -> &'static str {
        "Spike `--log-commits`: `core   0: 3 0x80000010 (0x0005b503) x10 0x7 mem 0x80002000`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["spike"]
    }
    fn recognises(&self, start: &str) -> bool {
        start.lines().take(500).any(|line| commit(line).is_some())
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        let reader = SpikeReader {
            builder: trace_builder_without_initial(&options.file, 1),
            file: options.file.clone(),
            harts: AHashMap::new(),
        };
        read_lines(reader, log, options, sink)
    }
}

/// Returns a builder without known initial values.
pub(super) fn trace_builder_without_initial(file: &str, number: u64) -> TraceBuilder {
    let mut builder = TraceBuilder::new(file, number);
    builder.initial = Initial::Unknown;
    builder
}

/// Returns the hart of a line and the byte after its privilege; `None` if the line is not that of
/// an instruction.
fn commit(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix("core")?;
    let (hart, rest) = rest.split_once(':')?;
    let hart = hart.trim();
    if hart.is_empty() || !hart.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let rest = rest.trim_start();
    let mut bytes = rest.bytes();
    let privilege = bytes.next().is_some_and(|b| (b'0'..=b'3').contains(&b));
    (privilege && bytes.next() == Some(b' ') && rest[2..].trim_start().starts_with("0x"))
        .then(|| (hart, text.len() - rest.len() + 1))
}

/// The state of a hart, with the integer registers as far as they are known.
#[derive(Debug)]
struct Core {
    hart: Hart,
    registers: [Option<u64>; 32],
}

#[derive(Debug)]
struct SpikeReader {
    file: String,
    builder: TraceBuilder,
    harts: AHashMap<String, Core>,
}

/// The results of an instruction in its line.
#[derive(Default)]
struct Results {
    registers: Vec<(Register, u64)>,
    loads: Vec<u64>,
    stores: Vec<(u64, u64, u8)>,
}

impl Results {
    fn read(scan: &mut Scanner<'_>) -> Result<Self, Diagnostic> {
        let mut results = Self::default();
        while !scan.is_done() {
            let word = scan.word(&[]);
            if word.text == "mem" {
                let address = scan.word(&[]).number("an address")?;
                let mut ahead = scan.clone();
                let value = ahead.word(&[]);
                if value.text.starts_with("0x") {
                    let digits = value.text.len() - 2;
                    if ![2, 4, 8, 16].contains(&digits) {
                        let what = "a value of 2, 4, 8, or 16 hexadecimal digits";
                        return Err(value.expected_error(what));
                    }
                    *scan = ahead;
                    let size = narrow_byte(digits / 2);
                    results.stores.push((address, value.number("a value")?, size));
                } else {
                    results.loads.push(address);
                }
                continue;
            }
            match register(&word) {
                Some(register) => {
                    let value = scan.word(&[]);
                    // Wide registers (quadruple precision) are cut to their lowest 8 bytes.
                    let from = value.text.len().saturating_sub(16);
                    let digits = if value.text.len() > 18 {
                        Word::of(scan.line, value.at + from, &value.text[from..])
                    } else {
                        value
                    };
                    results.registers.push((register, digits.hexadecimal("a value")?));
                }
                None if is_other(word.text) => {
                    if word.text.starts_with(['c', 'v']) {
                        scan.word(&[]);
                    }
                }
                None => {
                    return Err(word.expected_error("a register, `mem`, or the end of the line"));
                }
            }
        }
        Ok(results)
    }
    fn value(&self, register: Register) -> Option<u64> {
        self.registers.iter().find(|r| r.0 == register).map(|r| r.1)
    }
}

/// Returns the register with a name `xN` or `fN`.
fn register(word: &Word<'_>) -> Option<Register> {
    let (file, number) = word.text.split_at_checked(1)?;
    let number: u8 = number.parse().ok().filter(|n| *n < 32)?;
    match file {
        "x" => Some(Register::Integer(number)),
        "f" => Some(Register::Float(number)),
        _ => None,
    }
}

/// True for control registers (`c768_mstatus`), vector registers, and the configuration of vectors
/// (`e32`, `m1`, `mf2`, `l4`).
fn is_other(text: &str) -> bool {
    let Some((kind, rest)) = text.split_at_checked(1) else { return false };
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    match kind {
        "c" => rest.split_once('_').map_or_else(|| digits(rest), |(n, _)| digits(n)),
        "v" | "e" | "l" => digits(rest),
        "m" => digits(rest.strip_prefix('f').unwrap_or(rest)),
        _ => false,
    }
}

impl SpikeReader {
    /// Returns the access of an instruction.
    fn access(
        registers: &[Option<u64>; 32],
        instruction: MemoryInstruction,
        results: &Results,
    ) -> Result<Option<HartAccess>, String> {
        let size = match instruction {
            MemoryInstruction::Fence { .. } => return Ok(None),
            MemoryInstruction::Load { size, .. }
            | MemoryInstruction::Store { size, .. }
            | MemoryInstruction::LoadReserved { size, .. }
            | MemoryInstruction::StoreConditional { size, .. }
            | MemoryInstruction::Update { size, .. } => size,
        };
        let count = |what: &str, expected: usize, found: usize| {
            if expected == found {
                return Ok(());
            }
            Err(format!("the instruction has {expected} {what}, the line has {found}"))
        };
        let (loads, stores) = match instruction {
            MemoryInstruction::Load { .. } | MemoryInstruction::LoadReserved { .. } => (1, 0),
            MemoryInstruction::Store { .. } => (0, 1),
            MemoryInstruction::StoreConditional { .. } => (0, results.stores.len().min(1)),
            // A comparison that fails stores nothing.
            MemoryInstruction::Update { operation: AtomicOperation::CompareAndSwap, .. } => {
                (1, results.stores.len().min(1))
            }
            _ => (1, 1),
        };
        if !matches!(instruction, MemoryInstruction::StoreConditional { .. }) {
            count("address to load from", loads, results.loads.len())?;
        }
        count("address to store to", stores, results.stores.len())?;
        if let Some(store) = results.stores.iter().find(|s| s.2 != size) {
            return Err(format!(
                "the instruction stores {size} bytes, the value of the line has {} bytes",
                store.2
            ));
        }
        let stored = results.stores.first().map(|s| s.1);
        let Some(address) = results.stores.first().map(|s| s.0).or(results.loads.first().copied())
        else {
            // A store-conditional that fails.
            return Ok(Some(HartAccess { address: 0, loaded: None, stored: None }));
        };
        if results.loads.iter().any(|a| *a != address) {
            return Err("the instruction loads and stores at different addresses".into());
        }
        let loaded = match instruction {
            MemoryInstruction::Load { target, .. }
            | MemoryInstruction::LoadReserved { target, .. }
            | MemoryInstruction::Update { target, .. } => match (target, results.value(target)) {
                (_, Some(value)) => Some(lowest(value, size)),
                (Register::Integer(0), None) => match (instruction, stored) {
                    (MemoryInstruction::Update { operation, operand, .. }, Some(stored)) => {
                        let operand = registers[usize::from(operand & 31)];
                        match (operation, operand) {
                            (AtomicOperation::Add, Some(o)) => {
                                Some(lowest(stored.wrapping_sub(o), size))
                            }
                            (AtomicOperation::Xor, Some(o)) => Some(lowest(stored ^ o, size)),
                            (AtomicOperation::CompareAndSwap, _) => Some(0),
                            _ => None,
                        }
                    }
                    _ => None,
                },
                _ => {
                    return Err(
                        "the line does not have the register that the instruction writes".into()
                    );
                }
            },
            _ => None,
        };
        Ok(Some(HartAccess { address, loaded, stored }))
    }
}

impl LineReader for SpikeReader {
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic> {
        let Some((name, at)) = commit(line.text) else {
            // Disassembly, exceptions, and names of functions have the same beginning.
            let text = line.text.trim_start();
            if text.is_empty() || text.starts_with(['#', '>']) || text.starts_with("core ") {
                return Ok(LineEffect::More);
            }
            return Err(line
                .error(0, "this is not a line of Spike")
                .note("expected `core   0: 3 0x80000010 (0x0005b503) …`"));
        };
        let mut scan = line.scan();
        scan.at = at;
        let counter = scan.word(&['(']);
        counter.number("the program counter")?;
        let bits = if counter.text.len() <= 10 { 32 } else { 64 };
        scan.expect("(")?;
        let word = scan.word(&[')']);
        let code = word.number("an instruction")?;
        scan.expect(")")?;
        let results = Results::read(&mut scan)?;
        let Ok(code) = u32::try_from(code) else {
            return Err(word.error("an instruction has at most 32 bits"));
        };
        let core = self.harts.entry(name.to_string()).or_insert_with(|| {
            let mut registers = [None; 32];
            registers[0] = Some(0);
            Core { hart: Hart::default(), registers }
        });
        let registers = core.registers;
        for (register, value) in &results.registers {
            if let Register::Integer(n @ 1..) = register {
                core.registers[usize::from(*n)] = Some(*value);
            }
        }
        let decoded = decode(code, bits).map_err(|e| {
            word.error(format!("`{}` is {}, which is not supported", word.text, e.0))
        })?;
        let Some(instruction) = decoded else {
            if results.loads.is_empty() && results.stores.is_empty() {
                return Ok(LineEffect::More);
            }
            let message =
                format!("the instruction `{}` accesses memory in an unknown form", word.text);
            return Err(word.error(message));
        };
        let access = Self::access(&registers, instruction, &results).map_err(|e| word.error(e))?;
        let core = self.harts.get_mut(name).expect("added above");
        if let MemoryInstruction::Update { operand, .. } = instruction {
            core.hart.set_operand(registers[usize::from(operand & 31)]);
        }
        core.hart
            .retire(name, instruction, access, line.index(), &mut self.builder)
            .map_err(|e| word.error(e))?;
        Ok(LineEffect::More)
    }
    fn complete(&mut self) -> Vec<Diagnostic> {
        Vec::new()
    }
    fn take(&mut self) -> TraceBuilder {
        let next = trace_builder_without_initial(&self.file, self.builder.number + 1);
        std::mem::replace(&mut self.builder, next)
    }
}
