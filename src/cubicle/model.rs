//! The machine as a model of slots and transition groups, for every engine.
//!
//! A slot is a cell, or the buffer of a process. A group is a transition for given processes, the
//! flush of a set of cells from a process's buffer, or a test for an unsafe state: a self-loop
//! labelled [`UNSAFE`]. Labels are `t(1,2)` with the declared processes, `flush(1)`, `unsafe`. The
//! action of a transition `tau` has another name, because `tau` is the hidden action. If
//! there are several initial states, one additional slot and one group, labelled `init`, choose
//! among them.
//!
//! Undetermined values of finite sorts are enumerated in the initial states. An undetermined number
//! stays open, and reading it is an error, also if only an assumption depends on it. Steps to
//! states that contradict an assumption are dropped.
//!
//! Codes are mapped to dense numbers (`Dense`). Candidate symmetries exchange neighbouring
//! processes that the system does not name; a system that orders processes has none. Cost:
//! `Machine::fire` for each query that the engine has not cached.

use crate::ground::{
    Ground, GroundAtom, GroundCell, GroundCube, GroundTerm, GroundValue, for_each_read_cell, sort,
    term_cells,
};
use crate::machine::{Machine, Memory, StepObstacle};
use crate::system::{Atom, ComparisonOp, Proc, SymbolKind, System, Term, TypeId};
use crate::value::{ANY, NOTHING, TransitionWrites};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage, narrow};
use mu_model::table::LabelTable;
use mu_model::{Group, Model, PartOrigin, Slot, SlotInfo, StepPart, Steps, Symmetry, Worker};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The label of steps that report unsafe states.
pub const UNSAFE: &str = "unsafe";
const INIT: &str = "init";
pub(crate) const FLUSH: &str = "flush";
const HIDDEN: &str = "tau";

/// The move of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMove {
    /// A transition, by its index among the ground ones.
    Fire(u32),
    /// A process's oldest entry reaches memory, if it has this shape.
    Flush(u32, u32),
    /// A claim holds for some processes, by its index among the ground claims.
    Unsafe(u32),
    /// The choice of the initial state.
    Init,
}

/// The numbering of a slot's codes.
enum Dense {
    /// Codes from the first on, with their number, followed by an open value.
    Range(u32, u32),
    /// Numbers, in order of occurrence.
    Table(RwLock<(AHashMap<u32, u32>, Vec<u32>)>),
    /// Buffers, unchanged.
    Same,
}

impl Dense {
    fn of(&self, code: u32) -> u32 {
        match self {
            Dense::Same => code,
            Dense::Range(_, count) if code == ANY => *count,
            Dense::Range(first, _) => code - first,
            Dense::Table(table) => {
                if let Some(d) = table.read().unwrap_or_else(PoisonError::into_inner).0.get(&code) {
                    return *d;
                }
                let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
                let next = narrow::index(table.1.len());
                let dense = *table.0.entry(code).or_insert(next);
                if dense == next {
                    table.1.push(code);
                }
                dense
            }
        }
    }
    fn code(&self, dense: u32) -> u32 {
        match self {
            Dense::Same => dense,
            Dense::Range(_, count) if dense == *count => ANY,
            Dense::Range(first, _) => first + dense,
            Dense::Table(table) => {
                table.read().unwrap_or_else(PoisonError::into_inner).1[dense as usize]
            }
        }
    }
}

/// The model of a machine.
pub struct SystemModel<'s> {
    /// The machine.
    pub machine: Machine<'s>,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    moves: Vec<GroupMove>,
    /// The label of each group.
    labels: Vec<LabelId>,
    /// Name and processes of each label.
    names: LabelTable<(String, Vec<u32>)>,
    claims: Vec<GroundCube>,
    /// The initial states, as codes.
    starts: Vec<Vec<u32>>,
    /// The numbering of each sort, followed by that of the buffers.
    dense: Vec<Dense>,
    symmetries: Vec<Symmetry>,
}

impl<'s> SystemModel<'s> {
    /// Creates the model of a machine.
    ///
    /// # Errors
    ///
    /// There is no initial state, or `init` compares an undetermined number.
    pub fn new(machine: Machine<'s>) -> Result<Self, Diagnostic> {
        let starts = machine.start(true)?;
        for (start, cube) in
            starts.iter().flat_map(|s| machine.assumptions.iter().map(move |c| (s, c)))
        {
            machine.holds_or_fails(start, cube)?;
        }
        if starts.is_empty() {
            let place = machine.system.init.place.0;
            let n = machine.layout.n;
            let es = if n == 1 { "" } else { "es" };
            let error = Diagnostic::at(
                Stage::Type,
                place,
                format!("no initial state: no state of {n} process{es} satisfies `init`"),
            );
            let excludes = !machine.system.invariants.is_empty();
            return Err(if excludes {
                error.note("states that an `invariant` describes are excluded from the system")
            } else {
                error
            });
        }
        Ok(Self::of(machine, starts))
    }
    /// Creates the model with a single initial state, in codes of the machine.
    pub fn with_start(machine: Machine<'s>, start: Vec<u32>) -> Self {
        Self::of(machine, vec![start])
    }
    fn of(machine: Machine<'s>, starts: Vec<Vec<u32>>) -> Self {
        let dense = (0..narrow::index(machine.system.types.len()))
            .map(|t| dense(&machine, TypeId::of(t)))
            .chain([Dense::Same])
            .collect();
        let mut model = SystemModel {
            slots: slots(&machine, starts.len() > 1),
            machine,
            groups: Vec::new(),
            moves: Vec::new(),
            labels: Vec::new(),
            names: LabelTable::new((HIDDEN.into(), Vec::new())),
            claims: Vec::new(),
            starts,
            dense,
            symmetries: Vec::new(),
        };
        model.fire_groups();
        model.flush_groups();
        model.unsafe_groups();
        model.init_group();
        model.symmetries = model.candidates();
        model
    }
    /// Returns the action of a transition `tau`, which is not hidden; `None` if there is none.
    pub fn action_of_tau(&self) -> Option<String> {
        let transitions = &self.machine.system.transitions;
        let is_taken = |name: &str| transitions.iter().any(|t| t.name == name);
        let mut free = (2..).map(|n| format!("{HIDDEN}_{n}")).filter(|name| !is_taken(name));
        if is_taken(HIDDEN) { free.next() } else { None }
    }
    /// Returns the move of a group.
    pub fn movement(&self, group: usize) -> GroupMove {
        self.moves[group]
    }
    /// Converts a vector of slots to a state of the machine.
    pub fn state(&self, vector: &[u32]) -> Vec<u32> {
        (0..self.machine.width()).map(|s| self.dense_of(s).code(vector[s])).collect()
    }
    /// Returns the processes of the transition of a group, for all parameters.
    pub fn processes(&self, group: usize) -> Vec<u32> {
        match self.moves[group] {
            GroupMove::Fire(g) => self.machine.ground[g as usize].procs.clone(),
            GroupMove::Flush(p, _) => vec![p],
            _ => Vec::new(),
        }
    }
    fn dense_of(&self, slot: usize) -> &Dense {
        let last = self.dense.len() - 1;
        if slot < self.machine.layout.cells as usize {
            let sort = sort(self.machine.system, &self.machine.layout, narrow::index(slot));
            // All words share the table of integers.
            let sort = if sort.bits().is_some() { TypeId::INT } else { sort };
            &self.dense[sort.index()]
        } else {
            &self.dense[last]
        }
    }
    /// Returns the slot that stores whether the initial state is chosen.
    fn start_slot(&self) -> Option<Slot> {
        (self.starts.len() > 1).then(|| self.machine.width() as Slot)
    }
    fn label(&mut self, name: &str, args: Vec<u32>) -> LabelId {
        self.names.intern((name.to_string(), args))
    }
    fn add(&mut self, mut group: Group, movement: GroupMove, label: LabelId) {
        for list in [&mut group.reads, &mut group.writes] {
            list.sort_unstable();
            list.dedup();
        }
        group.requires.sort_unstable();
        group.requires.dedup();
        if let Some(start) = self.start_slot().filter(|_| movement != GroupMove::Init) {
            group.requires.push((start, 1));
        }
        let clash = group.requires.windows(2).any(|w| w[0].0 == w[1].0 && w[0].1 != w[1].1);
        if !clash {
            self.groups.push(group);
            self.moves.push(movement);
            self.labels.push(label);
        }
    }
    /// Splits a guard into slots with required values and slots that are read.
    fn split_guard(
        &self,
        cube: &GroundCube,
        requires: &mut Vec<(Slot, u32)>,
        reads: &mut Vec<Slot>,
    ) {
        let plain = |c: &GroundCell| c.by.is_none();
        for atom in cube {
            match atom {
                GroundAtom::Empty(p) => requires.push((self.machine.buffer_slot(*p) as Slot, 0)),
                GroundAtom::Codes(GroundTerm::Cell(c), ComparisonOp::Eq, GroundTerm::Code(v))
                | GroundAtom::Codes(GroundTerm::Code(v), ComparisonOp::Eq, GroundTerm::Cell(c))
                    if plain(c) =>
                {
                    requires.push((c.slot, self.dense_of(c.slot as usize).of(*v)));
                }
                atom => for_each_read_cell(&vec![atom.clone()], &mut |c| self.read(c, reads)),
            }
        }
    }
    fn read(&self, cell: GroundCell, reads: &mut Vec<Slot>) {
        reads.push(cell.slot);
        reads.extend(cell.by.map(|by| self.machine.buffer_slot(by) as Slot));
    }
    /// Adds the slots that a cube reads, including the buffers that must be empty.
    fn read_all(&self, cube: &GroundCube, reads: &mut Vec<Slot>) {
        for_each_read_cell(cube, &mut |c| self.read(c, reads));
        for atom in cube {
            if let GroundAtom::Empty(p) = atom {
                reads.push(self.machine.buffer_slot(*p) as Slot);
            }
        }
    }
    /// Adds the slots of assumptions that a group may break.
    fn add_assumption_slots(&self, group: &mut Group) {
        for cube in &self.machine.assumptions {
            let mut own = Vec::new();
            for_each_read_cell(cube, &mut |c| self.read(c, &mut own));
            if own.iter().any(|s| group.writes.contains(s)) {
                group.reads.extend(own);
            }
        }
    }
    fn fire_groups(&mut self) {
        let action_of_tau = self.action_of_tau();
        for at in 0..self.machine.ground.len() {
            let g = &self.machine.ground[at];
            let (mut requires, mut reads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
            self.split_guard(&g.guard, &mut requires, &mut reads);
            if let Some(actor) = g.actor.filter(|_| g.locked) {
                requires.push((self.machine.buffer_slot(actor) as Slot, 0));
            }
            g.universal.iter().flatten().for_each(|cube| self.read_all(cube, &mut reads));
            self.add_update_slots(g, &mut reads, &mut writes);
            let t = &self.machine.system.transitions[g.transition as usize];
            let renamed = action_of_tau.clone().filter(|_| t.name == HIDDEN);
            let (name, args) =
                (renamed.unwrap_or_else(|| t.name.clone()), g.procs[..t.declared].to_vec());
            let text =
                self.machine.act_text(&crate::machine::Act::Fire(g.transition, g.procs.clone()));
            let mut group = Group::new(text, requires, reads, writes);
            self.add_assumption_slots(&mut group);
            let label = self.label(&name, args);
            self.add(group, GroupMove::Fire(narrow::index(at)), label);
        }
    }
    fn add_update_slots(&self, g: &Ground, reads: &mut Vec<Slot>, writes: &mut Vec<Slot>) {
        for u in &g.updates {
            let buffered = u.weak && !g.locked;
            if !buffered {
                writes.push(u.slot);
                // A cell without a matching case keeps its value.
                if u.cases.last().is_none_or(|(condition, _)| !condition.is_empty()) {
                    reads.push(u.slot);
                }
            }
            for (condition, value) in &u.cases {
                self.read_all(condition, reads);
                match value {
                    GroundValue::Term(t) => term_cells(t, &mut |c| self.read(c, reads)),
                    // The elements in use are tried.
                    GroundValue::Any
                        if self.machine.buffers_elements(self.machine.sort_of(u.slot)) =>
                    {
                        reads.extend(self.machine.slots_of_elements(u.slot));
                    }
                    GroundValue::Any => {}
                }
            }
        }
        if let Some(actor) = g.actor.filter(|_| !g.shape.is_empty() && !g.locked) {
            reads.push(self.machine.buffer_slot(actor) as Slot);
            writes.push(self.machine.buffer_slot(actor) as Slot);
        }
    }
    fn flush_groups(&mut self) {
        let mut pairs = BTreeSet::new();
        for g in self.machine.ground.iter().filter(|g| !g.shape.is_empty() && !g.locked) {
            if let (Some(actor), Some(shape)) = (g.actor, self.machine.shape_ids.get(&g.shape)) {
                pairs.insert((actor, *shape));
            }
        }
        for (p, shape) in pairs {
            let buffer = self.machine.buffer_slot(p) as Slot;
            let cells: Vec<Slot> = self.machine.shapes[shape as usize].clone();
            // An entry may omit cells of its shape, which then keep their values.
            let reads = [&[buffer], &cells[..]].concat();
            let writes = [&[buffer], &cells[..]].concat();
            let mut group = Group::new(format!("{FLUSH}({})", p + 1), Vec::new(), reads, writes);
            self.add_assumption_slots(&mut group);
            let label = self.label(FLUSH, vec![p]);
            self.add(group, GroupMove::Flush(p, shape), label);
        }
    }
    fn unsafe_groups(&mut self) {
        let label = self.label(UNSAFE, Vec::new());
        let system = self.machine.system;
        for (procs, cube) in
            system.unsafes.iter().flat_map(|c| self.machine.claim_cubes(c)).collect::<Vec<_>>()
        {
            let (mut requires, mut reads) = (Vec::new(), Vec::new());
            self.split_guard(&cube, &mut requires, &mut reads);
            let who: Vec<_> = procs.iter().map(|p| format!("#{}", p + 1)).collect();
            let group =
                Group::new(format!("{UNSAFE} {}", who.join(" ")), requires, reads, Vec::new());
            self.claims.push(cube);
            self.add(group, GroupMove::Unsafe(narrow::index(self.claims.len()) - 1), label);
        }
    }
    fn init_group(&mut self) {
        let Some(start) = self.start_slot() else { return };
        let differ = (0..self.machine.width())
            .filter(|s| self.starts.iter().any(|v| v[*s] != self.starts[0][*s]));
        let writes = differ.map(|s| s as Slot).chain([start]).collect();
        let label = self.label(INIT, Vec::new());
        self.add(Group::new(INIT, vec![(start, 0)], Vec::new(), writes), GroupMove::Init, label);
    }

    /// Returns the exchanges of neighbouring processes that the system does not name.
    fn candidates(&self) -> Vec<Symmetry> {
        let n = self.machine.layout.n;
        let named = !self.machine.setup.given.is_empty()
            && self.machine.system.symbols.iter().any(|s| s.sort == TypeId::PROC);
        if orders_processes(self.machine.system) || named {
            return Vec::new();
        }
        let swaps = (self.machine.system.fixed..n.saturating_sub(1)).map(|p| {
            let points: Vec<u32> = (0..n).map(|q| swap_neighbours(p, q)).collect();
            let slots = (0..self.slots.len() as Slot).map(|s| self.slot_image(p, s)).collect();
            Symmetry { name: format!("#{} and #{}", p + 1, p + 2), slots, points }
        });
        swaps.collect()
    }
    fn slot_image(&self, p: u32, slot: Slot) -> Slot {
        let layout = &self.machine.layout;
        if slot < layout.cells {
            let args = layout.args(self.machine.system, slot);
            return layout.slot(
                layout.symbol[slot as usize],
                args.into_iter().map(|q| swap_neighbours(p, q)),
            );
        }
        match slot - layout.cells {
            q if self.machine.memory == Memory::Tso && q < layout.n => {
                layout.cells + swap_neighbours(p, q)
            }
            _ => slot,
        }
    }
    fn code_image(&self, p: u32, slot: Slot, code: u32) -> Option<u32> {
        let (machine, layout) = (&self.machine, &self.machine.layout);
        if slot < layout.cells {
            let process = sort(machine.system, layout, slot) == TypeId::PROC
                && code != ANY
                && code != NOTHING;
            return Some(if process { swap_neighbours(p, code) } else { code });
        }
        let entries = machine.buffers.get(code);
        let image = |e: &TransitionWrites| {
            let shape = &machine.shapes[e.shape as usize];
            let mut writes = Vec::with_capacity(shape.len());
            for (s, v) in shape.iter().zip(&e.values) {
                writes.push((self.slot_image(p, *s), self.code_image(p, *s, *v)?));
            }
            writes.sort_unstable();
            let cells: Vec<u32> = writes.iter().map(|w| w.0).collect();
            Some(TransitionWrites {
                shape: *machine.shape_ids.get(&cells)?,
                values: writes.into_iter().map(|w| w.1).collect(),
            })
        };
        Some(
            machine
                .buffers
                .intern(Arc::from(entries.iter().map(image).collect::<Option<Vec<_>>>()?)),
        )
    }
}

fn swap_neighbours(p: u32, q: u32) -> u32 {
    if q == p {
        p + 1
    } else if q == p + 1 {
        p
    } else {
        q
    }
}

fn dense(machine: &Machine<'_>, t: TypeId) -> Dense {
    let constructors = &machine.system.type_of(t).constructors;
    match constructors.first() {
        // One more, because a cell may contain the process beyond the instance.
        _ if t == TypeId::PROC => Dense::Range(0, machine.layout.n + 1),
        _ if t.is_numeric() => Dense::Table(RwLock::default()),
        Some(first) => Dense::Range(first.number(), narrow::index(constructors.len())),
        None if machine.buffers_elements(t) => Dense::Table(RwLock::default()),
        None => Dense::Range(
            0,
            narrow::index(
                machine
                    .layout
                    .symbol
                    .iter()
                    .filter(|s| machine.system.symbol(**s).sort == t)
                    .count()
                    .max(1),
            ),
        ),
    }
}

/// True if processes are compared by order anywhere.
fn orders_processes(system: &System) -> bool {
    let process = |t: &Term| match t {
        Term::Proc(Proc::Var(_) | Proc::Fixed(_)) => true,
        Term::Cell(a) => system.symbol(a.symbol).sort == TypeId::PROC,
        Term::Cons(_) | Term::Sum(_) => false,
    };
    let ordered = |a: &Atom| matches!(a, Atom::Compare(x, ComparisonOp::Lt | ComparisonOp::Le, _) if process(x));
    let claims = system.invariants.iter().chain(&system.unsafes).flat_map(|c| &c.cube);
    let guards = system.transitions.iter().flat_map(|t| {
        t.guard.iter().chain(t.universal.iter().flat_map(|u| u.dnf.iter().flatten()))
    });
    let cases = system.transitions.iter().flat_map(|t| &t.updates).flat_map(|u| match u {
        crate::system::Update::Assign { .. } => Vec::new(),
        crate::system::Update::Cases { cases, .. } => {
            cases.iter().flat_map(|c| &c.condition).collect()
        }
    });
    system.init.dnf.iter().flatten().chain(claims).chain(guards).any(ordered)
        || cases.into_iter().any(ordered)
}

fn slots(machine: &Machine<'_>, choice: bool) -> Vec<SlotInfo> {
    let (system, layout) = (machine.system, &machine.layout);
    // A location array: one that most transitions test.
    let mut tests = vec![0usize; system.symbols.len()];
    for atom in system.transitions.iter().flat_map(|t| &t.guard) {
        if let Atom::Compare(Term::Cell(a), ComparisonOp::Eq, Term::Cons(_)) = atom {
            tests[a.symbol.index()] += 1;
        }
    }
    let component = |args: &[u32]| args.first().copied().unwrap_or(layout.n);
    let mut out = Vec::new();
    for slot in 0..layout.cells {
        let symbol = layout.symbol[slot as usize];
        let control = system.symbol(symbol).kind == SymbolKind::Plain
            && 2 * tests[symbol.index()] >= system.transitions.len().max(1);
        let args = layout.args(system, slot);
        out.push(SlotInfo { name: machine.cell_name(slot), component: component(&args), control });
    }
    if machine.memory == Memory::Tso {
        out.extend((0..layout.n).map(|p| SlotInfo {
            name: format!("buffer #{}", p + 1),
            component: p,
            control: false,
        }));
    }
    if choice {
        out.push(SlotInfo { name: "started".into(), component: layout.n, control: true });
    }
    out
}

impl Model for SystemModel<'_> {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        let first = &self.starts[0];
        let common =
            |s: usize| if self.starts.iter().all(|v| v[s] == first[s]) { first[s] } else { ANY };
        let cells = (0..self.machine.width()).map(|s| self.dense_of(s).of(common(s)));
        cells.chain(self.start_slot().map(|_| 0)).collect()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(SystemWorker {
            model: self,
            state: vec![0; self.slots.len()],
            results: Vec::new(),
        })
    }
    fn label_text(&self, label: LabelId) -> String {
        let label = self.names.get(label);
        let (name, args) = &*label;
        if args.is_empty() {
            return name.clone();
        }
        let args: Vec<_> = args.iter().map(|p| (p + 1).to_string()).collect();
        format!("{name}({})", args.join(", "))
    }
    fn label_count(&self) -> usize {
        self.names.count()
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        let cells = self.machine.layout.cells;
        if slot < cells {
            return self.machine.code_text(slot, self.dense_of(slot as usize).code(value));
        }
        if Some(slot) == self.start_slot() {
            (value == 1).to_string()
        } else {
            self.machine.buffer_text(value)
        }
    }
    fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
    }
    fn components(&self) -> Vec<String> {
        (1..=self.machine.layout.n).map(|p| format!("#{p}")).chain(["shared".to_string()]).collect()
    }
    fn parts(
        &self,
        group: usize,
        _before: &[u32],
        label: LabelId,
        _after: &[u32],
    ) -> Result<Vec<StepPart>, Diagnostic> {
        let label = self.names.get(label);
        let (name, args) = &*label;
        let who = match self.moves[group] {
            GroupMove::Fire(g) => {
                let g = &self.machine.ground[g as usize];
                g.actor.or(g.procs.first().copied())
            }
            GroupMove::Flush(p, _) => Some(p),
            GroupMove::Unsafe(_) | GroupMove::Init => None,
        };
        let component = who.unwrap_or(self.machine.layout.n);
        let from = vec![PartOrigin { component, action: name.clone(), open: 0 }];
        let args = args.iter().map(|p| (p + 1).to_string()).collect();
        Ok(vec![StepPart { name: name.clone(), args, hidden: false, from }])
    }
}

struct SystemWorker<'m, 's> {
    model: &'m SystemModel<'s>,
    /// The state in codes.
    state: Vec<u32>,
    results: Vec<Vec<(u32, u32)>>,
}

impl SystemWorker<'_, '_> {
    fn results(&mut self, movement: GroupMove) -> Result<(), Diagnostic> {
        let machine = &self.model.machine;
        let report = |need: StepObstacle| machine.failure(need);
        match movement {
            GroupMove::Fire(g) => machine
                .fire(&self.state, &machine.ground[g as usize], true, &mut self.results)
                .map_err(report)?,
            GroupMove::Flush(p, shape) => {
                let buffer = machine.buffers.get(self.state[machine.buffer_slot(p)]);
                if buffer.first().is_some_and(|e| e.shape == shape) {
                    self.results.extend(machine.flush(&self.state, p));
                }
            }
            GroupMove::Unsafe(c) => {
                if machine.holds_or_fails(&self.state, &self.model.claims[c as usize])? {
                    self.results.push(Vec::new());
                }
            }
            GroupMove::Init => {
                let start = self.model.start_slot().expect("a model with this move has the slot");
                let all = self.model.starts.iter().map(|v| {
                    let cells = v.iter().enumerate().map(|(s, code)| (narrow::index(s), *code));
                    cells.chain([(start, 1)]).collect()
                });
                self.results.extend(all);
            }
        }
        Ok(())
    }
}

impl Worker for SystemWorker<'_, '_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let model = self.model;
        let (info, movement) = (&model.groups[group], model.moves[group]);
        let width = model.machine.width();
        for (slot, value) in info
            .reads
            .iter()
            .copied()
            .zip(reads.iter().copied())
            .chain(info.requires.iter().copied())
        {
            let slot = slot as usize;
            self.state[slot] = if slot < width { model.dense_of(slot).code(value) } else { value };
        }
        self.results.clear();
        self.results(movement)?;
        // Check assumptions in the state after the step if this group may break them; their slots
        // are read.
        let before: Vec<u32> = self.state.clone();
        for result in std::mem::take(&mut self.results) {
            result.into_iter().for_each(|(slot, code)| self.state[slot as usize] = code);
            let checks_assumptions = movement != GroupMove::Init
                && !model.machine.assumptions.is_empty()
                && !info.writes.is_empty();
            if !checks_assumptions || model.keeps_assumptions(info, &self.state)? {
                out.labels.push(model.labels[group]);
                out.values.extend(info.writes.iter().map(|w| {
                    let slot = *w as usize;
                    if slot < width {
                        model.dense_of(slot).of(self.state[slot])
                    } else {
                        self.state[slot]
                    }
                }));
            }
            self.state.copy_from_slice(&before);
        }
        Ok(())
    }
    fn image(
        &mut self,
        symmetry: usize,
        slot: Slot,
        value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        let model = self.model;
        if slot as usize >= model.machine.width() {
            return Ok(Some(value));
        }
        let dense = model.dense_of(slot as usize);
        let p = model.machine.system.fixed + narrow::index(symmetry);
        Ok(model.code_image(p, slot, dense.code(value)).map(|code| dense.of(code)))
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        let p = self.model.machine.system.fixed + narrow::index(symmetry);
        let of = self.model.names.get(label);
        let (name, args) = &*of;
        if args.is_empty() {
            return Ok(Some(label));
        }
        let key = (name.clone(), args.iter().map(|q| swap_neighbours(p, *q)).collect::<Vec<u32>>());
        Ok(self.model.names.find(&key))
    }
}

impl SystemModel<'_> {
    /// True if no assumption about cells that a group writes is contradicted.
    ///
    /// # Errors
    ///
    /// An assumption depends on an undetermined number.
    fn keeps_assumptions(&self, info: &Group, state: &[u32]) -> Result<bool, Diagnostic> {
        for cube in &self.machine.assumptions {
            let mut own = Vec::new();
            for_each_read_cell(cube, &mut |c| self.read(c, &mut own));
            if own.iter().any(|s| info.writes.contains(s))
                && self.machine.holds_or_fails(state, cube)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
