//! Litmus tests on a machine: which outcomes it shows, beside those that a memory model allows.
//!
//! In: a test, and the histories of a machine up to a number of operations, from one search. Each candidate execution of the test is a history; the machine shows its outcome
//! if it has that history. So the machine is not run again for a test, and tests that differ only in names share the answer.

use ahash::AHashSet;
use mu_axioms::history::{History, Operation};
use mu_axioms::models::Mark;
use mu_axioms::{Kind, Name, RelationId, Skeleton};
use mu_base::{Budget, Diagnostic, Stop};
use mu_litmus::condition::Place;
use mu_litmus::paths::Bounds;
use mu_litmus::{Judge, Test};
use std::collections::BTreeSet;

/// What a machine does, up to a number of operations of each processor.
pub struct Behaviour {
    /// Programs that it runs.
    pub programs: AHashSet<History>,
    /// Its histories.
    pub histories: AHashSet<History>,
}

/// The outcomes of a test.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Those that the machine shows.
    pub shown: BTreeSet<Vec<u64>>,
    /// Those that the model allows.
    pub allowed: BTreeSet<Vec<u64>>,
    /// Why the search for them ended.
    pub stop: Option<Stop>,
}

/// The history of an execution of an x86 test; none if it has an event that the histories of machines do not have: another fence than `MFENCE`, an access that
/// was split. A read and a write related by `rmw` are one update.
fn history(judge: &Judge, skeleton: &Skeleton) -> Option<History> {
    let events = skeleton.events();
    let Some(Name::Set(full)) = judge.model.vocabulary().find("MFENCE") else { return None };
    let rmw = skeleton.relation(RelationId::RMW);
    let mut order: Vec<usize> = (0..events.len()).filter(|&e| events[e].thread.is_some()).collect();
    order.sort_by_key(|&e| (events[e].thread, events[e].index, events[e].kind.writes()));
    let split = |w: &[usize]| {
        let [a, b] = [&events[w[0]], &events[w[1]]];
        (a.thread, a.index, a.kind) == (b.thread, b.index, b.kind) && a.location.is_some()
    };
    if order.windows(2).any(split) {
        return None;
    }
    let threads = events.iter().filter_map(|e| e.thread).max().map_or(0, |t| t as usize + 1);
    let mut out = History { threads: vec![Vec::new(); threads], last: Vec::new() };
    // The value 0 stands for the initial one.
    let initial = |l: Option<u32>| events.iter().find(|e| e.thread.is_none() && e.location == l).map(|e| e.value);
    let value = |e: usize, v: u64| -> Option<u64> {
        let initial = initial(events[e].location)?;
        Some(if v == initial {
            0
        } else if v == 0 {
            u64::MAX
        } else {
            v
        })
    };
    for &e in &order {
        let event = &events[e];
        let thread = &mut out.threads[event.thread? as usize];
        let mark = Mark::Plain;
        match event.kind {
            Kind::Fence if !skeleton.set(full).has(e) => return None,
            Kind::Fence => thread.push(Operation { kind: Kind::Fence, location: 0, value: 0, read: 0, mark }),
            Kind::Update => return None,
            Kind::Read if rmw.after(e).next().is_some() => {
                let w = rmw.after(e).next()?;
                let (value, read) = (value(w, events[w].value)?, value(e, event.value)?);
                thread.push(Operation { kind: Kind::Update, location: event.location?, value, read, mark });
            }
            Kind::Write if rmw.before(e).next().is_some() => {}
            Kind::Read | Kind::Write => {
                thread.push(Operation { kind: event.kind, location: event.location?, value: value(e, event.value)?, read: 0, mark });
            }
            Kind::Branch | Kind::Other => {}
        }
    }
    Some(out)
}

/// The outcomes of a test on a machine and under a model. Error, as text: the machine cannot be asked; or one of the model.
pub fn outcomes(
    mut test: Test,
    judge: &Judge,
    machine: &Behaviour,
    budget: &Budget,
) -> Result<Result<(Test, Outcomes), String>, Diagnostic> {
    if !matches!(test.arch, mu_litmus::Arch::X86 | mu_litmus::Arch::X86_64) {
        return Ok(Err(format!("tests in {} are not asked of machines, only those for x86", test.arch.name())));
    }
    if test.question.observed.iter().any(|o| matches!(o.place, Place::Memory(..))) {
        return Ok(Err("it asks what memory holds at last, which no label of the machine tells".into()));
    }
    let mut out = Outcomes::default();
    let (mut runs, mut foreign) = (false, false);
    let (stop, cut) = mu_litmus::report::each(&mut test, judge, Bounds { loops: 2 }, budget, &mut |met| {
        match history(judge, met.execution.skeleton) {
            None => foreign = true,
            Some(history) => {
                runs |= machine.programs.contains(&history.program());
                if machine.histories.contains(&history.canonical()) {
                    out.shown.insert(met.outcome.to_vec());
                }
            }
        }
        if met.allowed {
            out.allowed.insert(met.outcome.to_vec());
        }
        false
    })?;
    if foreign || cut {
        return Ok(Err("it does more than loads, stores, updates and fences in a row".into()));
    }
    if !runs && stop == Stop::Complete {
        return Ok(Err("it is no program of the machine within the bound".into()));
    }
    out.stop = Some(stop);
    Ok(Ok((test, out)))
}
