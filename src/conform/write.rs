//! A history as a litmus test that the herd tools read: X86, RISC-V, AArch64, or C.
//!
//! Plain operations only take what each language has for them; acquires and releases are written in RISC-V, AArch64 and C. The question is whether the values
//! that the history's loads read can all be read.

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
    /// Those in which a model of a dialect can be asked about a history, the first one first. Models of no architecture that speak of acquires and releases are not
    /// for X86; RISC-V has their words.
    pub fn of(dialect: Dialect, history: &History) -> &'static [Language] {
        match dialect {
            Dialect::Of(Architecture::RiscV) => &[Language::RiscV],
            Dialect::Of(Architecture::AArch64) => &[Language::AArch64],
            Dialect::Of(Architecture::C11) => &[Language::C],
            _ if history.threads.iter().flatten().any(|o| o.mark != Mark::Plain) => &[Language::RiscV],
            _ => &[Language::X86, Language::RiscV],
        }
    }
}

/// The instructions of an operation, and the register that gets what it reads. `i` tells those of a thread apart.
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

/// The text of a test.
pub fn litmus(history: &History, name: &str, language: Language) -> String {
    let head = match language {
        Language::X86 => "X86",
        Language::RiscV => "RISCV",
        Language::AArch64 => "AArch64",
        Language::C => return history.litmus(name),
    };
    let mut condition = Vec::new();
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (t, thread) in history.threads.iter().enumerate() {
        let mut column = vec![format!("P{t}")];
        let mut reads = 0;
        for o in thread {
            let (lines, register) = instructions(language, reads, o);
            column.extend(lines);
            if o.kind.reads() {
                reads += 1;
                condition.push(format!("{t}:{register}={}", o.taken()));
            }
        }
        columns.push(column);
    }
    let mut out = format!("{head} {name}\n");
    let _ = writeln!(out, "\"{}\"", history.text());
    let mut initial: Vec<String> = (0..history.locations()).map(|l| format!("{}=0;", location_name(l))).collect();
    let letter = if language == Language::AArch64 { "X" } else { "x" };
    if language != Language::X86 {
        for (t, thread) in history.threads.iter().enumerate() {
            let mut used: Vec<u32> = thread.iter().filter(|o| o.kind != Kind::Fence).map(|o| o.location).collect();
            used.sort_unstable();
            used.dedup();
            initial.extend(used.iter().map(|l| format!("{t}:{letter}{}={};", 20 + l, location_name(*l))));
        }
    }
    let _ = writeln!(out, "{{ {} }}", initial.join(" "));
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(|c| c.iter().map(String::len).max().unwrap_or(0)).collect();
    for row in 0..rows {
        let cells = columns.iter().zip(&widths).map(|(c, &w)| format!(" {:w$} ", c.get(row).map_or("", String::as_str)));
        let _ = writeln!(out, "{};", cells.collect::<Vec<_>>().join("|"));
    }
    let condition = if condition.is_empty() { "true".to_string() } else { condition.join(" /\\ ") };
    let _ = writeln!(out, "exists ({condition})");
    out
}
