//! Models with closures as groups, for programs that define a model without a specification
//! language.
//!
//! In: closures and slot lists. Out: a [`Model`]. Cost: a step allocates the text of its label;
//! engines cache steps, so this is rare.
//!
//! ```
//! use mu_model::{Model, hand::HandModel};
//!
//! let mut model = HandModel::new();
//! let counter = model.slot("counter", 0, false, 0);
//! model.group("up", &[], &[counter], &[counter], |read, emit| {
//!     if read[0] < 3 {
//!         emit.step("up", &[read[0] + 1]);
//!     }
//! });
//! assert_eq!(model.initial(), [0]);
//! ```

use super::table::LabelTable;
use super::{Group, Model, Portable, Slot, SlotInfo, Steps, Worker};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};

/// Function of a group: from the values of its `reads` to steps.
pub type StepFn = Box<dyn Fn(&[u32], &mut Emit<'_>) + Send + Sync>;

/// Receiver of the steps that a group's closure emits.
pub struct Emit<'a> {
    labels: &'a LabelTable<String>,
    out: &'a mut Steps,
}

impl Emit<'_> {
    /// Emits one step: the text of its label (`tau` for the hidden one) and a value for each slot
    /// in `writes`.
    pub fn step(&mut self, label: impl Into<String>, values: &[u32]) {
        self.out.labels.push(self.labels.intern(label.into()));
        self.out.values.extend_from_slice(values);
    }
}

/// Model with closures as groups.
pub struct HandModel {
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    functions: Vec<StepFn>,
    initial: Vec<u32>,
    labels: LabelTable<String>,
}

impl Default for HandModel {
    fn default() -> Self {
        Self::new()
    }
}

impl HandModel {
    /// Creates a model without slots and groups: one state without steps.
    pub fn new() -> Self {
        let labels = LabelTable::new("tau".to_string());
        Self {
            slots: Vec::new(),
            groups: Vec::new(),
            functions: Vec::new(),
            initial: Vec::new(),
            labels,
        }
    }
    /// Adds a slot of a component with its initial value.
    pub fn slot(
        &mut self,
        name: impl Into<String>,
        component: u32,
        control: bool,
        initial: u32,
    ) -> Slot {
        self.slots.push(SlotInfo { name: name.into(), component, control });
        self.initial.push(initial);
        (self.slots.len() - 1) as Slot
    }
    /// Adds a group; `reads` and `writes` ascend. Returns its description, for setting flags.
    pub fn group(
        &mut self,
        name: impl Into<String>,
        requires: &[(Slot, u32)],
        reads: &[Slot],
        writes: &[Slot],
        steps: impl Fn(&[u32], &mut Emit<'_>) + Send + Sync + 'static,
    ) -> &mut Group {
        debug_assert!(
            reads.windows(2).all(|w| w[0] < w[1]) && writes.windows(2).all(|w| w[0] < w[1])
        );
        let at = self.groups.len();
        self.groups.push(Group::new(name, requires.to_vec(), reads.to_vec(), writes.to_vec()));
        self.functions.push(Box::new(steps));
        &mut self.groups[at]
    }
}

impl Model for HandModel {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        self.initial.clone()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(HandWorker { model: self })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.labels.get(label).to_string()
    }
    fn label_count(&self) -> usize {
        self.labels.count()
    }
    fn value_text(&self, _slot: Slot, value: u32) -> String {
        value.to_string()
    }
    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }
}

/// Numbers as portable values: closures have no tables, so a number has the same meaning in each
/// process.
impl Portable for HandModel {
    fn encoding_fingerprint(&self) -> String {
        format!("{:?} {:?}", self.slots, self.groups)
    }
    fn export(&self, _: Slot, value: u32) -> Result<Vec<u8>, Diagnostic> {
        Ok(value.to_le_bytes().to_vec())
    }
    fn import(&self, _: Slot, bytes: &[u8]) -> Result<u32, Diagnostic> {
        let number = bytes.try_into().map(u32::from_le_bytes);
        number.map_err(|_| {
            Diagnostic::new(Stage::File, "these bytes do not encode a value of this model")
        })
    }
}

struct HandWorker<'m> {
    model: &'m HandModel,
}

impl Worker for HandWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        (self.model.functions[group])(reads, &mut Emit { labels: &self.model.labels, out });
        Ok(())
    }
}
