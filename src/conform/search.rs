//! All histories of a machine, by the number of their operations, and what memory models say of
//! them.
//!
//! In: a [`Machine`], its symmetries, memory models. Out: for each model the first history that it
//! forbids, which is a smallest one, or none.
//!
//! A level holds the histories with as many beginnings and ends of operations (an operation with
//! one label counts as both), each with the set of states of the machine after it. The set after a
//! history is the union, over its last events, of what the event makes of the set before; all of
//! these are on earlier levels. Sets are interned; what a word makes of a set, unions and images
//! are computed once. Under the machine's symmetries one history stands for its orbit: it is the
//! least of its images, and gets the images of its set under all elements of the group that lead to
//! it.
//!
//! Histories in which all operations have ended are judged, each class under the symmetries of
//! memory models once. A model that has forbidden one is not asked about larger ones. Cost: for
//! each history kept, the words that can follow it times the order of the group. Invariant: the
//! answer depends neither on threads nor on the order of hash tables.

use crate::alphabet::{Alphabet, Phase};
use crate::interface::Interface;
use crate::judge::{self, Against};
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

/// A history that a model forbids and the machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// In canonical form.
    pub history: History,
    /// In the names of the machine: what each processor does.
    pub concrete: Vec<Vec<Entry>>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// For each model: a smallest history of the machine that it forbids.
    pub found: Vec<Option<Found>>,
    /// Programs met, up to the symmetries of memory models.
    pub programs: AHashSet<History>,
    /// Histories judged, up to the same.
    pub histories: u64,
    /// Histories met in all, unfinished ones too, up to the symmetries of the machine.
    pub met: u64,
    /// Sets of states of the machine.
    pub sets: u64,
    /// Most operations of one processor in a history that was judged.
    pub longest: usize,
    /// Histories of so many operations, all processors together, were all judged; none: of any
    /// number within the bound.
    pub complete: Option<usize>,
    /// Histories with an operation that has begun, after which the machine can do nothing more
    /// within the bound.
    pub stuck: u64,
    /// True if some history that was judged loads a value.
    pub reads: bool,
    /// Beginnings of operations, by the number of their events, that no end follows in any
    /// history.
    pub unended: Vec<u32>,
    /// Programs that begin and have no execution that ends.
    pub endless: AHashSet<History>,
    /// The number of an operation that never comes although one with a greater number does.
    pub gap: Option<u64>,
    /// Why it ended.
    pub stop: Stop,
    /// The histories that were judged, in order, if they are to be kept.
    pub kept: Vec<History>,
}

/// True if an operation is known as far as a program tells it: it has begun, with its address and
/// what it stores.
fn is_known(interface: &Interface, e: &Entry) -> bool {
    let kind = interface.operations[e.operation as usize].kind;
    let stored = match kind {
        Kind::Write => e.value,
        Kind::Update => e.written,
        _ => Some(0),
    };
    e.state != State::Missing && stored.is_some() && (kind == Kind::Fence || e.address.is_some())
}

/// Interned sets of states, closed under internal steps.
struct Sets<'m> {
    machine: &'m Machine,
    group: &'m Group,
    lists: Vec<Vec<u32>>,
    ids: AHashMap<Vec<u32>, u32>,
    rows: AHashMap<u32, Vec<(u32, u32)>>,
    unions: AHashMap<(u32, u32), u32>,
    images: AHashMap<(u32, u32), u32>,
}

impl<'m> Sets<'m> {
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
        let mut met: AHashSet<u32> = states.iter().copied().collect();
        let mut open = states;
        while let Some(s) = open.pop() {
            for (_, t) in lts.successors(StateId(s)).filter(|(l, _)| *l == LabelId::TAU) {
                if met.insert(t.0) {
                    open.push(t.0);
                }
            }
        }
        self.intern(met.into_iter().collect())
    }
    /// The words that can follow, each with the set after it, in the order of words.
    fn row(&mut self, id: u32) -> Vec<(u32, u32)> {
        if let Some(row) = self.rows.get(&id) {
            return row.clone();
        }
        let mut by: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
        for &s in &self.lists[id as usize] {
            for (l, t) in
                self.machine.lts.successors(StateId(s)).filter(|(l, _)| *l != LabelId::TAU)
            {
                by.entry(l.0 - 1).or_default().push(t.0);
            }
        }
        let row: Vec<(u32, u32)> =
            by.into_iter().map(|(word, states)| (word, self.closed(states))).collect();
        self.rows.insert(id, row.clone());
        row
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

/// Lists of each processor's operations, and the set of states after them.
type Level = AHashMap<Vec<u32>, u32>;

struct Search<'m> {
    interface: &'m Interface,
    machine: &'m Machine,
    group: &'m Group,
    sets: Sets<'m>,
    sequences: Sequences,
    /// This level and the next ones.
    levels: VecDeque<Level>,
    /// How far ahead each word leads.
    weights: Vec<usize>,
    /// Events that begin operations within the bound.
    begun: FixedBitSet,
    answer: Answer,
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Most operations of a processor.
    pub operations: usize,
    /// Threads that judge.
    pub threads: usize,
    /// Whether all histories that are judged are kept.
    pub keep: bool,
    /// Whether to end with the level in which the first model forbids something.
    pub first: bool,
}

impl Bound {
    /// All histories up to so many operations of each processor.
    pub fn of(operations: usize, threads: usize) -> Bound {
        Bound { operations, threads, keep: false, first: false }
    }
}

/// Searches the histories within a bound.
pub fn search<'m>(
    interface: &'m Interface,
    machine: &'m Machine,
    group: &'m Group,
    models: &[&Against],
    bound: Bound,
    budget: &Budget,
) -> Result<Answer, Diagnostic> {
    let weight = |word: &Vec<u32>| {
        let events = word.iter().map(|&e| machine.alphabet.events[e as usize].phase);
        events.map(|p| if p == Phase::Whole { 2 } else { 1 }).sum()
    };
    let answer = Answer {
        found: vec![None; models.len()],
        programs: AHashSet::new(),
        histories: 0,
        met: 0,
        sets: 0,
        longest: 0,
        complete: None,
        stuck: 0,
        reads: false,
        unended: Vec::new(),
        endless: AHashSet::new(),
        gap: None,
        stop: machine.outcome.stop.clone(),
        kept: Vec::new(),
    };
    let mut search = Search {
        interface,
        machine,
        group,
        sets: Sets::new(machine, group),
        sequences: Sequences::new(bound.operations, interface.first),
        levels: VecDeque::new(),
        weights: machine.alphabet.words.iter().map(weight).collect(),
        begun: FixedBitSet::with_capacity(machine.alphabet.events.len()),
        answer,
    };
    let start = search.sets.closed(vec![machine.lts.initial.0]);
    let none = vec![0; machine.alphabet.names.processors.len()];
    search.levels.push_back([(none, start)].into_iter().collect());
    let mut size = 0usize;
    while let Some(level) = search.levels.pop_front() {
        let mut level: Vec<(Vec<u32>, u32)> = level.into_iter().collect();
        level.sort_unstable();
        let judged = search.finished(&level);
        if bound.keep {
            search.answer.kept.extend(judged.iter().map(|j| j.0.clone()));
        }
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
    search.answer.unended = search.unended();
    let Answer { endless, programs, .. } = &mut search.answer;
    endless.retain(|p| !programs.contains(p));
    Ok(search.answer)
}

impl Answer {
    /// Counts the judged programs by their number of operations; place 0 counts those with none.
    pub fn lengths(&self) -> Vec<u64> {
        let mut out = Vec::new();
        for program in &self.programs {
            let n = program.len();
            out.resize(out.len().max(n + 1), 0);
            out[n] += 1;
        }
        out
    }
    /// Returns the reason why "conforms" would say nothing, or too much: nothing that a model could
    /// forbid was judged, or some operations or programs never end. `None` if it says what it
    /// should.
    pub fn unjudged(&self, interface: &Interface, alphabet: &Alphabet) -> Option<String> {
        if let Some(number) = self.gap {
            return Some(format!(
                "within the bound a processor does no operation with the number {number}, and one with a greater number: its place is not known"
            ));
        }
        if self.programs.is_empty() {
            return Some(
                "no program of the machine ends within the bound, so no execution was judged"
                    .into(),
            );
        }
        if let Some(&first) = self.unended.first() {
            let (event, n) = (&alphabet.events[first as usize], self.unended.len());
            let line = &interface.operations[event.operation as usize];
            let more =
                if n == 1 { String::new() } else { format!(", and so it is with {} more", n - 1) };
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
        let least = self.endless.iter().min_by_key(|p| (p.len(), (*p).clone()))?;
        let all = if self.endless.len() == 1 {
            "a program begins and never ends".into()
        } else {
            format!("{} programs begin and never end", self.endless.len())
        };
        Some(format!("{all}: {}", least.program_text()))
    }
}

impl Search<'_> {
    /// The histories of a level in which all operations have ended, one of each class, in order.
    fn finished(&mut self, level: &[(Vec<u32>, u32)]) -> Vec<(History, Vec<u32>)> {
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
            self.answer.programs.insert(named.program());
            self.answer.reads |= named.threads.iter().flatten().any(|o| o.kind.reads());
            classes.entry(named.canonical()).or_insert(history);
        }
        let mut all: Vec<(History, Vec<u32>)> =
            classes.into_iter().map(|(h, c)| (h, c.clone())).collect();
        all.sort_unstable();
        self.answer.histories += all.len() as u64;
        all
    }
    /// Asks the models that have forbidden nothing yet.
    fn judge(
        &mut self,
        all: &[(History, Vec<u32>)],
        models: &[&Against],
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
                let asked = budget.check(i as u64).map_err(Diagnostic::stopped).and_then(|()| {
                    for (worker, first) in workers.iter_mut().zip(&first) {
                        if first.load(Ordering::Relaxed) > i && !worker.allows(history)? {
                            first.fetch_min(i, Ordering::Relaxed);
                        }
                    }
                    Ok(())
                });
                if let Err(e) = asked {
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
                self.answer.found[m] = Some(Found { history: history.clone(), concrete });
            }
        }
        Ok(())
    }
    /// What can follow the histories of a level.
    fn expand(&mut self, level: &[(Vec<u32>, u32)], budget: &Budget) -> Result<(), Diagnostic> {
        let machine = self.machine;
        for (i, (history, set)) in level.iter().enumerate() {
            if i % 1024 == 0 {
                budget
                    .check(self.answer.met)
                    .and_then(|()| budget.check_memory())
                    .map_err(Diagnostic::stopped)?;
            }
            self.answer.met += 1;
            let (mut followed, mut beyond) = (false, None);
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
                        .map_err(|d| d.placed(line.end.span))?
                    {
                        Some(list) => *place = list,
                        None => {
                            within = false;
                            beyond = beyond.or(self.sequences.gap_before(*place, event));
                        }
                    }
                }
                if within {
                    followed = true;
                    let begins = machine.alphabet.words[word as usize].iter().map(|e| *e as usize);
                    begins
                        .filter(|e| machine.alphabet.events[*e].phase == Phase::Begin)
                        .for_each(|e| self.begun.insert(e));
                    self.keep(self.weights[word as usize], &next, after);
                }
            }
            let gap = history
                .iter()
                .find_map(|&s| self.sequences.gap(s))
                .or(beyond)
                .filter(|_| !followed);
            if gap.is_some() {
                self.answer.gap = self.answer.gap.or(gap);
            } else if !followed && !history.iter().all(|&s| self.sequences.is_done(s)) {
                self.answer.stuck += 1;
                let lists: Vec<&[Entry]> = history.iter().map(|&s| self.sequences.get(s)).collect();
                if lists.iter().flat_map(|l| l.iter()).all(|e| is_known(self.interface, e)) {
                    self.answer.endless.insert(judge::history(self.interface, &lists).program());
                }
            }
        }
        Ok(())
    }
    /// Collects the beginnings that no end follows, up to the machine's symmetries.
    fn unended(&self) -> Vec<u32> {
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
        self.begun
            .ones()
            .filter(|&e| !ended.contains(&Begin::of(&events[e])))
            .map(|e| e as u32)
            .collect()
    }
    /// Adds a history to a level ahead: its least image, with the images of its set.
    fn keep(&mut self, ahead: usize, history: &[u32], set: u32) {
        while self.levels.len() < ahead {
            self.levels.push_back(Level::new());
        }
        let mut least = history.to_vec();
        let mut leading = vec![0u32];
        let mut image = vec![0; history.len()];
        for (g, element) in self.group.elements.iter().enumerate().skip(1) {
            for (p, &list) in history.iter().enumerate() {
                image[element.processors[p] as usize] =
                    self.sequences.image(g as u32, element, list);
            }
            match image.cmp(&least) {
                std::cmp::Ordering::Less => {
                    least.clone_from(&image);
                    leading.clear();
                    leading.push(g as u32);
                }
                std::cmp::Ordering::Equal => leading.push(g as u32),
                std::cmp::Ordering::Greater => {}
            }
        }
        let mut after: Option<u32> = None;
        for g in leading {
            let image = self.sets.image(g, set);
            after = Some(after.map_or(image, |a| self.sets.union(a, image)));
        }
        let after = after.unwrap_or(set);
        let known = self.levels[ahead - 1].get(&least).copied();
        let both = known.map_or(after, |k| self.sets.union(k, after));
        self.levels[ahead - 1].insert(least, both);
    }
}
