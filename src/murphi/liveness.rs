//! Scalarsets that a search with liveness must not permute.
//!
//! Liveness relates a state to later ones: an instance `p: P_1` is about this element along a whole
//! run. A step to the representative of an orbit renames the elements, so the instance would be
//! about another element behind it, and no state of a representative says which. An invariant or
//! `cover` is about one state, and all instances together are symmetric. So is the condition of a
//! liveness property without parameters, which a permutation leaves as it is.
//!
//! In: a model. Out: the scalarsets over which the parameters of liveness properties range, and
//! those in multisets of which `choose` takes elements: a permutation would sort them anew. Cost:
//! linear in the properties and their types.

use crate::accesses::{bit, scalarsets};
use crate::equivariance::names;
use crate::order_check::Asymmetry;
use crate::typed::{Binding, Claim, Domain, Model, Property, TypeId};

/// Returns the scalarsets that occur in parameters of liveness properties, each with the first such
/// property.
pub(crate) fn followed_scalarsets(model: &Model) -> Vec<Asymmetry> {
    let all = scalarsets(model);
    let (mut found, mut known) = (Vec::new(), 0);
    for property in model.properties.iter().filter(|p| p.claim == Claim::Liveness) {
        let sets = sets_of(model, &all, property) & !known;
        if sets == 0 {
            continue;
        }
        known |= sets;
        let name = property.name.as_ref().map_or(String::new(), |n| format!(" `{}`", n.trim()));
        found.push(Asymmetry {
            types: names(model, sets),
            places: vec![property.span],
            reason: format!("the liveness property{name} follows each element by itself"),
            sets,
        });
    }
    found
}

/// Returns the mask of the scalarsets in the parameters of a property.
fn sets_of(model: &Model, all: &[TypeId], property: &Property) -> u64 {
    let mut open: Vec<TypeId> = Vec::new();
    for binding in &property.bindings {
        match binding {
            Binding::Parameter { domain: Domain::Type(ty), .. } => open.push(*ty),
            Binding::Choose { multiset, .. } => open.push(multiset.ty),
            Binding::Parameter { domain: Domain::Range { .. }, .. } | Binding::Alias(_) => {}
        }
    }
    let place = |ty: TypeId| all.iter().position(|set| *set == ty);
    model.types.constituents(open).into_iter().filter_map(place).fold(0, |sets, at| sets | bit(at))
}
