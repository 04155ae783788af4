//! Reader of Axe's text format (Naylor, Moore, Mujumdar: A consistency checker for memory subsystem
//! traces. FMCAD 2016): one operation a line, traces separated by `check`.
//!
//! Beyond Axe: numbers up to 2^64 - 1, any number of threads and locations, values that repeat. A
//! loaded value that is neither 0 nor stored, and a load that precedes the only store of its value
//! in its own thread, are no errors of the text: every model forbids such a trace. (Axe rejects the
//! file in the first case, and allows the trace in the second.) Rejected: begin times that do not
//! grow along a thread; an end that is not after its begin; an end of a store. Cost: linear in the
//! text.

use std::io::BufRead;

use ahash::AHashMap;
use mu_base::files::drop_byte_order_mark;
use mu_base::{Diagnostic, Stage};

use super::lines::{CUT_OFF, Line, UNENDED};
use super::{PART, ReadOptions, Sink, TraceReader};
use crate::trace::{Fence, Operation, OperationKind, TraceBuilder};

/// Axe's text.
pub struct Axe;

impl TraceReader for Axe {
    fn name(&self) -> &'static str {
        "axe"
    }
    fn summary(&self) -> &'static str {
        "text of Axe: `0: M[3] := 7`, `1: M[3] == 7 @ 100:110`, `0: sync`, `check`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["axe"]
    }
    fn recognises(&self, start: &str) -> bool {
        let lines = start.lines().map(|l| l.split('#').next().unwrap_or("").trim());
        let first = lines.into_iter().find(|l| !l.is_empty()).unwrap_or("");
        let operation = first.split_once(':').is_some_and(|(thread, rest)| {
            let rest = rest.trim_start();
            thread.trim().parse::<u64>().is_ok()
                && (["M[", "{", "sync"].iter().any(|s| rest.starts_with(s))
                    || rest.strip_prefix('v').is_some_and(|r| r.starts_with(char::is_numeric)))
        });
        operation || first == "check" || first.starts_with("final ")
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        let mut reader = AxeReader::new(options, 1);
        let mut bytes = Vec::new();
        let mut number = 0u64;
        loop {
            bytes.clear();
            match log.read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) => {
                    let message = format!("cannot read the log to its end: {e}");
                    let error = Diagnostic::in_line(Stage::File, number + 1, 1, "", message)
                        .in_file(&options.file)
                        .note("the file is damaged or cut off");
                    if !options.repair {
                        return Err(error);
                    }
                    reader.builder.skipped.push(u32::try_from(number + 1).unwrap_or(u32::MAX));
                    sink.report_skipped(error);
                    break;
                }
            }
            number += 1;
            if number == 1 {
                drop_byte_order_mark(&mut bytes);
            }
            let outcome = match std::str::from_utf8(&bytes) {
                _ if reader.usual(number, &bytes) => Ok(false),
                Ok(text) => reader.line(number, text.trim_end_matches(['\n', '\r'])),
                Err(e) => {
                    let shown = String::from_utf8_lossy(&bytes[..e.valid_up_to()]).into_owned();
                    let column = shown.chars().count() + 1;
                    let message = "these bytes are not UTF-8 text";
                    Err(Diagnostic::in_line(Stage::File, number, column, shown, message))
                }
            };
            let is_ended = bytes.ends_with(b"\n");
            if !is_ended && outcome.is_ok() && bytes.trim_ascii() != b"check" {
                let text = String::from_utf8_lossy(&bytes);
                let line = Line { file: &options.file, number, text: &text };
                sink.report_unended(line.error(text.len(), UNENDED));
            }
            match outcome.map_err(|e| if is_ended { e } else { e.note(CUT_OFF) }) {
                Ok(false) => {}
                Ok(true) => {
                    let done = reader.finish(sink)?;
                    reader = AxeReader::new(options, done.number + 1);
                    if !done.more {
                        return Ok(());
                    }
                }
                Err(e) if options.repair => {
                    reader.builder.skipped.push(u32::try_from(number).unwrap_or(u32::MAX));
                    sink.report_skipped(e.in_file(&options.file));
                }
                Err(e) => return Err(e.in_file(&options.file)),
            }
            if reader.builder.len() >= PART && sink.part(&mut reader.builder, false)? == Some(false)
            {
                return Ok(());
            }
        }
        if !reader.builder.is_empty() {
            reader.finish(sink)?;
        }
        Ok(())
    }
}

/// Error at a column of a line.
struct ColumnError(usize, String);

/// Result of a complete trace.
struct CompleteTrace {
    number: u64,
    more: bool,
}

struct AxeReader {
    builder: TraceBuilder,
    threads: AHashMap<u64, u32>,
    places: AHashMap<u64, u32>,
    /// Last begin time of each thread.
    begins: Vec<Option<u64>>,
    /// Required final values.
    finals: AHashMap<u32, u64>,
    comment: Option<String>,
}

/// Cursor in a line.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    }
    fn take(&mut self, word: &str) -> bool {
        self.blanks();
        let found = self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }
    fn expected_error(&mut self, what: &str) -> ColumnError {
        self.blanks();
        let rest = &self.text[self.at..];
        let found: String = match rest.chars().next() {
            None => "the end of the line".to_string(),
            Some(c) if c.is_alphanumeric() => {
                let word = rest.chars().take_while(|c| c.is_alphanumeric()).take(40);
                format!("`{}`", word.collect::<String>())
            }
            Some(c) => format!("`{c}`"),
        };
        ColumnError(self.at, format!("expected {what}, found {found}"))
    }
    fn require(&mut self, word: &str) -> Result<(), ColumnError> {
        if self.take(word) { Ok(()) } else { Err(self.expected_error(&format!("`{word}`"))) }
    }
    fn number(&mut self, what: &str) -> Result<u64, ColumnError> {
        self.blanks();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Err(self.expected_error(what));
        }
        let digits: &'t str = &rest[..length];
        let Ok(number) = digits.parse::<u64>() else {
            return Err(ColumnError(self.at, format!("the number {digits} is above 2^64 - 1")));
        };
        self.at += length;
        Ok(number)
    }
    /// Reads `M[3]` or `v3`.
    fn place(&mut self) -> Result<u64, ColumnError> {
        if self.take("M") {
            self.require("[")?;
            let n = self.number("an address")?;
            self.require("]")?;
            return Ok(n);
        }
        if self.take("v") {
            return self.number("an address");
        }
        Err(self.expected_error("an access such as `M[3]` or `v3`"))
    }
}

/// Access of a line: kind, location, loaded and stored value.
type Access = (OperationKind, u64, u64, u64);

fn access(c: &mut Cursor<'_>) -> Result<Access, ColumnError> {
    if c.take("{") {
        let place = c.place()?;
        c.require("==")?;
        let loaded = c.number("a value")?;
        c.require(";")?;
        c.blanks();
        let at = c.at;
        let second = c.place()?;
        if second != place {
            let message =
                format!("an update has one address, but this one has {place} and {second}");
            return Err(ColumnError(at, message));
        }
        c.require(":=")?;
        let stored = c.number("a value")?;
        c.require("}")?;
        return Ok((OperationKind::Update, place, loaded, stored));
    }
    if c.take("sync") {
        return Ok((OperationKind::Fence(Fence::FULL), 0, 0, 0));
    }
    if !["M", "v"].iter().any(|w| c.text[c.at..].trim_start().starts_with(w)) {
        let mut wrong = c.expected_error("`M[…]`, `v…`, `{ … }` or `sync`");
        if c.text[c.at..].starts_with('<') {
            wrong.1 += "; an atomic update is `{ M[1] == 0; M[1] := 1 }`";
        }
        return Err(wrong);
    }
    let place = c.place()?;
    if c.take(":=") {
        let stored = c.number("a value")?;
        return Ok((OperationKind::Store, place, 0, stored));
    }
    if c.take("==") {
        let loaded = c.number("a value")?;
        return Ok((OperationKind::Load, place, loaded, 0));
    }
    Err(c.expected_error("`==` or `:=`"))
}

/// Reads `@ 100:110`, `@ 100:`, `@ 100` or `@ :110`. Returns the column of the end with it.
fn times(c: &mut Cursor<'_>) -> Result<(Option<u64>, Option<u64>, usize), ColumnError> {
    if !c.take("@") {
        return Ok((None, None, 0));
    }
    let digit = |c: &Cursor<'_>| c.text[c.at..].starts_with(|d: char| d.is_ascii_digit());
    c.blanks();
    let begin = if digit(c) { Some(c.number("a time")?) } else { None };
    let colon = c.take(":");
    c.blanks();
    let column = c.at;
    let end = if colon && digit(c) { Some(c.number("a time")?) } else { None };
    if begin.is_none() && end.is_none() {
        return Err(c.expected_error("a time"));
    }
    Ok((begin, end, column))
}

/// Access of a line in the usual spelling.
struct UsualAccess {
    kind: OperationKind,
    place: u64,
    loaded: u64,
    stored: u64,
}

/// Reads `0: M[3] := 7`, `1: M[3] == 7 @ 100:110`, and `0: { M[3] == 7; M[3] := 9 }` byte by byte,
/// in this spelling alone. `None` for any other line.
fn usual(bytes: &[u8]) -> Option<(u64, UsualAccess, (Option<u64>, Option<u64>))> {
    struct Bytes<'b>(&'b [u8]);
    impl Bytes<'_> {
        fn take(&mut self, word: &[u8]) -> Option<()> {
            self.0 = self.0.strip_prefix(word)?;
            Some(())
        }
        fn number(&mut self) -> Option<u64> {
            let length = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
            let (digits, rest) = self.0.split_at(length);
            // Longer numbers may be too large.
            if !(1..=19).contains(&length) {
                return None;
            }
            self.0 = rest;
            Some(digits.iter().fold(0, |n, d| 10 * n + u64::from(d - b'0')))
        }
        fn place(&mut self) -> Option<u64> {
            self.take(b"M[")?;
            let place = self.number()?;
            self.take(b"]")?;
            Some(place)
        }
    }
    let mut b = Bytes(bytes.strip_suffix(b"\n").unwrap_or(bytes));
    let thread = b.number()?;
    b.take(b": ")?;
    let is_update = b.take(b"{ ").is_some();
    let place = b.place()?;
    let mut access = UsualAccess { kind: OperationKind::Load, place, loaded: 0, stored: 0 };
    if is_update || b.0.starts_with(b" == ") {
        b.take(b" == ")?;
        access.loaded = b.number()?;
    } else {
        b.take(b" := ")?;
        access.kind = OperationKind::Store;
        access.stored = b.number()?;
    }
    if is_update {
        b.take(b"; ")?;
        if b.place()? != place {
            return None;
        }
        b.take(b" := ")?;
        access.kind = OperationKind::Update;
        access.stored = b.number()?;
        b.take(b" }")?;
    }
    let mut times = (None, None);
    if b.take(b" @ ").is_some() {
        times.0 = Some(b.number()?);
        b.take(b":")?;
        times.1 = if b.0.is_empty() { None } else { Some(b.number()?) };
    }
    b.0.is_empty().then_some((thread, access, times))
}

impl AxeReader {
    fn new(options: &ReadOptions, number: u64) -> Self {
        AxeReader {
            builder: TraceBuilder::new(&options.file, number),
            threads: AHashMap::new(),
            places: AHashMap::new(),
            begins: Vec::new(),
            finals: AHashMap::new(),
            comment: None,
        }
    }
    /// Reads a line in the usual spelling, without errors. Returns false for any other line, which
    /// has no effect.
    fn usual(&mut self, number: u64, bytes: &[u8]) -> bool {
        let Some((thread, o, (begin, end))) = usual(bytes) else { return false };
        let is_store = o.kind == OperationKind::Store;
        let is_late = |(b, e)| e <= b;
        let is_wrong = end.is_some() && is_store || begin.zip(end).is_some_and(is_late);
        let Ok(line) = u32::try_from(number) else { return false };
        if is_wrong || [begin, end].contains(&Some(u64::MAX)) {
            return false;
        }
        let thread = self.thread(thread);
        let last = &mut self.begins[thread as usize];
        if last.zip(begin).is_some_and(|(l, b)| l >= b) {
            return false;
        }
        *last = begin.or(*last);
        let place = self.place(o.place);
        let UsualAccess { kind, loaded, stored, .. } = o;
        let o = match kind {
            OperationKind::Load => Operation::load(place, loaded, line),
            OperationKind::Store => Operation::store(place, stored, line),
            _ => Operation::update(place, loaded, stored, line),
        };
        self.builder.push(thread, Operation { begin, end, ..o });
        true
    }
    /// Reads a line. True if it ends the trace.
    fn line(&mut self, number: u64, text: &str) -> Result<bool, Diagnostic> {
        let (code, comment) = match text.split_once('#') {
            Some((code, comment)) => (code, Some(comment)),
            None => (text, None),
        };
        if code.trim().is_empty() {
            if let Some(comment) = comment.map(str::trim).filter(|c| !c.is_empty())
                && self.builder.is_empty()
            {
                self.comment = Some(comment.to_string());
            }
            return Ok(false);
        }
        let wrong = |ColumnError(at, message): ColumnError| {
            let column = text[..at.min(text.len())].chars().count() + 1;
            Diagnostic::in_line(Stage::Syntax, number, column, text, message)
        };
        self.code(number, code).map_err(wrong)
    }
    fn code(&mut self, number: u64, code: &str) -> Result<bool, ColumnError> {
        let mut c = Cursor { text: code, at: 0 };
        if c.take("check") {
            self.end_of_line(&mut c)?;
            return Ok(true);
        }
        let line = u32::try_from(number)
            .map_err(|_| ColumnError(0, "a log has at most 4,294,967,295 lines".to_string()))?;
        if c.take("final") {
            let place = c.place()?;
            c.require("==")?;
            let value = c.number("a value")?;
            self.end_of_line(&mut c)?;
            let place = self.place(place);
            if self.finals.insert(place, value) != Some(value) {
                self.builder.last(place, 0, value, line);
            }
            return Ok(false);
        }
        let thread = c.number("a thread")?;
        c.require(":")?;
        let (kind, place, loaded, stored) = access(&mut c)?;
        c.blanks();
        let at = c.at;
        let (begin, end, end_column) = times(&mut c)?;
        self.end_of_line(&mut c)?;
        if end.is_some() && kind == OperationKind::Store {
            return Err(ColumnError(end_column, "a store has no end time".to_string()));
        }
        if begin.zip(end).is_some_and(|(b, e)| e <= b) {
            return Err(ColumnError(end_column, "the end is not after the begin".to_string()));
        }
        if begin == Some(u64::MAX) || end == Some(u64::MAX) {
            return Err(ColumnError(at, "times are below 2^64 - 1".to_string()));
        }
        let thread = self.thread(thread);
        let last = &mut self.begins[thread as usize];
        if let Some((last, begin)) = last.zip(begin).filter(|(l, b)| l >= b) {
            let message =
                format!("the begin {begin} is not after {last}, the last one of the thread");
            return Err(ColumnError(at, message));
        }
        *last = begin.or(*last);
        let fence = matches!(kind, OperationKind::Fence(_));
        let location = if fence { 0 } else { self.place(place) };
        let o = match kind {
            OperationKind::Load => Operation::load(location, loaded, line),
            OperationKind::Store => Operation::store(location, stored, line),
            OperationKind::Update => Operation::update(location, loaded, stored, line),
            OperationKind::Fence(f) => Operation::fence(f, line),
        };
        self.builder.push(thread, Operation { begin, end, ..o });
        Ok(false)
    }
    fn end_of_line(&self, c: &mut Cursor<'_>) -> Result<(), ColumnError> {
        c.blanks();
        if c.at < c.text.len() { Err(c.expected_error("the end of the line")) } else { Ok(()) }
    }
    fn thread(&mut self, number: u64) -> u32 {
        *self.threads.entry(number).or_insert_with(|| {
            self.begins.push(None);
            self.builder.thread(&number.to_string())
        })
    }
    fn place(&mut self, number: u64) -> u32 {
        *self
            .places
            .entry(number)
            .or_insert_with(|| self.builder.named_location(&number.to_string()))
    }
    /// Returns the trace.
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<CompleteTrace, Diagnostic> {
        let mut builder = std::mem::take(&mut self.builder);
        builder.name = self.comment.take();
        let number = builder.number;
        let more = match sink.part(&mut builder, true)? {
            Some(more) => more,
            None => sink.trace(builder.finish()?)?,
        };
        Ok(CompleteTrace { number, more })
    }
}
