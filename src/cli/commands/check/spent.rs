//! Time that a part of a run has spent: processor time, so that other work of the machine does not
//! count.
//!
//! In: the statistics that Linux keeps of a process. Out: the processor time of all threads since
//! the begin, in hundredths of a second. A short part, and one on another system, is measured by
//! the clock. Cost: a read of a small file of the system.

use mu_base::host::Instant;
use std::time::Duration;

/// Parts that take less are measured by the clock.
const SHORT: Duration = Duration::from_secs(1);
/// Ticks of the processor time of Linux in a second.
const TICKS: u64 = 100;

/// The begin of a part.
pub(super) struct Spent {
    at: Instant,
    processor: Option<Duration>,
}

impl Spent {
    /// Begins a part.
    pub fn begin() -> Self {
        Self { at: Instant::now(), processor: processor() }
    }

    /// Returns the time since the begin.
    pub fn elapsed(&self) -> Duration {
        let all = self.at.elapsed();
        if all < SHORT {
            return all;
        }
        let used = processor().zip(self.processor).map(|(now, then)| now.saturating_sub(then));
        used.unwrap_or(all)
    }
}

/// Returns the processor time of the process, of all threads; `None` if the system has no such
/// statistics.
fn processor() -> Option<Duration> {
    if cfg!(not(target_os = "linux")) {
        return None;
    }
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // User and system time are the fields 14 and 15; the second one ends with the last parenthesis.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((next()? + next()?) * 1000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let (spent, Some(before)) = (Spent::begin(), processor()) else { return };
        let mut n = 1u64;
        while processor() == Some(before) && spent.at.elapsed() < Duration::from_secs(10) {
            n = std::hint::black_box(n.wrapping_mul(3));
        }
        assert!(processor().is_some_and(|now| now > before), "{before:?}");
        assert!(spent.elapsed() > Duration::ZERO);
    }
}
