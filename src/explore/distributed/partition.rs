//! One process's partition of the state space in a distributed search. The caller moves the batches
//! between processes.
//!
//! In: a model with portable values ([`mu_model::Portable`]) and batches of states of the next
//! level from other processes. Out: batches for other processes, and counts of the states of this
//! partition. The owner of a state is a hash that is equal in all processes. It hashes the digests
//! of the values of the partition leaves ([`super::partition_leaves`]). With symmetries it also
//! covers the images of these leaves, so that all members of an orbit have one owner. All processes
//! choose the same representative of an orbit ([`super::stable_hash`]). The store, the group
//! caches, and the symmetries are those of the search in one process ([`crate::search`]). There are
//! three differences: successors with another owner go into batches ([`super::state_batch`]), no
//! leaf is split because leaf numbers must stay valid, and one thread does all the work.
//!
//! Cost, in addition to the search: an addition for each successor ([`super::owner_hash`]). A
//! successor with another owner also costs its difference from the state sent before it, and the
//! bytes in the batch. Recently handled keys are neither stored nor sent again. Invariants: each
//! state is stored and expanded by one process, once. A process expands a level only after the
//! whole level has arrived ([`Partition::begin_level`]). So the counts equal those of one process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::annotations::{DistributedAnnotations, PortableAnnotator};
use super::kahn::Edges;
use super::owner_hash::OwnerHash;
use super::state_batch::{Receiver, Sender};
use super::trace::DistributedGoal;
use crate::Options;
use crate::delta::{DeltaPacker, DeltaUnpacker};
use crate::expander::{Expander, Halt, Successor};
use crate::goal_search::halt_error;
use crate::group_cache::SharedGroupCache;
use crate::queue::Queue;
use crate::search::{BATCH, MAX_DEADLOCKS, index_too_wide};
use crate::store::Store;
use crate::symmetry::Symmetries;
use crate::table::{Growth, Insert, Payload};
use crate::tuning::Tuning;
use mu_base::mixing::spread;
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_model::{Model, Portable};

/// Maximum number of slots of a leaf, if no symmetries are used.
const WIDEST: usize = 8;
/// The table grows in large steps while it takes less than this fraction of the memory limit. The
/// fraction is smaller than in a search by one process, because distributed searches are used when
/// memory is scarce.
const GENEROUS: u64 = 24;

/// Size and counts of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// States: the stored ones, plus the other members of the orbits of expanded states.
    pub states: u64,
    /// States stored.
    pub stored: u64,
    /// Transitions of the expanded states.
    pub transitions: u64,
    /// Expanded states without steps.
    pub deadlocks: u64,
    /// Levels begun.
    pub levels: u64,
    /// States of the current level that are not expanded yet.
    pub waiting: u64,
    /// States sent to other processes.
    pub sent: u64,
    /// Bytes of the sent batches.
    pub sent_bytes: u64,
    /// Values written out in full in these batches.
    pub values_sent: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
}

/// The partition of one process; see the module header.
pub struct Partition<'m> {
    pub(crate) model: &'m dyn Model,
    pub(crate) portable: &'m dyn Portable,
    pub(crate) budget: Budget,
    pub(crate) me: usize,
    pub(crate) processes: usize,
    pub(crate) store: Store,
    pub(crate) expander: Expander<'m>,
    pub(crate) found: Vec<Successor>,
    /// The goal of the search, and where it was reached.
    pub(crate) goal: DistributedGoal<'m>,
    /// Annotations of the states, if the search has any.
    pub(crate) annotations: Option<DistributedAnnotations<'m>>,
    /// For [`super::kahn`]: the current pass over the edges, the number of states
    /// removed, and the number of vertices.
    pub(crate) edges: Option<Edges>,
    pub(crate) removed: u64,
    pub(crate) lfp_part: u64,
    /// Expanded states by level; only in searches that reconstruct a path.
    pub(crate) history: BTreeMap<u64, Queue>,
    pub(crate) leaves: Vec<u32>,
    pub(crate) level: u64,
    /// States of the current level that are not expanded yet.
    pub(crate) now: Queue,
    /// Stored states of later levels.
    pub(crate) ahead: BTreeMap<u64, Queue>,
    /// States of one later level that are not stored yet.
    pub(crate) pending: Vec<u64>,
    /// Successors of the states expanded last, regardless of owner; with the owner hash and the
    /// leaves of each, if these are known.
    batch: Vec<u64>,
    sums: Vec<u64>,
    members: Vec<u32>,
    pub(crate) hashes: Vec<u64>,
    /// Filter of recently stored or sent keys, indexed by [`recent_slot`]. Initially each entry is
    /// a key of another slot.
    pub(crate) recent: Vec<u64>,
    /// Sizes and times of this search.
    pub(crate) tuning: Tuning,
    /// Unpacks successive states incrementally; with the owner hash of the last one.
    unpacker: DeltaUnpacker,
    sum: u64,
    packer: DeltaPacker,
    pub(crate) senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    pub(crate) tally: Tally,
    pub(crate) surplus: u64,
    /// Deadlocks, with the sizes of their orbits.
    pub(crate) dead: Vec<(u64, u64)>,
    /// True if every stored state is either expanded and counted or queued. False between the
    /// expansion of a state and the use of its successors.
    pub(crate) whole: bool,
}

/// Creates an empty store. Leaves cannot be split later, so wide ones are divided at the start.
/// With symmetries a leaf is a whole component, because symmetries map components to each other.
pub(crate) fn store(
    model: &dyn Model,
    options: &Options,
    with_symmetries: bool,
    payload: Payload,
) -> Store {
    if let Some(leaf_slots) =
        options.leaves.as_ref().and_then(|l| l.leaf_slots.as_ref()).filter(|_| !with_symmetries)
    {
        return Store::of_leaves(
            model.slots().len(),
            leaf_slots,
            options.expected_states,
            payload,
            options.tuning.table,
        );
    }
    Store::with_leaf_limit(
        model,
        options.expected_states,
        payload,
        options.tuning.table,
        if with_symmetries { usize::MAX } else { WIDEST },
    )
}

/// Expansions between two checks of the limits.
const POLL_INTERVAL: usize = 1 << 12;

/// A batch of states, with the process that it is sent to.
pub type Batch = (usize, Vec<u8>);

/// Returns the slot of a key in a filter of recent keys; its length is a power of two.
#[inline]
pub(crate) fn recent_slot(recent: &[u64], key: u64) -> usize {
    (spread(key) as usize) & (recent.len() - 1)
}

/// Fills the filter with keys that belong to other slots, so that every lookup misses.
fn no_recent_keys(length: usize) -> Vec<u64> {
    let mut places = vec![0; length];
    let first = recent_slot(&places, 0);
    let other = (1..).find(|key| recent_slot(&places, *key) != first);
    places[first] = other.expect("some key belongs to another slot");
    places
}

impl<'m> Partition<'m> {
    /// Creates the empty partition of process `me`.
    ///
    /// # Errors
    /// The model's values are not portable.
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
        let shared_cache = Arc::new(SharedGroupCache::new(
            model.groups().len(),
            options.cache_bytes.saturating_mul(4),
        ));
        let store = store(model, options, symmetries.is_some(), Payload::None);
        let (leaves, slots) = (store.leaves.len(), model.slots().len());
        let partition_leaves = options.leaves.as_ref().map_or(&[][..], |l| &l.partition_leaves);
        Ok(Self {
            model,
            portable,
            budget: budget.clone(),
            me,
            processes,
            expander: Expander::new(model, shared_cache, options)
                .with_symmetries(symmetries)
                .with_owner_hash(OwnerHash::new(leaves, partition_leaves)),
            found: Vec::new(),
            goal: DistributedGoal::default(),
            annotations: None,
            edges: None,
            removed: 0,
            lfp_part: 0,
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
            recent: no_recent_keys(options.tuning.recent_keys),
            tuning: options.tuning,
            unpacker: DeltaUnpacker::default(),
            sum: 0,
            packer: DeltaPacker::default(),
            senders: (0..processes).map(|_| Sender::new(leaves, slots)).collect(),
            receivers: (0..processes).map(|_| Receiver::new(leaves, slots)).collect(),
            store,
            tally: Tally::default(),
            surplus: 0,
            dead: Vec::new(),
            whole: true,
        })
    }

    /// Ends the search with an error if symmetries cost much more than they save.
    pub(crate) fn with_cost_monitor(mut self) -> Self {
        self.expander = self.expander.with_cost_monitor(true);
        self
    }

    /// Stores the initial state and puts it into level 0, if this process owns it.
    ///
    /// # Errors
    /// Errors of the model.
    pub fn insert_initial(&mut self) -> Result<(), Diagnostic> {
        if let Some(edges) = self.edges {
            return self.start_edges(edges);
        }
        self.whole = false;
        let vector = self.model.initial();
        let key = self.with_new_layout(|partition| {
            let key = partition.store.encode(&vector)?;
            partition.expander.representative(&partition.store, key)
        })?;
        if self.owner(key)? == self.me {
            self.pending.push(key);
            if let Some(annotations) = &mut self.annotations {
                annotations.brought.push(annotations.carrier.initial());
            }
            self.store_pending(0)?;
        }
        self.whole = true;
        Ok(())
    }

    /// True if no successor is missing. An error within a step can lose successors.
    pub fn is_consistent(&self) -> bool {
        self.whole && self.pending.is_empty() && self.batch.is_empty()
    }

    /// Returns the levels that have states here and were not begun, in ascending order.
    pub fn waiting_levels(&self) -> impl Iterator<Item = u64> + '_ {
        self.ahead.keys().copied()
    }
    /// Returns the lowest level that has states to expand; `None` if there is none.
    pub fn lowest_level(&self) -> Option<u64> {
        if self.is_busy() { Some(self.level) } else { self.waiting_levels().next() }
    }
    /// True if the current level has states left to expand.
    pub fn is_busy(&self) -> bool {
        !self.now.is_empty()
    }
    /// Begins a level; all its states must have arrived.
    pub fn begin_level(&mut self, level: u64) {
        self.level = level;
        self.now = self.ahead.remove(&level).unwrap_or_default();
        self.take_pending();
        // All states of a level may have been stored before.
        if !self.now.is_empty() {
            self.tally.levels = level + 1;
        }
    }

    /// Expands up to `most` states of the current level. Passes batches for the next level to
    /// `send`; at the end of the level all batches are sent.
    ///
    /// # Errors
    /// Errors of the model; the memory limit.
    pub fn expand(&mut self, most: usize, send: &mut dyn FnMut(Batch)) -> Result<(), Diagnostic> {
        if let Some(mut annotations) = self.annotations.take() {
            let result = match self.edges {
                Some(_) => self.expand_edges(&mut annotations, most, send),
                None => self.expand_annotated_states(&mut annotations, most, send),
            };
            self.annotations = Some(annotations);
            return result;
        }
        let expanded = self.expand_and_route(most, send);
        // A limit between two states loses no successors.
        let leaf_slots =
            self.route_successors(send).and_then(|()| self.store_pending(self.level + 1));
        if self.now.is_empty() {
            self.flush_batches(send);
        }
        expanded.and(leaf_slots)
    }

    /// Expands up to `most` states and routes the successors when there are many.
    fn expand_and_route(
        &mut self,
        most: usize,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        for _ in 0..most {
            if self.now.is_empty() {
                break;
            }
            self.make_room()?;
            // Keys change with the layout.
            let (key, orbit) = self.with_new_layout(|partition| {
                let key = partition.newest()?;
                let orbit = partition.expander.orbit(&partition.store, key, None)?;
                partition.expander.successors(&partition.store, key, &mut partition.found)?;
                Ok((key, orbit))
            })?;
            self.whole = false;
            self.now.pop();
            self.check_goal(key);
            self.surplus += orbit - 1;
            self.tally.transitions += orbit * self.found.len() as u64;
            if self.found.is_empty() {
                self.tally.deadlocks += orbit;
                if self.dead.len() < MAX_DEADLOCKS {
                    self.dead.push((key, orbit));
                }
            }
            self.batch.extend(self.found.iter().map(|step| step.key));
            self.sums.extend_from_slice(&self.expander.owner_hash.successor_hashes);
            self.members.extend_from_slice(&self.expander.members);
            self.whole = true;
            if self.batch.len() >= BATCH {
                self.route_successors(send)?;
            }
        }
        Ok(())
    }

    /// Stores the successors that this process owns, and sends the others.
    fn route_successors(&mut self, send: &mut dyn FnMut(Batch)) -> Result<(), Diagnostic> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.whole = false;
        let (batch, members) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.members));
        let sums = std::mem::take(&mut self.sums);
        // Load all filter slots first, so that their cache misses overlap.
        std::hint::black_box(
            batch.iter().fold(0, |acc, &key| acc ^ self.recent[recent_slot(&self.recent, key)]),
        );
        for (i, &key) in batch.iter().enumerate() {
            // Recently stored or sent.
            let slot = recent_slot(&self.recent, key);
            if std::mem::replace(&mut self.recent[slot], key) == key {
                continue;
            }
            let owner = self.owner_from(&sums, &members, i, key)?;
            if owner == self.me {
                self.pending.push(key);
                continue;
            }
            self.send_state(owner, None, send)?;
        }
        (self.batch, self.sums, self.members) = (batch, sums, members);
        self.batch.clear();
        self.sums.clear();
        self.members.clear();
        self.whole = true;
        if self.pending.len() >= BATCH { self.store_pending(self.level + 1) } else { Ok(()) }
    }

    /// Adds the state in `leaves`, with its annotation, to the batch for its owner. Sends the batch
    /// if it is full.
    pub(crate) fn send_state(
        &mut self,
        owner: usize,
        load: Option<(&mut dyn PortableAnnotator, usize, u32)>,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        self.tally.sent += 1;
        if let Some(batch) =
            self.senders[owner].add(&self.store, self.portable, &self.leaves, load)?
        {
            self.tally.sent_bytes += batch.len() as u64;
            send((owner, batch));
        }
        Ok(())
    }

    /// Sends the batches that are not full.
    pub fn flush_batches(&mut self, send: &mut dyn FnMut(Batch)) {
        for to in 0..self.processes {
            if let Some(batch) = self.senders[to].finish() {
                self.tally.sent_bytes += batch.len() as u64;
                send((to, batch));
            }
        }
    }

    /// Decodes a batch and stores its states in a level.
    ///
    /// # Errors
    /// The batch is malformed; the memory limit.
    pub fn receive(&mut self, from: usize, level: u64, batch: &[u8]) -> Result<(), Diagnostic> {
        let Some(place) = self.receivers.get_mut(from).filter(|_| from != self.me) else {
            return Err(Diagnostic::internal("a batch from an unknown process"));
        };
        let whole = std::mem::replace(&mut self.whole, false);
        let mut receiver = std::mem::take(place);
        let taken = self.decode_batch(&mut receiver, (from, level), batch);
        self.receivers[from] = receiver;
        taken?;
        self.whole = whole;
        Ok(())
    }

    fn decode_batch(
        &mut self,
        receiver: &mut Receiver,
        (from, level): (usize, u64),
        batch: &[u8],
    ) -> Result<(), Diagnostic> {
        let mut batch = receiver.open(batch)?;
        loop {
            let carrier = self
                .annotations
                .as_mut()
                .filter(|_| self.edges.is_none())
                .map(|c| (&mut *c.carrier as &mut dyn PortableAnnotator, from));
            let Some(load) = receiver.next(&self.store, self.portable, &mut batch, carrier)? else {
                break;
            };
            self.make_room()?;
            // The sender has already replaced it by the representative of its orbit.
            let key = self.with_new_layout(|partition| {
                Ok(partition.packer.pack(&partition.store, &receiver.state)?)
            })?;
            self.pending.push(key);
            if let Some(annotations) = self.annotations.as_mut().filter(|_| self.edges.is_none()) {
                annotations.brought.push(load);
            }
            if self.pending.len() >= BATCH {
                self.store_pending(level)?;
            }
        }
        self.store_pending(level)
    }

    /// Calls `see` with the deadlocks of this partition, up to a million, each with the size of its
    /// orbit.
    pub fn each_deadlock(&self, see: &mut dyn FnMut(&[u32], u64)) {
        self.dead.iter().for_each(|(key, orbit)| see(&self.store.vector(*key), *orbit));
    }

    /// Returns size and counts so far.
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

    /// Returns the key of the state that is expanded next: the last of the waiting ones.
    pub(crate) fn newest(&self) -> Result<u64, Diagnostic> {
        let key = self.now.last().copied();
        key.ok_or_else(|| Diagnostic::internal("the state to be expanded is gone"))
    }

    /// Computes the successors of the newest waiting state, which continues to wait. Returns its
    /// key, which changes with the layout.
    pub(crate) fn expand_newest(&mut self) -> Result<u64, Diagnostic> {
        self.with_new_layout(|partition| {
            let key = partition.newest()?;
            partition.expander.successors(&partition.store, key, &mut partition.found)?;
            Ok(key)
        })
    }

    /// Checks the limits of a pass over states, once for many of them: if the number of those left
    /// is a multiple of the interval.
    pub(crate) fn poll(&self, left: usize) -> Result<(), Diagnostic> {
        if !left.is_multiple_of(POLL_INTERVAL) {
            return Ok(());
        }
        let limits = self.budget.check(0).and_then(|()| self.budget.check_memory());
        limits.map_err(Diagnostic::stopped)
    }

    /// Retries `action` after changing the layout of the store, until the layout suffices.
    pub(crate) fn with_new_layout<T>(
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
        Err(index_too_wide())
    }

    pub(crate) fn fits_in_memory(&self, more: u64) -> bool {
        self.budget
            .limits()
            .max_memory
            .is_none_or(|m| mu_base::limits::resident_bytes() + more <= m)
    }

    /// Repacks all states. Temporarily needs memory for two copies.
    pub(crate) fn replan(&mut self) -> Result<(), Diagnostic> {
        if !self.fits_in_memory(self.store.table.bytes()) {
            return Err(Diagnostic::stopped(Stop::Memory));
        }
        let ahead = self.ahead.values_mut().flat_map(Queue::iter_mut);
        let dead = self.dead.iter_mut().map(|d| &mut d.0);
        let met =
            self.goal.hits.iter_mut().chain(self.history.values_mut().flat_map(Queue::iter_mut));
        let found = self.pending.iter_mut().chain(self.batch.iter_mut());
        self.store
            .replan(self.now.iter_mut().chain(ahead).chain(found).chain(dead).chain(met), None);
        self.recent = no_recent_keys(self.recent.len());
        Ok(())
    }

    /// Grows the table if it is crowded. Must not be called between the expansion of a state and
    /// the use of its successors.
    pub(crate) fn make_room(&mut self) -> Result<(), Diagnostic> {
        if !self.store.table.is_crowded() {
            return Ok(());
        }
        if self.store.could_be_short() && self.fits_in_memory(self.store.table.bytes()) {
            self.replan()?;
        }
        if self.store.table.is_crowded() { self.grow() } else { Ok(()) }
    }

    fn grow(&mut self) -> Result<(), Diagnostic> {
        if !self.fits_in_memory(self.store.table.growth_bytes()) {
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

    /// Stores the pending states in a level. Keys stay valid.
    fn store_pending(&mut self, level: u64) -> Result<(), Diagnostic> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.edges.is_some() {
            return self.update_edges(level);
        }
        if let Some(mut annotations) = self.annotations.take() {
            let result = self.store_annotated(&mut annotations, level);
            self.annotations = Some(annotations);
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
                        if self.goal.sought.is_some() {
                            let level = u32::try_from(level + 1).expect("fewer than 2^32 levels");
                            self.store.table.number(place).store(level, Ordering::Relaxed);
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

    /// Returns the owner of a state. If it is another process, leaves the state's leaves in
    /// `leaves`.
    pub(crate) fn owner(&mut self, key: u64) -> Result<usize, Diagnostic> {
        let sum = if self.unpacker.unpack_delta(&self.store, key) {
            self.expander.owner_hash_of(&self.store, &self.unpacker.leaves).map_err(halt_error)
        } else {
            self.update_hash()
        };
        // The hash does not reflect the leaves changed last.
        self.sum = sum.inspect_err(|_| self.unpacker.reset())?;
        let owner = self.owner_of_hash(self.sum);
        if owner != self.me {
            self.leaves.copy_from_slice(&self.unpacker.leaves);
        }
        Ok(owner)
    }

    /// Returns the owner of a successor found last; as [`Partition::owner`].
    pub(crate) fn owner_of_successor(&mut self, i: usize) -> Result<usize, Diagnostic> {
        let (sums, members) = (
            std::mem::take(&mut self.expander.owner_hash.successor_hashes),
            std::mem::take(&mut self.expander.members),
        );
        let owner = self.owner_from(&sums, &members, i, self.found[i].key);
        (self.expander.owner_hash.successor_hashes, self.expander.members) = (sums, members);
        owner
    }

    /// Returns the owner of the state at index `at` of `hashes` and `members`, or of `key` if these
    /// are empty.
    #[inline]
    fn owner_from(
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
            (None, Some(leaves)) => {
                self.expander.owner_hash_of(&self.store, leaves).map_err(halt_error)?
            }
            (None, None) => return self.owner(key),
        };
        let owner = self.owner_of_hash(sum);
        if owner != self.me {
            match leaves {
                Some(leaves) => self.leaves.copy_from_slice(leaves),
                None => {
                    self.unpacker.unpack_delta(&self.store, key);
                    self.sum = sum;
                    self.leaves.copy_from_slice(&self.unpacker.leaves);
                }
            }
        }
        Ok(owner)
    }

    /// Updates the owner hash by the leaves that differ from the state before.
    #[inline]
    fn update_hash(&mut self) -> Result<u64, Diagnostic> {
        let mut sum = self.sum;
        for &(leaf, old) in &self.unpacker.changed_leaves {
            let (leaf, new) = (leaf as usize, self.unpacker.leaves[leaf as usize]);
            if self.expander.owner_hash.is_partition_leaf(leaf) {
                let part =
                    |number| self.expander.leaf_hash(&self.store, leaf, number).map_err(halt_error);
                let [new, old] = [new, old].map(part);
                sum = sum.wrapping_add(new?).wrapping_sub(old?);
            }
        }
        Ok(sum)
    }

    fn owner_of_hash(&self, sum: u64) -> usize {
        ((u128::from(spread(sum)) * self.processes as u128) >> 64) as usize
    }

    /// Returns the owner of the state in `leaves`.
    pub(crate) fn owner_of_leaves(&mut self) -> Result<usize, Diagnostic> {
        let sum = self.expander.owner_hash_of(&self.store, &self.leaves).map_err(halt_error)?;
        Ok(self.owner_of_hash(sum))
    }

    /// Splits a leaf. Only at the end of a search, because queued keys become invalid.
    pub(crate) fn split(&mut self, leaf: usize) {
        self.store.replan(std::iter::empty(), Some(leaf));
        let leaves = self.store.leaves.len();
        self.expander.owner_hash = OwnerHash::new(leaves, &[]);
        self.leaves = vec![0; leaves];
    }

    /// Adds up the hashes of a state's leaves by class of leaves.
    pub(crate) fn class_hashes(
        &mut self,
        key: u64,
        classes: &[usize],
        sums: &mut [u64],
    ) -> Result<(), Diagnostic> {
        self.store.unpack(key, &mut self.leaves);
        sums.fill(0);
        for leaf in 0..self.leaves.len() {
            let part = self
                .expander
                .leaf_hash(&self.store, leaf, self.leaves[leaf])
                .map_err(halt_error)?;
            sums[classes[leaf]] = sums[classes[leaf]].wrapping_add(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributed::presearch::LeafLayout;
    use crate::table::TableSizes;
    use crate::tests::models::{Shape, arcx, counters, random, ring};
    use crate::tests::small;
    use crate::{Silent, explore};
    use mu_base::random::Random;
    use mu_model::hand::HandModel;

    /// Runs all partitions of a search in one thread, each with its own model.
    fn run_together(models: &[HandModel], options: &Options) -> Vec<Tally> {
        let count = models.len();
        let budget = Budget::default();
        let mut partitions: Vec<Partition> = models
            .iter()
            .enumerate()
            .map(|(i, m)| Partition::new(m, options, &budget, None, i, count).unwrap())
            .collect();
        partitions.iter_mut().for_each(|s| s.insert_initial().unwrap());
        let mut level = 0;
        while partitions.iter().any(|s| s.waiting_levels().next().is_some()) {
            let mut batches: Vec<(usize, Batch)> = Vec::new();
            for (from, partition) in partitions.iter_mut().enumerate() {
                assert!(partition.waiting_levels().all(|l| l == level));
                partition.begin_level(level);
                while partition.is_busy() {
                    partition.expand(7, &mut |batch| batches.push((from, batch))).unwrap();
                }
            }
            level += 1;
            for (from, (to, batch)) in batches {
                partitions[to].receive(from, level, &batch).unwrap();
            }
        }
        partitions.iter().map(Partition::tally).collect()
    }

    #[test]
    fn partitions_add_up_to_the_search_of_one_process() {
        let shape = Shape { slots: 5, values: 4, components: 3, groups: 9, labels: 3 };
        let mut makers: Vec<Box<dyn Fn() -> HandModel>> = (0..40)
            .map(|seed| Box::new(move || random(seed, shape)) as Box<dyn Fn() -> HandModel>)
            .collect();
        makers.push(Box::new(|| counters(4, 6)));
        makers.push(Box::new(|| ring(6, 3)));
        makers.push(Box::new(|| arcx(0)));
        let mut sent = 0;
        for (at, maker) in makers.iter().enumerate() {
            let options = Options { threads: 1, expected_states: 0, ..small() };
            let whole = explore(&maker(), &options, &Budget::default(), &Silent).unwrap();
            for count in [1, 2, 3, 5] {
                let models: Vec<HandModel> = (0..count).map(|_| maker()).collect();
                // Some leaves are partition leaves, others in each round; with one process all are.
                let leaves =
                    Store::with_leaf_limit(&models[0], 0, Payload::None, TableSizes::SMALL, WIDEST)
                        .leaves
                        .len();
                let partition_leaves = (0..leaves as u32)
                    .filter(|leaf| (leaf + at as u32).is_multiple_of(count as u32))
                    .collect();
                let options = Options {
                    leaves: Some(LeafLayout { leaf_slots: None, partition_leaves }),
                    ..options.clone()
                };
                let partitions = run_together(&models, &options);
                let sum = |of: &dyn Fn(&Tally) -> u64| partitions.iter().map(of).sum::<u64>();
                let found = (sum(&|t| t.states), sum(&|t| t.transitions), sum(&|t| t.deadlocks));
                assert_eq!(
                    found,
                    (whole.states, whole.transitions, whole.deadlocks),
                    "model {at}, {count} processes"
                );
                assert_eq!(
                    partitions.iter().map(|t| t.levels).max(),
                    Some(whole.levels),
                    "model {at}, {count} processes"
                );
                sent += sum(&|t| t.sent);
            }
        }
        assert!(sent > 10_000, "{sent} states sent");
    }

    #[test]
    fn partitions_have_similar_sizes() {
        let models: Vec<HandModel> = (0..5).map(|_| arcx(1)).collect();
        let partitions = run_together(&models, &small());
        let (least, most) = (
            partitions.iter().map(|t| t.states).min().unwrap(),
            partitions.iter().map(|t| t.states).max().unwrap(),
        );
        assert!(most - least < least / 20, "{least} to {most}");
    }

    #[test]
    fn damaged_batches_end_in_errors_not_in_panics() {
        let model = arcx(0);
        let options = small();
        let budget = Budget::default();
        let mut batches = Vec::new();
        for me in 0..2 {
            let mut partition = Partition::new(&model, &options, &budget, None, me, 2).unwrap();
            partition.insert_initial().unwrap();
            for level in 0..6 {
                partition.begin_level(level);
                while partition.is_busy() {
                    partition.expand(100, &mut |(_, batch)| batches.push(batch)).unwrap();
                }
            }
        }
        batches.retain(|p| p.len() > 8);
        assert!(!batches.is_empty());
        let takes = |bytes: &[u8]| {
            Partition::new(&model, &options, &budget, None, 0, 2)
                .unwrap()
                .receive(1, 1, bytes)
                .is_ok()
        };
        let mut random = Random::new(3);
        let mut refused = 0;
        for _ in 0..2000 {
            let mut bytes = batches[random.below(batches.len())].clone();
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
            assert!(!taken || way == 2, "accepted a truncated or extended batch: {bytes:?}");
        }
        assert!(refused > 1300, "{refused} refused");
        // A state with tuples of an earlier batch, and one with a tuple that was never sent.
        let first = batches.iter().find(|p| takes(p)).unwrap();
        let mut partition = Partition::new(&model, &options, &budget, None, 0, 2).unwrap();
        partition.receive(1, 1, first).unwrap();
        let leaves = partition.leaves.len();
        let mask: Vec<u8> = (0..leaves.div_ceil(8))
            .map(|byte| u8::MAX >> (8 * (byte + 1)).saturating_sub(leaves))
            .collect();
        let state = |tuple: u8| [vec![1], mask.clone(), vec![tuple], vec![1; leaves - 1]].concat();
        partition.receive(1, 1, &state(1)).unwrap();
        assert!(
            partition.receive(1, 1, &state(127)).is_err(),
            "accepted a tuple that was never sent"
        );
    }
}
