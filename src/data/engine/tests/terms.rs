//! Normal forms.

use super::{Engine, Program};
use super::{Fixture, table};
use crate::expr::{Expr, ExprKind};
use crate::sort::basic;
use mu_base::Span;

#[test]
fn booleans() {
    table(
        "sort D = struct d1 | d2; map u: Bool;",
        &[
            ("true && false", "false"),
            ("u && false", "false"),
            ("false && u", "false"),
            ("u || true", "true"),
            ("u => true", "true"),
            ("!(u && !u)", "true"),
            ("u", "u"),
            ("u == u", "true"),
            ("if(u, d1, d1)", "d1"),
            ("if(u, d1, d2)", "if(u, d1, d2)"),
            ("true < false", "false"),
            ("false < true", "true"),
        ],
    );
}

#[test]
fn numbers() {
    table(
        "map z: Nat; eqn z = 0;",
        &[
            ("1 + 2 * 3", "7"),
            ("9223372036854775807 + 1", "9223372036854775808"),
            ("9223372036854775808 - 1 == 9223372036854775807", "true"),
            ("exp(2, 100)", "1267650600228229401496703205376"),
            ("exp(2, 100) div exp(2, 98)", "4"),
            ("1 / 3 + 1 / 6", "1/2"),
            ("1 / 2 + 1 / 2 == 1", "true"),
            ("-7 div 2", "-4"),
            ("-7 mod 2", "1"),
            ("7 mod 3", "1"),
            ("5 - 7", "-2"),
            ("Int2Nat(5 - 7)", "Int2Nat(-2)"),
            ("Int2Nat(7 - 5)", "2"),
            ("Nat2Pos(z)", "Nat2Pos(0)"),
            ("max(3, -4)", "3"),
            ("min(3, 4)", "3"),
            ("abs(-4)", "4"),
            ("floor(7 / 2)", "3"),
            ("ceil(7 / 2)", "4"),
            ("round(7 / 2)", "4"),
            ("succ(4)", "5"),
            ("pred(4)", "3"),
            ("floor(-(7 / 2))", "-4"),
            ("1 / 2 < 2 / 3", "true"),
            ("sqrt(17)", "4"),
        ],
    );
}

#[test]
fn lists() {
    table(
        "sort D = struct d1 | d2;",
        &[
            ("[1, 2] ++ [3]", "[1, 2, 3]"),
            ("[1, 2] <| 3", "[1, 2, 3]"),
            ("0 |> [1]", "[0, 1]"),
            ("[1, 2, 3] . 1", "2"),
            ("head([1, 2])", "1"),
            ("tail([1, 2])", "[2]"),
            ("rhead([1, 2])", "2"),
            ("rtail([1, 2])", "[1]"),
            ("#[1, 2, 3]", "3"),
            ("2 in [1, 2]", "true"),
            ("3 in [1, 2]", "false"),
            ("[1, 2] < [1, 3]", "true"),
            ("[1] < [1, 3]", "true"),
            ("[2] <= [1, 3]", "false"),
            ("[d1] == [d1, d2]", "false"),
            ("[d1, head([])] == [d2, head([])]", "false"),
            ("[head([])] == [d1]", "d1 == head([])"),
            ("[] == [d1]", "false"),
        ],
    );
}

#[test]
fn sets_and_bags() {
    table(
        "sort D = struct d1 | d2 | d3;",
        &[
            ("{d2, d1, d2}", "{d1, d2}"),
            ("{1, 2} + {2, 3}", "{1, 2, 3}"),
            ("{1, 2} - {2, 3}", "{1}"),
            ("{1, 2} * {2, 3}", "{2}"),
            ("{1} < {1, 2}", "true"),
            ("{1, 2} <= {1, 2}", "true"),
            ("{1, 2} == {2, 1}", "true"),
            ("1 in {1, 2}", "true"),
            ("#{1, 2, 1}", "2"),
            ("{1: 2, 2: 1} + {1: 1}", "{1: 3, 2: 1}"),
            ("{1: 2, 2: 1} - {1: 1}", "{1: 1, 2: 1}"),
            ("{1: 2} - {1: 5}", "{:}"),
            ("{1: 2, 2: 4} * {2: 3}", "{2: 3}"),
            ("count(2, {2: 3})", "3"),
            ("count(1, {2: 3})", "0"),
            ("#{1: 2, 2: 4}", "6"),
            ("2 in {2: 3}", "true"),
            ("{ d: D | d != d2 }", "{d1, d3}"),
            ("{ n: Nat | n < 3 }", "{0, 1, 2}"),
            ("{ n: Nat | n < 3 } == {0, 1, 2}", "true"),
            ("5 in { n: Nat | n mod 2 == 1 }", "true"),
            ("!{d1}", "{d2, d3}"),
            ("1 in !{1, 2}", "false"),
            ("3 in !{1, 2}", "true"),
            ("{1, 2, 3} * !{2}", "{1, 3}"),
            ("!{1} * !{2} == !{1, 2}", "true"),
            ("!{1} + {1, 2} == !{}", "true"),
            ("{1} == !{1}", "false"),
            ("4 in { n: Nat | n > 2 } * { n: Nat | n < 5 }", "true"),
            ("count(3, { n: Nat | n * 2 })", "6"),
            ("Bag2Set({1: 2})", "{1}"),
            ("Set2Bag({1, 2})", "{1: 1, 2: 1}"),
            ("{head([]), d1}", "@set_insert(head([]), {d1})"),
            ("{ n: Nat | n } == {1: 1}", "false"),
            ("{ n: Nat | n } == { n: Nat | n * n }", "false"),
            ("{ n: Nat | n + n } == { n: Nat | 2 * n }", "true"),
            ("{ n: Nat | n } * {2: 1, 3: 5}", "{2: 1, 3: 3}"),
            ("{2: 1, 3: 5} - { n: Nat | n }", "{3: 2}"),
        ],
    );
}

/// Complements of sorts with too many elements to list each complement.
#[test]
fn complements_in_large_sorts() {
    table(
        "sort D = struct d0 | d1 | d2 | d3 | d4 | d5 | d6 | d7; P = struct p(D, D, D, D, D)?is_p;
         map all: Set(P); eqn all = { x: P | is_p(x) };",
        &[
            ("!{} == all", "true"),
            ("!{p(d0, d0, d0, d0, d0)} == all", "false"),
            ("!{p(d0, d0, d0, d0, d0)} == all - {p(d0, d0, d0, d0, d0)}", "true"),
            ("!{p(d0, d0, d0, d0, d0)} == all - {p(d0, d0, d0, d0, d1)}", "false"),
            ("!{} == {p(d0, d0, d0, d0, d0)}", "false"),
        ],
    );
}

#[test]
fn functions() {
    table(
        "sort A = struct a1 | a2 | a3; map f: A -> Nat; g, h: Nat -> Nat; k: Nat -> Nat -> Nat; c: Nat -> Nat;
         var a: A; n, m: Nat;
         eqn f(a) = 0; g(n) = n + 1; k(n)(m) = n * 10 + m; c = lambda x: Nat. x + 2;",
        &[
            ("f[a1 -> 1](a1)", "1"),
            ("f[a1 -> 1](a2)", "0"),
            ("f[a1 -> 1][a1 -> 0]", "f"),
            ("f[a2 -> 1][a1 -> 2]", "f[a1 -> 2][a2 -> 1]"),
            ("f[a2 -> 1][a1 -> 2] == f[a1 -> 2][a2 -> 1]", "true"),
            ("f[a2 -> 1] == f[a2 -> 2]", "false"),
            ("f == f[a3 -> 0]", "true"),
            ("f == (lambda a: A. 0)", "true"),
            ("g(4)", "5"),
            ("k(4)(5)", "45"),
            ("h(4)", "h(4)"),
            ("c(5)", "7"),
            ("(lambda x: Nat, y: Nat. x - y)(5, 3)", "2"),
            ("(lambda x: Nat. lambda y: Nat. x - y)(5)(3)", "2"),
            ("(lambda x: Nat. x + 1) == (lambda y: Nat. y + 1)", "true"),
            ("g == (lambda y: Nat. y + 1)", "true"),
            ("k(1) == k(1)", "true"),
            ("h[1 -> 2](1) + h[1 -> 2](0)", "2 + h(0)"),
            ("x + y whr x = 1, y = 2 end", "3"),
            ("x whr x = (y + 1 whr y = 4 end) end", "5"),
        ],
    );
}

#[test]
fn structured_sorts() {
    table(
        "sort T = struct leaf(value: Nat)?is_leaf | node(left: T, right: T)?is_node; E = struct e1 | e2(n: Nat);
         map total: T -> Nat; var n: Nat; s, t: T; eqn total(leaf(n)) = n; total(node(s, t)) = total(s) + total(t);",
        &[
            ("total(node(leaf(1), node(leaf(2), leaf(3))))", "6"),
            ("is_leaf(leaf(1))", "true"),
            ("is_node(leaf(1))", "false"),
            ("value(leaf(4))", "4"),
            ("value(left(node(leaf(7), leaf(1))))", "7"),
            ("left(leaf(1))", "left(leaf(1))"),
            ("left(leaf(1)) == left(leaf(1))", "true"),
            ("leaf(3) < node(leaf(1), leaf(1))", "true"),
            ("leaf(3) < leaf(2)", "false"),
            ("node(leaf(1), leaf(2)) <= node(leaf(1), leaf(2))", "true"),
            ("node(leaf(1), leaf(2)) == node(leaf(1), leaf(3))", "false"),
            ("e1 < e2(0)", "true"),
            ("total(left(leaf(2)))", "total(left(leaf(2)))"),
        ],
    );
}

#[test]
fn matching() {
    table(
        "sort D; cons a, b: D; s: D -> D;
         map eq: Nat # Nat -> Bool; first: List(Nat) -> Nat; p: Nat -> Nat; dup: List(D) -> Bool; late: Nat -> Nat;
             q: Int -> Nat; some: Pos; any: Int; two: List(Nat) -> Nat; g, k: Nat -> Nat; r: D # D -> Nat; w: Bool # Bool -> Nat;
         var n, m: Nat; l: List(Nat); x, y: D; ds: List(D); i: Pos; j: Nat;
         eqn eq(n, n) = true; n != m -> eq(n, m) = false;
             first([]) = 0; first(n |> l) = n;
             p(0) = 100; p(5) = 500; n > 5 -> p(n) = 7; p(n) = 1;
             dup(x |> x |> ds) = true; dup(x |> ds) = dup(ds); dup([]) = false;
             late(n) = n + 1; late(3) = 0;
             q(Pos2Int(i)) = 1; q(0) = 2; q(-1) = 3; q(-99999999999999999999) = 4;
             q(-9223372036854775808) = 5;
             two([n, m]) = n + m; two(l) = 0;
             g(n) = k(n); k(0) = g(0);
             s(s(x)) = x; r(a, y) = 1; r(x, b) = 2; r(s(x), y) = 3;
             w(true, false) = 1; w(false, true) = 2;",
        &[
            ("eq(3, 3)", "true"),
            ("eq(3, 4)", "false"),
            ("first([])", "0"),
            ("first([4, 5])", "4"),
            ("p(0)", "100"),
            ("p(5)", "500"),
            ("p(6)", "7"),
            ("p(3)", "1"),
            ("dup([a, b, b])", "true"),
            ("dup([a, b, a])", "false"),
            ("late(3)", "0"),
            ("late(4)", "5"),
            ("q(7)", "1"),
            ("q(0)", "2"),
            ("q(-1)", "3"),
            ("q(-2)", "q(-2)"),
            // A term without a value is positive if its sort is Pos.
            ("q(some)", "1"),
            ("q(some + abs(any))", "1"),
            ("q(any)", "q(any)"),
            ("q(some - 1)", "q(some - 1)"),
            ("q(-99999999999999999999)", "4"),
            ("q(-9223372036854775808)", "5"),
            ("two([1, 2])", "3"),
            ("two([1, 2, 3])", "0"),
            ("s(s(s(a)))", "s(a)"),
            ("s(s(a)) == a", "true"),
            ("s(a) == a", "a == s(a)"),
            ("r(s(a), b)", "2"),
            ("r(s(a), a)", "3"),
            ("r(a, a)", "1"),
            ("r(b, a)", "r(b, a)"),
            ("w(true, true)", "w(true, true)"),
            ("w(false, true)", "2"),
            ("k(1)", "k(1)"),
            ("g(0)", "error: rewriting does not end"),
        ],
    );
}

#[test]
fn user_equality() {
    table(
        "sort D, E; cons d1, d2: D; e1, e2: E;
         map isd: D -> Bool;
         var d: D; eqn d1 == d2 = true; isd(d1) = true;",
        &[
            ("d1 == d2", "true"),
            ("[d1] == [d2]", "true"),
            ("d1 in {d2}", "true"),
            ("e1 == e2", "false"),
            ("isd(d2)", "isd(d2)"),
        ],
    );
}

#[test]
fn rules_for_built_in_operations() {
    table(
        "sort P = struct red | green; map u: Bool; f: Nat -> Nat; g: P -> P; v: P;
         var b: Bool; p, q, r: P; n: Nat;
         eqn if(b, p, q) == r = if(b, p == r, q == r); if(b, true, false) = b; if(b, n, n + 1) = 7; g(if(b, p, q)) = if(b, g(p), g(q));
             g(red) = green; g(green) = red; f(n) = if(n == 0, 0, f(Int2Nat(n - 1)));",
        &[
            ("red == green", "false"),
            ("[red] == [red]", "true"),
            ("if(u, red, green) == red", "u"),
            ("if(u, 4, 4 + 1)", "if(u, 4, 5)"),
            ("f(1000)", "0"),
            ("g(if(u, red, green))", "if(u, green, red)"),
            ("v == red", "red == v"),
        ],
    );
}

#[test]
fn quantifiers() {
    table(
        "sort D = struct d1 | d2 | d3; map prime: Nat -> Bool; var n: Nat;
         eqn prime(n) = n > 1 && !(exists k: Pos. 2 <= k && k < n && n mod k == 0);",
        &[
            ("forall d: D. d == d", "true"),
            ("exists d, e: D. d != e", "true"),
            ("forall d: D. exists e: D. d != e", "true"),
            ("forall n: Nat. n < 5 => n * n < 25", "true"),
            ("exists n: Nat. n < 5 && n * n == 16", "true"),
            ("exists n: Nat. n > 20 && prime(n)", "true"),
            ("prime(17)", "true"),
            ("prime(15)", "false"),
            ("forall x: Int. -3 <= x && x < 3 => x * x <= 9", "true"),
            ("exists l: List(Bool). #l == 3 && head(l)", "true"),
            ("forall l: List(Bool). #l < 3 => #l <= 2", "true"),
            ("exists x: Nat. x + 3 == 5", "true"),
            ("exists x: Nat. x + 5 == 3", "false"),
            ("forall b: Bool. b || !b", "true"),
            ("forall n: Nat. n < 3 || n >= 3", "true"),
        ],
    );
}

#[test]
fn deep_terms_and_limits() {
    let mut f = Fixture::new(
        "sort P = struct zero | s(P);
         map up: Nat -> List(Nat); len: List(Nat) -> Nat; peano: Nat -> P; value: P -> Nat; grow, spin: Nat -> Nat;
         var n: Nat; l: List(Nat); x: P;
         eqn n > 0 -> up(n) = n |> up(Int2Nat(n - 1)); up(0) = [];
             len([]) = 0; len(n |> l) = 1 + len(l);
             n > 0 -> peano(n) = s(peano(Int2Nat(n - 1))); peano(0) = zero;
             value(zero) = 0; value(s(x)) = 1 + value(x);
             grow(n) = grow(n + 1) + 1; spin(n) = spin(n + 1);",
    );
    assert_eq!(f.normal("len(up(60000))"), "60000");
    assert_eq!(f.normal("value(peano(50000))"), "50000");
    assert_eq!(f.normal("up(30000) == up(30000) && peano(30000) == peano(30000)"), "true");
    let text = f.normal("grow(0)");
    assert!(text.contains("rewriting does not end") && text.contains("grow"), "{text}");
    // A call that is replaced by another is not nested: the limit on steps ends it.
    assert_eq!(
        f.normal("spin(7)"),
        "error: rewriting does not end: more than 1000000 steps, the last of `spin`"
    );
}

/// A tree of depth 100 with equal halves: 2^100 leaves. It is moved from one engine to another and
/// back, compared with a separately built tree, and hashed.
#[test]
fn values_that_share_their_parts() {
    let mut f = Fixture::new(
        "sort T = struct leaf | node(T, T) | bush(List(T));
         map full, bushy: Nat # T -> T;
         var n: Nat; t: T;
         eqn full(0, t) = t; n > 0 -> full(n, t) = full(Int2Nat(n - 1), node(t, t));
             bushy(0, t) = t; n > 0 -> bushy(n, t) = bushy(Int2Nat(n - 1), bush([t, t, t]));",
    );
    for name in ["full", "bushy"] {
        let e = f.expr(&format!("{name}(100, leaf)"), None);
        let longer = f.expr(&format!("{name}(101, leaf)"), None);
        let same = f.expr(&format!("{name}(100, leaf) == {name}(100, leaf)"), None);
        let program = Program::compile(&f.spec).unwrap();
        let [mut one, mut other] = [0; 2].map(|_| Engine::new(program.clone()));
        let value = one.from_expr(&e).unwrap();
        let exported = one.to_expr_at(&value, e.sort);
        let imported = other.from_normal(&exported).unwrap();
        let rebuilt = other.from_expr(&e).unwrap();
        assert!(value == imported && imported == rebuilt, "{name}");
        assert_eq!(
            ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(&imported),
            ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(&rebuilt)
        );
        assert_ne!(imported, other.from_expr(&longer).unwrap());
        let back = other.to_expr_at(&rebuilt, e.sort);
        assert!(back == exported, "{name}");
        assert!(!value.is_within(1_000_000));
        assert!(one.from_expr(&same).unwrap().is_true(), "{name}");
    }
    let small = f.expr("node(leaf, bush([leaf, leaf]))", None);
    let mut engine = Engine::new(Program::compile(&f.spec).unwrap());
    let small = engine.from_expr(&small).unwrap();
    assert!(small.is_within(9) && !small.is_within(4));
}

/// Arguments of constructors are evaluated, and only a normal expression represents its value.
#[test]
fn constructors_over_expressions_that_are_not_normal() {
    let mut f = Fixture::new("sort P = struct pair(Bool, Nat);");
    let (e, normal) = (f.expr("pair(!true, 1 + 1)", None), f.expr("pair(false, 2)", None));
    let mut engine = Engine::new(Program::compile(&f.spec).unwrap());
    let [first, second] = [0; 2].map(|_| engine.from_expr(&e).unwrap());
    assert_eq!(first, second);
    assert_eq!(engine.to_expr_at(&first, e.sort), normal);
    assert_eq!(engine.from_normal(&normal).unwrap(), first);
}

/// The sort of an equation's left-hand side may be determined by the right-hand side only.
#[test]
fn equations_with_the_sort_of_the_right_side() {
    table(
        "sort D = struct d1 | d2; map e: List(Nat); f: List(D);
         eqn head([]) = 0; e = []; head([]) = d2; f = []; tail([]) = [d1]; rhead([]) = if(true, 3, 2);",
        &[("head(e)", "0"), ("head(e) + 1", "1"), ("head(f)", "d2"), ("tail(f)", "[d1]"), ("head([5])", "5"), ("rhead([7])", "7")],
    );
}

/// An argument that only some equations use is evaluated only if such an equation is chosen:
/// otherwise these terms would not terminate.
#[test]
fn lazy_arguments() {
    table(
        "sort Answer = struct some(value: Nat) | none;
         map cond: Bool # Nat # Nat -> Nat; fac, descend, odd: Nat -> Nat; orelse: Answer # Answer -> Answer; find: Nat # (Nat -> Bool) -> Answer;
             loop: Nat -> Nat; both: Bool # Nat # Nat # Nat -> Nat; guarded: Nat # Nat -> Nat; twice: Nat # Nat -> Nat; chosen: Nat # Nat # Nat -> Nat;
             curried: Bool -> Nat # Nat -> Nat; field: Answer # Nat # Nat -> Nat; deep: Nat # Nat -> Nat;
         var b: Bool; n, m, k: Nat; a: Answer; f: Nat -> Bool;
         eqn cond(true, n, m) = n; cond(false, n, m) = m;
             fac(n) = cond(n == 0, 1, n * fac(Int2Nat(n - 1)));
             descend(n) = cond(n == 0, 0, descend(Int2Nat(n - 1)));
             odd(n) = cond(n < 2, n, odd(Int2Nat(n - 2)));
             orelse(some(n), a) = some(n); orelse(none, a) = a;
             find(n, f) = orelse(if(f(n), some(n), none), find(n + 1, f));
             loop(n) = loop(n + 1);
             both(true, n, m, k) = n + m; both(false, n, m, k) = m + k;
             n > 5 -> guarded(n, m) = n; n <= 5 -> guarded(n, m) = m;
             twice(0, n) = 0; twice(n, m) = m + m;
             n == 1 -> chosen(n, m, k) = m; n > 1 -> chosen(n, m, k) = k;
             curried(true)(n, m) = n; curried(false)(n, m) = m;
             field(some(n), m, k) = n + m; field(none, m, k) = k;
             deep(0, m) = m; n > 0 -> deep(n, m) = deep(Int2Nat(n - 1), cond(m > 3, m, loop(m)));",
        &[
            ("fac(20)", "2432902008176640000"),
            ("descend(200000)", "0"),
            ("odd(300001)", "1"),
            ("find(3, lambda i: Nat. i * i > 50)", "some(8)"),
            ("orelse(some(1), some(loop(1)))", "some(1)"),
            ("both(true, 1, fac(3), loop(0))", "7"),
            ("both(false, loop(0), fac(3), 1 + fac(2))", "9"),
            ("guarded(6, loop(1))", "6"),
            ("guarded(5, fac(4))", "24"),
            ("twice(0, loop(1))", "0"),
            ("twice(1, fac(3))", "12"),
            ("chosen(1, fac(3), loop(1))", "6"),
            ("chosen(2, loop(1), fac(3))", "6"),
            ("curried(true)(fac(3), loop(1))", "6"),
            ("field(some(fac(3)), fac(4), loop(1))", "30"),
            ("field(none, loop(1), fac(4))", "24"),
            ("deep(3, fac(3))", "6"),
        ],
    );
}

/// Laziness extends to functions of one equation, also if these are composed.
#[test]
fn lazy_arguments_of_one_equation() {
    table(
        "map ite, unless: Bool # Nat # Nat -> Nat; loop, fac, first, down: Nat -> Nat; both: Bool # Bool -> Bool; three: Bool # Bool # Nat # Nat -> Nat;
             ignore: Nat # Nat -> Nat; named: Bool # Nat # Nat -> Nat; closed: Nat # Bool # Nat -> Nat; search: Nat # (Nat -> Bool) -> Nat;
             within: Nat # Bool -> Nat; even, odd: Nat # Bool -> Bool; swap: Nat # Nat # Bool -> Nat; turn: Nat # Nat # Bool -> Nat; constant: Nat;
         var b, c: Bool; x, y: Nat; f: Nat -> Bool;
         eqn ite(b, x, y) = if(b, x, y); unless(b, x, y) = ite(b, y, x);
             loop(x) = loop(x + 1);
             fac(x) = unless(x == 0, x * fac(Int2Nat(x - 1)), 1);
             first(x) = ite(x * x > 50, x, first(x + 1)); down(x) = ite(x == 0, 0, down(Int2Nat(x - 1)));
             both(b, c) = !(b => !c);
             three(b, c, x, y) = if(b, x, if(c, y, x + 1));
             ignore(x, y) = x;
             named(b, x, y) = if(b, z + x, z + y) whr z = ite(b, 10, 20) end;
             closed(x, b, y) = ite(exists v: Nat. v < 3 && v == x, if(b, y, 2), x);
             search(x, f) = ite(f(x), x, search(x + 1, f));
             within(x, b) = if(b, if(exists v: Nat. v < 3 && v == x, 1, 2), 0);
             even(x, b) = if(x == 0, b, odd(Int2Nat(x - 1), b)); odd(x, b) = if(x == 0, !b, even(Int2Nat(x - 1), b));
             swap(x, y, b) = if(b, turn(y, x, false), x); turn(y, x, b) = if(b, swap(y, x, b), y);
             constant = ite(true, fac(4), loop(0));",
        &[
            ("fac(20)", "2432902008176640000"),
            ("first(1)", "8"),
            ("down(200000)", "0"),
            ("ite(true, 1, loop(0))", "1"),
            ("ite(1 < 2, ite(2 < 1, loop(1), fac(3)), loop(0))", "6"),
            ("unless(false, 7, loop(0))", "7"),
            ("both(false, loop(0) > 1)", "false"),
            ("both(true, fac(3) > 1)", "true"),
            ("three(true, loop(0) > 1, fac(3), loop(1))", "6"),
            ("three(false, true, loop(0), fac(3))", "6"),
            ("three(false, false, fac(3), loop(0))", "7"),
            ("ignore(3, loop(0))", "3"),
            ("ignore(fac(3), ignore(loop(0), loop(1)))", "6"),
            ("named(true, fac(3), loop(0))", "16"),
            ("named(false, loop(0), fac(3))", "26"),
            ("closed(2, true, fac(3))", "6"),
            ("closed(5, loop(0) > 1, loop(0))", "5"),
            ("search(3, lambda i: Nat. i * i > 50)", "8"),
            // Under a binder the argument is evaluated first.
            ("within(fac(2), true)", "1"),
            ("within(fac(4), true)", "2"),
            ("within(fac(4), false)", "0"),
            ("even(7, fac(3) == 6)", "false"),
            ("even(8, fac(3) == 6)", "true"),
            // Arguments under variables that the equations name as well.
            ("swap(fac(3), loop(0), false)", "6"),
            ("swap(fac(3), fac(4), true)", "24"),
            ("turn(fac(3), loop(0), false)", "6"),
            ("(lambda x: Nat. ite(x > 3, x, loop(x)))(5)", "5"),
            ("(lambda y: Nat. ite(y > 3, fac(y) + y, loop(y)))(4)", "28"),
            ("ite(false, loop(0), x + fac(3)) whr x = 5 end", "11"),
            ("constant", "24"),
        ],
    );
}

/// Abstractions over another function are equal to the corresponding updates, and can return to the
/// original function.
#[test]
fn abstractions_that_are_updates() {
    table(
        "sort D = struct d1 | d2; B = Nat -> struct data(get: D) | empty;
         map none: B; ins: D # Nat # B -> B; del: Nat # B -> B; twice: D # Nat # Nat # B -> B; far: Nat -> D; late: Nat # B -> B; own: (Nat -> Nat) -> Nat -> Nat;
         var d: D; i, k: Nat; q: B; f: Nat -> Nat;
         eqn none = lambda j: Nat. empty;
             ins(d, i, q) = lambda j: Nat. if(i == j, data(d), q(j));
             del(i, q) = lambda j: Nat. if(j == i, empty, q(j));
             twice(d, i, k, q) = lambda j: Nat. if(i == j, data(d), if(j == k, empty, q(j)));
             far(i) = far(i + 1);
             late(i, q) = lambda j: Nat. if(i == j, data(far(i)), q(j));
             own(f) = lambda j: Nat. if(j == j + 1, 7, f(j));",
        &[
            ("del(3, ins(d1, 3, none)) == none", "true"),
            ("ins(d1, 2, ins(d2, 5, none)) == ins(d2, 5, ins(d1, 2, none))", "true"),
            ("ins(d1, 2, ins(d2, 2, none)) == ins(d1, 2, none)", "true"),
            ("ins(d1, 2, none) == ins(d2, 2, none)", "false"),
            ("ins(d1, 2, none)", "lambda j: Nat. …[2 -> data(d1)]"),
            ("twice(d2, 1, 4, ins(d1, 4, none)) == ins(d2, 1, none)", "true"),
            // The first condition that holds decides.
            ("twice(d2, 4, 4, none)(4)", "data(d2)"),
            // A nonterminating argument is not evaluated before it is needed.
            ("late(3, none)(4)", "empty"),
            // A key that depends on the argument is not a key.
            ("own(lambda j: Nat. j)(5)", "5"),
        ],
    );
}

#[test]
fn functions_that_differ_in_names_of_variables_are_one_value() {
    let mut f = Fixture::new(
        "sort E = struct e1 | e2; map f, g: Nat -> Bool; k: Nat -> Nat -> Bool; \
         var n: Nat; eqn f = lambda x: Nat. x < 3; g = lambda y: Nat. y < 3; \
         k(n) = lambda y: Nat. y < n;",
    );
    let mut equal = |one: &str, two: &str| {
        let exprs = [one, two].map(|text| f.expr(text, None));
        let mut engine = Engine::new(Program::compile(&f.spec).unwrap());
        let [one, two] =
            exprs.map(|e| engine.from_expr(&e).unwrap_or_else(|e| panic!("{one}, {two}: {e:?}")));
        one == two
    };
    for (one, two) in [
        ("f", "g"),
        ("f", "lambda z: Nat. z < 3"),
        ("k(2)", "(lambda a: Nat. lambda b: Nat. b < a)(2)"),
        ("lambda x, y: Nat. x < y", "lambda y, x: Nat. y < x"),
        ("lambda x: Nat. exists y: Nat. y < x", "lambda y: Nat. exists z: Nat. z < y"),
        ("(lambda x: E. false)[e1 -> true]", "(lambda y: E. false)[e1 -> true]"),
        ("{x: Nat | x mod 2 == 0}", "{y: Nat | y mod 2 == 0}"),
        ("lambda x: Nat. (z whr z = x + 1 end)", "lambda a: Nat. (b whr b = a + 1 end)"),
    ] {
        assert!(equal(one, two), "{one} and {two}");
    }
    for (one, two) in [
        ("lambda x, y: Nat. x < y", "lambda x, y: Nat. y < x"),
        ("lambda x: Nat. x < 3", "lambda x: Int. x < 3"),
        ("lambda x: Nat. x < 3", "lambda x: Nat. x < 4"),
        ("k(2)", "k(3)"),
        ("lambda x: Nat. exists y: Nat. y < x", "lambda x: Nat. exists y: Nat. x < y"),
        ("{x: Nat | x mod 2 == 0}", "{x: Nat | x mod 2 == 1}"),
    ] {
        assert!(!equal(one, two), "{one} and {two}");
    }
}

/// Normal forms of functions are equal to the functions, and equal for equal ones.
#[test]
fn functions_have_normal_forms() {
    let mut f = Fixture::new(
        "sort E = struct e1 | e2 | e3; \
         map g: E -> Bool; h: Nat -> Nat; c: Nat -> Nat -> Nat; id: (Nat -> Nat) -> Nat -> Nat; \
         flip: (Nat -> Nat -> Nat) -> Nat -> Nat -> Nat; \
         var x: E; n, m: Nat; k: Nat -> Nat; l: Nat -> Nat -> Nat; \
         eqn g(x) = x == e2; h(n) = n + 1; c(n)(m) = n + 2 * m; id(k) = lambda y: Nat. k(y); \
         flip(l) = lambda y: Nat. lambda z: Nat. l(z)(y);",
    );
    let normal = |f: &mut Fixture, text: &str| {
        let e = f.expr(text, None);
        let mut engine = Engine::new(Program::compile(&f.spec).unwrap());
        let value = engine.from_expr(&e).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let normal = engine.normal_functions(&value, e.sort).into_owned();
        let again = engine.normal_functions(&normal, e.sort).into_owned();
        let [normal, again] = [normal, again].map(|v| {
            let e = engine.to_expr_at(&v, e.sort);
            crate::print::expression(engine.program().signature(), &e)
        });
        assert_eq!(normal, again, "{text}");
        normal
    };
    for same in [
        &["lambda x: E. x == e2", "lambda y: E. g(y)", "lambda y: E. (lambda z: E. z == e2)(y)"][..],
        &["(lambda y: E. true)[e1 -> false][e3 -> true]", "(lambda z: E. true)[e1 -> false]"],
        &["lambda n: Nat. n + 1", "id(lambda m: Nat. m + 1)", "id(id(lambda n: Nat. n + 1))"],
        &[
            "flip(flip(lambda n: Nat. lambda m: Nat. n + 2 * m))",
            "lambda a: Nat. lambda b: Nat. a + 2 * b",
        ],
        &["lambda a, b: Bool. a && b", "lambda x, y: Bool. x && y"],
        &[
            "{n: Nat | n > 3}",
            "{m: Nat | m in {n: Nat | n > 3}}",
            "{n: Nat | n > 3} * {n: Nat | n > 3}",
        ],
        &["[lambda x: E. x == e2]", "[lambda y: E. g(y)]"],
        &["(lambda n: Nat. n)[3 -> 4]", "(id(lambda n: Nat. n))[3 -> 4]"],
    ] {
        let first = normal(&mut f, same[0]);
        for other in same {
            assert_eq!(normal(&mut f, other), first, "{} and {other}", same[0]);
        }
    }
    for (one, other) in [
        ("lambda x: E. x == e2", "lambda x: E. x == e3"),
        (
            "lambda n: Nat. lambda m: Nat. n + 2 * m",
            "flip(lambda n: Nat. lambda m: Nat. n + 2 * m)",
        ),
        ("lambda a, b: Bool. a => b", "lambda a, b: Bool. b => a"),
        ("{n: Nat | n > 3}", "{n: Nat | n > 4}"),
        ("lambda n: Nat. exists m: Nat. m + m == n", "lambda n: Nat. exists m: Nat. n + n == m"),
    ] {
        assert_ne!(normal(&mut f, one), normal(&mut f, other), "{one} and {other}");
    }
    for (function, arguments) in [
        ("lambda n: Nat. if(n < 5, h(n), n mod 7)", "0 1 4 5 6 7 100"),
        ("flip(c)(3)", "0 1 9"),
        ("id(id(h))", "0 8"),
        ("(lambda n: Nat. n * n)[2 -> 7][3 -> 9]", "0 1 2 3 4"),
        ("lambda n: Nat. (w(n) whr w = lambda m: Nat. n + m end)", "0 3"),
        ("lambda n: Nat. if(exists m: Nat. m < n && m * m == n, 1, 0)", "0 1 4 5"),
    ] {
        let e = f.expr(function, None);
        let calls: Vec<Expr> =
            arguments.split(' ').map(|a| f.expr(&format!("({function})({a})"), None)).collect();
        let arguments: Vec<Expr> =
            arguments.split(' ').map(|a| f.expr(a, Some(basic::NAT))).collect();
        let mut engine = Engine::new(Program::compile(&f.spec).unwrap());
        let value = engine.from_expr(&e).unwrap();
        let normal = engine.normal_functions(&value, e.sort);
        let normal = engine.to_expr_at(&normal, e.sort);
        for (call, argument) in calls.iter().zip(arguments) {
            let there = Expr::new(
                ExprKind::Apply(normal.clone(), vec![argument]),
                call.sort,
                Span::default(),
            );
            assert_eq!(
                engine.from_expr(&there).unwrap(),
                engine.from_expr(call).unwrap(),
                "{function}"
            );
        }
    }
}
