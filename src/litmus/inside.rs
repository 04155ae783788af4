//! Events of registers, branches, and choices inside instructions, with the flow of data and
//! control between them and the accesses of memory.
//!
//! Models that compute dependencies themselves (`catdep`) read these events. Input: the operations
//! of a path, in order. Output: an [`InternalEvents`] for its shape. An instruction reads a
//! register once for each use (address, data, other), and each write of a register is an event.
//! Registers that only exist during an instruction (their names begin with a dot) have no events:
//! their sources are passed on.
//!
//! The edges are those of the herd tools (`AArch64Sem.ml`, `event.ml`): the reads of registers flow
//! to the access that uses them (`iico_data`), a read of memory flows to the register that it
//! loads, and a choice orders what it controls (`iico_ctrl`). Cost: linear in the path.

use crate::code::{Register, RegisterExpr};
use crate::judge::Judge;
use crate::paths::{Events, PathShape};
use mu_axioms::{NameMeaning, RelationId, SetId, Skeleton, execution};
use mu_base::narrow;
use std::collections::HashMap;

/// The use of a register by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// Any other use.
    Other,
    /// For the address of an access.
    Address,
    /// For the data of an access.
    Data,
}

/// The kind of an event without access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathEventKind {
    /// Reads a register.
    Read(Register, Port),
    /// Writes a register.
    Write(Register),
    /// A conditional branch.
    Branch,
    /// A choice inside an instruction.
    Choice,
}

/// An event without access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalEvent {
    /// Its kind.
    pub kind: PathEventKind,
    /// The execution of an instruction that it belongs to.
    pub instance: u32,
    /// Its instruction.
    pub instruction: u32,
}

/// An event of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathEvent {
    /// An event of the shape, by its index.
    Memory(u32),
    /// An event of [`InternalEvents::events`], by its index.
    Other(u32),
}

/// The events of a path without access to memory, and the edges inside its instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct InternalEvents {
    /// The events, in order.
    pub events: Vec<LocalEvent>,
    /// Flow of data.
    pub data: Vec<(PathEvent, PathEvent)>,
    /// Control.
    pub control: Vec<(PathEvent, PathEvent)>,
}

/// Recorder of the events of a path. It does nothing unless a model reads such events.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// True if events are recorded.
    on: bool,
    /// The events so far.
    inside: InternalEvents,
    instance: u32,
    instruction: u32,
    /// The reads of registers of the current instruction.
    reads: Vec<(Register, Port, PathEvent)>,
    /// The sources of the registers that only exist during the current instruction.
    temporary: Vec<(Register, Vec<PathEvent>)>,
    /// The choice that controls the rest of the current instruction.
    choice: Option<PathEvent>,
}

/// Returns the events of memory with the bits of a set.
pub fn memory(events: Events) -> Vec<PathEvent> {
    (0..Events::BITS).filter(|i| events >> i & 1 == 1).map(PathEvent::Memory).collect()
}

impl Recorder {
    /// Creates a recorder.
    pub fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }
    /// True if events are recorded.
    pub fn is_on(&self) -> bool {
        self.on
    }
    /// Returns the recorded events.
    pub fn finish(self) -> InternalEvents {
        self.inside
    }
    /// Begins an execution of an instruction.
    pub fn begin(&mut self, instance: u32, instruction: u32) {
        if self.on {
            (self.instance, self.instruction, self.choice) = (instance, instruction, None);
            self.reads.clear();
            self.temporary.clear();
        }
    }
    fn event(&mut self, kind: PathEventKind) -> PathEvent {
        let (instance, instruction) = (self.instance, self.instruction);
        self.inside.events.push(LocalEvent { kind, instance, instruction });
        PathEvent::Other(narrow::index(self.inside.events.len()) - 1)
    }
    /// Returns the sources of an expression: reads of its registers, and those of the loaded value.
    /// `is_temporary` is true for registers that only exist during the instruction.
    pub fn sources(
        &mut self,
        e: &RegisterExpr,
        port: Port,
        loaded: &[PathEvent],
        is_temporary: &dyn Fn(Register) -> bool,
    ) -> Vec<PathEvent> {
        if !self.on {
            return Vec::new();
        }
        let mut registers = Vec::new();
        let uses_loaded = e.sources(&mut |r| registers.push(r));
        let mut out: Vec<PathEvent> = if uses_loaded { loaded.to_vec() } else { Vec::new() };
        for r in registers {
            if is_temporary(r) {
                let of = self.temporary.iter().rev().find(|t| t.0 == r);
                out.extend(of.iter().flat_map(|t| &t.1));
                continue;
            }
            let known = self.reads.iter().find(|k| (k.0, k.1) == (r, port)).map(|k| k.2);
            let read = known.unwrap_or_else(|| {
                let read = self.event(PathEventKind::Read(r, port));
                self.reads.push((r, port, read));
                self.inside.control.extend(self.choice.map(|c| (c, read)));
                read
            });
            out.push(read);
        }
        out.sort_unstable_by_key(|n| match n {
            PathEvent::Memory(i) => (0, *i),
            PathEvent::Other(i) => (1, *i),
        });
        out.dedup();
        out
    }
    /// Records a write of a register.
    pub fn assign(
        &mut self,
        r: Register,
        from: &[PathEvent],
        is_temporary: &dyn Fn(Register) -> bool,
    ) {
        if !self.on {
            return;
        }
        if is_temporary(r) {
            self.temporary.push((r, from.to_vec()));
            return;
        }
        let write = self.event(PathEventKind::Write(r));
        self.data(from, &[write]);
        // A register that takes the value of memory waits for the access only.
        if !from.iter().any(|n| matches!(n, PathEvent::Memory(_))) {
            self.inside.control.extend(self.choice.map(|c| (c, write)));
        }
    }
    /// Records a write of a register with sources of its data and of control.
    pub fn assign_under(
        &mut self,
        r: Register,
        from: &[PathEvent],
        control: Vec<PathEvent>,
        is_temporary: &dyn Fn(Register) -> bool,
    ) {
        if !self.on || is_temporary(r) {
            return;
        }
        let write = self.event(PathEventKind::Write(r));
        self.data(from, &[write]);
        self.control(&control, &[write]);
    }
    /// Records a conditional branch.
    pub fn branch(&mut self, from: &[PathEvent]) {
        if self.on {
            let branch = self.event(PathEventKind::Branch);
            self.data(from, &[branch]);
        }
    }
    /// Records a choice. It controls the rest of the instruction.
    pub fn choose(&mut self, from: &[PathEvent]) {
        if self.on {
            let choice = self.event(PathEventKind::Choice);
            self.data(from, &[choice]);
            self.choice = Some(choice);
        }
    }
    /// Ends the control of a choice over the rest of the instruction.
    pub fn release(&mut self) {
        self.choice = None;
    }
    /// Records a write of memory, which the current choice controls.
    pub fn write(&mut self, to: &[PathEvent]) {
        if let Some(choice) = self.choice.filter(|_| self.on) {
            self.inside.control.extend(to.iter().map(|t| (choice, *t)));
        }
    }
    /// Records a flow of data.
    pub fn data(&mut self, from: &[PathEvent], to: &[PathEvent]) {
        if self.on {
            self.inside.data.extend(product(from, to));
        }
    }
    /// Records control.
    pub fn control(&mut self, from: &[PathEvent], to: &[PathEvent]) {
        if self.on {
            self.inside.control.extend(product(from, to));
        }
    }
}

fn product<'n>(
    from: &'n [PathEvent],
    to: &'n [PathEvent],
) -> impl Iterator<Item = (PathEvent, PathEvent)> + 'n {
    from.iter().flat_map(|a| to.iter().map(|b| (*a, *b)))
}

/// The events of several paths without access to memory, in a skeleton.
pub struct InternalEventSet {
    /// The index of the first event of each path, and of the first event of all.
    first: Vec<usize>,
    start: usize,
    /// The location of each register.
    locations: HashMap<(u32, Register), u32>,
}

impl InternalEventSet {
    /// Creates the list, after the events of memory.
    pub fn new(start: usize) -> Self {
        Self { first: Vec::new(), start, locations: HashMap::new() }
    }
    /// Adds the events of a thread to those of an execution. `cells` is the number of locations of
    /// memory.
    pub fn add(
        &mut self,
        thread: u32,
        inside: &InternalEvents,
        cells: usize,
        events: &mut Vec<execution::Event>,
        instructions: &mut Vec<Option<(u32, u32)>>,
    ) {
        self.first.push(events.len());
        for e in &inside.events {
            let kind = match e.kind {
                PathEventKind::Branch | PathEventKind::Choice => execution::EventKind::Branch,
                PathEventKind::Read(..) | PathEventKind::Write(_) => execution::EventKind::Other,
            };
            let mut event = execution::Event::other(thread, e.instance, kind);
            if let PathEventKind::Read(r, _) | PathEventKind::Write(r) = e.kind {
                let next = narrow::index(cells + self.locations.len());
                event.location = Some(*self.locations.entry((thread, r)).or_insert(next));
            }
            events.push(event);
            instructions.push(Some((thread, e.instruction)));
        }
    }
    /// Adds the sets and relations of the events. `memory` has the first event of memory of each
    /// thread.
    pub fn relate(
        &self,
        skeleton: &mut Skeleton,
        judge: &Judge,
        shapes: &[&PathShape],
        memory: &[usize],
    ) {
        let vocabulary = judge.model.vocabulary();
        let set = |name: &str| match vocabulary.find(name) {
            Some(NameMeaning::Set(id)) => Some(id),
            _ => None,
        };
        let relation = |name: &str| match vocabulary.find(name) {
            Some(NameMeaning::Relation(id)) => Some(id),
            _ => None,
        };
        let tag = |skeleton: &mut Skeleton, id: Option<SetId>, event: usize| {
            id.into_iter().for_each(|id| skeleton.tag(id, event));
        };
        let named = ["Rreg", "Wreg", "ADDR", "DATA", "BCC", "PRED"].map(set);
        let [reads, writes, address, data, branches, choices] = named;
        let registers = |inside: &InternalEvents, of: &dyn Fn(&LocalEvent) -> bool| -> Vec<usize> {
            inside.events.iter().enumerate().filter(|(_, e)| of(e)).map(|(i, _)| i).collect()
        };
        let edges = [relation("iico_data"), relation("iico_ctrl")];
        for ((shape, &first), &memory) in shapes.iter().zip(&self.first).zip(memory) {
            for (i, e) in shape.inside.events.iter().enumerate() {
                let at = first + i;
                match e.kind {
                    PathEventKind::Branch => tag(skeleton, branches, at),
                    PathEventKind::Choice => tag(skeleton, choices, at),
                    // Models that take dependencies as given do not range over registers.
                    PathEventKind::Write(_) if judge.computes_dependencies => {
                        tag(skeleton, writes, at)
                    }
                    PathEventKind::Read(_, port) if judge.computes_dependencies => {
                        tag(skeleton, reads, at);
                        match port {
                            Port::Address => tag(skeleton, address, at),
                            Port::Data => tag(skeleton, data, at),
                            Port::Other => {}
                        }
                    }
                    PathEventKind::Read(..) | PathEventKind::Write(_) => {}
                }
            }
            let node = |n: &PathEvent| match n {
                PathEvent::Memory(i) => memory + *i as usize,
                PathEvent::Other(i) => first + *i as usize,
            };
            for (id, pairs) in edges.iter().zip([&shape.inside.data, &shape.inside.control]) {
                if let Some(id) = id {
                    pairs.iter().for_each(|(a, b)| skeleton.relate(*id, node(a), node(b)));
                }
            }
            if let Some(id) = relation("rf-reg") {
                self.flow(skeleton, id, &shape.inside, first);
            }
        }
        if !judge.computes_dependencies {
            let mut hidden = mu_axioms::Set::empty(skeleton.len());
            for (shape, &first) in shapes.iter().zip(&self.first) {
                let is_register = |e: &LocalEvent| {
                    matches!(e.kind, PathEventKind::Read(..) | PathEventKind::Write(_))
                };
                registers(&shape.inside, &is_register)
                    .into_iter()
                    .for_each(|i| hidden.insert(first + i));
            }
            skeleton.hide(&hidden);
        }
        debug_assert!(self.start <= skeleton.len());
    }
    /// Relates each read of a register to the last write of an earlier instruction.
    fn flow(&self, skeleton: &mut Skeleton, id: RelationId, inside: &InternalEvents, first: usize) {
        let mut last: HashMap<Register, (u32, usize)> = HashMap::new();
        let mut pending: Vec<(Register, u32, usize)> = Vec::new();
        for (i, e) in inside.events.iter().enumerate() {
            // The writes of an instruction count for later ones.
            pending.retain(|&(r, instance, at)| {
                let later = instance < e.instance;
                if later {
                    last.insert(r, (instance, at));
                }
                !later
            });
            match e.kind {
                PathEventKind::Write(r) => pending.push((r, e.instance, i)),
                PathEventKind::Read(r, _) => {
                    if let Some((_, w)) = last.get(&r) {
                        skeleton.relate(id, first + w, first + i);
                    }
                }
                PathEventKind::Branch | PathEventKind::Choice => {}
            }
        }
    }
}
