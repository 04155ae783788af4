//! Reader of the commands of Whisper (Tenstorrent) under `--mcm`: the reads and writes of a
//! processor as its test bench reports them, with their times.
//!
//! ```text
//! hart=0 time=100 mread 12 0x80001000 8 0x7 0 0 1        tag, address, bytes, value
//! hart=1 time=101 mbinsert 9 0x80001000 4 0x8 0 0        a store enters the merge buffer
//! hart=1 time=140 mbwrite 0x80001000 0x0000000000000008 0x0f   and the buffer is written
//! hart=1 time=150 mbbypass 11 0x80001008 8 0x1 0 0 1     a store without the buffer
//! hart=0 time=160 step 1 12                              the instruction with tag 12 retires
//! ```
//!
//! Tags are numbers of instructions in program order, so operations are sorted by tag. If the log
//! has steps with tags, instructions without one are speculative and omitted. The time of `mbwrite`
//! is the position of its stores in the order of memory. A tag with one load and one store of the
//! same bytes is an update. The log has no instructions: fences, annotations, and pairs of
//! load-reserved and store-conditional are not in it, so the answer *allowed* holds for the
//! accesses alone. Initial values are not in the log. Memory use: all accesses
//! of the log.

use super::lines::{Line, LineEffect, LineReader, Scanner, Word, read_lines};
use super::spike::trace_builder_without_initial;
use super::{ReadOptions, Sink, TraceReader};
use crate::riscv::narrow_byte;
use crate::trace::{Operation, TraceBuilder};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::collections::BTreeMap;
use std::io::BufRead;

/// Commands of Whisper.
pub struct Whisper;

/// Commands that are no accesses to memory by harts.
const IGNORED_COMMANDS: &[&str] = &[
    "step",
    "run",
    "until",
    "peek",
    "poke",
    "reset",
    "quit",
    "end_mcm",
    "mifetch",
    "mievict",
    "mdfetch",
    "mdevict",
    "mdwriteback",
    "mskipreadchk",
    "check_interrupt",
    "translate",
    "nmi",
    "clear_nmi",
    "enter_debug",
    "exit_debug",
    "cancel_div",
    "cancel_lr",
    "dump_memory",
    "pmp",
    "pma",
    "inject_exception",
    "disass",
    "elf",
    "hex",
    "symbols",
    "pagetable",
    "echo",
    "mcm_end",
    "page_table_walk",
    "seip",
    "straps",
];

impl TraceReader for Whisper {
    fn name(&self) -> &'static str {
        "whisper"
    }
    fn summary(&self) -> &'static str {
        "Whisper `--mcm`: `time=100 hart=0 mread 12 0x80001000 8 0x7`, mbinsert, mbwrite"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["whisper"]
    }
    fn recognises(&self, start: &str) -> bool {
        start.lines().take(500).any(|line| {
            line.split_whitespace()
                .find(|w| !w.contains('='))
                .is_some_and(|w| ["mread", "mbinsert", "mbwrite", "mbbypass"].contains(&w))
        })
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        let reader = WhisperReader {
            builder: trace_builder_without_initial(&options.file, 1),
            file: options.file.clone(),
            harts: BTreeMap::new(),
            has_tagged_steps: false,
        };
        read_lines(reader, log, options, sink)
    }
}

/// A load or a store of at most 8 bytes.
#[derive(Clone, Copy, Debug)]
struct AccessPart {
    address: u64,
    size: u8,
    value: u64,
    line: u32,
    /// Time of a store's insertion, and its position in the order of memory.
    inserted: u64,
    commit: Option<u64>,
}

impl AccessPart {
    /// Returns the addresses of its bytes.
    fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.address;
        (0..u64::from(self.size)).map(move |i| first.wrapping_add(i))
    }
}

/// An instruction.
#[derive(Debug, Default)]
struct Instruction {
    loads: Vec<AccessPart>,
    stores: Vec<AccessPart>,
}

#[derive(Debug, Default)]
struct Hart {
    instructions: BTreeMap<u64, Instruction>,
    /// Stores in the merge buffer: tag, and index in its instruction.
    buffer: Vec<(u64, usize)>,
    /// Tags of retired instructions, as ascending ranges.
    retired: Vec<(u64, u64)>,
}

impl Hart {
    fn retire(&mut self, tag: u64) {
        match self.retired.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(tag) => last.1 = tag,
            Some(last) if (last.0..=last.1).contains(&tag) => {}
            _ => self.retired.push((tag, tag)),
        }
    }
    /// Returns the stores in the merge buffer of which all bytes are written at a time, in program
    /// order: tag, and index in the instruction.
    ///
    /// # Errors
    /// A store of which only a part is written: its tag and address.
    fn covered_stores(
        &self,
        time: u64,
        is_written: impl Fn(u64) -> bool,
    ) -> Result<Vec<(u64, usize)>, (u64, u64)> {
        let mut covered = Vec::new();
        let mut buffer = self.buffer.clone();
        buffer.sort_by_key(|b| b.0);
        for (tag, index) in buffer {
            let part = self.instructions[&tag].stores[index];
            let count = part.addresses().filter(|b| is_written(*b)).count();
            if part.inserted == time || count == 0 {
                continue;
            }
            if count != usize::from(part.size) {
                return Err((tag, part.address));
            }
            covered.push((tag, index));
        }
        Ok(covered)
    }
    fn is_retired(&self, tag: u64) -> bool {
        let at = self.retired.partition_point(|r| r.0 <= tag);
        at > 0 && self.retired[at - 1].1 >= tag
    }
}

#[derive(Debug)]
struct WhisperReader {
    file: String,
    builder: TraceBuilder,
    harts: BTreeMap<u64, Hart>,
    /// True if the log has steps with tags.
    has_tagged_steps: bool,
}

/// Splits the bytes of a value, the lowest first. A short value has leading zeros.
fn bytes(word: &Word<'_>) -> Result<Vec<u8>, Diagnostic> {
    let digits = word.text.strip_prefix("0x").unwrap_or(word.text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(word.expected_error("a hexadecimal value"));
    }
    let digit = |b: u8| char::from(b).to_digit(16).map_or(0, |d| narrow_byte(d as usize));
    Ok(digits.as_bytes().rchunks(2).map(|c| c.iter().fold(0, |v, b| v * 16 + digit(*b))).collect())
}

/// Reads a number of bytes and a value with that size; returns the bytes of the value, the lowest
/// first.
fn read_value(scan: &mut Scanner<'_>) -> Result<Vec<u8>, Diagnostic> {
    let size_word = scan.word(&[]);
    let size = size_word.number("a number of bytes")?;
    if size == 0 || size > 4096 {
        return Err(size_word.expected_error("1 to 4096 bytes"));
    }
    let value_word = scan.word(&[]);
    let mut value = if value_word.text.starts_with("0x") {
        bytes(&value_word)?
    } else {
        value_word.number("a value")?.to_le_bytes().to_vec()
    };
    while value.len() as u64 > size && value.last() == Some(&0) {
        value.pop();
    }
    if value.len() as u64 > size {
        return Err(value_word.error(format!("the value needs more than {size} bytes")));
    }
    value.resize(size as usize, 0);
    Ok(value)
}

/// Splits an access into aligned parts of at most 8 bytes, because accesses of vectors have more.
/// Returns the address, size, and value of each part.
fn split_access(address: u64, value: &[u8]) -> Vec<(u64, u8, u64)> {
    let mut parts = Vec::new();
    let mut index = 0;
    while index < value.len() {
        let here = address.wrapping_add(index as u64);
        let left = value.len() - index;
        let width = [8, 4, 2, 1]
            .into_iter()
            .find(|w| *w <= left && (left == *w || here.is_multiple_of(*w as u64)))
            .unwrap_or(1);
        let mut part = [0; 8];
        part[..width].copy_from_slice(&value[index..index + width]);
        parts.push((here, narrow_byte(width), u64::from_le_bytes(part)));
        index += width;
    }
    parts
}

/// The words of a line before the command.
#[derive(Clone, Copy)]
struct Prefix<'a> {
    hart: u64,
    time: Option<Word<'a>>,
}

impl WhisperReader {
    /// Reads `mread`, `mbinsert`, or `mbbypass`: a load or a store of an instruction.
    fn read_access(
        &mut self,
        prefix: Prefix<'_>,
        command: &Word<'_>,
        scan: &mut Scanner<'_>,
    ) -> Result<(), Diagnostic> {
        let line = scan.line.index();
        let tag = scan.word(&[]).number("the tag of an instruction")?;
        let address = scan.word(&[]).number("an address")?;
        let value = read_value(scan)?;
        let is_store = command.text != "mread";
        let inserted = match prefix.time {
            Some(word) => word.number("a time")?,
            None if is_store => return Err(command.error("a store needs `time=N`")),
            None => 0,
        };
        let commit = (command.text == "mbbypass").then_some(inserted);
        let hart = self.harts.entry(prefix.hart).or_default();
        let instruction = hart.instructions.entry(tag).or_default();
        for (address, size, value) in split_access(address, &value) {
            let part = AccessPart { address, size, value, line, inserted, commit };
            if is_store {
                instruction.stores.push(part);
                if command.text == "mbinsert" {
                    hart.buffer.push((tag, instruction.stores.len() - 1));
                }
            } else {
                // A repeated read replaces the earlier one.
                instruction.loads.retain(|l| (l.address, l.size) != (part.address, part.size));
                instruction.loads.push(part);
            }
        }
        Ok(())
    }
    /// Reads `mbwrite`: stores of the merge buffer reach memory.
    fn drain_buffer(
        &mut self,
        prefix: Prefix<'_>,
        command: &Word<'_>,
        scan: &mut Scanner<'_>,
    ) -> Result<(), Diagnostic> {
        let Some(time) = prefix.time else {
            return Err(command.error("a write needs `time=N`"));
        };
        let time = time.number("a time")?;
        let address_word = scan.word(&[]);
        let address = address_word.number("an address")?;
        let value_word = scan.word(&[]);
        let value = bytes(&value_word)?;
        let mask_word = scan.word(&[]);
        let mask: Vec<bool> = if mask_word.text.is_empty() {
            vec![true; value.len()]
        } else {
            bytes(&mask_word)?.iter().flat_map(|b| (0..8).map(move |i| b >> i & 1 == 1)).collect()
        };
        let hart = self.harts.entry(prefix.hart).or_default();
        let is_written = |byte: u64| {
            let index = byte.wrapping_sub(address) as usize;
            index < value.len() && mask.get(index).copied().unwrap_or(false)
        };
        let drained = hart.covered_stores(time, is_written).map_err(|(tag, at)| {
            address_word
                .error(format!("the write covers only a part of the store of tag {tag} at {at:#x}"))
        })?;
        if drained.is_empty() && mask.iter().any(|m| *m) {
            let message = "the write has bytes that no store in the merge buffer covers";
            return Err(address_word.error(message));
        }
        let mut written: AHashMap<u64, u8> = AHashMap::new();
        for (tag, index) in &drained {
            let part = hart.instructions[tag].stores[*index];
            written.extend(part.addresses().zip(part.value.to_le_bytes()));
        }
        if let Some((byte, stored)) = written
            .iter()
            .filter(|(a, b)| value[a.wrapping_sub(address) as usize] != **b)
            .min_by_key(|w| *w.0)
        {
            return Err(value_word.error(format!(
                "the write has another value at {byte:#x} than the last store to it, {stored:#04x}"
            )));
        }
        for (tag, index) in &drained {
            if let Some(instruction) = hart.instructions.get_mut(tag) {
                instruction.stores[*index].commit = Some(time);
            }
        }
        hart.buffer.retain(|b| !drained.contains(b));
        Ok(())
    }
}

impl LineReader for WhisperReader {
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic> {
        let mut scan = line.scan();
        let (mut hart, mut time) = (0, None);
        let command = loop {
            let word = scan.word(&[]);
            match word.text.split_once('=') {
                Some(("hart", value)) => {
                    hart = Word::of(line, word.at + 5, value).number("the number of a hart")?;
                }
                Some(("time", value)) => time = Some(Word::of(line, word.at + 5, value)),
                Some(_) => return Err(word.expected_error("`hart=N`, `time=N`, or a command")),
                None => break word,
            }
        };
        match command.text {
            "" => return Ok(LineEffect::More),
            text if text.starts_with('#') => return Ok(LineEffect::More),
            "mread" | "mbinsert" | "mbbypass" => {
                self.read_access(Prefix { hart, time }, &command, &mut scan)?
            }
            "mbwrite" => self.drain_buffer(Prefix { hart, time }, &command, &mut scan)?,
            "step" => {
                let _count = scan.word(&[]);
                let tag = scan.word(&[]);
                if !tag.text.is_empty() && !tag.text.starts_with('#') {
                    let tag = tag.number("the tag of an instruction")?;
                    self.has_tagged_steps = true;
                    self.harts.entry(hart).or_default().retire(tag);
                }
            }
            text if IGNORED_COMMANDS.contains(&text) => {}
            _ => {
                return Err(
                    command.expected_error("a command of Whisper: mread, mbinsert, mbwrite, …")
                );
            }
        }
        Ok(LineEffect::More)
    }
    fn complete(&mut self) -> Vec<Diagnostic> {
        for (name, mut hart) in std::mem::take(&mut self.harts) {
            let thread = self.builder.thread(&name.to_string());
            hart.retired.sort_unstable();
            for (tag, instruction) in std::mem::take(&mut hart.instructions) {
                if self.has_tagged_steps && !hart.is_retired(tag) {
                    continue;
                }
                let builder = &mut self.builder;
                if let ([load], [store]) = (&instruction.loads[..], &instruction.stores[..])
                    && (load.address, load.size) == (store.address, store.size)
                {
                    let location = builder.address(load.address);
                    let update = Operation {
                        size: load.size,
                        commit: store.commit,
                        ..Operation::update(location, load.value, store.value, load.line)
                    };
                    builder.push(thread, update);
                    continue;
                }
                for load in &instruction.loads {
                    let location = builder.address(load.address);
                    let load = Operation {
                        size: load.size,
                        ..Operation::load(location, load.value, load.line)
                    };
                    builder.push(thread, load);
                }
                for store in &instruction.stores {
                    let location = builder.address(store.address);
                    let store = Operation {
                        size: store.size,
                        commit: store.commit,
                        ..Operation::store(location, store.value, store.line)
                    };
                    builder.push(thread, store);
                }
            }
        }
        Vec::new()
    }
    fn take(&mut self) -> TraceBuilder {
        let next = trace_builder_without_initial(&self.file, self.builder.number + 1);
        std::mem::replace(&mut self.builder, next)
    }
}
