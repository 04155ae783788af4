//! Distributed goal search: agreement on the level that reaches the goal, and joint reconstruction
//! of the path.
//!
//! In: the level of the process that reaches the goal first. No process begins a later level then,
//! because that process holds its capability. When all have completed the level, all stop. The path
//! ends at the least goal state, or the least state with a goal step, by its bytes. Then each
//! process repeatedly searches for states of the previous level that step to the first state of the
//! path, and all take the least.
//!
//! Cost: two short messages from each process to each other, and for each step of the path a
//! message with a state. Invariant: all processes know the same path, which does not depend on
//! their number.

use super::control_messages::ControlMessage;
use super::dataflow::{POLL_INTERVAL, SearchDriver};
use mu_base::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// Progress of a distributed goal search.
#[derive(Default)]
pub(super) struct GoalSearchProgress {
    /// The level that reaches the goal.
    level: Option<u64>,
    /// True if this process has reported the goal, and the completion of the level.
    reported: bool,
    final_report: bool,
    /// Processes that have completed the level.
    completed: BTreeSet<usize>,
    /// The capability of that level, if this process holds it.
    pub kept: Option<u64>,
    /// By level and process: the predecessor found, if any.
    before: BTreeMap<(u64, usize), Vec<u8>>,
}

impl GoalSearchProgress {
    /// Records that a process has reached the goal.
    pub fn record_goal(&mut self, level: u64) {
        self.level = Some(self.level.map_or(level, |l| l.min(level)));
    }
    /// Records that a process has completed the level.
    pub fn record_completion(&mut self, from: usize) {
        self.completed.insert(from);
    }
    /// Records a process's predecessor of the last state, or its absence.
    pub fn record_predecessor(&mut self, level: u64, from: usize, state: Vec<u8>) {
        self.before.insert((level, from), state);
    }
    /// True if a level may begin.
    pub fn may_begin(&self, level: u64) -> bool {
        self.level.is_none_or(|l| level <= l)
    }
}

impl SearchDriver<'_, '_> {
    /// Sends the reports of the goal search. Returns true if all have completed the level and the
    /// search is to end.
    pub(super) fn advance_trace(&mut self) -> bool {
        if let (Some(level), false) = (self.partition.goal_level(), self.trace.reported) {
            self.trace.reported = true;
            self.trace.record_goal(level);
            self.send(0..self.last_reports.len(), &ControlMessage::GoalReached(level));
        }
        if let (Some(level), false) = (self.trace.level, self.trace.final_report) {
            let mailbox = self.mailbox.borrow();
            let completed = self.current_level.is_none_or(|b| b > level)
                && mailbox.arrived.is_empty()
                && mailbox.held.first().is_none_or(|l| *l > level)
                && mailbox.frontier.is_none_or(|f| f > level);
            drop(mailbox);
            if completed {
                self.trace.final_report = true;
                self.send(0..self.last_reports.len(), &ControlMessage::LevelDone);
            }
        }
        self.trace.completed.len() == self.last_reports.len()
    }

    /// Returns the states of the path, from the initial one, if the goal was reached; after all
    /// final reports.
    pub(super) fn path(&mut self) -> Result<Option<Vec<Vec<u8>>>, Diagnostic> {
        let hits = self.last_reports.iter().filter_map(|h| h.hit.clone());
        let (Some(mut state), Some(last)) = (hits.min(), self.trace.level) else { return Ok(None) };
        let mut path = vec![state.clone()];
        for level in (0..last).rev() {
            let own = self.partition.predecessor(level, &state)?.unwrap_or_default();
            self.send(
                0..self.last_reports.len(),
                &ControlMessage::Predecessor { level, state: own },
            );
            while self.trace.before.range((level, 0)..=(level, usize::MAX)).count()
                < self.last_reports.len()
            {
                self.worker.step_or_park(Some(POLL_INTERVAL));
                self.read_reports()?;
                if let Some(lost) = self.health.lost_process() {
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
                Diagnostic::internal("no process has a predecessor of a reached state")
            })?;
            path.push(state.clone());
        }
        path.reverse();
        Ok(Some(path))
    }
}
