//! Symmetries of a machine: renamings of processors, of addresses, and of the values at an address
//! that preserve its behaviour.
//!
//! Candidates are the swaps of two names. Each is verified on the reduced transition system: the
//! system with renamed labels must be bisimilar to the original, by partition refinement of both
//! together. No two states of a reduced system are bisimilar, so this also determines the image of
//! each state. The verified swaps generate the group. Values are first swapped at one address; if
//! that fails, at all addresses. The initial value is fixed, because memory models distinguish it.
//! Cost: a partition refinement for each candidate.

use crate::alphabet::{Alphabet, LabelEvent};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_lts::Lts;
use mu_lts::equivalence::{Equivalence, partition};

/// Limit on the order of a group; beyond it only the identity is used.
const GROUP_LIMIT: usize = 5000;

/// A renaming of names, with the image of each state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renaming {
    /// The image of each processor.
    pub processors: Vec<u32>,
    /// The image of each address.
    pub addresses: Vec<u32>,
    /// The images of the values at each address, by the address before renaming.
    pub values: Vec<Vec<u32>>,
    /// The image of each state.
    pub states: Vec<u32>,
}

impl Renaming {
    /// Returns the identity.
    pub fn identity(alphabet: &Alphabet, states: usize) -> Renaming {
        let names = &alphabet.names;
        let up_to = |n: usize| (0..narrow::index(n)).collect::<Vec<u32>>();
        Renaming {
            processors: up_to(names.processors.len()),
            addresses: up_to(names.addresses.len()),
            values: vec![up_to(names.values.len()); names.addresses.len()],
            states: up_to(states),
        }
    }
    /// Returns the image of a value at an address. A value without an address is not renamed, as
    /// only machines without such values have renamings of values.
    pub fn value(&self, address: Option<u32>, value: u32) -> u32 {
        address.map_or(value, |a| self.values[a as usize][value as usize])
    }
    fn event(&self, e: &LabelEvent) -> LabelEvent {
        LabelEvent {
            processor: self.processors[e.processor as usize],
            address: e.address.map(|a| self.addresses[a as usize]),
            value: e.value.map(|v| self.value(e.address, v)),
            written: e.written.map(|v| self.value(e.address, v)),
            ..*e
        }
    }
    /// Composes two renamings, this one first.
    fn compose(&self, other: &Renaming) -> Renaming {
        let compose = |a: &[u32], b: &[u32]| a.iter().map(|&x| b[x as usize]).collect::<Vec<u32>>();
        let places = self.values.iter().zip(&self.addresses);
        let values = places.map(|(of, address)| compose(of, &other.values[*address as usize]));
        Renaming {
            processors: compose(&self.processors, &other.processors),
            addresses: compose(&self.addresses, &other.addresses),
            values: values.collect(),
            states: compose(&self.states, &other.states),
        }
    }
    fn key(&self) -> (Vec<u32>, Vec<u32>, Vec<Vec<u32>>) {
        (self.processors.clone(), self.addresses.clone(), self.values.clone())
    }
}

/// The verified symmetries of a machine.
#[derive(Clone, Debug)]
pub struct SymmetryGroup {
    /// Its elements, the identity first.
    pub elements: Vec<Renaming>,
    /// Descriptions of the interchangeable names, for reports.
    pub names: Vec<String>,
}

impl SymmetryGroup {
    /// Returns the group that contains only the identity.
    pub fn trivial(alphabet: &Alphabet, lts: &Lts) -> SymmetryGroup {
        SymmetryGroup {
            elements: vec![Renaming::identity(alphabet, lts.state_count())],
            names: Vec::new(),
        }
    }
    /// Finds all symmetries.
    pub fn find(alphabet: &Alphabet, lts: &Lts, threads: usize) -> SymmetryGroup {
        let mut group = SymmetryGroup::trivial(alphabet, lts);
        let identity = group.elements[0].clone();
        let names = &alphabet.names;
        let mut generators = Vec::new();
        let mut try_swap = |candidate: Renaming| {
            let found = verify(alphabet, lts, candidate, threads);
            let holds = found.is_some();
            generators.extend(found);
            holds
        };
        let mut descriptions = Vec::new();
        let swapped = |mut list: Vec<u32>, i: usize, j: usize| {
            list.swap(i, j);
            list
        };
        for (what, all) in [("processors", &names.processors), ("addresses", &names.addresses)] {
            let mut moved = Vec::new();
            for (i, j) in pairs(0, all.len()) {
                let mut candidate = identity.clone();
                let list = if what == "processors" {
                    &mut candidate.processors
                } else {
                    &mut candidate.addresses
                };
                *list = swapped(list.clone(), i, j);
                if try_swap(candidate) {
                    moved.extend([i, j]);
                }
            }
            descriptions.extend(count(&mut moved).map(|n| format!("{n} {what}")));
        }
        // Values without an address could belong to any address, so they are not renamed.
        if alphabet
            .events
            .iter()
            .all(|e| e.address.is_some() || (e.value.is_none() && e.written.is_none()))
        {
            let (mut at_each, mut at_all) = (Vec::new(), Vec::new());
            for (i, j) in pairs(1, names.values.len()) {
                let mut one = |address: usize| {
                    let mut candidate = identity.clone();
                    candidate.values[address].swap(i, j);
                    try_swap(candidate)
                };
                let separate = (0..names.addresses.len()).filter(|&a| one(a)).count();
                if separate > 0 {
                    at_each.extend([i, j]);
                }
                if separate < names.addresses.len() {
                    let mut candidate = identity.clone();
                    candidate.values.iter_mut().for_each(|of| of.swap(i, j));
                    if try_swap(candidate) {
                        at_all.extend([i, j]);
                    }
                }
            }
            descriptions.extend(count(&mut at_each).map(|n| format!("{n} values at each address")));
            descriptions.extend(count(&mut at_all).map(|n| format!("{n} values")));
        }
        group.names = descriptions;
        group.close(&generators);
        group
    }
    fn close(&mut self, generators: &[Renaming]) {
        let mut known: AHashMap<_, ()> = self.elements.iter().map(|e| (e.key(), ())).collect();
        let mut at = 0;
        while at < self.elements.len() {
            for g in generators {
                let next = self.elements[at].compose(g);
                if self.elements.len() < GROUP_LIMIT && known.insert(next.key(), ()).is_none() {
                    self.elements.push(next);
                }
            }
            at += 1;
        }
        // Part of a group is not a group, and its orbits would not be classes.
        if self.elements.len() >= GROUP_LIMIT {
            self.elements.truncate(1);
            self.names.clear();
        }
    }
}

fn pairs(from: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
    (from..to).flat_map(move |i| (i + 1..to).map(move |j| (i, j)))
}

fn count(moved: &mut Vec<usize>) -> Option<usize> {
    moved.sort_unstable();
    moved.dedup();
    (!moved.is_empty()).then_some(moved.len())
}

/// Returns the renaming with the images of states, if the renamed system is bisimilar to the
/// original.
fn verify(
    alphabet: &Alphabet,
    lts: &Lts,
    mut candidate: Renaming,
    threads: usize,
) -> Option<Renaming> {
    let mut words = vec![LabelId::TAU];
    for word in &alphabet.words {
        let mut image: Vec<u32> = Vec::with_capacity(word.len());
        for &e in word {
            image.push(*alphabet.by_event.get(&candidate.event(&alphabet.events[e as usize]))?);
        }
        image.sort_unstable();
        words.push(LabelId::of(alphabet.by_word.get(&image)? + 1));
    }
    let n = lts.state_count();
    let shift = StateId::new(n).number();
    let mut union = lts.clone();
    union.offsets.extend(lts.offsets[1..].iter().map(|o| o + lts.transition_count() as u64));
    union.labels.extend(lts.labels.iter().map(|l| words[l.index()]));
    union.targets.extend(lts.targets.iter().map(|t| StateId::of(t.number() + shift)));
    let blocks = partition(&union, Equivalence::STRONG, threads);
    if !blocks.same_class(lts.initial, StateId::of(lts.initial.number() + shift)) {
        return None;
    }
    let mut original: Vec<Option<u32>> = vec![None; blocks.blocks];
    for s in 0..n {
        let place = &mut original[blocks.block_of[s] as usize];
        if place.replace(narrow::index(s)).is_some() {
            return None;
        }
    }
    candidate.states =
        (0..n).map(|s| original[blocks.block_of[n + s] as usize]).collect::<Option<_>>()?;
    Some(candidate)
}
