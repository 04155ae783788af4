//! Decision procedure for conjunctions of atoms over distinct processes, enumerations, a total
//! order of the processes, and linear arithmetic. It is incremental: atoms are asserted on levels
//! that are pushed and popped.
//!
//! No cell is both numeric and non-numeric, so arithmetic ([`crate::simplex`]) and the rest share
//! no variables: each part is decided separately, without exchange of equalities (the trivial case
//! of Nelson and Oppen). Finite domains are sets of bits. Equalities join cells into classes with
//! one domain; disequalities and the order remove values and are decided by splitting on the
//! smallest domain; an order is contradictory if it has a cycle with a strict edge. The unnamed
//! processes are one bit of a domain, and there are arbitrarily many of them.
//!
//! [`SimplexAnswer::Unsatisfiable`] is always correct. An exhausted budget, or a number beyond 128
//! bits, gives [`SimplexAnswer::Unknown`].

use crate::atom::{Atom, Cell, OTHER, Point, Signature, SymbolSort};
use crate::counts;
use crate::rational::Rational;
use crate::residues::{self, Residues};
use crate::simplex::{Constraint, Simplex, SimplexAnswer};
use num_rational::BigRational;

const SPLITS: u32 = 200;
/// Number of case splits in frequent queries that may fail to find a contradiction.
const FEW_SPLITS: u32 = 3;
/// Number of case splits of words in these queries: a sum that wraps needs one.
const SPLITS_OF_WORDS: u32 = 40;

enum Undo {
    Domain(usize, u64),
    NewDomain,
    Same,
    Before,
    Linear,
    Residues,
}

/// An incremental conjunction.
pub struct Decider<'a> {
    signature: &'a Signature,
    processes: usize,
    domains: Vec<(Cell, u64)>,
    same: Vec<(Cell, Cell, bool)>,
    before: Vec<(Point, Point, bool)>,
    linear: usize,
    words: Vec<Residues>,
    simplex: Simplex,
    numbers: Vec<Cell>,
    undo: Vec<Undo>,
    marks: Vec<(usize, bool)>,
    contradiction: bool,
    /// Number of queries.
    pub queries: u64,
}

impl<'a> Decider<'a> {
    /// Creates the empty conjunction over `processes` named processes.
    pub fn new(signature: &'a Signature, processes: usize) -> Decider<'a> {
        Decider {
            signature,
            processes,
            domains: Vec::new(),
            same: Vec::new(),
            before: Vec::new(),
            linear: 0,
            words: Vec::new(),
            simplex: Simplex::default(),
            numbers: Vec::new(),
            undo: Vec::new(),
            marks: Vec::new(),
            contradiction: false,
            queries: 0,
        }
    }
    /// Creates the conjunction of the atoms.
    pub fn of(signature: &'a Signature, processes: usize, atoms: &[Atom]) -> Decider<'a> {
        let mut decider = Decider::new(signature, processes);
        for a in atoms {
            decider.assert(a);
        }
        if !signature.counts.is_empty() {
            counts::facts(signature, processes, atoms).iter().for_each(|a| decider.assert(a));
        }
        decider
    }
    /// Opens a level.
    pub fn push(&mut self) {
        self.marks.push((self.undo.len(), self.contradiction));
        self.simplex.push();
    }
    /// Retracts the assertions of the last level.
    pub fn pop(&mut self) {
        let Some((mark, contradiction)) = self.marks.pop() else { return };
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Domain(i, old)) => self.domains[i].1 = old,
                Some(Undo::NewDomain) => {
                    self.domains.pop();
                }
                Some(Undo::Same) => {
                    self.same.pop();
                }
                Some(Undo::Before) => {
                    self.before.pop();
                }
                Some(Undo::Linear) => self.linear -= 1,
                Some(Undo::Residues) => {
                    self.words.pop();
                }
                None => break,
            }
        }
        self.contradiction = contradiction;
        self.simplex.pop();
    }
    /// Returns the possible values of the cell after propagation.
    pub fn domain(&self, cell: Cell) -> u64 {
        match self.domains.iter().find(|d| d.0 == cell) {
            Some(d) => d.1,
            None => self.signature.all_values(self.signature.sort(cell), self.processes),
        }
    }
    fn restrict(&mut self, cell: Cell, set: u64) -> bool {
        match self.domains.iter().position(|d| d.0 == cell) {
            Some(i) => {
                let old = self.domains[i].1;
                if old & set == old {
                    return false;
                }
                self.undo.push(Undo::Domain(i, old));
                self.domains[i].1 = old & set;
                self.contradiction |= old & set == 0;
                true
            }
            None => {
                let all = self.signature.all_values(self.signature.sort(cell), self.processes);
                if all & set == all {
                    return false;
                }
                self.undo.push(Undo::NewDomain);
                self.domains.push((cell, all & set));
                self.contradiction |= all & set == 0;
                true
            }
        }
    }
    /// Adds an atom.
    pub fn assert(&mut self, atom: &Atom) {
        match atom {
            Atom::In(c, set) => {
                self.restrict(*c, *set);
            }
            Atom::Same(a, b, equal) => {
                self.same.push((*a, *b, *equal));
                self.undo.push(Undo::Same);
            }
            Atom::Before(a, b, strict) => {
                self.before.push((*a, *b, *strict));
                self.undo.push(Undo::Before);
            }
            Atom::Linear(l) => {
                let terms = l.terms.iter().map(|&(c, f)| (self.number(c), f)).collect();
                self.linear += 1;
                self.undo.push(Undo::Linear);
                self.simplex.assert(&Constraint {
                    terms,
                    constant: l.constant,
                    relation: l.relation,
                });
            }
            Atom::Residues(r) => {
                self.words.push((**r).clone());
                self.undo.push(Undo::Residues);
            }
            Atom::Fence(..) => {}
        }
    }
    fn number(&mut self, cell: Cell) -> usize {
        if let Some(i) = self.numbers.iter().position(|c| *c == cell) {
            return i;
        }
        let variable = self.simplex.variable(self.signature.sort(cell) == SymbolSort::Integer);
        // Slack variables have separate indices, so numbers are identified by position.
        while self.numbers.len() < variable {
            self.numbers.push(Cell::new(u16::MAX.into(), &[]));
        }
        self.numbers.push(cell);
        variable
    }
    /// Decides the conjunction.
    pub fn check(&mut self) -> SimplexAnswer {
        self.check_within(SPLITS)
    }
    /// Decides the conjunction with a limited number of case splits.
    pub fn check_within(&mut self, mut budget: u32) -> SimplexAnswer {
        self.queries += 1;
        let of_words = if budget > FEW_SPLITS { SPLITS } else { SPLITS_OF_WORDS };
        self.push();
        let mut answer = self.discrete(&mut budget);
        self.pop();
        if answer != SimplexAnswer::Unsatisfiable && self.linear > 0 {
            match self.simplex.check(&mut budget) {
                SimplexAnswer::Satisfiable => {}
                other => answer = other,
            }
        }
        if answer != SimplexAnswer::Unsatisfiable && !self.words.is_empty() {
            match residues::satisfiable(&self.words, of_words) {
                SimplexAnswer::Satisfiable => {}
                other => answer = other,
            }
        }
        answer
    }
    /// Returns the numbers of the solution that [`check`](Self::check) found last: each cell with
    /// its number and the factor of the infinitesimal.
    pub fn values(&self) -> Vec<(Cell, BigRational, BigRational)> {
        let number = |r: Rational| {
            let (numerator, denominator) = r.parts();
            BigRational::new(numerator.into(), denominator.into())
        };
        let cells = self
            .numbers
            .iter()
            .enumerate()
            .filter(|(_, c)| c.symbol() < self.signature.sorts.len());
        cells
            .map(|(v, c)| (*c, self.simplex.value(v)))
            .map(|(c, v)| (c, number(v.real), number(v.small)))
            .collect()
    }
    /// Returns whether the atom holds in all solutions (`Some(true)`) or in none (`Some(false)`);
    /// otherwise, or if that is not determined, `None`.
    pub fn evaluate(&mut self, atom: &Atom) -> Option<bool> {
        match atom {
            Atom::In(c, set) => {
                let domain = self.domain(*c);
                return if domain & !set == 0 {
                    Some(true)
                } else if domain & set == 0 {
                    Some(false)
                } else {
                    None
                };
            }
            Atom::Same(a, b, equal) => {
                if self.same.contains(&(*a, *b, *equal)) {
                    return Some(true);
                }
                if self.same.contains(&(*a, *b, !equal)) {
                    return Some(false);
                }
                let (x, y) = (self.domain(*a), self.domain(*b));
                if x & y == 0 {
                    return Some(!equal);
                }
                if x == y && x.is_power_of_two() && x != OTHER {
                    return Some(*equal);
                }
                if self.same.is_empty() {
                    return None;
                }
            }
            Atom::Before(a, b, strict) => {
                if self.before.is_empty()
                    && matches!((a, b), (Point::Variable(_), Point::Variable(_)))
                {
                    return None;
                }
                if self.before.contains(&(*a, *b, *strict)) {
                    return Some(true);
                }
            }
            Atom::Linear(l) => {
                if self.linear == 0 || l.terms.iter().any(|t| !self.numbers.contains(&t.0)) {
                    return None;
                }
            }
            Atom::Residues(r) => {
                if residues::is_open(&self.words, r) {
                    return None;
                }
                if self.words.contains(r) {
                    return Some(true);
                }
            }
            Atom::Fence(..) => return None,
        }
        if let Ok(crate::atom::Literal::Atom(opposite)) =
            atom.negate(self.signature, self.processes)
            && self.refutes(&opposite)
        {
            return Some(true);
        }
        self.refutes(atom).then_some(false)
    }
    /// True if few case splits show that the atom contradicts the assertions.
    pub fn refutes(&mut self, atom: &Atom) -> bool {
        self.push();
        self.assert(atom);
        let answer = self.check_within(FEW_SPLITS);
        self.pop();
        answer == SimplexAnswer::Unsatisfiable
    }
    /// Propagates to the fixed point: equalities intersect the domains of their sides,
    /// disequalities remove single values.
    fn propagate(&mut self) {
        let mut changed = !self.same.is_empty();
        while changed && !self.contradiction {
            changed = false;
            for i in 0..self.same.len() {
                let (a, b, equal) = self.same[i];
                if self.signature.sort(a) == SymbolSort::Abstract
                    || self.signature.sort(a).is_numeric()
                {
                    continue;
                }
                let (x, y) = (self.domain(a), self.domain(b));
                if equal {
                    changed |= self.restrict(a, y) | self.restrict(b, x);
                } else {
                    // There are many unnamed processes, so two cells may contain different ones.
                    if x.is_power_of_two() && x != OTHER {
                        changed |= self.restrict(b, !x);
                    }
                    if y.is_power_of_two() && y != OTHER {
                        changed |= self.restrict(a, !y);
                    }
                }
            }
        }
    }
    /// Decides everything except arithmetic.
    fn discrete(&mut self, budget: &mut u32) -> SimplexAnswer {
        self.propagate();
        if self.contradiction || self.classes_clash() {
            return SimplexAnswer::Unsatisfiable;
        }
        let split = match self.undecided_cell() {
            Some(cell) => cell,
            None if self.is_ordered() => return SimplexAnswer::Satisfiable,
            None => return SimplexAnswer::Unsatisfiable,
        };
        let mut values = self.domain(split);
        let mut answer = SimplexAnswer::Unsatisfiable;
        while values != 0 {
            // Try the unnamed processes first, since they can be anywhere in the order.
            let value = 1 << (63 - values.leading_zeros());
            values &= !value;
            if *budget == 0 {
                return SimplexAnswer::Unknown;
            }
            *budget -= 1;
            self.push();
            self.restrict(split, value);
            let found = self.discrete(budget);
            self.pop();
            match found {
                SimplexAnswer::Satisfiable => return found,
                SimplexAnswer::Unknown => answer = found,
                SimplexAnswer::Unsatisfiable => {}
            }
        }
        answer
    }
    /// True if a disequality relates cells that equalities identify.
    fn classes_clash(&self) -> bool {
        if self.same.iter().all(|s| s.2) || self.same.iter().all(|s| !s.2) {
            return false;
        }
        let mut cells: Vec<Cell> = self.same.iter().flat_map(|s| [s.0, s.1]).collect();
        cells.sort_unstable();
        cells.dedup();
        let mut class: Vec<usize> = (0..cells.len()).collect();
        let at = |c: Cell| cells.binary_search(&c).expect("the cells of all equalities are listed");
        for &(a, b, equal) in &self.same {
            if equal {
                let (from, to) = (class[at(a)], class[at(b)]);
                for c in &mut class {
                    if *c == from {
                        *c = to;
                    }
                }
            }
        }
        self.same.iter().any(|&(a, b, equal)| !equal && class[at(a)] == class[at(b)])
    }
    /// Returns a cell to split on, because its value decides a disequality or an order.
    fn undecided_cell(&self) -> Option<Cell> {
        let mut best: Option<(u32, Cell)> = None;
        let mut offer = |cell: Cell, domain: u64| {
            let size = domain.count_ones();
            if size > 1 && best.is_none_or(|b| (size, cell) < b) {
                best = Some((size, cell));
            }
        };
        for &(a, b, equal) in &self.same {
            let (x, y) = (self.domain(a), self.domain(b));
            if !equal && self.signature.sort(a) != SymbolSort::Abstract && x & y & !OTHER != 0 {
                offer(a, x);
                offer(b, y);
            }
        }
        for (a, b, _) in &self.before {
            for p in [a, b] {
                if let Point::Cell(c) = p {
                    offer(*c, self.domain(*c));
                }
            }
        }
        best.map(|b| b.1)
    }
    /// True if the order has no cycle with a strict edge; all its cells are decided.
    fn is_ordered(&self) -> bool {
        if self.before.is_empty() {
            return true;
        }
        // Nodes: named processes first, then cells with unnamed ones.
        let mut others: Vec<Cell> = Vec::new();
        let mut edges: Vec<(usize, usize, bool)> = Vec::new();
        let processes = self.processes;
        let mut node = |p: &Point| match p {
            Point::Variable(v) => usize::from(*v),
            Point::Cell(c) => {
                let domain = self.domain(*c);
                if domain == OTHER {
                    let i = others.iter().position(|o| o == c).unwrap_or_else(|| {
                        others.push(*c);
                        others.len() - 1
                    });
                    processes + i
                } else {
                    domain.trailing_zeros() as usize
                }
            }
        };
        for (a, b, strict) in &self.before {
            let (a, b) = (node(a), node(b));
            edges.push((a, b, *strict || (a != b && a.min(b) < processes)));
        }
        let count = processes + others.len();
        for &(a, b, equal) in &self.same {
            if let (Some(i), Some(j)) =
                (others.iter().position(|o| *o == a), others.iter().position(|o| *o == b))
                && equal
            {
                edges.push((processes + i, processes + j, false));
                edges.push((processes + j, processes + i, false));
            }
        }
        for f in 0..self.signature.fixed.min(processes) {
            edges.extend((f + 1..count).map(|v| (f, v, true)));
        }
        // 0: no path, 1: a path, 2: a path with a strict edge.
        let mut path = vec![0u8; count * count];
        for (a, b, strict) in edges {
            let p = &mut path[a * count + b];
            *p = (*p).max(if strict { 2 } else { 1 });
        }
        for k in 0..count {
            for i in 0..count {
                for j in 0..count {
                    let (x, y) = (path[i * count + k], path[k * count + j]);
                    if x > 0 && y > 0 {
                        let p = &mut path[i * count + j];
                        *p = (*p).max(x.max(y));
                    }
                }
            }
        }
        (0..count).all(|i| path[i * count + i] < 2)
    }
}

/// Decides whether the atoms are satisfiable together.
pub fn satisfiable(signature: &Signature, processes: usize, atoms: &[Atom]) -> SimplexAnswer {
    Decider::of(signature, processes, atoms).check()
}
