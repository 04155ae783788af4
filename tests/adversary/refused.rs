//! Generator of inputs that the grammar accepts and the program rejects by name: bounded
//! initialisation, and times in formulas.
//!
//! Every route refuses them: no route may answer, or end in an internal error.

use super::data::{Maker, NAT, PRELUDE, Vars};
use super::process::DECLARED;
use crate::support::tape::Tape;

/// Returns a specification and a formula, one of which is refused.
pub fn unsupported_case(t: &mut Tape) -> (String, String) {
    let mut m = Maker::new(t);
    m.may_declare = false;
    let usual = "init a . b . delta;\n";
    let number = m.expr(&NAT, &Vars::new(), 1);
    let instant = match m.t.below(9) {
        0 => "3".to_string(),
        1 => "3 - 1".into(),
        2 => "3 / 2".into(),
        3 => "4 div 2".into(),
        4 => "5 mod 3".into(),
        5 => "1 + 2".into(),
        6 => "2 * 2".into(),
        7 => "-(-2)".into(),
        _ => format!("#[{number}] - 0 * 1 - 0"),
    };
    let (process, formula) = match m.t.below(10) {
        0 => ("init (a << b) . delta;\n", "true".to_string()),
        8 => ("init comm({a -> g}, a || b);\n", "true".into()),
        1 => ("init a . (b || g) . delta;\n", "true".into()),
        2 => (usual, "delay".into()),
        3 => (usual, format!("delay@{instant}")),
        4 => (usual, "[a]yaled".into()),
        5 => (usual, format!("yaled@{instant}")),
        6 => (usual, format!("<a@{instant}>true")),
        7 => (usual, format!("[b@{instant} . a]false")),
        _ => (usual, "!(delay@#[1])".into()),
    };
    (format!("{PRELUDE}{DECLARED}{process}"), formula)
}
