//! Writer of litmus tests in the format of the herd tools, from a history: X86, RISC-V, AArch64, or
//! C.
//!
//! Plain operations use only what every language has; acquires and releases are written in RISC-V,
//! AArch64 and C. The condition is either that the loads can read the values of the history
//! ([`litmus`]), or that the loads of its program read only the listed values ([`self_checking`]).

use mu_axioms::Architecture;
use mu_axioms::Kind;
use mu_axioms::history::{History, Operation, location_name};
use mu_axioms::models::{Dialect, Mark};
use std::fmt::Write;

/// A language of litmus tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// x86.
    X86,
    /// RISC-V.
    RiscV,
    /// AArch64.
    AArch64,
    /// C with atomics.
    C,
}

impl Language {
    /// Returns the languages in which a model of the dialect can judge the history, the preferred
    /// one first. X86 has no acquires and releases; histories with them are written in RISC-V if
    /// the model has no architecture.
    pub fn of(dialect: Dialect, history: &History) -> &'static [Language] {
        match dialect {
            Dialect::Of(Architecture::RiscV) => &[Language::RiscV],
            Dialect::Of(Architecture::AArch64) => &[Language::AArch64],
            Dialect::Of(Architecture::C11) => &[Language::C],
            _ if history.threads.iter().flatten().any(|o| o.mark != Mark::Plain) => {
                &[Language::RiscV]
            }
            _ => &[Language::X86, Language::RiscV],
        }
    }
}

/// Returns the instructions of an operation, and the register that receives the value read. `i` is
/// the number of loads before it in the thread.
fn instructions(language: Language, i: usize, o: &Operation) -> (Vec<String>, String) {
    const X86: [&str; 6] = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI"];
    let (x, base) = (location_name(o.location), 20 + o.location);
    let value = o.value;
    match language {
        Language::X86 | Language::C => {
            let r = X86[i % X86.len()];
            let lines = match o.kind {
                Kind::Fence => vec!["MFENCE".to_string()],
                Kind::Write => vec![format!("MOV [{x}],${value}")],
                Kind::Update => vec![format!("MOV {r},${value}"), format!("XCHG [{x}],{r}")],
                _ => vec![format!("MOV {r},[{x}]")],
            };
            (lines, r.to_string())
        }
        Language::RiscV => {
            let r = format!("x{}", 5 + i);
            let put = format!("ori x12,x0,{value}");
            let lines = match (o.kind, o.mark) {
                (Kind::Fence, _) => vec!["fence rw,rw".to_string()],
                (Kind::Write, Mark::Release) => vec![put, format!("sw.rl x12,0(x{base})")],
                (Kind::Write, _) => vec![put, format!("sw x12,0(x{base})")],
                (Kind::Update, _) => vec![put, format!("amoswap.w {r},x12,(x{base})")],
                (_, Mark::Acquire) => vec![format!("lw.aq {r},0(x{base})")],
                _ => vec![format!("lw {r},0(x{base})")],
            };
            (lines, r)
        }
        Language::AArch64 => {
            let put = format!("MOV W12,#{value}");
            let (r, full) = (format!("W{i}"), format!("X{i}"));
            let lines = match (o.kind, o.mark) {
                (Kind::Fence, _) => vec!["DMB SY".to_string()],
                (Kind::Write, Mark::Release) => vec![put, format!("STLR W12,[X{base}]")],
                (Kind::Write, _) => vec![put, format!("STR W12,[X{base}]")],
                (Kind::Update, _) => vec![put, format!("SWP W12,{r},[X{base}]")],
                (_, Mark::Acquire) => vec![format!("LDAR {r},[X{base}]")],
                _ => vec![format!("LDR {r},[X{base}]")],
            };
            (lines, full)
        }
    }
}

/// The condition on the registers of a program's loads.
enum Question<'q> {
    /// The registers can have the values of the history.
    Exists,
    /// The registers always have values of this list, in the order of the loads.
    Forall(&'q [Vec<u64>]),
}

/// Prints a test with the condition that the loads can read the values of the history.
pub fn litmus(history: &History, name: &str, language: Language) -> String {
    text(history, name, language, Question::Exists)
}

/// Prints a self-checking test: in every execution the loads of the program read one of the listed
/// combinations of values, in the order of the loads.
pub fn self_checking(
    program: &History,
    allowed: &[Vec<u64>],
    name: &str,
    language: Language,
) -> String {
    text(program, name, language, Question::Forall(allowed))
}

/// Returns the registers that receive the values read, thread by thread.
fn registers(history: &History, language: Language) -> Vec<String> {
    let mut out = Vec::new();
    for (t, thread) in history.threads.iter().enumerate() {
        for (reads, (i, o)) in thread.iter().enumerate().filter(|(_, o)| o.kind.reads()).enumerate()
        {
            let name = if language == Language::C {
                format!("r{i}")
            } else {
                instructions(language, reads, o).1
            };
            out.push(format!("{t}:{name}"));
        }
    }
    out
}

fn condition(history: &History, language: Language, question: &Question<'_>) -> String {
    let registers = registers(history, language);
    let all = |values: &mut dyn Iterator<Item = u64>| {
        let parts: Vec<String> =
            registers.iter().zip(values).map(|(r, v)| format!("{r}={v}")).collect();
        if parts.is_empty() { "true".to_string() } else { parts.join(" /\\ ") }
    };
    match question {
        Question::Exists => {
            let reads = history.threads.iter().flatten().filter(|o| o.kind.reads());
            format!("exists ({})", all(&mut reads.map(Operation::taken)))
        }
        Question::Forall(allowed) => {
            let parts: Vec<String> = allowed.iter().map(|o| all(&mut o.iter().copied())).collect();
            match &parts[..] {
                [] => "forall (false)".into(),
                [one] => format!("forall ({one})"),
                all => format!("forall (({}))", all.join(")\n     \\/ (")),
            }
        }
    }
}

fn text(history: &History, name: &str, language: Language, question: Question<'_>) -> String {
    let condition = condition(history, language, &question);
    let head = match language {
        Language::X86 => "X86",
        Language::RiscV => "RISCV",
        Language::AArch64 => "AArch64",
        Language::C => return history.litmus_with_condition(name, Some(&condition)),
    };
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (t, thread) in history.threads.iter().enumerate() {
        let mut column = vec![format!("P{t}")];
        let mut reads = 0;
        for o in thread {
            column.extend(instructions(language, reads, o).0);
            reads += usize::from(o.kind.reads());
        }
        columns.push(column);
    }
    let mut out = format!("{head} {name}\n");
    if matches!(question, Question::Exists) {
        let _ = writeln!(out, "\"{}\"", history.text());
    }
    let mut initial: Vec<String> =
        (0..history.locations()).map(|l| format!("{}=0;", location_name(l))).collect();
    let letter = if language == Language::AArch64 { "X" } else { "x" };
    if language != Language::X86 {
        for (t, thread) in history.threads.iter().enumerate() {
            let mut used: Vec<u32> =
                thread.iter().filter(|o| o.kind != Kind::Fence).map(|o| o.location).collect();
            used.sort_unstable();
            used.dedup();
            initial.extend(
                used.iter().map(|l| format!("{t}:{letter}{}={};", 20 + l, location_name(*l))),
            );
        }
    }
    let _ = writeln!(out, "{{ {} }}", initial.join(" "));
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> =
        columns.iter().map(|c| c.iter().map(String::len).max().unwrap_or(0)).collect();
    for row in 0..rows {
        let cells = columns
            .iter()
            .zip(&widths)
            .map(|(c, &w)| format!(" {:w$} ", c.get(row).map_or("", String::as_str)));
        let _ = writeln!(out, "{};", cells.collect::<Vec<_>>().join("|"));
    }
    out += &condition;
    out.push('\n');
    out
}
