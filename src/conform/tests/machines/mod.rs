//! Random machines: two processors, two addresses, three or four values, and buffers in front of a
//! memory, with or without faults.

#![allow(dead_code)] // Each test uses a part.

pub mod table;

use mu_base::random::Random;
use mu_model::hand::HandModel;

pub const PROCESSORS: usize = 2;
pub const ADDRESSES: usize = 2;
/// Values that are stored, in addition to the initial one if it is not among them.
pub const STORED: u32 = 3;

/// Treatment of the entries of its own buffer by a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forwarding {
    Newest,
    Oldest,
    Waits,
    Ignores,
}

/// A fence or an update, which waits until the stores of its processor are in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Barrier {
    Absent,
    Correct,
    /// It does not wait.
    Faulty,
}

impl Barrier {
    fn random(random: &mut Random) -> Barrier {
        match random.chance(1, 4).then(|| random.chance(1, 2)) {
            None => Barrier::Absent,
            Some(false) => Barrier::Correct,
            Some(true) => Barrier::Faulty,
        }
    }
    pub fn is_present(self) -> bool {
        self != Barrier::Absent
    }
    /// True if it can take effect. `drained`: all stores of the processor are in memory.
    fn is_enabled(self, drained: bool) -> bool {
        match self {
            Barrier::Absent => false,
            Barrier::Correct => drained,
            Barrier::Faulty => true,
        }
    }
}

/// Treatment by loads of a store that waits before its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueVisibility {
    Visible,
    Hidden,
}

/// The load in progress of a processor that has two labels.
#[derive(Clone, Copy)]
enum OpenLoad {
    /// Of an address; it reads at its end.
    Unsampled(usize),
    /// Of an address, with the value that it read at its beginning.
    Sampled(usize, u32),
}

impl OpenLoad {
    /// Returns the number that represents the load in a state; 0 is no load.
    fn code(self) -> u32 {
        match self {
            OpenLoad::Unsampled(a) => 1 + a as u32,
            OpenLoad::Sampled(a, v) => 3 + a as u32 + 2 * v,
        }
    }
    fn of(code: u32) -> Option<OpenLoad> {
        match code {
            0 => None,
            1 | 2 => Some(OpenLoad::Unsampled(code as usize - 1)),
            _ => Some(OpenLoad::Sampled(((code - 3) % 2) as usize, (code - 3) / 2)),
        }
    }
}

/// The time at which a load with two labels reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    Begin,
    End,
}

/// A design of a machine. The faults are `loses`, `doubles`, `aliases`, `stale`, and `torn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Design {
    /// Slots of the buffer of each processor; without one, stores reach memory at once.
    pub slots: [usize; PROCESSORS],
    /// True if the initial value is stored too.
    pub stores_initial: bool,
    /// Buffers commit their stores in order; if not, only the stores to one address.
    pub in_order: bool,
    pub forwarding: Forwarding,
    pub fence: Barrier,
    pub update: Barrier,
    /// Some store never reaches memory.
    pub loses: bool,
    /// Some store reaches memory twice.
    pub doubles: bool,
    /// Stores reach another address.
    pub aliases: bool,
    /// Loads may return the initial value.
    pub stale: bool,
    /// Loads read a copy of the memory for each processor, refreshed by internal steps.
    pub copies: bool,
    /// A store replaces a waiting one to its address.
    pub merges: bool,
    /// The label of such a store shows that the other one is absorbed.
    pub absorbs: bool,
    /// Each address has one place before it, in which a store waits.
    pub address_queue: Option<QueueVisibility>,
    /// Loads begin and end at different labels.
    pub sampling: Option<Sampling>,
    /// An update may read the initial value.
    pub torn: bool,
}

impl Design {
    /// Total store order without faults.
    pub const CORRECT_TSO: Design = Design {
        slots: [2, 2],
        stores_initial: false,
        in_order: true,
        forwarding: Forwarding::Newest,
        fence: Barrier::Absent,
        update: Barrier::Absent,
        loses: false,
        doubles: false,
        aliases: false,
        stale: false,
        copies: false,
        merges: false,
        absorbs: false,
        address_queue: None,
        sampling: None,
        torn: false,
    };

    pub fn random(random: &mut Random) -> Design {
        let forwarding = match random.below(8) {
            0..5 => Forwarding::Newest,
            5 => Forwarding::Oldest,
            6 => Forwarding::Waits,
            _ => Forwarding::Ignores,
        };
        let slots = match random.below(40) {
            0..8 => [0, 0],
            8..17 => [1, 0],
            17..29 => [1, 1],
            29..36 => [2, 0],
            36..39 => [2, 1],
            _ => [2, 2],
        };
        let small = slots[0] + slots[1] < 2;
        let copies = small && random.chance(1, 3);
        let address_queue = (small && !copies && random.chance(1, 3)).then(|| {
            if random.chance(1, 2) { QueueVisibility::Hidden } else { QueueVisibility::Visible }
        });
        let read = if random.chance(1, 2) { Sampling::Begin } else { Sampling::End };
        let sampling = (small && !copies && random.chance(1, 4)).then_some(read);
        let update = Barrier::random(random);
        let design = Design {
            slots,
            stores_initial: slots == [2, 2] || copies || random.chance(1, 2),
            in_order: random.chance(2, 3),
            forwarding,
            fence: Barrier::random(random),
            update,
            loses: random.chance(1, 12),
            doubles: random.chance(1, 12),
            aliases: random.chance(1, 12),
            stale: random.chance(1, 12),
            copies,
            merges: random.chance(1, 12),
            absorbs: false,
            address_queue,
            sampling,
            torn: update.is_present() && random.chance(1, 4),
        };
        Design { absorbs: design.merges && random.chance(1, 2), ..design }
    }

    /// True if some stores may never reach memory.
    pub fn hides_stores(&self) -> bool {
        self.loses || self.merges && !self.absorbs
    }

    pub fn interface(&self) -> String {
        let mut out = String::from("initial v0; store store(p, a, v); commit commit(p, a, v);");
        out += match self.sampling {
            None => "load load(p, a, v);",
            Some(_) => "load begin(p, a) -> load(p, a, v);",
        };
        if self.absorbs {
            out += "store merge(p, a, _, v); absorb merge(p, a, v, _);";
        }
        if self.fence.is_present() {
            out += "fence fence(p);";
        }
        if self.update.is_present() {
            out += "update update(p, a, v, w);";
        }
        out
    }

    /// Returns the values that can be stored.
    fn stored_values(&self) -> std::ops::Range<u32> {
        let first = u32::from(!self.stores_initial);
        first..first + STORED
    }

    pub fn model(self) -> HandModel {
        let mut model = HandModel::new();
        let mut slots = Vec::new();
        for i in 0..State::SLOTS {
            slots.push(model.slot(format!("s{i}"), 0, false, 0));
        }
        for p in 0..PROCESSORS {
            model.group(format!("p{p}"), &[], &slots, &slots, move |state, emit| {
                let mut all = Vec::new();
                self.steps(p, &State::of(state), &mut all);
                for (label, next) in all {
                    emit.step(label, &next.to_slots());
                }
            });
        }
        model
    }

    /// Returns the model as a table, with the exchanges of the processors and of the addresses as
    /// candidates for symmetries. Many designs have no such symmetry.
    pub fn table_with_candidates(self) -> table::Table {
        let mut out = table::Table::of(&self.model());
        let exchanged = |state: &[u32], processors: bool| {
            let mut state = State::of(state);
            if processors {
                state.copies.swap(0, 1);
                state.buffers.swap(0, 1);
                state.open.swap(0, 1);
            } else {
                state.memory.swap(0, 1);
                state.copies.iter_mut().for_each(|c| c.swap(0, 1));
                state.places.swap(0, 1);
                state.buffers.iter_mut().flatten().for_each(|e| e.0 = 1 - e.0);
                for open in state.open.iter_mut().filter(|o| **o > 0) {
                    *open = ((*open - 1) ^ 1) + 1;
                }
            }
            state.to_slots()
        };
        let renamed = |text: &str, name: &str| {
            let (first, second) = (format!("{name}0"), format!("{name}1"));
            text.replace(&first, "?").replace(&second, &first).replace('?', &second)
        };
        let processors = |s: &[u32]| exchanged(s, true);
        let addresses = |s: &[u32]| exchanged(s, false);
        out.add_candidate(vec![1, 0, 2, 3], &processors, &|l| renamed(l, "p"));
        out.add_candidate(vec![0, 1, 3, 2], &addresses, &|l| renamed(l, "a"));
        out
    }

    /// Writes to memory, or to the place before it. Returns the label of the commit or of the move;
    /// `None` if the store has to wait.
    fn write(&self, state: &mut State, p: usize, a: usize, v: u32) -> Option<String> {
        let at = if self.aliases { 0 } else { a };
        if self.address_queue.is_some() {
            if state.places[at] != 0 {
                return None;
            }
            state.places[at] = v + 1;
            return Some("tau".into());
        }
        self.commit(state, p, at, v);
        Some(format!("commit(p{p}, a{a}, v{v})"))
    }

    /// Writes a store to memory.
    fn commit(&self, state: &mut State, p: usize, a: usize, v: u32) {
        state.memory[a] = v;
        if self.copies {
            state.copies[p][a] = v;
        }
    }

    /// Returns the value of memory for a processor.
    fn memory(&self, state: &State, p: usize, a: usize) -> u32 {
        match self.address_queue {
            Some(QueueVisibility::Visible) if state.places[a] != 0 => state.places[a] - 1,
            _ if self.copies => state.copies[p][a],
            _ => state.memory[a],
        }
    }

    /// Lists the values that a load can return.
    fn loadable_values(&self, state: &State, p: usize, a: usize) -> Vec<u32> {
        let mut own = state.buffers[p].iter().filter(|e| e.0 == a).map(|e| e.1);
        let memory = self.memory(state, p, a);
        let value = match self.forwarding {
            Forwarding::Newest => Some(own.next_back().unwrap_or(memory)),
            Forwarding::Oldest => Some(own.next().unwrap_or(memory)),
            Forwarding::Waits => own.next().is_none().then_some(memory),
            Forwarding::Ignores => Some(memory),
        };
        value.into_iter().chain(self.stale.then_some(0)).collect()
    }

    fn steps(&self, p: usize, state: &State, out: &mut Vec<(String, State)>) {
        let loads = match OpenLoad::of(state.open[p]) {
            None => {
                self.operations(p, state, out);
                None
            }
            Some(OpenLoad::Unsampled(a)) => Some((a, self.loadable_values(state, p, a))),
            Some(OpenLoad::Sampled(a, v)) => Some((a, vec![v])),
        };
        if let Some((a, values)) = loads {
            for v in values {
                let mut next = state.clone();
                next.open[p] = 0;
                out.push((format!("load(p{p}, a{a}, v{v})"), next));
            }
        }
        self.move_buffers(p, state, out);
        for a in 0..ADDRESSES {
            if self.copies && state.copies[p][a] != state.memory[a] {
                let mut next = state.clone();
                next.copies[p][a] = state.memory[a];
                out.push(("tau".into(), next));
            }
            if p == 0 && state.places[a] != 0 {
                let v = state.places[a] - 1;
                let mut next = state.clone();
                next.places[a] = 0;
                self.commit(&mut next, p, a, v);
                // The processor of a commit is ignored.
                out.push((format!("commit(p{p}, a{a}, v{v})"), next));
            }
        }
    }

    fn operations(&self, p: usize, state: &State, out: &mut Vec<(String, State)>) {
        let buffer = &state.buffers[p];
        for a in 0..ADDRESSES {
            for v in self.stored_values() {
                let mut next = state.clone();
                let mut label = format!("store(p{p}, a{a}, v{v})");
                if self.slots[p] == 0 {
                    match self.write(&mut next, p, a, v) {
                        Some(commit) if commit == "tau" => out.push((label, next)),
                        Some(commit) => out.push((format!("{commit}|{label}"), next)),
                        None => {}
                    }
                    continue;
                }
                let same = buffer.iter().position(|e| e.0 == a).filter(|_| self.merges);
                match same {
                    Some(at) => {
                        let old = std::mem::replace(&mut next.buffers[p][at].1, v);
                        if self.absorbs {
                            label = format!("merge(p{p}, a{a}, v{old}, v{v})");
                        }
                    }
                    None if buffer.len() < self.slots[p] => next.buffers[p].push((a, v)),
                    None => continue,
                }
                out.push((label, next));
            }
            match self.sampling {
                None => {
                    for v in self.loadable_values(state, p, a) {
                        out.push((format!("load(p{p}, a{a}, v{v})"), state.clone()));
                    }
                }
                Some(Sampling::End) => {
                    let mut next = state.clone();
                    next.open[p] = OpenLoad::Unsampled(a).code();
                    out.push((format!("begin(p{p}, a{a})"), next));
                }
                Some(Sampling::Begin) => {
                    for v in self.loadable_values(state, p, a) {
                        let mut next = state.clone();
                        next.open[p] = OpenLoad::Sampled(a, v).code();
                        out.push((format!("begin(p{p}, a{a})"), next));
                    }
                }
            }
            let drained = buffer.is_empty() && state.places.iter().all(|e| *e == 0);
            if self.update.is_enabled(drained) && state.places[a] == 0 {
                let memory = [state.memory[a]];
                let initial = self.torn.then_some(0);
                for v in memory.into_iter().chain(initial) {
                    for w in self.stored_values() {
                        let mut next = state.clone();
                        self.commit(&mut next, p, a, w);
                        out.push((format!("update(p{p}, a{a}, v{v}, v{w})"), next));
                    }
                }
            }
        }
        let drained = buffer.is_empty() && state.places.iter().all(|e| *e == 0);
        if self.fence.is_enabled(drained) {
            out.push((format!("fence(p{p})"), state.clone()));
        }
    }

    /// Moves the entries of buffers.
    fn move_buffers(&self, p: usize, state: &State, out: &mut Vec<(String, State)>) {
        let buffer = &state.buffers[p];
        for i in 0..buffer.len() {
            let (a, v) = buffer[i];
            // A buffer that is not in order still commits stores to one address in order.
            let oldest = !buffer[..i].iter().any(|e| e.0 == a);
            if i > 0 && (self.in_order || !oldest) {
                continue;
            }
            let mut next = state.clone();
            next.buffers[p].remove(i);
            if self.loses {
                out.push(("tau".into(), next.clone()));
            }
            let Some(label) = self.write(&mut next, p, a, v) else { continue };
            out.push((label.clone(), next.clone()));
            if self.doubles {
                next.buffers[p].insert(i, (a, v));
                out.push((label, next));
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct State {
    memory: [u32; ADDRESSES],
    copies: [[u32; ADDRESSES]; PROCESSORS],
    buffers: [Vec<(usize, u32)>; PROCESSORS],
    /// The load of each processor in progress.
    open: [u32; PROCESSORS],
    /// The store before each address: one more than its value, or 0.
    places: [u32; ADDRESSES],
}

impl State {
    const SLOTS: usize = 2 * ADDRESSES + PROCESSORS * ADDRESSES + 2 * PROCESSORS;

    fn of(values: &[u32]) -> State {
        let mut state = State {
            memory: [values[0], values[1]],
            copies: [[values[2], values[3]], [values[4], values[5]]],
            buffers: [Vec::new(), Vec::new()],
            open: [values[8], values[9]],
            places: [values[10], values[11]],
        };
        for p in 0..PROCESSORS {
            let mut code = values[6 + p];
            while code > 0 {
                let entry = code % 16 - 1;
                state.buffers[p].push(((entry / 4) as usize, entry % 4));
                code /= 16;
            }
        }
        state
    }
    /// Returns the values of the slots.
    fn to_slots(&self) -> Vec<u32> {
        let mut out: Vec<u32> =
            self.memory.iter().chain(self.copies.iter().flatten()).copied().collect();
        let code = |b: &Vec<(usize, u32)>| {
            b.iter().rev().fold(0, |code, (a, v)| code * 16 + 1 + *a as u32 * 4 + v)
        };
        out.extend(self.buffers.iter().map(code));
        out.extend(self.open.iter().chain(&self.places));
        out
    }
}
