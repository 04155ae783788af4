//! The memory operations of a run, as a graph: of programs by their labels, of other models by an
//! interface, which says what their labels mean.
//!
//! The interface is that of `conform`: the file that `--interface` names, else the one beside the
//! model with its name (`arcx.spec`, `arcx.interface`). Where none is found, an action of it is
//! none of the run's, or there are too many operations, there is no graph.

use super::conform::sorts::{Sorts, Typed};
use super::files::FileKind;
use super::load::Loaded;
use super::pipeline::{Session, read_text};
use mu_axioms::Kind;
use mu_axioms::models::Mark;
use mu_base::{Diagnostic, SourceMap};
use mu_conform::interface::Interface;
use mu_conform::operations::{Operation, Run};
use mu_report::accesses::{self, Boxed};
use mu_report::shorten::Short;
use mu_report::story::Story;
use serde_json::Value;
use std::path::Path;

/// Reads the interface of a model for the graphs of this run. Errors: those of a file that was
/// named.
pub(super) fn read_interface(
    session: &mut Session,
    model: &Path,
    named: Option<&Path>,
) -> Result<(), Diagnostic> {
    session.interface = match named {
        Some(path) => {
            let (source, text) = session.read_source(path)?;
            Some(Interface::parse(source, &text)?)
        }
        // One that nobody named may be for another purpose.
        None => {
            let mut sources = SourceMap::new();
            let text = read_text(&model.with_extension("interface")).ok();
            text.and_then(|t| Interface::parse(sources.add("interface", t.clone()), &t).ok())
        }
    };
    Ok(())
}

/// Checks that an interface fits the actions of a model: of another one no graph would come, and
/// nothing would say why. One that nobody named is dropped. A stored transition system may lack
/// actions that its model has.
pub(super) fn expect_actions(
    session: &mut Session,
    path: &Path,
    named: bool,
    loaded: &Loaded,
) -> Result<(), Diagnostic> {
    if FileKind::of(path) == FileKind::Program {
        return Ok(());
    }
    let Some(mut interface) = session.interface.take() else { return Ok(()) };
    let some = interface.labels().any(|l| loaded.actions.iter().any(|a| a.name == l.action));
    if !(FileKind::of(path).is_lts() && some) {
        let typed =
            Typed { data: &loaded.data, actions: &loaded.actions, declared: loaded.declared };
        match Sorts::check(&mut interface, typed) {
            Err(e) if named => return Err(e),
            Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
    session.interface = Some(interface);
    Ok(())
}

/// The memory operations of a path, as a graph.
pub(super) fn operations(session: &Session, model: &Path, story: &Story) -> Option<Value> {
    if FileKind::of(model) == FileKind::Program {
        let buffered = session.reading.memory.model.model().name() != mu_program::memory::SC.name();
        return accesses::graph(story, buffered);
    }
    let interface = session.interface.as_ref().filter(|_| story.linear)?;
    let steps: Vec<Vec<(&str, Vec<&str>)>> = story
        .steps
        .iter()
        .map(|s| {
            s.parts
                .iter()
                .map(|p| (p.name.as_str(), p.args.iter().map(String::as_str).collect()))
                .collect()
        })
        .collect();
    let run = Run::of(interface, &steps);
    if !accesses::may_be_drawn(run.operations.len()) {
        return None;
    }
    let events: Vec<Boxed> = run.operations.iter().map(|o| boxed(o, &run)).collect();
    // A short name is for what stands in brackets.
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
    let short = Short::of(terms.iter().map(String::as_str));
    Some(accesses::drawn(&run.processors, &events, &run.arrows, &short))
}

fn boxed(operation: &Operation, run: &Run) -> Boxed {
    let field = |f: &Option<String>| f.clone().unwrap_or_else(|| "?".to_string());
    let (address, value) = (field(&operation.address), field(&operation.value));
    let mark = match operation.mark {
        Mark::Plain => "",
        Mark::Acquire => " acquire",
        Mark::Release => " release",
    };
    let text = match operation.kind {
        Kind::Read => format!("R{mark} {address}={value}"),
        Kind::Write => format!("W{mark} {address}={value}"),
        Kind::Update => format!("RMW {address}: {value} to {}", field(&operation.written)),
        _ => "fence".to_string(),
    };
    let (begin, end) = operation.steps;
    let mut code = match end {
        Some(end) if end == begin => format!("step {}", begin + 1),
        Some(end) => format!("steps {} to {}", begin + 1, end + 1),
        None => format!("from step {} on", begin + 1),
    };
    if operation.sources.len() > 1 {
        let told = |s: &Option<usize>| s.map_or_else(|| "the start".to_string(), accesses::name);
        code.push_str(&format!(
            ", from {}",
            operation.sources.iter().map(told).collect::<Vec<_>>().join(" or ")
        ));
    }
    let thread = run.processors.iter().position(|p| *p == operation.processor).unwrap_or(0);
    Boxed { thread, text, code, reads_initial: operation.sources[..] == [None] }
}
