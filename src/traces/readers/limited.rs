//! Logs that end at a limit of the run, with an error of input and output.
//!
//! A reader may report that error as a damaged log, and go on with the trace in progress. So a sink
//! looks at the limit ([`Limited::stop`]) before it takes a trace.

use std::cell::RefCell;
use std::io::{BufRead, Read};
use std::rc::Rc;

use mu_base::{Budget, Stop};

/// Bytes of a log between two checks of the limits.
const CHECKED_BYTES: usize = 1 << 16;

/// A log that ends at a limit of the run.
pub struct Limited<B> {
    bytes: B,
    budget: Budget,
    stop: Rc<RefCell<Option<Stop>>>,
    /// Bytes that may be read before the limits are checked again.
    unchecked: usize,
}

impl<B: BufRead> Limited<B> {
    /// Creates a log within a budget.
    pub fn new(bytes: B, budget: Budget) -> Self {
        Self { bytes, budget, stop: Rc::default(), unchecked: 0 }
    }
    /// Returns the place of the limit that ended the log; it has `None` before.
    pub fn stop(&self) -> Rc<RefCell<Option<Stop>>> {
        self.stop.clone()
    }
}

impl<B: BufRead> Read for Limited<B> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let part = self.fill_buf()?;
        let length = part.len().min(into.len());
        into[..length].copy_from_slice(&part[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl<B: BufRead> BufRead for Limited<B> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.unchecked == 0 {
            if let Err(stop) = self.budget.check(0).and_then(|()| self.budget.check_memory()) {
                *self.stop.borrow_mut() = Some(stop);
                return Err(std::io::Error::other("a limit of the run"));
            }
            self.unchecked = CHECKED_BYTES;
        }
        self.bytes.fill_buf()
    }
    fn consume(&mut self, amount: usize) {
        self.unchecked = self.unchecked.saturating_sub(amount);
        self.bytes.consume(amount);
    }
}
