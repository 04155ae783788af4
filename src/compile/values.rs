//! Access to values and labels by number, for models that build on a compiled one.
//!
//! Such a model (an abstraction, say) has states of the same shape with its own values: it reads a
//! value by its number and gets a number for a normal form. Cost: a lock and a lookup each;
//! frequent callers should cache.

use super::Compiled;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_data::engine::Engine;
use mu_data::expr::Expr;
use mu_model::Slot;
use mu_process::labels::MultiAction;
use std::sync::PoisonError;

/// Limit on the values cached as expressions; beyond it, the cache is not extended.
const MAX_CACHED: usize = 1 << 16;

impl Compiled {
    /// Creates an evaluator under the limits of the run, to compute normal forms.
    pub fn engine(&self) -> Engine {
        Engine::new(self.program.clone()).with_budget(&self.budget())
    }
    /// Returns the value of a slot's number, a closed normal form.
    pub fn value(&self, slot: Slot, id: u32) -> Expr {
        let table = self.table_of[slot as usize];
        let known =
            |expr_cache: &AHashMap<(usize, u32), Expr>| expr_cache.get(&(table, id)).cloned();
        if let Some(e) = known(&self.expr_cache.read().unwrap_or_else(PoisonError::into_inner)) {
            return e;
        }
        let e = self.expr_of(&mut self.expr_engine(), slot, id);
        let mut expr_cache = self.expr_cache.write().unwrap_or_else(PoisonError::into_inner);
        if expr_cache.len() >= MAX_CACHED {
            expr_cache.clear();
        }
        expr_cache.insert((table, id), e.clone());
        e
    }
    /// Creates an evaluator to convert values of the tables to expressions.
    pub(crate) fn expr_engine(&self) -> Engine {
        Engine::new(self.program.clone()).with_shared_terms(&self.terms)
    }
    /// Returns the value of a slot's number as an expression.
    pub(crate) fn expr_of(&self, expr_engine: &mut Engine, slot: Slot, id: u32) -> Expr {
        let value = expr_engine
            .of_term(self.tables[self.table_of[slot as usize]].get(id))
            .expect("a value in a table is a normal form");
        expr_engine.to_expr_at(&value, self.sort_of[slot as usize])
    }
    /// Returns the number of a normal form.
    pub(crate) fn number(
        &self,
        expr_engine: &mut Engine,
        slot: Slot,
        value: &Expr,
    ) -> Result<u32, Diagnostic> {
        let value = expr_engine.from_normal(value)?;
        let term = expr_engine.term_at(&value, self.sort_of[slot as usize]);
        Ok(self.tables[self.table_of[slot as usize]].intern(term).0)
    }
    /// Returns the number of a value in a slot. The value must be a normal form as
    /// [`Engine::to_expr_at`] gives it at the slot's sort.
    pub fn intern(&self, slot: Slot, value: &Expr) -> u32 {
        self.number(&mut self.expr_engine(), slot, value)
            .expect("a normal form is evaluated without limits")
    }
    /// Returns the label of a multi-action of such normal forms.
    pub fn intern_label(&self, mut multi: MultiAction) -> LabelId {
        let signature = self.program.signature();
        multi.sort_by_cached_key(|(a, args)| {
            (*a, args.iter().map(|e| mu_data::print::expression(signature, e)).collect::<Vec<_>>())
        });
        if multi.is_empty() { LabelId::TAU } else { self.labels.intern(multi) }
    }
    /// Returns the index of the summand that a group comes from.
    pub fn summand_of(&self, group: usize) -> usize {
        self.codes[group].summand
    }
}
