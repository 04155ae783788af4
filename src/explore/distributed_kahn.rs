//! Whether something can go on for ever along the steps of a model, found out by several processes:
//! Kahn's algorithm (1962), level by level.
//!
//! In: a [`Partition`] whose search with annotations is complete, and what of an annotation lasts
//! ([`super::PortableAnnotator::lasting`]). The states with something that lasts are the vertices, the steps
//! that take it on to something that lasts are the edges. The processes first count with each state
//! the edges that lead to it, then take away the states to which none leads, and with each of them
//! the edges that leave it; a state to which no edge leads any more goes next. If all are taken
//! away there is no cycle. With symmetries the graph is that of the orbits: a cycle there is one of
//! the model, since the group is finite.
//!
//! Cost: each of these states is expanded twice, and each edge between two processes travels twice,
//! without what it brings; the counts are where the search kept what waits. Invariants: both times
//! a state has the same edges; each edge leads to a state that is stored.

use std::sync::atomic::Ordering;

use super::annotate::Transfer;
use super::distributed_annotations::{Carried, PortableAnnotator};
use super::partition::{Batch, Partition};
use super::queue::Queue;
use mu_base::Diagnostic;

/// What a share does with the edges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    /// Counts them at the states that they lead to.
    Count,
    /// Takes them away.
    Take,
}

/// Bits of what waits, where the counts are.
const COUNT: u64 = u32::MAX as u64;

/// Whether a step takes something that lasts on.
fn goes_on(
    carrier: &mut dyn PortableAnnotator,
    lasting: u32,
    label: mu_base::ids::LabelId,
) -> Result<bool, Diagnostic> {
    Ok(match carrier.step(lasting, label)? {
        Transfer::Value(next) => carrier.lasting(next)? != 0,
        Transfer::Decided => {
            return Err(Diagnostic::internal("a step decides that decided nothing before"));
        }
    })
}

impl Partition<'_> {
    /// The search is complete, and nothing waits: the next one counts the edges along which
    /// something that lasts goes.
    pub fn count_edges(&mut self) {
        self.edges = Some(Edges::Count);
    }

    /// They are counted: the next search takes them away.
    pub fn take_edges(&mut self) {
        self.edges = Some(Edges::Take);
        self.taken = 0;
    }

    /// States taken away, and states from which something is to be taken.
    pub fn taken(&self) -> (u64, u64) {
        (self.taken, self.lasting)
    }

    /// What of the annotation of a state lasts.
    fn lasting_at(&self, carried: &mut Carried<'_>, key: u64) -> Result<u32, Diagnostic> {
        let place = self
            .store
            .table
            .find(key)
            .ok_or_else(|| Diagnostic::internal("a queued state is not in the store"))?;
        carried.carrier.lasting((self.store.table.pair(place).load(Ordering::Relaxed) >> 32) as u32)
    }

    /// Queues the states with something that lasts: all of them to count, those to which no edge
    /// leads to take away.
    pub(super) fn start_edges(&mut self, edges: Edges) -> Result<(), Diagnostic> {
        let Self { carried: Some(carried), store, ahead, lasting, .. } = self else {
            return Ok(());
        };
        let mut first = Queue::default();
        *lasting = 0;
        for (place, key) in store.table.entries() {
            let cell = store.table.pair(place);
            let there = cell.load(Ordering::Relaxed);
            if carried.carrier.lasting((there >> 32) as u32)? == 0 {
                continue;
            }
            *lasting += 1;
            match edges {
                Edges::Count => cell.store(there & !COUNT, Ordering::Relaxed),
                Edges::Take if there & COUNT != 0 => continue,
                Edges::Take => {}
            }
            first.push(key);
        }
        if !first.is_empty() {
            ahead.insert(0, first);
        }
        Ok(())
    }

    /// As [`Partition::expand`], for the edges.
    pub(super) fn follow_edges(
        &mut self,
        carried: &mut Carried<'_>,
        most: usize,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        for _ in 0..most {
            if self.now.is_empty() {
                break;
            }
            let key = self.settled(|share| {
                let key = *share
                    .now
                    .last()
                    .ok_or_else(|| Diagnostic::internal("the state to be expanded is gone"))?;
                share.expander.successors(&share.store, key, &mut share.found)?;
                Ok(key)
            })?;
            let lasting = self.lasting_at(carried, key)?;
            self.now.pop();
            self.taken += 1;
            for i in 0..self.found.len() {
                let (key, label) = (self.found[i].key, self.found[i].label);
                if !goes_on(&mut *carried.carrier, lasting, label)? {
                    continue;
                }
                let owner = self.owner_at(i)?;
                if owner == self.me {
                    self.pending.push(key);
                    continue;
                }
                self.post(owner, None, send)?;
            }
            if self.pending.len() >= super::search::BATCH {
                self.note_edges(self.level + 1)?;
            }
        }
        if self.now.is_empty() {
            self.close(send);
        }
        self.note_edges(self.level + 1)
    }

    /// Notes an edge to each pending state; those that it was the last to lead to are queued at
    /// this level.
    pub(super) fn note_edges(&mut self, level: u64) -> Result<(), Diagnostic> {
        let wrong = || Diagnostic::internal("the edges to a state are not those that were counted");
        let Some(edges) = self.edges else { return Ok(()) };
        let mut fresh = Vec::new();
        for key in self.pending.drain(..) {
            let cell = self.store.table.pair(self.store.table.find(key).ok_or_else(wrong)?);
            let there = cell.load(Ordering::Relaxed);
            let count = there as u32;
            let now = match edges {
                Edges::Count => count.checked_add(1),
                Edges::Take => count.checked_sub(1),
            };
            let now = now.ok_or_else(wrong)?;
            cell.store(there & !COUNT | u64::from(now), Ordering::Relaxed);
            if edges == Edges::Take && now == 0 {
                fresh.push(key);
            }
        }
        if !fresh.is_empty() {
            self.ahead.entry(level).or_default().extend(fresh);
        }
        Ok(())
    }
}
