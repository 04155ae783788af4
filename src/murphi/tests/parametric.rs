//! Systems of any number of processes that models are translated to, with the size of the model as
//! their number of processes: the same failures as the search of the language, and the same states.

// Tests of other files use the rest of it.
#[allow(dead_code)]
mod generator;

use mu_base::limits::{Budget, Limits};
use mu_base::random::Random;
use mu_base::{SourceId, SourceMap, Stop};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::system::System;
use mu_murphi::parametric::{parametric, scalarset_of_size};
use mu_murphi::search::{Broken, Deadlocks, SearchOptions, explore};
use mu_murphi::typed::{Model, TypeId, TypeKind};
use mu_murphi::{Settings, compile, read};

/// Limit on the states of a model that is compared.
const MOST: u64 = 2_000;

fn read_model(text: &str) -> Model {
    let mut sources = SourceMap::new();
    let source = sources.add("model", text);
    read(source, text, &Settings::default()).unwrap_or_else(|e| panic!("{}", e.render(&sources)))
}

/// Returns true if the model fails, and its number of states; `None` if it is too large.
fn search_model(model: &Model) -> Option<(bool, u64)> {
    let program = compile(model).expect("a program");
    let options =
        SearchOptions { symmetry: false, deadlocks: Deadlocks::Off, ..SearchOptions::default() };
    let budget = Budget::new(Limits { max_states: Some(MOST), ..Limits::default() });
    let found = explore(model, &program, options, &budget, &mut |_, _| {});
    let fails = match &found.failure {
        Some(failure) => !matches!(failure.broken, Broken::Liveness(_)),
        None if found.stop != Stop::Complete => return None,
        None => false,
    };
    Some((fails, found.states))
}

/// Returns true if a claim of an instance fails, and its number of states.
fn instance(system: &System, processes: u32) -> Option<(bool, u64)> {
    let machine = Machine::new(system, processes, Memory::Sc, Setup::default()).ok()?;
    let found = machine.reach(20_000, true, &Budget::default()).ok()?;
    (found.violation.is_some() || found.complete)
        .then_some((found.violation.is_some(), found.states.len() as u64))
}

/// Returns the scalarsets of a model with their sizes.
fn scalarsets(model: &Model) -> Vec<(TypeId, u32)> {
    let all = model.types.all.iter().enumerate();
    all.filter_map(|(at, ty)| match ty.kind {
        TypeKind::Scalarset { size, .. } => Some((TypeId::new(at), size)),
        _ => None,
    })
    .collect()
}

/// Compares a model with its systems. Counts scalarsets, compared ones, those that fail, those with
/// equal answers, and those with equal numbers of states.
fn compare(text: &str, seed: u64, counts: &mut [usize; 6]) {
    let model = read_model(text);
    for (node, size) in scalarsets(&model) {
        counts[0] += 1;
        let file = match parametric(&model, node) {
            Ok(file) => file,
            Err(why) => {
                if std::env::var("REASONS").is_ok() {
                    println!("seed {seed}: {}", why.message);
                }
                continue;
            }
        };
        let system = mu_cubicle::check(&file)
            .unwrap_or_else(|e| panic!("seed {seed}: {}\n{file}\n{text}", e.message));
        let mut sources = SourceMap::new();
        let printed = file.to_string();
        let source = sources.add("system", printed.as_str());
        let again = mu_cubicle::parse(source, &printed).and_then(|f| mu_cubicle::check(&f));
        assert_eq!(again.as_ref().ok(), Some(&system), "seed {seed}\n{printed}\n{text}");
        let Some((fails, states)) = search_model(&model) else { continue };
        let Some((is_unsafe, found)) = instance(&system, size) else { continue };
        counts[1] += 1;
        assert!(!fails || is_unsafe, "seed {seed}: the system has no failure\n{file}\n{text}");
        counts[2] += usize::from(fails);
        counts[3] += usize::from(fails == is_unsafe);
        if !is_unsafe && !printed.contains("_known") && !printed.contains("Failed") {
            // The state before the choice of a start state.
            let found = found - u64::from(printed.contains("Started"));
            counts[4] += 1;
            counts[5] += usize::from(states == found);
            assert!(found >= states, "seed {seed}: {found} states, {states}\n{file}\n{text}");
        }
    }
}

#[test]
fn systems_have_the_failures_of_random_models() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok()) {
        Some(seed) => {
            seed..seed + std::env::var("COUNT").map_or(1, |c| c.parse().expect("a number"))
        }
        None => 0..400,
    };
    let mut counts = [0; 6];
    for seed in seeds {
        compare(&generator::model(&mut Random::new(seed)).text, seed, &mut counts);
    }
    let [all, compared, failing, equal, counted, same] = counts;
    println!(
        "{all} scalarsets, {compared} compared, {failing} fail, {equal} equal; {same} of {counted} with the same states"
    );
    if all > 300 {
        assert!(compared > 250 && failing > 100 && equal + 20 > compared, "{counts:?}");
        assert!(counted > 100 && same + 20 > counted, "{counts:?}");
    }
}

/// A constant that is more than the size of one scalarset has no system.
#[test]
fn a_size_has_one_use() {
    let text = |more: &str| {
        format!(
            "const N: 2; {more} type S: scalarset(N); var on: array [S] of boolean;
             startstate begin for s: S do on[s] := false; end; end;
             ruleset s: S do rule begin on[s] := !on[s]; end; end;"
        )
    };
    for (more, is_size) in [
        ("", true),
        ("type T: scalarset(N);", false),
        ("type T: 0..N;", false),
        ("const M: N / 5;", false),
        ("const M: 3;", true),
    ] {
        let text = text(more);
        let model = |size: i64| {
            let settings = Settings { constants: vec![("N".into(), size)], ..Settings::default() };
            read(SourceId::FIRST, &text, &settings).expect("a model")
        };
        let (two, three) = (model(2), model(3));
        let node = scalarset_of_size("N", (SourceId::FIRST, &text), (&two, &three));
        assert_eq!(node.is_ok(), is_size, "{more}");
    }
}

/// Statements of a rule and of functions with a failure for every size: a system without a failure
/// would be a wrong proof.
#[test]
fn failures_of_statements_are_no_proofs() {
    for (functions, rule) in [
        // The last iteration defines the local.
        ("", "begin for s: S do t := true; end; if !isundefined(t) then error \"\"; end;"),
        ("", "begin for s: S do t := true; end; g := t; if !isundefined(g) then error \"\"; end;"),
        // A reference to a local of the caller.
        (
            "procedure p(var x: boolean); begin for s: S do x := true; end; end;",
            "begin t := false; u := false; p(t); p(u); if u then error \"\"; end;",
        ),
        // An inner loop reads what other iterations write.
        (
            "",
            "begin for s: S do on[s] := true; end;
             for s: S do for t: S do two[s][t] := on[t]; end; on[s] := false; end;
             for s: S do for t: S do if !two[s][t] then error \"\"; end; end; end;",
        ),
        // Conditions with effects.
        (
            "function f(s: S): boolean; begin flag := true; return true; end;",
            "begin if forall s: S do f(s) end & flag then error \"\"; end;",
        ),
        (
            "function f(var x: boolean): boolean; begin x := true; return true; end;",
            "begin t := false; if forall s: S do f(t) end & t then error \"\"; end;",
        ),
        // A printed value is evaluated.
        ("", "begin n := 0; put 1 / n;"),
    ] {
        let text = format!(
            "const N: 2; type S: scalarset(N);
             var on: array [S] of boolean; two: array [S] of array [S] of boolean;
             flag, g: boolean; n: 0..1; {functions}
             startstate begin flag := false; undefine g; n := 0;
             for s: S do on[s] := false; for t: S do two[s][t] := false; end; end; end;
             rule var t: boolean; u: boolean; {rule} end;"
        );
        expect_no_proof(&text);
    }
}

/// A part of a quantifier without a form in a guard is left out. What follows keeps its locals.
#[test]
fn a_condition_that_is_left_out_has_no_effect() {
    expect_no_proof(
        "const N: 2; type S: scalarset(N);
         var x: array [S] of boolean; next: array [S] of S; owner: S;
         function f(s: S): boolean;
         begin if s = owner then return x[next[s]] | !x[s]; end; return true; end;
         ruleset s: S do startstate
           for t: S do x[t] := false; next[t] := t; end; owner := s;
         end; end;
         ruleset s: S do alias a: x[s] do
           rule forall t: S do f(t) end ==> begin a := true; end;
         end; end;
         invariant forall s: S do !x[s] end;",
    );
}

/// Expects that a model fails, and its system, if it has one.
fn expect_no_proof(text: &str) {
    let model = read_model(text);
    let (fails, _) = search_model(&model).expect("a small model");
    assert!(fails, "{text}");
    let (node, size) = scalarsets(&model)[0];
    let Ok(file) = parametric(&model, node) else { return };
    let system = mu_cubicle::check(&file).expect("a system");
    let (is_unsafe, _) = instance(&system, size).expect("a small instance");
    assert!(is_unsafe, "{file}\n{text}");
}
