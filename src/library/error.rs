//! What went wrong, with its place, in the words of the command line.

use mu_base::{Diagnostic, SourceMap, Stage};
use std::fmt;

/// An error: what was wrong, where, and what was expected.
#[derive(Clone, Debug)]
pub struct Error {
    diagnostic: Box<Diagnostic>,
    place: Option<Place>,
    text: String,
}

/// A place in a text that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The name of the text, or of its file.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text there.
    pub text: String,
}

impl Error {
    pub(super) fn new(diagnostic: Diagnostic, sources: &SourceMap) -> Self {
        let place = diagnostic.span.map(|span| {
            let (line, column) = sources.line_column(span);
            Place {
                name: sources.get(span.source).name.clone(),
                line,
                column,
                text: sources.text(span).to_string(),
            }
        });
        Self {
            text: diagnostic.render(sources).trim_end().to_string(),
            place,
            diagnostic: Box::new(diagnostic),
        }
    }

    pub(super) fn plain(stage: Stage, message: String) -> Self {
        Self::new(Diagnostic::new(stage, message), &SourceMap::new())
    }

    /// The message alone, in one line.
    pub fn message(&self) -> &str {
        &self.diagnostic.message
    }

    /// Where it is, if it is in a text that was given.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// What would help.
    pub fn notes(&self) -> &[String] {
        &self.diagnostic.notes
    }

    /// The stage that refused, as a stable word.
    pub fn stage(&self) -> &'static str {
        self.diagnostic.stage.word()
    }
}

/// The message with its place, the line that it is in, and the notes: what the command line prints.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
