//! Parts of the state that code may read and write, from the code itself.
//!
//! Places in memory are constants or registers with offsets. The possible offsets of a register are
//! an interval: a constant, the elements of an array, or a sum of these. Code computes an offset
//! before its use in the order of the instructions, so one pass over the reachable instructions
//! finds the intervals. A called function may read and write everything. Invariant: the result
//! contains every bit that any run reads or writes. Cost: linear in the code, with a sort.

use crate::code::{Bits, Op, Program, Reg};

/// Intervals of bits of the state, first and one past the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Bits that may be read.
    pub reads: Vec<(u32, u32)>,
    /// Bits that may be written.
    pub writes: Vec<(u32, u32)>,
    /// True if the code may discard its result (`assume`).
    pub discards: bool,
}

/// Possible offsets of a register; `None` if unknown.
type Offsets = Option<(i64, i64)>;

struct Scan<'p> {
    program: &'p Program,
    registers: Vec<Offsets>,
    found: Footprint,
}

/// Returns the footprint of the code that is entered at an instruction.
pub fn footprint(program: &Program, entry: u32) -> Footprint {
    let mut reached = reachable(program, entry);
    reached.sort_unstable();
    let mut scan = Scan { program, registers: vec![None; 256], found: Footprint::default() };
    reached.iter().for_each(|at| scan.visit(program.code[*at as usize]));
    let end = program.layout.state_bits;
    for list in [&mut scan.found.reads, &mut scan.found.writes] {
        list.retain(|r| r.0 < end);
        list.iter_mut().for_each(|r| r.1 = r.1.min(end));
        list.sort_unstable();
        list.dedup();
    }
    scan.found
}

/// True if the code that is entered at an instruction, or a function that it calls, has an
/// `assume`. An over-approximation: each call may be one of each function.
pub(crate) fn has_assumption(program: &Program, entry: u32) -> bool {
    let code = |at: u32| reachable(program, at).into_iter().map(|at| program.code[at as usize]);
    let discards = |at: u32| code(at).any(|op| matches!(op, Op::Discard));
    let calls = code(entry).any(|op| matches!(op, Op::Call { .. }));
    discards(entry) || calls && program.entries.iter().any(|at| *at != u32::MAX && discards(*at))
}

fn reachable(program: &Program, entry: u32) -> Vec<u32> {
    let mut seen = ahash::AHashSet::from([entry]);
    let mut open = vec![entry];
    while let Some(at) = open.pop() {
        let mut next = Vec::new();
        let op = program.code[at as usize];
        next.extend(op.target());
        match op {
            Op::Switch { table, .. } => {
                let table = &program.tables[table as usize];
                next.extend(table.targets.iter().chain([&table.otherwise]));
            }
            Op::Jump { .. } | Op::Loop { .. } => {}
            Op::No | Op::Yes | Op::Done | Op::Discard | Op::Fail | Op::Return => {}
            _ => next.push(at + 1),
        }
        open.extend(next.into_iter().filter(|n| seen.insert(*n)));
    }
    seen.into_iter().collect()
}

impl Scan<'_> {
    fn visit(&mut self, op: Op) {
        match op {
            Op::Const { d, value } => self.set(d, Some((value, value))),
            Op::Move { d, a } => self.set(d, self.registers[a as usize]),
            Op::Index { d, count, stride, .. } => {
                let last = i64::from(count.saturating_sub(1)) * i64::from(stride);
                self.set(d, Some((0, last)));
            }
            Op::LoadIndex { d, from, stride, count, .. } => {
                self.reads(from);
                let last = i64::from(count.saturating_sub(1)) * i64::from(stride);
                self.set(d, Some((0, last)));
            }
            Op::LoadSpan { d, width, offset, .. } => {
                self.found.reads.push((offset, offset + u32::from(width)));
                self.set(d, None);
            }
            Op::SetRawAt { at, width, offset, .. } => {
                self.at(at, offset, u32::from(width), true);
            }
            Op::Count { d, at, offset, multiset } => {
                let shape = self.program.multisets[multiset as usize];
                let bits = shape.capacity * shape.stride;
                match at {
                    Some(at) => self.at(at, offset, bits, false),
                    None => self.found.reads.push((offset, offset + bits)),
                }
                self.set(d, None);
            }
            Op::Offset { d, a, value } => {
                let sum = self.registers[a as usize].and_then(|(low, high)| {
                    Some((low.checked_add(value)?, high.checked_add(value)?))
                });
                self.set(d, sum);
            }
            Op::AddOffset { d, a, b } => {
                let sum = match (self.registers[a as usize], self.registers[b as usize]) {
                    (Some(x), Some(y)) => x.0.checked_add(y.0).zip(x.1.checked_add(y.1)),
                    _ => None,
                };
                self.set(d, sum);
            }
            Op::Load { d, from, .. } | Op::Peek { d, from, .. } | Op::Raw { d, from } => {
                self.reads(from);
                self.set(d, None);
            }
            Op::JumpField { from, .. } | Op::JumpOther { from, .. } => self.reads(from),
            Op::LoadAt { d, at, width, offset, .. }
            | Op::PeekAt { d, at, width, offset, .. }
            | Op::RawAt { d, at, width, offset } => {
                self.at(at, offset, u32::from(width), false);
                self.set(d, None);
            }
            Op::Store { to, .. }
            | Op::StoreMaybe { to, .. }
            | Op::SetRaw { to, .. }
            | Op::Put { to, .. } => self.writes(to),
            Op::StoreAt { at, width, offset, .. }
            | Op::StoreMaybeAt { at, width, offset, .. }
            | Op::PutAt { at, width, offset, .. } => {
                self.at(at, offset, u32::from(width), true);
            }
            Op::Copy { from, to } => {
                self.reads(from);
                self.writes(to);
            }
            Op::CopyBits { to, from, bits } => {
                self.at(from, 0, bits, false);
                self.at(to, 0, bits, true);
            }
            Op::ZeroBits { at, bits } => self.at(at, 0, bits, true),
            Op::EqualBits { d, a, b, bits } => {
                self.at(a, 0, bits, false);
                self.at(b, 0, bits, false);
                self.set(d, None);
            }
            Op::MultisetAdd { at, from, multiset } => {
                let shape = self.program.multisets[multiset as usize];
                self.at(from, 0, shape.stride - 1, false);
                self.whole(at, shape.capacity * shape.stride);
            }
            Op::MultisetRemove { at, multiset, .. } => {
                let shape = self.program.multisets[multiset as usize];
                self.whole(at, shape.capacity * shape.stride);
            }
            Op::Call { .. } => {
                let all = (0, self.program.layout.state_bits);
                self.found.reads.push(all);
                self.found.writes.push(all);
                self.found.discards = true;
                self.registers.fill(None);
            }
            Op::Discard => self.found.discards = true,
            Op::Add { d, .. }
            | Op::AddConst { d, .. }
            | Op::Arithmetic { d, .. }
            | Op::Complement { d, .. }
            | Op::Not { d, .. }
            | Op::Compare { d, .. }
            | Op::IsMember { d, .. } => self.set(d, None),
            Op::Defined { .. }
            | Op::Within { .. }
            | Op::Member { .. }
            | Op::Jump { .. }
            | Op::Loop { .. }
            | Op::JumpIf { .. }
            | Op::JumpUnless { .. }
            | Op::JumpCompare { .. }
            | Op::JumpEqual { .. }
            | Op::JumpDiffer { .. }
            | Op::JumpBelow { .. }
            | Op::JumpAbove { .. }
            | Op::Switch { .. }
            | Op::Return
            | Op::Cover { .. }
            | Op::No
            | Op::Yes
            | Op::Done
            | Op::Fail => {}
        }
    }
    fn set(&mut self, d: Reg, offsets: Offsets) {
        self.registers[d as usize] = offsets;
    }
    fn reads(&mut self, field: Bits) {
        self.found.reads.push(interval(field));
    }
    fn writes(&mut self, field: Bits) {
        self.found.writes.push(interval(field));
    }
    fn at(&mut self, at: Reg, offset: u32, bits: u32, writes: bool) {
        let interval = match self.registers[at as usize] {
            Some((low, high)) => {
                let end = high.saturating_add(i64::from(offset) + i64::from(bits));
                let place = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
                (place(low.saturating_add(i64::from(offset))), place(end))
            }
            None => (0, self.program.layout.state_bits),
        };
        if writes {
            self.found.writes.push(interval);
        } else {
            self.found.reads.push(interval);
        }
    }
    /// Reads and writes bits.
    fn whole(&mut self, at: Reg, bits: u32) {
        self.at(at, 0, bits, false);
        self.at(at, 0, bits, true);
    }
}

fn interval(field: Bits) -> (u32, u32) {
    let first = u32::from(field.word) * 64 + u32::from(field.shift);
    (first, first + u32::from(field.width))
}
