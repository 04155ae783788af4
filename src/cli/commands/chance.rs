//! Probabilistic systems in `explore`, `reduce` and `compare`.
//!
//! These functions are used for probabilistic models, and for `--equivalence probabilistic`, which
//! applies to every model and `.aut` file.

use crate::args::{CompareArgs, Format, Modulo, ReduceArgs};
use crate::commands::explore::counts::ExplorationReport;
use crate::commands::explore::plan::Exploration;
use crate::commands::lts::{report_unknown, unknown_verdict};
use crate::output;
use crate::output::print;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::files::write;
use crate::pipeline::load::Loaded;
use crate::pipeline::{Session, file_error};
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop, ends_in};
use mu_chance::bisimulation::{bisimilar, reduce as quotient};
use mu_chance::{ProbabilisticSystem, aut, dot};
use mu_frontends::FrontEnd as _;
use mu_frontends::rejected::PICTURES;
use mu_lts::relabel::{in_order, merge_orders, with_internal};
use mu_model::Model;
use serde_json::json;
use std::path::Path;

/// Name of the only supported equivalence.
pub(crate) const EQUIVALENCE: &str = mu_chance::bisimulation::NAME;

/// Explores the system of a model; returns the stop reason with the part that was found.
pub(crate) fn explore_system(
    session: &Session,
    model: &dyn Model,
) -> Result<(ProbabilisticSystem, Stop), Diagnostic> {
    let start = Instant::now();
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let found = mu_chance::explore::explore(model, &session.budget, &mut |states| {
        bar.note(|| format!("{} states", group_digits(states)))
    })?;
    bar.finish();
    let system = &found.0;
    session.log(format!(
        "explored {} states, {} steps to {} distributions in {:.3} s",
        group_digits(system.state_count() as u64),
        group_digits(system.step_count() as u64),
        group_digits(system.distributions.len() as u64),
        start.elapsed().as_secs_f64()
    ));
    Ok(found)
}

/// Reads the system of a file.
fn system(session: &mut Session, path: &Path) -> Result<ProbabilisticSystem, Diagnostic> {
    if ends_in(path, "aut") {
        output::begin_stage("reading a transition system");
        let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
        let system = aut::read(file).map_err(|d| d.in_file(&path.display().to_string()))?;
        return Ok(merge_orders(with_internal(system, &session.reading.internal_labels())));
    }
    let loaded = session.load_any(path, "none")?;
    let (system, stop) = explore_system(session, &*loaded.model)?;
    if stop == Stop::Complete { Ok(system) } else { Err(Diagnostic::stopped(stop)) }
}

/// True if the name of a file is that of a picture.
fn is_picture(path: &Path) -> bool {
    PICTURES.has_ending(path)
}

fn expect_form(path: Option<&Path>) -> Result<(), Diagnostic> {
    match path {
        Some(path) if !ends_in(path, "aut") && !is_picture(path) => {
            let message =
                format!("`{}`: a probabilistic system is written as .aut or .dot", path.display());
            Err(Diagnostic::new(Stage::Usage, message))
        }
        _ => Ok(()),
    }
}

fn write_system(
    session: &Session,
    system: &ProbabilisticSystem,
    path: &Path,
) -> Result<(), Diagnostic> {
    output::begin_stage("writing");
    write(path, |file| {
        if is_picture(path) { dot::write(system, file) } else { aut::write(system, file) }
    })?;
    session.log(format!("wrote {}", path.display()));
    Ok(())
}

/// Runs `explore` on a probabilistic model.
pub(crate) fn explore(
    session: &Session,
    args: &Exploration,
    loaded: &Loaded,
    start: Instant,
) -> Result<u8, Diagnostic> {
    expect_form(args.out.as_deref())?;
    let relabelled = !args.relabelling.hide.is_empty() || !args.relabelling.rename.is_empty();
    let wants = [
        (args.spill.is_some(), "--spill"),
        (args.checkpoints.is_requested(), "--checkpoint` and `--resume"),
        (args.distribution.is_requested(), "--processes"),
        (args.goal.kind().is_some(), "--deadlock` and `--action"),
        (relabelled, "--hide` and `--rename"),
        (!args.goal.terminal.is_empty(), "--terminal"),
        (args.confluence != "none", "--confluence"),
        (args.engine.name() == "symbolic", "--engine symbolic"),
        (
            args.reduce.is_some_and(|r| r != Modulo::Probabilistic),
            "--reduce` other than `probabilistic",
        ),
    ];
    if let Some((_, option)) = wants.iter().find(|(wanted, _)| *wanted) {
        let are = if option.contains("` and `") { "are" } else { "is" };
        let message = format!(
            "`{option}` {are} not supported for probabilistic models such as {}",
            args.model.display()
        );
        return Err(Diagnostic::new(Stage::Unsupported, message));
    }
    let (system, stop) = explore_system(session, &*loaded.model)?;
    let (states, steps, dead) =
        (system.state_count() as u64, system.step_count() as u64, system.deadlock_count() as u64);
    output::record("states", states.into());
    output::record("transitions", steps.into());
    let complete = stop == Stop::Complete;
    let mut report = ExplorationReport {
        distributions: Some(system.distributions.len()),
        ..ExplorationReport::explicit(states, steps, dead, stop)
    };
    if !complete {
        report.transitions = None;
        report.deadlocks = None;
        if args.out.is_some() || args.reduce.is_some() {
            session.log("incomplete search: nothing is reduced or written");
        }
        return report.print(session, start);
    }
    let small = args.reduce.map(|_| quotient(&system));
    report.reduced = small.as_ref().map(|s| (EQUIVALENCE, s.state_count(), s.step_count()));
    if let Some(path) = &args.out {
        write_system(session, small.as_ref().unwrap_or(&system), path)?;
    }
    report.stop = session.stop_with_bounds(report.stop);
    report.print(session, start)
}

/// Runs `reduce --equivalence probabilistic`.
pub(crate) fn reduce(session: &mut Session, args: &ReduceArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    expect_form(args.file())?;
    if args.draw.is_some()
        || !args.relabelling.hide.is_empty()
        || !args.relabelling.rename.is_empty()
    {
        let message =
            "`--draw`, `--hide` and `--rename` are not supported for probabilistic systems";
        return Err(Diagnostic::new(Stage::Unsupported, message));
    }
    let system = match system(session, &args.input) {
        Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
        system => system?,
    };
    output::begin_stage("reducing");
    let small = quotient(&system);
    if let Some(path) = args.file() {
        write_system(session, &small, path)?;
    }
    let stop = session.stop_with_bounds(Stop::Complete);
    match session.common.format {
        Format::Json => output::print_object(json!({
            "equivalence": EQUIVALENCE,
            "states": system.state_count(),
            "transitions": system.step_count(),
            "reduced": { "equivalence": EQUIVALENCE, "states": small.state_count(), "transitions": small.step_count() },
            "seconds": start.elapsed().as_secs_f64(),
            "peak_memory_bytes": session.peak_memory(),
            "stop": stop.word(),
        }))?,
        Format::Text => print(&format!(
            "states       {}\ntransitions  {}\nreduced      {} states, {} transitions modulo {EQUIVALENCE} bisimulation\n",
            system.state_count(),
            system.step_count(),
            small.state_count(),
            small.step_count()
        ))?,
    }
    Ok(0)
}

/// Runs `compare --equivalence probabilistic`.
pub(crate) fn compare(session: &mut Session, args: &CompareArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if args.out.is_some()
        || !args.relabelling.hide.is_empty()
        || !args.relabelling.rename.is_empty()
    {
        let message =
            "`--out`, `--hide` and `--rename` are not supported for probabilistic systems";
        return Err(Diagnostic::new(Stage::Unsupported, message));
    }
    let systems = system(session, &args.a).and_then(|a| Ok((a, system(session, &args.b)?)));
    let (a, b) = match systems {
        Err(Diagnostic { stop: Some(stop), .. }) => return unknown_verdict(session, &stop),
        systems => systems?,
    };
    // Both a relation and a difference of parts of the systems may be untrue of the whole ones.
    if session.buffers_were_cut() {
        return unknown_verdict(session, &Stop::Buffer);
    }
    output::begin_stage("comparing");
    let same = bisimilar(&in_order(a.clone()), &in_order(b.clone()));
    match session.common.format {
        Format::Json => {
            let of = |path: &Path, s: &ProbabilisticSystem| json!({ "file": path.display().to_string(), "states": s.state_count(), "transitions": s.step_count() });
            output::print_object(json!({
                "equivalence": EQUIVALENCE,
                "preorder": null,
                "verdict": same.to_string(),
                "difference": null,
                "confirmed": false,
                "a": of(&args.a, &a),
                "b": of(&args.b, &b),
                "seconds": start.elapsed().as_secs_f64(),
                "peak_memory_bytes": session.peak_memory(),
                "stop": Stop::Complete.word(),
            }))?;
        }
        Format::Text => print(&format!(
            "{}equivalent ({EQUIVALENCE} bisimulation)\n",
            if same { "" } else { "not " }
        ))?,
    }
    Ok(u8::from(!same))
}
