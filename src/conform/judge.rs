//! Memory models as judges of histories.
//!
//! A memory model does not know processors, addresses and values by name. So one history is judged
//! for each class under their permutations that fix the initial value ([`History::canonical`]). A
//! history is allowed if the model has an execution with its values, that is, some choice of the
//! writes that are read and some coherence order. The decision is exact.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use crate::sequences::SequenceEntry;
use mu_axioms::cat::{CatModel, ModelVerdict};
use mu_axioms::history::{self, Dependencies, History, Operation};
use mu_axioms::models::{self, Dialect, MemoryOrdering};
use mu_axioms::views::{ViewVerdict, Views};
use mu_axioms::{EventKind, Relation};
use mu_base::{Budget, Diagnostic, SourceMap, Stage};
use std::sync::OnceLock;

/// The definition of a memory model.
#[derive(Debug)]
pub enum ModelDefinition {
    /// Axioms in the `cat` language.
    Cat {
        /// The compiled axioms.
        model: CatModel,
        /// The vocabulary of events that the axioms use.
        dialect: Dialect,
    },
    /// Serial views.
    Views(Views),
}

/// A memory model with its name.
#[derive(Debug)]
pub struct MemoryModel {
    /// Its name.
    pub name: String,
    /// Its definition.
    pub form: ModelDefinition,
}

/// A memory model with the working memory of one thread.
pub struct JudgeWorker<'m> {
    judge: Judge<'m>,
}

enum Judge<'m> {
    Cat(Box<history::HistoryChecker<'m>>),
    Views(&'m Views, Budget),
}

impl MemoryModel {
    /// True if it is the built-in model with its name: the same text, with all included files.
    pub fn is_builtin(&self) -> bool {
        let ModelDefinition::Cat { model, .. } = &self.form else { return false };
        builtin(&self.name).is_some_and(|b| b == model.text())
    }
    /// Creates the working memory for one thread, without limits.
    pub fn worker(&self) -> JudgeWorker<'_> {
        self.worker_within(&Budget::default())
    }
    /// Creates the working memory for one thread. A limit of the budget ends the decision about a
    /// history with many executions by an error.
    pub fn worker_within(&self, budget: &Budget) -> JudgeWorker<'_> {
        let judge = match &self.form {
            ModelDefinition::Cat { model, dialect } => {
                let checker = history::HistoryChecker::new(model, *dialect).with_budget(budget);
                Judge::Cat(Box::new(checker))
            }
            ModelDefinition::Views(views) => Judge::Views(views, budget.clone()),
        };
        JudgeWorker { judge }
    }
    /// Rejects a machine with operations that the model cannot express.
    pub fn check(&self, interface: &Interface, alphabet: &Alphabet) -> Result<(), Diagnostic> {
        let mut lines: Vec<u32> = alphabet.events.iter().map(|e| e.operation).collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            let o = &interface.operations[line as usize];
            let why = match &self.form {
                ModelDefinition::Views(_) if o.kind == EventKind::Update => {
                    Some("serial views do not support updates".to_string())
                }
                ModelDefinition::Views(_) if o.exclusive => {
                    Some("serial views do not support load-reserve and store-conditional".into())
                }
                ModelDefinition::Views(_)
                    if o.kind == EventKind::Fence && o.mark != MemoryOrdering::Plain =>
                {
                    Some("serial views do not support partial fences".into())
                }
                ModelDefinition::Views(_) => None,
                ModelDefinition::Cat { model, dialect } => {
                    dialect.unsupported_reason(model, o.kind, o.mark, o.exclusive)
                }
            };
            if let Some(why) = why {
                let message = format!("`{}` cannot judge `{}`: {why}", self.name, o.text());
                return Err(Diagnostic::at(Stage::Unsupported, o.end.span, message));
            }
        }
        Ok(())
    }
}

/// Returns the text of a built-in model with its included files; `None` if there is none.
fn builtin(name: &str) -> Option<&'static str> {
    static TEXTS: OnceLock<Vec<(&'static str, String)>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let compile = |known: &models::BuiltinModel| {
            let model = known.compile(&mut SourceMap::new()).ok()?;
            Some((known.name, model.text().to_string()))
        };
        models::KNOWN.iter().filter_map(compile).collect()
    });
    texts.iter().find(|t| t.0 == name).map(|t| t.1.as_str())
}

/// The reason why a history is forbidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The axiom that every execution violates, or the view that does not exist.
    pub axiom: String,
    /// The cycle that the axiom forbids: operations, each with the relation to the next one; empty
    /// if the axiom is not about cycles.
    pub cycle: Vec<(String, String)>,
}

impl JudgeWorker<'_> {
    /// True if the model allows the history.
    pub fn allows(&mut self, history: &History) -> Result<bool, Diagnostic> {
        match &mut self.judge {
            Judge::Cat(judge) => judge.allows(history),
            Judge::Views(views, budget) => {
                let skeleton = history.skeleton(Dialect::Plain, &Views::vocabulary(), None);
                if !history.is_sourced() {
                    return Ok(false);
                }
                let exist = |rf: &Relation| {
                    Ok(matches!(views.judge(&skeleton, rf)?, ViewVerdict::Views(_)))
                };
                // Views in which a read may take any write of its value exist if views with one
                // source for each read do.
                if !views.depends_on_sources() && !exist(&history.sources(&skeleton))? {
                    return Ok(false);
                }
                let mut judged = 0;
                history.reads_from(&skeleton, &mut |rf| {
                    judged += 1;
                    if judged > 1 {
                        budget.check(0).map_err(Diagnostic::stopped)?;
                    }
                    exist(rf)
                })
            }
        }
    }
    /// Explains why a history is forbidden, by one of the executions that have its values.
    pub fn reason(&mut self, history: &History) -> Result<Reason, Diagnostic> {
        if !history.is_sourced() {
            return Ok(Reason {
                axiom: "a load reads a value that no operation writes".into(),
                cycle: Vec::new(),
            });
        }
        if !history.is_reserved() {
            return Ok(Reason {
                axiom: "a store-conditional succeeds without a load-reserve of its address directly before it".into(),
                cycle: Vec::new(),
            });
        }
        match &mut self.judge {
            Judge::Cat(judge) => {
                let (verdict, skeleton, ..) = judge.verdict(history)?;
                Ok(of_verdict(&verdict, &skeleton))
            }
            Judge::Views(views, _) => {
                let skeleton = history.skeleton(Dialect::Plain, &Views::vocabulary(), None);
                let mut first = None;
                history.reads_from(&skeleton, &mut |rf| {
                    first = Some(rf.clone());
                    Ok(true)
                })?;
                let seen = first.map(|rf| views.judge(&skeleton, &rf)).transpose()?;
                let axiom = match seen {
                    Some(ViewVerdict::None { of, .. }) if !of.is_empty() => {
                        format!("there is no serial view for {of}")
                    }
                    _ => "there is no serial view".into(),
                };
                Ok(Reason { axiom, cycle: Vec::new() })
            }
        }
    }
}

fn of_verdict(verdict: &ModelVerdict, skeleton: &mu_axioms::Skeleton) -> Reason {
    let Some(failure) = &verdict.failed else {
        return Reason { axiom: String::new(), cycle: Vec::new() };
    };
    let name = |e: usize| {
        let e = &skeleton.events()[e];
        let thread = e.thread.map_or(String::new(), |t| format!("P{t}: "));
        match (e.kind, e.location) {
            (EventKind::Fence, _) | (_, None) => format!("{thread}F"),
            (kind, Some(l)) => {
                let letter = if kind.writes() { "W" } else { "R" };
                format!("{thread}{letter} {} {}", history::location_name(l), e.value)
            }
        }
    };
    let names = failure.events.iter().map(|&e| name(e));
    let edges = failure.edges.iter().cloned().chain(std::iter::repeat(String::new()));
    Reason { axiom: failure.axiom.clone(), cycle: names.zip(edges).collect() }
}

/// Converts a list of ended operations to operations of a history, in the names of the machine.
pub fn thread(interface: &Interface, list: &[SequenceEntry]) -> Vec<Operation> {
    let operation = |e: &SequenceEntry| {
        let line = &interface.operations[e.operation as usize];
        let [value, written] = [e.value, e.written].map(|v| u64::from(v.unwrap_or(0)));
        let (value, read) =
            if line.kind == EventKind::Update { (written, value) } else { (value, 0) };
        Operation {
            kind: line.kind,
            location: e.address.unwrap_or(0),
            value,
            read,
            mark: line.mark,
            exclusive: line.exclusive,
            depends: e.depends,
        }
    };
    list.iter().map(operation).collect()
}

/// Converts lists of ended operations to a history in the names of the machine.
pub fn history(interface: &Interface, processors: &[&[SequenceEntry]]) -> History {
    let threads = processors.iter().map(|p| thread(interface, p)).collect();
    let mut out = History { threads, last: Vec::new() };
    out.normalise();
    out
}

/// Checks that operations depend on loads only.
pub fn check_dependencies(interface: &Interface, history: &History) -> Result<(), Diagnostic> {
    for thread in &history.threads {
        for (i, o) in thread.iter().enumerate() {
            for (name, bits) in o.depends.named_sets() {
                let wrong = Dependencies::positions(bits)
                    .find(|&p| !thread.get(p).is_some_and(|load| p < i && load.kind.reads()));
                if let Some(p) = wrong {
                    let number = |at: usize| interface.first + at as u64;
                    let message = format!(
                        "operation {} of a processor has `{name}` = {}, which is no load",
                        number(i),
                        number(p)
                    );
                    return Err(Diagnostic::new(Stage::Type, message).note(format!(
                        "a thread with it: {}",
                        History { threads: vec![thread.clone()], last: Vec::new() }.program_text()
                    )));
                }
            }
        }
    }
    Ok(())
}
