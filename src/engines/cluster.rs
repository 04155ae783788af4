//! One search by several processes, which the caller has connected ([`mu_explore::Peers`]; the
//! layer `cluster` does it). Each holds a share of the states; where a formula needs a game, the
//! first one plays it and the others wait.

use crate::{Checked, Counted, Detail, Engine, Options, Subject, Task, Wish};
use mu_base::{Diagnostic, Stage};
use mu_explore::{Extras, Peers};
use mu_formula::typed::TypedFormula;
use mu_model::Model;

/// Several processes.
#[derive(Debug)]
pub struct Cluster;

fn peers<'a>(options: &Options<'a>) -> Result<&'a dyn Peers, Diagnostic> {
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
    fn about(&self) -> &'static str {
        "One state at a time, by the processes of `--processes` or `--cluster`: counts; formulas, whose games the first one plays"
    }
    fn declines(&self, wishes: &[Wish]) -> Option<Wish> {
        wishes.iter().copied().find(|w| !matches!(w, Wish::Checkpoint | Wish::Priority))
    }
    fn shares_a_formula(&self) -> bool {
        true
    }
    fn count(
        &self,
        model: &dyn Model,
        task: Task<'_>,
        _: Extras<'_>,
    ) -> Result<Counted, Diagnostic> {
        let outcome = peers(task.options)?.count(
            model,
            &task.options.explore,
            task.budget,
            task.options.progress,
        )?;
        Ok(Counted {
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
        task: Task<'_>,
    ) -> Result<Checked, Diagnostic> {
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
        Ok(Checked { engine: self.name(), reason: None, answer, sets: None })
    }
}
