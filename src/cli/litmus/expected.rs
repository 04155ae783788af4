//! What litmus tests are wanted to give: the text of a file -> wanted words by the name or the file
//! of a test.
//!
//! Three forms are read, also mixed: logs as the herd tools write them (the line `Observation NAME
//! Sometimes 1 3` says what is wanted), lists of a name and a word in each line, and tables whose
//! fields are separated by tabs, a file first and 0 or 1 (whether its demand is met) last; `#`
//! starts a comment. Words: `Always`, `Sometimes`, `Never` (of the condition), `Allowed` (it is met
//! in some outcome), `Forbidden` (in none), `Ok`, `No` (whether the test's own demand is met), `Undef` (the program is undefined).
//! Cost: linear.

use crate::pipeline::read_text;
use mu_base::{Diagnostic, Stage};
use mu_outcome::Answer;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A wanted answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// This observation.
    Observation(&'static str),
    /// That the condition is met in some outcome, or in none.
    Met(bool),
    /// That the demand of the test is met, or not.
    Demand(bool),
    /// That the program is undefined.
    Undefined,
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
            "undef" => Wanted::Undefined,
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
            Wanted::Undefined => "Undef",
        }
    }
    /// Compares a report with the wanted answer. `None` if outcomes that a limit left out could
    /// change the comparison.
    pub(super) fn compare(self, report: &Answer) -> Option<bool> {
        let (met, unmet) = (report.positive > 0, report.negative > 0);
        match self {
            Wanted::Observation("Always") if unmet => Some(false),
            Wanted::Observation("Never") if met => Some(false),
            Wanted::Observation(word) => match report.observation() {
                "Unknown" => None,
                observation => Some(observation == word),
            },
            Wanted::Met(wanted) => (met || report.complete).then_some(met == wanted),
            Wanted::Demand(wanted) => report.meets_demand().map(|met| met == wanted),
            Wanted::Undefined => (report.undefined || report.complete).then_some(report.undefined),
        }
    }
    /// True if a report is as wanted. A report that a limit left open is not.
    pub(super) fn met_by(self, report: &Answer) -> bool {
        self.compare(report) == Some(true)
    }
}

/// Wanted answers.
#[derive(Debug, Default)]
pub(super) struct Expected {
    by_name: BTreeMap<String, Wanted>,
    by_file: HashMap<String, Wanted>,
}

impl Expected {
    /// Reads a file.
    pub(super) fn of_file(path: &Path) -> Result<Self, Diagnostic> {
        Expected::read(&read_text(path)?).map_err(|e| e.in_file(&path.display().to_string()))
    }
    /// What is wanted of a test: the table may have a part of the path of its file.
    pub(super) fn of(&self, file: &str, name: &str) -> Option<Wanted> {
        if let Some(wanted) = self.by_name.get(name) {
            return Some(*wanted);
        }
        let ends = std::iter::once(0).chain(file.match_indices('/').map(|(i, _)| i + 1));
        ends.filter_map(|at| self.by_file.get(&file[at..])).next().copied()
    }
    /// The names of tests.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
    /// Reads a text. Error: what is wrong with a line, and where in it.
    fn read(text: &str) -> Result<Self, Diagnostic> {
        let mut out = Expected::default();
        // A log of the herd tools has lines of many kinds; only in lists is every line an answer.
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
                out.by_file.insert(file.to_string(), Wanted::Demand(demand));
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, word) = match words[..] {
                ["Observation", name, word, ..] => (name, word),
                _ if log || words.is_empty() => continue,
                [name, word] => (name, word),
                _ => return wrong(line, format!("`{line}` is not the name of a test and a word")),
            };
            let Some(wanted) = Wanted::of(word) else {
                return wrong(
                    word,
                    format!(
                        "`{word}` is not an answer; expected Always, Sometimes, Never, Allowed, Forbidden, Ok, No or Undef"
                    ),
                );
            };
            match out.by_name.insert(name.to_string(), wanted) {
                Some(other) if other != wanted => {
                    return wrong(
                        word,
                        format!(
                            "the test `{name}` is wanted to be {} and {}",
                            other.word(),
                            wanted.word()
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
        let list = Expected::read("# memory of x86\nSB Allowed\nMP   never # a comment\n\nR Ok\n")
            .unwrap();
        let told: Vec<(&str, &str)> =
            list.by_name.iter().map(|(n, w)| (n.as_str(), w.word())).collect();
        assert_eq!(told, [("MP", "Never"), ("R", "Ok"), ("SB", "Allowed")]);
        let log = Expected::read(
            "Test SB Allowed\nStates 1\n0:EAX=0; 1:EAX=0;\nOk\nCondition exists (0:EAX=0)\nObservation SB Sometimes 1 3\nHash=1\n",
        )
        .unwrap();
        assert_eq!(
            log.by_name.into_iter().collect::<Vec<_>>(),
            [("SB".to_string(), Wanted::Observation("Sometimes"))]
        );
        let table = Expected::read(
            "# file\tmodel\tholds\nX86/SB.litmus\ttso.cat\t1\nMP.litmus\ttso.cat\t0\n",
        )
        .unwrap();
        let of = |file: &str| table.of(file, "other").map(Wanted::word);
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
            let error = Expected::read(text).unwrap_err();
            let at = error.line.as_ref().unwrap();
            assert!(
                (at.number, at.column) == line && error.message.contains(part),
                "{text}: {error}"
            );
        }
    }
}
