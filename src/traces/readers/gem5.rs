//! Reader of gem5's traces of executed instructions (`--debug-flags=Exec`), where they carry
//! values.
//!
//! ```text
//! 1000: system.cpu0: A0 T0 : 0x80000010 @main+8 : sd a0, 0(a1) : MemWrite :  D=0x0000000000000001
//! A=0x80002000 1500: system.cpu1: A0 T0 : 0x80000020 @main+4 : ld a2, 0(a1) : MemRead :
//! D=0x0000000000000001 A=0x80002000
//! ```
//!
//! `D` is the value and `A` the address; the processor is the thread. The sizes of RISC-V accesses
//! follow from the mnemonic; accesses of other architectures have no size, so those to one address
//! should have one size. Fences, acquires, and releases are known by their mnemonics; the micro-ops
//! `ldstl` and `stul` of x86 are one update. gem5 does not print what an atomic memory operation or
//! a store-conditional stores: these are rejected. Lines without an access are skipped. Initial
//! values are not in the log.

use super::lines::{Line, LineEffect, LineReader, Word, read_lines};
use super::records::fence_named;
use super::spike::trace_builder_without_initial;
use super::{ReadOptions, Sink, TraceReader};
use crate::trace::{Annotations, Fence, Operation, OperationIndex, OperationKind, TraceBuilder};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::BufRead;

/// Traces of gem5.
pub struct Gem5;

impl TraceReader for Gem5 {
    fn name(&self) -> &'static str {
        "gem5"
    }
    fn summary(&self) -> &'static str {
        "gem5 `--debug-flags=Exec`: `1000: system.cpu0: A0 T0 : 0x80 @f : sd a0, 0(a1) : MemWrite : D=0x1 A=0x80`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["gem5"]
    }
    fn recognises(&self, start: &str) -> bool {
        start.lines().take(2000).any(|line| {
            line.split_once(':').is_some_and(|(tick, rest)| {
                tick.trim().parse::<u64>().is_ok()
                    && rest.contains(" : ")
                    && rest.split_whitespace().any(|w| w.starts_with('T') && w.len() < 4)
            })
        })
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        let reader = Gem5Reader {
            builder: trace_builder_without_initial(&options.file, 1),
            file: options.file.clone(),
            locked: AHashMap::new(),
        };
        read_lines(reader, log, options, sink)
    }
}

#[derive(Debug)]
struct Gem5Reader {
    file: String,
    builder: TraceBuilder,
    /// Locked loads of threads, with their locations.
    locked: AHashMap<u32, (OperationIndex, u32)>,
}

/// Returns the parts of a line between ` : `, with their places.
fn parts<'a>(line: Line<'a>) -> Vec<Word<'a>> {
    let mut words = Vec::new();
    let mut at = 0;
    for part in line.text.split(" : ") {
        let start = at + part.len() - part.trim_start().len();
        words.push(Word::of(line, start, part.trim()));
        at += part.len() + 3;
    }
    words
}

/// Returns the size of an access by the mnemonic of RISC-V; 0 if it is unknown. Operands in
/// brackets are those of other architectures: the `ld` of x86 has any size.
fn size_of(instruction: &str) -> u8 {
    if instruction.contains('[') {
        return 0;
    }
    let mnemonic = instruction.split_whitespace().next().unwrap_or("");
    let name = mnemonic.strip_prefix("c_").or(mnemonic.strip_prefix("c.")).unwrap_or(mnemonic);
    match name.strip_suffix("sp").unwrap_or(name) {
        "lb" | "lbu" | "sb" => 1,
        "lh" | "lhu" | "sh" | "flh" | "fsh" => 2,
        "lw" | "lwu" | "sw" | "flw" | "fsw" => 4,
        "ld" | "sd" | "fld" | "fsd" => 8,
        _ => 0,
    }
}

/// True for an atomic operation of which a log does not have all values. Mnemonics of RISC-V are
/// complete, or parts up to `_` or `.`; those of Arm have the ordering and the size behind them.
fn is_refused(mnemonic: &str) -> bool {
    const RISC_V: [&str; 2] = ["lr", "sc"];
    const ARM: [&str; 7] = ["stxr", "stlxr", "stxp", "stlxp", "swp", "cas", "rcw"];
    const ARM_OPERATIONS: [&str; 8] = ["add", "clr", "eor", "set", "smax", "smin", "umax", "umin"];
    let is_operation = |rest: &str| ARM_OPERATIONS.iter().any(|name| rest.starts_with(name));
    RISC_V.contains(&mnemonic.split(['_', '.']).next().unwrap_or(""))
        || mnemonic.starts_with("amo")
        || ARM.iter().any(|m| mnemonic.starts_with(m))
        || mnemonic.strip_prefix("ld").or(mnemonic.strip_prefix("st")).is_some_and(is_operation)
}

/// Returns the fence of a barrier of Arm. A number is the field `CRm` of its encoding, which is
/// `ld` or `st` by its last two bits, else a full barrier: reserved numbers are that too.
fn barrier(text: &str) -> Option<Fence> {
    let Some((mnemonic, number)) = text.split_once('#') else { return fence_named(text) };
    let (digits, base) = number.strip_prefix("0x").map_or((number, 10), |d| (d, 16));
    let kind = match u8::from_str_radix(digits, base).ok().filter(|n| *n < 16)? % 4 {
        1 => "ld",
        2 => "st",
        _ => "sy",
    };
    fence_named(&format!("{mnemonic} {kind}"))
}

/// Returns the fence of an instruction; `None` if it is none. Error: an unknown kind of a barrier
/// of Arm.
fn fence_of(code: Word<'_>) -> Result<Option<Fence>, Diagnostic> {
    let text = code.text;
    Ok(match text.split_whitespace().next().unwrap_or("") {
        "fence" if text == "fence" => Some(Fence::FULL),
        "fence" | "fence.tso" | "mfence" | "sfence" | "lfence" => fence_named(text),
        "dmb" | "dsb" => Some(barrier(text).ok_or_else(|| {
            code.error(format!("`{text}` is no barrier of Arm"))
                .note("kinds: sy, ld, st, and these after ish, osh and nsh")
        })?),
        _ => None,
    })
}

impl Gem5Reader {
    /// Returns the thread of the second part: `system.cpu0: A0 T0`.
    fn thread(&mut self, head: &Word<'_>) -> Option<u32> {
        let (_, rest) = head.text.split_once(':')?;
        let mut words = rest.split_whitespace();
        let processor = words.next()?.trim_end_matches(':');
        let number = words.next_back().filter(|w| w.starts_with('T') && *w != "T0");
        Some(match number {
            Some(number) => self.builder.thread(&format!("{processor}.{number}")),
            None => self.builder.thread(processor),
        })
    }
    fn access(
        &mut self,
        (words, class): (&[Word<'_>], usize),
        line: Line<'_>,
    ) -> Result<(), Diagnostic> {
        let stores = words[class].text.contains("Write");
        let code = words[class - 1];
        let mnemonic = code.text.split_whitespace().next().unwrap_or("");
        if is_refused(mnemonic) {
            return Err(code
                .error(format!("`{mnemonic}`: gem5 does not print all values of this access"))
                .note("use the commit log of the program on Spike, or a log of one's own"));
        }
        let data = words.get(class + 1).copied();
        let field = |name: &str| {
            let data = data?;
            let found = data.text.split_whitespace().find(|w| w.starts_with(name))?;
            let at = data.at + (found.as_ptr() as usize - data.text.as_ptr() as usize);
            Some(Word::of(line, at + name.len(), &found[name.len()..]))
        };
        let (Some(value), Some(address)) = (field("D="), field("A=")) else {
            return Err(words[class]
                .error("the access has no value (`D=`) or no address (`A=`)")
                .note("the flag `Exec` of `--debug-flags` prints both"));
        };
        let size = size_of(code.text);
        let value = super::hart::lowest(
            value.hexadecimal("a value of at most 64 bits")?,
            if size == 0 { 8 } else { size },
        );
        let address = address.hexadecimal("an address")?;
        let Some(thread) = self.thread(&words[0]) else {
            return Err(words[0].expected_error("a time and a processor"));
        };
        let location = self.builder.address(address);
        let locked = self.locked.remove(&thread);
        if mnemonic == "stul" {
            let Some((load, _)) = locked.filter(|l| l.1 == location) else {
                return Err(code.error("`stul` without a `ldstl` of its address before it"));
            };
            self.builder.change(load, |o| {
                o.kind = OperationKind::Update;
                o.stored = value;
            });
            return Ok(());
        }
        let mut operation = if stores {
            Operation::store(location, value, line.index())
        } else {
            Operation::load(location, value, line.index())
        };
        operation.size = size;
        operation.mark = match mnemonic {
            m if m.starts_with("ldap") => Annotations::WEAK_ACQUIRE,
            m if m.starts_with("lda") => Annotations::ACQUIRE,
            m if m.starts_with("stl") && m != "stl" => Annotations::RELEASE,
            _ => Annotations::PLAIN,
        };
        let added = self.builder.push(thread, operation);
        if mnemonic == "ldstl" {
            self.locked.insert(thread, (added, location));
        }
        Ok(())
    }
}

impl LineReader for Gem5Reader {
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic> {
        let words = parts(line);
        let class = words.iter().position(|w| {
            ["MemRead", "MemWrite", "FloatMemRead", "FloatMemWrite"]
                .contains(&w.text.trim_end_matches(" :"))
        });
        let is_instruction = words[0]
            .text
            .split_once(':')
            .is_some_and(|(tick, _)| tick.trim().parse::<u64>().is_ok());
        match class {
            Some(class) if is_instruction && class > 1 => self.access((&words, class), line)?,
            Some(class) => {
                return Err(words[class]
                    .error("the line has an access, but no processor or no instruction"));
            }
            None if is_instruction => {
                let mut fence = None;
                for word in &words[1..] {
                    fence = fence.or(fence_of(*word)?);
                }
                if let Some(fence) = fence.filter(|f| !f.is_empty())
                    && let Some(thread) = self.thread(&words[0])
                {
                    self.builder.push(thread, Operation::fence(fence, line.index()));
                }
            }
            None if line.text.contains("MemRead") || line.text.contains("MemWrite") => {
                return Err(line.error(0, "the line has an access that cannot be read"));
            }
            None => {}
        }
        Ok(LineEffect::More)
    }
    fn complete(&mut self) -> Vec<Diagnostic> {
        self.locked.clear();
        Vec::new()
    }
    fn take(&mut self) -> TraceBuilder {
        let next = trace_builder_without_initial(&self.file, self.builder.number + 1);
        std::mem::replace(&mut self.builder, next)
    }
}
