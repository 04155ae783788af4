//! Naive interpreter of typed systems: the oracle of the machine, with which it shares only the
//! typed system. States are maps from cells to values, formulas are evaluated directly for each
//! choice of processes, and every open value is enumerated at the start.
//!
//! Cost: not optimised; for two or three processes and small systems.

use mu_cubicle::system::{
    AssignedValue, Atom, CellAccess, Claim, ComparisonOp, Cube, Proc, Sum, SymbolId, SymbolKind,
    System, Term, Transition, TypeId, Update, residue,
};
use mu_cubicle::value::Val;
use num_rational::BigRational;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A cell: a symbol and its indices.
pub type Cell = (SymbolId, Vec<u32>);

/// A state.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// Memory and all other cells.
    pub cells: BTreeMap<Cell, Val>,
    /// The buffer of each process, oldest entry first; an entry writes several cells at once.
    pub buffers: Vec<VecDeque<BTreeMap<Cell, Val>>>,
}

/// The interpreter.
pub struct Naive<'s> {
    /// The system.
    pub system: &'s System,
    /// Number of processes.
    pub n: u32,
    /// True if stores are buffered.
    pub tso: bool,
    /// Capacity of a buffer; steps beyond it are dropped.
    pub most: usize,
    /// The candidate values of open numbers.
    pub candidates: Vec<BigRational>,
}

type Env = BTreeMap<u32, u32>;

impl Naive<'_> {
    fn assignments(&self, vars: u32, distinct: bool) -> Vec<Env> {
        let mut out = vec![Env::new()];
        for v in 0..vars {
            let mut longer = Vec::new();
            for env in &out {
                for p in 0..self.n {
                    if !distinct || !env.values().any(|q| *q == p) {
                        let mut env = env.clone();
                        env.insert(v, p);
                        longer.push(env);
                    }
                }
            }
            out = longer;
        }
        out
    }
    fn values(&self, sort: TypeId) -> Vec<Val> {
        self.values_to(sort, self.n)
    }
    /// Returns the values of a sort for a number of processes.
    fn values_to(&self, sort: TypeId, processes: u32) -> Vec<Val> {
        match sort {
            TypeId::PROC => (0..processes).map(Val::Proc).collect(),
            TypeId::INT => self
                .candidates
                .iter()
                .filter(|c| c.is_integer())
                .cloned()
                .map(Val::Number)
                .collect(),
            t if t.bits().is_some_and(|bits| bits <= mu_cubicle::machine::FEW_BITS) => {
                let count = 1u32 << t.bits().unwrap_or(0);
                (0..count).map(|n| Val::Number(BigRational::from_integer(n.into()))).collect()
            }
            t if t.bits().is_some() => {
                let bits = t.bits().unwrap_or(0);
                let whole = self.candidates.iter().filter(|c| c.is_integer());
                let values: BTreeSet<_> = whole.map(|c| residue(c, bits)).collect();
                values.into_iter().map(Val::Number).collect()
            }
            TypeId::REAL => self.candidates.iter().cloned().map(Val::Number).collect(),
            t => self.system.type_of(t).constructors.iter().map(|c| Val::Cons(*c)).collect(),
        }
    }
    fn cells(&self) -> Vec<Cell> {
        let mut out = Vec::new();
        for (i, s) in self.system.symbols.iter().enumerate() {
            for env in self.assignments(s.arity as u32, false) {
                out.push((SymbolId::new(i), env.into_values().collect()));
            }
        }
        out
    }
    fn proc(&self, env: &Env, p: Proc) -> u32 {
        match p {
            Proc::Var(v) => env[&v],
            Proc::Fixed(n) => n - 1,
        }
    }
    fn read(&self, s: &State, env: &Env, a: &CellAccess) -> Val {
        let cell = (a.symbol, a.args.iter().map(|p| self.proc(env, *p)).collect::<Vec<_>>());
        if let (true, Some(by)) = (self.tso, a.by) {
            for entry in s.buffers[self.proc(env, by) as usize].iter().rev() {
                if let Some(v) = entry.get(&cell) {
                    return v.clone();
                }
            }
        }
        s.cells[&cell].clone()
    }
    fn term(&self, s: &State, env: &Env, t: &Term) -> Val {
        match t {
            Term::Proc(p) => Val::Proc(self.proc(env, *p)),
            Term::Cons(c) => Val::Cons(*c),
            Term::Cell(a) => self.read(s, env, a),
            Term::Sum(sum) => {
                let mut total = sum.constant.clone();
                for (a, factor) in &sum.terms {
                    if let Val::Number(n) = self.read(s, env, a) {
                        total += factor * n;
                    }
                }
                Val::Number(total)
            }
        }
    }
    fn atom(&self, s: &State, env: &Env, atom: &Atom) -> bool {
        match atom {
            Atom::False => false,
            Atom::Fence(p) => !self.tso || s.buffers[self.proc(env, *p) as usize].is_empty(),
            Atom::Compare(a, op, b) => {
                let (a, b) = (self.term(s, env, a), self.term(s, env, b));
                match op {
                    ComparisonOp::Eq => a == b,
                    ComparisonOp::Neq => a != b,
                    ComparisonOp::Lt => a < b,
                    ComparisonOp::Le => a <= b,
                }
            }
            Atom::Words(w) => {
                let side = |sum: &Sum| match self.term(s, env, &Term::Sum(sum.clone())) {
                    Val::Number(n) => residue(&n, w.bits),
                    _ => BigRational::from_integer(0.into()),
                };
                let (a, b) = (side(&w.left), side(&w.right));
                match w.op {
                    ComparisonOp::Eq => a == b,
                    ComparisonOp::Neq => a != b,
                    ComparisonOp::Lt => a < b,
                    ComparisonOp::Le => a <= b,
                }
            }
        }
    }
    fn cube(&self, s: &State, env: &Env, cube: &Cube) -> bool {
        cube.iter().all(|a| self.atom(s, env, a))
    }
    /// True if a claim holds for some distinct processes.
    pub fn claim(&self, s: &State, claim: &Claim) -> bool {
        self.assignments(claim.params.len() as u32, true)
            .iter()
            .any(|env| self.cube(s, env, &claim.cube))
    }
    fn is_allowed(&self, s: &State) -> bool {
        !self.system.invariants.iter().any(|c| self.claim(s, c))
    }
    /// Returns the initial states. Only if there is none may cells contain the process beyond the
    /// instance.
    pub fn initial(&self) -> Vec<State> {
        let mut states = self.satisfying(self.n);
        if states.is_empty() {
            states = self.satisfying(self.n + 1);
        }
        states.retain(|s| self.is_allowed(s));
        states
    }
    /// True if the state satisfies `init`, with empty buffers, and contradicts no assumption.
    /// (Cells may contain the process beyond the instance.)
    pub fn is_initial(&self, s: &State) -> bool {
        let init = &self.system.init;
        let holds = |env: &Env| init.dnf.iter().any(|cube| self.cube(s, env, cube));
        s.buffers.iter().all(VecDeque::is_empty)
            && self.is_allowed(s)
            && self.assignments(init.params.len() as u32, false).iter().all(holds)
    }
    fn satisfying(&self, processes: u32) -> Vec<State> {
        let init = &self.system.init;
        let mut states =
            vec![State { cells: BTreeMap::new(), buffers: vec![VecDeque::new(); self.n as usize] }];
        for cell in self.cells() {
            let values = self.values_to(self.system.symbol(cell.0).sort, processes);
            states = states
                .iter()
                .flat_map(|s| {
                    values.iter().map(|v| {
                        let mut s = s.clone();
                        s.cells.insert(cell.clone(), v.clone());
                        s
                    })
                })
                .collect();
            // Early filter: conditions over the cells enumerated so far.
            states.retain(|s| {
                self.assignments(init.params.len() as u32, false).iter().all(|env| {
                    init.dnf.iter().any(|cube| {
                        cube.iter()
                            .all(|atom| !self.has_all(s, env, atom) || self.atom(s, env, atom))
                    })
                })
            });
        }
        states
    }
    fn has_all(&self, s: &State, env: &Env, atom: &Atom) -> bool {
        let has = |a: &CellAccess| {
            s.cells.contains_key(&(
                a.symbol,
                a.args.iter().map(|p| self.proc(env, *p)).collect::<Vec<_>>(),
            ))
        };
        let term = |t: &Term| match t {
            Term::Cell(a) => has(a),
            Term::Sum(sum) => sum.terms.iter().all(|(a, _)| has(a)),
            _ => true,
        };
        let sum = |s: &Sum| s.terms.iter().all(|(a, _)| has(a));
        match atom {
            Atom::Compare(a, _, b) => term(a) && term(b),
            Atom::Words(w) => sum(&w.left) && sum(&w.right),
            Atom::False | Atom::Fence(_) => true,
        }
    }
    fn writes(&self, s: &State, env: &Env, u: &Update) -> Vec<(Cell, Vec<Val>)> {
        let sort = self.system.symbol(u.symbol()).sort;
        let value = |env: &Env, v: &AssignedValue| match v {
            AssignedValue::Any => self.values(sort),
            AssignedValue::Term(t) => vec![match (self.term(s, env, t), sort.bits()) {
                (Val::Number(n), Some(bits)) => Val::Number(residue(&n, bits)),
                (value, _) => value,
            }],
        };
        match u {
            Update::Assign { symbol, args, value: v, .. } => {
                vec![((*symbol, args.iter().map(|p| self.proc(env, *p)).collect()), value(env, v))]
            }
            Update::Cases { symbol, bound, cases, .. } => {
                let mut out = Vec::new();
                for indices in self.assignments(bound.len() as u32, false) {
                    let indices: Vec<u32> = indices.into_values().collect();
                    let mut env = env.clone();
                    env.extend(bound.iter().map(|b| b.0).zip(indices.iter().copied()));
                    if let Some(case) = cases.iter().find(|c| self.cube(s, &env, &c.condition)) {
                        out.push(((*symbol, indices), value(&env, &case.value)));
                    }
                }
                out
            }
        }
    }
    fn fire(&self, s: &State, env: &Env, t: &Transition) -> Vec<State> {
        let actor = t.actor.map(|p| self.proc(env, p) as usize);
        let waits = self.tso && t.locked && actor.is_some_and(|a| !s.buffers[a].is_empty());
        let others = (0..self.n).filter(|p| (0..t.declared as u32).all(|v| env[&v] != *p));
        let universal = others.into_iter().all(|p| {
            t.universal.iter().all(|u| {
                let mut env = env.clone();
                env.insert(u.var, p);
                u.dnf.iter().any(|c| self.cube(s, &env, c))
            })
        });
        if waits || !universal || !self.cube(s, env, &t.guard) {
            return Vec::new();
        }
        let mut results = vec![(s.clone(), BTreeMap::new())];
        for u in &t.updates {
            let weak =
                self.tso && !t.locked && self.system.symbol(u.symbol()).kind == SymbolKind::Weak;
            for (cell, values) in self.writes(s, env, u) {
                let mut more = Vec::new();
                for (state, entry) in &results {
                    for v in &values {
                        let (mut state, mut entry) = (state.clone(), entry.clone());
                        if weak { &mut entry } else { &mut state.cells }
                            .insert(cell.clone(), v.clone());
                        more.push((state, entry));
                    }
                }
                results = more;
            }
        }
        let push = |(mut state, entry): (State, BTreeMap<Cell, Val>)| {
            if entry.is_empty() {
                return Some(state);
            }
            let buffer = &mut state.buffers[actor?];
            buffer.push_back(entry);
            (buffer.len() <= self.most).then_some(state)
        };
        results.into_iter().filter_map(push).collect()
    }
    /// Returns the steps of a state, with the names of the machine.
    pub fn steps(&self, s: &State) -> Vec<(String, State)> {
        let mut out = Vec::new();
        for t in &self.system.transitions {
            for env in self.assignments(t.params.len() as u32, true) {
                let args: Vec<_> =
                    (0..t.declared as u32).map(|v| (env[&v] + 1).to_string()).collect();
                let name = if args.is_empty() {
                    t.name.clone()
                } else {
                    format!("{}({})", t.name, args.join(","))
                };
                out.extend(self.fire(s, &env, t).into_iter().map(|s| (name.clone(), s)));
            }
        }
        for p in 0..self.n {
            let mut next = s.clone();
            if let Some(entry) = next.buffers[p as usize].pop_front() {
                next.cells.extend(entry);
                out.push((format!("flush({})", p + 1), next));
            }
        }
        out.retain(|(_, s)| self.is_allowed(s));
        out
    }
    /// Returns all reachable states with their steps; `None` if there are more than `most`.
    pub fn reach(&self, most: usize) -> Option<BTreeMap<State, BTreeSet<(String, State)>>> {
        let mut found = BTreeMap::new();
        let mut todo = self.initial();
        while let Some(s) = todo.pop() {
            if found.contains_key(&s) {
                continue;
            }
            let steps: BTreeSet<_> = self.steps(&s).into_iter().collect();
            todo.extend(steps.iter().map(|s| s.1.clone()));
            found.insert(s, steps);
            if found.len() > most {
                return None;
            }
        }
        Some(found)
    }
}
