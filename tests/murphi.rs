//! Protocols in Murphi through the whole program: exploration, formulas, translation, formatting,
//! names in editors.

use crate::language_names::PlaceRequests;
use crate::language_server::Client;
use crate::support::mu_check;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One owner of a line among three nodes.
const OWNERS: &str = "const NODES: 3; -- how many
type
  Node: scalarset(NODES);
  State: enum {Invalid, Exclusive};
var
  state: array [Node] of State;
  owner: Node;
startstate begin
  for n: Node do state[n] := Invalid; end;
  undefine owner;
end;
ruleset n: Node do
  rule \"acquire\" state[n] = Invalid & isundefined(owner) ==>
  begin state[n] := Exclusive; owner := n; end;
  rule \"release\" state[n] = Exclusive ==>
  begin state[n] := Invalid; undefine owner; end;
end;
invariant \"one owner\" forall a: Node do forall b: Node do
  state[a] = Exclusive & state[b] = Exclusive -> a = b end end;
";

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Translates a model and returns the number of states of the translation without its first one,
/// and the actions of its transitions.
fn translate(text: &str) -> (u64, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "model.m", text);
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(["expand", model.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let translation = folder.path().join("model.mcrl2");
    std::fs::write(&translation, output.stdout).unwrap();
    let system = folder.path().join("model.aut");
    let outcome =
        mu_check(&["explore", translation.to_str().unwrap(), "--out", system.to_str().unwrap()]);
    assert!(outcome.code < 2, "{}", outcome.stderr);
    let text = std::fs::read_to_string(system).unwrap();
    let mut actions: Vec<String> = text
        .lines()
        .skip(1)
        .filter_map(|l| l.split('"').nth(1))
        .map(|l| l.split('(').next().unwrap_or(l).to_string())
        .collect();
    actions.sort();
    actions.dedup();
    (outcome.json["states"].as_u64().unwrap() - 1, actions)
}

/// Models with known numbers of states, each for other constructs.
#[test]
fn translations_have_the_states_of_the_model() {
    for (text, states, actions) in [
        (OWNERS.to_string(), 4, "acquire release startstate"),
        (OWNERS.replace("& isundefined(owner)", ""), 19, "acquire release startstate violated_one_owner"),
        // Recursion, `var` parameters, results of any type, aliases.
        (
            "type R: record a, b: 0..20 end; var x: 0..20; r: R;
             function sum(n: 0..20): 0..20; begin
               if n = 0 then return 0; end; return n + sum(n - 1); end;
             procedure swap(var a: 0..20; var b: 0..20); var c: 0..20; begin
               c := a; a := b; b := c; end;
             function pair(a: 0..20; b: 0..20): R; var p: R; begin
               p.a := a; p.b := b; return p; end;
             startstate x := 0; r := pair(0, 1); end;
             rule \"sum\" x < 5 ==> alias y: x; s: sum(x) do y := y + 1; r.a := s; end; end;
             rule \"swap\" begin swap(r.a, r.b); end;"
                .into(),
            26,
            "startstate sum_2 swap",
        ),
        // Names of the translation itself and words of mCRL2.
        (
            "type go: enum {t1, Start}; var x: go; startstate x := t1; end;
             rule \"go\" begin x := Start; end; rule \"t1\" begin x := t1; end; rule \"Process\" begin end;
             rule \"end\" begin end; ruleset s: go do rule \"go\" begin x := s; end; end;"
                .into(),
            2,
            "Process end_2 go startstate t1",
        ),
        // Undefined parts of arrays and records are compared, not read.
        (
            "var a: array [boolean] of boolean; c: boolean;
             startstate a[true] := true; c := true; end;
             rule \"flip\" a = a & c ==> begin c := false; end;
             rule \"keep\" !c ==> begin if a != a then c := false; else c := true; end; end;"
                .into(),
            2,
            "flip keep startstate",
        ),
        // Multisets: sorted, full, counted, removed.
        (
            "type M: record v: 0..1 end; var net: multiset [3] of M;
             startstate undefine net; end;
             ruleset v: 0..1 do rule \"send\" multisetcount(i: net, true) < 3 ==>
               var m: M; begin m.v := v; multisetadd(m, net); end; end;
             choose i: net do rule \"receive\" net[i].v = 1 ==> multisetremove(i, net); end; end;
             rule \"flush\" begin multisetremovepred(i: net, net[i].v = 0); end;
             rule \"overflow\" multisetcount(i: net, net[i].v = 0) = 3 ==>
               var m: M; begin m.v := 0; multisetadd(m, net); end;"
                .into(),
            11,
            "failed_overflow flush receive send startstate",
        ),
        // Unions, loops in both directions, `while`, `switch`, `assume`, `cover`, `liveness`.
        (
            "type P: scalarset(2); U: union {enum {Home}, P}; var u: U; n: -9..9; a: array [U] of 0..2;
             ruleset s: U do startstate \"begin\" u := s; n := 0; for i: U do a[i] := 0; end; end; end;
             rule \"move\" switch u case Home: for p: P do a[p] := 1; end; else a[u] := 2; end; end;
             rule \"count\" begin n := 0; for i := 3 to -3 by -2 do n := n + i; end;
               while n < 3 do n := n + 1; end; assume a[Home] = 0; end;
             cover n = 3 \"three\"; liveness \"home\" u = Home; assume n != 1;"
                .into(),
            12,
            "begin count covered_three live_home move",
        ),
        // Errors: an undefined operand, an index, a range, a division, `assert`, `error`.
        (
            "var x: 0..1; y: 0..1; a: array [0..1] of boolean;
             startstate x := 0; end;
             rule \"undefined\" y = 1 ==> end;
             rule \"index\" begin a[x + 2] := true; end;
             rule \"range\" begin x := x + 2; end;
             rule \"division\" begin x := 1 / x; end;
             rule \"assert\" assert false; end;
             rule \"error\" error \"no\"; end;
             rule \"undefined copy\" begin x := y; end;"
                .into(),
            3,
            "failed_assert failed_division failed_error_2 failed_index failed_range failed_undefined startstate undefined_copy",
        ),
        // Errors of assumptions, and of a guard although a rule with a lower number is enabled. An
        // assumption that is false for one element discards, whatever it is for the others.
        (
            "type N: 0..1; var x: 0..3; y: 0..1; a: array [N] of 0..3; m: multiset [2] of N;
             startstate x := 0; a[1] := 2; undefine m; end;
             rule 1 \"inc\" x < 3 ==> begin x := x + 1; end;
             rule 2 \"later\" y = 1 ==> begin x := 0; end;
             rule 3 \"last\" begin x := 0; end;
             assume x < 3 | y = 1; ruleset i: N do assume x < 2 | a[i] > x; end;
             choose i: m do assume m[i] = 1; end;"
                .into(),
            3,
            "failed_later inc startstate",
        ),
        // An element is removed once.
        (
            "var net: multiset [2] of 0..1; x: 0..1; n: 0..3;
             startstate undefine net; undefine x; n := 0; end;
             rule \"send\" n = 0 ==> var m: 0..1; begin m := 1; multisetadd(m, net); n := 1; end;
             choose i: net do rule \"receive\" n = 1 ==> multisetremove(i, net); n := 2; end; end;
             choose i: net do rule \"twice\" n = 1 ==>
               multisetremove(i, net); multisetremove(i, net); n := 3; end; end;"
                .into(),
            4,
            "failed_twice receive send startstate",
        ),
        // A position selects in every multiset of its type; what has no element has no value.
        (
            "var a, b: multiset [2] of 0..3; done: boolean;
             startstate var e: 0..3; begin e := 1; multisetadd(e, a); multisetadd(e, b);
               done := false; end;
             choose i: a do
               rule \"write\" !done ==> begin b[i] := 2; done := true; end;
               rule \"remove\" !done ==> begin multisetremove(i, a); a[i] := 2; done := true; end;
               rule \"take\" !done ==> begin multisetremove(i, a); done := true; end;
             end;
             invariant \"kept\" multisetcount(i: a, a[i] = 2) = 0;"
                .into(),
            3,
            "remove startstate take write",
        ),
        // The place of an assignment is evaluated before a function that assumes.
        (
            "var a: array [0..1] of boolean; k: 0..9;
             function f(): boolean; begin assume false; return true; end;
             startstate a[0] := false; a[1] := false; k := 7; end;
             rule \"index\" begin a[k] := f(); end;"
                .into(),
            2,
            "failed_index startstate",
        ),
        (
            "type N: 0..1; var x: 0..3; y: 0..1; startstate x := 0; end;
             rule \"inc\" x < 3 ==> begin x := x + 1; end; assume x < 2 | y = 1;"
                .into(),
            3,
            "failed_inc inc startstate",
        ),
    ] {
        let (found, labels) = translate(&text);
        let expected: Vec<&str> = actions.split(' ').collect();
        let all: Vec<&str> = labels.iter().map(String::as_str).collect();
        assert_eq!((found, all), (states, expected), "{text}");
    }
}

/// Commands take a model without a translation by hand.
#[test]
fn commands_take_models() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "owners.m", OWNERS);
    let path = model.to_str().unwrap();
    let of = |arguments: &[&str]| mu_check(arguments);
    let explored = of(&["explore", path, "-D", "NODES=5"]);
    assert!(explored.code < 2, "{}", explored.stderr);
    let wrong = of(&["explore", path, "-D", "NODE=5"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("NODES"), "{}", wrong.stderr);
    let broken = file(folder.path(), "broken.m", &OWNERS.replace("owner := n", "owner := 1"));
    let wrong = of(&["explore", broken.to_str().unwrap()]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("broken.m:14:32: error: a value of integer"),
        "{}",
        wrong.stderr
    );
    let other = file(folder.path(), "other.m", "% a script\nx = zeros(3);\n");
    let wrong = of(&["explore", other.to_str().unwrap()]);
    assert!(wrong.code == 2 && wrong.stderr.contains("MATLAB"), "{}", wrong.stderr);
    // Older models have comments in Latin-1.
    let mut latin = b"-- 20 \xb0C\n".to_vec();
    latin.extend_from_slice(OWNERS.as_bytes());
    let latin_file = folder.path().join("latin.m");
    std::fs::write(&latin_file, latin).unwrap();
    assert!(of(&["explore", latin_file.to_str().unwrap()]).code < 2);
    // Formatting: once it changes the file, then it does not.
    std::fs::write(&model, OWNERS.replace("\n  ", "\n")).unwrap();
    let first = of(&["fmt", path]);
    assert_eq!((first.code, first.json["changed"].as_array().map(Vec::len)), (0, Some(1)));
    assert_eq!(of(&["fmt", "--check", path]).code, 0);
    let formatted = std::fs::read_to_string(&model).unwrap();
    assert!(
        formatted
            .contains("  rule \"acquire\" state[n] = Invalid & isundefined(owner) ==>\n  begin")
    );
    assert_eq!(of(&["fmt", other.to_str().unwrap()]).code, 2);
}

#[test]
fn names_in_an_editor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.m");
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, OWNERS);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let mut requests = PlaceRequests { client: &mut client, path: &path, text: OWNERS };
    let found = requests.hover("NODES)");
    assert!(found.contains("NODES: 3") && found.contains("how many"), "{found}");
    assert!(requests.hover("Exclusive; owner").contains("Exclusive: State"));
    assert_eq!(requests.lines("definition", "owner := n"), [6]);
    assert_eq!(requests.lines("references", "owner := n"), [6, 9, 12, 13, 15]);
    // The variable of the loop is another than that of the ruleset.
    assert_eq!(requests.lines("references", "n] := Invalid; end"), [8, 8]);
    let found = requests.completion("owner := n");
    assert!(["n", "state", "Exclusive", "ruleset"].iter().all(|w| found.iter().any(|f| f == w)));
    let found = requests.outline();
    assert!(found.contains(&"rule \"release\"".to_string()), "{found:?}");
    assert_eq!(
        requests.rename_text("state[a]", "line"),
        OWNERS.replace("state[", "line[").replace("state:", "line:")
    );
    for (mark, new, message) in [
        ("owner := n", "rule", "would have an error"),
        ("owner := n", "state", "would have an error"),
        ("n] = Exclusive ==>", "owner", "would"),
    ] {
        let found = requests.rename(mark, new);
        assert!(found.as_ref().is_err_and(|m| m.contains(message)), "{mark} -> {new}: {found:?}");
    }
    let formatted = client.ask(
        "textDocument/formatting",
        serde_json::json!({ "textDocument": { "uri": crate::language_server::uri(&path) },
            "options": { "tabSize": 2, "insertSpaces": true } }),
    );
    // The text is formatted already.
    assert_eq!(formatted["result"].as_array().map(Vec::len), Some(0), "{formatted}");
    client.end();
}

/// Conditions on variables in formulas, together with rules.
#[test]
fn formulas_over_variables() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "owners.m", OWNERS);
    let check = |formulas: &[&str]| {
        let mut arguments = vec!["check", model.to_str().unwrap()];
        formulas.iter().for_each(|f| arguments.extend(["-f", f]));
        mu_check(&arguments)
    };
    for (formula, expected) in [
        ("forall n: Node. [true* . acquire(n)] val(owner = n)", true),
        ("forall n: Node. [true* . acquire(n)] val(owner != n)", false),
        ("[true*] val(exists n: Node do state[n] = Exclusive end -> !isundefined(owner))", true),
        // The only deadlock would be a state without rules: conditions are no steps.
        ("[true*] (val(isundefined(owner)) => <true> true)", true),
        (
            "[true*] ([true] false || val(NODES = 3 & state[owner] = state[owner]) || <acquire(Node_1)> true)",
            true,
        ),
        ("mu X. [true] X || val(state[owner] = Exclusive)", true),
        ("mu X. [!acquire(Node_1)] X", false),
        ("mu X. [true] X", false),
        ("<true*> (exists n: Node. val(n = owner) && <release(n)> true)", true),
        ("<true*> (exists n: Node. val(n = owner) && <acquire(n)> true)", false),
        // An undefined variable makes a condition false.
        ("val(owner = owner)", false),
        ("!val(owner = owner)", true),
        ("nu X(n: Node = Node_1). [acquire(n)] val(owner = n) && [release(n)] X(n)", true),
        // `val` over data only is as before.
        ("forall n: Node. val(n == Node_1) => [acquire(n)] val(owner = Node_1)", true),
        ("val(1 + 1 == 2)", true),
    ] {
        let outcome = check(&[formula]);
        let verdict = &outcome.json["results"][0]["verdict"];
        let expected = if expected { "true" } else { "false" };
        assert_eq!(*verdict, expected, "{formula}: {} {}", outcome.json, outcome.stderr);
        // Another formula with conditions changes nothing.
        let both = check(&[formula, "[true*] val(isundefined(owner) | state[owner] = Exclusive)"]);
        assert_eq!(both.json["results"][0]["verdict"], expected, "{formula}: {}", both.json);
        assert_eq!(both.json["results"][1]["verdict"], "true", "{}", both.json);
    }
    for (formula, message) in [
        ("[val(isundefined(owner)) && true] false", "in an action formula"),
        ("forall n: Nat. val(owner = n)", "a type of the model"),
        ("val(owner = Node_4)", "Node_4"),
        ("val(state[owner] = )", "expected"),
        ("val(ownr = Node_1)", "ownr"),
        ("[true*] val(forall n: Node do stat[n] != Exclusive end)", "stat"),
        ("val(isundefined(ownr))", "ownr"),
        ("[true*] val(10 / (isundefined(owner) ? 0 : 1) = 1)", "division by zero"),
    ] {
        let outcome = check(&[formula]);
        assert!(
            outcome.code == 2 && outcome.stderr.contains(message),
            "{formula}: {}",
            outcome.stderr
        );
    }
}

/// A formula is about every start state, with and without conditions on variables.
#[test]
fn formulas_hold_in_every_start_state() {
    let folder = tempfile::tempdir().unwrap();
    let text = "var x: 0..3;\n\
        ruleset v: 0..1 do startstate begin x := v; end end;\n\
        rule \"flip\" x < 2 ==> begin x := 1 - x; end;\n\
        rule \"end\" x = 3 ==> begin x := 0; end;\n";
    let model = file(folder.path(), "starts.m", text);
    for (formula, expected) in [
        ("val(x = 3)", false),
        ("!val(x = 3)", true),
        ("val(x = 0)", false),
        ("!val(x = 0)", false),
        ("val(x = 0) || val(x = 1)", true),
        ("val(x = 0) && !val(x = 0)", false),
        ("mu X. val(x = 3) || <true> X", false),
        ("<true*> val(x = 3)", false),
        ("<flip> true", true),
        ("[true* . flip] <flip> true", true),
        ("nu X. <true> X", true),
    ] {
        for engine in ["explicit", "symbolic"] {
            let arguments = ["check", model.to_str().unwrap(), "-f", formula, "--engine", engine];
            let outcome = mu_check(&arguments);
            let expected = if expected { "true" } else { "false" };
            let verdict = &outcome.json["results"][0]["verdict"];
            assert_eq!(*verdict, expected, "{formula} {engine}: {}", outcome.stderr);
        }
    }
}

/// A rule that the constants of the model switch off is an action without transitions.
#[test]
fn rules_without_instances_are_actions() {
    let folder = tempfile::tempdir().unwrap();
    let text = "const FAULT: 0;\ntype Value: 0..1;\nvar x: Value;\n\
        startstate begin x := 0; end;\n\
        rule \"go\" true ==> begin x := 1 - x; end;\n\
        ruleset v: Value do rule \"lose\" FAULT = 1 ==> begin x := v; end end;\n";
    let model = file(folder.path(), "faults.m", text);
    let formula = "forall v: Value. [true* . lose(v)] false";
    for (value, expected) in [(0, "true"), (1, "false")] {
        let define = format!("FAULT={value}");
        let outcome = mu_check(&["check", model.to_str().unwrap(), "-f", formula, "-D", &define]);
        let verdict = &outcome.json["results"][0]["verdict"];
        assert_eq!(*verdict, expected, "{define}: {}", outcome.stderr);
    }
}

/// Evidence of a formula with conditions is a path of the model.
#[test]
fn evidence_with_conditions_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "owners.m", OWNERS);
    let (model, trace) = (model.to_str().unwrap(), folder.path().join("trace.json"));
    let trace = trace.to_str().unwrap();
    let formula = "[true*] val(isundefined(owner))";
    let outcome = mu_check(&["check", model, "-f", formula, "--evidence", trace]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(std::fs::read_to_string(trace).unwrap().contains("not_val_1"));
    let script = file(folder.path(), "script.txt", "quit\n");
    let replayed =
        mu_check(&["simulate", model, "--trace", trace, "--script", script.to_str().unwrap()]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
}

/// The formatter keeps conditions on variables of a model that it does not know.
/// A slot of a multiset and its value have one name.
#[test]
fn evidence_of_multisets_follows_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = "var m: multiset[2] of 0..1; x: 0..2; t: 0..1;\n\
        startstate begin t := 0; multisetadd(t, m); x := 0; end;\n\
        rule \"keep\" x = 0 ==> begin x := 1; end;\n\
        rule \"drop\" x = 0 ==> begin x := 1; multisetremovepred(i: m, true); end;\n\
        rule \"go\" x = 1 ==> begin x := 2; end;\n\
        invariant \"used\" x = 2 -> multisetcount(i: m, true) = 1;\n";
    let model = file(folder.path(), "slots.m", text);
    let (model, trace) = (model.to_str().unwrap(), folder.path().join("trace.json"));
    let trace = trace.to_str().unwrap();
    let outcome = mu_check(&["explore", model, "--evidence", trace]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let written = std::fs::read_to_string(trace).unwrap();
    assert!(written.contains("drop") && !written.contains("keep"), "{written}");
}

#[test]
fn formulas_with_conditions_are_formatted() {
    let folder = tempfile::tempdir().unwrap();
    let text = "forall n:Node.[true*.acquire(n)] val(owner = n & !isundefined(owner))\n";
    let formula = file(folder.path(), "owner.mcf", text);
    let outcome = mu_check(&["fmt", formula.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let formatted = std::fs::read_to_string(&formula).unwrap();
    assert!(formatted.contains("val(owner = n & !isundefined(owner))"), "{formatted}");
}

/// Types that share members share a sort; quantifiers range over the type, with and without
/// conditions on variables.
#[test]
fn unions_and_their_parts_are_sorts() {
    let folder = tempfile::tempdir().unwrap();
    let text = "type N: scalarset(3); E: enum {Aa, Bb}; U: union {N, E}; V: union {N, enum {Cc}};\n\
        B: boolean; R: 2..3;\n\
        var u: U; r: R; b: B;\n\
        startstate begin undefine u; r := 2; b := true; end;\n\
        ruleset n: N do rule \"set\" true ==> begin u := n; end; end;\n\
        ruleset e: E do rule \"put\" true ==> begin u := e; end; end;\n\
        ruleset x: U do rule \"any\" true ==> begin u := x; end; end;\n\
        ruleset x: R do rule \"range\" true ==> begin r := x; end; end;\n";
    let model = file(folder.path(), "unions.m", text);
    for (formula, expected) in [
        ("forall n: N. <set(n)>true", true),
        ("forall n: N. [set(n)]val(u = n)", true),
        ("forall e: E. <put(e)>true && <any(e)>true", true),
        ("forall x: U. <any(x)>val(u = x)", true),
        ("forall v: V. <set(v)>true", false),
        ("forall x: R. <range(x)>true", true),
        ("exists x: R. [range(x)]false", false),
        ("exists x: R. [range(x)]false || val(r = 3)", false),
        ("exists n: N. [set(n)]false", false),
        ("exists x: U. [set(x)]false", true),
        ("[set(Aa)]false", true),
        ("forall c: B. val(c) => val(b = c)", true),
        ("nu X(v: R = 5). val(v < 9 & r >= 2)", false),
        ("nu X(v: R = 5). !val(v < 9 & r >= 2)", true),
        ("nu X(v: R = 2). val(v < 4 & r >= 2) && [range(2)]X(v + 1)", false),
        ("exists v: R. val(v > 100)", false),
        ("forall v: R. val(v <= 3)", true),
        // Quantifiers of formulas with numbers have the same values.
        ("inf n: N. [set(n)]val(u = n)", true),
        ("inf e: E. val(e = Aa || e = Bb)", true),
        ("inf n: N. <any(n)>val(u = n)", true),
        ("sup e: E. <any(e)>val(u != Aa & u != Bb)", false),
        ("sup e: E. val(e != Aa && e != Bb)", false),
        ("sup x: R. <range(x)>val(r = x)", true),
        ("true && -(inf e: E. -(<put(e)>true))", true),
    ] {
        let outcome = mu_check(&["check", model.to_str().unwrap(), "-f", formula]);
        let verdict = &outcome.json["results"][0]["verdict"];
        let expected = if expected { "true" } else { "false" };
        assert_eq!(*verdict, expected, "{formula}: {}", outcome.stderr);
    }
}

/// An array of a scalarset is enough for symmetries.
#[test]
fn symmetries_of_a_single_array() {
    let folder = tempfile::tempdir().unwrap();
    let text = "type N: scalarset(4); var b: array [N] of 0..2;\n\
        startstate begin for n: N do b[n] := 0; end; end;\n\
        ruleset n: N do rule \"t\" true ==> begin b[n] := b[n] = 2 ? 0 : b[n] + 1; end; end;\n";
    let model = file(folder.path(), "array.m", text);
    let outcome = mu_check(&["check", model.to_str().unwrap(), "-f", "[true*]<true>true"]);
    let result = &outcome.json["results"][0];
    assert_eq!(result["verdict"], "true", "{}", outcome.stderr);
    assert_eq!(result["symmetries"]["order"], 24, "{}", outcome.json);
}

/// Verdicts with and without symmetries of scalarsets, and by other engines.
#[test]
fn checks_use_scalarsets_as_symmetries() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "owners.m", &OWNERS.replace("NODES: 3", "NODES: 4"));
    let path = model.to_str().unwrap();
    for (formula, expected) in [
        ("[true* . error] false", true),
        ("[true*] val(forall n: Node do state[n] = Invalid | owner = n end)", true),
        ("forall n: Node. [true* . acquire(n)] val(owner = n)", true),
        ("[true* . acquire(Node_2)] val(owner = Node_1)", false),
    ] {
        let mut states = Vec::new();
        let mut orders = Vec::new();
        for more in [&[][..], &["--without", "symmetry"], &["--engine", "symbolic"]] {
            let arguments = [&["check", path, "-f", formula][..], more].concat();
            let outcome = mu_check(&arguments);
            let result = &outcome.json["results"][0];
            let expected = if expected { "true" } else { "false" };
            assert_eq!(result["verdict"], expected, "{formula} {more:?}: {}", outcome.stderr);
            states.push(result["states"].clone());
            orders.push(result["symmetries"]["order"].as_u64());
        }
        assert_eq!(states[0], states[1], "{formula}");
        // A formula that names nodes keeps those exchanges that fix them.
        let order = if formula.contains("Node_2") { 2 } else { 24 };
        assert_eq!(orders[..2], [Some(order), Some(1)], "{formula}");
    }
}

/// A machine that fails is not judged: its failure ends executions that the model may forbid.
#[test]
fn a_failing_machine_conforms_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text = "type Proc: scalarset(2); Address: 0..0; Value: 0..1;\n\
        var mem: array [Address] of Value;\n\
        startstate begin mem[0] := 0; end;\n\
        ruleset p: Proc; a: Address; v: Value do\n\
        rule \"load\" mem[a] = v ==> begin assert \"zero\" CLAIM; end;\n\
        rule \"store\" v != 0 ==> begin mem[a] := v; end;\n\
        end;\n";
    let names = "initial 0;\nload load(p, a, v);\nstore store(p, a, v);\n";
    let interface = file(folder.path(), "machine.interface", names);
    for (claim, code) in [("true", 0), ("v = 0", 2)] {
        let model = file(folder.path(), "machine.m", &text.replace("CLAIM", claim));
        let (model, interface) = (model.to_str().unwrap(), interface.to_str().unwrap());
        let arguments = ["conform", model, "--interface", interface, "--against", "sc"];
        for more in [&["--operations", "2"][..], &["--operations", "any"]] {
            let outcome = mu_check(&[&arguments[..], more].concat());
            if code == 2 {
                assert!(outcome.stderr.contains("it reaches `error`"), "{}", outcome.stderr);
            }
            assert!(outcome.code == code || more[1] == "any" && code == 0, "{}", outcome.stderr);
        }
    }
}

/// Each cache protocol of the project conforms to sequential consistency, and its seeded faults do
/// not. With one address a copy that stays too long cannot be seen: results/murphi.md has the
/// faults with two addresses.
#[test]
fn cache_protocols_and_their_faults() {
    const UNSEEN: &[&str] = &[
        "an invalidated copy stays",
        "a reader is not registered",
        "the previous owner is not registered as a reader",
        "a copy stays when another cache takes it",
        "a reader among others gets an exclusive copy",
    ];
    for name in ["msi_snooping", "mesi_snooping", "msi_directory", "mesi_directory"] {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/murphi");
        let of = |ending: &str| specs.join(format!("{name}.{ending}")).display().to_string();
        let (model, interface, faults) = (of("m"), of("interface"), of("faults"));
        let arguments = ["conform", &model, "--interface", &interface, "--against", "sc"];
        let arguments = [&arguments[..], &["-D", "ADDRESSES=1", "--fault", &faults]].concat();
        let outcome = mu_check(&arguments);
        assert!(outcome.code < 2, "{name}: {} {}", outcome.json, outcome.stderr);
        assert_eq!(outcome.json["models"][0]["verdict"], "true", "{name}: {}", outcome.json);
        let faults = outcome.json["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 10, "{name}");
        for fault in faults {
            let seen = !UNSEEN.contains(&fault["name"].as_str().unwrap());
            let found = fault["operations"].as_u64().is_some_and(|k| k <= 2);
            assert_eq!(found, seen, "{name}: {fault}");
        }
    }
}

/// A failure of an instance is one of the model for every size; without one, a proof decides all
/// claims but deadlocks and liveness.
#[test]
fn scalarsets_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(folder.path(), "good.m", OWNERS);
    let bad = OWNERS.replace("& isundefined(owner)", "& (isundefined(owner) | owner != n)");
    let bad = file(folder.path(), "bad.m", &bad);
    let live = file(folder.path(), "live.m", &format!("{OWNERS}liveness isundefined(owner);\n"));
    let off = &["--deadlocks", "off"][..];
    for (model, more, code, verdict, proved) in [
        (&good, &[][..], 3, "unknown", true),
        (&good, off, 0, "ok", true),
        (&live, off, 3, "unknown", true),
        (&bad, off, 1, "invariant", false),
    ] {
        let words = ["explore", model.to_str().unwrap(), "-D", "NODES=any"];
        let outcome = mu_check(&[&words[..], more].concat());
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        assert_eq!(outcome.json["verdict"], verdict);
        assert_eq!(outcome.json["instance"]["NODES"], if code == 1 { 2 } else { 3 });
        assert_eq!(outcome.json["reason"].is_string(), code == 3);
        assert_eq!(outcome.json["proof"]["cubes"].is_number(), proved, "{}", outcome.json);
        let samples = outcome.json["proof"]["samples"]["samples"].as_u64();
        assert_eq!(samples > Some(0), proved, "{}", outcome.json);
    }
    let good = good.to_str().unwrap();
    let none = ["--deadlocks", "off", "--check-samples", "0"];
    let outcome = mu_check(&[&["explore", good, "-D", "NODES=any"][..], &none].concat());
    let unchecked = &outcome.json["proof"]["samples"]["unchecked"];
    assert!(outcome.code == 0 && unchecked.is_string(), "{}", outcome.json);
    let outcome = mu_check(&["explore", good, "--check-samples", "5"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("no effect"), "{}", outcome.stderr);
}

/// A failure that needs more elements than the instances that are searched first.
#[test]
fn failures_of_large_instances_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = "const NODES: 3; type Node: scalarset(NODES);
var marked: array [Node] of boolean; stage: 0..9;
startstate begin for n: Node do marked[n] := false end; stage := 0; end;
ruleset n: Node do
 rule \"mark\" !marked[n] & stage < 8 ==> marked[n] := true; stage := stage + 1; end;
end;
invariant \"few\" stage < 7;";
    let model = file(folder.path(), "marks.m", text);
    let evidence = folder.path().join("marks.json");
    let words = ["explore", model.to_str().unwrap(), "-D", "NODES=any", "--deadlocks", "off"];
    let more = ["--evidence", evidence.to_str().unwrap()];
    let outcome = mu_check(&[&words[..], &more].concat());
    assert_eq!((outcome.code, &outcome.json["verdict"]), (1, &"invariant".into()));
    assert_eq!(outcome.json["instance"]["NODES"], 7, "{}", outcome.json);
    let run: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(evidence).unwrap()).unwrap();
    assert!(run["steps"].as_array().unwrap().len() >= 7, "{run}");
}

/// The protocols of the repository are right for every number of caches; a fault of German's
/// protocol is found in an instance.
#[test]
fn cache_protocols_are_proved_for_every_number_of_caches() {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs/murphi");
    for name in ["msi_snooping", "mesi_snooping", "msi_directory", "mesi_directory"] {
        let model = specs.join(format!("{name}.m")).display().to_string();
        let any = ["-D", "CACHES=any", "-D", "ADDRESSES=1", "--deadlocks", "off"];
        let outcome = mu_check(&[&["explore", &model][..], &any].concat());
        assert_eq!(outcome.code, 0, "{name}: {} {}", outcome.json, outcome.stderr);
        assert!(outcome.json["proof"]["cubes"].as_u64() > Some(0), "{name}: {}", outcome.json);
    }
    let german = specs.join("german.m").display().to_string();
    let system = mu_check(&["expand", &german, "--to", "cubicle", "-D", "NODES=any"]);
    assert_eq!(system.code, 0, "{}", system.stderr);
    let text = std::fs::read_to_string(&german).unwrap();
    let wrong = text.replace("& forall m: Node do !sharers[m] end ==>", "==>");
    assert_ne!(text, wrong);
    let folder = tempfile::tempdir().unwrap();
    let wrong = file(folder.path(), "wrong.m", &wrong);
    let of = ["-D", "NODES=any", "--deadlocks", "off"];
    let outcome = mu_check(&[&["explore", wrong.to_str().unwrap()][..], &of].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.json);
}

/// Constructs without a proof for every size are named with their places; small sizes are searched.
#[test]
fn constructs_without_a_proof_for_every_size_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let count = "const N: 3;
type S: scalarset(N); var on: array [S] of boolean; c: 0..9;
startstate begin for s: S do on[s] := false; end; c := 0; end;
ruleset s: S do rule \"on\" !on[s] ==> begin on[s] := true; c := 0;
  for t: S do if on[t] then c := 1; end; end; end; end;
invariant c <= 1;
";
    let twice = count
        .replace("c: 0..9;", "c: 0..N;")
        .replace("  for t: S do if on[t] then c := 1; end; end; end; end;", "end; end;");
    for (text, place, reason) in
        [(count, ":5:", "writes more than cells of its own"), (&twice, ":2:", "more than the size")]
    {
        let model = file(folder.path(), "model.m", text);
        let words = ["explore", model.to_str().unwrap(), "-D", "N=any", "--deadlocks", "off"];
        let outcome = mu_check(&words);
        assert_eq!(outcome.code, 3, "{} {}", outcome.json, outcome.stderr);
        let why = outcome.json["reason"].as_str().unwrap();
        assert!(why.contains(reason) && why.contains(place), "{why}");
    }
}

/// Names that are words of formulas: other names in labels, the names of the model in conditions.
#[test]
fn names_that_are_words_of_formulas() {
    let text = "type Set: scalarset(2); init: 0..2; E: enum {Aa, count};
        var x: init; head: E; tau: array [Set] of boolean;
        startstate begin x := 0; head := Aa; for s: Set do tau[s] := false; end; end;
        ruleset s: Set do rule \"sum\" x < 2 ==>
          begin x := x + 1; head := count; tau[s] := true; end; end;";
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "model.m", text);
    let formulas = [
        "forall s: Set_2. [sum_2(s)] val(x = 1 & head = count & tau[s])",
        "forall v: init_2. [true*] val(x = v -> v < 3)",
        "[sum_2(Set_1)] val(tau[Set_1] & !tau[Set_2])",
    ];
    let mut words = vec!["check", model.to_str().unwrap()];
    formulas.iter().for_each(|f| words.extend(["-f", f]));
    let outcome = mu_check(&words);
    assert_eq!(outcome.code, 0, "{}{}", outcome.json, outcome.stderr);
    for name in ["`Set`", "`init`", "`count`"] {
        assert!(outcome.stderr.contains(name), "{}", outcome.stderr);
    }
}

/// A search that takes failures as steps counts them, and says that it checks no claim.
#[test]
fn searches_that_check_no_claim_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let text = OWNERS.replace("& isundefined(owner)", "");
    let model = file(folder.path(), "model.m", &text);
    let model = model.to_str().unwrap();
    assert_eq!(mu_check(&["explore", model]).code, 1);
    for more in [&["--engine", "symbolic"][..], &["--engine", "auto"], &["--hide", "acquire"]] {
        let outcome = mu_check(&[&["explore", model], more].concat());
        assert_eq!(outcome.code, 0, "{more:?}: {}", outcome.stderr);
        assert!(outcome.json["warnings"].to_string().contains("checks no claim"), "{more:?}");
        assert!(outcome.stderr.contains("--action violation"), "{more:?}: {}", outcome.stderr);
    }
    let found = mu_check(&["explore", model, "--action", "violation"]);
    assert!(!found.stderr.contains("checks no claim"), "{}", found.stderr);
}

/// The checks of a Murphi model write timings as other searches do; an option without effect is
/// rejected.
#[test]
fn options_of_searches_have_an_effect() {
    let folder = tempfile::tempdir().unwrap();
    let model = file(folder.path(), "model.m", OWNERS);
    let model = model.to_str().unwrap();
    let timings = folder.path().join("timings.json");
    assert_eq!(mu_check(&["explore", model, "--timings", timings.to_str().unwrap()]).code, 0);
    assert!(std::fs::read_to_string(timings).unwrap().contains("\"stages\""));
    let outcome = mu_check(&["explore", model, "--terminal", "acquire"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("`--terminal` is not for"), "{}", outcome.stderr);
}

/// A constant that is no size of a scalarset has no instances to search, whether or not one fails.
#[test]
fn any_value_of_another_constant_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let text = "const NODES: 2; LIM: 3;
type Node: scalarset(NODES);
var on: array [Node] of boolean; c: 0..9;
startstate begin for n: Node do on[n] := false; end; c := 0; end;
ruleset n: Node do rule \"on\" !on[n] & c < LIM ==> begin on[n] := true; c := c + 1; end; end;
invariant \"none\" c < 1;
";
    let model = file(folder.path(), "model.m", text);
    let model = model.to_str().unwrap();
    for more in [&[][..], &["--deadlocks", "off"]] {
        let outcome = mu_check(&[&["explore", model, "-D", "LIM=any"][..], more].concat());
        assert_eq!(outcome.code, 2, "{more:?}: {}", outcome.json);
        assert!(outcome.stderr.contains("is the size of no scalarset"), "{}", outcome.stderr);
    }
    assert_eq!(mu_check(&["explore", model, "-D", "NODES=any"]).code, 1);
}

/// A model without a start state, or with assumptions that exclude each of them, has no states: a
/// warning says that nothing was checked.
#[test]
fn a_model_without_start_states_warns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.m").display().to_string();
    for (text, reason) in [
        (
            "var x: 0..1; rule begin x := 1 - x; end; invariant \"never\" x = 7;",
            "has no start state",
        ),
        (
            "var x: 0..3; startstate begin x := 1; end; rule begin x := (x + 1) % 4; end; \
             assume x > 1; invariant \"never\" x = 7;",
            "no start state satisfies",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let outcome = mu_check(&["explore", &path]);
        assert_eq!(
            (outcome.code, outcome.json["states"].as_u64()),
            (0, Some(0)),
            "{}",
            outcome.json
        );
        assert!(outcome.json["warnings"].to_string().contains(reason), "{}", outcome.json);
    }
    // A start state that fails is the answer.
    std::fs::write(&path, "var x: 0..1; startstate begin error \"no\"; end;").unwrap();
    let outcome = mu_check(&["explore", &path]);
    assert_eq!((outcome.code, &outcome.json["verdict"]), (1, &"error".into()), "{}", outcome.json);
    assert!(!outcome.json["warnings"].to_string().contains("no start state"), "{}", outcome.json);
}
