//! Verifier: checks that a certificate is an inductive invariant that excludes the unsafe states.
//! Its code is independent of the prover: it shares the typed system and the format of
//! certificates, but has its own parsers for both, its own backward steps ([`step`]) and its own
//! decisions ([`logic`]).
//!
//! - *Safety*: every unsafe cube is inside the cubes of the certificate.
//! - *Consecution*: no transition leads from outside into a cube. For each cube, transition and
//!   choice of processes, the pre-image is inside the cubes of the certificate, or of the file's
//!   assumed `invariant`s (under total store order, only those that concern one process or
//!   constants: others may hold in states that only the reduction has).
//! - *Initiation*: no initial state is in a cube.
//!
//! Inclusion: all facts of some instance of a cube follow. Otherwise, if a fact is the only one of
//! an instance that does not follow, the cube is inside where the fact holds, and the rest is
//! checked. Otherwise a case is split on a fact of an instance and both halves are checked. Every
//! undecided query rejects the certificate.

pub mod counts;
mod existence;
mod inclusion;
pub mod logic;
pub mod read;
mod smt;
pub mod step;
pub mod sums;
pub mod words;

use crate::premises::{Refusal, premises};
use crate::rules::Memory;
use counts::Count;
use inclusion::{MatchedCube, MatchingPlan};
use logic::{CertificateCell, Fact, JOINT, ValueKind, World, cells, recell, stages_of};
use mu_base::Diagnostic;
use mu_base::limits::{Budget, Stop};
use mu_base::narrow;
use mu_cubicle::system::{Atom, CellAccess, Claim, Proc, System, Term, Transition, TypeId};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use step::{BackwardStep, ComparisonTranslator, wider};

const MAX_CASES: u32 = 12;
/// Largest number of open facts of an instance on which a case is split.
const MAX_OPEN: usize = 3;
/// Largest number of parameters of a transition, a claim or `init`; with 60 names in a cube of the
/// certificate, their processes can be represented as a set.
const MAX_PARAMETERS: usize = 60;
/// With more processes a cell may contain an unnamed one.
const MAX_CLOSED: usize = 24;
/// With more instances of `init`, repetitions are not removed.
const MANY_INSTANCES: usize = 64;
/// Largest number of threads.
const MAX_THREADS: usize = 64;
/// With fewer pairs of a cube and a transition, queries are not distributed over threads.
const FEW_PAIRS: usize = 200;

/// A cube that contains no reachable state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedCube {
    /// Number of named processes, including `#1`, `#2`, ..
    pub named: usize,
    /// The conditions on them.
    pub facts: Vec<Fact>,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// True if it is for total store order.
    pub tso: bool,
    /// Counting invariants.
    pub counts: Vec<Count>,
    /// The cubes.
    pub cubes: Vec<ExcludedCube>,
}

/// Statistics of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryCounts {
    /// Number of cubes.
    pub cubes: usize,
    /// Number of cubes compared with the initial states.
    pub initiation: usize,
    /// Number of pre-images checked for inclusion.
    pub consecution: usize,
    /// Number of unsafe cubes checked for inclusion.
    pub safety: usize,
    /// Number of consistency checks of conjunctions.
    pub decisions: u64,
    /// The largest number of processes, if a counting invariant limits it.
    pub most: Option<u64>,
}

/// The reason why a certificate is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It is malformed.
    Unreadable(Box<Diagnostic>),
    /// The system has no proof under the memory model.
    Premise(Refusal),
    /// No state satisfies `init`, for any number of processes.
    NoInitialState,
    /// No state of up to this number of processes satisfies `init`; larger numbers are not decided.
    NoInitialStateUpTo(usize),
    /// The cube with this index contains an initial state, or that is undecided.
    Initiation(usize),
    /// The counting invariant with this index does not hold initially, or not after a transition.
    Count(usize, Option<usize>),
    /// A transition may lead from outside into a cube.
    Consecution {
        /// The cube.
        cube: usize,
        /// The transition.
        transition: usize,
    },
    /// An unsafe cube is not inside.
    Safety(usize),
    /// The system, or a number in it, is too large for the verifier, with a description.
    TooLarge(&'static str),
    /// A limit.
    Stopped(Stop),
}

struct Verifier<'a> {
    system: &'a System,
    kinds: Vec<ValueKind>,
    weak: Vec<bool>,
    index: Vec<u32>,
    /// The certificate's cubes, then the assumptions.
    cubes: Vec<ExcludedCube>,
    plans: Vec<MatchingPlan>,
    counts: Vec<Count>,
    queries: AtomicU64,
    /// Number of cases of words that were tried.
    spent: AtomicU64,
    /// Limit on the number of consistency checks.
    most: u64,
    /// Number of threads.
    threads: usize,
    /// True if cells may contain a process beyond all processes of the file.
    beyond: bool,
    /// True if a number overflowed; then no answer counts.
    overflow: AtomicBool,
    budget: &'a Budget,
}

/// Returns the kinds of the system's symbols.
pub fn kinds(system: &System) -> Vec<ValueKind> {
    let kind = |sort: TypeId| match sort {
        TypeId::PROC => ValueKind::Process,
        TypeId::INT => ValueKind::Integer,
        TypeId::REAL => ValueKind::Real,
        t if t.bits().is_some() => ValueKind::Word(t.bits().unwrap_or(1)),
        _ if system.type_of(sort).constructors.is_empty() => ValueKind::Opaque,
        _ => ValueKind::Values(narrow::index(system.type_of(sort).constructors.len())),
    };
    system.symbols.iter().map(|s| kind(s.sort)).collect()
}

/// Parses the certificate, and adds the assumptions of the file.
fn prepare<'a>(
    system: &'a System,
    text: &str,
    budget: &'a Budget,
) -> Result<(Verifier<'a>, usize), Rejection> {
    let kinds = kinds(system);
    let params = system
        .transitions
        .iter()
        .map(|t| t.params.len())
        .chain(system.unsafes.iter().map(|c| c.params.len()));
    if params.chain([system.init.params.len(), system.fixed as usize]).max() > Some(MAX_PARAMETERS)
    {
        return Err(Rejection::TooLarge("more than 60 parameters"));
    }
    if kinds.iter().any(|k| matches!(k, ValueKind::Values(n) if *n >= logic::OTHER)) {
        return Err(Rejection::TooLarge("a type of more than 126 constructors"));
    }
    if system.symbols.iter().any(|s| s.arity > 3) {
        return Err(Rejection::TooLarge("an array of more than three indices"));
    }
    let mut certificate = read::read(system, &kinds, text).map_err(Rejection::Unreadable)?;
    premises(system, memory(certificate.tso)).map_err(Rejection::Premise)?;
    let mut index = vec![0; system.constructors.len()];
    for t in &system.types {
        t.constructors.iter().enumerate().for_each(|(i, c)| index[c.index()] = narrow::index(i));
    }
    let weak = system
        .symbols
        .iter()
        .map(|s| certificate.tso && s.kind == mu_cubicle::system::SymbolKind::Weak)
        .collect();
    let count = certificate.cubes.len();
    let mut verifier = Verifier {
        system,
        kinds,
        weak,
        index,
        cubes: std::mem::take(&mut certificate.cubes),
        plans: Vec::new(),
        counts: std::mem::take(&mut certificate.counts),
        queries: AtomicU64::new(0),
        spent: AtomicU64::new(0),
        most: u64::MAX,
        threads: 1,
        beyond: false,
        overflow: AtomicBool::new(false),
        budget,
    };
    verifier.beyond = verifier.is_beyond();
    let assumed = |c: &&Claim| !certificate.tso || verifier.holds_of_both(c);
    let assumptions: Vec<ExcludedCube> =
        system.invariants.iter().filter(assumed).flat_map(|c| verifier.claim(c)).collect();
    verifier.cubes.extend(assumptions);
    verifier.plans = verifier
        .cubes
        .iter()
        .map(|c| {
            let is_alone = verifier.concerns_one_process(c);
            MatchingPlan::new(&verifier.kinds, system.fixed as usize, c, is_alone)
        })
        .collect();
    Ok((verifier, count))
}

fn memory(tso: bool) -> Memory {
    if tso { Memory::Tso } else { Memory::Sc }
}

/// Returns the memory model of the certificate.
///
/// # Errors
///
/// The certificate is malformed.
pub fn memory_of(text: &str) -> read::Read<Memory> {
    read::memory(text).map(memory)
}

/// Verifies a certificate for the system.
///
/// # Errors
///
/// The missing part of the proof.
pub fn verify(system: &System, text: &str, budget: &Budget) -> Result<QueryCounts, Rejection> {
    verify_within(system, text, budget, 0, u64::MAX)
}

/// Verifies with this number of threads (0: one per core) and an approximate limit on the
/// decisions, beyond which it stops with [`Stop::States`].
///
/// # Errors
///
/// As [`verify`].
pub fn verify_within(
    system: &System,
    text: &str,
    budget: &Budget,
    threads: usize,
    most: u64,
) -> Result<QueryCounts, Rejection> {
    let (mut verifier, count) = prepare(system, text, budget)?;
    verifier.most = most;
    verifier.threads = threads;
    let found = verifier.verify(count);
    // Skipped queries have no answers.
    if verifier.is_spent() { Err(Rejection::Stopped(Stop::States)) } else { found }
}

impl Verifier<'_> {
    fn is_spent(&self) -> bool {
        let spent = self.spent.load(Ordering::Relaxed);
        self.queries.load(Ordering::Relaxed).saturating_add(spent) > self.most
    }
    fn verify(&self, count: usize) -> Result<QueryCounts, Rejection> {
        let (verifier, system) = (self, self.system);
        let limits = self.counts.iter().map(|c| c.most).min();
        let file = system.processes.map_or(u64::MAX, u64::from);
        let mut queries = QueryCounts {
            cubes: count,
            most: limits.filter(|m| *m < file),
            ..QueryCounts::default()
        };
        // Before the check for an initial state, which rests on them.
        verifier.check_initial_counts()?;
        if verifier
            .is_not_initial(&ExcludedCube { named: system.fixed as usize, facts: Vec::new() })
        {
            return Err(Rejection::NoInitialState);
        }
        verifier.expect_initial_state()?;
        for i in 0..count {
            queries.initiation += 1;
            if !verifier.is_not_initial(&verifier.cubes[i]) {
                return Err(Rejection::Initiation(i));
            }
        }
        for (i, claim) in system.unsafes.iter().enumerate() {
            for never in verifier.claim(claim) {
                queries.safety += 1;
                if !verifier.inside(&never, None) {
                    return Err(Rejection::Safety(i));
                }
            }
        }
        verifier.check_counts()?;
        queries.consecution = verifier.all_steps(count)?;
        queries.decisions = verifier.queries.load(Ordering::Relaxed);
        verifier.expect_small()?;
        Ok(queries)
    }
}

/// Writes the obligations of a certificate, each as a name and a text for SMT solvers.
///
/// # Errors
///
/// The certificate is malformed.
pub fn obligations(
    system: &System,
    text: &str,
    write: &mut dyn FnMut(&str, &str),
) -> Result<(), Rejection> {
    let budget = Budget::default();
    let (verifier, count) = prepare(system, text, &budget)?;
    let mut smt = smt::SmtWriter { verifier: &verifier, write, number: 0 };
    for count in &verifier.counts {
        smt.count_initiation(count);
    }
    for i in 0..count {
        smt.initiation(i);
    }
    for claim in &system.unsafes {
        for never in verifier.claim(claim) {
            smt.inside("safety", &never);
        }
    }
    verifier.for_each_wrong_step(&mut |wrong| {
        smt.inside("count", wrong);
        true
    })?;
    for i in 0..count {
        for t in 0..system.transitions.len() {
            verifier.consecution(i, t, &mut |before| {
                smt.inside("consecution", before);
                true
            })?;
        }
    }
    verifier.expect_small()
}

/// Returns the cells of a term.
fn accesses(term: &Term) -> Vec<&CellAccess> {
    match term {
        Term::Cell(a) => vec![a],
        Term::Sum(s) => s.terms.iter().map(|t| &t.0).collect(),
        Term::Proc(_) | Term::Cons(_) => Vec::new(),
    }
}

/// Returns all lists of `count` processes below `named`, distinct or not.
fn choices(count: usize, named: usize, distinct: bool) -> Vec<Vec<u8>> {
    let mut list: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..count {
        list = list
            .iter()
            .flat_map(|l| {
                (0..narrow::byte(named))
                    .filter(move |p| !distinct || !l.contains(p))
                    .map(move |p| [l.as_slice(), &[p]].concat())
            })
            .collect();
    }
    list
}

impl Verifier<'_> {
    fn world(&self, named: usize) -> World<'_> {
        let closed = !self.beyond && self.system.processes.is_some_and(|m| m as usize == named);
        let fixed = self.system.fixed as usize;
        let spent = Some(&self.spent);
        World { kinds: &self.kinds, named, fixed, closed, counts: &self.counts, spent }
    }
    /// True unless some state with all processes of the file satisfies `init` for sure: otherwise a
    /// cell may contain another process.
    fn is_beyond(&self) -> bool {
        match self.system.processes.map(|m| m as usize) {
            Some(all) if all <= MAX_CLOSED => !self.surely_has_state(all),
            _ => true,
        }
    }
    fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        if self.threads > 0 { self.threads.min(MAX_THREADS) } else { all().min(MAX_THREADS) }
    }
    fn expect_small(&self) -> Result<(), Rejection> {
        if self.overflow.load(Ordering::Relaxed) {
            Err(Rejection::TooLarge("a number of more than 60 bits"))
        } else {
            Ok(())
        }
    }
    /// Checks consecution in parallel. Returns the number of queries, or the first failure in
    /// order.
    fn all_steps(&self, count: usize) -> Result<usize, Rejection> {
        let transitions = self.system.transitions.len();
        let pairs = count * transitions;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut queries = 0;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= pairs {
                    return Ok(queries);
                }
                let (cube, transition) = (at / transitions, at % transitions);
                match self
                    .consecution(cube, transition, &mut |before| self.inside(before, Some(cube)))
                {
                    Ok(n) => queries += n,
                    Err(refused) => {
                        // Later pairs are irrelevant; earlier ones are still being checked.
                        next.store(pairs, Ordering::Relaxed);
                        return Err((at, refused));
                    }
                }
            }
        };
        let threads = if pairs < FEW_PAIRS { 1 } else { self.threads() };
        let results: Vec<Result<usize, (usize, Rejection)>> = std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            helpers
                .into_iter()
                .map(|h| h.join().expect("a verifying thread does not panic"))
                .chain([own])
                .collect()
        });
        let mut queries = 0;
        let mut first: Option<(usize, Rejection)> = None;
        for result in results {
            match result {
                Ok(n) => queries += n,
                Err(found) if first.as_ref().is_none_or(|f| found.0 < f.0) => first = Some(found),
                Err(_) => {}
            }
        }
        first.map_or(Ok(queries), |f| Err(f.1))
    }
    fn contradicts(&self, named: usize, facts: &[Fact]) -> bool {
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.world(named).contradicts(facts)
    }
    /// Calls a function with each list of distinct processes for parameters, named ones, then new
    /// ones in order, and with the resulting number of names. The lists are not stored, because
    /// there can be too many.
    fn for_each_binding(
        &self,
        params: usize,
        named: usize,
        does: &mut dyn FnMut(&[u8], usize) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let most = self.system.processes.map_or(usize::MAX, |m| m as usize);
        self.bind_rest(params, (named, most), &mut Vec::new(), does)
    }
    fn bind_rest(
        &self,
        left: usize,
        (named, most): (usize, usize),
        bound: &mut Vec<u8>,
        does: &mut dyn FnMut(&[u8], usize) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        if left == 0 {
            return if named <= most { does(bound, named) } else { Ok(()) };
        }
        for p in 0..=named {
            let process = narrow::byte(p);
            if bound.contains(&process) {
                continue;
            }
            bound.push(process);
            let names = if p == named { named + 1 } else { named };
            let rest = self.bind_rest(left - 1, (names, most), bound, does);
            bound.pop();
            rest?;
        }
        Ok(())
    }
    /// Returns the cubes of a claim.
    fn claim(&self, claim: &Claim) -> Vec<ExcludedCube> {
        let fixed = self.system.fixed as usize;
        let mut found = Vec::new();
        // No call fails.
        let _ = self.for_each_binding(claim.params.len(), fixed, &mut |binding, named| {
            let process = |p: Proc| match p {
                Proc::Var(v) => binding[v as usize],
                Proc::Fixed(n) => narrow::byte(n as usize - 1),
            };
            let look = |a: &CellAccess| {
                if self.weak[a.symbol.index()] { a.by.map(|p| (process(p), JOINT)) } else { None }
            };
            let reader = ComparisonTranslator {
                process: &process,
                look: &look,
                index: &self.index,
                world: self.world(named),
                overflow: &self.overflow,
            };
            let (facts, _) = reader.facts(&claim.cube);
            if !self.contradicts(named, &facts) {
                found.push(ExcludedCube { named, facts });
            }
            Ok(())
        });
        found
    }
    /// True if the claim has the same truth in the machine's states and in those in which writes
    /// reach memory immediately. This holds if it concerns only constants, or one process alone.
    fn holds_of_both(&self, claim: &Claim) -> bool {
        let written = |a: &CellAccess| {
            self.system.transitions.iter().any(|t| t.updates.iter().any(|u| u.symbol() == a.symbol))
        };
        let accesses = claim.cube.iter().flat_map(|atom| match atom {
            Atom::Compare(l, _, r) => [l, r].into_iter().flat_map(accesses).collect(),
            Atom::Words(w) => w.left.terms.iter().chain(&w.right.terms).map(|t| &t.0).collect(),
            _ => Vec::new(),
        });
        let changing: Vec<&CellAccess> = accesses.filter(|a| written(a)).collect();
        let one = changing
            .iter()
            .flat_map(|a| &a.args)
            .all(|p| changing.iter().flat_map(|a| &a.args).next() == Some(p));
        one && changing.iter().all(|a| !self.weak[a.symbol.index()])
    }
    /// True if all views of a cube are those of one process, and all its cells without a view that
    /// transitions update are not in memory and belong to this process.
    fn concerns_one_process(&self, cube: &ExcludedCube) -> bool {
        let Some((process, _)) = cube.facts.iter().flat_map(stages_of).next() else { return true };
        let is_updated = |c: &CertificateCell| {
            let updates = self.system.transitions.iter().flat_map(|t| &t.updates);
            updates.into_iter().any(|u| u.symbol().index() == c.symbol())
        };
        let is_own = |c: &CertificateCell| match c.look {
            Some((p, _)) => p == process,
            None => !is_updated(c) || !self.weak[c.symbol()] && c.args().all(|p| p == process),
        };
        cube.facts.iter().all(|f| match f {
            Fact::Fence(p, _) => *p == process,
            f => cells(f).iter().all(is_own),
        })
    }
    /// Returns the conditions of a cube on an initial state, in which all reads read memory now.
    fn at_the_start(&self, cube: &ExcludedCube) -> Vec<Fact> {
        let named = cube.named.max(1);
        let now = |c: &CertificateCell| c.with_view(None);
        let facts = cube
            .facts
            .iter()
            .filter(|f| !matches!(f, Fact::Fence(..)))
            .map(|f| recell(f, &now))
            .map(|f| match f {
                Fact::Among(c, set) if self.kinds[c.symbol()] == ValueKind::Process => {
                    Fact::Among(c, wider(set, cube.named, named))
                }
                Fact::Twins(a, b, false) if a == b => Fact::ExcludedCube,
                f => f,
            });
        facts.filter(|f| !matches!(f, Fact::Twins(a, b, true) if a == b)).collect()
    }
    /// Returns the distinct instances of `init` for this number of processes, except those that
    /// always hold; of each, one of the conjunctions must hold.
    fn initial(&self, named: usize) -> Vec<Vec<Vec<Fact>>> {
        let mut found: Vec<Vec<Vec<Fact>>> = Vec::new();
        for map in choices(self.system.init.params.len(), named, false) {
            let process = |p: Proc| match p {
                Proc::Var(v) => map[v as usize],
                Proc::Fixed(n) => narrow::byte(n as usize - 1),
            };
            let reader = ComparisonTranslator {
                process: &process,
                look: &|_| None,
                index: &self.index,
                world: self.world(named),
                overflow: &self.overflow,
            };
            let cubes: Vec<Vec<Fact>> = self
                .system
                .init
                .dnf
                .iter()
                .map(|c| reader.facts(c).0)
                .filter(|facts| !facts.contains(&Fact::ExcludedCube))
                .collect();
            let is_new = || found.len() >= MANY_INSTANCES || !found.contains(&cubes);
            if !cubes.iter().any(Vec::is_empty) && is_new() {
                found.push(cubes);
            }
        }
        found
    }
    /// True if no initial state is in the cube.
    fn is_not_initial(&self, cube: &ExcludedCube) -> bool {
        let named = cube.named.max(1);
        self.meets_none(named, self.at_the_start(cube), &self.initial(named))
    }
    /// As [`Self::meets_none`], without counting invariants.
    fn meets_none_without_counts(
        &self,
        named: usize,
        facts: Vec<Fact>,
        instances: &[Vec<Vec<Fact>>],
    ) -> bool {
        let Some((first, rest)) = instances.split_first() else {
            self.queries.fetch_add(1, Ordering::Relaxed);
            return World { counts: &[], ..self.world(named) }.contradicts(&facts);
        };
        first
            .iter()
            .all(|c| self.meets_none_without_counts(named, [facts.as_slice(), c].concat(), rest))
    }
    fn meets_none(&self, named: usize, facts: Vec<Fact>, instances: &[Vec<Vec<Fact>>]) -> bool {
        // If `init` is one conjunction, all instances hold together.
        let (single, several): (Vec<_>, Vec<_>) = instances.iter().partition(|i| i.len() == 1);
        let mut facts = facts;
        facts.extend(single.into_iter().flat_map(|i| i[0].clone()));
        if self.contradicts(named, &facts) {
            return true;
        }
        let Some((first, rest)) = several.split_first() else { return false };
        let rest: Vec<Vec<Vec<Fact>>> = rest.iter().map(|r| (*r).clone()).collect();
        first.iter().all(|c| self.meets_none(named, [facts.as_slice(), c].concat(), &rest))
    }
    /// Returns a transition with values of its parameters.
    fn step<'a>(
        &'a self,
        transition: &'a Transition,
        binding: &'a [u8],
        world: World<'a>,
    ) -> BackwardStep<'a> {
        BackwardStep {
            system: self.system,
            kinds: &self.kinds,
            weak: &self.weak,
            index: &self.index,
            transition,
            binding,
            world,
            overflow: &self.overflow,
        }
    }
    /// Checks consecution for one cube and transition. Returns the number of queries.
    fn consecution(
        &self,
        cube: usize,
        transition: usize,
        is_inside: &mut dyn FnMut(&ExcludedCube) -> bool,
    ) -> Result<usize, Rejection> {
        let t = &self.system.transitions[transition];
        let never = &self.cubes[cube];
        let mut queries = 0;
        let set: Vec<usize> = t.updates.iter().map(|u| u.symbol().index()).collect();
        if !self.plans[cube].symbols.iter().any(|s| set.contains(s)) {
            // No cell of the cube changes, and reads only add conditions.
            return Ok(0);
        }
        self.for_each_binding(t.params.len(), never.named, &mut |binding, named| {
            self.budget.check(0).map_err(Rejection::Stopped)?;
            if self.is_spent() {
                return Err(Rejection::Stopped(Stop::States));
            }
            let world = self.world(named);
            let facts = self.facts_with_names(never, named);
            let step = self.step(t, binding, world);
            for before in step.predecessors(&facts) {
                queries += 1;
                let before = ExcludedCube { named, facts: before };
                if !is_inside(&before) {
                    return Err(Rejection::Consecution { cube, transition });
                }
            }
            Ok(())
        })?;
        Ok(queries)
    }
    /// Returns the facts of the cube with additional names.
    fn facts_with_names(&self, cube: &ExcludedCube, named: usize) -> Vec<Fact> {
        let wide = |f: &Fact| match f {
            Fact::Among(c, set) if self.kinds[c.symbol()] == ValueKind::Process => {
                Fact::Among(*c, wider(*set, cube.named, named))
            }
            f => f.clone(),
        };
        cube.facts.iter().map(wide).collect()
    }
    /// True if the cube is inside the union of the certificate's and the assumed cubes; `first` is
    /// tried first.
    fn inside(&self, cube: &ExcludedCube, first: Option<usize>) -> bool {
        self.split(&self.with_a_name(cube), first, MAX_CASES)
    }
    /// Returns the cube with a named process: there is always one.
    fn with_a_name<'c>(&self, cube: &'c ExcludedCube) -> Cow<'c, ExcludedCube> {
        if cube.named > 0 {
            return Cow::Borrowed(cube);
        }
        Cow::Owned(ExcludedCube { named: 1, facts: self.facts_with_names(cube, 1) })
    }
    fn split(&self, cube: &ExcludedCube, first: Option<usize>, depth: u32) -> bool {
        let Some(mut target) = MatchedCube::new(self, cube) else { return true };
        for i in first.into_iter().chain((0..self.cubes.len()).filter(|i| Some(*i) != first)) {
            let plan = &self.plans[i];
            if target.mentions(&plan.symbols)
                && target.may_hold(plan)
                && target.closest(&self.cubes[i], plan, 0).is_some()
            {
                return true;
            }
        }
        if depth == 0 || self.is_spent() {
            return false;
        }
        let world = self.world(cube.named);
        let with = |more: Vec<Fact>| ExcludedCube {
            named: cube.named,
            facts: [cube.facts.as_slice(), &more].concat(),
        };
        // The cube is inside wherever a fact holds that is the only one of an instance that does
        // not follow. The rest is where none of these facts holds.
        let lacks: Vec<usize> = self.plans.iter().map(|plan| target.lacks(plan)).collect();
        let cubes = || self.cubes.iter().zip(&self.plans).zip(&lacks);
        let mut none: Vec<Fact> = Vec::new();
        for ((c, plan), _) in cubes().filter(|c| *c.1 <= 1) {
            none.extend(target.singles(c, plan).iter().map(|f| world.opposite(f)));
        }
        if !none.is_empty() {
            none.sort_unstable();
            none.dedup();
            return self.split(&with(none), first, depth - 1);
        }
        // Split on the instance with the fewest open facts; cubes about other symbols come last,
        // because they rarely help.
        let mut open: Option<Vec<Fact>> = None;
        for few in [true, false] {
            for ((c, plan), _) in cubes().filter(|c| (*c.1 <= 1) == few && *c.1 <= MAX_OPEN) {
                let most = open.as_ref().map_or(MAX_OPEN, |o| o.len() - 1);
                open = target.closest(c, plan, most).or(open);
                if open.as_ref().is_some_and(|o| o.len() <= 1) {
                    break;
                }
            }
            if open.is_some() {
                break;
            }
        }
        let Some(open) = open else { return false };
        let Some(fact) = open.into_iter().next() else { return true };
        self.split(&with(vec![world.opposite(&fact)]), first, depth - 1)
            && self.split(&with(vec![fact]), first, depth - 1)
    }
}
