//! Runs of the program on the files of a case, and their answers.
//!
//! `ADVERSARY_BINARY` names another program than the one that the tests are built with, for
//! instance one in which a fault was put back.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A folder with the files of a case.
pub struct Folder {
    folder: tempfile::TempDir,
    program: String,
}

/// Answer of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub json: Value,
    pub stderr: String,
}

/// The answer to a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    True,
    False,
    /// With the reason.
    Open(String),
    /// Refused, with the message.
    Refused(String),
}

/// States, transitions and deadlocks.
pub type Counts = (u64, u64, u64);

impl Folder {
    pub fn new() -> Self {
        let program = std::env::var("ADVERSARY_BINARY")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_mu-check").into());
        Self { folder: tempfile::tempdir().expect("a folder"), program }
    }
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file of the case");
    }
    pub fn remove(&self, name: &str) {
        let path = self.path().join(name);
        let _ =
            if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    /// Runs the program in the folder; words are separated by spaces, so that names have none.
    pub fn run(&self, words: &str) -> Run {
        let output = Command::new(&self.program)
            .args(words.split_whitespace())
            .args(["--format", "json"])
            .current_dir(self.path())
            .output()
            .expect("the program runs");
        Run {
            code: output.status.code().unwrap_or(-1),
            json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    /// Returns the answers to formulas.
    ///
    /// # Errors
    /// The run ended in an internal error, or gave no answers.
    pub fn answers(&self, count: usize) -> Result<Vec<Answer>, String> {
        if self.code == 4 || self.code < 0 {
            return Err(format!("exit {}: {}", self.code, self.stderr));
        }
        let Some(results) = self.json["results"].as_array() else {
            let all = if self.code == 3 {
                Answer::Open(self.stderr.clone())
            } else {
                Answer::Refused(self.stderr.clone())
            };
            return Ok(vec![all; count]);
        };
        if results.len() != count {
            return Err(format!("{} answers to {count} formulas: {}", results.len(), self.stderr));
        }
        Ok(results.iter().map(answer).collect())
    }
    /// Returns the single answer of `solve`.
    pub fn solution(&self) -> Result<Answer, String> {
        match self.code {
            0 => Ok(Answer::True),
            1 => Ok(Answer::False),
            2 => Ok(Answer::Refused(self.stderr.clone())),
            3 => Ok(Answer::Open(self.json["reason"].to_string())),
            code => Err(format!("exit {code}: {}", self.stderr)),
        }
    }
    /// Returns the counts of a complete exploration; none if a limit came first.
    ///
    /// # Errors
    /// The run ended in an error.
    pub fn counts(&self) -> Result<Option<Counts>, String> {
        match (self.code, self.json["stop"].as_str()) {
            (0, Some("complete")) => {
                let of = |key: &str| {
                    self.json[key]
                        .as_u64()
                        .or_else(|| self.json[key].as_str().and_then(|n| n.parse().ok()))
                };
                match (of("states"), of("transitions"), of("deadlocks")) {
                    (Some(states), Some(transitions), Some(deadlocks)) => {
                        Ok(Some((states, transitions, deadlocks)))
                    }
                    _ => Err(format!("no counts: {}", self.json)),
                }
            }
            (3, _) => Ok(None),
            (code, _) => Err(format!("exit {code}: {}", self.stderr)),
        }
    }
}

fn answer(result: &Value) -> Answer {
    if !result["error"].is_null() {
        return Answer::Refused(result["error"]["message"].to_string());
    }
    match result["verdict"].as_str() {
        Some("true") => Answer::True,
        Some("false") => Answer::False,
        _ => Answer::Open(result["reason"].to_string()),
    }
}
