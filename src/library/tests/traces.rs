//! Logs of memory operations through the library: files, bytes, formats, errors, limits.

use mu_base::Limits;
use mu_library::{Run, Stop, TraceCheck};
use std::io::{BufReader, Cursor, Read};
use std::time::Duration;

const BUFFERS: &str = "# SB\n0: M[0] := 1\n0: M[1] == 0\n1: M[1] := 1\n1: M[0] == 0\ncheck\n";

#[test]
fn logs_have_answers_by_model() {
    let check = TraceCheck::new(["tso", "sc"]).expect("models");
    let log = format!("{BUFFERS}0: M[0] := 1\n0: M[0] := 2\n0: M[0] == 1\n");
    let checked = check.log("log", Cursor::new(log), &Run::new()).expect("a log");
    assert_eq!(checked.stop, Stop::Complete);
    let [first, second] = &checked.traces[..] else { panic!("{checked:?}") };
    assert_eq!((first.name.as_str(), first.operations, first.threads), ("SB", 4, 2));
    // Strongest first.
    assert_eq!(first.answers[0].model, "sc");
    assert_eq!(first.answer("sc").and_then(|a| a.allowed), Some(false));
    assert_eq!(first.answer("tso").and_then(|a| a.allowed), Some(true));
    assert_eq!(first.answer("pso"), None);
    // The load that implies the edge is one of the operations.
    let conflict = second.answer("tso").and_then(|a| a.conflict.as_ref()).expect("a conflict");
    let lines: Vec<u32> = conflict.operations.iter().map(|o| o.line).collect();
    assert_eq!(lines, [7, 8, 9]);
    assert!(conflict.cycle.iter().any(|e| e.because == [2]), "{conflict:?}");
    assert!(checked.json().contains("\"because\"") || checked.json().contains("[2]"));
}

#[test]
fn files_are_those_of_the_command_line() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/traces");
    let check = TraceCheck::new([]).expect("all models");
    for (file, model, allowed) in [
        ("store_buffering.axe", "sc", false),
        ("store_buffering.axe", "tso", true),
        ("message_passing.csv", "tso", false),
        ("message_passing.csv", "rvwmo", true),
        ("whisper.log", "rvwmo", false),
        ("rvfi.log", "tso", true),
    ] {
        let checked = check.file(folder.join(file), &Run::new()).expect("a log");
        let answer = checked.traces[0].answer(model).expect("an answer");
        assert_eq!(answer.allowed, Some(allowed), "{file} under {model}");
    }
}

#[test]
fn errors_have_places() {
    let check = TraceCheck::new(["sc"]).expect("a model");
    let error = check.log("x.axe", Cursor::new("0: M[0] := 1\n0: M[0] ?\n"), &Run::new());
    let error = error.expect_err("a line with an error");
    assert!(error.to_string().contains("x.axe:2:"), "{error}");
    let repaired = TraceCheck::new(["sc"]).expect("a model").repair(true);
    let checked = repaired.log("x.axe", Cursor::new("0: M[0] := 1\n0: M[0] ?\n"), &Run::new());
    assert_eq!(checked.expect("the rest").skipped.len(), 1);
    assert!(TraceCheck::new(["weak"]).is_err());
    assert!(TraceCheck::new(["sc"]).expect("a model").format("xml").is_err());
    assert!(check.log("nothing", Cursor::new("hello\n"), &Run::new()).is_err());
    assert!(check.file("missing.axe", &Run::new()).is_err());
}

/// Repeats a text for ever.
struct Endless(usize);

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let text = BUFFERS.as_bytes();
        let length = into.len().min(text.len() - self.0);
        into[..length].copy_from_slice(&text[self.0..self.0 + length]);
        self.0 = (self.0 + length) % text.len();
        Ok(length)
    }
}

#[test]
fn limits_end_the_reading() {
    let check = TraceCheck::new(["sc"]).expect("a model");
    let timeout = Some(Duration::from_millis(200));
    let run = Run::with_limits(Limits { timeout, ..Limits::default() });
    let checked = check.log("endless.axe", BufReader::new(Endless(0)), &run).expect("a log");
    assert!(checked.stop != Stop::Complete && !checked.traces.is_empty());
}
