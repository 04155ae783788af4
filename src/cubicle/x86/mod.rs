//! x86 programs for any number of threads as systems: x86-tso-programs (Conchon, Declerck, Zaïdi 2017), section 4.
//!
//! [`Source`] → syntax tree of a system. Places in the code are an enumeration, `PC` is where a thread is; a register is an array of numbers; shared data is a
//! weak variable, thread data a weak array, a counter a weak array of truth values of which as many are `True` as it counts. An instruction is one
//! transition; one that reads and writes memory without `lock` is two, with the value between them in `T`; a conditional jump is two.
//! Flags: `ZF` holds the result that decides it, which is set if that is 0, `SF` likewise if it is negative; only flags that some jump reads are kept.
//! Parity, overflow and carry are told from results too, where it is known which there may be ([`values`]).
//!
//! Where this departs from the paper: a locked compare-and-exchange that fails waits for the empty buffer as well, as x86 does; a counter's
//! decrement sets the flags. What is approximated: numbers have no bound (x86 wraps at 32 bits); a counter that would leave the range from 0 to the
//! number of threads blocks, so that a proof is of programs whose counters stay there. What has no counterpart is refused by name: parts of registers,
//! computed addresses, bit operations, jumps on parity, overflow or carry after results without bound, steps of counters without `lock`.

mod counters;
mod instructions;
mod values;

use crate::ast::{Cmp, Declared, Expr, File, Item, Name, Right, Term, Update, Value};
use mu_base::source::Place;
use mu_base::{Diagnostic, Span, Stage};
use mu_program::parametric::{Declaration, Instruction, Number, Operand, Side, Source, Unsafe};
use mu_program::property::Comparison;
use num_rational::BigRational;

/// How programs are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Registers and flags hold anything at the start, instead of zero.
    pub any_registers: bool,
    /// `xchg` with memory is atomic with the prefix `lock` only (x86 locks it anyway).
    pub split_xchg: bool,
}

/// How large a system is, counted as x86-tso-programs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Arrays that are not in memory: places, flags, registers.
    pub registers: usize,
    /// Symbols in memory.
    pub weak: usize,
    /// Transitions as written.
    pub transitions: usize,
}

/// The columns of a system.
pub fn columns(file: &File) -> Columns {
    let count = |test: fn(&Item) -> bool| file.items.iter().filter(|i| test(i)).count();
    Columns {
        registers: count(|i| matches!(i, Item::Symbol { declared: Declared::Plain, .. })),
        weak: count(|i| matches!(i, Item::Symbol { declared: Declared::Weak, .. })),
        transitions: count(|i| matches!(i, Item::Transition { .. })),
    }
}

/// Translates a program.
///
/// # Errors
/// Instructions and operands that have no counterpart, with their places; unknown labels.
pub fn translate(source: &Source, options: Options) -> Result<File, Diagnostic> {
    let mut translator = Translator::new(source, options)?;
    for at in 0..source.code.len() {
        translator.instruction(at)?;
    }
    let claims = source.unsafe_states.iter().map(|u| translator.claim(u)).collect::<Result<Vec<_>, _>>()?;
    Ok(translator.finish(claims))
}

/// The thread that acts, and another one.
const SELF: &str = "t";
const OTHER: &str = "o";

struct Translator<'a> {
    source: &'a Source,
    options: Options,
    /// The name of the place of each instruction, and of the end.
    points: Vec<String>,
    /// Places inside instructions.
    inner: Vec<String>,
    /// Whether some jump reads the zero flag, the sign flag.
    flags: (bool, bool),
    /// Registers in use, in order.
    registers: Vec<String>,
    /// Whether a value is carried from a read to a write.
    carries: bool,
    transitions: Vec<Item>,
    /// What the flags before each instruction may come from, where some jump asks for more than zero and sign; none where control never is.
    results: Vec<Option<values::Flags>>,
}

fn name(text: impl Into<String>) -> Name {
    Name { text: text.into(), place: Place::default() }
}

fn number(n: i64) -> Term {
    let digits = Term::Number(BigRational::from_integer(n.unsigned_abs().into()), false, Place::default());
    if n < 0 { Term::Neg(Box::new(digits)) } else { digits }
}

fn own(array: &str) -> Term {
    Term::Cell(name(array), vec![name(SELF)])
}

fn constant(text: &str) -> Term {
    Term::Name(name(text))
}

fn compare(a: Term, cmp: Cmp, b: Term) -> Expr {
    Expr::Compare(a, cmp, b)
}

/// `a + b`, with what is simpler where one is a number.
fn plus(a: Term, b: Term) -> Term {
    match (&a, &b) {
        (_, Term::Neg(n)) => Term::Sub(Box::new(a), n.clone()),
        (_, Term::Number(n, ..)) if *n == BigRational::from_integer(0.into()) => a,
        _ => Term::Add(Box::new(a), Box::new(b)),
    }
}

fn minus(a: Term, b: Term) -> Term {
    match (&a, &b) {
        (_, Term::Neg(n)) => Term::Add(Box::new(a), n.clone()),
        (_, Term::Number(n, ..)) if *n == BigRational::from_integer(0.into()) => a,
        _ => Term::Sub(Box::new(a), Box::new(b)),
    }
}

fn unsupported<T>(span: Span, message: impl Into<String>) -> Result<T, Diagnostic> {
    Err(Diagnostic::at(Stage::Unsupported, span, message))
}

/// A name with a capital first letter and no signs.
fn capital(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let clean = clean.trim_start_matches('_');
    let mut letters = clean.chars();
    match letters.next() {
        Some(c) if c.is_ascii_alphabetic() => format!("{}{}", c.to_ascii_uppercase(), letters.as_str()),
        _ => format!("X{clean}"),
    }
}

impl<'a> Translator<'a> {
    fn new(source: &'a Source, options: Options) -> Result<Self, Diagnostic> {
        let mut taken: Vec<String> = ["PC", "ZF", "SF", "T", "True", "False"].map(String::from).into();
        taken.extend(source.variables.iter().map(|v| v.name.clone()));
        let mut points: Vec<String> = Vec::new();
        for (i, instruction) in source.code.iter().enumerate() {
            let mut own = instruction.labels.first().map_or_else(|| format!("L{i}"), |l| capital(l));
            while taken.contains(&own) {
                own.push('_');
            }
            taken.push(own.clone());
            points.push(own);
        }
        let end = if taken.iter().any(|t| t == "End") { "End_" } else { "End" };
        points.push(end.into());
        // A place without an instruction is that of the next one, under the name of the first that has a label.
        for i in (0..source.code.len()).rev() {
            if source.code[i].word.is_empty() {
                let labelled = !source.code[i].labels.is_empty() && source.code.get(i + 1).is_none_or(|next| next.labels.is_empty());
                if labelled {
                    points[i + 1] = points[i].clone();
                }
                points[i] = points[i + 1].clone();
            }
        }
        // Names given to what comes later reach back.
        for i in (0..source.code.len()).rev() {
            if source.code[i].word.is_empty() {
                points[i] = points[i + 1].clone();
            }
        }
        let mut translator = Translator {
            source,
            options,
            points,
            inner: Vec::new(),
            flags: (false, false),
            registers: Vec::new(),
            carries: false,
            transitions: Vec::new(),
            results: Vec::new(),
        };
        let mut values = false;
        for instruction in &source.code {
            match instruction.word.as_str() {
                "je" | "jz" | "jne" | "jnz" => translator.flags.0 = true,
                "js" | "jns" | "jl" | "jnge" | "jge" | "jnl" => translator.flags.1 = true,
                "jle" | "jng" | "jg" | "jnle" => translator.flags = (true, true),
                "jp" | "jpe" | "jnp" | "jpo" => {
                    translator.flags.0 = true;
                    values = true;
                }
                "jo" | "jno" => values = true,
                "jb" | "jc" | "jnae" | "jnb" | "jnc" | "jae" => {
                    translator.flags.1 = true;
                    values = true;
                }
                "jbe" | "jna" | "ja" | "jnbe" => {
                    translator.flags = (true, true);
                    values = true;
                }
                _ => {}
            }
        }
        if values {
            translator.results = values::flags(source, options);
        }
        translator.name_clash()?;
        Ok(translator)
    }
    /// Variables whose names, as names of the system, are those of others.
    fn name_clash(&self) -> Result<(), Diagnostic> {
        let reserved = ["PC", "ZF", "SF", "T", "EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP", "True", "False"];
        for (i, v) in self.source.variables.iter().enumerate() {
            let own = capital(&v.name);
            let twice = self.source.variables[..i].iter().any(|w| capital(&w.name) == own);
            if twice || reserved.contains(&own.as_str()) || self.points.contains(&own) {
                let message =
                    format!("the variable `{}` would be `{own}`, which is another name of the system, expected another one", v.name);
                return unsupported(v.span, message);
            }
        }
        Ok(())
    }
    fn variable(&self, text: &str) -> Option<&'a Declaration> {
        self.source.variables.iter().find(|v| v.name == text)
    }
    fn is_counter(&self, operand: &Operand) -> Option<&'a Declaration> {
        match operand {
            Operand::Memory(v, _) => self.variable(v).filter(|v| v.counter),
            _ => None,
        }
    }
    fn register(&mut self, text: &str) -> String {
        let own = text.to_ascii_uppercase();
        if !self.registers.contains(&own) {
            self.registers.push(own.clone());
        }
        own
    }
    /// The cell of memory of an operand: its name and indices.
    fn memory(&self, operand: &Operand) -> Option<(Name, Vec<Name>)> {
        match operand {
            Operand::Memory(v, _) if self.variable(v).is_some_and(|v| v.per_thread) => Some((name(capital(v)), vec![name(SELF)])),
            Operand::Memory(v, _) => Some((name(capital(v)), Vec::new())),
            Operand::Element(v, n, _) => Some((name(capital(v)), vec![name(format!("#{}", n + 1))])),
            _ => None,
        }
    }
    /// The value of an operand.
    fn value(&mut self, operand: &Operand) -> Result<Term, Diagnostic> {
        if self.is_counter(operand).is_some() {
            let message = "a counter can be moved to 0 or N, incremented, decremented, and compared with 0 or N; its value cannot be read";
            return unsupported(operand.span(), message);
        }
        if let Some((array, args)) = self.memory(operand) {
            return Ok(if args.is_empty() { Term::Name(array) } else { Term::Cell(array, args) });
        }
        match operand {
            Operand::Register(r, _) => Ok(own(&self.register(r))),
            Operand::Immediate(Number::Is(n), _) => Ok(number(*n)),
            Operand::Immediate(Number::Threads, span) => {
                unsupported(*span, "`N` has no value here: only a counter can be compared with it or set to it")
            }
            Operand::Label(l, span) => unsupported(*span, format!("`{l}` is a place in the code, expected a value")),
            Operand::Memory(..) | Operand::Element(..) => unsupported(operand.span(), "memory without a name"),
        }
    }
    /// An update of an operand.
    fn store(&mut self, operand: &Operand, value: Term) -> Result<Update, Diagnostic> {
        let (target, args) = match (self.memory(operand), operand) {
            (Some(cell), _) => cell,
            (None, Operand::Register(r, _)) => (name(self.register(r)), vec![name(SELF)]),
            (None, other) => return unsupported(other.span(), "this cannot be written, expected a register or memory"),
        };
        Ok(Update { by: None, name: target, args, right: Right::Value(Value::Term(value)) })
    }
    fn set(array: &str, value: Term) -> Update {
        Update { by: None, name: name(array), args: vec![name(SELF)], right: Right::Value(Value::Term(value)) }
    }
    fn goes(&self, to: &str) -> Update {
        Self::set("PC", constant(to))
    }
    /// The updates of the flags that are kept.
    fn flagged(&self, zero: Term, sign: Term) -> Vec<Update> {
        let mut out = Vec::new();
        if self.flags.0 {
            out.push(Self::set("ZF", zero));
        }
        if self.flags.1 {
            out.push(Self::set("SF", sign));
        }
        out
    }
    fn result(&self, result: &Term) -> Vec<Update> {
        self.flagged(result.clone(), result.clone())
    }
    /// A place inside an instruction.
    fn inside(&mut self, at: usize, letter: char) -> String {
        let mut own = format!("{}{letter}", self.points[at]);
        while self.points.contains(&own) {
            own.push('_');
        }
        if !self.inner.contains(&own) {
            self.inner.push(own.clone());
        }
        own
    }
    /// Adds a transition from a place; `other` if it speaks of another thread.
    fn add(&mut self, called: String, from: &str, guard: Vec<Expr>, updates: Vec<Update>, other: bool) {
        let mut requires = vec![compare(own("PC"), Cmp::Eq, constant(from))];
        requires.extend(guard);
        let requires = if requires.len() == 1 { requires.remove(0) } else { Expr::And(requires) };
        let mut params = vec![(name(SELF), true)];
        if other {
            params.push((name(OTHER), false));
        }
        self.transitions.push(Item::Transition { name: name(called), params, requires: Some(requires), updates });
    }
    fn label(&self, label: &str, span: Span) -> Result<String, Diagnostic> {
        match self.source.code.iter().position(|i| i.labels.iter().any(|l| l == label)) {
            Some(at) => Ok(self.points[at].clone()),
            None => Err(Diagnostic::at(Stage::Type, span, format!("there is no label `{label}`"))),
        }
    }
    fn claim(&mut self, u: &Unsafe) -> Result<Item, Diagnostic> {
        let threads: Vec<Name> = u.threads.iter().map(|t| name(thread_name(t))).collect();
        let mut atoms = Vec::new();
        for (a, cmp, b, span) in &u.atoms {
            let cmp = match cmp {
                Comparison::Equal => Cmp::Eq,
                Comparison::Different => Cmp::Neq,
                Comparison::Less => Cmp::Lt,
                Comparison::AtMost => Cmp::Le,
                Comparison::Greater => Cmp::Gt,
                Comparison::AtLeast => Cmp::Ge,
            };
            let (a, b) = (self.side(a, &threads, *span)?, self.side(b, &threads, *span)?);
            atoms.push(compare(a, cmp, b));
        }
        let body = if atoms.len() == 1 { atoms.remove(0) } else { Expr::And(atoms) };
        Ok(Item::Unsafe(threads, body, Place::default()))
    }
    fn side(&mut self, side: &Side, threads: &[Name], span: Span) -> Result<Term, Diagnostic> {
        let memory = |text: &String| match self.variable(text) {
            Some(v) if v.counter => unsupported(span, format!("`{text}` is a counter, whose value cannot be compared here")),
            _ => Ok(name(capital(text))),
        };
        Ok(match side {
            Side::Number(n) => number(*n),
            Side::Register(t, r) => Term::Cell(name(self.register(r)), vec![threads[*t].clone()]),
            Side::Place(t) => Term::Cell(name("PC"), vec![threads[*t].clone()]),
            Side::Label(l) => constant(&self.label(l, span)?),
            Side::Seen(t, v, None) => Term::By(threads[*t].clone(), Box::new(Term::Name(memory(v)?))),
            Side::Seen(t, v, Some(u)) => Term::By(threads[*t].clone(), Box::new(Term::Cell(memory(v)?, vec![threads[*u].clone()]))),
            Side::Memory(v) => Term::Name(memory(v)?),
        })
    }
    fn finish(self, claims: Vec<Item>) -> File {
        let mut locations: Vec<Name> = Vec::new();
        for p in self.points.iter().chain(&self.inner) {
            if !locations.iter().any(|l| l.text == *p) {
                locations.push(name(p));
            }
        }
        let mut items = vec![Item::Type(name("loc"), locations)];
        let plain = |array: &str, sort: &str| Item::Symbol {
            declared: Declared::Plain,
            name: name(array),
            indices: vec![name("proc")],
            sort: name(sort),
        };
        items.push(plain("PC", "loc"));
        let mut start = vec![compare(Term::Cell(name("PC"), vec![name("p")]), Cmp::Eq, constant(&self.points[0]))];
        let mut zero = |array: &str, value: i64| {
            if !self.options.any_registers {
                start.push(compare(Term::Cell(name(array), vec![name("p")]), Cmp::Eq, number(value)));
            }
        };
        for (array, used, value) in [("ZF", self.flags.0, 1), ("SF", self.flags.1, 0), ("T", self.carries, 0)] {
            if used {
                items.push(plain(array, "int"));
                zero(array, value);
            }
        }
        for r in &self.registers {
            items.push(plain(r, "int"));
            zero(r, 0);
        }
        for v in &self.source.variables {
            let indices = if v.per_thread || v.counter { vec![name("proc")] } else { Vec::new() };
            let array = name(capital(&v.name));
            let cell = if indices.is_empty() { Term::Name(array.clone()) } else { Term::Cell(array.clone(), vec![name("p")]) };
            let sort = name(if v.counter { "bool" } else { "int" });
            items.push(Item::Symbol { declared: Declared::Weak, name: array, indices, sort });
            let value = match (v.counter, v.initial) {
                (_, None) => continue,
                (true, Some(Number::Threads)) => constant("True"),
                (true, Some(Number::Is(_))) => constant("False"),
                (false, Some(Number::Is(n))) => number(n),
                (false, Some(Number::Threads)) => continue,
            };
            start.push(compare(cell, Cmp::Eq, value));
        }
        let start = if start.len() == 1 { start.remove(0) } else { Expr::And(start) };
        items.push(Item::Init(vec![name("p")], start, Place::default()));
        items.extend(claims);
        items.extend(self.transitions);
        File { items }
    }
}

/// The name of a thread of unsafe states as a process variable.
fn thread_name(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let fits = clean.starts_with(|c: char| c.is_ascii_lowercase()) && !crate::parse::is_keyword(&clean);
    if fits { clean } else { format!("t_{clean}") }
}

/// Refuses initial values that a counter cannot have, or that have no number.
fn initial_values(source: &Source) -> Result<(), Diagnostic> {
    for v in &source.variables {
        match (v.counter, v.per_thread, v.initial) {
            (true, true, _) => return unsupported(v.span, format!("the counter `{}` counts threads and cannot be thread data", v.name)),
            (true, _, Some(Number::Is(n))) if n != 0 => {
                return unsupported(v.span, format!("the counter `{}` starts at {n}, expected 0 or `N`", v.name));
            }
            (false, _, Some(Number::Threads)) => {
                return unsupported(v.span, format!("`{}` starts at `N`, expected a counter (`! as counter`)", v.name));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Translator<'_> {
    fn instruction(&mut self, at: usize) -> Result<(), Diagnostic> {
        if at == 0 {
            initial_values(self.source)?;
        }
        let instruction: &Instruction = &self.source.code[at];
        self.check_lock(instruction)?;
        if let Some(counter) = instruction.operands.first().and_then(|o| self.is_counter(o)) {
            return self.on_counter(at, instruction, counter);
        }
        self.plain(at, instruction)
    }
    /// `lock` is for what reads and writes memory.
    fn check_lock(&self, instruction: &Instruction) -> Result<(), Diagnostic> {
        let rmw = ["add", "sub", "inc", "dec", "neg", "not", "xchg", "xadd", "cmpxchg"].contains(&instruction.word.as_str());
        let memory = instruction.operands.iter().any(|o| matches!(o, Operand::Memory(..) | Operand::Element(..)));
        if instruction.lock && !(rmw && memory) {
            let message = format!("`lock` before `{}`, expected an instruction that reads and writes memory", instruction.word);
            return Err(Diagnostic::at(Stage::Type, instruction.span, message));
        }
        Ok(())
    }
}
