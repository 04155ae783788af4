//! Memory models by axioms: the consistent executions of a program without loops, and their
//! outcomes.
//!
//! Input: a loop-free [`Program`] and a model's [`Axioms`]. Output: outcomes, or one [`Execution`]:
//! events, program order, reads-from (rf), coherence (co), from-reads (fr). An execution is
//! consistent if two relations are acyclic (Alglave, "A formal hierarchy of weak memory models",
//! 2012; Alglave, Maranget, Tautschnig, "Herding cats", 2014):
//!
//! - *uniproc*: program order between accesses to one cell, rf, co, fr;
//! - *ghb*, global happens-before: the program order that the model preserves, fences, rf between
//!   threads (under SC all rf), co, fr.
//!
//! A locked instruction is one event that reads and writes, so its atomicity follows from uniproc;
//! it orders like a fence.
//!
//! Executions are built event by event, as in stateless model checking (Kokologiannakis, Vafeiadis,
//! "GenMC", CAV 2021, without its revisits). All threads run up to their loads. Then one load reads
//! from each of the existing stores in turn, or waits for a later one. In these models no load
//! reads from a store that depends on it, so each pair of program order and rf is visited once.
//! Coherence is not enumerated: the edges that rf forces are added by saturation, and for each
//! combination of last stores with a new outcome one completion is searched. This shares no code
//! with the machines except programs and their expressions.

mod graph;
mod relation;
#[cfg(test)]
mod tests;

pub use graph::{EventKind, Execution, GraphEvent, RelationKind};

use graph::PartialExecution;

use super::liveness::{self, Future, cell_bit};
use super::outcome_search::{Observable, Outcomes};
use super::{Access, Program};
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use std::collections::BTreeSet;

/// The part of program order that a model preserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axioms {
    /// All of it.
    Sc,
    /// All but a store before a later load.
    Tso,
    /// A load before all later accesses.
    Pso,
}

impl Axioms {
    /// All models.
    pub const ALL: [Axioms; 3] = [Axioms::Sc, Axioms::Tso, Axioms::Pso];
    /// Returns the name, which is that of the machine.
    pub fn name(self) -> &'static str {
        match self {
            Axioms::Sc => "sc",
            Axioms::Tso => "tso",
            Axioms::Pso => "pso",
        }
    }
    /// Looks up the axioms by name; `None` if there are none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }
}

/// Computes all outcomes of a program without loops.
pub fn outcomes(
    program: &Program,
    axioms: Axioms,
    observables: &[Observable],
    budget: &Budget,
) -> Result<Outcomes, Diagnostic> {
    let mut set = BTreeSet::new();
    let (executions, stop) =
        search(program, axioms, observables, budget, &mut |outcome, graph| {
            if !set.contains(outcome) && graph.execution().is_some() {
                set.insert(outcome.to_vec());
            }
            false
        })?;
    Ok(Outcomes { set, states: executions, stop, bound_reached: false })
}

/// Searches an execution with a wanted outcome. `None` if the model allows no execution with it.
pub fn execution(
    program: &Program,
    axioms: Axioms,
    observables: &[Observable],
    budget: &Budget,
    wanted: &dyn Fn(&[u64]) -> bool,
) -> Result<Option<Execution>, Diagnostic> {
    let mut found = None;
    search(program, axioms, observables, budget, &mut |outcome, graph| {
        if wanted(outcome) {
            found = graph.execution();
        }
        found.is_some()
    })?;
    Ok(found)
}

/// Callback for an outcome and the graph in which its stores are last. Returns true to stop the
/// search.
type Visit<'a> = &'a mut dyn FnMut(&[u64], &PartialExecution<'_>) -> bool;

/// Calls `visit` for each rf and each combination of last stores. Returns the number of rf visited.
fn search(
    program: &Program,
    axioms: Axioms,
    observables: &[Observable],
    budget: &Budget,
    visit: Visit<'_>,
) -> Result<(u64, Stop), Diagnostic> {
    if !program.is_loop_free() {
        return Err(Diagnostic::new(
            Stage::Unsupported,
            "a program with loops has infinitely many executions",
        )
        .note("the machines support loops"));
    }
    let futures: Vec<Vec<Future>> =
        program.threads.iter().map(|t| liveness::futures(program, t)).collect();
    let mut search = ExecutionSearch {
        program,
        futures,
        observables,
        budget,
        executions: 0,
        visit,
        stop: Stop::Complete,
    };
    search.extend(PartialExecution::new(program, axioms))?;
    Ok((search.executions, search.stop))
}

struct ExecutionSearch<'a> {
    program: &'a Program,
    futures: Vec<Vec<Future>>,
    observables: &'a [Observable],
    budget: &'a Budget,
    executions: u64,
    visit: Visit<'a>,
    stop: Stop,
}

impl<'a> ExecutionSearch<'a> {
    /// Enumerates all extensions of a graph. Returns true to stop the search. The recursion depth
    /// is the number of loads, at most [`relation::MAX_EVENTS`].
    fn extend(&mut self, mut graph: PartialExecution<'a>) -> Result<bool, Diagnostic> {
        if let Err(stop) = self.budget.check(self.executions) {
            self.stop = stop;
            return Ok(true);
        }
        if !graph.run()? {
            return Ok(false);
        }
        let mut blocked = false;
        for t in 0..self.program.threads.len() {
            let Some(cell) = graph.load(t)? else { continue };
            blocked = true;
            let from = graph.waits_since(t);
            let sources = graph.sources(cell, from);
            if from.is_some() && sources.is_empty() {
                continue;
            }
            for source in sources {
                let mut next = graph.clone();
                if next.take(t, cell, source)? && self.extend(next)? {
                    return Ok(true);
                }
            }
            let coming = |u: usize| {
                u != t
                    && self.futures[u][graph.place(u)].writes & cell_bit(narrow::index(cell)) != 0
            };
            if (0..self.program.threads.len()).any(coming) {
                graph.wait(t);
                return self.extend(graph);
            }
            return Ok(false);
        }
        if blocked {
            return Ok(false);
        }
        self.executions += 1;
        self.last_stores(graph, 0)
    }

    /// Chooses a last store for each observed cell.
    fn last_stores(
        &mut self,
        graph: PartialExecution<'a>,
        from: usize,
    ) -> Result<bool, Diagnostic> {
        for i in from..self.observables.len() {
            let Observable::Cell(cell) = self.observables[i] else { continue };
            let candidates = graph.last_candidates(cell as usize);
            if candidates.len() < 2 {
                continue;
            }
            for last in candidates {
                let mut next = graph.clone();
                if next.make_last(cell as usize, last) && self.last_stores(next, i + 1)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let outcome: Vec<u64> = (self.observables.iter())
            .map(|o| match *o {
                Observable::Register(t, r) => graph.register(t as usize, r),
                Observable::Cell(c) => graph.last_value(c as usize),
            })
            .collect();
        Ok((self.visit)(&outcome, &graph))
    }
}

/// Counts the events of a program without loops.
pub fn events(program: &Program) -> usize {
    program.threads.iter().flat_map(|t| &t.steps).filter(|s| s.access != Access::None).count()
}
