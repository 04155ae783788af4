//! Writer of litmus tests in the format of the herd tools, from a history: X86, RISC-V, AArch64,
//! Power, Armv7, C, or C of the Linux kernel.
//!
//! The condition is either that the loads can read the values of the history ([`litmus`]), or that
//! the loads of its program read only the listed values ([`self_checking`]). Dependencies are
//! computed from loaded values that cancel out, as in tests of the herd tools. Error: the language
//! has no instruction for an operation, or too few registers, with the reason. Invariant: the
//! events of a test have the tags and relations of the history's skeleton.

mod instructions;
mod kernel;

use instructions::ThreadText;
use mu_axioms::Architecture;
use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, History, Operation, location_name};
use mu_axioms::models::{Dialect, MemoryOrdering};
use std::fmt::Write;

/// A language of litmus tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestLanguage {
    /// x86.
    X86,
    /// RISC-V.
    RiscV,
    /// AArch64.
    AArch64,
    /// Power.
    Power,
    /// Armv7.
    Arm,
    /// C with atomics.
    C,
    /// C of the Linux kernel.
    Kernel,
}

impl TestLanguage {
    /// Returns the languages in which a model of the dialect can judge the history, the preferred
    /// one first. X86 has no acquires, releases, exclusives and dependencies; histories with them
    /// are written in RISC-V if the model has no architecture.
    pub fn of(dialect: Dialect, history: &History) -> &'static [TestLanguage] {
        let plain = |o: &Operation| {
            o.mark == MemoryOrdering::Plain && !o.exclusive && o.depends == Dependencies::NONE
        };
        match dialect {
            Dialect::Of(Architecture::RiscV) => &[TestLanguage::RiscV],
            Dialect::Of(Architecture::AArch64) => &[TestLanguage::AArch64],
            Dialect::Of(Architecture::C11) => &[TestLanguage::C],
            Dialect::Of(Architecture::Power) => &[TestLanguage::Power],
            Dialect::Of(Architecture::Arm) => &[TestLanguage::Arm],
            Dialect::Of(Architecture::Linux) => &[TestLanguage::Kernel],
            Dialect::Of(Architecture::X86) => &[TestLanguage::X86],
            _ if history.threads.iter().flatten().all(plain) => {
                &[TestLanguage::X86, TestLanguage::RiscV]
            }
            _ => &[TestLanguage::RiscV],
        }
    }
    /// Returns the first word of its tests.
    pub fn head(self) -> &'static str {
        match self {
            TestLanguage::X86 => "X86",
            TestLanguage::RiscV => "RISCV",
            TestLanguage::AArch64 => "AArch64",
            TestLanguage::Power => "PPC",
            TestLanguage::Arm => "ARM",
            TestLanguage::C | TestLanguage::Kernel => "C",
        }
    }
}

/// The condition on the registers of a program's loads.
enum LoadCondition<'q> {
    /// The registers can have the values of the history.
    Exists,
    /// The registers always have values of this list, in the order of the loads, or a
    /// store-conditional fails.
    Forall(&'q [Vec<u64>]),
}

/// Prints a test with the condition that the loads can read the values of the history.
pub fn litmus(history: &History, name: &str, language: TestLanguage) -> Result<String, String> {
    text(history, name, language, &LoadCondition::Exists)
}

/// Prints a self-checking test: in every execution the loads of the program read one of the listed
/// combinations of values, in the order of the loads.
pub fn self_checking(
    program: &History,
    allowed: &[Vec<u64>],
    name: &str,
    language: TestLanguage,
) -> Result<String, String> {
    text(program, name, language, &LoadCondition::Forall(allowed))
}

/// The registers that a condition mentions.
#[derive(Default)]
struct Registers {
    /// Those of loads, in order.
    loads: Vec<String>,
    /// Those that are 0 if a store-conditional succeeds.
    statuses: Vec<String>,
}

fn condition(history: &History, registers: &Registers, question: &LoadCondition<'_>) -> String {
    let all = |values: &mut dyn Iterator<Item = u64>| {
        let loads = registers.loads.iter().zip(values).map(|(r, v)| format!("{r}={v}"));
        let statuses = registers.statuses.iter().map(|r| format!("{r}=0"));
        let parts: Vec<String> = loads.chain(statuses).collect();
        if parts.is_empty() { "true".to_string() } else { parts.join(" /\\ ") }
    };
    match question {
        LoadCondition::Exists => {
            let reads = history.threads.iter().flatten().filter(|o| o.kind.reads());
            format!("exists ({})", all(&mut reads.map(Operation::read_value)))
        }
        LoadCondition::Forall(allowed) => {
            let failed = registers.statuses.iter().map(|r| format!("{r}=1"));
            let listed = allowed.iter().map(|o| all(&mut o.iter().copied()));
            let parts: Vec<String> = failed.chain(listed).collect();
            match &parts[..] {
                [] => "forall (false)".into(),
                [one] => format!("forall ({one})"),
                all => format!("forall (({}))", all.join(")\n     \\/ (")),
            }
        }
    }
}

fn text(
    history: &History,
    name: &str,
    language: TestLanguage,
    question: &LoadCondition<'_>,
) -> Result<String, String> {
    let mut registers = Registers::default();
    match language {
        TestLanguage::C => {
            instructions::check_c(history)?;
            for (t, thread) in history.threads.iter().enumerate() {
                let reads = thread.iter().enumerate().filter(|(_, o)| o.kind.reads());
                registers.loads.extend(reads.map(|(i, _)| format!("{t}:r{i}")));
            }
            let condition = condition(history, &registers, question);
            return Ok(history.litmus_with_condition(name, Some(&condition)));
        }
        TestLanguage::Kernel => {
            let threads = kernel::threads(history)?;
            for (t, thread) in history.threads.iter().enumerate() {
                let reads = thread.iter().filter(|o| o.kind.reads()).count();
                registers.loads.extend((0..reads).map(|i| format!("{t}:r{i}")));
            }
            let condition = condition(history, &registers, question);
            return Ok(format!("C {name}\n\n{{}}\n{threads}\n{condition}\n"));
        }
        _ => {}
    }
    let threads: Vec<ThreadText> = history
        .threads
        .iter()
        .map(|t| ThreadText::of(language, t))
        .collect::<Result<_, String>>()?;
    for (t, thread) in threads.iter().enumerate() {
        registers.loads.extend(thread.loads.iter().map(|r| format!("{t}:{r}")));
        registers.statuses.extend(thread.statuses.iter().map(|r| format!("{t}:{r}")));
    }
    let mut out = format!("{} {name}\n", language.head());
    if matches!(question, LoadCondition::Exists) {
        let _ = writeln!(out, "\"{}\"", history.text());
    }
    let mut initial: Vec<String> =
        (0..history.locations()).map(|l| format!("{}=0;", location_name(l))).collect();
    for (t, thread) in history.threads.iter().enumerate() {
        let mut used: Vec<u32> =
            thread.iter().filter(|o| o.kind != EventKind::Fence).map(|o| o.location).collect();
        used.sort_unstable();
        used.dedup();
        for l in used {
            if let Some(base) = instructions::base(language, l) {
                initial.push(format!("{t}:{base}={};", location_name(l)));
            }
        }
    }
    let _ = writeln!(out, "{{ {} }}", initial.join(" "));
    out += &table(&threads);
    out += &condition(history, &registers, question);
    out.push('\n');
    Ok(out)
}

/// Prints the columns of threads.
fn table(threads: &[ThreadText]) -> String {
    let columns: Vec<Vec<String>> = threads
        .iter()
        .enumerate()
        .map(|(t, thread)| std::iter::once(format!("P{t}")).chain(thread.lines.clone()).collect())
        .collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> =
        columns.iter().map(|c| c.iter().map(String::len).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in 0..rows {
        let cells = columns
            .iter()
            .zip(&widths)
            .map(|(c, &w)| format!(" {:w$} ", c.get(row).map_or("", String::as_str)));
        let _ = writeln!(out, "{};", cells.collect::<Vec<_>>().join("|"));
    }
    out
}
