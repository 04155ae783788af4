//! The prover: searches of growing size, with and without approximations, until one ends; then the proof is verified, or the trace is done on the machine.
//!
//! Small systems are proved without approximations faster than an instance is explored; for large ones approximations decide whether the search ends at
//! all. Neither is known before, so both are tried with limits that grow by turns; the exact search goes on where it stopped. A trace through an approximation refutes it: it is remembered, and the
//! search begins again.

use crate::certificate;
use crate::cube::Cube;
use crate::image::Trouble;
use crate::oracle::Instances;
use crate::replay::{Run, machine, replay};
use crate::rules::{Memory, Refusal, Rules, translate};
use crate::search::{Counts, End, Exact, Node, Search};
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
}

/// Most states of an instance that is searched where nothing is proved: usually, and where work is limited.
const MOST_INSTANCE: (usize, usize) = (300_000, 5_000);

impl Default for Options {
    fn default() -> Self {
        Options { memory: Memory::Tso, approximate: true, instances: 4, work: None }
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

/// The turns: most cubes of an exact search; most states of an instance, most cubes and most searches with approximations.
const TURNS: [(usize, usize, usize, usize); 5] = [
    (120, 1500, 300, 8),
    (600, 10_000, 1000, 25),
    (3000, 40_000, 5000, 80),
    (20_000, 200_000, 50_000, 300),
    (usize::MAX, 1_000_000, usize::MAX, 100_000),
];

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
        exact: Search::new(&rules, budget),
    };
    let verdict = prover.run();
    let Prover { counts, searches, refuted, repeated, verification, .. } = prover;
    Outcome { verdict, counts, searches, refuted, repeated, assumed: rules.invariants.len(), verification }
}

impl Prover<'_> {
    fn run(&mut self) -> Verdict {
        let mut why = Why::Stopped(Stop::States);
        for (exact, states, most, searches) in TURNS {
            match self.exact(exact) {
                Ok(verdict) => return verdict,
                Err(w) => why = w,
            }
            if !matches!(why, Why::Stopped(Stop::States)) || self.work == Some(0) {
                break;
            }
            if self.options.approximate {
                match self.approximate(states, most, searches) {
                    Ok(verdict) => return verdict,
                    Err(w) => why = w,
                }
                if matches!(why, Why::Stopped(Stop::Time | Stop::Memory | Stop::Interrupted)) || self.work == Some(0) {
                    break;
                }
            }
        }
        if matches!(why, Why::Spurious(_)) {
            return instances(self.system, self.options, self.rules.memory, why, self.budget);
        }
        Verdict::Unknown(why)
    }
    fn exact(&mut self, most: usize) -> Result<Verdict, Why> {
        self.exact.work = self.work;
        let end = self.exact.run(&mut Exact, most);
        self.work = self.exact.work;
        self.counts = self.exact.counts;
        match end {
            End::Fixpoint(cubes) => self.safe(&cubes),
            End::Reached(path) => self.reached(&path),
            End::Stopped(s) => Err(Why::Stopped(s)),
            End::Trouble(t) => Err(Why::Trouble(t)),
        }
    }
    fn approximate(&mut self, states: usize, most: usize, searches: usize) -> Result<Verdict, Why> {
        let start = Instant::now();
        let slice = Duration::from_millis(states as u64 / 20);
        let budget = self.budget;
        let timed = self.work.is_none();
        let mut oracle =
            Instances::new(self.rules, self.options.instances, states, &|| timed && start.elapsed() > slice || budget.check(0).is_err());
        let mut refuted: Vec<Cube> = Vec::new();
        for _ in 0..searches {
            self.searches += 1;
            let mut search = Search::new(self.rules, self.budget);
            search.work = self.work;
            let end = search.run(&mut oracle, most);
            self.work = search.work;
            self.counts = search.counts;
            match end {
                End::Fixpoint(cubes) => return self.safe(&cubes),
                End::Reached(path) => match path.iter().rev().find(|n| n.approximate) {
                    Some(node) => {
                        // Else the searches would go round in a circle.
                        if refuted.contains(&node.cube) {
                            self.repeated += 1;
                            break;
                        }
                        self.refuted += 1;
                        refuted.push(node.cube.clone());
                        oracle.refute(node.cube.clone());
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
        let verified = verify_within(self.system, &certificate, self.budget, most);
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
