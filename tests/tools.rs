//! Commands over transition systems, equation systems, and games: files in, JSON and exit codes
//! out.

use crate::support::{Outcome, mu_check};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A buffer of two places, and a chain of two buffers of one.
const BUFFERS: &str = "act enter, leave, mid, give, take: Nat;
proc Two(a: Int, b: Int) = (a < 0) -> sum n: Nat. (n < 2) -> enter(n) . Two(n, b)
  + (a >= 0 && b < 0) -> mid(Int2Nat(a)) . Two(-1, a) + (b >= 0) -> leave(Int2Nat(b)) . Two(a, -1);
init hide({mid}, Two(-1, -1));
";
const CHAIN: &str = "act enter, leave, mid, give, take: Nat;
proc First = sum n: Nat. (n < 2) -> enter(n) . give(n) . First;
proc Second = sum n: Nat. take(n) . leave(n) . Second;
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second)));
";

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.text(name)
    }
    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
    fn run(&self, command: &str) -> Outcome {
        let words: Vec<String> = command
            .split(' ')
            .map(|w| w.strip_prefix('@').map_or(w.to_string(), |n| self.text(n)))
            .collect();
        mu_check(&words)
    }
    /// Runs a command that must end with a code, and gives its JSON.
    fn expect(&self, code: i32, command: &str) -> Value {
        let outcome = self.run(command);
        assert_eq!(outcome.code, code, "{command}: {}\n{}", outcome.stderr, outcome.json);
        outcome.json
    }
}

#[test]
fn reduce_info_convert() {
    let f = Folder::new();
    f.file("two.mcrl2", BUFFERS);
    let j = f.expect(0, "reduce @two.mcrl2 --equivalence branching --out @two.aut");
    assert_eq!((&j["states"], &j["reduced"]["states"]), (&9.into(), &7.into()), "{j}");
    let info = f.expect(0, "info @two.aut");
    assert_eq!(
        (&info["states"], &info["deadlocks"], &info["actions"]["enter"]),
        (&7.into(), &0.into(), &6.into())
    );
    // From a file or from the specification, packed or not, the system is the same.
    f.expect(0, "convert @two.mcrl2 @all.aut.gz");
    for form in ["blts", "lts"] {
        f.expect(0, &format!("convert @two.mcrl2 @all.{form}"));
        let j = f.expect(0, &format!("compare @all.{form} @all.aut.gz"));
        assert_eq!(j["verdict"], "true", "{form}: {j}");
        let j = f.expect(
            0,
            &format!("reduce @all.{form} --equivalence branching --hide leave --out @small.{form}"),
        );
        assert_eq!(
            f.expect(0, &format!("info @small.{form}"))["states"],
            j["reduced"]["states"],
            "{form}"
        );
        let mut bytes = std::fs::read(f.path(&format!("all.{form}"))).unwrap();
        bytes.truncate(bytes.len() / 2);
        std::fs::write(f.path(&format!("cut.{form}")), bytes).unwrap();
        let cut = f.run(&format!("info @cut.{form}"));
        assert!(cut.code == 2 && cut.stderr.contains("damaged"), "{form}: {}", cut.stderr);
    }
    f.expect(0, "convert @all.aut.gz @all.aut");
    let figures = |command: &str| {
        let mut info = f.expect(0, command);
        // The kind of the file, and fields of specifications alone.
        ["model", "parameters", "declared"]
            .iter()
            .for_each(|key| _ = info.as_object_mut().unwrap().remove(*key));
        info
    };
    assert_eq!(figures("info @two.mcrl2"), figures("info @all.aut"));
    f.expect(0, "convert @two.aut @two.dot");
    assert!(std::fs::read_to_string(f.path("two.dot")).unwrap().starts_with("digraph"));
    // Hiding everything visible leaves one state that can go on forever.
    let j = f.expect(0, "reduce @two.aut --hide enter,leave --equivalence div-branching");
    assert_eq!(
        (&j["reduced"]["states"], &j["reduced"]["transitions"]),
        (&1.into(), &1.into()),
        "{j}"
    );
    let j = f.expect(0, "info @two.aut --rename enter=x,leave=x --hide x(0)");
    assert_eq!(j["labels"], 2, "{j}");
    // A file does not say which actions exist; a specification does.
    std::fs::write(f.path("rare.mcrl2"), "act a, b; init a . delta;").unwrap();
    f.expect(0, "explore @rare.mcrl2 --out @rare.aut");
    for (command, code, text) in [
        ("info @two.aut --hide inn", 0, "warning: no label has an action `inn`; actions: enter, l"),
        ("check @two.aut -f true --hide inn", 0, "warning: no label has an action `inn`; actions"),
        ("explore @rare.mcrl2 --hide a,b", 0, "warning: no label has an action `b`; actions: a"),
        ("compare @rare.mcrl2 @rare.aut --hide b", 0, "warning: no label has an action `b`"),
        ("explore @rare.aut --rename b=c", 0, "warning: no label has an action `b`; actions: a"),
        ("explore @rare.mcrl2 --hide c", 2, "error: no label has an action `c`"),
        // Paths have the new labels.
        ("explore @two.mcrl2 --divergence --hide enter,leave", 1, ""),
        ("explore @two.aut --divergence --hide enter,leave", 1, ""),
        ("explore @two.aut --divergence --hide leave", 0, ""),
        ("explore @rare.aut --action c --rename a=c", 1, ""),
    ] {
        let run = f.run(command);
        assert!(run.code == code && run.stderr.contains(text), "{command}: {}", run.stderr);
    }
    assert_eq!(f.run("convert @two.aut @two.txt").code, 2);
    assert_eq!(f.run("reduce @missing.aut").code, 2);
    assert_eq!(f.run("reduce @two.mcrl2 --max-states 3").code, 3);
}

#[test]
fn compare_distinguishes() {
    let f = Folder::new();
    f.file("two.mcrl2", BUFFERS);
    f.file("chain.mcrl2", CHAIN);
    for equivalence in ["branching", "div-branching", "weak", "trace", "weak-trace", "strong"] {
        let j =
            f.expect(0, &format!("compare @two.mcrl2 @chain.mcrl2 --equivalence {equivalence}"));
        assert_eq!((&j["verdict"], &j["difference"]), (&"true".into(), &Value::Null));
    }
    // A buffer that can lose its value.
    f.file(
        "loses.mcrl2",
        &CHAIN
            .replace("take(n) . leave(n) . Second", "take(n) . (leave(n) . Second + tau . Second)"),
    );
    for (equivalence, kind) in [
        ("strong", "formula"),
        ("branching", "formula"),
        ("weak", "formula"),
        ("weak-trace", "trace"),
        ("trace", "trace"),
    ] {
        let j = f.expect(
            1,
            &format!(
                "compare @chain.mcrl2 @loses.mcrl2 --equivalence {equivalence} --out @why.mcf"
            ),
        );
        assert_eq!(
            (&j["verdict"], &j["confirmed"], &j["difference"]["kind"]),
            (&"false".into(), &true.into(), &kind.into()),
            "{j}"
        );
        // The written formula distinguishes the systems.
        f.expect(0, "convert @chain.mcrl2 @a.aut");
        f.expect(0, "convert @loses.mcrl2 @b.aut");
        let only_in_a = j["difference"]["only_in"] == "a";
        f.expect(i32::from(!only_in_a), "check @a.aut @why.mcf");
        f.expect(i32::from(only_in_a), "check @b.aut @why.mcf");
    }
    for preorder in ["trace", "weak-trace", "simulation"] {
        let refines = |a: &str, b: &str| f.run(&format!("compare {a} {b} --preorder {preorder}"));
        let there = refines("@chain.mcrl2", "@loses.mcrl2");
        assert_eq!(there.code, 0, "{preorder}: {}", there.json);
        let back = refines("@loses.mcrl2", "@chain.mcrl2");
        assert_eq!(
            (back.code, &back.json["confirmed"]),
            (1, &true.into()),
            "{preorder}: {}",
            back.json
        );
    }
    assert_eq!(
        f.run("compare @two.mcrl2 @chain.mcrl2 --equivalence strong --preorder trace").code,
        2
    );
}

/// Labels are opaque to `compare`: whatever they look like, a difference is confirmed, and the
/// answer says whether `check` reads its formula with this meaning.
#[test]
fn compare_labels_that_formulas_read_otherwise() {
    let f = Folder::new();
    let labels = [
        ("go", true),
        ("true", false),
        ("stop|go", true),
        ("false", false),
        ("go(1,2)", true),
        ("delta", false),
        ("go|stop|tau", false),
        ("go(true)", true),
        ("tau|tau", false),
        ("PUT !1", false),
        ("forall", false),
        ("go.stop", false),
        ("!go", false),
        ("go(", false),
        ("val(true)", false),
    ];
    let mut seen = [0, 0];
    let compare = |a: &str, b: &str, more: &str| {
        f.file("a.aut", &format!("des (0, 1, 2)\n(0, \"{a}\", 1)\n"));
        f.file("b.aut", &format!("des (0, 1, 2)\n(0, \"{b}\", 1)\n"));
        let j = f.expect(1, &format!("compare @a.aut @b.aut {more}--out @why.mcf"));
        assert_eq!(j["confirmed"], true, "{a}, {b}: {j}");
        j["difference"].clone()
    };
    for (i, (label, is_action)) in labels.iter().enumerate() {
        let (other, _) = labels[(i + 1) % labels.len()];
        let difference = compare(label, other, "");
        assert_eq!(difference["checkable"], *is_action, "{label}, {other}: {difference}");
        seen[usize::from(*is_action)] += 1;
        if *is_action {
            f.expect(0, "check @a.aut @why.mcf");
            f.expect(1, "check @b.aut @why.mcf");
        } else {
            assert!(
                difference["not_checkable"].as_str().is_some_and(|why| why.contains(label)),
                "{label}, {other}: {difference}"
            );
        }
    }
    assert!(seen.iter().all(|n| *n > 3), "{seen:?}");
    // Two texts of one action.
    for (a, b) in [("go(1,2)", "go(1, 2)"), ("go(1)", "go( 1 )")] {
        for more in ["", "-e trace ", "-e weak ", "-p simulation "] {
            let difference = compare(a, b, more);
            assert_eq!(difference["checkable"], false, "{a}, {b}, {more}: {difference}");
        }
    }
}

/// Names of bound variables do not matter: a specification is equivalent to its linear process.
#[test]
fn compare_labels_with_bound_variables() {
    let f = Folder::new();
    let model = "act a: Set(Nat); c: Nat -> Bool;
        proc P(s: Set(Nat), n: Nat) = (n < 1) -> a(s) . P(s + {n}, n + 1) + c(lambda x: Nat. x < n) . P(s, n);
        init P({x: Nat | x > 5}, 0);";
    f.file("a.mcrl2", model);
    f.file("b.mcrl2", &model.replace("lambda x: Nat. x < n", "lambda x: Nat. x <= n"));
    f.expect(0, "linearise @a.mcrl2 --out @a.lps");
    f.expect(0, "compare @a.mcrl2 @a.lps");
    let j = f.expect(1, "compare @a.mcrl2 @b.mcrl2");
    assert_eq!(j["confirmed"], true, "{j}");
}

/// Operators and enumerations in labels have the same meaning in a binary file as in the model.
#[test]
fn compare_labels_with_operators() {
    let f = Folder::new();
    f.file(
        "o.mcrl2",
        "sort Id; map k, l: Id;
         act a: Bool; b: List(Bool); c: FBag(Bool); d: Set(Nat);
         init a(k == l) . b([k == l, k != l && k == l]) . c({false: 1} + {k == l: 3, true: 1}) . a(!(k == l)) . d({1, 2});",
    );
    f.expect(0, "convert @o.mcrl2 @o.lts");
    f.expect(0, "compare @o.mcrl2 @o.lts");
    f.file("p.mcrl2", "sort Id; map k, l: Id; act a: Bool; init a(!(k == l));");
    f.file("q.mcrl2", "sort Id; map k, l: Id; act a: Bool; init a(k == l);");
    f.expect(1, "compare @p.mcrl2 @q.mcrl2");
}

/// Labels that no formula can name still get a confirmed formula.
#[test]
fn compare_labels_of_other_languages() {
    let f = Folder::new();
    f.file(
        "a.aut",
        "des (0, 3, 3)\n(0, \"PUT !\"x\" !3\", 1)\n(1, \"GET\", 2)\n(1, \"PUT !\"y\"\", 2)\n",
    );
    f.file("b.aut", "des (0, 4, 4)\n(0, \"PUT !\"x\" !3\", 1)\n(0, \"PUT !\"x\" !3\", 2)\n(1, \"GET\", 3)\n(2, \"PUT !\"y\"\", 3)\n");
    let j = f.expect(1, "compare @a.aut @b.aut");
    assert_eq!(
        (&j["confirmed"], &j["difference"]["kind"]),
        (&true.into(), &"formula".into()),
        "{j}"
    );
    f.expect(0, "compare @a.aut @b.aut -e trace");
    f.expect(0, "compare @a.aut @b.aut --hide PUT --hide GET -e weak-trace");
    f.expect(0, "compare @b.aut @a.aut --preorder simulation");
    let j = f.expect(1, "compare @a.aut @b.aut --preorder simulation");
    assert_eq!(j["confirmed"], true, "{j}");
}

#[test]
fn games_are_written_and_solved() {
    let f = Folder::new();
    f.file("two.mcrl2", BUFFERS);
    for (i, (formula, holds)) in [
        ("[true*]<true>true", true),
        ("nu X. mu Y. ([exists n: Nat. enter(n)]Y && [!exists n: Nat. enter(n)]X)", true),
        ("nu X. mu Y. ([leave(1)]X && [!leave(1)]Y)", false),
        ("nu X. mu Y. (<leave(1)>X || <true>Y)", true),
        ("[true*]forall n: Nat. [enter(n)]mu X. ([!leave(n)]X && <true>true)", true),
        ("forall n: Nat. val(n < 2) => <true* . enter(n) . true* . leave(n)>true", true),
        ("true", true),
    ]
    .into_iter()
    .enumerate()
    {
        let code = i32::from(!holds);
        f.file("f.mcf", formula);
        f.expect(code, &format!("check @two.mcrl2 @f.mcf --game @{i}.pg"));
        for solver in ["auto", "zielonka", "promotion"] {
            let j = f.expect(code, &format!("solve @{i}.pg --solver {solver} --out @{i}.sol"));
            assert_eq!(
                (&j["verdict"], &j["verified"]),
                (&holds.to_string().into(), &true.into()),
                "{formula}: {j}"
            );
        }
        let solution = std::fs::read_to_string(f.path(&format!("{i}.sol"))).unwrap();
        assert!(solution.starts_with("paritysol "), "{solution}");
        let info = f.expect(0, &format!("info @{i}.pg"));
        assert!(info["vertices"].as_u64().unwrap() >= 3, "{info}");
        f.expect(0, &format!("convert @{i}.pg @copy.pg"));
    }
    f.file("e.bes", "bes nu X = Y && X;\n mu Y = X || Y;\ninit X;\n");
    let j = f.expect(0, "solve @e.bes");
    assert_eq!((&j["name"], &j["winner"]), (&"X".into(), &"even".into()), "{j}");
    let wrong = f.run("solve @e.bes --solver magic");
    assert!(wrong.code == 2 && wrong.stderr.contains("zielonka"), "{}", wrong.stderr);
    f.file("bad.pg", "parity 1;\n0 0 2 0;\n");
    let wrong = f.run("solve @bad.pg");
    assert!(
        wrong.code == 2
            && wrong.stderr.contains("bad.pg:2:5: error: ")
            && wrong.stderr.contains("    2 | 0 0 2 0;"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn equation_systems_are_printed() {
    let f = Folder::new();
    let text = |model: &Path, formula: &str| {
        f.file("f.mcf", formula);
        let words = ["pbes".to_string(), model.display().to_string(), f.text("f.mcf")];
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    f.file("chain.mcrl2", CHAIN);
    let t = text(
        &f.path("chain.mcrl2"),
        "nu X(n: Nat = 0). [tau]X(n + 1) && val(n < 9) && mu Y. (<exists m: Nat. leave(m)>true || <true>Y)",
    );
    assert!(
        t.contains("pbes\n")
            && t.contains("nu X(")
            && t.contains("mu Y(")
            && t.contains("init\n  X(0"),
        "{t}"
    );
    // It is read and solved, and its game is one like any other.
    f.file("t.pbes", &t);
    let j = f.expect(0, "solve @t.pbes --solver zielonka --max-states 100000");
    assert!(j["name"].as_str().unwrap().starts_with("X(0") && j["verified"] == true, "{j}");
    f.expect(0, "convert @t.pbes @t.pg");
    assert_eq!(f.expect(0, "info @t.pg")["vertices"], f.expect(0, "info @t.pbes")["vertices"]);
    f.file("f.pbes", "pbes\n mu X(n: Nat) = val(n < 3) && X(n + 1);\ninit X(0);\n");
    assert_eq!(f.expect(1, "solve @f.pbes")["winner"], "odd");
    f.file("endless.pbes", "pbes mu X(n: Nat) = val(n mod 7 > 9) || X(n + 1); init X(0);");
    let early = f.expect(3, "solve @endless.pbes --max-states 100");
    assert_eq!(early["stop"], "max-states", "{early}");
    // Infinitely many instances and values, of which finitely many decide; and numbers that nothing
    // looks at.
    for (system, code) in [
        ("nu X(n: Nat) = forall w: Nat. val(w < 3) && X(n + 1)", 1),
        (
            "mu X(n: Nat) = exists w: Nat, i: Int. val(w * w == 9 && i < 0 && i * i == w + 1) || X(n + 1) && val(n > 5)",
            0,
        ),
        (
            "nu X(n: Nat) = (forall w: Pos. val(w < 9) => X(w)) && (exists w: Nat. val(w > n) && (exists v: Nat. val(v * v == w) && X(1)))",
            0,
        ),
        ("mu X(n: Nat) = X(n + 1)", 1),
        (
            "mu X(n: Nat) = (val(n == 2) && (exists m: Nat. val(m < 3) && Y(m, any)) || X(1) && Y(2, any)); nu Y(m, k: Nat) = Y(m, k)",
            1,
        ),
        ("nu X(n: Nat) = X(n + 1) && (forall w: Nat. val(n + w < 7))", 1),
    ] {
        f.file("many.pbes", &format!("glob any: Nat; pbes {system}; init X(0);"));
        assert_eq!(f.run("solve @many.pbes --timeout 60").code, code, "{system}");
    }
    f.file("bad.pbes", "pbes\n mu X(n: Nat) = X(m);\ninit X(0);\n");
    let wrong = f.run("solve @bad.pbes");
    assert!(
        wrong.code == 2 && wrong.stderr.contains("bad.pbes:2:19: error: `m` is not declared"),
        "{}",
        wrong.stderr
    );
    assert_eq!(f.run("pbes @chain.mcrl2 @missing.mcf").code, 2);
    f.file("x.aut", "des (0, 0, 1)\n");
    assert_eq!(f.run("pbes @x.aut @f.mcf").code, 2);
}

/// A specification types the labels of a stored system; an undeclared label is rejected with its
/// place.
#[test]
fn stored_systems_have_the_data_of_a_model() {
    let folder = Folder::new();
    folder.file("s.aut", "des (0,2,2)\n(0,\"send(c0)\",1)\n(1,\"recv(c1)\",0)\n");
    folder.file(
        "d.mcrl2",
        "sort Core = struct c0 | c1; act send, recv: Core; init send(c0) . recv(c1);",
    );
    folder.file("same.mcf", "forall c: Core. [true* . send(c) . recv(c)]false");
    folder.file("other.mcf", "exists c: Core. <true* . send(c)>true");
    let found = folder.expect(0, "check @s.aut --data @d.mcrl2 @same.mcf @other.mcf");
    assert_eq!(found["results"].as_array().map(Vec::len), Some(2), "{found}");
    assert!(folder.run("check @s.aut @same.mcf").stderr.contains("sort `Core` is not declared"));
    folder.file(
        "less.mcrl2",
        "sort Core = struct c0; act send, recv: Core; init send(c0) . recv(c0);",
    );
    let refused = folder.run("check @s.aut --data @less.mcrl2 @same.mcf");
    assert!(
        refused.code == 2 && refused.stderr.contains("in the label `recv(c1)`"),
        "{}",
        refused.stderr
    );
}

/// Programs and equation systems are models for every command.
#[test]
fn every_command_takes_every_front_end() {
    let folder = Folder::new();
    let spinlock = crate::support::package("specs/x86/spinlock.asm");
    folder.file("e.pbes", "pbes nu X(n: Nat) = val(n > 2) || X(n + 1); init X(0);");
    for (model, states) in [(spinlock.as_str(), 129), ("@e.pbes", 5)] {
        let explored = folder.expect(0, &format!("explore {model}"));
        assert_eq!(explored["states"], states, "{model}: {explored}");
        let reduced = folder.expect(0, &format!("reduce {model}"));
        assert_eq!(reduced["states"], states, "{model}");
        assert_eq!(folder.run(&format!("compare {model} {model}")).code, 0);
        folder.file("live.mcf", "<true>true");
        assert_eq!(folder.run(&format!("check {model} @live.mcf")).code, 0);
        folder.file("script", "step 1\n");
        assert_eq!(folder.run(&format!("simulate {model} --script @script")).code, 0);
    }
    let three = folder.expect(0, &format!("explore {spinlock} --threads-of 3 --model sc"));
    assert!(three["states"].as_u64() > Some(129), "{three}");
}

/// A file of the mCRL2 toolset brings the data that formulas speak of; its numbers are digits of a
/// machine.
#[test]
fn an_lts_file_of_the_toolset_is_checked_with_the_data_that_it_brings() {
    let file = crate::support::package("tests/files/declared.lts");
    for (formula, code) in [
        (
            "[true*](forall x: D, n: Nat. [a(x, n)](val(n == 2) || (exists m: Nat. val(m < 4) && <a(f(x), m)>true)))",
            0,
        ),
        ("<true*>(exists n: Nat, i: Int. val(i < 0 && n > exp(2, 70)) && <far(n, i)>true)", 0),
        ("<true*>(exists l: List(D). val(#l == 2) && <all({1, 2}, l)>true)", 0),
        ("<true*>(exists x: D. <a(x, largest([3, 5], 0))>true)", 1),
        ("[true*](forall x: D, n: Nat. [a(x, n)]val(is_second(x)))", 1),
    ] {
        let outcome = mu_check(&["check", &file, "-f", formula]);
        assert_eq!(outcome.code, code, "{formula}: {}{}", outcome.stderr, outcome.json);
    }
    let (states, transitions, _) = crate::support::explore(Path::new(&file), &[]);
    assert_eq!((states, transitions), (7, 6));
    let folder = Folder::new();
    let texts = |name: &str| {
        mu_check(&["convert", &file, &folder.text(name)]);
        std::fs::read_to_string(folder.path(name)).unwrap()
    };
    let aut = texts("a.aut");
    assert!(
        aut.contains("\"far(1180591620717411303429, -4)\"")
            && aut.contains("\"all({1, 2}, [d1, d2(7)])\""),
        "{aut}"
    );
    // What is written has the same labels.
    mu_check(&["convert", &file, &folder.text("b.lts")]);
    mu_check(&["convert", &folder.text("b.lts"), &folder.text("b.aut")]);
    assert_eq!(std::fs::read_to_string(folder.path("b.aut")).unwrap(), aut);
}
