//! The blocks `mcrl2 chance` of `docs/language.md`: counts of probabilistic models and values of
//! formulas on them.

use mu_check::base::random::Random;
use mu_check::base::{Budget, Limits, Stop};
use mu_check::chance::bisimulation::bisimilar;
use mu_check::chance::{ProbabilisticSystem, aut, explore};
use mu_check::compile::{Compiled, Confluence};
use mu_check::formula::real::check_real;
use mu_check::process::linearise::{LineariserOptions, linearise};
use mu_check::process::typecheck::check_specification;
use mu_check::reals::{solve::solve, translate::translate};
use mu_check::{process, syntax};
use std::path::Path;

/// Returns the model of a text, and its system.
fn explore_text(text: &str, options: &LineariserOptions) -> (Compiled, ProbabilisticSystem) {
    let spec = check_specification(&syntax::parse_specification(Default::default(), text).unwrap())
        .unwrap();
    let model = Compiled::new(linearise(&spec, options).unwrap(), &Confluence::None).unwrap();
    let (system, _) = explore::explore(&model, &Budget::default(), &mut |_| {})
        .unwrap_or_else(|e| panic!("{text}: {e:?}"));
    (model, system)
}

/// Returns the value of a formula as text.
fn value(model: &Compiled, system: &ProbabilisticSystem, formula: &str) -> String {
    let file = syntax::parse_formula(Default::default(), formula).unwrap();
    let typed = check_real(&file, &model.process().data, &model.process().actions).unwrap();
    let equations = translate(&typed, system, model, &Budget::default()).unwrap();
    let bounds = solve(&equations, &Budget::default()).unwrap();
    bounds.value().unwrap_or_else(|| panic!("{formula}: {bounds:?}")).to_string()
}

#[test]
fn examples_of_the_document() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/language.md"))
            .unwrap();
    let mut found = 0;
    for block in page.split("```mcrl2 chance\n").skip(1) {
        let text = &block[..block.find("```").unwrap()];
        let (model, system) = explore_text(text, &LineariserOptions::default());
        for expected in text.lines().filter_map(|l| l.strip_prefix("%% ")) {
            found += 1;
            match expected.strip_prefix("formula ").and_then(|f| f.split_once(" has value ")) {
                Some((formula, wanted)) => {
                    assert_eq!(value(&model, &system, formula), wanted, "{formula}")
                }
                None => assert_eq!(
                    format!("states {}, transitions {}", system.state_count(), system.step_count()),
                    expected,
                    "{text}"
                ),
            }
        }
        // Neither simplification nor the form of files changes what it is, nor does printing the
        // linear process.
        for options in [LineariserOptions::plain(), LineariserOptions::plain().with_all(true)] {
            assert!(bisimilar(&system, &explore_text(text, &options).1), "{text}");
        }
        let mut bytes = Vec::new();
        aut::write(&system, &mut bytes).unwrap();
        assert!(bisimilar(&system, &aut::read(&bytes[..]).unwrap()), "{text}");
        let printed = process::print::linear_process(model.process());
        assert!(
            bisimilar(&system, &explore_text(&printed, &LineariserOptions::default()).1),
            "{printed}"
        );
    }
    assert!(found >= 5, "{found}");
}

#[test]
fn chance_below_choices_and_in_parallel() {
    let systems = [
        // Chance decides first, whatever is chosen then.
        ("init (dist x: Bool[1/2]. x -> a(1)) + a(2);", "init dist x: Bool[1/2]. ((x -> a(1)) + a(2));"),
        // Both sides of a composition choose.
        (
            "init b . (dist x: Bool[1/2]. x -> a(1) <> a(2)) || delta;",
            "init b . (dist y: Nat[if(y < 4, 1/4, 0)]. (y < 2) -> a(1) . delta <> a(2) . delta);",
        ),
        // What a condition rules out is certain.
        (
            "init dist x: Bool[1/3 + if(x, 1/3, 0)]. (x -> (dist y: Bool[1/2]. y -> a(1) . delta <> a(2) . delta) <> b . delta);",
            "init dist n: Nat[if(n < 3, 1/3, 0)]. ((n == 0) -> a(1) . delta + (n == 1) -> a(2) . delta + (n == 2) -> b . delta);",
        ),
        // A process that is called for what it chooses, with arguments.
        (
            "proc P(n: Nat) = dist x: Bool[if(x, n/3, 1 - n/3)]. x -> a(n) . P((n + 1) mod 3) <> b . P(n); init P(1);",
            "proc Q(n: Nat, x: Bool) = (x -> a(n) <> b) . dist y: Bool[if(x, if(y, ((n + 1) mod 3)/3, 1 - ((n + 1) mod 3)/3), if(y, n/3, 1 - n/3))].
             Q(if(x, (n + 1) mod 3, n), y);
             init dist x: Bool[if(x, 1/3, 2/3)]. Q(1, x);",
        ),
    ];
    for (one, other) in systems {
        let of = |text: &str| {
            explore_text(&format!("act a: Nat; b; {text}"), &LineariserOptions::default()).1
        };
        assert!(bisimilar(&of(one), &of(other)), "{one}");
    }
}

#[test]
fn sums_over_chance_choose_for_each_value() {
    let systems = [
        (
            "init sum n: Nat. (n < 3) -> dist x: Bool[1/2]. a(if(x, n, n + 3));",
            "init dist x: Bool[1/2]. dist y: Bool[1/2]. dist z: Bool[1/2].
             (a(if(x, 0, 3)) + a(if(y, 1, 4)) + a(if(z, 2, 5)));",
        ),
        // The distribution depends on the variable; after an action, in a process with a parameter.
        (
            "proc P(k: Nat) = b . sum x: Bool. dist n: Nat[if(n < 2, if(x == (n == 0), 1/4, 3/4), 0)].
             a(n + if(x, 0, 2) + k) . P((k + 1) mod 3); init P(1);",
            "proc P(k: Nat) = b . dist n, m: Nat[if(n < 2 && m < 2, if(n == 0, 1/4, 3/4) * if(m == 0, 3/4, 1/4), 0)].
             (a(n + k) + a(m + 2 + k)) . P((k + 1) mod 3); init P(1);",
        ),
        // Parts without a choice remain sums over infinite sorts; conditions and several variables.
        (
            "init sum n: Nat. ((n < 2) -> (sum m: Nat. (n <= m && m < 2) -> dist x: Bool[1/2]. x -> a(n + m) <> b) <> ((n == 7) -> a(n)));",
            "init dist x: Bool[1/2]. dist y: Bool[1/2]. dist z: Bool[1/2].
             ((x -> a(0) <> b) + (y -> a(1) <> b) + (z -> a(2) <> b) + a(7));",
        ),
        // A process that bounds its argument, with a continuation that uses the variable.
        (
            "proc P(n: Nat) = (n < 2) -> dist x: Bool[1/2]. x -> a(n) <> b; init sum n: Nat. P(n) . a(n + 4);",
            "init dist x, y: Bool[1/4]. ((x -> a(0) <> b) . a(4) + (y -> a(1) <> b) . a(5));",
        ),
        // A condition on the state excludes some values, with certainty.
        (
            "proc P(k: Nat) = b . sum x: Bool. (x || k > 0) -> dist y: Bool[1/2]. a(if(y, k, 5) + if(x, 10, 0)) . P((k + 1) mod 2); init P(0);",
            "proc P = b . (dist y: Bool[1/2]. a(if(y, 0, 5) + 10)) .
             b . (dist y, z: Bool[1/4]. (a(if(y, 1, 5) + 10) + a(if(z, 1, 5)))) . P; init P;",
        ),
        // No value at all.
        ("init b . sum n: Nat. (n < 0) -> dist x: Bool[1/2]. a(n);", "init b . delta;"),
    ];
    for (one, other) in systems {
        for options in [LineariserOptions::default(), LineariserOptions::plain()] {
            let of = |text: &str| explore_text(&format!("act a: Nat; b; {text}"), &options).1;
            assert!(bisimilar(&of(one), &of(other)), "{one}");
        }
    }
    // One of three independent values is 1.
    let (model, system) = explore_text(
        "act a: Nat#Nat; init sum n: Nat. (n < 3) -> dist m: Nat[if(m < 2, 1/2, 0)]. a(n, m);",
        &LineariserOptions::default(),
    );
    assert_eq!(value(&model, &system, "<exists n: Nat. a(n, 1)>val(1) || val(0)"), "7/8");
}

#[test]
fn sums_over_chance_without_a_bound_are_refused() {
    for (text, expected) in [
        ("init sum n: Nat. dist x: Bool[1/2]. a(n);", "bound its variables by a condition"),
        ("init sum n: Nat. (n < 5000) -> dist x: Bool[1/2]. a(n);", "more than 1000 values of `n`"),
        (
            "proc P(k: Nat) = a(k) . sum n: Nat. (n < k) -> dist x: Bool[1/2]. a(n) . P(k); init P(2);",
            "bound its variables",
        ),
    ] {
        let text = format!("act a: Nat; {text}");
        let spec =
            check_specification(&syntax::parse_specification(Default::default(), &text).unwrap())
                .unwrap();
        let Err(error) = linearise(&spec, &LineariserOptions::default()) else { panic!("{text}") };
        let printed = format!("{error:?}");
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn what_adds_up_to_something_else_is_refused() {
    for (weight, expected) in [
        ("1/3", "have the sum 2/3"),
        ("if(x, 2, -1)", "this probability is `-1`"),
        ("0", "have the sum 0"),
    ] {
        let text = format!("act a; init a . dist x: Bool[{weight}]. a;");
        let spec =
            check_specification(&syntax::parse_specification(Default::default(), &text).unwrap())
                .unwrap();
        let model = Compiled::new(
            linearise(&spec, &LineariserOptions::default()).unwrap(),
            &Confluence::None,
        )
        .unwrap();
        let error = explore::explore(&model, &Budget::default(), &mut |_| {})
            .err()
            .map(|e| e.message)
            .unwrap_or_default();
        assert!(error.contains(expected), "{weight}: {error}");
    }
}

/// Conditions of a weight that do not depend on the chosen values determine the possible weights.
#[test]
fn conditions_before_weights() {
    let nested = "proc P(n: Nat) = a(n) . dist x: Nat[if(n == 0, if(x < 3, 1/3, 0), if(n == 1 && n < 2, if(x == 1, 1, 0), if(x < 2, 1/2, 0)))]. P(x); init P(0);";
    let apart = "proc P(n: Nat) = (n == 0) -> a(0) . (dist x: Nat[if(x < 3, 1/3, 0)]. P(x)) + (n == 1) -> a(1) . P(1)
        + (n == 2) -> a(2) . (dist x: Nat[if(x < 2, 1/2, 0)]. P(x)); init P(0);";
    let [a, b] = [nested, apart]
        .map(|t| explore_text(&format!("act a: Nat; {t}"), &LineariserOptions::default()).1);
    assert!(bisimilar(&a, &b));
    assert_eq!((a.state_count(), b.state_count()), (3, 3));
}

#[test]
fn parameters_that_are_only_added_to() {
    let text = "act win, lose, stop; proc P(n: Nat) = (n < 3) -> dist x: Bool[if(x, 1/3, 2/3)]. (x -> win . P(n + 1) <> lose . P(n + 1)) <> stop . delta; init P(0);";
    let (model, system) = explore_text(text, &LineariserOptions::default());
    // The number of wins is not bounded by the formula; without a bound of the model it grows for
    // ever.
    assert_eq!(
        value(&model, &system, "mu X(w: Nat = 2). <win>X(w + 1) || <lose>X(w) || <stop>val(w / 2)"),
        "3/2"
    );
    assert_eq!(
        value(
            &model,
            &system,
            "nu X(w: Int = 0, v: Nat = 0). [win]X(w - 5, v) && [lose]X(w, v + 3) && [stop](val(w) + val(2 * v))"
        ),
        "7"
    );
    let (model, system) =
        explore_text("act win; proc P = win . P; init P;", &LineariserOptions::default());
    assert_eq!(value(&model, &system, "mu X(w: Nat = 0). <win>X(w + 1) || val(w)"), "true");
    assert_eq!(value(&model, &system, "nu X(w: Int = 5). <win>X(w - 1) && val(w)"), "false");
    assert_eq!(value(&model, &system, "mu X(w: Int = 5). <win>X(w - 1) || val(w)"), "5");
}

/// Formulas with parameters that are only added to, and the same formulas with a condition on them
/// that is always true.
#[test]
fn parameters_that_are_only_added_to_agree_with_their_instances() {
    let text = "act a, b; proc P(n: Nat) = dist x: Bool[if(x, 1/3, 2/3)]. (x -> (a . P(0) + b . P(1)) <> (b . P(0) + (n == 1) -> b . P(n)));  init P(0);";
    let (model, system) = explore_text(text, &LineariserOptions::default());
    let equations = |formula: &str| {
        let file = syntax::parse_formula(Default::default(), formula).unwrap();
        let typed = check_real(&file, &model.process().data, &model.process().actions).unwrap();
        translate(&typed, &system, &model, &Budget::default()).unwrap().nodes.len()
    };
    let mut smaller = 0;
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let mut pick = |from: &[&'static str]| from[random.below(from.len())];
        let sign = pick(&["mu", "nu"]);
        let mut call = || {
            let modality = pick(&["<a>", "<b>", "[a]", "[b]", "<true>", "[true]"]);
            format!(
                "{modality}X({}, n + 1)",
                pick(&["w + 1", "w", "w - 2", "w + n", "2 + w", "1 - w", "w + w"])
            )
        };
        let (first, second) = (call(), call());
        let end = pick(&[
            "val(w)",
            "val(w / 2)",
            "val(3 * w - 1)",
            "val(n - w)",
            "val(w + n)",
            "(val(w) + val(w))",
            "val(0)",
            "-val(w)",
        ]);
        let with = pick(&["||", "&&", "+"]);
        let factor = pick(&["", "val(1/2) * "]);
        let formula = |before: &str| {
            format!(
                "{sign} X(w: Int = 1, n: Nat = 0). {before} ((val(n == 6) && {end}) || (val(n < 6) && (({factor}{first}) {with} {second})))"
            )
        };
        let (plain, with_condition) = (formula(""), formula("val(w < 0 || w >= 0) &&"));
        assert_eq!(
            value(&model, &system, &plain),
            value(&model, &system, &with_condition),
            "seed {seed}: {plain}"
        );
        smaller += usize::from(equations(&plain) < equations(&with_condition));
    }
    assert!(smaller > 20, "{smaller}");
}

/// Arguments of an action before a choice: constants, and terms with variables of their own, which
/// take the places behind the values that are known at the action.
#[test]
fn labels_before_a_choice_are_evaluated_without_its_variables() {
    let text = "act d: Nat; e: Bool; f: Nat -> Nat; c;
proc P(n: Nat) =
    d(1) . dist b: Bool[1/2]. (b -> c . P(n) <> delta)
  + e(exists k: Nat. k < 3 && k == n) . dist x: Bool, y: Bool[1/4]. P(if(x && y, n, (n + 1) mod 5))
  + f(lambda m: Nat. m + n) . dist b: Bool[1/2]. P(0)
  + d((k + k whr k = n + 1 end)) . dist b: Bool[1/2]. P(0);
init P(0);";
    let (_, system) = explore_text(text, &LineariserOptions::default());
    let text_of = |label: &mu_check::base::ids::LabelId| system.table.texts[label.index()].clone();
    let labels: std::collections::BTreeSet<String> = system.labels.iter().map(text_of).collect();
    for expected in ["d(1)", "d(2)", "d(10)", "e(true)", "e(false)", "c"] {
        assert!(labels.contains(expected), "{expected}: {labels:?}");
    }
}

/// A negative factor is a negation: no fixed-point variable may stand below it, unless the fixed
/// point is below it too.
#[test]
fn negative_factors_keep_fixed_points_monotone() {
    let (model, system) = explore_text("act a; init a . delta;", &LineariserOptions::default());
    let translated = |formula: &str| {
        let file = syntax::parse_formula(Default::default(), formula).unwrap();
        let typed = check_real(&file, &model.process().data, &model.process().actions).unwrap();
        translate(&typed, &system, &model, &Budget::default())
    };
    for formula in [
        "mu X. val(-1) * (X + val(1)) && val(5)",
        "nu X. val(1 - 2) * X",
        "mu X. val(5) && val(-1) * (val(1) + (nu Y. val(2) && (X || Y)))",
    ] {
        let Err(error) = translated(formula) else { panic!("{formula} is accepted") };
        assert!(error.message.contains("a negative factor"), "{formula}: {}", error.message);
    }
    assert_eq!(value(&model, &system, "val(-1) * (mu X. val(3) || X)"), "-3");
    assert_eq!(value(&model, &system, "mu X. val(3) || val(1/2) * X"), "3");
}

/// A limit of states holds however small it is.
#[test]
fn a_limit_of_states_is_met() {
    let text = "act a: Nat; proc P(n: Nat) = (n < 9) -> a(n) . P(n + 1); init P(0);";
    let (model, system) = explore_text(text, &LineariserOptions::default());
    let all = system.state_count() as u64;
    for (limit, expected) in [(1, Stop::States), (all - 1, Stop::States), (all, Stop::Complete)] {
        let budget = Budget::new(Limits { max_states: Some(limit), ..Default::default() });
        let (_, stop) = explore::explore(&model, &budget, &mut |_| {}).unwrap();
        assert_eq!(stop, expected, "{limit} of {all}");
    }
}
