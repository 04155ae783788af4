//! Adversarial tests: generators driven by the grammar, and every route of the program compared
//! with the main path.

pub mod builtins;
pub mod coverage;
pub mod data;
pub mod driver;
pub mod every_value;
pub mod formula;
pub mod grammar;
pub mod inside;
pub mod layer;
mod lists;
pub mod parameters;
pub mod plain;
pub mod process;
pub mod refused;
pub mod routes;
pub mod runs;
mod small;
pub mod steps;
pub mod systems;
pub mod theory;
pub mod together;

/// Every choice point of the grammar and every built-in operation is generated.
#[test]
fn every_production_and_operation_is_generated() {
    let run = || {
        let seeds =
            std::env::var("ADVERSARY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
        let coverage = coverage::measure(0..seeds);
        println!("{}\n{:?}", coverage.report(), coverage.reasons);
        let missing = coverage.missing();
        assert!(missing.is_empty(), "{} never generated:\n{}", missing.len(), missing.join("\n"));
        assert!(
            coverage.refused * 10 < coverage.texts,
            "{} of {} texts are refused",
            coverage.refused,
            coverage.texts
        );
    };
    let run = std::thread::Builder::new().stack_size(256 << 20).spawn(run).expect("a thread");
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Limits of a run, if the environment sets no others.
fn extent(comparisons: u64, time: std::time::Duration, differences: u64) -> driver::Extent {
    driver::Extent {
        first: driver::number("SEED").unwrap_or(0),
        comparisons: driver::number("CASES").unwrap_or(comparisons),
        time: driver::number("SECONDS").map_or(time, std::time::Duration::from_secs),
        differences: driver::number("DIFFERENCES").unwrap_or(differences) as usize,
        formulas: driver::formulas(),
    }
}

/// Runs routes for a short time.
fn briefly(comparisons: u64, wanted: impl Fn(&routes::Row) -> bool) {
    let extent = extent(comparisons, std::time::Duration::from_millis(600), 1);
    let failed =
        driver::table(driver::chosen_routes().into_iter().filter(wanted).collect(), &extent);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_route_agrees_with_the_main_path() {
    briefly(120, |row| !matches!(row.how, routes::How::EveryValue(_)));
}

#[test]
fn every_value_agrees_with_instances() {
    briefly(60, |row| matches!(row.how, routes::How::EveryValue(_)));
}

/// Runs the routes at length; see [`driver`] for what the environment sets.
#[test]
#[ignore = "runs at length"]
fn at_volume() {
    let failed = driver::table(
        driver::chosen_routes(),
        &extent(100_000, std::time::Duration::from_secs(600), 5),
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Every directive of the parameter layer and every operator of its expressions is generated.
#[test]
fn every_directive_is_generated() {
    let texts: Vec<String> = (0..300)
        .map(|seed| layer::expansion(&mut crate::support::tape::Tape::new(seed)).text)
        .collect();
    let operators = layer::operators();
    assert!(operators.len() > 12, "{operators:?}");
    let wanted = layer::FORMS
        .iter()
        .map(|f| f.to_string())
        .chain(operators.iter().map(|op| format!(" {op} ")));
    let missing: Vec<String> =
        wanted.filter(|w| !texts.iter().any(|t| t.contains(w.as_str()))).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}
