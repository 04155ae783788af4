//! Logs as streams of bytes: files, standard input, compressed files; recognition of the format by
//! the first bytes.

use crate::args::LogFormat;
use crate::args::TraceArgs;
use crate::pipeline::file_error;
use mu_base::{Diagnostic, Stage};
use mu_traces::readers::{reader_for, with_start};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A log, opened.
pub(super) struct Log {
    /// Its name in messages and results.
    pub name: String,
    /// Its format.
    pub format: LogFormat,
    /// Its bytes, decompressed.
    pub bytes: Box<dyn BufRead>,
}

/// Opens a log and determines its format.
///
/// # Errors
/// The file cannot be read, or its format is not recognised.
pub(super) fn open(path: &Path, args: &TraceArgs) -> Result<Log, Diagnostic> {
    let is_input = path == Path::new("-");
    let name = if is_input { "standard input".to_string() } else { path.display().to_string() };
    let raw: Box<dyn BufRead> = if is_input {
        Box::new(BufReader::with_capacity(1 << 20, mu_base::host::input()))
    } else {
        if mu_base::host::is_dir(path) {
            let message = format!("cannot read `{}`: it is a folder", path.display());
            return Err(Diagnostic::new(Stage::File, message).note("expected a log"));
        }
        let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
        Box::new(BufReader::with_capacity(1 << 20, file))
    };
    let failed = |e: std::io::Error| file_error("cannot read", path, &e);
    let (start, bytes) = with_start(mu_lts::aut::decompress(raw).map_err(failed)?);
    let format = match args.from {
        Some(format) => format,
        None => recognise(&name, &start)?,
    };
    Ok(Log { name, format, bytes })
}

/// Returns the format of a log by its name and its first lines.
fn recognise(name: &str, start: &str) -> Result<LogFormat, Diagnostic> {
    let has_histogram = |l: &str| l.starts_with("Histogram (") && l.ends_with("states)");
    if start.lines().any(has_histogram) {
        return Ok(LogFormat::Litmus7);
    }
    if let Some(reader) = reader_for(name, start) {
        return Ok(LogFormat::Operations(reader));
    }
    let is_blank = |l: &str| l.trim().is_empty() || l.trim_start().starts_with('#');
    let message = match start.lines().enumerate().find(|(_, l)| !is_blank(l)) {
        None => {
            return Err(Diagnostic::new(Stage::Syntax, format!("{name}: the log is empty"))
                .note("expected at least one operation"));
        }
        Some((number, line)) => {
            let shown: String = line.chars().take(160).collect();
            let message = "the format of this log is not recognised";
            Diagnostic::in_line(Stage::Syntax, number as u64 + 1, 1, shown, message).in_file(name)
        }
    };
    let names: Vec<&str> = mu_traces::readers().iter().map(|r| r.name()).collect();
    Err(message
        .note(format!("`--from FORMAT` sets it: {}, {}", names.join(", "), LogFormat::LITMUS7))
        .note("a log of another form becomes a table (.csv) with the columns thread, operation, address, value, or an object with these keys on each line (.jsonl): see docs/traces.md"))
}
