//! Narrowing of numbers, with the reason why no bit is lost.
//!
//! In: machine words. Out: numbers of 32 bits. Cost: a comparison at most. Invariant: a number that
//! does not fit is never cut; it ends the program as a broken invariant.

/// Returns an index or a length as a number of 32 bits, in which tables store it.
///
/// # Panics
/// If the table has more than 2^32 items, which no table of this program may have.
#[inline]
#[must_use]
pub fn index(index: usize) -> u32 {
    u32::try_from(index).expect("a table has at most 2^32 items")
}

/// Returns the low half of a word that packs two numbers.
#[inline]
#[must_use]
pub const fn low(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

/// Returns the high half of a word that packs two numbers.
#[inline]
#[must_use]
pub const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}
