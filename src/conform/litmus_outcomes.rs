//! Outcomes of litmus tests on a machine, compared with those that a memory model allows.
//!
//! Input: a test, and the histories of a machine up to a number of operations, from one search.
//! Each candidate execution of the test is a history; the machine shows its outcome if it has that
//! history. So the machine is not run again for a test, and tests that differ only in names share
//! the result.
//!
//! A faulty machine may load a value that no store writes to the address. No candidate has such a
//! load. If the machine has such histories, the candidates of the test with a further processor
//! are compared too, without the operations of that processor: it stores values that the test does
//! not store there, as many as a history of the machine loads. Values have no names in histories,
//! so these are the values of the condition first, then other values of the test. An update may
//! also read the value that only it stores; then the further processor stores that value as well.

use crate::history_set::HistorySet;
use ahash::AHashSet;
use mu_axioms::history::{Dependencies, History, Operation};
use mu_axioms::models::{FenceSide, MemoryOrdering};
use mu_axioms::{EventKind, Execution, NameMeaning, RelationId};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_litmus::code::{Op, RegisterExpr, Thread};
use mu_litmus::condition::ObservedPlace;
use mu_litmus::paths::PathBounds;
use mu_litmus::{Arch, Judge, LitmusTest};
use std::collections::BTreeSet;

/// Reason why the machine cannot run a test, if its search was complete.
pub const NO_PROGRAM: &str = "the machine has no such program within the bound; the test may need \
     more processors, addresses, values or operations";

/// The behaviour of a machine, up to a number of operations of each processor.
pub struct Behaviour {
    programs: HistorySet,
    histories: AHashSet<History>,
    /// The largest number of values of a location that a history loads and does not store.
    unsourced: usize,
    /// True if an update of a history reads a value that only it stores.
    reads_itself: bool,
}

impl Behaviour {
    /// Creates the behaviour from the programs that a machine can execute, and its histories.
    pub fn new(programs: HistorySet, histories: AHashSet<History>) -> Self {
        let open = histories.iter().filter(|h| !h.is_sourced());
        let unsourced = open.map(unsourced_count).max().unwrap_or(0);
        let reads_itself = histories.iter().any(reads_itself);
        Behaviour { programs, histories, unsourced, reads_itself }
    }
    /// Returns the programs that the machine can execute.
    pub fn programs(&self) -> &HistorySet {
        &self.programs
    }
    /// Returns its histories.
    pub fn histories(&self) -> &AHashSet<History> {
        &self.histories
    }
}

/// Returns the largest number of values of a location that a history loads and does not store.
fn unsourced_count(history: &History) -> usize {
    let operations = || history.threads.iter().flatten();
    let mut stored: AHashSet<(u32, u64)> =
        operations().filter(|o| o.kind.writes()).map(|o| (o.location, o.value)).collect();
    let mut counts: Vec<usize> = Vec::new();
    for o in operations().filter(|o| o.kind.reads() && o.read_value() != 0) {
        if stored.insert((o.location, o.read_value())) {
            let location = o.location as usize;
            counts.resize(counts.len().max(location + 1), 0);
            counts[location] += 1;
        }
    }
    counts.into_iter().max().unwrap_or(0)
}

/// True if an update of a history reads a value that only it stores.
fn reads_itself(history: &History) -> bool {
    let operations = || history.threads.iter().flatten();
    operations().filter(|o| o.kind == EventKind::Update && o.read_value() == o.value).any(|o| {
        let stores = operations()
            .filter(|w| w.kind.writes() && (w.location, w.value) == (o.location, o.value));
        o.value != 0 && stores.count() == 1
    })
}

/// The outcomes of a test.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// The outcomes of the machine.
    pub shown: BTreeSet<Vec<u64>>,
    /// The outcomes that the model allows.
    pub allowed: BTreeSet<Vec<u64>>,
    /// Outcomes that the model allows only if an atomic instruction fails. They are not compared,
    /// because labels do not contain these.
    pub not_compared: BTreeSet<Vec<u64>>,
    /// The stop reason of their enumeration.
    pub stop: Option<Stop>,
}

/// The tags of a language's events that correspond to operations of machines.
struct LanguageTags {
    /// Fences, with the accesses that they order.
    fences: &'static [(&'static str, MemoryOrdering)],
    /// Loads that are acquires.
    acquire: &'static str,
    /// Stores that are releases.
    release: &'static str,
    /// Updates that are both; empty if their halves have separate tags.
    both: &'static str,
    /// The tag of a compare-and-exchange that fails, which orders as an update does; empty if it is
    /// a load.
    locked: &'static str,
    /// Tags that no machine operation has: other orders.
    unsupported: &'static [&'static str],
    /// True if dependencies order operations in the language.
    has_dependencies: bool,
}

const RISCV_FENCES: &[(&str, MemoryOrdering)] = &[
    ("Fence.rw.rw", MemoryOrdering::Plain),
    ("Fence.tso", MemoryOrdering::AcquireRelease),
    ("Fence.r.r", MemoryOrdering::Between(FenceSide::Reads, FenceSide::Reads)),
    ("Fence.r.w", MemoryOrdering::Between(FenceSide::Reads, FenceSide::Writes)),
    ("Fence.r.rw", MemoryOrdering::Between(FenceSide::Reads, FenceSide::All)),
    ("Fence.w.r", MemoryOrdering::Between(FenceSide::Writes, FenceSide::Reads)),
    ("Fence.w.w", MemoryOrdering::Between(FenceSide::Writes, FenceSide::Writes)),
    ("Fence.w.rw", MemoryOrdering::Between(FenceSide::Writes, FenceSide::All)),
    ("Fence.rw.r", MemoryOrdering::Between(FenceSide::All, FenceSide::Reads)),
    ("Fence.rw.w", MemoryOrdering::Between(FenceSide::All, FenceSide::Writes)),
];
const AARCH64_FENCES: &[(&str, MemoryOrdering)] = &[
    ("DMB.SY", MemoryOrdering::Plain),
    ("DMB.ISH", MemoryOrdering::Plain),
    ("DMB.LD", MemoryOrdering::Between(FenceSide::Reads, FenceSide::All)),
    ("DMB.ISHLD", MemoryOrdering::Between(FenceSide::Reads, FenceSide::All)),
    ("DMB.ST", MemoryOrdering::Between(FenceSide::Writes, FenceSide::Writes)),
    ("DMB.ISHST", MemoryOrdering::Between(FenceSide::Writes, FenceSide::Writes)),
];

fn tags_of(arch: Arch) -> Option<LanguageTags> {
    Some(match arch {
        Arch::X86 | Arch::X86_64 => LanguageTags {
            fences: &[
                ("MFENCE", MemoryOrdering::Plain),
                ("LFENCE", MemoryOrdering::Between(FenceSide::Reads, FenceSide::All)),
                ("SFENCE", MemoryOrdering::Between(FenceSide::Writes, FenceSide::Writes)),
            ],
            acquire: "",
            release: "",
            both: "",
            locked: "X",
            unsupported: &[],
            has_dependencies: false,
        },
        Arch::RiscV => LanguageTags {
            fences: RISCV_FENCES,
            acquire: "Acq",
            release: "Rel",
            both: "AcqRel",
            locked: "",
            unsupported: &["Sc", "Fence.i"],
            has_dependencies: true,
        },
        Arch::AArch64 => LanguageTags {
            fences: AARCH64_FENCES,
            acquire: "A",
            release: "L",
            both: "",
            locked: "",
            unsupported: &["Q", "NoRet", "ISB"],
            has_dependencies: true,
        },
        Arch::Power | Arch::Arm | Arch::C | Arch::Linux => return None,
    })
}

/// The events of one execution of a test, for the conversion to a history.
struct Events<'e> {
    tags: &'e LanguageTags,
    judge: &'e Judge,
    execution: &'e Execution<'e>,
    /// The number of processors of the test; a further one is left out of the history.
    processors: usize,
}

impl Events<'_> {
    fn has_tag(&self, e: usize, name: &str) -> bool {
        match self.judge.model.vocabulary().find(name) {
            Some(NameMeaning::Set(id)) => self.execution.skeleton.set(id).contains(e),
            _ => false,
        }
    }
    /// Returns the mark of a fence or an access; for an update, `write` is its other half. `None`
    /// if no machine has such an operation.
    fn mark(&self, e: usize, write: Option<usize>) -> Option<MemoryOrdering> {
        let tags = self.tags;
        let kind = self.execution.skeleton.events()[e].kind;
        if kind == EventKind::Fence {
            return tags.fences.iter().find(|f| self.has_tag(e, f.0)).map(|f| f.1);
        }
        let halves = [Some(e), write].into_iter().flatten();
        let any = |name: &str| halves.clone().any(|h| self.has_tag(h, name));
        let (acquire, release) = (any(tags.acquire), any(tags.release));
        Some(match (acquire, release, write) {
            _ if any(tags.both) => write.map(|_| MemoryOrdering::AcquireRelease)?,
            (true, true, Some(_)) => MemoryOrdering::AcquireRelease,
            (true, false, Some(_)) => MemoryOrdering::Acquire,
            (false, true, Some(_)) => MemoryOrdering::Release,
            (false, false, _) => MemoryOrdering::Plain,
            (true, false, None) if kind == EventKind::Read => MemoryOrdering::Acquire,
            (false, true, None) if kind == EventKind::Write => MemoryOrdering::Release,
            _ => return None,
        })
    }
    /// True if a compare-and-exchange of the execution fails and is no load.
    fn has_failed_update(&self) -> bool {
        let events = self.execution.skeleton.events();
        let amo = self.execution.skeleton.relation(RelationId::AMO);
        let is_failed = |e: usize| {
            events[e].kind == EventKind::Read
                && self.has_tag(e, self.tags.locked)
                && amo.successors(e).next().is_none()
        };
        (0..events.len()).any(is_failed)
    }
    /// Returns the positions of the operations on which an event depends. `place`: the position of
    /// each event in its thread.
    fn sources(&self, relation: RelationId, e: usize, place: &[u32]) -> u32 {
        let before = self.execution.skeleton.relation(relation).predecessors(e);
        before.filter(|f| place[*f] < 32).fold(0, |bits, f| bits | 1 << place[f])
    }

    /// Converts the execution to a history. `None` if it has an event that machines do not have,
    /// or a split access. A read and a write of one instruction are one update.
    fn history(&self) -> Option<History> {
        let events = self.execution.skeleton.events();
        let unsupported = |e| self.tags.unsupported.iter().any(|name| self.has_tag(e, name));
        if (0..events.len()).any(unsupported) {
            return None;
        }
        let amo = self.execution.skeleton.relation(RelationId::AMO);
        let pairs = self.execution.skeleton.relation(RelationId::LXSX);
        let is_own = |t: u32| (t as usize) < self.processors;
        let mut order: Vec<usize> =
            (0..events.len()).filter(|&e| events[e].thread.is_some_and(is_own)).collect();
        order.sort_by_key(|&e| (events[e].thread, events[e].index, events[e].kind.writes()));
        let split = |w: &[usize]| {
            let [a, b] = [&events[w[0]], &events[w[1]]];
            (a.thread, a.index, a.kind) == (b.thread, b.index, b.kind) && a.location.is_some()
        };
        if order.windows(2).any(split) {
            return None;
        }
        let threads = events.iter().filter_map(|e| e.thread).filter(|&t| is_own(t)).max();
        let threads = threads.map_or(0, |t| t as usize + 1);
        let mut out = History { threads: vec![Vec::new(); threads], last: Vec::new() };
        // In histories the initial value is 0.
        let initial = |l: Option<u32>| {
            events.iter().find(|e| e.thread.is_none() && e.location == l).map(|e| e.value)
        };
        let value = |e: usize, v: u64| -> Option<u64> {
            let initial = initial(events[e].location)?;
            Some(if v == initial {
                0
            } else if v == 0 {
                initial
            } else {
                v
            })
        };
        let mut place = vec![u32::MAX; events.len()];
        for &e in &order {
            let event = &events[e];
            let thread = &mut out.threads[event.thread? as usize];
            place[e] = narrow::index(thread.len());
            let mut last = e;
            let operation = match event.kind {
                EventKind::Fence => Operation::fence(self.mark(e, None)?),
                EventKind::Update => {
                    let source = self.execution.rf.predecessors(e).next()?;
                    let (written, read) = (value(e, event.value)?, value(e, events[source].value)?);
                    let update = Operation::update(event.location?, read, written);
                    Operation { mark: self.mark(e, Some(e))?, ..update }
                }
                EventKind::Read if amo.successors(e).next().is_some() => {
                    let w = amo.successors(e).next()?;
                    last = w;
                    place[w] = place[e];
                    let (written, read) = (value(w, events[w].value)?, value(e, event.value)?);
                    let update = Operation::update(event.location?, read, written);
                    Operation { mark: self.mark(e, Some(w))?, ..update }
                }
                EventKind::Write if amo.predecessors(e).next().is_some() => continue,
                EventKind::Read | EventKind::Write => {
                    let value = value(e, event.value)?;
                    let exclusive = match event.kind {
                        EventKind::Read => {
                            self.has_tag(e, "EX") || pairs.successors(e).next().is_some()
                        }
                        _ => pairs.predecessors(e).next().is_some(),
                    };
                    let access = Operation::plain(event.kind, event.location?, value);
                    Operation { mark: self.mark(e, None)?, exclusive, ..access }
                }
                EventKind::Branch | EventKind::Other => continue,
            };
            let depends = match self.tags.has_dependencies {
                true => Dependencies {
                    address: self.sources(RelationId::ADDR, e, &place),
                    data: self.sources(RelationId::DATA, last, &place),
                    control: self.sources(RelationId::CTRL, e, &place),
                },
                false => Dependencies::NONE,
            };
            thread.push(Operation { depends, ..operation });
        }
        out.normalise();
        Some(out)
    }
}

/// The values of the events of a test, by location, with the initial ones.
type StoredValues = BTreeSet<(u32, u64)>;

/// Returns the test with a further processor, which stores to each location `count` values that the
/// test does not store there, and those in `own`.
fn with_unsourced(
    test: &LitmusTest,
    stored: &StoredValues,
    own: &StoredValues,
    count: usize,
) -> LitmusTest {
    let mut preferred = test.question.prop.constants();
    preferred.extend(stored.iter().map(|s| s.1));
    let mut thread = Thread::default();
    for (location, cell) in (0..).zip(test.layout.cells()) {
        let mut values: Vec<u64> = Vec::new();
        for value in preferred.iter().copied().chain(1..) {
            if values.len() == count {
                break;
            }
            let fits = cell.width >= 8 || value >> (8 * u32::from(cell.width)) == 0;
            if fits && !stored.contains(&(location, value)) && !values.contains(&value) {
                values.push(value);
            }
        }
        values.extend(own.iter().filter(|(l, _)| *l == location).map(|s| s.1));
        let address =
            test.layout.variables()[cell.variable as usize].address + u64::from(cell.offset);
        for value in values {
            thread.instruction.push(narrow::index(thread.ops.len()));
            thread.ops.push(Op::Store {
                address: RegisterExpr::Const(address),
                width: cell.width,
                value: RegisterExpr::Const(value),
                tags: 0,
                joined: false,
            });
        }
    }
    let mut out = test.clone();
    out.threads.push(thread);
    out
}

/// True if an operation of the thread depends on a load by its address, its value, or a branch
/// before it.
fn has_dependencies(thread: &Thread) -> bool {
    let mut read = vec![false; thread.registers.len()];
    for op in &thread.ops {
        let uses = |e: &RegisterExpr| {
            let mut found = false;
            e.sources(&mut |r| found |= read[r as usize]);
            found
        };
        match op {
            Op::Let(r, e) => read[*r as usize] = uses(e),
            Op::Load { into, address, .. } => {
                if uses(address) {
                    return true;
                }
                into.iter().for_each(|r| read[*r as usize] = true);
            }
            Op::Update { into, address, value, .. } => {
                if uses(address) || uses(value) {
                    return true;
                }
                into.iter().for_each(|(r, _)| read[*r as usize] = true);
            }
            Op::Store { address, value, .. } | Op::StoreConditional { address, value, .. }
                if uses(address) || uses(value) =>
            {
                return true;
            }
            Op::Branch { when: Some(e), .. } if uses(e) => return true,
            _ => {}
        }
    }
    false
}

/// Returns the number of memory operations of the longest thread, without repetitions of loops.
pub fn longest_thread(test: &LitmusTest) -> usize {
    let is_operation = |op: &&Op| {
        matches!(
            op,
            Op::Load { .. }
                | Op::Store { .. }
                | Op::StoreConditional { .. }
                | Op::Update { .. }
                | Op::Fence(_)
        )
    };
    test.threads.iter().map(|t| t.ops.iter().filter(is_operation).count()).max().unwrap_or(0)
}

/// Bounds of the paths of a test.
const BOUNDS: PathBounds = PathBounds { loops: 2 };

/// Computes the outcomes of a test on a machine and under a model. Inner error: the machine cannot
/// run the test, with the reason as text.
pub fn outcomes(
    mut test: LitmusTest,
    judge: &Judge,
    machine: &Behaviour,
    budget: &Budget,
) -> Result<Result<(LitmusTest, Outcomes), String>, Diagnostic> {
    let Some(tags_of) = tags_of(test.arch) else {
        return Ok(Err(format!(
            "tests in {} cannot be run on machines; supported are x86, RISC-V and AArch64",
            test.arch.name()
        )));
    };
    if test.question.observed.iter().any(|o| matches!(o.place, ObservedPlace::Memory(..))) {
        return Ok(Err(
            "its condition depends on the final memory, which labels of the machine do not contain"
                .into(),
        ));
    }
    if tags_of.has_dependencies && test.threads.iter().any(has_dependencies) {
        let named =
            |p: &History| p.threads.iter().flatten().any(|o| o.depends != Dependencies::NONE);
        if !machine.programs().iter().any(|p| named(&p)) {
            return Ok(Err("it has dependencies between operations, which labels of the machine do not contain".into()));
        }
        let relations = [RelationId::ADDR, RelationId::DATA, RelationId::CTRL];
        if !relations.into_iter().all(|r| judge.model.reads_relation(r)) {
            return Ok(Err(
                "it has dependencies between operations, which the model does not define".into(),
            ));
        }
    }
    let mut out = Outcomes::default();
    let (mut runs, mut unsupported, mut compared) = (false, false, false);
    let question = test.question.clone();
    let processors = test.threads.len();
    let (mut stored, mut own) = (StoredValues::new(), StoredValues::new());
    let (mut stop, cut) = mu_litmus::report::for_each_candidate(
        &mut test,
        judge,
        BOUNDS,
        budget,
        &mut |candidate| {
            let skeleton = candidate.execution.skeleton;
            for event in skeleton.events().iter().filter(|e| e.kind.writes()) {
                stored.extend(event.location.map(|l| (l, event.value)));
            }
            let amo = skeleton.relation(RelationId::AMO);
            for (e, event) in skeleton.events().iter().enumerate() {
                let updates =
                    event.kind == EventKind::Update || amo.predecessors(e).next().is_some();
                if machine.reads_itself && updates {
                    own.extend(event.location.map(|l| (l, event.value)));
                }
            }
            let counts = question.counts(candidate.outcome);
            let execution = candidate.execution;
            let events = Events { tags: &tags_of, judge, execution, processors };
            // Labels do not contain atomic instructions that fail, so these are not compared.
            let mut leave_out = || {
                if counts && candidate.allowed {
                    out.not_compared.insert(candidate.outcome.to_vec());
                }
                false
            };
            if candidate.fails || events.has_failed_update() {
                return leave_out();
            }
            match events.history() {
                None => unsupported = true,
                Some(history) => {
                    compared = true;
                    runs |= machine.programs().contains(&history.program());
                    if counts && machine.histories().contains(&history.canonical()) {
                        out.shown.insert(candidate.outcome.to_vec());
                    }
                }
            }
            if counts && candidate.allowed {
                out.allowed.insert(candidate.outcome.to_vec());
            }
            false
        },
    )?;
    if unsupported || cut {
        return Ok(Err("it has operations that machines do not have".into()));
    }
    if (machine.unsourced > 0 || !own.is_empty()) && stop == Stop::Complete {
        let mut further = with_unsourced(&test, &stored, &own, machine.unsourced);
        (stop, _) = mu_litmus::report::for_each_candidate(
            &mut further,
            judge,
            BOUNDS,
            budget,
            &mut |candidate| {
                let execution = candidate.execution;
                let events = Events { tags: &tags_of, judge, execution, processors };
                let succeeds = !candidate.fails && !events.has_failed_update();
                let history = events.history().filter(|_| succeeds);
                if let Some(history) = history.filter(|_| question.counts(candidate.outcome)) {
                    runs |= machine.programs().contains(&history.program());
                    if machine.histories().contains(&history.canonical()) {
                        out.shown.insert(candidate.outcome.to_vec());
                    }
                }
                false
            },
        )?;
    }
    if !runs && !compared && stop == Stop::Complete {
        return Ok(Err("in each of its executions an atomic instruction fails, which labels of the machine do not contain".into()));
    }
    if !runs && stop == Stop::Complete {
        return Ok(Err(NO_PROGRAM.into()));
    }
    out.not_compared.retain(|outcome| !out.allowed.contains(outcome));
    out.stop = Some(stop);
    Ok(Ok((test, out)))
}
