//! Shared code of whole-program tests: named edits of the ARCx specification, and runs of the
//! command.

pub mod faults;
pub mod random_text;
pub mod rules;
pub mod tape;
pub mod targets;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Path of a file of the package.
pub fn package(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Result of a run of the command.
pub struct Outcome {
    /// Exit code.
    pub code: i32,
    /// Standard output as JSON; `Null` if it is none.
    pub json: Value,
    /// Standard error.
    pub stderr: String,
}

/// Runs the command with `--format json`.
pub fn mu_check<S: AsRef<str>>(arguments: &[S]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments.iter().map(AsRef::as_ref))
        .args(["--format", "json"])
        .output()
        .expect("the command runs");
    Outcome {
        code: output.status.code().unwrap_or(-1),
        json: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// `-D` arguments.
pub fn defines(values: &[(&str, u32)]) -> Vec<String> {
    values.iter().flat_map(|(name, value)| ["-D".to_string(), format!("{name}={value}")]).collect()
}

/// Explores a model to the end: states and transitions.
pub fn explore(model: &Path, options: &[String]) -> (u64, u64, Value) {
    let mut arguments = vec!["explore".to_string(), model.display().to_string()];
    arguments.extend_from_slice(options);
    let outcome = mu_check(&arguments);
    assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.stderr);
    assert_eq!(outcome.json["stop"], "complete", "{arguments:?}: {}", outcome.json);
    (
        outcome.json["states"].as_u64().unwrap(),
        outcome.json["transitions"].as_u64().unwrap(),
        outcome.json,
    )
}

/// Returns all files of the project with one of these extensions, and those of the folder that
/// `MU_CHECK_MODELS` names.
pub fn reference_models(extensions: &[&str]) -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> =
        ["specs", "formulas", "src/cli/commands/projects", "tests", "docs", "examples"]
            .iter()
            .map(|f| root.join(f))
            .collect();
    folders.extend(std::env::var_os("MU_CHECK_MODELS").map(std::path::PathBuf::from));
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in
            std::fs::read_dir(folder).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()))
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
