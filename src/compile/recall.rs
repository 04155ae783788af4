//! Answers by the numbers of what was asked, for as long as questions recur.
//!
//! In: numbers of values. Out: the answer that was kept for them. Cost: a hash of the numbers. A table that is asked in vain is given up: then it takes neither
//! time nor memory; one that is full begins anew.

use ahash::AHashMap;

/// Most answers kept.
const MOST: usize = 1 << 14;
/// Questions after which a table is judged, again and again.
const JUDGED: u32 = 1 << 12;
/// It is worth keeping if at least one question in this many recurs.
const WORTH: u32 = 4;

/// See the module's head.
pub(super) struct Recall<T> {
    answers: AHashMap<Box<[u32]>, T>,
    asked: u32,
    known: u32,
    given_up: bool,
}

impl<T> Default for Recall<T> {
    fn default() -> Self {
        Self { answers: AHashMap::new(), asked: 0, known: 0, given_up: false }
    }
}

impl<T> Recall<T> {
    /// The answer, if it is kept.
    pub fn get(&mut self, key: &[u32]) -> Option<&T> {
        if self.given_up {
            return None;
        }
        self.asked += 1;
        let answer = self.answers.get(key);
        self.known += u32::from(answer.is_some());
        answer
    }

    /// Keeps an answer, unless questions hardly recur.
    pub fn keep(&mut self, key: &[u32], answer: T) {
        if self.asked >= JUDGED {
            self.given_up = self.known < self.asked / WORTH;
            (self.asked, self.known) = (0, 0);
        }
        if self.given_up || self.answers.len() >= MOST {
            self.answers = AHashMap::new();
        }
        if !self.given_up {
            self.answers.insert(key.into(), answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_recurs_is_kept_and_what_does_not_is_given_up() {
        let mut often = Recall::default();
        for i in 0..4 * JUDGED {
            let key = [i % 100, i % 3];
            match often.get(&key).copied() {
                Some(known) => assert_eq!(known, key[0] + key[1]),
                None => often.keep(&key, key[0] + key[1]),
            }
        }
        assert_eq!(often.answers.len(), 300);
        let mut never = Recall::default();
        for i in 0..2 * JUDGED {
            assert!(never.get(&[i]).is_none());
            never.keep(&[i], i);
        }
        assert!(never.given_up && never.answers.is_empty());
    }
}
