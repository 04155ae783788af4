//! Proof of a formula by pairs of components: an invariant of which local states of each two
//! components occur together.
//!
//! In: a model, a formula. Out: a proof ([`PairProof`]), or the reason why there is none; a formula
//! is never false by this method. A *node* is a set of obligations of the formula, with the pairs
//! of local states with which it is reached (`relations`). A step of a group is taken from local
//! states of its parts (`joint`) if all pairs of them are known, and each other component has a
//! local state that is known to occur with all of them. Afterwards the new local states occur with
//! each other, and with those of the other components. After a step to another node, pairs of other
//! components are those that occur with all parts. If an obligation is decided after a step, there
//! is no proof.
//!
//! *Invariant.* For each path of the model and each obligation at its end, there is a node with the
//! obligation of which the relations contain all pairs of local states at the end. *Proof.* By
//! induction over steps: all pairs before the step are known, so the step is taken, and all pairs
//! after it are of the kinds above. ∎ So the relations cover all reachable states, and more: three
//! local states may occur together if each two do. (Invariants of pairs: Clarke, *Synthesis of
//! resource invariants*, 1980; Namjoshi, *Symmetry and completeness in the analysis of
//! parameterized systems*, 2007.)
//!
//! At the end, random walks of the model check the invariant with other code (`audit`).
//!
//! Cost: quadratic in local states, where states are their product. Steps of one component are
//! taken first, since they add most pairs; a step of several is repeated if pairs of its parts have
//! been added since it was taken.

mod audit;
mod joint;
mod relations;

use super::automaton::{Automaton, FormulaState, Start};
use super::product::{ObligationKind, analyse, closure};
use super::symbolic::Obligations;
use ahash::{AHashMap, AHashSet};
use joint::Joints;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic};
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use mu_process::labels::ActionLabels;
use mu_symbolic::Observer;
use relations::{Bits, Relations};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

/// Limit on pairs over all nodes.
const MAX_PAIRS: u64 = 60_000_000;
/// Visits of local states after which the limits are checked.
const VISITS: u32 = 256;

/// A proof by pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairProof {
    /// Pairs of local states over all nodes.
    pub pairs: u64,
    /// Local states of all components.
    pub local_states: usize,
    /// Sets of obligations.
    pub nodes: usize,
    /// Steps of random walks that have confirmed the invariant.
    pub audited: u64,
}

/// Result of a search for a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairResult {
    /// The formula is true.
    Proved(PairProof),
    /// There is no proof, for this reason; the formula may be true or false.
    Open(String),
}

/// Reason for the end of an exploration.
enum Stopped {
    Open(String),
    Failed(Diagnostic),
}

impl From<Diagnostic> for Stopped {
    fn from(why: Diagnostic) -> Self {
        Self::Failed(why)
    }
}

/// Shows a formula without least fixed points and choices by pairs of components.
///
/// # Errors
/// The formula cannot be compiled, or the audit finds a state that the invariant does not cover.
/// Limits, and values that cannot be evaluated in combinations that may be unreachable, leave the
/// formula open.
pub fn prove_by_pairs(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    budget: &Budget,
) -> Result<PairResult, Diagnostic> {
    let open = |text: &str| Ok(PairResult::Open(text.into()));
    let mut automaton = Automaton::new(formula)?.with_budget(budget);
    let roots = match automaton.start()? {
        Start::Constant(true) => return Ok(PairResult::Proved(PairProof::default())),
        Start::States(true, roots) => roots,
        _ => return open("the formula is no conjunction"),
    };
    let Some(analysis) = analyse(&automaton, &roots, true) else {
        return open("the formula has choices");
    };
    if analysis.kinds.values().any(|kind| *kind == ObligationKind::Local) {
        return open("the formula depends on the labels that leave a state");
    }
    if !analysis.hostile.is_empty() {
        return open("the formula has a least fixed point");
    }
    let Some(start) = closure(&mut automaton, &analysis, &roots)?.members() else {
        return open("the formula is decided at first");
    };
    let Some(joints) = Joints::new(model) else { return open("the model has one component") };
    let observer = Obligations::new(automaton, labels, analysis, false);
    let mut search = PairSearch {
        model,
        observer,
        joints,
        nodes: Vec::new(),
        numbers: AHashMap::new(),
        classes: AHashMap::new(),
        steps: AHashMap::new(),
        after: AHashMap::new(),
        clock: 1,
        visits: 0,
        hashers: [RandomState::new(), RandomState::new()],
        budget,
    };
    let start = search.node(start.into_iter().map(FormulaState::number).collect());
    match search.explore(start) {
        Ok(()) => {}
        Err(Stopped::Open(why)) => return Ok(PairResult::Open(why)),
        Err(Stopped::Failed(why)) => {
            let text = why.stop.map_or(why.message, |stop| stop.word().into());
            return Ok(PairResult::Open(text));
        }
    }
    let audited = search.audit(start)?;
    Ok(PairResult::Proved(PairProof {
        pairs: search.pairs(),
        local_states: search.joints.local_count(),
        nodes: search.nodes.len(),
        audited,
    }))
}

/// A set of obligations, with the pairs of local states with which it is reached.
struct Node {
    /// Obligations, ascending.
    set: Rc<[u32]>,
    relations: Relations,
    /// True for groups with steps to other nodes.
    leaves: Vec<bool>,
    /// Pairs when the steps to other nodes were taken last.
    left: u64,
    /// Pairs of unchanged components that other nodes have from here, while steps to these are
    /// taken: by node, hashes of two kinds.
    moved: AHashSet<(usize, [u64; 2])>,
}

struct PairSearch<'a> {
    model: &'a dyn Model,
    observer: Obligations<'a>,
    joints: Joints<'a>,
    nodes: Vec<Node>,
    numbers: AHashMap<Rc<[u32]>, usize>,
    /// Representatives of labels.
    classes: AHashMap<LabelId, LabelId>,
    /// Obligations after a label, by obligation and representative; `None`: decided.
    steps: AHashMap<(u32, LabelId), Option<Rc<[u32]>>>,
    /// Nodes after a label, by node and representative.
    after: AHashMap<(usize, LabelId), Rc<[usize]>>,
    clock: u32,
    visits: u32,
    hashers: [RandomState; 2],
    budget: &'a Budget,
}

/// A choice of local states for the parts of a group, in the order of the parts.
struct Chosen<'c> {
    group: usize,
    locals: &'c [u32],
    /// True to take the steps to other nodes, false for the others.
    leaves: bool,
}

impl PairSearch<'_> {
    /// Returns the node of a set of obligations.
    fn node(&mut self, mut set: Vec<u32>) -> usize {
        set.sort_unstable();
        set.dedup();
        let set: Rc<[u32]> = set.into();
        if let Some(at) = self.numbers.get(&set) {
            return *at;
        }
        let at = self.nodes.len();
        self.nodes.push(Node {
            set: set.clone(),
            relations: Relations::new(self.joints.component_count()),
            leaves: vec![false; self.joints.groups.len()],
            left: 0,
            moved: AHashSet::new(),
        });
        self.numbers.insert(set, at);
        at
    }

    fn pairs(&self) -> u64 {
        self.nodes.iter().map(|n| n.relations.pairs).sum()
    }

    fn explore(&mut self, start: usize) -> Result<(), Stopped> {
        let first = self.joints.locals(&self.model.initial());
        for (a, x) in first.iter().enumerate() {
            for (b, y) in first.iter().enumerate().skip(a + 1) {
                self.nodes[start].relations.add_pair((a, *x), (b, *y), self.clock);
            }
        }
        loop {
            let mut changed = false;
            let mut at = 0;
            while at < self.nodes.len() {
                changed |= self.saturate(at)?;
                if self.nodes[at].left != self.nodes[at].relations.pairs {
                    self.nodes[at].left = self.nodes[at].relations.pairs;
                    self.nodes[at].moved.clear();
                    for g in 0..self.joints.groups.len() {
                        if self.nodes[at].leaves[g] {
                            self.choose(at, g, &mut Vec::new(), None, true)?;
                        }
                    }
                    changed = true;
                }
                at += 1;
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// Takes all steps that stay in a node. True if there are new pairs.
    fn saturate(&mut self, at: usize) -> Result<bool, Stopped> {
        let mut changed = false;
        let relations = &self.nodes[at].relations;
        if relations.alone.is_empty() && relations.joint.is_empty() {
            return Ok(false);
        }
        loop {
            self.visits += 1;
            if self.visits.is_multiple_of(VISITS) {
                self.check_limits()?;
            }
            if let Some((a, x)) = self.nodes[at].relations.alone.pop() {
                self.visit_alone(at, a, x)?;
            } else if let Some((a, x)) = self.nodes[at].relations.joint.pop_front() {
                self.visit_joint(at, a, x)?;
            } else {
                break;
            }
            changed = true;
        }
        // Groups without parts.
        for g in 0..self.joints.groups.len() {
            if self.joints.groups[g].parts.is_empty() {
                self.take(at, &Chosen { group: g, locals: &[], leaves: false })?;
            }
        }
        Ok(changed)
    }

    fn check_limits(&self) -> Result<(), Stopped> {
        self.budget.check(0).map_err(Diagnostic::stopped)?;
        if self.visits.is_multiple_of(64 * VISITS) {
            self.budget.check_memory().map_err(Diagnostic::stopped)?;
        }
        if self.pairs() > MAX_PAIRS {
            return Err(Stopped::Open(format!("there are more than {MAX_PAIRS} pairs")));
        }
        Ok(())
    }

    /// Visits a local state for steps of its component alone: the pairs since the last visit.
    fn visit_alone(&mut self, at: usize, a: usize, x: u32) -> Result<(), Stopped> {
        let mask = std::mem::take(&mut self.nodes[at].relations.change(a, x).alone);
        let others = (0..self.joints.component_count()).filter(|b| mask >> b & 1 == 1);
        let others: Vec<usize> = others.collect();
        for i in 0..self.joints.uses(a).len() {
            let (g, _) = self.joints.uses(a)[i];
            let parts = &self.joints.groups[g].parts;
            if parts.len() != 1 || !parts[0].enabled.contains(x) {
                continue;
            }
            let answers = self.joints.answers(g, &[x])?;
            for (label, written) in answers.iter() {
                let targets = self.nodes_after(at, *label)?;
                self.nodes[at].leaves[g] |= targets.iter().any(|to| *to != at);
                let new = self.joints.after(g, 0, x, written[0]);
                if new == x || !targets.contains(&at) {
                    continue;
                }
                let relations = &mut self.nodes[at].relations;
                for b in &others {
                    let row = relations.row(a, x, *b).clone();
                    relations.add((a, new), *b, &row, self.clock);
                }
            }
        }
        Ok(())
    }

    /// Visits a local state for steps of its component with others.
    fn visit_joint(&mut self, at: usize, a: usize, x: u32) -> Result<(), Stopped> {
        self.clock += 1;
        let clock = self.clock;
        let change = self.nodes[at].relations.change(a, x);
        change.joint = false;
        change.visited = clock;
        for i in 0..self.joints.uses(a).len() {
            let (g, part) = self.joints.uses(a)[i];
            let parts = &self.joints.groups[g].parts;
            if parts.len() > 1 && parts[part].enabled.contains(x) {
                self.choose(at, g, &mut Vec::new(), Some((part, x)), false)?;
            }
        }
        Ok(())
    }

    /// Takes the steps of a group for all choices of local states that extend `locals`. `fixed`:
    /// the local state of one part, of which the visit is under way.
    fn choose(
        &mut self,
        at: usize,
        g: usize,
        locals: &mut Vec<u32>,
        fixed: Option<(usize, u32)>,
        leaves: bool,
    ) -> Result<(), Stopped> {
        let next = locals.len();
        let parts = &self.joints.groups[g].parts;
        if next == parts.len() {
            if fixed.is_none() || self.is_due(at, g, locals) {
                self.take(at, &Chosen { group: g, locals, leaves })?;
            }
            return Ok(());
        }
        let relations = &self.nodes[at].relations;
        let part = &parts[next];
        let candidates: Vec<u32> = match fixed {
            Some((own, x)) if own == next => {
                let known = |(p, y): (&joint::Part, &u32)| {
                    relations.row(p.component, *y, part.component).contains(x)
                };
                if parts.iter().zip(locals.iter()).all(known) { vec![x] } else { Vec::new() }
            }
            _ => {
                let mut all = part.enabled.clone();
                all.intersect(&relations.present[part.component]);
                for (p, y) in parts.iter().zip(locals.iter()) {
                    all.intersect(relations.row(p.component, *y, part.component));
                }
                if let Some((own, x)) = fixed {
                    all.intersect(relations.row(parts[own].component, x, part.component));
                }
                all.iter().collect()
            }
        };
        for local in candidates {
            locals.push(local);
            self.choose(at, g, locals, fixed, leaves)?;
            locals.pop();
        }
        Ok(())
    }

    /// True if pairs of these local states have been added since the last visit of one of them
    /// before the current one, which has taken their steps.
    fn is_due(&self, at: usize, g: usize, locals: &[u32]) -> bool {
        let all = &self.nodes[at].relations.changes;
        let parts = self.joints.groups[g].parts.iter().zip(locals);
        let (mut grown, mut visited) = (0, 0);
        for (part, local) in parts {
            let change = &all[part.component][*local as usize];
            grown = grown.max(change.grown);
            if change.visited < self.clock {
                visited = visited.max(change.visited);
            }
        }
        grown >= visited
    }

    /// Takes the steps of a group from chosen local states.
    fn take(&mut self, at: usize, chosen: &Chosen) -> Result<(), Stopped> {
        let g = chosen.group;
        if self.joints.find_answers(g, chosen.locals).is_some_and(|known| known.is_empty()) {
            return Ok(());
        }
        let Some(others) = self.find_others(at, chosen) else { return Ok(()) };
        let answers = self.joints.answers(g, chosen.locals)?;
        let mut hash = None;
        for (label, written) in answers.iter() {
            let targets = self.nodes_after(at, *label)?;
            self.nodes[at].leaves[g] |= targets.iter().any(|to| *to != at);
            let mut new: Vec<(usize, u32)> = Vec::with_capacity(written.len());
            for (i, written) in written.iter().enumerate() {
                let component = self.joints.groups[g].parts[i].component;
                new.push((component, self.joints.after(g, i, chosen.locals[i], *written)));
            }
            for to in targets.iter().copied().filter(|to| (*to != at) == chosen.leaves) {
                let relations = &mut self.nodes[to].relations;
                for (i, own) in new.iter().enumerate() {
                    for other in &new[i + 1..] {
                        relations.add_pair(*own, *other, self.clock);
                    }
                    for (k, all) in &others {
                        relations.add(*own, *k, all, self.clock);
                    }
                }
                if to != at {
                    let hashers = &self.hashers;
                    let hash = *hash
                        .get_or_insert_with(|| hashers.each_ref().map(|own| own.hash_one(&others)));
                    if self.nodes[at].moved.insert((to, hash)) {
                        self.carry(at, to, &others);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the pairs of components that take no part in a step to another node.
    fn carry(&mut self, from: usize, to: usize, others: &[(usize, Bits)]) {
        for (i, (a, own)) in others.iter().enumerate() {
            for (b, all) in &others[i + 1..] {
                for x in own.iter() {
                    let mut with = all.clone();
                    with.intersect(self.nodes[from].relations.row(*a, x, *b));
                    self.nodes[to].relations.add((*a, x), *b, &with, self.clock);
                }
            }
        }
    }

    /// Computes for each component that takes no part in a step the local states that occur with
    /// all of those that do; `None` if there is none for one.
    fn find_others(&self, at: usize, chosen: &Chosen) -> Option<Vec<(usize, Bits)>> {
        let parts = &self.joints.groups[chosen.group].parts;
        let relations = &self.nodes[at].relations;
        let mut out = Vec::new();
        for k in 0..self.joints.component_count() {
            if parts.iter().any(|p| p.component == k) {
                continue;
            }
            let mut with = Bits::default();
            let mut rows = parts.iter().zip(chosen.locals);
            match rows.next() {
                Some((p, y)) => with.assign(relations.row(p.component, *y, k)),
                None => with.assign(&relations.present[k]),
            }
            rows.for_each(|(p, y)| with.intersect(relations.row(p.component, *y, k)));
            if with.is_empty() {
                return None;
            }
            out.push((k, with));
        }
        Some(out)
    }

    /// Returns the nodes after a label: sets of obligations that hold together.
    fn nodes_after(&mut self, at: usize, label: LabelId) -> Result<Rc<[usize]>, Stopped> {
        let class = match self.classes.get(&label) {
            Some(class) => *class,
            None => {
                let class = self.observer.class(label)?;
                self.classes.insert(label, class);
                class
            }
        };
        if let Some(known) = self.after.get(&(at, class)) {
            return Ok(known.clone());
        }
        let mut sets: Vec<Rc<[u32]>> = Vec::new();
        for q in self.nodes[at].set.clone().iter() {
            let known = self.steps.get(&(*q, class)).cloned();
            let after = match known {
                Some(known) => known,
                None => {
                    let found = self.observer.step(*q, class)?;
                    self.steps.insert((*q, class), found.clone());
                    found
                }
            };
            match after {
                Some(set) if set.is_empty() => {}
                Some(set) => sets.push(set),
                None => return Err(Stopped::Open("a violation may be reachable".into())),
            }
        }
        sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
        let mut kept: Vec<Rc<[u32]>> = Vec::new();
        for set in sets {
            let within = |all: &Rc<[u32]>| set.iter().all(|q| all.binary_search(q).is_ok());
            if !kept.iter().any(within) {
                kept.push(set);
            }
        }
        let out: Rc<[usize]> = kept.into_iter().map(|set| self.node(set.to_vec())).collect();
        self.after.insert((at, class), out.clone());
        Ok(out)
    }
}
