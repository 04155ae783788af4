//! Readers of traces: one for each format of logs, in one registry.
//!
//! A reader streams: it gives each trace to a [`Sink`] as soon as it is complete, so that a log
//! with many traces needs the memory of the longest one.

pub mod axe;
mod fields;
pub mod gem5;
mod hart;
mod limited;
pub mod lines;
pub mod records;
pub mod rvfi;
mod rvfi_packets;
pub mod spike;
pub mod tracegen;
pub mod whisper;
mod window;

pub use limited::Limited;

use std::io::{BufRead, Cursor, Read};

use mu_base::Diagnostic;

use crate::trace::{Trace, TraceBuilder};

/// Number of bytes at the start of a log by which its format is recognised.
const START: u64 = 1 << 16;

/// Returns the start of a log as text, for [`reader_for`], and the whole log. A damaged byte stream
/// ends the start early; the reader reports the damage, with its line.
pub fn with_start(mut bytes: Box<dyn BufRead>) -> (String, Box<dyn BufRead>) {
    let mut start = Vec::new();
    let _ = (&mut bytes).take(START).read_to_end(&mut start);
    let text = String::from_utf8_lossy(&start).into_owned();
    (text, Box::new(Cursor::new(start).chain(bytes)))
}

/// Options of readers.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Name of the log, for messages.
    pub file: String,
    /// True if lines with errors are reported and skipped; else the first one ends the reading.
    pub repair: bool,
}

/// Number of operations after which a sink may take a part of a trace.
pub(crate) const PART: usize = 1 << 12;

/// Receiver of traces and of skipped lines.
pub trait Sink {
    /// Takes a complete trace. Returns false if the reader must stop without an error.
    ///
    /// # Errors
    /// Any; the reader returns it.
    fn trace(&mut self, trace: Trace) -> Result<bool, Diagnostic>;
    /// Takes operations of a trace in progress out of its builder ([`TraceBuilder::drain`]), if
    /// the sink decides traces part by part. `is_end`: the trace is complete. Returns `None` if the
    /// sink needs whole traces, false if the reader must stop without an error.
    ///
    /// # Errors
    /// Any; the reader returns it.
    fn part(
        &mut self,
        _builder: &mut TraceBuilder,
        _is_end: bool,
    ) -> Result<Option<bool>, Diagnostic> {
        Ok(None)
    }
    /// Takes the error of a part of the log that is skipped (only with [`ReadOptions::repair`]).
    fn report_skipped(&mut self, error: Diagnostic);
    /// Takes a warning about the last line of a log, which has no end of line but is in the format:
    /// if the log is cut off there, its last operation may be another one.
    fn report_unended(&mut self, _warning: Diagnostic) {}
}

/// Reader of one format.
pub trait TraceReader: Sync {
    /// Name of the format, as on the command line.
    fn name(&self) -> &'static str;
    /// Description in one sentence.
    fn summary(&self) -> &'static str;
    /// Usual endings of file names, without the dot and without `.gz`.
    fn extensions(&self) -> &'static [&'static str];
    /// True if a text is in this format, given its first lines (at most 64 KiB, possibly cut in a
    /// line).
    fn recognises(&self, start: &str) -> bool;
    /// Reads all traces of a log.
    ///
    /// # Errors
    /// The first one of the log, with its line and column, unless `options.repair`; those of the
    /// sink; a log that cannot be read.
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic>;
}

/// Returns all readers, in the order in which [`reader_for`] tries them.
pub fn readers() -> &'static [&'static dyn TraceReader] {
    &[
        &axe::Axe,
        &tracegen::TraceGen,
        &spike::Spike,
        &whisper::Whisper,
        &gem5::Gem5,
        &rvfi::Rvfi,
        &records::TableLog,
        &records::JsonLines,
    ]
}

/// Returns the reader for a log: the only one with the ending of the name, else the first that
/// recognises the content. `start`: the first lines, as for [`TraceReader::recognises`]. `None` if
/// no reader does.
pub fn reader_for(file: &str, start: &str) -> Option<&'static dyn TraceReader> {
    let name = file.strip_suffix(".gz").unwrap_or(file);
    let by_name = readers().iter().filter(|r| {
        r.extensions().iter().any(|e| name.strip_suffix(e).is_some_and(|n| n.ends_with('.')))
    });
    match by_name.collect::<Vec<_>>()[..] {
        [one] => Some(*one),
        _ => readers().iter().find(|r| r.recognises(start)).copied(),
    }
}

/// Collector of all traces and errors of a log.
#[derive(Debug, Default)]
pub struct Collected {
    /// Traces.
    pub traces: Vec<Trace>,
    /// Errors of skipped parts.
    pub skipped: Vec<Diagnostic>,
}

impl Sink for Collected {
    fn trace(&mut self, trace: Trace) -> Result<bool, Diagnostic> {
        self.traces.push(trace);
        Ok(true)
    }
    fn report_skipped(&mut self, error: Diagnostic) {
        self.skipped.push(error);
    }
}
