//! Naive evaluator for tests: expressions over sets of pairs, directly from the definitions,
//! independent of the compiler.

use std::collections::BTreeSet;

use mu_base::random::Random;

use mu_axioms::execution::{RelationId, SetId, Skeleton};
use mu_axioms::relation::Relation;

/// A relation.
pub type Pairs = BTreeSet<(usize, usize)>;
/// A set of events.
pub type Events = BTreeSet<usize>;

/// A relation's expression.
#[derive(Clone, Debug)]
pub enum R {
    /// A relation of the execution, or a variable of the model.
    Name(String),
    /// `0`.
    Empty,
    /// `a | b`, `a & b`, `a \ b`, `a;b`.
    Two(&'static str, Box<R>, Box<R>),
    /// `~a`, and postfix operators.
    One(&'static str, Box<R>),
    /// `s * t`.
    Product(S, S),
    /// `[s]`.
    Identity(S),
    /// The functions that the model defines: `twice(a) = a;a`, `between(s, a) = a;[s];a`.
    Twice(Box<R>),
    /// `between(s, a)`, as above.
    Between(S, Box<R>),
    /// `let rec v = e in v`, where `v` occurs only positively.
    Rec(Box<R>),
}

/// A set's expression.
#[derive(Clone, Debug)]
pub enum S {
    /// A set of the execution.
    Name(String),
    /// `a | b`, `a & b`, `a \ b`.
    Two(&'static str, Box<S>, Box<S>),
    /// `~a`.
    Not(Box<S>),
    /// `domain r`, `range r`.
    Of(&'static str, Box<R>),
}

impl std::fmt::Display for R {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            R::Name(n) => write!(f, "{n}"),
            R::Empty => write!(f, "0"),
            R::Two(op, a, b) => write!(f, "({a} {op} {b})"),
            R::One("~", a) => write!(f, "(~{a})"),
            R::One(op, a) => write!(f, "({a}{op})"),
            R::Product(s, t) => write!(f, "({s} * {t})"),
            R::Identity(s) => write!(f, "[{s}]"),
            R::Twice(a) => write!(f, "twice({a})"),
            R::Between(s, a) => write!(f, "between({s}, {a})"),
            R::Rec(e) => write!(f, "(let rec v = {e} in v)"),
        }
    }
}
impl std::fmt::Display for S {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            S::Name(n) => write!(f, "{n}"),
            S::Two(op, a, b) => write!(f, "({a} {op} {b})"),
            S::Not(a) => write!(f, "(~{a})"),
            S::Of(what, r) => write!(f, "{what}({r})"),
        }
    }
}

/// Generates a random relation. `v` is true if the variable of a `let rec` is in scope and may
/// occur here, that is, not under a difference or complement.
pub fn relation(random: &mut Random, depth: usize, v: bool) -> R {
    let names = ["po", "rf", "co", "fr", "addr", "data", "ctrl", "loc", "int", "ext", "id"];
    if depth == 0 || random.chance(1, 6) {
        return match random.below(if v { 6 } else { 4 }) {
            0 => R::Identity(set(random, depth.saturating_sub(1))),
            1 if random.chance(1, 4) => R::Empty,
            4 | 5 => R::Name("v".to_string()),
            _ => R::Name((*random.choose(&names)).to_string()),
        };
    }
    let next = |random: &mut Random, v| Box::new(relation(random, depth - 1, v));
    match random.below(12) {
        0 | 1 => R::Two("|", next(random, v), next(random, v)),
        2 => R::Two("&", next(random, v), next(random, v)),
        3 => R::Two("\\", next(random, v), next(random, false)),
        4 | 5 => R::Two(";", next(random, v), next(random, v)),
        6 => R::One(["+", "*", "?", "^-1"][random.below(4)], next(random, v)),
        7 => R::One("~", next(random, false)),
        8 => R::Product(set(random, depth - 1), set(random, depth - 1)),
        9 => R::Twice(next(random, v)),
        10 => R::Between(set(random, depth - 1), next(random, v)),
        _ if !v => R::Rec(next(random, true)),
        _ => R::Identity(set(random, depth - 1)),
    }
}
/// Generates a random set.
pub fn set(random: &mut Random, depth: usize) -> S {
    if depth == 0 || random.chance(1, 3) {
        return S::Name(
            (*random.choose(&["R", "W", "M", "F", "B", "IW", "FW", "Acq", "Rel", "_"])).to_string(),
        );
    }
    let next = |random: &mut Random| Box::new(set(random, depth - 1));
    match random.below(5) {
        0 => S::Two("|", next(random), next(random)),
        1 => S::Two("&", next(random), next(random)),
        2 => S::Two("\\", next(random), next(random)),
        3 => S::Not(next(random)),
        _ => S::Of(
            ["domain", "range"][random.below(2)],
            Box::new(relation(random, depth - 1, false)),
        ),
    }
}

/// The evaluator on one execution.
pub struct Naive<'a> {
    /// The events.
    pub skeleton: &'a Skeleton,
    /// Reads-from.
    pub rf: &'a Relation,
    /// Coherence.
    pub co: &'a Relation,
    /// The tags.
    pub tags: &'a [(&'static str, SetId)],
}

fn compose(a: &Pairs, b: &Pairs) -> Pairs {
    a.iter().flat_map(|&(x, y)| b.iter().filter(move |p| p.0 == y).map(move |p| (x, p.1))).collect()
}
fn closure(a: &Pairs) -> Pairs {
    let mut out = a.clone();
    loop {
        let more: Pairs = out.union(&compose(&out, &out)).copied().collect();
        if more == out {
            return out;
        }
        out = more;
    }
}

impl Naive<'_> {
    fn all_events(&self) -> Events {
        (0..self.skeleton.len()).collect()
    }
    fn identity(&self) -> Pairs {
        self.all_events().into_iter().map(|e| (e, e)).collect()
    }
    fn every(&self, holds: impl Fn(usize, usize) -> bool) -> Pairs {
        self.all_events()
            .into_iter()
            .flat_map(|a| self.all_events().into_iter().map(move |b| (a, b)))
            .filter(|&(a, b)| holds(a, b))
            .collect()
    }
    fn base(&self, name: &str, v: &Pairs) -> Pairs {
        let e = self.skeleton.events();
        let given = |id| self.skeleton.relation(id).pairs().collect();
        match name {
            "v" => v.clone(),
            "rf" => self.rf.pairs().collect(),
            "co" => self.co.pairs().collect(),
            "fr" => self.every(|r, w| {
                let reads = |w: usize| self.rf.contains(w, r);
                let same = e[r].kind.reads()
                    && e[w].kind.writes()
                    && e[r].location == e[w].location
                    && r != w;
                same && ((0..e.len()).any(|s| reads(s) && self.co.contains(s, w))
                    || !(0..e.len()).any(reads))
            }),
            "po" => self.every(|a, b| {
                e[a].thread.is_some() && e[a].thread == e[b].thread && e[a].index < e[b].index
            }),
            "loc" => self.every(|a, b| e[a].location.is_some() && e[a].location == e[b].location),
            "int" => self.every(|a, b| e[a].thread.is_some() && e[a].thread == e[b].thread),
            "ext" => self.every(|a, b| e[a].thread != e[b].thread),
            "id" => self.identity(),
            "addr" => given(RelationId::ADDR),
            "data" => given(RelationId::DATA),
            "ctrl" => given(RelationId::CTRL),
            other => panic!("{other}"),
        }
    }
    /// Evaluates a relation, with the value `v` for the variable of `let rec`.
    pub fn relation(&self, r: &R, v: &Pairs) -> Pairs {
        match r {
            R::Name(n) => self.base(n, v),
            R::Empty => Pairs::new(),
            R::Two(op, a, b) => {
                let (a, b) = (self.relation(a, v), self.relation(b, v));
                match *op {
                    "|" => a.union(&b).copied().collect(),
                    "&" => a.intersection(&b).copied().collect(),
                    "\\" => a.difference(&b).copied().collect(),
                    _ => compose(&a, &b),
                }
            }
            R::One(op, a) => {
                let a = self.relation(a, v);
                match *op {
                    "~" => self.every(|x, y| !a.contains(&(x, y))),
                    "+" => closure(&a),
                    "*" => closure(&a).union(&self.identity()).copied().collect(),
                    "?" => a.union(&self.identity()).copied().collect(),
                    _ => a.into_iter().map(|(x, y)| (y, x)).collect(),
                }
            }
            R::Product(s, t) => {
                let (s, t) = (self.set(s), self.set(t));
                self.every(|a, b| s.contains(&a) && t.contains(&b))
            }
            R::Identity(s) => self.set(s).into_iter().map(|e| (e, e)).collect(),
            R::Twice(a) => {
                let a = self.relation(a, v);
                compose(&a, &a)
            }
            R::Between(s, a) => {
                let (s, a) = (self.set(s), self.relation(a, v));
                let into: Pairs = a.iter().filter(|p| s.contains(&p.1)).copied().collect();
                compose(&into, &a)
            }
            R::Rec(e) => {
                let mut at = Pairs::new();
                loop {
                    let next = self.relation(e, &at);
                    if next == at {
                        return at;
                    }
                    at = next;
                }
            }
        }
    }
    /// Evaluates a set.
    pub fn set(&self, s: &S) -> Events {
        let e = self.skeleton.events();
        let those = |holds: &dyn Fn(usize) -> bool| {
            self.all_events().into_iter().filter(|&i| holds(i)).collect::<Events>()
        };
        match s {
            S::Name(n) => match n.as_str() {
                "_" => self.all_events(),
                "R" => those(&|i| e[i].kind.reads()),
                "W" => those(&|i| e[i].kind.writes()),
                "M" => those(&|i| e[i].kind.reads() || e[i].kind.writes()),
                "F" => those(&|i| e[i].kind == mu_axioms::EventKind::Fence),
                "B" => those(&|i| e[i].kind == mu_axioms::EventKind::Branch),
                "IW" => those(&|i| e[i].thread.is_none()),
                "FW" => {
                    those(&|i| e[i].kind.writes() && (0..e.len()).all(|j| !self.co.contains(i, j)))
                }
                tag => {
                    let id = self.tags.iter().find(|t| t.0 == tag).expect("a tag").1;
                    those(&|i| self.skeleton.set(id).contains(i))
                }
            },
            S::Two(op, a, b) => {
                let (a, b) = (self.set(a), self.set(b));
                match *op {
                    "|" => a.union(&b).copied().collect(),
                    "&" => a.intersection(&b).copied().collect(),
                    _ => a.difference(&b).copied().collect(),
                }
            }
            S::Not(a) => self.all_events().difference(&self.set(a)).copied().collect(),
            S::Of(what, r) => {
                let r = self.relation(r, &Pairs::new());
                r.into_iter().map(|(a, b)| if *what == "domain" { a } else { b }).collect()
            }
        }
    }
}
