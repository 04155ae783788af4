//! Parallel map with ordered results, so that the outcome does not depend on the number of threads.

use mu_base::host::Instant;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The worker threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Number of threads; 0: one per core.
    pub count: usize,
    /// Portions that one thread would finish sooner than this are not distributed, because starting
    /// another thread takes time.
    pub from: Duration,
}

impl From<usize> for Threads {
    fn from(count: usize) -> Self {
        Threads { count, from: Duration::from_millis(4) }
    }
}

/// Returns the number of threads. 0 means one per core, which is determined lazily, because the
/// query takes as long as a small proof.
pub fn thread_count(threads: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    if threads > 0 {
        threads
    } else {
        *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// Applies `of` to each number below `count`. Returns the results in order. Free threads take
/// ranges of `part` numbers; with one thread, or one range, none is started.
pub fn map<R: Send>(
    threads: usize,
    count: usize,
    part: usize,
    of: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    map_until(threads, count, part, of, |_, _| false)
}

/// Does the same as [`map`], up to and including the first result for which `ends` holds.
pub fn map_until<R: Send>(
    threads: usize,
    count: usize,
    part: usize,
    of: impl Fn(usize) -> R + Sync,
    ends: impl Fn(usize, &R) -> bool + Sync,
) -> Vec<R> {
    let part = part.max(1);
    let parts = count.div_ceil(part);
    let threads = if parts < 2 { 1 } else { thread_count(threads).min(parts) };
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(count));
    let work = || {
        let mut done: Vec<(usize, R)> = Vec::new();
        loop {
            // Ranges are taken in order, so when a range beyond the end is reached, all earlier
            // ones have been taken.
            let from = next.fetch_add(1, Ordering::Relaxed) * part;
            for at in from..(from + part).min(count) {
                if at > end.load(Ordering::Relaxed) {
                    return done;
                }
                let result = of(at);
                if ends(at, &result) {
                    end.fetch_min(at, Ordering::Relaxed);
                }
                done.push((at, result));
            }
            if from + part >= count {
                return done;
            }
        }
    };
    let mut all = if threads < 2 {
        work()
    } else {
        std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for h in helpers {
                match h.join() {
                    Ok(mut done) => all.append(&mut done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all.sort_unstable_by_key(|d| d.0);
            all
        })
    };
    all.truncate(end.into_inner().saturating_add(1));
    all.into_iter().map(|d| d.1).collect()
}

/// Portions of work of one kind, distributed if the duration of the last portion shows that it
/// pays.
pub struct Portions {
    threads: Threads,
    /// Nanoseconds per result of the last portion.
    each: AtomicU64,
}

impl Portions {
    /// Creates the state before the first portion.
    pub fn new(threads: Threads) -> Portions {
        Portions { threads, each: AtomicU64::new(0) }
    }
    /// Works like [`map`].
    pub fn map<R: Send>(
        &self,
        count: usize,
        part: usize,
        of: impl Fn(usize) -> R + Sync,
    ) -> Vec<R> {
        self.map_until(count, part, of, |_, _| false)
    }
    /// Works like [`map_until`].
    pub fn map_until<R: Send>(
        &self,
        count: usize,
        part: usize,
        of: impl Fn(usize) -> R + Sync,
        ends: impl Fn(usize, &R) -> bool + Sync,
    ) -> Vec<R> {
        let pays =
            Duration::from_nanos(self.each.load(Ordering::Relaxed).saturating_mul(count as u64))
                >= self.threads.from;
        let timed = |at: usize| {
            let begin = Instant::now();
            (of(at), begin.elapsed())
        };
        let results = map_until(
            if pays { self.threads.count } else { 1 },
            count,
            part,
            timed,
            |at, results| ends(at, &results.0),
        );
        if !results.is_empty() {
            let all: Duration = results.iter().map(|t| t.1).sum();
            let each = all.as_nanos() / results.len() as u128;
            self.each.store(u64::try_from(each).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        results.into_iter().map(|t| t.0).collect()
    }
}
