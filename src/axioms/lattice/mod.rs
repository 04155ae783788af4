//! Comparison of memory models by strength, up to a bound.
//!
//! For every program up to a number of operations ([`enumerate`]), all combinations of values that
//! its reads may take and of last writes form *tests*. Each model allows a test or not (for some
//! coherence order). A model is stronger than another if the other allows every test that it
//! allows. Otherwise a smallest test that shows the difference is stored. The result holds for the
//! enumerated programs only.

pub mod draw;
pub mod enumerate;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mu_base::{Budget, Diagnostic, Stop};

use crate::cat::{CatModel, Session, each_order};
use crate::execution::{SetId, Skeleton};
use crate::history::History;
use crate::models::Dialect;
use crate::relation::Relation;
use enumerate::Alphabet;

/// The bound of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Number of operations of a program, including fences, for programs with acquires, releases
    /// and fences.
    pub operations: usize,
    /// Number of operations of a program of plain reads and writes.
    pub plain: usize,
    /// Number of locations of a program.
    pub locations: u32,
    /// Number of worker threads.
    pub threads: usize,
}

/// A model with its name and dialect.
#[derive(Clone, Copy, Debug)]
pub struct LatticeModel<'m> {
    /// Its name.
    pub name: &'m str,
    /// The model.
    pub model: &'m CatModel,
    /// Its dialect.
    pub dialect: Dialect,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Lattice {
    /// The models' names.
    pub names: Vec<String>,
    /// `separating[a][b]`: a smallest test that `a` allows and `b` forbids; `None` if `b` allows
    /// every test that `a` allows.
    pub separating: Vec<Vec<Option<History>>>,
    /// Number of programs.
    pub programs: usize,
    /// Number of tests.
    pub tests: usize,
    /// The bound that was used.
    pub bound: Bound,
    /// The stop reason.
    pub stop: Stop,
}

/// A rank in the order of tests: small programs first, and among programs of one size those without
/// final values.
type TestRank = [usize; 4];

/// A test with its rank.
type RankedTest = Option<(TestRank, History)>;

struct LatticeWorker<'m> {
    candidates: &'m [LatticeModel<'m>],
    sessions: Vec<Session<'m>>,
    found: Vec<RankedTest>,
    tests: usize,
}

/// Number of programs between two checks of the memory, and of the time while they are enumerated.
const CHECKED_PROGRAMS: usize = 1024;

/// Compares models on all programs within a bound, size by size: differences found so far are part
/// of the result if a limit ends the comparison.
pub fn compare(
    candidates: &[LatticeModel<'_>],
    bound: Bound,
    budget: &Budget,
) -> Result<Lattice, Diagnostic> {
    let k = candidates.len();
    let mut all: Vec<RankedTest> = vec![None; k * k];
    let (mut count, mut tests) = (0, 0);
    let mut stop = Stop::Complete;
    for n in 2..=bound.operations.max(bound.plain) {
        let mut programs = Vec::new();
        let mut record_test = |p: &History| {
            programs.push(p.clone());
            if programs.len() % CHECKED_PROGRAMS == 0
                && let Err(why) = budget.check(0).and_then(|()| budget.check_memory())
            {
                stop = why;
            }
            stop == Stop::Complete
        };
        let marked = n <= bound.operations;
        let alphabet = Alphabet { marks: marked, fences: marked, locations: bound.locations };
        enumerate::programs(n, alphabet, &mut record_test);
        if stop == Stop::Complete {
            let judged;
            (judged, stop) =
                judge(candidates, (&programs, count), bound.threads, budget, &mut all)?;
            tests += judged;
        }
        count += programs.len();
        if stop != Stop::Complete {
            break;
        }
    }
    let mut rows = all.into_iter().map(|f| f.map(|x| x.1));
    Ok(Lattice {
        names: candidates.iter().map(|c| c.name.to_string()).collect(),
        separating: (0..k).map(|_| rows.by_ref().take(k).collect()).collect(),
        programs: count,
        tests,
        bound,
        stop,
    })
}

/// Judges programs under all models, and adds better tests to `all`. `first`: the number of the
/// first program. Returns the number of tests, and the stop reason.
fn judge(
    candidates: &[LatticeModel<'_>],
    (programs, first): (&[History], usize),
    threads: usize,
    budget: &Budget,
    all: &mut [RankedTest],
) -> Result<(usize, Stop), Diagnostic> {
    let (next, halt) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Result<(Vec<RankedTest>, usize), Diagnostic>>> = Mutex::new(Vec::new());
    let stopped: Mutex<Option<Stop>> = Mutex::new(None);
    let work = || {
        let mut worker = LatticeWorker {
            candidates,
            sessions: candidates.iter().map(|c| Session::new(c.model)).collect(),
            found: vec![None; candidates.len() * candidates.len()],
            tests: 0,
        };
        let mut outcome = Ok(());
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(program) = programs.get(i).filter(|_| !halt.load(Ordering::Relaxed)) else {
                break;
            };
            let memory = || if i % CHECKED_PROGRAMS == 0 { budget.check_memory() } else { Ok(()) };
            if let Err(stop) = budget.check((first + i) as u64).and_then(|()| memory()) {
                stopped.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(stop);
                halt.store(true, Ordering::Relaxed);
                break;
            }
            outcome = worker.program(first + i, program);
            if outcome.is_err() {
                halt.store(true, Ordering::Relaxed);
                break;
            }
        }
        let result = outcome.map(|()| (worker.found, worker.tests));
        results.lock().unwrap_or_else(|e| e.into_inner()).push(result);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut tests = 0;
    for result in results.into_inner().unwrap_or_else(|e| e.into_inner()) {
        let (found, count) = result?;
        tests += count;
        for (have, new) in all.iter_mut().zip(found) {
            let better = match (&have, &new) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(h), Some(n)) => n.0 < h.0,
            };
            if better {
                *have = new;
            }
        }
    }
    let stop = stopped.into_inner().unwrap_or_else(|e| e.into_inner()).unwrap_or(Stop::Complete);
    Ok((tests, stop))
}

impl LatticeWorker<'_> {
    /// Judges all tests of a program.
    fn program(&mut self, number: usize, program: &History) -> Result<(), Diagnostic> {
        let events = program.events();
        let plain = Skeleton::new(
            &crate::execution::Vocabulary::new(),
            events.iter().map(|e| e.0.clone()).collect(),
        );
        let reads: Vec<usize> = plain.set(SetId::READS).iter().collect();
        let sources: Vec<Vec<usize>> = reads.iter().map(|&r| plain.sources(r).collect()).collect();
        let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
        for s in &sources {
            choices = choices
                .iter()
                .flat_map(|c| s.iter().map(move |w| [c.as_slice(), &[*w]].concat()))
                .collect();
        }
        let rfs: Vec<Relation> = choices
            .iter()
            .map(|c| {
                Relation::from_pairs(plain.len(), c.iter().copied().zip(reads.iter().copied()))
            })
            .collect();
        // Coherence orders, each with the last writes of the locations with several writes.
        let contested: Vec<crate::relation::Set> =
            plain.writes_by_location().into_iter().filter(|p| p.len() > 2).collect();
        let mut first = Relation::empty(plain.len());
        first.product(plain.set(SetId::INITIAL), &{
            let mut others = plain.set(SetId::WRITES).clone();
            others.subtract(plain.set(SetId::INITIAL));
            others
        });
        first.intersect(plain.relation(crate::execution::RelationId::LOC));
        let (mut cos, mut lasts): (Vec<(Relation, usize)>, Vec<Vec<usize>>) =
            (Vec::new(), Vec::new());
        each_order(
            &plain.writes_by_location(),
            &first,
            &mut Relation::empty(plain.len()),
            &mut |co| {
                let last: Vec<usize> = contested
                    .iter()
                    .filter_map(|p| p.iter().find(|&w| co.successors(w).next().is_none()))
                    .collect();
                let at = lasts.iter().position(|l| *l == last).unwrap_or_else(|| {
                    lasts.push(last);
                    lasts.len() - 1
                });
                cos.push((co.clone(), at));
                false
            },
        );
        let k = self.candidates.len();
        // For each model, choice and last writes: true if allowed.
        let mut allowed = vec![false; k * rfs.len() * lasts.len()];
        let mut dialects: Vec<(Dialect, Skeleton)> = Vec::new();
        for (m, c) in self.candidates.iter().enumerate() {
            let at = dialects.iter().position(|d| d.0 == c.dialect).unwrap_or_else(|| {
                dialects.push((
                    c.dialect,
                    program.skeleton(c.dialect, c.model.vocabulary(), Some(c.model)),
                ));
                dialects.len() - 1
            });
            let mut run = self.sessions[m].start(&dialects[at].1)?;
            if !run.holds() {
                continue;
            }
            for (r, rf) in rfs.iter().enumerate() {
                if !run.set_reads_from(rf)? {
                    continue;
                }
                for (co, last) in &cos {
                    let cell = (m * rfs.len() + r) * lasts.len() + last;
                    if !allowed[cell] && run.set_coherence(rf, co)? {
                        allowed[cell] = true;
                    }
                }
            }
        }
        for r in 0..rfs.len() {
            let any: Vec<bool> = (0..k)
                .map(|m| (0..lasts.len()).any(|l| allowed[(m * rfs.len() + r) * lasts.len() + l]))
                .collect();
            self.record_test([2 * program.len(), number, r, 0], &any, || {
                test(program, &plain, &reads, &choices[r], &[])
            });
            if contested.is_empty() {
                continue;
            }
            for (l, last) in lasts.iter().enumerate() {
                let here: Vec<bool> =
                    (0..k).map(|m| allowed[(m * rfs.len() + r) * lasts.len() + l]).collect();
                self.record_test([2 * program.len() + 1, number, r, l], &here, || {
                    test(program, &plain, &reads, &choices[r], last)
                });
            }
        }
        Ok(())
    }
    /// Stores a test for all pairs of models that it is the first to separate.
    fn record_test(&mut self, place: TestRank, allowed: &[bool], test: impl Fn() -> History) {
        self.tests += 1;
        let k = allowed.len();
        for a in (0..k).filter(|&a| allowed[a]) {
            for b in (0..k).filter(|&b| !allowed[b]) {
                let found = &mut self.found[a * k + b];
                if found.as_ref().is_none_or(|f| place < f.0) {
                    *found = Some((place, test()));
                }
            }
        }
    }
}

/// Builds a program with the values that its reads take and the last writes of some locations.
fn test(
    program: &History,
    s: &Skeleton,
    reads: &[usize],
    sources: &[usize],
    last: &[usize],
) -> History {
    let mut out = program.clone();
    let e = s.events();
    let mut values = reads.iter().zip(sources).map(|(&r, &w)| (r, e[w].value)).collect::<Vec<_>>();
    values.sort_unstable();
    let mut values = values.into_iter();
    for o in out.threads.iter_mut().flatten().filter(|o| o.kind.reads()) {
        o.value = values.next().expect("each read has a source").1;
    }
    out.last = last.iter().filter_map(|&w| e[w].location.map(|l| (l, e[w].value))).collect();
    out
}

impl Lattice {
    /// True if `b` allows every test that `a` allows: `a` is at least as strong.
    pub fn is_stronger(&self, a: usize, b: usize) -> bool {
        self.separating[a][b].is_none()
    }
    /// Returns the classes of models that allow the same tests, strong ones first.
    pub fn classes(&self) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = Vec::new();
        for m in 0..self.names.len() {
            match out.iter_mut().find(|c| self.is_stronger(c[0], m) && self.is_stronger(m, c[0])) {
                Some(class) => class.push(m),
                None => out.push(vec![m]),
            }
        }
        // Classes with fewer stronger ones first.
        let above =
            |c: &Vec<usize>| (0..self.names.len()).filter(|&m| self.is_stronger(m, c[0])).count();
        out.sort_by_key(above);
        out
    }
    /// Returns the pairs of classes in which the first is stronger and none is between.
    pub fn edges(&self, classes: &[Vec<usize>]) -> Vec<(usize, usize)> {
        let less = |a: usize, b: usize| a != b && self.is_stronger(classes[a][0], classes[b][0]);
        let n = classes.len();
        (0..n)
            .flat_map(|a| (0..n).map(move |b| (a, b)))
            .filter(|&(a, b)| less(a, b) && !(0..n).any(|c| less(a, c) && less(c, b)))
            .collect()
    }
}
