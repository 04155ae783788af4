//! Tests of the rows of values for sums.

use mu_regions::merged_constants::covers;

/// Any contents of the summed constants occur in one row.
#[test]
fn rows_hold_all_that_sums_can_meet() {
    for (tuples, sums, places) in
        [(1, 0, 3), (5, 1, 1), (5, 1, 4), (5, 1, 6), (4, 2, 2), (5, 2, 4), (9, 2, 6), (3, 3, 4)]
    {
        let rows = covers(tuples, sums, places);
        assert!(rows.iter().all(|r| r.len() <= places), "{rows:?}");
        for code in 0..usize::pow(tuples, sums as u32) {
            let wanted: Vec<usize> =
                (0..sums).map(|i| code / usize::pow(tuples, i as u32) % tuples).collect();
            let held = |row: &Vec<usize>| {
                (0..tuples).all(|t| {
                    row.iter().filter(|r| **r == t).count()
                        >= wanted.iter().filter(|w| **w == t).count()
                })
            };
            assert!(rows.iter().any(held), "{wanted:?} of {rows:?}");
        }
        assert!(places < tuples * sums || rows.len() == 1, "{rows:?}");
    }
}
