//! Fixed hash functions: equal results on every machine and in every run, without keys.
//!
//! FNV-1a (Fowler, Noll, Vo, 1991) for bytes; the multiplication of Firefox and of rustc ("Fx") for
//! words; the finisher of MurmurHash3 (Appleby, 2011), which spreads all bits. Cost: one
//! multiplication for each byte or word. None resists inputs that are chosen to collide, so keys
//! from outside are not stored in tables by them alone.

/// The offset basis of the 64-bit FNV-1a hash: the hash of no bytes.
pub const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the 64-bit FNV-1a hash of bytes that follow those of the hash `start`.
pub fn fnv(start: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Adds a word to an Fx hash.
#[inline]
pub fn fx(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Spreads the bits of a hash: a permutation of the words.
#[inline]
pub fn spread(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        assert_eq!(fnv(FNV_BASIS, *b""), FNV_BASIS);
        assert_eq!(fnv(FNV_BASIS, *b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv(FNV_BASIS, *b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv(fnv(FNV_BASIS, *b"foo"), *b"bar"), fnv(FNV_BASIS, *b"foobar"));
        assert_eq!(spread(0), 0);
        assert_eq!(spread(1), 0xb456_bcfc_34c2_cb2c);
    }

    #[test]
    fn words_in_another_order_have_another_hash() {
        assert_ne!(fx(fx(0, 1), 2), fx(fx(0, 2), 1));
    }
}
