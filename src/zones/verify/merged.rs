//! Sorts of any size in the checker: of their constants, a case tracks some; of any other constant
//! only that it is another one is known.
//!
//! In: sorts with enough constants ([`AnySize`]), of which the premise is that the process for any
//! size has the same text. Out: a check of that text, and choices of constants for an evaluation.
//! An array over such a sort has known entries at tracked constants and at constants that are no
//! part of the family; its other entries have any value, which is chosen when it is read.
//!
//! *Lemma.* Each step of the process of any size, in any state, is the image under a renaming of
//! one that is evaluated. *Proof.* [`check`] confirms that no term names a constant of the family,
//! compares values with such constants by order, or binds a variable over them. So a renaming
//! commutes with evaluation. An evaluation reads the constants in the values that it is given,
//! those of sums, and entries of arrays. The given ones are tracked, or others, for which all
//! choices of equal ones are made; a summed constant and the content of an entry is each of these,
//! or the next constant that nothing names, which stands for all further ones. All choices are
//! made, each with constants of the process at hand; if these do not suffice, the check fails. ∎
//! The value afterwards is lifted: constants that are not tracked become any other one, and entries
//! at them are forgotten, so each state of an instance is represented with the tracked constants as
//! the first ones. An entry that is not chosen leaves a term without a value, which is an error.
//!
//! Cost: the partitions of the other constants in the values that a summand reads.

use super::evaluate::fails;
use super::identities::{holds_identities, is_plain};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{OpId, SortId, VarId};
use mu_data::expr::{DataSpec, Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;
use mu_process::linear::LinearProcess;

/// A sort with constants of which there may be any number.
#[derive(Clone, Debug)]
pub struct AnySize {
    /// The sort.
    pub sort: SortId,
    /// The constants that represent any number of them; the sort may have others.
    pub constants: Vec<OpId>,
}

/// A sort of any size in a case: its first constants are tracked.
#[derive(Clone, Debug)]
pub(super) struct MergedSort {
    pub sort: SortId,
    pub constants: Vec<OpId>,
    /// Constants that are no part of the family.
    pub others: Vec<OpId>,
    index: AHashMap<OpId, usize>,
    pub tracked: usize,
}

impl MergedSort {
    pub fn new(signature: &Signature, given: &AnySize) -> Result<Self, Diagnostic> {
        let own = signature.sorts.declared_sort(given.sort).map(|n| n.constructors.as_slice());
        let others = own.unwrap_or_default().iter().copied();
        let others: Vec<OpId> = others.filter(|op| !given.constants.contains(op)).collect();
        let constant = |op: &OpId| {
            signature.op(*op).sort == given.sort
                && matches!(signature.op(*op).kind, OpKind::Constructor(_))
        };
        if !others.iter().chain(&given.constants).all(constant) {
            return Err(fails("a sort of any size has values with parts"));
        }
        Ok(Self {
            sort: given.sort,
            constants: given.constants.clone(),
            others,
            index: given.constants.iter().enumerate().map(|(i, c)| (*c, i)).collect(),
            tracked: 0,
        })
    }

    /// Returns the number of a constant of the family.
    pub fn position(&self, e: &Expr) -> Option<usize> {
        match e.kind {
            ExprKind::Op(op) => self.index.get(&op).copied(),
            _ => None,
        }
    }

    /// Returns a constant of the family.
    pub fn constant(&self, signature: &Signature, i: usize) -> Result<Expr, Diagnostic> {
        let op = self.constants.get(i).ok_or_else(|| fails("a step reads too many constants"))?;
        Ok(Expr::op(signature, *op))
    }

    /// True if a term names a constant that is not tracked.
    pub fn is_untracked(&self, e: &Expr) -> bool {
        let mut found = false;
        e.each_op(&mut |op| found |= self.index.get(&op).is_some_and(|i| *i >= self.tracked));
        found
    }

    /// Returns one of the values that a new variable may have: of `named` constants of the family,
    /// the next one, or others. `choose`: chooses one of a number of options.
    pub fn choose_value(
        &self,
        signature: &Signature,
        named: &mut usize,
        choose: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Expr> {
        let chosen = choose(self.others.len() + *named + 1);
        let Some(i) = chosen.checked_sub(self.others.len()) else {
            return Some(Expr::op(signature, self.others[chosen]));
        };
        *named = (*named).max(i + 1);
        Some(Expr::op(signature, *self.constants.get(i)?))
    }
}

/// Returns the sort of the constants that an array is over; `None` for other functions.
pub(super) fn array(signature: &Signature, merged: &[MergedSort], sort: SortId) -> Option<usize> {
    let SortKind::Function(domain, _) = signature.sorts.kind(sort) else { return None };
    let [own] = domain[..] else { return None };
    merged.iter().position(|m| m.sort == own)
}

/// Adds variables for arrays over sorts of any size, by sort.
pub(super) fn add_arrays(
    signature: &mut Signature,
    merged: &[MergedSort],
    count: usize,
    pool: &mut AHashMap<SortId, Vec<VarId>>,
) {
    let all: Vec<SortId> = (0..signature.sorts.len()).map(SortId::new).collect();
    let arrays = all.into_iter().filter(|s| array(signature, merged, *s).is_some());
    for sort in arrays.collect::<Vec<_>>() {
        let own: Vec<VarId> = (0..count).map(|_| signature.fresh_var("an array", sort)).collect();
        // The operation that updates it.
        if let (SortKind::Function(domain, range), Some(var)) =
            (signature.sorts.kind(sort).clone(), own.first())
        {
            let [key, entry] = [domain[0], range].map(|s| signature.fresh_var("an entry", s));
            let parts = [*var, key, entry].map(|v| Expr::var(signature, v)).to_vec();
            Expr::builtin(signature, Builtin::Update, parts, sort);
        }
        pool.insert(sort, own);
    }
}

/// Checks that nothing of the text depends on the constants of a family.
///
/// # Errors
///
/// A part of the text that depends on the constants, with the reason.
pub(super) fn check(
    merged: &MergedSort,
    process: &LinearProcess,
    initial: &[(usize, Expr)],
    data: &DataSpec,
) -> Result<(), Diagnostic> {
    let own = |e: &Expr| independent(&data.signature, merged, e);
    for equation in &data.equations {
        own(&equation.lhs)?;
        own(&equation.rhs)?;
        equation.condition.iter().try_for_each(own)?;
    }
    for summand in &process.summands {
        own(&summand.guard)?;
        summand.updates.iter().try_for_each(|u| own(&u.1))?;
        summand.actions.iter().flat_map(|a| &a.args).try_for_each(own)?;
    }
    process.params.iter().try_for_each(|p| own(&p.init))?;
    initial.iter().try_for_each(|(_, e)| own(e))
}

/// Checks that a term names no constant of a family, binds no variable over them, and compares none
/// by order.
pub(super) fn independent(
    signature: &Signature,
    merged: &MergedSort,
    e: &Expr,
) -> Result<(), Diagnostic> {
    let mut named = false;
    e.each_op(&mut |op| named |= merged.index.contains_key(&op));
    if named {
        return Err(fails("a constant of a sort of any size is named").or_span(e.span));
    }
    is_plain(signature, merged.sort, e)
}

/// True if a function sort has arguments with constants of a sort of any size.
pub(super) fn is_over(signature: &Signature, merged: &[MergedSort], sort: SortId) -> bool {
    let SortKind::Function(domain, _) = signature.sorts.kind(sort) else { return false };
    let of = |s: SortId| merged.iter().any(|m| holds_identities(signature, s, m.sort));
    domain.iter().any(|s| of(*s))
}
