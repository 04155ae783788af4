//! Search for a shortest run of the machine that has a given history, and replay of the run.
//!
//! The search uses the model itself, not its reduction. It is breadth-first over pairs of a state
//! and the history so far, and follows only labels that can still lead to the whole history. So the
//! run is a shortest one. [`replay`] shares no code with the search: it takes the steps one by one
//! and reads the history from their labels.

use crate::alphabet::{Alphabet, LabelNames, arguments};
use crate::interface::{ArgumentRole, Interface};
use crate::sequences::{SequenceEntry, Sequences};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, narrow};
use mu_explore::walk::Walk;
use mu_explore::{OnTheFlySuccessors, Options};
use mu_lts::relabel::{name_of, parts};
use mu_model::Model;

/// A step of a run: its label and the state after it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunStep {
    /// The label.
    pub label: LabelId,
    /// The state after it.
    pub state: Vec<u32>,
}

/// A state of the machine with the id of the history so far.
type SearchNode = (StateId, u32);

/// An observation of a store by a processor: the fields of an `observe` label, in the names of the
/// machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// The observing processor.
    pub processor: String,
    /// The address.
    pub address: String,
    /// The value, if the label contains it.
    pub value: Option<String>,
    /// The processor of the store, if the label contains it.
    pub of: Option<String>,
    /// The number of the store, if the label contains it.
    pub number: Option<String>,
}

/// Returns the observations of a run, in order. They explain a forbidden history; histories and
/// verdicts do not depend on them.
pub fn observations<'t>(
    interface: &Interface,
    labels: impl Iterator<Item = &'t str>,
) -> Vec<Observation> {
    let mut out = Vec::new();
    for part in labels.flat_map(parts) {
        let (name, arguments) = (name_of(part), arguments(part));
        for fields in interface.observed.iter().filter_map(|l| l.match_arguments(name, &arguments))
        {
            let of =
                |role: ArgumentRole| fields.iter().find(|f| *f.0 == role).map(|f| f.1.to_string());
            if let (Some(processor), Some(address)) =
                (of(ArgumentRole::Processor), of(ArgumentRole::Address))
            {
                let (value, number) = (of(ArgumentRole::Value), of(ArgumentRole::Number));
                out.push(Observation {
                    processor,
                    address,
                    value,
                    of: of(ArgumentRole::Other),
                    number,
                });
            }
        }
    }
    out
}

/// Finds a shortest run with a history; `None` if there is none. Error: a limit was reached.
pub fn run(
    model: &dyn Model,
    interface: &Interface,
    alphabet: &Alphabet,
    wanted: &[Vec<SequenceEntry>],
    options: &Options,
    budget: &Budget,
) -> Result<Option<Vec<RunStep>>, Diagnostic> {
    let mut lazy = OnTheFlySuccessors::new(model, &options.without_confluence())?;
    let most = wanted.iter().map(Vec::len).max().unwrap_or(0);
    let mut sequences = Sequences::new(most, interface.first);
    let mut histories: Vec<Vec<u32>> = vec![vec![0; wanted.len()]];
    let mut known: AHashMap<Vec<u32>, u32> = [(histories[0].clone(), 0)].into_iter().collect();
    // The word of each label; `None` if the label is internal.
    let mut words: AHashMap<LabelId, Option<u32>> = AHashMap::new();
    let mut nodes: Vec<(SearchNode, usize, LabelId)> = vec![((lazy.initial(), 0), 0, LabelId::TAU)];
    let mut visited: AHashMap<SearchNode, ()> = [((lazy.initial(), 0), ())].into_iter().collect();
    let mut steps = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        if at % 1024 == 0 {
            budget
                .check(nodes.len() as u64)
                .and_then(|()| budget.check_memory())
                .map_err(Diagnostic::stopped)?;
        }
        let ((state, behind), ..) = nodes[at];
        lazy.successors(state, &mut steps)?;
        for (label, target) in steps.drain(..) {
            let word = *words
                .entry(label)
                .or_insert_with(|| alphabet.of_label.get(&model.label_text(label)).copied());
            let mut now = behind;
            if let Some(word) = word {
                let mut next = histories[behind as usize].clone();
                let Some(()) = follow(&mut sequences, alphabet, word, &mut next, wanted)? else {
                    continue;
                };
                let fresh = narrow::index(histories.len());
                now = *known.entry(next.clone()).or_insert(fresh);
                if now == fresh {
                    histories.push(next);
                }
            }
            if visited.insert((target, now), ()).is_none() {
                nodes.push(((target, now), at, label));
                let done = histories[now as usize]
                    .iter()
                    .zip(wanted)
                    .all(|(&h, w)| sequences.get(h) == w.as_slice());
                if done {
                    return Ok(Some(path(&lazy, &nodes)));
                }
            }
        }
        at += 1;
    }
    Ok(None)
}

/// Extends the history by a word; `None` if the wanted history is no longer possible.
fn follow(
    sequences: &mut Sequences,
    alphabet: &Alphabet,
    word: u32,
    history: &mut [u32],
    wanted: &[Vec<SequenceEntry>],
) -> Result<Option<()>, Diagnostic> {
    for &e in &alphabet.words[word as usize] {
        let event = &alphabet.events[e as usize];
        let p = event.processor as usize;
        let Some(next) = sequences.extend(history[p], e, event)? else { return Ok(None) };
        let list = sequences.get(next);
        if list.len() > wanted[p].len() || !list.iter().zip(&wanted[p]).all(|(a, b)| a.leads_to(b))
        {
            return Ok(None);
        }
        history[p] = next;
    }
    Ok(Some(()))
}

/// Returns the steps to the last node.
fn path(lazy: &OnTheFlySuccessors<'_>, nodes: &[(SearchNode, usize, LabelId)]) -> Vec<RunStep> {
    let mut out = Vec::new();
    let mut at = nodes.len() - 1;
    while at != 0 {
        let ((state, _), before, label) = nodes[at];
        out.push(RunStep { label, state: lazy.vector(state) });
        at = before;
    }
    out.reverse();
    out
}

/// Replays the steps of a run on the model, and reads the operations of each processor, in the
/// names of `names`. Error: a step is not a transition of the model.
pub fn replay<'m>(
    model: &'m dyn Model,
    interface: &Interface,
    names: &LabelNames,
    steps: &[RunStep],
) -> Result<(Walk<'m>, Vec<Vec<SequenceEntry>>), Diagnostic> {
    let mut walk = Walk::new(model, 0)?;
    let mut texts = Vec::new();
    for step in steps {
        let chosen =
            walk.moves().iter().position(|m| m.label == step.label && m.state == step.state);
        let index = chosen.ok_or_else(|| {
            Diagnostic::internal("a step of the run is not a transition of the model")
        })?;
        walk.take(index)?;
        texts.push(model.label_text(step.label));
    }
    let done = read_operations(interface, names, &texts)?;
    Ok((walk, done))
}

/// Reads the operations of each processor from the labels of a run, in the names of `names`.
pub(crate) fn read_operations(
    interface: &Interface,
    names: &LabelNames,
    texts: &[String],
) -> Result<Vec<Vec<SequenceEntry>>, Diagnostic> {
    let mut alphabet = Alphabet::of(interface, texts.iter().map(String::as_str))?;
    let mut sequences = Sequences::new(texts.len(), interface.first);
    let mut lists = vec![0u32; names.processors.len()];
    let own = alphabet.names.clone();
    alphabet.names = names.clone();
    for text in texts {
        let Some(&word) = alphabet.of_label.get(text) else { continue };
        for &e in &alphabet.words[word as usize] {
            let event = alphabet.events[e as usize];
            let p = names
                .processors
                .iter()
                .position(|n| *n == own.processors[event.processor as usize]);
            let p = p.ok_or_else(|| {
                Diagnostic::internal("a processor of the run does not occur in the machine")
            })?;
            if let Some(next) = sequences.extend(lists[p], e, &event)? {
                lists[p] = next;
            }
        }
    }
    let known = |all: &[String], from: &[String], at: u32| {
        all.iter().position(|n| *n == from[at as usize]).map(narrow::index)
    };
    let rename = |e: &SequenceEntry| SequenceEntry {
        address: e.address.and_then(|a| known(&names.addresses, &own.addresses, a)),
        value: e.value.and_then(|v| known(&names.values, &own.values, v)),
        written: e.written.and_then(|v| known(&names.values, &own.values, v)),
        ..*e
    };
    Ok(lists.iter().map(|&l| sequences.get(l).iter().map(rename).collect()).collect())
}
