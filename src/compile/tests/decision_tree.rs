//! Decision trees: answers depend on the inspected values, and a tree with a low hit rate is
//! disabled.

use mu_compile::decision_tree::{DecisionTree, JUDGED, LookupResult};

/// Looks a function up in a tree. The function inspects numbers one after the other until `ends`
/// holds, and returns whether that number is odd.
fn evaluate(
    tree: &mut DecisionTree,
    numbers: &[u32],
    ends: fn(u32) -> bool,
    evaluations: &mut u32,
) -> Option<bool> {
    let mut seen = Vec::new();
    let mut at = match tree.find(|i| numbers[i], |i| seen.push(i)) {
        LookupResult::Answer(answer) => return Some(answer),
        LookupResult::Uncached => return None,
        LookupResult::Open(at) => at,
    };
    *evaluations += 1;
    let mut answer = false;
    for (i, n) in numbers.iter().enumerate() {
        if !seen.contains(&i) {
            at = tree.look(at, i, *n);
        }
        if ends(*n) {
            answer = n % 2 == 1;
            break;
        }
    }
    tree.answer(at, answer);
    tree.judge();
    Some(answer)
}

#[test]
fn answers_depend_on_inspected_values() {
    let (mut tree, mut evaluations) = (DecisionTree::default(), 0);
    let mut random = 7u32;
    for _ in 0..2000 {
        random = random.wrapping_mul(1664525).wrapping_add(1013904223);
        let numbers: Vec<u32> = (0..6).map(|i| (random >> (8 + 2 * i)) % 3).collect();
        let expected = numbers.iter().find(|n| **n != 0).is_some_and(|n| *n == 1);
        assert_eq!(
            evaluate(&mut tree, &numbers, |n| n != 0, &mut evaluations),
            Some(expected),
            "{numbers:?}"
        );
    }
    // Six places to stop at, two values each, and the end.
    assert_eq!(evaluations, 13);
}

#[test]
fn trees_with_few_hits_are_disabled() {
    let (mut tree, mut evaluations) = (DecisionTree::default(), 0);
    for i in 0..4 * JUDGED {
        evaluate(&mut tree, &[i % 50, i / 50 % 50, i / 2500], |_| false, &mut evaluations);
    }
    assert!(tree.size() == 1);
    assert_eq!(evaluations, JUDGED);
}
