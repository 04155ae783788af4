//! Random models with sorts of any size, a memory, messages, bags, lists, and counters: what the
//! checker proves for every size is true of the instances with one to three constants.

use super::arcx::{any_size, confirm_within, unbounded_model};
use super::crowds::instance_verdict;
use mu_base::random::Random;
use mu_base::{SourceId, SourceMap};
use mu_compile::{Compiled, Confluence};
use mu_process::linearise::{LineariserOptions, linearise};
use mu_regions::sizes::SIZE;
use mu_syntax::ast::Specification;
use mu_syntax::template;
use std::time::Duration;

const HEAD: &str = "$param d: Pos = 2;
$param a: Pos = 2;
$param n: Pos = 2;
sort D = struct none $for i in 0 .. d join \"\" { | d${i} };
     A = struct $for i in 0 .. a join \" | \" { a${i} };
     C = struct empty | full(at: A, value: D, nr: Nat) ? is_full;
     I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
map N: Nat; zero: A -> D;
var x: A;
eqn zero(x) = none;
act put, take: A # D; w, rd, s_write, r_write, s_read, r_read: I # A # D;
    list: D; own: I # A # D # Nat;
";
const FORMULAS: [&str; 12] = [
    "[true* . (exists x: A. (exists i: I. rd(i, x, none)))] false",
    "forall y: D. [(!(exists x: A. (exists i: I. w(i, x, y))))* . (exists x: A. (exists i: I. rd(i, x, y)))] val(y == none)",
    "forall x: A, y: D. [(!(exists i: I. w(i, x, y)))* . (exists i: I. rd(i, x, y))] val(y == none)",
    "forall x: A, y: D. [true* . (exists i: I. w(i, x, y)) . (!(exists z: D. (exists i: I. w(i, x, z))))* . (exists z: D. (exists i: I. rd(i, x, z) && val(z != y)))] false",
    "[true* . (exists x: A. (exists i: I. w(i, x, none)))] false",
    "forall x, z: A, y: D. [true* . (exists i: I. own(i, x, y, 0)) . (!put(x, y))* . (exists i: I. own(i, z, y, 0))] val(x == z)",
    "forall x: A, y: D. [(!put(x, y))* . take(x, y)] false",
    "forall x: A, y: D. [true* . put(x, y) . true* . take(x, y) . (!put(x, y))* . take(x, y)] false",
    "forall y, z: D. [true* . list(y) . true* . list(z)] val(y == z)",
    "forall y: D. [(!(exists x: A. (exists i: I. w(i, x, y)) || put(x, y)))* . list(y)] val(y == none)",
    "[true* . (exists x: A, y: D, k: Nat. (exists i: I. own(i, x, y, k) && val(k > N)))] false",
    "forall x, z: A, y: D. [true* . (exists i: I. rd(i, x, y)) . (exists i: I. rd(i, z, y))] val(x == z)",
];

/// Generates a model. `crowd`: with any number of components.
fn model(random: &mut Random, crowd: bool) -> String {
    let mut shared = Vec::new();
    let data = |random: &mut Random| *random.choose(&["y", "y", "none", "m(x)"]);
    for _ in 0..2 + random.below(3) {
        let guard = random.choose(&["true", "y != none", "m(x) == none", "m(x) != y", "y in l"]);
        let new = data(random);
        shared.push(match random.below(9) {
            0 => format!("sum x: A, y: D. ({guard}) -> w(nobody, x, y) . M(m[x -> {new}], b, l)"),
            1 | 2 => format!("sum i: I, x: A, y: D. ({guard}) -> s_write(i, x, y) . M(m[x -> {new}], b, l)"),
            3 => "sum x: A. rd(nobody, x, m(x)) . M(m, b, l)".into(),
            4 => "sum i: I, x: A. s_read(i, x, m(x)) . M(m, b, l)".into(),
            5 => format!(
                "sum x: A, y: D. ({guard} && #b < 2) -> put(x, y) . M(m, b + {{full(x, {new}, 0): 1}}, l)"
            ),
            6 => format!(
                "sum x: A, y: D. (full(x, y, 0) in b) -> take(x, y) . M(m, b - {{full(x, {}, 0): 1}}, l)",
                random.choose(&["y", "y", "m(x)"])
            ),
            7 => format!("sum x: A, y: D. ({guard} && #l < 2) -> w(nobody, x, y) . M(m, b, {new} |> l)"),
            _ => "(l != []) -> list(head(l)) . M(m, b, tail(l))".into(),
        });
    }
    let mut own = Vec::new();
    let (id, me) = if crowd { ("id, ", "id") } else { ("", "nobody") };
    for _ in 0..2 + random.below(3) {
        let k = random.choose(&["k", "0", "k + 1"]);
        let guard = if *k == "k + 1" { "k < N" } else { "true" };
        let next = random.choose(&["empty", "c", "full(x, y, k)", "full(x, value(c), k)"]);
        let full = random.choose(&["true", "x == at(c)", "y == value(c)", "y != value(c)"]);
        let act = random.choose(&["own", "r_write", "r_read", "w"]);
        let next = if *act == "own" { "full(x, y, k)" } else { *next };
        let act = format!("{act}({me}, x, y{})", if *act == "own" { ", k" } else { "" });
        own.push(match random.below(3) {
            0 => format!(
                "sum x: A, y: D. (c == empty && {guard}) -> {act} . P({id}full(x, y, 0), {k})"
            ),
            1 => format!(
                "sum x: A, y: D. (is_full(c) && {full} && {guard}) -> {act} . P({id}{next}, {k})"
            ),
            _ => format!(
                "(is_full(c) && {guard}) -> own({me}, at(c), value(c), nr(c)) . P({id}empty, {k})"
            ),
        });
    }
    own.push(format!(
        "sum x: A, y: D. (c == empty) -> r_write({me}, x, y) . P({id}full(x, y, 0), k)"
    ));
    let (head, all) = if crowd {
        ("id: I, ", "$for i in 0 .. n join \"\" { P(i${i}, empty, 0) || } M(zero, {:}, [])")
    } else {
        ("", "P(empty, 0) || M(zero, {:}, [])")
    };
    format!(
        "{HEAD}proc P({head}c: C, k: Nat) = {};\nproc M(m: A -> D, b: FBag(C), l: List(D)) = {};
init allow({{w, rd, put, take, list, own}}, comm({{s_write | r_write -> w, s_read | r_read -> rd}},
  {all}));\n",
        own.join("\n  + "),
        shared.join("\n  + ")
    )
}

fn tree(text: &str, (d, a, n): (usize, usize, usize)) -> Specification {
    let defines = [("d", d), ("a", a), ("n", n)].map(|(name, v)| (name.to_string(), v.to_string()));
    let text = template::expand("x", text, &defines, &mut SourceMap::new()).unwrap().text;
    mu_syntax::parse_specification(SourceId::FIRST, &text).unwrap()
}

/// Returns the verdict for some sizes and a value of `N`; `None` beyond a limit.
fn concrete(
    text: &str,
    formula: &str,
    sizes: (usize, usize, usize),
    counter: usize,
) -> Option<bool> {
    instance_verdict(&tree(&format!("{text}eqn N = {counter};"), sizes), formula, 3_000)
}

/// Replay: `SEED=n`; more: `SORT_CASES=n`. Odd seeds have any number of components.
#[test]
fn what_is_shown_for_every_size_is_true_of_instances() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = match (number("SEED"), number("SORT_CASES")) {
        (Some(seed), None) => seed..seed + 1,
        (seed, count) => seed.unwrap_or(0)..seed.unwrap_or(0) + count.unwrap_or(8),
    };
    let (mut shown, mut open, mut wrong) = (0, 0, 0);
    let mut reasons = std::collections::BTreeMap::new();
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        let crowd = seed % 2 == 1;
        let text = model(&mut random, crowd);
        let of = |n: usize| tree(&text, (SIZE, SIZE, n));
        let mut any = unbounded_model(&of, &["N".into()], crowd);
        any.sizes = any_size(&any, &["D", "A"]);
        for formula in FORMULAS {
            let found = confirm_within(&any, formula, Duration::from_secs(2));
            let sizes = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (2, 3)];
            let components: &[usize] = if crowd { &[1, 2] } else { &[1] };
            let all = sizes.iter().flat_map(|(d, a)| components.iter().map(move |n| (*d, *a, *n)));
            let mut all = all.flat_map(|sizes| [0, 2].map(|counter| (sizes, counter)));
            let is_false =
                all.find(|(sizes, n)| concrete(&text, formula, *sizes, *n) == Some(false));
            match (found, is_false) {
                (Ok(_), None) => shown += 1,
                (Ok(found), Some(sizes)) => {
                    panic!("seed {seed}: {formula}: shown, false for {sizes:?}: {found:?}\n{text}")
                }
                (Err(_), Some(_)) => wrong += 1,
                (Err(why), None) => {
                    open += 1;
                    *reasons.entry(why.message).or_insert(0) += 1;
                }
            }
        }
    }
    println!("{shown} shown, {open} open, {wrong} false");
    reasons.iter().for_each(|(why, count)| println!("{count}: {why}"));
    assert!(seeds.end - seeds.start < 8 || shown > open && wrong > 0, "{shown} {open} {wrong}");
}

#[test]
fn entries_of_an_array_of_truth_values_are_chosen() {
    let tree = |n: usize| {
        let text = "$param d: Pos = 2;
            sort A = struct $for i in 0 .. d join \" | \" { a${i} };
            map start: A -> Bool; var a: A; eqn start(a) = false;
            act store: A; load: A # Bool;
            proc P(m: A -> Bool) = sum a: A. store(a) . P(m[a -> true]) + sum a: A. load(a, m(a)) . P(m);
            init P(start);";
        let defines = [("d".to_string(), n.to_string())];
        let text = template::expand("x", text, &defines, &mut SourceMap::new()).unwrap().text;
        mu_syntax::parse_specification(SourceId::FIRST, &text).unwrap()
    };
    let mut any = unbounded_model(&tree, &[], false);
    // An array stays one parameter.
    let spec = mu_process::typecheck::check_specification(&tree(SIZE)).unwrap();
    let options = LineariserOptions { unfold: false, ..LineariserOptions::of_any_size(&[]) };
    any.model = Compiled::new(linearise(&spec, &options).unwrap(), &Confluence::None).unwrap();
    any.sizes = any_size(&any, &["A"]);
    for (formula, expected) in [
        ("forall a: A. [(!store(a))* . load(a, true)] false", true),
        ("[true* . (exists a: A. load(a, true))] false", false),
    ] {
        let found = confirm_within(&any, formula, Duration::from_secs(2));
        assert_eq!(found.is_ok(), expected, "{formula}: {found:?}");
    }
}
