//! Expected answers of litmus tests: a file with expected words by name or file of a test.
//!
//! Three formats are read, also mixed: logs of the herd tools (the line `Observation NAME Sometimes
//! 1 3` contains the expected observation); lists with a name and a word per line; and tables with
//! fields separated by tabs, a file first and 0 or 1 (1 if the condition of the test holds) last.
//! `#` starts a comment. Words: `Always`, `Sometimes`, `Never` (observation of the condition),
//! `Allowed` (some outcome satisfies the condition), `Forbidden` (none does), `Ok`, `No` (verdict
//! of the quantified condition), `Required` (as `Ok`), `Undef` (the program is undefined).
//! Cost: linear.

use crate::pipeline::read_text;
use mu_base::{Diagnostic, Stage};
use mu_program::outcome::Answer;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// An expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedAnswer {
    /// An observation.
    Observation(&'static str),
    /// True if some outcome satisfies the condition.
    Met(bool),
    /// True if the quantified condition of the test holds.
    Demand(bool),
    /// The program is undefined.
    Undefined,
}

impl ExpectedAnswer {
    fn of(word: &str) -> Option<ExpectedAnswer> {
        Some(match word.to_ascii_lowercase().as_str() {
            "always" => ExpectedAnswer::Observation("Always"),
            "sometimes" => ExpectedAnswer::Observation("Sometimes"),
            "never" => ExpectedAnswer::Observation("Never"),
            "allow" | "allowed" => ExpectedAnswer::Met(true),
            "forbid" | "forbidden" => ExpectedAnswer::Met(false),
            "ok" | "require" | "required" => ExpectedAnswer::Demand(true),
            "no" => ExpectedAnswer::Demand(false),
            "undef" => ExpectedAnswer::Undefined,
            _ => return None,
        })
    }
    /// Returns the word for output.
    pub(super) fn word(self) -> &'static str {
        match self {
            ExpectedAnswer::Observation(word) => word,
            ExpectedAnswer::Met(true) => "Allowed",
            ExpectedAnswer::Met(false) => "Forbidden",
            ExpectedAnswer::Demand(true) => "Ok",
            ExpectedAnswer::Demand(false) => "No",
            ExpectedAnswer::Undefined => "Undef",
        }
    }
    /// Compares a report with the expected answer. `None` if outcomes beyond a limit could change
    /// the comparison.
    pub(super) fn compare(self, report: &Answer) -> Option<bool> {
        let (met, unmet) = (report.positive > 0, report.negative > 0);
        match self {
            ExpectedAnswer::Observation("Always") if unmet => Some(false),
            ExpectedAnswer::Observation("Never") if met => Some(false),
            ExpectedAnswer::Observation(word) => match report.observation() {
                "Unknown" => None,
                observation => Some(observation == word),
            },
            ExpectedAnswer::Met(expected) => (met || report.complete).then_some(met == expected),
            ExpectedAnswer::Demand(expected) => report.meets_demand().map(|met| met == expected),
            ExpectedAnswer::Undefined => {
                (report.undefined || report.complete).then_some(report.undefined)
            }
        }
    }
    /// True if a report is as expected. A report that a limit left open is not.
    pub(super) fn is_met_by(self, report: &Answer) -> bool {
        self.compare(report) == Some(true)
    }
}

/// Expected answers.
#[derive(Debug, Default)]
pub(super) struct ExpectedAnswers {
    by_name: BTreeMap<String, ExpectedAnswer>,
    by_file: HashMap<String, ExpectedAnswer>,
}

impl ExpectedAnswers {
    /// Reads a file.
    pub(super) fn of_file(path: &Path) -> Result<Self, Diagnostic> {
        ExpectedAnswers::read(&read_text(path)?).map_err(|e| e.in_file(&path.display().to_string()))
    }
    /// Returns the expected answer of a test. A table may contain only a part of the path of its
    /// file.
    pub(super) fn of(&self, file: &str, name: &str) -> Option<ExpectedAnswer> {
        if let Some(expected) = self.by_name.get(name) {
            return Some(*expected);
        }
        let ends = std::iter::once(0).chain(file.match_indices('/').map(|(i, _)| i + 1));
        ends.filter_map(|at| self.by_file.get(&file[at..])).next().copied()
    }
    /// Returns the names of tests.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
    /// Parses a text. Error: the first bad line and the place in it.
    fn read(text: &str) -> Result<Self, Diagnostic> {
        let mut out = ExpectedAnswers::default();
        // Logs of the herd tools contain other lines; in lists, every line must be an answer.
        let log = text.lines().any(|l| l.starts_with("Observation "));
        for (number, whole) in (1..).zip(text.lines()) {
            let line = whole.split('#').next().unwrap_or("").trim();
            let wrong = |part: &str, message: String| {
                let column = whole.rfind(part).map_or(1, |at| whole[..at].chars().count() + 1);
                Err(Diagnostic::in_line(Stage::File, number, column, whole, message))
            };
            if let Some((file, rest)) = line.split_once('\t').filter(|_| !log) {
                let last = rest.rsplit('\t').next().unwrap_or(rest);
                let (true, demand) = (["0", "1"].contains(&last), last == "1") else {
                    return wrong(
                        last,
                        format!("`{last}` is not 0 or 1, and ends a line of a table"),
                    );
                };
                out.by_file.insert(file.to_string(), ExpectedAnswer::Demand(demand));
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, word) = match words[..] {
                ["Observation", name, word, ..] => (name, word),
                _ if log || words.is_empty() => continue,
                [name, word] => (name, word),
                _ => return wrong(line, format!("`{line}` is not the name of a test and a word")),
            };
            let Some(expected) = ExpectedAnswer::of(word) else {
                return wrong(
                    word,
                    format!(
                        "`{word}` is not an answer; expected Always, Sometimes, Never, Allowed, Forbidden, Required, Ok, No or Undef"
                    ),
                );
            };
            match out.by_name.insert(name.to_string(), expected) {
                Some(other) if other != expected => {
                    return wrong(
                        word,
                        format!(
                            "the test `{name}` is expected to be both {} and {}",
                            other.word(),
                            expected.word()
                        ),
                    );
                }
                _ => {}
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_logs() {
        let list =
            ExpectedAnswers::read("# memory of x86\nSB Allowed\nMP   never # a comment\n\nR Ok\n")
                .unwrap();
        let words_by_name: Vec<(&str, &str)> =
            list.by_name.iter().map(|(n, w)| (n.as_str(), w.word())).collect();
        assert_eq!(words_by_name, [("MP", "Never"), ("R", "Ok"), ("SB", "Allowed")]);
        let log = ExpectedAnswers::read(
            "Test SB Allowed\nStates 1\n0:EAX=0; 1:EAX=0;\nOk\nCondition exists (0:EAX=0)\nObservation SB Sometimes 1 3\nHash=1\n",
        )
        .unwrap();
        assert_eq!(
            log.by_name.into_iter().collect::<Vec<_>>(),
            [("SB".to_string(), ExpectedAnswer::Observation("Sometimes"))]
        );
        let table = ExpectedAnswers::read(
            "# file\tmodel\tholds\nX86/SB.litmus\ttso.cat\t1\nMP.litmus\ttso.cat\t0\n",
        )
        .unwrap();
        let of = |file: &str| table.of(file, "other").map(ExpectedAnswer::word);
        assert_eq!(
            (of("tests/X86/SB.litmus"), of("MP.litmus"), of("SB.litmus")),
            (Some("Ok"), Some("No"), None)
        );
        for (text, line, part) in [
            ("SB.litmus\ttso.cat\t2", (1, 19), "`2`"),
            ("SB Allowed\nMP perhaps", (2, 4), "`perhaps`"),
            ("  SB", (1, 3), "`SB`"),
            ("SB Ok\nSB No", (2, 4), "Ok and No"),
        ] {
            let error = ExpectedAnswers::read(text).unwrap_err();
            let at = error.line.as_ref().unwrap();
            assert!(
                (at.number, at.column) == line && error.message.contains(part),
                "{text}: {error}"
            );
        }
    }
}
