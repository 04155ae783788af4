//! Tests that the parallel map gives the results of one thread.

use mu_prove::parallel::{map, map_until};

#[test]
fn results_are_in_order_whatever_the_threads() {
    for threads in 1..4 {
        for part in 1..5 {
            assert_eq!(
                map(threads, 11, part, |i| i * i),
                (0..11).map(|i| i * i).collect::<Vec<_>>()
            );
            for end in 0..13 {
                for _ in 0..20 {
                    let found = map_until(
                        threads,
                        11,
                        part,
                        |i| i,
                        |at, result| at == *result && at >= end,
                    );
                    assert_eq!(
                        found,
                        (0..11.min(end + 1)).collect::<Vec<_>>(),
                        "{threads} threads, parts of {part}, end at {end}"
                    );
                }
            }
        }
    }
    assert_eq!(map(3, 0, 2, |i| i), Vec::<usize>::new());
}
