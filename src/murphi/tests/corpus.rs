//! A folder of models with known answers, which the repository does not contain.
//!
//! `MURPHI_MODELS=DIR cargo test -p mu-check-murphi --test corpus -- --ignored` reads
//! `DIR/expected.tsv`: the columns `file` and `accepted`. A file is accepted unless `accepted` is
//! `none`.

use mu_base::{SourceMap, Stage};
use mu_murphi::format::{format, is_same};
use mu_murphi::{Settings, read};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
#[ignore = "needs a folder of models in MURPHI_MODELS"]
fn models_are_accepted_or_rejected_as_expected() {
    let folder = std::env::var("MURPHI_MODELS").expect("MURPHI_MODELS is a folder");
    let table = std::fs::read_to_string(Path::new(&folder).join("expected.tsv")).expect("a table");
    let mut expected = BTreeMap::new();
    for line in table.lines().skip(1) {
        let mut columns = line.split('\t');
        if let (Some(file), Some(accepted)) = (columns.next(), columns.next()) {
            expected.insert(file.to_string(), accepted.to_string());
        }
    }
    let show = std::env::var("MURPHI_SHOW").is_ok();
    let (mut right, mut wrong) = (0, Vec::new());
    for (file, accepted) in &expected {
        let text = std::fs::read(Path::new(&folder).join(file)).expect("a model");
        let text = String::from_utf8_lossy(&text);
        let mut sources = SourceMap::new();
        let source = sources.add(file.as_str(), text.as_ref());
        let result = read(source, &text, &Settings::default());
        if result.is_ok() {
            let formatted = format(&text);
            assert!(is_same(&text, &formatted), "{file}: the formatter changes a token");
            assert_eq!(format(&formatted), formatted, "{file}: a second run changes the text");
            assert!(read(source, &formatted, &Settings::default()).is_ok(), "{file}: formatted");
            if let Ok(out) = std::env::var("MURPHI_FORMATTED") {
                std::fs::write(Path::new(&out).join(file.replace('/', "_")), formatted)
                    .expect("a folder for formatted models");
            }
        }
        if let (Err(error), true) = (&result, show) {
            println!("{accepted}: {}", error.render(&sources));
        }
        match result {
            Ok(_) if accepted != "none" => right += 1,
            Err(error) if accepted == "none" => {
                assert!(error.span.is_some(), "{file}: an error without a place");
                right += 1;
            }
            Err(error) if error.stage == Stage::Unsupported => {
                println!("{file} ({accepted}): unsupported: {}", error.message);
                right += 1;
            }
            Ok(_) => wrong.push(format!("{file}: accepted, expected an error")),
            Err(error) => wrong.push(format!("{file} ({accepted}): {}", error.render(&sources))),
        }
    }
    assert!(wrong.is_empty(), "{right} right, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    println!("{right} files as expected");
}
