//! The number line cut at constants: cases of the constants, intervals between cuts, partitions of
//! the intervals into blocks.
//!
//! A *base* is a symbolic constant: base 0 is zero, followed by the parameters and by the numbers
//! that a formula fixes. A *term* is a base plus a literal. A *cut* is a term that separates the
//! numbers below it from the others. For a valuation of the bases the cuts divide the numbers into
//! *intervals*, counted from 0. Valuations that order the cuts identically, and that agree on all
//! [`CutTest`]s, form one *case*: all its valuations have the same intervals, none of them empty,
//! and one of them represents the case. A *partition* combines intervals into blocks. A block's
//! number is the least number of its first interval for the case's valuation, so that abstract
//! values are values.
//!
//! *Joined* cases ([`CutLine::joint_cases`]) are fewer: one covers those in which some of its
//! intervals are empty, because two of its cuts coincide there. The cuts at or below a number are
//! still a prefix of the cuts in the case's order, so an interval has the same meaning in all of
//! them.
//!
//! Cost: valuations up to a small bound are enumerated. Invariant: each valuation belongs to a
//! case, and to only one unless cases are joined.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A base plus a literal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CutTerm {
    /// The base.
    pub base: usize,
    /// The literal; not negative.
    pub offset: i64,
}

impl CutTerm {
    /// Creates the term of a base alone.
    pub fn of(base: usize) -> Self {
        Self { base, offset: 0 }
    }
    /// Creates a literal.
    pub fn literal(n: i64) -> Self {
        Self { base: 0, offset: n }
    }
    /// Adds a literal to the term.
    #[must_use]
    pub fn plus(self, n: i64) -> Self {
        Self { base: self.base, offset: self.offset + n }
    }
    /// Returns its value.
    pub fn value(self, valuation: &[i64]) -> i64 {
        valuation[self.base] + self.offset
    }
}

/// Two terms that all valuations of a case order identically.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CutTest(pub CutTerm, pub CutTerm);

impl CutTest {
    /// Compares the terms.
    pub fn of(self, valuation: &[i64]) -> Ordering {
        self.0.value(valuation).cmp(&self.1.value(valuation))
    }
}

/// A test with the outcomes that are distinguished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Distinction {
    /// The test.
    pub test: CutTest,
    /// True if less and equal are distinguished.
    pub less: bool,
    /// True if greater and equal are distinguished.
    pub greater: bool,
}

impl Distinction {
    /// Distinguishes all orders of two terms.
    pub fn order(a: CutTerm, b: CutTerm) -> Self {
        Self { test: CutTest(a, b), less: true, greater: true }
    }
    /// Distinguishes `a < b` from `a >= b`.
    pub fn less(a: CutTerm, b: CutTerm) -> Self {
        Self { test: CutTest(a, b), less: true, greater: false }
    }
    /// Distinguishes whether the interval of a number is below a cut.
    pub fn side(cut: CutTerm, number: CutTerm) -> Self {
        Self { test: CutTest(cut, number), less: false, greater: true }
    }
    /// Puts the higher base first; `None` if only one outcome is possible.
    fn normalise(self) -> Option<Self> {
        let CutTest(a, b) = self.test;
        match a.base.cmp(&b.base) {
            Ordering::Greater => Some(self),
            Ordering::Less => {
                Some(Self { test: CutTest(b, a), less: self.greater, greater: self.less })
            }
            Ordering::Equal => None,
        }
    }
}

/// A predicate of a formula on a number in a label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LabelPredicate {
    /// The number equals this term.
    Equal(CutTerm),
    /// The number is less than this term.
    Less(CutTerm),
}

impl LabelPredicate {
    /// True if it holds for a number.
    pub fn holds(self, n: i64, valuation: &[i64]) -> bool {
        match self {
            LabelPredicate::Equal(t) => n == t.value(valuation),
            LabelPredicate::Less(t) => n < t.value(valuation),
        }
    }
    /// Returns the cuts at which its truth changes.
    pub fn cuts(self) -> Vec<CutTerm> {
        match self {
            LabelPredicate::Equal(t) => vec![t, t.plus(1)],
            LabelPredicate::Less(t) => vec![t],
        }
    }
}

/// The cuts, tests and predicates of an abstraction.
#[derive(Clone, Debug)]
pub struct CutLine {
    /// Least value of each base; for zero it is 0, its only value.
    pub least: Vec<i64>,
    /// The cuts, ascending as terms.
    pub cuts: Vec<CutTerm>,
    /// Further tests on which valuations of one case agree.
    pub tests: Vec<Distinction>,
    /// Predicates that distinguish numbers of labels and of unordered slots.
    pub predicates: Vec<LabelPredicate>,
}

/// The granularity of a slot's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grain {
    /// Interval by interval.
    Intervals,
    /// By the predicates of the formula.
    Predicates,
}

/// The possible outcomes of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestOutcome {
    /// This one.
    Is(Ordering),
    /// This one, or both terms are equal: for joined cases.
    OrEqual(Ordering),
}

impl TestOutcome {
    /// True if the outcome is possible.
    pub fn allows(self, order: Ordering) -> bool {
        match self {
            TestOutcome::Is(o) => order == o,
            TestOutcome::OrEqual(o) => order == o || order.is_eq(),
        }
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The valuation that represents the case. Its intervals are not empty.
    pub valuation: Vec<i64>,
    /// The outcome of each test, including those between cuts.
    pub outcome: Vec<TestOutcome>,
    /// The cuts that are not at zero, in ascending order; one of those that coincide in the whole
    /// case.
    cuts: Vec<CutTerm>,
    /// For each interval: the block's number under [`Grain::Intervals`] and [`Grain::Predicates`].
    blocks: [Vec<i64>; 2],
}

impl CutLine {
    /// Returns all tests on which valuations of one case agree, including joined cases, ascending:
    /// the requested tests, and the comparison of each cut with zero, because a number is never
    /// below zero.
    fn required_tests(&self) -> BTreeMap<CutTest, Distinction> {
        let at_zero = self.cuts.iter().map(|c| Distinction::side(*c, CutTerm::literal(0)));
        let cuts = self
            .cuts
            .iter()
            .enumerate()
            .flat_map(|(i, a)| self.cuts[i + 1..].iter().map(move |b| CutTest(*a, *b)));
        let cuts = cuts.map(|test| Distinction { test, less: false, greater: false });
        let mut all: BTreeMap<CutTest, Distinction> = BTreeMap::new();
        for required in
            self.tests.iter().copied().chain(at_zero).chain(cuts).filter_map(Distinction::normalise)
        {
            let known = all.entry(required.test).or_insert(required);
            known.less |= required.less;
            known.greater |= required.greater;
        }
        all
    }

    fn all_tests(&self) -> Vec<CutTest> {
        self.required_tests().into_keys().collect()
    }

    /// Returns the largest difference of bases at which an outcome changes.
    pub fn reach(&self) -> i64 {
        let tests = self.all_tests();
        let of_tests = tests.iter().map(|t| (t.0.offset - t.1.offset).abs());
        of_tests.chain(self.cuts.iter().map(|c| c.offset)).max().unwrap_or(0)
    }

    /// Returns the number of valuations that [`CutLine::cases`] enumerates; `None` on overflow.
    pub fn valuations(&self) -> Option<u64> {
        let all = self.least.iter().skip(1).map(|least| u64::try_from(self.top() - least + 1).ok());
        all.into_iter().try_fold(1u64, |product, n| product.checked_mul(n?))
    }

    /// Returns the largest enumerated value of a base.
    fn top(&self) -> i64 {
        self.least.iter().max().copied().unwrap_or(0) + self.least.len() as i64 * (self.reach() + 1)
    }

    /// Computes all cases. Each test compares a difference of two bases with a number up to
    /// [`CutLine::reach`]. So does each sum of such differences, at most one for each base, with
    /// the bound from the tests. Hence a valuation with its gaps reduced to reach + 1 is of the
    /// same case, and valuations up to (bases) × (reach + 1), above the least values, are enough.
    pub fn cases(&self) -> Vec<Case> {
        let tests = self.all_tests();
        let (bases, top) = (self.least.len(), self.top());
        let mut found: BTreeMap<Vec<Ordering>, Vec<i64>> = BTreeMap::new();
        let mut valuation = self.least.clone();
        loop {
            let outcome: Vec<Ordering> = tests.iter().map(|t| t.of(&valuation)).collect();
            // The smallest valuation represents the case, because users read its numbers.
            let sum = |v: &[i64]| v.iter().sum::<i64>();
            found
                .entry(outcome)
                .and_modify(|v| {
                    if sum(&valuation) < sum(v) {
                        v.clone_from(&valuation)
                    }
                })
                .or_insert_with(|| valuation.clone());
            let Some(next) = (1..bases).find(|b| valuation[*b] < top) else { break };
            valuation[next] += 1;
            (1..next).for_each(|b| valuation[b] = self.least[b]);
        }
        found
            .into_iter()
            .map(|(outcome, valuation)| {
                self.case(valuation, outcome.into_iter().map(TestOutcome::Is).collect())
            })
            .collect()
    }

    /// Computes cases that cover all valuations, each with as few coinciding cuts as possible. It
    /// includes the others, with empty intervals.
    pub fn joint_cases(&self) -> Vec<Case> {
        let required_tests: Vec<Distinction> = self.required_tests().into_values().collect();
        let equal = |case: &Case| case.outcome.iter().filter(|o| o.allows(Ordering::Equal)).count();
        let mut cases = self.cases();
        cases.sort_by_key(equal);
        let mut chosen: Vec<Case> = Vec::new();
        for mut case in cases {
            let covers = |other: &Case| {
                other.outcome.iter().zip(&case.outcome).all(|(a, b)| match b {
                    TestOutcome::Is(order) | TestOutcome::OrEqual(order) => a.allows(*order),
                })
            };
            if chosen.iter().any(covers) {
                continue;
            }
            for (outcome, required) in case.outcome.iter_mut().zip(&required_tests) {
                match *outcome {
                    TestOutcome::Is(Ordering::Less) if !required.less => {
                        *outcome = TestOutcome::OrEqual(Ordering::Less)
                    }
                    TestOutcome::Is(Ordering::Greater) if !required.greater => {
                        *outcome = TestOutcome::OrEqual(Ordering::Greater)
                    }
                    _ => {}
                }
            }
            chosen.push(case);
        }
        chosen
    }

    fn case(&self, valuation: Vec<i64>, outcome: Vec<TestOutcome>) -> Case {
        let mut cuts: Vec<CutTerm> =
            self.cuts.iter().copied().filter(|c| c.value(&valuation) > 0).collect();
        cuts.sort_by_key(|c| c.value(&valuation));
        cuts.dedup_by_key(|c| c.value(&valuation));
        // Interval 0 starts at zero, interval i at the i-th cut.
        let starts = starts(&cuts, &valuation);
        let truth = |n: i64| -> Vec<bool> {
            self.predicates.iter().map(|p| p.holds(n, &valuation)).collect()
        };
        let first = |n: &i64| starts.iter().copied().find(|m| truth(*m) == truth(*n)).unwrap_or(*n);
        let coarse = starts.iter().map(first).collect();
        Case { valuation, outcome, cuts, blocks: [starts, coarse] }
    }

    /// Returns the tests with outcomes in a case, in its order.
    pub fn tests_of_cases(&self) -> Vec<CutTest> {
        self.all_tests()
    }
}

/// Returns the starts of intervals: zero, then each cut.
fn starts(cuts: &[CutTerm], valuation: &[i64]) -> Vec<i64> {
    std::iter::once(0).chain(cuts.iter().map(|c| c.value(valuation))).collect()
}

impl Case {
    /// Returns the number of the block of an interval.
    pub fn block(&self, grain: Grain, interval: usize) -> i64 {
        self.blocks[grain as usize][interval]
    }
    /// Returns the interval of a number; `value` returns the value of a cut, or `None` if it is
    /// above all relevant numbers.
    pub fn interval(&self, n: i64, value: impl Fn(CutTerm) -> Option<i64>) -> usize {
        self.cuts.iter().take_while(|c| value(**c).is_some_and(|c| c <= n)).count()
    }
    /// Abstracts a number under a valuation of this case.
    pub fn abstract_number(&self, grain: Grain, n: i64, valuation: &[i64]) -> i64 {
        self.block(grain, self.interval(n, |c| Some(c.value(valuation))))
    }
    /// True if a valuation belongs to the case; `tests` are those of [`CutLine::tests_of_cases`].
    pub fn has(&self, tests: &[CutTest], valuation: &[i64]) -> bool {
        tests.iter().zip(&self.outcome).all(|(test, outcome)| outcome.allows(test.of(valuation)))
    }
    /// Returns the least number of each interval under a valuation of this case; that of the next
    /// interval if it is empty.
    pub fn starts(&self, valuation: &[i64]) -> Vec<i64> {
        starts(&self.cuts, valuation)
    }
    /// Returns the number of intervals.
    pub fn intervals(&self) -> usize {
        self.cuts.len() + 1
    }
}
