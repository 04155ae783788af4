//! Oracle of approximations: proposes cubes that contain no reachable state of small instances
//! ("Invariants for finite instances and beyond", Conchon, Goel, Krstić, Mebsout, Zaïdi, 2013).
//! Given a cube, conjunctions of few of its atoms are tried, the smallest first. One that the
//! instances do not contradict is proposed as the larger cube to exclude. Optionally, atoms that
//! follow from several atoms of the cube are tried as well, and, if no conjunction is plausible,
//! one for each order of two numbers. A proposal that a trace refutes is stored, and all cubes that
//! cover it are rejected; the trace is also executed on an instance, so that its states refute
//! other proposals before these cost a search.

use crate::atom::Atom;
use crate::bank::Bank;
use crate::cube::{Cube, Mix};
use crate::derive::{comparisons, consequences, numbers, weaker_atoms};
use crate::initial::assumptions;
use crate::names::{NamedPath, steps};
use crate::parallel::{self, Portions, Threads};
use crate::rules::Rules;
use crate::search::{CubeNode, Oracle};
use crate::subsume::{CubePattern, MatchedCube};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Instances of up to this number of processes are always explored, independently of the size of
/// smaller ones.
const ALWAYS: usize = 3;
/// With fewer states, queries are not distributed over threads.
const MANY_STATES: usize = 20_000;
/// Number of cubes that one thread tests first, because often one of them is plausible.
const TESTED_FIRST: usize = 8;
/// Number of cubes per portion of a thread.
const PART_OF_CUBES: usize = 4;
/// Limit on the number of atoms of which conjunctions of three are tried.
const MAX_ATOMS_FOR_TRIPLES: usize = 24;
/// Largest number of processes of an instance on which a trace is executed.
const MAX_PROCESSES: usize = 5;

/// The oracle: instances, and refuted cubes.
pub struct Instances<'a> {
    rules: &'a Rules,
    assumed: Vec<Cube>,
    banks: Vec<Bank<'a>>,
    refuted: Vec<Cube>,
    known: HashMap<Cube, bool, BuildHasherDefault<Mix>>,
    spent: u64,
    threads: Threads,
    portions: Portions,
    most_atoms: usize,
    /// True if derived atoms are tried as well, and several cubes that replace one.
    pub combines: bool,
}

impl<'a> Instances<'a> {
    /// Creates an oracle without states; the threads share queries over many states.
    pub fn new(rules: &'a Rules, threads: Threads) -> Instances<'a> {
        let assumed = assumptions(rules).unwrap_or_default();
        Instances {
            rules,
            assumed,
            banks: Vec::new(),
            refuted: Vec::new(),
            known: HashMap::default(),
            spent: 0,
            threads,
            portions: Portions::new(threads),
            most_atoms: 3,
            combines: false,
        }
    }
    fn bank(&mut self, processes: usize) -> &mut Bank<'a> {
        let at = self
            .banks
            .iter()
            .position(|b| b.instance.processes >= processes)
            .unwrap_or(self.banks.len());
        if self.banks.get(at).is_none_or(|b| b.instance.processes != processes) {
            self.banks.insert(at, Bank::new(self.rules, processes, &self.assumed));
        }
        &mut self.banks[at]
    }
    /// Explores instances of 2 and more processes, up to `most` states each: always those of 2 and
    /// 3, larger ones as long as all smaller ones are complete. `stop` ends it.
    pub fn grow(&mut self, largest: usize, most: usize, stop: &dyn Fn() -> bool) {
        let least = self.rules.signature.fixed.max(2).min(self.rules.signature.most.unwrap_or(2));
        let threads = self.threads.count;
        for processes in least..=largest.max(least) {
            if self.rules.signature.most.is_some_and(|m| processes > m) {
                break;
            }
            let all = self.bank(processes).explore(most, threads, stop);
            if stop() || (!all && processes >= ALWAYS.min(largest)) {
                break;
            }
        }
        self.known.clear();
    }
    /// Records that the cube is reachable by the rest of the path, and executes the path to find
    /// more states.
    pub fn refute(&mut self, cube: Cube, rest: &[CubeNode]) {
        if let Some(last) = rest.last() {
            let NamedPath { steps, processes, .. } = steps(self.rules, rest);
            let least = self.banks.first().map_or(2, |b| b.instance.processes);
            if processes <= MAX_PROCESSES {
                let rules = self.rules;
                self.bank(processes.max(least)).follow(rules, &last.cube, &steps);
            }
        }
        self.refuted.push(cube);
        self.known.clear();
    }
    /// True if the cube was refuted.
    pub fn has_refuted(&self, cube: &Cube) -> bool {
        self.refuted.contains(cube)
    }
    /// Returns whether no known state contradicts the cube, and the cost of the query.
    fn plausibility(&self, cube: &Cube) -> (bool, u64) {
        let signature = &self.rules.signature;
        let mut spent = 0;
        let judges = |b: &&Bank<'_>| b.instance.processes >= cube.processes;
        let judged = self.banks.iter().any(|b| b.explored && judges(&b));
        let contains_state =
            self.banks.iter().filter(judges).any(|b| b.meets(signature, cube, &mut spent));
        let plausible = judged && !contains_state && {
            let pattern = CubePattern::new(signature, cube.clone());
            !self.refuted.iter().any(|r| MatchedCube::new(signature, r).is_covered_by(&pattern))
        };
        (plausible, spent)
    }
    /// True if no known state contradicts the cube.
    pub fn is_plausible(&mut self, cube: &Cube) -> bool {
        self.plausible(cube)
    }
    fn plausible(&mut self, cube: &Cube) -> bool {
        if let Some(known) = self.known.get(cube) {
            return *known;
        }
        let (plausible, spent) = self.plausibility(cube);
        self.spent += spent;
        self.known.insert(cube.clone(), plausible);
        plausible
    }
    /// Returns the first plausible cube.
    fn first(&mut self, cubes: Vec<Cube>) -> Option<Cube> {
        let many = cubes.len() > TESTED_FIRST
            && self.banks.iter().map(Bank::len).sum::<usize>() >= MANY_STATES;
        let shared = many && parallel::thread_count(self.threads.count) > 1;
        if !shared {
            return cubes.into_iter().find(|c| self.plausible(c));
        }
        let (first, rest) = cubes.split_at(TESTED_FIRST);
        if let Some(found) = first.iter().find(|c| self.plausible(c)) {
            return Some(found.clone());
        }
        let known = |cube: &Cube, query_result: &Option<(bool, u64)>| {
            query_result.map_or_else(|| self.known[cube], |t| t.0)
        };
        let query =
            |i: usize| (!self.known.contains_key(&rest[i])).then(|| self.plausibility(&rest[i]));
        // Up to the first plausible one: the costs of queries that one thread would not make are
        // dropped.
        let query_result =
            self.portions.map_until(rest.len(), PART_OF_CUBES, query, |i, query_result| {
                known(&rest[i], query_result)
            });
        let found = query_result
            .last()
            .is_some_and(|last| known(&rest[query_result.len() - 1], last))
            .then(|| rest[query_result.len() - 1].clone());
        for (cube, query_result) in rest.iter().zip(query_result) {
            if let Some((plausible, spent)) = query_result
                && self.known.insert(cube.clone(), plausible).is_none()
            {
                self.spent += spent;
            }
        }
        found
    }
}

impl Instances<'_> {
    /// Returns a plausible conjunction of few atoms that follow from the cube; if `itself`, it may
    /// be the cube.
    fn small(&mut self, cube: &Cube, itself: bool) -> Option<Cube> {
        let signature = &self.rules.signature;
        // Decompose atoms over sets: `x is not 1 and not 2` is two facts.
        let mut atoms = weaker_atoms(signature, cube);
        let own = atoms.len();
        if self.combines {
            atoms.extend(
                consequences(signature, &cube.atoms)
                    .into_iter()
                    .filter(|a| !cube.atoms.contains(a)),
            );
        }
        for size in 1..=self.most_atoms.min(atoms.len()) {
            if size == 3 && own > MAX_ATOMS_FOR_TRIPLES {
                break;
            }
            let count =
                if size == 3 { atoms.len().min(MAX_ATOMS_FOR_TRIPLES) } else { atoms.len() };
            let mut list: Vec<Cube> = Vec::new();
            for subset in subsets(count, size) {
                let chosen: Vec<Atom> = subset.iter().map(|i| atoms[*i].clone()).collect();
                if let Some(c) = Cube::new(signature, cube.processes, chosen)
                    && (itself || c != *cube)
                    && !list.contains(&c)
                {
                    list.push(c);
                }
            }
            list.sort_by_key(|c| (c.processes, c.atoms.len()));
            if let Some(found) = self.first(list) {
                return Some(found);
            }
        }
        None
    }
    /// Returns plausible conjunctions of few atoms that together cover the cube: one for each order
    /// of two numbers.
    fn split(&mut self, cube: &Cube) -> Option<Vec<Cube>> {
        let signature = &self.rules.signature;
        for (left, right) in numbers(signature, cube) {
            let mut parts = Vec::new();
            let cases = comparisons(signature, left, right).into_iter();
            let mut cases = cases.filter_map(|a| {
                Cube::new(signature, cube.processes, [&cube.atoms[..], &[a]].concat())
            });
            let all = cases.by_ref().all(|case| {
                let found = self.small(&case, true);
                let some = found.is_some();
                parts.extend(found.filter(|c| !parts.contains(c)));
                some
            });
            if all && !parts.is_empty() {
                return Some(parts);
            }
        }
        None
    }
}

/// Returns all subsets of `0..count` of the given size.
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
    fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.spent)
    }
    fn instead(&mut self, cube: &Cube) -> Vec<Cube> {
        if let Some(found) = self.small(cube, false) {
            return vec![found];
        }
        if self.combines
            && let Some(parts) = self.split(cube)
        {
            return parts;
        }
        // No small conjunction: drop as many atoms as possible.
        let mut retained: Vec<Atom> = cube.atoms.clone();
        let whole = Cube { processes: cube.processes, atoms: retained.clone() };
        if !self.plausible(&whole) {
            return Vec::new();
        }
        let mut at = 0;
        let mut best = None;
        while at < retained.len() {
            let mut fewer = retained.clone();
            fewer.remove(at);
            match Cube::new(&self.rules.signature, cube.processes, fewer.clone()) {
                Some(c) if self.plausible(&c) => {
                    best = Some(c);
                    retained = fewer;
                }
                _ => at += 1,
            }
        }
        best.into_iter().collect()
    }
}
