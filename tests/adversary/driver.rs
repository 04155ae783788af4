//! Runs of routes over seeds: comparisons, differences, and the smallest input that shows each.
//!
//! `cargo test --release --test suite adversary::at_volume -- --ignored --nocapture` prints a table
//! of comparisons for each route. `ROUTE` names one route, or a part of its name; `SEED` is the
//! first seed, `CASES` the number of comparisons for each route, `SECONDS` the time for each route,
//! `FORMULAS` the number of formulas for each specification. A difference is shrunk, printed with
//! its seed, and written to the folder `ADVERSARY_FINDINGS` if that is set.
//!
//! A specification is made and answered by the main path once, for all routes on specifications and
//! formulas ([`run_together`]), which run within this process. Each takes one of `PROGRAM` cases by
//! the program as well; with `PROGRAM=1` each takes all by the program, which `ADVERSARY_BINARY`
//! names, and none within this process.

use super::inside::{Inside, subject};
use super::plain::{Difference, Route, judge};
use super::routes::{How, Row, rows};
use super::runs::Folder;
use super::{every_value, layer, plain};
use crate::support::tape::{Tape, shrink};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Numbers of comparisons, by name.
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

/// Returns a number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

/// Formulas for each specification.
pub fn formulas() -> usize {
    number("FORMULAS").map_or(5, |n| n as usize)
}

/// Returns the number of cases of which one is taken by the program; 1: none is taken within this
/// process.
fn by_program() -> u64 {
    number("PROGRAM").unwrap_or(12)
}

/// One case of a route that has cases of its own.
fn case(
    row: &Row,
    seed: u64,
    tapes: &mut [Tape],
    folder: &Folder,
    tally: &mut Tally,
) -> Result<(), String> {
    tally.cases += 1;
    let by_program = seed.is_multiple_of(by_program());
    match &row.how {
        How::EveryValue(family) => every_value::compare(seed, &mut tapes[0], family, folder, tally),
        How::Layer if by_program => layer::compare(row.name, &mut tapes[0], folder, tally),
        How::Layer => layer::compare_within(row.name, &mut tapes[0], tally),
        How::Refused if by_program => plain::rejections(row.name, &mut tapes[0], folder, tally),
        How::Refused => plain::rejections_within(row.name, &mut tapes[0], tally),
        How::Quantities => plain::quantities(row.name, seed, tapes, folder, tally),
        How::Within => plain::answers_within(row.name, seed, tapes, tally),
        How::Plain(_) | How::Elsewhere(_) => Ok(()),
    }
}

/// Returns the tapes of a case: one for the specification, one for each formula.
fn tapes(seed: u64, formulas: usize) -> Vec<Tape> {
    (0..=formulas as u64)
        .map(|i| Tape::new(seed.wrapping_mul(0x1_0001).wrapping_add(i << 48)))
        .collect()
}

/// Runs a comparison; a panic is a difference.
fn catch_panic<T>(run: impl FnOnce() -> Result<T, Difference>) -> Result<T, Difference> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(whole(format!("panic: {}", text.unwrap_or_default())))
    })
}

/// Returns a difference of no formula.
fn whole(text: String) -> Difference {
    Difference { text, formula: None }
}

/// Class of a failure, which a smaller input preserves.
fn shape(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.split(": ")
        .take(2)
        .map(|part| part.chars().filter(|c| !c.is_ascii_digit()).collect::<String>())
        .collect::<Vec<_>>()
        .join(": ")
}

/// Makes a failure small.
fn smaller(
    tapes: &[Tape],
    error: String,
    run: &dyn Fn(&mut [Tape]) -> Result<(), Difference>,
) -> String {
    let again = |tapes: &[Vec<u32>]| {
        let mut tapes: Vec<Tape> = tapes.iter().map(|t| Tape::replay(t.clone())).collect();
        catch_panic(|| run(&mut tapes)).err().map(|e| e.text)
    };
    let wanted = shape(&error);
    let deadline = Instant::now() + Duration::from_secs(number("SHRINK").unwrap_or(40));
    let start: Vec<Vec<u32>> = tapes.iter().map(Tape::choices).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let small = shrink(start, 3000, |tapes| {
        Instant::now() < deadline && again(tapes).is_some_and(|e| shape(&e) == wanted)
    });
    let _ = std::panic::take_hook();
    again(&small).unwrap_or(error)
}

/// Cases that a route makes, however long they take.
const LEAST_CASES: u64 = 4;

/// Limits of a run.
pub struct Extent {
    pub first: u64,
    /// For each route.
    pub comparisons: u64,
    /// For each route.
    pub time: Duration,
    /// Differences after which a route is left.
    pub differences: usize,
    /// Formulas for each specification.
    pub formulas: usize,
}

/// A route that runs.
struct Course {
    row: Row,
    tally: Tally,
    spent: Duration,
    first: u64,
    /// The seed after the last.
    next: u64,
    differences: Vec<String>,
}

impl Course {
    fn goes_on(&self, extent: &Extent) -> bool {
        let in_time = self.spent < extent.time || self.tally.cases < LEAST_CASES;
        self.tally.sum() < extent.comparisons
            && in_time
            && self.differences.len() < extent.differences
    }
    /// Keeps a difference, made small.
    fn differs(&mut self, seed: u64, small: &str) {
        let text = format!("route {}, SEED={seed}\n{small}", self.row.name);
        println!("{text}\n");
        record(&self.row, seed, &text);
        self.differences.push(text);
    }
}

/// Compares by a route that has cases of its own.
fn alone(course: &mut Course, extent: &Extent) {
    let (folder, mut seed) = (Folder::new(), extent.first);
    while course.goes_on(extent) {
        let start = Instant::now();
        let mut tapes = tapes(seed, extent.formulas);
        let found = catch_panic(|| {
            case(&course.row, seed, &mut tapes, &folder, &mut course.tally).map_err(whole)
        });
        if let Err(error) = found {
            let run = |tapes: &mut [Tape]| {
                case(&course.row, seed, tapes, &folder, &mut Tally::default()).map_err(whole)
            };
            let small = smaller(&tapes, error.text, &run);
            course.differs(seed, &small);
        }
        seed += 1;
        course.spent += start.elapsed();
    }
    course.next = seed;
}

/// Runs one route on a case that is read, by the program or within this process.
fn run_route(
    row: &Row,
    inside: &Inside,
    by_program: bool,
    folder: &Folder,
    tally: &mut Tally,
) -> Result<(), Difference> {
    let How::Plain(route) = &row.how else { return Ok(()) };
    catch_panic(|| {
        let found = if by_program {
            Some(route.by_program(&inside.main, folder))
        } else {
            route.answers_within(inside, folder)
        };
        found.map_or(Ok(()), |found| judge(row.name, &inside.main, found, tally))
    })
}

/// Compares by all routes on specifications and formulas: each case is made once.
fn run_together(courses: &mut [Course], extent: &Extent) {
    let (folder, mut seed) = (Folder::new(), extent.first);
    let of = |row: &Row| matches!(&row.how, How::Plain(route) if !route.only_counts());
    loop {
        let active: Vec<usize> =
            (0..courses.len()).filter(|i| courses[*i].goes_on(extent)).collect();
        if active.is_empty() {
            break;
        }
        // Counts need no formulas.
        let count = if active.iter().any(|i| of(&courses[*i].row)) { extent.formulas } else { 0 };
        // Formulas that need other declarations are left out.
        let mut tapes = tapes(seed, 3 * count);
        let mut open: Vec<String> = Vec::new();
        let start = Instant::now();
        let made = catch_panic(|| {
            subject(seed, &mut tapes, count, &mut |why| open.push(why.into())).map_err(whole)
        });
        let shared = start.elapsed() / active.len() as u32;
        for &i in &active {
            let course = &mut courses[i];
            open.iter().for_each(|why| course.tally.open(why, 1));
            course.tally.cases += 1;
            course.next = seed + 1;
            course.spent += shared;
        }
        match made {
            // Of the main path, whatever the route.
            Err(error) => courses[active[0]].differs(seed, &error.text),
            Ok(None) => {}
            Ok(Some(inside)) => active.iter().for_each(|&i| {
                run_alternately(&mut courses[i], (i, seed), &inside, &tapes, &folder)
            }),
        }
        seed += 1;
    }
}

/// Runs one route on a case within this process, and in turn with others by the program.
fn run_alternately(
    course: &mut Course,
    (number, seed): (usize, u64),
    inside: &Inside,
    tapes: &[Tape],
    folder: &Folder,
) {
    let start = Instant::now();
    let has_no_other = matches!(course.row.how, How::Plain(Route::Steps(_, None)));
    let in_turn = (seed + number as u64).is_multiple_of(by_program());
    for by_program in [false, true] {
        if by_program && !in_turn && !has_no_other || !by_program && self::by_program() == 1 {
            continue;
        }
        let Err(error) = run_route(&course.row, inside, by_program, folder, &mut course.tally)
        else {
            continue;
        };
        // One formula that shows the difference remains, with one of its kind.
        let of_formula = error.formula.map(|i| {
            let tape = inside.main.tapes[i];
            let mut kept = vec![tapes[0].clone()];
            kept.resize(if tape.is_multiple_of(3) { 3 } else { 1 }, Tape::replay(Vec::new()));
            kept.push(tapes[tape].clone());
            kept
        });
        let run = |tapes: &mut [Tape]| match subject(seed, tapes, tapes.len(), &mut |_| ())
            .map_err(whole)?
        {
            Some(inside) => {
                run_route(&course.row, &inside, by_program, folder, &mut Tally::default())
            }
            None => Ok(()),
        };
        let small = smaller(&of_formula.unwrap_or_else(|| tapes.to_vec()), error.text, &run);
        let how = if by_program { "by the program" } else { "within the process" };
        course.differs(seed, &format!("{how}: {small}"));
    }
    course.spent += start.elapsed();
}

/// Writes a difference to the folder of findings, if there is one.
fn record(row: &Row, seed: u64, text: &str) {
    let Some(folder) = std::env::var_os("ADVERSARY_FINDINGS") else { return };
    let name =
        format!("{}-{seed}.txt", row.name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    let _ = std::fs::write(std::path::Path::new(&folder).join(name), text);
}

/// Runs on a large stack.
fn deeply(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(512 << 20)
            .spawn_scoped(scope, run)
            .expect("a thread");
        thread.join().expect("the routes catch panics");
    });
}

/// Runs routes and prints the table: the routes with differences.
pub fn table(rows: Vec<Row>, extent: &Extent) -> Vec<String> {
    let course = |row| Course {
        row,
        tally: Tally::default(),
        spent: Duration::ZERO,
        first: extent.first,
        next: extent.first,
        differences: Vec::new(),
    };
    let all = rows.into_iter().filter(|r| !matches!(r.how, How::Elsewhere(_))).map(course);
    let (mut plain, own): (Vec<Course>, Vec<Course>) =
        all.partition(|c| matches!(c.row.how, How::Plain(_)));
    println!(
        "| route | seeds | cases | comparisons | open | differences | seconds |\n|---|---|---|---|---|---|---|"
    );
    let mut failed = Vec::new();
    deeply(|| run_together(&mut plain, extent));
    failed.extend(plain.iter().filter_map(report));
    for mut course in own {
        deeply(|| alone(&mut course, extent));
        failed.extend(report(&course));
    }
    failed
}

/// Prints the line of a route. Returns the problem, if there is one.
fn report(course: &Course) -> Option<String> {
    let Course { row, tally, spent, first, next, differences } = course;
    let name = row.name;
    let detail = if tally.comparisons.len() > 1 {
        format!(" {:?}", tally.comparisons)
    } else {
        String::new()
    };
    println!(
        "| {name} | {first}..{next} | {} | {}{detail} | {:?} | {} | {:.0} |",
        tally.cases,
        tally.sum(),
        tally.open,
        differences.len(),
        spent.as_secs_f64()
    );
    let idle = tally.sum() == 0 && tally.cases >= LEAST_CASES;
    let text = || {
        format!(
            "{name}: {} differences, {} comparisons\n{}",
            differences.len(),
            tally.sum(),
            differences.join("\n")
        )
    };
    (!differences.is_empty() || idle).then(text)
}

/// Returns the routes that the environment names, or all.
pub fn chosen_routes() -> Vec<Row> {
    let wanted = std::env::var("ROUTE").unwrap_or_default();
    rows().into_iter().filter(|r| r.name.contains(&wanted)).collect()
}
