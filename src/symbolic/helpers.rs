//! The threads that help a search: their tasks, and how they carry them out.
//!
//! A helper computes what the search is computing, a closure or images, on the same tables and in
//! another order, so that its results are in the operation cache when the search comes to them (see
//! [`Team`]). What comes back is the cache, and the steps that helpers have learned while the model
//! is saturated (see [`Board`]); the search's result cannot depend on either. An error of the model
//! that a helper meets ends what it does and is forgotten: the search meets it as well.
//!
//! Cost: small operations are done twice when both happen to be at them.

use super::ldd::{Ldd, Plan, Team};
use super::learned_steps::Board;
use super::reach::{Options, Search};
use super::relation::Teacher;
use super::saturation::Context;
use mu_base::Budget;
use mu_model::Model;
use std::sync::Arc;

/// What the search is at. The sets that it names must outlive collections until it is withdrawn.
pub(super) enum Task {
    /// The closure of a set; in a context whose relations learn, with what the threads have
    /// learned.
    Closure { context: Arc<Context>, set: Ldd, board: Option<Arc<Board>> },
    /// Images of a set under relations.
    Images { set: Ldd, relations: Arc<[(Ldd, Plan)]> },
    /// Projections of a set.
    Projections { set: Ldd, plans: Arc<[Plan]> },
    /// The members of a set that match sets of short vectors.
    Matches { set: Ldd, shorts: Arc<[(Ldd, Plan)]> },
}

/// Sends the helpers home when the search is over, however it ends.
struct Closing(Arc<Team>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs `work` with as many helpers as the options say; with none, there is no team.
pub(super) fn with_crew<T>(
    model: &dyn Model,
    options: &Options,
    budget: &Budget,
    work: impl FnOnce(Option<&Arc<Team>>) -> T,
) -> T {
    if options.threads < 2 {
        return work(None);
    }
    let team = Arc::new(Team::default());
    std::thread::scope(|scope| {
        let closing = Closing(team.clone());
        let stack = super::reach::stack_size(model);
        let helpers: Vec<_> = (1..options.threads)
            .filter_map(|rank| {
                let team = &team;
                let name = format!("helper {rank}");
                // Without a thread there is one helper less.
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

fn help(team: &Arc<Team>, model: &dyn Model, options: &Options, budget: &Budget, rank: usize) {
    let mut served = 0;
    let mut teacher = Some(Teacher::new(model, None));
    while let Some(mut lent) = team.join(rank, &mut served) {
        let task = lent.task.clone();
        let Some(task) = task.downcast_ref::<Task>() else { continue };
        lent.with(|manager| {
            let own = teacher.take().unwrap_or_else(|| Teacher::new(model, None));
            let mut search = Search::assistant(model, options, budget, manager, own);
            match task {
                Task::Closure { context, set, board } => {
                    if let Some(board) = board {
                        let (relations, known) = board.all();
                        (search.relations, search.board) =
                            (relations, Some((board.clone(), known)));
                    }
                    let before = search.teacher.calls;
                    search.saturate(context, *set, 0);
                    if let Some(board) = board {
                        board.add_calls(search.teacher.calls - before);
                    }
                }
                Task::Images { set, relations } => {
                    for &(relation, plan) in search.manager.ahead(relations) {
                        search.manager.relprod(*set, relation, plan);
                    }
                }
                Task::Projections { set, plans } => {
                    for &plan in search.manager.ahead(plans) {
                        search.manager.project(*set, plan);
                    }
                }
                Task::Matches { set, shorts } => {
                    for &(short, plan) in search.manager.ahead(shorts) {
                        search.manager.matching(*set, short, plan);
                    }
                }
            }
            teacher = Some(search.teacher);
            search.manager
        });
    }
}

impl Search<'_> {
    /// Gives the helpers what the search is about to do.
    pub(super) fn post(&self, task: Task) {
        self.manager.offer(Arc::new(task));
    }
    /// Stops the helpers: the search has done what they were given.
    pub(super) fn withdraw(&self) {
        self.manager.dismiss();
    }
}
