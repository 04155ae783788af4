//! Syntax tree of the `cat` language (Alglave, Cousot, Maranget: "Syntax and semantics of the weak
//! consistency model specification language cat", 2016). Every node has its position.

use std::ops::Deref;
use std::sync::Arc;

use mu_base::{Place, Span};

/// A name with its position. Equality ignores positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ident {
    /// The text; without the quote for a tag.
    pub text: String,
    /// Its position.
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
pub enum UnaryOperator {
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

/// The pattern of a parameter list or binding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BindingPattern {
    /// One name, or `None` for `_`.
    One(Option<Ident>),
    /// A tuple of names.
    Tuple(Vec<Option<Ident>>),
}

/// `pattern = value` in a `let`.
#[derive(Clone, Debug)]
pub struct LetBinding {
    /// Its position.
    pub span: Span,
    /// The bound names.
    pub pattern: BindingPattern,
    /// The bound value. `let f(x) = e` is `let f = fun (x) -> e`.
    pub value: Arc<Exp>,
}

/// A condition of `if`.
#[derive(Clone, Debug)]
pub enum IfCondition {
    /// A variant, `"mixed"`.
    Variant(String),
    /// `not c`.
    Not(Box<IfCondition>),
    /// `a && b`.
    And(Box<IfCondition>, Box<IfCondition>),
    /// `a || b`.
    Or(Box<IfCondition>, Box<IfCondition>),
    /// `a = b`.
    Equal(Arc<Exp>, Arc<Exp>),
    /// `a subset b`.
    Subset(Arc<Exp>, Arc<Exp>),
    /// `a in b`.
    In(Arc<Exp>, Arc<Exp>),
}

/// An expression with its position.
#[derive(Clone, Debug)]
pub struct Exp {
    /// Its position.
    pub span: Span,
    /// The expression.
    pub node: ExpressionKind,
}

/// The form of an expression.
#[derive(Clone, Debug)]
pub enum ExpressionKind {
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
    Unary(UnaryOperator, Arc<Exp>),
    /// An infix operator.
    Binary(Binary, Arc<Exp>, Arc<Exp>),
    /// `(a, b)`.
    Tuple(Vec<Arc<Exp>>),
    /// `f x`.
    Apply(Arc<Exp>, Arc<Exp>),
    /// `let … in e`; recursive or not.
    Let(bool, Vec<LetBinding>, Arc<Exp>),
    /// `fun p -> e`.
    Fun(BindingPattern, Arc<Exp>),
    /// `try a with b`: b if a is in error, as with an unknown name.
    Try(Arc<Exp>, Arc<Exp>),
    /// `if c then a else b`.
    If(IfCondition, Arc<Exp>, Arc<Exp>),
    /// `match e with 'a -> … || _ -> … end`.
    MatchTag(Arc<Exp>, Vec<(Ident, Arc<Exp>)>, Option<Arc<Exp>>),
    /// `match e with {} -> a || x ++ s -> b end`.
    MatchSet(Arc<Exp>, Arc<Exp>, SetClause),
}

/// The second clause of a match on a set.
#[derive(Clone, Debug)]
pub struct SetClause {
    /// The name of the part before the element, in `p | x ++ s`; outer `None` for the form
    /// `x ++ s`. Models use the former for ordered sets.
    pub before: Option<Option<Ident>>,
    /// The element.
    pub element: Option<Ident>,
    /// The rest of the set.
    pub rest: Option<Ident>,
    /// The value.
    pub body: Arc<Exp>,
}

/// The predicate of a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TestKind {
    /// The relation has no cycle.
    Acyclic,
    /// No event is related to itself.
    Irreflexive,
    /// The set or relation is empty.
    Empty,
}

impl TestKind {
    /// Returns the keyword.
    pub fn word(self) -> &'static str {
        match self {
            TestKind::Acyclic => "acyclic",
            TestKind::Irreflexive => "irreflexive",
            TestKind::Empty => "empty",
        }
    }
}

/// The consequence of a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TestRole {
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
pub struct TestStatement {
    /// Its position.
    pub span: Span,
    /// The consequence.
    pub role: TestRole,
    /// `~`.
    pub negated: bool,
    /// The predicate.
    pub kind: TestKind,
    /// The tested expression.
    pub of: Arc<Exp>,
    /// `as name`.
    pub name: Option<Ident>,
}

/// A statement with its position.
#[derive(Clone, Debug)]
pub struct Ins {
    /// Its position.
    pub span: Span,
    /// The statement.
    pub node: Statement,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `let`, recursive or not, and the test of a `let rec … when`.
    Let(bool, Vec<LetBinding>, Option<TestStatement>),
    /// A test.
    Test(TestStatement),
    /// `show` and `unshow`: names with the expressions to draw; `None` for a name that drawings
    /// omit.
    Show(Vec<(Ident, Option<Arc<Exp>>)>),
    /// `include "file"`.
    Include(String),
    /// `procedure f(x) = … end`.
    Procedure(Ident, BindingPattern, Arc<Vec<Ins>>),
    /// `call f(x) as name`.
    Call(Ident, Arc<Exp>, Option<Ident>),
    /// `forall x in s do … end`.
    Forall(Ident, Arc<Exp>, Arc<Vec<Ins>>),
    /// `with x from s`.
    With(Ident, Arc<Exp>),
    /// `enum t = 'a || 'b`.
    Enum(Ident, Vec<Ident>),
    /// `instructions R[{'a, 'b}, …]` and `default R[…]` of a bell file.
    Instructions(Ident, Vec<Arc<Exp>>),
    /// `if c … else … end`.
    If(IfCondition, Arc<Vec<Ins>>, Arc<Vec<Ins>>),
    /// `match e with 'a -> … || _ -> … end`.
    Match(Arc<Exp>, Vec<(Ident, Arc<Vec<Ins>>)>, Option<Arc<Vec<Ins>>>),
}

/// A file.
#[derive(Clone, Debug)]
pub struct CatFile {
    /// The words before the first statement: an architecture, a name, options.
    pub head: Vec<String>,
    /// The statements.
    pub body: Vec<Ins>,
}
