//! The processes of a run: connected once, they make any number of searches, one after the other,
//! each the same.
//!
//! In: [`Connections`], what to search. Out: an [`Outcome`], or what is asked of
//! [`mu_explore::Peers`]. One worker of timely serves all searches; each search builds its
//! dataflows anew (`flow`). When a process is lost, or a search ends in disorder, the later ones
//! end at once as *lost*.
//!
//! Cost: a thread for signs of life, two for each connection. Invariant: all processes make the
//! same searches in the same order, since each decides by what all know.

use super::checkpoints::Shelf;
use super::dataflow::{Drive, Ended, Kept};
use super::leader_work::first;
use super::wire::{Health, Wire};
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_explore::{
    JointOutcome, JointSearch, LeafLayout, Options, Partition, PathGoal, Peers, Progress,
    RejectedSymmetry, Stamp, Symmetries, SymmetryGroup, Tally, Work, with_verified_symmetries,
};
use mu_model::Model;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::WorkerConfig;
use timely::communication::Hooks;
use timely::communication::allocator::zero_copy::initialize::{
    CommsGuard, initialize_networking_from_sockets,
};
use timely::communication::allocator::{Allocator, ProcessBuilder};
use timely::worker::Worker;

/// Time for the connections to be closed in the end.
const GRACE: Duration = Duration::from_secs(3);

/// Connections to all other processes of a search.
pub struct Connections {
    /// This process.
    pub(super) me: usize,
    /// By process; none to itself.
    pub(super) wires: Vec<Option<Wire>>,
    pub(super) health: Arc<Health>,
}

impl Connections {
    /// This process's number.
    pub fn me(&self) -> usize {
        self.me
    }
    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.wires.len()
    }
}

/// What one process did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Its states and traffic.
    pub tally: Tally,
    /// Its memory at most, in bytes.
    pub memory: u64,
}

/// What all processes found together.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By process.
    pub parts: Vec<Part>,
    /// Why the search ended.
    pub stop: Stop,
    /// Which process was lost, and how.
    pub lost: Option<String>,
    /// Order of the group of symmetries; 1: none but the identity.
    pub symmetries: usize,
    /// Candidates for symmetries that are not used.
    pub dropped: Vec<RejectedSymmetry>,
    /// Time of the search.
    pub elapsed: Duration,
    /// Number of the last checkpoint that all processes have written, or that the search began
    /// from.
    pub kept: Option<u64>,
    /// The states of a shortest way to what is sought, from the initial one on, for
    /// [`mu_explore::path_through`]; none if nothing was met.
    pub way: Option<Vec<Vec<u8>>>,
    /// What [`Extra`] made of each process's share; none if the search is incomplete.
    pub said: Option<Vec<Vec<u8>>>,
}

/// What a process tells all others of its share in the end; whether the search was ended before.
pub type Extra<'a> = &'a mut dyn FnMut(&mut Partition<'_>, bool) -> Result<Vec<u8>, Diagnostic>;

impl Outcome {
    /// A figure of all processes together.
    pub fn sum(&self, of: impl Fn(&Part) -> u64) -> u64 {
        self.parts.iter().map(of).sum()
    }
    /// Levels of the search.
    pub fn levels(&self) -> u64 {
        self.parts.iter().map(|p| p.tally.levels).max().unwrap_or(0)
    }
}

/// What a process is to search, and who is told.
pub struct Task<'a> {
    /// The model, which all processes have.
    pub model: &'a dyn Model,
    /// How.
    pub options: &'a Options,
    /// How far; the states of all processes together.
    pub budget: &'a Budget,
    /// Who watches, at process 0.
    pub progress: &'a dyn Progress,
    /// What is told of the deadlocks.
    pub extra: Extra<'a>,
    /// Who keeps checkpoints.
    pub shelf: Option<&'a dyn Shelf>,
    /// What is looked for: the search ends with the level that has it. Then there are no
    /// symmetries, no steps with priority and no shelf.
    pub sought: Option<PathGoal<'a>>,
}

/// Who keeps the searches of a run, each under its name.
pub trait Shelves {
    /// Where a search is kept.
    ///
    /// # Errors
    /// What was kept of it cannot be read.
    fn shelf(&self, search: &str) -> Result<Box<dyn Shelf + '_>, Diagnostic>;
}

/// See the module's head.
pub struct Together {
    worker: Option<Worker>,
    guard: Option<CommsGuard>,
    wires: Vec<Wire>,
    health: Arc<Health>,
    me: usize,
    count: usize,
    shelves: Option<Box<dyn Shelves>>,
    /// A search ended in disorder: there are no more.
    broken: bool,
    /// What each did in all searches: sums of traffic, the most of what it held.
    parts: Vec<Part>,
    /// Number of the last checkpoint of the last search.
    kept: Option<u64>,
    /// What the first process found of a model with so many slots, with symmetries or not: which
    /// of them are to be numbered together, and which leaves tell.
    leaves: Option<((usize, u64), Option<LeafLayout>)>,
}

impl Together {
    /// Of connections that are all there. `shelves`: who keeps searches with annotations.
    ///
    /// # Errors
    /// The connections cannot be used.
    pub fn new(
        connections: Connections,
        shelves: Option<Box<dyn Shelves>>,
    ) -> Result<Self, Diagnostic> {
        let Connections { me, wires, health } = connections;
        let all: Vec<Wire> = wires.iter().flatten().cloned().collect();
        super::wire::beat(all.clone(), health.clone());
        let mut hooks = Hooks::default();
        // Buffers of a megabyte, of each connection: those that a level filled are not kept for the
        // next.
        hooks.refill.limit = Some(1);
        let within = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), None);
        let count = wires.len();
        let failed = |e: std::io::Error| {
            Diagnostic::internal(format!("the connections between processes cannot be used: {e}"))
        };
        let (builders, guard) =
            initialize_networking_from_sockets(within, wires, me, 1, hooks).map_err(failed)?;
        let builder = builders
            .into_iter()
            .next()
            .ok_or_else(|| Diagnostic::internal("timely made no allocator"))?;
        // Processes may be more than cores: one that waits leaves its core to the others. It does
        // so only if it has a clock.
        let config = WorkerConfig::default().idle_spin(Duration::ZERO);
        let worker = Worker::new(config, Allocator::Tcp(builder.build()), Some(Instant::now()));
        let parts = vec![Part::default(); count];
        let (worker, guard) = (Some(worker), Some(guard));
        Ok(Self {
            worker,
            guard,
            wires: all,
            health,
            me,
            count,
            shelves,
            broken: false,
            parts,
            kept: None,
            leaves: None,
        })
    }

    /// What each process did in all searches.
    pub fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }
    /// Number of the last checkpoint of the last search with annotations.
    pub fn kept(&self) -> Option<u64> {
        self.kept
    }

    fn note(&mut self, ended: &Ended) {
        for (all, part) in self.parts.iter_mut().zip(&ended.parts) {
            let (sum, own) = (&mut all.tally, &part.tally);
            sum.stored = sum.stored.max(own.stored);
            sum.store_bytes = sum.store_bytes.max(own.store_bytes);
            sum.sent += own.sent;
            sum.sent_bytes += own.sent_bytes;
            sum.values_sent += own.values_sent;
            all.memory = all.memory.max(part.memory);
        }
    }

    /// Counts states, transitions and deadlocks.
    ///
    /// # Errors
    /// Those of the model, whichever process met them; a checkpoint that cannot be written or read.
    pub fn explore(&mut self, task: Task<'_>) -> Result<Outcome, Diagnostic> {
        let Task { model, options, budget, progress, extra, shelf, sought } = task;
        let start = Instant::now();
        let mut order = 1;
        let kept = Cell::new(None);
        let mut resumed = shelf.and_then(Shelf::resumed);
        let plain = Options { symmetry: options.symmetry && sought.is_none(), ..options.clone() };
        let (ended, dropped) = with_verified_symmetries(model, &plain, |symmetries| {
            let symmetries: Option<&Symmetries> = symmetries.map(|s| &*s);
            order = symmetries.map_or(1, Symmetries::order);
            let options = &match self.dealt(model, options, budget, (symmetries, resumed))? {
                Ok(options) => options,
                Err(stop) => return Ok(Ended::without_search(self.count, stop)),
            };
            // Until the search has come to its end in order.
            self.broken = true;
            kept.set(resumed.map(|s| s.number));
            if let Some(stamp) = resumed {
                expect_group(symmetries, stamp)?;
            }
            let (group, leaves) = (SymmetryGroup::of(symmetries), options.leaves.clone());
            let shelf = shelf.map(|shelf| Kept {
                shelf,
                resumed: resumed.take(),
                group,
                leaves,
                kept: &kept,
            });
            let share = Partition::new(model, options, budget, symmetries, self.me, self.count)?;
            let mut share = match sought {
                Some(sought) => share.with_goal(sought, options),
                None => share,
            };
            self.drive(&mut share, symmetries, (budget, progress, start), shelf, &mut *extra)
        })?;
        let lost = self.health.lost().filter(|_| ended.stop == Stop::Lost);
        let said = Some(ended.said).filter(|_| ended.stop == Stop::Complete);
        let (parts, stop, way, kept) = (ended.parts, ended.stop, ended.way, kept.get());
        Ok(Outcome {
            parts,
            stop,
            lost,
            symmetries: order,
            dropped,
            elapsed: start.elapsed(),
            kept,
            way,
            said,
        })
    }

    /// One attempt of a search.
    fn drive<'m>(
        &mut self,
        share: &mut Partition<'m>,
        symmetries: Option<&'m Symmetries>,
        (budget, progress, start): (&Budget, &dyn Progress, Instant),
        shelf: Option<Kept<'_>>,
        extra: Extra<'_>,
    ) -> Result<Ended, Diagnostic> {
        let orderly = Cell::new(false);
        let health = self.health.clone();
        let places = (self.me, self.count);
        let worker = self
            .worker
            .as_mut()
            .ok_or_else(|| Diagnostic::internal("a search after the end of the run"))?;
        let drive =
            Drive::new(worker, share, symmetries, budget, progress, &health, places, start, shelf);
        let ended = drive.run(&orderly, extra);
        self.broken = !orderly.get();
        if let Ok(ended) = &ended {
            self.note(ended);
        }
        ended
    }

    /// Ends the run: how the process ended that was lost in a search, if one was.
    pub fn close(self) -> Option<String> {
        self.health.lost().filter(|_| self.broken)
    }
}

/// The connections are closed; after a search that ended in disorder the others are told that they
/// are lost.
impl Drop for Together {
    fn drop(&mut self) {
        let (worker, guard) = (self.worker.take(), self.guard.take());
        if self.broken {
            // The others may not know yet, and threads of the connections may never end: this
            // process does.
            let text = self.health.lost().unwrap_or_else(|| format!("process {} failed", self.me));
            self.wires.iter().for_each(|wire| wire.fail(&text));
            std::mem::forget((worker, guard));
            return;
        }
        drop(worker);
        let (closed, wait) = std::sync::mpsc::channel();
        let closing = move || {
            drop(guard);
            let _ = closed.send(());
        };
        if std::thread::Builder::new().name("closing".into()).spawn(closing).is_ok() {
            let _ = wait.recv_timeout(GRACE);
        }
        self.health.finish();
    }
}

/// The same, for who searches without knowing of connections.
pub struct Allies(RefCell<Together>);

impl Allies {
    /// Of processes that are connected.
    pub fn new(together: Together) -> Self {
        Self(RefCell::new(together))
    }
    /// They, again.
    pub fn into_inner(self) -> Together {
        self.0.into_inner()
    }
}

impl Peers for Allies {
    fn count(
        &self,
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<mu_explore::Outcome, Diagnostic> {
        let extra = &mut |_: &mut Partition<'_>, _: bool| Ok(Vec::new());
        let task = Task { model, options, budget, progress, extra, shelf: None, sought: None };
        let found = self.0.borrow_mut().explore(task)?;
        let sum = |of: fn(&Tally) -> u64| found.sum(|p| of(&p.tally));
        Ok(mu_explore::Outcome {
            states: sum(|t| t.states),
            stored: sum(|t| t.stored),
            symmetries: found.symmetries,
            transitions: sum(|t| t.transitions),
            deadlocks: sum(|t| t.deadlocks),
            levels: found.levels(),
            store_bytes: sum(|t| t.store_bytes),
            elapsed: found.elapsed,
            stop: found.stop.clone(),
            dropped: found.dropped,
            ..mu_explore::Outcome::default()
        })
    }
    fn annotate(&self, joint: JointSearch<'_>) -> Result<JointOutcome, Diagnostic> {
        self.0.borrow_mut().annotate(joint)
    }
    fn first(&self, budget: &Budget, work: Work<'_>) -> Result<Result<Vec<u8>, Stop>, Diagnostic> {
        self.0.borrow_mut().first(budget, work)
    }
}

impl Together {
    fn first(
        &mut self,
        budget: &Budget,
        work: Work<'_>,
    ) -> Result<Result<Vec<u8>, Stop>, Diagnostic> {
        if self.broken {
            return Ok(Err(Stop::Lost));
        }
        self.alone(budget, work)
    }

    fn alone(
        &mut self,
        budget: &Budget,
        work: Work<'_>,
    ) -> Result<Result<Vec<u8>, Stop>, Diagnostic> {
        self.broken = true;
        let worker = self
            .worker
            .as_mut()
            .ok_or_else(|| Diagnostic::internal("work after the end of the run"))?;
        let mut orderly = false;
        let result = first(worker, &self.health, (self.me, self.count), budget, work, &mut orderly);
        self.broken = !orderly;
        let (said, memories) = result?;
        self.parts
            .iter_mut()
            .zip(memories)
            .for_each(|(part, memory)| part.memory = part.memory.max(memory));
        Ok(said)
    }

    /// How to search. Which slots are numbered together and which leaves tell a checkpoint says, or
    /// the first process, which has tried it once. It may have found that symmetries cost more
    /// than they save: then that is the error, in all processes.
    fn dealt(
        &mut self,
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        (symmetries, resumed): (Option<&Symmetries>, Option<&Stamp>),
    ) -> Result<Result<Options, Stop>, Diagnostic> {
        let slots = model.slots().len();
        let (of, processes) = ((slots, SymmetryGroup::of(symmetries).order), self.count);
        let leaves = match (resumed, &self.leaves) {
            (Some(stamp), _) => stamp.leaves.clone().map(|l| l.of_slots(slots)).transpose()?,
            (None, Some((known, leaves))) if *known == of => leaves.clone(),
            (None, _) => {
                let work = &mut || {
                    let found = LeafLayout::choose(model, options, budget, symmetries, processes);
                    let costly = symmetries.is_some_and(Symmetries::is_costly);
                    Ok([&[u8::from(costly)], &LeafLayout::write(found.as_ref())[..]].concat())
                };
                let said = match self.alone(budget, work)? {
                    Ok(said) => said,
                    Err(stop) => return Ok(Err(stop)),
                };
                let found = match (said.split_first(), symmetries) {
                    (Some((0, leaves)), _) => LeafLayout::read(leaves, slots)?,
                    (Some((1, [])), Some(symmetries)) => return Err(symmetries.give_up()),
                    _ => {
                        return Err(Diagnostic::internal(
                            "the first process has not said how to search",
                        ));
                    }
                };
                self.leaves = Some((of, found.clone()));
                found
            }
        };
        Ok(Ok(Options { leaves, ..options.clone() }))
    }

    fn annotate(&mut self, joint: JointSearch<'_>) -> Result<JointOutcome, Diagnostic> {
        if self.broken {
            return Ok(JointOutcome {
                decided: false,
                stop: Stop::Lost,
                said: Vec::new(),
                lasts: None,
                way: None,
            });
        }
        self.broken = true;
        let shelves = self.shelves.take();
        let result = self.annotate_on(shelves.as_deref().filter(|_| !joint.trace), joint);
        self.shelves = shelves;
        result
    }

    fn annotate_on(
        &mut self,
        shelves: Option<&dyn Shelves>,
        joint: JointSearch<'_>,
    ) -> Result<JointOutcome, Diagnostic> {
        let JointSearch {
            model,
            options,
            budget,
            progress,
            carrier,
            symmetries,
            trace,
            name,
            said,
            lasts,
        } = joint;
        let kept = Cell::new(None);
        let shelf = shelves.map(|s| s.shelf(name)).transpose()?;
        let resumed = shelf.as_ref().and_then(|s| s.resumed());
        if let Some(stamp) = resumed {
            kept.set(Some(stamp.number));
            expect_group(symmetries, stamp)?;
        }
        let options = &match self.dealt(model, options, budget, (symmetries, resumed))? {
            Ok(options) => options,
            Err(stop) => {
                return Ok(JointOutcome {
                    decided: false,
                    stop,
                    said: Vec::new(),
                    lasts: None,
                    way: None,
                });
            }
        };
        self.broken = true;
        let (group, leaves) = (SymmetryGroup::of(symmetries), options.leaves.clone());
        let shelf =
            shelf.as_ref().map(|s| Kept { shelf: &**s, resumed, group, leaves, kept: &kept });
        let mut share = Partition::new(model, options, budget, symmetries, self.me, self.count)?
            .with_annotations(carrier, trace, options);
        // What was not said since the search was ended is not missed.
        let mut extra = |share: &mut Partition<'_>, _: bool| said(share);
        let ended = self.drive(
            &mut share,
            symmetries,
            (budget, progress, Instant::now()),
            shelf,
            &mut extra,
        )?;
        if !trace {
            self.kept = kept.get();
        }
        let met = JointOutcome {
            decided: ended.decided,
            stop: ended.stop,
            said: ended.said,
            lasts: None,
            way: ended.way,
        };
        if met.decided || trace || met.stop != Stop::Complete || !lasts(&met.said) {
            return Ok(met);
        }
        let lasts = self.lasts(&mut share, symmetries, (budget, progress))?;
        Ok(match lasts {
            Ok(lasts) => JointOutcome { lasts: Some(lasts), ..met },
            Err(stop) => JointOutcome { stop, ..met },
        })
    }

    /// Whether something goes on for ever in a graph whose search is complete; or why that is not
    /// known.
    fn lasts<'m>(
        &mut self,
        share: &mut Partition<'m>,
        symmetries: Option<&'m Symmetries>,
        (budget, progress): (&Budget, &dyn Progress),
    ) -> Result<Result<bool, Stop>, Diagnostic> {
        let watched = (budget, progress, Instant::now());
        share.count_edges();
        let counted = self.drive(share, symmetries, watched, None, &mut |_, _| Ok(Vec::new()))?;
        if counted.stop != Stop::Complete {
            return Ok(Err(counted.stop));
        }
        share.remove_edges();
        let mut left = |share: &mut Partition<'_>, _: bool| {
            let (taken, all) = share.removed_vertices();
            Ok(vec![u8::from(taken < all)])
        };
        let ended = self.drive(share, symmetries, watched, None, &mut left)?;
        Ok(match ended.stop {
            Stop::Complete => Ok(ended.said.iter().any(|said| said != &[0])),
            stop => Err(stop),
        })
    }
}

/// Counts states, transitions and deadlocks, with the processes at the other ends of the
/// connections.
///
/// # Errors
/// Those of the model, whichever process met them; a checkpoint that cannot be written or read.
pub fn explore(connections: Connections, task: Task<'_>) -> Result<Outcome, Diagnostic> {
    let mut together = Together::new(connections, None)?;
    let outcome = together.explore(task);
    drop(together);
    outcome
}

/// Whether the symmetries are those of a checkpoint; if that search had dropped some, they fail
/// here as well.
fn expect_group(symmetries: Option<&Symmetries>, stamp: &Stamp) -> Result<(), Diagnostic> {
    let own = SymmetryGroup::of(symmetries);
    if own == stamp.symmetries {
        return Ok(());
    }
    match (symmetries, own.candidates_missing_in(&stamp.symmetries)) {
        (Some(symmetries), more) if !more.is_empty() => {
            symmetries.fail(&more);
            Err(symmetries.refuse())
        }
        _ => {
            Err(Diagnostic::new(Stage::File, "the checkpoint is of a search with other symmetries")
                .note(format!(
                    "that one had {}, this one has {}; the identity counts",
                    stamp.symmetries.order, own.order
                )))
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
