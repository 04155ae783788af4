//! Sequential product search over lazy transitions, the fallback of [`super::parallel_product`]: it
//! decides a conjunctive formula (dually a disjunctive one) by reachability in the product of model
//! and formula, without storing edges or building a game.
//!
//! A formula is conjunctive if each of its automaton states is universal or can be decided at a
//! system state from its labels alone (such as `<true>true`). Then, if its recursive variables are
//! greatest fixed points, it is false iff a false obligation is reachable. Instead of pairs (system
//! state, formula state), each system state stores the *set* of obligations that ever reached it,
//! as one interned number. A state is revisited only with new obligations, and a step is a lookup
//! of (set, label). So memory is that of the state space plus 16 bytes a state, the distinct sets,
//! and a cache entry for each (set, label).
//!
//! With least fixed points, an infinite sequence of obligations is false too. If the transitions
//! that propagate such obligations have no cycle, the verdict stands; otherwise the general route
//! decides.
//!
//! Cost: (transitions) x (number of times that new obligations reach their source). Invariants:
//! `known` only grows; `pending` is part of `known`; "the model is acyclic" is used only if it was
//! established for all states that are known now ([`KnownCycles`]).

use super::automaton::{Automaton, Demand, FormulaState};
use super::rules::{Effect, When};
use super::transitions::LazyTransitions;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stop, narrow};
use mu_formula::normal::{NodeId, Normal, NormalNode};
use mu_process::labels::ActionLabels;
use std::collections::VecDeque;

/// Role of a formula state in a conjunctive (or disjunctive) formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProductKind {
    /// It has the formula's own connective.
    Flow,
    /// Decided at the system state.
    Local,
}

/// Result of the analysis of a formula for this route.
#[derive(Clone, Debug)]
pub struct RouteAnalysis {
    /// Conjunctive (true) or disjunctive.
    pub universal: bool,
    /// Kinds of the nodes that can be automaton states.
    pub kinds: AHashMap<NodeId, ProductKind>,
    /// Nodes through which an infinite sequence of obligations decides the formula against its
    /// owner (`mu` in a conjunction).
    pub hostile: AHashSet<NodeId>,
}

/// Result of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProductResult {
    /// The formula is this constant.
    Verdict(bool),
    /// There is a cycle that may decide; the general route is needed.
    Cycle,
    /// A limit.
    Stopped(Stop),
}

/// Analyses the states reachable from `roots`; `None` if they do not suit this route.
pub fn shape(
    automaton: &Automaton,
    roots: &[FormulaState],
    universal: bool,
) -> Option<RouteAnalysis> {
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
        if state.universal == universal {
            kinds.insert(node, ProductKind::Flow);
            let mut next = Vec::new();
            for rule in &state.rules {
                match (&rule.when, rule.effect) {
                    (_, Effect::Decide) => {}
                    (When::Label(_), Effect::Here(_)) => return None,
                    (_, Effect::Here(n) | Effect::Step(n)) => {
                        targets(normal, n, universal, &mut next)
                    }
                }
            }
            stack.extend(&next);
            calls.insert(node, next);
        } else if is_local(automaton, node, &mut Vec::new()) {
            kinds.insert(node, ProductKind::Local);
        } else {
            return None;
        }
    }
    // Hostile: nodes on a cycle with a recursive variable of the wrong sign. A cycle that has
    // variables of the right sign as well counts as hostile: this is conservative, because
    // `ProductResult::Cycle` leaves the decision to the game.
    let wrong = |node: &NodeId| match normal.node(*node) {
        NormalNode::Head(fix) => {
            normal.fix(*fix).recursive && (normal.fix(*fix).rank % 2 == 1) == universal
        }
        _ => false,
    };
    let mut hostile = AHashSet::new();
    for head in calls.keys().filter(|n| wrong(n)) {
        let forward = reach(&calls, *head);
        let mut back: AHashMap<NodeId, Vec<NodeId>> = AHashMap::new();
        for (from, list) in &calls {
            for to in list {
                back.entry(*to).or_default().push(*from);
            }
        }
        let backward = reach(&back, *head);
        hostile.extend(forward.intersection(&backward).copied());
    }
    // A disjunctive formula with greatest fixed points is true by an infinite path, which the
    // general route finds without exploring everything.
    if !universal && !hostile.is_empty() {
        return None;
    }
    Some(RouteAnalysis { universal, kinds, hostile })
}

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

/// Collects the automaton states that a target may become, for an owner with this connective.
fn targets(normal: &Normal, node: NodeId, all: bool, out: &mut Vec<NodeId>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match normal.node(node) {
        NormalNode::Const(_) | NormalNode::Val(_) => {}
        NormalNode::All(list) | NormalNode::Any(list) => {
            let own = matches!(normal.node(node), NormalNode::All(_)) == all;
            let rest: Vec<NodeId> =
                list.iter().copied().filter(|n| !super::rules::is_test(normal, *n)).collect();
            if own || rest.len() == 1 {
                rest.iter().for_each(|n| targets(normal, *n, all, out));
            } else if !rest.is_empty() {
                out.push(node);
            }
        }
        NormalNode::Call(fix, _) => out.push(normal.fix(*fix).head),
        _ => out.push(node),
    })
}

/// True if a node is decided by data and the outgoing labels of a state.
fn is_local(automaton: &Automaton, node: NodeId, open: &mut Vec<NodeId>) -> bool {
    if open.contains(&node) || open.len() > 64 {
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
                targets(normal, n, state.universal, &mut next);
                next.is_empty()
            }
            Effect::Here(n) => {
                targets(normal, n, state.universal, &mut next);
                next.into_iter().all(|n| is_local(automaton, n, open))
            }
        }
    });
    open.pop();
    local
}

/// Returns the value of a local formula state at a system state with these transitions, and the
/// transitions that show it.
pub fn local_value(
    automaton: &mut Automaton,
    q: FormulaState,
    transitions: &[(LabelId, StateId)],
    labels: &dyn ActionLabels,
    shown: &mut Vec<(LabelId, StateId)>,
) -> Result<bool, Diagnostic> {
    let all = automaton.universal(q);
    let here = automaton.here(q)?;
    if here == Demand::Decided {
        return Ok(!all);
    }
    let before = shown.len();
    let mut next = automaton.set(here).to_vec();
    let asks = automaton.depends_on_labels_here(q);
    for &(label, target) in transitions {
        let mut answer = automaton.step(q, label, labels)?;
        if asks && answer != Demand::Decided {
            answer = automaton.here_if(q, label, labels)?;
            next.extend(automaton.set(answer).iter());
        }
        if answer == Demand::Decided {
            shown.truncate(before);
            shown.push((label, target));
            return Ok(!all);
        }
    }
    for q in next {
        let mark = shown.len();
        if local_value(automaton, q, transitions, labels, shown)? != all {
            shown.drain(before..mark);
            return Ok(!all);
        }
    }
    Ok(all)
}

/// Returns the closure of obligations at one system state: nonlocal and local ones; `None` if one
/// is decided.
pub fn close(
    automaton: &mut Automaton,
    shape: &RouteAnalysis,
    members: &[FormulaState],
) -> Result<Option<(Vec<FormulaState>, Vec<FormulaState>)>, Diagnostic> {
    let mut seen: AHashSet<FormulaState> = AHashSet::new();
    let mut stack = members.to_vec();
    let (mut flow, mut local) = (Vec::new(), Vec::new());
    while let Some(q) = stack.pop() {
        if !seen.insert(q) {
            continue;
        }
        let node = automaton.node(q);
        if shape.kinds.get(&node) == Some(&ProductKind::Local) {
            local.push(q);
            continue;
        }
        let here = automaton.here(q)?;
        if here == Demand::Decided {
            return Ok(None);
        }
        stack.extend(automaton.set(here).iter());
        let steps = automaton.rules().states[&node]
            .rules
            .iter()
            .any(|r| matches!(r.effect, Effect::Step(_)));
        if steps || shape.hostile.contains(&node) {
            flow.push(q);
        }
    }
    Ok(Some((flow, local)))
}

/// True if hostile obligations of one system state demand each other in a cycle.
pub fn loops_here(
    automaton: &mut Automaton,
    shape: &RouteAnalysis,
    members: &[FormulaState],
) -> Result<bool, Diagnostic> {
    // Depth-first with an explicit stack: an obligation, and its demands that are not visited yet.
    let mut done = AHashSet::new();
    let mut open: AHashSet<FormulaState> = AHashSet::new();
    let mut path: Vec<(FormulaState, Vec<FormulaState>)> = Vec::new();
    for root in members {
        let mut enter = Some(*root);
        loop {
            if let Some(q) = enter.take()
                && shape.hostile.contains(&automaton.node(q))
            {
                if open.contains(&q) {
                    return Ok(true);
                }
                if done.insert(q) {
                    open.insert(q);
                    let here = automaton.here(q)?;
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

/// Counts of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductCounts {
    /// Product configurations: (state, obligation) pairs.
    pub configurations: u64,
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
    shape: &'a RouteAnalysis,
    /// Obligations that reached each state.
    known: Vec<Demand>,
    /// Obligations that are not propagated yet.
    pending: Vec<Demand>,
    closures: AHashMap<Demand, (Demand, Demand)>,
    steps: AHashMap<(Demand, LabelId), (Demand, Demand)>,
    merges: AHashMap<(Demand, Demand), (Demand, Demand)>,
    hostile_part: AHashMap<Demand, Demand>,
    loops: AHashMap<Demand, bool>,
    /// Counts so far; this search has no symmetries.
    pub figures: ProductCounts,
    /// Work so far: steps taken, and members of the sets that were computed.
    pub work: u64,
}

impl<'a, 'm> Product<'a, 'm> {
    /// Creates a search.
    pub fn new(
        source: &'a mut LazyTransitions<'m>,
        labels: &'a dyn ActionLabels,
        automaton: &'a mut Automaton,
        shape: &'a RouteAnalysis,
    ) -> Self {
        Self {
            source,
            labels,
            automaton,
            shape,
            known: Vec::new(),
            pending: Vec::new(),
            closures: AHashMap::new(),
            steps: AHashMap::new(),
            merges: AHashMap::new(),
            hostile_part: AHashMap::new(),
            loops: AHashMap::new(),
            figures: ProductCounts::default(),
            work: 0,
        }
    }

    /// Returns the obligations by state.
    pub fn into_known(self) -> Vec<Demand> {
        self.known
    }

    /// Returns the closure of obligations at one system state: nonlocal and local ones. `Decided`
    /// if one is decided.
    fn closure(&mut self, set: Demand) -> Result<(Demand, Demand), Diagnostic> {
        if set == Demand::Decided {
            return Ok((Demand::Decided, Demand::NOTHING));
        }
        if let Some(&c) = self.closures.get(&set) {
            return Ok(c);
        }
        let members = self.automaton.set(set);
        self.work += members.len() as u64;
        let result = match close(self.automaton, self.shape, &members)? {
            Some((flow, local)) => {
                (self.automaton.intern_set(flow), self.automaton.intern_set(local))
            }
            None => (Demand::Decided, Demand::NOTHING),
        };
        self.closures.insert(set, result);
        Ok(result)
    }

    /// Returns the closed demand of nonlocal obligations after a label.
    fn step(&mut self, set: Demand, label: LabelId) -> Result<(Demand, Demand), Diagnostic> {
        if let Some(&r) = self.steps.get(&(set, label)) {
            return Ok(r);
        }
        let mut next = Vec::new();
        let mut result = None;
        let members = self.automaton.set(set);
        self.work += members.len() as u64;
        for q in members.iter() {
            let answer = self.automaton.step(*q, label, self.labels)?;
            if answer == Demand::Decided {
                result = Some((Demand::Decided, Demand::NOTHING));
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
    fn merge(&mut self, known: Demand, new: Demand) -> (Demand, Demand) {
        if new == Demand::NOTHING || new == known {
            return (known, Demand::NOTHING);
        }
        if known == Demand::NOTHING {
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
        (flow, local): (Demand, Demand),
        queue: &mut VecDeque<StateId>,
    ) {
        let i = state.index();
        if self.known.len() <= i {
            self.known.resize(i + 1, Demand::NOTHING);
            self.pending.resize(i + 1, Demand::NOTHING);
        }
        let both = if local == Demand::NOTHING {
            flow
        } else if flow == Demand::NOTHING {
            local
        } else {
            self.merge(flow, local).0
        };
        let (known, new) = self.merge(self.known[i], both);
        if new == Demand::NOTHING {
            return;
        }
        self.known[i] = known;
        if self.pending[i] == Demand::NOTHING {
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
        let start = self.closure(set)?;
        if start.0 == Demand::Decided {
            return Ok(ProductResult::Verdict(!self.shape.universal));
        }
        let initial = self.source.initial();
        self.add_obligations(initial, start, &mut queue);
        let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
        let mut polls = 0u64;
        let mut shown = Vec::new();
        while let Some(state) = queue.pop_front() {
            polls += 1;
            if polls.is_multiple_of(1024) {
                let stop = budget.check(self.source.state_count() as u64).and_then(|()| {
                    if polls.is_multiple_of(64 * 1024) { budget.check_memory() } else { Ok(()) }
                });
                if let Err(stop) = stop {
                    self.count();
                    return Ok(ProductResult::Stopped(stop));
                }
            }
            let set = std::mem::replace(&mut self.pending[state.index()], Demand::NOTHING);
            self.source.successors(state, &mut transitions)?;
            self.work += 1 + transitions.len() as u64;
            // Local obligations are in the same set; remove them.
            let (flow, local) = self.closure(set)?;
            if local != Demand::NOTHING {
                for q in self.automaton.set(local).iter() {
                    shown.clear();
                    if local_value(self.automaton, *q, &transitions, self.labels, &mut shown)?
                        != self.shape.universal
                    {
                        self.count();
                        return Ok(ProductResult::Verdict(!self.shape.universal));
                    }
                }
            }
            if flow == Demand::NOTHING {
                continue;
            }
            self.figures.steps += transitions.len() as u64;
            for &(label, target) in &transitions {
                let next = self.step(flow, label)?;
                if next.0 == Demand::Decided {
                    self.count();
                    return Ok(ProductResult::Verdict(!self.shape.universal));
                }
                self.add_obligations(target, next, &mut queue);
            }
        }
        self.count();
        if self.shape.hostile.is_empty() {
            return Ok(ProductResult::Verdict(self.shape.universal));
        }
        let model_is_acyclic = match cycles.is_acyclic(self.source, budget)? {
            Err(stop) => return Ok(ProductResult::Stopped(stop)),
            Ok(acyclic) => acyclic,
        };
        let mut transitions = Vec::new();
        let n = self.known.len();
        let mut carrying = |s: u32, out: &mut Vec<u32>| -> Result<bool, Diagnostic> {
            let hostile = self.hostile(self.known[s as usize]);
            if hostile == Demand::NOTHING {
                return Ok(true);
            }
            // A cycle without transitions, `mu X. X`.
            if self.loops_here(hostile)? {
                return Ok(false);
            }
            if model_is_acyclic {
                return Ok(true);
            }
            self.source.successors(StateId::of(s), &mut transitions)?;
            self.work += transitions.len() as u64;
            for &(label, target) in &transitions {
                let next = self.step(hostile, label)?;
                if next.0 != Demand::Decided && self.hostile(next.0) != Demand::NOTHING {
                    out.push(target.number());
                }
            }
            Ok(true)
        };
        match acyclic_search(n, budget, &mut carrying)? {
            Err(stop) => Ok(ProductResult::Stopped(stop)),
            Ok(true) => Ok(ProductResult::Verdict(self.shape.universal)),
            Ok(false) => Ok(ProductResult::Cycle),
        }
    }

    /// Computes the numbers of configurations and states from `known`.
    fn count(&mut self) {
        let mut sizes: AHashMap<Demand, u64> = AHashMap::new();
        let mut figures = ProductCounts { steps: self.figures.steps, ..ProductCounts::default() };
        for set in &self.known {
            let size = *sizes.entry(*set).or_insert_with(|| self.automaton.set(*set).len() as u64);
            figures.configurations += size;
            figures.states += u64::from(size > 0);
        }
        self.figures = figures;
    }

    /// Returns the part of a set on hostile cycles of the formula.
    fn hostile(&mut self, set: Demand) -> Demand {
        if let Some(&a) = self.hostile_part.get(&set) {
            return a;
        }
        let part = self
            .automaton
            .set(set)
            .iter()
            .copied()
            .filter(|q| self.shape.hostile.contains(&self.automaton.node(*q)))
            .collect();
        let answer = self.automaton.intern_set(part);
        self.hostile_part.insert(set, answer);
        answer
    }

    /// True if hostile obligations of one system state demand each other in a cycle.
    fn loops_here(&mut self, set: Demand) -> Result<bool, Diagnostic> {
        if let Some(&answer) = self.loops.get(&set) {
            return Ok(answer);
        }
        let members = self.automaton.set(set);
        let answer = loops_here(self.automaton, self.shape, &members)?;
        self.loops.insert(set, answer);
        Ok(answer)
    }
}

/// Appends the targets of a vertex. Returns false if the vertex itself has a cycle of obligations
/// without transitions; the search then ends.
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
    // A frame is a vertex with its unvisited targets; the targets of all frames are on one stack.
    let mut frames: Vec<(u32, usize)> = Vec::new();
    let mut targets: Vec<u32> = Vec::new();
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
                frames.push((s, targets.len()));
                if !edges(s, &mut targets)? {
                    return Ok(Ok(false));
                }
            }
            let Some(&(s, from)) = frames.last() else { break };
            if targets.len() == from {
                colour[s as usize] = DONE;
                frames.pop();
                continue;
            }
            let t = targets.pop().expect("a frame has targets above its start");
            match colour[t as usize] {
                OPEN => return Ok(Ok(false)),
                NEW => enter = Some(t),
                _ => {}
            }
        }
    }
    Ok(Ok(true))
}
