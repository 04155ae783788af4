//! Replacement of `cluster` in a build without the feature `cluster`: only one process searches.
//!
//! In: the options. Out: an error if they select several processes. Invariant: no option is
//! silently ignored.

use crate::args::{CheckpointArgs, ClusterArgs, DistributedArgs};
use crate::commands::check::CheckPlan;
use crate::commands::explore::counts::ExplorationReport;
use crate::commands::explore::find_path::DistributedPath;
use crate::commands::explore::plan::Exploration;
use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use crate::pipeline::properties::FormulaText;
use mu_base::{Budget, Diagnostic, Stage};
use mu_explore::{PathGoal, Peers};
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use serde_json::Value;

fn unsupported_error(distribution: &DistributedArgs) -> Diagnostic {
    let message = format!(
        "this program was built without distributed search, which `{}` needs",
        distribution.option()
    );
    Diagnostic::new(Stage::Unsupported, message)
        .note("build it with the feature `cluster`, which is on by default")
}

/// Rejects several processes.
pub(crate) fn expect_possible(args: &Exploration, _: Option<u32>) -> Result<(), Diagnostic> {
    expect_alone(&args.distribution)
}

/// Rejects several processes for formulas.
pub(crate) fn expect_checkable(plan: &CheckPlan, _: Option<u32>) -> Result<(), Diagnostic> {
    expect_alone(&plan.distribution)
}

fn expect_alone(distribution: &DistributedArgs) -> Result<(), Diagnostic> {
    if distribution.is_requested() || distribution.process.is_some() {
        Err(unsupported_error(distribution))
    } else {
        Ok(())
    }
}

/// A group of processes; it never exists in this build.
pub(crate) struct ProcessGroup {
    /// The limits of this process.
    pub budget: Budget,
    none: std::convert::Infallible,
}

/// Returns no group.
pub(crate) fn join(
    _: &Session,
    _: &CheckPlan,
    _: &dyn Model,
) -> Result<Option<ProcessGroup>, Diagnostic> {
    Ok(None)
}

impl ProcessGroup {
    pub(crate) fn reports(&self) -> bool {
        match self.none {}
    }
    pub(crate) fn peers(&self, _: &FormulaText, _: &TypedFormula) -> &dyn Peers {
        match self.none {}
    }
    pub(crate) fn close(self, _: &Session, _: &CheckpointArgs, _: bool) -> (Value, u64) {
        match self.none {}
    }
}

/// Rejects several processes; unreachable after [`expect_possible`].
pub(crate) fn run(
    _: &Session,
    args: &Exploration,
    _: &Loaded,
) -> Result<Result<ExplorationReport, u8>, Diagnostic> {
    Err(unsupported_error(&args.distribution))
}

/// Rejects several processes; unreachable after [`expect_possible`].
pub(crate) fn seek(
    _: &Session,
    args: &Exploration,
    _: &dyn Model,
    _: PathGoal<'_>,
    _: &dyn Fn() -> u64,
) -> Result<Result<DistributedPath, u8>, Diagnostic> {
    Err(unsupported_error(&args.distribution))
}

/// Rejects `cluster run`.
pub(crate) fn across(_: &Session, _: &ClusterArgs) -> Result<u8, Diagnostic> {
    let message = "this program was built without distributed search, which `cluster` needs";
    Err(Diagnostic::new(Stage::Unsupported, message)
        .note("build it with the feature `cluster`, which is on by default"))
}
