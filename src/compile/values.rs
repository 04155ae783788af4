//! Values and labels by number, for models that are made on top of a compiled one.
//!
//! Such a model (an abstraction, say) has states of the same shape, whose values it makes itself: it reads a value by its number and gets a number for
//! a normal form. Cost: a lock and a lookup each; whoever asks often keeps the answers.

use super::Compiled;
use mu_base::ids::LabelId;
use mu_data::engine::Engine;
use mu_data::expr::Expr;
use mu_labels::MultiAction;
use mu_model::Slot;

impl Compiled {
    /// An evaluator under the limits of the run, for normal forms to be made with.
    pub fn engine(&self) -> Engine {
        Engine::new(self.program.clone()).limited(&self.budget)
    }
    /// The value of a slot's number, a closed normal form.
    pub fn value(&self, slot: Slot, id: u32) -> Expr {
        self.tables[self.table_of[slot as usize]].get(id)
    }
    /// The number of a value in a slot. It must be a normal form as [`Engine::to_expr_at`] tells it at the slot's sort.
    pub fn intern(&self, slot: Slot, value: &Expr) -> u32 {
        self.tables[self.table_of[slot as usize]].intern(value)
    }
    /// The label of a multi-action of such normal forms.
    pub fn intern_label(&self, mut multi: MultiAction) -> LabelId {
        let signature = self.program.signature();
        multi.sort_by_cached_key(|(a, args)| (*a, args.iter().map(|e| mu_data::print::expression(signature, e)).collect::<Vec<_>>()));
        if multi.is_empty() { LabelId::TAU } else { self.labels.intern(multi) }
    }
    /// The index of the summand of the linear process that a group comes from.
    pub fn summand_of(&self, group: usize) -> usize {
        self.codes[group].summand
    }
}
