//! Random models from the productions of the grammar ([`generator`]), by three routes: the search
//! of the language with and without symmetries, and the groups of the model.
//!
//! A failure prints its seed; `SEED=17 cargo test -p mu-check-murphi --test random` replays it.
//! `MURPHI_OUT=DIR COUNT=10000 SEED=0 cargo test -p mu-check-murphi --test random -- --ignored`
//! writes models with their answers to a folder, for a comparison with other tools
//! (results/murphi.md).

mod by_groups;
mod generator;

use by_groups::by_groups;
use mu_base::limits::{Budget, Limits};
use mu_base::random::Random;
use mu_base::{SourceMap, Stop};
use mu_murphi::model::ProtocolModel;
use mu_murphi::search::{Broken, Deadlocks, Explored, SearchOptions, explore};
use mu_murphi::{Settings, compile, read};
use std::collections::{BTreeMap, BTreeSet};

/// Limit on the states of a model that is compared.
const MOST: u64 = 3_000;

/// Answer for a model.
#[derive(Debug, PartialEq)]
struct Answer {
    verdict: &'static str,
    states: u64,
    rules: u64,
    /// Number of states in all orbits of the stored states.
    all_states: u64,
    /// True if a scalarset is no symmetry.
    asymmetric: bool,
}

fn search_text(text: &str, symmetry: bool, deadlocks: Deadlocks) -> Result<Option<Answer>, String> {
    let mut sources = SourceMap::new();
    let source = sources.add("model", text);
    let typed = read(source, text, &Settings::default()).map_err(|e| e.render(&sources))?;
    let program = compile(&typed).map_err(|e| e.render(&sources))?;
    let options = SearchOptions { symmetry, deadlocks, checks: true };
    let budget = Budget::new(Limits { max_states: Some(MOST), ..Limits::default() });
    let found = explore(&typed, &program, options, &budget, &mut |_, _| {});
    if found.failure.is_none() && found.stop != Stop::Complete {
        return Ok(None);
    }
    Ok(Some(Answer {
        verdict: verdict(&found),
        states: found.states,
        rules: found.rules,
        all_states: found.all_states(&typed, &program),
        asymmetric: !found.asymmetries.is_empty(),
    }))
}

fn verdict(found: &Explored) -> &'static str {
    match found.failure.as_ref().map(|f| &f.broken) {
        Some(Broken::Invariant(_)) => "invariant",
        Some(Broken::Liveness(_)) => "liveness",
        Some(Broken::Deadlock) => "deadlock",
        Some(Broken::Fault(..)) => "error",
        None if found.uncovered.is_empty() && found.uncovered_claims.is_empty() => "ok",
        None => "cover",
    }
}

/// Returns the states and steps by the groups of a model; `None` if a step shows a failure.
fn by_groups_of(text: &str) -> Option<(u64, u64)> {
    let mut sources = SourceMap::new();
    let source = sources.add("model", text);
    by_groups(&ProtocolModel::new(read(source, text, &Settings::default()).ok()?).ok()?)
}

/// Compares the routes on a model. Returns the verdict, `None` if it is too large.
fn compare(seed: u64, text: &str) -> Option<&'static str> {
    let fail = |what: String| -> ! { panic!("seed {seed}: {what}\n{text}") };
    let search = |symmetry| match search_text(text, symmetry, Deadlocks::Off) {
        Ok(answer) => answer,
        Err(error) => fail(error),
    };
    let whole = search(false)?;
    let reduced = search(true)?;
    let fails = |a: &Answer| !["ok", "cover"].contains(&a.verdict);
    if fails(&whole) != fails(&reduced) || reduced.states > whole.states {
        fail(format!("{whole:?} without symmetries, {reduced:?} with them"));
    }
    if whole.states == 0 {
        // The assumptions discard all start states.
        return None;
    }
    if !fails(&whole) || whole.verdict == "liveness" {
        let found = by_groups_of(text);
        let discards = text.contains("assume");
        let expected =
            (whole.states, if discards { found.map_or(0, |f| f.1) } else { whole.rules });
        if found != Some(expected) {
            fail(format!("{found:?} by groups, {whole:?}"));
        }
    } else if let Some(found) = by_groups_of(text) {
        fail(format!("{found:?} by groups, {whole:?}"));
    }
    let formatted = mu_murphi::format::format(text);
    if !mu_murphi::format::is_same(text, &formatted) {
        fail("the formatter changes a token".into());
    }
    Some(whole.verdict)
}

/// Compares the search with symmetries to the one without, in models with loops that depend on the
/// order of elements, with both definitions of a deadlock. Returns the number of models that lose a
/// symmetry.
fn asymmetric(seeds: std::ops::Range<u64>) -> usize {
    let mut found = 0;
    for seed in seeds {
        let text = generator::ordered_model(&mut Random::new(seed)).text;
        for deadlocks in [Deadlocks::Stuttering, Deadlocks::Stuck] {
            let search = |symmetry| {
                search_text(&text, symmetry, deadlocks)
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}"))
            };
            let (Some(whole), Some(reduced)) = (search(false), search(true)) else { continue };
            let fails = |a: &Answer| !["ok", "cover"].contains(&a.verdict);
            // The first failure depends on the order of the search.
            let is_equal = match (fails(&whole), fails(&reduced)) {
                (true, true) => true,
                (false, false) => whole.verdict == reduced.verdict,
                _ => false,
            };
            assert!(is_equal, "seed {seed}, {deadlocks:?}: {whole:?}, {reduced:?}\n{text}");
            if !fails(&whole) {
                assert_eq!(whole.states, reduced.all_states, "seed {seed}\n{text}");
            }
            found += usize::from(reduced.asymmetric);
        }
    }
    found
}

#[test]
fn models_that_depend_on_an_order_keep_their_answers() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 2_000_000..2_000_300,
    };
    let many = seeds.end - seeds.start > 1;
    let found = asymmetric(seeds);
    assert!(!many || found > 5, "{found} models depend on an order");
}

/// Liveness of each element of a scalarset has one answer with and without symmetries.
#[test]
fn liveness_of_elements_agrees() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 4_000_000..4_001_000,
    };
    let many = seeds.end - seeds.start > 1;
    let mut verdicts = BTreeMap::new();
    for seed in seeds {
        let text = generator::live_model(&mut Random::new(seed)).text;
        let search = |symmetry| {
            search_text(&text, symmetry, Deadlocks::Off)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"))
        };
        let (Some(whole), Some(reduced)) = (search(false), search(true)) else { continue };
        assert_eq!(whole.verdict, reduced.verdict, "seed {seed}\n{text}");
        *verdicts.entry(whole.verdict).or_insert(0) += 1;
    }
    for verdict in ["ok", "liveness"] {
        let found = verdicts.get(verdict).copied().unwrap_or(0);
        assert!(!many || found > 100, "{verdicts:?}");
    }
}

/// `COUNT=20000 cargo test --release -p mu-check-murphi --test random -- --ignored volume`
#[test]
#[ignore = "runs for minutes"]
fn volume_of_models_that_depend_on_an_order() {
    let count: u64 = std::env::var("COUNT").map_or(20_000, |c| c.parse().expect("a number"));
    println!("{} models lose a symmetry", asymmetric(3_000_000..3_000_000 + count));
}

/// Productions that the models must have.
const FEATURES: &str = "const enum scalarset array record function procedure startstate rule \
    ruleset guard invariant cover liveness assume call ?: + - * / % comparison equality & | -> ! \
    isundefined forall exists bounds clear undefine if elsif else for switch alias error assert \
    while";

#[test]
fn random_models_agree_by_three_routes() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..400,
    };
    let many = seeds.end - seeds.start > 1;
    let (mut features, mut verdicts) = (BTreeSet::new(), BTreeSet::new());
    let mut compared = 0;
    for seed in seeds {
        let model = generator::model(&mut Random::new(seed));
        if let Some(verdict) = compare(seed, &model.text) {
            compared += 1;
            verdicts.insert(verdict);
            features.extend(model.features);
        }
    }
    if many {
        let missing: Vec<&str> =
            FEATURES.split_whitespace().filter(|f| !features.contains(f)).collect();
        assert!(missing.is_empty(), "never generated: {missing:?}");
        assert!(compared > 200, "{compared} models");
        for verdict in ["ok", "invariant", "error", "cover", "liveness"] {
            assert!(verdicts.contains(verdict), "no model with the verdict {verdict}");
        }
    }
}

/// Writes models and answers.
#[test]
#[ignore = "writes files for other tools"]
fn write_random_models() {
    let folder = std::env::var("MURPHI_OUT").expect("MURPHI_OUT is a folder");
    let count: u64 = std::env::var("COUNT").map_or(100, |c| c.parse().expect("a number"));
    let mut lines = String::new();
    let mut written = 0;
    let mut seed: u64 = std::env::var("SEED").map_or(1_000_000, |s| s.parse().expect("a number"));
    while written < count {
        seed += 1;
        let model = generator::model(&mut Random::new(seed));
        let deadlocks = if seed.is_multiple_of(2) { Deadlocks::Stuttering } else { Deadlocks::Off };
        let Ok(Some(answer)) = search_text(&model.text, false, deadlocks) else { continue };
        let Ok(Some(reduced)) = search_text(&model.text, true, deadlocks) else { continue };
        let path = std::path::Path::new(&folder).join(format!("m{seed}.m"));
        std::fs::write(path, &model.text).expect("it is written");
        let word = if seed.is_multiple_of(2) { "stuttering" } else { "off" };
        lines += &format!(
            "m{seed}\t{word}\t{}\t{}\t{}\t{}\t{}\n",
            answer.verdict, answer.states, answer.rules, reduced.verdict, reduced.states
        );
        written += 1;
    }
    std::fs::write(std::path::Path::new(&folder).join("answers.tsv"), lines).expect("written");
}
