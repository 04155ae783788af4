//! Partial store order (SPARC V9): a queue for each cell. A store fence orders all stores before it
//! before all stores after it.
//!
//! The queues are represented as one list: between two marks, the stores are sorted by cell. A
//! store may move to memory if no mark and no store to the same cell is before it.

use super::{BufferEntry, MemoryModel};

/// The model.
#[derive(Debug)]
pub(super) struct PartialStoreOrder;

impl MemoryModel for PartialStoreOrder {
    fn name(&self) -> &'static str {
        "pso"
    }
    fn marks_store_fences(&self) -> bool {
        true
    }
    fn ready(&self, buffer: &[BufferEntry], visit: &mut dyn FnMut(usize)) {
        for (i, e) in buffer.iter().enumerate() {
            if *e == BufferEntry::Mark {
                return;
            }
            if !buffer[..i].iter().any(|o| o.cell() == e.cell()) {
                visit(i);
            }
        }
    }
    fn normalise(&self, buffer: &mut Vec<BufferEntry>) {
        // A mark at the front, or directly after another mark, has no effect.
        let mut last = BufferEntry::Mark;
        buffer.retain(|e| {
            let keep = *e != BufferEntry::Mark || last != BufferEntry::Mark;
            last = *e;
            keep
        });
        for part in buffer.split_mut(|e| *e == BufferEntry::Mark) {
            part.sort_by_key(|e| e.cell());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keep_stores_apart() {
        let e = |cell, value| BufferEntry::Store { cell, value };
        let mark = BufferEntry::Mark;
        let mut buffer = vec![mark, e(2, 1), e(1, 1), e(2, 0), mark, mark, e(0, 5)];
        PartialStoreOrder.normalise(&mut buffer);
        assert_eq!(buffer, [e(1, 1), e(2, 1), e(2, 0), mark, e(0, 5)]);
        let mut ready = Vec::new();
        PartialStoreOrder.ready(&buffer, &mut |i| ready.push(i));
        assert_eq!(ready, [0, 1]);
    }
}
