//! Sets of states of a machine after a history.
//!
//! Sets are interned. Their successors, unions, and images under the machine's symmetries are
//! computed once; several threads read them, and only the owner of the table adds to it.
//! Invariant: the id of a set never changes.

use crate::alphabet::Phase;
use crate::machine::ReducedMachine;
use crate::symmetry::SymmetryGroup;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use std::collections::{BTreeMap, VecDeque};

/// Most numbers that may be missing before an operation beyond the bound; with more, the numbers
/// have a gap.
pub(crate) const MISSING_LIMIT: usize = 16;
/// Most states, with the numbers found, in the search for missing numbers; beyond it they count as
/// a gap.
const COMPLETION_LIMIT: usize = 100_000;

/// The words that can follow a set, in order, each with the set after it.
pub(crate) type Row = Box<[(u32, u32)]>;
/// The words that can follow a set, in order, each with the sorted states after it.
pub(crate) type Successors = Vec<(u32, Vec<u32>)>;

/// Interned sets of states, closed under internal steps.
pub(crate) struct StateSets<'m> {
    machine: &'m ReducedMachine,
    group: &'m SymmetryGroup,
    lists: Vec<Vec<u32>>,
    ids: AHashMap<Vec<u32>, u32>,
    rows: Vec<Option<Row>>,
    unions: AHashMap<(u32, u32), u32>,
    images: Images,
}

impl<'m> StateSets<'m> {
    pub(crate) fn new(machine: &'m ReducedMachine, group: &'m SymmetryGroup) -> Self {
        Self {
            machine,
            group,
            lists: Vec::new(),
            ids: AHashMap::new(),
            rows: Vec::new(),
            unions: AHashMap::new(),
            images: Images::default(),
        }
    }
    /// Returns the number of sets.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }
    fn intern(&mut self, mut list: Vec<u32>) -> u32 {
        list.sort_unstable();
        list.dedup();
        let next = narrow::index(self.lists.len());
        let id = *self.ids.entry(list.clone()).or_insert(next);
        if id == next {
            self.lists.push(list);
        }
        id
    }
    /// Computes the closure of some states under internal steps, sorted.
    fn closure(&self, states: Vec<u32>) -> Vec<u32> {
        let lts = &self.machine.lts;
        let mut visited: AHashSet<u32> = states.iter().copied().collect();
        let mut open = states;
        while let Some(s) = open.pop() {
            for (_, t) in lts.successors(StateId::of(s)).filter(|(l, _)| *l == LabelId::TAU) {
                if visited.insert(t.number()) {
                    open.push(t.number());
                }
            }
        }
        let mut all: Vec<u32> = visited.into_iter().collect();
        all.sort_unstable();
        all
    }
    /// Interns the closure of some states.
    pub(crate) fn intern_closure(&mut self, states: Vec<u32>) -> u32 {
        let closure = self.closure(states);
        self.intern(closure)
    }
    /// Returns the words that can follow a set; `None` if they were not computed.
    pub(crate) fn row(&self, id: u32) -> Option<&Row> {
        self.rows.get(id as usize)?.as_ref()
    }
    /// Computes the words that can follow a set, with the states after them.
    pub(crate) fn successors(&self, id: u32) -> Successors {
        let mut by: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &s in &self.lists[id as usize] {
            for (l, t) in
                self.machine.lts.successors(StateId::of(s)).filter(|(l, _)| *l != LabelId::TAU)
            {
                by.entry(l.number() - 1).or_default().push(t.number());
            }
        }
        by.into_iter().map(|(word, states)| (word, self.closure(states))).collect()
    }
    /// Stores the words that can follow a set.
    pub(crate) fn set_row(&mut self, id: u32, successors: Successors) {
        let row = successors.into_iter().map(|(word, states)| (word, self.intern(states)));
        let row: Row = row.collect();
        if self.rows.len() <= id as usize {
            self.rows.resize(self.lists.len(), None);
        }
        self.rows[id as usize] = Some(row);
    }
    /// True if some run from a set has all these numbers of a processor's operations. False if
    /// there are more than [`MISSING_LIMIT`], or none is found among [`COMPLETION_LIMIT`] states.
    pub(crate) fn completes(&self, id: u32, processor: u32, numbers: &[u64]) -> bool {
        if numbers.is_empty() {
            return true;
        }
        if numbers.len() > MISSING_LIMIT {
            return false;
        }
        let machine = self.machine;
        let all = (1u32 << numbers.len()) - 1;
        let mut open: VecDeque<(u32, u32)> =
            self.lists[id as usize].iter().map(|&s| (s, 0)).collect();
        let mut reached: AHashSet<(u32, u32)> = open.iter().copied().collect();
        while let Some((state, found)) = open.pop_front() {
            if found == all {
                return true;
            }
            for (label, target) in machine.lts.successors(StateId::of(state)) {
                let mut found = found;
                if label != LabelId::TAU {
                    for &e in &machine.alphabet.words[label.index() - 1] {
                        let event = &machine.alphabet.events[e as usize];
                        let number = event.number.filter(|_| event.phase == Phase::Whole);
                        if event.processor == processor
                            && let Some(i) = numbers.iter().position(|n| Some(*n) == number)
                        {
                            found |= 1 << i;
                        }
                    }
                }
                if reached.len() < COMPLETION_LIMIT && reached.insert((target.number(), found)) {
                    open.push_back((target.number(), found));
                }
            }
        }
        false
    }
    /// Returns the union of two sets.
    pub(crate) fn union(&mut self, a: u32, b: u32) -> u32 {
        let key = (a.min(b), a.max(b));
        if a == b {
            return a;
        }
        if let Some(known) = self.unions.get(&key) {
            return *known;
        }
        let all = self.lists[a as usize].iter().chain(&self.lists[b as usize]).copied().collect();
        let id = self.intern(all);
        self.unions.insert(key, id);
        id
    }
    /// Returns the image of a set under an element of the group; `None` if it was not computed.
    pub(crate) fn known_image(&self, element: u32, id: u32) -> Option<u32> {
        if element == 0 { Some(id) } else { self.images.get(element, id) }
    }
    /// Returns the image of a set under an element of the group.
    pub(crate) fn image(&mut self, element: u32, id: u32) -> u32 {
        if element == 0 {
            return id;
        }
        if let Some(known) = self.images.get(element, id) {
            return known;
        }
        let states = &self.group.elements[element as usize].states;
        let list = self.lists[id as usize].iter().map(|&s| states[s as usize]).collect();
        let image = self.intern(list);
        self.images.set(element, id, image);
        image
    }
}

/// Images of numbered objects under the elements of a group.
#[derive(Default)]
pub(crate) struct Images {
    /// For each element the images by number; [`Images::NONE`] if one is not known.
    rows: Vec<Vec<u32>>,
}

impl Images {
    const NONE: u32 = u32::MAX;

    /// Returns an image; `None` if it is not known.
    pub(crate) fn get(&self, element: u32, id: u32) -> Option<u32> {
        let row = self.rows.get(element as usize)?;
        row.get(id as usize).copied().filter(|image| *image != Self::NONE)
    }
    /// Stores an image.
    pub(crate) fn set(&mut self, element: u32, id: u32, image: u32) {
        if self.rows.len() <= element as usize {
            self.rows.resize(element as usize + 1, Vec::new());
        }
        let row = &mut self.rows[element as usize];
        if row.len() <= id as usize {
            row.resize(id as usize + 1, Self::NONE);
        }
        row[id as usize] = image;
    }
}
