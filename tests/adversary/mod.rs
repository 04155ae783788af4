//! The adversary: generators that the grammar drives, and every route of the program compared with
//! the main path.

pub mod builtins;
pub mod coverage;
pub mod data;
pub mod formula;
pub mod grammar;
pub mod parameters;
pub mod process;
pub mod refused;
pub mod theory;

/// Every choice point of the grammar and every built-in operation is generated.
#[test]
fn every_production_and_operation_is_generated() {
    let run = || {
        let seeds = std::env::var("ADVERSARY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
        let coverage = coverage::measure(0..seeds);
        println!("{}\n{:?}", coverage.report(), coverage.reasons);
        let missing = coverage.missing();
        assert!(missing.is_empty(), "{} never generated:\n{}", missing.len(), missing.join("\n"));
        assert!(coverage.refused * 10 < coverage.texts, "{} of {} texts are refused", coverage.refused, coverage.texts);
    };
    let run = std::thread::Builder::new().stack_size(256 << 20).spawn(run).expect("a thread");
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}
