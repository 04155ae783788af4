//! Typed tree of a Murphi model: the interface between the language (parser, type checker) and its
//! semantics (compilation, exploration).
//!
//! Invariants:
//!
//! - Names are resolved to ids, constants are folded, named types are replaced by their [`TypeId`].
//! - Rulesets, choices, and alias blocks around rules are flattened: each rule, start state and
//!   property has its own list of [`Binding`]s, outermost first.
//! - The values of a simple type are `i64`. Booleans are 0 and 1, ranges are their numbers. Members
//!   of enumerations and scalarsets have numbers of their own that no other type shares
//!   ([`TypeKind::Enum::first`]), so that a value of a union needs no tag and no conversion: `=`
//!   compares numbers, `ismember` compares with an interval.
//! - All values of a type are defined; *undefined* is the absence of a value, outside of these
//!   numbers.
//! - Every span lies in the source of the model.

use mu_base::Span;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);
        impl $name {
            /// Returns the index as `usize`, for subscripting.
            #[inline]
            pub fn index(self) -> usize { self.0 as usize }
            /// Returns the id of index `i`. Panics if `i` does not fit in 32 bits.
            #[inline]
            pub fn new(i: usize) -> Self { Self(u32::try_from(i).expect("more than 2^32 items")) }
        }
    )+};
}
ids! {
    /// Type in [`Types`]. Each type expression of the text has an id of its own, so two scalarsets
    /// of equal size differ; a type name has the id of its definition.
    TypeId,
    /// Global variable in [`Model::globals`].
    GlobalId,
    /// Local in the [`Frame`] of the body that uses it.
    LocalId,
    /// Function or procedure in [`Model::functions`].
    FunctionId,
}

impl TypeId {
    /// `boolean`.
    pub const BOOLEAN: TypeId = TypeId(0);
    /// Integers without a range: literals, results of arithmetic, loop variables with bounds
    /// that are not constant. No global variable has this type.
    pub const INTEGER: TypeId = TypeId(1);
}

/// Member of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name.
    pub name: String,
    /// Place of the declaration; empty for `false` and `true`.
    pub span: Span,
}

/// Field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Place of the declaration.
    pub span: Span,
    /// Type.
    pub ty: TypeId,
}

/// Structure of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `boolean`: 0 is false, 1 is true. Only [`TypeId::BOOLEAN`].
    Boolean,
    /// Integers without a range. Only [`TypeId::INTEGER`].
    Integer,
    /// Numbers `low..high`, both included, `low <= high`.
    Range {
        /// Lowest number.
        low: i64,
        /// Highest number.
        high: i64,
    },
    /// Enumeration with the numbers `first..first + members.len()`. It may have no member.
    Enum {
        /// Number of the first member.
        first: i64,
        /// Members, in order.
        members: Vec<Member>,
    },
    /// Scalarset with the numbers `first..first + size`; every permutation of them is a symmetry.
    Scalarset {
        /// Number of the first element.
        first: i64,
        /// Number of elements, at least 1.
        size: u32,
    },
    /// Union of enumerations and scalarsets: the union of their numbers. Members are distinct, in
    /// the order of the text; a union in a union is replaced by its members.
    Union {
        /// Types of the members, each an enumeration, `boolean`, or a scalarset.
        members: Vec<TypeId>,
    },
    /// Array with an element for each value of a simple type, in the order of [`Types::parts`].
    Array {
        /// Simple type of the index.
        index: TypeId,
        /// Type of the elements.
        element: TypeId,
    },
    /// Multiset with at most `capacity` elements, without an order.
    Multiset {
        /// Highest number of elements.
        capacity: u32,
        /// Type of the elements.
        element: TypeId,
    },
    /// Position in a multiset that `choose`, `multisetcount` or `multisetremovepred` binds. It is
    /// no value: it only selects an element of that multiset.
    Position {
        /// Type of the multiset.
        multiset: TypeId,
    },
    /// Record.
    Record {
        /// Fields, in order. It may have no field.
        fields: Vec<Field>,
    },
}

/// Type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Name of the first declaration that defines this type; `None` for a type without a name.
    pub name: Option<String>,
    /// Place of the type expression; empty for the two types that the language defines.
    pub span: Span,
    /// Structure.
    pub kind: TypeKind,
}

/// Table of types. A type refers only to types with smaller ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types {
    /// Types by id.
    pub all: Vec<Type>,
    /// Texts of false and true as members of unions.
    pub union_booleans: [String; 2],
}

impl Default for Types {
    fn default() -> Self {
        let builtin = |name: Option<&str>, kind| Type {
            name: name.map(String::from),
            span: Span::default(),
            kind,
        };
        Types {
            all: vec![
                builtin(Some("boolean"), TypeKind::Boolean),
                builtin(None, TypeKind::Integer),
            ],
            union_booleans: ["false".into(), "true".into()],
        }
    }
}

impl Types {
    /// Adds a type.
    pub fn add(&mut self, ty: Type) -> TypeId {
        self.all.push(ty);
        TypeId::new(self.all.len() - 1)
    }
    /// Returns a type.
    pub fn get(&self, ty: TypeId) -> &Type {
        &self.all[ty.index()]
    }
    /// Returns the structure of a type.
    pub fn kind(&self, ty: TypeId) -> &TypeKind {
        &self.get(ty).kind
    }
    /// Returns some types with all types that they consist of, each once. Cost: quadratic in their
    /// number.
    pub fn constituents(&self, mut open: Vec<TypeId>) -> Vec<TypeId> {
        let mut all = Vec::new();
        while let Some(ty) = open.pop() {
            if all.contains(&ty) {
                continue;
            }
            all.push(ty);
            match self.kind(ty) {
                TypeKind::Union { members } => open.extend(members),
                TypeKind::Array { index, element } => open.extend([*index, *element]),
                TypeKind::Multiset { element, .. } => open.push(*element),
                TypeKind::Record { fields } => open.extend(fields.iter().map(|f| f.ty)),
                _ => {}
            }
        }
        all
    }
    /// True if the values of the type are numbers: not for arrays, records, multisets, positions.
    pub fn is_simple(&self, ty: TypeId) -> bool {
        match self.kind(ty) {
            TypeKind::Boolean
            | TypeKind::Integer
            | TypeKind::Range { .. }
            | TypeKind::Enum { .. }
            | TypeKind::Scalarset { .. }
            | TypeKind::Union { .. } => true,
            TypeKind::Array { .. }
            | TypeKind::Multiset { .. }
            | TypeKind::Position { .. }
            | TypeKind::Record { .. } => false,
        }
    }
    /// True for ranges and integers without a range.
    pub fn is_integer(&self, ty: TypeId) -> bool {
        matches!(self.kind(ty), TypeKind::Integer | TypeKind::Range { .. })
    }
    /// Returns the values of a simple type as intervals (first, number of values), in the order in
    /// which loops visit them and arrays store them. `None` for [`TypeKind::Integer`] and for types
    /// that are not simple.
    pub fn parts(&self, ty: TypeId) -> Option<Vec<(i64, u64)>> {
        Some(match self.kind(ty) {
            TypeKind::Boolean => vec![(0, 2)],
            TypeKind::Range { low, high } => vec![(*low, high.abs_diff(*low).saturating_add(1))],
            TypeKind::Enum { first, members } => vec![(*first, members.len() as u64)],
            TypeKind::Scalarset { first, size } => vec![(*first, u64::from(*size))],
            TypeKind::Union { members } => {
                members.iter().filter_map(|m| self.parts(*m)).flatten().collect()
            }
            _ => return None,
        })
    }
    /// Returns the number of (defined) values of a simple type; see [`Types::parts`]. `None` for
    /// other types.
    pub fn count(&self, ty: TypeId) -> Option<u64> {
        Some(self.parts(ty)?.iter().fold(0, |n: u64, p| n.saturating_add(p.1)))
    }
    /// Returns the position of a value among the values of a simple type, from 0, in the order of
    /// [`Types::parts`]. `None` if it is no value of the type.
    pub fn position(&self, ty: TypeId, value: i64) -> Option<u64> {
        let mut before = 0;
        for (first, count) in self.parts(ty)? {
            if value >= first && value.abs_diff(first) < count {
                return Some(before + value.abs_diff(first));
            }
            before += count;
        }
        None
    }
    /// Returns the value at a position; see [`Types::position`]. `None` if the type has no such
    /// position.
    pub fn value_at(&self, ty: TypeId, mut position: u64) -> Option<i64> {
        for (first, count) in self.parts(ty)? {
            if position < count {
                return first.checked_add_unsigned(position);
            }
            position -= count;
        }
        None
    }
    /// Returns the text of a value of a simple type: a number, the name of a member, or the name of
    /// the scalarset with a number from 1 on (`Proc_1`). A value outside of the type is printed as
    /// a number.
    pub fn value_text(&self, ty: TypeId, value: i64) -> String {
        let offset = |first: i64| value.checked_sub(first).and_then(|n| usize::try_from(n).ok());
        match self.kind(ty) {
            TypeKind::Boolean if value == 0 => "false".into(),
            TypeKind::Boolean if value == 1 => "true".into(),
            TypeKind::Enum { first, members } => {
                match offset(*first).and_then(|n| members.get(n)) {
                    Some(member) => member.name.clone(),
                    None => value.to_string(),
                }
            }
            TypeKind::Scalarset { first, size } => match offset(*first) {
                Some(n) if n < *size as usize => match &self.get(ty).name {
                    Some(name) => format!("{name}_{}", n + 1),
                    None => format!("scalarset{}_{}", ty.0, n + 1),
                },
                _ => value.to_string(),
            },
            TypeKind::Union { members } => {
                match members.iter().find(|m| self.position(**m, value).is_some()) {
                    Some(member) if matches!(self.kind(*member), TypeKind::Boolean) => {
                        self.union_booleans[usize::from(value == 1)].clone()
                    }
                    Some(member) => self.value_text(*member, value),
                    None => value.to_string(),
                }
            }
            _ => value.to_string(),
        }
    }
    /// Returns a type for a message: its name, or its structure.
    pub fn text(&self, ty: TypeId) -> String {
        let ty = self.get(ty);
        if let Some(name) = &ty.name {
            return name.clone();
        }
        match &ty.kind {
            TypeKind::Boolean => "boolean".into(),
            TypeKind::Integer => "integer".into(),
            TypeKind::Range { low, high } => format!("{low}..{high}"),
            TypeKind::Enum { members, .. } => {
                let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
                format!("enum {{{}}}", names.join(", "))
            }
            TypeKind::Scalarset { size, .. } => format!("scalarset({size})"),
            TypeKind::Union { members } => {
                let names: Vec<String> = members.iter().map(|m| self.text(*m)).collect();
                format!("union {{{}}}", names.join(", "))
            }
            TypeKind::Array { index, element } => {
                format!("array [{}] of {}", self.text(*index), self.text(*element))
            }
            TypeKind::Multiset { capacity, element } => {
                format!("multiset [{capacity}] of {}", self.text(*element))
            }
            TypeKind::Position { multiset } => format!("position in {}", self.text(*multiset)),
            TypeKind::Record { fields } => {
                let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
                format!("record {{{}}}", names.join(", "))
            }
        }
    }
}

/// Named constant with its folded value. Members of enumerations are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name.
    pub name: String,
    /// Place of the name.
    pub span: Span,
    /// Type: [`TypeId::INTEGER`], `boolean`, or an enumeration.
    pub ty: TypeId,
    /// Value.
    pub value: i64,
}

/// Global variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// Name.
    pub name: String,
    /// Place of the name.
    pub span: Span,
    /// Type.
    pub ty: TypeId,
}

/// Kind of a local, which determines what a [`Frame`] stores for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalKind {
    /// Variable of a rule or function; undefined at the begin of each execution of its body.
    Variable,
    /// Parameter of a function passed by value; the body cannot write it. It may be undefined.
    Value,
    /// `var` parameter of a function, or alias of a place: a reference to a place, computed once
    /// when it is bound. Reads and writes go to that place.
    Reference,
    /// Alias of an expression without a place: its value, computed once when it is bound.
    AliasValue,
    /// Parameter of a ruleset, or variable of a quantifier or loop; the body cannot write it.
    Bound,
    /// Position in a multiset ([`TypeKind::Position`]).
    Position,
}

/// Local of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Name.
    pub name: String,
    /// Place of the name.
    pub span: Span,
    /// Type. Of [`LocalKind::Bound`] over bounds that are not constant: [`TypeId::INTEGER`].
    pub ty: TypeId,
    /// Kind.
    pub kind: LocalKind,
}

/// All locals of one body (a function, rule, start state or property), also those of nested blocks.
/// Each execution of the body has its own frame.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame {
    /// Locals by [`LocalId`].
    pub locals: Vec<Local>,
}

impl Frame {
    /// Adds a local.
    pub fn add(&mut self, local: Local) -> LocalId {
        self.locals.push(local);
        LocalId::new(self.locals.len() - 1)
    }
    /// Returns a local.
    pub fn get(&self, local: LocalId) -> &Local {
        &self.locals[local.index()]
    }
}

/// Root of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    /// Global variable.
    Global(GlobalId),
    /// Local; for [`LocalKind::Reference`] the place to which it refers.
    Local(LocalId),
}

/// Selection of a part of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Element of an array. A value that the index type does not have, or an undefined one, is an
    /// error of the model.
    Index {
        /// Type of the array.
        array: TypeId,
        /// Index.
        index: Expr,
        /// Place of the selection, with its brackets.
        span: Span,
    },
    /// Field of a record.
    Field {
        /// Type of the record.
        record: TypeId,
        /// Index of the field.
        field: u32,
        /// Place of the name of the field.
        span: Span,
    },
    /// Element of a multiset at a bound position.
    Element {
        /// Type of the multiset.
        multiset: TypeId,
        /// Local of kind [`LocalKind::Position`].
        position: LocalId,
        /// Place of the selection, with its brackets.
        span: Span,
    },
}

/// Place: a variable or a part of one (a *designator* of the language).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Variable.
    pub root: Root,
    /// Selections, outermost first.
    pub steps: Vec<Step>,
    /// Type of the selected part.
    pub ty: TypeId,
    /// Place in the text.
    pub span: Span,
}

/// Operator with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unary {
    /// `!`, on booleans.
    Not,
    /// `-`, on integers; an overflow is an error of the model.
    Negate,
    /// `~`, on integers: all 64 bits in two's complement.
    Complement,
}

/// Operator with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binary {
    /// `+`. Overflows of arithmetic are errors of the model.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`, rounded towards zero; division by zero is an error of the model.
    Divide,
    /// `%`, with the sign of the left operand; division by zero is an error of the model.
    Modulo,
    /// `<<`; see docs/murphi.md for shifts by negative numbers.
    ShiftLeft,
    /// `>>`.
    ShiftRight,
    /// `&` on integers.
    BitAnd,
    /// `|` on integers.
    BitOr,
    /// `^` on integers.
    BitXor,
    /// `<` on integers.
    Less,
    /// `<=` on integers.
    LessEqual,
    /// `>` on integers.
    Greater,
    /// `>=` on integers.
    GreaterEqual,
    /// `=` on two values of any equal type; on arrays and records element by element.
    Equal,
    /// `!=`.
    NotEqual,
    /// `&` on booleans; the right operand is evaluated only if the left one is true.
    And,
    /// `|` on booleans; the right operand is evaluated only if the left one is false.
    Or,
    /// `->` on booleans; the right operand is evaluated only if the left one is true.
    Implies,
}

/// Values over which a quantifier, loop or ruleset ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
// A model has few domains.
#[allow(clippy::large_enum_variant)]
pub enum Domain {
    /// All values of a simple type, in the order of [`Types::parts`].
    Type(TypeId),
    /// `from` to `to` in steps; downwards for a negative step. Bounds and step are evaluated once.
    /// In rulesets all are constants.
    Range {
        /// First value.
        from: Expr,
        /// Last value, included.
        to: Expr,
        /// Step; 1 if there is none. Zero, if it is not constant, is an error of the model.
        by: Option<Expr>,
    },
}

/// Argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Value, for a parameter by value. Its type may be any that is assignable to the parameter's:
    /// a number outside of the range of the parameter is an error of the model. If the expression
    /// is a [`ExprKind::Read`] it may be undefined or partly undefined.
    Value(Expr),
    /// Place, for a `var` parameter.
    Place(Place),
    /// `undefined`, for a parameter by value.
    Undefined(Span),
}

/// Expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// Structure.
    pub kind: ExprKind,
    /// Type.
    pub ty: TypeId,
    /// Place in the text.
    pub span: Span,
}

/// Structure of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// Value of a simple type: a literal, a constant, a member, or a folded expression.
    Constant(i64),
    /// Value of a place. An undefined simple value is an error of the model, except where a
    /// statement copies it ([`StmtKind::Assign`], [`Argument::Value`], [`StmtKind::Return`]).
    Read(Place),
    /// Operation on one operand.
    Unary(Unary, Box<Expr>),
    /// Operation on two operands, evaluated from left to right.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `c ? a : b`; only the selected operand is evaluated.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `forall` or `exists`.
    Quantified {
        /// True for `forall`.
        all: bool,
        /// Variable, of kind [`LocalKind::Bound`].
        local: LocalId,
        /// Values.
        domain: Box<Domain>,
        /// Boolean body.
        body: Box<Expr>,
    },
    /// Call of a function. It may write globals and its `var` parameters.
    Call(FunctionId, Vec<Argument>),
    /// `isundefined`, on a place of a simple type.
    IsUndefined(Place),
    /// `ismember`: true if the value is in the type. An undefined value is an error of the model.
    IsMember(Box<Expr>, TypeId),
    /// `multisetcount`: the number of elements that satisfy the predicate.
    MultisetCount {
        /// Position, of kind [`LocalKind::Position`].
        local: LocalId,
        /// Multiset.
        multiset: Place,
        /// Boolean predicate on the position.
        predicate: Box<Expr>,
    },
}

/// Statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// Structure.
    pub kind: StmtKind,
    /// Place in the text.
    pub span: Span,
}

/// Alternative of a `switch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Values, evaluated in order until one is equal to the value of the switch.
    pub matches: Vec<Expr>,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Place of the whole alternative.
    pub span: Span,
}

/// Condition with the statements that it guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Boolean condition.
    pub condition: Expr,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Place from `if` or `elsif` to the last statement.
    pub span: Span,
}

/// Name for a place or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Local: [`LocalKind::Reference`] for a place, [`LocalKind::AliasValue`] for a value.
    pub local: LocalId,
    /// Meaning.
    pub target: AliasTarget,
    /// Place of the declaration.
    pub span: Span,
}

/// Meaning of an alias. Aliases of constants are folded and have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AliasTarget {
    /// Place; its indices are evaluated once, when the alias is bound.
    Place(Place),
    /// Value; evaluated once, when the alias is bound.
    Value(Expr),
}

/// Text or value that `put` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// Text, with its escapes as written.
    Text(String),
    /// Value; a place may be undefined or have any type.
    Value(Expr),
}

/// Kind of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Claim {
    /// `assert` or `invariant`. In a statement: its condition holds whenever it is executed. At the
    /// top level: it holds in every state.
    Assert,
    /// `assume`: a state (top level), or the state that this rule computes (statement), is
    /// discarded if the condition is false.
    Assume,
    /// `cover`: in some reachable state (top level), or at some execution (statement), the
    /// condition is true.
    Cover,
    /// `liveness`, at the top level only: from every reachable state a state is reachable in which
    /// the condition is true.
    Liveness,
}

/// Structure of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// `target := value`. A copy of an undefined or partly undefined place copies undefined parts.
    /// A number outside of the target's type is an error of the model.
    Assign {
        /// Target.
        target: Place,
        /// Value.
        value: Expr,
    },
    /// `undefine target` or `target := undefined`: all parts become undefined; a multiset becomes
    /// empty.
    Undefine(Place),
    /// `clear target`: all parts get the first value of their type; a multiset becomes empty.
    Clear(Place),
    /// `if`.
    If {
        /// Clauses, at least one.
        clauses: Vec<Clause>,
        /// Statements of `else`.
        otherwise: Vec<Stmt>,
    },
    /// `switch`.
    Switch {
        /// Value of a simple type.
        value: Expr,
        /// Alternatives; the first one that matches is executed.
        cases: Vec<Case>,
        /// Statements of `else`.
        otherwise: Vec<Stmt>,
    },
    /// `for`.
    For {
        /// Variable, of kind [`LocalKind::Bound`].
        local: LocalId,
        /// Values.
        domain: Domain,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// `while`.
    While {
        /// Boolean condition.
        condition: Expr,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// `return`: ends the body of the function, rule or start state.
    Return(Option<Expr>),
    /// `put`.
    Put(Put),
    /// `error`: the model fails with this message.
    Error(String),
    /// `assert`, `assume`, `cover`.
    Claim {
        /// Index in [`Model::claims`], which has its kind and message.
        number: u32,
        /// Boolean condition.
        condition: Expr,
    },
    /// `alias ... do ... end`. A later alias may use an earlier one.
    Alias {
        /// Aliases, in order.
        aliases: Vec<Alias>,
        /// Statements.
        body: Vec<Stmt>,
    },
    /// Call of a procedure, or of a function without use of its result.
    Call(FunctionId, Vec<Argument>),
    /// `multisetadd(element, multiset)`: an error of the model if the multiset is full.
    MultisetAdd {
        /// Element; it may be partly undefined.
        element: Place,
        /// Multiset.
        multiset: Place,
    },
    /// `multisetremove(position, multiset)`.
    MultisetRemove {
        /// Position, of kind [`LocalKind::Position`].
        position: LocalId,
        /// Multiset.
        multiset: Place,
    },
    /// `multisetremovepred`: removes all elements that satisfy the predicate.
    MultisetRemovePredicate {
        /// Position, of kind [`LocalKind::Position`].
        local: LocalId,
        /// Multiset.
        multiset: Place,
        /// Boolean predicate on the position.
        predicate: Expr,
    },
}

/// Claim in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimStatement {
    /// Kind; never [`Claim::Liveness`].
    pub claim: Claim,
    /// Message, if there is one.
    pub message: Option<String>,
    /// Place of the statement.
    pub span: Span,
}

/// Function or procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Place of the name.
    pub span: Span,
    /// Place of the whole declaration.
    pub whole: Span,
    /// Number of parameters: the first locals of the frame, of kind [`LocalKind::Value`] or
    /// [`LocalKind::Reference`].
    pub parameters: u32,
    /// Type of the result; `None` for a procedure. A function that ends without `return` is an
    /// error of the model.
    pub result: Option<TypeId>,
    /// Locals.
    pub frame: Frame,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// Block around a rule, start state, or property that binds a local.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Parameter of a ruleset: one instance for each value.
    Parameter {
        /// Local, of kind [`LocalKind::Bound`].
        local: LocalId,
        /// Values; bounds and step are constants.
        domain: Domain,
        /// Place of the declaration.
        span: Span,
    },
    /// Alias, bound in the state in which the rule is evaluated.
    Alias(Alias),
    /// `choose`: one instance for each element of a multiset.
    Choose {
        /// Local, of kind [`LocalKind::Position`].
        local: LocalId,
        /// Multiset.
        multiset: Place,
        /// Place of the declaration.
        span: Span,
    },
}

/// Rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name, if there is one.
    pub name: Option<String>,
    /// Place of the name, or of the keyword.
    pub span: Span,
    /// Place of the whole rule.
    pub whole: Span,
    /// Priority (CMurphi): of the enabled rules in a state, only those with the lowest number can
    /// happen. 0 if there is none.
    pub priority: i64,
    /// Surrounding blocks, outermost first.
    pub bindings: Vec<Binding>,
    /// Condition; `None` is true.
    pub guard: Option<Expr>,
    /// Locals, with those of the surrounding blocks.
    pub frame: Frame,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// Start state: statements on undefined global variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartState {
    /// Name, if there is one.
    pub name: Option<String>,
    /// Place of the name, or of the keyword.
    pub span: Span,
    /// Place of the whole start state.
    pub whole: Span,
    /// Surrounding blocks, outermost first.
    pub bindings: Vec<Binding>,
    /// Locals, with those of the surrounding blocks.
    pub frame: Frame,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// Property at the top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// Kind.
    pub claim: Claim,
    /// Name, if there is one.
    pub name: Option<String>,
    /// Place of the name, or of the keyword.
    pub span: Span,
    /// Place of the whole property.
    pub whole: Span,
    /// Surrounding blocks, outermost first.
    pub bindings: Vec<Binding>,
    /// Boolean condition.
    pub condition: Expr,
    /// Locals, with those of the surrounding blocks.
    pub frame: Frame,
}

/// Typed model.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Model {
    /// Types.
    pub types: Types,
    /// Names of types at the top level, in order. Several names may have one type.
    pub type_names: Vec<(String, TypeId)>,
    /// Named constants at the top level, in order.
    pub constants: Vec<Constant>,
    /// Global variables, in order: the state.
    pub globals: Vec<Global>,
    /// Functions and procedures, in order. Calls may be recursive.
    pub functions: Vec<Function>,
    /// Claims in statements, in order.
    pub claims: Vec<ClaimStatement>,
    /// Start states, in order. A model without one has no state.
    pub starts: Vec<StartState>,
    /// Rules, in order.
    pub rules: Vec<Rule>,
    /// Properties at the top level, in order.
    pub properties: Vec<Property>,
}

impl Model {
    /// Returns the type of a place's root.
    pub fn root_type(&self, frame: &Frame, root: Root) -> TypeId {
        match root {
            Root::Global(global) => self.globals[global.index()].ty,
            Root::Local(local) => frame.get(local).ty,
        }
    }
}
