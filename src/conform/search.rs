//! Enumeration of all histories of a machine by the number of their operations, with the verdicts
//! of memory models.
//!
//! Input: a [`ReducedMachine`], its symmetries, memory models. Output: for each model a smallest
//! history that it forbids, if there is one.
//!
//! A level holds the histories with the same number of beginnings and ends of operations (an
//! operation with one label counts as both). Each has the set of states of the machine after it.
//! This set is the union, over the last events of the history, of the successors by the event of
//! the set before it; all of these are on earlier levels. Sets are interned; successors, unions and
//! images of sets are computed once. Under the machine's symmetries, each orbit is represented by
//! its least history. The set of the representative is the union of the images of the set under all
//! group elements that lead to it. Several threads expand a level (`expansion`).
//!
//! Histories in which all operations have ended are judged, once for each class under the
//! symmetries of memory models. A model that has forbidden a history does not judge larger ones.
//! Cost: for each stored history, the number of words that can follow it times the order of the
//! group. Invariant: the answer depends neither on threads nor on the order of hash tables.

use crate::alphabet::Alphabet;
use crate::cores::Cores;
use crate::expansion::{self, Expansion, Machine, Tables, least_image};
use crate::history_set::HistorySet;
use crate::interface::Interface;
use crate::judge::{self, MemoryModel};
use crate::level::{Entry, Level, Lists, SHARDS, shard_of};
use crate::list_cores::ListCores;
use crate::machine::ReducedMachine;
use crate::panel::Panel;
use crate::parallel::for_each;
use crate::programs::Programs;
use crate::sequences::{Begin, SequenceEntry, Sequences, State};
use crate::state_sets::StateSets;
use crate::symmetry::SymmetryGroup;
use ahash::AHashSet;
use fixedbitset::FixedBitSet;
use mu_axioms::history::{Dependencies, History};
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A history of the machine that a model forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The history in canonical form.
    pub history: History,
    /// The operations of each processor, in the names of the machine.
    pub concrete: Vec<Vec<SequenceEntry>>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// For each model: a smallest history of the machine that it forbids.
    pub found: Vec<Option<Violation>>,
    /// Programs of judged histories, up to the symmetries of memory models.
    pub programs: Programs,
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

/// Facts about a list of operations.
#[derive(Clone, Copy)]
struct ListFacts {
    /// The list without the values of loads.
    program: u32,
    reads: bool,
    done: bool,
    length: u32,
}

/// A history in canonical form that a model forbids, with its place in its level.
type Candidate = (History, usize);

struct HistorySearch<'m, const P: usize> {
    machine: Machine<'m>,
    tables: Tables<'m>,
    expansion: Expansion<'m, P>,
    /// Facts about each list, by id.
    facts: Vec<ListFacts>,
    /// Facts for the cores of histories; `None` if some operation of the machine has no rule.
    list_cores: Option<ListCores>,
    /// For each thread the cores that all open models allow.
    allowed: Vec<AHashSet<Lists<P>>>,
    /// Programs by the numbers of their lists, before their canonical forms are computed.
    programs_seen: AHashSet<Lists<P>>,
    /// The levels after the current one.
    levels: VecDeque<Level<P>>,
    /// Events that begin operations within the bound.
    begin_events: FixedBitSet,
    /// True if histories of one level are in different classes, because all renamings are
    /// symmetries of the machine.
    classes_differ: bool,
    threads: usize,
    answer: SearchResult,
}

/// Largest number of processors of a search.
const PROCESSOR_LIMIT: usize = 16;
/// Number of histories that a thread judges at a time.
const BATCH: usize = 256;
/// Limit on the number of cores that a thread stores; further ones are judged again.
const ALLOWED_LIMIT: usize = 8_000_000;
/// Number of histories of which a thread computes the programs at a time, and of those that are
/// computed before the programs are merged.
const PART: usize = 2048;
const BLOCK: usize = 64 * PART;

/// The bound of a search.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The largest number of operations of a processor.
    pub operations: usize,
    /// Number of threads that judge histories, for [`search`].
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

/// Enumerates and judges the histories within a bound. Error: more processors than are supported,
/// or a machine that contradicts its interface.
pub fn search<'m>(
    interface: &'m Interface,
    machine: &'m ReducedMachine,
    group: &'m SymmetryGroup,
    models: &[&MemoryModel],
    bound: Bound,
    budget: &Budget,
) -> Result<SearchResult, Diagnostic> {
    search_and_report((interface, machine, group), models, bound, budget, &mut |_, _| Ok(()))
}

/// Receives the position of a model and the violation of it that a search has found.
pub type OnViolation<'c> = &'c mut dyn FnMut(usize, &Violation) -> Result<(), Diagnostic>;

/// Enumerates and judges the histories within a bound, as [`search`]. `on_violation` is called when
/// a violation is found, long before a limit may end the search; its error ends the search, as a
/// limit if it is that of a limit.
pub fn search_and_report<'m>(
    input: (&'m Interface, &'m ReducedMachine, &'m SymmetryGroup),
    models: &[&MemoryModel],
    bound: Bound,
    budget: &Budget,
    on_violation: OnViolation<'_>,
) -> Result<SearchResult, Diagnostic> {
    let mut cores: Vec<Cores> = (0..bound.threads.max(1)).map(|_| Cores::default()).collect();
    search_with(input, models, (&mut cores, on_violation), bound, budget)
}

/// Enumerates and judges the histories within a bound, as [`search`]. `cores`: for each thread the
/// verdicts that are known from other searches; not empty. For `on_violation` see
/// [`search_and_report`].
pub fn search_with<'m>(
    input: (&'m Interface, &'m ReducedMachine, &'m SymmetryGroup),
    models: &[&MemoryModel],
    (cores, on_violation): (&mut [Cores], OnViolation<'_>),
    bound: Bound,
    budget: &Budget,
) -> Result<SearchResult, Diagnostic> {
    let parts = (cores, on_violation);
    match input.1.alphabet.names.processors.len() {
        0..=2 => HistorySearch::<2>::new(input, models, bound).run(models, parts, bound, budget),
        3 => HistorySearch::<3>::new(input, models, bound).run(models, parts, bound, budget),
        4 => HistorySearch::<4>::new(input, models, bound).run(models, parts, bound, budget),
        5..=PROCESSOR_LIMIT => HistorySearch::<PROCESSOR_LIMIT>::new(input, models, bound)
            .run(models, parts, bound, budget),
        n => Err(Diagnostic::new(
            Stage::Unsupported,
            format!("{n} processors: at most {PROCESSOR_LIMIT} are supported"),
        )),
    }
}

/// True if every renaming of processors, addresses, and values of each address is in the group.
fn has_all_renamings(machine: &ReducedMachine, group: &SymmetryGroup) -> bool {
    let names = &machine.alphabet.names;
    let factorial = |n: usize| (1..=n).try_fold(1usize, usize::checked_mul);
    let values = factorial(names.values.len().saturating_sub(1));
    let of_addresses =
        (0..names.addresses.len()).try_fold(1usize, |product, _| product.checked_mul(values?));
    let all = [factorial(names.processors.len()), factorial(names.addresses.len()), of_addresses];
    let order = all.into_iter().try_fold(1usize, |product, n| product.checked_mul(n?));
    order == Some(group.elements.len())
}

impl SearchResult {
    /// Counts the judged programs by their number of operations, from 0.
    pub fn lengths(&self) -> Vec<u64> {
        self.programs.lengths()
    }
    /// Returns the reason why the verdict "conforms" would be vacuous or too strong: no judged
    /// history could be forbidden, or some operations or programs never end. `None` if there is no
    /// such reason.
    pub fn unjudged_reason(&self, interface: &Interface, alphabet: &Alphabet) -> Option<String> {
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

impl<'m, const P: usize> HistorySearch<'m, P> {
    fn new(
        (interface, machine, group): (&'m Interface, &'m ReducedMachine, &'m SymmetryGroup),
        models: &[&MemoryModel],
        bound: Bound,
    ) -> Self {
        let answer = SearchResult {
            found: vec![None; models.len()],
            programs: Programs::new(machine.alphabet.names.processors.len()),
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
        let events = &machine.alphabet.events;
        let has_dependencies = events.iter().any(|e| e.depends != Dependencies::NONE);
        let threads = bound.threads.max(1);
        let parts = Machine { interface, reduced: machine, group };
        Self {
            machine: parts,
            tables: Tables {
                sets: StateSets::new(machine, group),
                sequences: Sequences::new(bound.operations, interface.first),
            },
            expansion: Expansion::new(parts, threads),
            facts: Vec::new(),
            list_cores: ListCores::of(interface, &machine.alphabet),
            allowed: vec![AHashSet::new(); threads],
            programs_seen: AHashSet::new(),
            levels: VecDeque::new(),
            begin_events: FixedBitSet::with_capacity(events.len()),
            classes_differ: !has_dependencies && has_all_renamings(machine, group),
            threads,
            answer,
        }
    }

    fn processors(&self) -> usize {
        self.machine.reduced.alphabet.names.processors.len()
    }

    fn run(
        mut self,
        models: &[&MemoryModel],
        (cores, on_violation): (&mut [Cores], OnViolation<'_>),
        bound: Bound,
        budget: &Budget,
    ) -> Result<SearchResult, Diagnostic> {
        let initial = self.machine.reduced.lts.initial.number();
        let start = self.tables.sets.intern_closure(vec![initial]);
        let mut first = Level::new();
        first.shards[shard_of(&[0; P])].add(([0; P], start), |known, _| known);
        self.levels.push_back(first);
        let mut size = 0usize;
        while let Some(level) = self.levels.pop_front() {
            let level = level.into_entries();
            let judged = self.finished_histories(&level)?;
            let known: Vec<bool> = self.answer.found.iter().map(Option::is_some).collect();
            let step = self
                .judge((&level, &judged), models, cores, budget)
                .and_then(|()| {
                    let mut new = (0..known.len()).filter(|&m| !known[m]);
                    new.try_for_each(|m| match &self.answer.found[m] {
                        Some(violation) => on_violation(m, violation),
                        None => Ok(()),
                    })
                })
                .and_then(|()| self.collect(&level, &judged, bound.collect))
                .and_then(|()| self.expand(&level, budget));
            match step {
                Err(Diagnostic { stop: Some(stop), .. }) => {
                    self.answer.stop = stop;
                    self.answer.complete = Some(size.saturating_sub(1) / 2);
                    break;
                }
                other => other?,
            }
            let found = self.answer.found.iter().filter(|f| f.is_some()).count();
            if found > 0 && (bound.first || found == models.len()) {
                self.answer.complete = Some(size / 2);
                break;
            }
            size += 1;
        }
        self.answer.sets = self.tables.sets.len() as u64;
        self.answer.unfinished = self.unfinished_begins();
        let SearchResult { nonterminating, programs, .. } = &mut self.answer;
        if programs.is_numbered() {
            let sequences = &self.tables.sequences;
            let operations = |l| judge::thread(self.machine.interface, sequences.get(l));
            let all = (0..narrow::index(sequences.count())).map(operations);
            programs.set_threads(all.collect());
        }
        if !nonterminating.is_empty() {
            for program in programs.iter() {
                nonterminating.remove(&program);
            }
        }
        Ok(self.answer)
    }

    /// Computes the facts about all lists, and the lists without values of loads.
    fn compute_facts(&mut self) {
        let Tables { sequences, .. } = &mut self.tables;
        let Machine { interface, group, .. } = self.machine;
        while self.facts.len() < sequences.count() {
            let entries = sequences.get(narrow::index(self.facts.len()));
            let reads = |e: &SequenceEntry| interface.operations[e.operation as usize].kind.reads();
            let facts = ListFacts {
                program: 0,
                reads: entries.iter().any(reads),
                done: entries.iter().all(|e| e.state == State::Done),
                length: narrow::index(entries.len()),
            };
            let program: Vec<SequenceEntry> = entries
                .iter()
                .map(|e| SequenceEntry { value: e.value.filter(|_| !reads(e)), ..*e })
                .collect();
            let program = sequences.intern(program);
            if self.classes_differ && facts.done {
                sequences.compute_least(group, program);
            }
            let list = narrow::index(self.facts.len());
            if let Some(cores) = &mut self.list_cores {
                cores.add(sequences, interface, list);
                if facts.done {
                    sequences.compute_least(group, list);
                }
            }
            self.facts.push(ListFacts { program, ..facts });
        }
    }

    /// Converts lists to a history in the names of the machine.
    fn history(&self, lists: &Lists<P>) -> History {
        history_of(self.machine.interface, &self.tables.sequences, self.processors(), lists)
    }

    /// Returns the places of the histories of a level in which all operations have ended, one for
    /// each class.
    fn finished_histories(&mut self, level: &[Entry<P>]) -> Result<Vec<u32>, Diagnostic> {
        self.compute_facts();
        let places = if self.classes_differ {
            self.finished_numbered(level)
        } else {
            self.finished_canonical(level)?
        };
        self.answer.histories += places.len() as u64;
        Ok(places)
    }

    /// Returns the facts about the lists of a history together, with its program; `None` if some
    /// operation has not ended, or there is none.
    fn finished_facts(&self, lists: &Lists<P>) -> Option<(ListFacts, Lists<P>)> {
        let mut program = [0; P];
        let mut all = ListFacts { program: 0, reads: false, done: true, length: 0 };
        for p in 0..self.processors() {
            let facts = self.facts[lists[p] as usize];
            program[p] = facts.program;
            all.done &= facts.done;
            all.length = all.length.max(facts.length);
            all.reads |= facts.reads;
        }
        (all.done && all.length > 0).then_some((all, program))
    }

    /// Returns the places of finished histories, and stores their programs by the numbers of their
    /// lists. Precondition: histories are in different classes.
    fn finished_numbered(&mut self, level: &[Entry<P>]) -> Vec<u32> {
        /// A part of the level.
        struct Part<const P: usize> {
            from: usize,
            places: Vec<u32>,
            programs: Vec<Vec<Entry<P>>>,
            longest: u32,
            reads: bool,
        }
        let threads = if level.len() < expansion::PARALLEL { 1 } else { self.threads };
        let mut scratch: Vec<Vec<u32>> = vec![Vec::new(); threads];
        let (mut places, mut programs) = (Vec::new(), Level::<P>::new());
        for (block, from) in level.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
            let mut parts: Vec<Part<P>> = (0..block.len())
                .step_by(PART)
                .map(|at| Part {
                    from: from + at,
                    places: Vec::new(),
                    programs: vec![Vec::new(); SHARDS],
                    longest: 0,
                    reads: false,
                })
                .collect();
            let this = &*self;
            for_each(&mut scratch, parts.iter_mut(), |elements, part| {
                let all = &level[part.from..level.len().min(part.from + PART)];
                for ((lists, _), place) in all.iter().zip(part.from..) {
                    let Some((facts, program)) = this.finished_facts(lists) else { continue };
                    part.longest = part.longest.max(facts.length);
                    part.reads |= facts.reads;
                    part.places.push(narrow::index(place));
                    let (sequences, group) = (&this.tables.sequences, this.machine.group);
                    let least = least_image(sequences, group, &program, elements)
                        .expect("least images of programs are computed with facts");
                    part.programs[shard_of(&least)].push((least, 0));
                }
            });
            for_each(&mut scratch, programs.shards.iter_mut().enumerate(), |_, (at, shard)| {
                for part in &parts {
                    part.programs[at].iter().for_each(|entry| shard.add(*entry, |set, _| set));
                }
            });
            for mut part in parts {
                places.append(&mut part.places);
                self.answer.longest = self.answer.longest.max(part.longest as usize);
                self.answer.reads |= part.reads;
            }
        }
        for (program, _) in programs.into_entries() {
            self.answer.programs.push(&program);
        }
        places
    }

    /// Returns the places of finished histories, one for each class, and stores the canonical forms
    /// of their programs.
    fn finished_canonical(&mut self, level: &[Entry<P>]) -> Result<Vec<u32>, Diagnostic> {
        let mut places = Vec::new();
        let mut classes = HistorySet::default();
        for (place, (lists, _)) in level.iter().enumerate() {
            let Some((facts, program)) = self.finished_facts(lists) else { continue };
            self.answer.longest = self.answer.longest.max(facts.length as usize);
            self.answer.reads |= facts.reads;
            let named = self.history(lists);
            judge::check_dependencies(self.machine.interface, &named)?;
            if self.programs_seen.insert(program) {
                self.answer.programs.insert(&named.program());
            }
            if classes.insert(&named.canonical()) {
                places.push(narrow::index(place));
            }
        }
        Ok(places)
    }

    /// Judges histories by all models that have not forbidden one yet.
    fn judge(
        &mut self,
        (level, judged): (&[Entry<P>], &[u32]),
        models: &[&MemoryModel],
        cores: &mut [Cores],
        budget: &Budget,
    ) -> Result<(), Diagnostic> {
        let found: Vec<bool> = self.answer.found.iter().map(Option::is_some).collect();
        if judged.is_empty() || found.iter().all(|f| *f) {
            return Ok(());
        }
        let least: Vec<Mutex<Option<Candidate>>> = found.iter().map(|_| Mutex::new(None)).collect();
        let (next, halt, error) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
        let (interface, sequences, processors) =
            (self.machine.interface, &self.tables.sequences, self.processors());
        let (list_cores, group) = (self.list_cores.as_ref(), self.machine.group);
        let work = |(cores, allowed): (&mut Cores, &mut AHashSet<Lists<P>>)| {
            let mut panel = Panel::new(models, cores, budget);
            let mut elements = Vec::new();
            while !halt.load(Ordering::Relaxed) {
                let from = next.fetch_add(BATCH, Ordering::Relaxed);
                let Some(batch) = judged.get(from..judged.len().min(from + BATCH)) else { break };
                if batch.is_empty() {
                    break;
                }
                let result = batch.iter().enumerate().try_for_each(|(i, &place)| {
                    budget.check((from + i) as u64).map_err(Diagnostic::stopped)?;
                    let place = place as usize;
                    let core = list_cores.map(|cores| {
                        let core = cores.core(&level[place].0);
                        least_image(sequences, group, &core, &mut elements)
                            .expect("least images of lists are computed with facts")
                    });
                    if core.is_some_and(|core| allowed.contains(&core)) {
                        return Ok(());
                    }
                    let history = history_of(interface, sequences, processors, &level[place].0);
                    let by_core = panel.judge(&history, &|m| !found[m], &mut |m| {
                        let candidate = (history.canonical(), place);
                        let mut least = least[m].lock().unwrap_or_else(|e| e.into_inner());
                        if least.as_ref().is_none_or(|l| candidate < *l) {
                            *least = Some(candidate);
                        }
                    })?;
                    if let Some(core) = core.filter(|_| by_core && allowed.len() < ALLOWED_LIMIT) {
                        allowed.insert(core);
                    }
                    Ok(())
                });
                if let Err(e) = result {
                    error.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
                    halt.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            let mut states = cores.iter_mut().zip(&mut self.allowed);
            let own = states.next();
            for state in states.take((judged.len() / 16).saturating_sub(1)) {
                scope.spawn(|| work(state));
            }
            own.into_iter().for_each(work);
        });
        if let Some(e) = error.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(e);
        }
        for (m, least) in least.into_iter().enumerate() {
            if let Some((history, place)) = least.into_inner().unwrap_or_else(|e| e.into_inner()) {
                let lists = &level[place].0[..processors];
                let concrete = lists.iter().map(|&s| sequences.get(s).to_vec()).collect();
                self.answer.found[m] = Some(Violation { history, concrete });
            }
        }
        Ok(())
    }

    /// Collects the judged histories with at most this number of operations of each processor.
    fn collect(
        &mut self,
        level: &[Entry<P>],
        judged: &[u32],
        longest: usize,
    ) -> Result<(), Diagnostic> {
        if longest == 0 {
            return Ok(());
        }
        let mut out = Vec::new();
        for &place in judged {
            let lists = &level[place as usize].0;
            let small = |&l: &u32| self.tables.sequences.get(l).len() <= longest;
            if lists[..self.processors()].iter().all(small) {
                out.push(self.history(lists).canonical());
            }
        }
        out.sort_unstable();
        self.answer.judged_histories.extend(out);
        Ok(())
    }

    /// Computes the histories that extend those of a level.
    fn expand(&mut self, level: &[Entry<P>], budget: &Budget) -> Result<(), Diagnostic> {
        let visited = self.answer.visited;
        let facts =
            self.expansion.expand(&mut self.tables, level, &mut self.levels, visited, budget)?;
        self.answer.visited += facts.visited;
        self.answer.stuck += facts.stuck;
        self.answer.gap = self.answer.gap.or(facts.gap);
        self.answer.nonterminating.extend(facts.nonterminating);
        self.begin_events.union_with(&facts.begin_events);
        Ok(())
    }
    /// Collects the begin events that no end follows, up to the machine's symmetries.
    fn unfinished_begins(&self) -> Vec<u32> {
        let mut ended: AHashSet<Begin> = AHashSet::new();
        for begin in self.tables.sequences.ended_begins() {
            for element in &self.machine.group.elements {
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
        let events = &self.machine.reduced.alphabet.events;
        self.begin_events
            .ones()
            .filter(|&e| !ended.contains(&Begin::of(&events[e])))
            .map(narrow::index)
            .collect()
    }
}

/// Converts lists of operations to a history in the names of the machine.
fn history_of<const P: usize>(
    interface: &Interface,
    sequences: &Sequences,
    processors: usize,
    lists: &Lists<P>,
) -> History {
    let mut entries: [&[SequenceEntry]; P] = [&[]; P];
    for p in 0..processors {
        entries[p] = sequences.get(lists[p]);
    }
    judge::history(interface, &entries[..processors])
}
