//! Errors after which the rest of a text is analysed, and names at their places.

use super::*;

fn messages(text: &str) -> Vec<String> {
    let analysis = Analysis::of_specification(text);
    analysis.problems.iter().map(|p| format!("{}: {}", &text[p.range.clone()], p.message)).collect()
}

#[test]
fn all_errors_of_a_text() {
    let text = "map f: Nat -> Nat; g: ; h: Bool;
        var n: Nat;
        eqn f(n) = m; f(0) = ; h = g(1);
        act a, b: Nat;
        proc P(n: Nat) = a(true) . P(n + 1); Q = c . Q; R(x: Nope) = delta;
        init P(0) || R(1);";
    let found = messages(text);
    let expected = [
        ";: unexpected `;`",
        ";: unexpected `;`",
        "m: `m` is not declared",
        "Nope: sort `Nope` is not declared",
        "true: argument 1 of action `a`",
        "c: ",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for e in expected {
        assert!(found.iter().any(|f| f.starts_with(e)), "{e}: {found:#?}");
    }
}

#[test]
fn names_survive_errors() {
    let text = "sort D = struct d1 | d2(p: Nat); map f: D -> Nat; eqn f(d1) = (; proc P(x: D) = a(f(x)) . P(); act a: Nat; init P(d1)";
    let analysis = Analysis::of_specification(text);
    let kinds: Vec<String> = analysis
        .declarations
        .iter()
        .map(|d| format!("{} {}{}", d.kind.word(), d.name, d.signature))
        .collect();
    for expected in [
        "constructor d2: Nat -> D",
        "projection p: D -> Nat",
        "map f: D -> Nat",
        "act a: Nat",
        "proc P(x: D)",
    ] {
        assert!(kinds.iter().any(|k| k == expected), "{expected}: {kinds:?}");
    }
}

#[test]
fn names_of_the_parameter_layer() {
    let text = "$param n: Nat = 2 where n < 5; % how many
sort D = struct $for i in 0 .. n join \" | \" { d_${i} };
act a: D;
$if n > 7 { act b: D; }
init a(d_1) $if n > 7 { + b(d_0) };
";
    let mut analysis = Analysis::of_specification(text);
    assert_eq!(analysis.problems, []);
    analysis.complete();
    let keys =
        |at: &str| analysis.name_at(text.find(at).unwrap()).map(|n| (n.key.clone(), n.is_literal));
    assert_eq!(keys("n: Nat"), Some((Key::Parameter("n".into()), true)));
    assert_eq!(keys("n < 5"), Some((Key::Parameter("n".into()), true)));
    assert_eq!(keys("i} }"), Some((Key::Local(text.find("i in").unwrap()), true)));
    assert_eq!(keys("d_1"), Some((Key::Data("d_1".into()), true)));
    assert!(matches!(keys("d_${"), Some((Key::Data(_), false))));
    assert_eq!(keys("a(d_1)"), Some((Key::Action("a".into()), true)));
    let param = analysis.declarations.iter().find(|d| d.kind == NameKind::Parameter).unwrap();
    assert_eq!(
        (analysis.comment(param).as_str(), param.signature.as_str()),
        ("how many", ": Nat = 2 where n < 5")
    );
    assert_eq!(
        Analysis::of_specification(&text.replace("= 2", "= 6")).problems[0].message,
        "`n = 6` violates `n < 5`"
    );
}

#[test]
fn what_is_left_out_by_default_is_known() {
    let text = "$param more: Bool = false;\nact a; $if more { act b; }\nproc P = a . P $if more { + b . P };\ninit P;\n";
    let mut analysis = Analysis::of_specification(text);
    analysis.complete();
    for (i, _) in text
        .match_indices('b')
        .chain(text.match_indices('P'))
        .filter(|(i, _)| !text[*i..].starts_with("bool"))
    {
        if text[i..].starts_with("b;") || text[i..].starts_with("b .") || text[i..].starts_with('P')
        {
            let name = analysis.name_at(i).unwrap_or_else(|| panic!("{i}"));
            assert!(matches!(name.key, Key::Action(_) | Key::Process(_)), "{name:?}");
        }
    }
    assert_eq!(analysis.declarations.iter().filter(|d| d.kind == NameKind::Action).count(), 2);
}
