//! Observation sequences (definitions 21 to 27 of the study), implemented literally, for tests of
//! its theorems.
//!
//! For a processor `p` and each location, the operations of `p` are partitioned into intervals, one
//! for each write to the location, which the operations of the interval observe. All such
//! partitions are enumerated, so this is feasible only for a few operations.

use std::collections::BTreeMap;

use mu_axioms::execution::Skeleton;
use mu_axioms::relation::Relation;

/// The observations of a processor: for each location, the write that each of its operations
/// observes; and the order of all observation sets.
#[derive(Clone, Debug)]
pub struct Observations {
    /// For each location: the write that each operation observes, in program order.
    pub of: BTreeMap<u32, Vec<usize>>,
    /// The writes of all locations in the order of their observation sets. A write that no
    /// operation observes is included only if it is last.
    pub order: Vec<usize>,
}

/// Returns the operations of a processor, in order.
pub fn operations(s: &Skeleton, p: u32) -> Vec<usize> {
    let mut out: Vec<usize> = (0..s.len()).filter(|&e| s.events()[e].thread == Some(p)).collect();
    out.sort_by_key(|&e| s.events()[e].index);
    out
}
fn writes(s: &Skeleton, l: u32) -> Vec<usize> {
    (0..s.len())
        .filter(|&e| s.events()[e].kind.writes() && s.events()[e].location == Some(l))
        .collect()
}
fn locations(s: &Skeleton) -> Vec<u32> {
    let mut out: Vec<u32> = s.events().iter().filter_map(|e| e.location).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Enumerates the ordered local observation sequences of a processor and location, self-observing,
/// ordered on the local order (definitions 21 to 23).
fn local(s: &Skeleton, p: u32, l: u32) -> Vec<Vec<usize>> {
    let (ops, all) = (operations(s, p), writes(s, l));
    let e = s.events();
    let mut out = Vec::new();
    let mut choice = vec![0; ops.len()];
    loop {
        let observed: Vec<usize> = choice.iter().map(|&c| all[c]).collect();
        let is_consistent = (0..ops.len()).all(|i| {
            let (o, w) = (ops[i], observed[i]);
            let here = e[o].location == Some(l);
            // A read reads the observed value; a write of the processor itself is observed by
            // itself and from then on.
            let read = !here || !e[o].kind.reads() || e[o].value == e[w].value;
            let own = !(here && e[o].kind.writes()) || w == o;
            let after = ops.iter().position(|&x| x == w).is_none_or(|j| j <= i);
            // Intervals: an observation that ended does not occur again.
            let interval = i == 0 || observed[i - 1] == w || !observed[..i].contains(&w);
            read && own && after && interval
        });
        if is_consistent {
            out.push(observed);
        }
        let Some(i) = (0..choice.len()).find(|&i| choice[i] + 1 < all.len()) else { return out };
        choice[i] += 1;
        choice[..i].fill(0);
    }
}

/// Enumerates the ordered global observation sequences of a processor (definition 24). A set is
/// before another only if its first operation is not after any of the other's, so a set without
/// operations can only be last.
pub fn global(s: &Skeleton, p: u32) -> Vec<Observations> {
    let mut out: Vec<BTreeMap<u32, Vec<usize>>> = vec![BTreeMap::new()];
    for l in locations(s) {
        let choices = local(s, p, l);
        let mut next = Vec::new();
        for o in &out {
            for c in &choices {
                let mut o = o.clone();
                o.insert(l, c.clone());
                next.push(o);
            }
        }
        out = next;
    }
    let mut all = Vec::new();
    for of in out {
        // For each write, the position of its first observation; an unobserved write is last.
        let firsts: Vec<(Observed, usize)> = (of.iter())
            .flat_map(|(&l, c)| {
                let at = |w| c.iter().position(|&x| x == w).map_or(Observed::Never, Observed::At);
                writes(s, l).into_iter().map(move |w| (at(w), w))
            })
            .collect();
        if firsts.iter().filter(|f| f.0 == Observed::Never).count() > 1 {
            continue;
        }
        // Sets of different locations with the same first operation may be in either order.
        let mut orders: Vec<Vec<(Observed, usize)>> = vec![Vec::new()];
        let mut sorted = firsts;
        sorted.sort_unstable();
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            orders = orders
                .iter()
                .flat_map(|o| permutations(group).into_iter().map(|g| [o.clone(), g].concat()))
                .collect();
        }
        all.extend(
            orders.into_iter().map(|o| Observations {
                of: of.clone(),
                order: o.into_iter().map(|x| x.1).collect(),
            }),
        );
    }
    all
}
/// A position in a sequence of observations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Observed {
    At(usize),
    Never,
}

fn permutations(list: &[(Observed, usize)]) -> Vec<Vec<(Observed, usize)>> {
    if list.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for i in 0..list.len() {
        let mut rest = list.to_vec();
        let first = rest.remove(i);
        out.extend(permutations(&rest).into_iter().map(|mut p| {
            p.insert(0, first);
            p
        }));
    }
    out
}

impl Observations {
    /// Returns the operations of a processor that observe a write.
    pub fn set(&self, s: &Skeleton, p: u32, w: usize) -> Vec<usize> {
        let of = s.events()[w].location.map(|l| &self.of[&l]);
        let ops = operations(s, p);
        of.map_or(Vec::new(), |of| {
            ops.into_iter().zip(of).filter(|x| *x.1 == w).map(|x| x.0).collect()
        })
    }
    /// True if some operation reads the write's location while observing it.
    fn is_read(&self, s: &Skeleton, p: u32, w: usize) -> bool {
        self.set(s, p, w).iter().any(|&o| {
            s.events()[o].kind.reads() && s.events()[o].location == s.events()[w].location
        })
    }
    fn precedes(&self, a: usize, b: usize) -> bool {
        let at = |w: usize| self.order.iter().position(|&x| x == w);
        matches!((at(a), at(b)), (Some(x), Some(y)) if x < y)
    }
}

/// Checks definition 26, on all operations.
pub fn co_consistent(
    s: &Skeleton,
    (p, a): (u32, &Observations),
    (q, b): (u32, &Observations),
    order: &Relation,
) -> bool {
    let all: Vec<usize> = a.order.clone();
    all.iter().all(|&wi| {
        all.iter().all(|&wj| {
            let both = |w: usize| a.is_read(s, p, w) && b.is_read(s, q, w);
            if wi == wj || !both(wi) || !both(wj) || !a.precedes(wi, wj) {
                return true;
            }
            let of = |w: usize| [a.set(s, p, w), b.set(s, q, w)].concat();
            !b.precedes(wj, wi)
                && of(wi).iter().all(|&oi| of(wj).iter().all(|&oj| !order.contains(oj, oi)))
        })
    })
}

/// Checks the last but one condition of theorem 2: all pairs of `order` are related by the
/// observations of one processor, or within the observation of one write (definition 27).
pub fn explains(s: &Skeleton, all: &[(u32, Observations)], order: &Relation) -> bool {
    let observed = |o: usize| -> Vec<usize> {
        // An initial write observes itself.
        match s.events()[o].thread {
            None => vec![o],
            Some(p) => {
                let own =
                    &all.iter().find(|x| x.0 == p).expect("every processor has observations").1;
                own.order.iter().copied().filter(|&w| own.set(s, p, w).contains(&o)).collect()
            }
        }
    };
    order.pairs().all(|(oi, oj)| {
        let (i, j) = (observed(oi), observed(oj));
        let within = i.iter().any(|w| j.contains(w));
        let across = all.iter().any(|(p, o)| {
            i.iter().any(|&wi| {
                j.iter()
                    .any(|&wj| o.precedes(wi, wj) && o.is_read(s, *p, wi) && o.is_read(s, *p, wj))
            })
        });
        within || across
    })
}

impl Observations {
    /// True if no operation observes an initial write after another write to its location. Theorems
    /// 1 and 2 need this condition without stating it.
    pub fn starts_initially(&self, s: &Skeleton) -> bool {
        let initial = |w: usize| s.events()[w].thread.is_none();
        self.of.values().all(|of| of.windows(2).all(|w| initial(w[0]) || !initial(w[1])))
    }
}

/// Returns the candidate for a general serial view (definition 27) on all operations: the relations
/// of the observations of one write, and the least relation with the clauses of C_P. An initial
/// write observes itself.
pub fn candidate(s: &Skeleton, all: &[(u32, Observations)], order: &Relation) -> Relation {
    let n = s.len();
    let observed: Vec<Vec<usize>> = (0..n)
        .map(|o| match s.events()[o].thread {
            None => vec![o],
            Some(p) => {
                let (_, own) =
                    all.iter().find(|x| x.0 == p).expect("every processor has observations");
                own.order.iter().copied().filter(|&w| own.set(s, p, w).contains(&o)).collect()
            }
        })
        .collect();
    // C_P, and the union of the relations of writes.
    let (mut seen, mut c) = (Relation::empty(n), Relation::empty(n));
    for oi in 0..n {
        for oj in 0..n {
            let within = observed[oi]
                .iter()
                .any(|&w| observed[oj].contains(&w) && (oi == w || order.contains(oi, oj)));
            let across = all.iter().any(|(p, o)| {
                let pairs = observed[oi]
                    .iter()
                    .flat_map(|&wi| observed[oj].iter().map(move |&wj| (wi, wj)));
                pairs.into_iter().any(|(wi, wj)| {
                    o.precedes(wi, wj) && o.is_read(s, *p, wi) && o.is_read(s, *p, wj)
                })
            });
            // A write that observes itself gives no pair.
            if within && oi != oj {
                c.insert(oi, oj);
            }
            if across {
                seen.insert(oi, oj);
            }
        }
    }
    // The recursive clause: two steps lead to an operation of another processor.
    let processor = |o: usize| s.events()[o].thread;
    let mut grows = true;
    while grows {
        grows = false;
        for oi in 0..n {
            for oj in (0..n).filter(|&oj| processor(oi) != processor(oj)) {
                if !seen.contains(oi, oj) && seen.successors(oi).any(|ok| seen.contains(ok, oj)) {
                    seen.insert(oi, oj);
                    grows = true;
                }
            }
        }
    }
    c.unite(&seen);
    c
}

/// True if no pair is related in both orders (definition 2), not even an operation with itself.
pub fn is_asymmetric(r: &Relation) -> bool {
    r.pairs().all(|(a, b)| !r.contains(b, a))
}
