//! Streaming over the lines of a log, and scanning of one line.
//!
//! In: a log as bytes. Out: lines of UTF-8 text with their numbers; a [`LineReader`] turns them
//! into traces, and [`read_lines`] gives these to a sink. A line with an error ends the reading, or
//! is reported and skipped ([`ReadOptions::repair`]). Memory: one line and the trace in progress.
//!
//! Invariant: an error has the number of its line, the column in characters, and the whole line (at
//! most `MAX_SHOWN` bytes of it).

use super::{PART, ReadOptions, Sink};
use crate::trace::TraceBuilder;
use mu_base::files::BYTE_ORDER_MARK;
use mu_base::source::char_boundary;
use mu_base::{Diagnostic, Stage};
use std::io::BufRead;

/// Limit on the bytes of a line; a longer one is an error.
const MAX_LINE: usize = 1 << 20;
/// Limit on the bytes of a line in an error; the rest is cut off.
const MAX_SHOWN: usize = 400;

/// Note of an error in a last line without an end.
pub(super) const CUT_OFF: &str = "this is the last line, and it has no end of line: the log may be cut off, or still being written; expected the whole log, or `--repair`, which skips the line";
/// Warning about such a line that is in the format.
pub(super) const UNENDED: &str = "the last line has no end of line: if the log is cut off, or still being written, the last operation may be another one";

/// A line of a log.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Name of the log.
    pub file: &'a str,
    /// Number, from 1.
    pub number: u64,
    /// Text, without the end of the line.
    pub text: &'a str,
}

impl<'a> Line<'a> {
    /// Creates an error at a byte of the line.
    pub fn error(&self, at: usize, message: impl Into<String>) -> Diagnostic {
        let at = char_boundary(self.text, at);
        let column = self.text[..at].chars().count() + 1;
        let shown = &self.text[..char_boundary(self.text, MAX_SHOWN)];
        Diagnostic::in_line(Stage::Syntax, self.number, column, shown, message).in_file(self.file)
    }
    /// Begins to scan the line.
    pub fn scan(self) -> Scanner<'a> {
        Scanner { line: self, at: 0 }
    }
    /// Returns the number of the line for an operation.
    pub fn index(&self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }
}

/// Position in a line.
#[derive(Clone, Debug)]
pub struct Scanner<'a> {
    /// The line.
    pub line: Line<'a>,
    /// Byte of the next character.
    pub at: usize,
}

impl<'a> Scanner<'a> {
    /// Returns the rest of the line.
    pub fn rest(&self) -> &'a str {
        &self.line.text[self.at..]
    }
    /// Skips spaces and tabs.
    pub fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }
    /// True if only spaces are left.
    pub fn is_done(&self) -> bool {
        self.rest().trim_matches([' ', '\t']).is_empty()
    }
    /// Skips spaces, and a text if it is next.
    pub fn take(&mut self, text: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }
    /// Skips spaces and returns the text up to the next space or one of the characters.
    pub fn word(&mut self, ends: &[char]) -> Word<'a> {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c| c == ' ' || c == '\t' || ends.contains(&c)).unwrap_or(rest.len());
        let word = Word { text: &rest[..end], at: self.at, line: self.line };
        self.at += end;
        word
    }
    /// Expects a text after spaces.
    ///
    /// # Errors
    /// Another text, with its place.
    pub fn expect(&mut self, text: &str) -> Result<(), Diagnostic> {
        if self.take(text) { Ok(()) } else { Err(self.expected_error(&format!("`{text}`"))) }
    }
    /// Expects the end of the line.
    ///
    /// # Errors
    /// Another text, with its place.
    pub fn end(&mut self) -> Result<(), Diagnostic> {
        if self.is_done() { Ok(()) } else { Err(self.expected_error("the end of the line")) }
    }
    /// Creates the error for another text than the expected one.
    pub fn expected_error(&mut self, what: &str) -> Diagnostic {
        self.skip_spaces();
        let at = self.at;
        let word = self.clone().word(&[]).text;
        let found = match word {
            "" => "the end of the line".to_string(),
            word => format!("`{}`", start_of_text(word)),
        };
        self.line.error(at, format!("expected {what}, found {found}"))
    }
}

/// Returns at most 60 characters of a text.
fn start_of_text(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// A word of a line with its place.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// The text.
    pub text: &'a str,
    /// Its first byte in the line.
    pub at: usize,
    line: Line<'a>,
}

impl<'a> Word<'a> {
    /// Creates a word from a part of a line.
    pub fn of(line: Line<'a>, at: usize, text: &'a str) -> Self {
        Self { text, at, line }
    }
    /// Creates an error at the word.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.line.error(self.at, message)
    }
    /// Creates the error for a word that is not what was expected.
    pub fn expected_error(&self, what: &str) -> Diagnostic {
        let found = match self.text {
            "" => "nothing".to_string(),
            text => format!("`{}`", start_of_text(text)),
        };
        self.error(format!("expected {what}, found {found}"))
    }
    /// Reads a number: decimal, or hexadecimal after `0x`, or binary after `0b`.
    ///
    /// # Errors
    /// The word is no number, or the number needs more than 64 bits.
    pub fn number(&self, what: &str) -> Result<u64, Diagnostic> {
        let (digits, radix) = match self.text.get(..2) {
            Some("0x" | "0X") => (&self.text[2..], 16),
            Some("0b" | "0B") => (&self.text[2..], 2),
            _ => (self.text, 10),
        };
        self.digits(digits, radix, what)
    }
    /// Reads a hexadecimal number, with or without `0x`.
    ///
    /// # Errors
    /// As [`Word::number`].
    pub fn hexadecimal(&self, what: &str) -> Result<u64, Diagnostic> {
        let digits =
            self.text.strip_prefix("0x").or(self.text.strip_prefix("0X")).unwrap_or(self.text);
        self.digits(digits, 16, what)
    }
    fn digits(&self, digits: &str, radix: u32, what: &str) -> Result<u64, Diagnostic> {
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(self.expected_error(what));
        }
        u64::from_str_radix(digits, radix).map_err(|_| {
            self.error(format!("the number `{}` needs more than 64 bits", start_of_text(self.text)))
        })
    }
}

/// Effect of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineEffect {
    /// The trace continues.
    More,
    /// The trace ends with this line.
    Ends,
    /// The trace ended before this line, which has to be read again.
    EndsBefore,
}

/// State of a reader of lines.
pub trait LineReader {
    /// Reads a line.
    ///
    /// # Errors
    /// The line is not in the format; its operation is omitted.
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic>;
    /// Ends the trace in progress. Returns errors of operations that are incomplete; these are not
    /// in the trace.
    fn complete(&mut self) -> Vec<Diagnostic>;
    /// Returns the trace in progress, with a fresh one in its place.
    fn take(&mut self) -> TraceBuilder;
    /// Returns the builder of the trace in progress if its operations will not change any more.
    fn stable(&mut self) -> Option<&mut TraceBuilder> {
        None
    }
}

/// Reads a log line by line.
///
/// # Errors
/// The first one of the log unless `options.repair`; those of the sink; a log that cannot be read.
pub fn read_lines(
    mut reader: impl LineReader,
    log: &mut dyn BufRead,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<(), Diagnostic> {
    let mut bytes = Vec::new();
    let mut number = 0;
    // Lines of the trace in progress that were skipped, and the number of those before its last
    // operation. A line between two traces can be of either one.
    let mut skipped: Vec<u32> = Vec::new();
    let mut inside = 0;
    loop {
        let more = match next_line(log, &mut bytes) {
            Ok(more) => more,
            Err(error) => {
                let message = format!("cannot read the log to its end: {error}");
                let shown = String::new();
                let error = Diagnostic::in_line(Stage::File, number + 1, 1, shown, message)
                    .in_file(&options.file)
                    .note("the file is damaged or cut off");
                refuse(error, number, &mut skipped, options, sink)?;
                false
            }
        };
        if !more {
            break;
        }
        number += 1;
        let text = match text_of(&bytes, number, options) {
            Ok(text) => text,
            Err(error) => {
                refuse(error, number, &mut skipped, options, sink)?;
                continue;
            }
        };
        let line = Line { file: &options.file, number, text };
        let is_ended = bytes.ends_with(b"\n");
        loop {
            match reader.line(line) {
                Ok(LineEffect::More) => {
                    if !text.trim().is_empty() && !text.trim_start().starts_with('#') {
                        inside = skipped.len();
                    }
                }
                Ok(step) => {
                    let between = skipped[inside..].to_vec();
                    if !finish(&mut reader, number, &mut skipped, options, sink)? {
                        return Ok(());
                    }
                    inside = 0;
                    if step == LineEffect::EndsBefore {
                        skipped = between;
                        continue;
                    }
                }
                Err(error) if is_ended => refuse(error, number, &mut skipped, options, sink)?,
                Err(error) => {
                    refuse(error.note(CUT_OFF), number, &mut skipped, options, sink)?;
                    break;
                }
            }
            if !is_ended {
                sink.report_unended(line.error(text.len(), UNENDED));
            }
            break;
        }
        if let Some(builder) = reader.stable().filter(|b| b.len() >= PART)
            && sink.part(builder, false)? == Some(false)
        {
            return Ok(());
        }
    }
    finish(&mut reader, number, &mut skipped, options, sink).map(|_| ())
}

/// Gives the trace in progress to the sink. Returns false if the sink needs no more.
fn finish(
    reader: &mut impl LineReader,
    number: u64,
    skipped: &mut Vec<u32>,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<bool, Diagnostic> {
    for error in reader.complete() {
        refuse(error, number, skipped, options, sink)?;
    }
    let mut builder = reader.take();
    builder.skipped = std::mem::take(skipped);
    if builder.is_empty() {
        return Ok(true);
    }
    match sink.part(&mut builder, true)? {
        Some(more) => Ok(more),
        None => sink.trace(builder.finish()?),
    }
}

/// Reports an error and notes its line, by default `number`, or returns it if lines are not
/// skipped.
fn refuse(
    error: Diagnostic,
    number: u64,
    skipped: &mut Vec<u32>,
    options: &ReadOptions,
    sink: &mut dyn Sink,
) -> Result<(), Diagnostic> {
    if !options.repair {
        return Err(error);
    }
    let line = error.line.as_ref().map_or(number, |l| l.number);
    skipped.push(u32::try_from(line).unwrap_or(u32::MAX));
    sink.report_skipped(error);
    Ok(())
}

/// Reads a line with its end; the bytes of a line that is too long are cut off. False at the end.
fn next_line(log: &mut dyn BufRead, bytes: &mut Vec<u8>) -> std::io::Result<bool> {
    bytes.clear();
    let mut any = false;
    loop {
        let part = match log.fill_buf() {
            Ok(part) => part,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if part.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = part.iter().position(|b| *b == b'\n');
        let length = end.map_or(part.len(), |e| e + 1);
        let room = (MAX_LINE + 2).saturating_sub(bytes.len());
        bytes.extend_from_slice(&part[..length.min(room)]);
        log.consume(length);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Returns the text of a line.
fn text_of<'b>(bytes: &'b [u8], number: u64, options: &ReadOptions) -> Result<&'b str, Diagnostic> {
    let mut bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if number == 1 {
        bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    }
    if bytes.len() > MAX_LINE {
        let shown = String::from_utf8_lossy(&bytes[..MAX_SHOWN]).into_owned();
        let message = format!("a line of a log has at most {MAX_LINE} bytes");
        return Err(
            Diagnostic::in_line(Stage::Syntax, number, 1, shown, message).in_file(&options.file)
        );
    }
    std::str::from_utf8(bytes)
        .or_else(|_| mu_base::files::decode(bytes.to_vec(), &options.file, number).map(|_| ""))
}
