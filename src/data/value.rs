//! Values: the engine's normal forms of data terms, local to a thread.
//!
//! A value is sixteen bytes: small integers, Booleans and constants are inline, everything else is
//! a shared node. Numbers of all sorts have one representation: a machine integer if possible, else
//! a big integer, else a reduced fraction. Lists are shared cells; finite sets and bags are sorted
//! arrays; functions are closures, operations, or finite tables over one of these. A term that no
//! rule matches is a node of its operation; during solving a value may also contain unknowns.
//!
//! Invariants: every node has flags for the occurrence of unknowns ([`Value::is_open`]) and for
//! terms of free constructors and literals only ([`Value::is_data`]); two *data* values are equal
//! as terms exactly if they are equal in the data type, so equality, hashing and order are
//! structural there. The order is total and the same in every thread. Comparing, hashing and
//! dropping use constant machine stack on long lists and grow the stack on deep terms.
//!
//! Terms may share their parts so much that their trees would not fit into memory (Van den Brand,
//! Klint: "ATerms for manipulation and exchange of structured data", 2007, has maximal sharing;
//! here sharing results from evaluation). So a node caches its term's hash, and a comparison
//! inspects each pair of shared nodes once: both cost at most the number of nodes.

use super::expr::{Binder, DIGESTS, Expr};
use ahash::AHashSet;
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::narrow;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use std::cell::{Cell as Slot, RefCell};
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// Properties of a node: bit 0, an unknown occurs; bit 1, it is not pure data.
pub type Flags = u8;
/// An unknown occurs.
pub const OPEN: Flags = 1;
/// Some subterm is neither a literal nor a free constructor: structurally different terms may be
/// equal.
pub const IMPURE: Flags = 2;

/// Normal form. Cloning is cheap.
#[derive(Clone)]
pub enum Value {
    /// `true`, `false`.
    Bool(bool),
    /// An integer in 64 bits.
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

/// Operation applied to arguments: a constructor term or one that no rule matches.
pub struct App<A: AsMut<[Value]>> {
    pub(crate) op: OpId,
    /// [`Flags`] in the low bits; above them a cached hash of the whole term, 0 if not computed
    /// yet.
    notes: Slot<u32>,
    /// Cached number in the table that the engine shares with others, 0 if not computed yet.
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
    /// Returns a hash of the term, computed once. A shared term may be far larger as a tree than in
    /// memory: each node is visited once.
    fn digest(&self) -> u32 {
        match self.notes.get() >> FLAG_BITS {
            0 => {
                let mut state = DIGESTS.build_hasher();
                state.write_u32(self.op.number());
                deep(|| self.args.as_ref().iter().for_each(|a| a.hash(&mut state)));
                let digest = (narrow::high(state.finish()) >> FLAG_BITS).max(1);
                self.notes.set(self.notes.get() | digest << FLAG_BITS);
                digest
            }
            known => known,
        }
    }
    /// True if operator or cached hash already proves inequality.
    fn surely_differs(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|n| n.notes.get() >> FLAG_BITS);
        self.op != other.op || (one != two && one != 0 && two != 0)
    }
}

/// Depth below which compared pairs are recorded, since terms there may be reached on many paths.
const REMEMBER_FROM: u32 = 8;

/// Pairs of compared nodes.
type Compared = AHashSet<(*const Value, *const Value)>;

/// True if two terms are equal. Common shared parts are compared once, even if the terms share no
/// node with each other.
fn equals(x: &Value, y: &Value, depth: u32, known: &mut Option<Compared>) -> bool {
    let (differs, xs, ys) = match (x, y) {
        (Value::App1(x), Value::App1(y)) => (x.surely_differs(y), &x.args[..], &y.args[..]),
        (Value::App2(x), Value::App2(y)) => (x.surely_differs(y), &x.args[..], &y.args[..]),
        (Value::App3(x), Value::App3(y)) => (x.surely_differs(y), &x.args[..], &y.args[..]),
        (Value::AppN(x), Value::AppN(y)) => (x.surely_differs(y), &x.args[..], &y.args[..]),
        (Value::Cons(_), Value::Cons(_)) => {
            let (mut x, mut y) = (x, y);
            while let (Value::Cons(a), Value::Cons(b)) = (x, y) {
                if Rc::ptr_eq(a, b) {
                    return true;
                }
                if !deep(|| equals(&a.head, &b.head, depth + 1, known)) {
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
    if differs || xs.len() != ys.len() {
        return false;
    }
    if depth >= REMEMBER_FROM && !known.get_or_insert_default().insert((xs.as_ptr(), ys.as_ptr())) {
        // Compared before, or being compared: if they differ, that comparison returns false.
        return true;
    }
    deep(|| xs.iter().zip(ys).all(|(x, y)| equals(x, y, depth + 1, known)))
}

/// A list cell.
pub struct Cell {
    pub(crate) head: Value,
    pub(crate) tail: Value,
    pub(crate) flags: Flags,
    /// As [`App::term`].
    pub(crate) term: Slot<u32>,
}

/// Node of a rarer kind.
pub struct RichNode {
    pub(crate) flags: Flags,
    pub(crate) kind: Rich,
}

/// Rarer kinds of nodes.
pub enum Rich {
    /// An integer of more than 64 bits.
    Integer(BigInt),
    /// A number that is not an integer.
    Rational(BigRational),
    /// A finite set, its elements ascending; the sort is its own, `FSet(S)` or `Set(S)`.
    Set(SortId, Rc<[Value]>),
    /// A finite bag: elements ascending, each with its positive count.
    Bag(SortId, Rc<[(Value, Value)]>),
    /// A binder with the values of its free variables.
    Closure(Closure),
    /// A function that differs from `base` only at the keys (ascending); `base` is not a table.
    Table(SortId, Value, Rc<[(Value, Value)]>),
    /// A function value that cannot be applied (not an operation), applied.
    Apply(Value, Box<[Value]>),
}

/// Lambda abstraction, comprehension or undecided quantifier, with the values of its free
/// variables.
pub struct Closure {
    pub(crate) lambda: Arc<Lambda>,
    pub(crate) captures: Box<[Value]>,
}

/// Compiled binder.
pub struct Lambda {
    /// Kind of binder.
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
    pub(crate) body: super::engine::code::CodeNode,
    /// The expression.
    pub expr: Expr,
    /// A hash of the shape of the expression, the same in every thread: equal for binders that
    /// differ in names of variables only.
    pub(crate) key: u64,
}

impl std::fmt::Debug for Lambda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lambda({:?})", self.expr)
    }
}

impl PartialEq for Lambda {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

fn union(values: &[Value]) -> Flags {
    values.iter().fold(0, |f, v| f | v.flags())
}

impl Value {
    /// Returns the application of an operation; `extra` is [`IMPURE`] unless the operation is a
    /// free constructor.
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
    /// Returns an integer value, inline if it has at most 64 bits.
    pub fn integer(n: BigInt) -> Value {
        match n.to_i64() {
            Some(n) => Value::Int(n),
            None => Value::rich(Rich::Integer(n)),
        }
    }
    /// Returns a number value; an integer value if it is one.
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
    /// True if an unknown occurs.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.flags() & OPEN != 0
    }
    /// Returns the address of the arguments, if the node has several holders.
    pub(crate) fn shared_address(&self) -> Option<*const Value> {
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
    /// Appends the values that this one is built of, in any order.
    pub(crate) fn push_parts<'v>(&'v self, to: &mut Vec<&'v Value>) {
        match self {
            Value::Cons(cell) => to.extend([&cell.head, &cell.tail]),
            Value::Rich(n) => match &n.kind {
                Rich::Integer(_) | Rich::Rational(_) => {}
                Rich::Set(_, elements) => to.extend(elements.iter()),
                Rich::Bag(_, entries) => to.extend(entries.iter().flat_map(|(v, n)| [v, n])),
                Rich::Closure(c) => to.extend(c.captures.iter()),
                Rich::Table(_, base, entries) => {
                    to.extend(entries.iter().flat_map(|(k, v)| [k, v]).chain([base]))
                }
                Rich::Apply(head, args) => to.extend(args.iter().chain([head])),
            },
            Value::Bool(_)
            | Value::Int(_)
            | Value::Con(_)
            | Value::Sym(_)
            | Value::Nil(_)
            | Value::Unknown(_) => {}
            Value::App1(n) => to.extend(&n.args),
            Value::App2(n) => to.extend(&n.args),
            Value::App3(n) => to.extend(&n.args),
            Value::AppN(n) => to.extend(n.args.iter()),
        }
    }
    /// True if it has at most `most` parts, counting every occurrence of shared ones. O(`most`).
    pub fn is_within(&self, most: usize) -> bool {
        let (mut pending, mut parts) = (vec![self], 0);
        while let Some(v) = pending.pop() {
            parts += 1;
            if parts + pending.len() > most {
                return false;
            }
            v.push_parts(&mut pending);
        }
        true
    }
    /// True if it takes memory beyond its own sixteen bytes.
    pub fn is_on_heap(&self) -> bool {
        self.is_built() || matches!(self, Value::Rich(_))
    }
    /// True if it is a list cell or an operation on arguments.
    pub fn is_built(&self) -> bool {
        matches!(
            self,
            Value::Cons(_) | Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_)
        )
    }
    /// True if it consists of literals and free constructors only.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.flags() == 0
    }
    /// Calls `see` with each unknown that occurs.
    pub(crate) fn each_unknown(&self, see: &mut dyn FnMut(u32)) {
        if !self.is_open() {
            return;
        }
        let mut pending = vec![self];
        while let Some(v) = pending.pop() {
            match v {
                _ if !v.is_open() => {}
                Value::Unknown(u) => see(*u),
                _ => v.push_parts(&mut pending),
            }
        }
    }
    /// True if it is `true`.
    #[inline]
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }
    /// True if it is `false`.
    #[inline]
    pub fn is_false(&self) -> bool {
        matches!(self, Value::Bool(false))
    }
    /// Returns the operation and its arguments, if it is an applied or constant one.
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
    /// Returns the operation and its arguments. The caller has excluded all other values.
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
    /// True if it is a literal number.
    #[inline]
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_))
            || matches!(self.as_rich(), Some(Rich::Integer(_) | Rich::Rational(_)))
    }
    /// Returns the integer, if it is one.
    pub fn to_integer(&self) -> Option<BigInt> {
        match self {
            Value::Int(n) => Some(BigInt::from(*n)),
            _ => match self.as_rich()? {
                Rich::Integer(n) => Some(n.clone()),
                _ => None,
            },
        }
    }
    /// Returns the number, if it is one.
    pub fn to_rational(&self) -> Option<BigRational> {
        match self.as_rich() {
            Some(Rich::Rational(r)) => Some(r.clone()),
            _ => self.to_integer().map(BigRational::from),
        }
    }
    /// Returns the sign of a number: -1, 0 or 1.
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
    /// Returns the elements, if it is a list with a known end. O(n).
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

/// Total order of canonical forms: numbers by size, constructors by position and then arguments,
/// lists lexicographically.
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
            | (Value::Cons(_), Value::Cons(_)) => equals(self, other, 0, &mut None),
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
                Value::Bool(b) => return state.write_u8(u8::from(*b)),
                Value::Int(n) => return state.write_i64(*n),
                Value::Con(op) | Value::Sym(op) => return state.write_u32(op.number()),
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
                    write!(f, "#{}", op.number())
                } else {
                    write!(f, "#{}{args:?}", op.number())
                }
            }
        }
    }
}

// Dropping: recursion to a small depth, then a worklist, so that deep values need no machine stack.
thread_local! {
    static DROP_DEPTH: Slot<u32> = const { Slot::new(0) };
    static DROP_LATER: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

fn drop_values(values: &mut [Value]) {
    if !values.iter().any(Value::is_on_heap) {
        return;
    }
    // While a thread ends, its locals may be destroyed; then only plain recursion is possible.
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
        // Along the list first, then the elements by the general method.
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
