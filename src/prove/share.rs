//! Work shared among threads whose results come back in order, so that what is made of them does
//! not depend on how many threads there are.

use mu_base::host::Instant;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Who does the work.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// How many there are; 0: one a core.
    pub count: usize,
    /// A portion of work that one thread does sooner is not shared: it takes some time until
    /// another has a processor.
    pub from: Duration,
}

impl From<usize> for Threads {
    fn from(count: usize) -> Self {
        Threads { count, from: Duration::from_millis(4) }
    }
}

/// How many threads that is: 0 stands for one a core, which is found out where it matters, since
/// asking takes as long as a small proof.
pub fn resolved(threads: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    if threads > 0 {
        threads
    } else {
        *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// `of` of each number below `count`, in order. Threads take ranges of `part` numbers as they come
/// free; with one thread, or one range, none is started.
pub fn map<R: Send>(
    threads: usize,
    count: usize,
    part: usize,
    of: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    until(threads, count, part, of, |_, _| false)
}

/// The same as long as no result ends it, the one that does included.
pub fn until<R: Send>(
    threads: usize,
    count: usize,
    part: usize,
    of: impl Fn(usize) -> R + Sync,
    ends: impl Fn(usize, &R) -> bool + Sync,
) -> Vec<R> {
    let part = part.max(1);
    let parts = count.div_ceil(part);
    let threads = if parts < 2 { 1 } else { resolved(threads).min(parts) };
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(count));
    let work = || {
        let mut done: Vec<(usize, R)> = Vec::new();
        loop {
            // Ranges are taken in order: what comes before the end has been taken when a range
            // beyond it is met.
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

/// Work of one kind that comes in portions, and is shared if what the last portion took says that
/// it pays.
pub struct Portions {
    threads: Threads,
    /// What each result of the last portion took, in nanoseconds.
    each: AtomicU64,
}

impl Portions {
    /// None was done yet.
    pub fn new(threads: Threads) -> Portions {
        Portions { threads, each: AtomicU64::new(0) }
    }
    /// As [`map`].
    pub fn map<R: Send>(
        &self,
        count: usize,
        part: usize,
        of: impl Fn(usize) -> R + Sync,
    ) -> Vec<R> {
        self.until(count, part, of, |_, _| false)
    }
    /// As [`until`].
    pub fn until<R: Send>(
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
        let told =
            until(if pays { self.threads.count } else { 1 }, count, part, timed, |at, told| {
                ends(at, &told.0)
            });
        if !told.is_empty() {
            let all: Duration = told.iter().map(|t| t.1).sum();
            let each = all.as_nanos() / told.len() as u128;
            self.each.store(u64::try_from(each).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        told.into_iter().map(|t| t.0).collect()
    }
}
