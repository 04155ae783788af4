//! Reader of retired instructions in the signals of the RISC-V formal interface (RVFI of
//! riscv-formal): one instruction a line.
//!
//! ```text
//! hart=0 rvfi_order=7 rvfi_insn=0x00a5b023 rvfi_mem_addr=0x80002000 rvfi_mem_wmask=0xff
//! rvfi_mem_wdata=0x1
//! ```
//!
//! The same fields may be the columns of a table with a head, or keys of JSON lines. Lines as
//! QuickCheckVEngine prints them (`Trap: False, … MA: 0x…, MWD: 0x…, MWM: 0b…`) are accepted too:
//! they have no mask of loads, so the value of a load is that of its target register (`RWD`).
//! Numbers without `0x` or `0b` are decimal. The masks give the accessed bytes, relative to
//! `rvfi_mem_addr`; the instruction gives annotations, fences, and pairs of load-reserved and
//! store-conditional. Instructions that trap (`rvfi_trap`) access nothing. The fields `hart`,
//! `rvfi_valid`, and `rvfi_order` are optional; the order of a hart must grow. Initial values are
//! not in the log. The binary packets of RVFI-DII (`rvfi_packets`) become such lines.

use super::fields::{self, Field};
use super::hart::{Hart, HartAccess};
use super::lines::{Line, LineEffect, LineReader, Word, read_lines};
use super::rvfi_packets::{Packets, has_packets, seems_to_have_packets};
use super::spike::trace_builder_without_initial;
use super::{ReadOptions, Sink, TraceReader};
use crate::riscv::{MemoryInstruction, Register, UnknownAccess, decode, narrow_byte};
use crate::trace::TraceBuilder;
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::BufRead;

/// Logs of the signals of RVFI.
pub struct Rvfi;

impl TraceReader for Rvfi {
    fn name(&self) -> &'static str {
        "rvfi"
    }
    fn summary(&self) -> &'static str {
        "RVFI: `hart=0 rvfi_insn=0x00a5b023 rvfi_mem_addr=0x80002000 rvfi_mem_wmask=0xff …`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["rvfi"]
    }
    fn recognises(&self, start: &str) -> bool {
        seems_to_have_packets(start)
            || start.lines().take(50).any(|l| {
                l.contains("rvfi_") && l.contains("mem_")
                    || l.contains("PCWD:") && l.contains("Trap:")
            })
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        let reader = RvfiReader {
            builder: trace_builder_without_initial(&options.file, 1),
            file: options.file.clone(),
            head: None,
            harts: AHashMap::new(),
        };
        match log.fill_buf() {
            Ok(start) if has_packets(start) => {
                read_lines(reader, &mut Packets::new(log), options, sink)
            }
            _ => read_lines(reader, log, options, sink),
        }
    }
}

/// Signals that decide the operation of an instruction.
const SIGNALS: [&str; 12] = [
    "valid",
    "order",
    "insn",
    "trap",
    "halt",
    "rd_addr",
    "rd_wdata",
    "mem_addr",
    "mem_rmask",
    "mem_wmask",
    "mem_rdata",
    "mem_wdata",
];
const VALID: usize = 0;
const ORDER: usize = 1;
const INSN: usize = 2;
const TRAP: usize = 3;
const RD_WDATA: usize = 6;
const MEM_ADDR: usize = 7;
const MEM_RMASK: usize = 8;
const MEM_WMASK: usize = 9;
const MEM_RDATA: usize = 10;
const MEM_WDATA: usize = 11;

/// The names of these signals in the lines of QuickCheckVEngine.
const SHORT: [(&str, usize); 9] = [
    ("O", ORDER),
    ("I", INSN),
    ("Trap", TRAP),
    ("RWD", RD_WDATA),
    ("MA", MEM_ADDR),
    ("MRM", MEM_RMASK),
    ("MWM", MEM_WMASK),
    ("MRD", MEM_RDATA),
    ("MWD", MEM_WDATA),
];

/// Names of the field with the hart.
const HART: [&str; 4] = ["hart", "core", "thread", "hartid"];

/// State of a hart.
#[derive(Debug, Default)]
struct State {
    hart: Hart,
    order: Option<u64>,
}

#[derive(Debug)]
struct RvfiReader {
    file: String,
    builder: TraceBuilder,
    /// The separator and the names of a table.
    head: Option<(char, Vec<String>)>,
    harts: AHashMap<String, State>,
}

/// The signals of a line.
struct Record<'a> {
    line: Line<'a>,
    hart: Option<Word<'a>>,
    signals: [Option<Word<'a>>; SIGNALS.len()],
    /// True for a line of QuickCheckVEngine.
    is_short: bool,
}

impl<'a> Record<'a> {
    fn new(line: Line<'a>) -> Self {
        Self { line, hart: None, signals: [None; SIGNALS.len()], is_short: false }
    }
    /// Sets a field by its name; other signals are ignored.
    fn set(&mut self, name: &str, (key, value): Field<'a>) -> Result<(), Diagnostic> {
        if HART.contains(&name) {
            self.hart = Some(value);
            return Ok(());
        }
        let signal = name.strip_prefix("rvfi_").unwrap_or(name);
        match SIGNALS.iter().position(|s| *s == signal) {
            Some(i) if self.signals[i].is_some() => {
                Err(key.error(format!("the signal `{name}` occurs twice")))
            }
            Some(i) => {
                self.signals[i] = Some(value);
                Ok(())
            }
            None if signal != name || ["time", "cycle", "channel"].contains(&name) => Ok(()),
            None => Err(key
                .error(format!("`{name}` is no signal of RVFI"))
                .note("expected `hart`, `rvfi_insn`, `rvfi_mem_addr`, `rvfi_mem_rmask`, …")),
        }
    }
    fn number(&self, signal: usize) -> Result<Option<u64>, Diagnostic> {
        let Some(word) = self.signals[signal].filter(|w| !w.text.is_empty()) else {
            return Ok(None);
        };
        match word.text {
            "True" | "true" => Ok(Some(1)),
            "False" | "false" => Ok(Some(0)),
            _ => word.number(&format!("a number in `rvfi_{}`", SIGNALS[signal])).map(Some),
        }
    }
    /// Returns the accessed bytes (offset and size) of a mask, and their value.
    fn bytes(&self, mask: usize, data: usize) -> Result<Option<(u64, u8, u64)>, Diagnostic> {
        let Some(bits) = self.number(mask)?.filter(|m| *m != 0) else { return Ok(None) };
        let word = self.signals[mask].unwrap_or(Word::of(self.line, 0, self.line.text));
        let (offset, size) = (bits.trailing_zeros(), bits.count_ones());
        if bits > 0xff || (bits >> offset) + 1 != 1 << size || !size.is_power_of_two() {
            let message = format!("the mask `{}` is not 1, 2, 4, or 8 bytes in a row", word.text);
            return Err(word.error(message));
        }
        let Some(value) = self.number(data)? else {
            return Err(word.error(format!("there is no value in `rvfi_{}`", SIGNALS[data])));
        };
        Ok(Some((u64::from(offset), narrow_byte(size as usize), value >> (8 * offset))))
    }
    /// Returns the access of a load in a line without the signals of loads: its value is that of
    /// the target register. `None` for all other instructions.
    fn short_load(
        &self,
        instruction: &MemoryInstruction,
        written: Option<(u64, u8, u64)>,
    ) -> Result<Option<HartAccess>, Diagnostic> {
        let (MemoryInstruction::Load { target, .. }
        | MemoryInstruction::LoadReserved { target, .. }
        | MemoryInstruction::Update { target, .. }) = instruction
        else {
            return Ok(None);
        };
        if !self.is_short || self.signals[MEM_RMASK].is_some() {
            return Ok(None);
        }
        let Some(base) = self.number(MEM_ADDR)? else { return Ok(None) };
        let loaded = match target {
            Register::Integer(1..) => self.number(RD_WDATA)?,
            Register::Integer(0) | Register::Float(_) => None,
        };
        let address = base.wrapping_add(written.map_or(0, |w| w.0));
        Ok(Some(HartAccess { address, loaded, stored: written.map(|w| w.2) }))
    }
}

/// Returns the bytes of an access; `None` for a fence.
fn size_of(instruction: MemoryInstruction) -> Option<u8> {
    match instruction {
        MemoryInstruction::Fence { .. } => None,
        MemoryInstruction::Load { size, .. }
        | MemoryInstruction::Store { size, .. }
        | MemoryInstruction::LoadReserved { size, .. }
        | MemoryInstruction::StoreConditional { size, .. }
        | MemoryInstruction::Update { size, .. } => Some(size),
    }
}

/// Decodes an instruction that accesses a number of bytes, if the log has it: an access of 4 bytes
/// by a compressed instruction of 8 bytes in RV64 is one of RV32, a load or store of a float.
fn decode_for(
    code: u32,
    width: u8,
    bytes: Option<u8>,
) -> Result<Option<MemoryInstruction>, UnknownAccess> {
    let decoded = decode(code, width)?;
    match (decoded.and_then(size_of), bytes) {
        (Some(8), Some(4)) => decode(code, 32),
        _ => Ok(decoded),
    }
}

impl RvfiReader {
    /// Returns the signals of a line; `None` if it has none.
    fn record<'a>(&mut self, line: Line<'a>) -> Result<Option<Record<'a>>, Diagnostic> {
        let mut record = Record::new(line);
        let text = line.text.trim();
        if text.starts_with('{') {
            for field in fields::object(line)? {
                record.set(field.0.text, field)?;
            }
        } else if let Some((separator, names)) = &self.head {
            let words = fields::row(line, *separator)?;
            if words.len() != names.len() {
                let message = format!(
                    "the head has {} columns, this row has {} fields",
                    names.len(),
                    words.len()
                );
                return Err(line.error(0, message));
            }
            for (name, word) in names.iter().zip(words) {
                record.set(name, (word, word))?;
            }
        } else if text.contains('=') {
            for field in fields::assignments(line) {
                if field.0.text.is_empty() {
                    return Err(field.1.expected_error("`name=value`"));
                }
                record.set(field.0.text, field)?;
            }
        } else if text.contains("rvfi_") {
            let separator = fields::separator(line.text);
            let names = fields::row(line, separator)?;
            let mut check = Record::new(line);
            for name in &names {
                check.set(name.text, (*name, *name))?;
            }
            for needed in [INSN, MEM_ADDR] {
                if check.signals[needed].is_none() {
                    let message = format!("the head has no column `rvfi_{}`", SIGNALS[needed]);
                    return Err(line.error(0, message));
                }
            }
            self.head = Some((separator, names.iter().map(|n| n.text.to_string()).collect()));
            return Ok(None);
        } else {
            record.is_short = true;
            let mut scan = line.scan();
            while !scan.is_done() {
                let word = scan.word(&[',']);
                scan.take(",");
                let name = word.text.strip_suffix(':').unwrap_or("");
                if let Some((_, signal)) = SHORT.iter().find(|s| s.0 == name) {
                    record.signals[*signal] = Some(scan.word(&[',']));
                    scan.take(",");
                }
            }
            if record.signals[INSN].is_none() {
                return Err(line.error(0, "the line has no signals of RVFI"));
            }
        }
        Ok(Some(record))
    }
    fn retire(&mut self, record: &Record<'_>) -> Result<(), Diagnostic> {
        let line = record.line;
        if record.number(VALID)? == Some(0) {
            return Ok(());
        }
        let name = record.hart.filter(|w| !w.text.is_empty()).map_or("0", |w| w.text);
        let order = record.number(ORDER)?;
        let state = self.harts.entry(name.to_string()).or_default();
        if let (Some(last), Some(now)) = (state.order, order)
            && now <= last
        {
            let word = record.signals[ORDER].unwrap_or(Word::of(line, 0, ""));
            let message = format!("the order of hart {name} does not grow: {now} after {last}");
            return Err(word.error(message));
        }
        state.order = order.or(state.order);
        if record.number(TRAP)?.unwrap_or(0) != 0 {
            return Ok(());
        }
        let Some(word) = record.signals[INSN] else {
            return Err(line.error(0, "the line has no `rvfi_insn`"));
        };
        let Some(code) = record.number(INSN)? else {
            return Err(word.expected_error("an instruction"));
        };
        let Ok(code) = u32::try_from(code) else {
            return Err(word.error("an instruction has at most 32 bits"));
        };
        // A line of QuickCheckVEngine has no mask that gives the size of a load.
        let width = if record.is_short && line.text.contains("XL:32") { 32 } else { 64 };
        let read = record.bytes(MEM_RMASK, MEM_RDATA)?;
        let written = record.bytes(MEM_WMASK, MEM_WDATA)?;
        let bytes = read.or(written).map(|access| access.1);
        let decoded = decode_for(code, width, bytes).map_err(|e| {
            word.error(format!("`{}` is {}, which is not supported", word.text, e.0))
        })?;
        let Some(instruction) = decoded else {
            return match read.or(written) {
                None => Ok(()),
                Some(_) => Err(word.error(format!(
                    "the instruction `{}` accesses memory in an unknown form",
                    word.text
                ))),
            };
        };
        let size = size_of(instruction);
        let mut access = None;
        if let (Some(size), Some((offset, bytes, _))) = (size, read.or(written)) {
            let other = read.zip(written).is_some_and(|(r, w)| (r.0, r.1) != (w.0, w.1));
            if bytes != size || other {
                let message =
                    format!("the instruction accesses {size} bytes, the masks have {bytes} bytes");
                return Err(word.error(message));
            }
            let base = record.number(MEM_ADDR)?;
            let Some(base) = base else { return Err(line.error(0, "there is no `rvfi_mem_addr`")) };
            access = Some(HartAccess {
                address: base.wrapping_add(offset),
                loaded: read.map(|r| r.2),
                stored: written.map(|w| w.2),
            });
        }
        access = record.short_load(&instruction, written)?.or(access);
        if access.is_none() && size.is_some() {
            let is_conditional = matches!(instruction, MemoryInstruction::StoreConditional { .. });
            let omitted =
                matches!(instruction, MemoryInstruction::Load { target: Register::Integer(0), .. });
            if omitted {
                return Ok(());
            }
            if is_conditional {
                access = Some(HartAccess { address: 0, loaded: None, stored: None });
            }
        }
        let state = self.harts.entry(name.to_string()).or_default();
        state
            .hart
            .retire(name, instruction, access, line.index(), &mut self.builder)
            .map_err(|e| word.error(e))
    }
}

impl LineReader for RvfiReader {
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic> {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(LineEffect::More);
        }
        if text == "halt token" || text == "check" {
            return Ok(LineEffect::Ends);
        }
        if let Some(record) = self.record(line)? {
            self.retire(&record)?;
        }
        Ok(LineEffect::More)
    }
    fn complete(&mut self) -> Vec<Diagnostic> {
        self.harts.clear();
        Vec::new()
    }
    fn take(&mut self) -> TraceBuilder {
        let next = trace_builder_without_initial(&self.file, self.builder.number + 1);
        std::mem::replace(&mut self.builder, next)
    }
}
