//! What the processes look for: they agree on the level that has it, and go back from there
//! together.
//!
//! In: the level of whoever meets it first. Nobody begins a later level then, since that process
//! keeps its capability; when all have searched the level to its end, all stop, and the least state
//! that is sought or has a step that is, by its bytes, is where the way ends. Then each process in
//! turns looks for states of the level before that step to the last state of the way, and all take
//! the least.
//!
//! Cost: two short messages from each process to each other, and for each step of the way a message
//! with a state. Invariant: all processes know the same way, which does not depend on how many they
//! are.

use super::control_messages::Report;
use super::dataflow::{Drive, NAP};
use mu_base::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// How far the processes are with what they look for.
#[derive(Default)]
pub(super) struct Trace {
    /// The level that has it.
    level: Option<u64>,
    /// Whether this process has said that it met it, and that it is through with the level.
    reported: bool,
    said: bool,
    /// Processes that are through with the level.
    through: BTreeSet<usize>,
    /// The capability of that level, which this process keeps.
    pub kept: Option<u64>,
    /// By level and process: the state before the last one of the way, if it has one.
    before: BTreeMap<(u64, usize), Vec<u8>>,
}

impl Trace {
    /// A process has met it.
    pub fn hear_hit(&mut self, level: u64) {
        self.level = Some(self.level.map_or(level, |l| l.min(level)));
    }
    /// A process is through.
    pub fn hear_through(&mut self, from: usize) {
        self.through.insert(from);
    }
    /// A process has a state before the last one, or none.
    pub fn hear_before(&mut self, level: u64, from: usize, state: Vec<u8>) {
        self.before.insert((level, from), state);
    }
    /// Whether a level may begin.
    pub fn may_begin(&self, level: u64) -> bool {
        self.level.is_none_or(|l| level <= l)
    }
}

impl Drive<'_, '_> {
    /// Says what is to be said of the search for something; true if all are through and the search
    /// is to end.
    pub(super) fn look(&mut self) -> bool {
        if let (Some(level), false) = (self.share.goal_level(), self.trace.reported) {
            self.trace.reported = true;
            self.trace.hear_hit(level);
            self.send(0..self.heard.len(), &Report::Hit(level));
        }
        if let (Some(level), false) = (self.trace.level, self.trace.said) {
            let desk = self.desk.borrow();
            let through = self.begun.is_none_or(|b| b > level)
                && desk.arrived.is_empty()
                && desk.held.first().is_none_or(|l| *l > level)
                && desk.frontier.is_none_or(|f| f > level);
            drop(desk);
            if through {
                self.trace.said = true;
                self.send(0..self.heard.len(), &Report::Through);
            }
        }
        self.trace.through.len() == self.heard.len()
    }

    /// The states of the way, from the initial one on, if something was met; after all have said
    /// their last.
    pub(super) fn way(&mut self) -> Result<Option<Vec<Vec<u8>>>, Diagnostic> {
        let hits = self.heard.iter().filter_map(|h| h.hit.clone());
        let (Some(mut state), Some(last)) = (hits.min(), self.trace.level) else { return Ok(None) };
        let mut way = vec![state.clone()];
        for level in (0..last).rev() {
            let own = self.share.predecessor(level, &state)?.unwrap_or_default();
            self.send(0..self.heard.len(), &Report::Before { level, state: own });
            while self.trace.before.range((level, 0)..=(level, usize::MAX)).count()
                < self.heard.len()
            {
                self.worker.step_or_park(Some(NAP));
                self.read_reports()?;
                if let Some(lost) = self.health.lost() {
                    return Err(Diagnostic::stopped(mu_base::Stop::Lost).note(lost));
                }
            }
            let found = self
                .trace
                .before
                .range((level, 0)..=(level, usize::MAX))
                .map(|b| b.1)
                .filter(|b| !b.is_empty());
            state = found.min().cloned().ok_or_else(|| {
                Diagnostic::internal("no process has a state before one that was met")
            })?;
            way.push(state.clone());
        }
        way.reverse();
        Ok(Some(way))
    }
}
