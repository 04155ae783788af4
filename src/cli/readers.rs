//! Readers of the other front ends for the language server: the errors of a text and the meaning of
//! its names.
//!
//! Invariant: a text that a command accepts has no error. The number of threads of a program is
//! unknown here: it is read for two threads and for any number, and an error is reported if both
//! readers reject it.

use super::program::with_command_for_architecture;
use mu_axioms::cat::Model;
use mu_axioms::models::Dialect;
use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, ending};
use mu_lsp::{Meaning, Read};
use mu_process::typecheck::check_specification;
use mu_syntax::tokens::{Kind, tokens};
use std::cell::RefCell;
use std::path::Path;

/// Number of threads for a program that is only checked.
const THREADS: usize = 2;

/// Checks a text; the name of its file selects the reader. `sibling` returns the text of a file in
/// the same folder, for includes. `None` if no reader handles such files.
pub(super) fn read(
    path: &Path,
    text: &str,
    sibling: &dyn Fn(&str) -> Option<String>,
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
            meaning = Some(meaning_without_includes(&name, text, mu_cubicle::names));
            system(sources.add(name, text), text)
        }
        "asm" => {
            meaning = Some(meaning_without_includes(&name, text, mu_program::names));
            program(sources.add(name, text), text)
        }
        "cat" => {
            let sibling = |name: &str| sibling(name).or_else(|| mu_axioms::models::file(name));
            let compiled = Dialect::compile(&mut sources, &name, text, &sibling);
            meaning =
                Some(model_meaning(&name, text, &sibling, compiled.as_ref().ok().map(|c| &c.0)));
            compiled.map(drop)
        }
        "pbes" => {
            // The parameter layer has names of its own, which the naming does not cover yet.
            meaning = (!has_parameters(text))
                .then(|| meaning_without_includes(&name, text, mu_formula::equations::names));
            equations(&mut sources, &name, text)
        }
        "litmus" => {
            meaning = Some(meaning_without_includes(&name, text, mu_litmus::names));
            let source = sources.add(name, text);
            test(source, text)
        }
        _ => return None,
    };
    Some(Read { refused: result.err(), sources, keywords, meaning })
}

/// True if a text uses the parameter layer.
fn has_parameters(text: &str) -> bool {
    tokens(text).iter().any(|t| matches!(t.kind, Kind::Directive | Kind::Value))
}

/// Returns the names of a text without includes.
fn meaning_without_includes(
    name: &str,
    text: &str,
    names: fn(SourceId, &str) -> Naming,
) -> Meaning {
    let mut sources = SourceMap::new();
    let source = sources.add(name, text);
    Meaning { naming: names(source, text), sources, source, included: Vec::new() }
}

fn model_meaning(
    name: &str,
    text: &str,
    sibling: &dyn Fn(&str) -> Option<String>,
    model: Option<&Model>,
) -> Meaning {
    let mut sources = SourceMap::new();
    let source = sources.add(name, text);
    let declared = || Dialect::of_head(&mu_axioms::cat::head(text)).vocabulary();
    let vocabulary = model.map_or_else(declared, |m| m.vocabulary().clone());
    let included = RefCell::new(Vec::new());
    let resolve = |name: &str| {
        sibling(name).inspect(|text| included.borrow_mut().push((name.to_string(), text.clone())))
    };
    let naming = mu_axioms::cat::names(&mut sources, source, &resolve, &vocabulary, model);
    Meaning { naming, sources, source, included: included.into_inner() }
}

/// Checks a litmus test; it has no error if one of its two readers accepts it.
fn test(source: SourceId, text: &str) -> Result<(), Diagnostic> {
    let axiomatic = mu_litmus::parse(source, text, mu_litmus::file::Options::default()).map(drop);
    if axiomatic.is_err() && text.trim_start().starts_with("X86") {
        return mu_program::litmus::parse(source, text)
            .map(drop)
            .map_err(|e| with_command_for_architecture(e, text));
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
