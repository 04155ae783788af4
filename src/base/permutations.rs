//! Permutations of small lists, one by one or all at once.
//!
//! In: a number of items. Out: orders of their indices. Cost: one allocation for each listed order;
//! none to step from one order to the next. Invariant: each order occurs exactly once.

/// Returns all permutations of the numbers below `n`. Cost: O(n · n!).
#[must_use]
pub fn all(n: usize) -> Vec<Vec<usize>> {
    let longer = |rows: Vec<Vec<usize>>, next: usize| {
        let places = |row: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..=row.len()).map(|at| [&row[..at], &[next], &row[at..]].concat()).collect()
        };
        rows.iter().flat_map(places).collect()
    };
    (0..n).fold(vec![Vec::new()], longer)
}

/// Changes a permutation to the next one in lexicographic order; false if it is the last one, which
/// stays as it is. Cost: O(n).
pub fn advance(order: &mut [usize]) -> bool {
    let Some(at) = (1..order.len()).rev().find(|&i| order[i - 1] < order[i]) else { return false };
    let Some(with) = (at..order.len()).rev().find(|&i| order[i] > order[at - 1]) else {
        return false;
    };
    order.swap(at - 1, with);
    order[at..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_steps_agree() {
        for (n, count) in [(0, 1), (1, 1), (2, 2), (3, 6), (5, 120)] {
            let mut listed = all(n);
            assert_eq!(listed.len(), count);
            listed.sort();
            let mut order: Vec<usize> = (0..n).collect();
            let mut stepped = vec![order.clone()];
            while advance(&mut order) {
                stepped.push(order.clone());
            }
            assert_eq!(listed, stepped);
        }
    }
}
