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
//! Most cubes that are found are never expanded, so what is dear is asked of a cube when its turn
//! comes: of several cubes at the same time, by several threads, against the cubes that were there
//! before any of them. Then they take their turns, and what has come since counts as well. A cube
//! that was covered is looked at again if another was deleted meanwhile: two may cover each other.
//! So neither verdict nor certificate depends on the number of threads.
//!
//! All cubes that were not deleted, at the end, are the complement of an inductive invariant: each
//! covers its pre-images or they are in other cubes. The invariants of the file are cubes that
//! count as covered and are not expanded.

use crate::cube::Cube;
use crate::image::{Binding, Trouble, bindings, pre_image};
use crate::rules::Rules;
use crate::share::{Portions, Threads};
use crate::start::{assumptions, claims, initial};
use crate::subsume::{Index, Pattern, Target};
use mu_base::limits::{Budget, Stop};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Once there are so many cubes, so many of them are looked at together.
pub const MANY_CUBES: usize = 48;
const BATCH: usize = 8;

/// Most atoms that an instance of a cube may ask beyond a cube that it helps to cover.
pub const MOST_OPEN: usize = 2;

/// How many assignments of a match count as much as looking at a binding.
pub const STEPS_OF_WORK: u64 = 100;
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
    /// Cubes that cover the cube together and may take its place; none: it stays.
    fn instead(&mut self, cube: &Cube) -> Vec<Cube>;
    /// What it took since it was asked last, in units of an assignment of a match.
    fn spent(&mut self) -> u64 {
        0
    }
}

/// Never approximates.
pub struct Exact;

impl Oracle for Exact {
    fn instead(&mut self, _: &Cube) -> Vec<Cube> {
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

/// A pre-image with its names, and whether it is covered by what was there before; what it took to
/// find out.
struct Judged {
    cube: Cube,
    names: Vec<u8>,
    covered: bool,
    spent: u64,
}

/// A cube whose turn comes: fewest processes, then fewest atoms, then the number of its node.
struct Next {
    turn: (usize, usize, usize),
    cube: Cube,
}

/// What is said of a cube before it is expanded: whether others cover it, what that took, what it
/// covers, and its steps.
struct Look {
    superseded: bool,
    spent: u64,
    covers: Vec<usize>,
    steps: Vec<Step>,
}

/// The pre-images of a cube by a rule with its parameters bound.
struct Step {
    rule: usize,
    binding: Binding,
    images: Result<Vec<Judged>, Trouble>,
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
    /// Cubes that count as covered and are part of the result: runs do not enter them before they
    /// meet what is unsafe.
    pub lemmas: Vec<Cube>,
    /// What was counted.
    pub counts: Counts,
    /// How many more bindings and cubes may be looked at.
    pub work: u64,
    /// Cubes that were removed since the cubes of the batch were looked at.
    removed: usize,
    portions: Portions,
    ticks: u32,
    most: usize,
    begun: bool,
    /// The cube of which a pre-image could not be made.
    pub stuck: Option<Cube>,
}

impl<'a> Search<'a> {
    /// A search that has not begun. What it finds does not depend on the threads.
    pub fn new(rules: &'a Rules, budget: &'a Budget, threads: Threads) -> Search<'a> {
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
            removed: 0,
            portions: Portions::new(threads),
            ticks: 0,
            most: usize::MAX,
            begun: false,
            stuck: None,
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
        loop {
            let mut batch = self.batch();
            if batch.is_empty() {
                break;
            }
            self.index.settle();
            self.removed = 0;
            let mut looks = self.portions.map(batch.len(), 1, |i| self.look(&batch[i])).into_iter();
            batch.reverse();
            while let Some(next) = batch.pop() {
                let taken = if self.nodes.len() > self.most {
                    Err(Failure::Stopped(Stop::States))
                } else {
                    self.take(&next, looks.next().flatten(), oracle)
                };
                match taken {
                    Ok(None) => {}
                    ended => {
                        if matches!(ended, Err(Failure::Trouble(_))) {
                            self.stuck = Some(next.cube.clone());
                        }
                        // The search may go on later: these cubes are expanded then, one of them
                        // anew, and it covers what it gave before.
                        self.waiting
                            .extend(batch.into_iter().chain([next]).map(|n| Reverse(n.turn)));
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
        Ok(End::Fixpoint(own.chain(self.lemmas.iter().cloned()).collect()))
    }
    /// The next cubes to be expanded: several once there are many, so that threads can look at them
    /// at the same time. How many does not depend on the threads.
    fn batch(&mut self) -> Vec<Next> {
        let most = if self.index.len() < MANY_CUBES { 1 } else { BATCH };
        let mut batch = Vec::new();
        while batch.len() < most
            && let Some(Reverse(turn)) = self.waiting.pop()
        {
            batch.extend(self.alive(turn.2).map(|cube| Next { turn, cube }));
        }
        batch
    }
    /// What the cubes that are there say of one whose turn comes, and of its pre-images; nothing if
    /// a limit ends it.
    fn look(&self, next: &Next) -> Option<Result<Look, Trouble>> {
        self.budget.check(0).ok()?;
        let signature = &self.rules.signature;
        let own = Some(self.assumptions + next.turn.2);
        let mut target = Target::new(signature, &next.cube);
        let superseded = self.index.cover(&mut target, own).is_some()
            || self.index.covered(&mut target, own, MOST_OPEN);
        let mut look =
            Look { superseded, spent: target.spent, covers: Vec::new(), steps: Vec::new() };
        if superseded {
            return Some(Ok(look));
        }
        look.covers = self.index.covered_by(
            signature,
            &Pattern::new(signature, next.cube.clone()),
            &mut look.spent,
        );
        for (at, rule) in self.rules.rules.iter().enumerate() {
            let all = match bindings(rule.params, next.cube.processes, signature.most) {
                Ok(all) => all,
                Err(trouble) => return Some(Err(trouble)),
            };
            for (binding, processes) in all {
                self.budget.check(0).ok()?;
                let images = self.judged(&next.cube, at, &binding, processes);
                let ends = images.is_err();
                look.steps.push(Step { rule: at, binding, images });
                if ends {
                    return Some(Ok(look));
                }
            }
        }
        Some(Ok(look))
    }
    /// Deletes the node whose turn it is, if other cubes cover it; else deletes what it covers and
    /// offers its pre-images.
    fn take(
        &mut self,
        next: &Next,
        look: Option<Result<Look, Trouble>>,
        oracle: &mut dyn Oracle,
    ) -> Result<Option<End>, Failure> {
        let (node, own) = (next.turn.2, self.assumptions + next.turn.2);
        if self.alive(node).is_none() {
            return Ok(None);
        }
        let again = |search: &mut Self| match search.look(next) {
            Some(look) => Ok(look?),
            None => Err(search
                .budget
                .check(search.nodes.len() as u64)
                .map_or_else(Failure::Stopped, |()| Failure::Stopped(Stop::Time))),
        };
        let mut look = match look {
            Some(look) => look?,
            None => again(self)?,
        };
        // Two cubes can cover each other; one of them is to stay.
        if look.superseded && self.removed > 0 {
            self.index.settle();
            look = again(self)?;
        }
        self.spend(look.spent)?;
        if look.superseded
            || self.index.cover_new(&mut Target::new(&self.rules.signature, &next.cube)).is_some()
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
        for Step { rule, binding, images } in look.steps {
            self.tick()?;
            for image in images? {
                self.counts.images += 1;
                let new = Node {
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
    /// The pre-images of a step, each with whether a cube that was there before the expansion
    /// covers it.
    fn judged(
        &self,
        cube: &Cube,
        rule: usize,
        binding: &Binding,
        processes: usize,
    ) -> Result<Vec<Judged>, Trouble> {
        let mut images = Vec::new();
        pre_image(self.rules, cube, &self.rules.rules[rule], binding, processes, &mut images)?;
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
            let node = Node {
                cube,
                parent: None,
                rule: 0,
                binding: Vec::new(),
                names: Vec::new(),
                approximate: false,
            };
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
    /// Takes a node in, unless it is covered: by a cube that was there before, which was asked
    /// already and took so many steps, or by a newer one.
    fn offer(
        &mut self,
        mut node: Node,
        (covered, spent): (bool, u64),
        oracle: &mut dyn Oracle,
    ) -> Result<Option<End>, Failure> {
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
        let mut instead = oracle.instead(&node.cube);
        for larger in &instead {
            if initial(self.rules, larger)?.is_some() {
                instead.clear();
                break;
            }
        }
        self.spend(oracle.spent())?;
        if instead.is_empty() {
            self.keep(node);
            return Ok(None);
        }
        node.approximate = true;
        self.counts.approximations += 1;
        let several = instead.len() > 1;
        for cube in instead {
            // The one that covers more than the cube is new; of several, some may be there already.
            if several
                && (self.is_covered(&cube).0
                    || self
                        .index
                        .cover_new(&mut Target::new(&self.rules.signature, &cube))
                        .is_some())
            {
                continue;
            }
            self.keep(Node { cube, ..node.clone() });
        }
        Ok(None)
    }
    fn keep(&mut self, node: Node) {
        let number = self.nodes.len();
        self.waiting.push(Reverse((node.cube.processes, node.cube.atoms.len(), number)));
        self.index.push(Pattern::new(&self.rules.signature, node.cube.clone()));
        self.nodes.push(node);
        self.counts.nodes += 1;
    }
    fn work_off(&mut self, work: u64) -> Result<(), Failure> {
        let enough = work <= self.work;
        self.work = self.work.saturating_sub(work);
        if enough { Ok(()) } else { Err(Failure::Stopped(Stop::States)) }
    }
    /// Counts what it took to match cubes; also a place to look at the limits, since one match may
    /// take long.
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
