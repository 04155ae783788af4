//! Table of abstract states: vectors of small numbers in one array, found by an open hash table.
//!
//! Cost: two bytes for each parameter of a state, and four to eight for the table.

use super::evaluate::fails;
use mu_base::Diagnostic;

/// Numbered states.
pub(super) struct States {
    width: usize,
    all: Vec<u16>,
    slots: Vec<u32>,
}

/// The entry of a free slot.
const FREE: u32 = u32::MAX;

impl States {
    pub fn new(width: usize) -> Self {
        Self { width: width.max(1), all: Vec::new(), slots: vec![FREE; 1 << 10] }
    }

    pub fn len(&self) -> usize {
        self.all.len() / self.width
    }

    /// Returns a state.
    pub fn state(&self, at: usize) -> Vec<u32> {
        self.all[at * self.width..(at + 1) * self.width].iter().map(|v| u32::from(*v)).collect()
    }

    fn hash(state: &[u16]) -> u64 {
        state.iter().fold(0x243f_6a88_85a3_08d3, |h, v| {
            (h ^ u64::from(*v)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(25)
        })
    }

    /// Returns the number of a state, and true if it is new.
    ///
    /// # Errors
    ///
    /// A parameter has too many values.
    pub fn id(&mut self, state: &[u32]) -> Result<(u32, bool), Diagnostic> {
        let mut own = Vec::with_capacity(self.width);
        for v in state {
            let small = u16::try_from(*v);
            own.push(small.map_err(|_| fails("a parameter has more than 65,536 values"))?);
        }
        own.resize(self.width, 0);
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = Self::hash(&own) as usize & mask;
        loop {
            match self.slots[at] {
                FREE => {
                    let id = self.len() as u32;
                    self.slots[at] = id;
                    self.all.extend(own);
                    return Ok((id, true));
                }
                id => {
                    let from = id as usize * self.width;
                    if self.all[from..from + self.width] == own[..] {
                        return Ok((id, false));
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![FREE; mask + 1];
        for id in 0..self.len() {
            let from = id * self.width;
            let mut at = Self::hash(&self.all[from..from + self.width]) as usize & mask;
            while self.slots[at] != FREE {
                at = (at + 1) & mask;
            }
            self.slots[at] = id as u32;
        }
    }
}
