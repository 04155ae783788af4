//! Abstract machines of Axe's manual, searched exhaustively: the oracle of random tests.

use std::collections::HashSet;

use mu_traces::Annotations;

/// Operation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Op {
    pub fence: bool,
    pub place: u32,
    pub load: bool,
    pub store: bool,
    pub loaded: u64,
    pub stored: u64,
    pub mark: Annotations,
    pub begin: Option<u64>,
    pub end: Option<u64>,
}

impl Op {
    const NONE: Op = Op {
        fence: false,
        place: 0,
        load: false,
        store: false,
        loaded: 0,
        stored: 0,
        mark: Annotations::PLAIN,
        begin: None,
        end: None,
    };
    pub fn load(place: u32, loaded: u64) -> Op {
        Op { place, load: true, loaded, ..Op::NONE }
    }
    pub fn store(place: u32, stored: u64) -> Op {
        Op { place, store: true, stored, ..Op::NONE }
    }
    pub fn update(place: u32, loaded: u64, stored: u64) -> Op {
        Op { place, load: true, store: true, loaded, stored, ..Op::NONE }
    }
    pub fn fence() -> Op {
        Op { fence: true, ..Op::NONE }
    }
    pub fn loads(&self) -> bool {
        self.load
    }
    pub fn stores(&self) -> bool {
        self.store
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    Sc,
    Tso,
    Pso,
    Wmo,
}

impl Machine {
    pub fn name(self) -> &'static str {
        match self {
            Machine::Sc => "sc",
            Machine::Tso => "tso",
            Machine::Pso => "pso",
            Machine::Wmo => "wmo",
        }
    }
}

/// State: operations that remain, buffers, memory.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    left: Vec<Vec<usize>>,
    buffers: Vec<Vec<(u32, u64)>>,
    memory: Vec<u64>,
}

/// Executes an operation of a thread; `None` if its value is wrong or it has to wait.
fn execute(machine: Machine, mut s: State, t: usize, at: usize, o: &Op) -> Option<State> {
    s.left[t].remove(at);
    if o.fence {
        return s.buffers[t].is_empty().then_some(s);
    }
    let own = s.buffers[t].iter().rev().find(|b| b.0 == o.place).map(|b| b.1);
    if o.loads() && o.stores() {
        let waits = if machine == Machine::Tso { !s.buffers[t].is_empty() } else { own.is_some() };
        if waits || s.memory[o.place as usize] != o.loaded {
            return None;
        }
        s.memory[o.place as usize] = o.stored;
    } else if o.loads() {
        if own.unwrap_or(s.memory[o.place as usize]) != o.loaded {
            return None;
        }
    } else if machine == Machine::Sc {
        s.memory[o.place as usize] = o.stored;
    } else {
        s.buffers[t].push((o.place, o.stored));
    }
    Some(s)
}

/// Returns the positions in the rest of a thread that may execute next.
fn candidates(machine: Machine, thread: &[Op], left: &[usize]) -> Vec<usize> {
    if machine != Machine::Wmo {
        return if left.is_empty() { Vec::new() } else { vec![0] };
    }
    let mut out = Vec::new();
    for (at, &i) in left.iter().enumerate() {
        let o = &thread[i];
        let begin = thread[..=i].iter().rev().filter(|p| !p.fence).find_map(|p| p.begin);
        let before = left[..at].iter().map(|j| &thread[*j]);
        let waits = before.clone().any(|p| {
            let ended = p.loads() && p.end.zip(begin).is_some_and(|(e, b)| e < b);
            p.fence || o.fence || p.place == o.place || ended
        });
        if !waits {
            out.push(at);
        }
    }
    out
}

/// True if a run of the machine explains all values.
pub fn allows(machine: Machine, threads: &[Vec<Op>], last: &[(u32, u64)]) -> bool {
    let places = threads.iter().flatten().map(|o| o.place + 1);
    let places = places.chain(last.iter().map(|l| l.0 + 1)).max().unwrap_or(0);
    let start = State {
        left: threads.iter().map(|t| (0..t.len()).collect()).collect(),
        buffers: vec![Vec::new(); threads.len()],
        memory: vec![0; places as usize],
    };
    let mut seen = HashSet::new();
    let mut stack = vec![start];
    while let Some(s) = stack.pop() {
        if !seen.insert(s.clone()) {
            continue;
        }
        let done = s.left.iter().all(Vec::is_empty) && s.buffers.iter().all(Vec::is_empty);
        if done && last.iter().all(|l| s.memory[l.0 as usize] == l.1) {
            return true;
        }
        for t in 0..threads.len() {
            for at in candidates(machine, &threads[t], &s.left[t]) {
                let o = &threads[t][s.left[t][at]];
                stack.extend(execute(machine, s.clone(), t, at, o));
            }
            let mut places = HashSet::new();
            for k in 0..s.buffers[t].len() {
                let (place, value) = s.buffers[t][k];
                if machine == Machine::Tso && k > 0 || !places.insert(place) {
                    continue;
                }
                let mut next = s.clone();
                next.buffers[t].remove(k);
                next.memory[place as usize] = value;
                stack.push(next);
            }
        }
    }
    false
}
