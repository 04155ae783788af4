//! A smallest set of fences that makes a program robust.
//!
//! In: a [`Program`]. Out: places for `mfence`, none of which can be spared and no smaller set of which would do, proven by a check of the
//! program with them. Sets are tried by size. A set that leaves a borderline interleaving that is known already is dropped by running just
//! that through the monitor, fences included; other sets are checked, which proves them or gives a new interleaving. Threads that share an
//! instruction of the source share its fence.

use super::monitor::{Action, Monitor};
use super::robust::{Robustness, Watched, check};
use crate::base::{Budget, Diagnostic, Span, Stop};
use crate::program::{Access, Fence, Instruction, Next, Program, Step};

/// A fence before an instruction, by where that stands in the source.
pub type Place = Span;

/// What was found.
#[derive(Clone, Debug)]
pub struct Fences {
    /// The places; none if the program is robust as it is. Absent if a limit stopped the search, or if no fences help.
    pub places: Option<Vec<Place>>,
    /// The proof: the check of the program with them.
    pub proof: Option<Robustness>,
    /// Places that were considered.
    pub candidates: usize,
    /// Checks that were made.
    pub checks: u64,
    /// Why the search ended.
    pub stop: Stop,
}

/// The program with a fence before each instruction that stands at one of the places. Jumps to the instruction go to the fence.
pub fn with_fences(program: &Program, places: &[Place]) -> Program {
    let mut out = program.clone();
    for thread in &mut out.threads {
        let old = std::mem::take(&mut thread.steps);
        let firsts = std::mem::take(&mut thread.instructions);
        let mut moved = vec![0u32; old.len() + 1];
        let mut steps: Vec<Step> = Vec::with_capacity(old.len());
        for (at, step) in old.iter().enumerate() {
            moved[at] = steps.len() as u32;
            let instruction = &firsts[step.instruction as usize];
            let first = at == 0 || old[at - 1].instruction != step.instruction;
            if first && places.contains(&instruction.span) {
                thread.instructions.push(Instruction { text: "mfence".into(), span: instruction.span, first: steps.len() as u32 });
                let number = thread.instructions.len() as u32 - 1;
                steps.push(Step { access: Access::Fence(Fence::Full), assigns: Vec::new(), next: Next::Fall, instruction: number });
            }
            if first {
                thread.instructions.push(Instruction { first: steps.len() as u32, ..instruction.clone() });
            }
            steps.push(Step { instruction: thread.instructions.len() as u32 - 1, ..step.clone() });
        }
        moved[old.len()] = steps.len() as u32;
        for step in &mut steps {
            if let Next::Jump(to) | Next::Branch(_, to) = &mut step.next {
                *to = moved[(*to as usize).min(old.len())];
            }
        }
        thread.steps = steps;
    }
    out
}

/// Instructions that some store may come before and some load may be at or after, without a fence between: where a fence may help.
fn candidates(program: &Program) -> Vec<Place> {
    let mut out = Vec::new();
    for thread in &program.threads {
        let count = thread.steps.len();
        let orders = |s: &Step| matches!(s.access, Access::Fence(Fence::Full) | Access::Update { .. });
        // Whether a store may wait when control is there.
        let mut waits = vec![false; count + 1];
        let mut changed = true;
        while changed {
            changed = false;
            for (at, step) in thread.steps.iter().enumerate() {
                let after = !orders(step) && (waits[at] || matches!(step.access, Access::Write { .. }));
                for to in crate::program::liveness::successors(step, at, count) {
                    changed |= after && !waits[to];
                    waits[to] |= after;
                }
            }
        }
        // Whether a load may come before the next fence.
        let mut loads = vec![false; count + 1];
        changed = true;
        while changed {
            changed = false;
            for (at, step) in thread.steps.iter().enumerate().rev() {
                let here = matches!(step.access, Access::Read { .. })
                    || !orders(step) && crate::program::liveness::successors(step, at, count).any(|to| loads[to]);
                changed |= here && !loads[at];
                loads[at] |= here;
            }
        }
        for instruction in &thread.instructions {
            let at = instruction.first as usize;
            if at < count && waits[at] && loads[at] && !out.contains(&instruction.span) {
                out.push(instruction.span);
            }
        }
    }
    out
}

/// A borderline interleaving that a set of fences must break.
struct Known {
    schedule: Vec<usize>,
    thread: usize,
}

impl Known {
    /// Whether it is borderline still with fences.
    fn remains(&self, program: &Program, places: &[Place]) -> Result<bool, Diagnostic> {
        let watched = Watched::new(program.clone());
        let mut state = watched.initial();
        let fence = |t: usize, slots: &[u32], monitor: &mut Monitor| {
            let thread = &program.threads[t];
            let at = watched.machine.place(t, slots);
            let here = thread.steps.get(at).map(|s| &thread.instructions[s.instruction as usize]);
            if here.is_some_and(|i| i.first as usize == at && places.contains(&i.span)) {
                monitor.take(t, Action::Fence);
            }
        };
        for &t in &self.schedule {
            fence(t, &state.slots, &mut state.monitor);
            watched.step(t, &mut state)?;
        }
        fence(self.thread, &state.slots, &mut state.monitor);
        let Some(intent) = watched.intent(self.thread, &state)? else { return Ok(false) };
        Ok(watched.borderline(self.thread, intent, &state).is_some())
    }
}

/// Looks for a smallest set.
pub fn smallest(program: &Program, budget: &Budget) -> Result<Fences, Diagnostic> {
    let candidates = candidates(program);
    let mut out = Fences { places: None, proof: None, candidates: candidates.len(), checks: 0, stop: Stop::Complete };
    let mut known: Vec<Known> = Vec::new();
    for size in 0..=candidates.len() {
        let mut chosen: Vec<usize> = (0..size).collect();
        loop {
            if let Err(stop) = budget.check(0) {
                out.stop = stop;
                return Ok(out);
            }
            let places: Vec<Place> = chosen.iter().map(|&i| candidates[i]).collect();
            let mut broken = true;
            for (i, k) in known.iter().enumerate() {
                if k.remains(program, &places)? {
                    broken = false;
                    // What stopped one set is likely to stop the next.
                    known.swap(0, i);
                    break;
                }
            }
            if broken {
                out.checks += 1;
                let fenced = with_fences(program, &places);
                let found = check(&fenced, budget)?;
                match (&found.borderline, &found.stop) {
                    (None, Stop::Complete) => {
                        out.places = Some(places);
                        out.proof = Some(found);
                        return Ok(out);
                    }
                    (None, stop) => {
                        out.stop = stop.clone();
                        return Ok(out);
                    }
                    (Some(b), _) => known.push(without_fences(program, &fenced, &b.schedule, b.thread)?),
                }
            }
            if !advance(&mut chosen, candidates.len()) {
                break;
            }
        }
    }
    Ok(out)
}

/// The next choice of as many numbers below `count`, in order; false after the last.
fn advance(chosen: &mut [usize], count: usize) -> bool {
    let size = chosen.len();
    for i in (0..size).rev() {
        if chosen[i] + (size - i) < count {
            chosen[i] += 1;
            for j in i + 1..size {
                chosen[j] = chosen[j - 1] + 1;
            }
            return true;
        }
    }
    false
}

/// An interleaving of the program with fences as one of the program without.
fn without_fences(program: &Program, fenced: &Program, schedule: &[usize], thread: usize) -> Result<Known, Diagnostic> {
    let watched = Watched::new(fenced.clone());
    let mut state = watched.initial();
    let mut out = Vec::new();
    for &t in schedule {
        let at = watched.machine.place(t, &state.slots);
        let code = &fenced.threads[t];
        let added = code.steps.get(at).is_some_and(|s| {
            let instruction = &code.instructions[s.instruction as usize];
            // A fence that stands where another instruction stands was put there.
            instruction.text == "mfence" && code.instructions.get(s.instruction as usize + 1).is_some_and(|n| n.span == instruction.span)
        });
        watched.step(t, &mut state)?;
        if !added {
            out.push(t);
        }
    }
    debug_assert!(program.threads.len() == fenced.threads.len());
    Ok(Known { schedule: out, thread })
}
