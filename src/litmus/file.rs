//! Parser of litmus files: architecture, name, information, initial state, code, question.
//!
//! Input: the text. Output: a [`LitmusTest`]. Unsupported constructs are rejected with their
//! position. Information of other tools in the head (`Generator=…`, a quoted text) is preserved.

use crate::aarch64;
use crate::asm;
use crate::c;
use crate::code::{self, Arch, Register, Thread};
use crate::code_sections;
use crate::condition::{KnownNames, Observed, Registers};
use crate::init::{self, InitialRegister};
use crate::instruction_values;
use crate::kernel::{self, KernelLanguage};
use crate::layout::{DEFAULT, IntegerType, MemoryLayout};
use crate::{arm, power, riscv, x86};
use mu_base::words::{self, Cursor, LexicalForm, Token};
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};
use mu_program::outcome::{Head, Question, head};
use std::collections::HashMap;

/// Options of the parser.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParserOptions<'l> {
    /// True if read-modify-writes of C and RISC-V become two events related by `rmw`, as some
    /// models need; false for one event.
    pub pairs: bool,
    /// The language of tests in C if they are tests of the Linux kernel.
    pub kernel: Option<&'l KernelLanguage>,
}

/// A test.
#[derive(Clone, Debug)]
pub struct LitmusTest {
    /// Its architecture.
    pub arch: Arch,
    /// Its name.
    pub name: String,
    /// Lines `key=value` of its head.
    pub info: Vec<(String, String)>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Memory.
    pub layout: MemoryLayout,
    /// Its question.
    pub question: Question<Observed>,
    /// Registers of the condition that neither the code of their thread nor the initial state
    /// names, so that they are 0.
    pub unnamed: Vec<String>,
}

/// Parses a test.
pub fn parse(
    source: SourceId,
    text: &str,
    options: ParserOptions<'_>,
) -> Result<LitmusTest, Diagnostic> {
    let header = header(source, text)?;
    if let Arch::X86 | Arch::X86_64 = header.arch {
        return x86::test(source, text, header.arch);
    }
    if header.arch == Arch::AArch64 {
        for word in variants(&header) {
            if let Some(feature) = aarch64::unsupported_variant(word) {
                let message = format!("the variant `{word}` of the test is of {feature}");
                return Err(Diagnostic::new(Stage::Unsupported, message));
            }
        }
    }
    let list = words::tokens(
        source,
        text,
        header.body,
        if header.arch == Arch::C { LexicalForm::C } else { LexicalForm::Free },
    )?;
    let mut cursor = Cursor::new(&list);
    let kernel = options.kernel.filter(|_| header.arch == Arch::C);
    let arch = if kernel.is_some() { Arch::Linux } else { header.arch };
    let mut layout = MemoryLayout::default();
    let initial = match kernel {
        Some(_) => kernel::initial_state(&mut cursor, &mut layout)?,
        None => init::initial_state(&mut cursor, arch, &mut layout)?,
    };
    let mut locals: Vec<c::Locals> = Vec::new();
    let mut threads = Vec::new();
    if let Some(language) = kernel {
        let given =
            initial.iter().filter_map(|r| Some((r.thread?, r.token.text.to_string()))).collect();
        threads = kernel::threads(&mut cursor, &mut layout, language, text, &given)?;
        locals = threads.iter().map(|_| c::Locals::default()).collect();
    } else if arch == Arch::C {
        for function in c::functions(&mut cursor, &mut layout, options.pairs, text)? {
            threads.push(function.thread);
            locals.push(function.locals);
        }
    } else {
        for assembler in asm::code(&mut cursor, arch, options.pairs, text)? {
            let thread = assembler.finish()?;
            threads.push(Thread { returns: returns(&header), ..thread });
            locals.push(c::Locals::default());
        }
        code_sections::share(&mut threads);
    }
    let mut set: HashMap<(u32, String), Span> = HashMap::new();
    layout.set_code(code_labels(&threads));
    for r in &initial {
        let name = format!("%{}", r.token.text);
        let uses = |t: &Thread| t.registers.iter().any(|known| known.0 == name);
        let of: Vec<u32> = match r.thread {
            Some(thread) => vec![thread],
            None => (0..).zip(&threads).filter(|(_, t)| uses(t)).map(|(i, _)| i).collect(),
        };
        for thread in of {
            if let Some((Some(full), _)) = register_of(arch, r.token.text, r.symbolic)
                && let Some(first) = set.insert((thread, full), r.token.span)
            {
                let message =
                    format!("the register `{thread}:{}` is initialised twice", r.token.text);
                return Err(Diagnostic::at(Stage::Type, r.token.span, message)
                    .related(first, "the first time"));
            }
            set_register(arch, &mut threads, &mut locals, thread, r)?;
        }
    }
    let mut names =
        RegisterResolver { arch, threads: &mut threads, locals: &locals, unnamed: Vec::new() };
    if arch == Arch::C {
        skip_regions(&mut cursor)?;
    }
    let question = Question::parse(
        &mut cursor,
        &mut KnownNames { registers: &mut names, layout: &mut layout },
    )?;
    let unnamed = names.unnamed;
    if list.iter().any(|t| matches!(t.text, "ins_t" | "instr")) {
        instruction_values::declare_code(&threads, &mut layout);
    }
    let (name, info) = (header.name, header.info);
    Ok(LitmusTest { arch, name, info, threads, layout, question, unnamed })
}

/// Skips `regions: x:R, y:S`, which is for models of devices.
fn skip_regions(cursor: &mut Cursor<'_, '_>) -> Result<(), Diagnostic> {
    if !cursor.is_word("regions") || cursor.ahead(1).text != ":" {
        return Ok(());
    }
    cursor.take();
    cursor.take();
    loop {
        cursor.name("a variable")?;
        cursor.expect(":")?;
        cursor.name("a region")?;
        if !cursor.eat(",") {
            return Ok(());
        }
    }
}

/// Returns the architecture of a test.
pub fn architecture(source: SourceId, text: &str) -> Result<Arch, Diagnostic> {
    header(source, text).map(|h| h.arch)
}

/// Returns the variants of the herd tools that a test names in its head.
fn variants(header: &Head<Arch>) -> impl Iterator<Item = &str> {
    let lists = header.info.iter().filter(|(key, _)| key.eq_ignore_ascii_case("variant"));
    lists.flat_map(|(_, list)| list.split([',', ' ']))
}

/// True if the threads are functions of a compiler, which return at their end.
fn returns(header: &Head<Arch>) -> bool {
    variants(header).any(|word| word.eq_ignore_ascii_case("telechat"))
}

fn header(source: SourceId, text: &str) -> Result<Head<Arch>, Diagnostic> {
    head(source, text, Arch::by_name, "X86, X86_64, RISCV, AArch64, PPC, ARM, C")
}

/// Returns the name of the full register, and the number of bytes that a name denotes. The zero
/// register has no full name.
fn register_of(arch: Arch, name: &str, symbolic: bool) -> Option<(Option<String>, u8)> {
    if symbolic {
        return Some((Some(format!("%{name}")), arch.pointer()));
    }
    match arch {
        Arch::RiscV => riscv::number(name).map(|n| ((n > 0).then(|| format!("x{n}")), 8)),
        Arch::AArch64 => aarch64::parse_register(name),
        Arch::Power => power::number(name).map(|n| (Some(format!("r{n}")), 8)),
        Arch::Arm => arm::number(name).map(|n| (Some(format!("R{n}")), 4)),
        // Tests of x86 have a separate parser.
        Arch::X86 | Arch::X86_64 => None,
        Arch::C | Arch::Linux => Some((Some(name.to_string()), 8)),
    }
}

fn no_register(arch: Arch, token: &Token<'_>) -> Diagnostic {
    Diagnostic::at(
        Stage::Type,
        token.span,
        format!("`{}` is no register of {}", token.text, arch.name()),
    )
}

fn no_thread(token: &Token<'_>, thread: u32, count: usize) -> Diagnostic {
    let error = format!("there is no thread {thread}, the last one is {}", count.saturating_sub(1));
    Diagnostic::at(Stage::Type, token.span, error)
}

fn set_register(
    arch: Arch,
    threads: &mut [Thread],
    locals: &mut [c::Locals],
    of: u32,
    r: &InitialRegister<'_>,
) -> Result<(), Diagnostic> {
    let count = threads.len();
    let Some(thread) = threads.get_mut(of as usize) else {
        return Err(no_thread(&r.token, of, count));
    };
    let (full, width) =
        register_of(arch, r.token.text, r.symbolic).ok_or_else(|| no_register(arch, &r.token))?;
    let Some(full) = full else {
        return if r.value.unwrap_or(0) == 0 {
            Ok(())
        } else {
            Err(Diagnostic::at(
                Stage::Type,
                r.token.span,
                format!("`{}` is always 0", r.token.text),
            ))
        };
    };
    let at = thread.register(&full);
    let value = match &r.label {
        Some((of, name)) => Some(label_address(threads, *of, name)?),
        None => r.value,
    };
    let thread = &mut threads[of as usize];
    if let Some(value) = value {
        let bits = u32::from(width) * 8;
        let value = match locals[of as usize].types.get(&at) {
            Some(ty) if arch == Arch::C => ty.convert(value),
            _ => crate::code::low(value, bits),
        };
        thread.registers[at as usize].1 = value;
    }
    if let Some(ty) = r.declared {
        locals[of as usize].types.insert(at, ty);
    }
    Ok(())
}

/// Resolver of the registers in a condition.
struct RegisterResolver<'t> {
    arch: Arch,
    threads: &'t mut Vec<Thread>,
    locals: &'t [c::Locals],
    /// As [`LitmusTest::unnamed`].
    unnamed: Vec<String>,
}

/// Returns the addresses of all labels, with their names as printed.
fn code_labels(threads: &[Thread]) -> Vec<(u64, String)> {
    let of = |(t, thread): (usize, &Thread)| {
        let name = |(label, at): &(String, u32)| {
            (code::code_address(narrow::index(t), *at), format!("label:\"P{t}:{label}\""))
        };
        thread.labels.iter().map(name).collect::<Vec<_>>()
    };
    threads.iter().enumerate().flat_map(of).collect()
}

/// Returns the address of a label of a thread.
fn label_address(threads: &[Thread], thread: u32, name: &Token<'_>) -> Result<u64, Diagnostic> {
    let code =
        threads.get(thread as usize).ok_or_else(|| no_thread(name, thread, threads.len()))?;
    let found = code.labels.iter().find(|l| l.0 == name.text);
    found.map(|l| code::code_address(thread, l.1)).ok_or_else(|| {
        let message = format!("there is no label `{}` in P{thread}", name.text);
        Diagnostic::at(Stage::Type, name.span, message)
    })
}

impl Registers for RegisterResolver<'_> {
    fn label(&mut self, thread: u32, name: &Token<'_>) -> Result<u64, Diagnostic> {
        label_address(self.threads, thread, name)
    }
    fn register(
        &mut self,
        thread: u32,
        name: &Token<'_>,
        symbolic: bool,
    ) -> Result<(Register, IntegerType, String), Diagnostic> {
        let count = self.threads.len();
        let Some(code) = self.threads.get_mut(thread as usize) else {
            return Err(no_thread(name, thread, count));
        };
        let (full, width) = register_of(self.arch, name.text, symbolic)
            .ok_or_else(|| no_register(self.arch, name))?;
        if self.arch == Arch::C && !code.registers.iter().any(|r| r.0 == name.text) {
            return Err(Diagnostic::at(
                Stage::Type,
                name.span,
                format!("`{}` is no variable of P{thread}", name.text),
            ));
        }
        let full = full.as_deref();
        let is_named = full.is_none_or(|full| code.registers.iter().any(|r| r.0 == full));
        let register = code.register(full.unwrap_or("x0"));
        let locals = &self.locals[thread as usize];
        if locals.several.contains(&register) {
            let message = format!(
                "`{}` is declared in several blocks of P{thread}, with different types",
                name.text
            );
            return Err(Diagnostic::at(Stage::Type, name.span, message)
                .note("expected a variable of one type"));
        }
        let declared = locals.types.get(&register).copied();
        // As in the herd tools, a register without a declared type is an `int`, even if it is
        // wider.
        let width = if self.arch == Arch::X86 { width.min(4) } else { width };
        let shown = declared
            .filter(|t| t.width <= width)
            .unwrap_or(IntegerType::integer(width.min(DEFAULT.width), DEFAULT.signed));
        let text = if symbolic { format!("%{}", name.text) } else { name.text.to_string() };
        if !is_named {
            self.unnamed.push(format!("{thread}:{text}"));
        }
        Ok((register, shown, text))
    }
}
