//! Front ends: the languages of models, behind one trait and one registry.
//!
//! In: a file or a text ([`Input`]), and the context of its reading ([`Loading`]: sources,
//! parameters, limits, options). Out: a [`Loaded`] model with typed labels. [`registry`] has one
//! row per front end; the command line, the library, the language server, and the page of this
//! machine use it and no other list of file kinds.
//!
//! A new front end is a file or folder here, its module, and its row of `REGISTRY` in this file. A
//! file that only stores a transition system needs no front end, but a row of [`formats`]. It
//! implements [`FrontEnd::language`], [`FrontEnd::endings`] and [`FrontEnd::read`]; all other
//! methods have defaults. `src/library/tests/toy.rs` is a complete example, with the steps that add
//! it to the command line. Editors need [`FrontEnd::lexicon`] as well. A language with parameters
//! implements [`FrontEnd::parameters`]; one without calls [`Loading::expect_no_parameters`].
//!
//! Recognition: the ending of the file's name; if several front ends have it, the first that
//! recognises the beginning of the content. A name without a registered ending is mCRL2.
#![warn(missing_docs)]

pub mod cubicle;
pub mod editing;
pub mod equation_systems;
pub mod formats;
mod input;
mod loaded;
mod loading;
pub mod machines;
pub mod mcrl2;
pub mod murphi;
pub mod programs;
pub mod rejected;
mod relabelling;
pub mod state_conditions;
pub mod transition_systems;

pub use editing::{EditResult, EditedText, Lexicon, Meaning};
pub use input::Input;
pub use loaded::{FormulaNames, Loaded, Parameter, StoreBuffers};
pub use loading::{Journal, LoadOptions, Loading, ProgramMemory, Silent, compile, linearise};
pub use mu_murphi::additions::{Condition, ShownValue};

use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, Stage};
use mu_compile::Confluence;
use mu_process::spec::ProcSpec;
use mu_syntax::ast;
use mu_syntax::template::ExpandedText;
use std::io::Read;
use std::path::Path;

/// Length of the beginning of a file that decides between front ends with a common ending.
const BEGINNING: u64 = 4096;

/// Reader of a language of models.
pub trait FrontEnd: Sync {
    /// Returns the kind of its files with an article, for messages: `a transition system`.
    fn language(&self) -> &'static str;

    /// Returns the endings of its file names: in lower case, with their dots.
    fn endings(&self) -> &'static [&'static str];

    /// True if the name of a file has one of the endings, in lower or upper case.
    fn has_ending(&self, path: &Path) -> bool {
        let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
        self.endings().iter().any(|e| name.ends_with(e))
    }

    /// True if a file with one of the endings may belong to this front end. `beginning`: at most
    /// the first 4 KiB. Only consulted if another front end has the same ending.
    fn recognises(&self, _beginning: &[u8]) -> bool {
        true
    }

    /// Returns the properties of its files.
    fn properties(&self) -> Properties {
        Properties::default()
    }

    /// Returns the text of a file; `None` if the file is in a binary format, which is read when the
    /// model is.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    fn text(&self, input: &Input<'_>) -> Result<Option<String>, Diagnostic> {
        input.text().map(Some)
    }

    /// Reads a model.
    ///
    /// # Errors
    /// An error in the file or in a parameter, with its place; a limit.
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic>;

    /// Returns the parameters that the file declares. The default are those of the parameter layer
    /// for specifications, and none for others.
    ///
    /// # Errors
    /// As [`FrontEnd::expand`].
    fn parameters(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<Vec<Parameter>, Diagnostic> {
        let Properties { specification, rejected, .. } = self.properties();
        if !specification && !rejected {
            return Ok(Vec::new());
        }
        Ok(self.expand(input, loading)?.params.iter().map(Parameter::from).collect())
    }

    /// Returns the file as plain mCRL2, with parameters replaced.
    ///
    /// # Errors
    /// As [`FrontEnd::read`]; its files have no such text.
    fn expand(
        &self,
        input: &Input<'_>,
        _loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        Err(self.no_specification(input))
    }

    /// Returns the syntax tree of the file's specification, which callers may edit; `None` if its
    /// files have none.
    ///
    /// # Errors
    /// As [`FrontEnd::read`].
    fn syntax_tree(
        &self,
        _input: &Input<'_>,
        _loading: &mut Loading<'_>,
    ) -> Result<Option<ast::Specification>, Diagnostic> {
        Ok(None)
    }

    /// Returns the typed specification, for commands on its text or its linear process. Callers
    /// use [`specification`], which also reports warnings.
    ///
    /// # Errors
    /// As [`FrontEnd::read`]; its files are no specifications.
    fn specification(
        &self,
        input: &Input<'_>,
        _loading: &mut Loading<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        Err(self.no_specification(input))
    }

    /// Returns the names of the variables and functions that conditions of formulas may use
    /// ([`state_conditions`]); `None` if its models have no such names.
    ///
    /// # Errors
    /// As [`FrontEnd::read`].
    fn variables(
        &self,
        _input: &Input<'_>,
        _loading: &mut Loading<'_>,
    ) -> Result<Option<Vec<String>>, Diagnostic> {
        Ok(None)
    }

    /// True if its labels can show values of variables ([`LoadOptions::shown`]).
    fn has_shown_values(&self) -> bool {
        false
    }

    /// Returns the lexical rules of its texts, for editors; `None` if this layer has no support for
    /// its texts in editors.
    fn lexicon(&self) -> Option<&'static Lexicon> {
        None
    }

    /// True if editors support its texts.
    fn is_edited(&self) -> bool {
        self.lexicon().is_some() || self.properties().mcrl2
    }

    /// Checks an edited text. Texts that commands accept must have no error. The default reads a
    /// model without parameters.
    ///
    /// # Errors
    /// The first error of the text.
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        editing::read_only(self, text, sources)
    }

    /// Returns the meaning of the names in an edited text, which may have errors; `None` if it is
    /// unknown.
    fn names(&self, _source: SourceId, _text: &str) -> Option<Naming> {
        None
    }

    /// Checks an edited text and resolves its names. Front ends with texts that include
    /// others implement it.
    fn check_edit(&self, text: &EditedText<'_>) -> EditResult {
        let mut sources = SourceMap::new();
        let error = self.check(text, &mut sources).err();
        let mut named = SourceMap::new();
        let source = named.add(text.name(), text.text);
        let meaning = self.names(source, text.text).map(|naming| Meaning {
            naming,
            sources: named,
            source,
            included: Vec::new(),
        });
        EditResult { error, sources, meaning }
    }

    /// Formats a text without syntax errors: only white space changes. `width`: the maximum number
    /// of characters per line, for formatters that break lines. `None`: there is no formatter.
    ///
    /// # Errors
    /// Formatting would change the meaning of the text, which is an internal error.
    fn format(&self, _text: &str, _width: usize) -> Result<Option<String>, Diagnostic> {
        Ok(None)
    }

    /// Returns the error for a file without a specification.
    fn no_specification(&self, input: &Input<'_>) -> Diagnostic {
        Diagnostic::new(
            Stage::Usage,
            format!(
                "`{}` is not a specification: by its name it is {}",
                input.name(),
                self.language()
            ),
        )
        .note("expected an mCRL2 specification, such as a file that ends in .mcrl2 or .spec")
    }
}

/// Properties of the files of a front end, which decide the options that apply to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// True if its files are specifications with a linear process.
    pub specification: bool,
    /// True if its files are specifications in mCRL2, with a text that callers can edit.
    pub mcrl2: bool,
    /// True if its files store a transition system. Then [`LoadOptions::data`] and
    /// [`LoadOptions::internal`] apply, which [`FrontEnd::read`] must consult.
    pub stored: bool,
    /// True if its models may have store buffers.
    pub buffered: bool,
    /// True if its files are programs; their labels are memory operations.
    pub program: bool,
    /// True if its files define a game.
    pub game: bool,
    /// True if its files contain no model: their reader rejects them.
    pub rejected: bool,
}

/// All front ends; the first one that has the ending of a file and recognises its content reads it.
const REGISTRY: &[&dyn FrontEnd] = &[
    &mcrl2::MCRL2,
    &mcrl2::LPS,
    &transition_systems::TRANSITION_SYSTEMS,
    &programs::X86,
    &programs::LITMUS,
    &cubicle::CUBICLE,
    &murphi::MURPHI,
    &equation_systems::EQUATION_SYSTEMS,
    &rejected::GAMES,
    &rejected::PICTURES,
    &rejected::MEMORY_MODELS,
    &rejected::PROJECTS,
];

/// Returns all front ends.
pub fn registry() -> &'static [&'static dyn FrontEnd] {
    REGISTRY
}

/// Returns the front end of a file by its name; the first one if several share the ending.
pub fn by_name(path: &Path) -> &'static dyn FrontEnd {
    candidates(registry(), path).next().unwrap_or(&mcrl2::MCRL2)
}

/// Returns the front end of an input by its name and, if several front ends share the ending, its
/// content.
pub fn of(input: &Input<'_>) -> &'static dyn FrontEnd {
    select(registry(), input)
}

/// Does the same as [`of`], for a list of front ends instead of [`registry`].
pub fn select(list: &[&'static dyn FrontEnd], input: &Input<'_>) -> &'static dyn FrontEnd {
    let mut found = candidates(list, input.path());
    let Some(first) = found.next() else { return &mcrl2::MCRL2 };
    let others: Vec<&'static dyn FrontEnd> = found.collect();
    if others.is_empty() {
        return first;
    }
    // A file that cannot be read has no content: its reader reports the error.
    let mut beginning = Vec::new();
    let _ = input.open().map(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    let mut all = [first].into_iter().chain(others);
    all.find(|f| f.recognises(&beginning)).unwrap_or(first)
}

/// Returns the front ends of a list that have the ending of a file name.
fn candidates<'l>(
    list: &'l [&'static dyn FrontEnd],
    path: &'l Path,
) -> impl Iterator<Item = &'static dyn FrontEnd> + 'l {
    list.iter().copied().filter(move |f| f.has_ending(path))
}

/// Reads a model with its front end.
///
/// # Errors
/// As [`FrontEnd::read`]; confluent steps are requested for a file that is no specification.
pub fn load(input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
    load_with(of(input), input, loading)
}

/// Reads a model with a given front end.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    front_end: &dyn FrontEnd,
    input: &Input<'_>,
    loading: &mut Loading<'_>,
) -> Result<Loaded, Diagnostic> {
    let Properties { specification, rejected, .. } = front_end.properties();
    relabelling::expect_none(front_end, input, &loading.options.relabel)?;
    let priority = !matches!(loading.options.confluence, Confluence::None);
    if priority && !specification && !rejected {
        let message = format!(
            "`--confluence` is for the hidden steps of a specification; `{}` is {}",
            input.name(),
            front_end.language()
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    front_end.read(input, loading)
}

/// Reads a typed specification and reports its warnings.
///
/// # Errors
/// As [`FrontEnd::specification`].
pub fn specification(input: &Input<'_>, loading: &mut Loading<'_>) -> Result<ProcSpec, Diagnostic> {
    loading.specification_of(of(input), input)
}
