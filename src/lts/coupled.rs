//! Coupled simulation: weak simulation in which pairs can also be reversed after some taus of the
//! second state (Parrow and Sjoedin, "Multiway synchronization verified with coupled simulation",
//! CONCUR 1992; the fixed point is that of Bisping, Nestmann and Peters, "Coupled similarity: the
//! first 32 years", Acta Informatica 2020).
//!
//! The pair `(s, t)` remains as long as two conditions hold. Each step of `s` has a weak step of
//! `t` with the same label to a remaining pair. And `t` reaches by taus some `t'` with a remaining
//! pair `(t', s)`. Pairs are created on demand from the initial one, then refuted round by round,
//! so that the reasons of one round belong to earlier ones and a formula is finite. Cost:
//! O(rounds · pairs · weak steps). Invariant: the formula of a refuted pair holds in its first
//! state and not in its second.

use super::Lts;
use super::distinguish::Difference;
use super::preorder::MAX_FORMULA;
use super::trace_inclusion::closure;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Stop};

/// Reason why a pair is refuted.
#[derive(Clone, Copy)]
enum Refutation {
    /// The second state has no weak step for this step.
    Step(LabelId, StateId),
    /// No state that the second reaches by taus is coupled with the first.
    Uncoupled,
}

type CoupledPair = (StateId, StateId);

struct CoupledSimulation<'a> {
    lts: &'a Lts,
    refuted: AHashMap<CoupledPair, Refutation>,
    weak: AHashMap<(StateId, LabelId), Vec<StateId>>,
}

/// Returns a difference between the states `a` and `b`, if `b` does not simulate `a` coupled.
pub(super) fn coupled_excess(
    lts: &Lts,
    a: StateId,
    b: StateId,
    budget: &Budget,
) -> Result<Option<Difference>, Stop> {
    let mut search = CoupledSimulation { lts, refuted: AHashMap::new(), weak: AHashMap::new() };
    let (mut pairs, mut known) = (vec![(a, b)], AHashSet::from([(a, b)]));
    let mut next = 0;
    while let Some(&(s, t)) = pairs.get(next) {
        if next.is_multiple_of(256) {
            budget.check(next as u64)?;
            budget.check_memory()?;
        }
        next += 1;
        for (l, to) in lts.successors(s) {
            pairs.extend(
                search
                    .weak_successors(t, l)
                    .into_iter()
                    .map(|u| (to, u))
                    .filter(|p| known.insert(*p)),
            );
        }
        pairs.extend(
            search
                .weak_successors(t, LabelId::TAU)
                .into_iter()
                .map(|u| (u, s))
                .filter(|p| known.insert(*p)),
        );
    }
    loop {
        budget.check(pairs.len() as u64)?;
        let mut new = Vec::new();
        for &(s, t) in &pairs {
            if let Some(why) = search.reason(s, t) {
                new.push(((s, t), why));
            }
        }
        let done = new.is_empty();
        search.refuted.extend(new);
        if search.refuted.contains_key(&(a, b)) {
            break;
        }
        if done {
            return Ok(None);
        }
        pairs.retain(|p| !search.refuted.contains_key(p));
    }
    if search.size((a, b), &mut AHashMap::new()) > MAX_FORMULA {
        return Ok(Some(Difference::TooLong));
    }
    Ok(Some(Difference::Formula(search.formula((a, b), &mut AHashMap::new()))))
}

impl CoupledSimulation<'_> {
    /// Returns the states after a weak step; for tau, after any number of taus.
    fn weak_successors(&mut self, state: StateId, label: LabelId) -> Vec<StateId> {
        if let Some(known) = self.weak.get(&(state, label)) {
            return known.clone();
        }
        let mut set = closure(self.lts, vec![state], true);
        if label != LabelId::TAU {
            set = set
                .iter()
                .flat_map(|s| self.lts.successors(*s))
                .filter(|x| x.0 == label)
                .map(|x| x.1)
                .collect();
            set = closure(self.lts, set, true);
        }
        self.weak.insert((state, label), set.clone());
        set
    }

    fn reason(&mut self, s: StateId, t: StateId) -> Option<Refutation> {
        for (l, to) in self.lts.successors(s) {
            if self.weak_successors(t, l).iter().all(|u| self.refuted.contains_key(&(to, *u))) {
                return Some(Refutation::Step(l, to));
            }
        }
        let uncoupled = self
            .weak_successors(t, LabelId::TAU)
            .iter()
            .all(|u| self.refuted.contains_key(&(*u, s)));
        uncoupled.then_some(Refutation::Uncoupled)
    }

    /// Returns the start of the formula of a pair, and the pairs with the formulas that follow.
    fn parts(&mut self, pair: CoupledPair) -> (String, Vec<CoupledPair>, bool) {
        let (s, t) = pair;
        match self.refuted[&pair] {
            Refutation::Step(l, to) => {
                let start = if l == LabelId::TAU {
                    "<tau*>".into()
                } else {
                    format!("<tau* . {} . tau*>", self.lts.table.texts[l.index()])
                };
                (start, self.weak_successors(t, l).into_iter().map(|u| (to, u)).collect(), false)
            }
            Refutation::Uncoupled => (
                "<tau*>".into(),
                self.weak_successors(t, LabelId::TAU).into_iter().map(|u| (u, s)).collect(),
                true,
            ),
        }
    }

    fn size(&mut self, pair: CoupledPair, known: &mut AHashMap<CoupledPair, u64>) -> u64 {
        if let Some(&size) = known.get(&pair) {
            return size;
        }
        let (start, behind, _) = self.parts(pair);
        let mut size = start.len() as u64 + 10;
        for p in behind {
            size = size.saturating_add(7).saturating_add(stacker::maybe_grow(
                64 << 10,
                1 << 20,
                || self.size(p, known),
            ));
        }
        known.insert(pair, size);
        size
    }

    fn formula(&mut self, pair: CoupledPair, known: &mut AHashMap<CoupledPair, String>) -> String {
        if let Some(text) = known.get(&pair) {
            return text.clone();
        }
        let (start, behind, negated) = self.parts(pair);
        let mut parts = Vec::new();
        for p in behind {
            let part = stacker::maybe_grow(64 << 10, 1 << 20, || self.formula(p, known));
            parts.push(if negated { format!("!({part})") } else { part });
        }
        parts.sort();
        parts.dedup();
        let rest =
            if parts.is_empty() { "true".to_string() } else { format!("({})", parts.join(" && ")) };
        let text = start + &rest;
        known.insert(pair, text.clone());
        text
    }
}
