//! Which slots are numbered together in a search by several processes, and which say whose a state
//! is: one of them looks at some states first.
//!
//! Slots are numbered in tuples, leaf by leaf ([`super::store`]). A search by one process splits a
//! leaf that has nearly as many tuples as there are states. That one by several ([`super::partition`])
//! cannot: its numbers are known to others. So before it one process makes a short search, and
//! splits what is to be split then; with symmetries leaves are whole components. It also looks
//! which leaves change seldom ([`super::partition_leaves`]). In: a model. Out: [`LeafLayout`], which all
//! processes are given. Cost: at most [`STATES`] states or [`TIME`], whichever is less. Invariant:
//! every slot is in one leaf, whatever the bytes are that leaves are read from; which one it is
//! changes no count.

use std::time::Duration;

use bincode::{Decode, Encode};

use super::Options;
use super::partition::{Batch, Partition};
use super::partition_leaves::telling;
use super::symmetry::{Symmetries, Thrift};
use mu_base::host::Instant;
use mu_base::varint::{put, take};
use mu_base::{Budget, Diagnostic, Stage};
use mu_model::Model;

/// States that are looked at.
const STATES: u64 = 1 << 16;
/// States expanded between two looks at the clock.
const BLOCK: usize = 64;
/// Time for it; tests look at all of them, however slow the machine is.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 100 });

/// How slots are dealt to leaves, and states to processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct LeafLayout {
    /// The slots of each leaf, if that was chosen.
    pub(super) dealt: Option<Vec<Vec<u32>>>,
    /// The leaves that say whose a state is; all, if there are none.
    pub(super) telling: Vec<u32>,
}

impl LeafLayout {
    /// Those that a short search asks for, before so many processes search. What ends it early, a
    /// limit or an error of the model, ends that of all again, and is told there; but if
    /// symmetries cost more than they save, only they know ([`Symmetries::is_costly`]).
    #[must_use]
    pub fn found(
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        symmetries: Option<&Symmetries>,
        processes: usize,
    ) -> Option<Self> {
        let options = Options { leaves: None, ..options.clone() };
        let mut share = Partition::new(model, &options, budget, symmetries, 0, 1).ok()?.thrifty();
        look_at_some(&mut share).ok()?;
        let mut is_split = false;
        while symmetries.is_none()
            && let Some(leaf) = share.store.unfit_leaf()
        {
            share.split(leaf);
            is_split = true;
        }
        let telling = telling(&mut share, processes).ok()?;
        let dealt = is_split.then(|| share.store.leaves.iter().map(|l| l.slots.clone()).collect());
        Some(Self { dealt, telling }).filter(|found| *found != Self::default())
    }

    /// As bytes; empty: none were chosen.
    #[must_use]
    pub fn write(leaves: Option<&Self>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(leaves) = leaves else { return bytes };
        for list in std::iter::once(&leaves.telling).chain(leaves.dealt.iter().flatten()) {
            put(&mut bytes, list.len() as u64);
            list.iter().for_each(|n| put(&mut bytes, u64::from(*n)));
        }
        bytes
    }

    /// From bytes, for a model with so many slots.
    ///
    /// # Errors
    /// They do not say in which leaf each slot is.
    pub fn read(bytes: &[u8], slots: usize) -> Result<Option<Self>, Diagnostic> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let bytes = &mut &*bytes;
        let mut lists = Vec::new();
        while !bytes.is_empty() {
            let count = take(bytes).filter(|n| *n <= slots as u64).ok_or_else(malformed)?;
            let list =
                (0..count).map(|_| u32::try_from(take(bytes)?).ok()).collect::<Option<Vec<u32>>>();
            lists.push(list.ok_or_else(malformed)?);
        }
        let dealt = lists.split_off(1);
        let telling = lists.pop().unwrap_or_default();
        Self { dealt: Some(dealt).filter(|d| !d.is_empty()), telling }.of_slots(slots).map(Some)
    }

    /// Itself, if each of so many slots is in it once, and what tells is a leaf.
    ///
    /// # Errors
    /// It is not.
    pub fn of_slots(self, slots: usize) -> Result<Self, Diagnostic> {
        if let Some(dealt) = &self.dealt {
            let mut all: Vec<u32> = dealt.iter().flatten().copied().collect();
            all.sort_unstable();
            if dealt.iter().any(Vec::is_empty) || !all.into_iter().eq(0..slots as u32) {
                return Err(malformed());
            }
        }
        let leaves = self.dealt.as_ref().map_or(slots, Vec::len) as u32;
        let telling = &self.telling;
        if telling.iter().all(|leaf| *leaf < leaves) && telling.is_sorted_by(|a, b| a < b) {
            Ok(self)
        } else {
            Err(malformed())
        }
    }
}

fn malformed() -> Diagnostic {
    Diagnostic::new(Stage::File, "a malformed layout of states")
}

/// A search by one process until it has seen enough; longer if symmetries seem to cost more than
/// they save, so that they can be judged.
fn look_at_some(share: &mut Partition<'_>) -> Result<(), Diagnostic> {
    let start = Instant::now();
    share.start()?;
    let time =
        |share: &Partition<'_>| if share.expander.suspects() { 2 * Thrift::PATIENCE } else { TIME };
    while share.tally().stored < STATES && start.elapsed() < time(share) {
        if !share.is_busy() {
            let Some(level) = share.lowest() else { break };
            share.begin(level);
        }
        share.expand(BLOCK, &mut |_: Batch| {})?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::{arcx, counters};
    use mu_model::hand::HandModel;

    /// Five counters in one component: a tuple of all is a state.
    fn together() -> HandModel {
        let mut model = HandModel::new();
        let slots: Vec<_> = (0..5).map(|i| model.slot(format!("n{i}"), 0, false, 0)).collect();
        for slot in slots {
            model.group("up", &[], &[slot], &[slot], |read, emit| {
                if read[0] < 9 {
                    emit.step("up", &[read[0] + 1]);
                }
            });
        }
        model
    }

    #[test]
    fn a_leaf_that_has_a_tuple_for_each_state_is_split() {
        let (model, options, budget) = (together(), Options::default(), Budget::default());
        let leaves = LeafLayout::found(&model, &options, &budget, None, 2).unwrap();
        let dealt = leaves.dealt.as_ref().unwrap();
        assert!(dealt.len() > 1 && dealt.iter().all(|l| l.len() < 4), "{leaves:?}");
        assert_eq!(
            LeafLayout::read(&LeafLayout::write(Some(&leaves)), 5).unwrap(),
            Some(leaves.clone())
        );
        let count = |leaves: Option<LeafLayout>| {
            let options = Options { leaves, ..options.clone() };
            let mut share = Partition::new(&model, &options, &budget, None, 0, 1).unwrap();
            share.start().unwrap();
            while let Some(level) = share.lowest() {
                share.begin(level);
                while share.is_busy() {
                    share.expand(1000, &mut |_| {}).unwrap();
                }
            }
            share.tally()
        };
        let (whole, split) = (count(None), count(Some(leaves)));
        assert_eq!((whole.states, whole.transitions, whole.deadlocks), (100_000, 450_000, 1));
        assert_eq!((split.states, split.transitions, split.deadlocks), (100_000, 450_000, 1));
        assert!(
            split.store_bytes * 2 < whole.store_bytes,
            "{} and {}",
            split.store_bytes,
            whole.store_bytes
        );
        // What needs no other leaves has those of its components.
        assert_eq!(LeafLayout::found(&counters(4, 6), &options, &budget, None, 1), None);
        assert_eq!(LeafLayout::found(&arcx(0), &options, &budget, None, 1), None);
    }

    #[test]
    fn what_is_no_layout_is_refused() {
        assert_eq!(LeafLayout::read(&[], 3).unwrap(), None);
        assert_eq!(
            LeafLayout::read(&[0, 2, 0, 2, 1, 1], 3).unwrap(),
            Some(LeafLayout { dealt: Some(vec![vec![0, 2], vec![1]]), telling: Vec::new() })
        );
        assert_eq!(
            LeafLayout::read(&[2, 0, 2], 3).unwrap(),
            Some(LeafLayout { dealt: None, telling: vec![0, 2] })
        );
        for leaves in [
            &[2, 0, 2][..],
            &[2, 0, 2, 1, 0],
            &[2, 0, 2, 2, 1, 3],
            &[3, 0, 1],
            &[0, 3, 0, 1, 2],
            &[4, 0, 1, 2, 2],
            &[3, 0, 1, 0x80],
        ] {
            assert!(LeafLayout::read(&[&[0], leaves].concat(), 3).is_err(), "{leaves:?}");
        }
        // What tells are leaves, each once.
        for telling in [&[1, 3][..], &[2, 1, 1], &[2, 1, 0], &[1]] {
            assert!(LeafLayout::read(telling, 3).is_err(), "{telling:?}");
        }
        assert!(LeafLayout::read(&[1, 2, 2, 0, 2, 1, 1], 3).is_err());
    }
}
