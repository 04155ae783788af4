//! Transition systems without declarations, as other tools write them: labels that do not occur,
//! the internal action, long chains.

use crate::support::{Outcome, mu_check};
use std::fmt::Write;
use std::path::Path;

fn run(folder: &Path, command: &str) -> Outcome {
    let words: Vec<String> = (command.split(' '))
        .map(|w| {
            w.strip_prefix('@')
                .map_or(w.to_string(), |name| folder.join(name).display().to_string())
        })
        .collect();
    mu_check(&words)
}

/// Returns a folder with files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Returns a chain of steps `go`, the last one `last`.
fn chain(steps: usize, last: &str) -> String {
    let mut text = format!("des (0,{steps},{})\n", steps + 1);
    for i in 0..steps {
        _ = writeln!(text, "({i},\"{}\",{})", if i + 1 == steps { last } else { "go" }, i + 1);
    }
    text
}

/// Without declarations the text of an argument that a label has denotes it.
#[test]
fn arguments_of_labels_are_named_by_their_texts() {
    let folder = folder(&[(
        "args.aut",
        "des (0,6,1)\n(0,\"d({3: 1})\",0)\n(0,\"h([x, y])\",0)\n(0,\"e(pair(x, 1))\",0)\n\
         (0,\"f(lambda x: Bool. 1)\",0)\n(0,\"f({x: Nat | x > 3})\",0)\n(0,\"f(g[true -> 1])\",0)\n",
    )]);
    for (label, code) in [
        ("d({3:1})", 1),
        ("h([x,y])", 1),
        ("e(pair(x,1))", 1),
        ("d({3:2})", 0),
        ("h([y,x])", 0),
        ("e(pair(x,2))", 0),
        ("f(lambda x: Bool. 1)", 1),
        ("f({x: Nat|x>3})", 1),
        ("f(g[true -> 1])", 1),
    ] {
        let file = folder.path().join("args.aut").display().to_string();
        let outcome = mu_check(&["check", &file, "--formula", &format!("[{label}]false")]);
        assert_eq!(outcome.code, code, "{label}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.contains("no label"), code == 0, "{label}: {}", outcome.stderr);
    }
}

/// A label that no transition has matches nothing: `<x>` is false, `[x]` is true. Only a formula
/// that is no formula is refused.
#[test]
fn labels_that_do_not_occur_match_nothing() {
    let folder = folder(&[(
        "one.aut",
        "des (0,3,2)\n(0,\"left\",1)\n(0,\"say(3)\",1)\n(1,\"say(far)\",0)\n",
    )]);
    for (formula, code, reason) in [
        ("<right>true", 1, Some("no label of the transition system has an action `right`")),
        ("[right]false", 0, Some("has an action `right`")),
        ("<!right>true", 0, Some("has an action `right`")),
        ("[true*]<left||right>true", 1, Some("has an action `right`")),
        ("<left(1)>true", 1, Some("an action `left` with 1 argument")),
        ("<left|right>true", 1, Some("has an action `right`")),
        ("<say(near)>true", 1, Some("matches: `near` is not declared")),
        ("<say([far,near])>true", 1, Some("no label of the transition system matches")),
        ("[say({3})]false", 0, Some("no label of the transition system matches")),
        ("<say(1/2)>true", 1, Some("no label of the transition system matches")),
        ("<say(far(1))>true", 1, Some("no label of the transition system matches")),
        ("<say({far:2})>true", 1, Some("no label of the transition system matches")),
        ("<left>true", 0, None),
        ("<left . say(far)>true", 0, None),
    ] {
        let outcome =
            run(folder.path(), &format!("check @one.aut --formula {}", formula.replace(' ', "")));
        assert_eq!(outcome.code, code, "{formula}: {}", outcome.stderr);
        match reason {
            Some(reason) => assert!(
                outcome.stderr.contains("warning") && outcome.stderr.contains(reason),
                "{formula}: {}",
                outcome.stderr
            ),
            None => assert!(!outcome.stderr.contains("no label"), "{formula}: {}", outcome.stderr),
        }
    }
    for formula in ["<say(3&&true)>true", "[left]X", "<left>"] {
        assert_eq!(
            run(folder.path(), &format!("check @one.aut --formula {formula}")).code,
            2,
            "{formula}"
        );
    }
}

/// An argument has the sort of the same expression in a formula, whatever other labels of the
/// action have at its position.
#[test]
fn arguments_of_several_sorts_are_overloads() {
    let folder = folder(&[(
        "many.aut",
        "des (0,10,11)\n(0,\"a(1)\",1)\n(1,\"a(true)\",2)\n(2,\"a(1/2)\",3)\n(3,\"a(-1)\",4)\n\
         (4,\"a(c)\",5)\n(5,\"a([1, 2])\",6)\n(6,\"a([])\",7)\n(7,\"a({2, 1})\",8)\n\
         (8,\"a([c])|b(f(c), 1/0)\",9)\n(9,\"b(true, 2)|a(1)\",10)\n",
    )]);
    for (formula, expected) in [
        ("<a(1)>true", true),
        ("[a(1)]false", false),
        ("<a(2)>true", false),
        ("<a(1).a(true).a(1/2).a(-1).a(c).a([1,2]).a([]).a({1,2})>true", true),
        ("<true.true.a(2/4)>true", true),
        ("<true.true.a(1)>true", false),
        ("<exists(r:Real).(val(r==1)&&a(r))>true", true),
        ("<true.true.true.true.true.exists(l:List(Nat)).(a(l))>true", true),
        ("<a(1).true*.(a(1)|b(true,2))>true", true),
        ("<a(1).true*.(a(1)|b(false,2))>true", false),
    ] {
        let formula = formula.replace("exists(r:Real).(", "exists r:Real.(");
        let formula = formula.replace("exists(l:List(Nat)).(", "exists l:List(Nat).(");
        let path = folder.path().join("many.aut");
        let outcome = mu_check(&["check", path.to_str().unwrap(), "--formula", &formula]);
        assert_eq!(outcome.code, i32::from(!expected), "{formula}: {}", outcome.stderr);
        let words = ["explore", path.to_str().unwrap(), "--out"];
        let written = folder.path().join("again.fsm");
        assert_eq!(mu_check(&[&words[..], &[written.to_str().unwrap()]].concat()).code, 0);
        let again = mu_check(&["check", written.to_str().unwrap(), "--formula", &formula]);
        assert_eq!(again.code, outcome.code, "{formula}: {}", again.stderr);
    }
}

/// Where actions are declared, a name that is not is a misspelling.
#[test]
fn declared_actions_are_spelled_right() {
    let folder = folder(&[
        ("m.mcrl2", "act left, right; init left;\n"),
        ("m.aut", "des (0,1,2)\n(0,\"left\",1)\n"),
    ]);
    for model in ["@m.mcrl2", "@m.aut --data @m.mcrl2"] {
        let wrong = run(folder.path(), &format!("check {model} --formula <rigth>true"));
        assert!(
            wrong.code == 2 && wrong.stderr.contains("action `rigth` is not declared"),
            "{model}: {}",
            wrong.stderr
        );
        let never = run(folder.path(), &format!("check {model} --formula <right>true"));
        assert!(never.code == 1 && !never.stderr.contains("no label"), "{model}: {}", never.stderr);
    }
}

#[test]
fn a_distinguishing_formula_is_checked_on_both_systems() {
    let folder = folder(&[
        ("x.aut", "des (0,1,2)\n(0,\"x\",1)\n"),
        ("y.aut", "des (0,1,2)\n(0,\"y\",1)\n"),
        ("p.aut", "des (0,1,2)\n(0,\"PUT !1\",1)\n"),
    ]);
    let plain = run(folder.path(), "compare @x.aut @y.aut --out @why.mcf");
    assert!(plain.code == 1 && !plain.stderr.contains("warning"), "{}", plain.stderr);
    assert_eq!(run(folder.path(), "check @x.aut @why.mcf").code, 0);
    let other = run(folder.path(), "check @y.aut @why.mcf");
    assert!(
        other.code == 1 && other.stderr.contains("no label of the transition system"),
        "{}",
        other.stderr
    );
    // A formula cannot contain a label of another language.
    let foreign = run(folder.path(), "compare @p.aut @y.aut --out @why.mcf");
    assert!(
        foreign.code == 1 && foreign.stderr.contains("`PUT !1` cannot be written as an action"),
        "{}",
        foreign.stderr
    );
}

/// `i` is an ordinary label, unless an option makes it internal.
#[test]
fn the_internal_action_of_other_tools() {
    let folder = folder(&[
        ("i.aut", "des (0,2,3)\n(0,i,1)\n(1,\"work\",2)\n"),
        ("plain.aut", "des (0,1,2)\n(0,\"work\",1)\n"),
        ("skip.aut", "des (0,2,3)\n(0,\"skip\",1)\n(1,\"work\",2)\n"),
        ("m.mcrl2", "act work; init tau . work . delta;\n"),
    ]);
    let visible = run(folder.path(), "compare @i.aut @plain.aut -e branching");
    assert!(visible.code == 1 && visible.stderr.contains("`--internal i`"), "{}", visible.stderr);
    assert!(
        !run(folder.path(), "compare @i.aut @plain.aut").stderr.contains("--internal"),
        "strong bisimulation counts internal steps"
    );
    for command in [
        "compare @i.aut @plain.aut -e branching --internal i",
        "compare @i.aut @skip.aut --internal i,skip",
        "compare @i.aut @m.mcrl2 --internal i",
        "check @i.aut --formula <tau.work>true --internal i",
    ] {
        let outcome = run(folder.path(), command);
        assert!(
            outcome.code == 0 && !outcome.stderr.contains("note"),
            "{command}: {} {}",
            outcome.json,
            outcome.stderr
        );
    }
    let reduced = run(folder.path(), "reduce @i.aut -e branching --internal i");
    assert_eq!(
        (&reduced.json["reduced"]["states"], &reduced.json["reduced"]["transitions"]),
        (&2.into(), &1.into())
    );
    let info = run(folder.path(), "info @i.aut --internal i");
    assert_eq!((&info.json["transitions"], &info.json["taus"]), (&2.into(), &1.into()));
}

/// Files of systems with chance are read as those without.
#[test]
fn the_internal_action_and_orders_with_chance() {
    let folder = folder(&[
        (
            "i.aut",
            "des (0,5,4)\n(0,\"a\",1)\n(1,\"i\",2)\n(2,\"i\",1)\n(1,\"b|c\",3)\n(2,\"c|b\",3)\n",
        ),
        ("tau.aut", "des (0,3,3)\n(0,\"a\",1)\n(1,\"tau\",1)\n(1,\"c|b\",2)\n"),
    ]);
    for more in ["-e strong", "-e probabilistic"] {
        let compared =
            |more: String| run(folder.path(), &format!("compare @i.aut @tau.aut {more}"));
        assert_eq!(compared(more.into()).code, 1, "{more}");
        assert_eq!(compared(format!("{more} --internal i")).code, 0, "{more}");
        let reduced = run(folder.path(), &format!("reduce @i.aut {more}")).json["reduced"].clone();
        assert_eq!((&reduced["states"], &reduced["transitions"]), (&3.into(), &3.into()), "{more}");
    }
}

/// Comparisons of long chains end; the crate's tests count their work.
#[test]
fn long_chains() {
    let folder = folder(&[("a.aut", &chain(20_000, "go")), ("b.aut", &chain(20_000, "end"))]);
    for how in ["-e strong", "-e branching", "-e weak", "-p impossible-futures"] {
        assert_eq!(run(folder.path(), &format!("compare @a.aut @a.aut {how}")).code, 0, "{how}");
        let differ = run(folder.path(), &format!("compare @a.aut @b.aut {how}"));
        assert_eq!(
            (differ.code, &differ.json["difference"]["kind"]),
            (1, &"formula".into()),
            "{how}: {}",
            differ.stderr
        );
    }
    assert_eq!(run(folder.path(), "reduce @a.aut -e weak").json["reduced"]["states"], 20_001);
}

/// Actions with arguments as CADP writes them, and multi-actions.
#[test]
fn labels_are_found_by_their_actions() {
    let folder =
        folder(&[("a.aut", "des (0,3,4)\n(0,\"PUT !2\",1)\n(1,\"PUT !1\",2)\n(2,\"b|a(1)\",3)\n")]);
    let find = |action: &str| {
        let path = folder.path().join("a.aut").display().to_string();
        let words = ["explore", &path, "--action", action].map(String::from);
        let found = mu_check(&words);
        found.json["ways"][0]["steps"].as_array().map(Vec::len)
    };
    for (action, length) in [
        ("PUT", Some(1)),
        ("PUT !1", Some(2)),
        ("PUT !3", None),
        ("a", Some(3)),
        ("a(1)|b", Some(3)),
        ("a|b", Some(3)),
        ("a|a", None),
        ("b|c", None),
    ] {
        assert_eq!(find(action), length, "{action}");
    }
}

/// A transition from an unreachable state does not decide if a state is a termination.
#[test]
fn terminations_are_reached_by_their_actions() {
    let folder = folder(&[
        ("unreachable.aut", "des (0,2,3)\n(0,\"Terminate\",1)\n(2,\"x\",1)\n"),
        ("multi.aut", "des (0,1,2)\n(0,\"a|done !1\",1)\n"),
    ]);
    assert_eq!(run(folder.path(), "explore @unreachable.aut --deadlock").code, 0);
    let counts = run(folder.path(), "explore @unreachable.aut").json["ends"].clone();
    assert_eq!(counts["terminated"], 1, "{counts}");
    assert_eq!(run(folder.path(), "explore @multi.aut --deadlock").code, 1);
    assert_eq!(run(folder.path(), "explore @multi.aut --deadlock --terminal done").code, 0);
}

/// Multi-actions with the same actions in any order are one label; `tau` as a new name hides.
#[test]
fn relabelled_multi_actions_have_no_order() {
    let folder = folder(&[
        ("two.aut", "des (0,2,3)\n(0,\"a|b\",1)\n(0,\"b|a\",2)\n"),
        ("zed.aut", "des (0,2,3)\n(0,\"a|b\",1)\n(0,\"b|z\",2)\n"),
        ("b.aut", "des (0,1,2)\n(0,\"b\",1)\n"),
        ("ab.aut", "des (0,1,2)\n(0,\"a|b\",1)\n"),
        ("m.mcrl2", "act a, b;\ninit a.b.delta;\n"),
        ("choice.mcrl2", "act a, b, c;\ninit ((a + c + b) . c) . delta;\n"),
    ]);
    let folder = folder.path();
    let info = run(folder, "info @two.aut").json;
    assert_eq!((&info["deterministic"], &info["labels"]), (&false.into(), &1.into()));
    assert_eq!(run(folder, "reduce @two.aut").json["reduced"]["transitions"], 1);
    assert_eq!(run(folder, "reduce @zed.aut --rename a=z").json["reduced"]["transitions"], 1);
    assert_eq!(run(folder, "compare @ab.aut @b.aut --rename a=tau").code, 0);
    assert_eq!(run(folder, "compare @ab.aut @b.aut --hide a").code, 0);
    assert_eq!(run(folder, "check @m.mcrl2 -f <tau><b>true --rename a=tau").code, 0);
    // Transitions that become equal are one.
    for options in ["--rename b=a", "--hide a,b"] {
        let info = run(folder, &format!("info @choice.mcrl2 {options}")).json;
        assert_eq!((&info["deterministic"], &info["transitions"]), (&true.into(), &3.into()));
        let explored = run(folder, &format!("explore @choice.mcrl2 --out @out.aut {options}")).json;
        assert_eq!(explored["transitions"], 3, "{options}");
        let written = std::fs::read_to_string(folder.join("out.aut")).unwrap();
        assert_eq!(written.lines().count(), 4, "{written}");
    }
}
