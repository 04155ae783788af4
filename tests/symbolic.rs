//! The symbolic engine against the explicit one, on whole programs: equal counts, equal verdicts,
//! evidence, limits.

use crate::support::{defines, mu_check, package};
use serde_json::Value;
use std::path::PathBuf;

const FORMULAS: [&str; 5] = ["1a.gos", "1b.gos", "1c.gos", "1d.gos", "2.selfobserving"];

fn arcx() -> PathBuf {
    PathBuf::from(package("specs/arcx.spec"))
}

fn explore(options: &[String], engine: &str) -> Value {
    let mut arguments =
        vec!["explore".to_string(), arcx().display().to_string(), "--engine".into(), engine.into()];
    arguments.extend_from_slice(options);
    let outcome = mu_check(&arguments);
    assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.stderr);
    assert_eq!(outcome.json["stop"], "complete", "{arguments:?}: {}", outcome.json);
    outcome.json
}

#[test]
fn counts_are_those_of_the_explicit_engine() {
    let names = [
        "address_size",
        "byte_size",
        "num_cores",
        "memcommands_size",
        "nr_wb_buffers",
        "max_operation_id",
    ];
    let instances = [
        [2, 2, 2, 1, 1, 0],
        [2, 2, 2, 1, 1, 1],
        [1, 1, 1, 1, 1, 0],
        [2, 2, 1, 2, 2, 2],
        [1, 2, 3, 1, 1, 0],
        [1, 1, 2, 1, 2, 1],
        [2, 2, 2, 2, 1, 0],
        [1, 1, 2, 2, 2, 1],
        [2, 3, 2, 1, 1, 0],
    ];
    for instance in instances {
        let values: Vec<(&str, u32)> = names.into_iter().zip(instance).collect();
        let (one, other) =
            (explore(&defines(&values), "explicit"), explore(&defines(&values), "symbolic"));
        for key in ["states", "transitions", "deadlocks"] {
            assert_eq!(one[key], other[key], "{key} of {values:?}");
        }
        assert_eq!((&one["engine"], &other["engine"]), (&"explicit".into(), &"symbolic".into()));
        assert!(
            other["nodes"].as_u64().is_some_and(|n| n > 0) && one["nodes"].is_null(),
            "{one} {other}"
        );
    }
}

#[test]
fn strategies_count_alike() {
    let all = explore(&defines(&[("max_operation_id", 0)]), "symbolic");
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("chain.mcrl2");
    std::fs::write(
        &chain,
        "act a, b; proc P(n: Nat) = (n < 30) -> a . P(n + 1) + (n > 5) -> b . P(2); init P(0);",
    )
    .unwrap();
    for (strategy, key) in [("saturation", ""), ("breadth-first", "levels"), ("chaining", "rounds")]
    {
        let options =
            [defines(&[("max_operation_id", 0)]), vec!["--strategy".into(), strategy.into()]]
                .concat();
        let outcome = explore(&options, "symbolic");
        for key in ["states", "transitions", "deadlocks"] {
            assert_eq!(outcome[key], all[key], "{key} by {strategy}");
        }
        let outcome = mu_check(&[
            "explore",
            chain.to_str().unwrap(),
            "--engine",
            "symbolic",
            "--strategy",
            strategy,
        ]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(
            outcome.json["levels"].as_u64(),
            Some(30).filter(|_| key == "levels"),
            "{}",
            outcome.json
        );
        assert_eq!(outcome.json["rounds"].is_u64(), key == "rounds", "{}", outcome.json);
        assert_eq!(outcome.json["states"], 31);
    }
    let outcome = mu_check(&["explore", chain.to_str().unwrap(), "--strategy", "chaining"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("`--strategy` is for `--engine symbolic`"),
        "{}",
        outcome.stderr
    );
}

/// From three operations a core on, the sizes lie on a polynomial of degree four; the explicit
/// engine gave 36,823,056 for five.
#[test]
fn sizes_grow_as_a_polynomial() {
    let size = |n: u32| {
        explore(&defines(&[("max_operation_id", n)]), "symbolic")["states"].as_i64().unwrap()
    };
    let sizes: Vec<i64> = (2..=8).map(size).collect();
    assert_eq!((sizes[0], sizes[2]), (2_771_160, 36_823_056));
    let mut differences = sizes;
    for _ in 0..5 {
        differences = differences.windows(2).map(|w| w[1] - w[0]).collect();
    }
    assert_eq!(differences, [0, 0]);
}

#[test]
fn auto_chooses_and_says_why() {
    let few = explore(&defines(&[("max_operation_id", 0)]), "auto");
    assert_eq!((&few["engine"], &few["states"]), (&"explicit".into(), &6_052.into()));
    assert_eq!(few["reason"], "not more than 200,000 states");
    // The engine that answers classifies the ends; sets of states classify none.
    let explicit = explore(&defines(&[("max_operation_id", 0)]), "explicit");
    assert!(few["ends"].is_object() && few["ends"] == explicit["ends"], "{few} {explicit}");
    let many = explore(&defines(&[("max_operation_id", 4)]), "auto");
    assert!(many["ends"].is_null(), "{many}");
    assert_eq!((&many["engine"], &many["states"]), (&"symbolic".into(), &36_823_056.into()));
    assert_eq!(many["reason"], "more than 200,000 states");
    // A set of numbers from 0 on has as many nodes as members, and grows by one at a time.
    let folder = tempfile::tempdir().unwrap();
    let chain = folder.path().join("chain.mcrl2").display().to_string();
    std::fs::write(&chain, "act a; proc P(n: Nat) = (n < 400000) -> a . P(n + 1); init P(0);")
        .unwrap();
    let long = mu_check(&["explore", &chain, "--engine", "auto"]).json;
    assert_eq!((&long["engine"], &long["states"]), (&"explicit".into(), &400_001.into()));
    assert_eq!(long["reason"], "more than 200,000 states, and the symbolic engine takes longer");
    let mut reduced = defines(&[("max_operation_id", 0)]);
    reduced.extend(["--reduce".into(), "branching".into()]);
    let reduced = explore(&reduced, "auto");
    assert_eq!(reduced["reduced"]["states"], 767);
    assert_eq!(reduced["reason"], "required by writing or reducing a transition system");
}

/// A stored system is not searched: `auto` says so. It leaves every value of a parameter to the
/// explicit engine; `--engine symbolic` answers it with sets of states.
#[test]
fn auto_leaves_to_the_explicit_engine_what_only_that_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.aut").display().to_string();
    std::fs::write(&file, "des (0,1,2)\n(0,\"a\",1)\n").unwrap();
    let stored = mu_check(&["explore", &file, "--engine", "auto"]);
    assert_eq!(
        (stored.code, &stored.json["reason"]),
        (0, &"required by a file of a transition system".into()),
        "{}",
        stored.stderr
    );
    let (model, formula) = (arcx().display().to_string(), package("formulas/1b.gos.mcf"));
    let any = |engine: &str| {
        mu_check(&["check", &model, &formula, "-D", "max_operation_id=any", "--engine", engine])
    };
    assert_eq!((any("auto").code, any("symbolic").code), (0, 0));
}

#[test]
fn limits_are_answers() {
    let model = arcx().display().to_string();
    for (limit, stop) in
        [(["--max-memory", "20M"], "max-memory"), (["--timeout", "20ms"], "timeout")]
    {
        let outcome = mu_check(&[
            "explore",
            &model,
            "-D",
            "max_operation_id=9",
            "--engine",
            "symbolic",
            limit[0],
            limit[1],
        ]);
        assert_eq!((outcome.code, &outcome.json["stop"]), (3, &stop.into()), "{}", outcome.json);
        assert!(
            outcome.json["transitions"].is_null() && outcome.json["deadlocks"].is_null(),
            "{}",
            outcome.json
        );
    }
}

#[test]
fn what_it_does_not_do_is_refused() {
    let model = arcx().display().to_string();
    for (option, value) in [("--out", "x.aut"), ("--reduce", "strong"), ("--confluence", "auto")] {
        let outcome = mu_check(&["explore", &model, "--engine", "symbolic", option, value]);
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("`--engine symbolic`"), "{}", outcome.stderr);
    }
}

/// Formulas that alternate are games over sets of states: the same verdicts as vertex by vertex,
/// and evidence that replays.
#[test]
fn games_have_the_verdicts_of_the_explicit_engine() {
    let model = arcx().display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let formulas = [
        "nu X. mu Y. (<reset>X || <!reset>Y)",
        "[true*]<true*>[true]false",
        "nu X. mu Y. [reset]X && [!reset]Y",
        "[true*](<reset>true => mu X. <true>true && [!reset]X)",
        "<true*>nu X. <!reset>X",
    ];
    let paths: Vec<String> = (0..formulas.len())
        .map(|i| folder.path().join(format!("{i}.mcf")).display().to_string())
        .collect();
    paths.iter().zip(formulas).for_each(|(path, text)| std::fs::write(path, text).unwrap());
    let results = |engine: &str| {
        let mut arguments = vec!["check", &model, "-D", "max_operation_id=0", "--engine", engine];
        arguments.extend(paths.iter().map(String::as_str));
        let outcome = mu_check(&arguments);
        outcome.json["results"].as_array().unwrap_or_else(|| panic!("{}", outcome.stderr)).clone()
    };
    let mut games = 0;
    for ((one, other), text) in results("explicit").iter().zip(results("symbolic")).zip(formulas) {
        assert_eq!(one["verdict"], other["verdict"], "{text}");
        assert_eq!(other["engine"], "symbolic", "{text}");
        games += usize::from(other["reason"] == "symbolic game");
    }
    assert!(games > 1, "{games} games");
}

fn verdicts(n: u32, engine: &str, formulas: &[&str]) -> Vec<(Value, Value)> {
    let mut arguments = vec!["check".to_string(), arcx().display().to_string()];
    arguments.extend(formulas.iter().map(|f| package(&format!("formulas/{f}.mcf"))));
    arguments.extend(defines(&[("max_operation_id", n)]));
    arguments.extend(["--engine".into(), engine.into()]);
    let outcome = mu_check(&arguments);
    let results =
        outcome.json["results"].as_array().unwrap_or_else(|| panic!("{}", outcome.stderr));
    results.iter().map(|r| (r["verdict"].clone(), r["evidence"].clone())).collect()
}

#[test]
fn verdicts_are_those_of_the_explicit_engine() {
    for n in [0, 1] {
        assert_eq!(verdicts(n, "symbolic", &FORMULAS), verdicts(n, "explicit", &FORMULAS), "{n}");
    }
}

/// Several formulas at a time: answered in their order whatever the number of threads, and whatever
/// becomes of one of them.
#[test]
fn formulas_are_checked_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, game) = (folder.path().join("broken.mcf"), folder.path().join("game.mcf"));
    // Not true of any state with a step; of alternating fixed points: a game.
    std::fs::write(&broken, "[true*][true]false").unwrap();
    std::fs::write(&game, "nu X. mu Y. <true>X || [true]Y").unwrap();
    let model = arcx().display().to_string();
    let checked = |threads: &str, engine: &str, names: &[String]| {
        let mut arguments: Vec<String> =
            ["check", &model, "-D", "max_operation_id=1", "--engine", engine, "--threads", threads]
                .map(str::to_string)
                .to_vec();
        arguments.extend_from_slice(names);
        mu_check(&arguments)
    };
    let names: Vec<String> = ["1a.gos", "1b.gos", "1d.gos"]
        .iter()
        .map(|f| package(&format!("formulas/{f}.mcf")))
        .collect();
    let names = [&names[..2], &[broken.display().to_string()], &names[2..]].concat();
    let summary = |outcome: &crate::support::Outcome| -> Vec<(Value, Value, Value, Value)> {
        let one = |r: &Value| {
            (
                r["formula"].clone(),
                r["verdict"].clone(),
                r["equations"].clone(),
                r["evidence"].clone(),
            )
        };
        outcome.json["results"].as_array().unwrap().iter().map(one).collect()
    };
    for engine in ["symbolic", "auto"] {
        let alone = checked("1", engine, &names);
        let verdicts: Vec<Value> = summary(&alone).into_iter().map(|t| t.1).collect();
        assert_eq!(
            (alone.code, verdicts),
            (1, ["true", "true", "false", "true"].map(Value::from).to_vec()),
            "{}",
            alone.stderr
        );
        for threads in ["2", "7"] {
            let with_threads = checked(threads, engine, &names);
            assert_eq!(
                (with_threads.code, summary(&with_threads)),
                (1, summary(&alone)),
                "{}",
                with_threads.stderr
            );
        }
    }
    let played = checked("2", "symbolic", &[&names[..], &[game.display().to_string()]].concat());
    assert_eq!(
        (played.code, &played.json["results"][4]["reason"]),
        (1, &"symbolic game".into()),
        "{}",
        played.stderr
    );
}
