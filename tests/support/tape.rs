//! Random choices on a tape, so that every generator written on it replays and shrinks without code
//! of its own.
//!
//! A tape is a seed and the numbers drawn so far; a generator asks it for choices, of which 0 is
//! the simplest. A failing tape is made shorter and its numbers smaller as long as the failure
//! stays (after MacIver, Donaldson, "Test-Case Reduction via Test-Case Generation", ECOOP 2020):
//! whatever the generator makes of a tape is a valid case.

use mu_check::base::random::Random;

/// The choices of one case.
#[derive(Clone, Debug)]
pub struct Tape {
    drawn: Vec<u32>,
    next: usize,
    /// Where further numbers come from; none: 0.
    random: Option<Random>,
}

impl Tape {
    /// Fresh choices from a seed.
    pub fn new(seed: u64) -> Self {
        Self { drawn: Vec::new(), next: 0, random: Some(Random::new(seed)) }
    }
    /// These choices, then 0 for ever.
    pub fn replay(drawn: Vec<u32>) -> Self {
        Self { drawn, next: 0, random: None }
    }
    /// Returns the choices made.
    pub fn choices(&self) -> Vec<u32> {
        self.drawn[..self.next.min(self.drawn.len())].to_vec()
    }
    fn draw(&mut self) -> u32 {
        if self.next >= self.drawn.len() {
            self.drawn.push(self.random.as_mut().map_or(0, |r| (r.next_u64() >> 32) as u32));
        }
        self.next += 1;
        self.drawn[self.next - 1]
    }
    /// Returns a number in `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.draw()) * bound as u64) >> 32) as usize
    }
    /// True with probability `numerator / denominator`; false is the simpler choice.
    pub fn chance(&mut self, numerator: usize, denominator: usize) -> bool {
        self.below(denominator) >= denominator - numerator
    }
    /// One of the items, the first being the simplest.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Smaller tapes for which `fails` still holds; at most `tries` are tried.
pub fn shrink(
    tapes: Vec<Vec<u32>>,
    mut tries: usize,
    mut fails: impl FnMut(&[Vec<u32>]) -> bool,
) -> Vec<Vec<u32>> {
    let mut best = tapes;
    let mut attempt = |best: &mut Vec<Vec<u32>>, candidate: Vec<Vec<u32>>| {
        if tries == 0 || candidate == *best {
            return false;
        }
        tries -= 1;
        let smaller = fails(&candidate);
        if smaller {
            *best = candidate;
        }
        smaller
    };
    loop {
        let before = best.clone();
        for t in 0..best.len() {
            let mut size = best[t].len().next_power_of_two();
            while size > 0 {
                let mut at = 0;
                while at < best[t].len() {
                    let end = (at + size).min(best[t].len());
                    let mut cut = best.clone();
                    cut[t].drain(at..end);
                    let mut zero = best.clone();
                    zero[t][at..end].fill(0);
                    if !attempt(&mut best, cut) {
                        attempt(&mut best, zero);
                        at += size;
                    }
                }
                size /= 2;
            }
            for at in 0..best[t].len() {
                let mut step = best[t].get(at).copied().unwrap_or(0) / 2;
                while step > 0 && at < best[t].len() {
                    let mut less = best.clone();
                    less[t][at] -= step.min(less[t][at]);
                    attempt(&mut best, less);
                    step /= if step > 1 << 24 { 2 } else { 1 << 24 };
                }
            }
        }
        if best == before {
            return best;
        }
    }
}
