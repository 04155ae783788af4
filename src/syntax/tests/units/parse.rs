//! Precedence and errors: each text has the same tree as its fully parenthesised form.

use mu_base::{Diagnostic, SourceId};
use mu_syntax::*;

fn source() -> SourceId {
    SourceId::FIRST
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
    assert_eq!(
        m.iter().map(|(n, args)| (n.kind.as_str(), args.len())).collect::<Vec<_>>(),
        [("a", 2), ("b", 0)]
    );
}

#[test]
fn deep_and_long_texts() {
    // Parsed on a thread with a small stack, printed, parsed again, compared, cloned, dropped.
    fn check<T: PartialEq + Clone>(
        text: String,
        parse: impl Fn(&str) -> Result<T, Diagnostic>,
        print: impl Fn(&T) -> String,
    ) {
        let start = &text[..40];
        let tree = parse(&text).unwrap_or_else(|e| panic!("{start}: {e:?}"));
        let printed = print(&tree);
        assert!(
            parse(&printed).unwrap_or_else(|e| panic!("{start}: {e:?}")) == tree.clone(),
            "{start}"
        );
    }
    fn nest(n: usize, open: &str, inner: &str, close: &str) -> String {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    }
    let run = || {
        let n = 10_000;
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{", "}"),
            ("{x: ", "}"),
            ("f(", ")"),
            ("{x: S | ", "}"),
            ("!(", ")"),
            ("f[0 -> ", "]"),
            ("a + (b * ", ")"),
        ] {
            check(nest(n, open, "a", close), |t| parse_data(source(), t), print::data);
        }
        for (open, close) in
            [("(", ")"), ("hide({a}, ", ")"), ("a . (b + ", ")"), ("b -> (c + (d) -> ", ")")]
        {
            check(nest(n, open, "a", close), |t| parse_process(source(), t), print::process);
        }
        for (open, close) in [("(", ")"), ("[a] (X && ", ")"), ("mu X. !(", ")")] {
            check(nest(n, open, "X", close), |t| parse_formula(source(), t), print::formula);
        }
        check(
            format!("[{}]X", nest(n, "(", "a", " . b)*")),
            |t| parse_formula(source(), t),
            print::formula,
        );
        check(
            format!("[{}]X", nest(n, "!(a || ", "b", ")")),
            |t| parse_formula(source(), t),
            print::formula,
        );
        check(nest(n, "List(", "S", ")"), |t| parse_sort(source(), t), print::sort);
        let n = 8_000;
        for chain in [" + b", " => b", " |> b", " && !c"] {
            check(format!("aaaaa{}", chain.repeat(n)), |t| parse_data(source(), t), print::data);
        }
        for prefix in ["!", "forall x: S. ", "- # "] {
            check(format!("{}a", prefix.repeat(n)), |t| parse_data(source(), t), print::data);
        }
        for chain in [" + b", " . b", " || c", "|d", " << e", " @ 1"] {
            check(format!("a{}", chain.repeat(n)), |t| parse_process(source(), t), print::process);
        }
        for prefix in ["c -> ", "c -> p <> ", "sum x: S. "] {
            check(format!("{}a", prefix.repeat(n)), |t| parse_process(source(), t), print::process);
        }
        for prefix in ["[a]", "mu X. ", "forall x: S. ", "Y => ", "!"] {
            check(
                format!("{}X{}", prefix.repeat(n), " ".repeat(40)),
                |t| parse_formula(source(), t),
                print::formula,
            );
        }
        check(format!("<a{}>true", ".b".repeat(n)), |t| parse_formula(source(), t), print::formula);
        check(format!("<a{}>true", "*".repeat(n)), |t| parse_formula(source(), t), print::formula);
        check(format!("A{}", " -> A".repeat(n)), |t| parse_sort(source(), t), print::sort);
        check(format!("aaaaa{}", " * b".repeat(100_000)), |t| parse_data(source(), t), print::data);
        check(format!("[{}1]", "12, ".repeat(50_000)), |t| parse_data(source(), t), print::data);
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn too_deep_is_refused() {
    let text = "(".repeat(MAX_DEPTH + 1);
    let error = parse_data(source(), &text).unwrap_err();
    assert_eq!(error.message, "brackets are nested more than 50000 deep");
    assert_eq!(error.span.map(|s| s.start as usize), Some(MAX_DEPTH));
}

/// Renders the errors of the parser for a specification.
fn render_error(result: Result<(), Diagnostic>, text: &str) -> String {
    let mut sources = mu_base::SourceMap::new();
    sources.add("t", text);
    let rendered = result.unwrap_err().render(&sources);
    // The excerpt is omitted.
    rendered.lines().filter(|l| !l.contains(" | ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn errors_in_specifications() {
    for (text, expected) in [
        ("act a init a;", "t:1:7: error: unexpected `init`\n  note: expected `,`, `:` or `;`"),
        (
            "proc P = a . P(1) % on\n\ninit P(0);",
            "t:3:1: error: unexpected `init`\n  note: expected `;`",
        ),
        (
            "proc P = a . P(1); proc ; init P(0);",
            "t:1:25: error: unexpected `;`\n  note: expected a name",
        ),
        (
            "map f: Nat",
            "t:1:11: error: unexpected end of the text\n  note: expected `;` or an operator",
        ),
        ("proc P = a + ; init P;", "t:1:14: error: unexpected `;`\n  note: expected a process"),
        (
            "proc P = (a . b; init P;",
            "t:1:16: error: unexpected `;`\n  note: expected `)`\n  note: the `(` in `proc P = (a . b` is not closed",
        ),
        (
            "init true == true -> tau;",
            "t:1:6: error: the condition `true == true` needs parentheses\n  note: only a name, an application or a negation of those needs none: `(x == y) -> p`",
        ),
        (
            "proc P(n: Nat) = if (n < 3) P(n) else delta;",
            "t:1:29: error: unexpected `P`\n  note: expected `;` or an operator\n  note: a choice of processes by a condition is written `c -> p <> q`; `if(c, x, y)` is data",
        ),
        (
            "proc P(n: Nat) = if(n < 3, P(n), delta);",
            "t:1:34: error: unexpected `delta`\n  note: expected a name\n  note: a choice of processes by a condition is written `c -> p <> q`; `if(c, x, y)` is data",
        ),
        (
            "proc P(n: Nat) = (n < 3) => P(n);",
            "t:1:26: error: `=>` belongs to a data expression, and this is a process\n  note: a process with a condition is written `c -> p` or `c -> p <> q`",
        ),
        (
            "init a <> b;",
            "t:1:8: error: `<>` has no condition\n  note: a choice by condition is written `c -> p <> q`",
        ),
        (
            "init f(x = 1, 2);",
            "t:1:15: error: the arguments of `f` mix values and assignments\n  note: write either `P(e, f)` or `P(x = e, y = f)`",
        ),
        (
            "map end: Nat; init a;",
            "t:1:5: error: unexpected `end`\n  note: expected a name\n  note: `end` is a keyword and cannot be a name",
        ),
        (
            "sort S = List(Nat;",
            "t:1:18: error: unexpected `;`\n  note: expected `)` or an operator\n  note: the `(` in `sort S = List(Nat` is not closed",
        ),
        ("eqn f(x) == y; init a;", "t:1:14: error: unexpected `;`\n  note: expected `->` or `=`"),
        (
            "eqn x = 007; init a;",
            "t:1:9: error: unexpected `007`\n  note: a number has no leading zeros",
        ),
        (
            "init (a . delta) -> b;",
            "t:1:11: error: `delta` belongs to a process, and this is a data expression\n  note: a data expression is expected left of `->` and right of `@`",
        ),
        (
            "init a; init b;",
            "t:1:9: error: a second `init`\n  note: a specification has one initial process",
        ),
        ("act a: Nat # ; init a;", "t:1:14: error: unexpected `;`\n  note: expected a sort"),
        ("init sum x Nat. a;", "t:1:12: error: unexpected `Nat`\n  note: expected `,` or `:`"),
        (
            "map f: Nat # Nat; init a;",
            "t:1:8: error: a product of sorts is not a sort by itself\n  note: `A # B` may only stand left of `->`, or in the declaration of an action",
        ),
        (
            "foo",
            "t:1:1: error: unexpected `foo`\n  note: expected a declaration (`sort`, `map`, `proc`, …)",
        ),
        ("init hide(a, b);", "t:1:11: error: unexpected `a`\n  note: expected `{`"),
    ] {
        let got = render_error(parse_specification(source(), text).map(drop), text);
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn errors_in_formulas() {
    for (text, expected) in [
        ("[a true", "t:1:4: error: unexpected `true`\n  note: expected `]` or an operator"),
        ("<a>", "t:1:4: error: unexpected end of the text\n  note: expected a state formula"),
        ("nu X [a]X", "t:1:6: error: unexpected `[`\n  note: expected `(` or `.`"),
        (
            "[!(a . b)]true",
            "t:1:4: error: `!` is applied to a regular formula\n  note: `!`, `&&`, `||`, `=>`, `forall`, `exists` and `@` combine action formulas, which describe one step, without `.`, `+` and `*`",
        ),
        (
            "val(x = 1)",
            "t:1:7: error: unexpected `=`\n  note: expected `)` or an operator\n  note: equality is written `==`",
        ),
        (
            "forall x: Nat [a]true",
            "t:1:15: error: unexpected `[`\n  note: expected `,`, `.` or an operator",
        ),
        (
            "[a]X & Y",
            "t:1:6: error: unexpected `&`\n  note: expected an operator\n  note: conjunction is written `&&`",
        ),
        (
            "act a;",
            "t:1:7: error: the formula is missing\n  note: a formula file ends with `form F;` after its declarations",
        ),
        (
            "",
            "t:1:1: error: unexpected end of the text\n  note: expected a declaration (`sort`, `map`, `proc`, …) or a state formula",
        ),
        (
            "[a]true && (n == 1)",
            "t:1:15: error: unexpected `==`\n  note: expected `)` or an operator\n  note: a condition on data in a formula is written `val(…)`",
        ),
        (
            "[exists n: Nat. (n in s) && a(n)]true",
            "t:1:20: error: unexpected `in`\n  note: expected `)` or an operator\n  note: a condition on data in a formula is written `val(…)`",
        ),
        ("[]true", "t:1:2: error: unexpected `]`\n  note: expected an action formula"),
        (
            "mu X(n: Nat). X(n)",
            "t:1:12: error: unexpected `)`\n  note: expected `=` or an operator",
        ),
    ] {
        let got = render_error(parse_formula(source(), text).map(drop), text);
        assert_eq!(got, expected, "{text}");
    }
    for (text, expected) in [
        (
            "{1, 2: 3}",
            "t:1:5: error: an enumeration mixes elements with and without a count\n  note: a set is written `{a, b}`, a bag `{a: 1, b: 2}`",
        ),
        ("a +", "t:1:4: error: unexpected end of the text\n  note: expected a data expression"),
        ("f()", "t:1:3: error: unexpected `)`\n  note: expected a data expression"),
        ("f(a b)", "t:1:5: error: unexpected `b`\n  note: expected `)`, `,` or an operator"),
        (
            "a whr x = 1 end(2)",
            "t:1:16: error: `whr … end` is applied like a function\n  note: put parentheses around the expression that ends in `end`",
        ),
        (
            "[1, 2",
            "t:1:6: error: unexpected end of the text\n  note: expected `,`, `]` or an operator\n  note: the `[` in `[1, 2` is not closed",
        ),
    ] {
        let got = render_error(parse_data(source(), text).map(drop), text);
        assert_eq!(got, expected, "{text}");
    }
}

/// A damaged text parses, or is rejected at a place within it.
#[test]
fn damaged_texts_are_rejected_without_panic() {
    use mu_base::random::Random;
    let specification = "sort D = struct d1(p: Nat)?is_d1 | d2; E; cons c: D; map f, g: D # List(Nat) -> Set(D); glob dc: D; var x, y: D, n: Nat; \
        eqn n > 0 -> f(x, [n, 1]) = {z: D | z != x} + {y} whr y = g(x, [])(d1(n)) end; f(x, []) = {:}[d2 -> -n div 2]; % comment\n \
        act a, b: D # Nat; c; proc P(d: D) = sum e: D. (e in f(d, [])) -> a(e, 1)|b(d, 2) @ 3 . P(d = e) <> delta + tau << Q(); \
        Q = dist x: Bool[1/2]. x -> c || (c . c) ||_ c; init allow({a|b, c}, comm({a|b -> c}, hide({a}, block({b}, rename({a -> b}, P(d2))))));";
    let formula = "map n: Nat; form nu X(i: Nat = 0, s: Set(Nat) = {}). ([!(exists d: D. a(d, i)|b && true)* . c+ + tau @ 1]forall d: D. \
        val(lambda x: Nat. x < 2) => X(i + 1, s)) || <true>mu Y. (Y && delay @ 3 && !yaled) + inf x: Nat. val(2) * -X(x, {x});";
    let pieces = [
        "(", ")", "[", "]", "{", "}", ";", ",", ".", "->", "<>", "|", "||_", "@", "=", ":", "whr",
        "end", "sum", "forall", "x", "0", "é", "%", "\n", "<", ">", "*", "+", "!",
    ];
    assert_eq!(parse_specification(source(), specification).map(drop), Ok(()));
    assert_eq!(parse_formula(source(), formula).map(drop), Ok(()));
    let mut random = Random::new(0xda_3a9e);
    for round in 0..3_000 {
        let mut text = if round % 2 == 0 { specification } else { formula }.to_owned();
        for _ in 0..1 + random.below(3) {
            let cut = |random: &mut Random, text: &str| {
                let mut at = random.below(text.len() + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let (from, to) = (cut(&mut random, &text), cut(&mut random, &text));
            match random.below(3) {
                0 => drop(
                    text.drain(
                        from..(from..=from + 12)
                            .rev()
                            .find(|&i| i <= text.len() && text.is_char_boundary(i))
                            .unwrap_or(from),
                    ),
                ),
                1 => text.insert_str(from, pieces[random.below(pieces.len())]),
                _ => {
                    let copy: String = text[to..].chars().take(10).collect();
                    text.insert_str(from, &copy);
                }
            }
        }
        let results = [
            parse_specification(source(), &text).map(drop),
            parse_formula(source(), &text).map(drop),
            parse_data(source(), &text).map(drop),
            parse_process(source(), &text).map(drop),
        ];
        for error in results.into_iter().filter_map(Result::err) {
            let span = error.span.unwrap_or_else(|| panic!("round {round}: {error:?}"));
            assert!(
                text.get(span.start as usize..span.end as usize).is_some(),
                "round {round}: {error:?}"
            );
        }
    }
}
