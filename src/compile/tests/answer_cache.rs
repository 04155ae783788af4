//! Memo tables: answers are cached as long as keys recur, within the bounds.

use mu_compile::answer_cache::{AnswerCache, JUDGED, MAX_ANSWERS, MAX_NUMBERS};

#[test]
fn recurring_keys_are_cached_and_others_disable_the_table() {
    let mut often = AnswerCache::default();
    for i in 0..4 * JUDGED {
        let key = [i % 100, i % 3];
        match often.get(&key).copied() {
            Some(known) => assert_eq!(known, key[0] + key[1]),
            None => often.insert(&key, key[0] + key[1], 1),
        }
    }
    assert_eq!(often.len(), 300);
    let mut never = AnswerCache::default();
    for i in 0..2 * JUDGED {
        assert!(never.get(&[i]).is_none());
        never.insert(&[i], i, 1);
    }
    assert!(never.is_empty() && never.is_disabled() && !often.is_disabled());
}

#[test]
fn tables_have_bounds() {
    let mut large = AnswerCache::default();
    for i in 0..10 {
        large.insert(&[i], i, MAX_NUMBERS / 2);
        large.insert(&[i + 100], i, MAX_NUMBERS + 1);
        assert!((1..=2).contains(&large.len()) && large.get(&[i + 100]).is_none());
    }
    let mut many = AnswerCache::default();
    for i in 0..2 * MAX_ANSWERS as u32 {
        many.insert(&[i], i, 1);
        assert!(many.len() <= MAX_ANSWERS);
    }
}
