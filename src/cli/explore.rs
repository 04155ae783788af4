//! `explore`: the transition system of a model, counted, reduced, written.

use super::args::{Engine, ExploreArgs, Format, Reduce};
use super::checkpoint;
use super::counts::Report;
use super::files::{expect_lts_name, expect_writable, write_lts};
use super::notes;
use super::output;
use super::pipeline::Session;
use super::print;
use super::progress::{Bar, grouped};
use super::ways;
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_lts::reduce::{Equivalence, reduce};
use mu_model::Model;
use std::sync::Arc;
use std::time::Instant;

impl Reduce {
    pub(super) fn equivalence(self) -> Equivalence {
        match self {
            Reduce::Strong => Equivalence::Strong,
            Reduce::Branching => Equivalence::Branching,
            Reduce::DivergenceBranching => Equivalence::DivergenceBranching,
            Reduce::Weak => Equivalence::Weak,
            Reduce::Trace => Equivalence::Trace,
            Reduce::WeakTrace => Equivalence::WeakTrace,
        }
    }
}

pub(super) fn run(session: &mut Session, args: &ExploreArgs) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.timings {
        expect_writable(path)?;
        output::time_stages(path);
    }
    if let Some(out) = &args.out {
        expect_lts_name("--out ", out)?;
        expect_writable(out)?;
    }
    let start = Instant::now();
    let result = match args.engine {
        Engine::Explicit if args.strategy.is_some() => {
            Err(Diagnostic::new(Stage::Usage, "`--strategy` is for `--engine symbolic` and `auto`"))
        }
        Engine::Explicit => explicit(session, args, None),
        Engine::Symbolic => super::symbolic::explore(session, args),
        Engine::Auto => super::symbolic::explore_by_either(session, args),
    };
    match result {
        // A limit was met before the search began.
        Err(Diagnostic { stop: Some(stop), .. }) => {
            Report { transitions: None, deadlocks: None, ..Report::explicit(0, 0, 0, stop) }.print(session, start)
        }
        result => result,
    }
}

/// One state at a time. `reason`: why this engine, if that was to be found out.
pub(super) fn explicit(session: &mut Session, args: &ExploreArgs, reason: Option<String>) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if args.seeking.sought().is_some() {
        let loaded = session.load(&args.model, "none")?;
        return ways::run(session, args, &*loaded.model, loaded.stored.as_deref());
    }
    let relabel = args.relabelling.relabel()?;
    let keep = args.out.is_some() || args.reduce.is_some() || !relabel.is_empty();
    let loaded = session.load(&args.model, &args.confluence)?;
    if (keep || loaded.stored.is_some()) && args.keeping.is_wanted() {
        let message = "`--checkpoint` and `--resume` are for the counts of a specification's states, without `--hide` and `--rename`";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let mut way = None;
    let (mut report, lts) = if let Some(lts) = loaded.stored {
        drop(loaded.model);
        let lts = Arc::unwrap_or_clone(lts);
        let deadlocks = lts.offsets.windows(2).filter(|w| w[0] == w[1]).count() as u64;
        (Report::explicit(lts.state_count() as u64, lts.transition_count() as u64, deadlocks, Stop::Complete), Some(lts))
    } else {
        let model = &*loaded.model;
        let options = session.explore_options(model, &args.without);
        let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
        let mut counter = ways::Counter::new(model, &args.seeking.terminal);
        let (outcome, lts) = if keep {
            mu_explore::explore_lts(model, &options, &session.budget, &bar).map(|(o, l)| (o, Some(l)))?
        } else {
            let restored = args.keeping.resume.as_deref().map(|folder| checkpoint::restore_counts(model, folder)).transpose()?;
            if let Some(restored) = &restored {
                session.say(format!("resumes from {} states", grouped(restored.states())));
            }
            let keep = |folder| checkpoint::Folder::new(model, folder, args.keeping.checkpoint_every, session.common.verbose > 0);
            let folder = args.keeping.folder().map(keep).transpose()?;
            let file = folder.as_ref().map(checkpoint::Folder::counts);
            let keeper = file.as_ref().map(|f| f as &dyn mu_explore::Keeper);
            let whole = restored.is_none();
            let ends = counter.as_mut().filter(|_| whole).map(|c| |state: &[u32], n| c.count(state, n));
            let mut ends = ends;
            let ends = ends.as_mut().map(|e| e as &mut dyn FnMut(&[u32], u64));
            let extras = mu_explore::Extras { keeper, restored, ends };
            mu_explore::explore_with(model, &options, &session.budget, &bar, extras).map(|o| (o, None))?
        };
        bar.finish();
        let ends = if keep || args.keeping.resume.is_some() { None } else { counter.map(ways::Counter::ends) };
        let warnings = notes::tell_dead(session, model)?;
        let hangs = ends.is_some_and(|e| e.hangs > 0) && args.overview && session.common.format == Format::Text;
        way = hangs.then(|| ways::shortest_hang(session, args, model)).transpose()?;
        (Report { ends, warnings, ..told(session, args, &outcome) }, lts)
    };
    report.reason = reason;
    output::know("states", super::counts::number(&report.states));
    output::know("transitions", report.transitions.as_ref().map(super::counts::number).into());
    output::know("deadlocks", report.deadlocks.as_ref().map(super::counts::number).into());
    if report.stop == Stop::Complete {
        let mut result = match lts {
            Some(lts) => relabel.apply([lts])?.into_iter().next(),
            None => None,
        };
        if let (Some(how), Some(lts)) = (args.reduce, &result) {
            let begin = Instant::now();
            output::stage("reducing");
            let quotient = reduce(lts, how.equivalence(), session.threads());
            session.say(format!("reduced modulo {} in {:.3} s", how.equivalence().name(), begin.elapsed().as_secs_f64()));
            report.reduced = Some((how.equivalence().name(), quotient.state_count(), quotient.transition_count()));
            result = Some(quotient);
        }
        if let (Some(path), Some(lts)) = (&args.out, &result) {
            output::stage("writing");
            write_lts(lts, path)?;
            session.say(format!("wrote {}", path.display()));
        }
    } else if keep {
        session.say("incomplete: nothing is reduced or written");
    }
    let code = report.print(session, start)?;
    match way {
        Some(text) => print(&text).map(|()| code),
        None => Ok(code),
    }
}

/// Counts the states of a model one by one.
pub(super) fn counted(session: &Session, args: &ExploreArgs, model: &dyn Model, budget: &Budget) -> Result<Report, Diagnostic> {
    let options = session.explore_options(model, &args.without);
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let outcome = mu_explore::explore(model, &options, budget, &bar)?;
    bar.finish();
    Ok(told(session, args, &outcome))
}

fn told(session: &Session, args: &ExploreArgs, outcome: &mu_explore::Outcome) -> Report {
    session.say_symmetries(outcome.symmetries, &args.without, &outcome.dropped);
    session.say(format!(
        "explored {} states ({} stored), {} transitions, {} levels in {:.3} s; state store {} bytes",
        grouped(outcome.states),
        grouped(outcome.stored),
        grouped(outcome.transitions),
        outcome.levels,
        outcome.elapsed.as_secs_f64(),
        grouped(outcome.store_bytes)
    ));
    session.say(format!("packed states: {} bits; values of the parts: {:?}", outcome.key_bits, outcome.part_values));
    session.say(format!("caches: {:?}", outcome.cache));
    Report::explicit(outcome.states, outcome.transitions, outcome.deadlocks, outcome.stop.clone())
}
