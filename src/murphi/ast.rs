//! Syntax tree of a Murphi model: names as written, places of all nodes.
//!
//! The tree has the union of the languages of CMurphi and Rumur. Words that only one of the two
//! tools reserves are names where the grammar expects a name.

use mu_base::Span;

/// Name as written, except that `boolean`, `true` and `false` are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Text.
    pub text: String,
    /// Place.
    pub span: Span,
}

/// Model.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct File {
    /// Declarations, functions and rules, in order.
    pub items: Vec<Item>,
}

/// Part of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Constants, types or variables.
    Declaration(Declaration),
    /// Function or procedure.
    Function(Function),
    /// Rule, start state, property, or a block of them.
    Rule(Rule),
}

/// Declaration of names with one meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Kind.
    pub kind: DeclarationKind,
    /// Names; there may be none.
    pub names: Vec<Name>,
    /// Place from the first name to the end of the type or value.
    pub span: Span,
}

/// Kind of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclarationKind {
    /// Constants with their value.
    Constant(Expr),
    /// Types.
    Type(TypeExpr),
    /// Variables with their type.
    Variable(TypeExpr),
}

/// Fields of a record with one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Names; there may be none.
    pub names: Vec<Name>,
    /// Type.
    pub ty: TypeExpr,
}

/// Type expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeExpr {
    /// Structure.
    pub kind: TypeExprKind,
    /// Place.
    pub span: Span,
}

/// Structure of a type expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeExprKind {
    /// Name of a type.
    Name(String),
    /// `low .. high`.
    Range(Box<Expr>, Box<Expr>),
    /// `enum { … }`.
    Enum(Vec<Name>),
    /// `scalarset(size)`.
    Scalarset(Box<Expr>),
    /// `union { … }`.
    Union(Vec<TypeExpr>),
    /// `array [index] of element`.
    Array(Box<TypeExpr>, Box<TypeExpr>),
    /// `multiset [capacity] of element`.
    Multiset(Box<Expr>, Box<TypeExpr>),
    /// `record … end`.
    Record(Vec<Fields>),
}

/// Operator with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnarySign {
    /// `!`
    Not,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `~`
    Tilde,
}

/// Operator with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinarySign {
    /// `->`
    Implies,
    /// `||`: on booleans only.
    Or,
    /// `&&`: on booleans only.
    And,
    /// `|`: on booleans or numbers.
    Pipe,
    /// `^`
    Caret,
    /// `&`: on booleans or numbers.
    Ampersand,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `=` or `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Divide,
    /// `%`
    Percent,
}

impl BinarySign {
    /// Returns the sign for messages.
    pub fn text(self) -> &'static str {
        match self {
            BinarySign::Implies => "->",
            BinarySign::Or => "||",
            BinarySign::And => "&&",
            BinarySign::Pipe => "|",
            BinarySign::Caret => "^",
            BinarySign::Ampersand => "&",
            BinarySign::Less => "<",
            BinarySign::LessEqual => "<=",
            BinarySign::Greater => ">",
            BinarySign::GreaterEqual => ">=",
            BinarySign::Equal => "=",
            BinarySign::NotEqual => "!=",
            BinarySign::ShiftLeft => "<<",
            BinarySign::ShiftRight => ">>",
            BinarySign::Plus => "+",
            BinarySign::Minus => "-",
            BinarySign::Times => "*",
            BinarySign::Divide => "/",
            BinarySign::Percent => "%",
        }
    }
}

/// Variable of a quantifier, loop or ruleset with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantifier {
    /// Name.
    pub name: Name,
    /// Values.
    pub domain: Domain,
    /// Place.
    pub span: Span,
}

/// Values of a quantifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// `name : type`.
    Type(TypeExpr),
    /// `name := from to last by step`.
    Range(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
}

/// Expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// Structure.
    pub kind: ExprKind,
    /// Place, with parentheses around the expression.
    pub span: Span,
}

/// Structure of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// Number.
    Number(i64),
    /// Name: a variable, constant, member, or `undefined`.
    Name(String),
    /// `record.field`.
    Field(Box<Expr>, Name),
    /// `array[index]`, with the place of the index in its brackets.
    Index(Box<Expr>, Box<Expr>, Span),
    /// Call.
    Call(Name, Vec<Expr>),
    /// Operation on one operand.
    Unary(UnarySign, Box<Expr>),
    /// Operation on two operands.
    Binary(BinarySign, Box<Expr>, Box<Expr>),
    /// `c ? a : b`.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `forall` (true) or `exists`.
    Quantified(bool, Vec<Quantifier>, Box<Expr>),
    /// `isundefined(place)`.
    IsUndefined(Box<Expr>),
    /// `ismember(value, type)`.
    IsMember(Box<Expr>, Box<TypeExpr>),
    /// `multisetcount(name: multiset, predicate)`.
    MultisetCount(Name, Box<Expr>, Box<Expr>),
}

/// `name : expression` of an alias block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AliasDeclaration {
    /// Names; there may be none.
    pub names: Vec<Name>,
    /// Meaning.
    pub value: Expr,
    /// Place.
    pub span: Span,
}

/// Kind of a claim, with the word of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimWord {
    /// `assert`
    Assert,
    /// `invariant`
    Invariant,
    /// `assume`
    Assume,
    /// `cover`
    Cover,
    /// `liveness`
    Liveness,
}

/// Statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// Structure.
    pub kind: StmtKind,
    /// Place.
    pub span: Span,
}

/// Structure of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// `place := value`.
    Assign(Expr, Expr),
    /// `undefine place`.
    Undefine(Expr),
    /// `clear place`.
    Clear(Expr),
    /// `if`: clauses with their place, and the statements of `else`.
    If(Vec<(Expr, Vec<Stmt>, Span)>, Vec<Stmt>),
    /// `switch`: alternatives with their place, and the statements of `else`.
    Switch(Expr, Vec<(Vec<Expr>, Vec<Stmt>, Span)>, Vec<Stmt>),
    /// `for`.
    For(Vec<Quantifier>, Vec<Stmt>),
    /// `while`.
    While(Expr, Vec<Stmt>),
    /// `return`.
    Return(Option<Expr>),
    /// `put` of a text.
    PutText(String),
    /// `put` of a value.
    Put(Expr),
    /// `error`.
    Error(String),
    /// `assert` and others.
    Claim(ClaimWord, Expr, Option<String>),
    /// `alias`.
    Alias(Vec<AliasDeclaration>, Vec<Stmt>),
    /// Call.
    Call(Name, Vec<Expr>),
    /// `multisetadd(element, multiset)`.
    MultisetAdd(Expr, Expr),
    /// `multisetremove(position, multiset)`.
    MultisetRemove(Expr, Expr),
    /// `multisetremovepred(name: multiset, predicate)`.
    MultisetRemovePredicate(Name, Expr, Expr),
}

/// Parameters of a function with one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// True for `var`.
    pub by_reference: bool,
    /// Names.
    pub names: Vec<Name>,
    /// Type.
    pub ty: TypeExpr,
}

/// Function or procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: Name,
    /// Parameters.
    pub parameters: Vec<Parameters>,
    /// Type of the result.
    pub result: Option<TypeExpr>,
    /// Local declarations.
    pub declarations: Vec<Declaration>,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Place.
    pub span: Span,
}

/// Text of a name of a rule, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// Text, with its escapes as written.
    pub text: String,
    /// Place.
    pub span: Span,
}

/// Rule, start state, property, or a block of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Structure.
    pub kind: RuleKind,
    /// Place of the first word.
    pub word: Span,
    /// Place of the whole.
    pub span: Span,
}

/// Structure of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// `rule`.
    Rule {
        /// Priority.
        priority: Option<i64>,
        /// Name.
        title: Option<Title>,
        /// Condition.
        guard: Option<Expr>,
        /// Local declarations.
        declarations: Vec<Declaration>,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// `startstate`.
    Start {
        /// Name.
        title: Option<Title>,
        /// Local declarations.
        declarations: Vec<Declaration>,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// `invariant` and others.
    Property {
        /// Kind.
        claim: ClaimWord,
        /// Name.
        title: Option<Title>,
        /// Condition.
        condition: Expr,
    },
    /// `ruleset`.
    Ruleset(Vec<Quantifier>, Vec<Rule>),
    /// `alias`.
    Alias(Vec<AliasDeclaration>, Vec<Rule>),
    /// `choose name : multiset do`.
    Choose(Name, Expr, Vec<Rule>),
}
