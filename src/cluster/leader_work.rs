//! What the first process does alone, while the others wait for what it says.
//!
//! In: work, such as a game that one process plays. Out: what the first process says, or why it
//! stopped, the same in all. Only the first one does the work; a process that waits sleeps and is
//! still to be missed when it is lost. Cost: a message to each process. Invariants: what a process
//! that is lost leaves behind is never an answer; the first one stops working soon after another
//! one is lost, since the run has ended then.

use super::control_messages::{Report, Why};
use super::dataflow::{Mail, NAP, reports};
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

/// Time between looks whether another process is lost.
const LOOK: Duration = Duration::from_millis(50);

/// What the first process said, or why it stopped; the memory of each process at most. `orderly`:
/// whether all have come to the end.
pub(super) fn first(
    worker: &mut Worker,
    health: &Health,
    (me, count): (usize, usize),
    budget: &Budget,
    work: Work<'_>,
    orderly: &mut bool,
) -> Result<(Result<Vec<u8>, Stop>, Vec<u64>), Diagnostic> {
    let ended = |stop| Ok((Err(stop), vec![0; count]));
    let mail: Rc<RefCell<Mail>> = Rc::default();
    reports(worker, &mail);
    let result = if me == 0 { watched(health, budget, work) } else { Ok(Vec::new()) };
    if health.lost().is_some() {
        return ended(Stop::Lost);
    }
    let (why, said) = match result {
        Ok(said) => (None, said),
        Err(error) => (Some(Why::from(error)), Vec::new()),
    };
    let (tally, memory) = (Tally::default(), peak_resident_bytes());
    mail.borrow_mut().send(
        me,
        0..count,
        &Report::Last { tally, memory, why, failed: Vec::new(), said, whole: true, hit: None },
    );
    mail.borrow_mut().close();
    let mut memories = vec![0; count];
    let mut heard = None;
    while worker.has_dataflows() {
        worker.step_or_park(Some(NAP));
        if health.lost().is_some() {
            return ended(Stop::Lost);
        }
        for parcel in std::mem::take(&mut mail.borrow_mut().arrived) {
            let from = parcel.from.map_or(usize::MAX, |from| from as usize);
            match (memories.get_mut(from), Report::read(&parcel.bytes)?) {
                (Some(most), Report::Last { why, said, memory, .. }) => {
                    *most = memory;
                    if from == 0 {
                        heard = Some((why, said));
                    }
                }
                _ => return Err(Diagnostic::internal("a report that nobody waits for")),
            }
        }
        // Limits are the first one's; an interrupt may come to any. The others are told that this
        // one is lost.
        if me > 0 && heard.is_none() && budget.check(0) == Err(Stop::Interrupted) {
            return ended(Stop::Interrupted);
        }
    }
    *orderly = true;
    match heard {
        Some((None, said)) => Ok((Ok(said), memories)),
        Some((Some(Why::Stopped(stop)), _)) => Ok((Err(stop), memories)),
        Some((Some(Why::Failed(error)), _)) => Err(*error),
        Some((Some(Why::Broken | Why::Decided), _)) | None => {
            Err(Diagnostic::internal("the first process has not said what it found"))
        }
    }
}

/// Ends the watch, however the work ends.
struct Watch<'a> {
    done: &'a AtomicBool,
    watcher: Thread,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.watcher.unpark();
    }
}

/// Does the work; if another process is lost meanwhile, it is interrupted.
fn watched(health: &Health, budget: &Budget, work: Work<'_>) -> Result<Vec<u8>, Diagnostic> {
    let done = AtomicBool::new(false);
    let look = || {
        while !done.load(Ordering::Relaxed) {
            if health.lost().is_some() {
                budget.interrupt_flag().store(true, Ordering::Relaxed);
            }
            std::thread::park_timeout(LOOK);
        }
    };
    std::thread::scope(|scope| {
        let _watch = Watch { done: &done, watcher: scope.spawn(look).thread().clone() };
        work()
    })
}
