//! Minimal forbidden parts of traces as litmus tests, confirmed by the layer `litmus`.

use super::against::Against;
use super::results::Results;
use crate::args::TraceArgs;
use crate::pipeline::files::write_text;
use crate::pipeline::{Session, file_error};
use mu_base::{Diagnostic, SourceMap, Stage, ends_in};
use mu_litmus::paths::PathBounds;
use mu_traces::litmus_test::{TestLanguage, litmus_test};
use mu_traces::minimal::minimal;
use mu_traces::{Conflict, DecisionOptions, Trace, TraceModel, Verdict, decide};
use serde_json::{Value, json};

/// A minimal forbidden part.
#[derive(Clone, Debug)]
pub(super) struct LitmusPart {
    /// Number of its operations.
    pub operations: usize,
    /// The test, or the reason why the part has no test.
    pub test: Result<String, String>,
    /// `Ok` if the layer `litmus` forbids the test too, otherwise the reason why it cannot judge
    /// it.
    pub confirmed: Result<(), String>,
    /// The file of the test.
    pub file: Option<String>,
}

impl LitmusPart {
    pub(super) fn json(&self) -> Value {
        let mut out = json!({ "operations": self.operations, "confirmed": self.confirmed.is_ok() });
        match &self.test {
            Ok(test) => out["text"] = json!(test),
            Err(reason) => out["reason"] = json!(reason),
        }
        if let (Ok(_), Err(reason)) = (&self.test, &self.confirmed) {
            out["reason"] = json!(reason);
        }
        if let Some(file) = &self.file {
            out["file"] = json!(file);
        }
        out
    }
    /// Returns the part in a line.
    pub(super) fn text(&self) -> String {
        let file = self.file.as_ref().map_or(String::new(), |f| format!(", written to {f}"));
        let size = format!("minimal part of {} operations", self.operations);
        match (&self.test, &self.confirmed) {
            (Err(reason), _) => format!("{size}, which is no litmus test here: {reason}"),
            (_, Ok(())) => format!("{size}{file}; the litmus test is forbidden too"),
            (_, Err(reason)) => format!("{size}{file}; not confirmed: {reason}"),
        }
    }
}

/// Returns the language of tests for a model, the preferred one first.
fn languages(model: &TraceModel) -> &'static [TestLanguage] {
    match model.name() {
        "sc" | "tso" => &[TestLanguage::X86, TestLanguage::RiscV],
        "armv8" => &[TestLanguage::AArch64],
        _ => &[TestLanguage::RiscV],
    }
}

/// True if a part needs annotations or fences that x86 does not have.
fn needs_more_than_x86(trace: &Trace, operations: &[u32]) -> bool {
    operations.iter().any(|&i| trace.mark(i as usize) != mu_traces::Annotations::PLAIN)
}

/// Returns the minimal part of a forbidden trace. `None` for a model of small traces.
pub(super) fn of(
    session: &Session,
    trace: &Trace,
    conflict: &Conflict,
    against: &Against,
    options: &DecisionOptions,
) -> Result<Option<LitmusPart>, Diagnostic> {
    let Some(model) = against.model() else { return Ok(None) };
    crate::output::begin_stage("minimising a forbidden part");
    let simplified = conflict.simplify(trace);
    let trace = simplified.as_ref();
    let part = minimal(trace, conflict, model, options, &session.budget)?;
    let mut languages = languages(model).to_vec();
    if needs_more_than_x86(trace, &part.operations) && languages.len() > 1 {
        languages.retain(|l| *l != TestLanguage::X86);
    }
    let title = format!("not-{}", model.name());
    let judged = trace.part(&part.operations, &part.finals);
    let depends = judged.has_commits()
        && !matches!(
            decide(&judged.without_commits(), model, options, &session.budget)?,
            Verdict::Forbidden { .. }
        );
    let test = match depends {
        true => Err("it depends on the order of stores that the log gives".to_string()),
        false => litmus_test(trace, &part.operations, &part.finals, &title, languages[0]),
    };
    let mut confirmed = Err("there is no test".to_string());
    if let Ok(text) = &test {
        confirmed = confirm(session, against, text)?;
    }
    let operations = part.operations.len();
    Ok(Some(LitmusPart { operations, test, confirmed, file: None }))
}

/// Returns `Ok` if the layer `litmus` forbids a test under the axioms of a model, otherwise the
/// reason why it cannot judge it.
///
/// # Errors
/// The layer allows the test: one of the two is wrong.
fn confirm(
    session: &Session,
    against: &Against,
    text: &str,
) -> Result<Result<(), String>, Diagnostic> {
    let model = &against.name;
    let Some(axioms) = &against.axioms else {
        return Ok(Err(format!("there are no axioms of `{model}`")));
    };
    let mut sources = SourceMap::new();
    let source = sources.add("the minimal part", text);
    let judged = mu_litmus::file::architecture(source, text).and_then(|arch| {
        let included = |name: &str| axioms.included_text(name);
        let judge = mu_litmus::Judge::compile(&mut sources, arch, model, &axioms.text, &included)?;
        let options = mu_litmus::file::ParserOptions { pairs: judge.pairs, ..Default::default() };
        Ok((mu_litmus::parse(source, text, options)?, judge))
    });
    let (test, judge) = match judged {
        Ok(both) => both,
        Err(d) => return Ok(Err(format!("the layer `litmus` rejects the test: {d}"))),
    };
    let report = match mu_litmus::run(test, &judge, PathBounds { loops: 1 }, &session.budget) {
        Ok(report) => report,
        Err(d) if d.stage == Stage::Internal => return Err(d),
        Err(d) => return Ok(Err(format!("the layer `litmus` rejects the test: {d}"))),
    };
    Ok(match report.answer.verdict {
        mu_program::outcome::Verdict::No => Ok(()),
        mu_program::outcome::Verdict::Unknown => {
            Err(format!("the layer `litmus` stopped: {}", report.stop.word()))
        }
        mu_program::outcome::Verdict::Ok => {
            return Err(Diagnostic::internal(format!(
                "`{model}` forbids a part of a trace but allows its litmus test:\n{text}"
            )));
        }
    })
}

/// Writes the tests that the user requested.
pub(super) fn write(
    session: &Session,
    args: &TraceArgs,
    results: &mut Results,
) -> Result<(), Diagnostic> {
    let Some(path) = args.litmus.as_deref() else { return Ok(()) };
    let single = ends_in(path, "litmus");
    if !single {
        mu_base::host::fs::create_dir_all(path)
            .map_err(|e| file_error("cannot create the folder", path, &e))?;
    }
    let several = results.models.len() > 1;
    let models = results.models.clone();
    let mut written: Vec<String> = Vec::new();
    for trace in &mut results.traces {
        for (model, answer) in models.iter().zip(&mut trace.answers) {
            let Some(part) = &mut answer.part else { continue };
            let Ok(text) = &part.test else { continue };
            let target = if single {
                if !written.is_empty() {
                    continue;
                }
                path.to_path_buf()
            } else {
                let plain =
                    |c: char| if c.is_alphanumeric() || "+-_".contains(c) { c } else { '_' };
                let mut name: String = trace.name.chars().map(plain).collect();
                if several {
                    name = format!("{name}-{model}");
                }
                while written.contains(&name) {
                    name.push('_');
                }
                written.push(name.clone());
                path.join(format!("{name}.litmus"))
            };
            write_text(&target, text)?;
            session.log(format!("wrote {}", target.display()));
            part.file = Some(target.display().to_string());
            if single {
                written.push(String::new());
            }
        }
    }
    if written.is_empty() && !session.common.quiet {
        eprintln!("no forbidden part has a litmus test: nothing is written");
    }
    Ok(())
}
