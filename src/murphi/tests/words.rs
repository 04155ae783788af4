//! Words of formulas as names of a model: labels, sorts and constants with other names.

use mu_base::SourceMap;
use mu_base::ids::LabelId;
use mu_model::Model;
use mu_murphi::model::ProtocolModel;
use mu_murphi::{Settings, read};

/// Reserved words of specifications and formulas.
const WORDS: &str = "sort cons map var eqn glob act proc init form sum dist forall exists lambda \
    inf sup mu nu in div mod Bool Pos Nat Int Real List Set Bag FSet FBag allow block comm delay delta \
    end false hide rename struct tau true val whr yaled";

/// Functions of data.
const FUNCTIONS: &str = "Pos2Nat Pos2Int Pos2Real Nat2Pos Nat2Int Nat2Real Int2Pos Int2Nat \
    Int2Real Real2Pos Real2Nat Real2Int max min abs succ pred sqrt exp floor ceil round head tail rhead \
    rtail Set2Bag Bag2Set count pick";

fn load_model(text: &str) -> Result<ProtocolModel, String> {
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    let typed = read(source, text, &Settings::default()).map_err(|e| e.render(&sources))?;
    ProtocolModel::new(typed).map_err(|e| e.render(&sources))
}

/// Returns all names that declarations define.
fn declared_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.lines() {
        let line = line.trim_end_matches(';');
        if let Some(sort) = line.strip_prefix("sort ") {
            let (name, value) = sort.split_once(" = ").expect("a definition");
            names.push(name.to_string());
            if let Some(members) = value.strip_prefix("struct ") {
                names.extend(members.split(" | ").map(str::to_string));
            }
        } else if let Some(action) = line.strip_prefix("act ") {
            names.push(action.split(':').next().expect("a name").to_string());
        }
    }
    names
}

#[test]
fn words_become_other_names() {
    let (words, functions): (Vec<&str>, Vec<&str>) =
        (WORDS.split_whitespace().collect(), FUNCTIONS.split_whitespace().collect());
    let mut tested = 0;
    for word in words.iter().chain(&functions) {
        for role in ["type", "range", "member", "variable", "rule", "invariant"] {
            let name = |own: &str, other: &str| {
                if role == own { word.to_string() } else { other.to_string() }
            };
            let (ty, range, member) =
                (name("type", "Ty"), name("range", "Ra"), name("member", "Bb"));
            let (variable, rule) = (name("variable", "x"), name("rule", "other"));
            let text = format!(
                "type {ty}: scalarset(2); {range}: 0..2; E: enum {{Aa, {member}}};
                 var {variable}: 0..2; e: E;
                 startstate begin {variable} := 0; e := Aa; end;
                 ruleset t: {ty}; v: {range}; f: E do rule \"go\" true ==>
                   begin {variable} := v; e := f; end; end;
                 rule \"{rule}\" true ==> begin e := {member}; end;
                 invariant \"{}\" {variable} < 3;",
                name("invariant", "claim"),
            );
            // Words of this language are no names.
            let Ok(model) = load_model(&text) else { continue };
            let names = declared_names(&model.declarations());
            let at = |name: &str| names.iter().any(|n| n == name);
            assert!(!names.iter().any(|n| words.contains(&n.as_str())), "{role} {word}: {names:?}");
            let is_word = words.contains(word);
            let expected = match role {
                // `val_2` is a condition.
                "rule" | "invariant" if *word == "val" => "rule_val_2".into(),
                "type" | "range" | "rule" if is_word => format!("{word}_2"),
                "type" | "range" | "rule" => word.to_string(),
                "member" | "invariant" => format!("{word}_2"),
                _ => "E".to_string(),
            };
            assert!(at(&expected), "{role} {word}: {expected} is not in {names:?}");
            let renamed = model.renamed_words();
            let shows = matches!(role, "member") || is_word && matches!(role, "type" | "range");
            assert_eq!(renamed.len(), usize::from(shows), "{role} {word}: {renamed:?}");
            // States are shown with the names of the model.
            if role == "member" {
                let slot = model.slots().iter().position(|s| s.name == "e").expect("a slot");
                let texts: Vec<String> =
                    (1..=2).map(|v| model.value_text(slot as u32, v)).collect();
                assert_eq!(texts, ["Aa", word]);
            }
            tested += 1;
        }
    }
    assert!(tested > 350, "{tested} names");
}

/// Booleans are words of formulas, and thus no constants of the sort of a union.
#[test]
fn booleans_in_unions_have_names() {
    let model = load_model(
        "type E: enum {A, true_2}; U: union {boolean, E}; var u: U; b: boolean;
         startstate u := true; b := true; end;
         ruleset v: U do rule \"set\" true ==> u := v; end; end;
         ruleset v: boolean do rule \"put\" true ==> b := v; end; end;",
    )
    .expect("a model");
    let declarations = model.declarations();
    assert!(declarations.contains("struct false_2 | true_3 | A | true_2;"), "{declarations}");
    let labels: Vec<String> =
        (0..model.label_count()).map(|n| model.label_text(LabelId::new(n))).collect();
    for label in ["set(true_3)", "set(false_2)", "set(true_2)", "put(true)"] {
        assert!(labels.iter().any(|l| l == label), "{labels:?}");
    }
    let initial = model.initial();
    for (slot, value) in initial.iter().enumerate() {
        assert_eq!(model.value_text(slot as u32, *value), "true");
    }
}

/// An element of a scalarset, a member, and an invariant with one name stay apart.
#[test]
fn equal_names_stay_apart() {
    let text = "type N: scalarset(2); E: enum {N_1, b}; V: 0..1; Enum3: 0..1;
        var x: V; e: E; f: enum {c, d};
        startstate begin x := 0; e := b; f := c; end;
        ruleset n: N; g: E; h: enum {p, q} do rule \"b\" true ==> begin e := g; end; end;
        invariant \"b\" x < 2; invariant \"N_1\" x < 2;";
    let model = load_model(text).expect("a model");
    let mut names = declared_names(&model.declarations());
    names.retain(|n| !["b", "error", "violation"].contains(&n.as_str()));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
    assert!(names.contains(&"N_1_2".to_string()), "{names:?}");
}
