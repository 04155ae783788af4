//! Expansion of a level of histories by several threads.
//!
//! A block of histories is divided into chunks. Threads extend the histories of a chunk with tables
//! that are only read: the words after a set of states, lists extended by events, images. A history
//! that needs what was not computed waits, and the chunk lists what is missing ([`MissingEntry`]).
//! One thread adds that to the tables, chunk by chunk, and the waiting histories are extended
//! again. The results of all chunks are then added to the next levels, shard by shard, in the order
//! of the chunks. So the histories, their order, and the numbers of lists depend on the machine
//! only. Cost of a block: 12 bytes for each extension of a history of two processors.

use crate::alphabet::Phase;
use crate::interface::Interface;
use crate::judge;
use crate::level::{Entry, Level, Lists, SHARDS, shard_of};
use crate::machine::ReducedMachine;
use crate::parallel::for_each;
use crate::sequences::{SequenceEntry, Sequences, State};
use crate::state_sets::{MISSING_LIMIT, StateSets, Successors};
use crate::symmetry::SymmetryGroup;
use ahash::{AHashMap, AHashSet};
use fixedbitset::FixedBitSet;
use mu_axioms::EventKind;
use mu_axioms::history::History;
use mu_base::{Budget, Diagnostic};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Number of histories of a chunk.
const CHUNK: usize = 1024;
/// Largest number of chunks of a block.
const CHUNKS: usize = 64;
/// Number of extensions of a block beyond which the next block is smaller.
const EXTENSION_LIMIT: usize = 4_000_000;
/// Number of sets for which words are computed between two checks of limits.
const ROWS: usize = 256;
/// Number of histories of a level below which one thread extends them.
pub(crate) const PARALLEL: usize = 4096;

/// An entry of a table that must be computed before a history can be extended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum MissingEntry {
    /// The words after a set of states.
    Row(u32),
    /// The extension of a list by an event.
    Extension(u32, u32),
    /// The least images of a list.
    Least(u32),
    /// The image of a set under an element of the group.
    Image(u32, u32),
}

/// The machine with its symmetries.
#[derive(Clone, Copy)]
pub(crate) struct Machine<'m> {
    pub(crate) interface: &'m Interface,
    pub(crate) reduced: &'m ReducedMachine,
    pub(crate) group: &'m SymmetryGroup,
}

/// The tables of lists and sets.
pub(crate) struct Tables<'m> {
    pub(crate) sets: StateSets<'m>,
    pub(crate) sequences: Sequences,
}

/// The histories of a chunk, and what their extension yields.
struct Chunk<const P: usize> {
    /// The histories that wait.
    waiting: Vec<Entry<P>>,
    missing: Vec<MissingEntry>,
    /// For each number of levels between a history and its extensions, and each shard.
    extensions: Vec<Vec<Entry<P>>>,
    facts: ExpansionFacts,
}

/// Facts about the histories of a level that no extension contains.
#[derive(Default)]
pub(crate) struct ExpansionFacts {
    /// Number of histories.
    pub(crate) visited: u64,
    /// Number of histories with an unfinished operation after which the machine can do nothing.
    pub(crate) stuck: u64,
    /// The least number of an operation that never occurs although one with a greater number does.
    pub(crate) gap: Option<u64>,
    /// Events that begin operations within the bound.
    pub(crate) begin_events: FixedBitSet,
    /// Programs of histories that are stuck.
    pub(crate) nonterminating: Vec<History>,
}

impl ExpansionFacts {
    fn add(&mut self, mut other: ExpansionFacts) {
        self.visited += other.visited;
        self.stuck += other.stuck;
        self.gap = self.gap.into_iter().chain(other.gap).min();
        self.begin_events.union_with(&other.begin_events);
        self.nonterminating.append(&mut other.nonterminating);
    }
}

/// Working memory of a thread.
struct Scratch<const P: usize> {
    extensions: Vec<(usize, Entry<P>)>,
    elements: Vec<u32>,
    unions: AHashMap<(u32, u32), u32>,
}

/// Expansion of the levels of a search.
pub(crate) struct Expansion<'m, const P: usize> {
    machine: Machine<'m>,
    /// The different numbers of levels between a history and the history extended by a word.
    weights: Vec<usize>,
    /// For each word its place in `weights`.
    weight_of: Vec<usize>,
    /// True if some operation with one label has a number.
    is_numbered: bool,
    scratch: Vec<Scratch<P>>,
}

/// True if all that a program determines about the operation is known: it has begun, and has its
/// address and the value that it stores.
fn is_known(interface: &Interface, e: &SequenceEntry) -> bool {
    let kind = interface.operations[e.operation as usize].kind;
    let stored = match kind {
        EventKind::Write => e.value,
        EventKind::Update => e.written,
        _ => Some(0),
    };
    e.state != State::Missing
        && stored.is_some()
        && (kind == EventKind::Fence || e.address.is_some())
}

impl<'m, const P: usize> Expansion<'m, P> {
    pub(crate) fn new(machine: Machine<'m>, threads: usize) -> Self {
        let alphabet = &machine.reduced.alphabet;
        let weight = |word: &Vec<u32>| {
            let phases = word.iter().map(|&e| alphabet.events[e as usize].phase);
            phases.map(|p| if p == Phase::Whole { 2 } else { 1 }).sum()
        };
        let of: Vec<usize> = alphabet.words.iter().map(weight).collect();
        let mut weights = of.clone();
        weights.sort_unstable();
        weights.dedup();
        let place = |w: &usize| weights.iter().position(|v| v == w).unwrap_or_default();
        let scratch =
            || Scratch { extensions: Vec::new(), elements: Vec::new(), unions: AHashMap::new() };
        Expansion {
            machine,
            weight_of: of.iter().map(place).collect(),
            weights,
            is_numbered: alphabet
                .events
                .iter()
                .any(|e| e.phase == Phase::Whole && e.number.is_some()),
            scratch: (0..threads.max(1)).map(|_| scratch()).collect(),
        }
    }

    fn processors(&self) -> usize {
        self.machine.reduced.alphabet.names.processors.len()
    }

    /// True if nothing can follow a history within the bound, and nothing about it depends on the
    /// set of states after it.
    fn is_last(&self, sequences: &Sequences, history: &Lists<P>) -> bool {
        !self.is_numbered && history[..self.processors()].iter().all(|&l| sequences.is_full(l))
    }

    /// Adds the histories that extend those of a level to the following levels.
    pub(crate) fn expand(
        &mut self,
        tables: &mut Tables<'m>,
        level: &[Entry<P>],
        levels: &mut VecDeque<Level<P>>,
        visited: u64,
        budget: &Budget,
    ) -> Result<ExpansionFacts, Diagnostic> {
        let mut facts = ExpansionFacts::default();
        let (mut from, mut size) = (0, CHUNK * CHUNKS);
        while from < level.len() {
            budget
                .check(visited + facts.visited)
                .and_then(|()| budget.check_memory())
                .map_err(Diagnostic::stopped)?;
            let block = &level[from..level.len().min(from + size)];
            from += block.len();
            let mut chunks: Vec<Chunk<P>> = block
                .chunks(CHUNK)
                .map(|histories| Chunk {
                    waiting: histories.to_vec(),
                    missing: Vec::new(),
                    extensions: vec![Vec::new(); self.weights.len() * SHARDS],
                    facts: ExpansionFacts::default(),
                })
                .collect();
            let threads = if level.len() < PARALLEL { 1 } else { self.scratch.len() };
            loop {
                self.extend(tables, &mut chunks, threads);
                if chunks.iter().all(|c| c.missing.is_empty()) {
                    break;
                }
                self.compute(tables, &mut chunks, threads, budget)?;
            }
            self.merge(tables, &chunks, levels, threads);
            let extensions: usize =
                chunks.iter().flat_map(|c| c.extensions.iter().map(Vec::len)).sum();
            if extensions > EXTENSION_LIMIT {
                size = (size / 2).max(CHUNK);
            }
            chunks.into_iter().for_each(|c| facts.add(c.facts));
        }
        Ok(facts)
    }

    /// Extends the waiting histories of all chunks, as far as the tables suffice.
    fn extend(&mut self, tables: &Tables<'m>, chunks: &mut [Chunk<P>], threads: usize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let this = &*self;
        let (sets, sequences) = (&tables.sets, &tables.sequences);
        for_each(&mut scratch[..threads], chunks.iter_mut(), |scratch, chunk| {
            let mut waiting = std::mem::take(&mut chunk.waiting);
            waiting.retain(|entry| !this.extend_one(sets, sequences, entry, chunk, scratch));
            chunk.waiting = waiting;
        });
        self.scratch = scratch;
    }

    /// Adds the extensions of a history to its chunk; false if an entry of a table is missing.
    fn extend_one(
        &self,
        sets: &StateSets<'m>,
        sequences: &Sequences,
        (history, set): &Entry<P>,
        chunk: &mut Chunk<P>,
        scratch: &mut Scratch<P>,
    ) -> bool {
        if self.is_last(sequences, history) {
            chunk.facts.visited += 1;
            return true;
        }
        let Some(row) = sets.row(*set) else {
            chunk.missing.push(MissingEntry::Row(*set));
            return false;
        };
        let alphabet = &self.machine.reduced.alphabet;
        let known = chunk.missing.len();
        scratch.extensions.clear();
        let (mut followed, mut completed, mut beyond) = (false, false, None);
        for &(word, after) in row.iter() {
            let mut next = *history;
            let (mut within, mut complete) = (true, true);
            for &e in &alphabet.words[word as usize] {
                let event = &alphabet.events[e as usize];
                let place = &mut next[event.processor as usize];
                match sequences.cached_extension(*place, e) {
                    Some(Some(list)) => *place = list,
                    Some(None) => {
                        within = false;
                        let missing = sequences.missing_before(*place, event, MISSING_LIMIT + 1);
                        if sets.completes(after, event.processor, &missing) {
                            completed = true;
                        } else {
                            beyond = beyond.or(missing.first().copied());
                        }
                    }
                    None => {
                        complete = false;
                        chunk.missing.push(MissingEntry::Extension(*place, e));
                    }
                }
            }
            if within && complete {
                followed = true;
                let begins = alphabet.words[word as usize].iter().map(|e| *e as usize);
                for e in begins.filter(|e| alphabet.events[*e].phase == Phase::Begin) {
                    chunk.facts.begin_events.grow_and_insert(e);
                }
                self.add_least((sets, sequences), word, (next, after), &mut chunk.missing, scratch);
            }
        }
        if chunk.missing.len() > known {
            return false;
        }
        for (at, entry) in scratch.extensions.drain(..) {
            chunk.extensions[at].push(entry);
        }
        let facts = &mut chunk.facts;
        facts.visited += 1;
        let lists = &history[..self.processors()];
        let gap = beyond.or_else(|| {
            let ended = !followed && !completed;
            lists.iter().find_map(|&s| sequences.gap(s)).filter(|_| ended)
        });
        if gap.is_some() {
            facts.gap = facts.gap.into_iter().chain(gap).min();
        } else if !followed && !lists.iter().all(|&s| sequences.is_done(s)) {
            facts.stuck += 1;
            let lists: Vec<&[SequenceEntry]> = lists.iter().map(|&s| sequences.get(s)).collect();
            let interface = self.machine.interface;
            if lists.iter().flat_map(|l| l.iter()).all(|e| is_known(interface, e)) {
                facts.nonterminating.push(judge::history(interface, &lists).program());
            }
        }
        true
    }

    /// Adds an extension of a history: its least image, with the images of its set under all
    /// elements that lead to it.
    fn add_least(
        &self,
        (sets, sequences): (&StateSets<'m>, &Sequences),
        word: u32,
        (history, set): Entry<P>,
        missing: &mut Vec<MissingEntry>,
        scratch: &mut Scratch<P>,
    ) {
        let group = self.machine.group;
        let least = match least_image(sequences, group, &history, &mut scratch.elements) {
            Ok(least) => least,
            Err(list) => return missing.push(MissingEntry::Least(list)),
        };
        let at = self.weight_of[word as usize] * SHARDS + shard_of(&least);
        if self.is_last(sequences, &history) {
            scratch.extensions.push((at, (least, 0)));
            return;
        }
        for &g in &scratch.elements {
            match sets.known_image(g, set) {
                Some(image) => scratch.extensions.push((at, (least, image))),
                None => missing.push(MissingEntry::Image(g, set)),
            }
        }
    }

    /// Adds the missing entries of all chunks to the tables.
    fn compute(
        &mut self,
        tables: &mut Tables<'m>,
        chunks: &mut [Chunk<P>],
        threads: usize,
        budget: &Budget,
    ) -> Result<(), Diagnostic> {
        let Machine { interface, reduced, group } = self.machine;
        let mut known = AHashSet::new();
        let missing = chunks.iter_mut().flat_map(|c| c.missing.drain(..));
        let missing: Vec<MissingEntry> = missing.filter(|m| known.insert(*m)).collect();
        let mut rows = Vec::new();
        for m in missing {
            match m {
                MissingEntry::Row(set) => rows.push(set),
                MissingEntry::Extension(list, e) => {
                    let event = &reduced.alphabet.events[e as usize];
                    let line = &interface.operations[event.operation as usize];
                    tables
                        .sequences
                        .extend(list, e, event)
                        .map_err(|d| d.or_span(line.end.span))?;
                }
                MissingEntry::Least(list) => tables.sequences.compute_least(group, list),
                MissingEntry::Image(g, set) => {
                    tables.sets.image(g, set);
                }
            }
        }
        for rows in rows.chunks(ROWS) {
            budget.check(0).and_then(|()| budget.check_memory()).map_err(Diagnostic::stopped)?;
            let mut found: Vec<(u32, Successors)> = rows.iter().map(|r| (*r, Vec::new())).collect();
            let (sets, threads) = (&tables.sets, if rows.len() < 16 { 1 } else { threads });
            for_each(&mut self.scratch[..threads], found.iter_mut(), |_, (set, successors)| {
                *successors = sets.successors(*set);
            });
            found.into_iter().for_each(|(set, successors)| tables.sets.set_row(set, successors));
        }
        Ok(())
    }

    /// Adds the extensions of all chunks to the following levels.
    fn merge(
        &mut self,
        tables: &mut Tables<'m>,
        chunks: &[Chunk<P>],
        levels: &mut VecDeque<Level<P>>,
        threads: usize,
    ) {
        let ahead = self.weights.last().copied().unwrap_or_default();
        levels.resize_with(levels.len().max(ahead), Level::new);
        let sets = Mutex::new(&mut tables.sets);
        let weights = &self.weights;
        let levels = levels.iter_mut().zip(1usize..);
        let shards = levels
            .filter_map(|(level, ahead)| Some((level, weights.iter().position(|w| *w == ahead)?)))
            .flat_map(|(level, at)| level.shards.iter_mut().zip(at * SHARDS..));
        for_each(&mut self.scratch[..threads], shards, |scratch, (shard, at)| {
            for entry in chunks.iter().flat_map(|c| &c.extensions[at]) {
                shard.add(*entry, |a, b| {
                    if a == b {
                        return a;
                    }
                    *scratch.unions.entry((a.min(b), a.max(b))).or_insert_with(|| {
                        sets.lock().unwrap_or_else(PoisonError::into_inner).union(a, b)
                    })
                });
            }
        });
    }
}

/// Returns the least image of a history under a group, with the elements that lead to it. Error: a
/// list without computed least images.
pub(crate) fn least_image<const P: usize>(
    sequences: &Sequences,
    group: &SymmetryGroup,
    lists: &Lists<P>,
    to_least: &mut Vec<u32>,
) -> Result<Lists<P>, u32> {
    to_least.clear();
    if group.elements.len() == 1 {
        to_least.push(0);
        return Ok(*lists);
    }
    // The least list comes first; few elements lead to it.
    let processors = group.elements[0].processors.len();
    let mut first = u32::MAX;
    for (p, &list) in lists[..processors].iter().enumerate() {
        first = first.min(sequences.least(p, list).ok_or(list)?.image);
    }
    let mut least = [u32::MAX; P];
    for (p, &list) in lists[..processors].iter().enumerate() {
        let candidates = sequences.least(p, list).filter(|l| l.image == first);
        for &g in candidates.map_or(&[][..], |l| l.elements) {
            let element = &group.elements[g as usize];
            let mut image = [0; P];
            for (&to, &list) in element.processors.iter().zip(lists) {
                image[to as usize] = sequences.known_image(g, list);
            }
            if image < least {
                least = image;
                to_least.clear();
            }
            if image == least {
                to_least.push(g);
            }
        }
    }
    Ok(least)
}
