//! Enough concrete numbers for a step that compares numbers with each other only: not with
//! constants, not with literals, without offsets or sums.
//!
//! What such a step does depends on the order of its numbers, ties included; what its results
//! become depends on the intervals that the numbers are in. How far numbers are from each other or
//! from the constants, and where the constants are, plays no part but for this: so many different
//! numbers of one interval must have room there. So for each order of the numbers and each choice
//! of intervals that some valuation of the case has room for, one sample is enough, where
//! [`crate::sample`] also tells orders and gaps of all constants apart. A memory that queues three
//! commands has steps that read five numbers beside three constants: hundreds of samples in place
//! of millions.
//!
//! A valuation is left out if another one has at least the room everywhere. As there, each sample
//! has a twin, with the numbers elsewhere in their intervals.
//!
//! Cost: orders with ties of the numbers of each interval, times choices of intervals; valuations
//! once for each number of numbers.

use crate::cuts::{Case, Grain, Line};
use crate::sample::{MOST, Sample, Wanted, samples};
use ahash::AHashSet;

/// A valuation with the intervals' starts, and how many numbers there is room for, as far as that
/// matters.
#[derive(Clone, Debug)]
struct Room {
    valuation: Vec<i64>,
    starts: Vec<i64>,
    widths: Vec<i64>,
}

/// The valuations of a case that leave the most room for so many numbers.
#[derive(Clone, Debug)]
pub struct Rooms(Vec<Room>);

impl Rooms {
    /// The valuations for `numbers` numbers; none if there are too many to look at.
    pub fn new(line: &Line, case: &Case, numbers: usize) -> Option<Self> {
        // Twins take the second of two places each.
        let most = 2 * numbers as i64 + 1;
        let wanted =
            Wanted { line, case, numbers: &[], literals: &[], bound: most + line.reach() + 1 };
        let mut rooms: Vec<Room> = Vec::new();
        for (sample, _) in samples(&wanted)? {
            let starts = case.starts(&sample.valuation);
            let width =
                |i: usize| starts.get(i + 1).map_or(most, |next| (next - starts[i]).clamp(0, most));
            let widths: Vec<i64> = (0..starts.len()).map(width).collect();
            let within = |a: &[i64], b: &[i64]| a.iter().zip(b).all(|(a, b)| a <= b);
            if !rooms.iter().any(|r| within(&widths, &r.widths)) {
                rooms.retain(|r| !within(&r.widths, &widths));
                rooms.push(Room { valuation: sample.valuation, starts, widths });
            }
        }
        Some(Self(rooms))
    }

    /// All samples for numbers in these blocks, each with its twin; none if there are too many.
    pub fn samples(&self, case: &Case, numbers: &[(Grain, i64)]) -> Option<Vec<(Sample, Sample)>> {
        let mut choice =
            Choice { case, numbers, places: Vec::new(), seen: AHashSet::new(), out: Vec::new() };
        self.0.iter().all(|room| choice.next(room)).then_some(choice.out)
    }
}

/// Numbers placed one after the other.
struct Choice<'a> {
    case: &'a Case,
    numbers: &'a [(Grain, i64)],
    /// Of each number placed: its interval, and its rank among the different numbers there, which
    /// may still grow.
    places: Vec<(usize, usize)>,
    seen: AHashSet<Vec<(usize, usize)>>,
    out: Vec<(Sample, Sample)>,
}

impl Choice<'_> {
    /// Places the next number in all ways; whether there are not too many.
    fn next(&mut self, room: &Room) -> bool {
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
                // Between, before or after those that are there.
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

    fn finish(&mut self, room: &Room) -> bool {
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
        self.out.len() <= MOST
    }
}
