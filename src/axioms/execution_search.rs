//! Search for an execution of a history that a model allows, for histories with many possible
//! executions.
//!
//! Input: a history's skeleton, the possible sources of each read, a model, and its monotone lower
//! bound ([`crate::cat::Model::lower_bound`]). Output: `rf` and `co` of an allowed execution, or
//! that there is none. The answer is exact.
//!
//! The search chooses one source, or the order of two writes, at a time. If the lower bound forbids
//! the pairs chosen so far, no execution has them. A first search does only that, and gives up
//! after 4,000 evaluations. The second one propagates: it also removes each source and each order
//! that the lower bound forbids together with the choices so far, and fixes a choice with one
//! candidate left. The model itself judges complete executions. Memory: that of the choices on one
//! path of the search; it does not grow with the number of executions. Time: exponential at worst;
//! the budget ends it.

use crate::cat::ModelRun;
use crate::execution::{SetId, Skeleton};
use crate::relation::Relation;
use mu_base::{Budget, Diagnostic};

/// Number of evaluations of the lower bound after which the first search gives up.
const QUICK: u64 = 4_000;
/// Number of evaluations between two checks of the budget.
const BETWEEN_CHECKS: u64 = 64;

/// An allowed execution: `rf` and `co`.
pub type Found = (Relation, Relation);

/// Choices of a search.
#[derive(Clone)]
struct Choices {
    rf: Relation,
    /// Transitive.
    co: Relation,
    /// The reads without a source, each with its possible sources.
    open: Vec<(usize, Vec<usize>)>,
}

/// A reason for the end of a search without an answer.
enum Ended {
    /// The search without propagation gave up.
    GaveUp,
    Failed(Diagnostic),
}

impl From<Diagnostic> for Ended {
    fn from(d: Diagnostic) -> Ended {
        Ended::Failed(d)
    }
}

/// State of the search. `full` and `bound`: the model and its lower bound on one skeleton.
struct ExecutionSearch<'a, 'm, 's, 'b, 't> {
    full: &'a mut ModelRun<'m, 's>,
    bound: &'a mut ModelRun<'b, 't>,
    /// For each location, its writes; empty if the model does not depend on `co`.
    parts: Vec<Vec<usize>>,
    budget: &'a Budget,
    evaluations: u64,
    /// True if the lower bound removes candidates (the second search).
    propagates: bool,
}

/// Returns for each read its possible sources: the writes of its value to its location.
pub fn sources(s: &Skeleton) -> Vec<(usize, Vec<usize>)> {
    let e = s.events();
    let of = |r: usize| s.sources(r).filter(|&w| e[w].value == e[r].value).collect();
    s.set(SetId::READS).iter().map(|r| (r, of(r))).collect()
}

/// Searches for an execution that a model allows. `full` and `bound`: the model and its lower bound
/// on the skeleton, where the axioms about the skeleton alone hold. `orders`: true if the model
/// depends on `co`. Error: those of the model, or a limit of the budget.
pub fn find(
    (skeleton, orders): (&Skeleton, bool),
    full: &mut ModelRun<'_, '_>,
    bound: &mut ModelRun<'_, '_>,
    budget: &Budget,
) -> Result<Option<Found>, Diagnostic> {
    let n = skeleton.len();
    let mut co = Relation::empty(n);
    let parts: Vec<Vec<usize>> =
        skeleton.writes_by_location().iter().map(|part| part.iter().collect()).collect();
    let events = skeleton.events();
    for part in &parts {
        for (&a, &b) in part.iter().flat_map(|a| part.iter().map(move |b| (a, b))) {
            if events[a].thread.is_none() && events[b].thread.is_some() {
                co.insert(a, b);
            }
        }
    }
    let mut start = Choices { rf: Relation::empty(n), co, open: Vec::new() };
    for (r, list) in sources(skeleton) {
        match list[..] {
            [] => return Ok(None),
            [w] => start.rf.insert(w, r),
            _ => start.open.push((r, list)),
        }
    }
    let parts = if orders { parts } else { Vec::new() };
    let mut search =
        ExecutionSearch { full, bound, parts, budget, evaluations: 0, propagates: false };
    let result = match search.extend(start.clone()) {
        Err(Ended::GaveUp) => {
            search.propagates = true;
            search.extend(start)
        }
        other => other,
    };
    match result {
        Ok(found) => Ok(found),
        Err(Ended::Failed(d)) => Err(d),
        Err(Ended::GaveUp) => Err(Diagnostic::internal("the search with propagation gave up")),
    }
}

/// Returns the transitive closure of a transitive order and one pair.
fn with_pair(co: &Relation, a: usize, b: usize) -> Relation {
    let mut out = co.clone();
    let after: Vec<usize> = co.after(b).chain([b]).collect();
    for x in co.before(a).chain([a]) {
        after.iter().for_each(|&y| out.insert(x, y));
    }
    out
}

impl ExecutionSearch<'_, '_, '_, '_, '_> {
    /// True if the lower bound does not forbid these pairs.
    fn admits(&mut self, rf: &Relation, co: &Relation) -> Result<bool, Ended> {
        self.evaluations += 1;
        if !self.propagates && self.evaluations > QUICK {
            return Err(Ended::GaveUp);
        }
        if self.evaluations.is_multiple_of(BETWEEN_CHECKS) {
            self.budget.check(0).map_err(Diagnostic::stopped)?;
        }
        Ok(self.bound.admits(rf, co)?)
    }

    /// Returns a pair of writes that `co` does not order. Neighbours are first, so that
    /// transitivity orders the others.
    fn unordered(&self, co: &Relation) -> Option<(usize, usize)> {
        let is_open = |&(a, b): &(usize, usize)| !co.has(a, b) && !co.has(b, a);
        self.parts.iter().find_map(|part| {
            (1..part.len())
                .flat_map(|apart| part.iter().zip(&part[apart..]))
                .map(|(&a, &b)| (a, b))
                .find(is_open)
        })
    }

    /// Removes what the lower bound forbids, until nothing changes. False if nothing remains.
    fn narrow(&mut self, c: &mut Choices) -> Result<bool, Ended> {
        loop {
            let mut changed = false;
            for (r, list) in std::mem::take(&mut c.open) {
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
                    _ => c.open.push((r, left)),
                }
            }
            for part in 0..self.parts.len() {
                for i in 0..self.parts[part].len() {
                    for j in i + 1..self.parts[part].len() {
                        let (a, b) = (self.parts[part][i], self.parts[part][j]);
                        if c.co.has(a, b) || c.co.has(b, a) {
                            continue;
                        }
                        let [forth, back] = [with_pair(&c.co, a, b), with_pair(&c.co, b, a)];
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
    fn extend(&mut self, mut c: Choices) -> Result<Option<Found>, Ended> {
        if !self.admits(&c.rf, &c.co)? || self.propagates && !self.narrow(&mut c)? {
            return Ok(None);
        }
        let least = c.open.iter().enumerate().min_by_key(|(_, (_, list))| list.len());
        let next = if self.propagates { least.map(|l| l.0) } else { least.map(|_| 0) };
        if let Some(next) = next {
            let (r, list) = c.open.remove(next);
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
        if let Some((a, b)) = self.unordered(&c.co) {
            for (first, second) in [(a, b), (b, a)] {
                let co = with_pair(&c.co, first, second);
                let found = self.extend(Choices { co, ..c.clone() })?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            return Ok(None);
        }
        let allowed = self.full.reads(&c.rf)? && self.full.coherence(&c.rf, &c.co)?;
        Ok(allowed.then_some((c.rf, c.co)))
    }
}
