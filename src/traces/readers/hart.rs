//! State of a RISC-V hart, built from its retired instructions with their accesses: pairs of
//! load-reserved and store-conditional, annotations, fences.
//!
//! In: decoded instructions in program order with addresses and values. Out: operations. A
//! store-conditional that succeeds and the load-reserved directly before it are one update, at the
//! place of the load-reserved. Constant time and memory.

use crate::riscv::{Accesses, MemoryInstruction, Order};
use crate::trace::{Added, Fence, Kind, Mark, Operation, TraceBuilder};

/// Access of a retired instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// First byte.
    pub address: u64,
    /// Loaded value; `None` if it is not in the log.
    pub loaded: Option<u64>,
    /// Stored value; `None` if the instruction stores nothing, as a store-conditional that fails.
    pub stored: Option<u64>,
}

/// State of a hart.
#[derive(Debug, Default)]
pub struct Hart {
    thread: Option<u32>,
    /// The last access, if it is load-reserved: operation, address, size.
    reservation: Option<(Added, u64, u8)>,
}

/// Returns the lowest bytes of a value.
pub fn lowest(value: u64, size: u8) -> u64 {
    if size >= 8 { value } else { value & ((1 << (8 * u32::from(size))) - 1) }
}

fn mark(order: Order) -> Mark {
    let mut mark = Mark::PLAIN;
    if order.acquire {
        mark = mark.union(Mark::ACQUIRE);
    }
    if order.release {
        mark = mark.union(Mark::RELEASE);
    }
    mark
}

fn letters(accesses: Accesses) -> &'static str {
    match (accesses.loads, accesses.stores) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, true) => "w",
        (false, false) => "",
    }
}

impl Hart {
    /// Adds the operation of an instruction. `name`: the hart. A load of an unknown value (into
    /// `x0`) is omitted: it constrains nothing.
    ///
    /// # Errors
    /// The access does not belong to the instruction: a sentence about it.
    pub fn retire(
        &mut self,
        name: &str,
        instruction: MemoryInstruction,
        access: Option<Access>,
        line: u32,
        builder: &mut TraceBuilder,
    ) -> Result<(), String> {
        if let MemoryInstruction::Fence { before, after, tso } = instruction {
            let fence = Fence::between(letters(before), letters(after));
            let fence = if tso && fence == Fence::FULL { Fence::TSO } else { fence };
            if !fence.is_empty() {
                self.reservation = None;
                self.push(name, Operation::fence(fence, line), builder);
            }
            return Ok(());
        }
        let access = access.ok_or("the instruction accesses memory, but the log has no address")?;
        let needs = |value: Option<u64>, what: &str| {
            value.ok_or_else(|| {
                format!("the log does not have the value that the instruction {what}")
            })
        };
        let reservation = self.reservation.take();
        let (mut operation, size, order) = match instruction {
            MemoryInstruction::Load { size, acquire, .. } => {
                let Some(loaded) = access.loaded else { return Ok(()) };
                (Operation::load(0, loaded, line), size, Order { acquire, release: false })
            }
            MemoryInstruction::Store { size, release } => {
                let stored = needs(access.stored, "stores")?;
                (Operation::store(0, stored, line), size, Order { acquire: false, release })
            }
            MemoryInstruction::LoadReserved { size, order, .. } => {
                let loaded = needs(access.loaded, "loads")?;
                (Operation::load(0, loaded, line), size, order)
            }
            MemoryInstruction::StoreConditional { size, order, .. } => {
                let Some(stored) = access.stored else { return Ok(()) };
                let Some((load, ..)) = reservation.filter(|r| (r.1, r.2) == (access.address, size))
                else {
                    return Err("a store-conditional succeeds, but no load-reserved of its address and size is the access before it".into());
                };
                builder.change(load, |operation| {
                    operation.kind = Kind::Update;
                    operation.stored = lowest(stored, size);
                    operation.mark = Mark::pair(operation.mark, mark(order));
                });
                return Ok(());
            }
            MemoryInstruction::Update { size, order, .. } => {
                let (loaded, stored) =
                    (needs(access.loaded, "loads")?, needs(access.stored, "stores")?);
                (Operation::update(0, loaded, stored, line), size, order)
            }
            MemoryInstruction::Fence { .. } => return Ok(()),
        };
        operation.location = builder.address(access.address);
        operation.loaded = lowest(operation.loaded, size);
        operation.stored = lowest(operation.stored, size);
        operation.size = size;
        operation.mark = mark(order);
        let added = self.push(name, operation, builder);
        if matches!(instruction, MemoryInstruction::LoadReserved { .. }) {
            self.reservation = Some((added, access.address, size));
        }
        Ok(())
    }
    fn push(&mut self, name: &str, operation: Operation, builder: &mut TraceBuilder) -> Added {
        let thread = *self.thread.get_or_insert_with(|| builder.thread(name));
        builder.push(thread, operation)
    }
}
