//! Sampling of concrete numbers: for given abstract numbers, enough valuations of the constants and
//! numbers to show all possible behaviours.
//!
//! The effect of an evaluation on counters depends on comparisons of differences with offsets up to
//! a bound (see [`crate::flow`]). So two choices of numbers are equivalent if, in sorted order,
//! they have the same ties, and the same gaps between neighbours up to the bound. One choice per
//! equivalence class is enough: all orders with ties are enumerated, with gaps of 1 to the bound,
//! where the last represents all larger gaps. Each choice has an equivalent *twin* with larger
//! large gaps, so that the claim can be tested. After the clock regions of Alur, Dill (1994), for
//! differences of integers.
//!
//! Cost: (orders with ties) × bound^(numbers); a few hundred for the numbers that one transition
//! group reads.

use crate::cuts::{Case, CutLine, CutTerm, Grain};

/// Values of the constants and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The value of each base.
    pub valuation: Vec<i64>,
    /// The value of each requested occurrence.
    pub numbers: Vec<i64>,
}

/// A request for samples.
pub struct SampleRequest<'a> {
    /// The cuts.
    pub line: &'a CutLine,
    /// The case.
    pub case: &'a Case,
    /// For each number: its granularity and block.
    pub numbers: &'a [(Grain, i64)],
    /// Literals that numbers are compared with.
    pub literals: &'a [i64],
    /// Gaps of this size represent all larger ones.
    pub bound: i64,
}

/// Limit on the number of samples; beyond it none are returned.
pub const MAX_SAMPLES: usize = 200_000;
/// Limit on partial choices; beyond it no samples are returned. Few samples may need many: of 20
/// numbers that must be zero, each subset is tried at zero.
const MAX_PARTIAL: u64 = 50_000_000;

struct Chain<'a> {
    wanted: &'a SampleRequest<'a>,
    tests: Vec<crate::cuts::CutTest>,
    /// The positions of the bases without zero, then of the numbers.
    places: Vec<Option<i64>>,
    /// The same for the twin.
    twins: Vec<i64>,
    out: Vec<(Sample, Sample)>,
    /// Number of partial choices.
    partial: u64,
    full: bool,
}

/// Returns all samples, each with its twin; `None` if there are too many.
pub fn samples(wanted: &SampleRequest) -> Option<Vec<(Sample, Sample)>> {
    let count = wanted.line.least.len() - 1 + wanted.numbers.len();
    let mut chain = Chain {
        wanted,
        tests: wanted.line.tests_of_cases(),
        places: vec![None; count],
        twins: vec![0; count],
        out: Vec::new(),
        partial: 0,
        full: false,
    };
    chain.position(0, 0);
    (!chain.full).then_some(chain.out)
}

/// The enlargement of a twin's large gaps.
const STRETCH: i64 = 3;

impl Chain<'_> {
    fn has_time(&self) -> bool {
        self.places.iter().any(Option::is_none)
    }

    /// Places each possible subset of the remaining items at a position, and continues.
    fn position(&mut self, at: i64, twin: i64) {
        if self.full {
            return;
        }
        // Gaps before a literal are exact, and no gap passes a literal.
        let literal = self.wanted.literals.contains(&at);
        if self.wanted.literals.iter().any(|l| *l >= at) && at != twin {
            // A twin would pass the literal, so the gap is not enlarged.
            return self.position(at, at);
        }
        self.subset(0, at, twin, literal || at == 0);
    }

    /// Decides for each remaining item from `from` on whether it is at this position. `any`: some
    /// item is here already.
    fn subset(&mut self, from: usize, at: i64, twin: i64, any: bool) {
        self.partial += 1;
        self.full |= self.partial > MAX_PARTIAL;
        if self.full {
            return;
        }
        let Some(i) = (from..self.places.len()).find(|i| self.places[*i].is_none()) else {
            if any {
                self.proceed(at, twin);
            }
            return;
        };
        self.places[i] = Some(at);
        self.twins[i] = twin;
        if self.base_may_be_at(i, at) {
            self.subset(i + 1, at, twin, true);
        }
        self.places[i] = None;
        self.subset(i + 1, at, twin, any);
    }

    /// Continues with the next position, or ends, after all items of this position are placed.
    fn proceed(&mut self, at: i64, twin: i64) {
        if !self.numbers_fit(at) {
            return;
        }
        if !self.has_time() {
            self.finish();
            return;
        }
        let next_literal = self.wanted.literals.iter().copied().filter(|l| *l > at).min();
        for gap in 1..=self.wanted.bound {
            let stretch = if gap == self.wanted.bound { STRETCH } else { 0 };
            if next_literal.is_none_or(|l| at + gap <= l) {
                self.position(at + gap, twin + gap + stretch);
            }
        }
        // Beyond the gap that represents all larger ones: the literal, and the positions so close
        // to it that the remaining items fit in a row before it.
        if let Some(l) = next_literal {
            let left = self.places.iter().filter(|p| p.is_none()).count() as i64;
            for place in (l - self.wanted.bound * left).max(at + self.wanted.bound + 1)..=l {
                self.position(place, place);
            }
        }
    }

    fn bases(&self) -> usize {
        self.wanted.line.least.len() - 1
    }

    fn base(&self, base: usize) -> Option<i64> {
        if base == 0 { Some(0) } else { self.places[base - 1] }
    }

    /// True if a base may be at this position, by its tests against the placed ones.
    fn base_may_be_at(&self, i: usize, at: i64) -> bool {
        if i >= self.bases() {
            return true;
        }
        if at < self.wanted.line.least[i + 1] {
            return false;
        }
        self.tests.iter().zip(&self.wanted.case.outcome).all(|(test, outcome)| {
            if test.0.base != i + 1 && test.1.base != i + 1 {
                return true;
            }
            match (self.base(test.0.base), self.base(test.1.base)) {
                (Some(a), Some(b)) => outcome.allows((a + test.0.offset).cmp(&(b + test.1.offset))),
                _ => true,
            }
        })
    }

    /// True if the numbers here are in their blocks. Offsets of cuts are not negative, so a cut at
    /// a base above is above.
    fn numbers_fit(&self, at: i64) -> bool {
        let value = |c: CutTerm| self.base(c.base).map(|b| b + c.offset);
        let mut interval = None;
        (self.bases()..self.places.len()).filter(|i| self.places[*i] == Some(at)).all(|i| {
            let interval = *interval.get_or_insert_with(|| self.wanted.case.interval(at, value));
            let (grain, block) = self.wanted.numbers[i - self.bases()];
            self.wanted.case.block(grain, interval) == block
        })
    }

    fn finish(&mut self) {
        if self.out.len() >= MAX_SAMPLES {
            self.full = true;
            return;
        }
        let bases = self.bases();
        let of = |list: &[i64]| Sample {
            valuation: std::iter::once(0).chain(list[..bases].iter().copied()).collect(),
            numbers: list[bases..].to_vec(),
        };
        let plain: Vec<i64> = self.places.iter().map(|p| p.unwrap_or(0)).collect();
        self.out.push((of(&plain), of(&self.twins)));
    }
}
