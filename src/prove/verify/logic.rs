//! The verifier's own logic: conjunctions over distinct processes, and whether they contradict themselves. Plain and complete where it ends: domains as lists,
//! equalities and orders by trying values, arithmetic by Fourier and Motzkin over unbounded rationals, rounded where all is integer. Nothing
//! here is shared with the prover.
//!
//! Cost: exponential in what must be split; certificates ask small questions. A question that is too large is answered *no contradiction*, so that a
//! certificate is refused, not accepted.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::collections::BTreeMap;

/// A process that no name stands for, among the values of a cell.
pub const OTHER: u32 = u32::MAX;
/// The stage that processes share.
pub const JOINT: u8 = 254;
const MOST_SPLITS: u32 = 3000;
const MOST_CONSTRAINTS: usize = 400;

/// A cell, as seen by a process at a stage, or now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Its symbol; one beyond all symbols for a value that was forgotten.
    pub symbol: usize,
    /// Its indices.
    pub args: Vec<u8>,
    /// Who looks, and at which stage.
    pub look: Option<(u8, u8)>,
}

/// A process: named, or what a cell holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// The process of the number.
    Named(u8),
    /// What the cell holds.
    Held(Cell),
}

/// How a sum compares with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// At most.
    AtMost,
    /// Less.
    Less,
    /// Equal.
    Zero,
    /// Different.
    NotZero,
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The cell holds one of the values: numbers of constructors in their type, or processes and [`OTHER`].
    Among(Cell, Vec<u32>),
    /// Two cells hold the same, or do not.
    Twins(Cell, Cell, bool),
    /// The first process is before the second, strictly or not.
    Ahead(Point, Point, bool),
    /// A sum of cells with factors and a constant compares with zero.
    Sum(BTreeMap<Cell, BigRational>, BigRational, Sign),
    /// The process has seen all its writes at the stage.
    Fence(u8, u8),
    /// Nothing: it never holds.
    Never,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processes.
    Process,
    /// An enumeration of so many values.
    Values(u32),
    /// Only equality is known.
    Opaque,
    /// Integers.
    Integer,
    /// Reals.
    Real,
}

/// What is fixed while one question is answered.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The kinds of symbols.
    pub kinds: &'a [Kind],
    /// How many processes have names; the first `fixed` are `#1`, `#2`, ..
    pub named: usize,
    /// How many of the names are constants.
    pub fixed: usize,
    /// Whether there are no other processes.
    pub closed: bool,
}

impl World<'_> {
    /// All values of a cell.
    pub fn all(&self, cell: &Cell) -> Vec<u32> {
        match self.kinds.get(cell.symbol) {
            Some(Kind::Values(n)) => (0..*n).collect(),
            Some(Kind::Process) if self.closed => (0..self.named as u32).collect(),
            Some(Kind::Process) => (0..self.named as u32).chain([OTHER]).collect(),
            _ => Vec::new(),
        }
    }
    fn is_discrete(&self, cell: &Cell) -> bool {
        matches!(self.kinds.get(cell.symbol), Some(Kind::Process | Kind::Values(_)))
    }
    fn is_integer(&self, cell: &Cell) -> bool {
        self.kinds.get(cell.symbol) == Some(&Kind::Integer)
    }
    /// The opposite of a fact that is no fence.
    pub fn opposite(&self, fact: &Fact) -> Fact {
        match fact {
            Fact::Among(c, set) => Fact::Among(c.clone(), self.all(c).into_iter().filter(|v| !set.contains(v)).collect()),
            Fact::Twins(a, b, same) => Fact::Twins(a.clone(), b.clone(), !same),
            Fact::Ahead(a, b, strict) => Fact::Ahead(b.clone(), a.clone(), !strict),
            Fact::Sum(terms, constant, sign) => {
                let minus = || (terms.iter().map(|(c, f)| (c.clone(), -f)).collect(), -constant);
                match sign {
                    Sign::Zero => Fact::Sum(terms.clone(), constant.clone(), Sign::NotZero),
                    Sign::NotZero => Fact::Sum(terms.clone(), constant.clone(), Sign::Zero),
                    Sign::AtMost => {
                        let (t, c) = minus();
                        Fact::Sum(t, c, Sign::Less)
                    }
                    Sign::Less => {
                        let (t, c) = minus();
                        Fact::Sum(t, c, Sign::AtMost)
                    }
                }
            }
            Fact::Fence(..) | Fact::Never => Fact::Never,
        }
    }
    /// Whether the facts contradict each other. *No* may be wrong, *yes* is not.
    pub fn contradicts(&self, facts: &[Fact]) -> bool {
        let mut budget = MOST_SPLITS;
        self.search(facts.to_vec(), &mut budget)
    }
    fn search(&self, facts: Vec<Fact>, budget: &mut u32) -> bool {
        let Some(domains) = self.domains(&facts) else { return true };
        let held = |c: &Cell| domains.get(c).cloned().unwrap_or_else(|| self.all(c));
        // The cell with the fewest values that takes part in a difference or an order.
        let mut open: Option<(usize, Cell)> = None;
        let mut offer = |c: &Cell| {
            let size = held(c).len();
            if size > 1 && open.as_ref().is_none_or(|o| size < o.0) {
                open = Some((size, c.clone()));
            }
        };
        for f in &facts {
            match f {
                Fact::Twins(a, b, false) if self.is_discrete(a) => {
                    let (x, y) = (held(a), held(b));
                    if x.iter().any(|v| *v != OTHER && y.contains(v)) {
                        offer(a);
                        offer(b);
                    }
                }
                Fact::Ahead(a, b, _) => {
                    for p in [a, b] {
                        if let Point::Held(c) = p {
                            offer(c);
                        }
                    }
                }
                _ => {}
            }
        }
        let Some((_, cell)) = open else {
            return self.disordered(&facts, &held) || self.unequal(&facts) || self.unbalanced(&facts, budget);
        };
        held(&cell).into_iter().rev().all(|v| {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut next = facts.clone();
            next.push(Fact::Among(cell.clone(), vec![v]));
            self.search(next, budget)
        })
    }
    /// The values that remain for each cell; `None` if some cell has none.
    fn domains(&self, facts: &[Fact]) -> Option<BTreeMap<Cell, Vec<u32>>> {
        let mut domains: BTreeMap<Cell, Vec<u32>> = BTreeMap::new();
        for f in facts {
            match f {
                Fact::Never => return None,
                Fact::Among(c, set) => {
                    let old = domains.remove(c).unwrap_or_else(|| self.all(c));
                    domains.insert(c.clone(), old.into_iter().filter(|v| set.contains(v)).collect());
                }
                _ => {}
            }
        }
        loop {
            let mut changed = false;
            for f in facts {
                let Fact::Twins(a, b, same) = f else { continue };
                if !self.is_discrete(a) {
                    continue;
                }
                let x = domains.get(a).cloned().unwrap_or_else(|| self.all(a));
                let y = domains.get(b).cloned().unwrap_or_else(|| self.all(b));
                let only = |s: &[u32]| if let [v] = s { (*v != OTHER).then_some(*v) } else { None };
                let (p, q): (Vec<u32>, Vec<u32>) = if *same {
                    let both: Vec<u32> = x.iter().copied().filter(|v| y.contains(v)).collect();
                    (both.clone(), both)
                } else {
                    let (l, r) = (only(&x), only(&y));
                    (x.iter().copied().filter(|v| Some(*v) != r).collect(), y.iter().copied().filter(|v| Some(*v) != l).collect())
                };
                if p.len() < x.len() || q.len() < y.len() {
                    changed = true;
                    domains.insert(a.clone(), p);
                    domains.insert(b.clone(), q);
                }
            }
            if !changed {
                break;
            }
        }
        domains.values().all(|d| !d.is_empty()).then_some(domains)
    }
    /// Whether the order of processes has a cycle; every cell in it has one value.
    fn disordered(&self, facts: &[Fact], held: &dyn Fn(&Cell) -> Vec<u32>) -> bool {
        // Closed under transitivity by repeated passes over a list of edges (from, to, strict); unnamed processes are nodes of their own cells.
        let mut edges: Vec<(String, String, bool)> = Vec::new();
        let node = |p: &Point| match p {
            Point::Named(n) => format!("{n}"),
            Point::Held(c) => match held(c).as_slice() {
                [OTHER] => format!("{c:?}"),
                [v] => format!("{v}"),
                _ => format!("{c:?}"),
            },
        };
        let named = |s: &str| s.parse::<u32>().is_ok();
        for f in facts {
            if let Fact::Ahead(a, b, strict) = f {
                let (x, y) = (node(a), node(b));
                let apart = x != y && (named(&x) || named(&y));
                edges.push((x, y, *strict || apart));
            }
        }
        if edges.is_empty() {
            return false;
        }
        let mut nodes: Vec<String> = edges.iter().flat_map(|e| [e.0.clone(), e.1.clone()]).collect();
        nodes.sort();
        nodes.dedup();
        for i in 0..self.fixed {
            for other in &nodes {
                if other.parse::<usize>().map_or(true, |o| o > i) {
                    edges.push((i.to_string(), other.clone(), true));
                }
            }
        }
        for f in facts {
            if let Fact::Twins(a, b, true) = f
                && held(a) == [OTHER]
            {
                edges.push((format!("{a:?}"), format!("{b:?}"), false));
                edges.push((format!("{b:?}"), format!("{a:?}"), false));
            }
        }
        loop {
            let mut new = Vec::new();
            for e in &edges {
                for g in &edges {
                    if e.1 == g.0 {
                        let joined = (e.0.clone(), g.1.clone(), e.2 || g.2);
                        if !edges.contains(&joined) && !new.contains(&joined) {
                            new.push(joined);
                        }
                    }
                }
            }
            if new.is_empty() {
                break;
            }
            edges.append(&mut new);
        }
        edges.iter().any(|e| e.0 == e.1 && e.2)
    }
    /// Whether equalities join cells that must differ.
    fn unequal(&self, facts: &[Fact]) -> bool {
        let mut groups: Vec<Vec<&Cell>> = Vec::new();
        for f in facts {
            if let Fact::Twins(a, b, true) = f {
                let (mut joined, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| g.contains(&a) || g.contains(&b));
                joined.push(vec![a, b]);
                groups = rest;
                groups.push(joined.concat());
            }
        }
        facts.iter().any(|f| matches!(f, Fact::Twins(a, b, false) if a == b || groups.iter().any(|g| g.contains(&a) && g.contains(&b))))
    }
    /// Whether the sums contradict each other.
    fn unbalanced(&self, facts: &[Fact], budget: &mut u32) -> bool {
        let mut rows: Vec<Row> = Vec::new();
        for f in facts {
            let Fact::Sum(terms, constant, sign) = f else { continue };
            let row = Row { terms: terms.clone(), constant: constant.clone(), strict: *sign == Sign::Less };
            match sign {
                Sign::AtMost | Sign::Less => rows.push(row),
                Sign::Zero => {
                    rows.push(row.minus());
                    rows.push(row);
                }
                Sign::NotZero => {}
            }
        }
        let differ: Vec<Row> = facts
            .iter()
            .filter_map(|f| match f {
                Fact::Sum(terms, constant, Sign::NotZero) => Some(Row { terms: terms.clone(), constant: constant.clone(), strict: true }),
                _ => None,
            })
            .collect();
        self.empty(rows, &differ, budget)
    }
    fn empty(&self, rows: Vec<Row>, differ: &[Row], budget: &mut u32) -> bool {
        if self.eliminated(rows.clone(), budget) {
            return true;
        }
        let Some((first, rest)) = differ.split_first() else { return false };
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        [first.clone(), first.minus()].into_iter().all(|side| {
            let mut more = rows.clone();
            more.push(side);
            self.empty(more, rest, budget)
        })
    }
    /// Eliminates all cells; whether a contradiction is left.
    fn eliminated(&self, rows: Vec<Row>, budget: &mut u32) -> bool {
        let mut rows: Vec<Row> = rows.into_iter().map(|r| self.rounded(r)).collect();
        loop {
            if rows.iter().any(Row::is_false) {
                return true;
            }
            rows.retain(|r| !r.terms.is_empty());
            rows.sort();
            rows.dedup();
            // The cell that makes the fewest new rows.
            let mut cells: Vec<&Cell> = rows.iter().flat_map(|r| r.terms.keys()).collect();
            cells.sort();
            cells.dedup();
            let cost = |c: &Cell| {
                let up = rows.iter().filter(|r| r.terms.get(c).is_some_and(Signed::is_positive)).count();
                let down = rows.iter().filter(|r| r.terms.get(c).is_some_and(Signed::is_negative)).count();
                up * down
            };
            let Some(cell) = cells.into_iter().min_by_key(|c| cost(c)).cloned() else { return false };
            if rows.len() > MOST_CONSTRAINTS || *budget == 0 {
                return false;
            }
            let (with, without): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|r| r.terms.contains_key(&cell));
            rows = without;
            for a in with.iter().filter(|r| r.terms[&cell].is_positive()) {
                for b in with.iter().filter(|r| r.terms[&cell].is_negative()) {
                    rows.push(self.rounded(a.joined(b, &cell)));
                }
            }
        }
    }
    /// Over integers: whole factors without a common divisor, the constant rounded up, strict made weak.
    fn rounded(&self, mut row: Row) -> Row {
        if row.terms.is_empty() || !row.terms.keys().all(|c| self.is_integer(c)) {
            return row;
        }
        let mut denominator = row.constant.denom().clone();
        for f in row.terms.values() {
            denominator = denominator.lcm(f.denom());
        }
        row.scale(&BigRational::from_integer(denominator));
        if row.strict {
            row.constant += BigRational::one();
            row.strict = false;
        }
        let divisor = row.terms.values().fold(BigInt::zero(), |g, f| g.gcd(f.numer()));
        row.scale(&BigRational::new(BigInt::one(), divisor));
        row.constant = row.constant.ceil();
        row
    }
    /// Facts that follow without the cell, which is forgotten: it stands for any value.
    pub fn without(&self, facts: Vec<Fact>, cell: &Cell) -> Vec<Fact> {
        let mentions = |f: &Fact| match f {
            Fact::Among(c, _) => c == cell,
            Fact::Twins(a, b, _) => a == cell || b == cell,
            Fact::Ahead(a, b, _) => [a, b].into_iter().any(|p| *p == Point::Held(cell.clone())),
            Fact::Sum(terms, ..) => terms.contains_key(cell),
            Fact::Fence(..) | Fact::Never => false,
        };
        let (with, mut rest): (Vec<Fact>, Vec<Fact>) = facts.into_iter().partition(mentions);
        let twin = with.iter().find_map(|f| match f {
            Fact::Twins(a, b, true) => Some(if a == cell { b.clone() } else { a.clone() }),
            _ => None,
        });
        if let Some(twin) = twin {
            let put = |c: &Cell| if c == cell { twin.clone() } else { c.clone() };
            for f in with {
                rest.push(match f {
                    Fact::Among(c, set) => Fact::Among(put(&c), set),
                    Fact::Twins(a, b, same) if put(&a) == put(&b) => {
                        if same {
                            continue;
                        }
                        Fact::Never
                    }
                    Fact::Twins(a, b, same) => Fact::Twins(put(&a), put(&b), same),
                    Fact::Ahead(a, b, strict) => {
                        let point = |p: Point| if let Point::Held(c) = &p { Point::Held(put(c)) } else { p };
                        Fact::Ahead(point(a), point(b), strict)
                    }
                    other => other,
                });
            }
            return rest;
        }
        let mut rows = Vec::new();
        for f in with {
            if let Fact::Sum(terms, constant, sign) = f {
                let row = Row { terms, constant, strict: sign == Sign::Less };
                match sign {
                    Sign::NotZero => {}
                    Sign::Zero => {
                        rows.push(row.minus());
                        rows.push(row);
                    }
                    _ => rows.push(row),
                }
            }
        }
        for a in rows.iter().filter(|r| r.terms[cell].is_positive()) {
            for b in rows.iter().filter(|r| r.terms[cell].is_negative()) {
                let joined = a.joined(b, cell);
                rest.push(Fact::Sum(joined.terms, joined.constant, if joined.strict { Sign::Less } else { Sign::AtMost }));
            }
        }
        rest
    }
}

/// A sum that is at most zero, or less.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    terms: BTreeMap<Cell, BigRational>,
    constant: BigRational,
    strict: bool,
}

impl Row {
    fn scale(&mut self, by: &BigRational) {
        self.terms.values_mut().for_each(|f| *f *= by);
        self.constant *= by;
    }
    fn minus(&self) -> Row {
        let mut row = self.clone();
        row.scale(&-BigRational::one());
        row
    }
    fn is_false(&self) -> bool {
        self.terms.is_empty() && (self.constant.is_positive() || (self.strict && self.constant.is_zero()))
    }
    /// The sum of both, scaled so that the cell cancels.
    fn joined(&self, other: &Row, cell: &Cell) -> Row {
        let mut row = self.clone();
        row.scale(&other.terms[cell].abs());
        let mut add = other.clone();
        add.scale(&self.terms[cell].abs());
        for (c, f) in add.terms {
            let sum = row.terms.remove(&c).unwrap_or_else(BigRational::zero) + f;
            if !sum.is_zero() {
                row.terms.insert(c, sum);
            }
        }
        row.constant += add.constant;
        row.strict |= add.strict;
        row
    }
}
