//! Data independence of the values that monitors merge.
//!
//! A monitor gives one value to all stores but two of each address. That loses no violation if
//! values can be merged and distinguished. For each pair of values `u`, `v` that can be stored:
//!
//! 1. *Merged.* A run with `v` in place of each `u` is a run of the machine.
//! 2. *Distinguished.* In a run without `u`, each store of `v` can store `u` instead: some run
//!    stores `u` there and nowhere else, and is the same run if `u` is renamed to `v`.
//!
//! So a violating run with equal values is the image of one with a value of its own for each store,
//! which violates as well, and merging the values that a guess does not follow gives a run that
//! violates. A machine that drops a store of a value that memory already has violates 1; a machine
//! that can only repeat its first value violates 2. Both are inclusions of weak traces of systems
//! with renamed, removed, or marked labels: first branching bisimilarity is tried, then the
//! inclusion is searched.
//!
//! Both are checked for the values of roles. Monitors forbid stores of all other values, so each of
//! these (an *extra* value) must be stored wherever values are stored, and exchanging it with the
//! first or the second role must leave the runs of the machine as they are. These exchanges
//! generate all permutations of the two roles and the extra values, so each pair with an extra
//! value is the image of a pair of roles. The initial value is an extra value that cannot be
//! exchanged: if some label stores it and it has no role, the values must be merged into it, which
//! fails.
//!
//! For more values than the machine has, the same is assumed. Cost: one exploration that stores
//! transitions, one partition refinement of the machine, and two of its quotient for each pair and
//! each extra value; the inclusion is exponential in the worst case.

use super::decide::{Subject, Survey};
use super::effects::{Effect, LabelReader};
use crate::alphabet::Phase;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_lts::equivalence::{Equivalence, equivalent, reduce};
use mu_lts::preorder::{Preorder, excess};
use mu_lts::{Labels, Lts};

/// Limit on the states of a quotient of which trace inclusion is searched.
const INCLUSION_LIMIT: usize = 200_000;

/// Result of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// All pairs of values can be merged and distinguished: number of pairs.
    Verified(usize),
    /// Merging the first value into the second one gives a run that the machine does not have.
    NotMergeable(String, String),
    /// A store of the second value cannot always store the first one instead.
    Dependent(String, String),
    /// The machine treats the first value, which has no role, in another way than the second one.
    NotInterchangeable(String, String),
    /// The machine is too large for this check.
    Omitted,
}

/// An end event of the alphabet, or an effect: all that monitors can observe in a label.
type Key = (Option<u32>, Vec<Effect>);

/// Checks that values can be merged and distinguished. `lts`: the machine with its labels. Error: a
/// limit.
pub(super) fn check_merging(
    subject: &Subject<'_>,
    survey: &Survey,
    reader: &LabelReader<'_>,
    lts: &Lts,
) -> Result<Merging, Diagnostic> {
    let roles = &survey.roles;
    let mut storable = vec![roles.first, roles.second];
    if roles.other != roles.initial {
        storable.push(roles.other);
    }
    let name = |v: u32| survey.alphabet.names.values[v as usize].clone();
    let mut ids = KeyIds::default();
    let mut keys = Vec::with_capacity(lts.table.texts.len());
    for text in &lts.table.texts {
        let key = key(reader, text)?;
        ids.of(&key, false);
        keys.push(key);
    }
    let labels: Vec<LabelId> = keys.iter().map(|k| ids.of(k, false)).collect();
    let mut machine = lts.clone();
    machine.labels.iter_mut().for_each(|l| *l = labels[l.index()]);
    machine.table = ids.table();
    let machine = reduce(&machine, Equivalence::BRANCHING, subject.options.thread_count());
    // The quotient numbers labels by their texts, which are the ids of the keys.
    let keys: Vec<Key> = machine.table.texts.iter().map(|t| ids.key(t).clone()).collect();
    let mut pair = Pair { machine: &machine, keys: &keys, reader, ids };
    let extras = extras(survey);
    for &extra in &extras {
        for role in [roles.first, roles.second] {
            match has_all_traces(subject, &pair.exchange_values(extra, role), &pair.whole())? {
                Some(true) => {}
                Some(false) => return Ok(Merging::NotInterchangeable(name(extra), name(role))),
                None => return Ok(Merging::Omitted),
            }
        }
    }
    let stores_initial = pair.keys.iter().any(|k| k.stores(reader, roles.initial));
    // Each further value makes a pair with every other one, in both directions.
    let into_initial = usize::from(stores_initial);
    let further = |n: usize| n * (2 * storable.len() + n - 1 + into_initial);
    let mut pairs = further(extras.len());
    for &from in &storable {
        let into = storable.iter().copied().filter(|v| *v != from);
        let initial = stores_initial.then_some(roles.initial);
        for to in into.chain(initial) {
            match has_all_traces(subject, &pair.rename_value(from, to), &pair.remove_value(from))? {
                Some(true) => {}
                Some(false) => return Ok(Merging::NotMergeable(name(from), name(to))),
                None => return Ok(Merging::Omitted),
            }
            match has_all_traces(
                subject,
                &pair.expected_system(from, to),
                &pair.replace_once(from, to),
            )? {
                Some(true) => pairs += 1,
                Some(false) => return Ok(Merging::Dependent(name(from), name(to))),
                None => return Ok(Merging::Omitted),
            }
        }
    }
    Ok(Merging::Verified(pairs))
}

/// Lists the values in labels that have no role.
fn extras(survey: &Survey) -> Vec<u32> {
    let r = &survey.roles;
    let count = narrow::index(survey.alphabet.names.values.len());
    (0..count).filter(|v| ![r.initial, r.first, r.second, r.other].contains(v)).collect()
}

/// Finds a value without a role that is not stored at some place where values of roles are stored,
/// from the labels alone: so for machines of any size.
pub(super) fn unstored_value(survey: &Survey, effects: &[Effect]) -> Option<Merging> {
    let roles = &survey.roles;
    let (mut stored, mut places) = (AHashSet::new(), AHashSet::new());
    for effect in effects {
        let (processor, address, value) = match *effect {
            Effect::Store { processor, address, value } => (processor, address, value),
            Effect::Update { processor, address, written, .. } => (processor, address, written),
            _ => continue,
        };
        stored.insert((processor, address, value));
        places.insert((processor, address));
    }
    let initial = stored.iter().any(|s| s.2 == roles.initial).then_some(roles.initial);
    let everywhere = |v: u32| places.iter().all(|(p, a)| stored.contains(&(*p, *a, v)));
    let name = |v: u32| survey.alphabet.names.values[v as usize].clone();
    let found = extras(survey).into_iter().chain(initial).find(|v| !everywhere(*v));
    found.map(|v| Merging::NotInterchangeable(name(v), name(roles.first)))
}

/// Returns true if the second system has all weak traces of the first; `None` if the systems are
/// too large to decide this. Error: a limit.
fn has_all_traces(subject: &Subject<'_>, a: &Lts, b: &Lts) -> Result<Option<bool>, Diagnostic> {
    let threads = subject.options.thread_count();
    if equivalent(a, b, Equivalence::BRANCHING, threads) {
        return Ok(Some(true));
    }
    if a.state_count().max(b.state_count()) > INCLUSION_LIMIT {
        return Ok(None);
    }
    excess(a, b, Preorder::WEAK_TRACE, threads, subject.budget)
        .map(|found| Some(found.is_none()))
        .map_err(Diagnostic::stopped)
}

/// Ids of keys, with a mark or without; the text of a label is its id. Id 0 is that of internal
/// labels.
struct KeyIds {
    of: AHashMap<(Key, bool), u32>,
    keys: Vec<Key>,
}

impl Default for KeyIds {
    fn default() -> Self {
        let internal: Key = (None, Vec::new());
        KeyIds { of: [((internal.clone(), false), 0)].into_iter().collect(), keys: vec![internal] }
    }
}

impl KeyIds {
    fn of(&mut self, key: &Key, is_marked: bool) -> LabelId {
        let next = narrow::index(self.keys.len());
        let id = *self.of.entry((key.clone(), is_marked)).or_insert(next);
        if id == next {
            self.keys.push(key.clone());
        }
        LabelId::of(id)
    }
    fn table(&self) -> Labels {
        let text = |i: usize| if i == 0 { "tau".into() } else { i.to_string() };
        Labels { texts: (0..self.keys.len()).map(text).collect() }
    }
    /// Returns the key of a text of [`KeyIds::table`].
    fn key(&self, text: &str) -> &Key {
        &self.keys[text.parse().unwrap_or(0)]
    }
}

/// The systems that a pair of values compares, made of the quotient of the machine.
struct Pair<'a> {
    machine: &'a Lts,
    /// The key of each label.
    keys: &'a [Key],
    reader: &'a LabelReader<'a>,
    ids: KeyIds,
}

impl Pair<'_> {
    /// Returns the machine with a value renamed.
    fn rename_value(&mut self, from: u32, to: u32) -> Lts {
        let image = |v: u32| if v == from { to } else { v };
        self.system(|me, key| Some(me.ids.of(&rename_key(me.reader, key, &image), false)))
    }
    /// Returns the machine with two values exchanged.
    fn exchange_values(&mut self, u: u32, v: u32) -> Lts {
        let image = |x: u32| match x {
            x if x == u => v,
            x if x == v => u,
            x => x,
        };
        self.system(|me, key| Some(me.ids.of(&rename_key(me.reader, key, &image), false)))
    }
    /// Returns the machine.
    fn whole(&mut self) -> Lts {
        self.system(|me, key| Some(me.ids.of(key, false)))
    }
    /// Returns the machine without a value.
    fn remove_value(&mut self, from: u32) -> Lts {
        self.system(|me, key| (!key.has_value(me.reader, from)).then(|| me.ids.of(key, false)))
    }
    /// Returns the machine without `from`, in which at most one store of `to` has a mark.
    fn expected_system(&mut self, from: u32, to: u32) -> Lts {
        let mut edges = Vec::new();
        let states = self.machine.state_count();
        self.each_edge(|me, (s, l, t)| {
            let key = &me.keys[l.index()];
            if key.has_value(me.reader, from) {
                return;
            }
            let plain = me.ids.of(key, false);
            edges.extend([0, states].map(|shift| (s + shift, plain, t + shift)));
            if key.stores(me.reader, to) {
                edges.push((s, me.ids.of(key, true), t + states));
            }
        });
        self.build(2 * states, edges)
    }
    /// Returns the runs in which at most one store has the value `from`: that store has a mark, and
    /// the value is renamed to `to`.
    fn replace_once(&mut self, from: u32, to: u32) -> Lts {
        let mut edges = Vec::new();
        let states = self.machine.state_count();
        let image = |v: u32| if v == from { to } else { v };
        self.each_edge(|me, (s, l, t)| {
            let key = &me.keys[l.index()];
            let renamed = rename_key(me.reader, key, &image);
            if key.stores(me.reader, from) {
                edges.push((s, me.ids.of(&renamed, true), t + states));
                return;
            }
            let label = me.ids.of(&renamed, false);
            edges.push((s + states, label, t + states));
            if !key.has_value(me.reader, from) {
                edges.push((s, label, t));
            }
        });
        self.build(2 * states, edges)
    }

    /// Returns the machine with other labels; `None` removes a transition.
    fn system(&mut self, label: impl Fn(&mut Self, &Key) -> Option<LabelId>) -> Lts {
        let mut edges = Vec::new();
        self.each_edge(|me, (s, l, t)| {
            let key = &me.keys[l.index()];
            edges.extend(label(me, key).map(|l| (s, l, t)));
        });
        self.build(self.machine.state_count(), edges)
    }
    fn each_edge(&mut self, mut visit: impl FnMut(&mut Self, (usize, LabelId, usize))) {
        let machine = self.machine;
        for s in 0..machine.state_count() {
            for (l, t) in machine.successors(StateId::of(narrow::index(s))) {
                visit(self, (s, l, t.index()));
            }
        }
    }
    fn build(&self, states: usize, edges: Vec<(usize, LabelId, usize)>) -> Lts {
        let id = |s: usize| StateId::new(s);
        let edges: Vec<_> = edges.into_iter().map(|(s, l, t)| (id(s), l, id(t))).collect();
        Lts::from_edges(self.machine.initial, states, &edges, self.ids.table())
    }
}

/// Returns the observable part of a label.
fn key(reader: &LabelReader<'_>, text: &str) -> Result<Key, Diagnostic> {
    let word = reader.alphabet().of_label.get(text);
    let event = word.and_then(|w| reader.alphabet().words[*w as usize].first()).copied();
    Ok((event, reader.effects(text)?))
}

trait HasValues {
    /// True if a label contains a value.
    fn has_value(&self, reader: &LabelReader<'_>, value: u32) -> bool;
    /// True if an operation that stores a value begins, or has its value from this label on.
    fn stores(&self, reader: &LabelReader<'_>, value: u32) -> bool;
}

impl HasValues for Key {
    fn has_value(&self, reader: &LabelReader<'_>, value: u32) -> bool {
        let event = self.0.map(|e| &reader.alphabet().events[e as usize]);
        event.is_some_and(|e| e.value == Some(value) || e.written == Some(value))
            || self.1.iter().any(|e| e.with_values(|v| if v == value { u32::MAX } else { v }) != *e)
    }
    fn stores(&self, reader: &LabelReader<'_>, value: u32) -> bool {
        let stores = |e: &Effect| matches!(e, Effect::Store { value: v, .. } if *v == value);
        let event = self.0.map(|e| &reader.alphabet().events[e as usize]);
        let writes = event.is_some_and(|e| {
            let has_begun = e.phase == Phase::End && reader.is_written_at_beginning(e);
            e.written == Some(value) && !has_begun
        });
        writes || self.1.iter().any(stores)
    }
}

/// The number of all events that no label of the machine has.
const NO_EVENT: u32 = u32::MAX;

/// Renames the values of a key. Events and effects without values stay.
fn rename_key(reader: &LabelReader<'_>, key: &Key, image: &dyn Fn(u32) -> u32) -> Key {
    let event = key.0.map(|id| {
        let event = &reader.alphabet().events[id as usize];
        let renamed = crate::alphabet::LabelEvent {
            value: event.value.map(image),
            written: event.written.map(image),
            ..*event
        };
        reader.alphabet().by_event.get(&renamed).copied().unwrap_or(NO_EVENT)
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
