//! Operational machine of a program under a memory model, with states as slots.
//!
//! Input: a [`Program`], a memory model, the capacity of buffers. Output: states (vectors of `u32`)
//! and moves: a thread takes a step ([`Machine::advance`], deterministic), or a buffered store
//! moves to memory ([`Machine::flush`]).
//!
//! A state contains, for each thread, its position, its buffer (if the model has buffers) and its
//! registers, followed by the cells. Values below 2^31 are stored directly. Larger values, and
//! buffers, are indices into tables that only grow. Dead registers are zero, so that states with
//! the same future are equal.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use super::expr::{Expr, Width};
use super::memory::{BufferEntry, MemoryModel};
use super::variables::mixed_sizes;
use super::{Access, Fence, Next, Program, Register, liveness};
use mu_base::{Diagnostic, Stage, narrow};

/// The effect of a move, with decoded values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveEffect {
    /// Only registers and control change.
    Local,
    /// A load.
    Read {
        /// The cell.
        cell: u32,
        /// The value read.
        value: u64,
    },
    /// A store, into the buffer or, without buffers, into memory.
    Write {
        /// The cell.
        cell: u32,
        /// The value.
        value: u64,
    },
    /// A locked instruction.
    Update {
        /// The cell.
        cell: u32,
        /// The old value.
        old: u64,
        /// The new value.
        new: u64,
        /// True if it stored a value.
        wrote: bool,
    },
    /// A fence.
    Fence(Fence),
    /// A buffered store moves to memory.
    Flush {
        /// The cell.
        cell: u32,
        /// The value.
        value: u64,
    },
}

/// Table of the values of 2^31 and above.
#[derive(Debug, Default)]
struct EncodedValues {
    list: Vec<u64>,
    ids: HashMap<u64, u32>,
}

/// Table of buffers; index 0 is the empty one.
#[derive(Debug)]
struct Buffers {
    list: Vec<Arc<[BufferEntry]>>,
    ids: HashMap<Arc<[BufferEntry]>, u32>,
}

const BIG: u32 = 1 << 31;

/// A program under a memory model.
#[derive(Debug)]
pub struct Machine {
    /// The program.
    pub program: Program,
    /// The memory model.
    pub memory: &'static dyn MemoryModel,
    /// Capacity of a buffer; `None`: unlimited.
    pub bound: Option<u32>,
    /// The first slot of each thread.
    threads: Vec<u32>,
    cells: u32,
    live: Vec<Vec<Vec<bool>>>,
    values: RwLock<EncodedValues>,
    buffers: RwLock<Buffers>,
    full: AtomicBool,
}

macro_rules! held {
    ($lock:expr) => {
        $lock.unwrap_or_else(|poisoned| poisoned.into_inner())
    };
}

impl Machine {
    /// Creates a machine. The `observed` registers of each thread stay live until the end; threads
    /// beyond the end of the list observe all registers.
    pub fn new(
        program: Program,
        memory: &'static dyn MemoryModel,
        bound: Option<u32>,
        observed: &[Vec<Register>],
    ) -> Self {
        Self::with(program, memory, bound, observed, false)
    }
    /// Creates a machine with registers that are observed in every state.
    pub fn with_observed(
        program: Program,
        memory: &'static dyn MemoryModel,
        bound: Option<u32>,
        observed: &[Vec<Register>],
    ) -> Self {
        Self::with(program, memory, bound, observed, true)
    }
    fn with(
        program: Program,
        memory: &'static dyn MemoryModel,
        bound: Option<u32>,
        observed: &[Vec<Register>],
        always: bool,
    ) -> Self {
        let mut threads = Vec::new();
        let mut next = 0;
        for t in &program.threads {
            threads.push(next);
            next += 1 + u32::from(memory.has_buffers()) + narrow::index(t.registers.len());
        }
        let none = Vec::new();
        let live = program
            .threads
            .iter()
            .enumerate()
            .map(|(i, t)| liveness::live(t, observed.get(i).unwrap_or(&none), always))
            .collect();
        let empty: Arc<[BufferEntry]> = Arc::from([]);
        let buffers = Buffers { list: vec![empty.clone()], ids: HashMap::from([(empty, 0)]) };
        Self {
            program,
            memory,
            bound,
            threads,
            cells: next,
            live,
            values: RwLock::default(),
            buffers: RwLock::new(buffers),
            full: AtomicBool::new(false),
        }
    }
    /// Returns the number of slots.
    pub fn slot_count(&self) -> usize {
        self.cells as usize + self.program.cells.len()
    }
    /// Returns the slot of a thread's place.
    pub fn place_slot(&self, thread: usize) -> usize {
        self.threads[thread] as usize
    }
    /// Returns the slot of a thread's buffer, if the model has buffers.
    pub fn buffer_slot(&self, thread: usize) -> Option<usize> {
        self.memory.has_buffers().then(|| self.threads[thread] as usize + 1)
    }
    /// Returns the slot of a register.
    pub fn register_slot(&self, thread: usize, register: Register) -> usize {
        self.threads[thread] as usize
            + 1
            + usize::from(self.memory.has_buffers())
            + register as usize
    }
    /// Returns the slot of a cell.
    pub fn cell_slot(&self, cell: usize) -> usize {
        self.cells as usize + cell
    }
    /// Returns for each register whether it is live at a position of a thread.
    pub fn live(&self, thread: usize, place: usize) -> &[bool] {
        &self.live[thread][place]
    }
    /// True if a store had to wait for a full buffer.
    pub fn bound_reached(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Returns the slot of a value.
    pub fn encode(&self, value: u64) -> u32 {
        if value < u64::from(BIG) {
            return narrow::word(value);
        }
        if let Some(&id) = held!(self.values.read()).ids.get(&value) {
            return id;
        }
        let mut values = held!(self.values.write());
        let next = BIG | narrow::index(values.list.len());
        let id = *values.ids.entry(value).or_insert(next);
        if id == next {
            values.list.push(value);
        }
        id
    }
    /// Returns the value of a slot.
    pub fn decode(&self, slot: u32) -> u64 {
        if slot < BIG {
            u64::from(slot)
        } else {
            held!(self.values.read()).list[(slot & !BIG) as usize]
        }
    }
    /// Returns the stores of a buffer slot, oldest first.
    pub fn buffer(&self, slot: u32) -> Arc<[BufferEntry]> {
        held!(self.buffers.read()).list[slot as usize].clone()
    }
    fn intern(&self, mut entries: Vec<BufferEntry>) -> u32 {
        self.memory.normalise(&mut entries);
        if entries.is_empty() {
            return 0;
        }
        if let Some(&id) = held!(self.buffers.read()).ids.get(entries.as_slice()) {
            return id;
        }
        let mut buffers = held!(self.buffers.write());
        let entries: Arc<[BufferEntry]> = entries.into();
        let next = narrow::index(buffers.list.len());
        let id = *buffers.ids.entry(entries.clone()).or_insert(next);
        if id == next {
            buffers.list.push(entries);
        }
        id
    }

    /// Returns the initial state.
    pub fn initial(&self) -> Vec<u32> {
        let mut state = vec![0; self.slot_count()];
        for (t, thread) in self.program.threads.iter().enumerate() {
            for (r, info) in thread.registers.iter().enumerate() {
                if self.live[t][0][r] {
                    state[self.register_slot(t, r as Register)] = self.encode(info.initial);
                }
            }
        }
        for (c, cell) in self.program.cells.iter().enumerate() {
            state[self.cell_slot(c)] = self.encode(cell.initial);
        }
        state
    }

    /// Returns the position of a thread: a step, or the number of its steps at the end.
    pub fn place(&self, thread: usize, state: &[u32]) -> usize {
        state[self.place_slot(thread)] as usize
    }
    /// True if a thread has ended.
    pub fn has_ended(&self, thread: usize, state: &[u32]) -> bool {
        self.place(thread, state) >= self.program.threads[thread].steps.len()
    }
    /// True if all threads have ended and all buffers are empty.
    pub fn is_final(&self, state: &[u32]) -> bool {
        (0..self.program.threads.len())
            .all(|t| self.has_ended(t, state) && self.buffer_slot(t).is_none_or(|b| state[b] == 0))
    }
    /// Returns a register's value.
    pub fn register(&self, thread: usize, register: Register, state: &[u32]) -> u64 {
        self.decode(state[self.register_slot(thread, register)])
    }
    /// Returns a cell's value in memory.
    pub fn cell(&self, cell: usize, state: &[u32]) -> u64 {
        self.decode(state[self.cell_slot(cell)])
    }
    /// Returns the value of a cell as a thread reads it.
    pub fn read_value(&self, thread: usize, cell: usize, state: &[u32]) -> u64 {
        self.decode(self.read_code(thread, cell, state))
    }
    fn read_code(&self, thread: usize, cell: usize, state: &[u32]) -> u32 {
        if let Some(b) = self.buffer_slot(thread)
            && state[b] != 0
            && let Some(newest) = self.buffer(state[b]).iter().rev().find_map(|e| match *e {
                BufferEntry::Store { cell: to, value } if to == narrow::index(cell) => Some(value),
                _ => None,
            })
        {
            return newest;
        }
        state[self.cell_slot(cell)]
    }

    /// Finds the cell of an access.
    fn resolve(
        &self,
        thread: usize,
        instruction: u32,
        address: u64,
        width: Width,
        write: bool,
    ) -> Result<usize, Diagnostic> {
        let span = self.program.threads[thread].instructions[instruction as usize].span;
        let Some(at) = self.program.cell_at(address) else {
            let text = format!(
                "`{}` accesses the address {address:#x}, where no variable or element starts",
                self.program.threads[thread].name
            );
            return Err(Diagnostic::at(Stage::Data, span, text)
                .note("an address register must contain the address of a variable"));
        };
        let cell = &self.program.cells[at];
        if width > cell.access || write && width != cell.access {
            return Err(mixed_sizes(&cell.name, span, width, cell.access));
        }
        Ok(at)
    }

    /// Executes the next step of a thread. `None` if it has ended or waits for its buffer.
    pub fn advance(
        &self,
        thread: usize,
        state: &mut [u32],
    ) -> Result<Option<MoveEffect>, Diagnostic> {
        let code = &self.program.threads[thread];
        let at = self.place(thread, state);
        let Some(step) = code.steps.get(at) else { return Ok(None) };
        let base = self.register_slot(thread, 0);
        let buffer = self.buffer_slot(thread);
        let eval = |state: &[u32], e: &Expr, loaded: u64| match e {
            Expr::Const(c) => *c,
            e => e.eval(&|r: Register| self.decode(state[base + r as usize]), loaded),
        };
        let mut loaded = 0;
        let mut event = MoveEffect::Local;
        match &step.access {
            Access::None => {}
            Access::Read { address, width } => {
                let cell =
                    self.resolve(thread, step.instruction, eval(state, address, 0), *width, false)?;
                loaded = self.read_value(thread, cell, state) & width.mask();
                event = MoveEffect::Read { cell: narrow::index(cell), value: loaded };
            }
            Access::Write { address, width, value, when } => {
                if when.as_ref().is_none_or(|w| eval(state, w, 0) != 0) {
                    let cell = self.resolve(
                        thread,
                        step.instruction,
                        eval(state, address, 0),
                        *width,
                        true,
                    )?;
                    let value = self.merge_store(cell, *width, eval(state, value, 0));
                    let slot = self.encode(value);
                    match buffer {
                        None => state[self.cell_slot(cell)] = slot,
                        Some(b) => {
                            let mut entries = self.buffer(state[b]).to_vec();
                            if self.bound.is_some_and(|m| {
                                entries.iter().filter(|e| **e != BufferEntry::Mark).count()
                                    >= m as usize
                            }) {
                                self.full.store(true, Ordering::Relaxed);
                                return Ok(None);
                            }
                            entries.push(BufferEntry::Store {
                                cell: narrow::index(cell),
                                value: slot,
                            });
                            state[b] = self.intern(entries);
                        }
                    }
                    event = MoveEffect::Write { cell: narrow::index(cell), value };
                }
            }
            Access::Update { address, width, value, when } => {
                if buffer.is_some_and(|b| state[b] != 0) {
                    return Ok(None);
                }
                let cell =
                    self.resolve(thread, step.instruction, eval(state, address, 0), *width, true)?;
                let old = self.cell(cell, state);
                loaded = old & width.mask();
                let mut new = old;
                let wrote = when.as_ref().is_none_or(|w| eval(state, w, loaded) != 0);
                if wrote {
                    new = self.merge_store(cell, *width, eval(state, value, loaded));
                    state[self.cell_slot(cell)] = self.encode(new);
                }
                event = MoveEffect::Update { cell: narrow::index(cell), old, new, wrote };
            }
            Access::Fence(fence) => {
                event = MoveEffect::Fence(*fence);
                match (fence, buffer) {
                    (Fence::Full, Some(b)) if state[b] != 0 => return Ok(None),
                    (Fence::Store, Some(b))
                        if self.memory.marks_store_fences() && state[b] != 0 =>
                    {
                        let mut entries = self.buffer(state[b]).to_vec();
                        entries.push(BufferEntry::Mark);
                        state[b] = self.intern(entries);
                    }
                    _ => {}
                }
            }
        }
        let next = match &step.next {
            Next::Fall => at + 1,
            Next::Jump(to) => *to as usize,
            Next::Branch(test, to) => {
                if eval(state, test, loaded) != 0 {
                    *to as usize
                } else {
                    at + 1
                }
            }
        };
        // All expressions read the registers before the step.
        match step.assigns.as_slice() {
            [] => {}
            [(r, e)] => state[base + *r as usize] = self.encode(eval(state, e, loaded)),
            several => {
                let new: Vec<u32> =
                    several.iter().map(|(_, e)| self.encode(eval(state, e, loaded))).collect();
                for ((r, _), slot) in several.iter().zip(new) {
                    state[base + *r as usize] = slot;
                }
            }
        }
        state[self.place_slot(thread)] = narrow::index(next);
        for (r, &live) in self.live[thread][next].iter().enumerate() {
            if !live {
                state[base + r] = 0;
            }
        }
        Ok(Some(event))
    }

    /// Computes the content of a cell after a store: bits above the width keep their initial
    /// values.
    fn merge_store(&self, cell: usize, width: Width, value: u64) -> u64 {
        self.program.cells[cell].initial & !width.mask() | value & width.mask()
    }

    /// Calls `visit` with the index in a thread's buffer of each store that may move to memory.
    pub fn ready(&self, thread: usize, state: &[u32], visit: &mut dyn FnMut(usize)) {
        if let Some(b) = self.buffer_slot(thread)
            && state[b] != 0
        {
            self.memory.ready(&self.buffer(state[b]), visit);
        }
    }

    /// Moves a buffered store that is ready to memory. Returns its cell and value.
    pub fn flush(
        &self,
        thread: usize,
        at: usize,
        state: &mut [u32],
    ) -> Result<(u32, u64), Diagnostic> {
        let b = self.threads[thread] as usize + 1;
        let mut entries = self.buffer(state[b]).to_vec();
        let BufferEntry::Store { cell, value } = entries.remove(at) else {
            return Err(Diagnostic::internal(
                "the mark of a store fence is treated as a store that is ready",
            ));
        };
        state[b] = self.intern(entries);
        state[self.cell_slot(cell as usize)] = value;
        Ok((cell, self.decode(value)))
    }
}
