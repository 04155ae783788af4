//! Compiled code: expressions over numbered slots, and matching trees for user equations.
//!
//! A frame is a stretch of the machine's value stack. Its first slots are the arguments (of a
//! function, or the environment of a top-level expression), above them lie fields that matching
//! took out of constructor terms, variables of `whr`, and arguments under evaluation; the compiler
//! knows the height at every point, so a variable is one index. Everything here is `Send + Sync`.

use super::quick::Quick;
use crate::signature::Builtin;
use crate::value::{Flags, Lambda, Rich, Value};
use mu_base::Span;
use mu_base::ids::{OpId, SortId};
use num_bigint::BigInt;
use std::sync::Arc;

/// Code of an expression.
#[derive(Debug)]
pub enum Node {
    /// The value in a slot.
    Local(u32),
    /// `true`, `false`.
    Bool(bool),
    /// A small integer.
    Int(i64),
    /// A large integer.
    Big(Box<BigInt>),
    /// A constant free constructor.
    Con(OpId),
    /// Another operation as a value.
    Sym(OpId),
    /// The empty list of a sort.
    Nil(SortId),
    /// The empty set of a sort.
    EmptySet(SortId),
    /// The empty bag of a sort.
    EmptyBag(SortId),
    /// Applies an operation that has no rules.
    Make(OpId, Flags, Box<[Node]>),
    /// Calls a function that has rules, by its index.
    Call(u32, Box<[Node]>),
    /// The same, with the positions whose arguments wait until the equation is chosen (see
    /// [`Func`]).
    LazyCall(u32, Box<[Node]>, u64),
    /// `if`, lazy.
    If(OpId, Box<[Node; 3]>),
    /// `&&`, lazy.
    And(Box<[Node; 2]>),
    /// `||`, lazy.
    Or(Box<[Node; 2]>),
    /// `=>`, lazy.
    Implies(Box<[Node; 2]>),
    /// A built-in with one argument.
    Prim1(Builtin, OpId, Box<Node>),
    /// A built-in with two arguments.
    Prim2(Builtin, OpId, Box<[Node; 2]>),
    /// Function update.
    Update(OpId, Box<[Node; 3]>),
    /// A built-in on three arguments that inserts into a bag.
    BagInsert(OpId, Box<[Node; 3]>),
    /// A projection or recogniser.
    Select(OpId, Box<Node>),
    /// Elements in front of a list.
    List(Box<[Node]>, Box<Node>),
    /// Applies a function value.
    Apply(Box<Node>, Box<[Node]>),
    /// A binder, with the slots of its free variables.
    Bind(Arc<Lambda>, Box<[u32]>),
    /// Pushes values, then evaluates the body.
    Let(Box<[Node]>, Box<Node>),
    /// A closed expression whose value is kept under an index.
    Shared(u32, Box<Node>),
    /// What needs no value built, with the general code.
    Quick(Box<Quick>),
}

impl Node {
    /// Whether it may be worth not to evaluate it: a call occurs in it.
    pub fn is_costly(&self) -> bool {
        match self {
            Node::Call(..)
            | Node::LazyCall(..)
            | Node::Shared(..)
            | Node::Apply(..)
            | Node::Bind(..) => true,
            Node::Make(_, _, args) => args.iter().any(Node::is_costly),
            Node::If(_, args) | Node::Update(_, args) | Node::BagInsert(_, args) => {
                args.iter().any(Node::is_costly)
            }
            Node::And(args) | Node::Or(args) | Node::Implies(args) | Node::Prim2(_, _, args) => {
                args.iter().any(Node::is_costly)
            }
            Node::Prim1(_, _, arg) | Node::Select(_, arg) => arg.is_costly(),
            Node::Quick(quick) => quick.plain.is_costly(),
            Node::List(heads, tail) => heads.iter().any(Node::is_costly) || tail.is_costly(),
            Node::Let(values, body) => values.iter().any(Node::is_costly) || body.is_costly(),
            Node::Local(_)
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Big(_)
            | Node::Con(_)
            | Node::Sym(_) => false,
            Node::Nil(_) | Node::EmptySet(_) | Node::EmptyBag(_) => false,
        }
    }
    /// Whether evaluating it costs nothing.
    pub fn is_trivial(&self) -> bool {
        matches!(
            self,
            Node::Local(_)
                | Node::Bool(_)
                | Node::Int(_)
                | Node::Con(_)
                | Node::Sym(_)
                | Node::Nil(_)
        )
    }
}

/// Equations of one operation at one number of arguments.
///
/// An argument that no pattern and no condition looks at, and that not all right-hand sides use, is
/// *lazy*: it is evaluated when the equation is chosen, if that uses it. So `cond(true, x, y) = x;
/// cond(false, x, y) = y` evaluates one of `x` and `y`, as `if` does. Compare the strategies of van
/// de Pol: "JITty: a rewriter with strategy annotations" (RTA 2002).
#[derive(Debug)]
pub struct Func {
    /// The operation.
    pub op: OpId,
    /// Number of applications (0: a constant; 2: `f(x)(y)`).
    pub level: usize,
    /// Number of arguments, those of all applications together.
    pub args: u32,
    /// The equations.
    pub tree: Tree,
}

/// A matching tree: decides which equation fits the arguments in the frame.
#[derive(Debug)]
pub enum Tree {
    /// No equation fits.
    Fail,
    /// All patterns of an equation fit.
    Leaf(Box<Leaf>),
    /// Looks at the value in a slot.
    Switch(Box<Switch>),
    /// Tries one tree after the other (where one tree for all would be too large).
    Sequence(Box<[Tree]>),
}

/// An equation whose patterns fit.
#[derive(Debug)]
pub struct Leaf {
    /// Height of the frame here.
    pub height: u32,
    /// Where the equation was written.
    pub span: Span,
    /// What patterns over constructors do not say.
    pub checks: Box<[Check]>,
    /// The condition, if any.
    pub condition: Option<Node>,
    /// The right-hand side.
    pub rhs: Node,
    /// The first 64 arguments that the right-hand side uses.
    pub uses: u64,
    /// If a check or the condition fails.
    pub otherwise: Tree,
}

/// A test of the value in a slot.
#[derive(Debug)]
pub struct Switch {
    /// The slot.
    pub slot: u32,
    /// Height of the frame here.
    pub height: u32,
    /// What to look for.
    pub cases: Box<[Case]>,
    /// If none fits.
    pub default: Tree,
}

/// A head to look for; fields with the given indices are pushed.
#[derive(Debug)]
pub struct Case {
    /// The head.
    pub key: Key,
    /// Which of its fields the tree below looks at.
    pub fields: Box<[u32]>,
    /// What to do then.
    pub tree: Tree,
}

/// What a pattern's head is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// An operation on a number of arguments.
    Op(OpId, u32),
    /// A Boolean.
    Bool(bool),
    /// A number.
    Number(BigInt),
    /// A small number.
    Int(i64),
    /// The empty list.
    Nil,
    /// A list cell.
    Cons,
    /// The empty set or bag.
    Empty,
}

/// A test at a leaf.
#[derive(Debug)]
pub enum Check {
    /// The values in two slots are equal.
    Equal(u32, u32, SortId),
    /// The number in a slot is of a basic sort (a pattern `Pos2Nat(p)`).
    Number(u32, SortId),
}

impl Key {
    /// Whether the head of a value is this.
    #[inline]
    pub(crate) fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Key::Op(op, _), Value::Con(c) | Value::Sym(c)) => op == c,
            (Key::Op(op, 1), Value::App1(n)) => n.op == *op,
            (Key::Op(op, 2), Value::App2(n)) => n.op == *op,
            (Key::Op(op, 3), Value::App3(n)) => n.op == *op,
            (Key::Op(op, k), Value::AppN(n)) => n.op == *op && n.args.len() as u32 == *k,
            (Key::Cons, Value::Cons(_)) | (Key::Nil, Value::Nil(_)) => true,
            (Key::Bool(a), Value::Bool(b)) => a == b,
            (Key::Int(a), Value::Int(b)) => a == b,
            (Key::Number(a), Value::Rich(n)) => matches!(&n.kind, Rich::Integer(b) if a == b),
            (Key::Empty, Value::Rich(n)) => match &n.kind {
                Rich::Set(_, elements) => elements.is_empty(),
                Rich::Bag(_, elements) => elements.is_empty(),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Whether a position is in a set of the first 64.
pub(super) fn has(set: u64, i: usize) -> bool {
    i < 64 && set >> i & 1 == 1
}
