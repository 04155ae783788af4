//! Cells, atoms and their negations: the vocabulary of cubes. All process variables of a cube are
//! distinct and numbered from 0 (the first [`Signature::fixed`] of them are the constants `#1`,
//! `#2`, ..). A cell is a symbol at process variables, packed into eight bytes, so that renaming is
//! arithmetic and comparison is one instruction.
//!
//! Under total store order a cell of memory is either *memory now* or a process's view at a
//! *stage*, one of the past or present moments at which its later reads read memory (see
//! [`crate::stages`]). This module treats both like all other cells.
//!
//! Invariant: an atom is in normal form ([`Atom::equality`], [`LinearConstraint::new`]), so that
//! equal constraints are equal values.

use crate::counts::Count;
use crate::residues::Residues;
use crate::simplex::ZeroRelation;
use mu_base::narrow;

/// Largest number of process variables of a cube.
pub const MAX_PROCESSES: usize = 24;
/// In a set of processes, the bit of all processes without a variable.
pub const OTHER: u64 = 1 << 63;
/// In place of a process or stage: there is none.
pub const NONE: u8 = u8::MAX;
/// The stage that several views share: the end of the run, to which `unsafe` refers.
pub const JOINT: u8 = u8::MAX - 1;

/// The kind of values of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolSort {
    /// Processes.
    Process,
    /// An enumeration with this number of constructors, at most 64.
    Finite(u32),
    /// Values with equality only.
    Abstract,
    /// Integers.
    Integer,
    /// Reals.
    Real,
    /// Words of this number of bits, at most 32.
    Word(u32),
}

impl SymbolSort {
    /// True if its values are numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self, SymbolSort::Integer | SymbolSort::Real | SymbolSort::Word(_))
    }
}

/// The symbols of a system.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The sort of each symbol.
    pub sorts: Vec<SymbolSort>,
    /// True for each symbol in memory that is written through store buffers (declared `weak`).
    pub weak: Vec<bool>,
    /// Number of processes that index the symbol.
    pub arity: Vec<usize>,
    /// True for each symbol that never changes.
    pub rigid: Vec<bool>,
    /// Number of process variables, from 0 on, that stand for the constants `#1`, `#2`, ….
    pub fixed: usize,
    /// The number of all processes, if the file limits it.
    pub most: Option<usize>,
    /// True if cells may contain a process beyond all processes, because `init` is unsatisfiable
    /// otherwise.
    pub beyond: bool,
    /// Counting invariants, which hold in all states.
    pub counts: Vec<Count>,
}

impl Signature {
    /// Returns the sort of a cell.
    pub fn sort(&self, cell: Cell) -> SymbolSort {
        self.sorts[cell.symbol()]
    }
    /// Returns the set of all values of a sort, in a cube of `processes` processes.
    pub fn all_values(&self, sort: SymbolSort, processes: usize) -> u64 {
        match sort {
            SymbolSort::Finite(64) => u64::MAX,
            SymbolSort::Finite(n) => (1 << n) - 1,
            SymbolSort::Process if self.most == Some(processes) && !self.beyond => {
                (1 << processes) - 1
            }
            SymbolSort::Process => OTHER | ((1 << processes) - 1),
            _ => u64::MAX,
        }
    }
}

/// A symbol at up to three process variables, without a view (plain, or memory now) or in the view
/// of a process at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell(u64);

impl Cell {
    /// Creates a cell without a view.
    pub fn new(symbol: usize, args: &[u8]) -> Cell {
        let arg = |i: usize| u64::from(args.get(i).copied().unwrap_or(NONE));
        Cell((symbol as u64) << 40 | arg(0) << 32 | arg(1) << 24 | arg(2) << 16 | 0xffff)
    }
    /// Returns the symbol.
    pub fn symbol(self) -> usize {
        (self.0 >> 40) as usize
    }
    /// Returns its arguments, padded with [`NONE`].
    pub fn args(self) -> [u8; 3] {
        [32, 24, 16].map(|at| narrow::byte_at(self.0, at))
    }
    /// Returns the process and stage of its view; `None` if it is in memory now.
    pub fn view(self) -> Option<(u8, u8)> {
        let process = narrow::byte_at(self.0, 8);
        (process != NONE).then_some((process, narrow::byte_at(self.0, 0)))
    }
    /// Returns the same cell in a view; `None`: in memory now.
    #[must_use]
    pub fn with_view(self, view: Option<(u8, u8)>) -> Cell {
        let (process, stage) = view.unwrap_or((NONE, NONE));
        Cell(self.0 & !0xffff | u64::from(process) << 8 | u64::from(stage))
    }
    /// Returns the same cell of memory now.
    #[must_use]
    pub fn current(self) -> Cell {
        Cell(self.0 | 0xffff)
    }
    /// Replaces each process `p` by `to(p)`.
    #[must_use]
    pub fn map(self, to: impl Fn(u8) -> u8) -> Cell {
        let put = |at: u32| {
            let p = narrow::byte_at(self.0, at);
            u64::from(if p == NONE { NONE } else { to(p) }) << at
        };
        Cell(self.0 & !0xff_ffff_ff00 | put(32) | put(24) | put(16) | put(8))
    }
    /// Returns the processes that it mentions.
    pub fn processes(self) -> impl Iterator<Item = u8> {
        [32, 24, 16, 8]
            .into_iter()
            .map(move |at| narrow::byte_at(self.0, at))
            .filter(|&p| p != NONE)
    }
}

/// A process: a variable, or the content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// The process variable.
    Variable(u8),
    /// The content of the cell.
    Cell(Cell),
}

impl Point {
    fn map(self, to: impl Fn(u8) -> u8) -> Point {
        match self {
            Point::Variable(v) => Point::Variable(to(v)),
            Point::Cell(c) => Point::Cell(c.map(to)),
        }
    }
}

/// A linear constraint: the sum of factors times cells, plus a constant, compared with zero. Cells
/// ascend, no factor is zero, the factors and the constant have no common divisor (over integers
/// the constant is rounded), and for `=`, `≠` the first factor is positive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinearConstraint {
    /// Cells with factors.
    pub terms: Vec<(Cell, i64)>,
    /// The constant part.
    pub constant: i64,
    /// The comparison with zero.
    pub relation: ZeroRelation,
}

/// An atom.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// The value of the cell (of an enumeration, or a process) is in the set.
    In(Cell, u64),
    /// The two cells, the smaller first, are equal, or are not.
    Same(Cell, Cell, bool),
    /// The first process precedes the second, or equals it unless strict.
    Before(Point, Point, bool),
    /// A linear constraint.
    Linear(Box<LinearConstraint>),
    /// A comparison of words.
    Residues(Box<Residues>),
    /// At this stage all writes of the process are in memory.
    Fence(u8, u8),
}

/// A constraint, possibly constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal {
    /// It always holds.
    True,
    /// It never holds.
    False,
    /// An atom.
    Atom(Atom),
}

/// The error that a number in a proof has more than 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl LinearConstraint {
    /// Builds the constraint in normal form; `terms` may be in any order and contain repetitions.
    #[allow(
        clippy::new_ret_no_self,
        reason = "a constraint without variables is true or false, which are other literals"
    )]
    pub fn new(
        mut terms: Vec<(Cell, i64)>,
        constant: i64,
        relation: ZeroRelation,
        integer: bool,
    ) -> Result<Literal, TooLarge> {
        terms.sort_unstable_by_key(|t| t.0);
        let mut merged: Vec<(Cell, i64)> = Vec::with_capacity(terms.len());
        for (cell, factor) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == cell => {
                    *sum = sum.checked_add(factor).ok_or(TooLarge)?
                }
                _ => merged.push((cell, factor)),
            }
        }
        merged.retain(|t| t.1 != 0);
        let truth = |holds: bool| Ok(if holds { Literal::True } else { Literal::False });
        if merged.is_empty() {
            return truth(match relation {
                ZeroRelation::Le => constant <= 0,
                ZeroRelation::Lt => constant < 0,
                ZeroRelation::Eq => constant == 0,
                ZeroRelation::Ne => constant != 0,
            });
        }
        let equation = matches!(relation, ZeroRelation::Eq | ZeroRelation::Ne);
        let divisor = merged.iter().fold(0, |g, t| num_integer::gcd(g, t.1.unsigned_abs()));
        let divisor =
            if integer { divisor } else { num_integer::gcd(divisor, constant.unsigned_abs()) };
        let divisor = i64::try_from(divisor).map_err(|_| TooLarge)?;
        let (mut constant, mut relation) = (constant, relation);
        if integer && relation == ZeroRelation::Lt {
            (constant, relation) = (constant.checked_add(1).ok_or(TooLarge)?, ZeroRelation::Le);
        }
        if equation && constant % divisor != 0 {
            return truth(relation == ZeroRelation::Ne);
        }
        let sign = if equation && merged[0].1 < 0 { -1 } else { 1 };
        for t in &mut merged {
            t.1 = (t.1 / divisor).checked_mul(sign).ok_or(TooLarge)?;
        }
        // sum + c <= 0 over integers: round c / divisor up.
        let constant = constant.div_euclid(divisor) + i64::from(constant.rem_euclid(divisor) != 0);
        Ok(Literal::Atom(Atom::Linear(Box::new(LinearConstraint {
            terms: merged,
            constant: constant.checked_mul(sign).ok_or(TooLarge)?,
            relation,
        }))))
    }
    /// Returns the negation.
    pub fn negate(&self, integer: bool) -> Result<Literal, TooLarge> {
        let minus = |n: i64| n.checked_neg().ok_or(TooLarge);
        let relation = match self.relation {
            ZeroRelation::Eq => ZeroRelation::Ne,
            ZeroRelation::Ne => ZeroRelation::Eq,
            ZeroRelation::Le => ZeroRelation::Lt,
            ZeroRelation::Lt => ZeroRelation::Le,
        };
        if matches!(relation, ZeroRelation::Eq | ZeroRelation::Ne) {
            return Ok(Literal::Atom(Atom::Linear(Box::new(LinearConstraint {
                relation,
                ..self.clone()
            }))));
        }
        let terms =
            self.terms.iter().map(|&(c, f)| Ok((c, minus(f)?))).collect::<Result<_, TooLarge>>()?;
        LinearConstraint::new(terms, minus(self.constant)?, relation, integer)
    }
}

/// Renames a set of processes. A new name, one of `0..processes` that is no image, is in the set
/// iff the unnamed processes are.
pub fn map_set(set: u64, from: usize, processes: usize, to: impl Fn(u8) -> u8) -> u64 {
    let mut mapped = if set & OTHER != 0 { OTHER | ((1 << processes) - 1) } else { 0 };
    for p in 0..from {
        let bit = 1 << to(narrow::byte(p));
        if set & (1 << p) == 0 { mapped &= !bit } else { mapped |= bit }
    }
    mapped
}

impl Atom {
    /// Builds `left = right` or `left ≠ right`.
    pub fn equality(left: Cell, right: Cell, equal: bool) -> Literal {
        match left.cmp(&right) {
            std::cmp::Ordering::Equal if equal => Literal::True,
            std::cmp::Ordering::Equal => Literal::False,
            std::cmp::Ordering::Less => Literal::Atom(Atom::Same(left, right, equal)),
            std::cmp::Ordering::Greater => Literal::Atom(Atom::Same(right, left, equal)),
        }
    }
    /// Builds `left < right`, or `left <= right`.
    pub fn order(left: Point, right: Point, strict: bool, fixed: usize) -> Literal {
        match (left, right) {
            (Point::Variable(a), Point::Variable(b)) if a == b => {
                if strict {
                    Literal::False
                } else {
                    Literal::True
                }
            }
            // #1 < #2 < .. < all others.
            (Point::Variable(a), Point::Variable(b)) if usize::from(a.min(b)) < fixed => {
                if a < b {
                    Literal::True
                } else {
                    Literal::False
                }
            }
            (Point::Variable(_), Point::Variable(_)) => {
                Literal::Atom(Atom::Before(left, right, true))
            }
            _ if left == right => {
                if strict {
                    Literal::False
                } else {
                    Literal::True
                }
            }
            _ => Literal::Atom(Atom::Before(left, right, strict)),
        }
    }
    /// Returns the negation of an atom other than [`Atom::Fence`], in a cube of `processes`
    /// processes.
    pub fn negate(&self, signature: &Signature, processes: usize) -> Result<Literal, TooLarge> {
        Ok(match self {
            Atom::In(c, set) => {
                let rest = signature.all_values(signature.sort(*c), processes) & !set;
                if rest == 0 { Literal::False } else { Literal::Atom(Atom::In(*c, rest)) }
            }
            Atom::Same(a, b, equal) => Literal::Atom(Atom::Same(*a, *b, !equal)),
            Atom::Before(a, b, strict) => Atom::order(*b, *a, !strict, signature.fixed),
            Atom::Linear(l) => {
                l.negate(l.terms.iter().all(|t| signature.sort(t.0) == SymbolSort::Integer))?
            }
            Atom::Residues(r) => r.negate(),
            Atom::Fence(..) => Literal::True,
        })
    }
    /// Replaces each process `p` of `from` by `to(p)` of `processes`; `to` is injective.
    pub fn map(
        &self,
        signature: &Signature,
        from: usize,
        processes: usize,
        to: impl Fn(u8) -> u8 + Copy,
    ) -> Literal {
        match self {
            Atom::In(c, set) => {
                let set = if signature.sort(*c) == SymbolSort::Process {
                    map_set(*set, from, processes, to)
                } else {
                    *set
                };
                Literal::Atom(Atom::In(c.map(to), set))
            }
            Atom::Same(a, b, equal) => Atom::equality(a.map(to), b.map(to), *equal),
            Atom::Before(a, b, strict) => {
                Atom::order(a.map(to), b.map(to), *strict, signature.fixed)
            }
            Atom::Linear(l) => {
                let mut l = l.clone();
                for t in &mut l.terms {
                    t.0 = t.0.map(to);
                }
                l.terms.sort_unstable_by_key(|t| t.0);
                if matches!(l.relation, ZeroRelation::Eq | ZeroRelation::Ne) && l.terms[0].1 < 0 {
                    for t in &mut l.terms {
                        t.1 = -t.1;
                    }
                    l.constant = -l.constant;
                }
                Literal::Atom(Atom::Linear(l))
            }
            Atom::Residues(r) => r.map(&|c| c.map(to)),
            Atom::Fence(p, stage) => Literal::Atom(Atom::Fence(to(*p), *stage)),
        }
    }
    /// Returns the cells that it mentions.
    pub fn cells(&self) -> Vec<Cell> {
        match self {
            Atom::In(c, _) => vec![*c],
            Atom::Same(a, b, _) => vec![*a, *b],
            Atom::Before(a, b, _) => [a, b]
                .into_iter()
                .filter_map(|p| if let Point::Cell(c) = p { Some(*c) } else { None })
                .collect(),
            Atom::Linear(l) => l.terms.iter().map(|t| t.0).collect(),
            Atom::Residues(r) => r.cells().collect(),
            Atom::Fence(..) => Vec::new(),
        }
    }
    /// Returns the set of processes that it mentions, in a cube of `count` processes.
    pub fn processes(&self, signature: &Signature, count: usize) -> u64 {
        let mut found = 0;
        for c in self.cells() {
            for p in c.processes() {
                found |= 1 << p;
            }
        }
        match self {
            // A set that distinguishes a process from the unnamed ones mentions it.
            Atom::In(c, set) if signature.sort(*c) == SymbolSort::Process => {
                let named = (1 << count) - 1;
                found |= if set & OTHER == 0 { set & named } else { !set & named };
            }
            Atom::Before(a, b, _) => {
                for p in [a, b] {
                    if let Point::Variable(v) = p {
                        found |= 1 << v;
                    }
                }
            }
            Atom::Fence(p, _) => found |= 1 << p,
            _ => {}
        }
        found
    }
}
