//! The verifier's own logic: consistency of conjunctions over distinct processes. Simple, and
//! complete when it terminates within its budget: domains as sets of bits, equalities and orders by
//! trying values, arithmetic ([`super::sums`]) by elimination. Nothing here is shared with the
//! prover.
//!
//! Cost: exponential in the necessary splits; certificates need only small queries. A query that is
//! too large gets the answer *no contradiction*, so that a certificate is rejected, not accepted.

use super::counts::Count;
use super::sums::{CellSum, has_contradiction};
use super::words::{Words, inconsistent};
use mu_base::narrow;
use std::sync::atomic::AtomicU64;

/// In values of a cell: a process without a name.
pub const OTHER: u32 = 127;
/// The stage that processes share.
pub const JOINT: u8 = 254;
const MAX_SPLITS: u32 = 3000;
/// The padding of indices.
const NO_INDEX: u8 = 255;

/// A set of values: indices of constructors in their type, or processes and [`OTHER`].
pub type Set = u128;

/// Returns the set of one value.
pub fn singleton(value: u32) -> Set {
    1 << value
}

/// Returns the values of a set, ascending.
pub fn members(set: Set) -> impl DoubleEndedIterator<Item = u32> {
    (0..128).filter(move |v| set & singleton(*v) != 0)
}

/// A cell, in the view of a process at a stage, or now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CertificateCell {
    symbol: u32,
    args: [u8; 3],
    /// The process and stage of the view.
    pub look: Option<(u8, u8)>,
}

impl CertificateCell {
    /// Creates a cell with at most three indices.
    pub fn new(
        symbol: usize,
        args: impl IntoIterator<Item = u8>,
        look: Option<(u8, u8)>,
    ) -> CertificateCell {
        let mut cell = CertificateCell { symbol: narrow::index(symbol), args: [NO_INDEX; 3], look };
        for (to, from) in cell.args.iter_mut().zip(args) {
            *to = from;
        }
        cell
    }
    /// Returns the symbol.
    pub fn symbol(&self) -> usize {
        self.symbol as usize
    }
    /// Returns the indices.
    pub fn args(&self) -> impl Iterator<Item = u8> {
        self.args.into_iter().take_while(|a| *a != NO_INDEX)
    }
    /// Returns the cell with other indices.
    #[must_use]
    pub fn rename_indices(&self, to: impl Fn(u8) -> u8) -> CertificateCell {
        CertificateCell { args: self.args.map(|a| if a == NO_INDEX { a } else { to(a) }), ..*self }
    }
    /// Returns the cell in another view.
    #[must_use]
    pub fn with_view(&self, look: Option<(u8, u8)>) -> CertificateCell {
        CertificateCell { look, ..*self }
    }
}

/// A process: named, or the content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// The named process.
    Named(u8),
    /// The content of the cell.
    Held(CertificateCell),
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    /// The cell contains one of the values.
    Among(CertificateCell, Set),
    /// Two cells are equal, or different.
    Twins(CertificateCell, CertificateCell, bool),
    /// The first process precedes the second, strictly or not.
    Ahead(Point, Point, bool),
    /// A sum of cells with factors and a constant compares with zero.
    Sum(CellSum),
    /// A comparison of words.
    Words(Box<Words>),
    /// All writes of the process are in memory at the stage.
    Fence(u8, u8),
    /// Never holds.
    ExcludedCube,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Processes.
    Process,
    /// An enumeration with this number of values.
    Values(u32),
    /// Values with equality only.
    Opaque,
    /// Integers.
    Integer,
    /// Reals.
    Real,
    /// Words of this number of bits.
    Word(u32),
}

/// The context of a query.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The kinds of symbols.
    pub kinds: &'a [ValueKind],
    /// Number of named processes; the first `fixed` are `#1`, `#2`, ..
    pub named: usize,
    /// Number of names that are constants.
    pub fixed: usize,
    /// True if there are no other processes.
    pub closed: bool,
    /// Counting invariants.
    pub counts: &'a [Count],
    /// Counts the cases of words that were tried.
    pub spent: Option<&'a AtomicU64>,
}

/// The remaining values of cells; unlisted cells may have any.
#[derive(Clone, Default)]
pub struct Domains(Vec<(CertificateCell, Set)>);

impl Domains {
    fn get(&self, cell: &CertificateCell) -> Option<Set> {
        self.0.iter().find(|d| d.0 == *cell).map(|d| d.1)
    }
    /// Intersects the set of a cell with `set`. Returns true if that changed it.
    fn narrow(&mut self, world: World<'_>, cell: &CertificateCell, set: Set) -> bool {
        match self.0.iter_mut().find(|d| d.0 == *cell) {
            Some(d) => {
                let old = d.1;
                d.1 &= set;
                d.1 != old
            }
            None => {
                let all = world.all_values(cell);
                self.0.push((*cell, all & set));
                all & set != all
            }
        }
    }
    fn is_empty(&self) -> bool {
        self.0.iter().any(|d| d.1 == 0)
    }
}

impl World<'_> {
    /// Returns all values of a cell.
    pub fn all_values(&self, cell: &CertificateCell) -> Set {
        match self.kinds.get(cell.symbol()) {
            Some(ValueKind::Values(n)) => singleton(*n) - 1,
            Some(ValueKind::Process) if self.closed => singleton(narrow::index(self.named)) - 1,
            Some(ValueKind::Process) => {
                (singleton(narrow::index(self.named)) - 1) | singleton(OTHER)
            }
            _ => 0,
        }
    }
    fn is_discrete(&self, cell: &CertificateCell) -> bool {
        matches!(self.kinds.get(cell.symbol()), Some(ValueKind::Process | ValueKind::Values(_)))
    }
    /// True if the cell is an integer.
    pub fn is_integer(&self, cell: &CertificateCell) -> bool {
        matches!(self.kinds.get(cell.symbol()), Some(ValueKind::Integer | ValueKind::Word(_)))
    }
    /// Returns the possible values of a cell.
    pub fn possible_values(&self, domains: &Domains, cell: &CertificateCell) -> Set {
        domains.get(cell).unwrap_or_else(|| self.all_values(cell))
    }
    /// Returns the set if it contains one process, which has a name.
    fn single(&self, set: Set) -> Option<Set> {
        (set.is_power_of_two() && set != singleton(OTHER)).then_some(set)
    }
    /// Returns the negation of a fact other than a fence.
    pub fn opposite(&self, fact: &Fact) -> Fact {
        match fact {
            Fact::Among(c, set) => Fact::Among(*c, self.all_values(c) & !set),
            Fact::Twins(a, b, same) => Fact::Twins(*a, *b, !same),
            Fact::Ahead(a, b, strict) => Fact::Ahead(*b, *a, !strict),
            Fact::Sum(s) => Fact::Sum(s.opposite()),
            Fact::Words(w) => Fact::Words(Box::new(w.opposite())),
            Fact::Fence(..) | Fact::ExcludedCube => Fact::ExcludedCube,
        }
    }
    /// True if the facts contradict each other. *No* may be wrong, *yes* is not.
    pub fn contradicts(&self, facts: &[Fact]) -> bool {
        let mut budget = MAX_SPLITS;
        let Some(domains) = self.domains(facts) else { return true };
        let own = |c: &Count| {
            let cells = || c.sum.terms.iter().map(|t| t.0);
            facts.iter().any(|f| self::cells(f).iter().any(|x| cells().any(|y| *x == y)))
        };
        let counts: Vec<Fact> =
            self.counts.iter().filter(|c| own(c)).flat_map(|c| c.facts(*self, &domains)).collect();
        if counts.is_empty() {
            return self.search(facts, domains, &mut budget);
        }
        counts.contains(&Fact::ExcludedCube)
            || self.search(&[facts, &counts].concat(), domains, &mut budget)
    }
    fn search(&self, facts: &[Fact], mut domains: Domains, budget: &mut u32) -> bool {
        self.spread(facts, &mut domains);
        if domains.is_empty() {
            return true;
        }
        let Some(cell) = self.open_cell(facts, &domains) else {
            return self.is_disordered(facts, &domains)
                || unequal(facts)
                || has_contradiction(*self, facts, budget)
                || inconsistent(*self, facts, budget);
        };
        members(self.possible_values(&domains, &cell)).rev().all(|v| {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut next = domains.clone();
            next.narrow(*self, &cell, singleton(v));
            self.search(facts, next, budget)
        })
    }
    /// True if the facts hold in some state without unnamed processes in cells. *No* may be wrong,
    /// *yes* is not.
    pub fn surely_holds(&self, facts: &[Fact]) -> bool {
        let mut budget = MAX_SPLITS;
        super::sums::surely_holds(facts)
            && self.domains(facts).is_some_and(|d| self.finds_state(facts, d, &mut budget))
    }
    /// Searches for values of the cells that facts without arithmetic relate.
    fn finds_state(&self, facts: &[Fact], mut domains: Domains, budget: &mut u32) -> bool {
        self.spread(facts, &mut domains);
        if domains.is_empty() {
            return false;
        }
        let Some(cell) = self.open_cell(facts, &domains) else {
            return !self.is_disordered(facts, &domains) && !unequal(facts);
        };
        members(self.possible_values(&domains, &cell)).rev().any(|v| {
            if *budget == 0 {
                return false;
            }
            *budget -= 1;
            let mut next = domains.clone();
            next.narrow(*self, &cell, singleton(v));
            self.finds_state(facts, next, budget)
        })
    }
    /// Returns the cell with the fewest values, more than one, that occurs in a difference or an
    /// order; `None` if all these are decided.
    fn open_cell(&self, facts: &[Fact], domains: &Domains) -> Option<CertificateCell> {
        let mut open: Option<(u32, CertificateCell)> = None;
        let mut offer = |c: &CertificateCell| {
            let size = self.possible_values(domains, c).count_ones();
            if size > 1 && open.is_none_or(|o| size < o.0) {
                open = Some((size, *c));
            }
        };
        for f in facts {
            match f {
                Fact::Twins(a, b, false)
                    if self.is_discrete(a)
                        && self.possible_values(domains, a)
                            & self.possible_values(domains, b)
                            & !self.unnamed_processes(a)
                            != 0 =>
                {
                    offer(a);
                    offer(b);
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
        open.map(|o| o.1)
    }
    /// Returns the unnamed processes, as values of the cell: two cells may contain different ones.
    fn unnamed_processes(&self, cell: &CertificateCell) -> Set {
        if self.kinds.get(cell.symbol()) == Some(&ValueKind::Process) {
            singleton(OTHER)
        } else {
            0
        }
    }
    /// Returns the values that the facts allow for each cell; `None` if some cell has none.
    pub fn domains(&self, facts: &[Fact]) -> Option<Domains> {
        let mut domains = Domains::default();
        for f in facts {
            match f {
                Fact::ExcludedCube => return None,
                Fact::Among(c, set) => {
                    domains.narrow(*self, c, *set);
                }
                _ => {}
            }
        }
        self.spread(facts, &mut domains);
        (!domains.is_empty()).then_some(domains)
    }
    /// Propagates to the fixed point: equalities intersect the values of both sides, differences
    /// remove single values.
    fn spread(&self, facts: &[Fact], domains: &mut Domains) {
        loop {
            let mut changed = false;
            for f in facts {
                let Fact::Twins(a, b, same) = f else { continue };
                if !self.is_discrete(a) {
                    continue;
                }
                let (x, y) = (self.possible_values(domains, a), self.possible_values(domains, b));
                let (p, q) = if *same {
                    (x & y, x & y)
                } else {
                    let process = self.unnamed_processes(a) != 0;
                    let one = |s: Set| {
                        if process { self.single(s) } else { s.is_power_of_two().then_some(s) }
                    };
                    (x & !one(y).unwrap_or(0), y & !one(x).unwrap_or(0))
                };
                if p != x {
                    changed |= domains.narrow(*self, a, p);
                }
                if q != y {
                    changed |= domains.narrow(*self, b, q);
                }
            }
            if !changed || domains.is_empty() {
                return;
            }
        }
    }
    /// True if the order of processes has a cycle; every cell in it has one value.
    fn is_disordered(&self, facts: &[Fact], domains: &Domains) -> bool {
        if !facts.iter().any(|f| matches!(f, Fact::Ahead(..))) {
            return false;
        }
        // Nodes: named processes, then the cells with an unnamed one.
        let mut held: Vec<CertificateCell> = Vec::new();
        let mut node = |p: &Point| match p {
            Point::Named(n) => usize::from(*n),
            Point::Held(c) => match self.single(self.possible_values(domains, c)) {
                Some(one) => one.trailing_zeros() as usize,
                None => {
                    let at = held.iter().position(|h| h == c).unwrap_or_else(|| {
                        held.push(*c);
                        held.len() - 1
                    });
                    self.named + at
                }
            },
        };
        let mut edges: Vec<(usize, usize, bool)> = Vec::new();
        for f in facts {
            match f {
                Fact::Ahead(a, b, strict) => {
                    let (x, y) = (node(a), node(b));
                    edges.push((x, y, *strict || (x != y && x.min(y) < self.named)));
                }
                Fact::Twins(a, b, true)
                    if self.possible_values(domains, a) == singleton(OTHER)
                        && self.unnamed_processes(a) != 0 =>
                {
                    let (x, y) = (node(&Point::Held(*a)), node(&Point::Held(*b)));
                    edges.extend([(x, y, false), (y, x, false)]);
                }
                _ => {}
            }
        }
        let count = self.named + held.len();
        edges.extend((0..self.fixed).flat_map(|i| (i + 1..count).map(move |j| (i, j, true))));
        // The relation of two nodes: none, at or before, strictly before.
        let mut reach = vec![0u8; count * count];
        for (x, y, strict) in edges {
            let r = &mut reach[x * count + y];
            *r = (*r).max(1 + u8::from(strict));
        }
        for via in 0..count {
            for x in 0..count {
                for y in 0..count {
                    let (a, b) = (reach[x * count + via], reach[via * count + y]);
                    if a.min(b) > 0 {
                        reach[x * count + y] = reach[x * count + y].max(a.max(b));
                    }
                }
            }
        }
        (0..count).any(|x| reach[x * count + x] == 2)
    }
    /// Returns facts that follow without the cell, which is eliminated as an arbitrary value.
    pub fn eliminate_cell(&self, facts: Vec<Fact>, cell: &CertificateCell) -> Vec<Fact> {
        let (with, mut rest): (Vec<Fact>, Vec<Fact>) =
            facts.into_iter().partition(|f| cells(f).contains(cell));
        let twin = with.iter().find_map(|f| match f {
            Fact::Twins(a, b, true) => Some(if a == cell { *b } else { *a }),
            _ => None,
        });
        if let Some(twin) = twin {
            for f in with {
                match recell(&f, &|c| if c == cell { twin } else { *c }) {
                    Fact::Twins(a, b, true) if a == b => {}
                    Fact::Twins(a, b, false) if a == b => rest.push(Fact::ExcludedCube),
                    f => rest.push(f),
                }
            }
            return rest;
        }
        rest.extend(super::sums::consequences_without(&with, cell).into_iter().map(Fact::Sum));
        rest
    }
}

/// True if equalities identify cells that must differ.
fn unequal(facts: &[Fact]) -> bool {
    if facts.iter().all(|f| !matches!(f, Fact::Twins(_, _, false))) {
        return false;
    }
    let mut groups: Vec<Vec<CertificateCell>> = Vec::new();
    for f in facts {
        if let Fact::Twins(a, b, true) = f {
            let (mut joined, rest): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|g| g.contains(a) || g.contains(b));
            joined.push(vec![*a, *b]);
            groups = rest;
            groups.push(joined.concat());
        }
    }
    facts.iter().any(|f| matches!(f, Fact::Twins(a, b, false) if a == b || groups.iter().any(|g| g.contains(a) && g.contains(b))))
}

/// Returns the cells of a fact.
pub fn cells(fact: &Fact) -> Vec<CertificateCell> {
    match fact {
        Fact::Among(c, _) => vec![*c],
        Fact::Twins(a, b, _) => vec![*a, *b],
        Fact::Ahead(a, b, _) => [a, b]
            .into_iter()
            .filter_map(|p| if let Point::Held(c) = p { Some(*c) } else { None })
            .collect(),
        Fact::Sum(s) => s.terms.iter().map(|t| t.0).collect(),
        Fact::Words(w) => w.cells().collect(),
        Fact::Fence(..) | Fact::ExcludedCube => Vec::new(),
    }
}

/// Returns the stages that a fact mentions.
pub fn stages_of(fact: &Fact) -> Vec<(u8, u8)> {
    match fact {
        Fact::Fence(p, s) => vec![(*p, *s)],
        f => cells(f).into_iter().filter_map(|c| c.look).collect(),
    }
}

/// Replaces each cell of a fact.
pub fn recell(fact: &Fact, to: &dyn Fn(&CertificateCell) -> CertificateCell) -> Fact {
    match fact {
        Fact::Among(c, set) => Fact::Among(to(c), *set),
        Fact::Twins(a, b, same) => Fact::Twins(to(a), to(b), *same),
        Fact::Ahead(a, b, strict) => {
            let point = |p: &Point| if let Point::Held(c) = p { Point::Held(to(c)) } else { *p };
            Fact::Ahead(point(a), point(b), *strict)
        }
        Fact::Sum(s) => Fact::Sum(s.map(to)),
        Fact::Words(w) => Fact::Words(Box::new(w.map(to))),
        Fact::Fence(..) | Fact::ExcludedCube => fact.clone(),
    }
}
