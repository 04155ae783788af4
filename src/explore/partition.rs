//! One process's share of a search that several processes make together; whoever drives it moves
//! the parcels between them.
//!
//! In: a model whose values travel ([`mu_model::Portable`]), parcels of states of the next level
//! from the others. Out: parcels for the others, counts of the states that are this process's own.
//! A state belongs to a process by a hash that is the same everywhere: of the digests of its
//! values, or of some that change seldom ([`super::partition_leaves`]), and, with symmetries, of the images
//! of its leaves, so that all members of an orbit belong to one process. All processes keep the
//! same member of an orbit ([`super::stable_hash`]). The store, the group caches and the symmetries are
//! those of the search on one machine ([`super::search`]); what differs is that successors of
//! others go into parcels ([`super::state_batch`]), that the numbers of leaves must last (no leaf is
//! split), and that one thread does it all.
//!
//! Cost: beside the search itself an addition for each successor ([`super::owner_hash`]), and for each
//! one of another process what it differs in from the one sent before it, and the bytes of a
//! parcel; those met lately are neither stored nor sent again. Invariants: each state is stored and
//! expanded by one process, once; a process expands a level only when whoever drives it knows that
//! the level has arrived whole ([`Partition::begin`]); so the counts are those of one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Options;
use super::delta::{Near, Packer};
use super::distributed_annotations::{Carried, PortableAnnotator};
use super::distributed_kahn::Edges;
use super::distributed_trace::Quest;
use super::expander::{Expander, Halt, Successor};
use super::goal_search::settled;
use super::group_cache::Memo;
use super::owner_hash::Told;
use super::queue::Queue;
use super::search::{BATCH, MOST_DEAD, too_many};
use super::stable_hash::spread;
use super::state_batch::{Receiver, Sender};
use super::store::Store;
use super::symmetry::Symmetries;
use super::table::{Growth, Insert, Payload};
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_model::{Model, Portable};

/// Keys stored or sent lately that are remembered: a power of two.
const RECENT: usize = if cfg!(test) { 1 << 8 } else { 1 << 16 };
/// Most slots of a leaf where no symmetries are used.
const WIDEST: usize = 8;
/// The table grows in large steps while it takes less than this part of the memory allowed. It is
/// less than in a search by one process, since what it has then is filled by half: several
/// processes are there for what one has no room for.
const GENEROUS: u64 = 24;

/// What a share holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// States: those stored, and what the orbits of the expanded ones have beyond these.
    pub states: u64,
    /// States stored.
    pub stored: u64,
    /// Transitions of the expanded states.
    pub transitions: u64,
    /// Expanded states without steps.
    pub deadlocks: u64,
    /// Levels begun.
    pub levels: u64,
    /// States of this level that are still to be expanded.
    pub waiting: u64,
    /// States sent to other processes.
    pub sent: u64,
    /// Bytes of their parcels.
    pub sent_bytes: u64,
    /// Values written out in them.
    pub values_sent: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
}

/// See the module's head.
pub struct Partition<'m> {
    pub(super) model: &'m dyn Model,
    pub(super) portable: &'m dyn Portable,
    pub(super) budget: Budget,
    pub(super) me: usize,
    pub(super) processes: usize,
    pub(super) store: Store,
    pub(super) expander: Expander<'m>,
    pub(super) found: Vec<Successor>,
    /// What is looked for.
    pub(super) quest: Quest<'m>,
    /// What the states carry.
    pub(super) carried: Option<Carried<'m>>,
    /// What is done with the edges, how many states were taken away, and how many have something
    /// that lasts.
    pub(super) edges: Option<Edges>,
    pub(super) taken: u64,
    pub(super) lasting: u64,
    /// By level, the states from which something was taken, if that is kept.
    pub(super) history: BTreeMap<u64, Queue>,
    pub(super) leaves: Vec<u32>,
    pub(super) level: u64,
    /// Of this level, still to be expanded.
    pub(super) now: Queue,
    /// Of later levels, stored.
    pub(super) ahead: BTreeMap<u64, Queue>,
    /// Of one later level, not stored yet.
    pub(super) pending: Vec<u64>,
    /// Successors of the states expanded last, whosever they are, with the sum and the leaves of
    /// each if these are known.
    batch: Vec<u64>,
    sums: Vec<u64>,
    members: Vec<u32>,
    pub(super) hashes: Vec<u64>,
    /// Keys stored or sent lately, each in its place; at first keys that have other places.
    pub(super) recent: Vec<u64>,
    /// The state whose leaves were looked at last, and the sum of their parts.
    near: Near,
    sum: u64,
    packer: Packer,
    pub(super) senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    pub(super) tally: Tally,
    pub(super) surplus: u64,
    /// Deadlocks, with the sizes of their orbits.
    pub(super) dead: Vec<(u64, u64)>,
    /// Whether every state stored was expanded and counted, or is queued: not between the
    /// expansion of a state and the use of what it gave.
    pub(super) whole: bool,
}

/// An empty store. Its leaves last, so wide ones are parted from the start; with symmetries they
/// are whole components, which these map to each other.
pub(super) fn store(
    model: &dyn Model,
    options: &Options,
    with_symmetries: bool,
    payload: Payload,
) -> Store {
    if let Some(dealt) =
        options.leaves.as_ref().and_then(|l| l.dealt.as_ref()).filter(|_| !with_symmetries)
    {
        return Store::of_leaves(model.slots().len(), dealt, options.expected_states, payload);
    }
    Store::in_parts(
        model,
        options.expected_states,
        payload,
        if with_symmetries { usize::MAX } else { WIDEST },
    )
}

/// A parcel for a process.
pub type Batch = (usize, Vec<u8>);

/// Where a key is remembered that was stored or sent.
pub(super) fn recent_slot(key: u64) -> usize {
    (spread(key) as usize) & (RECENT - 1)
}

/// None is remembered: each place has a key whose place is another one.
fn nothing_recent() -> Vec<u64> {
    let mut places = vec![0; RECENT];
    places[recent_slot(0)] = (1..).find(|key| recent_slot(*key) != recent_slot(0)).unwrap_or(0);
    places
}

impl<'m> Partition<'m> {
    /// An empty share of process `me`.
    ///
    /// # Errors
    /// The model's values cannot travel.
    pub fn new(
        model: &'m dyn Model,
        options: &Options,
        budget: &Budget,
        symmetries: Option<&'m Symmetries>,
        me: usize,
        processes: usize,
    ) -> Result<Self, Diagnostic> {
        let portable = model.portable().ok_or_else(|| {
            Diagnostic::new(
                Stage::Unsupported,
                "the values of this kind of model cannot go to other processes",
            )
            .note("search it in one process, without `--processes` and `--cluster`")
        })?;
        let memo = Arc::new(Memo::new(model.groups().len(), options.cache_bytes.saturating_mul(4)));
        let store = store(model, options, symmetries.is_some(), Payload::None);
        let (leaves, slots) = (store.leaves.len(), model.slots().len());
        let telling = options.leaves.as_ref().map_or(&[][..], |l| &l.telling);
        Ok(Self {
            model,
            portable,
            budget: budget.clone(),
            me,
            processes,
            expander: Expander::new(model, memo, options)
                .with_symmetries(symmetries)
                .among_processes(Told::new(leaves, telling)),
            found: Vec::new(),
            quest: Quest::default(),
            carried: None,
            edges: None,
            taken: 0,
            lasting: 0,
            history: BTreeMap::new(),
            leaves: vec![0; leaves],
            level: 0,
            now: Queue::default(),
            ahead: BTreeMap::new(),
            pending: Vec::with_capacity(BATCH + 64),
            batch: Vec::new(),
            sums: Vec::new(),
            members: Vec::new(),
            hashes: Vec::new(),
            recent: nothing_recent(),
            near: Near::default(),
            sum: 0,
            packer: Packer::default(),
            senders: (0..processes).map(|_| Sender::new(leaves, slots)).collect(),
            receivers: (0..processes).map(|_| Receiver::new(leaves, slots)).collect(),
            store,
            tally: Tally::default(),
            surplus: 0,
            dead: Vec::new(),
            whole: true,
        })
    }

    /// If symmetries cost much more than they save, the search is to end with an error.
    pub(super) fn thrifty(mut self) -> Self {
        self.expander = self.expander.thrifty(true);
        self
    }

    /// Puts the initial state in, if it is this process's own: level 0 then has a state.
    ///
    /// # Errors
    /// Those of the model.
    pub fn start(&mut self) -> Result<(), Diagnostic> {
        if let Some(edges) = self.edges {
            return self.start_edges(edges);
        }
        self.whole = false;
        let vector = self.model.initial();
        let key = self.settled(|share| {
            let key = share.store.encode(&vector)?;
            share.expander.representative(&share.store, key)
        })?;
        if self.owner(key)? == self.me {
            self.pending.push(key);
            if let Some(carried) = &mut self.carried {
                carried.brought.push(carried.carrier.initial());
            }
            self.place(0)?;
        }
        self.whole = true;
        Ok(())
    }

    /// Whether nothing is missing: an error within a step may have left successors behind.
    pub fn is_whole(&self) -> bool {
        self.whole && self.pending.is_empty() && self.batch.is_empty()
    }

    /// Levels that have states here and were not begun, ascending.
    pub fn levels(&self) -> impl Iterator<Item = u64> + '_ {
        self.ahead.keys().copied()
    }
    /// The least level that has states to be expanded.
    pub fn lowest(&self) -> Option<u64> {
        if self.is_busy() { Some(self.level) } else { self.levels().next() }
    }
    /// Whether the level that was begun has states left.
    pub fn is_busy(&self) -> bool {
        !self.now.is_empty()
    }
    /// Begins a level, of which all states have arrived.
    pub fn begin(&mut self, level: u64) {
        self.level = level;
        self.now = self.ahead.remove(&level).unwrap_or_default();
        self.take_up();
        // A level may have brought only states that are known.
        if !self.now.is_empty() {
            self.tally.levels = level + 1;
        }
    }

    /// Expands up to so many states of the level that was begun. `send` gets parcels for the level
    /// after it; by the end of the level, all of them.
    ///
    /// # Errors
    /// Those of the model; a limit on the memory.
    pub fn expand(&mut self, most: usize, send: &mut dyn FnMut(Batch)) -> Result<(), Diagnostic> {
        if let Some(mut carried) = self.carried.take() {
            let result = match self.edges {
                Some(_) => self.follow_edges(&mut carried, most, send),
                None => self.carry(&mut carried, most, send),
            };
            self.carried = Some(carried);
            return result;
        }
        let expanded = self.expand_some(most, send);
        // A limit that ends this between two states leaves nothing behind.
        let dealt = self.deal(send).and_then(|()| self.place(self.level + 1));
        if self.now.is_empty() {
            self.close(send);
        }
        expanded.and(dealt)
    }

    /// Expands up to so many states, and deals the successors out when there are many.
    fn expand_some(&mut self, most: usize, send: &mut dyn FnMut(Batch)) -> Result<(), Diagnostic> {
        for _ in 0..most {
            if self.now.is_empty() {
                break;
            }
            self.room()?;
            // Keys change with the layout.
            let (key, orbit) = self.settled(|share| {
                let key = *share
                    .now
                    .last()
                    .ok_or_else(|| Diagnostic::internal("the state to be expanded is gone"))?;
                let orbit = share.expander.orbit(&share.store, key, None)?;
                share.expander.successors(&share.store, key, &mut share.found)?;
                Ok((key, orbit))
            })?;
            self.whole = false;
            self.now.pop();
            self.look(key);
            self.surplus += orbit - 1;
            self.tally.transitions += orbit * self.found.len() as u64;
            if self.found.is_empty() {
                self.tally.deadlocks += orbit;
                if self.dead.len() < MOST_DEAD {
                    self.dead.push((key, orbit));
                }
            }
            self.batch.extend(self.found.iter().map(|step| step.key));
            self.sums.extend_from_slice(&self.expander.told.sums);
            self.members.extend_from_slice(&self.expander.members);
            self.whole = true;
            if self.batch.len() >= BATCH {
                self.deal(send)?;
            }
        }
        Ok(())
    }

    /// Stores the successors in the batch that are this process's own, and sends the others.
    fn deal(&mut self, send: &mut dyn FnMut(Batch)) -> Result<(), Diagnostic> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.whole = false;
        let (batch, members) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.members));
        let sums = std::mem::take(&mut self.sums);
        // Their places come into the caches together.
        std::hint::black_box(batch.iter().fold(0, |acc, &key| acc ^ self.recent[recent_slot(key)]));
        for (i, &key) in batch.iter().enumerate() {
            // Whosever it is, it was stored or sent lately.
            if std::mem::replace(&mut self.recent[recent_slot(key)], key) == key {
                continue;
            }
            let owner = self.owner_among(&sums, &members, i, key)?;
            if owner == self.me {
                self.pending.push(key);
                continue;
            }
            self.post(owner, None, send)?;
        }
        (self.batch, self.sums, self.members) = (batch, sums, members);
        self.batch.clear();
        self.sums.clear();
        self.members.clear();
        self.whole = true;
        if self.pending.len() >= BATCH { self.place(self.level + 1) } else { Ok(()) }
    }

    /// Puts the state in `leaves`, with what it brings, into the parcel for its owner, which goes
    /// when it is full.
    pub(super) fn post(
        &mut self,
        owner: usize,
        load: Option<(&mut dyn PortableAnnotator, usize, u32)>,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        self.tally.sent += 1;
        if let Some(parcel) =
            self.senders[owner].add(&self.store, self.portable, &self.leaves, load)?
        {
            self.tally.sent_bytes += parcel.len() as u64;
            send((owner, parcel));
        }
        Ok(())
    }

    /// Gives the parcels that are not full.
    pub fn close(&mut self, send: &mut dyn FnMut(Batch)) {
        for to in 0..self.processes {
            if let Some(parcel) = self.senders[to].close() {
                self.tally.sent_bytes += parcel.len() as u64;
                send((to, parcel));
            }
        }
    }

    /// Takes a parcel of a level in.
    ///
    /// # Errors
    /// It is malformed; a limit on the memory.
    pub fn receive(&mut self, from: usize, level: u64, parcel: &[u8]) -> Result<(), Diagnostic> {
        let Some(place) = self.receivers.get_mut(from).filter(|_| from != self.me) else {
            return Err(Diagnostic::internal("a parcel from nobody"));
        };
        let whole = std::mem::replace(&mut self.whole, false);
        let mut receiver = std::mem::take(place);
        let taken = self.take_in(&mut receiver, (from, level), parcel);
        self.receivers[from] = receiver;
        taken?;
        self.whole = whole;
        Ok(())
    }

    fn take_in(
        &mut self,
        receiver: &mut Receiver,
        (from, level): (usize, u64),
        parcel: &[u8],
    ) -> Result<(), Diagnostic> {
        let mut parcel = receiver.open(parcel)?;
        loop {
            let carrier = self
                .carried
                .as_mut()
                .filter(|_| self.edges.is_none())
                .map(|c| (&mut *c.carrier as &mut dyn PortableAnnotator, from));
            let Some(load) = receiver.next(&self.store, self.portable, &mut parcel, carrier)?
            else {
                break;
            };
            self.room()?;
            // Of its orbit it is the member that is kept here as well.
            let key =
                self.settled(|share| Ok(share.packer.pack(&share.store, &receiver.state)?))?;
            self.pending.push(key);
            if let Some(carried) = self.carried.as_mut().filter(|_| self.edges.is_none()) {
                carried.brought.push(load);
            }
            if self.pending.len() >= BATCH {
                self.place(level)?;
            }
        }
        self.place(level)
    }

    /// Shows the deadlocks found here, up to a million, each with the number of states that it
    /// stands for.
    pub fn ends(&self, see: &mut dyn FnMut(&[u32], u64)) {
        self.dead.iter().for_each(|(key, orbit)| see(&self.store.vector(*key), *orbit));
    }

    /// What it holds and did so far.
    pub fn tally(&self) -> Tally {
        let stored = self.store.table.len();
        Tally {
            states: stored + self.surplus,
            stored,
            waiting: self.now.len() as u64,
            values_sent: self.tally.values_sent
                + self.senders.iter().map(|s| s.values_sent).sum::<u64>(),
            store_bytes: self.store.bytes(),
            ..self.tally
        }
    }

    /// Does something that may need another layout of the store, until it has it.
    pub(super) fn settled<T>(
        &mut self,
        mut action: impl FnMut(&mut Self) -> Result<T, Halt>,
    ) -> Result<T, Diagnostic> {
        for _ in 0..64 {
            self.expander.follow(&self.store);
            match action(self) {
                Ok(result) => return Ok(result),
                Err(Halt::Error(error)) => return Err(*error),
                Err(Halt::Overflow) if self.store.at_limit() => break,
                Err(Halt::Overflow) => self.replan()?,
            }
        }
        Err(too_many())
    }

    pub(super) fn fits(&self, more: u64) -> bool {
        self.budget
            .limits()
            .max_memory
            .is_none_or(|m| mu_base::limits::resident_bytes() + more <= m)
    }

    /// Packs all states anew. All of them are twice in memory for a while.
    pub(super) fn replan(&mut self) -> Result<(), Diagnostic> {
        if !self.fits(self.store.table.bytes()) {
            return Err(Diagnostic::stopped(Stop::Memory));
        }
        let ahead = self.ahead.values_mut().flat_map(Queue::iter_mut);
        let dead = self.dead.iter_mut().map(|d| &mut d.0);
        let met =
            self.quest.hits.iter_mut().chain(self.history.values_mut().flat_map(Queue::iter_mut));
        let found = self.pending.iter_mut().chain(self.batch.iter_mut());
        self.store
            .replan(self.now.iter_mut().chain(ahead).chain(found).chain(dead).chain(met), None);
        self.recent = nothing_recent();
        Ok(())
    }

    /// Makes room for more states where that is needed. Not between the expansion of a state and
    /// the use of what it gave.
    pub(super) fn room(&mut self) -> Result<(), Diagnostic> {
        if !self.store.table.crowded() {
            return Ok(());
        }
        if self.store.could_be_short() && self.fits(self.store.table.bytes()) {
            self.replan()?;
        }
        if self.store.table.crowded() { self.grow() } else { Ok(()) }
    }

    fn grow(&mut self) -> Result<(), Diagnostic> {
        if !self.fits(self.store.table.growth_bytes()) {
            return Err(Diagnostic::stopped(Stop::Memory));
        }
        let generous = self
            .budget
            .limits()
            .max_memory
            .is_none_or(|m| self.store.table.bytes() <= m / GENEROUS);
        self.store.table.grow(Growth { generous, helpers: 0 });
        Ok(())
    }

    /// Stores what is pending: states of this level. Keys stay as they are.
    fn place(&mut self, level: u64) -> Result<(), Diagnostic> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.edges.is_some() {
            return self.note_edges(level);
        }
        if let Some(mut carried) = self.carried.take() {
            let result = self.place_carried(&mut carried, level);
            self.carried = Some(carried);
            return result;
        }
        self.hashes.clear();
        self.hashes.extend(self.pending.iter().map(|&key| self.store.table.hash(key)));
        std::hint::black_box(
            self.hashes.iter().fold(0, |acc, &hash| acc ^ self.store.table.touch(hash)),
        );
        let mut fresh = self.ahead.remove(&level).unwrap_or_default();
        let mut result = Ok(());
        let mut new = 0;
        for (at, key) in self.pending.drain(..).enumerate() {
            loop {
                match self.store.table.insert_hashed(self.hashes[at]) {
                    Insert::New(place) => {
                        new += 1;
                        fresh.push(key);
                        if self.quest.sought.is_some() {
                            // None has so many levels that four bytes do not tell them apart.
                            self.store
                                .table
                                .number(place)
                                .store(level as u32 + 1, Ordering::Relaxed);
                        }
                    }
                    Insert::Old(_) => {}
                    Insert::Full => {
                        self.store.table.add_len(std::mem::take(&mut new));
                        let growth = Growth { generous: false, helpers: 0 };
                        if self.budget.limits().max_memory.is_some_and(|m| {
                            mu_base::limits::resident_bytes() + self.store.table.growth_bytes() > m
                        }) {
                            result = Err(Diagnostic::stopped(Stop::Memory));
                        } else {
                            self.store.table.grow(growth);
                            continue;
                        }
                    }
                }
                break;
            }
        }
        self.store.table.add_len(new);
        self.whole &= result.is_ok();
        if !fresh.is_empty() {
            self.ahead.insert(level, fresh);
        }
        result
    }

    /// The process that a state belongs to; if that is another one, its leaves are in `leaves`
    /// then.
    pub(super) fn owner(&mut self, key: u64) -> Result<usize, Diagnostic> {
        let sum = if self.near.go_to(&self.store, key) {
            self.expander.sum_of(&self.store, &self.near.leaves).map_err(settled)
        } else {
            self.sum_of_next()
        };
        // What it left is not in the sum.
        self.sum = sum.inspect_err(|_| self.near.forget())?;
        let owner = self.owner_by(self.sum);
        if owner != self.me {
            self.leaves.copy_from_slice(&self.near.leaves);
        }
        Ok(owner)
    }

    /// The same of the successor found at a place.
    pub(super) fn owner_at(&mut self, i: usize) -> Result<usize, Diagnostic> {
        let (sums, members) = (
            std::mem::take(&mut self.expander.told.sums),
            std::mem::take(&mut self.expander.members),
        );
        let owner = self.owner_among(&sums, &members, i, self.found[i].key);
        (self.expander.told.sums, self.expander.members) = (sums, members);
        owner
    }

    /// The same of a state whose sum and leaves are at a place of these, if there are any.
    #[inline]
    fn owner_among(
        &mut self,
        sums: &[u64],
        members: &[u32],
        at: usize,
        key: u64,
    ) -> Result<usize, Diagnostic> {
        let width = self.leaves.len();
        let leaves = members.get(at * width..(at + 1) * width).filter(|leaves| !leaves.is_empty());
        let sum = match (sums.get(at), leaves) {
            (Some(&sum), _) => sum,
            (None, Some(leaves)) => self.expander.sum_of(&self.store, leaves).map_err(settled)?,
            (None, None) => return self.owner(key),
        };
        let owner = self.owner_by(sum);
        if owner != self.me {
            match leaves {
                Some(leaves) => self.leaves.copy_from_slice(leaves),
                None => {
                    self.near.go_to(&self.store, key);
                    self.sum = sum;
                    self.leaves.copy_from_slice(&self.near.leaves);
                }
            }
        }
        Ok(owner)
    }

    /// The sum of the parts of the state that is near, from that of the one before it.
    #[inline]
    fn sum_of_next(&mut self) -> Result<u64, Diagnostic> {
        let mut sum = self.sum;
        for &(leaf, old) in &self.near.left {
            let (leaf, new) = (leaf as usize, self.near.leaves[leaf as usize]);
            if self.expander.told.tells(leaf) {
                let part =
                    |number| self.expander.part_of(&self.store, leaf, number).map_err(settled);
                let [new, old] = [new, old].map(part);
                sum = sum.wrapping_add(new?).wrapping_sub(old?);
            }
        }
        Ok(sum)
    }

    fn owner_by(&self, sum: u64) -> usize {
        ((u128::from(spread(sum)) * self.processes as u128) >> 64) as usize
    }

    /// The process that the state in `leaves` belongs to.
    pub(super) fn owner_of_leaves(&mut self) -> Result<usize, Diagnostic> {
        let sum = self.expander.sum_of(&self.store, &self.leaves).map_err(settled)?;
        Ok(self.owner_by(sum))
    }

    /// Splits a leaf. The search has come to its end: what it has queued keeps the keys of before.
    pub(super) fn split(&mut self, leaf: usize) {
        self.store.replan(std::iter::empty(), Some(leaf));
        let leaves = self.store.leaves.len();
        self.expander.told = Told::new(leaves, &[]);
        self.leaves = vec![0; leaves];
    }

    /// The parts that the leaves of a state have in the hash, added up by class.
    pub(super) fn parts_of(
        &mut self,
        key: u64,
        classes: &[usize],
        sums: &mut [u64],
    ) -> Result<(), Diagnostic> {
        self.store.unpack(key, &mut self.leaves);
        sums.fill(0);
        for leaf in 0..self.leaves.len() {
            let part =
                self.expander.part_of(&self.store, leaf, self.leaves[leaf]).map_err(settled)?;
            sums[classes[leaf]] = sums[classes[leaf]].wrapping_add(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presearch::LeafLayout;
    use crate::tests::models::{Shape, arcx, counters, random, ring};
    use crate::{Silent, explore};
    use mu_base::random::Random;
    use mu_model::hand::HandModel;

    /// All shares of a search in one thread, each with a model of its own.
    fn together(models: &[HandModel], options: &Options) -> Vec<Tally> {
        let count = models.len();
        let budget = Budget::default();
        let mut shares: Vec<Partition> = models
            .iter()
            .enumerate()
            .map(|(i, m)| Partition::new(m, options, &budget, None, i, count).unwrap())
            .collect();
        shares.iter_mut().for_each(|s| s.start().unwrap());
        let mut level = 0;
        while shares.iter().any(|s| s.levels().next().is_some()) {
            let mut parcels: Vec<(usize, Batch)> = Vec::new();
            for (from, share) in shares.iter_mut().enumerate() {
                assert!(share.levels().all(|l| l == level));
                share.begin(level);
                while share.is_busy() {
                    share.expand(7, &mut |parcel| parcels.push((from, parcel))).unwrap();
                }
            }
            level += 1;
            for (from, (to, parcel)) in parcels {
                shares[to].receive(from, level, &parcel).unwrap();
            }
        }
        shares.iter().map(Partition::tally).collect()
    }

    #[test]
    fn shares_add_up_to_the_search_of_one_process() {
        let shape = Shape { slots: 5, values: 4, components: 3, groups: 9, labels: 3 };
        let mut makers: Vec<Box<dyn Fn() -> HandModel>> = (0..40)
            .map(|seed| Box::new(move || random(seed, shape)) as Box<dyn Fn() -> HandModel>)
            .collect();
        makers.push(Box::new(|| counters(4, 6)));
        makers.push(Box::new(|| ring(6, 3)));
        makers.push(Box::new(|| arcx(0)));
        let mut sent = 0;
        for (at, maker) in makers.iter().enumerate() {
            let options = Options { threads: 1, expected_states: 0, ..Options::default() };
            let whole = explore(&maker(), &options, &Budget::default(), &Silent).unwrap();
            for count in [1, 2, 3, 5] {
                let models: Vec<HandModel> = (0..count).map(|_| maker()).collect();
                // Some leaves tell, other ones each time; of one process all.
                let leaves = Store::in_parts(&models[0], 0, Payload::None, WIDEST).leaves.len();
                let telling = (0..leaves as u32)
                    .filter(|leaf| (leaf + at as u32).is_multiple_of(count as u32))
                    .collect();
                let options = Options {
                    leaves: Some(LeafLayout { dealt: None, telling }),
                    ..options.clone()
                };
                let shares = together(&models, &options);
                let sum = |of: &dyn Fn(&Tally) -> u64| shares.iter().map(of).sum::<u64>();
                let found = (sum(&|t| t.states), sum(&|t| t.transitions), sum(&|t| t.deadlocks));
                assert_eq!(
                    found,
                    (whole.states, whole.transitions, whole.deadlocks),
                    "model {at}, {count} processes"
                );
                assert_eq!(
                    shares.iter().map(|t| t.levels).max(),
                    Some(whole.levels),
                    "model {at}, {count} processes"
                );
                sent += sum(&|t| t.sent);
            }
        }
        assert!(sent > 10_000, "{sent} states went to others");
    }

    #[test]
    fn shares_are_alike_in_size() {
        let models: Vec<HandModel> = (0..5).map(|_| arcx(1)).collect();
        let shares = together(&models, &Options::default());
        let (least, most) = (
            shares.iter().map(|t| t.states).min().unwrap(),
            shares.iter().map(|t| t.states).max().unwrap(),
        );
        assert!(most - least < least / 20, "{least} to {most}");
    }

    #[test]
    fn damaged_parcels_end_in_errors_not_in_panics() {
        let model = arcx(0);
        let options = Options::default();
        let budget = Budget::default();
        let mut parcels = Vec::new();
        for me in 0..2 {
            let mut share = Partition::new(&model, &options, &budget, None, me, 2).unwrap();
            share.start().unwrap();
            for level in 0..6 {
                share.begin(level);
                while share.is_busy() {
                    share.expand(100, &mut |(_, parcel)| parcels.push(parcel)).unwrap();
                }
            }
        }
        parcels.retain(|p| p.len() > 8);
        assert!(!parcels.is_empty());
        let takes = |bytes: &[u8]| {
            Partition::new(&model, &options, &budget, None, 0, 2)
                .unwrap()
                .receive(1, 1, bytes)
                .is_ok()
        };
        let mut random = Random::new(3);
        let mut refused = 0;
        for _ in 0..2000 {
            let mut bytes = parcels[random.below(parcels.len())].clone();
            let way = random.below(3);
            match way {
                0 => bytes.truncate(random.below(bytes.len())),
                1 => bytes.push(random.next_u64() as u8),
                _ => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            let taken = takes(&bytes);
            refused += usize::from(!taken);
            assert!(!taken || way == 2, "a parcel that was cut or went on is taken: {bytes:?}");
        }
        assert!(refused > 1300, "{refused} refused");
        // A state of tuples that came in a parcel before; and one with a tuple that never came.
        let first = parcels.iter().find(|p| takes(p)).unwrap();
        let mut share = Partition::new(&model, &options, &budget, None, 0, 2).unwrap();
        share.receive(1, 1, first).unwrap();
        let leaves = share.leaves.len();
        let mask: Vec<u8> = (0..leaves.div_ceil(8))
            .map(|byte| u8::MAX >> (8 * (byte + 1)).saturating_sub(leaves))
            .collect();
        let state = |tuple: u8| [vec![1], mask.clone(), vec![tuple], vec![1; leaves - 1]].concat();
        share.receive(1, 1, &state(1)).unwrap();
        assert!(share.receive(1, 1, &state(127)).is_err(), "a tuple that never came is taken");
    }
}
