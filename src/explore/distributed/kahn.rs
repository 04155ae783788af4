//! Distributed cycle search by Kahn's algorithm (1962), level by level.
//!
//! In: a [`Partition`] with a complete search with annotations, and the part of an annotation that
//! belongs to least fixed points ([`crate::PortableAnnotator::lfp_part`]). States with a nonempty
//! part are the vertices; steps that propagate it to a nonempty part are the edges. First the
//! processes count the incoming edges of each vertex. Then they remove the vertices without
//! incoming edges, and with each the edges that leave it; a vertex that loses its last incoming
//! edge is removed is next. The graph has a cycle if and only if some vertex remains. With
//! symmetries this is the graph of the orbits: since the group is finite, a cycle there implies a
//! cycle of the model.
//!
//! Cost: each vertex is expanded twice, and each edge between two processes is sent twice, without
//! annotations. The counts reuse the word of the pending annotations. Invariants: both passes see
//! the same edges; each edge leads to a stored state.

use std::sync::atomic::Ordering;

use super::annotations::{DistributedAnnotations, PortableAnnotator};
use super::partition::{Batch, Partition};
use crate::annotate::Transfer;
use crate::queue::Queue;
use mu_base::Diagnostic;
use mu_base::narrow;

/// A pass over the edges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edges {
    /// Counts the incoming edges of each vertex.
    Count,
    /// Removes edges.
    Remove,
}

/// The bits of an annotation word that hold the count.
const COUNT: u64 = u32::MAX as u64;

/// True if a step propagates the part of a least fixed point.
fn propagates(
    carrier: &mut dyn PortableAnnotator,
    lfp_part: u32,
    label: mu_base::ids::LabelId,
) -> Result<bool, Diagnostic> {
    Ok(match carrier.step(lfp_part, label)? {
        Transfer::Value(next) => carrier.lfp_part(next)? != 0,
        Transfer::Decided => {
            return Err(Diagnostic::internal("a step decides that did not decide in the search"));
        }
    })
}

impl Partition<'_> {
    /// Starts the pass that counts edges, after a complete search.
    pub fn count_edges(&mut self) {
        self.edges = Some(Edges::Count);
    }

    /// Starts the pass that removes edges, after they are counted.
    pub fn remove_edges(&mut self) {
        self.edges = Some(Edges::Remove);
        self.removed = 0;
    }

    /// Returns the number of removed vertices, and of all vertices.
    pub fn removed_vertices(&self) -> (u64, u64) {
        (self.removed, self.lfp_part)
    }

    /// Returns the least-fixed-point part of a state's annotation.
    fn lfp_part_at(
        &self,
        annotations: &mut DistributedAnnotations<'_>,
        key: u64,
    ) -> Result<u32, Diagnostic> {
        let place = self
            .store
            .table
            .find(key)
            .ok_or_else(|| Diagnostic::internal("a queued state is not in the store"))?;
        annotations
            .carrier
            .lfp_part(narrow::high(self.store.table.pair(place).load(Ordering::Relaxed)))
    }

    /// Queues the vertices: all of them to count edges, those without incoming edges to remove
    /// them.
    pub(crate) fn start_edges(&mut self, edges: Edges) -> Result<(), Diagnostic> {
        let Self { annotations: Some(annotations), store, ahead, lfp_part, .. } = self else {
            return Ok(());
        };
        let mut first = Queue::default();
        *lfp_part = 0;
        for (place, key) in store.table.entries() {
            let cell = store.table.pair(place);
            let there = cell.load(Ordering::Relaxed);
            if annotations.carrier.lfp_part(narrow::high(there))? == 0 {
                continue;
            }
            *lfp_part += 1;
            match edges {
                Edges::Count => cell.store(there & !COUNT, Ordering::Relaxed),
                Edges::Remove if there & COUNT != 0 => continue,
                Edges::Remove => {}
            }
            first.push(key);
        }
        if !first.is_empty() {
            ahead.insert(0, first);
        }
        Ok(())
    }

    /// Expands vertices, as [`Partition::expand`] does for states.
    pub(crate) fn expand_edges(
        &mut self,
        annotations: &mut DistributedAnnotations<'_>,
        most: usize,
        send: &mut dyn FnMut(Batch),
    ) -> Result<(), Diagnostic> {
        for _ in 0..most {
            if self.now.is_empty() {
                break;
            }
            let key = self.expand_newest()?;
            let lfp_part = self.lfp_part_at(annotations, key)?;
            self.now.pop();
            self.removed += 1;
            for i in 0..self.found.len() {
                let (key, label) = (self.found[i].key, self.found[i].label);
                if !propagates(&mut *annotations.carrier, lfp_part, label)? {
                    continue;
                }
                let owner = self.owner_of_successor(i)?;
                if owner == self.me {
                    self.pending.push(key);
                    continue;
                }
                self.send_state(owner, None, send)?;
            }
            if self.pending.len() >= crate::search::BATCH {
                self.update_edges(self.level + 1)?;
            }
        }
        if self.now.is_empty() {
            self.flush_batches(send);
        }
        self.update_edges(self.level + 1)
    }

    /// Counts or removes an edge to each pending state. States that lose their last incoming edge
    /// are queued at this level.
    pub(crate) fn update_edges(&mut self, level: u64) -> Result<(), Diagnostic> {
        let wrong =
            || Diagnostic::internal("the incoming edges of a state differ from those counted");
        let Some(edges) = self.edges else { return Ok(()) };
        let mut fresh = Vec::new();
        for key in self.pending.drain(..) {
            let cell = self.store.table.pair(self.store.table.find(key).ok_or_else(wrong)?);
            let there = cell.load(Ordering::Relaxed);
            let count = narrow::low(there);
            let now = match edges {
                Edges::Count => count.checked_add(1),
                Edges::Remove => count.checked_sub(1),
            };
            let now = now.ok_or_else(wrong)?;
            cell.store(there & !COUNT | u64::from(now), Ordering::Relaxed);
            if edges == Edges::Remove && now == 0 {
                fresh.push(key);
            }
        }
        if !fresh.is_empty() {
            self.ahead.entry(level).or_default().extend(fresh);
        }
        Ok(())
    }
}
