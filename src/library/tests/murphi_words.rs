//! Words of formulas as names of a Murphi model: each sort, member, rule and invariant has a name
//! in formulas, and takes away no other one.

use mu_library::{Run, Specification, Verdict};
use mu_syntax::tokens::reserved_words;

/// Built-in functions of data.
const FUNCTIONS: &str = "Pos2Nat Pos2Int Pos2Real Nat2Pos Nat2Int Nat2Real Int2Pos Int2Nat Int2Real \
    Real2Pos Real2Nat Real2Int max min abs succ pred sqrt exp floor ceil round head tail rhead \
    rtail Set2Bag Bag2Set count pick";

/// Returns a model with `word` in some places; `None` if the language itself reserves the word.
fn model(word: &str, role: &str) -> Option<mu_library::Model> {
    let as_role = |own: &str, other: &str| {
        if role == own { word.to_string() } else { other.to_string() }
    };
    let text = format!(
        "type N: scalarset(2); {ty}: scalarset(2); {range}: 0..2; E: enum {{Aa, {member}}};
         var {variable}: 0..2; e: E;
         startstate begin {variable} := 0; e := Aa; end;
         ruleset n: N do rule \"go\" true ==> begin {variable} := 1; end; end;
         ruleset t: {ty} do rule \"typed\" true ==> begin {variable} := 1; end; end;
         ruleset v: {range} do rule \"ranged\" true ==> begin {variable} := v; end; end;
         ruleset f: E do rule \"set\" true ==> begin e := f; end; end;
         rule \"{rule}\" true ==> begin e := {member}; end;
         invariant \"{invariant}\" {variable} < 3;",
        ty = as_role("type", "Ty"),
        range = as_role("range", "Ra"),
        member = as_role("member", "Bb"),
        variable = as_role("variable", "x"),
        rule = as_role("rule", "other"),
        invariant = as_role("invariant", "claim"),
    );
    Specification::new("words.m", text).model().ok()
}

fn holds(model: &mu_library::Model, formula: &str) -> Result<bool, String> {
    match model.check(formula, &Run::new()) {
        Ok(judgement) => Ok(judgement.verdict == Verdict::True),
        Err(error) => Err(error.message().to_string()),
    }
}

#[test]
fn words_of_formulas_are_names_of_a_model() {
    let mut tested = 0;
    for word in reserved_words().chain(FUNCTIONS.split_whitespace()) {
        let is_reserved = reserved_words().any(|w| w == word);
        for role in ["type", "range", "member", "variable", "rule", "invariant"] {
            let Some(model) = model(word, role) else { continue };
            let name = |own: &str, other: &str, renamed: bool| match (role == own, renamed) {
                // `val_2` is a condition.
                (true, true) if word == "val" && ["rule", "invariant"].contains(&own) => {
                    "rule_val_2".to_string()
                }
                (true, true) => format!("{word}_2"),
                (true, false) => word.to_string(),
                (false, _) => other.to_string(),
            };
            let formulas = [
                "forall n: N. <go(n)>true".to_string(),
                format!("forall t: {}. <typed(t)>true", name("type", "Ty", is_reserved)),
                format!("forall v: {}. <ranged(v)>true", name("range", "Ra", is_reserved)),
                format!("<set({})>true && forall f: E. <set(f)>true", name("member", "Bb", true)),
                format!("<{}>true", name("rule", "other", is_reserved)),
                format!("[true*.violation({})]false", name("invariant", "claim", true)),
            ];
            for formula in formulas {
                let found = holds(&model, &formula);
                assert_eq!(found, Ok(true), "`{word}` as a {role}: {formula}");
                tested += 1;
            }
        }
    }
    assert!(tested > 1_000, "{tested} formulas");
}
