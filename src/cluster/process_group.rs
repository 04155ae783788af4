//! Process group of a run: connected once, the processes make any number of searches, one after the
//! other, each the same.
//!
//! In: [`Connections`], a search. Out: an [`ClusterOutcome`], or the results of
//! [`mu_explore::Peers`]. One worker of timely serves all searches; each search builds its
//! dataflows anew (`dataflow`). After the loss of a process or a disorderly end of a search, later
//! searches end at once as *lost*.
//!
//! Cost: a thread for heartbeats, two for each connection. Invariant: all processes make the same
//! searches in the same order, since each decides by common data.

use super::checkpoints::PartitionStore;
use super::dataflow::{Checkpointing, SearchDriver, SearchEnd};
use super::leader_work::run_on_leader;
use super::wire::{Health, Wire};
use mu_base::{Budget, Diagnostic, Stop};
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

/// Time limit for closing the connections at the end.
const GRACE: Duration = Duration::from_secs(3);

/// Connections to all other processes of a search.
pub struct Connections {
    /// This process.
    pub(super) me: usize,
    /// By process; `None` for this process.
    pub(super) wires: Vec<Option<Wire>>,
    pub(super) health: Arc<Health>,
}

impl Connections {
    /// Returns the number of this process.
    pub fn me(&self) -> usize {
        self.me
    }
    /// Returns the number of processes.
    pub fn processes(&self) -> usize {
        self.wires.len()
    }
}

/// Totals of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessPart {
    /// Its states and traffic.
    pub tally: Tally,
    /// Its peak memory, in bytes.
    pub memory: u64,
}

/// Result of all processes together.
#[derive(Clone, Debug)]
pub struct ClusterOutcome {
    /// By process.
    pub parts: Vec<ProcessPart>,
    /// Reason for the end of the search.
    pub stop: Stop,
    /// The lost process, and the cause.
    pub lost: Option<String>,
    /// Order of the symmetry group; 1: only the identity.
    pub symmetries: usize,
    /// Candidate symmetries that are not used.
    pub dropped: Vec<RejectedSymmetry>,
    /// Time of the search.
    pub elapsed: Duration,
    /// Number of the last checkpoint that all processes have written, or of the resumed one.
    pub kept: Option<u64>,
    /// The states of a shortest path to the goal, from the initial one, for
    /// [`mu_explore::path_through`]; `None` if it was not reached.
    pub path: Option<Vec<Vec<u8>>>,
    /// Result of [`Extra`] by process; `None` if the search is incomplete.
    pub final_report: Option<Vec<Vec<u8>>>,
}

/// Computes the final report on a partition for all processes. The flag is true if the search was
/// ended early.
pub type Extra<'a> = &'a mut dyn FnMut(&mut Partition<'_>, bool) -> Result<Vec<u8>, Diagnostic>;

impl ClusterOutcome {
    /// Sums a number over all processes.
    pub fn sum(&self, of: impl Fn(&ProcessPart) -> u64) -> u64 {
        self.parts.iter().map(of).sum()
    }
    /// Levels of the search.
    pub fn levels(&self) -> u64 {
        self.parts.iter().map(|p| p.tally.levels).max().unwrap_or(0)
    }
}

/// A search for the process group.
pub struct GroupSearch<'a> {
    /// The model, equal in all processes.
    pub model: &'a dyn Model,
    /// Options of the exploration.
    pub options: &'a Options,
    /// Limits; the limit on states covers all processes together.
    pub budget: &'a Budget,
    /// Receives progress reports at process 0.
    pub progress: &'a dyn Progress,
    /// Computes the final report.
    pub extra: Extra<'a>,
    /// Store of checkpoints.
    pub shelf: Option<&'a dyn PartitionStore>,
    /// The goal: the search ends with the level that reaches it. Then there are no symmetries, no
    /// priority of steps and no checkpoints.
    pub sought: Option<PathGoal<'a>>,
}

/// Stores of the searches of a run, each under its name.
pub trait PartitionStores {
    /// Returns the store of a search.
    ///
    /// # Errors
    /// Its checkpoint cannot be read.
    fn shelf(&self, search: &str) -> Result<Box<dyn PartitionStore + '_>, Diagnostic>;
}

/// The process group; see the module header.
pub struct SearchGroup {
    worker: Option<Worker>,
    guard: Option<CommsGuard>,
    wires: Vec<Wire>,
    health: Arc<Health>,
    me: usize,
    count: usize,
    shelves: Option<Box<dyn PartitionStores>>,
    /// True after a disorderly end of a search: later searches fail.
    broken: bool,
    /// Totals of all searches: sums of traffic, maxima of sizes.
    parts: Vec<ProcessPart>,
    /// Number of the last checkpoint of the last search.
    kept: Option<u64>,
    /// The layout chosen by process 0, with the number of slots and the order of the symmetry
    /// group.
    leaves: Option<((usize, u64), Option<LeafLayout>)>,
}

impl SearchGroup {
    /// Creates a process group from complete connections. `shelves`: stores of searches with
    /// annotations.
    ///
    /// # Errors
    /// The connections cannot be used.
    pub fn new(
        connections: Connections,
        shelves: Option<Box<dyn PartitionStores>>,
    ) -> Result<Self, Diagnostic> {
        let Connections { me, wires, health } = connections;
        let all: Vec<Wire> = wires.iter().flatten().cloned().collect();
        super::wire::beat(all.clone(), health.clone());
        let mut hooks = Hooks::default();
        // Buffers of a megabyte per connection: large ones are freed after a level.
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
        // There may be more processes than cores, so a waiting one yields its core. Timely does
        // this only with a clock.
        let config = WorkerConfig::default().idle_spin(Duration::ZERO);
        let worker = Worker::new(config, Allocator::Tcp(builder.build()), Some(Instant::now()));
        let parts = vec![ProcessPart::default(); count];
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

    /// Returns the totals of each process over all searches.
    pub fn take_parts(&mut self) -> Vec<ProcessPart> {
        std::mem::take(&mut self.parts)
    }
    /// Returns the number of the last checkpoint of the last search with annotations. `None` if it
    /// wrote none.
    pub fn last_checkpoint(&self) -> Option<u64> {
        self.kept
    }

    fn note(&mut self, ended: &SearchEnd) {
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
    /// Errors of the model in any process; a checkpoint that cannot be written or read.
    pub fn explore(&mut self, task: GroupSearch<'_>) -> Result<ClusterOutcome, Diagnostic> {
        let GroupSearch { model, options, budget, progress, extra, shelf, sought } = task;
        let start = Instant::now();
        let mut order = 1;
        let kept = Cell::new(None);
        let mut resumed = shelf.and_then(PartitionStore::resume_stamp);
        let plain = Options { symmetry: options.symmetry && sought.is_none(), ..options.clone() };
        let (ended, dropped) = with_verified_symmetries(model, &plain, |symmetries| {
            let symmetries: Option<&Symmetries> = symmetries.map(|s| &*s);
            order = symmetries.map_or(1, Symmetries::order);
            let options = &match self.with_layout(model, options, budget, (symmetries, resumed))? {
                Ok(options) => options,
                Err(stop) => return Ok(SearchEnd::without_search(self.count, stop)),
            };
            // Until the search has ended in order.
            self.broken = true;
            kept.set(resumed.map(|s| s.number));
            if let Some(stamp) = resumed {
                stamp.symmetries.expect(symmetries)?;
            }
            let (group, leaves) = (SymmetryGroup::of(symmetries), options.leaves.clone());
            let shelf = shelf.map(|shelf| Checkpointing {
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
        let lost = self.health.lost_process().filter(|_| ended.stop == Stop::Lost);
        let final_report = Some(ended.final_report).filter(|_| ended.stop == Stop::Complete);
        let (parts, stop, path, kept) = (ended.parts, ended.stop, ended.path, kept.get());
        Ok(ClusterOutcome {
            parts,
            stop,
            lost,
            symmetries: order,
            dropped,
            elapsed: start.elapsed(),
            kept,
            path,
            final_report,
        })
    }

    /// Runs one attempt of a search.
    fn drive<'m>(
        &mut self,
        share: &mut Partition<'m>,
        symmetries: Option<&'m Symmetries>,
        (budget, progress, start): (&Budget, &dyn Progress, Instant),
        shelf: Option<Checkpointing<'_>>,
        extra: Extra<'_>,
    ) -> Result<SearchEnd, Diagnostic> {
        let orderly = Cell::new(false);
        let health = self.health.clone();
        let places = (self.me, self.count);
        let worker = self
            .worker
            .as_mut()
            .ok_or_else(|| Diagnostic::internal("a search after the end of the run"))?;
        let drive = SearchDriver::new(
            worker, share, symmetries, budget, progress, &health, places, start, shelf,
        );
        let ended = drive.run(&orderly, extra);
        self.broken = !orderly.get();
        if let Ok(ended) = &ended {
            self.note(ended);
        }
        ended
    }

    /// Ends the run. Returns the cause of the loss of a process, if one was lost in a search.
    pub fn close(self) -> Option<String> {
        self.health.lost_process().filter(|_| self.broken)
    }
}

/// Closes the connections; after a disorderly end the other processes are informed.
impl Drop for SearchGroup {
    fn drop(&mut self) {
        let (worker, guard) = (self.worker.take(), self.guard.take());
        if self.broken {
            // The others may not know yet, and threads of the connections may never end; the
            // process ends instead.
            let text =
                self.health.lost_process().unwrap_or_else(|| format!("process {} failed", self.me));
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

/// The process group as [`Peers`], for callers that know nothing of connections.
pub struct GroupPeers(RefCell<SearchGroup>);

impl GroupPeers {
    /// Wraps a process group.
    pub fn new(together: SearchGroup) -> Self {
        Self(RefCell::new(together))
    }
    /// Returns the process group.
    pub fn into_inner(self) -> SearchGroup {
        self.0.into_inner()
    }
}

impl Peers for GroupPeers {
    fn count(
        &self,
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<mu_explore::Outcome, Diagnostic> {
        let extra = &mut |_: &mut Partition<'_>, _: bool| Ok(Vec::new());
        let task =
            GroupSearch { model, options, budget, progress, extra, shelf: None, sought: None };
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
    fn run_on_leader(
        &self,
        budget: &Budget,
        work: Work<'_>,
    ) -> Result<Result<Vec<u8>, Stop>, Diagnostic> {
        self.0.borrow_mut().run_on_leader(budget, work)
    }
}

impl SearchGroup {
    fn run_on_leader(
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
        let result =
            run_on_leader(worker, &self.health, (self.me, self.count), budget, work, &mut orderly);
        self.broken = !orderly;
        let (final_report, memories) = result?;
        self.parts
            .iter_mut()
            .zip(memories)
            .for_each(|(part, memory)| part.memory = part.memory.max(memory));
        Ok(final_report)
    }

    /// Returns the options with the layout from a checkpoint, or from process 0, which chooses it
    /// once. If process 0 finds that symmetries cost more than they save, this is the error in all
    /// processes.
    fn with_layout(
        &mut self,
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        (symmetries, resumed): (Option<&Symmetries>, Option<&Stamp>),
    ) -> Result<Result<Options, Stop>, Diagnostic> {
        let slots = model.slots().len();
        let (of, processes) = ((slots, SymmetryGroup::of(symmetries).order), self.count);
        let leaves = match (resumed, &self.leaves) {
            (Some(stamp), _) => stamp.leaves.clone().map(|l| l.check_slots(slots)).transpose()?,
            (None, Some((known, leaves))) if *known == of => leaves.clone(),
            (None, _) => {
                let work = &mut || {
                    let found = LeafLayout::choose(model, options, budget, symmetries, processes);
                    let costly = symmetries.is_some_and(Symmetries::is_costly);
                    Ok([&[u8::from(costly)], &LeafLayout::write(found.as_ref())[..]].concat())
                };
                let final_report = match self.alone(budget, work)? {
                    Ok(final_report) => final_report,
                    Err(stop) => return Ok(Err(stop)),
                };
                let found = match (final_report.split_first(), symmetries) {
                    (Some((0, leaves)), _) => LeafLayout::read(leaves, slots)?,
                    (Some((1, [])), Some(symmetries)) => return Err(symmetries.give_up()),
                    _ => {
                        return Err(Diagnostic::internal("process 0 has not sent the layout"));
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
                final_report: Vec::new(),
                has_lfp_cycle: None,
                path: None,
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
        shelves: Option<&dyn PartitionStores>,
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
            final_report,
            needs_cycle_check,
        } = joint;
        let kept = Cell::new(None);
        let shelf = shelves.map(|s| s.shelf(name)).transpose()?;
        let resumed = shelf.as_ref().and_then(|s| s.resume_stamp());
        if let Some(stamp) = resumed {
            kept.set(Some(stamp.number));
            stamp.symmetries.expect(symmetries)?;
        }
        let options = &match self.with_layout(model, options, budget, (symmetries, resumed))? {
            Ok(options) => options,
            Err(stop) => {
                return Ok(JointOutcome {
                    decided: false,
                    stop,
                    final_report: Vec::new(),
                    has_lfp_cycle: None,
                    path: None,
                });
            }
        };
        self.broken = true;
        let (group, leaves) = (SymmetryGroup::of(symmetries), options.leaves.clone());
        let shelf = shelf.as_ref().map(|s| Checkpointing {
            shelf: &**s,
            resumed,
            group,
            leaves,
            kept: &kept,
        });
        let mut share = Partition::new(model, options, budget, symmetries, self.me, self.count)?
            .with_annotations(carrier, trace, options);
        // Missing reports after an early end are tolerated.
        let mut extra = |share: &mut Partition<'_>, _: bool| final_report(share);
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
            final_report: ended.final_report,
            has_lfp_cycle: None,
            path: ended.path,
        };
        if met.decided
            || trace
            || met.stop != Stop::Complete
            || !needs_cycle_check(&met.final_report)
        {
            return Ok(met);
        }
        let cycle = self.has_lfp_cycle(&mut share, symmetries, (budget, progress))?;
        Ok(match cycle {
            Ok(cycle) => JointOutcome { has_lfp_cycle: Some(cycle), ..met },
            Err(stop) => JointOutcome { stop, ..met },
        })
    }

    /// True if a least fixed point has a cycle, after a complete search; or the stop reason.
    fn has_lfp_cycle<'m>(
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
            Stop::Complete => Ok(ended.final_report.iter().any(|report| report != &[0])),
            stop => Err(stop),
        })
    }
}

/// Counts states, transitions and deadlocks, with the processes at the other ends of the
/// connections.
///
/// # Errors
/// Errors of the model in any process; a checkpoint that cannot be written or read.
pub fn explore(
    connections: Connections,
    task: GroupSearch<'_>,
) -> Result<ClusterOutcome, Diagnostic> {
    let mut together = SearchGroup::new(connections, None)?;
    let outcome = together.explore(task);
    drop(together);
    outcome
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
