//! Explanation of an answer to a formula: its evidence is checked and written, and becomes text and
//! JSON with notes, vacuous parts, and the reductions of the search.
//!
//! In: the answer of an engine, and the model it was found on. Out: the [`FormulaOutcome`] of the
//! formula. Invariant: evidence is replayed before it is shown.

use super::by_equations;
use super::plan::CheckPlan;
use super::report::{FormulaOutcome, ReportedVerdict, with_text};
use crate::args::Format;
use crate::output;
use crate::output::notes::{self, NoteContext};
use crate::output::picture::{Picture, write_evidence};
use crate::output::progress::count_text;
use crate::pipeline::load::Loaded;
use crate::pipeline::memory;
use crate::pipeline::{self, Session};
use mu_base::{Diagnostic, Span, Stop};
use mu_evidence::checker::{self, EvidenceCheck};
use mu_formula::typed::TypedFormula;
use mu_pbes::{Answer, Method, Priority, QuotientSize, ReductionUse, Verdict};
use mu_report::printed_evidence::{
    MOST_IN_ANSWER, MOST_IN_TEXT, PrintedEvidence, explain_ending, story,
};
use serde_json::{Value, json};
use std::path::Path;

/// Result of a formula.
pub(super) struct FormulaResult {
    pub answer: Answer,
    /// Reason for the choice of the engine, if known.
    pub why: Option<String>,
    /// True if an equation system decided the formula, so that the reached labels are unknown.
    pub by_equations: bool,
    /// Counterexample values of parameters set to `any`.
    pub at: Option<ParameterValues>,
    pub seconds: f64,
}

/// Values of parameters that are set to `any`.
pub(super) struct ParameterValues {
    pub values: String,
    /// True if each smaller value that the file admits has been checked, and satisfies the formula.
    pub least: bool,
}

/// Checks the evidence of an answer, writes its file, and returns the outcome of the formula, which
/// is the one with this index in the plan.
pub(super) fn outcome(
    session: &Session,
    plan: &CheckPlan,
    subject: &Loaded,
    (index, formula): (usize, &TypedFormula),
    found: FormulaResult,
) -> Result<FormulaOutcome, Diagnostic> {
    let (text, output_plan) = (&plan.texts[index], &plan.output);
    let path = text.name.as_path();
    let FormulaResult { answer, why, by_equations, at, seconds } = found;
    if let Some(why) = &why {
        session.log(format!("engine {why}"));
    }
    session.log(format!(
        "{}: {} by {}, {} equations in {seconds:.3} s",
        path.display(),
        word(&answer.verdict).0,
        answer.method.word(),
        answer.equations
    ));
    session.log_symmetries(answer.symmetries, &plan.search.without, &answer.dropped);
    let priority = log_priority(session, &answer);
    let order = session.log_partial_order(answer.order);
    answer.reduced.as_ref().inspect(|reduced| log_quotient(session, reduced));
    if answer.alone {
        session.log("process 0 solved this alone, with its own part of the memory: games are not distributed");
    }
    if let Some(evidence) = &answer.evidence {
        output::begin_stage_on("checking the evidence", path);
        match checker::check(evidence, &*subject.model, &*subject.labels, formula)? {
            EvidenceCheck::Confirmed => session.log("evidence: every step was replayed and the verdict confirmed on it"),
            EvidenceCheck::StepsOnly => session.log("evidence: every step was replayed; the formula was too large to evaluate on it directly"),
        }
    }
    let vacuous = vacuous(session, &answer);
    for v in vacuous.iter().filter(|_| !session.common.quiet) {
        let warning = "warning: no transition ever matched this modality, so this part of the formula was not tested";
        eprintln!("{}:{}:{}: {warning}: {}", v.name, v.line, v.column, v.excerpt);
    }
    let note_context = NoteContext {
        model: &*subject.model,
        labels: &*subject.labels,
        sources: &session.sources,
        whole: output_plan.whole && !by_equations,
    };
    let notes = by_equations::unless_without_value(notes::notes(&note_context, formula, &answer))?;
    for note in notes.iter().filter(|_| !session.common.quiet) {
        eprintln!("{}", note.text(&session.sources));
    }
    let story = match &answer.evidence {
        Some(evidence) if answer.informative || output_plan.evidence.is_some() => {
            let picture = output_plan.evidence.as_deref().map(Picture::of).transpose()?;
            let most = match session.common.format {
                _ if matches!(picture, Some(Picture::Json | Picture::Chart | Picture::Log(_))) => {
                    usize::MAX
                }
                _ if matches!(picture, Some(Picture::Page)) => MOST_IN_ANSWER,
                Format::Json => MOST_IN_ANSWER,
                Format::Text => MOST_IN_TEXT,
            };
            let mut story = story(evidence, &*subject.model, output_plan.full_states, most)?;
            story.ending = by_equations::unless_without_value(explain_ending(
                evidence,
                &*subject.model,
                &[],
                &session.sources,
            ))?;
            Some(story)
        }
        _ => None,
    };
    match (&answer.evidence, &story) {
        (Some(evidence), Some(story)) => {
            write_evidence(session, plan, subject, text, (evidence, story))?
        }
        _ if output_plan.evidence.is_some() && output_plan.page().is_none() => {
            eprintln!("{}: no evidence: nothing is written", path.display());
        }
        _ => {}
    }
    let line = || as_text(session, path, &answer, at.as_ref(), story.as_ref(), seconds);
    let line = output_plan.lines.then(line);
    let object = output_plan.object.then(|| {
        let mut object = with_text(as_json(path, &answer, story.as_ref(), &vacuous, seconds), text);
        if let Some(why) = why {
            object["engine_reason"] = why.into();
        }
        for (key, reported) in [("confluence", priority), ("partial_order", order)] {
            if let Some(reported) = reported {
                object[key] = reported;
            }
        }
        add_symmetries(&mut object, subject, plan, &answer);
        if !notes.is_empty() {
            object["notes"] = notes.iter().map(|n| n.json(&session.sources)).collect();
        }
        if let Some(ending) = story.as_ref().and_then(|s| s.ending.as_ref()) {
            object["ending"] = ending.json();
        }
        if let Some(values) = story.as_ref().and_then(PrintedEvidence::values_json) {
            object["values"] = values;
        }
        if let Some(graph) =
            story.as_ref().and_then(|s| memory::operations(session, &plan.model, s))
        {
            object["execution"] = graph;
        }
        if let Some(at) = at {
            object["for"] = at.values.into();
        }
        object
    });
    let notes: String = notes.iter().map(|n| n.text(&session.sources) + "\n").collect();
    let evidence = notes + &story.map(|s| s.text(false)).unwrap_or_default();
    let verdict = ReportedVerdict::of(&answer.verdict, evidence);
    Ok(FormulaOutcome { formula: index, verdict, seconds, object, line })
}

fn log_quotient(session: &Session, QuotientSize { equivalence, states, classes }: &QuotientSize) {
    let why = if equivalence.abstracts() {
        "no formula state distinguishes steps that the formula does not name"
    } else {
        "the formula does not name every label"
    };
    session.log(format!(
        "quotient: {states} states in {classes} classes of {} bisimilarity: {why}",
        equivalence.name()
    ));
}

/// Adds the symmetries of an explicit search to the result.
fn add_symmetries(object: &mut Value, subject: &Loaded, plan: &CheckPlan, answer: &Answer) {
    if answer.method != Method::Symbolic {
        let proven = subject.model.is_priority_proven();
        object["symmetries"] =
            pipeline::symmetries(proven, answer.symmetries, &plan.search.without, &answer.dropped);
    }
}

/// Logs the use of confluence if the user requested it. Returns the same as JSON.
fn log_priority(session: &Session, answer: &Answer) -> Option<Value> {
    match answer.priority {
        Priority::None => None,
        Priority::Used => {
            session.log("confluence: used, the formula cannot distinguish the system with priority from the full system");
            Some(json!({ "used": true }))
        }
        Priority::Forbidden(ban, place) => {
            let (line, column) = session.sources.line_column(place);
            let name = &session.sources.get(place.source).name;
            session.log(format!("confluence: not used: {name}:{line}:{column}: {}", ban.text()));
            Some(
                json!({ "used": false, "forbidden_by": ban.word(), "why": ban.text(), "line": line, "column": column }),
            )
        }
    }
}

/// Returns the answer if a limit is reached inside an evaluation.
pub(super) fn answer_after_limit(stop: Stop, engine: &str) -> Answer {
    let method = if engine == "symbolic" { Method::Symbolic } else { Method::Constant };
    Answer::new(Verdict::Unknown(stop), method)
}

/// Returns the outcome of an answer without evidence.
pub(super) fn without_evidence(
    session: &Session,
    plan: &CheckPlan,
    index: usize,
    answer: &Answer,
    seconds: f64,
) -> FormulaOutcome {
    let text = &plan.texts[index];
    let object = || with_text(as_json(&text.name, answer, None, &[], seconds), text);
    let line = || as_text(session, &text.name, answer, None, None, seconds);
    FormulaOutcome {
        formula: index,
        verdict: ReportedVerdict::of(&answer.verdict, String::new()),
        seconds,
        object: plan.output.object.then(object),
        line: plan.output.lines.then(line),
    }
}

/// A modality that was never tested: its place in the formula and its text.
struct Vacuous {
    name: String,
    line: usize,
    column: usize,
    text: String,
    /// The text, cut to one line.
    excerpt: String,
}

/// Returns the modalities that no transition ever matched, if the whole state space was searched.
fn vacuous(session: &Session, answer: &Answer) -> Vec<Vacuous> {
    if answer.verdict != Verdict::True {
        return Vec::new();
    }
    let of = |span: &Span| {
        let (line, column) = session.sources.line_column(*span);
        let text = session.sources.text(*span).split_whitespace().collect::<Vec<_>>().join(" ");
        let excerpt = notes::excerpt(&session.sources, *span);
        Vacuous { name: session.sources.get(span.source).name.clone(), line, column, text, excerpt }
    };
    answer.unmatched_modalities.iter().map(of).collect()
}

fn word(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::True => ("true", Stop::Complete.word().into()),
        Verdict::False => ("false", Stop::Complete.word().into()),
        Verdict::Unknown(stop) => ("unknown", stop.word().into()),
    }
}

fn as_json(
    path: &Path,
    answer: &Answer,
    story: Option<&PrintedEvidence>,
    vacuous: &[Vacuous],
    seconds: f64,
) -> Value {
    let (verdict, reason) = word(&answer.verdict);
    let mut object = json!({
        "formula": path.display().to_string(),
        "verdict": verdict,
        "reason": if reason == "complete" { answer.method.word().to_string() } else { reason },
        "equations": answer.equations,
        "states": answer.states,
        "engine": if answer.method.is_symbolic() { "symbolic" } else { "explicit" },
        "seconds": seconds,
        "evidence": story.map(|s| s.steps_json(MOST_IN_ANSWER)).unwrap_or_default(),
        "evidence_left_out": story.map_or(0, |s| s.omitted_count(MOST_IN_ANSWER)),
        "back_to": story.and_then(|s| s.back_to),
        "vacuous": vacuous.iter().map(|v| json!({ "line": v.line, "column": v.column, "text": v.text })).collect::<Vec<_>>(),
    });
    if answer.alone {
        object["alone"] = true.into();
    }
    if let (Some(story), Some(object)) =
        (story.filter(|s| !s.steps.is_empty()), object.as_object_mut())
    {
        object.extend(story.setting_json());
    }
    object
}

fn as_text(
    session: &Session,
    path: &Path,
    answer: &Answer,
    at: Option<&ParameterValues>,
    story: Option<&PrintedEvidence>,
    seconds: f64,
) -> String {
    let (verdict, reason) = word(&answer.verdict);
    let mut text = format!("{}: {verdict}", path.display());
    if let Some(at) = at {
        text += &format!(
            " for {}{}",
            at.values,
            if at.least { ", the smallest such value" } else { "" }
        );
    }
    if reason != "complete" {
        text += &format!(" ({reason})");
    }
    if !session.common.quiet {
        let of = if matches!(answer.order, ReductionUse::Used(left) if left.steps > 0) {
            " of a reduced search"
        } else {
            ""
        };
        text += &format!("  [{}{of}, {seconds:.3} s]", count_text(answer.equations, "equation"));
    }
    text.push('\n');
    if let Some(story) = story.filter(|s| !s.steps.is_empty() && !session.common.quiet) {
        text += &story.text(session.common.verbose > 0);
    }
    text
}
