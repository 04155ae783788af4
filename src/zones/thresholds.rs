//! Thresholds: the differences that states distinguish.
//!
//! A place is a kind of number in the text: a parameter, an argument of a constructor in it, the
//! elements of a list. For two places, the thresholds are the constants with which evaluations have
//! compared differences of their numbers. A state's bounds are rounded up to thresholds, so that
//! there are finitely many states for each control part (extrapolation of zones: Behrmann, Bouyer,
//! Larsen, Pelánek, "Lower and upper bounds in zone-based abstractions of timed automata", STTT
//! 2006). At an *exact* place the value itself is kept. Rounding only enlarges the set of
//! valuations, so any thresholds are sound; more of them are more precise (lazy abstraction:
//! Henzinger, Jhala, Majumdar, Sutre, POPL 2002). Cost: a search in an ordered set for each bound.

use crate::differences::{Differences, NONE};
use ahash::{AHashMap, AHashSet};
use std::collections::BTreeSet;

/// The place of zero.
pub const ZERO: u64 = 0;

/// A number that gets the value of another one in a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// The place after the step.
    pub to: u64,
    /// The place before; [`ZERO`] for a literal.
    pub from: u64,
    /// The literal that is added.
    pub offset: i64,
}

/// The thresholds for each pair of places, and the exact places.
#[derive(Clone, Debug, Default)]
pub struct Thresholds {
    /// For `(x, y)`: constants `c` of constraints `x - y <= c`.
    bounds: AHashMap<(u64, u64), BTreeSet<i64>>,
    /// Places with values that are kept.
    pub exact: AHashSet<u64>,
}

impl Thresholds {
    /// Adds the constraint `x - y <= c` and its negation. True if one is new.
    pub fn add(&mut self, x: u64, y: u64, c: i64) -> bool {
        let mut one = |x, y, c| self.bounds.entry((x, y)).or_default().insert(c);
        let negation = c.checked_neg().and_then(|c| c.checked_sub(1));
        let added = one(x, y, c);
        negation.is_some_and(|c| one(y, x, c)) || added
    }

    /// Returns the largest absolute value of a constant.
    pub fn largest(&self) -> i64 {
        let all = self.bounds.values().flatten();
        all.map(|c| c.saturating_abs()).max().unwrap_or(0)
    }

    /// Returns the pair of places with the most constants. `None` if no pair has constants.
    pub fn widest(&self) -> Option<((u64, u64), usize)> {
        let count = |(pair, all): (&(u64, u64), &BTreeSet<i64>)| (*pair, all.len());
        self.bounds.iter().map(count).max_by_key(|(pair, n)| (*n, *pair))
    }

    /// Rounds the bounds of a state up. `places`: of the variables after zero; `least`: their least
    /// values, which are kept.
    #[must_use]
    pub fn round_up(
        &self,
        zone: &Differences,
        places: &[u64],
        least: &[Option<i64>],
    ) -> Differences {
        let place = |x: usize| if x == 0 { ZERO } else { places[x - 1] };
        zone.weaken(|x, y, c| {
            let (a, b) = (place(x), place(y));
            if (y == 0 && self.exact.contains(&a)) || (x == 0 && self.exact.contains(&b)) {
                return c;
            }
            let found = self.bounds.get(&(a, b)).and_then(|all| all.range(c..).next()).copied();
            let own = if x == 0 { least[y - 1].map(|l| -l).filter(|own| *own >= c) } else { None };
            match (found, own) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b).unwrap_or(NONE),
            }
        })
    }

    /// Adds the constraints before a step that the known ones after it follow from, with constants
    /// up to `most`; a number at a `fresh` place, which the step chooses, is eliminated from pairs
    /// of constraints. True if one is new.
    pub fn propagate(&mut self, flows: &AHashSet<Flow>, fresh: &AHashSet<u64>, most: i64) -> bool {
        let mut by: AHashMap<u64, Vec<Flow>> = AHashMap::new();
        flows.iter().for_each(|f| by.entry(f.to).or_default().push(*f));
        by.insert(ZERO, vec![Flow { to: ZERO, from: ZERO, offset: 0 }]);
        let none = Vec::new();
        let mut before = Vec::new();
        for ((x, y), all) in &self.bounds {
            for a in by.get(x).unwrap_or(&none) {
                for b in by.get(y).unwrap_or(&none) {
                    let shift = b.offset.saturating_sub(a.offset);
                    if a.from == b.from {
                        continue;
                    }
                    before.extend(
                        all.iter()
                            .map(|c| c.saturating_add(shift))
                            .filter(|c| c.saturating_abs() <= most)
                            .map(|c| (a.from, b.from, c)),
                    );
                }
            }
        }
        for middle in fresh {
            let ends = |first: bool| {
                let own = self
                    .bounds
                    .iter()
                    .filter(move |((x, y), _)| (if first { y } else { x }) == middle && x != y);
                own.flat_map(move |((x, y), all)| {
                    let other = if first { *x } else { *y };
                    all.iter().map(move |c| (other, *c))
                })
            };
            for (x, c) in ends(true) {
                for (y, d) in ends(false).filter(|(y, _)| *y != x) {
                    let c = c.saturating_add(d);
                    if c.saturating_abs() <= most {
                        before.push((x, y, c));
                    }
                }
            }
        }
        before.into_iter().fold(false, |new, (x, y, c)| self.add(x, y, c) || new)
    }
}
