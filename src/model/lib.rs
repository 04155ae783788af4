//! The waist: what any front end gives and any engine takes. Knows no language.
//!
//! A state is a vector of `u32` slots; a slot's number is an index into that slot's append-only
//! value table (kept by the front end). Behaviour is a list of *transition groups* with fixed slot
//! lists. A group's answer depends on its read slots only, so engines memoise it (explicit engine),
//! tabulate it (symbolic engine), or ship it (distributed engine).
//!
//! Source of the idea: the PINS interface of LTSmin (Blom, van de Pol, Weber, CAV 2010), with
//! guards on single slots made explicit so that a disabled group costs a comparison.
#![warn(missing_docs)]

pub mod evaluated;
pub mod from_lts;
pub mod hand;
pub mod standing;
pub mod table;

// The models of the tests name this layer as all others do.
#[cfg(test)]
extern crate self as mu_model;

use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Span, Stage};
use num_rational::BigRational;
use num_traits::One;
use std::sync::Arc;

/// A slot index.
pub type Slot = u32;

/// What engines may know of a slot.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// Its name.
    pub name: String,
    /// The parallel component that it belongs to.
    pub component: u32,
    /// Whether it is a control location (few values, many groups test it).
    pub control: bool,
}

/// A transition group.
#[derive(Clone, Debug)]
pub struct Group {
    /// For messages.
    pub name: String,
    /// The group is disabled unless each of these slots has this value. These slots are not in
    /// `reads` unless also read otherwise.
    pub requires: Vec<(Slot, u32)>,
    /// Slots that its answer depends on, ascending.
    pub reads: Vec<Slot>,
    /// Those of `reads` that decide whether it has steps at all, ascending: while they and the
    /// slots of `requires` stay as they are, so does that.
    pub tests: Vec<Slot>,
    /// Slots that its steps set, ascending. A step gives a value for each.
    pub writes: Vec<Slot>,
    /// Names of the actions of its labels, ascending and as often as they occur; none if that is
    /// not known.
    pub actions: Option<Vec<String>>,
    /// Names of the actions that were hidden in it (provenance), empty if none.
    pub hidden: Vec<String>,
    /// Whether all its steps are tau.
    pub tau: bool,
    /// Whether the front end proved that its steps are confluent, see `process::confluence`. Steps
    /// that are no tau are then taken before others.
    pub confluent: bool,
}

/// The steps of one group from one state: label and the values of the written slots, flat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// A label a step.
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

/// The steps of one group by chance: each leads to one of several outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chances {
    /// A label a step.
    pub labels: Vec<LabelId>,
    /// The probabilities of the outcomes of each step: positive, 1 together. Steps that share a
    /// list have equal ones.
    pub weights: Vec<Arc<[BigRational]>>,
    /// The values of the written slots for each outcome of each step, flat. A worker may share
    /// those that recur.
    pub values: Vec<Arc<[u32]>>,
}

/// An action behind a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepPart {
    /// Its name.
    pub name: String,
    /// Its arguments' texts; `_` where a value does not matter.
    pub args: Vec<String>,
    /// Whether it is hidden.
    pub hidden: bool,
    /// What the components did for it.
    pub from: Vec<PartOrigin>,
}

/// What one component did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOrigin {
    /// The component.
    pub component: u32,
    /// The name of its own action, before communication.
    pub action: String,
    /// How many arguments it left open.
    pub open: u32,
}

impl StepPart {
    /// The action as text.
    pub fn text(&self) -> String {
        if self.args.is_empty() {
            self.name.clone()
        } else {
            format!("{}({})", self.name, self.args.join(", "))
        }
    }
}

/// A label in which a term stands that has no value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Valueless {
    /// Where its action is written.
    pub place: Span,
    /// The action.
    pub action: String,
    /// The term.
    pub term: String,
}

/// A candidate for a symmetry: a permutation of the slots together with one of their values
/// ([`Worker::image`]), under which the front end thinks that the behaviour is the same. Engines
/// verify that before they rely on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetry {
    /// For messages.
    pub name: String,
    /// Where each slot goes.
    pub slots: Vec<Slot>,
    /// A permutation of some points. Two symmetries with the same permutations of slots and of
    /// points are the same, and points compose as the symmetries do.
    pub points: Vec<u32>,
}

/// A model: immutable description; the tables behind it grow while workers run, safely shared.
pub trait Model: Send + Sync {
    /// The slots.
    fn slots(&self) -> &[SlotInfo];
    /// The groups.
    fn groups(&self) -> &[Group];
    /// The initial vector.
    fn initial(&self) -> Vec<u32>;
    /// Whether chance decides where some steps lead, or where it starts. [`Worker::steps`] is not
    /// for such a model, [`Worker::chances`] is.
    fn is_probabilistic(&self) -> bool {
        false
    }
    /// Where a probabilistic model starts: vectors with their probabilities.
    fn initial_chances(&self) -> Vec<(BigRational, Vec<u32>)> {
        vec![(BigRational::one(), self.initial())]
    }
    /// An evaluator for one thread.
    fn worker(&self) -> Box<dyn Worker + '_>;
    /// Text of a label, as in an `.aut` file without quotes; `tau` for `LabelId::TAU`.
    fn label_text(&self, label: LabelId) -> String;
    /// Number of labels interned so far.
    fn label_count(&self) -> usize;
    /// Text of a slot's value.
    fn value_text(&self, slot: Slot, value: u32) -> String;
    /// What tells this model from others whose states have the same numbers. None: its values
    /// cannot be written, see [`Model::export_values`].
    fn fingerprint(&self) -> Option<String> {
        None
    }
    /// The values of all slots as text, table by table in the order of their numbers, for a
    /// checkpoint or for another process. Errors: the model does not write values (the
    /// default), or a value has no text that is read back as the same value.
    fn export_values(&self) -> Result<Vec<Vec<String>>, Diagnostic> {
        Err(Diagnostic::new(
            Stage::Unsupported,
            "the values of this kind of model cannot be written",
        ))
    }
    /// Describes a slot that may hold functions, which [`Model::export_values`] cannot write;
    /// `None` if there is none.
    fn slot_of_functions(&self) -> Option<String> {
        None
    }
    /// Gives values the numbers that another run gave them; the model was not explored yet. Error:
    /// they are not values of this model.
    fn import_values(&self, _texts: &[Vec<String>]) -> Result<(), Diagnostic> {
        Err(Diagnostic::new(Stage::Unsupported, "the values of this kind of model cannot be read"))
    }
    /// How its values go to another process that runs the same model. None: they cannot, and the
    /// model is searched by one process only.
    fn portable(&self) -> Option<&dyn Portable> {
        None
    }
    /// Whether a slot means something in a state: the others hold a value that nothing depends on.
    fn is_live(&self, _slot: Slot, _state: &[u32]) -> bool {
        true
    }
    /// Whether the steps of groups marked as confluent are proven to be, so that whatever the order
    /// in which they are taken they lead to one state.
    fn is_priority_proven(&self) -> bool {
        true
    }
    /// Candidates for symmetries, which generate a group.
    fn symmetries(&self) -> &[Symmetry] {
        &[]
    }
    /// Names of the parallel components that slots and step parts speak of, if there are several.
    fn components(&self) -> Vec<String> {
        Vec::new()
    }
    /// Who tells why a state has no steps: none if the model knows nothing of its components.
    /// `terminal`: names of actions after which a component counts as terminated, and
    /// conditions on parameters under which the components that they speak of do.
    ///
    /// # Errors
    /// A text that is neither.
    fn standings<'m>(
        &'m self,
        _terminal: &[String],
    ) -> Result<Option<Box<dyn standing::Standings + 'm>>, Diagnostic> {
        Ok(None)
    }
    /// Labels met so far in which a term has no value: one for each place where such an action is
    /// written.
    fn valueless(&self) -> Vec<Valueless> {
        Vec::new()
    }
    /// The actions behind a step of a group, hidden ones too, for people, where [`Worker::parts`]
    /// does not tell them: no more than the label.
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

/// Values that travel between the tables of processes that run the same model.
pub trait Portable {
    /// All that the bytes of values rest on. Processes whose models differ here must not exchange
    /// values.
    fn basis(&self) -> String;
    /// A slot's value as bytes: the same in all processes, different for different values.
    ///
    /// # Errors
    /// The value means nothing to another process.
    fn export(&self, slot: Slot, value: u32) -> Result<Vec<u8>, Diagnostic>;
    /// A hash of a slot's value: the same in all processes. Values that differ may have equal ones.
    ///
    /// # Errors
    /// Those of [`Portable::export`].
    fn digest(&self, slot: Slot, value: u32) -> Result<u64, Diagnostic> {
        // FNV-1a.
        let bytes = self.export(slot, value)?;
        Ok(bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }
    /// The number of an exported value here, given now if it is new.
    ///
    /// # Errors
    /// The bytes are those of no value.
    fn import(&self, slot: Slot, bytes: &[u8]) -> Result<u32, Diagnostic>;
}

/// Evaluates groups, for one thread. May be slow: callers memoise.
pub trait Worker {
    /// Appends the steps of `group` for the values of its `reads` (the slots of `requires` are
    /// known to fit). Steps that have equal label and values may be given once or twice.
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic>;
    /// The steps of a group with their probabilities, as [`Worker::steps`] gives those of models
    /// without.
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
    /// The actions behind a step, see [`Model::parts`]; none if this worker knows no more than the
    /// model.
    fn parts(
        &mut self,
        _group: usize,
        _before: &[u32],
        _label: LabelId,
        _after: &[u32],
    ) -> Result<Option<Vec<StepPart>>, Diagnostic> {
        Ok(None)
    }
    /// What a symmetry makes of a slot's value: a number in the table of the slot that it goes to;
    /// none if that is not known.
    fn image(
        &mut self,
        _symmetry: usize,
        _slot: Slot,
        _value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        Ok(None)
    }
    /// What a symmetry makes of a label.
    fn image_label(
        &mut self,
        _symmetry: usize,
        _label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        Ok(None)
    }
}
