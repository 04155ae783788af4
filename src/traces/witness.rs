//! Check of witnesses: a replay of an order of memory events, independent of the decision.
//!
//! The replay has the values of memory, and for each thread the highest positions of the events
//! that took place. An event is rejected if its value is wrong, or if an event of its thread that
//! the model orders behind it took place already. The rules are written here once more, from the
//! definitions of the models, without edges. Cost: linear times a logarithm, except for loads of
//! one location in `rvwmo` and `armv8`, which look at later loads up to the next store.

use ahash::AHashMap;
use mu_base::{Diagnostic, narrow};

use crate::decide::{Witness, WitnessStep};
use crate::model::TraceModel;
use crate::trace::{Annotations, Fence, Initial, OperationKind, Trace};

/// Checks a witness.
///
/// # Errors
/// The witness is not one: an internal error, because the decision created it.
pub fn check(trace: &Trace, model: &TraceModel, witness: &Witness) -> Result<(), Diagnostic> {
    let outcome = match witness {
        Witness::Run(steps) => Replay::new(trace, model).run(steps),
        Witness::Order { operations, coherence, reads_from } => {
            values(trace, operations, coherence, reads_from)
        }
        Witness::Execution { .. } => Err("an execution".to_string()),
    };
    outcome.map_err(|message| {
        Diagnostic::internal(format!(
            "the witness for trace {} under {} is wrong: {message}",
            trace.title(),
            model.name()
        ))
    })
}

/// Checks an order of operations with orders of values (`pow`).
///
/// The highest value of each location that a thread saw before any earlier fence is a floor for
/// all that threads see behind later fences and behind the ends of later loads.
fn values(
    trace: &Trace,
    operations: &[u32],
    coherence: &[Vec<u32>],
    reads_from: &[(u32, Option<u32>)],
) -> Result<(), String> {
    let n = trace.len();
    let mut replay = Replay::new(trace, &TraceModel::Wmo);
    // The rank of each store among the values of its location; the initial value has rank 0.
    let mut rank = vec![0usize; n];
    let mut stores = 0;
    for (place, list) in coherence.iter().enumerate() {
        for (k, &i) in list.iter().enumerate() {
            let o = trace.operation(i as usize);
            if !o.kind.stores() || o.location as usize != place || rank[i as usize] != 0 {
                return Err(format!("{} is in a wrong order", replay.text(i as usize)));
            }
            rank[i as usize] = k + 1;
            stores += 1;
        }
    }
    if stores != (0..n).filter(|i| trace.kind(*i).stores()).count() {
        return Err("a store has no place in the order of its location".to_string());
    }
    for list in coherence {
        let mut last = 0;
        for &i in list {
            last = checked_commit(trace, i as usize, last, &replay)?;
        }
    }
    let sources = checked_sources(trace, reads_from, &replay)?;
    let source = |i: usize| sources.get(&i).copied().flatten();
    let loaded = |i: usize| source(i).map_or(0, |s| rank[s]);
    for f in &trace.finals {
        let list = &coherence[f.location as usize];
        if list.last().is_some_and(|i| trace.stored_value(*i as usize) != f.value) {
            return Err(format!("the final value of line {} differs", f.line));
        }
    }
    // What each thread sees at a location does not decrease.
    for t in 0..trace.threads.len() {
        let mut seen: AHashMap<u32, usize> = AHashMap::new();
        for i in trace.range(t) {
            let kind = trace.kind(i);
            let seen = seen.entry(trace.location(i)).or_default();
            let ranks = [kind.loads().then(|| loaded(i)), kind.stores().then_some(rank[i])];
            for rank in ranks.into_iter().flatten() {
                if rank < *seen {
                    return Err(format!("{} sees an older value", replay.text(i)));
                }
                *seen = rank;
            }
            if kind == OperationKind::Update && loaded(i) + 1 != rank[i] {
                return Err(format!("another store interrupts {}", replay.text(i)));
            }
        }
    }
    let mut floor = vec![0usize; trace.locations.len()];
    let check = |floor: &[usize], from: usize, t: usize| -> Result<(), String> {
        let mut first: AHashMap<u32, ()> = AHashMap::new();
        for i in from..trace.range(t).end {
            let kind = trace.kind(i);
            if matches!(kind, OperationKind::Fence(_))
                || first.insert(trace.location(i), ()).is_some()
            {
                continue;
            }
            let sees = if kind.loads() { loaded(i) } else { rank[i] };
            if sees < floor[trace.location(i) as usize] {
                return Err(format!("line {} sees an older value", trace.line(i)));
            }
            if first.len() == trace.locations.len() {
                break;
            }
        }
        Ok(())
    };
    let mut behind: Vec<AHashMap<u32, usize>> = vec![AHashMap::new(); trace.threads.len()];
    let mut scanned: Vec<usize> = (0..trace.threads.len()).map(|t| trace.range(t).start).collect();
    let mut placed = vec![false; n];
    for &i in operations {
        let i = i as usize;
        let t = replay.thread_of[i] as usize;
        if std::mem::replace(&mut placed[i], true) {
            return Err(format!("it has {} twice", replay.text(i)));
        }
        match trace.kind(i) {
            OperationKind::Fence(_) => {
                check(&floor, i, t)?;
                // All accesses before the fence took place.
                for j in scanned[t]..i {
                    if !placed[j] {
                        return Err(format!("{} is late", replay.text(j)));
                    }
                    let kind = trace.kind(j);
                    if !matches!(kind, OperationKind::Fence(_)) {
                        let sees = if kind.stores() { rank[j] } else { loaded(j) };
                        behind[t].insert(trace.location(j), sees);
                    }
                }
                scanned[t] = i;
                for (place, sees) in &behind[t] {
                    let floor = &mut floor[*place as usize];
                    *floor = (*floor).max(*sees);
                }
            }
            kind => {
                if kind.loads() {
                    if let Some(end) = trace.operation(i).end {
                        let range = i + 1..trace.range(t).end;
                        let later = range
                            .clone()
                            .find(|j| trace.operation(*j).begin.is_some_and(|b| b > end));
                        if let Some(from) = later {
                            check(&floor, from, t)?;
                        }
                    }
                    if source(i).is_some_and(|s| s != i && !placed[s]) {
                        return Err(format!("{} comes before its source", replay.text(i)));
                    }
                    replay.order(i, true)?;
                }
                if kind.stores() {
                    replay.order(i, false)?;
                }
                replay.note(i);
            }
        }
    }
    if placed.contains(&false) { Err("it lacks operations".to_string()) } else { Ok(()) }
}

/// Checks that a store follows those of its location with lower positions in the order of memory
/// that the log gives. `last`: the highest position so far. Returns the highest one with it.
fn checked_commit(trace: &Trace, i: usize, last: u64, replay: &Replay<'_>) -> Result<u64, String> {
    match trace.operation(i).commit {
        Some(commit) if commit < last => {
            Err(format!("{} is late in the order of memory of the log", replay.text(i)))
        }
        commit => Ok(commit.unwrap_or(last)),
    }
}

/// Checks that each load has one source, with its location and value.
fn checked_sources(
    trace: &Trace,
    reads_from: &[(u32, Option<u32>)],
    replay: &Replay<'_>,
) -> Result<AHashMap<usize, Option<usize>>, String> {
    let mut sources: AHashMap<usize, Option<usize>> = AHashMap::new();
    // The value of each location without a known initial value is that of the loads that read it.
    let mut initial = replay.memory.clone();
    for &(load, store) in reads_from {
        let (i, place) = (load as usize, trace.location(load as usize));
        let wanted = trace.loaded_value(i);
        let is_right = match store.map(|s| s as usize) {
            Some(s) => {
                trace.kind(s).stores()
                    && trace.location(s) == place
                    && trace.stored_value(s) == wanted
            }
            None => *initial[place as usize].get_or_insert(wanted) == wanted,
        };
        let twice = sources.insert(i, store.map(|s| s as usize)).is_some();
        if !is_right || twice || !trace.kind(i).loads() {
            return Err(format!("{} has a wrong source", replay.text(i)));
        }
    }
    if let Some(i) = (0..trace.len()).find(|i| trace.kind(*i).loads() && !sources.contains_key(i)) {
        return Err(format!("{} has no source", replay.text(i)));
    }
    Ok(sources)
}

/// Sources of loads: the initial value, or a store.
const INITIAL: u32 = u32::MAX;
/// No source yet, no store, no position.
const NOTHING: u32 = u32::MAX - 1;

/// Highest positions, each one more than an operation's index; 0 if there is none.
#[derive(Clone, Copy, Default)]
struct HighestPositions {
    load: u32,
    store: u32,
    release: u32,
    acquire: u32,
    annotated: u32,
}

struct Replay<'t> {
    trace: &'t Trace,
    model: &'t TraceModel,
    split: bool,
    memory: Vec<Option<u64>>,
    /// Highest position of a store to each location in the order of memory of the log.
    commits: Vec<u64>,
    writer: Vec<u32>,
    loaded: Vec<bool>,
    stored: Vec<bool>,
    source: Vec<u32>,
    thread_of: Vec<u32>,
    /// Last earlier store, and next access, of the thread to the location.
    own: Vec<u32>,
    next: Vec<u32>,
    /// First later fence that orders loads or stores before loads or stores. One column serves all
    /// four kinds if all fences are full; there is none without fences.
    fences: Vec<Vec<u32>>,
    /// Begin times, inherited; empty if the log has none.
    begins: Vec<u64>,
    threads: Vec<HighestPositions>,
    places: AHashMap<(u32, u32), HighestPositions>,
}

impl<'t> Replay<'t> {
    fn new(trace: &'t Trace, model: &'t TraceModel) -> Self {
        let n = trace.len();
        let initial = |i: &Initial| match i {
            Initial::Zero => Some(0),
            Initial::Value(v) => Some(*v),
            Initial::Unknown | Initial::Bytes(_) => None,
        };
        let split = matches!(model, TraceModel::Rvwmo | TraceModel::Armv8);
        let fence = |i: usize| match trace.kind(i) {
            OperationKind::Fence(fence) => Some(fence),
            _ => None,
        };
        let columns = match (0..n).filter_map(fence).map(|f| f == Fence::FULL).min() {
            None => 0,
            Some(true) => 1,
            Some(false) => 4,
        };
        let mut replay = Replay {
            trace,
            model,
            split,
            memory: trace.locations.iter().map(|l| initial(&l.initial)).collect(),
            commits: vec![0; trace.locations.len()],
            writer: vec![INITIAL; trace.locations.len()],
            loaded: vec![false; n],
            stored: vec![false; n],
            source: vec![NOTHING; n],
            thread_of: vec![0; n],
            own: vec![NOTHING; n],
            next: if split { vec![NOTHING; n] } else { Vec::new() },
            fences: vec![vec![NOTHING; n]; columns],
            begins: if trace.has_times() { vec![0; n] } else { Vec::new() },
            threads: vec![HighestPositions::default(); trace.threads.len()],
            places: AHashMap::new(),
        };
        for t in 0..trace.threads.len() {
            replay.scan(t);
        }
        replay
    }
    /// Computes the tables of a thread.
    fn scan(&mut self, t: usize) {
        let kinds = [Fence::RR, Fence::RW, Fence::WR, Fence::WW];
        let mut next: AHashMap<u32, u32> = AHashMap::new();
        let mut fences = [NOTHING; 4];
        for i in self.trace.range(t).rev() {
            self.thread_of[i] = narrow::index(t);
            let kind = self.trace.kind(i);
            for ((column, kind_of_fence), fence) in
                self.fences.iter_mut().zip(kinds).zip(&mut fences)
            {
                column[i] = *fence;
                if let OperationKind::Fence(f) = kind
                    && f.includes(kind_of_fence)
                {
                    *fence = narrow::index(i);
                }
            }
            if self.split && !matches!(kind, OperationKind::Fence(_)) {
                let later = next.insert(self.trace.location(i), narrow::index(i));
                self.next[i] = later.unwrap_or(NOTHING);
            }
        }
        let mut own: AHashMap<u32, u32> = AHashMap::new();
        let mut begin = 0;
        for i in self.trace.range(t) {
            let is_fence = matches!(self.trace.kind(i), OperationKind::Fence(_));
            if let Some(inherited) = self.begins.get_mut(i) {
                begin = self.trace.operation(i).begin.filter(|_| !is_fence).unwrap_or(begin);
                *inherited = begin;
            }
            if is_fence {
                continue;
            }
            let place = self.trace.location(i);
            self.own[i] = own.get(&place).copied().unwrap_or(NOTHING);
            if self.trace.kind(i).stores() {
                own.insert(place, narrow::index(i));
            }
        }
    }
    fn text(&self, i: usize) -> String {
        let t = self.thread_of[i] as usize;
        format!(
            "thread {}, line {}: {}",
            self.trace.threads[t],
            self.trace.line(i),
            self.trace.text(i)
        )
    }
    fn run(mut self, steps: &[WitnessStep]) -> Result<(), String> {
        for step in steps {
            match *step {
                WitnessStep::Perform(i) => self.perform(i as usize)?,
                WitnessStep::Reach(i) => self.reach(i as usize)?,
            }
        }
        for i in 0..self.trace.len() {
            let kind = self.trace.kind(i);
            let fence = matches!(kind, OperationKind::Fence(_));
            let loads = fence || kind.loads();
            if loads && !self.loaded[i] || kind.stores() && !self.stored[i] {
                return Err(format!("it lacks {}", self.text(i)));
            }
        }
        for f in &self.trace.finals {
            if self.memory[f.location as usize].is_some_and(|v| v != f.value) {
                return Err(format!("the final value of line {} differs", f.line));
            }
        }
        Ok(())
    }
    fn perform(&mut self, i: usize) -> Result<(), String> {
        if self.loaded[i] {
            return Err(format!("it has {} twice", self.text(i)));
        }
        match self.trace.kind(i) {
            OperationKind::Fence(_) => {
                self.loaded[i] = true;
                Ok(())
            }
            OperationKind::Load => self.load(i),
            OperationKind::Update if self.model.splits(self.trace.mark(i)) => self.load(i),
            OperationKind::Update => {
                let own = self.own[i];
                if own != NOTHING && !self.stored[own as usize] {
                    return Err(format!("{} is before its own store", self.text(i)));
                }
                self.load(i)?;
                self.store(i)
            }
            OperationKind::Store if matches!(self.model, TraceModel::Sc) => self.store(i),
            OperationKind::Store => Err(format!("{} has to reach memory", self.text(i))),
        }
    }
    fn reach(&mut self, i: usize) -> Result<(), String> {
        match self.trace.kind(i) {
            OperationKind::Store => self.store(i),
            OperationKind::Update if self.model.splits(self.trace.mark(i)) => {
                if !self.loaded[i] {
                    return Err(format!("{} stores before it loads", self.text(i)));
                }
                let place = self.trace.location(i) as usize;
                if self.writer[place] != self.source[i] {
                    return Err(format!("another store interrupts {}", self.text(i)));
                }
                self.store(i)
            }
            _ => Err(format!("{} does not reach memory on its own", self.text(i))),
        }
    }
    /// Returns the key of a location: one for all in models without orders by location.
    fn key(&self, place: u32) -> u32 {
        if matches!(self.model, TraceModel::Sc | TraceModel::Tso) { 0 } else { place }
    }
    /// Records that all of an access took place.
    fn note(&mut self, i: usize) {
        let (thread, place) = (self.thread_of[i], self.trace.location(i));
        let key = (thread, self.key(place));
        let here = self.places.entry(key).or_default();
        for h in [here, &mut self.threads[thread as usize]] {
            if self.trace.kind(i).loads() {
                h.load = h.load.max(narrow::index(i) + 1);
            }
            if self.trace.kind(i).stores() {
                h.store = h.store.max(narrow::index(i) + 1);
            }
        }
    }
    fn load(&mut self, i: usize) -> Result<(), String> {
        let place = self.trace.location(i) as usize;
        let own = self.own[i];
        let value = if own != NOTHING && !self.stored[own as usize] {
            self.source[i] = own;
            Some(self.trace.stored_value(own as usize))
        } else {
            self.source[i] = self.writer[place];
            self.memory[place]
        };
        let wanted = self.trace.loaded_value(i);
        if value.is_none() {
            // The first load of an unknown initial value determines it.
            self.memory[place] = Some(wanted);
        } else if value != Some(wanted) {
            return Err(format!("{} finds another value", self.text(i)));
        }
        self.order(i, true)?;
        self.loaded[i] = true;
        let (thread, mark) = (self.thread_of[i], self.trace.mark(i).of_load());
        let update = self.trace.kind(i) == OperationKind::Update;
        let annotated = (update || self.trace.mark(i).is_pair()) && mark.is_strong();
        let riscv = matches!(self.model, TraceModel::Rvwmo);
        let key = (thread, self.key(narrow::index(place)));
        let here = self.places.entry(key).or_default();
        for h in [here, &mut self.threads[thread as usize]] {
            h.load = h.load.max(narrow::index(i) + 1);
            if mark.has(Annotations::ACQUIRE) {
                h.acquire = h.acquire.max(narrow::index(i) + 1);
            }
            if annotated {
                h.annotated = h.annotated.max(narrow::index(i) + 1);
            }
            if riscv && mark.has(Annotations::RELEASE) {
                h.release = h.release.max(narrow::index(i) + 1);
            }
        }
        Ok(())
    }
    fn store(&mut self, i: usize) -> Result<(), String> {
        if self.stored[i] {
            return Err(format!("it has {} twice", self.text(i)));
        }
        self.order(i, false)?;
        let place = self.trace.location(i) as usize;
        self.stored[i] = true;
        let last = checked_commit(self.trace, i, self.commits[place], self)?;
        self.commits[place] = last;
        self.memory[place] = Some(self.trace.stored_value(i));
        self.writer[place] = narrow::index(i);
        let (thread, mark) = (self.thread_of[i], self.trace.mark(i).of_store());
        let annotated = self.trace.mark(i).is_pair() && mark.is_strong();
        let key = (thread, self.key(narrow::index(place)));
        let here = self.places.entry(key).or_default();
        for h in [here, &mut self.threads[thread as usize]] {
            h.store = h.store.max(narrow::index(i) + 1);
            if annotated {
                h.annotated = h.annotated.max(narrow::index(i) + 1);
            }
            if mark.has(Annotations::RELEASE) {
                h.release = h.release.max(narrow::index(i) + 1);
            }
        }
        Ok(())
    }
    /// Checks that no event which the model orders behind the load or store of an operation took
    /// place.
    fn order(&self, i: usize, load: bool) -> Result<(), String> {
        let at = narrow::index(i) + 1;
        let all = self.threads[self.thread_of[i] as usize];
        let key = (self.thread_of[i], self.key(self.trace.location(i)));
        let here = self.places.get(&key).copied().unwrap_or_default();
        let late = |wrong: bool| {
            if wrong { Err(format!("{} is late", self.text(i))) } else { Ok(()) }
        };
        let row = usize::from(!load);
        for (b, highest) in [(0, all.load), (1, all.store)] {
            let fence = match self.fences.len() {
                0 => NOTHING,
                1 => self.fences[0][i],
                _ => self.fences[2 * row + b][i],
            };
            late(fence != NOTHING && highest > fence)?;
        }
        let any = all.load.max(all.store);
        match self.model {
            TraceModel::Sc => late(any > at),
            TraceModel::Tso if load => late(any > at),
            TraceModel::Tso => late(all.store > at),
            TraceModel::Pso if load => late(any > at),
            TraceModel::Pso => late(here.store > at),
            TraceModel::Wmo if load => {
                late(here.load.max(here.store) > at)?;
                let Some(end) = self.trace.operation(i).end else { return Ok(()) };
                let range = i + 1..self.trace.range(self.thread_of[i] as usize).end;
                let later = self.begins[range.clone()].partition_point(|b| *b <= end);
                late(any > narrow::index(range.start + later))
            }
            TraceModel::Wmo => late(here.store > at),
            TraceModel::Rvwmo | TraceModel::Armv8 => self.weak_order(i, load, &all, &here, &late),
            _ => Err("the model has no run".to_string()),
        }
    }
    fn weak_order(
        &self,
        i: usize,
        load: bool,
        all: &HighestPositions,
        here: &HighestPositions,
        late: &dyn Fn(bool) -> Result<(), String>,
    ) -> Result<(), String> {
        let at = narrow::index(i) + 1;
        let riscv = matches!(self.model, TraceModel::Rvwmo);
        let whole = self.trace.mark(i);
        let mark = if load { whole.of_load() } else { whole.of_store() };
        let update = self.trace.kind(i) == OperationKind::Update;
        let any = all.load.max(all.store);
        late(here.store > at)?;
        // Everything before a release.
        late(all.release > at)?;
        // Everything behind an acquire.
        let waits = match (load, riscv) {
            (true, _) => mark.acquires(),
            (false, true) => mark.acquires(),
            (false, false) => {
                update
                    && mark.has(Annotations::ACQUIRE.union(Annotations::RELEASE))
                    && !whole.is_pair()
            }
        };
        late(waits && any > at)?;
        // Annotated accesses.
        if riscv {
            let atomic = update || whole.is_pair();
            late(atomic && mark.is_strong() && all.annotated > at)?;
        } else {
            late(!load && mark.has(Annotations::RELEASE) && all.acquire > at)?;
        }
        if !load {
            return Ok(());
        }
        // Loads of other stores, up to the next store of the thread.
        let mut j = self.next[i];
        while !update && j != NOTHING && j < here.load {
            let kind = self.trace.kind(j as usize);
            if kind == OperationKind::Store {
                break;
            }
            let other = self.source[j as usize] != self.source[i];
            late(self.loaded[j as usize] && other)?;
            if kind == OperationKind::Update {
                break;
            }
            j = self.next[j as usize];
        }
        // The value of an update of the own thread.
        let source = self.source[i];
        let forwarded = source < NOTHING
            && self.thread_of[source as usize] == self.thread_of[i]
            && !self.stored[source as usize];
        let update = forwarded && self.trace.kind(source as usize) == OperationKind::Update;
        if update && (riscv || mark.acquires()) {
            return Err(format!("{} is before the update that it reads", self.text(i)));
        }
        Ok(())
    }
}
