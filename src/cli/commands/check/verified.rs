//! Verification of *true for every value*: what the checker of certificates confirmed, or the
//! reason why an answer is not verified.
//!
//! Out: the keys `verified`, `verification`, and `unverified` of JSON, and a line for people. No
//! answer is silent about it.

use crate::output::progress::count_text;
use mu_zones::Verified;
use serde_json::{Value, json};
use std::time::Duration;

/// Verification of an answer.
#[derive(Clone, Debug)]
pub(super) enum Verification {
    /// The checker confirmed a certificate of the proof.
    Done {
        /// Numbers of checks.
        found: Verified,
        /// Time of the checker.
        took: Duration,
        /// Time of the search for the proof.
        search: Duration,
    },
    /// The answer is not verified, for this reason.
    Missing(String),
}

impl Default for Verification {
    fn default() -> Self {
        Self::Missing("no certificate".into())
    }
}

impl Verification {
    /// Returns the time of the checker as a multiple of the time of the search.
    fn ratio(took: Duration, search: Duration) -> f64 {
        let ratio = took.as_secs_f64() / search.as_secs_f64().max(1e-6);
        (ratio * 100.0).round() / 100.0
    }

    /// Adds the keys to an object.
    pub fn add_to(&self, object: &mut Value) {
        match self {
            Self::Done { found, took, search } => {
                let Verified { obligations, initiation, consecution, formula } = found;
                object["verified"] = true.into();
                object["verification"] = json!({
                    "obligations": obligations, "initiation": initiation,
                    "consecution": consecution, "formula": formula, "seconds": took.as_secs_f64(),
                    "search_seconds": search.as_secs_f64(), "ratio": Self::ratio(*took, *search),
                });
            }
            Self::Missing(why) => {
                object["verified"] = false.into();
                object["unverified"] = why.as_str().into();
            }
        }
    }

    /// Returns a line for people.
    pub fn text(&self) -> String {
        match self {
            Self::Done { found, took, search } => {
                let Verified { obligations, initiation, consecution, formula } = found;
                let first = format!("{initiation} of initiation, {consecution} of consecution");
                let checks = format!("{first}, {formula} of the formula");
                format!(
                    "verified: {}, {checks}, {:.3} s, {} times the search",
                    count_text(*obligations as u64, "obligation"),
                    took.as_secs_f64(),
                    Self::ratio(*took, *search),
                )
            }
            Self::Missing(why) => format!("not verified: {why}"),
        }
    }
}
