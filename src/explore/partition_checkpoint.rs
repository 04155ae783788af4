//! Checkpoints of a search by several processes: each writes its share to a stream, and any number
//! of processes read them all again.
//!
//! Out: a version, a [`Stamp`] (which search, which of its checkpoints, whose share), the values as
//! portable bytes ([`mu_model::Portable`]), the layout of the store, the states in the order of
//! their hashes, the queued states level by level, the deadlocks, a checksum. In: such streams; a
//! process takes from each the states that are its own by their hash, so that the next run may have
//! another number of processes. The numbers of values and tuples are those of the writer: the
//! reader gives them numbers of its own.
//!
//! Cost: 2 to 5 bytes a state and one pass over the store to write. Reading goes over the stream
//! twice, the first time for its checksum alone, and packs every state anew; a process that reads
//! the shares of others gets their tuples too. Invariants: what is read equals what was written, or
//! is refused; a state is in the share of one process, and either was expanded and counted or is
//! queued; a share from which something may be missing is not written.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;

use bincode::{Decode, Encode};

use super::checkpoint::{Sum, bad, get, get_after, put, put_after, put_section, section, unread};
use super::partition::{Partition, Tally};
use super::presearch::LeafLayout;
use super::queue::Queue;
use super::store::{Parts, Store};
use super::symmetry::Symmetries;
use super::table::{Growth, Insert, Payload};
use mu_base::{Diagnostic, Stage, Stop};

/// First bytes of a share.
const MAGIC: [u8; 8] = *b"mushare\n";
/// Version of the form.
const VERSION: u32 = 6;

/// What tells a share from all others.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Stamp {
    /// What is searched: model, parameters, options that change its states.
    pub fingerprint: String,
    /// A random number of the run that wrote it: shares of two runs are never one checkpoint.
    pub run: u64,
    /// Number of the checkpoint, ascending, over all runs that go on from one another.
    pub number: u64,
    /// Whose share it is.
    pub process: u32,
    /// How many processes there were.
    pub processes: u32,
    /// The symmetries that were in use.
    pub symmetries: SymmetryGroup,
    /// The slots that were numbered together and the leaves that say whose a state is, if that was
    /// chosen.
    pub leaves: Option<LeafLayout>,
}

/// A group of symmetries, by what it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SymmetryGroup {
    /// Numbers of the candidates, ascending.
    pub candidates: Vec<u32>,
    /// Number of elements, the identity included.
    pub order: u64,
}

impl SymmetryGroup {
    /// That of the symmetries in use.
    pub fn of(symmetries: Option<&Symmetries>) -> Self {
        let candidates: BTreeSet<u32> =
            symmetries.iter().flat_map(|s| s.words()).flatten().map(|c| *c as u32).collect();
        Self {
            candidates: candidates.into_iter().collect(),
            order: symmetries.map_or(1, Symmetries::order) as u64,
        }
    }
    /// What this group has and the other lacks.
    pub fn beyond(&self, other: &SymmetryGroup) -> Vec<usize> {
        self.candidates
            .iter()
            .filter(|c| !other.candidates.contains(c))
            .map(|c| *c as usize)
            .collect()
    }
}

impl Stamp {
    /// Reads a stamp alone.
    ///
    /// # Errors
    /// The stream is no share of this version.
    pub fn read(input: &mut dyn Read) -> Result<Self, Diagnostic> {
        stamp(input).map_err(unread)
    }
    /// Whether two are of shares of one checkpoint.
    pub fn is_beside(&self, other: &Stamp) -> bool {
        Stamp { process: other.process, ..self.clone() } == *other
    }
}

fn stamp(input: &mut dyn Read) -> std::io::Result<Stamp> {
    let (mut magic, mut version) = ([0; 8], [0; 4]);
    input.read_exact(&mut magic)?;
    if magic != MAGIC {
        return Err(bad("this is no share of a search by several processes"));
    }
    input.read_exact(&mut version)?;
    match u32::from_le_bytes(version) {
        VERSION => section(input),
        other => {
            Err(bad(&format!("a share of version {other}; this program reads version {VERSION}")))
        }
    }
}

/// The store of a share apart from its states.
#[derive(Encode, Decode)]
struct Basis {
    /// By slot: the values that occur, as bytes; tuples have their numbers in this list.
    values: Vec<Vec<Vec<u8>>>,
    parts: Parts,
    transitions: u64,
    deadlocks: u64,
    surplus: u64,
    levels: u64,
    sent: u64,
    sent_bytes: u64,
    values_sent: u64,
    /// Whether each state is followed by what has come to it and what of that waits; and whether
    /// something came to a state from which something had gone on.
    carries: Option<bool>,
}

/// Looks at the checksum of a stream before anything in it is believed.
///
/// # Errors
/// It is damaged, or cannot be read.
pub fn expect_sound(input: &mut dyn Read) -> Result<(), Diagnostic> {
    let mut hasher = crc32fast::Hasher::new();
    // The sum stands in the last four bytes.
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
    /// Writes this process's share. Between two levels, or when the search ended early and all
    /// parcels have arrived.
    ///
    /// # Errors
    /// Something may be missing in it; the stream has an error.
    pub fn write(&mut self, stamp: &Stamp, out: &mut dyn Write) -> Result<(), Diagnostic> {
        if !self.is_whole() {
            return Err(Diagnostic::internal(
                "a share from which states may be missing was to be written",
            ));
        }
        self.put_back()?;
        let basis = self.basis()?;
        let mut out = Sum::new(out);
        self.body(stamp, basis, &mut out)
            .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write a checkpoint: {e}")))
    }

    fn basis(&self) -> Result<Basis, Diagnostic> {
        let mut parts = self.store.parts();
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
        let carries = self.carried.as_ref().map(|c| c.backward);
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
            carries,
        })
    }

    fn body(
        &mut self,
        stamp: &Stamp,
        basis: Basis,
        out: &mut Sum<&mut dyn Write>,
    ) -> std::io::Result<()> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        put_section(out, stamp)?;
        put_section(out, basis)?;
        put(out, self.store.table.len())?;
        let mut before = 0;
        let mut loads = self.carried.as_mut().map(|c| {
            c.carrier.open(self.processes);
            (&mut c.carrier, Vec::new())
        });
        for (place, key) in self.store.table.entries() {
            put_after(out, &mut before, self.store.table.hash(key))?;
            if let Some((carrier, bytes)) = &mut loads {
                bytes.clear();
                let there = self.store.table.pair(place).load(Ordering::Relaxed);
                for element in [(there >> 32) as u32, there as u32] {
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

    /// Takes what is this process's own out of a share; `counted`: whether its counts go to this
    /// process, which must be one. The stamp was accepted, and the stream is sound.
    ///
    /// # Errors
    /// It is malformed, or of another model; a limit on the memory; errors of the model.
    pub fn read(&mut self, input: &mut dyn Read, counted: bool) -> Result<(), Diagnostic> {
        let whole = std::mem::replace(&mut self.whole, false);
        let mut input = Sum::new(input);
        let stamp = stamp(&mut input).map_err(unread)?;
        let mixed = stamp.processes as usize != self.processes;
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
            carries,
        } = basis;
        match (&mut self.carried, carries) {
            (None, None) => {}
            (Some(carried), Some(backward)) => {
                carried.carrier.open(self.processes);
                carried.backward |= backward;
            }
            _ => return Err(unread(bad("a share of a search for something else"))),
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
        let there =
            Store::from_parts(parts, 0, Payload::None).map_err(|what| unread(bad(&what)))?;
        let tuples = self.tuples(&there, &values)?;
        let mut reader = Reader {
            most: (1u64 << there.key_bits()) - 1,
            leaves: vec![0; there.leaves.len()],
            mixed,
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
                return Err(unread(bad("a state that its layout cannot hold")));
            }
            let load = self.loads(&mut input)?;
            if let Some((key, element)) = self.own(&mut reader, key)? {
                let place = self.enter(key)?;
                if let Some(carried) = &mut self.carried {
                    let image = |load| {
                        if element == 0 {
                            Ok(load)
                        } else {
                            carried.carrier.image(element as usize - 1, load)
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
                if let Some(key) = self.stored(&mut reader, get(&mut input).map_err(unread)?)? {
                    self.ahead.entry(level).or_default().push(key);
                }
            }
        }
        for _ in 0..get(&mut input).map_err(unread)? {
            let (key, orbit) = (get(&mut input).map_err(unread)?, get(&mut input).map_err(unread)?);
            if let Some(key) = self.stored(&mut reader, key)? {
                self.dead.push((key, orbit));
            }
        }
        input.expect().map_err(unread)?;
        self.whole = whole;
        Ok(())
    }

    /// Makes room before the first states come: in the order of their hashes they would crowd a
    /// table that is smaller than theirs.
    fn reserve(&mut self, states: u64) -> Result<(), Diagnostic> {
        if self.store.table.len() > 0 {
            return Ok(());
        }
        self.replan()?;
        if !self.fits(states.saturating_mul(8)) {
            return Err(Diagnostic::stopped(Stop::Memory));
        }
        self.store.reserve(states);
        Ok(())
    }

    /// By leaf and number there: the number here.
    fn tuples(&self, there: &Store, values: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let alike =
            there.leaves.iter().map(|l| &l.slots).eq(self.store.leaves.iter().map(|l| &l.slots));
        if !alike || values.len() != self.model.slots().len() {
            return Err(unread(bad("its states have other parts than those of this model")));
        }
        let mut here: Vec<Vec<u32>> = Vec::with_capacity(values.len());
        for (slot, values) in values.iter().enumerate() {
            here.push(
                values
                    .iter()
                    .map(|bytes| self.portable.import(slot as u32, bytes))
                    .collect::<Result<_, _>>()?,
            );
        }
        let mut tuples = Vec::with_capacity(there.leaves.len());
        let mut row = Vec::new();
        for (leaf, own) in there.leaves.iter().zip(&self.store.leaves) {
            let mut numbers = Vec::with_capacity(leaf.table.len());
            for number in 0..leaf.table.len() as u32 {
                row.clear();
                leaf.table.read(number, &mut row);
                for (value, &slot) in row.iter_mut().zip(&leaf.slots) {
                    let known = here[slot as usize].get(*value as usize);
                    *value = *known.ok_or_else(|| unread(bad("a value that is not there")))?;
                }
                numbers.push(own.table.intern(&row));
            }
            tuples.push(numbers);
        }
        Ok(tuples)
    }

    /// What a state that comes next carries: all of it, and what of that waits; nothing if states
    /// carry nothing.
    fn loads<R: Read>(&mut self, input: &mut R) -> Result<[u32; 2], Diagnostic> {
        let Some(carried) = &mut self.carried else { return Ok([0; 2]) };
        let length = get(input).map_err(unread)?;
        let mut bytes = Vec::new();
        input.take(length).read_to_end(&mut bytes).map_err(unread)?;
        let bytes = &mut &bytes[..];
        let loads = [
            carried.carrier.import(self.processes, bytes)?,
            carried.carrier.import(self.processes, bytes)?,
        ];
        if bytes.is_empty() {
            Ok(loads)
        } else {
            Err(unread(bad("what a state carries is malformed")))
        }
    }

    /// The key here of a state there and the element of the group that leads to it, if it is this
    /// process's own.
    fn own(&mut self, reader: &mut Reader, key: u64) -> Result<Option<(u64, u32)>, Diagnostic> {
        reader.there.unpack(key, &mut reader.leaves);
        for ((here, there), tuples) in
            self.leaves.iter_mut().zip(&reader.leaves).zip(&reader.tuples)
        {
            *here = *tuples
                .get(*there as usize)
                .ok_or_else(|| unread(bad("a tuple that is not there")))?;
        }
        self.room()?;
        // Images of tuples are asked for, with symmetries.
        self.expander.follow(&self.store);
        if self.owner_of_leaves()? != self.me {
            return if reader.mixed {
                Ok(None)
            } else {
                Err(unread(bad("a state of another process")))
            };
        }
        let leaves = std::mem::take(&mut self.leaves);
        let key = self.settled(|share| {
            let key = share.store.pack(&leaves)?;
            share.expander.kept(&share.store, key)
        });
        self.leaves = leaves;
        key.map(Some)
    }

    /// The same of a state that was read before.
    fn stored(&mut self, reader: &mut Reader, key: u64) -> Result<Option<u64>, Diagnostic> {
        if key > reader.most {
            return Err(unread(bad("a queued state that its layout cannot hold")));
        }
        match self.own(reader, key)? {
            Some((key, _)) if self.store.table.find(key).is_none() => {
                Err(unread(bad("a queued state that is not stored")))
            }
            own => Ok(own.map(|(key, _)| key)),
        }
    }

    /// Stores a state that was read: its place.
    fn enter(&mut self, key: u64) -> Result<u64, Diagnostic> {
        let place = loop {
            match self.store.table.insert(key) {
                Insert::New(place) => break place,
                Insert::Old(_) => return Err(unread(bad("a state twice"))),
                Insert::Full => self.store.table.grow(Growth::default()),
            }
        };
        self.store.table.add_len(1);
        Ok(place)
    }
}

/// A share that is being read.
struct Reader {
    there: Store,
    /// The largest key there.
    most: u64,
    leaves: Vec<u32>,
    /// By leaf and number there: the number here.
    tuples: Vec<Vec<u32>>,
    /// Whether it has states of several processes.
    mixed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::Batch;
    use crate::tests::models::{Shape, arcx, counters, random, ring};
    use crate::{Options, Silent, explore};
    use mu_base::Budget;
    use mu_base::random::Random;
    use mu_model::hand::HandModel;

    fn stamped(process: usize, processes: usize) -> Stamp {
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

    /// Goes on for so many blocks of so many states with all shares, and delivers what is on the
    /// way. Whether it has ended.
    fn advance(shares: &mut [Partition], blocks: usize, most: usize, random: &mut Random) -> bool {
        let mut left = blocks;
        loop {
            let Some(level) = shares.iter().filter_map(|s| s.lowest()).min() else { return true };
            let mut parcels: Vec<(usize, Batch)> = Vec::new();
            for (from, share) in shares.iter_mut().enumerate() {
                if !share.is_busy() && share.lowest() == Some(level) {
                    share.begin(level);
                }
                while share.is_busy() && left > 0 {
                    share
                        .expand(1 + random.below(most), &mut |parcel| parcels.push((from, parcel)))
                        .unwrap();
                    left -= 1;
                }
                share.close(&mut |parcel| parcels.push((from, parcel)));
            }
            for (from, (to, parcel)) in parcels {
                shares[to].receive(from, level + 1, &parcel).unwrap();
            }
            if left == 0 {
                return false;
            }
        }
    }

    #[test]
    fn searches_that_are_cut_and_dealt_anew_come_to_the_same_end() {
        let shape = Shape { slots: 5, values: 4, components: 3, groups: 9, labels: 3 };
        let mut makers: Vec<Box<dyn Fn() -> HandModel>> = (0..25)
            .map(|seed| Box::new(move || random(seed, shape)) as Box<dyn Fn() -> HandModel>)
            .collect();
        makers.push(Box::new(|| counters(4, 6)));
        makers.push(Box::new(|| ring(6, 3)));
        makers.push(Box::new(|| arcx(0)));
        let options = Options { threads: 1, expected_states: 0, ..Options::default() };
        let budget = Budget::default();
        let mut cuts = 0;
        for (seed, maker) in makers.iter().enumerate() {
            let whole = explore(&maker(), &options, &budget, &Silent).unwrap();
            let mut random = Random::new(seed as u64);
            let mut files: Vec<Vec<u8>> = Vec::new();
            loop {
                let count = 1 + random.below(4);
                let models: Vec<HandModel> = (0..count).map(|_| maker()).collect();
                let mut shares: Vec<Partition> = models
                    .iter()
                    .enumerate()
                    .map(|(i, m)| Partition::new(m, &options, &budget, None, i, count).unwrap())
                    .collect();
                for (me, share) in shares.iter_mut().enumerate() {
                    if files.is_empty() {
                        share.start().unwrap();
                    }
                    // With as many as before each reads what was its own.
                    for (i, file) in
                        files.iter().enumerate().filter(|(i, _)| files.len() != count || *i == me)
                    {
                        expect_sound(&mut &file[..]).unwrap();
                        share.read(&mut &file[..], i % count == me).unwrap();
                    }
                }
                // About five cuts.
                let most = 2 + whole.states as usize / 50;
                let ended = advance(&mut shares, 1 + random.below(16), most, &mut random);
                if ended {
                    let sum = |of: &dyn Fn(&Tally) -> u64| {
                        shares.iter().map(|s| of(&s.tally())).sum::<u64>()
                    };
                    let found =
                        (sum(&|t| t.states), sum(&|t| t.transitions), sum(&|t| t.deadlocks));
                    assert_eq!(
                        found,
                        (whole.states, whole.transitions, whole.deadlocks),
                        "seed {seed}"
                    );
                    assert_eq!(
                        shares.iter().map(|s| s.tally().levels).max(),
                        Some(whole.levels),
                        "seed {seed}"
                    );
                    let mut ends = 0;
                    shares.iter().for_each(|s| s.ends(&mut |_, n| ends += n));
                    assert_eq!(ends, whole.deadlocks, "seed {seed}");
                    break;
                }
                cuts += 1;
                files = shares
                    .iter_mut()
                    .enumerate()
                    .map(|(i, s)| written(s, &stamped(i, count)))
                    .collect();
            }
        }
        assert!(cuts > 60, "{cuts} cuts");
    }

    fn written(share: &mut Partition, stamp: &Stamp) -> Vec<u8> {
        let mut out = Vec::new();
        share.write(stamp, &mut out).unwrap();
        assert_eq!(Stamp::read(&mut &out[..]).unwrap(), *stamp);
        out
    }

    #[test]
    fn damaged_shares_are_refused() {
        let (model, options, budget) = (arcx(0), Options::default(), Budget::default());
        let mut shares = [Partition::new(&model, &options, &budget, None, 0, 1).unwrap()];
        shares[0].start().unwrap();
        advance(&mut shares, 60, 20, &mut Random::new(1));
        let file = written(&mut shares[0], &stamped(0, 1));
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
            // Nor does it become a search where nobody looked at the sum first.
            let mut share = Partition::new(&model, &options, &budget, None, 0, 1).unwrap();
            if n % 3 < 2 {
                assert!(share.read(&mut &bytes[..], true).is_err(), "change {n}");
                assert!(!share.is_whole() && share.write(&stamped(0, 1), &mut Vec::new()).is_err());
            }
        }
    }
}
