//! Prover: searches of growing size, with and without approximations, until one terminates; then
//! the proof is verified, or the trace is executed on the machine.
//!
//! Small systems are proved faster without approximations, because no instance is explored; for
//! large ones approximations decide whether the search terminates. Since neither is known in
//! advance, both are tried in time slices with growing limits; the exact search continues where it
//! stopped. A trace through an approximation refutes it: it is recorded, and the search starts
//! again.

use crate::audit::Audit;
use crate::certificate;
use crate::counts;
use crate::cube::Cube;
use crate::image::Trouble;
use crate::initial::{Existence, existence, initial, needs_further_process};
use crate::lemmas::lemmas;
use crate::numbers::TrialNumbers;
use crate::oracle::Instances;
use crate::parallel::Threads;
use crate::premises::Refusal;
use crate::replay::{ReplayFailure, ReplayRun, bare_machine, machine, replay, states_of};
use crate::rules::{Memory, Rules, translate};
use crate::search::{BackwardSearch, CubeNode, Exact, SearchEnd, SearchStatistics};
use crate::verify::{QueryCounts, Rejection, verify_within};
use mu_base::host::Instant;
use mu_base::limits::{Budget, Stop};
use mu_base::narrow;
use mu_cubicle::instance::Reach;
use mu_cubicle::machine::Machine;
use mu_cubicle::system::{System, Update};
use std::time::Duration;

/// Options of the prover.
#[derive(Clone, Copy, Debug)]
pub struct ProverOptions {
    /// The memory model.
    pub memory: Memory,
    /// True to use approximations.
    pub approximate: bool,
    /// The largest instance for testing approximations.
    pub instances: usize,
    /// Limit on the work: bindings and cubes inspected by searches, and ten times as many queries
    /// of the verifier. The result then does not depend on the clock; at the limit it is
    /// [`Stop::States`].
    pub work: Option<u64>,
    /// The worker threads. Verdict, certificate and counts do not depend on them.
    pub threads: Threads,
}

/// Limits on the states of an instance that is searched if there is no proof: by default, and with
/// limited work.
const MAX_INSTANCE: (usize, usize) = (300_000, 5_000);

impl Default for ProverOptions {
    fn default() -> Self {
        ProverOptions {
            memory: Memory::Tso,
            approximate: true,
            instances: 4,
            work: None,
            threads: 1.into(),
        }
    }
}

/// The reason of an unknown verdict.
#[derive(Clone, Debug)]
pub enum UnknownReason {
    /// The system is unsupported.
    Refused(Refusal),
    /// No state satisfies `init`, for any number of processes.
    NoInitialState,
    /// No state of up to this number of processes satisfies `init`; larger numbers are not decided.
    NoInitialStateUpTo(usize),
    /// A proof, of a system for which it is not decided if some state satisfies `init`.
    InitialStateUndecided,
    /// A limit.
    Stopped(Stop),
    /// A cube is not representable.
    Trouble(Trouble),
    /// A trace of the abstraction that the machine cannot execute: the reason, and its steps.
    Spurious(String),
    /// A trace of the abstraction that the machine cannot execute with the numbers tried for
    /// undetermined cells: the reason, and its steps.
    Numbers(String),
    /// The proof was not verified: a fault of the prover, or a query too large for the verifier.
    Unverified(Rejection),
}

/// The verdict.
#[derive(Clone, Debug)]
pub enum ProofVerdict {
    /// No unsafe state is reachable, for any number of processes that the file allows.
    Safe {
        /// The certificate.
        certificate: String,
        /// Numbers of the verifier's queries.
        queries: QueryCounts,
    },
    /// No unsafe state is reachable, without a certificate: all states of the instances from the
    /// least to the largest of these numbers of processes were searched, and larger numbers have no
    /// initial state or are excluded by the file.
    Searched(usize, usize),
    /// An unsafe state is reachable.
    Unsafe(Box<ReplayRun>),
    /// Unknown.
    Unknown(UnknownReason),
}

/// The result.
#[derive(Clone, Debug)]
pub struct ProofOutcome {
    /// The verdict.
    pub verdict: ProofVerdict,
    /// Counts of the last search.
    pub counts: SearchStatistics,
    /// Number of searches.
    pub searches: usize,
    /// Number of refuted approximations.
    pub refuted: usize,
    /// Number of refuted approximations that were proposed again, which the oracle should prevent.
    pub repeated: usize,
    /// Number of assumed `invariant`s of the file.
    pub assumed: usize,
    /// The least number of processes from which on no state satisfies `init`, if it is among the
    /// first few.
    pub empty_from: Option<usize>,
    /// For an unknown verdict: the cube that could not be expanded.
    pub stuck: Option<String>,
    /// For an unknown verdict: the range of numbers of processes for which all states of the
    /// machine are searched and safe.
    pub searched: Option<(usize, usize)>,
    /// Duration of the verification.
    pub verification: Duration,
    /// The result of the audit, if it was done.
    pub audit: Option<Audit>,
}

/// The limits of one time slice.
#[derive(Clone, Copy)]
struct TimeSlice {
    /// Number of cubes of the exact search.
    exact: usize,
    /// Its work.
    work: u64,
    /// Number of states of an instance.
    states: usize,
    /// Number of cubes of a search with approximations.
    cubes: usize,
    /// Number of such searches.
    searches: usize,
    /// Their total work.
    tried: u64,
}

/// The first time slice.
const FIRST: TimeSlice =
    TimeSlice { exact: 120, work: 15_000, states: 1500, cubes: 300, searches: 25, tried: 40_000 };
/// Largest number of processes of an instance that is searched if there is no proof, unless a claim
/// names more.
const INSTANCES: usize = 4;
/// Limit on the choices of processes and cases of a searched instance; larger ones are skipped.
const MAX_GROUND: usize = 1 << 20;
/// Limit on states times choices of an instance.
const MAX_EVALUATED: usize = 50_000_000;
/// Number of time slices with approximations after which the search ends if the exact search has
/// found an unrepresentable cube.
const SLICES_AFTER_TROUBLE: usize = 2;
/// Number of further sizes beyond the least number of processes that are checked for initial
/// states.
const INITIAL_SIZES: usize = 3;
/// The work of a proof with a counting invariant.
const WORK_OF_COUNTING: u64 = 2_000_000;
/// Limit on the explored states of an instance.
const MAX_STATES: usize = 1_000_000;

impl TimeSlice {
    /// Returns the next time slice.
    fn next(self) -> TimeSlice {
        TimeSlice {
            exact: self.exact.saturating_mul(5),
            work: self.work.saturating_mul(5),
            states: self.states.saturating_mul(5).min(MAX_STATES),
            cubes: self.cubes.saturating_mul(5),
            searches: self.searches.saturating_mul(3),
            tried: self.tried.saturating_mul(6),
        }
    }
}

struct Prover<'a> {
    system: &'a System,
    rules: &'a Rules,
    options: ProverOptions,
    budget: &'a Budget,
    counts: SearchStatistics,
    searches: usize,
    refuted: usize,
    repeated: usize,
    verification: Duration,
    work: Option<u64>,
    exact: BackwardSearch<'a>,
    oracle: Option<Instances<'a>>,
    /// Template invariants, once they were computed.
    lemmas: Option<Vec<Cube>>,
}

/// Proves or refutes that the system is safe.
pub fn prove(system: &System, options: ProverOptions, budget: &Budget) -> ProofOutcome {
    let nothing =
        |why: UnknownReason,
         (verdict, searched): (Option<ProofVerdict>, Option<(usize, usize)>)| {
            ProofOutcome {
                verdict: verdict.unwrap_or(ProofVerdict::Unknown(why)),
                counts: SearchStatistics::default(),
                searches: 0,
                refuted: 0,
                repeated: 0,
                assumed: system.invariants.len(),
                empty_from: None,
                stuck: None,
                searched,
                verification: Duration::ZERO,
                audit: None,
            }
        };
    let least = system.fixed.max(1) as usize;
    let rules = match translate(system, options.memory) {
        Ok(rules) => rules,
        Err(refusal) => {
            return match has_initial_state(system, None, least) {
                Err(why) => nothing(why, (None, None)),
                Ok(_) => {
                    let found = instances(system, options, options.memory, budget);
                    nothing(UnknownReason::Refused(refusal), found)
                }
            };
        }
    };
    let has_initial_state = match has_initial_state(system, Some(&rules), least) {
        Err(why) => return nothing(why, (None, None)),
        Ok(has_one) => has_one,
    };
    let unless_vacuous = |verdict| match verdict {
        ProofVerdict::Safe { .. } if !has_initial_state => {
            ProofVerdict::Unknown(UnknownReason::InitialStateUndecided)
        }
        verdict => verdict,
    };
    let empty_from = empty_from(&rules, least);
    if let Some(found) = by_counting(system, &rules, options, budget) {
        let verdict = unless_vacuous(found.verdict);
        return ProofOutcome { empty_from, verdict, ..found };
    }
    let mut prover = Prover::new(system, &rules, options, budget);
    let (verdict, searched) = match prover.run() {
        ProofVerdict::Unknown(why) if is_ours(&why) => {
            let (found, searched) = instances(system, options, rules.memory, budget);
            let found = found.or_else(|| all_searched(system, searched, empty_from));
            (found.unwrap_or(ProofVerdict::Unknown(why)), searched)
        }
        verdict => (verdict, None),
    };
    let Prover { counts, searches, refuted, repeated, verification, exact, .. } = prover;
    let stuck = exact.stuck.as_ref().map(|cube| certificate::line(system, &rules.signature, cube));
    let stuck =
        stuck.filter(|_| matches!(verdict, ProofVerdict::Unknown(UnknownReason::Trouble(_))));
    let assumed = rules.premises.assumed.len();
    ProofOutcome {
        verdict: unless_vacuous(verdict),
        counts,
        searches,
        refuted,
        repeated,
        assumed,
        empty_from,
        stuck,
        searched,
        verification,
        audit: None,
    }
}

/// True if some number of processes is known to have an initial state, or the system is
/// unsupported; false if that is undecided. Memory models agree on `init`; under sequential
/// consistency all assumptions of the file are meaningful.
///
/// # Errors
/// No number of processes has one, or none up to a bound.
fn has_initial_state(
    system: &System,
    rules: Option<&Rules>,
    least: usize,
) -> Result<bool, UnknownReason> {
    if rules.is_some_and(|rules| empty_from(rules, least) == Some(least)) {
        return Err(UnknownReason::NoInitialState);
    }
    let Ok(plain) = translate(system, Memory::Sc) else { return Ok(true) };
    match existence(&plain, least) {
        Ok(Existence::None) => Err(UnknownReason::NoInitialState),
        Ok(Existence::NoneUpTo(n)) => Err(UnknownReason::NoInitialStateUpTo(n)),
        Ok(Existence::Undecided) => Ok(false),
        Ok(Existence::Some) | Err(_) => Ok(true),
    }
}

/// True if no limit of the user ended the search.
fn is_ours(why: &UnknownReason) -> bool {
    !matches!(why, UnknownReason::Stopped(_) | UnknownReason::Unverified(Rejection::Stopped(_)))
}

/// Returns the least number of processes from which on there is no initial state, among the first
/// few. A constraint on all processes also holds for fewer.
fn empty_from(rules: &Rules, least: usize) -> Option<usize> {
    let most = rules.signature.most.unwrap_or(usize::MAX).min(least + INITIAL_SIZES);
    (least..=most).find(|n| {
        let all = Cube { processes: *n, atoms: Vec::new() };
        matches!(initial(rules, &all), Ok(None))
    })
}

/// Tries to prove the system safe with a counting invariant, in a limited amount of work.
fn by_counting(
    system: &System,
    rules: &Rules,
    options: ProverOptions,
    budget: &Budget,
) -> Option<ProofOutcome> {
    for count in counts::candidates(rules) {
        let Some(with) = counts::with(rules, &count) else { continue };
        let work = options.work.map_or(WORK_OF_COUNTING, |w| w.min(WORK_OF_COUNTING));
        let limited = ProverOptions { work: Some(work), ..options };
        let mut prover = Prover::new(system, &with, limited, budget);
        prover.look_for_lemmas(FIRST.next().next());
        let verdict = prover.run();
        let Prover { counts: numbers, searches, refuted, repeated, verification, .. } = prover;
        if matches!(verdict, ProofVerdict::Safe { .. }) {
            return Some(ProofOutcome {
                verdict,
                counts: numbers,
                searches,
                refuted,
                repeated,
                assumed: rules.premises.assumed.len(),
                empty_from: None,
                stuck: None,
                searched: None,
                verification,
                audit: None,
            });
        }
    }
    None
}

impl<'a> Prover<'a> {
    fn new(
        system: &'a System,
        rules: &'a Rules,
        options: ProverOptions,
        budget: &'a Budget,
    ) -> Self {
        Prover {
            system,
            rules,
            options,
            budget,
            counts: SearchStatistics::default(),
            searches: 1,
            refuted: 0,
            repeated: 0,
            verification: Duration::ZERO,
            work: options.work,
            exact: BackwardSearch::new(rules, budget, options.threads),
            oracle: None,
            lemmas: None,
        }
    }
    fn run(&mut self) -> ProofVerdict {
        let mut turn = FIRST;
        // An unrepresentable cube of the exact search; approximations then have a few more time
        // slices.
        let mut trouble: Option<UnknownReason> = None;
        let mut turns = 0;
        let why = loop {
            if trouble.is_none() || self.lemmas.as_ref().is_some_and(|l| !l.is_empty()) {
                match self.exact(turn) {
                    Ok(verdict) => return verdict,
                    Err(UnknownReason::Stopped(Stop::States)) if self.work != Some(0) => {}
                    // Approximations have the same cases.
                    Err(UnknownReason::Trouble(t))
                        if self.options.approximate && t != Trouble::Cases =>
                    {
                        trouble = Some(UnknownReason::Trouble(t))
                    }
                    Err(why) => break why,
                }
            }
            // A time slice ends like a limit of states. If the user's limit was reached, the exact
            // search cannot continue.
            let last = self.budget.check(self.counts.nodes as u64).err();
            if self.options.approximate {
                match self.approximate(turn) {
                    Ok(verdict) => return verdict,
                    Err(UnknownReason::Stopped(
                        s @ (Stop::Time | Stop::Memory | Stop::Interrupted),
                    )) => {
                        break UnknownReason::Stopped(s);
                    }
                    Err(why) if self.work == Some(0) => break why,
                    Err(_) => {}
                }
            }
            if let Some(stop) = last {
                break UnknownReason::Stopped(stop);
            }
            if let Some(why) = &trouble {
                turns += 1;
                if turns >= SLICES_AFTER_TROUBLE {
                    break why.clone();
                }
            }
            turn = turn.next();
            if self.options.approximate && self.lemmas.is_none() {
                self.look_for_lemmas(turn);
            }
        };
        ProofVerdict::Unknown(why)
    }
    /// Reserves some of the remaining work; the unused part is returned later.
    fn take(&mut self, most: u64) -> u64 {
        let taken = self.work.map_or(most, |w| w.min(most));
        self.work = self.work.map(|w| w - taken);
        taken
    }
    fn put_back(&mut self, rest: u64) {
        self.work = self.work.map(|w| w + rest);
    }
    fn exact(&mut self, turn: TimeSlice) -> Result<ProofVerdict, UnknownReason> {
        self.exact.work = self.take(turn.work);
        let end = self.exact.run(&mut Exact, turn.exact);
        self.put_back(self.exact.work);
        self.counts = self.exact.counts;
        match end {
            SearchEnd::Fixpoint(cubes) => self.safe(&cubes),
            SearchEnd::Reached(path) => self.replay_path(&path),
            SearchEnd::Stopped(s) => Err(UnknownReason::Stopped(s)),
            SearchEnd::Trouble(t) => Err(UnknownReason::Trouble(t)),
        }
    }
    fn approximate(&mut self, turn: TimeSlice) -> Result<ProofVerdict, UnknownReason> {
        let budget = self.budget;
        let mut oracle =
            self.oracle.take().unwrap_or_else(|| Instances::new(self.rules, self.options.threads));
        oracle.grow(self.options.instances, turn.states, &|| budget.check(0).is_err());
        let mut found = Err(UnknownReason::Stopped(Stop::States));
        // Atoms that follow from several atoms are costly and rarely needed: only in systems with
        // numbers, and after the simple ones.
        for combines in [false, true] {
            oracle.combines = combines;
            if (combines && !self.rules.has_numbers())
                || !matches!(found, Err(UnknownReason::Stopped(Stop::States)))
            {
                break;
            }
            let mut work = self.take(turn.tried);
            found = self.search(&mut oracle, turn, &mut work);
            self.put_back(work);
        }
        self.oracle = Some(oracle);
        found
    }
    /// Computes template invariants. If there are any, the exact search starts again with them.
    fn look_for_lemmas(&mut self, turn: TimeSlice) {
        let budget = self.budget;
        let mut oracle =
            self.oracle.take().unwrap_or_else(|| Instances::new(self.rules, self.options.threads));
        oracle.grow(self.options.instances, turn.states, &|| budget.check(0).is_err());
        let mut work = self.take(turn.tried);
        let found = lemmas(self.rules, &mut oracle, budget, &mut work);
        self.put_back(work);
        self.oracle = Some(oracle);
        if !found.is_empty() {
            self.searches += 1;
            self.exact = BackwardSearch::new(self.rules, budget, self.options.threads);
            self.exact.lemmas.clone_from(&found);
        }
        self.lemmas = Some(found);
    }
    /// Searches with approximations until one is not refuted.
    fn search(
        &mut self,
        oracle: &mut Instances<'a>,
        turn: TimeSlice,
        work: &mut u64,
    ) -> Result<ProofVerdict, UnknownReason> {
        for _ in 0..turn.searches {
            self.searches += 1;
            let mut search = BackwardSearch::new(self.rules, self.budget, self.options.threads);
            search.work = *work;
            search.lemmas = self.lemmas.clone().unwrap_or_default();
            let end = search.run(oracle, turn.cubes);
            *work = search.work;
            self.counts = search.counts;
            match end {
                SearchEnd::Fixpoint(cubes) => return self.safe(&cubes),
                SearchEnd::Reached(path) => match path.iter().rposition(|n| n.approximate) {
                    Some(at) => {
                        let cube = &path[at].cube;
                        // Otherwise the searches would repeat forever.
                        if oracle.has_refuted(cube) {
                            self.repeated += 1;
                            break;
                        }
                        self.refuted += 1;
                        oracle.refute(cube.clone(), &path[at + 1..]);
                    }
                    None => return self.replay_path(&path),
                },
                SearchEnd::Stopped(s) => return Err(UnknownReason::Stopped(s)),
                SearchEnd::Trouble(t) => return Err(UnknownReason::Trouble(t)),
            }
        }
        Err(UnknownReason::Stopped(Stop::States))
    }
    fn safe(&mut self, cubes: &[Cube]) -> Result<ProofVerdict, UnknownReason> {
        let certificate = certificate::write(
            self.system,
            &self.rules.signature,
            self.rules.memory == Memory::Tso,
            cubes,
        );
        let start = Instant::now();
        let most = self.options.work.map_or(u64::MAX, |w| w.saturating_mul(10));
        let verified =
            verify_within(self.system, &certificate, self.budget, self.options.threads.count, most);
        self.verification += start.elapsed();
        match verified {
            Ok(queries) => Ok(ProofVerdict::Safe { certificate, queries }),
            Err(Rejection::Stopped(s)) => Err(UnknownReason::Stopped(s)),
            Err(refused) => Err(UnknownReason::Unverified(refused)),
        }
    }
    fn replay_path(&mut self, path: &[CubeNode]) -> Result<ProofVerdict, UnknownReason> {
        match replay(self.system, self.rules, path, self.budget) {
            Ok(run) => Ok(ProofVerdict::Unsafe(Box::new(run))),
            Err(ReplayFailure { reason, numbers }) => {
                // A limit ends the enumeration of initial states, too.
                self.budget.check(0).map_err(UnknownReason::Stopped)?;
                let names = path.iter().rev().filter(|n| n.parent.is_some());
                let steps: Vec<&str> = names
                    .map(|n| {
                        self.system.transitions[self.rules.rules[n.rule].transition].name.as_str()
                    })
                    .collect();
                let text = format!("{reason} (steps: {})", steps.join(", "));
                Err(if numbers {
                    UnknownReason::Numbers(text)
                } else {
                    UnknownReason::Spurious(text)
                })
            }
        }
    }
}

/// Searches small instances for a run if there is no proof for every number of processes. The
/// second result is the range of numbers of processes with all states searched and safe.
fn instances(
    system: &System,
    options: ProverOptions,
    memory: Memory,
    budget: &Budget,
) -> (Option<ProofVerdict>, Option<(usize, usize)>) {
    let most = if options.work.is_some() { MAX_INSTANCE.1 } else { MAX_INSTANCE.0 };
    let params = system.unsafes.iter().map(|c| c.params.len()).max().unwrap_or(1);
    let least = system.fixed.max(1) as usize;
    let largest = params.max(INSTANCES).max(least);
    let mut searched: Option<(usize, usize)> = None;
    for n in least..=system.processes.map_or(largest, |n| (n as usize).min(largest)) {
        let Some(size) = ground_size(system, n).filter(|s| *s <= MAX_GROUND) else { break };
        let most = most.min(MAX_EVALUATED / size.max(1));
        // Without values for undetermined numbers, a search without a violation is complete, and a
        // claim about such a number may hold.
        let (machine, reach, every) = match search_instance(system, memory, n, most, false, budget)
        {
            Some((machine, reach)) if reach.violation.is_none() => (machine, reach, true),
            _ => match search_instance(system, memory, n, most, true, budget) {
                Some((machine, reach)) => (machine, reach, false),
                None => break,
            },
        };
        if let Some((state, claim, procs)) = &reach.violation {
            // With some numbers only, the machine may miss initial states without it.
            let is_certain = |rules: &Rules| needs_further_process(rules, n);
            if !every
                && machine.opens_beyond()
                && !translate(system, Memory::Sc).as_ref().is_ok_and(is_certain)
            {
                continue;
            }
            let replayed = reach.run(*state);
            let acts: Vec<_> = replayed.steps.iter().map(|s| s.0.clone()).collect();
            let Ok(replayed) = machine.replay(&acts, &system.unsafes[*claim], procs) else {
                continue;
            };
            let steps = replayed.steps.iter().map(|(a, _)| machine.act_text(a)).collect();
            let states = states_of(&machine, &replayed, &system.unsafes[*claim], procs);
            let numbers =
                if every { TrialNumbers::default() } else { TrialNumbers::of_file(system) };
            let run = ReplayRun {
                processes: narrow::index(n),
                replayed,
                steps,
                states,
                claim: (*claim, procs.clone()),
                numbers,
            };
            return (Some(ProofVerdict::Unsafe(Box::new(run))), searched);
        }
        if every && reach.complete && searched.is_none_or(|s| s.1 + 1 == n) {
            searched = Some((searched.map_or(n, |s| s.0), n));
        }
    }
    (None, searched)
}

/// Returns the verdict if the searched instances are all that have an initial state and that the
/// file admits.
fn all_searched(
    system: &System,
    searched: Option<(usize, usize)>,
    empty_from: Option<usize>,
) -> Option<ProofVerdict> {
    let (least, most) = searched?;
    let is_first = least == system.fixed.max(1) as usize;
    let is_last = empty_from.is_some_and(|n| n <= most + 1)
        || system.processes.is_some_and(|n| n as usize <= most);
    (is_first && is_last).then_some(ProofVerdict::Searched(least, most))
}

fn search_instance<'s>(
    system: &'s System,
    memory: Memory,
    processes: usize,
    most: usize,
    candidates: bool,
    budget: &Budget,
) -> Option<(Machine<'s>, Reach)> {
    let machine = if candidates {
        machine(system, memory, narrow::index(processes), Some(budget))
    } else {
        bare_machine(system, memory, narrow::index(processes), Some(budget))
    }
    .ok()?;
    let reach = machine.reach(most, true, budget).ok()?;
    Some((machine, reach))
}

/// Returns the number of choices of processes, times cases, of the transitions and claims of an
/// instance; `None` on overflow.
fn ground_size(system: &System, n: usize) -> Option<usize> {
    // With fewer processes than parameters, the choices of all processes are enumerated before none
    // remains.
    let injective = |k: usize| (0..k.min(n)).try_fold(1usize, |all, i| all.checked_mul(n - i));
    let mut size = 0usize;
    for t in &system.transitions {
        let cases = |u: &Update| match u {
            Update::Assign { .. } => Some(1),
            Update::Cases { bound, cases, .. } => {
                n.checked_pow(narrow::index(bound.len()))?.checked_mul(cases.len())
            }
        };
        let updates = t.updates.iter().try_fold(1usize, |all, u| all.checked_add(cases(u)?))?;
        size = size.checked_add(injective(t.params.len())?.checked_mul(updates)?)?;
    }
    for c in system.unsafes.iter().chain(&system.invariants) {
        size = size.checked_add(injective(c.params.len())?)?;
    }
    size.checked_add(n.checked_pow(narrow::index(system.init.params.len()))?)
}
