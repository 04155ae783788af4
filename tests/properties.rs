//! Formulas of `docs/properties.md`: each is checked on the models that its block names, and has
//! the printed verdicts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Returns the blocks of a page: language, the words after it, text.
fn blocks(page: &str) -> Vec<(String, Vec<String>, String)> {
    let mut out = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix("```") else { continue };
        let text = lines.by_ref().take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect();
        let mut words = head.split(' ').map(String::from);
        out.push((words.next().unwrap_or_default(), words.collect(), text));
    }
    out
}

#[test]
fn every_formula_has_the_verdicts_that_are_written() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/properties.md"))
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    // For each model the formulas that are checked on it, with their verdicts: one run of the
    // command for each model.
    let mut asked: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let (mut formulas, mut holding, mut failing) = (0, 0, 0);
    for (language, words, text) in blocks(&page) {
        match language.as_str() {
            "mcrl2" => {
                std::fs::write(folder.path().join(format!("{}.mcrl2", words[0])), text).unwrap();
                assert!(
                    asked.insert(words[0].clone(), Vec::new()).is_none(),
                    "{words:?} is there twice"
                );
            }
            "mcf" => {
                let name = format!("{formulas}.mcf");
                formulas += 1;
                std::fs::write(folder.path().join(&name), &text).unwrap();
                assert!(!words.is_empty(), "no verdict: {text}");
                for word in words {
                    let (model, verdict) = word.split_once(':').unwrap_or_else(|| panic!("{word}"));
                    (holding, failing) = if verdict == "true" {
                        (holding + 1, failing)
                    } else {
                        (holding, failing + 1)
                    };
                    asked
                        .get_mut(model)
                        .unwrap_or_else(|| panic!("no model {model}"))
                        .push((name.clone(), verdict.into()));
                }
            }
            other => panic!("a block of {other}"),
        }
    }
    assert!(
        formulas >= 18 && holding >= 15 && failing >= 10,
        "{formulas} formulas, {holding} hold, {failing} do not"
    );
    let mut wrong = Vec::new();
    for (model, list) in &asked {
        assert!(!list.is_empty(), "nothing is asked of {model}");
        let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["check", "--format", "json", &format!("{model}.mcrl2")])
            .args(list.iter().map(|l| &l.0))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
            panic!("{model}: {e}: {}", String::from_utf8_lossy(&output.stderr))
        });
        for ((file, wanted), result) in list
            .iter()
            .zip(value["results"].as_array().unwrap_or_else(|| panic!("{model}: {value}")))
        {
            let found =
                if result["verdict"] == "value" { &result["value"] } else { &result["verdict"] };
            if found != wanted.as_str() {
                let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
                wrong.push(format!("{model}: wanted {wanted}, found {found}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
