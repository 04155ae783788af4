//! Coarsest stable partition by signature refinement: strong and branching bisimulation.
//!
//! Blom and Orzan, "Distributed state space minimization" (2005): the signature of a state is the
//! set of its steps in terms of the current blocks; states of a block with different signatures are
//! separated until there are none. For branching bisimulation signatures are inductive (Blom and
//! van de Pol, "Distributed branching bisimulation minimization by inductive signatures", 2009): a
//! tau step that stays in the block counts as a step to the *signature* of its target, and a state
//! that can do no more than one such target takes over that target's signature. So no signature is
//! larger than its state's out-degree. The only possible target is the one with the latest
//! signature number, since signatures contain only numbers given out before their own. Differences:
//! a signature is recomputed only if it can have changed, and of the parts of a block the largest
//! keeps the block's name (Hopcroft; Valmari and Franceschinis 2010), so a transition is visited
//! again only when its target has moved to a part of at most half the size. Signatures are compared
//! as a whole, not by hash.
//!
//! Input: rows of visible and of (acyclic, descending) tau steps. Output: block of each state.
//! Cost: about O(transitions * log states * out-degree), each signature being sorted.
//!
//! Invariants between rounds: the states of a block that are not marked share one signature; a
//! marked state's signature contains a block name of the last round, or a tau step into a block
//! that it was part of, so it differs from that of the unmarked ones.

use rayon::prelude::*;

use super::signature::{Interner, SignatureEntry};
use super::tau::Rows;
use mu_base::ids::{AtomicMaybe, LabelId, StateId};
use mu_base::narrow;

/// System to be refined. `tau` and `tau_pred` are empty rows if tau counts as visible.
pub struct Graph<'a> {
    /// Row starts of the visible steps.
    pub offsets: &'a [u64],
    /// Labels of the visible steps.
    pub labels: &'a [LabelId],
    /// Targets of the visible steps.
    pub targets: &'a [StateId],
    /// Invisible steps; each leads to a smaller state.
    pub tau: Option<Rows<u32>>,
    /// States that diverge, if divergence counts; else empty.
    pub divergent: &'a [bool],
}

/// Number of marked states above which several threads evaluate a block together.
const BIG: usize = 1 << 13;

#[derive(Clone, Copy)]
struct Block {
    start: u32,
    end: u32,
    marked: u32,
}

/// True if all of `small` except `entry` is in `large`; both ascend.
fn subset_but(small: &[SignatureEntry], entry: SignatureEntry, large: &[SignatureEntry]) -> bool {
    if small.len() > large.len() + 1 {
        return false;
    }
    let mut rest = large.iter();
    small.iter().all(|&x| x == entry || rest.by_ref().find(|&&y| y >= x) == Some(&x))
}

struct Refiner<'a> {
    graph: &'a Graph<'a>,
    pred: Rows<u32>,
    tau_pred: Rows<u32>,
    elements: Vec<u32>,
    position: Vec<u32>,
    block_of: Vec<u32>,
    blocks: Vec<Block>,
    touched: Vec<u32>,
    /// Group of each marked state that was evaluated in this round.
    group: Vec<AtomicMaybe>,
    /// Last known state without tau steps inside the block, by block.
    bottom: Vec<AtomicMaybe>,
}

/// Refines until stable. Returns the number of blocks and the block of each state (in no particular
/// order).
pub fn refine(graph: &Graph, threads: usize) -> (usize, Vec<u32>) {
    let n = graph.offsets.len() - 1;
    if n == 0 {
        return (0, Vec::new());
    }
    let pred = Rows::build(n, || {
        (0..n).flat_map(|s| {
            graph.targets[graph.offsets[s] as usize..graph.offsets[s + 1] as usize]
                .iter()
                .map(move |t| (t.number(), narrow::index(s)))
        })
    });
    let tau_pred = match &graph.tau {
        Some(tau) => Rows::build(n, || {
            (0..narrow::index(n)).flat_map(|s| tau.row(s).iter().map(move |&t| (t, s)))
        }),
        None => Rows { offsets: vec![0; n + 1], items: Vec::new() },
    };
    let all: Vec<u32> = (0..narrow::index(n)).collect();
    let mut refiner = Refiner {
        graph,
        pred,
        tau_pred,
        elements: all.clone(),
        position: all,
        block_of: vec![0; n],
        blocks: vec![Block { start: 0, end: narrow::index(n), marked: narrow::index(n) }],
        touched: vec![0],
        group: if graph.tau.is_some() {
            (0..n).map(|_| AtomicMaybe::default()).collect()
        } else {
            Vec::new()
        },
        bottom: vec![AtomicMaybe::default()],
    };
    let pool = if threads > 1 {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()
    } else {
        None
    };
    match pool {
        Some(pool) => pool.install(|| refiner.run(threads)),
        None => refiner.run(1),
    }
    (refiner.blocks.len(), refiner.block_of)
}

/// Buffers of a thread that evaluates blocks.
#[derive(Default)]
struct RefinementWorker {
    signature: Vec<SignatureEntry>,
    interner: Interner<SignatureEntry>,
}

/// Result of evaluating blocks.
#[derive(Default)]
struct BlockGroups {
    /// Block, number of groups other than that of the unmarked states, number of entries in
    /// `groups` (its marked states, or 0).
    blocks: Vec<(u32, u32, u32)>,
    /// Groups of the marked states in their order; that of the unmarked ones has the number after
    /// the last.
    groups: Vec<u32>,
}

/// Buffers of `split`.
#[derive(Default)]
struct Scratch {
    sizes: Vec<u32>,
    starts: Vec<u32>,
    fill: Vec<u32>,
    states: Vec<u32>,
    /// The new blocks of the round with the blocks that they split from.
    moved: Vec<(u32, u32)>,
}

impl Refiner<'_> {
    fn run(&mut self, threads: usize) {
        let mut worker = RefinementWorker::default();
        let mut scratch = Scratch::default();
        let mut evaluated = BlockGroups::default();
        while !self.touched.is_empty() {
            let touched = std::mem::take(&mut self.touched);
            scratch.moved.clear();
            // Tau steps lead to smaller states: in ascending order, inherited signatures are
            // computed first.
            if self.graph.tau.is_some() {
                for &b in &touched {
                    let Block { start, marked, .. } = self.blocks[b as usize];
                    let range = start as usize..(start + marked) as usize;
                    self.elements[range.clone()].sort_unstable();
                    for i in range {
                        self.position[self.elements[i] as usize] = narrow::index(i);
                    }
                }
            }
            let total: usize =
                touched.iter().map(|&b| self.blocks[b as usize].marked as usize).sum();
            // Every signature of a round is in terms of the previous partition, so the splits come
            // after the last evaluation.
            if threads > 1 && total > BIG {
                for e in self.evaluate_all(&touched, (total / (threads * 8)).max(BIG / 4)) {
                    self.split_all(&e, &mut scratch);
                }
            } else {
                evaluated.blocks.clear();
                evaluated.groups.clear();
                for &b in &touched {
                    self.evaluate(b, &mut worker, &mut evaluated);
                }
                self.split_all(&evaluated, &mut scratch);
            }
            self.mark_after(&scratch.moved);
        }
    }

    /// Evaluates blocks in all threads: runs of blocks with together about `share` states are the
    /// tasks; a big block is divided if its states do not inherit from each other.
    fn evaluate_all(&self, touched: &[u32], share: usize) -> Vec<BlockGroups> {
        let mut results = Vec::new();
        let mut tasks: Vec<&[u32]> = Vec::new();
        let (mut from, mut size) = (0, 0);
        for (i, &b) in touched.iter().enumerate() {
            let marked = self.blocks[b as usize].marked as usize;
            if marked > BIG && self.graph.tau.is_none() {
                tasks.push(&touched[from..i]);
                (from, size) = (i + 1, 0);
                results.push(self.evaluate_shared(b, share));
                continue;
            }
            size += marked;
            if size >= share {
                tasks.push(&touched[from..=i]);
                (from, size) = (i + 1, 0);
            }
        }
        tasks.push(&touched[from..]);
        results.par_extend(tasks.into_par_iter().map(|blocks| {
            let mut worker = RefinementWorker::default();
            let mut evaluated = BlockGroups::default();
            for &b in blocks {
                self.evaluate(b, &mut worker, &mut evaluated);
            }
            evaluated
        }));
        results
    }

    /// Groups the marked states of a block by signature.
    fn evaluate(&self, block: u32, worker: &mut RefinementWorker, out: &mut BlockGroups) {
        let Block { start, marked, end } = self.blocks[block as usize];
        if end - start == 1 {
            out.blocks.push((block, 1, 0));
            return;
        }
        let RefinementWorker { signature, interner } = worker;
        interner.clear();
        let states = &self.elements[start as usize..(start + marked) as usize];
        let Some(tau) = &self.graph.tau else {
            for &s in states {
                self.own(s, signature);
                signature.sort_unstable();
                signature.dedup();
                out.groups.push(interner.intern(signature));
            }
            out.blocks.push((block, narrow::index(interner.len()), marked));
            return;
        };
        let first = out.groups.len();
        let mut rest = None; // group of the unmarked states, once needed
        for &s in states {
            self.own(s, signature);
            let mut last: Option<u32> = None; // group of an inert step's target with the latest number
            for &t in tau.row(s) {
                let to = self.block_of[t as usize];
                if to != block {
                    signature.push(SignatureEntry::step(LabelId::TAU, to));
                    continue;
                }
                let evaluated = self.group[t as usize].get();
                let g = evaluated.unwrap_or_else(|| {
                    *rest.get_or_insert_with(|| interner.intern(&self.unmarked_signature(t, block)))
                });
                signature.push(SignatureEntry::inert(g));
                last = last.max(Some(g));
            }
            signature.sort_unstable();
            signature.dedup();
            let g = match last {
                Some(last)
                    if subset_but(signature, SignatureEntry::inert(last), interner.get(last)) =>
                {
                    last
                }
                _ => interner.intern(signature),
            };
            self.group[s as usize].set(Some(g));
            out.groups.push(g);
        }
        for &s in states {
            self.group[s as usize].set(None);
        }
        let mut count = narrow::index(interner.len());
        if let Some(rest) = rest {
            // The unmarked states' group becomes the last, behind those that are counted.
            count -= 1;
            for g in &mut out.groups[first..] {
                *g = match (*g).cmp(&rest) {
                    std::cmp::Ordering::Less => *g,
                    std::cmp::Ordering::Equal => count,
                    std::cmp::Ordering::Greater => *g - 1,
                };
            }
        }
        out.blocks.push((block, count, marked));
    }

    /// Returns the common signature of the unmarked states of a block, given one of them.
    fn unmarked_signature(&self, state: u32, block: u32) -> Vec<SignatureEntry> {
        let bottom = self.bottom_from(state, block);
        let mut signature = Vec::new();
        self.own(bottom, &mut signature);
        if let Some(tau) = &self.graph.tau {
            signature.extend(
                tau.row(bottom)
                    .iter()
                    .map(|&t| SignatureEntry::step(LabelId::TAU, self.block_of[t as usize])),
            );
        }
        signature.sort_unstable();
        signature.dedup();
        signature
    }

    /// Returns an unmarked state of the block without tau steps inside it, starting from an
    /// unmarked one. Unmarked states reach only unmarked states by tau inside their block, and a
    /// state without such steps never gets one.
    fn bottom_from(&self, state: u32, block: u32) -> u32 {
        let tau = self.graph.tau.as_ref().expect("tau is invisible here");
        let Block { start, marked, .. } = self.blocks[block as usize];
        if let Some(hint) = self.bottom[block as usize].get()
            && self.block_of[hint as usize] == block
            && self.position[hint as usize] >= start + marked
        {
            return hint;
        }
        let mut s = state;
        while let Some(&t) = tau.row(s).iter().find(|&&t| self.block_of[t as usize] == block) {
            s = t;
        }
        self.bottom[block as usize].set(Some(s));
        s
    }

    /// Adds visible steps and divergence of a state itself.
    #[inline]
    fn own(&self, state: u32, signature: &mut Vec<SignatureEntry>) {
        let s = state as usize;
        signature.clear();
        let range = self.graph.offsets[s] as usize..self.graph.offsets[s + 1] as usize;
        for (l, t) in self.graph.labels[range.clone()].iter().zip(&self.graph.targets[range]) {
            signature.push(SignatureEntry::step(*l, self.block_of[t.index()]));
        }
        if self.graph.divergent.get(s) == Some(&true) {
            signature.push(SignatureEntry::divergence(0));
        }
    }

    /// Evaluates a block of independent states in all threads: each numbers its part, then the
    /// numbers are unified.
    fn evaluate_shared(&self, block: u32, share: usize) -> BlockGroups {
        let Block { start, marked, .. } = self.blocks[block as usize];
        let states = &self.elements[start as usize..(start + marked) as usize];
        let parts: Vec<(Vec<u32>, Interner<SignatureEntry>)> = states
            .par_chunks(share)
            .map(|part| {
                let RefinementWorker { mut signature, mut interner } = RefinementWorker::default();
                let number = |&s: &u32| {
                    self.own(s, &mut signature);
                    signature.sort_unstable();
                    signature.dedup();
                    interner.intern(&signature)
                };
                let groups = part.iter().map(number).collect();
                (groups, interner)
            })
            .collect();
        let mut groups = Vec::with_capacity(states.len());
        let mut interner = Interner::default();
        for (part, local) in parts {
            let names: Vec<u32> =
                (0..narrow::index(local.len())).map(|i| interner.intern(local.get(i))).collect();
            groups.extend(part.iter().map(|&g| names[g as usize]));
        }
        BlockGroups { blocks: vec![(block, narrow::index(interner.len()), marked)], groups }
    }

    fn split_all(&mut self, evaluated: &BlockGroups, scratch: &mut Scratch) {
        let mut from = 0;
        for &(block, count, len) in &evaluated.blocks {
            self.split(
                block,
                &evaluated.groups[from..from + len as usize],
                count as usize,
                scratch,
            );
            from += len as usize;
        }
    }

    /// Splits a block by the groups of its marked states.
    fn split(&mut self, block: u32, groups: &[u32], count: usize, scratch: &mut Scratch) {
        let Block { start, end, marked } = self.blocks[block as usize];
        self.blocks[block as usize].marked = 0;
        let unmarked = end - start - marked;
        if groups.is_empty() || (count == 1 && unmarked == 0) {
            return;
        }
        let Scratch { sizes, starts, fill, states, moved } = scratch;
        // The group after the last is that of the unmarked states.
        sizes.clear();
        sizes.resize(count + 1, 0);
        for &g in groups {
            sizes[g as usize] += 1;
        }
        sizes[count] += unmarked;
        starts.clear();
        let mut sum = start;
        for &size in sizes.iter() {
            starts.push(sum);
            sum += size;
        }
        fill.clone_from(starts);
        states.clear();
        states.extend_from_slice(&self.elements[start as usize..(start + marked) as usize]);
        for (&s, &g) in states.iter().zip(groups) {
            let slot = &mut fill[g as usize];
            self.elements[*slot as usize] = s;
            self.position[s as usize] = *slot;
            *slot += 1;
        }
        let keeper = (0..=count).max_by_key(|&g| sizes[g]).unwrap_or(count);
        for g in 0..=count {
            let (from, to) = (starts[g], starts[g] + sizes[g]);
            if g == keeper {
                self.blocks[block as usize] = Block { start: from, end: to, marked: 0 };
            } else if from < to {
                let id = narrow::index(self.blocks.len());
                self.blocks.push(Block { start: from, end: to, marked: 0 });
                self.bottom.push(AtomicMaybe::default());
                for i in from..to {
                    self.block_of[self.elements[i as usize] as usize] = id;
                }
                moved.push((id, block));
            }
        }
    }

    fn mark(&mut self, state: u32) -> bool {
        let b = self.block_of[state as usize];
        let block = &mut self.blocks[b as usize];
        let to = block.start + block.marked;
        let from = self.position[state as usize];
        if from < to || block.end - block.start == 1 {
            return false;
        }
        if block.marked == 0 {
            self.touched.push(b);
        }
        block.marked += 1;
        let other = self.elements[to as usize];
        self.elements.swap(from as usize, to as usize);
        self.position[state as usize] = to;
        self.position[other as usize] = from;
        true
    }

    /// Marks the states with signatures that may have changed because states moved to new blocks.
    fn mark_after(&mut self, moved: &[(u32, u32)]) {
        let graph = self.graph;
        let pred = std::mem::take(&mut self.pred);
        let tau_pred = std::mem::take(&mut self.tau_pred);
        let mut states = Vec::new();
        let mut work = Vec::new();
        for &(id, parent) in moved {
            let Block { start, end, .. } = self.blocks[id as usize];
            states.clear();
            states.extend_from_slice(&self.elements[start as usize..end as usize]);
            for &s in &states {
                for &p in pred.row(s) {
                    if self.mark(p) {
                        work.push(p);
                    }
                }
                for &p in tau_pred.row(s) {
                    if self.block_of[p as usize] != id && self.mark(p) {
                        work.push(p);
                    }
                }
                if let Some(tau) = &graph.tau
                    && tau.row(s).iter().any(|&t| self.block_of[t as usize] == parent)
                    && self.mark(s)
                {
                    work.push(s);
                }
            }
        }
        if graph.tau.is_some() {
            while let Some(s) = work.pop() {
                for &p in tau_pred.row(s) {
                    if self.block_of[p as usize] == self.block_of[s as usize] && self.mark(p) {
                        work.push(p);
                    }
                }
            }
        }
        (self.pred, self.tau_pred) = (pred, tau_pred);
    }
}
