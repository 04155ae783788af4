//! Memory: variables with addresses, cut into cells so that no access covers part of a cell.
//!
//! A cell is what an event accesses: its location. A variable has the size of its declared type;
//! without one it is an `int`, or a pointer if it holds an address at first. The accesses never
//! change that: an access beyond a variable is rejected. Where all accesses cover a variable, it is
//! one cell. Where some are narrower (mixed size), their borders cut it, and a wide access is
//! several events of one access. Borders become known as threads run: an access that does not fit
//! adds its borders, and the threads are run again ([`crate::paths`]).

use crate::code::{low, signed};
use std::collections::BTreeSet;

/// The address of the first variable: it fits into 31 bits, and is far from numbers that tests use,
/// such as powers of two.
const FIRST: u64 = 0x2b5a_7000;

/// Variables begin at multiples of this.
const PAGE: u64 = 0x1000;

/// The type of what has no declared type.
pub const DEFAULT: Type = Type::integer(4, true);

/// Bytes between two borders that no access crosses at once: beyond them an access is not atomic on
/// any machine here.
pub const GRANULE: u64 = 16;

/// The type of a variable or register, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// How many bytes.
    pub width: u8,
    /// True if it has a sign.
    pub signed: bool,
    /// True for `_Bool`: a value that is not 0 becomes 1.
    pub boolean: bool,
}

impl Type {
    /// `_Bool`.
    pub const BOOL: Type = Type { width: 1, signed: false, boolean: true };

    /// An integer type other than `_Bool`.
    pub const fn integer(width: u8, signed: bool) -> Self {
        Type { width, signed, boolean: false }
    }
    /// Converts a value to its bits in this type.
    pub fn bits(self, value: u64) -> u64 {
        if self.boolean { u64::from(value != 0) } else { low(value, u32::from(self.width) * 8) }
    }
    /// Converts a value to this type, extended to 64 bits.
    pub fn convert(self, value: u64) -> u64 {
        let bits = self.bits(value);
        if self.signed { signed(bits, u32::from(self.width) * 8) as u64 } else { bits }
    }
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// The type of its elements, if declared.
    pub declared: Option<Type>,
    /// Bytes of a pointer if it holds an address at first and has no declared type.
    pub pointer: Option<u8>,
    /// How many elements; none if it is no array.
    pub elements: Option<u32>,
    /// What its elements hold at first.
    pub initial: Vec<u64>,
    /// Whether it holds atomics: false if declared otherwise, or not at all.
    pub atomic: bool,
    /// Offsets at which accesses start or end.
    borders: BTreeSet<u32>,
}

impl Variable {
    /// Bytes of an element.
    pub fn element(&self) -> u32 {
        u32::from(self.declared.map(|t| t.width).or(self.pointer).unwrap_or(DEFAULT.width))
    }
    /// Bytes of all of it.
    pub fn size(&self) -> u32 {
        self.element() * self.elements.unwrap_or(1)
    }
    /// The value at first of some bytes of it.
    fn bytes(&self, offset: u32, width: u32) -> u64 {
        let element = self.element();
        (0..width).fold(0, |v, i| {
            let at = offset + i;
            let of = self.initial.get((at / element) as usize).copied().unwrap_or(0);
            let of = if self.declared == Some(Type::BOOL) { Type::BOOL.bits(of) } else { of };
            let byte = if at % element < 8 { of >> (8 * (at % element)) & 0xff } else { 0 };
            v | byte << (8 * i)
        })
    }
}

/// A cell of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The number of its variable.
    pub variable: u32,
    /// The number of the element that it is of.
    pub element: u32,
    /// Where it starts there.
    pub offset: u32,
    /// How many bytes.
    pub width: u8,
    /// What it holds at first.
    pub initial: u64,
}

/// What an access finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// These cells: the first one and how many.
    Cells(u32, u32),
    /// A cell would have to be cut.
    Cut,
    /// No variable is there.
    Stray,
    /// It goes beyond this variable.
    Beyond(u32),
}

/// Variables and their cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    variables: Vec<Variable>,
    cells: Vec<Cell>,
    /// The first cell of each variable.
    first: Vec<u32>,
}

impl Layout {
    /// The variable of a name, which becomes known if it was not.
    pub fn variable(&mut self, name: &str) -> u32 {
        if let Some(v) = self.find(name) {
            return v;
        }
        let address = self.variables.last().map_or(FIRST, |v| {
            let size = u64::from(v.elements.unwrap_or(1)) * 8;
            (v.address + size + 0x1_0000) & !(PAGE - 1)
        });
        self.variables.push(Variable {
            name: name.to_string(),
            address,
            declared: None,
            pointer: None,
            elements: None,
            initial: Vec::new(),
            atomic: false,
            borders: BTreeSet::new(),
        });
        (self.variables.len() - 1) as u32
    }
    /// Adds a variable at an address beyond those of all others.
    pub fn declare(
        &mut self,
        name: &str,
        address: u64,
        declared: Option<Type>,
        elements: Option<u32>,
        initial: Vec<u64>,
    ) {
        let name = name.to_string();
        self.variables.push(Variable {
            name,
            address,
            declared,
            pointer: None,
            elements,
            initial,
            atomic: false,
            borders: BTreeSet::new(),
        });
    }
    /// The variable of a name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.variables.iter().position(|v| v.name == name).map(|v| v as u32)
    }
    /// The variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
    /// A variable, to be changed. Its size must not change once a later variable has its address.
    pub fn variable_mut(&mut self, v: u32) -> &mut Variable {
        &mut self.variables[v as usize]
    }
    /// The cells.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
    /// The cells of a variable.
    pub fn cells_of(&self, v: u32) -> std::ops::Range<u32> {
        let end = self.first.get(v as usize + 1).copied().unwrap_or(self.cells.len() as u32);
        self.first[v as usize]..end
    }
    /// Cuts the variables at their borders.
    pub fn cut(&mut self) {
        self.cells.clear();
        self.first.clear();
        for (v, variable) in self.variables.iter().enumerate() {
            self.first.push(self.cells.len() as u32);
            let size = variable.size();
            let mut borders = variable.borders.clone();
            borders.extend([0, size]);
            if variable.elements.is_some() {
                borders.extend((0..size).step_by(variable.element() as usize));
            }
            let list: Vec<u32> = borders.into_iter().collect();
            for pair in list.windows(2) {
                let (mut from, to) = (pair[0], pair[1]);
                // No cell is wider than a value.
                while from < to {
                    let width = (to - from).min(8);
                    let initial = variable.bytes(from, width);
                    let element = from / variable.element();
                    self.cells.push(Cell {
                        variable: v as u32,
                        element,
                        offset: from,
                        width: width as u8,
                        initial,
                    });
                    from += width;
                }
            }
        }
    }
    /// The variable at an address, and the offset there.
    fn at(&self, address: u64) -> Option<(usize, u64)> {
        let v = self.variables.partition_point(|v| v.address <= address).checked_sub(1)?;
        Some((v, address - self.variables[v].address))
    }
    /// What an access finds.
    pub fn access(&self, address: u64, width: u8) -> Found {
        let Some((v, offset)) = self.at(address) else { return Found::Stray };
        let variable = &self.variables[v];
        let size = u64::from(variable.size());
        if offset >= size + PAGE {
            return Found::Stray;
        }
        if offset + u64::from(width) > size {
            return Found::Beyond(v as u32);
        }
        let range = self.cells_of(v as u32);
        let cells = &self.cells[range.start as usize..range.end as usize];
        let end = offset as u32 + u32::from(width);
        let first = cells.iter().position(|c| c.offset == offset as u32);
        let last = cells.iter().position(|c| c.offset + u32::from(c.width) == end);
        match (first, last) {
            (Some(a), Some(b)) if a <= b => {
                Found::Cells(range.start + a as u32, (b - a + 1) as u32)
            }
            _ => Found::Cut,
        }
    }
    /// Adds the borders of an access that found a cell to be cut.
    pub fn add_borders(&mut self, address: u64, width: u8) {
        if let Some((v, offset)) = self.at(address) {
            self.variables[v].borders.extend([offset as u32, offset as u32 + u32::from(width)]);
        }
    }
    /// A variable if an address is that of one: its name, with `[i]` or `+offset`.
    pub fn address_text(&self, value: u64) -> Option<String> {
        let (v, offset) = self.at(value)?;
        let variable = &self.variables[v];
        let element = u64::from(variable.element());
        match variable.elements {
            _ if offset == 0 => Some(variable.name.clone()),
            Some(n) if offset % element == 0 && offset / element < u64::from(n) => {
                Some(format!("{}[{}]", variable.name, offset / element))
            }
            _ if offset < u64::from(variable.size()) => Some(format!("{}+{offset}", variable.name)),
            _ => None,
        }
    }
}
