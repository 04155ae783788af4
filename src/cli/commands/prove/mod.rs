//! Safety of parameterised systems for every number of processes, and the check of certificates
//! (`prove` and `verify`).
//!
//! Exit code: 0 safe (`verify`: the certificate proves it), 1 unsafe (the certificate does not), 2
//! bad input, 3 unknown.

pub(crate) mod refuted;
pub(crate) mod samples;

use crate::args::{ProofMemory, ProveArgs, VerifyArgs};
use crate::commands::threads::{NUMBERS, TranslatedProgram, translate};
use crate::output;
use crate::output::answers;
use crate::output::certificate::{CertificateReport, ResultPart};
use crate::output::progress::group_digits;
use crate::pipeline::files::{expect_writable, write_text};
use crate::pipeline::{Session, systems};
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop};
use mu_cubicle::System;
use mu_cubicle::x86::Translation;
use mu_frontends::FrontEnd as _;
use mu_frontends::cubicle::CUBICLE;
use mu_frontends::programs::X86;
use mu_program::memory::{SC, TSO};
use mu_prove::image::Trouble;
use mu_prove::premises::{Premises, Refusal, UNBOUNDED, premises};
use mu_prove::replay::ReplayRun;
use mu_prove::rules::Memory;
use mu_prove::verify::{QueryCounts, Rejection, memory_of, obligations};
use mu_prove::{ProofOutcome, ProofVerdict, ProverOptions, UnknownReason};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Maximum length of a cube in messages; longer ones are cut.
const MAX_CUBE_TEXT: usize = 400;
/// Number of bytes beyond which a file may take long to read.
const SMALL_FILE: u64 = 1 << 16;

/// Rejects a file or options that no proof is for.
fn expect_provable(session: &Session, path: &Path, command: &str) -> Result<(), Diagnostic> {
    let expected = format!(
        "`{command}` expects a system of any number of processes (.cub) or an x86 program (.asm)"
    );
    systems::expect_language(path, &[&CUBICLE, &X86], &expected)?;
    systems::expect_no_parameters(session, path)
}

/// Reads a system.
fn read(session: &mut Session, path: &Path) -> Result<System, Diagnostic> {
    if path.metadata().is_ok_and(|m| m.len() > SMALL_FILE) {
        session.budget.run_deferred();
    }
    crate::pipeline::systems::read(session, path)
}

/// Reads a system with a claim.
fn read_claimed(session: &mut Session, path: &Path) -> Result<System, Diagnostic> {
    let system = read(session, path)?;
    if system.has_claim {
        return Ok(system);
    }
    let message = "the file has no `unsafe`, so there is nothing to prove";
    Err(Diagnostic::at(Stage::Type, system.init.place.0, message)
        .note("expected `unsafe (p) { … }`, the states that must not be reached"))
}

pub(crate) fn prove(session: &mut Session, args: &ProveArgs) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.certificate {
        expect_writable(path)?;
    }
    if let Some(path) = &args.evidence {
        refuted::expect_evidence(path)?;
    }
    expect_provable(session, &args.file, "prove")?;
    if X86.has_ending(&args.file) {
        return crate::commands::threads::prove(session, args, false);
    }
    let system = read_claimed(session, &args.file)?;
    let outcome = search(session, args, &system, None)?;
    // The answer is known before files are written, which a limit may end.
    let register = |session: &Session| {
        let seconds = session.budget.elapsed().as_secs_f64();
        answers::set_complete(
            as_json(session, &system, args, &outcome, seconds, None),
            as_text(session, &system, args, &outcome, seconds, None),
            code(&outcome.verdict),
        );
    };
    register(session);
    save(session, args, &system, &outcome)?;
    register(session);
    answers::finish(session.common.format)
}

/// Returns the exit code of a verdict.
pub(crate) fn code(verdict: &ProofVerdict) -> u8 {
    match verdict {
        ProofVerdict::Safe { .. } | ProofVerdict::Searched(..) => 0,
        ProofVerdict::Unsafe(_) => 1,
        ProofVerdict::Unknown(_) => 3,
    }
}

/// Searches for a proof. `work`: limit on its steps.
pub(crate) fn search(
    session: &Session,
    args: &ProveArgs,
    system: &System,
    work: Option<u64>,
) -> Result<ProofOutcome, Diagnostic> {
    let options = ProverOptions {
        memory: memory(args.model),
        approximate: !args.no_approximations,
        instances: args.instances as usize,
        work,
        threads: session.threads().into(),
    };
    output::begin_stage("proving");
    let start = Instant::now();
    let mut outcome = mu_prove::prove(system, options, &session.budget);
    if matches!(outcome.verdict, ProofVerdict::Unknown(UnknownReason::NoInitialState)) {
        return Err(no_initial_state(system));
    }
    if let ProofVerdict::Safe { certificate, .. } = &outcome.verdict {
        outcome.audit = samples::check(
            session,
            args.sampling.check_samples,
            system,
            certificate,
            start.elapsed(),
        )?;
    }
    Ok(outcome)
}

/// Writes the requested files.
pub(crate) fn save(
    session: &mut Session,
    args: &ProveArgs,
    system: &System,
    outcome: &ProofOutcome,
) -> Result<(), Diagnostic> {
    if let ProofVerdict::Safe { certificate, .. } = &outcome.verdict {
        if let Some(path) = &args.certificate {
            write_text(path, certificate)?;
        }
        if let Some(folder) = &args.smt_lib {
            smt(session, system, certificate, folder)?;
        }
    }
    if let (ProofVerdict::Unsafe(run), Some(path)) = (&outcome.verdict, &args.evidence) {
        refuted::save(session, path, &args.file, system, memory(args.model), run)?;
    }
    Ok(())
}

fn memory(model: ProofMemory) -> Memory {
    match model {
        ProofMemory::Sc => Memory::Sc,
        ProofMemory::Tso => Memory::Tso,
    }
}

fn no_initial_state(system: &System) -> Diagnostic {
    let place = system.init.place.0;
    let error = Diagnostic::at(
        Stage::Type,
        place,
        "no initial state: no state satisfies `init`, whatever the number of processes",
    );
    let error = if system.invariants.is_empty() {
        error
    } else {
        error.note("a state described by an `invariant` is not a state of the system")
    };
    error.note(
        "every claim would hold for such a system; expected a formula that some state satisfies",
    )
}

fn no_small_initial_state(most: usize) -> String {
    format!(
        "no initial state: no state of up to {most} processes satisfies `init`; larger numbers are not decided"
    )
}

fn smt(
    session: &Session,
    system: &System,
    certificate: &str,
    folder: &Path,
) -> Result<(), Diagnostic> {
    mu_base::host::fs::create_dir_all(folder)
        .map_err(|e| crate::pipeline::file_error("create", folder, &e))?;
    let mut result = Ok(());
    let written = obligations(system, certificate, &mut |name, text| {
        if result.is_ok() {
            result = write_text(&folder.join(format!("{name}.smt2")), text);
        }
    });
    result?;
    written.map_err(|r| Diagnostic::new(Stage::Internal, rejection_text(session, system, &r)))
}

fn word(verdict: &ProofVerdict) -> &'static str {
    match verdict {
        ProofVerdict::Safe { .. } | ProofVerdict::Searched(..) => "safe",
        ProofVerdict::Unsafe(_) => "unsafe",
        ProofVerdict::Unknown(_) => "unknown",
    }
}

fn model(args: &ProveArgs) -> &'static str {
    match args.model {
        ProofMemory::Sc => "sc",
        ProofMemory::Tso => "tso",
    }
}

/// Returns the numbers of processes that the answer covers.
fn numbers(system: &System) -> String {
    match system.processes {
        Some(n) => format!("up to {n} (number_procs)"),
        None if system.fixed > 0 => format!("any, {} and more", system.fixed),
        None => "any".into(),
    }
}

/// Returns the reason with its place in the file.
fn reason_with_place(session: &Session, refusal: &Refusal) -> String {
    let span = refusal.place.0;
    if !span.is_somewhere() {
        return refusal.message.clone();
    }
    let (line, column) = session.sources.line_column(span);
    format!("{}:{line}:{column}: {}", session.sources.get(span.source).name, refusal.message)
}

fn rejection_text(session: &Session, system: &System, refused: &Rejection) -> String {
    match refused {
        Rejection::Premise(refusal) => reason_with_place(session, refusal),
        Rejection::NoInitialState => "no initial state: no state satisfies `init`".into(),
        Rejection::NoInitialStateUpTo(n) => no_small_initial_state(*n),
        Rejection::Unreadable(e) => e.message.clone(),
        Rejection::Initiation(cube) => {
            format!("cube {} may contain an initial state", cube + 1)
        }
        Rejection::Count(count, transition) => {
            let count = format!("counting invariant {} of the certificate", count + 1);
            match transition {
                None => format!("{count} does not hold initially"),
                Some(t) => format!(
                    "{count} may not hold after transition `{}`",
                    system.transitions[*t].name
                ),
            }
        }
        Rejection::Consecution { cube, transition } => {
            let name = &system.transitions[*transition].name;
            format!(
                "`{name}` may lead into cube {} from outside the cubes of the certificate",
                cube + 1
            )
        }
        Rejection::Safety(claim) => {
            format!("`unsafe` number {} may be outside the cubes of the certificate", claim + 1)
        }
        Rejection::TooLarge(what) => format!("{what} is too large for the verifier"),
        Rejection::Stopped(stop) => format!("stopped: {}", stop.word()),
    }
}

/// Returns the reason of an unknown answer.
pub(crate) fn why(
    session: &Session,
    system: &System,
    args: &ProveArgs,
    outcome: &ProofOutcome,
    why: &UnknownReason,
) -> String {
    match why {
        UnknownReason::Refused(refusal) => reason_with_place(session, refusal),
        UnknownReason::NoInitialState => "no initial state: no state satisfies `init`".into(),
        UnknownReason::NoInitialStateUpTo(n) => no_small_initial_state(*n),
        UnknownReason::InitialStateUndecided => {
            "an invariant was found, and it is not decided if any state satisfies `init`".into()
        }
        // Only a program has a limit of its own.
        UnknownReason::Stopped(Stop::States) if session.common.max_states.is_none() => {
            "neither a proof nor an unsafe state was found in the steps that each form of the program gets".into()
        }
        UnknownReason::Stopped(stop) => format!("stopped: {}", stop.word()),
        UnknownReason::Trouble(Trouble::Processes) => match &outcome.stuck {
            Some(cube) => format!(
                "each step backward names another process, more than the 24 that a cube can name, and {} says why that ends: \
                 a variable may count processes, or a state depend on how many there are. The last cube: {}",
                match args.no_approximations {
                    true => "`--no-approximations` leaves out the invariants of which one perhaps",
                    false => "no invariant that was tried",
                },
                start_of_text(cube)
            ),
            None => "a cube needs more than 24 processes".into(),
        },
        UnknownReason::Trouble(Trouble::Number) => "a number in a cube needs more than 63 bits".into(),
        UnknownReason::Trouble(Trouble::Cases) => {
            "a transition has too many cases that lead into a cube: more than 100,000 choices of them, or a million conditions".into()
        }
        UnknownReason::Trouble(Trouble::Stages) => "a cube distinguishes more than 200 reads of one process".into(),
        UnknownReason::Spurious(text) => {
            format!("the abstraction (of `forall_other`, or of an assumption) has a run that the machine cannot take: {text}")
        }
        UnknownReason::Numbers(text) => format!(
            "a run leads to `unsafe` if undetermined numbers have suitable values, and the tried values are not suitable: {text}"
        ),
        UnknownReason::Unverified(r) => format!("an invariant was found but not verified: {}", rejection_text(session, system, r)),
    }
}

/// Returns the start of a text, in one line.
fn start_of_text(text: &str) -> String {
    match text.char_indices().nth(MAX_CUBE_TEXT) {
        Some((at, _)) => format!("{} ..", &text[..at]),
        None => text.to_string(),
    }
}

fn checks_text(queries: &QueryCounts) -> String {
    format!(
        "{} cubes; {} checks of init, {} of steps, {} of unsafe; {} decisions",
        group_digits(queries.cubes as u64),
        group_digits(queries.initiation as u64),
        group_digits(queries.consecution as u64),
        group_digits(queries.safety as u64),
        group_digits(queries.decisions)
    )
}

pub(crate) fn as_text(
    session: &Session,
    system: &System,
    args: &ProveArgs,
    outcome: &ProofOutcome,
    seconds: f64,
    program: Option<&Translation>,
) -> String {
    let mut out =
        format!("verdict        {}\nmodel          {}\n", word(&outcome.verdict), model(args));
    if let ProofVerdict::Safe { queries, .. } = &outcome.verdict {
        let _ = writeln!(out, "processes      {}", numbers(system));
        if let Ok(premises) = premises(system, memory(args.model)) {
            let mut list = assumptions(&premises, system, program);
            list.extend(limit_text(queries, program));
            out += &assumptions_text(&list);
        }
        let _ = writeln!(out, "verified       {}", checks_text(queries));
        let _ = writeln!(out, "checked        {}", samples::text(outcome.audit.as_ref()));
    }
    if let Some(n) = outcome.empty_from {
        let _ = writeln!(
            out,
            "initial        no initial state with {n} processes or more: no such state satisfies `init`"
        );
    }
    if let ProofVerdict::Searched(least, most) = &outcome.verdict {
        let _ = writeln!(
            out,
            "instances      {}: no unsafe state, all states searched; there are no others\ncertificate    none: no invariant was found, so `verify` has nothing to check",
            range_text(*least, *most)
        );
    }
    if let ProofVerdict::Unknown(w) = &outcome.verdict {
        let _ = writeln!(out, "why            {}", why(session, system, args, outcome, w));
        if let Some((least, most)) = outcome.searched {
            let _ = writeln!(
                out,
                "instances      {}: no unsafe state, all states searched",
                range_text(least, most)
            );
        }
    }
    let c = &outcome.counts;
    let _ = writeln!(
        out,
        "searches       {}, the last with {} cubes, {} expanded, {} pre-images, {} covered, {} deleted",
        outcome.searches,
        group_digits(c.nodes as u64),
        group_digits(c.expanded as u64),
        group_digits(c.images as u64),
        group_digits(c.covered as u64),
        group_digits(c.deleted as u64)
    );
    let _ = writeln!(
        out,
        "approximations {} in the last search, {} refuted",
        c.approximations, outcome.refuted
    );
    let _ = writeln!(
        out,
        "seconds        {seconds:.3}, {:.3} of them to verify\npeak memory    {} MiB",
        outcome.verification.as_secs_f64(),
        session.peak_memory() >> 20
    );
    if let ProofVerdict::Unsafe(run) = &outcome.verdict {
        out += &run_text(run);
        if program.is_some() {
            out += &observer_text(run);
        }
    }
    out
}

fn range_text(least: usize, most: usize) -> String {
    match (least, most) {
        (1, 1) => "1 process".into(),
        (l, m) if l == m => format!("{l} processes"),
        (l, m) => format!("{l} to {m} processes"),
    }
}

/// Returns the assumptions of a proof. For a program, these are the assumptions of its translation
/// instead of unbounded numbers.
fn assumptions(premises: &Premises, system: &System, program: Option<&Translation>) -> Vec<String> {
    let mut list = premises.assumptions(system);
    if let Some(translation) = program {
        list.retain(|text| text != UNBOUNDED);
        list.extend(crate::commands::threads::assumptions(translation));
    }
    list
}

/// Describes the number of processes to which a counting invariant limits a proof.
fn limit_text(queries: &QueryCounts, program: Option<&Translation>) -> Option<String> {
    let (most, name) = match program {
        Some(program) => (queries.most.map(|n| program.threads_of(n)), "threads"),
        None => (queries.most, "processes"),
    };
    most.map(|n| format!("at most {n} {name}, which words count"))
}

/// Formats the assumptions, one per line.
fn assumptions_text(list: &[String]) -> String {
    if list.is_empty() {
        return "assumes        nothing beyond the file\n".into();
    }
    list.iter().enumerate().fold(String::new(), |mut out, (i, text)| {
        let _ = writeln!(out, "{:15}{text}", if i == 0 { "assumes" } else { "" });
        out
    })
}

/// Describes the process of a translated program that observes memory for a claim and is no thread.
fn observer_text(run: &ReplayRun) -> String {
    let watch = |step: &String| Some(step.strip_prefix("watch(")?.strip_suffix(')')?.to_string());
    let Some(observer) = run.steps.iter().find_map(watch) else { return String::new() };
    let threads = run.processes.saturating_sub(1);
    let s = if threads == 1 { "" } else { "s" };
    format!(
        "process #{observer} is not a thread: it observes memory; the program has {threads} thread{s}\n"
    )
}

fn claim_text(run: &ReplayRun) -> String {
    let who: Vec<String> = run.claim.1.iter().map(|p| format!("#{}", p + 1)).collect();
    if who.is_empty() {
        "`unsafe` holds".into()
    } else {
        format!("`unsafe` holds of {}", who.join(", "))
    }
}

fn run_text(run: &ReplayRun) -> String {
    let (n, steps) = (run.processes, run.steps.len());
    let (es, s) = (if n == 1 { "" } else { "es" }, if steps == 1 { "" } else { "s" });
    let mut out = format!("\na run with {n} process{es}, {steps} step{s}\n");
    let _ = writeln!(out, "     start: {}", run.states[0]);
    for (i, (step, state)) in run.steps.iter().zip(&run.states[1..]).enumerate() {
        let _ = writeln!(out, "{:4} {step}\n            {state}", i + 1);
    }
    let _ = writeln!(out, "{}", claim_text(run));
    out
}

pub(crate) fn as_json(
    session: &Session,
    system: &System,
    args: &ProveArgs,
    outcome: &ProofOutcome,
    seconds: f64,
    program: Option<&Translation>,
) -> Value {
    let c = &outcome.counts;
    let mut object = json!({
        "verdict": output::verdict_word(word(&outcome.verdict)),
        "property": word(&outcome.verdict),
        "model": model(args),
        "searches": outcome.searches,
        "refuted_approximations": outcome.refuted,
        "search": {
            "cubes": c.nodes, "expanded": c.expanded, "pre_images": c.images, "covered": c.covered, "deleted": c.deleted,
            "approximations": c.approximations,
        },
        "assumptions": outcome.assumed,
        "empty_from": outcome.empty_from,
        "seconds": seconds,
        "verification_seconds": outcome.verification.as_secs_f64(),
        "peak_memory_bytes": session.peak_memory(),
    });
    match &outcome.verdict {
        ProofVerdict::Safe { queries, .. } => {
            object["processes"] = json!(numbers(system));
            let limit: Vec<String> = limit_text(queries, program).into_iter().collect();
            object["assumed"] = json!(
                premises(system, memory(args.model))
                    .map(|p| [assumptions(&p, system, program), limit].concat())
                    .unwrap_or_default()
            );
            object["verified"] = checks_json(queries);
            object["checked"] = samples::object(outcome.audit.as_ref());
        }
        ProofVerdict::Searched(least, most) => object["instances"] = json!([least, most]),
        ProofVerdict::Unsafe(run) => {
            object["run"] = json!({
                "processes": run.processes,
                "steps": run.steps,
                "states": run.states,
                "unsafe": { "number": run.claim.0 + 1, "of": run.claim.1.iter().map(|p| p + 1).collect::<Vec<_>>() },
            });
        }
        ProofVerdict::Unknown(w) => {
            object["why"] = json!(why(session, system, args, outcome, w));
            object["instances"] = json!(outcome.searched.map(|(least, most)| [least, most]));
        }
    }
    object
}

fn checks_json(queries: &QueryCounts) -> Value {
    json!({
        "cubes": queries.cubes, "initiation": queries.initiation, "consecution": queries.consecution, "safety": queries.safety, "decisions": queries.decisions,
    })
}

type VerifiedSystem = (System, Result<QueryCounts, Rejection>, Option<Translation>);

/// Verifies a certificate. For a program, it tries the systems of all forms of numbers; the first
/// one has the message.
fn verify_certificate(
    session: &mut Session,
    args: &VerifyArgs,
    text: &str,
) -> Result<VerifiedSystem, Diagnostic> {
    let threads = session.common.threads.map_or(0, |_| session.threads());
    if !X86.has_ending(&args.file) {
        let system = read_claimed(session, &args.file)?;
        let found =
            mu_prove::verify::verify_within(&system, text, &session.budget, threads, u64::MAX);
        return Ok((system, found, None));
    }
    let mut first: Option<VerifiedSystem> = None;
    for numbers in NUMBERS {
        let translated = translate(session, &args.file, &args.translation, numbers);
        let TranslatedProgram { translation, system } = match translated {
            Ok(translated) => translated,
            Err(_) if first.is_some() => continue,
            Err(error) => return Err(error),
        };
        if translation.claims == 0 {
            return Err(crate::commands::program::without_claim(&args.file));
        }
        let found =
            mu_prove::verify::verify_within(&system, text, &session.budget, threads, u64::MAX);
        let verified = found.is_ok();
        if verified || first.is_none() {
            first = Some((system, found, Some(translation)));
        }
        if verified {
            break;
        }
    }
    first.ok_or_else(|| Diagnostic::internal("a program has some system"))
}

pub(crate) fn verify(session: &mut Session, args: &VerifyArgs) -> Result<u8, Diagnostic> {
    if let Some(file) = &args.of_formula {
        let text = session.read(file)?;
        if crate::commands::conform::certificate::is_certificate(&text) {
            return crate::commands::conform::certificate::verify_certificate(
                session,
                args,
                (&text, file),
            );
        }
        return crate::commands::check::verify_formula(session, args, file);
    }
    expect_provable(session, &args.file, "verify")?;
    let text = session.read(&args.certificate)?;
    let start = Instant::now();
    output::begin_stage("verifying");
    let unreadable = |e: Diagnostic| e.in_file(&args.certificate.display().to_string());
    let claimed = memory_of(&text).map_err(|e| unreadable(*e))?;
    let (system, found, translation) = verify_certificate(session, args, &text)?;
    let rests = premises(&system, claimed);
    // Without writes to memory, the models coincide.
    let other =
        args.model.map(memory).filter(|required| *required != claimed && system.has_memory());
    let mut audit = None;
    if found.is_ok() && other.is_none() {
        let samples = args.sampling.check_samples;
        audit = samples::check(session, samples, &system, &text, start.elapsed())?;
        if let (Some(audit), Some(_)) = (&mut audit, &translation) {
            let memory = if claimed == Memory::Tso { TSO } else { SC };
            let program = (args.file.as_path(), &args.translation);
            audit.walked =
                Some(samples::walk_program(session, program, memory, samples, start.elapsed())?);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    if let (Some(folder), Ok(_)) = (&args.smt_lib, &found) {
        smt(session, &system, &text, folder)?;
    }
    let (code, word) = match &found {
        Err(Rejection::Unreadable(e)) => return Err(unreadable((**e).clone())),
        Err(Rejection::NoInitialState) => return Err(no_initial_state(&system)),
        _ if other.is_some() => (1, "refused"),
        Ok(_) => (0, "proved"),
        Err(Rejection::Stopped(_) | Rejection::NoInitialStateUpTo(_)) => (3, "unknown"),
        Err(_) => (1, "refused"),
    };
    let model = |memory: Memory| if memory == Memory::Tso { "tso" } else { "sc" };
    let mismatch = other.map(|required| {
        format!(
            "the certificate is for `{}`, and `--model` requires `{}`",
            model(claimed),
            model(required)
        )
    });
    let why =
        mismatch.or_else(|| found.as_ref().err().map(|r| rejection_text(session, &system, r)));
    let list = rests.as_ref().ok().map(|p| assumptions(p, &system, translation.as_ref()));
    let shown = list.clone().map_or_else(String::new, |mut list| {
        if let Ok(queries) = &found {
            list.extend(limit_text(queries, translation.as_ref()));
        }
        assumptions_text(&list)
    });
    let described = rests.as_ref().map_or(model(claimed), Premises::model);
    let mut claim = ResultPart {
        text: format!("model          {described}\nprocesses      {}\n{shown}", numbers(&system)),
        object: json!({
            "model": model(claimed),
            "processes": numbers(&system),
            "assumptions": list.unwrap_or_default(),
        }),
    };
    if let Some(translation) = &translation {
        let proof = found.as_ref().ok();
        claim.object["threads"] = crate::commands::threads::threads_json(translation, proof);
    }
    let check = match (&found, why) {
        (Ok(queries), None) => Ok(ResultPart {
            text: format!(
                "verified       {}\nchecked        {}\n",
                checks_text(queries),
                samples::text(audit.as_ref())
            ),
            object: json!({
                "verified": checks_json(queries), "checked": samples::object(audit.as_ref()),
            }),
        }),
        (_, why) => Err(why.unwrap_or_default()),
    };
    CertificateReport { verdict: word, claim, check, seconds }.print(session.common.format)?;
    Ok(code)
}
