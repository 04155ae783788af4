//! Slot orders for the diagrams, from the dependency matrix (which group touches which slots).
//!
//! Input -> output: footprints -> candidate orders, first level first; `order_search.rs` compares
//! them by measurement. Candidates:
//! - if most components share groups with one of them, a hub such as a bus or a memory: the other
//!   components in clusters that are connected without the hub, half of the clusters before it and
//!   half after it. Within each half, clusters that share more with the hub are last. A cluster on
//!   both sides of the hub costs twice the nodes (measured);
//! - components in the linear arrangement of least total distance (each group pulls together the
//!   components that it touches), slots inside as given or moved closer to the other slots of their
//!   groups: correlations are inside components and between neighbours;
//! - FORCE (Aloul, Markov, Sakallah, "FORCE: a fast and easy-to-implement variable-ordering
//!   heuristic", GLSVLSI 2003): slots are pulled to the centres of gravity of their groups, from
//!   the given order and from the Cuthill-McKee order of the slot graph;
//! - the given order.
//!
//! Cost: rounds of slots² · groups at most; steps beyond a bound are omitted.

use mu_model::{Model, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// Order of the slots in vectors.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SlotOrder {
    /// The first of [`candidate_orders`]; in a long search, a much better one if measurements find
    /// it.
    #[default]
    Tuned,
    /// The first of [`candidate_orders`].
    Static,
    /// The order of the model.
    Given,
    /// This permutation, first level first.
    Fixed(Vec<Slot>),
}

impl SlotOrder {
    /// Returns the initial order.
    pub fn of(&self, model: &dyn Model) -> Vec<Slot> {
        match self {
            SlotOrder::Tuned | SlotOrder::Static => candidate_orders(model).swap_remove(0),
            SlotOrder::Given => (0..model.slots().len() as Slot).collect(),
            SlotOrder::Fixed(order) => order.clone(),
        }
    }
}

/// Items that should be close to each other, with a weight.
type Edge = (Vec<usize>, f64);

/// Limit on the elementary steps of one improvement.
const WORK: usize = 40_000_000;

/// Returns orders of the model's slots, first level first, the most promising one first.
pub fn candidate_orders(model: &dyn Model) -> Vec<Vec<Slot>> {
    let slots = model.slots().len();
    let mut counts: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    // A group that writes nothing does not take part in the search.
    for g in model.groups().iter().filter(|g| !g.writes.is_empty()) {
        let touched: BTreeSet<usize> = g
            .reads
            .iter()
            .chain(&g.writes)
            .chain(g.requires.iter().map(|r| &r.0))
            .map(|&s| s as usize)
            .collect();
        *counts.entry(touched.into_iter().collect()).or_default() += 1.0;
    }
    // Groups with one footprint form one relation: they count little more than once.
    let edges: Vec<Edge> = counts.into_iter().map(|(e, n)| (e, 1.0 + n.ln())).collect();
    let given: Vec<usize> = (0..slots).collect();
    let mut orders = Vec::new();
    let (blocks, star) = arranged_components(model, &edges);
    if blocks.len() > 1 {
        orders.extend(star.map(|blocks| blocks.concat()));
        let plain: Vec<usize> = blocks.iter().flatten().copied().collect();
        let mut inside = plain.clone();
        improve(&mut inside, &edges, Some(&blocks));
        let mut free = inside.clone();
        improve(&mut free, &edges, None);
        orders.extend([plain.clone(), inside.clone(), reverse(&plain), reverse(&inside), free]);
    }
    for start in [given.clone(), cuthill_mckee(slots, &edges)] {
        let mut forced = force(&start, &edges);
        improve(&mut forced, &edges, None);
        orders.extend([reverse(&forced), forced]);
    }
    orders.push(given);
    let mut seen = BTreeSet::new();
    orders.retain(|o| seen.insert(o.clone()));
    orders.into_iter().map(|o| o.into_iter().map(|s| s as Slot).collect()).collect()
}

fn reverse(order: &[usize]) -> Vec<usize> {
    order.iter().rev().copied().collect()
}

fn places(order: &[usize]) -> Vec<usize> {
    let mut place = vec![0; order.len()];
    for (i, &s) in order.iter().enumerate() {
        place[s] = i;
    }
    place
}

/// Returns the sum of the weighted spans of the edges.
fn span(order: &[usize], edges: &[Edge]) -> f64 {
    let place = places(order);
    let one = |(e, w): &Edge| {
        let (low, high) =
            e.iter().fold((usize::MAX, 0), |(l, h), &s| (l.min(place[s]), h.max(place[s])));
        w * high.saturating_sub(low) as f64
    };
    edges.iter().map(one).sum()
}

/// Components with their slots, in some order.
type Blocks = Vec<Vec<usize>>;

/// Returns the components' slots, with components arranged for a small total distance between those
/// that share groups; and the arrangement around a hub, if there is one.
fn arranged_components(model: &dyn Model, edges: &[Edge]) -> (Blocks, Option<Blocks>) {
    let mut by_component: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, s) in model.slots().iter().enumerate() {
        by_component.entry(s.component).or_default().push(i);
    }
    let blocks: Blocks = by_component.into_values().collect();
    let mut block_of = vec![0; model.slots().len()];
    for (b, block) in blocks.iter().enumerate() {
        for &s in block {
            block_of[s] = b;
        }
    }
    let mut pairs: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for (edge, weight) in edges {
        let touched: BTreeSet<usize> = edge.iter().map(|&s| block_of[s]).collect();
        for &a in &touched {
            for &b in touched.range(a + 1..) {
                *pairs.entry((a, b)).or_default() += weight;
            }
        }
    }
    let distance = |order: &[usize]| -> f64 {
        let mut centre = vec![0.0; blocks.len()];
        let mut at = 0.0;
        for &b in order {
            let size = blocks[b].len() as f64;
            centre[b] = at + size / 2.0;
            at += size;
        }
        pairs
            .iter()
            .map(|(&(a, b), w): (&(usize, usize), &f64)| w * f64::abs(centre[a] - centre[b]))
            .sum()
    };
    let given: Vec<usize> = (0..blocks.len()).collect();
    let links: Vec<Edge> = pairs.iter().map(|(&(a, b), &w)| (vec![a, b], w)).collect();
    let mut best = (f64::INFINITY, given.clone());
    for mut order in [given, cuthill_mckee(blocks.len(), &links)] {
        let cost = move_single(&mut order, pairs.len(), |_, _| true, &distance);
        if cost < best.0 {
            best = (cost, order);
        }
    }
    let in_order =
        |order: &[usize]| -> Blocks { order.iter().map(|&b| blocks[b].clone()).collect() };
    (in_order(&best.1), star(&best.1, &pairs).map(|order| in_order(&order)))
}

/// Returns the arrangement around a hub: clusters of the other items, half of them on each side,
/// otherwise in the given order; `None` if there is no hub.
fn star(order: &[usize], pairs: &BTreeMap<(usize, usize), f64>) -> Option<Vec<usize>> {
    let tie = |a: usize, b: usize| pairs.get(&(a.min(b), a.max(b))).copied().unwrap_or(0.0);
    let degree = |a: usize| order.iter().filter(|&&b| b != a && tie(a, b) > 0.0).count();
    let hub = order
        .iter()
        .copied()
        .max_by_key(|&a| degree(a))
        .filter(|&a| order.len() > 3 && 2 * degree(a) >= order.len())?;
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for &thing in order.iter().filter(|&&a| a != hub) {
        let (near, mut far): (Vec<_>, Vec<_>) =
            clusters.into_iter().partition(|c: &Vec<usize>| c.iter().any(|&b| tie(thing, b) > 0.0));
        far.push(near.into_iter().flatten().chain([thing]).collect());
        clusters = far;
    }
    // With two clusters, the one before the hub matters more than their distribution.
    if clusters.len() < 3 {
        return None;
    }
    for cluster in &mut clusters {
        cluster.sort_by(|&a, &b| tie(a, hub).total_cmp(&tie(b, hub)));
    }
    clusters.sort();
    let behind = clusters.split_off(clusters.len() / 2);
    Some(clusters.into_iter().flatten().chain([hub]).chain(behind.into_iter().flatten()).collect())
}

/// Moves single items to positions of least cost, until no move helps. Returns the cost.
fn move_single(
    order: &mut Vec<usize>,
    work: usize,
    may: impl Fn(usize, usize) -> bool,
    cost: &dyn Fn(&[usize]) -> f64,
) -> f64 {
    let mut now = cost(order);
    let round = order.len().saturating_mul(order.len()).saturating_mul(work + order.len());
    for _ in 0..(WORK / round.max(1)).min(20) {
        let before = now;
        for thing in 0..order.len() {
            let from = order.iter().position(|&s| s == thing).expect("an order is a permutation");
            let mut best = from;
            order.remove(from);
            for to in (0..=order.len()).filter(|&to| to != from && may(thing, to)) {
                order.insert(to, thing);
                let then = cost(order);
                if then < now - 1e-9 {
                    (best, now) = (to, then);
                }
                order.remove(to);
            }
            order.insert(best, thing);
        }
        if now >= before {
            break;
        }
    }
    now
}

/// Moves single slots to reduce the span, within their consecutive blocks if blocks are given.
fn improve(order: &mut Vec<usize>, edges: &[Edge], blocks: Option<&[Vec<usize>]>) {
    let mut range = vec![(0, order.len()); order.len()];
    let mut at = 0;
    for block in blocks.unwrap_or_default() {
        for &s in block {
            range[s] = (at, at + block.len());
        }
        at += block.len();
    }
    move_single(order, edges.len() * 4, |s, to| range[s].0 <= to && to < range[s].1, &|order| {
        span(order, edges)
    });
}

fn force(start: &[usize], edges: &[Edge]) -> Vec<usize> {
    let mut order = start.to_vec();
    let mut cost = span(&order, edges);
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
        let now = span(&next, edges);
        if now >= cost {
            break;
        }
        (order, cost) = (next, now);
    }
    order
}

/// Returns the breadth-first order of the graph of nodes that share edges, from nodes of low
/// degree, neighbours of low degree first.
fn cuthill_mckee(nodes: usize, edges: &[Edge]) -> Vec<usize> {
    let mut near = vec![BTreeSet::new(); nodes];
    for (edge, _) in edges {
        for &a in edge {
            near[a].extend(edge.iter().copied().filter(|&b| b != a));
        }
    }
    let mut starts: Vec<usize> = (0..nodes).collect();
    starts.sort_by_key(|&s| near[s].len());
    let mut seen = vec![false; nodes];
    let mut order = Vec::with_capacity(nodes);
    for start in starts {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut at = order.len();
        order.push(start);
        while at < order.len() {
            let mut next: Vec<usize> =
                near[order[at]].iter().copied().filter(|&b| !seen[b]).collect();
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
