//! Parser of x86 programs for a number of threads, in the grammar of Conchon, Declerck, Zaïdi,
//! "Compiling Parameterized X86-TSO Concurrent Programs to Cubicle-W" (ICFEM 2017), appendix A.
//!
//! Input: a text with the sections `shared_data`, `thread_data`, `thread_code`, `unsafe_prop` and
//! `init_code`, and the number of threads. Output: an [`X86Program`]. The name `N` is the number of
//! threads. A variable of `thread_data` has an element for each thread: `[x]` is that of the
//! executing thread, `[x + $next]` that of the next thread round robin, and `[x + $1]` that of the
//! thread with number 1. A counter (`! as counter`) may be used only in `mov`, `inc`, `dec` and
//! `cmp`. Registers are initially zero.
//!
//! Beyond the grammar: numbers in `unsafe_prop`; several `unsafe_prop` sections, as a disjunction;
//! several `thread_code` sections, one for each thread in order and the last one for all further
//! threads; the instructions of litmus tests.

use super::expr::Width;
use super::property::{Property, PropertyScope, conjunction, word};
use super::variables::{IntegerType, Variables};
use super::x86::statement::{Number, Statement};
use super::x86::{Assembler, OperandOrder, too_wide};
use super::{Access, Program, Step, expr::Expr};
use mu_base::words::{Cursor, LexicalForm, Token, TokenKind, tokens};
use mu_base::{Diagnostic, SourceId, Span, Stage};
use std::collections::HashMap;

/// Largest number of threads; programs with more are rejected.
pub const MAX_THREADS: usize = 64;

/// A program for a fixed number of threads, with its unsafe states.
#[derive(Clone, Debug)]
pub struct X86Program {
    /// Its threads and memory.
    pub program: Program,
    /// Its variables.
    pub variables: Variables,
    /// For each thread, its labels with the indices of the steps after them.
    pub labels: Vec<HashMap<String, u32>>,
    /// The unsafe states; empty if the program does not declare any.
    pub unsafe_states: Vec<Property>,
    /// The declarations of the source text.
    pub declarations: Vec<Declaration>,
    /// The instructions of the last thread, as in the source text.
    pub statements: Vec<Statement>,
    /// The positions of the `thread_code` sections.
    pub codes: Vec<Span>,
    /// The first operand that uses `N` in a sum or after `$`, or is the number of a thread or the
    /// address of its thread data. Its text has another meaning for another number of threads, or
    /// for another thread.
    pub fixed_threads: Option<Span>,
}

/// The declaration of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// Its width.
    pub width: Width,
    /// Its initial value as a signed number; `None`: any value.
    pub initial: Option<Number>,
    /// True if it is a counter of threads (`! as counter`).
    pub counter: bool,
    /// True if each thread has an element.
    pub per_thread: bool,
    /// Its position.
    pub span: Span,
}

/// A section: the position of its name, and its tokens.
struct Section<'a> {
    name: Token<'a>,
    tokens: Vec<Token<'a>>,
}

/// Parses a program for a number of threads.
///
/// # Errors
///
/// A syntax or type error, with its position.
pub fn parse(source: SourceId, text: &str, threads: usize) -> Result<X86Program, Diagnostic> {
    let program = parse_any(source, text, threads)?;
    match program.declarations.iter().find(|d| d.initial.is_none()) {
        Some(open) => {
            let message =
                format!("`{}` has no initial value (`?`), expected a number or `N`", open.name);
            Err(Diagnostic::at(Stage::Unsupported, open.span, message)
                .note("`--threads-of any` supports such variables"))
        }
        None => Ok(program),
    }
}

/// Parses a program that may have variables with any initial value (`dd ?`).
pub(super) fn parse_any(
    source: SourceId,
    text: &str,
    threads: usize,
) -> Result<X86Program, Diagnostic> {
    if threads == 0 || threads > MAX_THREADS {
        return Err(Diagnostic::new(
            Stage::Usage,
            format!("{threads} threads, expected 1 to {MAX_THREADS}"),
        ));
    }
    let list = tokens(source, text, 0, LexicalForm::Lines(';'))?;
    let sections = sections(&list)?;
    let of = |name: &'static str| sections.iter().filter(move |s| s.name.text == name);
    let only = |name: &'static str| -> Result<Option<&Section<'_>>, Diagnostic> {
        let mut all = of(name);
        let first = all.next();
        match (first, all.next()) {
            (Some(first), Some(second)) => Err(Diagnostic::at(
                Stage::Syntax,
                second.name.span,
                format!("a second section `{name}`"),
            )
            .related(first.name.span, "the first one")),
            _ => Ok(first),
        }
    };
    let mut variables = Variables::new(false);
    let mut declared = Vec::new();
    for (section, elements) in [(only("shared_data")?, 1), (only("thread_data")?, threads)] {
        if let Some(section) = section {
            declarations(section, elements, threads, &mut variables, &mut declared)?;
        }
    }
    if let Some(section) = only("init_code")? {
        init_code(section)?;
    }
    let codes: Vec<&Section<'_>> = of("thread_code").collect();
    let end = list.last().map_or(Span::default(), |t| t.span);
    if codes.is_empty() {
        return Err(Diagnostic::at(
            Stage::Syntax,
            end,
            "expected a section `begin thread_code`, found the end of the text",
        ));
    }
    if let Some(spare) = codes.get(threads) {
        let text = format!(
            "code for thread {threads}, but there are only {threads} thread{}",
            if threads == 1 { "" } else { "s" }
        );
        return Err(Diagnostic::at(Stage::Type, spare.name.span, text)
            .note("`--threads-of N` gives the number of threads"));
    }
    let mut program = Program::default();
    let mut uses = Vec::new();
    let mut labels = Vec::new();
    let mut statements = Vec::new();
    let mut fixed_threads = None;
    for thread in 0..threads {
        let section = codes[thread.min(codes.len() - 1)];
        let mut assembler = Assembler::new(thread, OperandOrder::Intel);
        assembler.constant("N", threads as i64);
        assembler.thread_name("self", thread);
        assembler.thread_name("next", (thread + 1) % threads);
        let mut cursor = Cursor::new(&section.tokens);
        while !cursor.at_end() {
            assembler.line(&mut cursor, &mut variables, text).map_err(|r| r.diagnostic)?;
            if !cursor.at_end() {
                cursor.expect("\n").map_err(|_| cursor.unexpected("the end of the line"))?;
            }
        }
        labels.push(
            assembler
                .labels()
                .iter()
                .map(|(name, &(at, _))| (name.clone(), at))
                .collect::<HashMap<_, _>>(),
        );
        statements = std::mem::take(&mut assembler.statements);
        if let Some(weak) = statements.iter().find(|s| s.entry.name == "movnti") {
            let message = "`movnti` is not ordered with other stores, and the machines keep the order of all stores";
            return Err(Diagnostic::at(Stage::Unsupported, weak.span, message));
        }
        fixed_threads = fixed_threads.or(assembler.fixed_threads);
        let (code, own) = assembler.finish()?;
        check_counters(&code.steps, &code.instructions, &declared, &variables)?;
        program.threads.push(code);
        uses.extend(own);
    }
    program.cells = variables.cells(&uses)?;
    let mut unsafe_states = Vec::new();
    let code_of: Vec<usize> = (0..threads).map(|t| t.min(codes.len() - 1)).collect();
    for section in of("unsafe_prop") {
        let scope = PropertyScope {
            program: &mut program,
            variables: &variables,
            labels: &labels,
            codes: &code_of,
        };
        unsafe_states.push(conjunction(&section.tokens, section.name.span, scope)?);
    }
    let codes = codes.iter().map(|s| s.name.span).collect();
    Ok(X86Program {
        program,
        variables,
        labels,
        unsafe_states,
        declarations: declared,
        statements,
        codes,
        fixed_threads,
    })
}

/// The names of the sections.
pub(super) const NAMES: [&str; 5] =
    ["shared_data", "thread_data", "thread_code", "unsafe_prop", "init_code"];

fn sections<'a>(list: &[Token<'a>]) -> Result<Vec<Section<'a>>, Diagnostic> {
    let mut cursor = Cursor::new(list);
    let mut out = Vec::new();
    loop {
        while cursor.eat("\n") {}
        if cursor.at_end() {
            return Ok(out);
        }
        if !cursor.eat_word("begin") {
            return Err(cursor.unexpected("`begin` and the name of a section"));
        }
        let name = cursor.name("the name of a section")?;
        if !NAMES.contains(&name.text) {
            return Err(Diagnostic::at(
                Stage::Syntax,
                name.span,
                format!("unknown section `{}`", name.text),
            )
            .note(format!("known: {}", NAMES.join(", "))));
        }
        if !cursor.is("\n") {
            return Err(cursor.unexpected("the end of the line"));
        }
        let mut tokens = Vec::new();
        // A section ends with `end` and its name at the start of a line, because labels may be
        // called `end` as well.
        while !(cursor.is_word("end")
            && cursor.previous().text == "\n"
            && NAMES.contains(&cursor.ahead(1).text))
        {
            if cursor.at_end() {
                let error = Diagnostic::at(
                    Stage::Syntax,
                    cursor.peek().span,
                    format!("expected `end {}`, found the end of the text", name.text),
                );
                return Err(error.related(name.span, "the section starts here"));
            }
            tokens.push(cursor.take());
        }
        let last = cursor.take();
        let closing = cursor.take();
        if closing.text != name.text {
            let error = Diagnostic::at(
                Stage::Syntax,
                closing.span,
                format!("expected `end {}`, found `end {}`", name.text, closing.text),
            );
            return Err(error.related(name.span, "the section starts here"));
        }
        tokens.push(Token { kind: TokenKind::End, text: "", span: last.span });
        out.push(Section { name, tokens });
        if !cursor.at_end() && !cursor.is("\n") {
            return Err(cursor.unexpected("the end of the line"));
        }
    }
}

/// Parses the name of the next variable of a section; `None` at its end.
fn declared_name<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Option<Token<'a>>, Diagnostic> {
    while cursor.eat("\n") {}
    if cursor.at_end() {
        return Ok(None);
    }
    let name = cursor.name("the name of a variable")?;
    if super::registers::parse(name.text).is_some() || ["N", "eip"].contains(&name.text) {
        return Err(Diagnostic::at(
            Stage::Type,
            name.span,
            format!("`{}` cannot be the name of a variable", name.text),
        ));
    }
    Ok(Some(name))
}

fn declarations(
    section: &Section<'_>,
    elements: usize,
    threads: usize,
    variables: &mut Variables,
    declared: &mut Vec<Declaration>,
) -> Result<(), Diagnostic> {
    let mut cursor = Cursor::new(&section.tokens);
    loop {
        let Some(name) = declared_name(&mut cursor)? else { return Ok(()) };
        if variables.get(name.text).is_some() {
            return Err(Diagnostic::at(
                Stage::Type,
                name.span,
                format!("the variable `{}` is declared twice", name.text),
            ));
        }
        let ty = match cursor.peek().text.to_ascii_lowercase().as_str() {
            "db" => "int8_t",
            "dw" => "int16_t",
            "dd" => "int32_t",
            "dq" => "int64_t",
            _ => return Err(cursor.unexpected("`dd`")),
        };
        cursor.take();
        let ty = IntegerType::of_name(ty).unwrap_or(IntegerType::INT);
        let at = cursor.peek().span;
        let initial = if cursor.eat("?") {
            None
        } else if cursor.eat_word("N") {
            Some(Number::Threads)
        } else {
            Some(Number::Literal(
                cursor.number().map_err(|_| cursor.unexpected("a number, `N` or `?`"))?,
            ))
        };
        let value = match initial {
            Some(Number::Literal(n)) => n,
            Some(Number::Threads) => threads as i64,
            None => 0,
        };
        let Some(signed) = word(value, ty.width) else {
            return Err(Diagnostic::at(Stage::Type, at, too_wide(value, ty.width, name.text)));
        };
        let per_thread = section.name.text == "thread_data";
        let bits = value as u64 & ty.width.mask();
        variables
            .declare(name.text, Some(ty), elements != 1 || per_thread, vec![bits; elements])
            .per_thread = per_thread;
        let counter = cursor.eat("!");
        if counter && !(cursor.eat_word("as") && cursor.eat_word("counter")) {
            return Err(cursor.unexpected("`as counter`"));
        }
        let initial =
            initial.map(|n| if n == Number::Threads { n } else { Number::Literal(signed) });
        declared.push(Declaration {
            name: name.text.into(),
            width: ty.width,
            initial,
            counter,
            per_thread,
            span: name.span,
        });
        if !cursor.at_end() && !cursor.is("\n") {
            return Err(cursor.unexpected("the end of the line"));
        }
    }
}

fn init_code(section: &Section<'_>) -> Result<(), Diagnostic> {
    let mut cursor = Cursor::new(&section.tokens);
    loop {
        while cursor.eat("\n") {}
        if cursor.at_end() {
            return Ok(());
        }
        if !cursor.eat_word("start_threads") {
            let error = Diagnostic::at(
                Stage::Unsupported,
                cursor.peek().span,
                "code that runs before the threads start",
            );
            return Err(error.note("`init_code` may contain only `start_threads`; initial values belong in `shared_data` and `thread_data`"));
        }
    }
}

/// Rejects instructions on counters other than move, increment, decrement and compare; the paper's
/// tool translates only these.
fn check_counters(
    steps: &[Step],
    instructions: &[super::Instruction],
    declared: &[Declaration],
    variables: &Variables,
) -> Result<(), Diagnostic> {
    for step in steps {
        let address = match &step.access {
            Access::Read { address, .. }
            | Access::Write { address, .. }
            | Access::Update { address, .. } => address,
            _ => continue,
        };
        let Expr::Const(address) = address else { continue };
        let Some((v, _)) = variables.at(*address) else { continue };
        let instruction = &instructions[step.instruction as usize];
        let words: Vec<String> =
            instruction.text.split_whitespace().map(str::to_ascii_lowercase).collect();
        let name = words.iter().find(|w| *w != "lock").map_or("", String::as_str);
        let counted = declared.iter().any(|d| d.counter && d.name == v.name);
        if counted && !["mov", "inc", "dec", "cmp"].contains(&name) {
            let text = format!(
                "`{name}` on the counter `{}`, which may only be moved, incremented, decremented and compared",
                v.name
            );
            return Err(Diagnostic::at(Stage::Type, instruction.span, text));
        }
    }
    Ok(())
}
