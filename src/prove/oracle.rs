//! Which cubes might be unreachable: those that no reachable state of a small instance is in ("Invariants for finite instances and beyond", Conchon, Goel,
//! Krstić, Mebsout, Zaïdi, 2013). From a cube, conjunctions of few of its atoms are tried, the fewest first; one that the instances do not
//! contradict is proposed as the larger cube to exclude. A proposal that a trace refutes is remembered, and all that cover it are refused; and the trace is done on an
//! instance, so that the states on it refute other proposals before they cost a search.

use crate::atom::{Atom, Linear, Literal, OTHER, Signature, Sort};
use crate::bank::Bank;
use crate::cube::Cube;
use crate::replay::steps;
use crate::rules::Rules;
use crate::search::{Node, Oracle};
use crate::share;
use crate::simplex::Relation;
use crate::start::assumptions;
use crate::subsume::{Pattern, Target};
use std::collections::HashMap;

/// Instances of so many processes are explored however many states smaller ones have.
const ALWAYS: usize = 3;
/// Fewer states are not shared among threads.
const MANY_STATES: usize = 20_000;
/// So many cubes are asked by one thread first: often one of them is plausible.
const ASKED_FIRST: usize = 8;
/// Most processes of an instance in which a run is done again.
const MOST_PROCESSES: usize = 5;

/// The oracle: instances, and what was learnt.
pub struct Instances<'a> {
    rules: &'a Rules,
    assumed: Vec<Cube>,
    banks: Vec<Bank<'a>>,
    refuted: Vec<Cube>,
    known: HashMap<Cube, bool>,
    spent: u64,
    threads: usize,
    most_atoms: usize,
}

impl<'a> Instances<'a> {
    /// Knows nothing yet; so many threads share what is asked of many states.
    pub fn new(rules: &'a Rules, threads: usize) -> Instances<'a> {
        let assumed = assumptions(rules).unwrap_or_default();
        Instances { rules, assumed, banks: Vec::new(), refuted: Vec::new(), known: HashMap::new(), spent: 0, threads, most_atoms: 3 }
    }
    fn bank(&mut self, processes: usize) -> &mut Bank<'a> {
        let at = self.banks.iter().position(|b| b.instance.processes >= processes).unwrap_or(self.banks.len());
        if self.banks.get(at).is_none_or(|b| b.instance.processes != processes) {
            self.banks.insert(at, Bank::new(self.rules, processes, &self.assumed));
        }
        &mut self.banks[at]
    }
    /// Explores instances of 2 processes and more, to `most` states each: 2 and 3 in any case, others while those before are explored to their end. `stop` ends
    /// it.
    pub fn grow(&mut self, largest: usize, most: usize, stop: &dyn Fn() -> bool) {
        let least = self.rules.signature.fixed.max(2).min(self.rules.signature.most.unwrap_or(2));
        for processes in least..=largest.max(least) {
            if self.rules.signature.most.is_some_and(|m| processes > m) {
                break;
            }
            let all = self.bank(processes).explore(most, stop);
            if stop() || (!all && processes >= ALWAYS.min(largest)) {
                break;
            }
        }
        self.known.clear();
    }
    /// Remembers that the cube is reachable, by the rest of the path, whose run it does to learn of more states.
    pub fn refute(&mut self, cube: Cube, rest: &[Node]) {
        if let Some(last) = rest.last() {
            let (steps, processes) = steps(self.rules, rest);
            let least = self.banks.first().map_or(2, |b| b.instance.processes);
            if processes <= MOST_PROCESSES {
                let rules = self.rules;
                self.bank(processes.max(least)).follow(rules, &last.cube, &steps);
            }
        }
        self.refuted.push(cube);
        self.known.clear();
    }
    /// Whether the cube was refuted.
    pub fn has_refuted(&self, cube: &Cube) -> bool {
        self.refuted.contains(cube)
    }
    /// Whether nothing known contradicts that the cube is unreachable, and what it took to find out.
    fn asked(&self, cube: &Cube) -> (bool, u64) {
        let signature = &self.rules.signature;
        let mut spent = 0;
        let judges = |b: &&Bank<'_>| b.instance.processes >= cube.processes;
        let judged = self.banks.iter().any(|b| b.explored && judges(&b));
        let met = self.banks.iter().filter(judges).any(|b| b.meets(signature, cube, &mut spent));
        let plausible = judged && !met && {
            let pattern = Pattern::new(signature, cube.clone());
            !self.refuted.iter().any(|r| Target::new(signature, r).is_covered_by(&pattern))
        };
        (plausible, spent)
    }
    /// Whether nothing known contradicts that the cube is unreachable.
    pub fn is_plausible(&mut self, cube: &Cube) -> bool {
        self.plausible(cube)
    }
    fn plausible(&mut self, cube: &Cube) -> bool {
        if let Some(known) = self.known.get(cube) {
            return *known;
        }
        let (plausible, spent) = self.asked(cube);
        self.spent += spent;
        self.known.insert(cube.clone(), plausible);
        plausible
    }
    /// The first plausible one.
    fn first(&mut self, cubes: Vec<Cube>) -> Option<Cube> {
        let many = cubes.len() > ASKED_FIRST && self.banks.iter().map(Bank::len).sum::<usize>() >= MANY_STATES;
        let shared = many && share::resolved(self.threads) > 1;
        if !shared {
            return cubes.into_iter().find(|c| self.plausible(c));
        }
        let mut at = cubes.len().min(ASKED_FIRST);
        if let Some(found) = cubes[..at].iter().find(|c| self.plausible(c)) {
            return Some(found.clone());
        }
        let part = 8 * share::resolved(self.threads);
        while at < cubes.len() {
            let here = &cubes[at..cubes.len().min(at + part)];
            let told = share::map(self.threads, here.len(), 2, |i| (!self.known.contains_key(&here[i])).then(|| self.asked(&here[i])));
            for (cube, told) in here.iter().zip(told) {
                // What one thread would not have asked is not remembered: nothing may depend on the number of threads.
                if let Some((plausible, spent)) = told
                    && !self.known.contains_key(cube)
                {
                    self.spent += spent;
                    self.known.insert(cube.clone(), plausible);
                }
                if self.known[cube] {
                    return Some(cube.clone());
                }
            }
            at += part;
        }
        None
    }
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
    fn spent(&mut self) -> u64 {
        std::mem::take(&mut self.spent)
    }
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
            if let Some(found) = self.first(list) {
                return vec![found];
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
