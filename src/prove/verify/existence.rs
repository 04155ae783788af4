//! Existence of an initial state for some number of processes, by the verifier's own logic.
//!
//! The machine defines initial states: cells of processes contain one of `1, .., n`; if no state
//! satisfies `init` then, also one further process, the same in all cells and after all others in
//! the order. States of an `invariant` are excluded.
//!
//! If no array over processes is mentioned, a state remains one after restriction to the constants
//! and the processes in variables, so that many numbers decide the question, unless `init` has
//! states without the further process for all of them, which an invariant excludes: with more
//! processes it may have none. Cost: the instances of `init` for a few numbers.

use super::logic::{self, CertificateCell, Fact, OTHER, Point, Set, ValueKind, World, singleton};
use super::{ComparisonTranslator, Rejection, Verifier, choices};
use mu_base::narrow;
use mu_cubicle::system::Proc;

/// Number of further sizes that are tried for an initial state if an array over processes is
/// mentioned. If none of them has one, larger numbers are undecided.
const MORE_SIZES: usize = 3;
/// Limit on the choices of conjunctions for a state that satisfies `init` for sure; beyond it there
/// counts as none.
const MAX_CHOICES: u32 = 4_000;

/// Conjunctions, one of which holds, for each of several instances.
type Instances = Vec<Vec<Vec<Fact>>>;

impl Verifier<'_> {
    /// Rejects a system without an initial state for any number of processes.
    pub(super) fn expect_initial_state(&self) -> Result<(), Rejection> {
        let least = self.system.fixed.max(1) as usize;
        let assumed = self.system.invariants.iter().map(|c| c.params.len()).max().unwrap_or(0);
        let size = least.max(assumed);
        let cells = self.holders(&[self.initial(size), self.assumption_instances(size)].concat());
        let (arrays, variables): (Vec<CertificateCell>, Vec<CertificateCell>) =
            cells.iter().partition(|c| c.args().next().is_some());
        let may_differ = !cells.is_empty() && !self.system.invariants.is_empty();
        let further_sizes = if arrays.is_empty() && !may_differ { 0 } else { MORE_SIZES };
        let bound = least + variables.len() + further_sizes;
        let most = self.system.processes.map_or(usize::MAX, |m| m as usize);
        if (least..=bound.min(most)).any(|n| self.has_initial_state(n)) {
            return Ok(());
        }
        let inside_only = || {
            let instances = self.initial(bound);
            let cells = self.holders(&instances);
            let inside = singleton(narrow::index(bound)) - 1;
            let facts = cells.iter().map(|c| Fact::Among(*c, inside)).collect();
            !self.meets_none(bound, facts, &instances)
        };
        Err(if most <= bound || arrays.is_empty() && !(may_differ && inside_only()) {
            Rejection::NoInitialState
        } else {
            Rejection::NoInitialStateUpTo(bound)
        })
    }
    /// Returns the cells of processes that instances mention.
    fn holders(&self, instances: &Instances) -> Vec<CertificateCell> {
        let facts = instances.iter().flatten().flatten();
        let mut found: Vec<CertificateCell> = facts
            .flat_map(logic::cells)
            .filter(|c| self.kinds[c.symbol()] == ValueKind::Process)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
    /// Returns the conditions of the file's invariants: of each, for all distinct processes, one
    /// fact is false.
    fn assumption_instances(&self, named: usize) -> Instances {
        let mut found = Vec::new();
        for claim in &self.system.invariants {
            for map in choices(claim.params.len(), named, true) {
                let process = |p: Proc| match p {
                    Proc::Var(v) => map[v as usize],
                    Proc::Fixed(n) => narrow::byte(n as usize - 1),
                };
                let world = self.world(named);
                let reader = ComparisonTranslator {
                    process: &process,
                    look: &|_| None,
                    index: &self.index,
                    world,
                    overflow: &self.overflow,
                };
                let facts = reader.facts(&claim.cube).0;
                if !facts.contains(&Fact::ExcludedCube) {
                    let left = facts
                        .iter()
                        .map(|f| vec![world.opposite(f)])
                        .filter(|f| f[0] != Fact::ExcludedCube);
                    found.push(left.collect());
                }
            }
        }
        found
    }
    /// True if some state of all processes of the file satisfies `init` for sure, without a further
    /// process in a cell. Called before it is known if there is a further one.
    pub(super) fn surely_has_state(&self, all: usize) -> bool {
        let mut left = MAX_CHOICES;
        self.surely_meets(all, &[], &self.initial(all), &mut left)
    }
    fn surely_meets(
        &self,
        all: usize,
        facts: &[Fact],
        instances: &[Vec<Vec<Fact>>],
        left: &mut u32,
    ) -> bool {
        let world = World { counts: &[], ..self.world(all) };
        let (single, several): (Vec<_>, Vec<_>) = instances.iter().partition(|i| i.len() == 1);
        let own = single.into_iter().flat_map(|i| i[0].clone());
        let facts: Vec<Fact> = facts.iter().cloned().chain(own).collect();
        let Some((first, rest)) = several.split_first() else { return world.surely_holds(&facts) };
        let rest: Instances = rest.iter().map(|r| (*r).clone()).collect();
        first.iter().any(|choice| {
            *left = left.saturating_sub(1);
            let with = [facts.as_slice(), choice].concat();
            *left > 0 && !world.contradicts(&with) && self.surely_meets(all, &with, &rest, left)
        })
    }
    /// True unless the machine of exactly this number of processes has no initial state.
    fn has_initial_state(&self, named: usize) -> bool {
        let (instances, excluded) = (self.initial(named), self.assumption_instances(named));
        let all = [instances.as_slice(), &excluded].concat();
        let cells = self.holders(&all);
        let inside: Set = singleton(narrow::index(named)) - 1;
        let among = |c: &CertificateCell| Fact::Among(*c, inside);
        if !self.meets_none(named, cells.iter().map(among).collect(), &instances) {
            return excluded.is_empty()
                || !self.meets_none(named, cells.iter().map(among).collect(), &all);
        }
        cells.iter().enumerate().any(|(first, further)| {
            let mut facts: Vec<Fact> = cells[..first].iter().map(among).collect();
            facts.push(Fact::Among(*further, singleton(OTHER)));
            facts.extend(
                (0..narrow::byte(named))
                    .map(|p| Fact::Ahead(Point::Named(p), Point::Held(*further), true)),
            );
            let either =
                |c: &CertificateCell| vec![vec![among(c)], vec![Fact::Twins(*c, *further, true)]];
            let choices: Vec<_> =
                all.iter().cloned().chain(cells[first + 1..].iter().map(either)).collect();
            !self.meets_none(named, facts, &choices)
        })
    }
}
