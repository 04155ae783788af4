//! Append-only value tables, shared by all threads: the values of a sort by number.
//!
//! A value is a term of the table that all threads share ([`mu_data::terms`]), so it costs only its
//! new parts. Readers and writers hold a lock; workers have copies of the values that they read.
//! Cost: a lookup of the term's number.

use mu_base::narrow;
use mu_data::terms::{TermId, TermNumbers};
use std::sync::{PoisonError, RwLock};

/// Values of a sort by number.
#[derive(Default)]
pub(super) struct ValueTable {
    inner: RwLock<NumberedValues>,
}

#[derive(Default)]
struct NumberedValues {
    ids: TermNumbers,
    by_id: Vec<TermId>,
}

impl NumberedValues {
    /// Returns the number of a value; true if it is new.
    fn intern(&mut self, value: TermId) -> (u32, bool) {
        if let Some(id) = self.ids.get(value) {
            return (id, false);
        }
        let id = narrow::index(self.by_id.len());
        self.by_id.push(value);
        self.ids.set(value, id);
        (id, true)
    }
}

impl ValueTable {
    /// Returns the number of a value; true if it is new.
    pub(super) fn intern(&self, value: TermId) -> (u32, bool) {
        if let Some(id) = self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(value) {
            return (id, false);
        }
        self.inner.write().unwrap_or_else(PoisonError::into_inner).intern(value)
    }
    /// Passes the numbers of several values to `receive`, in their order.
    pub(super) fn intern_all(&self, values: &[TermId], mut receive: impl FnMut(u32)) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        values.iter().for_each(|value| receive(inner.intern(*value).0));
    }
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_id.len()
    }
    /// Returns the value of a number of this table.
    pub(super) fn get(&self, id: u32) -> TermId {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).by_id[id as usize]
    }
}
