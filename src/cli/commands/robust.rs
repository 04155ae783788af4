//! Robustness of a program against store buffers, and fences that make it robust (`robust`).
//!
//! Robustness compares executions that end with empty store buffers: registers and `eip` at their
//! end. Assertions on memory depend on buffered stores, so they are searched under total store
//! order as well.
//!
//! Exit code: 0 robust (with `--fences`: fences that make it robust were found), 1 not robust or,
//! with `--assert`, unsafe, 2 bad input, 3 unknown (a limit).

use crate::args::RobustArgs;
use crate::commands::program::{read_any, read_asserted, steps_json, table};
use crate::output;
use crate::output::answers;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop};
use mu_frontends::FrontEnd as _;
use mu_frontends::programs::LITMUS;
use mu_program::machine::Machine;
use mu_program::nasm::X86Program;
use mu_program::property::Property;
use mu_program::{Program, memory};
use mu_safety::count::{Count, Counting, count};
use mu_safety::fences::{self, Fences, Repair, RepairPlace};
use mu_safety::reach::{self, Interleaving, ReachResult, Safety};
use mu_safety::robust::{self, Borderline, Robustness};
use serde_json::{Value, json};
use std::fmt::Write;

/// Results of all requested analyses.
struct RobustnessAnswer {
    found: Robustness,
    way: Option<(Machine, Interleaving)>,
    /// True if assertions were checked.
    asserted: bool,
    unsafe_way: Option<(Machine, Interleaving)>,
    /// Search under total store order, if an assertion compares memory.
    under_tso: Option<ReachResult>,
    /// True if that search is needed and has no result yet.
    open_tso: bool,
    count: Option<Count>,
    fences: Option<Fences>,
    /// True if fences were requested.
    wants_fences: bool,
    start: Instant,
}

pub(crate) fn run(session: &mut Session, args: &RobustArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    output::begin_stage("checking robustness");
    let asserted = if args.assert { Some(with_assertions(session, args)?) } else { None };
    let program = match &asserted {
        Some(program) => program.program.clone(),
        None => read_any(session, &args.file, args.threads_of)?,
    };
    let first = args.first.map(|t| t as usize);
    if let Some(first) = first.filter(|t| *t >= program.threads.len()) {
        let message = format!(
            "`--first {first}`: the program has the threads 0 to {}",
            program.threads.len() - 1
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let found = match &asserted {
        Some(program) => robust::check_with_assertions(program, &session.budget)?,
        None => robust::check(&program, &session.budget)?,
    };
    let mut answer = RobustnessAnswer {
        asserted: args.assert,
        found,
        way: None,
        unsafe_way: None,
        open_tso: false,
        under_tso: None,
        count: None,
        fences: None,
        wants_fences: args.fences,
        start,
    };
    // What a limit loses is only what is not known yet: each answer is registered at once.
    let register = |answer: &RobustnessAnswer| {
        let text = as_text(session, &program, answer);
        answers::set_complete(as_json(session, &program, answer), text, code(answer));
    };
    {
        let _grace = session.budget.grace();
        let borderline = answer.found.borderline.as_ref();
        answer.way = borderline.map(|b| robust::replay(&program, b)).transpose()?;
        if let (Some(program), Some(way)) = (&asserted, &answer.found.unsafe_state) {
            answer.unsafe_way = Some(robust::replay_unsafe(program, way)?);
        }
    }
    let reads_memory =
        |program: &&X86Program| program.unsafe_states.iter().any(Property::reads_memory);
    let searched = asserted.as_ref().filter(reads_memory);
    let searched = searched.filter(|_| answer.found.unsafe_state.is_none());
    answer.open_tso = searched.is_some();
    register(&answer);
    if let Some(program) = searched {
        output::begin_stage("searching under total store order");
        let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
        let reached =
            reach::reach(program, memory::TSO, None, session.threads(), &session.budget, &bar)?;
        bar.finish();
        answer.under_tso = Some(reached);
        answer.open_tso = false;
        register(&answer);
    }
    if args.count {
        output::begin_stage("counting interleavings");
        let counting = Counting { preemptions: args.preemptions, first, starts: args.starts };
        answer.count = Some(count(&program, counting, &session.budget)?);
        register(&answer);
    }
    if args.fences {
        output::begin_stage("searching for fences");
        answer.fences = Some(fences::smallest(&program, &session.budget)?);
    }
    register(&answer);
    answers::finish(session.common.format)
}

/// Returns the exit code.
fn code(answer: &RobustnessAnswer) -> u8 {
    let made = answer.fences.as_ref().map(|f| f.places.is_some());
    let made = made.or(answer.wants_fences.then_some(false));
    match (made, answer.found.robust()) {
        _ if answer.asserted && safety(answer).0 == Safety::Unsafe => 1,
        _ if (answer.under_tso.is_some() || answer.open_tso)
            && safety(answer).0 == Safety::Unknown =>
        {
            3
        }
        (Some(true), _) | (None, Some(true)) => 0,
        (None, Some(false)) => 1,
        _ => 3,
    }
}

/// Reads a program with a section of unsafe states.
fn with_assertions(session: &mut Session, args: &RobustArgs) -> Result<X86Program, Diagnostic> {
    if LITMUS.has_ending(&args.file) {
        return Err(Diagnostic::new(
            Stage::Usage,
            "`--assert` is for programs: a litmus test has no section `unsafe_prop`",
        ));
    }
    read_asserted(session, &args.file, args.threads_of)
}

/// Returns the verdict on the assertions, and true if it holds under total store order.
///
/// An unsafe state under sequential consistency is also unsafe under total store order. The
/// converse holds for a robust program if the assertions compare only registers and control
/// locations: emptying the buffers preserves these. Assertions on memory are searched under total
/// store order.
fn safety(answer: &RobustnessAnswer) -> (Safety, bool) {
    match (&answer.found.unsafe_state, &answer.under_tso, &answer.found.stop) {
        (Some(_), ..) => (Safety::Unsafe, true),
        _ if answer.open_tso => (Safety::Unknown, true),
        (None, Some(reached), _) => (reached.safety, true),
        (None, None, Stop::Complete) => (Safety::Safe, answer.found.robust() == Some(true)),
        _ => (Safety::Unknown, false),
    }
}

/// Returns the interleaving to an unsafe state, and the machine that ran it.
fn unsafe_interleaving(answer: &RobustnessAnswer) -> Option<(&Machine, &Interleaving)> {
    let searched = || {
        answer.under_tso.as_ref().and_then(|r| r.interleaving.as_ref().map(|way| (&r.machine, way)))
    };
    answer.unsafe_way.as_ref().map(|(machine, way)| (machine, way)).or_else(searched)
}

fn word(robust: Option<bool>) -> &'static str {
    match robust {
        Some(true) => "robust",
        Some(false) => "not robust",
        None => "unknown",
    }
}

/// Returns the text of the instruction at a control location.
fn instruction<'p>(program: &'p Program, place: &RepairPlace) -> &'p str {
    let mut all = program.threads.iter().flat_map(|t| &t.instructions);
    all.find(|i| i.span == place.before).map_or("", |i| i.text.as_str())
}

fn stale(program: &Program, b: &Borderline) -> String {
    let (thread, cell) = (&program.threads[b.thread].name, &program.cells[b.cell]);
    let (old, new) = (cell.width.to_signed(b.stale), cell.width.to_signed(b.newest));
    format!(
        "the last load takes {}={new}; with a store buffer {thread} may take the older {}={old}",
        cell.name, cell.name
    )
}

fn as_text(session: &Session, program: &Program, answer: &RobustnessAnswer) -> String {
    let found = &answer.found;
    let mut out = format!(
        "verdict        {}\nthreads        {}\n",
        word(found.robust()),
        program.threads.len()
    );
    if answer.asserted {
        let (safety, tso) = safety(answer);
        let under = match (&answer.under_tso, safety, tso) {
            (Some(_), ..) => "total store order",
            _ if answer.open_tso => "total store order",
            (None, Safety::Unsafe | Safety::Safe, true) => {
                "sequential consistency, hence under total store order"
            }
            _ => "sequential consistency",
        };
        let _ = writeln!(out, "assertions     {} under {under}", safety.word());
        if let Some(reached) = &answer.under_tso {
            let bound = if reached.bound_reached { ", a store buffer was full" } else { "" };
            let _ = writeln!(out, "tso states     {}{bound}", group_digits(reached.states));
        }
    }
    let _ = writeln!(out, "states         {}", group_digits(found.states));
    if found.stop != Stop::Complete {
        let _ = writeln!(out, "stopped        {}", found.stop.word());
    }
    if let Some(c) = &answer.count {
        let more = if c.stop == Stop::Complete { "" } else { "more than " };
        let _ = writeln!(out, "interleavings  {more}{}", group_digits(c.interleavings));
        let _ = writeln!(
            out,
            "borderline     {more}{}\nrecurring      {more}{}",
            group_digits(c.borderline),
            group_digits(c.recurring)
        );
    }
    let _ = writeln!(
        out,
        "seconds        {:.3}\npeak memory    {} MiB",
        answer.start.elapsed().as_secs_f64(),
        session.peak_memory() >> 20
    );
    if let (Some(b), Some((machine, way))) = (&found.borderline, &answer.way) {
        let _ = write!(out, "\nborderline interleaving\n{}", table(machine, way));
        let _ = writeln!(out, "{}", stale(program, b));
    }
    if let Some((machine, way)) = unsafe_interleaving(answer) {
        let _ = write!(out, "\ninterleaving to an unsafe state\n{}", table(machine, way));
    }
    if let Some(f) = &answer.fences {
        let _ = match &f.places {
            Some(places) if places.is_empty() => writeln!(out, "\nno fences are needed"),
            Some(places) => {
                let count = |r: Repair| (places.iter().filter(|p| p.repair == r).count(), r.word());
                let parts =
                    [Repair::Lock, Repair::Fence].map(count).into_iter().filter(|c| c.0 > 0);
                let parts: Vec<String> = parts.map(|(n, word)| format!("{n} {word}")).collect();
                let _ = writeln!(out, "\nrobust with {} (a minimum set)", parts.join(" and "));
                places.iter().try_for_each(|p| {
                    let (line, column) = session.sources.line_column(p.before);
                    let file = &session.sources.get(p.before.source).name;
                    writeln!(
                        out,
                        "  {file}:{line}:{column}: {} before `{}`",
                        p.repair.word(),
                        instruction(program, p)
                    )
                })
            }
            None => writeln!(out, "\nfences were not found: {}", f.stop.word()),
        };
        let proof = f.proof.as_ref().map_or(0, |p| p.states);
        let _ = writeln!(
            out,
            "{} places, {} checks, {} states in the last one",
            f.candidates,
            f.checks,
            group_digits(proof)
        );
    }
    out
}

fn as_json(session: &Session, program: &Program, answer: &RobustnessAnswer) -> Value {
    let found = &answer.found;
    let mut object = json!({
        "verdict": output::verdict_word(word(found.robust())),
        "property": word(found.robust()),
        "threads": program.threads.len(),
        "states": found.states,
        "stop": found.stop.word(),
        "seconds": answer.start.elapsed().as_secs_f64(),
        "peak_memory_bytes": session.peak_memory(),
    });
    if let (Some(b), Some((machine, way))) = (&found.borderline, &answer.way) {
        let cell = &program.cells[b.cell];
        object["borderline"] = json!({
            "steps": steps_json(machine, &way.steps),
            "thread": program.threads[b.thread].name,
            "cell": cell.name,
            "newest": cell.width.to_signed(b.newest),
            "stale": cell.width.to_signed(b.stale),
        });
    }
    if answer.asserted {
        let (safety, tso) = safety(answer);
        object["assertions"] =
            json!({ "property": safety.word(), "model": if tso { "tso" } else { "sc" } });
        if let Some(reached) = &answer.under_tso {
            object["assertions"]["tso_states"] = json!(reached.states);
            object["assertions"]["bound_reached"] = json!(reached.bound_reached);
        }
        if let Some((machine, way)) = unsafe_interleaving(answer) {
            object["assertions"]["interleaving"] = steps_json(machine, &way.steps);
        }
    }
    if let Some(c) = &answer.count {
        object["count"] = json!({
            "interleavings": c.interleavings,
            "borderline": c.borderline,
            "recurring": c.recurring,
            "stop": c.stop.word(),
        });
    }
    if let Some(f) = &answer.fences {
        let places = f.places.as_ref().map(|places| {
            let one = |p: &RepairPlace| {
                let (line, column) = session.sources.line_column(p.before);
                json!({ "line": line, "column": column, "put": p.repair.word(), "before": instruction(program, p) })
            };
            places.iter().map(one).collect::<Vec<_>>()
        });
        object["fences"] = json!({ "places": places, "candidates": f.candidates, "checks": f.checks, "stop": f.stop.word() });
    }
    object
}
