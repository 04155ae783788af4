//! Faults of the ARCx model: each seeded fault makes exactly the expected formulas false, and each
//! formula fails for some fault.

use crate::support::faults::{
    FAULTS, FIRST_STORES, FORMULAS, PUBLISHED_CLOSE, RELEASE_FAULTS, RELEASE_FORMULAS, SMALL,
    STORED, narrow, patch,
};
use mu_check::base::SourceMap;
use mu_check::formula::typecheck::check_formula;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax::{parse_formula, parse_specification, template};

use crate::support::{defines, mu_check, package};

fn specification() -> String {
    std::fs::read_to_string(package("specs/arcx.spec")).unwrap()
}

/// Returns the values of all parameters, where `changes` differs from [`SMALL`].
fn values(changes: &[(&'static str, u32)]) -> Vec<(&'static str, u32)> {
    SMALL.iter().map(|s| *changes.iter().find(|c| c.0 == s.0).unwrap_or(s)).collect()
}

/// Checks formulas (names under `formulas/`) on a specification text: for each `T`, `F` or `?`.
/// `3.cacheconsistency` is checked for all stores of defined values, but with three operations or
/// more only for the first stores.
fn verdicts(
    name: &str,
    specification: &str,
    changes: &[(&'static str, u32)],
    formulas: &[&str],
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: String, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let model = file(format!("{name}.spec"), specification);
    let released = formulas == RELEASE_FORMULAS;
    let large = changes.iter().any(|c| c.0 == "max_operation_id" && c.1 > 1);
    let formulas: Vec<String> = formulas
        .iter()
        .map(|f| {
            let path = package(&format!("formulas/{f}.mcf"));
            if !f.ends_with("3.cacheconsistency") {
                return path;
            }
            let text = std::fs::read_to_string(path).unwrap();
            file(
                "3.cacheconsistency.mcf".into(),
                &narrow(&text, if large { FIRST_STORES } else { STORED }),
            )
        })
        .collect();
    let mut arguments = vec!["check".to_string(), model];
    arguments.extend(formulas);
    arguments.extend(defines(&values(changes)));
    if released {
        arguments.extend(["-D".to_string(), "release_acquire=true".to_string()]);
    }
    let outcome = mu_check(&arguments);
    let results =
        outcome.json["results"].as_array().unwrap_or_else(|| panic!("{name}: {}", outcome.stderr));
    let mut verdicts = String::new();
    for result in results {
        let verdict = result["verdict"].as_str().unwrap();
        verdicts.push(match verdict {
            "true" => 'T',
            "false" => 'F',
            _ => '?',
        });
        let evidence = result["evidence"].as_array();
        assert_eq!(
            verdict == "false",
            evidence.is_some_and(|e| !e.is_empty()),
            "{name}: evidence of {result}"
        );
    }
    let expected = if verdicts.contains('F') { 1 } else { 0 };
    assert_eq!(
        outcome.code, expected,
        "{name}: exit code with verdicts {verdicts}: {}",
        outcome.stderr
    );
    verdicts
}

#[test]
fn every_edit_fits_and_every_formula_fails_somewhere() {
    let specification = specification();
    for fault in FAULTS {
        let patched = patch(&specification, fault.edits);
        assert_eq!(patched == specification, fault.edits.is_empty(), "{}", fault.name);
        assert_eq!(fault.verdicts.len(), FORMULAS.len(), "{}", fault.name);
        assert!(fault.verdicts.bytes().all(|v| b"TF".contains(&v)), "{}", fault.name);
        assert!(
            fault
                .defines
                .iter()
                .all(|(name, value)| SMALL.iter().any(|s| s.0 == *name && s.1 != *value)),
            "{}",
            fault.name
        );
        assert!(
            FAULTS.iter().filter(|f| f.name == fault.name).count() == 1
                && !fault.what.is_empty()
                && !fault.why.is_empty()
        );
        for (name, _) in fault.defines {
            assert!(specification.contains(&format!("$param {name}:")), "{name}");
        }
    }
    patch(&specification, &[PUBLISHED_CLOSE]);
    for (i, formula) in FORMULAS.iter().enumerate() {
        assert!(
            FAULTS.iter().any(|f| f.verdicts.as_bytes()[i] == b'F'),
            "no fault makes {formula} false"
        );
    }
}

#[test]
fn every_instance_and_every_formula_is_well_typed() {
    let specification = specification();
    let mut sources = SourceMap::new();
    let mut typed = None;
    for fault in FAULTS {
        let text = patch(&specification, fault.edits);
        let defines: Vec<(String, String)> = fault
            .defines
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let checked = template::expand(fault.name, &text, &defines, &mut sources)
            .and_then(|e| check_specification(&parse_specification(e.source, &e.text)?));
        typed = Some(checked.unwrap_or_else(|error| panic!("{}", error.render(&sources))));
    }
    let typed = typed.unwrap();
    for folder in ["formulas", "formulas/strict", "formulas/release", "formulas/cores"] {
        for entry in std::fs::read_dir(package(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "mcf") {
                let text = std::fs::read_to_string(&path).unwrap();
                let source = sources.add(path.display().to_string(), text.as_str());
                if let Err(error) = parse_formula(source, &text)
                    .and_then(|f| check_formula(&f, &typed.data, &typed.actions))
                {
                    panic!("{}", error.render(&sources));
                }
            }
        }
    }
}

#[test]
fn every_fault_fails_the_formulas_that_it_should() {
    let specification = specification();
    let mut wrong = Vec::new();
    for fault in FAULTS {
        let found =
            verdicts(fault.name, &patch(&specification, fault.edits), fault.defines, &FORMULAS);
        if found != fault.verdicts {
            wrong.push(format!(
                "{}: verdicts {found}, not {}, of {}",
                fault.name,
                fault.verdicts,
                FORMULAS.join(", ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The stricter formulas judge alike where the published ones fail, and on the model as it is.
#[test]
fn stricter_formulas() {
    let specification = specification();
    let formulas = ["strict/2.selfobserving", "strict/3.cacheconsistency"];
    for fault in FAULTS.iter().filter(|f| f.edits.is_empty() || f.verdicts[4..].contains('F')) {
        let found =
            verdicts(fault.name, &patch(&specification, fault.edits), fault.defines, &formulas);
        assert_eq!(found, fault.verdicts[4..], "{}", fault.name);
    }
}

/// With the published text of `close_observation` the formula of cache consistency sees no order at
/// all.
#[test]
fn the_published_record_forgets() {
    let specification = specification();
    for name in ["memory_for_each_core", "two_memory_commands"] {
        let fault = FAULTS.iter().find(|f| f.name == name).unwrap();
        let text = patch(&patch(&specification, fault.edits), &[PUBLISHED_CLOSE]);
        assert_eq!(verdicts(name, &text, fault.defines, &["3.cacheconsistency"]), "T", "{name}");
    }
}

/// Store releases and load acquires: each of their formulas fails for the faults that violate it.
#[test]
fn every_fault_of_release_and_acquire_fails_its_formulas() {
    let specification = specification();
    let mut wrong = Vec::new();
    for fault in RELEASE_FAULTS {
        let found = verdicts(
            fault.name,
            &patch(&specification, fault.edits),
            fault.defines,
            &RELEASE_FORMULAS,
        );
        if found != fault.verdicts {
            wrong.push(format!(
                "{}: verdicts {found}, not {}, of {}",
                fault.name,
                fault.verdicts,
                RELEASE_FORMULAS.join(", ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (i, formula) in RELEASE_FORMULAS.iter().enumerate() {
        assert!(
            RELEASE_FAULTS.iter().any(|f| f.verdicts.as_bytes()[i] == b'F'),
            "no fault makes {formula} false"
        );
    }
}
