//! Times of actions in every form of a model: linear processes, transition systems, equations.
//!
//! The runs of the model end because times ascend. A form that loses the times has an endless run.

use crate::support::mu_check;
use std::path::PathBuf;

const MODEL: &str = "act a, b: Nat;
proc P(n: Nat) = (n == 0) -> a(1)@(1/2) . P(1) + (n == 1) -> b(2) . P(0) + tau@5 . delta;
init P(0);
";

/// A formula with its value in the model.
const FORMULAS: [(&str, i32); 3] =
    [("mu X. [true]X", 0), ("<a(1)><b(2)>true", 0), ("<a(1)><b(2)><a(1)>true", 1)];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("mu-check-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn each_form_of_a_timed_model_keeps_the_order_of_times() {
    let folder = folder("times");
    let path = |name: &str| folder.join(name).display().to_string();
    std::fs::write(path("m.mcrl2"), MODEL).expect("the model");
    for (arguments, out) in [
        (["explore", "m.mcrl2", "--out"], "m.lts"),
        (["explore", "m.mcrl2", "--out"], "m.aut"),
        (["explore", "m.mcrl2", "--out"], "m.fsm"),
        (["convert", "m.aut", ""], "again.lts"),
        (["linearise", "m.mcrl2", "--out"], "m.lps"),
    ] {
        let [command, input, option] = arguments;
        let mut words = vec![command.to_string(), path(input), option.into(), path(out)];
        words.retain(|w| !w.is_empty());
        let written = mu_check(&words);
        assert_eq!(written.code, 0, "{words:?}: {}", written.stderr);
        assert!(!written.stderr.contains("warning"), "{words:?}: {}", written.stderr);
    }
    for (i, (formula, code)) in FORMULAS.iter().enumerate() {
        let file = path(&format!("f{i}.mcf"));
        std::fs::write(&file, formula).expect("the formula");
        for model in ["m.mcrl2", "m.lts", "m.aut", "m.fsm", "again.lts", "m.lps"] {
            let checked = mu_check(&[path(model), file.clone()]);
            assert_eq!(checked.code, *code, "{model}: {formula}: {}", checked.stderr);
            if ["m.aut", "m.lts"].contains(&model) {
                let words = [path(model), file.clone(), "--data".into(), path("m.mcrl2")];
                assert_eq!(mu_check(&words).code, *code, "{model} with data: {formula}");
            }
        }
        let (binary, text) = (path("binary.pbes"), path("text.pbes"));
        let equations = vec!["pbes".to_string(), path("m.mcrl2"), file.clone()];
        let made = mu_check(&[&equations[..], &["--out".into(), binary.clone()]].concat());
        assert_eq!(made.code, 0, "{formula}: {}", made.stderr);
        std::fs::write(&text, mu_check(&equations).json["equations"].as_str().expect("a text"))
            .expect("the equations");
        for system in [binary, text] {
            let solved = mu_check(&["solve".to_string(), system]);
            assert_eq!(solved.code, *code, "equations of {formula}: {}", solved.stderr);
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
}

/// The time of a label is not a part of its last action.
#[test]
fn actions_at_times_are_found_and_hidden_by_name() {
    let folder = folder("named-times");
    let path = |name: &str| folder.join(name).display().to_string();
    let model = "act b, c: Nat; d, e;\ninit (b(1)|c(2))@3 . (e|d)@4 . d@5 . delta;\n";
    std::fs::write(path("m.mcrl2"), model).expect("the model");
    let out = |options: &[&str]| {
        let words = ["explore", &path("m.mcrl2"), "--out", &path("out.aut")].map(String::from);
        let options: Vec<String> = options.iter().map(|o| o.to_string()).collect();
        let written = mu_check(&[&words[..], &options].concat());
        assert_eq!(written.code, 0, "{options:?}: {}", written.stderr);
        let text = std::fs::read_to_string(path("out.aut")).expect("the system");
        let labels = text.lines().skip(1).map(|l| l.split('"').nth(1).unwrap().to_string());
        labels.collect::<Vec<String>>()
    };
    assert_eq!(out(&["--hide", "c"]), ["b(1) @ 3", "d|e @ 4", "d @ 5"]);
    assert_eq!(out(&["--hide", "d"]), ["b(1)|c(2) @ 3", "e @ 4", "tau @ 5"]);
    assert_eq!(out(&["--rename", "d=tau,e=f"]), ["b(1)|c(2) @ 3", "f @ 4", "tau @ 5"]);
    assert_eq!(out(&[]), ["b(1)|c(2) @ 3", "d|e @ 4", "d @ 5"]);
    for model in ["m.mcrl2", "out.aut"] {
        for (action, length) in [
            ("c", Some(1)),
            ("c(2)", Some(1)),
            ("c(2)|b", Some(1)),
            ("c|c", None),
            ("e", Some(2)),
            ("e|d", Some(2)),
            ("d @ 5", Some(3)),
            ("d @ 3", None),
        ] {
            let words = ["explore", &path(model), "--action", action].map(String::from);
            let found = mu_check(&words);
            assert_eq!(found.code, i32::from(length.is_some()), "{model}: {action}");
            let steps = found.json["ways"][0]["steps"].as_array().map(Vec::len);
            assert_eq!(steps, length, "{model}: {action}: {}", found.json);
        }
        let words = ["explore", &path(model), "--deadlock", "--terminal", "d"].map(String::from);
        assert_eq!(mu_check(&words).code, 0, "{model}");
    }
    std::fs::write(path("other.aut"), "des (0,1,2)\n(0,\"c|a @ 3\",1)\n").expect("a system");
    std::fs::write(path("order.aut"), "des (0,1,2)\n(0,\"a|c @ 3\",1)\n").expect("a system");
    let words = ["compare", &path("other.aut"), &path("order.aut")].map(String::from);
    assert_eq!(mu_check(&words).code, 0);
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
}
