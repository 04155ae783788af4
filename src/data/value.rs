//! Values: normal forms of data terms as the engine holds them, local to a thread.
//!
//! A value is sixteen bytes: small integers, Booleans and constants are inline, everything else is
//! a shared node. Numbers of all sorts have one representation (a machine integer if it fits, else
//! a big integer, else a reduced fraction), lists are shared cells, finite sets and bags are sorted
//! arrays, functions are closures, operations, or finite tables over one of these. A term that no
//! rule fits is a node of its operation; during solving a value may also contain unknowns.
//!
//! Invariants: every node knows whether an unknown occurs in it ([`Value::is_open`]) and whether it
//! is built from free constructors and literals only ([`Value::is_data`]); two *data* values are
//! equal as terms exactly if they are equal in the data type, so equality, hashing and order are
//! structural there. The order is total and the same in every thread. Comparing, hashing and
//! dropping use constant machine stack on long lists and grow the stack on deep terms.
//!
//! Terms may share their parts so much that they would not fit as trees (Van den Brand, Klint:
//! "ATerms for manipulation and exchange of structured data", 2007, shares all; here sharing is
//! what evaluation leaves). So a node keeps its term's hash, and a comparison looks at a pair of
//! shared nodes once: both cost no more than the nodes that there are.

use super::expr::{Binder, DIGESTS, Expr};
use ahash::AHashSet;
use mu_base::ids::{OpId, SortId, VarId};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use std::cell::{Cell as Slot, RefCell};
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// What is known of a node: bit 0, an unknown occurs; bit 1, it is no pure data.
pub type Flags = u8;
/// An unknown occurs.
pub const OPEN: Flags = 1;
/// Something occurs that is no literal and no free constructor: structural difference is no
/// difference.
pub const IMPURE: Flags = 2;

/// A normal form. Cloning is cheap.
#[derive(Clone)]
pub enum Value {
    /// `true`, `false`.
    Bool(bool),
    /// An integer that fits.
    Int(i64),
    /// A constant that is a free constructor.
    Con(OpId),
    /// Any other operation without arguments: an undefined constant, an operation as a function.
    Sym(OpId),
    /// The empty list, with its sort.
    Nil(SortId),
    /// An unknown of the engine that made it.
    Unknown(u32),
    /// An operation on one argument.
    App1(Rc<App<[Value; 1]>>),
    /// An operation on two arguments.
    App2(Rc<App<[Value; 2]>>),
    /// An operation on three arguments.
    App3(Rc<App<[Value; 3]>>),
    /// An operation on more arguments (those of all applications, if curried).
    AppN(Rc<App<Box<[Value]>>>),
    /// A list cell.
    Cons(Rc<Cell>),
    /// Anything else.
    Rich(Rc<RichNode>),
}

/// An operation applied to arguments: a constructor term or one that no rule fits.
pub struct App<A: AsMut<[Value]>> {
    pub(crate) op: OpId,
    /// [`Flags`] in the low bits; above them a hash of the whole term, 0 as long as nobody asked
    /// for it.
    notes: Slot<u32>,
    /// Its number in the table that its engine shares with others, 0 as long as nobody asked for
    /// it.
    pub(crate) term: Slot<u32>,
    pub(crate) args: A,
}

/// Bits of [`App::notes`] that are flags.
const FLAG_BITS: u32 = 2;

impl<A: AsMut<[Value]> + AsRef<[Value]>> App<A> {
    #[inline]
    fn new(op: OpId, flags: Flags, args: A) -> Self {
        App { op, notes: Slot::new(u32::from(flags)), term: Slot::new(0), args }
    }
    #[inline]
    fn flags(&self) -> Flags {
        self.notes.get() as Flags & ((1 << FLAG_BITS) - 1)
    }
    /// A hash of the term, computed once. Terms that share their parts may be far larger than what
    /// holds them: each part is looked at once.
    fn digest(&self) -> u32 {
        match self.notes.get() >> FLAG_BITS {
            0 => {
                let mut state = DIGESTS.build_hasher();
                state.write_u32(self.op.0);
                deep(|| self.args.as_ref().iter().for_each(|a| a.hash(&mut state)));
                let digest = ((state.finish() >> 32) as u32 >> FLAG_BITS).max(1);
                self.notes.set(self.notes.get() | digest << FLAG_BITS);
                digest
            }
            known => known,
        }
    }
    /// Whether they differ as far as is known without a look at their parts.
    fn apart(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|n| n.notes.get() >> FLAG_BITS);
        self.op != other.op || (one != two && one != 0 && two != 0)
    }
}

/// Terms below this depth may be met as often as there are paths to them: then pairs that were
/// compared are remembered.
const REMEMBER_FROM: u32 = 8;

/// Pairs of nodes that were compared.
type Compared = AHashSet<(*const Value, *const Value)>;

/// Whether two terms are equal. What two terms that share their parts have in common is compared
/// once, though not one of their nodes be the same.
fn same(x: &Value, y: &Value, depth: u32, known: &mut Option<Compared>) -> bool {
    let (apart, xs, ys) = match (x, y) {
        (Value::App1(x), Value::App1(y)) => (x.apart(y), &x.args[..], &y.args[..]),
        (Value::App2(x), Value::App2(y)) => (x.apart(y), &x.args[..], &y.args[..]),
        (Value::App3(x), Value::App3(y)) => (x.apart(y), &x.args[..], &y.args[..]),
        (Value::AppN(x), Value::AppN(y)) => (x.apart(y), &x.args[..], &y.args[..]),
        (Value::Cons(_), Value::Cons(_)) => {
            let (mut x, mut y) = (x, y);
            while let (Value::Cons(a), Value::Cons(b)) = (x, y) {
                if Rc::ptr_eq(a, b) {
                    return true;
                }
                if !deep(|| same(&a.head, &b.head, depth + 1, known)) {
                    return false;
                }
                (x, y) = (&a.tail, &b.tail);
            }
            return x == y;
        }
        _ => return x == y,
    };
    if std::ptr::eq(xs, ys) {
        return true;
    }
    if apart || xs.len() != ys.len() {
        return false;
    }
    if depth >= REMEMBER_FROM && !known.get_or_insert_default().insert((xs.as_ptr(), ys.as_ptr())) {
        // Compared before, or being compared: if they differ, that comparison says so.
        return true;
    }
    deep(|| xs.iter().zip(ys).all(|(x, y)| same(x, y, depth + 1, known)))
}

/// A list cell.
pub struct Cell {
    pub(crate) head: Value,
    pub(crate) tail: Value,
    pub(crate) flags: Flags,
    /// As [`App::term`].
    pub(crate) term: Slot<u32>,
}

/// A node of a rarer kind.
pub struct RichNode {
    pub(crate) flags: Flags,
    pub(crate) kind: Rich,
}

/// The rarer kinds.
pub enum Rich {
    /// An integer that does not fit in 64 bits.
    Integer(BigInt),
    /// A number that is no integer.
    Rational(BigRational),
    /// A finite set, its elements ascending; the sort is its own, `FSet(S)` or `Set(S)`.
    Set(SortId, Rc<[Value]>),
    /// A finite bag: elements ascending, each with its positive count.
    Bag(SortId, Rc<[(Value, Value)]>),
    /// A binder with the values of its free variables.
    Closure(Closure),
    /// A function that differs from `base` at the keys (ascending) only; `base` is no table.
    Table(SortId, Value, Rc<[(Value, Value)]>),
    /// A function value that cannot be applied (not an operation), applied.
    Apply(Value, Box<[Value]>),
}

/// A lambda abstraction, comprehension or undecided quantifier, with the values of its free
/// variables.
pub struct Closure {
    pub(crate) lambda: Arc<Lambda>,
    pub(crate) captures: Box<[Value]>,
}

/// The code of a binder.
pub struct Lambda {
    /// Which binder.
    pub binder: Binder,
    /// Bound variables.
    pub vars: Vec<VarId>,
    /// Their sorts.
    pub sorts: Vec<SortId>,
    /// Sort of the whole expression.
    pub sort: SortId,
    /// Free variables, in the order of the captured values.
    pub free: Vec<VarId>,
    /// The body: its frame is the bound variables, then the captured values.
    pub(crate) body: super::engine::code::Node,
    /// The expression.
    pub expr: Expr,
    /// A hash of the expression that is the same in every thread.
    pub(crate) key: u64,
}

impl std::fmt::Debug for Lambda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lambda({:?})", self.expr)
    }
}

impl PartialEq for Lambda {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.expr == other.expr
    }
}

fn union(values: &[Value]) -> Flags {
    values.iter().fold(0, |f, v| f | v.flags())
}

impl Value {
    /// An operation applied; `extra` is [`IMPURE`] unless the operation is a free constructor.
    pub(crate) fn app(op: OpId, extra: Flags, args: Vec<Value>) -> Value {
        let flags = extra | union(&args);
        match <[Value; 1]>::try_from(args) {
            Ok(args) => Value::App1(Rc::new(App::new(op, flags, args))),
            Err(args) => match <[Value; 2]>::try_from(args) {
                Ok(args) => Value::App2(Rc::new(App::new(op, flags, args))),
                Err(args) => match <[Value; 3]>::try_from(args) {
                    Ok(args) => Value::App3(Rc::new(App::new(op, flags, args))),
                    Err(args) => Value::AppN(Rc::new(App::new(op, flags, args.into()))),
                },
            },
        }
    }
    #[inline]
    pub(crate) fn app1(op: OpId, extra: Flags, a: Value) -> Value {
        let flags = extra | a.flags();
        Value::App1(Rc::new(App::new(op, flags, [a])))
    }
    #[inline]
    pub(crate) fn app2(op: OpId, extra: Flags, a: Value, b: Value) -> Value {
        let flags = extra | a.flags() | b.flags();
        Value::App2(Rc::new(App::new(op, flags, [a, b])))
    }
    #[inline]
    pub(crate) fn app3(op: OpId, extra: Flags, a: Value, b: Value, c: Value) -> Value {
        let flags = extra | a.flags() | b.flags() | c.flags();
        Value::App3(Rc::new(App::new(op, flags, [a, b, c])))
    }
    #[inline]
    pub(crate) fn cons(head: Value, tail: Value) -> Value {
        let flags = head.flags() | tail.flags();
        Value::Cons(Rc::new(Cell { head, tail, flags, term: Slot::new(0) }))
    }
    pub(crate) fn rich(kind: Rich) -> Value {
        let flags = match &kind {
            Rich::Integer(_) | Rich::Rational(_) => 0,
            Rich::Set(_, elements) => union(elements),
            Rich::Bag(_, elements) => {
                elements.iter().fold(0, |f, (v, n)| f | v.flags() | n.flags())
            }
            Rich::Closure(c) => IMPURE | union(&c.captures),
            Rich::Table(_, base, entries) => {
                IMPURE
                    | base.flags()
                    | entries.iter().fold(0, |f, (k, v)| f | k.flags() | v.flags())
            }
            Rich::Apply(head, args) => IMPURE | head.flags() | union(args),
        };
        Value::Rich(Rc::new(RichNode { flags, kind }))
    }
    /// An integer, inline if it fits.
    pub fn integer(n: BigInt) -> Value {
        match n.to_i64() {
            Some(n) => Value::Int(n),
            None => Value::rich(Rich::Integer(n)),
        }
    }
    /// A number; an integer if it is one.
    pub fn rational(r: BigRational) -> Value {
        if r.is_integer() { Value::integer(r.to_integer()) } else { Value::rich(Rich::Rational(r)) }
    }
    #[inline]
    pub(crate) fn flags(&self) -> Flags {
        match self {
            Value::Bool(_) | Value::Int(_) | Value::Con(_) | Value::Nil(_) => 0,
            Value::Sym(_) => IMPURE,
            Value::Unknown(_) => OPEN | IMPURE,
            Value::App1(n) => n.flags(),
            Value::App2(n) => n.flags(),
            Value::App3(n) => n.flags(),
            Value::AppN(n) => n.flags(),
            Value::Cons(n) => n.flags,
            Value::Rich(n) => n.flags,
        }
    }
    /// Whether an unknown occurs.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.flags() & OPEN != 0
    }
    /// Where a node that others hold too keeps its arguments.
    pub(crate) fn shared(&self) -> Option<*const Value> {
        let (holders, args) = match self {
            Value::App1(n) => (Rc::strong_count(n), n.args.as_ptr()),
            Value::App2(n) => (Rc::strong_count(n), n.args.as_ptr()),
            Value::App3(n) => (Rc::strong_count(n), n.args.as_ptr()),
            Value::AppN(n) => (Rc::strong_count(n), n.args.as_ptr()),
            Value::Cons(n) => (Rc::strong_count(n), &raw const n.head),
            _ => return None,
        };
        (holders > 1).then_some(args)
    }
    /// Whether it has at most so many parts, shared ones counted as often as they occur. O(`most`).
    pub fn is_within(&self, most: usize) -> bool {
        let (mut pending, mut parts) = (vec![self], 0);
        while let Some(v) = pending.pop() {
            parts += 1;
            if parts + pending.len() > most {
                return false;
            }
            match v {
                Value::Cons(cell) => pending.extend([&cell.head, &cell.tail]),
                Value::Rich(n) => match &n.kind {
                    Rich::Integer(_) | Rich::Rational(_) => {}
                    Rich::Set(_, elements) => pending.extend(elements.iter()),
                    Rich::Bag(_, entries) => {
                        pending.extend(entries.iter().flat_map(|(v, n)| [v, n]))
                    }
                    Rich::Closure(c) => pending.extend(c.captures.iter()),
                    Rich::Table(_, base, entries) => {
                        pending.extend(entries.iter().flat_map(|(k, v)| [k, v]).chain([base]))
                    }
                    Rich::Apply(head, args) => pending.extend(args.iter().chain([head])),
                },
                Value::Bool(_)
                | Value::Int(_)
                | Value::Con(_)
                | Value::Sym(_)
                | Value::Nil(_)
                | Value::Unknown(_) => {}
                Value::App1(n) => pending.extend(&n.args),
                Value::App2(n) => pending.extend(&n.args),
                Value::App3(n) => pending.extend(&n.args),
                Value::AppN(n) => pending.extend(n.args.iter()),
            }
        }
        true
    }
    /// Whether it takes memory besides its own sixteen bytes.
    pub fn is_on_heap(&self) -> bool {
        self.is_built() || matches!(self, Value::Rich(_))
    }
    /// Whether it is a list cell or an operation on arguments.
    pub fn is_built(&self) -> bool {
        matches!(
            self,
            Value::Cons(_) | Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_)
        )
    }
    /// Whether it is built from literals and free constructors only.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.flags() == 0
    }
    /// Whether it is `true`.
    #[inline]
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }
    /// Whether it is `false`.
    #[inline]
    pub fn is_false(&self) -> bool {
        matches!(self, Value::Bool(false))
    }
    /// The operation and its arguments if it is an applied or constant one.
    #[inline]
    pub(crate) fn as_app(&self) -> Option<(OpId, &[Value])> {
        match self {
            Value::Con(op) | Value::Sym(op) => Some((*op, &[])),
            Value::App1(n) => Some((n.op, &n.args)),
            Value::App2(n) => Some((n.op, &n.args)),
            Value::App3(n) => Some((n.op, &n.args)),
            Value::AppN(n) => Some((n.op, &n.args)),
            _ => None,
        }
    }
    /// The operation and its arguments of a value that has them; the caller has ruled out all
    /// others.
    pub(crate) fn application(&self) -> (OpId, &[Value]) {
        self.as_app().expect("the value is an operation, applied or by itself")
    }
    pub(crate) fn as_rich(&self) -> Option<&Rich> {
        match self {
            Value::Rich(n) => Some(&n.kind),
            _ => None,
        }
    }
    pub(crate) fn as_set(&self) -> Option<&Rc<[Value]>> {
        match self.as_rich() {
            Some(Rich::Set(_, elements)) => Some(elements),
            _ => None,
        }
    }
    pub(crate) fn as_bag(&self) -> Option<&Rc<[(Value, Value)]>> {
        match self.as_rich() {
            Some(Rich::Bag(_, elements)) => Some(elements),
            _ => None,
        }
    }
    pub(crate) fn as_closure(&self) -> Option<&Closure> {
        match self.as_rich() {
            Some(Rich::Closure(c)) => Some(c),
            _ => None,
        }
    }
    /// Whether it is a literal number.
    #[inline]
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_))
            || matches!(self.as_rich(), Some(Rich::Integer(_) | Rich::Rational(_)))
    }
    /// The integer, if it is one.
    pub fn to_integer(&self) -> Option<BigInt> {
        match self {
            Value::Int(n) => Some(BigInt::from(*n)),
            _ => match self.as_rich()? {
                Rich::Integer(n) => Some(n.clone()),
                _ => None,
            },
        }
    }
    /// The number, if it is one.
    pub fn to_rational(&self) -> Option<BigRational> {
        match self.as_rich() {
            Some(Rich::Rational(r)) => Some(r.clone()),
            _ => self.to_integer().map(BigRational::from),
        }
    }
    /// -1, 0 or 1 for a number.
    pub(crate) fn sign(&self) -> Option<i32> {
        let of = |o: Ordering| o as i32;
        match self {
            Value::Int(n) => Some(of(n.cmp(&0))),
            _ => match self.as_rich()? {
                Rich::Integer(n) => Some(of(n.cmp(&BigInt::zero()))),
                Rich::Rational(r) => Some(of(r.cmp(&BigRational::zero()))),
                _ => None,
            },
        }
    }
    /// The elements, if it is a list whose end is known. O(n).
    pub(crate) fn list_elements(&self) -> Option<Vec<Value>> {
        let mut out = Vec::new();
        let mut at = self;
        loop {
            match at {
                Value::Nil(_) => return Some(out),
                Value::Cons(cell) => {
                    out.push(cell.head.clone());
                    at = &cell.tail;
                }
                _ => return None,
            }
        }
    }
    fn rank(&self) -> u8 {
        match self {
            Value::Bool(_) => 0,
            Value::Int(_) => 1,
            Value::Nil(_) => 3,
            Value::Cons(_) => 4,
            Value::Con(_)
            | Value::Sym(_)
            | Value::App1(_)
            | Value::App2(_)
            | Value::App3(_)
            | Value::AppN(_) => 2,
            Value::Unknown(_) => 12,
            Value::Rich(n) => match &n.kind {
                Rich::Integer(_) | Rich::Rational(_) => 1,
                Rich::Set(..) => 6,
                Rich::Bag(..) => 7,
                Rich::Table(..) => 9,
                Rich::Closure(_) => 10,
                Rich::Apply(..) => 11,
            },
        }
    }
}

/// The total order of canonical forms: numbers by size, constructors by position and then
/// arguments, lists lexicographically.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (self, other);
        // A loop along lists; the stack grows along everything else.
        loop {
            match (a, b) {
                (Value::Int(x), Value::Int(y)) => return x.cmp(y),
                (Value::Bool(x), Value::Bool(y)) => return x.cmp(y),
                (Value::Con(x), Value::Con(y)) => return x.cmp(y),
                (Value::Unknown(x), Value::Unknown(y)) => return x.cmp(y),
                (Value::Nil(_), Value::Nil(_)) => return Ordering::Equal,
                (Value::Cons(x), Value::Cons(y)) => {
                    if Rc::ptr_eq(x, y) {
                        return Ordering::Equal;
                    }
                    match deep(|| x.head.cmp(&y.head)) {
                        Ordering::Equal => (a, b) = (&x.tail, &y.tail),
                        unequal => return unequal,
                    }
                }
                _ => {
                    return a.rank().cmp(&b.rank()).then_with(|| match (a.as_app(), b.as_app()) {
                        (Some((_, xs)), Some((_, ys)))
                            if std::ptr::eq(xs, ys) && !xs.is_empty() =>
                        {
                            Ordering::Equal
                        }
                        (Some((f, xs)), Some((g, ys))) => {
                            f.cmp(&g).then_with(|| deep(|| xs.cmp(ys)))
                        }
                        _ => compare_rich(a, b),
                    });
                }
            }
        }
    }
}

fn compare_rich(a: &Value, b: &Value) -> Ordering {
    if let (Value::Rich(x), Value::Rich(y)) = (a, b) {
        if Rc::ptr_eq(x, y) {
            return Ordering::Equal;
        }
        return match (&x.kind, &y.kind) {
            (Rich::Integer(m), Rich::Integer(n)) => m.cmp(n),
            (Rich::Set(_, s), Rich::Set(_, t)) => deep(|| s.cmp(t)),
            (Rich::Bag(_, s), Rich::Bag(_, t)) => deep(|| s.cmp(t)),
            (Rich::Closure(f), Rich::Closure(g)) => {
                f.lambda.key.cmp(&g.lambda.key).then_with(|| deep(|| f.captures.cmp(&g.captures)))
            }
            (Rich::Table(_, f, s), Rich::Table(_, g, t)) => {
                deep(|| f.cmp(g).then_with(|| s.cmp(t)))
            }
            (Rich::Apply(f, s), Rich::Apply(g, t)) => deep(|| f.cmp(g).then_with(|| s.cmp(t))),
            _ => a.to_rational().cmp(&b.to_rational()),
        };
    }
    a.to_rational().cmp(&b.to_rational())
}

fn deep<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(64 << 10, 1 << 20, f)
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Int(x), Value::Int(y)) => x == y,
            (Value::Con(x), Value::Con(y)) => x == y,
            (Value::Bool(x), Value::Bool(y)) => x == y,
            (Value::App1(_), Value::App1(_))
            | (Value::App2(_), Value::App2(_))
            | (Value::App3(_), Value::App3(_))
            | (Value::AppN(_), Value::AppN(_))
            | (Value::Cons(_), Value::Cons(_)) => same(self, other, 0, &mut None),
            _ => self.cmp(other) == Ordering::Equal,
        }
    }
}
impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut at = self;
        loop {
            match at {
                Value::Bool(b) => return state.write_u8(*b as u8),
                Value::Int(n) => return state.write_i64(*n),
                Value::Con(op) | Value::Sym(op) => return state.write_u32(op.0),
                Value::Nil(_) => return state.write_u8(2),
                Value::Unknown(u) => return state.write_u32(!u),
                Value::Cons(cell) => {
                    state.write_u8(3);
                    deep(|| cell.head.hash(state));
                    at = &cell.tail;
                }
                Value::Rich(n) => {
                    return deep(|| match &n.kind {
                        Rich::Integer(n) => n.hash(state),
                        Rich::Rational(r) => r.hash(state),
                        Rich::Set(_, elements) => elements.hash(state),
                        Rich::Bag(_, elements) => elements.hash(state),
                        Rich::Closure(c) => {
                            state.write_u64(c.lambda.key);
                            c.captures.hash(state);
                        }
                        Rich::Table(_, base, entries) => {
                            base.hash(state);
                            entries.hash(state);
                        }
                        Rich::Apply(head, args) => {
                            head.hash(state);
                            args.hash(state);
                        }
                    });
                }
                Value::App1(n) => return state.write_u32(n.digest()),
                Value::App2(n) => return state.write_u32(n.digest()),
                Value::App3(n) => return state.write_u32(n.digest()),
                Value::AppN(n) => return state.write_u32(n.digest()),
            }
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Nil(_) => write!(f, "[]"),
            Value::Unknown(u) => write!(f, "?{u}"),
            Value::Cons(c) => write!(f, "{:?} |> {:?}", c.head, c.tail),
            Value::Rich(n) => match &n.kind {
                Rich::Integer(n) => write!(f, "{n}"),
                Rich::Rational(r) => write!(f, "{r}"),
                Rich::Set(_, s) => f.debug_set().entries(s.iter()).finish(),
                Rich::Bag(_, s) => f.debug_map().entries(s.iter().map(|(v, n)| (v, n))).finish(),
                Rich::Closure(c) => write!(f, "closure({:x}, {:?})", c.lambda.key, c.captures),
                Rich::Table(_, base, entries) => write!(f, "{base:?}{entries:?}"),
                Rich::Apply(head, args) => write!(f, "({head:?}){args:?}"),
            },
            Value::Con(_)
            | Value::Sym(_)
            | Value::App1(_)
            | Value::App2(_)
            | Value::App3(_)
            | Value::AppN(_) => {
                let (op, args) = self.application();
                if args.is_empty() {
                    write!(f, "#{}", op.0)
                } else {
                    write!(f, "#{}{args:?}", op.0)
                }
            }
        }
    }
}

// Dropping: natural recursion to a small depth, then a worklist, so that deep values need no
// machine stack.
thread_local! {
    static DROP_DEPTH: Slot<u32> = const { Slot::new(0) };
    static DROP_LATER: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

fn drop_values(values: &mut [Value]) {
    if !values.iter().any(Value::is_on_heap) {
        return;
    }
    // While the thread ends its locals may be gone; plain recursion is all that is left then.
    let _ = DROP_DEPTH.try_with(|depth| {
        let level = depth.get();
        if level >= 64 {
            let _ = DROP_LATER.try_with(|later| {
                later.borrow_mut().extend(
                    values
                        .iter_mut()
                        .filter(|v| v.is_on_heap())
                        .map(|v| std::mem::replace(v, Value::Bool(false))),
                );
            });
            return;
        }
        depth.set(level + 1);
        for v in values.iter_mut() {
            drop(std::mem::replace(v, Value::Bool(false)));
        }
        depth.set(level);
        if level == 0 {
            while let Ok(Some(v)) = DROP_LATER.try_with(|later| later.borrow_mut().pop()) {
                depth.set(1);
                drop(v);
                depth.set(0);
            }
        }
    });
}

impl Drop for Cell {
    fn drop(&mut self) {
        // Along the list first, then the elements by the general way.
        let mut tail = std::mem::replace(&mut self.tail, Value::Bool(false));
        drop_values(std::slice::from_mut(&mut self.head));
        while let Value::Cons(rc) = tail {
            match Rc::try_unwrap(rc) {
                Ok(mut cell) => tail = std::mem::replace(&mut cell.tail, Value::Bool(false)),
                Err(_) => return,
            }
        }
        drop_values(std::slice::from_mut(&mut tail));
    }
}

impl<A: AsMut<[Value]>> Drop for App<A> {
    fn drop(&mut self) {
        drop_values(self.args.as_mut());
    }
}

impl Drop for Closure {
    fn drop(&mut self) {
        drop_values(&mut self.captures);
    }
}
