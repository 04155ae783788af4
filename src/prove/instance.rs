//! Instances for the oracle: the system with a fixed, small number of processes, in the semantics
//! of [`crate::stages`] (writes reach memory immediately, reads may read memory as it was a bounded
//! number of writes ago). Exploration is forward, breadth first, up to a bounded number of states;
//! if initial values are open, a few are tried. So the states are a subset of the reachable ones.
//! They serve to refute approximations, never to prove.
//!
//! A state is a row of numbers: the cells, then the last writes (writer, cell, old value, ..), then
//! the number of unseen writes of each process.

use crate::atom::{Atom, Cell, JOINT, NONE, OTHER, Point, SymbolSort};
use crate::cube::Cube;
use crate::residues::Residues;
use crate::rules::{Comparison, FIXED, Rule, RuleValue, Rules, UpdateEffect, is_cell};
use crate::simplex::ZeroRelation;
use mu_base::narrow;
use mu_cubicle::system::ComparisonOp;

/// Largest lag of a process in any instance.
pub const MAX_LAG: usize = 8;
/// Values tried for numbers that `init` leaves open.
const SAMPLES: [i64; 4] = [0, 1, 2, -1];

/// A write: the writer, and cells with their old values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Write {
    /// The writing process.
    pub writer: u8,
    /// Cells of memory and their old values.
    pub old: Vec<(u32, i64)>,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceState {
    /// Values by cell, with memory as it is now.
    pub values: Vec<i64>,
    /// The last writes, the latest first.
    pub writes: Vec<Write>,
    /// Number of the last writes that each process has not seen.
    pub lag: Vec<u8>,
}

/// A cell of an instance with its view.
struct ViewedCell {
    at: usize,
    by: Option<(u8, usize)>,
}

/// A process: a fixed one, or the content of a cell.
enum KnownProcess {
    Fixed(i64),
    Held(ViewedCell),
}

enum Ready {
    In(ViewedCell, u64, SymbolSort),
    Same(ViewedCell, ViewedCell, bool),
    Before(KnownProcess, KnownProcess, bool),
    Sum(Vec<(ViewedCell, i64)>, i64, ZeroRelation),
    Residues(Box<Residues>, Vec<(Cell, ViewedCell)>),
    Fence(u8, usize),
}

/// Atoms with processes of an instance, prepared for evaluation in many states.
pub struct PreparedAtoms {
    /// For each number of placed views, the atoms that can then be evaluated.
    atoms: Vec<Vec<Ready>>,
    /// The views of the atoms, ascending, with their processes.
    views: Vec<(u8, u8)>,
    who: Vec<u8>,
    place: Vec<u8>,
}

/// A system with a fixed number of processes.
pub struct Instance<'a> {
    rules: &'a Rules,
    /// Number of processes.
    pub processes: usize,
    offset: Vec<usize>,
    /// Number of cells.
    pub cells: usize,
    /// Largest lag of a process.
    lag: usize,
}

impl<'a> Instance<'a> {
    /// Creates the system with `processes` processes, which lag at most `lag` writes behind.
    pub fn new(rules: &'a Rules, processes: usize, lag: usize) -> Instance<'a> {
        let mut offset = Vec::new();
        let mut cells = 0;
        for arity in &rules.signature.arity {
            offset.push(cells);
            cells += processes.pow(narrow::index(*arity));
        }
        Instance { rules, processes, offset, cells, lag: lag.min(MAX_LAG) }
    }
    /// Returns the index of a cell.
    pub fn cell(&self, cell: Cell) -> usize {
        let mut at = 0;
        for a in cell.args().into_iter().take(self.rules.signature.arity[cell.symbol()]) {
            at = at * self.processes + usize::from(a);
        }
        self.offset[cell.symbol()] + at
    }
    /// Returns the sort of the cell with an index.
    fn sort(&self, cell: usize) -> SymbolSort {
        self.rules.signature.sorts[self.symbol(cell)]
    }
    /// Returns the symbol of the cell with an index.
    fn symbol(&self, cell: usize) -> usize {
        // Symbols without cells (arrays over no process) share an offset with the next one; there
        // is always a process.
        self.offset.iter().rposition(|o| *o <= cell).expect("the first offset is 0")
    }
    /// Returns the view of a cell by a process, the given number of writes ago.
    pub fn value_in_view(&self, state: &InstanceState, cell: usize, process: u8, ago: u8) -> i64 {
        let mut value = state.values[cell];
        for w in state.writes.iter().take(usize::from(ago)) {
            let old = w.old.iter().find(|o| o.0 as usize == cell);
            if let Some(old) = old {
                if w.writer == process {
                    return value;
                }
                value = old.1;
            }
        }
        value
    }
    fn value(
        &self,
        state: &InstanceState,
        value: &RuleValue,
        env: &dyn Fn(u8) -> u8,
        actor: u8,
        ago: u8,
    ) -> Option<i64> {
        let of = |c: Cell| {
            let c = c.map(env);
            let at = self.cell(c);
            if self.rules.signature.weak[c.symbol()] {
                self.value_in_view(state, at, actor, ago)
            } else {
                state.values[at]
            }
        };
        Some(match value {
            RuleValue::Process(p) => i64::from(env(*p)),
            RuleValue::Constant(c) => i64::from(*c),
            RuleValue::Cell(c) => of(*c),
            RuleValue::Sum { terms, constant, scale: 1 } => {
                let mut sum = *constant;
                for (c, f) in terms {
                    sum = sum.checked_add(f.checked_mul(of(*c))?)?;
                }
                sum
            }
            RuleValue::Sum { .. } | RuleValue::Any => return None,
        })
    }
    fn holds(
        &self,
        state: &InstanceState,
        tests: &[Comparison],
        env: &dyn Fn(u8) -> u8,
        actor: u8,
        ago: u8,
    ) -> bool {
        tests.iter().all(|t| {
            let (Some(l), Some(r)) = (
                self.value(state, &t.left, env, actor, ago),
                self.value(state, &t.right, env, actor, ago),
            ) else {
                return false;
            };
            let (l, r) = match t.bits {
                Some(bits) => (l.rem_euclid(1 << bits), r.rem_euclid(1 << bits)),
                None => (l, r),
            };
            match t.op {
                ComparisonOp::Eq => l == r,
                ComparisonOp::Neq => l != r,
                ComparisonOp::Lt => l < r,
                ComparisonOp::Le => l <= r,
            }
        })
    }
    /// Returns at most `most` initial states, in the cube if one is given, with the first
    /// processes. If `elsewhere`, undetermined cells of processes contain a process beyond the
    /// instance, as in larger systems.
    pub fn initial(
        &self,
        most: usize,
        within: Option<&Cube>,
        elsewhere: bool,
    ) -> Vec<InstanceState> {
        let place: Vec<u8> = (0..narrow::byte(within.map_or(0, |c| c.processes))).collect();
        let constrained: Vec<(usize, u64, SymbolSort)> = within
            .iter()
            .flat_map(|c| &c.atoms)
            .filter_map(|a| {
                if let Atom::In(c, set) = a {
                    Some((self.cell(c.current()), *set, self.rules.signature.sort(*c)))
                } else {
                    None
                }
            })
            .collect();
        // Each instance of `init` is tested as soon as all its cells have values.
        let mut tests: Vec<Vec<(Comparison, Vec<u8>)>> = vec![Vec::new(); self.cells + 1];
        let (params, dnf) = &self.rules.init;
        let Some(cube) = dnf.first() else { return Vec::new() };
        let several = dnf.len() > 1;
        let maps = crate::initial::maps(*params, self.processes);
        if !several {
            for map in &maps {
                for t in cube {
                    let last = [&t.left, &t.right]
                        .into_iter()
                        .flat_map(|v| match v {
                            RuleValue::Cell(c) => vec![*c],
                            RuleValue::Sum { terms, .. } => terms.iter().map(|x| x.0).collect(),
                            _ => Vec::new(),
                        })
                        .map(|c| self.cell(c.map(|p| process(p, map))) + 1)
                        .max();
                    tests[last.unwrap_or(0)].push((t.clone(), map.clone()));
                }
            }
        }
        let cell_of_process = |cell: usize| self.rules.signature.arity[self.symbol(cell)] > 0;
        let domain = |cell: usize| -> Vec<i64> {
            let mut values = match self.sort(cell) {
                SymbolSort::Finite(n) => (0..i64::from(n)).collect(),
                SymbolSort::Process if elsewhere && cell_of_process(cell) => {
                    let own = (0..self.processes as i64).collect::<Vec<_>>();
                    if tests[cell + 1].is_empty() { vec![self.processes as i64] } else { own }
                }
                SymbolSort::Process => (0..self.processes as i64).collect(),
                SymbolSort::Abstract => vec![0, 1],
                SymbolSort::Integer | SymbolSort::Real => SAMPLES.to_vec(),
                SymbolSort::Word(bits) if bits <= 2 => (0..1 << bits).collect(),
                SymbolSort::Word(bits) => SAMPLES.map(|n| n.rem_euclid(1 << bits)).to_vec(),
            };
            values.retain(|v| {
                constrained
                    .iter()
                    .all(|(c, set, sort)| *c != cell || self.member(*v, *set, *sort, &place))
            });
            values
        };
        let blank = InstanceState {
            values: vec![0; self.cells],
            writes: Vec::new(),
            lag: vec![0; self.processes],
        };
        let mut found = vec![blank];
        for cell in 0..self.cells {
            let values = domain(cell);
            let mut next = Vec::new();
            for s in &found {
                for v in &values {
                    let mut s = s.clone();
                    s.values[cell] = *v;
                    if tests[cell + 1].iter().all(|(t, map)| {
                        self.holds(&s, std::slice::from_ref(t), &|p| process(p, map), NONE, 0)
                    }) {
                        next.push(s);
                    }
                }
            }
            // Too many: use a subset, spread evenly.
            let step = next.len().div_ceil(most).max(1);
            found = next.into_iter().step_by(step).collect();
        }
        if several {
            found.retain(|s| {
                maps.iter().all(|map| {
                    dnf.iter().any(|cube| self.holds(s, cube, &|p| process(p, map), NONE, 0))
                })
            });
        }
        if let Some(cube) = within {
            let rest = self.prepare(cube.atoms.iter(), &place);
            found.retain(|s| self.satisfies(s, &rest));
        }
        found
    }
    /// Computes all steps from a state.
    pub fn successors(&self, state: &InstanceState, out: &mut Vec<InstanceState>) {
        for rule in &self.rules.rules {
            let mut binding = Vec::new();
            self.bind(state, rule, &mut binding, out);
        }
    }
    /// Computes the steps of one rule with bound parameters.
    pub fn step(
        &self,
        state: &InstanceState,
        rule: &Rule,
        binding: &[u8],
        out: &mut Vec<InstanceState>,
    ) {
        self.bind(state, rule, &mut binding.to_vec(), out);
    }
    fn bind(
        &self,
        state: &InstanceState,
        rule: &Rule,
        binding: &mut Vec<u8>,
        out: &mut Vec<InstanceState>,
    ) {
        if binding.len() < rule.params {
            for p in 0..narrow::byte(self.processes) {
                if !binding.contains(&p) {
                    binding.push(p);
                    self.bind(state, rule, binding, out);
                    binding.pop();
                }
            }
            return;
        }
        let actor = rule.actor.map_or(NONE, |a| process(a, binding));
        let sees_memory = (rule.reads || rule.fence) && actor != NONE;
        let most = if sees_memory { state.lag[usize::from(actor)] } else { 0 };
        let locked = rule.reads && rule.writes;
        for ago in 0..=if locked { 0 } else { most } {
            self.fire(state, rule, binding, actor, ago, out);
        }
    }
    fn fire(
        &self,
        state: &InstanceState,
        rule: &Rule,
        binding: &[u8],
        actor: u8,
        ago: u8,
        out: &mut Vec<InstanceState>,
    ) {
        let env = |p: u8| process(p, binding);
        let own_unseen =
            |ago: u8| state.writes.iter().take(usize::from(ago)).any(|w| w.writer == actor);
        if rule.fence && own_unseen(ago) || !self.holds(state, &rule.guard, &env, actor, ago) {
            return;
        }
        for (variable, dnf) in &rule.universal {
            for q in
                (0..narrow::byte(self.processes)).filter(|q| !binding[..rule.declared].contains(q))
            {
                let env = |p: u8| if p == *variable { q } else { process(p, binding) };
                if !dnf.iter().any(|(cube, fence)| {
                    !(*fence && own_unseen(ago)) && self.holds(state, cube, &env, actor, ago)
                }) {
                    return;
                }
            }
        }
        let Some(sets) = self.sets(state, rule, binding, actor, ago) else { return };
        let mut next = vec![state.clone()];
        for s in &mut next {
            if (rule.reads || rule.fence) && actor != NONE {
                s.lag[usize::from(actor)] = ago;
            }
        }
        for (cell, values) in &sets {
            next = next
                .into_iter()
                .flat_map(|s| {
                    values.iter().map(move |v| {
                        let mut s = s.clone();
                        s.values[*cell] = *v;
                        s
                    })
                })
                .collect();
        }
        for mut s in next {
            if rule.writes {
                let old = sets
                    .iter()
                    .filter(|(c, _)| self.is_weak(*c))
                    .map(|(c, _)| (narrow::index(*c), state.values[*c]))
                    .collect();
                s.writes.insert(0, Write { writer: actor, old });
                for (p, lag) in s.lag.iter_mut().enumerate() {
                    *lag = if rule.reads && p == usize::from(actor) { 0 } else { *lag + 1 };
                }
            }
            let most = s.lag.iter().copied().max().unwrap_or(0);
            if usize::from(most) > self.lag {
                // The process with the largest lag advances.
                for lag in &mut s.lag {
                    *lag = (*lag).min(narrow::byte(self.lag));
                }
            }
            let most = s.lag.iter().copied().max().unwrap_or(0);
            s.writes.truncate(usize::from(most));
            out.push(s);
        }
    }
    /// True if some process may see an old value of a cell.
    pub fn has_views(&self) -> bool {
        self.lag > 0 && self.rules.signature.weak.contains(&true)
    }
    fn is_weak(&self, cell: usize) -> bool {
        self.rules.signature.weak[self.symbol(cell)]
    }
    /// Returns the cells that are set, each with its possible values.
    fn sets(
        &self,
        state: &InstanceState,
        rule: &Rule,
        binding: &[u8],
        actor: u8,
        ago: u8,
    ) -> Option<Vec<(usize, Vec<i64>)>> {
        let env = |p: u8| process(p, binding);
        let any = |cell: usize| match self.sort(cell) {
            SymbolSort::Finite(n) => (0..i64::from(n)).collect(),
            SymbolSort::Process => (0..self.processes as i64).collect(),
            _ => vec![0, 1],
        };
        // A word contains the remainder.
        let fitted = |at: usize, value: i64| match self.sort(at) {
            SymbolSort::Word(bits) => value.rem_euclid(1 << bits),
            _ => value,
        };
        let mut sets = Vec::new();
        for change in &rule.changes {
            match change {
                UpdateEffect::Assign(c, value) => {
                    let at = self.cell(c.map(env));
                    let values = if *value == RuleValue::Any {
                        any(at)
                    } else {
                        vec![fitted(at, self.value(state, value, &env, actor, ago)?)]
                    };
                    sets.push((at, values));
                }
                UpdateEffect::Cases(symbol, bound, cases) => {
                    for args in crate::initial::maps(bound.len(), self.processes) {
                        let env = |p: u8| {
                            bound
                                .iter()
                                .position(|b| *b == p)
                                .map_or_else(|| process(p, binding), |i| args[i])
                        };
                        let Some((_, value)) = cases
                            .iter()
                            .find(|(tests, _)| self.holds(state, tests, &env, actor, ago))
                        else {
                            continue;
                        };
                        if is_cell(value, Cell::new(*symbol, bound)) {
                            continue;
                        }
                        let at = self.cell(Cell::new(*symbol, &args));
                        let values = if *value == RuleValue::Any {
                            any(at)
                        } else {
                            vec![fitted(at, self.value(state, value, &env, actor, ago)?)]
                        };
                        sets.push((at, values));
                    }
                }
            }
        }
        Some(sets)
    }
    /// Returns the number of bindings of the parameters of all rules.
    pub fn bindings(&self) -> usize {
        let binding_count = |params: usize| {
            (0..params).map(|i| self.processes.saturating_sub(i)).product::<usize>()
        };
        self.rules.rules.iter().map(|r| binding_count(r.params)).sum()
    }
    /// Prepares atoms for evaluation in many states, with cube processes placed by the map.
    pub fn prepare<'c>(
        &self,
        atoms: impl Iterator<Item = &'c Atom> + Clone,
        place: &[u8],
    ) -> PreparedAtoms {
        let mut views: Vec<(u8, u8)> =
            atoms.clone().flat_map(Atom::cells).filter_map(|c| c.view()).collect();
        views.extend(
            atoms
                .clone()
                .filter_map(|a| if let Atom::Fence(p, s) = a { Some((*p, *s)) } else { None }),
        );
        views.sort_unstable();
        views.dedup();
        let view = |v: (u8, u8)| views.iter().position(|x| *x == v).expect("all views are listed");
        let of = |c: &Cell| {
            let at = self.cell(c.map(|p| place[usize::from(p)]).current());
            ViewedCell { at, by: c.view().map(|v| (place[usize::from(v.0)], view(v))) }
        };
        let point = |p: &Point| match p {
            Point::Variable(v) => KnownProcess::Fixed(i64::from(place[usize::from(*v)])),
            Point::Cell(c) => KnownProcess::Held(of(c)),
        };
        let ready = |a: &Atom| match a {
            Atom::In(c, set) => Ready::In(of(c), *set, self.rules.signature.sort(*c)),
            Atom::Same(a, b, equal) => Ready::Same(of(a), of(b), *equal),
            Atom::Before(a, b, strict) => Ready::Before(point(a), point(b), *strict),
            Atom::Linear(l) => Ready::Sum(
                l.terms.iter().map(|(c, f)| (of(c), *f)).collect(),
                l.constant,
                l.relation,
            ),
            Atom::Residues(r) => {
                Ready::Residues(r.clone(), r.cells().map(|c| (c, of(&c))).collect())
            }
            Atom::Fence(p, s) => Ready::Fence(place[usize::from(*p)], view((*p, *s))),
        };
        let mut when: Vec<Vec<Ready>> = (0..=views.len()).map(|_| Vec::new()).collect();
        for a in atoms {
            let last = match a {
                Atom::Fence(p, s) => Some(view((*p, *s))),
                a => a.cells().iter().filter_map(|c| c.view()).map(view).max(),
            };
            when[last.map_or(0, |l| l + 1)].push(ready(a));
        }
        let who = views.iter().map(|v| place[usize::from(v.0)]).collect();
        PreparedAtoms { atoms: when, views, who, place: place.to_vec() }
    }
    /// True if the state satisfies the atoms; see [`crate::stages`] for the meaning of stages.
    pub fn satisfies(&self, state: &InstanceState, atoms: &PreparedAtoms) -> bool {
        self.try_moments(state, atoms, &mut Vec::new())
    }
    /// Tries all moments for the stages, in order.
    fn try_moments(&self, state: &InstanceState, atoms: &PreparedAtoms, ago: &mut Vec<u8>) -> bool {
        if !atoms.atoms[ago.len()].iter().all(|a| self.is_met(state, a, atoms, ago)) {
            return false;
        }
        let Some(view) = atoms.views.get(ago.len()) else { return true };
        let so_far = || atoms.views.iter().zip(ago.iter());
        let previous = so_far().rfind(|(v, _)| v.0 == view.0).map(|x| *x.1);
        // The end of the run is one moment, and no stage of any process is later.
        let end = so_far().find(|(v, _)| v.1 == JOINT).map(|x| *x.1);
        let earlier = if view.1 == JOINT { so_far().map(|x| *x.1).min() } else { previous };
        let most = earlier
            .unwrap_or(narrow::byte(MAX_LAG))
            .min(state.lag[usize::from(atoms.who[ago.len()])]);
        let fits = |a: &u8| end.is_none_or(|e| if view.1 == JOINT { *a == e } else { *a >= e });
        (0..=most).filter(fits).any(|a| {
            ago.push(a);
            let found = self.try_moments(state, atoms, ago);
            ago.pop();
            found
        })
    }
    fn is_met(
        &self,
        state: &InstanceState,
        atom: &Ready,
        atoms: &PreparedAtoms,
        ago: &[u8],
    ) -> bool {
        let of = |c: &ViewedCell| match c.by {
            Some((process, view)) => self.value_in_view(state, c.at, process, ago[view]),
            None => state.values[c.at],
        };
        match atom {
            Ready::In(c, set, sort) => self.member(of(c), *set, *sort, &atoms.place),
            Ready::Same(a, b, equal) => (of(a) == of(b)) == *equal,
            Ready::Before(a, b, strict) => {
                let point = |k: &KnownProcess| match k {
                    KnownProcess::Fixed(v) => *v,
                    KnownProcess::Held(c) => of(c),
                };
                if *strict { point(a) < point(b) } else { point(a) <= point(b) }
            }
            Ready::Sum(terms, constant, relation) => {
                let sum =
                    terms.iter().map(|(c, f)| i128::from(of(c)) * i128::from(*f)).sum::<i128>()
                        + i128::from(*constant);
                match relation {
                    ZeroRelation::Le => sum <= 0,
                    ZeroRelation::Lt => sum < 0,
                    ZeroRelation::Eq => sum == 0,
                    ZeroRelation::Ne => sum != 0,
                }
            }
            Ready::Residues(r, cells) => {
                let place = |c| cells.iter().find(|x| x.0 == c).expect("the row lists its cells");
                r.holds(|c| of(&place(c).1))
            }
            Ready::Fence(writer, view) => {
                !state.writes.iter().take(usize::from(ago[*view])).any(|w| w.writer == *writer)
            }
        }
    }
    /// True if the value is in the set of a cube with its processes placed by the map.
    pub fn member(&self, value: i64, set: u64, sort: SymbolSort, place: &[u8]) -> bool {
        match sort {
            SymbolSort::Process => match place.iter().position(|p| i64::from(*p) == value) {
                Some(named) => set & (1 << named) != 0,
                None => set & OTHER != 0,
            },
            _ => set & (1 << value) != 0,
        }
    }
}

fn process(template: u8, binding: &[u8]) -> u8 {
    if template >= FIXED { template - FIXED } else { binding[usize::from(template)] }
}
