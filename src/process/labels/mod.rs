//! Labels as typed multi-actions, which action formulas match in the same way for every front end.
//!
//! A front end that knows its actions implements [`ActionLabels`]. For labels that are only texts
//! there are [`declared::DeclaredLabels`], typed by given declarations, and
//! [`inferred::InferredLabels`], typed by inference. Invariant: the arguments of a multi-action are
//! closed normal forms, so that equal values are equal expressions.

pub mod declared;
pub mod inferred;

use mu_base::SourceId;
use mu_base::ids::{ActId, LabelId, OpId, SortId};
use mu_base::label_time;
use mu_data::expr::Expr;
use mu_syntax::ast::{Data, Ident};
use std::sync::Arc;

/// Name of the pseudo-action that holds the time of a label: `a @ 3` consists of `a` and `@` with
/// the time as its argument. No declared action has this name, and formulas match a label without
/// this part.
pub const TIME_STAMP: &str = "@";

/// Name of the action, without arguments, that a lineariser adds for a successful termination. An
/// action of a specification with this name is the same: a printed linear process has it.
pub const TERMINATE: &str = "Terminate";

/// Parses the actions of a label, without its time. `None` if the text is not a multi-action.
fn untimed_actions(text: &str) -> Option<Vec<(Ident, Vec<Data>)>> {
    match label_time::split(text) {
        ("tau", Some(_)) => Some(Vec::new()),
        (actions, _) => mu_syntax::parse_multi_action(SourceId::default(), actions).ok(),
    }
}

/// Declared action; overloads of one name are different actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDecl {
    /// Name.
    pub name: String,
    /// Argument sorts.
    pub sorts: Vec<SortId>,
}

/// Multi-action with values: closed normal forms, sorted by action id, then by the text of
/// arguments. Empty for tau.
pub type MultiAction = Vec<(ActId, Vec<Expr>)>;

/// Access to the multi-action behind each label of a model or transition system.
pub trait ActionLabels: Send + Sync {
    /// Returns the multi-action of a label.
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction>;
    /// Returns the images of constructors under a symmetry of the model, given by its number there;
    /// only constructors that change. `None` if unknown.
    fn constructor_images(&self, _symmetry: usize) -> Option<&[(OpId, OpId)]> {
        None
    }
}
