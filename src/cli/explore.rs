//! `explore`: the transition system of a model, counted, reduced, written.

use super::args::{ExploreArgs, Format, Reduce};
use super::pipeline::{Session, file_error};
use super::print;
use super::progress::{Bar, grouped};
use crate::base::{Diagnostic, Stage, Stop};
use crate::explore;
use crate::lts::reduce::{Equivalence, reduce};
use crate::lts::{Lts, aut};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

impl Reduce {
    fn equivalence(self) -> Equivalence {
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

/// Whether a path names a transition system file.
pub(super) fn is_lts_file(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    name.ends_with(".aut") || name.ends_with(".aut.gz")
}

/// Reads an `.aut` file.
pub(super) fn read_lts(path: &Path) -> Result<Lts, Diagnostic> {
    let file = std::fs::File::open(path).map_err(|e| file_error("cannot read", path, &e))?;
    aut::read(file, &aut::AutOptions::default()).map_err(|mut d| {
        d.message = format!("{}: {}", path.display(), d.message);
        d
    })
}

/// Writes an `.aut` file beside its final name, then renames it, so that no half-written file has the name.
fn write_lts(lts: &Lts, path: &Path) -> Result<(), Diagnostic> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = std::path::PathBuf::from(beside);
    let result = (|| {
        let file = std::fs::File::create(&beside).map_err(|e| file_error("cannot write", path, &e))?;
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz")) {
            aut::write_gz(lts, file)?
        } else {
            aut::write(lts, file)?
        }
        std::fs::rename(&beside, path).map_err(|e| file_error("cannot write", path, &e))
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result
}

struct Counts {
    states: u64,
    transitions: u64,
    deadlocks: u64,
    stop: Stop,
}

pub(super) fn run(session: &mut Session, args: &ExploreArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if let Some(out) = &args.out
        && !is_lts_file(out)
    {
        return Err(Diagnostic::new(Stage::Usage, format!("`--out {}`: expected a name that ends in .aut or .aut.gz", out.display())));
    }
    let keep = args.out.is_some() || args.reduce.is_some();
    let (counts, lts) = if is_lts_file(&args.model) {
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
            explore::explore(&model, &options, &session.budget, &bar).map(|o| (o, None))?
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
        let mut result = lts;
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
