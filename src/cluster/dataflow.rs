//! The dataflow of a search, and what drives it.
//!
//! In: this process's share and the connections to the other processes. Out: an [`Ended`], the same
//! in all processes. There are two dataflows. In the first, parcels of states go from the operator
//! `search` through a feedback edge, which counts the level up, back to the operator `search` of
//! the process that they are for. The operator keeps a capability for each level that has states
//! here; so timely's frontier tells when no parcel of a level can come any more, and when there is
//! no level left. The second carries reports.
//!
//! The search itself ([`mu_explore::Partition`]) is not inside an operator: between two steps of the
//! worker, what came in is stored, a block of states is expanded, and what is to go out is put on
//! the operator's desk. Cost: a step of the worker for each block; a round of progress messages for
//! each level. Invariants: a level is expanded when the frontier has passed it; a process that ends
//! early for whatever reason says so to all, and all decide by the same reports what the end is.

use super::checkpoints::{Rounds, Shelf};
use super::control_messages::{Report, Why};
use super::message::{ByAddress, Parcel};
use super::process_group::{Extra, Part};
use super::trace::Trace;
use super::wire::Health;
use mu_base::limits::peak_resident_bytes;
use mu_base::{Budget, Diagnostic, Stop};
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
/// Time between reports to process 0, and between looks at the limits.
const TICK: Duration = Duration::from_millis(50);
/// Longest time that a process waits for messages at once.
pub(super) const NAP: Duration = Duration::from_millis(5);
/// The checkpoints of one attempt.
pub(super) struct Kept<'d> {
    pub shelf: &'d dyn Shelf,
    pub resumed: Option<&'d Stamp>,
    pub group: SymmetryGroup,
    /// Which slots are numbered together, if that was chosen.
    pub leaves: Option<LeafLayout>,
    /// The last one that all have written.
    pub kept: &'d Cell<Option<u64>>,
}

/// Between the operator `search` and what drives it.
#[derive(Default)]
pub(super) struct Desk {
    pub arrived: VecDeque<(u64, Parcel)>,
    leaving: Vec<(u64, Parcel)>,
    /// Levels with a capability.
    pub held: BTreeSet<u64>,
    /// Levels to get one, from a level before.
    hold: Vec<u64>,
    /// Levels to lose it.
    release: Vec<u64>,
    /// The least level of which parcels may still come; none: of none.
    pub frontier: Option<u64>,
    activator: Option<Activator>,
}

/// Between the operator `reports` and what drives it.
#[derive(Default)]
pub(super) struct Mail {
    pub arrived: VecDeque<Parcel>,
    leaving: Vec<Parcel>,
    closed: bool,
    activator: Option<Activator>,
}

impl Mail {
    /// Sends a report to some of the processes.
    pub fn send(&mut self, me: usize, to: std::ops::Range<usize>, report: &Report) {
        let bytes = report.write();
        self.leaving.extend(to.map(|to| Parcel {
            to: to as u32,
            from: Some(me as u32),
            bytes: bytes.clone(),
        }));
        self.wake();
    }
    /// Nothing is sent any more.
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
fn states(worker: &mut Worker, desk: &Rc<RefCell<Desk>>) -> Handle<u64> {
    desk.borrow_mut().held.insert(0);
    desk.borrow_mut().frontier = Some(0);
    worker.dataflow::<u64, _, _>(|scope| {
        let (handle, cycle) = scope.feedback::<Parcel>(1);
        let pact = DistributorPact(|_| ByAddress);
        let stream = cycle.unary_frontier::<NoopBuilder<Parcel>, _, _, _>(
            pact,
            "search",
            |capability, info| {
                desk.borrow_mut().activator = Some(scope.activator_for(info.address));
                let desk = desk.clone();
                let mut capabilities = BTreeMap::from([(0, capability)]);
                move |(input, frontier), output| {
                    let mut desk = desk.borrow_mut();
                    let desk = &mut *desk;
                    input.for_each(|capability, parcel| {
                        if let Some(&level) = capability.least() {
                            capabilities
                                .entry(level)
                                .or_insert_with(|| capability.delayed(&level, 0));
                            desk.held.insert(level);
                            desk.arrived.push_back((level, std::mem::take(parcel)));
                        }
                    });
                    for (level, mut parcel) in desk.leaving.drain(..) {
                        if let Some(capability) = capabilities.get(&level) {
                            output.session_with_builder(capability).give_container(&mut parcel);
                        }
                    }
                    for level in desk.hold.drain(..) {
                        if let Some(capability) =
                            capabilities.range(..=level).next_back().map(|c| c.1.delayed(&level))
                        {
                            capabilities.entry(level).or_insert(capability);
                        }
                    }
                    desk.release.drain(..).for_each(|level| drop(capabilities.remove(&level)));
                    desk.frontier = frontier.frontier().iter().min().copied();
                }
            },
        );
        let (probe, stream) = stream.probe();
        stream.connect_loop(handle);
        probe
    })
}

/// Builds the dataflow of reports.
pub(super) fn reports(worker: &mut Worker, mail: &Rc<RefCell<Mail>>) {
    worker.dataflow::<u64, _, _>(|scope| {
        let stream =
            source::<_, NoopBuilder<Parcel>, _, _>(scope, "reports", |capability, info| {
                mail.borrow_mut().activator = Some(scope.activator_for(info.address));
                let mail = mail.clone();
                let mut capability = Some(capability);
                move |output| {
                    let mut mail = mail.borrow_mut();
                    for mut parcel in mail.leaving.drain(..) {
                        if let Some(capability) = &capability {
                            output.session_with_builder(capability).give_container(&mut parcel);
                        }
                    }
                    if mail.closed {
                        capability = None;
                    }
                }
            });
        let mail = mail.clone();
        stream.sink(DistributorPact(|_| ByAddress), "reading reports", move |(input, _)| {
            input.for_each(|_, parcel| mail.borrow_mut().arrived.push_back(std::mem::take(parcel)));
        });
    });
}

/// What a process said last: all of it, or only how far it is.
#[derive(Clone, Default)]
pub(super) struct Heard {
    part: Part,
    last: Option<(Option<Why>, Vec<usize>, Vec<u8>)>,
    /// Whether no state of its share is missing; of what it said last.
    whole: bool,
    /// A state of its share that is sought.
    pub hit: Option<Vec<u8>>,
}

/// One search, by all processes.
pub(super) struct Drive<'d, 'm> {
    pub worker: &'d mut Worker,
    pub share: &'d mut Partition<'m>,
    symmetries: Option<&'m Symmetries>,
    budget: &'d Budget,
    progress: &'d dyn Progress,
    pub health: &'d Health,
    me: usize,
    start: Instant,
    pub desk: Rc<RefCell<Desk>>,
    mail: Rc<RefCell<Mail>>,
    /// By process.
    pub heard: Vec<Heard>,
    /// The level that was begun.
    pub begun: Option<u64>,
    pub trace: Trace,
    /// Why it ends early here.
    why: Option<Why>,
    /// Whether all are to end.
    halted: bool,
    /// Whether what is on the way then is still to arrive.
    drains: bool,
    ticked: Instant,
    shelf: Option<Kept<'d>>,
    rounds: Rounds,
    /// The random number of this run, once it is known.
    run: Option<u64>,
    /// The first level that was not begun.
    next: u64,
    /// A process that could not write its share.
    unwritten: bool,
}

/// What a search came to, the same in all processes.
pub(super) struct Ended {
    /// What each did.
    pub parts: Vec<Part>,
    pub stop: Stop,
    /// Whether an annotation decided.
    pub decided: bool,
    /// What each said in the end.
    pub said: Vec<Vec<u8>>,
    /// The way to what was sought.
    pub way: Option<Vec<Vec<u8>>>,
}

impl Ended {
    /// Of so many processes that have not searched.
    pub fn without_search(count: usize, stop: Stop) -> Self {
        Self {
            parts: vec![Part::default(); count],
            stop,
            decided: false,
            said: Vec::new(),
            way: None,
        }
    }
}

/// Whether a search that ends for this can still take in what is on the way.
fn is_gentle(why: &Why) -> bool {
    matches!(why, Why::Stopped(Stop::States | Stop::Time | Stop::Interrupted))
}

impl<'d, 'm> Drive<'d, 'm> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        worker: &'d mut Worker,
        share: &'d mut Partition<'m>,
        symmetries: Option<&'m Symmetries>,
        budget: &'d Budget,
        progress: &'d dyn Progress,
        health: &'d Health,
        (me, count): (usize, usize),
        start: Instant,
        shelf: Option<Kept<'d>>,
    ) -> Self {
        let number = shelf.as_ref().and_then(|s| s.resumed).map_or(0, |s| s.number);
        Self {
            worker,
            share,
            symmetries,
            budget,
            progress,
            health,
            me,
            start,
            desk: Rc::default(),
            mail: Rc::default(),
            heard: vec![Heard::default(); count],
            begun: None,
            trace: Trace::default(),
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

    pub fn run(mut self, orderly: &Cell<bool>, extra: Extra<'_>) -> Result<Ended, Diagnostic> {
        let probe = states(self.worker, &self.desk);
        reports(self.worker, &self.mail);
        if let Err(error) = self.begin() {
            self.stop_for(error);
        }
        while !probe.done() || !self.desk.borrow().arrived.is_empty() {
            let busy = self.share.is_busy() && !self.halted;
            self.worker.step_or_park(Some(if busy { Duration::ZERO } else { NAP }));
            if self.health.lost().is_some() {
                return Ok(self.abandoned());
            }
            self.arrivals();
            self.read_reports()?;
            self.tick();
            if self.halted {
                self.release_all();
            } else {
                self.work();
                self.checkpoint();
                self.halted |= self.look();
            }
            // An operator that has nothing to do is not asked to: then the worker can wait.
            let desk = self.desk.borrow();
            if let Some(activator) = &desk.activator
                && !(desk.leaving.is_empty() && desk.hold.is_empty() && desk.release.is_empty())
            {
                activator.activate();
            }
        }
        // All have come to this end: each says how, and closes when it has heard all.
        let failed = self.symmetries.map(Symmetries::failed).unwrap_or_default();
        let said = match extra(self.share, self.halted) {
            Ok(said) => said,
            Err(error) => {
                if !self.halted {
                    self.why = Some(error.into());
                }
                Vec::new()
            }
        };
        let last = Report::Last {
            tally: self.share.tally(),
            memory: peak_resident_bytes(),
            why: self.why.take(),
            failed,
            said,
            whole: self.share.is_consistent(),
            hit: self.share.least_goal_state()?,
        };
        self.send(0..self.heard.len(), &last);
        while self.heard.iter().any(|h| h.last.is_none()) {
            self.step_for_reports()?;
            if self.health.lost().is_some() {
                return Ok(self.abandoned());
            }
        }
        let ended_well = self.heard.iter().all(|h| h.last.as_ref().is_some_and(|l| l.0.is_none()));
        let way = if ended_well { self.way()? } else { None };
        let mut unkept = None;
        if self.is_to_be_kept() {
            let number = self.rounds.last();
            unkept = self.keep(number).err();
            self.send(
                0..self.heard.len(),
                &if unkept.is_none() { Report::Written(number) } else { Report::Unwritten(number) },
            );
            while !self.rounds.all_wrote(number) && !self.unwritten {
                self.step_for_reports()?;
                if self.health.lost().is_some() {
                    return Ok(self.abandoned());
                }
            }
            if !self.unwritten {
                self.settle(number);
            }
        }
        self.mail.borrow_mut().close();
        while self.worker.has_dataflows() {
            self.worker.step_or_park(Some(NAP));
            if self.health.lost().is_some() {
                return Ok(self.abandoned());
            }
        }
        orderly.set(true);
        match unkept {
            Some(error) => Err(error),
            None => self.ended(way),
        }
    }

    /// What all decide by the same last reports.
    fn ended(self, way: Option<Vec<Vec<u8>>>) -> Result<Ended, Diagnostic> {
        let parts: Vec<Part> = self.heard.iter().map(|h| h.part).collect();
        let whys: Vec<Why> = self.heard.iter().filter_map(|h| h.last.as_ref()?.0.clone()).collect();
        if let (Some(symmetries), true) = (self.symmetries, whys.contains(&Why::Broken)) {
            let failed: Vec<usize> = self
                .heard
                .iter()
                .filter_map(|h| h.last.as_ref())
                .flat_map(|l| l.1.iter().copied())
                .collect();
            symmetries.fail(&failed);
            return Err(symmetries.refuse());
        }
        let said = self.heard.iter().filter_map(|h| Some(h.last.as_ref()?.2.clone())).collect();
        if whys.contains(&Why::Decided) {
            return Ok(Ended { parts, stop: Stop::Complete, decided: true, said, way });
        }
        let failures =
            whys.iter().filter_map(|w| if let Why::Failed(e) = w { Some(e) } else { None });
        if let Some(first) = failures.min_by(|a, b| (a.span, &a.message).cmp(&(b.span, &b.message)))
        {
            return Err((**first).clone());
        }
        let stop = whys
            .into_iter()
            .find_map(|w| if let Why::Stopped(stop) = w { Some(stop) } else { None });
        let too_many = self.exceeds_states();
        let decided = way.is_some() && self.share.has_annotations();
        Ok(Ended {
            parts,
            stop: stop.unwrap_or(if too_many { Stop::States } else { Stop::Complete }),
            decided,
            said,
            way,
        })
    }

    /// A process is lost: what is known of the others, and of this one.
    fn abandoned(mut self) -> Ended {
        self.heard[self.me].part =
            Part { tally: self.share.tally(), memory: peak_resident_bytes() };
        let parts = self.heard.iter().map(|h| h.part).collect();
        Ended { parts, stop: Stop::Lost, decided: false, said: Vec::new(), way: None }
    }

    /// Stores what came in.
    fn arrivals(&mut self) {
        let arrived = std::mem::take(&mut self.desk.borrow_mut().arrived);
        for (level, parcel) in arrived {
            if self.halted && !self.drains {
                continue;
            }
            // What states carry belongs to its level: earlier ones come first.
            if !self.halted && self.share.has_annotations() && self.is_early(level) {
                self.desk.borrow_mut().arrived.push_back((level, parcel));
                continue;
            }
            let received = match parcel.from {
                Some(from) => self.share.receive(from as usize, level, &parcel.bytes),
                None => Err(Diagnostic::internal("what came is no parcel")),
            };
            if let Err(error) = received {
                self.stop_for(error);
            }
        }
    }

    /// Whether a level before the one before this is still to be begun here, or the one before
    /// this.
    fn is_early(&self, level: u64) -> bool {
        let desk = self.desk.borrow();
        desk.held.iter().any(|held| *held < level && self.begun != Some(*held))
    }

    /// Begins a level, expands a block of it, or ends it.
    fn work(&mut self) {
        let level = match self.begun {
            Some(level) => level,
            None => {
                let desk = self.desk.borrow();
                let Some(&level) =
                    desk.held.first().filter(|l| desk.frontier.is_none_or(|f| f > **l))
                else {
                    return;
                };
                if !self.rounds.may_begin(level) || !self.trace.may_begin(level) {
                    return;
                }
                drop(desk);
                self.ask();
                self.begun = Some(level);
                self.next = level + 1;
                self.share.begin_level(level);
                level
            }
        };
        if self.has_too_many() {
            self.halt(Why::Stopped(Stop::States));
            return;
        }
        let mut desk = self.desk.borrow_mut();
        let from = Some(self.me as u32);
        let mut send = |(to, bytes): mu_explore::Batch| {
            desk.leaving.push((level, Parcel { to: to as u32, from, bytes }))
        };
        let result = self.share.expand(BLOCK, &mut send);
        if self.share.waiting_levels().any(|l| l == level + 1) && desk.held.insert(level + 1) {
            desk.hold.push(level + 1);
        }
        if result.is_ok() && !self.share.is_busy() {
            desk.held.remove(&level);
            if self.share.goal_level() == Some(level) {
                self.trace.kept = Some(level);
            } else {
                desk.release.push(level);
            }
            self.begun = None;
        }
        drop(desk);
        if let Err(error) = result {
            self.stop_for(error);
        } else if self.share.is_decided() {
            self.halt(Why::Decided);
        }
    }

    /// Gives all capabilities back, so that the dataflow runs dry.
    fn release_all(&mut self) {
        let mut desk = self.desk.borrow_mut();
        let desk = &mut *desk;
        if !self.drains {
            desk.leaving.clear();
        } else if let Some(level) = self.begun.take() {
            let from = Some(self.me as u32);
            self.share.flush_batches(&mut |(to, bytes)| {
                desk.leaving.push((level, Parcel { to: to as u32, from, bytes }))
            });
        }
        desk.hold.clear();
        desk.release.extend(std::mem::take(&mut desk.held));
        desk.release.extend(self.trace.kept.take());
    }

    fn stop_for(&mut self, error: Diagnostic) {
        let broken = self.symmetries.is_some_and(Symmetries::broken);
        self.halt(if broken { Why::Broken } else { error.into() });
    }

    /// Ends the search, here and everywhere.
    fn halt(&mut self, why: Why) {
        let drain = self.shelf.as_ref().is_some_and(|s| s.shelf.keeps()) && is_gentle(&why);
        let changed = !self.halted || self.drains && !drain;
        // An error while what is on the way arrives says more than the limit before it.
        if self.why.as_ref().is_none_or(|before| is_gentle(before) && self.drains && !drain) {
            self.why = Some(why);
        }
        self.drains &= drain;
        if changed {
            self.halted = true;
            self.send(0..self.heard.len(), &Report::Halt { drain });
        }
    }

    /// Enters the initial state, or what was kept.
    fn begin(&mut self) -> Result<(), Diagnostic> {
        let Some(Kept { shelf, resumed, .. }) = &self.shelf else {
            return self.share.insert_initial();
        };
        if self.me == 0 && shelf.keeps() {
            if resumed.is_none() {
                shelf.clear()?;
            }
            let run = super::handshake::random_number()?;
            self.send(0..self.heard.len(), &Report::Run(run));
        }
        let Some(Kept { shelf, resumed: Some(_), .. }) = &self.shelf else {
            return self.share.insert_initial();
        };
        shelf.read(self.share)?;
        let mut desk = self.desk.borrow_mut();
        for level in self.share.waiting_levels() {
            if desk.held.insert(level) {
                desk.hold.push(level);
            }
        }
        Ok(())
    }

    /// Goes on with a checkpoint, if one is asked for.
    fn checkpoint(&mut self) {
        if let Some(number) = self.rounds.enter() {
            self.send(0..self.heard.len(), &Report::Next { number, level: self.next });
        }
        if let Some(boundary) = self.rounds.boundary() {
            let desk = self.desk.borrow();
            // All of that level has arrived, and it is not the end.
            let reached = self.begun.is_none()
                && desk.arrived.is_empty()
                && desk.frontier.is_some_and(|f| f > boundary);
            drop(desk);
            if reached {
                let number = self.rounds.write();
                match self.keep(number) {
                    Ok(()) => self.send(0..self.heard.len(), &Report::Written(number)),
                    Err(error) => self.stop_for(error),
                }
            }
        }
        if let Some(number) = self.rounds.leave() {
            self.settle(number);
        }
    }

    /// Writes this process's share.
    fn keep(&mut self, number: u64) -> Result<(), Diagnostic> {
        let (Some(kept), Some(run)) = (&self.shelf, self.run) else {
            return Err(Diagnostic::internal("a checkpoint that nobody keeps"));
        };
        let stamp = self.stamp(kept, run, number);
        kept.shelf.keep(self.share, &stamp)
    }

    fn stamp(&self, kept: &Kept<'_>, run: u64, number: u64) -> Stamp {
        let (process, processes) = (self.me as u32, self.heard.len() as u32);
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

    /// All have written.
    fn settle(&self, number: u64) {
        if let (Some(kept), Some(run)) = (&self.shelf, self.run) {
            kept.kept.set(Some(number));
            if self.me == 0 {
                kept.shelf.settle(&self.stamp(kept, run, number));
            }
        }
    }

    /// True if all states together are more than allowed. A search may reach its end before any
    /// process has heard of so many.
    fn exceeds_states(&self) -> bool {
        let states: u64 = self.heard.iter().map(|h| h.part.tally.states).sum();
        self.budget.limits().max_states.is_some_and(|most| states > most)
    }

    /// Whether the search ended early in a way after which its shares are as good as those between
    /// two levels; the same in all processes.
    fn is_to_be_kept(&self) -> bool {
        let mut lasts = self.heard.iter().filter_map(|h| h.last.as_ref());
        let keeps = self.shelf.as_ref().is_some_and(|s| s.shelf.keeps());
        let whole = self.heard.iter().all(|h| h.whole);
        let ended_early = self.exceeds_states() || lasts.clone().any(|l| l.0.is_some());
        keeps && whole && ended_early && lasts.all(|l| l.0.as_ref().is_none_or(is_gentle))
    }

    pub(super) fn send(&mut self, to: std::ops::Range<usize>, report: &Report) {
        self.mail.borrow_mut().send(self.me, to, report);
    }

    fn step_for_reports(&mut self) -> Result<(), Diagnostic> {
        self.worker.step_or_park(Some(NAP));
        self.read_reports()
    }

    pub(super) fn read_reports(&mut self) -> Result<(), Diagnostic> {
        let arrived = std::mem::take(&mut self.mail.borrow_mut().arrived);
        for parcel in arrived {
            let from = parcel.from.map_or(usize::MAX, |from| from as usize);
            let heard = self
                .heard
                .get_mut(from)
                .ok_or_else(|| Diagnostic::internal("a report from nobody"))?;
            match Report::read(&parcel.bytes)? {
                Report::Tally(tally) => heard.part.tally = tally,
                Report::Halt { drain } => {
                    self.halted = true;
                    self.drains &= drain;
                }
                Report::Run(run) => self.run = Some(run),
                Report::Ask(number) => self.rounds.ask(number),
                Report::Next { number, level } => self.rounds.hear_next(number, from, level),
                Report::Written(number) => self.rounds.hear_written(number, from),
                Report::Unwritten(_) => self.unwritten = true,
                Report::Hit(level) => self.trace.hear_hit(level),
                Report::Through => self.trace.hear_through(from),
                Report::Before { level, state } => self.trace.hear_before(level, from, state),
                Report::Last { tally, memory, why, failed, said, whole, hit } => {
                    *heard = Heard {
                        part: Part { tally, memory },
                        last: Some((why, failed, said)),
                        whole,
                        hit,
                    };
                }
            }
        }
        Ok(())
    }

    /// Asks for a checkpoint if it is time for one: process 0, now and then and before each level.
    fn ask(&mut self) {
        if self.me == 0
            && let Some(number) = self.rounds.another()
            && self.shelf.as_ref().is_some_and(|s| s.shelf.keeps() && s.shelf.due())
        {
            self.send(0..self.heard.len(), &Report::Ask(number));
        }
    }

    /// Whether this process's own states, with what the others said of theirs, are more than
    /// allowed. So a short search is ended by that too, however fast it is.
    fn has_too_many(&self) -> bool {
        let Some(most) = self.budget.limits().max_states else { return false };
        let others = self
            .heard
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != self.me)
            .map(|(_, h)| h.part.tally.states)
            .sum::<u64>();
        self.share.tally().states + others > most
    }

    /// Now and then: looks at the limits, tells process 0 how far this one is, shows how far all
    /// are.
    fn tick(&mut self) {
        if self.ticked.elapsed() < TICK || self.halted {
            return;
        }
        self.ticked = Instant::now();
        let tally = self.share.tally();
        self.heard[self.me].part.tally = tally;
        let all = |of: fn(&Tally) -> u64| self.heard.iter().map(|h| of(&h.part.tally)).sum::<u64>();
        let states = all(|t| t.states);
        if self.me == 0 {
            self.progress.report(&Snapshot {
                states,
                transitions: all(|t| t.transitions),
                level: self.heard.iter().map(|h| h.part.tally.levels).max().unwrap_or(0),
                waiting: all(|t| t.waiting),
                elapsed: self.start.elapsed(),
            });
        } else {
            self.send(0..1, &Report::Tally(tally));
        }
        self.ask();
        if let Err(stop) = self.budget.check(states).and_then(|()| self.budget.check_memory()) {
            self.halt(Why::Stopped(stop));
        }
    }
}
