//! The operation cache: direct-mapped and lossy, 16 bytes an entry. A key is an operation with up to two operands.
//!
//! Losing an entry costs time only, but much of it where the result was dear: so the cache doubles, up to a bound, when it has lost as many
//! entries as it has places.

use super::Ldd;
use super::table::{Marks, mix};

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    op: u32,
    a: u32,
    b: u32,
    result: u32,
}

#[derive(Debug)]
pub(super) struct Cache {
    entries: Vec<Entry>,
    shift: u32,
    lost: usize,
}

impl Cache {
    pub fn new(bits: u32) -> Self {
        Self { entries: vec![Entry::default(); 1 << bits], shift: 64 - bits, lost: 0 }
    }
    pub fn bytes(&self) -> u64 {
        (self.entries.len() * size_of::<Entry>()) as u64
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    #[inline]
    fn place(&self, op: u32, a: Ldd, b: Ldd) -> usize {
        (mix(u64::from(a.0) << 32 | u64::from(b.0), u64::from(op) << 24 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }
    /// The result stored for an operation (`op` is not 0).
    #[inline]
    pub fn get(&self, op: u32, a: Ldd, b: Ldd) -> Option<Ldd> {
        let e = &self.entries[self.place(op, a, b)];
        (e.op == op && e.a == a.0 && e.b == b.0).then_some(Ldd(e.result))
    }
    #[inline]
    pub fn put(&mut self, op: u32, a: Ldd, b: Ldd, result: Ldd) {
        let at = self.place(op, a, b);
        let e = &mut self.entries[at];
        self.lost += usize::from(e.op != 0);
        *e = Entry { op, a: a.0, b: b.0, result: result.0 };
    }
    /// Whether it has lost so much that it should grow.
    #[inline]
    pub fn crowded(&self) -> bool {
        self.lost > self.entries.len()
    }
    /// Starts counting losses afresh.
    pub fn bear(&mut self) {
        self.lost = 0;
    }
    /// Doubles the size, keeping what is there.
    pub fn grow(&mut self) {
        let bits = self.entries.len().trailing_zeros() + 1;
        let old = std::mem::replace(self, Self::new(bits));
        for e in old.entries.into_iter().filter(|e| e.op != 0) {
            self.put(e.op, Ldd(e.a), Ldd(e.b), Ldd(e.result));
        }
        self.lost = 0;
    }
    /// Forgets entries that name a dead node.
    pub fn sweep(&mut self, marks: &Marks) {
        for e in &mut self.entries {
            if e.op != 0 && !(marks.get(e.a) && marks.get(e.b) && marks.get(e.result)) {
                *e = Entry::default();
            }
        }
    }
}
