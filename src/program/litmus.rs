//! Litmus tests for x86, as the users of the herd tools write them.
//!
//! In: the text of a `.litmus` file of architecture `X86` or `X86_64`. Out: a [`Litmus`]: program, what is observed, condition, filter.
//! `X86` has the destination first, `X86_64` last; a file that makes sense only the other way round is read that way.
//! Format: Alglave, Maranget, "The diy toolsuite", <http://diy.inria.fr/doc/>.

use std::collections::HashMap;

use super::condition::{Names, Observed, Prop, Quantifier, observed, proposition};
use super::expr::Width;
use super::lexer::{Cursor, Kind, Token, end_of_comment, tokens};
use super::litmus_init::{InitialRegister, initial_state, is_register, register};
use super::outcomes::Observable;
use super::variables::{Type, Use, Variables};
use super::x86::{Assembler, Order, Refusal};
use super::{Program, Thread};
use mu_base::{Diagnostic, SourceId, Span, Stage};

/// The architecture in the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 32 bits, Intel's order of operands, capital registers.
    X86,
    /// 64 bits, AT&T's order of operands.
    X86_64,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Litmus {
    /// Architecture.
    pub arch: Arch,
    /// Its name.
    pub name: String,
    /// Lines `key=value` before the initial state.
    pub info: Vec<(String, String)>,
    /// The program.
    pub program: Program,
    /// Its variables.
    pub variables: Variables,
    /// What outcomes tell: registers by thread, then memory by name.
    pub observed: Vec<Observed>,
    /// What is asked of the proposition.
    pub quantifier: Quantifier,
    /// The proposition.
    pub prop: Prop,
    /// Outcomes that count.
    pub filter: Option<Prop>,
}

impl Litmus {
    /// What to observe, in order.
    pub fn observables(&self) -> Vec<Observable> {
        self.observed.iter().map(|o| o.what).collect()
    }
}

/// Reads a test.
pub fn parse(source: SourceId, text: &str) -> Result<Litmus, Diagnostic> {
    let header = header(source, text)?;
    // What follows `<<` is for other tools: the herd tools read to there.
    let text = text[header.body..].find("<<").map_or(text, |at| &text[..header.body + at]);
    let list = tokens(source, text, header.body, None)?;
    let usual = if header.arch == Arch::X86 { Order::Intel } else { Order::Att };
    let other = if header.arch == Arch::X86 { Order::Att } else { Order::Intel };
    match body(&header, &list, text, usual) {
        Ok(test) => Ok(test),
        Err(refusal) if refusal.order => body(&header, &list, text, other).map_err(|_| refusal.diagnostic),
        Err(refusal) => Err(refusal.diagnostic),
    }
}

struct Header {
    arch: Arch,
    name: String,
    info: Vec<(String, String)>,
    /// Offset of the `{`.
    body: usize,
}

/// What is before the initial state.
fn header(source: SourceId, text: &str) -> Result<Header, Diagnostic> {
    let bytes = text.as_bytes();
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    // Comments may come first.
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        if !text[at..].starts_with("(*") {
            break;
        }
        let span = Span { source, start: at as u32, end: at as u32 + 2 };
        at = end_of_comment(bytes, at).ok_or_else(|| Diagnostic::at(Stage::Syntax, span, "this comment is not closed"))?;
    }
    let line = text[at..].lines().next().unwrap_or("");
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or("");
    let span = Span { source, start: at as u32, end: (at + first.len()) as u32 };
    let arch = match first {
        "X86" => Arch::X86,
        "X86_64" => Arch::X86_64,
        "" => {
            return Err(
                Diagnostic::at(Stage::Syntax, span, "an empty litmus test").note("expected an architecture and a name in the first line")
            );
        }
        other => {
            let error = Diagnostic::at(Stage::Unsupported, span, format!("architecture `{other}`"));
            return Err(error.note("supported: X86, X86_64"));
        }
    };
    let Some(name) = words.next().map(|n| n.trim_end_matches(';')) else {
        return Err(Diagnostic::at(Stage::Syntax, span, "a litmus test without a name").note("expected it after the architecture"));
    };
    at += line.find(name).map_or(line.len(), |i| i + name.len());
    let mut info = Vec::new();
    loop {
        let Some(&b) = bytes.get(at) else {
            let end = text.len() as u32;
            return Err(Diagnostic::at(
                Stage::Syntax,
                Span { source, start: end, end },
                "expected `{` and an initial state, found the end of the text",
            ));
        };
        match b {
            b'{' => break,
            b'(' if bytes.get(at + 1) == Some(&b'*') => {
                let span = Span { source, start: at as u32, end: at as u32 + 2 };
                at = end_of_comment(bytes, at).ok_or_else(|| Diagnostic::at(Stage::Syntax, span, "this comment is not closed"))?;
            }
            b'"' => at = text[at + 1..].find('"').map_or(bytes.len(), |i| at + 1 + i + 1),
            b'\n' | b' ' | b'\t' | b'\r' | b';' => at += 1,
            _ => {
                let line = text[at..].lines().next().unwrap_or("");
                let key = line.split('=').next().filter(|k| k.len() < line.len()).map(str::trim).unwrap_or("");
                let named = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
                // Only in a line `key=value` may a `{` be part of the text.
                let line = if named { line } else { line.split('{').next().unwrap_or("") };
                if named {
                    info.push((key.to_string(), line[line.find('=').unwrap_or(0) + 1..].trim().to_string()));
                }
                at += line.len().max(1);
                while !text.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
    }
    Ok(Header { arch, name: name.to_string(), info, body: at })
}

/// Words that end the code.
const AFTER: [&str; 7] = ["locations", "filter", "exists", "forall", "final", "observed", "cases"];

fn body(header: &Header, list: &[Token<'_>], text: &str, order: Order) -> Result<Litmus, Refusal> {
    let mut cursor = Cursor::new(list);
    cursor.expect("{")?;
    let wide = if header.arch == Arch::X86 { Width::W32 } else { Width::W64 };
    let mut variables = Variables::new(true);
    let initial = initial_state(&mut cursor, &mut variables, Type { width: wide, signed: false })?;
    let mut assemblers = threads(&mut cursor, order)?;
    code(&mut cursor, &mut assemblers, &mut variables, text)?;
    let mut program = Program::default();
    let mut uses: Vec<Use> = Vec::new();
    let mut widest = Vec::new();
    for assembler in assemblers {
        widest.push(assembler.widest.clone());
        let (thread, more) = assembler.finish()?;
        program.threads.push(thread);
        uses.extend(more);
    }
    let mut types = HashMap::new();
    for r in &initial {
        set_register(&mut program, r)?;
        if let Some(ty) = r.declared {
            types.insert((r.thread, r.view.full.clone()), ty);
        }
    }
    let mut names =
        Observer { arch: header.arch, threads: &mut program.threads, variables: &mut variables, types, widest, observed: Vec::new() };
    let (filter, quantifier, prop) = constraints(&mut cursor, &mut names)?;
    let observed = std::mem::take(&mut names.observed);
    program.cells = variables.cells(&uses)?;
    let mut test = Litmus {
        arch: header.arch,
        name: header.name.clone(),
        info: header.info.clone(),
        program,
        variables,
        observed,
        quantifier,
        prop,
        filter,
    };
    settle(&mut test);
    Ok(test)
}

fn threads(cursor: &mut Cursor<'_, '_>, order: Order) -> Result<Vec<Assembler>, Diagnostic> {
    cursor.eat(";");
    let mut assemblers = Vec::new();
    loop {
        let name = cursor.name("a thread: `P0`")?;
        if name.text != format!("P{}", assemblers.len()) {
            return Err(Diagnostic::at(
                Stage::Syntax,
                name.span,
                format!("expected the thread `P{}`, found `{}`", assemblers.len(), name.text),
            ));
        }
        assemblers.push(Assembler::new(assemblers.len(), order));
        if cursor.eat("|") {
            continue;
        }
        cursor.expect(";")?;
        return Ok(assemblers);
    }
}

/// The rows of the table of instructions.
fn code(cursor: &mut Cursor<'_, '_>, assemblers: &mut [Assembler], variables: &mut Variables, text: &str) -> Result<(), Refusal> {
    let ends = |c: &Cursor<'_, '_>| {
        // A variable may be called `exists`, a label may not: nothing is lost.
        c.at_end() || c.is("~") || c.is("(") || negated(c) || AFTER.iter().any(|w| c.is_word(w)) && c.ahead(1).text != ":"
    };
    while !ends(cursor) {
        for i in 0.. {
            let Some(assembler) = assemblers.get_mut(i) else {
                return Err(Diagnostic::at(Stage::Syntax, cursor.peek().span, format!("more columns than the {i} threads")).into());
            };
            assembler.line(cursor, variables, text)?;
            if cursor.eat("|") {
                continue;
            }
            if !cursor.eat(";") && !ends(cursor) {
                return Err(cursor.unexpected("`|` or `;`").into());
            }
            break;
        }
    }
    Ok(())
}

/// Whether `~exists` comes next, or `not exists`.
fn negated(cursor: &Cursor<'_, '_>) -> bool {
    (cursor.is("~") || cursor.is_word("not")) && cursor.ahead(1).text.eq_ignore_ascii_case("exists")
}

fn set_register(program: &mut Program, r: &InitialRegister<'_>) -> Result<(), Diagnostic> {
    let count = program.threads.len();
    let Some(thread) = program.threads.get_mut(r.thread as usize) else {
        return Err(Diagnostic::at(Stage::Type, r.token.span, format!("there is no thread {}, the last one is {}", r.thread, count - 1)));
    };
    let at = thread.register(&r.view.full);
    let old = &mut thread.registers[at as usize].initial;
    *old = *old & !(r.view.width.mask() << r.view.shift) | (r.value & r.view.width.mask()) << r.view.shift;
    Ok(())
}

/// Knows the names of a condition.
struct Observer<'p> {
    arch: Arch,
    threads: &'p mut Vec<Thread>,
    variables: &'p mut Variables,
    types: HashMap<(u32, String), Type>,
    widest: Vec<HashMap<String, Width>>,
    observed: Vec<Observed>,
}

impl Observer<'_> {
    fn add(&mut self, what: Observed) -> usize {
        self.observed.iter().position(|o| *o == what).unwrap_or_else(|| {
            self.observed.push(what);
            self.observed.len() - 1
        })
    }
}

impl Names for Observer<'_> {
    fn location(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<usize, Diagnostic> {
        if is_register(cursor) {
            let (number, view, token) = register(cursor)?;
            let count = self.threads.len();
            let Some(thread) = self.threads.get_mut(number as usize) else {
                return Err(Diagnostic::at(Stage::Type, token.span, format!("there is no thread {number}, the last one is {}", count - 1)));
            };
            let register = thread.register(&view.full);
            let used = self.widest[number as usize].get(&view.full).copied().unwrap_or(Width::W32).max(Width::W32);
            let limit = if self.arch == Arch::X86 { Width::W32 } else { Width::W64 };
            let width = if view.width == Width::W64 { used } else { view.width }.min(limit);
            let shown = match self.types.get(&(number, view.full.clone())) {
                Some(ty) if view.width == Width::W64 || ty.width <= view.width => *ty,
                _ => Type { width, signed: true },
            };
            let symbolic = super::registers::parse(token.text).is_none();
            let name = match self.arch {
                _ if symbolic => format!("%{}", token.text),
                Arch::X86 => token.text.to_ascii_uppercase(),
                Arch::X86_64 => token.text.to_ascii_lowercase(),
            };
            let what = Observable::Register(number, register);
            return Ok(self.add(Observed { what, shift: view.shift, shown, text: format!("{number}:{name}") }));
        }
        let bracketed = cursor.eat("[") || {
            cursor.eat("*");
            false
        };
        let name = cursor.name("a register or a variable")?;
        if bracketed {
            cursor.expect("]")?;
        }
        self.variables.address(name.text, name.span, 0)?;
        let Some(v) = self.variables.get(name.text) else { return Err(cursor.unexpected("a variable")) };
        let mut index = 0;
        if !bracketed && cursor.is("[") {
            let open = cursor.take();
            index = cursor.number()?;
            cursor.expect("]")?;
            if !v.array || index < 0 || index as usize >= v.initial.len() {
                return Err(Diagnostic::at(Stage::Type, open.span, format!("`{}` has no element {index}", name.text)));
            }
        } else if v.array {
            return Err(
                Diagnostic::at(Stage::Unsupported, name.span, format!("the array `{}` as a whole", name.text)).note("name its elements")
            );
        }
        let text = if v.array { format!("{}[{index}]", name.text) } else { format!("[{}]", name.text) };
        let number = self.variables.list()[..].iter().take_while(|o| o.name != name.text).map(|o| o.initial.len()).sum::<usize>();
        let what = Observable::Cell(number as u32 + index as u32);
        let shown = v.declared.unwrap_or(Type { width: Width::W64, signed: true });
        // What has no declared type gets one when the code has said how it is used.
        Ok(self.add(Observed { what, shift: 0, shown, text }))
    }
    fn value(&mut self, cursor: &mut Cursor<'_, '_>) -> Result<i64, Diagnostic> {
        if cursor.peek().kind == Kind::Name {
            let name = cursor.take();
            return Ok(self.variables.address(name.text, name.span, 0)? as i64);
        }
        if cursor.eat("&") {
            let name = cursor.name("a variable")?;
            return Ok(self.variables.address(name.text, name.span, 0)? as i64);
        }
        cursor.number()
    }
}

/// What is after the code.
fn constraints(cursor: &mut Cursor<'_, '_>, names: &mut Observer<'_>) -> Result<(Option<Prop>, Quantifier, Prop), Diagnostic> {
    if cursor.eat_word("locations") {
        cursor.expect("[")?;
        while !cursor.eat("]") {
            names.location(cursor)?;
            // Types are for other tools.
            while cursor.peek().kind == Kind::Name || cursor.is("*") {
                cursor.take();
            }
            if !cursor.eat(";") && !cursor.is("]") {
                return Err(cursor.unexpected("`;` or `]`"));
            }
        }
    }
    let filter = if cursor.eat_word("filter") { Some(proposition(cursor, names, 0)?) } else { None };
    let quantifier = if cursor.at_end() {
        return Ok((filter, Quantifier::Forall, Prop::True));
    } else if cursor.eat_word("exists") || cursor.eat_word("final") || cursor.is("(") {
        Quantifier::Exists
    } else if cursor.eat_word("forall") {
        Quantifier::Forall
    } else if negated(cursor) {
        cursor.take();
        cursor.take();
        Quantifier::NotExists
    } else if cursor.eat_word("observed") {
        let prop = observed(cursor, names)?;
        return if cursor.at_end() { Ok((filter, Quantifier::Exists, prop)) } else { Err(cursor.unexpected("`;` or `and`")) };
    } else if cursor.is_word("cases") {
        return Err(Diagnostic::at(Stage::Unsupported, cursor.peek().span, format!("the condition `{}`", cursor.peek().text)));
    } else {
        return Err(cursor.unexpected("`exists`, `~exists` or `forall`"));
    };
    let prop = proposition(cursor, names, 0)?;
    cursor.eat(";");
    // `with model: quantifier` tells what some models are expected to say; nothing to check here.
    if !cursor.at_end() && !cursor.is_word("with") {
        return Err(cursor.unexpected("the end of the test"));
    }
    Ok((filter, quantifier, prop))
}

/// Puts what is observed in order, and shows untyped cells by the width of their use.
fn settle(test: &mut Litmus) {
    for o in &mut test.observed {
        if let Observable::Cell(c) = o.what {
            let cell = &test.program.cells[c as usize];
            if test.variables.at(cell.address).is_some_and(|(v, _)| v.declared.is_none()) {
                o.shown = Type { width: cell.width, signed: true };
            }
        }
    }
    let mut order: Vec<usize> = (0..test.observed.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |i: usize| match test.observed[i].what {
            Observable::Register(t, _) => (0, t, test.observed[i].text.clone()),
            Observable::Cell(_) => (1, 0, test.observed[i].text.clone()),
        };
        key(a).cmp(&key(b))
    });
    let mut place = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    test.observed = order.iter().map(|&i| test.observed[i].clone()).collect();
    renumber(&mut test.prop, &place);
    if let Some(filter) = &mut test.filter {
        renumber(filter, &place);
    }
}

fn renumber(prop: &mut Prop, place: &[usize]) {
    match prop {
        Prop::True | Prop::False => {}
        Prop::Is(i, _) => *i = place[*i],
        Prop::Same(i, j) => (*i, *j) = (place[*i], place[*j]),
        Prop::Not(p) => renumber(p, place),
        Prop::And(list) | Prop::Or(list) => list.iter_mut().for_each(|p| renumber(p, place)),
        Prop::Implies(a, b) => {
            renumber(a, place);
            renumber(b, place);
        }
    }
}
