//! Observations of litmus tests: registers of threads and locations in memory, with the resolution
//! of their names, for the questions of the layer `outcome`.

use crate::code::Register;
use crate::init::{self, InitialValue};
use crate::layout::{DEFAULT, IntegerType, MemoryLayout};
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Stage};
use mu_program::outcome::{Addresses, NameResolver, question};

/// A place with an observed final value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObservedPlace {
    /// A register of a thread.
    Register(u32, Register),
    /// A range of a variable, by its offset: an element, or the whole variable if it is not an
    /// array.
    Memory(u32, u32),
}

/// An observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The place.
    pub place: ObservedPlace,
    /// Its type, for comparisons and output.
    pub shown: IntegerType,
    /// Its name.
    pub text: String,
}

impl question::Observed for Observed {
    fn is(&self, other: &Self) -> bool {
        self.place == other.place
    }
    fn bits(&self, value: u64) -> u64 {
        self.shown.bits(value)
    }
    fn number(&self, value: u64) -> i128 {
        let converted = self.shown.convert(value);
        if self.shown.signed { i128::from(converted as i64) } else { i128::from(converted) }
    }
    /// Two registers are compared in full, independent of their types.
    fn values_agree(&self, value: u64, other: &Self, of_other: u64) -> bool {
        match (self.place, other.place) {
            (ObservedPlace::Register(..), ObservedPlace::Register(..)) => value == of_other,
            _ => self.number(value) == other.number(of_other),
        }
    }
    fn name(&self) -> &str {
        &self.text
    }
    fn thread(&self) -> Option<u32> {
        match self.place {
            ObservedPlace::Register(thread, _) => Some(thread),
            ObservedPlace::Memory(..) => None,
        }
    }
}

impl Addresses for MemoryLayout {
    fn address_text(&self, address: u64) -> Option<String> {
        MemoryLayout::address_text(self, address)
    }
}

/// Resolver of the registers in a condition.
pub trait Registers {
    /// Returns a register with its type and its printed name.
    fn register(
        &mut self,
        thread: u32,
        name: &Token<'_>,
        symbolic: bool,
    ) -> Result<(Register, IntegerType, String), Diagnostic>;
    /// Returns the address of a label of a thread.
    fn label(&mut self, thread: u32, name: &Token<'_>) -> Result<u64, Diagnostic>;
}

/// Resolver of the names in a condition.
pub struct KnownNames<'r> {
    /// Registers.
    pub registers: &'r mut dyn Registers,
    /// Memory.
    pub layout: &'r mut MemoryLayout,
}

impl NameResolver for KnownNames<'_> {
    type Observed = Observed;
    fn elements(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
    ) -> Result<Option<Vec<Observed>>, Diagnostic> {
        let [name, sign, brace] = [0, 1, 2].map(|n| cursor.ahead(n));
        let is_array = name.kind == TokenKind::Name
            && matches!(sign.text, "=" | "!=")
            && brace.text == "{"
            && self.layout.find(name.text).is_some();
        if is_array { self.listed_locations(cursor).map(Some) } else { Ok(None) }
    }
    fn listed_locations(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
    ) -> Result<Vec<Observed>, Diagnostic> {
        let bracketed = cursor.is("[") || cursor.is("*");
        let name = cursor.ahead(usize::from(bracketed));
        if name.kind == TokenKind::Name && thread_of(cursor).is_none() {
            let v = self.layout.variable(name.text);
            let variable = &self.layout.variables()[v as usize];
            // An array as a whole.
            if let Some(elements) = variable.elements
                && cursor.ahead(usize::from(bracketed) + 1).text != "["
            {
                let (size, shown) = (variable.element(), variable.declared.unwrap_or(DEFAULT));
                cursor.eat("[");
                cursor.eat("*");
                cursor.take();
                cursor.eat("]");
                let element = |i: u32| Observed {
                    place: ObservedPlace::Memory(v, i * size),
                    shown,
                    text: format!("{}[{i}]", name.text),
                };
                return Ok((0..elements).map(element).collect());
            }
        }
        Ok(vec![self.location(cursor)?])
    }
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<Observed, Diagnostic> {
        if let Some(thread) = thread_of(cursor) {
            cursor.take();
            cursor.expect(":")?;
            if matches!(cursor.peek().text, "X" | "W") && cursor.ahead(1).text == "%" {
                cursor.take();
            }
            let symbolic = cursor.eat("%");
            let name = cursor.name("a register")?;
            let (register, shown, text) = self.registers.register(thread, &name, symbolic)?;
            return Ok(Observed {
                place: ObservedPlace::Register(thread, register),
                shown,
                text: format!("{thread}:{text}"),
            });
        }
        if cursor.is_word("fault") && cursor.ahead(1).text == "(" {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                cursor.peek().span,
                "conditions on faults are not supported",
            )
            .note("supported: values of registers and variables"));
        }
        let bracketed = cursor.eat("[") || {
            cursor.eat("*");
            false
        };
        let name = cursor.name("a register or a variable")?;
        let index = if cursor.eat("[") {
            let i = cursor.number()?;
            cursor.expect("]")?;
            Some(i)
        } else {
            None
        };
        if bracketed {
            cursor.expect("]")?;
        }
        let v = self.layout.find(name.text).ok_or_else(|| no_variable(&name))?;
        // The address must be known; addresses of elements are.
        InitialValue::Address(name, index.unwrap_or(0)).resolve(self.layout)?;
        let variable = &self.layout.variables()[v as usize];
        if variable.elements.is_some() && index.is_none() {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                name.span,
                format!("a condition cannot refer to the whole array `{}`", name.text),
            )
            .note(format!("expected an element, such as `{}[0]`", name.text)));
        }
        let text =
            index.map_or_else(|| format!("[{}]", name.text), |i| format!("{}[{i}]", name.text));
        let offset = u32::try_from(index.unwrap_or(0)).expect("an element of the variable")
            * variable.element();
        let shown = variable.declared.unwrap_or(DEFAULT);
        Ok(Observed { place: ObservedPlace::Memory(v, offset), shown, text })
    }
    fn value(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic> {
        if let Some((thread, name)) = init::label(cursor)? {
            return self.registers.label(thread, &name);
        }
        let value = init::value(cursor)?;
        match value {
            InitialValue::Address(name, _)
                if name.text != "NOP" && self.layout.find(name.text).is_none() =>
            {
                Err(no_variable(&name))
            }
            _ => value.resolve(self.layout),
        }
    }
}

/// Returns the thread of a register, `0:x5` or `P0:x5`; `None` if no register follows.
pub(crate) fn thread_of(cursor: &Cursor<'_, '_>) -> Option<u32> {
    let first = cursor.peek();
    let number = match first.kind {
        TokenKind::Number => first.text,
        TokenKind::Name => first.text.strip_prefix('P')?,
        _ => return None,
    };
    let thread = number.parse().ok()?;
    (cursor.ahead(1).text == ":").then_some(thread)
}

fn no_variable(name: &Token<'_>) -> Diagnostic {
    let message = format!("`{}` occurs neither in the initial state nor in the code", name.text);
    Diagnostic::at(Stage::Type, name.span, message).note("expected a variable of the test")
}
