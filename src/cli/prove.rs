//! `prove` and `verify`: safety of parameterised systems for every number of processes, and the check of its certificates.
//!
//! Exit code: 0 safe (`verify`: the certificate proves it), 1 unsafe (the certificate does not), 2 bad input, 3 unknown.

use super::args::{Format, ProofMemory, ProveArgs, TranslationArgs, VerifyArgs};
use super::files::{expect_writable, write_text};
use super::pipeline::Session;
use super::progress::grouped;
use super::{output, print, refuted};
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, ends_in};
use mu_cubicle::System;
use mu_prove::image::Trouble;
use mu_prove::replay::Run;
use mu_prove::rules::Memory;
use mu_prove::verify::{Asked, Refused, obligations};
use mu_prove::{Options, Outcome, Verdict, Why};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// A file of more bytes may take long to read.
const SMALL: u64 = 1 << 16;

/// A system, or an x86 program as one; places in its translation are those of the text that `expand --to cubicle` prints.
fn read(session: &mut Session, path: &Path, translation: &TranslationArgs) -> Result<System, Diagnostic> {
    if path.metadata().is_ok_and(|m| m.len() > SMALL) {
        session.budget.will_be_long();
    }
    if ends_in(path, "asm") {
        let text = super::systems::translated(session, path, translation)?.to_string();
        let source = session.sources.add(format!("{} as a system", path.display()), text.clone());
        return mu_cubicle::check(&mu_cubicle::parse(source, &text)?);
    }
    session.expect_no_parameters(path)?;
    super::systems::read(session, path)
}

pub(super) fn prove(session: &mut Session, args: &ProveArgs) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.certificate {
        expect_writable(path)?;
    }
    if let Some(path) = &args.evidence {
        refuted::expect_evidence(path)?;
    }
    let system = read(session, &args.file, &args.translation)?;
    let memory = match args.model {
        ProofMemory::Sc => Memory::Sc,
        ProofMemory::Tso => Memory::Tso,
    };
    let options = Options {
        memory,
        approximate: !args.no_approximations,
        instances: args.instances as usize,
        work: None,
        threads: session.threads().into(),
    };
    output::stage("proving");
    let outcome = mu_prove::prove(&system, options, &session.budget);
    if let Verdict::Safe { certificate, .. } = &outcome.verdict {
        if let Some(path) = &args.certificate {
            write_text(path, certificate)?;
        }
        if let Some(folder) = &args.smt_lib {
            smt(&system, certificate, folder)?;
        }
    }
    if let (Verdict::Unsafe(run), Some(path)) = (&outcome.verdict, &args.evidence) {
        refuted::save(session, path, &args.file, &system, memory, run)?;
    }
    let seconds = session.budget.elapsed().as_secs_f64();
    match session.common.format {
        Format::Text => print(&as_text(session, &system, args, &outcome, seconds))?,
        Format::Json => output::object(as_json(session, &system, args, &outcome, seconds))?,
    }
    Ok(match &outcome.verdict {
        Verdict::Safe { .. } => 0,
        Verdict::Unsafe(_) => 1,
        Verdict::Unknown(_) => 3,
    })
}

fn smt(system: &System, certificate: &str, folder: &Path) -> Result<(), Diagnostic> {
    mu_base::host::fs::create_dir_all(folder).map_err(|e| super::pipeline::file_error("create", folder, &e))?;
    let mut result = Ok(());
    let written = obligations(system, certificate, &mut |name, text| {
        if result.is_ok() {
            result = write_text(&folder.join(format!("{name}.smt2")), text);
        }
    });
    result?;
    written.map_err(|r| Diagnostic::new(Stage::Internal, refused(system, &r)))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Safe { .. } => "safe",
        Verdict::Unsafe(_) => "unsafe",
        Verdict::Unknown(_) => "unknown",
    }
}

fn model(args: &ProveArgs) -> &'static str {
    match args.model {
        ProofMemory::Sc => "sc",
        ProofMemory::Tso => "tso",
    }
}

/// For which numbers of processes the answer is.
fn numbers(system: &System) -> String {
    match system.processes {
        Some(n) => format!("up to {n} (number_procs)"),
        None if system.fixed > 0 => format!("any, {} and more", system.fixed),
        None => "any".into(),
    }
}

fn refused(system: &System, refused: &Refused) -> String {
    match refused {
        Refused::Unreadable(e) => format!("line {}: {}", e.line, e.message),
        Refused::Initiation(cube) => format!("cube {} is not shown to have no initial state", cube + 1),
        Refused::Consecution { cube, transition } => {
            let name = &system.transitions[*transition].name;
            format!("`{name}` is not shown to lead into cube {} only from the cubes of the certificate", cube + 1)
        }
        Refused::Safety(claim) => format!("`unsafe` number {} is not shown to be in the cubes of the certificate", claim + 1),
        Refused::TooLarge(what) => format!("{what} is too large for the verifier"),
        Refused::Stopped(stop) => format!("stopped: {}", stop.word()),
    }
}

fn why(system: &System, why: &Why) -> String {
    match why {
        Why::Refused(text) => text.clone(),
        Why::Stopped(stop) => format!("stopped: {}", stop.word()),
        Why::Trouble(Trouble::Processes) => "a cube needs more than 24 processes".into(),
        Why::Trouble(Trouble::Number) => "a number in a cube needs more than 63 bits".into(),
        Why::Trouble(Trouble::Cases) => {
            "a transition has too many cases that lead into a cube: more than 100,000 choices of them, or a million conditions".into()
        }
        Why::Trouble(Trouble::Stages) => "a cube keeps more than 200 reads of one process apart".into(),
        Why::Spurious(text) => {
            format!("the abstraction (of `forall_other`, of what is assumed) has a run that the machine cannot do: {text}")
        }
        Why::Unverified(r) => format!("an invariant was found and not verified: {}", refused(system, r)),
    }
}

fn asked_text(asked: &Asked) -> String {
    format!(
        "{} cubes; {} compared with init, {} asked before a step, {} unsafe; {} decisions",
        grouped(asked.cubes as u64),
        grouped(asked.initiation as u64),
        grouped(asked.consecution as u64),
        grouped(asked.safety as u64),
        grouped(asked.decisions)
    )
}

fn as_text(session: &Session, system: &System, args: &ProveArgs, outcome: &Outcome, seconds: f64) -> String {
    let mut out = format!("verdict        {}\nmodel          {}\n", word(&outcome.verdict), model(args));
    if let Verdict::Safe { asked, .. } = &outcome.verdict {
        let _ = writeln!(out, "processes      {}\nverified       {}", numbers(system), asked_text(asked));
        match (outcome.assumed, system.invariants.len()) {
            (_, 0) => {}
            (n, all) if n == all => {
                let _ = writeln!(out, "assumed        {n} `invariant` of the file");
            }
            (n, all) => {
                let _ = writeln!(
                    out,
                    "assumed        {n} of {all} `invariant` of the file: the others speak of memory or of several processes"
                );
            }
        }
    }
    if let Verdict::Unknown(w) = &outcome.verdict {
        let _ = writeln!(out, "why            {}", why(system, w));
    }
    let c = &outcome.counts;
    let _ = writeln!(
        out,
        "searches       {}, the last with {} cubes, {} expanded, {} pre-images, {} covered, {} deleted",
        outcome.searches,
        grouped(c.nodes as u64),
        grouped(c.expanded as u64),
        grouped(c.images as u64),
        grouped(c.covered as u64),
        grouped(c.deleted as u64)
    );
    let _ = writeln!(out, "approximations {} in the last search, {} refuted", c.approximations, outcome.refuted);
    let _ = writeln!(
        out,
        "seconds        {seconds:.3}, {:.3} of them to verify\npeak memory    {} MiB",
        outcome.verification.as_secs_f64(),
        session.peak_memory() >> 20
    );
    if let Verdict::Unsafe(run) = &outcome.verdict {
        out += &run_text(run);
    }
    out
}

fn claim_text(run: &Run) -> String {
    let who: Vec<String> = run.claim.1.iter().map(|p| format!("#{}", p + 1)).collect();
    if who.is_empty() { "`unsafe` holds".into() } else { format!("`unsafe` holds of {}", who.join(", ")) }
}

fn run_text(run: &Run) -> String {
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

fn as_json(session: &Session, system: &System, args: &ProveArgs, outcome: &Outcome, seconds: f64) -> Value {
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
        "seconds": seconds,
        "verification_seconds": outcome.verification.as_secs_f64(),
        "peak_memory_bytes": session.peak_memory(),
    });
    match &outcome.verdict {
        Verdict::Safe { asked, .. } => {
            object["processes"] = json!(numbers(system));
            object["verified"] = asked_json(asked);
        }
        Verdict::Unsafe(run) => {
            object["run"] = json!({
                "processes": run.processes,
                "steps": run.steps,
                "states": run.states,
                "unsafe": { "number": run.claim.0 + 1, "of": run.claim.1.iter().map(|p| p + 1).collect::<Vec<_>>() },
            });
        }
        Verdict::Unknown(w) => object["why"] = json!(why(system, w)),
    }
    object
}

fn asked_json(asked: &Asked) -> Value {
    json!({
        "cubes": asked.cubes, "initiation": asked.initiation, "consecution": asked.consecution, "safety": asked.safety, "decisions": asked.decisions,
    })
}

pub(super) fn verify(session: &mut Session, args: &VerifyArgs) -> Result<u8, Diagnostic> {
    let system = read(session, &args.file, &args.translation)?;
    let text = session.read(&args.certificate)?;
    let start = Instant::now();
    output::stage("verifying");
    let found =
        mu_prove::verify::verify_within(&system, &text, &session.budget, session.common.threads.map_or(0, |_| session.threads()), u64::MAX);
    let seconds = start.elapsed().as_secs_f64();
    if let (Some(folder), Ok(_)) = (&args.smt_lib, &found) {
        smt(&system, &text, folder)?;
    }
    let (code, word) = match &found {
        Ok(_) => (0, "proved"),
        Err(Refused::Unreadable(e)) => {
            let message = format!("{}:{}: {}", args.certificate.display(), e.line, e.message);
            return Err(Diagnostic::new(Stage::Syntax, message));
        }
        Err(Refused::Stopped(_)) => (3, "unknown"),
        Err(_) => (1, "refused"),
    };
    match session.common.format {
        Format::Text => {
            let mut out = format!("certificate    {word}\n");
            match &found {
                Ok(asked) => {
                    let _ = writeln!(out, "processes      {}\nverified       {}", numbers(&system), asked_text(asked));
                }
                Err(r) => {
                    let _ = writeln!(out, "why            {}", refused(&system, r));
                }
            }
            let _ = writeln!(out, "seconds        {seconds:.3}");
            print(&out)?;
        }
        Format::Json => {
            let mut object = json!({ "verdict": output::verdict_word(word), "certificate": word, "seconds": seconds });
            match &found {
                Ok(asked) => object["verified"] = asked_json(asked),
                Err(r) => object["why"] = json!(refused(&system, r)),
            }
            output::object(object)?;
        }
    }
    Ok(code)
}
