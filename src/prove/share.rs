//! Work shared among threads whose results come back in order, so that what is made of them does not depend on how many threads there are.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads that is: 0 stands for one a core, which is found out where it matters, since asking takes as long as a small proof.
pub fn resolved(threads: usize) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    if threads > 0 { threads } else { *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)) }
}

/// `of` of each number below `count`, in order. Threads take ranges of `part` numbers as they come free; with one thread, or one range, none is started.
pub fn map<R: Send>(threads: usize, count: usize, part: usize, of: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let parts = count.div_ceil(part.max(1));
    let threads = if parts < 2 { 1 } else { resolved(threads).min(parts) };
    if threads < 2 {
        return (0..count).map(of).collect();
    }
    let range = |at: usize| -> Range<usize> { at * part..(at * part + part).min(count) };
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done: Vec<(usize, Vec<R>)> = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= parts {
                return done;
            }
            done.push((at, range(at).map(&of).collect()));
        }
    };
    let mut all: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for h in helpers {
            match h.join() {
                Ok(mut done) => all.append(&mut done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|d| d.0);
    all.into_iter().flat_map(|d| d.1).collect()
}

#[cfg(test)]
mod tests {
    use super::map;

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        for threads in 1..4 {
            for part in 1..5 {
                assert_eq!(map(threads, 11, part, |i| i * i), (0..11).map(|i| i * i).collect::<Vec<_>>());
            }
        }
    }
}
