//! Labels as typed multi-actions: what formulas match, whatever front end a model has.
//!
//! A front end that knows its actions implements [`ActionLabels`]; for labels that are only texts
//! there are [`declared::DeclaredLabels`], typed by given declarations, and
//! [`inferred::InferredLabels`], typed by what occurs. Invariant: the arguments of a multi-action
//! are closed normal forms, so that equal values are equal expressions.
#![warn(missing_docs)]

pub mod declared;
pub mod inferred;

use mu_base::ids::{ActId, LabelId, OpId, SortId};
use mu_data::expr::Expr;
use std::sync::Arc;

/// The name of the last part of a label whose action says when it happens: `a @ 3` is the actions
/// `a` and `@` with the time as its argument. No action that somebody declares has this name, and
/// formulas match a label without this part.
pub const TIME_STAMP: &str = "@";

/// A declared action; overloads of one name are different actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDecl {
    /// The name.
    pub name: String,
    /// Argument sorts.
    pub sorts: Vec<SortId>,
}

/// A multi-action with values: closed normal forms, sorted by action id (then by arguments' text
/// for equal actions). Empty is tau.
pub type MultiAction = Vec<(ActId, Vec<Expr>)>;

/// Gives the multi-action behind a label of a model or transition system, so that formulas can be
/// matched against it.
pub trait ActionLabels: Send + Sync {
    /// The multi-action of a label.
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction>;
    /// What a symmetry of the model (by its number there) makes of constructors: those that it
    /// changes.
    fn constructor_images(&self, _symmetry: usize) -> Option<&[(OpId, OpId)]> {
        None
    }
}
