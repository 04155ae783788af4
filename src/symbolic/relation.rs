//! Relations of transition groups, learned during the search.
//!
//! Groups with equal footprints (slots tested or read, slots written) share one relation: in models
//! made of components, these are the groups of one component, or of one communicating pair. A
//! relation learns from a set of states: the set is projected to the slots read, and each new short
//! vector is evaluated once by the model's worker (Blom, van de Pol, "Symbolic reachability for
//! process algebras with recursive data types", 2008: tables grow with the search, nothing is
//! bounded in advance).
//!
//! Invariant: `relation` holds the steps of exactly the short vectors in `seen`.

use super::ldd::{Ldd, LevelAction, Manager, Plan};
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_model::{Group, Model, Slot, Steps, Worker};
use std::collections::BTreeMap;

/// Source of a value in a relation's vector.
#[derive(Clone, Copy, Debug)]
enum ValueSource {
    Required(u32),
    Read(usize),
    Written(usize),
}

/// A group as a part of a relation.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The group's number.
    pub group: usize,
    /// Projection from the relation's short vectors to the group's.
    select: Plan,
    /// Selection of states with a short vector in a given set.
    pub matches: Plan,
    /// Position in the short vector (in level order) of each of the group's reads (in slot order).
    reads: Vec<usize>,
    /// Required values at positions of the short vector (slots both required and read).
    also_required: Vec<(usize, u32)>,
    /// Sources of the values of the relation's vectors.
    sources: Vec<ValueSource>,
    /// Learned sets so far.
    pub sets: LearnedVectors,
    /// Labels of steps.
    pub labels: AHashSet<LabelId>,
    /// For each slot written: the level, and true if each learned step changes its value.
    pub changes: Vec<(usize, bool)>,
    /// For each slot written: the source of its value before the step, if it is read.
    before: Vec<Option<ValueSource>>,
}

/// Learned sets of short vectors of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct LearnedVectors {
    /// Short vectors that were evaluated.
    seen: Ldd,
    /// Short vectors with at least one step, by their number of steps.
    pub enabled: BTreeMap<usize, Ldd>,
    /// Short vectors with a goal step.
    pub goal: Ldd,
}

/// Steps of a group learned from some short vectors.
#[derive(Default)]
struct LearnedBatch {
    sets: LearnedVectors,
    /// Number of steps.
    steps: usize,
    labels: AHashSet<LabelId>,
    /// For each slot written: true if each of these steps changes its value.
    changes: Vec<bool>,
}

/// Groups of one footprint.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// The groups.
    pub members: Vec<Member>,
    /// First level touched.
    pub top: usize,
    /// True if anything is written.
    pub writes: bool,
    /// The steps learned.
    pub relation: Ldd,
    /// Image plan, from the first level and from `top`.
    pub image: [Plan; 2],
    /// Projection to short vectors, from the first level and from `top`.
    project: [Plan; 2],
    /// Projection from vectors of the relation to the values read.
    pub source: Plan,
    /// Selection of states that read a given short vector.
    pub matches: Plan,
    /// Levels written.
    pub written: Vec<usize>,
    /// Action at each level.
    pub actions: Vec<LevelAction>,
    /// Short vectors learned.
    seen: Ldd,
    /// Number of possible short vectors, if each slot that is read is limited to some values.
    possible: Option<u64>,
    /// True if all of these are learned.
    complete: bool,
}

impl Relation {
    /// Returns the projection to short vectors.
    pub fn projection(&self) -> Plan {
        self.project[0]
    }
    /// Returns sets that a collection must preserve.
    pub fn roots(&self) -> impl Iterator<Item = Ldd> + '_ {
        let members = self
            .members
            .iter()
            .flat_map(|m| m.sets.enabled.values().copied().chain([m.sets.seen, m.sets.goal]));
        members.chain([self.relation, self.seen])
    }
}

/// Creates the relations of a model. `level`: each slot's level. Unless `merge`, each group gets
/// its own.
pub(super) fn relations(
    model: &dyn Model,
    level: &[usize],
    merge: bool,
    manager: &mut Manager,
) -> Vec<Relation> {
    let mut classes: BTreeMap<(Vec<usize>, Vec<usize>, usize), Vec<usize>> = BTreeMap::new();
    let sorted = |slots: &mut dyn Iterator<Item = Slot>| {
        let mut levels: Vec<usize> = slots.map(|s| level[s as usize]).collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    };
    for (i, g) in model.groups().iter().enumerate() {
        let reads = sorted(&mut g.reads.iter().copied().chain(g.requires.iter().map(|r| r.0)));
        let writes = sorted(&mut g.writes.iter().copied());
        classes.entry((reads, writes, if merge { 0 } else { i })).or_default().push(i);
    }
    classes
        .into_iter()
        .map(|((reads, writes, _), groups)| {
            let touched =
                |l: &usize| reads.binary_search(l).is_ok() || writes.binary_search(l).is_ok();
            let top = (0..level.len()).find(touched).unwrap_or(0);
            let action = |l: usize| match (
                reads.binary_search(&l).is_ok(),
                writes.binary_search(&l).is_ok(),
            ) {
                (true, true) => LevelAction::ReadWrite,
                (true, false) => LevelAction::Read,
                (false, true) => LevelAction::Write,
                (false, false) => LevelAction::Skip,
            };
            let image: Vec<LevelAction> = (0..level.len()).map(action).collect();
            let mut possible = Some(1u64);
            let project: Vec<LevelAction> = (0..level.len())
                .map(|l| {
                    match (reads.binary_search(&l), required_values(model, &groups, level, l)) {
                        (Err(_), _) => LevelAction::Drop,
                        (Ok(_), None) => {
                            possible = None;
                            LevelAction::Keep
                        }
                        (Ok(_), Some(values)) => {
                            possible = possible.and_then(|p| p.checked_mul(values.len() as u64));
                            manager.restriction(&values)
                        }
                    }
                })
                .collect();
            let members = groups
                .into_iter()
                .map(|g| member(g, &model.groups()[g], level, &reads, &writes, manager))
                .collect();
            let source: Vec<LevelAction> = image
                .iter()
                .flat_map(|a| match a {
                    LevelAction::Read => &[LevelAction::Keep][..],
                    LevelAction::Write => &[LevelAction::Drop],
                    LevelAction::ReadWrite => &[LevelAction::Keep, LevelAction::Drop],
                    _ => &[],
                })
                .copied()
                .collect();
            let matches: Vec<LevelAction> = project
                .iter()
                .map(
                    |a| if *a == LevelAction::Drop { LevelAction::Skip } else { LevelAction::Read },
                )
                .collect();
            Relation {
                members,
                top,
                writes: !writes.is_empty(),
                relation: Ldd::EMPTY,
                image: [manager.plan_of(&image), manager.plan_of(&image[top..])],
                project: [manager.plan_of(&project), manager.plan_of(&project[top..])],
                source: manager.plan_of(&source),
                matches: manager.plan_of(&matches),
                written: writes,
                actions: image,
                seen: Ldd::EMPTY,
                possible,
                complete: false,
            }
        })
        .collect()
}

/// Returns the values at a level with which one of the groups may have steps; `None` if any value
/// may.
fn required_values(
    model: &dyn Model,
    groups: &[usize],
    level: &[usize],
    at: usize,
) -> Option<Vec<u32>> {
    let required = |&g: &usize| {
        model.groups()[g].requires.iter().find(|r| level[r.0 as usize] == at).map(|r| r.1)
    };
    let mut values: Vec<u32> = groups.iter().map(required).collect::<Option<_>>()?;
    values.sort_unstable();
    values.dedup();
    Some(values)
}

fn member(
    number: usize,
    group: &Group,
    level: &[usize],
    reads: &[usize],
    writes: &[usize],
    manager: &mut Manager,
) -> Member {
    let mut own: Vec<usize> = group.reads.iter().map(|&s| level[s as usize]).collect();
    own.sort_unstable();
    own.dedup();
    let place = |l: usize| own.binary_search(&l).ok();
    let required = |l: usize| group.requires.iter().find(|r| level[r.0 as usize] == l).map(|r| r.1);
    let select: Vec<LevelAction> = reads
        .iter()
        .map(|&l| match (place(l), required(l)) {
            (None, Some(value)) => LevelAction::Require(value),
            _ => LevelAction::Keep,
        })
        .collect();
    let matches: Vec<LevelAction> = (0..level.len())
        .map(|l| match (place(l), required(l)) {
            (Some(_), _) => LevelAction::Read,
            (None, Some(value)) => LevelAction::Require(value),
            (None, None) => LevelAction::Skip,
        })
        .collect();
    let mut sources = Vec::new();
    for l in 0..level.len() {
        if reads.binary_search(&l).is_ok() {
            sources.push(match (place(l), required(l)) {
                (Some(i), _) => ValueSource::Read(i),
                (None, Some(value)) => ValueSource::Required(value),
                (None, None) => continue,
            });
        }
        if writes.binary_search(&l).is_ok() {
            sources.extend(
                group.writes.iter().position(|&s| level[s as usize] == l).map(ValueSource::Written),
            );
        }
    }
    let before = |&slot: &Slot| {
        let l = level[slot as usize];
        place(l).map(ValueSource::Read).or(required(l).map(ValueSource::Required))
    };
    Member {
        labels: AHashSet::new(),
        changes: group.writes.iter().map(|&s| (level[s as usize], true)).collect(),
        before: group.writes.iter().map(before).collect(),
        group: number,
        select: manager.plan_of(&select),
        matches: manager.plan_of(&matches),
        reads: group.reads.iter().filter_map(|&s| place(level[s as usize])).collect(),
        also_required: group
            .requires
            .iter()
            .filter_map(|&(s, v)| Some((place(level[s as usize])?, v)))
            .collect(),
        sources,
        sets: LearnedVectors::default(),
    }
}

/// Evaluator of groups for learning.
pub(super) struct GroupEvaluator<'m> {
    /// The model's evaluator.
    pub worker: Box<dyn Worker + 'm>,
    /// Predicate for goal labels.
    pub wanted: Option<Box<dyn Fn(LabelId) -> bool + 'm>>,
    /// True if a goal label was found.
    pub found: bool,
    /// Calls of the evaluator.
    pub calls: u64,
    /// If set, omits steps that write a value of at least this bound to a slot that is not a
    /// control location; answers are then cached.
    pub bound: Option<u32>,
    /// True if a step was omitted.
    pub left_out: bool,
    memory: AHashMap<(usize, Vec<u32>), GroupSteps>,
    steps: Steps,
    /// By group and written slot: true if values are bounded.
    writes: Vec<Vec<bool>>,
}

/// Steps of a group: label and written values of each.
type GroupSteps = Vec<(LabelId, Vec<u32>)>;

impl<'m> GroupEvaluator<'m> {
    pub fn new(model: &'m dyn Model, wanted: Option<Box<dyn Fn(LabelId) -> bool + 'm>>) -> Self {
        let bounded =
            |g: &Group| g.writes.iter().map(|&s| !model.slots()[s as usize].control).collect();
        Self {
            worker: model.worker(),
            wanted,
            found: false,
            calls: 0,
            bound: None,
            left_out: false,
            memory: AHashMap::new(),
            steps: Steps::default(),
            writes: model.groups().iter().map(bounded).collect(),
        }
    }

    /// Returns the steps of one group, without duplicates.
    pub fn steps(&mut self, group: usize, reads: &[u32]) -> Result<GroupSteps, Diagnostic> {
        let Some(bound) = self.bound else {
            return self.ask(group, reads);
        };
        let key = (group, reads.to_vec());
        let mut all = match self.memory.get(&key) {
            Some(steps) => steps.clone(),
            None => {
                let steps = self.ask(group, reads)?;
                self.memory.insert(key, steps.clone());
                steps
            }
        };
        let (count, bounded) = (all.len(), &self.writes[group]);
        all.retain(|(_, values)| values.iter().zip(bounded).all(|(&v, &b)| v < bound || !b));
        self.left_out |= all.len() < count;
        Ok(all)
    }

    fn ask(&mut self, group: usize, reads: &[u32]) -> Result<GroupSteps, Diagnostic> {
        self.steps.clear();
        self.calls += 1;
        self.worker.steps(group, reads, &mut self.steps)?;
        let width = self.writes[group].len();
        let values = |i: usize| self.steps.values[i * width..(i + 1) * width].to_vec();
        let mut all: GroupSteps =
            self.steps.labels.iter().enumerate().map(|(i, &label)| (label, values(i))).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

impl Relation {
    /// Learns the steps of all short vectors of `set`, which begins at the first level (`from_top`
    /// false) or at the relation's top. Returns true if there were new ones. If the manager halts,
    /// nothing is learned.
    pub fn learn(
        &mut self,
        manager: &mut Manager,
        evaluator: &mut GroupEvaluator,
        set: Ldd,
        from_top: bool,
    ) -> Result<bool, Diagnostic> {
        if self.complete {
            return Ok(false);
        }
        let short = manager.project(set, self.project[usize::from(from_top)]);
        let new = manager.minus(short, self.seen);
        if new.is_empty() || manager.halt_reason().is_some() {
            return Ok(false);
        }
        let (mut rows, mut count) = (Vec::new(), 0);
        let mut lessons = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let short = manager.project(new, member.select);
            let short = manager.minus(short, member.sets.seen);
            let lesson = if short.is_empty() {
                LearnedBatch::default()
            } else {
                member.learn(manager, evaluator, short, &mut rows)?
            };
            count += lesson.steps;
            lessons.push(lesson);
        }
        let width = rows.len().checked_div(count).unwrap_or(0);
        let learned = manager.from_vectors(&rows, width, count);
        let relation = manager.union(self.relation, learned);
        let seen = manager.union(self.seen, new);
        let complete = self.possible.is_some_and(|most| manager.count(seen) == most.into());
        let sets: Vec<LearnedVectors> = self
            .members
            .iter()
            .zip(&lessons)
            .map(|(m, l)| m.sets.union(manager, &l.sets))
            .collect();
        // Results of operations after a halt are meaningless, and the search may be resumed.
        if manager.halt_reason().is_some() {
            return Ok(false);
        }
        (self.relation, self.seen, self.complete) = (relation, seen, complete);
        for ((member, lesson), sets) in self.members.iter_mut().zip(lessons).zip(sets) {
            member.sets = sets;
            member.labels.extend(lesson.labels);
            member
                .changes
                .iter_mut()
                .zip(lesson.changes)
                .for_each(|(change, changes)| change.1 &= changes);
        }
        Ok(true)
    }

    /// Merges the learned steps of another thread. Returns false if the manager halts; then nothing
    /// is merged.
    pub fn absorb(&mut self, manager: &mut Manager, other: &Relation) -> bool {
        let relation = manager.union(self.relation, other.relation);
        let seen = manager.union(self.seen, other.seen);
        let sets: Vec<LearnedVectors> = self
            .members
            .iter()
            .zip(&other.members)
            .map(|(m, o)| m.sets.union(manager, &o.sets))
            .collect();
        if manager.halt_reason().is_some() {
            return false;
        }
        (self.relation, self.seen, self.complete) =
            (relation, seen, self.complete || other.complete);
        for ((member, other), sets) in self.members.iter_mut().zip(&other.members).zip(sets) {
            member.sets = sets;
            member.labels.extend(other.labels.iter().copied());
            member
                .changes
                .iter_mut()
                .zip(&other.changes)
                .for_each(|(change, other)| change.1 &= other.1);
        }
        true
    }
}

impl LearnedVectors {
    /// Returns the union. Meaningless if the manager halts.
    fn union(&self, manager: &mut Manager, other: &LearnedVectors) -> LearnedVectors {
        let mut enabled = self.enabled.clone();
        for (&steps, &set) in &other.enabled {
            let all = enabled.entry(steps).or_default();
            *all = manager.union(*all, set);
        }
        LearnedVectors {
            seen: manager.union(self.seen, other.seen),
            enabled,
            goal: manager.union(self.goal, other.goal),
        }
    }
}

impl Member {
    /// Evaluates all vectors of `short`; appends vectors of the relation to `rows`.
    fn learn(
        &self,
        manager: &mut Manager,
        evaluator: &mut GroupEvaluator,
        short: Ldd,
        rows: &mut Vec<u32>,
    ) -> Result<LearnedBatch, Diagnostic> {
        let width = self.reads.len();
        let mut vectors = Vec::new();
        let mut number = 0;
        manager.for_each(short, |v| {
            vectors.extend_from_slice(v);
            number += 1;
        });
        let mut counts: BTreeMap<usize, (Vec<u32>, usize)> = BTreeMap::new();
        let mut goals = (Vec::new(), 0);
        let mut reads = vec![0; width];
        let mut lesson =
            LearnedBatch { changes: vec![true; self.changes.len()], ..LearnedBatch::default() };
        for i in 0..number {
            let vector = &vectors[i * width..(i + 1) * width];
            if self.also_required.iter().any(|&(at, value)| vector[at] != value) {
                continue;
            }
            for (to, &from) in reads.iter_mut().zip(&self.reads) {
                *to = vector[from];
            }
            let steps = evaluator.steps(self.group, &reads)?;
            if steps.is_empty() {
                continue;
            }
            let entry = counts.entry(steps.len()).or_default();
            entry.0.extend_from_slice(vector);
            entry.1 += 1;
            if evaluator.wanted.as_ref().is_some_and(|wanted| steps.iter().any(|s| wanted(s.0))) {
                evaluator.found = true;
                goals.0.extend_from_slice(vector);
                goals.1 += 1;
            }
            for (label, written) in &steps {
                lesson.steps += 1;
                self.row(vector, written, rows);
                lesson.labels.insert(*label);
                for ((changes, before), after) in
                    lesson.changes.iter_mut().zip(&self.before).zip(written)
                {
                    *changes &= match before {
                        Some(ValueSource::Read(at)) => vector[*at] != *after,
                        Some(ValueSource::Required(value)) => value != after,
                        _ => false,
                    };
                }
            }
        }
        lesson.sets.seen = short;
        lesson.sets.enabled = counts
            .into_iter()
            .map(|(steps, (rows, number))| (steps, manager.from_vectors(&rows, width, number)))
            .collect();
        lesson.sets.goal = manager.from_vectors(&goals.0, width, goals.1);
        Ok(lesson)
    }

    /// Appends a vector of the relation.
    fn row(&self, vector: &[u32], written: &[u32], rows: &mut Vec<u32>) {
        rows.extend(self.sources.iter().map(|s| match *s {
            ValueSource::Required(value) => value,
            ValueSource::Read(at) => vector[at],
            ValueSource::Written(at) => written[at],
        }));
    }

    /// Passes all learned steps to `each`: label and vector of the relation. Evaluates the model
    /// again, which is cheaper than storing labels in every search.
    pub fn for_each_labelled(
        &self,
        manager: &Manager,
        evaluator: &mut GroupEvaluator,
        mut each: impl FnMut(LabelId, &[u32]),
    ) -> Result<(), Diagnostic> {
        let (mut reads, mut row) = (vec![0; self.reads.len()], Vec::new());
        for &set in self.sets.enabled.values() {
            let mut failure = None;
            manager.for_each(set, |vector| {
                if failure.is_some() {
                    return;
                }
                for (to, &from) in reads.iter_mut().zip(&self.reads) {
                    *to = vector[from];
                }
                match evaluator.steps(self.group, &reads) {
                    Err(error) => failure = Some(error),
                    Ok(steps) => {
                        for (label, written) in steps {
                            row.clear();
                            self.row(vector, &written, &mut row);
                            each(label, &row);
                        }
                    }
                }
            });
            failure.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Returns the steps of the group from a state (given by slot): label and target.
    pub fn steps_from(
        &self,
        group: &Group,
        evaluator: &mut GroupEvaluator,
        from: &[u32],
    ) -> Result<Vec<(LabelId, Vec<u32>)>, Diagnostic> {
        if group.requires.iter().any(|&(s, v)| from[s as usize] != v) {
            return Ok(Vec::new());
        }
        let reads: Vec<u32> = group.reads.iter().map(|&s| from[s as usize]).collect();
        let steps = evaluator.steps(self.group, &reads)?;
        let target = |(label, written): (LabelId, Vec<u32>)| {
            let mut state = from.to_vec();
            for (&slot, value) in group.writes.iter().zip(written) {
                state[slot as usize] = value;
            }
            (label, state)
        };
        Ok(steps.into_iter().map(target).collect())
    }
}
