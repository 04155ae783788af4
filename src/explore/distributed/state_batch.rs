//! Encoder and decoder of batches of states: a state costs few bytes, and tuples and values are
//! sent once.
//!
//! A state is the numbers of its leaves ([`crate::store`]). Tables differ between processes, so
//! each direction between two processes has its own numbering: a new item gets the next number and
//! is written in full once. A tuple of a leaf is written as its values, a value as portable bytes
//! ([`mu_model::Portable`]). Each state in a batch marks the leaves that differ from the previous
//! state, and contains only these:
//!
//! ```text
//! batch  = count  state*
//! state  = a bit for each leaf that differs, a tuple for each of them, the annotation if any
//! tuple  = number + 1 | 0 value*          value = number + 1 | 0 length bytes
//! ```
//!
//! Cost: linear in the bytes; 4 bytes for each number. Invariants: a malformed batch is rejected
//! with an error; batches are read in the order in which they were written.

use super::annotations::PortableAnnotator;
use crate::delta::differing_positions;
use crate::store::Store;
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage};
use mu_model::Portable;

/// Bytes after which a batch is full.
const FULL: usize = 1 << 15;

/// Encoder of the batches for one other process.
pub(crate) struct Sender {
    states: u64,
    bytes: Vec<u8>,
    /// Leaves of the last state in the batch.
    last: Vec<u32>,
    /// By leaf and local number: the number that the receiver knows, plus one.
    tuples: Vec<Vec<u32>>,
    tuple_counts: Vec<u32>,
    /// By slot and local value: the number that the receiver knows, plus one.
    values: Vec<Vec<u32>>,
    value_counts: Vec<u32>,
    /// Values written in full so far.
    pub values_sent: u64,
}

fn assign_number(table: &mut Vec<u32>, count: &mut u32, number: u32) -> (u32, bool) {
    let at = number as usize;
    if table.len() <= at {
        table.resize(at + 1, 0);
    }
    let new = table[at] == 0;
    if new {
        *count += 1;
        table[at] = *count;
    }
    (table[at], new)
}

impl Sender {
    pub fn new(leaves: usize, slots: usize) -> Self {
        Self {
            states: 0,
            bytes: Vec::new(),
            last: vec![0; leaves],
            tuples: vec![Vec::new(); leaves],
            tuple_counts: vec![0; leaves],
            values: vec![Vec::new(); slots],
            value_counts: vec![0; slots],
            values_sent: 0,
        }
    }

    /// Adds a state. Returns the batch if it is full.
    pub fn add(
        &mut self,
        store: &Store,
        portable: &dyn Portable,
        state: &[u32],
        load: Option<(&mut dyn PortableAnnotator, usize, u32)>,
    ) -> Result<Option<Vec<u8>>, Diagnostic> {
        let (first, mask) = (self.states == 0, self.bytes.len());
        for (old, new) in self.last.chunks_mut(8).zip(state.chunks(8)) {
            self.bytes.push(if first {
                u8::MAX >> (8 - new.len())
            } else {
                differing_positions(new, old)
            });
            old.copy_from_slice(new);
        }
        for at in 0..state.len().div_ceil(8) {
            let mut bits = self.bytes[mask + at];
            while bits != 0 {
                let leaf = at * 8 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let (sent, new) = assign_number(
                    &mut self.tuples[leaf],
                    &mut self.tuple_counts[leaf],
                    state[leaf],
                );
                if new {
                    self.tuple(store, portable, leaf, state[leaf])?
                } else {
                    put(&mut self.bytes, sent.into())
                }
            }
        }
        if let Some((carrier, channel, annotation)) = load {
            carrier.export(channel, annotation, &mut self.bytes)?;
        }
        self.states += 1;
        Ok(if self.bytes.len() >= FULL { self.finish() } else { None })
    }

    /// Writes a tuple in full.
    #[cold]
    fn tuple(
        &mut self,
        store: &Store,
        portable: &dyn Portable,
        leaf: usize,
        number: u32,
    ) -> Result<(), Diagnostic> {
        self.bytes.push(0);
        let mut row = Vec::new();
        store.leaves[leaf].table.read(number, &mut row);
        for (&slot, &value) in store.leaves[leaf].slots.iter().zip(&row) {
            let (sent, new) = assign_number(
                &mut self.values[slot as usize],
                &mut self.value_counts[slot as usize],
                value,
            );
            if !new {
                put(&mut self.bytes, sent.into());
                continue;
            }
            let bytes = portable.export(slot, value)?;
            self.bytes.push(0);
            put(&mut self.bytes, bytes.len() as u64);
            self.bytes.extend(bytes);
            self.values_sent += 1;
        }
        Ok(())
    }

    /// Returns the batch so far; `None` if it is empty.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        if self.states == 0 {
            return None;
        }
        let mut batch = Vec::with_capacity(self.bytes.len() + 3);
        put(&mut batch, self.states);
        batch.append(&mut self.bytes);
        self.states = 0;
        Some(batch)
    }
}

/// Decoder of the batches from one other process.
#[derive(Default)]
pub(crate) struct Receiver {
    /// The last state decoded from the open batch.
    pub state: Vec<u32>,
    /// By leaf and the sender's number, from 1: the local number.
    tuples: Vec<Vec<u32>>,
    /// By slot and the sender's number, from 1: the local value.
    values: Vec<Vec<u32>>,
}

/// A batch that is being read.
pub(crate) struct BatchReader<'p> {
    bytes: &'p [u8],
    left: u64,
    first: bool,
}

fn malformed_error() -> Diagnostic {
    Diagnostic::new(Stage::File, "a malformed batch of states")
}

impl Receiver {
    pub fn new(leaves: usize, slots: usize) -> Self {
        Self {
            state: vec![0; leaves],
            tuples: vec![Vec::new(); leaves],
            values: vec![Vec::new(); slots],
        }
    }

    /// Opens a batch.
    ///
    /// # Errors
    /// The batch is malformed.
    pub fn open<'p>(&mut self, batch: &'p [u8]) -> Result<BatchReader<'p>, Diagnostic> {
        let mut bytes = batch;
        let count = take(&mut bytes).ok_or_else(malformed_error)?;
        Ok(BatchReader { bytes, left: count, first: true })
    }

    /// Decodes the next state of a batch: puts its local leaf indices into `state` and returns its
    /// annotation. `None` at the end of the batch.
    ///
    /// # Errors
    /// The batch is malformed; errors of the model.
    pub fn next(
        &mut self,
        store: &Store,
        portable: &dyn Portable,
        batch: &mut BatchReader<'_>,
        carrier: Option<(&mut dyn PortableAnnotator, usize)>,
    ) -> Result<Option<u32>, Diagnostic> {
        let BatchReader { bytes, left, first } = batch;
        if *left == 0 {
            return if bytes.is_empty() { Ok(None) } else { Err(malformed_error()) };
        }
        let leaves = store.leaves.len();
        let (mask, rest) =
            bytes.split_at_checked(leaves.div_ceil(8)).ok_or_else(malformed_error)?;
        *bytes = rest;
        // The first state contains all leaves; no bit is set beyond the last leaf.
        let given = mask.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
        if *first && given != leaves
            || !leaves.is_multiple_of(8)
                && mask.last().is_some_and(|byte| byte >> (leaves % 8) != 0)
        {
            return Err(malformed_error());
        }
        for (at, &byte) in mask.iter().enumerate() {
            let mut byte = byte;
            while byte != 0 {
                let leaf = at * 8 + byte.trailing_zeros() as usize;
                byte &= byte - 1;
                self.state[leaf] = self.tuple(store, portable, leaf, bytes)?;
            }
        }
        (*left, *first) = (*left - 1, false);
        match carrier {
            Some((carrier, channel)) => carrier.import(channel, bytes).map(Some),
            None => Ok(Some(0)),
        }
    }

    fn tuple(
        &mut self,
        store: &Store,
        portable: &dyn Portable,
        leaf: usize,
        bytes: &mut &[u8],
    ) -> Result<u32, Diagnostic> {
        let known =
            |table: &[u32], n: u64| table.get(usize::try_from(n).ok()?.checked_sub(1)?).copied();
        let n = take(bytes).ok_or_else(malformed_error)?;
        if n != 0 {
            return known(&self.tuples[leaf], n).ok_or_else(malformed_error);
        }
        let mut row = Vec::with_capacity(store.leaves[leaf].slots.len());
        for &slot in &store.leaves[leaf].slots {
            let values = &mut self.values[slot as usize];
            row.push(match take(bytes).ok_or_else(malformed_error)? {
                0 => {
                    let length = take(bytes)
                        .and_then(|n| usize::try_from(n).ok())
                        .ok_or_else(malformed_error)?;
                    let (value, rest) =
                        bytes.split_at_checked(length).ok_or_else(malformed_error)?;
                    *bytes = rest;
                    let value = portable.import(slot, value)?;
                    values.push(value);
                    value
                }
                n => known(values, n).ok_or_else(malformed_error)?,
            });
        }
        let number = store.leaves[leaf].table.intern(&row);
        self.tuples[leaf].push(number);
        Ok(number)
    }
}
