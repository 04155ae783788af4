//! Memory layout: variables with addresses, divided into cells so that no access covers part of a
//! cell.
//!
//! A cell is the location of an event. A variable has the size of its declared type; without one it
//! is an `int`, or a pointer if its initial value is an address. Accesses do not change the size:
//! an access beyond a variable is rejected. If all accesses cover the whole variable, it is one
//! cell. If some are narrower (mixed size), their borders divide it, and a wide access has several
//! events. Borders are discovered while threads run: an access that covers part of a cell adds its
//! borders, and the threads are run again ([`crate::paths`]).

use crate::code::{low, to_signed};
use mu_base::narrow;
use std::collections::BTreeSet;

/// The address of the first variable: it has at most 31 bits, and is far from numbers that tests
/// use, such as powers of two.
const FIRST: u64 = 0x2b5a_7000;

/// The value of the first instruction that is a value: between variables and code.
const INSTRUCTIONS: u64 = 0x5a00_0000;

/// Alignment of variables.
const PAGE: u64 = 0x1000;

/// The default type.
pub const DEFAULT: IntegerType = IntegerType::integer(4, true);

/// Bytes between two borders that no atomic access crosses: an access across one is not atomic on
/// any machine here.
pub const GRANULE: u64 = 16;

/// The type of a variable or register: width and signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerType {
    /// Width in bytes.
    pub width: u8,
    /// True if it is signed.
    pub signed: bool,
    /// True for `_Bool`: every value other than 0 is converted to 1.
    pub boolean: bool,
}

impl IntegerType {
    /// `_Bool`.
    pub const BOOL: IntegerType = IntegerType { width: 1, signed: false, boolean: true };

    /// Creates an integer type other than `_Bool`.
    pub const fn integer(width: u8, signed: bool) -> Self {
        IntegerType { width, signed, boolean: false }
    }
    /// Converts a value to its bits in this type.
    pub fn bits(self, value: u64) -> u64 {
        if self.boolean { u64::from(value != 0) } else { low(value, u32::from(self.width) * 8) }
    }
    /// Converts a value to this type, extended to 64 bits.
    pub fn convert(self, value: u64) -> u64 {
        let bits = self.bits(value);
        if self.signed { to_signed(bits, u32::from(self.width) * 8) as u64 } else { bits }
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
    pub declared: Option<IntegerType>,
    /// Bytes of a pointer, if the initial value is an address and there is no declared type.
    pub pointer: Option<u8>,
    /// Number of elements; `None` if it is not an array.
    pub elements: Option<u32>,
    /// The initial values of its elements.
    pub initial: Vec<u64>,
    /// True if it is atomic: false if declared otherwise, or not declared.
    pub atomic: bool,
    /// Offsets at which accesses start or end.
    borders: BTreeSet<u32>,
}

impl Variable {
    /// Returns the size of an element in bytes.
    pub fn element(&self) -> u32 {
        u32::from(self.declared.map(|t| t.width).or(self.pointer).unwrap_or(DEFAULT.width))
    }
    /// Returns the size of the variable in bytes.
    pub fn size(&self) -> u32 {
        self.element() * self.elements.unwrap_or(1)
    }
    /// Returns the initial value of some bytes of it.
    fn bytes(&self, offset: u32, width: u32) -> u64 {
        let element = self.element();
        if width > 8 {
            // Its upper half extends its lower half.
            return self.initial.get((offset / element) as usize).copied().unwrap_or(0);
        }
        (0..width).fold(0, |v, i| {
            let at = offset + i;
            let of = self.initial.get((at / element) as usize).copied().unwrap_or(0);
            let of = if self.declared == Some(IntegerType::BOOL) {
                IntegerType::BOOL.bits(of)
            } else {
                of
            };
            let byte = if at % element < 8 { of >> (8 * (at % element)) & 0xff } else { 0 };
            v | byte << (8 * i)
        })
    }
}

/// A cell of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCell {
    /// The index of its variable.
    pub variable: u32,
    /// The index of its element.
    pub element: u32,
    /// Its offset in the variable.
    pub offset: u32,
    /// Width in bytes.
    pub width: u8,
    /// Its initial value.
    pub initial: u64,
}

/// The result of resolving an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The first cell and the number of cells.
    Cells(u32, u32),
    /// A cell must be divided first.
    Cut,
    /// There is no variable at the address.
    Stray,
    /// The access extends beyond this variable.
    Beyond(u32),
}

/// Variables and their cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryLayout {
    variables: Vec<Variable>,
    cells: Vec<MemoryCell>,
    /// The first cell of each variable.
    first: Vec<u32>,
    /// The addresses of labels, with their names.
    code: Vec<(u64, String)>,
    /// The normal forms of instructions that are values, in the order of their values.
    instructions: Vec<String>,
    /// A value that stands for any value, printed as `?`.
    any: Option<u64>,
}

impl MemoryLayout {
    /// Returns the variable with a name, declaring it if necessary.
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
        narrow::index(self.variables.len() - 1)
    }
    /// Adds a variable at an address beyond all others.
    pub fn declare(
        &mut self,
        name: &str,
        address: u64,
        declared: Option<IntegerType>,
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
    /// Sets the addresses of labels, with their names as printed.
    pub fn set_code(&mut self, code: Vec<(u64, String)>) {
        self.code = code;
    }
    /// Returns the value of an instruction, by its normal form
    /// ([`crate::instruction_values::normal_form`]).
    pub fn instruction(&mut self, form: &str) -> u64 {
        // `#` before a number means nothing.
        let plain = |text: &str| text.replace('#', "");
        let known = self.instructions.iter().position(|i| plain(i) == plain(form));
        let at = known.unwrap_or_else(|| {
            self.instructions.push(form.to_string());
            self.instructions.len() - 1
        });
        INSTRUCTIONS + at as u64
    }
    /// Looks up a variable by name. `None` if there is none.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.variables.iter().position(|v| v.name == name).map(|v| narrow::index(v))
    }
    /// Returns the variables.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }
    /// Returns a variable for modification. Its size must not change after a later variable has its
    /// address.
    pub fn variable_mut(&mut self, v: u32) -> &mut Variable {
        &mut self.variables[v as usize]
    }
    /// Returns the cells.
    pub fn cells(&self) -> &[MemoryCell] {
        &self.cells
    }
    /// Returns the cells of a variable.
    pub fn cells_of(&self, v: u32) -> std::ops::Range<u32> {
        let end =
            self.first.get(v as usize + 1).copied().unwrap_or(narrow::index(self.cells.len()));
        self.first[v as usize]..end
    }
    /// Divides the variables at their borders.
    pub fn cut(&mut self) {
        self.cells.clear();
        self.first.clear();
        for (v, variable) in self.variables.iter().enumerate() {
            self.first.push(narrow::index(self.cells.len()));
            let size = variable.size();
            let mut borders = variable.borders.clone();
            borders.extend([0, size]);
            if variable.elements.is_some() {
                borders.extend((0..size).step_by(variable.element() as usize));
            }
            let list: Vec<u32> = borders.into_iter().collect();
            for pair in list.windows(2) {
                let (mut from, to) = (pair[0], pair[1]);
                // No cell is wider than a value, unless it is an element of 128 bits.
                while from < to {
                    let width = if to - from == 16 { 16 } else { (to - from).min(8) };
                    let initial = variable.bytes(from, width);
                    let element = from / variable.element();
                    self.cells.push(MemoryCell {
                        variable: narrow::index(v),
                        element,
                        offset: from,
                        width: u8::try_from(width).expect("at most 16 bytes"),
                        initial,
                    });
                    from += width;
                }
            }
        }
    }
    /// Returns the variable at an address, and the offset.
    fn at(&self, address: u64) -> Option<(usize, u64)> {
        let v = self.variables.partition_point(|v| v.address <= address).checked_sub(1)?;
        Some((v, address - self.variables[v].address))
    }
    /// Resolves an access.
    pub fn access(&self, address: u64, width: u8) -> Found {
        let Some((v, offset)) = self.at(address) else { return Found::Stray };
        let variable = &self.variables[v];
        let size = u64::from(variable.size());
        if offset >= size + PAGE {
            return Found::Stray;
        }
        if offset + u64::from(width) > size {
            return Found::Beyond(narrow::index(v));
        }
        let range = self.cells_of(narrow::index(v));
        let cells = &self.cells[range.start as usize..range.end as usize];
        let end = narrow::word(offset) + u32::from(width);
        let first = cells.iter().position(|c| c.offset == narrow::word(offset));
        let last = cells.iter().position(|c| c.offset + u32::from(c.width) == end);
        match (first, last) {
            // No value is wider than 8 bytes, unless it is one element.
            (Some(a), Some(b)) if a < b && width > 8 => Found::Stray,
            (Some(a), Some(b)) if a <= b => {
                Found::Cells(range.start + narrow::index(a), narrow::index(b - a + 1))
            }
            _ => Found::Cut,
        }
    }
    /// Adds the borders of an access that covers part of a cell.
    pub fn add_borders(&mut self, address: u64, width: u8) {
        if let Some((v, offset)) = self.at(address) {
            self.variables[v]
                .borders
                .extend([narrow::word(offset), narrow::word(offset) + u32::from(width)]);
        }
    }
    /// Declares a value that stands for any value. It is no address and no number of the test.
    pub fn set_any(&mut self, value: u64) {
        self.any = Some(value);
    }
    /// Returns the value that stands for any value, if the test has one.
    pub fn any_value(&self) -> Option<u64> {
        self.any
    }
    /// Prints the address of a variable as its name, with `[i]` or `+offset`, the address of a
    /// label, or an instruction; `None` for other values.
    pub fn address_text(&self, value: u64) -> Option<String> {
        if let Some((_, name)) = self.code.iter().find(|c| c.0 == value) {
            return Some(name.clone());
        }
        if self.any == Some(value) {
            return Some("?".to_string());
        }
        let instruction = value.checked_sub(INSTRUCTIONS).and_then(|i| usize::try_from(i).ok());
        if let Some(form) = instruction.and_then(|i| self.instructions.get(i)) {
            return Some(format!("instr:\"{form}\""));
        }
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
