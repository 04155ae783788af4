//! Test suites: a minimum set of litmus tests that detects all of the given faulty machines.
//!
//! Input: faulty machines, a memory model, a number of operations of each processor. The candidates
//! are all programs up to that size. A candidate detects a fault if, for that program, the faulty
//! machine has an execution that the model forbids and the right machine lacks. One search of each
//! machine finds all candidates that do ([`detecting_programs`]). Output: a smallest set of
//! candidates that detects all faults and, among these, one with fewest operations ([`Cover`]). It
//! is found by branch and bound: exact, exponential in the worst case.
//!
//! A test of a suite checks itself: it lists the outcomes that the model allows ([`outcomes`]), and
//! every other outcome is a fault.

use crate::interface::Interface;
use crate::judge::{JudgeWorker, MemoryModel};
use crate::machine::ReducedMachine;
use crate::search::{Bound, search};
use crate::symmetry::SymmetryGroup;
use ahash::{AHashMap, AHashSet};
use fixedbitset::FixedBitSet;
use mu_axioms::EventKind;
use mu_axioms::history::History;
use mu_base::{Budget, Diagnostic, Stop};
use std::collections::BTreeMap;

/// Limit on the sets that the search for a cover visits; beyond it the best cover so far is
/// returned.
const COVER_LIMIT: usize = 5_000_000;

/// Executions of a machine, in canonical form.
pub type Executions = AHashSet<History>;

/// Computes all executions of a machine, up to a number of operations of each processor. Error: a
/// limit was reached.
pub fn executions(
    interface: &Interface,
    (machine, group): (&ReducedMachine, &SymmetryGroup),
    (operations, threads): (usize, usize),
    budget: &Budget,
) -> Result<Executions, Diagnostic> {
    let bound = Bound { collect: usize::MAX, ..Bound::of(operations, threads) };
    let answer = search(interface, machine, group, &[], bound, budget)?;
    if answer.stop != Stop::Complete {
        return Err(Diagnostic::stopped(answer.stop));
    }
    Ok(answer.judged_histories.into_iter().collect())
}

/// Computes the programs that detect a fault, each with the least execution that shows it: the
/// faulty machine has it, the right one lacks it, and the model forbids it.
pub fn detecting_programs(
    faulty: Executions,
    right: &Executions,
    model: &MemoryModel,
    budget: &Budget,
) -> Result<BTreeMap<History, History>, Diagnostic> {
    let mut worker = model.worker_within(budget);
    let mut found: BTreeMap<History, History> = BTreeMap::new();
    for (i, history) in faulty.into_iter().filter(|h| !right.contains(h)).enumerate() {
        budget.check(i as u64).map_err(Diagnostic::stopped)?;
        let program = history.program();
        if found.get(&program).is_none_or(|first| history < *first) && !worker.allows(&history)? {
            found.insert(program, history);
        }
    }
    Ok(found)
}

/// A smallest set of candidates that covers every element that any candidate covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cover {
    /// The indices of the chosen candidates, sorted.
    pub taken: Vec<usize>,
    /// True if no smaller set exists; false if the search was cut short.
    pub is_least: bool,
}

struct CoverSearch<'c> {
    sets: &'c [(FixedBitSet, usize)],
    /// For each element, the sets that contain it.
    sets_with: Vec<Vec<usize>>,
    best: Option<(usize, usize, Vec<usize>)>,
    seen: usize,
}

impl CoverSearch<'_> {
    fn extend(&mut self, open: &FixedBitSet, taken: &mut Vec<usize>, cost: usize) {
        self.seen += 1;
        let left = open.count_ones(..);
        let bound = (taken.len(), cost);
        if left == 0 {
            if self.best.as_ref().is_none_or(|b| bound < (b.0, b.1)) {
                self.best = Some((bound.0, bound.1, taken.clone()));
            }
            return;
        }
        let most = self.sets.iter().map(|s| s.0.intersection_count(open)).max().unwrap_or(1).max(1);
        let least = taken.len() + left.div_ceil(most);
        if self.seen >= COVER_LIMIT
            || self.best.as_ref().is_some_and(|b| (least, cost + 1) > (b.0, b.1))
        {
            return;
        }
        // Branch on the element that the fewest sets contain.
        let Some(element) = open.ones().min_by_key(|&e| self.sets_with[e].len()) else { return };
        let mut order = self.sets_with[element].clone();
        order.sort_by_key(|&s| {
            (std::cmp::Reverse(self.sets[s].0.intersection_count(open)), self.sets[s].1, s)
        });
        for s in order {
            let mut rest = open.clone();
            rest.difference_with(&self.sets[s].0);
            taken.push(s);
            self.extend(&rest, taken, cost + self.sets[s].1);
            taken.pop();
        }
    }
}

impl Cover {
    /// Computes a cover with the fewest candidates and, among these, the least cost. Each candidate
    /// has the elements that it covers, all below `elements`, and a cost.
    pub fn least(elements: usize, candidates: &[(Vec<usize>, usize)]) -> Cover {
        let set = |numbers: &[usize]| {
            let mut set = FixedBitSet::with_capacity(elements);
            numbers.iter().for_each(|&n| set.insert(n));
            set
        };
        let candidates: Vec<(FixedBitSet, usize)> =
            candidates.iter().map(|(n, cost)| (set(n), *cost)).collect();
        // Candidates that cover the same elements are represented by the cheapest. A candidate is
        // dropped if another covers its elements at no higher cost.
        let mut cheapest: AHashMap<&FixedBitSet, usize> = AHashMap::new();
        for (i, (set, cost)) in candidates.iter().enumerate().filter(|(_, c)| !c.0.is_clear()) {
            let known = cheapest.entry(set).or_insert(i);
            if *cost < candidates[*known].1 {
                *known = i;
            }
        }
        let mut chosen: Vec<usize> = cheapest.into_values().collect();
        chosen.sort_unstable();
        let useful = |&i: &usize| {
            let (set, cost) = &candidates[i];
            !chosen
                .iter()
                .any(|&j| j != i && set.is_subset(&candidates[j].0) && candidates[j].1 <= *cost)
        };
        let useful_sets: Vec<usize> = chosen.iter().copied().filter(useful).collect();
        let sets: Vec<(FixedBitSet, usize)> =
            useful_sets.iter().map(|&i| candidates[i].clone()).collect();
        let mut all = FixedBitSet::with_capacity(elements);
        sets.iter().for_each(|(set, _)| all.union_with(set));
        let sets_with = (0..elements)
            .map(|e| (0..sets.len()).filter(|&s| sets[s].0.contains(e)).collect())
            .collect();
        let mut search = CoverSearch { sets: &sets, sets_with, best: None, seen: 0 };
        search.extend(&all, &mut Vec::new(), 0);
        let mut taken: Vec<usize> = search
            .best
            .map(|b| b.2)
            .unwrap_or_default()
            .into_iter()
            .map(|s| useful_sets[s])
            .collect();
        taken.sort_unstable();
        Cover { taken, is_least: search.seen < COVER_LIMIT }
    }
}

/// Computes the outcomes of a program that a model allows: the values that its loads read, thread
/// by thread. Values that no operation writes are excluded.
pub fn outcomes(
    program: &History,
    worker: &mut JudgeWorker<'_>,
) -> Result<Vec<Vec<u64>>, Diagnostic> {
    let values = |l: u32| {
        let mut all: Vec<u64> = program
            .threads
            .iter()
            .flatten()
            .filter(|o| o.kind.writes() && o.location == l)
            .map(|o| o.value)
            .collect();
        all.push(0);
        all.sort_unstable();
        all.dedup();
        all
    };
    let reads: Vec<(usize, usize)> = program
        .threads
        .iter()
        .enumerate()
        .flat_map(|(t, ops)| (0..ops.len()).filter(|&i| ops[i].kind.reads()).map(move |i| (t, i)))
        .collect();
    let choices: Vec<Vec<u64>> =
        reads.iter().map(|&(t, i)| values(program.threads[t][i].location)).collect();
    let mut at = vec![0usize; reads.len()];
    let mut out = Vec::new();
    loop {
        let outcome: Vec<u64> = at.iter().zip(&choices).map(|(&i, c)| c[i]).collect();
        let mut history = program.clone();
        for (&(t, i), &v) in reads.iter().zip(&outcome) {
            let o = &mut history.threads[t][i];
            *(if o.kind == EventKind::Update { &mut o.read } else { &mut o.value }) = v;
        }
        if worker.allows(&history)? {
            out.push(outcome);
        }
        // The next combination; the last load changes fastest.
        let Some(next) = (0..at.len()).rev().find(|&i| at[i] + 1 < choices[i].len()) else {
            return Ok(out);
        };
        at[next] += 1;
        at[next + 1..].fill(0);
    }
}
