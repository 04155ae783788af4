//! Results for programs of every length, as text and as JSON.

use super::premises::{Premise, Premises};
use super::verdict::ConformanceVerdict;
use crate::args::ConformArgs;
use crate::commands::conform::COMPARED_OPERATIONS;
use crate::commands::conform::faults::Faults;
use crate::commands::conform::results::{behaviour_json, behaviour_text};
use crate::output::answers;
use crate::output::progress::group_digits;
use crate::pipeline::Session;
use mu_base::Stop;
use mu_conform::completeness::Completeness;
use mu_conform::every_length::decide::{Checks, ProductSearchResult, Survey};
use mu_conform::every_length::order::ProcessorOrder;
use mu_conform::interface::Interface;
use serde_json::{Value, json};
use std::fmt::Write;

/// All results.
pub(super) struct Results<'a> {
    pub(super) args: &'a ConformArgs,
    pub(super) interface: &'a Interface,
    pub(super) survey: Survey,
    /// The bound on operations of the run, which the answer includes.
    pub(super) bound: Option<u32>,
    pub(super) coherence: ProductSearchResult,
    pub(super) cycles: Vec<(ProcessorOrder, ProductSearchResult)>,
    pub(super) checks: Option<Checks>,
    /// A model of axioms that the machine satisfies, the strongest.
    pub(super) strongest: Option<ProcessorOrder>,
    /// The outcomes of the strongest model that the machine shows.
    pub(super) completeness: Option<Completeness>,
    /// The order of which a certificate was written.
    pub(super) certified: Option<ProcessorOrder>,
    /// The limit that ended a search or a check.
    pub(super) stopped: Option<Stop>,
    pub(super) names: Vec<String>,
    pub(super) verdicts: Vec<ConformanceVerdict>,
    pub(super) premises: Premises,
    pub(super) seconds: f64,
    pub(super) peak: u64,
}

impl Results<'_> {
    /// Registers the results.
    pub(super) fn register(&self, session: &Session, faults: Option<&Faults>) {
        let text = self.text(session, faults);
        answers::set_complete(self.json(faults), text, self.code(faults));
    }

    /// Returns the reason for the end of the first search that is not complete.
    pub(super) fn stop(&self) -> &Stop {
        let searches = std::iter::once(&self.coherence).chain(self.cycles.iter().map(|c| &c.1));
        let mut stops = searches.map(|s| &s.outcome.stop).chain(&self.stopped);
        stops.find(|s| **s != Stop::Complete).unwrap_or(&Stop::Complete)
    }

    pub(super) fn code(&self, faults: Option<&Faults>) -> u8 {
        let faults = match faults {
            Some(f) if f.is_limited() => 3,
            Some(f) if !f.all_found() => 1,
            _ => 0,
        };
        match self.verdict_code() {
            0 => faults,
            code => code,
        }
    }

    /// Returns the exit code of the verdicts alone.
    pub(super) fn verdict_code(&self) -> u8 {
        let is_violated = |v: &&ConformanceVerdict| matches!(v, ConformanceVerdict::Violated(_));
        let is_open = |v: &&ConformanceVerdict| matches!(v, ConformanceVerdict::Unknown(_));
        let all = &self.verdicts;
        if self.args.against.is_empty() {
            let has_model = all.iter().any(|v| matches!(v, ConformanceVerdict::Holds(_)));
            let has_open = all.iter().any(|v| is_open(&v));
            return if has_model {
                0
            } else if has_open {
                3
            } else {
                1
            };
        }
        match (all.iter().any(|v| is_violated(&v)), all.iter().any(|v| is_open(&v))) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        }
    }

    pub(super) fn text(&self, session: &Session, faults: Option<&Faults>) -> String {
        let names = &self.survey.alphabet.names;
        let mut out = String::new();
        let mut line = |what: &str, text: String| {
            let _ = writeln!(out, "{what:<13}{text}");
        };
        line("machine", self.args.model.display().to_string());
        line(
            "programs",
            format!(
                "of every length; {} processors, {} addresses, {} values",
                names.processors.len(),
                names.addresses.len(),
                names.values.len()
            ),
        );
        if let Some(bound) = self.bound {
            line("bound", format!("{bound} operations per processor: included in every length"));
        }
        line("states", format!("{} of the machine", group_digits(self.survey.outcome.states)));
        let searched = |s: &ProductSearchResult| {
            let found = match &s.violated {
                Some(g) => g.text(&names.processors, &names.addresses),
                None => "none".to_string(),
            };
            format!("{} guesses, {} states: {found}", s.guesses, group_digits(s.outcome.states))
        };
        line("one address", searched(&self.coherence));
        for (order, s) in &self.cycles {
            line(&format!("cycles, {}", order.name()), searched(s));
        }
        for (what, all) in
            [("checked", &self.premises.checked), ("assumed", &self.premises.assumed)]
        {
            for (i, g) in all.iter().enumerate() {
                line(if i == 0 { what } else { "" }, g.text.clone());
            }
        }
        if let Some(path) = &self.args.certificate {
            line(
                "certificate",
                match self.certified {
                    Some(order) => format!("of {}, in {}", order.name(), path.display()),
                    None => "none: `sc`, `tso`, or `pso` was not proved".into(),
                },
            );
        }
        line("seconds", format!("{:.3}", self.seconds));
        line("peak memory", format!("{} MiB", self.peak >> 20));
        out.push('\n');
        for (name, verdict) in self.names.iter().zip(&self.verdicts) {
            out += &verdict.text(session, name, self.names.len() == 1);
        }
        if let Some(order) = self.strongest.filter(|_| self.args.against.is_empty()) {
            let _ = writeln!(out, "\nstrongest    {}", order.name());
        }
        if let (Some(order), Some(c)) = (self.strongest, &self.completeness) {
            out += &behaviour_text(order.name(), c, COMPARED_OPERATIONS);
        }
        let holds =
            self.verdicts.iter().filter(|v| matches!(v, ConformanceVerdict::Holds(_))).count();
        match faults {
            Some(faults) => out += &faults.text(self.args, holds),
            None if !self.args.fault.is_empty() && holds == 0 => {
                out += "\nfaults       not searched: the machine without faults conforms to no model\n";
            }
            None => {}
        }
        out
    }

    pub(super) fn json(&self, faults: Option<&Faults>) -> Value {
        let names = &self.survey.alphabet.names;
        let searched = |what: &str, order: Option<ProcessorOrder>, s: &ProductSearchResult| {
            let mut object = json!({
                "what": what,
                "guesses": s.guesses,
                "states": s.outcome.states,
                "stored": s.outcome.stored,
                "symmetries": s.outcome.symmetries,
                "transitions": s.outcome.transitions,
                "levels": s.outcome.levels,
                "violated": s.violated.as_ref().map(|g| g.text(&names.processors, &names.addresses)),
            });
            if let Some(order) = order {
                object["order"] = json!(order.name());
            }
            if let Some((states, all)) = s.rechecked {
                object["rechecked"] = json!({ "states": states, "all": all });
            }
            object
        };
        let mut searches = vec![searched("coherence", None, &self.coherence)];
        searches.extend(self.cycles.iter().map(|(o, s)| searched("cycles", Some(*o), s)));
        let premises = |all: &[Premise]| {
            all.iter().map(|g| json!({ "what": g.key, "text": g.text })).collect::<Vec<_>>()
        };
        let models = self.names.iter().zip(&self.verdicts).map(|(name, v)| v.json(name));
        let mut object = json!({
            "model": self.args.model.display().to_string(),
            "interface": self.args.interface.display().to_string(),
            "operations": "any",
            "processors": names.processors,
            "addresses": names.addresses,
            "values": names.values,
            "states": self.survey.outcome.states,
            "transitions": self.survey.outcome.transitions,
            "searches": searches,
            "checked": premises(&self.premises.checked),
            "assumed": premises(&self.premises.assumed),
            "bounded": self.checks.as_ref().is_some_and(|c| c.continuation.stopped.is_some()),
            "certificate": self.certified.map(ProcessorOrder::name),
            "strongest": self.strongest.map(ProcessorOrder::name),
            "behaviour": self.completeness.as_ref().map(|c| behaviour_json(c, COMPARED_OPERATIONS)),
            "models": models.collect::<Vec<_>>(),
            "verdict": answers::word(self.code(faults)),
            "stop": self.stop().word(),
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak,
        });
        if let Some((faults, suite)) = faults.map(Faults::json) {
            object["faults"] = faults;
            if let Some(suite) = suite {
                object["suite"] = suite;
            }
        }
        object
    }
}
