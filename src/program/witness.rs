//! Search for an execution of a machine with a wanted outcome, as a graph of events.
//!
//! Input: a [`Machine`], the observables, a predicate of wanted outcomes. Output: an [`Execution`]:
//! events, reads-from and coherence. The format is that of the axioms ([`super::axiomatic`]), but
//! programs may have loops. The search is breadth-first, so that loops are unrolled no further than
//! necessary, with the reduction of [`super::outcome_search`]. The moves are then replayed with an
//! id for each store, so that each load identifies its source. Cost: that of the outcomes, and 16
//! more bytes per state.

use ahash::AHashSet;
use std::collections::VecDeque;

use super::axiomatic::{EventKind, Execution, GraphEvent};
use super::liveness::{self, Future};
use super::machine::{self, Machine};
use super::outcome_search::{Move, Observable, moves, outcome, persistent_move};
use mu_base::{Budget, Diagnostic, Stop, narrow};

/// The result of a search for an execution.
#[derive(Clone, Debug)]
pub struct Witness {
    /// The execution with its outcome, if there is one.
    pub execution: Option<(Execution, Vec<u64>)>,
    /// The stop reason. Without an execution, none exists only if this is `Complete` and no buffer
    /// was full.
    pub stop: Stop,
}

/// Searches for an execution with a wanted outcome.
pub fn witness(
    machine: &Machine,
    observables: &[Observable],
    budget: &Budget,
    wanted: &dyn Fn(&[u64]) -> bool,
) -> Result<Witness, Diagnostic> {
    let futures: Vec<Vec<Future>> =
        machine.program.threads.iter().map(|t| liveness::futures(&machine.program, t)).collect();
    let initial: Box<[u32]> = machine.initial().into();
    let mut seen: AHashSet<Box<[u32]>> = AHashSet::from([initial.clone()]);
    // For each state: its predecessor and the move.
    let mut before: Vec<(u32, Move)> = vec![(0, (0, None))];
    let mut queue: VecDeque<(u32, Box<[u32]>)> = VecDeque::from([(0, initial)]);
    let mut ready = Vec::new();
    while let Some((number, state)) = queue.pop_front() {
        if number.is_multiple_of(1024)
            && let Err(stop) = budget.check(seen.len() as u64).and_then(|()| budget.check_memory())
        {
            return Ok(Witness { execution: None, stop });
        }
        if machine.is_final(&state) {
            let found = outcome(machine, observables, &state);
            if wanted(&found) {
                let mut path = Vec::new();
                let mut at = number;
                while at != 0 {
                    let (earlier, step) = before[at as usize];
                    path.push(step);
                    at = earlier;
                }
                path.reverse();
                return Ok(Witness {
                    execution: Some((replay(machine, &path)?, found)),
                    stop: Stop::Complete,
                });
            }
            continue;
        }
        let mut take = |step: Move, next: Box<[u32]>| {
            if seen.insert(next.clone()) {
                before.push((number, step));
                queue.push_back((narrow::index(before.len()) - 1, next));
            }
        };
        match persistent_move(machine, &futures, &state, &mut ready)? {
            Some((step, next)) => take(step, next),
            None => moves(machine, &state, &mut ready, &mut take)?,
        }
    }
    Ok(Witness { execution: None, stop: Stop::Complete })
}

/// Returns the events of a run of the machine.
fn replay(machine: &Machine, path: &[Move]) -> Result<Execution, Diagnostic> {
    let program = &machine.program;
    let mut state = machine.initial();
    let mut events: Vec<GraphEvent> = Vec::new();
    let mut coherence: Vec<Vec<usize>> = vec![Vec::new(); program.cells.len()];
    // The buffered stores of each thread; stores to one cell reach memory in order.
    let mut waiting: Vec<Vec<(u32, usize)>> = vec![Vec::new(); program.threads.len()];
    for &(thread, flush) in path {
        if let Some(at) = flush {
            let (cell, _) = machine.flush(thread, at, &mut state)?;
            let first = waiting[thread].iter().position(|w| w.0 == cell);
            let first = first.ok_or_else(|| {
                Diagnostic::internal("a store reaches memory that was never made")
            })?;
            coherence[cell as usize].push(waiting[thread].remove(first).1);
            continue;
        }
        let place = machine.place(thread, &state);
        let instruction = program.threads[thread].steps.get(place).map(|s| s.instruction);
        let Some(event) = machine.advance(thread, &mut state)? else { continue };
        let new = events.len();
        let newest = |cell: u32| coherence[cell as usize].last().copied();
        let make = |kind, cell: u32, read, written, source| GraphEvent {
            thread,
            kind,
            cell: cell as usize,
            read,
            written,
            source,
            instruction: instruction.expect("a thread that advances has a step"),
        };
        events.push(match event {
            machine::MoveEffect::Local | machine::MoveEffect::Flush { .. } => continue,
            machine::MoveEffect::Read { cell, value } => {
                let own = waiting[thread].iter().rev().find(|w| w.0 == cell).map(|w| w.1);
                make(EventKind::Read, cell, value, 0, own.or_else(|| newest(cell)))
            }
            machine::MoveEffect::Write { cell, value } => {
                if machine.memory.has_buffers() {
                    waiting[thread].push((cell, new));
                } else {
                    coherence[cell as usize].push(new);
                }
                make(EventKind::Write, cell, 0, value, None)
            }
            machine::MoveEffect::Update { cell, old, new: value, wrote } => {
                let source = newest(cell);
                if wrote {
                    coherence[cell as usize].push(new);
                }
                make(
                    if wrote { EventKind::Update } else { EventKind::Test },
                    cell,
                    old,
                    if wrote { value } else { 0 },
                    source,
                )
            }
            machine::MoveEffect::Fence(fence) => make(EventKind::Fence(fence), 0, 0, 0, None),
        });
    }
    Ok(Execution { events, coherence })
}

#[cfg(test)]
mod tests {
    use super::super::axiomatic::{Axioms, RelationKind};
    use super::super::litmus::{self, Litmus};
    use super::super::memory;
    use super::super::outcome_search::{observed_registers, outcomes};
    use super::*;
    use mu_base::SourceId;
    use mu_testkit::litmus_tests::{self, Shape};

    fn machine(test: &Litmus, model: &str) -> Machine {
        let registers = observed_registers(&test.observables(), test.program.threads.len());
        Machine::new(
            test.program.clone(),
            memory::by_name(model).unwrap(),
            test.program.buffer_bound(None),
            &registers,
        )
    }

    /// True if an execution is consistent: the two relations of the axioms, rebuilt here from its
    /// events, are acyclic.
    fn consistent(execution: &Execution, axioms: Axioms) -> bool {
        let n = execution.events.len();
        let (mut uniproc, mut ghb) = (vec![vec![false; n]; n], vec![vec![false; n]; n]);
        let e = &execution.events;
        let full = |i: usize| {
            !matches!(
                e[i].kind,
                EventKind::Read | EventKind::Write | EventKind::Fence(super::super::Fence::Store)
            )
        };
        let mark = |i: usize| e[i].kind == EventKind::Fence(super::super::Fence::Store);
        for a in 0..n {
            for b in (0..n).filter(|&b| b > a && e[b].thread == e[a].thread) {
                let accesses = [a, b].iter().all(|&i| e[i].reads() || e[i].writes());
                uniproc[a][b] = accesses && e[a].cell == e[b].cell;
                // A store fence orders all stores around it, so any fence between two stores does.
                let fenced = (a..b).any(|m| e[m].thread == e[a].thread && mark(m))
                    && e[a].writes()
                    && e[b].writes();
                ghb[a][b] = full(a)
                    || full(b)
                    || match axioms {
                        Axioms::Sc => true,
                        Axioms::Tso => {
                            accesses
                                && !(e[a].kind == EventKind::Write && e[b].kind == EventKind::Read)
                        }
                        Axioms::Pso => accesses && e[a].kind == EventKind::Read || fenced,
                    };
            }
        }
        for (a, edge, b) in execution.edges() {
            match edge {
                RelationKind::Po => {}
                RelationKind::Rf => {
                    uniproc[a][b] = true;
                    ghb[a][b] |= axioms == Axioms::Sc || e[a].thread != e[b].thread;
                }
                RelationKind::Co | RelationKind::Fr => {
                    uniproc[a][b] = true;
                    ghb[a][b] = true;
                }
            }
        }
        [uniproc, ghb].into_iter().all(|mut r| {
            for k in 0..n {
                for a in 0..n {
                    for b in 0..n {
                        r[a][b] |= r[a][k] && r[k][b];
                    }
                }
            }
            (0..n).all(|a| !r[a][a])
        })
    }

    /// Each outcome of a random program has an execution, which the axioms allow, and its values
    /// are those of the sources of loads.
    #[test]
    fn every_outcome_has_a_consistent_execution() {
        let mut drawn = 0;
        for seed in 0..120 {
            let shape =
                Shape { threads: 2 + seed as usize % 3, instructions: 3, rich: seed % 2 == 0 };
            let text = litmus_tests::litmus(seed, shape);
            let test = litmus::parse(SourceId::FIRST, &text).unwrap();
            for axioms in Axioms::ALL {
                let machine = machine(&test, axioms.name());
                let all =
                    outcomes(&machine, &test.observables(), true, &Budget::default()).unwrap();
                for wanted in all.set.iter().take(6) {
                    let found = witness(&machine, &test.observables(), &Budget::default(), &|o| {
                        o == &wanted[..]
                    })
                    .unwrap();
                    let place =
                        format!("seed {seed}, {shape:?}, {}, {wanted:?}\n{text}", axioms.name());
                    let (execution, outcome) = found.execution.unwrap_or_else(|| panic!("{place}"));
                    assert_eq!(&outcome, wanted, "{place}");
                    assert!(consistent(&execution, axioms), "{place}\n{execution:?}");
                    for e in execution.events.iter().filter(|e| e.reads()) {
                        let value = e.source.map_or(test.program.cells[e.cell].initial, |s| {
                            execution.events[s].written
                        });
                        assert_eq!(value & e.read, e.read, "{place}\n{execution:?}");
                    }
                    let writes = execution.events.iter().filter(|e| e.writes()).count();
                    assert_eq!(
                        execution.coherence.iter().map(Vec::len).sum::<usize>(),
                        writes,
                        "{place}"
                    );
                    drawn += 1;
                }
            }
        }
        assert!(drawn > 800, "{drawn}");
    }

    #[test]
    fn relaxed_executions_are_not_sequentially_consistent() {
        let sb = "X86 SB\n{}\nP0 | P1 ;\nMOV [x],$1 | MOV [y],$1 ;\nMOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";
        let test = litmus::parse(SourceId::FIRST, sb).unwrap();
        let find = |model: &str| {
            let wanted = |o: &[u64]| test.question.holds(o);
            witness(&machine(&test, model), &test.observables(), &Budget::default(), &wanted)
                .unwrap()
                .execution
        };
        assert!(find("sc").is_none());
        let (execution, outcome) = find("tso").unwrap();
        assert_eq!(outcome, [0, 0]);
        assert!(!consistent(&execution, Axioms::Sc) && consistent(&execution, Axioms::Tso));
        assert_eq!(execution.edges().iter().filter(|e| e.1 == RelationKind::Fr).count(), 2);
    }

    #[test]
    fn loops_are_gone_through_as_often_as_needed() {
        let spin = "X86 spin\n{}\nP0 | P1 ;\nMOV [x],$1 | L: MOV EAX,[x] ;\n | CMP EAX,$1 ;\n | JNE L ;\nexists (1:EAX=1)\n";
        let test = litmus::parse(SourceId::FIRST, spin).unwrap();
        let wanted = |o: &[u64]| test.question.holds(o);
        let found =
            witness(&machine(&test, "tso"), &test.observables(), &Budget::default(), &wanted)
                .unwrap();
        let (execution, _) = found.execution.unwrap();
        assert_eq!(execution.events.len(), 2, "{execution:?}");
        assert_eq!(execution.events.iter().find(|e| e.reads()).unwrap().source, Some(0));
    }
}
