//! Strategy of `check` for real-valued formulas, on models with or without probabilities: values.
//!
//! A value is exact; if only bounds are found, the answer is *unknown* with the bounds. Plus
//! infinity is `true` and minus infinity `false`.

use super::Strategy;
use super::plan::CheckPlan;
use super::report::{CheckReport, FormulaOutcome, ReportedVerdict, Summary};
use crate::commands::chance;
use crate::output;
use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use crate::pipeline::properties::FormulaText;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop};
use mu_formula::real::{RealFormula, check_real, has_real_operator};
use mu_formula::typecheck::check_formula;
use mu_reals::number::Real;
use mu_reals::solve::{Bounds, solve};
use mu_reals::translate::translate;
use serde_json::{Value, json};

/// True if some formula is real-valued or the model is probabilistic, so that all formulas have
/// values.
pub(super) fn has_real_values(subject: &Loaded, texts: &[FormulaText]) -> bool {
    let real = |text: &FormulaText| {
        let Ok(file) = text.parse() else { return false };
        has_real_operator(&file.formula)
            || check_formula(&file, &subject.data, &subject.actions).is_err()
                && check_real(&file, &subject.data, &subject.actions).is_ok()
    };
    subject.model.is_probabilistic() || texts.iter().any(real)
}

/// Result of a formula.
struct ValueResult {
    bounds: Result<Bounds, Stop>,
    equations: usize,
    seconds: f64,
}

/// The strategy.
pub(super) struct RealValueStrategy {
    /// The model.
    pub subject: Loaded,
}

impl Strategy for RealValueStrategy {
    fn check(
        &mut self,
        session: &mut Session,
        plan: &CheckPlan,
        report: &mut CheckReport,
    ) -> Result<Summary, Diagnostic> {
        let subject = &self.subject;
        expect_supported(plan)?;
        let read = |text: &FormulaText| check_real(&text.parse()?, &subject.data, &subject.actions);
        let mut formulas: Vec<Result<RealFormula, Diagnostic>> =
            plan.texts.iter().map(read).collect();
        // A single formula has no others to continue with.
        if !plan.has_several()
            && let Some(Err(_)) = formulas.first()
        {
            formulas.swap_remove(0)?;
        }
        let (system, stop) = chance::explore_system(session, &*subject.model)?;
        let stop = session.stop_with_bounds(stop);
        for (index, (text, formula)) in plan.texts.iter().zip(&formulas).enumerate() {
            let start = Instant::now();
            output::begin_stage_on("checking a formula", &text.name);
            let formula = match formula {
                Ok(formula) => formula,
                Err(why) => {
                    report.reject(session, index, why)?;
                    continue;
                }
            };
            let (mut equations, mut bounds) = (0, Err(stop.clone()));
            if stop == Stop::Complete {
                let translated = translate(formula, &system, &*subject.labels, &session.budget)
                    .and_then(|translated| {
                        equations = translated.nodes.len();
                        solve(&translated, &session.budget)
                    });
                bounds = match translated {
                    Ok(bounds) => Ok(bounds),
                    Err(Diagnostic { stop: Some(stop), .. }) => Err(stop),
                    Err(error) if plan.has_several() && error.stage != Stage::Internal => {
                        report.reject(session, index, &error)?;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
            }
            let seconds = start.elapsed().as_secs_f64();
            let found = ValueResult { bounds, equations, seconds };
            report.add(FormulaOutcome {
                formula: index,
                verdict: verdict(&found.bounds),
                seconds,
                object: plan.output.object.then(|| as_json(text, &found)),
                line: plan.output.lines.then(|| as_text(text, &found)),
            })?;
        }
        Ok(Summary::default())
    }
}

/// Rejects options that real-valued formulas do not support.
fn expect_supported(plan: &CheckPlan) -> Result<(), Diagnostic> {
    let requested = [
        (plan.output.evidence.is_some(), "--evidence"),
        (plan.game.is_some(), "--game"),
        (plan.checkpoints.is_requested(), "--checkpoint` and `--resume"),
        (plan.output.junit.is_some(), "--junit"),
        (plan.distribution.is_requested(), plan.distribution.option()),
        (plan.search.engine().name() == "symbolic", "--engine symbolic"),
    ];
    match requested.iter().find(|(wanted, _)| *wanted) {
        None => Ok(()),
        Some((_, option)) => {
            let message = format!(
                "`{option}` is not supported for real-valued formulas and probabilistic models"
            );
            Err(Diagnostic::new(Stage::Unsupported, message))
        }
    }
}

/// Returns the verdict for a value: minus infinity is false.
fn verdict(bounds: &Result<Bounds, Stop>) -> ReportedVerdict {
    match bounds {
        Ok(bounds) => match bounds.value() {
            Some(Real::Minus) => ReportedVerdict::Violated(String::new()),
            Some(_) => ReportedVerdict::NotViolated,
            None => ReportedVerdict::Unknown("bounds".into()),
        },
        Err(stop) => ReportedVerdict::Unknown(stop.word().into()),
    }
}

/// Maximum length of a number that is written in full in text.
const MAX_NUMBER_LENGTH: usize = 60;

fn number_text(value: &Real) -> String {
    let text = value.to_string();
    match value.approximation() {
        Some(d) if text.len() > MAX_NUMBER_LENGTH => {
            format!("about {d} (a fraction of {} digits)", text.len() - 1)
        }
        Some(d) => format!("{text} (about {d})"),
        None => text,
    }
}

fn as_text(text: &FormulaText, found: &ValueResult) -> String {
    let name = text.name.display();
    match &found.bounds {
        Ok(bounds) => match bounds.value() {
            Some(value @ Real::Number(_)) => format!("{name}: value {}\n", number_text(value)),
            Some(value) => format!("{name}: {value}\n"),
            None => format!(
                "{name}: unknown, between {} and {}\n",
                number_text(&bounds.lower),
                number_text(&bounds.upper)
            ),
        },
        Err(stop) => format!("{name}: unknown ({})\n", stop.word()),
    }
}

fn as_json(text: &FormulaText, found: &ValueResult) -> Value {
    let mut object = json!({
        "formula": text.name.display().to_string(),
        "verdict": "unknown",
        "reason": "real equations",
        "evidence": [],
        "vacuous": [],
        "equations": found.equations,
        "seconds": found.seconds,
        "engine": "explicit",
    });
    match &found.bounds {
        Ok(bounds) => match bounds.value() {
            Some(value) => {
                object["verdict"] = if let Real::Number(_) = value {
                    "value".into()
                } else {
                    value.to_string().into()
                };
                object["value"] = value.to_string().into();
                if let Some(about) = value.approximation() {
                    object["about"] = about.into();
                }
            }
            None => object["bounds"] = json!([bounds.lower.to_string(), bounds.upper.to_string()]),
        },
        Err(stop) => object["reason"] = stop.word().into(),
    }
    object
}
