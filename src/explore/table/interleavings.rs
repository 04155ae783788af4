//! The table's protocol under all interleavings of a few threads, with stale reads: a model checker
//! for `Cells::insert` itself.
//!
//! The cells here hand control to a scheduler before each access; it runs the threads one access at
//! a time and goes through all its choices depth first. A read may also return the 0 that was there
//! before, as a relaxed load may; a claim sees the newest value. What one cell publishes is read
//! nowhere else, so the order of accesses to different cells is of no totals beyond that.
//!
//! Checked after each run: of the threads that insert a key exactly one is told that it is new, the
//! others the same place; nothing is lost; no gap lies before an entry. Cost: the number of
//! interleavings, some thousands.

use super::{Cell, Cells, Geometry, Insert};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// One run: who waits for its turn, and what was chosen.
#[derive(Default)]
struct Turns {
    waiting: Vec<bool>,
    alive: Vec<bool>,
    turn: Option<usize>,
    /// Number chosen, number of options.
    choices: Vec<(usize, usize)>,
    at: usize,
}

impl Turns {
    fn choose(&mut self, options: usize) -> usize {
        if self.at == self.choices.len() {
            self.choices.push((0, options));
        }
        self.at += 1;
        assert_eq!(self.choices[self.at - 1].1, options, "a run does not replay");
        self.choices[self.at - 1].0
    }
    /// Lets one thread go on once all that are alive wait.
    fn next(&mut self) {
        let ready: Vec<usize> = (0..self.alive.len()).filter(|t| self.alive[*t]).collect();
        if self.turn.is_none() && !ready.is_empty() && ready.iter().all(|t| self.waiting[*t]) {
            let chosen = self.choose(ready.len());
            self.turn = Some(ready[chosen]);
        }
    }
}

#[derive(Default)]
struct Scheduler {
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl Scheduler {
    /// Waits for this thread's turn to access a cell.
    fn step(&self, me: usize) {
        let mut turns = self.turns.lock().unwrap();
        turns.waiting[me] = true;
        turns.next();
        self.changed.notify_all();
        while turns.turn != Some(me) {
            turns = self.changed.wait(turns).unwrap();
        }
        turns.turn = None;
        turns.waiting[me] = false;
    }
    fn end(&self, me: usize) {
        let mut turns = self.turns.lock().unwrap();
        turns.alive[me] = false;
        turns.next();
        self.changed.notify_all();
    }
}

thread_local! {
    static HERE: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

/// A cell that waits for its turn.
struct Stepped(AtomicU64);

impl Cell for Stepped {
    const COUNT: usize = 2;
    fn zero() -> Self {
        Stepped(AtomicU64::new(0))
    }
    fn get(&self) -> u64 {
        HERE.with_borrow(|here| {
            let Some((scheduler, me)) = here else { return self.0.load(Ordering::Relaxed) };
            scheduler.step(*me);
            let value = self.0.load(Ordering::Relaxed);
            let stale = value != 0 && scheduler.turns.lock().unwrap().choose(2) == 1;
            if stale { 0 } else { value }
        })
    }
    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
    fn claim(&self, value: u64) -> Result<(), u64> {
        HERE.with_borrow(|here| {
            if let Some((scheduler, me)) = here {
                scheduler.step(*me);
            }
        });
        self.0.compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed).map(|_| ())
    }
    // Short entries have all that is hard; long ones are their case without a distance.
    fn encode(geometry: &Geometry, hash: u64, distance: u64) -> Option<u64> {
        AtomicU32::encode(geometry, hash, distance)
    }
    fn distance(value: u64) -> u64 {
        AtomicU32::distance(value)
    }
    fn decode(geometry: &Geometry, value: u64, least: u64) -> u64 {
        AtomicU32::decode(geometry, value, least)
    }
}

/// All interleavings of threads that insert these hashes, in a table of so many buckets. Returns
/// the number of runs.
fn check(buckets: u64, plan: &[&[u64]]) -> usize {
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut runs = 0;
    loop {
        let cells = Cells::<Stepped>::new(buckets, 4);
        let geometry = Geometry::new(6, cells.homes());
        let scheduler = Arc::new(Scheduler::default());
        *scheduler.turns.lock().unwrap() = Turns {
            waiting: vec![false; plan.len()],
            alive: vec![true; plan.len()],
            turn: None,
            choices: std::mem::take(&mut choices),
            at: 0,
        };
        let insert = |me: usize, hashes: &[u64]| -> Vec<(u64, Insert)> {
            HERE.set(Some((scheduler.clone(), me)));
            let done = hashes.iter().map(|h| (*h, cells.insert(&geometry, *h))).collect();
            scheduler.end(me);
            done
        };
        let insert = &insert;
        let answers: Vec<(u64, Insert)> = std::thread::scope(|scope| {
            let threads: Vec<_> = plan
                .iter()
                .enumerate()
                .map(|(me, hashes)| scope.spawn(move || insert(me, hashes)))
                .collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        runs += 1;
        let mut turns = scheduler.turns.lock().unwrap();
        let context = || format!("run {runs}: {:?}: {answers:?}", turns.choices);
        // One place and one discoverer for each key that found room.
        let mut places: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        for (hash, answer) in &answers {
            let (place, new) = match answer {
                Insert::New(place) => (*place, 1),
                Insert::Old(place) => (*place, 0),
                Insert::Full => continue,
            };
            let known = places.entry(*hash).or_insert((place, 0));
            assert_eq!(known.0, place, "{}", context());
            known.1 += new;
        }
        assert!(places.values().all(|p| p.1 == 1), "{}", context());
        let stored: BTreeSet<(u64, u64)> =
            cells.entries(&geometry).map(|(place, hash)| (hash, place)).collect();
        assert_eq!(stored, places.iter().map(|(h, p)| (*h, p.0)).collect(), "{}", context());
        for (hash, (place, _)) in &places {
            assert_eq!(cells.find(&geometry, *hash), Some(*place), "{}", context());
        }
        // The next run differs in the last choice that has another option.
        choices = std::mem::take(&mut turns.choices);
        while choices.last().is_some_and(|(chosen, options)| chosen + 1 == *options) {
            choices.pop();
        }
        match choices.last_mut() {
            Some(last) => last.0 += 1,
            None => return runs,
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a model checker in a model checker: hours")]
fn every_interleaving_of_inserts_is_right() {
    // Hashes of one home (6 bits, 4 buckets, 3 homes: 0..=21 lie in the first).
    let mut runs = 0;
    runs += check(4, &[&[5], &[5]]);
    runs += check(4, &[&[5], &[5], &[5]]);
    runs += check(4, &[&[5, 9], &[9, 5]]);
    // The bucket overflows to the next.
    runs += check(4, &[&[5, 7], &[9]]);
    // No room for all.
    runs += check(1, &[&[5, 7], &[9, 5]]);
    assert!(runs > 500, "{runs}");
    println!("{runs} interleavings");
}
