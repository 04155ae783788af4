//! Engine for distributed search; the caller connects the processes ([`mu_explore::Peers`]; see the
//! layer `cluster`). Each process stores a partition of the states. If a formula needs a game,
//! process 0 solves it and the others wait.

use crate::{
    Capability, CheckResult, CountResult, Detail, Engine, EngineOptions, EngineTask, Subject,
};
use mu_base::{Diagnostic, Stage};
use mu_explore::{CountExtras, Peers};
use mu_formula::typed::TypedFormula;
use mu_model::Model;

/// Distributed explicit search.
#[derive(Debug)]
pub struct Cluster;

fn peers<'a>(options: &EngineOptions<'a>) -> Result<&'a dyn Peers, Diagnostic> {
    let alone = || {
        Diagnostic::new(Stage::Usage, "`--engine cluster` is for several processes")
            .note("add `--processes N` or `--cluster FILE`")
    };
    options.peers.ok_or_else(alone)
}

impl Engine for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
    }
    fn summary(&self) -> &'static str {
        "Explicit search distributed over `--processes` or `--cluster`; for formulas, process 0 solves the game"
    }
    fn unsupported_capability(&self, capabilities: &[Capability]) -> Option<Capability> {
        capabilities
            .iter()
            .copied()
            .find(|w| !matches!(w, Capability::Checkpoint | Capability::Priority))
    }
    fn shares_a_formula(&self) -> bool {
        true
    }
    fn count(
        &self,
        model: &dyn Model,
        task: EngineTask<'_>,
        _: CountExtras<'_>,
    ) -> Result<CountResult, Diagnostic> {
        let outcome = peers(task.options)?.count(
            model,
            &task.options.explore,
            task.budget,
            task.options.progress,
        )?;
        Ok(CountResult {
            engine: self.name(),
            reason: None,
            states: outcome.states.into(),
            transitions: Some(outcome.transitions.into()),
            deadlocks: Some(outcome.deadlocks.into()),
            stop: outcome.stop.clone(),
            shown_ends: false,
            lts: None,
            detail: Detail::Explicit(outcome),
        })
    }
    fn check(
        &self,
        subject: Subject<'_>,
        formula: &TypedFormula,
        task: EngineTask<'_>,
    ) -> Result<CheckResult, Diagnostic> {
        let options = task.options;
        let peers = Some(peers(options)?);
        let plain = mu_pbes::Options::new(&options.explore);
        let chosen = mu_pbes::Options {
            solver: options.solver,
            progress: options.progress,
            quotient_at: plain.quotient_at.filter(|_| options.quotient),
            witnesses: options.witnesses,
            peers,
            ..plain
        };
        let answer = mu_pbes::check(subject.model, subject.labels, formula, chosen, task.budget)?;
        Ok(CheckResult { engine: self.name(), reason: None, answer, sets: None })
    }
}
