//! The syntax tree of the `cat` language (Alglave, Cousot, Maranget: "Syntax and semantics of the
//! weak consistency model specification language cat", 2016). Every node has its place.

use std::ops::Deref;
use std::sync::Arc;

use mu_base::{Place, Span};

/// A name with its place. Names are equal whatever their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ident {
    /// As written; of a tag without the quote.
    pub text: String,
    /// Where.
    pub place: Place,
}

impl Deref for Ident {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

/// A prefix or postfix operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unary {
    /// `[s]`: the identity on a set.
    Identity,
    /// `~e`.
    Complement,
    /// `e*`.
    Star,
    /// `e+`.
    Plus,
    /// `e?`.
    Optional,
    /// `e^-1`.
    Inverse,
}

/// An infix operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// `a | b`.
    Union,
    /// `a & b`.
    Intersection,
    /// `a \ b`.
    Difference,
    /// `a ; b`.
    Sequence,
    /// `a * b`.
    Product,
    /// `e ++ s`: adds an element to a set.
    Add,
}

/// What a parameter list binds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// One name, or none for `_`.
    One(Option<Ident>),
    /// A tuple of them.
    Tuple(Vec<Option<Ident>>),
}

/// `pattern = value` in a `let`.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Where it is.
    pub span: Span,
    /// What it binds.
    pub pattern: Pattern,
    /// To what. `let f(x) = e` is `let f = fun (x) -> e`.
    pub value: Arc<Exp>,
}

/// A condition of `if`.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A variant, `"mixed"`.
    Variant(String),
    /// `not c`.
    Not(Box<Condition>),
    /// `a && b`.
    And(Box<Condition>, Box<Condition>),
    /// `a || b`.
    Or(Box<Condition>, Box<Condition>),
    /// `a = b`.
    Equal(Arc<Exp>, Arc<Exp>),
    /// `a subset b`.
    Subset(Arc<Exp>, Arc<Exp>),
    /// `a in b`.
    In(Arc<Exp>, Arc<Exp>),
}

/// An expression with its place.
#[derive(Clone, Debug)]
pub struct Exp {
    /// Where it is.
    pub span: Span,
    /// What it is.
    pub node: Node,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Node {
    /// `0`.
    Empty,
    /// `_`.
    Universe,
    /// A name.
    Name(String),
    /// `'tag`.
    Tag(String),
    /// `{a, b}`.
    Braces(Vec<Arc<Exp>>),
    /// A prefix or postfix operator.
    Unary(Unary, Arc<Exp>),
    /// An infix operator.
    Binary(Binary, Arc<Exp>, Arc<Exp>),
    /// `(a, b)`.
    Tuple(Vec<Arc<Exp>>),
    /// `f x`.
    Apply(Arc<Exp>, Arc<Exp>),
    /// `let … in e`; recursive or not.
    Let(bool, Vec<Binding>, Arc<Exp>),
    /// `fun p -> e`.
    Fun(Pattern, Arc<Exp>),
    /// `try a with b`: b if a uses a name that is not known.
    Try(Arc<Exp>, Arc<Exp>),
    /// `if c then a else b`.
    If(Condition, Arc<Exp>, Arc<Exp>),
    /// `match e with 'a -> … || _ -> … end`.
    MatchTag(Arc<Exp>, Vec<(Ident, Arc<Exp>)>, Option<Arc<Exp>>),
    /// `match e with {} -> a || x ++ s -> b end`.
    MatchSet(Arc<Exp>, Arc<Exp>, SetClause),
}

/// The second clause of a match on a set.
#[derive(Clone, Debug)]
pub struct SetClause {
    /// Name of the part before the element: of `p | x ++ s`, which a model uses with order; none
    /// in the form `x ++ s`.
    pub before: Option<Option<Ident>>,
    /// The element.
    pub element: Option<Ident>,
    /// The rest.
    pub rest: Option<Ident>,
    /// The value.
    pub body: Arc<Exp>,
}

/// What a test asks of a relation or set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TestKind {
    /// No cycle.
    Acyclic,
    /// No event related to itself.
    Irreflexive,
    /// Nothing in it.
    Empty,
}

impl TestKind {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            TestKind::Acyclic => "acyclic",
            TestKind::Irreflexive => "irreflexive",
            TestKind::Empty => "empty",
        }
    }
}

/// What follows from a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// An execution that fails it is forbidden.
    Axiom,
    /// `flag`: an execution that passes it has the flag.
    Flag,
    /// `undefined_unless`: an execution that fails it has the flag.
    UndefinedUnless,
    /// `assert`: the model does not apply to an execution that fails it.
    Assert,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Where it is.
    pub span: Span,
    /// What follows.
    pub role: Role,
    /// `~`.
    pub negated: bool,
    /// What is asked.
    pub kind: TestKind,
    /// Of what.
    pub of: Arc<Exp>,
    /// `as name`.
    pub name: Option<Ident>,
}

/// A statement with its place.
#[derive(Clone, Debug)]
pub struct Ins {
    /// Where it is.
    pub span: Span,
    /// What it is.
    pub node: Statement,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `let`, recursive or not, and what a `let rec … when` asks.
    Let(bool, Vec<Binding>, Option<Test>),
    /// A test.
    Test(Test),
    /// `show` and `unshow`: names and what they are for a drawing; none for a name that a drawing
    /// leaves out.
    Show(Vec<(Ident, Option<Arc<Exp>>)>),
    /// `include "file"`.
    Include(String),
    /// `procedure f(x) = … end`.
    Procedure(Ident, Pattern, Arc<Vec<Ins>>),
    /// `call f(x) as name`.
    Call(Ident, Arc<Exp>, Option<Ident>),
    /// `forall x in s do … end`.
    Forall(Ident, Arc<Exp>, Arc<Vec<Ins>>),
    /// `with x from s`.
    With(Ident, Arc<Exp>),
    /// `enum t = 'a || 'b`.
    Enum(Ident, Vec<Ident>),
    /// `instructions R[{'a, 'b}, …]` and `default R[…]` of a bell file.
    Instructions(Vec<Arc<Exp>>),
    /// `if c … else … end`.
    If(Condition, Arc<Vec<Ins>>, Arc<Vec<Ins>>),
    /// `match e with 'a -> … || _ -> … end`.
    Match(Arc<Exp>, Vec<(Ident, Arc<Vec<Ins>>)>, Option<Arc<Vec<Ins>>>),
}

/// A file.
#[derive(Clone, Debug)]
pub struct File {
    /// The words before the first statement: an architecture, a name, options.
    pub head: Vec<String>,
    /// The statements.
    pub body: Vec<Ins>,
}
