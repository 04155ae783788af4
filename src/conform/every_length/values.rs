//! Data independence of the values that monitors merge.
//!
//! A monitor gives one value to all stores but two of each address. That loses no execution if the
//! machine treats values alike: any function on values maps its runs to its runs, and every run
//! with equal values is the image of one with different values. Check for each pair of values `u`,
//! `v` that can be stored: the machine with `u` renamed to `v` in all labels is branching bisimilar
//! to the machine that never uses `u`. So a machine that drops a store of a value that memory
//! already has, or that compares values, fails. For more values than the machine has, the same is
//! assumed. Cost: one exploration that stores transitions, and two partition refinements of both
//! systems together for each pair.

use super::decide::{Subject, Survey};
use super::effects::{Effect, LabelReader};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stop};
use mu_explore::explore_lts;
use mu_lts::equivalence::{Equivalence, partition, reduce};
use mu_lts::{Labels, Lts};

/// Result of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// All pairs of values can be merged: number of pairs.
    Verified(usize),
    /// Merging the first value into the second one changes the machine.
    Fails(String, String),
    /// The machine is too large for this check.
    Omitted,
}

/// An end event of the alphabet, or an effect: all that monitors can observe in a label.
type Key = (Option<u32>, Vec<Effect>);

/// Checks that values can be merged. Error: a limit.
pub(super) fn merging(
    subject: &Subject<'_>,
    survey: &Survey,
    reader: &LabelReader<'_>,
) -> Result<Merging, Diagnostic> {
    let threads = subject.options.thread_count();
    let (outcome, lts) =
        explore_lts(subject.machine, subject.options, subject.budget, subject.progress)?;
    if outcome.stop != Stop::Complete {
        return Err(Diagnostic::stopped(outcome.stop));
    }
    let roles = &survey.roles;
    let mut storable = vec![roles.first, roles.second];
    if roles.other != roles.initial {
        storable.push(roles.other);
    }
    let mut ids: AHashMap<Key, u32> = [((None, Vec::new()), 0)].into_iter().collect();
    let mut keys = Vec::with_capacity(lts.table.texts.len());
    for text in &lts.table.texts {
        keys.push(key(reader, text)?);
    }
    let mut relabelled = |image: &dyn Fn(u32) -> u32, lts: &Lts| {
        let labels: Vec<LabelId> = keys
            .iter()
            .map(|k| {
                let next = ids.len() as u32;
                LabelId::of(*ids.entry(renamed(reader, k, image)).or_insert(next))
            })
            .collect();
        let mut lts = lts.clone();
        lts.labels.iter_mut().for_each(|l| *l = labels[l.index()]);
        let texts = (0..ids.len()).map(|i| if i == 0 { "tau".into() } else { i.to_string() });
        lts.table = Labels { texts: texts.collect() };
        lts
    };
    // The labels of the reduced system have other numbers; the tables stay.
    let identity = relabelled(&|v| v, &lts);
    let mut pairs = 0;
    for &from in &storable {
        let into = storable.iter().copied().filter(|v| *v != from);
        let initial = (roles.other == roles.initial).then_some(roles.initial);
        for to in into.chain(initial) {
            let merged = relabelled(&|v| if v == from { to } else { v }, &lts);
            let uses = |l: LabelId| keys[l.index()].has_value(reader, from);
            let without = restricted(&identity, &lts, &uses);
            let both = [&merged, &without].map(|l| reduce(l, Equivalence::BRANCHING, threads));
            if !equivalent(&both[0], &both[1], threads) {
                let names = &survey.alphabet.names.values;
                let name = |v: u32| names[v as usize].clone();
                return Ok(Merging::Fails(name(from), name(to)));
            }
            pairs += 1;
        }
    }
    Ok(Merging::Verified(pairs))
}

/// Returns the observable part of a label.
fn key(reader: &LabelReader<'_>, text: &str) -> Result<Key, Diagnostic> {
    let word = reader.alphabet().of_label.get(text);
    let event = word.and_then(|w| reader.alphabet().words[*w as usize].first()).copied();
    Ok((event, reader.effects(text)?))
}

trait Valued {
    fn has_value(&self, reader: &LabelReader<'_>, value: u32) -> bool;
}

impl Valued for Key {
    fn has_value(&self, reader: &LabelReader<'_>, value: u32) -> bool {
        let event = self.0.map(|e| &reader.alphabet().events[e as usize]);
        event.is_some_and(|e| e.value == Some(value) || e.written == Some(value))
            || self.1.iter().any(|e| e.with_values(|v| if v == value { u32::MAX } else { v }) != *e)
    }
}

/// Renames the values of a key. Events and effects without values stay.
fn renamed(reader: &LabelReader<'_>, key: &Key, image: &dyn Fn(u32) -> u32) -> Key {
    let event = key.0.map(|id| {
        let event = &reader.alphabet().events[id as usize];
        let renamed = crate::alphabet::Event {
            value: event.value.map(image),
            written: event.written.map(image),
            ..*event
        };
        reader.alphabet().by_event.get(&renamed).copied().unwrap_or(id)
    });
    let rename = |e: &Effect| match e {
        // The event of a beginning is that of the label.
        Effect::Begin { processor, .. } => {
            Effect::Begin { processor: *processor, event: event.unwrap_or(0) }
        }
        e => e.with_values(image),
    };
    (event, key.1.iter().map(rename).collect())
}

/// Removes the transitions with a label that uses a value in the original system.
fn restricted(lts: &Lts, original: &Lts, uses: &dyn Fn(LabelId) -> bool) -> Lts {
    let mut out = lts.clone();
    out.offsets.clear();
    out.labels.clear();
    out.targets.clear();
    out.offsets.push(0);
    for s in 0..lts.state_count() {
        let range = lts.offsets[s] as usize..lts.offsets[s + 1] as usize;
        for i in range.filter(|i| !uses(original.labels[*i])) {
            out.labels.push(lts.labels[i]);
            out.targets.push(lts.targets[i]);
        }
        out.offsets.push(out.labels.len() as u64);
    }
    out
}

/// True if the initial states of two systems are branching bisimilar.
fn equivalent(a: &Lts, b: &Lts, threads: usize) -> bool {
    let shift = a.state_count() as u32;
    let mut union = a.clone();
    let before = union.transition_count() as u64;
    union.offsets.extend(b.offsets[1..].iter().map(|o| o + before));
    union.labels.extend(&b.labels);
    union.targets.extend(b.targets.iter().map(|t| StateId::of(t.number() + shift)));
    let longer = if a.table.texts.len() > b.table.texts.len() { a } else { b };
    union.table = Labels { texts: longer.table.texts.clone() };
    let blocks = partition(&union, Equivalence::BRANCHING, threads);
    blocks.same(a.initial, StateId::of(b.initial.number() + shift))
}
