//! Cycle search: an infinite run under hostile obligations, if there is one.
//!
//! Input -> output: a finished search ([`ObservedSearch`]) -> no cycle, or a lasso.
//!
//! First, slot by slot: a step lies on a cycle of the model only if its effect on each slot lies on
//! a cycle of the graph of that slot's values under all steps that may lie on cycles. So steps
//! between strongly connected components (Tarjan, 1972) of a slot's graph are removed, which
//! reduces the graphs of other slots, until nothing changes. For programs with counters no step
//! remains, without any diagram operation. Otherwise: the greatest set of pairs of hostile
//! obligation and state that each have a predecessor in the set, by images under the remaining
//! steps. It is empty exactly if there is no cycle; otherwise a backward walk within it closes a
//! cycle.
//!
//! Cost: (steps of the relations) x (slots) x (rounds); then images up to the longest run.

use super::GoalPath;
use super::ldd::{Ldd, LevelAction};
use super::path::PathTarget;
use super::product::{DecisionKind, ObservedSearch, ProductRun};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::components::{Graph, components};
use mu_base::narrow;
use std::collections::BTreeMap;

/// Limit on the length of a backward walk.
const LONGEST: usize = 1 << 16;

/// A pair of place and state.
type PlacedState = (usize, Vec<u32>);

impl ObservedSearch<'_, '_> {
    /// Searches for a cycle under hostile obligations. The outer `None`: there is none; the inner
    /// one: a limit prevented the reconstruction of the run.
    pub(super) fn cycle(
        &mut self,
        start: &[u32],
    ) -> Result<Option<Option<ProductRun>>, Diagnostic> {
        let obligations: Vec<u32> = self.places.iter().map(|p| p.obligation).collect();
        let hostile: Vec<usize> =
            (0..obligations.len()).filter(|&i| self.observer.hostile(obligations[i])).collect();
        if hostile.is_empty() {
            return Ok(None);
        }
        let rows = self.on_cycles();
        if rows.iter().all(|r| r.is_empty()) {
            return Ok(None);
        }
        self.search.pinned.extend(&rows);
        let rest = self.endless(&hostile, &rows)?;
        if self.search.is_halted() || rest.is_empty() {
            return Ok(None);
        }
        self.lasso(&rest, start).map(Some)
    }

    /// Returns by relation the steps that may lie on a cycle of the model, according to single
    /// slots.
    fn on_cycles(&mut self) -> Vec<Ldd> {
        let levels = self.search.model.slots().len();
        // By relation: for each level of its vectors the values before and after, and the step.
        let mut columns = Vec::new();
        let mut alive: Vec<Vec<Vec<u32>>> = Vec::new();
        for relation in &self.search.relations {
            let mut at = 0;
            let mut place = |there: bool| {
                at += usize::from(there);
                there.then(|| at - 1)
            };
            let column = |action: &LevelAction| {
                let read = place(matches!(action, LevelAction::Read | LevelAction::ReadWrite));
                (read, place(matches!(action, LevelAction::Write | LevelAction::ReadWrite)))
            };
            columns.push(
                relation
                    .actions
                    .iter()
                    .map(column)
                    .collect::<Vec<(Option<usize>, Option<usize>)>>(),
            );
            let mut rows = Vec::new();
            self.search.manager.for_each(relation.relation, |row| rows.push(row.to_vec()));
            alive.push(rows);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for level in 0..levels {
                // `None` stands for all values: a step that writes without reading may start from
                // any of them.
                let mut edges: Vec<(Option<u32>, Option<u32>)> = Vec::new();
                let mut anyhow: Vec<u32> = Vec::new();
                for (rows, columns) in alive.iter().zip(&columns) {
                    let Some(write) = columns[level].1 else { continue };
                    match columns[level].0 {
                        Some(read) => {
                            edges.extend(rows.iter().map(|r| (Some(r[read]), Some(r[write]))))
                        }
                        None => anyhow.extend(rows.iter().map(|r| r[write])),
                    }
                }
                if !anyhow.is_empty() {
                    let values: Vec<Option<u32>> = edges
                        .iter()
                        .flat_map(|e| [e.0, e.1])
                        .chain(anyhow.iter().map(|v| Some(*v)))
                        .collect();
                    edges.extend(values.into_iter().map(|v| (v, None)));
                    edges.extend(anyhow.into_iter().map(|v| (None, Some(v))));
                }
                edges.sort_unstable();
                edges.dedup();
                let component = numbered_components(&edges);
                for (rows, columns) in alive.iter_mut().zip(&columns) {
                    if let (Some(read), Some(write)) = columns[level] {
                        let before = rows.len();
                        rows.retain(|r| component[&Some(r[read])] == component[&Some(r[write])]);
                        changed |= rows.len() < before;
                    }
                }
            }
        }
        let mut sets = Vec::new();
        for rows in alive {
            let flat: Vec<u32> = rows.iter().flatten().copied().collect();
            sets.push(self.search.manager.from_vectors(
                &flat,
                rows.first().map_or(0, Vec::len),
                rows.len(),
            ));
        }
        sets
    }

    /// Returns the greatest set of pairs of hostile place and state with predecessors in it, by
    /// steps of `rows`.
    fn endless(
        &mut self,
        hostile: &[usize],
        rows: &[Ldd],
    ) -> Result<BTreeMap<usize, Ldd>, Diagnostic> {
        let mut rest: BTreeMap<usize, Ldd> = hostile.iter().map(|&i| (i, self.states(i))).collect();
        loop {
            let mut next: BTreeMap<usize, Ldd> = BTreeMap::new();
            for (&place, &set) in &rest {
                let outline = self.outline(place)?;
                let keeps = outline.keeps.iter().map(|&(i, part)| (place, i, part));
                let edges = outline
                    .edges
                    .iter()
                    .filter_map(|e| Some((*self.place_of.get(&e.to)?, e.relation, Some(e.rows))));
                for (to, relation, part) in keeps.chain(edges).collect::<Vec<_>>() {
                    let Some(&within) = rest.get(&to) else { continue };
                    let steps = match part {
                        Some(part) => self.search.manager.intersect(part, rows[relation]),
                        None => rows[relation],
                    };
                    let image = self.image(set, relation, steps);
                    let image = self.search.manager.intersect(image, within);
                    let all = next.entry(to).or_default();
                    *all = self.search.manager.union(*all, image);
                    let roots: Vec<Ldd> = next.values().chain(rest.values()).copied().collect();
                    self.search.tidy(&roots);
                }
            }
            next.retain(|_, set| !set.is_empty());
            if self.search.is_halted() || next == rest {
                self.search.pinned.extend(rest.values());
                return Ok(rest);
            }
            rest = next;
        }
    }

    /// Returns a lasso with its cycle in a set in which all pairs have predecessors.
    fn lasso(
        &mut self,
        rest: &BTreeMap<usize, Ldd>,
        start: &[u32],
    ) -> Result<Option<ProductRun>, Diagnostic> {
        let Some((&place, &set)) = rest.first_key_value() else { return Ok(None) };
        let Some(vector) = self.search.manager.pick(set) else { return Ok(None) };
        let mut met: AHashMap<PlacedState, usize> = AHashMap::new();
        let mut walk = Vec::new();
        let mut at: PlacedState = (place, vector);
        while walk.len() < LONGEST && !self.search.is_halted() {
            if let Some(&first) = met.get(&at) {
                // The walk went backwards, so reverse it.
                let cycle: Vec<_> = walk.drain(first..).rev().collect();
                let Some(mut steps) = self.steps_to(&PathTarget::State(at.0, &at.1), start)? else {
                    return Ok(None);
                };
                let back = steps.len();
                steps.extend(cycle);
                let initial = self.search.model.initial();
                return Ok(Some(ProductRun {
                    trace: GoalPath { initial, steps },
                    end: DecisionKind::Back(back),
                }));
            }
            met.insert(at.clone(), walk.len());
            let Some((from, before, step)) = self.step_before(rest, at.0, &at.1)? else {
                return Ok(None);
            };
            walk.push(step);
            at = (from, before);
        }
        Ok(None)
    }
}

/// A graph of values: vertices by their positions in an ascending list, edges sorted.
struct ValueGraph<'a> {
    vertices: Vec<Option<u32>>,
    edges: &'a [(Option<u32>, Option<u32>)],
}

impl Graph for ValueGraph<'_> {
    fn vertices(&self) -> usize {
        self.vertices.len()
    }
    fn edges(&self, vertex: u32) -> std::ops::Range<u64> {
        let from = self.vertices[vertex as usize];
        let start = self.edges.partition_point(|e| e.0 < from);
        start as u64..(start + self.edges[start..].partition_point(|e| e.0 == from)) as u64
    }
    fn target(&self, edge: u64) -> Option<u32> {
        self.vertices.binary_search(&self.edges[edge as usize].1).ok().map(narrow::index)
    }
}

/// Returns the strongly connected components of a graph given by its sorted edges: a number for
/// each vertex.
fn numbered_components(edges: &[(Option<u32>, Option<u32>)]) -> AHashMap<Option<u32>, usize> {
    let mut vertices: Vec<Option<u32>> = edges.iter().flat_map(|e| [e.0, e.1]).collect();
    vertices.sort_unstable();
    vertices.dedup();
    let graph = ValueGraph { vertices, edges };
    let found = components(&graph);
    found
        .iter()
        .enumerate()
        .flat_map(|(c, part)| part.iter().map(move |&v| (v, c)))
        .map(|(v, c)| (graph.vertices[v as usize], c))
        .collect()
}
