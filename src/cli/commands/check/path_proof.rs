//! Proofs of formulas for every value of parameters by evaluation along paths (`mu_zones`). Tried
//! for formulas that the regions (`every_value`) do not decide.
//!
//! In: the model over parameters without a value, a formula. Out: the proof, or the reason why
//! there is none; a certificate, and its check. Sorts of any size and components of any number are
//! left to the regions. Cost: bounded by a number of obligations, and by the limits of the run.

use super::every_value::{Abstract, build_abstract_model};
use super::phases::has_paths;
use super::plan::CheckPlan;
use super::spent::Spent;
use super::verified::Verification;
use crate::args::{Reduction, VerifyArgs};
use crate::output;
use crate::output::certificate::{CertificateReport, ResultPart};
use crate::pipeline::Session;
use crate::pipeline::files::write_text;
use crate::pipeline::properties;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_formula::typed::TypedFormula;
use mu_regions::sizes::{Family, SIZE};
use mu_zones::{
    Answer, AnySize, Identities, NoProof, Proof, Question, Samples, Verified, confirm, prove,
    verify,
};
use serde_json::json;
use std::path::Path;
use std::slice;
use std::time::Duration;

/// Limit on obligations in the phase of short paths, before other methods are tried.
const SHORT_OBLIGATIONS: usize = 300;
/// Limit on obligations in the phase of long paths.
const LONG_OBLIGATIONS: usize = 5_000;
/// Limit on obligations if a certificate is wanted.
const CERTIFIED_OBLIGATIONS: usize = 50_000;
/// The confirmation of an answer of the regions takes at most this multiple of the time of the
/// search, or [`MIN_CONFIRMATION_TIME`].
const MAX_CONFIRMATION_RATIO: u32 = 5;
/// Time that the confirmation of an answer may take after any search.
const MIN_CONFIRMATION_TIME: Duration = Duration::from_secs(2);
/// Minimum time for samples.
const MIN_SAMPLING_TIME: Duration = Duration::from_millis(50);
/// The samples take one part in this number of the time of the proof.
const SAMPLING_PART: u32 = 10;
/// Seed of the samples; runs are deterministic except for limits.
const SEED: u64 = 0x5eed;

/// The symbolic parameters of a model.
struct SymbolicParameters {
    /// Index of each parameter, and its least value.
    symbolic: Vec<(usize, i64)>,
    names: Vec<String>,
    identities: Option<Identities>,
    sizes: Vec<AnySize>,
}

impl SymbolicParameters {
    fn new(model: &Abstract) -> Self {
        let rigid = &model.defined.rigid;
        let symbolic = rigid.iter().map(|r| (r.param, r.least)).collect();
        let names = rigid.iter().map(|r| r.name.clone()).collect();
        let identities = model.replicas.as_ref().map(|replicas| Identities {
            sort: replicas.family.sort,
            constants: replicas.family.constants.clone(),
            count: SIZE,
            owner: replicas.owner.clone(),
            all: replicas.all.map(|slot| slot as usize),
        });
        let sizes = model.families.iter();
        let of = |f: &Family| AnySize { sort: f.sort, constants: f.constants.clone() };
        Self { symbolic, names, identities, sizes: sizes.map(of).collect() }
    }

    fn question<'q>(
        &'q self,
        session: &'q Session,
        model: &'q Abstract,
        formula: &'q TypedFormula,
    ) -> Question<'q> {
        Question {
            process: model.compiled.process(),
            initial: &model.defined.initial,
            symbolic: &self.symbolic,
            names: &self.names,
            constants: &model.defined.constants,
            formula,
            budget: &session.budget,
            most: None,
            certificate: false,
            identities: self.identities.as_ref(),
            sizes: &self.sizes,
        }
    }
}

/// Limit on the obligations of a search; a certificate has a limit of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathLimit {
    /// Before other methods are tried.
    Short,
    /// After these.
    Long,
}

/// Result of a search along paths.
pub(super) enum PathProofResult {
    /// There is a proof; the checker has confirmed it, or does not run.
    Proved(Box<Proof>, Verification),
    /// There is no proof.
    Open(NoProof),
    /// The limit on obligations was reached.
    Limited(NoProof),
    /// The checker does not decide a part of the proof.
    Undecided(Diagnostic),
    /// The proof is wrong.
    Rejected(Diagnostic),
}

/// Searches for a proof, and verifies it.
///
/// # Errors
///
/// Internal ones: an answer that fails its audit.
pub(super) fn prove_by_paths(
    session: &Session,
    plan: &CheckPlan,
    model: &Abstract,
    formula: &TypedFormula,
    limit: PathLimit,
) -> Result<PathProofResult, Diagnostic> {
    let start = Instant::now();
    let parameters = SymbolicParameters::new(model);
    let limits = session.budget.limits();
    let phase_limit = match limit {
        _ if plan.certificate.is_some() => CERTIFIED_OBLIGATIONS,
        PathLimit::Short => SHORT_OBLIGATIONS,
        PathLimit::Long => LONG_OBLIGATIONS,
    };
    let state_limit = limits.max_states.and_then(|n| usize::try_from(n).ok());
    let max_obligations = state_limit.unwrap_or(phase_limit).min(phase_limit);
    let verifies = !plan.search.without.contains(&Reduction::Verify);
    let question = Question {
        most: Some(max_obligations),
        certificate: verifies || plan.certificate.is_some(),
        ..parameters.question(session, model, formula)
    };
    // The time of the proof is known when the first sample is wanted.
    let first_sample_at = std::cell::Cell::new(None::<Instant>);
    let first_sample = || {
        first_sample_at.get().unwrap_or_else(|| {
            let now = Instant::now();
            first_sample_at.set(Some(now));
            now
        })
    };
    let is_sampling_over = || {
        let first = first_sample();
        let limit = MIN_SAMPLING_TIME.max(first.duration_since(start) / SAMPLING_PART);
        first.elapsed() > limit || session.budget.check(0).is_err()
    };
    let samples = Samples { most: plan.search.samples, seed: SEED, enough: &is_sampling_over };
    let proof = match prove(&question, &samples)? {
        Answer::True(proof) => proof,
        Answer::Unknown(open) => {
            session.log(format!("by paths: {}", open.why.message));
            return Ok(PathProofResult::Open(open));
        }
        Answer::Limit(open) => {
            session.log(format!(
                "by paths, up to {max_obligations} obligations: {}",
                open.why.message
            ));
            return Ok(PathProofResult::Limited(open));
        }
    };
    session.log(format!(
        "by paths: true, {} obligations, {} paths, {} explorations",
        proof.obligations, proof.paths, proof.rounds
    ));
    let search = first_sample().duration_since(start);
    let text = proof.certificate.as_deref().unwrap_or_default();
    let verification = if verifies {
        let begun = Instant::now();
        match verify(&question, text) {
            Ok(found) => Verification::Done { found, took: begun.elapsed(), search },
            Err(why) if why.stop.is_some() => return Ok(PathProofResult::Open(why.into())),
            Err(why) => return classify_rejection(session, why),
        }
    } else {
        Verification::Missing("`--without verify`".into())
    };
    session.log(verification.text());
    if let Some(file) = &plan.certificate {
        write_certificate(session, file, text)?;
    }
    Ok(PathProofResult::Proved(Box::new(proof), verification))
}

/// Basis of an answer that is not verified.
const ON_SAMPLES: &str = "the answer rests on regions, checked by samples";

/// Verifies an answer of the regions: the checker proves the formula by itself. `search`: processor
/// time of the search.
pub(super) fn verify_answer(
    session: &Session,
    model: &Abstract,
    formula: &TypedFormula,
    search: Duration,
) -> Verification {
    output::begin_stage("verifying");
    let parameters = SymbolicParameters::new(model);
    let question = parameters.question(session, model, formula);
    let begun = Spent::begin();
    let limit = MIN_CONFIRMATION_TIME.max(search * MAX_CONFIRMATION_RATIO);
    let verification = match confirm(&question, &|| begun.elapsed() > limit) {
        Ok(found) => Verification::Done { found, took: begun.elapsed(), search },
        Err(why) => {
            let what = match &why.stop {
                Some(stop) => format!("the checker stopped: {}", stop.word()),
                None => format!("the checker does not confirm it: {}", why.message),
            };
            Verification::Missing(format!("{what}; {ON_SAMPLES}"))
        }
    };
    session.log(verification.text());
    verification
}

/// Classifies a proof that the checker does not confirm.
fn classify_rejection(session: &Session, why: Diagnostic) -> Result<PathProofResult, Diagnostic> {
    let place: String = why.notes.iter().map(|note| format!("; {note}")).collect();
    let text = format!("{}{place}", why.message);
    session.log(format!("the proof along paths is not confirmed: {text}"));
    match why.stage {
        Stage::Unsupported => {
            let message = format!("the checker does not decide a part of the proof: {text}");
            Ok(PathProofResult::Undecided(Diagnostic { message, notes: Vec::new(), ..why }))
        }
        Stage::Formula => {
            let message = format!("the checker rejects the proof: {text}");
            let stage = Stage::Unsupported;
            Ok(PathProofResult::Rejected(Diagnostic { stage, message, notes: Vec::new(), ..why }))
        }
        // The certificate was written by this run, so an error in its text is an internal one.
        _ => Err(Diagnostic::internal(text)),
    }
}

/// Writes a certificate with the parameters of the run.
fn write_certificate(session: &Session, file: &Path, text: &str) -> Result<(), Diagnostic> {
    let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
    let defines = session.common.define.iter().map(|d| format!("{DEFINE}{d}\n"));
    let text = format!("{head}\n{}{rest}", defines.collect::<String>());
    write_text(file, &text)
}

/// The first word of a line with the value of a parameter.
const DEFINE: &str = "define ";

/// Verifies a certificate of a formula (`verify MODEL FORMULA FILE`).
pub(crate) fn verify_formula(
    session: &mut Session,
    args: &VerifyArgs,
    file: &Path,
) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    output::begin_stage("verifying");
    let text = session.read(file)?;
    let required = std::mem::take(&mut session.common.define);
    session.common.define =
        text.lines().filter_map(|line| line.strip_prefix(DEFINE)).map(String::from).collect();
    let texts = properties::formula_texts(session, slice::from_ref(&args.certificate), &[])?;
    let [formula] = &texts[..] else {
        let text = format!("{} contains several formulas", args.certificate.display());
        return Err(Diagnostic::new(Stage::Usage, text));
    };
    let any = super::parameters(session);
    let model = build_abstract_model(session, &args.file, &any)?;
    let process = model.compiled.process();
    let formula = properties::read(formula, &process.data, &process.actions)?;
    let parameters = SymbolicParameters::new(&model);
    let question = parameters.question(session, &model, &formula);
    let values = values_of_parameters();
    let found = match values_mismatch(&required, &values)? {
        Some(why) => Err(why),
        None if !any.is_empty() && !has_paths(&model) => {
            let text = "a certificate is for numbers without a value, not for a sort of any size or components of any number";
            Err(Diagnostic::new(Stage::Unsupported, text))
        }
        None => verify(&question, &text),
    };
    let seconds = start.elapsed().as_secs_f64();
    let every = any.iter().map(|n| format!("{n} = any")).collect::<Vec<_>>().join(", ");
    let (code, word, check) = verification_outcome(found, file)?;
    let named = values.iter().map(|(name, value)| format!("{name} = {value}"));
    let named = named.collect::<Vec<_>>().join(", ");
    let claim =
        ResultPart { text: format!("for            {named}\n"), object: json!({ "for": every }) };
    let report = CertificateReport { verdict: word, claim, check, seconds };
    report.print(session.common.format)?;
    Ok(code)
}

/// Returns the exit code and the word for the result of a verification, with its figures or the
/// reason why the certificate is not proved.
///
/// # Errors
/// A limit, or a certificate that cannot be read.
fn verification_outcome(
    found: Result<Verified, Diagnostic>,
    file: &Path,
) -> Result<(u8, &'static str, Result<ResultPart, String>), Diagnostic> {
    let why = match found {
        Ok(found) => return Ok((0, "proved", Ok(verification_part(&found)))),
        Err(why) => why,
    };
    let (code, word) = match why.stage {
        _ if why.stop.is_some() => return Err(why),
        Stage::Formula => (1, "refused"),
        Stage::Unsupported => (3, "unknown"),
        _ if why.line.is_some() => return Err(why.in_file(&file.display().to_string())),
        _ => return Err(why),
    };
    let notes: String = why.notes.iter().map(|note| format!("; {note}")).collect();
    Ok((code, word, Err(format!("{}{notes}", why.message))))
}

/// Describes a successful check by its figures.
fn verification_part(found: &Verified) -> ResultPart {
    let Verified { obligations, initiation, consecution, formula } = found;
    ResultPart {
        text: format!(
            "verified       {obligations} obligations: {initiation} checks of initiation, {consecution} of consecution, {formula} of the formula\n"
        ),
        object: json!({
            "verified": {
                "obligations": obligations, "initiation": initiation,
                "consecution": consecution, "formula": formula,
            },
        }),
    }
}

/// Returns the parameters of the run with their values; those that are `any` first.
fn values_of_parameters() -> Vec<(String, String)> {
    let recorded = output::recorded_parameters().unwrap_or_default();
    let pairs = recorded.as_object().into_iter().flatten();
    let mut values: Vec<(String, String)> = pairs
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_string()))
        .collect();
    values.sort_by_key(|(_, value)| value != "any");
    values
}

/// Compares the values that `-D` requires with those of a certificate. Returns the reason to reject
/// it.
fn values_mismatch(
    required: &[String],
    values: &[(String, String)],
) -> Result<Option<Diagnostic>, Diagnostic> {
    for text in required {
        let (name, wanted) = text.split_once('=').unwrap_or((text, ""));
        let (name, wanted) = (name.trim(), wanted.trim());
        let Some((_, own)) = values.iter().find(|v| v.0 == name) else {
            let text = format!("unknown parameter `{name}`");
            return Err(Diagnostic::new(Stage::Usage, text));
        };
        let number = |text: &str| text.parse::<i64>().ok();
        if own != wanted && (number(own).is_none() || number(own) != number(wanted)) {
            let text = format!("the certificate is for {name} = {own}, not {name} = {wanted}");
            return Ok(Some(Diagnostic::new(Stage::Formula, text)));
        }
    }
    Ok(None)
}
