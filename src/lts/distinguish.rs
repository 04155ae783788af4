//! Distinguishing evidence for two systems: a shortest distinguishing trace, or a distinguishing
//! formula of least modal depth.
//!
//! Formulas follow Cleaveland, "On automatically explaining bisimulation inequivalence" (1990), for
//! branching bisimulation Korver, "Computing distinguishing formulas for branching bisimulation"
//! (1991), written in the modal mu-calculus: with blocks `C` of the level before, "inside `C` until
//! `a` into `B`" is `mu X. in_C && (<a>in_B || <tau>X)`. Both `in_` are conjunctions of formulas of
//! lower levels, one for each block that the other state reaches instead. A divergence inside `C`
//! is `nu X. in_C && <tau>X`; for weak bisimulation with divergence, `<tau*>` precedes it.
//!
//! Input: the two systems; they are reduced first, and levels are computed only if they differ.
//! Output: a formula in the text of state formulas that holds in exactly one of the initial states.
//! Cost: that of `super::levels`, and a node for each pair of blocks that the formula needs.
//! Equal parts share a node, but the text can be exponential in its depth; beyond a limit there is
//! none.

use ahash::AHashMap;

use super::compare::disjoint_union;
use super::equivalence::{partition, reduce};
use super::levels::{self, Bisimulation, Levels};
use super::signature::{EntryKind, SignatureEntry};
use super::{Lts, trace};
use mu_base::ids::{LabelId, StateId};
use mu_base::narrow;

/// Distinguishing evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A shortest sequence of labels that exactly one of the systems can perform (weak: without
    /// taus).
    Trace {
        /// The labels.
        labels: Vec<String>,
        /// True if the first system can perform it.
        first: bool,
    },
    /// A state formula that holds in the initial state of the first and not in that of the second.
    Formula(String),
    /// They differ, but the formula would be too long to be useful.
    TooLong,
}

/// Limit on the length of a formula in bytes; beyond it, [`Difference::TooLong`] is returned.
const MAX_FORMULA: u64 = 1 << 20;

/// Returns a formula that distinguishes the initial states; `None` if they are bisimilar.
pub(super) fn distinguishing_formula(
    a: &Lts,
    b: &Lts,
    kind: Bisimulation,
    threads: usize,
) -> Option<Difference> {
    let equivalence = kind.equivalence();
    let (x, y) = (reduce(a, equivalence, threads), reduce(b, equivalence, threads));
    let (union, first, second) = disjoint_union(&x, &y);
    if partition(&union, equivalence, threads).same_class(first, second) {
        return None;
    }
    let levels = levels::refine(&union, kind, Some((first, second)));
    let (p, q) = (levels.block_of[first.index()], levels.block_of[second.index()]);
    let mut search = FormulaBuilder {
        lts: &union,
        kind,
        levels,
        nodes: Vec::new(),
        sizes: Vec::new(),
        ids: AHashMap::new(),
    };
    let top = search.node(p, q);
    if search.sizes[top as usize] > MAX_FORMULA {
        return Some(Difference::TooLong);
    }
    let mut text = String::new();
    search.write(top, &mut text);
    Some(Difference::Formula(text))
}

/// Returns a shortest trace that only one system can perform (`weak`: without taus); `None` if they
/// have equal traces.
pub(super) fn distinguishing_trace(
    a: &Lts,
    b: &Lts,
    weak: bool,
    threads: usize,
) -> Option<Difference> {
    let (x, y) = (trace::determinise(a, weak, threads), trace::determinise(b, weak, threads));
    first_difference(&x, &y)
}

/// Searches the product of two deterministic systems in which all states accept, breadth first.
fn first_difference(a: &Lts, b: &Lts) -> Option<Difference> {
    let (union, first, second) = disjoint_union(a, b);
    let mut seen: AHashMap<(StateId, StateId), usize> = AHashMap::new();
    // Each pair with its predecessor and the label between.
    let mut queue: Vec<((StateId, StateId), Option<(usize, LabelId)>)> =
        vec![((first, second), None)];
    seen.insert((first, second), 0);
    let mut next = 0;
    while next < queue.len() {
        let (s, t) = queue[next].0;
        let step =
            |s: StateId, l: LabelId| union.successors(s).find(|&(k, _)| k == l).map(|(_, u)| u);
        let labels = union.successors(s).chain(union.successors(t)).map(|(l, _)| l);
        for l in labels {
            match (step(s, l), step(t, l)) {
                (Some(u), Some(v)) => {
                    let fresh = queue.len();
                    if *seen.entry((u, v)).or_insert(fresh) == fresh {
                        queue.push(((u, v), Some((next, l))));
                    }
                }
                (left, _) => {
                    let mut labels = vec![union.table.texts[l.index()].clone()];
                    let mut at = next;
                    while let Some((before, label)) = queue[at].1 {
                        labels.push(union.table.texts[label.index()].clone());
                        at = before;
                    }
                    labels.reverse();
                    return Some(Difference::Trace { labels, first: left.is_some() });
                }
            }
        }
        next += 1;
    }
    None
}

/// Formula that distinguishes two blocks, up to formulas of lower levels.
struct BlockFormula {
    /// True if the entry is the first block's; else the formula is negated.
    positive: bool,
    /// Signature entry of one block that the other lacks.
    entry: SignatureEntry,
    /// Pairs of blocks of the previous level: formulas that hold in the first and not in the second
    /// are the conjuncts of "inside".
    inside: Vec<(u32, u32)>,
    /// The same for "into".
    into: Vec<(u32, u32)>,
}

/// Formula with nodes as conjuncts, so that equal formulas share a node.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FormulaNode {
    positive: bool,
    /// The label of the step; `None` for a divergence.
    label: Option<LabelId>,
    /// Number of the variable of an "until" or a divergence; 0 if the equivalence needs none.
    variable: u32,
    inside: Vec<u32>,
    into: Vec<u32>,
}

struct FormulaBuilder<'a> {
    lts: &'a Lts,
    kind: Bisimulation,
    levels: Levels,
    nodes: Vec<FormulaNode>,
    /// Length of the text of each node.
    sizes: Vec<u64>,
    ids: AHashMap<FormulaNode, u32>,
}

impl FormulaBuilder<'_> {
    /// Finds the entry of one signature that the other lacks and that needs the fewest conjuncts;
    /// `true` if it is the first's.
    fn difference(&self, level: u32, p: u32, q: u32) -> (bool, SignatureEntry) {
        let (x, y) = (self.levels.signature(level, p), self.levels.signature(level, q));
        let cost = |other: &[SignatureEntry], entry: SignatureEntry| match entry.kind() {
            EntryKind::Step(label, _) => {
                other.iter().filter(|e| e.step_by(label).is_some()).count()
            }
            EntryKind::Divergence(_) => {
                other.iter().filter(|e| e.divergence_block().is_some()).count()
            }
            EntryKind::Inert(_) => 0,
        };
        let best = |own: &[SignatureEntry], other: &[SignatureEntry]| {
            own.iter()
                .copied()
                .filter(|e| other.binary_search(e).is_err())
                .map(|e| (cost(other, e), e))
                .min()
        };
        match (best(x, y), best(y, x)) {
            (Some(a), Some(b)) if b.0 < a.0 => (false, b.1),
            (Some(a), _) => (true, a.1),
            (None, Some(b)) => (false, b.1),
            (None, None) => unreachable!("parts of a block have different signatures"),
        }
    }

    /// Chooses how to distinguish two blocks that are split at a level.
    fn plan(&self, level: u32, p: u32, q: u32) -> BlockFormula {
        let (positive, entry) = self.difference(level, p, q);
        let other = self.levels.signature(level, if positive { q } else { p });
        let own = self.levels.parent(level, p);
        let until = self.kind.has_until();
        let others = |label: LabelId| other.iter().filter_map(move |e| e.step_by(label));
        let mut inside = Vec::new();
        if until {
            inside.extend(others(LabelId::TAU).map(|to| (own, to)));
        }
        if self.kind == Bisimulation::DivergenceWeak
            && let EntryKind::Divergence(block) = entry.kind()
        {
            inside.extend(other.iter().filter_map(|e| e.divergence_block()).map(|to| (block, to)));
        }
        let mut into = Vec::new();
        if let EntryKind::Step(label, block) = entry.kind() {
            into.extend(others(label).map(|to| (block, to)));
            if until && label == LabelId::TAU {
                into.push((block, own));
            }
        }
        BlockFormula { positive, entry, inside, into }
    }

    /// Builds the formula that holds in the first of two blocks and not in the second.
    fn node(&mut self, p: u32, q: u32) -> u32 {
        let top = self.levels.split_of(p, q);
        let mut known: AHashMap<(u32, u32, u32), u32> = AHashMap::new();
        let mut open = vec![top];
        while let Some(&key) = open.last() {
            if known.contains_key(&key) {
                open.pop();
                continue;
            }
            let (level, p, q) = key;
            let BlockFormula { positive, entry, inside, into } = self.plan(level, p, q);
            let waiting = open.len();
            let mut all = |pairs: Vec<(u32, u32)>| -> Vec<u32> {
                let mut parts = Vec::new();
                for (x, y) in pairs {
                    let lower = self.levels.split_of(x, y);
                    match known.get(&lower) {
                        Some(&node) => parts.push(node),
                        None => open.push(lower),
                    }
                }
                parts.sort_unstable();
                parts.dedup();
                parts
            };
            let (inside, into) = (all(inside), all(into));
            if open.len() > waiting {
                continue;
            }
            let label = match entry.kind() {
                EntryKind::Step(label, _) => Some(label),
                EntryKind::Inert(_) | EntryKind::Divergence(_) => None,
            };
            let until = self.kind.has_until();
            let node = self.intern(FormulaNode {
                positive,
                label,
                variable: if until || label.is_none() { level } else { 0 },
                inside,
                into,
            });
            known.insert(key, node);
            open.pop();
        }
        known[&top]
    }

    fn intern(&mut self, node: FormulaNode) -> u32 {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        // The length of the text is about that of its frame and its parts.
        let label = node.label.map_or(0, |l| self.lts.table.texts[l.index()].len());
        let parts = node.inside.iter().chain(&node.into);
        let size = parts
            .fold(40 + label as u64, |sum: u64, &n| sum.saturating_add(self.sizes[n as usize]));
        let id = narrow::index(self.nodes.len());
        self.nodes.push(node.clone());
        self.sizes.push(size);
        self.ids.insert(node, id);
        id
    }

    /// Writes the text of a formula.
    fn write(&self, node: u32, out: &mut String) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.write_node(&self.nodes[node as usize], out));
    }

    fn write_node(&self, node: &FormulaNode, out: &mut String) {
        let all = |parts: &[u32], out: &mut String| match parts {
            [] => out.push_str("true"),
            [one] => self.write(*one, out),
            parts => {
                for (i, &part) in parts.iter().enumerate() {
                    out.push_str(if i == 0 { "(" } else { " && " });
                    self.write(part, out);
                }
                out.push(')');
            }
        };
        if !node.positive {
            out.push('!');
        }
        let x = node.variable;
        let label = node.label.map(|l| {
            if l == LabelId::TAU { "tau" } else { self.lts.table.texts[l.index()].as_str() }
        });
        match (label, self.kind) {
            (Some(label), Bisimulation::Strong) => *out += &format!("<{label}>"),
            (Some("tau"), Bisimulation::Weak | Bisimulation::DivergenceWeak) => *out += "<tau*>",
            (Some(label), Bisimulation::Weak | Bisimulation::DivergenceWeak) => {
                *out += &format!("<tau* . {label} . tau*>");
            }
            _ => {
                if self.kind == Bisimulation::DivergenceWeak {
                    *out += "<tau*>";
                }
                *out += &format!("({} X{x}. ", if label.is_some() { "mu" } else { "nu" });
                if !node.inside.is_empty() {
                    all(&node.inside, out);
                    *out += " && ";
                }
                let Some(label) = label else {
                    *out += &format!("<tau>X{x})");
                    return;
                };
                *out += &format!("(<{label}>");
                all(&node.into, out);
                *out += &format!(" || <tau>X{x}))");
                return;
            }
        }
        all(&node.into, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equivalence::{Equivalence, Evidence, distinguish, equivalent};
    use crate::naive::random_lts;
    use mu_base::random::Random;

    /// Evaluates formulas of the written shape on an LTS, by reading their text.
    struct Evaluator<'a> {
        lts: &'a Lts,
        text: &'a str,
        variables: Vec<(&'a str, Vec<bool>)>,
    }

    impl<'a> Evaluator<'a> {
        fn take(&mut self, mark: &str) -> bool {
            self.text = self.text.trim_start();
            self.text.strip_prefix(mark).inspect(|rest| self.text = rest).is_some()
        }
        fn take_until(&mut self, mark: &str) -> &'a str {
            let (word, rest) = self.text.split_once(mark).unwrap();
            self.text = rest;
            word.trim()
        }
        fn predecessors(&self, label: &str, set: &[bool]) -> Vec<bool> {
            let steps = |s| self.lts.successors(StateId::new(s));
            (0..set.len())
                .map(|s| {
                    steps(s)
                        .any(|(l, t)| self.lts.table.texts[l.index()] == label && set[t.index()])
                })
                .collect()
        }
        fn predecessors_by_taus(&self, mut set: Vec<bool>) -> Vec<bool> {
            loop {
                let more = self.predecessors("tau", &set);
                if more.iter().zip(&set).all(|(m, s)| *s || !m) {
                    return set;
                }
                set = set.iter().zip(&more).map(|(s, m)| *s || *m).collect();
            }
        }
        fn formula(&mut self) -> Vec<bool> {
            let mut set = self.unary();
            loop {
                if self.take("&&") {
                    set = set.iter().zip(self.formula()).map(|(x, y)| *x && y).collect();
                } else if self.take("||") {
                    set = set.iter().zip(self.formula()).map(|(x, y)| *x || y).collect();
                } else {
                    return set;
                }
            }
        }
        fn unary(&mut self) -> Vec<bool> {
            if self.take("!") {
                return self.unary().iter().map(|x| !x).collect();
            }
            if self.take("(") {
                let set = self.formula();
                assert!(self.take(")"), "{}", self.text);
                return set;
            }
            if self.take("<") {
                let label = self.take_until(">");
                let set = self.unary();
                if label == "tau*" {
                    return self.predecessors_by_taus(set);
                }
                return match label.strip_prefix("tau* . ") {
                    None => self.predecessors(label, &set),
                    Some(rest) => {
                        let set = self.predecessors_by_taus(set);
                        self.predecessors_by_taus(
                            self.predecessors(rest.strip_suffix(" . tau*").unwrap(), &set),
                        )
                    }
                };
            }
            if self.take("true") {
                return vec![true; self.lts.state_count()];
            }
            let least = self.take("mu ");
            if least || self.take("nu ") {
                let name = self.take_until(".");
                self.variables.push((name, vec![!least; self.lts.state_count()]));
                let body = self.text;
                loop {
                    self.text = body;
                    let set = self.formula();
                    let last = self.variables.len() - 1;
                    if set == self.variables[last].1 {
                        self.variables.pop();
                        return set;
                    }
                    self.variables[last].1 = set;
                }
            }
            let end = self.text.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.text.len());
            let (name, rest) = self.text.split_at(end);
            self.text = rest;
            self.variables
                .iter()
                .rev()
                .find(|v| v.0 == name)
                .unwrap_or_else(|| panic!("no variable {name:?}"))
                .1
                .clone()
        }
    }

    fn holds(lts: &Lts, formula: &str) -> bool {
        let mut e = Evaluator { lts, text: formula, variables: Vec::new() };
        let set = e.formula();
        assert_eq!(e.text, "", "{formula}");
        set[lts.initial.index()]
    }

    fn can(lts: &Lts, weak: bool, labels: &[String]) -> bool {
        let det = trace::determinise(lts, weak, 1);
        let step = |s: StateId, l: &String| {
            det.successors(s).find(|x| &det.table.texts[x.0.index()] == l).map(|x| x.1)
        };
        labels.iter().try_fold(det.initial, step).is_some()
    }

    #[test]
    fn differences_distinguish() {
        let mut differ = [0; Equivalence::ALL.len()];
        for seed in 0..3000 {
            let mut random = Random::new(seed);
            let n = 1 + random.below(7);
            let (m, k) = (random.below(3 * n), 1 + random.below(3));
            let a = random_lts(&mut random, n, m, k);
            // Mostly a small change of the first system, so that the difference has a large depth.
            let b = if random.chance(1, 4) {
                random_lts(&mut random, n, m, k)
            } else {
                let mut edges: Vec<_> = super::super::tau::edges(&a)
                    .map(|(s, l, t)| (StateId::of(s), l, StateId::of(t)))
                    .collect();
                if let Some(i) = (!edges.is_empty()).then(|| random.below(edges.len())) {
                    edges[i].2 = StateId::new(random.below(n));
                }
                Lts::from_edges(a.initial, n, &edges, a.table.clone())
            };
            for (i, e) in Equivalence::ALL.into_iter().enumerate() {
                let what = format!("seed {seed}, {}", e.name());
                match distinguish(&a, &b, e, 1) {
                    None => assert!(equivalent(&a, &b, e, 1), "{what}: nothing found"),
                    Some(Difference::Formula(f)) => {
                        differ[i] += 1;
                        assert!(holds(&a, &f), "{what}: {f} does not hold in the first, {a:?}");
                        assert!(!holds(&b, &f), "{what}: {f} holds in the second, {b:?}");
                    }
                    Some(Difference::Trace { labels, first }) => {
                        differ[i] += 1;
                        let weak = e.evidence() == Evidence::WeakTrace;
                        assert_eq!(
                            (can(&a, weak, &labels), can(&b, weak, &labels)),
                            (first, !first),
                            "{what}: {labels:?}"
                        );
                    }
                    Some(Difference::TooLong) => panic!("{what}: too long"),
                }
            }
        }
        assert!(differ.iter().all(|&d| d > 300), "{differ:?}");
    }

    #[test]
    fn textbook_examples() {
        let parse =
            |text: &str| super::super::aut::read(text.as_bytes(), &Default::default()).unwrap();
        let early = parse("des (0,4,5)\n(0,a,1)\n(0,a,2)\n(1,b,3)\n(2,c,4)\n");
        let late = parse("des (0,3,4)\n(0,a,1)\n(1,b,2)\n(1,c,3)\n");
        assert_eq!(distinguish(&early, &late, Equivalence::TRACE, 1), None);
        let formula = |e| match distinguish(&early, &late, e, 1) {
            Some(Difference::Formula(f)) => f,
            other => panic!("{other:?}"),
        };
        assert_eq!(formula(Equivalence::STRONG), "<a>!<c>true");
        assert_eq!(formula(Equivalence::WEAK), "<tau* . a . tau*>!<tau* . c . tau*>true");
        let stop = parse("des (0,2,3)\n(0,a,1)\n(1,b,2)\n");
        let Some(Difference::Trace { labels, first }) =
            distinguish(&stop, &late, Equivalence::WEAK_TRACE, 1)
        else {
            panic!()
        };
        assert_eq!((labels, first), (vec!["a".to_owned(), "c".to_owned()], false));
    }
}
