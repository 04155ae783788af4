//! Typed systems: the content of a `.cub` file with names resolved and guards in disjunctive normal
//! form. Plain data, for the prover, the explicit machine and the printer.
//!
//! Representation of each construct:
//!
//! - `type t = A | B`, `type t`: a [`TypeDecl`]; `proc`, `bool`, `int`, `real` are the first four
//!   ([`TypeId::PROC`] and following). A type without constructors is *abstract*: an unbounded set
//!   with equality only.
//! - `True`, `False`, constructors: [`ConsId`] in [`System::constructors`]; `False` is 0, `True` is
//!   1.
//! - `var X : t`, `array A[proc] : t`, `array M[proc, proc] : t`: a [`Symbol`] of
//!   [`SymbolKind::Plain`] and arity 0, 1, 2 (or more).
//! - `const N : int`, `const K[proc] : t`: a [`Symbol`] of [`SymbolKind::Constant`], which is never
//!   updated.
//! - `weak var X`, `weak array A[proc]`: a [`Symbol`] of [`SymbolKind::Weak`], that is, memory.
//! - `z` of `init (z)`, `unsafe (z)`, `transition t (z)`, `forall_other z`, `A[z] := case`:
//!   [`Proc::Var`], numbered in its scope, parameters first, so `params[i]` is `Var(i)`. Bound
//!   variables follow; their numbers are stored with the binder.
//! - `#2`: [`Proc::Fixed`]`(2)`, the second process, a constant, numbered from 1.
//! - `p @ X`, `[p]X`, `read(p, X)`: a [`CellAccess`] of a weak symbol with `by: Some(p)`. In a
//!   transition with an actor `[p]` (or under `unsafe` of a system where it is omitted) plain `X`
//!   is the same with the actor. In `init` it is memory itself: `by: None`.
//! - `fence()`, `fence(p)`: [`Atom::Fence`], the buffer of `p` is empty; true under sequential
//!   consistency.
//! - arithmetic: a term of sort `int`, `real`, or of words is always [`Term::Sum`], one of another
//!   sort never.
//! - `word1`, .., `word32`: words of that number of bits ([`TypeId::word`]), the numbers from 0 to
//!   2^bits - 1; a sum is one of integers, and its value the remainder modulo 2^bits.
//! - comparisons of words, `signed(x) < signed(y)`, `mask(x, 15) = 3`: [`Atom::Words`], comparisons
//!   of remainders. A mask becomes one for each of its runs of ones.
//! - `requires { .. }`: [`Transition::guard`], a cube. A transition with a disjunction as its guard
//!   becomes several here, with one name.
//! - `exists_other j. ..`: `j` is an additional parameter of the transition.
//! - `forall_other j. ..`: [`Transition::universal`]: for every process except the declared
//!   parameters, one of the cubes holds.
//! - `X := t`, `A[p, q] := t`: [`Update::Assign`].
//! - `X := .`, `X := ?`: [`AssignedValue::Any`], any value of the type.
//! - `A[j] := case | c1 : t1 | _ : t2`, `X := case ..`: [`Update::Cases`]: in each cell the first
//!   case with a true condition; a cell without a matching case keeps its value.
//! - `p @ X := t`, `X := t` in a transition of actor `[p]`: an update of a weak symbol by
//!   [`Transition::actor`].
//! - `invariant (z) { c }`: [`System::invariants`]: the *cube* `c` for distinct processes is
//!   *assumed* never to hold; states in which it does are not states of the system.
//! - `unsafe (z) { c }`: [`System::unsafes`]: the cube for distinct processes; a disjunction
//!   becomes several entries.
//! - `predicate p(x) { .. }`: expanded where it is used.
//! - `number_procs 3`: [`System::processes`].
//!
//! Semantics:
//!
//! - Parameters of a transition, of `unsafe` and of `invariant` denote *distinct* processes. `init`
//!   holds for all choices of processes, including equal ones. A symbol that `init` does not
//!   constrain has any value.
//! - A transition evaluates its guard, all conditions and all right-hand sides in the state before
//!   it, then performs all updates simultaneously.
//! - All reads and writes of weak symbols in one transition are by one process, its actor. All its
//!   writes go to the buffer as *one* entry. A transition that reads and writes memory is *locked*
//!   ([`Transition::locked`]): its guard holds only if the actor's buffer is empty, and its writes
//!   go to memory. The other weak step flushes the oldest entry of one process's buffer.
//!   (x86-tso-programs, algorithm 1.)
//! - Under sequential consistency weak symbols are plain ones.
//! - Process identifiers are totally ordered; `<` on them is that order, and `#1 < #2 < ..` come
//!   first in it.
//!
//! All constructs refer to positions in the file by [`Place`], which comparisons ignore. Invariant:
//! indices are in range and sorts match ([`fn@crate::check`] builds systems, so other code need not
//! check again).

use mu_base::id_types;
use mu_base::source::Place;
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use std::sync::LazyLock;

id_types! {
    /// A type: an index into [`System::types`].
    pub TypeId,
    /// A constructor of an enumeration: an index into [`System::constructors`].
    pub ConsId,
    /// A variable, array or constant: an index into [`System::symbols`].
    pub SymbolId,
}

impl TypeId {
    /// Processes.
    pub const PROC: TypeId = TypeId::of(0);
    /// Booleans: constructors [`ConsId::FALSE`] and [`ConsId::TRUE`].
    pub const BOOL: TypeId = TypeId::of(1);
    /// Integers.
    pub const INT: TypeId = TypeId::of(2);
    /// Real numbers (those in systems are rational).
    pub const REAL: TypeId = TypeId::of(3);
    /// Returns the type of words of a number of bits, from 1 to [`MAX_BITS`].
    pub fn word(bits: u32) -> TypeId {
        TypeId::of(FIRST_WORD + bits)
    }
    /// Returns the number of bits of a type of words; `None` for other types.
    pub fn bits(self) -> Option<u32> {
        self.number().checked_sub(FIRST_WORD).filter(|bits| (1..=MAX_BITS).contains(bits))
    }
    /// True if its terms are sums.
    pub fn is_numeric(self) -> bool {
        self == TypeId::INT || self == TypeId::REAL || self.bits().is_some()
    }
}

/// Largest number of bits of a word.
pub const MAX_BITS: u32 = 32;
/// The types of words have the numbers above this one, beyond those of the file.
const FIRST_WORD: u32 = 1 << 30;

/// The declarations of the types of words; a file need not declare them.
static WORDS: LazyLock<Vec<TypeDecl>> = LazyLock::new(|| {
    let decl = |bits| TypeDecl { name: format!("word{bits}"), constructors: Vec::new() };
    (0..=MAX_BITS).map(decl).collect()
});

/// Returns the types of words with their names.
pub fn word_types() -> impl Iterator<Item = (&'static str, TypeId)> {
    (1..=MAX_BITS).map(|bits| (WORDS[bits as usize].name.as_str(), TypeId::word(bits)))
}

/// Returns the remainder of a number modulo 2^bits, from 0 on.
pub fn residue(value: &BigRational, bits: u32) -> BigRational {
    let modulus = BigInt::from(1u64 << bits);
    BigRational::from_integer(value.to_integer().mod_floor(&modulus))
}

impl ConsId {
    /// `False`.
    pub const FALSE: ConsId = ConsId::of(0);
    /// `True`.
    pub const TRUE: ConsId = ConsId::of(1);
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDecl {
    /// Its name.
    pub name: String,
    /// Its constructors, in the order written; empty for `proc`, `int`, `real` and abstract types.
    pub constructors: Vec<ConsId>,
}

/// A constructor of an enumeration. The constructors of a type are distinct and are its only
/// values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constructor {
    /// Its name.
    pub name: String,
    /// The type that it belongs to.
    pub of: TypeId,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A constant.
    Constant,
    /// A plain symbol: writes are visible to all processes immediately.
    Plain,
    /// A symbol in memory: writes go through the buffer of the writing process.
    Weak,
}

/// A variable, array or constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// Number of processes that index it: 0 for a variable.
    pub arity: usize,
    /// The type of its values.
    pub sort: TypeId,
    /// Its position.
    pub place: Place,
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proc {
    /// A process variable of the scope.
    Var(u32),
    /// The constant `#n`, from 1.
    Fixed(u32),
}

/// The value of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellAccess {
    /// The symbol.
    pub symbol: SymbolId,
    /// Its indices.
    pub args: Vec<Proc>,
    /// For a weak symbol, the reading process: its buffer first, then memory. `None` for memory
    /// itself (in `init`), and for all other symbols.
    pub by: Option<Proc>,
}

/// A linear sum: `constant + c1 * cell1 + c2 * cell2 + ..`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    /// The constant part.
    pub constant: BigRational,
    /// The cells with their factors, in ascending order, without duplicates and zeros.
    pub terms: Vec<(CellAccess, BigRational)>,
}

/// A term. Its sort follows from the context or from [`System::sort_of`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A process, of sort `proc`.
    Proc(Proc),
    /// A value of an enumeration.
    Cons(ConsId),
    /// A cell of a non-numeric sort.
    Cell(CellAccess),
    /// A number.
    Sum(Sum),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComparisonOp {
    /// Equal.
    Eq,
    /// Different.
    Neq,
    /// Less, for numbers and processes.
    Lt,
    /// Less or equal, for numbers and processes.
    Le,
}

/// An atom. There is no negation, because every comparison has its opposite.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// Never holds. (Atoms that always hold are removed.)
    False,
    /// `left op right`, both of one sort. Comparisons with variables are not evaluated, even if
    /// they can never hold.
    Compare(Term, ComparisonOp, Term),
    /// `left op right` of remainders modulo 2^bits, as numbers from 0 on.
    Words(Box<Words>),
    /// The buffer of the process is empty.
    Fence(Proc),
}

/// A comparison of the remainders of two sums of words modulo 2^bits, where no cell has fewer bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// The left sum.
    pub left: Sum,
    /// The comparison of the remainders, as numbers from 0 on.
    pub op: ComparisonOp,
    /// The right sum.
    pub right: Sum,
    /// Number of bits of the remainders.
    pub bits: u32,
}

/// A conjunction; the empty one always holds.
pub type Cube = Vec<Atom>;

/// The cube of `unsafe` or `invariant`, for distinct processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The names of its process variables `Var(0)`, `Var(1)`, ..
    pub params: Vec<String>,
    /// The conditions.
    pub cube: Cube,
    /// Its position.
    pub place: Place,
}

/// The initial states: for all choices of processes for `params`, including equal ones, one of the
/// cubes holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// The names of its process variables.
    pub params: Vec<String>,
    /// The cubes, one of which holds; usually there is one.
    pub dnf: Vec<Cube>,
    /// Its position.
    pub place: Place,
}

/// `forall_other j. (cube || cube || ..)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Universal {
    /// The name of the bound variable.
    pub name: String,
    /// Its number.
    pub var: u32,
    /// The cubes, one of which holds for every process except the declared parameters.
    pub dnf: Vec<Cube>,
}

/// The stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignedValue {
    /// A term's value before the transition.
    Term(Term),
    /// Any value of the type.
    Any,
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateCase {
    /// The condition; empty for `_`. A disjunction becomes several cases with one value.
    pub condition: Cube,
    /// The stored value.
    pub value: AssignedValue,
}

/// An update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// The update of one cell.
    Assign {
        /// The symbol.
        symbol: SymbolId,
        /// Its indices.
        args: Vec<Proc>,
        /// The stored value.
        value: AssignedValue,
        /// Its position.
        place: Place,
    },
    /// The update of all cells: the first matching case decides; without one the cell keeps its
    /// value.
    Cases {
        /// The symbol.
        symbol: SymbolId,
        /// Number and name of the bound variable of each index: in the cases, `Var(number)` is any
        /// process.
        bound: Vec<(u32, String)>,
        /// The cases, in order.
        cases: Vec<UpdateCase>,
        /// Its position.
        place: Place,
    },
}

/// A transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Its name; not unique, because of `exists_other` and disjunctions (see the module header).
    pub name: String,
    /// The names of its parameters `Var(0)`, .., which are distinct processes.
    pub params: Vec<String>,
    /// Number of declared parameters; the others come from `exists` in the guard. Actions show the
    /// declared ones, and `forall_other` ranges over all processes except these.
    pub declared: usize,
    /// The process that accesses memory, if there is one.
    pub actor: Option<Proc>,
    /// True if it reads and writes memory: it waits for the empty buffer of its actor, and its
    /// writes go to memory directly.
    pub locked: bool,
    /// The guard without its universal parts.
    pub guard: Cube,
    /// The universal parts, all of which must hold.
    pub universal: Vec<Universal>,
    /// The updates, of disjoint cells.
    pub updates: Vec<Update>,
    /// Its position.
    pub place: Place,
}

/// A parameterised system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The types: `proc`, `bool`, `int`, `real`, then those of the file.
    pub types: Vec<TypeDecl>,
    /// The constructors: `False`, `True`, then those of the file.
    pub constructors: Vec<Constructor>,
    /// The variables, arrays and constants.
    pub symbols: Vec<Symbol>,
    /// The value of `number_procs`, if it is given.
    pub processes: Option<u32>,
    /// The largest `n` of a `#n`, 0 if there is none: a lower bound on the number of processes.
    pub fixed: u32,
    /// The initial states.
    pub init: Init,
    /// The assumptions: claims that never hold.
    pub invariants: Vec<Claim>,
    /// The claims that must never hold.
    pub unsafes: Vec<Claim>,
    /// True if the file has an `unsafe`; if no state satisfies it, there is no claim.
    pub has_claim: bool,
    /// The transitions.
    pub transitions: Vec<Transition>,
}

impl System {
    /// Returns a type.
    pub fn type_of(&self, id: TypeId) -> &TypeDecl {
        if let Some(bits) = id.bits() {
            return &WORDS[bits as usize];
        }
        &self.types[id.index()]
    }
    /// Returns a constructor.
    pub fn constructor(&self, id: ConsId) -> &Constructor {
        &self.constructors[id.index()]
    }
    /// Returns a variable, array or constant.
    pub fn symbol(&self, id: SymbolId) -> &Symbol {
        &self.symbols[id.index()]
    }
    /// Returns the sort of a term. A constant sum has the sort `real` here; compare with the other
    /// side if that matters.
    pub fn sort_of(&self, term: &Term) -> TypeId {
        match term {
            Term::Proc(_) => TypeId::PROC,
            Term::Cons(c) => self.constructor(*c).of,
            Term::Cell(a) => self.symbol(a.symbol).sort,
            Term::Sum(s) => {
                s.terms.first().map_or(TypeId::REAL, |(a, _)| self.symbol(a.symbol).sort)
            }
        }
    }
    /// True if any symbol is in memory; otherwise the memory models coincide.
    pub fn has_memory(&self) -> bool {
        self.symbols.iter().any(|s| s.kind == SymbolKind::Weak)
    }
}

impl Sum {
    /// Creates a constant sum.
    pub fn constant(constant: BigRational) -> Sum {
        Sum { constant, terms: Vec::new() }
    }
    /// Returns the cell, if the sum consists of it alone.
    pub fn as_cell(&self) -> Option<&CellAccess> {
        use num_traits::{One, Zero};
        match self.terms.as_slice() {
            [(cell, factor)] if factor.is_one() && self.constant.is_zero() => Some(cell),
            _ => None,
        }
    }
    /// Returns the number, if there are no cells.
    pub fn as_constant(&self) -> Option<&BigRational> {
        self.terms.is_empty().then_some(&self.constant)
    }
}

impl Update {
    /// Returns the symbol of the updated cells.
    pub fn symbol(&self) -> SymbolId {
        match self {
            Update::Assign { symbol, .. } | Update::Cases { symbol, .. } => *symbol,
        }
    }
    /// True if it may store any value of the type.
    pub fn stores_any(&self) -> bool {
        match self {
            Update::Assign { value, .. } => *value == AssignedValue::Any,
            Update::Cases { cases, .. } => cases.iter().any(|c| c.value == AssignedValue::Any),
        }
    }
}

impl Sum {
    /// Applies a map to all processes; cells that become equal are combined.
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        use num_traits::Zero;
        let mut terms: std::collections::BTreeMap<CellAccess, BigRational> =
            std::collections::BTreeMap::new();
        for (mut cell, factor) in std::mem::take(&mut self.terms) {
            cell.map_procs(f);
            *terms.entry(cell).or_insert_with(BigRational::zero) += factor;
        }
        self.terms = terms.into_iter().filter(|(_, factor)| !factor.is_zero()).collect();
    }
}

impl CellAccess {
    /// Applies a map to all processes.
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        for p in self.args.iter_mut().chain(&mut self.by) {
            *p = f(*p);
        }
    }
}

impl Term {
    /// Applies a map to all processes.
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        match self {
            Term::Proc(p) => *p = f(*p),
            Term::Cons(_) => {}
            Term::Cell(a) => a.map_procs(f),
            Term::Sum(s) => s.map_procs(f),
        }
    }
}

impl Atom {
    /// Applies a map to all processes.
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        match self {
            Atom::False => {}
            Atom::Compare(a, _, b) => {
                a.map_procs(f);
                b.map_procs(f);
            }
            Atom::Words(w) => {
                w.left.map_procs(f);
                w.right.map_procs(f);
            }
            Atom::Fence(p) => *p = f(*p),
        }
    }
}

impl Universal {
    /// Applies a map to all processes, including the bound one (which must stay a variable).
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        if let Proc::Var(v) = f(Proc::Var(self.var)) {
            self.var = v;
        }
        self.dnf.iter_mut().flatten().for_each(|a| a.map_procs(f));
    }
}

impl AssignedValue {
    /// Applies a map to all processes.
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        if let AssignedValue::Term(t) = self {
            t.map_procs(f);
        }
    }
}

impl Update {
    /// Applies a map to all processes, including the bound ones (which must stay variables).
    pub fn map_procs(&mut self, f: &mut impl FnMut(Proc) -> Proc) {
        match self {
            Update::Assign { args, value, .. } => {
                args.iter_mut().for_each(|p| *p = f(*p));
                value.map_procs(f);
            }
            Update::Cases { bound, cases, .. } => {
                for (number, _) in bound {
                    if let Proc::Var(v) = f(Proc::Var(*number)) {
                        *number = v;
                    }
                }
                for case in cases {
                    case.condition.iter_mut().for_each(|a| a.map_procs(f));
                    case.value.map_procs(f);
                }
            }
        }
    }
}
