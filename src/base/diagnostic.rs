//! User-readable error: the stage that rejects the input, the message, its place, and the expected
//! alternative.
//!
//! Rendered in the form `file:line:column: error: message`, which editors understand, with an
//! excerpt and notes below.

use super::limits::Stop;
use super::source::{SourceMap, Span};

/// Stage that reports the error. Determines the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// Command line and parameters.
    Usage,
    /// A file that cannot be read or written, or is damaged.
    File,
    /// Text that does not match the grammar.
    Syntax,
    /// Names, sorts, overloads.
    Type,
    /// A construct that parses and type checks but that a later stage does not support. The message
    /// names it; it is never ignored.
    Unsupported,
    /// Linearisation (unguarded recursion and the like).
    Process,
    /// Formulas (monotonicity, unknown actions).
    Formula,
    /// Rewriting that does not terminate, sums without a bound.
    Data,
    /// A limit or an interrupt ended the run: not a fault of the input.
    Limit,
    /// A violated invariant of the program.
    Internal,
}

impl Stage {
    /// Returns a stable word for JSON.
    pub fn word(self) -> &'static str {
        match self {
            Stage::Usage => "usage",
            Stage::File => "file",
            Stage::Syntax => "syntax",
            Stage::Type => "type",
            Stage::Unsupported => "unsupported",
            Stage::Process => "process",
            Stage::Formula => "formula",
            Stage::Data => "data",
            Stage::Limit => "limit",
            Stage::Internal => "internal",
        }
    }
}

/// Place in a file that is read line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePlace {
    /// Name of the file; empty if only a stream is known.
    pub file: String,
    /// Line number, from 1.
    pub number: u64,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line.
    pub text: String,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stage that reports the error.
    pub stage: Stage,
    /// One sentence without a place; it names the offending text.
    pub message: String,
    /// Place in a source, if there is one.
    pub span: Option<Span>,
    /// Place in a file that is read line by line and is not a source.
    pub line: Option<Box<LinePlace>>,
    /// Expected input, candidates, context: one line each.
    pub notes: Vec<String>,
    /// Other relevant places, each with a line of text.
    pub related: Vec<(Span, String)>,
    /// Limit that ended the run, for stage `Limit`. A search stops with it and returns its partial
    /// result.
    pub stop: Option<Stop>,
    /// True if the evaluation lacks a value: a term has none, or there are too many to enumerate. A
    /// method that needs fewer values may succeed.
    pub open: bool,
}

/// Shows the message with its line, as far as known without the sources; [`Diagnostic::render`]
/// shows everything.
impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = &self.line {
            write!(f, "line {}, column {}: ", line.number, line.column)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

impl Diagnostic {
    /// Creates an error at a place.
    pub fn at(stage: Stage, span: Span, message: impl Into<String>) -> Self {
        Self {
            stage,
            message: message.into(),
            span: Some(span),
            line: None,
            notes: Vec::new(),
            related: Vec::new(),
            stop: None,
            open: false,
        }
    }
    /// Creates an error without a place.
    pub fn new(stage: Stage, message: impl Into<String>) -> Self {
        Self {
            stage,
            message: message.into(),
            span: None,
            line: None,
            notes: Vec::new(),
            related: Vec::new(),
            stop: None,
            open: false,
        }
    }
    /// Creates an error for a violated invariant, with the place in the program that detected it.
    /// Exit code 4.
    #[track_caller]
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            Stage::Internal,
            format!("{message} (noticed at {})", std::panic::Location::caller()),
        )
    }
    /// Creates an error in a line of a file.
    pub fn in_line(
        stage: Stage,
        number: u64,
        column: usize,
        text: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            line: Some(Box::new(LinePlace {
                file: String::new(),
                number,
                column,
                text: text.into(),
            })),
            ..Self::new(stage, message)
        }
    }
    /// Creates an error at a part of a line of a file, in column 1 if it is no part of the line.
    pub fn in_part(
        stage: Stage,
        number: u64,
        line: &str,
        part: &str,
        message: impl Into<String>,
    ) -> Self {
        let before = (part.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
        let column = line.get(..before).map_or(0, |before| before.chars().count());
        Self::in_line(stage, number, column + 1, line, message)
    }
    /// Adds the name of the file: before its line, or before the message.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        match &mut self.line {
            Some(line) => line.file = name.to_string(),
            None => self.message = format!("{name}: {}", self.message),
        }
        self
    }
    /// Creates an error for a limit that ended the run.
    pub fn stopped(stop: Stop) -> Self {
        Self {
            stop: Some(stop.clone()),
            ..Self::new(
                Stage::Limit,
                format!("stopped before there was an answer: {}", stop.word()),
            )
        }
    }
    /// Sets the place, if the error has none yet and the span is not empty.
    #[must_use]
    pub fn or_span(mut self, span: Span) -> Self {
        if self.span.is_none() && span.is_somewhere() {
            self.span = Some(span);
        }
        self
    }
    /// Adds the place of the enclosing operation: as the place of the error if it has none yet,
    /// else as a related place unless it adds no information.
    #[must_use]
    pub fn within(self, span: Span, text: &str) -> Self {
        match self.span {
            None => self.or_span(span),
            Some(own)
                if !span.is_somewhere()
                    || own.overlaps(span)
                    || self.related.iter().any(|r| r.0.overlaps(span)) =>
            {
                self
            }
            Some(_) => self.related(span, text),
        }
    }
    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    /// Adds a related place.
    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }
    /// Returns the exit code of the process: 4 for internal errors, 3 for limits, 2 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self.stage {
            Stage::Internal => 4,
            Stage::Limit => 3,
            _ => 2,
        }
    }
    /// Returns the text for users: several lines, ends with a newline.
    pub fn render(&self, sources: &SourceMap) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        let word = match self.stage {
            Stage::Internal => "internal error",
            Stage::Limit => "unknown",
            _ => "error",
        };
        // A place in a source that is not in this map would show an unrelated text.
        if let Some(span) = self.span.filter(|s| sources.holds(s.source)) {
            let source = sources.get(span.source);
            let (line, column) = sources.line_column(span);
            let _ = writeln!(out, "{}:{line}:{column}: {word}: {}", source.name, self.message);
            if let Some(text) = source.original.lines().nth(line - 1) {
                let from = sources.original_offset(span.source, span.start);
                let to = sources.original_offset(span.source, span.end.max(span.start + 1) - 1) + 1;
                let under = source
                    .original
                    .get(from as usize..to.max(from) as usize)
                    .map_or(1, |t| t.lines().next().unwrap_or("").chars().count());
                // Of a long line only the part around the place is shown.
                let skip = if column > 100 { column - 60 } else { 0 };
                let shown: String = text.chars().skip(skip).take(160).collect();
                let pad: String = text
                    .chars()
                    .skip(skip)
                    .take(column - 1 - skip)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                let width = under.clamp(1, 160 - pad.chars().count().min(159));
                let _ = writeln!(out, "{line:5} | {shown}\n      | {pad}{}", "^".repeat(width));
            }
        } else if let Some(LinePlace { file, number, column, text }) = self.line.as_deref() {
            let _ = writeln!(out, "{file}:{number}:{column}: {word}: {}", self.message);
            let skip = if *column > 100 { column - 60 } else { 0 };
            let shown: String = text.chars().skip(skip).take(160).collect();
            let pad: String = text
                .chars()
                .skip(skip)
                .take(column - 1 - skip)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            if !text.is_empty() {
                let _ = writeln!(out, "{number:5} | {shown}\n      | {pad}^");
            }
        } else {
            let _ = writeln!(out, "{word}: {}", self.message);
        }
        for (span, text) in self.related.iter().filter(|r| sources.holds(r.0.source)) {
            let (line, column) = sources.line_column(*span);
            let _ = writeln!(out, "  {}:{line}:{column}: {text}", sources.get(span.source).name);
        }
        for note in &self.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        out
    }
}
