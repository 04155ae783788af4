//! Litmus tests on a machine: which outcomes it shows, beside those that a memory model allows.
//!
//! In: a test, and the histories of a machine up to a number of operations, from one search. Each
//! candidate execution of the test is a history; the machine shows its outcome if it has that
//! history. So the machine is not run again for a test, and tests that differ only in names share
//! the answer.

use ahash::AHashSet;
use mu_axioms::history::{History, Operation};
use mu_axioms::models::Mark;
use mu_axioms::{Kind, Name, RelationId, Skeleton};
use mu_base::{Budget, Diagnostic, Stop};
use mu_litmus::code::{Expr, Op, Thread};
use mu_litmus::condition::Place;
use mu_litmus::paths::Bounds;
use mu_litmus::{Arch, Judge, Test};
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

/// What the operations of a language are to a machine, by the tags of their events.
struct Words {
    /// Fences that wait for everything.
    full: &'static [&'static str],
    /// Loads that are acquires.
    acquire: &'static str,
    /// Stores that are releases.
    release: &'static str,
    /// What no machine here has a label for: reservations, other orders.
    foreign: &'static [&'static str],
    /// Whether the language orders what depends on a load: then a machine would have to be asked
    /// with its dependencies, which no label tells.
    depends: bool,
}

fn words(arch: Arch) -> Option<Words> {
    Some(match arch {
        Arch::X86 | Arch::X86_64 => {
            Words { full: &["MFENCE"], acquire: "", release: "", foreign: &[], depends: false }
        }
        Arch::RiscV => Words {
            full: &["Fence.rw.rw"],
            acquire: "Acq",
            release: "Rel",
            foreign: &["AcqRel", "Sc", "X", "AMO"],
            depends: true,
        },
        Arch::AArch64 => Words {
            full: &["DMB.SY", "DMB.ISH"],
            acquire: "A",
            release: "L",
            foreign: &["Q", "X", "NoRet", "AMO"],
            depends: true,
        },
        Arch::C => return None,
    })
}

/// The history of an execution of a test; none if it has an event that the histories of machines do
/// not have: another fence than a full one, an access that was split. A read and a write related by
/// `rmw` are one update.
fn history(words: &Words, judge: &Judge, skeleton: &Skeleton) -> Option<History> {
    let events = skeleton.events();
    let tagged = |e: usize, name: &str| match judge.model.vocabulary().find(name) {
        Some(Name::Set(id)) => skeleton.set(id).has(e),
        _ => false,
    };
    if (0..events.len()).any(|e| words.foreign.iter().any(|name| tagged(e, name))) {
        return None;
    }
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
    let initial = |l: Option<u32>| {
        events.iter().find(|e| e.thread.is_none() && e.location == l).map(|e| e.value)
    };
    let value = |e: usize, v: u64| -> Option<u64> {
        let initial = initial(events[e].location)?;
        Some(if v == initial {
            0
        } else if v == 0 {
            initial
        } else {
            v
        })
    };
    for &e in &order {
        let event = &events[e];
        let thread = &mut out.threads[event.thread? as usize];
        let mark = match event.kind {
            Kind::Read if tagged(e, words.acquire) => Mark::Acquire,
            Kind::Write if tagged(e, words.release) => Mark::Release,
            _ => Mark::Plain,
        };
        match event.kind {
            Kind::Fence if !words.full.iter().any(|name| tagged(e, name)) => return None,
            Kind::Fence => {
                thread.push(Operation { kind: Kind::Fence, location: 0, value: 0, read: 0, mark })
            }
            Kind::Update => return None,
            Kind::Read if rmw.after(e).next().is_some() => {
                let w = rmw.after(e).next()?;
                if mark != Mark::Plain || tagged(w, words.release) {
                    return None;
                }
                let (value, read) = (value(w, events[w].value)?, value(e, event.value)?);
                thread.push(Operation {
                    kind: Kind::Update,
                    location: event.location?,
                    value,
                    read,
                    mark,
                });
            }
            Kind::Write if rmw.before(e).next().is_some() => {}
            Kind::Read | Kind::Write => {
                thread.push(Operation {
                    kind: event.kind,
                    location: event.location?,
                    value: value(e, event.value)?,
                    read: 0,
                    mark,
                });
            }
            Kind::Branch | Kind::Other => {}
        }
    }
    Some(out)
}

/// Whether an operation of a thread depends on what another one has read: by its address, its
/// value, or a branch before it.
fn depends(thread: &Thread) -> bool {
    let mut read = vec![false; thread.registers.len()];
    for op in &thread.ops {
        let uses = |e: &Expr| {
            let mut found = false;
            e.sources(&mut |r| found |= read[r as usize]);
            found
        };
        match op {
            Op::Let(r, e) => read[*r as usize] = uses(e),
            Op::Load { into, address, .. } => {
                if uses(address) {
                    return true;
                }
                into.iter().for_each(|r| read[*r as usize] = true);
            }
            Op::Update { into, address, value, .. } => {
                if uses(address) || uses(value) {
                    return true;
                }
                into.iter().for_each(|(r, _)| read[*r as usize] = true);
            }
            Op::Store { address, value, .. } | Op::StoreConditional { address, value, .. }
                if uses(address) || uses(value) =>
            {
                return true;
            }
            Op::Branch { when: Some(e), .. } if uses(e) => return true,
            _ => {}
        }
    }
    false
}

/// The outcomes of a test on a machine and under a model. Error, as text: the machine cannot be
/// asked; or one of the model.
pub fn outcomes(
    mut test: Test,
    judge: &Judge,
    machine: &Behaviour,
    budget: &Budget,
) -> Result<Result<(Test, Outcomes), String>, Diagnostic> {
    let Some(words) = words(test.arch) else {
        return Ok(Err(format!(
            "tests in {} are not asked of machines, only those for x86, RISC-V and AArch64",
            test.arch.name()
        )));
    };
    if test.question.observed.iter().any(|o| matches!(o.place, Place::Memory(..))) {
        return Ok(Err(
            "it asks what memory holds at last, which no label of the machine tells".into()
        ));
    }
    if words.depends && test.threads.iter().any(depends) {
        return Ok(Err(
            "it has dependencies between operations, which no label of the machine tells".into(),
        ));
    }
    let mut out = Outcomes::default();
    let (mut runs, mut foreign) = (false, false);
    let (stop, cut) =
        mu_litmus::report::each(&mut test, judge, Bounds { loops: 2 }, budget, &mut |met| {
            let skeleton = met.execution.skeleton;
            match history(&words, judge, skeleton) {
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
        return Ok(Err("it does more than loads, stores, updates and full fences in a row".into()));
    }
    if !runs && stop == Stop::Complete {
        return Ok(Err("it is no program of the machine within the bound".into()));
    }
    out.stop = Some(stop);
    Ok(Ok((test, out)))
}
