//! Monitor of store-buffer safety: it observes a sequentially consistent interleaving event by
//! event and reports where it is borderline.
//!
//! Input: events of threads on cells. Output: before each load, true if under total store order the
//! load could read an older value such that the execution is no longer sequentially consistent.
//! Burckhardt, Musuvathi, "Effective Program Verification for Relaxed Memory Models"
//! (MSR-TR-2008-12; CAV 2008): algorithm of figure 2, clocks of figure 3.
//!
//! Departure: a clock has one entry per cell, not one for the loads and one for the stores of each
//! thread. Entry `a` is the newest known store to `a`. The stores to a cell are totally ordered, so
//! this is a general vector clock of definition 13 for all queries of the algorithm, which are
//! about stores. Clocks do not grow with the length of the run: [`Monitor::key`] renumbers the
//! stores of each cell in their order, so states of a program with loops recur. Cost: an event
//! merges a few vectors with one entry per cell.
//!
//! Correction: in the paper, a load that reads its own thread's store also learns the stores before
//! that one in coherence. But the store may still be in the buffer when these reach memory, so the
//! load learns none of them; only reads-from between threads orders events.
//!
//! A fence is a locked operation on a cell of its own. A locked instruction that writes nothing is
//! a fence and a load.

use mu_base::narrow;

/// A vector of store numbers, one per cell; 0 is the initial value.
type Clock = Vec<u32>;

/// An action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadAction {
    /// A load.
    Load(usize),
    /// A store.
    Store(usize),
    /// A locked instruction that writes.
    Locked(usize),
    /// A locked instruction that writes nothing.
    Test(usize),
    /// A full fence.
    Fence,
}

impl ThreadAction {
    /// Returns the cell, and true if it is written; `None` for a fence.
    pub fn access(self) -> Option<(usize, bool)> {
        match self {
            ThreadAction::Load(c) | ThreadAction::Test(c) => Some((c, false)),
            ThreadAction::Store(c) | ThreadAction::Locked(c) => Some((c, true)),
            ThreadAction::Fence => None,
        }
    }
    /// True if two actions of different threads do not commute.
    pub fn conflicts(self, other: ThreadAction) -> bool {
        matches!((self.access(), other.access()), (Some((a, v)), Some((b, w))) if a == b && (v || w))
    }
}

/// The state of the monitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Monitor {
    /// Number of stores to each cell.
    count: Vec<u32>,
    /// Relaxed happens-before, for each thread: the stores known to its loads and to its stores.
    loads: Vec<Clock>,
    stores: Vec<Clock>,
    /// For each thread and cell: the stores that a load there learns; for each cell: those that a
    /// store there learns.
    to_load: Vec<Vec<Clock>>,
    to_store: Vec<Clock>,
    /// Happens-before: for each thread, and for the loads and stores of each cell.
    thread: Vec<Clock>,
    written: Vec<Clock>,
    touched: Vec<Clock>,
    /// For each thread and cell: its newest store there.
    own: Vec<Clock>,
}

fn merge(into: &mut Clock, from: &[u32]) {
    into.iter_mut().zip(from).for_each(|(a, &b)| *a = (*a).max(b));
}

impl Monitor {
    /// Creates the monitor before all events.
    pub fn new(threads: usize, cells: usize) -> Self {
        let zero = vec![0; cells];
        let (by_thread, by_cell) = (vec![zero.clone(); threads], vec![zero.clone(); cells]);
        Self {
            count: zero,
            loads: by_thread.clone(),
            stores: by_thread.clone(),
            to_load: vec![by_cell.clone(); threads],
            to_store: by_cell.clone(),
            thread: by_thread.clone(),
            written: by_cell.clone(),
            touched: by_cell,
            own: by_thread,
        }
    }

    /// Returns a store that happened before the next load of `cell` by the thread, but that the
    /// load need not read under total store order: the number of the oldest one. The load then
    /// makes the interleaving borderline. `None`: it does not.
    pub fn borderline(&self, thread: usize, cell: usize) -> Option<u32> {
        // The newest store that the load must see under total store order; `self.thread` has the
        // newest one that it must see under sequential consistency.
        let bound = self.own[thread][cell].max(self.loads[thread][cell]);
        (self.thread[thread][cell] > bound).then_some(bound + 1)
    }

    /// Processes an event.
    pub fn process_event(&mut self, t: usize, action: ThreadAction) {
        match action {
            ThreadAction::Fence => self.fence(t),
            ThreadAction::Load(cell) => self.load(t, cell),
            ThreadAction::Test(cell) => {
                self.fence(t);
                self.load(t, cell);
                self.fence(t);
            }
            ThreadAction::Store(cell) => self.write(t, cell, false),
            ThreadAction::Locked(cell) => self.write(t, cell, true),
        }
    }

    fn fence(&mut self, t: usize) {
        let known = self.stores[t].clone();
        merge(&mut self.loads[t], &known);
        self.stores[t] = self.loads[t].clone();
    }

    fn load(&mut self, t: usize, cell: usize) {
        merge(&mut self.loads[t], &self.to_load[t][cell]);
        merge(&mut self.to_store[cell], &self.loads[t]);
        merge(&mut self.thread[t], &self.written[cell]);
        merge(&mut self.touched[cell], &self.thread[t]);
    }

    fn write(&mut self, t: usize, cell: usize, locked: bool) {
        self.count[cell] += 1;
        let number = self.count[cell];
        let mut stamp = self.stores[t].clone();
        merge(&mut stamp, &self.loads[t]);
        merge(&mut stamp, &self.to_store[cell]);
        stamp[cell] = number;
        for (q, clocks) in self.to_load.iter_mut().enumerate() {
            if locked || q != t {
                merge(&mut clocks[cell], &stamp);
            } else {
                // A load that is forwarded from the buffer learns no stores that came before this
                // one in memory.
                clocks[cell].fill(0);
            }
        }
        merge(&mut self.to_store[cell], &stamp);
        if locked {
            merge(&mut self.loads[t], &stamp);
        }
        self.stores[t] = stamp;
        merge(&mut self.thread[t], &self.touched[cell]);
        self.thread[t][cell] = number;
        merge(&mut self.touched[cell], &self.thread[t]);
        self.written[cell] = self.thread[t].clone();
        self.own[t][cell] = number;
    }

    fn clocks(&self) -> impl Iterator<Item = &Clock> {
        let by_thread = self.loads.iter().chain(&self.stores).chain(self.to_load.iter().flatten());
        let by_cell =
            self.to_store.iter().chain(&self.thread).chain(&self.written).chain(&self.touched);
        std::iter::once(&self.count).chain(by_thread).chain(by_cell).chain(&self.own)
    }

    /// Returns all clocks with the stores of each cell renumbered. Monitors with equal keys have
    /// the same future behaviour.
    pub fn key(&self) -> Vec<u32> {
        let cells = self.count.len();
        let mut key: Vec<u32> = self.clocks().flatten().copied().collect();
        for cell in 0..cells {
            let mut known: Vec<u32> =
                key.iter().skip(cell).step_by(cells.max(1)).copied().collect();
            known.sort_unstable();
            known.dedup();
            for number in key.iter_mut().skip(cell).step_by(cells) {
                *number = narrow::index(known.binary_search(number).expect("each number is known"));
            }
        }
        key
    }
}
