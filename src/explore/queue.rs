//! A queue of states in blocks: a single vector of millions of states would be doubled and copied,
//! and mostly empty.
//!
//! In: keys, pushed at the end. Out: keys, popped from the end; all keys can be read or changed.
//! Cost: 8 bytes a key and at most one additional block; an empty block is freed at once.
//! Invariant: every block but the last is full, and no block is empty.

/// Keys of a block: 64 KiB.
const BLOCK: usize = 1 << 13;

/// Initial capacity of the first block.
const FIRST: usize = 1 << 6;

/// A queue in blocks; see the module header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    blocks: Vec<Vec<u64>>,
}

impl Queue {
    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the key that [`Queue::pop`] returns next; `None` if the queue is empty.
    #[inline]
    pub fn last(&self) -> Option<&u64> {
        self.blocks.last()?.last()
    }

    /// Appends a key.
    #[inline]
    pub fn push(&mut self, key: u64) {
        match self.blocks.last_mut() {
            Some(block) if block.len() < BLOCK => block.push(key),
            _ => self.open(key),
        }
    }

    #[cold]
    fn open(&mut self, key: u64) {
        let mut block = Vec::with_capacity(if self.blocks.is_empty() { FIRST } else { BLOCK });
        block.push(key);
        self.blocks.push(block);
    }

    /// Removes and returns the last key; `None` if the queue is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let block = self.blocks.last_mut()?;
        let key = block.pop();
        if block.is_empty() {
            self.blocks.pop();
        }
        key
    }

    /// Iterates over all keys in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = &u64> {
        self.blocks.iter().flatten()
    }

    /// Iterates as [`Queue::iter`], mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        self.blocks.iter_mut().flatten()
    }

    /// Keeps the keys that satisfy the predicate, in their order. Calls it once for each key, in
    /// this order.
    pub fn retain(&mut self, mut keeps: impl FnMut(u64) -> bool) {
        let before = std::mem::take(self);
        for block in before.blocks {
            self.extend(block.into_iter().filter(|&key| keeps(key)));
        }
    }
}

impl Extend<u64> for Queue {
    fn extend<T: IntoIterator<Item = u64>>(&mut self, keys: T) {
        keys.into_iter().for_each(|key| self.push(key));
    }
}

impl FromIterator<u64> for Queue {
    fn from_iter<T: IntoIterator<Item = u64>>(keys: T) -> Self {
        let mut queue = Self::default();
        queue.extend(keys);
        queue
    }
}

impl IntoIterator for Queue {
    type Item = u64;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<u64>>>;
    fn into_iter(self) -> Self::IntoIter {
        self.blocks.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    #[test]
    fn it_holds_what_a_vector_holds() {
        let mut random = Random::new(11);
        let (mut queue, mut vector) = (Queue::default(), Vec::new());
        for round in 0..400u64 {
            for i in 0..random.below(4 * BLOCK) as u64 {
                // More pushes at first, more pops at the end.
                if random.below(400) > round as usize {
                    queue.push(round << 20 | i);
                    vector.push(round << 20 | i);
                } else {
                    assert_eq!(queue.pop(), vector.pop());
                }
                assert_eq!(queue.last(), vector.last());
            }
            if random.below(10) == 0 {
                queue.retain(|key| key % 3 != 0);
                vector.retain(|key| key % 3 != 0);
            }
            queue.iter_mut().for_each(|key| *key += 1);
            vector.iter_mut().for_each(|key| *key += 1);
            assert_eq!((queue.len(), queue.is_empty()), (vector.len(), vector.is_empty()));
            assert!(queue.iter().eq(&vector));
            assert!(
                queue.blocks.len() <= vector.len() / BLOCK + 1
                    && queue.blocks.iter().all(|block| !block.is_empty())
            );
            assert_eq!(vector.iter().copied().collect::<Queue>(), queue);
        }
        while let Some(key) = vector.pop() {
            assert_eq!(queue.pop(), Some(key));
        }
        assert_eq!((queue.pop(), queue.blocks.len()), (None, 0));
    }
}
