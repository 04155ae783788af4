//! Checkpoints: a resumed search ends like an uninterrupted one; a folder of another search is
//! rejected.

use crate::support::{mu_check, package};

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| w.to_string()).collect()
}

/// Returns the figures that must not depend on interruptions.
fn figures(json: &serde_json::Value) -> Vec<u64> {
    ["states", "transitions", "deadlocks"].iter().map(|k| json[k].as_u64().unwrap()).collect()
}

#[test]
fn interrupted_searches_come_to_the_same_end() {
    let model = package("specs/arcx.spec");
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("search").display().to_string();
    let common = strings(&["explore", &model, "-D", "max_operation_id=1", "--confluence", "auto"]);
    let whole = mu_check(&common);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    // Three times a limit ends it, each time later; the first run starts it.
    for (i, limit) in ["1000", "40000", "150000"].iter().enumerate() {
        let way = if i == 0 { "--checkpoint" } else { "--resume" };
        let stopped =
            mu_check(&[&common[..], &strings(&[way, &kept, "--max-states", limit])].concat());
        assert_eq!(
            (stopped.code, stopped.json["stop"].as_str()),
            (3, Some("max-states")),
            "{}",
            stopped.stderr
        );
    }
    let end = mu_check(&[&common[..], &strings(&["--resume", &kept])].concat());
    assert_eq!(end.code, 0, "{}", end.stderr);
    assert_eq!(figures(&end.json), figures(&whole.json));

    // Of another model, of other parameters, with other steps prioritised.
    for change in [["-D", "max_operation_id=2"], ["--confluence", "none"]] {
        let mut words = strings(&["explore", &model, "--resume", &kept]);
        words.extend(strings(&change));
        let refused = mu_check(&words);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("the checkpoint belongs to another model"),
            "{}",
            refused.stderr
        );
    }
    // A damaged one.
    let file = folder.path().join("search/search.checkpoint");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() - 1000;
    bytes[middle] ^= 4;
    std::fs::write(&file, &bytes).unwrap();
    let refused = mu_check(&[&common[..], &strings(&["--resume", &kept])].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("cannot read the checkpoint"), "{}", refused.stderr);
    // None.
    let nowhere = folder.path().join("nothing").display().to_string();
    assert_eq!(mu_check(&[&common[..], &strings(&["--resume", &nowhere])].concat()).code, 2);
}

/// Values of every kind of sort but functions go to the file and come back as themselves.
#[test]
fn values_of_all_sorts_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("values.mcrl2");
    std::fs::write(
        &model,
        "sort S = struct leaf | node(left: S, key: Int, right: S);
         act step;
         proc P(n: Nat, s: S, l: List(Real), f: FSet(Pos), b: Set(Nat), g: FBag(Bool)) =
           (n < 40) -> step . P(n + 1, if(n mod 2 == 0, node(s, 3 - n, leaf), s), if(n < 30, (n / 3) |> l, l), f + {n + 1},
                                b + {n}, g + {n mod 2 == 0: 1});
         init P(0, leaf, [], {}, {}, {:}) || P(3, leaf, [1/2], {2}, {5}, {:});",
    )
    .unwrap();
    let kept = folder.path().join("search").display().to_string();
    let common = strings(&["explore", &model.display().to_string()]);
    let whole = mu_check(&common);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let stopped = mu_check(
        &[&common[..], &strings(&["--checkpoint", &kept, "--max-states", "700"])].concat(),
    );
    assert_eq!(stopped.code, 3, "{}", stopped.stderr);
    let end = mu_check(&[&common[..], &strings(&["--resume", &kept])].concat());
    assert_eq!((end.code, figures(&end.json)), (0, figures(&whole.json)), "{}", end.stderr);
}

/// Functions cannot be stored. That is reported before the search; a limit then ends it without a
/// checkpoint, and `--resume` begins again.
/// A model without parameters has one state without slots.
#[test]
fn a_model_without_parameters_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("loop.mcrl2").display().to_string();
    std::fs::write(&model, "act a, b; proc P = a . P; init P;").unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for processes in ["1", "2"] {
        let (search, check) = (at(&format!("search{processes}")), at(&format!("check{processes}")));
        let commands = [
            (vec!["explore", &model], &search),
            (
                vec!["check", &model, "-f", "[true* . b]false", "-f", "nu X. [a]X && <a>true"],
                &check,
            ),
        ];
        for (command, kept) in commands {
            let common = [&command[..], &["--processes", processes]].concat();
            let first = mu_check(
                &[&common[..], &["--checkpoint", kept, "--checkpoint-every", "0s"]].concat(),
            );
            assert_eq!(first.code, 0, "{}", first.stderr);
            let again = mu_check(&[&common[..], &["--resume", kept]].concat());
            assert_eq!(again.code, 0, "{command:?}: {}", again.stderr);
        }
    }
}

/// A run may end while it writes the marker that it has begun, before anything else.
#[test]
fn a_part_of_a_marker_starts_the_search_again() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("two.mcrl2").display().to_string();
    std::fs::write(&model, "act a; init a . delta;").unwrap();
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let resume = kept.display().to_string();
    for (processes, code) in [("1", 2), ("2", 2), ("1", 0), ("2", 0)] {
        if code == 0 {
            std::fs::write(kept.join("begun.part"), "mu").unwrap();
        }
        let words = ["explore", &model, "--resume", &resume, "--processes", processes];
        let outcome = mu_check(&words);
        assert_eq!(outcome.code, code, "{processes}: {}", outcome.stderr);
        for file in std::fs::read_dir(&kept).unwrap() {
            let path = file.unwrap().path();
            std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)).unwrap();
        }
    }
}

#[test]
fn functions_are_reported_and_a_limit_ends_the_search_without_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let from_the_start = "act a: Nat; b;
        proc P(n: Nat, f: Nat -> Nat) = (n < 300) -> a(f(n)) . P(n + 1, if(n == 9, lambda x: Nat. x, f)) <> b . P(0, f);
        init P(0, lambda x: Nat. x + 1);";
    let later = "act a: Nat; b; sort S = struct none | some(g: Nat -> Nat);
        proc P(n: Nat, s: S) = (n < 300) -> a(n) . P(n + 1, if(n == 20, some(lambda x: Nat. x + n), s)) <> b . P(0, none);
        init P(0, none);";
    let warnings = [
        "the value `lambda x: Nat. x + 1` cannot be stored in a file, so no checkpoint is written",
        "of sort S may contain functions",
    ];
    for (at, (text, warning)) in [from_the_start, later].into_iter().zip(warnings).enumerate() {
        let model = folder.path().join(format!("functions{at}.mcrl2"));
        std::fs::write(&model, text).unwrap();
        for command in ["explore", "check -f [true*]<true>true"] {
            let kept = folder.path().join(format!("{}{at}", &command[..5])).display().to_string();
            let mut common: Vec<String> = command.split(' ').map(String::from).collect();
            common.insert(1, model.display().to_string());
            let whole = mu_check(&common);
            let stopped = mu_check(
                &[&common[..], &strings(&["--checkpoint", &kept, "--max-states", "100"])].concat(),
            );
            assert_eq!(stopped.code, 3, "{command}: {}", stopped.stderr);
            assert!(
                stopped.stderr.starts_with("warning: ") && stopped.stderr.contains(warning),
                "{}",
                stopped.stderr
            );
            assert_eq!(
                stopped
                    .stderr
                    .matches("cannot be stored in a file, so no checkpoint is written")
                    .count(),
                1,
                "{}",
                stopped.stderr
            );
            let end = mu_check(&[&common[..], &strings(&["--resume", &kept])].concat());
            assert!(
                end.code == 0 && end.stderr.contains("the search starts again"),
                "{command}: {}",
                end.stderr
            );
            assert_eq!(end.json.get("states"), whole.json.get("states"));
        }
    }
}

/// A game has no checkpoint: a run that resumes solves it again, by one process and by several. A
/// folder of another model is refused.
#[test]
fn a_game_is_solved_again() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("ring.mcrl2");
    std::fs::write(
        &model,
        "act a, b; proc P(n: Nat) = (n < 6) -> a . P(n + 1) <> b . P(0); init P(2);",
    )
    .unwrap();
    let common = strings(&[
        "check",
        &model.display().to_string(),
        "-f",
        "[true*]<true*.b>true",
        "-f",
        "nu X. mu Y. <a>Y || <b>X",
    ]);
    let whole = mu_check(&common);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    for processes in [&[][..], &strings(&["--processes", "2"])] {
        let kept = folder.path().join(format!("kept{}", processes.len())).display().to_string();
        let first = mu_check(
            &[&common[..], processes, &strings(&["--checkpoint", &kept, "--max-states", "4"])]
                .concat(),
        );
        assert!(
            [0, 3].contains(&first.code) && first.stderr.contains("the formula needs a game"),
            "{}",
            first.stderr
        );
        let end = mu_check(&[&common[..], processes, &strings(&["--resume", &kept])].concat());
        assert_eq!((end.code, verdicts(&end.json)), (0, verdicts(&whole.json)), "{}", end.stderr);
        assert_eq!(end.stderr.matches("the search starts again").count(), 1, "{}", end.stderr);
        let other = strings(&[
            "check",
            &package("specs/arcx.spec"),
            "-f",
            "[true*]<true>true",
            "--resume",
            &kept,
        ]);
        let refused = mu_check(&[&other[..], processes].concat());
        assert!(refused.code == 2 && refused.stderr.contains("there is no"), "{}", refused.stderr);
    }
}

/// A formula that is given twice is checked twice at once, each time with checkpoints of its own.
#[test]
fn a_formula_given_twice_has_two_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept").display().to_string();
    let formula = package("formulas/2.selfobserving.mcf");
    let common = strings(&[
        "check",
        &package("specs/arcx.spec"),
        &formula,
        &formula,
        &formula,
        "--threads",
        "3",
    ]);
    let stopped = mu_check(
        &[&common[..], &strings(&["--checkpoint", &kept, "--max-states", "700"])].concat(),
    );
    assert_eq!(stopped.code, 3, "{}", stopped.stderr);
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 3);
    let end = mu_check(&[&common[..], &strings(&["--resume", &kept, "-v"])].concat());
    assert_eq!((end.code, end.stderr.matches("resumes from").count()), (0, 3), "{}", end.stderr);
}

/// Two runs at once do not mix their files: the second one is refused.
#[test]
fn a_folder_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("grid.mcrl2");
    std::fs::write(&model, "act a; proc P(n: Nat) = (n < 9) -> a . P(n + 1); init P(0) || P(0);")
        .unwrap();
    let model = model.display().to_string();
    let used = folder.path().join("used");
    std::fs::create_dir(&used).unwrap();
    let used = used.display().to_string();
    let check = ["check", &model, "-f", "[true*]true"];
    let commands = [
        [&["explore", &model, "--checkpoint", &used][..], &[]].concat(),
        [&["explore", &model, "--checkpoint", &used][..], &["--processes", "2"]].concat(),
        [&["explore", &model, "--resume", &used][..], &[]].concat(),
        [&check[..], &["--checkpoint", &used]].concat(),
        [&check[..], &["--resume", &used, "--processes", "2"]].concat(),
        ["sweep", &model, "--out", &used].to_vec(),
    ];
    let lock = std::fs::File::open(&used).unwrap();
    lock.lock().unwrap();
    for words in &commands {
        let refused = mu_check(&strings(words));
        assert!(
            refused.code == 2 && refused.stderr.contains("is in use by another run"),
            "{words:?}: {}",
            refused.stderr
        );
    }
    drop(lock);
    assert_eq!(std::fs::read_dir(&used).unwrap().count(), 0);
    // A run holds the lock until it ends, however that is.
    let large = folder.path().join("large.mcrl2");
    std::fs::write(&large, "act a; proc P(n: Nat) = (n < 99999999) -> a . P(n + 1); init P(0);")
        .unwrap();
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(["explore", &large.display().to_string(), "--checkpoint", &used, "--timeout", "60s"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = std::path::Path::new(&used).join("begun");
    while !begun.exists() && run.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let refused = mu_check(&strings(&commands[0]));
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(
        refused.code == 2 && refused.stderr.contains("is in use by another run"),
        "{}",
        refused.stderr
    );
    let after = mu_check(&strings(&commands[0]));
    assert_eq!(after.code, 0, "{}", after.stderr);
}

/// Verdict and equations of each formula.
fn verdicts(json: &serde_json::Value) -> Vec<(String, u64)> {
    let one = |r: &serde_json::Value| {
        (r["verdict"].as_str().unwrap().to_string(), r["equations"].as_u64().unwrap())
    };
    json["results"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn interrupted_checks_come_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("searches").display().to_string();
    let formulas =
        ["formulas/1c.gos.mcf", "formulas/2.selfobserving.mcf", "formulas/1a.gos.mcf"].map(package);
    let common = [&strings(&["check", &package("specs/arcx.spec")])[..], &formulas].concat();
    let whole = mu_check(&common);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(
        verdicts(&whole.json)
            .iter()
            .all(|(verdict, equations)| verdict == "true" && *equations > 6_000)
    );
    for (i, limit) in ["700", "2500", "5000"].iter().enumerate() {
        let way = if i == 0 { "--checkpoint" } else { "--resume" };
        // The searches take their turns with one thread and with two; all formulas are stopped,
        // each of them is gone on with.
        let threads = if i == 1 { "1" } else { "2" };
        let stopped = mu_check(
            &[&common[..], &strings(&[way, &kept, "--max-states", limit, "--threads", threads])]
                .concat(),
        );
        assert_eq!(stopped.code, 3, "{}", stopped.stderr);
        assert!(
            verdicts(&stopped.json).iter().all(|(verdict, _)| verdict == "unknown"),
            "{}",
            stopped.json
        );
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), formulas.len());
    }
    let end = mu_check(&[&common[..], &strings(&["--resume", &kept])].concat());
    assert_eq!((end.code, verdicts(&end.json)), (0, verdicts(&whole.json)), "{}", end.stderr);
    // Finished formulas are stored as well, in any order of the formulas of the next run.
    let again = [
        &strings(&["check", &package("specs/arcx.spec"), &formulas[2], &formulas[0]])[..],
        &strings(&["--resume", &kept, "-v"]),
    ]
    .concat();
    let again = mu_check(&again);
    let expected: Vec<_> = [2, 0].iter().map(|i| verdicts(&whole.json)[*i].clone()).collect();
    assert_eq!((again.code, verdicts(&again.json)), (0, expected), "{}", again.stderr);
    assert_eq!(again.stderr.matches("resumes from").count(), 2, "{}", again.stderr);

    // A folder without any, one of another model, a damaged one.
    let refused = |words: &[&str]| {
        let refused = mu_check(&[&common[..], &strings(words)].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        refused.stderr
    };
    let nothing = folder.path().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    assert!(
        refused(&["--resume", &nothing.display().to_string()])
            .contains("there is no checkpoint of a formula on this model")
    );
    assert!(
        refused(&["--resume", &kept, "-D", "memcommands_size=2"])
            .contains("there is no checkpoint of a formula on this model")
    );
    for entry in std::fs::read_dir(&kept).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(refused(&["--resume", &kept]).contains("cannot read the checkpoint"));
}

/// A false formula with data variables of many sorts; the evidence is that of an uninterrupted run.
#[test]
fn a_counterexample_is_found_after_an_interruption() {
    let folder = tempfile::tempdir().unwrap();
    let (model, formula) = (folder.path().join("walk.mcrl2"), folder.path().join("walk.mcf"));
    std::fs::write(
        &model,
        "act go: Nat # List(Real); back;
         proc P(n: Nat, l: List(Real)) = (n < 225) -> go(n, l) . P(n + 1, if(n mod 25 == 1, (n / 3) |> l, l))
                                       + (n == 175) -> back . P(0, []);
         init P(0, []);",
    )
    .unwrap();
    std::fs::write(
        &formula,
        "nu X(s: FSet(Nat) = {}, last: List(Real) = []).
           (forall n: Nat, l: List(Real). [go(n, l)]X(if(n mod 60 == 0, s + {n}, s), l)) && [back]X(s, last) && val(!(120 in s && #last > 6 && 180 in s))",
    )
    .unwrap();
    let kept = folder.path().join("searches").display().to_string();
    let common = strings(&["check", &model.display().to_string(), &formula.display().to_string()]);
    let whole = mu_check(&common);
    assert_eq!(whole.code, 1, "{}", whole.stderr);
    for (i, limit) in ["50", "150"].iter().enumerate() {
        let way = if i == 0 { "--checkpoint" } else { "--resume" };
        let stopped =
            mu_check(&[&common[..], &strings(&[way, &kept, "--max-states", limit])].concat());
        assert_eq!(stopped.code, 3, "{}", stopped.stderr);
    }
    let end = mu_check(&[&common[..], &strings(&["--resume", &kept])].concat());
    assert_eq!(
        (end.code, &end.json["results"][0]["evidence"]),
        (1, &whole.json["results"][0]["evidence"]),
        "{}",
        end.stderr
    );
}
