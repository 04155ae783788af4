//! The order of slots in the diagrams, from the dependency matrix (which group touches which slots).
//!
//! FORCE (Aloul, Markov, Sakallah, "FORCE: a fast and easy-to-implement variable-ordering heuristic", GLSVLSI 2003): slots are pulled to the
//! centres of gravity of the groups that touch them, from several starts (the order given, the reverse Cuthill-McKee order of the
//! slot graph). Each component counts as one more group of all its slots, so that the slots of a component stay near each other. The winner is the
//! order of least weighted event span (Siminiceanu, Ciardo, "New metrics for static variable ordering in decision diagrams", TACAS 2006: spans of
//! groups, weighted by the height of their top level, since saturation fires a group at its top level), then improved by moving
//! single slots while that makes it smaller.
//!
//! Input -> output: footprints -> the slots, first level first. Cost: slots² · groups for the last step, left out beyond a bound.

use crate::model::{Model, Slot};
use std::collections::BTreeMap;

/// The order of the slots in vectors.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// From the dependency matrix, see [`variable_order`].
    #[default]
    Force,
    /// As the model lists them.
    Given,
    /// This permutation, first level first.
    Fixed(Vec<Slot>),
}

/// A set of slots that should be near each other, with its weight.
type Edge = (Vec<usize>, f64);

/// An order of the model's slots, first level first.
pub fn variable_order(model: &dyn Model) -> Vec<Slot> {
    let slots = model.slots().len();
    let mut counts: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    for g in model.groups() {
        // A group that writes nothing takes no part in the search.
        if !g.writes.is_empty() {
            let mut edge: Vec<usize> =
                g.reads.iter().chain(&g.writes).chain(g.requires.iter().map(|r| &r.0)).map(|&s| s as usize).collect();
            edge.sort_unstable();
            edge.dedup();
            *counts.entry(edge).or_default() += 1.0;
        }
    }
    // Groups of one footprint are one relation: they count little more than once.
    let edges: Vec<Edge> = counts.into_iter().map(|(e, n)| (e, 1.0 + n.ln())).collect();
    let mut pulls = edges.clone();
    let mut components: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, s) in model.slots().iter().enumerate() {
        components.entry(s.component).or_default().push(i);
    }
    pulls.extend(components.into_values().filter(|c| c.len() > 1).map(|c| (c, 1.0)));

    let given: Vec<usize> = (0..slots).collect();
    let mckee = cuthill_mckee(slots, &pulls);
    let reversed = |order: &[usize]| order.iter().rev().copied().collect::<Vec<_>>();
    let mut starts = vec![given.clone(), mckee.clone(), reversed(&given), reversed(&mckee)];
    for i in 0..4 {
        let forced = force(&starts[i], &pulls);
        starts.push(reversed(&forced));
        starts.push(forced);
    }
    let mut best = given;
    let mut best_cost = f64::INFINITY;
    for mut order in starts {
        if slots.saturating_mul(slots).saturating_mul(edges.len()) < 40_000_000 {
            improve(&mut order, &edges);
        }
        let cost = weighted_span(&order, &edges);
        if cost < best_cost {
            (best, best_cost) = (order, cost);
        }
    }
    best.into_iter().map(|s| s as Slot).collect()
}

fn places(order: &[usize]) -> Vec<usize> {
    let mut place = vec![0; order.len()];
    for (i, &s) in order.iter().enumerate() {
        place[s] = i;
    }
    place
}

/// Sum over the groups of span times height of the top level.
fn weighted_span(order: &[usize], edges: &[Edge]) -> f64 {
    let place = places(order);
    let slots = order.len();
    edges
        .iter()
        .map(|(edge, weight)| {
            let top = edge.iter().map(|&s| place[s]).min().unwrap_or(0);
            let bottom = edge.iter().map(|&s| place[s]).max().unwrap_or(0);
            weight * (bottom - top + 1) as f64 * (slots - top) as f64
        })
        .sum()
}

fn force(start: &[usize], edges: &[Edge]) -> Vec<usize> {
    let mut order = start.to_vec();
    let span = |order: &[usize]| -> f64 {
        let place = places(order);
        edges
            .iter()
            .map(|(e, w)| {
                let places = || e.iter().map(|&s| place[s]);
                w * (places().max().unwrap_or(0) - places().min().unwrap_or(0)) as f64
            })
            .sum()
    };
    let mut cost = span(&order);
    for _ in 0..200 {
        let place = places(&order);
        let mut pull = vec![(0.0, 0.0); order.len()];
        for (edge, weight) in edges.iter().filter(|e| !e.0.is_empty()) {
            let centre = edge.iter().map(|&s| place[s] as f64).sum::<f64>() / edge.len() as f64;
            for &s in edge {
                pull[s].0 += weight * centre;
                pull[s].1 += weight;
            }
        }
        let at = |s: usize| if pull[s].1 > 0.0 { pull[s].0 / pull[s].1 } else { place[s] as f64 };
        let mut next = order.clone();
        next.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
        let now = span(&next);
        if now >= cost {
            break;
        }
        (order, cost) = (next, now);
    }
    order
}

/// Breadth-first orders of the slot graph from slots of low degree, neighbours of low degree first.
fn cuthill_mckee(slots: usize, edges: &[Edge]) -> Vec<usize> {
    let mut near = vec![std::collections::BTreeSet::new(); slots];
    for (edge, _) in edges {
        for &a in edge {
            near[a].extend(edge.iter().copied().filter(|&b| b != a));
        }
    }
    let mut starts: Vec<usize> = (0..slots).collect();
    starts.sort_by_key(|&s| near[s].len());
    let mut seen = vec![false; slots];
    let mut order = Vec::with_capacity(slots);
    for start in starts {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut at = order.len();
        order.push(start);
        while at < order.len() {
            let mut next: Vec<usize> = near[order[at]].iter().copied().filter(|&b| !seen[b]).collect();
            next.sort_by_key(|&s| near[s].len());
            for &s in &next {
                seen[s] = true;
            }
            order.extend(next);
            at += 1;
        }
    }
    order
}

/// Moves single slots to where the weighted span is least, until no move helps.
fn improve(order: &mut Vec<usize>, edges: &[Edge]) {
    let mut cost = weighted_span(order, edges);
    for _ in 0..20 {
        let before = cost;
        for slot in 0..order.len() {
            let from = order.iter().position(|&s| s == slot).unwrap_or(0);
            let mut best = from;
            order.remove(from);
            for to in 0..=order.len() {
                order.insert(to, slot);
                let now = weighted_span(order, edges);
                if now < cost - 1e-9 {
                    (best, cost) = (to, now);
                }
                order.remove(to);
            }
            order.insert(best, slot);
        }
        if cost >= before {
            break;
        }
    }
}
