//! Cores of histories: small histories with the verdicts of many large ones.
//!
//! The models [`ProcessorOrder`] have the form of docs/memory-models.md: coherence, atomicity, and
//! no cycle in `order | rfe | co | fr`. An operation that is on no cycle of an execution does not
//! matter. The *core* of a history is what remains after operations of these kinds are removed, as
//! long as there is one:
//!
//! | removed | condition |
//! |---|---|
//! | a first load of the initial value | no store writes that value to its address |
//! | a last store | no load returns its value |
//! | a last load | its address has no store, or one, which it returns |
//! | a load right after an access of its processor to the same address | that is a load with the
//! same value, or a plain store of that value |
//! | a fence | no access of its processor is before it, or none is after it |
//!
//! *First* and *last* are among the operations of a processor. A history is allowed iff its core is
//! allowed (docs/memory-models.md has the proof). In addition, a core is allowed if it is allowed
//! without a first store of a processor, of which loads then return the initial value. The machine
//! has many histories with few cores, and the verdict on a core is computed once. Cost: a few
//! passes over the operations for each one that is removed.

use crate::every_length::order::ProcessorOrder;
use ahash::AHashMap;
use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, History, Operation};
use mu_axioms::models::MemoryOrdering;
use mu_base::permutations;

/// Largest number of processors for which all permutations are compared to find a key.
const PERMUTED: usize = 4;
/// Limit on the number of known cores; further ones are computed again.
const KNOWN_LIMIT: usize = 4_000_000;

/// True if only operations occur to which cores apply: plain accesses and updates, full fences.
pub fn applies(history: &History) -> bool {
    let plain = |o: &Operation| {
        o.mark == MemoryOrdering::Plain && !o.exclusive && o.depends == Dependencies::NONE
    };
    history.last.is_empty() && history.threads.iter().flatten().all(plain)
}

/// Removes operations until none can be removed.
fn reduce(history: &mut History) {
    while step(history) {}
    history.threads.retain(|t| !t.is_empty());
}

/// Removes one operation; false if none can be removed.
fn step(history: &mut History) -> bool {
    for t in 0..history.threads.len() {
        let thread = &mut history.threads[t];
        let repeated = (1..thread.len()).find(|&i| repeats(&thread[i - 1], &thread[i]));
        let last_fence = thread.last().is_some_and(|o| o.kind == EventKind::Fence);
        let first_fence = thread.first().is_some_and(|o| o.kind == EventKind::Fence);
        let at = repeated.or(last_fence.then(|| thread.len() - 1)).or(first_fence.then_some(0));
        if let Some(at) = at {
            thread.remove(at);
            return true;
        }
        // Fences at the ends are removed, so the ends are accesses.
        let Some(last) = thread.len().checked_sub(1) else { continue };
        let ends = [(0, removes_first_load(history, t)), (last, removes_last(history, t, last))];
        if let Some((at, _)) = ends.into_iter().find(|e| e.1) {
            history.threads[t].remove(at);
            return true;
        }
    }
    false
}

/// Removes first stores too, each as the first one in the coherence order.
fn without_first_stores(core: &History) -> History {
    let mut out = core.clone();
    while let Some(t) = (0..out.threads.len()).find(|&t| removes_first_store(&out, t)) {
        let removed = out.threads[t].remove(0);
        make_initial(&mut out, &removed);
        reduce(&mut out);
    }
    out
}

fn operations(history: &History) -> impl Iterator<Item = &Operation> {
    history.threads.iter().flatten()
}

/// Returns the stores of an address, with updates.
fn stores(history: &History, location: u32) -> impl Iterator<Item = &Operation> {
    operations(history).filter(move |o| o.kind.writes() && o.location == location)
}

fn removes_first_load(history: &History, thread: usize) -> bool {
    let Some(o) = history.threads[thread].first() else { return false };
    o.kind == EventKind::Read && o.value == 0 && !stores(history, o.location).any(|s| s.value == 0)
}

fn removes_first_store(history: &History, thread: usize) -> bool {
    let Some(o) = history.threads[thread].first() else { return false };
    let loads_initial =
        |l: &Operation| l.kind.reads() && l.location == o.location && l.read_value() == 0;
    o.kind == EventKind::Write
        && !stores(history, o.location).any(|s| s.value == 0)
        && !operations(history).any(loads_initial)
}

/// Makes the value of a removed first store the initial one.
fn make_initial(history: &mut History, store: &Operation) {
    for o in history.threads.iter_mut().flatten() {
        if o.kind.reads() && o.location == store.location && o.read_value() == store.value {
            match o.kind {
                EventKind::Update => o.read = 0,
                _ => o.value = 0,
            }
        }
    }
}

fn removes_last(history: &History, thread: usize, at: usize) -> bool {
    let o = &history.threads[thread][at];
    match o.kind {
        EventKind::Write => {
            let loads = |l: &Operation| l.kind.reads() && l.location == o.location;
            !operations(history).any(|l| loads(l) && l.read_value() == o.value)
        }
        EventKind::Read => {
            let mut stores = stores(history, o.location);
            match stores.next() {
                None => o.value == 0,
                Some(only) => stores.next().is_none() && only.value == o.value,
            }
        }
        _ => false,
    }
}

/// True if the second operation, which follows the first one directly, can be removed.
pub(crate) fn repeats(first: &Operation, second: &Operation) -> bool {
    second.kind == EventKind::Read
        && matches!(first.kind, EventKind::Read | EventKind::Write)
        && (first.location, first.value) == (second.location, second.value)
}

/// Writes a string of bytes that is equal for histories that differ in names only; `None` if there
/// are too many processors, locations, or values.
fn key(history: &History, out: &mut Vec<u8>) -> Option<()> {
    let n = history.threads.len();
    if n > PERMUTED {
        return None;
    }
    let mut best: Vec<u8> = Vec::new();
    let mut next = Vec::new();
    let mut order: Vec<usize> = (0..n).collect();
    loop {
        next.clear();
        write(history, &order, &mut next)?;
        if best.is_empty() || next < best {
            std::mem::swap(&mut best, &mut next);
        }
        if !permutations::advance(&mut order) {
            break;
        }
    }
    std::mem::swap(out, &mut best);
    Some(())
}

/// Writes the operations with locations, and the values of each, in the order of their first
/// occurrence; 0 is the initial value.
fn write(history: &History, order: &[usize], out: &mut Vec<u8>) -> Option<()> {
    fn place<T: PartialEq>(names: &mut Vec<T>, name: T) -> Option<u8> {
        let known = names.iter().position(|n| *n == name);
        let at = known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        u8::try_from(at).ok()
    }
    let mut locations: Vec<u32> = Vec::new();
    let mut values: Vec<Vec<u64>> = Vec::new();
    for &t in order {
        for o in &history.threads[t] {
            out.push(match o.kind {
                EventKind::Read => 1,
                EventKind::Write => 2,
                EventKind::Update => 3,
                EventKind::Fence => 4,
                _ => return None,
            });
            if o.kind == EventKind::Fence {
                continue;
            }
            let location = place(&mut locations, o.location)?;
            out.push(location);
            if values.len() < locations.len() {
                values.push(vec![0]);
            }
            let names = &mut values[usize::from(location)];
            if o.kind == EventKind::Update {
                out.push(place(names, o.read)?);
            }
            out.push(place(names, o.value)?);
        }
        out.push(0);
    }
    Some(())
}

/// Verdicts on cores, by their keys.
#[derive(Default)]
pub struct Cores {
    known: AHashMap<Box<[u8]>, [Option<bool>; ProcessorOrder::ALL.len()]>,
}

impl Cores {
    /// Computes the core of a history to which cores apply.
    pub fn of(history: &History) -> History {
        let mut core = history.clone();
        reduce(&mut core);
        core
    }

    /// Returns the verdict of an order on a core. `judge` computes that of a history.
    pub fn verdict<E>(
        &mut self,
        core: &History,
        order: ProcessorOrder,
        judge: &mut dyn FnMut(&History) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if core.is_empty() {
            return Ok(true);
        }
        let mut string = Vec::new();
        if key(core, &mut string).is_none() {
            return judge(core);
        }
        let place = order as usize;
        if let Some(known) = self.known.get(&string[..]).and_then(|v| v[place]) {
            return Ok(known);
        }
        let smaller = without_first_stores(core);
        let is_smaller = smaller.len() < core.len();
        let verdict = is_smaller && self.verdict(&smaller, order, judge)? || judge(core)?;
        if self.known.len() < KNOWN_LIMIT {
            self.known.entry(string.into()).or_default()[place] = Some(verdict);
        }
        Ok(verdict)
    }
}
