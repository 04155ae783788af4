//! Proofs of x86 programs for any number of threads (`program --threads-of any`, `prove FILE.asm`,
//! `verify FILE.asm`).
//!
//! A program becomes a system (`cubicle::x86`). The first proof assumes that the number of threads
//! bounds variables that count threads, and proves in addition that each thread counts at most
//! once. Its answer names the maximum number of threads. If it fails, the second proof is about
//! words of the system, which wrap, and the third one about integers with a transition for each
//! kind of wrap. Programs with words of 8 or 16 bits have only the second. The machine also runs
//! with a few threads: first in `program`, last in `prove`. A run that it finds is the answer.
//!
//! A program that cannot be translated to a system is *unknown*, with the reason and its place. It
//! is not bad input, because the program is valid for a fixed number of threads.

use crate::args::{Format, InitialValues, ProofMemory, ProveArgs, TranslationArgs};
use crate::commands::program;
use crate::commands::prove::samples;
use crate::commands::prove::{as_json, as_text, code, save, search, why};
use crate::output;
use crate::output::answers;
use crate::output::print;
use crate::pipeline::{Session, systems};
use mu_base::limits::Limits;
use mu_base::{Diagnostic, SourceId, Span, Stage};
use mu_cubicle::System;
use mu_cubicle::x86::{self, Translation, TranslationOptions};
use mu_program::memory::{MemoryModel, SC, TSO};
use mu_program::nasm::{self, X86Program};
use mu_program::parametric;
use mu_prove::verify::QueryCounts;
use mu_prove::{ProofOutcome, ProofVerdict};
use mu_safety::reach::{ReachResult, Safety, reach};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Limit on the states of an instance that is searched before a proof.
const INSTANCE_STATES: u64 = 50_000;
/// Maximum number of threads of an instance that is searched before a proof.
const INSTANCES: usize = 3;
/// Limit on the work of a proof with words of the system.
const WORK_OF_WORDS: u64 = 400_000;
/// Limit on the work of a proof with wrapping words; it ends the search, because an unbounded
/// counter takes 2^32 steps to wrap.
const WRAPPING_WORK: u64 = 100_000;

/// A program translated to a system.
pub(crate) struct TranslatedProgram {
    pub(crate) translation: Translation,
    pub(crate) system: System,
}

/// A program, which may have no translation to a system.
enum Read {
    Program(parametric::ParametricProgram),
    Unknown(Diagnostic),
}

/// Reads a program with a section of unsafe states. A text that is valid for a fixed number of
/// threads is not bad input.
fn read(path: &Path, source: SourceId, text: &str) -> Result<Read, Diagnostic> {
    let small = || (1..=nasm::MAX_THREADS.min(4)).find_map(|n| nasm::parse(source, text, n).ok());
    match parametric::parse(source, text) {
        Ok(program) if program.unsafe_states.is_empty() => Err(program::without_claim(path)),
        Ok(program) => Ok(Read::Program(program)),
        Err(error) => match small() {
            Some(program) if program.unsafe_states.is_empty() => Err(program::without_claim(path)),
            Some(_) => Ok(Read::Unknown(error)),
            None => Err(error),
        },
    }
}

/// The numbers of a system of a program, in the order in which proofs are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberTreatment {
    /// Integers, where the number of threads may bound variables that count them.
    Bounded,
    /// Words, which wrap.
    Words,
    /// Integers, with a transition for each kind of wrap.
    Wrapping,
}

/// All forms of numbers.
pub(crate) const NUMBERS: [NumberTreatment; 3] =
    [NumberTreatment::Bounded, NumberTreatment::Words, NumberTreatment::Wrapping];

fn options(args: &TranslationArgs, numbers: NumberTreatment) -> TranslationOptions {
    TranslationOptions {
        any_registers: args.initial == InitialValues::Any,
        split_xchg: args.split_xchg,
        wrapping: numbers != NumberTreatment::Bounded,
        words: numbers == NumberTreatment::Words,
    }
}

/// Translates a program to a system; its places refer to the text that `expand --to cubicle`
/// prints.
pub(crate) fn translate(
    session: &mut Session,
    path: &Path,
    args: &TranslationArgs,
    numbers: NumberTreatment,
) -> Result<TranslatedProgram, Diagnostic> {
    systems::expect_no_parameters(session, path)?;
    let (source, text) = session.read_source(path)?;
    as_system(session, path, &parametric::parse(source, &text)?, options(args, numbers))
}

fn as_system(
    session: &mut Session,
    path: &Path,
    program: &parametric::ParametricProgram,
    options: TranslationOptions,
) -> Result<TranslatedProgram, Diagnostic> {
    let translation = x86::translate(program, options)?;
    let text = translation.file.to_string();
    let source = session.sources.add(format!("{} as a system", path.display()), text.clone());
    let system = mu_cubicle::check(&mu_cubicle::parse(source, &text)?)?;
    Ok(TranslatedProgram { translation, system })
}

/// Returns the assumptions of an answer beyond the program, one sentence each.
pub(crate) fn assumptions(translation: &Translation) -> Vec<String> {
    let mut list = vec![format!("words have {} bits and wrap", translation.bits)];
    if let Some(most) = translation.most_threads {
        list.push(format!("at most {most} threads"));
    }
    list
}

/// Proves a program. `instances`: true if the machine searches a few threads first.
pub(crate) fn prove(
    session: &mut Session,
    args: &ProveArgs,
    instances: bool,
) -> Result<u8, Diagnostic> {
    systems::expect_no_parameters(session, &args.file)?;
    let (source, text) = session.read_source(&args.file)?;
    let program = read(&args.file, source, &text)?;
    if instances && let Some((small, found)) = instance(session, args, source, &text)? {
        return report_run(session, args, &small, &found);
    }
    let program = match program {
        Read::Program(program) => program,
        Read::Unknown(why) => {
            return report_untranslatable(session, args, (source, &text), !instances, &why);
        }
    };
    let mut last: Option<(TranslatedProgram, ProofOutcome)> = None;
    let mut bounded = false;
    for numbers in NUMBERS {
        if numbers == NumberTreatment::Wrapping && !bounded {
            break;
        }
        let translate =
            match as_system(session, &args.file, &program, options(&args.translation, numbers)) {
                Ok(translate) => translate,
                // Operators without a form on words.
                Err(why) if why.stage == Stage::Unsupported && last.is_some() => continue,
                Err(why) if why.stage == Stage::Unsupported => {
                    return report_untranslatable(session, args, (source, &text), !instances, &why);
                }
                Err(error) => return Err(error),
            };
        let wraps = !translate.translation.wraps.is_empty();
        let work = match numbers {
            NumberTreatment::Words => Some(WORK_OF_WORDS),
            _ => wraps.then_some(WRAPPING_WORK),
        };
        let outcome = search(session, args, &translate.system, work)?;
        // Without wraps there is one system of integers, and it is like that of words.
        bounded |= translate.translation.bounded;
        let again = program.bits == 32
            && !is_stopped(session)
            && (bounded || wraps || numbers == NumberTreatment::Words);
        let limit = limit(&translate, &outcome);
        let is_open = limit.is_some() || matches!(outcome.verdict, ProofVerdict::Unknown(_));
        // An answer about integers remains unless words give one.
        if numbers != NumberTreatment::Words || !is_open || last.is_none() {
            last = Some((translate, outcome));
        }
        if !(is_open && again) {
            break;
        }
    }
    let (translate, mut outcome) =
        last.ok_or_else(|| Diagnostic::internal("no proof was tried"))?;
    let is_open = limit(&translate, &outcome).is_some()
        || matches!(outcome.verdict, ProofVerdict::Unknown(_));
    if is_open
        && !instances
        && !is_stopped(session)
        && let Some((small, found)) = instance(session, args, source, &text)?
    {
        return report_run(session, args, &small, &found);
    }
    if let (ProofVerdict::Safe { .. }, Some(audit)) = (&outcome.verdict, &mut outcome.audit) {
        let (samples, took) = (args.sampling.check_samples, session.budget.elapsed());
        audit.walked = Some(samples::walk_program(
            session,
            (&args.file, &args.translation),
            model(args),
            samples,
            took,
        )?);
    }
    report(session, args, &translate, &outcome)
}

/// Reports a program without a translation to a system. `instances`: true if the machine searches a
/// few threads.
fn report_untranslatable(
    session: &Session,
    args: &ProveArgs,
    program: (SourceId, &str),
    instances: bool,
    why: &Diagnostic,
) -> Result<u8, Diagnostic> {
    match if instances { instance(session, args, program.0, program.1)? } else { None } {
        Some((small, found)) => report_run(session, args, &small, &found),
        None => report_untranslated(session, args, why),
    }
}

/// Reports a run of a few threads to an unsafe state.
fn report_run(
    session: &Session,
    args: &ProveArgs,
    program: &X86Program,
    found: &ReachResult,
) -> Result<u8, Diagnostic> {
    program::report(session, program, found, model(args).name())?;
    if let Some(path) = &args.evidence {
        eprintln!(
            "warning: {} is not written: the run belongs to the program, not to its system",
            path.display()
        );
    }
    Ok(1)
}

/// True if a limit of the user ended the search.
fn is_stopped(session: &Session) -> bool {
    session.budget.check(0).is_err() || session.budget.check_memory().is_err()
}

/// Returns the place that a run reaches where the system cannot follow the program.
fn limit<'t>(
    translate: &'t TranslatedProgram,
    outcome: &ProofOutcome,
) -> Option<&'t (String, Span)> {
    let ProofVerdict::Unsafe(run) = &outcome.verdict else { return None };
    // A claim of the program has any number of cubes: none if it never holds. These have one each.
    let limits = &translate.translation.limits;
    limits.get(run.claim.0.checked_sub(translate.system.unsafes.len() - limits.len())?)
}

fn model(args: &ProveArgs) -> &'static dyn MemoryModel {
    match args.model {
        ProofMemory::Sc => SC,
        ProofMemory::Tso => TSO,
    }
}

/// Returns a run of a few threads to an unsafe state.
fn instance(
    session: &Session,
    args: &ProveArgs,
    source: SourceId,
    text: &str,
) -> Result<Option<(X86Program, ReachResult)>, Diagnostic> {
    let limits = session.budget.limits();
    let most = limits.max_states.map_or(INSTANCE_STATES, |n| n.min(INSTANCE_STATES));
    let budget = session.budget.with_limits(Limits { max_states: Some(most), ..*limits });
    for threads in 1..=INSTANCES {
        // If a claim or the code needs more threads, the reader reports it.
        let Ok(program) = nasm::parse(source, text, threads) else { continue };
        if program.unsafe_states.is_empty() {
            continue;
        }
        let found = reach(&program, model(args), None, threads, &budget, &mu_explore::Silent)?;
        if found.safety == Safety::Unsafe {
            return Ok(Some((program, found)));
        }
    }
    Ok(None)
}

fn place(session: &Session, span: Span) -> String {
    let (line, column) = session.sources.line_column(span);
    format!("{}:{line}:{column}", session.sources.get(span.source).name)
}

/// Reports a program without a translation to a system.
fn report_untranslated(
    session: &Session,
    args: &ProveArgs,
    why: &Diagnostic,
) -> Result<u8, Diagnostic> {
    let reason = why.span.map_or_else(
        || why.message.clone(),
        |span| format!("{}: {}", place(session, span), why.message),
    );
    let seconds = session.budget.elapsed().as_secs_f64();
    match session.common.format {
        Format::Text => {
            let mut out = format!(
                "verdict        unknown\nmodel          {}\nwhy            {reason}\n",
                model(args).name()
            );
            for note in &why.notes {
                let _ = writeln!(out, "               {note}");
            }
            print(&out)?;
        }
        Format::Json => output::print_object(json!({
            "verdict": "unknown",
            "property": "unknown",
            "model": model(args).name(),
            "searches": 0,
            "refuted_approximations": 0,
            "search": { "cubes": 0, "expanded": 0, "pre_images": 0, "covered": 0, "deleted": 0, "approximations": 0 },
            "assumptions": 0,
            "empty_from": null,
            "instances": null,
            "seconds": seconds,
            "verification_seconds": 0.0,
            "peak_memory_bytes": session.peak_memory(),
            "why": reason,
        }))?,
    }
    Ok(3)
}

/// Returns the reason for an unknown answer: the instructions that the proof cannot translate or
/// follow.
fn reason(
    session: &Session,
    args: &ProveArgs,
    translate: &TranslatedProgram,
    outcome: &ProofOutcome,
) -> Option<String> {
    if let Some((why, span)) = limit(translate, outcome) {
        return Some(format!(
            "{}: {why}, which a proof for any number of threads cannot follow",
            place(session, *span)
        ));
    }
    let wraps = &translate.translation.wraps;
    // A limit of the user is reported by the search itself.
    let limited = is_stopped(session) || session.budget.check(outcome.counts.nodes as u64).is_err();
    if wraps.is_empty() || !matches!(outcome.verdict, ProofVerdict::Unknown(_)) || limited {
        return None;
    }
    let ProofVerdict::Unknown(unknown) = &outcome.verdict else { return None };
    let places: Vec<String> = wraps.iter().map(|s| place(session, *s)).collect();
    Some(format!(
        "{}; the words of these instructions may grow until they wrap at 32 bits: {}",
        why(session, &translate.system, args, outcome, unknown),
        places.join(", ")
    ))
}

fn report(
    session: &mut Session,
    args: &ProveArgs,
    translate: &TranslatedProgram,
    outcome: &ProofOutcome,
) -> Result<u8, Diagnostic> {
    let reason = reason(session, args, translate, outcome);
    if let Some(reason) = reason {
        let open_error = Diagnostic::new(Stage::Unsupported, reason);
        return report_untranslated(session, args, &open_error);
    }
    let system = &translate.system;
    let register = |session: &Session| {
        let translation = Some(&translate.translation);
        let seconds = session.budget.elapsed().as_secs_f64();
        let mut object = as_json(session, system, args, outcome, seconds, translation);
        let queries = match &outcome.verdict {
            ProofVerdict::Safe { queries, .. } => Some(queries),
            _ => None,
        };
        object["threads"] = threads_json(&translate.translation, queries);
        let text = as_text(session, system, args, outcome, seconds, translation);
        answers::set_complete(object, text, code(&outcome.verdict));
    };
    register(session);
    save(session, args, system, outcome)?;
    register(session);
    answers::finish(session.common.format)
}

/// Returns the numbers of threads that an answer covers, and its assumptions. A proof may count
/// threads by words.
pub(crate) fn threads_json(translation: &Translation, proof: Option<&QueryCounts>) -> Value {
    let counted = proof.and_then(|q| q.most).map(|n| translation.threads_of(n));
    json!({ "most": translation.most_threads.into_iter().chain(counted).min(), "word_bits": translation.bits, "assumptions": assumptions(translation) })
}
