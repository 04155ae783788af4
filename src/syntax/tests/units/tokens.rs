//! Tokens and reserved words against the grammar.

use mu_syntax::tokens::*;

#[test]
fn tokens_are_those_of_the_grammar() {
    let text = "act a': Nat; % c  \nproc P = sum i:Nat.a(i||_j)|b->tau <> [x==${n + 1}] $for i in 0 ..= 3 join \"\\\" || \" {§}";
    let found: Vec<(TokenKind, &str)> =
        tokens(text).iter().map(|t| (t.kind, t.text(text))).collect();
    let texts: Vec<&str> = found.iter().map(|t| t.1).collect();
    assert_eq!(
        texts.join(" "),
        "act a' : Nat ; % c proc P = sum i : Nat . a ( i ||_ j ) | b -> tau <> [ x == ${n + 1} ] $for i in 0 ..= 3 join \"\\\" || \" { § }"
    );
    assert_eq!(found[5], (TokenKind::Comment, "% c"));
    assert!(
        found.contains(&(TokenKind::Text, "\"\\\" || \""))
            && found.contains(&(TokenKind::Unknown, "§"))
    );
}

#[test]
fn reserved_words_are_those_of_the_grammar() {
    for word in reserved_words() {
        assert!(
            mu_syntax::parse_data(Default::default(), word).is_err()
                || matches!(word, "true" | "false"),
            "{word}"
        );
        assert!(!is_name(word));
    }
    for name in ["a", "_", "x'", "form1", "bag"] {
        assert!(is_name(name) && mu_syntax::parse_data(Default::default(), name).is_ok(), "{name}");
    }
    assert!(!is_name("") && !is_name("1a") && !is_name("a b"));
}

#[test]
fn formulas_are_distinguished_from_specifications() {
    for (text, formula) in [
        ("[a]true", true),
        ("% x\nact a; form true;", true),
        ("act a; init a;", false),
        ("$param n: Nat = 1;", false),
    ] {
        assert_eq!(is_formula(text, &tokens(text)), formula, "{text}");
    }
}
