//! Random runs of a machine, judged by the axioms of a model that it is said to implement.
//!
//! A check of a proof without its monitors, its product, and the explorer: it shares with them the
//! evaluation of the machine and the reading of labels. Input: a machine, its interface, a model.
//! Output: [`Samples`], or an internal error with the history of a run that the model forbids. A
//! run has a random program of a bounded number of operations of each processor. Seeds are fixed,
//! so the answer depends on the machine alone. Cost: for each run one evaluation of the machine for
//! each step, and one decision of the model about its history.

use crate::alphabet::{Alphabet, LabelNames, Phase};
use crate::interface::Interface;
use crate::judge::{self, MemoryModel};
use crate::sequences::{SequenceEntry, State};
use crate::witness;
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::random::Random;
use mu_base::{Budget, Diagnostic};
use mu_explore::walk::Walk;
use mu_model::Model;

/// Limit on the steps of a run, which is cut off there.
const STEPS: usize = 600;

/// Number and length of random runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Number of runs that are tried.
    pub runs: u64,
    /// Largest number of operations of each processor, at least 2.
    pub operations: usize,
}

/// Random runs that a model allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Number of runs that ended and were judged.
    pub runs: u64,
    /// Number of their operations.
    pub operations: u64,
    /// Largest number of operations of one processor.
    pub longest: usize,
}

/// A part of an operation: the processor, the line of the interface, and the phase.
type Part = (String, u32, Phase);

/// Takes random runs of a machine, and judges them. `names`: those of its labels. Error: a limit;
/// the model forbids a run, which is an internal error.
pub fn sample(
    machine: &dyn Model,
    interface: &Interface,
    names: &LabelNames,
    (model, effort): (&MemoryModel, Effort),
    budget: &Budget,
) -> Result<Samples, Diagnostic> {
    let mut worker = model.worker_within(budget);
    let mut walk = Walk::new(machine, 0)?;
    let mut parts: AHashMap<LabelId, Vec<Part>> = AHashMap::new();
    let mut out = Samples::default();
    for seed in 0..effort.runs {
        budget.check(seed).map_err(Diagnostic::stopped)?;
        let mut random = Random::new(seed);
        let most = 2 + random.below(effort.operations - 1);
        if !take_run(&mut walk, interface, &mut parts, &mut random, most)? {
            continue;
        }
        let taken = walk.path()[..walk.position()].iter();
        let texts: Vec<String> = taken.map(|s| machine.label_text(s.label)).collect();
        let lists = witness::read_operations(interface, names, &texts)?;
        if lists.iter().flatten().any(|e| e.state != State::Done) {
            continue;
        }
        let slices: Vec<&[SequenceEntry]> = lists.iter().map(Vec::as_slice).collect();
        let history = judge::history(interface, &slices).canonical();
        if !worker.allows(&history)? {
            return Err(Diagnostic::internal(format!(
                "`{}` forbids a random run of the machine, although no violation was found: {}",
                model.name,
                history.text()
            )));
        }
        out.runs += 1;
        out.operations += lists.iter().map(|l| l.len() as u64).sum::<u64>();
        out.longest = lists.iter().map(Vec::len).fold(out.longest, usize::max);
    }
    Ok(out)
}

/// Takes random steps from the initial state until each processor has ended this number of
/// operations, or nothing else is possible. Returns false if an operation has not ended.
fn take_run(
    walk: &mut Walk<'_>,
    interface: &Interface,
    parts: &mut AHashMap<LabelId, Vec<Part>>,
    random: &mut Random,
    most: usize,
) -> Result<bool, Diagnostic> {
    walk.go(0)?;
    let mut begun: AHashMap<String, usize> = AHashMap::new();
    let mut open = 0u64;
    for _ in 0..STEPS {
        // Steps by kind, so that many values of stores do not make loads rare.
        let mut kinds: Vec<(Option<Part>, Vec<(usize, LabelId)>)> = Vec::new();
        for (i, step) in walk.moves().iter().enumerate() {
            if !parts.contains_key(&step.label) {
                let read = read_parts(interface, &walk.model().label_text(step.label))?;
                parts.insert(step.label, read);
            }
            let mut begins = parts[&step.label].iter().filter(|p| p.2 != Phase::End);
            if !begins.all(|p| begun.get(&p.0).is_none_or(|n| *n < most)) {
                continue;
            }
            let kind = parts[&step.label].first();
            match kinds.iter_mut().find(|k| k.0.as_ref() == kind) {
                Some(found) => found.1.push((i, step.label)),
                None => kinds.push((kind.cloned(), vec![(i, step.label)])),
            }
        }
        // Internal steps without end are cut off when all operations have ended.
        let ended = open == 0 && !begun.is_empty() && begun.values().all(|n| *n >= most);
        if kinds.is_empty() || ended {
            break;
        }
        let kind = random.choose(&kinds);
        let &(index, label) = random.choose(&kind.1);
        for (processor, _, phase) in &parts[&label] {
            if *phase != Phase::End {
                *begun.entry(processor.clone()).or_default() += 1;
            }
            match phase {
                Phase::Begin => open += 1,
                Phase::End => open = open.saturating_sub(1),
                Phase::Whole => {}
            }
        }
        walk.take(index)?;
    }
    Ok(open == 0)
}

/// Reads the operations of a label.
fn read_parts(interface: &Interface, text: &str) -> Result<Vec<Part>, Diagnostic> {
    let alphabet = Alphabet::of(interface, std::iter::once(text))?;
    let events = alphabet.of_label.get(text).map_or(&[][..], |w| &alphabet.words[*w as usize]);
    let part = |e: &u32| {
        let event = &alphabet.events[*e as usize];
        (alphabet.names.processors[event.processor as usize].clone(), event.operation, event.phase)
    };
    Ok(events.iter().map(part).collect())
}
