//! Direct semantics of a system for a number of processes: the oracle of the audit.
//!
//! Input: the typed system, a state. Output: its steps, and the truth of claims and `init` in it.
//! States are vectors of values, with a first-in-first-out store buffer for each process. Formulas
//! are evaluated directly. No code is shared with the explicit machine, the prover, or the
//! verifier.
//!
//! Cost: linear in the choices of processes for parameters.

use super::value::{AuditValue, Number, number, plus, residue, times};
use mu_base::narrow;
use mu_cubicle::system::{
    AssignedValue as Stored, Atom, CellAccess, Claim, ComparisonOp, Cube, Proc, Sum, SymbolId,
    SymbolKind, System, Term, Transition, TypeId, Update,
};
use std::collections::VecDeque;

/// The writes of one transition: slots with values.
pub type Entry = Vec<(usize, AuditValue)>;

/// A state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineState {
    /// Memory and all other cells, by slot.
    pub cells: Vec<AuditValue>,
    /// The store buffer of each process, oldest entry first.
    pub buffers: Vec<VecDeque<Entry>>,
}

impl MachineState {
    /// Returns the number of entries in all buffers.
    pub fn entries(&self) -> usize {
        self.buffers.iter().map(VecDeque::len).sum()
    }
}

/// The effect of a step on store buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect.
    None,
    /// Appends an entry to the buffer of a process.
    Store(u32),
    /// Moves the oldest entry of a process to memory.
    Flush(u32),
    /// Reads and writes memory atomically.
    Locked,
}

/// A step.
#[derive(Clone, Debug)]
pub struct MachineStep {
    /// The transition; `None` if an entry of a buffer reaches memory.
    pub transition: Option<usize>,
    /// The declared parameters, or the process of the entry that reaches memory.
    pub processes: Vec<u32>,
    /// The effect on buffers.
    pub effect: Effect,
    /// The next state.
    pub next: MachineState,
}

/// Source of values for `X := .`.
pub type Source<'s> = dyn FnMut(TypeId) -> AuditValue + 's;

/// Number of values drawn for each step that stores any value.
const VARIANTS: usize = 3;

/// The machine of a number of processes.
pub struct AuditMachine<'s> {
    /// The system.
    pub system: &'s System,
    /// Number of processes.
    pub n: u32,
    /// True if stores are buffered.
    pub tso: bool,
    /// The first slot of each symbol.
    first: Vec<usize>,
    /// Number of slots.
    pub slots: usize,
    /// For each number of variables: all choices of distinct processes.
    distinct: Vec<Vec<Env>>,
    /// For each number of variables: all choices of processes.
    all: Vec<Vec<Env>>,
}

/// The processes of variables.
pub type Env = Vec<u32>;

impl<'s> AuditMachine<'s> {
    /// Creates the machine of `n` processes.
    pub fn new(system: &'s System, n: u32, tso: bool) -> Self {
        let mut slots = 0;
        let mut first = Vec::new();
        for symbol in &system.symbols {
            first.push(slots);
            slots += (n as usize).pow(narrow::index(symbol.arity));
        }
        let params = system
            .transitions
            .iter()
            .map(|t| t.params.len())
            .chain(system.unsafes.iter().map(|c| c.params.len()));
        let most =
            params.chain(system.invariants.iter().map(|c| c.params.len())).max().unwrap_or(0);
        let arity = system
            .symbols
            .iter()
            .map(|s| s.arity)
            .chain([system.init.params.len()])
            .max()
            .unwrap_or(0);
        let distinct = (0..=most).map(|count| lists(n, count, true)).collect();
        let all = (0..=arity).map(|count| lists(n, count, false)).collect();
        Self { system, n, tso, first, slots, distinct, all }
    }

    /// Returns the slot of a cell.
    pub fn slot(&self, symbol: usize, args: impl Iterator<Item = u32>) -> usize {
        self.first[symbol] + args.fold(0, |at, p| at * self.n as usize + p as usize)
    }

    /// Returns the symbol of a slot, and its indices.
    pub fn cell(&self, slot: usize) -> (usize, Vec<u32>) {
        let symbol = self.first.partition_point(|f| *f <= slot) - 1;
        let arity = self.system.symbols[symbol].arity;
        let mut rest = slot - self.first[symbol];
        let mut args = vec![0; arity];
        for arg in args.iter_mut().rev() {
            *arg = narrow::index(rest % self.n as usize);
            rest /= self.n as usize;
        }
        (symbol, args)
    }

    /// Returns the sort of a slot.
    pub fn sort(&self, slot: usize) -> TypeId {
        self.system.symbols[self.cell(slot).0].sort
    }

    /// Returns the process of a variable or a constant.
    pub fn process(env: &Env, p: Proc) -> u32 {
        match p {
            Proc::Var(v) => env[v as usize],
            Proc::Fixed(n) => n - 1,
        }
    }

    /// Returns the slot of an access.
    pub fn accessed_slot(&self, env: &Env, a: &CellAccess) -> usize {
        self.slot(a.symbol.index(), a.args.iter().map(|p| Self::process(env, *p)))
    }

    /// Returns all choices of distinct processes for a number of parameters.
    pub fn choices(&self, params: usize) -> &[Env] {
        &self.distinct[params]
    }

    fn read(&self, state: &MachineState, env: &Env, a: &CellAccess) -> AuditValue {
        let slot = self.accessed_slot(env, a);
        if let (true, Some(by)) = (self.tso, a.by) {
            let buffer = &state.buffers[Self::process(env, by) as usize];
            let newest = buffer.iter().rev().find_map(|entry| entry.iter().find(|w| w.0 == slot));
            if let Some(write) = newest {
                return write.1;
            }
        }
        state.cells[slot]
    }

    fn sum(&self, state: &MachineState, env: &Env, sum: &Sum) -> Option<Number> {
        let mut total = number(&sum.constant)?;
        for (access, factor) in &sum.terms {
            let AuditValue::Number(n) = self.read(state, env, access) else { return None };
            total = plus(total, times(number(factor)?, n)?)?;
        }
        Some(total)
    }

    /// Evaluates a term; `None` on overflow.
    pub fn term(&self, state: &MachineState, env: &Env, term: &Term) -> Option<AuditValue> {
        Some(match term {
            Term::Proc(p) => AuditValue::Process(Self::process(env, *p)),
            Term::Cons(c) => AuditValue::Constructor(c.number()),
            Term::Cell(a) => self.read(state, env, a),
            Term::Sum(s) => AuditValue::Number(self.sum(state, env, s)?),
        })
    }

    /// Evaluates an atom; `None` on overflow.
    pub fn atom(&self, state: &MachineState, env: &Env, atom: &Atom) -> Option<bool> {
        match atom {
            Atom::False => Some(false),
            Atom::Fence(p) => {
                Some(!self.tso || state.buffers[Self::process(env, *p) as usize].is_empty())
            }
            Atom::Compare(a, op, b) => {
                let (a, b) = (self.term(state, env, a)?, self.term(state, env, b)?);
                let less = |equal: bool| match (a, b) {
                    (AuditValue::Number(a), AuditValue::Number(b)) => a < b || equal && a == b,
                    (AuditValue::Process(a), AuditValue::Process(b)) => a < b || equal && a == b,
                    _ => false,
                };
                Some(match op {
                    ComparisonOp::Eq => a == b,
                    ComparisonOp::Neq => a != b,
                    ComparisonOp::Lt => less(false),
                    ComparisonOp::Le => less(true),
                })
            }
            Atom::Words(w) => {
                let left = residue(self.sum(state, env, &w.left)?, w.bits);
                let right = residue(self.sum(state, env, &w.right)?, w.bits);
                Some(match w.op {
                    ComparisonOp::Eq => left == right,
                    ComparisonOp::Neq => left != right,
                    ComparisonOp::Lt => left < right,
                    ComparisonOp::Le => left <= right,
                })
            }
        }
    }

    fn cube(&self, state: &MachineState, env: &Env, cube: &Cube) -> Option<bool> {
        for atom in cube {
            if !self.atom(state, env, atom)? {
                return Some(false);
            }
        }
        Some(true)
    }

    fn any_cube(&self, state: &MachineState, env: &Env, dnf: &[Cube]) -> Option<bool> {
        for cube in dnf {
            if self.cube(state, env, cube)? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Returns whether a claim holds for some distinct processes; `None` on overflow.
    pub fn claim(&self, state: &MachineState, claim: &Claim) -> Option<bool> {
        let mut known = Some(false);
        for env in &self.distinct[claim.params.len()] {
            match self.cube(state, env, &claim.cube) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => known = None,
            }
        }
        known
    }

    /// True if no assumption of the file is contradicted.
    pub fn is_state(&self, state: &MachineState) -> bool {
        self.system.invariants.iter().all(|c| self.claim(state, c) == Some(false))
    }

    /// Returns the choices of processes that violate `init`.
    pub fn not_initial(&self, state: &MachineState) -> Vec<Env> {
        let init = &self.system.init;
        let all = &self.all[init.params.len()];
        all.iter()
            .filter(|env| self.any_cube(state, env, &init.dnf) != Some(true))
            .cloned()
            .collect()
    }

    /// Returns the steps of a state, without those that overflow.
    pub fn steps(&self, state: &MachineState, source: &mut Source) -> Vec<MachineStep> {
        let mut out = Vec::new();
        for (number, t) in self.system.transitions.iter().enumerate() {
            for env in &self.distinct[t.params.len()] {
                if self.is_enabled(state, env, t) != Some(true) {
                    continue;
                }
                let open = t.updates.iter().any(is_open);
                for _ in 0..if open { VARIANTS } else { 1 } {
                    if let Some((next, effect)) = self.fire(state, env, t, source) {
                        out.push(MachineStep {
                            transition: Some(number),
                            processes: env[..t.declared].to_vec(),
                            effect,
                            next,
                        });
                    }
                }
            }
        }
        for p in 0..self.n {
            let mut next = state.clone();
            if let Some(entry) = next.buffers[p as usize].pop_front() {
                entry.into_iter().for_each(|(slot, value)| next.cells[slot] = value);
                out.push(MachineStep {
                    transition: None,
                    processes: vec![p],
                    effect: Effect::Flush(p),
                    next,
                });
            }
        }
        out.retain(|s| self.is_state(&s.next));
        out
    }

    /// True if a transition is enabled for a choice of processes; `None` on overflow.
    pub(super) fn is_enabled(
        &self,
        state: &MachineState,
        env: &Env,
        t: &Transition,
    ) -> Option<bool> {
        let waits = self.tso
            && t.locked
            && t.actor.is_some_and(|p| !state.buffers[Self::process(env, p) as usize].is_empty());
        if waits || !self.cube(state, env, &t.guard)? {
            return Some(false);
        }
        for u in &t.universal {
            for p in (0..self.n).filter(|p| !env[..t.declared].contains(p)) {
                if !self.any_cube(state, &with(env, u.var, p), &u.dnf)? {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Executes an enabled transition.
    pub(super) fn fire(
        &self,
        state: &MachineState,
        env: &Env,
        t: &Transition,
        source: &mut Source,
    ) -> Option<(MachineState, Effect)> {
        let mut next = state.clone();
        let mut entry = Entry::new();
        for update in &t.updates {
            let symbol = update.symbol();
            let buffered =
                self.tso && !t.locked && self.system.symbol(symbol).kind == SymbolKind::Weak;
            for (slot, value) in self.writes(state, env, update, source)? {
                if buffered {
                    entry.push((slot, value));
                } else {
                    next.cells[slot] = value;
                }
            }
        }
        if entry.is_empty() {
            return Some((next, if self.tso && t.locked { Effect::Locked } else { Effect::None }));
        }
        let actor = Self::process(env, t.actor?);
        next.buffers[actor as usize].push_back(entry);
        Some((next, Effect::Store(actor)))
    }

    fn writes(
        &self,
        state: &MachineState,
        env: &Env,
        update: &Update,
        source: &mut Source,
    ) -> Option<Entry> {
        let sort = self.system.symbol(update.symbol()).sort;
        let mut value = |env: &Env, v: &Stored| match v {
            Stored::Any => Some(source(sort)),
            Stored::Term(t) => match (self.term(state, env, t)?, sort.bits()) {
                (AuditValue::Number(n), Some(bits)) => Some(AuditValue::Number(residue(n, bits))),
                (value, _) => Some(value),
            },
        };
        match update {
            Update::Assign { symbol, args, value: v, .. } => {
                let slot = self.slot(symbol.index(), args.iter().map(|p| Self::process(env, *p)));
                Some(vec![(slot, value(env, v)?)])
            }
            Update::Cases { symbol, bound, cases, .. } => {
                let mut out = Entry::new();
                for indices in &self.all[bound.len()] {
                    let mut inner = env.clone();
                    for (b, p) in bound.iter().zip(indices) {
                        inner = with(&inner, b.0, *p);
                    }
                    for case in cases {
                        if self.cube(state, &inner, &case.condition)? {
                            out.push((
                                self.slot(symbol.index(), indices.iter().copied()),
                                value(&inner, &case.value)?,
                            ));
                            break;
                        }
                    }
                }
                Some(out)
            }
        }
    }

    /// Prints a state.
    pub fn cells_text(&self, state: &MachineState) -> String {
        let texts =
            state.cells.iter().enumerate().map(|(slot, value)| {
                format!("{} = {}", self.slot_text(slot), self.value_text(*value))
            });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Prints the entries of a buffer, oldest first.
    pub fn buffer_text(&self, buffer: &VecDeque<Entry>) -> String {
        let write = |(slot, value): &(usize, AuditValue)| {
            format!("{} = {}", self.slot_text(*slot), self.value_text(*value))
        };
        let entries = buffer.iter().map(|e| e.iter().map(write).collect::<Vec<_>>().join(" & "));
        entries.collect::<Vec<_>>().join("; ")
    }

    /// Prints a step.
    pub fn step_text(&self, step: &MachineStep) -> String {
        let name = step.transition.map_or("flush", |t| &self.system.transitions[t].name);
        let args: Vec<String> = step.processes.iter().map(|p| (p + 1).to_string()).collect();
        if args.is_empty() { name.to_string() } else { format!("{name}({})", args.join(",")) }
    }

    fn slot_text(&self, slot: usize) -> String {
        let (symbol, args) = self.cell(slot);
        let name = &self.system.symbol(SymbolId::new(symbol)).name;
        let args: Vec<String> = args.iter().map(|p| format!("#{}", p + 1)).collect();
        if args.is_empty() { name.clone() } else { format!("{name}[{}]", args.join(",")) }
    }

    fn value_text(&self, value: AuditValue) -> String {
        match value {
            AuditValue::Process(p) => format!("#{}", p + 1),
            AuditValue::Constructor(c) => self.system.constructors[c as usize].name.clone(),
            AuditValue::Element(e) => format!("element {e}"),
            AuditValue::Number(n) => n.to_string(),
        }
    }
}

/// Returns the lists of processes for a number of variables, distinct or not.
fn lists(n: u32, count: usize, distinct: bool) -> Vec<Env> {
    let mut lists: Vec<Env> = vec![Vec::new()];
    for _ in 0..count {
        let longer = |l: &Env| {
            let free = (0..n).filter(|p| !distinct || !l.contains(p));
            free.map(|p| [l.as_slice(), &[p]].concat()).collect::<Vec<Env>>()
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    lists
}

/// True if an update stores any value.
fn is_open(update: &Update) -> bool {
    let any = |v: &Stored| *v == Stored::Any;
    match update {
        Update::Assign { value, .. } => any(value),
        Update::Cases { cases, .. } => cases.iter().any(|c| any(&c.value)),
    }
}

/// Extends the processes by one variable.
pub fn with(env: &Env, variable: u32, process: u32) -> Env {
    let mut env = env.clone();
    if env.len() <= variable as usize {
        env.resize(variable as usize + 1, 0);
    }
    env[variable as usize] = process;
    env
}
