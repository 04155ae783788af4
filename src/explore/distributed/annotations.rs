//! Distributed annotations ([`crate::annotate`]): each process stores the joins of its own states,
//! and a state is sent to its owner together with the annotation that the step propagates.
//!
//! In: a [`PortableAnnotator`], which computes joins and serialises elements. Out: for each state
//! of this process the join over all paths ([`Partition::each_annotated`]), or that some annotation
//! decides. As in one process, each state has two numbers: the known annotation, and its pending
//! part. The pending parts of a level's states are taken when the level begins, so later arrivals
//! propagate in a later level. Hence an element that is new to a state in level *n* has a path of
//! *n* steps and no shorter one.
//!
//! For a counterexample the search runs once more, without symmetries, and records what was taken
//! in each level. Then the path is found backwards: each process finds a state of the previous
//! level that brings the given state the given atom.
//!
//! Cost: 8 bytes a state in addition to the store; if a path is wanted, 12 more for each time that
//! a state receives something new. Invariants: those of [`super::partition`]; the pending part is
//! part of the known annotation; the result does not depend on the number of processes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::partition::{Batch, Partition, recent_slot, store};
use super::trace::{export_state, import_state};
use crate::Options;
use crate::annotate::{AnnotationWorker, Transfer};
use crate::search::BATCH;
use crate::store::Store;
use crate::table::{Growth, Insert, Payload};
use mu_base::narrow;
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage, Stop};
use mu_model::Model;

/// A semilattice with elements that can be sent to other processes. Elements are numbers that
/// differ between processes; 0 is the least element everywhere.
pub trait PortableAnnotator: AnnotationWorker {
    /// Returns the annotation of the initial state; not 0.
    fn initial(&self) -> u32;
    /// Opens a channel; its receiver knows no elements yet.
    fn open(&mut self, channel: usize);
    /// Writes an element to a channel. Parts that the receiver does not know are written in full.
    ///
    /// # Errors
    /// The element is not portable.
    fn export(&mut self, channel: usize, element: u32, out: &mut Vec<u8>)
    -> Result<(), Diagnostic>;
    /// Reads an element from a channel.
    ///
    /// # Errors
    /// The bytes are malformed.
    fn import(&mut self, channel: usize, bytes: &mut &[u8]) -> Result<u32, Diagnostic>;
    /// Returns atoms with the join `element`, each with a name that is equal in all processes.
    ///
    /// # Errors
    /// The element is not portable.
    fn atoms(&mut self, element: u32) -> Result<Vec<(Vec<u8>, u32)>, Diagnostic>;
    /// Returns the part of `element` under a least fixed point; 0 if none.
    ///
    /// # Errors
    /// There are too many elements.
    fn lfp_part(&mut self, element: u32) -> Result<u32, Diagnostic>;
    /// Returns the atom with this name.
    ///
    /// # Errors
    /// No atom has the name.
    fn atom(&mut self, name: &[u8]) -> Result<u32, Diagnostic>;
}

/// Annotations of a partition.
pub(crate) struct DistributedAnnotations<'m> {
    pub carrier: Box<dyn PortableAnnotator + 'm>,
    /// By pending state: the annotation that arrives there.
    pub brought: Vec<u32>,
    /// By frontier state: the annotation that propagates from it, and true if it is the first one
    /// to do so.
    pub now: Vec<(u32, bool)>,
    /// By level: the annotations taken from its states; only if a path is wanted.
    history: Option<BTreeMap<u64, Vec<u32>>>,
    /// By slot of [`Partition::recent`]: the annotation sent last with that state, and the level of
    /// its source.
    pub last_sent: Vec<(u32, u64)>,
    /// True if an annotation came to a state that had been expanded: see [`Partition::is_forward`].
    pub backward: bool,
    decided: bool,
    /// By deciding state: true if its labels alone decide, and the name of the atom.
    hits: Vec<(bool, Vec<u8>)>,
    places: Vec<Option<u64>>,
}

/// A state of the path to a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceState {
    /// True if the labels of the state's steps decide, not a single step.
    pub local: bool,
    /// Slot values, in the numbers of this process.
    pub vector: Vec<u32>,
    /// Name of the atom, for [`PortableAnnotator::atom`].
    pub atom: Vec<u8>,
}

fn malformed_error() -> Diagnostic {
    Diagnostic::new(Stage::File, "a malformed path state from another process")
}

/// Encodes a path state. States that labels alone decide sort first, then by state and atom.
fn encode(local: bool, state: &[u8], atom: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::from(!local)];
    put(&mut out, state.len() as u64);
    out.extend(state);
    out.extend(atom);
    out
}

fn decode(mut bytes: &[u8]) -> Option<(bool, &[u8], &[u8])> {
    let (&later, rest) = bytes.split_first()?;
    bytes = rest;
    let length = usize::try_from(take(&mut bytes)?).ok()?;
    let (state, atom) = bytes.split_at_checked(length)?;
    Some((later == 0, state, atom))
}

impl TraceState {
    /// Decodes a state from another process.
    ///
    /// # Errors
    /// The bytes are malformed.
    pub fn read(model: &dyn Model, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let Some(portable) = model.portable() else { return Err(malformed_error()) };
        let (local, state, atom) = decode(bytes).ok_or_else(malformed_error)?;
        Ok(Self {
            local,
            vector: import_state(portable, model.slots().len(), state)?,
            atom: atom.to_vec(),
        })
    }
}

impl<'m> Partition<'m> {
    /// Turns an empty partition into one of a search with annotations. `trace`: a path to the
    /// decision is wanted.
    #[must_use]
    pub fn with_annotations(
        mut self,
        carrier: Box<dyn PortableAnnotator + 'm>,
        trace: bool,
        options: &Options,
    ) -> Self {
        self.store = store(self.model, options, self.expander.symmetries.is_some(), Payload::Pair);
        let mut carrier = carrier;
        // One additional channel for files.
        (0..=self.processes).for_each(|channel| carrier.open(channel));
        self.annotations = Some(DistributedAnnotations {
            carrier,
            brought: Vec::new(),
            now: Vec::new(),
            history: trace.then(BTreeMap::new),
            last_sent: vec![(0, 0); self.recent.len()],
            backward: false,
            decided: false,
            hits: Vec::new(),
            places: Vec::new(),
        });
        self
    }

    /// True if batches must wait until all earlier levels have begun, because their annotations
    /// belong to a level.
    pub fn has_annotations(&self) -> bool {
        self.annotations.is_some() && self.edges.is_none()
    }
    /// True if an annotation decided, and no path to it is wanted.
    pub fn is_decided(&self) -> bool {
        self.annotations.as_ref().is_some_and(|c| c.decided)
    }
    /// True if each annotated step led to a state that was not expanded yet: then the annotated
    /// steps form no cycle. A step to a state of another process is marked by the owner when it
    /// arrives, or by the sender if it is not sent.
    pub fn is_forward(&self) -> bool {
        self.annotations.as_ref().is_none_or(|c| !c.backward)
    }

    /// Visits each stored state: its annotation, the size of its orbit, and the group elements that
    /// fix it, without the identity.
    ///
    /// # Errors
    /// Errors of `visit` and of the model.
    pub fn each_annotated(
        &mut self,
        visit: &mut dyn FnMut(
            &mut dyn PortableAnnotator,
            u32,
            u64,
            &[u32],
        ) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let Self { annotations: Some(annotations), store, expander, .. } = self else {
            return Ok(());
        };
        expander.follow(store);
        let mut fixed = Vec::new();
        for (place, key) in store.table.entries() {
            fixed.clear();
            let orbit = expander
                .orbit(store, key, Some(&mut fixed))
                .map_err(crate::goal_search::halt_error)?;
            visit(
                &mut *annotations.carrier,
                narrow::high(store.table.pair(place).load(Ordering::Relaxed)),
                orbit,
                &fixed,
            )?;
        }
        Ok(())
    }

    /// Takes the pending annotations of the states of the level that begins.
    pub(crate) fn take_pending(&mut self) {
        let Some(annotations) = self.annotations.as_mut().filter(|_| self.edges.is_none()) else {
            return;
        };
        annotations.now.clear();
        let table = &self.store.table;
        self.now.retain(|key| {
            let Some(place) = table.find(key) else { return false };
            let there = table.pair(place).fetch_and(!u64::from(u32::MAX), Ordering::Relaxed);
            let (known, pending) = (narrow::high(there), narrow::low(there));
            if pending != 0 {
                annotations.now.push((pending, known == pending));
            }
            pending != 0
        });
        if let Some(history) = &mut annotations.history {
            history.insert(self.level, annotations.now.iter().map(|n| n.0).collect());
            self.history.insert(self.level, self.now.clone());
        }
    }

    /// Makes the taken but not propagated annotations pending again, so that the partition can be
    /// written.
    ///
    /// # Errors
    /// Errors of the semilattice.
    pub fn put_back(&mut self) -> Result<(), Diagnostic> {
        let Some(annotations) = &mut self.annotations else { return Ok(()) };
        for (key, (taken, _)) in self.now.iter().zip(annotations.now.drain(..)) {
            let place = self
                .store
                .table
                .find(*key)
                .ok_or_else(|| Diagnostic::internal("a queued state is not in the store"))?;
            let cell = self.store.table.pair(place);
            let there = cell.load(Ordering::Relaxed);
            let (pending, _) = annotations.carrier.join(narrow::low(there), taken)?;
            cell.store(there & !u64::from(u32::MAX) | u64::from(pending), Ordering::Relaxed);
        }
        let now = std::mem::take(&mut self.now);
        if !now.is_empty() {
            self.ahead.entry(self.level).or_default().extend(now);
        }
        Ok(())
    }

    /// Expands states as [`Partition::expand`], and propagates their annotations.
    pub(crate) fn expand_annotated_states(
        &mut self,
        annotations: &mut DistributedAnnotations<'m>,
        most: usize,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        let mut labels = Vec::new();
        for _ in 0..most {
            let Some(&(taken, first)) = annotations.now.last() else { break };
            self.make_room()?;
            let (key, orbit) = self.with_new_layout(|partition| {
                let key = partition.newest()?;
                let orbit =
                    if first { partition.expander.orbit(&partition.store, key, None)? } else { 1 };
                partition.expander.successors(&partition.store, key, &mut partition.found)?;
                Ok((key, orbit))
            })?;
            labels.clear();
            labels.extend(self.found.iter().map(|s| s.label));
            // Pop only after success: after an error the state is pending again, and propagated
            // parts may be propagated twice.
            let decided = self.propagate(annotations, taken, &labels, send)?;
            self.now.pop();
            annotations.now.pop();
            self.tally.transitions += self.found.len() as u64;
            self.surplus += orbit - 1;
            self.tally.deadlocks += if first && self.found.is_empty() { orbit } else { 0 };
            match decided {
                Some(_) if annotations.history.is_none() => {
                    annotations.decided = true;
                    return Ok(());
                }
                Some(local) => {
                    let atom = deciding_atom(&mut *annotations.carrier, taken, &labels, local)?;
                    self.goal.hits.push(key);
                    self.goal.level = Some(self.level);
                    annotations.hits.push((local, atom));
                }
                None => {}
            }
            if self.pending.len() >= BATCH || self.now.is_empty() {
                self.store_annotated(annotations, self.level + 1)?;
            }
        }
        if self.now.is_empty() {
            self.flush_batches(send);
        }
        self.store_annotated(annotations, self.level + 1)
    }

    /// Propagates the annotation taken from a state with its steps in `found`. Returns
    /// `Some(labels alone decide)` if it decides.
    fn propagate(
        &mut self,
        annotations: &mut DistributedAnnotations<'m>,
        taken: u32,
        labels: &[mu_base::ids::LabelId],
        send: &mut dyn FnMut(Batch),
    ) -> Result<Option<bool>, Diagnostic> {
        let flow = match annotations.carrier.enter(taken, labels)? {
            Transfer::Decided => return Ok(Some(true)),
            Transfer::Value(0) => return Ok(None),
            Transfer::Value(flow) => flow,
        };
        for i in 0..self.found.len() {
            let brought = match annotations.carrier.step(flow, self.found[i].label)? {
                Transfer::Decided => return Ok(Some(false)),
                Transfer::Value(0) => continue,
                Transfer::Value(value) => match self.expander.moved.get(i) {
                    None | Some(0) => value,
                    Some(&element) => annotations.carrier.image(element as usize - 1, value)?,
                },
            };
            let key = self.found[i].key;
            let owner = self.owner_of_successor(i)?;
            if owner == self.me {
                self.pending.push(key);
                annotations.brought.push(brought);
                continue;
            }
            if self.is_known_to_owner(annotations, key, brought) {
                continue;
            }
            self.send_state(owner, Some((&mut *annotations.carrier, owner, brought)), send)?;
        }
        Ok(None)
    }

    /// True if a state of another process was recently sent with the same annotation, so that it
    /// need not be sent again.
    ///
    /// The owner cannot mark a step that does not arrive, so a backward step is marked here. If the
    /// state was sent from an earlier level, its owner expands it at this level at the latest, and
    /// this step would arrive at the next one. If it was sent from this level, both arrive before
    /// the next level begins, and the one that is sent marks the step.
    fn is_known_to_owner(
        &mut self,
        annotations: &mut DistributedAnnotations<'m>,
        key: u64,
        brought: u32,
    ) -> bool {
        let slot = recent_slot(&self.recent, key);
        let before = (std::mem::replace(&mut self.recent[slot], key), annotations.last_sent[slot]);
        annotations.last_sent[slot] = (brought, self.level);
        let (was, (annotation, level)) = before;
        let known = was == key && annotation == brought;
        annotations.backward |= known && level != self.level;
        known
    }

    /// Stores the pending states and joins their annotations; these are states of `level`.
    pub(crate) fn store_annotated(
        &mut self,
        annotations: &mut DistributedAnnotations<'m>,
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
        annotations.places.clear();
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
                        if !self.fits_in_memory(self.store.table.growth_bytes()) {
                            result = Err(Diagnostic::stopped(Stop::Memory));
                            break None;
                        }
                        self.store.table.grow(Growth { generous: false, helpers: 0 });
                        // Places belong to the table before it grew.
                        annotations.places.iter_mut().zip(&self.hashes).for_each(
                            |(place, hash)| {
                                *place = self.store.table.find(self.store.table.key(*hash));
                            },
                        );
                    }
                }
            };
            annotations.places.push(place);
        }
        self.store.table.add_len(new);
        let brought = annotations.brought.drain(..);
        for ((key, place), brought) in
            self.pending.drain(..).zip(annotations.places.drain(..)).zip(brought)
        {
            let Some(place) = place.filter(|_| result.is_ok()) else { continue };
            match join_into(&mut *annotations.carrier, &self.store, place, brought) {
                Ok((queued, backward)) => {
                    annotations.backward |= backward;
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

    /// Returns the least deciding path state of this process, encoded.
    pub(crate) fn least_deciding(&self) -> Result<Option<Vec<u8>>, Diagnostic> {
        let mut least: Option<Vec<u8>> = None;
        for (key, (local, atom)) in
            self.goal.hits.iter().zip(self.annotations.iter().flat_map(|c| &c.hits))
        {
            let bytes =
                encode(*local, &export_state(self.portable, &self.store.vector(*key))?, atom);
            if least.as_ref().is_none_or(|l| bytes < *l) {
                least = Some(bytes);
            }
        }
        Ok(least)
    }

    /// Returns the least path state of a level in this process that brings the atom of `stage` to
    /// its state.
    pub(crate) fn predecessor_of(
        &mut self,
        annotations: &mut DistributedAnnotations<'m>,
        level: u64,
        stage: &[u8],
    ) -> Result<Option<Vec<u8>>, Diagnostic> {
        let (_, state, name) = decode(stage).ok_or_else(malformed_error)?;
        let vector = import_state(self.portable, self.model.slots().len(), state)?;
        let atom = annotations.carrier.atom(name)?;
        let target = self.with_new_layout(|partition| Ok(partition.store.encode(&vector)?))?;
        // Keys change with the layout.
        self.goal.hits = vec![target];
        self.now = self.history.remove(&level).unwrap_or_default();
        let mut taken =
            annotations.history.as_mut().and_then(|h| h.remove(&level)).unwrap_or_default();
        let mut least: Option<Vec<u8>> = None;
        let mut labels = Vec::new();
        while let Some(own) = taken.pop() {
            self.poll(taken.len())?;
            let key = self.expand_newest()?;
            self.now.pop();
            let target = self.goal.hits.first().copied();
            if !self.found.iter().any(|s| Some(s.key) == target) {
                continue;
            }
            labels.clear();
            labels.extend(self.found.iter().map(|s| s.label));
            let Transfer::Value(flow) = annotations.carrier.enter(own, &labels)? else { continue };
            let mut first: Option<Vec<u8>> = None;
            for (own_name, own) in annotations.carrier.atoms(flow)? {
                for step in self.found.iter().filter(|s| Some(s.key) == target) {
                    let Transfer::Value(value) = annotations.carrier.step(own, step.label)? else {
                        continue;
                    };
                    if value != 0
                        && annotations.carrier.join(value, atom)?.1 == 0
                        && first.as_ref().is_none_or(|f| own_name < *f)
                    {
                        first = Some(own_name.clone());
                    }
                }
            }
            if let Some(name) = first {
                let bytes =
                    encode(false, &export_state(self.portable, &self.store.vector(key))?, &name);
                if least.as_ref().is_none_or(|l| bytes < *l) {
                    least = Some(bytes);
                }
            }
        }
        Ok(least)
    }
}

/// Returns the least name of an atom of the taken annotation that decides at a state.
fn deciding_atom(
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
    least.ok_or_else(|| Diagnostic::internal("no atom of a deciding annotation decides"))
}

/// Joins `new` into a state's annotation. Returns (the state must be queued, some part was
/// propagated before).
fn join_into(
    carrier: &mut dyn PortableAnnotator,
    store: &Store,
    place: u64,
    new: u32,
) -> Result<(bool, bool), Diagnostic> {
    let cell = store.table.pair(place);
    let there = cell.load(Ordering::Relaxed);
    let (known, pending) = (narrow::high(there), narrow::low(there));
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
#[path = "annotations/tests.rs"]
mod tests;
