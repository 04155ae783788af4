//! States that wait, in blocks: a queue of millions that one vector holds is doubled, copied and
//! mostly empty.
//!
//! In: keys, put in at the end. Out: keys, taken from the end; all of them to be read or changed.
//! Cost: 8 bytes a key and at most one block besides; a block is given back as soon as it is empty.
//! Invariant: every block is full but the last, and no block is empty.

/// Keys of a block: 64 KiB.
const BLOCK: usize = 1 << 13;

/// Keys of a small queue's only block when it is made.
const FIRST: usize = 1 << 6;

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queue {
    blocks: Vec<Vec<u64>>,
}

impl Queue {
    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The one that is taken next.
    #[inline]
    pub fn last(&self) -> Option<&u64> {
        self.blocks.last()?.last()
    }

    /// Puts a key in.
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

    /// Takes the last key out.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let block = self.blocks.last_mut()?;
        let key = block.pop();
        if block.is_empty() {
            self.blocks.pop();
        }
        key
    }

    /// All keys, from the first one put in.
    pub fn iter(&self) -> impl Iterator<Item = &u64> {
        self.blocks.iter().flatten()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        self.blocks.iter_mut().flatten()
    }

    /// Keeps those that pass, in their order. They are looked at once each, in their order.
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
                // More is put in at first, and more is taken out in the end.
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
