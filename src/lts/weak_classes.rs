//! Classes of weak bisimilarity in one pass from the ends of a system, for systems with long paths
//! of tau steps.
//!
//! In: a quotient by branching bisimulation (tau steps are acyclic, except for a loop at a state
//! that diverges, if divergence counts). Out: the class of each state. The strongly connected
//! components of all steps are visited bottom-up, so the classes of the steps that leave a
//! component are known, and signatures are [`super::shared_sets`] of known classes.
//!
//! - *A state without a cycle.* Its signature is known but for its own class, which it reaches by
//!   no step. It is in a class if its signature is that of the class, or the part of it without the
//!   class itself.
//! - *A cyclic component* is refined with the earlier classes fixed. Its states are in new classes,
//!   or all of them in classes of one earlier cyclic component. If one state `s` of it is
//!   equivalent to an earlier state, so are all: each is reachable from `s`. Of the classes that
//!   they are in, let `k` be the first created, for a state `e` of a component `K`. All these
//!   classes are reachable from `e`, by states of `K`, because those of earlier components are in
//!   classes created before `k`; and `e` reaches a state of `k` by a step in `K`, which is thus
//!   cyclic. So the states of both components are refined together, for each `K` with a class in
//!   which the same labels are possible as in the first block of the component.
//!
//! Cost: near-linear in states and steps without cycles; for a cyclic component, its steps for each
//! round in which one of its signatures changes. Levels of refinement ([`super::levels`]) take
//! rounds over the whole system, with signatures as lists.

use super::Lts;
use super::shared_sets::{EMPTY, SharedMaps, SharedSet, SharedSets};
use super::tau::components;
use ahash::AHashMap;
use mu_base::components::Graph;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Limit on the pairs of states in two cyclic components that are refined together; beyond it, the
/// classes are not computed here.
const MAX_PAIRS: usize = 1 << 20;
/// Number of new tree nodes above which the signatures of a component are computed anew, so that
/// those of earlier rounds are dropped.
const MANY_NODES: usize = 1 << 22;
/// Number of a state without a place.
const NONE: u32 = u32::MAX;

/// The classes after tau steps, the own class included, and those after each label. The set of
/// label tau in the map has the classes after tau steps that diverge.
type Signature = (SharedSet, SharedSet);

struct AllSteps<'a>(&'a Lts);

impl Graph for AllSteps<'_> {
    fn vertices(&self) -> usize {
        self.0.state_count()
    }
    fn edges(&self, state: u32) -> std::ops::Range<u64> {
        self.0.offsets[state as usize]..self.0.offsets[state as usize + 1]
    }
    fn target(&self, edge: u64) -> Option<u32> {
        Some(self.0.targets[edge as usize].number())
    }
}

/// Computes the classes of all states, and their number; `None` if cyclic components are too large.
pub(super) fn from_ends(lts: &Lts) -> Option<(Vec<u32>, usize)> {
    let parts = mu_base::components::components(&AllSteps(lts));
    let tau = components(lts);
    let mut pass = Pass {
        lts,
        sets: SharedSets::default(),
        maps: SharedMaps::default(),
        class_of: vec![NONE; lts.state_count()],
        place: vec![NONE; lts.state_count()],
        signatures: Vec::new(),
        by_signature: AHashMap::new(),
        by_steps: AHashMap::new(),
        cyclic: Vec::new(),
        by_labels: AHashMap::new(),
    };
    for part in parts.iter() {
        let first = part[0];
        let is_loop = |(_, t): (LabelId, StateId)| t.number() == first;
        if part.len() == 1 && !lts.successors(StateId::of(first)).any(is_loop) {
            pass.acyclic(first);
        } else {
            // Tau steps lead to earlier states.
            let mut part = part.to_vec();
            part.sort_unstable_by_key(|s| tau.of[*s as usize]);
            pass.cyclic(&part)?;
        }
    }
    Some((pass.class_of, pass.signatures.len()))
}

/// Pass over the components.
struct Pass<'a> {
    lts: &'a Lts,
    sets: SharedSets,
    maps: SharedMaps,
    class_of: Vec<u32>,
    /// Place of each state of the current cyclic component there.
    place: Vec<u32>,
    /// By class.
    signatures: Vec<Signature>,
    /// Classes by their signature, and by the part without the class itself.
    by_signature: AHashMap<Signature, u32>,
    by_steps: AHashMap<Signature, u32>,
    /// Classes that were created for a cyclic component, by component.
    cyclic: Vec<Vec<u32>>,
    /// Cyclic components by the visible labels that one of their classes has.
    by_labels: AHashMap<Vec<LabelId>, Vec<usize>>,
}

impl Pass<'_> {
    /// Determines the class of a state that is on no cycle.
    fn acyclic(&mut self, s: u32) {
        let (mut quiet, mut visible) = (EMPTY, EMPTY);
        for (label, t) in self.lts.successors(StateId::of(s)) {
            let (after_tau, after) = self.signatures[self.class_of[t.index()] as usize];
            if label == LabelId::TAU {
                quiet = self.sets.union(quiet, after_tau);
                visible = self.maps.union(visible, after, &mut self.sets);
            } else {
                let single = self.maps.single(label, after_tau);
                visible = self.maps.union(visible, single, &mut self.sets);
            }
        }
        let steps = (quiet, visible);
        let known = self.by_signature.get(&steps).or_else(|| self.by_steps.get(&steps)).copied();
        self.class_of[s as usize] = known.unwrap_or_else(|| {
            let own = self.sets.single(narrow::index(self.signatures.len()));
            let whole = (self.sets.union(quiet, own), visible);
            self.create(whole, steps)
        });
    }

    /// Creates a class. `steps`: its signature without the class among those after tau steps.
    fn create(&mut self, whole: Signature, steps: Signature) -> u32 {
        let class = narrow::index(self.signatures.len());
        self.signatures.push(whole);
        self.by_signature.insert(whole, class);
        self.by_steps.insert(steps, class);
        class
    }

    /// Determines the classes of a cyclic component.
    fn cyclic(&mut self, part: &[u32]) -> Option<()> {
        for (place, &s) in (0u32..).zip(part) {
            self.place[s as usize] = place;
        }
        let mark = self.mark();
        let (block_of, signatures) = self.refine_component(part);
        let classes = match self.earlier(&signatures)? {
            Some(classes) => {
                self.forget(mark);
                classes
            }
            None => {
                let first = self.signatures.len();
                let mut classes = Vec::new();
                for (block, &whole) in signatures.iter().enumerate() {
                    let own = self.sets.single(narrow::index(first + block));
                    let steps = (self.sets.difference(whole.0, own), whole.1);
                    classes.push(self.create(whole, steps));
                }
                let number = self.cyclic.len();
                for signature in &signatures {
                    let labels = self.labels(*signature);
                    let list = self.by_labels.entry(labels).or_default();
                    if list.last() != Some(&number) {
                        list.push(number);
                    }
                }
                self.cyclic.push(classes.clone());
                classes
            }
        };
        for (&s, block) in part.iter().zip(block_of) {
            self.place[s as usize] = NONE;
            self.class_of[s as usize] = classes[block as usize];
        }
        Some(())
    }

    fn mark(&self) -> (usize, usize) {
        (self.sets.mark(), self.maps.mark())
    }

    /// Drops the sets and maps that are newer than a mark.
    fn forget(&mut self, mark: (usize, usize)) {
        self.sets.forget(mark.0);
        self.maps.forget(mark.1);
    }

    /// Returns the visible labels of a signature, with tau if it diverges.
    fn labels(&self, signature: Signature) -> Vec<LabelId> {
        self.maps.entries(signature.1).into_iter().map(|e| e.0).collect()
    }

    /// Refines a component while all earlier classes are fixed. Returns the block of each state,
    /// and the signature of each block, in which block `b` is the class with number `b` of the
    /// next ones.
    fn refine_component(&mut self, part: &[u32]) -> (Vec<u32>, Vec<Signature>) {
        let first = self.signatures.len();
        let mark = self.mark();
        let mut block_of = vec![0u32; part.len()];
        let mut blocks = 1;
        let mut signatures: Vec<Signature> = vec![(EMPTY, EMPTY); part.len()];
        let mut moved = vec![true; part.len()];
        loop {
            if self.sets.mark() - mark.0 > MANY_NODES {
                self.forget(mark);
                moved.fill(true);
            }
            self.sign(part, first, &block_of, &moved, &mut signatures);
            let (next, count) = split(&block_of, blocks, &signatures);
            if count == blocks {
                break;
            }
            moved = block_of.iter().zip(&next).map(|(a, b)| a != b).collect();
            (block_of, blocks) = (next, count);
        }
        let mut of_block = vec![(EMPTY, EMPTY); blocks];
        for (block, signature) in block_of.iter().zip(signatures) {
            of_block[*block as usize] = signature;
        }
        (block_of, of_block)
    }

    /// Computes the signatures of the states that moved to another block, and of those with a step
    /// to a state with a new signature.
    fn sign(
        &mut self,
        part: &[u32],
        first: usize,
        block_of: &[u32],
        moved: &[bool],
        signatures: &mut [Signature],
    ) {
        let lts = self.lts;
        let mut new_quiet = vec![false; part.len()];
        let token = |at: usize| narrow::index(first + block_of[at] as usize);
        let inner = |place: &[u32], t: StateId| {
            Some(place[t.index()]).filter(|p| *p != NONE).map(|p| p as usize)
        };
        let tau_but_loops = |s: u32| {
            lts.successors(StateId::of(s))
                .filter(move |&(l, t)| l == LabelId::TAU && t.number() != s)
                .map(|(_, t)| t)
        };
        for (at, &s) in part.iter().enumerate() {
            let stale =
                tau_but_loops(s).any(|t| inner(&self.place, t).is_some_and(|p| new_quiet[p]));
            if !moved[at] && !stale {
                continue;
            }
            let mut quiet = self.sets.single(token(at));
            for t in tau_but_loops(s) {
                let more = match inner(&self.place, t) {
                    Some(p) => signatures[p].0,
                    None => self.signatures[self.class_of[t.index()] as usize].0,
                };
                quiet = self.sets.union(quiet, more);
            }
            new_quiet[at] = moved[at] || quiet != signatures[at].0;
            signatures[at].0 = quiet;
        }
        let mut new_visible = vec![false; part.len()];
        for (at, &s) in part.iter().enumerate() {
            let stale = |(l, t): (LabelId, StateId)| {
                inner(&self.place, t).is_some_and(|p| match l {
                    LabelId::TAU if p == at => moved[at],
                    LabelId::TAU => new_visible[p],
                    _ => new_quiet[p],
                })
            };
            // After `forget` all states have moved, and no signature is left.
            if !moved[at] && !lts.successors(StateId::of(s)).any(stale) {
                continue;
            }
            let mut visible = EMPTY;
            for (label, t) in lts.successors(StateId::of(s)) {
                let (after_tau, after) = match inner(&self.place, t) {
                    Some(p) => signatures[p],
                    None => self.signatures[self.class_of[t.index()] as usize],
                };
                let more = match label {
                    LabelId::TAU if t.number() == s => {
                        let own = self.sets.single(token(at));
                        self.maps.single(LabelId::TAU, own)
                    }
                    LabelId::TAU => after,
                    _ => self.maps.single(label, after_tau),
                };
                visible = self.maps.union(visible, more, &mut self.sets);
            }
            new_visible[at] = moved[at] || visible != signatures[at].1;
            signatures[at].1 = visible;
        }
    }

    /// Returns the earlier class of each block of a component; `None` inside if it has none. `None`
    /// if too many states would be compared.
    fn earlier(&mut self, blocks: &[Signature]) -> Option<Option<Vec<u32>>> {
        let labels = self.labels(blocks[0]);
        for number in self.by_labels.get(&labels).cloned().unwrap_or_default() {
            let classes = self.cyclic[number].clone();
            let vertices = blocks.len() + classes.len();
            if vertices.saturating_mul(vertices) > MAX_PAIRS {
                return None;
            }
            let mark = self.mark();
            let found = self.refined_together(blocks, &classes);
            self.forget(mark);
            if found.is_some() {
                return Some(found);
            }
        }
        Some(None)
    }

    /// Refines the blocks of a component and the classes of an earlier one together. Returns the
    /// class of each block if all are in one.
    fn refined_together(&mut self, blocks: &[Signature], classes: &[u32]) -> Option<Vec<u32>> {
        let first = self.signatures.len();
        let of_classes = classes.iter().map(|c| self.signatures[*c as usize]);
        let all: Vec<Signature> = blocks.iter().copied().chain(of_classes).collect();
        let numbers: Vec<u32> = (0..blocks.len())
            .map(|b| narrow::index(first + b))
            .chain(classes.iter().copied())
            .collect();
        let replaced = numbers.iter().fold(EMPTY, |set, n| {
            let single = self.sets.single(*n);
            self.sets.union(set, single)
        });
        let mut color_of = vec![0u32; all.len()];
        let mut colors = 1;
        loop {
            // Colors are numbers behind those of the blocks.
            let color = |at: usize| narrow::index(first + blocks.len() + color_of[at] as usize);
            let mut known: AHashMap<SharedSet, SharedSet> = AHashMap::new();
            let mut colored = |sets: &mut SharedSets, set: SharedSet| {
                *known.entry(set).or_insert_with(|| {
                    let mut out = sets.difference(set, replaced);
                    for (at, n) in numbers.iter().enumerate() {
                        if sets.contains(set, *n) {
                            let single = sets.single(color(at));
                            out = sets.union(out, single);
                        }
                    }
                    out
                })
            };
            let mut signatures = Vec::new();
            for (quiet, visible) in &all {
                let quiet = colored(&mut self.sets, *quiet);
                let mut map = EMPTY;
                for (label, set) in self.maps.entries(*visible) {
                    let set = colored(&mut self.sets, set);
                    let single = self.maps.single(label, set);
                    map = self.maps.union(map, single, &mut self.sets);
                }
                signatures.push((quiet, map));
            }
            let (next, count) = split(&color_of, colors, &signatures);
            if count == colors {
                break;
            }
            (color_of, colors) = (next, count);
        }
        let mut class_of_color = vec![None; colors];
        for (color, class) in color_of[blocks.len()..].iter().zip(classes) {
            class_of_color[*color as usize] = Some(*class);
        }
        color_of[..blocks.len()].iter().map(|c| class_of_color[*c as usize]).collect()
    }
}

/// Splits blocks by signatures; the largest part of a block keeps its number. Returns the block of
/// each state, and the number of blocks.
fn split(block_of: &[u32], blocks: usize, signatures: &[Signature]) -> (Vec<u32>, usize) {
    let mut parts: AHashMap<(u32, Signature), u32> = AHashMap::new();
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    let mut part_of = Vec::with_capacity(block_of.len());
    for (&block, &signature) in block_of.iter().zip(signatures) {
        let part = *parts.entry((block, signature)).or_insert_with(|| {
            sizes.push((block, 0));
            narrow::index(sizes.len() - 1)
        });
        sizes[part as usize].1 += 1;
        part_of.push(part);
    }
    let mut largest = vec![NONE; blocks];
    for (part, (block, size)) in (0u32..).zip(&sizes) {
        let known = &mut largest[*block as usize];
        if *known == NONE || sizes[*known as usize].1 < *size {
            *known = part;
        }
    }
    let mut count = blocks;
    let number: Vec<u32> = (0u32..)
        .zip(&sizes)
        .map(|(part, (block, _))| {
            if largest[*block as usize] == part {
                *block
            } else {
                count += 1;
                narrow::index(count - 1)
            }
        })
        .collect();
    (part_of.into_iter().map(|part| number[part as usize]).collect(), count)
}
