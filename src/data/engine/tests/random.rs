//! Random closed expressions: the engine and the naive rewriter give the same data.

use super::*;
use crate::naive::Naive;
use mu_base::random::Random;

const DECLARATIONS: &str = "
    sort D = struct d1 | d2 | d3;
         T = struct leaf(value: Nat)?is_leaf | node(left: T, lab: D, right: T);
         P = struct pair(fst: D, snd: Bool);
    map total: T -> Nat; mirror: T -> T; build: Nat -> T; rev: List(Nat) # List(Nat) -> List(Nat); ins: Nat # List(Nat) -> List(Nat);
        sort_: List(Nat) -> List(Nat); next: D -> D; table: D -> Nat; member: Nat # List(Nat) -> Bool; gcd: Nat # Nat -> Nat;
        monus: Nat # Nat -> Nat; eqd: D # D -> Bool; curry: Nat -> Nat -> Nat; filter: (Nat -> Bool) # List(Nat) -> List(Nat);
        ite, either: Bool # Nat # Nat -> Nat; nested: Bool # Nat # Nat # Nat -> Nat; sel: Bool # Nat # Nat -> Nat; first: T # Nat # Nat -> Nat; other: D # Nat # Nat -> Nat;
        class: Nat -> D; range: Nat -> List(Nat); collect: List(Nat) -> FSet(Nat); undefined: D -> Nat; c: List(Nat); lex: List(D) -> Nat;
    var n, m, k: Nat; p: Pos; b: Bool; t, u: T; d, e: D; l, acc: List(Nat); f: Nat -> Bool; ds: List(D);
    eqn total(leaf(n)) = n; total(node(t, d, u)) = total(t) + total(u) + table(d);
        mirror(leaf(n)) = leaf(n); mirror(node(t, d, u)) = node(mirror(u), next(d), mirror(t));
        build(0) = leaf(0); n > 0 -> build(n) = node(build(n div 2), class(n), leaf(n));
        rev([], acc) = acc; rev(n |> l, acc) = rev(l, n |> acc);
        ins(n, []) = [n]; n <= m -> ins(n, m |> l) = n |> m |> l; n > m -> ins(n, m |> l) = m |> ins(n, l);
        sort_([]) = []; sort_(n |> l) = ins(n, sort_(l));
        next(d1) = d2; next(d2) = d3; next(d3) = d1;
        table(d1) = 1; table(d) = if(d == d2, 20, 1) whr n = 3 end;
        member(n, []) = false; member(n, n |> l) = true; n != m -> member(n, m |> l) = member(n, l);
        gcd(n, 0) = n; gcd(n, Pos2Nat(p)) = gcd(p, n mod p);
        n >= m -> monus(n, m) = Int2Nat(n - m); n < m -> monus(n, m) = 0;
        eqd(d, d) = true; d != e -> eqd(d, e) = false;
        curry(n)(m) = n * 3 + m;
        filter(f, []) = []; filter(f, n |> l) = if(f(n), n |> filter(f, l), filter(f, l));
        class(0) = d1; class(1) = d2; n > 1 -> class(n) = class(Int2Nat(n - 2));
        range(0) = []; n > 0 -> range(n) = Int2Nat(n - 1) |> range(Int2Nat(n - 1));
        collect([]) = {}; collect(n |> l) = collect(l) + {n};
        ite(b, n, m) = if(b, n, m); either(b, m, n) = ite(!b, n, sel(b, m, n));
        nested(b, n, m, k) = if(b && n > 2, ite(b, m, k), if(n == 0, m + z, k)) whr z = n * 2 end;
        sel(true, n, m) = n; sel(false, n, m) = m;
        first(leaf(n), m, k) = n + m; first(node(t, d, u), m, k) = if(d == d1, k, first(u, m * 2, k + table(d)));
        other(d1, n, m) = m + m; other(d, n, m) = sel(d == d2, n, m);
        c = sort_([5, 3, 9]);
        lex([]) = 0; lex([d]) = 1; lex(d |> d2 |> ds) = 2 + lex(ds); lex(d |> d1 |> ds) = 3; lex(d |> d3 |> ds) = lex(d |> ds);";

struct Generator {
    random: Random,
    vars: Vec<(String, char)>,
    fresh: usize,
}

impl Generator {
    /// Returns an expression of a sort: b Bool, n Nat, d D, t T, l List(Nat), s FSet(Nat), p P, f
    /// Nat -> Bool, e List(D).
    fn expression(&mut self, sort: char, depth: usize) -> String {
        let known: Vec<String> =
            self.vars.iter().filter(|v| v.1 == sort).map(|v| v.0.clone()).collect();
        if !known.is_empty() && self.random.chance(1, 4) {
            return self.random.choose(&known).clone();
        }
        // Templates: a capital letter stands for a subexpression of that sort.
        let leaves: &[&str] = match sort {
            'b' => &["true", "false"],
            'n' => &["0", "1", "2", "7", "12"],
            'd' => &["d1", "d2", "d3"],
            't' => &["leaf(4)", "node(leaf(1), d2, leaf(2))"],
            'l' => &["[]", "[1]", "[3, 1, 3]", "c"],
            's' => &["{}", "{1, 3}"],
            'p' => &["pair(d1, true)"],
            'e' => &["[]", "[d1, d2]"],
            _ => &["(lambda x0: Nat. x0 > 2)"],
        };
        if depth == 0 {
            return (*self.random.choose(leaves)).to_string();
        }
        let templates: &[&str] = match sort {
            'b' => &[
                "!B",
                "(B && B)",
                "(B || B)",
                "(B => B)",
                "(N == N)",
                "(N != N)",
                "(N < N)",
                "(N <= N)",
                "(D == D)",
                "(D < D)",
                "(L == L)",
                "(L < L)",
                "(T == T)",
                "(T <= T)",
                "(N in L)",
                "(N in S)",
                "(S == S)",
                "(S <= S)",
                "(S < S)",
                "is_leaf(T)",
                "snd(P)",
                "(P == P)",
                "(P < P)",
                "if(B, B, B)",
                "member(N, L)",
                "eqd(D, D)",
                "F(N)",
                "(forall VD. B)",
                "(exists VD. B)",
                "(forall VB. B)",
                "(exists VP. B)",
                "(E < E)",
            ],
            'n' => &[
                "(N + N)",
                "(N * 3)",
                "max(N, N)",
                "min(N, N)",
                "monus(N, N)",
                "(N mod 5)",
                "(N div 3)",
                "#L",
                "#S",
                "head(L)",
                "rhead(L)",
                "(L . N)",
                "value(T)",
                "total(T)",
                "table(D)",
                "if(B, N, N)",
                "gcd(N, N)",
                "curry(N)(N)",
                "(lambda VN. N)(7)",
                "(N whr WN end)",
                "undefined(D)",
                "undefined[D -> N](D)",
                "undefined[D -> N][D -> N](D)",
                "Int2Nat(N - N)",
                "succ(N)",
                "lex(E)",
                "sel(B, N, N)",
                "ite(B, N, N)",
                "either(B, N, N)",
                "nested(B, N, N, N)",
                "first(T, N, N)",
                "other(D, N, N)",
                "abs(N - N)",
            ],
            'd' => &["next(D)", "if(B, D, D)", "lab(T)", "fst(P)", "class(N)", "head(E)"],
            't' => &[
                "node(T, D, T)",
                "mirror(T)",
                "left(T)",
                "right(T)",
                "leaf(N)",
                "if(B, T, T)",
                "build(N mod 6)",
            ],
            'l' => &[
                "(N |> L)",
                "(L <| N)",
                "(L ++ L)",
                "tail(L)",
                "rtail(L)",
                "rev(L, L)",
                "sort_(L)",
                "filter(F, L)",
                "if(B, L, L)",
                "range(N mod 6)",
                "[N, N]",
            ],
            's' => &["(S + S)", "(S - S)", "(S * S)", "{N, N}", "collect(L)", "if(B, S, S)"],
            'p' => &["pair(D, B)", "if(B, P, P)"],
            'e' => &["(D |> E)", "(E ++ E)", "tail(E)", "[D, D]"],
            _ => &["(lambda VN. B)"],
        };
        let template = *self.random.choose(templates);
        let scope = self.vars.len();
        let mut out = String::new();
        let mut chars = template.chars().peekable();
        // `whr` binds in the preceding expression: its variable is created first.
        let local = template.contains("WN").then(|| self.name('n'));
        let mut definition = None;
        if local.is_some() {
            let name = self.vars.pop();
            definition = Some(self.expression('n', depth - 1));
            self.vars.extend(name);
        }
        while let Some(c) = chars.next() {
            match c {
                'V' => {
                    let sort = chars.next().map_or('n', |c| c.to_ascii_lowercase());
                    let name = self.name(sort);
                    out += &format!(
                        "{name}: {}",
                        match sort {
                            'd' => "D",
                            'b' => "Bool",
                            'p' => "P",
                            _ => "Nat",
                        }
                    );
                }
                'W' => {
                    chars.next();
                    out += &format!(
                        "{} = {}",
                        local.as_deref().unwrap_or(""),
                        definition.as_deref().unwrap_or("")
                    );
                }
                // Names of operations with capitals.
                'I' => {
                    out.push(c);
                    out.extend(std::iter::from_fn(|| chars.next_if(|c| *c != '(')));
                }
                c if c.is_ascii_uppercase() => {
                    out += &self.expression(c.to_ascii_lowercase(), depth - 1)
                }
                c => out.push(c),
            }
        }
        self.vars.truncate(scope);
        out
    }
    fn name(&mut self, sort: char) -> String {
        self.fresh += 1;
        let name = format!("v{}", self.fresh);
        self.vars.push((name.clone(), sort));
        name
    }
}

/// True if an expression consists of constructors and literals.
fn is_data(signature: &crate::signature::Signature, e: &Expr) -> bool {
    use crate::expr::ExprKind;
    use crate::signature::{Builtin, OpKind};
    match &e.kind {
        ExprKind::Number(_) => true,
        ExprKind::Op(op) => match signature.op(*op).kind {
            OpKind::Constructor(_) => true,
            OpKind::Builtin(b) => {
                matches!(
                    b,
                    Builtin::True
                        | Builtin::False
                        | Builtin::Cons
                        | Builtin::SetInsert
                        | Builtin::EmptyList
                        | Builtin::EmptySet
                )
            }
            _ => false,
        },
        ExprKind::Apply(head, args) => {
            is_data(signature, head) && args.iter().all(|a| is_data(signature, a))
        }
        _ => false,
    }
}

#[test]
fn engine_agrees_with_naive_rewriter() {
    let seed: u64 =
        std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_240_611);
    let rounds = std::env::var("MU_CHECK_ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(600);
    let mut fixture = Fixture::new(DECLARATIONS);
    let sorts: Vec<(char, SortId)> = [
        ('b', "true"),
        ('n', "0 + 0"),
        ('d', "d1"),
        ('t', "leaf(0)"),
        ('l', "c"),
        ('s', "collect(c)"),
    ]
    .map(|(c, e)| (c, fixture.expr(e, None).sort))
    .into();
    let mut compared = 0;
    for round in 0..rounds {
        let mut generator = Generator { random: Random::new(seed + round), vars: vec![], fresh: 0 };
        let sort = *generator.random.choose(&['b', 'n', 'd', 't', 'l', 's']);
        let depth = 1 + generator.random.below(5);
        let text = generator.expression(sort, depth);
        let context = format!("seed {} ({text})", seed + round);
        let sort = sorts.iter().find(|s| s.0 == sort).map(|s| s.1);
        let data =
            parse_data(Default::default(), &text).unwrap_or_else(|e| panic!("{context}: {e:?}"));
        let Ok(e) = check_expression_with(&data, &mut fixture.spec, &[], sort) else { continue };
        let Some(expected) = Naive::new(&fixture.spec, 50_000).normal(&e) else { continue };
        let mut engine = Engine::new(
            Program::compile(&fixture.spec).unwrap_or_else(|e| panic!("{context}: {e:?}")),
        );
        let found = engine.from_expr(&e).unwrap_or_else(|e| panic!("{context}: {e:?}"));
        if !is_data(&fixture.spec.signature, &expected) {
            continue;
        }
        compared += 1;
        let mut naive = Naive::new(&fixture.spec, 50_000);
        let back = naive.normal(&engine.to_expr_at(&found, e.sort));
        assert_eq!(back.as_ref(), Some(&expected), "{context}: the engine gives {found:?}");
    }
    assert!(compared * 2 > rounds, "only {compared} of {rounds} could be compared");
}

#[test]
fn naive_rewriter_decides_no_pattern_of_a_value_that_it_does_not_compute() {
    let mut fixture = Fixture::new(
        "sort A = struct a(B) | x; B = struct b(A) | y;
         map g: Bool -> Bool; f: Nat -> Bool; k: Bool # Bool -> Bool; c: Nat -> Bool;
         var p, q: Bool; n: Nat;
         eqn g(true) = true; g(p) = false;
             f(0) = true; f(n) = false;
             k(p, p) = true; k(p, q) = false;
             (exists i: Nat. i == n) -> c(n) = true; c(n) = false;",
    );
    let mut by_naive = |text: &str| {
        let e = fixture.expr(text, None);
        Naive::new(&fixture.spec, 50_000)
            .normal(&e)
            .map(|n| crate::print::expression(&fixture.spec.signature, &n))
    };
    for text in [
        "g(exists i: Nat. i == 3)",
        "k(exists i: Nat. i == 3, true)",
        "c(3)",
        "f(exp(2, 3))",
        "g(!(exists i: Nat. i == 3))",
    ] {
        assert_eq!(by_naive(text), None, "{text}");
    }
    // No equation applies to these terms: they are normal forms.
    for (text, expected) in [
        ("f(head([]))", "false"),
        ("k(head([]), true)", "false"),
        ("k(head([]), head([]))", "true"),
        ("f(1)", "false"),
        ("g(1 < 2)", "true"),
    ] {
        assert_eq!(by_naive(text).as_deref(), Some(expected), "{text}");
    }
    // Sorts that contain each other have no list of elements.
    assert_eq!(by_naive("g(exists z: A. z == x)"), None);
}
