//! The syntax tree of specifications and formulas, as written: names are strings, nothing is
//! resolved.
//!
//! Equality ignores spans where [`Node`] compares, so that `parse(print(tree)) == tree` can be
//! tested.

use mu_base::{Place, Span};

/// Tree node with its place. Equality compares the kind only. Cloning, comparing and dropping work
/// on deep trees.
#[derive(Debug)]
pub struct Node<K> {
    /// Kind.
    pub kind: K,
    /// Place in the source.
    pub span: Span,
}
impl<K: PartialEq> PartialEq for Node<K> {
    fn eq(&self, other: &Self) -> bool {
        stacker::maybe_grow(STACK_LEFT, STACK_MORE, || self.kind == other.kind)
    }
}
impl<K: Clone> Clone for Node<K> {
    fn clone(&self) -> Self {
        stacker::maybe_grow(STACK_LEFT, STACK_MORE, || Self {
            kind: self.kind.clone(),
            span: self.span,
        })
    }
}
/// Machine stack required for one step of a recursion over a tree, and the amount added when less
/// is left.
const STACK_LEFT: usize = 128 << 10;
const STACK_MORE: usize = 4 << 20;
impl<K> Node<K> {
    /// Creates a node.
    pub fn new(kind: K, span: Span) -> Self {
        Self { kind, span }
    }
}

/// Identifier with its place.
pub type Ident = Node<String>;
/// A sort expression.
pub type Sort = Node<SortKind>;
/// A data expression.
pub type Data = Node<DataKind>;
/// A process expression.
pub type Process = Node<ProcessKind>;
/// A state formula.
pub type StateFormula = Node<StateFormulaKind>;
/// A regular formula.
pub type RegularFormula = Node<RegularKind>;
/// An action formula.
pub type ActionFormula = Node<ActionFormulaKind>;

/// Kinds of sort expression.
#[derive(Clone, Debug, PartialEq)]
pub enum SortKind {
    /// `Bool`
    Bool,
    /// `Pos`
    Pos,
    /// `Nat`
    Nat,
    /// `Int`
    Int,
    /// `Real`
    Real,
    /// `List(S)`
    List(Box<Sort>),
    /// `Set(S)`
    Set(Box<Sort>),
    /// `Bag(S)`
    Bag(Box<Sort>),
    /// `FSet(S)`
    FSet(Box<Sort>),
    /// `FBag(S)`
    FBag(Box<Sort>),
    /// `struct c(p: S, …)?r | …`
    Struct(Vec<StructConstructor>),
    /// A declared name.
    Name(String),
    /// `A # B -> C`; `->` is right associative, the domain is never empty.
    Function(Vec<Sort>, Box<Sort>),
}

/// A constructor of a structured sort.
#[derive(Clone, Debug, PartialEq)]
pub struct StructConstructor {
    /// Its name.
    pub name: Ident,
    /// Arguments, each with an optional projection.
    pub args: Vec<(Option<Ident>, Sort)>,
    /// The recogniser after `?`.
    pub recogniser: Option<Ident>,
}

/// Declared variable. A declaration of several variables of one sort becomes one for each.
#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    /// The variable.
    pub name: Ident,
    /// Its sort.
    pub sort: Sort,
}

/// Binary operators of data expressions, loosest first (levels of mCRL2: `=>` 2 right, `||` 3
/// right, `&&` 4 right, `== !=` 5 left, `< <= > >= in` 6 left, `|>` 7 right, `<|` 8 left, `++` 9
/// left, `+ -` 10 left, `/ div mod` 11 left, `* .` 12 left).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Implies,
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Cons,
    Snoc,
    Concat,
    Add,
    Subtract,
    Divide,
    Div,
    Mod,
    Multiply,
    At,
}

/// Prefix operators (bind tighter than all binary ones, looser than application).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`: negation, or complement of a set or bag.
    Not,
    /// `-`
    Minus,
    /// `#`
    Size,
}

/// Kinds of data expression.
#[derive(Clone, Debug, PartialEq)]
pub enum DataKind {
    /// An identifier; `true` and `false` among them.
    Name(String),
    /// Digits.
    Number(String),
    /// `[]` or `[a, b]`.
    List(Vec<Data>),
    /// `{}` or `{a, b}`.
    Set(Vec<Data>),
    /// `{:}` or `{a: n, b: m}`.
    Bag(Vec<(Data, Data)>),
    /// `{ x: S | e }`: a set if `e` is a Bool, a bag if it is a number.
    Comprehension(Box<VarDecl>, Box<Data>),
    /// `f(a, b)`
    Apply(Box<Data>, Vec<Data>),
    /// `f[a -> b]`
    Update(Box<Data>, Box<Data>, Box<Data>),
    /// A prefix operator.
    Unary(UnaryOp, Box<Data>),
    /// A binary operator.
    Binary(BinaryOp, Box<Data>, Box<Data>),
    /// `lambda x: S. e`
    Lambda(Vec<VarDecl>, Box<Data>),
    /// `forall x: S. e`
    Forall(Vec<VarDecl>, Box<Data>),
    /// `exists x: S. e`
    Exists(Vec<VarDecl>, Box<Data>),
    /// `e whr x = a, y = b end`
    Where(Box<Data>, Vec<(Ident, Data)>),
}

/// Multi-action name `a|b|c`, sorted as written.
pub type ActionNames = Node<Vec<Ident>>;

/// Kinds of process expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ProcessKind {
    /// `x` or `x(e, …)`: an action or a process instance; name resolution decides. `parens`
    /// distinguishes `x()` from `x`.
    Call {
        /// The name.
        name: Ident,
        /// The arguments.
        args: Vec<Data>,
        /// True if parentheses were written.
        parens: bool,
    },
    /// `P(x = e, …)` with at least one assignment. (`P()` is a `Call`.)
    CallAssign(Ident, Vec<(Ident, Data)>),
    /// `delta`
    Delta,
    /// `tau`
    Tau,
    /// `p + q`
    Choice(Box<Process>, Box<Process>),
    /// `p . q`
    Seq(Box<Process>, Box<Process>),
    /// `p || q`
    Parallel(Box<Process>, Box<Process>),
    /// `p ||_ q`
    LeftMerge(Box<Process>, Box<Process>),
    /// `p | q`
    Sync(Box<Process>, Box<Process>),
    /// `p << q`
    BoundedInit(Box<Process>, Box<Process>),
    /// `p @ t`
    At(Box<Process>, Box<Data>),
    /// `c -> p` or `c -> p <> q`
    If(Box<Data>, Box<Process>, Option<Box<Process>>),
    /// `sum x: S. p`
    Sum(Vec<VarDecl>, Box<Process>),
    /// `dist x: S [e]. p`
    Dist(Vec<VarDecl>, Box<Data>, Box<Process>),
    /// `block({a, b}, p)`
    Block(Vec<Ident>, Box<Process>),
    /// `allow({a, b|c}, p)`
    Allow(Vec<ActionNames>, Box<Process>),
    /// `hide({a, b}, p)`
    Hide(Vec<Ident>, Box<Process>),
    /// `rename({a -> b}, p)`
    Rename(Vec<(Ident, Ident)>, Box<Process>),
    /// `comm({a|b -> c}, p)`; the result may be `tau` or absent in old files: then `None`.
    Comm(Vec<(ActionNames, Option<Ident>)>, Box<Process>),
}

/// One equation `c -> l = r`. Equality ignores the span.
#[derive(Clone, Debug)]
pub struct Equation {
    /// The condition.
    pub condition: Option<Data>,
    /// Left-hand side.
    pub lhs: Data,
    /// Right-hand side.
    pub rhs: Data,
    /// Place of the whole equation.
    pub span: Span,
}

impl PartialEq for Equation {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.lhs == other.lhs && self.rhs == other.rhs
    }
}

/// A section of a specification, in file order.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    /// `sort A; B = S;`
    Sorts(Vec<(Ident, Option<Sort>)>),
    /// `cons c: S;`
    Constructors(Vec<(Ident, Sort)>),
    /// `map f: S;`
    Mappings(Vec<(Ident, Sort)>),
    /// `var x: S; eqn l = r;`
    Equations(Vec<VarDecl>, Vec<Equation>),
    /// `glob x: S;`
    Globals(Vec<VarDecl>),
    /// `act a, b: S # T;`
    Actions(Vec<(Ident, Vec<Sort>)>),
    /// `proc P(x: S) = p;`
    Processes(Vec<ProcessEquation>),
    /// `init p;`
    Init(Process),
}

/// `P(x: S) = p`
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessEquation {
    /// P
    pub name: Ident,
    /// Its parameters.
    pub params: Vec<VarDecl>,
    /// Its body.
    pub body: Process,
}

/// A specification file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Specification {
    /// Sections in order.
    pub sections: Vec<Section>,
    /// The end of the text, for errors about a missing section; the default place if the tree was
    /// not read.
    pub end: Place,
}

/// A formula file: data declarations (none in a plain formula) and the formula.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaFile {
    /// `sort`, `map`, `eqn`, `act` … before `form`.
    pub sections: Vec<Section>,
    /// The formula.
    pub formula: StateFormula,
}

/// Kinds of state formula.
#[derive(Clone, Debug, PartialEq)]
pub enum StateFormulaKind {
    /// `true`
    True,
    /// `false`
    False,
    /// `val(e)`
    Val(Box<Data>),
    /// `X` or `X(e, …)`
    Var(Ident, Vec<Data>),
    /// `!f`
    Not(Box<StateFormula>),
    /// `-f` (quantitative formulas; parsed, rejected later)
    Minus(Box<StateFormula>),
    /// `f op g` with one of `=>`, `||`, `&&`, `+`, `*` (the last two quantitative).
    Binary(StateOp, Box<StateFormula>, Box<StateFormula>),
    /// `forall`, `exists`, `inf`, `sup`, `sum` over data.
    Quantified(Quantifier, Vec<VarDecl>, Box<StateFormula>),
    /// `[R]f`
    Must(Box<RegularFormula>, Box<StateFormula>),
    /// `<R>f`
    May(Box<RegularFormula>, Box<StateFormula>),
    /// `mu X(x: S = e, …). f` (`true`) or `nu` (`false`).
    Fix {
        /// True for a least fixed point.
        least: bool,
        /// X
        name: Ident,
        /// Parameters with initial values.
        params: Vec<(VarDecl, Data)>,
        /// The body.
        body: Box<StateFormula>,
    },
    /// `delay` or `delay @ t`
    Delay(Option<Box<Data>>),
    /// `yaled` or `yaled @ t`
    Yaled(Option<Box<Data>>),
}

/// Binary operators of state formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StateOp {
    Implies,
    Or,
    And,
    Add,
    Multiply,
}

/// Quantifiers of state and action formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quantifier {
    Forall,
    Exists,
    Infimum,
    Supremum,
    Sum,
}

/// Kinds of regular formula.
#[derive(Clone, Debug, PartialEq)]
pub enum RegularKind {
    /// One step.
    Action(Box<ActionFormula>),
    /// `R . S`
    Seq(Box<RegularFormula>, Box<RegularFormula>),
    /// `R + S`
    Alt(Box<RegularFormula>, Box<RegularFormula>),
    /// `R*`
    Star(Box<RegularFormula>),
    /// `R+`
    Plus(Box<RegularFormula>),
}

/// Kinds of action formula.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionFormulaKind {
    /// `true`
    True,
    /// `false`
    False,
    /// `val(e)`
    Val(Box<Data>),
    /// `a(e)|b`, or `tau` (empty).
    MultiAction(Vec<(Ident, Vec<Data>)>),
    /// `!a`
    Not(Box<ActionFormula>),
    /// `a => b`, `a || b`, `a && b`
    Binary(StateOp, Box<ActionFormula>, Box<ActionFormula>),
    /// `forall`/`exists`
    Quantified(Quantifier, Vec<VarDecl>, Box<ActionFormula>),
    /// `a @ t`
    At(Box<ActionFormula>, Box<Data>),
}
