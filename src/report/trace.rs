//! Trace files: the path of a [`Walk`] as the JSON of evidence, and its replay on a model.
//!
//! Out: the keys of printable evidence, kind `trace`, without a verdict. In: such a file, or linear
//! evidence of a verdict. A step is identified by its action and the new values of changed
//! parameters, as texts; the values are needed only if the action is ambiguous. Cost: the steps of
//! one state for each step. Invariant: a trace is replayed, so the walk is always a path of the
//! model.

use super::printed_evidence::{PrintedEvidence, printed_step, values};
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};
use mu_evidence::TakenStep;
use mu_explore::walk::{Walk, WalkStep};
use serde_json::{Value, json};

/// A step of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The visible multi-action, or `tau`.
    pub action: String,
    /// Changed parameters with their new values, if present.
    pub changed: Option<Vec<(String, String)>>,
}

/// A trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// The steps from the initial state.
    pub steps: Vec<TraceStep>,
    /// If it ends in a loop: the number of steps before the repeated state.
    pub back_to: Option<usize>,
}

/// Returns the step in the form of evidence.
pub fn taken_step(step: &WalkStep) -> TakenStep {
    TakenStep { group: step.group, label: step.label, state: step.state.clone() }
}

/// Returns the path of a walk as printable evidence.
pub fn story(walk: &Walk) -> Result<PrintedEvidence, Diagnostic> {
    let model = walk.model();
    let mut steps = Vec::new();
    for (i, step) in walk.path()[..walk.position()].iter().enumerate() {
        let mut step = printed_step(model, walk.state_after(i), &taken_step(step), false)?;
        (step.from, step.to) = (narrow::index(i), narrow::index(i) + 1);
        steps.push(step);
    }
    Ok(PrintedEvidence {
        initial: values(model, walk.state_after(0)),
        steps,
        ..PrintedEvidence::without_steps(model)
    })
}

/// Returns the path of a walk as an object.
pub fn to_json(walk: &Walk) -> Result<Value, Diagnostic> {
    let mut object = story(walk)?.json();
    (object["verdict"], object["kind"]) = (Value::Null, json!("trace"));
    Ok(object)
}

/// Parses a trace. Errors: not JSON, other keys, branching evidence.
pub fn from_json(source: SourceId, text: &str) -> Result<TraceFile, Diagnostic> {
    let object: Value = serde_json::from_str(text).map_err(|e| {
        let line_start = text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let start = narrow::index((line_start + e.column().saturating_sub(1)).min(text.len().saturating_sub(1)));
        let message = e.to_string();
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        Diagnostic::at(Stage::File, Span { source, start, end: start + 1 }, format!("not JSON: {what}"))
            .note("expected a trace: the JSON object that `check --evidence FILE.json` or `simulate` writes")
    })?;
    let place = Span { source, start: 0, end: 1 };
    let wrong = |message: String| {
        Err(Diagnostic::at(Stage::File, place, message)
            .note("expected a trace, as `check --evidence FILE.json` writes it"))
    };
    if object["linear"] == Value::Bool(false) {
        return Err(Diagnostic::at(Stage::File, place, "this evidence branches, so it is not a trace")
            .note("`check --evidence FILE.dot` draws it; or write it with `--evidence FILE.aut` and run `mu-check simulate FILE.aut`"));
    }
    let Some(list) = object["steps"].as_array() else {
        return wrong("there is no list `steps` in this object".into());
    };
    let mut steps = Vec::new();
    for (i, step) in list.iter().enumerate() {
        let Some(action) = step["action"].as_str() else {
            return wrong(format!("step {} has no text `action`", i + 1));
        };
        let changed = match &step["changed"] {
            Value::Null => None,
            Value::Object(map) => {
                let of = |(name, value): (&String, &Value)| {
                    value.as_str().map(|v| (name.clone(), v.to_string()))
                };
                match map.iter().map(of).collect::<Option<Vec<_>>>() {
                    Some(changed) => Some(changed),
                    None => {
                        return wrong(format!(
                            "a value in `changed` of step {} is not a string",
                            i + 1
                        ));
                    }
                }
            }
            _ => return wrong(format!("`changed` of step {} is not an object", i + 1)),
        };
        steps.push(TraceStep { action: action.to_string(), changed });
    }
    let back_to = object["back_to"].as_u64().map(|n| n as usize);
    Ok(TraceFile { steps, back_to })
}

/// Replays a trace from the initial state; the walk then ends at its last state. Errors: a step
/// that the model cannot take, or an ambiguous step; the walk does not change then.
pub fn replay(trace: &TraceFile, walk: &mut Walk) -> Result<(), Diagnostic> {
    let mut fresh = Walk::new(walk.model(), walk.seed())?;
    for (i, step) in trace.steps.iter().enumerate() {
        let model = fresh.model();
        let fitting = |step: &TraceStep, fresh: &Walk| -> Vec<usize> {
            let here = fresh.state();
            let fits = |m: &WalkStep| {
                let same_action = is_same_action(&model.label_text(m.label), &step.action);
                same_action
                    && step
                        .changed
                        .as_ref()
                        .is_none_or(|changed| changes(model, here, &m.state, changed))
            };
            (0..fresh.moves().len()).filter(|&j| fits(&fresh.moves()[j])).collect()
        };
        let found = fitting(step, &fresh);
        match found[..] {
            [] if shows_condition(step) => continue,
            [] => {
                let without = TraceStep { changed: None, ..step.clone() };
                let values = if fitting(&without, &fresh).is_empty() {
                    ""
                } else {
                    " with these new values"
                };
                let mut here: Vec<String> =
                    fresh.moves().iter().map(|m| model.label_text(m.label)).collect();
                here.dedup();
                let here = if here.is_empty() { "none".to_string() } else { here.join(", ") };
                let message = format!(
                    "step {} of the trace, `{}`{values}, is not a step of the model",
                    i + 1,
                    step.action
                );
                return Err(
                    Diagnostic::new(Stage::File, message).note(format!("steps after {i}: {here}"))
                );
            }
            [_, _, ..] if step.changed.is_none() => {
                let message = format!(
                    "step {} of the trace, `{}`, could lead to {} states",
                    i + 1,
                    step.action,
                    found.len()
                );
                return Err(Diagnostic::new(Stage::File, message)
                    .note("`changed` must say which parameters get which values"));
            }
            _ => fresh.take(found[0])?,
        };
    }
    walk.adopt(fresh);
    Ok(())
}

/// True if a step shows the value of a condition in a formula (`val_1(n)`, `not_val_1(n)`). It
/// changes nothing, and the model without the formula does not have it.
fn shows_condition(step: &TraceStep) -> bool {
    let name = step.action.split('(').next().unwrap_or_default();
    let number = name.strip_prefix("not_").unwrap_or(name).strip_prefix("val_");
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    number.is_some_and(is_number) && step.changed.as_ref().is_some_and(Vec::is_empty)
}

/// True if exactly these parameters change to these values.
fn changes(
    model: &dyn mu_model::Model,
    before: &[u32],
    after: &[u32],
    changed: &[(String, String)],
) -> bool {
    let mut count = 0;
    for (slot, (_, value)) in before
        .iter()
        .zip(after)
        .enumerate()
        .filter(|(i, (a, b))| a != b && model.is_live(narrow::index(*i), after))
    {
        let name = &model.slots()[slot].name;
        if !changed
            .iter()
            .any(|(n, v)| n == name && *v == model.value_text(narrow::index(slot), *value))
        {
            return false;
        }
        count += 1;
    }
    count == changed.len()
}

/// True if two texts of actions differ only in blanks.
pub fn is_same_action(a: &str, b: &str) -> bool {
    let bare = |t: &str| t.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    a == b || bare(a) == bare(b)
}

#[cfg(test)]
#[path = "../../tests/support/models.rs"]
mod models;

#[cfg(test)]
mod tests {
    use super::models::{Shape, random};
    use super::*;
    use mu_model::hand::HandModel;

    fn read(text: &str) -> Result<TraceFile, String> {
        from_json(SourceId::FIRST, text).map_err(|d| d.message)
    }

    #[test]
    fn walks_are_written_and_read() {
        for seed in 0..40 {
            let model =
                random(seed, Shape { slots: 4, values: 3, components: 2, groups: 6, labels: 2 });
            let mut walk = Walk::new(&model, seed).unwrap();
            for _ in 0..12 {
                walk.random().unwrap();
            }
            let trace = read(&to_json(&walk).unwrap().to_string()).unwrap();
            let mut again = Walk::new(&model, 0).unwrap();
            replay(&trace, &mut again).unwrap();
            assert_eq!(
                (again.path(), again.position()),
                (walk.path(), walk.position()),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for (text, why) in [
            ("{", "not JSON"),
            ("[]", "no list `steps`"),
            ("{\"steps\": 3}", "no list `steps`"),
            ("{\"linear\": false, \"steps\": []}", "branches"),
            ("{\"steps\": [{}]}", "no text `action`"),
            ("{\"steps\": [{\"action\": \"a\", \"changed\": 1}]}", "is not an object"),
            ("{\"steps\": [{\"action\": \"a\", \"changed\": {\"x\": 1}}]}", "is not a string"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}");
        }
        // Two steps with the same action: the values decide.
        let mut model = HandModel::new();
        let x = model.slot("x", 0, false, 0);
        model.group("a", &[(x, 0)], &[], &[x], |_, e| {
            e.step("a", &[1]);
            e.step("a", &[2]);
        });
        let mut walk = Walk::new(&model, 0).unwrap();
        let ambiguous = read("{\"steps\": [{\"action\": \"a\"}]}").unwrap();
        assert!(replay(&ambiguous, &mut walk).unwrap_err().message.contains("2 states"));
        let clear =
            read("{\"steps\": [{\"action\": \"a\", \"changed\": {\"x\": \"2\"}}]}").unwrap();
        replay(&clear, &mut walk).unwrap();
        assert_eq!(walk.state(), [2]);
        // A trace that cannot be replayed does not change the walk.
        for wrong in [
            "{\"steps\": [{\"action\": \"b\"}]}",
            "{\"steps\": [{\"action\": \"a\", \"changed\": {\"x\": \"3\"}}]}",
        ] {
            assert!(
                replay(&read(wrong).unwrap(), &mut walk)
                    .unwrap_err()
                    .message
                    .contains("is not a step of the model")
            );
            assert_eq!(walk.state(), [2]);
        }
    }
}
