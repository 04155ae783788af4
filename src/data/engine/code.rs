//! Compiled code: expressions over numbered slots, and matching trees for user equations.
//!
//! A frame is a range of the machine's value stack. Its first slots are the arguments (of a
//! function, or the environment of a top-level expression). Above them are fields that matching
//! extracted from constructor terms, variables of `whr`, and arguments under evaluation. The
//! compiler knows the height at every point, so a variable is one index. Everything here is
//! `Send + Sync`.

use super::fast_path::Quick;
use crate::signature::Builtin;
use crate::value::{Flags, Lambda, Rich, Value};
use mu_base::Span;
use mu_base::ids::{OpId, SortId};
use num_bigint::BigInt;
use std::sync::Arc;

/// Code of an expression.
#[derive(Debug)]
pub enum CodeNode {
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
    Make(OpId, Flags, Box<[CodeNode]>),
    /// Calls a function that has rules, by its index.
    Call(u32, Box<[CodeNode]>),
    /// The same, with the positions of arguments that are evaluated after the equation is chosen
    /// (see [`Func`]).
    LazyCall(u32, Box<[CodeNode]>, u64),
    /// `if`, lazy.
    If(OpId, Box<[CodeNode; 3]>),
    /// `&&`, lazy.
    And(Box<[CodeNode; 2]>),
    /// `||`, lazy.
    Or(Box<[CodeNode; 2]>),
    /// `=>`, lazy.
    Implies(Box<[CodeNode; 2]>),
    /// A built-in with one argument.
    Prim1(Builtin, OpId, Box<CodeNode>),
    /// A built-in with two arguments.
    Prim2(Builtin, OpId, Box<[CodeNode; 2]>),
    /// Function update.
    Update(OpId, Box<[CodeNode; 3]>),
    /// A built-in on three arguments that inserts into a bag.
    BagInsert(OpId, Box<[CodeNode; 3]>),
    /// A projection or recogniser.
    Select(OpId, Box<CodeNode>),
    /// Elements prepended to a list.
    List(Box<[CodeNode]>, Box<CodeNode>),
    /// Applies a function value.
    Apply(Box<CodeNode>, Box<[CodeNode]>),
    /// A binder, with the slots of its free variables.
    Bind(Arc<Lambda>, Box<[u32]>),
    /// Pushes values, then evaluates the body.
    Let(Box<[CodeNode]>, Box<CodeNode>),
    /// A closed expression with its value cached under an index.
    Shared(u32, Box<CodeNode>),
    /// An expression that needs no heap values, with its general code.
    Quick(Box<Quick>),
}

impl CodeNode {
    /// True if laziness may pay: the code contains a call.
    pub fn is_costly(&self) -> bool {
        match self {
            CodeNode::Call(..)
            | CodeNode::LazyCall(..)
            | CodeNode::Shared(..)
            | CodeNode::Apply(..)
            | CodeNode::Bind(..) => true,
            CodeNode::Make(_, _, args) => args.iter().any(CodeNode::is_costly),
            CodeNode::If(_, args) | CodeNode::Update(_, args) | CodeNode::BagInsert(_, args) => {
                args.iter().any(CodeNode::is_costly)
            }
            CodeNode::And(args)
            | CodeNode::Or(args)
            | CodeNode::Implies(args)
            | CodeNode::Prim2(_, _, args) => args.iter().any(CodeNode::is_costly),
            CodeNode::Prim1(_, _, arg) | CodeNode::Select(_, arg) => arg.is_costly(),
            CodeNode::Quick(quick) => quick.plain.is_costly(),
            CodeNode::List(heads, tail) => {
                heads.iter().any(CodeNode::is_costly) || tail.is_costly()
            }
            CodeNode::Let(values, body) => {
                values.iter().any(CodeNode::is_costly) || body.is_costly()
            }
            CodeNode::Local(_)
            | CodeNode::Bool(_)
            | CodeNode::Int(_)
            | CodeNode::Big(_)
            | CodeNode::Con(_)
            | CodeNode::Sym(_) => false,
            CodeNode::Nil(_) | CodeNode::EmptySet(_) | CodeNode::EmptyBag(_) => false,
        }
    }
    /// True if its evaluation costs nothing.
    pub fn is_trivial(&self) -> bool {
        matches!(
            self,
            CodeNode::Local(_)
                | CodeNode::Bool(_)
                | CodeNode::Int(_)
                | CodeNode::Con(_)
                | CodeNode::Sym(_)
                | CodeNode::Nil(_)
        )
    }
}

/// Equations of one operation for one number of arguments.
///
/// An argument is *lazy* if no pattern and no condition inspects it, and if not all right-hand
/// sides use it: it is evaluated after the equation is chosen, if that uses it. So
/// `cond(true, x, y) = x; cond(false, x, y) = y` evaluates one of `x` and `y`, as `if` does.
/// Compare the strategies of van de Pol: "JITty: a rewriter with strategy annotations" (RTA 2002).
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

/// Matching tree: selects the equation that matches the arguments in the frame.
#[derive(Debug)]
pub enum Tree {
    /// No equation matches.
    Fail,
    /// All patterns of an equation match.
    Leaf(Box<Leaf>),
    /// Inspects the value in a slot.
    Switch(Box<Switch>),
    /// Tries one tree after the other (if one tree for all would be too large).
    Sequence(Box<[Tree]>),
}

/// Equation with matching patterns.
#[derive(Debug)]
pub struct Leaf {
    /// Height of the frame here.
    pub height: u32,
    /// Place of the equation.
    pub span: Span,
    /// Checks beyond constructor patterns.
    pub checks: Box<[LeafCheck]>,
    /// The condition, if any.
    pub condition: Option<CodeNode>,
    /// The right-hand side.
    pub rhs: CodeNode,
    /// The first 64 arguments that the right-hand side uses.
    pub uses: u64,
    /// Continuation if a check or the condition fails.
    pub otherwise: Tree,
}

/// Test of the value in a slot.
#[derive(Debug)]
pub struct Switch {
    /// The slot.
    pub slot: u32,
    /// Height of the frame here.
    pub height: u32,
    /// Cases.
    pub cases: Box<[SwitchCase]>,
    /// Continuation if no case matches.
    pub default: Tree,
}

/// Case of a switch: a head; fields with the given indices are pushed.
#[derive(Debug)]
pub struct SwitchCase {
    /// The head.
    pub key: Key,
    /// Fields that the tree below inspects.
    pub fields: Box<[u32]>,
    /// Continuation.
    pub tree: Tree,
}

/// Head of a pattern.
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

/// Test at a leaf.
#[derive(Debug)]
pub enum LeafCheck {
    /// The values in two slots are equal.
    Equal(u32, u32, SortId),
    /// The number in a slot is of a basic sort (a pattern `Pos2Nat(p)`).
    Number(u32, SortId),
}

/// True if the head of a value is this key.
impl Key {
    #[inline]
    pub(crate) fn matches(&self, value: &Value) -> bool {
        match (self, value) {
            (Key::Op(op, _), Value::Con(c) | Value::Sym(c)) => op == c,
            (Key::Op(op, 1), Value::App1(n)) => n.op == *op,
            (Key::Op(op, 2), Value::App2(n)) => n.op == *op,
            (Key::Op(op, 3), Value::App3(n)) => n.op == *op,
            (Key::Op(op, k), Value::AppN(n)) => n.op == *op && n.args.len() == *k as usize,
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

/// True if a position is in a set of the first 64.
pub(super) fn has(set: u64, i: usize) -> bool {
    i < 64 && set >> i & 1 == 1
}
