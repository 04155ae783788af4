//! Conjunctive (and, dually, disjunctive) formulas on a stored transition system: reachability of a deciding configuration.
//!
//! In: an [`Lts`], the automaton of a formula. Out: the verdict with a shortest deciding path, or that the formula has real alternation
//! and needs a game. A configuration is (formula state, system state). Each formula state has one bit a system state; edges are never
//! copied. The search goes formula state by formula state: most transitions keep the formula state, so it runs over one bit set and
//! the rows of the system, and what other formula states are to look at is handed over in batches. Independent instances of outer
//! quantifiers thus run on different threads with nothing shared but the system.
//!
//! Least fixed points (greatest, in the dual case) demand besides that no cycle of configurations goes through them: that holds if the
//! system is acyclic and no formula state reaches itself without a step. If it is not, this engine gives up and says so.
//!
//! Cost: one visit a transition and formula state that reaches its source; one bit a configuration.
//! Invariant: a bit is set before its configuration is handed to anybody, so each is expanded exactly once, whatever the threads.

use super::automaton::{Automaton, Demand, FormulaState, Start};
use crate::base::ids::{LabelId, StateId};
use crate::base::{Budget, Diagnostic, Stage, Stop};
use crate::formula::normal::Node;
use crate::lts::Lts;
use crate::process::linear::ActionLabels;
use ahash::AHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// A step of a deciding path: the label, and the state after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// Label of the transition.
    pub label: LabelId,
    /// Its target.
    pub target: StateId,
}

/// What the search says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The formula's value, and a shortest path that decides it if one does (`[R]false` violated, `<R>true` met). The path may end in a
    /// transition whose label alone decides.
    Verdict(bool, Option<Vec<PathStep>>),
    /// Conjunctions and disjunctions alternate, or cycles matter: a game is needed.
    NeedsGame,
    /// A limit.
    Stopped(Stop),
}

/// Outcome of the search.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was found.
    pub finding: Finding,
    /// Configurations visited: the boolean equations that an explicit system would have had.
    pub configurations: u64,
    /// Formula states met.
    pub formula_states: usize,
}

/// No demand.
const NOTHING: u32 = 0;
/// Decides.
const DECIDED: u32 = 1;
/// The same formula state again, nothing else.
const SAME: u32 = 2;
/// First index of a set.
const SETS: u32 = 3;

/// What a formula state demands, by label.
struct Row {
    /// Demands at the same system state.
    here: Vec<u32>,
    decided: bool,
    /// Demands at the same state if a label leaves it; empty if there are none.
    here_if: Vec<u32>,
    step: Vec<u32>,
    sets: Vec<Box<[u32]>>,
}

/// Why a row cannot be had.
enum NoRow {
    Alternates,
    Failed(Diagnostic),
}

struct Shared<'a> {
    lts: &'a Lts,
    rows: RwLock<Vec<Option<Arc<Row>>>>,
    bits: RwLock<Vec<Option<Arc<[AtomicU64]>>>>,
    queue: Mutex<VecDeque<(u32, Vec<u32>)>>,
    wake: Condvar,
    /// Batches queued or being worked on.
    open: AtomicUsize,
    stop: AtomicBool,
    ending: Mutex<Option<Ending>>,
    visited: AtomicU64,
    /// Threads asleep for want of work.
    idle: AtomicUsize,
}

enum Ending {
    Decided,
    Alternates,
    Failed(Diagnostic),
    Stopped(Stop),
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared<'_> {
    fn end(&self, ending: Ending) {
        let mut slot = locked(&self.ending);
        if slot.is_none() {
            *slot = Some(ending);
        }
        self.stop.store(true, Ordering::SeqCst);
        let _queue = locked(&self.queue);
        self.wake.notify_all();
    }

    fn bits(&self, q: u32) -> Arc<[AtomicU64]> {
        if let Some(Some(b)) = self.bits.read().unwrap_or_else(PoisonError::into_inner).get(q as usize) {
            return b.clone();
        }
        let mut all = self.bits.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= q as usize {
            all.resize(q as usize + 1, None);
        }
        let words = self.lts.state_count().div_ceil(64);
        all[q as usize].get_or_insert_with(|| (0..words).map(|_| AtomicU64::new(0)).collect()).clone()
    }

    fn push(&self, q: u32, states: Vec<u32>) {
        self.open.fetch_add(1, Ordering::SeqCst);
        locked(&self.queue).push_back((q, states));
        self.wake.notify_one();
    }

    /// The next batch; `None` when all is done.
    fn pop(&self) -> Option<(u32, Vec<u32>)> {
        let mut queue = locked(&self.queue);
        self.idle.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.stop.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(batch) = queue.pop_front() {
                self.idle.fetch_sub(1, Ordering::Relaxed);
                return Some(batch);
            }
            if self.open.load(Ordering::SeqCst) == 0 {
                self.wake.notify_all();
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _queue = locked(&self.queue);
            self.wake.notify_all();
        }
    }
}

/// Sets a bit; whether it was clear.
fn mark(bits: &[AtomicU64], s: u32) -> bool {
    let word = &bits[s as usize / 64];
    let bit = 1u64 << (s % 64);
    word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
}

/// A batch handed over when it has this many states.
const BATCH: usize = 1 << 14;
/// Part of a stack is given away when another thread is idle and the stack is longer than this.
const SPLIT: usize = 1 << 12;

struct Searcher<'a, 's> {
    shared: &'s Shared<'a>,
    requests: mpsc::Sender<(u32, mpsc::Sender<Option<Arc<Row>>>)>,
    handovers: AHashMap<u32, (Arc<[AtomicU64]>, Vec<u32>)>,
    budget: &'s Budget,
    since_poll: u32,
}

impl Searcher<'_, '_> {
    fn row(&self, q: u32) -> Option<Arc<Row>> {
        if let Some(Some(row)) = self.shared.rows.read().unwrap_or_else(PoisonError::into_inner).get(q as usize) {
            return Some(row.clone());
        }
        let (answer, wait) = mpsc::channel();
        self.requests.send((q, answer)).ok()?;
        wait.recv().ok().flatten()
    }

    fn run(&mut self) {
        while let Some((q, states)) = self.shared.pop() {
            if let Some(row) = self.row(q) {
                self.batch(q, &row, states);
            }
            self.flush();
            self.shared.done();
        }
    }

    fn flush(&mut self) {
        for (q, (_, states)) in std::mem::take(&mut self.handovers) {
            if !states.is_empty() {
                self.shared.push(q, states);
            }
        }
    }

    fn hand_over(&mut self, q: u32, s: u32) {
        let shared = self.shared;
        let entry = self.handovers.entry(q).or_insert_with(|| (shared.bits(q), Vec::new()));
        if mark(&entry.0, s) {
            entry.1.push(s);
            if entry.1.len() >= BATCH {
                let states = std::mem::take(&mut entry.1);
                self.shared.push(q, states);
            }
        }
    }

    fn batch(&mut self, q: u32, row: &Row, mut stack: Vec<u32>) {
        let lts = self.shared.lts;
        let bits = self.shared.bits(q);
        let mut visited = 0u64;
        if row.decided {
            self.shared.end(Ending::Decided);
            return;
        }
        while let Some(s) = stack.pop() {
            visited += 1;
            self.since_poll += 1;
            if self.since_poll >= 1 << 14 {
                self.since_poll = 0;
                if self.shared.stop.load(Ordering::Relaxed) {
                    break;
                }
                if let Err(stop) = self.budget.check(0).and_then(|()| self.budget.check_memory()) {
                    self.shared.end(Ending::Stopped(stop));
                    break;
                }
                if self.shared.idle.load(Ordering::Relaxed) > 0 {
                    if stack.len() > SPLIT {
                        let half = stack.split_off(stack.len() / 2);
                        self.shared.push(q, std::mem::replace(&mut stack, half));
                    }
                    self.flush();
                }
            }
            for &other in &row.here {
                self.hand_over(other, s);
            }
            let range = lts.offsets[s as usize] as usize..lts.offsets[s as usize + 1] as usize;
            for (l, t) in lts.labels[range.clone()].iter().zip(&lts.targets[range]) {
                if !row.here_if.is_empty() {
                    match row.here_if[l.index()] {
                        NOTHING => {}
                        DECIDED => return self.shared.end(Ending::Decided),
                        set => {
                            for &other in &row.sets[(set - SETS) as usize] {
                                self.hand_over(other, s);
                            }
                        }
                    }
                }
                match row.step[l.index()] {
                    SAME => {
                        if mark(&bits, t.0) {
                            stack.push(t.0);
                        }
                    }
                    NOTHING => {}
                    DECIDED => return self.shared.end(Ending::Decided),
                    set => {
                        for &other in &row.sets[(set - SETS) as usize] {
                            if other == q {
                                if mark(&bits, t.0) {
                                    stack.push(t.0);
                                }
                            } else {
                                self.hand_over(other, t.0);
                            }
                        }
                    }
                }
            }
        }
        self.shared.visited.fetch_add(visited, Ordering::Relaxed);
    }
}

/// Computes a row of the automaton for the labels that occur.
fn make_row(automaton: &mut Automaton, q: u32, all: bool, used: &[bool], labels: &dyn ActionLabels) -> Result<Row, NoRow> {
    let state = FormulaState(q);
    if automaton.universal(state) != all {
        return Err(NoRow::Alternates);
    }
    let mut row = Row { here: Vec::new(), decided: false, here_if: Vec::new(), step: vec![NOTHING; used.len()], sets: Vec::new() };
    let mut by_answer: AHashMap<Demand, u32> = AHashMap::new();
    let here = automaton.here(state).map_err(NoRow::Failed)?;
    row.decided = here == Demand::DECIDED;
    row.here = automaton.set(here).iter().map(|q| q.0).collect();
    let asks = automaton.asks_labels(state);
    if asks {
        row.here_if = vec![NOTHING; used.len()];
    }
    for label in (0..used.len()).filter(|l| used[*l]) {
        let mut encode = |automaton: &Automaton, answer: Demand, stay: bool| -> u32 {
            match answer {
                Demand::NOTHING => NOTHING,
                Demand::DECIDED => DECIDED,
                _ => {
                    let set = automaton.set(answer);
                    if stay && set.len() == 1 && set[0].0 == q {
                        return SAME;
                    }
                    *by_answer.entry(answer).or_insert_with(|| {
                        row.sets.push(set.iter().map(|q| q.0).collect());
                        row.sets.len() as u32 - 1 + SETS
                    })
                }
            }
        };
        let id = LabelId::new(label);
        if asks {
            let answer = automaton.here_if(state, id, labels).map_err(NoRow::Failed)?;
            row.here_if[label] = encode(automaton, answer, false);
        }
        let answer = automaton.step(state, id, labels).map_err(NoRow::Failed)?;
        row.step[label] = encode(automaton, answer, true);
    }
    Ok(row)
}

/// Decides a conjunctive or disjunctive formula on a stored system.
pub fn check(
    lts: &Lts,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    threads: usize,
    budget: &Budget,
) -> Result<Outcome, Diagnostic> {
    let outcome = |finding, configurations, formula_states| Ok(Outcome { finding, configurations, formula_states });
    let (all, start) = match automaton.start()? {
        Start::Constant(value) => return outcome(Finding::Verdict(value, None), 1, 0),
        Start::States(all, states) => (all, states),
    };
    let mut used = vec![false; lts.table.texts.len()];
    lts.labels.iter().for_each(|l| used[l.index()] = true);
    let shared = Shared {
        lts,
        rows: RwLock::default(),
        bits: RwLock::default(),
        queue: Mutex::default(),
        wake: Condvar::new(),
        open: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        ending: Mutex::new(None),
        visited: AtomicU64::new(0),
        idle: AtomicUsize::new(0),
    };
    for q in &start {
        if mark(&shared.bits(q.0), lts.initial.0) {
            shared.push(q.0, vec![lts.initial.0]);
        }
    }
    // The automaton belongs to this thread, which answers for rows while the others search.
    let (requests, asked) = mpsc::channel::<(u32, mpsc::Sender<Option<Arc<Row>>>)>();
    let panicked = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..threads.max(1) {
            let mut searcher = Searcher { shared: &shared, requests: requests.clone(), handovers: AHashMap::new(), budget, since_poll: 0 };
            let shared = &shared;
            workers.push(scope.spawn(move || {
                let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| searcher.run()));
                if run.is_err() {
                    shared.end(Ending::Failed(Diagnostic::new(Stage::Internal, "a search thread panicked")));
                }
            }));
        }
        drop(requests);
        for (q, answer) in asked {
            let known = shared.rows.read().unwrap_or_else(PoisonError::into_inner).get(q as usize).cloned().flatten();
            let row = match known {
                Some(row) => Some(row),
                None => match make_row(automaton, q, all, &used, labels) {
                    Ok(row) => {
                        let row = Arc::new(row);
                        let mut rows = shared.rows.write().unwrap_or_else(PoisonError::into_inner);
                        if rows.len() <= q as usize {
                            rows.resize(q as usize + 1, None);
                        }
                        rows[q as usize] = Some(row.clone());
                        Some(row)
                    }
                    Err(NoRow::Alternates) => {
                        shared.end(Ending::Alternates);
                        None
                    }
                    Err(NoRow::Failed(d)) => {
                        shared.end(Ending::Failed(d));
                        None
                    }
                },
            };
            let _ = answer.send(row);
        }
        workers.into_iter().any(|w| w.join().is_err())
    });
    if panicked {
        return Err(Diagnostic::new(Stage::Internal, "a search thread panicked"));
    }
    let rows = shared.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (visited, met) = (shared.visited.into_inner(), rows.iter().flatten().count());
    match shared.ending.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(Ending::Failed(d)) => Err(d),
        Some(Ending::Alternates) => outcome(Finding::NeedsGame, visited, met),
        Some(Ending::Stopped(stop)) => outcome(Finding::Stopped(stop), visited, met),
        Some(Ending::Decided) => {
            drop(shared.bits);
            let path = shortest(lts, automaton, all, &start, labels, &used)?;
            outcome(Finding::Verdict(!all, Some(path)), visited, met)
        }
        None => {
            drop(shared.bits);
            // A cycle through a least (dually: greatest) fixed point would decide the other way.
            let losing = |q: usize| match automaton.normal().node(automaton.node(FormulaState(q as u32))) {
                Node::Head(_) => (automaton.rank(FormulaState(q as u32)) % 2 == 1) == all,
                _ => false,
            };
            let dangerous = rows.iter().enumerate().any(|(q, row)| row.is_some() && losing(q));
            if dangerous && (stays_here(&rows) || !is_acyclic(lts)) {
                return outcome(Finding::NeedsGame, visited, met);
            }
            outcome(Finding::Verdict(all, None), visited, met)
        }
    }
}

/// Whether some formula state reaches itself without a step of the system.
fn stays_here(rows: &[Option<Arc<Row>>]) -> bool {
    let next = |q: usize| -> Vec<u32> {
        let Some(row) = &rows[q] else { return Vec::new() };
        let mut out = row.here.clone();
        for &answer in &row.here_if {
            if answer >= SETS {
                out.extend_from_slice(&row.sets[(answer - SETS) as usize]);
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    };
    // Kahn's peel over formula states.
    let mut into = vec![0u32; rows.len()];
    let all: Vec<Vec<u32>> = (0..rows.len()).map(next).collect();
    all.iter().flatten().for_each(|&q| into[q as usize] += 1);
    let mut todo: Vec<usize> = (0..rows.len()).filter(|&q| into[q] == 0).collect();
    let mut peeled = 0;
    while let Some(q) = todo.pop() {
        peeled += 1;
        for &r in &all[q] {
            into[r as usize] -= 1;
            if into[r as usize] == 0 {
                todo.push(r as usize);
            }
        }
    }
    peeled < rows.len()
}

/// Whether the system has no cycle. O(states + transitions).
pub fn is_acyclic(lts: &Lts) -> bool {
    let mut into = vec![0u32; lts.state_count()];
    lts.targets.iter().for_each(|t| into[t.index()] += 1);
    let mut todo: Vec<u32> = (0..lts.state_count() as u32).filter(|&s| into[s as usize] == 0).collect();
    let mut peeled = 0;
    while let Some(s) = todo.pop() {
        peeled += 1;
        for (_, t) in lts.successors(StateId(s)) {
            into[t.index()] -= 1;
            if into[t.index()] == 0 {
                todo.push(t.0);
            }
        }
    }
    peeled == lts.state_count()
}

/// Breadth-first search with parents for a shortest deciding path; only called when there is one.
fn shortest(
    lts: &Lts,
    automaton: &mut Automaton,
    all: bool,
    start: &[FormulaState],
    labels: &dyn ActionLabels,
    used: &[bool],
) -> Result<Vec<PathStep>, Diagnostic> {
    type Configuration = (u32, u32);
    let mut rows: AHashMap<u32, Row> = AHashMap::new();
    let mut parents: AHashMap<Configuration, Option<(Configuration, Option<LabelId>)>> = AHashMap::new();
    // Steps cost one, staying costs nothing: two ends of a queue.
    let mut queue: VecDeque<Configuration> = VecDeque::new();
    for q in start {
        parents.insert((q.0, lts.initial.0), None);
        queue.push_back((q.0, lts.initial.0));
    }
    let path_to = |parents: &AHashMap<Configuration, Option<(Configuration, Option<LabelId>)>>, mut at: Configuration| {
        let mut path = Vec::new();
        while let Some((before, label)) = parents[&at] {
            if let Some(label) = label {
                path.push(PathStep { label, target: StateId(at.1) });
            }
            at = before;
        }
        path.reverse();
        path
    };
    while let Some((q, s)) = queue.pop_front() {
        if let std::collections::hash_map::Entry::Vacant(slot) = rows.entry(q) {
            match make_row(automaton, q, all, used, labels) {
                Ok(row) => slot.insert(row),
                Err(NoRow::Failed(d)) => return Err(d),
                Err(NoRow::Alternates) => continue,
            };
        }
        let row = &rows[&q];
        if row.decided {
            return Ok(path_to(&parents, (q, s)));
        }
        let mut stay: Vec<u32> = row.here.clone();
        let mut moves: Vec<(LabelId, u32, u32)> = Vec::new();
        for (l, t) in lts.successors(StateId(s)) {
            if let Some(&answer) = row.here_if.get(l.index()) {
                match answer {
                    NOTHING => {}
                    DECIDED => return Ok(path_to(&parents, (q, s))),
                    set => stay.extend_from_slice(&row.sets[(set - SETS) as usize]),
                }
            }
            match row.step[l.index()] {
                NOTHING => {}
                DECIDED => {
                    let mut path = path_to(&parents, (q, s));
                    path.push(PathStep { label: l, target: t });
                    return Ok(path);
                }
                SAME => moves.push((l, q, t.0)),
                set => moves.extend(row.sets[(set - SETS) as usize].iter().map(|&r| (l, r, t.0))),
            }
        }
        for r in stay {
            if let std::collections::hash_map::Entry::Vacant(slot) = parents.entry((r, s)) {
                slot.insert(Some(((q, s), None)));
                queue.push_front((r, s));
            }
        }
        for (l, r, t) in moves {
            if let std::collections::hash_map::Entry::Vacant(slot) = parents.entry((r, t)) {
                slot.insert(Some(((q, s), Some(l))));
                queue.push_back((r, t));
            }
        }
    }
    Err(Diagnostic::new(Stage::Internal, "a deciding configuration was found once and not again"))
}
