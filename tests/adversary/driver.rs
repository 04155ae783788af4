//! Runs of routes over seeds: comparisons, differences, and the smallest input that shows each.
//!
//! `cargo test --release --test suite adversary::at_volume -- --ignored --nocapture` prints a table
//! of comparisons for each route. `ROUTE` names one route, or a part of its name; `SEED` is the
//! first seed, `CASES` the number of comparisons for each route, `SECONDS` the time for each route.
//! A difference is shrunk, printed with its seed, and written to the folder `ADVERSARY_FINDINGS` if
//! that is set.

use super::routes::{How, Row, rows};
use super::runs::Folder;
use super::{every_value, layer, plain};
use crate::support::tape::{Tape, shrink};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What was compared, by name.
#[derive(Default, Debug)]
pub struct Tally {
    pub comparisons: BTreeMap<String, u64>,
    /// Answers that a limit left open, and inputs that the main path refuses.
    pub open: BTreeMap<String, u64>,
    /// Cases.
    pub cases: u64,
}

impl Tally {
    pub fn count(&mut self, what: &str, n: u64) {
        if n > 0 {
            *self.comparisons.entry(what.to_string()).or_default() += n;
        }
    }
    pub fn open(&mut self, what: &str, n: u64) {
        if n > 0 {
            *self.open.entry(what.to_string()).or_default() += n;
        }
    }
    pub fn sum(&self) -> u64 {
        self.comparisons.values().sum()
    }
}

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

/// One case of a route.
fn case(row: &Row, seed: u64, tapes: &mut [Tape], folder: &Folder, tally: &mut Tally) -> Result<(), String> {
    tally.cases += 1;
    match &row.how {
        How::EveryValue(family) => every_value::compare(seed, &mut tapes[0], family, folder, tally),
        How::Plain(route) => plain::compare(row.name, route, seed, tapes, folder, tally),
        How::Layer => layer::compare(row.name, &mut tapes[0], folder, tally),
        How::Refused => plain::refused(row.name, &mut tapes[0], folder, tally),
        How::Quantities => plain::quantities(row.name, seed, tapes, folder, tally),
        How::Within => plain::within(row.name, seed, tapes, tally),
        How::Elsewhere(_) => Ok(()),
    }
}

/// The tapes of a case: one for the specification, one for each formula.
fn tapes(seed: u64) -> Vec<Tape> {
    (0..13u64).map(|i| Tape::new(seed.wrapping_mul(0x1_0001).wrapping_add(i << 48))).collect()
}

fn guarded(row: &Row, seed: u64, tapes: &mut [Tape], folder: &Folder, tally: &mut Tally) -> Result<(), String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(row, seed, tapes, folder, tally))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// The shape of a failure, which a smaller input keeps.
fn shape(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.split(": ").take(2).map(|part| part.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()).collect::<Vec<_>>().join(": ")
}

/// Makes a failure small.
fn smaller(row: &Row, seed: u64, tapes: &[Tape], error: String) -> String {
    let folder = Folder::new();
    let run = |tapes: &[Vec<u32>]| {
        let mut tapes: Vec<Tape> = tapes.iter().map(|t| Tape::replay(t.clone())).collect();
        guarded(row, seed, &mut tapes, &folder, &mut Tally::default()).err()
    };
    let wanted = shape(&error);
    let deadline = Instant::now() + Duration::from_secs(number("SHRINK").unwrap_or(40));
    let start: Vec<Vec<u32>> = tapes.iter().map(Tape::used).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let small = shrink(start, 3000, |tapes| Instant::now() < deadline && run(tapes).is_some_and(|e| shape(&e) == wanted));
    let _ = std::panic::take_hook();
    run(&small).unwrap_or(error)
}

/// Cases that a route makes, however long they take.
const LEAST_CASES: u64 = 4;

/// How far a run goes.
pub struct Extent {
    pub first: u64,
    pub comparisons: u64,
    pub time: Duration,
    /// Differences after which a route is left.
    pub differences: usize,
}

/// Compares by one route: the tally, the seed after the last, and differences.
pub fn run(row: &Row, extent: &Extent) -> (Tally, u64, Vec<String>) {
    let (start, folder) = (Instant::now(), Folder::new());
    let (mut tally, mut seed, mut differences) = (Tally::default(), extent.first, Vec::new());
    let goes_on = |tally: &Tally| tally.sum() < extent.comparisons && (start.elapsed() < extent.time || tally.cases < LEAST_CASES);
    while goes_on(&tally) && differences.len() < extent.differences {
        let mut tapes = tapes(seed);
        if let Err(error) = guarded(row, seed, &mut tapes, &folder, &mut tally) {
            let small = smaller(row, seed, &tapes, error);
            let text = format!("route {}, SEED={seed}\n{small}", row.name);
            println!("{text}\n");
            record(row, seed, &text);
            differences.push(text);
        }
        seed += 1;
    }
    (tally, seed, differences)
}

/// Writes a difference to the folder of findings, if there is one.
fn record(row: &Row, seed: u64, text: &str) {
    let Some(folder) = std::env::var_os("ADVERSARY_FINDINGS") else { return };
    let name = format!("{}-{seed}.txt", row.name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let _ = std::fs::write(std::path::Path::new(&folder).join(name), text);
}

/// Runs routes on a large stack and prints the table: the routes with differences.
pub fn table(rows: Vec<Row>, extent: &dyn Fn(&Row) -> Extent) -> Vec<String> {
    let mut failed = Vec::new();
    println!("| route | seeds | cases | comparisons | open | differences | seconds |\n|---|---|---|---|---|---|---|");
    for row in rows.into_iter().filter(|r| !matches!(r.how, How::Elsewhere(_))) {
        let (extent, start) = (extent(&row), Instant::now());
        let first = extent.first;
        let name = row.name;
        let (tally, next, differences) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(512 << 20).spawn_scoped(scope, || run(&row, &extent)).expect("a thread");
            thread.join().expect("the routes catch panics")
        });
        let detail = if tally.comparisons.len() > 1 { format!(" {:?}", tally.comparisons) } else { String::new() };
        println!(
            "| {name} | {first}..{next} | {} | {}{detail} | {:?} | {} | {:.0} |",
            tally.cases,
            tally.sum(),
            tally.open,
            differences.len(),
            start.elapsed().as_secs_f64()
        );
        if !differences.is_empty() || tally.sum() == 0 && tally.cases >= LEAST_CASES {
            failed.push(format!("{name}: {} differences, {} comparisons\n{}", differences.len(), tally.sum(), differences.join("\n")));
        }
    }
    failed
}

/// The routes that the environment names, or all.
pub fn chosen() -> Vec<Row> {
    let wanted = std::env::var("ROUTE").unwrap_or_default();
    rows().into_iter().filter(|r| r.name.contains(&wanted)).collect()
}
