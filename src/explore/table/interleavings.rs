//! Model checking of `Cells::insert` under all interleavings of a few threads, with stale reads.
//!
//! The cells here pass control to a scheduler before each access. It runs the threads one access at
//! a time and explores all its choices depth first. A read may also return the previous 0, as a
//! relaxed load may; a claim reads the newest value. The value of one cell is read nowhere else, so
//! the order of accesses to different cells is irrelevant beyond that.
//!
//! Checked after each run: of the threads that insert a key exactly one gets `New`, and all get the
//! same place; nothing is lost; no gap lies before an entry. Cost: the number of interleavings,
//! some thousands.

use super::{Cells, Geometry, Insert, TableCell};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// One run: the waiting threads, and the choices made.
#[derive(Default)]
struct Schedule {
    waiting: Vec<bool>,
    alive: Vec<bool>,
    turn: Option<usize>,
    /// Number chosen, number of options.
    choices: Vec<(usize, usize)>,
    at: usize,
}

impl Schedule {
    fn choose(&mut self, options: usize) -> usize {
        if self.at == self.choices.len() {
            self.choices.push((0, options));
        }
        self.at += 1;
        assert_eq!(self.choices[self.at - 1].1, options, "a run does not replay");
        self.choices[self.at - 1].0
    }
    /// Schedules one thread once all live threads wait.
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
    schedule: Mutex<Schedule>,
    changed: Condvar,
}

impl Scheduler {
    /// Waits until the scheduler lets this thread access a cell.
    fn step(&self, me: usize) {
        let mut schedule = self.schedule.lock().unwrap();
        schedule.waiting[me] = true;
        schedule.next();
        self.changed.notify_all();
        while schedule.turn != Some(me) {
            schedule = self.changed.wait(schedule).unwrap();
        }
        schedule.turn = None;
        schedule.waiting[me] = false;
    }
    fn end(&self, me: usize) {
        let mut schedule = self.schedule.lock().unwrap();
        schedule.alive[me] = false;
        schedule.next();
        self.changed.notify_all();
    }
}

thread_local! {
    static HERE: RefCell<Option<(Arc<Scheduler>, usize)>> = const { RefCell::new(None) };
}

/// A cell with scheduled accesses.
struct ScheduledCell(AtomicU64);

impl TableCell for ScheduledCell {
    const COUNT: usize = 2;
    fn zero() -> Self {
        ScheduledCell(AtomicU64::new(0))
    }
    fn get(&self) -> u64 {
        HERE.with_borrow(|here| {
            let Some((scheduler, me)) = here else { return self.0.load(Ordering::Relaxed) };
            scheduler.step(*me);
            let value = self.0.load(Ordering::Relaxed);
            let stale = value != 0 && scheduler.schedule.lock().unwrap().choose(2) == 1;
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
    // Short entries include all difficult cases; long ones are the special case without a distance.
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

/// Checks all interleavings of threads that insert these hashes into a table with this number of
/// buckets. Returns the number of runs.
fn check(buckets: u64, plan: &[&[u64]]) -> usize {
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut runs = 0;
    loop {
        let cells = Cells::<ScheduledCell>::new(buckets, 4);
        let geometry = Geometry::new(6, cells.homes());
        let scheduler = Arc::new(Scheduler::default());
        *scheduler.schedule.lock().unwrap() = Schedule {
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
        let mut schedule = scheduler.schedule.lock().unwrap();
        let context = || format!("run {runs}: {:?}: {answers:?}", schedule.choices);
        // One place and one `New` for each key that found room.
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
        choices = std::mem::take(&mut schedule.choices);
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
    // Hashes of one home (6 bits, 4 buckets, 3 homes: the first contains 0..=21).
    let mut runs = 0;
    runs += check(4, &[&[5], &[5]]);
    runs += check(4, &[&[5], &[5], &[5]]);
    runs += check(4, &[&[5, 9], &[9, 5]]);
    // The bucket overflows into the next one.
    runs += check(4, &[&[5, 7], &[9]]);
    // There is no room for all.
    runs += check(1, &[&[5, 7], &[9, 5]]);
    assert!(runs > 500, "{runs}");
    println!("{runs} interleavings");
}
