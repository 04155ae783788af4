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
