//! The run that decides an obligation: a shortest one among those through the obligations that led to the decision.
//!
//! Input -> output: where a decision was met, or a state and its obligation -> a [`Run`], or nothing if a limit comes first. Breadth-first search over
//! pairs of obligation and set of states, forward from the start, restricted to obligations from which the decision was reached; then the
//! steps are read off the layers from the last one backwards, by preimages, and the model is asked for their labels.
//!
//! Cost: an image for each relation, obligation and layer. Invariant: all layers are pinned.

use super::Trace;
use super::ldd::Ldd;
use super::product::{Decision, End, Run, Watch};
use crate::base::ids::LabelId;
use crate::base::{Diagnostic, Stage};
use std::collections::{BTreeMap, BTreeSet};

/// Sets of states by place.
type Layer = BTreeMap<usize, Ldd>;

/// A label with the state that it leads to.
type Step = (LabelId, Vec<u32>);

/// What is looked for.
pub(super) enum Target<'a> {
    /// What a decision met.
    Decision(Decision),
    /// A state (by level) under the obligation of a place.
    State(usize, &'a [u32]),
}

fn broken() -> Diagnostic {
    Diagnostic::new(Stage::Internal, "a state of a layer has no predecessor in the layer before")
}

impl Watch<'_, '_> {
    /// A run to a decision; none if a limit comes first.
    pub(super) fn path(&mut self, decision: Decision, start: &[u32]) -> Result<Option<Run>, Diagnostic> {
        let end = match decision {
            Decision::Label(_) => End::Label,
            Decision::Test(_, q) => End::Test(q),
        };
        let initial = self.search.model.initial();
        if let Decision::Test(None, _) = decision {
            return Ok(Some(Run { trace: Trace { initial, steps: Vec::new() }, end }));
        }
        Ok(self.steps_to(&Target::Decision(decision), start)?.map(|steps| Run { trace: Trace { initial, steps }, end }))
    }

    /// Steps from the start to a target.
    pub(super) fn steps_to(&mut self, target: &Target, start: &[u32]) -> Result<Option<Vec<Step>>, Diagnostic> {
        let last = match *target {
            Target::Decision(Decision::Label(place) | Decision::Test(Some(place), _)) | Target::State(place, _) => place,
            Target::Decision(Decision::Test(None, _)) => return Ok(Some(Vec::new())),
        };
        let allowed = self.ancestors(last);
        let initial = self.search.initial();
        let mut layer: Layer =
            start.iter().filter_map(|q| self.place_of.get(q)).filter(|p| allowed.contains(p)).map(|&p| (p, initial)).collect();
        let mut seen = layer.clone();
        let mut layers: Vec<Layer> = Vec::new();
        while !layer.is_empty() {
            self.search.pinned.extend(layer.values());
            if let Some(&set) = layer.get(&last)
                && let Some((vector, steps)) = self.reached(target, set)?
            {
                return self.back(layers, (last, vector), steps).map(Some);
            }
            if self.search.halted() {
                return Ok(None);
            }
            let next = self.forward(&layer, &allowed)?;
            layers.push(std::mem::take(&mut layer));
            for (place, set) in next {
                let old = seen.entry(place).or_default();
                let fresh = self.search.manager.minus(set, *old);
                *old = self.search.manager.union(*old, fresh);
                self.search.pinned.push(*old);
                if !fresh.is_empty() {
                    layer.insert(place, fresh);
                }
            }
        }
        if self.search.halted() { Ok(None) } else { Err(broken()) }
    }

    /// Places from which a place was reached, with itself.
    fn ancestors(&self, last: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([last]);
        let mut open = vec![last];
        while let Some(place) = open.pop() {
            open.extend(self.places[place].from.iter().copied().filter(|&p| found.insert(p)));
        }
        found
    }

    /// A layer's images.
    fn forward(&mut self, layer: &Layer, allowed: &BTreeSet<usize>) -> Result<Layer, Diagnostic> {
        let mut next = Layer::new();
        for (&place, &set) in layer {
            let outline = self.outline(place)?;
            let kept = outline.keeps.iter().map(|&(i, part)| (place, i, part.unwrap_or(self.search.relations[i].relation)));
            let kept: Vec<(usize, usize, Ldd)> = kept.filter(|k| self.search.relations[k.1].writes).collect();
            let changed = outline.edges.iter().filter_map(|e| Some((*self.place_of.get(&e.to)?, e.relation, e.rows)));
            for (to, relation, rows) in kept.into_iter().chain(changed.filter(|c| allowed.contains(&c.0)).collect::<Vec<_>>()) {
                let image = self.image(set, relation, rows);
                let all = next.entry(to).or_default();
                *all = self.search.manager.union(*all, image);
                let roots: Vec<Ldd> = next.values().copied().collect();
                self.search.tidy(&roots);
            }
        }
        Ok(next)
    }

    /// A state of the set that is the target or has a step to it, with that step.
    fn reached(&mut self, target: &Target, set: Ldd) -> Result<Option<(Vec<u32>, Vec<Step>)>, Diagnostic> {
        match *target {
            Target::State(_, vector) => Ok(self.search.manager.contains(set, vector).then(|| (vector.to_vec(), Vec::new()))),
            Target::Decision(Decision::Label(place)) => {
                let outline = self.outline(place)?;
                for &(relation, rows) in &outline.decides {
                    let able = self.sources(set, relation, rows);
                    if let Some(vector) = self.search.manager.pick(able) {
                        let step = self.step_of(place, &vector, None, &|answer| answer.is_none())?;
                        return Ok(Some((vector, vec![step.ok_or_else(broken)?])));
                    }
                }
                Ok(None)
            }
            Target::Decision(Decision::Test(_, q)) => {
                let outline = self.outline(target_place(target))?;
                for edge in outline.edges.iter().filter(|e| e.to == q) {
                    let image = self.image(set, edge.relation, edge.rows);
                    let failing = self.failing(q, image)?;
                    if let Some(after) = self.search.manager.pick(failing) {
                        let to = self.search.manager.singleton(&after);
                        let plan = self.search.relations[edge.relation].image[0];
                        let before = self.search.manager.relprev(to, edge.rows, plan, set);
                        let vector = self.search.manager.pick(before).ok_or_else(broken)?;
                        let step =
                            self.step_of(target_place(target), &vector, Some(&after), &|answer| answer.is_some_and(|a| a.contains(&q)))?;
                        return Ok(Some((vector, vec![step.ok_or_else(broken)?])));
                    }
                }
                Ok(None)
            }
        }
    }

    /// The steps through the layers to a state, followed by those given.
    fn back(
        &mut self,
        mut layers: Vec<Layer>,
        (mut place, mut vector): (usize, Vec<u32>),
        last: Vec<Step>,
    ) -> Result<Vec<Step>, Diagnostic> {
        let mut steps = last;
        while let Some(layer) = layers.pop() {
            let (from, before, step) = self.step_before(&layer, place, &vector)?.ok_or_else(broken)?;
            steps.insert(0, step);
            (place, vector) = (from, before);
        }
        Ok(steps)
    }

    /// A step to a state under an obligation from a state of a layer: that place and state, and the step.
    pub(super) fn step_before(
        &mut self,
        layer: &Layer,
        place: usize,
        vector: &[u32],
    ) -> Result<Option<(usize, Vec<u32>, Step)>, Diagnostic> {
        let q = self.places[place].obligation;
        let to = self.search.manager.singleton(vector);
        for (&from, &within) in layer {
            let outline = self.outline(from)?;
            let keeps = outline.keeps.iter().filter(|_| from == place);
            let keeps = keeps.map(|&(i, part)| (i, part.unwrap_or(self.search.relations[i].relation)));
            let edges = outline.edges.iter().filter(|e| e.to == q).map(|e| (e.relation, e.rows));
            for (relation, rows) in keeps.chain(edges).collect::<Vec<_>>() {
                let plan = self.search.relations[relation].image[0];
                let before = self.search.manager.relprev(to, rows, plan, within);
                if let Some(before) = self.search.manager.pick(before) {
                    let step = self.step_of(from, &before, Some(vector), &|answer| answer.is_some_and(|a| a.contains(&q)))?;
                    return Ok(Some((from, before, step.ok_or_else(broken)?)));
                }
            }
        }
        Ok(None)
    }

    /// A step from a state (given by level), to a given one or any, whose label makes of a place's obligation what is wanted.
    fn step_of(
        &mut self,
        place: usize,
        from: &[u32],
        to: Option<&[u32]>,
        wanted: &dyn Fn(Option<&[u32]>) -> bool,
    ) -> Result<Option<Step>, Diagnostic> {
        let q = self.places[place].obligation;
        let (from, to) = (self.search.to_slots(from), to.map(|to| self.search.to_slots(to)));
        let mut all = Vec::new();
        let groups = self.search.model.groups();
        for member in self.search.relations.iter().flat_map(|r| &r.members) {
            all.extend(member.steps_from(&groups[member.group], &mut self.search.teacher, &from)?);
        }
        for (label, state) in all {
            if to.as_ref().is_some_and(|to| *to != state) {
                continue;
            }
            let class = self.observer.class(label)?;
            if wanted(self.observer.step(q, class)?.as_deref()) {
                return Ok(Some((label, state)));
            }
        }
        Ok(None)
    }
}

fn target_place(target: &Target) -> usize {
    match *target {
        Target::Decision(Decision::Label(place) | Decision::Test(Some(place), _)) | Target::State(place, _) => place,
        Target::Decision(Decision::Test(None, _)) => 0,
    }
}
