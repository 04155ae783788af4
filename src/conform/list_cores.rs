//! Cores of histories that are given as numbers of lists.
//!
//! The rules are those of [`crate::cores`]; the lemma in docs/memory-models.md holds for each order
//! of their application. Per list is known: the list without what the rules remove whatever the
//! other lists are, the list without its first and without its last operation, and the stores and
//! loads in it as bits. So a core takes a few look-ups for each operation that is removed, and
//! most histories have a core that was judged before. Input: lists of plain accesses, updates, and
//! full fences that have ended.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use crate::judge;
use crate::level::Lists;
use crate::sequences::{SequenceEntry, Sequences, State};
use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, Operation};
use mu_axioms::models::MemoryOrdering;

/// A set of pairs of a location and a value.
type Pairs = u64;

/// An operation at an end of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outermost {
    /// There is none, or no rule removes it.
    Fixed,
    /// A plain load of a location and value.
    Load(u32, u64),
    /// A plain store.
    Store(u32, u64),
}

/// Facts about a list.
#[derive(Clone, Copy)]
struct CoreFacts {
    /// The list after the rules that look at this list only. The other facts are about lists that
    /// these rules do not change.
    reduced: u32,
    without_first: u32,
    without_last: u32,
    first: Outermost,
    last: Outermost,
    stored: Pairs,
    stored_twice: Pairs,
    loaded: Pairs,
}

const UNCHANGED: CoreFacts = CoreFacts {
    reduced: 0,
    without_first: 0,
    without_last: 0,
    first: Outermost::Fixed,
    last: Outermost::Fixed,
    stored: 0,
    stored_twice: 0,
    loaded: 0,
};

/// Facts about all lists.
pub struct ListCores {
    facts: Vec<CoreFacts>,
    /// Number of values of a location.
    values: u64,
}

impl ListCores {
    /// Creates the facts of a machine; `None` if it has other operations, or too many names.
    pub fn of(interface: &Interface, alphabet: &Alphabet) -> Option<ListCores> {
        let plain = alphabet.events.iter().all(|e| {
            let line = &interface.operations[e.operation as usize];
            line.mark == MemoryOrdering::Plain
                && !line.exclusive
                && e.depends == Dependencies::NONE
                && matches!(
                    line.kind,
                    EventKind::Read | EventKind::Write | EventKind::Update | EventKind::Fence
                )
        });
        let names = &alphabet.names;
        let values = names.values.len().max(1);
        let pairs = names.addresses.len().max(1).checked_mul(values)?;
        let fits = plain && pairs <= Pairs::BITS as usize;
        fits.then(|| ListCores { facts: Vec::new(), values: values as u64 })
    }

    fn pair(&self, location: u32, value: u64) -> Pairs {
        1 << (u64::from(location) * self.values + value)
    }

    fn location(&self, location: u32) -> Pairs {
        let all = Pairs::MAX >> (u64::from(Pairs::BITS) - self.values);
        all << (u64::from(location) * self.values)
    }

    /// Adds the facts about the next list. Lists without some of its operations are interned.
    pub fn add(&mut self, sequences: &mut Sequences, interface: &Interface, list: u32) {
        debug_assert_eq!(self.facts.len(), list as usize);
        let entries = sequences.get(list);
        if entries.is_empty() || entries.iter().any(|e| e.state != State::Done) {
            self.facts.push(CoreFacts { reduced: list, ..UNCHANGED });
            return;
        }
        let operations = judge::thread(interface, entries);
        if let Some(at) = removable_operation(&operations) {
            let shorter = sequences.intern(remove_entry(entries, at));
            self.facts.push(CoreFacts { reduced: shorter, ..UNCHANGED });
            return;
        }
        let last = entries.len() - 1;
        let (without_first, without_last) = (remove_entry(entries, 0), remove_entry(entries, last));
        let mut facts = CoreFacts {
            reduced: list,
            without_first: sequences.intern(without_first),
            without_last: sequences.intern(without_last),
            first: outermost(&operations[0]),
            last: outermost(&operations[last]),
            ..UNCHANGED
        };
        for o in &operations {
            if o.kind.reads() {
                facts.loaded |= self.pair(o.location, o.read_value());
            }
            if o.kind.writes() {
                let pair = self.pair(o.location, o.value);
                facts.stored_twice |= facts.stored & pair;
                facts.stored |= pair;
            }
        }
        self.facts.push(facts);
    }

    fn core_of(&self, mut list: u32) -> u32 {
        loop {
            let next = self.facts[list as usize].reduced;
            if next == list {
                return list;
            }
            list = next;
        }
    }

    /// Returns the core of a history.
    pub fn core<const P: usize>(&self, history: &Lists<P>) -> Lists<P> {
        let mut core = history.map(|list| self.core_of(list));
        loop {
            let (mut stored, mut stored_twice, mut loaded) = (0, 0, 0);
            for &list in &core {
                let facts = &self.facts[list as usize];
                stored_twice |= facts.stored_twice | stored & facts.stored;
                stored |= facts.stored;
                loaded |= facts.loaded;
            }
            let removes_first = |first| match first {
                Outermost::Load(location, 0) => stored & self.pair(location, 0) == 0,
                _ => false,
            };
            let removes_last = |last| match last {
                Outermost::Load(location, value) => {
                    let (all, own) = (self.location(location), self.pair(location, value));
                    let only = stored & all == own && stored_twice & all == 0;
                    only || stored & all == 0 && value == 0
                }
                Outermost::Store(location, value) => loaded & self.pair(location, value) == 0,
                Outermost::Fixed => false,
            };
            // One operation at a time: the bits change with it.
            let shorter = core.iter_mut().find_map(|list| {
                let facts = &self.facts[*list as usize];
                let next = match () {
                    () if removes_first(facts.first) => facts.without_first,
                    () if removes_last(facts.last) => facts.without_last,
                    () => return None,
                };
                Some((list, next))
            });
            let Some((list, next)) = shorter else { return core };
            *list = self.core_of(next);
        }
    }
}

/// Returns the place of an operation that is removed whatever the other lists are.
fn removable_operation(operations: &[Operation]) -> Option<usize> {
    let is_fence = |o: &&Operation| o.kind == EventKind::Fence;
    let repeated = |i: &usize| crate::cores::repeats(&operations[i - 1], &operations[*i]);
    (1..operations.len())
        .find(repeated)
        .or(operations.last().filter(is_fence).map(|_| operations.len() - 1))
        .or(operations.first().filter(is_fence).map(|_| 0))
}

fn remove_entry(entries: &[SequenceEntry], at: usize) -> Vec<SequenceEntry> {
    let mut out = entries.to_vec();
    out.remove(at);
    out
}

fn outermost(o: &Operation) -> Outermost {
    match o.kind {
        EventKind::Read => Outermost::Load(o.location, o.value),
        EventKind::Write => Outermost::Store(o.location, o.value),
        _ => Outermost::Fixed,
    }
}
