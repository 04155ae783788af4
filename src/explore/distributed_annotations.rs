//! Annotations ([`super::annotate`]) in a search by several processes: each process has the joins
//! of its own states, and a state goes to another process together with what the step brings it.
//!
//! In: a [`PortableAnnotator`], which knows the semilattice and how its elements travel. Out: the join over
//! all paths for each state of this process ([`Partition::each_carried`]), or that some annotation
//! decides. With each state the share keeps two numbers, as the search on one machine does: all
//! that has come, and what of it waits. What waits at the states of a level is taken when the level
//! begins, so what comes later goes on in a later level: an element that is new to a state in level
//! *n* has a path of *n* steps and no shorter one.
//!
//! For a counterexample the search is made once more, without symmetries, and keeps what was taken
//! in each level ([`Partition::tracing`]). Then the way is found backwards, from what each process
//! holds: of a state and an atom of what it was brought, one of the level before that brings it.
//!
//! Cost: 8 bytes a state beside the store, 12 more for each time that something new comes to a
//! state if the way is to be found. Invariants: those of [`super::partition`]; what waits is part of
//! what has come; the result does not depend on the number of processes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::Options;
use super::annotate::{AnnotationWorker, Transfer};
use super::distributed_trace::{exported, imported};
use super::partition::{Batch, Partition, recent_slot, store};
use super::search::BATCH;
use super::store::Store;
use super::table::{Growth, Insert, Payload};
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage, Stop};
use mu_model::Model;

/// A semilattice whose elements go to other processes. Elements are numbers, which differ between
/// processes; 0 is the least everywhere.
pub trait PortableAnnotator: AnnotationWorker {
    /// What the initial state begins with; not 0.
    fn initial(&self) -> u32;
    /// A channel begins: whoever reads at its other end knows nothing yet.
    fn open(&mut self, channel: usize);
    /// Writes an element to a channel; what the other end does not know yet is written out.
    ///
    /// # Errors
    /// It means nothing to another process.
    fn export(&mut self, channel: usize, element: u32, out: &mut Vec<u8>)
    -> Result<(), Diagnostic>;
    /// Reads an element from a channel.
    ///
    /// # Errors
    /// The bytes are those of none.
    fn import(&mut self, channel: usize, bytes: &mut &[u8]) -> Result<u32, Diagnostic>;
    /// The atoms whose join an element is, each with a name that is the same in all processes.
    ///
    /// # Errors
    /// It means nothing to another process.
    fn atoms(&mut self, element: u32) -> Result<Vec<(Vec<u8>, u32)>, Diagnostic>;
    /// The part of an element that must not go on for ever; 0: nothing of it.
    ///
    /// # Errors
    /// The elements are too many.
    fn lasting(&mut self, element: u32) -> Result<u32, Diagnostic>;
    /// The atom of a name.
    ///
    /// # Errors
    /// The name is that of none.
    fn atom(&mut self, name: &[u8]) -> Result<u32, Diagnostic>;
}

/// What a share carries.
pub(super) struct Carried<'m> {
    pub carrier: Box<dyn PortableAnnotator + 'm>,
    /// Of the pending states: what is brought to each.
    pub brought: Vec<u32>,
    /// Of the states that are still to be expanded: what goes on from each, and whether it is the
    /// first that does.
    pub now: Vec<(u32, bool)>,
    /// By level: what was taken from its states, if that is kept.
    history: Option<BTreeMap<u64, Vec<u32>>>,
    /// By place of [`Partition::recent`]: the annotation sent last with that state, and the level of
    /// its source.
    pub lately: Vec<(u32, u64)>,
    /// True if an annotation came to a state that had been expanded: see [`Partition::is_forward`].
    pub backward: bool,
    decided: bool,
    /// Of the states that decide: whether their labels alone do, and the name of the atom.
    hits: Vec<(bool, Vec<u8>)>,
    places: Vec<Option<u64>>,
}

/// A state of a way: whether its labels alone decide, its values, the name of the atom that it is
/// about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceState {
    /// Whether what decides are the labels of the state's steps, not one of the steps.
    pub local: bool,
    /// Its values, in the numbers of this process.
    pub vector: Vec<u32>,
    /// What it is about, see [`PortableAnnotator::atom`].
    pub atom: Vec<u8>,
}

fn malformed() -> Diagnostic {
    Diagnostic::new(Stage::File, "a malformed stage of a way")
}

/// As bytes: those that are decided by labels alone first, then by state and atom.
fn written(local: bool, state: &[u8], atom: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::from(!local)];
    put(&mut out, state.len() as u64);
    out.extend(state);
    out.extend(atom);
    out
}

fn parted(mut bytes: &[u8]) -> Option<(bool, &[u8], &[u8])> {
    let (&later, rest) = bytes.split_first()?;
    bytes = rest;
    let length = usize::try_from(take(&mut bytes)?).ok()?;
    let (state, atom) = bytes.split_at_checked(length)?;
    Some((later == 0, state, atom))
}

impl TraceState {
    /// Reads one that another process gave.
    ///
    /// # Errors
    /// The bytes are those of none.
    pub fn read(model: &dyn Model, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let Some(portable) = model.portable() else { return Err(malformed()) };
        let (local, state, atom) = parted(bytes).ok_or_else(malformed)?;
        Ok(Self {
            local,
            vector: imported(portable, model.slots().len(), state)?,
            atom: atom.to_vec(),
        })
    }
}

impl<'m> Partition<'m> {
    /// The same share, still empty, of a search with annotations. `trace`: whether a way to what
    /// decides is to be found.
    #[must_use]
    pub fn carrying(
        mut self,
        carrier: Box<dyn PortableAnnotator + 'm>,
        trace: bool,
        options: &Options,
    ) -> Self {
        self.store = store(self.model, options, self.expander.symmetries.is_some(), Payload::Pair);
        let mut carrier = carrier;
        // One channel more, for files.
        (0..=self.processes).for_each(|channel| carrier.open(channel));
        self.carried = Some(Carried {
            carrier,
            brought: Vec::new(),
            now: Vec::new(),
            history: trace.then(BTreeMap::new),
            lately: vec![(0, 0); self.recent.len()],
            backward: false,
            decided: false,
            hits: Vec::new(),
            places: Vec::new(),
        });
        self
    }

    /// Whether parcels are to wait until no earlier level is left to begin, since what they bring
    /// belongs to their level.
    pub fn is_carrying(&self) -> bool {
        self.carried.is_some() && self.edges.is_none()
    }
    /// Whether something that decides was met, and no way to it is wanted.
    pub fn is_decided(&self) -> bool {
        self.carried.as_ref().is_some_and(|c| c.decided)
    }
    /// True if each annotated step led to a state that was not expanded yet: then the annotated
    /// steps form no cycle. A step to a state of another process is marked by the owner when it
    /// arrives, or by the sender if it is not sent.
    pub fn is_forward(&self) -> bool {
        self.carried.as_ref().is_none_or(|c| !c.backward)
    }

    /// For each state stored: its element, the size of its orbit, and the elements of the group
    /// that leave it as it is, without the identity.
    ///
    /// # Errors
    /// Those of `visit` and of the model.
    pub fn each_carried(
        &mut self,
        visit: &mut dyn FnMut(
            &mut dyn PortableAnnotator,
            u32,
            u64,
            &[u32],
        ) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let Self { carried: Some(carried), store, expander, .. } = self else { return Ok(()) };
        expander.follow(store);
        let mut fixed = Vec::new();
        for (place, key) in store.table.entries() {
            fixed.clear();
            let orbit = expander
                .orbit(store, key, Some(&mut fixed))
                .map_err(super::goal_search::settled)?;
            visit(
                &mut *carried.carrier,
                (store.table.pair(place).load(Ordering::Relaxed) >> 32) as u32,
                orbit,
                &fixed,
            )?;
        }
        Ok(())
    }

    /// Takes what waits at the states of the level that was begun.
    pub(super) fn take_up(&mut self) {
        let Some(carried) = self.carried.as_mut().filter(|_| self.edges.is_none()) else { return };
        carried.now.clear();
        let table = &self.store.table;
        self.now.retain(|key| {
            let Some(place) = table.find(key) else { return false };
            let there = table.pair(place).fetch_and(!u64::from(u32::MAX), Ordering::Relaxed);
            let (known, pending) = ((there >> 32) as u32, there as u32);
            if pending != 0 {
                carried.now.push((pending, known == pending));
            }
            pending != 0
        });
        if let Some(history) = &mut carried.history {
            history.insert(self.level, carried.now.iter().map(|n| n.0).collect());
            self.history.insert(self.level, self.now.clone());
        }
    }

    /// Puts what was taken and has not gone on back, so that the share can be written.
    ///
    /// # Errors
    /// Those of the semilattice.
    pub fn put_back(&mut self) -> Result<(), Diagnostic> {
        let Some(carried) = &mut self.carried else { return Ok(()) };
        for (key, (taken, _)) in self.now.iter().zip(carried.now.drain(..)) {
            let place = self
                .store
                .table
                .find(*key)
                .ok_or_else(|| Diagnostic::internal("a queued state is not in the store"))?;
            let cell = self.store.table.pair(place);
            let there = cell.load(Ordering::Relaxed);
            let (pending, _) = carried.carrier.join(there as u32, taken)?;
            cell.store(there & !u64::from(u32::MAX) | u64::from(pending), Ordering::Relaxed);
        }
        let now = std::mem::take(&mut self.now);
        if !now.is_empty() {
            self.ahead.entry(self.level).or_default().extend(now);
        }
        Ok(())
    }

    /// As [`Partition::expand`], with what the states carry.
    pub(super) fn carry(
        &mut self,
        carried: &mut Carried<'m>,
        most: usize,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        let mut labels = Vec::new();
        for _ in 0..most {
            let Some(&(taken, first)) = carried.now.last() else { break };
            self.room()?;
            let (key, orbit) = self.settled(|share| {
                let key = *share
                    .now
                    .last()
                    .ok_or_else(|| Diagnostic::internal("the state to be expanded is gone"))?;
                let orbit = if first { share.expander.orbit(&share.store, key, None)? } else { 1 };
                share.expander.successors(&share.store, key, &mut share.found)?;
                Ok((key, orbit))
            })?;
            labels.clear();
            labels.extend(self.found.iter().map(|s| s.label));
            // Nothing is popped before all is done: after an error the state waits again. What went
            // on before it may go on twice.
            let decided = self.carry_on(carried, taken, &labels, send)?;
            self.now.pop();
            carried.now.pop();
            self.tally.transitions += self.found.len() as u64;
            self.surplus += orbit - 1;
            self.tally.deadlocks += if first && self.found.is_empty() { orbit } else { 0 };
            match decided {
                Some(_) if carried.history.is_none() => {
                    carried.decided = true;
                    return Ok(());
                }
                Some(local) => {
                    let atom = deciding(&mut *carried.carrier, taken, &labels, local)?;
                    self.quest.hits.push(key);
                    self.quest.level = Some(self.level);
                    carried.hits.push((local, atom));
                }
                None => {}
            }
            if self.pending.len() >= BATCH || self.now.is_empty() {
                self.place_carried(carried, self.level + 1)?;
            }
        }
        if self.now.is_empty() {
            self.close(send);
        }
        self.place_carried(carried, self.level + 1)
    }

    /// Carries on what was taken from a state whose steps are found; whether that decides, and if
    /// so by the labels alone.
    fn carry_on(
        &mut self,
        carried: &mut Carried<'m>,
        taken: u32,
        labels: &[mu_base::ids::LabelId],
        send: &mut dyn FnMut(Batch),
    ) -> Result<Option<bool>, Diagnostic> {
        let flow = match carried.carrier.enter(taken, labels)? {
            Transfer::Decided => return Ok(Some(true)),
            Transfer::Value(0) => return Ok(None),
            Transfer::Value(flow) => flow,
        };
        for i in 0..self.found.len() {
            let brought = match carried.carrier.step(flow, self.found[i].label)? {
                Transfer::Decided => return Ok(Some(false)),
                Transfer::Value(0) => continue,
                Transfer::Value(value) => match self.expander.moved.get(i) {
                    None | Some(0) => value,
                    Some(&element) => carried.carrier.image(element as usize - 1, value)?,
                },
            };
            let key = self.found[i].key;
            let owner = self.owner_at(i)?;
            if owner == self.me {
                self.pending.push(key);
                carried.brought.push(brought);
                continue;
            }
            if self.is_known_to_owner(carried, key, brought) {
                continue;
            }
            self.post(owner, Some((&mut *carried.carrier, owner, brought)), send)?;
        }
        Ok(None)
    }

    /// True if a state of another process was sent lately with the same annotation, so that it
    /// need not be sent again.
    ///
    /// The owner cannot mark a step that does not arrive, so a step back is marked here. If the
    /// state was sent from an earlier level, its owner expands it at this level at the latest, and
    /// this step would arrive at the next one. If it was sent from this level, both arrive before
    /// the next level begins, and the one that is sent marks what the other would.
    fn is_known_to_owner(&mut self, carried: &mut Carried<'m>, key: u64, brought: u32) -> bool {
        let slot = recent_slot(key);
        let before = (std::mem::replace(&mut self.recent[slot], key), carried.lately[slot]);
        carried.lately[slot] = (brought, self.level);
        let (was, (annotation, level)) = before;
        let known = was == key && annotation == brought;
        carried.backward |= known && level != self.level;
        known
    }

    /// Stores what is pending, and joins what is brought: to states of this level.
    pub(super) fn place_carried(
        &mut self,
        carried: &mut Carried<'m>,
        level: u64,
    ) -> Result<(), Diagnostic> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.hashes.clear();
        self.hashes.extend(self.pending.iter().map(|&key| self.store.table.hash(key)));
        std::hint::black_box(
            self.hashes.iter().fold(0, |acc, &hash| acc ^ self.store.table.touch(hash)),
        );
        let mut fresh = self.ahead.remove(&level).unwrap_or_default();
        let mut new = 0;
        let mut result = Ok(());
        carried.places.clear();
        for &hash in &self.hashes {
            let place = loop {
                match self.store.table.insert_hashed(hash) {
                    Insert::New(place) => {
                        new += 1;
                        break Some(place);
                    }
                    Insert::Old(place) => break Some(place),
                    Insert::Full => {
                        self.store.table.add_len(std::mem::take(&mut new));
                        if !self.fits(self.store.table.growth_bytes()) {
                            result = Err(Diagnostic::stopped(Stop::Memory));
                            break None;
                        }
                        self.store.table.grow(Growth { generous: false, helpers: 0 });
                        // Places are those of the table before.
                        carried.places.iter_mut().zip(&self.hashes).for_each(|(place, hash)| {
                            *place = self.store.table.find(self.store.table.key(*hash));
                        });
                    }
                }
            };
            carried.places.push(place);
        }
        self.store.table.add_len(new);
        let brought = carried.brought.drain(..);
        for ((key, place), brought) in
            self.pending.drain(..).zip(carried.places.drain(..)).zip(brought)
        {
            let Some(place) = place.filter(|_| result.is_ok()) else { continue };
            match joined(&mut *carried.carrier, &self.store, place, brought) {
                Ok((queued, backward)) => {
                    carried.backward |= backward;
                    if queued {
                        fresh.push(key);
                    }
                }
                Err(error) => result = Err(error),
            }
        }
        self.whole &= result.is_ok();
        if !fresh.is_empty() {
            self.ahead.insert(level, fresh);
        }
        result
    }

    /// The least stage that decides here, as bytes.
    pub(super) fn least_deciding(&self) -> Result<Option<Vec<u8>>, Diagnostic> {
        let mut least: Option<Vec<u8>> = None;
        for (key, (local, atom)) in
            self.quest.hits.iter().zip(self.carried.iter().flat_map(|c| &c.hits))
        {
            let bytes = written(*local, &exported(self.portable, &self.store.vector(*key))?, atom);
            if least.as_ref().is_none_or(|l| bytes < *l) {
                least = Some(bytes);
            }
        }
        Ok(least)
    }

    /// The least of the stages of a level here that bring a state the atom that a stage is about.
    pub(super) fn bringing(
        &mut self,
        carried: &mut Carried<'m>,
        level: u64,
        stage: &[u8],
    ) -> Result<Option<Vec<u8>>, Diagnostic> {
        let (_, state, name) = parted(stage).ok_or_else(malformed)?;
        let vector = imported(self.portable, self.model.slots().len(), state)?;
        let atom = carried.carrier.atom(name)?;
        let target = self.settled(|share| Ok(share.store.encode(&vector)?))?;
        // Another layout gives all of these other keys.
        self.quest.hits = vec![target];
        self.now = self.history.remove(&level).unwrap_or_default();
        let mut taken = carried.history.as_mut().and_then(|h| h.remove(&level)).unwrap_or_default();
        let mut least: Option<Vec<u8>> = None;
        let mut labels = Vec::new();
        while let Some(own) = taken.pop() {
            if taken.len().is_multiple_of(super::distributed_trace::LOOK) {
                self.budget
                    .check(0)
                    .and_then(|()| self.budget.check_memory())
                    .map_err(Diagnostic::stopped)?;
            }
            let key = self.settled(|share| {
                let key = *share
                    .now
                    .last()
                    .ok_or_else(|| Diagnostic::internal("the state to be expanded is gone"))?;
                share.expander.successors(&share.store, key, &mut share.found)?;
                Ok(key)
            })?;
            self.now.pop();
            let target = self.quest.hits.first().copied();
            if !self.found.iter().any(|s| Some(s.key) == target) {
                continue;
            }
            labels.clear();
            labels.extend(self.found.iter().map(|s| s.label));
            let Transfer::Value(flow) = carried.carrier.enter(own, &labels)? else { continue };
            let mut first: Option<Vec<u8>> = None;
            for (own_name, own) in carried.carrier.atoms(flow)? {
                for step in self.found.iter().filter(|s| Some(s.key) == target) {
                    let Transfer::Value(value) = carried.carrier.step(own, step.label)? else {
                        continue;
                    };
                    if value != 0
                        && carried.carrier.join(value, atom)?.1 == 0
                        && first.as_ref().is_none_or(|f| own_name < *f)
                    {
                        first = Some(own_name.clone());
                    }
                }
            }
            if let Some(name) = first {
                let bytes =
                    written(false, &exported(self.portable, &self.store.vector(key))?, &name);
                if least.as_ref().is_none_or(|l| bytes < *l) {
                    least = Some(bytes);
                }
            }
        }
        Ok(least)
    }
}

/// The least name of an atom of what was taken from a state that decides there.
fn deciding(
    carrier: &mut dyn PortableAnnotator,
    taken: u32,
    labels: &[mu_base::ids::LabelId],
    local: bool,
) -> Result<Vec<u8>, Diagnostic> {
    let mut least: Option<Vec<u8>> = None;
    for (name, atom) in carrier.atoms(taken)? {
        let decides = match (carrier.enter(atom, labels)?, local) {
            (Transfer::Decided, _) => local,
            (Transfer::Value(0), _) | (_, true) => false,
            (Transfer::Value(flow), false) => {
                let mut decides = false;
                for label in labels {
                    decides |= carrier.step(flow, *label)? == Transfer::Decided;
                }
                decides
            }
        };
        if decides && least.as_ref().is_none_or(|l| name < *l) {
            least = Some(name);
        }
    }
    least.ok_or_else(|| Diagnostic::internal("no atom of what decides does"))
}

/// Joins something to what a state has: whether the state is to be queued, and whether something
/// had gone on from it.
fn joined(
    carrier: &mut dyn PortableAnnotator,
    store: &Store,
    place: u64,
    new: u32,
) -> Result<(bool, bool), Diagnostic> {
    let cell = store.table.pair(place);
    let there = cell.load(Ordering::Relaxed);
    let (known, pending) = ((there >> 32) as u32, there as u32);
    let backward = known != 0 && pending == 0;
    let (both, fresh) = if known == new { (known, 0) } else { carrier.join(known, new)? };
    if fresh == 0 {
        return Ok((false, backward));
    }
    let more = if pending == 0 { fresh } else { carrier.join(pending, fresh)?.0 };
    cell.store(u64::from(both) << 32 | u64::from(more), Ordering::Relaxed);
    Ok((pending == 0, backward))
}

#[cfg(test)]
#[path = "distributed_annotations/tests.rs"]
mod tests;
