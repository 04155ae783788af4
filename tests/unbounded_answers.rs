//! Answers for every value of a parameter as a reader takes them: values of other parameters, the
//! values that are tried, limits, and what the verifier of certificates does not decide.

use crate::support::{Outcome, mu_check};
use std::process::Command;

/// Files of a model and of a formula.
struct Files {
    folder: tempfile::TempDir,
    formula: String,
}

impl Files {
    fn new(model: &str, formula: &str) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap(), formula: formula.into() };
        std::fs::write(files.path("model.mcrl2"), model).unwrap();
        std::fs::write(files.path("formula.mcf"), formula).unwrap();
        files
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs `check MODEL -f FORMULA -D N=any`.
    fn check(&self, more: &[&str]) -> Outcome {
        let model = self.path("model.mcrl2");
        let words = ["check", &model, "-f", &self.formula, "-D", "N=any"];
        mu_check(&[&words[..], more].concat())
    }

    /// Writes a certificate.
    fn certify(&self, more: &[&str]) -> Outcome {
        self.check(&[&["--certificate", &self.path("proof")][..], more].concat())
    }

    /// Runs `verify MODEL FORMULA CERTIFICATE`.
    fn verify(&self, proof: &str, more: &[&str]) -> Outcome {
        let [model, formula] = ["model.mcrl2", "formula.mcf"].map(|name| self.path(name));
        mu_check(&[&["verify", &model, &formula, &self.path(proof)][..], more].concat())
    }
}

#[test]
fn a_certificate_names_the_values_of_all_parameters() {
    let two = "$param N: Nat = 3;\n$param M: Nat = 9;\nact a: Nat;
        proc P(x: Nat) = (x < ${N} && x < ${M}) -> a(x) . P(x + 1); init P(0);";
    let files = Files::new(two, "[true* . a(2)]false");
    let proved = files.certify(&["-D", "M=2"]);
    assert_eq!(proved.code, 0, "{}", proved.stderr);
    let verified = files.verify("proof", &[]);
    assert_eq!(
        (verified.code, verified.json["parameters"]["M"].as_str()),
        (0, Some("2")),
        "{}",
        verified.json
    );
    let words = ["model.mcrl2", "formula.mcf", "proof"].map(|name| files.path(name));
    let text = Command::new(env!("CARGO_BIN_EXE_mu-check")).arg("verify").args(words).output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.contains("for            N = any, M = 2"), "{text}");
    assert_eq!(files.verify("proof", &["-D", "N=any", "-D", "M=2"]).code, 0);
    let other = files.verify("proof", &["-D", "M=9"]);
    assert_eq!((other.code, other.json["certificate"].as_str()), (1, Some("refused")));
    assert!(
        other.json["why"].as_str().is_some_and(|why| why.contains("M = 2, not M = 9")),
        "{}",
        other.json
    );
    assert_eq!(files.verify("proof", &["-D", "N=4"]).code, 1);
    assert_eq!(files.verify("proof", &["-D", "K=4"]).code, 2);
    // No samples and no memory model take part.
    assert_eq!(files.verify("proof", &["--model", "tso"]).code, 2);
    assert_eq!(files.verify("proof", &["--check-samples", "100"]).code, 2);
}

/// A certificate for seven constants is none for any number of them.
#[test]
fn a_certificate_is_none_for_a_sort_of_any_size() {
    let model = "$param N: Nat = 3;\n$param K: Nat = 3;
        sort D = struct $for i in 0 .. K join \" | \" { d${i} };
        act a: Nat; b: D; bad;
        proc P(n: Nat, d: D, c: Nat) = (n < ${N}) -> a(n) . P(n + 1, d, c)
          + sum y: D. (d < y) -> b(y) . P(n, y, c + 1) + (c >= 7) -> bad . P(n, d, c);
        init sum y: D. b(y) . P(0, y, 0);";
    let files = Files::new(model, "[true* . bad]false");
    let proved = files.certify(&["-D", "K=7"]);
    assert_eq!(proved.code, 0, "{}", proved.stderr);
    let text = std::fs::read_to_string(files.path("proof")).unwrap();
    assert!(text.contains("define K=7"), "{text}");
    std::fs::write(files.path("proof"), text.replace("define K=7", "define K=any")).unwrap();
    let verified = files.verify("proof", &[]);
    assert_eq!(verified.code, 3, "{}", verified.json);
}

#[test]
fn the_verifier_keeps_the_limits_of_the_run() {
    let is_timeout = |json: &serde_json::Value| json.to_string().contains("timeout");
    let model = "$param N: Nat = 3;\nact u: Nat;
        proc C(n: Nat) = (n < ${N} && n < 4) -> u(n) . C(n + 1); init C(0);";
    let files = Files::new(model, "[true* . (exists k: Nat. val(k > 4) && u(k))]false");
    assert_eq!(files.certify(&[]).code, 0);
    assert_eq!(files.verify("proof", &[]).code, 0);
    let stopped = files.verify("proof", &["--timeout", "0"]);
    assert!(stopped.code == 3 && is_timeout(&stopped.json), "{}", stopped.json);
    let text = std::fs::read_to_string(files.path("proof")).unwrap();
    let (head, obligations) = text.split_once("\n\n").unwrap();
    let many = format!("{head}\n\n{}", format!("{}\n\n", obligations.trim()).repeat(20_000));
    std::fs::write(files.path("many"), many).unwrap();
    let start = std::time::Instant::now();
    let stopped = files.verify("many", &["--timeout", "0.2"]);
    assert!(stopped.code == 3 && is_timeout(&stopped.json), "{}", stopped.json);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn functions_in_states_are_compared_up_to_bound_names() {
    let model = "$param N: Nat = 3;\nact e, f: Nat;
        proc P0(x: Nat, u: Nat -> Nat) = (x < ${N}) -> e(x) . P0(x + 1, u)
          + (x > ${N}) -> f(u(x)) . P0(x, u[x -> x]);
        init P0(0, lambda z: Nat. 0);";
    let files = Files::new(model, "[true* . (exists k: Nat. f(k))]false");
    let proved = files.certify(&[]);
    assert_eq!(proved.code, 0, "{}{}", proved.json, proved.stderr);
    let verified = files.verify("proof", &[]);
    assert_eq!(verified.code, 0, "{}", verified.json);
    // Another function.
    let text = std::fs::read_to_string(files.path("proof")).unwrap();
    std::fs::write(files.path("other"), text.replace("Nat. 0", "Nat. 1")).unwrap();
    let other = files.verify("other", &[]);
    assert_ne!(other.code, 0, "{}", other.json);
}

#[test]
fn what_the_verifier_does_not_decide_is_unknown() {
    let model = |guard: &str| {
        format!(
            "$param N: Nat = 3;\nact e, f: Nat; proc P(x: Nat) = (x < ${{N}}) -> e(x) . P(x + 1)
               + (x > ${{N}} && {guard}) -> f(x) . delta; init P(0);"
        )
    };
    let files = Files::new(&model("true"), "[true* . (exists k: Nat. f(k))]false");
    assert_eq!(files.certify(&["--without", "verify"]).code, 0);
    // The order of the conditions is that of the text.
    let first = model("true").replace("x > ${N} && true", "2 * x <= x + 6 && x > ${N}");
    std::fs::write(files.path("model.mcrl2"), first).unwrap();
    let open = files.verify("proof", &[]);
    assert_eq!(
        (open.code, &open.json["verdict"], &open.json["certificate"]),
        (3, &"unknown".into(), &"unknown".into()),
        "{}",
        open.json
    );
}

#[test]
fn numbers_of_the_declaration_are_tried() {
    let rest = "act a: Nat; proc P(x: Nat) = (x < ${N}) -> a(x) . P(x + 1); init P(0);";
    for (line, formula, at) in [
        ("$param N: Nat = 50 where N <= 10 || N == 50;", "[true* . a(40)]false", "N = 50"),
        ("$param N: Nat = 3 where N == 50 || N == 3;", "[true* . a(40)]false", "N = 50"),
        ("$param N: Nat = 45;", "[true* . a(20 + 20)]false", "N = 41"),
    ] {
        let files = Files::new(&format!("{line}\n{rest}"), formula);
        let found = files.check(&[]);
        let result = &found.json["results"][0];
        assert_eq!((found.code, &result["for"]), (1, &at.into()), "{line}: {result}");
    }
}

/// Numbers that evaluations meet, and those of conditions on parameters, are tried as those of the
/// text: the least value is not small.
#[test]
fn numbers_that_are_computed_are_tried() {
    let count = |guard: &str, more: &str| {
        format!(
            "$param N: Nat = 3;\nmap k: Nat; eqn k = 17 * 17;\nact u, bad: Nat;\n\
             proc C(n: Nat) = (n < ${{N}}) -> u(n) . C(n + 1) + ({guard}) -> bad(n) . delta{more};\n\
             init C(0);"
        )
    };
    for (model, value) in [
        (count("n == 17 * 17", ""), "N = 289"),
        (count("n == k", ""), "N = 289"),
        (count("n > 20 * 15", ""), "N = 301"),
        (count("false", " $if N == 300 { + bad(n) . delta }"), "N = 300"),
        (count("${N == 270}", ""), "N = 270"),
    ] {
        let outcome = Files::new(&model, "[true* . exists x: Nat. bad(x)]false").check(&[]);
        let text = outcome.json.to_string();
        assert_eq!(outcome.code, 1, "{model} {text} {}", outcome.stderr);
        assert!(text.contains(value), "{model} {text}");
    }
}

#[test]
fn a_formula_that_is_not_monotonic_is_an_error() {
    let model = "$param N: Nat = 3;
        act b, c: Nat; proc C(n: Nat) = (n < ${N}) -> b(n) . C(n + 1);
        init C(0);";
    let formula = "nu X. ((<exists n: Nat. b(n)>X => <c(1)>true) && [exists n: Nat. b(n)]X)";
    let outcome = Files::new(model, formula).check(&[]);
    assert_eq!(outcome.code, 2, "{} {}", outcome.json, outcome.stderr);
    assert!(outcome.stderr.contains("odd number of negations"), "{}", outcome.stderr);
}

/// A recursion that decides one more number in each call does not use up the time of the instances.
#[test]
fn recursions_on_numbers_leave_time_for_instances() {
    let model = "$param N: Nat = 3;
        map ev: Nat -> Bool; var x: Nat; eqn ev(0) = true; x > 0 -> ev(x) = !ev(Int2Nat(x - 1));
        act u, bad: Nat;
        proc C(n: Nat) = (n < ${N}) -> u(n) . C(n + 1) + (ev(n) && n > 7) -> bad(n) . delta;
        init C(0);";
    let outcome = Files::new(model, "[true* . exists x: Nat. bad(x)]false").check(&[]);
    assert_eq!(outcome.code, 1, "{} {}", outcome.json, outcome.stderr);
    assert!(outcome.json.to_string().contains("N = 8"), "{}", outcome.json);
}

/// Nor does one with two calls, of which a single evaluation does not end.
#[test]
fn recursions_with_two_calls_leave_time_for_instances() {
    let model = "$param N: Nat = 3;
        map f: Nat -> Nat; var x: Nat;
        eqn f(0) = 1; x > 0 -> f(x) = f(Int2Nat(x - 1)) + f(Int2Nat(x - 1));
        act u, bad;
        proc C(n: Nat) = (n < ${N}) -> u . C(n + 1) + (f(n) > 100) -> bad . delta;
        init C(0);";
    let outcome = Files::new(model, "[true* . bad]false").check(&["--timeout", "40"]);
    assert_eq!(outcome.code, 1, "{} {}", outcome.json, outcome.stderr);
    assert!(outcome.json.to_string().contains("N = 7"), "{}", outcome.json);
}

#[test]
fn values_next_to_numbers_of_guards_are_tried() {
    // The file excludes all small values of two parameters.
    let model = "$param N: Nat = 1000 where N >= 50;
        $param M: Nat = 1000 where M >= 60;
        act a, bad: Nat;
        proc P(n: Nat) = (n < 3) -> a(n) . P(n + 1)
          + (n == 3 && (${N} + ${M}) mod 7 == 3) -> bad(n) . delta;
        init P(0);";
    let files = Files::new(model, "[true* . (exists x: Nat. bad(x))]false");
    let outcome = files.check(&["-D", "M=any"]);
    assert_eq!(outcome.code, 1, "{} {}", outcome.json, outcome.stderr);
    // Only large values have a model: as many are tried as of small ones.
    let model = "$param N: Nat = 1000;
        act a, bad: Nat;
        $if N >= 40 {
        proc P(n: Nat) = (n < 3) -> a(n) . P(n + 1) + (n == 3 && ${N} mod 7 == 3) -> bad(n) . delta;
        init P(0);
        }";
    let outcome = Files::new(model, "[true* . (exists x: Nat. bad(x))]false").check(&[]);
    assert_eq!(outcome.code, 1, "{} {}", outcome.json, outcome.stderr);
    assert!(outcome.json.to_string().contains("N = 45"), "{}", outcome.json);
}

#[test]
fn a_growing_list_does_not_hide_a_small_counterexample() {
    let model = "$param N: Nat = 3;\nact a, b: Nat;
        proc P(x: Nat, l: List(Nat)) = (x < ${N}) -> a(x) . P(x + 1, x |> l)
          + (x == ${N} && l != []) -> b(head(l)) . P(x, tail(l));
        init P(0, []);";
    let files = Files::new(model, "[true* . b(3)]false");
    let found = files.check(&["--timeout", "300"]);
    let result = &found.json["results"][0];
    assert_eq!((found.code, &result["for"]), (1, &"N = 4".into()), "{result}");
    // The regions leave time for the instances.
    let files = Files::new(model, "[true* . b(7)]false");
    let found = files.check(&["--timeout", "30"]);
    let result = &found.json["results"][0];
    assert!(
        result["for"] == "N = 8" || result["tried"].as_str().is_some_and(|t| t.contains("N")),
        "{result}"
    );
}

#[test]
fn chance_is_named_as_what_is_not_supported() {
    let chance = "dist b: Bool[if(b, 1/3, 2/3)]. ";
    for (before, after) in [("", chance), (chance, "")] {
        let model = format!(
            "$param N: Nat = 3;\nact a: Nat; h;
             proc P(x: Nat) = (x < ${{N}}) -> {before}a(x) . ({after}b -> P(x + 1) <> P(x + 2));
             init P(0);"
        );
        let found = Files::new(&model, "[true* . a(0) . true* . a(0)]false").check(&[]);
        let result = &found.json["results"][0];
        let tried = result["tried"].as_str().unwrap_or_default();
        if before.is_empty() {
            assert!(
                found.code == 3 && !tried.contains("there is no model") && tried.contains("dist"),
                "{result}"
            );
        } else {
            // No value has a model without chance.
            assert!(found.code == 2 && found.stderr.contains("dist"), "{}", found.stderr);
        }
    }
}

/// Only specifications have parameters without a value.
#[test]
fn other_languages_have_no_answer_for_every_value() {
    for file in ["specs/x86/spinlock.asm", "specs/cubicle/naive_mutex.cub", "specs/murphi/german.m"]
    {
        let file = crate::support::package(file);
        let outcome = mu_check(&["check", &file, "-f", "[true*.a]false", "-D", "n=any"]);
        assert_eq!(outcome.code, 2, "{file}: {}{}", outcome.json, outcome.stderr);
        assert!(outcome.stderr.contains("no answer for every value"), "{}", outcome.stderr);
    }
}

/// `-` is the name of no output file.
#[test]
fn a_dash_is_no_output_file() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m.mcrl2");
    let text = "$param N: Nat = 3;
act a: Nat;
proc P(x: Nat) = (x < ${N}) -> a(x) . P(x + 1); init P(0);";
    std::fs::write(&model, text).unwrap();
    for option in ["--certificate", "--timings"] {
        let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .current_dir(folder.path())
            .args(["check", "m.mcrl2", "-f", "[true*.a(0).a(0)]false", "-D", "N=any", option, "-"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{option}: {errors}");
        assert!(errors.contains("`-` is no name of a file"), "{option}: {errors}");
        assert!(!folder.path().join("-").exists(), "{option}");
    }
}

/// A constant that a process outside of the components names is the obstacle, with its place.
#[test]
fn a_named_constant_is_the_obstacle_to_any_number_of_components() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m.mcrl2");
    let text = "$param K: Pos = 2;
sort I = struct $for i in 0 .. K join \" | \" { p${i} };
act enter, s1, r1: I;
proc C(id: I, b: Bool) = (!b) -> s1(id) . C(id, true);
proc L(o: I) = sum i: I. (i == o) -> r1(i) . L(i);
init allow({enter}, comm({s1|r1 -> enter}, $for i in 0 .. K join \"\" { C(p${i}, false) || } L(p0)));
";
    std::fs::write(&model, text).unwrap();
    let formula = "[true* . (exists i: I. enter(i)) . (exists i: I. enter(i))]false";
    let outcome = mu_check(&["check", model.to_str().unwrap(), "-f", formula, "-D", "K=any"]);
    assert_eq!(outcome.code, 3, "{}{}", outcome.json, outcome.stderr);
    let all = format!("{}{}", outcome.json, outcome.stderr);
    assert!(all.contains("`p0` is named outside of the processes"), "{all}");
}

/// Exit code and text of `check MODEL -f FORMULA -D N=any`.
fn text_of(files: &Files, more: &[&str]) -> (i32, String) {
    let model = files.path("model.mcrl2");
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(["check", &model, "-f", &files.formula, "-D", "N=any"])
        .args(more)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), text.concat())
}

/// Returns a model of a loop for `N` from 0 to 3; the instance `N = 2` has `extra` as well.
fn special_two(extra: &str) -> String {
    format!(
        "$param N: Nat = 0 where N <= 3;\nact a, b;\n\
        proc P = a . P $if N == 2 {{ + {extra} }};\ninit P;"
    )
}

#[test]
fn a_value_without_a_model_leaves_the_answer_open() {
    // The formula is false for N = 2, but that instance cannot be read: parallel recursion, an
    // undeclared action.
    for extra in ["b . (P || P)", "b . P + undeclared . P"] {
        let files = Files::new(&special_two(extra), "[true* . b]false");
        let (code, text) = text_of(&files, &[]);
        assert_eq!(code, 3, "{extra}: {text}");
        assert!(text.contains("N = 0 to 1, 3, one by one"), "{text}");
    }
}

#[test]
fn an_error_of_one_instance_is_not_its_exclusion() {
    // `h` does not occur for N = 2, so the option is an error there.
    let model = "$param N: Nat = 0 where N <= 3;\nact a, b, h;\n\
        proc P = a . P $if N != 2 { + h . P } $if N == 2 { + b . P };\ninit hide({h}, P);";
    let (code, text) = text_of(&Files::new(model, "[true* . b]false"), &["--confluence", "h"]);
    assert_ne!(code, 0, "{text}");
}

#[test]
fn the_smallest_value_has_no_unchecked_value_below_it() {
    let extra = "b . (P || P) } $if N == 3 { + b . P";
    let files = Files::new(&special_two(extra), "[true* . b]false");
    let (code, text) = text_of(&files, &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("false for N = 3"), "{text}");
    assert!(!text.contains("smallest"), "{text}");
    // If all smaller values are checked, the answer says so.
    let files = Files::new(&special_two("b . P"), "[true* . b]false");
    let (_, text) = text_of(&files, &[]);
    assert!(text.contains("N = 2, the smallest such value"), "{text}");
}

#[test]
fn values_that_the_file_excludes_are_no_obstacle() {
    let model = "$param N: Pos = 1 where N <= 3 && N != 2;\nact a, b;\n\
        proc P = a . P $if N == 2 { + b . P };\ninit P;";
    let (code, text) = text_of(&Files::new(model, "[true* . b]false"), &[]);
    assert_eq!(code, 0, "{text}");
}

/// Two numbers with a difference that no finite number of regions describes are named.
#[test]
fn two_counters_that_diverge_are_named() {
    let head = "$param N: Nat = 3;\nact u, w, bad: Nat;\n";
    let remainder = "proc C(near, far: Nat) = (near < ${N}) -> u(near) . C(near + 1, far + 3)
        + ((far - near) mod 2 == 1) -> bad(far) . delta; init C(0, 0);";
    let sum = "proc C(near, far, k: Nat) = (near < ${N}) -> u(near) . C(near + 1, far, k + 1)
        + (k > 0) -> w(far) . C(near, far + 1, Int2Nat(k - 1))
        + (near < far) -> bad(far) . delta; init C(0, 0, 0);";
    for (process, what) in [(remainder, "takes more and more"), (sum, "is compared with more")] {
        let files =
            Files::new(&format!("{head}{process}"), "[true*](forall x: Nat. [bad(x)]false)");
        let found = files.check(&[]);
        let all = format!("{}{}", found.json, found.stderr);
        assert_eq!(found.code, 3, "{all}");
        let named = ["near", "far"].iter().all(|name| all.contains(&format!("`{name}`")));
        assert!(named && all.contains(what), "{all}");
    }
}
