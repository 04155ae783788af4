//! Interchangeable values, for the check of certificates.
//!
//! For each two values `u` and `v`, the machine with `u` renamed to `v` must be bisimilar to the
//! machine that never uses `u`. Strong bisimilarity is decided by the simplest refinement: the
//! class of a state is the set of its labels with the classes of their targets, until no class is
//! divided. (The search requires branching bisimilarity only; a machine that has no more is left
//! open here.) Cost: one hash of all steps for each round and pair.

use super::labels::{Fields, Happening, Names};
use ahash::AHashMap;
use mu_base::{Budget, Diagnostic};

/// Steps of a state: label and target.
type StateSteps = Vec<(u32, u32)>;

/// A machine with the happenings of its labels.
pub struct Merging<'a> {
    /// The happenings of each label.
    pub labels: &'a [Vec<Happening>],
    /// The names.
    pub names: &'a Names,
    /// The steps of each state; state 0 is the first.
    pub steps: &'a [StateSteps],
}

impl Merging<'_> {
    /// Returns the number of pairs of values that are interchangeable; `None` if one is not. Error:
    /// a limit.
    pub fn check(
        &self,
        storable: &[usize],
        into: Option<usize>,
        budget: &Budget,
    ) -> Result<Option<usize>, Diagnostic> {
        let mut pairs = 0;
        for &from in storable {
            for to in storable.iter().copied().filter(|v| *v != from).chain(into) {
                if !self.interchangeable(from, to, budget)? {
                    return Ok(None);
                }
                pairs += 1;
            }
        }
        Ok(Some(pairs))
    }

    fn interchangeable(&self, from: usize, to: usize, budget: &Budget) -> Result<bool, Diagnostic> {
        // Labels as they are, and with the value renamed, by number.
        let mut ids: AHashMap<Vec<Happening>, u32> = AHashMap::new();
        let mut id = |label: Vec<Happening>| {
            let next = ids.len() as u32;
            *ids.entry(label).or_insert(next)
        };
        let plain: Vec<u32> = self.labels.iter().map(|l| id(self.renamed(l, |v| v))).collect();
        let merged: Vec<u32> = self
            .labels
            .iter()
            .map(|l| id(self.renamed(l, |v| if v == from { to } else { v })))
            .collect();
        let uses: Vec<bool> = self
            .labels
            .iter()
            .map(|l| {
                self.renamed(l, |v| if v == from { usize::MAX } else { v })
                    != self.renamed(l, |v| v)
            })
            .collect();
        // The machine with the value renamed, then the one without it.
        let count = self.steps.len() as u32;
        let with = self
            .steps
            .iter()
            .map(|own| own.iter().map(|(l, t)| (merged[*l as usize], *t)).collect::<StateSteps>());
        let without = self.steps.iter().map(|own| {
            let rest = own.iter().filter(|(l, _)| !uses[*l as usize]);
            rest.map(|(l, t)| (plain[*l as usize], count + t)).collect()
        });
        let all: Vec<StateSteps> = with.chain(without).collect();
        let mut class = vec![0u32; all.len()];
        let mut classes = 1;
        loop {
            budget.check(classes as u64).map_err(Diagnostic::stopped)?;
            let mut numbers: AHashMap<(u32, StateSteps), u32> = AHashMap::new();
            let next: Vec<u32> = all
                .iter()
                .zip(&class)
                .map(|(own, old)| {
                    let mut signature: StateSteps =
                        own.iter().map(|(l, t)| (*l, class[*t as usize])).collect();
                    signature.sort_unstable();
                    signature.dedup();
                    let number = numbers.len() as u32;
                    *numbers.entry((*old, signature)).or_insert(number)
                })
                .collect();
            let stable = numbers.len() == classes;
            classes = numbers.len();
            class = next;
            if stable || class[0] != class[count as usize] {
                return Ok(class[0] == class[count as usize]);
            }
        }
    }

    /// Renames the values of a label. The number of a beginning is that of its renamed fields.
    fn renamed(&self, label: &[Happening], image: impl Fn(usize) -> usize) -> Vec<Happening> {
        let fields = |f: &Fields| Fields {
            value: f.value.map(&image),
            written: f.written.map(&image),
            ..f.clone()
        };
        let one = |h: &Happening| match h {
            Happening::Begin(p, number) => {
                Happening::Whole(*p, fields(&self.names.begun[*number].2))
            }
            Happening::End(p, f) => Happening::End(*p, fields(f)),
            Happening::Whole(p, f) => Happening::Whole(*p, fields(f)),
            Happening::Commit(a, v) => Happening::Commit(*a, image(*v)),
        };
        label.iter().map(one).collect()
    }
}
