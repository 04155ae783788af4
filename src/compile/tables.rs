//! Append-only tables shared by all threads: values of a sort, labels.
//!
//! Writers hold a lock; readers too, but workers keep copies of what they have seen, so a table is asked once a thread and value.

use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_data::expr::Expr;
use mu_labels::MultiAction;
use std::sync::{Arc, PoisonError, RwLock};

/// The values of a sort by number.
#[derive(Default)]
pub(super) struct ValueTable {
    inner: RwLock<(AHashMap<Expr, u32>, Vec<Expr>)>,
}

impl ValueTable {
    /// The number of a value (a closed normal form in canonical shape).
    pub(super) fn intern(&self, value: &Expr) -> u32 {
        if let Some(&id) = self.inner.read().unwrap_or_else(PoisonError::into_inner).0.get(value) {
            return id;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let (ids, values) = &mut *inner;
        *ids.entry(value.clone()).or_insert_with(|| {
            values.push(value.clone());
            values.len() as u32 - 1
        })
    }
    /// All values by number.
    pub(super) fn values(&self) -> Vec<Expr> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
    /// The value of a number that was given out.
    pub(super) fn get(&self, id: u32) -> Expr {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).1[id as usize].clone()
    }
}

/// The multi-actions by number; 0 is tau.
pub(super) struct LabelTable {
    inner: RwLock<(AHashMap<Arc<MultiAction>, u32>, Vec<Arc<MultiAction>>)>,
}

impl Default for LabelTable {
    fn default() -> Self {
        let tau: Arc<MultiAction> = Arc::default();
        Self { inner: RwLock::new((AHashMap::from([(tau.clone(), 0)]), vec![tau])) }
    }
}

impl LabelTable {
    /// The label of a multi-action (sorted).
    pub(super) fn intern(&self, multi: MultiAction) -> LabelId {
        if let Some(&id) = self.inner.read().unwrap_or_else(PoisonError::into_inner).0.get(&multi) {
            return LabelId(id);
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let (ids, multis) = &mut *inner;
        let multi = Arc::new(multi);
        LabelId(*ids.entry(multi.clone()).or_insert_with(|| {
            multis.push(multi);
            multis.len() as u32 - 1
        }))
    }
    pub(super) fn get(&self, label: LabelId) -> Arc<MultiAction> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).1[label.index()].clone()
    }
    pub(super) fn len(&self) -> usize {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).1.len()
    }
}
