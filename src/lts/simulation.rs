//! Simulation and ready simulation: two states of a system -> a formula that holds in the first and
//! not in the second, if the second does not simulate the first.
//!
//! Pairs of states on demand, refuted backwards by counters as in linear-time solving of boolean
//! systems (Dowling and Gallier 1984). Cost: O(transitions of the one * transitions of the other).
//! The formula follows the order of refutation, so it is finite; it has no negation, so a system
//! that satisfies it is not simulated. Ready simulation: simulation between states that offer the
//! same labels.

use super::Lts;
use super::distinguish::Difference;
use super::preorder::MAX_FORMULA;
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;
use mu_base::{Budget, Stop};

/// Returns a formula that holds in state `a` and not in `b`; `None` if `b` simulates `a` (`ready`:
/// by states that offer the same labels).
pub(super) fn simulation_excess(
    lts: &Lts,
    (a, b): (StateId, StateId),
    ready: bool,
    budget: &Budget,
) -> Result<Option<Difference>, Stop> {
    Simulation { lts, ready, pairs: Vec::new(), known: AHashMap::new() }.run(a, b, budget)
}

/// Pair of states of which the second may simulate the first.
struct SimulationPair {
    first: StateId,
    second: StateId,
    /// The move without a matching move of the second; without target, a label that the second
    /// offers and the first does not.
    refuted: Option<(LabelId, Option<StateId>)>,
    /// The moves of the first state: label, target, and number of moves of the second state that
    /// may still match.
    moves: Vec<(LabelId, StateId, u32)>,
    /// Moves of other pairs of which this pair is a match: pair and number of the move.
    matched_moves: Vec<(u32, u32)>,
}

struct Simulation<'a> {
    lts: &'a Lts,
    /// True if states must offer the same labels.
    ready: bool,
    pairs: Vec<SimulationPair>,
    known: AHashMap<(StateId, StateId), u32>,
}

impl Simulation<'_> {
    /// Returns the number of a pair, which may be new.
    fn pair(&mut self, first: StateId, second: StateId) -> u32 {
        let pairs = &mut self.pairs;
        *self.known.entry((first, second)).or_insert_with(|| {
            pairs.push(SimulationPair {
                first,
                second,
                refuted: None,
                moves: Vec::new(),
                matched_moves: Vec::new(),
            });
            narrow::index(pairs.len()) - 1
        })
    }

    fn run(mut self, a: StateId, b: StateId, budget: &Budget) -> Result<Option<Difference>, Stop> {
        self.pair(a, b);
        let mut next = 0;
        while next < self.pairs.len() && self.pairs[0].refuted.is_none() {
            if next.is_multiple_of(1024) {
                budget.check(next as u64)?;
                if next.is_multiple_of(1 << 16) {
                    budget.check_memory()?;
                }
            }
            self.expand(narrow::index(next));
            next += 1;
        }
        if self.pairs[0].refuted.is_none() {
            return Ok(None);
        }
        if self.size(0, &mut AHashMap::new()) > MAX_FORMULA {
            return Ok(Some(Difference::TooLong));
        }
        Ok(Some(Difference::Formula(self.formula(0, &mut AHashMap::new()))))
    }

    /// Computes the moves of a pair with their matches; refutes it if one has none.
    fn expand(&mut self, p: u32) {
        let (s, t) = (self.pairs[p as usize].first, self.pairs[p as usize].second);
        let moves: Vec<(LabelId, StateId)> = self.lts.successors(s).collect();
        let more = self
            .lts
            .successors(t)
            .map(|(l, _)| l)
            .filter(|l| moves.iter().all(|m| m.0 != *l))
            .min();
        if let Some(label) = more.filter(|_| self.ready) {
            self.refute(p, (label, None));
            return;
        }
        for (i, &(label, to)) in moves.iter().enumerate() {
            let candidates: Vec<StateId> =
                self.lts.successors(t).filter(|&(l, _)| l == label).map(|(_, u)| u).collect();
            let mut left = 0;
            for u in candidates {
                let q = self.pair(to, u);
                if self.pairs[q as usize].refuted.is_none() {
                    left += 1;
                    self.pairs[q as usize].matched_moves.push((p, narrow::index(i)));
                }
            }
            self.pairs[p as usize].moves.push((label, to, left));
            if left == 0 {
                self.refute(p, (label, Some(to)));
                return;
            }
        }
    }

    /// Refutes a pair, and all pairs with a move that has no match left.
    fn refute(&mut self, p: u32, by: (LabelId, Option<StateId>)) {
        let mut todo = vec![(p, by)];
        while let Some((p, by)) = todo.pop() {
            if self.pairs[p as usize].refuted.is_some() {
                continue;
            }
            self.pairs[p as usize].refuted = Some(by);
            for (q, i) in std::mem::take(&mut self.pairs[p as usize].matched_moves) {
                let pair = &mut self.pairs[q as usize];
                // A pair that is refuted during its expansion has no later moves.
                let Some((label, to, matches)) = pair.moves.get_mut(i as usize) else { continue };
                *matches -= 1;
                if *matches == 0 {
                    todo.push((q, (*label, Some(*to))));
                }
            }
        }
    }

    /// Returns the label of the move that refutes a pair, and the pairs of its target with each
    /// candidate for a match, all of which are refuted.
    fn refuting_pairs(&self, p: u32) -> (LabelId, Vec<u32>) {
        let pair = &self.pairs[p as usize];
        let (label, to) = pair.refuted.unwrap_or((LabelId::TAU, Some(pair.first)));
        let Some(to) = to else { return (label, Vec::new()) };
        let mut pairs: Vec<u32> = self
            .lts
            .successors(pair.second)
            .filter(|&(l, _)| l == label)
            .map(|(_, u)| self.known[&(to, u)])
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        (label, pairs)
    }

    /// Returns the length of the formula of a refuted pair.
    fn size(&self, p: u32, known: &mut AHashMap<u32, u64>) -> u64 {
        if let Some(&size) = known.get(&p) {
            return size;
        }
        let (label, pairs) = self.refuting_pairs(p);
        let mut size = self.lts.table.texts[label.index()].len() as u64 + 10;
        for q in pairs {
            size =
                size.saturating_add(stacker::maybe_grow(64 << 10, 1 << 20, || self.size(q, known)));
        }
        known.insert(p, size);
        size
    }

    /// Returns a formula that holds in the first state of a refuted pair, not in the second.
    fn formula(&self, p: u32, known: &mut AHashMap<u32, String>) -> String {
        if let Some(text) = known.get(&p) {
            return text.clone();
        }
        let (label, pairs) = self.refuting_pairs(p);
        let mut parts: Vec<String> = pairs
            .into_iter()
            .map(|q| stacker::maybe_grow(64 << 10, 1 << 20, || self.formula(q, known)))
            .collect();
        parts.sort();
        parts.dedup();
        let rest = match parts.len() {
            0 => "true".to_string(),
            1 => parts.swap_remove(0),
            _ => format!("({})", parts.join(" && ")),
        };
        let label = &self.lts.table.texts[label.index()];
        let text = match self.pairs[p as usize].refuted {
            Some((_, None)) => format!("[{label}]false"),
            _ => format!("<{label}>{rest}"),
        };
        known.insert(p, text.clone());
        text
    }
}
