//! Outcomes of litmus tests on a machine, compared with those that a memory model allows.
//!
//! Input: a test, and the histories of a machine up to a number of operations, from one search.
//! Each candidate execution of the test is a history; the machine shows its outcome if it has that
//! history. So the machine is not run again for a test, and tests that differ only in names share
//! the result.

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

/// The behaviour of a machine, up to a number of operations of each processor.
pub struct Behaviour {
    /// The programs that it can execute.
    pub programs: AHashSet<History>,
    /// Its histories.
    pub histories: AHashSet<History>,
}

/// The outcomes of a test.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// The outcomes of the machine.
    pub shown: BTreeSet<Vec<u64>>,
    /// The outcomes that the model allows.
    pub allowed: BTreeSet<Vec<u64>>,
    /// The stop reason of their enumeration.
    pub stop: Option<Stop>,
}

/// The tags of a language's events that correspond to operations of machines.
struct LanguageTags {
    /// Full fences.
    full: &'static [&'static str],
    /// Loads that are acquires.
    acquire: &'static str,
    /// Stores that are releases.
    release: &'static str,
    /// Tags that no machine operation has: reservations and other orders.
    unsupported: &'static [&'static str],
    /// True if dependencies order operations in the language. Labels of machines do not contain
    /// dependencies, so tests with dependencies are unsupported.
    has_dependencies: bool,
}

fn tags_of(arch: Arch) -> Option<LanguageTags> {
    Some(match arch {
        Arch::X86 | Arch::X86_64 => LanguageTags {
            full: &["MFENCE"],
            acquire: "",
            release: "",
            unsupported: &[],
            has_dependencies: false,
        },
        Arch::RiscV => LanguageTags {
            full: &["Fence.rw.rw"],
            acquire: "Acq",
            release: "Rel",
            unsupported: &["AcqRel", "Sc", "X", "AMO"],
            has_dependencies: true,
        },
        Arch::AArch64 => LanguageTags {
            full: &["DMB.SY", "DMB.ISH"],
            acquire: "A",
            release: "L",
            unsupported: &["Q", "X", "NoRet", "AMO"],
            has_dependencies: true,
        },
        Arch::Power | Arch::Arm | Arch::C | Arch::Linux => return None,
    })
}

/// Converts an execution of a test to a history. `None` if it has an event that machines do not
/// have: a fence that is not full, or a split access. A read and a write related by `rmw` are one
/// update.
fn history(tags_of: &LanguageTags, judge: &Judge, skeleton: &Skeleton) -> Option<History> {
    let events = skeleton.events();
    let has_tag = |e: usize, name: &str| match judge.model.vocabulary().find(name) {
        Some(Name::Set(id)) => skeleton.set(id).has(e),
        _ => false,
    };
    if (0..events.len()).any(|e| tags_of.unsupported.iter().any(|name| has_tag(e, name))) {
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
    // In histories the initial value is 0.
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
            Kind::Read if has_tag(e, tags_of.acquire) => Mark::Acquire,
            Kind::Write if has_tag(e, tags_of.release) => Mark::Release,
            _ => Mark::Plain,
        };
        match event.kind {
            Kind::Fence if !tags_of.full.iter().any(|name| has_tag(e, name)) => return None,
            Kind::Fence => {
                thread.push(Operation { kind: Kind::Fence, location: 0, value: 0, read: 0, mark })
            }
            Kind::Update => return None,
            Kind::Read if rmw.after(e).next().is_some() => {
                let w = rmw.after(e).next()?;
                if mark != Mark::Plain || has_tag(w, tags_of.release) {
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

/// True if an operation of the thread depends on a load by its address, its value, or a branch
/// before it.
fn has_dependencies(thread: &Thread) -> bool {
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

/// Computes the outcomes of a test on a machine and under a model. Inner error: the machine cannot
/// run the test, with the reason as text.
pub fn outcomes(
    mut test: Test,
    judge: &Judge,
    machine: &Behaviour,
    budget: &Budget,
) -> Result<Result<(Test, Outcomes), String>, Diagnostic> {
    let Some(tags_of) = tags_of(test.arch) else {
        return Ok(Err(format!(
            "tests in {} cannot be run on machines; supported are x86, RISC-V and AArch64",
            test.arch.name()
        )));
    };
    if test.question.observed.iter().any(|o| matches!(o.place, Place::Memory(..))) {
        return Ok(Err(
            "its condition depends on the final memory, which labels of the machine do not contain"
                .into(),
        ));
    }
    if tags_of.has_dependencies && test.threads.iter().any(has_dependencies) {
        return Ok(Err(
            "it has dependencies between operations, which labels of the machine do not contain"
                .into(),
        ));
    }
    let mut out = Outcomes::default();
    let (mut runs, mut unsupported) = (false, false);
    let (stop, cut) =
        mu_litmus::report::each(&mut test, judge, Bounds { loops: 2 }, budget, &mut |candidate| {
            let skeleton = candidate.execution.skeleton;
            match history(&tags_of, judge, skeleton) {
                None => unsupported = true,
                Some(history) => {
                    runs |= machine.programs.contains(&history.program());
                    if machine.histories.contains(&history.canonical()) {
                        out.shown.insert(candidate.outcome.to_vec());
                    }
                }
            }
            if candidate.allowed {
                out.allowed.insert(candidate.outcome.to_vec());
            }
            false
        })?;
    if unsupported || cut {
        return Ok(Err("it is not a sequence of loads, stores, updates and full fences".into()));
    }
    if !runs && stop == Stop::Complete {
        return Ok(Err("the machine has no such program within the bound".into()));
    }
    out.stop = Some(stop);
    Ok(Ok((test, out)))
}
