//! Work on many items by several threads.
//!
//! Each thread takes the next item when it has finished one. Results must depend on the item only,
//! not on the thread or on the order of items.

use std::sync::{Mutex, PoisonError};

/// Applies `work` to each item. `states`: the working memory of each thread; not empty.
pub(crate) fn for_each<S: Send, T>(
    states: &mut [S],
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(&mut S, T) + Sync,
) {
    let Some((own, others)) = states.split_first_mut() else { return };
    let items = Mutex::new(items);
    let run = |state: &mut S| {
        loop {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { break };
            work(state, item);
        }
    };
    std::thread::scope(|scope| {
        for state in others {
            scope.spawn(|| run(state));
        }
        run(own);
    });
}
