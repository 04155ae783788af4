//! Functions that do more than compute their result.

use crate::typed::{
    AliasTarget, Argument, Claim, ExprKind, Frame, LocalId, LocalKind, Model, Place, Root, Stmt,
    StmtKind,
};
use crate::walk::{self, Part};

/// Returns, for each function, true if it may write a global variable or a `var` parameter, may
/// discard the step by an assumption, or calls a function that does. An alias of a local variable
/// counts as local.
pub(super) fn functions_with_effects(model: &Model) -> Vec<bool> {
    let mut found = vec![false; model.functions.len()];
    for (i, function) in model.functions.iter().enumerate() {
        // Functions call earlier ones and themselves; calls of the function itself add nothing new.
        let mut scan = Scan { model, known: &found, frame: &function.frame, local: Vec::new() };
        let mut has_effect = false;
        walk::statements(&function.body, &mut |part| has_effect |= scan.has_effect(part));
        found[i] = has_effect;
    }
    found
}

struct Scan<'a> {
    model: &'a Model,
    known: &'a [bool],
    frame: &'a Frame,
    /// Aliases of places in this frame.
    local: Vec<LocalId>,
}

impl Scan<'_> {
    fn is_outside(&self, place: &Place) -> bool {
        match place.root {
            Root::Global(_) => true,
            Root::Local(id) => {
                self.frame.get(id).kind == LocalKind::Reference && !self.local.contains(&id)
            }
        }
    }
    /// True if a part has an effect by itself, without its own parts.
    fn has_effect(&mut self, part: Part<'_>) -> bool {
        match part {
            Part::Stmt(stmt) => self.statement(stmt),
            Part::Expr(expr) => match expr.kind {
                ExprKind::Call(function, _) => self.known[function.index()],
                _ => false,
            },
            // A place passed by reference may be written there.
            Part::Argument(Argument::Place(place)) => self.is_outside(place),
            Part::Argument(Argument::Value(_) | Argument::Undefined(_)) => false,
        }
    }
    fn statement(&mut self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Assign { target, .. } => self.is_outside(target),
            StmtKind::Undefine(place) | StmtKind::Clear(place) => self.is_outside(place),
            StmtKind::MultisetAdd { multiset, .. }
            | StmtKind::MultisetRemove { multiset, .. }
            | StmtKind::MultisetRemovePredicate { multiset, .. } => self.is_outside(multiset),
            StmtKind::Claim { number, .. } => {
                self.model.claims[*number as usize].claim == Claim::Assume
            }
            StmtKind::Call(function, _) => self.known[function.index()],
            StmtKind::Alias { aliases, .. } => {
                for alias in aliases {
                    if let AliasTarget::Place(place) = &alias.target
                        && !self.is_outside(place)
                    {
                        self.local.push(alias.local);
                    }
                }
                false
            }
            StmtKind::If { .. }
            | StmtKind::Switch { .. }
            | StmtKind::For { .. }
            | StmtKind::While { .. }
            | StmtKind::Return(_)
            | StmtKind::Put(_)
            | StmtKind::Error(_) => false,
        }
    }
}
