//! Window over the operations of a thread that are not complete yet: values arrive later than the
//! place in program order.
//!
//! In: places in program order, then their operations in any order. Out: operations in program
//! order, to a [`TraceBuilder`]. Memory: the operations from the oldest incomplete one on.
//! Amortised constant time per operation.

use crate::trace::{Operation, TraceBuilder};
use std::collections::VecDeque;

/// Place in the program order of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProgramPosition(u64);

/// Doubt about a store-conditional that succeeds.
#[derive(Clone, Debug)]
pub enum Doubt {
    /// Its reservation is not determined: the reason.
    Open(String),
    /// It has no reservation: the reason.
    Impossible(String),
}

#[derive(Clone, Debug)]
enum Slot {
    Open,
    Complete(Operation),
    Doubtful(Operation, Doubt),
    Omitted,
}

/// The window of one thread.
#[derive(Debug, Default)]
pub struct Window {
    /// Number of operations before the window.
    before: u64,
    slots: VecDeque<Slot>,
}

impl Window {
    /// Reserves the next place in program order.
    pub fn open(&mut self) -> ProgramPosition {
        self.slots.push_back(Slot::Open);
        ProgramPosition(self.before + self.slots.len() as u64 - 1)
    }
    /// Sets the operation of a place, and moves all complete operations at the front to the trace.
    pub fn complete(
        &mut self,
        place: ProgramPosition,
        operation: Operation,
        (builder, thread): (&mut TraceBuilder, u32),
    ) {
        self.set(place, Slot::Complete(operation));
        self.advance(builder, thread);
    }
    /// Sets the store-conditional of a place, as [`Window::complete`], with a doubt about it.
    pub fn complete_in_doubt(
        &mut self,
        place: ProgramPosition,
        (operation, doubt): (Operation, Doubt),
        (builder, thread): (&mut TraceBuilder, u32),
    ) {
        self.set(place, Slot::Doubtful(operation, doubt));
        self.advance(builder, thread);
    }
    /// Omits a place.
    pub fn omit(&mut self, place: ProgramPosition, (builder, thread): (&mut TraceBuilder, u32)) {
        self.set(place, Slot::Omitted);
        self.advance(builder, thread);
    }
    fn set(&mut self, place: ProgramPosition, slot: Slot) {
        if let Some(old) =
            place.0.checked_sub(self.before).and_then(|i| self.slots.get_mut(i as usize))
        {
            *old = slot;
        }
    }
    fn advance(&mut self, builder: &mut TraceBuilder, thread: u32) {
        while let Some(slot) = self.slots.front() {
            match slot {
                Slot::Open => return,
                Slot::Complete(operation) => {
                    builder.push(thread, *operation);
                }
                Slot::Doubtful(operation, doubt) => {
                    let added = builder.push(thread, *operation);
                    match doubt.clone() {
                        Doubt::Open(reason) => builder.open_conditional(added, reason),
                        Doubt::Impossible(reason) => builder.impossible(added, reason),
                    }
                }
                Slot::Omitted => {}
            }
            self.slots.pop_front();
            self.before += 1;
        }
    }
}
