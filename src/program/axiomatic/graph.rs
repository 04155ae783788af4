//! Partial executions: events with their reads-from, the forced parts of uniproc and ghb, and the
//! positions of the threads.
//!
//! Every change reports whether both relations are still acyclic. The caller drops a graph with a
//! cycle.

use super::super::expr::Expr;
use super::super::{Access, Fence, Next, Program, Register, Step};
use super::Axioms;
use super::relation::{EventRelation, MAX_EVENTS, bits};
use mu_base::{Diagnostic, Stage};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A locked instruction that writes.
    Update,
    /// A locked instruction that only reads: a comparison that failed.
    Test,
    /// A fence.
    Fence(Fence),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphEvent {
    /// Its thread.
    pub thread: usize,
    /// Its kind.
    pub kind: EventKind,
    /// The cell; 0 for a fence.
    pub cell: usize,
    /// The value that it reads.
    pub read: u64,
    /// The value that it writes.
    pub written: u64,
    /// The event that it reads from; `None` for the initial value.
    pub source: Option<usize>,
    /// Its instruction in its thread.
    pub instruction: u32,
}

impl GraphEvent {
    /// True if it reads memory.
    pub fn reads(&self) -> bool {
        matches!(self.kind, EventKind::Read | EventKind::Update | EventKind::Test)
    }
    /// True if it writes memory.
    pub fn writes(&self) -> bool {
        matches!(self.kind, EventKind::Write | EventKind::Update)
    }
    /// True if it orders all events before it before all events after it.
    fn is_full(&self) -> bool {
        matches!(self.kind, EventKind::Update | EventKind::Test | EventKind::Fence(Fence::Full))
    }
}

/// A consistent execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its events; the events of a thread are in program order.
    pub events: Vec<GraphEvent>,
    /// For each cell, its writes in coherence order.
    pub coherence: Vec<Vec<usize>>,
}

/// A relation between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RelationKind {
    /// Program order.
    Po,
    /// A load reads from a store.
    Rf,
    /// A store is before another one to its cell.
    Co,
    /// A load reads a value that is older than that of a store.
    Fr,
}

impl Execution {
    /// Returns the edges between adjacent events; all others follow by composition with program
    /// order and coherence. Loads of an initial value have no reads-from edge.
    pub fn edges(&self) -> Vec<(usize, RelationKind, usize)> {
        let mut out = Vec::new();
        for (a, e) in self.events.iter().enumerate() {
            out.extend(
                (a + 1..self.events.len())
                    .find(|&b| self.events[b].thread == e.thread)
                    .map(|b| (a, RelationKind::Po, b)),
            );
        }
        out.extend(
            self.events
                .iter()
                .enumerate()
                .filter_map(|(b, e)| e.source.map(|a| (a, RelationKind::Rf, b))),
        );
        out.extend(
            self.coherence
                .iter()
                .flat_map(|list| list.windows(2).map(|w| (w[0], RelationKind::Co, w[1]))),
        );
        for (a, e) in self.events.iter().enumerate().filter(|(_, e)| e.reads()) {
            let list = &self.coherence[e.cell];
            let next = e
                .source
                .map_or(0, |s| list.iter().position(|&w| w == s).map_or(list.len(), |i| i + 1));
            // A locked instruction is itself the next store after the one that it reads from.
            out.extend(list.get(next).filter(|&&b| b != a).map(|&b| (a, RelationKind::Fr, b)));
        }
        out
    }
}

/// The state of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadState {
    place: usize,
    /// The index of its first register.
    registers: usize,
    /// The number of events when its load began to wait for a later store; `None` if it does not
    /// wait.
    since: Option<usize>,
    /// The events of the thread, as bits.
    events: u64,
}

/// The events that access a cell, as bits.
#[derive(Clone, Copy, Debug, Default)]
struct CellAccesses {
    reads: u64,
    writes: u64,
}

/// A partial execution.
#[derive(Clone, Debug)]
pub(super) struct PartialExecution<'p> {
    program: &'p Program,
    axioms: Axioms,
    events: Vec<GraphEvent>,
    uniproc: EventRelation,
    ghb: EventRelation,
    threads: Vec<ThreadState>,
    /// The registers of all threads.
    registers: Vec<u64>,
    cells: Vec<CellAccesses>,
}

impl<'p> PartialExecution<'p> {
    /// Creates the graph with all threads at their start.
    pub fn new(program: &'p Program, axioms: Axioms) -> Self {
        let (mut threads, mut registers) = (Vec::new(), Vec::new());
        for t in &program.threads {
            threads.push(ThreadState {
                place: 0,
                registers: registers.len(),
                since: None,
                events: 0,
            });
            registers.extend(t.registers.iter().map(|r| r.initial));
        }
        let cells = vec![CellAccesses::default(); program.cells.len()];
        Self {
            program,
            axioms,
            events: Vec::new(),
            uniproc: EventRelation::default(),
            ghb: EventRelation::default(),
            threads,
            registers,
            cells,
        }
    }
    /// Returns the position of a thread.
    pub fn place(&self, thread: usize) -> usize {
        self.threads[thread].place
    }
    /// Returns a register of a thread.
    pub fn register(&self, thread: usize, register: Register) -> u64 {
        self.registers[self.threads[thread].registers + register as usize]
    }
    /// Returns the number of events when a thread began to wait. `None` if it does not wait.
    pub fn waits_since(&self, thread: usize) -> Option<usize> {
        self.threads[thread].since
    }
    /// Restricts a thread's load to stores that are added later.
    pub fn wait(&mut self, thread: usize) {
        self.threads[thread].since = Some(self.events.len());
    }
    fn eval(&self, thread: usize, e: &Expr, loaded: u64) -> u64 {
        e.eval(&|r| self.register(thread, r), loaded)
    }
    fn step(&self, thread: usize) -> Option<&'p Step> {
        self.program.threads[thread].steps.get(self.threads[thread].place)
    }
    fn cell(
        &self,
        thread: usize,
        step: &Step,
        address: &Expr,
        loaded: u64,
    ) -> Result<usize, Diagnostic> {
        let address = self.eval(thread, address, loaded);
        self.program.cell_at(address).ok_or_else(|| {
            let instruction = &self.program.threads[thread].instructions[step.instruction as usize];
            let name = &self.program.threads[thread].name;
            Diagnostic::at(
                Stage::Data,
                instruction.span,
                format!("`{name}` accesses the address {address:#x}, where no variable or element starts"),
            )
        })
    }
    /// Returns the cell of a thread's next load; `None` if its next step is not a load.
    pub fn load(&self, thread: usize) -> Result<Option<usize>, Diagnostic> {
        let Some(step) = self.step(thread) else { return Ok(None) };
        match &step.access {
            Access::Read { address, .. } | Access::Update { address, .. } => {
                self.cell(thread, step, address, 0).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Runs all threads up to their loads. Returns false if that creates a cycle.
    pub fn run(&mut self) -> Result<bool, Diagnostic> {
        for t in 0..self.threads.len() {
            while let Some(step) = self.step(t) {
                let event = |kind, cell, written| GraphEvent {
                    thread: t,
                    kind,
                    cell,
                    read: 0,
                    written,
                    source: None,
                    instruction: step.instruction,
                };
                let fine = match &step.access {
                    Access::Read { .. } | Access::Update { .. } => break,
                    Access::None => true,
                    Access::Fence(f) => self.add(event(EventKind::Fence(*f), 0, 0))?,
                    Access::Write { address, width, value, when } => {
                        if when.as_ref().is_none_or(|w| self.eval(t, w, 0) != 0) {
                            let cell = self.cell(t, step, address, 0)?;
                            let preserves_order = self.program.cells[cell].initial & !width.mask();
                            let written = preserves_order | self.eval(t, value, 0) & width.mask();
                            self.add(event(EventKind::Write, cell, written))?
                        } else {
                            true
                        }
                    }
                };
                if !fine {
                    return Ok(false);
                }
                self.finish_step(t, step, 0);
            }
        }
        Ok(true)
    }

    /// Executes a thread's load from the given source. Returns false if that creates a cycle.
    pub fn take(
        &mut self,
        t: usize,
        cell: usize,
        source: Option<usize>,
    ) -> Result<bool, Diagnostic> {
        let Some(step) = self.step(t) else { return Ok(false) };
        let read = source.map_or(self.program.cells[cell].initial, |s| self.events[s].written);
        let mut event = GraphEvent {
            thread: t,
            kind: EventKind::Read,
            cell,
            read,
            written: 0,
            source,
            instruction: step.instruction,
        };
        let mut loaded = read;
        match &step.access {
            Access::Read { width, .. } => loaded &= width.mask(),
            Access::Update { width, value, when, .. } => {
                loaded &= width.mask();
                event.kind = EventKind::Test;
                if when.as_ref().is_none_or(|w| self.eval(t, w, loaded) != 0) {
                    event.kind = EventKind::Update;
                    event.written = self.program.cells[cell].initial & !width.mask()
                        | self.eval(t, value, loaded) & width.mask();
                }
            }
            _ => return Ok(false),
        }
        self.threads[t].since = None;
        let fine = self.add(event)?;
        self.finish_step(t, step, loaded);
        Ok(fine)
    }

    /// Updates registers and control after a step.
    fn finish_step(&mut self, t: usize, step: &Step, loaded: u64) {
        let at = self.threads[t].place;
        let next = match &step.next {
            Next::Fall => at + 1,
            Next::Jump(to) => *to as usize,
            Next::Branch(test, to) if self.eval(t, test, loaded) != 0 => *to as usize,
            Next::Branch(..) => at + 1,
        };
        let new: Vec<(Register, u64)> =
            step.assigns.iter().map(|(r, e)| (*r, self.eval(t, e, loaded))).collect();
        let first = self.threads[t].registers;
        new.into_iter().for_each(|(r, v)| self.registers[first + r as usize] = v);
        self.threads[t].place = next;
    }

    /// True if the model preserves the order of two events of a thread.
    fn preserves_order(&self, a: &GraphEvent, b: &GraphEvent) -> bool {
        let store = |e: &GraphEvent| e.kind == EventKind::Write;
        let mark = |e: &GraphEvent| e.kind == EventKind::Fence(Fence::Store);
        match self.axioms {
            _ if a.is_full() || b.is_full() => true,
            Axioms::Sc => true,
            _ if mark(a) || mark(b) => {
                self.axioms == Axioms::Pso
                    && (store(a) && mark(b) || mark(a) && store(b) || mark(a) && mark(b))
            }
            Axioms::Tso => !(store(a) && b.kind == EventKind::Read),
            Axioms::Pso => a.kind == EventKind::Read,
        }
    }

    /// Adds an event of a thread with all edges that it forces.
    fn add(&mut self, event: GraphEvent) -> Result<bool, Diagnostic> {
        let new = self.events.len();
        if new == MAX_EVENTS {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                format!("an execution has more than {MAX_EVENTS} events, which is not supported"),
            ));
        }
        let (own, all) = (
            self.threads[event.thread].events,
            self.cells.get(event.cell).copied().unwrap_or_default(),
        );
        let is_access = event.reads() || event.writes();
        let mut uniproc = if is_access { own & (all.reads | all.writes) } else { 0 };
        let mut ghb = bits(own)
            .filter(|&old| self.preserves_order(&self.events[old], &event))
            .fold(0, |set, old| set | 1 << old);
        if let Some(s) = event.source {
            uniproc |= 1 << s;
            if self.axioms == Axioms::Sc || self.events[s].thread != event.thread {
                ghb |= 1 << s;
            }
        }
        self.uniproc.append(uniproc);
        self.ghb.append(ghb);
        self.events.push(event);
        self.threads[event.thread].events |= 1 << new;
        if event.reads() {
            self.cells[event.cell].reads |= 1 << new;
        }
        if event.writes() {
            self.cells[event.cell].writes |= 1 << new;
        }
        Ok(!is_access || self.saturate(event.cell))
    }

    fn writers(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        bits(self.cells[cell].writes)
    }
    /// Returns the events after an event in one of the relations.
    fn successors(&self, a: usize) -> u64 {
        self.uniproc.successors(a) | self.ghb.successors(a)
    }
    fn precedes(&self, a: usize, b: usize) -> bool {
        self.uniproc.has(a, b) || self.ghb.has(a, b)
    }
    /// Orders the events of a set after `a` in both relations.
    fn after_both(&mut self, a: usize, set: u64, changed: &mut bool) -> bool {
        let missing = set & !(self.uniproc.successors(a) & self.ghb.successors(a));
        bits(missing).all(|b| self.add_both(a, b, changed))
    }
    fn add_both(&mut self, a: usize, b: usize, changed: &mut bool) -> bool {
        *changed |= !(self.uniproc.has(a, b) && self.ghb.has(a, b));
        self.uniproc.add(a, b) && self.ghb.add(a, b)
    }

    /// Adds the edges of co and fr that rf and the current order force. An edge may order stores to
    /// other cells, so all cells are checked again.
    fn saturate(&mut self, first: usize) -> bool {
        let mut cells: Vec<usize> = vec![first];
        cells.extend((0..self.program.cells.len()).filter(|&c| c != first));
        let mut changed = true;
        while changed {
            changed = false;
            for &cell in &cells {
                if !self.saturate_cell(cell, &mut changed) {
                    return false;
                }
            }
        }
        true
    }

    fn saturate_cell(&mut self, cell: usize, changed: &mut bool) -> bool {
        let CellAccesses { reads, writes } = self.cells[cell];
        if writes == 0 {
            return true;
        }
        for w in bits(writes) {
            let later = self.successors(w) & !(1 << w);
            // If a load after this store reads from another store, this store is before the other
            // one.
            let others = bits(later & reads)
                .filter_map(|r| self.events[r].source)
                .fold(0, |set, s| set | 1 << s);
            if !self.after_both(w, (later & writes | others) & !(1 << w), changed) {
                return false;
            }
        }
        for r in bits(reads) {
            // The load is before the stores after the one that it reads from.
            let newer = self.events[r].source.map_or(u64::MAX, |s| self.successors(s));
            if !self.after_both(r, newer & writes & !(1 << r), changed) {
                return false;
            }
        }
        true
    }

    /// Returns the stores that a load of a cell may read from: those added since there were `from`
    /// events, and the initial value if `from` is `None`.
    pub fn sources(&self, cell: usize, from: Option<usize>) -> Vec<Option<usize>> {
        let initial = from.is_none().then_some(None);
        initial
            .into_iter()
            .chain(self.writers(cell).filter(|&w| w >= from.unwrap_or(0)).map(Some))
            .collect()
    }
    /// Returns the stores to a cell that may be last.
    pub fn last_candidates(&self, cell: usize) -> Vec<usize> {
        let writes = self.cells[cell].writes;
        bits(writes).filter(|&a| self.successors(a) & writes == 0).collect()
    }
    /// Orders a store after all others to its cell. Returns false if that creates a cycle.
    pub fn make_last(&mut self, cell: usize, last: usize) -> bool {
        self.writers(cell).filter(|&w| w != last).all(|w| self.add_both(w, last, &mut false))
            && self.saturate(cell)
    }
    /// Returns the final value of a cell, given that its last store is determined.
    pub fn last_value(&self, cell: usize) -> u64 {
        self.last_candidates(cell)
            .first()
            .map_or(self.program.cells[cell].initial, |&w| self.events[w].written)
    }

    /// Returns an execution, if the open part of coherence can be chosen.
    pub fn execution(&self) -> Option<Execution> {
        let cells = self.program.cells.len();
        for cell in 0..cells {
            let writers: Vec<usize> = self.writers(cell).collect();
            for (i, &a) in writers.iter().enumerate() {
                for &b in &writers[..i] {
                    if self.precedes(a, b) || self.precedes(b, a) {
                        continue;
                    }
                    // The recursion depth is the number of unordered pairs of stores, which is
                    // small.
                    return [(b, a), (a, b)].into_iter().find_map(|(x, y)| {
                        let mut next = self.clone();
                        (next.add_both(x, y, &mut false) && next.saturate(cell))
                            .then(|| next.execution())
                            .flatten()
                    });
                }
            }
        }
        let sorted = |cell: usize| {
            let mut writers: Vec<usize> = self.writers(cell).collect();
            let rank = |w: usize| self.writers(cell).filter(|&o| self.precedes(o, w)).count();
            writers.sort_by_key(|&w| rank(w));
            writers
        };
        Some(Execution { events: self.events.clone(), coherence: (0..cells).map(sorted).collect() })
    }
}
