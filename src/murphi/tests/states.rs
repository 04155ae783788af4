//! The store of states compared with a map: numbers in the order of insertion, for all lengths,
//! through several growths of the index.

use ahash::AHashMap;
use mu_murphi::states::States;

/// Inserts pseudo-random states, and checks the number of each.
fn compare(bits: usize, count: usize, least: u32) {
    let words = bits.div_ceil(64).max(1);
    let mut states = States::with_numbers(words, bits, least);
    assert!(states.is_empty());
    let mut expected: AHashMap<Vec<u64>, u32> = AHashMap::default();
    let mut random = 1u64;
    for _ in 0..count {
        let mut state = vec![0; words];
        for (n, word) in state.iter_mut().enumerate() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(bits as u64 | 1);
            // Few values of each word, so that states repeat and differ in their last word only.
            let left = (bits - 64 * n).min(64) as u32;
            *word = (random >> 40 | 1 << 63).rotate_left(n as u32)
                & (1u64.checked_shl(left).unwrap_or(0).wrapping_sub(1));
        }
        let hash = States::hash(&state);
        let (candidate, _) = states.candidate(hash);
        let next = expected.len() as u32;
        let (number, new) = states.insert(&state, hash, candidate).expect("room");
        let known = *expected.entry(state.clone()).or_insert(next);
        assert_eq!((number, new), (known, known == next && expected.len() as u32 > next));
        // Any state is a candidate.
        assert_eq!(states.insert(&state, hash, next / 2), Some((known, false)));
    }
    assert_eq!(states.len(), expected.len());
    for (state, number) in expected {
        let mut stored = vec![0; words];
        states.get(number as usize, &mut stored);
        assert_eq!(stored, state, "{bits} bits, state {number}");
    }
}

#[test]
fn numbers_of_states_of_all_lengths() {
    for bits in (1..=130).chain([191, 192, 193, 1000]) {
        compare(bits, 2000, 0);
    }
    compare(66, 300_000, 0);
}

/// Buckets with fewer slots, as the indices of many states have them.
#[test]
fn numbers_of_many_bits() {
    for least in 20..=32 {
        compare(66, 20_000, least);
    }
}

#[test]
fn memory_of_the_index() {
    let mut states = States::new(1, 64);
    for n in 0..1_200_000u64 {
        let state = [n.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
        states.insert(&state, States::hash(&state), 0);
        let index = states.memory() - 8 * states.len();
        // Fewer than 262,144 states have less than 2 MB.
        assert!(n < 262_144 || index as f64 <= 6.8 * (n + 1) as f64, "{index} bytes, {n} states");
    }
}
