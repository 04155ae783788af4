//! Partition of the steps of complete relations by the label classes of an observer.
//!
//! Input -> output: a search with complete relations, and a class for each label -> for each
//! relation the vectors of each class, and the union of any selection of classes. Unions over
//! ranges of classes are cached, so that similar selections share work.
//!
//! Cost: an evaluation of the model for each vector of a group, to obtain its labels; a union for
//! each requested range. Invariant: all sets stored here are pinned in the search.

use super::ldd::Ldd;
use super::reach::ReachSearch;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use std::collections::BTreeMap;

/// The steps of a relation by class of label.
#[derive(Default)]
struct ByClass {
    /// Index of the class, and the relation's vectors.
    rows: Vec<(usize, Ldd)>,
    /// Unions over ranges.
    ranges: AHashMap<(usize, usize), Ldd>,
}

/// The steps of all relations by class of label.
pub(super) struct Classes {
    /// A label of each class.
    pub labels: Vec<LabelId>,
    class_of: AHashMap<LabelId, usize>,
    steps: Vec<ByClass>,
}

impl Classes {
    /// Partitions the steps of the relations, which must be complete. `class` returns the
    /// representative of a label.
    pub fn new(
        search: &mut ReachSearch,
        class: &mut dyn FnMut(LabelId) -> Result<LabelId, Diagnostic>,
    ) -> Result<Self, Diagnostic> {
        let mut classes = Self { labels: Vec::new(), class_of: AHashMap::new(), steps: Vec::new() };
        let mut known: AHashMap<LabelId, usize> = AHashMap::new();
        for i in 0..search.relations.len() {
            let mut rows: BTreeMap<LabelId, (Vec<u32>, usize)> = BTreeMap::new();
            let ReachSearch { relations, manager, evaluator, .. } = search;
            for member in &relations[i].members {
                member.for_each_labelled(manager, evaluator, |label, row| {
                    let all = rows.entry(label).or_default();
                    all.0.extend_from_slice(row);
                    all.1 += 1;
                })?;
            }
            let mut by_class: BTreeMap<usize, Ldd> = BTreeMap::new();
            for (label, (rows, count)) in rows {
                let number = match known.get(&label) {
                    Some(&number) => number,
                    None => {
                        let number = classes.enter(class(label)?);
                        known.insert(label, number);
                        number
                    }
                };
                let set = search.manager.from_vectors(&rows, rows.len() / count, count);
                let all = by_class.entry(number).or_default();
                *all = search.manager.union(*all, set);
            }
            search.pinned.extend(by_class.values());
            classes
                .steps
                .push(ByClass { rows: by_class.into_iter().collect(), ranges: AHashMap::new() });
        }
        Ok(classes)
    }

    fn enter(&mut self, representative: LabelId) -> usize {
        let fresh = self.labels.len();
        let number = *self.class_of.entry(representative).or_insert(fresh);
        if number == fresh {
            self.labels.push(representative);
        }
        number
    }

    /// Returns the index of the class of a representative; `None` if the label represents no class.
    pub fn number(&self, representative: LabelId) -> Option<usize> {
        self.class_of.get(&representative).copied()
    }
    /// Returns the number of relations.
    pub fn relations(&self) -> usize {
        self.steps.len()
    }
    /// Returns the classes of which a relation has steps.
    pub fn of(&self, relation: usize) -> impl Iterator<Item = usize> + '_ {
        self.steps[relation].rows.iter().map(|r| r.0)
    }
    /// Returns the steps of a relation in the selected classes.
    pub fn part(
        &mut self,
        search: &mut ReachSearch,
        relation: usize,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Ldd {
        let steps = &mut self.steps[relation];
        let mut counts = vec![0];
        for row in &steps.rows {
            counts.push(counts[counts.len() - 1] + usize::from(wanted(row.0)));
        }
        let range = (0, steps.rows.len());
        union_over(steps, &counts, range, search)
    }
}

impl ReachSearch<'_> {
    /// Returns the states of a set that have some of these steps.
    pub(super) fn sources(&mut self, set: Ldd, relation: usize, rows: Ldd) -> Ldd {
        let (source, matches) = (self.relations[relation].source, self.relations[relation].matches);
        let short = self.manager.project(rows, source);
        self.manager.select_matches(set, short, matches)
    }
}

/// Returns the union of the selected classes in a range. `counts`: number of selected classes
/// before each.
fn union_over(
    steps: &mut ByClass,
    counts: &[usize],
    (from, to): (usize, usize),
    search: &mut ReachSearch,
) -> Ldd {
    let chosen = counts[to] - counts[from];
    if chosen == 0 {
        return Ldd::EMPTY;
    }
    if to - from == 1 {
        return steps.rows[from].1;
    }
    let whole = chosen == to - from;
    if let Some(&set) = steps.ranges.get(&(from, to)).filter(|_| whole) {
        return set;
    }
    let middle = from.midpoint(to);
    let left = union_over(steps, counts, (from, middle), search);
    let right = union_over(steps, counts, (middle, to), search);
    let set = search.manager.union(left, right);
    if whole {
        search.pinned.push(set);
        steps.ranges.insert((from, to), set);
    }
    set
}
