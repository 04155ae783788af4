//! Which cubes might be unreachable: those that no reachable state of a small instance is in ("Invariants for finite instances and beyond", Conchon, Goel,
//! Krstić, Mebsout, Zaïdi, 2013). From a cube, conjunctions of few of its atoms are tried, the fewest first; one that the instances do not
//! contradict is proposed as the larger cube to exclude. A proposal that a trace refutes is remembered, and all that cover it are refused.
//!
//! States are stored by columns: for each cell and value the set of states, as bits. A conjunction over finite domains is a conjunction of columns;
//! arithmetic, order and stages are tested state by state on what remains.

use crate::atom::{Atom, Linear, Literal, OTHER, Signature, Sort};
use crate::cube::Cube;
use crate::instance::{Instance, State};
use crate::rules::Rules;
use crate::search::Oracle;
use crate::simplex::Relation;
use crate::start::assumptions;
use crate::subsume::{Pattern, Target};
use std::collections::HashMap;

/// The states of one instance.
struct Bank<'a> {
    instance: Instance<'a>,
    states: Vec<State>,
    /// For each cell, its values with the states that have them.
    columns: Vec<HashMap<i64, Vec<u64>>>,
    words: usize,
}

impl<'a> Bank<'a> {
    fn new(instance: Instance<'a>, states: Vec<State>) -> Bank<'a> {
        let words = states.len().div_ceil(64);
        let mut columns: Vec<HashMap<i64, Vec<u64>>> = vec![HashMap::new(); instance.cells];
        for (i, s) in states.iter().enumerate() {
            for (cell, v) in s.values.iter().enumerate() {
                columns[cell].entry(*v).or_insert_with(|| vec![0; words])[i / 64] |= 1 << (i % 64);
            }
        }
        Bank { instance, states, columns, words }
    }
    /// Whether some state is in the cube.
    fn meets(&self, signature: &Signature, cube: &Cube) -> bool {
        self.place(signature, cube, &mut (0..signature.fixed as u8).collect())
    }
    fn place(&self, signature: &Signature, cube: &Cube, place: &mut Vec<u8>) -> bool {
        if place.len() == cube.processes {
            return self.has(signature, cube, place);
        }
        (0..self.instance.processes as u8).any(|q| {
            if place.contains(&q) {
                return false;
            }
            place.push(q);
            let found = self.place(signature, cube, place);
            place.pop();
            found
        })
    }
    fn has(&self, signature: &Signature, cube: &Cube, place: &[u8]) -> bool {
        let mut left: Option<Vec<u64>> = None;
        let of_columns = |a: &&Atom| matches!(a, Atom::In(c, _) if c.view().is_none());
        for a in cube.atoms.iter().filter(of_columns) {
            let Atom::In(c, set) = a else { continue };
            let cell = self.instance.cell(c.map(|p| place[usize::from(p)]));
            let mut union = vec![0u64; self.words];
            for (v, column) in &self.columns[cell] {
                if self.instance.member(*v, *set, signature.sort(*c), place) {
                    for (u, w) in union.iter_mut().zip(column) {
                        *u |= w;
                    }
                }
            }
            match &mut left {
                None => left = Some(union),
                Some(l) => {
                    let mut any = 0;
                    for (x, y) in l.iter_mut().zip(&union) {
                        *x &= y;
                        any |= *x;
                    }
                    if any == 0 {
                        return false;
                    }
                }
            }
        }
        let mut rest = cube.atoms.iter().filter(|a| !of_columns(a)).peekable();
        if rest.peek().is_none() {
            return left.is_none_or(|l| l.iter().any(|w| *w != 0));
        }
        let rest = self.instance.prepare(rest, place);
        let all = |i: usize| left.as_ref().is_none_or(|l| l[i / 64] & (1 << (i % 64)) != 0);
        (0..self.states.len()).any(|i| all(i) && self.instance.satisfies(&self.states[i], &rest))
    }
}

/// The oracle: instances, and what was learnt.
pub struct Instances<'a> {
    rules: &'a Rules,
    banks: Vec<Bank<'a>>,
    refuted: Vec<Cube>,
    known: HashMap<Cube, bool>,
    most_atoms: usize,
}

impl<'a> Instances<'a> {
    /// Instances of 2 processes and more while they have at most `most` states; `stop` ends the exploration.
    pub fn new(rules: &'a Rules, largest: usize, most: usize, stop: &dyn Fn() -> bool) -> Instances<'a> {
        let mut banks = Vec::new();
        let least = rules.signature.fixed.max(2).min(rules.signature.most.unwrap_or(2));
        let assumed = assumptions(rules).unwrap_or_default();
        for processes in least..=largest.max(least) {
            if rules.signature.most.is_some_and(|m| processes > m) {
                break;
            }
            let instance = Instance::new(rules, processes);
            let judge = Bank { instance: Instance::new(rules, processes), states: Vec::new(), columns: Vec::new(), words: 0 };
            let forbidden = |s: &State| {
                assumed
                    .iter()
                    .any(|c| c.processes <= processes && satisfied(&judge.instance, s, c, &mut (0..rules.signature.fixed as u8).collect()))
            };
            let states = instance.reachable(most, &forbidden, stop);
            let full = states.len() >= most;
            banks.push(Bank::new(instance, states));
            if full || stop() {
                break;
            }
        }
        Instances { rules, banks, refuted: Vec::new(), known: HashMap::new(), most_atoms: 3 }
    }
    /// Remembers that the cube is reachable.
    pub fn refute(&mut self, cube: Cube) {
        self.refuted.push(cube);
        self.known.clear();
    }
    /// Whether nothing known contradicts that the cube is unreachable.
    fn plausible(&mut self, cube: &Cube) -> bool {
        if let Some(known) = self.known.get(cube) {
            return *known;
        }
        let signature = &self.rules.signature;
        let judged = self.banks.iter().any(|b| b.instance.processes >= cube.processes);
        let met = self.banks.iter().any(|b| b.instance.processes >= cube.processes && b.meets(signature, cube));
        let plausible = judged && !met && {
            let pattern = Pattern::new(signature, cube.clone());
            !self.refuted.iter().any(|r| Target::new(signature, r).is_covered_by(&pattern))
        };
        self.known.insert(cube.clone(), plausible);
        plausible
    }
}

fn satisfied(instance: &Instance<'_>, state: &State, cube: &Cube, place: &mut Vec<u8>) -> bool {
    if place.len() == cube.processes {
        return instance.satisfies(state, &instance.prepare(cube.atoms.iter(), place));
    }
    (0..instance.processes as u8).any(|q| {
        if place.contains(&q) {
            return false;
        }
        place.push(q);
        let found = satisfied(instance, state, cube, place);
        place.pop();
        found
    })
}

/// All subsets of `0..count` of the given size.
fn subsets(count: usize, size: usize) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new()];
    for _ in 0..size {
        found = found
            .into_iter()
            .flat_map(|s: Vec<usize>| {
                let from = s.last().map_or(0, |l| l + 1);
                (from..count).map(move |i| [s.as_slice(), &[i]].concat())
            })
            .collect();
    }
    found
}

impl Oracle for Instances<'_> {
    fn candidates(&mut self, cube: &Cube) -> Vec<Cube> {
        let signature = &self.rules.signature;
        // Atoms over more specific sets come apart: `x is not 1 and not 2` is two facts.
        let atoms = loosened(signature, cube);
        let count = atoms.len();
        for size in 1..=self.most_atoms.min(count) {
            if size == 3 && count > 24 {
                break;
            }
            let mut list: Vec<Cube> = Vec::new();
            for subset in subsets(count, size) {
                let chosen: Vec<Atom> = subset.iter().map(|i| atoms[*i].clone()).collect();
                if let Some(c) = Cube::new(signature, cube.processes, chosen)
                    && c != *cube
                    && !list.contains(&c)
                {
                    list.push(c);
                }
            }
            list.sort_by_key(|c| (c.processes, c.atoms.len()));
            let found: Vec<Cube> = list.into_iter().filter(|c| self.plausible(c)).take(1).collect();
            if !found.is_empty() {
                return found;
            }
        }
        // None of few atoms: leave out what can be.
        let mut kept: Vec<Atom> = cube.atoms.clone();
        let whole = Cube { processes: cube.processes, atoms: kept.clone() };
        if !self.plausible(&whole) {
            return Vec::new();
        }
        let mut at = 0;
        let mut best = None;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.remove(at);
            match Cube::new(&self.rules.signature, cube.processes, fewer.clone()) {
                Some(c) if self.plausible(&c) => {
                    best = Some(c);
                    kept = fewer;
                }
                _ => at += 1,
            }
        }
        best.into_iter().collect()
    }
}

/// The comparisons that a comparison of numbers implies and that are easier to keep: `a = b` implies `a <= b` and `a >= b`, `a < b` implies `a <= b`.
fn halves(signature: &Signature, sum: &Linear) -> Vec<Atom> {
    let integer = sum.terms.iter().all(|t| signature.sort(t.0) == Sort::Integer);
    let half = |sign: i64| {
        let terms = sum.terms.iter().map(|t| Some((t.0, t.1.checked_mul(sign)?))).collect::<Option<Vec<_>>>()?;
        match Linear::new(terms, sum.constant.checked_mul(sign)?, Relation::Le, integer) {
            Ok(Literal::Atom(a)) => Some(a),
            _ => None,
        }
    };
    let signs: &[i64] = match sum.relation {
        Relation::Eq => &[1, -1],
        Relation::Lt => &[1],
        Relation::Le | Relation::Ne => &[],
    };
    signs.iter().filter_map(|s| half(*s)).collect()
}

/// The atoms, with sets of finite domains that exclude values also as one atom for each excluded value, and comparisons of numbers that are easier to
/// keep before those that they follow from.
fn loosened(signature: &Signature, cube: &Cube) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for a in &cube.atoms {
        if let Atom::Linear(l) = a {
            atoms.extend(halves(signature, l));
        }
        atoms.push(a.clone());
    }
    for a in &cube.atoms {
        let Atom::In(c, set) = a else { continue };
        if c.view().is_some() {
            continue;
        }
        let all = signature.all(signature.sort(*c), cube.processes);
        let out = all & !set;
        let split = match signature.sort(*c) {
            Sort::Finite(_) => out.count_ones() > 1 && set.count_ones() > 1,
            _ => set & OTHER != 0 && out.count_ones() > 1,
        };
        if split {
            let mut rest = out;
            while rest != 0 {
                let bit = rest & rest.wrapping_neg();
                rest &= !bit;
                atoms.push(Atom::In(*c, all & !bit));
            }
        }
    }
    atoms
}
