//! Words of a command line that are not UTF-8, such as names of files in an old encoding.
//!
//! In: the words of the system. Out: texts for the functions that rewrite command lines, and the
//! words of rewritten texts. Invariant: a text of a word that is not UTF-8 is unique, so that it
//! denotes the same word after rewriting. An option with such a value in one word keeps its name.

use std::collections::HashMap;
use std::ffi::OsString;

/// Words that are not UTF-8, by the texts that denote them.
#[derive(Default)]
pub(crate) struct ExactWords(HashMap<String, OsString>);

impl ExactWords {
    /// Returns the texts of words. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn texts(words: Vec<OsString>) -> (Vec<String>, Self) {
        let mut exact = HashMap::new();
        let mut taken = 0usize;
        let mut text = |word: OsString| {
            word.into_string().unwrap_or_else(|word| {
                let shown = word.to_string_lossy().into_owned();
                // The number keeps texts of different words apart.
                let mut unique = shown.clone();
                while exact.contains_key(&unique) {
                    taken += 1;
                    unique = format!("{shown}{taken}");
                }
                exact.insert(unique.clone(), word);
                unique
            })
        };
        let texts = words.into_iter().map(&mut text).collect();
        (texts, Self(exact))
    }
    /// Returns the words that texts denote.
    pub(crate) fn words(&self, texts: Vec<String>) -> Vec<OsString> {
        let word = |text: String| self.0.get(&text).cloned().unwrap_or_else(|| text.into());
        texts.into_iter().map(word).collect()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn words_remain_the_same() {
        let of = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let words = vec![
            of(b"check"),
            of(b"m\xff.aut"),
            of(b"m\xfe.aut"),
            of(b"--out=\xff"),
            of("é".as_bytes()),
        ];
        let (texts, exact) = ExactWords::texts(words.clone());
        assert!(texts[1] != texts[2] && texts[3].starts_with("--out="), "{texts:?}");
        assert_eq!(exact.words(texts), words);
    }
}
