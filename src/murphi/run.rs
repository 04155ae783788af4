//! Interpreter of register code.
//!
//! An [`Interpreter`] has the memory, with the state in its first words, and the windows of
//! registers. A run allocates nothing unless calls nest deeper than before. Every access is checked
//! by the language's own bounds, so a wrong program ends as an internal error of an index, not as a
//! wrong value.

use crate::code::{Arithmetic, Bits, MultisetShape, Op, Program, Relation, UNDEFINED, mask};
use crate::lower::BASE;
use crate::lower_expr::{shift_left, shift_right};

/// Registers of a window.
const WINDOW: usize = 256;
/// Deepest nesting of calls.
const DEPTH: usize = 4096;
/// Backward jumps between two polls of the limits.
const POLL: u32 = 1 << 20;

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The body is done.
    Done,
    /// The guard or condition is true.
    Yes,
    /// The guard or condition is false.
    No,
    /// An assumption is false: the rule counts as not enabled.
    Discarded,
    /// The instruction fails.
    Fault(u32),
    /// The poll of the limits ended the run.
    Stopped,
}

/// Observer of a run. It learns what the run depends on, and what it does to the memory; each
/// method is called before its effect. Places are offsets in bits.
pub(crate) trait Watch {
    /// The run depends on the content of a field of up to 64 bits.
    fn read(&mut self, memory: &[u64], at: usize, width: u8);
    /// The run depends on the equality of two sequences of bits.
    fn compare(&mut self, memory: &[u64], a: usize, b: usize, bits: usize);
    /// The run depends on the number of used slots of a multiset.
    fn count(&mut self, memory: &[u64], first: usize, shape: MultisetShape);
    /// A field of up to 64 bits gets a content.
    fn write(&mut self, at: usize, width: u8, raw: u64);
    /// Bits are copied between places that do not overlap or are equal.
    fn copy(&mut self, memory: &[u64], to: usize, from: usize, bits: usize);
    /// A claim `cover` is fulfilled.
    fn cover(&mut self, claim: u32);
    /// The run jumps backwards or calls. False to stop it.
    fn repeat(&mut self) -> bool;
}

/// No observer.
struct Blind;

impl Watch for Blind {
    #[inline(always)]
    fn read(&mut self, _: &[u64], _: usize, _: u8) {}
    #[inline(always)]
    fn compare(&mut self, _: &[u64], _: usize, _: usize, _: usize) {}
    #[inline(always)]
    fn count(&mut self, _: &[u64], _: usize, _: MultisetShape) {}
    #[inline(always)]
    fn write(&mut self, _: usize, _: u8, _: u64) {}
    #[inline(always)]
    fn copy(&mut self, _: &[u64], _: usize, _: usize, _: usize) {}
    #[inline(always)]
    fn cover(&mut self, _: u32) {}
    #[inline(always)]
    fn repeat(&mut self) -> bool {
        true
    }
}

/// Call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: u32,
    window: u32,
    stack: u32,
}

/// Memory and registers for one thread.
pub struct Interpreter<'p> {
    program: &'p Program,
    /// The state, then locals.
    pub memory: Vec<u64>,
    registers: Vec<i64>,
    calls: Vec<Pending>,
    /// Claims `cover` that were fulfilled, by number.
    pub covered: Vec<bool>,
    /// Returns true if the run must end.
    pub poll: Box<dyn FnMut() -> bool + 'p>,
    patience: u32,
}

impl<'p> Interpreter<'p> {
    /// Creates an interpreter. `claims`: number of claims in statements. `poll` is called once in a
    /// while in long loops.
    pub fn new(
        program: &'p Program,
        claims: usize,
        poll: impl FnMut() -> bool + 'p,
    ) -> Interpreter<'p> {
        Interpreter {
            program,
            memory: vec![0; program.memory + 1],
            registers: vec![0; WINDOW],
            calls: Vec::new(),
            covered: vec![false; claims],
            poll: Box::new(poll),
            patience: POLL,
        }
    }
    /// Evaluates assumptions in a state, which the memory has before. The first property decides
    /// that is false for some values of its parameters, or fails for some and is false for none:
    /// the order of the values has no influence.
    ///
    /// # Errors
    /// The instruction that fails.
    pub(crate) fn check_assumptions(
        &mut self,
        assumptions: impl Iterator<Item = u32>,
        state: &[u64],
    ) -> Result<bool, u32> {
        let mut failed: Option<(u32, u32)> = None;
        for at in assumptions {
            let property = &self.program.properties[at as usize];
            if let Some((_, pc)) = failed.filter(|(number, _)| *number != property.number) {
                return Err(pc);
            }
            match self.run(property.guard) {
                Ended::Yes => {}
                Ended::Fault(pc) => failed = failed.or(Some((property.number, pc))),
                _ => return Ok(false),
            }
            self.memory[..state.len()].copy_from_slice(state);
        }
        failed.map_or(Ok(true), |(_, pc)| Err(pc))
    }
    /// True if an `assume` in a function of an invariant discards a state, which the memory has
    /// before and after. As in Rumur, an invariant that is false or fails before, in the order of
    /// the text, is a violation instead. The order of the values of parameters has no influence.
    pub(crate) fn discards(&mut self, invariants: &[u32], state: &[u64]) -> bool {
        let mut broken: Option<u32> = None;
        for at in invariants {
            let property = &self.program.properties[*at as usize];
            if broken.is_some_and(|number| number != property.number) {
                return false;
            }
            let (number, ended) = (property.number, self.run(property.guard));
            self.memory[..state.len()].copy_from_slice(state);
            match ended {
                Ended::Yes => {}
                Ended::Discarded => return true,
                _ => broken = Some(number),
            }
        }
        false
    }
    /// Begins a call. Returns the first instruction, the window and the top of the stack. `None` if
    /// calls are nested too deeply.
    fn enter(
        &mut self,
        at: usize,
        window: usize,
        stack: u32,
        (function, up): (u32, u8),
    ) -> Option<(usize, usize, u32)> {
        if self.calls.len() >= DEPTH {
            return None;
        }
        let frame = self.program.frames[function as usize];
        self.calls.push(Pending { at: at as u32, window: window as u32, stack });
        let window = window + up as usize;
        if self.registers.len() < window + WINDOW {
            self.registers.resize(window + WINDOW, 0);
        }
        if frame > 0 {
            self.registers[window + BASE as usize] = i64::from(stack);
            let words = (stack + frame).div_ceil(64) as usize + 1;
            if self.memory.len() < words {
                self.memory.resize(words, 0);
            }
        }
        Some((self.program.entries[function as usize] as usize, window, stack + frame))
    }
    /// Runs code from an instruction on.
    pub fn run(&mut self, from: u32) -> Ended {
        self.run_watched(from, &mut Blind)
    }
    /// Runs code from an instruction on, and reports to an observer.
    pub(crate) fn run_watched<W: Watch>(&mut self, from: u32, watch: &mut W) -> Ended {
        let program = self.program;
        let code = &program.code[..];
        let mut pc = from as usize;
        let mut window = 0usize;
        let mut stack = program.memory as u32 * 64;
        self.calls.clear();
        'window: loop {
            let Some(registers) = self.registers[window..].first_chunk_mut::<WINDOW>() else {
                return Ended::Fault(pc as u32);
            };
            let memory = &mut self.memory[..];
            macro_rules! get {
                ($r:expr) => {
                    registers[$r as usize]
                };
            }
            macro_rules! jump {
                ($condition:expr, $to:expr) => {
                    if $condition {
                        pc = $to as usize;
                    }
                };
            }
            macro_rules! fail_if {
                ($condition:expr) => {
                    if $condition {
                        return Ended::Fault(pc as u32 - 1);
                    }
                };
            }
            loop {
                let op = code[pc];
                pc += 1;
                match op {
                    Op::Const { d, value } => get!(d) = value,
                    Op::Move { d, a } => get!(d) = get!(a),
                    Op::Load { d, from, bias } => {
                        let raw = read_field(watch, memory, from);
                        fail_if!(raw == 0);
                        get!(d) = (raw as i64).wrapping_add(i64::from(bias));
                    }
                    Op::Peek { d, from, bias } => {
                        get!(d) = decode(read_field(watch, memory, from), bias)
                    }
                    Op::Raw { d, from } => get!(d) = read_field(watch, memory, from) as i64,
                    Op::LoadAt { d, at, width, offset, bias } => {
                        let raw = read_field_at(watch, memory, place(get!(at), offset), width);
                        fail_if!(raw == 0);
                        get!(d) = (raw as i64).wrapping_add(i64::from(bias));
                    }
                    Op::PeekAt { d, at, width, offset, bias } => {
                        get!(d) = decode(
                            read_field_at(watch, memory, place(get!(at), offset), width),
                            bias,
                        );
                    }
                    Op::Store { a, to, bias } => {
                        set_field(watch, memory, to, get!(a).wrapping_sub(i64::from(bias)) as u64);
                    }
                    Op::SetRaw { to, raw } => set_field(watch, memory, to, u64::from(raw)),
                    Op::Defined { a } => fail_if!(get!(a) == UNDEFINED),
                    Op::LoadIndex { d, from, bias, stride, .. } => {
                        let raw = read_field(watch, memory, from);
                        fail_if!(raw == 0);
                        get!(d) = ((raw as i64).wrapping_add(i64::from(bias)))
                            .wrapping_mul(i64::from(stride));
                    }
                    Op::Jump { to } => pc = to as usize,
                    Op::Loop { to } => {
                        if !watch.repeat() {
                            return Ended::Stopped;
                        }
                        self.patience -= 1;
                        if self.patience == 0 {
                            self.patience = POLL;
                            if (self.poll)() {
                                return Ended::Stopped;
                            }
                        }
                        pc = to as usize;
                    }
                    Op::JumpIf { a, to } => jump!(get!(a) != 0, to),
                    Op::JumpUnless { a, to } => jump!(get!(a) == 0, to),
                    Op::JumpCompare { relation, a, b, to } => {
                        jump!(holds(relation, get!(a), get!(b)), to)
                    }
                    Op::JumpEqual { a, value, to } => jump!(get!(a) == i64::from(value), to),
                    Op::JumpDiffer { a, value, to } => jump!(get!(a) != i64::from(value), to),
                    Op::JumpBelow { a, value, to } => jump!(get!(a) < i64::from(value), to),
                    Op::JumpAbove { a, value, to } => jump!(get!(a) > i64::from(value), to),
                    Op::JumpField { from, raw, to } => {
                        let found = read_field(watch, memory, from);
                        fail_if!(found == 0);
                        jump!(found == u64::from(raw), to);
                    }
                    Op::JumpOther { from, raw, to } => {
                        let found = read_field(watch, memory, from);
                        fail_if!(found == 0);
                        jump!(found != u64::from(raw), to);
                    }
                    Op::Switch { a, table } => {
                        let table = &program.tables[table as usize];
                        let at = get!(a).wrapping_sub(table.low) as usize;
                        pc = *table.targets.get(at).unwrap_or(&table.otherwise) as usize;
                    }
                    Op::Call { function, window: up } => {
                        if !watch.repeat() {
                            return Ended::Stopped;
                        }
                        let Some(frame) = self.enter(pc, window, stack, (function, up)) else {
                            return Ended::Fault(pc as u32 - 1);
                        };
                        (pc, window, stack) = frame;
                        continue 'window;
                    }
                    Op::Return => {
                        let Some(back) = self.calls.pop() else { return Ended::Fault(pc as u32) };
                        (pc, window, stack) = (back.at as usize, back.window as usize, back.stack);
                        continue 'window;
                    }
                    Op::No => return Ended::No,
                    Op::Yes => return Ended::Yes,
                    Op::Done => return Ended::Done,
                    Op::Discard => return Ended::Discarded,
                    Op::Fail => return Ended::Fault(pc as u32 - 1),
                    other => {
                        let covered = &mut self.covered[..];
                        fail_if!(!rare(other, program, registers, (memory, covered), watch));
                    }
                }
            }
        }
    }
}

/// Reads a field and reports it.
#[inline(always)]
fn read_field<W: Watch>(watch: &mut W, memory: &[u64], field: Bits) -> u64 {
    watch.read(memory, field.offset(), field.width);
    field.get(memory)
}

/// Reads a field at an offset and reports it.
#[inline(always)]
fn read_field_at<W: Watch>(watch: &mut W, memory: &[u64], at: usize, width: u8) -> u64 {
    watch.read(memory, at, width);
    read(memory, at, width)
}

/// Writes a field and reports it.
#[inline(always)]
fn set_field<W: Watch>(watch: &mut W, memory: &mut [u64], field: Bits, raw: u64) {
    watch.write(field.offset(), field.width, raw);
    field.set(memory, raw);
}

/// Executes an instruction that is not frequent. False if it fails.
fn rare<W: Watch>(
    op: Op,
    program: &Program,
    registers: &mut [i64; WINDOW],
    (memory, covered): (&mut [u64], &mut [bool]),
    watch: &mut W,
) -> bool {
    macro_rules! get {
        ($r:expr) => {
            registers[$r as usize]
        };
    }
    macro_rules! set_at {
        ($at:expr, $width:expr, $raw:expr) => {{
            let (at, width, raw): (usize, u8, u64) = ($at, $width, $raw);
            watch.write(at, width, raw);
            write(memory, at, width, raw);
        }};
    }
    match op {
        Op::StoreMaybe { a, to, bias } => set_field(watch, memory, to, encode(get!(a), bias)),
        Op::Put { a, to } => set_field(watch, memory, to, get!(a) as u64),
        Op::Copy { from, to } => {
            watch.copy(memory, to.offset(), from.offset(), from.width as usize);
            to.set(memory, from.get(memory));
        }
        Op::Within { a, range } => {
            let (low, high) = program.ranges[range as usize];
            let value = get!(a);
            return (low..=high).contains(&value) || value == UNDEFINED;
        }
        Op::AddConst { d, a, value } => match get!(a).checked_add(value) {
            Some(sum) if sum != UNDEFINED => get!(d) = sum,
            _ => return false,
        },
        Op::Index { d, a, low, count, stride } => {
            let at = get!(a).wrapping_sub(i64::from(low)) as u64;
            if at >= u64::from(count) {
                return false;
            }
            get!(d) = (at * u64::from(stride)) as i64;
        }
        Op::RawAt { d, at, width, offset } => {
            get!(d) = read_field_at(watch, memory, place(get!(at), offset), width) as i64;
        }
        Op::SetRawAt { at, width, offset, raw } => {
            set_at!(place(get!(at), offset), width, u64::from(raw));
        }
        Op::LoadSpan { d, width, offset, bias } => {
            let raw = read_field_at(watch, memory, offset as usize, width);
            if raw == 0 {
                return false;
            }
            get!(d) = (raw as i64).wrapping_add(i64::from(bias));
        }
        Op::StoreAt { a, at, width, offset, bias } => {
            let raw = get!(a).wrapping_sub(i64::from(bias)) as u64;
            set_at!(place(get!(at), offset), width, raw);
        }
        Op::StoreMaybeAt { a, at, width, offset, bias } => {
            let raw = encode(get!(a), bias);
            set_at!(place(get!(at), offset), width, raw);
        }
        Op::PutAt { a, at, width, offset } => {
            set_at!(place(get!(at), offset), width, get!(a) as u64);
        }
        Op::CopyBits { to, from, bits } => {
            let (to, from) = (get!(to) as usize, get!(from) as usize);
            watch.copy(memory, to, from, bits as usize);
            copy(memory, to, from, bits as usize);
        }
        Op::ZeroBits { at, bits } => {
            zero(memory, get!(at) as usize, bits as usize, watch);
        }
        Op::EqualBits { d, a, b, bits } => {
            let (a, b) = (get!(a) as usize, get!(b) as usize);
            watch.compare(memory, a, b, bits as usize);
            get!(d) = i64::from(equal(memory, a, b, bits as usize));
        }
        Op::Add { d, a, b } => match get!(a).checked_add(get!(b)) {
            Some(sum) if sum != UNDEFINED => get!(d) = sum,
            _ => return false,
        },
        Op::Offset { d, a, value } => get!(d) = get!(a).wrapping_add(value),
        Op::AddOffset { d, a, b } => get!(d) = get!(a).wrapping_add(get!(b)),
        Op::Arithmetic { op, d, a, b } => match arithmetic(op, get!(a), get!(b)) {
            Some(value) if value != UNDEFINED => get!(d) = value,
            _ => return false,
        },
        Op::Complement { d, a } => match !get!(a) {
            UNDEFINED => return false,
            value => get!(d) = value,
        },
        Op::Not { d, a } => get!(d) = i64::from(get!(a) == 0),
        Op::Compare { relation, d, a, b } => {
            get!(d) = i64::from(holds(relation, get!(a), get!(b)));
        }
        Op::Member { a, union } => {
            let value = get!(a);
            if value != UNDEFINED && !is_in(&program.unions[union as usize], value) {
                return false;
            }
        }
        Op::IsMember { d, a, union } => {
            get!(d) = i64::from(is_in(&program.unions[union as usize], get!(a)));
        }
        Op::Cover { claim } => {
            watch.cover(claim);
            covered[claim as usize] = true;
        }
        other => return on_multiset(other, program, registers, memory, watch),
    }
    true
}

/// Executes an instruction on a multiset. False if it fails.
fn on_multiset<W: Watch>(
    op: Op,
    program: &Program,
    registers: &mut [i64; WINDOW],
    memory: &mut [u64],
    watch: &mut W,
) -> bool {
    macro_rules! get {
        ($r:expr) => {
            registers[$r as usize]
        };
    }
    match op {
        Op::Count { d, at, offset, multiset } => {
            let shape = program.multisets[multiset as usize];
            let first = place(at.map_or(0, |at| get!(at)), offset);
            watch.count(memory, first, shape);
            get!(d) = count(memory, first, shape) as i64;
        }
        Op::MultisetAdd { at, from, multiset } => {
            let shape = program.multisets[multiset as usize];
            let mut slot = get!(at) as usize;
            let mut left = shape.capacity;
            while left > 0 && read_field_at(watch, memory, slot, 1) != 0 {
                slot += shape.stride as usize;
                left -= 1;
            }
            if left == 0 {
                return false;
            }
            watch.write(slot, 1, 1);
            write(memory, slot, 1, 1);
            let from = get!(from) as usize;
            watch.copy(memory, slot + 1, from, shape.stride as usize - 1);
            copy(memory, slot + 1, from, shape.stride as usize - 1);
        }
        Op::MultisetRemove { at, a, multiset } => {
            let shape = program.multisets[multiset as usize];
            let slot = get!(a) as usize;
            if slot >= shape.capacity as usize {
                return false;
            }
            let at = get!(at) as usize + slot * shape.stride as usize;
            if read_field_at(watch, memory, at, 1) == 0 {
                return false;
            }
            zero(memory, at, shape.stride as usize, watch);
        }
        // All others are in the loop of the interpreter or in `rare`.
        _ => return false,
    }
    true
}

#[inline(always)]
fn decode(raw: u64, bias: i32) -> i64 {
    if raw == 0 { UNDEFINED } else { (raw as i64).wrapping_add(i64::from(bias)) }
}

#[inline(always)]
fn encode(value: i64, bias: i32) -> u64 {
    if value == UNDEFINED { 0 } else { value.wrapping_sub(i64::from(bias)) as u64 }
}

#[inline(always)]
fn place(base: i64, offset: u32) -> usize {
    base as usize + offset as usize
}

#[inline(always)]
fn holds(relation: Relation, a: i64, b: i64) -> bool {
    match relation {
        Relation::Equal => a == b,
        Relation::Differ => a != b,
        Relation::Less => a < b,
        Relation::LessEqual => a <= b,
    }
}

fn is_in(parts: &[(i64, i64)], value: i64) -> bool {
    parts.iter().any(|p| p.0 <= value && value <= p.1)
}

fn arithmetic(op: Arithmetic, a: i64, b: i64) -> Option<i64> {
    match op {
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide => a.checked_div(b),
        Arithmetic::Modulo => a.checked_rem(b),
        Arithmetic::ShiftLeft => Some(shift_left(a, b)),
        Arithmetic::ShiftRight => Some(shift_right(a, b)),
        Arithmetic::And => Some(a & b),
        Arithmetic::Or => Some(a | b),
        Arithmetic::Xor => Some(a ^ b),
    }
}

/// Reads up to 64 bits at an offset.
#[inline(always)]
pub(crate) fn read(memory: &[u64], at: usize, width: u8) -> u64 {
    let (word, shift) = (at / 64, at % 64);
    let mut raw = memory[word] >> shift;
    if shift + width as usize > 64 {
        raw |= memory[word + 1] << (64 - shift);
    }
    raw & mask(width)
}

/// Writes up to 64 bits at an offset; `raw` has no other bits.
#[inline(always)]
pub(crate) fn write(memory: &mut [u64], at: usize, width: u8, raw: u64) {
    let (word, shift) = (at / 64, at % 64);
    memory[word] = memory[word] & !(mask(width) << shift) | raw << shift;
    if shift + width as usize > 64 {
        let done = 64 - shift;
        memory[word + 1] = memory[word + 1] & !(mask(width) >> done) | raw >> done;
    }
}

/// Copies bits between places that do not overlap or are equal.
pub(crate) fn copy(memory: &mut [u64], mut to: usize, mut from: usize, mut bits: usize) {
    while bits > 0 {
        let width = bits.min(64);
        let raw = read(memory, from, width as u8);
        write(memory, to, width as u8, raw);
        (to, from, bits) = (to + width, from + width, bits - width);
    }
}

fn zero<W: Watch>(memory: &mut [u64], mut at: usize, mut bits: usize, watch: &mut W) {
    while bits > 0 {
        let width = bits.min(64);
        watch.write(at, width as u8, 0);
        write(memory, at, width as u8, 0);
        (at, bits) = (at + width, bits - width);
    }
}

/// Returns the number of used slots of a multiset.
pub(crate) fn count(memory: &[u64], first: usize, shape: MultisetShape) -> usize {
    let slots = (0..shape.capacity as usize).map(|n| first + n * shape.stride as usize);
    slots.map(|slot| (memory[slot / 64] >> (slot % 64) & 1) as usize).sum()
}

/// Compares bits.
pub(crate) fn equal(memory: &[u64], mut a: usize, mut b: usize, mut bits: usize) -> bool {
    while bits > 0 {
        let width = bits.min(64);
        if read(memory, a, width as u8) != read(memory, b, width as u8) {
            return false;
        }
        (a, b, bits) = (a + width, b + width, bits - width);
    }
    true
}
