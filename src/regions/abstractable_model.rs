//! Interface of models that abstractions can build on: a compiled process or another abstraction.
//!
//! All of them number states, groups and labels identically, and values are normal forms of one
//! table, so abstractions can be stacked: counters to regions ([`crate::Regions`]), constants of a
//! sort of any size merged ([`crate::MergedConstants`]).

use crate::abstraction::Regions;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, OpId, SortId};
use mu_compile::Compiled;
use mu_data::engine::Engine;
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::sort::basic;
use mu_model::{Model, Slot, Steps, Worker};
use mu_process::labels::{ActionLabels, MultiAction};
use mu_process::linear::LinearProcess;
use std::rc::Rc;

/// A model that an abstraction can build on.
pub trait AbstractableModel: Model + ActionLabels + crate::audit::cover::Concretise {
    /// Returns the compiled process at the bottom.
    fn compiled_process(&self) -> &Compiled;
    /// Returns the constants of a sort that occur in its values.
    fn constants(&self, sort: SortId) -> Vec<OpId> {
        constants(self.signature(), sort)
    }
    /// Returns the value of an index in a slot.
    fn value(&self, slot: Slot, id: u32) -> Expr {
        self.compiled_process().value(slot, id)
    }
    /// Returns the index of a normal form in a slot.
    fn intern(&self, slot: Slot, value: &Expr) -> u32 {
        self.compiled_process().intern(slot, value)
    }
    /// Returns the label of a multi-action of normal forms.
    fn intern_label(&self, multi: MultiAction) -> LabelId {
        self.compiled_process().intern_label(multi)
    }
    /// Returns an engine for the terms of the process.
    fn engine(&self) -> Engine {
        self.compiled_process().engine()
    }
    /// Returns the linear process at the bottom.
    fn process(&self) -> &LinearProcess {
        self.compiled_process().process()
    }
    /// Returns its signature.
    fn signature(&self) -> &Signature {
        &self.process().data.signature
    }
}

/// Functions that an abstraction delegates to the model `inner` under it: slots, labels, values,
/// components.
macro_rules! delegate_to_inner {
    () => {
        fn slots(&self) -> &[mu_model::SlotInfo] {
            self.inner.slots()
        }
        fn label_text(&self, label: mu_base::ids::LabelId) -> String {
            self.inner.label_text(label)
        }
        fn label_count(&self) -> usize {
            self.inner.label_count()
        }
        fn value_text(&self, slot: mu_model::Slot, value: u32) -> String {
            self.inner.value_text(slot, value)
        }
        fn components(&self) -> Vec<String> {
            self.inner.components()
        }
        fn undefined_labels(&self) -> Vec<mu_model::UndefinedLabel> {
            self.inner.undefined_labels()
        }
    };
}
pub(crate) use delegate_to_inner;

/// Returns the constructors without arguments, in the order of their declaration.
pub fn constants(signature: &Signature, sort: SortId) -> Vec<OpId> {
    if sort == basic::BOOL {
        let truth = |o: &Op| matches!(o.kind, OpKind::Builtin(Builtin::True | Builtin::False));
        return signature.ops().filter(|(_, o)| truth(o)).map(|(op, _)| op).collect();
    }
    let all =
        signature.sorts.declared_sort(sort).map(|n| n.constructors.as_slice()).unwrap_or_default();
    all.iter().copied().filter(|op| signature.op(*op).sort == sort).collect()
}

/// Returns the constructor without arguments of this name: another constructor may have the same
/// name with arguments.
pub(crate) fn constant(signature: &Signature, name: &str) -> Option<OpId> {
    let is = |o: &Op| {
        o.name == name
            && matches!(o.kind, OpKind::Constructor(_))
            && signature.sorts.declared_sort(o.sort).is_some()
    };
    signature.ops().find(|(_, o)| is(o)).map(|(op, _)| op)
}

impl AbstractableModel for Compiled {
    fn compiled_process(&self) -> &Compiled {
        self
    }
}

impl AbstractableModel for Regions<'_> {
    fn compiled_process(&self) -> &Compiled {
        self.inner()
    }
}

/// Packs up to sixteen numbers below fifteen into one number, as a key that is compared without
/// memory access.
pub(crate) fn pack(numbers: &[usize]) -> Option<u64> {
    let fit = numbers.len() <= 16 && numbers.iter().all(|n| *n < 15);
    fit.then(|| numbers.iter().fold(0, |all, n| all << 4 | (*n as u64 + 1)))
}

/// Evaluator of the inner model with a cache. Concretisations of different queries often coincide,
/// especially for a state and its symmetric images.
pub(crate) struct CachedInner<'m> {
    pub worker: Box<dyn Worker + 'm>,
    known: AHashMap<(usize, Vec<u32>), Rc<Steps>>,
}

/// Limit on the number of cached answers; beyond it the cache is cleared.
const MAX_CACHED: usize = 400_000;

impl<'m> CachedInner<'m> {
    pub fn new(base: &'m dyn AbstractableModel) -> Self {
        Self { worker: base.worker(), known: AHashMap::new() }
    }

    /// Returns the steps of a group that reads these values.
    pub fn steps(&mut self, group: usize, values: Vec<u32>) -> Result<Rc<Steps>, Diagnostic> {
        let key = (group, values);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let mut steps = Steps::default();
        self.worker.steps(group, &key.1, &mut steps)?;
        let steps = Rc::new(steps);
        if self.known.len() >= MAX_CACHED {
            self.known.clear();
        }
        self.known.insert(key, steps.clone());
        Ok(steps)
    }
}
