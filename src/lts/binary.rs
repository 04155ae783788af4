//! Compact binary format of transition systems (`.blts`).
//!
//! | part | content |
//! |---|---|
//! | 8 bytes | `mu-blts\n` |
//! | 4 bytes | the version, little-endian |
//! | numbers | states, transitions, the initial state, labels except `tau` |
//! | texts | of the labels from 1 on: length and bytes |
//! | rows | for each state its number of transitions, then label and target distance of each |
//! | 4 bytes | CRC-32 of all preceding bytes, little-endian |
//!
//! Numbers are bytes of seven bits, least first, all but the last with the eighth bit set. A
//! distance is relative to the previous target (for the first transition: to the state itself) and
//! zigzag-coded, because the targets of a state are close together.
//!
//! Cost: one pass, 2 to 4 bytes a transition. Invariant: reading returns exactly the written
//! system, including the order of transitions and the numbers of labels, or an error; memory is
//! never allocated by a number in the file alone.

use std::io::{BufReader, BufWriter, Read, Write};

use super::{Labels, Lts};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage, narrow};

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"mu-blts\n";
/// Version of the format.
const VERSION: u32 = 1;

fn refuse(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::File, message)
}

/// Stream that computes a checksum of its bytes.
struct ChecksumStream<T> {
    inner: T,
    sum: crc32fast::Hasher,
    /// Bytes not in the checksum yet: checksums of short pieces are slow.
    pending: Vec<u8>,
}

const PIECE: usize = 1 << 16;

impl<T> ChecksumStream<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: crc32fast::Hasher::new(), pending: Vec::with_capacity(PIECE) }
    }
    fn count(&mut self, byte: u8) {
        self.pending.push(byte);
        if self.pending.len() == PIECE {
            self.sum.update(&self.pending);
            self.pending.clear();
        }
    }
    fn finish(mut self) -> (u32, T) {
        self.sum.update(&self.pending);
        (self.sum.finalize(), self.inner)
    }
}

impl ChecksumStream<BufWriter<Box<dyn Write + '_>>> {
    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        bytes.iter().for_each(|&b| self.count(b));
        self.inner.write_all(bytes)
    }
    fn number(&mut self, mut value: u64) -> std::io::Result<()> {
        let (mut bytes, mut n) = ([0; 10], 0);
        while value > 127 {
            bytes[n] = narrow::byte_at(value & 127, 0) | 128;
            (value, n) = (value >> 7, n + 1);
        }
        // Below 128.
        bytes[n] = narrow::byte_at(value, 0);
        self.bytes(&bytes[..=n])
    }
}

impl ChecksumStream<BufReader<Box<dyn Read + '_>>> {
    fn byte(&mut self) -> Result<u8, Diagnostic> {
        let mut byte = [0];
        self.inner.read_exact(&mut byte).map_err(unread)?;
        self.count(byte[0]);
        Ok(byte[0])
    }
    fn any_number(&mut self) -> Result<u64, Diagnostic> {
        let mut value = 0;
        for i in 0..10 {
            let byte = self.byte()?;
            if i == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 127) << (7 * i);
            if byte & 128 == 0 {
                return Ok(value);
            }
        }
        Err(refuse("the file is damaged: a number has more than 64 bits"))
    }
    fn number_below(&mut self, bound: u64, what: &str) -> Result<u64, Diagnostic> {
        let n = self.any_number()?;
        if n < bound {
            Ok(n)
        } else {
            Err(refuse(format!("the file is damaged: {what} is {n}, and not below {bound}")))
        }
    }
}

fn unread(e: std::io::Error) -> Diagnostic {
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => refuse("the file is damaged: it is cut off"),
        _ => refuse(format!("cannot read: {e}")),
    }
}

/// Writes a transition system.
pub fn write(lts: &Lts, output: impl Write) -> Result<(), Diagnostic> {
    let output: Box<dyn Write + '_> = Box::new(output);
    let mut out = ChecksumStream::new(BufWriter::with_capacity(1 << 20, output));
    body(lts, &mut out)
        .and_then(|()| {
            let (sum, mut out) = out.finish();
            out.write_all(&sum.to_le_bytes())?;
            out.flush()
        })
        .map_err(|e| refuse(format!("cannot write: {e}")))
}

fn body(
    lts: &Lts,
    out: &mut ChecksumStream<BufWriter<Box<dyn Write + '_>>>,
) -> std::io::Result<()> {
    out.bytes(&MAGIC)?;
    out.bytes(&VERSION.to_le_bytes())?;
    out.number(lts.state_count() as u64)?;
    out.number(lts.transition_count() as u64)?;
    out.number(u64::from(lts.initial.number()))?;
    out.number(lts.table.texts.len() as u64 - 1)?;
    for text in &lts.table.texts[1..] {
        out.number(text.len() as u64)?;
        out.bytes(text.as_bytes())?;
    }
    for s in 0..lts.state_count() {
        out.number(lts.offsets[s + 1] - lts.offsets[s])?;
        let mut last = s as i64;
        for (label, target) in lts.successors(StateId::new(s)) {
            out.number(u64::from(label.number()))?;
            let distance = i64::from(target.number()) - last;
            out.number(if distance < 0 {
                (-distance as u64) * 2 - 1
            } else {
                distance as u64 * 2
            })?;
            last = i64::from(target.number());
        }
    }
    Ok(())
}

/// Reads a transition system.
pub fn read(input: impl Read) -> Result<Lts, Diagnostic> {
    read_any(Box::new(input))
}

fn read_any(input: Box<dyn Read + '_>) -> Result<Lts, Diagnostic> {
    let mut input = ChecksumStream::new(BufReader::with_capacity(1 << 20, input));
    for expected in MAGIC {
        if input.byte()? != expected {
            return Err(refuse(
                "this is not a binary transition system: its magic number is missing",
            ));
        }
    }
    let mut version = [0; 4];
    for b in &mut version {
        *b = input.byte()?;
    }
    match u32::from_le_bytes(version) {
        VERSION => {}
        other => {
            return Err(refuse(format!(
                "the file has version {other} of the format; this program reads version {VERSION}"
            )));
        }
    }
    let states = input.number_below(u64::from(u32::MAX), "the number of states")?;
    let transitions = input.any_number()?;
    let initial = input.number_below(states, "the initial state")?;
    let labels = input.number_below(u64::from(u32::MAX), "the number of labels")?;
    let mut table = Labels::default();
    for _ in 0..labels {
        let length = input.any_number()?;
        let mut text = Vec::new();
        for _ in 0..length {
            text.push(input.byte()?);
        }
        table.texts.push(
            String::from_utf8(text)
                .map_err(|_| refuse("the file is damaged: a label is not UTF-8"))?,
        );
    }
    let mut lts = Lts {
        initial: StateId::new(initial as usize),
        offsets: vec![0],
        labels: Vec::new(),
        targets: Vec::new(),
        table,
    };
    for s in 0..states {
        let degree = input.number_below(
            transitions - lts.targets.len() as u64 + 1,
            "the number of transitions of a state",
        )?;
        let mut last = s as i64;
        for _ in 0..degree {
            let label = input.number_below(labels + 1, "a label")?;
            let code = input.number_below(1 << 33, "a distance")? as i64;
            last += if code % 2 == 1 { -(code / 2 + 1) } else { code / 2 };
            if last < 0 || last >= states as i64 {
                return Err(refuse(format!(
                    "the file is damaged: a transition leads to state {last} of {states}"
                )));
            }
            lts.labels.push(LabelId::new(label as usize));
            lts.targets.push(StateId::new(last as usize));
        }
        lts.offsets.push(lts.targets.len() as u64);
    }
    if lts.targets.len() as u64 != transitions {
        return Err(refuse(format!(
            "the file is damaged: it has {} transitions of {transitions}",
            lts.targets.len()
        )));
    }
    let (sum, mut rest) = input.finish();
    let mut end = Vec::new();
    rest.by_ref().take(5).read_to_end(&mut end).map_err(unread)?;
    if end != sum.to_le_bytes() {
        return Err(refuse("the file is damaged: its checksum does not match"));
    }
    Ok(lts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    fn random(seed: u64) -> Lts {
        let mut random = Random::new(seed);
        let states = 1 + random.below(*random.clone().choose(&[3, 50, 1000]));
        let mut table = Labels::default();
        (0..random.below(200)).for_each(|i| table.texts.push(format!("a({i}, \"ü\")\n")));
        let edges: Vec<_> = (0..random.below(3 * states))
            .map(|_| {
                (
                    StateId::new(random.below(states)),
                    LabelId::new(random.below(table.texts.len())),
                    StateId::new(random.below(states)),
                )
            })
            .collect();
        Lts::from_edges(StateId::new(random.below(states)), states, &edges, table)
    }

    #[test]
    fn systems_round_trip() {
        for seed in 0..300 {
            let lts = random(seed);
            let mut bytes = Vec::new();
            write(&lts, &mut bytes).unwrap();
            assert_eq!(read(&bytes[..]).unwrap(), lts, "seed {seed}");
        }
    }

    #[test]
    fn damage_is_rejected() {
        for seed in 0..40 {
            let mut bytes = Vec::new();
            write(&random(seed), &mut bytes).unwrap();
            let mut random = Random::new(seed);
            for _ in 0..200 {
                let mut bad = bytes.clone();
                match random.below(3) {
                    0 => bad.truncate(random.below(bytes.len())),
                    1 => bad.push(random.below(256) as u8),
                    _ => {
                        let at = random.below(bad.len());
                        bad[at] ^= 1 << random.below(8);
                    }
                }
                assert!(read(&bad[..]).is_err(), "seed {seed}");
            }
        }
        let mut next = MAGIC.to_vec();
        next.extend([2, 0, 0, 0]);
        assert!(read(&next[..]).unwrap_err().message.contains("version 2"));
    }
}
