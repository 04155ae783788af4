//! Verdicts, counts and paths of small models, one for each rule of the language's semantics.

use mu_base::SourceMap;
use mu_base::limits::Budget;
use mu_murphi::code::Fault;
use mu_murphi::path::{Path, path};
use mu_murphi::search::{Broken, Culprit, Deadlocks, Explored, SearchOptions, explore};
use mu_murphi::{Settings, compile, read};

/// Explores a model without symmetries, unless `symmetry`. Deadlocks are no failures.
fn run(text: &str, symmetry: bool) -> (Explored, Option<Path>) {
    run_with(text, SearchOptions { symmetry, deadlocks: Deadlocks::Off, checks: true })
}

fn run_with(text: &str, options: SearchOptions) -> (Explored, Option<Path>) {
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    let model = read(source, text, &Settings::default())
        .unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    let program = compile(&model).unwrap_or_else(|d| panic!("{}", d.render(&sources)));
    let explored = explore(&model, &program, options, &Budget::default(), &mut |_, _| {});
    let found = path(&model, &program, &explored);
    assert_eq!(found.is_some(), explored.failure.is_some(), "a failure has a path");
    (explored, found)
}

/// States and rules of a model without failures.
fn counts(text: &str, symmetry: bool) -> (u64, u64) {
    let (explored, _) = run(text, symmetry);
    assert_eq!(explored.failure, None);
    (explored.states, explored.rules)
}

/// Kind of the failure, and the number of states on the path to it.
fn failure(text: &str) -> (Broken, usize) {
    let (explored, found) = run(text, false);
    let failure = explored.failure.unwrap_or_else(|| panic!("no failure"));
    (failure.broken, found.map_or(0, |p| p.steps.len()))
}

fn fault(text: &str) -> (Fault, usize) {
    match failure(text) {
        (Broken::Fault(fault, span), steps) => {
            assert!(span.is_somewhere(), "an error has a place");
            (fault, steps)
        }
        (other, _) => panic!("{other:?}"),
    }
}

/// Returns a model with two variables and one rule.
fn rule(body: &str) -> String {
    format!("var x: 0..5; y: 0..5; b: boolean; startstate x := 1; end; rule begin {body} end;")
}

#[test]
fn a_counter_has_a_state_for_each_value() {
    let text = "var x: 0..9; startstate x := 0; end; rule x < 9 ==> x := x + 1; end;";
    assert_eq!(counts(text, false), (10, 9));
}

#[test]
fn errors_of_rules_have_kinds_and_shortest_paths() {
    assert_eq!(fault(&rule("x := y + 1;")), (Fault::Undefined, 1));
    assert_eq!(fault(&rule("x := x + 1;")).1, 5);
    assert!(matches!(fault(&rule("x := x + 1;")).0, Fault::OutOfRange(_)));
    assert_eq!(fault(&rule("x := 4 / (x - 1);")).0, Fault::Arithmetic);
    assert_eq!(fault(&rule("error \"stop\";")).0, Fault::Error("stop".into()));
    assert_eq!(fault(&rule("assert x = 2 \"two\";")).0, Fault::Assertion(0));
    let text = "var a: array [1..3] of 0..3; i: 0..3;
        startstate i := 3; a[1] := 1; end; rule begin i := i - 1; a[i] := 2; end;";
    assert!(matches!(fault(text), (Fault::Index(_), 3)));
}

#[test]
fn copies_of_undefined_values_are_no_errors_and_reads_are() {
    assert_eq!(counts(&rule("y := x; undefine x; x := x;"), false).0, 3);
    assert_eq!(fault(&rule("undefine x; b := x = 1;")).0, Fault::Undefined);
    assert_eq!(counts(&rule("b := isundefined(y);"), false), (2, 2));
    let text = "var r: record a: 0..3; c: 0..3; end; s: record a: 0..3; c: 0..3; end; b: boolean;
        startstate r.a := 1; end; rule begin s := r; b := isundefined(s.c) & s.a = 1 & s = r; end;
        invariant isundefined(b) | b;";
    assert_eq!(counts(text, false), (2, 2));
}

#[test]
fn operands_that_are_not_needed_are_not_evaluated() {
    assert_eq!(counts(&rule("b := x = 2 & y = 1;"), false), (2, 2));
    assert_eq!(counts(&rule("b := x = 1 | y = 1;"), false), (2, 2));
    assert_eq!(counts(&rule("b := x = 2 -> y = 1;"), false), (2, 2));
    assert_eq!(fault(&rule("b := x = 1 & y = 1;")).0, Fault::Undefined);
}

#[test]
fn guards_with_undefined_parts_fail_unless_an_earlier_part_is_false() {
    let guard = |g: &str| {
        format!("var x: 0..5; y: 0..5; startstate x := 1; end; rule {g} ==> x := 2; end;")
    };
    assert_eq!(fault(&guard("y = 1")).0, Fault::Undefined);
    assert_eq!(fault(&guard("x = 1 & y = 1")).0, Fault::Undefined);
    assert_eq!(counts(&guard("x = 3 & y = 1"), false), (1, 0));
    assert_eq!(fault(&guard("y = 1 & x = 3")).0, Fault::Undefined);
    assert_eq!(fault(&guard("x + y = 1")).0, Fault::Undefined);
    assert_eq!(counts(&guard("isundefined(y) & x = 1"), false), (2, 1));
    assert_eq!(counts(&guard("!isundefined(y) & y = 1"), false), (1, 0));
    assert_eq!(counts(&guard("isundefined(y) | y = 1"), false), (2, 2));
    assert_eq!(fault(&guard("isundefined(y) -> y = 1")).0, Fault::Undefined);
    assert_eq!(fault(&guard("isundefined(x) & y = 1 | y = 2")).0, Fault::Undefined);
}

#[test]
fn functions_pass_values_and_places() {
    let text = "var x: 0..20; y: 0..20;
        function double(n: 0..10): 0..20; begin return n + n; end;
        procedure swap(var a: 0..20; var b: 0..20); var t: 0..20;
        begin t := a; a := b; b := t; end;
        function factorial(n: 0..4): 0..20;
        begin if n <= 1 then return 1; end; if n = 4 then return 20; end;
          return n * factorial(n - 1); end;
        procedure down(var a: 0..20); begin if a > 3 then a := a - 1; down(a); end; end;
        startstate x := 1; y := 7; end;
        rule x = 1 ==> x := double(x); swap(x, y); end;
        rule x = 7 ==> y := factorial(3); x := 20; down(x); end;
        invariant !(x = 3 & y != 6);";
    let (explored, _) = run(text, false);
    assert_eq!((explored.failure, explored.states, explored.rules), (None, 3, 2));
}

#[test]
fn references_to_locals_of_earlier_calls_stay_valid() {
    // Each level of the recursion has a variable of its own, and writes to that of the caller.
    let text = "var x: 0..100;
        procedure add(n: 0..5; var sum: 0..100); var own: 0..100;
        begin own := n; if n > 0 then add(n - 1, own); end; sum := sum + own; end;
        startstate x := 0; end;
        rule x = 0 ==> add(4, x); end;
        invariant x = 0 | x = 10;";
    assert_eq!(counts(text, false), (2, 1));
}

#[test]
fn a_function_without_return_fails() {
    let text = "var x: 0..3; function f(n: 0..3): 0..3; begin if n = 2 then return 1; end; end;
        startstate x := 1; end; rule begin x := f(x); end;";
    assert_eq!(fault(text).0, Fault::NoReturn("f".into()));
}

#[test]
fn loops_count_in_steps_and_quantifiers_stop_early() {
    let text = "var s: 0..200; startstate
        s := 0;
        for i := 0 to 10 by 5 do s := s + i; end;
        for i := 3 to 1 by -1 do s := s + i; end;
        for i: 1..50 do s := s + 1; end;
        end;
        rule s = 71 & (forall i: 1..60 do i < 61 end) & (exists i: 1..60 do i = 60 end)
          ==> s := 0; end;";
    assert_eq!(counts(text, false), (2, 1));
}

#[test]
fn aliases_and_switches_select() {
    let text = "type e: enum {A, B, C, D}; var v: array [e] of 0..9; p: e;
        startstate for i: e do v[i] := 0; end; p := B; end;
        rule begin alias q: v[p] do
          switch p case A: q := 1; case B: p := C; q := 2; case C, D: q := 3; p := A; end;
        end; end;
        invariant v[D] = 0;";
    // The alias keeps the element that it named when it was bound.
    assert_eq!(counts(text, false).0, 4);
}

/// Rumur executes a case without values for all values; CMurphi rejects it.
#[test]
fn a_case_without_values_is_else() {
    let text = "var x: 0..3; startstate x := 0; end;
        rule begin switch x case 0: x := 2; case : x := 0; end; end;";
    assert_eq!(counts(text, false), (2, 2));
}

#[test]
fn multisets_have_no_order() {
    let text = "type m: record k: 0..1; end;
        var net: multiset [3] of m; startstate undefine net; end;
        ruleset k: 0..1 do rule multisetcount(i: net, true) < 3 ==> var x: m; begin
          x.k := k; multisetadd(x, net); end; end;
        choose i: net do rule net[i].k = 1 ==> multisetremove(i, net); end; end;";
    // Multisets with at most three elements of two kinds; a rule fires for each element.
    assert_eq!(counts(text, false).0, 10);
    let full = text.replace("multisetcount(i: net, true) < 3", "true");
    assert_eq!(fault(&full).0, Fault::Full);
}

/// As in CMurphi: a position without an element has no value after the rule.
#[test]
fn writes_to_removed_elements_are_lost() {
    for ty in ["0..3", "record a: array [0..40] of 0..3; end"] {
        let field = if ty.starts_with('r') { ".a[9]" } else { "" };
        let text = format!(
            "type e: {ty}; var a, b: multiset [2] of e; done: boolean;
             startstate var x: e; begin clear x; multisetadd(x, a); done := false; end;
             choose i: a do rule !done ==> begin
               multisetremove(i, a); a[i]{field} := 2; b[i]{field} := 1; done := true; end; end;
             choose i: a do rule !done ==> begin multisetremove(i, a); done := true; end; end;"
        );
        assert_eq!(counts(&text, false).0, 2, "{ty}");
    }
}

#[test]
fn deadlocks_have_three_definitions() {
    let text = "var x: 0..3; startstate x := 0; end; rule x < 3 ==> x := x + 1; end;
        rule x = 3 ==> x := 3; end;";
    let with = |deadlocks| {
        run_with(text, SearchOptions { deadlocks, ..SearchOptions::default() }).0.failure
    };
    let broken = with(Deadlocks::Stuttering).map(|f| f.broken);
    assert_eq!(broken, Some(Broken::Deadlock));
    assert_eq!(with(Deadlocks::Stuck), None);
    assert_eq!(with(Deadlocks::Off), None);
}

#[test]
fn claims_are_checked() {
    let counter = "var x: 0..9; startstate x := 0; end; rule x < 5 ==> x := x + 1; end;";
    assert!(matches!(failure(&format!("{counter} invariant x < 4;")), (Broken::Invariant(0), 5)));
    assert_eq!(counts(&format!("{counter} assume x < 3;"), false), (3, 3));
    assert_eq!(counts(&format!("{counter} liveness x = 5;"), false).0, 6);
    assert!(matches!(failure(&format!("{counter} liveness x = 2;")).0, Broken::Liveness(0)));
    let (explored, _) = run(&format!("{counter} cover x = 5; cover x = 7;"), false);
    assert_eq!(explored.uncovered, [1]);
    let rule = "var x: 0..9; startstate x := 0; end;
        rule x < 5 ==> cover x = 2; cover x = 8; x := x + 1; assume x != 4; end;";
    let (explored, _) = run(rule, false);
    assert_eq!((explored.uncovered_claims, explored.states, explored.rules), (vec![1], 4, 3));
}

/// As in Rumur, an `assume` in a function of an invariant discards the state, unless an earlier
/// invariant is false.
#[test]
fn assumptions_in_functions_of_invariants_discard_states() {
    for function in [
        "function f(): boolean; begin assume x < 2; return true; end;",
        "function f(): boolean; begin if x = 9 then return f(); end; assume x < 2; return true; end;",
    ] {
        let model = format!(
            "var x: 0..9; {function} startstate x := 0; end; startstate x := 7; end;
            rule x < 5 ==> x := x + 1; end;"
        );
        let with = |claims: &str| format!("{model} {claims}");
        assert_eq!(counts(&with("invariant f();"), false), (2, 2));
        assert_eq!(
            counts(&with("invariant x = x; invariant f(); invariant x < 2;"), false),
            (2, 2)
        );
        let first = with("assume x != 7; invariant x < 2; invariant f();");
        assert!(matches!(failure(&first), (Broken::Invariant(1), 3)));
        let parameters = "ruleset i: 0..1 do invariant (i = 0 | f()) & x < 2; end;";
        assert_eq!(counts(&with(parameters), false), (2, 2));
    }
}

#[test]
fn rules_with_the_lowest_priority_number_fire() {
    let text = "var x: 0..5; startstate x := 0; end;
        rule 2 x < 5 ==> x := x + 1; end; rule 1 x = 2 ==> x := 2; end;";
    assert_eq!(counts(text, false), (3, 3));
}

#[test]
fn orbits_are_counted_once() {
    // Subsets of four elements, of which one orbit for each size.
    let text = "type t: scalarset(4); var a: array [t] of boolean;
        startstate for i: t do a[i] := false; end; end;
        ruleset i: t do rule begin a[i] := !a[i]; end; end;";
    assert_eq!(counts(text, false), (16, 64));
    assert_eq!(counts(text, true), (5, 20));
}

#[test]
fn symmetric_failures_have_runs_of_the_model() {
    let text = "type t: scalarset(3); var a: array [t] of 0..2; last: t;
        startstate for i: t do a[i] := 0; end; undefine last; end;
        ruleset i: t do rule \"up\" a[i] < 2 ==> a[i] := a[i] + 1; last := i; end; end;
        invariant exists i: t do a[i] < 2 end;";
    let (explored, found) = run(text, true);
    assert_eq!(explored.symmetries, 6);
    let steps = found.map(|p| p.steps).unwrap_or_default();
    assert_eq!(steps.len(), 7);
    assert!(steps[1..].iter().all(|s| s.0.starts_with("up (i: t_")), "{steps:?}");
}

/// Orbits of graphs: the number of directed graphs up to isomorphism is known (OEIS A000595).
#[test]
fn relations_have_known_numbers_of_orbits() {
    for (size, orbits) in [(1, 2), (2, 10), (3, 104), (4, 3044)] {
        let text = format!(
            "type t: scalarset({size}); var edge: array [t] of array [t] of boolean;
             startstate for i: t do for j: t do edge[i][j] := false; end; end; end;
             ruleset i: t; j: t do rule begin edge[i][j] := !edge[i][j]; end; end;"
        );
        assert_eq!(counts(&text, true).0, orbits, "{size} elements");
    }
}

/// Orbits of maps of a set into itself, of two scalarsets at once, and of multisets.
#[test]
fn maps_and_multisets_have_known_numbers_of_orbits() {
    // OEIS A001372: maps up to isomorphism.
    for (size, orbits) in [(2, 3), (3, 7), (4, 19)] {
        let text = format!(
            "type t: scalarset({size}); var f: array [t] of t;
             startstate for i: t do f[i] := i; end; end;
             ruleset i: t; j: t do rule begin f[i] := j; end; end;"
        );
        assert_eq!(counts(&text, true).0, orbits, "{size} elements");
    }
    // Matrices of 3 and 3 with entries 0 and 1, up to permutations of rows and columns.
    let text = "type r: scalarset(3); c: scalarset(3); var m: array [r] of array [c] of boolean;
        startstate for i: r do for j: c do m[i][j] := false; end; end; end;
        ruleset i: r; j: c do rule begin m[i][j] := !m[i][j]; end; end;";
    assert_eq!(counts(text, true).0, 36);
    // Multisets of at most two of three elements: of sizes 0, 1, and 2 equal or different.
    let text = "type t: scalarset(3); var n: multiset [2] of t; startstate undefine n; end;
        ruleset i: t do rule multisetcount(k: n, true) < 2 ==> var x: t; begin
        x := i; multisetadd(x, n); end; end;";
    assert_eq!(counts(text, false).0, 10);
    assert_eq!(counts(text, true).0, 4);
}

/// Numbers are from -(2^63 - 1) to 2^63 - 1: the one below marks undefined values, and no operation
/// may give it, neither folded nor at run time.
#[test]
fn the_lowest_number_of_64_bits_is_no_number() {
    let lowest = "-9223372036854775807";
    let head = format!(
        "var x: {lowest}..-9223372036854775800; one: 0..5; m: 0..9223372036854775807; b: boolean;
        startstate x := {lowest}; one := 1; m := 9223372036854775807; end;"
    );
    for value in ["x - 1", "x + -1", "x ^ 1", "x & (-2)", "one << 63", "~m"] {
        let text = format!("{head} rule begin b := ({value}) < 0; end;");
        assert_eq!(fault(&text).0, Fault::Arithmetic, "{value}");
    }
    for value in ["1 << 63", "~9223372036854775807", "-9223372036854775807 - 1"] {
        let text = format!("{head} rule begin b := ({value}) < 0; end;");
        assert_eq!(fault(&text).0, Fault::Arithmetic, "{value}");
    }
    for value in ["x = x", "x < 0", "x + 1 < 0", "(one << 62) > 0", "(one << 64) = 0", "(~x) > 0"] {
        let text = format!("{head} rule begin b := {value}; assert b; end;");
        assert_eq!(counts(&text, false).0, 2, "{value}");
    }
    for text in
        ["const c: -9223372036854775808;", "type t: -9223372036854775808..0;", "const c: 1 << 63;"]
    {
        let mut sources = SourceMap::new();
        let source = sources.add("model.m", text);
        assert!(read(source, text, &Settings::default()).is_err(), "{text}");
    }
}

/// A state is checked when it is found, before a rule fires in a state that is as near.
#[test]
fn the_nearest_failure_comes_first() {
    let text = "var x: 0..9;
ruleset s: 0..1 do startstate x := s; end; end;
rule x = 0 ==> error \"later\"; end;
invariant x != 1;";
    assert_eq!(failure(text), (Broken::Invariant(0), 1));
    let text = "var x: 0..9; startstate x := 0; end;
rule x = 0 ==> x := 1; end; rule x = 0 ==> x := 2; end; rule x = 0 ==> error \"later\"; end;
invariant x != 2;";
    assert_eq!(failure(text), (Broken::Invariant(0), 2));
}

/// A condition `cover` is evaluated in every state, also after it held.
#[test]
fn covers_read_defined_values() {
    let text = "var x: 0..9; startstate x := 0; end; rule undefine x; end; cover x = 0;";
    assert_eq!(fault(text).0, Fault::Undefined);
}

#[test]
fn cached_runs_have_the_effects_of_their_rules() {
    // `x` has 40 values, and its field is wider than a node of the tree of a rule. `s` is undefined
    // or has a value of `y` and one of `x` that is not later than the present one.
    let text = "type pair: record a: 0..3; b: 0..1099511627775; end;
        var x: 0..1099511627775; y: 0..3; s: pair;
        startstate x := 1; y := 0; undefine s; end;
        rule \"double\" x < 549755813888 ==> x := x * 2; end;
        rule \"step\" begin y := (y + 1) % 4; end;
        rule \"take\" var q: pair; begin q.a := y; q.b := x; s := q; end;
        invariant isundefined(s.b) | s.b <= x;";
    let of = |from: u64| (from..=40).map(|n| 4 * (1 + 4 * n)).sum::<u64>();
    let (states, last) = (of(1), of(40));
    assert_eq!(counts(text, false), (states, (states - last) + states + states));
}

/// Fields of three bits, of which some span two words.
#[test]
fn guards_select_rules_by_fields_in_two_words() {
    let text = "type t: 0..29; var a: array [t] of 0..6;
        startstate for i: t do a[i] := 5; end; a[3] := 0; end;
        ruleset i: t do rule a[i] < 3 & !isundefined(a[i]) ==>
        begin a[i] := 5; if i < 29 then a[i + 1] := 1; end; end; end;";
    assert_eq!(counts(text, false), (28, 27));
    let mut sources = SourceMap::new();
    let source = sources.add("model.m", text);
    let model = read(source, text, &Settings::default()).expect("a model");
    let program = compile(&model).expect("a program");
    assert!(program.rules.iter().all(|rule| rule.rest.is_none()), "tables decide the guards");
}

#[test]
fn numbers_near_the_limit_are_ranges_indices_and_bounds_of_loops() {
    for range in
        ["9223372036854775806..9223372036854775807", "-9223372036854775807..-9223372036854775806"]
    {
        let text = format!(
            "type t: {range}; var a: array [t] of 0..2; x: t;
             startstate for i: t do a[i] := 0; x := i; end; end;
             ruleset i: t do rule a[i] < 2 ==> begin a[i] := a[i] + 1; x := i; end; end;
             rule a[x] = 2 ==> begin a[x] := 0; end;"
        );
        let small = text.replace(range, "0..1");
        assert_eq!(counts(&text, false), counts(&small, false));
    }
}

#[test]
fn an_invariant_fails_in_the_first_state_that_changes_what_it_reads() {
    let text = "var x: 0..9; y: 0..9; startstate x := 0; y := 0; end;
        rule x < 9 ==> x := x + 1; end; rule x = 4 & y < 9 ==> y := y + 1; end;
        invariant y < 3; invariant x < 9 | y = 9;";
    assert_eq!(failure(text), (Broken::Invariant(0), 8));
}

/// An error in an assumption is an error, and the path ends in the state before the step. An
/// assumption that is false for some values of its parameters discards, in any order of the values.
#[test]
fn errors_in_assumptions_are_errors() {
    let model = |start: &str, assumptions: &str| {
        format!(
            "var x: 0..3; y: 0..1; a: array [0..1] of 0..3;
             startstate x := 0; {start} end; rule \"inc\" x < 3 ==> x := x + 1; end; {assumptions}"
        )
    };
    assert_eq!(fault(&model("", "assume x = 0 | y = 1;")), (Fault::Undefined, 1));
    assert_eq!(fault(&model("", "assume x < 3 | y = 1;")), (Fault::Undefined, 3));
    assert_eq!(fault(&model("", "assume y = 1;")), (Fault::Undefined, 0));
    assert_eq!(counts(&model("", "assume x = 0; assume x = 0 | y = 1;"), false), (1, 1));
    assert_eq!(fault(&model("", "assume x = 0 | y = 1; assume x = 0;")), (Fault::Undefined, 1));
    for (start, is_error) in
        [("a[0] := 0;", false), ("a[1] := 0;", false), ("a[1] := 3;", true), ("a[0] := 3;", true)]
    {
        let text = model(start, "ruleset i: 0..1 do assume x = 0 | a[i] >= x; end;");
        match is_error {
            true => assert_eq!(fault(&text), (Fault::Undefined, 1), "{start}"),
            false => assert_eq!(counts(&text, false), (1, 1), "{start}"),
        }
    }
}

/// The path to a failure has only rules that may fire: none with a number above the lowest.
#[test]
fn paths_respect_priorities() {
    let text = "var x: 0..3; startstate x := 0; end;
        rule 5 \"later\" x < 3 ==> x := x + 1; end; rule 1 \"first\" x < 2 ==> x := x + 1; end;
        CLAIM";
    let names = |claim: &str| {
        let steps = run(&text.replace("CLAIM", claim), false).1.expect("a path").steps;
        steps.into_iter().map(|s| s.0).collect::<Vec<_>>()
    };
    assert_eq!(names("invariant x < 2;"), ["startstate 1", "first", "first"]);
    assert_eq!(names("invariant x < 3;"), ["startstate 1", "first", "first", "later"]);
    // The error of a rule that may not fire does not happen.
    let text = "var x: 0..3; startstate x := 0; end; rule 5 \"later\" begin error \"no\"; end;
        rule 1 \"first\" begin x := x + 1; end;";
    let (explored, found) = run(text, false);
    let culprit = explored.failure.map(|f| f.culprit);
    assert_eq!(culprit, Some(Culprit::Rule(1)));
    assert_eq!(found.map(|p| p.failure.culprit), culprit);
}

#[test]
fn the_place_of_a_multiset_is_evaluated_once() {
    for statement in
        ["multisetremovepred(i: nets[next()], true);", "x := multisetcount(i: nets[next()], true);"]
    {
        let text = format!(
            "type m: record k: 0..1; end; var nets: array [0..1] of multiset [2] of m; calls: 0..9; x: 0..2;
             function next(): 0..1; begin calls := calls + 1; return calls % 2; end;
             startstate undefine nets; calls := 0; x := 0; end;
             rule calls = 0 ==> begin {statement} end; invariant calls < 2;"
        );
        assert_eq!(counts(&text, false).0, 2, "{statement}");
    }
}

#[test]
fn elements_between_the_members_of_an_index_type_are_no_part_of_an_array() {
    let text = "type A: enum {a1, a2}; B: enum {b1}; C: enum {c1};
        AB: union {A, B}; AC: union {A, C};
        var x, y: array [AC] of boolean; z: AB;
        startstate clear x; for i: AC do y[i] := false; end; end;
        rule clear y; end;
        rule for i: AC do x[i] := false; end; end;
        invariant \"equal\" x = y;";
    assert_eq!(counts(text, false), (1, 2));
}

#[test]
fn a_choice_between_unions_has_the_values_of_both() {
    let text = |body: &str| {
        format!(
            "type A: enum {{a1}}; B: enum {{b1}}; C: enum {{c1, c2, c3, c4}};
            var x: union {{A, B}}; y: union {{B, C}}; f, g: boolean;
            startstate x := a1; y := c4; f := false; undefine g; end;
            rule begin {body} end;"
        )
    };
    assert!(matches!(fault(&text("x := f ? x : y;")), (Fault::OutOfRange(_), 1)));
    assert_eq!(counts(&text("y := b1; x := f ? x : y;"), false).0, 2);
    assert_eq!(counts(&text("g := (f ? x : y) = c4; assert g;"), false).0, 2);
}
