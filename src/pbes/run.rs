//! Evaluation of a task: by the product search, or by a parity game on the model or on a quotient
//! of it.
//!
//! The product search takes all steps or, if the formula permits, gives confluent ones priority; if
//! cycles matter it continues in batches, then with the game. A large game is tried on a quotient
//! ([`super::quotient`]). Cost: that of the searches; a quotient explores no more states than the
//! game has vertices.

use super::automaton::{Automaton, FormulaState};
use super::batches::{Batches, Pairs};
use super::check::{Answer, Method, Options};
use super::distributed_product;
use super::explain::{finish, game_evidence};
use super::instantiate::{self, Instantiation};
use super::parallel_product;
use super::plan::{Task, TaskMethod};
use super::priority::{ForbiddenReason, Priority};
use super::product::{self, Product, ProductAnalysis, analyse};
use super::proviso::ReductionUse;
use super::quotient::{self, ExploredModel};
use super::trace;
use super::transitions::LazyTransitions;
use mu_base::{Budget, Diagnostic, Span, Stop};
use mu_explore::Peers;
use mu_game::solve::default_solver;
use mu_model::Model;
use mu_model::from_lts::LtsModel;
use mu_process::labels::ActionLabels;

/// The value of a task, or the stop reason.
type TaskValue = Result<bool, Stop>;

/// State of a check.
pub(super) struct CheckRun<'a> {
    pub model: &'a dyn Model,
    pub labels: &'a dyn ActionLabels,
    /// All steps of the model.
    pub source: LazyTransitions<'a>,
    pub automaton: Automaton,
    pub options: Options<'a>,
    pub budget: &'a Budget,
    /// The result so far.
    pub answer: Answer,
}

/// Returns the position of the first of some formula states.
fn source_of(automaton: &Automaton, states: &[FormulaState]) -> Span {
    states
        .iter()
        .map(|q| automaton.normal().spans[automaton.node(*q).index()])
        .min()
        .unwrap_or_default()
}

/// Creates a product search from the options, with this name.
fn product_task<'a>(
    model: &'a dyn Model,
    labels: &'a dyn ActionLabels,
    budget: &'a Budget,
    options: &Options<'a>,
    name: &'a str,
) -> parallel_product::ProductTask<'a> {
    let Options { explore, progress, checkpoint_store, runs_end, peers, .. } = *options;
    parallel_product::ProductTask {
        model,
        labels,
        explore,
        budget,
        progress,
        checkpoint_store,
        name,
        runs_end,
        peers,
    }
}

impl CheckRun<'_> {
    /// Computes the value of a task; `name` identifies its search in the checkpoint store.
    pub fn task(&mut self, task: &Task, name: &str) -> Result<TaskValue, Diagnostic> {
        let analysis = if task.method == TaskMethod::Product {
            analyse(&self.automaton, &task.roots, task.conjunctive)
        } else {
            None
        };
        if let Some(analysis) = &analysis
            && let Some(found) = self.by_product(task, name, analysis)?
        {
            return Ok(found);
        }
        match self.options.peers {
            Some(peers) => self.on_leader(peers, task, analysis.as_ref()),
            None => self.in_one_process(task, analysis.as_ref()),
        }
    }

    /// Lets process 0 compute the value alone; the other processes wait for it.
    fn on_leader(
        &mut self,
        peers: &dyn Peers,
        task: &Task,
        analysis: Option<&ProductAnalysis>,
    ) -> Result<TaskValue, Diagnostic> {
        let options = self.options;
        self.answer.alone = true;
        let reply = peers.run_on_leader(self.budget, &mut || {
            self.options.peers = None;
            self.in_one_process(task, analysis)?
                .map(|value| vec![u8::from(value)])
                .map_err(Diagnostic::stopped)
        });
        self.options = options;
        match reply? {
            Ok(reply) if reply == [0] || reply == [1] => Ok(Ok(reply == [1])),
            Ok(_) => Err(Diagnostic::internal("process 0 has reported no value")),
            Err(stop) => Ok(Err(stop)),
        }
    }

    /// Computes the value if the annotated search did not decide: by a search over stored states,
    /// then by a game.
    fn in_one_process(
        &mut self,
        task: &Task,
        analysis: Option<&ProductAnalysis>,
    ) -> Result<TaskValue, Diagnostic> {
        if let Some(analysis) = analysis {
            let outcome = self.in_batches(analysis, &task.roots)?;
            if let Some(found) = self.conclude(outcome, task, "", analysis)? {
                return Ok(found);
            }
        }
        self.by_game(task)
    }

    /// Computes the value by the product search; `None` if that does not decide.
    fn by_product(
        &mut self,
        task: &Task,
        name: &str,
        analysis: &ProductAnalysis,
    ) -> Result<Option<TaskValue>, Diagnostic> {
        let CheckRun { model, labels, options, budget, .. } = *self;
        if self.answer.method == Method::Constant {
            self.answer.method = Method::Product;
        }
        let search = product_task(model, labels, budget, &options, name);
        let parallel_product::SearchResult { found, priority, order, dropped } =
            parallel_product::search(search, &mut self.automaton, analysis, &task.roots)?;
        for d in dropped {
            if !self.answer.dropped.contains(&d) {
                self.answer.dropped.push(d);
            }
        }
        self.answer.priority = self.answer.priority.and(priority);
        self.answer.order = self.answer.order.and(order);
        match found {
            Some((outcome, counts)) if outcome != product::ProductResult::Cycle => {
                self.answer.equations += counts.equations;
                self.answer.states = self.answer.states.max(counts.states);
                self.answer.symmetries = self.answer.symmetries.max(counts.symmetries);
                self.conclude(outcome, task, name, analysis)
            }
            // Cycles matter, or there are too many different sets for one search: repeat with all
            // steps.
            other => {
                if priority == Priority::Used && other.is_none() {
                    self.answer.priority = Priority::Forbidden(
                        ForbiddenReason::Size,
                        source_of(&self.automaton, &task.roots),
                    );
                }
                Ok(None)
            }
        }
    }

    /// Derives the value from the end of a product search, with evidence; `None` if a game is
    /// needed.
    fn conclude(
        &mut self,
        outcome: product::ProductResult,
        task: &Task,
        name: &str,
        analysis: &ProductAnalysis,
    ) -> Result<Option<TaskValue>, Diagnostic> {
        let CheckRun { model, labels, options, budget, .. } = *self;
        match outcome {
            product::ProductResult::Stopped(stop) => Ok(Some(Err(stop))),
            product::ProductResult::Cycle => Ok(None),
            product::ProductResult::Verdict(value) => {
                if options.wants_evidence(self.answer.informative, value)
                    && value != task.conjunctive
                {
                    let (source, automaton, roots) =
                        (&mut self.source, &mut self.automaton, &task.roots[..]);
                    let shortest = match options.peers {
                        Some(peers) => distributed_product::shortest(
                            product_task(model, labels, budget, &options, name),
                            peers,
                            source,
                            automaton,
                            analysis,
                            roots,
                        )?,
                        None => {
                            trace::shortest(source, labels, automaton, analysis, roots, budget)?
                        }
                    };
                    self.answer.evidence =
                        shortest.map(|builder| finish(builder, value, &self.source)).transpose()?;
                }
                Ok(Some(Ok(value)))
            }
        }
    }

    /// Searches with stored states, in batches of initial obligations if there are many
    /// ([`super::batches`]).
    fn in_batches(
        &mut self,
        analysis: &ProductAnalysis,
        roots: &[FormulaState],
    ) -> Result<product::ProductResult, Diagnostic> {
        let mut batches = Batches::new(roots.len(), self.options.batches);
        let (mut pairs, mut sum) = (Pairs::default(), 0);
        let mut cycles = product::KnownCycles::default();
        let mut outcome = product::ProductResult::Verdict(analysis.conjunctive);
        while let Some(batch) = batches.batch()
            && outcome == product::ProductResult::Verdict(analysis.conjunctive)
        {
            let mut product =
                Product::new(&mut self.source, self.labels, &mut self.automaton, analysis);
            outcome = product.run(&roots[batch], &mut cycles, self.budget)?;
            sum += product.counts.equations;
            batches.advance(product.work);
            let found = product.into_known();
            pairs.add(&self.automaton, &found);
        }
        self.answer.equations += pairs.count().unwrap_or(sum);
        Ok(outcome)
    }

    /// Computes the value by a parity game.
    fn by_game(&mut self, task: &Task) -> Result<TaskValue, Diagnostic> {
        let CheckRun { labels, options, budget, .. } = *self;
        let place = source_of(&self.automaton, &task.roots);
        self.answer.method = Method::Game;
        self.answer.order =
            self.answer.order.and(ReductionUse::Forbidden(ForbiddenReason::Game, place));
        if options.explore.confluent.iter().any(|c| *c) {
            self.answer.priority =
                self.answer.priority.and(Priority::Forbidden(ForbiddenReason::Game, place));
        }
        let solver = options.solver.unwrap_or(default_solver());
        let mut game =
            Instantiation::new(&self.source, &self.automaton, (task.conjunctive, &task.roots));
        let mut max_vertices = options.quotient_at.unwrap_or(usize::MAX);
        let outcome = loop {
            if let Some(outcome) = game.run(
                &mut self.source,
                labels,
                &mut self.automaton,
                solver,
                max_vertices,
                budget,
            )? {
                break outcome;
            }
            // Exploring as many states as the game has vertices costs about as much as the game
            // did.
            let states =
                if options.quotient_at == Some(0) { usize::MAX } else { game.vertex_count() };
            match ExploredModel::explore(
                &mut self.source,
                &mut self.automaton,
                labels,
                states,
                budget,
            )? {
                Err(stop) => break instantiate::InstanceOutcome::Stopped(stop),
                Ok(None) => max_vertices = max_vertices.max(1).saturating_mul(4),
                Ok(Some(explored)) => {
                    if let Some(found) = self.on_quotient(&explored, task)? {
                        return Ok(found);
                    }
                    max_vertices = usize::MAX;
                }
            }
        };
        let instance = game.into_game();
        self.answer.equations += instance.arena.len() as u64;
        match outcome {
            instantiate::InstanceOutcome::Stopped(stop) => Ok(Err(stop)),
            instantiate::InstanceOutcome::Verdict(value) => {
                if options.wants_evidence(self.answer.informative, value) {
                    let builder = game_evidence(&instance, value, &self.source, &self.automaton);
                    self.answer.evidence = Some(finish(builder, value, &self.source)?);
                }
                Ok(Ok(value))
            }
        }
    }

    /// Solves the game on the states' classes; `None` if there are too many.
    fn on_quotient(
        &mut self,
        explored: &ExploredModel,
        task: &Task,
    ) -> Result<Option<TaskValue>, Diagnostic> {
        let CheckRun { labels, options, budget, .. } = *self;
        let plain = options.explore.without_confluence();
        let solver = options.solver.unwrap_or(default_solver());
        let mut ignores_tau = quotient::ignores_tau(&mut self.automaton, labels)?;
        loop {
            let quotient = explored.quotient(ignores_tau, plain.thread_count());
            if options.quotient_at != Some(0)
                && quotient.reduced.classes > explored.state_count() / 4 * 3
            {
                return Ok(None);
            }
            let model = LtsModel::new(quotient.lts.clone());
            let mut classes = LazyTransitions::new(&model, &plain)?;
            let mut game =
                Instantiation::new(&classes, &self.automaton, (task.conjunctive, &task.roots));
            let Some(outcome) =
                game.run(&mut classes, labels, &mut self.automaton, solver, usize::MAX, budget)?
            else {
                return Ok(None);
            };
            // The game may have reached formula states that distinguish tau steps.
            if ignores_tau && !quotient::ignores_tau(&mut self.automaton, labels)? {
                ignores_tau = false;
                continue;
            }
            let instance = game.into_game();
            self.answer.equations += instance.arena.len() as u64;
            self.answer.reduced = Some(quotient.reduced);
            return Ok(Some(match outcome {
                instantiate::InstanceOutcome::Stopped(stop) => Err(stop),
                instantiate::InstanceOutcome::Verdict(value) => {
                    if options.wants_evidence(self.answer.informative, value) {
                        let mut visited = Vec::new();
                        let mut builder = explored.evidence(
                            &quotient,
                            &instance,
                            value,
                            &mut self.source,
                            &classes,
                            &mut visited,
                        )?;
                        builder.values = self.automaton.deciding_values(value, visited);
                        self.answer.evidence = Some(finish(builder, value, &self.source)?);
                    }
                    Ok(value)
                }
            }));
        }
    }
}
