//! Formatting: results, and preservation of everything except white space.

use mu_base::random::Random;
use mu_syntax::format::*;

fn lines(text: &str) -> String {
    format(text, FormatOptions { width: 60 })
}

/// Formats, and checks the general properties.
fn format_checked(text: &str, width: usize) -> String {
    let once = format(text, FormatOptions { width });
    assert!(is_same(text, &once), "{text}\n---\n{once}");
    assert_eq!(once, format(&once, FormatOptions { width }), "not idempotent:\n{text}");
    once
}

#[test]
fn spaces() {
    let cases = [
        ("act a,b:Nat#Bool;", "act a, b: Nat # Bool;\n"),
        ("map f:List( Nat )->Nat;", "map f: List(Nat) -> Nat;\n"),
        ("eqn f(x,-1)=# l- 1*( x .2 );", "eqn f(x, -1) = #l - 1 * (x . 2);\n"),
        (
            "proc P(n:Nat)=sum m:Nat.(n<m)->a(m).P( n+1 )<>delta;",
            "proc P(n: Nat) = sum m: Nat. (n < m) -> a(m) . P(n + 1) <> delta;\n",
        ),
        ("init allow({a,b|c},P||Q);", "init allow({a, b|c}, P || Q);\n"),
        (
            "sort D=struct c_${i}x?is_c|d( p:Nat ) ? is_d;",
            "sort D = struct c_${i}x?is_c|d(p: Nat) ? is_d;\n",
        ),
        (
            "sort D=struct $for i in 0..=n join\" | \"{c_${i}};",
            "sort D = struct $for i in 0 ..= n join \" | \" { c_${i} };\n",
        ),
        ("[true*.a( 1 )+ .b+c]<!a>false", "[true* . a(1)+ . b + c]<!a>false\n"),
        (
            "nu X(n:Nat=0).[a] val(n<3&&!b)=>X(n+1)",
            "nu X(n: Nat = 0). [a] val(n < 3 && !b) => X(n + 1)\n",
        ),
        (
            "eqn f={x:Nat|x<2};g={:};h={1:2,3:4};k=m[1->2][2];",
            "eqn f = {x: Nat|x < 2}; g = {:}; h = {1: 2, 3: 4}; k = m[1 -> 2][2];\n",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(format_checked(text, 100), expected);
    }
}

#[test]
fn indentation() {
    let text = "proc P(n: Nat) =\na . P(n)\n+ b . (\nc . P(n)\n  % why\n+ d);\nmap f: Nat;\ng: Nat;   % kept\n% at the start\n$if n > 1 {\nact x;\ny: Nat;\n}\neqn f =\n1;\n\n\n\n\ninit P(1);";
    let expected = "proc P(n: Nat) =\n    a . P(n)\n  + b . (\n        c . P(n)\n      % why\n      + d);\nmap f: Nat;\n    g: Nat; % kept\n% at the start\n$if n > 1 {\n  act x;\n      y: Nat;\n}\neqn f =\n      1;\n\n\ninit P(1);\n";
    assert_eq!(format_checked(text, 100), expected);
    let formula = "% what it says\n[true*] (forall p: C. (\nval(p) => (\n[a] false\n)\n))\n&& true";
    let expected =
        "% what it says\n[true*] (forall p: C. (\n  val(p) => (\n    [a] false\n  )\n))\n&& true\n";
    assert_eq!(format_checked(formula, 100), expected);
}

#[test]
fn long_lines_are_broken() {
    let text = "act a: Nat; init a(1) . a(2) . a(3) . a(4 + 5 + 6 + 7 + 8) . a(if(true, 1, 2)) + a(9) . a(10) . a(11); % a comment as long as one likes it";
    let found = format_checked(text, 60);
    assert!(
        found.lines().all(|l| l.split('%').next().unwrap().trim_end().len() <= 60)
            && found.lines().count() == 2,
        "{found}"
    );
    assert!(lines(&"f(".repeat(100)).lines().count() == 1);
}

#[test]
fn line_ends_are_preserved() {
    assert_eq!(lines("act a;\r\n\r\ninit a;"), "act a;\r\n\r\ninit a;\r\n");
    assert_eq!(
        (lines(""), lines(" \n\n"), lines("%")),
        (String::new(), String::new(), "%\n".into())
    );
}

/// For any text: nothing is lost, and formatting is idempotent.
#[test]
fn any_text() {
    let seed = 20_261_123;
    let mut random = Random::new(seed);
    let parts = [
        "a",
        "f(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "+",
        "||",
        "&&",
        "|",
        "->",
        "<>",
        ".",
        ",",
        ";",
        ":",
        "=",
        "sum ",
        "forall x",
        "mu X",
        "proc ",
        "map ",
        "init ",
        "eqn ",
        "form ",
        "val(",
        "$if n > 1 {",
        "$for i in 0 .. n join \" \" {",
        "$else {",
        "${n}",
        "$param n: Nat = 1;",
        "$",
        "\"",
        "% c\n",
        "%\n",
        " ",
        "\n",
        "\n\n\n\n",
        "\t",
        "\r\n",
        "1",
        "-",
        "!",
        "#",
        "*",
        "{:}",
        "é",
        "§",
        "'",
        "\\",
        "&",
    ];
    for round in 0..20_000 {
        let length = random.below(40);
        let text: String = (0..length).map(|_| parts[random.below(parts.len())]).collect();
        let width = [10, 20, 80][round % 3];
        let once = format(&text, FormatOptions { width });
        let dense = |t: &str| t.chars().filter(|c| !c.is_ascii_whitespace()).collect::<String>();
        assert_eq!(dense(&text), dense(&once), "seed {seed}, round {round}: {text:?}");
        assert_eq!(
            once,
            format(&once, FormatOptions { width }),
            "seed {seed}, round {round}: {text:?}"
        );
    }
}
