//! Precedence: each text reads as its fully parenthesised twin.

use super::*;

fn source() -> SourceId {
    SourceId(0)
}

#[test]
fn data_precedence() {
    for (text, same) in [
        ("a => b => c", "a => (b => c)"),
        ("a || b && c", "a || (b && c)"),
        ("a - b - c", "(a - b) - c"),
        ("a |> b |> c", "a |> (b |> c)"),
        ("a |> b ++ c", "a |> (b ++ c)"),
        ("a <| b <| c", "(a <| b) <| c"),
        ("!a && b", "(!a) && b"),
        ("-a * b", "(-a) * b"),
        ("#l . 1", "(#l) . 1"),
        ("!f(x)", "!(f(x))"),
        ("a == b == c", "(a == b) == c"),
        ("a < b == c in d", "(a < b) == (c in d)"),
        ("a div b * c", "a div (b * c)"),
        ("forall x: S. a => b", "forall x: S. (a => b)"),
        ("a && forall x: S. b || c", "(a && (forall x: S. b)) || c"),
        ("a || forall x: S. b && c", "a || (forall x: S. (b && c))"),
        ("a => forall x: S. b => c", "a => (forall x: S. (b => c))"),
        ("lambda x: S. x whr x = 1 end", "(lambda x: S. x) whr x = 1 end"),
        ("a + b whr x = 1 end", "(a + b) whr x = 1 end"),
        ("f[a -> b](c)", "((f)[a -> b])(c)"),
        ("f(a)(b)", "(f(a))(b)"),
    ] {
        assert_eq!(parse_data(source(), text), parse_data(source(), same), "{text}");
        assert!(parse_data(source(), text).is_ok(), "{text}");
    }
}

#[test]
fn process_precedence() {
    for (text, same) in [
        ("a . b . c", "a . (b . c)"),
        ("a + b + c", "(a + b) + c"),
        ("a + b . c", "a + (b . c)"),
        ("a|b . c", "(a|b) . c"),
        ("a|b|c @ t . d", "(((a|b)|c) @ t) . d"),
        ("sum x: S. a + b", "(sum x: S. a) + b"),
        ("sum x: S. a || b", "sum x: S. (a || b)"),
        ("a . sum x: S. b . c", "a . (sum x: S. (b . c))"),
        ("a . sum x: S. b || c", "(a . (sum x: S. b)) || c"),
        ("c -> a . b", "c -> (a . b)"),
        ("c -> a + b", "(c -> a) + b"),
        ("c -> a || b", "(c -> a) || b"),
        ("P + c -> p <> q + r", "(P + (c -> p <> q)) + r"),
        ("c -> p + q <> r . s", "c -> (p + q) <> (r . s)"),
        ("b -> c -> p <> q", "b -> (c -> p <> q)"),
        ("b -> c -> p <> q <> r", "b -> (c -> p <> q) <> r"),
        ("c -> p <> d -> q <> r", "c -> p <> (d -> q <> r)"),
        ("c -> p + d -> q <> r", "(c -> p) + (d -> q <> r)"),
        ("a . c -> p . q", "a . (c -> (p . q))"),
        ("a || b ||_ c || d", "a || ((b ||_ c) || d)"),
        ("a << b << c", "(a << b) << c"),
        ("!c(x) -> p", "(!c(x)) -> p"),
        ("dist x: S[1/2]. a + b", "(dist x: S[1/2]. a) + b"),
    ] {
        assert_eq!(parse_process(source(), text), parse_process(source(), same), "{text}");
        assert!(parse_process(source(), text).is_ok(), "{text}");
    }
}

#[test]
fn formula_precedence() {
    for (text, same) in [
        ("[a] forall x: S. p => q", "([a] (forall x: S. p)) => q"),
        ("<a> exists x: S. p && q", "(<a> (exists x: S. p)) && q"),
        ("forall x: S. p => q", "forall x: S. (p => q)"),
        ("mu X. [a]X && Y", "mu X. (([a]X) && Y)"),
        ("p && mu X. q || r", "(p && (mu X. q)) || r"),
        ("p || mu X. q && r", "p || (mu X. (q && r))"),
        ("!p && q", "(!p) && q"),
        ("![a]p", "!([a]p)"),
        ("p => q => r", "p => (q => r)"),
        ("p + q => r", "p + (q => r)"),
        ("[a + b . c*]p", "[a + (b . (c*))]p"),
        ("[a . b . c]p", "[a . (b . c)]p"),
        ("[!a*]p", "[(!a)*]p"),
        ("[a+ + b]p", "[(a+) + b]p"),
        ("[a++b]p", "[(a+) + b]p"),
        ("[a || b && c => d]p", "[(a || (b && c)) => d]p"),
        ("[forall x: S. a(x) || b . c]p", "[(forall x: S. (a(x) || b)) . c]p"),
        ("[!a @ 1]p", "[(!a) @ 1]p"),
        ("<true . true @ 5>p", "<true . (true @ 5)>p"),
        ("val(2) * X + Y", "(val(2) * X) + Y"),
    ] {
        assert_eq!(parse_formula(source(), text), parse_formula(source(), same), "{text}");
        assert!(parse_formula(source(), text).is_ok(), "{text}");
    }
}

#[test]
fn multi_actions() {
    assert_eq!(parse_multi_action(source(), "tau").map(|m| m.len()), Ok(0));
    let m = parse_multi_action(source(), "a(1, [true]) | b").unwrap();
    assert_eq!(m.iter().map(|(n, args)| (n.kind.as_str(), args.len())).collect::<Vec<_>>(), [("a", 2), ("b", 0)]);
}
