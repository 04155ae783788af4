//! Exact numbers of transitions and deadlocks of a set of states, from the learned relations.
//!
//! A transition is a state with a label and a target; if two groups have the same one, it counts
//! once, as in the explicit engine. So the steps are counted group by group. If groups with common
//! labels may have equal transitions, these are represented explicitly, as vectors of old and new
//! values with the label at the end, and the distinct ones are counted. Groups cannot have equal
//! transitions if they are never enabled together, or if one always changes a slot that the other
//! does not write. This settles nearly all pairs without diagrams.
//!
//! Cost: for each group and number of steps, a count over the nodes of the levels that it reads;
//! for pairs that may have equal transitions, the diagrams of their transitions. Invariant: all
//! relations have learned from the set.

use super::helpers::HelperTask;
use super::ldd::{Ldd, LevelAction};
use super::reach::ReachSearch;
use mu_base::Diagnostic;
use num_bigint::BigUint;
use num_traits::Zero;

/// A member of a relation.
type MemberIndex = (usize, usize);

impl ReachSearch<'_> {
    /// Returns the states without steps.
    pub(super) fn deadlocks(&mut self, states: Ldd) -> Ldd {
        let mut rest = states;
        for i in 0..self.relations.len() {
            for j in 0..self.relations[i].members.len() {
                let enabled = self.enabled_states((i, j), rest);
                rest = self.manager.minus(rest, enabled);
                self.tidy(&[states, rest]);
            }
        }
        rest
    }

    /// Returns the states in which a group is enabled.
    fn enabled_states(&mut self, (i, j): MemberIndex, states: Ldd) -> Ldd {
        let member = &self.relations[i].members[j];
        let plan = member.matches;
        let mut enabled = Ldd::EMPTY;
        for set in member.sets.enabled.values().copied().collect::<Vec<_>>() {
            let some = self.manager.select_matches(states, set, plan);
            enabled = self.manager.union(enabled, some);
        }
        enabled
    }

    /// Returns the number of transitions from a set of states.
    pub(super) fn transitions(&mut self, states: Ldd) -> Result<BigUint, Diagnostic> {
        let mut sum = BigUint::zero();
        let mut places = Vec::new();
        for i in 0..self.relations.len() {
            places.extend((0..self.relations[i].members.len()).map(|j| (i, j)));
        }
        if let Some(paths) = self.manager.paths(states, self.model.slots().len()) {
            for &(i, j) in &places {
                let member = &self.relations[i].members[j];
                for (&number, &set) in &member.sets.enabled {
                    sum += BigUint::from(self.manager.count_matching(&paths, set, member.matches))
                        * number;
                }
            }
        } else {
            let members = self.relations.iter().flat_map(|r| &r.members);
            let shorts = members
                .flat_map(|m| m.sets.enabled.values().map(|&set| (set, m.matches)))
                .collect();
            self.post(HelperTask::Matches { set: states, shorts });
            for &place in &places {
                sum += self.steps_of(place, states);
                self.tidy(&[states]);
            }
            self.withdraw();
        }
        for class in self.may_agree(&places, states) {
            sum -= self.surplus(&class, states)?;
            self.tidy(&[states]);
        }
        Ok(sum)
    }

    /// Returns the number of steps of a group from a set of states.
    fn steps_of(&mut self, (i, j): MemberIndex, states: Ldd) -> BigUint {
        let member = &self.relations[i].members[j];
        let plan = member.matches;
        let mut sum = BigUint::zero();
        for (number, set) in member.sets.enabled.clone() {
            let enabled = self.manager.select_matches(states, set, plan);
            sum += self.manager.count(enabled) * number;
        }
        sum
    }

    /// Returns classes of groups within which two groups may have equal transitions.
    fn may_agree(&mut self, places: &[MemberIndex], states: Ldd) -> Vec<Vec<MemberIndex>> {
        let mut class: Vec<usize> = (0..places.len()).collect();
        for a in 0..places.len() {
            for b in 0..a {
                if class[a] != class[b] && self.may_share(places[a], places[b], states) {
                    let (old, new) = (class[a], class[b]);
                    class.iter_mut().filter(|c| **c == old).for_each(|c| *c = new);
                }
                self.tidy(&[states]);
            }
        }
        let members = |c: usize| {
            (0..places.len()).filter(|&p| class[p] == c).map(|p| places[p]).collect::<Vec<_>>()
        };
        (0..places.len()).map(members).filter(|m| m.len() > 1).collect()
    }

    fn may_share(&mut self, a: MemberIndex, b: MemberIndex, states: Ldd) -> bool {
        let (m, n) = (&self.relations[a.0].members[a.1], &self.relations[b.0].members[b.1]);
        let (few, many) = if m.labels.len() < n.labels.len() { (m, n) } else { (n, m) };
        if few.labels.is_disjoint(&many.labels) {
            return false;
        }
        let apart = |m: &super::relation::Member, n: &super::relation::Member| {
            m.changes
                .iter()
                .any(|&(level, always)| always && n.changes.iter().all(|&(l, _)| l != level))
        };
        let groups = self.model.groups();
        let (g, h) = (&groups[m.group], &groups[n.group]);
        let exclude =
            g.requires.iter().any(|r| h.requires.iter().any(|s| r.0 == s.0 && r.1 != s.1));
        if exclude || apart(m, n) || apart(n, m) {
            return false;
        }
        let both = self.enabled_states(a, states);
        let both = self.enabled_states(b, both);
        !both.is_empty()
    }

    /// Returns the number of steps minus the number of transitions of a class of groups.
    fn surplus(&mut self, class: &[MemberIndex], states: Ldd) -> Result<BigUint, Diagnostic> {
        // Only states in which two of the groups are enabled matter.
        let (mut once, mut twice) = (Ldd::EMPTY, Ldd::EMPTY);
        for &place in class {
            let enabled = self.enabled_states(place, states);
            let again = self.manager.intersect(once, enabled);
            twice = self.manager.union(twice, again);
            once = self.manager.union(once, enabled);
        }
        let mut steps = BigUint::zero();
        let mut written = vec![false; self.model.slots().len()];
        for &place in class {
            steps += self.steps_of(place, twice);
            self.relations[place.0].written.iter().for_each(|&l| written[l] = true);
        }
        let twins: Vec<LevelAction> = written
            .iter()
            .map(|&w| if w { LevelAction::Keep } else { LevelAction::Skip })
            .collect();
        let plan = self.manager.plan_of(&twins);
        let pairs = self.manager.twins(twice, plan);
        let mut all = Ldd::EMPTY;
        for &(i, j) in class {
            let relation = &self.relations[i];
            let mut actions = Vec::new();
            for (action, &written) in relation.actions.iter().zip(&written) {
                match (action, written) {
                    (LevelAction::ReadWrite, _) => {
                        actions.extend([LevelAction::Read, LevelAction::Write])
                    }
                    (LevelAction::Write, _) => {
                        actions.extend([LevelAction::Skip, LevelAction::Write])
                    }
                    (_, true) => actions.extend([*action, LevelAction::Skip]),
                    (_, false) => actions.push(*action),
                }
            }
            actions.push(LevelAction::Write);
            let (mut rows, mut count) = (Vec::new(), 0);
            relation.members[j].for_each_labelled(
                &self.manager,
                &mut self.evaluator,
                |label, row| {
                    rows.extend_from_slice(row);
                    rows.push(label.number());
                    count += 1;
                },
            )?;
            let plan = self.manager.plan_of(&actions);
            let width = rows.len().checked_div(count).unwrap_or(0);
            let steps = self.manager.from_vectors(&rows, width, count);
            let transitions = self.manager.relprod(pairs, steps, plan);
            all = self.manager.union(all, transitions);
        }
        Ok(steps - self.manager.count(all))
    }
}
