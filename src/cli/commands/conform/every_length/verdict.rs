//! The verdict of a memory model for programs of every length, as text and as JSON.

use crate::commands::conform::ConfirmedViolation;
use crate::commands::conform::results::{add_violation, violation_text};
use crate::pipeline::Session;
use mu_base::Stop;
use serde_json::{Value, json};

/// The verdict of a model.
pub(in super::super) enum ConformanceVerdict {
    /// No program violates it. The name of a stronger model from which this follows, if it was not
    /// searched itself.
    Holds(Option<&'static str>),
    /// A program violates it.
    Violated(Box<ConfirmedViolation>),
    /// Undecided, with the reason.
    Unknown(String),
}

impl ConformanceVerdict {
    /// Returns the verdict after a limit.
    pub(super) fn after_limit(stop: &Stop) -> Self {
        Self::Unknown(format!("stopped: {}", stop.word()))
    }
    /// Returns the verdict of a model that was not decided.
    pub(super) fn undecided() -> Self {
        Self::Unknown("not decided".into())
    }
    /// Returns the verdict as an object.
    pub(super) fn json(&self, name: &str) -> Value {
        let word = match self {
            Self::Holds(_) => "true",
            Self::Violated(_) => "false",
            Self::Unknown(_) => "unknown",
        };
        let mut object = json!({ "name": name, "verdict": word });
        match self {
            Self::Holds(None) => {}
            Self::Holds(Some(by)) => object["implied_by"] = json!(by),
            Self::Violated(s) => add_violation(&mut object, s),
            Self::Unknown(why) => object["reason"] = json!(why),
        }
        object
    }
    /// Returns the verdict as text; `single`: of the only model, else as a line of a table.
    pub(super) fn text(&self, session: &Session, name: &str, single: bool) -> String {
        match self {
            Self::Violated(s) if single => violation_text(session, name, s),
            Self::Holds(None) if single => {
                format!("conforms: {name}, for programs of every length\n")
            }
            Self::Holds(Some(by)) if single => format!(
                "conforms: {name}, for programs of every length, because it conforms to {by}\n"
            ),
            Self::Unknown(why) if single => format!("unknown: {name}\nreason       {why}\n"),
            Self::Holds(None) => format!("{name:<16}✔  programs of every length\n"),
            Self::Holds(Some(by)) => {
                format!("{name:<16}✔  programs of every length, because of {by}\n")
            }
            Self::Violated(s) => format!("{name:<16}✘  {}\n", s.found.history.text()),
            Self::Unknown(why) => format!("{name:<16}?  unknown: {why}\n"),
        }
    }
}
