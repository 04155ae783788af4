//! Cubes: existentially quantified conjunctions of atoms over distinct processes. Input: any list
//! of atoms. Output: a normal form, or a contradiction. Normalisation merges domains, propagates
//! equalities, removes arithmetic atoms that another one implies, and normalises stages
//! ([`crate::stages`]). It drops unmentioned processes and numbers the others by their occurrences,
//! so that most cubes that differ only in names are equal.
//!
//! Dropping an unmentioned process loses the fact that it exists. This is an over-approximation
//! that only adds smaller systems. Cost: a few passes over the atoms, and one call of the decision
//! procedure.

use crate::atom::{
    Atom, Cell, LinearConstraint, Literal, NONE, OTHER, Point, Signature, SymbolSort, map_set,
};
use crate::decide::satisfiable;
use crate::simplex::{SimplexAnswer, ZeroRelation};
use crate::stages;
use mu_base::mixing::fx;
use mu_base::narrow;
use std::hash::{Hash, Hasher};

/// A conjunction of atoms over distinct processes, in normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cube {
    /// Number of processes; the fixed ones first.
    pub processes: usize,
    /// The atoms, ascending.
    pub atoms: Vec<Atom>,
}

/// A small deterministic hash.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for &b in rest {
            self.write_u64(u64::from(b));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = fx(self.0, n);
    }
    fn write_i64(&mut self, n: i64) {
        self.write_u64(n.cast_unsigned());
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

impl Cube {
    /// Returns the normal form of the conjunction, or `None` if it is contradictory.
    pub fn new(signature: &Signature, processes: usize, atoms: Vec<Atom>) -> Option<Cube> {
        Cube::with_names(signature, processes, atoms).map(|c| c.0)
    }
    /// Returns the same, with the new name of each process; [`NONE`] for dropped ones. `None` if it
    /// is contradictory.
    pub fn with_names(
        signature: &Signature,
        processes: usize,
        mut atoms: Vec<Atom>,
    ) -> Option<(Cube, Vec<u8>)> {
        if !simplify(signature, processes, &mut atoms) {
            return None;
        }
        stages::tidy(signature, &mut atoms);
        let needs_check = atoms.iter().any(|a| !matches!(a, Atom::In(..) | Atom::Fence(..)));
        if needs_check && satisfiable(signature, processes, &atoms) == SimplexAnswer::Unsatisfiable
        {
            return None;
        }
        Some(Cube { processes, atoms }.renumber(signature))
    }
    /// Returns the cube with additional unconstrained processes.
    #[must_use]
    pub fn add_processes(&self, signature: &Signature, processes: usize) -> Cube {
        let wide = |a: &Atom| match a {
            Atom::In(c, set) if signature.sort(*c) == SymbolSort::Process => {
                Atom::In(*c, map_set(*set, self.processes, processes, |p| p))
            }
            a => a.clone(),
        };
        Cube { processes, atoms: self.atoms.iter().map(wide).collect() }
    }
    /// Removes unmentioned processes and numbers the others by their occurrences.
    fn renumber(self, signature: &Signature) -> (Cube, Vec<u8>) {
        let fixed = signature.fixed;
        let used = self.atoms.iter().fold(0, |set, a| set | a.processes(signature, self.processes));
        let mut order: Vec<(u64, usize)> = (fixed..self.processes)
            .filter(|p| used & (1 << p) != 0)
            .map(|p| (occurrence(signature, &self.atoms, p), p))
            .collect();
        order.sort_unstable();
        let mut to = vec![NONE; self.processes.max(1)];
        for (p, t) in to.iter_mut().enumerate().take(fixed) {
            *t = narrow::byte(p);
        }
        for (i, (_, p)) in order.iter().enumerate() {
            to[*p] = narrow::byte(fixed + i);
        }
        let processes = fixed + order.len();
        let mut atoms: Vec<Atom> = self
            .atoms
            .iter()
            .filter_map(|a| rename(signature, a, self.processes, processes, &to, used))
            .collect();
        atoms.sort_unstable();
        (Cube { processes, atoms }, to)
    }
    /// Renames the processes by an injective map into a cube of `processes` processes; `None` if
    /// the names contradict the order.
    pub fn instance(
        &self,
        signature: &Signature,
        processes: usize,
        to: &[u8],
    ) -> Option<Vec<Atom>> {
        let mut atoms = Vec::with_capacity(self.atoms.len());
        for a in &self.atoms {
            match a.map(signature, self.processes, processes, |p| to[usize::from(p)]) {
                Literal::True => {}
                Literal::False => return None,
                Literal::Atom(a) => atoms.push(a),
            }
        }
        Some(atoms)
    }
}

fn rename(
    signature: &Signature,
    atom: &Atom,
    from: usize,
    processes: usize,
    to: &[u8],
    used: u64,
) -> Option<Atom> {
    if let Atom::In(c, set) = atom
        && signature.sort(*c) == SymbolSort::Process
    {
        // Dropped names count as unnamed processes; the set does not distinguish them.
        let mut mapped = set & OTHER;
        for (p, target) in to.iter().enumerate().take(from) {
            if (used & (1 << p) != 0 || p < signature.fixed) && set & (1 << p) != 0 {
                mapped |= 1 << target;
            }
        }
        return Some(Atom::In(c.map(|p| to[usize::from(p)]), mapped));
    }
    match atom.map(signature, from, processes, |p| to[usize::from(p)]) {
        Literal::Atom(a) => Some(a),
        _ => None,
    }
}

/// Returns a hash of the occurrences of a process, independent of the names of the others.
fn occurrence(signature: &Signature, atoms: &[Atom], process: usize) -> u64 {
    let to = |p: u8| if usize::from(p) == process { 0 } else { 1 };
    let mut sum = 0u64;
    for a in atoms {
        let mut hash = Mix::default();
        match a {
            Atom::In(c, set) if signature.sort(*c) == SymbolSort::Process => {
                if c.processes().all(|p| usize::from(p) != process)
                    && (set & (1 << process) != 0) == (set & OTHER != 0)
                {
                    continue;
                }
                (c.map(to), set & (1 << process) != 0, set & OTHER != 0).hash(&mut hash);
            }
            Atom::In(c, set) => {
                if c.processes().all(|p| usize::from(p) != process) {
                    continue;
                }
                (c.map(to), set).hash(&mut hash);
            }
            Atom::Linear(l) => {
                for t in &l.terms {
                    (t.0.map(to), t.1).hash(&mut hash);
                }
                (l.constant, l.relation as u8).hash(&mut hash);
            }
            Atom::Residues(r) => {
                for side in [&r.left, &r.right] {
                    for t in &side.terms {
                        (t.0.map(to), t.1).hash(&mut hash);
                    }
                    side.constant.hash(&mut hash);
                }
                (r.bits, r.relation as u8).hash(&mut hash);
            }
            Atom::Same(a, b, equal) => (a.map(to), b.map(to), *equal).hash(&mut hash),
            Atom::Before(a, b, strict) => {
                for p in [a, b] {
                    match p {
                        Point::Variable(v) => to(*v).hash(&mut hash),
                        Point::Cell(c) => c.map(to).hash(&mut hash),
                    }
                }
                strict.hash(&mut hash);
            }
            Atom::Fence(p, stage) => (to(*p), *stage).hash(&mut hash),
        }
        sum = sum.wrapping_add(hash.finish());
    }
    sum
}

/// Merges and propagates atoms. Returns false on a contradiction.
pub fn simplify(signature: &Signature, processes: usize, atoms: &mut Vec<Atom>) -> bool {
    let mut domains: Vec<(Cell, u64)> = Vec::with_capacity(atoms.len());
    let mut rest: Vec<Atom> = Vec::new();
    for a in atoms.drain(..) {
        match a {
            Atom::In(c, set) => restrict(&mut domains, c, set),
            a => {
                if !rest.contains(&a) {
                    rest.push(a);
                }
            }
        }
    }
    let all = |c: Cell| signature.all_values(signature.sort(c), processes);
    let discrete =
        |c: Cell| matches!(signature.sort(c), SymbolSort::Finite(_) | SymbolSort::Process);
    let domain = |domains: &[(Cell, u64)], c: Cell| {
        domains.iter().find(|d| d.0 == c).map_or(all(c), |d| d.1)
    };
    let single = |set: u64| set.is_power_of_two() && set != OTHER;
    loop {
        let mut changed = false;
        let mut i = 0;
        while i < rest.len() {
            let Atom::Same(a, b, equal) = rest[i] else {
                i += 1;
                continue;
            };
            if !discrete(a) {
                i += 1;
                continue;
            }
            let (x, y) = (domain(&domains, a), domain(&domains, b));
            if equal {
                if x != y {
                    restrict(&mut domains, a, y);
                    restrict(&mut domains, b, x);
                    changed = true;
                }
                if x & y == 0 {
                    return false;
                }
                if single(x & y) {
                    rest.swap_remove(i);
                    continue;
                }
            } else if single(x) || single(y) || x & y == 0 {
                if single(x) {
                    restrict(&mut domains, b, all(b) & !x);
                }
                if single(y) {
                    restrict(&mut domains, a, all(a) & !y);
                }
                changed = true;
                rest.swap_remove(i);
                continue;
            }
            i += 1;
        }
        if !changed {
            break;
        }
    }
    if domains.iter().any(|d| d.1 & all(d.0) == 0) {
        return false;
    }
    let mut i = 0;
    while i < rest.len() {
        if let Atom::Before(a, b, strict) = rest[i] {
            let point = |p: Point| match p {
                Point::Cell(c) if single(domain(&domains, c)) => {
                    Point::Variable(narrow::byte(domain(&domains, c).trailing_zeros() as usize))
                }
                p => p,
            };
            match Atom::order(point(a), point(b), strict, signature.fixed) {
                Literal::True => {
                    rest.swap_remove(i);
                    continue;
                }
                Literal::False => return false,
                Literal::Atom(a) => rest[i] = a,
            }
        }
        i += 1;
    }
    if !merge_linear(&mut rest) {
        return false;
    }
    atoms.extend(
        domains
            .into_iter()
            .filter(|d| d.1 & all(d.0) != all(d.0))
            .map(|(c, set)| Atom::In(c, set & all(c))),
    );
    atoms.append(&mut rest);
    atoms.sort_unstable();
    atoms.dedup();
    true
}

fn restrict(domains: &mut Vec<(Cell, u64)>, cell: Cell, set: u64) {
    match domains.iter_mut().find(|d| d.0 == cell) {
        Some(d) => d.1 &= set,
        None => domains.push((cell, set)),
    }
}

/// Drops linear constraints that another one over the same sum implies. Returns false on a
/// contradiction.
fn merge_linear(atoms: &mut Vec<Atom>) -> bool {
    let mut i = 0;
    'next: while i < atoms.len() {
        let Atom::Linear(a) = &atoms[i] else {
            i += 1;
            continue;
        };
        for (j, other) in atoms.iter().enumerate() {
            let Atom::Linear(b) = other else { continue };
            if i == j || a.terms != b.terms {
                continue;
            }
            if matches!((a.relation, b.relation), (ZeroRelation::Eq, ZeroRelation::Eq))
                && a.constant != b.constant
            {
                return false;
            }
            if implies(b, a) && (!implies(a, b) || j < i) {
                atoms.swap_remove(i);
                continue 'next;
            }
        }
        i += 1;
    }
    true
}

/// True if the first constraint implies the second, over the same sum `s`.
fn implies(a: &LinearConstraint, b: &LinearConstraint) -> bool {
    // a: s + a.constant rel 0, so s rel -a.constant.
    match (a.relation, b.relation) {
        (ZeroRelation::Eq, ZeroRelation::Eq) => a.constant == b.constant,
        (ZeroRelation::Eq, ZeroRelation::Ne) => a.constant != b.constant,
        (ZeroRelation::Eq | ZeroRelation::Le, ZeroRelation::Le)
        | (ZeroRelation::Lt, ZeroRelation::Lt | ZeroRelation::Le) => a.constant >= b.constant,
        (ZeroRelation::Eq | ZeroRelation::Le, ZeroRelation::Lt) => a.constant > b.constant,
        (ZeroRelation::Le, ZeroRelation::Ne) => a.constant > b.constant,
        (ZeroRelation::Lt, ZeroRelation::Ne) => a.constant >= b.constant,
        (ZeroRelation::Ne, ZeroRelation::Ne) => a.constant == b.constant,
        _ => false,
    }
}
