//! Execution graphs: the memory operations of a run. For programs they come from the labels, for
//! other models from an interface, which defines the meaning of labels.
//!
//! The interface is that of `conform`: the file of `--interface`, otherwise the file with the
//! model's name in its folder (`arcx.spec`, `arcx.interface`). There is no graph if no interface
//! exists, the run has none of its actions, or there are too many operations.

use crate::commands::conform::sorts::{Sorts, TypedMachine};
use crate::pipeline::load::{Loaded, Origin, properties};
use crate::pipeline::{Session, read_text};
use mu_axioms::EventKind;
use mu_axioms::models::MemoryOrdering;
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_conform::interface::{ArgumentRole, AssignedLabel, Interface, letter};
use mu_conform::operations::{Operation, Run};
use mu_frontends::ShownValue;
use mu_report::memory_graph::{self, OperationBox};
use mu_report::printed_evidence::PrintedEvidence;
use mu_report::shorten::ShortNames;
use serde_json::Value;
use std::path::Path;

/// Reads the interface of a model for the graphs of this run. Errors: those of a file that the user
/// named.
pub(crate) fn read_interface(
    session: &mut Session,
    model: &Path,
    named: Option<&Path>,
) -> Result<(), Diagnostic> {
    session.interface = match named {
        Some(path) => {
            let (source, text) = session.read_interface(path)?;
            let interface = Interface::parse(source, &text)?;
            show_values(session, &interface, &Origin::File(model))?;
            Some(interface)
        }
        // An interface that the user did not name may have another purpose: ignore its errors.
        None => {
            let mut sources = SourceMap::new();
            let text = read_text(&model.with_extension("interface")).ok();
            text.and_then(|t| Interface::parse(sources.add("interface", t.clone()), &t).ok())
        }
    };
    Ok(())
}

/// Requires that labels show the values that an interface takes from variables. Error: the model
/// has no variables with names.
pub(crate) fn show_values(
    session: &mut Session,
    interface: &Interface,
    origin: &Origin<'_>,
) -> Result<(), Diagnostic> {
    let front_end = origin.front_end();
    if let Some(first) = interface.assigned.first().filter(|_| !front_end.has_shown_values()) {
        let message = "`where` needs a model with named variables, such as a Murphi model (.m)";
        return Err(Diagnostic::at(Stage::Usage, first.span, message)
            .note(format!("this model is {}", front_end.language())));
    }
    let value = |a: &AssignedLabel| {
        let roles = &a.label.roles[..a.label.roles.len() - 1];
        let name = |r: &ArgumentRole| match letter(r) {
            "" | "_" => None,
            letter => Some(letter.to_string()),
        };
        ShownValue {
            action: a.label.action.clone(),
            parameters: roles.iter().map(name).collect(),
            variable: a.variable.clone(),
            span: a.span,
        }
    };
    session.shown = interface.assigned.iter().map(value).collect();
    Ok(())
}

/// Checks that an interface matches the actions of a model; otherwise there would be no graph and
/// no explanation. Without an interface of the user, that of the front end is used. An interface
/// that the user did not name is dropped if it does not match. A stored transition system may lack
/// actions of its model.
pub(crate) fn expect_actions(
    session: &mut Session,
    path: &Path,
    named: bool,
    loaded: &Loaded,
) -> Result<(), Diagnostic> {
    if properties(path).program {
        return Ok(());
    }
    let given = session.interface.take().or_else(|| loaded.interface.clone());
    let Some(mut interface) = given else { return Ok(()) };
    let some = interface.labels().any(|l| loaded.actions.iter().any(|a| a.name == l.action));
    if !(properties(path).stored && some) {
        let typed = TypedMachine {
            data: &loaded.data,
            actions: &loaded.actions,
            declared: loaded.declared,
        };
        match Sorts::check(&mut interface, typed) {
            Err(e) if named => return Err(e),
            Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
    session.interface = Some(interface);
    Ok(())
}

/// Returns the memory operations of a path, as a graph.
pub(crate) fn operations(
    session: &Session,
    model: &Path,
    story: &PrintedEvidence,
) -> Option<Value> {
    if properties(model).program {
        let buffered = session.reading.memory.model.model().name() != mu_program::memory::SC.name();
        return memory_graph::graph(story, buffered);
    }
    let interface = session.interface.as_ref().filter(|_| story.linear)?;
    let run = super::operation_log::run_of(interface, story);
    if !memory_graph::may_be_drawn(run.operations.len()) {
        return None;
    }
    let events: Vec<OperationBox> = run.operations.iter().map(|o| operation_box(o, &run)).collect();
    // A short name stands for the text in brackets.
    let fields = |o: &Operation| {
        [&o.address, &o.value, &o.written]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join(", ")
    };
    let terms: Vec<String> =
        run.operations.iter().map(|o| format!("f({}, {})", o.processor, fields(o))).collect();
    let short = ShortNames::of(terms.iter().map(String::as_str));
    Some(memory_graph::graph_json(&run.processors, &events, &run.arrows, &short))
}

fn operation_box(operation: &Operation, run: &Run) -> OperationBox {
    let field = |f: &Option<String>| f.clone().unwrap_or_else(|| "?".to_string());
    let (address, value) = (field(&operation.address), field(&operation.value));
    let mark = match operation.mark {
        MemoryOrdering::Plain => String::new(),
        MemoryOrdering::Acquire => " acquire".into(),
        MemoryOrdering::Release => " release".into(),
        MemoryOrdering::AcquireRelease => " acquire release".into(),
        MemoryOrdering::Between(before, after) => {
            format!(" {},{}", before.letters(), after.letters())
        }
    };
    let text = match operation.kind {
        EventKind::Read => format!("R{mark} {address}={value}"),
        EventKind::Write => format!("W{mark} {address}={value}"),
        EventKind::Update => {
            format!("RMW{mark} {address}: {value} to {}", field(&operation.written))
        }
        _ => format!("fence{mark}"),
    };
    let (begin, end) = operation.steps;
    let mut code = match end {
        Some(end) if end == begin => format!("step {}", begin + 1),
        Some(end) => format!("steps {} to {}", begin + 1, end + 1),
        None => format!("from step {} on", begin + 1),
    };
    if operation.sources.len() > 1 {
        let source_text =
            |s: &Option<usize>| s.map_or_else(|| "the start".to_string(), memory_graph::event_name);
        code.push_str(&format!(
            ", from {}",
            operation.sources.iter().map(source_text).collect::<Vec<_>>().join(" or ")
        ));
    }
    let thread = run
        .processors
        .iter()
        .position(|p| *p == operation.processor)
        .expect("a run lists the processors of its operations");
    OperationBox { thread, text, code, reads_initial: operation.sources[..] == [None] }
}
