//! An error that a user reads: which stage refused what, where, and what was expected instead.
//!
//! Rendered in the form `file:line:column: error: message`, which editors understand, with an
//! excerpt and notes below.

use super::limits::Stop;
use super::source::{SourceMap, Span};

/// The stage that refuses. Decides the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// Command line and parameters.
    Usage,
    /// A file that cannot be read or written, or is damaged.
    File,
    /// Text that does not fit the grammar.
    Syntax,
    /// Names, sorts, overloads.
    Type,
    /// A construct that parses and type checks but is not supported by a later stage; named, never
    /// ignored.
    Unsupported,
    /// Linearisation (unguarded recursion and the like).
    Process,
    /// Formulas (monotonicity, unknown actions).
    Formula,
    /// Rewriting that does not end, sums without a bound.
    Data,
    /// A limit or an interrupt came first: no fault of the input.
    Limit,
    /// A broken promise of our own code.
    Internal,
}

impl Stage {
    /// Stable word for JSON.
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

/// A place in a file that is read line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file's name; empty where only a stream is known.
    pub file: String,
    /// Number of the line, from 1.
    pub number: u64,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line.
    pub text: String,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Who refuses.
    pub stage: Stage,
    /// One sentence, without place; names the offending text.
    pub message: String,
    /// Where, if it is somewhere in a source.
    pub span: Option<Span>,
    /// Where, if it is in a file that is read line by line and is no source.
    pub line: Option<Box<Line>>,
    /// What would have been right, candidates, context: a line each.
    pub notes: Vec<String>,
    /// Other places that matter, each with a line of text.
    pub related: Vec<(Span, String)>,
    /// What came first, for stage `Limit`: searches stop with it and keep what they have.
    pub stop: Option<Stop>,
    /// True if the evaluation lacks a value: a term has none, or there are too many to enumerate.
    /// A method that needs fewer values may succeed.
    pub open: bool,
}

/// The message with its line, if that is known without the sources; [`Diagnostic::render`] shows
/// all.
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
    /// An error at a place.
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
    /// An error that has no place in a text.
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
    /// A broken invariant of our own code, with the place in the source that noticed it. Exit code
    /// 4.
    #[track_caller]
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(
            Stage::Internal,
            format!("{message} (noticed at {})", std::panic::Location::caller()),
        )
    }
    /// An error in a line of a file.
    pub fn in_line(
        stage: Stage,
        number: u64,
        column: usize,
        text: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            line: Some(Box::new(Line { file: String::new(), number, column, text: text.into() })),
            ..Self::new(stage, message)
        }
    }
    /// With the name of the file that was read: before its line, or before the message.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        match &mut self.line {
            Some(line) => line.file = name.to_string(),
            None => self.message = format!("{name}: {}", self.message),
        }
        self
    }
    /// A limit that came first.
    pub fn stopped(stop: Stop) -> Self {
        Self {
            stop: Some(stop.clone()),
            ..Self::new(
                Stage::Limit,
                format!("stopped before there was an answer: {}", stop.word()),
            )
        }
    }
    /// With a place, if it has none yet and the span is one.
    #[must_use]
    pub fn placed(mut self, span: Span) -> Self {
        if self.span.is_none() && span.is_somewhere() {
            self.span = Some(span);
        }
        self
    }
    /// With the place of what was being done: its own if it has none yet, else a further one,
    /// unless that says nothing new.
    #[must_use]
    pub fn within(self, span: Span, text: &str) -> Self {
        match self.span {
            None => self.placed(span),
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
    /// Adds a line that helps.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    /// Adds another place that matters.
    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }
    /// Exit code of the process: 4 for our own faults, 3 for limits, 2 for all else.
    pub fn exit_code(&self) -> u8 {
        match self.stage {
            Stage::Internal => 4,
            Stage::Limit => 3,
            _ => 2,
        }
    }
    /// The text a user sees; several lines, ends with a newline.
    pub fn render(&self, sources: &SourceMap) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        let word = match self.stage {
            Stage::Internal => "internal error",
            Stage::Limit => "unknown",
            _ => "error",
        };
        // A place in a text that is not among these would show another one.
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
                // Long lines are shown around the place only.
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
        } else if let Some(Line { file, number, column, text }) = self.line.as_deref() {
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
