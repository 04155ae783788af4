//! Values and labels by number, for models that are made on top of a compiled one.
//!
//! Such a model (an abstraction, say) has states of the same shape, whose values it makes itself:
//! it reads a value by its number and gets a number for a normal form. Cost: a lock and a lookup
//! each; whoever asks often keeps the answers.

use super::Compiled;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_data::engine::Engine;
use mu_data::expr::Expr;
use mu_labels::MultiAction;
use mu_model::Slot;
use std::sync::PoisonError;

/// Values that are kept as expressions.
const MOST_TOLD: usize = 1 << 16;

impl Compiled {
    /// An evaluator under the limits of the run, for normal forms to be made with.
    pub fn engine(&self) -> Engine {
        Engine::new(self.program.clone()).limited(&self.budget)
    }
    /// The value of a slot's number, a closed normal form.
    pub fn value(&self, slot: Slot, id: u32) -> Expr {
        let table = self.table_of[slot as usize];
        let known = |told: &AHashMap<(usize, u32), Expr>| told.get(&(table, id)).cloned();
        if let Some(e) = known(&self.told.read().unwrap_or_else(PoisonError::into_inner)) {
            return e;
        }
        let e = self.tell(&mut self.teller(), slot, id);
        let mut told = self.told.write().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        told.insert((table, id), e.clone());
        e
    }
    /// An evaluator that tells values of the tables.
    pub(crate) fn teller(&self) -> Engine {
        Engine::new(self.program.clone()).sharing(&self.terms)
    }
    /// The value of a slot's number by way of an evaluator.
    pub(crate) fn tell(&self, teller: &mut Engine, slot: Slot, id: u32) -> Expr {
        let value = teller
            .of_term(self.tables[self.table_of[slot as usize]].get(id))
            .expect("a value in a table is a normal form");
        teller.to_expr_at(&value, self.sort_of[slot as usize])
    }
    /// The number of a normal form by way of an evaluator.
    pub(crate) fn number(
        &self,
        teller: &mut Engine,
        slot: Slot,
        value: &Expr,
    ) -> Result<u32, Diagnostic> {
        let value = teller.from_normal(value)?;
        let term = teller.term_at(&value, self.sort_of[slot as usize]);
        Ok(self.tables[self.table_of[slot as usize]].intern(term).0)
    }
    /// The number of a value in a slot. It must be a normal form as [`Engine::to_expr_at`] tells it
    /// at the slot's sort.
    pub fn intern(&self, slot: Slot, value: &Expr) -> u32 {
        self.number(&mut self.teller(), slot, value)
            .expect("a normal form is evaluated without limits")
    }
    /// The label of a multi-action of such normal forms.
    pub fn intern_label(&self, mut multi: MultiAction) -> LabelId {
        let signature = self.program.signature();
        multi.sort_by_cached_key(|(a, args)| {
            (*a, args.iter().map(|e| mu_data::print::expression(signature, e)).collect::<Vec<_>>())
        });
        if multi.is_empty() { LabelId::TAU } else { self.labels.intern(multi) }
    }
    /// The index of the summand of the linear process that a group comes from.
    pub fn summand_of(&self, group: usize) -> usize {
        self.codes[group].summand
    }
}
