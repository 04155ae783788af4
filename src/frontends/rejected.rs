//! Known files that contain no model: games, pictures of transition systems, memory models, and
//! projects of the mCRL2 toolset.
//! Their reader rejects them with a message. Editors support the texts of memory models.

use crate::editing::{EditResult, EditedText, Meaning};
use crate::formats::{self, PICTURE};
use crate::{FrontEnd, Input, Lexicon, Loaded, Loading, Properties};
use mu_axioms::cat::CatModel;
use mu_axioms::models::Dialect;
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_litmus::Judge;
use mu_litmus::kernel::{KernelLanguage, files_of};
use std::cell::RefCell;

/// Parity games and boolean equation systems.
pub const GAMES: Games = Games;

/// Pictures of transition systems.
pub const PICTURES: Pictures = Pictures;

/// Memory models in `cat`.
pub const MEMORY_MODELS: MemoryModels = MemoryModels;

/// Projects of the mCRL2 toolset.
pub const PROJECTS: Projects = Projects;

/// Front end of games.
pub struct Games;

/// Front end of pictures.
pub struct Pictures;

/// Front end of memory models.
pub struct MemoryModels;

/// Front end of projects.
pub struct Projects;

impl FrontEnd for Projects {
    fn language(&self) -> &'static str {
        "a project of mcrl2ide"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".mcrl2proj"]
    }
    fn properties(&self) -> Properties {
        Properties { rejected: true, ..Properties::default() }
    }
    fn read(&self, input: &Input<'_>, _loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        let text = input.text()?;
        let named = text.split_once("<spec>").and_then(|(_, rest)| rest.split_once("</spec>"));
        let message = format!("`{}` is a project of mcrl2ide, not a model", input.name());
        let error = Diagnostic::new(Stage::Usage, message);
        Err(match named.map(|(name, _)| name.trim()).filter(|name| !name.is_empty()) {
            Some(name) => {
                let file = input.path().with_file_name(name);
                error.note(format!("its specification is `{}`", file.display()))
            }
            None => error.note("expected the specification that it names"),
        })
    }
}

impl FrontEnd for Games {
    fn language(&self) -> &'static str {
        "a game"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".pg", ".gm", ".bes"]
    }
    fn properties(&self) -> Properties {
        Properties { game: true, rejected: true, ..Properties::default() }
    }
    fn read(&self, input: &Input<'_>, _loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        Err(no_model(input))
    }
}

impl FrontEnd for Pictures {
    fn language(&self) -> &'static str {
        "a transition system"
    }
    fn endings(&self) -> &'static [&'static str] {
        PICTURE.endings()
    }
    fn properties(&self) -> Properties {
        Properties { rejected: true, ..Properties::default() }
    }
    fn read(&self, input: &Input<'_>, _loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        Err(no_model(input))
    }
}

impl FrontEnd for MemoryModels {
    fn language(&self) -> &'static str {
        "a memory model"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".cat"]
    }
    fn properties(&self) -> Properties {
        Properties { rejected: true, ..Properties::default() }
    }
    fn read(&self, input: &Input<'_>, _loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        Err(no_model(input))
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon = Lexicon {
            line: &["//", "#"],
            nested: true,
            inside: "'-.",
            includes: true,
            keywords: mu_axioms::cat::KEYWORDS,
            ..Lexicon::PLAIN
        };
        Some(&LEXICON)
    }
    fn check_edit(&self, text: &EditedText<'_>) -> EditResult {
        let mut sources = SourceMap::new();
        let sibling = |name: &str| (text.sibling)(name).or_else(|| mu_axioms::models::file(name));
        if let Some(error) = kernel_model(&mut sources, text, &sibling) {
            let meaning = meaning(text, &sibling, None);
            return EditResult { error: error.err(), sources, meaning: Some(meaning) };
        }
        let compiled = Dialect::compile(&mut sources, &text.name(), text.text, &sibling);
        let meaning = meaning(text, &sibling, compiled.as_ref().ok().map(|c| &c.0));
        EditResult { error: compiled.err(), sources, meaning: Some(meaning) }
    }
}

/// Compiles a model of the Linux kernel; `None` if the model is not one of the kernel: its folder
/// has no `.bell` and `.def` file with its name.
fn kernel_model(
    sources: &mut SourceMap,
    text: &EditedText<'_>,
    sibling: &dyn Fn(&str) -> Option<String>,
) -> Option<Result<(), Diagnostic>> {
    let name = text.path.file_stem()?.to_string_lossy();
    let [bell, macros] = files_of(&name, text.sibling)?;
    let language = KernelLanguage::parse(sources, (&bell.0, &bell.1), (&macros.0, &macros.1), None);
    Some(language.and_then(|language| {
        Judge::of_kernel(sources, &language, &text.name(), text.text, sibling).map(drop)
    }))
}

/// Returns the meaning of the names of a memory model. `model`: the model, if it has no error.
fn meaning(
    text: &EditedText<'_>,
    sibling: &dyn Fn(&str) -> Option<String>,
    model: Option<&CatModel>,
) -> Meaning {
    let mut sources = SourceMap::new();
    let source = sources.add(text.name(), text.text);
    let declared = || Dialect::of_head(&mu_axioms::cat::head(text.text)).vocabulary();
    let vocabulary = model.map_or_else(declared, |m| m.vocabulary().clone());
    let included = RefCell::new(Vec::new());
    let resolve = |name: &str| {
        sibling(name).inspect(|text| included.borrow_mut().push((name.to_string(), text.clone())))
    };
    let naming = mu_axioms::cat::names(&mut sources, source, &resolve, &vocabulary, model);
    Meaning { naming, sources, source, included: included.into_inner() }
}

/// Returns the error for a file that contains no model.
fn no_model(input: &Input<'_>) -> Diagnostic {
    let endings = formats::endings_text(true, "");
    Diagnostic::new(Stage::Usage, format!("`{}` is not a model", input.name())).note(format!(
        "expected a specification, a program, an equation system with data, or an {endings} file"
    ))
}
