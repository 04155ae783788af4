//! Readers of other front ends for the language server: a text -> the error that commands would
//! find in it, and what its names mean.
//!
//! Invariant: a text that a command takes has none. A program has no number of threads yet: it is
//! read as one for two and as one for any number, and an error is told if neither takes it.

use super::program::elsewhere;
use mu_axioms::cat::Model;
use mu_axioms::models::Dialect;
use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, ending};
use mu_lsp::{Meaning, Read};
use mu_process::typecheck::check_specification;
use mu_syntax::tokens::{Kind, tokens};
use std::cell::RefCell;
use std::path::Path;

/// Threads of a program that is only read.
const THREADS: usize = 2;

/// What is wrong with a text, by the name of its file. `beside`: the text of a file in the same
/// folder, as models include them. None: no front end here reads such files.
pub(super) fn read(
    path: &Path,
    text: &str,
    beside: &dyn Fn(&str) -> Option<String>,
) -> Option<Read> {
    let mut sources = SourceMap::new();
    let name = path.file_name()?.to_string_lossy().into_owned();
    let ending = ending(path)?;
    let keywords: &[&str] = match ending.as_str() {
        "cub" => mu_cubicle::parse::KEYWORDS,
        "cat" => mu_axioms::cat::KEYWORDS,
        _ => &[],
    };
    let meaning;
    let result = match ending.as_str() {
        "cub" => {
            meaning = Some(plain(&name, text, mu_cubicle::names));
            system(sources.add(name, text), text)
        }
        "asm" => {
            meaning = Some(plain(&name, text, mu_program::names));
            program(sources.add(name, text), text)
        }
        "cat" => {
            let beside = |name: &str| beside(name).or_else(|| mu_axioms::models::file(name));
            let compiled = Dialect::compile(&mut sources, &name, text, &beside);
            meaning = Some(of_model(&name, text, &beside, compiled.as_ref().ok().map(|c| &c.0)));
            compiled.map(drop)
        }
        "pbes" => {
            // The parameter layer has names of its own, which are not told yet.
            meaning =
                (!has_parameters(text)).then(|| plain(&name, text, mu_formula::equations::names));
            equations(&mut sources, &name, text)
        }
        "litmus" => {
            meaning = Some(plain(&name, text, mu_litmus::names));
            let source = sources.add(name, text);
            test(source, text)
        }
        _ => return None,
    };
    Some(Read { refused: result.err(), sources, keywords, meaning })
}

/// Whether a text has anything of the parameter layer.
fn has_parameters(text: &str) -> bool {
    tokens(text).iter().any(|t| matches!(t.kind, Kind::Directive | Kind::Value))
}

/// The names of a text that includes no other.
fn plain(name: &str, text: &str, names: fn(SourceId, &str) -> Naming) -> Meaning {
    let mut sources = SourceMap::new();
    let source = sources.add(name, text);
    Meaning { naming: names(source, text), sources, source, included: Vec::new() }
}

fn of_model(
    name: &str,
    text: &str,
    beside: &dyn Fn(&str) -> Option<String>,
    model: Option<&Model>,
) -> Meaning {
    let mut sources = SourceMap::new();
    let source = sources.add(name, text);
    let said = || Dialect::of_head(&mu_axioms::cat::head(text)).vocabulary();
    let vocabulary = model.map_or_else(said, |m| m.vocabulary().clone());
    let included = RefCell::new(Vec::new());
    let resolve = |name: &str| {
        beside(name).inspect(|text| included.borrow_mut().push((name.to_string(), text.clone())))
    };
    let naming = mu_axioms::cat::names(&mut sources, source, &resolve, &vocabulary, model);
    Meaning { naming, sources, source, included: included.into_inner() }
}

/// A test that one of its two readers takes has no error.
fn test(source: SourceId, text: &str) -> Result<(), Diagnostic> {
    let axiomatic = mu_litmus::parse(source, text, mu_litmus::file::Options::default()).map(drop);
    if axiomatic.is_err() && text.trim_start().starts_with("X86") {
        return mu_program::litmus::parse(source, text).map(drop).map_err(|e| elsewhere(e, text));
    }
    axiomatic
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
    check_specification(
        &mu_formula::equations::read(expanded.source, &expanded.text)?.specification,
    )
    .map(drop)
}
