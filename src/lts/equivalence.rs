//! The equivalences of transition systems, one row each in one table: name, quotient, comparison,
//! evidence, and the formulas that a quotient preserves.
//!
//! Commands, their help, the studio, and `docs/language.md` list the rows, so a new equivalence is
//! a row here and a file with its algorithm. The partition of a row is tested against its
//! definition (`crate::naive`), its evidence and its example by the checker of formulas
//! (`tests/refinement.rs`). Costs: see the modules of the algorithms.
//!
//! A quotient contains the states reachable from the initial state, which is state 0; states are
//! numbered breadth first; parallel transitions are merged.

use super::compare::disjoint_union;
use super::distinguish::{Difference, distinguishing_formula, distinguishing_trace};
use super::levels::Bisimulation;
#[cfg(test)]
use super::naive;
use super::reduce::{Partition, branching, branching_quotient, strong, strong_quotient};
use super::tau::reachable;
use super::{Lts, trace, weak};
use mu_base::ids::StateId;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Equivalence of states: a row of the table.
#[derive(Clone, Copy)]
pub struct Equivalence(&'static EquivalenceRow);

/// Evidence that two systems differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Evidence {
    /// A formula that holds in the first system and not in the second.
    Formula,
    /// A shortest sequence of labels that only one system can perform.
    Trace,
    /// The same, with any number of taus between the labels.
    WeakTrace,
}

impl Evidence {
    /// Returns the word for documents.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Formula => "formula",
            Evidence::Trace => "trace",
            Evidence::WeakTrace => "weak trace",
        }
    }
}

/// One equivalence.
struct EquivalenceRow {
    name: &'static str,
    alias: Option<&'static str>,
    about: &'static str,
    preserves: &'static str,
    example: &'static str,
    abstracts: bool,
    determinises: bool,
    evidence: Evidence,
    /// Computes the classes of all states, unreachable ones included.
    partition: fn(&Lts, usize) -> Partition,
    /// Computes the quotient of a system, all states of which are reachable.
    quotient: fn(&Lts, usize) -> Lts,
    /// Compares two states of one system.
    same: fn(&Lts, StateId, StateId, usize) -> bool,
    /// Compares the initial states of two systems.
    difference: fn(&Lts, &Lts, usize) -> Option<Difference>,
    /// Computes the relation by its definition.
    #[cfg(test)]
    definition: fn(&Lts) -> naive::Relation,
}

static STRONG: EquivalenceRow = EquivalenceRow {
    name: "strong",
    alias: None,
    about: "Strong bisimulation",
    preserves: "every formula",
    example: "nu X. <a>X || [b](mu Y. <tau>Y || <c>true)",
    abstracts: false,
    determinises: false,
    evidence: Evidence::Formula,
    partition: strong,
    quotient: strong_quotient,
    same: |lts, a, b, threads| strong(lts, threads).same_class(a, b),
    difference: |a, b, threads| distinguishing_formula(a, b, Bisimulation::Strong, threads),
    #[cfg(test)]
    definition: |lts| naive::bisimulation(lts, Bisimulation::Strong),
};

static DIVERGENCE_BRANCHING: EquivalenceRow = EquivalenceRow {
    name: "divergence-branching",
    alias: Some("div-branching"),
    about: "Divergence-preserving branching bisimulation",
    preserves: "the formulas of branching bisimulation, and infinite runs of tau",
    example: "<tau* . a>nu X. <tau>X",
    abstracts: true,
    determinises: false,
    evidence: Evidence::Formula,
    partition: |lts, threads| branching(lts, true, threads).0,
    quotient: |lts, threads| branching_quotient(lts, true, threads),
    same: |lts, a, b, threads| branching(lts, true, threads).0.same_class(a, b),
    difference: |a, b, threads| {
        distinguishing_formula(a, b, Bisimulation::DivergenceBranching, threads)
    },
    #[cfg(test)]
    definition: |lts| naive::bisimulation(lts, Bisimulation::DivergenceBranching),
};

static BRANCHING: EquivalenceRow = EquivalenceRow {
    name: "branching",
    alias: None,
    about: "Branching bisimulation",
    preserves: "formulas with `tau*` before each step, and conditions on the states until it",
    example: "mu X. <tau* . b>true && (<a>true || <tau>X)",
    abstracts: true,
    determinises: false,
    evidence: Evidence::Formula,
    partition: |lts, threads| branching(lts, false, threads).0,
    quotient: |lts, threads| branching_quotient(lts, false, threads),
    same: |lts, a, b, threads| branching(lts, false, threads).0.same_class(a, b),
    difference: |a, b, threads| distinguishing_formula(a, b, Bisimulation::Branching, threads),
    #[cfg(test)]
    definition: |lts| naive::bisimulation(lts, Bisimulation::Branching),
};

static DIVERGENCE_WEAK: EquivalenceRow = EquivalenceRow {
    name: "divergence-weak",
    alias: Some("div-weak"),
    about: "Divergence-preserving weak bisimulation",
    preserves: "the formulas of weak bisimulation, and infinite runs of tau",
    example: "[tau* . a . tau*]nu X. <tau>X",
    abstracts: true,
    determinises: false,
    evidence: Evidence::Formula,
    partition: |lts, threads| weak::partition(lts, true, threads),
    quotient: |lts, threads| weak::reduce(lts, true, threads),
    same: |lts, a, b, threads| weak::partition(lts, true, threads).same_class(a, b),
    difference: |a, b, threads| distinguishing_formula(a, b, Bisimulation::DivergenceWeak, threads),
    #[cfg(test)]
    definition: |lts| naive::bisimulation(lts, Bisimulation::DivergenceWeak),
};

static WEAK: EquivalenceRow = EquivalenceRow {
    name: "weak",
    alias: None,
    about: "Weak bisimulation",
    preserves: "formulas with `tau*` before and after each step",
    example: "[tau* . a . tau*]<tau* . b . tau*>true",
    abstracts: true,
    determinises: false,
    evidence: Evidence::Formula,
    partition: |lts, threads| weak::partition(lts, false, threads),
    quotient: |lts, threads| weak::reduce(lts, false, threads),
    same: |lts, a, b, threads| weak::partition(lts, false, threads).same_class(a, b),
    difference: |a, b, threads| distinguishing_formula(a, b, Bisimulation::Weak, threads),
    #[cfg(test)]
    definition: |lts| naive::bisimulation(lts, Bisimulation::Weak),
};

static TRACE: EquivalenceRow = EquivalenceRow {
    name: "trace",
    alias: None,
    about: "Trace equivalence",
    preserves: "`[R]false` and `<R>true` for regular formulas `R`",
    example: "[true* . a . (!a)* . b]false",
    abstracts: false,
    determinises: true,
    evidence: Evidence::Trace,
    partition: |lts, threads| trace::partition(lts, false, threads),
    quotient: |lts, threads| strong_quotient(&trace::determinise(lts, false, threads), threads),
    same: |lts, a, b, threads| trace::has_same_traces(lts, a, b, false, threads),
    difference: |a, b, threads| distinguishing_trace(a, b, false, threads),
    #[cfg(test)]
    definition: |lts| naive::trace_equivalence(lts, false),
};

static WEAK_TRACE: EquivalenceRow = EquivalenceRow {
    name: "weak-trace",
    alias: None,
    about: "Weak trace equivalence",
    preserves: "`[R]false` and `<R>true` for regular formulas `R` with `tau*` before each step",
    example: "[(tau* . a)* . tau* . b]false",
    abstracts: true,
    determinises: true,
    evidence: Evidence::WeakTrace,
    partition: |lts, threads| trace::partition(lts, true, threads),
    quotient: |lts, threads| strong_quotient(&trace::determinise(lts, true, threads), threads),
    same: |lts, a, b, threads| trace::has_same_traces(lts, a, b, true, threads),
    difference: |a, b, threads| distinguishing_trace(a, b, true, threads),
    #[cfg(test)]
    definition: |lts| naive::trace_equivalence(lts, true),
};

impl Equivalence {
    /// Strong bisimulation.
    pub const STRONG: Self = Self(&STRONG);
    /// Branching bisimulation that preserves divergence.
    pub const DIVERGENCE_BRANCHING: Self = Self(&DIVERGENCE_BRANCHING);
    /// Branching bisimulation.
    pub const BRANCHING: Self = Self(&BRANCHING);
    /// Weak bisimulation that preserves divergence.
    pub const DIVERGENCE_WEAK: Self = Self(&DIVERGENCE_WEAK);
    /// Weak bisimulation (observation equivalence).
    pub const WEAK: Self = Self(&WEAK);
    /// Equal traces; tau is an ordinary label.
    pub const TRACE: Self = Self(&TRACE);
    /// Equal traces without their taus.
    pub const WEAK_TRACE: Self = Self(&WEAK_TRACE);
    /// The table: all equivalences, finer ones first.
    pub const ALL: [Self; 7] = [
        Self::STRONG,
        Self::DIVERGENCE_BRANCHING,
        Self::BRANCHING,
        Self::DIVERGENCE_WEAK,
        Self::WEAK,
        Self::TRACE,
        Self::WEAK_TRACE,
    ];

    /// Returns the name for options and reports.
    pub fn name(self) -> &'static str {
        self.0.name
    }
    /// Returns a second name that options accept; `None` if there is none.
    pub fn alias(self) -> Option<&'static str> {
        self.0.alias
    }
    /// Returns its name in full, for help texts.
    pub fn full_name(self) -> &'static str {
        self.0.about
    }
    /// Returns the formulas that have the same value in a system and in its quotient.
    pub fn preserves(self) -> &'static str {
        self.0.preserves
    }
    /// Returns one of these formulas, over the actions `a`, `b` and `c`.
    pub fn example(self) -> &'static str {
        self.0.example
    }
    /// True if internal steps do not count as steps.
    pub fn abstracts(self) -> bool {
        self.0.abstracts
    }
    /// True if the quotient is a determinised system, which can be exponentially larger.
    pub fn determinises(self) -> bool {
        self.0.determinises
    }
    /// Returns the kind of evidence that two systems differ.
    pub fn evidence(self) -> Evidence {
        self.0.evidence
    }
    /// Returns the equivalence of a name or alias; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name || e.alias() == Some(name))
    }
    /// True if two states of a system are equivalent.
    pub(super) fn relates(self, lts: &Lts, a: StateId, b: StateId, threads: usize) -> bool {
        (self.0.same)(lts, a, b, threads)
    }
    /// Computes the relation by its definition.
    #[cfg(test)]
    pub(super) fn definition(self, lts: &Lts) -> naive::Relation {
        (self.0.definition)(lts)
    }
}

impl PartialEq for Equivalence {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Equivalence {}

impl Hash for Equivalence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Equivalence {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// Computes the classes of all states, unreachable ones included.
pub fn partition(lts: &Lts, equivalence: Equivalence, threads: usize) -> Partition {
    (equivalence.0.partition)(lts, threads)
}

/// Computes the quotient of the reachable part.
pub fn reduce(lts: &Lts, equivalence: Equivalence, threads: usize) -> Lts {
    let part = reachable(lts);
    (equivalence.0.quotient)(part.as_ref().unwrap_or(lts), threads)
}

/// True if the initial states of two systems are equivalent. Labels are equal if their texts are.
pub fn equivalent(a: &Lts, b: &Lts, equivalence: Equivalence, threads: usize) -> bool {
    let (union, first, second) = disjoint_union(a, b);
    equivalence.relates(&union, first, second, threads)
}

/// Returns distinguishing evidence; `None` if the systems are equivalent.
pub fn distinguish(
    a: &Lts,
    b: &Lts,
    equivalence: Equivalence,
    threads: usize,
) -> Option<Difference> {
    // All others are coarser, and cost more.
    if equivalence != Equivalence::STRONG && equivalent(a, b, Equivalence::STRONG, threads) {
        return None;
    }
    (equivalence.0.difference)(a, b, threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            Equivalence::ALL.iter().flat_map(|e| [Some(e.name()), e.alias()]).flatten().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for e in Equivalence::ALL {
            assert_eq!(Equivalence::of_name(e.name()), Some(e));
        }
    }
}
