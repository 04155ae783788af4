//! Checkpoints: a search is written to a stream between two rounds, and resumed from it with the
//! same result.
//!
//! Out: a version, the caller's header (the identity of the search), the search, a checksum. The
//! search has four parts: the layout of the store (tuples of the leaves, pairs of the inner nodes,
//! fields of the root); the states with their annotations, if there are any; the queued states; the
//! counts so far. States are in hash order, so that differences between neighbours are short. The
//! caller handles files, and replaces the previous checkpoint only with a complete one.
//!
//! Cost: 2 to 5 bytes a state, as many again for its annotation, one pass over the store; reading
//! inserts every state again. Invariant: what is read equals what was written, or is rejected: a
//! wrong length, version or checksum never becomes a search.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;

use bincode::{Decode, Encode};

use super::distributed::checkpoint::SymmetryGroup;
use super::store::{Child, Store, StoreLayout};
use super::table::{Growth, Insert, Payload, TableSizes};
use mu_base::{Diagnostic, Stage, narrow};

/// First bytes of a checkpoint.
const MAGIC: [u8; 8] = *b"muckpt\r\n";
/// Version of the format.
const VERSION: u32 = 5;
/// Limit on the length of a section; longer lengths are rejected as damaged.
const MOST_SECTION: usize = u32::MAX as usize;

/// The caller's part of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CheckpointHeader {
    /// Fingerprint of the search: model, parameters, options that change its states.
    pub fingerprint: String,
    /// The values of the model's slots, table by table in the order of their numbers.
    pub values: Vec<Vec<String>>,
    /// Names of the constituents of annotations, by number; see [`AnnotationTable::names`].
    pub names: Vec<Vec<String>>,
}

impl CheckpointHeader {
    /// Reads a header alone.
    pub fn read(input: &mut dyn Read) -> Result<Self, Diagnostic> {
        header(input).map_err(unread)
    }
}

/// Meaning of the numbers of a search's annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationTable {
    /// Constituents of annotations as text. A run reads these before it begins, so that all its
    /// searches number them alike.
    pub names: Vec<Vec<String>>,
    /// Structure of the annotations, by number, in the annotator's own format.
    pub records: Vec<u64>,
}

/// Counts of a search so far.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SearchCounts {
    pub transitions: u64,
    pub deadlocks: u64,
    pub levels: u64,
    pub frontier_bytes: u64,
    pub initial: u64,
    /// Sum over expanded states of (orbit size - 1).
    pub surplus: u64,
    /// The group of symmetries: states are representatives under this group only.
    pub symmetries: SymmetryGroup,
    /// True if an annotation reached an expanded state.
    pub backward: bool,
}

/// View of a search between two rounds, for writing.
pub struct CheckpointImage<'s> {
    pub(crate) store: &'s Store,
    pub(crate) todo: Vec<&'s [u64]>,
    pub(crate) next: Vec<&'s [u64]>,
    pub(crate) counts: SearchCounts,
    pub(crate) annotations: Option<AnnotationTable>,
}

/// A search that was read from a checkpoint.
pub struct RestoredSearch {
    pub(crate) store: Store,
    pub(crate) todo: Vec<u64>,
    pub(crate) next: Vec<u64>,
    pub(crate) counts: SearchCounts,
    /// [`AnnotationTable::records`], if the states are annotated.
    pub(crate) records: Option<Vec<u64>>,
}

/// Writes the checkpoints of a search.
pub trait CheckpointWriter: Sync {
    /// True if a checkpoint is due. Polled a few times a second.
    fn due(&self) -> bool;
    /// Writes a checkpoint; the previous one may be deleted when this one is complete.
    fn keep(&self, image: &CheckpointImage) -> Result<(), Diagnostic>;
    /// Reports that annotations cannot be written. The search continues if this returns `Ok`.
    ///
    /// # Errors
    /// Ends the search.
    fn miss(&self, error: &Diagnostic) -> Result<(), Diagnostic> {
        Err(error.clone())
    }
}

impl CheckpointImage<'_> {
    /// States stored.
    pub fn states(&self) -> u64 {
        self.store.table.len()
    }
    /// Returns the constituents of its annotations.
    pub fn names(&self) -> &[Vec<String>] {
        self.annotations.as_ref().map_or(&[], |a| &a.names)
    }
    /// Writes the search.
    pub fn write(&self, header: &CheckpointHeader, out: &mut dyn Write) -> Result<(), Diagnostic> {
        let mut out = ChecksumStream::new(out);
        self.body(header, &mut out)
            .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write a checkpoint: {e}")))
    }
    fn body(
        &self,
        header: &CheckpointHeader,
        out: &mut ChecksumStream<&mut dyn Write>,
    ) -> std::io::Result<()> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        put_section(out, header)?;
        let records = self.annotations.as_ref().map(|a| &a.records);
        put_section(out, (self.store.layout(), &self.counts, records))?;
        put(out, self.states())?;
        let mut before = 0u64;
        for (place, key) in self.store.table.entries() {
            put_after(out, &mut before, self.store.table.hash(key))?;
            if records.is_some() {
                let annotation = self.store.table.pair(place).load(Ordering::Relaxed);
                put(out, annotation >> 32)?;
                put(out, annotation & u64::from(u32::MAX))?;
            }
        }
        for list in [&self.todo, &self.next] {
            put(out, list.iter().map(|l| l.len() as u64).sum())?;
            for key in list.iter().flat_map(|l| l.iter()) {
                put(out, *key)?;
            }
        }
        out.finish()
    }
}

/// Reads only the header, so that a checkpoint of another search is rejected early.
fn header(input: &mut dyn Read) -> std::io::Result<CheckpointHeader> {
    let mut magic = [0; 8];
    input.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(bad("this is not a checkpoint"));
    }
    let mut version = [0; 4];
    input.read_exact(&mut version)?;
    let version = u32::from_le_bytes(version);
    if version != VERSION {
        return Err(bad(&format!(
            "a checkpoint of version {version}; this program reads version {VERSION}"
        )));
    }
    section(input)
}

pub(super) fn unread(e: std::io::Error) -> Diagnostic {
    let what = match e.kind() {
        std::io::ErrorKind::UnexpectedEof => "the file ends too early".to_string(),
        _ => e.to_string(),
    };
    Diagnostic::new(Stage::File, format!("cannot read the checkpoint: {what}"))
}

pub(super) fn bad(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_string())
}

pub(super) fn section<T: Decode<()>>(input: &mut dyn Read) -> std::io::Result<T> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST_SECTION as u64 {
        return Err(bad("a section of impossible length"));
    }
    // Read incrementally: a wrong length must not allocate memory beyond the file.
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let (value, used) = bincode::decode_from_slice(
        &bytes,
        bincode::config::standard().with_limit::<MOST_SECTION>(),
    )
    .map_err(|e| bad(&e.to_string()))?;
    if used != bytes.len() { Err(bad("a section with bytes after its end")) } else { Ok(value) }
}

impl RestoredSearch {
    /// Reads a search if the caller accepts its header.
    pub fn read(
        input: &mut dyn Read,
        accept: &mut dyn FnMut(&CheckpointHeader) -> Result<(), Diagnostic>,
    ) -> Result<Self, Diagnostic> {
        let mut input = ChecksumStream::new(input);
        let header = header(&mut input).map_err(unread)?;
        accept(&header)?;
        Self::body(&mut input).map_err(unread)
    }
    fn body(input: &mut ChecksumStream<&mut dyn Read>) -> std::io::Result<Self> {
        let (parts, counts, records): (StoreLayout, SearchCounts, Option<Vec<u64>>) =
            section(input)?;
        let states = get(input)?;
        let payload = if records.is_some() { Payload::Pair } else { Payload::None };
        let mut store = Store::from_layout(parts, states, payload, TableSizes::LARGE)
            .map_err(|what| bad(&what))?;
        let most = (1u64 << store.key_bits()) - 1;
        let mut hash = 0u64;
        for _ in 0..states {
            get_after(input, &mut hash)?;
            if hash > most {
                return Err(bad("a state outside its layout"));
            }
            let place = loop {
                match store.table.insert_hashed(hash) {
                    Insert::New(place) => break place,
                    Insert::Old(_) => return Err(bad("a duplicate state")),
                    Insert::Full => store.table.grow(Growth::default()),
                }
            };
            if let Some(records) = &records {
                let (known, pending) = (get(input)?, get(input)?);
                if known.max(pending) >= records.len() as u64 {
                    return Err(bad("a reference to a missing annotation"));
                }
                store.table.set_payload(place, u128::from(known << 32 | pending));
            }
            store.table.add_len(1);
            if store.table.is_crowded() {
                store.table.grow(Growth::default());
            }
        }
        let mut lists = [Vec::new(), Vec::new()];
        for list in &mut lists {
            for _ in 0..get(input)? {
                let key = get(input)?;
                if key > most || store.table.find(key).is_none() {
                    return Err(bad("a queued state that is not stored"));
                }
                list.push(key);
            }
        }
        input.expect()?;
        if counts.initial > most || store.table.find(counts.initial).is_none() {
            return Err(bad("its initial state is not stored"));
        }
        let [todo, next] = lists;
        Ok(Self { store, todo, next, counts, records })
    }
    /// States stored.
    pub fn states(&self) -> u64 {
        self.store.table.len()
    }
}

/// Writes a number, seven bits a byte, lowest first.
pub(super) fn put(out: &mut dyn Write, mut value: u64) -> std::io::Result<()> {
    let mut bytes = [0u8; 10];
    let mut n = 0;
    while value >= 0x80 {
        bytes[n] = narrow::byte_at(value & 0x7f, 0) | 0x80;
        value >>= 7;
        n += 1;
    }
    // Below 0x80.
    bytes[n] = narrow::byte_at(value, 0);
    out.write_all(&bytes[..=n])
}

pub(super) fn get(input: &mut dyn Read) -> std::io::Result<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        if shift == 63 && byte[0] > 1 {
            break;
        }
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            return Ok(value);
        }
    }
    Err(bad("a number of more than 64 bits"))
}

/// A stream that computes a checksum.
pub(super) struct ChecksumStream<S> {
    inner: S,
    sum: crc32fast::Hasher,
}

impl<S> ChecksumStream<S> {
    pub fn new(inner: S) -> Self {
        Self { inner, sum: crc32fast::Hasher::new() }
    }
}

impl ChecksumStream<&mut dyn Write> {
    /// Writes the checksum of all bytes so far.
    pub fn finish(&mut self) -> std::io::Result<()> {
        let sum = self.sum.clone().finalize();
        self.inner.write_all(&sum.to_le_bytes())?;
        self.inner.flush()
    }
}

impl ChecksumStream<&mut dyn Read> {
    /// Reads the checksum of all bytes so far; the stream must end there.
    pub fn expect(&mut self) -> std::io::Result<()> {
        let sum = self.sum.clone().finalize();
        let mut written = [0; 4];
        self.inner.read_exact(&mut written)?;
        if u32::from_le_bytes(written) != sum {
            return Err(bad("its checksum is wrong"));
        }
        if self.inner.read(&mut [0])? == 0 {
            Ok(())
        } else {
            Err(bad("there are bytes after its end"))
        }
    }
}

/// Writes a section: its length and its content.
pub(super) fn put_section<T: Encode>(out: &mut dyn Write, value: T) -> std::io::Result<()> {
    let bytes = bincode::encode_to_vec(value, bincode::config::standard())
        .map_err(|e| std::io::Error::other(e.to_string()))?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(&bytes)
}

/// Writes a hash as its difference to the previous one, with the sign in the lowest bit.
pub(super) fn put_after(out: &mut dyn Write, before: &mut u64, hash: u64) -> std::io::Result<()> {
    let difference = hash.wrapping_sub(*before) as i64;
    *before = hash;
    put(out, (difference << 1 ^ difference >> 63) as u64)
}

/// Reads a hash written by [`put_after`].
pub(super) fn get_after(input: &mut dyn Read, before: &mut u64) -> std::io::Result<u64> {
    let difference = get(input)?;
    *before = before.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg());
    Ok(*before)
}

impl Write for ChecksumStream<&mut dyn Write> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl Read for ChecksumStream<&mut dyn Read> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }
}

impl StoreLayout {
    /// True if the children of nodes and fields exist and form a tree over all leaves.
    pub(super) fn is_tree(&self) -> bool {
        let mut met = vec![false; self.leaves.len() + self.nodes.len()];
        let mut meet = |child: Child, before: usize| {
            let at = match child {
                Child::Leaf(l) if (l as usize) < self.leaves.len() => l as usize,
                Child::Node(n) if (n as usize) < before => self.leaves.len() + n as usize,
                _ => return false,
            };
            !std::mem::replace(&mut met[at], true)
        };
        let nodes =
            self.nodes.iter().enumerate().all(|(i, n)| n.children.iter().all(|c| meet(*c, i)));
        let fields = self.fields.iter().all(|f| f.width <= 32 && meet(f.child, self.nodes.len()));
        let widths = self.fields.iter().map(|f| f.width).sum::<u32>();
        let offsets = self
            .fields
            .iter()
            .scan(0, |at, f| Some(std::mem::replace(at, *at + f.width)))
            .eq(self.fields.iter().map(|f| f.offset));
        let leaves = self.leaves.iter().all(|l| {
            l.slots.is_empty() && l.rows.len() <= 1
                || l.rows.len().is_multiple_of(l.slots.len().max(1))
        });
        // The one state of a model without slots has a key of no bits.
        let least = u32::from(!self.leaves.is_empty());
        nodes
            && fields
            && offsets
            && leaves
            && (least..=63).contains(&widths)
            && met.iter().all(|m| *m)
    }
}
