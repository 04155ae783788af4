//! Unsafe states of an x86 program: conjunctions over the registers, positions and memory of some
//! distinct threads.
//!
//! Input: the tokens of an `unsafe_prop` section. Output: a [`Property`], its evaluation in a
//! state, and the slots that it reads. `$t` is any thread: `eax[$t]` is its register, `eip[$t]` its
//! position in the code, `x[$t]` its element of thread data and `$t:x` shared data as it reads them
//! (its own buffered stores first), `x` the content of memory; any other name is a label. Words are
//! compared as signed numbers. A number is a word of the width that it is compared with.

use super::expr::Width;
use super::machine::Machine;
use super::registers;
use super::variables::Variables;
use super::x86::too_wide;
use super::{Program, Register};
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_model::Slot;
use std::collections::HashMap;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    Different,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Parses a comparison operator.
    fn of_sign(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" | "==" => Comparison::Equal,
            "<>" | "!=" => Comparison::Different,
            "<" => Comparison::Less,
            "<=" => Comparison::AtMost,
            ">" => Comparison::Greater,
            ">=" => Comparison::AtLeast,
            _ => return None,
        })
    }
}

/// Returns the signed value of a literal as a word of a width; `None` if it has more bits. So
/// `0xffffffff` is -1 in 32 bits.
pub fn word(number: i64, width: Width) -> Option<i64> {
    width.holds(number).then(|| width.to_signed(number as u64 & width.mask()))
}

/// True if the next comparison is about positions in the code. A name compared with `eip` is always
/// a label.
pub(super) fn compares_places(cursor: &Cursor<'_, '_>) -> bool {
    (0..)
        .map(|i| cursor.ahead(i))
        .take_while(|t| t.kind != TokenKind::End && t.text != "&&")
        .any(|t| t.text == "eip")
}

/// One side of a comparison. Threads are indices into [`Property::variables`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyTerm {
    /// A number.
    Number(i64),
    /// Bits of a register of a thread; the index of the register differs between threads.
    Register(usize, Vec<Register>, u32, Width),
    /// The position of a thread.
    Place(usize),
    /// The number of threads, `N`.
    Threads(i64),
    /// A label: the step after it, in each thread that has the label.
    Label(String, Vec<Option<u32>>),
    /// The content of a cell of memory.
    Memory(usize),
    /// A cell as a thread reads it: the thread, the first cell and, for thread data, the thread
    /// that owns the element.
    ThreadView(usize, usize, Option<usize>),
}

/// A conjunction that holds for some distinct threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The names of its threads, without `$`.
    pub variables: Vec<String>,
    /// The comparisons, all of which must hold.
    pub atoms: Vec<(PropertyTerm, Comparison, PropertyTerm)>,
    /// The position of each comparison.
    pub spans: Vec<Span>,
    /// For each thread, the number of its code: positions in two codes differ.
    pub codes: Vec<usize>,
}

/// The scope of a property's names.
pub(super) struct PropertyScope<'a> {
    pub program: &'a mut Program,
    pub variables: &'a Variables,
    pub labels: &'a [HashMap<String, u32>],
    pub codes: &'a [usize],
}

/// Parses a conjunction, up to the end of the tokens.
pub(super) fn conjunction(
    tokens: &[Token<'_>],
    span: Span,
    scope: PropertyScope<'_>,
) -> Result<Property, Diagnostic> {
    // Line breaks are ignored here.
    let tokens: Vec<Token<'_>> = tokens.iter().filter(|t| t.text != "\n").copied().collect();
    let found = Property {
        variables: Vec::new(),
        atoms: Vec::new(),
        spans: Vec::new(),
        codes: scope.codes.to_vec(),
    };
    let mut reader = PropertyReader { cursor: Cursor::new(&tokens), scope, found };
    loop {
        reader.atom()?;
        if reader.cursor.at_end() {
            break;
        }
        if !reader.cursor.eat("&&") {
            return Err(reader.cursor.unexpected("`&&` or the end of the section"));
        }
    }
    let (needed, threads) = (reader.found.variables.len(), reader.scope.labels.len());
    if needed > threads {
        let text = format!(
            "a property of {needed} distinct threads, but there {} only {threads}",
            if threads == 1 { "is" } else { "are" }
        );
        return Err(Diagnostic::at(Stage::Type, span, text)
            .note("`--threads-of N` gives the number of threads"));
    }
    Ok(reader.found)
}

struct PropertyReader<'a, 't, 's> {
    cursor: Cursor<'a, 't>,
    scope: PropertyScope<'s>,
    found: Property,
}

impl PropertyReader<'_, '_, '_> {
    fn atom(&mut self) -> Result<(), Diagnostic> {
        let start = self.cursor.peek().span;
        let label = compares_places(&self.cursor);
        let mut left = self.term(label)?;
        let sign = self.cursor.take();
        let Some(comparison) = Comparison::of_sign(sign.text) else {
            let found = if sign.kind == TokenKind::End {
                "the end of the section".into()
            } else {
                format!("`{}`", sign.text)
            };
            let text =
                format!("expected a comparison (`=`, `<>`, `<`, `<=`, `>`, `>=`), found {found}");
            return Err(Diagnostic::at(Stage::Syntax, sign.span, text));
        };
        let mut right = self.term(label)?;
        let is_place =
            |t: &PropertyTerm| matches!(t, PropertyTerm::Place(_) | PropertyTerm::Label(..));
        let span = start.to(self.cursor.previous().span);
        if is_place(&left) != is_place(&right) {
            return Err(Diagnostic::at(
                Stage::Type,
                span,
                "a place in the code is compared with a number",
            )
            .note("`eip[$t]` is compared with a label"));
        }
        if is_place(&left) && !matches!(comparison, Comparison::Equal | Comparison::Different) {
            return Err(Diagnostic::at(Stage::Type, sign.span, "places in the code have no order")
                .note("use `=` or `<>`"));
        }
        let widths = (self.width(&left), self.width(&right));
        for (term, width) in [(&mut left, widths.1), (&mut right, widths.0)] {
            if let (PropertyTerm::Number(n), Some(width)) = (term, width) {
                *n = word(*n, width).ok_or_else(|| {
                    Diagnostic::at(Stage::Type, span, too_wide(*n, width, "this comparison"))
                })?;
            }
        }
        self.found.atoms.push((left, comparison, right));
        self.found.spans.push(span);
        Ok(())
    }

    /// Returns the width of a register or of memory.
    fn width(&self, term: &PropertyTerm) -> Option<Width> {
        match term {
            PropertyTerm::Register(.., width) => Some(*width),
            PropertyTerm::Memory(cell) | PropertyTerm::ThreadView(_, cell, _) => {
                Some(self.scope.program.cells[*cell].width)
            }
            PropertyTerm::Number(_)
            | PropertyTerm::Threads(_)
            | PropertyTerm::Place(_)
            | PropertyTerm::Label(..) => None,
        }
    }

    fn thread(&mut self) -> Result<usize, Diagnostic> {
        self.cursor.expect("$").map_err(|_| self.cursor.unexpected("a thread, `$t`"))?;
        let name = self.cursor.name("the name of a thread")?;
        let known = self.found.variables.iter().position(|v| v == name.text);
        Ok(known.unwrap_or_else(|| {
            self.found.variables.push(name.text.into());
            self.found.variables.len() - 1
        }))
    }

    fn index(&mut self) -> Result<usize, Diagnostic> {
        self.cursor.expect("[")?;
        let thread = self.thread()?;
        self.cursor.expect("]")?;
        Ok(thread)
    }

    /// Returns the first cell of a variable, and whether each thread has an element.
    fn variable(&self, name: Token<'_>) -> Result<(usize, bool), Diagnostic> {
        let Some(v) = self.scope.variables.get(name.text) else {
            let known: Vec<&str> =
                self.scope.variables.list().iter().map(|v| v.name.as_str()).collect();
            let mut error = Diagnostic::at(
                Stage::Type,
                name.span,
                format!("`{}` is not a variable, a label or a register", name.text),
            );
            if !known.is_empty() {
                error = error.note(format!("variables: {}", known.join(", ")));
            }
            return Err(error);
        };
        let cell = self.scope.program.cell_at(v.address);
        let cell = cell.ok_or_else(|| {
            Diagnostic::internal(format!(
                "`{}` has the address {:#x}, where memory has no cell",
                name.text, v.address
            ))
        })?;
        Ok((cell, v.per_thread))
    }

    fn term(&mut self, label: bool) -> Result<PropertyTerm, Diagnostic> {
        let cursor = &mut self.cursor;
        if cursor.is("$") {
            let thread = self.thread()?;
            self.cursor.expect(":")?;
            let name = self.cursor.name("a variable")?;
            let (cell, per_thread) = self.variable(name)?;
            let element = match (per_thread, self.cursor.is("[")) {
                (true, true) => Some(self.index()?),
                (true, false) => Some(thread),
                (false, true) => {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        name.span,
                        format!("`{}` is shared data: it has no element for a thread", name.text),
                    ));
                }
                (false, false) => None,
            };
            return Ok(PropertyTerm::ThreadView(thread, cell, element));
        }
        if cursor.peek().kind == TokenKind::Number || cursor.is("-") {
            return Ok(PropertyTerm::Number(cursor.number()?));
        }
        let name = cursor.name("a register, a variable, a label or a number")?;
        if cursor.is("[") {
            let thread = self.index()?;
            if name.text == "eip" {
                return Ok(PropertyTerm::Place(thread));
            }
            if let Some(view) = registers::parse(name.text) {
                let own =
                    self.scope.program.threads.iter_mut().map(|t| t.register(&view.full)).collect();
                return Ok(PropertyTerm::Register(thread, own, view.shift, view.width));
            }
            let (cell, per_thread) = self.variable(name)?;
            if !per_thread {
                return Err(Diagnostic::at(
                    Stage::Type,
                    name.span,
                    format!("`{}` is shared data: it has no element for a thread", name.text),
                )
                .note(format!(
                    "`{0}` is its value in memory, `$t:{0}` its value as thread `$t` reads it",
                    name.text
                )));
            }
            return Ok(PropertyTerm::ThreadView(thread, cell, Some(thread)));
        }
        let places: Vec<Option<u32>> =
            self.scope.labels.iter().map(|l| l.get(name.text).copied()).collect();
        let is_label = places.iter().any(Option::is_some);
        if label || is_label && self.scope.variables.get(name.text).is_none() {
            if !is_label {
                return Err(Diagnostic::at(
                    Stage::Type,
                    name.span,
                    format!("no thread has a label `{}`", name.text),
                ));
            }
            return Ok(PropertyTerm::Label(name.text.into(), places));
        }
        if name.text == "N" {
            return Ok(PropertyTerm::Threads(self.scope.labels.len() as i64));
        }
        let (cell, per_thread) = self.variable(name)?;
        if per_thread {
            return Err(Diagnostic::at(
                Stage::Type,
                name.span,
                format!("`{0}` has an element for each thread: `{0}[$t]`", name.text),
            ));
        }
        Ok(PropertyTerm::Memory(cell))
    }
}

impl Property {
    /// Returns all choices of distinct threads.
    pub fn choices(&self, threads: usize) -> Vec<Vec<usize>> {
        let mut out = vec![Vec::new()];
        for _ in &self.variables {
            let longer = out.iter().flat_map(|c: &Vec<usize>| {
                (0..threads)
                    .filter(|t| !c.contains(t))
                    .map(|t| c.iter().copied().chain([t]).collect::<Vec<_>>())
            });
            out = longer.collect();
        }
        out
    }
    /// True if it holds in a state for the chosen threads.
    pub fn holds(&self, machine: &Machine, state: &[u32], chosen: &[usize]) -> bool {
        let shown = |cell: usize, value: u64| {
            i128::from(machine.program.cells[cell].width.to_signed(value))
        };
        let value = |term: &PropertyTerm, other: &PropertyTerm| -> Option<i128> {
            Some(match term {
                PropertyTerm::Number(n) | PropertyTerm::Threads(n) => i128::from(*n),
                PropertyTerm::Register(t, own, shift, width) => {
                    let t = chosen[*t];
                    i128::from(
                        width.to_signed(machine.register(t, own[t], state) >> shift & width.mask()),
                    )
                }
                PropertyTerm::Place(t) => {
                    let t = chosen[*t];
                    self.position(t, narrow::index(machine.place(t, state)))
                }
                // A label is resolved in the thread that it is compared with.
                PropertyTerm::Label(_, places) => {
                    let t = match other {
                        PropertyTerm::Place(t) => chosen[*t],
                        _ => places.iter().position(Option::is_some)?,
                    };
                    self.position(t, places[t]?)
                }
                PropertyTerm::Memory(cell) => shown(*cell, machine.cell(*cell, state)),
                PropertyTerm::ThreadView(t, cell, element) => {
                    let cell = cell + element.map_or(0, |e| chosen[e]);
                    shown(cell, machine.read_value(chosen[*t], cell, state))
                }
            })
        };
        self.atoms.iter().all(|(a, comparison, b)| match (value(a, b), value(b, a)) {
            (Some(x), Some(y)) => match comparison {
                Comparison::Equal => x == y,
                Comparison::Different => x != y,
                Comparison::Less => x < y,
                Comparison::AtMost => x <= y,
                Comparison::Greater => x > y,
                Comparison::AtLeast => x >= y,
            },
            // A thread without the label is never at it.
            _ => *comparison == Comparison::Different,
        })
    }
    /// Returns the number of a position of a thread, among those of all codes.
    fn position(&self, thread: usize, place: u32) -> i128 {
        (self.codes[thread] as i128) << 32 | i128::from(place)
    }
    /// Finds threads for which it holds in a state. `None` if it holds for no choice of threads.
    pub fn witnesses(&self, machine: &Machine, state: &[u32]) -> Option<Vec<usize>> {
        self.choices(machine.program.threads.len())
            .into_iter()
            .find(|c| self.holds(machine, state, c))
    }
    /// Returns the registers of each thread that it reads.
    pub fn registers(&self, threads: usize) -> Vec<Vec<Register>> {
        let mut out = vec![Vec::new(); threads];
        for term in self.terms() {
            if let PropertyTerm::Register(_, own, ..) = term {
                out.iter_mut().zip(own).for_each(|(list, r)| list.push(*r));
            }
        }
        out
    }
    /// True if it reads memory, directly or as a thread. Store buffers change these values without
    /// a step of the code.
    pub fn reads_memory(&self) -> bool {
        self.terms().any(|t| matches!(t, PropertyTerm::Memory(_) | PropertyTerm::ThreadView(..)))
    }
    /// Returns the slots that it reads.
    pub fn slots(&self, machine: &Machine) -> Vec<Slot> {
        let threads = machine.program.threads.len();
        let mut out = Vec::new();
        for term in self.terms() {
            for t in 0..threads {
                match term {
                    PropertyTerm::Number(_)
                    | PropertyTerm::Threads(_)
                    | PropertyTerm::Label(..) => {}
                    PropertyTerm::Register(_, own, ..) => {
                        out.push(machine.register_slot(t, own[t]) as Slot)
                    }
                    PropertyTerm::Place(_) => out.push(machine.place_slot(t) as Slot),
                    PropertyTerm::Memory(cell) => out.push(machine.cell_slot(*cell) as Slot),
                    PropertyTerm::ThreadView(_, cell, element) => {
                        out.extend(machine.buffer_slot(t).map(|b| b as Slot));
                        out.push(machine.cell_slot(cell + element.map_or(0, |_| t)) as Slot);
                    }
                }
            }
        }
        out
    }
    /// Returns the positions of each thread that it distinguishes from others.
    pub fn places(&self, program: &Program) -> Vec<Vec<u32>> {
        let mut out = vec![Vec::new(); program.threads.len()];
        // Positions of two threads are compared, so every step may change the answer.
        let is_place = |t: &PropertyTerm| matches!(t, PropertyTerm::Place(_));
        if self.atoms.iter().any(|(a, _, b)| is_place(a) && is_place(b)) {
            for (list, thread) in out.iter_mut().zip(&program.threads) {
                list.extend(0..=narrow::index(thread.steps.len()));
            }
        }
        for term in self.terms() {
            if let PropertyTerm::Label(_, places) = term {
                out.iter_mut().zip(places).for_each(|(list, p)| list.extend(p));
            }
        }
        out
    }
    fn terms(&self) -> impl Iterator<Item = &PropertyTerm> {
        self.atoms.iter().flat_map(|(a, _, b)| [a, b])
    }
}
