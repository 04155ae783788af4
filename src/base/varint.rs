//! Variable-length integers: seven bits per byte, low bits first (LEB128).
//!
//! Cost: one byte below 128, at most ten. Invariant: malformed or overlong input is rejected, never
//! truncated.

use crate::narrow;

/// Appends a number in groups of seven bits, low bits first.
#[inline]
pub fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(narrow::byte_at(n, 0) | 0x80);
        n >>= 7;
    }
    out.push(narrow::byte_at(n, 0));
}

/// Removes such a number from the front. `None` if the input is malformed.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if (part << shift) >> shift != part {
            return None;
        }
        n |= part << shift;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_too_long() {
        for n in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, n);
            assert_eq!(take(&mut &bytes[..]), Some(n));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take(&mut &[0xff; 10][..]), None);
    }
}
