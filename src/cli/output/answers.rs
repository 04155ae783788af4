//! Registry of the answers of a run: one report, which the normal end and the watchdog print.
//!
//! A command with several answers registers its report before it computes the first one ([`set`]),
//! and adds each answer as soon as it is known, before any further work. The normal end prints the
//! report by [`finish`]. If a limit ends the run, by the watchdog or by an error that reaches the
//! command line, the same report is printed: open answers are *unknown* with the limit as reason.
//!
//! Invariant: a limit never loses an answer that was known. `tests/limits_of_answers.rs` lists for
//! each command if it has several answers, and meets a limit in the last one of each such command.

use super::{print, print_object, state};
use crate::args::Format;
use mu_base::{Diagnostic, Stop};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The answers of a command. `stop` is the limit that ended the run; `None` at its normal end.
pub(crate) trait Report: Send + Sync {
    /// Returns the result as an object.
    fn object(&self, stop: Option<&Stop>) -> Value;
    /// Returns the result as text; only what is not printed yet.
    fn text(&self, stop: Option<&Stop>) -> String;
    /// Returns the exit code.
    fn code(&self, stop: Option<&Stop>) -> u8;
    /// True if no answer is open.
    fn is_complete(&self) -> bool {
        true
    }
    /// True if the figures of the current search belong to the result of a stopped run.
    fn shows_figures(&self) -> bool {
        false
    }
}

/// Registers the report of the run, in place of an earlier one.
pub(crate) fn set(report: Arc<dyn Report>) {
    state().report = Some(report);
}

/// True if a report is registered.
pub(crate) fn is_set() -> bool {
    state().report.is_some()
}

/// Registers a result in which no answer is open.
pub(crate) fn set_complete(object: Value, text: String, code: u8) {
    set(Arc::new(Complete { object, text, code }));
}

/// Prints the registered report at the normal end of a run. Returns the exit code. Errors: a closed
/// pipe, a full disk; no report is registered.
pub(crate) fn finish(format: Format) -> Result<u8, Diagnostic> {
    let report = state().report.clone();
    let report = report.ok_or_else(|| Diagnostic::internal("a run without a report"))?;
    match format {
        Format::Json => print_object(report.object(None))?,
        Format::Text => print(&report.text(None))?,
    }
    Ok(report.code(None))
}

/// A result without open answers. What is done after it is registered, such as files, drawings, and
/// confirmations, does not change it.
struct Complete {
    object: Value,
    text: String,
    code: u8,
}

impl Report for Complete {
    fn object(&self, _: Option<&Stop>) -> Value {
        self.object.clone()
    }
    fn text(&self, _: Option<&Stop>) -> String {
        self.text.clone()
    }
    fn code(&self, stop: Option<&Stop>) -> u8 {
        // A limit ended the run before all requested files and details were there.
        if stop.is_some() && self.code == 0 { 3 } else { self.code }
    }
}

/// A known answer of a list.
#[derive(Clone, Debug)]
pub(crate) struct KnownAnswer {
    /// The answer as an object of the list.
    pub(crate) object: Value,
    /// The answer as text, with the end of its last line.
    pub(crate) text: String,
    /// True if the answer alone leads to exit code 1.
    pub(crate) violated: bool,
}

/// A list of named answers, each open until it is known.
pub(crate) struct AnswerList {
    /// Members of the object other than the list.
    head: Map<String, Value>,
    /// Key of the list.
    key: &'static str,
    /// True if one violated answer leads to exit code 1; false if all must be violated.
    one_violates: bool,
    answers: Mutex<Vec<(String, Option<KnownAnswer>)>>,
}

impl AnswerList {
    /// Creates and registers a list in which all answers are open. `head`: an object.
    pub(crate) fn register<'n>(
        head: Value,
        (key, one_violates): (&'static str, bool),
        names: impl IntoIterator<Item = &'n str>,
    ) -> Arc<Self> {
        let head = match head {
            Value::Object(head) => head,
            _ => Map::new(),
        };
        let answers = names.into_iter().map(|name| (name.to_string(), None)).collect();
        let list = Arc::new(Self { head, key, one_violates, answers: Mutex::new(answers) });
        set(list.clone());
        list
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Option<KnownAnswer>)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the answer at an index.
    pub(crate) fn set(&self, index: usize, answer: KnownAnswer) {
        if let Some(place) = self.lock().get_mut(index) {
            place.1 = Some(answer);
        }
    }
}

/// Returns the verdict of an exit code.
pub(crate) fn word(code: u8) -> &'static str {
    match code {
        0 => "true",
        1 => "false",
        _ => "unknown",
    }
}

/// Returns the reason of an answer that a limit left open.
pub(crate) fn open_reason(stop: Option<&Stop>) -> String {
    stop.map_or_else(|| "not decided".into(), |stop| format!("stopped: {}", stop.word()))
}

impl Report for AnswerList {
    fn object(&self, stop: Option<&Stop>) -> Value {
        let answers = self.lock();
        let one = |(name, known): &(String, Option<KnownAnswer>)| match known {
            Some(known) => known.object.clone(),
            None => json!({ "name": name, "verdict": "unknown", "reason": open_reason(stop) }),
        };
        let list: Vec<Value> = answers.iter().map(one).collect();
        let mut object = self.head.clone();
        object.insert(self.key.into(), list.into());
        drop(answers);
        object.insert("verdict".into(), word(self.code(stop)).into());
        object.into()
    }
    fn text(&self, stop: Option<&Stop>) -> String {
        let one = |(name, known): &(String, Option<KnownAnswer>)| match known {
            Some(known) => known.text.clone(),
            None => format!("{name:<16}?  unknown: {}\n", open_reason(stop)),
        };
        self.lock().iter().map(one).collect()
    }
    fn code(&self, stop: Option<&Stop>) -> u8 {
        let answers = self.lock();
        let is_violated =
            |a: &(String, Option<KnownAnswer>)| a.1.as_ref().is_some_and(|k| k.violated);
        let violated = match self.one_violates {
            true => answers.iter().any(is_violated),
            false => !answers.is_empty() && answers.iter().all(is_violated),
        };
        let open = stop.is_some() || answers.iter().any(|a| a.1.is_none());
        match (violated, open) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        }
    }
    fn is_complete(&self) -> bool {
        self.lock().iter().all(|a| a.1.is_some())
    }
}
