//! Whether some number of processes has an initial state, by the verifier's own logic.
//!
//! The machine defines initial states: cells of processes hold one of `1, .., n`; if no state
//! satisfies `init` then, also one further process, the same in all cells and after all others in
//! the order. States that an `invariant` describes are left out.
//!
//! Where no array of processes is mentioned, a state stays one if only the constants and the
//! processes that variables hold are left, so as many numbers decide the question. Cost: the
//! instances of `init` for a few numbers.

use super::logic::{self, Cell, Fact, Kind, OTHER, Point, Set, only};
use super::{Reader, Refused, Verifier, choices};
use mu_cubicle::system::Proc;

/// Further numbers of processes that are tried for an initial state where an array of processes is
/// mentioned. If none of them has one, larger numbers stay undecided.
const MORE_SIZES: usize = 3;

/// Conjunctions, of which one holds, for each of several instances.
type Instances = Vec<Vec<Vec<Fact>>>;

impl Verifier<'_> {
    /// Rejects a system of which no number of processes has an initial state.
    pub(super) fn expect_initial_state(&self) -> Result<(), Refused> {
        let least = self.system.fixed.max(1) as usize;
        let assumed = self.system.invariants.iter().map(|c| c.params.len()).max().unwrap_or(0);
        let size = least.max(assumed);
        let cells = self.holders(&[self.initial(size), self.excluded(size)].concat());
        let (arrays, variables): (Vec<Cell>, Vec<Cell>) =
            cells.iter().partition(|c| c.args().next().is_some());
        let bound = least + variables.len() + if arrays.is_empty() { 0 } else { MORE_SIZES };
        let most = self.system.processes.map_or(usize::MAX, |m| m as usize);
        if (least..=bound.min(most)).any(|n| self.has_initial_state(n)) {
            return Ok(());
        }
        Err(if arrays.is_empty() || most <= bound {
            Refused::NoInitialState
        } else {
            Refused::NoInitialStateUpTo(bound)
        })
    }
    /// The cells of processes that instances mention.
    fn holders(&self, instances: &Instances) -> Vec<Cell> {
        let facts = instances.iter().flatten().flatten();
        let mut found: Vec<Cell> = facts
            .flat_map(logic::cells)
            .filter(|c| self.kinds[c.symbol()] == Kind::Process)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }
    /// What the invariants of the file leave: of each, for all different processes, one fact does
    /// not hold.
    fn excluded(&self, named: usize) -> Instances {
        let mut found = Vec::new();
        for claim in &self.system.invariants {
            for map in choices(claim.params.len(), named, true) {
                let process = |p: Proc| match p {
                    Proc::Var(v) => map[v as usize],
                    Proc::Fixed(n) => (n - 1) as u8,
                };
                let world = self.world(named);
                let reader = Reader {
                    process: &process,
                    look: &|_| None,
                    index: &self.index,
                    world,
                    overflow: &self.overflow,
                };
                let facts = reader.facts(&claim.cube).0;
                if !facts.contains(&Fact::Never) {
                    let left = facts
                        .iter()
                        .map(|f| vec![world.opposite(f)])
                        .filter(|f| f[0] != Fact::Never);
                    found.push(left.collect());
                }
            }
        }
        found
    }
    /// False if the machine of exactly so many processes has no initial state.
    fn has_initial_state(&self, named: usize) -> bool {
        let (instances, excluded) = (self.initial(named), self.excluded(named));
        let all = [instances.as_slice(), &excluded].concat();
        let cells = self.holders(&all);
        let inside: Set = only(named as u32) - 1;
        let among = |c: &Cell| Fact::Among(*c, inside);
        if !self.meets_none(named, cells.iter().map(among).collect(), &instances) {
            return excluded.is_empty()
                || !self.meets_none(named, cells.iter().map(among).collect(), &all);
        }
        cells.iter().enumerate().any(|(first, further)| {
            let mut facts: Vec<Fact> = cells[..first].iter().map(among).collect();
            facts.push(Fact::Among(*further, only(OTHER)));
            facts.extend(
                (0..named as u8).map(|p| Fact::Ahead(Point::Named(p), Point::Held(*further), true)),
            );
            let either = |c: &Cell| vec![vec![among(c)], vec![Fact::Twins(*c, *further, true)]];
            let choices: Vec<_> =
                all.iter().cloned().chain(cells[first + 1..].iter().map(either)).collect();
            !self.meets_none(named, facts, &choices)
        })
    }
}
