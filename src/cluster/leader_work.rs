//! Work that process 0 does alone while the other processes wait for its result.
//!
//! In: work, such as the solution of a game. Out: the result of process 0, or its stop reason,
//! equal in all processes. A waiting process sleeps, and its loss is still detected. Cost: a
//! message to each process. Invariants: if a process is lost, there is no answer; process 0 then
//! stops soon, because the run has ended.

use super::control_messages::{ControlMessage, EndReason};
use super::dataflow::{POLL_INTERVAL, ReportMailbox, reports};
use super::wire::Health;
use mu_base::limits::peak_resident_bytes;
use mu_base::{Budget, Diagnostic, Stop};
use mu_explore::{Tally, Work};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;
use timely::worker::Worker;

/// Time between checks for lost processes.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Does the work in process 0, and waits for it in the others. Returns the result or the stop
/// reason, and the peak memory of each process. Sets `orderly` if all processes have reached the
/// end.
pub(super) fn run_on_leader(
    worker: &mut Worker,
    health: &Health,
    (me, count): (usize, usize),
    budget: &Budget,
    work: Work<'_>,
    orderly: &mut bool,
) -> Result<(Result<Vec<u8>, Stop>, Vec<u64>), Diagnostic> {
    let ended = |stop| Ok((Err(stop), vec![0; count]));
    let mail: Rc<RefCell<ReportMailbox>> = Rc::default();
    reports(worker, &mail);
    let result = if me == 0 { do_watched(health, budget, work) } else { Ok(Vec::new()) };
    if health.lost_process().is_some() {
        return ended(Stop::Lost);
    }
    let (why, final_report) = match result {
        Ok(final_report) => (None, final_report),
        Err(error) => (Some(EndReason::from(error)), Vec::new()),
    };
    let (tally, memory) = (Tally::default(), peak_resident_bytes());
    mail.borrow_mut().send(
        me,
        0..count,
        &ControlMessage::Last {
            tally,
            memory,
            why,
            failed: Vec::new(),
            final_report,
            consistent: true,
            hit: None,
        },
    );
    mail.borrow_mut().close();
    let mut memories = vec![0; count];
    let mut heard = None;
    while worker.has_dataflows() {
        worker.step_or_park(Some(POLL_INTERVAL));
        if health.lost_process().is_some() {
            return ended(Stop::Lost);
        }
        for envelope in std::mem::take(&mut mail.borrow_mut().arrived) {
            let from = envelope.from.map_or(usize::MAX, |from| from as usize);
            match (memories.get_mut(from), ControlMessage::read(&envelope.bytes)?) {
                (Some(most), ControlMessage::Last { why, final_report, memory, .. }) => {
                    *most = memory;
                    if from == 0 {
                        heard = Some((why, final_report));
                    }
                }
                _ => return Err(Diagnostic::internal("an unexpected report")),
            }
        }
        // Process 0 applies the limits; an interrupt may reach any process. The others learn that
        // this one is lost.
        if me > 0 && heard.is_none() && budget.check(0) == Err(Stop::Interrupted) {
            return ended(Stop::Interrupted);
        }
    }
    *orderly = true;
    match heard {
        Some((None, final_report)) => Ok((Ok(final_report), memories)),
        Some((Some(EndReason::Stopped(stop)), _)) => Ok((Err(stop), memories)),
        Some((Some(EndReason::Failed(error)), _)) => Err(*error),
        Some((Some(EndReason::Broken | EndReason::Decided), _)) | None => {
            Err(Diagnostic::internal("process 0 has not sent its result"))
        }
    }
}

/// Ends the watcher thread when the work ends.
struct WatcherGuard<'a> {
    done: &'a AtomicBool,
    watcher: Thread,
}

impl Drop for WatcherGuard<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.watcher.unpark();
    }
}

/// Does the work; interrupts it if another process is lost.
fn do_watched(health: &Health, budget: &Budget, work: Work<'_>) -> Result<Vec<u8>, Diagnostic> {
    let done = AtomicBool::new(false);
    let check_health = || {
        while !done.load(Ordering::Relaxed) {
            if health.lost_process().is_some() {
                budget.interrupt_flag().store(true, Ordering::Relaxed);
            }
            std::thread::park_timeout(CHECK_INTERVAL);
        }
    };
    std::thread::scope(|scope| {
        let _watch =
            WatcherGuard { done: &done, watcher: scope.spawn(check_health).thread().clone() };
        work()
    })
}
