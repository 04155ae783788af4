//! Operations of the data language: user constructors and mappings, projections, recognisers, and
//! the built-in ones at their sorts.

use super::sort::{SortKind, Sorts};
use ahash::AHashMap;
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};

/// Built-in operations. Each is a family over sorts; an [`Op`] fixes the sorts by its function
/// sort.
///
/// Numbers have one native representation, so the coercions (`PosToNat` …) are identities at run
/// time; typed terms contain them because they have sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Builtin {
    // any sort
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    If,
    // Bool
    True,
    False,
    Not,
    And,
    Or,
    Implies,
    // numbers: coercions (widening: implicit; narrowing: user functions such as `Int2Nat`, a
    // normal form where undefined)
    PosToNat,
    PosToInt,
    PosToReal,
    NatToInt,
    NatToReal,
    IntToReal,
    NatToPos,
    IntToPos,
    IntToNat,
    RealToPos,
    RealToNat,
    RealToInt,
    Max,
    Min,
    Abs,
    Negate,
    Succ,
    Pred,
    Add,
    Subtract,
    Multiply,
    Divide,
    Div,
    Mod,
    Exp,
    Floor,
    Ceil,
    Round,
    /// `sqrt`: the integer square root of a Nat.
    Sqrt,
    // lists
    EmptyList,
    Cons,
    Snoc,
    Concat,
    At,
    Head,
    Tail,
    RHead,
    RTail,
    Size,
    In,
    // sets and bags (finite or not; the sort determines which). `FSetToSet` and `FBagToBag` are the
    // implicit coercions.
    EmptySet,
    EmptyBag,
    SetInsert,
    BagInsert,
    FSetToSet,
    FBagToBag,
    SetToBag,
    BagToSet,
    FSetToFBag,
    FBagToFSet,
    Union,
    Difference,
    Intersection,
    Complement,
    Count,
    Subset,
    ProperSubset,
    /// `pick`: some element of a non-empty FSet or FBag (the first in its order).
    Pick,
    // functions
    Update,
}

/// Kind of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// The n-th constructor of a declared sort.
    Constructor(u32),
    /// `args[arg]` of the constructor(s) that carry this projection name: pairs (constructor,
    /// argument index).
    Projection(Vec<(OpId, u32)>),
    /// Recogniser of the constructor(s) with this recogniser name.
    Recogniser(Vec<OpId>),
    /// A user mapping (its equations are the data specification's).
    Mapping,
    /// A built-in.
    Builtin(Builtin),
}

/// Operation with its sort. A constant has a sort that is not a function sort (or a function sort,
/// for a constant function).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// Name as users write it (built-ins too: `==`, `|>`, `head`).
    pub name: String,
    /// Full sort: `A # B -> C`, or a constant's.
    pub sort: SortId,
    /// Kind.
    pub kind: OpKind,
}

/// Variable: every binder in a file makes its own.
#[derive(Clone, Debug)]
pub struct Var {
    /// Name as written; two variables may share a name.
    pub name: String,
    /// Sort.
    pub sort: SortId,
    /// Place of the declaration, if it is in a source.
    pub span: Span,
}

/// Sorts, operations and variables.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The sorts.
    pub sorts: Sorts,
    /// Sort aliases `A = S` in order of declaration, including those for structured sorts with
    /// another name, so that formulas and user input can use them.
    pub aliases: Vec<(String, SortId)>,
    ops: Vec<Op>,
    builtin: AHashMap<(Builtin, SortId), OpId>,
    vars: Vec<Var>,
}

impl Signature {
    /// Adds a user operation.
    pub fn add_op(&mut self, op: Op) -> OpId {
        let id = OpId::new(self.ops.len());
        self.ops.push(op);
        id
    }
    /// Returns a user operation for changes (projections are completed while constructors are
    /// read).
    pub fn op_mut(&mut self, id: OpId) -> &mut Op {
        &mut self.ops[id.index()]
    }
    /// Returns a built-in at a sort (its full sort); interned.
    pub fn builtin(&mut self, builtin: Builtin, sort: SortId) -> OpId {
        if let Some(&id) = self.builtin.get(&(builtin, sort)) {
            return id;
        }
        let id =
            self.add_op(Op { name: builtin.name().into(), sort, kind: OpKind::Builtin(builtin) });
        self.builtin.insert((builtin, sort), id);
        id
    }
    /// Returns the number of operations.
    pub fn op_count(&self) -> usize {
        self.ops.len()
    }
    /// Returns the operation of an id.
    pub fn op(&self, id: OpId) -> &Op {
        &self.ops[id.index()]
    }
    /// Iterates over all operations.
    pub fn ops(&self) -> impl Iterator<Item = (OpId, &Op)> {
        self.ops.iter().enumerate().map(|(i, o)| (OpId::new(i), o))
    }
    /// Returns a name that no operation has: `name`, with further underscores if necessary.
    pub fn free_op_name(&self, mut name: String) -> String {
        while self.ops.iter().any(|o| o.name == name) {
            name.push('_');
        }
        name
    }
    /// Creates a variable.
    pub fn fresh_var(&mut self, name: impl Into<String>, sort: SortId) -> VarId {
        self.declare_var(name, sort, Span::default())
    }
    /// Creates a variable that is declared at a place.
    pub fn declare_var(&mut self, name: impl Into<String>, sort: SortId, span: Span) -> VarId {
        let id = VarId::new(self.vars.len());
        self.vars.push(Var { name: name.into(), sort, span });
        id
    }
    /// Creates a variable with name, sort and place of another.
    pub fn copy_var(&mut self, var: VarId) -> VarId {
        let id = VarId::new(self.vars.len());
        self.vars.push(self.var(var).clone());
        id
    }
    /// Returns the variable of an id.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }
    /// Returns the number of variables so far.
    pub fn var_count(&self) -> usize {
        self.vars.len()
    }
    /// Splits a sort of an operation into the argument sorts and the result sort.
    pub fn domain_range(&self, sort: SortId) -> (&[SortId], SortId) {
        match self.sorts.kind(sort) {
            SortKind::Function(domain, range) => (domain, *range),
            _ => (&[], sort),
        }
    }
}

impl Builtin {
    /// Returns the name users write. Internal operations (implicit coercions, constructors of
    /// literals) have a name starting with `@`.
    pub fn name(self) -> &'static str {
        use Builtin::*;
        match self {
            Equal => "==",
            NotEqual => "!=",
            Less => "<",
            LessEqual => "<=",
            Greater => ">",
            GreaterEqual => ">=",
            If => "if",
            True => "true",
            False => "false",
            Not => "!",
            And => "&&",
            Or => "||",
            Implies => "=>",
            PosToNat => "Pos2Nat",
            PosToInt => "Pos2Int",
            PosToReal => "Pos2Real",
            NatToInt => "Nat2Int",
            NatToReal => "Nat2Real",
            IntToReal => "Int2Real",
            NatToPos => "Nat2Pos",
            IntToPos => "Int2Pos",
            IntToNat => "Int2Nat",
            RealToPos => "Real2Pos",
            RealToNat => "Real2Nat",
            RealToInt => "Real2Int",
            Max => "max",
            Min => "min",
            Abs => "abs",
            Negate => "-",
            Succ => "succ",
            Pred => "pred",
            Add => "+",
            Subtract => "-",
            Multiply => "*",
            Divide => "/",
            Div => "div",
            Mod => "mod",
            Exp => "exp",
            Floor => "floor",
            Ceil => "ceil",
            Round => "round",
            Sqrt => "sqrt",
            EmptyList => "[]",
            Cons => "|>",
            Snoc => "<|",
            Concat => "++",
            At => ".",
            Head => "head",
            Tail => "tail",
            RHead => "rhead",
            RTail => "rtail",
            Size => "#",
            In => "in",
            EmptySet => "{}",
            EmptyBag => "{:}",
            SetInsert => "@set_insert",
            BagInsert => "@bag_insert",
            FSetToSet => "@fset_set",
            FBagToBag => "@fbag_bag",
            SetToBag => "Set2Bag",
            BagToSet => "Bag2Set",
            FSetToFBag => "@fset_fbag",
            FBagToFSet => "@fbag_fset",
            Union => "+",
            Difference => "-",
            Intersection => "*",
            Complement => "!",
            Count => "count",
            Subset => "<=",
            ProperSubset => "<",
            Pick => "pick",
            Update => "@func_update",
        }
    }
}
