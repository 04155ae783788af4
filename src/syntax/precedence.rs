//! Precedence levels of the language, for parser and printer alike; a higher level binds tighter.
//!
//! The levels are those of the mCRL2 language reference (2025 and later), where an operator of a
//! higher level always binds tighter than one of a lower level, *also through a prefix operator
//! between them*: a modality (8) ends before `=>` (4) even if the text between is a quantifier (2),
//! so `[a] forall x: S. p => q` reads `([a] forall x: S. p) => q`.
//! [`OperatorStack`](super::parse::operators::OperatorStack) implements this rule.

use super::ast::{BinaryOp, StateOp, UnaryOp};

/// Associativity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assoc {
    Left,
    Right,
}

/// Further levels of data expressions; see [`BinaryOp::level`].
pub(crate) mod data {
    pub(crate) const WHERE: u8 = 0;
    pub(crate) const BINDER: u8 = 1;
    pub(crate) const UNARY: u8 = 13;
}

/// Levels of process expressions.
pub(crate) mod process {
    pub(crate) const CHOICE: u8 = 1;
    pub(crate) const SUM: u8 = 2;
    pub(crate) const PARALLEL: u8 = 3;
    pub(crate) const LEFT_MERGE: u8 = 4;
    pub(crate) const CONDITION: u8 = 5;
    pub(crate) const UNTIL: u8 = 6;
    pub(crate) const SEQUENCE: u8 = 7;
    pub(crate) const AT: u8 = 8;
    pub(crate) const SYNC: u8 = 9;
}

/// Further levels of state formulas; see [`StateOp::state_level`].
pub(crate) mod state {
    pub(crate) const FIX: u8 = 1;
    pub(crate) const QUANTIFIER: u8 = 2;
    pub(crate) const MODALITY: u8 = 8;
    pub(crate) const UNARY: u8 = 9;
}

/// Levels of regular formulas; an action formula in one binds tighter than all of these.
pub(crate) mod regular {
    pub(crate) const ALTERNATIVE: u8 = 1;
    pub(crate) const SEQUENCE: u8 = 2;
    pub(crate) const REPEAT: u8 = 3;
}

/// Levels of action formulas, above those of regular formulas.
pub(crate) mod action {
    pub(crate) const QUANTIFIER: u8 = 10;
    pub(crate) const IMPLIES: u8 = 12;
    pub(crate) const OR: u8 = 13;
    pub(crate) const AND: u8 = 14;
    pub(crate) const AT: u8 = 15;
    pub(crate) const NOT: u8 = 16;
}

impl BinaryOp {
    /// Returns level and associativity.
    pub(crate) fn level(self) -> (u8, Assoc) {
        use BinaryOp as B;
        match self {
            B::Implies => (2, Assoc::Right),
            B::Or => (3, Assoc::Right),
            B::And => (4, Assoc::Right),
            B::Equal | B::NotEqual => (5, Assoc::Left),
            B::Less | B::LessEqual | B::Greater | B::GreaterEqual | B::In => (6, Assoc::Left),
            B::Cons => (7, Assoc::Right),
            B::Snoc => (8, Assoc::Left),
            B::Concat => (9, Assoc::Left),
            B::Add | B::Subtract => (10, Assoc::Left),
            B::Divide | B::Div | B::Mod => (11, Assoc::Left),
            B::Multiply | B::At => (12, Assoc::Left),
        }
    }
    /// Returns the symbol.
    pub fn symbol(self) -> &'static str {
        use BinaryOp as B;
        match self {
            B::Implies => "=>",
            B::Or => "||",
            B::And => "&&",
            B::Equal => "==",
            B::NotEqual => "!=",
            B::Less => "<",
            B::LessEqual => "<=",
            B::Greater => ">",
            B::GreaterEqual => ">=",
            B::In => "in",
            B::Cons => "|>",
            B::Snoc => "<|",
            B::Concat => "++",
            B::Add => "+",
            B::Subtract => "-",
            B::Divide => "/",
            B::Div => "div",
            B::Mod => "mod",
            B::Multiply => "*",
            B::At => ".",
        }
    }
}

impl UnaryOp {
    /// Returns the symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::Minus => "-",
            UnaryOp::Size => "#",
        }
    }
}

impl StateOp {
    /// Returns level and associativity in state formulas.
    pub(crate) fn state_level(self) -> (u8, Assoc) {
        match self {
            StateOp::Add => (3, Assoc::Right),
            StateOp::Implies => (4, Assoc::Right),
            StateOp::Or => (5, Assoc::Right),
            StateOp::And => (6, Assoc::Right),
            StateOp::Multiply => (7, Assoc::Left),
        }
    }
    /// Returns the level in action formulas (all are right associative); `None` for the
    /// quantitative operators.
    pub(crate) fn action_level(self) -> Option<u8> {
        match self {
            StateOp::Implies => Some(action::IMPLIES),
            StateOp::Or => Some(action::OR),
            StateOp::And => Some(action::AND),
            StateOp::Add | StateOp::Multiply => None,
        }
    }
    /// Returns the symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            StateOp::Implies => "=>",
            StateOp::Or => "||",
            StateOp::And => "&&",
            StateOp::Add => "+",
            StateOp::Multiply => "*",
        }
    }
}
