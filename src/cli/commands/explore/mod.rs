//! Exploration of a model: counting, reduction, and output (`explore`).

pub(crate) mod counts;
pub(crate) mod find_path;
pub(crate) mod murphi;
mod murphi_evidence;
mod murphi_proof;
pub(crate) mod plan;

use crate::args::{ExploreArgs, Format, Modulo, Reduction, SetStrategy};
use crate::commands::chance;
use crate::commands::explore::counts::ExplorationReport;
use crate::commands::explore::plan::Exploration;
use crate::output;
use crate::output::answers;
use crate::output::notes;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::checkpoint;
use crate::pipeline::cluster;
use crate::pipeline::engines;
use crate::pipeline::files::{
    declared_actions, expect_lts_name, expect_writable, relabel_systems, write_lts,
};
use crate::pipeline::folder_lock::Locks;
use crate::pipeline::load::{Loaded, typed_labels};
use crate::pipeline::memory;
use crate::pipeline::{self, Session, file_error};
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop};
use mu_engines::auto::{self, Auto};
use mu_engines::explicit::Explicit;
use mu_engines::{CountResult, Detail, Engine, EngineOptions, EngineTask};
use mu_explore::SpillCounts;
use mu_frontends::FrontEnd as _;
use mu_frontends::programs::LITMUS;
use mu_lts::equivalence::reduce;
use mu_model::Model;
use std::sync::Arc;

pub(crate) fn run(session: &mut Session, args: &ExploreArgs) -> Result<u8, Diagnostic> {
    run_plan(session, &Exploration::new(args))
}

/// Runs an exploration and reports it.
pub(crate) fn run_plan(session: &mut Session, args: &Exploration) -> Result<u8, Diagnostic> {
    if let Some(path) = args.timings.as_ref().filter(|_| args.distribution.reports()) {
        expect_writable(path)?;
        output::write_timings_to(path);
    }
    if session.relabel.is_empty() && crate::commands::explore::murphi::applies(args) {
        return crate::commands::explore::murphi::explore(session, args, Instant::now());
    }
    crate::commands::explore::murphi::expect_no_deadlocks(args)?;
    if args.goal.kind().is_none() && (args.goal.evidence.is_some() || args.junit.is_some()) {
        let message = "`--evidence` and `--junit` of a Murphi model (.m) are for the check of its claims, without options for other searches";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    memory::read_interface(session, &args.model, args.goal.interface.as_deref())?;
    if let Some(out) = &args.out {
        expect_lts_name("--out ", out)?;
        expect_writable(out)?;
    }
    let start = Instant::now();
    if args.strategy.is_some() && args.engine.name() == Explicit.name() {
        return Err(Diagnostic::new(
            Stage::Usage,
            "`--strategy` is for `--engine symbolic` and `auto`",
        ));
    }
    engines::expect_supported(args.engine, &engines::capabilities_of_explore(args))?;
    cluster::expect_possible(args, session.common.threads)?;
    let result = by_engine(session, args, start);
    match result {
        // The answers so far are printed.
        Err(error) if error.stop.is_some() && answers::is_set() => Err(error),
        // A limit was reached before the search began.
        Err(Diagnostic { stop: Some(stop), .. }) => {
            let restored = output::recorded_figure("states").and_then(|n| n.as_u64());
            if let (None, Some(folder)) = (restored, &args.checkpoints.resume) {
                let note = format!("the checkpoint in `{}` was not read yet", folder.display());
                return Err(Diagnostic::stopped(stop).note(note));
            }
            ExplorationReport {
                transitions: None,
                deadlocks: None,
                ..ExplorationReport::explicit(restored.unwrap_or(0), 0, 0, stop)
            }
            .print(session, start)
        }
        result => result,
    }
}

/// Loads the model and checks that it has the actions of the given interface.
fn load(session: &mut Session, args: &Exploration, confluence: &str) -> Result<Loaded, Diagnostic> {
    let loaded = session.load_any(&args.model, confluence)?;
    memory::expect_actions(session, &args.model, args.goal.interface.is_some(), &loaded)?;
    Ok(loaded)
}

/// Switches symmetry reduction off if a condition defines terminations: it may distinguish states
/// of one orbit.
fn without_symmetry_if_needed(args: &Exploration, loaded: &Loaded) -> Exploration {
    let is_action = |text: &String| loaded.actions.iter().any(|a| a.name == *text);
    let without =
        if args.goal.terminal.iter().all(is_action) { None } else { Some(Reduction::Symmetry) };
    Exploration { without: args.without.iter().copied().chain(without).collect(), ..args.clone() }
}

/// Counts with the chosen engine; writes, reduces and reports as requested.
fn by_engine(session: &mut Session, args: &Exploration, start: Instant) -> Result<u8, Diagnostic> {
    if args.goal.kind().is_some() {
        // A path has the new labels, so they are changed while the model is read.
        if session.relabel.is_empty() {
            session.relabel = args.relabelling.relabel()?;
        }
        let loaded = load(session, args, "none")?;
        if loaded.model.is_probabilistic() {
            return chance::explore(session, args, &loaded, start);
        }
        return find_path::run(session, &without_symmetry_if_needed(args, &loaded), &loaded);
    }
    let relabel = args.relabelling.relabel()?;
    let keep = args.out.is_some() || args.reduce.is_some() || !relabel.is_empty();
    let mut loaded = load(session, args, &args.confluence)?;
    murphi::warn_of_claims(session, args);
    if loaded.stored.is_none() {
        mu_base::host::leave(loaded.labels.clone());
    }
    if loaded.model.is_probabilistic() || args.reduce == Some(Modulo::Probabilistic) {
        return chance::explore(session, args, &loaded, start);
    }
    let args = &without_symmetry_if_needed(args, &loaded);
    if args.spill.is_some() && (keep || loaded.stored.is_some() || args.checkpoints.is_requested())
    {
        let message = "`--spill` is for the counts of a specification's states, without `--out`, `--reduce`, `--hide`, `--rename`, `--checkpoint` and `--resume`";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    if (keep || loaded.stored.is_some()) && args.checkpoints.is_requested() {
        let message = "`--checkpoint` and `--resume` are for the counts of a specification's states, without `--hide` and `--rename`";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    if args.distribution.is_requested() {
        return match cluster::run(session, args, &loaded)? {
            Ok(report) => {
                let warnings = notes::report_flaws(session, &*loaded.model)?;
                let stop = session.stop_with_bounds(report.stop);
                ExplorationReport { warnings, stop, ..report }.print(session, start)
            }
            Err(code) => Ok(code),
        };
    }
    let mut deadlock_path = None;
    let mut typed = None;
    let (mut report, lts) = if let Some(lts) = loaded.stored.take() {
        typed = args.out.as_deref().and_then(|out| typed_labels(&loaded, out, &relabel));
        drop(loaded);
        let lts = Arc::unwrap_or_clone(lts);
        // As of any model, the reachable states are counted; a file may have others.
        let reachable = mu_lts::tau::reachable_states(&lts);
        let ends = Some(find_path::stored_ends(&lts, &reachable, &args.goal.terminal)?);
        let [lts] = relabel_systems(session, &relabel, [lts], &[None])?;
        let degrees = lts.offsets.windows(2).zip(&reachable).filter(|(_, r)| **r);
        let degrees: Vec<u64> = degrees.map(|(w, _)| w[1] - w[0]).collect();
        let states = degrees.len() as u64;
        let deadlocks = degrees.iter().filter(|d| **d == 0).count() as u64;
        let report = ExplorationReport {
            unreachable: lts.state_count() as u64 - states,
            ..ExplorationReport::explicit(states, degrees.iter().sum(), deadlocks, Stop::Complete)
        };
        // There is nothing to search; `auto` still reports a reason.
        let reason = if args.engine.name() == Auto.name() {
            auto::explicit_requirement(&engines::capabilities_of_explore(args))
        } else {
            None
        };
        (ExplorationReport { reason, ends, ..report }, Some(lts))
    } else {
        let model = &*loaded.model;
        let mut counter = find_path::EndCounter::new(model, &args.goal.terminal)?;
        let mut counted = count_states(session, args, model, counter.as_mut())?;
        // The counts are known: a limit that ended the search does not apply to their output.
        let grace = session.budget.grace();
        let mut warnings = notes::report_flaws(session, model)?;
        if let Detail::Explicit(outcome) = &counted.detail {
            warnings.extend(notes::report_growth(session, model, &outcome.slot_values));
        }
        let symmetries = match &counted.detail {
            Detail::Explicit(outcome) => Some(pipeline::symmetries(
                model.is_priority_proven(),
                outcome.symmetries,
                &args.without,
                &outcome.dropped,
            )),
            Detail::Symbolic(_) => None,
        };
        let ends = counter.filter(|_| counted.shown_ends).map(find_path::EndCounter::ends);
        let hangs = ends.is_some_and(|e| e.hangs + e.finished > 0)
            && args.shows_deadlock
            && session.common.format == Format::Text;
        drop(grace);
        let mut lts = counted.lts.take();
        if let Some(explored) = lts.take_if(|_| counted.stop == Stop::Complete) {
            typed = args.out.as_deref().and_then(|out| typed_labels(&loaded, out, &relabel));
            let declared = declared_actions(&loaded);
            let [explored] = relabel_systems(session, &relabel, [explored], &[declared])?;
            counted.transitions = Some(explored.transition_count().into());
            lts = Some(explored);
        }
        let report = ExplorationReport {
            ends,
            warnings,
            symmetries,
            ..ExplorationReport::of(counted, args)
        };
        if hangs {
            report.register(session, start, "");
            deadlock_path = match find_path::shortest_deadlock(session, args, model) {
                Err(Diagnostic { stop: Some(_), .. }) => None,
                path => Some(path?),
            };
        }
        (report, lts)
    };
    report.register(session, start, deadlock_path.as_deref().unwrap_or_default());
    if report.stop == Stop::Complete {
        let mut result = lts;
        if let (Some(Modulo::Labelled(equivalence)), Some(lts)) = (args.reduce, &result) {
            let begin = Instant::now();
            output::begin_stage("reducing");
            let quotient = reduce(lts, equivalence, session.threads());
            session.log(format!(
                "reduced modulo {} in {:.3} s",
                equivalence.name(),
                begin.elapsed().as_secs_f64()
            ));
            report.reduced =
                Some((equivalence.name(), quotient.state_count(), quotient.transition_count()));
            result = Some(quotient);
        }
        if let (Some(path), Some(lts)) = (&args.out, &result) {
            output::begin_stage("writing");
            write_lts(lts, typed.as_ref(), path)?;
            session.log(format!("wrote {}", path.display()));
        }
    } else if keep {
        session.log("incomplete search: nothing is reduced or written");
    }
    finish(session, args, report, start, deadlock_path)
}

/// Prints the counts, followed by the path to a deadlock.
fn finish(
    session: &Session,
    args: &Exploration,
    mut report: ExplorationReport,
    start: Instant,
    deadlock_path: Option<String>,
) -> Result<u8, Diagnostic> {
    if LITMUS.has_ending(&args.model)
        && session.common.format == Format::Text
        && !session.common.quiet
    {
        eprintln!(
            "note: these are the states of the program; run `mu-check litmus {}` for the verdict of the test",
            args.model.display()
        );
    }
    report.stop = session.stop_with_bounds(report.stop);
    report.register(session, start, deadlock_path.as_deref().unwrap_or_default());
    answers::finish(session.common.format)
}

/// Counts the states of a model with the chosen engine. `counter`: receives the states without
/// outgoing transitions.
fn count_states(
    session: &Session,
    args: &Exploration,
    model: &dyn Model,
    counter: Option<&mut find_path::EndCounter<'_>>,
) -> Result<CountResult, Diagnostic> {
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let options = EngineOptions {
        strategy: args.strategy.map_or_else(Default::default, SetStrategy::strategy),
        progress: &bar,
        ..EngineOptions::new(session.explore_options(model, &args.without))
    };
    let locks = Locks::of_checkpoints(&args.checkpoints)?;
    let restored = args
        .checkpoints
        .resume
        .as_deref()
        .map(|folder| checkpoint::restore_counts(model, folder))
        .transpose()?
        .flatten();
    if let Some(restored) = &restored {
        session.log(format!("resumes from {} states", group_digits(restored.states())));
        output::record("states", restored.states().into());
    }
    let keep = |folder| {
        checkpoint::Folder::new(
            model,
            folder,
            args.checkpoints.checkpoint_every,
            session.common.verbose > 0,
            locks,
        )
    };
    let folder = args.checkpoints.folder().map(keep).transpose()?;
    if let Some(folder) = folder.as_ref().filter(|_| restored.is_none()) {
        folder.mark()?;
    }
    let file = folder.as_ref().map(checkpoint::Folder::counts);
    let checkpoints = file.as_ref().map(|f| f as &dyn mu_explore::CheckpointWriter);
    let mut shown =
        counter.filter(|_| restored.is_none()).map(|c| |state: &[u32], n| c.count(state, n));
    let ends = shown.as_mut().map(|e| e as &mut dyn FnMut(&[u32], u64));
    if let Some(folder) = &args.spill {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
    }
    let spill = args.spill.as_deref().map(|folder| mu_explore::Spill { folder, most: None });
    let extras = mu_explore::CountExtras { checkpoints, restored, ends, spill };
    let task = EngineTask {
        capabilities: &engines::capabilities_of_explore(args),
        options: &options,
        budget: &session.budget,
    };
    let counted = args.engine.count(model, task, extras)?;
    bar.finish();
    match &counted.detail {
        Detail::Explicit(outcome) => log_search(session, args, outcome),
        Detail::Symbolic(outcome) => engines::log_diagrams(session, model, outcome),
    }
    Ok(counted)
}

fn log_search(session: &Session, args: &Exploration, outcome: &mu_explore::Outcome) {
    session.log_symmetries(outcome.symmetries, &args.without, &outcome.dropped);
    session.log(format!(
        "explored {} states ({} stored), {} transitions, {} levels in {:.3} s; state store {} bytes",
        group_digits(outcome.states),
        group_digits(outcome.stored),
        group_digits(outcome.transitions),
        outcome.levels,
        outcome.elapsed.as_secs_f64(),
        group_digits(outcome.store_bytes)
    ));
    if outcome.spilled.flushes > 0 {
        let SpillCounts { flushes, bytes, written, read, .. } = outcome.spilled;
        session.log(format!(
            "spilled {flushes} times: at most {} bytes on disk, {} written, {} read",
            group_digits(bytes),
            group_digits(written),
            group_digits(read)
        ));
    }
    session.log(format!(
        "packed states: {} bits; values of the parts: {:?}",
        outcome.key_bits, outcome.part_values
    ));
    session.log(format!("caches: {:?}", outcome.cache));
}
