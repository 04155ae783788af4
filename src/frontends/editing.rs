//! Texts in editors: lexical rules of a language, and the result of checking an edited text.
//!
//! A front end with a [`Lexicon`] has outline, colours, completion of words, and diagnostics in
//! editors; with the meaning of names ([`mu_base::naming::Naming`]) it also has hover, definition,
//! references and rename. mCRL2 has no lexicon: the layer `lsp` analyses it itself.

use crate::{FrontEnd, Input, LoadOptions, Loading, Silent};
use mu_base::naming::{NameRole, Naming};
use mu_base::{Budget, Diagnostic, SourceId, SourceMap};
use std::path::Path;

/// Lexical rules of a language.
pub struct Lexicon {
    /// Starts of comments that extend to the end of the line.
    pub line: &'static [&'static str],
    /// True if `(* … *)` is a comment; it may nest.
    pub nested: bool,
    /// True if `/* … */` is a comment; it does not nest.
    pub block: bool,
    /// Reserved words.
    pub keywords: &'static [&'static str],
    /// True if reserved words are reserved in any case; `keywords` has them in lower case.
    pub any_case: bool,
    /// Words that precede a declared name, with the role of the name.
    pub declares: &'static [(&'static str, NameRole)],
    /// Characters of words other than letters, digits and `_`.
    pub inside: &'static str,
    /// True if texts can include others.
    pub includes: bool,
}

impl Lexicon {
    /// Rules without comments and words.
    pub const PLAIN: Lexicon = Lexicon {
        line: &[],
        nested: false,
        block: false,
        keywords: &[],
        any_case: false,
        declares: &[],
        inside: "",
        includes: false,
    };
}

/// Text that is being edited.
pub struct EditedText<'a> {
    /// Path of its file.
    pub path: &'a Path,
    /// The text.
    pub text: &'a str,
    /// Returns the text of a file in the same folder, for includes.
    pub sibling: &'a dyn Fn(&str) -> Option<String>,
}

impl EditedText<'_> {
    /// Returns the name of the file without its folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Result of checking an edited text.
pub struct EditResult {
    /// The first error; `None` if the text is valid.
    pub error: Option<Diagnostic>,
    /// The sources of its places.
    pub sources: SourceMap,
    /// The meaning of its names, if the front end supplies it.
    pub meaning: Option<Meaning>,
}

/// Meaning of the names in a text.
pub struct Meaning {
    /// The names.
    pub naming: Naming,
    /// The sources of its places. The name of an included text is that of a file in the same
    /// folder.
    pub sources: SourceMap,
    /// The text itself.
    pub source: SourceId,
    /// Included texts of files in the same folder, by name.
    pub included: Vec<(String, String)>,
}

/// Reads a text as a model without parameters, and drops the model.
///
/// # Errors
/// As [`FrontEnd::read`].
pub(crate) fn read_only(
    front_end: &(impl FrontEnd + ?Sized),
    text: &EditedText<'_>,
    sources: &mut SourceMap,
) -> Result<(), Diagnostic> {
    let (budget, options) = (Budget::default(), LoadOptions::default());
    let mut loading =
        Loading { sources, defines: &[], budget: &budget, options: &options, journal: &Silent };
    front_end.read(&Input::text_named(Path::new(&text.name()), text.text), &mut loading).map(drop)
}
