//! Tables of expressions with their expected sort or error text.

use super::*;
use crate::expr::ExprKind;
use crate::signature::Builtin;
use mu_syntax::{parse_data, parse_specification};

/// Data with global variables.
struct Specification {
    data: DataSpec,
    globals: Vec<VarId>,
}

fn specification(text: &str) -> Result<Specification, Diagnostic> {
    let text = if text.contains("init") { text.to_owned() } else { format!("{text}\ninit delta;") };
    let (data, globals) = check_data_specification(
        &parse_specification(Default::default(), &text).unwrap_or_else(|e| panic!("{text}: {e:?}")),
    )?;
    Ok(Specification { data, globals })
}

/// Returns the sort or the message of an expression over some declarations; `x: S` pairs are
/// variables in scope.
fn sort_of(declarations: &str, vars: &[(&str, &str)], expression: &str) -> String {
    let globals: String = vars.iter().map(|(x, s)| format!("glob {x}: {s};\n")).collect();
    let mut spec = match specification(&format!("{declarations}\n{globals}")) {
        Ok(spec) => spec,
        Err(e) => panic!("{declarations}: {e:?}"),
    };
    let data = parse_data(Default::default(), expression)
        .unwrap_or_else(|e| panic!("{expression}: {e:?}"));
    match check_expression_with(&data, &mut spec.data, &spec.globals, None) {
        Ok(e) => spec.data.signature.sorts.text(e.sort),
        Err(e) => format!("error: {}", e.message),
    }
}

#[track_caller]
fn table(declarations: &str, vars: &[(&str, &str)], cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        let found = sort_of(declarations, vars, expression);
        let is_expected = match expected.strip_prefix("error: ") {
            Some(part) => found.starts_with("error: ") && found.contains(part),
            None => found == *expected,
        };
        assert!(is_expected, "{expression}: expected {expected}, found {found}");
    }
}

#[test]
fn numbers() {
    table(
        "",
        &[("p", "Pos"), ("n", "Nat"), ("i", "Int"), ("r", "Real")],
        &[
            ("0", "Nat"),
            ("1", "Pos"),
            ("-1", "Int"),
            ("0 + 1", "Pos"),
            ("1 + 0", "Pos"),
            ("0 + 0", "Nat"),
            ("1 * 2 + 3", "Pos"),
            ("p + n", "Pos"),
            ("n + p", "Pos"),
            ("n + n", "Nat"),
            ("n + i", "Int"),
            ("i + r", "Real"),
            ("p - p", "Int"),
            ("n - p", "Int"),
            ("r - p", "Real"),
            ("-p", "Int"),
            ("-r", "Real"),
            ("p * n", "Nat"),
            ("p / n", "Real"),
            ("p div p", "Nat"),
            ("i div p", "Int"),
            ("i mod p", "Nat"),
            ("n div n", "error: no overload of `div` matches arguments of sorts (Nat, Nat)"),
            ("exp(p, n)", "Pos"),
            ("exp(n, p)", "Nat"),
            ("exp(i, n)", "Int"),
            ("exp(r, i)", "Real"),
            ("exp(i, i)", "Real"),
            ("floor(r)", "Int"),
            ("ceil(p)", "Int"),
            ("round(p / 2)", "Int"),
            ("sqrt(p)", "Nat"),
            ("abs(i)", "Nat"),
            ("abs(p)", "Nat"),
            ("abs(r)", "Real"),
            ("abs(abs(p))", "Nat"),
            ("succ(abs(abs(n)))", "Pos"),
            ("abs(abs(p)) > i", "Bool"),
            ("abs(abs(n)) == if(p == n, 5, i)", "Bool"),
            ("abs(abs(i) - r)", "Real"),
            ("abs(n) + r", "Real"),
            ("max(p, n)", "Pos"),
            ("max(i, n)", "Nat"),
            ("max(p, r)", "Real"),
            ("min(p, n)", "Nat"),
            ("min(p, i)", "Int"),
            ("succ(n)", "Pos"),
            ("succ(i)", "Int"),
            ("pred(p)", "Nat"),
            ("pred(n)", "Int"),
            ("Nat2Pos(0)", "Pos"),
            ("Int2Nat(-1)", "Nat"),
            ("Real2Int(r)", "Int"),
            ("Pos2Nat(p)", "Nat"),
            ("Nat2Pos(i)", "error: no overload of `Nat2Pos`"),
            ("p == n", "Bool"),
            ("i < r", "Bool"),
            ("p == true", "error: no overload of `==` matches arguments of sorts (Pos, Bool)"),
            ("if(true, p, n)", "Nat"),
            ("if(n > 3, n, -1)", "Int"),
            ("if(n, p, n)", "error: no overload of `if`"),
            ("x", "error: `x` is not declared"),
            ("f(1)", "error: `f` is not declared"),
            ("p(1)", "error: variable `p` of sort Pos cannot be applied to (Pos)"),
            ("true && n", "error: no overload of `&&`"),
        ],
    );
}

#[test]
fn containers() {
    table(
        "",
        &[
            ("p", "Pos"),
            ("n", "Nat"),
            ("lp", "List(Pos)"),
            ("ln", "List(Nat)"),
            ("sn", "Set(Nat)"),
            ("fn", "FSet(Nat)"),
            ("bn", "Bag(Nat)"),
            ("fb", "FBag(Nat)"),
        ],
        &[
            ("[1, 2]", "List(Pos)"),
            ("[0, 1]", "List(Nat)"),
            ("[1, 0, -3]", "List(Int)"),
            ("[[], [1], [0]]", "List(List(Nat))"),
            (
                "[1, true]",
                "error: this element of a list has sort Bool, but those before it have sort Pos",
            ),
            ("[0] ++ [1, 2]", "List(Nat)"),
            ("ln ++ [1, 2]", "List(Nat)"),
            ("lp ++ [1, 2]", "List(Pos)"),
            ("[0] ++ lp", "error: no overload of `++`"),
            ("lp ++ ln", "error: no overload of `++`"),
            ("lp == ln", "error: no overload of `==`"),
            ("p |> ln", "List(Nat)"),
            ("n |> lp", "error: no overload of `|>`"),
            ("n |> [p]", "List(Nat)"),
            ("p |> []", "List(Pos)"),
            ("[] <| p", "List(Pos)"),
            ("#[]", "Nat"),
            ("true in []", "Bool"),
            ("[] == []", "Bool"),
            ("[]", "error: the sort of this expression, List(?), is not determined"),
            ("ln . 0", "Nat"),
            ("ln . n + p", "Pos"),
            ("head([0, 1])", "Nat"),
            ("tail(lp)", "List(Pos)"),
            ("rhead(ln)", "Nat"),
            ("rtail(ln)", "List(Nat)"),
            ("p in ln", "Bool"),
            ("n in lp", "error: no overload of `in`"),
            ("#[0, 1] == -1", "Bool"),
            ("{1, 2, -7}", "FSet(Int)"),
            ("{true, false}", "FSet(Bool)"),
            ("{ x: Nat | x mod 2 == 0 }", "Set(Nat)"),
            ("{ x: Pos | x + 1 }", "Bag(Pos)"),
            ("{ x: Pos | 0 }", "Bag(Pos)"),
            ("{ x: Pos | 2 / 3 }", "error: the body of a comprehension has sort Real"),
            ("{1: 1, 2: 2, -8: 8}", "FBag(Int)"),
            ("{1: -1}", "error: the multiplicity in a bag has sort Int, where Nat is expected"),
            ("#{1: 1}", "Nat"),
            ("#sn", "error: no overload of `#`"),
            ("pick({0, 1})", "Nat"),
            ("pick({1: 1, -8: 2})", "Int"),
            ("!sn", "Set(Nat)"),
            ("!fn", "Set(Nat)"),
            ("!{:}", "error: no overload of `!`"),
            ("!{} <= {}", "Bool"),
            ("sn + {1}", "Set(Nat)"),
            ("fn + {1}", "FSet(Nat)"),
            ("fn - sn", "Set(Nat)"),
            ("fn * fn", "FSet(Nat)"),
            ("fb + bn", "Bag(Nat)"),
            ("fb * {1: 2}", "FBag(Nat)"),
            ("sn == {}", "Bool"),
            ("fn < sn", "Bool"),
            ("p in sn", "Bool"),
            ("p in fn", "Bool"),
            ("p in { x: Nat | x < 3 }", "Bool"),
            ("count(p, fb)", "Nat"),
            ("count(p, bn)", "Nat"),
            ("Set2Bag(fn)", "Bag(Nat)"),
            ("Bag2Set(bn)", "Set(Nat)"),
            ("if(true, {}, { o: Bool | true whr z = true end })", "Set(Bool)"),
            ("{{}, {1}}", "FSet(FSet(Pos))"),
        ],
    );
}

#[test]
fn functions_and_binders() {
    table(
        "sort S; T; map g: Nat -> Nat -> Bool; h: (Nat -> Nat) -> Nat;",
        &[("f", "Nat -> Nat"), ("x", "Nat"), ("z", "Nat")],
        &[
            ("f", "Nat -> Nat"),
            ("f(1)", "Nat"),
            ("f[0 -> 1]", "Nat -> Nat"),
            ("f[0 -> 1][2 -> 3](4)", "Nat"),
            ("f[true -> 1]", "error: no overload of `[_ -> _]`"),
            ("lambda y: Nat. y + 1", "Nat -> Pos"),
            ("h(lambda y: Nat. 1)", "Nat"),
            ("h(f)", "Nat"),
            (
                "h(lambda y: Bool. 1)",
                "error: argument 1 of `h` has sort Bool -> Pos, where Nat -> Nat is expected",
            ),
            ("(lambda y: Bool. y)[true -> false]", "Bool -> Bool"),
            ("(lambda y: Bool. y)[0 -> false]", "error: no overload of `[_ -> _]`"),
            (
                "(lambda y: Nat. y)(1, 2)",
                "error: the expression of sort Nat -> Nat cannot be applied to (Pos, Pos)",
            ),
            ("(lambda y, w: Nat. y == w)(1, 2)", "Bool"),
            ("g(1)", "Nat -> Bool"),
            ("g(1)(2)", "Bool"),
            ("g(1, 2)", "error: no overload of `g`"),
            ("forall n: Nat. n >= 0", "Bool"),
            (
                "forall n: Nat. n",
                "error: the body of `forall` has sort Nat, where Bool is expected",
            ),
            ("exists n: Nat, b: Bool. b => n > 481", "Bool"),
            ("forall n, n: Nat. true", "error: variable `n` is declared twice"),
            ("forall a, b: struct t. a == b", "Bool"),
            ("lambda a, b: struct t. a == b", "(struct t) # (struct t) -> Bool"),
            ("lambda a: struct t?is_t. a == a", "(struct t?is_t) -> Bool"),
            (
                "lambda f: Nat. lambda f: Nat -> Bool. f(f)",
                "error: variable `f` of sort Nat -> Bool cannot be applied to (Nat -> Bool)",
            ),
            ("a + b whr a = 3, b = 10 end", "Pos"),
            ("a + b whr a = 3, b = a + 10 end", "error: `a` is not declared"),
            ("a ++ b whr a = [0, z], b = [x] end", "List(Nat)"),
            ("a ++ b whr a = [0], b = [1] end", "error: no overload of `++`"),
            ("a whr a = [] end", "error: not determined"),
            ("a whr a = 1, a = 2 end", "error: `a` is defined twice"),
            ("(exists q: Nat. q == x) && q == 1", "error: `q` is not declared"),
            ("head", "error: the sort of this expression, List(?) -> ?, is not determined"),
            ("forall s: NoSort. true", "error: sort `NoSort` is not declared"),
        ],
    );
}

#[test]
fn operations_are_overloaded() {
    let one = "map f: Nat -> Bool; f: Nat # Nat -> Bool; f: Nat;";
    table(
        one,
        &[],
        &[
            ("f", "Nat"),
            ("f(f)", "Bool"),
            ("f(f, f)", "Bool"),
            ("f((lambda x: Bool. f)(f(f, f)))", "Bool"),
        ],
    );
    table(
        "map f: Nat -> Bool; f: Nat # Nat -> Bool;",
        &[],
        &[("f", "error: `f` is ambiguous here")],
    );
    table(
        "map f: Pos -> Nat; f: Nat -> Pos;",
        &[("p", "Pos"), ("n", "Nat")],
        &[
            ("f(0)", "Pos"),
            ("f(1)", "Nat"),
            ("f(n)", "Pos"),
            ("f(p)", "Nat"),
            ("f(-1)", "error: no overload of `f` matches arguments of sorts (Int)"),
        ],
    );
    let three =
        "sort U; S; T; map f: Pos; f: Pos # Nat -> U; f: Pos # Pos -> S; f: Nat # Pos -> T;";
    table(
        three,
        &[("x", "Pos"), ("y", "Nat")],
        &[("f", "Pos"), ("f(x, x)", "S"), ("f(x, y)", "U"), ("f(y, x)", "T")],
    );
    table(
        "sort S; T; cons f: S; f: S -> T;",
        &[],
        &[("f(f)", "T"), ("f(f(f))", "error: argument 1 of `f` has sort T, where S is expected")],
    );
    table(
        "sort A; B; C; map a: A; f: A -> B; f: A -> C; g: B -> Bool; g: C -> Bool; h: C -> Bool;",
        &[],
        &[
            ("h(f(a))", "Bool"),
            ("g(f(a))", "error: `g` is ambiguous here"),
            ("f(a) == f(a)", "error: `==` is ambiguous"),
            ("f(a)", "error: `f` is ambiguous"),
        ],
    );
    table("sort S = struct t(struct e(Nat));", &[("x", "S")], &[("x == t(e(3))", "Bool")]);
    table(
        "sort S = struct c(Nat);",
        &[],
        &[
            ("c", "Nat -> S"),
            ("c(1)", "S"),
            ("c(-1)", "error: argument 1 of `c` has sort Int, where Nat is expected"),
        ],
    );
    table(
        "sort B; A = List(List(B)); C = List(B);",
        &[("f", "A"), ("g", "List(C)")],
        &[("f == g", "Bool"), ("f", "List(List(B))")],
    );
    table(
        "sort S; T = struct T0 | T1(pi_1: T)?IS_T1 | T2(pi_1: S)?IS_T2; map R: T -> Bool;",
        &[("p", "T")],
        &[("R(pi_1(p)) && IS_T1(p)", "Bool"), ("pi_1(p)", "error: `pi_1` is ambiguous")],
    );
    table("map c: Nat;", &[("c", "Bool")], &[("c", "Bool")]);
}

#[test]
fn declarations() {
    let cases = [
        ("sort S = struct c(p: Bool) | d(p: Bool, q: S);", ""),
        ("sort S = struct c; S = Nat;", "sort `S` is declared twice"),
        ("sort S; T; cons f: S; f: T;", "`f` is declared twice"),
        ("sort S; T; cons f: S; map f: T;", "`f` is declared twice"),
        ("sort A = struct open; B = struct open | closed;", "`open` is declared twice"),
        ("map Nat2Pos: Nat -> Pos;", "`Nat2Pos` is built in"),
        ("map head: Nat;", "`head` is built in"),
        ("sort S = U; U = S;", "defined in terms of itself"),
        ("sort S = List(S);", "sort `S` is defined in terms of itself"),
        ("sort G; F = F -> G;", "defined in terms of itself"),
        ("sort D = struct f(D);", "sort `D` has no elements"),
        ("sort D; cons f: D -> D;", "sort `D` has no elements"),
        ("sort G = struct f(Nat -> G);", "sort `G`"),
        ("sort A = struct f(Set(A)) | c;", "through a function sort, a Set or a Bag"),
        ("sort A = struct f(FSet(A)) | c;", ""),
        ("sort P = struct b(x: List(P));", ""),
        ("sort LP = List(P); P = struct b(x: LP);", ""),
        ("sort B = List(struct f(B));", ""),
        ("sort B = List(struct f(B) | c);", ""),
        ("sort A = struct a(B) | stop; B = struct b(A);", ""),
        ("sort A = Nat; B = A; map f: A -> B; eqn f(1) = 2;", ""),
        (
            "sort Array = Nat -> Nat; map update: Nat # Nat # Array -> Array; var i, n: Nat; f: Array; eqn update(i, n, f) = lambda j: Nat. if(i == j, n, f(j));",
            "",
        ),
        ("cons f: Bool;", "`f` cannot be a constructor of sort Bool"),
        ("sort S = struct a; cons f: S;", "`f` cannot be a constructor of sort S"),
        ("map f: X;", "sort `X` is not declared"),
        ("map f: Pos # Nat -> Bool; var x: Pos; eqn f(x, x) = true;", ""),
        ("map f: Nat -> Nat; var x: Nat; eqn f(x) = y;", "`y` is not declared"),
        (
            "map f: Nat -> Nat; var x, y: Nat; eqn f(x) = y;",
            "variable `y` of the right-hand side does not occur in the left-hand side",
        ),
        (
            "map f: Nat -> Nat; var x, y: Nat; eqn y > 1 -> f(x) = x;",
            "variable `y` of the condition does not occur",
        ),
        (
            "map f: Nat -> Nat; var x: Nat; eqn x = f(x);",
            "the left-hand side of an equation must be an operation",
        ),
        (
            "map f: Nat -> Pos; var x: Nat; eqn f(x) = x;",
            "the right-hand side has sort Nat, but the left-hand side has sort Pos",
        ),
        ("map f: Nat -> Int; var x: Nat; eqn f(x) = x;", ""),
        ("map f: Nat -> Nat -> Nat; var x, y: Nat; eqn f(x)(y) = x + y;", ""),
        ("map f: Bool; eqn f = g;", "`g` is not declared"),
        (
            "map f_dot: Set(Bool); eqn f_dot = if(true, {}, { o: Bool | true whr z = true end });",
            "",
        ),
        (
            "sort S; map f: S -> Bool; var S: S; eqn f(S) = S(S);",
            "variable `S` of sort S cannot be applied",
        ),
        ("sort S = struct a | b; map f: (struct a | b) -> S; var x: S; eqn f(x) = x;", ""),
        ("glob x: Nat; map f: Nat; eqn f = x;", "`x` is not declared"),
    ];
    for (text, expected) in cases {
        match specification(text) {
            Ok(_) => assert!(expected.is_empty(), "{text}: no error, expected {expected}"),
            Err(e) => assert!(
                !expected.is_empty() && e.message.contains(expected),
                "{text}: expected {expected}, found {}",
                e.message
            ),
        }
    }
}

#[test]
fn elaboration() {
    let mut spec =
        specification("sort S = struct c(p: Nat) | d(p: Nat, q: S)?is_d; map f: Nat -> Bool; g: Set(Nat) -> Bool;").unwrap().data;
    let mut check = |text: &str| {
        check_expression(&parse_data(Default::default(), text).unwrap(), &mut spec, None).unwrap()
    };
    // A literal number gets the expected sort, without a coercion.
    let e = check("f(1)");
    let ExprKind::Apply(_, args) = &e.kind else { panic!() };
    assert_eq!((args[0].sort, &args[0].kind), (basic::NAT, &ExprKind::Number(1.into())));
    let e = check("forall x: Pos. f(x)");
    let ExprKind::Bind(_, vars, body) = &e.kind else { panic!() };
    let ExprKind::Apply(_, args) = &body.kind else { panic!() };
    let sum = check("{1} >= {1, 2}");
    let set = check("g({1})");
    assert_eq!(args[0].as_builtin(&spec.signature).map(|b| b.0), Some(Builtin::PosToNat));
    assert_eq!(spec.signature.var(vars[0]).name, "x");
    let (builtin, args) = sum.as_builtin(&spec.signature).unwrap();
    assert_eq!(builtin, Builtin::Subset);
    assert_eq!(args[1].as_builtin(&spec.signature).map(|b| b.0), Some(Builtin::SetInsert));
    assert_eq!(args[0].span.start, 7, "turned around");
    let ExprKind::Apply(_, args) = &set.kind else { panic!() };
    let (builtin, inner) = args[0].as_builtin(&spec.signature).unwrap();
    assert_eq!(
        (builtin, spec.signature.sorts.text(inner[0].sort).as_str()),
        (Builtin::FSetToSet, "FSet(Nat)")
    );
    let (_, projection) = spec.signature.ops().find(|(_, op)| op.name == "p").unwrap();
    assert!(matches!(&projection.kind, OpKind::Projection(places) if places.len() == 2));
}

#[test]
fn notes_help() {
    let wider = specification("map f: Nat -> Nat; var x: Nat; eqn f(x) = x - 1;").err().unwrap();
    assert_eq!(wider.notes, ["`Int2Nat(…)` makes a Nat of one that is not below zero"]);
    let spec = specification("map foobar: Nat -> Nat; foobar: Bool -> Bool;").unwrap();
    let fail = |text: &str| {
        check_expression(
            &parse_data(Default::default(), text).unwrap(),
            &mut spec.data.clone(),
            None,
        )
        .unwrap_err()
    };
    assert!(fail("fobar(1)").notes[0].contains("foobar"));
    let e = fail("foobar([1])");
    assert_eq!(e.notes, ["candidate: foobar: Nat -> Nat", "candidate: foobar: Bool -> Bool"]);
    let e = fail("(forall k: Nat. true) && k == 1");
    assert_eq!(e.related[0].1, "the scope of the `forall` that binds `k` ends here");
    assert_eq!((e.span.unwrap().start, e.span.unwrap().end), (25, 26));
}

#[test]
fn large_inputs() {
    let mut spec = DataSpec::default();
    let mut check = |text: String| {
        let data = parse_data(Default::default(), &text).unwrap();
        check_expression(&data, &mut spec, None).map(|e| spec.signature.sorts.text(e.sort)).unwrap()
    };
    assert_eq!(check(vec!["true"; 10_000].join(" && ")), "Bool");
    assert_eq!(check(vec!["1"; 10_000].join(" + ")), "Pos");
    assert_eq!(check(vec!["[1]"; 3_000].join(" ++ ")), "List(Pos)");
    assert_eq!(check(format!("[0, {}]", vec!["1"; 100_000].join(", "))), "List(Nat)");
    assert_eq!(check(format!("{}1{}", "if(true, ".repeat(2000), ", 0)".repeat(2000))), "Nat");
    assert_eq!(check(format!("{}1{}", "[".repeat(300), "]".repeat(300))).len(), 300 * 6 + 3);
    assert!(check(format!("{}1{}", "{".repeat(40), "}".repeat(40))).starts_with("FSet(FSet("));
}

#[test]
fn formulas_find_model_names_again() {
    let spec = specification("sort A = struct a(p: Nat) | b; N = Nat; L = List(A);").unwrap();
    let before = spec.data.signature.sorts.named.len();
    let mut checker = Checker::new(spec.data);
    for (text, expected) in
        [("A", "A"), ("N", "Nat"), ("L", "List(A)"), ("struct a(p: Nat) | b", "A")]
    {
        let sort = checker.sort(&mu_syntax::parse_sort(Default::default(), text).unwrap()).unwrap();
        assert_eq!(checker.data.signature.sorts.text(sort), expected);
    }
    assert_eq!(checker.data.signature.sorts.named.len(), before);
}
