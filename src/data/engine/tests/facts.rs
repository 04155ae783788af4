//! Rules for undecided terms: facts that hold for every number, condition and collection.

use super::table;

/// Projections of the wrong constructor: terms of each sort without a value.
const TERMS: &str = "sort Q = struct q(v: Nat) | nq;
     R = struct r(w: Int, b: Bool, p: Pos, e: Set(Nat), f: Bag(Nat), h: List(Nat)) | nr;
map t: Nat; z: Int; c: Bool; one: Pos; s: Set(Nat); g: Bag(Nat); l: List(Nat);
eqn t = v(nq); z = w(nr); c = b(nr); one = p(nr); s = e(nr); g = f(nr); l = h(nr);";

#[test]
fn numbers() {
    table(
        TERMS,
        &[
            ("0 <= t", "true"),
            ("t >= 0", "true"),
            ("succ(t) > 0", "true"),
            ("t < 0", "false"),
            ("0 == succ(t)", "false"),
            ("max(0, t) == t", "true"),
            ("min(0, t)", "0"),
            ("exp(t, 0)", "1"),
            ("exp(1, t)", "1"),
            ("t < t + 1", "true"),
            ("t == t + 1", "false"),
            ("t * 0", "0"),
            ("z * 0", "0"),
            ("z - z", "0"),
            ("one >= 1", "true"),
            ("one < 1", "false"),
            ("0 < one", "true"),
            ("abs(z) >= 0", "true"),
            ("abs(t) == t", "true"),
            ("Int2Nat(t) == t", "true"),
            ("t div 1 == t", "true"),
            ("t mod 1", "0"),
            ("t mod 5 < 5", "true"),
            ("z mod 5 <= 4", "true"),
            ("z mod 5 == 5", "false"),
            ("z mod 5 < 4", "(w(nr) mod 5) < 4"),
            ("z < 0", "w(nr) < 0"),
            ("floor(z) == z", "true"),
            ("succ(pred(z)) == z", "true"),
            ("-(-z) == z", "true"),
            ("#l >= 0", "true"),
            ("count(3, g) >= 0", "true"),
        ],
    );
}

#[test]
fn conditions() {
    table(
        TERMS,
        &[
            ("(forall n: Bool. n || c) == c", "true"),
            ("(exists n: Bool. n && c) == c", "true"),
            ("forall n: Bool. n || c", "b(nr)"),
            ("c && !c", "false"),
            ("c || !c", "true"),
            ("c => c", "true"),
            ("c == !c", "false"),
            ("if(c, true, false) == c", "true"),
            ("if(c, false, true) == !c", "true"),
            ("c == true", "b(nr)"),
            ("exists n: Nat. n == t", "true"),
            ("forall n: Nat. n >= 0 || c", "true"),
        ],
    );
}

#[test]
fn collections() {
    table(
        TERMS,
        &[
            ("s + {} == s", "true"),
            ("{} + s == s", "true"),
            ("s * {}", "{}"),
            ("s - {} == s", "true"),
            ("{} - s", "{}"),
            ("s - s", "{}"),
            ("s + s == s", "true"),
            ("s * s == s", "true"),
            ("s <= s", "true"),
            ("{} <= s", "true"),
            ("3 in s || !(3 in s)", "true"),
            ("g + {:} == g", "true"),
            ("g * {:}", "{:}"),
            ("g - g", "{:}"),
            ("g * g == g", "true"),
            ("{:} <= g", "true"),
            ("l ++ [] == l", "true"),
            ("[] ++ l == l", "true"),
        ],
    );
}

/// Inclusion of sets and bags is a universal quantifier; the order of functions is reflexive.
#[test]
fn orders_of_comprehensions() {
    table(
        "",
        &[
            ("{ n: Nat | n > 3 } <= { n: Nat | n > 3 }", "true"),
            ("{ n: Nat | n > 3 } < { n: Nat | n > 3 }", "false"),
            ("{ n: Nat | n > 3 } <= { n: Nat | n > 2 }", "true"),
            ("{ n: Nat | n > 3 } < { n: Nat | n >= 3 }", "true"),
            ("{ n: Nat | n > 2 } <= { n: Nat | n > 3 }", "false"),
            ("{ n: Nat | n > 2 } >= { n: Nat | n > 3 }", "true"),
            ("{ n: Nat | n > 0 } <= {1}", "false"),
            ("{1} <= { n: Nat | n > 0 }", "true"),
            ("{ n: Nat | n > 0 } >= {1}", "true"),
            ("!{0} <= { n: Nat | n > 0 }", "true"),
            ("!{0} < { n: Nat | n > 0 }", "false"),
            ("{ n: Nat | n } <= { n: Nat | n }", "true"),
            ("{ n: Nat | n } < { n: Nat | n + 1 }", "true"),
            ("{ n: Nat | n } <= { n: Nat | 1 }", "false"),
            ("{ n: Nat | n } <= {:}", "false"),
            ("{1: 1} <= { n: Nat | n }", "true"),
            ("{ n: Nat | if(n < 2, n, 0) } <= {1: 3}", "true"),
            ("(lambda n: Nat. n * n) <= (lambda n: Nat. n * n)", "true"),
            ("(lambda n: Nat. n + 0) < (lambda n: Nat. n)", "false"),
        ],
    );
}

/// A witness of a sort that is not listed is built from the constants of the condition.
#[test]
fn witnesses_of_sorts_without_a_list() {
    table(
        "",
        &[
            ("exists r: Real. r * 2 == 1", "true"),
            ("exists r: Real. r > 0", "true"),
            ("exists r: Real. r < -7 / 3", "true"),
            ("exists r: Real. r > 1/2 && r < 2/3", "true"),
            ("forall r: Real. r <= 5", "false"),
            ("exists r: Real, n: Nat. n > 3 && r > n", "true"),
            ("exists s: FSet(Nat). 3 in s", "true"),
            ("exists s: FSet(Nat). 3 in s && !(4 in s) && 5 in s", "true"),
            ("exists s: Set(Nat). 3 in s && !(4 in s)", "true"),
            ("forall s: Set(Nat). 3 in s", "false"),
            ("exists f: Nat -> Bool. f(0)", "true"),
            ("exists f: Nat -> Bool. f(0) && !f(7)", "true"),
            ("exists f: Nat -> Nat. f(2) == 9", "true"),
            ("exists b: Bag(Nat). count(3, b) == 2", "true"),
            ("forall b: FBag(Nat). count(3, b) == 0", "false"),
        ],
    );
}

/// A candidate is a value of its sort: numbers are none of a sort with seven elements, or of one
/// without constructors.
#[test]
fn witnesses_have_their_sort() {
    table(
        "sort D = struct d1 | d2 | d3 | d4 | d5 | d6 | d7; E; T = struct leaf | node(T)?is_node;",
        &[
            ("forall f: Nat -> D. f(0) in [d1, d2, d3, d4, d5, d6, d7]", "error: "),
            (
                "exists f: Nat -> D. f(0) != d1 && f(0) != d2 && f(0) != d3 && f(0) != d4 && f(0) != d5 && f(0) != d6 && f(0) != d7",
                "error: ",
            ),
            ("exists f: Nat -> D. f(0) == d2 && f(1) == d1", "true"),
            ("exists f: Bool -> E. f(true) != f(false)", "error: "),
            ("exists f: Nat -> T. f(0) != leaf && !is_node(f(0))", "error: "),
            ("exists s: FSet(List(Nat)). 0 < #s && !([] in s)", "error: "),
        ],
    );
}

/// A set or bag that is a comprehension over the previous one is evaluated once for each step.
#[test]
fn nested_comprehensions_are_evaluated_once() {
    let mut set = "{}".to_string();
    let mut bag = "{:}".to_string();
    for n in 0..60 {
        set = format!("{{ x: Nat | x in {set} || x > {n} }}");
        bag = format!("{{ n: Nat | count(n, {bag}) + n }}");
    }
    table("", &[(&format!("0 in {set}"), "false"), (&format!("1 in {set}"), "true")]);
    table("", &[(&format!("count(2, {bag})"), "120")]);
}

/// Equality of functions is a universal quantifier; a bag comprehension with few elements is
/// finite.
#[test]
fn functions_and_comprehensions() {
    table(
        "",
        &[
            ("(lambda n: Nat. n + 0) == (lambda n: Nat. n)", "true"),
            ("(lambda n: Nat. n) == (lambda n: Nat. n + n)", "false"),
            ("(lambda n: Nat. n * n) == (lambda n: Nat. 2 * n)", "false"),
            ("(lambda n: Nat. n mod 2 < 2) == (lambda n: Nat. true)", "true"),
            ("(lambda n, m: Nat. n < m) == (lambda n, m: Nat. n <= m)", "false"),
            ("{ n: Nat | if(n == 3, 2, 0) } == {3: 2}", "true"),
            ("{ n: Nat | if(n < 3, n, 0) }", "{1: 1, 2: 2}"),
            ("{ n: Nat | 0 }", "{:}"),
            ("{ n: Pos | if(n in {3, 4}, 7, 0) }", "{3: 7, 4: 7}"),
        ],
    );
}
