//! The ARCx formulas hold for a reason: for each there is a fault of the model that makes it false, and no other than those that should be.

mod support;

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
