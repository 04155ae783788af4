//! x86 programs (`.asm`) and litmus tests (`.litmus`): the program with its memory becomes an mCRL2
//! specification, as `expand` prints it.

use crate::editing::EditedText;
use crate::mcrl2::as_mcrl2;
use crate::{FrontEnd, Input, Lexicon, Loaded, Loading, Properties};
use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, Stage, ends_in};
use mu_process::spec::ProcSpec;
use mu_process::typecheck::check_specification;
use mu_program::expansion::{mcrl2, termination_conditions};
use mu_program::machine::Machine;
use mu_program::nasm::{self, X86Program};
use mu_program::{Program, litmus, parametric};
use mu_syntax::template::ExpandedText;
use std::sync::Arc;

/// x86 programs.
pub const X86: X86Programs = X86Programs;

/// Litmus tests.
pub const LITMUS: LitmusTests = LitmusTests;

/// Front end of x86 programs.
pub struct X86Programs;

/// Front end of litmus tests.
pub struct LitmusTests;

/// Number of threads of a program that an editor checks.
const EDITED_THREADS: usize = 2;

const PROGRAM: Properties = Properties {
    specification: true,
    mcrl2: false,
    stored: false,
    buffered: true,
    program: true,
    game: false,
    rejected: false,
};

impl FrontEnd for X86Programs {
    fn language(&self) -> &'static str {
        "an x86 program"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".asm"]
    }
    fn properties(&self) -> Properties {
        PROGRAM
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        read_model(input, loading)
    }
    fn expand(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        Ok(translate_machine(&machine(input, loading)?, input, loading))
    }
    fn specification(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        typed_specification(&self.expand(input, loading)?)
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon = Lexicon {
            line: &[";"],
            inside: ".",
            keywords: &[
                "begin",
                "end",
                "shared_data",
                "thread_data",
                "thread_code",
                "unsafe_prop",
                "init_code",
                "dd",
                "dw",
                "db",
                "dq",
                "as",
                "counter",
                "lock",
                "dword",
                "word",
                "byte",
                "qword",
                "start_threads",
            ],
            ..Lexicon::PLAIN
        };
        Some(&LEXICON)
    }
    /// The number of threads is unknown in an editor: the text is read for two threads and for any
    /// number, and has an error if both readers reject it.
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        let source = sources.add(text.name(), text.text);
        match nasm::parse(source, text.text, EDITED_THREADS) {
            Ok(_) => Ok(()),
            Err(error) => parametric::parse(source, text.text).map(drop).map_err(|_| error),
        }
    }
    fn names(&self, source: SourceId, text: &str) -> Option<Naming> {
        Some(mu_program::names(source, text))
    }
}

impl FrontEnd for LitmusTests {
    fn language(&self) -> &'static str {
        "a litmus test"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".litmus"]
    }
    fn properties(&self) -> Properties {
        PROGRAM
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        read_model(input, loading)
    }
    fn expand(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        Ok(translate_machine(&machine(input, loading)?, input, loading))
    }
    fn specification(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        typed_specification(&self.expand(input, loading)?)
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon = Lexicon {
            line: &["//"],
            nested: true,
            inside: ".",
            keywords: &["exists", "forall", "locations", "filter", "not", "and", "true", "false"],
            ..Lexicon::PLAIN
        };
        Some(&LEXICON)
    }
    /// A test has no error if one of its two readers accepts it.
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        let source = sources.add(text.name(), text.text);
        let options = mu_litmus::file::ParserOptions::default();
        let axiomatic = mu_litmus::parse(source, text.text, options).map(drop);
        if axiomatic.is_err() && text.text.trim_start().starts_with("X86") {
            return litmus::parse(source, text.text)
                .map(drop)
                .map_err(|e| with_command_for_architecture(e, text.text));
        }
        axiomatic
    }
    fn names(&self, source: SourceId, text: &str) -> Option<Naming> {
        Some(mu_litmus::names(source, text))
    }
}

/// Reads an x86 program or a litmus test. `threads`: the number of threads of an x86 program.
///
/// # Errors
/// The file cannot be read; an error in the text, with its place.
pub fn program(
    input: &Input<'_>,
    threads: u32,
    sources: &mut SourceMap,
) -> Result<Program, Diagnostic> {
    if !ends_in(input.path(), "litmus") {
        return Ok(x86(input, threads, sources)?.program);
    }
    let (source, text) = input.source(sources)?;
    Ok(litmus::parse(source, &text).map_err(|e| with_command_for_architecture(e, &text))?.program)
}

/// Reads an x86 program.
///
/// # Errors
/// As [`program`].
pub fn x86(
    input: &Input<'_>,
    threads: u32,
    sources: &mut SourceMap,
) -> Result<X86Program, Diagnostic> {
    let (source, text) = input.source(sources)?;
    nasm::parse(source, &text, threads as usize)
}

/// Beginnings of names that only tests of the Linux kernel use.
const KERNEL_WORDS: [&str; 9] = [
    "READ_ONCE",
    "WRITE_ONCE",
    "smp_",
    "rcu_",
    "srcu_",
    "spin_",
    "atomic_t",
    "cmpxchg",
    "atomic_inc",
];

/// Adds to the error of a litmus test for another architecture the command that can run it.
pub fn with_command_for_architecture(error: Diagnostic, test: &str) -> Diagnostic {
    let model = match test.split_whitespace().next() {
        _ if error.stage != Stage::Unsupported => None,
        Some("RISCV") => Some("rvwmo"),
        Some("AArch64" | "AARCH64") => Some("armv8"),
        Some("C") if KERNEL_WORDS.iter().any(|word| test.contains(word)) => Some("lkmm"),
        Some("C") => Some("rc11"),
        Some("PPC") => Some("power"),
        Some("ARM") => Some("armv7"),
        _ => None,
    };
    match model {
        Some(model) => error.note(format!(
            "tests of this architecture run under a model in `cat`: `mu-check litmus --model {model}`"
        )),
        None => error,
    }
}

/// Reads a program with its memory.
fn machine(input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Machine, Diagnostic> {
    loading.expect_no_parameters(input)?;
    let program = program(input, loading.options.threads, loading.sources)?;
    let memory = loading.options.memory;
    let bound = program.buffer_bound(memory.buffer);
    Ok(Machine::new(program, memory.model, bound, &[]))
}

/// Translates a machine to mCRL2.
fn translate_machine(
    machine: &Machine,
    input: &Input<'_>,
    loading: &mut Loading<'_>,
) -> ExpandedText {
    let text = mcrl2(machine);
    let source = loading.sources.add(as_mcrl2(input), text.clone());
    ExpandedText { source, text, params: Vec::new(), constants: Vec::new() }
}

fn typed_specification(expanded: &ExpandedText) -> Result<ProcSpec, Diagnostic> {
    check_specification(&mu_syntax::parse_specification(expanded.source, &expanded.text)?)
}

/// Reads a program as a model. A search of the machine decides if the bound on store buffers cuts
/// its behaviour.
fn read_model(input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
    let mut read = None;
    let spec = loading.read_timed(input, |loading| {
        let machine = read.insert(machine(input, loading)?);
        typed_specification(&translate_machine(machine, input, loading))
    })?;
    let machine = read.expect("a specification was read from a machine");
    let mut cut = false;
    if machine.bound.is_some() && machine.memory.has_buffers() {
        loading.journal.begin_stage("searching for full store buffers");
        cut = mu_safety::buffers::are_full(&machine, loading.budget)?;
    }
    let compiled = loading
        .compile_specification(&spec)?
        .with_terminal_conditions(termination_conditions(&machine));
    Ok(Loaded { buffers: Some(Arc::new(cut)), ..Loaded::from(compiled) })
}
