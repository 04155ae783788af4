//! Readers of other front ends for the language server: a text -> the error that commands would find in it.
//!
//! Invariant: a text that a command takes has none. A program has no number of threads yet: it is read as one for two and as one for any number, and an error
//! is told if neither takes it.

use super::program::elsewhere;
use mu_base::{Diagnostic, SourceId, SourceMap};
use mu_lsp::Read;
use mu_process::typecheck::check_specification;
use std::path::Path;

/// Threads of a program that is only read.
const THREADS: usize = 2;

/// What is wrong with a text, by the name of its file. `beside`: the text of a file in the same folder, as models include them. None: no front end here
/// reads such files.
pub(super) fn read(path: &Path, text: &str, beside: &dyn Fn(&str) -> Option<String>) -> Option<Read> {
    let mut sources = SourceMap::new();
    let name = path.file_name()?.to_string_lossy().into_owned();
    let ending = path.extension()?.to_str()?;
    let keywords: &[&str] = match ending {
        "cub" => mu_cubicle::parse::KEYWORDS,
        "cat" => mu_axioms::cat::KEYWORDS,
        _ => &[],
    };
    let result = match ending {
        "cub" => system(sources.add(name, text), text),
        "asm" => program(sources.add(name, text), text),
        "cat" => {
            let beside = |name: &str| beside(name).or_else(|| mu_axioms::models::file(name));
            mu_axioms::models::Dialect::compile(&mut sources, &name, text, &beside).map(drop)
        }
        "pbes" => equations(&mut sources, &name, text),
        // Tests for other machines than x86 have readers of their own, which need a memory model.
        "litmus" if text.trim_start().starts_with("X86") => {
            let source = sources.add(name, text);
            mu_program::litmus::parse(source, text).map(drop).map_err(|e| elsewhere(e, text))
        }
        _ => return None,
    };
    Some(Read { refused: result.err(), sources, keywords })
}

fn system(source: SourceId, text: &str) -> Result<(), Diagnostic> {
    mu_cubicle::check(&mu_cubicle::parse(source, text)?).map(drop)
}

fn program(source: SourceId, text: &str) -> Result<(), Diagnostic> {
    match mu_program::nasm::parse(source, text, THREADS) {
        Ok(_) => Ok(()),
        Err(error) => mu_program::parametric::parse(source, text).map(drop).map_err(|_| error),
    }
}

fn equations(sources: &mut SourceMap, name: &str, text: &str) -> Result<(), Diagnostic> {
    let expanded = mu_syntax::template::expand(name, text, &[], sources)?;
    check_specification(&mu_formula::equations::read(expanded.source, &expanded.text)?.specification).map(drop)
}
