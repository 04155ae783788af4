//! Concurrent table of labels: each label has one number; 0 is tau.
//!
//! Threads look labels up and add new ones while they evaluate groups. Numbers follow the order of
//! insertion and stay valid as long as the table. Cost: a hash of the key under a lock that readers
//! share.

use ahash::{AHashMap, RandomState};
use mu_base::ids::LabelId;
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// Parts of the map: each grows alone, so that the memory of a run has no large steps, which a
/// limit could not stop.
const PARTS: u64 = 64;

/// Table of labels with keys of type `K`.
pub struct LabelTable<K> {
    hasher: RandomState,
    /// By part of the hash. The lock of a part is taken before that of `keys`.
    parts: Vec<RwLock<AHashMap<Arc<K>, LabelId>>>,
    keys: RwLock<Vec<Arc<K>>>,
}

impl<K: Eq + Hash> LabelTable<K> {
    /// Creates a table that contains only tau.
    pub fn new(tau: K) -> Self {
        let table = Self {
            hasher: RandomState::new(),
            parts: (0..PARTS).map(|_| RwLock::default()).collect(),
            keys: RwLock::default(),
        };
        table.intern(tau);
        table
    }

    fn part<Q: Hash + ?Sized>(&self, key: &Q) -> &RwLock<AHashMap<Arc<K>, LabelId>> {
        &self.parts[(self.hasher.hash_one(key) % PARTS) as usize]
    }

    /// Returns the number of a label, adding the label if it is new.
    pub fn intern(&self, key: K) -> LabelId {
        if let Some(id) = self.find(&key) {
            return id;
        }
        let mut ids = self.part(&key).write().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::new(key);
        // Another thread may have added it since.
        *ids.entry(key.clone()).or_insert_with(|| {
            let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
            keys.push(key);
            LabelId::new(keys.len() - 1)
        })
    }

    /// Returns the number of a label; `None` if it is not in the table.
    pub fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<LabelId>
    where
        Arc<K>: Borrow<Q>,
    {
        self.part(key).read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Returns the key of a label.
    pub fn get(&self, label: LabelId) -> Arc<K> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)[label.index()].clone()
    }

    /// Returns the number of labels.
    pub fn count(&self) -> usize {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<K> fmt::Debug for LabelTable<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LabelTable").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_label_has_one_number_in_all_threads() {
        let table = LabelTable::new("tau".to_string());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    (0..500)
                        .for_each(|i| _ = table.intern(format!("a({})", (i * (thread + 1)) % 100)))
                });
            }
        });
        assert_eq!((table.count(), table.find(&"tau".to_string())), (101, Some(LabelId::TAU)));
        for i in 0..100 {
            let text = format!("a({i})");
            let id = table.intern(text.clone());
            assert_eq!((&*table.get(id), table.find(&text)), (&text, Some(id)));
        }
    }
}
