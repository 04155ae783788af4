//! Table of abstract states: vectors of small numbers in one array, found by an open hash table.
//!
//! Cost: two bytes for each parameter of a state, and four to eight for the table.

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
        Self { width, all: Vec::new(), slots: vec![FREE; 1 << 10] }
    }

    pub fn len(&self) -> usize {
        self.all.len() / self.width
    }

    /// Copies a state.
    pub fn copy(&self, at: usize, out: &mut Vec<u16>) {
        out.clear();
        out.extend(&self.all[at * self.width..(at + 1) * self.width]);
    }

    fn hash(state: &[u16]) -> u64 {
        state.iter().fold(0x243f_6a88_85a3_08d3, |h, v| {
            (h ^ u64::from(*v)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(25)
        })
    }

    /// Returns the number of a state.
    pub fn id(&mut self, own: &[u16]) -> u32 {
        debug_assert_eq!(own.len(), self.width);
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = Self::hash(own) as usize & mask;
        loop {
            match self.slots[at] {
                FREE => {
                    let id = self.len() as u32;
                    self.slots[at] = id;
                    self.all.extend(own);
                    return id;
                }
                id => {
                    let from = id as usize * self.width;
                    if self.all[from..from + self.width] == *own {
                        return id;
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
