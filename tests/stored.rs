//! Saved transition systems include the data of their models: a file has the answers of its model.
//!
//! `MU_CHECK_CASES` random specifications from `MU_CHECK_SEED` on. With `MU_CHECK_MODELS` and
//! `MU_CHECK_TOOLSET`, the folder of the mCRL2 toolset's programs, an ignored test compares with
//! the toolset.

use crate::support::random_text::{Kind, formula, specification};
use crate::support::tape::Tape;
use crate::support::{mu_check, package};
use mu_check::base::{Budget, Limits, SourceId, Stop};
use mu_check::compile::typed::typed_declarations;
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Silent};
use mu_check::formula::typecheck::check_formula;
use mu_check::lts::mcrl2;
use mu_check::model::Model;
use mu_check::model::from_lts::LtsModel;
use mu_check::pbes::{Options, Verdict, check};
use mu_check::process::labels::ActionLabels;
use mu_check::process::labels::declared::DeclaredLabels;
use mu_check::process::linearise;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// All kinds of values, and operations of each.
const VALUES: &str = "sort D = struct d1 | d2(num: Nat, next: D)?is_d2; S; N = Nat; E = struct e1 | e2 | e3;
cons c, none: S; d: Nat # S -> S;
map h: Nat -> Nat; over: Pos -> Bool; over: Nat -> Bool; long: List(D) -> Nat; long: List(E) -> Nat; upd: (Nat -> Nat) -> Bool;
    mixed: Int # Real -> Real; times: FBag(Nat) -> Nat; more: FSet(Nat) -> Set(Nat); curried: Nat -> Nat -> Nat;
var n, m: Nat; g: Nat -> Nat; i: Int; x: Real; p: Pos; b: FBag(Nat); s: FSet(Nat); l: List(D); k: List(E);
eqn h(n) = n + 1;
    over(p) = p > 2;
    over(n) = n > 5 && over(3) && !(exists y: Nat. y < 3 && y > 3);
    long(l) = #l; long(k) = long([d1]) + #k;
    upd(g) = g[0 -> 2](0) == 2 && g(1) == 7;
    mixed(i, x) = i + x + 1 / 2 + z whr z = -3 end;
    times(b) = count(1, {1: 3} + b);
    more(s) = {1, 2} + s + { y: Nat | y > 30 } - { y: Nat | y == 2 };
    curried(n)(m) = n + m;
act a: Pos # Nat # Int # Real; l: List(Int); s: Set(Nat); fs: FSet(E); fb: FBag(S); b: Bag(Nat); dd: D # S; fn: Nat -> Nat; bo: Bool; many: List(FSet(D)); not_used: N;
proc P(v: Nat) = (v == 0) -> a(5, 0, -3, 7 / 2) . a(exp(2, 70), exp(2, 64) + 1, 3, -2) . l([1, -2]) . s({1, 2}) . fs({e3, e1}) . fb({c: 2, d(3, c): 1}) . P(1)
  + (v == 1) -> b({1: 2}) . dd(d2(1, d1), d(3, none)) . fn(h) . fn((lambda y: Nat. y * 2)[2 -> 5][1 -> 7]) . P(2)
  + (v == 2) -> (bo(true)|l([])) . s({ y: Nat | y > 3 }) . many([{}, {d1, d2(2, d1)}]) . fs({}) . P(0);
init P(0);
";

const QUESTIONS: [(&str, i32); 14] = [
    (
        "<true*>(exists p: Pos, n: Nat, i: Int, x: Real. val(x > 3 && i < 0 && p == 5) && <a(p, n, i, x)>true)",
        0,
    ),
    (
        "<true*>(exists p: Pos, n: Nat, i: Int, x: Real. val(n > exp(2, 64) && p + 0 > exp(2, 69) && x == -2) && <a(p, n, i, x)>true)",
        0,
    ),
    ("<true*>(exists v: List(Int). val(#v == 2 && v . 1 == -2) && <l(v)>true)", 0),
    ("<true*>(exists v: Set(Nat). val(1 in v && !(3 in v)) && <s(v)>true)", 0),
    ("<true*>(exists v: Set(Nat). val(100 in v && !(3 in v)) && <s(v)>true)", 0),
    ("<true*>(exists v: FSet(E). val(v == {e1, e3}) && <fs(v)>true)", 0),
    ("<true*>(exists v: FBag(S). val(count(c, v) == 2 && #v == 3) && <fb(v)>true)", 0),
    ("<true*>(exists v: D. val(is_d2(v) && num(v) == 1) && <dd(v, d(3, none))>true)", 0),
    (
        "<true*>(exists v: Nat -> Nat. val(v(1) == 7 && v(2) == 5 && v(4) == 8 && upd(v)) && <fn(v)>true)",
        0,
    ),
    ("<true*>(exists v: List(FSet(D)). val(#v == 2 && d1 in v . 1) && <many(v)>true)", 0),
    ("<true*><bo(true)|l([])>true", 0),
    (
        "<true*>(val(over(6) && !over(2) && long([e1, e2]) == 3 && long([d1]) == 1 && times({1: 2}) == 5 && curried(1)(2) == 3) && <bo(true)|l([])>true)",
        0,
    ),
    (
        "<true*>(val(mixed(2, 1 / 2) == 0 && 1 in more({}) && !(2 in more({})) && 31 in more({})) && <bo(true)|l([])>true)",
        0,
    ),
    ("<true*>(exists n: N. <not_used(n)>true)", 1),
];

fn run(command: &str, folder: &Path) -> crate::support::Outcome {
    let words: Vec<String> = command
        .split(' ')
        .map(|w| w.strip_prefix('@').map_or(w.into(), |n| folder.join(n).display().to_string()))
        .collect();
    mu_check(&words)
}

/// The saved system has the answers of the model; so have systems made from it.
#[test]
fn a_saved_system_brings_all_kinds_of_values() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("m.mcrl2"), VALUES).unwrap();
    for command in [
        "explore @m.mcrl2 --out @m.lts",
        "convert @m.lts @again.lts",
        "explore @m.mcrl2 --reduce strong --out @small.lts",
        "reduce @m.lts --out @smaller.lts",
    ] {
        let outcome = run(command, folder);
        assert!(
            outcome.code == 0 && !outcome.stderr.contains("warning"),
            "{command}: {}",
            outcome.stderr
        );
    }
    for file in ["m.mcrl2", "m.lts", "again.lts", "small.lts", "smaller.lts"] {
        for (formula, code) in QUESTIONS {
            let path = folder.join(file).display().to_string();
            let outcome = mu_check(&["check", &path, "-f", formula]);
            assert_eq!(outcome.code, code, "{file}: {formula}: {}", outcome.stderr);
        }
    }
    let texts = |name: &str| {
        let outcome = run(&format!("convert @{name} @t.aut"), folder);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        std::fs::read_to_string(folder.join("t.aut")).unwrap()
    };
    assert_eq!(texts("m.lts"), texts("again.lts"));
    // A label with a set that is not finite, or a function, has the text of the model.
    for file in ["m.lts", "small.lts"] {
        let same = run(&format!("compare @{file} @m.mcrl2"), folder);
        assert_eq!(same.code, 0, "{file}: {}", same.stderr);
    }
}

/// A model with its files, text and binary: all have the same labels. The names of variables are
/// those of operations, and operations are selected by the sorts of their arguments only.
#[test]
fn names_and_sorts_of_labels_survive_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let models = [
        // A parameter with the name of a constructor.
        "sort D = struct c | d; act b: D -> Bool; s: Set(Nat);
         proc P(x: D, n: Nat) = (n < 3) -> (b(lambda d: D. d == x) . P(d, n + 1)
             + s({d: Nat | d > n}) @ (n + 1) . P(x, n + 1));
         init P(c, 0);",
        // A parameter with the name of a built-in function.
        "act a, b: Nat; map f: Nat # Nat -> Nat; var x, y: Nat; eqn f(x, y) = x + y + 7;
         proc A(k: Nat) = (k < 3) -> a(max(k, 1)) . A(k + 1);
         proc B(max: Nat # Nat -> Nat, i: Nat) = (i < 2) -> b(max(1, 1)) . B(f, i + 1);
         init A(0) || B(lambda x, y: Nat. x + 5, 0);",
        // Overloads for finite and general sets.
        "map f: FSet(Nat) # Nat -> Bool; f: Set(Nat) # Nat -> Bool;
             st: Set(Nat); h: Nat -> Nat -> Nat;
         var x: FSet(Nat); y: Set(Nat); k, l: Nat;
         eqn f(x, k) = true; f(y, k) = k > 1; st = {1}; h(k)(l) = k * l;
         act b: Bool; g: Nat -> Nat;
         proc P(s: Set(Nat), k: Nat) = (k < 3) -> b(f(s, k)) . P(s, k + 1)
             + g(h(k)[k -> 3]) . delta;
         init P(st, 0);",
    ];
    for model in models {
        std::fs::write(folder.join("m.mcrl2"), model).unwrap();
        for command in [
            "linearise @m.mcrl2 --out @l.mcrl2",
            "linearise @m.mcrl2 --out @l.lps",
            "explore @m.mcrl2 --out @m.aut",
            "explore @m.mcrl2 --out @m.lts",
            "explore @l.mcrl2 --out @l.aut",
            "explore @l.lps --out @lps.aut",
        ] {
            let outcome = run(command, folder);
            assert_eq!(outcome.code, 0, "{command}: {}\n{model}", outcome.stderr);
        }
        for file in ["m.lts", "l.aut", "lps.aut"] {
            let same = run(&format!("compare @m.aut @{file}"), folder);
            assert_eq!(same.code, 0, "{file}: {}\n{model}", same.stderr);
        }
    }
    // The constant function is another label than the test for a constant.
    let head = "sort D = struct c | d; act b: D -> Bool;";
    for (file, body) in [
        ("one.mcrl2", "proc P(x: D) = b(lambda d: D. d == x) . delta; init P(d);"),
        ("other.mcrl2", "init b(lambda d: D. d == d) . delta;"),
    ] {
        std::fs::write(folder.join(file), format!("{head} {body}")).unwrap();
    }
    assert_eq!(run("compare @one.mcrl2 @other.mcrl2", folder).code, 1);
}

/// The label `a(1)` does not say if its argument is an integer.
#[test]
fn labels_of_several_actions_have_no_declared_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = "act a: Nat; a: Int; proc P(i: Int) = a(i) . P(i); init P(1);";
    std::fs::write(folder.join("m.mcrl2"), model).unwrap();
    assert_eq!(run("explore @m.mcrl2 --out @m.lts", folder).code, 0);
    for file in ["m.mcrl2", "m.lts"] {
        let path = folder.join(file).display().to_string();
        let outcome = mu_check(&["check", &path, "-f", "<exists i: Int. a(i)>true"]);
        let warns = outcome.stderr.contains("several actions match: `a: Nat` and `a: Int`");
        assert_eq!(warns, file == "m.lts", "{}", outcome.stderr);
        assert!(warns || outcome.code == 0, "{file}: {}", outcome.stderr);
    }
}

/// `--data` types the step of a successful end too, which no text declares.
#[test]
fn a_system_that_terminates_is_typed_by_its_model() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("m.mcrl2"), "act a: Nat; init a(1) . a(2);").unwrap();
    for file in ["m.aut", "m.lts"] {
        assert_eq!(run(&format!("explore @m.mcrl2 --out @{file}"), folder).code, 0);
        for (formula, code) in
            [("<a(1).a(2).Terminate>true", 0), ("exists n: Nat. <a(n).a(n + 2)>true", 1)]
        {
            let [system, model] =
                [file, "m.mcrl2"].map(|name| folder.join(name).display().to_string());
            let outcome = mu_check(&["check", &system, "--data", &model, "-f", formula]);
            assert_eq!(outcome.code, code, "{file}: {formula}: {}", outcome.stderr);
        }
    }
}

#[test]
fn labels_that_were_renamed_and_hidden_keep_their_data() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("m.mcrl2"),
        "sort D = struct d1 | d2(n: Nat); act a: D; b; c: D; init a(d2(3)) . a(d1) . b . c(d1) . delta;",
    )
    .unwrap();
    let outcome =
        run("explore @m.mcrl2 --rename a=new --rename b=other --hide c --out @m.lts", folder);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for (formula, code) in [
        ("<true*>(exists x: D. val(n(x) == 3) && <new(x)>true)", 0),
        ("<true*.other.tau>true", 0),
        ("<true*><c(d1)>true", 1),
    ] {
        let path = folder.join("m.lts").display().to_string();
        let outcome = mu_check(&["check", &path, "-f", formula]);
        assert_eq!(outcome.code, code, "{formula}: {}", outcome.stderr);
    }
    // The arguments of a new text are undeclared.
    let outcome = run("explore @m.mcrl2 --rename a(d1)=new(7) --out @odd.lts", folder);
    assert!(
        outcome.code == 0 && outcome.stderr.contains("the label `new(7)` has no typed form"),
        "{}",
        outcome.stderr
    );
    assert_eq!(run("check @odd.lts -f <true*.new(7)>true", folder).code, 0);
}

/// The model of the study, without operations: formulas of the project on the saved system.
#[test]
fn arcx_is_checked_as_a_saved_system() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.lts").display().to_string();
    let spec = package("specs/arcx.spec");
    let define = ["-D", "max_operation_id=0"];
    assert_eq!(mu_check(&["explore", &spec, define[0], define[1], "--out", &file]).code, 0);
    for name in ["1a.gos", "1b.gos", "1c.gos", "1d.gos", "2.selfobserving", "3.cacheconsistency"] {
        let formula = package(&format!("formulas/{name}.mcf"));
        let (model, saved) = (
            mu_check(&["check", &spec, &formula, define[0], define[1]]),
            mu_check(&["check", &file, &formula]),
        );
        assert!(model.code < 2, "{name}: {}", model.stderr);
        assert_eq!(saved.code, model.code, "{name}: {}", saved.stderr);
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

/// Random formulas on random specifications, and on their files.
#[test]
fn random_systems_answer_as_their_models() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 80));
    let (mut compared, mut truths) = (0, 0);
    for seed in first..first + cases {
        let mut tape = Tape::new(seed);
        let (text, _) = specification(&mut tape);
        let spec =
            check_specification(&syntax::parse_specification(SourceId::FIRST, &text).unwrap())
                .unwrap();
        let process = linearise::linearise(&spec, &Default::default()).unwrap();
        let model = Compiled::new(process, &Confluence::None).unwrap();
        let budget = Budget::new(Limits { max_states: Some(60), ..Default::default() });
        let options = explore::Options { threads: 1, ..Default::default() };
        let lts = match explore::explore_lts(&model, &options, &budget, &Silent) {
            Ok((outcome, lts)) if outcome.stop == Stop::Complete => lts,
            _ => continue,
        };
        let labels = (0..model.label_count()).map(mu_check::base::ids::LabelId::new);
        let labels = labels.map(|l| (model.label_text(l), model.multi_action(l)));
        let known =
            typed_declarations(&model.process().data, &model.process().actions, labels).unwrap();
        let mut bytes = Vec::new();
        mcrl2::write(&lts, Some(&known), &mut bytes)
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        let (read, brought) = mcrl2::read_with_declarations(&bytes[..]).unwrap();
        let brought = brought
            .unwrap_or_else(|| panic!("seed {seed}: no declarations\n{text}"))
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let declared =
            check_specification(&syntax::parse_specification(SourceId::FIRST, &brought).unwrap())
                .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{brought}"));
        let labels = DeclaredLabels::new(&read.table.texts, declared.data, declared.actions)
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{brought}"));
        let ordered = mu_check::lts::relabel::sort_parts;
        let of_model: BTreeSet<String> =
            lts.table.texts.iter().skip(1).map(|text| ordered(text)).collect();
        let of_file: BTreeSet<String> = (1..read.table.texts.len())
            .map(|i| ordered(&labels.text(mu_check::base::ids::LabelId::new(i))))
            .collect();
        assert_eq!(of_file, of_model, "seed {seed}\n{text}\n{brought}");
        let saved = LtsModel::new(Arc::new(read));
        let formula_text = formula(&mut tape, Kind::Any);
        let tree = syntax::parse_formula(SourceId::FIRST, &formula_text).unwrap();
        let on_model =
            check_formula(&tree, &model.process().data, &model.process().actions).unwrap();
        let on_saved = check_formula(&tree, labels.data(), labels.actions())
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{formula_text}"));
        let Ok(expected) =
            check(&model, &model, &on_model, Options::new(&options), &Budget::default())
        else {
            continue;
        };
        let found = check(&saved, &labels, &on_saved, Options::new(&options), &Budget::default())
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{formula_text}\n{text}"));
        assert_eq!(
            found.verdict, expected.verdict,
            "seed {seed}\n{formula_text}\n{text}\n{brought}"
        );
        compared += 1;
        truths += u64::from(found.verdict == Verdict::True);
    }
    println!("{compared} formulas compared, {truths} true");
    assert!(
        compared * 3 > cases && truths * 5 > compared && (compared - truths) * 5 > compared,
        "{compared} {truths}"
    );
}

/// The toolset finds the system that it makes itself of a specification bisimilar to the one saved
/// here.
#[test]
#[ignore = "needs the mCRL2 toolset and models"]
fn the_toolset_reads_what_is_saved() {
    let toolset = std::env::var("MU_CHECK_TOOLSET")
        .expect("MU_CHECK_TOOLSET names the folder of the programs");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let tool = |name: &str, words: &[&str]| {
        Command::new("timeout")
            .arg("20")
            .arg(format!("{toolset}/{name}"))
            .args(words)
            .output()
            .expect("a program of the toolset")
    };
    let (mut saved, mut agreed) = (0, 0);
    let mut differ = Vec::new();
    for model in crate::support::reference_models(&["mcrl2"]) {
        let model = model.display().to_string();
        let ours = mu_check(&[
            "explore",
            &model,
            "--max-states",
            "20000",
            "--timeout",
            "10",
            "--out",
            &path("our.lts"),
        ]);
        if ours.code != 0 {
            continue;
        }
        let made = tool("mcrl22lps", &[&model, &path("m.lps")]).status.success()
            && tool("lps2lts", &["-l20001", &path("m.lps"), &path("their.lts")]).status.success();
        if !made {
            continue;
        }
        saved += 1;
        // By the texts of the labels: the toolset takes multi-actions of two files for different if
        // their actions stand in another order.
        for name in ["our", "their"] {
            tool(
                "ltsconvert",
                &["-enone", &path(&format!("{name}.lts")), &path(&format!("{name}.aut"))],
            );
        }
        let same = tool("ltscompare", &["-ebisim", &path("our.aut"), &path("their.aut")]);
        if String::from_utf8_lossy(&same.stdout).contains("true") {
            agreed += 1;
        } else {
            differ.push(format!(
                "{model}: {}",
                String::from_utf8_lossy(&same.stderr).lines().next().unwrap_or("another system")
            ));
        }
    }
    println!("{saved} systems saved, {agreed} equal to the toolset's\n{}", differ.join("\n"));
    assert!(saved > 0 && agreed == saved, "{saved} {agreed}");
}

/// The states of a file that no path reaches are no states of the system, and no deadlocks.
#[test]
fn unreachable_states_of_a_file_are_counted_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("u.aut");
    std::fs::write(&path, "des (0,3,5)\n(0,\"a\",1)\n(1,\"b\",0)\n(2,\"c\",3)\n").unwrap();
    let path = path.to_str().unwrap();
    for words in [&["explore", path][..], &["check", path]] {
        let outcome = mu_check(words);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        for (key, expected) in [("states", 2), ("transitions", 2), ("deadlocks", 0)] {
            assert_eq!(outcome.json[key], expected, "{key}: {}", outcome.json);
        }
        assert_eq!(outcome.json["unreachable"], 3, "{}", outcome.json);
        assert_eq!(outcome.json["ends"]["hang"], 0, "{}", outcome.json);
    }
    let info = mu_check(&["info", path]);
    assert_eq!((&info.json["states"], &info.json["unreachable"]), (&2.into(), &3.into()));
}
