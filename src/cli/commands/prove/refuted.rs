//! Run to an unsafe state of a system, as evidence: replayed step by step on the model with its
//! number of processes, and output like the evidence of formulas.
//!
//! The prover's run leaves cells open that no step reads ([`mu_cubicle::machine`]). Here each cell
//! gets a value, so that the run starts in an initial state of the model that `explore` and `check`
//! search. The last step is `unsafe`.

use crate::commands::explore::find_path::{PathDrawing, evidence, file_name, write_drawing};
use crate::output::page;
use crate::output::picture::Picture;
use crate::pipeline::Session;
use crate::pipeline::files::expect_writable;
use mu_base::Diagnostic;
use mu_cubicle::machine::Act;
use mu_cubicle::model::{SystemModel, UNSAFE};
use mu_cubicle::system::System;
use mu_evidence::Evidence;
use mu_explore::walk::Walk;
use mu_explore::{LassoPath, PathStep};
use mu_model::Model;
use mu_prove::replay::ReplayRun;
use mu_prove::rules::Memory;
use mu_report::page::PageResult;
use mu_report::printed_evidence::{PrintedEvidence, story};
use serde_json::{Value, json};
use std::path::Path;

/// Rejects a file name without a known format.
pub(crate) fn expect_evidence(path: &Path) -> Result<(), Diagnostic> {
    Picture::of(path)?;
    expect_writable(path)
}

/// Writes the run in the format of the file name. `file`: the file of the system.
pub(crate) fn save(
    session: &Session,
    path: &Path,
    file: &Path,
    system: &System,
    memory: Memory,
    run: &ReplayRun,
) -> Result<(), Diagnostic> {
    let (model, evidence, story) = replayed_run(system, memory, run)?;
    let name = file_name(file);
    if page::is_page(path) {
        return page::write(
            session,
            path,
            &name,
            &[PageResult::of("evidence", as_json(&story, file))],
        );
    }
    let n = story.steps.len();
    let what = format!(
        "a run of {n} step{} with {} processes to an unsafe state",
        if n == 1 { "" } else { "s" },
        run.processes
    );
    let drawn = PathDrawing {
        model: &model,
        typed: None,
        evidence: &evidence,
        story: &story,
        interface: None,
    };
    write_drawing(session, path, file, &drawn, (&format!("unsafe: {name}"), &what))
}

fn as_json(story: &PrintedEvidence, file: &Path) -> Value {
    let mut object = story.json();
    object["verdict"] = Value::Null;
    object["kind"] = json!("trace");
    object["model"] = json!(file.display().to_string());
    crate::output::with_head(object)
}

/// Builds the run on the model with its number of processes.
fn replayed_run<'s>(
    system: &'s System,
    memory: Memory,
    run: &ReplayRun,
) -> Result<(SystemModel<'s>, Evidence, PrintedEvidence), Diagnostic> {
    let (claim, procs) = (&system.unsafes[run.claim.0], &run.claim.1);
    // The numbering of values and buffers belongs to one machine.
    let machine = run.machine(system, memory)?;
    let acts: Vec<Act> = run.replayed.steps.iter().map(|s| s.0.clone()).collect();
    let replayed = machine.replay(&acts, claim, procs)?;
    let settled = machine.choose_open_values(&replayed, claim, procs);
    let settled = settled
        .ok_or_else(|| Diagnostic::internal("a run leaves a cell open that no value satisfies"))?;
    let model = SystemModel::with_start(machine, settled.start.clone());
    let mut walk = Walk::new(&model, 0)?;
    for (act, state) in &settled.steps {
        let label = label(system, act);
        let step = walk
            .moves()
            .iter()
            .position(|m| model.label_text(m.label) == label && model.state(&m.state) == *state);
        take(&mut walk, step, &label)?;
    }
    let step = walk.moves().iter().position(|m| model.label_text(m.label) == UNSAFE);
    take(&mut walk, step, UNSAFE)?;
    let steps = walk.path().iter().map(|m| PathStep {
        label: m.label,
        group: m.group as usize,
        state: m.state.clone(),
    });
    let evidence = evidence(&model, &LassoPath { steps: steps.collect(), cycle_start: None });
    drop(walk);
    mu_evidence::checker::replay(&evidence, &model)?;
    let story = story(&evidence, &model, false, usize::MAX)?;
    Ok((model, evidence, story))
}

fn take(walk: &mut Walk<'_>, step: Option<usize>, label: &str) -> Result<(), Diagnostic> {
    let step = step.ok_or_else(|| {
        Diagnostic::internal(format!(
            "the model cannot take the step `{label}` of the machine's run"
        ))
    })?;
    walk.take(step).map(|_| ())
}

/// Returns the label of a machine step in the model.
fn label(system: &System, act: &Act) -> String {
    let (name, procs) = match act {
        Act::Flush(p) => ("flush", std::slice::from_ref(p)),
        Act::Fire(t, procs) => {
            let transition = &system.transitions[*t as usize];
            (transition.name.as_str(), &procs[..transition.declared])
        }
    };
    let procs: Vec<String> = procs.iter().map(|p| (p + 1).to_string()).collect();
    if procs.is_empty() { name.to_string() } else { format!("{name}({})", procs.join(", ")) }
}
