//! Syntax tree of a `.cub` file with unresolved names. The parser builds it, the printer and
//! `check` read it.
//!
//! The alternative spellings of a memory access (`p @ X`, `[p]X`, `read(p, X)`; `p @ X := t`,
//! `[p]X := t`, `write(p, X, t)`) have one representation. Equality of trees ignores positions.

use mu_base::source::Place;
use num_rational::BigRational;

/// A name with its position, including processes `#n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Its position.
    pub place: Place,
}

/// A term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number, and true if it has a decimal point.
    Number(BigRational, bool, Place),
    /// A variable, constructor, constant or process.
    Name(Name),
    /// A cell of an array.
    Cell(Name, Vec<Name>),
    /// A name or cell as a process reads it: `p @ X`.
    By(Name, Box<Term>),
    /// A sum.
    Add(Box<Term>, Box<Term>),
    /// A difference.
    Sub(Box<Term>, Box<Term>),
    /// A product.
    Mul(Box<Term>, Box<Term>),
    /// A negation.
    Neg(Box<Term>),
    /// `signed(x)`: a word as a signed number; only as a side of a comparison.
    Signed(Box<Term>),
    /// `mask(x, m)`: the bits of a word that are ones of `m`; only as a side of a comparison.
    Mask(Box<Term>, BigRational),
}

/// A comparison sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cmp {
    Eq,
    Neq,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Cmp {
    /// Returns its text.
    pub fn sign(self) -> &'static str {
        match self {
            Cmp::Eq => "=",
            Cmp::Neq => "<>",
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
        }
    }
}

/// The kind of a quantifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantifierKind {
    /// True for `forall`, false for `exists`.
    pub all: bool,
    /// True if it ranges only over processes that are not parameters: `forall_other`,
    /// `exists_other`.
    pub other: bool,
}

/// A formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// `true` or `false`.
    Constant(bool, Place),
    /// A comparison.
    Compare(Term, Cmp, Term),
    /// `fence()` or `fence(p)`.
    Fence(Option<Name>, Place),
    /// A use of a predicate.
    Call(Name, Vec<Term>),
    /// Negation.
    Not(Box<Formula>),
    /// Conjunction of two or more.
    And(Vec<Formula>),
    /// Disjunction of two or more.
    Or(Vec<Formula>),
    /// Implication.
    Implies(Box<Formula>, Box<Formula>),
    /// Equivalence.
    Iff(Box<Formula>, Box<Formula>),
    /// `if c then a else b`.
    If(Box<Formula>, Box<Formula>, Box<Formula>),
    /// A quantifier over distinct processes.
    Quantified(QuantifierKind, Vec<Name>, Box<Formula>),
}

/// The stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A term.
    Term(Term),
    /// `.`
    Any,
}

/// The right-hand side of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    /// `:= t`
    Value(Value),
    /// `:= case | c : t | _ : t`; `None` for `_`.
    Cases(Vec<(Option<Formula>, Value)>),
}

/// An update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The writing process, if it is given: `p @ X := ..`.
    pub by: Option<Name>,
    /// The symbol.
    pub name: Name,
    /// The indices; those of cases are bound here.
    pub args: Vec<Name>,
    /// The stored value.
    pub right: Right,
}

/// The kind of a declared symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclarationKind {
    /// `const`
    Constant,
    /// `var`, `array`
    Plain,
    /// `weak var`, `weak array`
    Weak,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `number_procs n`
    Processes(u32, Place),
    /// `type t = A | B`; a type without constructors is abstract.
    Type(Name, Vec<Name>),
    /// `var`, `array`, `const`
    Symbol {
        /// The kind.
        declared: DeclarationKind,
        /// Its name.
        name: Name,
        /// The types of the indices; empty for `var`.
        indices: Vec<Name>,
        /// The type of its values.
        sort: Name,
    },
    /// `predicate p (x, y) { e }`
    Predicate(Name, Vec<Name>, Formula),
    /// `init (x) { e }`
    Init(Vec<Name>, Formula, Place),
    /// `invariant (x) { e }`
    Invariant(Vec<Name>, Formula, Place),
    /// `unsafe (x) { e }`
    Unsafe(Vec<Name>, Formula, Place),
    /// `transition t ([p] q) requires { e } { updates }`
    Transition {
        /// Its name.
        name: Name,
        /// Its parameters, each with true if it is in brackets.
        params: Vec<(Name, bool)>,
        /// Its guard.
        requires: Option<Formula>,
        /// Its updates.
        updates: Vec<Update>,
    },
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its declarations, in order.
    pub items: Vec<Item>,
    /// The end of the text, for errors about a missing declaration.
    pub end: Place,
}

impl Term {
    /// Returns a position in it.
    pub fn place(&self) -> Place {
        match self {
            Term::Number(_, _, place) => *place,
            Term::Name(name) | Term::Cell(name, _) => name.place,
            Term::By(name, of) => Place(name.place.0.to(of.place().0)),
            Term::Add(a, b) | Term::Sub(a, b) | Term::Mul(a, b) => {
                Place(a.place().0.to(b.place().0))
            }
            Term::Neg(a) | Term::Signed(a) | Term::Mask(a, _) => a.place(),
        }
    }
}

impl Formula {
    /// Returns a position in it.
    pub fn place(&self) -> Place {
        match self {
            Formula::Constant(_, place) | Formula::Fence(_, place) => *place,
            Formula::Compare(a, _, b) => Place(a.place().0.to(b.place().0)),
            Formula::Call(name, _) => name.place,
            Formula::Not(a) => a.place(),
            Formula::And(all) | Formula::Or(all) => match (all.first(), all.last()) {
                (Some(a), Some(b)) => Place(a.place().0.to(b.place().0)),
                _ => Place::default(),
            },
            Formula::Implies(a, b) | Formula::Iff(a, b) => Place(a.place().0.to(b.place().0)),
            Formula::If(a, _, b) => Place(a.place().0.to(b.place().0)),
            Formula::Quantified(_, names, body) => {
                names.first().map_or(body.place(), |n| Place(n.place.0.to(body.place().0)))
            }
        }
    }
}
