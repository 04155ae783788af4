//! Register code of rules, guards and properties.
//!
//! An instruction takes 16 bytes and works on a window of 256 registers of 64 bits and on one
//! memory of words: the state, then the locals that have no register. A place in memory is an
//! offset in bits. Values in registers are the values themselves, in the own numbers of
//! [`crate::layout`]; [`UNDEFINED`] marks the absence of a value. Fields at a constant place
//! within one word are addressed by word and shift. All others take the general instructions, which
//! also read fields that span two words.
//!
//! An instruction that can fail has a [`Site`] under its index, so that errors cost nothing until
//! they occur.

use crate::layout::Layout;
use crate::typed::LocalId;
use mu_base::Span;

/// Content of a register without a value.
pub const UNDEFINED: i64 = i64::MIN;

/// Field of bits at a constant place within one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Word of the memory.
    pub word: u16,
    /// Lowest bit.
    pub shift: u8,
    /// Number of bits, 1 to 64.
    pub width: u8,
}

impl Bits {
    /// Returns the field at an offset; `None` if it spans two words or is too far away.
    pub fn new(offset: u32, width: u8) -> Option<Self> {
        let (word, shift) = (u16::try_from(offset / 64).ok()?, (offset % 64) as u8);
        (u32::from(shift) + u32::from(width) <= 64).then_some(Self { word, shift, width })
    }
    /// Returns the offset of the field in bits.
    #[inline(always)]
    pub fn offset(self) -> usize {
        self.word as usize * 64 + self.shift as usize
    }
    /// Reads the field.
    #[inline(always)]
    pub fn get(self, memory: &[u64]) -> u64 {
        (memory[self.word as usize] >> self.shift) & mask(self.width)
    }
    /// Writes the field; `raw` has no other bits.
    #[inline(always)]
    pub fn set(self, memory: &mut [u64], raw: u64) {
        let word = &mut memory[self.word as usize];
        *word = *word & !(mask(self.width) << self.shift) | raw << self.shift;
    }
}

/// Field of bits at a constant place of a state, in one word or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Lowest bit.
    pub offset: u32,
    /// Number of bits, 1 to 63.
    pub width: u8,
}

impl Field {
    /// Reads the field, without a jump that depends on the number of its words.
    #[inline(always)]
    pub fn get(self, state: &[u64]) -> u64 {
        let (word, shift) = (self.offset as usize / 64, self.offset % 64);
        let next = (self.offset as usize + self.width as usize - 1) / 64;
        (state[word] >> shift | state[next] << 1 << (63 - shift)) & mask(self.width)
    }
}

/// Returns the lowest `width` bits, 1 to 64.
#[inline(always)]
pub fn mask(width: u8) -> u64 {
    u64::MAX >> (64 - width)
}

/// Operation on two registers. All but the bitwise ones fail on an overflow or a division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum Arithmetic {
    Subtract,
    Multiply,
    Divide,
    Modulo,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Xor,
}

/// Comparison of two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum Relation {
    Equal,
    Differ,
    Less,
    LessEqual,
}

/// Index of a register in the window.
pub type Reg = u8;

/// Instruction. `d` is the register of the result, `at` one with an offset in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the comment of an instruction covers its operands")]
pub enum Op {
    /// Sets a register.
    Const { d: Reg, value: i64 },
    /// Copies a register.
    Move { d: Reg, a: Reg },
    /// Reads a field as a value; fails if it is undefined.
    Load { d: Reg, from: Bits, bias: i32 },
    /// Reads a field as a value or [`UNDEFINED`].
    Peek { d: Reg, from: Bits, bias: i32 },
    /// Reads the content of a field.
    Raw { d: Reg, from: Bits },
    /// As `Load`, at `at + offset`.
    LoadAt { d: Reg, at: Reg, width: u8, offset: u32, bias: i32 },
    /// As `Load`, of a field that spans two words.
    LoadSpan { d: Reg, width: u8, offset: u32, bias: i32 },
    /// As `Peek`, at `at + offset`.
    PeekAt { d: Reg, at: Reg, width: u8, offset: u32, bias: i32 },
    /// As `Raw`, at `at + offset`.
    RawAt { d: Reg, at: Reg, width: u8, offset: u32 },
    /// Writes a value of the field's type.
    Store { a: Reg, to: Bits, bias: i32 },
    /// Writes a value of the field's type, or nothing for [`UNDEFINED`].
    StoreMaybe { a: Reg, to: Bits, bias: i32 },
    /// As `Store`, at `at + offset`.
    StoreAt { a: Reg, at: Reg, width: u8, offset: u32, bias: i32 },
    /// As `StoreMaybe`, at `at + offset`.
    StoreMaybeAt { a: Reg, at: Reg, width: u8, offset: u32, bias: i32 },
    /// Writes the content of a field.
    SetRaw { to: Bits, raw: u32 },
    /// As `SetRaw`, at `at + offset`.
    SetRawAt { at: Reg, width: u8, offset: u32, raw: u32 },
    /// Writes the content of a field from a register.
    Put { a: Reg, to: Bits },
    /// As `Put`, at `at + offset`.
    PutAt { a: Reg, at: Reg, width: u8, offset: u32 },
    /// Copies the content of a field.
    Copy { from: Bits, to: Bits },
    /// Copies bits between places that do not overlap or are equal.
    CopyBits { to: Reg, from: Reg, bits: u32 },
    /// Clears bits.
    ZeroBits { at: Reg, bits: u32 },
    /// Compares bits.
    EqualBits { d: Reg, a: Reg, b: Reg, bits: u32 },
    /// Fails if the register has no value.
    Defined { a: Reg },
    /// Fails if the register has a value outside of [`Program::ranges`].
    Within { a: Reg, range: u32 },
    /// Adds; fails on an overflow.
    Add { d: Reg, a: Reg, b: Reg },
    /// Adds a constant; fails on an overflow.
    AddConst { d: Reg, a: Reg, value: i64 },
    /// Adds a constant to an offset in bits.
    Offset { d: Reg, a: Reg, value: i64 },
    /// Adds two offsets.
    AddOffset { d: Reg, a: Reg, b: Reg },
    /// Other operations.
    Arithmetic { op: Arithmetic, d: Reg, a: Reg, b: Reg },
    /// Complements all bits.
    Complement { d: Reg, a: Reg },
    /// 0 becomes 1, all else 0.
    Not { d: Reg, a: Reg },
    /// 1 if the relation holds, else 0.
    Compare { relation: Relation, d: Reg, a: Reg, b: Reg },
    /// Offset of an element, `(a - low) * stride`; fails if it is not below `count`.
    Index { d: Reg, a: Reg, low: i32, count: u32, stride: u32 },
    /// Offset of an element that a field selects, `(raw + bias) * stride`, below `count * stride`;
    /// fails if the field is undefined.
    LoadIndex { d: Reg, from: Bits, bias: i16, stride: u32, count: u32 },
    /// Fails if the register is no value of the union [`Program::unions`].
    Member { a: Reg, union: u32 },
    /// 1 if the register is a value of the union, else 0.
    IsMember { d: Reg, a: Reg, union: u32 },
    /// Jumps.
    Jump { to: u32 },
    /// Jumps backwards; polls the limits of the run once in a while.
    Loop { to: u32 },
    /// Jumps if the register is not 0.
    JumpIf { a: Reg, to: u32 },
    /// Jumps if the register is 0.
    JumpUnless { a: Reg, to: u32 },
    /// Jumps if the relation holds.
    JumpCompare { relation: Relation, a: Reg, b: Reg, to: u32 },
    /// Jumps if the register is equal to the value.
    JumpEqual { a: Reg, value: i32, to: u32 },
    /// Jumps if the register differs from the value.
    JumpDiffer { a: Reg, value: i32, to: u32 },
    /// Jumps if the register is below the value.
    JumpBelow { a: Reg, value: i32, to: u32 },
    /// Jumps if the register is above the value.
    JumpAbove { a: Reg, value: i32, to: u32 },
    /// Jumps if the field has the content; fails if it is undefined.
    JumpField { from: Bits, raw: u32, to: u32 },
    /// Jumps if the field has another content; fails if it is undefined.
    JumpOther { from: Bits, raw: u32, to: u32 },
    /// Jumps by a table of [`Program::tables`].
    Switch { a: Reg, table: u32 },
    /// Calls a function with the window that begins at `window`; its result is there then.
    Call { function: u32, window: Reg },
    /// Returns from a function.
    Return,
    /// Counts the elements of a multiset of [`Program::multisets`], at `at + offset`.
    Count { d: Reg, at: Option<Reg>, offset: u32, multiset: u32 },
    /// Adds the element at `from` to a multiset of [`Program::multisets`]; fails if it is full.
    MultisetAdd { at: Reg, from: Reg, multiset: u32 },
    /// Removes the element at position `a`; fails if there is none.
    MultisetRemove { at: Reg, a: Reg, multiset: u32 },
    /// Records that a claim `cover` is fulfilled.
    Cover { claim: u32 },
    /// Ends a guard or condition that is false.
    No,
    /// Ends a guard or condition that is true.
    Yes,
    /// Ends a body.
    Done,
    /// Ends a body with a false assumption.
    Discard,
    /// Fails.
    Fail,
}

impl Op {
    /// Returns the target of a jump.
    pub fn target(mut self) -> Option<u32> {
        self.target_mut().copied()
    }
    /// Returns the place of the target of a jump.
    pub fn target_mut(&mut self) -> Option<&mut u32> {
        match self {
            Op::Jump { to }
            | Op::Loop { to }
            | Op::JumpIf { to, .. }
            | Op::JumpUnless { to, .. }
            | Op::JumpCompare { to, .. }
            | Op::JumpEqual { to, .. }
            | Op::JumpDiffer { to, .. }
            | Op::JumpBelow { to, .. }
            | Op::JumpAbove { to, .. }
            | Op::JumpField { to, .. }
            | Op::JumpOther { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// Kind of an error that a site can raise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An assertion (index in `Model::claims`).
    Assertion(u32),
    /// `error` with its message.
    Error(String),
    /// An undefined value, with the text of its place.
    Undefined,
    /// A value outside of a type (its text).
    OutOfRange(String),
    /// An index outside of an array's index type (its text).
    Index(String),
    /// Overflow or division by zero.
    Arithmetic,
    /// A full multiset.
    Full,
    /// An element that a multiset does not have.
    NoElement,
    /// A function without `return`.
    NoReturn(String),
    /// A loop with the step zero.
    Step,
    /// Calls too deep.
    Depth,
}

/// Place in the text of an instruction that can fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Place.
    pub span: Span,
    /// Error.
    pub fault: Fault,
}

/// Targets of a [`Op::Switch`].
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Value of the first target.
    pub low: i64,
    /// Targets of consecutive values.
    pub targets: Vec<u32>,
    /// Target of all other values.
    pub otherwise: u32,
}

/// Layout of a multiset for its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultisetShape {
    /// Number of slots.
    pub capacity: u32,
    /// Bits of a slot.
    pub stride: u32,
}

/// Test that the content of a field is one of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTest {
    /// Field, at most 6 bits.
    pub field: Field,
    /// Accepted contents, one bit each.
    pub accept: u64,
    /// True if the content 0 is accepted because the test fails then: an undefined value is read.
    pub fails: bool,
}

/// Parameter of an instance, in own numbers; for a position the slot.
pub type Parameter = (LocalId, i64);

/// Rule, start state or property with values for its parameters.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Index in the typed model.
    pub number: u32,
    /// Values of the parameters, outermost first.
    pub parameters: Vec<Parameter>,
    /// First conditions of the guard, each on a field. Each is evaluated only if those before it
    /// are fulfilled.
    pub tests: Vec<FieldTest>,
    /// The guard after `tests`; `None` if nothing is left.
    pub rest: Option<u32>,
    /// The whole guard, for a state in which a field of `tests` is undefined; the condition of a
    /// property.
    pub guard: u32,
    /// The condition of a property, evaluated for all elements of each scalarset over which it
    /// quantifies: if this does not fail, no order does. `None` if the condition has no such
    /// quantifier, or calls a function.
    pub strict: Option<u32>,
    /// The body.
    pub body: u32,
    /// True if the guard may write to the memory.
    pub writes_in_guard: bool,
}

/// Compiled model.
#[derive(Clone, Debug)]
pub struct Program {
    /// Layout of states.
    pub layout: Layout,
    /// Instructions.
    pub code: Vec<Op>,
    /// Sites by index of the instruction, ascending.
    pub sites: Vec<(u32, Site)>,
    /// Ranges (lowest, highest).
    pub ranges: Vec<(i64, i64)>,
    /// Values of unions with gaps, as intervals.
    pub unions: Vec<Vec<(i64, i64)>>,
    /// Jump tables.
    pub tables: Vec<Table>,
    /// Multisets.
    pub multisets: Vec<MultisetShape>,
    /// First instruction of each function that is called.
    pub entries: Vec<u32>,
    /// Bits of the locals in memory of a recursive function, by function; 0 for others.
    pub frames: Vec<u32>,
    /// Words of memory for the state and the locals of functions that are not recursive.
    pub memory: usize,
    /// Instances of rules.
    pub rules: Vec<Instance>,
    /// Instances of start states.
    pub starts: Vec<Instance>,
    /// Instances of properties.
    pub properties: Vec<Instance>,
}

impl Program {
    /// Returns the site of an instruction. `None` if it has none.
    pub fn site(&self, at: u32) -> Option<&Site> {
        let found = self.sites.binary_search_by_key(&at, |s| s.0).ok()?;
        Some(&self.sites[found].1)
    }
}
