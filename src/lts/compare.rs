//! Disjoint union of two transition systems, in which comparisons relate the initial states. Labels
//! are equal if their texts are. Cost: linear.

use ahash::AHashMap;

use super::Lts;
use mu_base::ids::{LabelId, StateId};

/// Returns the disjoint union of two systems, with both initial states (the first is the initial
/// state of the union).
pub fn disjoint_union(a: &Lts, b: &Lts) -> (Lts, StateId, StateId) {
    let mut table = a.table.clone();
    let mut ids: AHashMap<String, LabelId> = AHashMap::new();
    for (i, text) in table.texts.iter().enumerate().rev() {
        ids.insert(text.clone(), LabelId::new(i));
    }
    let names: Vec<LabelId> = (b.table.texts.iter().enumerate())
        .map(|(i, text)| {
            if i == LabelId::TAU.index() {
                return LabelId::TAU;
            }
            *ids.entry(text.clone()).or_insert_with(|| {
                table.texts.push(text.clone());
                LabelId::new(table.texts.len() - 1)
            })
        })
        .collect();
    let shift = StateId::new(a.state_count()).number();
    let mut union = Lts {
        initial: a.initial,
        offsets: Vec::with_capacity(a.offsets.len() + b.state_count()),
        labels: Vec::with_capacity(a.labels.len() + b.labels.len()),
        targets: Vec::with_capacity(a.targets.len() + b.targets.len()),
        table,
    };
    union.offsets.extend_from_slice(&a.offsets);
    union.offsets.extend(b.offsets[1..].iter().map(|o| o + a.transition_count() as u64));
    union.labels.extend_from_slice(&a.labels);
    union.labels.extend(b.labels.iter().map(|l| names[l.index()]));
    union.targets.extend_from_slice(&a.targets);
    union.targets.extend(b.targets.iter().map(|t| StateId::of(t.number() + shift)));
    (union, a.initial, StateId::of(b.initial.number() + shift))
}
