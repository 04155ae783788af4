//! Dataflow of a distributed search, and its driver.
//!
//! In: this process's partition and the connections to the other processes. Out: an [`SearchEnd`],
//! equal in all processes. There are two dataflows. In the first, batches of states go from the
//! operator `search` through a feedback edge, which increments the level, to the operator `search`
//! of the receiving process. The operator holds a capability for each level that has states here.
//! So timely's frontier shows when no batch of a level can arrive any more, and when there is no
//! level left. The second dataflow transports reports.
//!
//! The search itself ([`mu_explore::Partition`]) is not inside an operator: between two steps of
//! the worker, arrived batches are stored, a block of states is expanded, and outgoing batches are
//! put into the operator's mailbox. Cost: a step of the worker for each block; a round of progress
//! messages for each level. Invariants: a level is expanded after the frontier has passed it. A
//! process that ends early reports this to all, and all determine the result from the same reports.

use super::checkpoints::{PartitionStore, Rounds};
use super::control_messages::{ControlMessage, EndReason};
use super::message::{ByAddress, Envelope};
use super::process_group::{Extra, ProcessPart};
use super::trace::GoalSearchProgress;
use super::wire::Health;
use mu_base::limits::peak_resident_bytes;
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_explore::{
    LeafLayout, Partition, Progress, Snapshot, Stamp, Symmetries, SymmetryGroup, Tally,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::operators::generic::{Operator, source};
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{ConnectLoop, Feedback, Probe};
use timely::scheduling::Activator;
use timely::worker::Worker;

/// States expanded between two steps of the worker.
const BLOCK: usize = 2048;
/// Time between reports to process 0, and between checks of the limits.
const TICK: Duration = Duration::from_millis(50);
/// Maximum time that a process waits for messages at once.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Checkpoints of one attempt.
pub(super) struct Checkpointing<'d> {
    pub shelf: &'d dyn PartitionStore,
    pub resumed: Option<&'d Stamp>,
    pub group: SymmetryGroup,
    /// The leaf layout, if one was chosen.
    pub leaves: Option<LeafLayout>,
    /// The number of the last checkpoint that all processes have written.
    pub kept: &'d Cell<Option<u64>>,
}

/// Interface between the operator `search` and its driver.
#[derive(Default)]
pub(super) struct BatchMailbox {
    pub arrived: VecDeque<(u64, Envelope)>,
    leaving: Vec<(u64, Envelope)>,
    /// Levels with a capability.
    pub held: BTreeSet<u64>,
    /// Levels to acquire a capability for, from an earlier level.
    hold: Vec<u64>,
    /// Levels to release.
    release: Vec<u64>,
    /// The lowest level of which batches may still arrive; `None` if there is none.
    pub frontier: Option<u64>,
    activator: Option<Activator>,
}

/// Interface between the operator `reports` and its driver.
#[derive(Default)]
pub(super) struct ReportMailbox {
    pub arrived: VecDeque<Envelope>,
    leaving: Vec<Envelope>,
    closed: bool,
    activator: Option<Activator>,
}

impl ReportMailbox {
    /// Sends a report to some of the processes.
    pub fn send(&mut self, me: usize, to: std::ops::Range<usize>, report: &ControlMessage) {
        let bytes = report.write();
        self.leaving.extend(to.map(|to| Envelope {
            to: narrow::index(to),
            from: Some(narrow::index(me)),
            bytes: bytes.clone(),
        }));
        self.wake();
    }
    /// Ends the sending of reports.
    pub fn close(&mut self) {
        self.closed = true;
        self.wake();
    }
    fn wake(&self) {
        if let Some(activator) = &self.activator {
            activator.activate();
        }
    }
}

/// Builds the dataflow of states.
fn states(worker: &mut Worker, mailbox: &Rc<RefCell<BatchMailbox>>) -> Handle<u64> {
    mailbox.borrow_mut().held.insert(0);
    mailbox.borrow_mut().frontier = Some(0);
    worker.dataflow::<u64, _, _>(|scope| {
        let (handle, cycle) = scope.feedback::<Envelope>(1);
        let pact = DistributorPact(|_| ByAddress);
        let stream = cycle.unary_frontier::<NoopBuilder<Envelope>, _, _, _>(
            pact,
            "search",
            |capability, info| {
                mailbox.borrow_mut().activator = Some(scope.activator_for(info.address));
                let mailbox = mailbox.clone();
                let mut capabilities = BTreeMap::from([(0, capability)]);
                move |(input, frontier), output| {
                    let mut mailbox = mailbox.borrow_mut();
                    let mailbox = &mut *mailbox;
                    input.for_each(|capability, envelope| {
                        if let Some(&level) = capability.least() {
                            capabilities
                                .entry(level)
                                .or_insert_with(|| capability.delayed(&level, 0));
                            mailbox.held.insert(level);
                            mailbox.arrived.push_back((level, std::mem::take(envelope)));
                        }
                    });
                    for (level, mut envelope) in mailbox.leaving.drain(..) {
                        if let Some(capability) = capabilities.get(&level) {
                            output.session_with_builder(capability).give_container(&mut envelope);
                        }
                    }
                    for level in mailbox.hold.drain(..) {
                        if let Some(capability) =
                            capabilities.range(..=level).next_back().map(|c| c.1.delayed(&level))
                        {
                            capabilities.entry(level).or_insert(capability);
                        }
                    }
                    mailbox.release.drain(..).for_each(|level| drop(capabilities.remove(&level)));
                    mailbox.frontier = frontier.frontier().iter().min().copied();
                }
            },
        );
        let (probe, stream) = stream.probe();
        stream.connect_loop(handle);
        probe
    })
}

/// Builds the dataflow of reports.
pub(super) fn reports(worker: &mut Worker, mail: &Rc<RefCell<ReportMailbox>>) {
    worker.dataflow::<u64, _, _>(|scope| {
        let stream =
            source::<_, NoopBuilder<Envelope>, _, _>(scope, "reports", |capability, info| {
                mail.borrow_mut().activator = Some(scope.activator_for(info.address));
                let mail = mail.clone();
                let mut capability = Some(capability);
                move |output| {
                    let mut mail = mail.borrow_mut();
                    for mut envelope in mail.leaving.drain(..) {
                        if let Some(capability) = &capability {
                            output.session_with_builder(capability).give_container(&mut envelope);
                        }
                    }
                    if mail.closed {
                        capability = None;
                    }
                }
            });
        let mail = mail.clone();
        stream.sink(DistributorPact(|_| ByAddress), "reading reports", move |(input, _)| {
            input.for_each(|_, envelope| {
                mail.borrow_mut().arrived.push_back(std::mem::take(envelope))
            });
        });
    });
}

/// The last report of a process: its final one, or its progress.
#[derive(Clone, Default)]
pub(super) struct LastReport {
    part: ProcessPart,
    last: Option<(Option<EndReason>, Vec<usize>, Vec<u8>)>,
    /// True if no state of its partition is missing, according to its final report.
    consistent: bool,
    /// A goal state of its partition.
    pub hit: Option<Vec<u8>>,
}

/// Driver of one search by all processes.
pub(super) struct SearchDriver<'d, 'm> {
    pub worker: &'d mut Worker,
    pub partition: &'d mut Partition<'m>,
    symmetries: Option<&'m Symmetries>,
    budget: &'d Budget,
    progress: &'d dyn Progress,
    pub health: &'d Health,
    me: usize,
    start: Instant,
    pub mailbox: Rc<RefCell<BatchMailbox>>,
    mail: Rc<RefCell<ReportMailbox>>,
    /// By process.
    pub last_reports: Vec<LastReport>,
    /// The current level.
    pub current_level: Option<u64>,
    pub trace: GoalSearchProgress,
    /// Reason for an early end in this process.
    why: Option<EndReason>,
    /// True if all processes are to end.
    halted: bool,
    /// True if batches in transit must still arrive then.
    drains: bool,
    ticked: Instant,
    shelf: Option<Checkpointing<'d>>,
    rounds: Rounds,
    /// The random number of this run, when it is known.
    run: Option<u64>,
    /// The first level that was not begun.
    next: u64,
    /// True if some process could not write its partition.
    unwritten: bool,
}

/// Result of a search, equal in all processes.
pub(super) struct SearchEnd {
    /// Totals by process.
    pub parts: Vec<ProcessPart>,
    pub stop: Stop,
    /// True if an annotation decided.
    pub decided: bool,
    /// Final reports by process.
    pub final_report: Vec<Vec<u8>>,
    /// The path to the goal.
    pub path: Option<Vec<Vec<u8>>>,
}

impl SearchEnd {
    /// Returns the result for `count` processes that have not searched.
    pub fn without_search(count: usize, stop: Stop) -> Self {
        Self {
            parts: vec![ProcessPart::default(); count],
            stop,
            decided: false,
            final_report: Vec::new(),
            path: None,
        }
    }
}

/// True if a search with this reason can still store batches in transit.
fn permits_draining(why: &EndReason) -> bool {
    matches!(why, EndReason::Stopped(Stop::States | Stop::Time | Stop::Interrupted))
}

impl<'d, 'm> SearchDriver<'d, 'm> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        worker: &'d mut Worker,
        partition: &'d mut Partition<'m>,
        symmetries: Option<&'m Symmetries>,
        budget: &'d Budget,
        progress: &'d dyn Progress,
        health: &'d Health,
        (me, count): (usize, usize),
        start: Instant,
        shelf: Option<Checkpointing<'d>>,
    ) -> Self {
        let number = shelf.as_ref().and_then(|s| s.resumed).map_or(0, |s| s.number);
        Self {
            worker,
            partition,
            symmetries,
            budget,
            progress,
            health,
            me,
            start,
            mailbox: Rc::default(),
            mail: Rc::default(),
            last_reports: vec![LastReport::default(); count],
            current_level: None,
            trace: GoalSearchProgress::default(),
            why: None,
            halted: false,
            drains: true,
            ticked: Instant::now(),
            shelf,
            rounds: Rounds::new(count, number),
            run: None,
            next: 0,
            unwritten: false,
        }
    }

    pub fn run(mut self, orderly: &Cell<bool>, extra: Extra<'_>) -> Result<SearchEnd, Diagnostic> {
        let probe = states(self.worker, &self.mailbox);
        reports(self.worker, &self.mail);
        if let Err(error) = self.begin() {
            self.stop_for(error);
        }
        while !probe.done() || !self.mailbox.borrow().arrived.is_empty() {
            let busy = self.partition.is_busy() && !self.halted;
            self.worker.step_or_park(Some(if busy { Duration::ZERO } else { POLL_INTERVAL }));
            if self.health.lost_process().is_some() {
                return Ok(self.result_after_loss());
            }
            self.arrivals();
            self.read_reports()?;
            self.tick();
            if self.halted {
                self.release_all();
            } else {
                self.work();
                self.checkpoint();
                self.halted |= self.advance_trace();
            }
            // Activate the operator only if it has work, so that the worker can sleep.
            let mailbox = self.mailbox.borrow();
            if let Some(activator) = &mailbox.activator
                && !(mailbox.leaving.is_empty()
                    && mailbox.hold.is_empty()
                    && mailbox.release.is_empty())
            {
                activator.activate();
            }
        }
        // All processes have reached this end: each sends its final report, and closes after
        // receiving all.
        let failed = self.symmetries.map(Symmetries::refuted_candidates).unwrap_or_default();
        let final_report = match extra(self.partition, self.halted) {
            Ok(final_report) => final_report,
            Err(error) => {
                if !self.halted {
                    self.why = Some(error.into());
                }
                Vec::new()
            }
        };
        let last = ControlMessage::Last {
            tally: self.partition.tally(),
            memory: peak_resident_bytes(),
            why: self.why.take(),
            failed,
            final_report,
            consistent: self.partition.is_consistent(),
            hit: self.partition.least_goal_state()?,
        };
        self.send(0..self.last_reports.len(), &last);
        while self.last_reports.iter().any(|h| h.last.is_none()) {
            self.step_for_reports()?;
            if self.health.lost_process().is_some() {
                return Ok(self.result_after_loss());
            }
        }
        let ended_well =
            self.last_reports.iter().all(|h| h.last.as_ref().is_some_and(|l| l.0.is_none()));
        let path = if ended_well { self.path()? } else { None };
        let mut unkept = None;
        if self.can_write_final() {
            let number = self.rounds.last();
            unkept = self.write_checkpoint(number).err();
            self.send(
                0..self.last_reports.len(),
                &if unkept.is_none() {
                    ControlMessage::Written(number)
                } else {
                    ControlMessage::Unwritten(number)
                },
            );
            while !self.rounds.all_wrote(number) && !self.unwritten {
                self.step_for_reports()?;
                if self.health.lost_process().is_some() {
                    return Ok(self.result_after_loss());
                }
            }
            if !self.unwritten {
                self.settle(number);
            }
        }
        self.mail.borrow_mut().close();
        while self.worker.has_dataflows() {
            self.worker.step_or_park(Some(POLL_INTERVAL));
            if self.health.lost_process().is_some() {
                return Ok(self.result_after_loss());
            }
        }
        orderly.set(true);
        match unkept {
            Some(error) => Err(error),
            None => self.final_result(path),
        }
    }

    /// Derives the result from the final reports, equally in all processes.
    fn final_result(self, path: Option<Vec<Vec<u8>>>) -> Result<SearchEnd, Diagnostic> {
        let parts: Vec<ProcessPart> = self.last_reports.iter().map(|h| h.part).collect();
        let whys: Vec<EndReason> =
            self.last_reports.iter().filter_map(|h| h.last.as_ref()?.0.clone()).collect();
        if let (Some(symmetries), true) = (self.symmetries, whys.contains(&EndReason::Broken)) {
            let failed: Vec<usize> = self
                .last_reports
                .iter()
                .filter_map(|h| h.last.as_ref())
                .flat_map(|l| l.1.iter().copied())
                .collect();
            symmetries.fail(&failed);
            return Err(symmetries.refute());
        }
        let final_report =
            self.last_reports.iter().filter_map(|h| Some(h.last.as_ref()?.2.clone())).collect();
        if whys.contains(&EndReason::Decided) {
            return Ok(SearchEnd {
                parts,
                stop: Stop::Complete,
                decided: true,
                final_report,
                path,
            });
        }
        let failures =
            whys.iter().filter_map(|w| if let EndReason::Failed(e) = w { Some(e) } else { None });
        if let Some(first) = failures.min_by(|a, b| (a.span, &a.message).cmp(&(b.span, &b.message)))
        {
            return Err((**first).clone());
        }
        let stop = whys
            .into_iter()
            .find_map(|w| if let EndReason::Stopped(stop) = w { Some(stop) } else { None });
        let too_many = self.exceeds_states();
        let decided = path.is_some() && self.partition.has_annotations();
        Ok(SearchEnd {
            parts,
            stop: stop.unwrap_or(if too_many { Stop::States } else { Stop::Complete }),
            decided,
            final_report,
            path,
        })
    }

    /// Returns the result after the loss of a process: the known totals.
    fn result_after_loss(mut self) -> SearchEnd {
        self.last_reports[self.me].part =
            ProcessPart { tally: self.partition.tally(), memory: peak_resident_bytes() };
        let parts = self.last_reports.iter().map(|h| h.part).collect();
        SearchEnd { parts, stop: Stop::Lost, decided: false, final_report: Vec::new(), path: None }
    }

    /// Stores arrived batches.
    fn arrivals(&mut self) {
        let arrived = std::mem::take(&mut self.mailbox.borrow_mut().arrived);
        for (level, envelope) in arrived {
            if self.halted && !self.drains {
                continue;
            }
            // Annotations belong to their level: earlier ones come first.
            if !self.halted && self.partition.has_annotations() && self.is_early(level) {
                self.mailbox.borrow_mut().arrived.push_back((level, envelope));
                continue;
            }
            let received = match envelope.from {
                Some(from) => self.partition.receive(from as usize, level, &envelope.bytes),
                None => Err(Diagnostic::internal("a malformed batch arrived")),
            };
            if let Err(error) = received {
                self.stop_for(error);
            }
        }
    }

    /// True if this process has not begun some level before the previous one of `level`, or that
    /// previous one.
    fn is_early(&self, level: u64) -> bool {
        let mailbox = self.mailbox.borrow();
        mailbox.held.iter().any(|held| *held < level && self.current_level != Some(*held))
    }

    /// Begins a level, expands a block of it, or ends it.
    fn work(&mut self) {
        let level = match self.current_level {
            Some(level) => level,
            None => {
                let mailbox = self.mailbox.borrow();
                let Some(&level) =
                    mailbox.held.first().filter(|l| mailbox.frontier.is_none_or(|f| f > **l))
                else {
                    return;
                };
                if !self.rounds.may_begin(level) || !self.trace.may_begin(level) {
                    return;
                }
                drop(mailbox);
                self.request_checkpoint();
                self.current_level = Some(level);
                self.next = level + 1;
                self.partition.begin_level(level);
                level
            }
        };
        if self.has_too_many() {
            self.halt(EndReason::Stopped(Stop::States));
            return;
        }
        let mut mailbox = self.mailbox.borrow_mut();
        let from = Some(narrow::index(self.me));
        let mut send = |(to, bytes): mu_explore::Batch| {
            mailbox.leaving.push((level, Envelope { to: narrow::index(to), from, bytes }))
        };
        let result = self.partition.expand(BLOCK, &mut send);
        if self.partition.waiting_levels().any(|l| l == level + 1) && mailbox.held.insert(level + 1)
        {
            mailbox.hold.push(level + 1);
        }
        if result.is_ok() && !self.partition.is_busy() {
            mailbox.held.remove(&level);
            if self.partition.goal_level() == Some(level) {
                self.trace.kept = Some(level);
            } else {
                mailbox.release.push(level);
            }
            self.current_level = None;
        }
        drop(mailbox);
        if let Err(error) = result {
            self.stop_for(error);
        } else if self.partition.is_decided() {
            self.halt(EndReason::Decided);
        }
    }

    /// Releases all capabilities, so that the dataflow terminates.
    fn release_all(&mut self) {
        let mut mailbox = self.mailbox.borrow_mut();
        let mailbox = &mut *mailbox;
        if !self.drains {
            mailbox.leaving.clear();
        } else if let Some(level) = self.current_level.take() {
            let from = Some(narrow::index(self.me));
            self.partition.flush_batches(&mut |(to, bytes)| {
                mailbox.leaving.push((level, Envelope { to: narrow::index(to), from, bytes }))
            });
        }
        mailbox.hold.clear();
        mailbox.release.extend(std::mem::take(&mut mailbox.held));
        mailbox.release.extend(self.trace.kept.take());
    }

    fn stop_for(&mut self, error: Diagnostic) {
        let broken = self.symmetries.is_some_and(Symmetries::broken);
        self.halt(if broken { EndReason::Broken } else { error.into() });
    }

    /// Ends the search, here and everywhere.
    fn halt(&mut self, why: EndReason) {
        let drain = self.shelf.as_ref().is_some_and(|s| s.shelf.keeps()) && permits_draining(&why);
        let changed = !self.halted || self.drains && !drain;
        // An error during draining takes precedence over the limit before it.
        if self.why.as_ref().is_none_or(|before| permits_draining(before) && self.drains && !drain)
        {
            self.why = Some(why);
        }
        self.drains &= drain;
        if changed {
            self.halted = true;
            self.send(0..self.last_reports.len(), &ControlMessage::Halt { drain });
        }
    }

    /// Stores the initial state, or reads a checkpoint.
    fn begin(&mut self) -> Result<(), Diagnostic> {
        let Some(Checkpointing { shelf, resumed, .. }) = &self.shelf else {
            return self.partition.insert_initial();
        };
        if self.me == 0 && shelf.keeps() {
            if resumed.is_none() {
                shelf.clear()?;
            }
            let run = super::handshake::random_number()?;
            self.send(0..self.last_reports.len(), &ControlMessage::Run(run));
        }
        let Some(Checkpointing { shelf, resumed: Some(_), .. }) = &self.shelf else {
            return self.partition.insert_initial();
        };
        shelf.read(self.partition)?;
        let mut mailbox = self.mailbox.borrow_mut();
        for level in self.partition.waiting_levels() {
            if mailbox.held.insert(level) {
                mailbox.hold.push(level);
            }
        }
        Ok(())
    }

    /// Advances a requested checkpoint.
    fn checkpoint(&mut self) {
        if let Some(number) = self.rounds.enter() {
            self.send(
                0..self.last_reports.len(),
                &ControlMessage::Next { number, level: self.next },
            );
        }
        if let Some(boundary) = self.rounds.boundary() {
            let mailbox = self.mailbox.borrow();
            // All batches of that level have arrived, and it is not the end.
            let reached = self.current_level.is_none()
                && mailbox.arrived.is_empty()
                && mailbox.frontier.is_some_and(|f| f > boundary);
            drop(mailbox);
            if reached {
                let number = self.rounds.write();
                match self.write_checkpoint(number) {
                    Ok(()) => {
                        self.send(0..self.last_reports.len(), &ControlMessage::Written(number))
                    }
                    Err(error) => self.stop_for(error),
                }
            }
        }
        if let Some(number) = self.rounds.leave() {
            self.settle(number);
        }
    }

    /// Writes this process's partition.
    fn write_checkpoint(&mut self, number: u64) -> Result<(), Diagnostic> {
        let (Some(kept), Some(run)) = (&self.shelf, self.run) else {
            return Err(Diagnostic::internal("a checkpoint without a store"));
        };
        let stamp = self.stamp(kept, run, number);
        kept.shelf.keep(self.partition, &stamp)
    }

    fn stamp(&self, kept: &Checkpointing<'_>, run: u64, number: u64) -> Stamp {
        let (process, processes) = (narrow::index(self.me), narrow::index(self.last_reports.len()));
        Stamp {
            fingerprint: kept.shelf.fingerprint(),
            run,
            number,
            process,
            processes,
            symmetries: kept.group.clone(),
            leaves: kept.leaves.clone(),
        }
    }

    /// Completes a checkpoint after all processes have written.
    fn settle(&self, number: u64) {
        if let (Some(kept), Some(run)) = (&self.shelf, self.run) {
            kept.kept.set(Some(number));
            if self.me == 0 {
                kept.shelf.settle(&self.stamp(kept, run, number));
            }
        }
    }

    /// True if all states together exceed the limit. A search may end before any process has
    /// received all counts.
    fn exceeds_states(&self) -> bool {
        let states: u64 = self.last_reports.iter().map(|h| h.part.tally.states).sum();
        self.budget.limits().max_states.is_some_and(|most| states > most)
    }

    /// True if the search ended early in a state that can be written as a checkpoint; equal in all
    /// processes.
    fn can_write_final(&self) -> bool {
        let mut last = self.last_reports.iter().filter_map(|h| h.last.as_ref());
        let keeps = self.shelf.as_ref().is_some_and(|s| s.shelf.keeps());
        let consistent = self.last_reports.iter().all(|h| h.consistent);
        let ended_early = self.exceeds_states() || last.clone().any(|l| l.0.is_some());
        keeps
            && consistent
            && ended_early
            && last.all(|l| l.0.as_ref().is_none_or(permits_draining))
    }

    pub(super) fn send(&mut self, to: std::ops::Range<usize>, report: &ControlMessage) {
        self.mail.borrow_mut().send(self.me, to, report);
    }

    fn step_for_reports(&mut self) -> Result<(), Diagnostic> {
        self.worker.step_or_park(Some(POLL_INTERVAL));
        self.read_reports()
    }

    pub(super) fn read_reports(&mut self) -> Result<(), Diagnostic> {
        let arrived = std::mem::take(&mut self.mail.borrow_mut().arrived);
        for envelope in arrived {
            let from = envelope.from.map_or(usize::MAX, |from| from as usize);
            let last_reports = self
                .last_reports
                .get_mut(from)
                .ok_or_else(|| Diagnostic::internal("a report from an unknown process"))?;
            match ControlMessage::read(&envelope.bytes)? {
                ControlMessage::Tally(tally) => last_reports.part.tally = tally,
                ControlMessage::Halt { drain } => {
                    self.halted = true;
                    self.drains &= drain;
                }
                ControlMessage::Run(run) => self.run = Some(run),
                ControlMessage::RequestCheckpoint(number) => self.rounds.ask(number),
                ControlMessage::Next { number, level } => {
                    self.rounds.record_next(number, from, level)
                }
                ControlMessage::Written(number) => self.rounds.record_written(number, from),
                ControlMessage::Unwritten(_) => self.unwritten = true,
                ControlMessage::GoalReached(level) => self.trace.record_goal(level),
                ControlMessage::LevelDone => self.trace.record_completion(from),
                ControlMessage::Predecessor { level, state } => {
                    self.trace.record_predecessor(level, from, state)
                }
                ControlMessage::Last {
                    tally,
                    memory,
                    why,
                    failed,
                    final_report,
                    consistent,
                    hit,
                } => {
                    *last_reports = LastReport {
                        part: ProcessPart { tally, memory },
                        last: Some((why, failed, final_report)),
                        consistent,
                        hit,
                    };
                }
            }
        }
        Ok(())
    }

    /// Requests a checkpoint if one is due: process 0, periodically and before each level.
    fn request_checkpoint(&mut self) {
        if self.me == 0
            && let Some(number) = self.rounds.next_number()
            && self.shelf.as_ref().is_some_and(|s| s.shelf.keeps() && s.shelf.due())
        {
            self.send(0..self.last_reports.len(), &ControlMessage::RequestCheckpoint(number));
        }
    }

    /// True if this process's states, together with the last counts of the others, exceed the
    /// limit. So this also ends short searches.
    fn has_too_many(&self) -> bool {
        let Some(most) = self.budget.limits().max_states else { return false };
        let others = self
            .last_reports
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != self.me)
            .map(|(_, h)| h.part.tally.states)
            .sum::<u64>();
        self.partition.tally().states + others > most
    }

    /// Periodically checks the limits, reports progress to process 0, and shows the total progress.
    fn tick(&mut self) {
        if self.ticked.elapsed() < TICK || self.halted {
            return;
        }
        self.ticked = Instant::now();
        let tally = self.partition.tally();
        self.last_reports[self.me].part.tally = tally;
        let all = |of: fn(&Tally) -> u64| {
            self.last_reports.iter().map(|h| of(&h.part.tally)).sum::<u64>()
        };
        let states = all(|t| t.states);
        if self.me == 0 {
            self.progress.report(&Snapshot {
                states,
                transitions: all(|t| t.transitions),
                level: self.last_reports.iter().map(|h| h.part.tally.levels).max().unwrap_or(0),
                waiting: all(|t| t.waiting),
                elapsed: self.start.elapsed(),
            });
        } else {
            self.send(0..1, &ControlMessage::Tally(tally));
        }
        self.request_checkpoint();
        if let Err(stop) = self.budget.check(states).and_then(|()| self.budget.check_memory()) {
            self.halt(EndReason::Stopped(stop));
        }
    }
}
