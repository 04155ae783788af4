//! State of a RISC-V hart, built from its retired instructions with their accesses: pairs of
//! load-reserved and store-conditional, annotations, fences.
//!
//! In: decoded instructions in program order with addresses and values. Out: operations. A
//! store-conditional that succeeds and the load-reserved directly before it are one update, at the
//! place of the load-reserved. With other accesses or fences between them they are a load and a
//! store, noted as a pair. A store-conditional without a load-reserved since the one before it is
//! noted as impossible; nothing is an error of the log that a faulty processor may do. Constant
//! time and memory.

use crate::riscv::{AcquireRelease, AtomicOperation, FenceAccesses, MemoryInstruction};
use crate::trace::{Annotations, Fence, Operation, OperationIndex, OperationKind, TraceBuilder};

/// Access of a retired instruction.
#[derive(Clone, Copy, Debug)]
pub struct HartAccess {
    /// First byte.
    pub address: u64,
    /// Loaded value; `None` if it is not in the log.
    pub loaded: Option<u64>,
    /// Stored value; `None` if the instruction stores nothing, as a store-conditional that fails.
    pub stored: Option<u64>,
}

/// Reservation of a hart.
#[derive(Clone, Copy, Debug, Default)]
enum Reservation {
    /// The log has neither a load-reserved nor a store-conditional of the hart so far.
    #[default]
    Unknown,
    /// That of the last load-reserved.
    Held {
        load: OperationIndex,
        address: u64,
        size: u8,
        line: u32,
        /// True if no other operation follows the load-reserved.
        adjacent: bool,
    },
    /// A store-conditional, in this line, ended it.
    Ended(u32),
}

/// State of a hart.
#[derive(Debug, Default)]
pub struct Hart {
    thread: Option<u32>,
    reservation: Reservation,
    /// Operand of the next update, if the log has it.
    operand: Option<u64>,
}

/// Returns the lowest bytes of a value.
pub fn lowest(value: u64, size: u8) -> u64 {
    if size >= 8 { value } else { value & ((1 << (8 * u32::from(size))) - 1) }
}

fn mark(order: AcquireRelease) -> Annotations {
    let mut mark = Annotations::PLAIN;
    if order.acquire {
        mark = mark.union(Annotations::ACQUIRE);
    }
    if order.release {
        mark = mark.union(Annotations::RELEASE);
    }
    mark
}

fn letters(accesses: FenceAccesses) -> &'static str {
    match (accesses.loads, accesses.stores) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, true) => "w",
        (false, false) => "",
    }
}

impl Hart {
    /// Sets the value of the operand register of the next update.
    pub fn set_operand(&mut self, operand: Option<u64>) {
        self.operand = operand;
    }
    /// Adds the operation of an instruction. `name`: the hart. A loaded value that is not in the
    /// log (that of a load into `x0`) stays open.
    ///
    /// # Errors
    /// The access does not belong to the instruction: a sentence about it.
    pub fn retire(
        &mut self,
        name: &str,
        instruction: MemoryInstruction,
        access: Option<HartAccess>,
        line: u32,
        builder: &mut TraceBuilder,
    ) -> Result<(), String> {
        if let MemoryInstruction::Fence { before, after, tso } = instruction {
            let fence = Fence::between(letters(before), letters(after));
            let fence = if tso && fence == Fence::FULL { Fence::TSO } else { fence };
            if !fence.is_empty() {
                self.push(name, Operation::fence(fence, line), builder);
            }
            return Ok(());
        }
        let access = access.ok_or("the instruction accesses memory, but the log has no address")?;
        let needs = |value: Option<u64>| {
            value.ok_or("the log does not have the value that the instruction stores")
        };
        let operand = self.operand.take();
        let mut rule = None;
        let mut is_atomic_load = false;
        let loaded = access.loaded.unwrap_or(0);
        let (mut operation, size, order) = match instruction {
            MemoryInstruction::Load { size, order, .. } => {
                (Operation::load(0, loaded, line), size, order)
            }
            MemoryInstruction::Store { size, order } => {
                (Operation::store(0, needs(access.stored)?, line), size, order)
            }
            MemoryInstruction::LoadReserved { size, order, .. } => {
                is_atomic_load = true;
                (Operation::load(0, loaded, line), size, order)
            }
            MemoryInstruction::StoreConditional { size, order, .. } => {
                let before = std::mem::replace(&mut self.reservation, Reservation::Ended(line));
                let Some(stored) = access.stored else { return Ok(()) };
                let mut store = Operation::store(0, lowest(stored, size), line);
                store.location = builder.address(access.address);
                (store.size, store.mark) = (size, mark(order));
                self.conditional(name, before, (access.address, store), builder);
                return Ok(());
            }
            // A comparison that fails stores nothing, and does not release.
            MemoryInstruction::Update {
                operation: AtomicOperation::CompareAndSwap,
                size,
                order,
                ..
            } if access.stored.is_none() => {
                is_atomic_load = true;
                let order = AcquireRelease { release: false, ..order };
                (Operation::load(0, loaded, line), size, order)
            }
            MemoryInstruction::Update { operation, size, order, .. } => {
                rule = Some((operation, operand));
                (Operation::update(0, loaded, needs(access.stored)?, line), size, order)
            }
            MemoryInstruction::Fence { .. } => return Ok(()),
        };
        operation.location = builder.address(access.address);
        operation.loaded = lowest(operation.loaded, size);
        operation.stored = lowest(operation.stored, size);
        operation.size = size;
        operation.mark = mark(order);
        if is_atomic_load {
            operation.mark = Annotations::atomic_load(operation.mark);
        }
        let added = self.push(name, operation, builder);
        if operation.kind.loads() && access.loaded.is_none() {
            builder.open_value(added, rule);
        }
        if matches!(instruction, MemoryInstruction::LoadReserved { .. }) {
            let address = access.address;
            self.reservation =
                Reservation::Held { load: added, address, size, line, adjacent: true };
        }
        Ok(())
    }
    /// Adds a store-conditional that succeeds. `before`: the reservation.
    fn conditional(
        &mut self,
        name: &str,
        before: Reservation,
        (at, store): (u64, Operation),
        builder: &mut TraceBuilder,
    ) {
        let line = store.line;
        if let Reservation::Held { load, address, size, adjacent: true, .. } = before
            && (address, size) == (at, store.size)
        {
            builder.change(load, |operation| {
                operation.kind = OperationKind::Update;
                operation.stored = store.stored;
                operation.mark = Annotations::pair(operation.mark, store.mark);
            });
            return;
        }
        let store = Operation { mark: Annotations::atomic_store(store.mark), ..store };
        let added = self.push(name, store, builder);
        match before {
            Reservation::Held { load, address, size, .. } if (address, size) == (at, store.size) => {
                builder.open_pair(load, added);
            }
            Reservation::Held { line: load, .. } => builder.open_conditional(
                added,
                format!("the store-conditional of line {line} has another address or size than the load-reserved of line {load}"),
            ),
            Reservation::Unknown => builder.open_conditional(
                added,
                format!("the load-reserved of the store-conditional of line {line} is not in the log"),
            ),
            Reservation::Ended(last) => builder.impossible(
                added,
                format!("the store-conditional of line {line} succeeds without a load-reserved since the store-conditional of line {last}"),
            ),
        }
    }
    fn push(
        &mut self,
        name: &str,
        operation: Operation,
        builder: &mut TraceBuilder,
    ) -> OperationIndex {
        let thread = *self.thread.get_or_insert_with(|| builder.thread(name));
        if let Reservation::Held { adjacent, .. } = &mut self.reservation {
            *adjacent = false;
        }
        builder.push(thread, operation)
    }
}
