//! Candidate executions: combinations of paths of all threads with consistent choices of reads-from
//! and coherence.
//!
//! Input: a test, its paths ([`crate::paths`]), a model. Output: the outcomes of the executions
//! that the model allows.
//!
//! Each combination of shapes has one skeleton, built when the first combination of values needs
//! it. For each combination of values, every read chooses among the writes of its value. If the
//! model implies coherence, each choice adds the order of writes that it forces (Alglave, Maranget,
//! Tautschnig 2014: the five shapes that coherence forbids), and a cycle rejects it. The model
//! judges `rf` first, then each remaining coherence order, location by location. An outcome that is
//! known to be allowed is not judged again, unless some flag is still missing.
//!
//! Cost: exponential in the number of reads and of unordered writes, as the problem is; sharing and
//! pruning make it small for typical tests.

use crate::circles::ValueCycles;
use crate::code::Arch;
use crate::condition::ObservedPlace;
use crate::file::LitmusTest;
use crate::inside::InternalEventSet;
use crate::judge::Judge;
use crate::layout::MemoryCell;
use crate::paths::{EventShape, PathShape, PathValues, Runs};
use mu_axioms::cat::{ModelRun, Session};
use mu_axioms::{Event, EventKind, Execution, NameMeaning, Relation, RelationId, SetId, Skeleton};
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use std::collections::BTreeSet;

/// The writes of an execution, as bits.
type Writes = u128;
/// Largest number of writes of an execution; more are an error.
const MAX_WRITES: usize = Writes::BITS as usize;

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The outcomes: values in the order of what is observed.
    pub outcomes: BTreeSet<Vec<u64>>,
    /// The flags that some allowed execution has.
    pub flags: BTreeSet<String>,
    /// Number of executions that the model has judged.
    pub judged: u64,
    /// True if all outcomes that decide the condition were searched.
    pub decided: bool,
    /// The instruction, with its thread, at which an allowed execution ends because its address is
    /// not that of a variable.
    pub strayed: Option<(u32, u32)>,
}

/// An execution found by the search, for drawing or explanation.
pub struct CandidateExecution<'e> {
    /// It.
    pub execution: &'e Execution<'e>,
    /// The instruction of each event: thread and index; `None` for an initial write.
    pub instructions: &'e [Option<(u32, u32)>],
    /// True if a store-conditional fails in it.
    pub fails: bool,
    /// Its outcome.
    pub outcome: &'e [u64],
    /// True if the model allows it.
    pub allowed: bool,
}

/// Callback for executions. Returns true to stop the search.
pub type Visit<'v> = &'v mut dyn FnMut(&CandidateExecution<'_>) -> bool;

/// The reason why a search ended early.
enum EarlyEnd {
    /// A limit.
    Stop(Stop),
    /// An error of the model or of this search.
    Refused(Diagnostic),
    /// The callback has stopped the search.
    Enough,
}

impl From<Diagnostic> for EarlyEnd {
    fn from(d: Diagnostic) -> Self {
        match d.stop.clone() {
            Some(stop) => EarlyEnd::Stop(stop),
            None => EarlyEnd::Refused(d),
        }
    }
}

/// Searches candidate executions until all outcomes and flags are known.
pub fn search(
    test: &LitmusTest,
    runs: &Runs,
    judge: &Judge,
    budget: &Budget,
) -> Result<(Found, Stop), Diagnostic> {
    search_with(test, runs, judge, budget, None)
}

/// Calls `visit` with all candidate executions, coherent or not.
pub fn search_all(
    test: &LitmusTest,
    runs: &Runs,
    judge: &Judge,
    budget: &Budget,
    visit: Visit<'_>,
) -> Result<(Found, Stop), Diagnostic> {
    search_with(test, runs, judge, budget, Some(visit))
}

fn search_with(
    test: &LitmusTest,
    runs: &Runs,
    judge: &Judge,
    budget: &Budget,
    visit: Option<Visit<'_>>,
) -> Result<(Found, Stop), Diagnostic> {
    let init = test
        .layout
        .cells()
        .iter()
        .enumerate()
        .fold(0, |m, (c, cell)| m | key(narrow::index(c), cell.initial));
    let masks: Vec<Vec<Vec<(u128, u128)>>> = (runs.threads.iter())
        .map(|p| {
            p.shapes
                .iter()
                .map(|(shape, traces)| traces.iter().map(|t| trace_masks(shape, t)).collect())
                .collect()
        })
        .collect();
    let all_written: Vec<u128> =
        masks.iter().map(|shapes| shapes.iter().flatten().fold(0, |m, k| m | k.1)).collect();
    let mut search = CandidateSearch {
        test,
        judge,
        coherent: judge.coherent && visit.is_none(),
        budget,
        init,
        masks,
        all_written,
        found: Found::default(),
        visit,
        skeleton_flags: Vec::new(),
        asked_memory: test
            .question
            .observed
            .iter()
            .any(|o| matches!(o.place, ObservedPlace::Memory(..))),
        open_flags: Vec::new(),
        pass: Pass::All,
        steps: 0,
    };
    let mut session = Session::new(&judge.model);
    let traces = search.masks.iter().map(|t| t.iter().map(Vec::len).sum::<usize>() as u128);
    let several = traces.fold(1u128, u128::saturating_mul) > TWO_PASSES && search.visit.is_none();
    let passes: &[Pass] = if several { &[Pass::Deciding, Pass::Others] } else { &[Pass::All] };
    for &pass in passes {
        search.pass = pass;
        match search.shapes(runs, &mut session, &mut Vec::new()) {
            Ok(()) => search.found.decided = true,
            Err(EarlyEnd::Enough) => {}
            Err(EarlyEnd::Stop(stop)) => return Ok((search.found, stop)),
            Err(EarlyEnd::Refused(d)) => return Err(d),
        }
    }
    Ok((search.found, Stop::Complete))
}

/// Returns a bit for a value in a cell. Different values may share a bit, so the bits only exclude
/// combinations.
fn key(cell: u32, value: u64) -> u128 {
    let mixed_sizes = (value ^ u64::from(cell).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    1 << (mixed_sizes >> 57)
}

fn trace_masks(shape: &PathShape, trace: &PathValues) -> (u128, u128) {
    let mut masks = (0, 0);
    for (i, e) in shape.events.iter().enumerate() {
        let Some(cell) = e.cell else { continue };
        if e.kind.reads() {
            masks.0 |= key(cell, trace.reads[i]);
        }
        if e.kind.writes() {
            masks.1 |= key(cell, trace.writes[i]);
        }
    }
    masks
}

/// Calls `visit` for the combinations of traces in which each value read may be written, until it
/// returns true. Returns true if it did.
fn for_each_fitting(
    masks: &[Vec<(u128, u128)>],
    coming: &[u128],
    picked: &mut Vec<u32>,
    sofar: (u128, u128),
    budget: &Budget,
    visit: &mut dyn FnMut(&[u32]) -> Result<bool, EarlyEnd>,
) -> Result<bool, EarlyEnd> {
    let t = picked.len();
    if t == masks.len() {
        return visit(picked);
    }
    for (i, (reads, writes)) in masks[t].iter().enumerate() {
        if i % 1024 == 1023 {
            budget.check(0).map_err(EarlyEnd::Stop)?;
        }
        let next = (sofar.0 | reads, sofar.1 | writes);
        if next.0 & !(next.1 | coming[t]) == 0 {
            picked.push(narrow::index(i));
            let enough = for_each_fitting(masks, coming, picked, next, budget, visit)?;
            picked.pop();
            if enough {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A read of a skeleton.
struct Read {
    event: usize,
    /// The indices of the writes that it may read from.
    sources: Vec<usize>,
    /// The writes to its cell before and after it in its thread.
    before: Writes,
    after: Writes,
    /// The indices of earlier reads of its cell in its thread.
    earlier: Vec<usize>,
}

/// A combination of shapes.
struct ShapeCombination {
    skeleton: Skeleton,
    instructions: Vec<Option<(u32, u32)>>,
    /// Thread and index of each event; the cell of an initial write.
    origin: Vec<Result<(usize, usize), u32>>,
    /// The event of each write.
    writes: Vec<usize>,
    reads: Vec<Read>,
    /// The writes of each cell that has others in addition to its initial one.
    cells: Vec<Vec<usize>>,
    /// The writes of each cell, the initial one first.
    by_cell: Vec<Vec<usize>>,
    /// For each write, the writes after it independently of the choice of sources.
    forced: Vec<Writes>,
    /// The instruction, with its thread, at which a path ends because its address is not that of a
    /// variable.
    strayed: Option<(u32, u32)>,
    /// True if a store-conditional fails.
    fails: bool,
    /// Dependencies between values, if they may form circles.
    circles: Option<ValueCycles>,
    /// The first event of each thread.
    first: Vec<usize>,
}

/// Number of combinations of values from which on the outcomes that decide the condition are
/// searched first, so that a limit on the search of the others does not leave the verdict open.
const TWO_PASSES: u128 = 1 << 10;

/// The outcomes of a pass of the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// All.
    All,
    /// Those that decide the condition.
    Deciding,
    /// The others.
    Others,
}

struct CandidateSearch<'a, 'v> {
    test: &'a LitmusTest,
    judge: &'a Judge,
    /// True if incoherent choices are dropped.
    coherent: bool,
    budget: &'a Budget,
    init: u128,
    masks: Vec<Vec<Vec<(u128, u128)>>>,
    all_written: Vec<u128>,
    found: Found,
    visit: Option<Visit<'v>>,
    /// The flags that every allowed execution of the current skeleton has.
    skeleton_flags: Vec<String>,
    asked_memory: bool,
    /// The flags that executions of the current skeleton may have.
    open_flags: Vec<String>,
    pass: Pass,
    steps: u64,
}

/// The current partial choice.
struct PartialCandidate {
    values: Vec<(u64, u64)>,
    rf: Relation,
    co: Relation,
    outcome: Vec<u64>,
    /// The sources chosen so far, in the order of reads.
    taken: Vec<usize>,
    /// The last write of each cell with more than one write, once its order is chosen.
    last: Vec<usize>,
    /// True if the model allows the sources.
    fine: bool,
}

impl<'a> CandidateSearch<'a, '_> {
    fn poll(&mut self) -> Result<(), EarlyEnd> {
        self.steps += 1;
        if self.steps.is_multiple_of(256) {
            self.budget.check(self.found.judged).map_err(EarlyEnd::Stop)?;
            if self.steps.is_multiple_of(1 << 16) {
                self.budget.check_memory().map_err(EarlyEnd::Stop)?;
            }
        }
        Ok(())
    }
    /// Chooses a shape for each thread.
    fn shapes<'r>(
        &mut self,
        runs: &'r Runs,
        session: &mut Session<'a>,
        chosen: &mut Vec<(usize, &'r PathShape, &'r [PathValues])>,
    ) -> Result<(), EarlyEnd> {
        let Some(paths) = runs.threads.get(chosen.len()) else {
            return self.combine(session, chosen);
        };
        for (i, (shape, traces)) in paths.shapes.iter().enumerate() {
            chosen.push((i, shape, traces));
            self.shapes(runs, session, chosen)?;
            chosen.pop();
        }
        Ok(())
    }
    /// Enumerates the combinations of values of a combination of shapes.
    fn combine(
        &mut self,
        session: &mut Session<'a>,
        chosen: &[(usize, &PathShape, &[PathValues])],
    ) -> Result<(), EarlyEnd> {
        let strayed = |(t, c): (usize, &(usize, &PathShape, &[PathValues]))| {
            Some((narrow::index(t), c.1.strayed?))
        };
        let strayed = chosen.iter().enumerate().find_map(strayed);
        if strayed.is_some() && (self.visit.is_some() || self.found.strayed.is_some()) {
            return Ok(());
        }
        // Find the possible combinations before building a skeleton.
        let masks: Vec<Vec<(u128, u128)>> =
            chosen.iter().zip(&self.masks).map(|(c, shapes)| shapes[c.0].clone()).collect();
        let coming: Vec<u128> = (0..masks.len())
            .map(|t| self.all_written[t + 1..].iter().fold(0, |m, k| m | k))
            .collect();
        let sofar = (0, self.init);
        if !for_each_fitting(&masks, &coming, &mut Vec::new(), sofar, self.budget, &mut |_| {
            Ok(true)
        })? {
            return Ok(());
        }
        let mut joint = self.joint(&chosen.iter().map(|c| c.1).collect::<Vec<_>>(), strayed)?;
        let shapes: Vec<(&PathShape, &[PathValues])> = chosen.iter().map(|c| (c.1, c.2)).collect();
        joint.circles = ValueCycles::of(&shapes, &joint.first, joint.skeleton.len());
        let mut run = session.start(&joint.skeleton)?;
        if !run.holds() {
            return Ok(());
        }
        self.skeleton_flags = run.flags_of_skeleton()?;
        self.open_flags = run.open_flags().map(str::to_string).collect();
        let n = joint.skeleton.len();
        let mut choice = PartialCandidate {
            values: vec![(0, 0); n],
            rf: Relation::empty(n),
            co: Relation::empty(n),
            outcome: vec![0; self.test.question.observed.len()],
            taken: Vec::with_capacity(joint.reads.len()),
            last: Vec::with_capacity(joint.cells.len()),
            fine: true,
        };
        let mut traces: Vec<&PathValues> = Vec::new();
        for_each_fitting(&masks, &coming, &mut Vec::new(), sofar, self.budget, &mut |picked| {
            self.poll()?;
            traces.clear();
            traces.extend(picked.iter().zip(chosen).map(|(&t, c)| &c.2[t as usize]));
            self.values(&joint, &mut run, &mut choice, &traces)?;
            Ok(false)
        })?;
        Ok(())
    }
    /// Builds the skeleton of a combination of shapes, with derived data.
    fn joint(
        &self,
        shapes: &[&PathShape],
        strayed: Option<(u32, u32)>,
    ) -> Result<ShapeCombination, EarlyEnd> {
        let cells = self.test.layout.cells();
        let touched = accessed_cells(cells.len(), shapes);
        let mut events = Vec::new();
        let mut instructions = Vec::new();
        let mut origin = Vec::new();
        for (c, cell) in cells.iter().enumerate().filter(|(c, _)| touched[*c]) {
            let c = narrow::index(c);
            events.push(Event { width: cell.width, ..Event::initial(c, cell.initial) });
            instructions.push(None);
            origin.push(Err(c));
        }
        let mut first = Vec::new();
        for (t, shape) in shapes.iter().enumerate() {
            first.push(events.len());
            for (i, e) in shape.events.iter().enumerate() {
                // In C each operation has its place in program order; elsewhere the events of an
                // instruction have one.
                let in_order = matches!(self.test.arch, Arch::C | Arch::Linux);
                let index = if in_order { e.index } else { e.instance };
                events.push(Event {
                    thread: Some(narrow::index(t)),
                    index,
                    kind: e.kind,
                    location: e.cell,
                    width: e.cell.map_or(0, |c| cells[c as usize].width),
                    value: 0,
                });
                instructions.push(Some((narrow::index(t), e.instruction)));
                origin.push(Ok((t, i)));
            }
        }
        let mut others = InternalEventSet::new(events.len());
        if self.judge.inside {
            for (t, shape) in shapes.iter().enumerate() {
                let t = narrow::index(t);
                others.add(t, &shape.inside, cells.len(), &mut events, &mut instructions);
            }
        }
        let mut skeleton = Skeleton::new(self.judge.model.vocabulary(), events);
        if self.judge.inside {
            others.relate(&mut skeleton, self.judge, shapes, &first);
        }
        for (t, shape) in shapes.iter().enumerate() {
            self.relate(&mut skeleton, shape, first[t]);
        }
        self.tag_locations(&mut skeleton);
        self.mark_finals(&mut skeleton);
        relate_initial(&mut skeleton, cells);
        let events = skeleton.events();
        let place = |e: usize| match origin.get(e) {
            Some(Ok((t, i))) => Some((*t, &shapes[*t].events[*i])),
            _ => None,
        };
        let ordered = |e: usize| place(e).is_some_and(|(_, event)| event.ordered);
        let writes: Vec<usize> =
            (0..events.len()).filter(|&e| events[e].kind.writes() || ordered(e)).collect();
        few_writes(writes.len())?;
        let number = |e: usize| writes.partition_point(|&w| w < e);
        let updates = self.judge.ordered_updates;
        // The model orders the halves of an instruction only if it is atomic.
        let atomic = |a: usize, b: usize| match (origin.get(a), origin.get(b)) {
            (Some(Ok((t, a))), Some(Ok((_, b)))) => {
                shapes[*t].amo.contains(&(narrow::index(*a), narrow::index(*b)))
            }
            _ => false,
        };
        let before = |a: usize, b: usize| match (place(a), place(b)) {
            (Some((t, x)), Some((u, y))) => {
                let halves = x.instance == y.instance;
                t == u && x.index < y.index && (!halves || updates && atomic(a, b))
            }
            _ => false,
        };
        // An update does not read from its own write.
        let own = |r: usize, w: usize| match (place(r), place(w)) {
            (Some((t, r)), Some((u, w))) => t == u && r.instance == w.instance && r.index < w.index,
            _ => false,
        };
        let same = |a: usize, b: usize| events[a].location == events[b].location;
        let mut forced: Vec<Writes> = vec![0; writes.len()];
        for (i, &a) in writes.iter().enumerate() {
            for (j, &b) in writes.iter().enumerate() {
                let initial = events[a].thread.is_none() && events[b].thread.is_some();
                if same(a, b) && (initial || self.coherent && before(a, b)) {
                    forced[i] |= 1 << j;
                }
            }
        }
        let read_events: Vec<usize> =
            (0..events.len()).filter(|&e| events[e].kind.reads()).collect();
        let reads = (read_events.iter().enumerate())
            .map(|(k, &r)| {
                let of = |holds: &dyn Fn(usize) -> bool| {
                    writes
                        .iter()
                        .filter(|&&w| w != r && same(w, r) && holds(w))
                        .fold(0, |m, &w| m | 1 << number(w))
                };
                let sources = writes.iter().filter(|&&w| {
                    w != r
                        && same(w, r)
                        && events[w].kind.writes()
                        && !own(r, w)
                        && !(self.coherent && before(r, w))
                });
                Read {
                    event: r,
                    sources: sources.map(|&w| number(w)).collect(),
                    before: of(&|w| before(w, r)),
                    // The write of an update comes after the write that it reads from.
                    after: of(&|w| before(r, w))
                        | if events[r].kind == EventKind::Update { 1 << number(r) } else { 0 },
                    earlier: (0..k)
                        .filter(|&j| same(read_events[j], r) && before(read_events[j], r))
                        .collect(),
                }
            })
            .collect();
        let by_cell = by_cell(cells.len(), &writes, events);
        let several = by_cell.iter().filter(|c| c.len() > 1).cloned().collect();
        Ok(ShapeCombination {
            skeleton,
            instructions,
            origin,
            writes,
            reads,
            cells: several,
            by_cell,
            forced,
            strayed,
            fails: shapes.iter().any(|shape| shape.fails),
            circles: None,
            first,
        })
    }
    /// Adds the tags and relations of a thread.
    fn relate(&self, skeleton: &mut Skeleton, shape: &PathShape, first: usize) {
        let model = &self.judge.model;
        let own = |name: &str| match model.vocabulary().find(name) {
            Some(NameMeaning::Relation(id)) => Some(id),
            _ => None,
        };
        // The relations that the model reads, each with the events that are the source of an event.
        type SourceEvents = fn(&EventShape) -> crate::paths::Events;
        // Inside an instruction, the write depends on the read; some models name this apart.
        let [data, control]: [SourceEvents; 2] = if ["amo-data", "amo-ctrl"]
            .into_iter()
            .any(|name| own(name).is_some_and(|id| model.reads_relation(id)))
        {
            [|e| e.data, |e| e.control]
        } else {
            [|e| e.data | e.within[0], |e| e.control | e.within[1]]
        };
        if let Some(order) = own("iico_order").filter(|id| model.reads_relation(*id)) {
            for &(a, b) in &shape.order {
                skeleton.relate(order, first + a as usize, first + b as usize);
            }
        }
        let all: [(Option<RelationId>, SourceEvents); 8] = [
            (Some(RelationId::ADDR), |e| e.address),
            (Some(RelationId::DATA), data),
            (Some(RelationId::CTRL), control),
            (own("pick-addr"), |e| e.pick[0]),
            (own("pick-data"), |e| e.pick[1]),
            (own("pick-ctrl"), |e| e.pick[2]),
            (own("amo-data"), |e| e.within[0]),
            (own("amo-ctrl"), |e| e.within[1]),
        ];
        let dependencies: Vec<(RelationId, SourceEvents)> = all
            .into_iter()
            .filter_map(|(id, from)| id.filter(|id| model.reads_relation(*id)).map(|id| (id, from)))
            .collect();
        for (i, e) in shape.events.iter().enumerate() {
            let at = first + i;
            self.judge.sets(e.tags).for_each(|set| skeleton.tag(set, at));
            for (relation, from) in &dependencies {
                let mut rest = from(e);
                while rest != 0 {
                    skeleton.relate(*relation, first + rest.trailing_zeros() as usize, at);
                    rest &= rest - 1;
                }
            }
            // The parts of an access that was split.
            for (j, other) in shape.events.iter().enumerate() {
                if i != j && e.cell.is_some() && other.cell.is_some() && e.access == other.access {
                    skeleton.relate(RelationId::SI, at, first + j);
                    skeleton.relate(RelationId::SM, at, first + j);
                }
                if e.instance == other.instance {
                    skeleton.relate(RelationId::SAME_INSTANCE, at, first + j);
                }
            }
        }
        for &(r, w) in &shape.amo {
            skeleton.relate(RelationId::AMO, first + r as usize, first + w as usize);
            skeleton.tag(SetId::UPDATES, first + r as usize);
            skeleton.tag(SetId::UPDATES, first + w as usize);
        }
        shape.lxsx.iter().for_each(|&(r, w)| {
            skeleton.relate(RelationId::LXSX, first + r as usize, first + w as usize)
        });
    }
    /// In C of the Linux kernel, restricts the final writes to observed variables.
    fn mark_finals(&self, skeleton: &mut Skeleton) {
        if self.test.arch != Arch::Linux {
            return;
        }
        let cells = self.test.layout.cells();
        let observed: BTreeSet<u32> = (self.test.question.observed.iter())
            .filter_map(|o| match o.place {
                ObservedPlace::Memory(v, _) => Some(v),
                ObservedPlace::Register(..) => None,
            })
            .collect();
        let finals = skeleton.events().iter().enumerate().filter(|(_, e)| {
            e.kind.writes()
                && e.location.is_some_and(|c| observed.contains(&cells[c as usize].variable))
        });
        let finals = mu_axioms::Set::from_events(skeleton.len(), finals.map(|(i, _)| i));
        skeleton.restrict_finals(finals);
    }
    /// In C, tags the initial writes: all are non-atomic, as in the herd tools, and those of
    /// non-atomic locations are marked so.
    fn tag_locations(&self, skeleton: &mut Skeleton) {
        if self.test.arch != Arch::C {
            return;
        }
        let is_plain = |location: u32| {
            let cell = &self.test.layout.cells()[location as usize];
            !self.test.layout.variables()[cell.variable as usize].atomic
        };
        let initial = skeleton.events().iter().enumerate().filter(|(_, e)| e.thread.is_none());
        let tags: Vec<(usize, u64)> = initial
            .map(|(i, e)| {
                let location = if e.location.is_some_and(is_plain) { "NAL" } else { "" };
                (i, Arch::C.tag("NA") | Arch::C.tag(location))
            })
            .collect();
        for (event, tags) in tags {
            self.judge.sets(tags).for_each(|set| skeleton.tag(set, event));
        }
    }
    /// True if all flags are known that an execution of the current skeleton can have.
    fn all_flags(&self) -> bool {
        let mut flags = self.open_flags.iter().chain(&self.skeleton_flags);
        flags.all(|f| self.found.flags.contains(f))
    }
    /// True if an outcome needs no further executions.
    fn is_known(&self, outcome: &[u64]) -> bool {
        self.visit.is_none() && self.found.outcomes.contains(outcome) && self.all_flags()
    }
    /// True if executions with an outcome are judged: it passes the filter, belongs to the pass,
    /// and is not known.
    fn wants(&self, outcome: &[u64]) -> bool {
        let question = &self.test.question;
        self.visit.is_some()
            || question.counts(outcome)
                && (self.pass == Pass::All
                    || question.is_decided_by(outcome) == (self.pass == Pass::Deciding))
                && !self.is_known(outcome)
    }
    /// Enumerates the choices of `rf` and `co` for a combination of values.
    fn values(
        &mut self,
        joint: &ShapeCombination,
        run: &mut ModelRun<'_, '_>,
        choice: &mut PartialCandidate,
        traces: &[&PathValues],
    ) -> Result<(), EarlyEnd> {
        for (e, origin) in joint.origin.iter().enumerate() {
            choice.values[e] = match *origin {
                Ok((t, i)) => (traces[t].reads[i], traces[t].writes[i]),
                Err(cell) => (0, self.test.layout.cells()[cell as usize].initial),
            };
        }
        let events = joint.skeleton.events();
        run.set_values(
            choice.values.iter().zip(events).map(|(v, e)| if e.kind.writes() { v.1 } else { v.0 }),
        );
        for (k, o) in self.test.question.observed.iter().enumerate() {
            if let ObservedPlace::Register(t, _) = o.place {
                let before = self.test.question.observed[..k]
                    .iter()
                    .filter(|p| matches!(p.place, ObservedPlace::Register(u, _) if u == t))
                    .count();
                choice.outcome[k] = traces[t as usize].registers[before];
            }
        }
        if !self.asked_memory && joint.strayed.is_none() && !self.wants(&choice.outcome) {
            return Ok(());
        }
        self.choose_reads(joint, run, choice, 0, &joint.forced)
    }
    /// Chooses the source of a read.
    fn choose_reads(
        &mut self,
        joint: &ShapeCombination,
        run: &mut ModelRun<'_, '_>,
        choice: &mut PartialCandidate,
        k: usize,
        forced: &[Writes],
    ) -> Result<(), EarlyEnd> {
        let Some(read) = joint.reads.get(k) else {
            self.poll()?;
            if let Some(circles) = &joint.circles {
                let source = |event: usize| choice.rf.predecessors(event).next();
                if circles.has_computation(&source) {
                    return Ok(());
                }
            }
            choice.fine = run.set_reads_from(&choice.rf)?;
            if !choice.fine && self.visit.is_none() {
                return Ok(());
            }
            choice.co.clear();
            return self.choose_order(joint, run, choice, 0, forced);
        };
        let value = choice.values[read.event].0;
        for &w in &read.sources {
            let source = joint.writes[w];
            if choice.values[source].1 != value {
                continue;
            }
            let mut next;
            let after = if self.coherent {
                next = forced.to_vec();
                let mut fine = order(&mut next, read.before & !(1 << w), 1 << w)
                    && order(&mut next, 1 << w, read.after & !(1 << w));
                for &e in &read.earlier {
                    fine = fine
                        && (choice.taken[e] == w || order(&mut next, 1 << choice.taken[e], 1 << w));
                }
                if !fine {
                    continue;
                }
                &next
            } else {
                forced
            };
            choice.taken.truncate(k);
            choice.taken.push(w);
            choice.rf.insert(source, read.event);
            self.choose_reads(joint, run, choice, k + 1, after)?;
            choice.rf.remove(source, read.event);
        }
        Ok(())
    }
    /// Chooses the order of the writes to a cell.
    fn choose_order(
        &mut self,
        joint: &ShapeCombination,
        run: &mut ModelRun<'_, '_>,
        choice: &mut PartialCandidate,
        cell: usize,
        forced: &[Writes],
    ) -> Result<(), EarlyEnd> {
        let Some(writes) = joint.cells.get(cell) else { return self.judge(joint, run, choice) };
        let left = writes.iter().fold(0, |m, &w| m | 1 << w);
        let mut sequence = Vec::with_capacity(writes.len());
        self.extend(joint, run, choice, cell, forced, left, &mut sequence)
    }
    #[expect(clippy::too_many_arguments, reason = "the state of a recursion")]
    fn extend(
        &mut self,
        joint: &ShapeCombination,
        run: &mut ModelRun<'_, '_>,
        choice: &mut PartialCandidate,
        cell: usize,
        forced: &[Writes],
        left: Writes,
        sequence: &mut Vec<usize>,
    ) -> Result<(), EarlyEnd> {
        if left == 0 {
            choice.last.truncate(cell);
            choice.last.extend(sequence.last());
            return self.choose_order(joint, run, choice, cell + 1, forced);
        }
        let mut rest = left;
        while rest != 0 {
            let w = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            // Only a write before which no remaining write is forced can be next.
            let mut others = left & !(1 << w);
            let mut free = true;
            while others != 0 && free {
                let o = others.trailing_zeros() as usize;
                others &= others - 1;
                free = forced[o] >> w & 1 == 0;
            }
            if !free {
                continue;
            }
            for &earlier in sequence.iter() {
                choice.co.insert(joint.writes[earlier], joint.writes[w]);
            }
            sequence.push(w);
            self.extend(joint, run, choice, cell, forced, left & !(1 << w), sequence)?;
            sequence.pop();
            for &earlier in sequence.iter() {
                choice.co.remove(joint.writes[earlier], joint.writes[w]);
            }
        }
        Ok(())
    }
    /// Judges a complete choice.
    fn judge(
        &mut self,
        joint: &ShapeCombination,
        run: &mut ModelRun<'_, '_>,
        choice: &mut PartialCandidate,
    ) -> Result<(), EarlyEnd> {
        self.poll()?;
        if joint.strayed.is_some() {
            self.found.judged += 1;
            if self.found.strayed.is_none()
                && run.set_coherence(&choice.rf, &choice.co)?
                && choice.fine
            {
                self.found.strayed = joint.strayed;
            }
            return Ok(());
        }
        if self.asked_memory {
            self.observe(joint, choice)?;
            if !self.wants(&choice.outcome) {
                return Ok(());
            }
        }
        self.found.judged += 1;
        let allowed = run.set_coherence(&choice.rf, &choice.co)? && choice.fine;
        if allowed {
            if !self.found.outcomes.contains(&choice.outcome) {
                self.found.outcomes.insert(choice.outcome.clone());
            }
            if !self.all_flags() {
                let flags = run.flags()?;
                self.found.flags.extend(flags);
            }
        }
        if let Some(visit) = &mut self.visit {
            let mut skeleton = joint.skeleton.clone();
            skeleton.set_values(
                choice
                    .values
                    .iter()
                    .enumerate()
                    .map(|(e, v)| if joint.skeleton.events()[e].kind.writes() { v.1 } else { v.0 }),
            );
            let execution =
                Execution { skeleton: &skeleton, rf: choice.rf.clone(), co: choice.co.clone() };
            let candidate = CandidateExecution {
                execution: &execution,
                instructions: &joint.instructions,
                fails: joint.fails,
                outcome: &choice.outcome,
                allowed,
            };
            if visit(&candidate) {
                return Err(EarlyEnd::Enough);
            }
        }
        Ok(())
    }
    /// Adds the observed values of memory to the outcome.
    fn observe(
        &self,
        joint: &ShapeCombination,
        choice: &mut PartialCandidate,
    ) -> Result<(), Diagnostic> {
        let layout = &self.test.layout;
        for (k, o) in self.test.question.observed.iter().enumerate() {
            let ObservedPlace::Memory(v, offset) = o.place else { continue };
            let element = layout.variables()[v as usize].element();
            let mut value = 0;
            for c in layout.cells_of(v) {
                let cell = &layout.cells()[c as usize];
                if cell.offset < offset || cell.offset >= offset + element.max(1) {
                    continue;
                }
                let last = match joint.by_cell[c as usize].as_slice() {
                    [] => cell.initial,
                    // Locks have no value.
                    [.., last] if !joint.skeleton.events()[joint.writes[*last]].kind.writes() => {
                        cell.initial
                    }
                    [one] => choice.values[joint.writes[*one]].1,
                    several => {
                        let at = joint.cells.iter().position(|w| w.first() == several.first());
                        let at = at.ok_or_else(|| {
                            Diagnostic::internal(
                                "a cell with several writes has no coherence order",
                            )
                        })?;
                        choice.values[joint.writes[choice.last[at]]].1
                    }
                };
                value |= last << ((cell.offset - offset) * 8).min(63);
            }
            choice.outcome[k] = value;
        }
        Ok(())
    }
}

/// Rejects more writes than the sets of writes can hold.
fn few_writes(count: usize) -> Result<(), EarlyEnd> {
    if count <= MAX_WRITES {
        return Ok(());
    }
    let message = format!("an execution has {count} writes, which are too many");
    let error = Diagnostic::new(Stage::Unsupported, message);
    Err(EarlyEnd::Refused(
        error.note(format!("at most {MAX_WRITES}; fewer with a lower bound of loops")),
    ))
}

/// Returns the indices of the writes of each cell.
fn by_cell(cells: usize, writes: &[usize], events: &[Event]) -> Vec<Vec<usize>> {
    let mut by_cell = vec![Vec::new(); cells];
    for (i, &w) in writes.iter().enumerate() {
        if let Some(c) = events[w].location {
            by_cell[c as usize].push(i);
        }
    }
    by_cell
}

/// Returns for each of a number of cells true if an event of the shapes accesses it.
fn accessed_cells(count: usize, shapes: &[&PathShape]) -> Vec<bool> {
    let mut out = vec![false; count];
    let cells = shapes.iter().flat_map(|s| &s.events).filter_map(|e| e.cell);
    cells.for_each(|c| out[c as usize] = true);
    out
}

/// Relates the initial writes of an element, which are one access.
fn relate_initial(skeleton: &mut Skeleton, cells: &[MemoryCell]) {
    let initial: Vec<(usize, &MemoryCell)> = (skeleton.events().iter().enumerate())
        .filter(|(_, e)| e.thread.is_none())
        .filter_map(|(i, e)| Some((i, cells.get(e.location? as usize)?)))
        .collect();
    for (i, a) in &initial {
        for (j, b) in &initial {
            if a.variable == b.variable && a.element == b.element {
                skeleton.relate(RelationId::SI, *i, *j);
                skeleton.relate(RelationId::SM, *i, *j);
            }
        }
    }
}

/// Orders one set of writes before another in transitively closed rows. Returns false if that
/// creates a cycle.
fn order(rows: &mut [Writes], from: Writes, to: Writes) -> bool {
    let mut sources = from;
    while sources != 0 {
        let a = sources.trailing_zeros() as usize;
        sources &= sources - 1;
        let mut targets = to & !rows[a];
        while targets != 0 {
            let b = targets.trailing_zeros() as usize;
            targets &= targets - 1;
            if a == b || rows[b] >> a & 1 == 1 {
                return false;
            }
            let add = rows[b] | 1 << b;
            for (x, row) in rows.iter_mut().enumerate() {
                if x == a || *row >> a & 1 == 1 {
                    *row |= add;
                }
            }
        }
    }
    true
}
