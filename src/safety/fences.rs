//! Search for a smallest set of fences that makes a program robust.
//!
//! Input: a [`Program`]. Output: positions for `mfence`, and for `lock` before instructions that
//! read and write memory without it. The set is minimal in size, proven by a check of the program
//! with it. Sets are tried by size. A set is rejected if a known borderline interleaving remains
//! with its fences, which the monitor checks by running only that interleaving. Other sets are
//! checked, which proves them or gives a new interleaving. Threads that share an instruction of the
//! source share its fence. A prefix `lock` combines the steps of an instruction. Robustness then
//! means that store buffers do not change the behaviour of the program with the prefix.

use super::monitor::ThreadAction;
use super::robust::{MonitoredMachine, Robustness, check};
use mu_base::{Budget, Diagnostic, Span, Stop, narrow};
use mu_program::machine::MoveEffect;
use mu_program::{Access, Fence, Instruction, Next, Program, Step};

/// The repair before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Repair {
    /// The prefix `lock`.
    Lock,
    /// The instruction `mfence`.
    Fence,
}

impl Repair {
    /// Returns its text.
    pub fn word(self) -> &'static str {
        match self {
            Repair::Lock => "lock",
            Repair::Fence => "mfence",
        }
    }
}

/// A repair with its position in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepairPlace {
    /// The instruction.
    pub before: Span,
    /// The repair.
    pub repair: Repair,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Fences {
    /// The positions; empty if the program is already robust. `None` if a limit stopped the search,
    /// or if no fences help.
    pub places: Option<Vec<RepairPlace>>,
    /// The proof: the check of the program with the repairs.
    pub proof: Option<Robustness>,
    /// Number of candidate positions.
    pub candidates: usize,
    /// Number of checks.
    pub checks: u64,
    /// The stop reason.
    pub stop: Stop,
}

/// Inserts fences and locks. Jumps to an instruction lead to the fence before it.
pub fn with_fences(program: &Program, places: &[RepairPlace]) -> Program {
    let mut out = program.clone();
    let put = |repair: Repair, before: Span| places.contains(&RepairPlace { before, repair });
    for thread in &mut out.threads {
        let old = std::mem::take(&mut thread.steps);
        let firsts = std::mem::take(&mut thread.instructions);
        let mut moved = vec![0u32; old.len() + 1];
        let mut steps: Vec<Step> = Vec::with_capacity(old.len());
        for (at, step) in old.iter().enumerate() {
            moved[at] = narrow::index(steps.len());
            let instruction = &firsts[step.instruction as usize];
            let span = instruction.span;
            let first = at == 0 || old[at - 1].instruction != step.instruction;
            if first && put(Repair::Fence, span) {
                let new = Instruction {
                    text: "mfence".into(),
                    span,
                    first: narrow::index(steps.len()),
                    locked: None,
                };
                thread.instructions.push(new);
                let number = narrow::index(thread.instructions.len()) - 1;
                steps.push(Step {
                    access: Access::Fence(Fence::Full),
                    assigns: Vec::new(),
                    next: Next::Fall,
                    instruction: number,
                });
            }
            let locked = instruction.locked.as_ref().filter(|_| put(Repair::Lock, span));
            if first {
                let mut new =
                    Instruction { first: narrow::index(steps.len()), ..instruction.clone() };
                if locked.is_some() {
                    new = Instruction { text: format!("lock {}", new.text), locked: None, ..new };
                }
                thread.instructions.push(new);
            }
            let number = narrow::index(thread.instructions.len()) - 1;
            match locked {
                None => steps.push(Step { instruction: number, ..step.clone() }),
                Some(one) if first => steps.push(Step { instruction: number, ..(**one).clone() }),
                Some(_) => {}
            }
        }
        moved[old.len()] = narrow::index(steps.len());
        for step in &mut steps {
            if let Next::Jump(to) | Next::Branch(_, to) = &mut step.next {
                *to = moved[(*to as usize).min(old.len())];
            }
        }
        thread.steps = steps;
    }
    out
}

/// Returns the candidates: a fence before instructions after a store and before or at a load,
/// without a fence between; a lock for each lockable instruction.
fn candidates(program: &Program) -> Vec<RepairPlace> {
    let mut out = Vec::new();
    for thread in &program.threads {
        let count = thread.steps.len();
        let orders =
            |s: &Step| matches!(s.access, Access::Fence(Fence::Full) | Access::Update { .. });
        // True if a store may be in the buffer at this position.
        let mut waits = vec![false; count + 1];
        let mut changed = true;
        while changed {
            changed = false;
            for (at, step) in thread.steps.iter().enumerate() {
                let after =
                    !orders(step) && (waits[at] || matches!(step.access, Access::Write { .. }));
                for to in mu_program::liveness::successors(step, at, count) {
                    changed |= after && !waits[to];
                    waits[to] |= after;
                }
            }
        }
        // True if a load may occur before the next fence.
        let mut loads = vec![false; count + 1];
        changed = true;
        while changed {
            changed = false;
            for (at, step) in thread.steps.iter().enumerate().rev() {
                let here = matches!(step.access, Access::Read { .. })
                    || !orders(step)
                        && mu_program::liveness::successors(step, at, count).any(|to| loads[to]);
                changed |= here && !loads[at];
                loads[at] |= here;
            }
        }
        for instruction in &thread.instructions {
            let at = instruction.first as usize;
            let before = instruction.span;
            if instruction.locked.is_some() {
                out.push(RepairPlace { before, repair: Repair::Lock });
            }
            if at < count && waits[at] && loads[at] {
                out.push(RepairPlace { before, repair: Repair::Fence });
            }
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// A borderline interleaving that a set of fences must exclude.
struct KnownBorderline {
    schedule: Vec<usize>,
    thread: usize,
}

impl KnownBorderline {
    /// True if it is certainly still borderline with fences and locks.
    fn remains(&self, program: &Program, places: &[RepairPlace]) -> Result<bool, Diagnostic> {
        let monitored = MonitoredMachine::new(program.clone());
        let mut state = monitored.initial();
        // The repair before the next instruction of a thread.
        let put = |t: usize, slots: &[u32], repair: Repair| {
            let thread = &program.threads[t];
            let at = monitored.machine.place(t, slots);
            let here = thread.steps.get(at).map(|s| &thread.instructions[s.instruction as usize]);
            here.is_some_and(|i| {
                i.first as usize == at && places.contains(&RepairPlace { before: i.span, repair })
            })
        };
        let mut schedule = self.schedule.iter().copied().peekable();
        while let Some(t) = schedule.next() {
            if put(t, &state.slots, Repair::Fence) {
                state.monitor.process_event(t, ThreadAction::Fence);
            }
            if !put(t, &state.slots, Repair::Lock) {
                monitored.step(t, &mut state)?;
                continue;
            }
            // If it is locked, its two steps are one, so an interleaving with another thread's step
            // between them is impossible.
            if schedule.next_if_eq(&t).is_none() {
                return Ok(false);
            }
            let Some(MoveEffect::Read { cell, .. }) =
                monitored.machine.advance(t, &mut state.slots)?
            else {
                return Ok(false);
            };
            let wrote = matches!(
                monitored.machine.advance(t, &mut state.slots)?,
                Some(MoveEffect::Write { .. })
            );
            let cell = cell as usize;
            state.monitor.process_event(
                t,
                if wrote { ThreadAction::Locked(cell) } else { ThreadAction::Test(cell) },
            );
        }
        if put(self.thread, &state.slots, Repair::Lock) {
            return Ok(false);
        }
        if put(self.thread, &state.slots, Repair::Fence) {
            state.monitor.process_event(self.thread, ThreadAction::Fence);
        }
        let Some(intent) = monitored.intent(self.thread, &state)? else { return Ok(false) };
        Ok(monitored.borderline(self.thread, intent, &state).is_some())
    }
}

/// Searches for a smallest set.
pub fn smallest(program: &Program, budget: &Budget) -> Result<Fences, Diagnostic> {
    let candidates = candidates(program);
    let mut out = Fences {
        places: None,
        proof: None,
        candidates: candidates.len(),
        checks: 0,
        stop: Stop::Complete,
    };
    let mut known: Vec<KnownBorderline> = Vec::new();
    for size in 0..=candidates.len() {
        let mut chosen: Vec<usize> = (0..size).collect();
        loop {
            if let Err(stop) = budget.check(0) {
                out.stop = stop;
                return Ok(out);
            }
            let places: Vec<RepairPlace> = chosen.iter().map(|&i| candidates[i]).collect();
            let mut broken = true;
            for (i, k) in known.iter().enumerate() {
                if k.remains(program, &places)? {
                    broken = false;
                    // An interleaving that excluded one set is likely to exclude the next.
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
                    (Some(b), _) => {
                        known.push(without_fences(program, &fenced, &b.schedule, b.thread)?)
                    }
                }
            }
            if !advance(&mut chosen, candidates.len()) {
                break;
            }
        }
    }
    Ok(out)
}

/// Advances to the next combination of numbers below `count`. Returns false after the last.
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

/// Converts an interleaving of the program with fences to one of the program without.
fn without_fences(
    program: &Program,
    fenced: &Program,
    schedule: &[usize],
    thread: usize,
) -> Result<KnownBorderline, Diagnostic> {
    let monitored = MonitoredMachine::new(fenced.clone());
    let mut state = monitored.initial();
    let mut out = Vec::new();
    for &t in schedule {
        let at = monitored.machine.place(t, &state.slots);
        let code = &fenced.threads[t];
        // A fence at the position of another instruction was inserted; an instruction that is
        // locked only here is two steps.
        let steps = code.steps.get(at).map_or(1, |s| {
            let instruction = &code.instructions[s.instruction as usize];
            let next = code.instructions.get(s.instruction as usize + 1);
            let was = program.threads[t].instructions.iter().find(|i| i.span == instruction.span);
            match &s.access {
                Access::Fence(_) if next.is_some_and(|n| n.span == instruction.span) => 0,
                Access::Update { .. } if was.is_some_and(|i| i.locked.is_some()) => 2,
                _ => 1,
            }
        });
        monitored.step(t, &mut state)?;
        out.extend((0..steps).map(|_| t));
    }
    Ok(KnownBorderline { schedule: out, thread })
}
