//! Readers of tables with named columns and of JSON lines with the same keys: the formats for logs
//! of one's own.
//!
//! ```text
//! thread,operation,address,value        {"thread": 0, "operation": "store", "address": "x",
//! "value": 1} 0,store,x,1                           {"thread": 0, "operation": "fence", "fence":
//! "w,r"} 1,load,x,1                            {"thread": 1, "operation": "load", "address": "x",
//! "value": 1}
//! ```
//!
//! [`COLUMNS`] lists the columns. A line `check`, a record with the operation `check`, or another
//! value of the column `trace` ends a trace. A comment (`#`) before a trace is its name. Lines of a
//! thread stand in program order. An unknown column is an error, because its omission might change
//! the answer. Memory: the trace.

use super::fields::{self, Field};
use super::lines::{Line, LineEffect, LineReader, Word, read_lines};
use super::{ReadOptions, Sink, TraceReader};
use crate::trace::{
    Annotations, Fence, Initial, Operation, OperationIndex, OperationKind, TraceBuilder,
};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::BufRead;

/// Tables with a head.
pub struct TableLog;

/// JSON lines.
pub struct JsonLines;

/// A column: its name, its other names, its content.
type Column = (&'static str, &'static [&'static str], &'static str);

/// The columns, or keys.
pub const COLUMNS: &[Column] = &[
    ("thread", &["hart", "core", "cpu", "processor", "tid"], "thread: any name"),
    ("operation", &["op"], "load, store, update, fence, initial, final, or check"),
    ("address", &["addr", "location"], "address: a number, or any name of a location"),
    ("value", &["data", "loaded"], "loaded or stored value; of an update, the loaded value"),
    ("stored", &["new"], "value that an update stores"),
    ("size", &["bytes"], "number of bytes: 1, 2, 4, or 8"),
    ("begin", &["start"], "time at which the operation begins"),
    ("end", &["finish"], "time at which the operation ends"),
    ("commit", &[], "position of a store in the order of memory"),
    ("fence", &["fence_kind"], "kind of a fence: full, `r,rw`, `rw-w`, tso, mfence, dmb ish, …"),
    ("acquire", &["aq"], "true for an acquire, weak for `ldapr`"),
    ("release", &["rl"], "true for a release"),
    ("atomic", &[], "true for a load and the store after it that are one update"),
    ("trace", &["test"], "name of the trace; a new value begins a trace"),
    ("comment", &["pc", "instruction", "time"], "not read"),
];

const THREAD: usize = 0;
const OPERATION: usize = 1;
const ADDRESS: usize = 2;
const VALUE: usize = 3;
const STORED: usize = 4;
const SIZE: usize = 5;
const BEGIN: usize = 6;
const END: usize = 7;
const COMMIT: usize = 8;
const FENCE: usize = 9;
const ACQUIRE: usize = 10;
const RELEASE: usize = 11;
const ATOMIC: usize = 12;
const TRACE: usize = 13;

/// Returns the number of a column.
fn column(name: &str) -> Option<usize> {
    let name = name.trim().to_lowercase();
    COLUMNS.iter().position(|c| c.0 == name || c.1.contains(&name.as_str()))
}

/// True if names are those of columns, with a thread and an operation.
fn has_head<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let columns: Vec<Option<usize>> = names.map(column).collect();
    columns.contains(&Some(THREAD)) && columns.contains(&Some(OPERATION))
}

/// Returns the first line of a text that is neither empty nor a comment.
fn first_line(start: &str) -> &str {
    let start = start.strip_prefix('\u{feff}').unwrap_or(start);
    start.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or("")
}

impl TraceReader for TableLog {
    fn name(&self) -> &'static str {
        "csv"
    }
    fn summary(&self) -> &'static str {
        "table with a head: `thread,operation,address,value` and more columns"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["csv", "tsv"]
    }
    fn recognises(&self, start: &str) -> bool {
        let head = first_line(start);
        has_head(head.split(fields::separator(head)).map(|n| n.trim().trim_matches('"')))
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        read_lines(RecordReader::new(&options.file, LineForm::Table(None)), log, options, sink)
    }
}

impl TraceReader for JsonLines {
    fn name(&self) -> &'static str {
        "json"
    }
    fn summary(&self) -> &'static str {
        "JSON lines: `{\"thread\": 0, \"operation\": \"load\", \"address\": 8, \"value\": 1}`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["jsonl", "ndjson"]
    }
    fn recognises(&self, start: &str) -> bool {
        let line = first_line(start);
        line.starts_with('{') && has_head(line.split('"').skip(1).step_by(2))
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        read_lines(RecordReader::new(&options.file, LineForm::Json), log, options, sink)
    }
}

/// Form of the lines.
#[derive(Debug)]
enum LineForm {
    Json,
    /// The separator and the columns, once the head is read.
    Table(Option<(char, Vec<usize>)>),
}

/// Load of a pair; its store follows.
#[derive(Debug)]
struct AtomicLoad {
    thread: u32,
    load: Operation,
    added: OperationIndex,
    /// True if no other operation of the thread follows.
    adjacent: bool,
    line: (u64, String),
}

#[derive(Debug)]
struct RecordReader {
    form: LineForm,
    file: String,
    number: u64,
    builder: TraceBuilder,
    /// Name in the column `trace`.
    current: Option<String>,
    /// True if the trace has records, none of which has a value in the column `trace`.
    is_unnamed: bool,
    atomic: Vec<AtomicLoad>,
    /// Last begin time of each thread.
    begins: AHashMap<u32, u64>,
    /// Initial values that the trace gives.
    initials: AHashMap<u32, Initial>,
    /// Bytes of initial values with an address and a size.
    initial_bytes: AHashMap<u64, u8>,
}

/// The values of a record, by column; absent ones are empty.
struct Record<'a> {
    line: Line<'a>,
    values: [Option<Word<'a>>; COLUMNS.len()],
}

impl<'a> Record<'a> {
    fn get(&self, column: usize) -> Option<Word<'a>> {
        self.values[column].filter(|w| !w.text.is_empty())
    }
    fn need(&self, column: usize, of: &str) -> Result<Word<'a>, Diagnostic> {
        self.get(column).ok_or_else(|| {
            let at = self.values[column].map_or(0, |w| w.at);
            let (name, _, about) = COLUMNS[column];
            self.line.error(at, format!("a {of} needs a value in `{name}` ({about})"))
        })
    }
    fn number(&self, column: usize) -> Result<Option<u64>, Diagnostic> {
        self.get(column)
            .map(|w| w.number(&format!("a number in `{}`", COLUMNS[column].0)))
            .transpose()
    }
    /// Returns a time or a position in the order of memory.
    fn time(&self, column: usize, of: &str) -> Result<Option<u64>, Diagnostic> {
        match self.number(column)? {
            Some(u64::MAX) => Err(self.need(column, of)?.error("a time is below 2^64 - 1")),
            time => Ok(time),
        }
    }
    /// Returns the times at which an operation begins and ends.
    fn times(&self, of: &str) -> Result<(Option<u64>, Option<u64>), Diagnostic> {
        let (begin, end) = (self.time(BEGIN, of)?, self.time(END, of)?);
        if begin.zip(end).is_some_and(|(begin, end)| end <= begin) {
            return Err(self.need(END, of)?.error("the end is not after the begin"));
        }
        Ok((begin, end))
    }
    fn flag(&self, column: usize) -> Result<bool, Diagnostic> {
        let Some(word) = self.get(column) else { return Ok(false) };
        match word.text.to_lowercase().as_str() {
            "true" | "1" | "yes" | "x" => Ok(true),
            "false" | "0" | "no" | "-" => Ok(false),
            _ => Err(word.expected_error(&format!("`true` or `false` in `{}`", COLUMNS[column].0))),
        }
    }
    /// Rejects values in columns that the operation does not have.
    fn expect_absent(&self, columns: &[usize], of: &str) -> Result<(), Diagnostic> {
        for column in columns {
            if let Some(word) = self.get(*column)
                && !["false", "0", "no", "-"].contains(&word.text.to_lowercase().as_str())
            {
                let name = COLUMNS[*column].0;
                return Err(word.error(format!("a {of} has no value in `{name}`")));
            }
        }
        Ok(())
    }
}

impl RecordReader {
    fn new(file: &str, form: LineForm) -> Self {
        Self {
            form,
            file: file.to_string(),
            number: 1,
            builder: TraceBuilder::new(file, 1),
            current: None,
            is_unnamed: false,
            atomic: Vec::new(),
            begins: AHashMap::new(),
            initials: AHashMap::new(),
            initial_bytes: AHashMap::new(),
        }
    }
    /// Reads the head of a table, or returns the record of a line; `None` for the head.
    fn record<'a>(&mut self, line: Line<'a>) -> Result<Option<Record<'a>>, Diagnostic> {
        let mut values = [None; COLUMNS.len()];
        match &mut self.form {
            LineForm::Json => {
                for (key, value) in fields::object(line)? {
                    set(&mut values, column_number(&key)?, (key, value))?;
                }
            }
            LineForm::Table(Some((separator, columns))) => {
                let words = fields::row(line, *separator)?;
                if words.len() != columns.len() {
                    let message = format!(
                        "the head has {} columns, this row has {} fields",
                        columns.len(),
                        words.len()
                    );
                    let at = words.get(columns.len()).map_or(line.text.len(), |w| w.at);
                    return Err(line.error(at, message));
                }
                for (column, word) in columns.iter().zip(words) {
                    values[*column] = Some(word);
                }
            }
            LineForm::Table(head) => {
                let separator = fields::separator(line.text);
                let words = fields::row(line, separator)?;
                let mut columns = Vec::new();
                for word in &words {
                    let number = column_number(word)?;
                    if columns.contains(&number) && COLUMNS[number].0 != "comment" {
                        let name = COLUMNS[number].0;
                        return Err(word.error(format!("the column `{name}` occurs twice")));
                    }
                    columns.push(number);
                }
                for needed in [THREAD, OPERATION] {
                    if !columns.contains(&needed) {
                        let name = COLUMNS[needed].0;
                        return Err(line.error(0, format!("the head has no column `{name}`")));
                    }
                }
                *head = Some((separator, columns));
                return Ok(None);
            }
        }
        Ok(Some(Record { line, values }))
    }
    fn operation(&mut self, record: &Record<'_>) -> Result<LineEffect, Diagnostic> {
        let word = record.need(OPERATION, "record")?;
        let name = word.text.to_lowercase();
        match name.as_str() {
            "load" | "read" | "ld" | "r" => self.access(record, OperationKind::Load, "load"),
            "store" | "write" | "st" | "w" => self.access(record, OperationKind::Store, "store"),
            "update" | "rmw" | "amo" | "swap" => {
                self.access(record, OperationKind::Update, "update")
            }
            "fence" | "sync" | "barrier" => self.fence(record),
            "initial" | "init" => self.value(record, "initial value"),
            "final" => self.value(record, "final value"),
            "check" => return Ok(LineEffect::Ends),
            _ => return Err(word.expected_error(COLUMNS[OPERATION].2)),
        }?;
        Ok(LineEffect::More)
    }
    /// Returns the location of a record.
    fn location(&mut self, record: &Record<'_>, of: &str) -> Result<u32, Diagnostic> {
        let word = record.need(ADDRESS, of)?;
        if word.text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(self.builder.address(word.number("an address or a name")?));
        }
        Ok(self.builder.named_location(word.text))
    }
    fn size(&self, record: &Record<'_>) -> Result<u8, Diagnostic> {
        let Some(word) = record.get(SIZE) else { return Ok(0) };
        match word.text {
            "1" | "2" | "4" | "8" => Ok(word.text.as_bytes()[0] - b'0'),
            _ => Err(word.expected_error("a size of 1, 2, 4, or 8 bytes")),
        }
    }
    fn access(
        &mut self,
        record: &Record<'_>,
        kind: OperationKind,
        of: &str,
    ) -> Result<(), Diagnostic> {
        record.expect_absent(&[FENCE], of)?;
        let size = self.size(record)?;
        let value = |column: usize| number_of_size(&record.need(column, of)?, size);
        let is_open = kind.loads() && record.get(VALUE).is_some_and(|w| w.text == "?");
        let (loaded, stored) = match kind {
            OperationKind::Load if is_open => (0, 0),
            OperationKind::Update if is_open => (0, value(STORED)?),
            OperationKind::Load => (value(VALUE)?, 0),
            OperationKind::Store => (0, value(VALUE)?),
            _ => (value(VALUE)?, value(STORED)?),
        };
        if kind != OperationKind::Update {
            record.expect_absent(&[STORED], of)?;
        }
        let mut mark = Annotations::PLAIN;
        if record.get(ACQUIRE).is_some_and(|w| w.text.eq_ignore_ascii_case("weak")) {
            mark = mark.union(Annotations::WEAK_ACQUIRE);
        } else if record.flag(ACQUIRE)? {
            mark = mark.union(Annotations::ACQUIRE);
        }
        if record.flag(RELEASE)? {
            mark = mark.union(Annotations::RELEASE);
        }
        let (begin, end) = record.times(of)?;
        let commit = record.time(COMMIT, of)?;
        if kind == OperationKind::Store && end.is_some() {
            return Err(record.need(END, of)?.error("a store has no end time"));
        }
        if kind == OperationKind::Load && commit.is_some() {
            let word = record.need(COMMIT, of)?;
            return Err(word.error("only stores and updates have a value in `commit`"));
        }
        let atomic = record.flag(ATOMIC)?;
        let location = self.location(record, of)?;
        let thread = self.builder.thread(record.need(THREAD, of)?.text);
        self.begins_in_order(thread, record, of)?;
        let line = record.line;
        let operation = Operation {
            kind,
            mark,
            location,
            offset: 0,
            size,
            loaded,
            stored,
            begin,
            end,
            commit,
            line: line.index(),
        };
        let before = self.atomic.iter().position(|a| a.thread == thread);
        match (before, atomic, kind) {
            (Some(at), true, OperationKind::Store)
                if self.atomic[at].load.location == location
                    && self.atomic[at].load.size == size =>
            {
                let first = self.atomic.remove(at);
                if !first.adjacent {
                    let store = self.builder.push(thread, operation);
                    self.builder.open_pair(first.added, store);
                    return Ok(());
                }
                self.builder.change(first.added, |update| {
                    update.kind = OperationKind::Update;
                    update.mark = Annotations::pair(update.mark, mark);
                    update.stored = stored;
                    update.end = end.or(update.end);
                    update.commit = commit;
                });
            }
            (Some(at), true, _) => {
                let first = self.atomic.remove(at);
                self.push(thread, operation, is_open);
                return Err(line.error(
                    0,
                    format!(
                        "expected the atomic store that completes the atomic load of line {}",
                        first.line.0
                    ),
                ));
            }
            (None, true, OperationKind::Load) => {
                let line = (line.number, line.text.to_string());
                let added = self.push(thread, operation, is_open);
                let load = operation;
                self.atomic.push(AtomicLoad { thread, load, added, adjacent: true, line });
            }
            (None, true, OperationKind::Store) => {
                self.builder.push(thread, operation);
                let message =
                    "an atomic store needs an atomic load of its address and size before it";
                return Err(line.error(0, message));
            }
            _ => {
                self.separates(thread);
                self.push(thread, operation, is_open);
            }
        }
        Ok(())
    }
    /// Adds an access. `is_open`: the log does not have its loaded value.
    fn push(&mut self, thread: u32, operation: Operation, is_open: bool) -> OperationIndex {
        let added = self.builder.push(thread, operation);
        if is_open {
            self.builder.open_value(added, None);
        }
        added
    }
    fn fence(&mut self, record: &Record<'_>) -> Result<(), Diagnostic> {
        record.expect_absent(
            &[ADDRESS, VALUE, STORED, SIZE, COMMIT, ACQUIRE, RELEASE, ATOMIC],
            "fence",
        )?;
        let fence = match record.get(FENCE) {
            None => Fence::FULL,
            Some(word) => fence_named(word.text).ok_or_else(|| {
                word.expected_error("a kind of fence: full, `r,rw`, `rw-w`, tso, mfence, sfence, lfence, sync, lwsync, dmb ish, dmb ishld, or dmb ishst")
            })?,
        };
        let (begin, end) = record.times("fence")?;
        let thread = self.builder.thread(record.need(THREAD, "fence")?.text);
        self.begins_in_order(thread, record, "fence")?;
        let line = record.line.index();
        if !fence.is_empty() {
            self.separates(thread);
            self.builder.push(thread, Operation { begin, end, ..Operation::fence(fence, line) });
        }
        Ok(())
    }
    /// Checks that an operation begins no earlier than those of its thread before it.
    fn begins_in_order(
        &mut self,
        thread: u32,
        record: &Record<'_>,
        of: &str,
    ) -> Result<(), Diagnostic> {
        let Some(begin) = record.time(BEGIN, of)? else { return Ok(()) };
        let last = self.begins.entry(thread).or_insert(0);
        if *last > begin {
            let message = format!("the begin {begin} is before {last}, the last one of the thread");
            return Err(record.need(BEGIN, of)?.error(message));
        }
        *last = begin;
        Ok(())
    }
    /// Notes that an operation of a thread follows its atomic load.
    fn separates(&mut self, thread: u32) {
        if let Some(load) = self.atomic.iter_mut().find(|a| a.thread == thread) {
            load.adjacent = false;
        }
    }
    fn value(&mut self, record: &Record<'_>, of: &str) -> Result<(), Diagnostic> {
        record.expect_absent(&[STORED, BEGIN, END, COMMIT, FENCE, ACQUIRE, RELEASE, ATOMIC], of)?;
        let word = record.need(VALUE, of)?;
        let size = self.size(record)?;
        if of == "initial value" && word.text == "?" {
            let location = self.location(record, of)?;
            return self.initial(word, (location, size), Initial::Unknown);
        }
        let value = number_of_size(&word, size)?;
        let location = self.location(record, of)?;
        if of == "final value" {
            self.builder.last(location, size, value, record.line.index());
        } else {
            self.initial(word, (location, size), Initial::Value(value))?;
        }
        Ok(())
    }
    /// Sets the initial value of a location. Error: the log gives another one before.
    fn initial(
        &mut self,
        word: Word<'_>,
        (location, size): (u32, u8),
        initial: Initial,
    ) -> Result<(), Diagnostic> {
        let known = self.initials.entry(location).or_insert_with(|| initial.clone());
        if *known != initial {
            return Err(word.error("the log gives another initial value before"));
        }
        if let (Some(first), Initial::Value(value)) = (self.builder.address_of(location), &initial)
        {
            for (i, byte) in value.to_le_bytes().into_iter().enumerate().take(usize::from(size)) {
                let at = first.wrapping_add(i as u64);
                if *self.initial_bytes.entry(at).or_insert(byte) != byte {
                    let message = format!("the log gives another initial byte at {at:#x} before");
                    return Err(word.error(message));
                }
            }
        }
        self.builder.set_initial(location, size, initial);
        Ok(())
    }
}

/// Reads a value of `size` bytes; 0: of at most 8.
fn number_of_size(word: &Word<'_>, size: u8) -> Result<u64, Diagnostic> {
    let value = word.number("a value")?;
    if size != 0 && size < 8 && value >> (8 * size) != 0 {
        let bytes = if size == 1 { "1 byte".to_string() } else { format!("{size} bytes") };
        return Err(word.error(format!("the value `{}` needs more than {bytes}", word.text)));
    }
    Ok(value)
}

/// Returns the number of a column, by its name in the log.
fn column_number(name: &Word<'_>) -> Result<usize, Diagnostic> {
    column(name.text).ok_or_else(|| {
        let all: Vec<&str> = COLUMNS.iter().map(|c| c.0).collect();
        name.error(format!("there is no column `{}`", name.text))
            .note(format!("columns: {}", all.join(", ")))
    })
}

/// Sets the value of a column, once.
fn set<'a>(
    values: &mut [Option<Word<'a>>; COLUMNS.len()],
    column: usize,
    (key, value): Field<'a>,
) -> Result<(), Diagnostic> {
    if values[column].is_some() && COLUMNS[column].0 != "comment" {
        return Err(key.error(format!("the column `{}` occurs twice", COLUMNS[column].0)));
    }
    values[column] = Some(value);
    Ok(())
}

/// Returns the fence of a barrier of Arm, as in the model of AArch64. `dsb st` orders stores also
/// with later loads, since no later instruction is executed before it completes.
fn barrier(name: &str) -> Option<Fence> {
    let mut words = name.split_whitespace();
    let (mnemonic, kind) = (words.next()?, words.next().unwrap_or("sy"));
    let kind =
        ["sy", "ish", "osh", "nsh"].iter().find_map(|d| kind.strip_prefix(d)).unwrap_or(kind);
    match (mnemonic, kind) {
        _ if words.next().is_some() => None,
        ("dmb" | "dsb", "") => Some(Fence::FULL),
        ("dmb" | "dsb", "ld") => Some(Fence::ACQUIRE),
        ("dmb", "st") => Some(Fence::WW),
        ("dsb", "st") => Some(Fence::WR.union(Fence::WW)),
        _ => None,
    }
}

/// Returns the fence with a name of RISC-V, x86, AArch64, POWER, or its general name. `None` if no
/// fence has it.
pub fn fence_named(name: &str) -> Option<Fence> {
    let name = name.trim().to_lowercase();
    Some(match name.as_str() {
        "full" | "sync" | "hwsync" | "mfence" | "seq_cst" | "true" => Fence::FULL,
        "tso" | "fence.tso" | "lwsync" => Fence::TSO,
        "acquire" => Fence::ACQUIRE,
        "release" => Fence::RELEASE,
        "lfence" => Fence::RR,
        "sfence" | "eieio" => Fence::WW,
        _ if name.starts_with("dmb") || name.starts_with("dsb") => return barrier(&name),
        _ => {
            let pair = name.strip_prefix("fence").unwrap_or(&name).trim();
            let (before, after) = pair.split_once([',', '-', '.'])?;
            let (before, after) = (before.trim(), after.trim());
            let is_set = |s: &str| !s.is_empty() && s.chars().all(|c| "iorw".contains(c));
            if !is_set(before) || !is_set(after) {
                return None;
            }
            Fence::between(before, after)
        }
    })
}

impl LineReader for RecordReader {
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(LineEffect::More);
        }
        if let Some(name) = text.strip_prefix('#') {
            let name = name.trim();
            if self.builder.is_empty() && !name.is_empty() {
                self.builder.name = Some(name.to_string());
            }
            return Ok(LineEffect::More);
        }
        if text == "check" {
            return Ok(LineEffect::Ends);
        }
        let Some(record) = self.record(line)? else { return Ok(LineEffect::More) };
        if let Some(name) = record.get(TRACE)
            && self.current.as_deref() != Some(name.text)
        {
            self.current = Some(name.text.to_string());
            if !self.builder.is_empty() || !self.atomic.is_empty() {
                return Ok(LineEffect::EndsBefore);
            }
            if self.is_unnamed {
                // Initial values before the first name belong to this trace.
                self.builder.name.clone_from(&self.current);
            } else {
                // Initial values alone are no trace.
                self.number -= 1;
                self.take();
            }
        }
        let effect = self.operation(&record);
        self.is_unnamed = record.get(TRACE).is_none() && effect.is_ok();
        effect
    }
    fn complete(&mut self) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        for AtomicLoad { line, .. } in std::mem::take(&mut self.atomic) {
            let line = Line { file: &self.file, number: line.0, text: &line.1 };
            errors.push(line.error(0, "no atomic store completes this atomic load"));
        }
        errors
    }
    fn stable(&mut self) -> Option<&mut TraceBuilder> {
        // An atomic store changes the load before it.
        self.atomic.is_empty().then_some(&mut self.builder)
    }
    fn take(&mut self) -> TraceBuilder {
        self.number += 1;
        self.is_unnamed = false;
        self.begins.clear();
        self.initials.clear();
        self.initial_bytes.clear();
        let mut fresh = TraceBuilder::new(&self.file, self.number);
        fresh.name.clone_from(&self.current);
        std::mem::replace(&mut self.builder, fresh)
    }
}
