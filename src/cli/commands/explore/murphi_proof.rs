//! Proofs of a Murphi model for every size of a scalarset (`explore MODEL.m -D NAME=any`).
//!
//! The model is translated to a system of any number of processes ([`mu_murphi::parametric`]),
//! which `mu_prove` proves safe; its certificate is verified. The system may have more steps than
//! the model, so a run of it to a failure is one of the model only if an instance of the model
//! fails. Translation and certificate are audited together by samples of instances
//! ([`mu_prove::audit::translation`]).

use crate::commands::explore::plan::Exploration;
use crate::commands::prove::samples::{PART, SEED};
use crate::output;
use crate::output::progress::group_digits;
use crate::pipeline::Session;
use mu_base::Diagnostic;
use mu_base::host::Instant;
use mu_cubicle::System;
use mu_cubicle::origin::Origin;
use mu_frontends::Input;
use mu_murphi::origin::ModelInstance;
use mu_murphi::parametric::correspondence::Correspondence;
use mu_murphi::typed::TypeId;
use mu_prove::audit::translation::{TranslationAudit, TranslationRequest, audit_translation};
use mu_prove::rules::Memory;
use mu_prove::{ProofVerdict, ProverOptions, UnknownReason};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Largest size of an instance that is searched completely for a failure of the system; a larger
/// one is searched up to a number of states.
pub(super) const MAX_SIZE: u32 = 6;
/// Minimum time for samples. They are all that checks the translation, so it is longer than for
/// other proofs; most models need a small part of it.
const FLOOR: Duration = Duration::from_secs(2);
/// Sizes of the instances of samples.
const SAMPLED: RangeInclusive<u32> = 1..=6;

/// Answer for every size.
pub(super) enum Proof {
    /// No failure, for every size.
    Every {
        /// Number of cubes of the verified certificate.
        cubes: u64,
        /// The audit; `None` if it is switched off.
        audit: Option<TranslationAudit>,
    },
    /// The system has a failure with this number of processes.
    Fails { size: u32 },
    /// No answer, for a reason.
    Open(String),
}

/// Returns the reason why a failure of the system is no answer.
pub(super) fn spurious(size: u32) -> String {
    format!(
        "the translation has a run of {size} elements to a failure, which the model has not: a nested quantifier, an assumption, or a priority is no condition there"
    )
}

/// Returns the reason why a failure of the system in an instance that is too large is no answer.
pub(super) fn unsearched_reason(size: u32) -> String {
    format!(
        "the translation has a run of {size} elements to a failure, and the search of that size was stopped before it found one"
    )
}

/// Searches for a proof.
pub(super) fn prove(
    session: &mut Session,
    args: &Exploration,
    defines: &[String],
    name: &str,
) -> Result<Proof, Diagnostic> {
    output::begin_stage("proving every size");
    let input = Input::file(&args.model);
    let sources = &mut session.sources;
    let translated = mu_frontends::murphi::translation(&input, sources, defines, name);
    let (translation, node) = match translated {
        Ok(found) => found,
        Err(error) => {
            let place = error.span.filter(|s| s.is_somewhere()).map(|span| {
                let (line, column) = session.sources.line_column(span);
                format!(" ({}:{line}:{column})", session.sources.get(span.source).name)
            });
            let place = place.unwrap_or_default();
            return Ok(Proof::Open(format!("of {}{place}", error.message)));
        }
    };
    let system = mu_cubicle::check(&translation.file)?;
    session.log(format!(
        "{} symbols, {} transitions, {} claims for every size",
        system.symbols.len(),
        system.transitions.len(),
        system.unsafes.len()
    ));
    let options = ProverOptions {
        memory: Memory::Sc,
        threads: session.threads().into(),
        ..ProverOptions::default()
    };
    let outcome = mu_prove::prove(&system, options, &session.budget);
    Ok(match outcome.verdict {
        ProofVerdict::Safe { certificate, queries } => {
            let of = (&translation.correspondence, node);
            let audit = audit_answer(session, args, (defines, name), of, (&system, &certificate))?;
            Proof::Every { cubes: queries.cubes as u64, audit }
        }
        ProofVerdict::Unsafe(run) => Proof::Fails { size: run.processes },
        ProofVerdict::Searched(..) => Proof::Open("of a limit on the number of processes".into()),
        ProofVerdict::Unknown(UnknownReason::Stopped(stop)) => {
            Proof::Open(format!("the search for one stopped ({})", stop.word()))
        }
        ProofVerdict::Unknown(_) => Proof::Open(
            "the prover found none; `expand --to cubicle` writes the system, and `prove` has the reason".into(),
        ),
    })
}

/// Audits the translation and a verified certificate by samples of instances. `None`: the audit is
/// switched off.
///
/// # Errors
/// Internal: an instance contradicts the system or the certificate.
fn audit_answer(
    session: &mut Session,
    args: &Exploration,
    (defines, name): (&[String], &str),
    (correspondence, node): (&Correspondence, TypeId),
    (system, certificate): (&System, &str),
) -> Result<Option<TranslationAudit>, Diagnostic> {
    if args.check_samples == 0 {
        return Ok(None);
    }
    output::begin_stage("checking the proof by samples");
    let input = Input::file(&args.model);
    let mut models = Vec::new();
    for size in SAMPLED {
        let is_size = |d: &String| d.split_once('=').is_some_and(|(n, _)| n.trim() == name);
        let instance = |d: &String| if is_size(d) { format!("{name}={size}") } else { d.clone() };
        let defines: Vec<String> = defines.iter().map(instance).collect();
        // A size that is too large for the search has no samples.
        let read = mu_frontends::murphi::model(&input, &mut session.sources, &defines);
        let Ok(model) = read else { continue };
        if let Ok(program) = mu_murphi::compile(&model) {
            models.push((model, program));
        }
    }
    let (start, limit) = (Instant::now(), FLOOR.max(session.budget.elapsed() / PART));
    let enough = || start.elapsed() > limit || session.budget.check(0).is_err();
    let mut instances = Vec::new();
    for (model, program) in &models {
        instances.push(ModelInstance::new(model, program, node, correspondence, enough)?);
    }
    let mut origins: Vec<&mut dyn Origin> =
        instances.iter_mut().map(|i| i as &mut dyn Origin).collect();
    let request = TranslationRequest {
        system,
        certificate: Some(certificate),
        samples: args.check_samples,
        seed: SEED,
        enough: &enough,
    };
    audit_translation(&request, &mut origins).map(Some)
}

/// Returns the audit as text.
pub(super) fn text(audit: Option<&TranslationAudit>) -> String {
    let Some(audit) = audit else { return "none (`--check-samples 0`)".into() };
    let Some((least, most)) = audit.processes else {
        return "none (the instances are too large, or the time was too short)".into();
    };
    format!(
        "{} states of {least} to {most} elements, {} reached; {} steps of {} rules, {} failures; seed {}",
        group_digits(audit.samples as u64),
        group_digits(audit.reached as u64),
        group_digits(audit.steps as u64),
        audit.rules,
        group_digits(audit.failures as u64),
        audit.seed
    )
}

/// Returns the audit for JSON.
pub(super) fn object(audit: Option<&TranslationAudit>) -> Value {
    let unchecked = audit.is_none().then_some("`--check-samples 0`");
    let TranslationAudit { samples, reached, outside, steps, rules, failures, processes, seed } =
        audit.copied().unwrap_or_default();
    let elements = processes.map(|(least, most)| [least, most]);
    json!({
        "samples": samples, "reached": reached, "outside": outside, "steps": steps, "rules": rules,
        "failures": failures, "elements": elements, "seed": seed, "unchecked": unchecked,
    })
}
