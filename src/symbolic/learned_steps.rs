//! What threads that saturate together have learned of the relations.
//!
//! A helper has relations of its own, which begin as those of the search. Who learns writes it on
//! the board; who is about to learn reads there what the others know. So no thread asks the model
//! what another has asked before (but for what both ask at the same time), and threads agree on the
//! relations that their images are cached under.
//!
//! Why it is right: a helper computes closures of sets that the search computes as well, so that it
//! learns nothing of vectors that no state has; unions may come in any order. What a thread writes
//! is whole: not of a manager that has halted.
//!
//! No lock is held while a manager works: its tables may have to grow, for which all helpers must
//! give them up first.
//!
//! Invariant: a relation on the board holds the steps of just the short vectors that it says were
//! seen, and is never less than what was read there.

use super::ldd::{Ldd, Manager};
use super::relation::Relation;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The relations, as all threads together know them.
pub(super) struct Board {
    notes: Vec<Note>,
    /// How often helpers have asked the model.
    calls: AtomicU64,
}

struct Note {
    /// How often it was written.
    version: AtomicU64,
    relation: Mutex<Relation>,
}

impl Note {
    fn lock(&self) -> MutexGuard<'_, Relation> {
        // A relation is assigned as a whole.
        self.relation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// A board with these relations.
    pub fn new(relations: &[Relation]) -> Self {
        let note = |relation: &Relation| Note {
            version: AtomicU64::new(0),
            relation: Mutex::new(relation.clone()),
        };
        Self { notes: relations.iter().map(note).collect(), calls: AtomicU64::new(0) }
    }
    /// All relations, each with its version.
    pub fn all(&self) -> (Vec<Relation>, Vec<u64>) {
        let note = |note: &Note| {
            let relation = note.lock();
            (relation.clone(), note.version.load(Ordering::Relaxed))
        };
        self.notes.iter().map(note).unzip()
    }
    /// Takes over what others have written of relation `i` since version `known`.
    pub fn read(&self, i: usize, known: &mut u64, mine: &mut Relation, manager: &mut Manager) {
        // Versions change under the lock. Here an older one is as good: then this thread asks what
        // another has asked.
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
    /// Writes what this thread has learned of relation `i`, and reads it.
    pub fn write(&self, i: usize, known: &mut u64, mine: &mut Relation, manager: &mut Manager) {
        loop {
            // Without the lock: operations may wait until helpers have given up the tables, and
            // these may be waiting for the lock.
            self.read(i, known, mine, manager);
            if manager.halted().is_some() {
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
    /// Says that a helper has asked the model so often.
    pub fn add_calls(&self, calls: u64) {
        self.calls.fetch_add(calls, Ordering::Relaxed);
    }
    /// How often helpers have asked the model since this was asked last.
    pub fn take_calls(&self) -> u64 {
        self.calls.swap(0, Ordering::Relaxed)
    }
    /// Sets that a collection must keep.
    pub fn roots(&self) -> Vec<Ldd> {
        self.notes.iter().flat_map(|note| note.lock().roots().collect::<Vec<_>>()).collect()
    }
}
