//! Answers are found by what a question looks at, and a tree that is asked in vain is given up.

use mu_compile::decisions::{Decisions, Found, JUDGED};

/// Asks a tree about numbers, where the answer is that of a function which looks at one after the
/// other up to one of which `ends` holds: whether that is odd.
fn asked(
    tree: &mut Decisions,
    numbers: &[u32],
    ends: fn(u32) -> bool,
    evaluations: &mut u32,
) -> Option<bool> {
    let mut seen = Vec::new();
    let mut at = match tree.find(|i| numbers[i], |i| seen.push(i)) {
        Found::Answer(answer) => return Some(answer),
        Found::Nothing => return None,
        Found::Open(at) => at,
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
fn answers_depend_on_what_was_looked_at() {
    let (mut tree, mut evaluations) = (Decisions::default(), 0);
    let mut random = 7u32;
    for _ in 0..2000 {
        random = random.wrapping_mul(1664525).wrapping_add(1013904223);
        let numbers: Vec<u32> = (0..6).map(|i| (random >> (8 + 2 * i)) % 3).collect();
        let expected = numbers.iter().find(|n| **n != 0).is_some_and(|n| *n == 1);
        assert_eq!(
            asked(&mut tree, &numbers, |n| n != 0, &mut evaluations),
            Some(expected),
            "{numbers:?}"
        );
    }
    // Six places to stop at, two ways each, and the end.
    assert_eq!(evaluations, 13);
}

#[test]
fn what_does_not_recur_is_given_up() {
    let (mut tree, mut evaluations) = (Decisions::default(), 0);
    for i in 0..4 * JUDGED {
        asked(&mut tree, &[i % 50, i / 50 % 50, i / 2500], |_| false, &mut evaluations);
    }
    assert!(tree.size() == 1);
    assert_eq!(evaluations, JUDGED);
}
