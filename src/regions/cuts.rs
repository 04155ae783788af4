//! The number line cut at constants: cases of the constants, intervals between cuts, partitions of
//! these into blocks.
//!
//! A *base* is a constant without a value: base 0 is zero, then come the parameters, then the
//! numbers that a formula fixes. A *term* is a base plus a literal, a *cut* a term: it parts the
//! numbers below from the others. For a valuation of the bases the cuts part the numbers into
//! *intervals*, counted from 0. Valuations that order the cuts alike, and that agree on all
//! [`Test`]s, are one *case*: all its valuations have the same intervals, none of them empty, and
//! one of them stands for the case. A *partition* puts intervals into blocks; a block's number is
//! that of the least number of its first interval for the case's valuation, so that abstract values
//! are values.
//!
//! *Joined* cases ([`Line::joined`]) are fewer: one covers those in which some of its intervals are
//! empty, since two of its cuts coincide there. The cuts at or below a number are still a prefix of
//! the cuts in the case's order, so an interval means the same in all of them.
//!
//! Cost: valuations up to a small bound are enumerated. Invariant: each valuation is of a case, and
//! of one only unless cases are joined.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A base plus a literal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term {
    /// The base.
    pub base: usize,
    /// The literal; not negative.
    pub offset: i64,
}

impl Term {
    /// A base by itself.
    pub fn of(base: usize) -> Self {
        Self { base, offset: 0 }
    }
    /// A literal.
    pub fn literal(n: i64) -> Self {
        Self { base: 0, offset: n }
    }
    /// The term plus a literal.
    #[must_use]
    pub fn plus(self, n: i64) -> Self {
        Self { base: self.base, offset: self.offset + n }
    }
    /// Its value.
    pub fn value(self, valuation: &[i64]) -> i64 {
        valuation[self.base] + self.offset
    }
}

/// Two terms whose order all valuations of a case agree on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Test(pub Term, pub Term);

impl Test {
    /// How the terms compare.
    pub fn of(self, valuation: &[i64]) -> Ordering {
        self.0.value(valuation).cmp(&self.1.value(valuation))
    }
}

/// A test, and which of its outcomes are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The test.
    pub test: Test,
    /// Whether less is told from equal.
    pub less: bool,
    /// Whether greater is told from equal.
    pub greater: bool,
}

impl Asked {
    /// How two terms compare.
    pub fn order(a: Term, b: Term) -> Self {
        Self { test: Test(a, b), less: true, greater: true }
    }
    /// Whether `a` is less than `b`.
    pub fn less(a: Term, b: Term) -> Self {
        Self { test: Test(a, b), less: true, greater: false }
    }
    /// Whether the interval of a number is below a cut or not.
    pub fn side(cut: Term, number: Term) -> Self {
        Self { test: Test(cut, number), less: false, greater: true }
    }
    /// The same with the higher base first; none if only one outcome is possible.
    fn ordered(self) -> Option<Self> {
        let Test(a, b) = self.test;
        match a.base.cmp(&b.base) {
            Ordering::Greater => Some(self),
            Ordering::Less => {
                Some(Self { test: Test(b, a), less: self.greater, greater: self.less })
            }
            Ordering::Equal => None,
        }
    }
}

/// What a formula asks of a number in a label.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Predicate {
    /// Whether it is this term.
    Equal(Term),
    /// Whether it is less than this term.
    Less(Term),
}

impl Predicate {
    /// Whether it is true of a number.
    pub fn holds(self, n: i64, valuation: &[i64]) -> bool {
        match self {
            Predicate::Equal(t) => n == t.value(valuation),
            Predicate::Less(t) => n < t.value(valuation),
        }
    }
    /// The cuts at which it changes.
    pub fn cuts(self) -> Vec<Term> {
        match self {
            Predicate::Equal(t) => vec![t, t.plus(1)],
            Predicate::Less(t) => vec![t],
        }
    }
}

/// What is tracked.
#[derive(Clone, Debug)]
pub struct Line {
    /// Least value of each base; zero's is 0, and zero has no other.
    pub least: Vec<i64>,
    /// The cuts, ascending as terms.
    pub cuts: Vec<Term>,
    /// What valuations of one case agree on besides.
    pub tests: Vec<Asked>,
    /// What labels and values that are not ordered are told apart by.
    pub predicates: Vec<Predicate>,
}

/// How finely the numbers of a slot are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grain {
    /// Interval by interval.
    Intervals,
    /// By what the formula asks.
    Predicates,
}

/// How a test may come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// So.
    Is(Ordering),
    /// So, or both terms are equal: joined cases.
    OrEqual(Ordering),
}

impl Outcome {
    /// Whether it may come out so.
    pub fn allows(self, order: Ordering) -> bool {
        match self {
            Outcome::Is(o) => order == o,
            Outcome::OrEqual(o) => order == o || order.is_eq(),
        }
    }
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The valuation that stands for it. Its intervals are not empty.
    pub valuation: Vec<i64>,
    /// How each test comes out, those between cuts included.
    pub outcome: Vec<Outcome>,
    /// The cuts that are not at zero in ascending order, one of those that coincide in the whole
    /// case.
    cuts: Vec<Term>,
    /// By interval: the block's number under [`Grain::Intervals`], [`Grain::Predicates`].
    blocks: [Vec<i64>; 2],
}

impl Line {
    /// All tests that valuations of one case agree on, with what joined cases agree on too: what is
    /// asked for, and which cuts are at zero, since a number is never below it. Ascending.
    fn asked(&self) -> BTreeMap<Test, Asked> {
        let at_zero = self.cuts.iter().map(|c| Asked::side(*c, Term::literal(0)));
        let cuts = self
            .cuts
            .iter()
            .enumerate()
            .flat_map(|(i, a)| self.cuts[i + 1..].iter().map(move |b| Test(*a, *b)));
        let cuts = cuts.map(|test| Asked { test, less: false, greater: false });
        let mut all: BTreeMap<Test, Asked> = BTreeMap::new();
        for asked in
            self.tests.iter().copied().chain(at_zero).chain(cuts).filter_map(Asked::ordered)
        {
            let known = all.entry(asked.test).or_insert(asked);
            known.less |= asked.less;
            known.greater |= asked.greater;
        }
        all
    }

    fn all_tests(&self) -> Vec<Test> {
        self.asked().into_keys().collect()
    }

    /// Largest difference of bases at which something changes.
    pub fn reach(&self) -> i64 {
        let tests = self.all_tests();
        let of_tests = tests.iter().map(|t| (t.0.offset - t.1.offset).abs());
        of_tests.chain(self.cuts.iter().map(|c| c.offset)).max().unwrap_or(0)
    }

    /// How many valuations [`Line::cases`] looks at; `None` if they are more than a number holds.
    pub fn valuations(&self) -> Option<u64> {
        let all = self.least.iter().skip(1).map(|least| u64::try_from(self.top() - least + 1).ok());
        all.into_iter().try_fold(1u64, |product, n| product.checked_mul(n?))
    }

    /// Largest value of a base that is looked at.
    fn top(&self) -> i64 {
        self.least.iter().max().copied().unwrap_or(0) + self.least.len() as i64 * (self.reach() + 1)
    }

    /// All cases. Each test compares a difference of two bases with a number up to [`Line::reach`];
    /// so does each sum of such differences, at most one for each base, with what the tests
    /// bound it by. Hence a valuation whose gaps are cut down to reach + 1 is of the same case, and
    /// valuations up to (bases) × (reach + 1), above the least values, are enough.
    pub fn cases(&self) -> Vec<Case> {
        let tests = self.all_tests();
        let (bases, top) = (self.least.len(), self.top());
        let mut found: BTreeMap<Vec<Ordering>, Vec<i64>> = BTreeMap::new();
        let mut valuation = self.least.clone();
        loop {
            let outcome: Vec<Ordering> = tests.iter().map(|t| t.of(&valuation)).collect();
            // The smallest one stands for the case, since its numbers are read by people.
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
                self.case(valuation, outcome.into_iter().map(Outcome::Is).collect())
            })
            .collect()
    }

    /// Cases that cover all valuations, each with as few cuts that coincide as there can be: the
    /// others are among them, with empty intervals.
    pub fn joined(&self) -> Vec<Case> {
        let asked: Vec<Asked> = self.asked().into_values().collect();
        let equal = |case: &Case| case.outcome.iter().filter(|o| o.allows(Ordering::Equal)).count();
        let mut cases = self.cases();
        cases.sort_by_key(equal);
        let mut chosen: Vec<Case> = Vec::new();
        for mut case in cases {
            let covers = |other: &Case| {
                other.outcome.iter().zip(&case.outcome).all(|(a, b)| match b {
                    Outcome::Is(order) | Outcome::OrEqual(order) => a.allows(*order),
                })
            };
            if chosen.iter().any(covers) {
                continue;
            }
            for (outcome, asked) in case.outcome.iter_mut().zip(&asked) {
                match *outcome {
                    Outcome::Is(Ordering::Less) if !asked.less => {
                        *outcome = Outcome::OrEqual(Ordering::Less)
                    }
                    Outcome::Is(Ordering::Greater) if !asked.greater => {
                        *outcome = Outcome::OrEqual(Ordering::Greater)
                    }
                    _ => {}
                }
            }
            chosen.push(case);
        }
        chosen
    }

    fn case(&self, valuation: Vec<i64>, outcome: Vec<Outcome>) -> Case {
        let mut cuts: Vec<Term> =
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

    /// The tests whose outcomes a case has, in its order.
    pub fn tests_of_cases(&self) -> Vec<Test> {
        self.all_tests()
    }
}

/// Where intervals start: at zero, then at each cut.
fn starts(cuts: &[Term], valuation: &[i64]) -> Vec<i64> {
    std::iter::once(0).chain(cuts.iter().map(|c| c.value(valuation))).collect()
}

impl Case {
    /// The number of the block of an interval.
    pub fn block(&self, grain: Grain, interval: usize) -> i64 {
        self.blocks[grain as usize][interval]
    }
    /// The interval of a number, where `value` gives the value of a cut, if it is not above all
    /// that matters.
    pub fn interval(&self, n: i64, value: impl Fn(Term) -> Option<i64>) -> usize {
        self.cuts.iter().take_while(|c| value(**c).is_some_and(|c| c <= n)).count()
    }
    /// What a number becomes under a valuation of this case.
    pub fn abstracted(&self, grain: Grain, n: i64, valuation: &[i64]) -> i64 {
        self.block(grain, self.interval(n, |c| Some(c.value(valuation))))
    }
    /// True if a valuation is one of the case; `tests` are those of [`Line::tests_of_cases`].
    pub fn has(&self, tests: &[Test], valuation: &[i64]) -> bool {
        tests.iter().zip(&self.outcome).all(|(test, outcome)| outcome.allows(test.of(valuation)))
    }
    /// The least number of each interval under a valuation of this case; that of the next one if it
    /// is empty there.
    pub fn starts(&self, valuation: &[i64]) -> Vec<i64> {
        starts(&self.cuts, valuation)
    }
    /// How many intervals there are.
    pub fn intervals(&self) -> usize {
        self.cuts.len() + 1
    }
}
