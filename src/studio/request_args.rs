//! Command-line arguments from the requests of a page: JSON becomes a list of words.
//!
//! A page sends names of files in the folder, values of parameters, formulas, and values of a few
//! options. Each is validated here, and nothing else is passed on. Files follow `--`, so that no
//! name is an option. The limits of a run are those of the server; a page cannot change them.

use crate::Limits;
use crate::folder::Folder;
use crate::http::{HttpError, refusal};
use serde_json::{Map, Value};
use std::path::Path;

/// Limits on the formulas of a run, and on the characters of a formula text.
const MOST_FORMULAS: usize = 200;
const MOST_CHARACTERS: usize = 64 << 10;

/// Validated arguments of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct RunArguments {
    /// The command.
    pub(crate) kind: &'static str,
    pub(crate) model: String,
    pub(crate) arguments: Vec<String>,
    /// The equivalent command of a user.
    pub(crate) command: String,
}

/// Keys of a request for each command.
const COMMANDS: [(&str, &[&str]); 14] = [
    ("check", &["formulas", "texts", "defines", "engine", "confluence"]),
    ("explore", &["defines", "engine", "confluence", "reduce", "sought", "action", "deadlocks"]),
    ("sweep", &["formulas", "defines", "engine", "confluence"]),
    ("conform", &["defines", "interface", "against", "operations", "fault", "suite"]),
    ("litmus", &["memory", "memory_file", "machine", "interface", "operations", "defines"]),
    ("trace", &["against", "machine", "interface"]),
    ("prove", &["defines"]),
    ("program", &["threads_of", "memory"]),
    ("robust", &["threads_of"]),
    ("reduce", &["defines", "equivalence"]),
    ("compare", &["defines", "other", "equivalence", "preorder"]),
    ("info", &[]),
    ("models", &[]),
    ("simulate", &["defines"]),
];

/// Form of the value of an option.
#[derive(Clone, Copy)]
enum ValueForm {
    /// Words of letters, digits, and `_`, joined by commas and hyphens.
    Words,
    /// A file of the folder.
    File,
}

/// Keys that are options of the command line.
const OPTIONS: [(&str, &str, ValueForm); 15] = [
    ("engine", "--engine", ValueForm::Words),
    ("confluence", "--confluence", ValueForm::Words),
    ("reduce", "--reduce", ValueForm::Words),
    ("action", "--action", ValueForm::Words),
    ("deadlocks", "--deadlocks", ValueForm::Words),
    ("equivalence", "--equivalence", ValueForm::Words),
    ("preorder", "--preorder", ValueForm::Words),
    ("against", "--against", ValueForm::Words),
    ("operations", "--operations", ValueForm::Words),
    ("threads_of", "--threads-of", ValueForm::Words),
    ("memory", "--model", ValueForm::Words),
    ("memory_file", "--model", ValueForm::File),
    ("machine", "--machine", ValueForm::File),
    ("interface", "--interface", ValueForm::File),
    ("fault", "--fault", ValueForm::File),
];

/// Converts a request to arguments. `out`: the folder for a sweep's tables.
pub(crate) fn run_arguments(
    wish: &Value,
    folder: &Folder,
    limits: &Limits,
    out: &Path,
) -> Result<RunArguments, HttpError> {
    let Some(object) = wish.as_object() else { return refusal(400, "expected an object") };
    let kind = text(object, "kind")?.unwrap_or_default();
    let Some((kind, keys)) = COMMANDS.into_iter().find(|(k, _)| *k == kind) else {
        return refusal(400, format!("a page cannot run `{kind}`"));
    };
    if let Some(other) = object
        .keys()
        .find(|k| !["kind", "model"].contains(&k.as_str()) && !keys.contains(&k.as_str()))
    {
        return refusal(400, format!("`{kind}` has no `{other}`"));
    }
    // `models` compares memory models alone.
    let model = if kind == "models" { String::new() } else { file(object.get("model"), folder)? };
    let mut said: Vec<String> = Vec::new();
    for (name, value) in object.get("defines").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if !is_name(name)
            || value.is_empty()
            || value.len() > 200
            || !value.chars().all(|c| c.is_ascii_alphanumeric() || "_-+.,=".contains(c))
        {
            return refusal(400, format!("`{name}={value}` is not a parameter with a value"));
        }
        said.extend(["-D".to_string(), format!("{name}={value}")]);
    }
    for (key, option, form) in OPTIONS {
        let Some(value) = text(object, key)?.filter(|w| !w.is_empty()) else { continue };
        match form {
            ValueForm::Words if !value.split([',', '-']).all(is_word) => {
                return refusal(400, format!("`{value}` is not a value of `{option}`"));
            }
            ValueForm::Words => said.extend([option.to_string(), value.to_string()]),
            ValueForm::File => said.push(format!("{option}={}", file(object.get(key), folder)?)),
        }
    }
    match text(object, "sought")?.unwrap_or_default() {
        "" => {}
        word @ ("deadlock" | "divergence") => said.push(format!("--{word}")),
        other => return refusal(400, format!("`{other}` is not a search goal")),
    }
    let list = |key: &str| {
        object.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    };
    if list("formulas").len() + list("texts").len() > MOST_FORMULAS {
        return refusal(413, format!("more than {MOST_FORMULAS} formulas"));
    }
    for formula in list("texts") {
        let formula = formula.as_str().unwrap_or_default();
        if formula.trim().is_empty() || formula.len() > MOST_CHARACTERS || formula.contains('\0') {
            return refusal(400, "not a formula");
        }
        said.push(format!("--formula={formula}"));
    }
    let mut files: Vec<String> = [model.clone()].into_iter().filter(|m| !m.is_empty()).collect();
    if kind == "compare" {
        files.push(file(object.get("other"), folder)?);
    }
    for formula in list("formulas") {
        files.push(file(Some(formula), folder)?);
    }
    let suite = match text(object, "suite")?.unwrap_or_default() {
        "" => false,
        "yes" => true,
        other => return refusal(400, format!("`{other}` is not a choice of a suite")),
    };
    let folder_of = |option: &str, name: &str| vec![option.to_string(), name.to_string()];
    let shown = match kind {
        "sweep" => folder_of("--out", "sweep"),
        _ if suite => folder_of("--suite", "tests"),
        _ => Vec::new(),
    };
    let line = [&[kind.to_string()], &said[..], &shown[..], &files[..]].concat();
    let command = std::iter::once("mu-check".to_string())
        .chain(line.iter().map(|w| quote(w)))
        .collect::<Vec<_>>()
        .join(" ");
    let mut own = own(kind, limits, out);
    if suite {
        own.push(format!("--suite={}", out.display()));
    }
    let arguments =
        [&[kind.to_string()], &own[..], &said[..], &["--".to_string()], &files[..]].concat();
    Ok(RunArguments { kind, model, arguments, command })
}

/// Returns the arguments that the server adds: the output format and the limits.
fn own(kind: &str, limits: &Limits, out: &Path) -> Vec<String> {
    let mut own = vec![format!("--max-memory={}", limits.memory)];
    own.extend(limits.threads.map(|n| format!("--threads={n}")));
    match kind {
        "simulate" => own.push("--requests".into()),
        _ => {
            let fixed = ["--format=json", "--progress-lines", "--end-with-input"];
            own.extend(fixed.map(String::from));
            own.push(format!("--timeout={}s", limits.time.as_secs_f64()));
        }
    }
    match kind {
        "sweep" => own.push(format!("--out={}", out.display())),
        // The page shows the lines and the cycle of a forbidden trace.
        "trace" => own.push("--explain".into()),
        _ => {}
    }
    own
}

/// Returns an existing file of the folder, by its name.
fn file(name: Option<&Value>, folder: &Folder) -> Result<String, HttpError> {
    let Some(name) = name.and_then(Value::as_str) else {
        return refusal(400, "expected the name of a file");
    };
    if !folder.resolve(name)?.is_file() {
        return refusal(404, format!("there is no file `{name}`"));
    }
    Ok(name.to_string())
}

fn text<'v>(object: &'v Map<String, Value>, key: &str) -> Result<Option<&'v str>, HttpError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => refusal(400, format!("`{key}` is not a text")),
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    let plain =
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=,:+".contains(c));
    if plain { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn parse_wish(wish: Value) -> Result<RunArguments, u16> {
        let root = tempfile::tempdir().unwrap();
        for name in ["m.mcrl2", "--help", "f.mcf"] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        let limits = Limits { runs: 1, time: Duration::from_secs(9), memory: 7, threads: Some(2) };
        run_arguments(&wish, &Folder::new(root.path()).unwrap(), &limits, Path::new("/out"))
            .map_err(|r| r.0)
    }

    #[test]
    fn wishes_become_arguments() {
        let made =
            parse_wish(json!({ "kind": "check", "model": "m.mcrl2", "formulas": ["--help"], "texts": ["-x"], "defines": { "n": "1..3" } }))
                .unwrap();
        let own = "check --max-memory=7 --threads=2 --format=json --progress-lines --end-with-input --timeout=9s";
        assert_eq!(
            made.arguments.join(" "),
            format!("{own} -D n=1..3 --formula=-x -- m.mcrl2 --help")
        );
        assert_eq!(made.command, "mu-check check -D n=1..3 --formula=-x m.mcrl2 --help");
    }

    #[test]
    fn files_of_options_stay_in_the_folder() {
        let wish = json!({ "kind": "conform", "model": "m.mcrl2", "interface": "f.mcf", "operations": "any", "against": "sc,tso" });
        assert_eq!(
            parse_wish(wish).unwrap().command,
            "mu-check conform --against sc,tso --operations any --interface=f.mcf m.mcrl2"
        );
        let wish = json!({ "kind": "compare", "model": "m.mcrl2", "other": "--help", "equivalence": "weak-trace" });
        assert_eq!(
            parse_wish(wish).unwrap().arguments.last().map(String::as_str),
            Some("--help"),
            "after `--`"
        );
        assert_eq!(parse_wish(json!({ "kind": "models" })).unwrap().command, "mu-check models");
    }

    #[test]
    fn suites_are_written_to_the_scratch_folder() {
        let wish = json!({ "kind": "conform", "model": "m.mcrl2", "interface": "f.mcf", "against": "tso", "fault": "f.mcf", "suite": "yes" });
        let made = parse_wish(wish).unwrap();
        assert!(made.arguments.contains(&"--suite=/out".to_string()), "{made:?}");
        assert_eq!(
            made.command,
            "mu-check conform --against tso --interface=f.mcf --fault=f.mcf --suite tests m.mcrl2"
        );
    }

    #[test]
    fn litmus_tests_run_on_a_machine() {
        let wish = json!({ "kind": "litmus", "model": "f.mcf", "machine": "m.mcrl2", "interface": "f.mcf", "operations": "3" });
        assert_eq!(
            parse_wish(wish).unwrap().command,
            "mu-check litmus --operations 3 --machine=m.mcrl2 --interface=f.mcf f.mcf"
        );
        let trace = parse_wish(json!({ "kind": "trace", "model": "f.mcf" })).unwrap();
        assert!(trace.arguments.contains(&"--explain".to_string()), "{trace:?}");
    }

    #[test]
    fn what_a_page_may_not_wish() {
        for (wish, status) in [
            (json!({ "kind": "convert", "model": "m.mcrl2" }), 400),
            (json!({ "kind": "check", "model": "../m.mcrl2" }), 403),
            (json!({ "kind": "check", "model": "m.mcrl2", "formulas": ["/etc/passwd"] }), 403),
            (json!({ "kind": "check", "model": "none.mcrl2" }), 404),
            (json!({ "kind": "check", "model": "m.mcrl2", "evidence": "/tmp/x.json" }), 400),
            (json!({ "kind": "explore", "model": "m.mcrl2", "out": "x.aut" }), 400),
            (json!({ "kind": "explore", "model": "m.mcrl2", "engine": "auto --out=x.aut" }), 400),
            (json!({ "kind": "explore", "model": "m.mcrl2", "engine": "--out" }), 400),
            (json!({ "kind": "conform", "model": "m.mcrl2", "interface": "../f.mcf" }), 403),
            (json!({ "kind": "conform", "model": "m.mcrl2", "against": "../x.cat" }), 400),
            (json!({ "kind": "conform", "model": "m.mcrl2", "suite": "/tmp/x" }), 400),
            (json!({ "kind": "conform", "model": "m.mcrl2", "fault": "../f.mcf" }), 403),
            (json!({ "kind": "litmus", "model": "m.mcrl2", "memory_file": "/etc/passwd" }), 403),
            (json!({ "kind": "compare", "model": "m.mcrl2" }), 400),
            (json!({ "kind": "explore", "model": "m.mcrl2", "defines": { "n --out": "1" } }), 400),
            (
                json!({ "kind": "explore", "model": "m.mcrl2", "defines": { "n": "1 --out=x" } }),
                400,
            ),
            (json!({ "kind": "check", "model": "m.mcrl2", "texts": ["a\u{0}b"] }), 400),
            (json!({ "kind": "check", "model": "m.mcrl2", "texts": vec!["true"; 201] }), 413),
            (json!({ "kind": 1 }), 400),
            (json!([]), 400),
        ] {
            assert_eq!(parse_wish(wish.clone()).map(|a| a.arguments), Err(status), "{wish}");
        }
    }
}
