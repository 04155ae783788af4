//! Search for an execution of a history that a model allows, for histories with many possible
//! executions.
//!
//! Input: a history's skeleton, the possible sources of each read, a model, and its monotone lower
//! bound ([`crate::cat::Model::lower_bound`]). Output: `rf` and `co` of an allowed execution, or
//! that there is none. The answer is exact.
//!
//! The search chooses one source, or the order of two writes, at a time. If the lower bound forbids
//! the pairs chosen so far, no execution has them. A first search does only that, and gives up
//! after 4,000 evaluations. The second one propagates (failed-literal probing): it also removes
//! each source and each order that the lower bound forbids together with the choices so far, and
//! fixes a choice with one candidate left. The model itself judges complete executions. Memory:
//! that of the choices on one path of the search; it does not grow with the number of executions.
//! Time: exponential at worst; the budget ends it.

use crate::cat::ModelRun;
use crate::execution::{SetId, Skeleton};
use crate::relation::Relation;
use mu_base::{Budget, Diagnostic};

/// Number of evaluations of the lower bound after which the first search gives up.
const PLAIN_EVALUATIONS: u64 = 4_000;
/// Number of evaluations between two checks of the budget.
const EVALUATIONS_PER_POLL: u64 = 64;

/// An allowed execution: `rf` and `co`.
pub type AllowedExecution = (Relation, Relation);

/// The pairs chosen so far, and the candidates of the other choices.
#[derive(Clone)]
struct PartialExecution {
    rf: Relation,
    /// Transitive.
    co: Relation,
    /// For each read without a source, its possible sources.
    candidates: Vec<(usize, Vec<usize>)>,
}

/// A reason for the end of a search without an answer.
enum SearchEnd {
    /// The search without propagation gave up.
    GaveUp,
    Failed(Diagnostic),
}

impl From<Diagnostic> for SearchEnd {
    fn from(d: Diagnostic) -> SearchEnd {
        SearchEnd::Failed(d)
    }
}

/// State of the search. `full` and `bound`: the model and its lower bound on one skeleton.
struct ExecutionSearch<'a, 'm, 's, 'b, 't> {
    full: &'a mut ModelRun<'m, 's>,
    bound: &'a mut ModelRun<'b, 't>,
    /// For each location, its writes; empty if the model does not depend on `co`.
    writes_by_location: Vec<Vec<usize>>,
    budget: &'a Budget,
    evaluations: u64,
    /// True if the lower bound removes candidates (the second search).
    propagates: bool,
}

/// Returns for each read its possible sources: the writes of its value to its location.
pub fn sources_by_value(s: &Skeleton) -> Vec<(usize, Vec<usize>)> {
    let e = s.events();
    let of = |r: usize| s.sources(r).filter(|&w| e[w].value == e[r].value).collect();
    s.set(SetId::READS).iter().map(|r| (r, of(r))).collect()
}

/// Input of a search.
#[derive(Clone, Copy)]
pub struct SearchInput<'a> {
    /// The events, and the relations that do not depend on the execution.
    pub skeleton: &'a Skeleton,
    /// True if the model depends on `co`, so that the search must choose it.
    pub depends_on_coherence: bool,
}

/// Searches for an execution that a model allows. `full` and `bound`: the model and its lower bound
/// on the skeleton, where the axioms about the skeleton alone hold. Error: those of the model, or a
/// limit of the budget.
pub fn find(
    input: SearchInput<'_>,
    full: &mut ModelRun<'_, '_>,
    bound: &mut ModelRun<'_, '_>,
    budget: &Budget,
) -> Result<Option<AllowedExecution>, Diagnostic> {
    let skeleton = input.skeleton;
    let n = skeleton.len();
    let mut co = Relation::empty(n);
    let writes_by_location: Vec<Vec<usize>> =
        skeleton.writes_by_location().iter().map(|part| part.iter().collect()).collect();
    let events = skeleton.events();
    for part in &writes_by_location {
        for (&a, &b) in part.iter().flat_map(|a| part.iter().map(move |b| (a, b))) {
            if events[a].thread.is_none() && events[b].thread.is_some() {
                co.insert(a, b);
            }
        }
    }
    let mut start = PartialExecution { rf: Relation::empty(n), co, candidates: Vec::new() };
    for (r, list) in sources_by_value(skeleton) {
        match list[..] {
            [] => return Ok(None),
            [w] => start.rf.insert(w, r),
            _ => start.candidates.push((r, list)),
        }
    }
    let writes_by_location =
        if input.depends_on_coherence { writes_by_location } else { Vec::new() };
    let mut search = ExecutionSearch {
        full,
        bound,
        writes_by_location,
        budget,
        evaluations: 0,
        propagates: false,
    };
    let result = match search.extend(start.clone()) {
        Err(SearchEnd::GaveUp) => {
            search.propagates = true;
            search.extend(start)
        }
        other => other,
    };
    match result {
        Ok(found) => Ok(found),
        Err(SearchEnd::Failed(d)) => Err(d),
        Err(SearchEnd::GaveUp) => Err(Diagnostic::internal("the search with propagation gave up")),
    }
}

/// Returns the transitive closure of a transitive order and one pair.
fn with_order(co: &Relation, a: usize, b: usize) -> Relation {
    let mut out = co.clone();
    let after: Vec<usize> = co.successors(b).chain([b]).collect();
    for x in co.predecessors(a).chain([a]) {
        after.iter().for_each(|&y| out.insert(x, y));
    }
    out
}

impl ExecutionSearch<'_, '_, '_, '_, '_> {
    /// True if the lower bound does not forbid these pairs.
    fn admits(&mut self, rf: &Relation, co: &Relation) -> Result<bool, SearchEnd> {
        self.evaluations += 1;
        if !self.propagates && self.evaluations > PLAIN_EVALUATIONS {
            return Err(SearchEnd::GaveUp);
        }
        if self.evaluations.is_multiple_of(EVALUATIONS_PER_POLL) {
            self.budget.check(0).map_err(Diagnostic::stopped)?;
        }
        Ok(self.bound.admits(rf, co)?)
    }

    /// Returns a pair of writes that `co` does not order. Pairs at a small distance in the list of
    /// writes come first: a chain of them orders all others by transitivity.
    fn unordered_pair(&self, co: &Relation) -> Option<(usize, usize)> {
        let is_open = |&(a, b): &(usize, usize)| !co.contains(a, b) && !co.contains(b, a);
        self.writes_by_location.iter().find_map(|part| {
            (1..part.len())
                .flat_map(|distance| part.iter().zip(&part[distance..]))
                .map(|(&a, &b)| (a, b))
                .find(is_open)
        })
    }

    /// Removes the candidates that the lower bound forbids, until no further pair is chosen: only
    /// chosen pairs change the bound. False if a choice has no candidate left.
    fn propagate(&mut self, c: &mut PartialExecution) -> Result<bool, SearchEnd> {
        loop {
            let mut changed = false;
            for (r, list) in std::mem::take(&mut c.candidates) {
                let mut left = Vec::with_capacity(list.len());
                for w in list {
                    c.rf.insert(w, r);
                    if self.admits(&c.rf, &c.co)? {
                        left.push(w);
                    }
                    c.rf.remove(w, r);
                }
                match left[..] {
                    [] => return Ok(false),
                    [w] => {
                        c.rf.insert(w, r);
                        changed = true;
                    }
                    _ => c.candidates.push((r, left)),
                }
            }
            for part in 0..self.writes_by_location.len() {
                for i in 0..self.writes_by_location[part].len() {
                    for j in i + 1..self.writes_by_location[part].len() {
                        let (a, b) =
                            (self.writes_by_location[part][i], self.writes_by_location[part][j]);
                        if c.co.contains(a, b) || c.co.contains(b, a) {
                            continue;
                        }
                        let [forth, back] = [with_order(&c.co, a, b), with_order(&c.co, b, a)];
                        match (self.admits(&c.rf, &forth)?, self.admits(&c.rf, &back)?) {
                            (true, true) => continue,
                            (true, false) => c.co = forth,
                            (false, true) => c.co = back,
                            (false, false) => return Ok(false),
                        }
                        changed = true;
                    }
                }
            }
            if !changed {
                return Ok(true);
            }
        }
    }

    /// Searches for an allowed execution with these choices.
    fn extend(&mut self, mut c: PartialExecution) -> Result<Option<AllowedExecution>, SearchEnd> {
        if !self.admits(&c.rf, &c.co)? || self.propagates && !self.propagate(&mut c)? {
            return Ok(None);
        }
        let least = c.candidates.iter().enumerate().min_by_key(|(_, (_, list))| list.len());
        let next = if self.propagates { least.map(|l| l.0) } else { least.map(|_| 0) };
        if let Some(next) = next {
            let (r, list) = c.candidates.remove(next);
            for w in list {
                let mut with = c.clone();
                with.rf.insert(w, r);
                let found = self.extend(with)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            return Ok(None);
        }
        if let Some((a, b)) = self.unordered_pair(&c.co) {
            for (first, second) in [(a, b), (b, a)] {
                let co = with_order(&c.co, first, second);
                let found = self.extend(PartialExecution { co, ..c.clone() })?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            return Ok(None);
        }
        let allowed = self.full.set_reads_from(&c.rf)? && self.full.set_coherence(&c.rf, &c.co)?;
        Ok(allowed.then_some((c.rf, c.co)))
    }
}
