//! Fields of a state by their bits, to visit those that have a bit in common with given words.
//!
//! States of protocols have many fields, of which few differ from the start state. A scan finds
//! these by the words of the difference. Cost: linear in the words and in the fields found. Memory:
//! 4 bytes for each bit of a state.

use crate::code::mask;

/// Fields that do not overlap, each with a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// Bits of all fields within one word.
    all: Vec<u64>,
    /// Number of the field at each bit.
    at: Vec<u32>,
    /// Bits of each field within its word; 0 for one in two words.
    own: Vec<u64>,
    /// Fields in two words.
    wide: Vec<u32>,
}

impl Scan {
    /// Creates a scan of fields, given by offset and width; their numbers are their positions.
    pub fn new(words: usize, fields: impl Iterator<Item = (u32, u8)>) -> Self {
        let mut scan = Self { all: vec![0; words], at: vec![0; words * 64], ..Self::default() };
        for (number, (offset, width)) in (0u32..).zip(fields) {
            let (word, shift) = (offset as usize / 64, offset % 64);
            if shift + u32::from(width) > 64 {
                scan.wide.push(number);
                scan.own.push(0);
                continue;
            }
            let own = mask(width) << shift;
            scan.all[word] |= own;
            scan.own.push(own);
            let first = offset as usize;
            scan.at[first..first + width as usize].fill(number);
        }
        scan
    }
    /// Calls `each` with the fields that have a bit in `words`, and with all fields in two words.
    #[inline(always)]
    pub fn visit(&self, words: &[u64], mut each: impl FnMut(usize)) {
        for (word, (bits, all)) in words.iter().zip(&self.all).enumerate() {
            let mut left = bits & all;
            while left != 0 {
                let number = self.at[word * 64 + left.trailing_zeros() as usize] as usize;
                each(number);
                left &= !self.own[number];
            }
        }
        self.wide.iter().for_each(|number| each(*number as usize));
    }
}
