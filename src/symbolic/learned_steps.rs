//! Exchange of learned steps between threads that saturate together.
//!
//! Each helper has its own copy of the relations. A thread that learns steps publishes them on the
//! board, and reads the board before it learns. So no thread evaluates what another has evaluated
//! (except at the same time), and threads agree on the relations that are keys of cached images.
//!
//! Correctness: a helper computes closures of sets that the search computes as well, so it learns
//! nothing about unreachable vectors; unions may happen in any order. A thread publishes only
//! complete results, never those of a halted manager.
//!
//! No lock is held while a manager works: its tables may have to grow, and all helpers must release
//! them first.
//!
//! Invariant: a relation on the board holds the steps of exactly the short vectors in its `seen`,
//! and is never smaller than a version read before.

use super::ldd::{Ldd, Manager};
use super::relation::Relation;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The relations known to all threads together.
pub(super) struct Board {
    notes: Vec<BoardEntry>,
    /// Number of evaluations by helpers.
    calls: AtomicU64,
}

struct BoardEntry {
    /// Number of writes.
    version: AtomicU64,
    relation: Mutex<Relation>,
}

impl BoardEntry {
    fn lock(&self) -> MutexGuard<'_, Relation> {
        // A relation is assigned as a whole.
        self.relation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// Creates a board with these relations.
    pub fn new(relations: &[Relation]) -> Self {
        let note = |relation: &Relation| BoardEntry {
            version: AtomicU64::new(0),
            relation: Mutex::new(relation.clone()),
        };
        Self { notes: relations.iter().map(note).collect(), calls: AtomicU64::new(0) }
    }
    /// Returns all relations with their versions.
    pub fn relations(&self) -> (Vec<Relation>, Vec<u64>) {
        let note = |note: &BoardEntry| {
            let relation = note.lock();
            (relation.clone(), note.version.load(Ordering::Relaxed))
        };
        self.notes.iter().map(note).unzip()
    }
    /// Merges the published steps of relation `i` since version `known` into `mine`.
    pub fn read(&self, i: usize, known: &mut u64, mine: &mut Relation, manager: &mut Manager) {
        // Versions change under the lock. Reading an older one is harmless: this thread then
        // repeats an evaluation.
        if self.notes[i].version.load(Ordering::Relaxed) != *known {
            let (other, version) = {
                let note = self.notes[i].lock();
                (note.clone(), self.notes[i].version.load(Ordering::Relaxed))
            };
            if mine.absorb(manager, &other) {
                *known = version;
            }
        }
    }
    /// Publishes the learned steps of relation `i`, and merges published ones.
    pub fn write(&self, i: usize, known: &mut u64, mine: &mut Relation, manager: &mut Manager) {
        loop {
            // Without the lock: operations may wait until helpers release the tables, and these may
            // wait for the lock.
            self.read(i, known, mine, manager);
            if manager.halt_reason().is_some() {
                return;
            }
            let mut note = self.notes[i].lock();
            if self.notes[i].version.load(Ordering::Relaxed) == *known {
                note.clone_from(mine);
                *known += 1;
                self.notes[i].version.store(*known, Ordering::Relaxed);
                return;
            }
        }
    }
    /// Adds to the number of evaluations by helpers.
    pub fn add_calls(&self, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
    }
    /// Returns the number of evaluations by helpers since the last call.
    pub fn take_calls(&self) -> u64 {
        self.calls.swap(0, Ordering::Relaxed)
    }
    /// Returns sets that a collection must preserve.
    pub fn roots(&self) -> Vec<Ldd> {
        self.notes.iter().flat_map(|note| note.lock().roots().collect::<Vec<_>>()).collect()
    }
}
