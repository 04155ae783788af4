//! Answers are kept as long as questions recur, and no more of them than have room.

use mu_compile::recall::{JUDGED, LARGEST, MOST, Recall};

#[test]
fn what_recurs_is_kept_and_what_does_not_is_given_up() {
    let mut often = Recall::default();
    for i in 0..4 * JUDGED {
        let key = [i % 100, i % 3];
        match often.get(&key).copied() {
            Some(known) => assert_eq!(known, key[0] + key[1]),
            None => often.keep(&key, key[0] + key[1], 1),
        }
    }
    assert_eq!(often.len(), 300);
    let mut never = Recall::default();
    for i in 0..2 * JUDGED {
        assert!(never.get(&[i]).is_none());
        never.keep(&[i], i, 1);
    }
    assert!(never.is_empty() && never.is_given_up() && !often.is_given_up());
}

#[test]
fn tables_have_bounds() {
    let mut large = Recall::default();
    for i in 0..10 {
        large.keep(&[i], i, LARGEST / 2);
        large.keep(&[i + 100], i, LARGEST + 1);
        assert!((1..=2).contains(&large.len()) && large.get(&[i + 100]).is_none());
    }
    let mut many = Recall::default();
    for i in 0..2 * MOST as u32 {
        many.keep(&[i], i, 1);
        assert!(many.len() <= MOST);
    }
}
