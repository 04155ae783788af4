//! Strongly connected components of a graph with vertices `0..n`.
//!
//! Input: a [`Graph`]. Output: [`Components`], in reverse topological order: a component comes
//! after all components that it reaches. Tarjan, "Depth-first search and linear graph algorithms"
//! (1972), with an explicit stack. O(vertices + edges) time; 12 bytes per vertex and 16 per vertex
//! on the deepest path. The verifiers of solutions and evidence do not use this module, so that
//! they share no code with the engines that they check.

use crate::narrow;
use std::ops::Range;

/// Graph with numbered edges; the edges of a vertex have consecutive numbers.
pub trait Graph {
    /// Returns the number of vertices.
    fn vertices(&self) -> usize;
    /// True if the vertex belongs to the graph; all vertices do by default.
    fn contains(&self, _vertex: u32) -> bool {
        true
    }
    /// Returns the edges of a vertex.
    fn edges(&self, vertex: u32) -> Range<u64>;
    /// Returns the target of an edge; `None` if the edge does not belong to the graph.
    fn target(&self, edge: u64) -> Option<u32>;
}

/// Graph to which all vertices and edges belong: the edges of vertex `v` lead to
/// `targets[offsets[v]..offsets[v + 1]]`.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// First edge of each vertex, then the total number of edges.
    pub offsets: Vec<u64>,
    /// Target of each edge.
    pub targets: Vec<u32>,
}

impl Graph for Adjacency {
    fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }
    fn edges(&self, vertex: u32) -> Range<u64> {
        self.offsets[vertex as usize]..self.offsets[vertex as usize + 1]
    }
    fn target(&self, edge: u64) -> Option<u32> {
        Some(self.targets[edge as usize])
    }
}

/// Strongly connected components of a graph.
#[derive(Clone, Debug, Default)]
pub struct Components {
    /// The vertices, component by component.
    pub order: Vec<u32>,
    /// End of each component in `order`.
    pub ends: Vec<u32>,
}

impl Components {
    /// Returns the number of components.
    pub fn count(&self) -> usize {
        self.ends.len()
    }
    /// Iterates over the vertices of each component. An edge leads to the same component or an
    /// earlier one.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.order[from as usize..to as usize])
    }
}

/// Low-link of a vertex, or one of two marks.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LowLink(u32);

impl LowLink {
    const NEW: LowLink = LowLink(u32::MAX);
    const DONE: LowLink = LowLink(u32::MAX - 1);
}

/// Computes the strongly connected components.
pub fn components(graph: &impl Graph) -> Components {
    // The low-link: first the number in depth-first order, then the lowest reachable number. Two
    // values are reserved as marks.
    let mut low = vec![LowLink::NEW; graph.vertices()];
    assert!(low.len() < LowLink::DONE.0 as usize, "a graph of 2^32 - 2 vertices or more");
    let mut found = Components::default();
    let mut open: Vec<u32> = Vec::new();
    // Vertex, its unvisited edges, its own number.
    let mut path: Vec<(u32, Range<u64>, u32)> = Vec::new();
    let mut clock = 0;
    for root in 0..narrow::index(low.len()) {
        if low[root as usize] != LowLink::NEW || !graph.contains(root) {
            continue;
        }
        let mut enter = Some(root);
        loop {
            if let Some(v) = enter.take() {
                low[v as usize] = LowLink(clock);
                path.push((v, graph.edges(v), clock));
                open.push(v);
                clock += 1;
            }
            let Some((v, edges, own)) = path.last_mut() else { break };
            let (v, own) = (*v as usize, *own);
            if let Some(edge) = edges.next() {
                let Some(to) = graph.target(edge).filter(|to| graph.contains(*to)) else {
                    continue;
                };
                match low[to as usize] {
                    LowLink::NEW => enter = Some(to),
                    LowLink::DONE => {}
                    LowLink(number) => low[v] = LowLink(low[v].0.min(number)),
                }
                continue;
            }
            path.pop();
            let LowLink(lowest) = low[v];
            if let Some((parent, ..)) = path.last() {
                let parent = *parent as usize;
                low[parent] = LowLink(low[parent].0.min(lowest));
            }
            if lowest == own {
                let from = open
                    .iter()
                    .rposition(|&w| w as usize == v)
                    .expect("the root of a component is open");
                for w in open.drain(from..) {
                    low[w as usize] = LowLink::DONE;
                    found.order.push(w);
                }
                found.ends.push(narrow::index(found.order.len()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Rows of targets; some vertices and edges do not belong to the graph.
    struct Rows {
        offsets: Vec<u64>,
        targets: Vec<Option<u32>>,
        inside: Vec<bool>,
    }

    impl Graph for Rows {
        fn vertices(&self) -> usize {
            self.inside.len()
        }
        fn contains(&self, vertex: u32) -> bool {
            self.inside[vertex as usize]
        }
        fn edges(&self, vertex: u32) -> Range<u64> {
            self.offsets[vertex as usize]..self.offsets[vertex as usize + 1]
        }
        fn target(&self, edge: u64) -> Option<u32> {
            self.targets[edge as usize]
        }
    }

    /// Compares with reachability, computed as a closure of the matrix.
    #[test]
    fn two_vertices_share_a_component_if_each_reaches_the_other() {
        let mut nontrivial = 0;
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let n = 1 + random.below(12);
            let inside: Vec<bool> = (0..n).map(|_| random.chance(9, 10)).collect();
            let (mut offsets, mut targets) = (vec![0], Vec::new());
            for _ in 0..n {
                targets.extend(
                    (0..random.below(4))
                        .map(|_| random.chance(5, 6).then(|| random.below(n) as u32)),
                );
                offsets.push(targets.len() as u64);
            }
            let graph = Rows { offsets, targets, inside };
            let mut reach = vec![vec![false; n]; n];
            #[allow(
                clippy::needless_range_loop,
                reason = "a vertex is compared with others, not only looked up"
            )]
            for v in 0..n {
                reach[v][v] = true;
                for t in graph.edges(v as u32).filter_map(|e| graph.target(e)) {
                    reach[v][t as usize] |= graph.inside[v] && graph.inside[t as usize];
                }
            }
            for k in 0..n {
                for i in 0..n {
                    for j in 0..n {
                        reach[i][j] |= reach[i][k] && reach[k][j];
                    }
                }
            }
            let found = components(&graph);
            let mut number = vec![None; n];
            for (c, part) in found.iter().enumerate() {
                nontrivial += usize::from(part.len() > 1);
                part.iter()
                    .for_each(|&v| assert!(number[v as usize].replace(c).is_none(), "seed {seed}"));
            }
            assert_eq!(found.iter().count(), found.count());
            for v in 0..n {
                assert_eq!(number[v].is_some(), graph.inside[v], "seed {seed}");
                for w in (0..n).filter(|&w| graph.inside[v] && graph.inside[w]) {
                    assert_eq!(
                        number[v] == number[w],
                        reach[v][w] && reach[w][v],
                        "seed {seed}: {v} and {w}"
                    );
                    assert!(
                        !reach[v][w] || number[w] <= number[v],
                        "seed {seed}: {v} leads to {w}"
                    );
                }
            }
        }
        assert!(nontrivial > 50, "{nontrivial} components of several vertices");
    }
}
