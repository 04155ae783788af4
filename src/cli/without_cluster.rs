//! What `cluster` says in a program that was built without the feature of that name: one process searches.
//!
//! In: the options. Out: a refusal, if they ask for several processes. Invariant: nothing is silently ignored.

use super::args::{ClusterArgs, ExploreArgs};
use super::counts::Report;
use super::load::Loaded;
use super::pipeline::Session;
use super::ways::Sighted;
use mu_base::{Diagnostic, Stage};
use mu_explore::Sought;
use mu_model::Model;

fn refused(args: &ExploreArgs) -> Diagnostic {
    let message = format!("this program was built without several processes, which `{}` is for", args.clustering.option());
    Diagnostic::new(Stage::Unsupported, message).note("build it with the feature `cluster`, which is on by default")
}

/// Refuses several processes.
pub(super) fn expect_possible(args: &ExploreArgs, _: Option<u32>) -> Result<(), Diagnostic> {
    if args.clustering.is_wanted() || args.clustering.process.is_some() { Err(refused(args)) } else { Ok(()) }
}

/// Refuses them again, should anybody ask.
pub(super) fn run(_: &Session, args: &ExploreArgs, _: &Loaded) -> Result<Result<Report, u8>, Diagnostic> {
    Err(refused(args))
}

/// Refuses them again, should anybody ask.
pub(super) fn seek(_: &Session, args: &ExploreArgs, _: &dyn Model, _: Sought<'_>) -> Result<Result<Sighted, u8>, Diagnostic> {
    Err(refused(args))
}

/// Refuses them on several hosts.
pub(super) fn across(_: &Session, _: &ClusterArgs) -> Result<u8, Diagnostic> {
    let message = "this program was built without several processes, which `cluster` is for";
    Err(Diagnostic::new(Stage::Unsupported, message).note("build it with the feature `cluster`, which is on by default"))
}
