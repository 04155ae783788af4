//! A litmus file: architecture, name, information, initial state, code, question.
//!
//! In: the text. Out: a [`Test`]. What is not understood is refused with its place; what other tools keep in the head (`Generator=…`, a text in quotes) is kept as it is.

use crate::aarch64;
use crate::asm;
use crate::c;
use crate::code::{Arch, Register, Thread};
use crate::condition::{self, Question, Registers};
use crate::init::{self, InitialRegister};
use crate::layout::{Layout, Type};
use crate::lexer::{self, Cursor, Token};
use crate::{riscv, x86};
use mu_base::{Diagnostic, SourceId, Span, Stage};
use std::collections::HashMap;

/// How to read a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether read-modify-writes of C and RISC-V are two events, related by `rmw`, as some models have it; else they are one.
    pub pairs: bool,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// What it is written for.
    pub arch: Arch,
    /// Its name.
    pub name: String,
    /// Lines `key=value` of its head.
    pub info: Vec<(String, String)>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Memory.
    pub layout: Layout,
    /// What is asked.
    pub question: Question,
}

struct Header {
    arch: Arch,
    name: String,
    info: Vec<(String, String)>,
    /// Where the initial state begins.
    body: usize,
}

/// Reads a test.
pub fn parse(source: SourceId, text: &str, options: Options) -> Result<Test, Diagnostic> {
    let header = header(source, text)?;
    let list = lexer::tokens(source, text, header.body, header.arch == Arch::C)?;
    let mut cursor = Cursor::new(&list);
    let arch = header.arch;
    let mut layout = Layout::default();
    let initial = init::initial_state(&mut cursor, arch, &mut layout)?;
    let mut locals: Vec<c::Locals> = Vec::new();
    let mut threads = Vec::new();
    if arch == Arch::C {
        for function in c::functions(&mut cursor, &mut layout, options.pairs, text)? {
            threads.push(function.thread);
            locals.push(function.locals);
        }
    } else {
        for assembler in asm::code(&mut cursor, arch, &mut layout, options.pairs, text)? {
            threads.push(assembler.finish()?);
            locals.push(HashMap::new());
        }
    }
    for r in &initial {
        set_register(arch, &mut threads, &mut locals, r)?;
    }
    let mut names = Names { arch, threads: &mut threads, locals: &locals };
    let question = condition::question(&mut cursor, &mut names, &mut layout)?;
    Ok(Test { arch, name: header.name, info: header.info, threads, layout, question })
}

/// The architecture that a test is written for.
pub fn architecture(source: SourceId, text: &str) -> Result<Arch, Diagnostic> {
    header(source, text).map(|h| h.arch)
}

fn header(source: SourceId, text: &str) -> Result<Header, Diagnostic> {
    let bytes = text.as_bytes();
    let span = |start: usize, end: usize| Span { source, start: start as u32, end: end as u32 };
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let skip = |at: usize| match lexer::comment(bytes, at) {
        Some(None) => Err(Diagnostic::at(Stage::Syntax, span(at, at + 2), "this comment has no end")),
        Some(Some(end)) => Ok(Some(end)),
        None => Ok(None),
    };
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        match skip(at)? {
            Some(end) => at = end,
            None => break,
        }
    }
    let line = text[at..].lines().next().unwrap_or("");
    let first = line.split_whitespace().next().unwrap_or("");
    let Some(arch) = Arch::by_name(first) else {
        let error = if first.is_empty() {
            Diagnostic::at(Stage::Syntax, span(at, at), "an empty litmus test")
                .note("expected an architecture and a name in the first line")
        } else {
            Diagnostic::at(Stage::Unsupported, span(at, at + first.len()), format!("architecture `{first}`"))
        };
        return Err(error.note("supported: X86, X86_64, RISCV, AArch64, C"));
    };
    let Some(name) = line.split_whitespace().nth(1).map(|n| n.trim_end_matches(';')) else {
        return Err(Diagnostic::at(Stage::Syntax, span(at, at + first.len()), "a litmus test without a name")
            .note("expected it after the architecture"));
    };
    at += line.find(first).unwrap_or(0) + first.len();
    at += text[at..].find(name).map_or(0, |i| i + name.len());
    let mut info = Vec::new();
    loop {
        let Some(&b) = bytes.get(at) else {
            let end = text.len();
            return Err(Diagnostic::at(Stage::Syntax, span(end, end), "expected `{` and an initial state, found the end of the text"));
        };
        if let Some(end) = skip(at)? {
            at = end;
            continue;
        }
        match b {
            b'{' => break,
            b'"' => at = text[at + 1..].find('"').map_or(bytes.len(), |i| at + 1 + i + 1),
            _ if b.is_ascii_whitespace() || b == b';' => at += 1,
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

/// The full name of a register, and how many bytes a name means. The register that is always zero has no full name.
fn register_of(arch: Arch, name: &str) -> Option<(Option<String>, u8)> {
    match arch {
        Arch::RiscV => riscv::number(name).map(|n| ((n > 0).then(|| format!("x{n}")), 8)),
        Arch::AArch64 => aarch64::parse_register(name),
        Arch::X86 | Arch::X86_64 => x86::parse_register(name).map(|(full, width)| (Some(full), width)),
        Arch::C => Some((Some(name.to_string()), 8)),
    }
}

fn no_register(arch: Arch, token: &Token<'_>) -> Diagnostic {
    Diagnostic::at(Stage::Type, token.span, format!("`{}` is no register of {}", token.text, arch.name()))
}

fn no_thread(token: &Token<'_>, thread: u32, count: usize) -> Diagnostic {
    let error = format!("there is no thread {thread}, the last one is {}", count.saturating_sub(1));
    Diagnostic::at(Stage::Type, token.span, error)
}

fn set_register(arch: Arch, threads: &mut [Thread], locals: &mut [c::Locals], r: &InitialRegister<'_>) -> Result<(), Diagnostic> {
    let count = threads.len();
    let Some(thread) = threads.get_mut(r.thread as usize) else { return Err(no_thread(&r.token, r.thread, count)) };
    let (full, width) = register_of(arch, r.token.text).ok_or_else(|| no_register(arch, &r.token))?;
    let Some(full) = full else {
        return if r.value.unwrap_or(0) == 0 {
            Ok(())
        } else {
            Err(Diagnostic::at(Stage::Type, r.token.span, format!("`{}` is always 0", r.token.text)))
        };
    };
    let at = thread.register(&full);
    if let Some(value) = r.value {
        let bits = u32::from(width) * 8;
        // A register of 32 bits keeps as many.
        let value = if arch == Arch::X86 { crate::code::low(value, 32) } else { crate::code::low(value, bits) };
        thread.registers[at as usize].1 = value;
    }
    if let Some(ty) = r.declared {
        locals[r.thread as usize].insert(at, ty);
    }
    Ok(())
}

/// Knows the registers of a condition.
struct Names<'t> {
    arch: Arch,
    threads: &'t mut Vec<Thread>,
    locals: &'t [c::Locals],
}

impl Registers for Names<'_> {
    fn register(&mut self, thread: u32, name: &Token<'_>) -> Result<(Register, Option<Type>, String), Diagnostic> {
        let count = self.threads.len();
        let Some(code) = self.threads.get_mut(thread as usize) else { return Err(no_thread(name, thread, count)) };
        let (full, width) = register_of(self.arch, name.text).ok_or_else(|| no_register(self.arch, name))?;
        let register = code.register(full.as_deref().unwrap_or("x0"));
        let declared = self.locals[thread as usize].get(&register).copied();
        let width = if self.arch == Arch::X86 { width.min(4) } else { width };
        let shown = declared.filter(|t| t.width <= width).unwrap_or(Type { width, signed: true });
        Ok((register, Some(shown), name.text.to_string()))
    }
}
