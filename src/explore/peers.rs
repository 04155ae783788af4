//! Processes that search together, as a caller sees them who knows nothing of connections.
//!
//! In: a [`JointSearch`] search, which all processes begin with the same arguments, or [`Work`] that the
//! first one does for all. Out: a [`JointOutcome`], or what the first one says, the same in all. Who
//! connects them implements [`Peers`] (the layer `cluster`); who asks for something (the layer
//! `pbes`) does not know how they are connected.

use super::distributed_annotations::PortableAnnotator;
use super::partition::Partition;
use super::{Options, Outcome, Progress, Symmetries};
use mu_base::{Budget, Diagnostic, Stop};
use mu_model::Model;

/// A search with annotations by all processes.
pub struct JointSearch<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// How to search: caches, sizes.
    pub options: &'a Options,
    /// How far; the states of all processes together.
    pub budget: &'a Budget,
    /// Who watches.
    pub progress: &'a dyn Progress,
    /// What the states carry.
    pub carrier: Box<dyn PortableAnnotator + 'a>,
    /// Symmetries that the annotations have as well.
    pub symmetries: Option<&'a Symmetries>,
    /// Whether the way to what decides is to be found; then there are no symmetries, and nothing
    /// is kept.
    pub trace: bool,
    /// The name under which the search is kept.
    pub name: &'a str,
    /// What each process has to say to all in the end.
    pub said: &'a mut dyn FnMut(&mut Partition<'_>) -> Result<Vec<u8>, Diagnostic>,
    /// Whether, after what all said in the end of a search that decided nothing, it matters if
    /// something goes on for ever.
    pub lasts: &'a dyn Fn(&[Vec<u8>]) -> bool,
}

/// What the processes found.
#[derive(Clone, Debug)]
pub struct JointOutcome {
    /// Whether some annotation decided.
    pub decided: bool,
    /// Why the search ended; complete if it was decided.
    pub stop: Stop,
    /// What each process said in the end, by process; nothing if it could not.
    pub said: Vec<Vec<u8>>,
    /// Whether something goes on for ever, see [`PortableAnnotator::lasting`], if that was asked.
    pub lasts: Option<bool>,
    /// The stations of a shortest way to what decides, from the initial state on, each for
    /// [`super::TraceState::read`].
    pub way: Option<Vec<Vec<u8>>>,
}

/// Processes that search together.
pub trait Peers {
    /// Counts states, transitions and deadlocks with all others.
    ///
    /// # Errors
    /// Those of the model, whichever process met them.
    fn count(
        &self,
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Outcome, Diagnostic>;
    /// Searches with all others.
    ///
    /// # Errors
    /// Those of the model and of the annotations, whichever process met them; a supposed symmetry
    /// is none.
    fn annotate(&self, joint: JointSearch<'_>) -> Result<JointOutcome, Diagnostic>;
    /// Has the first process do what it does alone, while the others wait: what it then says to
    /// all, or why it stopped, in all processes.
    ///
    /// # Errors
    /// Those of the work, in all processes.
    fn first(&self, budget: &Budget, work: Work<'_>) -> Result<Result<Vec<u8>, Stop>, Diagnostic>;
}

/// What one process does for all. A limit is an error that carries its reason.
pub type Work<'a> = &'a mut dyn FnMut() -> Result<Vec<u8>, Diagnostic>;
