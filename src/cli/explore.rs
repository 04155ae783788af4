//! `explore`: the transition system of a model, counted, reduced, written.

use super::args::{ExploreArgs, Format, Reduce};
use super::checkpoint;
use super::files::{Form, expect_lts_name, read_lts, write_lts};
use super::pipeline::Session;
use super::print;
use super::progress::{Bar, grouped};
use crate::base::{Diagnostic, Stage, Stop};
use crate::explore;
use crate::lts::reduce::{Equivalence, reduce};
use serde_json::json;
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

struct Counts {
    states: u64,
    transitions: u64,
    deadlocks: u64,
    stop: Stop,
}

pub(super) fn run(session: &mut Session, args: &ExploreArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if let Some(out) = &args.out {
        expect_lts_name("--out ", out)?;
    }
    let relabel = args.relabelling.relabel()?;
    let keep = args.out.is_some() || args.reduce.is_some() || !relabel.is_empty();
    if (keep || Form::of(&args.model).is_lts()) && (args.checkpoint.is_some() || args.resume.is_some()) {
        let message = "`--checkpoint` and `--resume` are for the counts of a specification's states, without `--hide` and `--rename`";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let (counts, lts) = if Form::of(&args.model).is_lts() {
        let lts = read_lts(&args.model)?;
        let deadlocks = lts.offsets.windows(2).filter(|w| w[0] == w[1]).count() as u64;
        let counts =
            Counts { states: lts.state_count() as u64, transitions: lts.transition_count() as u64, deadlocks, stop: Stop::Complete };
        (counts, Some(lts))
    } else {
        let model = session.model(&args.model, &args.confluence)?;
        let options = explore::Options { threads: session.threads(), ..Default::default() }.with_confluence_of(&model);
        let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
        let (outcome, lts) = if keep {
            explore::explore_lts(&model, &options, &session.budget, &bar).map(|(o, l)| (o, Some(l)))?
        } else {
            let restored = args.resume.as_deref().map(|folder| checkpoint::restore(&model, folder)).transpose()?;
            if let Some(restored) = &restored {
                session.say(format!("goes on from {} states", grouped(restored.states())));
            }
            let folder = args.checkpoint.as_ref().or(args.resume.as_ref());
            let keep = |folder| checkpoint::Folder::new(&model, folder, args.checkpoint_every, session.common.verbose > 0);
            let folder = folder.map(|f| keep(f)).transpose()?;
            let keeper = folder.as_ref().map(|f| f as &dyn explore::Keeper);
            explore::explore_kept(&model, &options, &session.budget, &bar, keeper, restored).map(|o| (o, None))?
        };
        bar.finish();
        session.say(format!(
            "explored {} states, {} transitions, {} levels in {:.3} s; state store {} bytes",
            grouped(outcome.states),
            grouped(outcome.transitions),
            outcome.levels,
            outcome.elapsed.as_secs_f64(),
            grouped(outcome.store_bytes)
        ));
        session.say(format!("packed states: {} bits; values of the parts: {:?}", outcome.key_bits, outcome.part_values));
        session.say(format!("caches: {:?}", outcome.cache));
        let counts = Counts { states: outcome.states, transitions: outcome.transitions, deadlocks: outcome.deadlocks, stop: outcome.stop };
        (counts, lts)
    };
    let complete = counts.stop == Stop::Complete;
    let mut reduced = None;
    if complete {
        let mut result = match lts {
            Some(lts) => relabel.apply([lts])?.into_iter().next(),
            None => None,
        };
        if let (Some(how), Some(lts)) = (args.reduce, &result) {
            let begin = Instant::now();
            let quotient = reduce(lts, how.equivalence(), session.threads());
            session.say(format!("reduced modulo {} in {:.3} s", how.equivalence().name(), begin.elapsed().as_secs_f64()));
            reduced = Some((how.equivalence().name(), quotient.state_count(), quotient.transition_count()));
            result = Some(quotient);
        }
        if let (Some(path), Some(lts)) = (&args.out, &result) {
            write_lts(lts, path)?;
            session.say(format!("wrote {}", path.display()));
        }
    } else if keep {
        session.say("incomplete: nothing is reduced or written");
    }
    let seconds = start.elapsed().as_secs_f64();
    match session.common.format {
        Format::Json => {
            let mut object = json!({
                "states": counts.states,
                "transitions": counts.transitions,
                "deadlocks": counts.deadlocks,
                "seconds": seconds,
                "peak_memory_bytes": session.peak_memory(),
                "stop": counts.stop.word(),
            });
            if let Some((name, states, transitions)) = reduced {
                object["reduced"] = json!({ "equivalence": name, "states": states, "transitions": transitions });
            }
            print(&format!("{object}\n"))?;
        }
        Format::Text => {
            let mut text =
                format!("states       {}\ntransitions  {}\ndeadlocks    {}\n", counts.states, counts.transitions, counts.deadlocks);
            if let Some((name, states, transitions)) = reduced {
                text += &format!("reduced      {states} states, {transitions} transitions modulo {name} bisimulation\n");
            }
            if !complete {
                text += &format!("stopped      {}\n", counts.stop.word());
            }
            text += &format!("seconds      {seconds:.3}\npeak memory  {} MiB\n", session.peak_memory() >> 20);
            print(&text)?;
        }
    }
    Ok(if complete { 0 } else { 3 })
}
