//! Random models with components of any number, shared data, lists of identities, and counters:
//! what the checker proves for every number is true of the instances with one to three components.

use super::arcx::{confirm_within, unbounded_model};
use mu_base::random::Random;
use mu_base::{Budget, Limits, SourceId, SourceMap};
use mu_compile::{Compiled, Confluence};
use mu_formula::typecheck::check_formula;
use mu_pbes::{Options, Verdict, check};
use mu_process::linearise::{self, linearise};
use mu_syntax::ast::Specification;
use mu_syntax::template;
use std::time::Duration;

const HEAD: &str = "$param n: Pos = 2;
sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
map N: Nat; all: List(I); without: I # List(I) -> List(I);
var p, c: I; cs: List(I);
eqn all = [$for i in 0 .. n join \", \" { i${i} }];
    without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];
act a, b, c, s, r: I # Nat; call, called, hears: I;
";
const TAIL: &str = "init allow({a, b, c, hears}, comm({s | r -> c, call | called -> hears},
  $for i in 0 .. n join \"\" { P(i${i}, nobody, 0) || } S(nobody, 0, [])));
";
const FORMULAS: [&str; 7] = [
    "forall p: I. [true* . a(p, 0) . true* . a(p, 0)] false",
    "[true* . (exists p: I, k: Nat. a(p, k) && val(k > N))] false",
    "forall p, q: I, k: Nat. [true* . a(p, k) . true* . a(q, k)] val(p == q)",
    "forall p: I. [true* . c(p, 0) . (!(exists k: Nat. b(p, k)))* . a(p, 0)] false",
    "forall p, q: I. [true* . c(p, 0) . (!hears(q))* . b(q, 0)] val(p == q)",
    "forall p: I. [(!(exists k: Nat. c(p, k)))* . hears(p)] false",
    "[true* . (exists k: Nat. b(nobody, k) && val(k > 0))] false",
];

/// Generates a model.
fn model(random: &mut Random) -> String {
    let mut own = Vec::new();
    for _ in 0..2 + random.below(2) {
        let guard = random.choose(&["true", "x == id", "x == nobody", "k < N", "k == 0"]);
        let act = random.choose(&["a(id, k)", "s(id, k)", "b(x, k)", "s(id, 0)"]);
        let (x, k) = (random.choose(&["x", "id", "nobody"]), random.choose(&["k", "k + 1", "0"]));
        let k = if *k == "k + 1" && *guard != "k < N" { &"k" } else { k };
        own.push(format!("({guard}) -> {act} . P(id, {x}, {k})"));
    }
    let heard = random.choose(&["id", "x", "nobody"]);
    own.push(format!("called(id) . P(id, {heard}, k)"));
    let mut shared = vec!["(l != []) -> call(head(l)) . S(h, m, tail(l))".to_string()];
    for _ in 0..1 + random.below(2) {
        let guard = random.choose(&["l == []", "h == nobody", "p != h", "q == m"]);
        let h = random.choose(&["p", "h", "nobody"]);
        let m = random.choose(&["q", "m", "0"]);
        let l = random.choose(&["l", "all", "without(p, all)", "without(h, l)", "[]"]);
        shared.push(format!("sum p: I, q: Nat. ({guard}) -> r(p, q) . S({h}, {m}, {l})"));
    }
    if random.below(2) == 0 {
        let h = random.choose(&["h", "nobody"]);
        shared.push(format!("(h != nobody) -> b(h, m) . S({h}, m, l)"));
    }
    format!(
        "{HEAD}proc P(id, x: I, k: Nat) = {};\nproc S(h: I, m: Nat, l: List(I)) = {};\n{TAIL}",
        own.join("\n  + "),
        shared.join("\n  + ")
    )
}

fn tree(text: &str, n: usize) -> Specification {
    let defines = [("n".to_string(), n.to_string())];
    let text = template::expand("x", text, &defines, &mut SourceMap::new()).unwrap().text;
    mu_syntax::parse_specification(SourceId::FIRST, &text).unwrap()
}

/// Returns the verdict for some components and a value of `N`; `None` beyond a limit.
fn concrete(text: &str, formula: &str, (n, counter): (usize, usize)) -> Option<bool> {
    instance_verdict(&tree(&format!("{text}eqn N = {counter};"), n), formula, 5_000)
}

/// Returns the verdict of a formula on a specification without parameters; `None` beyond a limit on
/// its states.
pub fn instance_verdict(tree: &Specification, formula: &str, max_states: u64) -> Option<bool> {
    let spec = mu_process::typecheck::check_specification(tree).unwrap();
    let process = linearise(&spec, &linearise::LineariserOptions::default()).unwrap();
    let model = Compiled::new(process, &Confluence::None).unwrap();
    let parsed = mu_syntax::parse_formula(SourceId::of(1), formula).unwrap();
    let process = model.process();
    let formula = check_formula(&parsed, &process.data, &process.actions).unwrap();
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    let chosen = Options { evidence: false, ..Options::new(&options) };
    let budget = Budget::new(Limits { max_states: Some(max_states), ..Limits::default() });
    match check(&model, &model, &formula, chosen, &budget).unwrap().verdict {
        Verdict::True => Some(true),
        Verdict::False => Some(false),
        Verdict::Unknown(_) => None,
    }
}

/// Replay: `SEED=n`; more: `CROWD_CASES=n`.
#[test]
fn what_pairs_show_for_every_number_is_true_of_instances() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = match (number("SEED"), number("CROWD_CASES")) {
        (Some(seed), _) => seed..seed + 1,
        (_, count) => 0..count.unwrap_or(12),
    };
    let (mut shown, mut open, mut wrong) = (0, 0, 0);
    let mut reasons = std::collections::BTreeMap::new();
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        let text = model(&mut random);
        let any = unbounded_model(&|n| tree(&text, n), &["N".into()], true);
        for formula in FORMULAS {
            let found = confirm_within(&any, formula, Duration::from_secs(2));
            let sizes = [(1, 0), (1, 2), (2, 0), (2, 1), (2, 2), (3, 1)];
            let is_false = sizes.iter().find(|s| concrete(&text, formula, **s) == Some(false));
            match (found, is_false) {
                (Ok(_), None) => shown += 1,
                (Ok(found), Some(size)) => {
                    panic!("seed {seed}: {formula}: shown, false for {size:?}: {found:?}\n{text}")
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
    assert!(seeds.end - seeds.start < 12 || shown > open, "{shown} {open}");
}
