//! A model as slots and groups has the same states and steps as the search of the language: each
//! group gets only the slots that it declares to read, so a wrong footprint is a difference.
//!
//! `MURPHI_MODELS=DIR cargo test -p mu-check-murphi --test groups -- --ignored` compares all models
//! of a folder with at most 5,000 states.

mod by_groups;

use by_groups::by_groups;
use mu_base::limits::{Budget, Limits};
use mu_base::{SourceMap, Stop};
use mu_model::Model;
use mu_murphi::model::ProtocolModel;
use mu_murphi::search::{Deadlocks, SearchOptions, explore};
use mu_murphi::{Settings, compile, read};

/// Compares the two routes. `None` if the model is too large or not accepted.
fn compare(name: &str, text: &str) -> Option<()> {
    let mut sources = SourceMap::new();
    let source = sources.add(name, text);
    let typed = read(source, text, &Settings::default()).ok()?;
    let program = compile(&typed).ok()?;
    let options = SearchOptions { symmetry: false, deadlocks: Deadlocks::Off, checks: true };
    let limits = Limits { max_states: Some(5000), ..Limits::default() };
    let budget = Budget::new(limits);
    let explored = explore(&typed, &program, options, &budget, &mut |_, _| {});
    let liveness = matches!(
        explored.failure.as_ref().map(|f| &f.broken),
        Some(mu_murphi::search::Broken::Liveness(_))
    );
    if explored.stop != Stop::Complete {
        return None;
    }
    let model = match ProtocolModel::new(typed) {
        Ok(model) => model,
        // A start state fails.
        Err(_) => return explored.failure.map(|_| ()),
    };
    let found = by_groups(&model);
    if explored.failure.is_some() && !liveness {
        assert_eq!(found, None, "{name}");
    } else {
        // A rule with a result that an assumption discards has fired, but has no step.
        let discards = text.contains("assume");
        let rules = if discards { found.map_or(0, |f| f.1) } else { explored.rules };
        assert_eq!(found, Some((explored.states, rules)), "{name}");
    }
    Some(())
}

#[test]
fn small_models_agree() {
    let models = [
        "var x: 0..9; startstate x := 0; end; rule x < 9 ==> x := x + 1; end; invariant x < 10;",
        "var x: 0..9; startstate x := 0; end; rule begin x := x + 1; end;",
        "var x: 0..9; startstate x := 0; end; startstate x := 5; end;
         rule x < 9 ==> x := x + 1; assume x != 7; end; assume x != 3;",
        "type t: scalarset(3); var a: array [t] of 0..2; p: t;
         startstate for i: t do a[i] := 0; end; undefine p; end;
         ruleset i: t do rule \"up\" a[i] < 2 ==> a[i] := a[i] + 1; p := i; end;
         rule !isundefined(p) & a[p] > 0 ==> a[p] := a[p] - 1; end; end;",
        "type m: record k: 0..1; end; var net: multiset [3] of m; n: 0..3;
         startstate undefine net; n := 0; end;
         ruleset k: 0..1 do rule multisetcount(i: net, true) < 3 ==> var x: m; begin
           x.k := k; multisetadd(x, net); end; end;
         choose i: net do rule net[i].k = 1 & n < 3 ==> multisetremove(i, net); n := n + 1; end; end;",
        "var a: multiset [2] of 0..3; b: boolean;
         startstate var e: 0..3; begin e := 1; multisetadd(e, a); b := false; end;
         choose i: a do rule begin multisetremove(i, a); a[i] := 2; b := true; end;
         rule begin multisetremove(i, a); b := true; end; end;",
        "var x: 0..5; y: 0..5; startstate x := 0; y := 0; end;
         rule 2 x < 5 ==> x := x + 1; end; rule 1 y < 2 & x = 2 ==> y := y + 1; end;",
        "var a: array [0..3] of 0..3; i: 0..3;
         procedure down(var n: 0..3); begin if n > 0 then n := n - 1; down(n); end; end;
         startstate for k: 0..3 do a[k] := k; end; i := 0; end;
         ruleset k: 0..3 do rule begin i := k; end; end; rule begin a[i] := a[(i + 1) % 4]; end;
         rule begin down(a[i]); end; rule i = 3 ==> switch a[i] case 0: a[0] := 1; else clear i; end; end;",
        // Errors: of an assumption about a result or a start state, and of a guard that has a
        // higher number than a rule that is enabled.
        "var x: 0..3; y: 0..1; startstate x := 0; end; rule x < 3 ==> x := x + 1; end;
         assume x = 0 | y = 1;",
        "var x: 0..3; y: 0..1; startstate x := 0; end; rule x < 3 ==> x := x + 1; end;
         assume y = 1;",
        "var x: 0..3; y: 0..1; startstate x := 0; end; rule 1 x < 3 ==> x := x + 1; end;
         rule 2 y = 1 ==> x := 0; end;",
        "var x: 0..3; a: array [0..1] of 0..3; startstate x := 0; a[1] := 0; end;
         rule x < 3 ==> x := x + 1; end; ruleset i: 0..1 do assume x = 0 | a[i] >= x; end;",
        // Assumptions in functions of invariants.
        "var x: 0..9; y: 0..9; function f(): boolean; begin assume x < 4; return true; end;
         startstate x := 0; y := 0; end; startstate x := 7; y := 0; end;
         rule x < 5 ==> x := x + 1; end; rule y < 2 ==> y := y + 1; end; invariant f() & x < 4;",
        "var x: 0..9; function f(): boolean; begin assume x < 4; return true; end;
         startstate x := 0; end; rule x < 5 ==> x := x + 1; end; invariant x < 4; invariant f();",
    ];
    for (n, text) in models.into_iter().enumerate() {
        assert!(compare(&format!("model {n}"), text).is_some(), "model {n} is compared");
    }
}

/// A stored search goes on only with the model of which it is: with the same ranges, parameters,
/// priorities, claims, start states and names.
#[test]
fn models_that_differ_have_different_fingerprints() {
    let text = "type t: scalarset(2); var x: 0..5; a: array [t] of 0..1;
        startstate x := 0; for i: t do a[i] := 0; end; end;
        ruleset i: t do rule \"inc\" x < 4 ==> x := x + 1; a[i] := 1; end; end;
        rule \"zero\" x = 3 ==> switch x case 3: x := 0; case 4: x := 1; end; end;
        invariant \"small\" x < 5; -- a comment";
    let of = |text: &str| {
        let mut sources = SourceMap::new();
        let source = sources.add("model", text);
        let typed = read(source, text, &Settings::default()).expect("a model");
        ProtocolModel::new(typed).expect("groups").fingerprint()
    };
    let own = of(text);
    assert_eq!(of(&text.replace("-- a comment", "")), own);
    for (old, new) in [
        ("0..5", "0..6"),
        ("scalarset(2)", "0..1"),
        ("x < 4", "x < 3"),
        ("case 3", "case 2"),
        ("case 4", "case 5"),
        ("rule \"zero\"", "rule 2 \"zero\""),
        ("\"inc\"", "\"more\""),
        ("\"small\"", "\"little\""),
        ("invariant", "assume"),
        ("startstate x := 0", "startstate x := 1"),
    ] {
        assert_ne!(of(&text.replace(old, new)), own, "{old} -> {new}");
    }
}

#[test]
#[ignore = "needs a folder of models in MURPHI_MODELS"]
fn models_of_a_folder_agree() {
    let folder = std::env::var("MURPHI_MODELS").expect("MURPHI_MODELS is a folder");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        compared += usize::from(compare(&path.display().to_string(), &text).is_some());
    }
    println!("{compared} models compared");
    assert!(compared > 0);
}
