//! Partial-order reduction changes no verdict and no distance: random specifications of components
//! that communicate seldom, searched and checked with and without it, by one thread and by several.
//!
//! A failure prints the seed and the specification; `MU_CHECK_SEED=n cargo test --release --test
//! suite partial_order` replays it, `MU_CHECK_CASES=n` runs more of them.

use mu_check::base::random::Random;
use mu_check::base::{Budget, Limits, SourceId, Stop};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, SearchTarget, Silent, Visibility};
use mu_check::formula::typecheck::check_formula;
use mu_check::model::Model;
use mu_check::pbes::{Options, ReductionUse, Verdict, check};
use mu_check::process::{linearise, typecheck};
use mu_check::syntax;
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mu-check")).args(words).output().unwrap()
}

/// Components with two to four places, a counter, steps of their own and steps together; some end,
/// some go round for ever.
fn specification(random: &mut Random) -> String {
    let components = 2 + random.below(3);
    let mut text = String::from("act a, b, c, d, e, s, r, t, u, v, w: Nat;\n");
    for i in 0..components {
        let places = 2 + random.below(3);
        for at in 0..places {
            let steps: Vec<String> = (0..random.below(3) + usize::from(at == 0))
                .map(|_| {
                    let to = random.below(places);
                    let n = random.choose(&[
                        "n",
                        "n",
                        "0",
                        "(if(n < 2, n + 1, 0))",
                        "(if(n < 1, n + 1, n))",
                    ]);
                    let condition = random.choose(&["", "", "(n < 1) -> ", "(n > 0) -> "]);
                    let action = match random.below(9) {
                        0 => "a(n)".to_string(),
                        1 => format!("b({i})"),
                        2 => "c(n)".into(),
                        3 => format!("d({i})"),
                        4 => "tau".into(),
                        5 => "e(0)".into(),
                        6 => format!("s({})", random.below(2)),
                        7 => format!("r({})", random.below(2)),
                        _ => format!("{}({})", random.choose(&["u", "v"]), random.below(2)),
                    };
                    format!("{condition}{action} . P{i}_{to}({n})")
                })
                .collect();
            let body = if steps.is_empty() { "delta".to_string() } else { steps.join(" + ") };
            text += &format!("proc P{i}_{at}(n: Nat) = {body};\n");
        }
    }
    let all: Vec<String> = (0..components).map(|i| format!("P{i}_0(0)")).collect();
    let hidden = random.choose(&["d", "e", "t", "d, e"]);
    format!(
        "{text}init hide({{{hidden}}}, allow({{a, b, c, d, e, t, w}}, comm({{s|r -> t, u|v -> w}}, {})));\n",
        all.join(" || ")
    )
}

/// Formulas that cannot distinguish unnamed transitions, and some that can.
const FORMULAS: [&str; 14] = [
    "[true*] <true> true",
    "<true*> [true] false",
    "[true* . (exists n: Nat. a(n))] false",
    "[true* . b(0)] false",
    "[true* . w(1)] false",
    "forall n: Nat. [true* . a(n) . (!(exists m: Nat. b(m)))* . c(n)] false",
    "[(!(exists n: Nat. t(n)))* . (exists n: Nat. c(n))] false",
    "nu X(k: Nat = 0). val(k < 3) && (forall n: Nat. [a(n)] X(k + 1)) && [!(exists n: Nat. a(n))] X(k)",
    "<true* . b(1) . true* . (exists n: Nat. c(n))> true",
    "[true* . c(1)] nu X. ([!b(1)] X && [b(1)] false)",
    "[true* . a(0) . true*] <true> true",
    "[true* . a(0) . true . b(0)] false",
    "[true*] <true* . b(0)> true",
    "[true*] mu X. ([!b(0)] X && <true> true)",
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Paths to deadlocks and actions are as short as without reduction.
fn same_distances(model: &Compiled, budget: &Budget, seed: u64, text: &str) {
    let options = |threads: usize, partial_order: bool| explore::Options {
        threads,
        partial_order,
        ..explore::Options::default()
    };
    for action in ["", "a", "b", "w", "d"] {
        let visibility = Visibility::action(model, action);
        let hidden: Vec<bool> =
            model.groups().iter().map(|g| g.hidden.iter().any(|h| h == action)).collect();
        let test = |group: usize, label| {
            hidden[group] || model.label_text(label).split('(').next() == Some(action)
        };
        let target = if action.is_empty() {
            SearchTarget::Deadlock
        } else {
            SearchTarget::StepOf(&visibility, &test)
        };
        let length = |options: &explore::Options| {
            let found = explore::find(model, options, budget, &Silent, target).unwrap();
            (found.path.map(|p| p.len()), found.outcome.stop)
        };
        let full = length(&options(1, false));
        for threads in [1, 3] {
            assert_eq!(
                length(&options(threads, true)),
                full,
                "seed {seed}, `{action}`, {threads} threads\n{text}"
            );
        }
    }
}

#[test]
fn verdicts_and_distances_are_those_without() {
    let (seed, cases) = (number("MU_CHECK_SEED", 1), number("MU_CHECK_CASES", 60));
    let (mut reduced, mut verdicts, mut fewer) = (0, [0; 2], 0);
    for seed in seed..seed + cases {
        let text = specification(&mut Random::new(seed));
        let fail = |what: &str| -> ! { panic!("seed {seed}: {what}\n{text}") };
        let tree = syntax::parse_specification(SourceId::FIRST, &text)
            .unwrap_or_else(|d| fail(&d.message));
        let spec = typecheck::check_specification(&tree).unwrap_or_else(|d| fail(&d.message));
        let process = linearise::linearise(&spec, &linearise::LineariserOptions::default())
            .unwrap_or_else(|d| fail(&d.message));
        let model = Compiled::new(process, &Confluence::None).unwrap();
        let budget = Budget::new(Limits { max_states: Some(50_000), ..Limits::default() });
        let whole =
            explore::explore(&model, &explore::Options::default(), &budget, &Silent).unwrap();
        if whole.stop != Stop::Complete {
            continue;
        }
        same_distances(&model, &budget, seed, &text);
        for formula in FORMULAS {
            let tree = syntax::parse_formula(SourceId::FIRST, formula).unwrap();
            let typed = check_formula(&tree, &model.process().data, &model.process().actions)
                .unwrap_or_else(|d| fail(&d.message));
            let answer = |threads: usize, symmetry: bool, partial_order: bool| {
                let explore = explore::Options {
                    threads,
                    symmetry,
                    partial_order,
                    ..explore::Options::default()
                };
                let options = Options { evidence: false, ..Options::new(&explore) };
                check(&model, &model, &typed, options, &budget).unwrap_or_else(|d| fail(&d.message))
            };
            let full = answer(1, false, false);
            let one = answer(1, false, true);
            for (other, how) in [
                (&one, "one thread"),
                (&answer(3, false, true), "three"),
                (&answer(2, true, true), "symmetries"),
            ] {
                if other.verdict != full.verdict {
                    fail(&format!(
                        "{formula}, {how}: {:?}, without reduction {:?}",
                        other.verdict, full.verdict
                    ));
                }
                // A search that ends early may have reached more or fewer states.
                if how == "three"
                    && full.verdict == Verdict::True
                    && (other.states, other.equations) != (one.states, one.equations)
                {
                    fail(&format!(
                        "{formula}: {} states, with three threads {}",
                        one.states, other.states
                    ));
                }
            }
            if let ReductionUse::Used(saved) = one.order {
                reduced += u64::from(saved.steps > 0);
                fewer += u64::from(one.equations < full.equations);
            }
            verdicts[usize::from(full.verdict == Verdict::True)] += 1;
        }
    }
    println!(
        "steps were left out in {reduced} checks, {fewer} with fewer equations; {} true, {} false",
        verdicts[1], verdicts[0]
    );
    assert!(
        cases < 50 || reduced > 50 && fewer > 50 && verdicts.iter().all(|v| *v > 100),
        "{reduced} {fewer} {verdicts:?}"
    );
}

#[test]
fn skipped_transitions_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let model = path(
        "model.mcrl2",
        "act a, b: Nat; proc P(n: Nat) = (n < 9) -> a(n) . P(n + 1); Q(n: Nat) = (n < 9) -> b(n) . Q(n + 1);\ninit allow({a, b}, P(0) || Q(0));\n",
    );
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = run(&[arguments, &["--format", "json", "--no-progress"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let found = json(&["explore", &model, "--deadlock"]);
    assert_eq!(
        (
            &found["states"],
            &found["partial_order"]["used"],
            &found["ways"][0]["steps"].as_array().map(Vec::len)
        ),
        (&19.into(), &true.into(), &Some(18))
    );
    let all = json(&["explore", &model, "--deadlock", "--without", "por"]);
    assert_eq!((&all["states"], &all["partial_order"]["reason"]), (&100.into(), &"asked".into()));
    // Counts are of all states.
    assert_eq!(json(&["explore", &model])["states"], 100);
    let text = run(&["explore", &model, "--action", "nothing", "--no-progress"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("partial-order reduction skipped the rest"), "{text}");
    for (formula, reason) in [
        ("[true*.b(9)]false", None),
        ("[true*]<a(0)>true", Some("next steps")),
        ("mu X. [true]X", Some("least fixed point")),
    ] {
        let formula = path("formula.mcf", formula);
        let told = json(&["check", &model, &formula])["results"][0]["partial_order"].clone();
        assert_eq!(told["reason"].as_str(), reason, "{told}");
        assert_eq!(told["used"], reason.is_none(), "{told}");
    }
}
