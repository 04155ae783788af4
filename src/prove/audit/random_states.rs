//! Random machine states: initial states, mutations, states close to the cubes of a certificate.
//!
//! Numbers are those of the system and of the certificate with their neighbours, numbers of the
//! current state, and large ones (2^31, 2^32). A state is repaired towards a formula atom by atom:
//! an equation is solved for one of its cells. Cost: linear in the atoms.

use super::machine::{AuditMachine, Entry, Env, MachineState};
use super::value::{AuditValue, Number, divide, number, plus, residue, times, whole};
use mu_base::narrow;
use mu_base::random::Random;
use mu_cubicle::system::{
    AssignedValue, Atom, CellAccess, ComparisonOp, Cube, Sum, SymbolKind, System, Term, TypeId,
    Update, Words,
};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use std::collections::{BTreeSet, VecDeque};

/// Largest number of entries in the buffers of a random state.
pub const MAX_ENTRIES: usize = 5;
/// Number of repair passes to satisfy `init`.
const PASSES: usize = 40;
/// Number of elements of an abstract type.
const ELEMENTS: usize = 4;
/// Number of random values that are tried to satisfy a comparison of words.
const TRIES: usize = 4;

/// Generator of states.
pub struct StateGenerator {
    /// The random numbers.
    pub random: Random,
    numbers: Vec<Number>,
    /// True if cells may contain a process beyond the instance.
    pub allows_foreign_processes: bool,
}

/// Returns the numbers in a system.
pub fn constants(system: &System) -> Vec<Number> {
    let mut found = Vec::new();
    let mut term = |t: &Term| {
        if let Term::Sum(s) = t {
            found.extend(number(&s.constant));
        }
    };
    let mut cube = |cube: &Cube| {
        for atom in cube {
            if let Atom::Compare(a, _, b) = atom {
                term(a);
                term(b);
            }
            if let Atom::Words(w) = atom {
                term(&Term::Sum(w.left.clone()));
                term(&Term::Sum(w.right.clone()));
            }
        }
    };
    system.init.dnf.iter().for_each(&mut cube);
    system.unsafes.iter().for_each(|c| cube(&c.cube));
    for t in &system.transitions {
        cube(&t.guard);
        t.universal.iter().flat_map(|u| &u.dnf).for_each(&mut cube);
    }
    for update in system.transitions.iter().flat_map(|t| &t.updates) {
        let mut value = |v: &AssignedValue| {
            if let AssignedValue::Term(Term::Sum(s)) = v {
                found.extend(number(&s.constant));
            }
        };
        match update {
            Update::Assign { value: v, .. } => value(v),
            Update::Cases { cases, .. } => cases.iter().for_each(|c| value(&c.value)),
        }
    }
    found
}

impl StateGenerator {
    /// Creates a generator; `constants` are those of the system and of the certificate.
    pub fn new(seed: u64, constants: impl Iterator<Item = Number>) -> Self {
        let mut numbers: BTreeSet<Number> = [-1, 0, 1, 2, 3].into_iter().map(whole).collect();
        for n in [1 << 31, 1 << 32].into_iter().map(whole).chain(constants.take(200)) {
            for n in [n, -n] {
                numbers.extend([-1, 0, 1].into_iter().filter_map(|d| plus(n, whole(d))));
            }
        }
        Self {
            random: Random::new(seed),
            numbers: numbers.into_iter().collect(),
            allows_foreign_processes: false,
        }
    }

    /// Draws a value of a sort.
    pub fn value(
        &mut self,
        machine: &AuditMachine,
        sort: TypeId,
        state: Option<&MachineState>,
    ) -> AuditValue {
        match sort {
            TypeId::PROC => AuditValue::Process(narrow::index(
                self.random.below(machine.n as usize + usize::from(self.allows_foreign_processes)),
            )),
            TypeId::INT | TypeId::REAL => AuditValue::Number(self.number(sort, state)),
            t if t.bits().is_some() => AuditValue::Number(self.number(sort, state)),
            t => {
                let constructors = &machine.system.type_of(t).constructors;
                if constructors.is_empty() {
                    return AuditValue::Element(narrow::index(self.random.below(ELEMENTS)));
                }
                AuditValue::Constructor(self.random.choose(constructors).number())
            }
        }
    }

    fn number(&mut self, sort: TypeId, state: Option<&MachineState>) -> Number {
        let neighbours = match state {
            Some(state) if !state.cells.is_empty() && self.random.chance(1, 3) => {
                Some(*self.random.choose(&state.cells))
            }
            _ => None,
        };
        let mut n = match neighbours {
            Some(AuditValue::Number(n)) => {
                plus(n, whole(self.random.below(3) as i64 - 1)).unwrap_or(n)
            }
            _ if self.random.chance(1, 4) => whole(self.random.below(8) as i64),
            _ => *self.random.choose(&self.numbers),
        };
        if sort == TypeId::REAL && self.random.chance(1, 6) {
            n = plus(n, Number::new(1, 2)).unwrap_or(n);
        }
        if let Some(bits) = sort.bits() {
            return residue(n, bits);
        }
        if sort == TypeId::INT { n.floor() } else { n }
    }

    /// Draws a state with random values and empty buffers.
    pub fn random_state(&mut self, machine: &AuditMachine) -> MachineState {
        let cells =
            (0..machine.slots).map(|slot| self.value(machine, machine.sort(slot), None)).collect();
        MachineState { cells, buffers: vec![VecDeque::new(); machine.n as usize] }
    }

    /// Draws an initial state; `None` if none was found.
    pub fn initial(&mut self, machine: &AuditMachine) -> Option<MachineState> {
        let init = &machine.system.init;
        if init.dnf.is_empty() {
            return None;
        }
        let closed = machine.system.processes == Some(machine.n);
        let holds_processes = machine.system.symbols.iter().any(|s| s.sort == TypeId::PROC);
        for allows_foreign_processes in [false, true] {
            self.allows_foreign_processes = allows_foreign_processes;
            if allows_foreign_processes && (closed || !holds_processes) {
                break;
            }
            let mut state = self.random_state(machine);
            for _ in 0..PASSES {
                let wrong = machine.not_initial(&state);
                if wrong.is_empty() {
                    if machine.is_state(&state) {
                        return Some(state);
                    }
                    state = self.random_state(machine);
                    continue;
                }
                for env in wrong {
                    let cube = self.random.choose(&init.dnf);
                    cube.iter().for_each(|atom| self.repair(machine, &mut state, &env, atom));
                }
            }
        }
        self.allows_foreign_processes = false;
        None
    }

    /// Changes some cells and buffers.
    pub fn mutate(
        &mut self,
        machine: &AuditMachine,
        state: &mut MachineState,
        buffered_slots: &[usize],
    ) {
        if machine.slots == 0 {
            return;
        }
        for _ in 0..self.random.below(4) {
            let slot = self.random.below(machine.slots);
            state.cells[slot] = self.value(machine, machine.sort(slot), Some(state));
        }
        if !machine.tso || buffered_slots.is_empty() {
            return;
        }
        for _ in 0..self.random.below(4) {
            let at = self.random.below(machine.n as usize);
            if state.entries() >= MAX_ENTRIES || self.random.chance(1, 4) {
                state.buffers[at].pop_back();
                continue;
            }
            let mut entry = Entry::new();
            for _ in 0..1 + usize::from(self.random.chance(1, 5)) {
                let slot = *self.random.choose(buffered_slots);
                if entry.iter().all(|w| w.0 != slot) {
                    entry.push((slot, self.value(machine, machine.sort(slot), Some(state))));
                }
            }
            state.buffers[at].push_back(entry);
        }
    }

    /// Repairs a state in one pass so that a random transition may be enabled.
    pub fn repair_for_transition(&mut self, machine: &AuditMachine, state: &mut MachineState) {
        let system = machine.system;
        if system.transitions.is_empty() {
            return;
        }
        let t = self.random.choose(&system.transitions);
        let choices = machine.choices(t.params.len());
        if choices.is_empty() {
            return;
        }
        let env = self.random.choose(choices).clone();
        t.guard.iter().for_each(|atom| self.repair(machine, state, &env, atom));
        if let (true, Some(actor)) = (t.locked, t.actor) {
            self.repair(machine, state, &env, &Atom::Fence(actor));
            if self.random.chance(1, 2) {
                state.buffers.iter_mut().for_each(VecDeque::clear);
            }
        }
        for u in &t.universal {
            for p in (0..machine.n).filter(|p| !env[..t.declared].contains(p)) {
                let inner = super::machine::with(&env, u.var, p);
                let holds = u
                    .dnf
                    .iter()
                    .any(|c| c.iter().all(|a| machine.atom(state, &inner, a) == Some(true)));
                if !holds && !u.dnf.is_empty() {
                    let cube = self.random.choose(&u.dnf);
                    cube.iter().for_each(|atom| self.repair(machine, state, &inner, atom));
                }
            }
        }
    }

    /// Changes one cell, or clears one buffer, so that an atom holds, if possible.
    pub fn repair(
        &mut self,
        machine: &AuditMachine,
        state: &mut MachineState,
        env: &Env,
        atom: &Atom,
    ) {
        if machine.atom(state, env, atom) != Some(false) {
            return;
        }
        match atom {
            Atom::False => {}
            Atom::Fence(p) => state.buffers[AuditMachine::process(env, *p) as usize].clear(),
            Atom::Compare(Term::Sum(a), op, Term::Sum(b)) => {
                self.repair_sums(machine, state, env, (a, *op, b));
            }
            Atom::Words(w) => self.repair_words(machine, state, env, (w, atom)),
            Atom::Compare(a, op, b) => self.repair_comparison(machine, state, env, (a, *op, b)),
        }
    }

    /// Changes a cell of a comparison of sums so that it holds.
    fn repair_sums(
        &mut self,
        machine: &AuditMachine,
        state: &mut MachineState,
        env: &Env,
        (a, op, b): (&Sum, ComparisonOp, &Sum),
    ) {
        let minus = whole(-1);
        let all = a.terms.iter().map(|t| (t, whole(1))).chain(b.terms.iter().map(|t| (t, minus)));
        let all: Vec<_> = all.collect();
        if all.is_empty() {
            return;
        }
        let ((access, factor), sign) = *self.random.choose(&all);
        let difference = |state: &MachineState| {
            let (AuditValue::Number(a), AuditValue::Number(b)) = (
                machine.term(state, env, &Term::Sum(a.clone()))?,
                machine.term(state, env, &Term::Sum(b.clone()))?,
            ) else {
                return None;
            };
            plus(a, -b)
        };
        let required = match op {
            ComparisonOp::Eq => whole(0),
            ComparisonOp::Le => whole(-(self.random.below(3) as i64)),
            ComparisonOp::Lt => whole(-1 - self.random.below(3) as i64),
            ComparisonOp::Neq => whole(1),
        };
        let solved = || {
            let change = plus(required, -difference(state)?)?;
            let factor = times(number(factor)?, sign)?;
            let AuditValue::Number(old) = machine.term(state, env, &as_sum(access))? else {
                return None;
            };
            plus(old, divide(change, factor)?)
        };
        let sort = machine.system.symbol(access.symbol).sort;
        if let Some(n) = solved().filter(|n| sort == TypeId::REAL || n.is_integer()) {
            set(machine, state, env, access, AuditValue::Number(n));
        }
    }

    /// Changes a cell of a comparison of words so that it holds. Cells of words have few relevant
    /// values: those of numbers nearby.
    fn repair_words(
        &mut self,
        machine: &AuditMachine,
        state: &mut MachineState,
        env: &Env,
        (words, atom): (&Words, &Atom),
    ) {
        let sums: Vec<_> = words.left.terms.iter().chain(&words.right.terms).collect();
        if sums.is_empty() {
            return;
        }
        let access = &self.random.choose(&sums).0;
        for _ in 0..TRIES {
            let sort = machine.system.symbol(access.symbol).sort;
            let value = self.value(machine, sort, Some(state));
            let before = state.clone();
            set(machine, state, env, access, value);
            if machine.atom(state, env, atom) == Some(true) {
                return;
            }
            *state = before;
        }
        solve_words(machine, state, env, (words, access));
    }

    /// Changes a cell of a comparison of other terms: for an equation to the value of the other
    /// side, else to a random value.
    fn repair_comparison(
        &mut self,
        machine: &AuditMachine,
        state: &mut MachineState,
        env: &Env,
        (a, op, b): (&Term, ComparisonOp, &Term),
    ) {
        let sides = if self.random.chance(1, 2) { [(a, b), (b, a)] } else { [(b, a), (a, b)] };
        let Some((access, other)) = sides
            .into_iter()
            .find_map(|(x, o)| if let Term::Cell(c) = x { Some((c, o)) } else { None })
        else {
            return;
        };
        let value = match op {
            ComparisonOp::Eq => machine.term(state, env, other),
            _ => Some(self.value(machine, machine.system.symbol(access.symbol).sort, None)),
        };
        if let Some(value) = value {
            set(machine, state, env, access, value);
        }
    }
}

/// Changes a cell of a comparison of words so that both sides have one remainder, or adjacent
/// ones.
fn solve_words(
    machine: &AuditMachine,
    state: &mut MachineState,
    env: &Env,
    (words, access): (&Words, &CellAccess),
) {
    let sum = |state: &MachineState, s: &Sum| match machine.term(state, env, &Term::Sum(s.clone()))
    {
        Some(AuditValue::Number(n)) => Some(n.to_integer()),
        _ => None,
    };
    let own = |s: &Sum| {
        s.terms
            .iter()
            .find(|t| t.0 == *access)
            .map_or(0, |t| t.1.to_integer().to_i128().unwrap_or(0))
    };
    let factor = own(&words.left) - own(&words.right);
    let (Some(a), Some(b)) = (sum(state, &words.left), sum(state, &words.right)) else {
        return;
    };
    let bits = machine.system.symbol(access.symbol).sort.bits().unwrap_or(words.bits);
    let Some(AuditValue::Number(old)) = machine.term(state, env, &as_sum(access)) else {
        return;
    };
    if factor.abs() == 1 {
        let required =
            if words.op == ComparisonOp::Lt || words.op == ComparisonOp::Neq { -1 } else { 0 };
        let solved = Number::from_integer(old.to_integer() + factor * (required + b - a));
        set(machine, state, env, access, AuditValue::Number(residue(solved, bits)));
    }
}

/// Converts a numeric cell to a term.
fn as_sum(access: &CellAccess) -> Term {
    Term::Sum(Sum {
        constant: BigRational::zero(),
        terms: vec![(access.clone(), BigRational::one())],
    })
}

/// Sets a cell in the view of a process: in the newest entry of its buffer that writes it, else in
/// memory.
fn set(
    machine: &AuditMachine,
    state: &mut MachineState,
    env: &Env,
    access: &CellAccess,
    value: AuditValue,
) {
    let slot = machine.accessed_slot(env, access);
    if let (true, Some(by)) = (machine.tso, access.by) {
        let buffer = &mut state.buffers[AuditMachine::process(env, by) as usize];
        if let Some(write) =
            buffer.iter_mut().rev().find_map(|e| e.iter_mut().find(|w| w.0 == slot))
        {
            write.1 = value;
            return;
        }
    }
    state.cells[slot] = value;
}

/// Returns the slots that steps write through buffers.
pub fn buffered_slots(machine: &AuditMachine) -> Vec<usize> {
    let system = machine.system;
    let writes = |symbol: usize| {
        system
            .transitions
            .iter()
            .filter(|t| !t.locked)
            .any(|t| t.updates.iter().any(|u| u.symbol().index() == symbol))
    };
    let weak = |symbol: usize| system.symbols[symbol].kind == SymbolKind::Weak && writes(symbol);
    (0..machine.slots).filter(|slot| weak(machine.cell(*slot).0)).collect()
}
