//! Proofs of formulas for every value of parameters by evaluation along paths: `mu_zones`, for what
//! the regions of `every_value` leave open.
//!
//! In: the model over parameters without a value, a formula. Out: the proof, or the reason why
//! there is none; a certificate, and its check. Sorts of any size and components of any number are
//! left to the regions. Cost: bounded by a number of obligations, and by the limits of the run.

use super::every_value::{Abstract, abstracted};
use super::plan::Plan;
use crate::args::{Format, VerifyArgs};
use crate::output::{self, print};
use crate::pipeline::Session;
use crate::pipeline::properties;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_formula::typed::TypedFormula;
use mu_zones::{Answer, Proof, Question, Samples, Verified, prove, verify};
use serde_json::json;
use std::path::Path;
use std::slice;
use std::time::Duration;

/// Limit on obligations.
const MOST: usize = 5_000;
/// Limit on obligations if a certificate is wanted.
const MOST_CERTIFIED: usize = 50_000;
/// Minimum time for samples.
const MIN_TIME: Duration = Duration::from_millis(50);
/// The samples take one part in `PART` of the time of the proof.
const PART: u32 = 10;
/// Seed of the samples; runs are deterministic except for limits.
const SEED: u64 = 0x5eed;

/// The symbolic parameters of a model.
struct Posed {
    symbolic: Vec<(usize, i64)>,
    names: Vec<String>,
}

impl Posed {
    fn new(model: &Abstract) -> Self {
        let rigid = &model.defined.rigid;
        let symbolic = rigid.iter().map(|r| (r.param, r.least)).collect();
        Self { symbolic, names: rigid.iter().map(|r| r.name.clone()).collect() }
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
        }
    }
}

/// Searches for a proof. `Ok(Err(why))`: there is none for this reason.
///
/// # Errors
///
/// Internal ones: an answer that fails its audit.
pub(super) fn by_paths(
    session: &Session,
    plan: &Plan,
    model: &Abstract,
    formula: &TypedFormula,
) -> Result<Result<Proof, Diagnostic>, Diagnostic> {
    let start = Instant::now();
    let posed = Posed::new(model);
    let limits = session.budget.limits();
    let own = if plan.certificate.is_some() { MOST_CERTIFIED } else { MOST };
    let most = limits.max_states.and_then(|n| usize::try_from(n).ok()).unwrap_or(own).min(own);
    let question = Question {
        most: Some(most),
        certificate: plan.certificate.is_some(),
        ..posed.question(session, model, formula)
    };
    // The time of the proof is known when the first sample is wanted.
    let begun = std::cell::Cell::new(None::<Instant>);
    let enough = || {
        let first = begun.get().unwrap_or_else(|| {
            let now = Instant::now();
            begun.set(Some(now));
            now
        });
        let limit = MIN_TIME.max(first.duration_since(start) / PART);
        first.elapsed() > limit || session.budget.check(0).is_err()
    };
    let samples = Samples { most: plan.search.samples, seed: SEED, enough: &enough };
    Ok(match prove(&question, &samples)? {
        Answer::True(proof) => {
            if let (Some(file), Some(text)) = (&plan.certificate, &proof.certificate) {
                write_certificate(session, file, text)?;
            }
            session.log(format!(
                "by paths: true, {} obligations, {} paths, {} explorations",
                proof.obligations, proof.paths, proof.rounds
            ));
            Ok(proof)
        }
        Answer::Unknown(why) => {
            session.log(format!("by paths: {}", why.message));
            Err(why)
        }
    })
}

/// Writes a certificate with the parameters of the run.
fn write_certificate(session: &Session, file: &Path, text: &str) -> Result<(), Diagnostic> {
    let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
    let defines = session.common.define.iter().map(|d| format!("{DEFINE}{d}\n"));
    let text = format!("{head}\n{}{rest}", defines.collect::<String>());
    std::fs::write(file, text)
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write {}: {e}", file.display())))
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
    if !session.common.define.is_empty() {
        let text = "the certificate has the values of the parameters: `verify` takes no `-D`";
        return Err(Diagnostic::new(Stage::Usage, text));
    }
    session.common.define =
        text.lines().filter_map(|line| line.strip_prefix(DEFINE)).map(String::from).collect();
    let texts = properties::formula_texts(session, slice::from_ref(&args.certificate), &[])?;
    let [formula] = &texts[..] else {
        let text = format!("{} contains several formulas", args.certificate.display());
        return Err(Diagnostic::new(Stage::Usage, text));
    };
    let any = super::parameters(session);
    let model = abstracted(session, &args.file, &any)?;
    let process = model.compiled.process();
    let formula = properties::read(formula, &process.data, &process.actions)?;
    let posed = Posed::new(&model);
    let question = posed.question(session, &model, &formula);
    let found = verify(&question, &text);
    let seconds = start.elapsed().as_secs_f64();
    let every = any.iter().map(|n| format!("{n} = any")).collect::<Vec<_>>().join(", ");
    let (code, word, why) = match &found {
        Ok(_) => (0, "proved", None),
        Err(why) if why.stage == Stage::Unsupported => (1, "refused", Some(why)),
        Err(why) => return Err(why.clone()),
    };
    let why = why.map(|why| {
        let notes = why.notes.iter().map(|note| format!("; {note}"));
        format!("{}{}", why.message, notes.collect::<String>())
    });
    if session.common.format == Format::Json {
        let mut object = json!({
            "verdict": output::verdict_word(word), "certificate": word, "for": every, "seconds": seconds,
        });
        match (&found, why) {
            (Ok(found), _) => {
                object["verified"] = json!({
                    "obligations": found.obligations, "initiation": found.initiation,
                    "consecution": found.consecution, "formula": found.formula,
                });
            }
            (_, why) => object["why"] = json!(why),
        }
        output::print_object(object)?;
    } else {
        let mut out = format!("certificate    {word}\nfor            {every}\n");
        match (&found, why) {
            (Ok(found), _) => {
                let Verified { obligations, initiation, consecution, formula } = found;
                out += &format!(
                    "verified       {obligations} obligations: {initiation} checks of initiation, {consecution} of consecution, {formula} of the formula\n"
                );
            }
            (_, why) => out += &format!("why            {}\n", why.unwrap_or_default()),
        }
        print(&format!("{out}seconds        {seconds:.3}\n"))?;
    }
    Ok(code)
}
