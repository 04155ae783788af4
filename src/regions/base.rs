//! What an abstraction needs of the model under it, be that a compiled process or another
//! abstraction.
//!
//! States, groups and labels are numbered alike in all of them, and values are normal forms of one
//! table, so abstractions can be put on each other: counters to regions ([`crate::Regions`]),
//! constants of a sort of any size merged ([`crate::Merged`]).

use crate::abstraction::Regions;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::{LabelId, OpId, SortId};
use mu_compile::Compiled;
use mu_data::engine::Engine;
use mu_data::expr::Expr;
use mu_data::signature::Signature;
use mu_labels::{ActionLabels, MultiAction};
use mu_model::{Model, Slot, Steps, Worker};
use mu_process::linear::LinearProcess;
use std::rc::Rc;

/// See the module's head.
pub trait Base: Model + ActionLabels + crate::audit::cover::Concretise {
    /// The compiled process at the bottom.
    fn compiled(&self) -> &Compiled;
    /// The constants of a sort that its values are made of.
    fn constants(&self, sort: SortId) -> Vec<OpId> {
        constants(self.signature(), sort)
    }
    /// The value of a slot's number.
    fn value(&self, slot: Slot, id: u32) -> Expr {
        self.compiled().value(slot, id)
    }
    /// The number of a normal form.
    fn intern(&self, slot: Slot, value: &Expr) -> u32 {
        self.compiled().intern(slot, value)
    }
    /// The label of a multi-action of normal forms.
    fn intern_label(&self, multi: MultiAction) -> LabelId {
        self.compiled().intern_label(multi)
    }
    /// An evaluator.
    fn engine(&self) -> Engine {
        self.compiled().engine()
    }
    /// The linear process at the bottom.
    fn process(&self) -> &LinearProcess {
        self.compiled().process()
    }
    /// Its signature.
    fn signature(&self) -> &Signature {
        &self.process().data.signature
    }
}

/// What an abstraction tells as the model `inner` under it does: slots, labels, values, components.
macro_rules! as_inside {
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
pub(crate) use as_inside;

/// Constructors without arguments, in the order of their declaration.
pub fn constants(signature: &Signature, sort: SortId) -> Vec<OpId> {
    let all = signature.sorts.named_of(sort).map(|n| n.constructors.as_slice()).unwrap_or_default();
    all.iter().copied().filter(|op| signature.op(*op).sort == sort).collect()
}

impl Base for Compiled {
    fn compiled(&self) -> &Compiled {
        self
    }
}

impl Base for Regions<'_> {
    fn compiled(&self) -> &Compiled {
        self.inner()
    }
}

/// Up to sixteen numbers below fifteen as one number: a key that is compared without going to
/// memory.
pub(crate) fn packed(numbers: &[usize]) -> Option<u64> {
    let fit = numbers.len() <= 16 && numbers.iter().all(|n| *n < 15);
    fit.then(|| numbers.iter().fold(0, |all, n| all << 4 | (*n as u64 + 1)))
}

/// The evaluator of the model inside, which remembers its answers: choices for different questions
/// often ask it the same, those for a state and for its images above all.
pub(crate) struct Inside<'m> {
    pub worker: Box<dyn Worker + 'm>,
    known: AHashMap<(usize, Vec<u32>), Rc<Steps>>,
}

/// So many answers of the model inside are remembered.
const MOST_KNOWN: usize = 400_000;

impl<'m> Inside<'m> {
    pub fn new(base: &'m dyn Base) -> Self {
        Self { worker: base.worker(), known: AHashMap::new() }
    }

    /// The steps of a group that reads these values.
    pub fn steps(&mut self, group: usize, values: Vec<u32>) -> Result<Rc<Steps>, Diagnostic> {
        let key = (group, values);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let mut steps = Steps::default();
        self.worker.steps(group, &key.1, &mut steps)?;
        let steps = Rc::new(steps);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, steps.clone());
        Ok(steps)
    }
}
