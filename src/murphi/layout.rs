//! Layout of values in memory: every simple variable is a field of bits, arrays, records and
//! multisets are concatenations of their parts.
//!
//! A field of a simple type with the values `low..=high` contains 0 if the variable is undefined,
//! else `value - low + 1`, in as few bits as that takes. Nothing is padded: a field may span two
//! words. A slot of a multiset is one bit that says whether the slot is used, followed by the
//! element; unused slots are all zero.
//!
//! Members of enumerations and scalarsets are numbered anew ([`Layout::own`]), the members of a
//! union one after the other, so that most unions are intervals without gaps and their values need
//! no conversion. Invariant: types with equal structure have equal layouts up to the lowest values
//! of their fields.

use crate::typed::{Model, TypeId, TypeKind};
use mu_base::{Diagnostic, Stage};

/// Most bits of a state; offsets of words fit in 16 bits.
const MOST_BITS: u64 = 1 << 20;

/// Values of a simple type: intervals in the order of loops and arrays, in own numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    /// Lowest value.
    pub low: i64,
    /// Highest value; below `low` if there is no value.
    pub high: i64,
    /// Bits of a field.
    pub width: u8,
    /// Intervals (lowest, highest) of the values. More than one only for a union with gaps.
    pub parts: Vec<(i64, i64)>,
}

impl Simple {
    fn new(parts: Vec<(i64, i64)>) -> Option<Self> {
        let low = parts.iter().map(|p| p.0).min().unwrap_or(0);
        let high = parts.iter().map(|p| p.1).max().unwrap_or(-1);
        // One more than the number of values, for undefined.
        let codes = u64::try_from(i128::from(high) - i128::from(low) + 2).ok()?;
        let width = (64 - codes.saturating_sub(1).leading_zeros()).max(1) as u8;
        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (a, b) in parts.into_iter().filter(|p| p.0 <= p.1) {
            match merged.last_mut() {
                Some(last) if last.1 + 1 == a => last.1 = b,
                _ => merged.push((a, b)),
            }
        }
        Some(Self { low, high, width, parts: merged })
    }
    /// True if the value is one of the type.
    pub fn contains(&self, value: i64) -> bool {
        self.parts.iter().any(|p| (p.0..=p.1).contains(&value))
    }
    /// True if all numbers between the lowest and the highest are values.
    pub fn is_interval(&self) -> bool {
        self.parts.len() <= 1
    }
    /// Returns the content of a field with a value of the type.
    pub fn code(&self, value: i64) -> u64 {
        value.wrapping_sub(self.low).wrapping_add(1) as u64
    }
    /// Returns the value of a field; `None` if it is undefined.
    pub fn value(&self, code: u64) -> Option<i64> {
        (code != 0).then(|| self.low.wrapping_add(code as i64).wrapping_sub(1))
    }
    /// Returns the number that is added to the content of a field to get its value.
    pub fn bias(&self) -> i64 {
        self.low.wrapping_sub(1)
    }
}

/// Layout of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One field.
    Simple(Simple),
    /// Elements for the indices from `low` on, with gaps if the index type has gaps.
    Array {
        /// Lowest index.
        low: i64,
        /// Number of elements.
        count: u32,
        /// Bits of an element.
        stride: u32,
        /// Type of the elements.
        element: TypeId,
        /// Type of the index.
        index: TypeId,
    },
    /// Fields with their offsets in bits.
    Record(Vec<(u32, TypeId)>),
    /// Slots.
    Multiset {
        /// Number of slots.
        capacity: u32,
        /// Bits of a slot: one more than those of an element.
        stride: u32,
        /// Type of the elements.
        element: TypeId,
    },
    /// No value of this type is stored in memory: integers without a range, positions.
    None,
}

/// Layouts of all types and global variables.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Layout of each type.
    pub shapes: Vec<Shape>,
    /// Bits of each type.
    pub bits: Vec<u32>,
    /// Offset of each global variable in bits.
    pub globals: Vec<u32>,
    /// Bits of a state.
    pub state_bits: u32,
    /// 64-bit words of a state.
    pub words: usize,
    /// Numbers of enumerations and scalarsets: (number in the typed tree, count, own number),
    /// ascending in the first.
    numbers: Vec<(i64, i64, i64)>,
}

impl Layout {
    /// Lays out a model. Cost: linear in the size of its types.
    ///
    /// # Errors
    /// A type or the state is too large.
    pub fn new(model: &Model) -> Result<Self, Diagnostic> {
        let mut layout = Layout {
            shapes: Vec::new(),
            bits: Vec::new(),
            globals: Vec::new(),
            state_bits: 0,
            words: 0,
            numbers: number(model),
        };
        for at in 0..model.types.all.len() {
            let (shape, bits) = layout.shape(model, TypeId::new(at))?;
            layout.shapes.push(shape);
            layout.bits.push(bits);
        }
        let mut at = 0u64;
        for global in &model.globals {
            layout.globals.push(at as u32);
            at += u64::from(layout.bits[global.ty.index()]);
            if at > MOST_BITS {
                return Err(too_large(model, global.ty));
            }
        }
        layout.state_bits = at as u32;
        layout.words = (at as usize).div_ceil(64).max(1);
        Ok(layout)
    }
    /// Returns the layout of a type.
    pub fn shape_of(&self, ty: TypeId) -> &Shape {
        &self.shapes[ty.index()]
    }
    /// Returns the values of a simple type; `None` for others and for integers without a range.
    pub fn simple(&self, ty: TypeId) -> Option<&Simple> {
        match self.shape_of(ty) {
            Shape::Simple(simple) => Some(simple),
            _ => None,
        }
    }
    /// Returns the bits of a type.
    pub fn size(&self, ty: TypeId) -> u32 {
        self.bits[ty.index()]
    }
    /// Returns the own number of a value of a type of the typed tree.
    pub fn own(&self, model: &Model, ty: TypeId, value: i64) -> i64 {
        match model.types.kind(ty) {
            TypeKind::Enum { .. } | TypeKind::Scalarset { .. } | TypeKind::Union { .. } => {
                renumber(&self.numbers, value, |n| (n.0, n.2))
            }
            _ => value,
        }
    }
    /// Returns the value in the typed tree of an own number.
    pub fn original(&self, model: &Model, ty: TypeId, own: i64) -> i64 {
        match model.types.kind(ty) {
            TypeKind::Enum { .. } | TypeKind::Scalarset { .. } | TypeKind::Union { .. } => {
                renumber(&self.numbers, own, |n| (n.2, n.0))
            }
            _ => own,
        }
    }
    /// Returns the text of an own value of a simple type.
    pub fn text(&self, model: &Model, ty: TypeId, own: i64) -> String {
        model.types.value_text(ty, self.original(model, ty, own))
    }

    fn shape(&self, model: &Model, ty: TypeId) -> Result<(Shape, u32), Diagnostic> {
        let bounded = |bits: u64| u32::try_from(bits).ok().filter(|b| u64::from(*b) <= MOST_BITS);
        let large = || too_large(model, ty);
        Ok(match model.types.kind(ty) {
            TypeKind::Integer | TypeKind::Position { .. } => (Shape::None, 0),
            TypeKind::Boolean
            | TypeKind::Range { .. }
            | TypeKind::Enum { .. }
            | TypeKind::Scalarset { .. }
            | TypeKind::Union { .. } => {
                let parts = model.types.parts(ty).unwrap_or_default().into_iter();
                let own = parts.map(|(first, count)| {
                    let low = self.own(model, ty, first);
                    (low, low.wrapping_add_unsigned(count).wrapping_sub(1))
                });
                let simple = Simple::new(own.collect()).ok_or_else(|| {
                    let text = format!("type `{}` has too many values", model.types.text(ty));
                    Diagnostic::new(Stage::Unsupported, text)
                        .note("expected at most 2^64 - 2: a variable has one more, for `undefined`")
                        .or_span(model.types.get(ty).span)
                })?;
                let width = u32::from(simple.width);
                (Shape::Simple(simple), width)
            }
            TypeKind::Array { index, element } => {
                let over = self.simple(*index).ok_or_else(large)?;
                let count = u32::try_from(i128::from(over.high) - i128::from(over.low) + 1)
                    .map_err(|_| large())?;
                let stride = self.size(*element);
                let bits = bounded(u64::from(count) * u64::from(stride)).ok_or_else(large)?;
                let (low, element, index) = (over.low, *element, *index);
                (Shape::Array { low, count, stride, element, index }, bits)
            }
            TypeKind::Multiset { capacity, element } => {
                let stride = self.size(*element) + 1;
                let bits = bounded(u64::from(*capacity) * u64::from(stride)).ok_or_else(large)?;
                (Shape::Multiset { capacity: *capacity, stride, element: *element }, bits)
            }
            TypeKind::Record { fields } => {
                let (mut all, mut at) = (Vec::new(), 0u64);
                for field in fields {
                    all.push((at as u32, field.ty));
                    at += u64::from(self.size(field.ty));
                    bounded(at).ok_or_else(large)?;
                }
                (Shape::Record(all), at as u32)
            }
        })
    }
}

fn too_large(model: &Model, ty: TypeId) -> Diagnostic {
    let text = format!("a value of type `{}` is too large to be stored", model.types.text(ty));
    let span = model.types.get(ty).span;
    Diagnostic::new(Stage::Unsupported, text)
        .note(format!("a state may have at most {MOST_BITS} bits"))
        .or_span(span)
}

/// Maps a value by the interval that contains it.
fn renumber(
    numbers: &[(i64, i64, i64)],
    value: i64,
    ends: impl Fn(&(i64, i64, i64)) -> (i64, i64),
) -> i64 {
    let found = numbers.iter().find(|n| {
        let first = ends(n).0;
        (first..first + n.1).contains(&value)
    });
    found.map_or(value, |n| value - ends(n).0 + ends(n).1)
}

/// Numbers the members of enumerations and scalarsets, those of unions first and together.
fn number(model: &Model) -> Vec<(i64, i64, i64)> {
    let all = &model.types.all;
    let mut order: Vec<usize> = Vec::new();
    for ty in all {
        if let TypeKind::Union { members } = &ty.kind {
            order.extend(members.iter().map(|m| m.index()));
        }
    }
    order.extend(0..all.len());
    let mut numbers: Vec<(i64, i64, i64)> = Vec::new();
    // After the two booleans, so that a union with them has no gap either.
    let mut next = 2;
    for at in order {
        let (first, count) = match &all[at].kind {
            TypeKind::Enum { first, members } => (*first, members.len() as i64),
            TypeKind::Scalarset { first, size } => (*first, i64::from(*size)),
            _ => continue,
        };
        if count > 0 && numbers.iter().all(|n| n.0 != first) {
            numbers.push((first, count, next));
            next += count;
        }
    }
    numbers.sort_unstable();
    numbers
}
