//! Errors with their place, with the messages of the command line.

use mu_base::{Diagnostic, SourceMap, Stage};
use std::fmt;

/// An error: the message, the place, and hints.
#[derive(Clone, Debug)]
pub struct Error {
    diagnostic: Box<Diagnostic>,
    place: Option<Place>,
    text: String,
}

/// A place in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The name of the text, or of its file.
    pub name: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text at the place.
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

    /// Returns the message, in one line.
    pub fn message(&self) -> &str {
        &self.diagnostic.message
    }

    /// Returns the place, if the error is in a source text.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Returns hints.
    pub fn notes(&self) -> &[String] {
        &self.diagnostic.notes
    }

    /// Returns the stage of the error, as a stable word.
    pub fn stage(&self) -> &'static str {
        self.diagnostic.stage.word()
    }
}

/// Formats the message with its place, its line, and the notes, as the command line does.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
