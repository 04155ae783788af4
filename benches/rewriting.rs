//! Speed of the data engine in equations applied a second, on small functional programs.
//!
//! `cargo bench --bench rewriting -- [NAME...]` prints a line for each program: its result, steps, seconds, steps a second.

use mu_check::data::engine::{Engine, Program};
use mu_check::data::typecheck::check_expression;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax::{parse_data, parse_specification};
use std::time::Instant;

const PROGRAMS: &[(&str, &str, &str)] = &[
    ("fib", "map fib: Nat -> Nat; var n: Nat; eqn fib(n) = if(n < 2, n, fib(Int2Nat(n - 1)) + fib(Int2Nat(n - 2)));", "fib(27)"),
    (
        "peano_fib",
        "sort N = struct zero | s(N);
         map plus: N # N -> N; fib: N -> N; value: N -> Nat; var x, y: N;
         eqn plus(zero, y) = y; plus(s(x), y) = s(plus(x, y));
             fib(zero) = zero; fib(s(zero)) = s(zero); fib(s(s(x))) = plus(fib(x), fib(s(x)));
             value(zero) = 0; value(s(x)) = 1 + value(x);",
        "value(fib(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(s(zero)))))))))))))))))))))))",
    ),
    (
        "quicksort",
        "map random: Nat # Nat -> List(Nat); smaller, larger: Nat # List(Nat) -> List(Nat); qs: List(Nat) -> List(Nat); sum: List(Nat) -> Nat;
         var n, m, seed: Nat; l: List(Nat);
         eqn random(0, seed) = [];
             n > 0 -> random(n, seed) = (seed mod 65536) |> random(Int2Nat(n - 1), (seed * 1103515245 + 12345) mod 2147483648);
             smaller(n, []) = []; m < n -> smaller(n, m |> l) = m |> smaller(n, l); m >= n -> smaller(n, m |> l) = smaller(n, l);
             larger(n, []) = []; m >= n -> larger(n, m |> l) = m |> larger(n, l); m < n -> larger(n, m |> l) = larger(n, l);
             qs([]) = []; qs(n |> l) = qs(smaller(n, l)) ++ (n |> qs(larger(n, l)));",
        "#qs(random(40000, 1))",
    ),
    (
        "sieve",
        "map upto: Nat # Nat -> List(Nat); drop: Pos # List(Nat) -> List(Nat); sieve: List(Nat) -> List(Nat);
         var n, m: Nat; p: Pos; l: List(Nat);
         eqn n > m -> upto(n, m) = []; n <= m -> upto(n, m) = n |> upto(n + 1, m);
             drop(p, []) = []; drop(p, n |> l) = if(n mod p == 0, drop(p, l), n |> drop(p, l));
             sieve([]) = []; sieve(p |> l) = p |> sieve(drop(p, l));",
        "#sieve(upto(2, 12000))",
    ),
    (
        "sets",
        "map fill: Nat # Nat # FSet(Nat) -> FSet(Nat); var n, x: Nat; s: FSet(Nat);
         eqn fill(0, x, s) = s; n > 0 -> fill(n, x, s) = fill(Int2Nat(n - 1), (x * 7 + 3) mod 1009, s + {x});",
        "#fill(100000, 1, {})",
    ),
    (
        "structures",
        "sort T = struct leaf | node(left: T, key: Nat, right: T)?is_node;
         map insert: Nat # T -> T; build: Nat # Nat # T -> T; size: T -> Nat; var n, m, x: Nat; l, r, t: T;
         eqn insert(n, leaf) = node(leaf, n, leaf);
             n < m -> insert(n, node(l, m, r)) = node(insert(n, l), m, r);
             n > m -> insert(n, node(l, m, r)) = node(l, m, insert(n, r));
             insert(n, node(l, n, r)) = node(l, n, r);
             build(0, x, t) = t; n > 0 -> build(n, x, t) = build(Int2Nat(n - 1), (x * 1103 + 12345) mod 65536, insert(x, t));
             size(leaf) = 0; is_node(t) -> size(t) = 1 + size(left(t)) + size(right(t));",
        "size(build(60000, 1, leaf))",
    ),
    (
        "queens",
        "map queens: Nat # List(Nat) # Nat -> Nat; safe: Nat # Nat # List(Nat) -> Bool; try: Nat # Nat # List(Nat) # Nat -> Nat;
         var n, k, c, q: Nat; d: Nat; l: List(Nat);
         eqn safe(c, d, []) = true;
             safe(c, d, q |> l) = c != q && c + d != q && q + d != c && safe(c, d + 1, l);
             queens(0, l, n) = 1; k > 0 -> queens(k, l, n) = try(n, k, l, n);
             try(0, k, l, n) = 0;
             c > 0 -> try(c, k, l, n) = if(safe(c, 1, l), queens(Int2Nat(k - 1), c |> l, n), 0) + try(Int2Nat(c - 1), k, l, n);",
        "queens(8, [], 8)",
    ),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    for (name, declarations, expression) in PROGRAMS {
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        match measure(declarations, expression) {
            Ok((result, steps, seconds)) => {
                println!("{name}: {result} steps={steps} seconds={seconds:.3} steps_per_second={:.0}", steps as f64 / seconds)
            }
            Err(e) => println!("{name}: {e:?}"),
        }
    }
}

fn measure(declarations: &str, expression: &str) -> Result<(String, u64, f64), mu_check::base::Diagnostic> {
    let ast = parse_specification(Default::default(), &format!("{declarations}\ninit delta;"))?;
    let mut spec = check_specification(&ast)?.data;
    let e = check_expression(&parse_data(Default::default(), expression)?, &mut spec, None)?;
    let mut engine = Engine::new(Program::compile(&spec)?);
    engine.set_step_limit(u64::MAX);
    let start = Instant::now();
    let value = engine.from_expr(&e)?;
    Ok((engine.text(&value, 40), engine.steps(), start.elapsed().as_secs_f64()))
}
