//! Symmetries of a model for the engines: exchanges of neighbouring elements of a scalarset.
//!
//! An exchange permutes the slots with one of the two elements in an index, their values in slots
//! of the scalarset or of a union with it, and the arguments of labels. The language guarantees
//! most of them, but the engine verifies each one, because a loop over a scalarset may depend on
//! the order of its elements. A scalarset that occurs in a multiset has none: an exchange would
//! sort the multiset anew, which is no permutation of slots. Cost: linear in slots and labels for
//! each exchange. After Ip, Dill: "Better Verification Through Symmetry" (FMSD 1996).

use crate::layout::Layout;
use crate::typed::{Model, TypeId, TypeKind};
use crate::variables::Variable;
use ahash::AHashMap;
use mu_model::{Slot, Symmetry};

/// Exchange of two elements of a scalarset.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// Own numbers of the two elements.
    pub(crate) own: [i64; 2],
    /// Texts of the two elements.
    pub(crate) texts: [String; 2],
}

impl Exchange {
    /// Returns the image of an own number of a scalarset or union.
    pub(crate) fn number(&self, own: i64) -> i64 {
        match self.own.iter().position(|o| *o == own) {
            Some(at) => self.own[1 - at],
            None => own,
        }
    }
    /// Returns the image of the text of a value.
    pub(crate) fn text<'t>(&'t self, text: &'t str) -> &'t str {
        match self.texts.iter().position(|t| t == text) {
            Some(at) => &self.texts[1 - at],
            None => text,
        }
    }
    /// Returns the image of the name of a variable.
    fn name(&self, name: &str) -> String {
        let mut out = String::new();
        for (n, part) in name.split('[').enumerate() {
            if n == 0 {
                out += part;
                continue;
            }
            let (index, rest) = part.split_once(']').unwrap_or((part, ""));
            out += &format!("[{}]{rest}", self.text(index));
        }
        out
    }
}

/// Returns the exchanges of a model, with their permutations of slots. `slots`: the number of
/// slots, of which the first are the variables.
pub(crate) fn exchanges(
    model: &Model,
    layout: &Layout,
    variables: &[Variable],
    slots: usize,
) -> Vec<(Symmetry, Exchange)> {
    let mut seen = Vec::new();
    let mut sets: Vec<(TypeId, i64, u32)> = Vec::new();
    for (at, ty) in model.types.all.iter().enumerate() {
        let TypeKind::Scalarset { first, size } = ty.kind else { continue };
        if !seen.contains(&first) && !in_multisets(model, first) {
            seen.push(first);
            sets.push((TypeId::new(at), first, size));
        }
    }
    let total: u32 = sets.iter().map(|s| s.2).sum();
    let places: AHashMap<&str, Slot> =
        variables.iter().enumerate().map(|(n, v)| (v.name.as_str(), n as Slot)).collect();
    let mut out = Vec::new();
    let mut start = 0;
    for (ty, first, size) in sets {
        for n in 0..size.saturating_sub(1) {
            let value = |k: u32| first + i64::from(n + k);
            let exchange = Exchange {
                own: [0, 1].map(|k| layout.own(model, ty, value(k))),
                texts: [0, 1].map(|k| model.types.value_text(ty, value(k))),
            };
            let mut images: Option<Vec<Slot>> =
                variables.iter().map(|v| places.get(&*exchange.name(&v.name)).copied()).collect();
            if let Some(images) = &mut images {
                images.extend(variables.len() as Slot..slots as Slot);
            }
            let is_permutation = |images: &Vec<Slot>| {
                let mut sorted = images.clone();
                sorted.sort_unstable();
                sorted.windows(2).all(|w| w[0] != w[1])
            };
            let Some(slots) = images.filter(is_permutation) else { continue };
            let mut points: Vec<u32> = (0..total).collect();
            points.swap((start + n) as usize, (start + n + 1) as usize);
            let name = format!("{} and {}", exchange.texts[0], exchange.texts[1]);
            out.push((Symmetry { name, slots, points }, exchange));
        }
        start += size;
    }
    out
}

/// True if a scalarset occurs in the elements of a multiset.
fn in_multisets(model: &Model, first: i64) -> bool {
    let elements = model.types.all.iter().filter_map(|ty| match ty.kind {
        TypeKind::Multiset { element, .. } => Some(element),
        _ => None,
    });
    let is_it = |ty: TypeId| matches!(model.types.kind(ty), TypeKind::Scalarset { first: f, .. } if *f == first);
    model.types.constituents(elements.collect()).into_iter().any(is_it)
}
