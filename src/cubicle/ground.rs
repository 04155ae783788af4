//! Instantiation of systems for a number of processes: each cell gets a slot, and each transition
//! is instantiated for each choice of processes as its parameters.
//!
//! Input: typed system and number. Output: [`GroundLayout`] and [`Ground`] transitions. Comparisons
//! of processes are evaluated here. So cases and universal guards lose the parts that cannot hold,
//! and transitions with unsatisfiable guards are dropped. Cost: the number of injective choices of
//! parameters times the size of the transition times the number of cells that it updates.

use crate::system::{
    AssignedValue, Atom, CellAccess, ComparisonOp, Cube, Proc, Sum, SymbolId, SymbolKind, System,
    Term, Transition, TypeId, Update, UpdateCase, residue,
};
use crate::value::NumberTable;
use num_rational::BigRational;
use num_traits::ToPrimitive;

/// The slots of the cells.
#[derive(Debug)]
pub(crate) struct GroundLayout {
    /// Number of processes.
    pub(crate) n: u32,
    /// The first slot of each symbol.
    first: Vec<u32>,
    /// Number of slots.
    pub(crate) cells: u32,
    /// The symbol of each slot.
    pub(crate) symbol: Vec<SymbolId>,
}

impl GroundLayout {
    /// Numbers the cells for `n` processes; `None` if there are 2^24 or more.
    pub(crate) fn new(system: &System, n: u32) -> Option<GroundLayout> {
        let (mut first, mut symbol, mut cells) = (Vec::new(), Vec::new(), 0u32);
        for (i, s) in system.symbols.iter().enumerate() {
            first.push(cells);
            let own = n.checked_pow(u32::try_from(s.arity).ok()?)?;
            cells = cells.checked_add(own).filter(|c| *c < 1 << 24)?;
            symbol.resize(cells as usize, SymbolId::new(i));
        }
        Some(GroundLayout { n, first, cells, symbol })
    }
    /// Returns the slot of a cell.
    pub(crate) fn slot(&self, symbol: SymbolId, args: impl Iterator<Item = u32>) -> u32 {
        self.first[symbol.index()] + args.fold(0, |at, p| at * self.n + p)
    }
    /// Returns the indices of a slot's cell.
    pub(crate) fn args(&self, system: &System, slot: u32) -> Vec<u32> {
        let symbol = self.symbol[slot as usize];
        let mut at = slot - self.first[symbol.index()];
        let mut args = vec![0; system.symbol(symbol).arity];
        for arg in args.iter_mut().rev() {
            *arg = at % self.n;
            at /= self.n;
        }
        args
    }
}

/// A cell, with the process that reads it through its store buffer; `None`: it is read from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroundCell {
    pub(crate) slot: u32,
    pub(crate) by: Option<u32>,
}

/// Linear combination of cells: `constant` plus the sum of `factor · cell`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroundSum {
    pub(crate) constant: BigRational,
    pub(crate) terms: Vec<(BigRational, GroundCell)>,
    /// The same in machine integers, if the constant and all factors are integers below 2^28.
    pub(crate) small: Option<(i64, Vec<(i64, GroundCell)>)>,
    /// Of words: the value is the remainder modulo 2 to this number.
    pub(crate) bits: Option<u32>,
}

/// Term without variables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GroundTerm {
    /// The code of a constant: a process, a constructor, or a number.
    Code(u32),
    Cell(GroundCell),
    Sum(Box<GroundSum>),
}

/// Condition without variables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GroundAtom {
    /// Comparison of codes: `=`, `<>`; for processes also by order.
    Codes(GroundTerm, ComparisonOp, GroundTerm),
    /// Comparison of numbers.
    Numbers(GroundTerm, ComparisonOp, GroundTerm),
    /// The buffer of a process is empty.
    Empty(u32),
}

/// Conjunction of conditions.
pub(crate) type GroundCube = Vec<GroundAtom>;

/// New value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GroundValue {
    Term(GroundTerm),
    /// Any value of the cell's sort.
    Any,
}

/// The update of one cell: the first case that matches; otherwise the cell is unchanged.
#[derive(Clone, Debug)]
pub(crate) struct GroundUpdate {
    pub(crate) slot: u32,
    pub(crate) weak: bool,
    pub(crate) cases: Vec<(GroundCube, GroundValue)>,
}

/// A transition for given processes.
#[derive(Debug)]
pub(crate) struct Ground {
    /// Index in [`System::transitions`].
    pub(crate) transition: u32,
    /// The processes of all parameters, from 0.
    pub(crate) procs: Vec<u32>,
    pub(crate) guard: GroundCube,
    /// Universal guards: at least one cube of each must hold.
    pub(crate) universal: Vec<Vec<GroundCube>>,
    pub(crate) updates: Vec<GroundUpdate>,
    pub(crate) actor: Option<u32>,
    pub(crate) locked: bool,
    /// The slots of the weak cells that it updates, ascending: the form of its entry in a buffer.
    pub(crate) shape: Vec<u32>,
}

/// Returns all injective choices of `k` of `n` processes, in lexicographic order.
pub fn choices(n: u32, k: usize) -> Vec<Vec<u32>> {
    let mut out = vec![Vec::new()];
    for _ in 0..k {
        out = out
            .into_iter()
            .flat_map(|c| {
                (0..n)
                    .filter(|p| !c.contains(p))
                    .map(|p| [&c[..], &[p]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    out
}

/// Returns all lists of `k` of `n` processes, with repetitions.
pub(crate) fn tuples(n: u32, k: usize) -> Vec<Vec<u32>> {
    let mut out = vec![Vec::new()];
    for _ in 0..k {
        out = out
            .into_iter()
            .flat_map(|c| (0..n).map(|p| [&c[..], &[p]].concat()).collect::<Vec<_>>())
            .collect();
    }
    out
}

/// Translator of terms to ground terms.
pub(crate) struct Grounder<'a> {
    pub(crate) system: &'a System,
    pub(crate) layout: &'a GroundLayout,
    pub(crate) numbers: &'a NumberTable,
    /// True if processes have store buffers, so that a read depends on its process.
    pub(crate) buffers: bool,
    /// The process of each variable; `None` if it is not bound.
    pub(crate) env: Vec<Option<u32>>,
}

impl Grounder<'_> {
    fn proc(&self, p: Proc) -> u32 {
        match p {
            Proc::Var(v) => self.env[v as usize].expect("a checked term has bound variables"),
            Proc::Fixed(n) => n - 1,
        }
    }
    fn bind(&mut self, var: u32, to: u32) {
        if self.env.len() <= var as usize {
            self.env.resize(var as usize + 1, None);
        }
        self.env[var as usize] = Some(to);
    }
    pub(crate) fn access(&self, a: &CellAccess) -> GroundCell {
        let by = a.by.filter(|_| self.buffers).map(|p| self.proc(p));
        GroundCell { slot: self.layout.slot(a.symbol, a.args.iter().map(|p| self.proc(*p))), by }
    }
    /// Translates a sum, of words if the number of their bits is given.
    fn sum(&self, s: &Sum, bits: Option<u32>) -> GroundTerm {
        if let Some(c) = s.as_constant() {
            let code = |c: &BigRational| GroundTerm::Code(self.numbers.code(c));
            return bits.map_or_else(|| code(c), |bits| code(&residue(c, bits)));
        }
        if let Some(cell) = s.as_cell()
            && bits.is_none_or(|bits| self.system.symbol(cell.symbol).sort == TypeId::word(bits))
        {
            return GroundTerm::Cell(self.access(cell));
        }
        let terms: Vec<_> = s.terms.iter().map(|(a, f)| (f.clone(), self.access(a))).collect();
        let whole = |r: &BigRational| {
            if r.is_integer() { r.to_i64().filter(|v| v.unsigned_abs() < 1 << 28) } else { None }
        };
        let factors =
            terms.iter().map(|(f, c)| whole(f).map(|f| (f, *c))).collect::<Option<Vec<_>>>();
        let small = whole(&s.constant).zip(factors);
        GroundTerm::Sum(Box::new(GroundSum { constant: s.constant.clone(), terms, small, bits }))
    }
    /// Translates a term, of words if the number of their bits is given.
    pub(crate) fn term(&self, t: &Term, bits: Option<u32>) -> GroundTerm {
        match t {
            Term::Proc(p) => GroundTerm::Code(self.proc(*p)),
            Term::Cons(c) => GroundTerm::Code(c.number()),
            Term::Cell(a) => GroundTerm::Cell(self.access(a)),
            Term::Sum(s) => self.sum(s, bits),
        }
    }
    /// Instantiates a cube; `None` if it cannot hold.
    pub(crate) fn cube(&self, cube: &Cube) -> Option<GroundCube> {
        let mut out = Vec::new();
        for atom in cube {
            match atom {
                Atom::False => return None,
                Atom::Fence(p) if self.buffers => out.push(GroundAtom::Empty(self.proc(*p))),
                Atom::Fence(_) => {}
                Atom::Compare(a, op, b) => {
                    let numeric = matches!(a, Term::Sum(_));
                    let (a, b) = (self.term(a, None), self.term(b, None));
                    if let (GroundTerm::Code(x), GroundTerm::Code(y), false) = (&a, &b, numeric) {
                        if holds(x.cmp(y), *op) {
                            continue;
                        }
                        return None;
                    }
                    out.push(if numeric {
                        GroundAtom::Numbers(a, *op, b)
                    } else {
                        GroundAtom::Codes(a, *op, b)
                    });
                }
                Atom::Words(w) => {
                    let side = |s: &Sum| self.sum(s, Some(w.bits));
                    out.push(GroundAtom::Numbers(side(&w.left), w.op, side(&w.right)));
                }
            }
        }
        Some(out)
    }
    /// Instantiates a formula in normal form; `None` if it always holds.
    pub(crate) fn dnf(&self, dnf: &[Cube]) -> Option<Vec<GroundCube>> {
        let out: Vec<_> = dnf.iter().filter_map(|c| self.cube(c)).collect();
        (!out.iter().any(Vec::is_empty)).then_some(out)
    }
    /// Instantiates a transition for the processes in `env`; `None` if it is impossible.
    pub(crate) fn transition(&mut self, index: u32, t: &Transition) -> Option<Ground> {
        let procs: Vec<u32> = self.env.iter().flatten().copied().collect();
        let guard = self.cube(&t.guard)?;
        let mut universal = Vec::new();
        for u in &t.universal {
            for other in (0..self.layout.n).filter(|p| !procs[..t.declared].contains(p)) {
                self.bind(u.var, other);
                match self.dnf(&u.dnf) {
                    None => {}
                    Some(cubes) if cubes.is_empty() => return None,
                    Some(cubes) => universal.push(cubes),
                }
            }
        }
        let mut updates = Vec::new();
        for u in &t.updates {
            self.update(u, &mut updates);
        }
        let mut shape: Vec<u32> =
            updates.iter().filter(|u: &&GroundUpdate| u.weak).map(|u| u.slot).collect();
        shape.sort_unstable();
        let actor = t.actor.filter(|_| self.buffers).map(|p| self.proc(p));
        self.env.truncate(procs.len());
        Some(Ground {
            transition: index,
            procs,
            guard,
            universal,
            updates,
            actor,
            locked: t.locked && self.buffers,
            shape,
        })
    }
    fn update(&mut self, u: &Update, out: &mut Vec<GroundUpdate>) {
        let weak = self.buffers && self.system.symbol(u.symbol()).kind == SymbolKind::Weak;
        let bits = self.system.symbol(u.symbol()).sort.bits();
        match u {
            Update::Assign { symbol, args, value, .. } => {
                let slot = self.layout.slot(*symbol, args.iter().map(|p| self.proc(*p)));
                self.cell(
                    (slot, bits),
                    weak,
                    [&UpdateCase { condition: Vec::new(), value: value.clone() }].into_iter(),
                    out,
                );
            }
            Update::Cases { symbol, bound, cases, .. } => {
                for args in tuples(self.layout.n, bound.len()) {
                    for ((var, _), p) in bound.iter().zip(&args) {
                        self.bind(*var, *p);
                    }
                    let slot = self.layout.slot(*symbol, args.into_iter());
                    self.cell((slot, bits), weak, cases.iter(), out);
                }
            }
        }
    }
    /// Instantiates the update of one cell, without unsatisfiable cases, cases after one that
    /// always holds, and final cases that change nothing.
    fn cell<'c>(
        &self,
        (slot, bits): (u32, Option<u32>),
        weak: bool,
        all: impl Iterator<Item = &'c UpdateCase>,
        out: &mut Vec<GroundUpdate>,
    ) {
        let mut cases = Vec::new();
        for case in all {
            let Some(condition) = self.cube(&case.condition) else { continue };
            let value = match &case.value {
                AssignedValue::Any => GroundValue::Any,
                AssignedValue::Term(t) => GroundValue::Term(self.term(t, bits)),
            };
            let last = condition.is_empty();
            cases.push((condition, value));
            if last {
                break;
            }
        }
        while cases.last().is_some_and(
            |(_, v)| matches!(v, GroundValue::Term(GroundTerm::Cell(c)) if c.slot == slot),
        ) {
            cases.pop();
        }
        if !cases.is_empty() {
            out.push(GroundUpdate { slot, weak, cases });
        }
    }
}

/// True if the comparison holds for values in this order.
pub(crate) fn holds(order: std::cmp::Ordering, op: ComparisonOp) -> bool {
    match op {
        ComparisonOp::Eq => order.is_eq(),
        ComparisonOp::Neq => order.is_ne(),
        ComparisonOp::Lt => order.is_lt(),
        ComparisonOp::Le => order.is_le(),
    }
}

/// Returns the sort of a slot.
pub(crate) fn sort(system: &System, layout: &GroundLayout, slot: u32) -> TypeId {
    system.symbol(layout.symbol[slot as usize]).sort
}

/// Calls `f` with each cell that a cube reads. Tests for an empty buffer read no cell.
pub(crate) fn for_each_read_cell(cube: &GroundCube, f: &mut impl FnMut(GroundCell)) {
    for atom in cube {
        match atom {
            GroundAtom::Empty(_) => {}
            GroundAtom::Codes(a, _, b) | GroundAtom::Numbers(a, _, b) => {
                term_cells(a, f);
                term_cells(b, f);
            }
        }
    }
}

/// Calls `f` with each cell of a term.
pub(crate) fn term_cells(term: &GroundTerm, f: &mut impl FnMut(GroundCell)) {
    match term {
        GroundTerm::Code(_) => {}
        GroundTerm::Cell(c) => f(*c),
        GroundTerm::Sum(s) => s.terms.iter().for_each(|t| f(t.1)),
    }
}
