//! Concurrent table of labels: each label has one number; 0 is tau.
//!
//! Threads look labels up and add new ones while they evaluate groups. Numbers follow the order of
//! insertion and stay valid as long as the table. Cost: a hash of the key under a lock that readers
//! share.

use ahash::AHashMap;
use mu_base::ids::LabelId;
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// Table of labels with keys of type `K`.
pub struct LabelTable<K> {
    inner: RwLock<Inner<K>>,
}

struct Inner<K> {
    ids: AHashMap<Arc<K>, LabelId>,
    keys: Vec<Arc<K>>,
}

impl<K: Eq + Hash> LabelTable<K> {
    /// Creates a table that contains only tau.
    pub fn new(tau: K) -> Self {
        let tau = Arc::new(tau);
        Self {
            inner: RwLock::new(Inner {
                ids: AHashMap::from([(tau.clone(), LabelId::TAU)]),
                keys: vec![tau],
            }),
        }
    }

    /// Returns the number of a label, adding the label if it is new.
    pub fn intern(&self, key: K) -> LabelId {
        if let Some(id) = self.find(&key) {
            return id;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let Inner { ids, keys } = &mut *inner;
        let key = Arc::new(key);
        // Another thread may have added it since.
        *ids.entry(key.clone()).or_insert_with(|| {
            keys.push(key);
            LabelId::new(keys.len() - 1)
        })
    }

    /// Returns the number of a label; `None` if it is not in the table.
    pub fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<LabelId>
    where
        Arc<K>: Borrow<Q>,
    {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(key).copied()
    }

    /// Returns the key of a label.
    pub fn get(&self, label: LabelId) -> Arc<K> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).keys[label.index()].clone()
    }

    /// Returns the number of labels.
    pub fn count(&self) -> usize {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).keys.len()
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
