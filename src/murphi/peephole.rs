//! Removal of instructions that repeat what is known, in the code of one unit.
//!
//! In: the code of a unit with the positions of its labels. Out: the same code without checks of
//! values that are defined, reads of fields that a register already has, and jumps to the next
//! instruction. Facts hold from an instruction to the next and are dropped where a jump arrives, so
//! one pass is enough. Invariant: a run reads, writes and fails as before. Cost: linear in the code
//! for the few fields that are known at a time.

use crate::code::{Bits, Op, Reg, Site, Table};

/// Most fields that are known at a time.
const KNOWN: usize = 32;

/// Facts at an instruction.
#[derive(Default)]
struct Facts {
    /// Registers with a value, one bit each.
    defined: [u64; 4],
    /// Fields with a value.
    fields: Vec<Bits>,
    /// Registers with the result of a read of a field.
    held: Vec<(Reg, Bits, Op)>,
}

impl Facts {
    fn clear(&mut self) {
        *self = Facts::default();
    }
    fn is_defined(&self, reg: Reg) -> bool {
        self.defined[reg as usize / 64] >> (reg % 64) & 1 == 1
    }
    /// Records that a register gets a new content.
    fn set(&mut self, reg: Reg, defined: bool) {
        self.held.retain(|h| h.0 != reg);
        let (word, bit) = (&mut self.defined[reg as usize / 64], 1u64 << (reg % 64));
        *word = if defined { *word | bit } else { *word & !bit };
    }
    fn has_value(&self, field: Bits) -> bool {
        self.fields.contains(&field)
    }
    fn add_field(&mut self, field: Bits) {
        if !self.has_value(field) {
            if self.fields.len() == KNOWN {
                self.fields.remove(0);
            }
            self.fields.push(field);
        }
    }
    /// Records that a field gets a new content.
    fn write(&mut self, field: Bits, defined: bool) {
        self.fields.retain(|f| !overlap(*f, field));
        self.held.retain(|h| !overlap(h.1, field));
        if defined {
            self.add_field(field);
        }
    }
    /// Records that any part of the memory may change.
    fn write_all(&mut self) {
        self.fields.clear();
        self.held.clear();
    }
    fn hold(&mut self, reg: Reg, field: Bits, op: Op) {
        if self.held.len() == KNOWN {
            self.held.remove(0);
        }
        self.held.push((reg, field, op));
    }
    fn holds(&self, op: &Op) -> bool {
        self.held.iter().any(|h| h.2 == *op)
    }
    /// Adds the facts behind an instruction. True if it has no effect.
    fn visit(&mut self, op: &mut Op) -> bool {
        match *op {
            Op::Defined { a } => {
                let known = self.is_defined(a);
                self.defined[a as usize / 64] |= 1 << (a % 64);
                return known;
            }
            Op::Load { d, from, .. } | Op::Peek { d, from, .. } => {
                let is_load = matches!(op, Op::Load { .. });
                if self.holds(op) {
                    return true;
                }
                let defined = is_load || self.has_value(from);
                self.set(d, defined);
                if is_load {
                    self.add_field(from);
                }
                self.hold(d, from, *op);
            }
            Op::Raw { d, from } => {
                if self.holds(op) {
                    return true;
                }
                self.set(d, true);
                self.hold(d, from, *op);
            }
            Op::LoadIndex { d, from, count, .. } => {
                // The offset of a single element is not used.
                if self.holds(op) || count == 1 && self.has_value(from) {
                    return true;
                }
                self.set(d, true);
                self.add_field(from);
                self.hold(d, from, *op);
            }
            Op::JumpField { from, .. } | Op::JumpOther { from, .. } => self.add_field(from),
            Op::Store { to, .. } => self.write(to, true),
            Op::StoreMaybe { a, to, bias } => {
                let defined = self.is_defined(a);
                if defined {
                    *op = Op::Store { a, to, bias };
                }
                self.write(to, defined);
            }
            Op::SetRaw { to, raw } => self.write(to, raw != 0),
            Op::Put { to, .. } => self.write(to, false),
            Op::Copy { from, to } => {
                let defined = self.has_value(from);
                self.write(to, defined);
            }
            Op::StoreAt { .. }
            | Op::StoreMaybeAt { .. }
            | Op::PutAt { .. }
            | Op::SetRawAt { .. }
            | Op::CopyBits { .. }
            | Op::ZeroBits { .. }
            | Op::MultisetAdd { .. }
            | Op::MultisetRemove { .. } => self.write_all(),
            Op::Move { d, a } => {
                let defined = self.is_defined(a);
                self.set(d, defined);
            }
            Op::Const { d, value } => self.set(d, value != crate::code::UNDEFINED),
            Op::PeekAt { d, .. } => self.set(d, false),
            Op::LoadAt { d, .. }
            | Op::LoadSpan { d, .. }
            | Op::RawAt { d, .. }
            | Op::EqualBits { d, .. }
            | Op::Add { d, .. }
            | Op::AddConst { d, .. }
            | Op::Arithmetic { d, .. }
            | Op::Complement { d, .. }
            | Op::Not { d, .. }
            | Op::Compare { d, .. }
            | Op::Index { d, .. }
            | Op::IsMember { d, .. }
            | Op::Count { d, .. } => self.set(d, true),
            // The operands may be no values.
            Op::Offset { d, .. } | Op::AddOffset { d, .. } => self.set(d, false),
            Op::Within { .. }
            | Op::Member { .. }
            | Op::JumpIf { .. }
            | Op::JumpUnless { .. }
            | Op::JumpCompare { .. }
            | Op::JumpEqual { .. }
            | Op::JumpDiffer { .. }
            | Op::JumpBelow { .. }
            | Op::JumpAbove { .. }
            | Op::Cover { .. } => {}
            Op::Jump { .. }
            | Op::Loop { .. }
            | Op::Switch { .. }
            | Op::Call { .. }
            | Op::Return
            | Op::No
            | Op::Yes
            | Op::Done
            | Op::Discard
            | Op::Fail => self.clear(),
        }
        false
    }
}

/// True if two fields share a bit.
fn overlap(a: Bits, b: Bits) -> bool {
    let (first, last) = if a.shift < b.shift { (a, b) } else { (b, a) };
    a.word == b.word && first.shift + first.width > last.shift
}

/// Removes instructions from `start` on that have no effect. `labels`: positions, which jumps and
/// the tables from `first_table` on refer to by number; they are moved with their instructions.
pub(crate) fn shorten(
    code: &mut Vec<Op>,
    start: usize,
    labels: &mut [u32],
    sites: &mut Vec<(u32, Site)>,
    tables: &[Table],
) {
    let mut targets = vec![false; code.len() - start + 1];
    let mut mark = |label: u32| {
        if let Some(at) = (labels[label as usize] as usize).checked_sub(start) {
            targets[at] = true;
        }
    };
    code[start..].iter().filter_map(|op| op.target()).for_each(&mut mark);
    for table in tables {
        table.targets.iter().chain([&table.otherwise]).for_each(|l| mark(*l));
    }
    let mut facts = Facts::default();
    let mut places = Vec::with_capacity(targets.len());
    let mut kept = start;
    for at in start..code.len() {
        places.push(kept as u32);
        if targets[at - start] {
            facts.clear();
        }
        let mut op = code[at];
        let is_next = matches!(op, Op::Jump { to } if labels[to as usize] as usize == at + 1);
        if facts.visit(&mut op) || is_next {
            continue;
        }
        code[kept] = op;
        kept += 1;
    }
    places.push(kept as u32);
    let removed = |at: usize| places[at - start] == places[at - start + 1];
    sites.retain_mut(|(at, _)| {
        let old = *at as usize;
        if old < start {
            return true;
        }
        *at = places[old - start];
        !removed(old)
    });
    code.truncate(kept);
    for label in labels {
        if let Some(place) = (*label as usize).checked_sub(start).and_then(|at| places.get(at)) {
            *label = *place;
        }
    }
}
