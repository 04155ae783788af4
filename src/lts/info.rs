//! Statistics of a transition system. Cost: linear, one pass and the tau components.

use super::tau::{components, in_breadth_first_order};
use super::{Lts, relabel};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Statistics, of the reachable part except where noted.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Reachable states.
    pub states: usize,
    /// Their transitions.
    pub transitions: usize,
    /// Unreachable states of the file.
    pub unreachable: usize,
    /// States without transitions.
    pub deadlocks: usize,
    /// States from which an infinite run of taus is possible.
    pub divergences: usize,
    /// Number of tau transitions.
    pub taus: usize,
    /// Minimum number of transitions of a state.
    pub least_degree: usize,
    /// Maximum number of transitions of a state.
    pub most_degree: usize,
    /// True if no state has transitions with one label to different states.
    pub deterministic: bool,
    /// True if the system has no cycle.
    pub acyclic: bool,
    /// Distinct labels that occur, tau included.
    pub labels: usize,
    /// Number of transitions by action name (a multi-action counts once for each of its names), tau
    /// first, then by frequency.
    pub actions: Vec<(String, usize)>,
}

impl Info {
    /// Returns the average number of transitions per state.
    pub fn mean_degree(&self) -> f64 {
        self.transitions as f64 / self.states.max(1) as f64
    }
}

/// Computes the statistics.
pub fn info(lts: &Lts) -> Info {
    let all = lts.state_count();
    let lts = in_breadth_first_order(lts);
    let n = lts.state_count();
    let mut by_label = vec![0usize; lts.table.texts.len()];
    lts.labels.iter().for_each(|l| by_label[l.index()] += 1);
    let mut by_name: AHashMap<&str, usize> = AHashMap::new();
    for (text, &count) in lts.table.texts.iter().zip(&by_label).skip(1).filter(|(_, c)| **c > 0) {
        let mut names: Vec<&str> = relabel::parts(text).into_iter().map(relabel::name_of).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            *by_name.entry(name).or_default() += count;
        }
    }
    let mut actions: Vec<(String, usize)> =
        by_name.into_iter().map(|(n, c)| (n.to_string(), c)).collect();
    actions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if by_label[0] > 0 {
        actions.insert(0, ("tau".into(), by_label[0]));
    }
    let degrees = || lts.offsets.windows(2).map(|w| (w[1] - w[0]) as usize);
    // Rows are sorted by label.
    let deterministic = (0..n).all(|s| {
        let row: Vec<_> = lts.successors(StateId::new(s)).collect();
        row.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1)
    });
    Info {
        states: n,
        transitions: lts.transition_count(),
        unreachable: all - n,
        deadlocks: degrees().filter(|d| *d == 0).count(),
        divergences: divergent_states(&lts),
        taus: by_label[0],
        least_degree: degrees().min().unwrap_or(0),
        most_degree: degrees().max().unwrap_or(0),
        deterministic,
        acyclic: is_acyclic(&lts),
        labels: by_label.iter().filter(|c| **c > 0).count(),
        actions,
    }
}

/// Counts the states with an infinite tau path: those that reach a tau cycle by taus.
fn divergent_states(lts: &Lts) -> usize {
    let tau = components(lts);
    let mut divergent = tau.divergent.clone();
    // A tau step leads to a component of smaller number, so ascending order visits targets first.
    let mut order: Vec<u32> = (0..narrow::index(lts.state_count())).collect();
    order.sort_unstable_by_key(|&s| tau.of[s as usize]);
    for &s in &order {
        let c = tau.of[s as usize] as usize;
        divergent[c] |= lts
            .successors(StateId::of(s))
            .any(|(l, t)| l == LabelId::TAU && divergent[tau.of[t.index()] as usize]);
    }
    tau.of.iter().filter(|&&c| divergent[c as usize]).count()
}

/// True if the system has no cycle, by Kahn's algorithm: no state remains after repeated removal of
/// states without incoming transitions.
fn is_acyclic(lts: &Lts) -> bool {
    let mut incoming = vec![0u64; lts.state_count()];
    lts.targets.iter().for_each(|t| incoming[t.index()] += 1);
    let mut free: Vec<usize> = (0..incoming.len()).filter(|&s| incoming[s] == 0).collect();
    let mut gone = 0;
    while let Some(s) = free.pop() {
        gone += 1;
        for (_, t) in lts.successors(StateId::new(s)) {
            incoming[t.index()] -= 1;
            if incoming[t.index()] == 0 {
                free.push(t.index());
            }
        }
    }
    gone == incoming.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aut;

    #[test]
    fn figures() {
        let text = "des (0, 7, 6)\n(0, tau, 1)\n(1, tau, 2)\n(2, tau, 1)\n(0, \"a(1)|b\", 3)\n(0, \"a(1)|b\", 4)\n(4, \"a(2)\", 3)\n(5, c, 0)\n";
        let i = info(&aut::read(text.as_bytes(), &Default::default()).unwrap());
        assert_eq!(
            (i.states, i.transitions, i.unreachable, i.deadlocks, i.divergences, i.taus),
            (5, 6, 1, 1, 3, 3)
        );
        assert_eq!(
            (i.least_degree, i.most_degree, i.deterministic, i.acyclic, i.labels),
            (0, 3, false, false, 3)
        );
        assert_eq!(i.actions, [("tau".to_string(), 3), ("a".into(), 3), ("b".into(), 2)]);
        let i = info(
            &aut::read("des (0, 2, 3)\n(0, a, 1)\n(0, b, 2)\n".as_bytes(), &Default::default())
                .unwrap(),
        );
        assert_eq!((i.deterministic, i.acyclic, i.divergences, i.deadlocks), (true, true, 0, 2));
        assert!((i.mean_degree() - 2.0 / 3.0).abs() < 1e-9);
        let twice = "des (0, 3, 2)\n(0, a, 1)\n(0, b, 1)\n(0, a, 1)\n";
        assert!(info(&aut::read(twice.as_bytes(), &Default::default()).unwrap()).deterministic);
    }
}
