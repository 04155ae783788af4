//! What the threads of a search are given in a round, and what they make of it.

use super::cache::CacheStatistics;
use super::rows::Edges;
use super::search::Hit;
use super::stubborn::Saved;
use mu_base::{Diagnostic, Stop};

/// Consecutive states of a level.
pub(super) struct Block {
    /// Number of the first one within the level.
    pub first: u64,
    pub keys: Vec<u64>,
}

/// What the threads make of a round.
#[derive(Default)]
pub(super) struct Round {
    pub todo: Vec<Block>,
    pub next: Vec<Vec<u64>>,
    pub edges: Vec<Edges>,
    /// Targets that found no room, with what is brought to them.
    pub unplaced: Vec<(u64, u32)>,
    pub hits: Vec<Hit>,
    pub dead: Vec<(u64, u64)>,
    pub stop: Option<Stop>,
    pub error: Option<Diagnostic>,
    pub deadlocks: u64,
    pub transitions: u64,
    /// What the orbits of the states expanded have beyond these.
    pub surplus: u64,
    pub overflow: bool,
    pub statistics: CacheStatistics,
    pub saved: Saved,
}

impl Round {
    /// An error of a model, or the limit that it met. Of several errors the one with the first place is kept, whatever thread was first.
    pub fn fail(&mut self, error: Diagnostic) {
        match error.stop {
            Some(stop) => self.stop = Some(stop),
            None if self.error.as_ref().is_none_or(|e| (error.span, &error.message) < (e.span, &e.message)) => self.error = Some(error),
            None => {}
        }
    }
}
