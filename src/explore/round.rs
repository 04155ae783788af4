//! Work and results of a round of the parallel search.

use super::expander::CacheStatistics;
use super::lts_builder::Edges;
use super::search::GoalHit;
use super::stubborn::ReductionSavings;
use mu_base::{Diagnostic, Stop};
use std::collections::VecDeque;

/// Consecutive states of a level.
pub(super) struct Block {
    /// Number of its first state within the level.
    pub first: u64,
    pub keys: Vec<u64>,
}

/// Work and results of a round.
#[derive(Default)]
pub(super) struct Round {
    /// Blocks not given to a thread, or given back.
    pub todo: Vec<Block>,
    /// Blocks to expand, by thread.
    shares: Vec<VecDeque<Block>>,
    pub next: Vec<Vec<u64>>,
    pub edges: Vec<Edges>,
    /// Targets that found no room, with the annotations that reach them.
    pub unplaced: Vec<(u64, u32)>,
    pub hits: Vec<GoalHit>,
    pub dead: Vec<(u64, u64)>,
    pub stop: Option<Stop>,
    pub error: Option<Diagnostic>,
    pub deadlocks: u64,
    pub transitions: u64,
    /// Sum over expanded states of (orbit size - 1).
    pub surplus: u64,
    pub overflow: bool,
    pub statistics: CacheStatistics,
    pub saved: ReductionSavings,
}

impl Round {
    /// Gives each thread consecutive blocks, in descending order. States discovered together are
    /// alike, so the caches of a thread stay useful from block to block.
    pub fn share(&mut self, blocks: Vec<Block>, threads: usize) {
        let each = blocks.len().div_ceil(threads).max(1);
        self.shares = (0..threads).map(|_| VecDeque::new()).collect();
        for (i, block) in blocks.into_iter().rev().enumerate() {
            self.shares[i / each].push_back(block);
        }
    }
    /// Returns the next block of a thread; if it has none left, the last block of the thread with
    /// the most.
    pub fn claim(&mut self, thread: usize) -> Option<Block> {
        if let Some(block) = self.shares.get_mut(thread).and_then(VecDeque::pop_front) {
            return Some(block);
        }
        self.shares.iter_mut().max_by_key(|share| share.len())?.pop_back()
    }
    /// Takes back the unclaimed blocks.
    pub fn take_back(&mut self) {
        self.todo.extend(self.shares.drain(..).rev().flat_map(|share| share.into_iter().rev()));
    }
    /// Records an error of a model, or the limit that it reports. Of several errors the one with
    /// the first position wins, regardless of threads.
    pub fn fail(&mut self, error: Diagnostic) {
        match error.stop {
            Some(stop) => self.stop = Some(stop),
            None if self
                .error
                .as_ref()
                .is_none_or(|e| (error.span, &error.message) < (e.span, &e.message)) =>
            {
                self.error = Some(error)
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(count: u64) -> Vec<Block> {
        (0..count).rev().map(|first| Block { first, keys: Vec::new() }).collect()
    }

    #[test]
    fn each_block_is_claimed_once() {
        for (count, threads) in [(0, 1), (1, 1), (1, 3), (2, 3), (7, 2), (10, 3), (12, 4)] {
            for only in [None, Some(0), Some(threads - 1)] {
                let mut round = Round::default();
                round.share(blocks(count), threads);
                let mut seen: Vec<u64> = Vec::new();
                for turn in 0.. {
                    let Some(block) = round.claim(only.unwrap_or(turn % threads)) else { break };
                    seen.push(block.first);
                }
                seen.sort_unstable();
                assert!(
                    seen.iter().copied().eq(0..count),
                    "{count} blocks, {threads} threads: {seen:?}"
                );
            }
        }
    }

    #[test]
    fn a_thread_gets_neighbours_and_then_what_is_farthest_from_its_victim() {
        let mut round = Round::default();
        round.share(blocks(8), 2);
        let mut claim = |thread| round.claim(thread).map(|block| block.first);
        assert_eq!([claim(0), claim(1), claim(0), claim(1)], [Some(0), Some(4), Some(1), Some(5)]);
        assert_eq!([claim(0), claim(0), claim(0)], [Some(2), Some(3), Some(7)]);
        assert_eq!([claim(1), claim(1), claim(0)], [Some(6), None, None]);
    }

    #[test]
    fn what_was_not_claimed_comes_back_in_descending_order() {
        let mut round = Round::default();
        round.share(blocks(6), 2);
        assert_eq!(
            (round.claim(0).map(|b| b.first), round.claim(1).map(|b| b.first)),
            (Some(0), Some(3))
        );
        round.take_back();
        assert!(round.todo.iter().map(|b| b.first).eq([5, 4, 2, 1]));
        assert!(round.claim(0).is_none());
    }
}
