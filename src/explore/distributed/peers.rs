//! Interface of a distributed search for callers that know nothing of connections.
//!
//! In: a [`JointSearch`], which all processes begin with the same arguments, or [`Work`] that
//! process 0 does for all. Out: a [`JointOutcome`], or the result of process 0, equal in all
//! processes. The layer `cluster` implements [`Peers`]; the layer `pbes` uses it.

use super::annotations::PortableAnnotator;
use super::partition::Partition;
use crate::{Options, Outcome, Progress, Symmetries};
use mu_base::{Budget, Diagnostic, Stop};
use mu_model::Model;

/// A search with annotations by all processes.
pub struct JointSearch<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Search options: caches, sizes.
    pub options: &'a Options,
    /// Limits; the limit on states covers all processes together.
    pub budget: &'a Budget,
    /// Receives progress reports.
    pub progress: &'a dyn Progress,
    /// Computes and serialises the annotations.
    pub carrier: Box<dyn PortableAnnotator + 'a>,
    /// Symmetries of both the model and the annotations.
    pub symmetries: Option<&'a Symmetries>,
    /// True if a path to the deciding state is wanted. Then there are no symmetries and no
    /// checkpoints.
    pub trace: bool,
    /// Name of the checkpoints.
    pub name: &'a str,
    /// Computes the final report of this process for all processes.
    pub final_report: &'a mut dyn FnMut(&mut Partition<'_>) -> Result<Vec<u8>, Diagnostic>,
    /// True if the reports of a search that decided nothing require the check for cycles of least
    /// fixed points.
    pub needs_cycle_check: &'a dyn Fn(&[Vec<u8>]) -> bool,
}

/// Result of a [`JointSearch`], equal in all processes.
#[derive(Clone, Debug)]
pub struct JointOutcome {
    /// True if some annotation decided.
    pub decided: bool,
    /// Reason for the end of the search; complete if it was decided.
    pub stop: Stop,
    /// Final reports by process; empty if a process could not compute one.
    pub final_report: Vec<Vec<u8>>,
    /// True if a least fixed point has a cycle ([`PortableAnnotator::lfp_part`]); `None` if this
    /// was not checked.
    pub has_lfp_cycle: Option<bool>,
    /// A shortest path from the initial state to the deciding one; each element is read by
    /// [`crate::TraceState::read`].
    pub path: Option<Vec<Vec<u8>>>,
}

/// The processes of a distributed search.
pub trait Peers {
    /// Counts states, transitions and deadlocks with all processes.
    ///
    /// # Errors
    /// Errors of the model in any process.
    fn count(
        &self,
        model: &dyn Model,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Outcome, Diagnostic>;
    /// Searches with annotations in all processes.
    ///
    /// # Errors
    /// Errors of the model and of the annotations in any process; a refuted symmetry.
    fn annotate(&self, joint: JointSearch<'_>) -> Result<JointOutcome, Diagnostic>;
    /// Lets process 0 do work alone while the others wait. Returns its result, or its stop reason,
    /// in all processes.
    ///
    /// # Errors
    /// Errors of the work, in all processes.
    fn run_on_leader(
        &self,
        budget: &Budget,
        work: Work<'_>,
    ) -> Result<Result<Vec<u8>, Stop>, Diagnostic>;
}

/// Work that one process does for all. A limit is an error with a stop reason.
pub type Work<'a> = &'a mut dyn FnMut() -> Result<Vec<u8>, Diagnostic>;
