//! Sequential product search over lazy transitions, the fallback of [`super::parallel_product`]: it
//! decides a conjunctive formula (dually a disjunctive one) by reachability in the product of model
//! and formula, without storing edges or building a game.
//!
//! A formula is conjunctive if each of its formula states is universal or can be decided at a
//! system state from its labels alone (such as `<true>true`). Then, if its recursive variables are
//! greatest fixed points, it is false iff a false obligation is reachable. Instead of pairs (system
//! state, formula state), each system state stores the *set* of obligations that ever reached it,
//! as one interned number. A state is revisited only with new obligations, and a step is a lookup
//! of (set, label). So memory is that of the state space plus 16 bytes a state, the distinct sets,
//! and a cache entry for each (set, label).
//!
//! With least fixed points, an infinite sequence of obligations is false too. If the transitions
//! that propagate such obligations have no cycle, the verdict stands; otherwise a game decides.
//!
//! Cost: (transitions) x (number of times that new obligations reach their source). Invariants:
//! `known` only grows; `pending` is part of `known`; "the model is acyclic" is used only if it was
//! established for all states that are known now ([`KnownCycles`]).

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::rules::{Effect, RuleCondition};
use super::transitions::LazyTransitions;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_formula::normal::{NodeId, Normal, NormalNode};
use mu_process::labels::ActionLabels;
use std::collections::VecDeque;

/// Treatment of a formula state in the search of a conjunctive (or disjunctive) formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObligationKind {
    /// It has the formula's connective: its successors are propagated along transitions.
    Propagated,
    /// The outgoing labels of a system state decide it there.
    Local,
}

/// Analysis of a formula for product searches.
#[derive(Clone, Debug)]
pub struct ProductAnalysis {
    /// True if the formula is conjunctive; else it is disjunctive.
    pub conjunctive: bool,
    /// Kinds of the nodes that can be automaton states.
    pub kinds: AHashMap<NodeId, ObligationKind>,
    /// Nodes on a cycle through a fixed point of the wrong sign (`mu` if conjunctive): an infinite
    /// sequence of such obligations makes a conjunctive formula false, a disjunctive one true.
    pub hostile: AHashSet<NodeId>,
}

/// Result of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProductResult {
    /// The formula is this constant.
    Verdict(bool),
    /// There is a cycle that may decide; a game is needed.
    Cycle,
    /// A limit.
    Stopped(Stop),
}

/// Analyses the formula states reachable from `roots` as parts of a conjunctive (or disjunctive)
/// formula; `None` if they do not suit the product search.
pub fn analyse(
    automaton: &Automaton,
    roots: &[FormulaState],
    conjunctive: bool,
) -> Option<ProductAnalysis> {
    let normal = automaton.normal();
    let rules = automaton.rules();
    let mut kinds = AHashMap::new();
    let mut stack: Vec<NodeId> = roots.iter().map(|q| automaton.node(*q)).collect();
    let mut calls: AHashMap<NodeId, Vec<NodeId>> = AHashMap::new();
    while let Some(node) = stack.pop() {
        if kinds.contains_key(&node) {
            continue;
        }
        let state = rules.states.get(&node)?;
        if state.universal == conjunctive {
            kinds.insert(node, ObligationKind::Propagated);
            let mut next = Vec::new();
            for rule in &state.rules {
                match (&rule.when, rule.effect) {
                    (_, Effect::Decide) => {}
                    (RuleCondition::Label(_), Effect::Here(_)) => return None,
                    (_, Effect::Here(n) | Effect::Step(n)) => {
                        successor_nodes(normal, n, conjunctive, &mut next)
                    }
                }
            }
            stack.extend(&next);
            calls.insert(node, next);
        } else if is_local(automaton, node, &mut Vec::new()) {
            kinds.insert(node, ObligationKind::Local);
        } else {
            return None;
        }
    }
    // Hostile: nodes on a cycle with a recursive variable of the wrong sign. A cycle that has
    // variables of the right sign as well counts as hostile: this is conservative, because
    // `ProductResult::Cycle` leaves the decision to the game.
    let wrong = |node: &NodeId| match normal.node(*node) {
        NormalNode::Head(fix) => {
            normal.fix(*fix).recursive && (normal.fix(*fix).rank % 2 == 1) == conjunctive
        }
        _ => false,
    };
    let mut hostile = AHashSet::new();
    let mut back: AHashMap<NodeId, Vec<NodeId>> = AHashMap::new();
    for (from, list) in &calls {
        for to in list {
            back.entry(*to).or_default().push(*from);
        }
    }
    for head in calls.keys().filter(|n| wrong(n)) {
        let forward = reach(&calls, *head);
        let backward = reach(&back, *head);
        hostile.extend(forward.intersection(&backward).copied());
    }
    // A disjunctive formula with greatest fixed points is true by an infinite path, which a game
    // finds without exploring everything.
    if !conjunctive && !hostile.is_empty() {
        return None;
    }
    Some(ProductAnalysis { conjunctive, kinds, hostile })
}

/// Returns the nodes that a path with at least one edge reaches.
fn reach(edges: &AHashMap<NodeId, Vec<NodeId>>, from: NodeId) -> AHashSet<NodeId> {
    let mut seen = AHashSet::new();
    let mut stack = vec![from];
    while let Some(n) = stack.pop() {
        for m in edges.get(&n).map_or(&[][..], |v| v) {
            if seen.insert(*m) {
                stack.push(*m);
            }
        }
    }
    seen
}

/// Collects the nodes that become formula states if a rule of a universal (or existential) formula
/// state continues with `node`. Tests are left out, since data decides them.
fn successor_nodes(normal: &Normal, node: NodeId, universal: bool, out: &mut Vec<NodeId>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match normal.node(node) {
        NormalNode::Const(_) | NormalNode::Val(_) => {}
        NormalNode::All(list) | NormalNode::Any(list) => {
            let own = matches!(normal.node(node), NormalNode::All(_)) == universal;
            let rest: Vec<NodeId> =
                list.iter().copied().filter(|n| !super::rules::is_test(normal, *n)).collect();
            if own || rest.len() == 1 {
                rest.iter().for_each(|n| successor_nodes(normal, *n, universal, out));
            } else if !rest.is_empty() {
                out.push(node);
            }
        }
        NormalNode::Call(fix, _) => out.push(normal.fix(*fix).head),
        _ => out.push(node),
    })
}

/// Limit on the nesting of a local formula. A deeper one counts as not local and needs a game: that
/// is slower, never wrong.
const MAX_LOCAL_DEPTH: usize = 64;

/// True if data and the outgoing labels of a system state decide a node.
fn is_local(automaton: &Automaton, node: NodeId, open: &mut Vec<NodeId>) -> bool {
    if open.contains(&node) || open.len() > MAX_LOCAL_DEPTH {
        return false;
    }
    let normal = automaton.normal();
    let Some(state) = automaton.rules().states.get(&node) else { return false };
    open.push(node);
    let local = state.rules.iter().all(|rule| {
        let mut next = Vec::new();
        match rule.effect {
            Effect::Decide => true,
            Effect::Step(n) => {
                successor_nodes(normal, n, state.universal, &mut next);
                next.is_empty()
            }
            Effect::Here(n) => {
                successor_nodes(normal, n, state.universal, &mut next);
                next.into_iter().all(|n| is_local(automaton, n, open))
            }
        }
    });
    open.pop();
    local
}

/// Returns the value of a local formula state at a system state with these outgoing transitions.
/// Appends transitions that suffice to show it to `witnesses`: one for a true `<a>true`, two for
/// `<a>true && <b>true`, none for a true `[a]false`.
pub fn local_value(
    automaton: &mut Automaton,
    q: FormulaState,
    transitions: &[(LabelId, StateId)],
    labels: &dyn ActionLabels,
    witnesses: &mut Vec<(LabelId, StateId)>,
) -> Result<bool, Diagnostic> {
    let universal = automaton.universal(q);
    let here = automaton.obligations_here(q)?;
    if here == ObligationSet::Decided {
        return Ok(!universal);
    }
    let before = witnesses.len();
    let mut next = automaton.set(here).to_vec();
    let label_dependent = automaton.depends_on_labels_here(q);
    for &(label, target) in transitions {
        let mut answer = automaton.step(q, label, labels)?;
        if label_dependent && answer != ObligationSet::Decided {
            answer = automaton.obligations_here_if(q, label, labels)?;
            next.extend(automaton.set(answer).iter());
        }
        if answer == ObligationSet::Decided {
            witnesses.truncate(before);
            witnesses.push((label, target));
            return Ok(!universal);
        }
    }
    for q in next {
        let mark = witnesses.len();
        if local_value(automaton, q, transitions, labels, witnesses)? != universal {
            // The witnesses of this part alone decide.
            witnesses.drain(before..mark);
            return Ok(!universal);
        }
    }
    Ok(universal)
}

/// Obligations at one system state, closed under those that they imply there. `T` represents a set.
#[derive(Clone, Copy, Debug)]
pub enum ObligationClosure<T> {
    /// One of them is decided: false in a conjunctive formula, true in a disjunctive one.
    Decided,
    /// None of them is decided by data.
    Open {
        /// Obligations with successors, or on hostile cycles.
        propagated: T,
        /// Obligations that the outgoing labels of the system state decide.
        local: T,
    },
}

impl ObligationClosure<Vec<FormulaState>> {
    /// Returns all obligations, the propagated ones first; `None` if one is decided.
    pub fn members(self) -> Option<Vec<FormulaState>> {
        match self {
            ObligationClosure::Decided => None,
            ObligationClosure::Open { mut propagated, local } => {
                propagated.extend(local);
                Some(propagated)
            }
        }
    }
}

/// Computes the closure of obligations at one system state.
pub fn closure(
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    members: &[FormulaState],
) -> Result<ObligationClosure<Vec<FormulaState>>, Diagnostic> {
    let mut seen: AHashSet<FormulaState> = AHashSet::new();
    let mut stack = members.to_vec();
    let (mut propagated, mut local) = (Vec::new(), Vec::new());
    while let Some(q) = stack.pop() {
        if !seen.insert(q) {
            continue;
        }
        let node = automaton.node(q);
        if analysis.kinds.get(&node) == Some(&ObligationKind::Local) {
            local.push(q);
            continue;
        }
        let here = automaton.obligations_here(q)?;
        if here == ObligationSet::Decided {
            return Ok(ObligationClosure::Decided);
        }
        stack.extend(automaton.set(here).iter());
        let steps = automaton.rules().states[&node]
            .rules
            .iter()
            .any(|r| matches!(r.effect, Effect::Step(_)));
        if steps || analysis.hostile.contains(&node) {
            propagated.push(q);
        }
    }
    Ok(ObligationClosure::Open { propagated, local })
}

/// True if hostile obligations of one system state imply each other in a cycle, as in `mu X. X`.
pub fn has_cycle_without_transitions(
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    members: &[FormulaState],
) -> Result<bool, Diagnostic> {
    // Depth-first with an explicit stack: an obligation, and those that it implies at the same
    // system state and that are not visited yet.
    let mut done = AHashSet::new();
    let mut open: AHashSet<FormulaState> = AHashSet::new();
    let mut path: Vec<(FormulaState, Vec<FormulaState>)> = Vec::new();
    for root in members {
        let mut enter = Some(*root);
        loop {
            if let Some(q) = enter.take()
                && analysis.hostile.contains(&automaton.node(q))
            {
                if open.contains(&q) {
                    return Ok(true);
                }
                if done.insert(q) {
                    open.insert(q);
                    let here = automaton.obligations_here(q)?;
                    path.push((q, automaton.set(here).to_vec()));
                }
            }
            let Some((q, left)) = path.last_mut() else { break };
            enter = left.pop();
            if enter.is_none() {
                open.remove(q);
                path.pop();
            }
        }
    }
    Ok(false)
}

/// Counts of a product search.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductCounts {
    /// Equations: pairs (system state, obligation).
    pub equations: u64,
    /// System states explored.
    pub states: u64,
    /// Transitions taken (a revisited state counts again).
    pub steps: u64,
    /// Order of the symmetry group; 0 or 1: none.
    pub symmetries: usize,
}

/// Cycles among the system states that a source knows. Several searches on one source share it; a
/// later search knows more states, so "no cycle" holds only for the states that were examined.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownCycles {
    /// The first states are examined, up to this number.
    examined: usize,
    /// A cycle was found.
    found: bool,
}

impl KnownCycles {
    /// True if the known states of the source have no cycle. Examines them if there are new ones.
    /// Cost: linear in the transitions, for each call with new states.
    fn is_acyclic(
        &mut self,
        source: &mut LazyTransitions,
        budget: &Budget,
    ) -> Result<Result<bool, Stop>, Diagnostic> {
        let n = source.state_count();
        if self.found || self.examined == n {
            return Ok(Ok(!self.found));
        }
        let mut transitions = Vec::new();
        let mut all = |s: u32, out: &mut Vec<u32>| -> Result<bool, Diagnostic> {
            source.successors(StateId::of(s), &mut transitions)?;
            // The search that calls has no obligations at states beyond the known ones.
            out.extend(transitions.iter().map(|t| t.1.number()).filter(|t| (*t as usize) < n));
            Ok(true)
        };
        match acyclic_search(n, budget, &mut all)? {
            Err(stop) => Ok(Err(stop)),
            Ok(acyclic) => {
                *self = Self { examined: n, found: !acyclic };
                Ok(Ok(acyclic))
            }
        }
    }
}

/// A product search.
pub struct Product<'a, 'm> {
    source: &'a mut LazyTransitions<'m>,
    labels: &'a dyn ActionLabels,
    automaton: &'a mut Automaton,
    analysis: &'a ProductAnalysis,
    /// Obligations that reached each state.
    known: Vec<ObligationSet>,
    /// Obligations that are not propagated yet.
    pending: Vec<ObligationSet>,
    closures: AHashMap<ObligationSet, ObligationClosure<ObligationSet>>,
    /// By propagated obligations and label: the closure of their successors.
    steps: AHashMap<(ObligationSet, LabelId), ObligationClosure<ObligationSet>>,
    /// By known and new obligations: all, and those that were not known.
    merges: AHashMap<(ObligationSet, ObligationSet), (ObligationSet, ObligationSet)>,
    hostile_part: AHashMap<ObligationSet, ObligationSet>,
    /// By hostile obligations: [`has_cycle_without_transitions`].
    cyclic: AHashMap<ObligationSet, bool>,
    /// Counts so far; this search has no symmetries.
    pub counts: ProductCounts,
    /// Work so far: steps taken, and members of the sets that were computed.
    pub work: u64,
}

impl<'a, 'm> Product<'a, 'm> {
    /// Creates a search.
    pub fn new(
        source: &'a mut LazyTransitions<'m>,
        labels: &'a dyn ActionLabels,
        automaton: &'a mut Automaton,
        analysis: &'a ProductAnalysis,
    ) -> Self {
        Self {
            source,
            labels,
            automaton,
            analysis,
            known: Vec::new(),
            pending: Vec::new(),
            closures: AHashMap::new(),
            steps: AHashMap::new(),
            merges: AHashMap::new(),
            hostile_part: AHashMap::new(),
            cyclic: AHashMap::new(),
            counts: ProductCounts::default(),
            work: 0,
        }
    }

    /// Returns the obligations by state.
    pub fn into_known(self) -> Vec<ObligationSet> {
        self.known
    }

    /// Returns the closure of obligations at one system state.
    fn closure(
        &mut self,
        set: ObligationSet,
    ) -> Result<ObligationClosure<ObligationSet>, Diagnostic> {
        if set == ObligationSet::Decided {
            return Ok(ObligationClosure::Decided);
        }
        if let Some(&c) = self.closures.get(&set) {
            return Ok(c);
        }
        let members = self.automaton.set(set);
        self.work += members.len() as u64;
        let result = match closure(self.automaton, self.analysis, &members)? {
            ObligationClosure::Decided => ObligationClosure::Decided,
            ObligationClosure::Open { propagated, local } => ObligationClosure::Open {
                propagated: self.automaton.intern_set(propagated),
                local: self.automaton.intern_set(local),
            },
        };
        self.closures.insert(set, result);
        Ok(result)
    }

    /// Returns the closure of the successors of propagated obligations along a label.
    fn step(
        &mut self,
        set: ObligationSet,
        label: LabelId,
    ) -> Result<ObligationClosure<ObligationSet>, Diagnostic> {
        if let Some(&r) = self.steps.get(&(set, label)) {
            return Ok(r);
        }
        let mut next = Vec::new();
        let mut result = None;
        let members = self.automaton.set(set);
        self.work += members.len() as u64;
        for q in members.iter() {
            let answer = self.automaton.step(*q, label, self.labels)?;
            if answer == ObligationSet::Decided {
                result = Some(ObligationClosure::Decided);
                break;
            }
            next.extend(self.automaton.set(answer).iter());
        }
        let result = match result {
            Some(r) => r,
            None => {
                let set = self.automaton.intern_set(next);
                self.closure(set)?
            }
        };
        self.steps.insert((set, label), result);
        Ok(result)
    }

    /// Returns `(known + new, new - known)`.
    fn merge(
        &mut self,
        known: ObligationSet,
        new: ObligationSet,
    ) -> (ObligationSet, ObligationSet) {
        if new == ObligationSet::EMPTY || new == known {
            return (known, ObligationSet::EMPTY);
        }
        if known == ObligationSet::EMPTY {
            return (new, new);
        }
        if let Some(&r) = self.merges.get(&(known, new)) {
            return r;
        }
        let old = self.automaton.set(known);
        let fresh: Vec<FormulaState> = self
            .automaton
            .set(new)
            .iter()
            .copied()
            .filter(|q| old.binary_search(q).is_err())
            .collect();
        let all: Vec<FormulaState> = old.iter().chain(&fresh).copied().collect();
        self.work += all.len() as u64;
        let r = (self.automaton.intern_set(all), self.automaton.intern_set(fresh));
        self.merges.insert((known, new), r);
        r
    }

    /// Adds obligations to a state, and queues it if one of them is new.
    fn add_obligations(
        &mut self,
        state: StateId,
        propagated: ObligationSet,
        local: ObligationSet,
        queue: &mut VecDeque<StateId>,
    ) {
        let i = state.index();
        if self.known.len() <= i {
            self.known.resize(i + 1, ObligationSet::EMPTY);
            self.pending.resize(i + 1, ObligationSet::EMPTY);
        }
        let both = if local == ObligationSet::EMPTY {
            propagated
        } else if propagated == ObligationSet::EMPTY {
            local
        } else {
            self.merge(propagated, local).0
        };
        let (known, new) = self.merge(self.known[i], both);
        if new == ObligationSet::EMPTY {
            return;
        }
        self.known[i] = known;
        if self.pending[i] == ObligationSet::EMPTY {
            queue.push_back(state);
        }
        self.pending[i] = self.merge(self.pending[i], new).0;
    }

    /// Searches from the initial state with the given obligations. `cycles` belongs to the source.
    pub fn run(
        &mut self,
        roots: &[FormulaState],
        cycles: &mut KnownCycles,
        budget: &Budget,
    ) -> Result<ProductResult, Diagnostic> {
        let mut queue = VecDeque::new();
        let set = self.automaton.intern_set(roots.to_vec());
        let ObligationClosure::Open { propagated, local } = self.closure(set)? else {
            return Ok(ProductResult::Verdict(!self.analysis.conjunctive));
        };
        let initial = self.source.initial();
        self.add_obligations(initial, propagated, local, &mut queue);
        let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
        let mut polls = 0u64;
        let mut witnesses = Vec::new();
        while let Some(state) = queue.pop_front() {
            polls += 1;
            if polls.is_multiple_of(1024) {
                let stop = budget.check(self.source.state_count() as u64).and_then(|()| {
                    if polls.is_multiple_of(64 * 1024) { budget.check_memory() } else { Ok(()) }
                });
                if let Err(stop) = stop {
                    self.update_counts();
                    return Ok(ProductResult::Stopped(stop));
                }
            }
            let set = std::mem::replace(&mut self.pending[state.index()], ObligationSet::EMPTY);
            self.source.successors(state, &mut transitions)?;
            self.work += 1 + transitions.len() as u64;
            // Local obligations are in the same set; remove them.
            let ObligationClosure::Open { propagated, local } = self.closure(set)? else {
                return Err(Diagnostic::internal("a decided obligation is pending"));
            };
            if local != ObligationSet::EMPTY {
                for q in self.automaton.set(local).iter() {
                    witnesses.clear();
                    if local_value(self.automaton, *q, &transitions, self.labels, &mut witnesses)?
                        != self.analysis.conjunctive
                    {
                        self.update_counts();
                        return Ok(ProductResult::Verdict(!self.analysis.conjunctive));
                    }
                }
            }
            if propagated == ObligationSet::EMPTY {
                continue;
            }
            self.counts.steps += transitions.len() as u64;
            for &(label, target) in &transitions {
                let ObligationClosure::Open { propagated, local } = self.step(propagated, label)?
                else {
                    self.update_counts();
                    return Ok(ProductResult::Verdict(!self.analysis.conjunctive));
                };
                self.add_obligations(target, propagated, local, &mut queue);
            }
        }
        self.update_counts();
        if self.analysis.hostile.is_empty() {
            return Ok(ProductResult::Verdict(self.analysis.conjunctive));
        }
        let model_is_acyclic = match cycles.is_acyclic(self.source, budget)? {
            Err(stop) => return Ok(ProductResult::Stopped(stop)),
            Ok(acyclic) => acyclic,
        };
        let mut transitions = Vec::new();
        let n = self.known.len();
        let mut hostile_steps = |s: u32, out: &mut Vec<u32>| -> Result<bool, Diagnostic> {
            let hostile = self.hostile(self.known[s as usize]);
            if hostile == ObligationSet::EMPTY {
                return Ok(true);
            }
            // A cycle without transitions, `mu X. X`.
            if self.is_cyclic(hostile)? {
                return Ok(false);
            }
            if model_is_acyclic {
                return Ok(true);
            }
            self.source.successors(StateId::of(s), &mut transitions)?;
            self.work += transitions.len() as u64;
            for &(label, target) in &transitions {
                if let ObligationClosure::Open { propagated, .. } = self.step(hostile, label)?
                    && self.hostile(propagated) != ObligationSet::EMPTY
                {
                    out.push(target.number());
                }
            }
            Ok(true)
        };
        match acyclic_search(n, budget, &mut hostile_steps)? {
            Err(stop) => Ok(ProductResult::Stopped(stop)),
            Ok(true) => Ok(ProductResult::Verdict(self.analysis.conjunctive)),
            Ok(false) => Ok(ProductResult::Cycle),
        }
    }

    /// Computes the numbers of equations and states from `known`.
    fn update_counts(&mut self) {
        let mut sizes: AHashMap<ObligationSet, u64> = AHashMap::new();
        let mut counts = ProductCounts { steps: self.counts.steps, ..ProductCounts::default() };
        for set in &self.known {
            let size = *sizes.entry(*set).or_insert_with(|| self.automaton.set(*set).len() as u64);
            counts.equations += size;
            counts.states += u64::from(size > 0);
        }
        self.counts = counts;
    }

    /// Returns the part of a set on hostile cycles of the formula.
    fn hostile(&mut self, set: ObligationSet) -> ObligationSet {
        if let Some(&a) = self.hostile_part.get(&set) {
            return a;
        }
        let part = self
            .automaton
            .set(set)
            .iter()
            .copied()
            .filter(|q| self.analysis.hostile.contains(&self.automaton.node(*q)))
            .collect();
        let answer = self.automaton.intern_set(part);
        self.hostile_part.insert(set, answer);
        answer
    }

    /// Caches [`has_cycle_without_transitions`].
    fn is_cyclic(&mut self, set: ObligationSet) -> Result<bool, Diagnostic> {
        if let Some(&answer) = self.cyclic.get(&set) {
            return Ok(answer);
        }
        let members = self.automaton.set(set);
        let answer = has_cycle_without_transitions(self.automaton, self.analysis, &members)?;
        self.cyclic.insert(set, answer);
        Ok(answer)
    }
}

/// Appends the successors of a vertex. Returns false if the vertex itself has a cycle of
/// obligations without transitions; the search then ends.
type Edges<'a> = dyn FnMut(u32, &mut Vec<u32>) -> Result<bool, Diagnostic> + 'a;

/// Searches a graph over `0..n` depth first; true if it has no cycle.
fn acyclic_search(
    n: usize,
    budget: &Budget,
    edges: &mut Edges,
) -> Result<Result<bool, Stop>, Diagnostic> {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut colour = vec![NEW; n];
    let mut polls = 0u64;
    // A frame is a vertex and the start of its unvisited successors; those of all frames are on one
    // stack.
    let mut frames: Vec<(u32, usize)> = Vec::new();
    let mut unvisited: Vec<u32> = Vec::new();
    for root in 0..n {
        let mut enter = (colour[root] == NEW).then_some(narrow::index(root));
        loop {
            if let Some(s) = enter.take() {
                polls += 1;
                if polls.is_multiple_of(1024)
                    && let Err(stop) = budget.check(0)
                {
                    return Ok(Err(stop));
                }
                colour[s as usize] = OPEN;
                frames.push((s, unvisited.len()));
                if !edges(s, &mut unvisited)? {
                    return Ok(Ok(false));
                }
            }
            let Some(&(s, from)) = frames.last() else { break };
            if unvisited.len() == from {
                colour[s as usize] = DONE;
                frames.pop();
                continue;
            }
            let t = unvisited.pop().expect("a frame has vertices above its start");
            match colour[t as usize] {
                OPEN => return Ok(Ok(false)),
                NEW => enter = Some(t),
                _ => {}
            }
        }
    }
    Ok(Ok(true))
}
