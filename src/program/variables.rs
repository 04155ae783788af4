//! The variables of a program and where they are in memory.
//!
//! In: declarations, uses. Out: the cells. Variables are far enough from each other that no
//! arithmetic within one reaches the next.
//!
//! A cell is accessed as a whole: all stores to it have one width, and loads have at most that; the
//! bits above stay as they were at the start. Accesses of mixed sizes beyond that are refused,
//! since a store buffer forwards parts of values in ways that this model does not have.

use std::collections::HashMap;

use super::Cell;
use super::expr::Width;
use mu_base::{Diagnostic, Span, Stage};

/// Address of the first variable: no number that a test is likely to use.
const FIRST: u64 = 0x3f2e_4000;
/// Variables start at multiples of this.
const ALIGN: u64 = 64;

/// A type: how many bits, and whether they are shown with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Width.
    pub width: Width,
    /// Whether it is signed.
    pub signed: bool,
}

impl Type {
    /// `int`, which is what has no type in a litmus test.
    pub const INT: Type = Type { width: Width::W32, signed: true };
    /// The type of a C name.
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
    /// Address of its first element.
    pub address: u64,
    /// Declared type of an element.
    pub declared: Option<Type>,
    /// Whether it is an array.
    pub array: bool,
    /// Whether each thread has an element of its own, which its name means in the thread's code.
    pub per_thread: bool,
    /// Initial values, one an element.
    pub initial: Vec<u64>,
}

impl Variable {
    /// Bytes of an element.
    pub fn element(&self) -> u64 {
        self.declared.map_or(Type::INT.width, |t| t.width).bytes()
    }
}

/// A use of memory in code.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Where, if the text says it.
    pub address: Option<u64>,
    /// How many bits.
    pub width: Width,
    /// Whether it writes.
    pub write: bool,
    /// The instruction.
    pub span: Span,
}

/// All variables.
#[derive(Clone, Debug)]
pub struct Variables {
    list: Vec<Variable>,
    by_name: HashMap<String, usize>,
    next: u64,
    /// Whether a use declares.
    implicit: bool,
}

impl Variables {
    /// None yet. If `implicit`, those that are used without declaration are of no type and zero.
    pub fn new(implicit: bool) -> Self {
        Self { list: Vec::new(), by_name: HashMap::new(), next: FIRST, implicit }
    }
    /// Whether a use declares.
    pub fn declares_by_use(&self) -> bool {
        self.implicit
    }
    /// The variables in the order of their addresses.
    pub fn list(&self) -> &[Variable] {
        &self.list
    }
    /// A variable by name.
    pub fn get(&self, name: &str) -> Option<&Variable> {
        self.by_name.get(name).map(|&i| &self.list[i])
    }
    /// A variable by name, for change.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Variable> {
        self.by_name.get(name).map(|&i| &mut self.list[i])
    }
    /// Declares a variable that is not there yet.
    pub fn declare(
        &mut self,
        name: &str,
        declared: Option<Type>,
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
    /// The address that a name means in the code of a thread.
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
    /// The variable that an address points into, and the distance from its start.
    pub fn at(&self, address: u64) -> Option<(&Variable, u64)> {
        let i = self.list.partition_point(|v| v.address <= address).checked_sub(1)?;
        let v = &self.list[i];
        let offset = address - v.address;
        (offset < v.element() * v.initial.len() as u64).then_some((v, offset))
    }
    /// The text of a value that may be an address.
    pub fn address_text(&self, value: u64) -> Option<String> {
        match self.at(value)? {
            (v, 0) => Some(v.name.clone()),
            (v, offset) if v.array && offset % v.element() == 0 => {
                Some(format!("{}[{}]", v.name, offset / v.element()))
            }
            (v, offset) => Some(format!("{}+{offset}", v.name)),
        }
    }
    /// The cells, given all that the code does.
    pub fn cells(&self, uses: &[Use]) -> Result<Vec<Cell>, Diagnostic> {
        let mut by_address: HashMap<u64, Vec<&Use>> = HashMap::new();
        for u in uses {
            if let Some(address) = u.address {
                by_address.entry(address).or_default().push(u);
            }
        }
        let mut roaming = uses.iter().filter(|u| u.address.is_none()).map(|u| u.width);
        let first = roaming.next();
        let roaming = first.filter(|w| roaming.all(|o| o == *w));
        let mut cells = Vec::new();
        for v in &self.list {
            for (i, &initial) in v.initial.iter().enumerate() {
                let address = v.address + i as u64 * v.element();
                let name = if v.array { format!("{}[{i}]", v.name) } else { v.name.clone() };
                let here = by_address.remove(&address).unwrap_or_default();
                let declared = v.declared.map(|t| t.width);
                let widest = here.iter().map(|u| u.width).max();
                let access = widest.or(roaming).or(declared).unwrap_or(Width::W32);
                let access =
                    if here.is_empty() && v.array { declared.unwrap_or(access) } else { access };
                if let Some(u) = here.iter().find(|u| u.write && u.width != access) {
                    return Err(mixed(&name, u.span, u.width, access));
                }
                let width = declared.unwrap_or(Type::INT.width);
                if let Some(wide) = here.iter().find(|u| u.width > width) {
                    return Err(beyond(&name, wide.span, wide.width, width));
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

/// The refusal of an access that is wider than what it accesses.
fn beyond(cell: &str, span: Span, found: Width, size: Width) -> Diagnostic {
    Diagnostic::at(Stage::Unsupported, span, format!("an access of {} bits goes beyond `{cell}`, which has {}", found.bits(), size.bits()))
        .note("a variable has the size of its declared type; without one it is an `int`, or a pointer if it holds an address at first")
}

/// The refusal of an access of another size.
pub(super) fn mixed(cell: &str, span: Span, found: Width, other: Width) -> Diagnostic {
    Diagnostic::at(
        Stage::Unsupported,
        span,
        format!(
            "accesses to `{cell}` have several sizes: {} bits here, {} bits elsewhere",
            found.bits(),
            other.bits()
        ),
    )
    .note("all stores to a variable must have one width, and loads at most that")
}
