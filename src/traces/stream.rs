//! Decision of a trace while its log is read (`sc`, `tso`): memory for the operations that are
//! open, not for the whole trace.
//!
//! In: operations in the order of the log, in parts. Out: a verdict.
//!
//! A window holds the operations that are open. When it is full, its decision as a trace, with the
//! current memory as initial values, gives a run of the machine, which independent code checks. The
//! first half of the run is committed: its stores become memory, its operations are forgotten. The
//! rest of the window is the lookahead that makes the committed choices. The state after a part of
//! a run (memory, and for each thread the operations that are not done) is a state of the machine,
//! so the committed parts together are a run of the whole trace: *allowed* is right for every log.
//! A load without a source in the window waits, with the rest of its thread, for a later part.
//!
//! If a window has no run, the commit before it is undone. If that has no run either, the
//! operations since then are decided without any commit, and without loads of older stores: each
//! run of the trace, restricted to them, is a run of this part. So *forbidden* is right, if each
//! value of the conflict is stored once in the log: a second pass over the log (`Recount`) decides
//! that. Else the answer is unknown. Cost: each operation is decided about twice.
//!
//! Condition for an answer: operations stand in the log near their place in time, as in a log with
//! times; no two sizes share bytes; nothing is open (`?`).

use ahash::{AHashMap, AHashSet};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use std::collections::BTreeMap;

use crate::decide::{Conflict, DecisionOptions, Verdict, Witness, WitnessStep, decide};
use crate::model::TraceModel;
use crate::trace::{Initial, Location, Operation, OperationKind, Trace, TraceBuilder};

/// Number of operations of a full window.
pub const WINDOW: usize = 1 << 16;
/// Limit on the choices that the search of a window revises.
const WINDOW_REVISIONS: u64 = 100_000;

/// Operation of a thread with its position in the log.
#[derive(Clone, Copy, Debug)]
struct StreamedOperation {
    number: u64,
    thread: u32,
    operation: Operation,
}

/// State of the machine, and the operations that are not committed.
#[derive(Clone, Debug, Default)]
struct State {
    /// Value of each location; locations without one have their initial value.
    memory: Vec<Option<u64>>,
    open: Vec<StreamedOperation>,
    /// Number of operations that were read.
    read: u64,
    /// True if an operation was committed before.
    is_later: bool,
}

/// Value of a location, by the name of the location.
pub type NamedValue = (String, u64);

/// Answer for a streamed trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamAnswer {
    /// The model allows the trace.
    Allowed,
    /// The model forbids a part of the trace, if each of the values is stored once in the whole
    /// trace.
    ForbiddenIfUnique {
        /// The part.
        part: Box<Trace>,
        /// The conflict, with operations of the part.
        conflict: Conflict,
        /// Values that have to be unique.
        values: Vec<NamedValue>,
    },
    /// A load of a value that no store in the window has: forbidden if no store of the trace has
    /// it.
    Unsupplied {
        /// The part with the load.
        part: Box<Trace>,
        /// The load.
        load: u32,
        /// Its value.
        value: NamedValue,
    },
    /// The question is open.
    Unknown {
        /// Limit.
        stop: Stop,
        /// The open question in one sentence.
        reason: String,
    },
}

/// Tables of a trace in progress.
#[derive(Clone, Debug, Default)]
struct Tables {
    threads: Vec<String>,
    locations: Vec<Location>,
    /// Size of the accesses to each location; 0: none.
    sizes: Vec<u8>,
    /// Sizes by address.
    addresses: BTreeMap<u64, u8>,
    /// True if an access at an address has no size: its bytes are unknown.
    has_unsized: bool,
}

impl Tables {
    /// Adds the new threads and locations of a builder.
    fn update(&mut self, builder: &TraceBuilder) {
        let known = self.threads.len();
        self.threads.extend(builder.threads().iter().skip(known).cloned());
        let known = self.locations.len();
        self.locations.extend(builder.locations().iter().skip(known).cloned());
        self.sizes.resize(self.locations.len(), 0);
    }
    /// Notes an access. False if accesses of several sizes share bytes, or may share them: some
    /// have a size and others none.
    fn access(&mut self, location: u32, size: u8) -> bool {
        let at = location as usize;
        let has_address = self.locations[at].address.is_some();
        if size == 0 {
            self.has_unsized |= has_address;
            return !has_address || self.addresses.is_empty();
        }
        if has_address && self.has_unsized {
            return false;
        }
        if self.sizes[at] == size {
            return true;
        }
        if self.sizes[at] != 0 {
            return false;
        }
        self.sizes[at] = size;
        let Some(address) = self.locations[at].address else { return true };
        let before = self.addresses.range(..address).next_back();
        let is_free = before.is_none_or(|(a, s)| address - a >= u64::from(*s));
        let after = self.addresses.range(address..).next();
        let is_first = after.is_none_or(|(a, _)| a - address >= u64::from(size));
        self.addresses.insert(address, size);
        is_free && is_first
    }
}

/// Decision of one trace by one model, part by part.
#[derive(Debug)]
pub struct Stream<'m> {
    model: &'m TraceModel,
    options: DecisionOptions,
    window: usize,
    tables: Tables,
    state: State,
    /// The state before the last commit.
    before: Option<State>,
    answer: Option<StreamAnswer>,
}

impl<'m> Stream<'m> {
    /// Creates a decision. `None` if the model has no streams. `window`: the number of operations
    /// of a full window, at least 2.
    pub fn new(
        model: &'m TraceModel,
        options: &DecisionOptions,
        window: usize,
    ) -> Option<Stream<'m>> {
        if !matches!(model, TraceModel::Sc | TraceModel::Tso) {
            return None;
        }
        let max_revisions = options.max_revisions.min(WINDOW_REVISIONS);
        Some(Stream {
            model,
            options: DecisionOptions { max_revisions, ..options.clone() },
            window: window.max(2),
            tables: Tables::default(),
            state: State::default(),
            before: None,
            answer: None,
        })
    }
    /// Returns the number of operations that were added.
    pub fn len(&self) -> u64 {
        self.state.read
    }
    /// True if no operation was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Adds operations in the order of the log, as [`TraceBuilder::drain`] returns them, with the
    /// builder that has their threads and locations.
    ///
    /// # Errors
    /// A violated invariant.
    pub fn add(
        &mut self,
        builder: &TraceBuilder,
        operations: &[(u32, Operation)],
        budget: &Budget,
    ) -> Result<(), Diagnostic> {
        self.update(builder);
        if builder.is_open() {
            self.give_up("the log leaves values or pairs open, which a stream does not decide");
        }
        for &(thread, operation) in operations {
            self.state.read += 1;
            if self.answer.is_some() {
                continue;
            }
            let is_fence = matches!(operation.kind, OperationKind::Fence(_));
            if !is_fence && !self.tables.access(operation.location, operation.size) {
                let line = operation.line;
                self.give_up(format!(
                    "line {line} shares bytes with accesses of another size, which a stream does not decide"
                ));
                continue;
            }
            self.state.open.push(StreamedOperation { number: self.state.read, thread, operation });
            if self.state.open.len() >= self.window {
                self.decide_window(false, &[], budget)?;
            }
        }
        Ok(())
    }
    /// Decides the rest, at the end of the trace.
    ///
    /// # Errors
    /// A violated invariant.
    pub fn finish(
        mut self,
        builder: &TraceBuilder,
        budget: &Budget,
    ) -> Result<StreamAnswer, Diagnostic> {
        self.update(builder);
        let finals: Vec<(u32, u64, u32)> =
            builder.finals().iter().map(|f| (f.location, f.value, f.line)).collect();
        if builder.finals().iter().any(|f| !self.tables.access(f.location, f.size)) {
            self.give_up("a final value has another size than the accesses to its location");
        }
        if self.answer.is_none() {
            self.decide_window(true, &finals, budget)?;
        }
        let skipped = &builder.skipped;
        if let Some(line) = skipped.first()
            && !matches!(
                self.answer,
                None | Some(StreamAnswer::Allowed | StreamAnswer::Unknown { .. })
            )
        {
            self.answer = Some(StreamAnswer::Unknown {
                stop: Stop::States,
                reason: format!(
                    "{} lines with errors were skipped (the first is line {line}), and the rest alone is forbidden",
                    skipped.len()
                ),
            });
        }
        Ok(self.answer.unwrap_or(StreamAnswer::Allowed))
    }
    /// Takes the new threads and locations of a builder.
    fn update(&mut self, builder: &TraceBuilder) {
        let is_late = |(old, new): (&Location, &Location)| old.initial != new.initial;
        if self.tables.locations.iter().zip(builder.locations()).any(is_late) {
            self.give_up("the log gives an initial value behind operations of its location");
        }
        self.tables.update(builder);
        self.state.memory.resize(self.tables.locations.len(), None);
    }
    fn give_up(&mut self, reason: impl Into<String>) {
        if self.answer.is_none() {
            self.answer = Some(StreamAnswer::Unknown { stop: Stop::States, reason: reason.into() });
            self.forget(self.state.read);
        }
    }
    /// Decides the open operations, and commits a part of the run.
    fn decide_window(
        &mut self,
        is_end: bool,
        finals: &[(u32, u64, u32)],
        budget: &Budget,
    ) -> Result<(), Diagnostic> {
        let undone = self.before.as_ref().map(|before| {
            let mut state = before.clone();
            let new = self.state.open.iter().filter(|e| e.number > before.read);
            state.open.extend(new);
            state.memory.resize(self.tables.locations.len(), None);
            state.read = self.state.read;
            state
        });
        let current = std::mem::take(&mut self.state);
        let read = current.read;
        let mut refuted = None;
        for state in [Some(current), undone].into_iter().flatten() {
            let Some((trace, entries)) = self.window_of(&state, is_end, finals)? else {
                refuted = Some(state);
                continue;
            };
            match decide(&trace, self.model, &self.options, budget)? {
                Verdict::Allowed { witness: Witness::Run(steps) } => {
                    self.state = state_after(&state, &trace, &entries, &steps, is_end);
                    self.before = Some(state);
                    return Ok(());
                }
                Verdict::Unknown { stop, reason } if budget.check(0).is_err() => {
                    self.answer = Some(StreamAnswer::Unknown { stop, reason });
                    self.forget(read);
                    return Ok(());
                }
                _ => refuted = Some(state),
            }
        }
        let state = refuted.expect("at least the current state");
        self.answer = Some(self.refute(&state, is_end, finals, budget)?);
        self.forget(read);
        Ok(())
    }
    /// Forgets all operations; `read` of them were read.
    fn forget(&mut self, read: u64) {
        self.state = State { read, ..State::default() };
        self.before = None;
    }
    /// Returns the operations of a state that have sources, as a trace, and the number of each
    /// among the open ones. `None` if too many wait for a source.
    fn window_of(
        &self,
        state: &State,
        is_end: bool,
        finals: &[(u32, u64, u32)],
    ) -> Result<Option<(Trace, Vec<u32>)>, Diagnostic> {
        let waits =
            if is_end { vec![false; state.open.len()] } else { self.waits_for_source(state) };
        let count = waits.iter().filter(|w| !**w).count();
        if count < state.open.len().div_ceil(2) {
            return Ok(None);
        }
        let initial = |l: u32| match state.memory[l as usize] {
            Some(value) => Initial::Value(value),
            None => self.tables.locations[l as usize].initial.clone(),
        };
        let entries = (0u32..).zip(&state.open).zip(&waits).filter(|e| !e.1);
        let entries = entries.map(|((k, e), _)| (k, e.thread, e.operation));
        self.trace(entries, finals, &initial).map(Some)
    }
    /// Returns a trace of operations, and the key of each in the order of the trace.
    fn trace(
        &self,
        entries: impl Iterator<Item = (u32, u32, Operation)> + Clone,
        finals: &[(u32, u64, u32)],
        initial: &dyn Fn(u32) -> Initial,
    ) -> Result<(Trace, Vec<u32>), Diagnostic> {
        let mut builder = TraceBuilder::default();
        for name in &self.tables.threads {
            builder.thread(name);
        }
        let mut places: AHashMap<u32, u32> = AHashMap::new();
        let mut place = |builder: &mut TraceBuilder, l: u32| {
            *places.entry(l).or_insert_with(|| {
                let new = builder.named_location(&self.tables.locations[l as usize].name);
                builder.set_initial(new, 0, initial(l));
                new
            })
        };
        let mut keys: Vec<Vec<u32>> = vec![Vec::new(); self.tables.threads.len()];
        for (key, thread, o) in entries {
            let is_fence = matches!(o.kind, OperationKind::Fence(_));
            let location = if is_fence { 0 } else { place(&mut builder, o.location) };
            builder.push(thread, Operation { location, size: 0, ..o });
            keys[thread as usize].push(key);
        }
        for &(location, value, line) in finals {
            let location = place(&mut builder, location);
            builder.last(location, 0, value, line);
        }
        Ok((builder.finish()?, keys.concat()))
    }
    /// True for each operation that waits for a source, or for an earlier operation of its thread
    /// that does.
    fn waits_for_source(&self, state: &State) -> Vec<bool> {
        let open = &state.open;
        let mut waits = vec![false; open.len()];
        let mut stores: AHashMap<(u32, u64), u32> = AHashMap::new();
        for e in open.iter().filter(|e| e.operation.kind.stores()) {
            *stores.entry((e.operation.location, e.operation.stored)).or_default() += 1;
        }
        let in_memory = |o: &Operation| match state.memory[o.location as usize] {
            Some(value) => value == o.loaded,
            None => match &self.tables.locations[o.location as usize].initial {
                Initial::Zero => o.loaded == 0,
                Initial::Value(value) => *value == o.loaded,
                Initial::Unknown | Initial::Bytes(_) => true,
            },
        };
        loop {
            let mut is_changed = false;
            let mut stopped = vec![false; self.tables.threads.len()];
            for (e, waits) in open.iter().zip(&mut waits) {
                let o = &e.operation;
                let stop = &mut stopped[e.thread as usize];
                let source = || stores.get(&(o.location, o.loaded)).is_some_and(|n| *n > 0);
                if !*stop && o.kind.loads() && !in_memory(o) && !source() {
                    *stop = true;
                }
                if *stop && !*waits {
                    (*waits, is_changed) = (true, true);
                    if o.kind.stores()
                        && let Some(n) = stores.get_mut(&(o.location, o.stored))
                    {
                        *n -= 1;
                    }
                }
            }
            if !is_changed {
                return waits;
            }
        }
    }
    /// Returns the answer for operations without a run: a part that the model forbids without any
    /// commit, or unknown.
    fn refute(
        &self,
        state: &State,
        is_end: bool,
        finals: &[(u32, u64, u32)],
        budget: &Budget,
    ) -> Result<StreamAnswer, Diagnostic> {
        let stored: AHashSet<(u32, u64)> = (state.open.iter().map(|e| e.operation))
            .filter(|o| o.kind.stores())
            .map(|o| (o.location, o.stored))
            .collect();
        let given = |l: u32| match &self.tables.locations[l as usize].initial {
            Initial::Zero => Some(0),
            Initial::Value(value) => Some(*value),
            _ => None,
        };
        let has = |l: u32, value: u64| {
            stored.contains(&(l, value)) || !state.is_later && given(l) == Some(value)
        };
        // A value that nobody loads: loads of the initial value of a later part are left out.
        let unused = (0..u64::MAX).rev().find(|v| {
            !state.open.iter().any(|e| e.operation.loaded == *v || e.operation.stored == *v)
        });
        let unused = Initial::Value(unused.unwrap_or(u64::MAX));
        let initial = |l: u32| match (state.is_later, given(l)) {
            (false, Some(value)) => Initial::Value(value),
            _ => unused.clone(),
        };
        let mut unsupplied = None;
        let mut entries = Vec::with_capacity(state.open.len());
        for (k, e) in (0u32..).zip(&state.open) {
            let mut o = e.operation;
            if o.kind.loads() && !has(o.location, o.loaded) {
                let is_known = state.memory[o.location as usize] == Some(o.loaded);
                if given(o.location).is_some() && !is_known && unsupplied.is_none() {
                    unsupplied = Some(*e);
                }
                if o.kind == OperationKind::Load {
                    continue;
                }
                o = Operation {
                    mark: o.mark.of_store(),
                    kind: OperationKind::Store,
                    loaded: 0,
                    ..o
                };
            }
            entries.push((k, e.thread, o));
        }
        let finals: Vec<(u32, u64, u32)> =
            finals.iter().filter(|f| has(f.0, f.1)).copied().collect();
        let (part, _) = self.trace(entries.iter().copied(), &finals, &initial)?;
        let verdict = decide(&part, self.model, &self.options, budget)?;
        if let Verdict::Forbidden { conflict } = verdict {
            let is_whole = is_end && !state.is_later && entries.len() == state.open.len();
            let values = if is_whole && unsupplied.is_none() {
                Vec::new()
            } else {
                values_of(&part, &conflict)
            };
            return Ok(StreamAnswer::ForbiddenIfUnique { part: Box::new(part), conflict, values });
        }
        if let Some(e) = unsupplied {
            let (part, _) =
                self.trace([(0, e.thread, e.operation)].into_iter(), &[], &|_| unused.clone())?;
            let name = self.tables.locations[e.operation.location as usize].name.clone();
            let value = (name, e.operation.loaded);
            return Ok(StreamAnswer::Unsupplied { part: Box::new(part), load: 0, value });
        }
        let (first, last) = (state.open.first(), state.open.last());
        let line = |e: Option<&StreamedOperation>| e.map_or(0, |e| e.operation.line);
        if let Verdict::Unknown { stop, reason } = verdict {
            return Ok(StreamAnswer::Unknown { stop, reason });
        }
        Ok(StreamAnswer::Unknown {
            stop: Stop::States,
            reason: format!(
                "the operations of lines {} to {} explain the values alone, but not after those before them as they were decided; without `--stream` the whole trace is decided",
                line(first),
                line(last)
            ),
        })
    }
}

/// Returns the values that the loads of a conflict and its final values have.
fn values_of(part: &Trace, conflict: &Conflict) -> Vec<NamedValue> {
    let name = |l: u32| part.locations[l as usize].name.clone();
    let loads = conflict.operations.iter().map(|i| *i as usize).filter(|i| {
        part.kind(*i).loads() && conflict.only_stores.binary_search(&(narrow::index(*i))).is_err()
    });
    let loads = loads.map(|i| (name(part.location(i)), part.loaded_value(i)));
    let finals = conflict.finals.iter().map(|f| &part.finals[*f]);
    let mut out: Vec<NamedValue> =
        loads.chain(finals.map(|f| (name(f.location), f.value))).collect();
    out.sort();
    out.dedup();
    out
}

/// Returns the state after the first half of a run; after all of it at the end of a trace.
fn state_after(
    state: &State,
    trace: &Trace,
    entries: &[u32],
    steps: &[WitnessStep],
    is_end: bool,
) -> State {
    let half = if is_end { steps.len() } else { steps.len() / 2 };
    let mut done = vec![false; state.open.len()];
    let mut memory = state.memory.clone();
    for &step in &steps[..half] {
        let (WitnessStep::Perform(i) | WitnessStep::Reach(i)) = step;
        let entry = &state.open[entries[i as usize] as usize];
        let o = &entry.operation;
        done[entries[i as usize] as usize] = true;
        match o.kind {
            OperationKind::Store | OperationKind::Update => {
                memory[o.location as usize] = Some(o.stored)
            }
            OperationKind::Load => {
                // The first load of an unknown initial value determines it.
                let location = &trace.locations[trace.location(i as usize) as usize];
                if location.initial == Initial::Unknown && memory[o.location as usize].is_none() {
                    memory[o.location as usize] = Some(o.loaded);
                }
            }
            OperationKind::Fence(_) => {}
        }
    }
    let open = state.open.iter().zip(done).filter(|e| !e.1).map(|e| *e.0).collect();
    State { memory, open, read: state.read, is_later: state.is_later || half > 0 }
}

/// Count of the stores of some values in a trace: the second pass over a log.
#[derive(Clone, Debug)]
pub struct Recount {
    wanted: AHashMap<NamedValue, u64>,
}

impl Recount {
    /// Creates a count of values.
    pub fn new(values: impl IntoIterator<Item = NamedValue>) -> Recount {
        Recount { wanted: values.into_iter().map(|v| (v, 0)).collect() }
    }
    /// Counts the stores among operations, and the initial values of their locations once, at the
    /// end of the trace.
    pub fn add(&mut self, builder: &TraceBuilder, operations: &[(u32, Operation)], is_end: bool) {
        let locations = builder.locations();
        let values: AHashSet<u64> = self.wanted.keys().map(|v| v.1).collect();
        let mut count = |l: &Location, value: u64| {
            if values.contains(&value)
                && let Some(n) = self.wanted.get_mut(&(l.name.clone(), value))
            {
                *n += 1;
            }
        };
        for (_, o) in operations.iter().filter(|o| o.1.kind.stores()) {
            count(&locations[o.location as usize], o.stored);
        }
        for l in locations.iter().filter(|_| is_end) {
            match l.initial {
                Initial::Zero => count(l, 0),
                Initial::Value(value) => count(l, value),
                _ => {}
            }
        }
    }
    /// Returns the number of sources of a value: stores, and one for the initial value.
    pub fn sources(&self, value: &NamedValue) -> u64 {
        self.wanted.get(value).copied().unwrap_or(0)
    }
}

impl StreamAnswer {
    /// Returns the values that a second pass over the log has to count.
    pub fn doubts(&self) -> Vec<NamedValue> {
        match self {
            StreamAnswer::ForbiddenIfUnique { values, .. } => values.clone(),
            StreamAnswer::Unsupplied { value, .. } => vec![value.clone()],
            _ => Vec::new(),
        }
    }
    /// Returns the answer after the second pass. `count` has the sources of
    /// [`StreamAnswer::doubts`]; `None` if the log could not be read twice.
    pub fn settle(self, count: Option<&Recount>) -> FinalAnswer {
        let unknown = |reason: String| FinalAnswer::Unknown { stop: Stop::States, reason };
        match self {
            StreamAnswer::Allowed => FinalAnswer::Allowed,
            StreamAnswer::Unknown { stop, reason } => FinalAnswer::Unknown { stop, reason },
            StreamAnswer::ForbiddenIfUnique { part, conflict, values } => {
                let empty = Recount::new([]);
                let message = &conflict.message;
                let Some(count) = count.or(values.is_empty().then_some(&empty)) else {
                    return unknown(format!(
                        "{message}, if each value is stored once; a file, which is read twice, decides that"
                    ));
                };
                match values.iter().find(|v| count.sources(v) != 1) {
                    None => FinalAnswer::Forbidden { part, conflict },
                    Some((name, value)) => unknown(format!(
                        "{message}, but the value {value} of {name} has several sources in the log"
                    )),
                }
            }
            StreamAnswer::Unsupplied { part, load, value } => {
                let line = part.line(load as usize);
                let message = format!("line {line} loads {}, which is", value.1);
                match count {
                    Some(count) if count.sources(&value) == 0 => {
                        let message = format!("{message} neither stored nor the initial value");
                        let conflict = Conflict::without_cycle(vec![load], Vec::new(), message);
                        FinalAnswer::Forbidden { part, conflict }
                    }
                    Some(_) => unknown(format!(
                        "{message} not stored near it; without `--stream` the whole trace is decided"
                    )),
                    None => unknown(format!(
                        "{message} not stored near it; a file, which is read twice, decides more"
                    )),
                }
            }
        }
    }
}

/// Answer after the second pass.
#[derive(Debug)]
pub enum FinalAnswer {
    /// The model allows the trace.
    Allowed,
    /// The model forbids a part of the trace.
    Forbidden {
        /// The part.
        part: Box<Trace>,
        /// The conflict, with operations of the part.
        conflict: Conflict,
    },
    /// The question is open.
    Unknown {
        /// Limit.
        stop: Stop,
        /// The open question in one sentence.
        reason: String,
    },
}
