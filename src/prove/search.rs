//! Backward reachability from the unsafe cubes, smallest cubes first, with approximations.
//!
//! ```text
//! waiting := unsafe cubes
//! while a cube is waiting:                       fewest processes first, then fewest atoms
//!     covered by others, alone or together?      delete it
//!     delete the cubes that it covers
//!     for each rule and binding, each pre-image:
//!         covered by one cube?                   drop it
//!         intersects init?                       a trace; after an approximation, restart
//!         approximate it if the oracle agrees    the larger cube replaces it
//! ```
//!
//! The approximation is that of BRAB (Conchon, Goel, Krstić, Mebsout, Zaïdi, 2013).
//!
//! Most cubes are never expanded, so expensive checks of a cube are delayed until its expansion.
//! They are computed for several cubes at the same time, by several threads, against the cubes that
//! existed before any of them. Then the cubes are processed one after the other, considering also
//! the cubes added since. A cube that was covered is checked again if another was deleted
//! meanwhile, because two may cover each other. So neither verdict nor certificate depends on the
//! number of threads.
//!
//! At the end, the remaining cubes are the complement of an inductive invariant: the cubes cover
//! their pre-images. The invariants of the file are cubes that count as covered and are not
//! expanded.

use crate::cube::Cube;
use crate::image::{Binding, Trouble, for_each_binding, pre_image};
use crate::initial::{assumptions, claims, initial};
use crate::parallel::{Portions, Threads};
use crate::rules::Rules;
use crate::subsume::{CubePattern, Index, MatchedCube};
use mu_base::limits::{Budget, Stop};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow::{Break, Continue};

/// Reason why an expansion ends before its last binding.
enum Ends {
    /// A limit.
    Stopped,
    /// A pre-image cannot be represented.
    Failed,
}

/// Numbers of cubes from which several are processed together, and of cubes per batch.
pub const MANY_CUBES: usize = 48;
const BATCH: usize = 8;

/// Largest number of atoms of a cube's instance that may not follow when cubes together cover
/// another one.
pub const MAX_OPEN: usize = 2;

/// Number of assignments of a match that count as one binding.
pub const STEPS_OF_WORK: u64 = 100;
/// Number of assignments between two checks of the limits; some milliseconds.
const MANY_STEPS: u64 = 100_000;

/// A cube with its origin.
#[derive(Clone, Debug)]
pub struct CubeNode {
    /// The cube.
    pub cube: Cube,
    /// The cube to which the step leads; `None` for unsafe ones.
    pub parent: Option<usize>,
    /// The rule of the step.
    pub rule: usize,
    /// Its parameters, in the names of the parent and new ones.
    pub binding: Binding,
    /// The new name of each of these.
    pub names: Vec<u8>,
    /// True if it is larger than the pre-image that it replaces.
    pub approximate: bool,
}

/// Proposes candidate invariants.
pub trait Oracle {
    /// Returns cubes that together cover the cube and may replace it; empty if there are none.
    fn instead(&mut self, cube: &Cube) -> Vec<Cube>;
    /// Returns the cost since the last call, in units of an assignment of a match.
    fn take_cost(&mut self) -> u64 {
        0
    }
}

/// Oracle that proposes nothing, so that the search never approximates.
pub struct Exact;

impl Oracle for Exact {
    fn instead(&mut self, _: &Cube) -> Vec<Cube> {
        Vec::new()
    }
}

/// Statistics of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchStatistics {
    /// Number of cubes, including deleted ones.
    pub nodes: usize,
    /// Number of expanded cubes.
    pub expanded: usize,
    /// Number of pre-images.
    pub images: usize,
    /// Number of pre-images that were covered.
    pub covered: usize,
    /// Number of deleted cubes.
    pub deleted: usize,
    /// Number of approximations.
    pub approximations: usize,
}

/// The end of a search.
#[derive(Clone, Debug)]
pub enum SearchEnd {
    /// The cubes that contain no initial state and that no step enters from outside.
    Fixpoint(Vec<Cube>),
    /// The last node intersects the initial states.
    Reached(Vec<CubeNode>),
    /// A limit.
    Stopped(Stop),
    /// A cube is not representable.
    Trouble(Trouble),
}

/// A pre-image with its names, whether an earlier cube covers it, and the cost of that check.
struct CheckedImage {
    cube: Cube,
    names: Vec<u8>,
    covered: bool,
    spent: u64,
}

/// A waiting cube, ordered by number of processes, number of atoms, and index of its node.
struct WaitingCube {
    rank: (usize, usize, usize),
    cube: Cube,
}

/// The precomputed data of a cube before its expansion: whether others cover it, the cost of that
/// check, the cubes that it covers, and its steps.
struct ExpansionData {
    superseded: bool,
    spent: u64,
    covers: Vec<usize>,
    steps: Vec<RuleStep>,
}

/// The pre-images of a cube by a rule with bound parameters.
struct RuleStep {
    rule: usize,
    binding: Binding,
    images: Result<Vec<CheckedImage>, Trouble>,
}

/// One search.
pub struct BackwardSearch<'a> {
    rules: &'a Rules,
    budget: &'a Budget,
    nodes: Vec<CubeNode>,
    index: Index,
    waiting: BinaryHeap<Reverse<(usize, usize, usize)>>,
    /// Number of assumptions and lemmas, which come first in the index, before the nodes.
    assumptions: usize,
    /// Cubes that count as covered and are part of the result: runs do not enter them before an
    /// unsafe state.
    pub lemmas: Vec<Cube>,
    /// Statistics.
    pub counts: SearchStatistics,
    /// Number of bindings and cubes that may still be inspected.
    pub work: u64,
    /// Number of cubes removed since the batch was computed.
    removed: usize,
    portions: Portions,
    /// Number of checks of the limits, which are made rarely.
    ticks: u32,
    /// Limit on the cubes of this run; beyond it the search ends, and can be continued.
    max_cubes: usize,
    /// True after the unsafe cubes have been added.
    has_begun: bool,
    /// The cube with an unrepresentable pre-image.
    pub stuck: Option<Cube>,
}

impl<'a> BackwardSearch<'a> {
    /// Creates a search. Its result does not depend on the threads.
    pub fn new(rules: &'a Rules, budget: &'a Budget, threads: Threads) -> BackwardSearch<'a> {
        BackwardSearch {
            rules,
            budget,
            nodes: Vec::new(),
            index: Index::default(),
            waiting: BinaryHeap::new(),
            assumptions: 0,
            lemmas: Vec::new(),
            counts: SearchStatistics::default(),
            work: u64::MAX,
            removed: 0,
            portions: Portions::new(threads),
            ticks: 0,
            max_cubes: usize::MAX,
            has_begun: false,
            stuck: None,
        }
    }
    /// Runs or continues the search, up to `max_cubes` cubes.
    pub fn run(&mut self, oracle: &mut dyn Oracle, max_cubes: usize) -> SearchEnd {
        self.max_cubes = max_cubes;
        match self.go(oracle) {
            Ok(end) => end,
            Err(SearchFailure::Stopped(s)) => SearchEnd::Stopped(s),
            Err(SearchFailure::Trouble(t)) => SearchEnd::Trouble(t),
        }
    }
    fn go(&mut self, oracle: &mut dyn Oracle) -> Result<SearchEnd, SearchFailure> {
        if !self.has_begun {
            self.has_begun = true;
            if let Some(end) = self.begin()? {
                return Ok(end);
            }
        }
        loop {
            let mut batch = self.batch();
            if batch.is_empty() {
                break;
            }
            self.index.settle();
            self.removed = 0;
            let mut expansions =
                self.portions.map(batch.len(), 1, |i| self.look(&batch[i])).into_iter();
            batch.reverse();
            while let Some(next) = batch.pop() {
                let taken = if self.nodes.len() > self.max_cubes {
                    Err(SearchFailure::Stopped(Stop::States))
                } else {
                    self.take(&next, expansions.next().flatten(), oracle)
                };
                match taken {
                    Ok(None) => {}
                    ended => {
                        if matches!(ended, Err(SearchFailure::Trouble(_))) {
                            self.stuck = Some(next.cube.clone());
                        }
                        // The search may continue later: these cubes are expanded then, one of them
                        // again, and it covers its earlier pre-images.
                        self.waiting
                            .extend(batch.into_iter().chain([next]).map(|n| Reverse(n.rank)));
                        return ended.map(|end| end.expect("the search has ended"));
                    }
                }
            }
        }
        let own = self
            .index
            .patterns()
            .filter(|(i, _)| *i >= self.assumptions)
            .map(|(_, p)| p.cube.clone());
        Ok(SearchEnd::Fixpoint(own.chain(self.lemmas.iter().cloned()).collect()))
    }
    /// Returns the next cubes to expand: several once there are many, so that threads can process
    /// them in parallel. The number does not depend on the threads.
    fn batch(&mut self) -> Vec<WaitingCube> {
        let batch_size = if self.index.len() < MANY_CUBES { 1 } else { BATCH };
        let mut batch = Vec::new();
        while batch.len() < batch_size
            && let Some(Reverse(rank)) = self.waiting.pop()
        {
            batch.extend(self.alive(rank.2).map(|cube| WaitingCube { rank, cube }));
        }
        batch
    }
    /// Computes the relation of a cube and its pre-images to the existing cubes; `None` if a limit
    /// is reached.
    fn look(&self, next: &WaitingCube) -> Option<Result<ExpansionData, Trouble>> {
        self.budget.check(0).ok()?;
        let signature = &self.rules.signature;
        let own = Some(self.assumptions + next.rank.2);
        let mut target = MatchedCube::new(signature, &next.cube);
        let superseded = self.index.cover(&mut target, own).is_some()
            || self.index.is_covered(&mut target, own, MAX_OPEN);
        let mut look = ExpansionData {
            superseded,
            spent: target.spent,
            covers: Vec::new(),
            steps: Vec::new(),
        };
        if superseded {
            return Some(Ok(look));
        }
        look.covers = self.index.covered_cubes(
            signature,
            &CubePattern::new(signature, next.cube.clone()),
            &mut look.spent,
        );
        for (at, rule) in self.rules.rules.iter().enumerate() {
            let steps = &mut look.steps;
            let mut step = |binding: &Binding, processes: usize| {
                if self.budget.check(0).is_err() {
                    return Break(Ends::Stopped);
                }
                let images = self.checked_images(&next.cube, at, binding, processes);
                let fails = images.is_err();
                steps.push(RuleStep { rule: at, binding: binding.clone(), images });
                if fails { Break(Ends::Failed) } else { Continue(()) }
            };
            match for_each_binding(rule.params, next.cube.processes, signature.most, &mut step) {
                Ok(Continue(())) => {}
                Ok(Break(Ends::Stopped)) => return None,
                Ok(Break(Ends::Failed)) => return Some(Ok(look)),
                Err(trouble) => return Some(Err(trouble)),
            }
        }
        Some(Ok(look))
    }
    /// Deletes the node if other cubes cover it; otherwise deletes the cubes that it covers and
    /// adds its pre-images.
    fn take(
        &mut self,
        next: &WaitingCube,
        look: Option<Result<ExpansionData, Trouble>>,
        oracle: &mut dyn Oracle,
    ) -> Result<Option<SearchEnd>, SearchFailure> {
        let (node, own) = (next.rank.2, self.assumptions + next.rank.2);
        if self.alive(node).is_none() {
            return Ok(None);
        }
        let again = |search: &mut Self| match search.look(next) {
            Some(look) => Ok(look?),
            None => Err(search
                .budget
                .check(search.nodes.len() as u64)
                .map_or_else(SearchFailure::Stopped, |()| SearchFailure::Stopped(Stop::Time))),
        };
        let mut look = match look {
            Some(look) => look?,
            None => again(self)?,
        };
        // Two cubes may cover each other; one of them must remain.
        if look.superseded && self.removed > 0 {
            self.index.settle();
            look = again(self)?;
        }
        self.spend(look.spent)?;
        if look.superseded
            || self
                .index
                .cover_new(&mut MatchedCube::new(&self.rules.signature, &next.cube))
                .is_some()
        {
            self.remove(own);
            self.counts.covered += 1;
            return Ok(None);
        }
        for i in look.covers {
            if i >= self.assumptions && i != own && self.index.pattern(i).is_some() {
                self.remove(i);
                self.counts.deleted += 1;
            }
        }
        self.counts.expanded += 1;
        for RuleStep { rule, binding, images } in look.steps {
            self.tick()?;
            for image in images? {
                self.counts.images += 1;
                let new = CubeNode {
                    cube: image.cube,
                    parent: Some(node),
                    rule,
                    binding: binding.clone(),
                    names: image.names,
                    approximate: false,
                };
                if let Some(end) = self.offer(new, (image.covered, image.spent), oracle)? {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }
    fn remove(&mut self, at: usize) {
        self.index.remove(at);
        self.removed += 1;
    }
    /// Returns the pre-images of a step, each with whether a cube from before the expansion covers
    /// it.
    fn checked_images(
        &self,
        cube: &Cube,
        rule: usize,
        binding: &Binding,
        processes: usize,
    ) -> Result<Vec<CheckedImage>, Trouble> {
        let mut images = Vec::new();
        pre_image(self.rules, cube, &self.rules.rules[rule], binding, processes, &mut images)?;
        let judge = |(cube, names)| {
            let (covered, spent) = self.is_covered(&cube);
            CheckedImage { cube, names, covered, spent }
        };
        Ok(images.into_iter().map(judge).collect())
    }
    fn is_covered(&self, cube: &Cube) -> (bool, u64) {
        let mut target = MatchedCube::new(&self.rules.signature, cube);
        let covered = self.index.cover(&mut target, None).is_some();
        (covered, target.spent)
    }
    /// Adds the assumptions and the unsafe cubes.
    fn begin(&mut self) -> Result<Option<SearchEnd>, SearchFailure> {
        for cube in assumptions(self.rules)? {
            self.index.push(CubePattern::new(&self.rules.signature, cube));
            self.assumptions += 1;
        }
        for cube in &self.lemmas {
            self.index.push(CubePattern::new(&self.rules.signature, cube.clone()));
            self.assumptions += 1;
        }
        let obligations = self.rules.obligations.iter().cloned();
        for cube in claims(self.rules, &self.rules.unsafes)?.into_iter().chain(obligations) {
            let node = CubeNode {
                cube,
                parent: None,
                rule: 0,
                binding: Vec::new(),
                names: Vec::new(),
                approximate: false,
            };
            self.index.settle();
            let checked_images = self.is_covered(&node.cube);
            if let Some(end) = self.offer(node, checked_images, &mut Exact)? {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }
    fn alive(&self, node: usize) -> Option<Cube> {
        self.index.pattern(self.assumptions + node).map(|p| p.cube.clone())
    }
    fn tick(&mut self) -> Result<(), SearchFailure> {
        self.ticks += 1;
        self.work_off(1)?;
        if self.ticks.is_multiple_of(64) {
            self.budget.check(self.nodes.len() as u64).map_err(SearchFailure::Stopped)?;
        }
        if self.ticks.is_multiple_of(8192) {
            self.budget.check_memory().map_err(SearchFailure::Stopped)?;
        }
        Ok(())
    }
    /// Adds a node unless it is covered: by an earlier cube, which was checked already at the given
    /// cost, or by a newer one.
    fn offer(
        &mut self,
        mut node: CubeNode,
        (covered, spent): (bool, u64),
        oracle: &mut dyn Oracle,
    ) -> Result<Option<SearchEnd>, SearchFailure> {
        let signature = &self.rules.signature;
        self.tick()?;
        self.spend(spent)?;
        if covered || self.index.cover_new(&mut MatchedCube::new(signature, &node.cube)).is_some() {
            self.counts.covered += 1;
            return Ok(None);
        }
        if initial(self.rules, &node.cube)?.is_some() {
            return Ok(Some(self.path_to_initial(node)));
        }
        let mut instead = oracle.instead(&node.cube);
        for larger in &instead {
            if initial(self.rules, larger)?.is_some() {
                instead.clear();
                break;
            }
        }
        self.spend(oracle.take_cost())?;
        if instead.is_empty() {
            self.keep(node);
            return Ok(None);
        }
        node.approximate = true;
        self.counts.approximations += 1;
        let several = instead.len() > 1;
        for cube in instead {
            // A single replacement is larger than the cube, hence new; several may exist already.
            if several
                && (self.is_covered(&cube).0
                    || self
                        .index
                        .cover_new(&mut MatchedCube::new(&self.rules.signature, &cube))
                        .is_some())
            {
                continue;
            }
            self.keep(CubeNode { cube, ..node.clone() });
        }
        Ok(None)
    }
    fn keep(&mut self, node: CubeNode) {
        let number = self.nodes.len();
        self.waiting.push(Reverse((node.cube.processes, node.cube.atoms.len(), number)));
        self.index.push(CubePattern::new(&self.rules.signature, node.cube.clone()));
        self.nodes.push(node);
        self.counts.nodes += 1;
    }
    fn work_off(&mut self, work: u64) -> Result<(), SearchFailure> {
        let enough = work <= self.work;
        self.work = self.work.saturating_sub(work);
        if enough { Ok(()) } else { Err(SearchFailure::Stopped(Stop::States)) }
    }
    /// Counts the cost of matching cubes, and checks the limits, since one match may take long.
    fn spend(&mut self, steps: u64) -> Result<(), SearchFailure> {
        self.work_off(steps / STEPS_OF_WORK)?;
        if steps > MANY_STEPS {
            self.budget.check(self.nodes.len() as u64).map_err(SearchFailure::Stopped)?;
        }
        Ok(())
    }
    fn path_to_initial(&mut self, node: CubeNode) -> SearchEnd {
        let mut path = Vec::new();
        let mut next = node.parent;
        while let Some(i) = next {
            path.push(self.nodes[i].clone());
            next = self.nodes[i].parent;
        }
        path.reverse();
        path.push(node);
        SearchEnd::Reached(path)
    }
}

enum SearchFailure {
    Stopped(Stop),
    Trouble(Trouble),
}

impl From<Trouble> for SearchFailure {
    fn from(t: Trouble) -> SearchFailure {
        SearchFailure::Trouble(t)
    }
}
