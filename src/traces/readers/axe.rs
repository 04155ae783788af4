//! Reader of Axe's text format (Naylor, Moore, Mujumdar: A consistency checker for memory subsystem
//! traces. FMCAD 2016): one operation a line, traces separated by `check`.
//!
//! Beyond Axe: numbers up to 2^64 - 1, any number of threads and locations, values that repeat.
//! Rejected: a loaded value that is neither 0 nor stored; a load that precedes every store of its
//! value in its own thread (Axe accepts it); begin times that do not grow along a thread; an end
//! that is not after its begin; an end of a store. Cost: linear in the text; memory for the text of
//! loads that have no source yet.

use std::io::BufRead;

use ahash::{AHashMap, AHashSet};
use mu_base::{Diagnostic, Stage};

use super::{ReadOptions, Sink, TraceReader};
use crate::trace::{Added, Fence, Kind, Operation, TraceBuilder};

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
        let mut reader = Reader::new(options, 1);
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
                    sink.skipped(error);
                    break;
                }
            }
            number += 1;
            if number == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
                bytes.drain(..3);
            }
            let outcome = match std::str::from_utf8(&bytes) {
                Ok(text) => reader.line(number, text.trim_end_matches(['\n', '\r'])),
                Err(e) => {
                    let shown = String::from_utf8_lossy(&bytes[..e.valid_up_to()]).into_owned();
                    let column = shown.chars().count() + 1;
                    let message = "these bytes are not UTF-8 text";
                    Err(Diagnostic::in_line(Stage::File, number, column, shown, message))
                }
            };
            match outcome {
                Ok(false) => {}
                Ok(true) => {
                    let done = reader.finish(sink)?;
                    reader = Reader::new(options, done.number + 1);
                    if !done.more {
                        return Ok(());
                    }
                }
                Err(e) if options.repair => sink.skipped(e.in_file(&options.file)),
                Err(e) => return Err(e.in_file(&options.file)),
            }
        }
        if !reader.builder.is_empty() {
            reader.finish(sink)?;
        }
        Ok(())
    }
}

/// Error at a column of a line.
struct Wrong(usize, String);

/// Result of a complete trace.
struct Done {
    number: u64,
    more: bool,
}

/// Load of a value that no other thread and no earlier operation stores so far.
struct Open {
    thread: u32,
    added: Vec<Added>,
    line: u64,
    column: usize,
    text: String,
    own_store: Option<u64>,
}

struct Reader<'o> {
    options: &'o ReadOptions,
    builder: TraceBuilder,
    threads: AHashMap<u64, u32>,
    places: AHashMap<u64, u32>,
    /// Last begin time of each thread.
    begins: Vec<Option<u64>>,
    /// Stores by location and value: the storing thread, or `None` for several.
    stored: AHashMap<(u32, u64), Option<u32>>,
    open: AHashMap<(u32, u64), Vec<Open>>,
    finals: AHashMap<u32, (u64, u64)>,
    final_texts: Vec<(u32, u64, u64, usize, String)>,
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
    fn expected(&mut self, what: &str) -> Wrong {
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
        Wrong(self.at, format!("expected {what}, found {found}"))
    }
    fn require(&mut self, word: &str) -> Result<(), Wrong> {
        if self.take(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }
    fn number(&mut self, what: &str) -> Result<u64, Wrong> {
        self.blanks();
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return Err(self.expected(what));
        }
        let digits: &'t str = &rest[..length];
        let Ok(number) = digits.parse::<u64>() else {
            return Err(Wrong(self.at, format!("the number {digits} is above 2^64 - 1")));
        };
        self.at += length;
        Ok(number)
    }
    /// Reads `M[3]` or `v3`.
    fn place(&mut self) -> Result<u64, Wrong> {
        if self.take("M") {
            self.require("[")?;
            let n = self.number("an address")?;
            self.require("]")?;
            return Ok(n);
        }
        if self.take("v") {
            return self.number("an address");
        }
        Err(self.expected("an access such as `M[3]` or `v3`"))
    }
}

/// Access of a line: kind, location, loaded and stored value, and the column of the loaded value.
type Access = (Kind, u64, u64, u64, usize);

fn access(c: &mut Cursor<'_>) -> Result<Access, Wrong> {
    if c.take("{") {
        let place = c.place()?;
        c.require("==")?;
        c.blanks();
        let column = c.at;
        let loaded = c.number("a value")?;
        c.require(";")?;
        c.blanks();
        let at = c.at;
        let second = c.place()?;
        if second != place {
            let message =
                format!("an update has one address, but this one has {place} and {second}");
            return Err(Wrong(at, message));
        }
        c.require(":=")?;
        let stored = c.number("a value")?;
        c.require("}")?;
        return Ok((Kind::Update, place, loaded, stored, column));
    }
    if c.take("sync") {
        return Ok((Kind::Fence(Fence::FULL), 0, 0, 0, 0));
    }
    if !["M", "v"].iter().any(|w| c.text[c.at..].trim_start().starts_with(w)) {
        let mut wrong = c.expected("`M[…]`, `v…`, `{ … }` or `sync`");
        if c.text[c.at..].starts_with('<') {
            wrong.1 += "; an atomic update is `{ M[1] == 0; M[1] := 1 }`";
        }
        return Err(wrong);
    }
    let place = c.place()?;
    if c.take(":=") {
        let stored = c.number("a value")?;
        return Ok((Kind::Store, place, 0, stored, 0));
    }
    if c.take("==") {
        c.blanks();
        let column = c.at;
        let loaded = c.number("a value")?;
        return Ok((Kind::Load, place, loaded, 0, column));
    }
    Err(c.expected("`==` or `:=`"))
}

/// Reads `@ 100:110`, `@ 100:`, `@ 100` or `@ :110`. Returns the column of the end with it.
fn times(c: &mut Cursor<'_>) -> Result<(Option<u64>, Option<u64>, usize), Wrong> {
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
        return Err(c.expected("a time"));
    }
    Ok((begin, end, column))
}

impl<'o> Reader<'o> {
    fn new(options: &'o ReadOptions, number: u64) -> Self {
        Reader {
            options,
            builder: TraceBuilder::new(&options.file, number),
            threads: AHashMap::new(),
            places: AHashMap::new(),
            begins: Vec::new(),
            stored: AHashMap::new(),
            open: AHashMap::new(),
            finals: AHashMap::new(),
            final_texts: Vec::new(),
            comment: None,
        }
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
        let wrong = |Wrong(at, message): Wrong| {
            let column = text[..at.min(text.len())].chars().count() + 1;
            Diagnostic::in_line(Stage::Syntax, number, column, text, message)
        };
        self.code(number, code, text).map_err(wrong)
    }
    fn code(&mut self, number: u64, code: &str, text: &str) -> Result<bool, Wrong> {
        let mut c = Cursor { text: code, at: 0 };
        if c.take("check") {
            self.end_of_line(&mut c)?;
            return Ok(true);
        }
        let line = u32::try_from(number)
            .map_err(|_| Wrong(0, "a log has at most 4,294,967,295 lines".to_string()))?;
        if c.take("final") {
            let place = c.place()?;
            c.require("==")?;
            c.blanks();
            let column = c.at;
            let value = c.number("a value")?;
            self.end_of_line(&mut c)?;
            let place = self.place(place);
            if let Some((other, line)) = self.finals.insert(place, (value, number)) {
                if other != value {
                    self.finals.insert(place, (other, line));
                    let message = format!("line {line} requires the final value {other}");
                    return Err(Wrong(column, message));
                }
                return Ok(false);
            }
            self.builder.last(place, 0, value, line);
            self.final_texts.push((place, value, number, column, text.to_string()));
            return Ok(false);
        }
        let thread = c.number("a thread")?;
        c.require(":")?;
        let (kind, place, loaded, stored, column) = access(&mut c)?;
        c.blanks();
        let at = c.at;
        let (begin, end, end_column) = times(&mut c)?;
        self.end_of_line(&mut c)?;
        if end.is_some() && kind == Kind::Store {
            return Err(Wrong(end_column, "a store has no end time".to_string()));
        }
        if begin.zip(end).is_some_and(|(b, e)| e <= b) {
            return Err(Wrong(end_column, "the end is not after the begin".to_string()));
        }
        if begin == Some(u64::MAX) || end == Some(u64::MAX) {
            return Err(Wrong(at, "times are below 2^64 - 1".to_string()));
        }
        let thread = self.thread(thread);
        let last = &mut self.begins[thread as usize];
        if let Some((last, begin)) = last.zip(begin).filter(|(l, b)| l >= b) {
            let message =
                format!("the begin {begin} is not after {last}, the last one of the thread");
            return Err(Wrong(at, message));
        }
        *last = begin.or(*last);
        let fence = matches!(kind, Kind::Fence(_));
        let location = if fence { 0 } else { self.place(place) };
        let o = match kind {
            Kind::Load => Operation::load(location, loaded, line),
            Kind::Store => Operation::store(location, stored, line),
            Kind::Update => Operation::update(location, loaded, stored, line),
            Kind::Fence(f) => Operation::fence(f, line),
        };
        let added = self.builder.push(thread, Operation { begin, end, ..o });
        if kind.loads() && loaded != 0 && !self.stored.contains_key(&(location, loaded)) {
            let list = self.open.entry((location, loaded)).or_default();
            match list.iter_mut().find(|o| o.thread == thread) {
                Some(open) if open.own_store.is_none() => open.added.push(added),
                Some(_) => {}
                None => list.push(Open {
                    thread,
                    added: vec![added],
                    line: number,
                    column: text[..column].chars().count() + 1,
                    text: text.to_string(),
                    own_store: None,
                }),
            }
        }
        if kind.stores() {
            self.store(thread, location, stored, number);
        }
        Ok(false)
    }
    /// Records a store: it is a source for the loads of other threads and for later ones.
    fn store(&mut self, thread: u32, location: u32, value: u64, line: u64) {
        let known = self.stored.entry((location, value)).or_insert(Some(thread));
        if *known != Some(thread) {
            *known = None;
        }
        if let Some(list) = self.open.get_mut(&(location, value)) {
            list.retain(|o| o.thread == thread);
            list.iter_mut().for_each(|o| o.own_store = o.own_store.or(Some(line)));
            if list.is_empty() {
                self.open.remove(&(location, value));
            }
        }
    }
    fn end_of_line(&self, c: &mut Cursor<'_>) -> Result<(), Wrong> {
        c.blanks();
        if c.at < c.text.len() { Err(c.expected("the end of the line")) } else { Ok(()) }
    }
    fn thread(&mut self, number: u64) -> u32 {
        *self.threads.entry(number).or_insert_with(|| {
            self.begins.push(None);
            self.builder.thread(&number.to_string())
        })
    }
    fn place(&mut self, number: u64) -> u32 {
        *self.places.entry(number).or_insert_with(|| self.builder.named(&number.to_string()))
    }
    /// Checks that each loaded and each final value has a source, and returns the trace.
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Done, Diagnostic> {
        let mut open: Vec<((u32, u64), Open)> = Vec::new();
        for (key, list) in std::mem::take(&mut self.open) {
            open.extend(list.into_iter().map(|o| (key, o)));
        }
        open.sort_by_key(|(_, o)| o.line);
        let mut removed = AHashSet::new();
        for ((_, value), o) in open {
            let (message, note) = match o.own_store {
                None => (format!("nobody stores {value} there, and it is not 0"), None),
                Some(line) => (
                    format!("this load of {value} precedes the store that it reads"),
                    Some(format!("only line {line}, behind it in the same thread, stores {value}")),
                ),
            };
            let mut error = Diagnostic::in_line(Stage::Syntax, o.line, o.column, o.text, message)
                .in_file(&self.options.file);
            error.notes.extend(note);
            if !self.options.repair {
                return Err(error);
            }
            sink.skipped(error);
            removed.extend(o.added);
        }
        for added in removed {
            self.builder.drop_load(added);
        }
        for (location, value, line, column, text) in std::mem::take(&mut self.final_texts) {
            if value == 0 || self.stored.contains_key(&(location, value)) {
                continue;
            }
            let column = text[..column].chars().count() + 1;
            let message = format!("nobody stores {value} there, and it is not 0");
            let error = Diagnostic::in_line(Stage::Syntax, line, column, text, message)
                .in_file(&self.options.file);
            if !self.options.repair {
                return Err(error);
            }
            sink.skipped(error);
            self.builder.drop_final(location);
        }
        let mut builder = std::mem::take(&mut self.builder);
        builder.name = self.comment.take();
        let number = builder.number;
        let more = sink.trace(builder.finish()?)?;
        Ok(Done { number, more })
    }
}
