//! Variables of a program and their layout in memory.
//!
//! Input: declarations and uses. Output: the cells. Variables are so far from each other that no
//! arithmetic within one reaches the next.
//!
//! A cell is accessed as a whole: all stores to it have one width, and loads have at most that
//! width; the bits above keep their initial values. Other accesses of mixed sizes are unsupported,
//! because this model does not describe how a store buffer forwards parts of values.

use std::collections::HashMap;

use super::Cell;
use super::expr::Width;
use mu_base::{Diagnostic, Span, Stage};

/// The address of the first variable; unlikely to occur as a number in a test.
const FIRST: u64 = 0x3f2e_4000;
/// Alignment of variables, more than the size of the largest one.
const ALIGN: u64 = 1 << 16;

/// A type: width and signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerType {
    /// Width.
    pub width: Width,
    /// True if it is signed.
    pub signed: bool,
}

impl IntegerType {
    /// `int`, the default type in a litmus test.
    pub const INT: IntegerType = IntegerType { width: Width::W32, signed: true };
    /// Looks up a C type by name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        let (width, signed) = match name {
            "int8_t" | "char" => (Width::W8, true),
            "uint8_t" => (Width::W8, false),
            "int16_t" | "short" => (Width::W16, true),
            "uint16_t" => (Width::W16, false),
            "int32_t" | "int" => (Width::W32, true),
            "uint32_t" => (Width::W32, false),
            "int64_t" | "long" | "intptr_t" => (Width::W64, true),
            "uint64_t" | "uintptr_t" => (Width::W64, false),
            _ => return None,
        };
        Some(Self { width, signed })
    }
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The address of its first element.
    pub address: u64,
    /// Declared type of an element.
    pub declared: Option<IntegerType>,
    /// True if it is an array.
    pub array: bool,
    /// True if each thread has an element of its own, which the name denotes in the thread's code.
    pub per_thread: bool,
    /// The initial values of the elements.
    pub initial: Vec<u64>,
}

impl Variable {
    /// Returns the size of an element in bytes.
    pub fn element(&self) -> u64 {
        self.declared.map_or(IntegerType::INT.width, |t| t.width).bytes()
    }
}

/// A memory access in code.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// The address, if it is constant.
    pub address: Option<u64>,
    /// Its width.
    pub width: Width,
    /// True if it writes.
    pub write: bool,
    /// The position of the instruction.
    pub span: Span,
}

/// All variables.
#[derive(Clone, Debug)]
pub struct Variables {
    list: Vec<Variable>,
    by_name: HashMap<String, usize>,
    next: u64,
    /// True if a use declares the variable.
    implicit: bool,
}

impl Variables {
    /// Creates an empty set. If `implicit`, an undeclared variable is declared by its first use,
    /// without a type and with the value zero.
    pub fn new(implicit: bool) -> Self {
        Self { list: Vec::new(), by_name: HashMap::new(), next: FIRST, implicit }
    }
    /// True if a use declares the variable.
    pub fn declares_by_use(&self) -> bool {
        self.implicit
    }
    /// Returns the variables in the order of their addresses.
    pub fn list(&self) -> &[Variable] {
        &self.list
    }
    /// Returns a variable by name; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.by_name.get(name).map(|&i| &self.list[i])
    }
    /// Returns a variable by name, for modification; `None` if there is none.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Variable> {
        self.by_name.get(name).map(|&i| &mut self.list[i])
    }
    /// Declares a new variable.
    pub fn declare(
        &mut self,
        name: &str,
        declared: Option<IntegerType>,
        array: bool,
        initial: Vec<u64>,
    ) -> &mut Variable {
        let variable = Variable {
            name: name.into(),
            address: self.next,
            declared,
            array,
            per_thread: false,
            initial,
        };
        let bytes = variable.element() * variable.initial.len() as u64;
        self.next += bytes.max(1).next_multiple_of(ALIGN);
        self.by_name.insert(name.into(), self.list.len());
        self.list.push(variable);
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
    /// Returns the address that a name denotes in the code of a thread.
    pub fn address(&mut self, name: &str, span: Span, thread: usize) -> Result<u64, Diagnostic> {
        if let Some(v) = self.get(name) {
            return Ok(v.address + if v.per_thread { thread as u64 * v.element() } else { 0 });
        }
        if self.implicit {
            return Ok(self.declare(name, None, false, vec![0]).address);
        }
        let known: Vec<&str> = self.list.iter().map(|v| v.name.as_str()).collect();
        let mut error =
            Diagnostic::at(Stage::Type, span, format!("no variable `{name}` is declared"));
        if !known.is_empty() {
            error = error.note(format!("declared: {}", known.join(", ")));
        }
        Err(error)
    }
    /// Finds the variable that contains an address, and the offset; `None` if there is none.
    pub fn at(&self, address: u64) -> Option<(&Variable, u64)> {
        let i = self.list.partition_point(|v| v.address <= address).checked_sub(1)?;
        let v = &self.list[i];
        let offset = address - v.address;
        (offset < v.element() * v.initial.len() as u64).then_some((v, offset))
    }
    /// Prints a value that is the address of a variable; `None` for others.
    pub fn address_text(&self, value: u64) -> Option<String> {
        match self.at(value)? {
            (v, 0) => Some(v.name.clone()),
            (v, offset) if v.array && offset % v.element() == 0 => {
                Some(format!("{}[{}]", v.name, offset / v.element()))
            }
            (v, offset) => Some(format!("{}+{offset}", v.name)),
        }
    }
    /// Computes the cells, given all uses in the code.
    pub fn cells(&self, uses: &[Use]) -> Result<Vec<Cell>, Diagnostic> {
        let mut by_address: HashMap<u64, Vec<&Use>> = HashMap::new();
        for u in uses {
            if let Some(address) = u.address {
                by_address.entry(address).or_default().push(u);
            }
        }
        let mut computed_accesses = uses.iter().filter(|u| u.address.is_none()).map(|u| u.width);
        let first = computed_accesses.next();
        let computed_accesses = first.filter(|w| computed_accesses.all(|o| o == *w));
        let mut cells = Vec::new();
        for v in &self.list {
            for (i, &initial) in v.initial.iter().enumerate() {
                let address = v.address + i as u64 * v.element();
                let name = if v.array { format!("{}[{i}]", v.name) } else { v.name.clone() };
                let here = by_address.remove(&address).unwrap_or_default();
                let declared = v.declared.map(|t| t.width);
                let widest = here.iter().map(|u| u.width).max();
                let access = widest.or(computed_accesses).or(declared).unwrap_or(Width::W32);
                let access =
                    if here.is_empty() && v.array { declared.unwrap_or(access) } else { access };
                if let Some(u) = here.iter().find(|u| u.write && u.width != access) {
                    return Err(mixed_sizes(&name, u.span, u.width, access));
                }
                let width = declared.unwrap_or(IntegerType::INT.width);
                if let Some(wide) = here.iter().find(|u| u.width > width) {
                    return Err(access_too_wide(&name, wide.span, wide.width, width));
                }
                let access = access.min(width);
                cells.push(Cell { name, address, width, access, initial: initial & width.mask() });
            }
        }
        if let Some(wrong) = by_address.into_values().flatten().min_by_key(|u| u.span) {
            let text = wrong.address.map_or(String::new(), |a| {
                self.address_text(a).unwrap_or_else(|| format!("{a:#x}"))
            });
            return Err(Diagnostic::at(
                Stage::Unsupported,
                wrong.span,
                format!("no variable or element starts at the address `{text}`"),
            )
            .note("a variable is accessed as a whole, an array element by element"));
        }
        Ok(cells)
    }
}

/// Builds the error for an access that is wider than its variable.
fn access_too_wide(cell: &str, span: Span, found: Width, size: Width) -> Diagnostic {
    Diagnostic::at(Stage::Unsupported, span, format!("an access of {} bits goes beyond `{cell}`, which has {} bits", found.bits(), size.bits()))
        .note("a variable has the size of its declared type; without one it is an `int`, or a pointer if it holds an address at first")
}

/// Builds the error for accesses of mixed sizes.
pub(super) fn mixed_sizes(cell: &str, span: Span, found: Width, other: Width) -> Diagnostic {
    Diagnostic::at(
        Stage::Unsupported,
        span,
        format!(
            "accesses to `{cell}` have different sizes: {} bits here, {} bits elsewhere",
            found.bits(),
            other.bits()
        ),
    )
    .note("all stores to a variable must have one width, and loads at most that")
}
