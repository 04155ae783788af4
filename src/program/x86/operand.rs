//! Operands: registers, immediate values and memory, in the syntax of Intel and AT&T.
//!
//! The forms of herd's users are accepted as well: `[x]` and `(x)` in both styles, registers with
//! and without `%`, immediate values with and without `$`, `%name` for a symbolic register, and
//! `%cs:` before an address, since all segments are the same.

use super::super::Register;
use super::super::expr::{BinOp, Expr, Width};
use super::super::registers::{self, View};
use super::super::variables::Variables;
use super::statement::{AddressedMemory, Element, Number, SourceOperand};
use super::{Assembler, OperandOrder};
use mu_base::words::{Cursor, TokenKind};
use mu_base::{Diagnostic, Span, Stage};

/// An operand.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// A register or part of one.
    Register(Register, View, Span),
    /// Memory, with the size in the text if there is one.
    Memory(Expr, Option<Width>, Span),
    /// A number.
    Immediate(i64, Span),
}

impl Operand {
    pub fn span(&self) -> Span {
        match self {
            Operand::Register(_, _, s) | Operand::Memory(_, _, s) | Operand::Immediate(_, s) => *s,
        }
    }
    /// Returns its size in the text, or that of its register. `None` for numbers, symbolic
    /// registers, and memory without a size.
    pub fn width(&self) -> Option<Width> {
        match self {
            Operand::Register(_, view, _) => registers::parse(&view.full).map(|_| view.width),
            Operand::Memory(_, width, _) => *width,
            Operand::Immediate(..) => None,
        }
    }
    pub fn is_memory(&self) -> bool {
        matches!(self, Operand::Memory(..))
    }
    pub fn is_register(&self) -> bool {
        matches!(self, Operand::Register(..))
    }
    pub fn is_immediate(&self) -> bool {
        matches!(self, Operand::Immediate(..))
    }
}

/// A sum of address parts.
#[derive(Default)]
struct AddressSum {
    constant: u64,
    rest: Option<Expr>,
    /// The width of its widest register, which is the width of the address.
    width: Option<Width>,
}

impl AddressSum {
    fn add(&mut self, e: Expr) {
        self.rest = Some(match self.rest.take() {
            None => e,
            Some(before) => Expr::op(BinOp::Add, Width::W64, before, e),
        });
    }
    /// Returns the address, modulo 2^32 if its registers have 32 bits (Intel SDM volume 2, `LEA`,
    /// and volume 1, section 3.3.7).
    fn finish(self) -> Expr {
        let sum = match self.rest {
            None => return Expr::Const(self.constant),
            Some(e) if self.constant == 0 => e,
            Some(e) => Expr::op(BinOp::Add, Width::W64, e, Expr::Const(self.constant)),
        };
        if self.width == Some(Width::W32) { sum.part(0, Width::W32) } else { sum }
    }
}

impl Assembler {
    /// Looks up a register by name.
    pub(super) fn view(&mut self, name: &str, symbolic: bool) -> Option<(Register, View)> {
        let view = match registers::parse(name) {
            Some(view) => view,
            None if symbolic => View { full: name.to_string(), width: Width::W64, shift: 0 },
            None => return None,
        };
        Some((self.thread.register(&view.full), view))
    }

    /// Parses an operand. Returns it also in the form of the text.
    pub(super) fn operand(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
    ) -> Result<(Operand, SourceOperand), Diagnostic> {
        let first = cursor.peek();
        (self.element, self.named) = (None, None);
        (self.counts_threads, self.immediate_size) = (false, None);
        let operand = self.sized_operand(cursor, variables)?;
        let span = first.span.to(cursor.previous().span);
        self.expect_inside(&operand, variables, span)?;
        // `N` alone stays symbolic; in a sum it is the number of threads of this reading.
        let threads = first.text == "N"
            && self.constants.contains_key("N")
            && cursor.previous().span == first.span;
        // The number of the thread itself or of the next one, or the address of an own element.
        let is_of_thread = operand.is_immediate()
            && (matches!(self.element, Some(Element::Own | Element::Next))
                || self
                    .named
                    .as_ref()
                    .and_then(|n| variables.get(n))
                    .is_some_and(|v| v.per_thread));
        if self.counts_threads && !threads || is_of_thread {
            self.fixed_threads.get_or_insert(span);
        }
        let written = match &operand {
            Operand::Register(_, view, span) => SourceOperand::Register(view.clone(), *span),
            Operand::Immediate(_, span) if threads => {
                SourceOperand::Immediate(Number::Threads, *span)
            }
            Operand::Immediate(n, span) => SourceOperand::Immediate(Number::Literal(*n), *span),
            Operand::Memory(address, width, span) => {
                SourceOperand::Memory(self.place(address, variables), *width, *span)
            }
        };
        Ok((operand, written))
    }

    /// Rejects a constant address beyond the variable that it names, which may be that of another
    /// one in this layout.
    fn expect_inside(
        &self,
        operand: &Operand,
        variables: &Variables,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let (Operand::Memory(Expr::Const(address), ..), Some(name)) = (operand, &self.named) else {
            return Ok(());
        };
        if variables.at(*address).is_some_and(|(v, _)| v.name == *name) {
            return Ok(());
        }
        Err(Diagnostic::at(Stage::Unsupported, span, format!("an address beyond `{name}`"))
            .note("the layout of variables in memory is not defined"))
    }

    /// Returns the variable or element at an address.
    fn place(&self, address: &Expr, variables: &Variables) -> AddressedMemory {
        let Expr::Const(address) = address else { return AddressedMemory::Computed };
        match variables.at(*address) {
            Some((v, _)) if v.per_thread => {
                AddressedMemory::Element(v.name.clone(), self.element.unwrap_or(Element::Own))
            }
            Some((v, 0)) => AddressedMemory::Shared(v.name.clone()),
            _ => AddressedMemory::Computed,
        }
    }

    fn sized_operand(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
    ) -> Result<Operand, Diagnostic> {
        let start = cursor.peek().span;
        let mut width = None;
        // Size prefixes: dword, byte ptr, …
        while cursor.peek().kind == TokenKind::Name
            && !matches!(cursor.ahead(1).text, "," | ";" | "|" | "\n" | "")
        {
            match cursor.peek().text.to_ascii_lowercase().as_str() {
                "byte" => width = Some(Width::W8),
                "word" => width = Some(Width::W16),
                "dword" => width = Some(Width::W32),
                "qword" => width = Some(Width::W64),
                "ptr" if width.is_some() => {}
                _ => break,
            }
            cursor.take();
        }
        let operand = self.plain_operand(cursor, variables)?;
        let span = start.to(cursor.previous().span);
        Ok(match operand {
            Operand::Register(r, v, _) => Operand::Register(r, v, span),
            Operand::Memory(a, _, _) => Operand::Memory(a, width, span),
            Operand::Immediate(i, _) => {
                self.immediate_size = width;
                Operand::Immediate(i, span)
            }
        })
    }

    fn plain_operand(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
    ) -> Result<Operand, Diagnostic> {
        let token = cursor.peek();
        if cursor.eat("$") {
            let value = self.after_dollar(cursor, variables)?;
            return Ok(Operand::Immediate(value, token.span));
        }
        if cursor.is("%") {
            let (register, view) = self.percent(cursor)?;
            if cursor.eat(":") {
                return self.plain_operand(cursor, variables);
            }
            return Ok(Operand::Register(register, view, token.span));
        }
        if cursor.is("[") || cursor.is("(") {
            return Ok(Operand::Memory(
                self.address(cursor, variables, AddressSum::default())?,
                None,
                token.span,
            ));
        }
        if token.kind == TokenKind::Number || cursor.is("-") {
            let number = cursor.number()?;
            if cursor.is("[") || cursor.is("(") {
                let sum = AddressSum { constant: number as u64, ..AddressSum::default() };
                return Ok(Operand::Memory(
                    self.address(cursor, variables, sum)?,
                    None,
                    token.span,
                ));
            }
            return Ok(Operand::Immediate(number, token.span));
        }
        if token.kind != TokenKind::Name {
            return Err(cursor.unexpected("an operand"));
        }
        if let Some((register, view)) = self.view(token.text, false) {
            cursor.take();
            return Ok(Operand::Register(register, view, token.span));
        }
        // A name that is not a register may be misspelt, so a name without brackets must be
        // declared.
        let displacement = ["(", "["].contains(&cursor.ahead(1).text)
            || ["+", "-"].contains(&cursor.ahead(1).text);
        if !displacement
            && variables.declares_by_use()
            && variables.get(token.text).is_none()
            && !self.constants.contains_key(token.text)
        {
            let text = format!("`{}` is neither a register nor a declared variable", token.text);
            return Err(Diagnostic::at(Stage::Type, token.span, text)
                .note("memory is written `[x]` or `(x)`"));
        }
        let value = self.immediate(cursor, variables)?;
        if cursor.is("(") || cursor.is("[") {
            let sum = AddressSum { constant: value as u64, ..AddressSum::default() };
            return Ok(Operand::Memory(self.address(cursor, variables, sum)?, None, token.span));
        }
        // A bare name is memory in AT&T's syntax and an address in Intel's.
        if self.order == OperandOrder::Att && !self.constants.contains_key(token.text) {
            return Ok(Operand::Memory(Expr::Const(value as u64), None, token.span));
        }
        Ok(Operand::Immediate(value, token.span))
    }

    /// Parses a thread, or another operand after `$`.
    fn after_dollar(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
    ) -> Result<i64, Diagnostic> {
        if cursor.peek().kind == TokenKind::Name
            && let Some(&thread) = self.threads.get(cursor.peek().text)
        {
            let name = cursor.take();
            self.element = Some(if name.text == "self" { Element::Own } else { Element::Next });
            return Ok(thread);
        }
        let thread = self.immediate(cursor, variables)?;
        self.element = u32::try_from(thread).ok().map(Element::Of);
        Ok(thread)
    }

    /// Parses a number, a constant or an address, with numbers added to it.
    fn immediate(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
    ) -> Result<i64, Diagnostic> {
        if cursor.peek().kind != TokenKind::Name {
            return cursor.number();
        }
        let name = cursor.take();
        let mut value = match self.constants.get(name.text) {
            Some(&value) => {
                self.counts_threads = true;
                value
            }
            None => {
                self.named = Some(name.text.to_string());
                // Before `+ $thread` a name denotes the first element.
                let other = cursor.is("+") && cursor.ahead(1).text == "$";
                variables.address(name.text, name.span, if other { 0 } else { self.number })? as i64
            }
        };
        while (cursor.is("+") || cursor.is("-")) && cursor.ahead(1).kind == TokenKind::Number {
            cursor.eat("+");
            let by = cursor.number()?;
            if by != 0 && variables.get(name.text).is_some_and(|v| v.per_thread) {
                return Err(computed_address_error(
                    name.text,
                    name.span.to(cursor.previous().span),
                ));
            }
            value = value.wrapping_add(by);
        }
        Ok(value)
    }

    fn percent(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<(Register, View), Diagnostic> {
        cursor.expect("%")?;
        let name = cursor.name("a register")?;
        self.view(name.text, true).ok_or_else(|| {
            Diagnostic::at(Stage::Type, name.span, format!("`{}` is not a register", name.text))
        })
    }

    /// Parses the text in brackets or parentheses: a sum, or AT&T's base, index and scale.
    fn address(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
        mut sum: AddressSum,
    ) -> Result<Expr, Diagnostic> {
        let open = cursor.peek().span;
        let close = if cursor.eat("[") { "]" } else { ")" };
        cursor.eat("(");
        let mut part = 0;
        let mut moved = 0u64;
        loop {
            let negative = cursor.is("-");
            if cursor.is("%")
                || cursor.peek().kind == TokenKind::Name
                    && registers::parse(cursor.peek().text).is_some()
            {
                let span = cursor.peek().span;
                let (register, view) = if cursor.is("%") {
                    self.percent(cursor)?
                } else {
                    let name = cursor.take();
                    self.view(name.text, false)
                        .ok_or_else(|| Diagnostic::at(Stage::Type, name.span, "no register"))?
                };
                // All addresses are absolute here; the linker makes them relative to the
                // instruction.
                if view.full != "rip" {
                    if !matches!(view.width, Width::W32 | Width::W64) {
                        let message = format!(
                            "a register of {} bits in an address, expected 32 or 64",
                            view.width.bits()
                        );
                        return Err(Diagnostic::at(Stage::Type, span, message));
                    }
                    sum.width = sum.width.max(Some(view.width));
                    let mut e = Expr::Register(register).part(view.shift, view.width);
                    let scaled = cursor.eat("*") || part == 1 && cursor.eat(",");
                    if scaled {
                        let scale = cursor.number()?;
                        if ![0, 1, 2, 4, 8].contains(&scale) {
                            return Err(Diagnostic::at(
                                Stage::Syntax,
                                span,
                                format!("a scale of {scale}, expected 1, 2, 4 or 8"),
                            ));
                        }
                        e = Expr::op(BinOp::Mul, Width::W64, e, Expr::Const(scale as u64));
                    }
                    sum.add(e);
                }
            } else if cursor.peek().kind == TokenKind::Number || negative {
                let by = cursor.number()? as u64;
                moved = moved.wrapping_add(by);
                sum.constant = sum.constant.wrapping_add(by);
            } else if cursor.peek().kind == TokenKind::Name {
                sum.constant = sum.constant.wrapping_add(self.immediate(cursor, variables)? as u64);
            } else if cursor.eat("$") {
                // A thread: its element of thread data.
                let span = cursor.peek().span;
                let value = self.after_dollar(cursor, variables)?;
                let element = variables.at(sum.constant).filter(|(v, _)| {
                    v.per_thread && value >= 0 && (value as usize) < v.initial.len()
                });
                let Some((v, _)) = element else {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        span,
                        "not an element of a thread: expected a variable of `thread_data` and `$self`, `$next` or the number of a thread",
                    ));
                };
                sum.constant = sum.constant.wrapping_add((value as u64).wrapping_mul(v.element()));
            } else {
                return Err(cursor.unexpected("a register, a variable or a number"));
            }
            if cursor.is(",") && close == ")" {
                cursor.take();
                part += 1;
                continue;
            }
            if !cursor.eat("+") && !cursor.is("-") {
                break;
            }
        }
        cursor.expect(close)?;
        if (sum.rest.is_some() || moved != 0)
            && let Some((v, _)) =
                variables.at(sum.constant.wrapping_sub(moved)).filter(|(v, _)| v.per_thread)
        {
            return Err(computed_address_error(&v.name, open.to(cursor.previous().span)));
        }
        Ok(sum.finish())
    }
}

/// Builds the error for a register or number added to the name of thread data, which denotes the
/// own element.
fn computed_address_error(name: &str, span: Span) -> Diagnostic {
    let message = format!(
        "`{name}` is thread data, with an element for each thread: a computed address of it is not supported"
    );
    Diagnostic::at(Stage::Unsupported, span, message)
        .note(format!("`[{name}]` is the element of the thread itself, `[{name} + $next]` that of the next thread, `[{name} + $1]` that of thread 1"))
}
