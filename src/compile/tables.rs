//! Append-only tables shared by all threads: the values of a sort by number.
//!
//! A value is a term of the table that all threads share ([`mu_data::terms`]), so it costs what it adds, whatever its size. Readers and writers hold a
//! lock; workers keep copies of the values that they read. Cost: a lookup of the term's number.

use ahash::AHashMap;
use mu_data::terms::TermId;
use std::sync::{PoisonError, RwLock};

/// The values of a sort by number.
#[derive(Default)]
pub(super) struct ValueTable {
    inner: RwLock<Values>,
}

#[derive(Default)]
struct Values {
    ids: AHashMap<TermId, u32>,
    by_id: Vec<TermId>,
}

impl ValueTable {
    /// The number of a value, and whether it is new.
    pub(super) fn intern(&self, value: TermId) -> (u32, bool) {
        if let Some(&id) = self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(&value) {
            return (id, false);
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = inner.ids.get(&value) {
            return (id, false);
        }
        let id = inner.by_id.len() as u32;
        inner.by_id.push(value);
        inner.ids.insert(value, id);
        (id, true)
    }
    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_id.len()
    }
    /// The value of a number that was given out.
    pub(super) fn get(&self, id: u32) -> TermId {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_id[id as usize]
    }
}
