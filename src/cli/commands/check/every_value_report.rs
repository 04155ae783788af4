//! Report of a formula for every value of parameters: the text and the JSON of an answer.
//!
//! In: the figures of the search, the verification. Out: an outcome for the report of the command.

use super::every_value::{Figures, OpenFormula};
use super::plan::CheckPlan;
use super::report::{Decision, FormulaOutcome, with_text};
use super::verified::Verification;
use crate::output::progress::counted;
use crate::pipeline::properties::FormulaText;
use crate::pipeline::{self, Session};
use mu_base::host::Instant;
use serde_json::{Value, json};

pub(super) fn list_text(list: &Value) -> String {
    let word = |key: &str| list[key].as_str().unwrap_or_default();
    format!("every run ends: `{}` of {} gets shorter", word("list"), word("component"))
}

pub(super) fn measure_text(measure: &Value) -> String {
    let word = |key: &str| measure[key].as_str().unwrap_or_default();
    format!(
        "every run ends: `{}` of {} grows in {} summands, below {}",
        word("counter"),
        word("component"),
        measure["summands"],
        word("below")
    )
}

/// Report of a formula for all values.
pub(super) struct FormulaReport<'a> {
    pub session: &'a Session,
    pub plan: &'a CheckPlan,
    /// Index of the formula.
    pub index: usize,
    pub figures: &'a Figures,
    pub start: Instant,
}

impl FormulaReport<'_> {
    fn text(&self) -> &FormulaText {
        &self.plan.texts[self.index]
    }

    fn path(&self) -> String {
        self.text().name.display().to_string()
    }

    fn object(&self, verdict: &str, reason: &str) -> Value {
        let Figures { states, equations, symbolic_time, symmetries, dropped, .. } = self.figures;
        let every =
            self.plan.any.iter().map(|n| format!("{n} = any")).collect::<Vec<_>>().join(", ");
        let mut object = json!({
            "formula": self.path(), "verdict": verdict, "reason": reason, "for": every, "equations": equations, "states": states,
            "engine": if symbolic_time.is_some() { "symbolic" } else { "explicit" }, "seconds": self.start.elapsed().as_secs_f64(),
            "evidence": [], "evidence_left_out": 0, "back_to": null, "vacuous": [],
        });
        if symbolic_time.is_none() {
            object["symmetries"] =
                pipeline::symmetries(true, *symmetries, &self.plan.search.without, dropped);
        }
        object
    }

    pub fn is_true(&self) -> FormulaOutcome {
        let Figures { cases, equations, measures, lists, checked, paths, .. } = self.figures;
        let alone = matches!(self.figures.verification, Verification::Alone { .. });
        let method = match paths {
            Some(_) => "paths",
            None if alone => "pairs",
            None => "regions",
        };
        let mut object = self.object("true", method);
        object["cases"] = (*cases).into();
        if let Some(proof) = paths {
            object["paths"] = json!({ "evaluated": proof.paths, "explorations": proof.rounds });
        }
        object["checked"] = checked.object();
        self.figures.verification.add_to(&mut object);
        if !measures.is_empty() {
            object["measures"] = measures.as_slice().into();
        }
        if !lists.is_empty() {
            object["lists"] = lists.as_slice().into();
        }
        let mut text = format!("{}: true for every {}", self.path(), self.plan.any.join(", "));
        if !self.session.common.quiet {
            let size = match paths {
                Some(proof) => format!(
                    "{}, {}",
                    counted(proof.obligations as u64, "obligation"),
                    counted(proof.paths, "path")
                ),
                None if alone => counted(self.figures.states, "pair"),
                None => {
                    let cases = counted(*cases as u64, "case");
                    format!("{cases}, {}", counted(*equations, "equation"))
                }
            };
            text += &format!("  [{size}, {:.3} s]", self.start.elapsed().as_secs_f64());
            let reasons = measures.iter().map(measure_text).chain(lists.iter().map(list_text));
            let checks = [self.figures.verification.text(), checked.text()];
            text.extend(reasons.chain(checks).map(|line| format!("\n  {line}")));
        }
        self.outcome(Decision::Holds, object, text + "\n")
    }

    /// Reports a formula that is true for all values that the constraints of the file admit, each
    /// checked by itself.
    pub fn is_true_one_by_one(&self, tried: &str) -> FormulaOutcome {
        let mut object = self.object("true", "instances");
        object["tried"] = tried.into();
        let checks = Verification::Missing("each value was checked by itself".into());
        checks.add_to(&mut object);
        let text = format!(
            "{}: true for every {} that the file admits  [{tried}, {:.3} s]\n",
            self.path(),
            self.plan.any.join(", "),
            self.start.elapsed().as_secs_f64()
        );
        self.outcome(Decision::Holds, object, text)
    }

    pub fn is_unknown(&self, open: &OpenFormula) -> FormulaOutcome {
        let mut why = match &open.why.stop {
            Some(stop) => stop.word().to_string(),
            None => open.why.message.clone(),
        };
        let mut object = self.object("unknown", &why);
        if let Some((case, cases)) = &open.case {
            object["cases"] = (*cases).into();
            object["cases_true"] = self.figures.cases.into();
            object["open_case"] = case.as_str().into();
            why += &format!("; {} of {cases} cases are true", self.figures.cases);
            if !case.is_empty() {
                why += &format!(", {case} is open");
            }
        }
        if let Some(tried) = &open.tried {
            object["tried"] = tried.as_str().into();
            why += &format!("; {tried}");
        }
        if open.why.stop.is_none() {
            eprint!("{}", open.why.render(&self.session.sources).replacen("error:", "open:", 1));
        }
        let decision = Decision::Unknown(object["reason"].as_str().unwrap_or_default().into());
        self.outcome(
            decision,
            object,
            format!("{}: unknown for every {} ({why})\n", self.path(), self.plan.any.join(", ")),
        )
    }

    fn outcome(&self, decision: Decision, object: Value, line: String) -> FormulaOutcome {
        FormulaOutcome {
            formula: self.index,
            decision,
            seconds: self.start.elapsed().as_secs_f64(),
            object: Some(with_text(object, self.text())),
            line: self.plan.output.lines.then_some(line),
        }
    }
}
