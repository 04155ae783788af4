//! Request server of the simulator for programs: one JSON request per line, one JSON answer per
//! line, in the same order.
//!
//! States are numbered in the order of discovery; 0 is the initial state. `{"state": N}` returns
//! its values and steps. `{"graph": MOST}` returns states and steps breadth-first, up to this
//! number of states (`cut`: states with steps to others; `hidden`: an example of the hidden actions
//! of each kind of step); with `"reduce": "strong"` or another
//! equivalence, it returns the quotient. Errors are answered by `{"error": …}`. The first output
//! line describes the model and its initial state. Cost: each state is evaluated once; its vector
//! and steps are stored. Invariant: a number denotes the same state until the process ends.

use crate::output;
use crate::pipeline::Session;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, SourceMap, Stage, narrow};
use mu_explore::walk::{WalkStep, moves};
use mu_lts::equivalence::{Equivalence, reduce};
use mu_lts::{Labels, Lts};
use mu_model::{Model, SlotInfo, Worker};
use mu_report::printed_evidence::{PrintedEvidence, parameters, printed_step, values};
use mu_report::trace;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::BufRead as _;

/// Maximum number of states of a graph.
const MOST_STATES: u64 = 100_000;

/// The explored part of a model.
pub(crate) struct States<'m> {
    model: &'m dyn Model,
    worker: Box<dyn Worker + 'm>,
    vectors: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, usize>,
    /// Expanded states: their steps with the numbers of the target states.
    steps: Vec<Option<Vec<(WalkStep, usize)>>>,
    budget: Budget,
    threads: usize,
}

/// Answers requests until standard input ends.
pub(super) fn serve(session: &Session, model: &dyn Model) -> Result<u8, Diagnostic> {
    output::begin_stage("answering requests");
    let mut states = States::new(model, session);
    let description = states.description()?;
    output::print_part(&format!("{description}\n"))?;
    for line in mu_base::host::input().lock().lines() {
        let Ok(line) = line else { break };
        let answer = states.answer_line(&line, &session.sources)?;
        output::print_part(&format!("{answer}\n"))?;
    }
    Ok(0)
}

impl<'m> States<'m> {
    /// Starts with the initial state only.
    pub(crate) fn new(model: &'m dyn Model, session: &Session) -> Self {
        let mut states = Self {
            model,
            worker: model.worker(),
            vectors: Vec::new(),
            numbers: HashMap::new(),
            steps: Vec::new(),
            budget: session.budget.clone(),
            threads: session.threads(),
        };
        states.number(model.initial());
        states
    }

    /// Returns the description of the model and its initial state.
    pub(crate) fn description(&mut self) -> Result<Value, Diagnostic> {
        let columns = parameters(self.model);
        let slots: Vec<Value> = columns
            .iter()
            .map(|p| json!({ "name": p.name, "component": p.component, "control": p.control }))
            .collect();
        let quotients: Vec<&str> = graph_equivalences().map(Equivalence::name).collect();
        Ok(json!({
            "components": self.model.components(),
            "parameters": slots,
            "quotients": quotients,
            "first": self.state(0)?,
        }))
    }

    /// Answers a request line. Error: a broken invariant of the program; all other errors are
    /// answers.
    pub(crate) fn answer_line(
        &mut self,
        line: &str,
        sources: &SourceMap,
    ) -> Result<Value, Diagnostic> {
        match self.answer(line) {
            Err(error) if error.stage != Stage::Internal => {
                Ok(json!({ "error": error.render(sources).trim_end() }))
            }
            answer => answer,
        }
    }

    fn number(&mut self, vector: Vec<u32>) -> usize {
        let next = self.vectors.len();
        let number = *self.numbers.entry(vector.clone()).or_insert(next);
        if number == next {
            self.vectors.push(vector);
            self.steps.push(None);
        }
        number
    }

    fn expand(&mut self, state: usize) -> Result<&[(WalkStep, usize)], Diagnostic> {
        if self.steps[state].is_none() {
            let found = moves(self.model, self.worker.as_mut(), &self.vectors[state])?;
            let found = found
                .into_iter()
                .map(|m| (self.number(m.state.clone()), m))
                .map(|(n, m)| (m, n))
                .collect();
            self.steps[state] = Some(found);
        }
        Ok(self.steps[state].as_deref().unwrap_or_default())
    }

    fn answer(&mut self, line: &str) -> Result<Value, Diagnostic> {
        let usage = |message: &str| {
            Diagnostic::new(Stage::Usage, message).note("expected {\"state\": N} or {\"graph\": N}")
        };
        let request: Value =
            serde_json::from_str(line).map_err(|e| usage(&format!("this is not JSON: {e}")))?;
        if let Some(number) = request["state"].as_u64() {
            let known = usize::try_from(number).ok().filter(|n| *n < self.vectors.len());
            return self.state(
                known.ok_or_else(|| usage(&format!("no state has the number {number} yet")))?,
            );
        }
        let Some(most) = request["graph"].as_u64() else { return Err(usage("unknown request")) };
        let how =
            match &request["reduce"] {
                Value::Null => None,
                Value::String(name) => {
                    let known = graph_equivalences().find(|e| e.name() == name);
                    Some(known.ok_or_else(|| {
                        usage(&format!("graphs modulo `{name}` are not supported"))
                    })?)
                }
                _ => return Err(usage("expected the name of an equivalence in `reduce`")),
            };
        self.graph(usize::try_from(most.min(MOST_STATES)).unwrap_or(usize::MAX), how)
    }

    /// Returns a state: its values (`None` for parameters without meaning there) and its steps, in
    /// the format of evidence.
    fn state(&mut self, state: usize) -> Result<Value, Diagnostic> {
        let steps = self.expand(state)?.to_vec();
        let here = self.vectors[state].clone();
        let story = PrintedEvidence::without_steps(self.model);
        let mut list = Vec::new();
        for (step, to) in &steps {
            let mut step = printed_step(self.model, &here, &trace::taken_step(step), false)?;
            (step.from, step.to) = (index(state)?, index(*to)?);
            list.push(step.json(&story));
        }
        Ok(json!({ "state": state, "values": values(self.model, &here), "steps": list }))
    }

    /// Returns states in breadth-first order, with their levels, steps and values; `complete` if
    /// these are all states.
    fn graph(&mut self, most: usize, how: Option<Equivalence>) -> Result<Value, Diagnostic> {
        let mut order = vec![0];
        let mut place = HashMap::from([(0, 0)]);
        let (mut levels, mut edges, mut cut) = (vec![0], Vec::new(), Vec::new());
        let (mut labels, mut texts): (HashMap<String, usize>, Vec<String>) =
            (HashMap::from([("tau".into(), 0)]), vec!["tau".into()]);
        // An example of the hidden actions of each group.
        let mut hidden: BTreeSet<String> = BTreeSet::new();
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let mut next = 0;
        while let Some(&state) = order.get(next) {
            self.budget.check_memory().map_err(Diagnostic::stopped)?;
            let steps: Vec<(LabelId, usize)> =
                self.expand(state)?.iter().map(|(m, to)| (m.label, *to)).collect();
            for text in self.hidden_actions(state, &mut seen)? {
                hidden.insert(text);
            }
            for (label, to) in steps {
                let at = match place.get(&to) {
                    Some(at) => *at,
                    None if order.len() >= most => {
                        if cut.last() != Some(&next) {
                            cut.push(next);
                        }
                        continue;
                    }
                    None => {
                        place.insert(to, order.len());
                        levels.push(levels[next] + 1);
                        order.push(to);
                        order.len() - 1
                    }
                };
                let text = self.model.label_text(label);
                let label = *labels.entry(text.clone()).or_insert_with(|| {
                    texts.push(text);
                    texts.len() - 1
                });
                edges.push((next, label, at));
            }
            next += 1;
        }
        if let Some(how) = how {
            if !cut.is_empty() {
                let message =
                    format!("more than {most} states: an incomplete system has no quotient");
                return Err(Diagnostic::new(Stage::Usage, message));
            }
            return Ok(quotient(order.len(), &edges, &texts, how, self.threads));
        }
        Ok(json!({
            "complete": cut.is_empty(), "cut": cut, "initial": 0, "labels": texts, "levels": levels, "edges": edges, "hidden": hidden,
            "states": order, "values": self.columns(&order),
        }))
    }

    /// Returns the hidden actions of the steps of an expanded state that are the first of their
    /// group. `seen`: the groups with an example.
    fn hidden_actions(
        &self,
        state: usize,
        seen: &mut BTreeSet<u32>,
    ) -> Result<Vec<String>, Diagnostic> {
        let mut texts = Vec::new();
        for (step, _) in self.steps[state].iter().flatten() {
            let hides = !self.model.groups()[step.group as usize].hidden.is_empty();
            if hides && seen.insert(step.group) {
                let taken = trace::taken_step(step);
                let printed = printed_step(self.model, &self.vectors[state], &taken, false)?;
                texts.extend(printed.hidden_actions());
            }
        }
        Ok(texts)
    }

    /// Returns for each parameter the texts of its values, and for each state the index of its
    /// value; -1: the parameter has no meaning there.
    fn columns(&self, order: &[usize]) -> Value {
        let column = |(slot, info): (usize, &SlotInfo)| {
            let (mut known, mut texts): (HashMap<u32, i64>, Vec<String>) =
                (HashMap::new(), Vec::new());
            let of = |state: &usize| {
                let vector = &self.vectors[*state];
                if !self.model.is_live(narrow::index(slot), vector) {
                    return -1;
                }
                *known.entry(vector[slot]).or_insert_with(|| {
                    texts.push(self.model.value_text(narrow::index(slot), vector[slot]));
                    texts.len() as i64 - 1
                })
            };
            let at: Vec<i64> = order.iter().map(of).collect();
            (info.name.clone(), json!({ "texts": texts, "at": at }))
        };
        self.model.slots().iter().enumerate().map(column).collect::<Map<_, _>>().into()
    }
}

/// Returns the equivalences of graphs. The others have quotients that can be much larger.
fn graph_equivalences() -> impl Iterator<Item = Equivalence> {
    Equivalence::ALL.into_iter().filter(|e| !e.determinises())
}

/// Returns the quotient of a graph, with its levels.
fn quotient(
    states: usize,
    edges: &[(usize, usize, usize)],
    texts: &[String],
    how: Equivalence,
    threads: usize,
) -> Value {
    let edges: Vec<_> = edges
        .iter()
        .map(|(from, label, to)| (StateId::new(*from), LabelId::new(*label), StateId::new(*to)))
        .collect();
    let lts = reduce(
        &Lts::from_edges(StateId::new(0), states, &edges, Labels { texts: texts.to_vec() }),
        how,
        threads,
    );
    let mut levels = vec![None; lts.state_count()];
    let mut order = vec![lts.initial];
    levels[lts.initial.index()] = Some(0);
    let (mut next, mut edges) = (0, Vec::new());
    while let Some(&state) = order.get(next) {
        for (label, to) in lts.successors(state) {
            edges.push((state.index(), label.index(), to.index()));
            if levels[to.index()].is_none() {
                levels[to.index()] = levels[state.index()].map(|n: usize| n + 1);
                order.push(to);
            }
        }
        next += 1;
    }
    json!({ "complete": true, "cut": [], "initial": lts.initial.index(), "of": states, "labels": lts.table.texts, "levels": levels, "edges": edges })
}

fn index(state: usize) -> Result<u32, Diagnostic> {
    u32::try_from(state).map_err(|_| Diagnostic::new(Stage::Limit, "more states than numbers"))
}
