//! The verifier's counting invariants: the number of processes with certain values of an array is
//! the remainder of a sum of words. Independent of the prover ([`crate::counts`]).
//!
//! With fewer than 2^bits processes the remainder is the number itself. So it is at least the
//! number of named processes that have such a value, and named processes that have none are not
//! counted. Checked are the initial states (the number and the remainder are zero), and for each
//! transition and choice of its processes that a state in which it changes both by different
//! numbers is inside the cubes of the certificate. Cost: the choices of the transition's processes
//! and cases.

use super::logic::{CertificateCell, Domains, Fact, Set, World};
use super::step::CountCase;
use super::sums::Sign;
use super::words::{WordSum, Words};
use super::{ExcludedCube, Rejection, Verifier};
use mu_base::narrow;
use mu_cubicle::system::Update;

/// A counting invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The array.
    pub symbol: usize,
    /// The values that count.
    pub values: Set,
    /// Number of bits of the remainder.
    pub bits: u32,
    /// The sum, of memory now.
    pub sum: WordSum,
    /// The largest number of processes.
    pub most: u64,
}

impl Count {
    fn comparison(&self, left: &WordSum, sign: Sign, right: &WordSum) -> Fact {
        Fact::Words(Box::new(Words::new(self.bits, left, sign, right)))
    }
    /// Returns the fact that a process counts.
    pub(super) fn counts(&self, process: u8) -> Fact {
        Fact::Among(CertificateCell::new(self.symbol, [process], None), self.values)
    }
    /// Returns facts, of which one holds in an initial state of these processes if the invariant
    /// does not: a process counts, or the remainder is not zero.
    pub(super) fn wrong_initially(&self, named: usize) -> Vec<Fact> {
        let other = self.comparison(&self.sum, Sign::NotZero, &WordSum::default());
        (0..narrow::byte(named)).map(|p| self.counts(p)).chain([other]).collect()
    }
    fn number(&self, n: i128) -> WordSum {
        WordSum::new([], n, self.bits)
    }
    /// Returns the facts that follow for the named processes with these domains.
    pub fn facts(&self, world: World<'_>, domains: &Domains) -> Vec<Fact> {
        let held =
            |p: u8| world.possible_values(domains, &CertificateCell::new(self.symbol, [p], None));
        let all = || 0..narrow::byte(world.named);
        let inside = all().filter(|p| held(*p) & !self.values == 0).count() as i128;
        let outside = all().filter(|p| held(*p) & self.values == 0).count() as i128;
        let most = i128::from(self.most);
        if inside > most || outside > most {
            return vec![Fact::ExcludedCube];
        }
        vec![
            self.comparison(&self.number(inside), Sign::AtMost, &self.sum),
            self.comparison(&self.sum, Sign::AtMost, &self.number(most - outside)),
        ]
    }
}

impl Verifier<'_> {
    /// Checks the counting invariants of the certificate in initial states.
    ///
    /// # Errors
    ///
    /// An invariant does not hold initially.
    pub(super) fn check_initial_counts(&self) -> Result<(), Rejection> {
        let wrong = self.counts.iter().position(|count| !self.counts_none_initially(count));
        wrong.map_or(Ok(()), |at| Err(Rejection::Count(at, None)))
    }
    /// Checks that transitions preserve the counting invariants of the certificate.
    ///
    /// # Errors
    ///
    /// An invariant does not hold after some transition.
    pub(super) fn check_counts(&self) -> Result<(), Rejection> {
        self.for_each_wrong_step(&mut |wrong| self.inside(wrong, None))
    }
    /// Calls a function with each cube of states in which a transition changes the remainder of a
    /// counting invariant by another number than that of its processes that begin to count. The
    /// function returns false if the cube may contain a state.
    ///
    /// # Errors
    ///
    /// The invariant and transition for which it returns false, or that are not supported.
    pub(super) fn for_each_wrong_step(
        &self,
        is_inside: &mut dyn FnMut(&ExcludedCube) -> bool,
    ) -> Result<(), Rejection> {
        for at in 0..self.counts.len() {
            for t in 0..self.system.transitions.len() {
                self.counts_steps(at, t, is_inside)?;
            }
        }
        Ok(())
    }
    /// True if no process counts in an initial state, and the remainder is zero.
    fn counts_none_initially(&self, count: &Count) -> bool {
        let named = self.named_for_count();
        let initial = self.initial(named);
        let mut wrong = count.wrong_initially(named).into_iter();
        wrong.all(|fact| self.meets_none_without_counts(named, vec![fact], &initial))
    }
    /// Returns the number of processes that decide the initial states of a counting invariant: the
    /// constants, and one process that stands for all others, if the file admits one.
    pub(super) fn named_for_count(&self) -> usize {
        let named = self.system.fixed as usize + 1;
        self.system.processes.map_or(named, |most| named.min(most as usize))
    }
    /// Checks that a transition changes the remainder by the number of its processes that begin or
    /// end to count.
    fn counts_steps(
        &self,
        at: usize,
        transition: usize,
        is_inside: &mut dyn FnMut(&ExcludedCube) -> bool,
    ) -> Result<(), Rejection> {
        let count = &self.counts[at];
        let t = &self.system.transitions[transition];
        let refused = || Rejection::Count(at, Some(transition));
        let is_own = |u: &&Update| u.symbol().index() == count.symbol;
        // Cases may set a cell of any process.
        if t.updates.iter().filter(is_own).any(|u| matches!(u, Update::Cases { .. })) {
            return Err(refused());
        }
        self.for_each_binding(t.params.len(), self.system.fixed as usize, &mut |binding, named| {
            self.budget.check(0).map_err(Rejection::Stopped)?;
            let step = self.step(t, binding, self.world(named));
            let sum: Vec<CertificateCell> = count.sum.terms.iter().map(|t| t.0).collect();
            let places = (0..narrow::byte(named))
                .map(|p| CertificateCell::new(count.symbol, [p], None))
                .collect();
            let cases = step.changes(&sum, places, count.bits).ok_or_else(refused)?;
            for CountCase { before, sums, values } in cases {
                for (facts, change) in self.count_changes(count, &values) {
                    let after = count.sum.substitute(&sums, count.bits);
                    let expected = WordSum::new(
                        count.sum.terms.iter().copied(),
                        count.sum.constant + change,
                        count.bits,
                    );
                    let wrong = count.comparison(&after, Sign::NotZero, &expected);
                    let cube = ExcludedCube {
                        named,
                        facts: [before.as_slice(), &facts, &[wrong]].concat(),
                    };
                    if !is_inside(&cube) {
                        return Err(refused());
                    }
                }
            }
            Ok(())
        })
    }
    /// Returns the cases of processes that counted before a step, with the change of the number.
    fn count_changes(
        &self,
        count: &Count,
        values: &[(CertificateCell, u32)],
    ) -> Vec<(Vec<Fact>, i128)> {
        let mut cases: Vec<(Vec<Fact>, i128)> = vec![(Vec::new(), 0)];
        for (cell, value) in values {
            let counts = i128::from(count.values & super::logic::singleton(*value) != 0);
            let all = self.world(1).all_values(cell);
            cases = cases
                .into_iter()
                .flat_map(|(facts, change)| {
                    [(count.values, counts - 1), (all & !count.values, counts)].map(
                        |(set, more)| {
                            let facts = [facts.as_slice(), &[Fact::Among(*cell, set)]].concat();
                            (facts, change + more)
                        },
                    )
                })
                .collect();
        }
        cases
    }
}
