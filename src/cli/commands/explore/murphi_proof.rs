//! Proofs of a Murphi model for every size of a scalarset (`explore MODEL.m -D NAME=any`).
//!
//! The model is translated to a system of any number of processes ([`mu_murphi::parametric`]),
//! which `mu_prove` proves safe; its certificate is verified. The system may have more steps than
//! the model, so a run of it to a failure is one of the model only if an instance of the model fails.

use crate::commands::explore::plan::Exploration;
use crate::output;
use crate::pipeline::Session;
use mu_base::Diagnostic;
use mu_frontends::Input;
use mu_prove::rules::Memory;
use mu_prove::{ProofVerdict, ProverOptions, UnknownReason};

/// Largest size of an instance that is searched for a failure of the system.
const MAX_SIZE: u32 = 6;

/// Answer for every size.
pub(super) enum Proof {
    /// No failure, for every size.
    Every {
        /// Number of cubes of the verified certificate.
        cubes: u64,
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
    let file = match mu_frontends::murphi::parametric(&input, sources, defines, name) {
        Ok(file) => file,
        Err(error) => {
            let place = error.span.filter(|s| s.is_somewhere()).map(|span| {
                let (line, column) = session.sources.line_column(span);
                format!(" ({}:{line}:{column})", session.sources.get(span.source).name)
            });
            let place = place.unwrap_or_default();
            return Ok(Proof::Open(format!("of {}{place}", error.message)));
        }
    };
    let system = mu_cubicle::check(&file)?;
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
        ProofVerdict::Safe { queries, .. } => Proof::Every { cubes: queries.cubes as u64 },
        ProofVerdict::Unsafe(run) if run.processes <= MAX_SIZE => {
            Proof::Fails { size: run.processes }
        }
        ProofVerdict::Unsafe(run) => Proof::Open(spurious(run.processes)),
        ProofVerdict::Searched(..) => Proof::Open("of a limit on the number of processes".into()),
        ProofVerdict::Unknown(UnknownReason::Stopped(stop)) => {
            Proof::Open(format!("the search for one stopped ({})", stop.word()))
        }
        ProofVerdict::Unknown(_) => Proof::Open(
            "the prover found none; `expand --to cubicle` writes the system, and `prove` has the reason".into(),
        ),
    })
}
