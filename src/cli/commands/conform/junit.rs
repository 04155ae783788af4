//! JUnit report of `conform`, and the output of its results.
//!
//! With `--against`, each memory model is a test case; without it, the conclusion is one, because
//! a machine violates the models that are stronger than it. Each seeded fault is a test case that
//! fails if no program finds the fault. In: the result as JSON, so that bounded and unbounded
//! searches have the same report.

use crate::args::ConformArgs;
use crate::output::answers;
use crate::pipeline::Session;
use crate::pipeline::files::write_junit;
use mu_base::Diagnostic;
use mu_report::junit::{CaseOutcome, TestCase};
use serde_json::Value;
use std::path::Path;

/// Prints the registered results and writes the JUnit report that the user requested. Returns the
/// exit code `code` of the results.
pub(super) fn publish(
    session: &Session,
    args: &ConformArgs,
    object: &Value,
    code: u8,
) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.junit {
        let class = args.model.display().to_string();
        write_junit(path, &args.model, &cases(&class, object, !args.against.is_empty()))?;
        if path == Path::new("-") {
            return Ok(code);
        }
    }
    answers::finish(session.common.format)
}

/// Writes a report in which the run is one error.
pub(super) fn report_error(path: &Path, model: &Path, message: String) {
    let (class, outcome) = (model.display().to_string(), CaseOutcome::Error(message));
    let case = TestCase { class, name: "conform".into(), seconds: 0.0, outcome };
    // If the file cannot be written either, the first error is reported.
    let _ = write_junit(path, model, &[case]);
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or("")
}

fn cases(class: &str, object: &Value, by_model: bool) -> Vec<TestCase> {
    let list = |key: &str| object[key].as_array().cloned().unwrap_or_default();
    let models = list("models");
    let case = |name: String, outcome: CaseOutcome| TestCase {
        class: class.to_string(),
        name,
        seconds: 0.0,
        outcome,
    };
    let mut cases: Vec<TestCase> = match by_model {
        true => models.iter().map(|m| case(text(m, "name").into(), of_model(m))).collect(),
        false => vec![case("conform".into(), conclusion(&models))],
    };
    for fault in list("faults") {
        let outcome = match &fault["operations"] {
            Value::Null if text(&fault, "stop") != "complete" => {
                CaseOutcome::Unknown(text(&fault, "stop").into())
            }
            Value::Null => CaseOutcome::Failed {
                message: "no program within the bound finds the fault".into(),
                text: String::new(),
            },
            _ => CaseOutcome::Passed,
        };
        cases.push(case(format!("fault {}", text(&fault, "name")), outcome));
    }
    // The models share one search, so its time is that of the first case.
    if let Some(first) = cases.first_mut() {
        first.seconds = object["seconds"].as_f64().unwrap_or(0.0);
    }
    cases
}

fn of_model(model: &Value) -> CaseOutcome {
    match text(model, "verdict") {
        "true" => CaseOutcome::Passed,
        "false" => CaseOutcome::Failed {
            message: format!("{} forbids {}", text(model, "name"), text(model, "test")),
            text: text(model, "litmus").into(),
        },
        _ => CaseOutcome::Unknown(text(model, "reason").into()),
    }
}

/// Returns the outcome of a table of all models: the machine conforms to some model.
fn conclusion(models: &[Value]) -> CaseOutcome {
    let has = |verdict: &str| models.iter().any(|m| text(m, "verdict") == verdict);
    if has("true") {
        return CaseOutcome::Passed;
    }
    match models.iter().find(|m| text(m, "verdict") == "unknown") {
        Some(open) => CaseOutcome::Unknown(text(open, "reason").into()),
        None => {
            let tests =
                models.iter().map(|m| format!("{}: {}\n", text(m, "name"), text(m, "test")));
            CaseOutcome::Failed {
                message: "the machine conforms to no memory model".into(),
                text: tests.collect(),
            }
        }
    }
}
