//! Translation of x86 programs for any number of threads to systems: x86-tso-programs (Conchon,
//! Declerck, Zaïdi 2017), section 4.
//!
//! Input: [`ParametricProgram`]. Output: the syntax tree of a system. Places in the code are an
//! enumeration, and `PC` is the place of a thread; a register is an array of numbers; shared data
//! is a weak variable, thread data a weak array, a counter a weak array of Booleans, and its value
//! is the number of `True` cells. An instruction is one transition; one that reads and writes
//! memory without `lock` is two, with the value between them in `T`; a conditional jump is two.
//!
//! Words have 32 bits. A number of the system is the signed value of a word. If a result may leave
//! the words (`values`), an instruction has a transition for each kind of wrap (`flags`). A
//! variable that locked instructions increment and decrement has a ghost that marks the threads
//! that have done so since it was set (`bounds`). If no thread does so twice, the number of
//! threads bounds the variable, and it does not wrap for up to [`Translation::most_threads`]
//! threads. A counter that leaves the range from 0 to the number of threads, and a thread that
//! counts twice, lead to unsafe places; reaching them is no answer about the program.
//!
//! The content of memory is what a thread reads that never does anything, so a claim on memory has
//! one additional thread.
//!
//! These are the differences from the paper, with two more: a locked compare-and-exchange that
//! fails also waits for the empty buffer, as on x86; and a counter's decrement sets the flags.
//! Constructs without a counterpart are rejected by name: parts of registers, computed addresses,
//! bit operations on words with many possible values, steps of counters without `lock`.

mod bounds;
mod counters;
mod flags;
mod instructions;
mod values;

use crate::ast::{Cmp, DeclarationKind, File, Formula, Item, Name, Right, Term, Update, Value};
use mu_base::source::Place;
use mu_base::{Diagnostic, Span, Stage};
use mu_program::parametric::{
    ComparedSide, Declaration, Instruction, Number, Operand, ParametricProgram, Unsafe,
};
use mu_program::property::Comparison;
use mu_program::x86::table::InstructionKind;
use num_rational::BigRational;
use std::collections::{BTreeMap, BTreeSet};

/// Options of the translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationOptions {
    /// True if registers and flags have any initial value, instead of zero.
    pub any_registers: bool,
    /// True if `xchg` with memory is atomic only with the prefix `lock` (x86 always locks it).
    pub split_xchg: bool,
    /// True if every word may wrap, so that no number of threads is assumed to bound a variable.
    pub wrapping: bool,
    /// True if numbers are words of the system, which wrap, instead of integers with a transition
    /// for each kind of wrap. Always true for programs with other words than those of 32 bits.
    pub words: bool,
}

/// A system with the data that relate its answers to the program.
#[derive(Clone, Debug)]
pub struct Translation {
    /// The system.
    pub file: File,
    /// Number of claims of the program. The other claims are about places without a counterpart of
    /// the program's behaviour.
    pub claims: usize,
    /// The reasons of the other claims, in order, with the instruction.
    pub limits: Vec<(String, Span)>,
    /// Largest number of threads for which a proof of the system is one of the program; `None`: any
    /// number.
    pub most_threads: Option<u64>,
    /// True if a variable is assumed to be bounded by the number of threads.
    pub bounded: bool,
    /// Instructions with results that may wrap.
    pub wraps: Vec<Span>,
    /// Number of bits of all words.
    pub bits: u32,
    /// True if a claim is on memory, so that one process of the system is no thread.
    pub watches: bool,
}

impl Translation {
    /// Returns the largest number of threads of a system of at most this number of processes.
    pub fn threads_of(&self, processes: u64) -> u64 {
        processes - u64::from(self.watches)
    }
}

/// The size of a system, with the columns of x86-tso-programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Number of arrays that are not in memory: places, flags, registers.
    pub registers: usize,
    /// Number of symbols in memory.
    pub weak: usize,
    /// Number of transitions in the text.
    pub transitions: usize,
}

/// Computes the columns of a system.
pub fn columns(file: &File) -> Columns {
    let count = |test: fn(&Item) -> bool| file.items.iter().filter(|i| test(i)).count();
    Columns {
        registers: count(|i| matches!(i, Item::Symbol { declared: DeclarationKind::Plain, .. })),
        weak: count(|i| matches!(i, Item::Symbol { declared: DeclarationKind::Weak, .. })),
        transitions: count(|i| matches!(i, Item::Transition { .. })),
    }
}

/// Translates a program.
///
/// # Errors
///
/// Instructions and operands without a counterpart, with their positions; unknown labels.
pub fn translate(
    source: &ParametricProgram,
    options: TranslationOptions,
) -> Result<Translation, Diagnostic> {
    let options = TranslationOptions { words: options.words || source.bits != 32, ..options };
    let mut translator = Translator::new(source, options)?;
    for at in 0..source.code.len() {
        translator.instruction(at)?;
    }
    let claims =
        source.unsafe_states.iter().map(|u| translator.claim(u)).collect::<Result<Vec<_>, _>>()?;
    let count = claims.len();
    let mut claims: Vec<Item> = claims.into_iter().map(|c| translator.without_others(c)).collect();
    claims.extend(translator.limits.iter().map(|(place, ..)| at_place(place)));
    let limits = translator.limits.iter().map(|(_, why, span)| (why.clone(), *span)).collect();
    // The flags of a counter are those of a word without the sign bit.
    let greatest = (1 << (source.bits - 1)) - 1;
    let counted = source.variables.iter().any(|v| v.counter).then_some(greatest);
    let most_threads = translator.bounds.values().map(|g| g.most_threads).chain(counted).min();
    let (bounded, mut wraps) =
        (!translator.bounds.is_empty(), std::mem::take(&mut translator.wraps));
    wraps.dedup();
    let watches = translator.watch.is_some();
    Ok(Translation {
        watches,
        file: translator.finish(claims),
        claims: count,
        limits,
        most_threads,
        bounded,
        wraps,
        bits: source.bits,
    })
}

/// Builds the claim that some thread is at a place.
fn at_place(place: &str) -> Item {
    let at = compare(own("PC"), Cmp::Eq, constant(place));
    Item::Unsafe(vec![name(SELF)], at, Place::default())
}

/// Names that the system uses itself.
const RESERVED: [&str; 9] = ["PC", "ZF", "SF", "LF", "CF", "OF", "T", "True", "False"];

/// Returns the names of the registers of a number of bits that are words.
fn registers(bits: u32) -> [&'static str; 8] {
    match bits {
        32 => ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP"],
        16 => ["AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"],
        _ => ["AL", "BL", "CL", "DL", "SIL", "DIL", "BPL", "SPL"],
    }
}

/// The names of the acting thread and of another one.
const SELF: &str = "t";
const OTHER: &str = "o";

/// A claim of the program, before the places without a counterpart are excluded.
struct Claim {
    threads: Vec<Name>,
    atoms: Vec<Formula>,
    /// The threads that must be at places of the program.
    own_threads: Vec<Name>,
}

struct Translator<'a> {
    source: &'a ParametricProgram,
    options: TranslationOptions,
    /// The place of each instruction, and of the end.
    points: Vec<String>,
    /// The name of each variable in the system.
    variables: BTreeMap<String, String>,
    /// Places inside instructions.
    inner: Vec<String>,
    /// Flags that some jump reads.
    needs: flags::Needs,
    /// Registers in use, in order.
    registers: Vec<String>,
    /// True if a value is passed from a read to a write.
    carries: bool,
    transitions: Vec<Item>,
    /// The possible values of words.
    analysis: values::Analysis<'a>,
    /// Variables that the number of threads bounds, by name.
    bounds: BTreeMap<String, bounds::Ghost>,
    /// Places without a counterpart of the program's behaviour: names, reasons, instructions.
    limits: Vec<(String, String, Span)>,
    /// Instructions with results that may wrap.
    wraps: Vec<Span>,
    /// The place of the thread that reads memory, if a claim needs it.
    watch: Option<String>,
}

fn name(text: impl Into<String>) -> Name {
    Name { text: text.into(), place: Place::default() }
}

fn number(n: i64) -> Term {
    let digits =
        Term::Number(BigRational::from_integer(n.unsigned_abs().into()), false, Place::default());
    if n < 0 { Term::Neg(Box::new(digits)) } else { digits }
}

fn own(array: &str) -> Term {
    Term::Cell(name(array), vec![name(SELF)])
}

fn constant(text: &str) -> Term {
    Term::Name(name(text))
}

fn compare(a: Term, cmp: Cmp, b: Term) -> Formula {
    Formula::Compare(a, cmp, b)
}

/// Builds `a + b`, simplified if one is a number.
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

fn reject<T>(span: Span, message: impl Into<String>) -> Result<T, Diagnostic> {
    Err(Diagnostic::at(Stage::Unsupported, span, message))
}

/// Returns a name that begins with a capital letter and has only letters and digits.
fn capital(text: &str) -> String {
    let clean: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let clean = clean.trim_start_matches('_');
    let mut letters = clean.chars();
    match letters.next() {
        Some(c) if c.is_ascii_alphabetic() => {
            format!("{}{}", c.to_ascii_uppercase(), letters.as_str())
        }
        _ => format!("X{clean}"),
    }
}

/// Appends `_` to a name until it is unused, and adds it to the names in use.
fn unused_name(mut name: String, taken: &mut BTreeSet<String>) -> String {
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

impl<'a> Translator<'a> {
    fn new(source: &'a ParametricProgram, options: TranslationOptions) -> Result<Self, Diagnostic> {
        let mut taken: BTreeSet<String> =
            RESERVED.into_iter().chain(registers(source.bits)).map(String::from).collect();
        let variables: BTreeMap<String, String> = (source.variables.iter())
            .map(|v| (v.name.clone(), unused_name(capital(&v.name), &mut taken)))
            .collect();
        let mut points: Vec<String> = Vec::new();
        for (i, instruction) in source.code.iter().enumerate() {
            let own = instruction.labels.first().map_or_else(|| format!("L{i}"), |l| capital(l));
            points.push(unused_name(own, &mut taken));
        }
        points.push(unused_name("End".to_string(), &mut taken));
        // A place without an instruction is the place of the next one, named after the first label.
        for i in (0..source.code.len()).rev() {
            if source.code[i].word.is_empty() {
                let labelled = !source.code[i].labels.is_empty()
                    && source.code.get(i + 1).is_none_or(|next| next.labels.is_empty());
                if labelled {
                    points[i + 1] = points[i].clone();
                }
                points[i] = points[i + 1].clone();
            }
        }
        // Names are propagated backwards.
        for i in (0..source.code.len()).rev() {
            if source.code[i].word.is_empty() {
                points[i] = points[i + 1].clone();
            }
        }
        let analysis = values::Analysis::new(source, options);
        let mut translator = Translator {
            source,
            options,
            points,
            variables,
            inner: Vec::new(),
            needs: flags::Needs::of(source),
            registers: Vec::new(),
            carries: false,
            transitions: Vec::new(),
            analysis,
            bounds: BTreeMap::new(),
            limits: Vec::new(),
            wraps: Vec::new(),
            watch: None,
        };
        if !options.wrapping && !options.words {
            translator.bounds = translator.bounded_variables();
        }
        if options.words {
            translator.needs.separate_less = translator.needs.sign && translator.needs.less;
        } else if translator.needs.sign && translator.needs.less {
            // Open flags have any sign and any overflow, so neither determines the other.
            translator.needs.compared = options.any_registers;
            translator.needs.overflow |= options.any_registers;
            translator.needs.separate_less = !options.any_registers && translator.overflows();
        }
        Ok(translator)
    }
    /// Returns the name of a variable of the program in the system.
    fn own_name(&self, variable: &str) -> String {
        self.variables.get(variable).cloned().unwrap_or_else(|| capital(variable))
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
    /// Returns the memory cell of an operand: its name and indices.
    fn memory(&self, operand: &Operand) -> Option<(Name, Vec<Name>)> {
        match operand {
            Operand::Memory(v, _) if self.variable(v).is_some_and(|v| v.per_thread) => {
                Some((name(self.own_name(v)), vec![name(SELF)]))
            }
            Operand::Memory(v, _) => Some((name(self.own_name(v)), Vec::new())),
            Operand::Element(v, n, _) => {
                Some((name(self.own_name(v)), vec![name(format!("#{}", n + 1))]))
            }
            _ => None,
        }
    }
    /// Returns the value of an operand.
    fn value(&mut self, operand: &Operand) -> Result<Term, Diagnostic> {
        if self.is_counter(operand).is_some() {
            let message = "a counter can be moved to 0 or N, incremented, decremented, and compared with 0 or N; its value cannot be read";
            return reject(operand.span(), message);
        }
        if let Some((array, args)) = self.memory(operand) {
            return Ok(if args.is_empty() { Term::Name(array) } else { Term::Cell(array, args) });
        }
        match operand {
            Operand::Register(r, _) => Ok(own(&self.register(r))),
            Operand::Immediate(Number::Literal(n), _) => Ok(number(*n)),
            Operand::Immediate(Number::Threads, span) => reject(
                *span,
                "`N` has no value here: only a counter can be compared with it or set to it",
            ),
            Operand::Label(l, span) => {
                reject(*span, format!("`{l}` is a label of the code, expected a value"))
            }
            Operand::Memory(..) | Operand::Element(..) => {
                reject(operand.span(), "memory without a name")
            }
        }
    }
    /// Builds an update of an operand.
    fn store(&mut self, operand: &Operand, value: Term) -> Result<Update, Diagnostic> {
        let (target, args) = match (self.memory(operand), operand) {
            (Some(cell), _) => cell,
            (None, Operand::Register(r, _)) => (name(self.register(r)), vec![name(SELF)]),
            (None, other) => {
                return reject(
                    other.span(),
                    "this cannot be written, expected a register or memory",
                );
            }
        };
        Ok(Update { by: None, name: target, args, right: Right::Value(Value::Term(value)) })
    }
    /// Builds the updates of an operand, including the reset of ghosts.
    fn stores(&mut self, operand: &Operand, value: Term) -> Result<Vec<Update>, Diagnostic> {
        let mut out = vec![self.store(operand, value)?];
        if let Operand::Memory(v, _) = operand
            && let Some(ghost) = self.bounds.get(v)
        {
            out.push(self.unmark(ghost));
        }
        Ok(out)
    }
    fn set(array: &str, value: Term) -> Update {
        Update {
            by: None,
            name: name(array),
            args: vec![name(SELF)],
            right: Right::Value(Value::Term(value)),
        }
    }
    fn goes(&self, to: &str) -> Update {
        Self::set("PC", constant(to))
    }
    /// Returns a place inside an instruction.
    fn inside(&mut self, at: usize, letter: char) -> String {
        self.fresh(&format!("{}{letter}", self.points[at]))
    }
    /// Returns a place without a counterpart of the program's behaviour.
    fn limit_place(&mut self, why: String, span: Span) -> String {
        let place = self.fresh("Out");
        self.limits.push((place.clone(), why, span));
        place
    }
    /// Returns a place with a new name.
    fn fresh(&mut self, text: &str) -> String {
        let mut own = text.to_string();
        while self.points.contains(&own)
            || self.inner.contains(&own)
            || self.variables.values().any(|v| *v == own)
            || self.bounds.values().any(|ghost| ghost.array == own)
        {
            own.push('_');
        }
        self.inner.push(own.clone());
        own
    }
    /// Adds a transition from a place; `other` if it uses another thread.
    fn add(
        &mut self,
        called: String,
        from: &str,
        guard: Vec<Formula>,
        updates: Vec<Update>,
        other: bool,
    ) {
        let mut requires = vec![compare(own("PC"), Cmp::Eq, constant(from))];
        requires.extend(guard);
        let requires =
            if requires.len() == 1 { requires.remove(0) } else { Formula::And(requires) };
        let mut params = vec![(name(SELF), true)];
        if other {
            params.push((name(OTHER), false));
        }
        self.transitions.push(Item::Transition {
            name: name(called),
            params,
            requires: Some(requires),
            updates,
        });
    }
    fn label(&self, label: &str, span: Span) -> Result<String, Diagnostic> {
        match self.source.code.iter().position(|i| i.labels.iter().any(|l| l == label)) {
            Some(at) => Ok(self.points[at].clone()),
            None => Err(Diagnostic::at(Stage::Type, span, format!("there is no label `{label}`"))),
        }
    }
    fn claim(&mut self, u: &Unsafe) -> Result<Claim, Diagnostic> {
        let mut threads: Vec<Name> = Vec::new();
        for t in &u.threads {
            let mut own = thread_name(t);
            while threads.iter().any(|t| t.text == own) {
                own.push('_');
            }
            threads.push(name(own));
        }
        let is_place = |s: &ComparedSide| matches!(s, ComparedSide::Place(_));
        let compares_places = u.atoms.iter().any(|(a, cmp, b, _)| {
            is_place(a) && is_place(b) || (is_place(a) || is_place(b)) && *cmp != Comparison::Equal
        });
        let own_threads = if compares_places { threads.clone() } else { Vec::new() };
        let sides = u.atoms.iter().flat_map(|(a, _, b, _)| [a, b]);
        let reads_memory = sides.clone().any(|s| matches!(s, ComparedSide::Memory(_)));
        let mut watcher = String::from("watcher");
        while threads.iter().any(|t| t.text == watcher) {
            watcher.push('_');
        }
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
            let is_known = matches!((a, b), (ComparedSide::Number(_), ComparedSide::Number(_)));
            let (a, b) = (
                self.side(a, &threads, &watcher, *span)?,
                self.side(b, &threads, &watcher, *span)?,
            );
            let ordered = self.options.words && !matches!(cmp, Cmp::Eq | Cmp::Neq) && !is_known;
            let signed = |t: Term| if ordered { Term::Signed(Box::new(t)) } else { t };
            atoms.push(compare(signed(a), cmp, signed(b)));
        }
        if reads_memory {
            if let Some(counter) = self.source.variables.iter().find(|v| v.counter) {
                let message = format!(
                    "a claim on memory together with the counter `{}`: the claim adds a thread, which would be counted",
                    counter.name
                );
                return reject(u.atoms[0].3, message);
            }
            let place = self.watch();
            let watcher = name(watcher);
            atoms.push(compare(
                Term::Cell(name("PC"), vec![watcher.clone()]),
                Cmp::Eq,
                constant(&place),
            ));
            threads.push(watcher);
        }
        Ok(Claim { threads, atoms, own_threads })
    }
    /// Builds a claim. Its threads are at places of the program where it compares places otherwise
    /// than for equality with one.
    fn without_others(&self, claim: Claim) -> Item {
        let Claim { threads, mut atoms, own_threads } = claim;
        let others: Vec<&String> =
            self.limits.iter().map(|limit| &limit.0).chain(&self.watch).collect();
        for (thread, place) in own_threads.iter().flat_map(|t| others.iter().map(move |p| (t, p))) {
            let at = Term::Cell(name("PC"), vec![thread.clone()]);
            atoms.push(compare(at, Cmp::Neq, constant(place)));
        }
        let body = if atoms.len() == 1 { atoms.remove(0) } else { Formula::And(atoms) };
        Item::Unsafe(threads, body, Place::default())
    }
    /// Returns the place of a thread that does nothing, so that it reads memory.
    fn watch(&mut self) -> String {
        if let Some(place) = &self.watch {
            return place.clone();
        }
        let place = self.fresh("Watch");
        self.watch = Some(place.clone());
        let first = self.points[0].clone();
        let guard = vec![Formula::Fence(None, Place::default())];
        self.add("watch".into(), &first, guard, vec![self.goes(&place)], false);
        place
    }
    fn side(
        &mut self,
        side: &ComparedSide,
        threads: &[Name],
        watcher: &str,
        span: Span,
    ) -> Result<Term, Diagnostic> {
        let memory = |text: &String| match self.variable(text) {
            Some(v) if v.counter => reject(
                span,
                format!("`{text}` is a counter, and its value cannot be compared here"),
            ),
            _ => Ok(name(self.own_name(text))),
        };
        Ok(match side {
            ComparedSide::Number(n) => number(*n),
            ComparedSide::Register(t, r) => {
                Term::Cell(name(self.register(r)), vec![threads[*t].clone()])
            }
            ComparedSide::Place(t) => Term::Cell(name("PC"), vec![threads[*t].clone()]),
            ComparedSide::Label(l) => constant(&self.label(l, span)?),
            ComparedSide::ThreadView(t, v, None) => {
                Term::By(threads[*t].clone(), Box::new(Term::Name(memory(v)?)))
            }
            ComparedSide::ThreadView(t, v, Some(u)) => Term::By(
                threads[*t].clone(),
                Box::new(Term::Cell(memory(v)?, vec![threads[*u].clone()])),
            ),
            ComparedSide::Memory(v) => Term::By(name(watcher), Box::new(Term::Name(memory(v)?))),
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
            declared: DeclarationKind::Plain,
            name: name(array),
            indices: vec![name("proc")],
            sort: name(sort),
        };
        items.push(plain("PC", "loc"));
        let mut start = vec![compare(
            Term::Cell(name("PC"), vec![name("p")]),
            Cmp::Eq,
            constant(&self.points[0]),
        )];
        let words = self.options.words;
        let int = if words { format!("word{}", self.source.bits) } else { "int".to_string() };
        let word = |term: Term| {
            let bounds = [(Cmp::Ge, values::LEAST), (Cmp::Le, values::GREATEST)];
            let bounds = bounds.into_iter().filter(|_| !words);
            bounds.map(|(cmp, n)| compare(term.clone(), cmp, number(n))).collect::<Vec<_>>()
        };
        let mut zero = |array: &str, value: i64| {
            let term = Term::Cell(name(array), vec![name("p")]);
            match self.options.any_registers {
                true => start.extend(word(term)),
                false => start.push(compare(term, Cmp::Eq, number(value))),
            }
        };
        for (array, value) in
            self.needs.arrays().into_iter().chain(self.carries.then_some(("T", 0)))
        {
            items.push(plain(array, &int));
            zero(array, value);
        }
        for r in &self.registers {
            items.push(plain(r, &int));
            zero(r, 0);
        }
        for ghost in self.bounds.values() {
            items.push(Item::Symbol {
                declared: DeclarationKind::Weak,
                name: name(&ghost.array),
                indices: vec![name("proc")],
                sort: name("bool"),
            });
            start.push(compare(
                Term::Cell(name(&ghost.array), vec![name("p")]),
                Cmp::Eq,
                constant("False"),
            ));
        }
        for v in &self.source.variables {
            let indices = if v.per_thread || v.counter { vec![name("proc")] } else { Vec::new() };
            let array = name(self.own_name(&v.name));
            let cell = if indices.is_empty() {
                Term::Name(array.clone())
            } else {
                Term::Cell(array.clone(), vec![name("p")])
            };
            let sort = name(if v.counter { "bool" } else { int.as_str() });
            items.push(Item::Symbol {
                declared: DeclarationKind::Weak,
                name: array,
                indices,
                sort,
            });
            let value = match (v.counter, v.initial) {
                (true, None) => continue,
                (false, None) => {
                    start.extend(word(cell));
                    continue;
                }
                (true, Some(Number::Threads)) => constant("True"),
                (true, Some(Number::Literal(_))) => constant("False"),
                (false, Some(Number::Literal(n))) => number(n),
                (false, Some(Number::Threads)) => continue,
            };
            start.push(compare(cell, Cmp::Eq, value));
        }
        let start = if start.len() == 1 { start.remove(0) } else { Formula::And(start) };
        items.push(Item::Init(vec![name("p")], start, Place::default()));
        items.extend(claims);
        items.extend(self.transitions);
        File { items, end: Place::default() }
    }
}

/// Returns the process variable of a thread in unsafe states.
fn thread_name(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    let fits =
        clean.starts_with(|c: char| c.is_ascii_lowercase()) && !crate::parse::is_keyword(&clean);
    if fits { clean } else { format!("t_{clean}") }
}

/// Rejects initial values that a counter cannot have, or that are not numbers.
fn initial_values(source: &ParametricProgram) -> Result<(), Diagnostic> {
    for v in &source.variables {
        match (v.counter, v.per_thread, v.initial) {
            (true, true, _) => {
                return reject(
                    v.span,
                    format!("the counter `{}` counts threads and cannot be thread data", v.name),
                );
            }
            (true, _, Some(Number::Literal(n))) if n != 0 => {
                return reject(
                    v.span,
                    format!("the counter `{}` starts at {n}, expected 0 or `N`", v.name),
                );
            }
            (false, _, Some(Number::Threads)) => {
                return reject(
                    v.span,
                    format!("`{}` starts at `N`, expected a counter (`! as counter`)", v.name),
                );
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
    /// Checks that `lock` is on an instruction that reads and writes memory: its destination or,
    /// for `xchg`, either operand.
    fn check_lock(&self, instruction: &Instruction) -> Result<(), Diagnostic> {
        let either = instruction.entry.is_some_and(|e| e.kind == InstructionKind::Exchange);
        let targets = instruction.operands.iter().take(if either { 2 } else { 1 });
        let memory =
            targets.filter(|o| matches!(o, Operand::Memory(..) | Operand::Element(..))).count() > 0;
        if instruction.lock && !memory {
            return Err(Diagnostic::at(
                Stage::Type,
                instruction.span,
                mu_program::x86::unlockable(&instruction.word),
            ));
        }
        Ok(())
    }
}
