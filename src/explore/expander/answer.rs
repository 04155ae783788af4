//! Translation of a group's answer: steps over slot values become steps over leaf indices, cached
//! by the leaves that they depend on.
//!
//! In: a group that misses the caches at a state. Out: its steps in the arena. The answer comes
//! from the shared cache, or else from the model. With symmetries the answer is verified
//! ([`Symmetries`](super::Symmetries)); in a distributed search each step gets its change of the
//! owner hash ([`crate::owner_hash`]). Cost: an evaluation and the entries written. Invariant:
//! after an error the arena is unchanged.

use super::{CachedStep, Expander, Halt, KeyLeaf, PackedSteps, WritePlace, multi_step_header};
use crate::store::Store;
use mu_base::host::Instant;
use mu_base::ids::{LabelId, Maybe};
use mu_base::narrow;
use mu_base::{Diagnostic, Stage};
use mu_model::Steps;
use std::num::NonZeroU32;

/// Lookups of a group before the early test of its cache.
const EARLY_TEST_LOOKUPS: u64 = 1 << 12;
/// Early test: at least one lookup in this number must hit.
const EARLY_LOOKUPS_PER_HIT: u64 = 64;
/// Lookups of a group before the full test of its cache.
const FULL_TEST_LOOKUPS: u64 = 1 << 15;
/// Full test: at least one lookup in this number must hit.
const LOOKUPS_PER_HIT: u64 = 4;
/// Number of steps and changes after which the caches are cleared: indices have 30 bits, and one
/// more answer must fit.
const MOST_STEPS: usize = 1 << 29;

impl Expander<'_> {
    /// Evaluates a group and caches the answer.
    #[cold]
    pub(super) fn fill(
        &mut self,
        store: &Store,
        g: usize,
        leaves: &[u32],
    ) -> Result<PackedSteps, Halt> {
        if self.bytes > self.limit {
            self.clear();
        }
        let group = &mut self.groups[g];
        group.misses += 1;
        let hits = group.lookups.saturating_sub(group.misses);
        if group.lookups > FULL_TEST_LOOKUPS && hits * LOOKUPS_PER_HIT < group.lookups
            || group.lookups > EARLY_TEST_LOOKUPS && hits * EARLY_LOOKUPS_PER_HIT < group.lookups
        {
            group.bypassed = true;
        }
        let mut reads = Vec::with_capacity(group.read_places.len());
        let mut row_of = None;
        for &(leaf, position) in &group.read_places {
            if row_of.replace(leaf) != Some(leaf) {
                self.row.clear();
                store.leaves[leaf as usize].table.read(leaves[leaf as usize], &mut self.row);
            }
            reads.push(self.row[position as usize]);
        }
        let mut steps = std::mem::take(&mut self.steps);
        let entry = self.answer(store, g, leaves, &reads, &mut steps);
        self.steps = steps;
        entry
    }

    /// Returns the verified steps of a group as an entry.
    fn answer(
        &mut self,
        store: &Store,
        g: usize,
        leaves: &[u32],
        reads: &[u32],
        steps: &mut Steps,
    ) -> Result<PackedSteps, Halt> {
        if self.enabled {
            self.shared_cache.steps(g, reads, self.worker.as_mut(), steps)?;
        } else {
            self.shared_cache.evaluate(g, reads, self.worker.as_mut(), steps)?;
        }
        if let (Some(symmetries), Some(orbits)) = (self.symmetries, &mut self.orbits)
            && !symmetries.is_confirmed(g, reads)
        {
            let from = Instant::now();
            if symmetries
                .confirm(
                    self.model,
                    &self.shared_cache,
                    self.worker.as_mut(),
                    &mut orbits.images,
                    g,
                    reads,
                )?
                .is_err()
            {
                return Err(symmetries.refute().into());
            }
            orbits.spent += from.elapsed();
        }
        let width = self.model.groups()[g].writes.len();
        if steps.values.len() != width * steps.labels.len() {
            let text = format!(
                "group '{}' gave {} values for {} steps",
                self.model.groups()[g].name,
                steps.values.len(),
                steps.labels.len()
            );
            return Err(Halt::Error(Box::new(Diagnostic::new(Stage::Internal, text))));
        }
        let start = self.arena.len();
        let first_change = self.changes.len();
        let count = steps.labels.len();
        if count > 1 {
            self.arena.push(multi_step_header(count));
        }
        let mut adds = Vec::new();
        let made = self.translate(store, g, leaves, steps, &mut adds);
        if let Err(halt) = made {
            self.arena.truncate(start);
            self.changes.truncate(first_change);
            return Err(halt);
        }
        let changes_hash = adds.iter().any(|&add| add != 0);
        if changes_hash {
            self.arena.extend(adds.iter().map(|&delta| CachedStep {
                delta,
                label: LabelId::TAU,
                changes: Maybe::NONE,
            }));
        }
        if start >= MOST_STEPS || self.changes.len() >= MOST_STEPS {
            self.bytes = u64::MAX; // clears the caches at the next miss
        }
        // If a group reads a single leaf and has no steps for it, the group is disabled for this
        // leaf.
        if steps.labels.is_empty()
            && let Some(&(leaf, _)) = self.groups[g].read_places.first()
            && self.groups[g].read_places.iter().all(|p| p.0 == leaf)
        {
            self.masks[leaf as usize][leaves[leaf as usize] as usize * self.words + g / 64] &=
                !(1 << (g % 64));
        }
        let entry = PackedSteps::new(start, count, changes_hash);
        if !self.groups[g].bypassed {
            self.cache_entry(store, g, leaves, entry);
            self.bytes = self.bytes.saturating_add((self.arena.len() - start) as u64 * 16);
        }
        Ok(entry)
    }

    /// Translates steps over slot values into steps over leaf indices; appends their changes of the
    /// owner hash to `adds`.
    fn translate(
        &mut self,
        store: &Store,
        g: usize,
        leaves: &[u32],
        steps: &Steps,
        adds: &mut Vec<u64>,
    ) -> Result<(), Halt> {
        let places = std::mem::take(&mut self.groups[g].write_places);
        let made = self.translate_by(store, &places, leaves, steps, adds);
        self.groups[g].write_places = places;
        made
    }

    fn translate_by(
        &mut self,
        store: &Store,
        write_places: &[WritePlace],
        leaves: &[u32],
        steps: &Steps,
        adds: &mut Vec<u64>,
    ) -> Result<(), Halt> {
        let width = write_places.iter().map(|w| w.1.len()).sum::<usize>();
        let mut inner: Vec<(u32, u32, u32)> = Vec::new();
        // The current tuples of the written leaves; for a single step each is read when it is
        // changed.
        let (mut before, many) = (Vec::new(), steps.labels.len() > 1);
        if many {
            write_places.iter().for_each(|(leaf, _)| {
                store.leaves[*leaf as usize].table.read(leaves[*leaf as usize], &mut before)
            });
        }
        for (i, &label) in steps.labels.iter().enumerate() {
            let values = &steps.values[i * width..(i + 1) * width];
            let (mut delta, mut add, mut from) = (0u64, 0u64, 0);
            inner.clear();
            for (leaf, places) in write_places {
                let v = leaves[*leaf as usize];
                self.row.clear();
                if many {
                    let tuple = &before[from..][..store.leaves[*leaf as usize].slots.len()];
                    from += tuple.len();
                    self.row.extend_from_slice(tuple);
                } else {
                    store.leaves[*leaf as usize].table.read(v, &mut self.row);
                }
                for &(position, w) in places {
                    self.row[position as usize] = values[w as usize];
                }
                let new = store.leaves[*leaf as usize].table.intern(&self.row);
                let (field, top) = store.field_of[*leaf as usize];
                if top {
                    if u64::from(new) >= store.capacity(field) {
                        return Err(Halt::Overflow);
                    }
                    delta = delta.wrapping_add(
                        u64::from(new).wrapping_sub(u64::from(v))
                            << store.fields[field as usize].offset,
                    );
                } else if new != v {
                    inner.push((field, *leaf, new));
                }
                if new != v && self.owner_hash.is_partition_leaf(*leaf as usize) {
                    let leaf = *leaf as usize;
                    add = add
                        .wrapping_add(self.leaf_hash(store, leaf, new)?)
                        .wrapping_sub(self.leaf_hash(store, leaf, v)?);
                }
            }
            let changes = if inner.is_empty() {
                Maybe::NONE
            } else {
                Maybe::some(narrow::index(self.changes.len()))
            };
            if !inner.is_empty() {
                inner.sort_unstable();
                self.changes.push(narrow::index(inner.len()));
                self.changes.extend(inner.iter().flat_map(|c| [c.1, c.2]));
                self.bytes += 4 + 8 * inner.len() as u64;
            }
            self.arena.push(CachedStep { delta, label, changes });
            adds.push(add);
        }
        Ok(())
    }

    fn cache_entry(&mut self, store: &Store, g: usize, leaves: &[u32], entry: PackedSteps) {
        let group = &mut self.groups[g];
        // Number the values that the group only reads.
        for part in &mut group.parts {
            if let Some((positions, rows)) = part.reads.as_deref_mut() {
                let by_index = &mut part.by_index;
                let v = leaves[part.leaf as usize] as usize;
                if by_index.len() <= v {
                    self.bytes += (v + 1 - by_index.len()) as u64 * 4;
                    by_index.resize(v + 1, Maybe::NONE);
                }
                if !by_index[v].is_some() {
                    self.row.clear();
                    store.leaves[part.leaf as usize].table.read(narrow::index(v), &mut self.row);
                    let tuple: Vec<u32> = positions.iter().map(|&p| self.row[p as usize]).collect();
                    let known = rows.bytes();
                    by_index[v] = Maybe::some(rows.intern(&tuple));
                    self.bytes += rows.bytes() - known;
                }
            }
        }
        let number = |part: &KeyLeaf| {
            Self::part(part, leaves).expect("what the group reads on the leaf has a number by now")
        };
        match group.parts.as_slice() {
            [] => group.direct = vec![Some(entry)],
            [a] => {
                let at = number(a) as usize;
                if group.direct.len() <= at {
                    self.bytes += (at + 1 - group.direct.len()) as u64 * 4;
                    group.direct.resize(at + 1, None);
                }
                group.direct[at] = Some(entry);
            }
            [first, middle @ .., last] => {
                let mut acc = number(first);
                for (part, map) in middle.iter().zip(&mut group.chain) {
                    let number = number(part);
                    acc = match map.get(acc, number) {
                        Some(known) => known.get(),
                        None => {
                            let new = NonZeroU32::MIN.saturating_add(map.used);
                            self.bytes += map.insert(acc, number, new);
                            new.get()
                        }
                    };
                }
                // Numbering a read value can reveal that the answer is cached under another leaf
                // index.
                if group.map.get(acc, number(last)).is_none() {
                    self.bytes += group.map.insert(acc, number(last), entry);
                }
            }
        }
    }
}
