//! Tables of expansions and of errors, and the map from expanded text to the file.

use mu_base::Stage::{self, Syntax, Type, Usage};
use mu_base::{Diagnostic, SourceMap, Span};
use mu_syntax::template::*;

fn run(text: &str, defines: &[(&str, &str)]) -> (Result<ExpandedText, Diagnostic>, SourceMap) {
    let mut sources = SourceMap::new();
    let defines: Vec<(String, String)> =
        defines.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    (expand("t.spec", text, &defines, &mut sources), sources)
}

fn expansion(text: &str, defines: &[(&str, &str)]) -> String {
    let (result, sources) = run(text, defines);
    match result {
        Ok(e) => {
            assert_eq!(sources.get(e.source).text, e.text);
            assert_eq!(sources.get(e.source).original, text);
            e.text
        }
        Err(d) => panic!("{text:?} is refused: {}", d.render(&sources)),
    }
}

fn refusal(text: &str, defines: &[(&str, &str)]) -> (Stage, String) {
    let (result, sources) = run(text, defines);
    match result {
        Ok(e) => panic!("{text:?} is accepted: {:?}", e.text),
        Err(d) => (d.stage, d.render(&sources)),
    }
}

#[test]
fn plain_text_is_unchanged() {
    for text in [
        "",
        "init delta;\n",
        "% $for costs $5 { }\nact a, b; % ${x}\ninit allow({a, b}, a || b);",
        "}}{ unbalanced is no matter here",
        "é → ∞\r\n",
    ] {
        let (result, sources) = run(text, &[]);
        let e = result.unwrap();
        assert_eq!(e.text, text);
        assert!(sources.get(e.source).back.is_empty() && e.params.is_empty());
    }
}

#[test]
fn table_of_expansions() {
    let table: &[(&str, &str)] = &[
        ("${1 + 2 * 3}", "7"),
        ("${(1 + 2) * 3 - 10}", "-1"),
        ("${7 div 2} ${7 mod 2} ${-7 div 2} ${-7 mod 2}", "3 1 -4 1"),
        ("${10 - 3 - 2}", "5"),
        ("${6 * 4 div 3}", "8"),
        ("${1 < 2 && 2 <= 2 && !(3 > 4) && 3 != 4 && 5 >= 5}", "true"),
        ("${false => false => false}", "true"),
        ("${true || 1 div 0 == 1}", "true"),
        ("${- - 3}${!true}", "3false"),
        ("${ 1 % a comment\n + 1 }", "2"),
        ("c_addr_${3}_x", "c_addr_3_x"),
        ("struct $for i in 0 .. 3 join \" | \" { c_${i} };", "struct c_0 | c_1 | c_2;"),
        ("$for i in 0 .. 3 { c${i}; }", "c0; c1; c2;"),
        ("$for i in 1 ..= 3 join \"\" { ${i} }", "123"),
        ("[$for i in 3 .. 3 join \", \" { ${i} }]", "[]"),
        ("[$for i in 5 .. 3 { ${i} }]", "[]"),
        (
            "$for i in 0..2 join \"; \" { $for j in 0 ..= i join \",\" { (${i},${j}) } }",
            "(0,0); (1,0),(1,1)",
        ),
        ("$for i in 0..2 { {a: ${i}, {b}} }", "{a: 0, {b}} {a: 1, {b}}"),
        (
            "$for i in 0..2 join \" +\" {\n    a(${i})  % no } here\n}\n.",
            "a(0)  % no } here\n +\na(1)  % no } here\n\n.",
        ),
        ("  $for i in 0..2 join \" +\" {\n    a(${i})\n  }\n.", "  a(0) +\n  a(1)\n."),
        ("= $for i in 0..2 join \" +\" {\n    a(${i})\n  }\n.", "= a(0) +\n    a(1)\n."),
        ("$for i in 0..2 {\nx${i};\n}\n", "x0;\nx1;\n"),
        ("$if 1 < 2 { a } $else { b } c", "a c"),
        ("$if 1 > 2 { a }\n $else   { b }", "b"),
        ("$if 1 > 2 { a } c", " c"),
        ("$if false { a } $else $if true { b } $else { c }", "b"),
        ("$if false { a } $else $if false { b } $else { c }", "c"),
        ("$if false { ${1 div 0} } ok", " ok"),
        ("$for i in 0..1 join \"\\n\\t\\\"\\\\\" {x}$for i in 0..2 join \"\\\\\" {y}", "xy\\y"),
        ("$param n: Nat = 2;\n${n}", "% n: Nat = 2;\n2"),
        (
            "$param n: Nat = 2;  % how many\n$param m: Int = n - 3 where m < n;\n${m}",
            "% n: Nat = 2;  % how many\n% m: Int = -1;\n-1",
        ),
        ("$param on: Bool = 1 < 2;\n$if on { yes }", "% on: Bool = true;\nyes"),
        ("act a; {$for i in 0..1 {}} {", "act a; {} {"),
    ];
    for (text, expected) in table {
        assert_eq!(expansion(text, &[]), *expected, "{text}");
    }
}

#[test]
fn parameters_are_set_and_reported() {
    let text = "$param size: Pos = 2;  %% the size \n$param half: Nat = size div 2 where half < size;\n$param on: Bool = false;\n$param z: Int = 0;\n";
    let (result, _) = run(text, &[("on", "true"), ("size", "7"), ("z", "-4")]);
    let params = result.unwrap().params;
    let shown: Vec<String> = params.iter().map(|p| format!("{p} [{}]", p.value)).collect();
    assert_eq!(
        shown,
        [
            "size: Pos = 2  the size [7]",
            "half: Nat = 3 where half < size [3]",
            "on: Bool = false [true]",
            "z: Int = 0 [-4]"
        ]
    );
}

#[test]
fn table_of_errors() {
    let table: &[(&str, Stage, &[&str])] = &[
        (
            "a\n $foo",
            Syntax,
            &["t.spec:2:2: error: unknown directive `$foo`", "note: directives are"],
        ),
        ("a $ b", Syntax, &["1:3: error: `$` does not start a directive"]),
        ("$else { a }", Syntax, &["`$else` without `$if`"]),
        (
            "${1 + }",
            Syntax,
            &["1:7: error: expected a number, a parameter or a loop variable, but here is `}`"],
        ),
        ("${1 + 2", Syntax, &["expected `}` to close `${`, but the file ends"]),
        ("${(1}", Syntax, &["expected `)` to close the parenthesis, but here is `}`"]),
        ("${9223372036854775808}", Syntax, &["1:3: error: `9223372036854775808` is too large"]),
        ("${1x}", Syntax, &["`1x` is not a number"]),
        (
            "${x}",
            Type,
            &[
                "1:3: error: unknown parameter or loop variable `x`",
                "no parameter is declared above",
            ],
        ),
        (
            "$param n: Nat = 1;\n${m}",
            Type,
            &["2:3: error: unknown parameter or loop variable `m`", "known here: n"],
        ),
        ("${1 && true}", Type, &["1:3: error: `&&` needs a truth value, but this is 1"]),
        ("${1 + true}", Type, &["1:7: error: `+` needs a number, but this is true"]),
        ("${1 == true}", Type, &["`==` compares a number with a truth value: 1 and true"]),
        ("${1 div 0}", Type, &["`div` needs a positive divisor, but this is 0"]),
        ("${9223372036854775807 + 1}", Type, &["does not fit in 64 bits"]),
        ("$if 1 { a }", Type, &["`$if` needs a truth value"]),
        ("$if true a", Syntax, &["expected `{` and the body of the directive, but here is `a`"]),
        ("$if true { a { }", Syntax, &["1:10: error: this `{` is not closed"]),
        (
            "$for i in 0 .. 2 { a % }",
            Syntax,
            &["1:18: error: this `{` is not closed", "those in comments do not count"],
        ),
        (
            "$for i of 0 .. 2 { a }",
            Syntax,
            &["expected `in` and the range of the loop, but here is `of`"],
        ),
        ("$for i in 0 { a }", Syntax, &["expected `..` between the bounds"]),
        ("$for in in 0 .. 1 { a }", Syntax, &["`in` is a keyword of the parameter layer"]),
        ("$for i in 0 .. true { a }", Type, &["`$for` needs a number"]),
        (
            "$for i in 0 .. 2 join { a }",
            Syntax,
            &["expected `\"` and the text between two copies, but here is `{`"],
        ),
        ("$for i in 0 .. 2 join \"a\n\" { a }", Syntax, &["this text is not closed on its line"]),
        ("$for i in 0 .. 2 join \"\\q\" { a }", Syntax, &["unknown escape"]),
        ("$for i in 0 .. 2 { $for i in 0 .. 1 { a } }", Type, &["`i` is already the name"]),
        ("$for i in 0 .. 1 { $param n: Nat = 1; }", Syntax, &["`$param` is inside a directive"]),
        ("$param n: Nat = 1;\n$param n: Nat = 2;", Type, &["2:1: error: `n` is already the name"]),
        (
            "$param n: Real = 1;",
            Syntax,
            &["1:11: error: expected a sort, one of Pos, Nat, Int, Bool, but here is `Real`"],
        ),
        (
            "$param n: Pos = 0;",
            Type,
            &[
                "1:17: error: the default of `n` is 0, which is not of sort Pos",
                "expected a number from 1",
            ],
        ),
        ("$param n: Nat = 3 where n < 3;", Usage, &["1:25: error: `n = 3` violates `n < 3`"]),
        (
            "$param n: Nat = 3",
            Syntax,
            &["expected `;` at the end of the parameter, but the file ends"],
        ),
        ("$param n: Nat = 3; sort A;", Syntax, &["1:20: error: text after a `$param`"]),
        (
            "$for i in 0 .. 1000000000000 { a }",
            Usage,
            &["more than 1000000 copies", "this loop makes 1000000000000"],
        ),
        ("$for i in 0 .. 1000 { $for j in 0 .. 1001 {} }", Usage, &["more than 1000000 copies"]),
    ];
    for (text, stage, parts) in table {
        let (found, message) = refusal(text, &[]);
        assert_eq!(found, *stage, "{text}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{text}: expected {part:?} in\n{message}");
        }
    }
}

#[test]
fn table_of_bad_defines() {
    let text = "% a model\n$param cores: Pos = 2 where cores <= 4;  % processor cores\n$param fast: Bool = false;\n$param low: Int = -1;\n";
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let table: &[Case] = &[
        (
            &[("core", "1")],
            &[
                "error: unknown parameter `core`",
                "parameter cores: Pos = 2  processor cores",
                "parameter fast: Bool = false",
                "parameter low: Int = -1",
            ],
        ),
        (&[("cores", "1"), ("cores", "1")], &["parameter `cores` is set twice"]),
        (
            &[("cores", "0")],
            &[
                "t.spec:2:1: error: parameter `cores`: `0` is not of sort Pos",
                "expected a number from 1",
            ],
        ),
        (&[("cores", "two")], &["`two` is not of sort Pos"]),
        (&[("cores", "")], &["`` is not of sort Pos"]),
        (&[("cores", "+1")], &["`+1` is not of sort Pos"]),
        (&[("cores", "99999999999999999999")], &["is not of sort Pos"]),
        (
            &[("cores", "5")],
            &["t.spec:2:29: error: `cores = 5` violates `cores <= 4`", "values are cores = 5"],
        ),
        (&[("fast", "1")], &["`1` is not of sort Bool", "expected true or false"]),
        (&[("low", "true")], &["`true` is not of sort Int", "expected an integer"]),
    ];
    for (defines, parts) in table {
        let (stage, message) = refusal(text, defines);
        assert_eq!(stage, Stage::Usage, "{defines:?}: {message}");
        for part in *parts {
            assert!(message.contains(part), "{defines:?}: expected {part:?} in\n{message}");
        }
    }
    assert!(
        refusal("init delta;", &[("n", "1")]).1.contains("the specification has no parameters")
    );
    assert_eq!(parse_define("n=3").unwrap(), ("n".to_string(), "3".to_string()));
    for bad in ["", "n", "=3", "n=", "3n=1", "a b=1"] {
        assert_eq!(parse_define(bad).unwrap_err().stage, Stage::Usage, "{bad}");
    }
}

#[test]
fn places_map_to_the_file() {
    let text = "$param n: Pos = 2;\nsort A = struct $for i in 0 .. n join \" | \" {\n  c_${i} ? is_${i}\n};\nact bad;\ninit µ ${n} wrong;\n";
    let (result, sources) = run(text, &[("n", "3")]);
    let e = result.unwrap();
    let place = |needle: &str, nth: usize| {
        let start = e
            .text
            .match_indices(needle)
            .nth(nth)
            .unwrap_or_else(|| panic!("{needle} in {}", e.text))
            .0 as u32;
        sources.line_column(Span { source: e.source, start, end: start + needle.len() as u32 })
    };
    assert_eq!(place("sort", 0), (2, 1));
    assert_eq!(place("c_", 0), (3, 3));
    assert_eq!(place("c_", 2), (3, 3));
    assert_eq!(place("is_", 1), (3, 12));
    assert_eq!(place("2 ?", 0), (3, 5)); // a value: where `${` stands
    assert_eq!(place("bad", 0), (5, 5));
    assert_eq!(place("wrong", 0), (6, 13));
    let back = &sources.get(e.source).back;
    assert!(back.windows(2).all(|w| w[0].0 < w[1].0));
}

/// Every byte of copied text maps to an equal byte.
#[test]
fn copied_bytes_map_to_equal_bytes() {
    let text = include_str!("../../../../specs/arcx.spec");
    let (result, sources) = run(text, &[("num_cores", "3"), ("nr_wb_buffers", "2")]);
    let e = result.unwrap();
    let source = sources.get(e.source);
    for (i, b) in source.back.iter().enumerate().filter(|(_, b)| b.2) {
        let end = source.back.get(i + 1).map_or(e.text.len(), |n| n.0 as usize);
        let length = end - b.0 as usize;
        assert_eq!(&e.text[b.0 as usize..end], &text[b.1 as usize..b.1 as usize + length]);
    }
}

#[test]
fn deep_and_long_inputs_are_rejected_without_panic() {
    let deep = 100_000;
    for text in [
        format!("${{{}1{}}}", "(".repeat(deep), ")".repeat(deep)),
        format!("${{{}true}}", "!".repeat(deep)),
        format!("${{1{}}}", " + 1".repeat(deep)),
        format!("${{true{}}}", " => true".repeat(deep)),
        "$if true {".repeat(deep),
    ] {
        assert_eq!(refusal(&text, &[]).0, Stage::Syntax);
    }
    let braces = format!("$if true {{ {}{} }}", "{".repeat(deep), "}".repeat(deep));
    assert_eq!(expansion(&braces, &[]).len(), 2 * deep);
    let long = format!("$for i in 0 .. 1000000 {{ {} }}", "x".repeat(100));
    let (stage, message) = refusal(&long, &[]);
    assert!(stage == Stage::Usage && message.contains("longer than 64 MiB"), "{message}");
}

/// A parameter without a value is a constant that the file cannot bind, and not a part of a word.
#[test]
fn constants_represent_parameters_without_a_value() {
    // A constraint restricts the values; the text for all values exists without it.
    let expanded =
        run("$param n: Nat = 2 where n <= 4 && n != 3;\n${n}", &[("n", "any")]).0.unwrap();
    assert!(expanded.text.contains("\nn_any"), "{}", expanded.text);
    let refused = run("$param n: Int = 2;\n${n}", &[("n", "any")]).0.unwrap_err();
    assert!(refused.notes[0].contains("Pos or Nat"), "{refused}");
    let refused = run("$param n: Nat = 2;\n${n}", &[("n", "9223372036854775808")]).0.unwrap_err();
    assert!(refused.notes[0].contains("9223372036854775807"), "{refused}");
    let text = "$param n: Nat = 2;\nmap n, n_any: Nat; proc C(n: Nat) = (n < ${n} && n > ${n + 2}) -> a.C(n);";
    let expanded = run(text, &[("n", "any")]).0.unwrap();
    assert_eq!(expanded.constants, [("n".to_string(), "n_any_".to_string())]);
    assert!(
        expanded.text.contains("(n < n_any_ && n > (n_any_ + 2))")
            && expanded.text.ends_with("\nmap n_any_: Nat;"),
        "{}",
        expanded.text
    );
    for text in [
        "c${n}",
        "${n}c",
        "1${n}",
        "${n}1",
        "${n}${n}",
        "${n}_",
        "${n}${3}",
        "$for i in 0 .. 1 { ${n} }x",
    ] {
        let refused = run(&format!("$param n: Nat = 2;\n{text}"), &[("n", "any")])
            .0
            .err()
            .map(|d| (d.stage, d.message));
        let expected = "a word depends on a parameter that is set to `any`".to_string();
        assert_eq!(refused, Some((Stage::Unsupported, expected)), "{text}");
    }
}

#[test]
fn constraints_bound_parameters_without_a_value() {
    let greatest = |text: &str, defines: &[(&str, &str)]| {
        let owned = |d: &(&str, &str)| (d.0.to_string(), d.1.to_string());
        let found = greatest_values(text, &defines.iter().map(owned).collect::<Vec<_>>());
        found.into_iter().map(|(n, v)| format!("{n} {v}")).collect::<Vec<_>>().join(", ")
    };
    let n = [("n", "any")];
    for (constraint, expected) in [
        ("n <= 10", "n 10"),
        ("10 > n", "n 9"),
        ("n < 2 || n == 4", "n 4"),
        ("n < 2 || n > 4", ""),
        ("n >= 3 && n < m + 1", "n 7"),
        ("n <= n", ""),
        ("!(n > 3)", ""),
        ("n * 2 <= 10", ""),
    ] {
        let text = format!("$param m: Nat = 7;\n$param n: Nat = 2 where {constraint};\n${{n}}");
        assert_eq!(greatest(&text, &n), expected, "{constraint}");
    }
    let two = "$param n: Nat = 2 where n <= 4;\n$param m: Nat = 1 where m < n - 1;\n${m}";
    assert_eq!(greatest(two, &[("n", "any"), ("m", "any")]), "n 4, m 2");
    assert_eq!(greatest(two, &[("n", "3"), ("m", "any")]), "m 1");
    assert_eq!(greatest(two, &n), "n 4");
}
