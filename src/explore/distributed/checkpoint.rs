//! Checkpoints of a distributed search: each process writes its partition to a stream, and any
//! number of processes read all of them.
//!
//! Out: a version, a [`Stamp`] (search, checkpoint number, process), the values as portable bytes
//! ([`mu_model::Portable`]), the layout of the store, the states in hash order, the queued states
//! level by level, the deadlocks, a checksum. In: such streams. A process takes from each stream
//! the states that it owns, so the next run may have another number of processes. The stream uses
//! the writer's numbers of values and tuples; the reader renumbers them.
//!
//! Cost: 2 to 5 bytes a state and one pass over the store to write. Reading passes over the stream
//! twice, first for its checksum, and repacks every state; a process that reads other partitions
//! gets their tuples too. Invariants: what is read equals what was written, or is rejected. Each
//! state is in one partition, and is either expanded and counted or queued. An inconsistent
//! partition is not written.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;

use bincode::{Decode, Encode};

use super::partition::{Partition, Tally};
use super::presearch::LeafLayout;
use crate::checkpoint::{
    ChecksumStream, bad, get, get_after, put, put_after, put_section, section, unread,
};
use crate::queue::Queue;
use crate::store::{Store, StoreLayout};
use crate::symmetry::Symmetries;
use crate::table::{Growth, Insert, Payload};
use mu_base::narrow;
use mu_base::{Diagnostic, Stage, Stop};

/// First bytes of a partition file.
const MAGIC: [u8; 8] = *b"mushare\n";
/// Version of the format.
const VERSION: u32 = 6;

/// Identity of a partition file.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Stamp {
    /// Fingerprint of the search: model, parameters, options that change its states.
    pub fingerprint: String,
    /// Random number of the run that wrote it: files of two runs never form one checkpoint.
    pub run: u64,
    /// Number of the checkpoint, ascending over all resumed runs.
    pub number: u64,
    /// The process that wrote it.
    pub process: u32,
    /// Number of processes.
    pub processes: u32,
    /// The symmetries in use.
    pub symmetries: SymmetryGroup,
    /// The leaf layout, if one was chosen.
    pub leaves: Option<LeafLayout>,
}

/// A group of symmetries, by its generators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SymmetryGroup {
    /// Numbers of the candidates, ascending.
    pub candidates: Vec<u32>,
    /// Number of elements, including the identity.
    pub order: u64,
}

impl SymmetryGroup {
    /// Returns the group of the symmetries in use.
    pub fn of(symmetries: Option<&Symmetries>) -> Self {
        let candidates: BTreeSet<u32> = symmetries
            .iter()
            .flat_map(|s| s.words())
            .flatten()
            .map(|c| narrow::index(*c))
            .collect();
        Self {
            candidates: candidates.into_iter().collect(),
            order: symmetries.map_or(1, Symmetries::order) as u64,
        }
    }
    /// Returns the candidates of this group that `other` lacks.
    fn candidates_missing_in(&self, other: &SymmetryGroup) -> Vec<usize> {
        self.candidates
            .iter()
            .filter(|c| !other.candidates.contains(c))
            .map(|c| *c as usize)
            .collect()
    }
    /// Checks that this group, of a checkpoint, is that of the resumed search. Symmetries that the
    /// earlier search did not use are refuted here. Groups of equal order may differ.
    ///
    /// # Errors
    /// The groups differ. If the error is that of refuted symmetries, the search is repeated
    /// without them.
    pub fn expect(&self, symmetries: Option<&Symmetries>) -> Result<(), Diagnostic> {
        let own = Self::of(symmetries);
        if own == *self {
            return Ok(());
        }
        match (symmetries, own.candidates_missing_in(self)) {
            (Some(symmetries), more) if !more.is_empty() => {
                symmetries.fail(&more);
                Err(symmetries.refute())
            }
            _ => Err(Diagnostic::new(
                Stage::File,
                "the checkpoint is of a search with other symmetries",
            )
            .note(format!(
                "that one had {}, this one has {}; the identity counts",
                self.order, own.order
            ))),
        }
    }
}

impl Stamp {
    /// Reads a stamp alone.
    ///
    /// # Errors
    /// The stream is no partition file of this version.
    pub fn read(input: &mut dyn Read) -> Result<Self, Diagnostic> {
        stamp(input).map_err(unread)
    }
    /// True if both files belong to one checkpoint.
    pub fn is_same_checkpoint(&self, other: &Stamp) -> bool {
        Stamp { process: other.process, ..self.clone() } == *other
    }
}

fn stamp(input: &mut dyn Read) -> std::io::Result<Stamp> {
    let (mut magic, mut version) = ([0; 8], [0; 4]);
    input.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(bad("this is not a checkpoint of a distributed search"));
    }
    input.read_exact(&mut version)?;
    match u32::from_le_bytes(version) {
        VERSION => section(input),
        other => Err(bad(&format!(
            "this checkpoint has version {other}; this program reads version {VERSION}"
        ))),
    }
}

/// A partition without its states.
#[derive(Encode, Decode)]
struct Basis {
    /// By slot: the values as bytes; tuples refer to positions in this list.
    values: Vec<Vec<Vec<u8>>>,
    parts: StoreLayout,
    transitions: u64,
    deadlocks: u64,
    surplus: u64,
    levels: u64,
    sent: u64,
    sent_bytes: u64,
    values_sent: u64,
    /// `None`: states have no annotations. Otherwise each state is followed by its known and its
    /// pending annotation; true if some annotation reached an expanded state.
    annotated: Option<bool>,
}

/// Verifies the checksum of a stream before any of its content is used.
///
/// # Errors
/// The stream is damaged or cannot be read.
pub fn expect_sound(input: &mut dyn Read) -> Result<(), Diagnostic> {
    let mut hasher = crc32fast::Hasher::new();
    // The checksum is in the last four bytes.
    let (mut held, mut buffer) = (Vec::with_capacity(1 << 17), vec![0; 1 << 16]);
    loop {
        match input.read(&mut buffer).map_err(unread)? {
            0 => break,
            n => held.extend_from_slice(&buffer[..n]),
        }
        let sure = held.len().saturating_sub(4);
        hasher.update(&held[..sure]);
        held.drain(..sure);
    }
    let sum = <[u8; 4]>::try_from(&held[..]).map(u32::from_le_bytes);
    if sum.is_ok_and(|s| s == hasher.finalize()) {
        Ok(())
    } else {
        Err(unread(bad("its checksum is wrong")))
    }
}

impl Partition<'_> {
    /// Writes the partition of this process. Call it between two levels, or after the end of a
    /// search when all batches have arrived.
    ///
    /// # Errors
    /// The partition is inconsistent; the stream has an error.
    pub fn write(&mut self, stamp: &Stamp, out: &mut dyn Write) -> Result<(), Diagnostic> {
        if !self.is_consistent() {
            return Err(Diagnostic::internal(
                "an inconsistent partition must not be written to a checkpoint",
            ));
        }
        self.put_back()?;
        let basis = self.basis()?;
        let mut out = ChecksumStream::new(out);
        self.body(stamp, basis, &mut out)
            .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write a checkpoint: {e}")))
    }

    fn basis(&self) -> Result<Basis, Diagnostic> {
        let mut parts = self.store.layout();
        let mut values = vec![Vec::new(); self.model.slots().len()];
        for leaf in &mut parts.leaves {
            let width = leaf.slots.len();
            for (at, &slot) in leaf.slots.iter().enumerate() {
                let column = || leaf.rows.iter().skip(at).step_by(width);
                let occurring: BTreeSet<u32> = column().copied().collect();
                values[slot as usize] = occurring
                    .iter()
                    .map(|v| self.portable.export(slot, *v))
                    .collect::<Result<_, _>>()?;
                let most = occurring.last().map_or(0, |v| *v as usize + 1);
                let mut numbers = vec![0; most];
                occurring.iter().zip(0..).for_each(|(v, n)| numbers[*v as usize] = n);
                leaf.rows
                    .iter_mut()
                    .skip(at)
                    .step_by(width)
                    .for_each(|v| *v = numbers[*v as usize]);
            }
        }
        let Tally { transitions, deadlocks, levels, sent, sent_bytes, values_sent, .. } =
            self.tally();
        let annotated = self.annotations.as_ref().map(|c| c.backward);
        Ok(Basis {
            values,
            parts,
            transitions,
            deadlocks,
            surplus: self.surplus,
            levels,
            sent,
            sent_bytes,
            values_sent,
            annotated,
        })
    }

    fn body(
        &mut self,
        stamp: &Stamp,
        basis: Basis,
        out: &mut ChecksumStream<&mut dyn Write>,
    ) -> std::io::Result<()> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        put_section(out, stamp)?;
        put_section(out, basis)?;
        put(out, self.store.table.len())?;
        let mut before = 0;
        let mut loads = self.annotations.as_mut().map(|c| {
            c.carrier.open(self.processes);
            (&mut c.carrier, Vec::new())
        });
        for (place, key) in self.store.table.entries() {
            put_after(out, &mut before, self.store.table.hash(key))?;
            if let Some((carrier, bytes)) = &mut loads {
                bytes.clear();
                let there = self.store.table.pair(place).load(Ordering::Relaxed);
                for element in [narrow::high(there), narrow::low(there)] {
                    carrier.export(self.processes, element, bytes).map_err(|e| bad(&e.message))?;
                }
                put(out, bytes.len() as u64)?;
                out.write_all(bytes)?;
            }
        }
        let now = (!self.now.is_empty()).then_some((&self.level, &self.now));
        let queues: Vec<(&u64, &Queue)> = now.into_iter().chain(&self.ahead).collect();
        put(out, queues.len() as u64)?;
        for (level, keys) in queues {
            put(out, *level)?;
            put(out, keys.len() as u64)?;
            keys.iter().try_for_each(|key| put(out, *key))?;
        }
        put(out, self.dead.len() as u64)?;
        for (key, orbit) in &self.dead {
            put(out, *key)?;
            put(out, *orbit)?;
        }
        out.finish()
    }

    /// Reads the states of this process from a partition file. `counted`: add its counts to this
    /// process; exactly one process must do so. The caller has accepted the stamp and verified the
    /// checksum.
    ///
    /// # Errors
    /// The file is malformed, or of another model; the memory limit; errors of the model.
    pub fn read(&mut self, input: &mut dyn Read, counted: bool) -> Result<(), Diagnostic> {
        let whole = std::mem::replace(&mut self.whole, false);
        let mut input = ChecksumStream::new(input);
        let stamp = stamp(&mut input).map_err(unread)?;
        let foreign_states = stamp.processes as usize != self.processes;
        let basis: Basis = section(&mut input).map_err(unread)?;
        let Basis {
            values,
            parts,
            transitions,
            deadlocks,
            surplus,
            levels,
            sent,
            sent_bytes,
            values_sent,
            annotated,
        } = basis;
        match (&mut self.annotations, annotated) {
            (None, None) => {}
            (Some(annotations), Some(backward)) => {
                annotations.carrier.open(self.processes);
                annotations.backward |= backward;
            }
            _ => return Err(unread(bad("the checkpoint is of a search with another goal"))),
        }
        if counted {
            self.tally.transitions += transitions;
            self.tally.deadlocks += deadlocks;
            self.tally.sent += sent;
            self.tally.sent_bytes += sent_bytes;
            self.tally.values_sent += values_sent;
            self.surplus += surplus;
        }
        self.tally.levels = self.tally.levels.max(levels);
        let there = Store::from_layout(parts, 0, Payload::None, self.tuning.table)
            .map_err(|what| unread(bad(&what)))?;
        let tuples = self.tuples(&there, &values)?;
        let mut reader = PartitionReader {
            most: (1u64 << there.key_bits()) - 1,
            leaves: vec![0; there.leaves.len()],
            foreign_states,
            there,
            tuples,
        };
        let mut hash = 0;
        let states = get(&mut input).map_err(unread)?;
        self.reserve(states.saturating_mul(stamp.processes.into()) / self.processes as u64)?;
        for _ in 0..states {
            get_after(&mut input, &mut hash).map_err(unread)?;
            let key = reader.there.table.key(hash & reader.most);
            if hash > reader.most {
                return Err(unread(bad("a state outside its layout")));
            }
            let load = self.read_annotations(&mut input)?;
            if let Some((key, element)) = self.own_key(&mut reader, key)? {
                let place = self.store_state(key)?;
                if let Some(annotations) = &mut self.annotations {
                    let image = |load| {
                        if element == 0 {
                            Ok(load)
                        } else {
                            annotations.carrier.image(element as usize - 1, load)
                        }
                    };
                    let [known, pending] = load.map(image);
                    self.store
                        .table
                        .pair(place)
                        .store(u64::from(known?) << 32 | u64::from(pending?), Ordering::Relaxed);
                }
            }
        }
        for _ in 0..get(&mut input).map_err(unread)? {
            let level = get(&mut input).map_err(unread)?;
            for _ in 0..get(&mut input).map_err(unread)? {
                if let Some(key) = self.stored_key(&mut reader, get(&mut input).map_err(unread)?)? {
                    self.ahead.entry(level).or_default().push(key);
                }
            }
        }
        for _ in 0..get(&mut input).map_err(unread)? {
            let (key, orbit) = (get(&mut input).map_err(unread)?, get(&mut input).map_err(unread)?);
            if let Some(key) = self.stored_key(&mut reader, key)? {
                self.dead.push((key, orbit));
            }
        }
        input.expect().map_err(unread)?;
        self.whole = whole;
        Ok(())
    }

    /// Reserves room before states arrive in hash order, which would crowd one end of a smaller
    /// table.
    fn reserve(&mut self, states: u64) -> Result<(), Diagnostic> {
        if self.store.table.len() > 0 {
            return Ok(());
        }
        self.replan()?;
        if !self.fits_in_memory(states.saturating_mul(8)) {
            return Err(Diagnostic::stopped(Stop::Memory));
        }
        self.store.reserve(states);
        Ok(())
    }

    /// Maps tuple numbers of the file to local numbers, by leaf.
    fn tuples(&self, there: &Store, values: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let alike =
            there.leaves.iter().map(|l| &l.slots).eq(self.store.leaves.iter().map(|l| &l.slots));
        if !alike || values.len() != self.model.slots().len() {
            return Err(unread(bad("its state layout is not that of this model")));
        }
        let mut here: Vec<Vec<u32>> = Vec::with_capacity(values.len());
        for (slot, values) in values.iter().enumerate() {
            here.push(
                values
                    .iter()
                    .map(|bytes| self.portable.import(narrow::index(slot), bytes))
                    .collect::<Result<_, _>>()?,
            );
        }
        let mut tuples = Vec::with_capacity(there.leaves.len());
        let mut row = Vec::new();
        for (leaf, own) in there.leaves.iter().zip(&self.store.leaves) {
            let mut numbers = Vec::with_capacity(leaf.table.len());
            for number in 0..narrow::index(leaf.table.len()) {
                row.clear();
                leaf.table.read(number, &mut row);
                for (value, &slot) in row.iter_mut().zip(&leaf.slots) {
                    let known = here[slot as usize].get(*value as usize);
                    *value = *known.ok_or_else(|| unread(bad("a reference to a missing value")))?;
                }
                numbers.push(own.table.intern(&row));
            }
            tuples.push(numbers);
        }
        Ok(tuples)
    }

    /// Reads the known and the pending annotation of the next state; zeros if states have none.
    fn read_annotations<R: Read>(&mut self, input: &mut R) -> Result<[u32; 2], Diagnostic> {
        let Some(annotations) = &mut self.annotations else { return Ok([0; 2]) };
        let length = get(input).map_err(unread)?;
        let mut bytes = Vec::new();
        input.take(length).read_to_end(&mut bytes).map_err(unread)?;
        let bytes = &mut &bytes[..];
        let loads = [
            annotations.carrier.import(self.processes, bytes)?,
            annotations.carrier.import(self.processes, bytes)?,
        ];
        if bytes.is_empty() {
            Ok(loads)
        } else {
            Err(unread(bad("the annotation of a state is malformed")))
        }
    }

    /// Returns the local key of a state in the file, and the group element that leads to it, if
    /// this process owns it.
    fn own_key(
        &mut self,
        reader: &mut PartitionReader,
        key: u64,
    ) -> Result<Option<(u64, u32)>, Diagnostic> {
        reader.there.unpack(key, &mut reader.leaves);
        for ((here, there), tuples) in
            self.leaves.iter_mut().zip(&reader.leaves).zip(&reader.tuples)
        {
            *here = *tuples
                .get(*there as usize)
                .ok_or_else(|| unread(bad("a reference to a missing tuple")))?;
        }
        self.make_room()?;
        // Computing the owner needs images of tuples, with symmetries.
        self.expander.follow(&self.store);
        if self.owner_of_leaves()? != self.me {
            return if reader.foreign_states {
                Ok(None)
            } else {
                Err(unread(bad("a state of another process")))
            };
        }
        let leaves = std::mem::take(&mut self.leaves);
        let key = self.with_new_layout(|partition| {
            let key = partition.store.pack(&leaves)?;
            partition.expander.representative_of_orbit(&partition.store, key)
        });
        self.leaves = leaves;
        key.map(Some)
    }

    /// Returns the local key of a state that was read before.
    fn stored_key(
        &mut self,
        reader: &mut PartitionReader,
        key: u64,
    ) -> Result<Option<u64>, Diagnostic> {
        if key > reader.most {
            return Err(unread(bad("a queued state outside its layout")));
        }
        match self.own_key(reader, key)? {
            Some((key, _)) if self.store.table.find(key).is_none() => {
                Err(unread(bad("a queued state that is not stored")))
            }
            own => Ok(own.map(|(key, _)| key)),
        }
    }

    /// Stores a state; returns its place.
    fn store_state(&mut self, key: u64) -> Result<u64, Diagnostic> {
        let place = loop {
            match self.store.table.insert(key) {
                Insert::New(place) => break place,
                Insert::Old(_) => return Err(unread(bad("a duplicate state"))),
                Insert::Full => self.store.table.grow(Growth::default()),
            }
        };
        self.store.table.add_len(1);
        Ok(place)
    }
}

/// State of reading a partition file.
struct PartitionReader {
    there: Store,
    /// The largest key in the file.
    most: u64,
    leaves: Vec<u32>,
    /// By leaf and number in the file: the local number.
    tuples: Vec<Vec<u32>>,
    /// True if the file has states of several processes.
    foreign_states: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributed::partition::Batch;
    use crate::tests::models::{Shape, arcx, counters, random, ring};
    use crate::tests::small;
    use crate::{Options, Silent, explore};
    use mu_base::Budget;
    use mu_base::random::Random;
    use mu_model::hand::HandModel;

    fn new_stamp(process: usize, processes: usize) -> Stamp {
        let (process, processes) = (process as u32, processes as u32);
        Stamp {
            fingerprint: "f".into(),
            run: 1,
            number: 1,
            process,
            processes,
            symmetries: SymmetryGroup::of(None),
            leaves: None,
        }
    }

    /// Expands up to `blocks` blocks of `most` states in all partitions and delivers the batches.
    /// Returns true at the end of the search.
    fn advance(
        partitions: &mut [Partition],
        blocks: usize,
        most: usize,
        random: &mut Random,
    ) -> bool {
        let mut left = blocks;
        loop {
            let Some(level) = partitions.iter().filter_map(|s| s.lowest_level()).min() else {
                return true;
            };
            let mut batches: Vec<(usize, Batch)> = Vec::new();
            for (from, partition) in partitions.iter_mut().enumerate() {
                if !partition.is_busy() && partition.lowest_level() == Some(level) {
                    partition.begin_level(level);
                }
                while partition.is_busy() && left > 0 {
                    partition
                        .expand(1 + random.below(most), &mut |batch| batches.push((from, batch)))
                        .unwrap();
                    left -= 1;
                }
                partition.flush_batches(&mut |batch| batches.push((from, batch)));
            }
            for (from, (to, batch)) in batches {
                partitions[to].receive(from, level + 1, &batch).unwrap();
            }
            if left == 0 {
                return false;
            }
        }
    }

    #[test]
    fn interrupted_and_redistributed_searches_give_the_same_result() {
        let shape = Shape { slots: 5, values: 4, components: 3, groups: 9, labels: 3 };
        let mut makers: Vec<Box<dyn Fn() -> HandModel>> = (0..25)
            .map(|seed| Box::new(move || random(seed, shape)) as Box<dyn Fn() -> HandModel>)
            .collect();
        makers.push(Box::new(|| counters(4, 6)));
        makers.push(Box::new(|| ring(6, 3)));
        makers.push(Box::new(|| arcx(0)));
        let options = Options { threads: 1, expected_states: 0, ..small() };
        let budget = Budget::default();
        let mut cuts = 0;
        for (seed, maker) in makers.iter().enumerate() {
            let whole = explore(&maker(), &options, &budget, &Silent).unwrap();
            let mut random = Random::new(seed as u64);
            let mut files: Vec<Vec<u8>> = Vec::new();
            loop {
                let count = 1 + random.below(4);
                let models: Vec<HandModel> = (0..count).map(|_| maker()).collect();
                let mut partitions: Vec<Partition> = models
                    .iter()
                    .enumerate()
                    .map(|(i, m)| Partition::new(m, &options, &budget, None, i, count).unwrap())
                    .collect();
                for (me, partition) in partitions.iter_mut().enumerate() {
                    if files.is_empty() {
                        partition.insert_initial().unwrap();
                    }
                    // With the same number of processes each reads its own file.
                    for (i, file) in
                        files.iter().enumerate().filter(|(i, _)| files.len() != count || *i == me)
                    {
                        expect_sound(&mut &file[..]).unwrap();
                        partition.read(&mut &file[..], i % count == me).unwrap();
                    }
                }
                // About five cuts.
                let most = 2 + whole.states as usize / 50;
                let ended = advance(&mut partitions, 1 + random.below(16), most, &mut random);
                if ended {
                    let sum = |of: &dyn Fn(&Tally) -> u64| {
                        partitions.iter().map(|s| of(&s.tally())).sum::<u64>()
                    };
                    let found =
                        (sum(&|t| t.states), sum(&|t| t.transitions), sum(&|t| t.deadlocks));
                    assert_eq!(
                        found,
                        (whole.states, whole.transitions, whole.deadlocks),
                        "seed {seed}"
                    );
                    assert_eq!(
                        partitions.iter().map(|s| s.tally().levels).max(),
                        Some(whole.levels),
                        "seed {seed}"
                    );
                    let mut ends = 0;
                    partitions.iter().for_each(|s| s.each_deadlock(&mut |_, n| ends += n));
                    assert_eq!(ends, whole.deadlocks, "seed {seed}");
                    break;
                }
                cuts += 1;
                files = partitions
                    .iter_mut()
                    .enumerate()
                    .map(|(i, s)| write_partition(s, &new_stamp(i, count)))
                    .collect();
            }
        }
        assert!(cuts > 60, "{cuts} cuts");
    }

    fn write_partition(partition: &mut Partition, stamp: &Stamp) -> Vec<u8> {
        let mut out = Vec::new();
        partition.write(stamp, &mut out).unwrap();
        assert_eq!(Stamp::read(&mut &out[..]).unwrap(), *stamp);
        out
    }

    #[test]
    fn damaged_partition_files_are_rejected() {
        let (model, options, budget) = (arcx(0), small(), Budget::default());
        let mut partitions = [Partition::new(&model, &options, &budget, None, 0, 1).unwrap()];
        partitions[0].insert_initial().unwrap();
        advance(&mut partitions, 60, 20, &mut Random::new(1));
        let file = write_partition(&mut partitions[0], &new_stamp(0, 1));
        let mut random = Random::new(5);
        for n in 0..300 {
            let mut bytes = file.clone();
            match n % 3 {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => bytes.push(random.next_u64() as u8),
                _ => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            assert!(expect_sound(&mut &bytes[..]).is_err(), "change {n}");
            // Reading also fails without a prior check of the checksum.
            let mut partition = Partition::new(&model, &options, &budget, None, 0, 1).unwrap();
            if n % 3 < 2 {
                assert!(partition.read(&mut &bytes[..], true).is_err(), "change {n}");
                assert!(
                    !partition.is_consistent()
                        && partition.write(&new_stamp(0, 1), &mut Vec::new()).is_err()
                );
            }
        }
    }
}
