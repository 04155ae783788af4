//! Tables shared by managers: the unique table, the operation cache, and ids that helpers did not
//! use.

use super::cache::Cache;
use super::table::{Ids, LddTable};
use std::sync::{Mutex, PoisonError};

/// The tables of a manager and its helpers.
#[derive(Debug)]
pub(super) struct Tables {
    pub table: LddTable,
    pub cache: Cache,
    /// Unused ids that were returned.
    spare: Mutex<Vec<Ids>>,
}

impl Tables {
    /// Creates empty tables, with this many entries of index and cache as powers of two.
    pub fn new(index_bits: u32, cache_bits: u32) -> Self {
        Self {
            table: LddTable::new(index_bits),
            cache: Cache::new(cache_bits),
            spare: Mutex::default(),
        }
    }
    pub fn bytes(&self) -> u64 {
        self.table.bytes() + self.cache.bytes()
    }
    /// Hands out ids. Returns false if there are none.
    pub fn hand_out(&self, ids: &mut Ids) -> bool {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(spare) = spare {
            *ids = spare;
            return true;
        }
        self.table.hand_out(ids)
    }
    /// Takes back unused ids.
    pub fn give_up(&self, ids: Ids) {
        if ids.ready() {
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(ids);
        }
    }
    /// Drops the returned ids, before a sweep.
    pub fn forget_spare(&mut self) {
        self.spare.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
