//! Loops and quantifiers over scalarsets that depend on the order of the elements: they are found,
//! and the search continues without the symmetry, so that no failure is hidden.

use mu_base::SourceMap;
use mu_base::limits::Budget;
use mu_murphi::path::path;
use mu_murphi::search::{Broken, Deadlocks, Explored, SearchOptions, explore};
use mu_murphi::{Settings, compile, read};

fn search_text(text: &str, symmetry: bool, deadlocks: Deadlocks) -> Explored {
    let (found, has_path) = explore_text(text, symmetry, deadlocks);
    assert_eq!(found.failure.is_some(), has_path, "{text}");
    found
}

/// Explores a model. True if the failure has a path.
fn explore_text(text: &str, symmetry: bool, deadlocks: Deadlocks) -> (Explored, bool) {
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    let model = read(source, text, &Settings::default())
        .unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    let program = compile(&model).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    let options = SearchOptions { symmetry, deadlocks, checks: true };
    let found = explore(&model, &program, options, &Budget::default(), &mut |_, _| {});
    let has_path = path(&model, &program, &found).is_some();
    (found, has_path)
}

/// Variables and rules around the statements of a rule. Elements differ by `a`.
fn model(body: &str) -> String {
    format!(
        "type t: scalarset(3); r: record f: 0..3; g: t; end;
         var a: array [t] of 0..2; b: array [t] of r; x: 0..7; o: t; flag: boolean;
             m: multiset [4] of r;
         function own(i: t): boolean; begin return a[i] > 0; end;
         function first(): t; begin for i: t do if a[i] = 1 then return i; end; end;
             return o; end;
         procedure set(var e: r; v: 0..3); begin e.f := v; end;
         ruleset s: t do startstate
           for i: t do a[i] := 0; b[i].f := 0; b[i].g := s; end;
           x := 0; flag := false; o := s;
         end; end;
         ruleset i: t do rule \"up\" a[i] < 2 ==> begin a[i] := a[i] + 1; end; end;
         rule \"body\" var n: 0..3; e: r; begin {body} end;"
    )
}

/// Loops with iterations that commute: the text shows it, so nothing is executed twice.
#[test]
fn loops_with_commuting_iterations_are_recognised() {
    for body in [
        "for i: t do a[i] := 0; end;",
        "for i: t do if a[i] = 1 then b[i].g := o; end; end;",
        "for i: t do if own(i) then flag := true; end; end;",
        "x := 0; for i: t do if a[i] > 0 then x := x + 2; end; end;",
        "x := 6; for i: t do x := x - a[i]; end;",
        "for i: t do set(b[i], a[i]); end;",
        "for i: t do n := a[i]; b[i].f := n; end;",
        "for i: t do undefine e; e.f := a[i]; e.g := i; if x < 1 then multisetadd(e, m); end; end; \
         x := 1;",
        "for i: t do alias c: b[i]; d: i do c.f := a[d]; end; end;",
        "for i: t do for j: t do if i = j then b[j].f := 1; end; end; end;",
        "for i: t do switch a[i] case 0: b[i].f := 1; else b[i].f := 2; end; end;",
        "x := 1; for i: t do if a[i] > 0 then b[o].f := x; end; end; x := 0;",
        "flag := exists i: t do a[i] = 2 & b[i].g = i end;",
        "flag := forall i: t do own(i) -> b[i].f < 3 end;",
        "if exists i: t do !isundefined(o) & o = i end then x := 1; end;",
        "for n2 := 0 to 2 do x := n2; end;",
    ] {
        let text = model(body);
        let found = search_text(&text, true, Deadlocks::Off);
        assert_eq!(found.suspects, [], "{body}");
        assert_eq!(found.asymmetries, [], "{body}");
        assert_eq!(found.symmetries, 6, "{body}");
    }
}

/// Constructs that depend on the order in some state.
#[test]
fn constructs_that_depend_on_an_order_are_found() {
    for (body, what) in [
        ("for i: t do if a[i] = 1 then o := i; end; end;", "a loop"),
        ("o := first();", "a loop"),
        ("for i: t do if a[i] > 0 then x := a[i]; end; end;", "a loop"),
        ("x := 0; for i: t do if x < 1 then x := x + 1; b[i].f := 1; end; end;", "a loop"),
        ("for i: t do if a[i] = 1 then a[o] := 2; o := i; end; end;", "a loop"),
        ("n := 0; for i: t do b[i].f := n; n := a[i]; end;", "a loop"),
        ("for i: t do if a[i] = 2 then x := 3; elsif a[i] = 1 then x := 4; end; end;", "a loop"),
        ("for i: t do if a[i] = 2 then return; end; b[i].f := 1; end;", "a loop"),
        ("for i: t do set(b[o], a[i]); end;", "a loop"),
        ("for i: t do n := a[i]; b[o].f := n; end; n := 0;", "a loop"),
        (
            "for i: t do if a[i] = 0 then undefine b[i].f; else b[i].f := 0; end; end; \
             if a[o] = 1 & exists i: t do b[i].f = 0 end then x := 5; end; \
             for i: t do b[i].f := 0; end;",
            "a quantifier",
        ),
    ] {
        let text = model(body);
        let reduced = search_text(&text, true, Deadlocks::Stuttering);
        let [asymmetry] = &reduced.asymmetries[..] else {
            panic!("{body}: {:?}", reduced.asymmetries)
        };
        assert!(asymmetry.reason.starts_with(what), "{body}: {}", asymmetry.reason);
        assert_eq!(asymmetry.types, ["t"]);
        let first = asymmetry.places[0];
        let at = &text[first.start as usize..first.end as usize];
        assert!(at.starts_with("for") || at.starts_with("exists"), "{at}");
        let whole = search_text(&text, false, Deadlocks::Stuttering);
        assert_eq!((reduced.states, reduced.rules), (whole.states, whole.rules), "{body}");
        assert_eq!(reduced.failure.is_some(), whole.failure.is_some(), "{body}");
    }
}

/// Loops that only the states show to be symmetric: one element at most satisfies the condition.
#[test]
fn suspects_without_a_difference_keep_the_symmetry() {
    let text = "type t: scalarset(3); var holder: array [t] of boolean; o: t;
        ruleset s: t do startstate
          for i: t do holder[i] := i = s; end; o := s; end; end;
        ruleset i: t do rule \"pass\" !holder[i] ==> begin
          for j: t do holder[j] := false; end; holder[i] := true;
          for j: t do if holder[j] then o := j; end; end; end; end;
        invariant holder[o];";
    let found = search_text(text, true, Deadlocks::Off);
    assert_eq!((found.states, found.symmetries, found.suspects.len()), (1, 6, 1));
    assert_eq!(found.asymmetries, []);
}

/// A quantifier of an invariant that visits all elements whenever the invariant holds.
#[test]
fn quantifiers_that_visit_all_elements_are_recognised() {
    let start = "type t: scalarset(3); var a: array [t] of 0..2; o: t; x: 0..3;
        startstate for i: t do undefine a[i]; end; x := 0; end;
        ruleset i: t do rule begin a[i] := 1; o := i; end; end;";
    for (condition, suspects) in [
        ("forall i: t do isundefined(a[i]) | a[i] > 0 end", 0),
        ("x = 0 -> forall i: t do (isundefined(a[i]) ? 1 : a[i]) > 0 end", 0),
        ("!exists i: t do (isundefined(a[i]) ? 1 : a[i]) = 0 end", 0),
        ("x = 1 | forall i: t do (isundefined(a[i]) ? 1 : a[i]) > 0 end", 0),
        ("exists i: t do (isundefined(a[i]) ? 1 : a[i]) > 0 end", 1),
        ("(forall i: t do (isundefined(a[i]) ? 1 : a[i]) > 0 end) | x = 0", 1),
        ("(forall i: t do (isundefined(a[i]) ? 1 : a[i]) > 0 end) -> x = 0", 1),
    ] {
        let found = search_text(&format!("{start} invariant {condition};"), true, Deadlocks::Off);
        assert_eq!(found.failure, None, "{condition}");
        assert_eq!(found.suspects.len(), suspects, "{condition}");
    }
}

/// Of two scalarsets only the one that differs loses its symmetry.
#[test]
fn other_scalarsets_keep_their_symmetry() {
    let text = "type s: scalarset(3); t: scalarset(2); var a: array [s] of boolean; \
            b: array [t] of boolean; last: t;
        ruleset i: t do startstate
          for k: s do a[k] := false; end; for k: t do b[k] := false; end; last := i; end; end;
        ruleset i: s do rule begin a[i] := !a[i]; end; end;
        ruleset i: t do rule begin b[i] := !b[i]; end; end;
        rule begin for i: t do if b[i] then last := i; end; end; end;";
    let found = search_text(text, true, Deadlocks::Off);
    assert_eq!((found.states, found.symmetries), (4 * 8, 6));
    assert_eq!(found.asymmetries.len(), 1);
    assert_eq!(found.asymmetries[0].types, ["t"]);
}

/// Scalarsets with too many orders to try lose their symmetry, with a reason.
#[test]
fn too_many_orders_are_not_tried() {
    let text = "type t: scalarset(7); var a: array [t] of boolean; o: t;
        ruleset s: t do startstate for i: t do a[i] := false; end; o := s; end; end;
        ruleset i: t do rule begin a[i] := true; end; end;
        rule begin for i: t do if a[i] then o := i; end; end; end;";
    let found = search_text(text, true, Deadlocks::Off);
    assert_eq!(found.symmetries, 1);
    assert!(
        found.asymmetries[0].reason.contains("more than 720 orders"),
        "{:?}",
        found.asymmetries
    );
}

/// Model 1000936 of the comparison with Rumur: its symmetry reduction hides the deadlock.
#[test]
fn a_deadlock_is_not_hidden() {
    let text = include_str!("models/order.m");
    for symmetry in [false, true] {
        let found = search_text(text, symmetry, Deadlocks::Stuttering);
        let broken = found.failure.map(|f| f.broken);
        assert_eq!(broken, Some(Broken::Deadlock), "symmetry {symmetry}");
    }
}

/// A quantifier that could fail by its text, in a property: no order is executed if no element
/// fails, and a failure of some element is found.
#[test]
fn quantifiers_of_properties_are_evaluated_for_all_elements() {
    let text = |last: &str| {
        format!(
            "type t: scalarset(3); var n: array [t] of 0..1; v: array [t] of 0..2;
             startstate for i: t do n[i] := 0; end; end;
             ruleset i: t do rule n[i] = 0 ==> begin n[i] := 1; v[i] := 1; end;
             rule n[i] = 1 & v[i] < 2 ==> begin v[i] := v[i] + 1; end;
             rule n[i] = 1 & v[i] = 2 ==> begin n[i] := 0; {last} end; end;
             invariant forall i: t do n[i] = 1 -> v[i] > 0 end;
             invariant \"some\" (exists i: t do n[i] = 0 | v[i] = 2 end)
               | !(forall i: t do v[i] != 1 end);"
        )
    };
    let fine = text("undefine v[i];");
    let found = search_text(&fine, true, Deadlocks::Off);
    let all = search_text(&fine, false, Deadlocks::Off);
    assert!(found.failure.is_none() && all.failure.is_none());
    assert!(found.asymmetries.is_empty() && !found.suspects.is_empty());
    assert_eq!((found.states, all.states), (10, 27));
    // One element decides, and another one fails: the order of the elements matters.
    let text = "type t: scalarset(3); var n: array [t] of 0..1; v: array [t] of 0..2;
        startstate for i: t do n[i] := 0; v[i] := 0; end; end;
        ruleset i: t do rule n[i] = 0 ==> begin n[i] := 1; v[i] := 1; end;
        rule n[i] = 1 & !isundefined(v[i]) ==> begin undefine v[i]; end; end;
        invariant exists i: t do n[i] = 0 | v[i] = 1 end | true;";
    let found = search_text(text, true, Deadlocks::Off);
    let all = search_text(text, false, Deadlocks::Off);
    assert_eq!(found.failure.is_some(), all.failure.is_some());
    assert!(matches!(all.failure.expect("a failure").broken, Broken::Fault(..)));
    assert_eq!(found.asymmetries.len(), 1);
}

/// Liveness of one element: a step to a representative renames the elements, so its scalarset is
/// not permuted.
#[test]
fn liveness_follows_one_element() {
    let dies = "ruleset p: P do rule \"die\" !dead ==> s[p] := D; dead := true; end;
        rule \"up\" s[p] = A ==> s[p] := B; end; rule \"down\" s[p] = B ==> s[p] := A; end; end;";
    let start = "startstate for p: P do s[p] := A; end; dead := false; end;";
    let types = "type P: scalarset(2); S: enum {A, B, D};";
    let variables = "var s: array [P] of S; dead: boolean;";
    let other = "type Q: scalarset(3); var q: array [Q] of boolean;
        startstate for p: P do s[p] := A; end; for i: Q do q[i] := false; end; dead := false; end;
        ruleset i: Q do rule begin q[i] := !q[i]; end; end;";
    let within = |property: &str| format!("{types} {variables} {dies} {start} {property}");
    for (text, fails, symmetries) in [
        (include_str!("models/live.m").to_string(), false, 1),
        (include_str!("models/live2.m").to_string(), true, 1),
        (include_str!("models/live3.m").to_string(), true, 1),
        (include_str!("models/live5.m").to_string(), true, 1),
        (within("ruleset p: P do liveness s[p] = B; end;"), true, 1),
        (within("ruleset p: P do liveness forall i: P do i = p -> s[i] = B end; end;"), true, 1),
        (within("ruleset p: P do alias a: s[p] do liveness a = B; end; end;"), true, 1),
        (within("liveness exists p: P do s[p] = B end;"), false, 2),
        (within("liveness forall p: P do s[p] = B end;"), true, 2),
        (within("ruleset p: P do cover s[p] = D; end;"), false, 2),
        (within("ruleset p: P do invariant s[p] = D -> dead; end;"), false, 2),
        (
            format!("{types} {variables} {dies} {other} ruleset p: P do liveness s[p] = B; end;"),
            true,
            6,
        ),
        (
            format!("{types} {variables} {dies} {other} ruleset i: Q do liveness q[i]; end;"),
            false,
            2,
        ),
    ] {
        let [reduced, whole] = [true, false].map(|s| search_text(&text, s, Deadlocks::Off));
        let is_liveness = |f: &Explored| {
            matches!(f.failure.as_ref().map(|f| &f.broken), Some(Broken::Liveness(_)))
        };
        assert_eq!((is_liveness(&reduced), is_liveness(&whole)), (fails, fails), "{text}");
        assert_eq!(reduced.symmetries, symmetries, "{text}");
        let follows = text.contains(" do liveness");
        assert_eq!(!reduced.asymmetries.is_empty(), follows, "{text}");
        if symmetries == 1 {
            assert_eq!(reduced.failure, whole.failure, "{text}");
        }
    }
}

/// Liveness of a value of a union, and of an element of a multiset, which the sorting moves.
#[test]
fn liveness_follows_values_of_unions_and_elements_of_multisets() {
    for text in [
        "type P: scalarset(2); U: union {enum {Home}, P}; var s: array [U] of boolean; d: boolean;
         startstate for u: U do s[u] := true; end; d := false; end;
         ruleset u: U do rule !d ==> s[u] := false; d := true; end; rule s[u] ==> s[u] := true; end;
         end; ruleset u: U do liveness s[u]; end;",
        "type P: scalarset(2); M: record p: P; n: 0..2; end; var m: multiset [2] of M;
         startstate undefine m; end;
         ruleset p: P do rule multisetcount(i: m, true) < 2 ==> var x: M; begin
           x.p := p; x.n := 0; multisetadd(x, m); end; end;
         choose i: m do rule m[i].n < 2 ==> m[i].n := m[i].n + 1; end;
           liveness m[i].n = 1; end;",
    ] {
        let [reduced, whole] = [true, false].map(|s| search_text(text, s, Deadlocks::Off));
        assert_eq!((reduced.symmetries, reduced.states), (1, whole.states));
        assert_eq!(reduced.failure, whole.failure, "{text}");
        assert!(matches!(whole.failure.expect("a failure").broken, Broken::Liveness(_)));
    }
}

/// Expects that a search with symmetry fails as one without, and has the same states if none fails.
/// A failure without a path makes the caller search again without symmetry.
fn expect_no_loss(text: &str) {
    let [reduced, whole] = [true, false].map(|is| explore_text(text, is, Deadlocks::Off).0);
    assert_eq!(reduced.failure.is_some(), whole.failure.is_some(), "{text}");
    if whole.failure.is_none() {
        assert_eq!(reduced.states, whole.states, "{text}");
    }
}

/// An `assume` ends a quantifier as a value does, so the order decides if a state is discarded.
#[test]
fn assumptions_in_quantifiers_depend_on_the_order() {
    for (a, b) in [(1, 2), (2, 1)] {
        for (quantifier, excluded) in [("forall", 2), ("exists", 3)] {
            expect_no_loss(&format!(
                "type t: scalarset(2); var x: array [t] of 0..3;
                 function f(s: t): boolean; begin assume x[s] != 1; return x[s] != {excluded}; end;
                 startstate for s: t do x[s] := 0; end; end;
                 ruleset s: t do rule forall i: t do x[i] = 0 end ==> begin x[s] := 3; end; end;
                 ruleset s: t do rule x[s] = 3 ==>
                   begin for i: t do x[i] := {a}; end; x[s] := {b}; end; end;
                 invariant {quantifier} s: t do f(s) end;"
            ));
        }
    }
}

/// A state that an assumption discards may be an error in another order.
#[test]
fn discarded_states_are_executed_in_every_order() {
    for (a, b) in [("y[i] := false", "undefine y[s]"), ("undefine y[i]", "y[s] := false")] {
        expect_no_loss(&format!(
            "type t: scalarset(2); var x: array [t] of 0..3; y: array [t] of boolean;
             startstate for s: t do x[s] := 0; y[s] := true; end; end;
             ruleset s: t do rule forall i: t do x[i] = 0 end ==> begin x[s] := 3; end; end;
             ruleset s: t do rule x[s] = 3 ==>
               begin for i: t do {a}; x[i] := 1; end; {b}; end; end;
             assume forall s: t do y[s] end;"
        ));
    }
}

/// The check of the orders runs no rule that a lower number hides: its `cover` never holds.
#[test]
fn hidden_rules_fulfil_no_claims() {
    let text = "type t: scalarset(2); var x: array [t] of 0..1; k: 0..2;
        startstate for s: t do x[s] := 0; end; k := 0; end;
        ruleset s: t do rule 1 true ==> begin x[s] := 1 - x[s]; end; end;
        rule 2 true ==> begin for s: t do k := (k + 1) % 3; end; cover k = 2; end;";
    for symmetry in [true, false] {
        assert_eq!(search_text(text, symmetry, Deadlocks::Off).uncovered_claims, [0]);
    }
}
