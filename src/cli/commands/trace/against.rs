//! Memory models of `--against`: the built-in ones for traces, and for small traces all models by
//! axioms (`.cat` files and the names of `mu-check models`) and serial views (`.views` files).
//!
//! A model by axioms judges all choices of sources and coherence orders of the trace as a history,
//! so a trace with more than [`MAX_CHOICES`] of them is *unknown*.

use super::machine::history;
use crate::commands::models::{NamedModel, compile_models};
use crate::pipeline::{Session, read_text};
use mu_axioms::history::History;
use mu_axioms::views::Views;
use mu_base::{Budget, Diagnostic, Stage, Stop, ends_in};
use mu_conform::judge::{MemoryModel, ModelDefinition};
use mu_frontends::FrontEnd as _;
use mu_frontends::rejected::MEMORY_MODELS;
use mu_traces::{DecisionOptions, Trace, TraceModel, Verdict, decide};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Limit on the choices of sources and coherence orders that axioms judge.
const MAX_CHOICES: f64 = 20_000.0;
/// Limit on the operations of a trace that axioms judge.
const MAX_OPERATIONS: usize = 60;

/// Text of a model by axioms, from which it is compiled for litmus tests.
#[derive(Debug)]
pub(super) struct Axioms {
    pub text: String,
    pub folder: Option<PathBuf>,
}

impl Axioms {
    /// Returns the axioms of a built-in model.
    fn built_in(name: &str) -> Option<Self> {
        let known = mu_axioms::models::by_name(name)?;
        Some(Self { text: known.text.to_string(), folder: None })
    }
    /// Returns the text of a file that the model includes.
    pub(super) fn included_text(&self, name: &str) -> Option<String> {
        NamedModel::included_file(self.folder.as_deref(), name)
    }
}

#[derive(Debug)]
enum ModelKind {
    /// A model for traces of any size.
    BuiltIn(TraceModel),
    /// A model for small traces.
    Small(Box<MemoryModel>),
}

/// A memory model.
#[derive(Debug)]
pub(super) struct Against {
    pub name: String,
    pub summary: String,
    /// The axioms that judge litmus tests, if there are any.
    pub axioms: Option<Axioms>,
    kind: ModelKind,
}

/// Answer of a model.
pub(super) enum ModelAnswer {
    Verdict(Verdict),
    /// Without evidence.
    Truth(bool),
    Unknown(String),
}

impl Against {
    fn built_in(model: TraceModel) -> Self {
        let name = model.name().to_string();
        let axioms = Axioms::built_in(&name);
        Self { name, summary: model.summary().to_string(), axioms, kind: ModelKind::BuiltIn(model) }
    }
    /// Returns the built-in models, strongest first.
    pub(super) fn built_in_models() -> Vec<Self> {
        TraceModel::BUILT_IN.into_iter().map(Self::built_in).collect()
    }
    /// Returns the model with a name, or that of a file.
    pub(super) fn of(session: &mut Session, word: &str) -> Result<Self, Diagnostic> {
        let path = Path::new(word);
        if ends_in(path, "views") {
            let text = read_text(path)?;
            let views = Views::compile(&mut session.sources, word, &text)?;
            let name = word.to_string();
            let model = MemoryModel { name: name.clone(), form: ModelDefinition::Views(views) };
            let summary = "serial views".to_string();
            return Ok(Self {
                name,
                summary,
                axioms: None,
                kind: ModelKind::Small(Box::new(model)),
            });
        }
        let lower = word.trim().to_lowercase();
        let name = match lower.as_str() {
            "power" => "pow",
            "x86" => "tso",
            "riscv" => "rvwmo",
            "aarch64" => "armv8",
            name => name,
        };
        if let Some(model) = TraceModel::by_name(name) {
            return Ok(Self::built_in(model));
        }
        let is_known = mu_axioms::models::by_name(name).is_some();
        if !MEMORY_MODELS.has_ending(path) && !is_known {
            let all: Vec<&str> = TraceModel::BUILT_IN.iter().map(TraceModel::name).collect();
            let message = format!("no memory model for traces is called `{word}`");
            return Err(Diagnostic::new(Stage::Usage, message).note(format!(
                "models: {}; for small traces also a `.cat` or `.views` file, and the names of `mu-check models`",
                all.join(", ")
            )));
        }
        let word = if is_known { name } else { word };
        let named = compile_models(session, &[word.to_string()])?.remove(0);
        let form = ModelDefinition::Cat { model: named.model, dialect: named.dialect };
        Ok(Self {
            name: word.to_string(),
            summary: "axioms, for small traces".to_string(),
            axioms: Some(Axioms { text: named.text, folder: named.folder }),
            kind: ModelKind::Small(Box::new(MemoryModel { name: named.name, form })),
        })
    }
    /// Returns the position among the built-in models, the strongest first; other models are last.
    pub(super) fn rank(&self) -> usize {
        let is_same = |m: &TraceModel| self.model().is_some() && m.name() == self.name;
        TraceModel::BUILT_IN.iter().position(is_same).unwrap_or(usize::MAX)
    }
    /// Returns the built-in model.
    pub(super) fn model(&self) -> Option<&TraceModel> {
        match &self.kind {
            ModelKind::BuiltIn(model) => Some(model),
            ModelKind::Small(_) => None,
        }
    }
    /// Decides whether the model allows a trace.
    pub(super) fn judge(
        &self,
        trace: &Trace,
        options: &DecisionOptions,
        budget: &Budget,
    ) -> Result<ModelAnswer, Diagnostic> {
        let model = match &self.kind {
            ModelKind::BuiltIn(model) => {
                return match decide(trace, model, options, budget) {
                    // The model does not define the trace: no answer, and no error of the log.
                    Err(d) if d.stage == Stage::Unsupported => {
                        Ok(ModelAnswer::Unknown(d.to_string()))
                    }
                    verdict => verdict.map(ModelAnswer::Verdict),
                };
            }
            ModelKind::Small(model) => model,
        };
        if let Err(stop) = budget.check(0) {
            let reason = format!("{} operations", trace.len());
            return Ok(ModelAnswer::Verdict(Verdict::Unknown { stop, reason }));
        }
        if trace.len() > MAX_OPERATIONS {
            return Ok(ModelAnswer::Unknown(format!(
                "axioms judge traces of at most {MAX_OPERATIONS} operations"
            )));
        }
        let history = match history(trace) {
            Ok(history) => history,
            Err(reason) => return Ok(ModelAnswer::Unknown(reason)),
        };
        let choices = choices(&history);
        if choices > MAX_CHOICES {
            return Ok(ModelAnswer::Unknown(format!(
                "the trace has {choices:.0} choices of sources and orders; axioms judge at most {MAX_CHOICES:.0}"
            )));
        }
        Ok(match model.worker().allows(&history)? {
            false if !trace.skipped.is_empty() => {
                let reason = "lines with errors were skipped, and the rest alone is forbidden";
                ModelAnswer::Unknown(reason.to_string())
            }
            truth => ModelAnswer::Truth(truth),
        })
    }
}

/// Returns the number of choices of coherence orders and sources of a history.
fn choices(history: &History) -> f64 {
    use mu_axioms::EventKind;
    let mut stores: BTreeMap<u32, f64> = BTreeMap::new();
    let mut values: BTreeMap<(u32, u64), f64> = BTreeMap::new();
    let all = || history.threads.iter().flatten();
    for o in all().filter(|o| matches!(o.kind, EventKind::Write | EventKind::Update)) {
        *stores.entry(o.location).or_default() += 1.0;
        *values.entry((o.location, o.value)).or_default() += 1.0;
    }
    let mut product = 1.0;
    for count in stores.values() {
        (1..=*count as u32).for_each(|n| product *= f64::from(n));
    }
    for o in all().filter(|o| matches!(o.kind, EventKind::Read | EventKind::Update)) {
        product *= values.get(&(o.location, o.read_value())).copied().unwrap_or(1.0).max(1.0);
    }
    product
}

/// Returns the verdict of an answer, with the reason and the limit if it is unknown.
pub(super) fn truth(judged: &ModelAnswer) -> (Option<bool>, Option<String>, Option<Stop>) {
    match judged {
        ModelAnswer::Verdict(Verdict::Unknown { stop, reason }) => {
            (None, Some(reason.clone()), Some(stop.clone()))
        }
        ModelAnswer::Verdict(verdict) => (verdict.truth(), None, None),
        ModelAnswer::Truth(truth) => (Some(*truth), None, None),
        ModelAnswer::Unknown(reason) => (None, Some(reason.clone()), None),
    }
}
