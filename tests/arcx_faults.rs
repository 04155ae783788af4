//! The ARCx formulas hold for a reason: for each there is a fault of the model that makes it false, and no other than those that should be.

mod support;

use mu_check::base::SourceMap;
use mu_check::syntax::{parse_formula, parse_specification, template};
use support::faults::{FAULTS, FORMULAS, PUBLISHED_CLOSE, SMALL, patch};

fn specification() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/specs/arcx.spec")).unwrap()
}

#[test]
fn every_edit_fits_and_every_formula_fails_somewhere() {
    let specification = specification();
    for fault in FAULTS {
        let patched = patch(&specification, fault.edits);
        assert_eq!(patched == specification, fault.edits.is_empty(), "{}", fault.name);
        assert_eq!(fault.verdicts.len(), FORMULAS.len(), "{}", fault.name);
        assert!(fault.verdicts.bytes().all(|v| b"TF".contains(&v)), "{}", fault.name);
        assert!(fault.defines.iter().all(|(name, value)| SMALL.iter().any(|s| s.0 == *name && s.1 != *value)), "{}", fault.name);
        assert!(FAULTS.iter().filter(|f| f.name == fault.name).count() == 1 && !fault.what.is_empty() && !fault.why.is_empty());
        for (name, _) in fault.defines {
            assert!(specification.contains(&format!("$param {name}:")), "{name}");
        }
    }
    patch(&specification, &[PUBLISHED_CLOSE]);
    for (i, formula) in FORMULAS.iter().enumerate() {
        assert!(FAULTS.iter().any(|f| f.verdicts.as_bytes()[i] == b'F'), "no fault makes {formula} false");
    }
}

#[test]
fn every_instance_and_every_formula_parses() {
    let specification = specification();
    let mut sources = SourceMap::new();
    for fault in FAULTS {
        let text = patch(&specification, fault.edits);
        let defines: Vec<(String, String)> = fault.defines.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let parsed = template::expand(fault.name, &text, &defines, &mut sources).and_then(|e| parse_specification(e.source, &e.text));
        if let Err(error) = parsed {
            panic!("{}", error.render(&sources));
        }
    }
    for folder in ["formulas", "formulas/strict"] {
        for entry in std::fs::read_dir(format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "mcf") {
                let text = std::fs::read_to_string(&path).unwrap();
                let source = sources.add(path.display().to_string(), text.as_str());
                if let Err(error) = parse_formula(source, &text) {
                    panic!("{}", error.render(&sources));
                }
            }
        }
    }
}
