//! Printable evidence: [`Evidence`] and [`Model`] give steps with their actions and changes, for
//! people and programs.
//!
//! The keys of the JSON output are stable: scripts rely on them. Cost: one group evaluation for
//! each step.

use super::deadlock::{self, Ending};
use mu_base::{Diagnostic, SourceMap, narrow};
use mu_evidence::{Evidence, PathEvidence, TakenStep};
use mu_model::step_cache::StepCache;
use mu_model::{Model, StepPart, Worker};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Maximum number of steps of branching evidence in text.
pub const MOST_IN_TEXT: usize = 60;
/// Maximum number of steps in text after a path, where the evidence begins to branch.
const MOST_AFTER_PATH: usize = 12;
/// Maximum number of steps of branching evidence in a JSON answer.
pub const MOST_IN_ANSWER: usize = 10_000;

/// A step of the model.
#[derive(Clone, Debug)]
pub struct PrintedStep {
    /// Source state in the evidence.
    pub from: u32,
    /// Target state in the evidence.
    pub to: u32,
    /// The visible multi-action, or `tau`.
    pub action: String,
    /// All actions of the step, including hidden ones.
    pub parts: Vec<StepPart>,
    /// Slots that changed, with the new values.
    pub changed: Vec<(u32, String)>,
    /// Slots that begin to have a meaning, with the value, or cease to have one.
    pub meaning: Vec<(u32, Option<String>)>,
    /// Values of all slots after the step, if requested; `None` for parameters without meaning
    /// then.
    pub state: Option<Vec<Option<String>>>,
    /// True if this confluent step is taken together with the step before.
    pub at_once: bool,
}

/// A parameter of the model.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its component.
    pub component: u32,
    /// True if it is a control location.
    pub control: bool,
}

/// Printable evidence.
#[derive(Clone, Debug)]
pub struct PrintedEvidence {
    /// The verdict that it justifies.
    pub verdict: bool,
    /// Names of the parallel components.
    pub components: Vec<String>,
    /// The model's slots.
    pub parameters: Vec<Parameter>,
    /// Initial values; `None` for parameters without meaning in the initial state.
    pub initial: Vec<Option<String>>,
    /// Steps in the order of the path, or of their sources if the evidence branches.
    pub steps: Vec<PrintedStep>,
    /// Number of further steps that are not included.
    pub omitted_steps: usize,
    /// True if the steps are one path.
    pub linear: bool,
    /// The number of steps at the beginning that are one path, to which no later step returns.
    /// Branching evidence decides the verdict after them.
    pub path: usize,
    /// If the path ends in a loop: the number of steps before the repeated state.
    pub back_to: Option<usize>,
    /// If the path ends in a state without outgoing transitions: the explanation.
    pub ending: Option<Ending>,
    /// True for the evidence of a formula, false for a path of a search or a walk.
    pub of_formula: bool,
    /// Quantified variables with the value for which the steps show the verdict.
    pub values: Vec<(String, String)>,
}

/// Returns a model's parameters.
pub fn parameters(model: &dyn Model) -> Vec<Parameter> {
    model
        .slots()
        .iter()
        .map(|s| Parameter { name: s.name.clone(), component: s.component, control: s.control })
        .collect()
}

/// Returns the texts of a state's values; `None` for parameters without meaning there.
pub fn values(model: &dyn Model, state: &[u32]) -> Vec<Option<String>> {
    state
        .iter()
        .enumerate()
        .map(|(i, v)| {
            model.is_live(narrow::index(i), state).then(|| model.value_text(narrow::index(i), *v))
        })
        .collect()
}

/// Returns a single step from a state, as a step from 0 to 1. `full`: with all values after it.
pub fn printed_step(
    model: &dyn Model,
    before: &[u32],
    taken: &TakenStep,
    full: bool,
) -> Result<PrintedStep, Diagnostic> {
    printed_step_of(model.worker().as_mut(), model, before, taken, full)
}

fn printed_step_of(
    worker: &mut dyn Worker,
    model: &dyn Model,
    before: &[u32],
    taken: &TakenStep,
    full: bool,
) -> Result<PrintedStep, Diagnostic> {
    let group = taken.group as usize;
    let parts = match worker.parts(group, before, taken.label, &taken.state)? {
        Some(parts) => parts,
        None => model.parts(group, before, taken.label, &taken.state)?,
    };
    let changed = (before.iter().zip(&taken.state).enumerate())
        .filter(|(i, (a, b))| a != b && model.is_live(narrow::index(*i), &taken.state))
        .map(|(i, (_, b))| (narrow::index(i), model.value_text(narrow::index(i), *b)))
        .collect();
    let live = |i: usize, state: &[u32]| model.is_live(narrow::index(i), state);
    let meaning = (0..before.len())
        .filter_map(|i| match (live(i, before), live(i, &taken.state)) {
            (true, false) => Some((narrow::index(i), None)),
            (false, true) if before[i] == taken.state[i] => {
                Some((narrow::index(i), Some(model.value_text(narrow::index(i), before[i]))))
            }
            _ => None,
        })
        .collect();
    Ok(PrintedStep {
        from: 0,
        to: 1,
        action: model.label_text(taken.label),
        parts,
        changed,
        meaning,
        state: full.then(|| values(model, &taken.state)),
        at_once: false,
    })
}

/// Converts evidence. `full`: with all values after each step. `most`: maximum number of steps if
/// it branches.
pub fn story(
    evidence: &Evidence,
    model: &dyn Model,
    full: bool,
    most: usize,
) -> Result<PrintedEvidence, Diagnostic> {
    let linear = evidence.linear();
    let printed_step =
        if linear.is_some() { evidence.steps.len() } else { evidence.steps.len().min(most) };
    let mut steps = Vec::new();
    let mut worker = model.worker();
    let mut add_step = |from: u32,
                        to: u32,
                        before: &mut Vec<u32>,
                        taken: &TakenStep,
                        at_once: bool|
     -> Result<(), Diagnostic> {
        let mut step = printed_step_of(worker.as_mut(), model, before, taken, full)?;
        (step.from, step.to, step.at_once) = (from, to, at_once);
        steps.push(step);
        before.clone_from(&taken.state);
        Ok(())
    };
    let mut at = model.initial();
    for taken in &evidence.before {
        add_step(0, 0, &mut at, taken, true)?;
    }
    // Number of model steps before each step of the evidence on the path.
    let mut starts = Vec::new();
    let order: Vec<usize> =
        linear.as_ref().map_or_else(|| (0..printed_step).collect(), |l| l.steps.clone());
    let mut count = evidence.before.len();
    for i in order {
        let step = &evidence.steps[i];
        let mut before = evidence.states[step.from as usize].clone();
        starts.push(count);
        for (n, taken) in step.taken.iter().enumerate() {
            add_step(step.from, step.to, &mut before, taken, n > 0)?;
            count += 1;
        }
    }
    let path = match linear {
        Some(_) => count,
        None => starts.get(path_steps(evidence)).copied().unwrap_or(count),
    };
    let back_to =
        linear.as_ref().and_then(|l| l.back_to).map(|n| starts.get(n).copied().unwrap_or(count));
    Ok(PrintedEvidence {
        verdict: evidence.verdict,
        components: model.components(),
        parameters: parameters(model),
        initial: values(model, &model.initial()),
        steps,
        omitted_steps: evidence.steps.len() - printed_step,
        linear: linear.is_some(),
        path,
        back_to,
        ending: None,
        of_formula: true,
        values: evidence.values.clone(),
    })
}

/// Returns the number of steps before branching evidence branches: steps from each state to the
/// next one, to which no later step returns. Linear time.
fn path_steps(evidence: &Evidence) -> usize {
    let steps = &evidence.steps;
    let chained = (0..steps.len())
        .take_while(|&i| {
            let at = narrow::index(i);
            let single = steps.get(i + 1).is_none_or(|next| next.from != at);
            steps[i].from == at && steps[i].to == at + 1 && single
        })
        .count();
    // The lowest state to which a step after the chain leads.
    let lowest = steps[chained..].iter().map(|s| s.to as usize).min().unwrap_or(chained);
    chained.min(lowest)
}

/// Explains the last state of a path if it has no outgoing transitions and the model can explain
/// it. `terminal`: see [`Model::deadlock_explainer`].
pub fn explain_ending(
    evidence: &Evidence,
    model: &dyn Model,
    terminal: &[String],
    sources: &SourceMap,
) -> Result<Option<Ending>, Diagnostic> {
    let Some(PathEvidence { steps, back_to: None }) = evidence.linear() else { return Ok(None) };
    let last = steps.last().map_or(0, |i| evidence.steps[*i].to as usize);
    let Some(state) = evidence.states.get(last) else { return Ok(None) };
    let mut evaluated = StepCache::new(model);
    for group in 0..model.groups().len() {
        if !evaluated.steps(narrow::index(group), state)?.labels.is_empty() {
            return Ok(None);
        }
    }
    let Some(mut standings) = model.deadlock_explainer(terminal)? else { return Ok(None) };
    Ok(Some(deadlock::explain(&standings.report(state)?, sources)))
}

impl PrintedStep {
    /// Returns the hidden actions, as texts.
    pub fn hidden_actions(&self) -> Vec<String> {
        self.parts.iter().filter(|p| p.hidden).map(StepPart::text).collect()
    }
    /// Returns the action with the actions hidden in it.
    pub fn title(&self) -> String {
        let hidden = self.hidden_actions();
        let hidden = if hidden.is_empty() {
            String::new()
        } else {
            format!("  (hidden: {})", hidden.join("|"))
        };
        format!("{}{hidden}{}", self.action, if self.at_once { "  (at once)" } else { "" })
    }
    /// Returns the step as an object.
    pub fn json(&self, story: &PrintedEvidence) -> Value {
        let name = |slot: u32| story.parameters[slot as usize].name.clone();
        let changed: Map<String, Value> =
            self.changed.iter().map(|(slot, v)| (name(*slot), json!(v))).collect();
        let component = |c: u32| story.components.get(c as usize).cloned().unwrap_or_default();
        let parts: Vec<Value> = (self.parts.iter())
            .map(|p| {
                let from: Vec<Value> = p
                    .from
                    .iter()
                    .map(|f| json!({ "component": component(f.component), "action": f.action }))
                    .collect();
                let mut part = json!({ "action": p.text(), "hidden": p.hidden, "from": from });
                if let Some(receiver) = receiver(p) {
                    part["receiver"] = component(receiver).into();
                }
                part
            })
            .collect();
        let mut object = json!({
            "from": self.from,
            "to": self.to,
            "action": self.action,
            "hidden": self.hidden_actions(),
            "parts": parts,
            "changed": changed,
        });
        if !self.meaning.is_empty() {
            object["meaning"] = self
                .meaning
                .iter()
                .map(|(slot, v)| (name(*slot), json!(v)))
                .collect::<Map<String, Value>>()
                .into();
        }
        if self.at_once {
            object["at_once"] = json!(true);
        }
        if let Some(state) = &self.state {
            let state: Map<String, Value> = state
                .iter()
                .enumerate()
                .filter(|(_, v)| v.is_some())
                .map(|(i, v)| (name(narrow::index(i)), json!(v)))
                .collect();
            object["state"] = Value::Object(state);
        }
        object
    }
}

/// Returns the receiver of a communication of two components: the component that left more
/// arguments open. `None` if there is none.
pub fn receiver(part: &StepPart) -> Option<u32> {
    match &part.from[..] {
        [a, b] if a.open < b.open => Some(b.component),
        [a, b] if b.open < a.open => Some(a.component),
        _ => None,
    }
}

/// Serialises the steps one by one.
struct SerialisedSteps<'a>(&'a PrintedEvidence);

impl Serialize for SerialisedSteps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.steps.iter().map(|s| s.json(self.0)))
    }
}

impl PrintedEvidence {
    /// Creates evidence without steps, for a walk.
    pub fn without_steps(model: &dyn Model) -> Self {
        PrintedEvidence {
            verdict: false,
            components: model.components(),
            parameters: parameters(model),
            initial: Vec::new(),
            steps: Vec::new(),
            omitted_steps: 0,
            linear: true,
            path: 0,
            back_to: None,
            ending: None,
            of_formula: false,
            values: Vec::new(),
        }
    }
    /// Returns the included steps: at most `most` if the evidence branches.
    fn included_steps(&self, most: usize) -> &[PrintedStep] {
        if self.linear { &self.steps } else { &self.steps[..self.steps.len().min(most)] }
    }
    /// Returns the steps as a list of objects, at most `most` if the evidence branches.
    pub fn steps_json(&self, most: usize) -> Vec<Value> {
        self.included_steps(most).iter().map(|s| s.json(self)).collect()
    }
    /// Returns the number of steps that are left out.
    pub fn omitted_count(&self, most: usize) -> usize {
        self.omitted_steps + self.steps.len() - self.included_steps(most).len()
    }
    /// Returns the context of the steps: true if they are one path, the components, and the
    /// parameters with their initial values.
    pub fn setting_json(&self) -> Map<String, Value> {
        let wanted = ["linear", "components", "parameters"];
        self.head_json().into_iter().filter(|(key, _)| wanted.contains(&key.as_str())).collect()
    }
    /// Returns the evidence as an object.
    pub fn json(&self) -> Value {
        let mut object = self.head_json();
        object.insert("steps".into(), self.steps_json(usize::MAX).into());
        Value::Object(object)
    }
    /// Writes that object with additional keys, one step at a time.
    pub fn write_json(&self, others: Map<String, Value>, out: impl Write) -> std::io::Result<()> {
        let mut object = self.head_json();
        object.extend(others);
        object.insert("steps".into(), Value::Null);
        let mut serializer = serde_json::Serializer::pretty(out);
        let mut map = serializer.serialize_map(Some(object.len()))?;
        for (key, value) in &object {
            if key == "steps" {
                map.serialize_entry(key, &SerialisedSteps(self))?
            } else {
                map.serialize_entry(key, value)?
            }
        }
        map.end()?;
        let mut out = serializer.into_inner();
        out.write_all(b"\n").and_then(|()| out.flush())
    }
    /// Returns the object without the steps.
    fn head_json(&self) -> Map<String, Value> {
        let parameters: Vec<Value> = (self.parameters.iter().zip(&self.initial))
            .map(|(p, v)| {
                let component =
                    self.components.get(p.component as usize).cloned().unwrap_or_default();
                json!({ "name": p.name, "component": component, "initial": v })
            })
            .collect();
        let object = json!({
            "verdict": self.verdict.to_string(),
            "kind": if self.verdict { "witness" } else { "counterexample" },
            "linear": self.linear,
            "back_to": self.back_to,
            "components": self.components,
            "parameters": parameters,
        });
        let mut object = object.as_object().cloned().unwrap_or_default();
        if let Some(ending) = &self.ending {
            object.insert("ending".into(), ending.json());
        }
        object.extend(self.values_json().map(|values| ("values".to_string(), values)));
        object
    }
    /// Returns the values of quantified variables by name; `None` if there are none.
    pub fn values_json(&self) -> Option<Value> {
        let values = self.values.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        (!self.values.is_empty()).then(|| Value::Object(values.collect()))
    }
    /// Returns lines for people: each step with the parameters that it changed (or all parameters
    /// if the steps include them), one line per component. `control`: include control locations.
    pub fn text(&self, control: bool) -> String {
        let what = if self.verdict { "witness" } else { "counterexample" };
        let shape = match (self.linear, self.back_to) {
            (true, Some(_)) => "a path that ends in a loop",
            (true, None) => "a path",
            _ if self.path > 0 => "a path to the state that decides it",
            _ => "a part of the transition system",
        };
        let values: Vec<String> = self.values.iter().map(|(v, x)| format!("{v} = {x}")).collect();
        let values =
            if values.is_empty() { String::new() } else { format!(" for {}", values.join(", ")) };
        self.text_of(&format!("{what}{values}, {shape}"), control)
    }
    /// Prints the same text with another heading.
    pub fn text_of(&self, heading: &str, control: bool) -> String {
        let mut text = format!("  {heading}{}\n", if self.steps.is_empty() { "" } else { ":" });
        let most = match self.path {
            0 => MOST_IN_TEXT,
            path => path + MOST_AFTER_PATH,
        };
        for (n, s) in self.included_steps(most).iter().enumerate() {
            if n == self.path && !self.linear && n > 0 {
                let rest = self.steps.len() + self.omitted_steps - n;
                text += &format!(
                    "  after step {n} the verdict depends on several runs; a part of the transition system ({rest} steps):\n"
                );
            }
            let place = if self.linear || n < self.path {
                format!("{:4}", n + 1)
            } else {
                format!("{:4} -> {}", s.from, s.to)
            };
            text += &format!("  {place}  {}\n", s.title());
            let shown: Vec<(usize, &String)> = match &s.state {
                Some(state) => {
                    state.iter().enumerate().filter_map(|(i, v)| Some((i, v.as_ref()?))).collect()
                }
                None => s
                    .changed
                    .iter()
                    .map(|(slot, v)| (*slot as usize, v))
                    .filter(|c| control || !self.parameters[c.0].control)
                    .collect(),
            };
            text += &self.values_text(&shown);
        }
        let more = self.omitted_count(most);
        if more > 0 {
            text += &format!(
                "        and {more} more steps; write them with `--evidence FILE` (.aut, .dot, .json)\n"
            );
        }
        if let Some(back) = self.back_to {
            text += &format!("        and again from after step {back}\n");
        }
        text += &self.ending.as_ref().map(Ending::text).unwrap_or_default();
        text
    }
    /// Formats values by slot, one line per component, with its name if there are several.
    fn values_text(&self, shown: &[(usize, &String)]) -> String {
        let mut text = String::new();
        for group in
            shown.chunk_by(|a, b| self.parameters[a.0].component == self.parameters[b.0].component)
        {
            let printed_step = |(slot, v): &(usize, &String)| match &self.parameters[*slot] {
                p if p.control => (*v).clone(),
                p => format!("{} = {v}", p.name),
            };
            let values: Vec<String> = group.iter().map(printed_step).collect();
            let component = self
                .components
                .get(self.parameters[group[0].0].component as usize)
                .filter(|_| self.components.len() > 1);
            let component = component.map(|c| format!("{c}: ")).unwrap_or_default();
            text += &format!("          {component}{}\n", values.join(", "));
        }
        text
    }
}
