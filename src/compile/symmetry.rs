//! Candidates for symmetries of a linear process: constants of one sort and components that may be
//! interchangeable.
//!
//! In: linear process, slots, code of the groups. Out: transpositions of two constants, each with a
//! permutation of components, and transpositions of components of the same shape. The permutation
//! maps a component that mentions one constant to a component of the same shape that mentions the
//! other as often. After the scalar sets of Ip, Dill: "Better Verification Through Symmetry" (FMSD
//! 1996), without a declaration by the user. Candidates are guesses from the text: an engine
//! verifies each on the answers of the groups before it relies on it. Cost: linear in the process
//! for each pair of constants; sorts of more than [`MAX_MEMBERS`] constants are ignored.

use super::GroupCode;
use mu_base::ids::{OpId, SortId};
use mu_base::narrow;
use mu_data::engine::image_of;
use mu_data::signature::{OpKind, Signature};
use mu_data::sort::SortKind;
use mu_model::{Group, Slot, SlotInfo, Symmetry};
use mu_process::linear::LinearProcess;
use std::collections::{BTreeMap, BTreeSet};

/// Limit on the constants of a sort, and on the components of one shape; above it, there are no
/// candidates.
const MAX_MEMBERS: usize = 8;

/// Images of constants under a candidate: pairs of a constant and its image, without fixed points.
pub(super) type ConstantMap = Vec<(OpId, OpId)>;

/// Shape of a component: components of equal shape may be interchangeable.
#[derive(PartialEq, Eq)]
struct ComponentShape {
    /// The sort of each slot; true for a control location.
    sorts: Vec<(SortId, bool)>,
    /// By constant: the number of groups of the component in which it occurs.
    mentions: BTreeMap<OpId, usize>,
}

/// Returns the candidates and their images of constants.
pub(super) fn candidates(
    process: &LinearProcess,
    slots: &[SlotInfo],
    sort_of: &[SortId],
    groups: &[Group],
    codes: &[GroupCode],
) -> (Vec<Symmetry>, Vec<ConstantMap>) {
    let signature = &process.data.signature;
    let sorts = relevant_sorts(process, sort_of);
    let mut constants: BTreeMap<SortId, Vec<OpId>> = BTreeMap::new();
    for (id, op) in signature.ops() {
        if matches!(op.kind, OpKind::Constructor(_)) && sorts.contains(&op.sort) {
            constants.entry(op.sort).or_default().push(id);
        }
    }
    let points: Vec<OpId> = constants.values().flatten().copied().collect();
    let count = slots.iter().map(|s| s.component as usize + 1).max().unwrap_or(0);
    let own: Vec<Vec<Slot>> = (0..count)
        .map(|c| {
            (0..slots.len() as Slot)
                .filter(|&s| slots[s as usize].component as usize == c)
                .collect()
        })
        .collect();
    let mut shapes: Vec<ComponentShape> = (own.iter())
        .map(|own| ComponentShape {
            sorts: own.iter().map(|&s| (sort_of[s as usize], slots[s as usize].control)).collect(),
            mentions: BTreeMap::new(),
        })
        .collect();
    for (group, code) in groups.iter().zip(codes) {
        let mut mentioned = BTreeSet::new();
        let expressions = std::iter::once(&code.guard)
            .chain(code.actions.iter().flat_map(|a| &a.args))
            .chain(&code.updates);
        expressions.for_each(|e| {
            e.each_op(&mut |op| {
                mentioned.insert(op);
            });
        });
        let touched = group
            .requires
            .iter()
            .map(|r| r.0)
            .chain(group.reads.iter().copied())
            .chain(group.writes.iter().copied());
        let touched: BTreeSet<usize> =
            touched.map(|s| slots[s as usize].component as usize).collect();
        for c in touched {
            for op in mentioned.iter().filter(|op| points.contains(op)) {
                *shapes[c].mentions.entry(*op).or_default() += 1;
            }
        }
    }
    let (mut found, mut maps) = (Vec::new(), Vec::new());
    let mut add = |name: String, map: ConstantMap, places: &[usize]| {
        let mut to: Vec<Slot> = (0..slots.len() as Slot).collect();
        for (from, &place) in places.iter().enumerate() {
            own[from].iter().zip(&own[place]).for_each(|(&s, &t)| to[s as usize] = t);
        }
        let places = points
            .iter()
            .map(|op| {
                let image = points.iter().position(|p| *p == image_of(&map, *op));
                narrow::index(image.expect("a symmetry permutes the points"))
            })
            .collect();
        found.push(Symmetry { name, slots: to, points: places });
        maps.push(map);
    };
    for list in constants.values().filter(|l| l.len() <= MAX_MEMBERS) {
        for (i, &a) in list.iter().enumerate() {
            for &b in &list[i + 1..] {
                let map = vec![(a, b), (b, a)];
                if let Some(places) = places(&shapes, &map) {
                    add(
                        format!("{} and {}", signature.op(a).name, signature.op(b).name),
                        map,
                        &places,
                    );
                }
            }
        }
    }
    for a in 0..count {
        let twins: Vec<usize> =
            (a + 1..count).filter(|&b| shapes[a] == shapes[b] && !own[a].is_empty()).collect();
        for &b in twins.iter().filter(|_| twins.len() < MAX_MEMBERS) {
            let mut places: Vec<usize> = (0..count).collect();
            places.swap(a, b);
            let name = |c: usize| process.components.get(c).map_or("component", String::as_str);
            add(format!("components {} and {}", name(a), name(b)), Vec::new(), &places);
        }
    }
    (found, maps)
}

/// Returns the image of each component under a permutation of constants: if possible the component
/// itself, otherwise one of the same shape. `None` if a component has no image.
fn places(shapes: &[ComponentShape], map: &[(OpId, OpId)]) -> Option<Vec<usize>> {
    let mut taken = vec![false; shapes.len()];
    let mut places = vec![None; shapes.len()];
    let image = |shape: &ComponentShape| -> BTreeMap<OpId, usize> {
        shape.mentions.iter().map(|(op, n)| (image_of(map, *op), *n)).collect()
    };
    for (c, shape) in shapes.iter().enumerate() {
        if image(shape) == shape.mentions {
            places[c] = Some(c);
            taken[c] = true;
        }
    }
    for (c, shape) in shapes.iter().enumerate() {
        if places[c].is_none() {
            let wanted = image(shape);
            let to = (0..shapes.len()).find(|&d| {
                !taken[d] && shapes[d].sorts == shape.sorts && shapes[d].mentions == wanted
            })?;
            places[c] = Some(to);
            taken[to] = true;
        }
    }
    places.into_iter().collect()
}

/// Returns the sorts of the parts of values in states and labels.
fn relevant_sorts(process: &LinearProcess, sort_of: &[SortId]) -> BTreeSet<SortId> {
    let signature = &process.data.signature;
    let mut todo: Vec<SortId> = sort_of.to_vec();
    todo.extend(
        process
            .summands
            .iter()
            .flat_map(|s| &s.actions)
            .flat_map(|a| &process.actions[a.action.index()].sorts),
    );
    let mut seen = BTreeSet::new();
    while let Some(sort) = todo.pop() {
        if !seen.insert(sort) {
            continue;
        }
        parts(signature, sort, &mut todo);
    }
    seen
}

/// Collects the sorts of the parts of a sort's values.
fn parts(signature: &Signature, sort: SortId, out: &mut Vec<SortId>) {
    if let Some(named) = signature.sorts.declared_sort(sort) {
        for c in &named.constructors {
            if let SortKind::Function(from, _) = signature.sorts.kind(signature.op(*c).sort) {
                out.extend(from.iter().copied());
            }
        }
    }
    match signature.sorts.kind(sort) {
        SortKind::Function(from, to) => {
            out.extend(from.iter().copied());
            out.push(*to);
        }
        SortKind::List(of)
        | SortKind::Set(of)
        | SortKind::Bag(of)
        | SortKind::FSet(of)
        | SortKind::FBag(of) => out.push(*of),
        SortKind::Bool
        | SortKind::Pos
        | SortKind::Nat
        | SortKind::Int
        | SortKind::Real
        | SortKind::Named(_) => {}
    }
}
