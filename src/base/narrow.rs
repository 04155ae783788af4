//! Narrowing of numbers, with the reason why no bit is lost.
//!
//! In: machine words. Out: numbers of 8, 16, or 32 bits. Cost: a comparison at most. Invariant: a
//! number that does not fit is never cut; it ends the program as a broken invariant. Functions that
//! return a part of a word say so in their names.

/// Returns an index or a length as a number of 32 bits, in which tables store it.
///
/// # Panics
/// If the table has more than 2^32 items, which no table of this program may have.
#[inline]
#[must_use]
#[track_caller]
pub const fn index(index: usize) -> u32 {
    assert!(index as u64 <= u32::MAX as u64, "a table has at most 2^32 items");
    index as u32
}

/// Returns an index or a length as a number of 16 bits.
///
/// # Panics
/// If it is above 65,535: the caller limits it.
#[inline]
#[must_use]
#[track_caller]
pub const fn short(index: usize) -> u16 {
    assert!(index <= u16::MAX as usize, "a number of at most 16 bits");
    index as u16
}

/// Returns an index or a length as a byte.
///
/// # Panics
/// If it is above 255: the caller limits it.
#[inline]
#[must_use]
#[track_caller]
pub const fn byte(index: usize) -> u8 {
    assert!(index <= u8::MAX as usize, "a number of at most 8 bits");
    index as u8
}

/// Returns a word as a number of 32 bits.
///
/// # Panics
/// If it is 2^32 or more: the caller limits it.
#[inline]
#[must_use]
#[track_caller]
pub const fn word(word: u64) -> u32 {
    assert!(word <= u32::MAX as u64, "a number of at most 32 bits");
    word as u32
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

/// Returns the byte of a word that packs bytes, from the bit `at` on.
#[inline]
#[must_use]
pub const fn byte_at(word: u64, at: u32) -> u8 {
    (word >> at & 0xff) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_fit() {
        assert_eq!(index(0xffff_ffff), u32::MAX);
        assert_eq!(short(0xffff), u16::MAX);
        assert_eq!(byte(0xff), u8::MAX);
        assert_eq!(word(0xffff_ffff), u32::MAX);
    }

    #[test]
    fn numbers_that_do_not_fit() {
        let panics = |f: fn()| std::panic::catch_unwind(f).is_err();
        assert!(panics(|| _ = word(1 << 32)));
        assert!(panics(|| _ = short(1 << 16)));
        assert!(panics(|| _ = byte(1 << 8)));
    }

    #[test]
    fn parts_of_a_word() {
        let packed = 0x0102_0304_0506_0708;
        assert_eq!((high(packed), low(packed)), (0x0102_0304, 0x0506_0708));
        assert_eq!((byte_at(packed, 0), byte_at(packed, 56)), (8, 1));
    }
}
