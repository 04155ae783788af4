//! Typed process specifications: names resolved, actions distinguished from process instances,
//! arguments coerced.

use crate::labels::ActionDecl;
use mu_base::Span;
use mu_base::ids::{ActId, ProcId, VarId};
use mu_data::expr::{DataSpec, Expr};

/// Process equation.
#[derive(Clone, Debug)]
pub struct ProcDef {
    /// Name.
    pub name: String,
    /// Parameters.
    pub params: Vec<VarId>,
    /// Body.
    pub body: Proc,
    /// Place of the name.
    pub span: Span,
}

/// Process term with its place.
#[derive(Clone, Debug)]
pub struct Proc {
    /// Kind of term.
    pub kind: ProcKind,
    /// Place in the source.
    pub span: Span,
}

/// Multiset of action *names* as written in `allow`, `comm`: sorted.
pub type NameSet = Vec<String>;

/// Kinds of process terms. Operators over action names refer to names, not to overloads, as in
/// mCRL2.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ProcKind {
    /// `a(e…)`
    Action(ActId, Vec<Expr>),
    /// `P(e…)`: all parameters given (assignments `P(x = e)` are completed with the equation's own
    /// parameters).
    Call(ProcId, Vec<Expr>),
    Delta,
    Tau,
    Choice(Box<Proc>, Box<Proc>),
    Seq(Box<Proc>, Box<Proc>),
    Parallel(Box<Proc>, Box<Proc>),
    LeftMerge(Box<Proc>, Box<Proc>),
    Sync(Box<Proc>, Box<Proc>),
    BoundedInit(Box<Proc>, Box<Proc>),
    At(Box<Proc>, Expr),
    /// `c -> p <> q`; without `<> q` it is `delta` (untimed).
    If(Expr, Box<Proc>, Option<Box<Proc>>),
    Sum(Vec<VarId>, Box<Proc>),
    Dist(Vec<VarId>, Expr, Box<Proc>),
    Block(Vec<String>, Box<Proc>),
    Allow(Vec<NameSet>, Box<Proc>),
    Hide(Vec<String>, Box<Proc>),
    Rename(Vec<(String, String)>, Box<Proc>),
    /// `comm({a|b -> c})`; `None` is `tau`.
    Comm(Vec<(NameSet, Option<String>)>, Box<Proc>),
}

/// Typed specification.
#[derive(Clone, Debug)]
pub struct ProcSpec {
    /// Sorts, operations, equations.
    pub data: DataSpec,
    /// `glob` variables: they may have any value.
    pub globals: Vec<VarId>,
    /// Declared actions.
    pub actions: Vec<ActionDecl>,
    /// Process equations.
    pub procs: Vec<ProcDef>,
    /// `init`.
    pub init: Proc,
    /// Warnings with their places.
    pub warnings: Vec<(Span, String)>,
}
