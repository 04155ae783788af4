//! Language of the models: one small model for each construct and each class of errors. In
//! rejected models `⟦…⟧` marks the place of the error.

use mu_base::{Diagnostic, SourceMap, Stage};
use mu_murphi::{Model, Settings, read};

/// Declarations that the models share, and a start state behind them.
const HEAD: &str = "const N: 3;
type P: scalarset(N); Q: scalarset(N); E: enum {A, B, C}; H: enum {Home}; U: union {H, P};
  V: union {boolean, E};
  R: record f: 0..7; g: boolean end; T: array [P] of 0..7;
var x: 0..7; b: boolean; e: E; p: P; q: Q; u: U; r: R; t: T; m: multiset [2] of R; s: R;
  a: array [0..3] of boolean; either: V;
";

#[allow(clippy::result_large_err)]
fn check_text(text: &str, settings: &Settings) -> Result<Model, (Diagnostic, String)> {
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    read(source, text, settings).map_err(|error| {
        let rendered = error.render(&sources);
        (error, rendered)
    })
}

/// Checks that a model is rejected at the marked place with a message.
fn rejects(text: &str, message: &str) -> Stage {
    let from = text.find('⟦').unwrap_or_else(|| panic!("no mark: {text}"));
    let plain = text.replacen('⟦', "", 1);
    let to = plain.find('⟧').expect("the end of the mark");
    let plain = plain.replacen('⟧', "", 1);
    let Err((error, rendered)) = check_text(&plain, &Settings::default()) else {
        panic!("accepted: {text}")
    };
    let span = error.span.unwrap_or_else(|| panic!("no place: {rendered}"));
    assert!(error.message.contains(message), "{rendered}");
    assert_eq!((span.start as usize, span.end as usize), (from, to), "{rendered}");
    error.stage
}

/// Checks that statements of a rule behind [`HEAD`] are rejected.
fn rejects_statement(statements: &str, message: &str) {
    rejects(&format!("{HEAD}startstate end; rule begin {statements} end;"), message);
}

fn accepts(text: &str) -> Model {
    match check_text(text, &Settings::default()) {
        Ok(model) => model,
        Err((_, rendered)) => panic!("{rendered}"),
    }
}

#[test]
fn rejected_expressions() {
    for (statements, message) in [
        ("x := ⟦y⟧;", "unknown name `y`, expected a variable or constant"),
        ("x := ⟦E⟧;", "`E` is a type, expected a value"),
        ("x := ⟦1 + true⟧;", "`+` between integer and boolean, expected two numbers"),
        ("b := ⟦p < p⟧;", "`<` between `P` and `P`, expected two numbers"),
        ("x := ⟦p + 1⟧;", "`+` between `P` and integer"),
        ("b := ⟦p = q⟧;", "`=` between `P` and `Q`, expected two values of equal types"),
        ("b := ⟦e = b⟧;", "`=` between `E` and boolean"),
        ("b := ⟦u = q⟧;", "`=` between `U` and `Q`"),
        ("b := ⟦either & b⟧;", "`&` between `V` and boolean, expected two booleans"),
        ("if ⟦either⟧ then x := 1; end;", "a value of `V`, expected boolean"),
        ("b := !⟦either⟧;", "the operand of `!` is a value of `V`, expected boolean"),
        ("b := ⟦x & b⟧;", "expected two booleans or two numbers"),
        ("b := ⟦x && x⟧;", "expected two booleans"),
        ("b := !⟦x⟧;", "the operand of `!` is a value of `0..7`, expected boolean"),
        ("x := -⟦b⟧;", "the operand of `-` is a value of boolean, expected a number"),
        ("x := ~⟦e⟧;", "the operand of `~`"),
        ("x := ⟦b ? x : b⟧;", "`?:` between `0..7` and boolean"),
        ("x := ⟦x⟧ ? x : x;", "the condition of `?:`"),
        ("b := ⟦m = m⟧;", "`=` between"),
        ("x := r.⟦h⟧;", "`R` has no field `h`"),
        ("x := x.⟦f⟧;", "the field `f` of a value of `0..7`, expected a record"),
        ("b := x⟦[0]⟧;", "expected an array or a multiset"),
        ("b := a[⟦b⟧];", "the index is a value of boolean, expected `0..3`"),
        ("x := t[⟦q⟧];", "the index is a value of `Q`, expected `P`"),
        ("b := m[⟦0⟧].g;", "this is no position in"),
        ("b := isundefined(⟦r⟧);", "`isundefined` of a value of `R`, expected a simple type"),
        ("b := isundefined(⟦N⟧);", "`N` is a constant, expected a variable"),
        ("b := ismember(u, ⟦Q⟧);", "a value of `U` is never in `Q`"),
        ("b := ismember(⟦r⟧, R);", "`ismember` has a value of `R`, expected a simple type"),
        ("b := forall i: P do ⟦x⟧ end;", "the body of `forall`"),
        ("b := exists i: ⟦R⟧ do b end;", "a variable cannot take all values of `R`"),
        ("b := exists i := ⟦b⟧ to 3 do b end;", "the first value is a value of boolean"),
        ("x := multisetcount(i: ⟦a⟧, true);", "expected a multiset"),
        ("x := multisetcount(i: m, ⟦1⟧);", "the predicate on elements of a multiset"),
        ("x := ⟦undefined⟧ + 1;", "`undefined` is no operand"),
        ("x := ⟦sqrt⟧(4);", "`sqrt` is not supported"),
        ("x := ⟦1.5⟧;", "is a real number"),
        ("b := x = 1 ⟦=⟧ b;", "expected parentheses"),
        ("b := b -> b ⟦->⟧ b;", "expected parentheses"),
        ("x := b ? 1 : b ⟦?⟧ 2 : 3;", "expected parentheses"),
        ("x := ⟦99999999999999999999⟧;", "does not fit into 64 bits"),
        ("x := ⟦$⟧ 1;", "unexpected character `$`"),
        ("x := ⟦_y⟧;", "names begin with a letter"),
        ("x := 1 + ⟦;⟧", "found `;`, expected an expression"),
        ("b := isundefined(⟦!⟧b);", "expected a variable"),
    ] {
        rejects_statement(statements, message);
    }
}

#[test]
fn rejected_statements() {
    for (statements, message) in [
        ("⟦x := b⟧;", "a value of boolean is assigned to a variable of `0..7`"),
        ("⟦p := q⟧;", "a value of `Q` is assigned to a variable of `P`"),
        ("⟦p := 0⟧;", "a value of integer is assigned to a variable of `P`"),
        ("⟦u := q⟧;", "a value of `Q` is assigned to a variable of `U`"),
        ("⟦N⟧ := 1;", "`N` is a constant, expected a variable"),
        ("for i: P do ⟦i⟧ := p; end;", "`i` cannot be assigned to: it is the variable of a loop"),
        ("alias k: x + 1 do ⟦k⟧ := 1; end;", "it is a name for a value"),
        ("clear ⟦N⟧;", "`N` is a constant"),
        ("⟦clear p⟧;", "a scalarset has no first element"),
        ("⟦clear u⟧;", "a scalarset has no first element"),
        ("if ⟦x⟧ then end;", "the condition of `if` is a value of `0..7`, expected boolean"),
        ("while ⟦r⟧ do end;", "the condition of `while`"),
        ("switch ⟦r⟧ end;", "`switch` has a value of `R`"),
        ("switch e case A: case ⟦1⟧: end;", "a case of integer in a `switch` on a value of `E`"),
        ("for i := 0 to 3 by ⟦0⟧ do end;", "a loop in steps of 0 does not end"),
        ("⟦return 1⟧;", "a rule or start state returns no value"),
        ("⟦liveness b⟧;", "`liveness` is no statement"),
        ("assert ⟦x⟧;", "the condition of a claim"),
        ("put ⟦b ? r : s⟧;", "expected a variable or a simple type"),
        ("⟦f⟧(x);", "unknown name `f`, expected a function or procedure"),
        ("⟦x⟧(x);", "`x` is a variable, expected a function"),
        ("multisetadd(⟦x⟧, m);", "the element is a value of `0..7`, expected `R`"),
        ("multisetremove(⟦x⟧, m);", "this is no position in"),
        ("multisetremovepred(i: ⟦r⟧, true);", "expected a multiset"),
        ("x := 1 ⟦x⟧ := 2;", "found `x`, expected `;` between statements"),
        ("x ⟦=⟧ 1;", "expected `:=` and a value, or a call"),
        ("if b then x := 1; ⟦endfor⟧;", "expected `end` or `endif`"),
        ("⟦;⟧ x := 1;", "found `;`, expected `end` or `endrule`"),
        ("error ⟦b⟧;", "expected the text of the error"),
        ("undefine ⟦1⟧;", "expected a variable"),
        ("put ⟦\"⟧no end;", "this text is not closed"),
    ] {
        rejects_statement(statements, message);
    }
}

#[test]
fn rejected_declarations() {
    let end = "startstate end; rule end;";
    for (text, message) in [
        ("type t: ⟦3..1⟧;", "the range 3..1 is empty"),
        ("type t: ⟦true⟧..1;", "found a value of boolean, expected a number"),
        ("var x: 0..1; type t: 0..⟦x⟧;", "this is no constant"),
        ("const n: ⟦9223372036854775807 + 1⟧;", "it does not fit into 64 bits"),
        ("const n: ⟦1 / 0⟧;", "this is no constant"),
        ("type t: scalarset(⟦0⟧);", "a scalarset of size 0, expected at least 1"),
        (
            "type t: scalarset(⟦4294967296⟧);",
            "a scalarset of size 4294967296, expected at most 4294967295",
        ),
        ("type t: multiset [⟦0⟧] of boolean;", "a multiset of size 0"),
        ("type t: enum {a, b, ⟦a⟧};", "`a` is declared twice"),
        ("type t: enum {a}; s: enum {⟦a⟧};", "`a` is declared twice"),
        ("type t: record a: boolean; ⟦a⟧: boolean end;", "the field `a` is declared twice"),
        ("var x: boolean; ⟦x⟧: boolean;", "`x` is declared twice"),
        ("var x: ⟦t⟧;", "unknown name `t`, expected a type"),
        ("var x: boolean; y: ⟦x⟧;", "`x` is a variable, expected a type"),
        ("type r: record end; t: array [⟦r⟧] of boolean;", "cannot have the index type `r`"),
        ("type t: union {⟦0..1⟧, boolean};", "cannot be a member of a union"),
        ("type t: ⟦union {boolean}⟧;", "a union has at least two members"),
        ("type t: union {boolean, ⟦boolean⟧};", "is twice in this union"),
        ("type t: ⟦real⟧(6, 30);", "`real` is not supported"),
        ("type t: ⟦array [0..99999] of array [0..99999] of boolean⟧;", "in a state"),
        ("type t: 0 ⟦;⟧", "expected `..` and the upper bound"),
        ("var ⟦true⟧: boolean;", "`true` cannot be declared"),
        ("type t: record a: boolean ⟦then⟧", "expected a field (`name: type`) or `endrecord`"),
        ("⟦externfun⟧ f(): boolean;", "`externfun` is not supported"),
        ("var x ⟦boolean⟧;", "found `boolean`, expected `:`"),
        ("var ⟦then⟧: boolean;", "found the keyword `then`"),
        ("⟦/*⟧ no end", "this comment is not closed"),
    ] {
        rejects(&format!("{text} {end}"), message);
    }
}

#[test]
fn rejected_functions_and_rules() {
    for (text, message) in [
        ("function f(): boolean; begin ⟦return⟧; end; ", "returns a value of boolean"),
        ("function f(): boolean; begin return ⟦1⟧; end; ", "a value of integer is returned"),
        ("procedure f(); begin ⟦return true⟧; end; ", "a procedure returns no value"),
        ("function f(): boolean; begin return ⟦g⟧(); end; ", "unknown name `g`"),
        ("procedure f(a: boolean); begin ⟦a⟧ := true; end; ", "it is a parameter by value"),
        ("procedure f(a: boolean; ⟦a⟧: boolean); begin end; ", "`a` is declared twice"),
        ("procedure f(); begin end; rule ⟦f()⟧ ==> end; ", "`f` is a procedure and has no value"),
        (
            "procedure f(var a: boolean); begin end; rule begin f(⟦true⟧); end; ",
            "expected a variable",
        ),
        ("procedure f(var a: 0..1); begin end; var v: 0..2; rule begin f(⟦v⟧); end; ", "exactly"),
        (
            "procedure f(a: boolean); begin end; rule begin f(⟦1⟧); end; ",
            "the argument has a value",
        ),
        ("procedure f(a: boolean); begin end; rule begin ⟦f()⟧; end; ", "has 1 parameter, found 0"),
        ("rule ⟦1⟧ ==> end; ", "the condition of a rule is a value of integer"),
        ("var x: 0..1; rule ⟦x⟧ := 1; end; ", "expected a condition with `==>`, or `begin`"),
        ("rule true ⟦then⟧ ==> end; ", "expected an operator or `==>`"),
        ("rule \"r\" var x: boolean; ⟦x⟧ := true; end; ", "expected `begin`"),
        ("invariant ⟦1⟧; ", "the condition of a property"),
        ("var v: 0..2; ruleset i := 0 to ⟦v⟧ do rule end; end; ", "must be constant"),
        ("ruleset i: 0..1 do ⟦var⟧ v: boolean; rule end; end; ", "has rules only"),
        ("choose i: ⟦j⟧ do rule end; end; ", "unknown name `j`"),
        ("⟦if⟧ true then end; ", "expected a declaration"),
        ("ruleset i: 0..1 do rule ⟦j⟧ = 1 ==> end; rule end; end; ", "unknown name `j`"),
        ("ruleset i: ⟦t⟧ do rule end; rule end; end; ", "unknown name `t`"),
        ("⟦pctl⟧ true; ", "`pctl` is not supported"),
        ("rule begin switch 1 case : ⟦case⟧ 1: end; end; ", "expected `end` or `endswitch`"),
        ("rule begin switch 1 case : ⟦else⟧ end; end; ", "expected `end` or `endswitch`"),
        // Semicolons that neither tool accepts.
        ("ruleset i: 0..1; ⟦do⟧ rule end; end; ", "expected a variable (`name: type`"),
        ("rule begin for i: 0..1; ⟦do⟧ end; end; ", "expected a variable (`name: type`"),
        ("procedure f(⟦;⟧ a: boolean); begin end; ", "expected a parameter or `)`"),
        ("type t: record ⟦;⟧ a: boolean; end; ", "expected a field"),
        ("var v: 0..2; rule begin switch v⟦;⟧ case 1: end; end; ", "expected `case`"),
    ] {
        rejects(&format!("{text}startstate end; rule end;"), message);
    }
}

#[test]
fn accepted_statements() {
    for statements in [
        // CMurphi: several quantifiers, `:` for `do`, `undefined` as a value.
        "for i: P; j := 0 to 3 do a[j] := t[i] = 0; end;",
        "while b : b := false; end; x := undefined;",
        "switch e case A, B: x := 1; case C: x := 2; else x := 3; endswitch;",
        "if b then x := 1; elsif e = A then x := 2; else end; ;;",
        // Rumur: comparisons of records, bits, texts before conditions, `==`, `&&`, `||`.
        "b := r = s && a == a || r != s; x := x & 3 | 1 ^ 2; x := 1 << 2 >> 1; x := ~x % 3;",
        "assert \"text\" b; assert b \"text\"; cover b; assume b; invariant b;",
        "switch e case b ? A : B: case : x := 1; end;",
        "put \"text\"; put x + 1; put r; put isundefined(x);",
        "alias k: N; y: r.f; z: y + k; do y := z; end;",
        "alias v, w: r do v.f := w.f; end;",
        "u := p; u := Home; b := u = p; p := u; b := ismember(u, P); b := ismember(p, U);",
        "x := multisetcount(i: m, m[i].g & r = m[i]); multisetadd(r, m);",
        "multisetremovepred(i: m, m[i].f = 3); undefine m; clear m;",
        "b := forall i := 3 to 0 by -1 do a[i] end & exists i: U; j: boolean do u = i & j end;",
        "x := 1; return; Begin_ := 1;",
        "x := b ? 1 : 2 + 3; b := b -> b & !b | b; b := !x = 1; x := -x * 2;",
        "undefine r; clear r; clear e; clear b; clear x; error \"no \\\" end\";",
        "assume := 1; cover [0] := true; liveness.f := 2;",
        "b ≔ x ≥ 1 ∧ x ≤ 2 ∨ ¬b → x ≠ 3; x := 6 ÷ 2 × 3 − 1 ∕ 1; b := ∀ i: P do ∃ j: Q do b end end;",
    ] {
        let head = "var Begin_: 0..1; assume: 0..1; cover: array [0..1] of boolean; liveness: R;";
        let text = format!("{HEAD}{head} startstate end; rule begin {statements} end;");
        accepts(&text);
    }
}

#[test]
fn accepted_sections() {
    for text in [
        // Without semicolons, in any order, empty sections, several names of constants and types.
        "const type var x: boolean y: 0..1 const A, B: 3 type t, s: enum {c, d,} startstate end rule end",
        "startstate \"s\" begin end; rule \"r\" true ==> begin end; rule end; invariant true;",
        "startstate “s” end; rule 3 \"r\" true ==> end; rule 5 = 5 ==> end;",
        "function f(): boolean; return true; end; procedure g(); end; startstate end; rule f() ==> g(); end;",
        "function f(a, b: 0..1; var c: boolean): 0..1 var d: 0..1; begin d := f(a, b, c); return d; endfunction; startstate end;",
        "procedure f(): boolean; begin return true; endprocedure; startstate end; rule begin f(); end;",
        "ruleset i := 0 to 3 by 2; j: 0..1 do alias k: i + j do rule \"r\" k = 3 ==> end; invariant k < 9 end end; startstate end",
        "var m: Multiset [3] of record a: boolean; end; startstate undefine m; end; choose i: m do rule m[i].a ==> multisetremove(i, m); endrule; endchoose;",
        "type t: array [0..1] of array [boolean] of union {enum {a}, scalarset(2)}; startstate end;",
        "type boolean2: 0..1; var x: BOOLEAN; startstate x := TRUE; end; RULE BEGIN x := False; END;",
        "liveness \"l\" true; cover true; assume true \"a\"; assert true; startstate end;",
        "var x: 0..1; startstate x := 0x1; end; rule x = 0 ==> x := 01; end;",
        "type t: record : boolean end; const : 3; var : t; startstate end;",
        "function f(): 0..1; begin return 0; end; var x: 0 * f()..1; y: 0 >> f()..f() & 0; startstate end;",
        "type e: enum {}; r: record end; var v: r; startstate end;",
        "function f(t: boolean): boolean; begin return t; end; type t: 0..1; startstate end;",
        "-- a comment\n/* another * / one **/ startstate -- x\nend;",
        "startstate\r\nend; -- a comment\r startstate in it\r\n-- another\r",
    ] {
        accepts(text);
    }
}

#[test]
fn numbers_and_types() {
    let model = accepts(&format!("{HEAD}startstate end;"));
    let of = |name: &str| model.type_names.iter().find(|t| t.0 == name).expect("a type").1;
    let types = &model.types;
    assert_ne!(of("P"), of("Q"));
    // The values of enumerations and scalarsets are disjoint; those of a union are theirs.
    let (p, q, u) = (types.parts(of("P")), types.parts(of("Q")), types.parts(of("U")));
    let (p, q, u) = (p.expect("P"), q.expect("Q"), u.expect("U"));
    assert_eq!((p[0].1, q[0].1, u.len()), (3, 3, 2));
    assert!(p[0].0 + 3 <= q[0].0 && u[1] == p[0] && u[0].1 == 1);
    for position in 0..4 {
        let value = types.value_at(of("U"), position).expect("a value");
        assert_eq!(types.position(of("U"), value), Some(position));
    }
    assert_eq!(types.value_at(of("U"), 4), None);
    assert_eq!(types.value_text(of("U"), u[0].0), "Home");
    assert_eq!(types.value_text(of("U"), p[0].0 + 1), "P_2");
    // A constant of the command line replaces that of the file.
    let settings = Settings { constants: vec![("N".into(), 5)], ..Settings::default() };
    let model = check_text(&format!("{HEAD}startstate end;"), &settings).expect("a model");
    assert_eq!(model.constants[0].value, 5);
    assert_eq!(model.types.count(model.type_names[0].1), Some(5));
    // The lowest number of 64 bits marks undefined values.
    let lowest = Settings { constants: vec![("N".into(), i64::MIN)], ..Settings::default() };
    let error = check_text("const N: 3; var x: 0..N;", &lowest).unwrap_err().0;
    assert!(error.message.contains("too low"), "{}", error.message);
    let settings = Settings { constants: vec![("M".into(), 5)], ..Settings::default() };
    let (error, _) = check_text(HEAD, &settings).expect_err("an unknown constant");
    assert!(error.message.contains("no constant `M`"), "{}", error.message);
}

#[test]
fn one_mistake_is_one_error() {
    let text =
        "type t: 0..M; var x: t; y: t; startstate x := 1; y := z; end; rule x = 1 ==> y := 2; end;";
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    let (file, errors) = mu_murphi::parse::parse_all(source, text);
    assert!(errors.is_empty());
    let errors = mu_murphi::check::check_all(&file, text, &Settings::default()).errors;
    let messages: Vec<&str> = errors.iter().map(|e| e.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("`M`") && messages[1].contains("`z`"), "{messages:?}");
}

#[test]
fn other_languages_with_the_same_ending() {
    for (text, language) in [
        ("#import <Foundation/Foundation.h>\n@implementation A\n@end\n", "Objective-C"),
        ("// x\n@interface A : NSObject\n@end\n", "Objective-C"),
        ("% a script\nx = zeros(3);\n", "MATLAB"),
        ("function [a, b] = f(x)\n  a = x;\nend\n", "MATLAB"),
        ("function y = f(x)\n  y = x;\nend\n", "MATLAB"),
        (":- module hello.\n:- interface.\n", "Mercury"),
        ("BeginPackage[\"A`\"]\nf[x_] := x\nEndPackage[]\n", "Wolfram Language"),
        ("#include \"types.m\"\nvar x: boolean;\n", "preprocessor"),
    ] {
        let (error, rendered) =
            check_text(text, &Settings::default()).expect_err("another language");
        assert!(error.message.contains(language), "{rendered}");
        assert!(error.span.is_some());
    }
    let (error, _) = check_text("var x boolean;", &Settings::default()).expect_err("a mistake");
    assert!(!error.message.contains("not a Murphi model"));
}

#[test]
fn deep_and_long_texts() {
    let nested = |open: &str, close: &str, n: usize| {
        format!("startstate end; invariant {}true{};", open.repeat(n), close.repeat(n))
    };
    accepts(&nested("(", ")", 900));
    accepts(&nested("!", "", 900));
    accepts(&nested("true & ", "", 2500));
    for text in
        [nested("(", ")", 100_000), nested("!", "", 100_000), nested("true & ", "", 100_000)]
    {
        let (error, _) = check_text(&text, &Settings::default()).expect_err("too deep");
        assert!(error.message.contains("more than 3000"), "{}", error.message);
    }
    let statements = "if true then ".repeat(100_000);
    let text = format!("startstate {statements}");
    let (error, _) = check_text(&text, &Settings::default()).expect_err("too deep");
    assert!(error.message.contains("more than 3000"), "{}", error.message);
    let text = format!("var x: {}boolean; startstate end;", "array [0..0] of ".repeat(1000));
    accepts(&text);
}

/// Signs and words of other languages are errors at their place.
#[test]
fn signs_of_other_languages() {
    for (text, message, note) in [
        ("rule \"a\" x == 0 ⟦=>⟧ begin end;", "found `=>`, expected `==>`", ""),
        ("rule \"a\" (x = 0) ⟦->⟧ begin end;", "found `->`, expected `==>`", ""),
        ("rule ⟦(⟧x = 0) | x = 1 begin end;", "found `(`, expected `end`", ""),
        ("var ⟦end⟧: 0..1;", "the keyword `end`", "reserved word"),
        ("⟦#⟧ a comment", "unexpected character", "a comment is `-- …`"),
        ("⟦/⟧/ a comment", "found `/`", "a comment is `-- …`"),
    ] {
        let text = format!("{HEAD}{text}\nstartstate end;");
        rejects(&text, message);
        let plain = text.replace(['⟦', '⟧'], "");
        let (_, rendered) = check_text(&plain, &Settings::default()).expect_err("a mistake");
        assert!(rendered.contains(note), "{rendered}");
    }
}

/// A call in an expression has no effect in the translation, so functions with one are rejected.
#[test]
fn translations_keep_effects_of_functions() {
    let head = "var x: 0..9; y: 0..9; startstate x := 0; y := 0; end;
        function write(): 0..9; begin y := 5; return 1; end;";
    let alias = "function f(): 0..9; begin alias v: write() do return v; end; end;";
    let assume = "function f(): 0..9; begin assume x < 2; return 1; end;";
    let pure =
        "function f(): 0..9; var z: 0..9; begin z := 1; alias v: z do v := 2; end; return z; end;";
    for (function, is_pure) in [(alias, false), (assume, false), (pure, true)] {
        for (body, is_operand) in [
            ("rule begin x := f(); end;", false),
            ("rule begin alias v: f() do x := v; end; end;", false),
            ("rule begin x := f() + 0; end;", true),
            ("rule f() = 1 ==> begin x := 1; end;", true),
        ] {
            let model = accepts(&format!("{head} {function} {body}"));
            let accepted = mu_murphi::expand(&model).is_ok();
            assert_eq!(accepted, is_pure || !is_operand, "{function} {body}");
        }
    }
}
