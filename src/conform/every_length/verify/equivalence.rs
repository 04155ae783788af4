//! Interchangeable values, for the check of certificates.
//!
//! For each two values `u` and `v`: the machine without `u` has every run of the machine with `u`
//! renamed to `v`; and in each run without `u`, any one store of `v` can be a store of `u` instead,
//! with the rest of the run equal up to that renaming. Both are inclusions of weak traces. Strong
//! bisimilarity is tried first, by the simplest refinement: the class of a state is the set of its
//! labels with the classes of their targets, until no class is divided. Otherwise all pairs of a
//! state and the set of states with the same trace are enumerated. Cost: one hash of all steps for
//! each round and pair; the enumeration is exponential in the worst case, and limited.

use super::fails;
use super::labels::{Fields, MachineNames, OperationPart};
use crate::interface::{ArgumentRole, Interface};
use ahash::{AHashMap, AHashSet};
use mu_axioms::EventKind;
use mu_base::{Budget, Diagnostic, narrow};

/// Steps of a state: label and target.
type StateSteps = Vec<(u32, u32)>;

/// Limit on the pairs of a state and a set of states that one inclusion enumerates.
const MAX_PAIRS: usize = 400_000;

/// A machine with the happenings of its labels.
pub struct Merging<'a> {
    /// The interface.
    pub interface: &'a Interface,
    /// The happenings of each label.
    pub labels: &'a [Vec<OperationPart>],
    /// The names.
    pub names: &'a MachineNames,
    /// The steps of each state; state 0 is the first.
    pub steps: &'a [StateSteps],
}

/// Numbers of labels: the happenings, and true for the store that a system marks. Number 0 is that
/// of internal labels.
struct Numbering(AHashMap<(Vec<OperationPart>, bool), u32>);

impl Numbering {
    fn of(&mut self, label: Vec<OperationPart>, is_marked: bool) -> u32 {
        let next = narrow::index(self.0.len());
        *self.0.entry((label, is_marked)).or_insert(next)
    }
}

impl Merging<'_> {
    /// Returns the number of pairs of values that are interchangeable; `None` if that was not
    /// decided. Error: a pair is not interchangeable; a limit.
    pub fn check(
        &self,
        storable: &[usize],
        into: Option<usize>,
        budget: &Budget,
    ) -> Result<Option<usize>, Diagnostic> {
        let mut pairs = 0;
        for &from in storable {
            for to in storable.iter().copied().filter(|v| *v != from).chain(into) {
                for marks in [false, true] {
                    match has_all_traces(self.systems(from, to, marks), budget)? {
                        Some(true) => {}
                        Some(false) => return Err(self.rejection(from, to, marks)),
                        None => return Ok(None),
                    }
                }
                pairs += 1;
            }
        }
        Ok(Some(pairs))
    }

    fn rejection(&self, from: usize, to: usize, marks: bool) -> Diagnostic {
        let name = |v: usize| {
            let text = self.names.values.iter().find(|(_, n)| **n == v).map(|(text, _)| text);
            text.cloned().unwrap_or_else(|| v.to_string())
        };
        let (u, v) = (name(from), name(to));
        if marks {
            fails(format!("in some run a store of `{v}` cannot store `{u}` instead"))
        } else {
            fails(format!("a run with `{v}` in place of each `{u}` does not exist"))
        }
    }

    /// Returns two systems in one list of states, and the first state of the second. Without marks:
    /// the machine with `from` renamed to `to`, and the machine without `from`. With marks: the
    /// machine without `from`, in which at most one store of `to` has a mark; and the runs in which
    /// at most one store has the value `from`, which is renamed and has the mark.
    fn systems(&self, from: usize, to: usize, marks: bool) -> (Vec<StateSteps>, u32) {
        let mut numbers = Numbering(AHashMap::new());
        numbers.of(Vec::new(), false);
        let mut number = |image: &dyn Fn(usize) -> usize, is_marked: bool| -> Vec<u32> {
            let labels = self.labels.iter();
            labels.map(|l| numbers.of(self.rename_label(l, image), is_marked)).collect()
        };
        let image = |v: usize| if v == from { to } else { v };
        let (plain, merged) = (number(&|v| v, false), number(&image, false));
        let marked = number(&image, true);
        let flag = |test: &dyn Fn(&Vec<OperationPart>) -> bool| -> Vec<bool> {
            self.labels.iter().map(test).collect()
        };
        let uses = flag(&|l| {
            self.rename_label(l, |v| if v == from { usize::MAX } else { v })
                != self.rename_label(l, |v| v)
        });
        let (stores_from, stores_to) =
            (flag(&|l| self.stores(l, from)), flag(&|l| self.stores(l, to)));
        let count = narrow::index(self.steps.len());
        let system = |step: &dyn Fn(usize, u32, u32, &mut StateSteps), shift: u32| {
            let state = |own: &StateSteps| {
                let mut out = StateSteps::new();
                own.iter().for_each(|(l, t)| step(*l as usize, shift + t, count, &mut out));
                out
            };
            self.steps.iter().map(state).collect::<Vec<StateSteps>>()
        };
        let without = |l: usize, t: u32, _: u32, out: &mut StateSteps| {
            if !uses[l] {
                out.push((plain[l], t));
            }
        };
        if !marks {
            let all = system(&|l, t, _, out| out.push((merged[l], t)), 0);
            return (all.into_iter().chain(system(&without, count)).collect(), count);
        }
        // The wanted runs before and after the mark, then the runs of the machine.
        let wanted = |l: usize, t: u32, n: u32, out: &mut StateSteps| {
            without(l, t, n, out);
            if !uses[l] && stores_to[l] {
                out.push((marked[l], t + n));
            }
        };
        let before = |l: usize, t: u32, n: u32, out: &mut StateSteps| {
            if stores_from[l] {
                out.push((marked[l], t + n));
            } else {
                without(l, t, n, out);
            }
        };
        let after = |l: usize, t: u32, _: u32, out: &mut StateSteps| {
            if !stores_from[l] {
                out.push((merged[l], t));
            }
        };
        let mut all = system(&wanted, 0);
        all.extend(system(&without, count));
        all.extend(system(&before, 2 * count));
        all.extend(system(&after, 3 * count));
        (all, 2 * count)
    }

    /// True if an operation that stores a value begins, or has its value from this label on.
    fn stores(&self, label: &[OperationPart], value: usize) -> bool {
        let line = |f: &Fields| &self.interface.operations[f.line];
        let writes = |f: &Fields| match line(f).kind {
            EventKind::Write => f.value == Some(value),
            _ => f.written == Some(value),
        };
        label.iter().any(|h| match h {
            OperationPart::Begin(_, number) => writes(&self.names.begun[*number].2),
            OperationPart::Whole(_, f) => writes(f),
            OperationPart::End(_, f) => {
                let begin = line(f).begin.as_ref();
                let has_begun = begin.is_some_and(|b| b.roles.contains(&ArgumentRole::Written));
                line(f).kind == EventKind::Update && f.written == Some(value) && !has_begun
            }
            OperationPart::Commit(..) | OperationPart::Absorb(..) => false,
        })
    }

    /// Renames the values of a label. The number of a beginning is that of its renamed fields.
    fn rename_label(
        &self,
        label: &[OperationPart],
        image: impl Fn(usize) -> usize,
    ) -> Vec<OperationPart> {
        let fields = |f: &Fields| Fields {
            value: f.value.map(&image),
            written: f.written.map(&image),
            ..f.clone()
        };
        let one = |h: &OperationPart| match h {
            OperationPart::Begin(p, number) => {
                OperationPart::Whole(*p, fields(&self.names.begun[*number].2))
            }
            OperationPart::End(p, f) => OperationPart::End(*p, fields(f)),
            OperationPart::Whole(p, f) => OperationPart::Whole(*p, fields(f)),
            OperationPart::Commit(a, v) => OperationPart::Commit(*a, image(*v)),
            OperationPart::Absorb(p, a, v) => OperationPart::Absorb(*p, *a, image(*v)),
        };
        label.iter().map(one).collect()
    }
}

/// Returns true if the second system has all weak traces of the first, which begins at state 0;
/// `None` if there are too many pairs. Error: a limit.
fn has_all_traces(
    (steps, second): (Vec<StateSteps>, u32),
    budget: &Budget,
) -> Result<Option<bool>, Diagnostic> {
    if bisimilar(&steps, second, budget)? {
        return Ok(Some(true));
    }
    let closed = |mut states: Vec<u32>| {
        let mut known: AHashSet<u32> = states.iter().copied().collect();
        let mut at = 0;
        while at < states.len() {
            for (l, t) in &steps[states[at] as usize] {
                if *l == 0 && known.insert(*t) {
                    states.push(*t);
                }
            }
            at += 1;
        }
        states.sort_unstable();
        states.dedup();
        states
    };
    let start = (0, closed(vec![second]));
    let mut known: AHashSet<(u32, Vec<u32>)> = AHashSet::new();
    let mut open = vec![start.clone()];
    known.insert(start);
    while let Some((state, set)) = open.pop() {
        budget.check(known.len() as u64).map_err(Diagnostic::stopped)?;
        if known.len() > MAX_PAIRS {
            return Ok(None);
        }
        for (l, t) in &steps[state as usize] {
            let next = if *l == 0 {
                set.clone()
            } else {
                let all = set.iter().flat_map(|s| &steps[*s as usize]);
                closed(all.filter(|(label, _)| label == l).map(|(_, t)| *t).collect())
            };
            if next.is_empty() {
                return Ok(Some(false));
            }
            let pair = (*t, next);
            if known.insert(pair.clone()) {
                open.push(pair);
            }
        }
    }
    Ok(Some(true))
}

/// True if state 0 is strongly bisimilar to another one. Error: a limit.
fn bisimilar(steps: &[StateSteps], second: u32, budget: &Budget) -> Result<bool, Diagnostic> {
    let mut class = vec![0u32; steps.len()];
    let mut classes = 1;
    loop {
        budget.check(classes as u64).map_err(Diagnostic::stopped)?;
        let mut numbers: AHashMap<(u32, StateSteps), u32> = AHashMap::new();
        let next: Vec<u32> = steps
            .iter()
            .zip(&class)
            .map(|(own, old)| {
                let mut signature: StateSteps =
                    own.iter().map(|(l, t)| (*l, class[*t as usize])).collect();
                signature.sort_unstable();
                signature.dedup();
                let number = narrow::index(numbers.len());
                *numbers.entry((*old, signature)).or_insert(number)
            })
            .collect();
        let stable = numbers.len() == classes;
        classes = numbers.len();
        class = next;
        let same = class[0] == class[second as usize];
        if stable || !same {
            return Ok(same);
        }
    }
}
