//! Symmetry reduction and confluence change no count and no verdict: random specifications of
//! processes that are nearly interchangeable, explored and checked with and without.
//!
//! A failure prints the seed and the specification; `MU_CHECK_SEED=n cargo test --release --test
//! symmetry` replays it, `MU_CHECK_CASES=n` runs more of them.

use crate::support::{mu_check as run, package};
use mu_check::base::random::Random;
use mu_check::base::{Budget, SourceId};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Silent};
use mu_check::formula::typecheck::check_formula;
use mu_check::pbes::{Options, check};
use mu_check::process::{linearise, typecheck};
use mu_check::syntax;
use std::path::PathBuf;

/// Writes processes with an identity and a value, and a memory; some mention single constants, or
/// use their order, which breaks the symmetry.
fn specification(random: &mut Random) -> String {
    let ids = 2 + random.below(2);
    let values = 2 + random.below(2);
    let constants =
        |prefix: &str, n: usize| (1..=n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let (id, value) = (constants("i", ids), constants("v", values));
    let skewed = random.chance(1, 3);
    let mut steps = Vec::new();
    for _ in 0..2 + random.below(3) {
        let condition = match random.below(if skewed { 9 } else { 6 }) {
            0 => "(n < 2) -> ".to_string(),
            1 => "(n > 0 && x == y) -> ".into(),
            2 => "(x != y) -> ".into(),
            3 | 4 => "(n < 1) -> ".into(),
            5 => String::new(),
            6 => format!("(i == {}) -> ", random.choose(&id)),
            7 => format!("(x == {}) -> ", random.choose(&value)),
            _ => "(x < y) -> ".into(),
        };
        let next = random.choose(&[
            "P(i, x, y, n)",
            "P(i, y, x, n)",
            "P(i, x, x, n)",
            "P(i, x, y, 0)",
            "P(i, x, y, min(n + 1, 2))",
        ]);
        steps.push(match random.below(6) {
            0 => format!("{condition} a(i, x) . {next}"),
            1 => format!("{condition} (sum y: V. put(i, y) . {next})"),
            2 => format!("{condition} (sum x: V. take(i, x) . {next})"),
            3 => format!("{condition} tau . {next}"),
            4 => format!("{condition} b(i) . {next}"),
            _ => format!("{condition} (sum j: I. (i != j) -> meet(i, j) . {next} + sum j: I. (i != j) -> greet(j, i) . {next})"),
        });
    }
    let memory = [
        "sum i: I, x: V. put'(i, x) . M(m[i -> x], s + {i}, l)",
        "sum i: I. take'(i, m(i)) . M(m, s - {i}, l)",
        "sum i: I. (i in s && #l < 2) -> a(i, m(i)) . M(m, s, l <| i)",
        "(#l > 0) -> out(head(l)) . M(m, s, tail(l))",
        "(#l > 1) -> out(l . 1) . M(m, s, [])",
        "sum x: V. (exists i: I. i in s && m(i) == x) -> a(head(l), x) . M(m, s, l)",
    ];
    let mut chosen: Vec<&str> = memory[..2].to_vec();
    chosen.extend(memory[2..].iter().filter(|_| random.chance(1, 2)));
    let start = |i: &String, random: &mut Random| {
        let x = if skewed { random.choose(&value).clone() } else { value[0].clone() };
        format!("P({i}, {x}, {x}, 0)")
    };
    // Without skew values start as undefined, so that they are interchangeable too.
    let undefined = if skewed { String::new() } else { "v0 | ".into() };
    let initial = if skewed { value[0].as_str() } else { "v0" };
    let processes: Vec<String> =
        id.iter().map(|i| start(i, random).replace("v1", initial)).collect();
    let hidden = random.choose(&["met", "done", "taken", "out", "b"]);
    format!(
        "sort I = struct {};\n     V = struct {undefined}{};\nmap min: Nat # Nat -> Nat;\n    none: I -> V;\nvar i: I; eqn none(i) = {initial};\n\
         act a, put, put', take, take', done, taken: I # V;\n    b, out: I;\n    meet, greet, met: I # I;\n\
         proc P(i: I, x: V, y: V, n: Nat) =\n    {};\n\
         proc M(m: I -> V, s: FSet(I), l: List(I)) =\n    {};\n\
         init hide({{{hidden}}}, allow({{a, b, out, done, taken, met}},\n  comm({{put|put' -> done, take|take' -> taken, meet|greet -> met}},\n    {} || M(none, {{}}, []))));\n",
        id.join(" | "),
        value.join(" | "),
        steps.join("\n  + "),
        chosen.join("\n  + "),
        processes.join(" || "),
    )
    .replace("map min: Nat # Nat -> Nat;\n    none", "map none")
}

const FORMULAS: [&str; 10] = [
    "[true*] forall i: I, x: V. [a(i, x)] [true*] forall y: V. (val(x == y) || [(!done(i, y))* . a(i, y)] true)",
    "[true*] forall i: I. [out(i)] [(!(exists x: V. done(i, x)))* . out(i)] false",
    "[true*] forall i, j: I. [met(i, j)] val(i != j)",
    "[true* . b(i1)] false",
    "forall x: V. [(!done(i2, x))* . taken(i2, x)] false",
    "nu X(s: FSet(I) = {}). (forall i: I. [b(i)] X(s + {i})) && [!(exists i: I. b(i))] X(s) && val(#s < 2)",
    "nu X(n: Nat = 0). val(n < 3) && (forall i: I. [b(i)] X(n + 1)) && [!(exists i: I. b(i))] X(n)",
    "<true*> exists i: I. <out(i)> true",
    "[true*] <true> true",
    "[tau] false",
];

/// Ends a case with the command that replays it.
fn fail<T>(seed: u64, text: &str, what: &str) -> T {
    panic!("seed {seed}: {what}\n{text}")
}

#[test]
fn counts_and_verdicts_are_those_without() {
    let seed: u64 = std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let cases: u64 =
        std::env::var("MU_CHECK_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(24);
    let (mut reduced, mut largest, mut verdicts, mut cycles) = (0, 0, [0; 2], [0; 2]);
    for seed in seed..seed + cases {
        let mut random = Random::new(seed);
        let text = specification(&mut random);
        let tree = syntax::parse_specification(SourceId::FIRST, &text)
            .unwrap_or_else(|d| fail(seed, &text, &d.message));
        let spec =
            typecheck::check_specification(&tree).unwrap_or_else(|d| fail(seed, &text, &d.message));
        let process = linearise::linearise(&spec, &linearise::LineariserOptions::default())
            .unwrap_or_else(|d| fail(seed, &text, &d.message));
        let budget =
            Budget::new(mu_check::base::Limits { max_states: Some(12_000), ..Default::default() });
        let mut order = 1;
        for confluence in [Confluence::None, Confluence::Auto] {
            let model = Compiled::new(process.clone(), &confluence).unwrap();
            let with = |threads: usize, symmetry: bool| {
                explore::Options { threads, symmetry, ..explore::Options::default() }
                    .with_confluence_of(&model)
            };
            let plain = explore::explore(&model, &with(1, false), &budget, &Silent)
                .unwrap_or_else(|d| fail(seed, &text, &d.message));
            if plain.stop != mu_check::base::Stop::Complete {
                continue;
            }
            for threads in [1, 2, 7] {
                let other = explore::explore(&model, &with(threads, true), &budget, &Silent)
                    .unwrap_or_else(|d| fail(seed, &text, &d.message));
                let figures = |o: &explore::Outcome| (o.states, o.transitions, o.deadlocks);
                if figures(&plain) != figures(&other) {
                    fail::<()>(
                        seed,
                        &text,
                        &format!(
                            "{confluence:?}, {threads} threads: {:?}, with symmetries {:?}",
                            figures(&plain),
                            figures(&other)
                        ),
                    );
                }
                order = other.symmetries;
                assert!(
                    other.stored <= other.states
                        && other.stored * other.symmetries as u64 >= other.states
                );
            }
            let cyclic = |symmetries: Option<&explore::Symmetries>| {
                let answer = explore::is_acyclic(
                    &model,
                    &with(1, false),
                    &budget,
                    &Silent,
                    None,
                    symmetries,
                );
                !matches!(answer, Ok(explore::Cyclic::No(_)))
            };
            if let Some(group) = explore::Symmetries::find(&model, &with(1, true)).unwrap() {
                let (full, kept) = (cyclic(None), cyclic(Some(&group)));
                assert!(
                    full == kept || group.broken(),
                    "seed {seed}: cycles {full}, with symmetries {kept}\n{text}"
                );
                cycles[usize::from(full)] += 1;
            }
            for formula in FORMULAS {
                let formula_tree = syntax::parse_formula(SourceId::FIRST, formula).unwrap();
                let typed =
                    check_formula(&formula_tree, &model.process().data, &model.process().actions)
                        .unwrap_or_else(|d| fail(seed, &text, &d.message));
                let answer = |options: &explore::Options| {
                    let answer = check(&model, &model, &typed, Options::new(options), &budget)
                        .unwrap_or_else(|d| fail(seed, &text, &d.message));
                    (answer.verdict, answer.equations, answer.states)
                };
                // What a search that leaves out steps meets is not a matter of symmetries alone;
                // its verdict is.
                let whole = |o: explore::Options| explore::Options { partial_order: false, ..o };
                let (one, other) = (answer(&whole(with(1, false))), answer(&whole(with(2, true))));
                let full = answer(&explore::Options { confluent: Vec::new(), ..with(1, false) });
                let both = answer(&explore::Options { confluent: Vec::new(), ..with(2, true) });
                assert_eq!(
                    both.0, full.0,
                    "seed {seed}: {formula}, steps left out, with symmetries\n{text}"
                );
                // A search that ends early may have reached more or fewer states.
                let agree = if one.0 == mu_check::pbes::Verdict::True {
                    one == other
                } else {
                    one.0 == other.0
                };
                if !agree || one.0 != full.0 {
                    fail::<()>(
                        seed,
                        &text,
                        &format!(
                            "{confluence:?}, {formula}: {one:?}, with symmetries {other:?}, in full {full:?}"
                        ),
                    );
                }
                match one.0 {
                    mu_check::pbes::Verdict::True => verdicts[0] += 1,
                    mu_check::pbes::Verdict::False => verdicts[1] += 1,
                    mu_check::pbes::Verdict::Unknown(_) => {}
                }
            }
        }
        reduced += u64::from(order > 1);
        largest = largest.max(order);
    }
    println!(
        "{reduced} of {cases} with symmetries, at most {largest}; {} true, {} false",
        verdicts[0], verdicts[1]
    );
    println!("{} without a cycle, {} with one", cycles[0], cycles[1]);
    assert!(reduced * 4 > cases && reduced < cases, "{reduced} of {cases}");
    assert!(
        cases < 20 || largest >= 6 && verdicts.iter().all(|v| *v > 20),
        "{largest} {verdicts:?}"
    );
}

/// A value that no state has may have no normal form: then it is not interchangeable with one that
/// a state has, and that is all.
#[test]
fn values_that_do_not_occur_are_no_reason_to_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let model = write(
        "model.mcrl2",
        "sort D = struct d1 | d2;
         map f: D -> Nat; g: D -> D; open: D -> Bool;
         var x: D; eqn f(d1) = 0; f(d2) = f(d2) + 1; g(x) = x; open(d1) = true;
         act a: D # Nat; b: D; c;
         proc P(x: D) = a(x, f(x)) . P(g(x));
              Q(n: Nat) = (n < 3) -> c . Q(n + 1);
         init P(d1) || Q(0);",
    );
    let outcome = run(&["explore".to_string(), model]);
    assert_eq!((outcome.code, outcome.json["states"].as_u64()), (0, Some(4)), "{}", outcome.stderr);
    // The model is symmetric; what the formula says of a value, only of one that it asks about.
    let symmetric = write(
        "symmetric.mcrl2",
        "sort D = struct d1 | d2;
         map open: D -> Bool; eqn open(d1) = true;
         act b: D; c;
         proc P = sum x: D. b(x) . P;
              Q(n: Nat) = (n < 3) -> c . Q(n + 1);
         init P || Q(0);",
    );
    let formula =
        write("formula.mcf", "[true*] forall x: D. (val(x == d1) => [b(x)] val(open(x)))");
    let outcome = run(&[symmetric, formula]);
    assert_eq!(
        (outcome.code, &outcome.json["results"][0]["verdict"]),
        (0, &"true".into()),
        "{}",
        outcome.stderr
    );
}

/// The ARCx model: data, addresses and cores are interchangeable in pairs. What is said of it, and
/// that it changes no figure.
#[test]
fn the_processor_has_eight_symmetries() {
    let model = PathBuf::from(package("specs/arcx.spec")).display().to_string();
    let formulas =
        ["1a.gos", "1b.gos", "1c.gos", "1d.gos", "2.selfobserving", "3.cacheconsistency"]
            .map(|f| package(&format!("formulas/{f}.mcf")));
    let define = ["-D".to_string(), "max_operation_id=0".into()];
    let mut explore = vec!["explore".to_string(), model.clone(), "-v".into()];
    explore.extend(define.clone());
    let mut check = vec!["check".to_string(), model, "-v".into()];
    check.extend(define);
    check.extend(formulas);
    for arguments in [explore, check] {
        let with = run(&arguments);
        let without = run(&[arguments, vec!["--without".into(), "symmetry,por".into()]].concat());
        assert!(with.stderr.contains("one state represents up to 8"), "{}", with.stderr);
        assert!(without.stderr.contains("symmetries: switched off"), "{}", without.stderr);
        let figures = |o: &crate::support::Outcome| -> Vec<serde_json::Value> {
            let results =
                o.json["results"].as_array().cloned().unwrap_or_else(|| vec![o.json.clone()]);
            let keys = ["states", "transitions", "deadlocks", "equations", "verdict"];
            results.iter().flat_map(|r| keys.iter().map(|k| r[k].clone())).collect()
        };
        assert_eq!(figures(&with), figures(&without));
    }
}

/// With three cores the order in which they observe a store breaks their symmetry: JSON names each
/// exchange that is not used, and why.
#[test]
fn generators_that_are_dropped_are_named_with_the_reason() {
    let model = package("specs/arcx.spec");
    let sizes = [
        "-D",
        "num_cores=3",
        "-D",
        "max_operation_id=0",
        "-D",
        "address_size=1",
        "-D",
        "byte_size=2",
    ]
    .map(str::to_string);
    let explore = [vec!["explore".to_string(), model.clone()], sizes.to_vec()].concat();
    let check =
        [vec!["check".to_string(), model, package("formulas/1b.gos.mcf")], sizes.to_vec()].concat();
    for (arguments, result) in [(&explore, false), (&check, true)] {
        let of = |arguments: &[String]| {
            let json = run(arguments).json;
            if result {
                json["results"][0]["symmetries"].clone()
            } else {
                json["symmetries"].clone()
            }
        };
        let found = of(arguments);
        assert_eq!(found["order"], 2, "{found}");
        let dropped = found["dropped"].as_array().unwrap();
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let generator = format!("c_processor_core_{a}_id and c_processor_core_{b}_id");
            let own = dropped
                .iter()
                .find(|d| d["generator"] == *generator)
                .unwrap_or_else(|| panic!("{generator}: {found}"));
            assert!(own["why"].as_str().unwrap().contains("has no image"), "{found}");
        }
        assert!(found.get("off").is_none());
        let off = of(&[arguments.clone(), vec!["--without".into(), "symmetry".into()]].concat());
        assert_eq!((&off["order"], &off["off"]), (&1.into(), &"they are switched off".into()));
        let off =
            of(&[arguments.clone(), vec!["--confluence".into(), "ip_wb_sync_store".into()]]
                .concat());
        assert!(off["off"].as_str().unwrap().contains("not proven confluent"), "{off}");
    }
}

#[test]
fn components_stay_interchangeable_when_they_are_folded() {
    let steps: String = (0..11)
        .map(|i| format!("P{i} = tick . P{} + go . P{i} + work . P{};\n", i + 1, i * 7 % 12))
        .collect();
    let text = format!(
        "act tick, Tick, go, work;\nproc\n{steps}P11 = tick . P0;\n\
         init allow({{Tick, go, work}}, comm({{tick|tick|tick|tick -> Tick}}, P0 || P0 || P0 || P0));"
    );
    let spec = syntax::parse_specification(SourceId::FIRST, &text)
        .and_then(|s| typecheck::check_specification(&s))
        .unwrap();
    let mut found = Vec::new();
    for fold_above in [usize::MAX, 5_000] {
        let options = linearise::LineariserOptions { fold_above, ..Default::default() };
        let process = linearise::linearise(&spec, &options).unwrap();
        let summands = process.summands.len();
        let model = Compiled::new(process, &Confluence::None).unwrap();
        for symmetry in [true, false] {
            let options = explore::Options { threads: 1, symmetry, ..Default::default() };
            let outcome = explore::explore(&model, &options, &Budget::default(), &Silent).unwrap();
            found.push((
                symmetry,
                outcome.symmetries,
                outcome.states,
                outcome.transitions,
                outcome.stored,
            ));
        }
        assert_eq!(summands < 1_000, fold_above == 5_000, "{summands} summands");
    }
    assert_eq!(found[0].1, 24);
    assert_eq!(found[..2], found[2..]);
    assert_eq!((found[0].2, found[0].3), (found[1].2, found[1].3));
}

#[test]
fn a_search_that_gives_symmetries_up_begins_again_without() {
    let text = "act tick; proc P(n: Nat) = (n < 3) -> tick . P(n + 1); init P(0) || P(0) || P(0);";
    let spec = syntax::parse_specification(SourceId::FIRST, text)
        .and_then(|s| typecheck::check_specification(&s))
        .unwrap();
    let process = linearise::linearise(&spec, &linearise::LineariserOptions::default()).unwrap();
    let model = Compiled::new(process, &Confluence::None).unwrap();
    let options = explore::Options { threads: 1, ..Default::default() };
    let mut orders = Vec::new();
    let (states, dropped) = explore::with_verified_symmetries(&model, &options, |symmetries| {
        orders.push(symmetries.as_ref().map(|s| s.order()));
        if let Some(symmetries) = symmetries {
            return Err(symmetries.give_up());
        }
        let plain = explore::Options { symmetry: false, ..options.clone() };
        explore::explore(&model, &plain, &Budget::default(), &Silent).map(|o| o.states)
    })
    .unwrap();
    assert_eq!((states, orders), (64, vec![Some(6), None]));
    assert!(
        !dropped.is_empty() && dropped.iter().all(|d| d.why.contains("costs more than it saves")),
        "{dropped:?}"
    );
}
