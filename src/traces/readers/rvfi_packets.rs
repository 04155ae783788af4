//! RVFI in binary form: the execution packets of RVFI-DII, as TestRIG exchanges them, turned into
//! lines of text for the reader of signals.
//!
//! Source: the document RVFI-DII of TestRIG (version 1), and the model of RISC-V in Sail (version
//! 2). Numbers are little-endian. A packet of version 1 has 88 bytes:
//!
//! ```text
//! 0 order  8 pc_rdata  16 pc_wdata  24 insn  32 rs1_data  40 rs2_data  48 rd_wdata  56 mem_addr
//! 64 mem_rdata  72 mem_wdata  80 mem_rmask  81 mem_wmask  82 rs1_addr  83 rs2_addr  84 rd_addr
//! 85 trap  86 halt  87 intr
//! ```
//!
//! A packet of version 2 begins with `trace-v2` and its whole size (8 bytes), and goes on with
//! order (16), insn (24), trap (32), halt (33), intr (34), mode, ixl, valid (37), pc_rdata (40),
//! pc_wdata (48), and a set of parts (56). Bit 0 of the set: `int-data`, rd_wdata, rs1_rdata,
//! rs2_rdata, three register numbers, and padding to 40 bytes. Bit 1: `mem-data`, rdata and wdata
//! (32 bytes each), rmask and wmask (4 bytes each), addr: 88 bytes. Other parts are skipped.
//! `version=` and 8 bytes, the answer to the choice of a version, are skipped. A packet with `halt`
//! ends the trace, as in TestRIG. Packets have no hart.
//!
//! Invariant: one packet is one line, so the line of an error is the number of its packet. Memory:
//! one packet.

use std::io::{BufRead, Error, ErrorKind, Read};

/// Bytes of a packet of version 1.
const FIRST: usize = 88;
/// Bytes of a packet of version 2 without its parts.
const SECOND: usize = 64;
/// Beginnings of packets.
const TRACE: &[u8; 8] = b"trace-v2";
const VERSION: &[u8; 8] = b"version=";
const INTEGER: &[u8; 8] = b"int-data";
const MEMORY: &[u8; 8] = b"mem-data";
/// Sizes of the parts of registers and of memory.
const INTEGER_SIZE: usize = 40;
const MEMORY_SIZE: usize = 88;
/// Limit on the bytes of a packet of version 2.
const MAX_SIZE: u64 = 1 << 16;

/// True if a log has packets, given its first bytes: the upper half of an instruction of version 1
/// is zero, and text has no zero byte.
pub(super) fn has_packets(start: &[u8]) -> bool {
    let is_first = || start.len() >= FIRST && start[28..32] == [0; 4];
    start.starts_with(TRACE) || start.starts_with(VERSION) || is_first()
}

/// True if a log seems to have packets, given its first bytes as text, in which other bytes than
/// those of UTF-8 are replaced.
pub(super) fn seems_to_have_packets(start: &str) -> bool {
    let zeros = start.find("\0\0\0\0").is_some_and(|at| at < FIRST);
    start.starts_with("trace-v2") || start.starts_with("version=") || zeros
}

/// Packets as lines of text.
pub(super) struct Packets<'l> {
    log: &'l mut dyn BufRead,
    line: Vec<u8>,
    /// First byte of `line` that is not consumed.
    at: usize,
}

impl<'l> Packets<'l> {
    pub(super) fn new(log: &'l mut dyn BufRead) -> Self {
        Packets { log, line: Vec::new(), at: 0 }
    }
    /// Reads a packet, and returns its line. `None` at the end of the log.
    fn packet(&mut self) -> Result<Option<String>, Error> {
        let mut head = [0; 8];
        match self.log.read(&mut head)? {
            0 => return Ok(None),
            n => exactly(self.log, &mut head[n..])?,
        }
        match &head {
            VERSION => {
                exactly(self.log, &mut [0; 8])?;
                Ok(Some(String::new()))
            }
            TRACE => self.second().map(Some),
            _ => {
                let mut packet = [0; FIRST];
                packet[..8].copy_from_slice(&head);
                exactly(self.log, &mut packet[8..])?;
                Ok(Some(first(&packet)))
            }
        }
    }
    /// Reads a packet of version 2 after its first 8 bytes.
    fn second(&mut self) -> Result<String, Error> {
        let mut packet = vec![0; SECOND];
        exactly(self.log, &mut packet[8..])?;
        let size = number(&packet, 8);
        if !(SECOND as u64..=MAX_SIZE).contains(&size) {
            return Err(wrong(format!(
                "a packet of {size} bytes, expected {SECOND} to {MAX_SIZE}"
            )));
        }
        packet.resize(usize::try_from(size).map_err(|_| wrong("a packet that is too long"))?, 0);
        exactly(self.log, &mut packet[SECOND..])?;
        let parts = number(&packet, 56);
        let mut signals = Signals {
            order: number(&packet, 16),
            insn: number(&packet, 24),
            trap: packet[32],
            halt: packet[33],
            ..Signals::default()
        };
        let mut at = SECOND;
        for (bit, name, size) in [(1, INTEGER, INTEGER_SIZE), (2, MEMORY, MEMORY_SIZE)] {
            if parts & bit == 0 {
                continue;
            }
            if packet.get(at..at + 8) != Some(&name[..]) || packet.len() < at + size {
                let name = String::from_utf8_lossy(name);
                return Err(wrong(format!("a packet without its part `{name}`")));
            }
            if bit == 1 {
                signals.rd_wdata = number(&packet, at + 8);
            } else {
                // Values are 32 bytes wide; the masks say which of them count.
                signals.rdata = number(&packet, at + 8);
                signals.wdata = number(&packet, at + 40);
                signals.rmask = u64::from(word(&packet, at + 72));
                signals.wmask = u64::from(word(&packet, at + 76));
                signals.addr = number(&packet, at + 80);
            }
            at += size;
        }
        Ok(signals.line())
    }
}

/// Signals of a retired instruction.
#[derive(Default)]
struct Signals {
    order: u64,
    insn: u64,
    rd_wdata: u64,
    addr: u64,
    rdata: u64,
    wdata: u64,
    rmask: u64,
    wmask: u64,
    trap: u8,
    halt: u8,
}

impl Signals {
    fn line(&self) -> String {
        // The packet that answers the end of a test has no instruction.
        if self.halt != 0 && self.insn == 0 {
            return "check".to_string();
        }
        format!(
            "rvfi_order={} rvfi_insn={:#x} rvfi_trap={} rvfi_rd_wdata={:#x} rvfi_mem_addr={:#x} \
             rvfi_mem_rmask={:#x} rvfi_mem_rdata={:#x} rvfi_mem_wmask={:#x} rvfi_mem_wdata={:#x}",
            self.order,
            self.insn,
            self.trap,
            self.rd_wdata,
            self.addr,
            self.rmask,
            self.rdata,
            self.wmask,
            self.wdata
        )
    }
}

/// Returns the line of a packet of version 1.
fn first(packet: &[u8; FIRST]) -> String {
    let signals = Signals {
        order: number(packet, 0),
        insn: number(packet, 24),
        rd_wdata: number(packet, 48),
        addr: number(packet, 56),
        rdata: number(packet, 64),
        wdata: number(packet, 72),
        rmask: u64::from(packet[80]),
        wmask: u64::from(packet[81]),
        trap: packet[85],
        halt: packet[86],
    };
    signals.line()
}

/// Returns the number of 8 bytes at a position.
fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Returns the number of 4 bytes at a position.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn exactly(log: &mut dyn BufRead, into: &mut [u8]) -> Result<(), Error> {
    log.read_exact(into).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => wrong("the last packet is cut off"),
        _ => e,
    })
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, message.into())
}

impl Read for Packets<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let part = self.fill_buf()?;
        let length = part.len().min(into.len());
        into[..length].copy_from_slice(&part[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Packets<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            if let Some(line) = self.packet()? {
                self.line.extend_from_slice(line.as_bytes());
                self.line.push(b'\n');
            }
        }
        Ok(&self.line[self.at..])
    }
    fn consume(&mut self, amount: usize) {
        self.at = (self.at + amount).min(self.line.len());
    }
}
