//! Helper threads of a search: their tasks and execution.
//!
//! A helper computes what the search is computing, a closure or images, on the same tables in
//! another order, so that its results are in the operation cache when the search needs them (see
//! [`Team`]). It affects the cache, and during saturation the learned steps (see [`Board`]); the
//! search's result cannot depend on either. An error of the model ends a helper's task and is
//! dropped: the search hits it as well.
//!
//! Cost: small operations are sometimes computed twice.

use super::ldd::{Ldd, Plan, Team};
use super::learned_steps::Board;
use super::reach::{ReachSearch, SymbolicOptions};
use super::relation::GroupEvaluator;
use super::saturation::Context;
use mu_base::Budget;
use mu_model::Model;
use std::sync::Arc;

/// A task of the search. Its sets must survive collections until it is withdrawn.
pub(super) enum HelperTask {
    /// The closure of a set. If the relations of the context learn, `board` exchanges the learned
    /// steps.
    Closure { context: Arc<Context>, set: Ldd, board: Option<Arc<Board>> },
    /// Images of a set under relations.
    Images { set: Ldd, relations: Arc<[(Ldd, Plan)]> },
    /// Projections of a set.
    Projections { set: Ldd, plans: Arc<[Plan]> },
    /// The members of a set that match sets of short vectors.
    Matches { set: Ldd, shorts: Arc<[(Ldd, Plan)]> },
}

/// Ends the helpers when the search ends.
struct TeamGuard(Arc<Team>);

impl Drop for TeamGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `work` with the number of helpers in the options; without helpers there is no team.
pub(super) fn with_helpers<T>(
    model: &dyn Model,
    options: &SymbolicOptions,
    budget: &Budget,
    work: impl FnOnce(Option<&Arc<Team>>) -> T,
) -> T {
    if options.threads < 2 {
        return work(None);
    }
    let team = Arc::new(Team::default());
    std::thread::scope(|scope| {
        let closing = TeamGuard(team.clone());
        let stack = super::reach::stack_size(model);
        let helpers: Vec<_> = (1..options.threads)
            .filter_map(|rank| {
                let team = &team;
                let name = format!("helper {rank}");
                // If a thread cannot be created, there is one helper less.
                std::thread::Builder::new()
                    .name(name)
                    .stack_size(stack)
                    .spawn_scoped(scope, move || help(team, model, options, budget, rank))
                    .ok()
            })
            .collect();
        let result = work(Some(&team));
        drop(closing);
        for helper in helpers {
            if let Err(panic) = helper.join() {
                std::panic::resume_unwind(panic);
            }
        }
        result
    })
}

fn help(
    team: &Arc<Team>,
    model: &dyn Model,
    options: &SymbolicOptions,
    budget: &Budget,
    rank: usize,
) {
    let mut served = 0;
    let mut evaluator = Some(GroupEvaluator::new(model, None));
    while let Some(mut lent) = team.join(rank, &mut served) {
        let task = lent.task.clone();
        let Some(task) = task.downcast_ref::<HelperTask>() else { continue };
        lent.with(|manager| {
            let own = evaluator.take().unwrap_or_else(|| GroupEvaluator::new(model, None));
            let mut search = ReachSearch::without_relations(model, options, budget, manager, own);
            match task {
                HelperTask::Closure { context, set, board } => {
                    if let Some(board) = board {
                        let (relations, known) = board.relations();
                        (search.relations, search.board) =
                            (relations, Some((board.clone(), known)));
                    }
                    let before = search.evaluator.calls;
                    search.saturate(context, *set, 0);
                    if let Some(board) = board {
                        board.add_calls(search.evaluator.calls - before);
                    }
                }
                HelperTask::Images { set, relations } => {
                    for &(relation, plan) in search.manager.ahead(relations) {
                        search.manager.relprod(*set, relation, plan);
                    }
                }
                HelperTask::Projections { set, plans } => {
                    for &plan in search.manager.ahead(plans) {
                        search.manager.project(*set, plan);
                    }
                }
                HelperTask::Matches { set, shorts } => {
                    for &(short, plan) in search.manager.ahead(shorts) {
                        search.manager.select_matches(*set, short, plan);
                    }
                }
            }
            evaluator = Some(search.evaluator);
            search.manager
        });
    }
}

impl ReachSearch<'_> {
    /// Offers the next task to the helpers.
    pub(super) fn post(&self, task: HelperTask) {
        self.manager.offer(Arc::new(task));
    }
    /// Stops the helpers after the search has completed their task.
    pub(super) fn withdraw(&self) {
        self.manager.dismiss();
    }
}
