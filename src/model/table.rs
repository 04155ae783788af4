//! The labels of a model by number: what a label is made of, each once; 0 is tau.
//!
//! Threads look labels up and add new ones while they evaluate groups. Numbers follow the order of
//! arrival and last as long as the table. Cost: a hash of the key under a lock that readers share.

use ahash::AHashMap;
use mu_base::ids::LabelId;
use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// See the module's head.
pub struct LabelTable<K> {
    inner: RwLock<Inner<K>>,
}

struct Inner<K> {
    ids: AHashMap<Arc<K>, LabelId>,
    keys: Vec<Arc<K>>,
}

impl<K: Eq + Hash> LabelTable<K> {
    /// A table with tau alone.
    pub fn new(tau: K) -> Self {
        let tau = Arc::new(tau);
        Self {
            inner: RwLock::new(Inner {
                ids: AHashMap::from([(tau.clone(), LabelId::TAU)]),
                keys: vec![tau],
            }),
        }
    }

    /// The number of a label, which is added if it is new.
    pub fn intern(&self, key: K) -> LabelId {
        if let Some(id) = self.find(&key) {
            return id;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let Inner { ids, keys } = &mut *inner;
        let key = Arc::new(key);
        // Another thread may have been faster.
        *ids.entry(key.clone()).or_insert_with(|| {
            keys.push(key);
            LabelId::new(keys.len() - 1)
        })
    }

    /// The number of a label that is there.
    pub fn find<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<LabelId>
    where
        Arc<K>: Borrow<Q>,
    {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).ids.get(key).copied()
    }

    /// What a label is made of.
    pub fn get(&self, label: LabelId) -> Arc<K> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).keys[label.index()].clone()
    }

    /// Number of labels.
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
    fn labels_have_one_number_whatever_thread_is_first() {
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
