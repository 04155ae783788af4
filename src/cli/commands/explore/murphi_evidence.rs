//! Files about the failure of a Murphi model: evidence (`--evidence FILE`) and a JUnit report
//! (`--junit FILE`).
//!
//! The run to a failure is computed by the search of [`mu_murphi::search`]. For a chart or a trace
//! it is repeated on the model of slots and groups, state by state, so that its labels are those
//! of formulas and of `simulate`. The last step is the failure, if the model has a label for it
//! (`violation(NAME)`, `error`). Invariant: a state without a step to the next state of the run is
//! an internal error.

use super::find_path::{self, PathDrawing};
use super::murphi::{MurphiResult, Run};
use super::plan::Exploration;
use crate::output;
use crate::output::page;
use crate::output::picture::Picture;
use crate::pipeline::Session;
use crate::pipeline::files::{self, expect_writable};
use crate::pipeline::load::typed_labels;
use mu_base::Diagnostic;
use mu_base::host::Instant;
use mu_explore::walk::Walk;
use mu_explore::{LassoPath, PathStep};
use mu_lts::relabel::{Relabel, name_of};
use mu_murphi::model::{ERROR, VIOLATION};
use mu_murphi::path::{Path as FailurePath, property_name};
use mu_murphi::search::Broken;
use mu_murphi::variables::variables;
use mu_report::junit::{CaseOutcome, TestCase};
use mu_report::page::PageResult;
use mu_report::printed_evidence::story;
use std::path::Path;

/// Checks the name of the evidence file before the search.
///
/// # Errors
/// An unknown format; a file that cannot be written.
pub(super) fn expect_possible(args: &Exploration) -> Result<(), Diagnostic> {
    let Some(path) = &args.goal.evidence else { return Ok(()) };
    Picture::of(path)?;
    expect_writable(path)
}

/// Writes the evidence of a failure, if there is one and the user requested it; otherwise reports
/// that no file is written.
pub(super) fn write(
    session: &mut Session,
    args: &Exploration,
    (run, defines): (&Run, &[String]),
    start: Instant,
) -> Result<(), Diagnostic> {
    let Some(file) = &args.goal.evidence else { return Ok(()) };
    let name = find_path::file_name(&args.model);
    if page::is_page(file) {
        let shown = PageResult::of(
            "explore",
            output::with_head(run.outcome(session, start).json(Vec::new())),
        );
        return page::write(session, file, &name, &[shown]);
    }
    let Some(found) = &run.found else {
        eprintln!("note: {} is not written: the search found no failure", file.display());
        return Ok(());
    };
    let given = std::mem::replace(&mut session.common.define, defines.to_vec());
    let loaded = session.load(&args.model, "none");
    session.common.define = given;
    let loaded = loaded?;
    let model = &*loaded.model;
    let walk = repeat_run(run, found, Walk::new(model, 0)?, loaded.names.start.is_some())?;
    let steps = walk.path().iter().map(|m| PathStep {
        label: m.label,
        group: m.group as usize,
        state: m.state.clone(),
    });
    let evidence =
        find_path::evidence(model, &LassoPath { steps: steps.collect(), cycle_start: None });
    mu_evidence::checker::replay(&evidence, model)?;
    let mut story = story(&evidence, model, args.goal.full_states, usize::MAX)?;
    story.of_formula = false;
    let drawn = PathDrawing {
        model,
        typed: typed_labels(&loaded, file, &Relabel::default()),
        evidence: &evidence,
        story: &story,
        interface: None,
    };
    let failure = run.outcome(session, start).first_failure();
    let n = story.steps.len();
    let steps = format!("a run of {n} step{}", if n == 1 { "" } else { "s" });
    find_path::write_drawing(
        session,
        file,
        &args.model,
        &drawn,
        (&format!("{name}: {failure}"), &steps),
    )
}

/// Walks along the run to a failure, and takes the step of the failure. `chooses_start`: true if
/// the first step of the model leads to one of several start states.
fn repeat_run<'m>(
    run: &Run,
    found: &FailurePath,
    mut walk: Walk<'m>,
    chooses_start: bool,
) -> Result<Walk<'m>, Diagnostic> {
    let layout = &run.program.layout;
    let all = variables(&run.model, layout);
    let model = walk.model();
    // By place: a slot of a multiset and its value have one name. The slot behind all variables
    // says whether a start state is chosen.
    let is_state = |slots: &[u32], state: &[u64]| {
        all.iter().zip(slots).enumerate().all(|(slot, (variable, value))| {
            let text = variable.text(&run.model, layout, state);
            // An unused element of a multiset has no text.
            text.is_empty() || text == model.value_text(mu_base::narrow::index(slot), *value)
        })
    };
    let label = |walk: &Walk<'_>, at: usize| model.label_text(walk.moves()[at].label);
    let is_failure = |text: &str| [ERROR, VIOLATION].contains(&name_of(text));
    // A model with one start state begins there.
    let first = usize::from(!chooses_start);
    for (_, state) in found.steps.iter().skip(first) {
        let next = (0..walk.moves().len())
            .find(|&at| !is_failure(&label(&walk, at)) && is_state(&walk.moves()[at].state, state));
        let next = next.ok_or_else(|| {
            Diagnostic::internal("the run to a failure is no run of the transition groups")
        })?;
        walk.take(next)?;
    }
    let last = match &found.failure.broken {
        Broken::Invariant(at) => {
            let property = property_name(&run.model, &run.program, *at);
            let is_of = |at: &usize| {
                let group = &model.groups()[walk.moves()[*at].group as usize];
                name_of(&label(&walk, *at)) == VIOLATION && group.name == property
            };
            (0..walk.moves().len()).find(is_of)
        }
        Broken::Fault(..) => (0..walk.moves().len()).find(|at| label(&walk, *at) == ERROR),
        _ => None,
    };
    if let Some(last) = last {
        walk.take(last)?;
    }
    Ok(walk)
}

/// Writes the JUnit report of an exploration: one test case.
pub(super) fn write_junit(
    path: &Path,
    model: &Path,
    outcome: &MurphiResult<'_>,
) -> Result<(), Diagnostic> {
    let result = match outcome.verdict() {
        "ok" => CaseOutcome::Passed,
        "unknown" => CaseOutcome::Unknown(outcome.unknown_reason()),
        _ => CaseOutcome::Failed { message: outcome.first_failure(), text: outcome.text() },
    };
    let (class, seconds) = (model.display().to_string(), outcome.start.elapsed().as_secs_f64());
    let case = TestCase { class, name: "explore".into(), seconds, outcome: result };
    files::write_junit(path, model, &[case])
}
