//! Helper threads that compute ahead of a manager's owner.
//!
//! A helper gets its own manager on the same tables and computes what the owner is computing, in
//! another order. Its results are in the operation cache when the owner needs them. They have no
//! other effect, so a helper may be stopped at any time, and there are no results to combine. (This
//! is the idea of "lazy" parallel game-tree search over one shared transposition table.)
//!
//! Protocol: the owner makes an offer (tables, plans, a task); idle helpers accept it, each once.
//! [`Team::call_off`] begins a new round: managers of older rounds halt, and the owner waits until
//! they are released, so that it alone holds the tables.
//!
//! Invariants: results computed after the end of a round are never cached (a halted manager stays
//! halted); a [`LentManager`] is counted as long as it holds the tables, even if its thread panics.

use super::Manager;
use super::plan::Plans;
use super::store::Tables;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Task of the helpers.
pub type Task = Arc<dyn Any + Send + Sync>;

/// The helpers of a manager's owner.
#[derive(Default)]
pub struct Team {
    round: AtomicU64,
    state: Mutex<PrefetchState>,
    changed: Condvar,
}

#[derive(Default)]
struct PrefetchState {
    offer: Option<Offer>,
    /// Number of lent managers.
    lent: usize,
    over: bool,
}

#[derive(Clone)]
struct Offer {
    tables: Arc<Tables>,
    plans: Arc<Plans>,
    task: Task,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team(round {})", self.round())
    }
}

impl Team {
    fn state(&self) -> MutexGuard<'_, PrefetchState> {
        // Counters and options are consistent whenever the lock is free.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Returns the number of the round; it changes under the lock only.
    #[inline]
    pub(super) fn round(&self) -> u64 {
        self.round.load(Ordering::Relaxed)
    }
    /// Offers a task to the helpers.
    pub(super) fn offer(&self, tables: &Arc<Tables>, plans: &Arc<Plans>, task: Task) {
        let mut state = self.state();
        self.round.fetch_add(1, Ordering::Relaxed);
        state.offer = Some(Offer { tables: tables.clone(), plans: plans.clone(), task });
        self.changed.notify_all();
    }
    /// Ends the round, without waiting.
    pub(super) fn dismiss(&self) {
        let mut state = self.state();
        self.round.fetch_add(1, Ordering::Relaxed);
        state.offer = None;
    }
    /// Ends the round and waits until no helper holds tables. Returns the offered task.
    pub(super) fn call_off(&self) -> Option<Task> {
        let mut state = self.state();
        self.round.fetch_add(1, Ordering::Relaxed);
        let offer = state.offer.take();
        while state.lent > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        offer.map(|o| o.task)
    }
    /// Ends the helpers: [`Team::join`] returns `None` from now on.
    pub fn close(&self) {
        let mut state = self.state();
        self.round.fetch_add(1, Ordering::Relaxed);
        state.offer = None;
        state.over = true;
        self.changed.notify_all();
    }
    /// Waits for an offer of a round other than `served`. Returns a manager with the task, or
    /// `None` after the end. `rank` is from 1.
    pub fn join(self: &Arc<Self>, rank: usize, served: &mut u64) -> Option<LentManager> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            if let Some(offer) = state.offer.clone().filter(|_| *served != self.round()) {
                *served = self.round();
                state.lent += 1;
                let manager = Manager::lend(offer.tables, offer.plans, rank, self.clone(), *served);
                return Some(LentManager {
                    manager: Some(manager),
                    task: offer.task,
                    team: self.clone(),
                });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A helper's manager with its task.
pub struct LentManager {
    manager: Option<Manager>,
    /// The task.
    pub task: Task,
    team: Arc<Team>,
}

impl LentManager {
    /// Runs `work` with the manager, which must be returned.
    pub fn with(&mut self, work: impl FnOnce(Manager) -> Manager) {
        self.manager = self.manager.take().map(work);
    }
}

impl Drop for LentManager {
    fn drop(&mut self) {
        // The tables first: the owner must be their only holder.
        self.manager = None;
        self.team.state().lent -= 1;
        self.team.changed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Ldd, ManagerSettings};
    use super::*;

    /// An owner and three helpers unite random sets, with growth and collections in between;
    /// helpers compare their results with the owner's. Under Miri it is small.
    #[test]
    fn helpers_and_owner_make_the_same_nodes() {
        let (rounds, vectors) = if cfg!(miri) { (4, 6) } else { (60, 400) };
        let team = Arc::new(Team::default());
        let [back, finished] = [0; 2].map(AtomicU64::new);
        std::thread::scope(|scope| {
            for rank in 1..4 {
                let (team, back, finished) = (team.clone(), &back, &finished);
                scope.spawn(move || {
                    let mut served = 0;
                    while let Some(mut lent) = team.join(rank, &mut served) {
                        let task = lent.task.clone();
                        let Some((seed, whole)) = task.downcast_ref::<(u64, Ldd)>() else {
                            continue;
                        };
                        lent.with(|mut m| {
                            let mine = build(&mut m, *seed, vectors, rank);
                            if m.halt_reason().is_none() {
                                assert_eq!(mine, *whole, "seed {seed}");
                                finished.fetch_add(1, Ordering::Relaxed);
                            }
                            back.fetch_add(1, Ordering::Relaxed);
                            m
                        });
                    }
                });
            }
            let mut m = Manager::new(ManagerSettings {
                initial_bits: 4,
                max_cache_bits: 10,
                ..ManagerSettings::default()
            });
            m.set_team(team.clone());
            for seed in 0..rounds {
                // What helpers create again exists already, or was collected except for the set
                // itself.
                let whole = build(&mut m, seed, vectors, 0);
                if seed % 3 == 0 {
                    m.collect([whole]);
                }
                let before = back.load(Ordering::Relaxed);
                m.offer(Arc::new((seed, whole)));
                // Requires growth while helpers work.
                let other = build(&mut m, seed + 1000, vectors, 0);
                assert!(!other.is_empty());
                // Some rounds end while helpers work, some when all are done, some after at least
                // one has finished.
                if seed % 4 != 0 {
                    while team.state().lent > 0
                        || seed % 4 == 1 && back.load(Ordering::Relaxed) == before
                    {
                        std::thread::yield_now();
                    }
                }
                m.dismiss();
            }
            team.close();
        });
        assert!(finished.into_inner() > 0 || cfg!(miri), "no helper ever finished");
    }

    fn build(m: &mut Manager, seed: u64, vectors: usize, rank: usize) -> Ldd {
        let mut random = mu_base::random::Random::new(seed);
        let mut rows: Vec<[u32; 5]> = (0..vectors)
            .map(|_| std::array::from_fn(|_| u32::try_from(random.below(7)).unwrap()))
            .collect();
        let shift = rank * rows.len() / 4;
        rows.rotate_left(shift);
        rows.iter().fold(Ldd::EMPTY, |set, row| m.insert_vector(set, row))
    }
}
