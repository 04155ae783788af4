//! Result of an exploration by any engine, as text or JSON.

use crate::args::SetStrategy;
use crate::commands::explore::find_path::EndCounts;
use crate::commands::explore::plan::Exploration;
use crate::output::answers;
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stop};
use mu_engines::{CountResult, Detail};
use mu_explore::SpillCounts;
use num_bigint::BigUint;
use serde_json::{Value, json};

/// Result of an exploration by any engine.
pub(crate) struct ExplorationReport {
    /// Name of the engine.
    pub engine: &'static str,
    /// Reason for the choice of the engine, if known.
    pub reason: Option<String>,
    /// Exact numbers; absent ones are unknown.
    pub states: BigUint,
    pub transitions: Option<BigUint>,
    pub deadlocks: Option<BigUint>,
    /// Number of unreachable states of a file, which the other numbers do not count.
    pub unreachable: u64,
    /// Kinds of the deadlocks, if classified.
    pub ends: Option<EndCounts>,
    /// Warnings about dead parts of the model.
    pub warnings: Vec<Value>,
    /// Stop reason.
    pub stop: Stop,
    /// Number of diagram nodes of the states, and the peak.
    pub nodes: Option<(usize, usize)>,
    /// Name and number of the layers of the search after the first.
    pub layers: Option<(&'static str, usize)>,
    /// Name of the equivalence, states, transitions.
    pub reduced: Option<(&'static str, usize, usize)>,
    /// Figures of the processes, if there were several.
    pub processes: Option<Processes>,
    /// Symmetries of an explicit search.
    pub symmetries: Option<Value>,
    /// Data that the search wrote to disk, if any.
    pub spilled: Option<SpillCounts>,
    /// Number of distributions of a probabilistic model.
    pub distributions: Option<usize>,
}

/// Figures of the processes of a search.
#[cfg_attr(not(feature = "cluster"), allow(dead_code))]
pub(crate) struct Processes {
    pub count: usize,
    /// Sum of their peak memory, in bytes.
    pub memory: u64,
    /// Figures of each process.
    pub object: Value,
}

impl ExplorationReport {
    /// Builds the report of an engine's result.
    pub(crate) fn of(counted: CountResult, args: &Exploration) -> Self {
        let spilled = match &counted.detail {
            Detail::Explicit(outcome) => Some(outcome.spilled).filter(|s| s.flushes > 0),
            Detail::Symbolic(_) => None,
        };
        let (nodes, layers) = match &counted.detail {
            Detail::Explicit(_) => (None, None),
            Detail::Symbolic(outcome) => {
                let layers =
                    if args.strategy == Some(SetStrategy::Chaining) { "rounds" } else { "levels" };
                (
                    Some((outcome.nodes, outcome.peak_nodes)),
                    outcome.levels.map(|count| (layers, count)),
                )
            }
        };
        Self {
            engine: counted.engine,
            reason: counted.reason,
            states: counted.states,
            transitions: counted.transitions,
            deadlocks: counted.deadlocks,
            unreachable: 0,
            ends: None,
            warnings: Vec::new(),
            stop: counted.stop,
            nodes,
            layers,
            reduced: None,
            processes: None,
            symmetries: None,
            spilled,
            distributions: None,
        }
    }
    pub(crate) fn explicit(states: u64, transitions: u64, deadlocks: u64, stop: Stop) -> Self {
        Self {
            engine: "explicit",
            reason: None,
            states: states.into(),
            transitions: Some(transitions.into()),
            deadlocks: Some(deadlocks.into()),
            unreachable: 0,
            ends: None,
            warnings: Vec::new(),
            stop,
            nodes: None,
            layers: None,
            reduced: None,
            processes: None,
            symmetries: None,
            spilled: None,
            distributions: None,
        }
    }

    /// Registers the report as the result of the run, with a text that follows it.
    pub(crate) fn register(&self, session: &Session, start: Instant, more: &str) {
        let seconds = start.elapsed().as_secs_f64();
        let memory = self.processes.as_ref().map_or_else(|| session.peak_memory(), |p| p.memory);
        let object = self.object(seconds, memory);
        let text = format!("{}{more}", self.text(seconds, memory));
        let code = if self.stop == Stop::Complete { 0 } else { 3 };
        answers::set_complete(object, text, code);
    }

    /// Prints the report. Returns the exit code.
    pub(crate) fn print(self, session: &Session, start: Instant) -> Result<u8, Diagnostic> {
        self.register(session, start, "");
        answers::finish(session.common.format)
    }

    /// Returns the report as an object.
    fn object(&self, seconds: f64, memory: u64) -> Value {
        let mut object = json!({
            "states": number(&self.states),
            "transitions": self.transitions.as_ref().map(number),
            "deadlocks": self.deadlocks.as_ref().map(number),
            "seconds": seconds,
            "peak_memory_bytes": memory,
            "stop": self.stop.word(),
            "engine": self.engine,
        });
        if let Some(distributions) = self.distributions {
            object["distributions"] = distributions.into();
        }
        if !self.warnings.is_empty() {
            object["warnings"] = self.warnings.clone().into();
        }
        if self.unreachable > 0 {
            object["unreachable"] = self.unreachable.into();
        }
        if let Some(ends) = &self.ends {
            object["ends"] = ends.json();
        }
        if let Some(reason) = &self.reason {
            object["reason"] = reason.as_str().into();
        }
        if let Some(symmetries) = &self.symmetries {
            object["symmetries"] = symmetries.clone();
        }
        if let Some(SpillCounts { flushes, bytes, written, read, .. }) = self.spilled {
            object["spilled"] = json!({ "flushes": flushes, "disk_bytes": bytes, "written_bytes": written, "read_bytes": read });
        }
        if let Some(processes) = &self.processes {
            object["processes"] = processes.object.clone();
        }
        if let Some((nodes, peak)) = self.nodes {
            object["nodes"] = nodes.into();
            object["peak_nodes"] = peak.into();
        }
        if let Some((name, count)) = self.layers {
            object[name] = count.into();
        }
        if let Some((name, states, transitions)) = self.reduced {
            object["reduced"] =
                json!({ "equivalence": name, "states": states, "transitions": transitions });
        }
        object
    }

    /// Returns the report as text.
    fn text(&self, seconds: f64, memory: u64) -> String {
        let show = |n: &Option<BigUint>| {
            n.as_ref().map_or_else(|| "unknown".to_string(), BigUint::to_string)
        };
        let mut text = format!(
            "states       {}\ntransitions  {}\ndeadlocks    {}\n",
            self.states,
            show(&self.transitions),
            show(&self.deadlocks)
        );
        if let Some(distributions) = self.distributions {
            text += &format!("distributions {distributions}\n");
        }
        text += &self
            .ends
            .map(|e| e.text(self.deadlocks.as_ref().and_then(|d| u64::try_from(d).ok())))
            .unwrap_or_default();
        if self.unreachable > 0 {
            text += &format!("unreachable  {}\n", self.unreachable);
        }
        if let Some((name, states, transitions)) = self.reduced {
            text += &format!(
                "reduced      {states} states, {transitions} transitions modulo {name} bisimulation\n"
            );
        }
        if let Some((nodes, peak)) = self.nodes {
            text += &format!("nodes        {nodes} (at most {peak})\n");
        }
        if let Some((name, count)) = self.layers {
            text += &format!("{name:<13}{count}\n");
        }
        if let Some(reason) = &self.reason {
            text += &format!("engine       {}: {reason}\n", self.engine);
        }
        if let Some(processes) = &self.processes {
            text += &format!("processes    {}\n", processes.count);
        }
        if self.stop != Stop::Complete {
            text += &format!("stopped      {}\n", self.stop.word());
        }
        text += &format!("seconds      {seconds:.3}\npeak memory  {} MiB\n", memory >> 20);
        text
    }
}

/// Returns a number as JSON: a string if it exceeds 64 bits.
pub(crate) fn number(n: &BigUint) -> Value {
    u64::try_from(n).map_or_else(|_| Value::String(n.to_string()), Value::from)
}
