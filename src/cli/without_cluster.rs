//! What `cluster` says in a program that was built without the feature of that name: one process
//! searches.
//!
//! In: the options. Out: a refusal, if they ask for several processes. Invariant: nothing is
//! silently ignored.

use super::args::{CheckArgs, ClusterArgs, DistributedArgs, ExploreArgs};
use super::counts::Report;
use super::find_path::DistributedPath;
use super::load::Loaded;
use super::pipeline::Session;
use super::properties::Text;
use mu_base::{Budget, Diagnostic, Stage};
use mu_explore::{PathGoal, Peers};
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use serde_json::Value;

fn refused(distribution: &DistributedArgs) -> Diagnostic {
    let message = format!(
        "this program was built without several processes, which `{}` is for",
        distribution.option()
    );
    Diagnostic::new(Stage::Unsupported, message)
        .note("build it with the feature `cluster`, which is on by default")
}

/// Refuses several processes.
pub(super) fn expect_possible(args: &ExploreArgs, _: Option<u32>) -> Result<(), Diagnostic> {
    expect_alone(&args.distribution)
}

/// Refuses several processes for formulas.
pub(super) fn expect_checkable(
    args: &CheckArgs,
    _: Option<u32>,
    _: bool,
) -> Result<(), Diagnostic> {
    expect_alone(&args.distribution)
}

fn expect_alone(distribution: &DistributedArgs) -> Result<(), Diagnostic> {
    if distribution.is_requested() || distribution.process.is_some() {
        Err(refused(distribution))
    } else {
        Ok(())
    }
}

/// Processes that check formulas together: there are none.
pub(super) struct Company {
    /// The limits of this process.
    pub budget: Budget,
    none: std::convert::Infallible,
}

/// Meets nobody.
pub(super) fn join(
    _: &Session,
    _: &CheckArgs,
    _: &dyn Model,
    _: &[Text],
) -> Result<Option<Company>, Diagnostic> {
    Ok(None)
}

impl Company {
    pub(super) fn reports(&self) -> bool {
        match self.none {}
    }
    pub(super) fn peers(&self, _: &Text, _: &TypedFormula) -> &dyn Peers {
        match self.none {}
    }
    pub(super) fn close(self, _: &Session, _: &CheckArgs, _: bool) -> (Value, u64) {
        match self.none {}
    }
}

/// Refuses them again, should anybody ask.
pub(super) fn run(
    _: &Session,
    args: &ExploreArgs,
    _: &Loaded,
) -> Result<Result<Report, u8>, Diagnostic> {
    Err(refused(&args.distribution))
}

/// Refuses them again, should anybody ask.
pub(super) fn seek(
    _: &Session,
    args: &ExploreArgs,
    _: &dyn Model,
    _: PathGoal<'_>,
) -> Result<Result<DistributedPath, u8>, Diagnostic> {
    Err(refused(&args.distribution))
}

/// Refuses them on several hosts.
pub(super) fn across(_: &Session, _: &ClusterArgs) -> Result<u8, Diagnostic> {
    let message = "this program was built without several processes, which `cluster` is for";
    Err(Diagnostic::new(Stage::Unsupported, message)
        .note("build it with the feature `cluster`, which is on by default"))
}
