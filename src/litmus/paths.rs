//! The paths of a thread: its events, dependencies and last registers, for all values that its
//! reads may take.
//!
//! In: a thread, the values that each cell may hold. Out: [`Shape`]s, which say what happens but
//! for values, each with its [`Trace`]s, which say the values. The values that cells may hold are
//! found by repetition: what stores have written in one round, loads of other threads may read in
//! the next. What a thread reads of itself is known on its path, if the model keeps coherence: the
//! last value that it wrote to the cell. A value that takes more rounds than there are reads
//! depends on itself, and no execution has it. So does a value of which every derivation needs the
//! very store that is to write it (`Origins`).
//!
//! Dependencies are those of syntax. Loops run until they have jumped back [`Bounds::loops`] times;
//! longer paths are dropped and said.

use crate::code::{Atomicity, Expr, Flow, Op, Register, Thread};
use crate::layout::{Found, GRANULE, Layout};
use crate::speculation;
use mu_axioms::Kind;
use mu_base::{Budget, Stop};
use std::collections::HashMap;

/// Events of a thread, as bits.
pub type Events = u128;

/// An event of a path, but for its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventShape {
    /// What it does.
    pub kind: Kind,
    /// The cell that it accesses.
    pub cell: Option<u32>,
    /// Its tags.
    pub tags: u64,
    /// Its place in program order; events with the same place are not ordered.
    pub index: u32,
    /// The first event of the access that it is part of.
    pub access: u32,
    /// The instruction that it is of.
    pub instruction: u32,
    /// Where its address comes from.
    pub address: Events,
    /// Where its value comes from.
    pub data: Events,
    /// Which events decided that it happens.
    pub control: Events,
    /// The same three, with what comes through a choice: a compare-and-swap of Armv8.
    pub pick: [Events; 3],
    /// The reads of its own instruction whose values its value comes from, and those that decide
    /// that it happens.
    pub within: [Events; 2],
    /// The run of an instruction that it belongs to, by number.
    pub instance: u32,
    /// The operation that it is of.
    pub op: u32,
    /// Whether it is one event that reads and writes, and writes what depends on what it reads.
    pub own: bool,
}

/// What happens on a path, but for values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The events in order.
    pub events: Vec<EventShape>,
    /// Reads and writes of one atomic instruction.
    pub amo: Vec<(u32, u32)>,
    /// Load-reserves and store-conditionals.
    pub lxsx: Vec<(u32, u32)>,
}

/// The values of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trace {
    /// What each event reads; 0 if it does not.
    pub reads: Vec<u64>,
    /// What each event writes; 0 if it does not.
    pub writes: Vec<u64>,
    /// What the registers asked for hold at the end.
    pub registers: Vec<u64>,
}

/// All paths of a thread.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// What may happen, with the values that go with it.
    pub shapes: Vec<(Shape, Vec<Trace>)>,
}

/// Limits of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How often a path may jump back.
    pub loops: u32,
}

/// What came of running all threads.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The paths of each thread.
    pub threads: Vec<Paths>,
    /// Whether a path was dropped because it looped too long.
    pub cut: bool,
    /// The instruction at which a path was dropped because it accesses no variable: thread and
    /// number.
    pub strayed: Option<(u32, u32)>,
    /// The instruction at which a path was dropped because its behaviour is undefined.
    pub undefined: Option<(u32, u32)>,
    /// An access beyond a variable: thread, instruction, variable, bytes.
    pub beyond: Option<(u32, u32, u32, u8)>,
    /// An access of several cells: thread and instruction.
    pub split: Option<(u32, u32)>,
    /// An access that is not aligned: thread and instruction; also one that crosses a border of
    /// [`crate::layout::GRANULE`] bytes.
    pub unaligned: [Option<(u32, u32)>; 2],
    /// Whether a path was dropped because it had more events than sets of events can hold.
    pub long: bool,
}

impl Runs {
    /// True if paths were dropped for another reason than loops.
    pub fn drops_paths(&self) -> bool {
        self.long || self.strayed.is_some() || self.undefined.is_some()
    }
}

/// The most events of a path.
const MOST: usize = Events::BITS as usize;

/// The threads that write a value, as bits. Threads from number 63 on share the last bit.
type Writers = u64;

/// The bit that several threads may share.
const SHARED: Writers = 1 << (Writers::BITS - 1);

fn writer(thread: u32) -> Writers {
    1 << thread.min(Writers::BITS - 1)
}

/// The values that stores may write to each cell, sorted, with the threads that write them.
type Values = Vec<Vec<(u64, Writers)>>;

/// For each cell and value the stores that every derivation of the value needs, as bits: without
/// loops each store happens once, so none can need itself.
#[derive(Default)]
struct Origins {
    /// The number of the first store of each thread; none if the thread has loops.
    first: Vec<Option<u32>>,
    needs: HashMap<(u32, u64), u128>,
}

impl Origins {
    fn new(threads: &[Thread], layout: &Layout) -> Self {
        let mut next = 0;
        let first = threads.iter().map(|t| {
            let loops = t
                .ops
                .iter()
                .enumerate()
                .any(|(i, op)| matches!(op, Op::Branch { to, .. } if *to as usize <= i));
            let start = next;
            next += t.ops.len() as u32;
            (!loops && next <= u128::BITS).then_some(start)
        });
        let first = first.collect();
        // What is there at first needs nothing.
        Self {
            first,
            needs: layout
                .cells()
                .iter()
                .enumerate()
                .map(|(c, cell)| ((c as u32, cell.initial), 0))
                .collect(),
        }
    }
    /// What a write of a path needs; none if it needs itself.
    fn of(&self, t: usize, shape: &Shape, trace: &Trace, e: usize) -> Option<u128> {
        let event = &shape.events[e];
        let own = self.first[t].map_or(0, |first| 1 << (first + event.op));
        let mut from = event.data | event.within[0] | if event.own { 1 << e } else { 0 };
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
    /// Adds the constants that stores write on paths whose reads take any value. True if one is
    /// new.
    fn speculate(&mut self, threads: &[Thread], layout: &Layout, values: &mut Values) -> bool {
        let mut grown = false;
        for (t, thread) in threads.iter().enumerate() {
            for (cell, value) in speculation::stores(thread, layout) {
                let list = &mut values[cell as usize];
                if let Err(place) = list.binary_search_by_key(&value, |v| v.0) {
                    list.insert(place, (value, writer(t as u32)));
                    self.needs.entry((cell, value)).or_insert(0);
                    grown = true;
                }
            }
        }
        grown
    }
    /// Drops the paths that need themselves; adds what the others write. Whether something is new.
    fn add(&mut self, threads: &mut [Paths], values: &mut Values) -> bool {
        let mut found: Vec<(u32, u64, Writers, u128)> = Vec::new();
        for (t, paths) in threads.iter_mut().enumerate() {
            for (shape, traces) in &mut paths.shapes {
                traces.retain(|trace| {
                    let before = found.len();
                    for (e, event) in
                        shape.events.iter().enumerate().filter(|(_, e)| e.kind.writes())
                    {
                        let (Some(needs), Some(cell)) = (self.of(t, shape, trace, e), event.cell)
                        else {
                            found.truncate(before);
                            return false;
                        };
                        found.push((cell, trace.writes[e], writer(t as u32), needs));
                    }
                    true
                });
            }
            paths.shapes.retain(|s| !s.1.is_empty());
        }
        let mut grown = false;
        for (cell, value, writer, needs) in found {
            let list = &mut values[cell as usize];
            match list.binary_search_by_key(&value, |v| v.0) {
                Ok(place) => {
                    grown |= list[place].1 & writer == 0;
                    list[place].1 |= writer;
                }
                Err(place) => {
                    list.insert(place, (value, writer));
                    grown = true;
                }
            }
            let known = self.needs.entry((cell, value)).or_insert(needs);
            grown |= *known & !needs != 0;
            *known &= needs;
        }
        grown
    }
}

/// The values that reads take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Those that coherence allows: of its own thread the last one written before it.
    Coherent,
    /// All that are written to the cell.
    All,
    /// The same. The run stops after this number of steps of a thread.
    AllWithin(u64),
}

/// Runs all threads. The layout is cut so that every access fits.
pub fn run(
    threads: &[Thread],
    layout: &mut Layout,
    asked: &[Vec<Register>],
    bounds: Bounds,
    take: Reads,
    budget: &Budget,
) -> Result<Runs, Stop> {
    layout.cut();
    'layout: loop {
        let mut values: Values = vec![Vec::new(); layout.cells().len()];
        let mut origins = Origins::new(threads, layout);
        let mut rounds = 0;
        let mut speculated = false;
        loop {
            let mut runs = Runs::default();
            let mut borders = Vec::new();
            let mut reads = 0;
            for (t, thread) in threads.iter().enumerate() {
                let mut runner = Runner {
                    number: t as u32,
                    thread,
                    layout,
                    values: &values,
                    asked: &asked[t],
                    bounds,
                    take,
                    budget,
                    runs: &mut runs,
                    shapes: HashMap::new(),
                    found: Paths::default(),
                    borders: &mut borders,
                    steps: 0,
                };
                runner.all()?;
                let found = runner.found;
                let count = |s: &Shape| s.events.iter().filter(|e| e.kind.reads()).count();
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
            // Reads may justify each other through branches: no path stores their values so far.
            if std::mem::replace(&mut speculated, true)
                || !origins.speculate(threads, layout, &mut values)
            {
                return Ok(runs);
            }
            rounds = 0;
        }
    }
}

/// A path so far.
#[derive(Clone)]
struct State {
    at: u32,
    registers: Vec<u64>,
    sources: Vec<Events>,
    /// As `sources`, with what comes through a choice.
    picks: Vec<Events>,
    control: Events,
    pick_control: Events,
    index: u32,
    /// The run of an instruction, by number, and which instruction it is.
    instance: u32,
    running: Option<u32>,
    jumps: u32,
    /// The first event and the number of events of the access that a store-conditional may pair
    /// with, with its address.
    reservation: Option<(u32, u32, u64)>,
    shape: Shape,
    reads: Vec<u64>,
    writes: Vec<u64>,
}

struct Runner<'r> {
    number: u32,
    thread: &'r Thread,
    layout: &'r Layout,
    values: &'r Values,
    asked: &'r [Register],
    bounds: Bounds,
    take: Reads,
    budget: &'r Budget,
    runs: &'r mut Runs,
    shapes: HashMap<Shape, usize>,
    found: Paths,
    borders: &'r mut Vec<(u64, u8)>,
    steps: u64,
}

/// What is known of an access before it is done.
struct Access {
    address: u64,
    sources: Events,
    picks: Events,
    first: u32,
    count: u32,
}

impl Runner<'_> {
    fn all(&mut self) -> Result<(), Stop> {
        let registers: Vec<u64> = self.thread.registers.iter().map(|r| r.1).collect();
        let start = State {
            at: 0,
            sources: vec![0; registers.len()],
            picks: vec![0; registers.len()],
            registers,
            control: 0,
            pick_control: 0,
            index: 0,
            instance: 0,
            running: None,
            jumps: 0,
            reservation: None,
            shape: Shape::default(),
            reads: Vec::new(),
            writes: Vec::new(),
        };
        let mut todo = vec![start];
        while let Some(state) = todo.pop() {
            self.follow(state, &mut todo)?;
        }
        Ok(())
    }
    /// Counts a step, and checks the limits at times.
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
    /// Follows a path to its end or to where it parts; what comes after goes to the list.
    fn follow(&mut self, mut s: State, todo: &mut Vec<State>) -> Result<(), Stop> {
        let thread = self.thread;
        while let Some(op) = thread.ops.get(s.at as usize) {
            self.poll()?;
            if s.shape.events.len() + 16 > MOST {
                self.runs.long = true;
                return Ok(());
            }
            let here = s.at;
            s.at += 1;
            let instruction = thread.instruction[here as usize];
            if s.running.replace(instruction) != Some(instruction) {
                s.instance += 1;
            }
            match op {
                Op::Let(r, e) => s.assign(Some(*r), e, 0, 0),
                Op::Fence(0) => {}
                Op::Fence(tags) => {
                    s.index += 1;
                    let event = EventShape::new(
                        Kind::Fence,
                        None,
                        *tags,
                        &s,
                        thread.instruction[here as usize],
                    );
                    s.push(event, 0, 0);
                }
                Op::Either { to } => todo.push(State { at: *to, running: None, ..s.clone() }),
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
                Op::Branch { when, to } => {
                    let taken = match when {
                        None => true,
                        Some(e) => {
                            s.control |= sources(e, &s.sources, 0);
                            s.pick_control |= sources(e, &s.picks, 0);
                            e.value(&s.registers, 0) != 0
                        }
                    };
                    if taken {
                        if *to <= here {
                            s.jumps += 1;
                            if s.jumps > self.bounds.loops {
                                self.runs.cut = true;
                                return Ok(());
                            }
                        }
                        s.at = *to;
                        s.running = None;
                    }
                }
                Op::Store { address, width, value, tags, joined } => {
                    let Some(access) = self.access(&s, address, *width) else { return Ok(()) };
                    if !joined {
                        s.index += 1;
                    }
                    let data = Data::of(value, &s);
                    let value = value.value(&s.registers, 0);
                    self.write(&mut s, &access, value, data, *tags, here);
                }
                Op::Load { into, value, address, width, tags, reserve, joined } => {
                    let Some(access) = self.access(&s, address, *width) else { return Ok(()) };
                    if !joined {
                        s.index += 1;
                    }
                    let first = s.shape.events.len() as u32;
                    let event = EventShape::new(
                        Kind::Read,
                        None,
                        *tags,
                        &s,
                        thread.instruction[here as usize],
                    )
                    .at(&access);
                    if *reserve {
                        s.reservation = Some((first, access.count, access.address));
                    }
                    for loaded in self.choices(&s, &access) {
                        let mut next = s.clone();
                        let read = self.read(&mut next, &access, loaded, &event);
                        next.assign(*into, value, loaded, read);
                        todo.push(next);
                    }
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
    /// A store-conditional: that it fails goes to the list; the path on which it succeeds, if it
    /// may.
    fn store_conditional(
        &mut self,
        mut s: State,
        op: &Op,
        here: u32,
        todo: &mut Vec<State>,
    ) -> Option<State> {
        let Op::StoreConditional { status, address, width, value, tags, carries } = op else {
            return None;
        };

        let reserved = s.reservation.take();
        let mut failed = s.clone();
        failed.assign(*status, &Expr::Const(1), 0, 0);
        todo.push(failed);
        let (load, count, at) = reserved?;
        let access = self.access(&s, address, *width)?;
        if at != access.address || count != access.count {
            return None;
        }
        s.index += 1;
        let data = Data::of(value, &s);
        let value = value.value(&s.registers, 0);
        let first = s.shape.events.len() as u32;
        let written = self.write(&mut s, &access, value, data, *tags, here);
        (0..count).for_each(|i| s.shape.lxsx.push((load + i, first + i)));
        s.assign(*status, &Expr::Const(0), 0, 0);
        if let Some(r) = status.filter(|_| *carries) {
            s.sources[r as usize] = written;
            s.picks[r as usize] = written;
        }
        Some(s)
    }
    fn update(
        &mut self,
        mut s: State,
        op: &Op,
        here: u32,
        todo: &mut Vec<State>,
    ) -> Result<(), Stop> {
        let Op::Update { address, width, when, atomicity, flow, .. } = op else { return Ok(()) };
        let Some(access) = self.access(&s, address, *width) else { return Ok(()) };
        s.index += 1;
        for loaded in self.choices(&s, &access) {
            let writes = when.as_ref().is_none_or(|w| w.value(&s.registers, loaded) != 0);
            match flow {
                Flow::Plain if *atomicity == Atomicity::One && writes => {
                    todo.push(self.update_at_once(s.clone(), op, here, &access, loaded))
                }
                Flow::Plain => todo.push(self.update_with(
                    s.clone(),
                    op,
                    here,
                    &access,
                    loaded,
                    Outcome::of(writes),
                )),
                Flow::Pick => {
                    let ways = if writes {
                        [Outcome::Written, Outcome::Expected]
                    } else {
                        [Outcome::Unwritten, Outcome::Back]
                    };
                    for way in ways {
                        todo.push(self.update_with(s.clone(), op, here, &access, loaded, way));
                    }
                }
            }
        }
        Ok(())
    }
    /// A read-modify-write as one event.
    fn update_at_once(
        &self,
        mut s: State,
        op: &Op,
        here: u32,
        access: &Access,
        loaded: u64,
    ) -> State {
        let Op::Update { into, value, when, read, .. } = op else { return s };
        let first = s.shape.events.len() as u32;
        let event =
            EventShape::new(Kind::Update, None, *read, &s, self.thread.instruction[here as usize])
                .at(access);
        let source = self.read(&mut s, access, loaded, &event);
        let data =
            sources(value, &s.sources, 0) | when.as_ref().map_or(0, |w| sources(w, &s.sources, 0));
        let new = value.value(&s.registers, loaded);
        let uses = value.sources(&mut |_| ()) || when.is_some();
        for i in 0..access.count {
            let at = (first + i) as usize;
            s.shape.events[at].data = data;
            s.shape.events[at].own = uses;
            s.writes[at] = self.part(access, i, new);
        }
        if let Some((r, e)) = into {
            s.assign(Some(*r), e, loaded, source);
        }
        s
    }
    /// A read-modify-write as a read and a write.
    fn update_with(
        &self,
        mut s: State,
        op: &Op,
        here: u32,
        access: &Access,
        loaded: u64,
        way: Outcome,
    ) -> State {
        let Op::Update { into, value, when, read, write, failed, atomicity, flow, .. } = op else {
            return s;
        };
        let first = s.shape.events.len() as u32;
        let tags = if way == Outcome::Unwritten { *failed } else { *read };
        let event =
            EventShape::new(Kind::Read, None, tags, &s, self.thread.instruction[here as usize])
                .at(access);
        let source = self.read(&mut s, access, loaded, &event);
        let decides = |of: &[Events]| when.as_ref().map_or(0, |w| sources(w, of, 0));
        let (expected, picked) = (decides(&s.sources), decides(&s.picks));
        if way != Outcome::Unwritten {
            let from_loaded = way == Outcome::Back || value.sources(&mut |_| ());
            let mut data = if way == Outcome::Back { Data::default() } else { Data::of(value, &s) };
            data.within =
                [if from_loaded { source } else { 0 }, if when.is_some() { source } else { 0 }];
            match flow {
                Flow::Plain => data.sources |= expected,
                Flow::Pick => data.picks |= picked,
            }
            let new = if way == Outcome::Back { loaded } else { value.value(&s.registers, loaded) };
            s.index += 1;
            let second = s.shape.events.len() as u32;
            self.write(&mut s, access, new, data, *write, here);
            if *atomicity == Atomicity::Pair {
                (0..access.count).for_each(|i| s.shape.amo.push((first + i, second + i)));
            }
        }
        if let Some((r, e)) = into {
            s.assign(Some(*r), e, loaded, source);
            if way == Outcome::Expected {
                s.sources[*r as usize] = expected;
                s.picks[*r as usize] = picked | source;
            }
        }
        s
    }
    /// Finds the cells of an access; none if the path ends here.
    fn access(&mut self, s: &State, address: &Expr, width: u8) -> Option<Access> {
        let (sources, picks) = (sources(address, &s.sources, 0), sources(address, &s.picks, 0));
        let address = address.value(&s.registers, 0);
        let place = (self.number, s.running.unwrap_or(0));
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
                Some(Access { address, sources, picks, first, count })
            }
            Found::Cut => {
                self.borders.push((address, width));
                None
            }
            Found::Stray => {
                self.runs.strayed.get_or_insert(place);
                None
            }
            Found::Beyond(variable) => {
                self.runs.beyond.get_or_insert((place.0, place.1, variable, width));
                None
            }
        }
    }
    /// The part of a value that goes to a cell of an access.
    fn part(&self, access: &Access, i: u32, value: u64) -> u64 {
        let cells = self.layout.cells();
        let (first, cell) = (&cells[access.first as usize], &cells[(access.first + i) as usize]);
        crate::code::low(value >> ((cell.offset - first.offset) * 8), u32::from(cell.width) * 8)
    }
    /// All values that an access may read.
    fn choices(&self, s: &State, access: &Access) -> Vec<u64> {
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
    /// All values that a read of a cell may take. Under coherence these are what the thread wrote
    /// there last, or the initial value if it wrote nothing, and what other threads write.
    fn cell_choices(&self, s: &State, cell: u32) -> Vec<u64> {
        let (values, initial) =
            (&self.values[cell as usize], self.layout.cells()[cell as usize].initial);
        let last = s.shape.events.iter().rposition(|e| e.kind.writes() && e.cell == Some(cell));
        let ordered = last.is_none_or(|e| s.shape.events[e].index < s.index);
        let coherent = self.take == Reads::Coherent && ordered;
        let others = if coherent { !writer(self.number) | SHARED } else { Writers::MAX };
        let here = last.filter(|_| coherent).map_or(initial, |e| s.writes[e]);
        let mut list: Vec<u64> = values.iter().filter(|v| v.1 & others != 0).map(|v| v.0).collect();
        if let Err(place) = list.binary_search(&here) {
            list.insert(place, here);
        }
        list
    }
    /// Adds the events of a read: like `event`, one for each cell; which they are.
    fn read(&self, s: &mut State, access: &Access, loaded: u64, event: &EventShape) -> Events {
        let first = s.shape.events.len() as u32;
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
    /// Adds the events of a write; which they are.
    fn write(
        &self,
        s: &mut State,
        access: &Access,
        value: u64,
        data: Data,
        tags: u64,
        here: u32,
    ) -> Events {
        let first = s.shape.events.len() as u32;
        let mut event =
            EventShape::new(Kind::Write, None, tags, s, self.thread.instruction[here as usize])
                .at(access);
        event.data = data.sources;
        event.pick[1] |= data.picks;
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
    /// Keeps a path.
    fn end(&mut self, s: State) {
        let registers = self.asked.iter().map(|r| s.registers[*r as usize]).collect();
        let trace = Trace { reads: s.reads, writes: s.writes, registers };
        let list = match self.shapes.get(&s.shape) {
            Some(&i) => i,
            None => {
                self.shapes.insert(s.shape.clone(), self.found.shapes.len());
                self.found.shapes.push((s.shape, Vec::new()));
                self.found.shapes.len() - 1
            }
        };
        let traces = &mut self.found.shapes[list].1;
        // Two paths may differ in what no event and no register asked for tells.
        if traces.last() != Some(&trace) {
            traces.push(trace);
        }
    }
}

impl EventShape {
    fn new(kind: Kind, cell: Option<u32>, tags: u64, s: &State, instruction: u32) -> Self {
        Self {
            kind,
            cell,
            tags,
            index: s.index,
            access: s.shape.events.len() as u32,
            instruction,
            address: 0,
            data: 0,
            control: s.control,
            pick: [0, 0, s.pick_control],
            within: [0, 0],
            instance: s.instance,
            op: s.at - 1,
            own: false,
        }
    }
    /// With the address of an access.
    fn at(self, access: &Access) -> Self {
        Self { address: access.sources, pick: [access.picks, self.pick[1], self.pick[2]], ..self }
    }
}

/// Where the value of a write comes from.
#[derive(Clone, Copy, Default)]
struct Data {
    sources: Events,
    picks: Events,
    within: [Events; 2],
}

impl Data {
    fn of(value: &Expr, s: &State) -> Self {
        Self {
            sources: sources(value, &s.sources, 0),
            picks: sources(value, &s.picks, 0),
            within: [0, 0],
        }
    }
}

/// What a read-modify-write of two events comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It writes; its result comes from the read.
    Written,
    /// It writes; its result comes from the value that it compares with.
    Expected,
    /// It does not write.
    Unwritten,
    /// It writes back what it reads.
    Back,
}

impl Outcome {
    fn of(writes: bool) -> Self {
        if writes { Outcome::Written } else { Outcome::Unwritten }
    }
}

impl State {
    fn push(&mut self, event: EventShape, read: u64, write: u64) {
        self.shape.events.push(event);
        self.reads.push(read);
        self.writes.push(write);
    }
    fn assign(&mut self, into: Option<Register>, value: &Expr, loaded: u64, source: Events) {
        let Some(r) = into else { return };
        let (from, picks) =
            (sources(value, &self.sources, source), sources(value, &self.picks, source));
        self.registers[r as usize] = value.value(&self.registers, loaded);
        self.sources[r as usize] = from;
        self.picks[r as usize] = picks;
    }
}

/// Where a value comes from: the events of its registers, and those that were loaded.
fn sources(e: &Expr, of: &[Events], loaded: Events) -> Events {
    let mut all = 0;
    let uses = e.sources(&mut |r| all |= of[r as usize]);
    if uses { all | loaded } else { all }
}
