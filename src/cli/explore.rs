//! `explore`: the transition system of a model, counted, reduced, written.

use super::args::{Engine, ExploreArgs, Reduce};
use super::checkpoint;
use super::counts::Report;
use super::files::{Form, expect_lts_name, expect_writable, read_lts, write_lts};
use super::output;
use super::pipeline::Session;
use super::progress::{Bar, grouped};
use crate::base::{Budget, Diagnostic, Stage, Stop};
use crate::compile::Compiled;
use crate::explore;
use crate::lts::reduce::{Equivalence, reduce};
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
    if Form::of(&args.model).is_lts() {
        session.expect_no_parameters(&args.model)?;
        if args.confluence != "none" {
            let message =
                format!("`--confluence` is for the hidden steps of a specification; `{}` is a transition system", args.model.display());
            return Err(Diagnostic::new(Stage::Usage, message));
        }
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
    let relabel = args.relabelling.relabel()?;
    let keep = args.out.is_some() || args.reduce.is_some() || !relabel.is_empty();
    if (keep || Form::of(&args.model).is_lts()) && args.keeping.is_wanted() {
        let message = "`--checkpoint` and `--resume` are for the counts of a specification's states, without `--hide` and `--rename`";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let (mut report, lts) = if Form::of(&args.model).is_lts() {
        let lts = read_lts(&args.model)?;
        let deadlocks = lts.offsets.windows(2).filter(|w| w[0] == w[1]).count() as u64;
        (Report::explicit(lts.state_count() as u64, lts.transition_count() as u64, deadlocks, Stop::Complete), Some(lts))
    } else {
        let model = session.model(&args.model, &args.confluence)?;
        let options = session.explore_options(&model, &args.confluence, &args.without);
        let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
        let (outcome, lts) = if keep {
            explore::explore_lts(&model, &options, &session.budget, &bar).map(|(o, l)| (o, Some(l)))?
        } else {
            let restored = args.keeping.resume.as_deref().map(|folder| checkpoint::restore_counts(&model, folder)).transpose()?;
            if let Some(restored) = &restored {
                session.say(format!("goes on from {} states", grouped(restored.states())));
            }
            let keep = |folder| checkpoint::Folder::new(&model, folder, args.keeping.checkpoint_every, session.common.verbose > 0);
            let folder = args.keeping.folder().map(keep).transpose()?;
            let file = folder.as_ref().map(checkpoint::Folder::counts);
            let keeper = file.as_ref().map(|f| f as &dyn explore::Keeper);
            explore::explore_kept(&model, &options, &session.budget, &bar, keeper, restored).map(|o| (o, None))?
        };
        bar.finish();
        (told(session, args, &outcome), lts)
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
    report.print(session, start)
}

/// Counts the states of a model one by one.
pub(super) fn counted(session: &Session, args: &ExploreArgs, model: &Compiled, budget: &Budget) -> Result<Report, Diagnostic> {
    let options = session.explore_options(model, &args.confluence, &args.without);
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let outcome = explore::explore(model, &options, budget, &bar)?;
    bar.finish();
    Ok(told(session, args, &outcome))
}

fn told(session: &Session, args: &ExploreArgs, outcome: &explore::Outcome) -> Report {
    session.say_symmetries(outcome.symmetries, &args.without);
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
