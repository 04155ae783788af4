//! Separation: few concrete numbers for a step that compares numbers only with each other, not with
//! constants or literals, and without offsets or sums.
//!
//! The behaviour of such a step depends on the order of its numbers, including ties. The
//! abstraction of its results depends on the intervals of the numbers. Distances between numbers
//! and constants matter only because an interval must have room for the distinct numbers in it. So
//! one sample is enough for each order of the numbers and each choice of intervals for which some
//! valuation of the case has room. In contrast, [`crate::sample`] distinguishes all orders and gaps
//! of numbers and constants. For example, a memory that queues three commands has steps that read
//! five numbers, with three constants: hundreds of samples instead of millions.
//!
//! A valuation is dropped if another one has at least as much room in every interval. As in
//! [`crate::sample`], each sample has a twin, with other numbers in the same intervals.
//!
//! Cost: orders with ties of the numbers of each interval, times choices of intervals; valuations
//! are enumerated once for each number of numbers.

use crate::cuts::{Case, CutLine, Grain};
use crate::sample::{MAX_SAMPLES, Sample, SampleRequest, samples};
use ahash::AHashSet;

/// A valuation with the intervals' starts and the capacity of each interval, up to the largest
/// relevant one.
#[derive(Clone, Debug)]
struct Capacity {
    valuation: Vec<i64>,
    starts: Vec<i64>,
    widths: Vec<i64>,
}

/// The valuations of a case that are maximal in capacity, for a given number of numbers.
#[derive(Clone, Debug)]
pub struct Capacities(Vec<Capacity>);

impl Capacities {
    /// Computes the maximal valuations for `numbers` numbers; `None` if there are too many to
    /// enumerate.
    pub fn new(line: &CutLine, case: &Case, numbers: usize) -> Option<Self> {
        // A twin uses the second of two positions for each number.
        let most = 2 * numbers as i64 + 1;
        let wanted = SampleRequest {
            line,
            case,
            numbers: &[],
            literals: &[],
            bound: most + line.reach() + 1,
        };
        let mut rooms: Vec<Capacity> = Vec::new();
        for (sample, _) in samples(&wanted)? {
            let starts = case.starts(&sample.valuation);
            let width =
                |i: usize| starts.get(i + 1).map_or(most, |next| (next - starts[i]).clamp(0, most));
            let widths: Vec<i64> = (0..starts.len()).map(width).collect();
            let within = |a: &[i64], b: &[i64]| a.iter().zip(b).all(|(a, b)| a <= b);
            if !rooms.iter().any(|r| within(&widths, &r.widths)) {
                rooms.retain(|r| !within(&r.widths, &widths));
                rooms.push(Capacity { valuation: sample.valuation, starts, widths });
            }
        }
        Some(Self(rooms))
    }

    /// Returns all samples of numbers in these blocks, each with its twin; `None` if there are too
    /// many.
    pub fn samples(&self, case: &Case, numbers: &[(Grain, i64)]) -> Option<Vec<(Sample, Sample)>> {
        let mut choice = PartialPlacement {
            case,
            numbers,
            places: Vec::new(),
            seen: AHashSet::new(),
            out: Vec::new(),
        };
        self.0.iter().all(|room| choice.next(room)).then_some(choice.out)
    }
}

/// A partial placement of the numbers, in order.
struct PartialPlacement<'a> {
    case: &'a Case,
    numbers: &'a [(Grain, i64)],
    /// For each placed number: its interval, and its rank among the distinct numbers there, which
    /// later placements may shift.
    places: Vec<(usize, usize)>,
    seen: AHashSet<Vec<(usize, usize)>>,
    out: Vec<(Sample, Sample)>,
}

impl PartialPlacement<'_> {
    /// Places the next number in all possible positions. Returns false if there are too many
    /// samples.
    fn next(&mut self, room: &Capacity) -> bool {
        let Some(&(grain, block)) = self.numbers.get(self.places.len()) else {
            return self.finish(room);
        };
        for interval in (0..room.starts.len()).filter(|i| self.case.block(grain, *i) == block) {
            let ranks =
                self.places.iter().filter(|p| p.0 == interval).map(|p| p.1 + 1).max().unwrap_or(0);
            for rank in 0..ranks {
                self.places.push((interval, rank));
                let fine = self.next(room);
                self.places.pop();
                if !fine {
                    return false;
                }
            }
            if (ranks as i64) < room.widths[interval] {
                // The new number is between, before or after the others.
                for rank in 0..=ranks {
                    let before = self.places.clone();
                    self.places
                        .iter_mut()
                        .filter(|p| p.0 == interval && p.1 >= rank)
                        .for_each(|p| p.1 += 1);
                    self.places.push((interval, rank));
                    let fine = self.next(room);
                    self.places = before;
                    if !fine {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn finish(&mut self, room: &Capacity) -> bool {
        if !self.seen.insert(self.places.clone()) {
            return true;
        }
        let ranks = |interval: usize| {
            self.places.iter().filter(|p| p.0 == interval).map(|p| p.1 + 1).max().unwrap_or(0)
                as i64
        };
        let plain = |&(interval, rank): &(usize, usize)| room.starts[interval] + rank as i64;
        let twin = |&(interval, rank): &(usize, usize)| {
            let spread = if room.widths[interval] >= 2 * ranks(interval) {
                2 * rank as i64 + 1
            } else {
                rank as i64
            };
            room.starts[interval] + spread
        };
        let valuation = || room.valuation.clone();
        let sample =
            Sample { valuation: valuation(), numbers: self.places.iter().map(plain).collect() };
        let other =
            Sample { valuation: valuation(), numbers: self.places.iter().map(twin).collect() };
        self.out.push((sample, other));
        self.out.len() <= MAX_SAMPLES
    }
}
