//! Audit of *safe for any number of processes* by samples, before the verdict is printed:
//! [`mu_prove::audit`]; for programs also random walks on their machine ([`mu_safety::walks`]).
//!
//! A violation is an internal error with the state, the step, and the seed. Cost: at most a tenth
//! of the time of the run, and at least some milliseconds.

use crate::args::{InitialValues, TranslationArgs};
use crate::output::progress::group_digits;
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, narrow};
use mu_cubicle::System;
use mu_program::memory::MemoryModel;
use mu_program::nasm;
use mu_prove::audit::AuditRequest;
use mu_prove::{Audit, audit};
use mu_safety::walks::{Walks, walk};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Minimum time for samples.
const FLOOR: Duration = Duration::from_millis(250);
/// The samples take one part in `PART` of the time of the run.
pub(crate) const PART: u32 = 10;
/// Seed of the samples; runs are deterministic except for limits.
pub(crate) const SEED: u64 = 0x5eed;
/// Maximum number of threads of a walk.
const MAX_THREADS: usize = 5;
/// Number of samples per walk of each number of threads.
const WALK_PART: usize = 20;
/// Maximum number of steps of a walk.
const LENGTH: usize = 100;

/// Audits a verified certificate. `took`: the time of the proof. `None`: the audit is switched off.
///
/// # Errors
/// Internal: a state of the machine contradicts the certificate.
pub(crate) fn check(
    session: &Session,
    samples: usize,
    system: &System,
    certificate: &str,
    took: Duration,
) -> Result<Option<Audit>, Diagnostic> {
    if samples == 0 {
        return Ok(None);
    }
    let start = Instant::now();
    let limit = FLOOR.max(took / PART);
    let enough = || start.elapsed() > limit || session.budget.check(0).is_err();
    // It is already known that some number of processes has an initial state: if no sample found
    // one, the proof is not at fault.
    audit(&AuditRequest { system, certificate, samples, seed: SEED, enough: &enough }).map(Some)
}

/// Walks a program on its machine, with 1 to 5 threads, after a proof of safety. Returns the number
/// of states.
///
/// # Errors
/// Internal: an unsafe state is reached.
pub(crate) fn walk_program(
    session: &mut Session,
    (file, translation): (&Path, &TranslationArgs),
    memory: &'static dyn MemoryModel,
    samples: usize,
    took: Duration,
) -> Result<usize, Diagnostic> {
    let (source, text) = session.read_source(file)?;
    let start = Instant::now();
    let limit = FLOOR.max(took / PART);
    let mut states = 0;
    for threads in 1..=MAX_THREADS {
        // If a claim or the code needs more threads, the reader reports it.
        let Ok(program) = nasm::parse(source, &text, threads) else { continue };
        let until = limit * narrow::index(threads) / narrow::index(MAX_THREADS);
        let enough = || start.elapsed() > until || session.budget.check(0).is_err();
        let any_registers = translation.initial == InitialValues::Any;
        let walks = samples.div_ceil(WALK_PART);
        match walk(&Walks {
            program: &program,
            memory,
            any_registers,
            walks,
            length: LENGTH,
            seed: SEED,
            enough: &enough,
        })? {
            Ok(found) => states += found,
            Err(found) => {
                let who = if threads == 1 {
                    "1 thread reaches".to_string()
                } else {
                    format!("{threads} threads reach")
                };
                let text = format!("the check by samples failed: {who} an unsafe state");
                let mut error =
                    Diagnostic::new(Stage::Internal, text).note(format!("state: {}", found.state));
                let step = |(thread, text): &(usize, Option<String>)| match text {
                    Some(text) => format!("P{thread}: {text}"),
                    None => format!("P{thread}: a store reaches memory"),
                };
                let steps: Vec<String> = found.steps.iter().map(step).collect();
                error = error.note(format!("steps: {}", steps.join("; ")));
                return Err(error.note(format!("seed: {SEED}")));
            }
        }
    }
    Ok(states)
}

/// Returns a line for people.
pub(crate) fn text(audit: Option<&Audit>) -> String {
    let Some(audit) = audit else { return "not checked by samples (`--check-samples 0`)".into() };
    let Some((least, most)) = audit.processes else {
        return "not checked by samples (no state was found outside the certificate within the time)".into();
    };
    let processes = match (least, most) {
        (1, 1) => "1 process".into(),
        (least, most) if least == most => format!("{least} processes"),
        (least, most) => format!("{least} to {most} processes"),
    };
    let mut out = format!(
        "{} machine states of {processes}, {} of them initial",
        group_digits(audit.samples as u64),
        audit.initial
    );
    if audit.buffered > 0 {
        out += &format!(", {} with store buffers in use", group_digits(audit.buffered as u64));
    }
    out += &format!("; {} steps; seed {}", group_digits(audit.steps as u64), audit.seed);
    if let Some(states) = audit.walked {
        out += &format!(
            "\n               {} states of random walks of the program, with 1 to {MAX_THREADS} threads",
            group_digits(states as u64)
        );
    }
    out
}

/// Returns the samples for JSON.
pub(crate) fn object(audit: Option<&Audit>) -> Value {
    let unchecked = audit.is_none().then_some("`--check-samples 0`");
    let Audit { samples, initial, buffered, steps, processes, walked, seed } =
        audit.copied().unwrap_or_default();
    let processes = processes.map(|(least, most)| [least, most]);
    json!({
        "samples": samples, "initial": initial, "buffered": buffered, "steps": steps, "processes": processes, "seed": seed,
        "walked": walked, "unchecked": unchecked,
    })
}
