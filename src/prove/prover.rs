//! The prover: searches of growing size, with and without approximations, until one ends; then the proof is verified, or the trace is done on the machine.
//!
//! Small systems are proved without approximations faster than an instance is explored; for large ones approximations decide whether the search ends at
//! all. Neither is known before, so both are tried with limits that grow by turns; the exact search goes on where it stopped. A trace through an approximation refutes it: it is remembered, and the
//! search begins again.

use crate::certificate;
use crate::cube::Cube;
use crate::image::Trouble;
use crate::lemmas::lemmas;
use crate::oracle::Instances;
use crate::replay::{Run, machine, replay};
use crate::rules::{Memory, Refusal, Rules, translate};
use crate::search::{Counts, End, Exact, Node, Search};
use crate::share::Threads;
use crate::verify::{Asked, Refused, verify_within};
use mu_base::host::Instant;
use mu_base::limits::{Budget, Stop};
use mu_cubicle::system::System;
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
    /// How much work there may be, if that is limited: bindings and cubes that searches look at, and as often ten questions of the verifier. Then nothing depends on
    /// the clock, and where it ends the answer is that of [`Stop::States`].
    pub work: Option<u64>,
    /// Who does the work. Verdict, certificate and counts do not depend on it.
    pub threads: Threads,
}

/// Most states of an instance that is searched where nothing is proved: usually, and where work is limited.
const MOST_INSTANCE: (usize, usize) = (300_000, 5_000);

impl Default for Options {
    fn default() -> Self {
        Options { memory: Memory::Tso, approximate: true, instances: 4, work: None, threads: 1.into() }
    }
}

/// Why nothing is known.
#[derive(Clone, Debug)]
pub enum Why {
    /// The system is not handled.
    Refused(String),
    /// A limit.
    Stopped(Stop),
    /// Something that a cube cannot represent.
    Trouble(Trouble),
    /// A trace of the abstraction that the machine cannot do: why not, and its steps.
    Spurious(String),
    /// The proof found was not verified. (A fault of the prover or too large a question for the verifier.)
    Unverified(Refused),
}

/// What is known.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// No unsafe state can be reached, for any number of processes that the file allows. The certificate, and what was asked to verify it.
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
    /// The time that the verification took.
    pub verification: Duration,
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
const FIRST: Turn = Turn { exact: 120, work: 15_000, states: 1500, cubes: 300, searches: 25, tried: 40_000 };
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
    let rules = match translate(system, options.memory) {
        Ok(rules) => rules,
        Err(Refusal(why)) => {
            let verdict = instances(system, options, options.memory, Why::Refused(why), budget);
            let assumed = system.invariants.len();
            return Outcome {
                verdict,
                counts: Counts::default(),
                searches: 0,
                refuted: 0,
                repeated: 0,
                assumed,
                verification: Duration::ZERO,
            };
        }
    };
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
    let verdict = prover.run();
    let Prover { counts, searches, refuted, repeated, verification, .. } = prover;
    Outcome { verdict, counts, searches, refuted, repeated, assumed: rules.invariants.len(), verification }
}

impl<'a> Prover<'a> {
    fn run(&mut self) -> Verdict {
        let mut turn = FIRST;
        let why = loop {
            match self.exact(turn) {
                Ok(verdict) => return verdict,
                Err(Why::Stopped(Stop::States)) if self.work != Some(0) => {}
                Err(why) => break why,
            }
            // A turn ends as a limit of states does; where it was the limit, the exact search never gets further.
            let last = self.budget.check(self.counts.nodes as u64).is_err();
            if self.options.approximate {
                match self.approximate(turn) {
                    Ok(verdict) => return verdict,
                    Err(Why::Stopped(s @ (Stop::Time | Stop::Memory | Stop::Interrupted))) => break Why::Stopped(s),
                    Err(why) if self.work == Some(0) => break why,
                    Err(_) => {}
                }
            }
            if last {
                break Why::Stopped(Stop::States);
            }
            turn = turn.next();
            if self.options.approximate && self.lemmas.is_none() {
                self.look_for_lemmas(turn);
            }
        };
        if matches!(why, Why::Spurious(_)) {
            return instances(self.system, self.options, self.rules.memory, why, self.budget);
        }
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
        let mut oracle = self.oracle.take().unwrap_or_else(|| Instances::new(self.rules, self.options.threads));
        oracle.grow(self.options.instances, turn.states, &|| budget.check(0).is_err());
        let mut found = Err(Why::Stopped(Stop::States));
        // What follows from several atoms costs more, and few systems need it: those with numbers, and they after what is simple.
        for combines in [false, true] {
            oracle.combines = combines;
            if (combines && !self.rules.has_numbers()) || !matches!(found, Err(Why::Stopped(Stop::States))) {
                break;
            }
            let mut work = self.take(turn.tried);
            found = self.search(&mut oracle, turn, &mut work);
            self.put_back(work);
        }
        self.oracle = Some(oracle);
        found
    }
    /// Looks for invariants of templates. If there are any, the exact search begins again with them.
    fn look_for_lemmas(&mut self, turn: Turn) {
        let budget = self.budget;
        let mut oracle = self.oracle.take().unwrap_or_else(|| Instances::new(self.rules, self.options.threads));
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
    fn search(&mut self, oracle: &mut Instances<'a>, turn: Turn, work: &mut u64) -> Result<Verdict, Why> {
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
        let certificate = certificate::write(self.system, &self.rules.signature, self.rules.memory == Memory::Tso, cubes);
        let start = Instant::now();
        let most = self.options.work.map_or(u64::MAX, |w| w.saturating_mul(10));
        let verified = verify_within(self.system, &certificate, self.budget, self.options.threads.count, most);
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
            Err(reason) => {
                let names = path.iter().rev().filter(|n| n.parent.is_some());
                let steps: Vec<&str> = names.map(|n| self.system.transitions[self.rules.rules[n.rule].transition].name.as_str()).collect();
                Err(Why::Spurious(format!("{reason} (steps: {})", steps.join(", "))))
            }
        }
    }
}

/// Nothing is found for every number of processes: perhaps a small number of them has a run.
fn instances(system: &System, options: Options, memory: Memory, why: Why, budget: &Budget) -> Verdict {
    let most = if options.work.is_some() { MOST_INSTANCE.1 } else { MOST_INSTANCE.0 };
    let params = system.unsafes.iter().map(|c| c.params.len()).max().unwrap_or(1).max(1);
    let sizes = match system.processes {
        Some(n) => vec![n as usize],
        None => (params..=params.max(4)).collect(),
    };
    for n in sizes {
        let Ok(machine) = machine(system, memory, n as u32) else { continue };
        let Ok(reach) = machine.reach(most, true, budget) else { continue };
        if let Some((state, claim, procs)) = &reach.violation {
            let replayed = reach.run(*state);
            let acts: Vec<_> = replayed.steps.iter().map(|s| s.0.clone()).collect();
            let Ok(replayed) = machine.replay(&acts, &system.unsafes[*claim], procs) else { continue };
            let steps = replayed.steps.iter().map(|(a, _)| machine.act_text(a)).collect();
            let states =
                std::iter::once(&replayed.start).chain(replayed.steps.iter().map(|s| &s.1)).map(|s| machine.state_text(s)).collect();
            let run = Run { processes: n as u32, replayed, steps, states, claim: (*claim, procs.clone()) };
            return Verdict::Unsafe(Box::new(run));
        }
    }
    Verdict::Unknown(why)
}
