//! Interned lists of the operations of one processor in program order, their extension by events,
//! and their images under the machine's symmetries.
//!
//! Several threads read the computed entries; only the owner of the table adds to it.
//! Invariant: the id of a list never changes. An operation that has ended has no number, so that
//! lists that memory models cannot distinguish are equal.

use crate::alphabet::{LabelEvent, Phase};
use crate::state_sets::Images;
use crate::symmetry::{Renaming, SymmetryGroup};
use ahash::{AHashMap, AHashSet};
use mu_axioms::history::Dependencies;
use mu_base::{Diagnostic, Stage, narrow};

/// Progress of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum State {
    /// No event of this operation has occurred, but one of an operation with a greater number has.
    Missing,
    /// It has begun.
    Begun,
    /// It has ended.
    Done,
}

/// An operation of a processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SequenceEntry {
    /// Its progress.
    pub state: State,
    /// Its line of the interface; the first line of its kind once it has ended.
    pub operation: u32,
    /// The first line of its kind.
    pub class: u32,
    /// Its address, if known.
    pub address: Option<u32>,
    /// The value that it reads or stores.
    pub value: Option<u32>,
    /// The value that it writes, if it is an update.
    pub written: Option<u32>,
    /// Its number, until it ends.
    pub number: Option<u64>,
    /// The earlier operations on which it depends.
    pub depends: Dependencies,
}

const MISSING: SequenceEntry = SequenceEntry {
    state: State::Missing,
    operation: 0,
    class: 0,
    address: None,
    value: None,
    written: None,
    number: None,
    depends: Dependencies::NONE,
};

impl SequenceEntry {
    fn of(event: &LabelEvent, state: State) -> SequenceEntry {
        let (number, operation) = if state == State::Done {
            (None, event.class)
        } else {
            (event.number, event.operation)
        };
        SequenceEntry {
            state,
            operation,
            class: event.class,
            address: event.address,
            value: event.value,
            written: event.written,
            number,
            depends: event.depends,
        }
    }
    /// Removes the dependency on its own position, which means none. Error: it depends on a later
    /// operation.
    fn at(mut self, position: usize) -> Result<SequenceEntry, Diagnostic> {
        let Dependencies { address, data, control } = &mut self.depends;
        for bits in [address, data, control] {
            if position < Dependencies::LIMIT {
                *bits &= !(1 << position);
            }
            if let Some(later) = Dependencies::positions(*bits).find(|p| *p > position) {
                let message = format!(
                    "operation {position} of a processor depends on operation {later}, counted from 0, which is later in program order"
                );
                return Err(Diagnostic::new(Stage::Type, message));
            }
        }
        Ok(self)
    }
    /// True if the operation can still become `other`, which has ended.
    pub fn leads_to(&self, other: &SequenceEntry) -> bool {
        let compatible = |mine: Option<u32>, its: Option<u32>| mine.is_none() || mine == its;
        match self.state {
            State::Missing => true,
            State::Begun => {
                let fields = compatible(self.address, other.address)
                    && compatible(self.value, other.value)
                    && compatible(self.written, other.written);
                let within = |mine: u32, its: u32| mine & !its == 0;
                let (mine, its) = (self.depends, other.depends);
                let depends = within(mine.address, its.address)
                    && within(mine.data, its.data)
                    && within(mine.control, its.control);
                self.class == other.class && fields && depends
            }
            State::Done => self == other,
        }
    }
    /// True if the end event can belong to this operation: no field that both have differs.
    fn ends_with(&self, event: &LabelEvent) -> bool {
        let compatible =
            |mine: Option<u32>, its: Option<u32>| mine.is_none() || its.is_none() || mine == its;
        let fields = compatible(self.address, event.address)
            && compatible(self.value, event.value)
            && compatible(self.written, event.written);
        self.state == State::Begun
            && self.operation == event.operation
            && self.number == event.number
            && fields
    }
}

/// A begin event, with all fields of its label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Begin {
    /// The processor.
    pub processor: u32,
    /// The line of the interface.
    pub operation: u32,
    /// The address.
    pub address: Option<u32>,
    /// The value.
    pub value: Option<u32>,
    /// The value that an update writes.
    pub written: Option<u32>,
}

impl Begin {
    /// Converts an event that begins an operation.
    pub fn of(event: &LabelEvent) -> Begin {
        let LabelEvent { processor, operation, address, value, written, .. } = *event;
        Begin { processor, operation, address, value, written }
    }
}

/// A list that is not known yet.
const UNKNOWN: u32 = u32::MAX;
/// The list would exceed the bound.
const BEYOND: u32 = u32::MAX - 1;

/// The least image of a list among those under the elements that send its processor to the first
/// place, with these elements.
#[derive(Clone, Copy)]
pub(crate) struct LeastImage<'t> {
    pub(crate) image: u32,
    pub(crate) elements: &'t [u32],
}

/// The interned lists. List 0 is empty.
pub struct Sequences {
    lists: Vec<Vec<SequenceEntry>>,
    ids: AHashMap<Vec<SequenceEntry>, u32>,
    /// For each list its extensions by events, by number.
    next: Vec<Vec<u32>>,
    /// For each list: true if it has as many operations as the bound permits, and all have ended.
    full: Vec<bool>,
    images: Images,
    /// For each list and processor its least image, with the end of its elements in
    /// `least_elements`; empty if it was not computed.
    least: Vec<Vec<(u32, u32)>>,
    /// The elements of least images, one list after the other, with their begin.
    least_elements: Vec<u32>,
    ended: AHashSet<Begin>,
    limit: usize,
    first: u64,
}

impl Sequences {
    /// Creates the table for lists of at most `limit` operations; `first` is the number of the
    /// first operation.
    pub fn new(limit: usize, first: u64) -> Self {
        let ids = [(Vec::new(), 0)].into_iter().collect();
        Self {
            lists: vec![Vec::new()],
            ids,
            next: vec![Vec::new()],
            full: vec![limit == 0],
            images: Images::default(),
            least: Vec::new(),
            least_elements: Vec::new(),
            ended: AHashSet::new(),
            limit,
            first,
        }
    }
    /// Returns a list.
    pub fn get(&self, id: u32) -> &[SequenceEntry] {
        &self.lists[id as usize]
    }
    /// Returns the begin events of operations that have ended in some list.
    pub fn ended_begins(&self) -> impl Iterator<Item = &Begin> {
        self.ended.iter()
    }
    /// True if all its operations have ended.
    pub fn is_done(&self, id: u32) -> bool {
        self.get(id).iter().all(|e| e.state == State::Done)
    }
    /// Returns the number of the first operation that is missing before another one. `None` if none
    /// is missing.
    pub fn gap(&self, id: u32) -> Option<u64> {
        self.get(id).iter().position(|e| e.state == State::Missing).map(|at| self.first + at as u64)
    }
    /// Lists the numbers that are missing before that of an operation beyond the bound, at most
    /// `limit` of them.
    pub fn missing_before(&self, id: u32, event: &LabelEvent, limit: usize) -> Vec<u64> {
        let Some(number) = event.number.filter(|_| event.phase == Phase::Whole) else {
            return Vec::new();
        };
        let list = self.get(id);
        let is_missing = |n: &u64| {
            let at = (n - self.first) as usize;
            list.get(at).is_none_or(|e| e.state == State::Missing)
        };
        (self.first..number).filter(is_missing).take(limit).collect()
    }
    /// Returns the number of lists.
    pub fn count(&self) -> usize {
        self.lists.len()
    }
    /// True if the list has as many operations as the bound permits, and all have ended.
    pub(crate) fn is_full(&self, id: u32) -> bool {
        self.full[id as usize]
    }
    /// Interns a list.
    pub fn intern(&mut self, list: Vec<SequenceEntry>) -> u32 {
        let next = narrow::index(self.lists.len());
        let id = *self.ids.entry(list.clone()).or_insert(next);
        if id == next {
            let done = list.iter().all(|e| e.state == State::Done);
            self.full.push(done && list.len() >= self.limit);
            self.lists.push(list);
            self.next.push(Vec::new());
        }
        id
    }
    /// Returns the extension of a list by an event, if it was computed ([`Sequences::extend`]).
    pub(crate) fn cached_extension(&self, id: u32, number: u32) -> Option<Option<u32>> {
        match self.next[id as usize].get(number as usize) {
            None | Some(&UNKNOWN) => None,
            Some(&next) => Some((next != BEYOND).then_some(next)),
        }
    }
    /// Extends a list by an event; `None` if the result exceeds the bound. Error: an operation ends
    /// that has not begun, or occurs twice.
    pub fn extend(
        &mut self,
        id: u32,
        number: u32,
        event: &LabelEvent,
    ) -> Result<Option<u32>, Diagnostic> {
        if let Some(known) = self.cached_extension(id, number) {
            return Ok(known);
        }
        let mut list = self.get(id).to_vec();
        let next = if self.add(&mut list, event)? { Some(self.intern(list)) } else { None };
        let row = &mut self.next[id as usize];
        if row.len() <= number as usize {
            row.resize(number as usize + 1, UNKNOWN);
        }
        row[number as usize] = next.unwrap_or(BEYOND);
        Ok(next)
    }
    fn add(
        &mut self,
        list: &mut Vec<SequenceEntry>,
        event: &LabelEvent,
    ) -> Result<bool, Diagnostic> {
        match (event.phase, event.number) {
            (Phase::Begin, _) => list.push(SequenceEntry::of(event, State::Begun).at(list.len())?),
            (Phase::Whole, None) => {
                list.push(SequenceEntry::of(event, State::Done).at(list.len())?)
            }
            (Phase::Whole, Some(n)) => {
                let Some(at) = n.checked_sub(self.first) else {
                    let message = format!(
                        "an operation has the number {n}, but by the interface the numbers start from {}",
                        self.first
                    );
                    return Err(Diagnostic::new(Stage::Type, message));
                };
                if at >= self.limit as u64 {
                    return Ok(false);
                }
                let at = at as usize;
                while list.len() <= at {
                    list.push(MISSING);
                }
                if list[at] != MISSING {
                    let message = format!(
                        "a processor has two operations at position {n} of its program order"
                    );
                    return Err(Diagnostic::new(Stage::Type, message).note(
                        "the number of an operation with one label is its position; an operation with a begin label is placed after those that have begun",
                    ));
                }
                list[at] = SequenceEntry::of(event, State::Done).at(at)?;
            }
            (Phase::End, _) => {
                let Some(position) = list.iter().position(|e| e.ends_with(event)) else {
                    let message = "by the interface, an operation ends that has not begun";
                    return Err(Diagnostic::new(Stage::Type, message));
                };
                let depends = SequenceEntry::of(event, State::Done).at(position)?.depends;
                let entry = &mut list[position];
                entry.depends.address |= depends.address;
                entry.depends.data |= depends.data;
                entry.depends.control |= depends.control;
                let SequenceEntry { operation, address, value, written, .. } = *entry;
                self.ended.insert(Begin {
                    processor: event.processor,
                    operation,
                    address,
                    value,
                    written,
                });
                entry.state = State::Done;
                entry.operation = entry.class;
                entry.address = entry.address.or(event.address);
                entry.value = entry.value.or(event.value);
                entry.written = entry.written.or(event.written);
                entry.number = None;
            }
        }
        Ok(list.len() <= self.limit)
    }
    /// Applies a renaming, given with its index in the group, to a list.
    pub fn image(&mut self, number: u32, renaming: &Renaming, id: u32) -> u32 {
        if id == 0 {
            return 0;
        }
        if let Some(known) = self.images.get(number, id) {
            return known;
        }
        let rename = |e: &SequenceEntry| SequenceEntry {
            address: e.address.map(|a| renaming.addresses[a as usize]),
            value: e.value.map(|v| renaming.value(e.address, v)),
            written: e.written.map(|v| renaming.value(e.address, v)),
            ..*e
        };
        let list = self.get(id).iter().map(rename).collect();
        let image = self.intern(list);
        self.images.set(number, id, image);
        image
    }
    /// Returns a computed image of a list.
    pub(crate) fn known_image(&self, number: u32, id: u32) -> u32 {
        if id == 0 {
            return 0;
        }
        self.images.get(number, id).expect("images are computed with least images")
    }
    /// Returns the least image of a list of a processor; `None` if it was not computed.
    pub(crate) fn least(&self, processor: usize, id: u32) -> Option<LeastImage<'_>> {
        let &(image, end) = self.least.get(id as usize)?.get(processor)?;
        let all = &self.least_elements[..end as usize];
        let (&count, rest) = all.split_last()?;
        Some(LeastImage { image, elements: &rest[rest.len() - count as usize..] })
    }
    /// Computes the images of a list under a group, and the least ones for each processor.
    pub(crate) fn compute_least(&mut self, group: &SymmetryGroup, id: u32) {
        if self.least.get(id as usize).is_some_and(|l| !l.is_empty()) {
            return;
        }
        let images: Vec<u32> =
            (0u32..).zip(&group.elements).map(|(g, element)| self.image(g, element, id)).collect();
        let processors = group.elements[0].processors.len();
        let mut row = Vec::with_capacity(processors);
        for p in 0..processors {
            let first = |&(g, _): &(u32, &u32)| group.elements[g as usize].processors[p] == 0;
            let leading = || (0u32..).zip(&images).filter(first);
            let image = leading().map(|(_, image)| *image).min().unwrap_or(BEYOND);
            let from = self.least_elements.len();
            let elements = leading().filter(|(_, i)| **i == image).map(|(g, _)| g);
            self.least_elements.extend(elements);
            let count = self.least_elements.len() - from;
            self.least_elements.push(narrow::index(count));
            row.push((image, narrow::index(self.least_elements.len())));
        }
        if self.least.len() <= id as usize {
            self.least.resize(id as usize + 1, Vec::new());
        }
        self.least[id as usize] = row;
    }
}
