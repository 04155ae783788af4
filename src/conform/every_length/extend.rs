//! Random extensions of a run with a violation, until its history shows the violation.
//!
//! A run may violate a model in the order of its commits although its history is allowed with
//! another order. Operations after it, mostly loads, can exclude the other orders. Input: the steps
//! of a run, a judge of histories. Output: an extension with a forbidden history. Cost: one walk of
//! at most [`STEPS`] steps for each sample. The seeds are fixed, so the answer does not depend on
//! anything but the run.

use super::decide::{Subject, Survey};
use super::effects::{Effect, LabelReader};
use crate::judge::{self, MemoryModel};
use crate::search::Violation;
use crate::sequences::{SequenceEntry, State};
use crate::witness::{self, RunStep};
use ahash::AHashMap;
use mu_axioms::EventKind;
use mu_axioms::history::{History, Operation};
use mu_base::random::Random;
use mu_base::{Budget, Diagnostic};

/// Number of extensions that are tried.
const SAMPLES: u64 = 200;
/// Largest number of additional steps.
const STEPS: usize = 60;
/// Limit on the choices of sources and coherence orders of a history; others are not judged.
const CANDIDATES: u64 = 2_000;
/// Number of additional operations after which an extension ends with the operations in progress.
const OPERATIONS: usize = 5;

/// Searches for an extension that the model forbids; `None` if no sample is one.
pub(super) fn extend(
    subject: &Subject<'_>,
    survey: &Survey,
    steps: &[RunStep],
    model: &MemoryModel,
) -> Result<Option<Violation>, Diagnostic> {
    let (interface, names) = (subject.interface, &survey.alphabet.names);
    let reader = LabelReader::new(interface, &survey.alphabet)?;
    let budget: &Budget = subject.budget;
    let mut worker = model.worker_within(budget);
    let (mut walk, _) = witness::replay(subject.machine, interface, names, steps)?;
    let start = walk.position();
    for seed in 0..SAMPLES {
        budget.check(seed).map_err(Diagnostic::stopped)?;
        let mut random = Random::new(seed);
        walk.go(start)?;
        let (mut begun, mut open) = (0, 0i64);
        for _ in 0..STEPS {
            // Beginnings of operations, mostly not stores, up to the limit.
            let mut allowed = Vec::new();
            for (i, step) in walk.moves().iter().enumerate() {
                let effects = reader.effects(&subject.machine.label_text(step.label))?;
                let begins = effects.iter().any(|e| !is_end(e));
                let stores = effects
                    .iter()
                    .any(|e| matches!(e, Effect::Store { .. } | Effect::Update { .. }));
                if begins && begun >= OPERATIONS || stores && random.chance(3, 4) {
                    continue;
                }
                let opens = effects.iter().any(|e| matches!(e, Effect::Begin { .. }));
                let ends = effects.iter().any(|e| matches!(e, Effect::End { .. }));
                allowed.push((i, begins, i64::from(opens) - i64::from(ends)));
            }
            if allowed.is_empty() || begun >= OPERATIONS && open == 0 {
                break;
            }
            let (index, begins, change) = allowed[random.below(allowed.len())];
            begun += usize::from(begins);
            open += change;
            walk.take(index)?;
        }
        if open != 0 {
            continue;
        }
        let path = walk.path()[..walk.position()].iter();
        let all: Vec<RunStep> =
            path.map(|m| RunStep { label: m.label, state: m.state.clone() }).collect();
        let (_, concrete) = witness::replay(subject.machine, interface, names, &all)?;
        if concrete.iter().flatten().any(|e| e.state != State::Done) {
            continue;
        }
        let lists: Vec<&[SequenceEntry]> = concrete.iter().map(Vec::as_slice).collect();
        let history = judge::history(interface, &lists).canonical();
        if candidates(&history) <= CANDIDATES && !worker.allows(&history)? {
            return Ok(Some(Violation { history, concrete }));
        }
    }
    Ok(None)
}

/// Returns a bound on the choices of sources and coherence orders of a history.
fn candidates(history: &History) -> u64 {
    let operations = || history.threads.iter().flatten();
    let mut out = 1u64;
    let mut stores: AHashMap<u32, u64> = AHashMap::new();
    for o in operations().filter(|o| o.kind.writes()) {
        let count = stores.entry(o.location).or_default();
        *count += 1;
        out = out.saturating_mul(*count);
    }
    for o in operations().filter(|o| o.kind.reads()) {
        let value = if o.kind == EventKind::Update { o.read } else { o.value };
        let same = |s: &&Operation| s.kind.writes() && s.location == o.location && s.value == value;
        let sources = operations().filter(same).count() as u64 + u64::from(value == 0);
        out = out.saturating_mul(sources.max(1));
    }
    out
}

fn is_end(effect: &Effect) -> bool {
    matches!(effect, Effect::End { .. } | Effect::Commit { .. } | Effect::Absorb { .. })
}
