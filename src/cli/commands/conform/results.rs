//! Output of `conform`: a table or a single verdict as text, and everything as JSON. The schema is
//! docs/schema/conform.json.

use super::faults::Faults;
use super::{ConfirmedViolation, ConformResults};
use crate::args::{ConformArgs, Operations};
use crate::output::answers::{self, AnswerList, KnownAnswer};
use crate::output::progress::group_digits;
use crate::pipeline::Session;
use mu_axioms::history::{History, location_name};
use mu_base::Stop;
use mu_base::narrow;
use mu_conform::alphabet::Phase;
use mu_conform::completeness::Completeness;
use mu_conform::names::NameMap;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Formats the cycle, which ends with its first event.
fn cycle(violation: &ConfirmedViolation) -> String {
    let mut out = String::new();
    for (event, edge) in &violation.reason.cycle {
        let _ = if edge.is_empty() {
            write!(out, "{event}  ")
        } else {
            write!(out, "{event} —{edge}→ ")
        };
    }
    let closed = violation.reason.cycle.last().is_some_and(|last| !last.1.is_empty());
    let first = violation.reason.cycle.first().filter(|_| closed).map_or("", |f| f.0.as_str());
    format!("{out}{first}")
}

/// Formats the observations of each processor in the run, in order.
fn observation_text(violation: &ConfirmedViolation) -> String {
    let mut by: Vec<(&str, Vec<String>)> = Vec::new();
    for o in &violation.observed {
        let value = o.value.as_ref().map_or(String::new(), |v| format!("={v}"));
        let owner = match &o.of {
            Some(q) if *q == o.processor => " (its own)".to_string(),
            Some(q) => format!(" (of {q})"),
            None => String::new(),
        };
        let text = format!("{}{value}{owner}", o.address);
        match by.iter_mut().find(|b| b.0 == o.processor) {
            Some((_, list)) => list.push(text),
            None => by.push((&o.processor, vec![text])),
        }
    }
    by.sort();
    by.iter().map(|(p, list)| format!("observed     {p}: {}\n", list.join(", "))).collect()
}

/// Returns the names of a test with those of the machine as JSON.
pub(super) fn names_json(meaning: &NameMap) -> Value {
    let pair = |test: String, machine: &String| json!({ "test": test, "machine": machine });
    let address = |(l, (name, values)): (usize, &(String, Vec<String>))| {
        let values: Vec<Value> =
            values.iter().enumerate().map(|(v, name)| pair(v.to_string(), name)).collect();
        json!({ "test": location_name(narrow::index(l)), "machine": name, "values": values })
    };
    let processors: Vec<Value> =
        meaning.processors.iter().enumerate().map(|(t, p)| pair(format!("P{t}"), p)).collect();
    let addresses: Vec<Value> = meaning.addresses.iter().enumerate().map(address).collect();
    json!({ "processors": processors, "addresses": addresses })
}

/// Describes a violation: the test, the cycle, the names, and a run.
pub(super) fn violation_text(
    session: &Session,
    name: &str,
    violation: &ConfirmedViolation,
) -> String {
    let mut out =
        format!("does not conform: {name} forbids {}\n\n", violation.found.history.text());
    if !violation.litmus.is_empty() {
        let _ = writeln!(out, "{}", violation.litmus);
    }
    let _ = writeln!(
        out,
        "forbidden by {}",
        if violation.reason.axiom.is_empty() { "the model" } else { &violation.reason.axiom }
    );
    if !violation.reason.cycle.is_empty() {
        let _ = writeln!(out, "cycle        {}", cycle(violation));
    }
    let _ = match &violation.litmus_confirmation {
        Ok(()) => writeln!(
            out,
            "confirmed    forbidden as a litmus test; the run is replayed on the machine"
        ),
        Err(why) => writeln!(out, "confirmed    the run is replayed on the machine; {why}"),
    };
    let names = violation.meaning.lines();
    for (i, line) in names.iter().enumerate() {
        let _ = writeln!(out, "{:<13}{line}", if i == 0 { "names" } else { "" });
    }
    out += &observation_text(violation);
    if !session.common.quiet {
        out.push('\n');
        out += &violation.story.text_of("a shortest run", session.common.verbose > 0);
    }
    out
}

/// Describes the outcomes of a model that a machine shows.
pub(super) fn behaviour_text(name: &str, completeness: &Completeness, operations: usize) -> String {
    let allowed = group_digits(completeness.allowed as u64);
    let text = match &completeness.missing {
        None => format!("shows all {allowed} outcomes that {name} allows"),
        Some(h) => format!(
            "shows {} of the {allowed} outcomes that {name} allows; never {}",
            group_digits(completeness.shown as u64),
            h.text()
        ),
    };
    format!(
        "behaviour    {text} ({} programs of up to {operations} operations per processor)\n",
        group_digits(completeness.programs as u64)
    )
}

/// Returns the outcomes of a model that a machine shows as JSON.
pub(super) fn behaviour_json(completeness: &Completeness, operations: usize) -> Value {
    json!({
        "operations": operations,
        "programs": completeness.programs,
        "allowed": completeness.allowed,
        "shown": completeness.shown,
        "never": completeness.missing.as_ref().map(History::text),
    })
}

/// Adds a violation to the result of a model.
pub(super) fn add_violation(object: &mut Value, violation: &ConfirmedViolation) {
    object["names"] = names_json(&violation.meaning);
    let cycle: Vec<Value> =
        violation.reason.cycle.iter().map(|(e, r)| json!({ "event": e, "relation": r })).collect();
    let run: Vec<Value> = violation.story.steps.iter().map(|step| json!(step.action)).collect();
    object["test"] = json!(violation.found.history.text());
    object["operations"] = json!(violation.found.history.len());
    object["axiom"] = json!(violation.reason.axiom);
    object["cycle"] = json!(cycle);
    object["language"] = json!(violation.language.head());
    object["litmus"] = json!(violation.litmus);
    object["confirmed"] =
        json!({ "litmus": violation.litmus_confirmation.is_ok(), "replay": true });
    object["run"] = json!(run);
    object["evidence"] = violation.story.json();
    object["evidence"]["kind"] = json!("trace");
    object["evidence"]["verdict"] = Value::Null;
    let observed = violation.observed.iter().map(|o| {
        let mut one = json!({ "processor": o.processor, "address": o.address });
        for (key, text) in [("value", &o.value), ("of", &o.of), ("number", &o.number)] {
            if let Some(text) = text {
                one[key] = json!(text);
            }
        }
        one
    });
    object["observed"] = json!(observed.collect::<Vec<_>>());
}

/// Registers the models with their answers, all of them open.
pub(super) fn register<'n>(
    args: &ConformArgs,
    names: impl IntoIterator<Item = &'n str>,
) -> Arc<AnswerList> {
    let operations = match args.operations {
        Operations::Any => json!("any"),
        Operations::UpTo(k) => json!(k),
    };
    let head = json!({
        "model": args.model.display().to_string(),
        "interface": args.interface.display().to_string(),
        "operations": operations,
    });
    AnswerList::register(head, ("models", !args.against.is_empty()), names)
}

/// Returns a violation as a known answer. `single`: true if it is the only model.
pub(super) fn violation_answer(
    session: &Session,
    name: &str,
    shown: &ConfirmedViolation,
    single: bool,
) -> KnownAnswer {
    let mut object = json!({ "name": name, "verdict": "false" });
    add_violation(&mut object, shown);
    let text = match single {
        true => violation_text(session, name, shown),
        false => format!("{name:<16}✘  {}\n", shown.found.history.text()),
    };
    KnownAnswer { object, text, violated: true }
}

impl ConformResults<'_> {
    /// Registers the results.
    pub(super) fn register(&self, session: &Session, faults: Option<&Faults>) {
        let text = self.text(session, faults);
        answers::set_complete(self.json(faults), text, self.code(faults));
    }
    fn is_complete(&self) -> bool {
        self.answer.stop == Stop::Complete
    }
    /// Returns the reason why the answer is unknown for models that forbid nothing that was judged;
    /// `None` if the machine conforms to them.
    fn open_reason(&self) -> Option<String> {
        if !self.is_complete() {
            return Some(format!("stopped: {}", self.answer.stop.word()));
        }
        self.answer.unjudged_reason(self.interface, &self.machine.alphabet)
    }
    /// Lists the lines `begin -> end` of the interface without a label, each with the half without
    /// a label if only one half lacks it. Empty if the exploration was incomplete.
    fn unmatched_lines(&self) -> Vec<(String, Option<String>)> {
        if self.machine.outcome.stop != Stop::Complete {
            return Vec::new();
        }
        let events = &self.machine.alphabet.events;
        let has = |line: usize, phases: &[Phase]| {
            events.iter().any(|e| e.operation as usize == line && phases.contains(&e.phase))
        };
        let all = self.interface.operations.iter().enumerate();
        let missing = all.filter_map(|(i, o)| {
            let ends = has(i, &[Phase::End, Phase::Whole]);
            let half = match &o.begin {
                None if ends => return None,
                None => None,
                Some(begin) => match (has(i, &[Phase::Begin]), ends) {
                    (true, true) => return None,
                    (false, true) => Some(begin.text()),
                    (true, false) => Some(o.end.text()),
                    (false, false) => None,
                },
            };
            Some((o.text(), half))
        });
        missing.collect()
    }
    /// Returns the exit code. Without `--against`, the machine is at fault if no model allows all
    /// of its executions.
    pub(super) fn code(&self, faults: Option<&Faults>) -> u8 {
        let violated = match self.args.against.is_empty() {
            true => self.shown.iter().all(Option::is_some),
            false => self.shown.iter().any(Option::is_some),
        };
        let open = self.open_reason().is_some() && self.shown.iter().any(Option::is_none)
            || faults.is_some_and(Faults::is_limited);
        let missed = faults.is_some_and(|f| !f.is_limited() && !f.all_found());
        match (violated || missed, open) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        }
    }
    fn symmetries(&self) -> String {
        match (&self.group.names[..], self.args.without_symmetry) {
            (_, true) => "switched off".into(),
            ([], _) => "none found".into(),
            (names, _) => {
                format!("{}: order {}, verified", names.join(", "), self.group.elements.len())
            }
        }
    }
    /// Describes the bound that the search reached.
    fn bound(&self) -> String {
        let names = &self.machine.alphabet.names;
        let (k, longest) = (self.args.operations.bound(), self.answer.longest);
        let own =
            if longest < k as usize && self.is_complete() && self.shown.iter().any(Option::is_none)
            {
                format!(" (the machine stops after {longest})")
            } else {
                String::new()
            };
        let (p, a, v) = (names.processors.len(), names.addresses.len(), names.values.len());
        format!("{k} operations per processor{own}; {p} processors, {a} addresses, {v} values")
    }
    /// Returns the results as text.
    pub(super) fn text(&self, session: &Session, faults: Option<&Faults>) -> String {
        let mut out = self.summary_lines();
        out.push('\n');
        if !self.args.fault.is_empty() && self.shown.iter().all(Option::is_some) {
            out += "faults       not searched: the machine without faults conforms to no model\n\n";
        }
        out += &self.model_table(session);
        out += &self.strongest_text();
        if let Some(faults) = faults {
            out += &faults.text(self.args, self.shown.iter().filter(|s| s.is_none()).count());
        }
        out
    }
    /// Returns the lines on the machine and the search.
    fn summary_lines(&self) -> String {
        let a = self.answer;
        let mut out = String::new();
        let mut line = |what: &str, text: String| {
            let _ = writeln!(out, "{what:<13}{text}");
        };
        line("machine", self.args.model.display().to_string());
        if self.program.is_some() {
            line(
                "program",
                format!(
                    "the most general one of {} operations per processor, in parallel with the machine",
                    self.args.operations.bound()
                ),
            );
        }
        line("bound", self.bound());
        if a.stop != Stop::Complete {
            let reached = match a.complete {
                Some(n) if self.machine.outcome.stop == Stop::Complete => {
                    format!("all executions of up to {n} operations were judged")
                }
                _ => "a part of the machine's executions was judged".to_string(),
            };
            line("stopped", format!("{}: {reached}", a.stop.word()));
        }
        line("symmetries", self.symmetries());
        line(
            "states",
            format!(
                "{}, {} after reduction",
                group_digits(self.machine.outcome.states),
                group_digits(self.machine.lts.state_count() as u64)
            ),
        );
        let lengths = a.lengths();
        let of = |(n, count): (usize, &u64)| format!("{} of {n}", group_digits(*count));
        let by: Vec<String> = lengths.iter().enumerate().skip(1).map(of).collect();
        let by = if by.is_empty() {
            String::new()
        } else {
            format!(" (by number of operations: {})", by.join(", "))
        };
        line("programs", format!("{} judged{by}", group_digits(a.programs.len() as u64)));
        line("executions", group_digits(a.histories));
        if a.stuck > 0 {
            line(
                "stuck",
                format!(
                    "{} histories with an operation that never ends: not judged",
                    group_digits(a.stuck)
                ),
            );
        }
        if !a.nonterminating.is_empty() {
            line(
                "never end",
                format!(
                    "{} programs that begin and never end: not judged",
                    group_digits(a.nonterminating.len() as u64)
                ),
            );
        }
        for (text, half) in self.unmatched_lines() {
            let half = half.map_or(String::new(), |half| format!("`{half}` in "));
            line("no label", format!("matches {half}the line `{text}` of the interface"));
        }
        if !self.idle.is_empty() {
            line("idle", format!("{}: no memory operation", self.idle.join(", ")));
        }
        line("seconds", format!("{:.3}", self.seconds));
        line("peak memory", format!("{} MiB", self.peak >> 20));
        out
    }
    /// Returns the verdicts of all models, or the details of the only one.
    fn model_table(&self, session: &Session) -> String {
        let mut out = String::new();
        match (&self.names[..], &self.shown[..]) {
            ([name], [shown]) => out += &self.single_model_text(session, name, shown.as_ref()),
            (names, all) => {
                for (name, shown) in names.iter().zip(all) {
                    let text = match (shown, self.open_reason()) {
                        (Some(s), _) => format!("✘  {}", s.found.history.text()),
                        (None, None) => {
                            format!("✔  up to {} operations per processor", self.answer.longest)
                        }
                        (None, Some(why)) => format!("?  unknown: {why}"),
                    };
                    let _ = writeln!(out, "{name:<16}{text}");
                }
                for (name, why) in &self.unsupported {
                    let _ = writeln!(out, "{name:<16}–  not judged: {why}");
                }
            }
        }
        out
    }
    /// Returns the strongest models to which the machine conforms, and their outcomes that it
    /// shows.
    fn strongest_text(&self) -> String {
        let mut out = String::new();
        if self.args.against.is_empty() && !self.strongest.is_empty() {
            let names: Vec<&str> = self.strongest.iter().map(|s| &*self.names[s.0]).collect();
            let _ = writeln!(out, "\nstrongest    {}", names.join(", "));
        }
        for (model, completeness) in &self.strongest {
            out += &behaviour_text(&self.names[*model], completeness, self.compared);
        }
        out
    }
    /// Returns the result of the only model.
    fn single_model_text(
        &self,
        session: &Session,
        name: &str,
        shown: Option<&ConfirmedViolation>,
    ) -> String {
        let Some(s) = shown else {
            return match self.open_reason() {
                None => format!("conforms: {name}\n"),
                Some(why) => format!("unknown: {name}\nreason       {why}\n"),
            };
        };
        violation_text(session, name, s)
    }
    /// Returns the results as an object.
    pub(super) fn json(&self, faults: Option<&Faults>) -> Value {
        let a = self.answer;
        let alphabet = &self.machine.alphabet;
        let own = &alphabet.names;
        let models = self.names.iter().zip(&self.shown).map(|(name, shown)| {
            let verdict = match shown {
                Some(_) => "false",
                None if self.open_reason().is_none() => "true",
                None => "unknown",
            };
            let mut object = json!({ "name": name, "verdict": verdict });
            if let (None, Some(why)) = (shown, self.open_reason()) {
                object["reason"] = json!(why);
            }
            if let Some(s) = shown {
                add_violation(&mut object, s);
            }
            object
        });
        let mut object = json!({
            "model": self.args.model.display().to_string(),
            "interface": self.args.interface.display().to_string(),
            "operations": self.args.operations.bound(),
            "longest": a.longest,
            "processors": own.processors,
            "addresses": own.addresses,
            "values": own.values,
            "symmetries": { "order": self.group.elements.len(), "names": self.group.names },
            "states": self.machine.outcome.states,
            "transitions": self.machine.outcome.transitions,
            "reduced_states": self.machine.lts.state_count(),
            "programs": a.programs.len(),
            "programs_by_length": a.lengths(),
            "endless_programs": a.nonterminating.len(),
            "unended_operations": a.unfinished.iter().map(|e| alphabet.event_text(self.interface, &alphabet.events[*e as usize])).collect::<Vec<_>>(),
            "unmatched_lines": self.unmatched_lines().into_iter().map(|u| u.0).collect::<Vec<_>>(),
            "idle_processors": self.idle,
            "executions": a.histories,
            "histories": a.visited,
            "sets": a.sets,
            "stuck": a.stuck,
            "complete_to": a.complete,
            "models": models.collect::<Vec<_>>(),
            "verdict": answers::word(self.code(faults)),
            "strongest": self.strongest.iter().map(|(m, c)| json!({ "name": self.names[*m], "behaviour": behaviour_json(c, self.compared) })).collect::<Vec<_>>(),
            "not_judged": self.unsupported.iter().map(|(name, why)| json!({ "name": name, "reason": why })).collect::<Vec<_>>(),
            "stop": a.stop.word(),
            "seconds": self.seconds,
            "peak_memory_bytes": self.peak,
        });
        if let Some(program) = &self.program {
            object["program"] = json!(program);
        }
        if let Some((faults, suite)) = faults.map(Faults::json) {
            object["faults"] = faults;
            if let Some(suite) = suite {
                object["suite"] = suite;
            }
        }
        object
    }
}
