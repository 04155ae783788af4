//! Values of real-valued formulas on models with or without probabilities (`check`).
//!
//! A value is exact; if only bounds are found, the answer is *unknown* with the bounds. Plus
//! infinity is `true` and minus infinity `false`.

use super::args::{CheckArgs, Format};
use super::chance;
use super::load::Loaded;
use super::output;
use super::pipeline::Session;
use super::properties::FormulaText;
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
        let Ok(file) = text.parsed() else { return false };
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

/// Computes and prints the values of the formulas.
pub(super) fn run(
    session: &Session,
    args: &CheckArgs,
    subject: &Loaded,
    texts: &[FormulaText],
) -> Result<u8, Diagnostic> {
    let requested = [
        (args.evidence.is_some(), "--evidence"),
        (args.game.is_some(), "--game"),
        (args.checkpoints.is_requested(), "--checkpoint` and `--resume"),
        (args.junit.is_some(), "--junit"),
        (args.engine().name() == "symbolic", "--engine symbolic"),
    ];
    if let Some((_, option)) = requested.iter().find(|(wanted, _)| *wanted) {
        let message = format!(
            "`{option}` is not supported for real-valued formulas and probabilistic models"
        );
        return Err(Diagnostic::new(Stage::Unsupported, message));
    }
    let read = |text: &FormulaText| check_real(&text.parsed()?, &subject.data, &subject.actions);
    let mut formulas: Vec<Result<RealFormula, Diagnostic>> = texts.iter().map(read).collect();
    // A single formula has no others to continue with.
    let several = texts.len() > 1;
    if !several && let Some(Err(_)) = formulas.first() {
        formulas.swap_remove(0)?;
    }
    let (system, stop) = chance::explored(session, &*subject.model)?;
    let (mut code, mut any_rejected) = (0u8, false);
    let in_text = session.common.format == Format::Text;
    let mut report_rejection = |text: &FormulaText, why: &Diagnostic| {
        any_rejected = true;
        eprint!("{}", why.render(&session.sources));
        let mut object = as_json(
            text,
            &ValueResult { bounds: Err(Stop::Interrupted), equations: 0, seconds: 0.0 },
        );
        object["reason"] = "error".into();
        object["error"] = output::error_as_json(why, &session.sources);
        let line = in_text.then(|| format!("{}: unknown (error)\n", text.name.display()));
        output::record_verdict(&text.name, Some(object), line, false)
    };
    for (text, formula) in texts.iter().zip(&formulas) {
        let start = Instant::now();
        output::begin_stage_on("checking a formula", &text.name);
        let formula = match formula {
            Ok(formula) => formula,
            Err(why) => {
                report_rejection(text, why)?;
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
                Err(error) if several && error.stage != Stage::Internal => {
                    report_rejection(text, &error)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
        }
        let found = ValueResult { bounds, equations, seconds: start.elapsed().as_secs_f64() };
        code = code.max(match &found.bounds {
            Ok(bounds) => match bounds.value() {
                Some(Real::Minus) => 1,
                Some(_) => 0,
                None => 3,
            },
            Err(_) => 3,
        });
        let violated =
            matches!(&found.bounds, Ok(bounds) if matches!(bounds.value(), Some(Real::Minus)));
        output::record_verdict(
            &text.name,
            Some(as_json(text, &found)),
            in_text.then(|| as_text(text, &found)),
            violated,
        )?;
    }
    if session.common.format == Format::Json {
        output::print_object(
            json!({ "results": output::recorded_verdicts(), "peak_memory_bytes": session.peak_memory() }),
        )?;
    }
    Ok(if any_rejected { 2 } else { code })
}

/// Maximum length of a number that is written in full in text.
const MAX_NUMBER_LENGTH: usize = 60;

fn number_text(value: &Real) -> String {
    let text = value.to_string();
    match value.about() {
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
                if let Some(about) = value.about() {
                    object["about"] = about.into();
                }
            }
            None => object["bounds"] = json!([bounds.lower.to_string(), bounds.upper.to_string()]),
        },
        Err(stop) => object["reason"] = stop.word().into(),
    }
    object
}
