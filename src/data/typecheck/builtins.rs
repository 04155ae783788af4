//! Overloads of the built-in operations: each name has a list of schemes, function sorts over at
//! most two sort variables. The numeric result sorts are those of the reference.

use super::super::signature::Builtin;
use super::types::{Ty, TyKind, Types};
use mu_syntax::ast::{BinaryOp, UnaryOp};

/// Sort with variables 0 and 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum SortPattern {
    Sort(Ty),
    Var(usize),
    List(usize),
    Set(usize),
    Bag(usize),
    FSet(usize),
    FBag(usize),
    /// A function from the first to the second.
    Function(usize, usize),
}

/// Built-in at a family of sorts.
#[derive(PartialEq, Debug)]
pub(super) struct Scheme {
    pub(super) builtin: Builtin,
    pub(super) params: &'static [SortPattern],
    pub(super) result: SortPattern,
}

impl SortPattern {
    /// Returns the variables of the pattern; true if the variable is below a container or function,
    /// so that its sort must match exactly.
    pub(super) fn variables(self) -> impl Iterator<Item = (usize, bool)> {
        let (first, second) = match self {
            SortPattern::Sort(_) => (None, None),
            SortPattern::Var(v) => (Some((v, false)), None),
            SortPattern::List(v)
            | SortPattern::Set(v)
            | SortPattern::Bag(v)
            | SortPattern::FSet(v)
            | SortPattern::FBag(v) => (Some((v, true)), None),
            SortPattern::Function(v, w) => (Some((v, true)), Some((w, true))),
        };
        first.into_iter().chain(second)
    }
    /// Returns the type for given values of the variables.
    pub(super) fn at(self, types: &mut Types, vars: [Ty; 2]) -> Ty {
        match self {
            SortPattern::Sort(ty) => ty,
            SortPattern::Var(v) => vars[v],
            SortPattern::List(v) => types.intern(TyKind::List(vars[v])),
            SortPattern::Set(v) => types.intern(TyKind::Set(vars[v])),
            SortPattern::Bag(v) => types.intern(TyKind::Bag(vars[v])),
            SortPattern::FSet(v) => types.intern(TyKind::FSet(vars[v])),
            SortPattern::FBag(v) => types.intern(TyKind::FBag(vars[v])),
            SortPattern::Function(v, w) => {
                types.intern(TyKind::Function([vars[v]].into(), vars[w]))
            }
        }
    }
    /// Returns the pattern as text, with S and T for the variables.
    fn text(self) -> String {
        let name = |v: usize| if v == 0 { "S" } else { "T" };
        match self {
            SortPattern::Sort(Ty::BOOL) => "Bool".into(),
            SortPattern::Sort(Ty::POS) => "Pos".into(),
            SortPattern::Sort(Ty::NAT) => "Nat".into(),
            SortPattern::Sort(Ty::INT) => "Int".into(),
            SortPattern::Sort(_) => "Real".into(),
            SortPattern::Var(v) => name(v).into(),
            SortPattern::List(v) => format!("List({})", name(v)),
            SortPattern::Set(v) => format!("Set({})", name(v)),
            SortPattern::Bag(v) => format!("Bag({})", name(v)),
            SortPattern::FSet(v) => format!("FSet({})", name(v)),
            SortPattern::FBag(v) => format!("FBag({})", name(v)),
            SortPattern::Function(v, w) => format!("({} -> {})", name(v), name(w)),
        }
    }
}

impl Scheme {
    /// Returns text such as `S # List(S) -> Bool` for messages.
    pub(super) fn text(&self) -> String {
        if self.params.is_empty() {
            return self.result.text();
        }
        let params: Vec<String> = self.params.iter().map(|p| p.text()).collect();
        format!("{} -> {}", params.join(" # "), self.result.text())
    }
    /// True if it has sort variables.
    pub(super) fn is_polymorphic(&self) -> bool {
        self.params.iter().any(|p| !matches!(p, SortPattern::Sort(_)))
    }
}

/// Returns the name of a binary operator.
pub(super) fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Implies => "=>",
        BinaryOp::Or => "||",
        BinaryOp::And => "&&",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterEqual => ">=",
        BinaryOp::In => "in",
        BinaryOp::Cons => "|>",
        BinaryOp::Snoc => "<|",
        BinaryOp::Concat => "++",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Divide => "/",
        BinaryOp::Div => "div",
        BinaryOp::Mod => "mod",
        BinaryOp::Multiply => "*",
        BinaryOp::At => ".",
    }
}

/// Returns the name of a prefix operator.
pub(super) fn unary_name(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Not => "!",
        UnaryOp::Minus => "-",
        UnaryOp::Size => "#",
    }
}

/// Schemes from lines `Builtin: pattern* => pattern`.
macro_rules! schemes {
    ($($builtin:ident: $($param:expr),* => $result:expr;)+) => {
        &[$(Scheme { builtin: Builtin::$builtin, params: &[$($param),*], result: $result }),+]
    };
}

/// Returns all schemes of a name; empty if the name is not a built-in.
pub(super) fn schemes(name: &str) -> &'static [Scheme] {
    use SortPattern::{Bag, FBag, FSet, Function, List, Set, Sort, Var};
    const BOOL: SortPattern = Sort(Ty::BOOL);
    const POS: SortPattern = Sort(Ty::POS);
    const NAT: SortPattern = Sort(Ty::NAT);
    const INT: SortPattern = Sort(Ty::INT);
    const REAL: SortPattern = Sort(Ty::REAL);
    match name {
        "true" => schemes! { True: => BOOL; },
        "false" => schemes! { False: => BOOL; },
        "==" => schemes! { Equal: Var(0), Var(0) => BOOL; },
        "!=" => schemes! { NotEqual: Var(0), Var(0) => BOOL; },
        "<" => schemes! { Less: Var(0), Var(0) => BOOL; },
        "<=" => schemes! { LessEqual: Var(0), Var(0) => BOOL; },
        ">" => schemes! { Greater: Var(0), Var(0) => BOOL; },
        ">=" => schemes! { GreaterEqual: Var(0), Var(0) => BOOL; },
        "if" => schemes! { If: BOOL, Var(0), Var(0) => Var(0); },
        "!" => schemes! { Not: BOOL => BOOL; Complement: Set(0) => Set(0); },
        "&&" => schemes! { And: BOOL, BOOL => BOOL; },
        "||" => schemes! { Or: BOOL, BOOL => BOOL; },
        "=>" => schemes! { Implies: BOOL, BOOL => BOOL; },
        "Pos2Nat" => schemes! { PosToNat: POS => NAT; },
        "Pos2Int" => schemes! { PosToInt: POS => INT; },
        "Pos2Real" => schemes! { PosToReal: POS => REAL; },
        "Nat2Pos" => schemes! { NatToPos: NAT => POS; },
        "Nat2Int" => schemes! { NatToInt: NAT => INT; },
        "Nat2Real" => schemes! { NatToReal: NAT => REAL; },
        "Int2Pos" => schemes! { IntToPos: INT => POS; },
        "Int2Nat" => schemes! { IntToNat: INT => NAT; },
        "Int2Real" => schemes! { IntToReal: INT => REAL; },
        "Real2Pos" => schemes! { RealToPos: REAL => POS; },
        "Real2Nat" => schemes! { RealToNat: REAL => NAT; },
        "Real2Int" => schemes! { RealToInt: REAL => INT; },
        "max" => schemes! {
            Max: POS, POS => POS; Max: POS, NAT => POS; Max: NAT, POS => POS; Max: NAT, NAT => NAT;
            Max: POS, INT => POS; Max: INT, POS => POS; Max: NAT, INT => NAT; Max: INT, NAT => NAT;
            Max: INT, INT => INT; Max: REAL, REAL => REAL;
        },
        "min" => schemes! {
            Min: POS, POS => POS; Min: NAT, NAT => NAT; Min: INT, INT => INT; Min: REAL, REAL => REAL;
        },
        "abs" => schemes! { Abs: INT => NAT; Abs: REAL => REAL; },
        "succ" => {
            schemes! { Succ: POS => POS; Succ: NAT => POS; Succ: INT => INT; Succ: REAL => REAL; }
        }
        "pred" => {
            schemes! { Pred: POS => NAT; Pred: NAT => INT; Pred: INT => INT; Pred: REAL => REAL; }
        }
        "sqrt" => schemes! { Sqrt: NAT => NAT; },
        "+" => schemes! {
            Add: POS, POS => POS; Add: POS, NAT => POS; Add: NAT, POS => POS; Add: NAT, NAT => NAT;
            Add: INT, INT => INT; Add: REAL, REAL => REAL;
            Union: FSet(0), FSet(0) => FSet(0); Union: Set(0), Set(0) => Set(0);
            Union: FBag(0), FBag(0) => FBag(0); Union: Bag(0), Bag(0) => Bag(0);
        },
        "-" => schemes! {
            Negate: POS => INT; Negate: NAT => INT; Negate: INT => INT; Negate: REAL => REAL;
            Subtract: POS, POS => INT; Subtract: NAT, NAT => INT; Subtract: INT, INT => INT; Subtract: REAL, REAL => REAL;
            Difference: FSet(0), FSet(0) => FSet(0); Difference: Set(0), Set(0) => Set(0);
            Difference: FBag(0), FBag(0) => FBag(0); Difference: Bag(0), Bag(0) => Bag(0);
        },
        "*" => schemes! {
            Multiply: POS, POS => POS; Multiply: NAT, NAT => NAT; Multiply: INT, INT => INT; Multiply: REAL, REAL => REAL;
            Intersection: FSet(0), FSet(0) => FSet(0); Intersection: Set(0), Set(0) => Set(0);
            Intersection: FBag(0), FBag(0) => FBag(0); Intersection: Bag(0), Bag(0) => Bag(0);
        },
        "/" => schemes! {
            Divide: POS, POS => REAL; Divide: NAT, NAT => REAL; Divide: INT, INT => REAL; Divide: REAL, REAL => REAL;
        },
        "div" => schemes! { Div: NAT, POS => NAT; Div: INT, POS => INT; },
        "mod" => schemes! { Mod: NAT, POS => NAT; Mod: INT, POS => NAT; },
        "exp" => {
            schemes! { Exp: POS, NAT => POS; Exp: NAT, NAT => NAT; Exp: INT, NAT => INT; Exp: REAL, INT => REAL; }
        }
        "floor" => schemes! { Floor: REAL => INT; },
        "ceil" => schemes! { Ceil: REAL => INT; },
        "round" => schemes! { Round: REAL => INT; },
        "|>" => schemes! { Cons: Var(0), List(0) => List(0); },
        "<|" => schemes! { Snoc: List(0), Var(0) => List(0); },
        "++" => schemes! { Concat: List(0), List(0) => List(0); },
        "." => schemes! { At: List(0), NAT => Var(0); },
        "head" => schemes! { Head: List(0) => Var(0); },
        "tail" => schemes! { Tail: List(0) => List(0); },
        "rhead" => schemes! { RHead: List(0) => Var(0); },
        "rtail" => schemes! { RTail: List(0) => List(0); },
        "#" => schemes! { Size: List(0) => NAT; Size: FSet(0) => NAT; Size: FBag(0) => NAT; },
        "in" => schemes! {
            In: Var(0), List(0) => BOOL; In: Var(0), FSet(0) => BOOL; In: Var(0), Set(0) => BOOL;
            In: Var(0), FBag(0) => BOOL; In: Var(0), Bag(0) => BOOL;
        },
        "Set2Bag" => schemes! { SetToBag: Set(0) => Bag(0); },
        "Bag2Set" => schemes! { BagToSet: Bag(0) => Set(0); },
        "count" => schemes! { Count: Var(0), FBag(0) => NAT; Count: Var(0), Bag(0) => NAT; },
        "pick" => schemes! { Pick: FSet(0) => Var(0); Pick: FBag(0) => Var(0); },
        "@func_update" => schemes! { Update: Function(0, 1), Var(0), Var(1) => Function(0, 1); },
        _ => &[],
    }
}
