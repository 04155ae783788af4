//! Signature refinement level by level: two states are in one block of level `k` if no formula of
//! modal depth `k` distinguishes them.
//!
//! Input: a system and a bisimulation. Output: the coarsest stable partition, and on request the
//! history of splits with the signatures that caused them, from which [`super::distinguish`] builds
//! formulas. Signatures are complete (Blom and Orzan 2005): strong, those of single steps;
//! branching, those of steps after inert tau steps; weak, the pairs `(a, B)` with
//! `s =tau*=> -a-> =tau*=> B` and `(tau, B)` with `s =tau*=> B`, and for divergence the blocks of
//! states with a tau loop among the latter. They are computed bottom-up along
//! tau steps, which must be acyclic except for loops.
//!
//! A level recomputes only the signatures that may have changed: at the predecessors of states that
//! moved to another block, and from there backwards along tau steps as long as signatures change.
//! The largest part of a block keeps its name (Hopcroft). Cost: strong, O(transitions * log states
//! * out-degree) without a factor for the number of levels; others, the same in the size of the
//!   signatures that change.
//!
//! Invariant between levels: the states of a block share one signature in terms of the blocks of
//! the previous level. After blocks split, a state with an unchanged signature in terms of the new
//! names still has that of its block.

use super::Lts;
use super::equivalence::Equivalence;
use super::signature::{Interner, SignatureEntry};
use super::tau::{Rows, components, edges};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Size in words above which unused signatures are dropped.
const MANY_WORDS: usize = 1 << 16;

/// Bisimulation, by the signatures of its refinement and the shape of its formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bisimulation {
    /// Strong.
    Strong,
    /// Branching.
    Branching,
    /// Branching with divergence.
    DivergenceBranching,
    /// Weak.
    Weak,
    /// Weak with divergence.
    DivergenceWeak,
}

impl Bisimulation {
    /// Returns the equivalence.
    pub fn equivalence(self) -> Equivalence {
        match self {
            Bisimulation::Strong => Equivalence::STRONG,
            Bisimulation::Branching => Equivalence::BRANCHING,
            Bisimulation::DivergenceBranching => Equivalence::DIVERGENCE_BRANCHING,
            Bisimulation::Weak => Equivalence::WEAK,
            Bisimulation::DivergenceWeak => Equivalence::DIVERGENCE_WEAK,
        }
    }
    /// True if steps are weak, so that a step includes the taus before and after it.
    pub fn is_weak(self) -> bool {
        matches!(self, Bisimulation::Weak | Bisimulation::DivergenceWeak)
    }
    /// True if a formula constrains the states between internal steps.
    pub fn has_until(self) -> bool {
        matches!(self, Bisimulation::Branching | Bisimulation::DivergenceBranching)
    }
}

/// Two states: refinement stops at the first level with them in different blocks.
pub type Goal = Option<(StateId, StateId)>;

/// Result of refinement.
pub struct Levels {
    /// Number of blocks.
    pub blocks: usize,
    /// Block of each state.
    pub block_of: Vec<u32>,
    /// Number of transitions that were read to compute signatures.
    #[cfg(test)]
    pub work: u64,
    /// Level at which each block split off, and the block that it was part of; `None` for the
    /// first block.
    origins: Vec<Option<(u32, u32)>>,
    /// Signatures by level and block, for the parts of the blocks that split at the level.
    signatures: AHashMap<(u32, u32), u32>,
    sets: Interner<SignatureEntry>,
}

impl Levels {
    /// Returns the level at which two blocks were split, and their names at this level.
    pub fn split_of(&self, mut p: u32, mut q: u32) -> (u32, u32, u32) {
        let origin = |b: u32| self.origins[b as usize];
        loop {
            let (x, y) = (origin(p), origin(q));
            match x.map(|o| o.0).cmp(&y.map(|o| o.0)) {
                std::cmp::Ordering::Greater => {
                    let (level, parent) = x.expect("greater than another level");
                    if parent == q {
                        return (level, p, q);
                    }
                    p = parent;
                }
                std::cmp::Ordering::Less => {
                    let (level, parent) = y.expect("greater than another level");
                    if parent == p {
                        return (level, p, q);
                    }
                    q = parent;
                }
                std::cmp::Ordering::Equal => {
                    let (Some((level, up)), Some((_, other))) = (x, y) else {
                        unreachable!("only one block is the first")
                    };
                    if up == other {
                        return (level, p, q);
                    }
                    (p, q) = (up, other);
                }
            }
        }
    }

    /// Returns the block that a block of a level was part of at the level before.
    pub fn parent(&self, level: u32, block: u32) -> u32 {
        match self.origins[block as usize] {
            Some((l, parent)) if l == level => parent,
            _ => block,
        }
    }

    /// Returns the signature of a part of a block that split at a level, in terms of the blocks of
    /// the level before.
    pub fn signature(&self, level: u32, block: u32) -> &[SignatureEntry] {
        self.sets.get(self.signatures[&(level, block)])
    }
}

#[derive(Clone, Copy)]
struct Block {
    start: u32,
    end: u32,
    marked: u32,
    /// The common signature of its states.
    set: u32,
}

/// Queue of states in the order of tau steps, each at most once.
struct Queue {
    heap: BinaryHeap<Reverse<u32>>,
    queued: Vec<bool>,
}

impl Queue {
    fn push(&mut self, place: u32) {
        if !std::mem::replace(&mut self.queued[place as usize], true) {
            self.heap.push(Reverse(place));
        }
    }
    fn pop(&mut self) -> Option<u32> {
        let Reverse(place) = self.heap.pop()?;
        self.queued[place as usize] = false;
        Some(place)
    }
}

struct Refiner<'a> {
    lts: &'a Lts,
    kind: Bisimulation,
    /// States in an order in which tau steps lead to earlier ones, and the place of each.
    order: Vec<u32>,
    place: Vec<u32>,
    /// Sources of steps by target: of visible ones (strong: of all), and of tau steps except
    /// loops.
    before: Rows<u32>,
    before_tau: Rows<u32>,
    queue: Queue,
    /// Weak: blocks that each state reaches by tau steps.
    closures: Interner<u32>,
    closure_of: Vec<u32>,
    sets: Interner<SignatureEntry>,
    set_of: Vec<u32>,
    elements: Vec<u32>,
    position: Vec<u32>,
    block_of: Vec<u32>,
    blocks: Vec<Block>,
    origins: Vec<Option<(u32, u32)>>,
    history: bool,
    signatures: AHashMap<(u32, u32), u32>,
    #[cfg(test)]
    work: u64,
    /// Words of `sets` and of `closures` above which unused ones are dropped.
    limits: (usize, usize),
    /// Buffers.
    set: Vec<SignatureEntry>,
    closure: Vec<u32>,
}

/// Refines until the partition is stable, or until the two states of a goal are in different
/// blocks. The history of splits is recorded only with a goal.
pub fn refine(lts: &Lts, kind: Bisimulation, goal: Goal) -> Levels {
    let n = lts.state_count();
    let tau = components(lts);
    let mut order: Vec<u32> = (0..narrow::index(n)).collect();
    order.sort_by_key(|&s| tau.of[s as usize]);
    let mut place = vec![0; n];
    for (i, &s) in order.iter().enumerate() {
        place[s as usize] = narrow::index(i);
    }
    let internal = |l: LabelId| kind != Bisimulation::Strong && l == LabelId::TAU;
    let before = Rows::build(n, || edges(lts).filter(|e| !internal(e.1)).map(|(s, _, t)| (t, s)));
    let before_tau = Rows::build(n, || {
        edges(lts).filter(|e| internal(e.1) && e.0 != e.2).map(|(s, _, t)| (t, s))
    });
    let mut refiner = Refiner {
        lts,
        kind,
        order,
        place,
        before,
        before_tau,
        queue: Queue { heap: BinaryHeap::new(), queued: vec![false; n] },
        closures: Interner::default(),
        closure_of: vec![0; if kind.is_weak() { n } else { 0 }],
        sets: Interner::default(),
        set_of: vec![0; n],
        elements: (0..narrow::index(n)).collect(),
        position: (0..narrow::index(n)).collect(),
        block_of: vec![0; n],
        blocks: vec![Block { start: 0, end: narrow::index(n), marked: 0, set: 0 }],
        origins: vec![None],
        history: goal.is_some(),
        signatures: AHashMap::new(),
        #[cfg(test)]
        work: 0,
        limits: (MANY_WORDS, MANY_WORDS),
        set: Vec::new(),
        closure: Vec::new(),
    };
    refiner.run(goal);
    Levels {
        blocks: refiner.blocks.len(),
        block_of: refiner.block_of,
        #[cfg(test)]
        work: refiner.work,
        origins: refiner.origins,
        signatures: refiner.signatures,
        sets: refiner.sets,
    }
}

impl Refiner<'_> {
    fn run(&mut self, goal: Goal) {
        let mut changed = Vec::new();
        for i in 0..self.order.len() {
            let s = self.order[i];
            if self.kind.is_weak() {
                self.closure_of[s as usize] = self.closure_at(s);
            }
            self.set_of[s as usize] = self.set_at(s);
            changed.push(s);
        }
        let mut moved = Vec::new();
        for level in 0.. {
            let mut touched = Vec::new();
            for &s in &changed {
                self.mark(s, &mut touched);
            }
            moved.clear();
            for &b in &touched {
                self.split(b, level, &mut moved);
            }
            let reached =
                goal.is_some_and(|(x, y)| self.block_of[x.index()] != self.block_of[y.index()]);
            if moved.is_empty() || reached {
                return;
            }
            changed.clear();
            self.update(&moved, &mut changed);
            self.compact();
        }
    }

    /// Recomputes the signatures that may change because states moved to new blocks. Adds the
    /// states with changed signatures.
    fn update(&mut self, moved: &[u32], changed: &mut Vec<u32>) {
        let before = std::mem::take(&mut self.before);
        let before_tau = std::mem::take(&mut self.before_tau);
        if self.kind.is_weak() {
            for &s in moved {
                self.queue.push(self.place[s as usize]);
            }
            let mut reach = Vec::new();
            while let Some(at) = self.queue.pop() {
                let s = self.order[at as usize];
                let new = self.closure_at(s);
                if std::mem::replace(&mut self.closure_of[s as usize], new) != new {
                    reach.push(s);
                    before_tau.row(s).iter().for_each(|&p| self.queue.push(self.place[p as usize]));
                }
            }
            for &s in &reach {
                self.queue.push(self.place[s as usize]);
                before.row(s).iter().for_each(|&p| self.queue.push(self.place[p as usize]));
            }
        } else {
            for &s in moved {
                before.row(s).iter().for_each(|&p| self.queue.push(self.place[p as usize]));
                if self.kind != Bisimulation::Strong {
                    // Its own tau steps, and those to it, may no longer be inert.
                    self.queue.push(self.place[s as usize]);
                    before_tau.row(s).iter().for_each(|&p| self.queue.push(self.place[p as usize]));
                }
            }
        }
        while let Some(at) = self.queue.pop() {
            let s = self.order[at as usize];
            let new = self.set_at(s);
            if std::mem::replace(&mut self.set_of[s as usize], new) != new {
                changed.push(s);
                for &p in before_tau.row(s) {
                    if self.kind.is_weak() || self.block_of[p as usize] == self.block_of[s as usize]
                    {
                        self.queue.push(self.place[p as usize]);
                    }
                }
            }
        }
        (self.before, self.before_tau) = (before, before_tau);
    }

    /// Counts a transition that is read.
    fn count(&mut self) {
        #[cfg(test)]
        {
            self.work += 1;
        }
    }

    /// Computes the blocks that a state reaches by tau steps, from those of its successors.
    fn closure_at(&mut self, s: u32) -> u32 {
        self.closure.clear();
        self.closure.push(self.block_of[s as usize]);
        for (l, t) in self.lts.successors(StateId::of(s)) {
            self.count();
            if l == LabelId::TAU && t.number() != s {
                self.closure.extend_from_slice(self.closures.get(self.closure_of[t.index()]));
            }
        }
        self.closure.sort_unstable();
        self.closure.dedup();
        self.closures.intern(&self.closure)
    }

    /// Computes the signature of a state from the blocks of its successors and the signatures after
    /// its tau steps.
    fn set_at(&mut self, s: u32) -> u32 {
        let own = self.block_of[s as usize];
        self.set.clear();
        if self.kind.is_weak() {
            self.set.push(SignatureEntry::step(LabelId::TAU, own));
        }
        for (l, t) in self.lts.successors(StateId::of(s)) {
            self.count();
            let to = self.block_of[t.index()];
            match self.kind {
                Bisimulation::Strong => self.set.push(SignatureEntry::step(l, to)),
                Bisimulation::Weak if l == LabelId::TAU && t.number() == s => {}
                Bisimulation::DivergenceWeak if l == LabelId::TAU && t.number() == s => {
                    self.set.push(SignatureEntry::divergence(own));
                }
                Bisimulation::Weak | Bisimulation::DivergenceWeak if l == LabelId::TAU => {
                    self.set.extend_from_slice(self.sets.get(self.set_of[t.index()]))
                }
                Bisimulation::Weak | Bisimulation::DivergenceWeak => {
                    self.set.extend(
                        self.closures
                            .get(self.closure_of[t.index()])
                            .iter()
                            .map(|&b| SignatureEntry::step(l, b)),
                    );
                }
                _ if l != LabelId::TAU || to != own => self.set.push(SignatureEntry::step(l, to)),
                _ if t.number() != s => {
                    self.set.extend_from_slice(self.sets.get(self.set_of[t.index()]))
                }
                Bisimulation::DivergenceBranching => self.set.push(SignatureEntry::divergence(0)),
                _ => {}
            }
        }
        self.set.sort_unstable();
        self.set.dedup();
        self.sets.intern(&self.set)
    }

    /// Drops unused signatures, if they are many and no history needs them.
    fn compact(&mut self) {
        if !self.history && self.sets.words() > self.limits.0 {
            let mut names: AHashMap<u32, u32> = AHashMap::new();
            let old = std::mem::take(&mut self.sets);
            let blocks = self.blocks.iter_mut().map(|b| &mut b.set);
            for set in self.set_of.iter_mut().chain(blocks) {
                *set = *names.entry(*set).or_insert_with(|| self.sets.intern(old.get(*set)));
            }
            self.limits.0 = MANY_WORDS.max(4 * self.sets.words());
        }
        if self.closures.words() > self.limits.1 {
            let mut names: AHashMap<u32, u32> = AHashMap::new();
            let old = std::mem::take(&mut self.closures);
            for closure in &mut self.closure_of {
                *closure = *names
                    .entry(*closure)
                    .or_insert_with(|| self.closures.intern(old.get(*closure)));
            }
            self.limits.1 = MANY_WORDS.max(4 * self.closures.words());
        }
    }

    /// Moves a state to the front of its block.
    fn mark(&mut self, state: u32, touched: &mut Vec<u32>) {
        let b = self.block_of[state as usize];
        let block = &mut self.blocks[b as usize];
        let to = block.start + block.marked;
        if block.marked == 0 {
            touched.push(b);
        }
        block.marked += 1;
        let from = self.position[state as usize];
        let other = self.elements[to as usize];
        self.elements.swap(from as usize, to as usize);
        self.position[state as usize] = to;
        self.position[other as usize] = from;
    }

    /// Splits a block by the signatures of its marked states; the others have its old signature.
    /// Adds the states that get a new name.
    fn split(&mut self, b: u32, level: u32, moved: &mut Vec<u32>) {
        let Block { start, end, marked, set } = self.blocks[b as usize];
        let front = &mut self.elements[start as usize..(start + marked) as usize];
        front.sort_unstable_by_key(|&s| (self.set_of[s as usize], s));
        for (i, &s) in (start..).zip(front.iter()) {
            self.position[s as usize] = i;
        }
        let mut parts: Vec<Block> = Vec::new();
        let mut from = start;
        for group in front.chunk_by(|&x, &y| self.set_of[x as usize] == self.set_of[y as usize]) {
            let to = from + narrow::index(group.len());
            parts.push(Block {
                start: from,
                end: to,
                marked: 0,
                set: self.set_of[group[0] as usize],
            });
            from = to;
        }
        if from < end {
            parts.push(Block { start: from, end, marked: 0, set });
        }
        let keeper = (0..parts.len())
            .max_by_key(|&i| parts[i].end - parts[i].start)
            .expect("a marked block is not empty");
        let several = parts.len() > 1;
        for (i, part) in parts.into_iter().enumerate() {
            let name = if i == keeper { b } else { narrow::index(self.blocks.len()) };
            if i == keeper {
                self.blocks[b as usize] = part;
            } else {
                self.blocks.push(part);
                self.origins.push(Some((level, b)));
                for &s in &self.elements[part.start as usize..part.end as usize] {
                    self.block_of[s as usize] = name;
                    moved.push(s);
                }
            }
            if several && self.history {
                self.signatures.insert((level, name), part.set);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::disjoint_union;
    use crate::distinguish::Difference;
    use crate::equivalence::{distinguish, partition, reduce};
    use crate::{Labels, naive};
    use mu_base::random::Random;

    const BISIMULATIONS: [Bisimulation; 5] = [
        Bisimulation::Strong,
        Bisimulation::DivergenceBranching,
        Bisimulation::Branching,
        Bisimulation::Weak,
        Bisimulation::DivergenceWeak,
    ];

    /// Returns a chain of steps `step`, the last one `last`.
    fn chain(steps: u32, step: u32, last: u32) -> Lts {
        let texts = vec!["tau".into(), "a".into(), "b".into()];
        let edges: Vec<_> = (0..steps)
            .map(|i| {
                (
                    StateId::of(i),
                    LabelId::of(if i + 1 < steps { step } else { last }),
                    StateId::of(i + 1),
                )
            })
            .collect();
        Lts::from_edges(StateId::of(0), steps as usize + 1, &edges, Labels { texts })
    }

    /// A level of a chain moves a few states, and reads few transitions again: the work is not
    /// proportional to steps times levels.
    #[test]
    fn work_on_chains_is_linear() {
        for e in BISIMULATIONS {
            let counts: Vec<u64> = [5_000, 20_000]
                .into_iter()
                .map(|n| {
                    let (union, x, y) = disjoint_union(&chain(n, 1, 1), &chain(n, 1, 2));
                    let levels = refine(&union, e, Some((x, y)));
                    assert_ne!(
                        levels.block_of[x.index()],
                        levels.block_of[y.index()],
                        "{}",
                        e.equivalence().name()
                    );
                    levels.work
                })
                .collect();
            assert!(
                counts[0] >= 5_000 && counts[1] <= 20 * 40_000 && counts[1] <= 6 * counts[0],
                "{}: {counts:?}",
                e.equivalence().name()
            );
        }
    }

    #[test]
    fn long_chains_differ_at_their_ends() {
        let (a, b) = (chain(5_000, 1, 1), chain(5_000, 1, 2));
        for e in BISIMULATIONS {
            assert_eq!(distinguish(&a, &a, e.equivalence(), 1), None, "{}", e.equivalence().name());
            let Some(Difference::Formula(text)) = distinguish(&a, &b, e.equivalence(), 1) else {
                panic!("{}: no formula", e.equivalence().name())
            };
            // One step of the formula for each step of the chain, the last of which only one system
            // can do.
            assert_eq!(
                text.matches("a>").count() + text.matches("a . tau*>").count(),
                5_000,
                "{}",
                e.equivalence().name()
            );
        }
        assert_eq!(reduce(&a, Equivalence::WEAK, 1).state_count(), 5_001);
    }

    /// The same partition as by the definitions, after contraction of tau cycles; taus without
    /// cycles for the levels themselves.
    #[test]
    fn levels_end_at_the_coarsest_partition() {
        let mut split = [0; 5];
        for seed in 0..800 {
            let mut random = Random::new(seed);
            let states = 1 + random.below(10);
            let edges = random.below(3 * states);
            let lts = naive::random_lts(&mut random, states, edges, 3);
            for (i, e) in BISIMULATIONS.into_iter().enumerate() {
                // The quotient has a class for each state, so refinement splits all of them.
                let small = reduce(&lts, e.equivalence(), 1);
                assert_eq!(
                    refine(&small, e, None).blocks,
                    small.state_count(),
                    "seed {seed}, {}",
                    e.equivalence().name()
                );
                let (union, x, y) = disjoint_union(&small, &reduce(&lts, Equivalence::STRONG, 1));
                if e == Bisimulation::Strong {
                    let levels = refine(&union, e, None);
                    assert_eq!(
                        levels.blocks,
                        partition(&union, e.equivalence(), 1).blocks,
                        "seed {seed}"
                    );
                    assert_eq!(
                        levels.block_of[x.index()],
                        levels.block_of[y.index()],
                        "seed {seed}"
                    );
                }
                split[i] += usize::from(small.state_count() > 2);
            }
        }
        assert!(split.iter().all(|&n| n > 100), "{split:?}");
    }
}
