//! Translation of values between specifications that differ in the number of constants of a sort.
//!
//! Input: two signatures, corresponding constants. Output: for a closed value of constructors and
//! numbers, the same value of the other signature; operations and sorts correspond by name. `None`
//! if the other signature has no such operation. Cost: linear in the value.

use ahash::AHashMap;
use mu_base::Span;
use mu_base::ids::{OpId, SortId};
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::Signature;

/// A translation of values.
pub struct Translation {
    ops: AHashMap<OpId, OpId>,
    /// Corresponding constants with different names.
    constants: AHashMap<OpId, OpId>,
    sorts: AHashMap<SortId, SortId>,
}

/// Returns the operations of a signature by name and sort.
fn by_name(signature: &Signature) -> AHashMap<(String, String), OpId> {
    signature.ops().map(|(id, op)| ((op.name.clone(), signature.sorts.text(op.sort)), id)).collect()
}

impl Translation {
    /// Creates the translation from one signature to another.
    pub fn new(from: &Signature, to: &Signature) -> Self {
        let (ours, theirs) = (by_name(from), by_name(to));
        let ops = ours.iter().filter_map(|(key, op)| Some((*op, *theirs.get(key)?))).collect();
        let names: AHashMap<String, SortId> =
            (0..to.sorts.len()).map(SortId::new).map(|s| (to.sorts.text(s), s)).collect();
        let all = (0..from.sorts.len()).map(SortId::new);
        let sorts = all.filter_map(|s| Some((s, *names.get(&from.sorts.text(s))?))).collect();
        Self { ops, constants: AHashMap::new(), sorts }
    }

    /// Sets the correspondence of constants.
    pub fn pair(&mut self, constants: impl Iterator<Item = (OpId, OpId)>) {
        self.constants = constants.collect();
    }

    /// Translates an operation. `None` if the other model has no counterpart.
    pub fn op(&self, op: OpId) -> Option<OpId> {
        self.constants.get(&op).or_else(|| self.ops.get(&op)).copied()
    }

    /// Translates a value. `None` if the other model lacks an operation or a sort of it, or if it
    /// is not closed.
    pub fn value(&self, e: &Expr) -> Option<Expr> {
        let sort = *self.sorts.get(&e.sort)?;
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let kind = match &e.kind {
                ExprKind::Op(op) => ExprKind::Op(self.op(*op)?),
                ExprKind::Number(n) => ExprKind::Number(n.clone()),
                ExprKind::Apply(head, args) => ExprKind::Apply(
                    self.value(head)?,
                    args.iter().map(|a| self.value(a)).collect::<Option<_>>()?,
                ),
                ExprKind::Var(_) | ExprKind::Bind(..) | ExprKind::Where(..) => return None,
            };
            Some(Expr::new(kind, sort, Span::default()))
        })
    }
}
