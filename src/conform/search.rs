//! Enumeration of all histories of a machine by the number of their operations, with the verdicts
//! of memory models.
//!
//! Input: a [`Machine`], its symmetries, memory models. Output: for each model a smallest history
//! that it forbids, if there is one.
//!
//! A level holds the histories with the same number of beginnings and ends of operations (an
//! operation with one label counts as both). Each has the set of states of the machine after it.
//! This set is the union, over the last events of the history, of the successors by the event of
//! the set before it; all of these are on earlier levels. Sets are interned; successors, unions and
//! images of sets are computed once. Under the machine's symmetries, each orbit is represented by
//! its least history. The set of the representative is the union of the images of the set under all
//! group elements that lead to it.
//!
//! Histories in which all operations have ended are judged, once for each class under the
//! symmetries of memory models. A model that has forbidden a history does not judge larger ones.
//! Cost: for each stored history, the number of words that can follow it times the order of the
//! group. Invariant: the answer depends neither on threads nor on the order of hash tables.

use crate::alphabet::{Alphabet, Phase};
use crate::interface::Interface;
use crate::judge::{self, MemoryModel};
use crate::machine::Machine;
use crate::sequences::{Begin, Entry, Sequences, State};
use crate::symmetry::Group;
use ahash::{AHashMap, AHashSet};
use fixedbitset::FixedBitSet;
use mu_axioms::Kind;
use mu_axioms::history::History;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A history of the machine that a model forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The history in canonical form.
    pub history: History,
    /// The operations of each processor, in the names of the machine.
    pub concrete: Vec<Vec<Entry>>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// For each model: a smallest history of the machine that it forbids.
    pub found: Vec<Option<Violation>>,
    /// Programs of judged histories, up to the symmetries of memory models.
    pub programs: AHashSet<History>,
    /// Number of histories judged, up to the same symmetries.
    pub histories: u64,
    /// Number of all histories, including unfinished ones, up to the symmetries of the machine.
    pub visited: u64,
    /// Number of sets of states of the machine.
    pub sets: u64,
    /// The largest number of operations of one processor in a judged history.
    pub longest: usize,
    /// All histories with at most this number of operations, over all processors, were judged;
    /// `None`: all histories within the bound.
    pub complete: Option<usize>,
    /// Number of histories with an unfinished operation after which the machine can do nothing
    /// within the bound.
    pub stuck: u64,
    /// True if some judged history contains a load.
    pub reads: bool,
    /// Ids of begin events that no end follows in any history.
    pub unfinished: Vec<u32>,
    /// Programs that begin and have no execution that ends.
    pub nonterminating: AHashSet<History>,
    /// The number of an operation that never occurs although one with a greater number does.
    pub gap: Option<u64>,
    /// The stop reason.
    pub stop: Stop,
    /// The judged histories in order, up to [`Bound::collect`].
    pub judged_histories: Vec<History>,
}

/// True if all that a program determines about the operation is known: it has begun, and has its
/// address and the value that it stores.
fn is_known(interface: &Interface, e: &Entry) -> bool {
    let kind = interface.operations[e.operation as usize].kind;
    let stored = match kind {
        Kind::Write => e.value,
        Kind::Update => e.written,
        _ => Some(0),
    };
    e.state != State::Missing && stored.is_some() && (kind == Kind::Fence || e.address.is_some())
}

/// Most numbers that may be missing before an operation beyond the bound; with more, the numbers
/// have a gap.
const MISSING_LIMIT: usize = 16;
/// Most states, with the numbers found, in the search for missing numbers; beyond it they count as
/// a gap.
const COMPLETION_LIMIT: usize = 100_000;

/// Interned sets of states, closed under internal steps.
struct StateSets<'m> {
    machine: &'m Machine,
    group: &'m Group,
    lists: Vec<Vec<u32>>,
    ids: AHashMap<Vec<u32>, u32>,
    rows: AHashMap<u32, Vec<(u32, u32)>>,
    unions: AHashMap<(u32, u32), u32>,
    images: AHashMap<(u32, u32), u32>,
}

impl<'m> StateSets<'m> {
    fn new(machine: &'m Machine, group: &'m Group) -> Self {
        let (rows, unions, images) = (AHashMap::new(), AHashMap::new(), AHashMap::new());
        Self { machine, group, lists: Vec::new(), ids: AHashMap::new(), rows, unions, images }
    }
    fn intern(&mut self, mut list: Vec<u32>) -> u32 {
        list.sort_unstable();
        list.dedup();
        let next = self.lists.len() as u32;
        let id = *self.ids.entry(list.clone()).or_insert(next);
        if id == next {
            self.lists.push(list);
        }
        id
    }
    fn closed(&mut self, states: Vec<u32>) -> u32 {
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
        self.intern(visited.into_iter().collect())
    }
    /// Returns the words that can follow, in order, each with the set after it.
    fn row(&mut self, id: u32) -> Vec<(u32, u32)> {
        if let Some(row) = self.rows.get(&id) {
            return row.clone();
        }
        let mut by: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
        for &s in &self.lists[id as usize] {
            for (l, t) in
                self.machine.lts.successors(StateId::of(s)).filter(|(l, _)| *l != LabelId::TAU)
            {
                by.entry(l.number() - 1).or_default().push(t.number());
            }
        }
        let row: Vec<(u32, u32)> =
            by.into_iter().map(|(word, states)| (word, self.closed(states))).collect();
        self.rows.insert(id, row.clone());
        row
    }
    /// True if some run from a set has all these numbers of a processor's operations. False if
    /// there are more than [`MISSING_LIMIT`], or none is found among [`COMPLETION_LIMIT`] states.
    fn completes(&self, id: u32, processor: u32, numbers: &[u64]) -> bool {
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
    fn union(&mut self, a: u32, b: u32) -> u32 {
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
    fn image(&mut self, element: u32, id: u32) -> u32 {
        if element == 0 {
            return id;
        }
        if let Some(known) = self.images.get(&(element, id)) {
            return *known;
        }
        let states = &self.group.elements[element as usize].states;
        let list = self.lists[id as usize].iter().map(|&s| states[s as usize]).collect();
        let image = self.intern(list);
        self.images.insert((element, id), image);
        image
    }
}

/// Histories (a list of operations per processor), each with the set of states after it.
type Level = AHashMap<Vec<u32>, u32>;

struct HistorySearch<'m> {
    interface: &'m Interface,
    machine: &'m Machine,
    group: &'m Group,
    sets: StateSets<'m>,
    sequences: Sequences,
    /// The current level and the following ones.
    levels: VecDeque<Level>,
    /// For each word, the number of levels between a history and the history extended by it.
    weights: Vec<usize>,
    /// Events that begin operations within the bound.
    begin_events: FixedBitSet,
    answer: SearchResult,
}

/// The bound of a search.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The largest number of operations of a processor.
    pub operations: usize,
    /// Number of threads that judge histories.
    pub threads: usize,
    /// Judged histories of at most this number of operations of each processor are returned.
    pub collect: usize,
    /// True if the search ends with the first level in which a model forbids a history.
    pub first: bool,
}

impl Bound {
    /// Returns the bound of all histories up to this number of operations per processor.
    pub fn of(operations: usize, threads: usize) -> Bound {
        Bound { operations, threads, collect: 0, first: false }
    }
}

/// Enumerates and judges the histories within a bound.
pub fn search<'m>(
    interface: &'m Interface,
    machine: &'m Machine,
    group: &'m Group,
    models: &[&MemoryModel],
    bound: Bound,
    budget: &Budget,
) -> Result<SearchResult, Diagnostic> {
    let weight = |word: &Vec<u32>| {
        let events = word.iter().map(|&e| machine.alphabet.events[e as usize].phase);
        events.map(|p| if p == Phase::Whole { 2 } else { 1 }).sum()
    };
    let answer = SearchResult {
        found: vec![None; models.len()],
        programs: AHashSet::new(),
        histories: 0,
        visited: 0,
        sets: 0,
        longest: 0,
        complete: None,
        stuck: 0,
        reads: false,
        unfinished: Vec::new(),
        nonterminating: AHashSet::new(),
        gap: None,
        stop: machine.outcome.stop.clone(),
        judged_histories: Vec::new(),
    };
    let mut search = HistorySearch {
        interface,
        machine,
        group,
        sets: StateSets::new(machine, group),
        sequences: Sequences::new(bound.operations, interface.first),
        levels: VecDeque::new(),
        weights: machine.alphabet.words.iter().map(weight).collect(),
        begin_events: FixedBitSet::with_capacity(machine.alphabet.events.len()),
        answer,
    };
    let start = search.sets.closed(vec![machine.lts.initial.number()]);
    let none = vec![0; machine.alphabet.names.processors.len()];
    search.levels.push_back([(none, start)].into_iter().collect());
    let mut size = 0usize;
    while let Some(level) = search.levels.pop_front() {
        let mut level: Vec<(Vec<u32>, u32)> = level.into_iter().collect();
        level.sort_unstable();
        let judged = search.finished(&level)?;
        let small = |h: &History| h.threads.iter().all(|t| t.len() <= bound.collect);
        let returned = judged.iter().filter(|j| small(&j.0)).map(|j| j.0.clone());
        search.answer.judged_histories.extend(returned);
        let step = search
            .judge(&judged, models, bound.threads, budget)
            .and_then(|()| search.expand(&level, budget));
        match step {
            Err(Diagnostic { stop: Some(stop), .. }) => {
                search.answer.stop = stop;
                search.answer.complete = Some(size.saturating_sub(1) / 2);
                break;
            }
            other => other?,
        }
        let found = search.answer.found.iter().filter(|f| f.is_some()).count();
        if found > 0 && (bound.first || found == models.len()) {
            search.answer.complete = Some(size / 2);
            break;
        }
        size += 1;
    }
    search.answer.sets = search.sets.lists.len() as u64;
    search.answer.unfinished = search.unfinished();
    let SearchResult { nonterminating, programs, .. } = &mut search.answer;
    nonterminating.retain(|p| !programs.contains(p));
    Ok(search.answer)
}

impl SearchResult {
    /// Counts the judged programs by their number of operations, from 0.
    pub fn lengths(&self) -> Vec<u64> {
        let mut out = Vec::new();
        for program in &self.programs {
            let n = program.len();
            out.resize(out.len().max(n + 1), 0);
            out[n] += 1;
        }
        out
    }
    /// Returns the reason why the verdict "conforms" would be vacuous or too strong: no judged
    /// history could be forbidden, or some operations or programs never end. `None` if there is no
    /// such reason.
    pub fn unjudged(&self, interface: &Interface, alphabet: &Alphabet) -> Option<String> {
        if let Some(number) = self.gap {
            return Some(format!(
                "within the bound a processor never performs the operation with number {number}, but performs one with a greater number: the program order is incomplete"
            ));
        }
        if self.programs.is_empty() {
            return Some(
                "no program of the machine terminates within the bound, so no execution was judged"
                    .into(),
            );
        }
        if let Some(&first) = self.unfinished.first() {
            let (event, n) = (&alphabet.events[first as usize], self.unfinished.len());
            let line = &interface.operations[event.operation as usize];
            let more = if n == 1 { String::new() } else { format!(", nor do {} others", n - 1) };
            return Some(format!(
                "the {} that `{}` begins never ends{more}",
                line.name(),
                alphabet.event_text(interface, event)
            ));
        }
        if !self.reads {
            return Some(
                "no program that was judged loads a value, so no memory model forbids anything"
                    .into(),
            );
        }
        let least = self.nonterminating.iter().min_by_key(|p| (p.len(), (*p).clone()))?;
        let all = if self.nonterminating.len() == 1 {
            "a program begins and never terminates".into()
        } else {
            format!("{} programs begin and never terminate", self.nonterminating.len())
        };
        Some(format!("{all}: {}", least.program_text()))
    }
}

impl HistorySearch<'_> {
    /// Returns the histories of a level in which all operations have ended, one for each class, in
    /// order.
    fn finished(
        &mut self,
        level: &[(Vec<u32>, u32)],
    ) -> Result<Vec<(History, Vec<u32>)>, Diagnostic> {
        let mut classes: AHashMap<History, &Vec<u32>> = AHashMap::new();
        for (history, _) in level {
            if history.iter().all(|&s| s == 0)
                || !history.iter().all(|&s| self.sequences.is_done(s))
            {
                continue;
            }
            let lists: Vec<&[Entry]> = history.iter().map(|&s| self.sequences.get(s)).collect();
            self.answer.longest =
                self.answer.longest.max(lists.iter().map(|l| l.len()).max().unwrap_or(0));
            let named = judge::history(self.interface, &lists);
            judge::check_dependencies(self.interface, &named)?;
            self.answer.programs.insert(named.program());
            self.answer.reads |= named.threads.iter().flatten().any(|o| o.kind.reads());
            classes.entry(named.canonical()).or_insert(history);
        }
        let mut all: Vec<(History, Vec<u32>)> =
            classes.into_iter().map(|(h, c)| (h, c.clone())).collect();
        all.sort_unstable();
        self.answer.histories += all.len() as u64;
        Ok(all)
    }
    /// Judges the histories by all models that have not forbidden one yet.
    fn judge(
        &mut self,
        all: &[(History, Vec<u32>)],
        models: &[&MemoryModel],
        threads: usize,
        budget: &Budget,
    ) -> Result<(), Diagnostic> {
        let open: Vec<usize> =
            (0..models.len()).filter(|&m| self.answer.found[m].is_none()).collect();
        let first: Vec<AtomicUsize> = open.iter().map(|_| AtomicUsize::new(all.len())).collect();
        let (next, halt, error) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
        let work = || {
            let mut workers: Vec<_> = open.iter().map(|&m| models[m].worker()).collect();
            while !halt.load(Ordering::Relaxed) {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some((history, _)) = all.get(i) else { break };
                let judged_one =
                    budget.check(i as u64).map_err(Diagnostic::stopped).and_then(|()| {
                        for (worker, first) in workers.iter_mut().zip(&first) {
                            if first.load(Ordering::Relaxed) > i && !worker.allows(history)? {
                                first.fetch_min(i, Ordering::Relaxed);
                            }
                        }
                        Ok(())
                    });
                if let Err(e) = judged_one {
                    error.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
                    halt.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(all.len() / 16).max(1) {
                scope.spawn(work);
            }
            work();
        });
        if let Some(e) = error.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(e);
        }
        for (m, first) in open.into_iter().zip(first) {
            let first = first.into_inner();
            if let Some((history, lists)) = all.get(first) {
                let concrete = lists.iter().map(|&s| self.sequences.get(s).to_vec()).collect();
                self.answer.found[m] = Some(Violation { history: history.clone(), concrete });
            }
        }
        Ok(())
    }
    /// Computes the histories that extend those of a level.
    fn expand(&mut self, level: &[(Vec<u32>, u32)], budget: &Budget) -> Result<(), Diagnostic> {
        let machine = self.machine;
        for (i, (history, set)) in level.iter().enumerate() {
            if i % 1024 == 0 {
                budget
                    .check(self.answer.visited)
                    .and_then(|()| budget.check_memory())
                    .map_err(Diagnostic::stopped)?;
            }
            self.answer.visited += 1;
            let (mut followed, mut completed, mut beyond) = (false, false, None);
            for (word, after) in self.sets.row(*set) {
                let mut next = history.clone();
                let mut within = true;
                for &e in &machine.alphabet.words[word as usize] {
                    let event = &machine.alphabet.events[e as usize];
                    let place = &mut next[event.processor as usize];
                    let line = &self.interface.operations[event.operation as usize];
                    match self
                        .sequences
                        .after(*place, e, event)
                        .map_err(|d| d.or_span(line.end.span))?
                    {
                        Some(list) => *place = list,
                        None => {
                            within = false;
                            let missing =
                                self.sequences.missing_before(*place, event, MISSING_LIMIT + 1);
                            if self.sets.completes(after, event.processor, &missing) {
                                completed = true;
                            } else {
                                beyond = beyond.or(missing.first().copied());
                            }
                        }
                    }
                }
                if within {
                    followed = true;
                    let begins = machine.alphabet.words[word as usize].iter().map(|e| *e as usize);
                    begins
                        .filter(|e| machine.alphabet.events[*e].phase == Phase::Begin)
                        .for_each(|e| self.begin_events.insert(e));
                    self.add_history(self.weights[word as usize], &next, after);
                }
            }
            let gap = beyond.or_else(|| {
                let ended = !followed && !completed;
                history.iter().find_map(|&s| self.sequences.gap(s)).filter(|_| ended)
            });
            if gap.is_some() {
                self.answer.gap = self.answer.gap.or(gap);
            } else if !followed && !history.iter().all(|&s| self.sequences.is_done(s)) {
                self.answer.stuck += 1;
                let lists: Vec<&[Entry]> = history.iter().map(|&s| self.sequences.get(s)).collect();
                if lists.iter().flat_map(|l| l.iter()).all(|e| is_known(self.interface, e)) {
                    self.answer
                        .nonterminating
                        .insert(judge::history(self.interface, &lists).program());
                }
            }
        }
        Ok(())
    }
    /// Collects the begin events that no end follows, up to the machine's symmetries.
    fn unfinished(&self) -> Vec<u32> {
        let mut ended: AHashSet<Begin> = AHashSet::new();
        for begin in self.sequences.ended() {
            for element in &self.group.elements {
                let value = |v: Option<u32>| v.map(|v| element.value(begin.address, v));
                ended.insert(Begin {
                    processor: element.processors[begin.processor as usize],
                    operation: begin.operation,
                    address: begin.address.map(|a| element.addresses[a as usize]),
                    value: value(begin.value),
                    written: value(begin.written),
                });
            }
        }
        let events = &self.machine.alphabet.events;
        self.begin_events
            .ones()
            .filter(|&e| !ended.contains(&Begin::of(&events[e])))
            .map(|e| e as u32)
            .collect()
    }
    /// Adds a history to a later level: its least image, with the union of the images of its set.
    fn add_history(&mut self, ahead: usize, history: &[u32], set: u32) {
        while self.levels.len() < ahead {
            self.levels.push_back(Level::new());
        }
        let mut least = history.to_vec();
        let mut to_least = vec![0u32];
        let mut image = vec![0; history.len()];
        for (g, element) in self.group.elements.iter().enumerate().skip(1) {
            for (p, &list) in history.iter().enumerate() {
                image[element.processors[p] as usize] =
                    self.sequences.image(g as u32, element, list);
            }
            match image.cmp(&least) {
                std::cmp::Ordering::Less => {
                    least.clone_from(&image);
                    to_least.clear();
                    to_least.push(g as u32);
                }
                std::cmp::Ordering::Equal => to_least.push(g as u32),
                std::cmp::Ordering::Greater => {}
            }
        }
        let mut after: Option<u32> = None;
        for g in to_least {
            let image = self.sets.image(g, set);
            after = Some(after.map_or(image, |a| self.sets.union(a, image)));
        }
        let after = after.unwrap_or(set);
        let known = self.levels[ahead - 1].get(&least).copied();
        let both = known.map_or(after, |k| self.sets.union(k, after));
        self.levels[ahead - 1].insert(least, both);
    }
}
