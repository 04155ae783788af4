//! Model of a program: the transitions of its machine as slots and transition groups.
//!
//! Each step of each thread is a group, enabled if the thread is at that step. Each pair of a
//! thread and a cell that it may store to is a group that moves a buffered store to memory. The
//! read and write lists of a group are derived from the step, so group caches and decision diagrams
//! apply.
//!
//! Labels are `read(t, x, v)`, `write(t, x, v)`, `update(t, x, old, new)`, `fence(t)`,
//! `store_fence(t)`, `flush(t, x, v)`, and `tau` for steps without memory access. The tau steps are
//! confluent, because only the thread itself reads its registers. One step of each loop of tau
//! steps has no priority: such a loop may never end, and the other threads must move as well.

use super::expansion::{OWN_PREFIXES, is_own_name};
use super::expr::{Expr, Width};
use super::liveness::{closes_local_loop, registers_read, successors};
use super::machine::{Machine, MoveEffect};
use super::memory::BufferEntry;
use super::{Access, Fence, Program, Register};
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_base::narrow;
use mu_model::table::LabelTable;
use mu_model::{Group, Model, Slot, SlotInfo, Steps, Worker};

/// The move of a transition group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMove {
    /// A thread executes a step.
    Step {
        /// The thread.
        thread: u32,
        /// The index of the step.
        place: u32,
    },
    /// A store of a thread to a cell moves to memory.
    Flush {
        /// The thread.
        thread: u32,
        /// The cell.
        cell: u32,
    },
    /// The state satisfies the goal; a self-loop.
    Goal,
}

/// A predicate on states, with the slots that it reads.
pub type Goal = (Vec<Slot>, Box<dyn Fn(&Machine, &[u32]) -> bool + Send + Sync>);

/// The label of the goal's group.
pub const GOAL: &str = "goal";

/// The model of a machine.
pub struct ProgramModel {
    /// The machine.
    pub machine: Machine,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    moves: Vec<GroupMove>,
    goal: Option<Goal>,
    labels: LabelTable<String>,
    /// Names of the cells in labels.
    names: Vec<String>,
}

impl ProgramModel {
    /// Creates a model. With a goal, every state that satisfies it has a transition labelled
    /// [`GOAL`].
    pub fn new(machine: Machine, goal: Option<Goal>) -> Self {
        let mut model = Self {
            names: cell_names(&machine.program),
            slots: slots(&machine),
            machine,
            groups: Vec::new(),
            moves: Vec::new(),
            goal: None,
            labels: LabelTable::new("tau".to_string()),
        };
        for thread in 0..model.machine.program.threads.len() {
            let closes_loop = closes_local_loop(&model.machine.program.threads[thread]);
            for (place, closes_loop) in closes_loop.into_iter().enumerate() {
                let mut group = model.step_group(thread, place);
                group.confluent = group.tau && !closes_loop;
                model.groups.push(group);
                model.moves.push(GroupMove::Step {
                    thread: narrow::index(thread),
                    place: narrow::index(place),
                });
            }
            model.flush_groups(thread);
        }
        if let Some((reads, test)) = goal {
            let mut reads = reads;
            reads.sort_unstable();
            reads.dedup();
            model.groups.push(group("goal".into(), Vec::new(), reads.clone(), Vec::new()));
            model.moves.push(GroupMove::Goal);
            model.goal = Some((reads, test));
        }
        model
    }
    /// Returns the move of a group.
    pub fn movement(&self, group: usize) -> GroupMove {
        self.moves[group]
    }

    /// Returns the group of a step.
    fn step_group(&self, thread: usize, place: usize) -> Group {
        let m = &self.machine;
        let code = &m.program.threads[thread];
        let step = &code.steps[place];
        let at = m.place_slot(thread) as Slot;
        let mut reads = Vec::new();
        registers_read(step, &mut |r| reads.push(m.register_slot(thread, r) as Slot));
        let mut writes = vec![at];
        writes.extend(step.assigns.iter().map(|(r, _)| m.register_slot(thread, *r) as Slot));
        // Registers that become dead are set to zero.
        for to in successors(step, place, code.steps.len()) {
            for (r, &live) in m.live(thread, to).iter().enumerate() {
                if m.live(thread, place)[r] && !live {
                    writes.push(m.register_slot(thread, r as Register) as Slot);
                }
            }
        }
        let branches = successors(step, place, code.steps.len()).count() > 1;
        let buffer = m.buffer_slot(thread).map(|b| b as Slot);
        let cells = |address: &Expr, width: &Width, write: bool| -> Vec<Slot> {
            let may_match = |c: usize| {
                if write {
                    m.program.cells[c].access == *width
                } else {
                    m.program.cells[c].access >= *width
                }
            };
            match address {
                Expr::Const(a) => m.program.cell_at(*a).into_iter().collect::<Vec<_>>(),
                _ => (0..m.program.cells.len()).filter(|&c| may_match(c)).collect(),
            }
            .into_iter()
            .map(|c| m.cell_slot(c) as Slot)
            .collect()
        };
        match &step.access {
            Access::None => {}
            Access::Read { address, width } => {
                reads.extend(buffer);
                reads.extend(cells(address, width, false));
            }
            Access::Write { address, width, when, .. } => match buffer {
                Some(b) => {
                    reads.push(b);
                    writes.push(b);
                }
                None => {
                    let touched = cells(address, width, true);
                    // A cell that is not written keeps its value, so the group must read it.
                    if when.is_some() || touched.len() > 1 {
                        reads.extend(&touched);
                    }
                    writes.extend(touched);
                }
            },
            Access::Update { address, width, .. } => {
                reads.extend(buffer);
                let touched = cells(address, width, true);
                reads.extend(&touched);
                writes.extend(touched);
            }
            Access::Fence(fence) => {
                reads.extend(buffer);
                if *fence == Fence::Store && m.memory.marks_store_fences() {
                    writes.extend(buffer);
                }
            }
        }
        // A register that is live after only one of the branches keeps its value on that branch.
        if branches {
            let unchanged: Vec<Slot> = writes.iter().copied().filter(|w| *w != at).collect();
            reads.extend(unchanged);
        }
        let instruction = &code.instructions[step.instruction as usize];
        let mut g = group(
            format!("{}: {}", code.name, instruction.text),
            vec![(at, narrow::index(place))],
            reads,
            writes,
        );
        g.tau = step.access == Access::None;
        g
    }

    /// Adds a group for each cell that the thread may store to, if the memory model has buffers.
    fn flush_groups(&mut self, thread: usize) {
        let Some(buffer) = self.machine.buffer_slot(thread).map(|b| b as Slot) else { return };
        let mut stored = vec![false; self.machine.program.cells.len()];
        for step in &self.machine.program.threads[thread].steps {
            if let Access::Write { address, width, .. } = &step.access {
                match address {
                    Expr::Const(a) => {
                        self.machine.program.cell_at(*a).into_iter().for_each(|c| stored[c] = true)
                    }
                    _ => stored
                        .iter_mut()
                        .zip(&self.machine.program.cells)
                        .for_each(|(s, c)| *s |= c.access == *width),
                }
            }
        }
        for (cell, _) in stored.iter().enumerate().filter(|(_, s)| **s) {
            let name = format!(
                "{}: store to {} reaches memory",
                self.machine.program.threads[thread].name, self.machine.program.cells[cell].name
            );
            self.groups.push(group(
                name,
                Vec::new(),
                vec![buffer],
                vec![buffer, self.machine.cell_slot(cell) as Slot],
            ));
            self.moves.push(GroupMove::Flush {
                thread: narrow::index(thread),
                cell: narrow::index(cell),
            });
        }
    }

    /// Prints the label of an event of a thread.
    pub fn event_text(&self, thread: u32, event: MoveEffect) -> String {
        let name = |c: u32| &self.names[c as usize];
        let number = |c: u32, v: u64| self.machine.program.cells[c as usize].width.to_signed(v);
        match event {
            MoveEffect::Local => "tau".into(),
            MoveEffect::Read { cell, value } => {
                format!("read({thread}, {}, {})", name(cell), number(cell, value))
            }
            MoveEffect::Write { cell, value } => {
                format!("write({thread}, {}, {})", name(cell), number(cell, value))
            }
            MoveEffect::Update { cell, old, new, .. } => {
                format!(
                    "update({thread}, {}, {}, {})",
                    name(cell),
                    number(cell, old),
                    number(cell, new)
                )
            }
            MoveEffect::Fence(Fence::Full) => format!("fence({thread})"),
            MoveEffect::Fence(Fence::Store) => format!("store_fence({thread})"),
            MoveEffect::Flush { cell, value } => {
                format!("flush({thread}, {}, {})", name(cell), number(cell, value))
            }
        }
    }
    /// Returns the number of a label; new labels are added to the table.
    fn label(&self, text: String) -> LabelId {
        self.labels.intern(text)
    }
}

/// Reserved words of mCRL2, which cannot be names of variables.
const RESERVED: [&str; 77] = [
    "act", "allow", "block", "comm", "cons", "delay", "delta", "div", "end", "eqn", "exists",
    "exp", "false", "floor", "forall", "glob", "hide", "if", "in", "init", "lambda", "map", "max",
    "min", "mod", "mu", "nabla", "nu", "pbes", "proc", "rename", "sort", "struct", "sum", "tau",
    "true", "val", "var", "whr", "yaled", "dist", "abs", "succ", "pred", "round", "ceil", "head",
    "tail", "rhead", "rtail", "count", "pick", "A2B", "Bool", "Pos", "Nat", "Int", "Real", "List",
    "Set", "Bag", "FSet", "FBag", "Pos2Nat", "Pos2Int", "Pos2Real", "Nat2Pos", "Nat2Int",
    "Nat2Real", "Int2Pos", "Int2Nat", "Int2Real", "Real2Pos", "Real2Nat", "Real2Int", "Set2Bag",
    "Bag2Set",
];

/// Returns the names of the cells as distinct mCRL2 identifiers.
pub fn cell_names(program: &Program) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for cell in &program.cells {
        let mut name = identifier(&cell.name);
        if OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            name.insert_str(0, "c_");
        }
        while RESERVED.contains(&name.as_str()) || is_own_name(&name) || names.contains(&name) {
            name.push('_');
        }
        names.push(name);
    }
    names
}

/// Converts a name to an mCRL2 identifier by replacing other characters with `_`.
pub fn identifier(name: &str) -> String {
    name.trim_end_matches(']')
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// Creates a group with sorted lists of slots.
fn group(
    name: String,
    requires: Vec<(Slot, u32)>,
    mut reads: Vec<Slot>,
    mut writes: Vec<Slot>,
) -> Group {
    for list in [&mut reads, &mut writes] {
        list.sort_unstable();
        list.dedup();
    }
    Group::new(name, requires, reads, writes)
}

/// Returns the slots: for each thread its position, its buffer, and its registers; then the cells.
fn slots(m: &Machine) -> Vec<SlotInfo> {
    let mut slots = Vec::with_capacity(m.slot_count());
    let threads = narrow::index(m.program.threads.len());
    for (t, thread) in m.program.threads.iter().enumerate() {
        let mut add = |name: &str, control: bool| {
            slots.push(SlotInfo {
                name: format!("{}.{name}", thread.name),
                component: narrow::index(t),
                control,
            })
        };
        add("at", true);
        if m.memory.has_buffers() {
            add("buffer", false);
        }
        thread.registers.iter().for_each(|r| add(&r.name, false));
    }
    slots.extend(m.program.cells.iter().map(|c| SlotInfo {
        name: c.name.clone(),
        component: threads,
        control: false,
    }));
    slots
}

impl Model for ProgramModel {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        self.machine.initial()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(ProgramWorker { model: self, state: vec![0; self.machine.slot_count()] })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.labels.get(label).to_string()
    }
    fn label_count(&self) -> usize {
        self.labels.count()
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        let m = &self.machine;
        for t in 0..m.program.threads.len() {
            if slot as usize == m.place_slot(t) {
                return value.to_string();
            }
            if Some(slot as usize) == m.buffer_slot(t) {
                return buffer_text(m, value);
            }
        }
        m.decode(value).to_string()
    }
}

/// Prints the stores of a buffer, oldest first.
pub fn buffer_text(m: &Machine, slot: u32) -> String {
    let text = |e: &BufferEntry| match *e {
        BufferEntry::Store { cell, value } => {
            let cell = &m.program.cells[cell as usize];
            format!("{}={}", cell.name, cell.width.to_signed(m.decode(value)))
        }
        BufferEntry::Mark => "|".to_string(),
    };
    format!("[{}]", m.buffer(slot).iter().map(text).collect::<Vec<_>>().join(", "))
}

struct ProgramWorker<'m> {
    model: &'m ProgramModel,
    state: Vec<u32>,
}

impl Worker for ProgramWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let info = &self.model.groups[group];
        let machine = &self.model.machine;
        for (&slot, &value) in info.reads.iter().zip(reads) {
            self.state[slot as usize] = value;
        }
        for &(slot, value) in &info.requires {
            self.state[slot as usize] = value;
        }
        let mut put = |state: &[u32], label: LabelId| {
            out.labels.push(label);
            out.values.extend(info.writes.iter().map(|&w| state[w as usize]));
        };
        match self.model.moves[group] {
            GroupMove::Step { thread, .. } => {
                if let Some(event) = machine.advance(thread as usize, &mut self.state)? {
                    put(&self.state, self.model.label(self.model.event_text(thread, event)));
                }
            }
            GroupMove::Flush { thread, cell } => {
                let mut ready = Vec::new();
                machine.ready(thread as usize, &self.state, &mut |at| ready.push(at));
                let slot = machine
                    .buffer_slot(thread as usize)
                    .ok_or_else(|| Diagnostic::internal("a flush under a model without buffers"))?;
                let before = self.state[slot];
                for at in ready {
                    if machine.buffer(before)[at].cell() == Some(cell) {
                        self.state[slot] = before;
                        let (cell, value) = machine.flush(thread as usize, at, &mut self.state)?;
                        put(
                            &self.state,
                            self.model.label(
                                self.model.event_text(thread, MoveEffect::Flush { cell, value }),
                            ),
                        );
                    }
                }
            }
            GroupMove::Goal => {
                if self.model.goal.as_ref().is_some_and(|(_, test)| test(machine, &self.state)) {
                    put(&self.state, self.model.label(GOAL.into()));
                }
            }
        }
        Ok(())
    }
}
