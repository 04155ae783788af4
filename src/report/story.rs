//! Evidence as a story: [`Evidence`] + [`Model`] -> steps with what each was made of and what it
//! changed, for people and machines.
//!
//! The keys of the JSON output are stable: scripts rely on them. Cost: one group evaluation for
//! each step.

use super::standing::{self, Ending};
use mu_base::{Diagnostic, SourceMap};
use mu_evidence::{Evidence, Linear, Taken};
use mu_model::step_cache::StepCache;
use mu_model::{Model, StepPart, Worker};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Most steps of evidence that branches which are shown as text.
pub const MOST_IN_TEXT: usize = 60;
/// Most steps of evidence that branches which stand in an answer for machines.
pub const MOST_IN_ANSWER: usize = 10_000;

/// A step that the model takes.
#[derive(Clone, Debug)]
pub struct StoryStep {
    /// State of the evidence before it.
    pub from: u32,
    /// State of the evidence after it.
    pub to: u32,
    /// The visible multi-action, or `tau`.
    pub action: String,
    /// All actions behind it, hidden ones too.
    pub parts: Vec<StepPart>,
    /// Slots that changed, with the new values.
    pub changed: Vec<(u32, String)>,
    /// Slots that do not change but begin to mean something, with the value, or cease to.
    pub meaning: Vec<(u32, Option<String>)>,
    /// All slots' values after it, if asked for; none for parameters that mean nothing then.
    pub state: Option<Vec<Option<String>>>,
    /// Whether it is taken at once with the step before, being confluent.
    pub at_once: bool,
}

/// A parameter of the model.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The component that it belongs to.
    pub component: u32,
    /// Whether it is a control location.
    pub control: bool,
}

/// Evidence, told.
#[derive(Clone, Debug)]
pub struct Story {
    /// The verdict shown.
    pub verdict: bool,
    /// Names of the parallel components.
    pub components: Vec<String>,
    /// The model's slots.
    pub parameters: Vec<Parameter>,
    /// Their first values; none for those that mean nothing at the start.
    pub initial: Vec<Option<String>>,
    /// Steps in the order of the path, or of their sources if the evidence branches.
    pub steps: Vec<StoryStep>,
    /// How many steps of the evidence follow that are not told.
    pub untold: usize,
    /// Whether the steps are one path.
    pub linear: bool,
    /// If the path ends in a loop: the number of steps before the state that it comes back to.
    pub back_to: Option<usize>,
    /// If the path ends in a state without steps: why.
    pub ending: Option<Ending>,
    /// Whether a formula asked for it; else it is a path that somebody looked for or walked.
    pub of_formula: bool,
}

/// A model's parameters.
pub fn parameters(model: &dyn Model) -> Vec<Parameter> {
    model
        .slots()
        .iter()
        .map(|s| Parameter { name: s.name.clone(), component: s.component, control: s.control })
        .collect()
}

/// The texts of a state's values; none for parameters that mean nothing there.
pub fn values(model: &dyn Model, state: &[u32]) -> Vec<Option<String>> {
    state
        .iter()
        .enumerate()
        .map(|(i, v)| model.is_live(i as u32, state).then(|| model.value_text(i as u32, *v)))
        .collect()
}

/// Tells one step from a state, as one from 0 to 1; `full`: with all values after it.
pub fn told(
    model: &dyn Model,
    before: &[u32],
    taken: &Taken,
    full: bool,
) -> Result<StoryStep, Diagnostic> {
    told_by(model.worker().as_mut(), model, before, taken, full)
}

fn told_by(
    worker: &mut dyn Worker,
    model: &dyn Model,
    before: &[u32],
    taken: &Taken,
    full: bool,
) -> Result<StoryStep, Diagnostic> {
    let group = taken.group as usize;
    let parts = match worker.parts(group, before, taken.label, &taken.state)? {
        Some(parts) => parts,
        None => model.parts(group, before, taken.label, &taken.state)?,
    };
    let changed = (before.iter().zip(&taken.state).enumerate())
        .filter(|(i, (a, b))| a != b && model.is_live(*i as u32, &taken.state))
        .map(|(i, (_, b))| (i as u32, model.value_text(i as u32, *b)))
        .collect();
    let live = |i: usize, state: &[u32]| model.is_live(i as u32, state);
    let meaning = (0..before.len())
        .filter_map(|i| match (live(i, before), live(i, &taken.state)) {
            (true, false) => Some((i as u32, None)),
            (false, true) if before[i] == taken.state[i] => {
                Some((i as u32, Some(model.value_text(i as u32, before[i]))))
            }
            _ => None,
        })
        .collect();
    Ok(StoryStep {
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

/// Tells evidence; `full`: with all values after each step; at most so many steps if it branches.
pub fn story(
    evidence: &Evidence,
    model: &dyn Model,
    full: bool,
    most: usize,
) -> Result<Story, Diagnostic> {
    let linear = evidence.linear();
    let told = if linear.is_some() { evidence.steps.len() } else { evidence.steps.len().min(most) };
    let mut steps = Vec::new();
    let mut worker = model.worker();
    let mut tell = |from: u32,
                    to: u32,
                    before: &mut Vec<u32>,
                    taken: &Taken,
                    at_once: bool|
     -> Result<(), Diagnostic> {
        let mut step = told_by(worker.as_mut(), model, before, taken, full)?;
        (step.from, step.to, step.at_once) = (from, to, at_once);
        steps.push(step);
        before.clone_from(&taken.state);
        Ok(())
    };
    let mut at = model.initial();
    for taken in &evidence.before {
        tell(0, 0, &mut at, taken, true)?;
    }
    // Steps of the model before each step of the evidence on the path.
    let mut starts = Vec::new();
    let order: Vec<usize> =
        linear.as_ref().map_or_else(|| (0..told).collect(), |l| l.steps.clone());
    let mut count = evidence.before.len();
    for i in order {
        let step = &evidence.steps[i];
        let mut before = evidence.states[step.from as usize].clone();
        starts.push(count);
        for (n, taken) in step.taken.iter().enumerate() {
            tell(step.from, step.to, &mut before, taken, n > 0)?;
            count += 1;
        }
    }
    let back_to =
        linear.as_ref().and_then(|l| l.back_to).map(|n| starts.get(n).copied().unwrap_or(count));
    Ok(Story {
        verdict: evidence.verdict,
        components: model.components(),
        parameters: parameters(model),
        initial: values(model, &model.initial()),
        steps,
        untold: evidence.steps.len() - told,
        linear: linear.is_some(),
        back_to,
        ending: None,
        of_formula: true,
    })
}

/// Where the components stand at the end of a path, if that has no steps and the model knows.
/// `terminal`: see [`Model::standings`].
pub fn ending(
    evidence: &Evidence,
    model: &dyn Model,
    terminal: &[String],
    sources: &SourceMap,
) -> Result<Option<Ending>, Diagnostic> {
    let Some(Linear { steps, back_to: None }) = evidence.linear() else { return Ok(None) };
    let last = steps.last().map_or(0, |i| evidence.steps[*i].to as usize);
    let Some(state) = evidence.states.get(last) else { return Ok(None) };
    let mut evaluated = StepCache::new(model);
    for group in 0..model.groups().len() {
        if !evaluated.steps(group as u32, state)?.labels.is_empty() {
            return Ok(None);
        }
    }
    let Some(mut standings) = model.deadlock_explainer(terminal)? else { return Ok(None) };
    Ok(Some(standing::tell(&standings.report(state)?, sources)))
}

impl StoryStep {
    /// The hidden actions, as texts.
    pub fn hidden(&self) -> Vec<String> {
        self.parts.iter().filter(|p| p.hidden).map(StepPart::text).collect()
    }
    /// The action, with what was hidden in it.
    pub fn title(&self) -> String {
        let hidden = self.hidden();
        let hidden = if hidden.is_empty() {
            String::new()
        } else {
            format!("  (hidden: {})", hidden.join("|"))
        };
        format!("{}{hidden}{}", self.action, if self.at_once { "  (at once)" } else { "" })
    }
    /// As an object.
    pub fn json(&self, story: &Story) -> Value {
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
            "hidden": self.hidden(),
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
                .map(|(i, v)| (name(i as u32), json!(v)))
                .collect();
            object["state"] = Value::Object(state);
        }
        object
    }
}

/// Of two components that communicate, the one that left more arguments open: it learns something.
/// None where neither did.
pub fn receiver(part: &StepPart) -> Option<u32> {
    match &part.from[..] {
        [a, b] if a.open < b.open => Some(b.component),
        [a, b] if b.open < a.open => Some(a.component),
        _ => None,
    }
}

/// The steps of a story, made into objects one by one.
struct Steps<'a>(&'a Story);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.steps.iter().map(|s| s.json(self.0)))
    }
}

impl Story {
    /// That of a walk of which no step is told yet: what the steps of a model are told with.
    pub fn begun(model: &dyn Model) -> Self {
        Story {
            verdict: false,
            components: model.components(),
            parameters: parameters(model),
            initial: Vec::new(),
            steps: Vec::new(),
            untold: 0,
            linear: true,
            back_to: None,
            ending: None,
            of_formula: false,
        }
    }
    /// The steps that are shown: at most so many if the evidence branches.
    fn shown(&self, most: usize) -> &[StoryStep] {
        if self.linear { &self.steps } else { &self.steps[..self.steps.len().min(most)] }
    }
    /// The steps as a list of objects, at most so many if the evidence branches.
    pub fn steps_json(&self, most: usize) -> Vec<Value> {
        self.shown(most).iter().map(|s| s.json(self)).collect()
    }
    /// How many steps of evidence there are besides.
    pub fn left_out(&self, most: usize) -> usize {
        self.untold + self.steps.len() - self.shown(most).len()
    }
    /// What the steps of an answer stand on: whether they are one path, the components, and the
    /// parameters with their first values.
    pub fn setting_json(&self) -> Map<String, Value> {
        let wanted = ["linear", "components", "parameters"];
        self.head_json().into_iter().filter(|(key, _)| wanted.contains(&key.as_str())).collect()
    }
    /// All of it as an object.
    pub fn json(&self) -> Value {
        let mut object = self.head_json();
        object.insert("steps".into(), self.steps_json(usize::MAX).into());
        Value::Object(object)
    }
    /// Writes that object, with others' keys, one step at a time.
    pub fn write_json(&self, others: Map<String, Value>, out: impl Write) -> std::io::Result<()> {
        let mut object = self.head_json();
        object.extend(others);
        object.insert("steps".into(), Value::Null);
        let mut serializer = serde_json::Serializer::pretty(out);
        let mut map = serializer.serialize_map(Some(object.len()))?;
        for (key, value) in &object {
            if key == "steps" {
                map.serialize_entry(key, &Steps(self))?
            } else {
                map.serialize_entry(key, value)?
            }
        }
        map.end()?;
        let mut out = serializer.into_inner();
        out.write_all(b"\n").and_then(|()| out.flush())
    }
    /// What is not in the steps.
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
        object
    }
    /// Lines for people: each step with the parameters that it changed (all of them if the steps
    /// have their states), a line a component. `control`: with control locations as well.
    pub fn text(&self, control: bool) -> String {
        let what = if self.verdict { "witness" } else { "counterexample" };
        let shape = match (self.linear, self.back_to) {
            (true, Some(_)) => "a path that ends in a loop",
            (true, None) => "a path",
            _ => "a part of the transition system",
        };
        self.text_of(&format!("{what}, {shape}"), control)
    }
    /// The same below another heading.
    pub fn text_of(&self, heading: &str, control: bool) -> String {
        let mut text = format!("  {heading}{}\n", if self.steps.is_empty() { "" } else { ":" });
        for (n, s) in self.shown(MOST_IN_TEXT).iter().enumerate() {
            let place = if self.linear {
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
        let more = self.left_out(MOST_IN_TEXT);
        if more > 0 {
            text += &format!(
                "        and {more} more steps, which `--evidence FILE` writes (.aut, .dot, .json)\n"
            );
        }
        if let Some(back) = self.back_to {
            text += &format!("        and again from after step {back}\n");
        }
        text += &self.ending.as_ref().map(Ending::text).unwrap_or_default();
        text
    }
    /// Values by slot, a line a component, with its name if there are several.
    fn values_text(&self, shown: &[(usize, &String)]) -> String {
        let mut text = String::new();
        for group in
            shown.chunk_by(|a, b| self.parameters[a.0].component == self.parameters[b.0].component)
        {
            let told = |(slot, v): &(usize, &String)| match &self.parameters[*slot] {
                p if p.control => (*v).clone(),
                p => format!("{} = {v}", p.name),
            };
            let values: Vec<String> = group.iter().map(told).collect();
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
