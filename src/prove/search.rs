//! The search: backward from the unsafe cubes, nearest first, with approximations.
//!
//! ```text
//! waiting := unsafe cubes
//! while a cube is waiting:                       fewest processes first, then fewest atoms
//!     covered by others, alone or together?      delete it
//!     delete what it covers
//!     for each rule and binding, each pre-image:
//!         covered by one cube?                   leave it out
//!         meets init?                            a trace; if a cube on it was approximated, learn and start again
//!         approximate it, if the oracle lets     the larger cube takes its place (BRAB: Conchon, Goel, Krstić, Mebsout, Zaïdi, 2013)
//! ```
//!
//! Most cubes that are found are never expanded, so what is dear is asked of a cube when its turn comes.
//!
//! All cubes that were not deleted, at the end, are the complement of an inductive invariant: each covers its pre-images or they are in other
//! cubes. The invariants of the file are cubes that count as covered and are not expanded.

use crate::cube::Cube;
use crate::image::{Binding, Trouble, bindings, pre_image};
use crate::rules::Rules;
use crate::share;
use crate::start::{assumptions, claims, initial};
use crate::subsume::{Index, MANY_PATTERNS, Pattern, Target};
use mu_base::limits::{Budget, Stop};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most atoms that an instance of a cube may ask beyond a cube that it helps to cover.
const MOST_OPEN: usize = 2;

/// How many assignments of a match count as much as looking at a binding.
const STEPS_OF_WORK: u64 = 100;
/// So many assignments take some milliseconds.
const MANY_STEPS: u64 = 100_000;

/// How a cube came about.
#[derive(Clone, Debug)]
pub struct Node {
    /// The cube.
    pub cube: Cube,
    /// The cube that a step leads to; `None` for unsafe ones.
    pub parent: Option<usize>,
    /// The rule of the step.
    pub rule: usize,
    /// Its parameters, in the names of the parent and beyond.
    pub binding: Binding,
    /// The new name of each of these.
    pub names: Vec<u8>,
    /// Whether it is larger than the pre-image that it stands for.
    pub approximate: bool,
}

/// Says which cubes might be invariants.
pub trait Oracle {
    /// Larger cubes to try in place of the cube, the best first.
    fn candidates(&mut self, cube: &Cube) -> Vec<Cube>;
    /// What it took since it was asked last, in units of an assignment of a match.
    fn spent(&mut self) -> u64 {
        0
    }
}

/// Never approximates.
pub struct Exact;

impl Oracle for Exact {
    fn candidates(&mut self, _: &Cube) -> Vec<Cube> {
        Vec::new()
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cubes kept or deleted again.
    pub nodes: usize,
    /// Cubes that were expanded.
    pub expanded: usize,
    /// Pre-images made.
    pub images: usize,
    /// Pre-images covered already.
    pub covered: usize,
    /// Cubes deleted.
    pub deleted: usize,
    /// Approximations made.
    pub approximations: usize,
}

/// How a search ends.
#[derive(Clone, Debug)]
pub enum End {
    /// The cubes that no initial state is in and no step leads into from outside.
    Fixpoint(Vec<Cube>),
    /// The last node meets the initial states.
    Reached(Vec<Node>),
    /// A limit.
    Stopped(Stop),
    /// Something that cannot be represented.
    Trouble(Trouble),
}

/// A pre-image with its names, and whether it is covered by what was there before; what it took to find out.
struct Judged {
    cube: Cube,
    names: Vec<u8>,
    covered: bool,
    spent: u64,
}

/// One search.
pub struct Search<'a> {
    rules: &'a Rules,
    budget: &'a Budget,
    nodes: Vec<Node>,
    index: Index,
    waiting: BinaryHeap<Reverse<(usize, usize, usize)>>,
    /// The first positions in the index are assumptions and lemmas; then come the nodes.
    assumptions: usize,
    /// Cubes that count as covered and are part of the result: runs do not enter them before they meet what is unsafe.
    pub lemmas: Vec<Cube>,
    /// What was counted.
    pub counts: Counts,
    /// How many more bindings and cubes may be looked at.
    pub work: u64,
    /// How many threads share what is asked of many cubes (0: one a core); what is found does not depend on it.
    pub threads: usize,
    ticks: u32,
    most: usize,
    begun: bool,
}

impl<'a> Search<'a> {
    /// A search that has not begun.
    pub fn new(rules: &'a Rules, budget: &'a Budget) -> Search<'a> {
        Search {
            rules,
            budget,
            nodes: Vec::new(),
            index: Index::default(),
            waiting: BinaryHeap::new(),
            assumptions: 0,
            lemmas: Vec::new(),
            counts: Counts::default(),
            work: u64::MAX,
            threads: 1,
            ticks: 0,
            most: usize::MAX,
            begun: false,
        }
    }
    /// Runs it, or goes on with it, to at most so many cubes.
    pub fn run(&mut self, oracle: &mut dyn Oracle, most: usize) -> End {
        self.most = most;
        match self.go(oracle) {
            Ok(end) => end,
            Err(Failure::Stopped(s)) => End::Stopped(s),
            Err(Failure::Trouble(t)) => End::Trouble(t),
        }
    }
    fn go(&mut self, oracle: &mut dyn Oracle) -> Result<End, Failure> {
        if !self.begun {
            self.begun = true;
            if let Some(end) = self.begin()? {
                return Ok(end);
            }
        }
        while let Some(Reverse(turn)) = self.waiting.pop() {
            let node = turn.2;
            let Some(cube) = self.alive(node) else { continue };
            if self.nodes.len() > self.most {
                self.waiting.push(Reverse(turn));
                return Ok(End::Stopped(Stop::States));
            }
            match self.expand(node, &cube, oracle) {
                Ok(Some(end)) => return Ok(end),
                Ok(None) => {}
                Err(failure) => {
                    // The search may go on later: the cube is expanded anew then, and covers what it gave before.
                    self.waiting.push(Reverse(turn));
                    return Err(failure);
                }
            }
        }
        let own = self.index.patterns().filter(|(i, _)| *i >= self.assumptions).map(|(_, p)| p.cube.clone());
        Ok(End::Fixpoint(own.chain(self.lemmas.iter().cloned()).collect()))
    }
    /// Offers all pre-images of the node.
    fn expand(&mut self, node: usize, cube: &Cube, oracle: &mut dyn Oracle) -> Result<Option<End>, Failure> {
        self.index.settle();
        if self.is_superseded(node, cube)? {
            return Ok(None);
        }
        self.counts.expanded += 1;
        let rules = self.rules;
        let mut steps: Vec<(usize, Binding, usize)> = Vec::new();
        for (at, rule) in rules.rules.iter().enumerate() {
            steps.extend(bindings(rule.params, cube.processes, rules.signature.most)?.into_iter().map(|(b, n)| (at, b, n)));
        }
        let shared = self.index.len() >= MANY_PATTERNS && share::resolved(self.threads) > 1;
        let mut told = shared
            .then(|| share::map(self.threads, steps.len(), 1, |i| self.budget.check(0).is_ok().then(|| self.judged(cube, &steps[i]))))
            .into_iter()
            .flatten();
        for step in steps {
            self.tick()?;
            let images = told.next().flatten().unwrap_or_else(|| self.judged(cube, &step))?;
            let (rule, binding, _) = step;
            for image in images {
                self.counts.images += 1;
                let new =
                    Node { cube: image.cube, parent: Some(node), rule, binding: binding.clone(), names: image.names, approximate: false };
                if let Some(end) = self.offer(new, (image.covered, image.spent), oracle)? {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }
    /// The pre-images of a step, each with whether a cube that was there before the expansion covers it.
    fn judged(&self, cube: &Cube, (rule, binding, processes): &(usize, Binding, usize)) -> Result<Vec<Judged>, Trouble> {
        let mut images = Vec::new();
        pre_image(self.rules, cube, &self.rules.rules[*rule], binding, *processes, &mut images)?;
        let judge = |(cube, names)| {
            let (covered, spent) = self.is_covered(&cube);
            Judged { cube, names, covered, spent }
        };
        Ok(images.into_iter().map(judge).collect())
    }
    fn is_covered(&self, cube: &Cube) -> (bool, u64) {
        let mut target = Target::new(&self.rules.signature, cube);
        let covered = self.index.cover(&mut target, None).is_some();
        (covered, target.spent)
    }
    /// Takes in what is assumed and what is unsafe.
    fn begin(&mut self) -> Result<Option<End>, Failure> {
        for cube in assumptions(self.rules)? {
            self.index.push(Pattern::new(&self.rules.signature, cube));
            self.assumptions += 1;
        }
        for cube in &self.lemmas {
            self.index.push(Pattern::new(&self.rules.signature, cube.clone()));
            self.assumptions += 1;
        }
        for cube in claims(self.rules, &self.rules.unsafes)? {
            let node = Node { cube, parent: None, rule: 0, binding: Vec::new(), names: Vec::new(), approximate: false };
            self.index.settle();
            let judged = self.is_covered(&node.cube);
            if let Some(end) = self.offer(node, judged, &mut Exact)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
    fn alive(&self, node: usize) -> Option<Cube> {
        self.index.pattern(self.assumptions + node).map(|p| p.cube.clone())
    }
    fn tick(&mut self) -> Result<(), Failure> {
        self.ticks += 1;
        self.work_off(1)?;
        if self.ticks.is_multiple_of(64) {
            self.budget.check(self.nodes.len() as u64).map_err(Failure::Stopped)?;
        }
        if self.ticks.is_multiple_of(8192) {
            self.budget.check_memory().map_err(Failure::Stopped)?;
        }
        Ok(())
    }
    /// Takes a node in, unless it is covered: by a cube that was there before, which was asked already and took so many steps, or by a newer one.
    fn offer(&mut self, mut node: Node, (covered, spent): (bool, u64), oracle: &mut dyn Oracle) -> Result<Option<End>, Failure> {
        let signature = &self.rules.signature;
        self.tick()?;
        self.spend(spent)?;
        if covered || self.index.cover_new(&mut Target::new(signature, &node.cube)).is_some() {
            self.counts.covered += 1;
            return Ok(None);
        }
        if initial(self.rules, &node.cube)?.is_some() {
            return Ok(Some(self.reached(node)));
        }
        for candidate in oracle.candidates(&node.cube) {
            if initial(self.rules, &candidate)?.is_none() {
                node.cube = candidate;
                node.approximate = true;
                self.counts.approximations += 1;
                break;
            }
        }
        self.spend(oracle.spent())?;
        let signature = &self.rules.signature;
        let pattern = Pattern::new(signature, node.cube.clone());
        let number = self.nodes.len();
        self.waiting.push(Reverse((node.cube.processes, node.cube.atoms.len(), number)));
        self.index.push(pattern);
        self.nodes.push(node);
        self.counts.nodes += 1;
        Ok(None)
    }
    /// Whether other cubes cover that of the node, whose turn it is; then it is deleted, else what it covers is.
    fn is_superseded(&mut self, node: usize, cube: &Cube) -> Result<bool, Failure> {
        let own = Some(self.assumptions + node);
        let mut target = Target::new(&self.rules.signature, cube);
        let covered = self.index.cover(&mut target, own).is_some()
            || self.index.covered(&self.rules.signature, &mut target, own, MOST_OPEN, self.threads);
        let mut spent = target.spent;
        self.spend(spent)?;
        if covered {
            self.index.remove(self.assumptions + node);
            self.counts.covered += 1;
            return Ok(true);
        }
        spent = 0;
        for i in self.index.covered_by(&self.rules.signature, &Pattern::new(&self.rules.signature, cube.clone()), &mut spent) {
            if i >= self.assumptions && Some(i) != own {
                self.index.remove(i);
                self.counts.deleted += 1;
            }
        }
        self.spend(spent)?;
        Ok(false)
    }
    fn work_off(&mut self, work: u64) -> Result<(), Failure> {
        let enough = work <= self.work;
        self.work = self.work.saturating_sub(work);
        if enough { Ok(()) } else { Err(Failure::Stopped(Stop::States)) }
    }
    /// Counts what it took to match cubes; also a place to look at the limits, since one match may take long.
    fn spend(&mut self, steps: u64) -> Result<(), Failure> {
        self.work_off(steps / STEPS_OF_WORK)?;
        if steps > MANY_STEPS {
            self.budget.check(self.nodes.len() as u64).map_err(Failure::Stopped)?;
        }
        Ok(())
    }
    fn reached(&mut self, node: Node) -> End {
        let mut path = Vec::new();
        let mut next = node.parent;
        while let Some(i) = next {
            path.push(self.nodes[i].clone());
            next = self.nodes[i].parent;
        }
        path.reverse();
        path.push(node);
        End::Reached(path)
    }
}

enum Failure {
    Stopped(Stop),
    Trouble(Trouble),
}

impl From<Trouble> for Failure {
    fn from(t: Trouble) -> Failure {
        Failure::Trouble(t)
    }
}
