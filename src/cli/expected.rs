//! What litmus tests are wanted to give, and where they differ: the text of a file -> wanted words by the name of the test.
//!
//! Two forms are read, also mixed: logs as the herd tools write them (the line `Observation NAME Sometimes 1 3` says what is wanted), and lists of a
//! name and a word in each line, `#` starting a comment. Words: `Always`, `Sometimes`, `Never` (of the condition), `Allowed` (it is met in some outcome),
//! `Forbidden` (in none), `Ok`, `No` (whether the test's own demand is met). Cost: linear.

use mu_program::herd::{Report, Verdict};
use std::collections::BTreeMap;

/// A wanted answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This observation.
    Observation(&'static str),
    /// That the condition is met in some outcome, or in none.
    Met(bool),
    /// That the demand of the test is met, or not.
    Demand(bool),
}

impl Wanted {
    fn of(word: &str) -> Option<Wanted> {
        Some(match word.to_ascii_lowercase().as_str() {
            "always" => Wanted::Observation("Always"),
            "sometimes" => Wanted::Observation("Sometimes"),
            "never" => Wanted::Observation("Never"),
            "allow" | "allowed" => Wanted::Met(true),
            "forbid" | "forbidden" => Wanted::Met(false),
            "ok" => Wanted::Demand(true),
            "no" => Wanted::Demand(false),
            _ => return None,
        })
    }
    /// As it is told.
    pub(super) fn word(self) -> &'static str {
        match self {
            Wanted::Observation(word) => word,
            Wanted::Met(true) => "Allowed",
            Wanted::Met(false) => "Forbidden",
            Wanted::Demand(true) => "Ok",
            Wanted::Demand(false) => "No",
        }
    }
    /// Whether a report is as wanted. One that a limit left open is not.
    pub(super) fn met_by(self, report: &Report) -> bool {
        report.verdict != Verdict::Unknown
            && match self {
                Wanted::Observation(word) => report.observation() == word,
                Wanted::Met(met) => (report.positive > 0) == met,
                Wanted::Demand(ok) => (report.verdict == Verdict::Ok) == ok,
            }
    }
}

/// Wanted answers by the names of tests.
pub(super) type Expected = BTreeMap<String, Wanted>;

/// Reads a file. Error: the number of the line, from 1, and what is wrong with it.
pub(super) fn read(text: &str) -> Result<Expected, (usize, String)> {
    let mut out = Expected::new();
    // A log of the herd tools has lines of many kinds; only in lists is every line an answer.
    let log = text.lines().any(|l| l.starts_with("Observation "));
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, word) = match words[..] {
            ["Observation", name, word, ..] => (name, word),
            _ if log || words.is_empty() => continue,
            [name, word] => (name, word),
            _ => return Err((i + 1, format!("`{line}` is not the name of a test and a word"))),
        };
        let wanted = Wanted::of(word)
            .ok_or_else(|| (i + 1, format!("`{word}` is no answer; expected Always, Sometimes, Never, Allowed, Forbidden, Ok or No")))?;
        match out.insert(name.to_string(), wanted) {
            Some(other) if other != wanted => {
                return Err((i + 1, format!("the test `{name}` is wanted to be {} and {}", other.word(), wanted.word())));
            }
            _ => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_logs() {
        let list = read("# memory of x86\nSB Allowed\nMP   never # a comment\n\nR Ok\n").unwrap();
        let told: Vec<(&str, &str)> = list.iter().map(|(n, w)| (n.as_str(), w.word())).collect();
        assert_eq!(told, [("MP", "Never"), ("R", "Ok"), ("SB", "Allowed")]);
        let log =
            read("Test SB Allowed\nStates 1\n0:EAX=0; 1:EAX=0;\nOk\nCondition exists (0:EAX=0)\nObservation SB Sometimes 1 3\nHash=1\n")
                .unwrap();
        assert_eq!(log.into_iter().collect::<Vec<_>>(), [("SB".to_string(), Wanted::Observation("Sometimes"))]);
        for (text, line, part) in [("SB Allowed\nMP perhaps", 2, "`perhaps`"), ("SB", 1, "`SB`"), ("SB Ok\nSB No", 2, "Ok and No")] {
            let (at, what) = read(text).unwrap_err();
            assert!(at == line && what.contains(part), "{text}: {at} {what}");
        }
    }
}
