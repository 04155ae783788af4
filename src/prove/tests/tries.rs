//! Comparison of the set trie with a linear scan.

use mu_base::random::Random;
use mu_prove::trie::{Bits, Trie};

#[test]
fn queries_find_what_a_scan_finds() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        // Few numbers, so that sets include each other; the boundaries of words are among them.
        let numbers = [0u32, 1, 63, 64, 130, 191, 192, 255];
        let mut set = |most: usize| {
            let mut bits: Bits = [0; 4];
            for _ in 0..random.below(most + 1) {
                let n = *random.choose(&numbers);
                bits[(n >> 6) as usize] |= 1 << (n & 63);
            }
            bits
        };
        let sets: Vec<Bits> = (0..40).map(|_| set(6)).collect();
        let mut trie = Trie::default();
        sets.iter().enumerate().for_each(|(i, s)| trie.insert(s, i));
        let inside = |a: &Bits, b: &Bits| a.iter().zip(b).all(|(x, y)| x & !y == 0);
        for _ in 0..20 {
            let query = set(8);
            let (mut below, mut above) = (Vec::new(), Vec::new());
            assert!(!trie.subsets(&query, &mut |i| {
                below.push(i);
                false
            }));
            trie.supersets(&query, &mut |i| above.push(i));
            below.sort_unstable();
            above.sort_unstable();
            let scan = |fits: &dyn Fn(&Bits) -> bool| {
                (0..sets.len()).filter(|i| fits(&sets[*i])).collect::<Vec<_>>()
            };
            assert_eq!(below, scan(&|s| inside(s, &query)), "seed {seed}");
            assert_eq!(above, scan(&|s| inside(&query, s)), "seed {seed}");
        }
    }
}
