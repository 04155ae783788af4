//! Counts of interleavings, and of borderline ones, as defined by Burckhardt and Musuvathi (2008).
//!
//! Input: a [`Program`]. Output: a [`Count`]. Interleavings are enumerated one by one, without
//! storing states: either with sleep sets (Godefroid 1996), one for each order of dependent events,
//! or all with a bounded number of preemptions (Musuvathi, Qadeer 2007). An interleaving that
//! returns to one of its states, as a waiting thread does, is not extended.
//!
//! The paper's programs run in a harness, in which the first thread starts the others. With
//! [`Counting::starts`] a start is two accesses, as in the harness: a locked store of the first
//! thread, and a locked load with which the started thread begins. Cost: the number of
//! interleavings; each step copies a state.

use ahash::AHashSet;

use super::monitor::ThreadAction;
use super::robust::{MonitoredMachine, MonitoredState};
use mu_base::{Budget, Diagnostic, Stop};
use mu_program::Program;

/// The interleavings to count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting {
    /// Largest number of preemptions; `None`: one interleaving for each order of dependent events.
    pub preemptions: Option<u32>,
    /// The thread that runs first; `None`: any, of which the first of the program starts others.
    pub first: Option<usize>,
    /// True if the first thread starts the others, one after the other, by accesses that count.
    pub starts: bool,
}

/// Numbers of interleavings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Number of interleavings to the end of all threads, or to a recurring state.
    pub interleavings: u64,
    /// Number of borderline interleavings.
    pub borderline: u64,
    /// Number of interleavings that end in a recurring state.
    pub recurring: u64,
    /// The stop reason.
    pub stop: Stop,
}

/// A state with the progress of starting threads.
#[derive(Clone)]
struct CountState {
    state: MonitoredState,
    /// For each thread: true if it was started, and true if it has observed that.
    started: Vec<(bool, bool)>,
}

type Key = (Box<[u32]>, Vec<u32>, Vec<(bool, bool)>);

impl CountState {
    fn key(&self) -> Key {
        (self.state.slots.clone(), self.state.monitor.key(), self.started.clone())
    }
}

/// A step of the search.
struct CountFrame {
    place: CountState,
    /// The next action of each thread.
    intents: Vec<Option<ThreadAction>>,
    /// Threads in the sleep set: their next actions were explored before in another order.
    asleep: Vec<bool>,
    next: usize,
    borderline: bool,
    last: Option<usize>,
    preemptions: u32,
    /// The threads explored from here.
    went: Vec<bool>,
    /// True if a thread would have returned to a state of this interleaving.
    recurs: bool,
}

struct CountSearch {
    monitored: MonitoredMachine,
    counting: Counting,
    threads: usize,
    cells: usize,
    on_path: AHashSet<Key>,
}

impl CountSearch {
    /// Returns the thread that starts the others.
    fn starter(&self) -> usize {
        self.counting.first.unwrap_or(0)
    }
    fn start(&self) -> Result<CountState, Diagnostic> {
        let cells = self.cells + if self.counting.starts { self.threads } else { 0 };
        let mut state = self.monitored.initial_with(cells);
        self.monitored.settle(&mut state, &mut Vec::new())?;
        let started = |t: usize| !self.counting.starts || t == self.starter();
        Ok(CountState {
            state,
            started: (0..self.threads).map(|t| (started(t), started(t))).collect(),
        })
    }
    /// Returns the thread that a thread starts next.
    fn starts(&self, thread: usize, place: &CountState) -> Option<usize> {
        (thread == self.starter()).then(|| place.started.iter().position(|s| !s.0)).flatten()
    }
    /// Returns the next action of a thread; `None` if it has ended or was not started.
    fn intent(
        &self,
        thread: usize,
        place: &CountState,
    ) -> Result<Option<ThreadAction>, Diagnostic> {
        match (self.starts(thread, place), place.started[thread]) {
            (Some(other), _) => Ok(Some(ThreadAction::Locked(self.cells + other))),
            (None, (false, _)) => Ok(None),
            (None, (true, false)) => Ok(Some(ThreadAction::Test(self.cells + thread))),
            (None, (true, true)) => self.monitored.intent(thread, &place.state),
        }
    }
    /// Executes a step of a thread.
    fn step(&self, thread: usize, place: &CountState) -> Result<CountState, Diagnostic> {
        let mut next = place.clone();
        let mark = match self.starts(thread, place) {
            Some(other) => Some((other, (true, false), ThreadAction::Locked(self.cells + other))),
            None if !place.started[thread].1 => {
                Some((thread, (true, true), ThreadAction::Test(self.cells + thread)))
            }
            None => None,
        };
        match mark {
            Some((of, mark, action)) => {
                next.started[of] = mark;
                next.state.monitor.process_event(thread, action);
            }
            None => {
                self.monitored.step(thread, &mut next.state)?;
                self.monitored.settle(&mut next.state, &mut Vec::new())?;
            }
        }
        Ok(next)
    }
    fn frame(
        &self,
        place: CountState,
        asleep: Vec<bool>,
        last: Option<usize>,
        preemptions: u32,
        borderline: bool,
    ) -> Result<CountFrame, Diagnostic> {
        let intents =
            (0..self.threads).map(|t| self.intent(t, &place)).collect::<Result<Vec<_>, _>>()?;
        let went = vec![false; self.threads];
        Ok(CountFrame {
            place,
            intents,
            asleep,
            next: 0,
            borderline,
            last,
            preemptions,
            went,
            recurs: false,
        })
    }
    /// Returns the frame after a step of a thread, if it is allowed; updates the frame before.
    fn child(
        &mut self,
        top: &mut CountFrame,
        t: usize,
        intent: ThreadAction,
    ) -> Result<Option<CountFrame>, Diagnostic> {
        let next = self.step(t, &top.place)?;
        let key = next.key();
        if self.on_path.contains(&key) {
            top.recurs = true;
            return Ok(None);
        }
        let mut cost = 0;
        let mut asleep = vec![false; self.threads];
        match self.counting.preemptions {
            Some(most) => {
                // Switching from a thread that could continue is a preemption, unless it only
                // waits.
                if let Some(last) = top.last.filter(|&l| l != t && top.intents[l].is_some()) {
                    cost = u32::from(!self.on_path.contains(&self.step(last, &top.place)?.key()));
                }
                if top.preemptions + cost > most {
                    return Ok(None);
                }
            }
            None => {
                // Actions explored before in this state stay in the sleep set after an independent
                // step.
                for u in (0..self.threads).filter(|&u| u != t) {
                    asleep[u] = (top.asleep[u] || top.went[u])
                        && top.intents[u].is_some_and(|i| !i.conflicts(intent));
                }
            }
        }
        top.went[t] = true;
        let before =
            top.borderline || self.monitored.borderline(t, intent, &top.place.state).is_some();
        self.on_path.insert(key);
        self.frame(next, asleep, Some(t), top.preemptions + cost, before).map(Some)
    }
}

/// Counts interleavings.
pub fn count(program: &Program, counting: Counting, budget: &Budget) -> Result<Count, Diagnostic> {
    let (threads, cells) = (program.threads.len(), program.cells.len());
    let mut search = CountSearch {
        monitored: MonitoredMachine::new(program.clone()),
        counting,
        threads,
        cells,
        on_path: AHashSet::new(),
    };
    let mut out = Count { interleavings: 0, borderline: 0, recurring: 0, stop: Stop::Complete };
    let start = search.start()?;
    search.on_path.insert(start.key());
    let mut stack = vec![search.frame(start, vec![false; threads], None, 0, false)?];
    while let Some(top) = stack.last_mut() {
        if let Err(stop) = budget.check(out.interleavings) {
            out.stop = stop;
            break;
        }
        let t = top.next;
        if t == threads {
            let ended = top.intents.iter().all(Option::is_none);
            if ended || top.recurs && !top.went.contains(&true) {
                out.interleavings += 1;
                out.borderline += u64::from(top.borderline);
                out.recurring += u64::from(!ended);
            }
            search.on_path.remove(&top.place.key());
            stack.pop();
            continue;
        }
        top.next += 1;
        let Some(intent) = top.intents[t] else { continue };
        let late = top.last.is_none() && counting.first.is_some_and(|first| first != t);
        if top.asleep[t] || late {
            continue;
        }
        if let Some(child) = search.child(top, t, intent)? {
            stack.push(child);
        }
    }
    Ok(out)
}
