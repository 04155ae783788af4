//! Generator of specifications with parameters, and of the parts that have rules of their own.

use super::data::{BOOL, Maker, Vars};
use crate::support::tape::Tape;

/// Texts of the parts that can be parsed alone, with their rules.
pub fn parts(t: &mut Tape) -> Vec<(&'static str, String)> {
    let mut m = Maker::new(t);
    m.may_declare = false;
    let sort = m.plain();
    let data = m.expr(&sort, &Vars::new(), 2);
    let condition = m.expr(&BOOL, &Vars::new(), 2);
    let labels = ["tau".to_string(), "a".into(), format!("an({})", m.number(0)), "a|b|ae(e1)".into()];
    let label = m.t.choose(&labels).clone();
    vec![
        ("data_file", data),
        ("sort_file", sort.text()),
        ("sort_file", format!("struct d | e({})?is_e", sort.text())),
        ("process_file", format!("({condition}) -> a . P(n = 1, m = 2) <> delta")),
        ("process_file", "(g)(1)[2 -> 3] == h -> a".into()),
        ("process_file", "f(1)(2)[3 -> 4] . (g[e -> 1] == h) -> a".into()),
        ("multi_action_file", label),
        ("multi_action_file", "a|b(1)".into()),
        ("specification", String::new()),
        ("specification", "sort A, B;".into()),
        ("specification", "init delta;".into()),
        ("sort_file", "struct d".into()),
        ("formula_file", "delay@#!1 - f(1) - f(1)(2)".into()),
        ("formula_file", "sort S; cons s: S; glob n: Nat; act c: S; form true;".into()),
    ]
}
