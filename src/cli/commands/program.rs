//! Safety of an x86 program for a number of threads under a memory model (`program`).
//!
//! Exit code: 0 safe, 1 unsafe, 2 bad input, 3 unknown (a limit, or a full buffer).

use crate::args::{Format, MemoryName, ProgramArgs, ProofMemory, ProveArgs, ThreadCount};
use crate::output;
use crate::output::print;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::{Session, systems};
use mu_base::{Diagnostic, Stage, Stop};
use mu_frontends::Input;
use mu_frontends::programs::{LITMUS, X86};
use mu_program::Program;
use mu_program::machine::{Machine, MoveEffect};
use mu_program::nasm::X86Program;
use mu_safety::reach::{self, Interleaving, InterleavingStep, ReachResult, Safety};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Reads an x86 program or a litmus test.
pub(crate) fn read_any(
    session: &mut Session,
    path: &Path,
    threads: u32,
) -> Result<Program, Diagnostic> {
    let expected = "expected an x86 program (.asm) or a litmus test (.litmus)";
    systems::expect_language(path, &[&X86, &LITMUS], expected)?;
    mu_frontends::programs::program(&Input::file(path), threads, &mut session.sources)
}

/// Reads an x86 program with a section of unsafe states.
pub(crate) fn read_asserted(
    session: &mut Session,
    path: &Path,
    threads: u32,
) -> Result<X86Program, Diagnostic> {
    let expected = "expected an x86 program (.asm)";
    systems::expect_language(path, &[&X86], expected)?;
    let program = mu_frontends::programs::x86(&Input::file(path), threads, &mut session.sources)?;
    if program.unsafe_states.is_empty() { Err(without_claim(path)) } else { Ok(program) }
}

/// Builds the error for a program without a section of unsafe states.
pub(crate) fn without_claim(path: &Path) -> Diagnostic {
    let message = format!("`{}` has no section `unsafe_prop`", path.display());
    Diagnostic::new(Stage::Type, message)
        .note("this section describes the states that must not be reached")
}

pub(crate) fn run(session: &mut Session, args: &ProgramArgs) -> Result<u8, Diagnostic> {
    let threads = match args.threads_of {
        ThreadCount::Number(n) => n,
        ThreadCount::Any => {
            let expected = "expected an x86 program (.asm)";
            systems::expect_language(&args.file, &[&X86], expected)?;
            return any_number(session, args);
        }
    };
    let program = read_asserted(session, &args.file, threads)?;
    let memory = args.memory.model.model();
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let found = reach::reach(
        &program,
        memory,
        args.memory.buffer,
        session.threads(),
        &session.budget,
        &bar,
    )?;
    bar.finish();
    report(session, &program, &found, memory.name())?;
    Ok(match found.safety {
        Safety::Safe => 0,
        Safety::Unsafe => 1,
        Safety::Unknown => 3,
    })
}

/// Prints the result of a search.
pub(crate) fn report(
    session: &Session,
    program: &X86Program,
    found: &ReachResult,
    model: &str,
) -> Result<(), Diagnostic> {
    let seconds = session.budget.elapsed().as_secs_f64();
    match session.common.format {
        Format::Text => print(&as_text(session, program, found, model, seconds))?,
        Format::Json => output::print_object(as_json(session, program, found, model, seconds))?,
    }
    if found.bound_reached && found.safety != Safety::Unsafe && !session.common.quiet {
        let bound = found.machine.bound.unwrap_or(0);
        eprintln!(
            "warning: a store buffer was full at {bound} stores; behaviour that needs more capacity was not searched (--buffer)"
        );
    }
    Ok(())
}

/// Proves the program for every number of threads, as a system.
fn any_number(session: &mut Session, args: &ProgramArgs) -> Result<u8, Diagnostic> {
    let model = match args.memory.model {
        MemoryName::Tso => ProofMemory::Tso,
        MemoryName::Sc => ProofMemory::Sc,
        MemoryName::Pso => {
            let message = "any number of threads under partial store order is not supported, expected `sc` or `tso`";
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
    };
    if args.memory.buffer.is_some() {
        return Err(Diagnostic::new(
            Stage::Usage,
            "`--buffer` is for a fixed number of threads: a proof covers all buffers",
        ));
    }
    let args = ProveArgs {
        file: args.file.clone(),
        translation: args.translation.clone(),
        model,
        certificate: None,
        smt_lib: None,
        evidence: None,
        no_approximations: false,
        instances: 4,
        sampling: args.sampling.clone(),
        common: args.common.clone(),
    };
    crate::commands::threads::prove(session, &args, true)
}

fn chosen_threads(
    program: &X86Program,
    found: &ReachResult,
    way: &Interleaving,
) -> Vec<(String, String)> {
    let names = &program.unsafe_states[way.property].variables;
    names
        .iter()
        .zip(&way.threads)
        .map(|(v, &t)| (format!("${v}"), found.machine.program.threads[t].name.clone()))
        .collect()
}

fn as_text(
    session: &Session,
    program: &X86Program,
    found: &ReachResult,
    model: &str,
    seconds: f64,
) -> String {
    let m = &found.machine;
    let mut out = format!("verdict      {}\n", found.safety.word());
    let _ = writeln!(out, "model        {model}\nthreads      {}", m.program.threads.len());
    let _ = writeln!(
        out,
        "states       {}\ntransitions  {}",
        group_digits(found.states),
        group_digits(found.transitions)
    );
    if found.stop != Stop::Complete {
        let _ = writeln!(out, "stopped      {}", found.stop.word());
    } else if found.safety == Safety::Unknown {
        let _ = writeln!(out, "stopped      buffer bound");
    }
    let _ = writeln!(
        out,
        "seconds      {seconds:.3}\npeak memory  {} MiB",
        session.peak_memory() >> 20
    );
    if let Some(way) = &found.interleaving {
        out += "\ninterleaving to an unsafe state\n";
        out += &table(m, way);
        let threads: Vec<String> =
            chosen_threads(program, found, way).iter().map(|(v, t)| format!("{v} = {t}")).collect();
        if !threads.is_empty() {
            let _ = writeln!(out, "unsafe for {}", threads.join(", "));
        }
    }
    out
}

fn event_text(m: &Machine, step: &InterleavingStep) -> String {
    let cell = |c: u32| &m.program.cells[c as usize];
    let number = |c: u32, v: u64| cell(c).width.to_signed(v);
    match step.event {
        MoveEffect::Local => String::new(),
        MoveEffect::Read { cell: c, value } => {
            format!("reads {}={}", cell(c).name, number(c, value))
        }
        MoveEffect::Write { cell: c, value } if m.memory.has_buffers() => {
            format!("buffers {}={}", cell(c).name, number(c, value))
        }
        MoveEffect::Write { cell: c, value } => {
            format!("writes {}={}", cell(c).name, number(c, value))
        }
        MoveEffect::Update { cell: c, old, new, .. } => {
            format!("updates {} {} -> {}", cell(c).name, number(c, old), number(c, new))
        }
        MoveEffect::Fence(_) => "fence".into(),
        MoveEffect::Flush { cell: c, value } => {
            format!("{}={} reaches memory", cell(c).name, number(c, value))
        }
    }
}

fn pairs(list: &[(String, i64)]) -> String {
    list.iter()
        .map(|(n, v)| if n == "|" { n.clone() } else { format!("{n}={v}") })
        .collect::<Vec<_>>()
        .join(" ")
}

fn buffers(m: &Machine, state: &[u32]) -> Vec<String> {
    (0..m.program.threads.len())
        .map(|t| (t, reach::buffer_content(m, t, state)))
        .filter(|(_, b)| !b.is_empty())
        .map(|(t, b)| format!("{}[{}]", m.program.threads[t].name, pairs(&b)))
        .collect()
}

/// Formats one line per step: thread, instruction, effect, memory, and non-empty buffers.
pub(crate) fn table(m: &Machine, way: &Interleaving) -> String {
    let mut rows: Vec<[String; 5]> = vec![["".into(), "".into(), "".into(), "".into(), "".into()]];
    rows[0][4] = pairs(&reach::in_memory(m, &way.initial));
    for (i, step) in way.steps.iter().enumerate() {
        let memory = format!(
            "{}  {}",
            pairs(&reach::in_memory(m, &step.state)),
            buffers(m, &step.state).join(" ")
        );
        let thread = m.program.threads[step.thread].name.clone();
        rows.push([
            (i + 1).to_string(),
            thread,
            step.instruction.clone().unwrap_or_default(),
            event_text(m, step),
            memory,
        ]);
    }
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let mut out = String::new();
    for [n, thread, code, event, memory] in &rows {
        let [a, b, c, d] = widths;
        let line = format!("{n:>a$}  {thread:<b$}  {code:<c$}  {event:<d$}  {memory}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Returns an interleaving as JSON.
pub(crate) fn steps_json(m: &Machine, steps: &[InterleavingStep]) -> Value {
    let object = |list: &[(String, i64)]| {
        Value::Object(list.iter().map(|(n, v)| (n.clone(), json!(v))).collect())
    };
    let one = |step: &InterleavingStep| {
        let all: Vec<Value> = (0..m.program.threads.len())
            .map(|t| {
                reach::buffer_content(m, t, &step.state)
                    .iter()
                    .map(|(n, v)| json!([n, v]))
                    .collect::<Vec<_>>()
                    .into()
            })
            .collect();
        json!({
            "thread": m.program.threads[step.thread].name,
            "instruction": step.instruction,
            "event": event_text(m, step),
            "memory": object(&reach::in_memory(m, &step.state)),
            "buffers": all,
        })
    };
    steps.iter().map(one).collect::<Vec<_>>().into()
}

fn as_json(
    session: &Session,
    program: &X86Program,
    found: &ReachResult,
    model: &str,
    seconds: f64,
) -> Value {
    let mut object = json!({
        "verdict": output::verdict_word(found.safety.word()),
        "property": found.safety.word(),
        "model": model,
        "threads": found.machine.program.threads.len(),
        "states": found.states,
        "transitions": found.transitions,
        "stop": found.stop.word(),
        "bound_reached": found.bound_reached,
        "seconds": seconds,
        "peak_memory_bytes": session.peak_memory(),
    });
    if let Some(way) = &found.interleaving {
        object["interleaving"] = steps_json(&found.machine, &way.steps);
        object["unsafe_for"] = Value::Object(
            chosen_threads(program, found, way).into_iter().map(|(v, t)| (v, json!(t))).collect(),
        );
    }
    object
}
