//! The prover: searches of growing size, with and without approximations, until one ends; then the
//! proof is verified, or the trace is done on the machine.
//!
//! Small systems are proved without approximations faster than an instance is explored; for large
//! ones approximations decide whether the search ends at all. Neither is known before, so both are
//! tried with limits that grow by turns; the exact search goes on where it stopped. A trace through
//! an approximation refutes it: it is remembered, and the search begins again.

use crate::audit::Audit;
use crate::certificate;
use crate::cube::Cube;
use crate::image::Trouble;
use crate::lemmas::lemmas;
use crate::numbers::Numbers;
use crate::oracle::Instances;
use crate::premises::Refusal;
use crate::replay::{Run, Undone, bare_machine, machine, replay, states_of};
use crate::rules::{Memory, Rules, translate};
use crate::search::{Counts, End, Exact, Node, Search};
use crate::share::Threads;
use crate::start::{Existence, existence, initial};
use crate::verify::{Asked, Refused, verify_within};
use mu_base::host::Instant;
use mu_base::limits::{Budget, Stop};
use mu_cubicle::instance::Reach;
use mu_cubicle::machine::Machine;
use mu_cubicle::system::{System, Update};
use std::time::Duration;

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The memory model.
    pub memory: Memory,
    /// Whether to approximate.
    pub approximate: bool,
    /// The largest instance that approximations are asked of.
    pub instances: usize,
    /// How much work there may be, if that is limited: bindings and cubes that searches look at,
    /// and as often ten questions of the verifier. Then nothing depends on the clock, and
    /// where it ends the answer is that of [`Stop::States`].
    pub work: Option<u64>,
    /// Who does the work. Verdict, certificate and counts do not depend on it.
    pub threads: Threads,
}

/// Most states of an instance that is searched where nothing is proved: usually, and where work is
/// limited.
const MOST_INSTANCE: (usize, usize) = (300_000, 5_000);

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: Memory::Tso,
            approximate: true,
            instances: 4,
            work: None,
            threads: 1.into(),
        }
    }
}

/// Why nothing is known.
#[derive(Clone, Debug)]
pub enum Why {
    /// The system is not handled.
    Refused(Refusal),
    /// No state satisfies `init`, for any number of processes.
    NoInitialState,
    /// No state of this number of processes or fewer satisfies `init`; more are not decided.
    NoInitialStateUpTo(usize),
    /// A limit.
    Stopped(Stop),
    /// Something that a cube cannot represent.
    Trouble(Trouble),
    /// A trace of the abstraction that the machine cannot do: why not, and its steps.
    Spurious(String),
    /// A trace of the abstraction that the machine does not do with the numbers that are tried for
    /// what nothing determines: why not, and its steps.
    Numbers(String),
    /// The proof found was not verified. (A fault of the prover or too large a question for the
    /// verifier.)
    Unverified(Refused),
}

/// What is known.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// No unsafe state can be reached, for any number of processes that the file allows. The
    /// certificate, and what was asked to verify it.
    Safe {
        /// The certificate.
        certificate: String,
        /// What was asked.
        asked: Asked,
    },
    /// An unsafe state is reached.
    Unsafe(Box<Run>),
    /// Nothing.
    Unknown(Why),
}

/// The result.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What is known.
    pub verdict: Verdict,
    /// What the last search counted.
    pub counts: Counts,
    /// How many searches were begun.
    pub searches: usize,
    /// How many approximations were refuted.
    pub refuted: usize,
    /// How many of them were proposed again, which the oracle rules out.
    pub repeated: usize,
    /// How many `invariant`s of the file were assumed.
    pub assumed: usize,
    /// The least number of processes from which on no state satisfies `init`, if one of the first
    /// few is such a number.
    pub empty_from: Option<usize>,
    /// Where nothing is known: the cube that could not be expanded.
    pub stuck: Option<String>,
    /// Where nothing is known: the numbers of processes of which the machine has all states and
    /// none is unsafe.
    pub searched: Option<(usize, usize)>,
    /// The time that the verification took.
    pub verification: Duration,
    /// What samples of machine states checked, once they did.
    pub audit: Option<Audit>,
}

/// What is done at one turn, at most.
#[derive(Clone, Copy)]
struct Turn {
    /// Cubes of the exact search.
    exact: usize,
    /// The work that it does.
    work: u64,
    /// States of an instance.
    states: usize,
    /// Cubes of a search with approximations.
    cubes: usize,
    /// Such searches.
    searches: usize,
    /// The work that they do together.
    tried: u64,
}

/// The first turn.
const FIRST: Turn =
    Turn { exact: 120, work: 15_000, states: 1500, cubes: 300, searches: 25, tried: 40_000 };
/// Instances of at most so many processes are searched where nothing is proved, or of as many as a
/// claim names.
const INSTANCES: usize = 4;
/// An instance with more choices of processes and cases is not searched.
const MOST_GROUND: usize = 1 << 20;
/// States times choices of an instance.
const MOST_EVALUATED: usize = 50_000_000;
/// After so many turns with approximations the search ends where the exact one met something that a
/// cube cannot represent.
const TURNS_AFTER_TROUBLE: usize = 2;
/// Beyond the least number of processes, so many more are compared with `init`.
const INITIAL_SIZES: usize = 3;
/// No instance is explored further.
const MOST_STATES: usize = 1_000_000;

impl Turn {
    /// The turn after this one.
    fn next(self) -> Turn {
        Turn {
            exact: self.exact.saturating_mul(5),
            work: self.work.saturating_mul(5),
            states: self.states.saturating_mul(5).min(MOST_STATES),
            cubes: self.cubes.saturating_mul(5),
            searches: self.searches.saturating_mul(3),
            tried: self.tried.saturating_mul(6),
        }
    }
}

struct Prover<'a> {
    system: &'a System,
    rules: &'a Rules,
    options: Options,
    budget: &'a Budget,
    counts: Counts,
    searches: usize,
    refuted: usize,
    repeated: usize,
    verification: Duration,
    work: Option<u64>,
    exact: Search<'a>,
    oracle: Option<Instances<'a>>,
    /// Cubes of templates that confirm each other, once they were looked for.
    lemmas: Option<Vec<Cube>>,
}

/// Proves or refutes that the system is safe.
pub fn prove(system: &System, options: Options, budget: &Budget) -> Outcome {
    let nothing =
        |why: Why, (verdict, searched): (Option<Verdict>, Option<(usize, usize)>)| Outcome {
            verdict: verdict.unwrap_or(Verdict::Unknown(why)),
            counts: Counts::default(),
            searches: 0,
            refuted: 0,
            repeated: 0,
            assumed: system.invariants.len(),
            empty_from: None,
            stuck: None,
            searched,
            verification: Duration::ZERO,
            audit: None,
        };
    let least = system.fixed.max(1) as usize;
    let rules = match translate(system, options.memory) {
        Ok(rules) => rules,
        Err(refusal) => {
            let empty = no_initial_state(system, None, least);
            let found = if empty.is_some() {
                (None, None)
            } else {
                instances(system, options, options.memory, budget)
            };
            return nothing(empty.unwrap_or(Why::Refused(refusal)), found);
        }
    };
    if let Some(why) = no_initial_state(system, Some(&rules), least) {
        return nothing(why, (None, None));
    }
    let empty_from = empty_from(&rules, least);
    let mut prover = Prover {
        system,
        rules: &rules,
        options,
        budget,
        counts: Counts::default(),
        searches: 1,
        refuted: 0,
        repeated: 0,
        verification: Duration::ZERO,
        work: options.work,
        exact: Search::new(&rules, budget, options.threads),
        oracle: None,
        lemmas: None,
    };
    let (verdict, searched) = match prover.run() {
        Verdict::Unknown(why) if is_ours(&why) => {
            let (found, searched) = instances(system, options, rules.memory, budget);
            (found.unwrap_or(Verdict::Unknown(why)), searched)
        }
        verdict => (verdict, None),
    };
    let Prover { counts, searches, refuted, repeated, verification, exact, .. } = prover;
    let stuck = exact.stuck.as_ref().map(|cube| certificate::line(system, &rules.signature, cube));
    let stuck = stuck.filter(|_| matches!(verdict, Verdict::Unknown(Why::Trouble(_))));
    let assumed = rules.premises.assumed.len();
    Outcome {
        verdict,
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

/// The reason if no number of processes is known to have an initial state. Memory models agree on
/// `init`; under sequential consistency all that the file assumes has a meaning.
fn no_initial_state(system: &System, rules: Option<&Rules>, least: usize) -> Option<Why> {
    if rules.is_some_and(|rules| empty_from(rules, least) == Some(least)) {
        return Some(Why::NoInitialState);
    }
    match existence(&translate(system, Memory::Sc).ok()?, least) {
        Ok(Existence::None) => Some(Why::NoInitialState),
        Ok(Existence::NoneUpTo(n)) => Some(Why::NoInitialStateUpTo(n)),
        Ok(Existence::Some) | Err(_) => None,
    }
}

/// True if no limit of the user's ended the search.
fn is_ours(why: &Why) -> bool {
    !matches!(why, Why::Stopped(_) | Why::Unverified(Refused::Stopped(_)))
}

/// The least number of processes from which on there is no initial state, tried for the first few:
/// what holds of all processes holds of fewer.
fn empty_from(rules: &Rules, least: usize) -> Option<usize> {
    let most = rules.signature.most.unwrap_or(usize::MAX).min(least + INITIAL_SIZES);
    (least..=most).find(|n| {
        let all = Cube { processes: *n, atoms: Vec::new() };
        matches!(initial(rules, &all), Ok(None))
    })
}

impl<'a> Prover<'a> {
    fn run(&mut self) -> Verdict {
        let mut turn = FIRST;
        // What the exact search cannot represent; then approximations have a few more turns.
        let mut trouble: Option<Why> = None;
        let mut turns = 0;
        let why = loop {
            if trouble.is_none() || self.lemmas.as_ref().is_some_and(|l| !l.is_empty()) {
                match self.exact(turn) {
                    Ok(verdict) => return verdict,
                    Err(Why::Stopped(Stop::States)) if self.work != Some(0) => {}
                    // Approximations have the same cases.
                    Err(Why::Trouble(t)) if self.options.approximate && t != Trouble::Cases => {
                        trouble = Some(Why::Trouble(t))
                    }
                    Err(why) => break why,
                }
            }
            // A turn ends as a limit of states does; where it was the limit, the exact search never
            // gets further.
            let last = self.budget.check(self.counts.nodes as u64).is_err();
            if self.options.approximate {
                match self.approximate(turn) {
                    Ok(verdict) => return verdict,
                    Err(Why::Stopped(s @ (Stop::Time | Stop::Memory | Stop::Interrupted))) => {
                        break Why::Stopped(s);
                    }
                    Err(why) if self.work == Some(0) => break why,
                    Err(_) => {}
                }
            }
            if last {
                break Why::Stopped(Stop::States);
            }
            if let Some(why) = &trouble {
                turns += 1;
                if turns >= TURNS_AFTER_TROUBLE {
                    break why.clone();
                }
            }
            turn = turn.next();
            if self.options.approximate && self.lemmas.is_none() {
                self.look_for_lemmas(turn);
            }
        };
        Verdict::Unknown(why)
    }
    /// Takes so much of the work that is left, to be put back what is not done.
    fn take(&mut self, most: u64) -> u64 {
        let taken = self.work.map_or(most, |w| w.min(most));
        self.work = self.work.map(|w| w - taken);
        taken
    }
    fn put_back(&mut self, rest: u64) {
        self.work = self.work.map(|w| w + rest);
    }
    fn exact(&mut self, turn: Turn) -> Result<Verdict, Why> {
        self.exact.work = self.take(turn.work);
        let end = self.exact.run(&mut Exact, turn.exact);
        self.put_back(self.exact.work);
        self.counts = self.exact.counts;
        match end {
            End::Fixpoint(cubes) => self.safe(&cubes),
            End::Reached(path) => self.reached(&path),
            End::Stopped(s) => Err(Why::Stopped(s)),
            End::Trouble(t) => Err(Why::Trouble(t)),
        }
    }
    fn approximate(&mut self, turn: Turn) -> Result<Verdict, Why> {
        let budget = self.budget;
        let mut oracle =
            self.oracle.take().unwrap_or_else(|| Instances::new(self.rules, self.options.threads));
        oracle.grow(self.options.instances, turn.states, &|| budget.check(0).is_err());
        let mut found = Err(Why::Stopped(Stop::States));
        // What follows from several atoms costs more, and few systems need it: those with numbers,
        // and they after what is simple.
        for combines in [false, true] {
            oracle.combines = combines;
            if (combines && !self.rules.has_numbers())
                || !matches!(found, Err(Why::Stopped(Stop::States)))
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
    /// Looks for invariants of templates. If there are any, the exact search begins again with
    /// them.
    fn look_for_lemmas(&mut self, turn: Turn) {
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
            self.exact = Search::new(self.rules, budget, self.options.threads);
            self.exact.lemmas.clone_from(&found);
        }
        self.lemmas = Some(found);
    }
    /// Searches with approximations until one is not refuted.
    fn search(
        &mut self,
        oracle: &mut Instances<'a>,
        turn: Turn,
        work: &mut u64,
    ) -> Result<Verdict, Why> {
        for _ in 0..turn.searches {
            self.searches += 1;
            let mut search = Search::new(self.rules, self.budget, self.options.threads);
            search.work = *work;
            search.lemmas = self.lemmas.clone().unwrap_or_default();
            let end = search.run(oracle, turn.cubes);
            *work = search.work;
            self.counts = search.counts;
            match end {
                End::Fixpoint(cubes) => return self.safe(&cubes),
                End::Reached(path) => match path.iter().rposition(|n| n.approximate) {
                    Some(at) => {
                        let cube = &path[at].cube;
                        // Else the searches would go round in a circle.
                        if oracle.has_refuted(cube) {
                            self.repeated += 1;
                            break;
                        }
                        self.refuted += 1;
                        oracle.refute(cube.clone(), &path[at + 1..]);
                    }
                    None => return self.reached(&path),
                },
                End::Stopped(s) => return Err(Why::Stopped(s)),
                End::Trouble(t) => return Err(Why::Trouble(t)),
            }
        }
        Err(Why::Stopped(Stop::States))
    }
    fn safe(&mut self, cubes: &[Cube]) -> Result<Verdict, Why> {
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
            Ok(asked) => Ok(Verdict::Safe { certificate, asked }),
            Err(Refused::Stopped(s)) => Err(Why::Stopped(s)),
            Err(refused) => Err(Why::Unverified(refused)),
        }
    }
    fn reached(&mut self, path: &[Node]) -> Result<Verdict, Why> {
        match replay(self.system, self.rules, path, self.budget) {
            Ok(run) => Ok(Verdict::Unsafe(Box::new(run))),
            Err(Undone { reason, numbers }) => {
                let names = path.iter().rev().filter(|n| n.parent.is_some());
                let steps: Vec<&str> = names
                    .map(|n| {
                        self.system.transitions[self.rules.rules[n.rule].transition].name.as_str()
                    })
                    .collect();
                let text = format!("{reason} (steps: {})", steps.join(", "));
                Err(if numbers { Why::Numbers(text) } else { Why::Spurious(text) })
            }
        }
    }
}

/// Searches small instances for a run where nothing is found for every number of processes. The
/// second result is the range of numbers of processes of which all states are searched and none is
/// unsafe.
fn instances(
    system: &System,
    options: Options,
    memory: Memory,
    budget: &Budget,
) -> (Option<Verdict>, Option<(usize, usize)>) {
    let most = if options.work.is_some() { MOST_INSTANCE.1 } else { MOST_INSTANCE.0 };
    let params = system.unsafes.iter().map(|c| c.params.len()).max().unwrap_or(1);
    let least = system.fixed.max(1) as usize;
    let largest = params.max(INSTANCES).max(least);
    let mut searched: Option<(usize, usize)> = None;
    for n in least..=system.processes.map_or(largest, |n| (n as usize).min(largest)) {
        let Some(size) = ground_size(system, n).filter(|s| *s <= MOST_GROUND) else { break };
        let most = most.min(MOST_EVALUATED / size.max(1));
        // Without values for numbers that nothing determines, a search that finds nothing is
        // complete, and a claim about such a number may hold.
        let (machine, reach, every) = match search_instance(system, memory, n, most, false, budget)
        {
            Some((machine, reach)) if reach.violation.is_none() => (machine, reach, true),
            _ => match search_instance(system, memory, n, most, true, budget) {
                Some((machine, reach)) => (machine, reach, false),
                None => break,
            },
        };
        if let Some((state, claim, procs)) = &reach.violation {
            let replayed = reach.run(*state);
            let acts: Vec<_> = replayed.steps.iter().map(|s| s.0.clone()).collect();
            let Ok(replayed) = machine.replay(&acts, &system.unsafes[*claim], procs) else {
                continue;
            };
            let steps = replayed.steps.iter().map(|(a, _)| machine.act_text(a)).collect();
            let states = states_of(&machine, &replayed, &system.unsafes[*claim], procs);
            let numbers = if every { Numbers::default() } else { Numbers::of_file(system) };
            let run = Run {
                processes: n as u32,
                replayed,
                steps,
                states,
                claim: (*claim, procs.clone()),
                numbers,
            };
            return (Some(Verdict::Unsafe(Box::new(run))), searched);
        }
        if every && reach.complete && searched.is_none_or(|s| s.1 + 1 == n) {
            searched = Some((searched.map_or(n, |s| s.0), n));
        }
    }
    (None, searched)
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
        machine(system, memory, processes as u32, Some(budget))
    } else {
        bare_machine(system, memory, processes as u32, Some(budget))
    }
    .ok()?;
    let reach = machine.reach(most, true, budget).ok()?;
    Some((machine, reach))
}

/// How many choices of processes, times cases, the transitions and claims of an instance have;
/// `None` if the number is out of range.
fn ground_size(system: &System, n: usize) -> Option<usize> {
    // Where there are fewer processes than parameters, the choices of all of them are made before
    // none is left.
    let injective = |k: usize| (0..k.min(n)).try_fold(1usize, |all, i| all.checked_mul(n - i));
    let mut size = 0usize;
    for t in &system.transitions {
        let cases = |u: &Update| match u {
            Update::Assign { .. } => Some(1),
            Update::Cases { bound, cases, .. } => {
                n.checked_pow(bound.len() as u32)?.checked_mul(cases.len())
            }
        };
        let updates = t.updates.iter().try_fold(1usize, |all, u| all.checked_add(cases(u)?))?;
        size = size.checked_add(injective(t.params.len())?.checked_mul(updates)?)?;
    }
    for c in system.unsafes.iter().chain(&system.invariants) {
        size = size.checked_add(injective(c.params.len())?)?;
    }
    size.checked_add(n.checked_pow(system.init.params.len() as u32)?)
}
