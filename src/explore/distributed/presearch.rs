//! Presearch by one process: chooses the leaf layout and the partition leaves before a distributed
//! search.
//!
//! The store numbers tuples of slots leaf by leaf ([`crate::store`]). A search by one process
//! splits a leaf that has nearly as many tuples as there are states. A distributed search
//! ([`super::partition`]) cannot split a leaf, because other processes know its numbers. So one
//! process makes a short search before it and splits leaves then; with symmetries leaves are whole
//! components. It also chooses the partition leaves ([`super::partition_leaves`]). In: a model.
//! Out: a [`LeafLayout`], which all processes get. Cost: at most [`MAX_STATES`] states or 100 ms,
//! whichever is less; if symmetries seem costly, twice [`SymmetryCostMonitor::PATIENCE`] instead of
//! 100 ms. Invariant: every slot is in exactly one leaf, even if the layout is read from
//! damaged bytes; the layout affects no count.

use bincode::{Decode, Encode};

use super::partition::{Batch, Partition};
use super::partition_leaves::choose_partition_leaves;
use crate::Options;
use crate::symmetry::{Symmetries, SymmetryCostMonitor};
use mu_base::host::Instant;
use mu_base::narrow;
use mu_base::varint::{put, take};
use mu_base::{Budget, Diagnostic, Stage};
use mu_model::Model;

/// Limit on states of the presearch.
const MAX_STATES: u64 = 1 << 16;
/// States expanded between two checks of the clock.
const STATES_PER_CLOCK_CHECK: usize = 64;

/// Assignment of slots to leaves, and of states to processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct LeafLayout {
    /// The slots of each leaf; `None`: the default layout.
    pub(crate) leaf_slots: Option<Vec<Vec<u32>>>,
    /// The partition leaves; empty: all leaves.
    pub(crate) partition_leaves: Vec<u32>,
}

impl LeafLayout {
    /// Chooses the layout for `processes` processes by a short search. `None` (the default layout)
    /// also after a limit or an error, which the search itself reports. Costly symmetries are
    /// recorded in `symmetries` ([`Symmetries::is_costly`]).
    #[must_use]
    pub fn choose(
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        symmetries: Option<&Symmetries>,
        processes: usize,
    ) -> Option<Self> {
        let options = Options { leaves: None, ..options.clone() };
        let mut partition =
            Partition::new(model, &options, budget, symmetries, 0, 1).ok()?.with_cost_monitor();
        presearch(&mut partition).ok()?;
        let mut is_split = false;
        while symmetries.is_none()
            && let Some(leaf) = partition.store.unfit_leaf()
        {
            partition.split(leaf);
            is_split = true;
        }
        let partition_leaves = choose_partition_leaves(&mut partition, processes).ok()?;
        let leaf_slots =
            is_split.then(|| partition.store.leaves.iter().map(|l| l.slots.clone()).collect());
        Some(Self { leaf_slots, partition_leaves }).filter(|found| *found != Self::default())
    }

    /// Encodes a layout; empty if there is none.
    #[must_use]
    pub fn write(layout: Option<&Self>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Some(layout) = layout else { return bytes };
        for list in
            std::iter::once(&layout.partition_leaves).chain(layout.leaf_slots.iter().flatten())
        {
            put(&mut bytes, list.len() as u64);
            list.iter().for_each(|n| put(&mut bytes, u64::from(*n)));
        }
        bytes
    }

    /// Decodes a layout for a model with this number of slots. `None` if there are no bytes: the
    /// default layout.
    ///
    /// # Errors
    /// The bytes do not assign each slot to one leaf.
    pub fn read(bytes: &[u8], slots: usize) -> Result<Option<Self>, Diagnostic> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let bytes = &mut &*bytes;
        let mut lists = Vec::new();
        while !bytes.is_empty() {
            let count = take(bytes).filter(|n| *n <= slots as u64).ok_or_else(malformed_error)?;
            let list =
                (0..count).map(|_| u32::try_from(take(bytes)?).ok()).collect::<Option<Vec<u32>>>();
            lists.push(list.ok_or_else(malformed_error)?);
        }
        let leaf_slots = lists.split_off(1);
        let partition_leaves = lists.pop().unwrap_or_default();
        Self { leaf_slots: Some(leaf_slots).filter(|d| !d.is_empty()), partition_leaves }
            .check_slots(slots)
            .map(Some)
    }

    /// Checks that each slot is in one leaf, and that the partition leaves are leaves.
    ///
    /// # Errors
    /// The layout is malformed.
    pub fn check_slots(self, slots: usize) -> Result<Self, Diagnostic> {
        if let Some(leaf_slots) = &self.leaf_slots {
            let mut all: Vec<u32> = leaf_slots.iter().flatten().copied().collect();
            all.sort_unstable();
            if leaf_slots.iter().any(Vec::is_empty) || !all.into_iter().eq(0..narrow::index(slots))
            {
                return Err(malformed_error());
            }
        }
        let leaves = narrow::index(self.leaf_slots.as_ref().map_or(slots, Vec::len));
        let partition_leaves = &self.partition_leaves;
        if partition_leaves.iter().all(|leaf| *leaf < leaves)
            && partition_leaves.is_sorted_by(|a, b| a < b)
        {
            Ok(self)
        } else {
            Err(malformed_error())
        }
    }
}

fn malformed_error() -> Diagnostic {
    Diagnostic::new(Stage::File, "a malformed layout of states")
}

/// Searches in one process up to the limits. If symmetries seem to cost more than they save,
/// searches longer, so that they can be judged.
fn presearch(partition: &mut Partition<'_>) -> Result<(), Diagnostic> {
    let start = Instant::now();
    partition.insert_initial()?;
    let time = |partition: &Partition<'_>| {
        if partition.expander.seems_costly() {
            2 * SymmetryCostMonitor::PATIENCE
        } else {
            partition.tuning.presearch_time
        }
    };
    while partition.tally().stored < MAX_STATES && start.elapsed() < time(partition) {
        if !partition.is_busy() {
            let Some(level) = partition.lowest_level() else { break };
            partition.begin_level(level);
        }
        partition.expand(STATES_PER_CLOCK_CHECK, &mut |_: Batch| {})?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::models::{arcx, counters};
    use crate::tests::small;
    use mu_model::hand::HandModel;

    /// Builds five counters in one component: each state has its own tuple.
    fn joint_counters() -> HandModel {
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
    fn a_leaf_with_a_tuple_for_each_state_is_split() {
        let (model, options, budget) = (joint_counters(), small(), Budget::default());
        let leaves = LeafLayout::choose(&model, &options, &budget, None, 2).unwrap();
        let leaf_slots = leaves.leaf_slots.as_ref().unwrap();
        assert!(leaf_slots.len() > 1 && leaf_slots.iter().all(|l| l.len() < 4), "{leaves:?}");
        assert_eq!(
            LeafLayout::read(&LeafLayout::write(Some(&leaves)), 5).unwrap(),
            Some(leaves.clone())
        );
        let count = |leaves: Option<LeafLayout>| {
            let options = Options { leaves, ..options.clone() };
            let mut partition = Partition::new(&model, &options, &budget, None, 0, 1).unwrap();
            partition.insert_initial().unwrap();
            while let Some(level) = partition.lowest_level() {
                partition.begin_level(level);
                while partition.is_busy() {
                    partition.expand(1000, &mut |_| {}).unwrap();
                }
            }
            partition.tally()
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
        // Models that need no split use their components.
        assert_eq!(LeafLayout::choose(&counters(4, 6), &options, &budget, None, 1), None);
        assert_eq!(LeafLayout::choose(&arcx(0), &options, &budget, None, 1), None);
    }

    #[test]
    fn malformed_layouts_are_rejected() {
        assert_eq!(LeafLayout::read(&[], 3).unwrap(), None);
        assert_eq!(
            LeafLayout::read(&[0, 2, 0, 2, 1, 1], 3).unwrap(),
            Some(LeafLayout {
                leaf_slots: Some(vec![vec![0, 2], vec![1]]),
                partition_leaves: Vec::new()
            })
        );
        assert_eq!(
            LeafLayout::read(&[2, 0, 2], 3).unwrap(),
            Some(LeafLayout { leaf_slots: None, partition_leaves: vec![0, 2] })
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
        // Partition leaves are leaves, each once.
        for partition_leaves in [&[1, 3][..], &[2, 1, 1], &[2, 1, 0], &[1]] {
            assert!(LeafLayout::read(partition_leaves, 3).is_err(), "{partition_leaves:?}");
        }
        assert!(LeafLayout::read(&[1, 2, 2, 0, 2, 1, 1], 3).is_err());
    }
}
