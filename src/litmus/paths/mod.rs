//! Paths of a thread: events, dependencies and final registers, for all values that its reads may
//! take.
//!
//! Input: a thread, the values that each cell may contain. Output: [`PathShape`]s, which contain
//! everything except values, each with its [`PathValues`]s, which contain the values. The values of
//! cells are computed by iteration: loads may read the values that stores of other threads have
//! written in an earlier round. If the model implies coherence, the value that a thread reads from
//! its own stores is the last value that it wrote to the cell on this path. A value that needs more
//! rounds than there are reads depends on itself, so no execution has it. The same holds for a
//! value if every derivation needs the store that is to write it (`Origins`).
//!
//! Dependencies are syntactic. Loops are unrolled up to [`PathBounds::loops`] backward jumps;
//! longer paths are dropped and reported.

mod accesses;

use crate::code::{self, Op, Register, RegisterExpr, Thread};
use crate::inside::{InternalEvents, PathEvent, Port, Recorder, memory};
use crate::layout::{Found, GRANULE, MemoryCell, MemoryLayout, Variable};
use crate::speculation;
use mu_axioms::EventKind;
use mu_base::{Budget, Stop, narrow};
use std::collections::HashMap;

/// Events of a thread, as bits.
pub type Events = u128;

/// An event of a path, without its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventShape {
    /// Its effect.
    pub kind: EventKind,
    /// The cell that it accesses.
    pub cell: Option<u32>,
    /// Its tags.
    pub tags: u64,
    /// Its position in program order; events with the same position are not ordered.
    pub index: u32,
    /// The first event of its access.
    pub access: u32,
    /// Its instruction.
    pub instruction: u32,
    /// The reads that its address depends on.
    pub address: Events,
    /// The reads that its value depends on.
    pub data: Events,
    /// The reads that its control depends on.
    pub control: Events,
    /// Address, data and control dependencies through a choice (pick dependencies): a
    /// compare-and-swap of Armv8.
    pub pick: [Events; 3],
    /// The reads of its own instruction that its value and its control depend on.
    pub within: [Events; 2],
    /// The execution of an instruction that it belongs to.
    pub instance: u32,
    /// Its operation.
    pub op: u32,
    /// True if coherence orders it although it does not write.
    pub ordered: bool,
    /// True if it is one event that reads and writes, and the value written depends on the value
    /// read.
    pub own: bool,
    /// Those of `data` on which the value does not depend, as in `x ^ x`.
    pub idle: Events,
    /// True if the value is a copy of what a read returned.
    pub copies: bool,
}

/// The events of a path, without values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathShape {
    /// The events in order.
    pub events: Vec<EventShape>,
    /// Reads and writes of one atomic instruction.
    pub amo: Vec<(u32, u32)>,
    /// Load-reserves and store-conditionals.
    pub lxsx: Vec<(u32, u32)>,
    /// Accesses of one instruction that are ordered.
    pub order: Vec<(u32, u32)>,
    /// The other events, if the model reads them.
    pub inside: InternalEvents,
    /// The instruction at which the path ends because its address is not that of a variable.
    pub strayed: Option<u32>,
    /// True if a store-conditional of the path fails, which has no event.
    pub fails: bool,
}

/// The values of the events of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathValues {
    /// The value that each event reads; 0 if none.
    pub reads: Vec<u64>,
    /// The value that each event writes; 0 if none.
    pub writes: Vec<u64>,
    /// The final values of the requested registers.
    pub registers: Vec<u64>,
}

/// All paths of a thread.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// The shapes, each with its traces.
    pub shapes: Vec<(PathShape, Vec<PathValues>)>,
}

/// Bounds of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathBounds {
    /// Largest number of backward jumps on a path that depend on values read from memory.
    pub loops: u32,
}

/// Returns the use of the sources of a register that exists during one instruction only; `None` for
/// other registers.
fn use_of(register: &str) -> Option<Port> {
    let name = register.strip_prefix('.')?;
    Some(if name.starts_with("address") { Port::Address } else { Port::Other })
}

/// The register of the reserved address, in the record of events of registers.
const RESERVED: Register = Register::MAX;

fn is_unordered_update(op: &Op) -> bool {
    matches!(op, Op::Update { joined: true, .. })
}

/// Limit on the number of all backward jumps of a path; longer paths are dropped.
const MAX_JUMPS: u32 = 10_000;

/// The result of running all threads.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The paths of each thread.
    pub threads: Vec<Paths>,
    /// True if a path was dropped because of the bound on loops.
    pub cut: bool,
    /// The instruction at which a path was dropped because its behaviour is undefined.
    pub undefined: Option<(u32, u32)>,
    /// An access beyond a variable: thread, instruction, variable, bytes.
    pub beyond: Option<(u32, u32, u32, u8)>,
    /// An access of several cells: thread and instruction.
    pub split: Option<(u32, u32)>,
    /// An unaligned access: thread and instruction; also one that crosses a border of
    /// [`crate::layout::GRANULE`] bytes.
    pub unaligned: [Option<(u32, u32)>; 2],
    /// True if a path was dropped because it has too many events for [`Events`].
    pub long: bool,
    /// True if the search for constants that stores may write ended at its limit, so that values
    /// of reads may be missing.
    pub constants: bool,
}

impl Runs {
    /// True if paths were dropped, or not found, for another reason than loops.
    pub fn drops_paths(&self) -> bool {
        self.long || self.constants || self.undefined.is_some()
    }
}

/// Largest number of events of a path; longer paths are dropped.
const MAX_EVENTS: usize = Events::BITS as usize;

/// The threads that write a value, as bits. All threads from 63 on share the last bit.
type Writers = u64;

/// The bit that several threads may share.
const SHARED: Writers = 1 << (Writers::BITS - 1);

fn writer(thread: u32) -> Writers {
    1 << thread.min(Writers::BITS - 1)
}

/// For each cell, the values that stores may write, sorted, with the threads that write them.
type Values = Vec<Vec<(u64, Writers)>>;

/// For each cell and value, the stores that every derivation of the value needs, as bits. Without
/// loops each store is executed once, so no store can need itself.
#[derive(Default)]
struct Origins {
    /// The index of the first store of each thread; `None` if the thread has loops.
    first: Vec<Option<u32>>,
    needs: HashMap<(u32, u64), u128>,
}

impl Origins {
    fn new(threads: &[Thread], layout: &MemoryLayout) -> Self {
        let mut next = 0;
        let first = threads.iter().map(|t| {
            let loops = t.ops.iter().enumerate().any(|(i, op)| {
                matches!(op, Op::Branch { to, .. } if *to as usize <= i)
                    || matches!(op, Op::Jump(_))
            });
            let start = next;
            next += narrow::index(t.ops.len());
            (!loops && next <= u128::BITS).then_some(start)
        });
        let first = first.collect();
        // Initial values need no store.
        Self {
            first,
            needs: layout
                .cells()
                .iter()
                .enumerate()
                .flat_map(|(c, cell)| {
                    std::iter::once(cell.initial)
                        .chain(layout.any_value())
                        .map(move |v| ((narrow::index(c), v), 0))
                })
                .collect(),
        }
    }
    /// Returns the stores that a write of a path needs; `None` if it needs itself.
    fn of(&self, t: usize, shape: &PathShape, trace: &PathValues, e: usize) -> Option<u128> {
        let event = &shape.events[e];
        let own = self.first[t].map_or(0, |first| 1 << (first + event.op));
        let own_read = if event.own { 1 << e } else { 0 };
        let mut from = event.data & !event.idle | event.within[0] | own_read;
        let mut needs = 0;
        while from != 0 {
            let r = from.trailing_zeros() as usize;
            from &= from - 1;
            if let Some(cell) = shape.events[r].cell.filter(|_| shape.events[r].kind.reads()) {
                needs |= self.needs.get(&(cell, trace.reads[r])).copied().unwrap_or(0);
            }
        }
        (needs & own == 0).then_some(needs | own)
    }
    /// Adds a value of a cell with its writer. Returns true if the value or its writer is new, or
    /// if it needs fewer stores than before.
    fn insert(
        &mut self,
        values: &mut Values,
        (cell, value): (u32, u64),
        writer: Writers,
        needs: u128,
    ) -> bool {
        let list = &mut values[cell as usize];
        let is_new = match list.binary_search_by_key(&value, |v| v.0) {
            Ok(place) => {
                let known = list[place].1;
                list[place].1 |= writer;
                known & writer == 0
            }
            Err(place) => {
                list.insert(place, (value, writer));
                true
            }
        };
        let known = self.needs.entry((cell, value)).or_insert(needs);
        let needs_fewer = *known & !needs != 0;
        *known &= needs;
        is_new || needs_fewer
    }
    /// Adds the constants that stores write on paths with unknown values of reads. Returns two
    /// truths: one is new, or needs fewer stores than before; the search for them was complete.
    fn speculate(
        &mut self,
        threads: &[Thread],
        layout: &MemoryLayout,
        values: &mut Values,
    ) -> (bool, bool) {
        let (mut grown, mut complete) = (false, true);
        let targets = targets(layout, values);
        for (t, thread) in threads.iter().enumerate() {
            let constants = speculation::stores(thread, layout, &targets);
            complete &= constants.complete;
            for (cell, value, op) in constants.stores {
                let own = self.first[t].map_or(0, |first| 1 << (first + op));
                let writer = writer(narrow::index(t));
                grown |= self.insert(values, (cell, value), writer, own);
            }
        }
        (grown, complete)
    }
    /// Drops the paths that need themselves, and adds the values that the others write, and those
    /// that a dropped path writes before: one of them may be the value that the path reads, with
    /// fewer needs than known so far. Returns true if a value is new or needs fewer stores.
    fn add(&mut self, threads: &mut [Paths], values: &mut Values) -> bool {
        let mut found: Vec<(u32, u64, Writers, u128)> = Vec::new();
        for (t, paths) in threads.iter_mut().enumerate() {
            for (shape, traces) in &mut paths.shapes {
                traces.retain(|trace| {
                    for (e, event) in
                        shape.events.iter().enumerate().filter(|(_, e)| e.kind.writes())
                    {
                        let (Some(needs), Some(cell)) = (self.of(t, shape, trace, e), event.cell)
                        else {
                            return false;
                        };
                        found.push((cell, trace.writes[e], writer(narrow::index(t)), needs));
                    }
                    true
                });
            }
            paths.shapes.retain(|s| !s.1.is_empty());
        }
        let mut grown = false;
        for (cell, value, writer, needs) in found {
            grown |= self.insert(values, (cell, value), writer, needs);
        }
        grown
    }
}

/// Returns the addresses of the cells in variables with an address that some cell may contain.
fn targets(layout: &MemoryLayout, values: &Values) -> Vec<u64> {
    let initial = layout.cells().iter().map(|cell| cell.initial);
    let contents: Vec<u64> = values.iter().flatten().map(|v| v.0).chain(initial).collect();
    let is_stored = |v: &Variable| {
        let end = v.address + u64::from(v.size());
        contents.iter().any(|c| (v.address..end).contains(c))
    };
    let stored: Vec<bool> = layout.variables().iter().map(is_stored).collect();
    let cells = layout.cells().iter().filter(|cell| stored[cell.variable as usize]);
    let address = |cell: &MemoryCell| {
        layout.variables()[cell.variable as usize].address + u64::from(cell.offset)
    };
    cells.map(address).collect()
}

/// The values that reads may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Only coherent values: of the thread's own stores to the cell, the last one before the read.
    Coherent,
    /// All values that are written to the cell.
    All,
    /// All values, with a limit on the number of steps of a thread.
    AllWithin(u64),
}

/// Runs all threads. Divides the layout so that no access covers part of a cell.
pub fn run(
    threads: &[Thread],
    layout: &mut MemoryLayout,
    requested: &[Vec<Register>],
    bounds: PathBounds,
    take: Reads,
    inside: bool,
    budget: &Budget,
) -> Result<Runs, Stop> {
    layout.cut();
    'layout: loop {
        // A value out of thin air needs no store before it is stored.
        let any: Vec<(u64, Writers)> =
            layout.any_value().map(|v| (v, Writers::MAX)).into_iter().collect();
        let mut values: Values = vec![any; layout.cells().len()];
        let mut origins = Origins::new(threads, layout);
        let mut rounds = 0;
        loop {
            let mut runs = Runs::default();
            let mut borders = Vec::new();
            let mut reads = 0;
            for (t, thread) in threads.iter().enumerate() {
                let mut runner = Runner {
                    number: narrow::index(t),
                    thread,
                    layout,
                    values: &values,
                    requested: &requested[t],
                    bounds,
                    take,
                    inside,
                    temporary: thread.registers.iter().map(|r| use_of(&r.0)).collect(),
                    unordered: thread.ops.iter().any(is_unordered_update),
                    budget,
                    runs: &mut runs,
                    shapes: HashMap::new(),
                    found: Paths::default(),
                    borders: &mut borders,
                    steps: 0,
                };
                runner.run_all()?;
                let found = runner.found;
                let count = |s: &PathShape| s.events.iter().filter(|e| e.kind.reads()).count();
                reads = found.shapes.iter().map(|s| count(&s.0)).fold(reads, usize::max);
                runs.threads.push(found);
            }
            if !borders.is_empty() {
                for (address, width) in borders {
                    layout.add_borders(address, width);
                }
                layout.cut();
                continue 'layout;
            }
            let grown = origins.add(&mut runs.threads, &mut values);
            rounds += 1;
            if grown && rounds <= reads * threads.len() + 1 {
                continue;
            }
            // Reads may justify each other through branches and addresses: no path has stored
            // their values so far. New values may give stores new addresses.
            let (grown, complete) = origins.speculate(threads, layout, &mut values);
            if grown {
                rounds = 0;
                continue;
            }
            runs.constants = !complete;
            return Ok(runs);
        }
    }
}

/// The state of a path.
#[derive(Clone)]
struct PathState {
    at: u32,
    registers: Vec<u64>,
    sources: Vec<Events>,
    /// Those of `sources` on which the value of the register does not depend.
    idle: Vec<Events>,
    /// For each register, true if it is a copy of what a read returned.
    copies: Vec<bool>,
    /// Pick dependencies of registers, as `sources`.
    picks: Vec<Events>,
    /// For each register, true if its value depends on the success of a store-conditional.
    chosen: Vec<bool>,
    control: Events,
    pick_control: Events,
    /// Sources of the choices inside the current instruction.
    choice: Events,
    /// The first event that later accesses of the current instruction follow, and the number of
    /// these events.
    ordered: Option<(u32, u32)>,
    /// The first event of the current instruction.
    first: u32,
    /// For each register, the reads that control its assignments; empty without [`Op::Enter`].
    taints: Vec<Events>,
    /// The control of the enclosing scopes.
    scopes: Vec<Events>,
    index: u32,
    /// The current execution of an instruction, and the instruction.
    instance: u32,
    running: Option<u32>,
    /// Numbers of backward jumps: those that depend on values of memory, and all.
    jumps: [u32; 2],
    /// The access with which a store-conditional may pair: first event, number of events, and
    /// address.
    reservation: Option<(u32, u32, u64)>,
    recorder: Recorder,
    shape: PathShape,
    reads: Vec<u64>,
    writes: Vec<u64>,
}

struct Runner<'r> {
    number: u32,
    thread: &'r Thread,
    layout: &'r MemoryLayout,
    values: &'r Values,
    requested: &'r [Register],
    bounds: PathBounds,
    take: Reads,
    /// True if events of registers are recorded.
    inside: bool,
    /// For each register that exists during one instruction only: the use of its sources.
    temporary: Vec<Option<Port>>,
    /// True if some update is not ordered with an access before it, which may then read from it.
    unordered: bool,
    budget: &'r Budget,
    runs: &'r mut Runs,
    shapes: HashMap<PathShape, usize>,
    found: Paths,
    borders: &'r mut Vec<(u64, u8)>,
    steps: u64,
}

/// The properties of an access that are known before it is executed.
struct KnownAccess {
    address: u64,
    sources: Events,
    picks: Events,
    first: u32,
    count: u32,
}

impl Runner<'_> {
    fn run_all(&mut self) -> Result<(), Stop> {
        let registers: Vec<u64> = self.thread.registers.iter().map(|r| r.1).collect();
        let start = PathState {
            at: 0,
            sources: vec![0; registers.len()],
            idle: vec![0; registers.len()],
            copies: vec![false; registers.len()],
            picks: vec![0; registers.len()],
            chosen: vec![false; registers.len()],
            registers,
            control: 0,
            pick_control: 0,
            choice: 0,
            ordered: None,
            first: 0,
            taints: if self.thread.ops.contains(&Op::Enter) {
                vec![0; self.thread.registers.len()]
            } else {
                Vec::new()
            },
            scopes: Vec::new(),
            index: 0,
            instance: 0,
            running: None,
            jumps: [0, 0],
            reservation: None,
            recorder: Recorder::new(self.inside),
            shape: PathShape::default(),
            reads: Vec::new(),
            writes: Vec::new(),
        };
        let mut todo = vec![start];
        while let Some(state) = todo.pop() {
            self.follow(state, &mut todo)?;
        }
        Ok(())
    }
    /// Counts a step, and regularly checks the limits.
    fn poll(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps.is_multiple_of(1024) {
            if matches!(self.take, Reads::AllWithin(most) if self.steps > most) {
                return Err(Stop::States);
            }
            self.budget.check(0)?;
            if self.steps.is_multiple_of(1 << 20) {
                self.budget.check_memory()?;
            }
        }
        Ok(())
    }
    /// Executes a path up to its end or its next branching point; the continuations are added to
    /// the list.
    fn follow(&mut self, mut s: PathState, todo: &mut Vec<PathState>) -> Result<(), Stop> {
        let thread = self.thread;
        while let Some(op) = thread.ops.get(s.at as usize) {
            self.poll()?;
            if s.shape.events.len() + 16 > MAX_EVENTS {
                self.runs.long = true;
                return Ok(());
            }
            let here = s.at;
            s.at += 1;
            let instruction = thread.instruction[here as usize];
            if s.running.replace(instruction) != Some(instruction) {
                s.instance += 1;
                (s.choice, s.ordered, s.first) = (0, None, narrow::index(s.shape.events.len()));
                s.recorder.begin(s.instance, instruction);
            }
            match op {
                Op::Let(r, e) => self.assign(&mut s, Some(*r), e, 0, 0),
                Op::Fence(0) => {}
                Op::Fence(tags) => {
                    s.index += 1;
                    let event = EventShape::new(
                        EventKind::Fence,
                        None,
                        *tags,
                        &s,
                        thread.instruction[here as usize],
                    );
                    s.push(event, 0, 0);
                }
                Op::Enter => s.scopes.push(s.control),
                Op::Leave => {
                    if let Some(control) = s.scopes.pop() {
                        s.control = control;
                    }
                }
                Op::Mark { into, address, tags, ordered, value } => {
                    let access = match self.access(&s, address, 4) {
                        Ok(access) => access,
                        Err(strayed) => {
                            self.stop(s, instruction, strayed);
                            return Ok(());
                        }
                    };
                    s.index += 1;
                    let value = value.value(&s.registers, 0);
                    let mut event =
                        EventShape::new(EventKind::Other, None, *tags, &s, instruction).at(&access);
                    (event.cell, event.ordered) = (Some(access.first), *ordered);
                    let source = 1 << s.shape.events.len();
                    s.push(event, value, value);
                    if let Some((r, result)) = into {
                        s.assign(Some(*r), result, 0, 0);
                        s.sources[*r as usize] |= source;
                        s.copies[*r as usize] = false;
                    }
                }
                Op::Either { to } => todo.push(PathState { at: *to, ..s.clone() }),
                Op::Choose(e) => {
                    if e.value(&s.registers, 0) == 0 {
                        return Ok(());
                    }
                    s.choice |= sources(e, &s.sources, 0) | sources(e, &s.picks, 0);
                    let from = self.sources(&mut s, e, Port::Data, 0);
                    s.recorder.choose(&from);
                }
                Op::Ordered => s.ordered = Some((s.first, narrow::index(s.shape.events.len()))),
                Op::Assume(e) => {
                    if e.value(&s.registers, 0) == 0 {
                        return Ok(());
                    }
                }
                Op::Defined(e) => {
                    if e.value(&s.registers, 0) == 0 {
                        self.runs.undefined.get_or_insert((self.number, instruction));
                        return Ok(());
                    }
                }
                Op::Branch { .. } | Op::Jump(_) => {
                    let Some(next) = self.jump(s, op, here) else { return Ok(()) };
                    s = next;
                }
                Op::Store { .. } => {
                    let Some(next) = self.store(s, op, here) else { return Ok(()) };
                    s = next;
                }
                Op::Load { .. } => {
                    self.load(s, op, here, todo);
                    return Ok(());
                }
                Op::StoreConditional { .. } => {
                    let Some(next) = self.store_conditional(s, op, here, todo) else {
                        return Ok(());
                    };
                    s = next;
                }
                Op::Update { .. } => return self.update(s, op, here, todo),
            }
        }
        self.end(s);
        Ok(())
    }
    /// Executes a jump. Returns the path, unless it is too long, or jumps to no instruction.
    fn jump(&mut self, mut s: PathState, op: &Op, here: u32) -> Option<PathState> {
        let instruction = self.thread.instruction[here as usize];
        let when = match op {
            Op::Branch { when, .. } => when.as_ref(),
            Op::Jump(address) => Some(address),
            _ => None,
        };
        let mut depends = matches!(op, Op::Branch { when: None, .. });
        let mut taken = true;
        if let Some(e) = when {
            let (own, picks) = (sources(e, &s.sources, 0), sources(e, &s.picks, 0));
            s.control |= own | s.taint(e);
            s.pick_control |= picks;
            depends = own | picks != 0 || uses(e, &s.chosen);
            let from = self.sources(&mut s, e, Port::Other, 0);
            s.recorder.branch(&from);
            taken = matches!(op, Op::Jump(_)) || e.value(&s.registers, 0) != 0;
        }
        let to = match op {
            Op::Branch { to, .. } => *to,
            Op::Jump(address) => {
                let Some(to) = self.thread.target(address.value(&s.registers, 0)) else {
                    self.stray(s, instruction);
                    return None;
                };
                to
            }
            _ => here,
        };
        if !taken {
            return Some(s);
        }
        if to <= here && !self.jumps_back(&mut s, depends) {
            return None;
        }
        // A jump inside an instruction continues its execution.
        let inside = when.is_none()
            && to > here
            && self.thread.instruction.get(to as usize) == Some(&instruction);
        s.at = to;
        s.running = if inside { s.running } else { None };
        Some(s)
    }
    /// Returns the nodes that an expression reads, in the record of events of registers.
    fn sources(
        &self,
        s: &mut PathState,
        e: &RegisterExpr,
        port: Port,
        loaded: Events,
    ) -> Vec<PathEvent> {
        if !self.inside {
            return Vec::new();
        }
        s.recorder.sources(e, port, &memory(loaded), &|r| self.is_temporary(r))
    }
    fn is_temporary(&self, r: Register) -> bool {
        self.temporary.get(usize::from(r)).is_some_and(Option::is_some)
    }
    /// Assigns a register.
    fn assign(
        &self,
        s: &mut PathState,
        into: Option<Register>,
        value: &RegisterExpr,
        loaded: u64,
        source: Events,
    ) {
        let port = into.and_then(|r| *self.temporary.get(usize::from(r))?).unwrap_or(Port::Other);
        let from = self.sources(s, value, port, source);
        if let Some(r) = into {
            s.recorder.assign(r, &from, &|r| self.is_temporary(r));
        }
        s.assign(into, value, loaded, source);
    }
    /// Records that a load has reserved the address that some events compute.
    fn note_reservation(&self, s: &mut PathState, from: &[PathEvent]) {
        s.recorder.assign(RESERVED, from, &|_| false);
    }
    /// Records that a store-conditional ends the reservation that it has read.
    fn end_reservation(&self, s: &mut PathState, held: &[PathEvent]) {
        s.recorder.assign_under(RESERVED, &[], held.to_vec(), &|_| false);
    }
    /// Counts a jump backwards, which may depend on values of memory or on the success of a
    /// store-conditional. Returns false if the path is too long.
    fn jumps_back(&mut self, s: &mut PathState, depends: bool) -> bool {
        s.jumps[1] += 1;
        s.jumps[0] += u32::from(depends);
        let within = s.jumps[0] <= self.bounds.loops && s.jumps[1] <= MAX_JUMPS;
        self.runs.cut |= !within;
        within
    }
    /// Ends a path at an access without cells. If there is no variable at its address, the path is
    /// stored, so that the model can exclude it.
    fn stop(&mut self, s: PathState, instruction: u32, strayed: bool) {
        if strayed {
            self.stray(s, instruction);
        }
    }
    fn stray(&mut self, mut s: PathState, instruction: u32) {
        s.shape.strayed = Some(instruction);
        self.end(s);
    }
    /// Resolves the cells of an access. An error ends the path: true if there is no variable at
    /// the address, false if the run is repeated or rejected.
    fn access(
        &mut self,
        s: &PathState,
        address: &RegisterExpr,
        width: u8,
    ) -> Result<KnownAccess, bool> {
        let (sources, picks) = (sources(address, &s.sources, 0), sources(address, &s.picks, 0));
        let address = address.value(&s.registers, 0);
        let place = (self.number, s.running.unwrap_or(0));
        if self.layout.any_value() == Some(address) {
            return Err(false);
        }
        match self.layout.access(address, width) {
            Found::Cells(first, count) => {
                if count > 1 {
                    self.runs.split.get_or_insert(place);
                }
                if !address.is_multiple_of(u64::from(width)) {
                    self.runs.unaligned[0].get_or_insert(place);
                    if address / GRANULE != (address + u64::from(width) - 1) / GRANULE {
                        self.runs.unaligned[1].get_or_insert(place);
                    }
                }
                Ok(KnownAccess { address, sources, picks, first, count })
            }
            Found::Cut => {
                self.borders.push((address, width));
                Err(false)
            }
            Found::Stray => Err(true),
            Found::Beyond(variable) => {
                self.runs.beyond.get_or_insert((place.0, place.1, variable, width));
                Err(false)
            }
        }
    }
    /// As [`Runner::access`], for an access that may write. Code cannot be written.
    fn write_access(
        &mut self,
        s: &PathState,
        address: &RegisterExpr,
        width: u8,
    ) -> Result<KnownAccess, bool> {
        let access = self.access(s, address, width)?;
        if code::is_code(access.address) { Err(true) } else { Ok(access) }
    }
    /// Returns the part of a value in a cell of an access.
    fn part(&self, access: &KnownAccess, i: u32, value: u64) -> u64 {
        let cells = self.layout.cells();
        let (first, cell) = (&cells[access.first as usize], &cells[(access.first + i) as usize]);
        crate::code::low(value >> ((cell.offset - first.offset) * 8), u32::from(cell.width) * 8)
    }
    /// Returns all values that an access may read.
    fn choices(&self, s: &PathState, access: &KnownAccess) -> Vec<u64> {
        let cells = self.layout.cells();
        let start = cells[access.first as usize].offset;
        let mut list = vec![0];
        for i in access.first..access.first + access.count {
            let shift = (cells[i as usize].offset - start) * 8;
            let of_cell = self.cell_choices(s, i);
            list = list.iter().flat_map(|v| of_cell.iter().map(move |w| v | w << shift)).collect();
        }
        list
    }
    /// Returns all values that a read of a cell may take. Under coherence these are the last value
    /// that the thread wrote to it, or the initial value if it wrote none, and the values that
    /// other threads write.
    fn cell_choices(&self, s: &PathState, cell: u32) -> Vec<u64> {
        let (values, initial) =
            (&self.values[cell as usize], self.layout.cells()[cell as usize].initial);
        let last = s.shape.events.iter().rposition(|e| e.kind.writes() && e.cell == Some(cell));
        let ordered = last.is_none_or(|e| s.shape.events[e].index < s.index);
        let coherent = self.take == Reads::Coherent && ordered && !self.unordered;
        let others = if coherent { !writer(self.number) | SHARED } else { Writers::MAX };
        let here = last.filter(|_| coherent).map_or(initial, |e| s.writes[e]);
        let mut list: Vec<u64> = values.iter().filter(|v| v.1 & others != 0).map(|v| v.0).collect();
        if let Err(place) = list.binary_search(&here) {
            list.insert(place, here);
        }
        list
    }
    /// Adds an event of a read for each cell. Returns them.
    fn read(
        &self,
        s: &mut PathState,
        access: &KnownAccess,
        loaded: u64,
        event: &EventShape,
    ) -> Events {
        let first = narrow::index(s.shape.events.len());
        let mut all = 0;
        for i in 0..access.count {
            all |= 1 << s.shape.events.len();
            let part = self.part(access, i, loaded);
            s.push(
                EventShape { cell: Some(access.first + i), access: first, ..event.clone() },
                part,
                0,
            );
        }
        all
    }
    /// Adds the events of a write. Returns them.
    fn write(
        &self,
        s: &mut PathState,
        access: &KnownAccess,
        value: u64,
        data: Data,
        tags: u64,
        here: u32,
    ) -> Events {
        let first = narrow::index(s.shape.events.len());
        let mut event = EventShape::new(
            EventKind::Write,
            None,
            tags,
            s,
            self.thread.instruction[here as usize],
        )
        .at(access);
        event.data = data.sources;
        (event.idle, event.copies) = (data.idle, data.copies);
        event.pick[1] |= data.picks | s.choice & !s.own();
        event.within = data.within;
        let mut all = 0;
        for i in 0..access.count {
            all |= 1 << s.shape.events.len();
            let part = self.part(access, i, value);
            let event = EventShape { cell: Some(access.first + i), access: first, ..event.clone() };
            s.push(event, 0, part);
        }
        all
    }
    /// Stores a complete path.
    fn end(&mut self, mut s: PathState) {
        s.shape.inside = s.recorder.finish();
        let registers = self.requested.iter().map(|r| s.registers[*r as usize]).collect();
        let trace = PathValues { reads: s.reads, writes: s.writes, registers };
        let list = match self.shapes.get(&s.shape) {
            Some(&i) => i,
            None => {
                self.shapes.insert(s.shape.clone(), self.found.shapes.len());
                self.found.shapes.push((s.shape, Vec::new()));
                self.found.shapes.len() - 1
            }
        };
        let traces = &mut self.found.shapes[list].1;
        // Paths may be equal in all events and requested registers.
        if traces.last() != Some(&trace) {
            traces.push(trace);
        }
    }
}

impl EventShape {
    fn new(kind: EventKind, cell: Option<u32>, tags: u64, s: &PathState, instruction: u32) -> Self {
        Self {
            kind,
            cell,
            tags,
            index: s.index,
            access: narrow::index(s.shape.events.len()),
            instruction,
            address: 0,
            data: 0,
            control: s.control,
            pick: [0, 0, s.pick_control],
            within: [0, 0],
            instance: s.instance,
            op: s.at - 1,
            ordered: false,
            own: false,
            idle: 0,
            copies: false,
        }
    }
    /// Adds the dependencies of an access's address.
    fn at(self, access: &KnownAccess) -> Self {
        Self { address: access.sources, pick: [access.picks, self.pick[1], self.pick[2]], ..self }
    }
}

/// The dependencies of the value of a write.
#[derive(Clone, Copy, Default)]
struct Data {
    sources: Events,
    picks: Events,
    within: [Events; 2],
    /// Those of `sources` on which the value does not depend.
    idle: Events,
    /// True if the value is a copy of what a read returned.
    copies: bool,
}

impl Data {
    /// Separates the sources in the current instruction from the others.
    fn split(&mut self, s: &PathState) {
        let own = s.own();
        self.within = [self.sources & own, s.choice & own];
        self.sources &= !own;
        self.picks &= !own;
    }
    fn of(value: &RegisterExpr, s: &PathState) -> Self {
        Self {
            sources: sources(value, &s.sources, 0),
            picks: sources(value, &s.picks, 0),
            within: [0, 0],
            idle: s.idle(value, 0),
            copies: value.is_copy(&|r| s.copies[r as usize]),
        }
    }
}

impl PathState {
    /// Returns the events of the current instruction so far.
    fn own(&self) -> Events {
        let below = |n: u32| if n >= Events::BITS { Events::MAX } else { (1 << n) - 1 };
        below(narrow::index(self.shape.events.len())) & !below(self.first)
    }
    /// Relates the reads of the current instruction with a tag to the writes of the same cells.
    fn pair(&mut self, tag: u64, written: Events) {
        let own = self.own();
        let events = &self.shape.events;
        for (w, write) in events.iter().enumerate().filter(|(w, _)| written >> w & 1 == 1) {
            let reads = events.iter().enumerate().filter(|(r, read)| {
                own >> r & 1 == 1
                    && read.kind == EventKind::Read
                    && read.cell == write.cell
                    && read.tags & tag != 0
            });
            self.shape.amo.extend(reads.map(|(r, _)| (narrow::index(r), narrow::index(w))));
        }
    }
    /// Returns the reads that control the registers of a value.
    fn taint(&self, value: &RegisterExpr) -> Events {
        if self.taints.is_empty() { 0 } else { sources(value, &self.taints, 0) }
    }
    /// Returns the sources of a value on which it does not depend.
    fn idle(&self, value: &RegisterExpr, loaded: Events) -> Events {
        let all = sources(value, &self.sources, loaded);
        if all == 0 {
            return 0;
        }
        let mut needed = 0;
        let of = |r: Register| self.sources[r as usize] & !self.idle[r as usize];
        let uses = value.value_sources(&mut |r| needed |= of(r));
        all & !(if uses { needed | loaded } else { needed })
    }
    fn push(&mut self, event: EventShape, read: u64, write: u64) {
        let at = narrow::index(self.shape.events.len());
        if let Some((first, end)) = self.ordered {
            self.shape.order.extend((first..end).map(|e| (e, at)));
        }
        self.shape.events.push(event);
        self.reads.push(read);
        self.writes.push(write);
    }
    fn assign(
        &mut self,
        into: Option<Register>,
        value: &RegisterExpr,
        loaded: u64,
        source: Events,
    ) {
        let Some(r) = into else { return };
        let (from, picks) =
            (sources(value, &self.sources, source), sources(value, &self.picks, source));
        if !self.taints.is_empty() {
            self.taints[r as usize] =
                self.taint(value) | if self.scopes.is_empty() { 0 } else { self.control };
        }
        self.chosen[r as usize] = uses(value, &self.chosen);
        let idle = self.idle(value, source);
        (self.idle[r as usize], self.copies[r as usize]) =
            (idle, from != idle && value.is_copy(&|r| self.copies[r as usize]));
        self.registers[r as usize] = value.value(&self.registers, loaded);
        self.sources[r as usize] = from;
        self.picks[r as usize] = picks | self.choice;
    }
}

/// True if a value uses one of some registers.
fn uses(e: &RegisterExpr, of: &[bool]) -> bool {
    let mut found = false;
    e.sources(&mut |r| found |= of[r as usize]);
    found
}

/// Returns the events that a value depends on: those of its registers and of the loaded value.
fn sources(e: &RegisterExpr, of: &[Events], loaded: Events) -> Events {
    let mut all = 0;
    let uses = e.sources(&mut |r| all |= of[r as usize]);
    if uses { all | loaded } else { all }
}
