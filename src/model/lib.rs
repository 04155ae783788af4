//! Interface between front ends and engines: slots, transition groups and labels, independent of
//! any language.
//!
//! A state is a vector of `u32` slots; a slot's number is an index into that slot's append-only
//! value table (owned by the front end). Behaviour is a list of *transition groups* with fixed slot
//! lists. A group's answer depends on its read slots only, so engines memoise it (explicit engine),
//! tabulate it (symbolic engine), or ship it (distributed engine).
//!
//! Source of the idea: the PINS interface of LTSmin (Blom, van de Pol, Weber, CAV 2010), with
//! guards on single slots made explicit so that a disabled group costs a comparison.
#![warn(missing_docs)]

pub mod step_cache;
pub mod from_lts;
pub mod hand;
pub mod deadlock;
pub mod table;

// Lets the models of the tests name this layer by the name that other layers use.
#[cfg(test)]
extern crate self as mu_model;

use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Span, Stage, mixing};
use num_rational::BigRational;
use num_traits::One;
use std::sync::Arc;

/// Index of a slot.
pub type Slot = u32;

/// Properties of a slot that engines may use.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// Name.
    pub name: String,
    /// The parallel component that the slot belongs to.
    pub component: u32,
    /// True for a control location: few values, tested by many groups.
    pub control: bool,
}

/// Transition group: the transitions of one summand.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name, for messages.
    pub name: String,
    /// Slots with their required values; the group is disabled unless all have them. These slots
    /// are not in `reads` unless the group also reads them otherwise.
    pub requires: Vec<(Slot, u32)>,
    /// Slots that the steps depend on, ascending.
    pub reads: Vec<Slot>,
    /// The slots of `reads` that decide whether the group has steps at all, ascending. As long as
    /// they and the slots of `requires` are unchanged, the group stays enabled or disabled.
    pub tests: Vec<Slot>,
    /// Slots that the steps set, ascending. A step gives a value for each.
    pub writes: Vec<Slot>,
    /// Names of the actions of its labels, ascending, with repetitions; `None` if unknown.
    pub actions: Option<Vec<String>>,
    /// Names of the actions that were hidden in it (provenance); empty if none.
    pub hidden: Vec<String>,
    /// True if all its steps are tau.
    pub tau: bool,
    /// True if the front end marks its steps as confluent, see `process::confluence`. Steps other
    /// than tau then take priority.
    pub confluent: bool,
}

impl Group {
    /// Creates a group with tests for all slots that it reads, and without facts about its labels.
    /// The slots are ascending.
    pub fn new(
        name: impl Into<String>,
        requires: Vec<(Slot, u32)>,
        reads: Vec<Slot>,
        writes: Vec<Slot>,
    ) -> Self {
        Group {
            name: name.into(),
            requires,
            tests: reads.clone(),
            reads,
            writes,
            actions: None,
            hidden: Vec::new(),
            tau: false,
            confluent: false,
        }
    }
}

/// Steps of one group from one state: label and values of the written slots, flat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// One label per step.
    pub labels: Vec<LabelId>,
    /// `labels.len() * writes.len()` values.
    pub values: Vec<u32>,
}

impl Steps {
    /// Empties both lists.
    pub fn clear(&mut self) {
        self.labels.clear();
        self.values.clear();
    }
}

/// Steps of one group with probabilistic outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chances {
    /// One label per step.
    pub labels: Vec<LabelId>,
    /// Probabilities of the outcomes of each step: positive, with sum 1. Steps that share a list
    /// have equal probabilities.
    pub weights: Vec<Arc<[BigRational]>>,
    /// Values of the written slots for each outcome of each step, flat. A worker may share
    /// recurring lists.
    pub values: Vec<Arc<[u32]>>,
}

/// Action that contributes to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepPart {
    /// Name.
    pub name: String,
    /// Texts of the arguments; `_` for an irrelevant value.
    pub args: Vec<String>,
    /// True if the action is hidden.
    pub hidden: bool,
    /// Contributions of the components.
    pub from: Vec<PartOrigin>,
}

/// Contribution of one component to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOrigin {
    /// The component.
    pub component: u32,
    /// Name of the component's own action, before communication.
    pub action: String,
    /// Number of arguments that the component leaves open.
    pub open: u32,
}

impl StepPart {
    /// Returns the action as text.
    pub fn text(&self) -> String {
        if self.args.is_empty() {
            self.name.clone()
        } else {
            format!("{}({})", self.name, self.args.join(", "))
        }
    }
}

/// Label with a term that has no value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndefinedLabel {
    /// Place of the action in the source.
    pub place: Span,
    /// The action.
    pub action: String,
    /// The term.
    pub term: String,
}

/// Candidate for a symmetry: a permutation of the slots together with one of their values
/// ([`Worker::image`]). The front end proposes it because it probably preserves the behaviour;
/// engines verify this before they use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetry {
    /// Name, for messages.
    pub name: String,
    /// Image of each slot.
    pub slots: Vec<Slot>,
    /// Permutation of abstract points that the front end chooses so that two symmetries are equal
    /// if and only if they permute slots and points equally. Points compose as the symmetries do.
    pub points: Vec<u32>,
}

/// Model: immutable description; its tables grow while workers run, and are safe to share between
/// threads.
pub trait Model: Send + Sync {
    /// Returns the slots.
    fn slots(&self) -> &[SlotInfo];
    /// Returns the groups.
    fn groups(&self) -> &[Group];
    /// Returns the initial vector.
    fn initial(&self) -> Vec<u32>;
    /// True if some steps or the initial state have probabilistic outcomes. Such a model supports
    /// [`Worker::chances`] instead of [`Worker::steps`].
    fn is_probabilistic(&self) -> bool {
        false
    }
    /// Returns the initial vectors of a probabilistic model with their probabilities.
    fn initial_chances(&self) -> Vec<(BigRational, Vec<u32>)> {
        vec![(BigRational::one(), self.initial())]
    }
    /// Sets the limits of evaluations by workers that are created from now on. Without a call, they
    /// are the limits under which the model was read; models with short evaluations have none.
    fn limit_evaluations(&self, _budget: &Budget) {}
    /// Creates an evaluator for one thread.
    fn worker(&self) -> Box<dyn Worker + '_>;
    /// Returns the text of a label, as in an `.aut` file without quotes; `tau` for `LabelId::TAU`.
    fn label_text(&self, label: LabelId) -> String;
    /// Returns the number of labels interned so far.
    fn label_count(&self) -> usize;
    /// Returns the text of a slot's value.
    fn value_text(&self, slot: Slot, value: u32) -> String;
    /// Returns a text that distinguishes this model from others, for checkpoints. `None` if its
    /// values cannot be written, see [`Model::export_values`].
    fn fingerprint(&self) -> Option<String> {
        None
    }
    /// Returns the values of all slots as text, table by table in the order of their numbers, for a
    /// checkpoint or for another process. Errors: the model does not write values (the default), or
    /// a value has no text that is read back as the same value.
    fn export_values(&self) -> Result<Vec<Vec<String>>, Diagnostic> {
        Err(Diagnostic::new(Stage::Unsupported, "values of this kind of model cannot be written"))
    }
    /// Describes a slot that may hold functions, which [`Model::export_values`] cannot write;
    /// `None` if there is none.
    fn unexportable_slot(&self) -> Option<String> {
        None
    }
    /// Restores the value numbers of another run, before any exploration. Error: a text is not a
    /// value of this model.
    fn import_values(&self, _texts: &[Vec<String>]) -> Result<(), Diagnostic> {
        Err(Diagnostic::new(Stage::Unsupported, "values of this kind of model cannot be read"))
    }
    /// Returns the encoding of values for other processes that run the same model. `None` if there
    /// is none; then only one process can search the model.
    fn portable(&self) -> Option<&dyn Portable> {
        None
    }
    /// True if the behaviour from this state may depend on the slot's value.
    fn is_live(&self, _slot: Slot, _state: &[u32]) -> bool {
        true
    }
    /// True if groups marked as confluent are proven to be: their steps lead to one state in any
    /// order.
    fn is_priority_proven(&self) -> bool {
        true
    }
    /// Returns candidates for symmetries, which generate a group.
    fn symmetries(&self) -> &[Symmetry] {
        &[]
    }
    /// Returns the names of the parallel components that slots and step parts refer to; empty if
    /// there is only one.
    fn components(&self) -> Vec<String> {
        Vec::new()
    }
    /// Creates an explainer of states without steps. `None` if the model does not know its
    /// components. `terminal` lists names of actions and conditions on parameters. A component
    /// counts as terminated after such an action, or if such a condition on its parameters holds.
    ///
    /// # Errors
    /// An entry of `terminal` that is neither.
    fn deadlock_explainer<'m>(
        &'m self,
        _terminal: &[String],
    ) -> Result<Option<Box<dyn deadlock::DeadlockExplainer + 'm>>, Diagnostic> {
        Ok(None)
    }
    /// Returns the labels found so far in which a term has no value, one for each place in the
    /// source.
    fn undefined_labels(&self) -> Vec<UndefinedLabel> {
        Vec::new()
    }
    /// Returns the actions behind a step of a group, hidden ones included, for people. The default
    /// gives only the label; [`Worker::parts`] may give more.
    fn parts(
        &self,
        group: usize,
        _before: &[u32],
        label: LabelId,
        _after: &[u32],
    ) -> Result<Vec<StepPart>, Diagnostic> {
        let hidden = label == LabelId::TAU;
        let names =
            if hidden { self.groups()[group].hidden.clone() } else { vec![self.label_text(label)] };
        Ok(names
            .into_iter()
            .map(|name| StepPart { name, args: Vec::new(), hidden, from: Vec::new() })
            .collect())
    }
}

/// Encoding of values for exchange between processes that run the same model.
pub trait Portable {
    /// Describes everything that the encoding depends on. Processes with different descriptions
    /// must not exchange values.
    fn encoding_fingerprint(&self) -> String;
    /// Encodes a slot's value: the same bytes in all processes, different for different values.
    ///
    /// # Errors
    /// The value has no meaning in another process.
    fn export(&self, slot: Slot, value: u32) -> Result<Vec<u8>, Diagnostic>;
    /// Returns a hash of a slot's value that is the same in all processes. Different values may
    /// have equal hashes.
    ///
    /// # Errors
    /// Those of [`Portable::export`].
    fn digest(&self, slot: Slot, value: u32) -> Result<u64, Diagnostic> {
        Ok(mixing::fnv(mixing::FNV_BASIS, self.export(slot, value)?))
    }
    /// Returns the number of an exported value here, adding the value if it is new.
    ///
    /// # Errors
    /// The bytes encode no value.
    fn import(&self, slot: Slot, bytes: &[u8]) -> Result<u32, Diagnostic>;
}

/// Evaluator of groups for one thread. It may be slow: callers memoise.
pub trait Worker {
    /// Appends the steps of `group` for the values of its `reads`. The slots of `requires` have the
    /// required values. Equal steps may be repeated.
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic>;
    /// Appends the steps of a group with their probabilities, for probabilistic models.
    fn chances(
        &mut self,
        group: usize,
        reads: &[u32],
        out: &mut Chances,
    ) -> Result<(), Diagnostic> {
        let mut steps = Steps::default();
        self.steps(group, reads, &mut steps)?;
        let certain: Arc<[BigRational]> = [BigRational::one()].into();
        out.weights.extend(steps.labels.iter().map(|_| certain.clone()));
        let width = steps.values.len().checked_div(steps.labels.len()).unwrap_or(0);
        out.values.extend(
            (0..steps.labels.len()).map(|i| Arc::from(&steps.values[i * width..(i + 1) * width])),
        );
        out.labels.extend(steps.labels);
        Ok(())
    }
    /// Returns the actions behind a step, see [`Model::parts`]; `None` if this worker has no more
    /// information than the model.
    fn parts(
        &mut self,
        _group: usize,
        _before: &[u32],
        _label: LabelId,
        _after: &[u32],
    ) -> Result<Option<Vec<StepPart>>, Diagnostic> {
        Ok(None)
    }
    /// Returns the image of a slot's value under a symmetry: a number in the table of the target
    /// slot. `None` if unknown.
    fn image(
        &mut self,
        _symmetry: usize,
        _slot: Slot,
        _value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        Ok(None)
    }
    /// Returns the image of a label under a symmetry; `None` if unknown.
    fn image_label(
        &mut self,
        _symmetry: usize,
        _label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        Ok(None)
    }
}
