//! Path to a decision: a shortest run through the obligations that led to it.
//!
//! Input -> output: the location of a decision, or a state and its obligation -> a [`ProductRun`];
//! `None` at a limit. Bidirectional breadth-first search over pairs of obligation and set of
//! states: layers forward from the start and backward from the target, within the states of the
//! model and the obligations that led to the decision. The side with fewer nodes in its last layer
//! is expanded. The first common state lies on a shortest run; steps are reconstructed through the
//! layers on both sides of it, and the model is evaluated for their labels.
//!
//! Cost: an image or preimage for each relation, obligation and layer. Invariant: all layers are
//! pinned; the distances of the last layers add up to the number of layers.

use super::GoalPath;
use super::ldd::Ldd;
use super::product::{Decision, DecisionKind, ObservedSearch, ProductRun};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};
use std::collections::{BTreeMap, BTreeSet};

/// Sets of states by place.
type Layer = BTreeMap<usize, Ldd>;

/// Layers from one end.
struct Layers {
    /// From the end on; never empty.
    layers: Vec<Layer>,
    /// Union of all layers.
    seen: Layer,
}

impl Layers {
    fn new(first: Layer) -> Self {
        Self { seen: first.clone(), layers: vec![first] }
    }
    fn front(&self) -> &Layer {
        &self.layers[self.layers.len() - 1]
    }
}

/// A label with its target state.
type LabelledStep = (LabelId, Vec<u32>);

/// Target of a path search.
pub(super) enum PathTarget<'a> {
    /// A label that decides the obligation of a place.
    Label(usize),
    /// A failing test of an obligation, after a step under the obligation of a place.
    Test(usize, u32),
    /// A state (by level) under the obligation of a place.
    State(usize, &'a [u32]),
}

impl PathTarget<'_> {
    fn place(&self) -> usize {
        match *self {
            PathTarget::Label(place) | PathTarget::Test(place, _) | PathTarget::State(place, _) => {
                place
            }
        }
    }
}

/// Predicate on a step: its target (by level), and the successors of the obligation.
type Wanted<'w> =
    dyn FnMut(&mut ObservedSearch, &[u32], Option<&[u32]>) -> Result<bool, Diagnostic> + 'w;

fn broken_layers() -> Diagnostic {
    Diagnostic::new(Stage::Internal, "a state of a layer has no neighbour in the layer before")
}

impl ObservedSearch<'_, '_> {
    /// Returns a run to a decision; `None` at a limit.
    pub(super) fn path(
        &mut self,
        decision: Decision,
        start: &[u32],
    ) -> Result<Option<ProductRun>, Diagnostic> {
        let (end, steps) = match decision {
            Decision::Label(place) => {
                (DecisionKind::Label, self.steps_to(&PathTarget::Label(place), start)?)
            }
            Decision::Test(None, q) => (DecisionKind::Test(q), Some(Vec::new())),
            Decision::Test(Some(place), q) => {
                (DecisionKind::Test(q), self.steps_to(&PathTarget::Test(place, q), start)?)
            }
        };
        let initial = self.search.model.initial();
        Ok(steps.map(|steps| ProductRun { trace: GoalPath { initial, steps }, end }))
    }

    /// Returns the steps from the start to a target.
    pub(super) fn steps_to(
        &mut self,
        target: &PathTarget,
        start: &[u32],
    ) -> Result<Option<Vec<LabelledStep>>, Diagnostic> {
        let last = target.place();
        let allowed = self.ancestors(last);
        let initial = self.search.initial();
        let first = start
            .iter()
            .filter_map(|q| self.place_of.get(q))
            .filter(|p| allowed.contains(p))
            .map(|&p| (p, initial))
            .collect();
        let goal = self.goal(target)?;
        let mut ends = [Layers::new(first), Layers::new(Layer::from([(last, goal)]))];
        for end in &ends {
            self.search.pinned.extend(end.front().values());
        }
        loop {
            if self.search.is_halted() {
                return Ok(None);
            }
            if let Some((place, vector)) = self.find_common_state(&ends) {
                let [front, back] = ends;
                return self.path_through(front, back, target, (place, vector)).map(Some);
            }
            if ends.iter().any(|end| end.front().is_empty()) {
                return Err(broken_layers());
            }
            let [forward, backward] =
                [0, 1].map(|i| self.search.manager.nodes_of(ends[i].front().values().copied()));
            let chosen = usize::from(backward < forward);
            let next = if chosen == 0 {
                self.forward(ends[0].front(), &allowed)
            } else {
                self.backward(ends[1].front(), &allowed)
            }?;
            self.add(&mut ends[chosen], next);
        }
    }

    /// Adds the new part of a layer's neighbours as the next layer.
    fn add(&mut self, end: &mut Layers, next: Layer) {
        let mut fresh = Layer::new();
        for (place, set) in next {
            let old = end.seen.entry(place).or_default();
            let new = self.search.manager.minus(set, *old);
            *old = self.search.manager.union(*old, new);
            self.search.pinned.extend([*old, new]);
            if !new.is_empty() {
                fresh.insert(place, new);
            }
        }
        end.layers.push(fresh);
    }

    /// Returns a pair in both last layers.
    fn find_common_state(&mut self, [front, back]: &[Layers; 2]) -> Option<(usize, Vec<u32>)> {
        front.front().iter().find_map(|(&place, &set)| {
            let common = self.search.manager.intersect(set, *back.front().get(&place)?);
            Some((place, self.search.manager.pick(common)?))
        })
    }

    /// Returns the states that are the target, or have a step to it, under the obligation of its
    /// place.
    fn goal(&mut self, target: &PathTarget) -> Result<Ldd, Diagnostic> {
        let all = self.all;
        let outline = self.outline(target.place())?;
        let mut goal = Ldd::EMPTY;
        match *target {
            PathTarget::State(_, vector) => goal = self.search.manager.singleton(vector),
            PathTarget::Label(_) => {
                for &(relation, rows) in &outline.decides {
                    let able = self.sources(all, relation, rows);
                    goal = self.search.manager.union(goal, able);
                }
            }
            PathTarget::Test(_, q) => {
                let failing = self.deciding_states(q, all)?;
                for edge in outline.edges.iter().filter(|e| e.to == q) {
                    let plan = self.search.relations[edge.relation].image[0];
                    let before = self.search.manager.relprev(failing, edge.rows, plan, all);
                    goal = self.search.manager.union(goal, before);
                }
            }
        }
        Ok(goal)
    }

    /// Returns the places from which a place was reached, including itself.
    fn ancestors(&self, last: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([last]);
        let mut open = vec![last];
        while let Some(place) = open.pop() {
            open.extend(self.places[place].from.iter().copied().filter(|&p| found.insert(p)));
        }
        found
    }

    /// Returns a layer's images.
    fn forward(&mut self, layer: &Layer, allowed: &BTreeSet<usize>) -> Result<Layer, Diagnostic> {
        let mut next = Layer::new();
        for (&place, &set) in layer {
            let outline = self.outline(place)?;
            let kept = outline
                .keeps
                .iter()
                .map(|&(i, part)| (place, i, part.unwrap_or(self.search.relations[i].relation)));
            let kept: Vec<(usize, usize, Ldd)> =
                kept.filter(|k| self.search.relations[k.1].writes).collect();
            let changed = outline
                .edges
                .iter()
                .filter_map(|e| Some((*self.place_of.get(&e.to)?, e.relation, e.rows)));
            for (to, relation, rows) in kept
                .into_iter()
                .chain(changed.filter(|c| allowed.contains(&c.0)).collect::<Vec<_>>())
            {
                let image = self.image(set, relation, rows);
                let all = next.entry(to).or_default();
                *all = self.search.manager.union(*all, image);
                let roots: Vec<Ldd> = next.values().copied().collect();
                self.search.tidy(&roots);
            }
        }
        Ok(next)
    }

    /// Returns a layer's preimages among the states of the model.
    fn backward(&mut self, layer: &Layer, allowed: &BTreeSet<usize>) -> Result<Layer, Diagnostic> {
        let mut before = Layer::new();
        for &place in allowed {
            let outline = self.outline(place)?;
            let kept = outline.keeps.iter().filter_map(|&(i, part)| {
                let relation = &self.search.relations[i];
                Some((
                    *layer.get(&place).filter(|_| relation.writes)?,
                    i,
                    part.unwrap_or(relation.relation),
                ))
            });
            let changed = outline
                .edges
                .iter()
                .filter_map(|e| Some((*layer.get(self.place_of.get(&e.to)?)?, e.relation, e.rows)));
            for (set, relation, rows) in kept.chain(changed).collect::<Vec<_>>() {
                let plan = self.search.relations[relation].image[0];
                let sources = self.search.manager.relprev(set, rows, plan, self.all);
                let all = before.entry(place).or_default();
                *all = self.search.manager.union(*all, sources);
                let roots: Vec<Ldd> = before.values().copied().collect();
                self.search.tidy(&roots);
            }
        }
        Ok(before)
    }

    /// Returns the step from a state to the target; `None` if the state is the target.
    fn last_step(
        &mut self,
        target: &PathTarget,
        vector: &[u32],
    ) -> Result<Option<LabelledStep>, Diagnostic> {
        let step = match *target {
            PathTarget::State(..) => return Ok(None),
            PathTarget::Label(place) => {
                self.step_of(place, vector, &mut |_, _, answer| Ok(answer.is_none()))?
            }
            PathTarget::Test(place, q) => {
                self.step_of(place, vector, &mut |watch, to, answer| {
                    if !answer.is_some_and(|a| a.contains(&q)) {
                        return Ok(false);
                    }
                    let after = watch.search.manager.singleton(to);
                    Ok(!watch.deciding_states(q, after)?.is_empty())
                })?
            }
        };
        step.map(Some).ok_or_else(broken_layers)
    }

    /// Returns the steps through both ends' layers via a common pair.
    fn path_through(
        &mut self,
        mut front: Layers,
        mut back: Layers,
        target: &PathTarget,
        (place, vector): (usize, Vec<u32>),
    ) -> Result<Vec<LabelledStep>, Diagnostic> {
        let mut steps = Vec::new();
        let (mut at, mut state) = (place, vector.clone());
        front.layers.pop();
        while let Some(layer) = front.layers.pop() {
            let (from, before, step) =
                self.step_before(&layer, at, &state)?.ok_or_else(broken_layers)?;
            steps.push(step);
            (at, state) = (from, before);
        }
        steps.reverse();
        let (mut at, mut state) = (place, vector);
        back.layers.pop();
        while let Some(layer) = back.layers.pop() {
            let mut next = None;
            let step = self.step_of(at, &state, &mut |watch, to, answer| {
                let among = |p: &usize| {
                    layer.get(p).is_some_and(|&set| watch.search.manager.contains(set, to))
                };
                next = answer
                    .into_iter()
                    .flatten()
                    .filter_map(|q| watch.place_of.get(q))
                    .find(|p| among(p))
                    .copied();
                Ok(next.is_some())
            })?;
            let (label, after) = step.ok_or_else(broken_layers)?;
            state = self.search.to_levels(&after);
            at = next.ok_or_else(broken_layers)?;
            steps.push((label, after));
        }
        steps.extend(self.last_step(target, &state)?);
        Ok(steps)
    }

    /// Returns a step from a state of a layer to a state under an obligation, with the source place
    /// and state.
    pub(super) fn step_before(
        &mut self,
        layer: &Layer,
        place: usize,
        vector: &[u32],
    ) -> Result<Option<(usize, Vec<u32>, LabelledStep)>, Diagnostic> {
        let q = self.places[place].obligation;
        let to = self.search.manager.singleton(vector);
        for (&from, &within) in layer {
            let outline = self.outline(from)?;
            let keeps = outline.keeps.iter().filter(|_| from == place);
            let keeps =
                keeps.map(|&(i, part)| (i, part.unwrap_or(self.search.relations[i].relation)));
            let edges = outline.edges.iter().filter(|e| e.to == q).map(|e| (e.relation, e.rows));
            for (relation, rows) in keeps.chain(edges).collect::<Vec<_>>() {
                let plan = self.search.relations[relation].image[0];
                let before = self.search.manager.relprev(to, rows, plan, within);
                if let Some(before) = self.search.manager.pick(before) {
                    let step = self.step_of(from, &before, &mut |_, to, answer| {
                        Ok(to == vector && answer.is_some_and(|a| a.contains(&q)))
                    })?;
                    return Ok(Some((from, before, step.ok_or_else(broken_layers)?)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the first step from a state (by level) under a place's obligation that satisfies
    /// `wanted`.
    fn step_of(
        &mut self,
        place: usize,
        from: &[u32],
        wanted: &mut Wanted,
    ) -> Result<Option<LabelledStep>, Diagnostic> {
        let q = self.places[place].obligation;
        let all = self.search.steps_from(from)?;
        for (label, state) in all {
            let class = self.observer.class(label)?;
            let answer = self.observer.step(q, class)?;
            let to = self.search.to_levels(&state);
            if wanted(self, &to, answer.as_deref())? {
                return Ok(Some((label, state)));
            }
        }
        Ok(None)
    }
}
