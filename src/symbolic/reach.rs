//! Symbolic reachability: the set of reachable vectors as a decision diagram, by breadth-first
//! search, chaining, or saturation.
//!
//! Input -> output: a [`Model`] -> a [`ReachOutcome`] with exact counts. Relations are learned on
//! the fly (see `relation.rs`), slots get an order that suits the diagrams (see `order.rs`).
//! Saturation is in `saturation.rs`.
//!
//! Chaining: Roig, Cortadella, Pastor, "Verification of asynchronous circuits by BDD-based model
//! checking of Petri nets" (1995). Cost: depends on the sizes of the diagrams, not on the number of
//! states. Limits are polled during operations; a limit is an outcome.

use super::helpers::{HelperTask, with_helpers};
use super::ldd::{Halt, Ldd, Manager, ManagerSettings, Plan, Team};
use super::learned_steps::Board;
use super::order::SlotOrder;
use super::order_search::{EFFORT, better_order};
use super::relation::{GroupEvaluator, Relation, relations};
use super::saturation::ContextNumbers;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_model::{Model, Slot};
use num_bigint::BigUint;
use std::rc::Rc;
use std::sync::Arc;

/// Strategy of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Whole layers; all relations apply to the same frontier. Yields the number of levels and
    /// shortest paths.
    BreadthFirst,
    /// The relations in sequence, each applied to the results of the previous ones.
    Chaining,
    /// Bottom levels first; each diagram node is closed under the relations that begin at its
    /// level.
    #[default]
    Saturation,
}

/// Options of a symbolic search.
#[derive(Clone, Debug)]
pub struct SymbolicOptions {
    /// Strategy of the search.
    pub strategy: Strategy,
    /// Order of slots.
    pub order: SlotOrder,
    /// True if groups of equal footprint share a relation.
    pub merge: bool,
    /// True if transitions are counted.
    pub transitions: bool,
    /// True if deadlocks are counted.
    pub deadlocks: bool,
    /// Threads: the search, and helpers that compute ahead of it.
    pub threads: usize,
    /// Sizes of the node tables.
    pub settings: ManagerSettings,
}

impl Default for SymbolicOptions {
    fn default() -> Self {
        let (strategy, order, settings) =
            (Strategy::default(), SlotOrder::default(), ManagerSettings::default());
        Self {
            strategy,
            order,
            merge: true,
            transitions: true,
            deadlocks: true,
            threads: 1,
            settings,
        }
    }
}

/// Result and cost of a search.
#[derive(Clone, Debug)]
pub struct ReachOutcome {
    /// Stop reason. Unless complete, the counts are lower bounds (states) or absent.
    pub stop: Stop,
    /// Number of states found.
    pub states: BigUint,
    /// Number of transitions (distinct label and target for each state), if requested and complete.
    pub transitions: Option<BigUint>,
    /// Number of states without steps, if requested and complete.
    pub deadlocks: Option<BigUint>,
    /// Number of layers after the initial one, for breadth-first search; number of rounds, for
    /// chaining.
    pub levels: Option<usize>,
    /// Diagram nodes of the set of states.
    pub nodes: usize,
    /// Diagram nodes of all relations together.
    pub relation_nodes: usize,
    /// Maximum number of nodes in the table, including dead ones.
    pub peak_nodes: usize,
    /// Bytes of the tables at the end.
    pub bytes: u64,
    /// Collections of dead nodes.
    pub collections: u64,
    /// Number of relations after merging groups.
    pub relations: usize,
    /// Calls of the model's evaluator.
    pub calls: u64,
    /// The slots, first level first.
    pub order: Vec<Slot>,
}

/// Computes all reachable states.
pub fn reach(
    model: &dyn Model,
    options: &SymbolicOptions,
    budget: &Budget,
) -> Result<ReachOutcome, Diagnostic> {
    with_threads(model, options, budget, |team| {
        let mut search = ReachSearch::new(model, options, budget, None)?;
        search.set_helpers(team);
        let states = search.run(options.strategy)?;
        search.outcome(states)
    })
}

/// Runs `work` with helpers, and with a sufficient stack.
pub(super) fn with_threads<T>(
    model: &dyn Model,
    options: &SymbolicOptions,
    budget: &Budget,
    work: impl FnOnce(Option<&Arc<Team>>) -> T,
) -> T {
    stacker::grow(stack_size(model), || with_helpers(model, options, budget, work))
}

/// Returns the bytes of stack for the recursions, which need a few frames a level.
pub(super) fn stack_size(model: &dyn Model) -> usize {
    (1 << 20) + model.slots().len() * (16 << 10)
}

/// Reason for which the watch halted the manager.
type Reason = std::cell::RefCell<Option<Stop>>;

/// Number of nodes after which a better order is searched.
const MAX_NODES_BEFORE_REORDERING: u64 = 60_000_000;

/// State of a search.
pub(super) struct ReachSearch<'m> {
    pub model: &'m dyn Model,
    options: SymbolicOptions,
    budget: &'m Budget,
    pub manager: Manager,
    pub relations: Vec<Relation>,
    pub evaluator: GroupEvaluator<'m>,
    /// Slots by level.
    order: Vec<Slot>,
    /// The model's error that ended the search.
    pub failure: Option<Diagnostic>,
    stop: Rc<Reason>,
    levels: Option<usize>,
    /// Sets that survive collections: the layers of a breadth-first search, or the states and the
    /// new states of each place of a product.
    pub retained: Vec<Ldd>,
    /// All states of a breadth-first search so far, which survive collections.
    reached: Ldd,
    /// Other sets that survive collections.
    pub pinned: Vec<Ldd>,
    /// Numbers of saturation's contexts.
    pub numbers: ContextNumbers,
    /// True if the search ended early because it reached its goal.
    reached_goal: bool,
    /// True if the search stops as soon as a goal label is learned.
    pub stops_at_goal: bool,
    /// The helpers, if any.
    pub team: Option<Arc<Team>>,
    /// While threads learn together: the board, and for each relation the version known here.
    pub board: Option<(Arc<Board>, Vec<u64>)>,
}

impl<'m> ReachSearch<'m> {
    pub fn new(
        model: &'m dyn Model,
        options: &SymbolicOptions,
        budget: &'m Budget,
        wanted: Option<Box<dyn Fn(LabelId) -> bool + 'm>>,
    ) -> Result<Self, Diagnostic> {
        let order = options.order.of(model);
        Self::with_order(model, options.clone(), budget, order, GroupEvaluator::new(model, wanted))
    }

    /// Creates a search with a given order.
    pub fn with_order(
        model: &'m dyn Model,
        options: SymbolicOptions,
        budget: &'m Budget,
        order: Vec<Slot>,
        evaluator: GroupEvaluator<'m>,
    ) -> Result<Self, Diagnostic> {
        let manager =
            Manager::new(ManagerSettings { initial_bits: 4, ..ManagerSettings::default() });
        let mut search = Self::without_relations(model, &options, budget, manager, evaluator);
        search.start(order)?;
        Ok(search)
    }

    /// Creates a search without relations, on a given manager.
    pub fn without_relations(
        model: &'m dyn Model,
        options: &SymbolicOptions,
        budget: &'m Budget,
        manager: Manager,
        evaluator: GroupEvaluator<'m>,
    ) -> Self {
        Self {
            model,
            options: options.clone(),
            budget,
            manager,
            relations: Vec::new(),
            evaluator,
            order: Vec::new(),
            failure: None,
            stop: Rc::default(),
            levels: None,
            retained: Vec::new(),
            reached: Ldd::EMPTY,
            pinned: Vec::new(),
            numbers: ContextNumbers::default(),
            reached_goal: false,
            stops_at_goal: false,
            team: None,
            board: None,
        }
    }

    /// Sets the helpers.
    pub fn set_helpers(&mut self, team: Option<&Arc<Team>>) {
        self.team = team.cloned();
        if let Some(team) = team {
            self.manager.set_team(team.clone());
        }
    }

    /// Restarts with another order.
    fn start(&mut self, order: Vec<Slot>) -> Result<(), Diagnostic> {
        let mut placed: Vec<Option<usize>> = vec![None; self.model.slots().len()];
        for (i, &slot) in order.iter().enumerate() {
            match placed.get_mut(slot as usize) {
                Some(place @ None) => *place = Some(i),
                _ => return Err(bad_order(self.model)),
            }
        }
        let Some(level) = placed.into_iter().collect::<Option<Vec<usize>>>() else {
            return Err(bad_order(self.model));
        };
        let mut settings = self.options.settings.clone();
        if let Some(max) = self.budget.limits().max_memory {
            let room = max.saturating_sub(mu_base::limits::resident_bytes()).max(1 << 16);
            settings.max_bytes = Some(settings.max_bytes.map_or(room, |m| m.min(room)));
        }
        self.relations.clear();
        self.numbers = ContextNumbers::default();
        self.pinned.clear();
        self.board = None;
        self.manager = Manager::new(settings);
        if let Some(team) = &self.team {
            self.manager.set_team(team.clone());
        }
        let (reason, budget, mut polls) = (self.stop.clone(), self.budget.clone(), 0u32);
        self.manager.set_watch(Box::new(move || {
            polls += 1;
            let fine = budget
                .check(0)
                .and_then(|()| if polls % 16 == 0 { budget.check_memory() } else { Ok(()) });
            fine.is_err_and(|why| {
                reason.replace(Some(why));
                true
            })
        }));
        self.relations = relations(self.model, &level, self.options.merge, &mut self.manager);
        self.order = order;
        Ok(())
    }

    /// Computes the reachable states, up to limits.
    pub fn run(&mut self, strategy: Strategy) -> Result<Ldd, Diagnostic> {
        if self.options.order != SlotOrder::Tuned || strategy != Strategy::Saturation {
            return self.run_once(strategy);
        }
        self.manager.set_max_made(Some(MAX_NODES_BEFORE_REORDERING));
        let states = self.run_once(strategy)?;
        self.manager.set_max_made(None);
        if self.manager.halt_reason() != Some(Halt::Effort) {
            return Ok(states);
        }
        match better_order(self.model, &self.options, self.budget, &self.order, EFFORT)? {
            Some(order) => self.start(order)?,
            // The caches still have the previous results.
            None => self.manager.resume(),
        }
        self.run_once(strategy)
    }

    /// Computes the reachable states with the current order.
    pub fn run_once(&mut self, strategy: Strategy) -> Result<Ldd, Diagnostic> {
        let initial = self.initial();
        let states = match strategy {
            Strategy::BreadthFirst => self.layers(initial, |search, _| {
                search.retained.clear();
                false
            }),
            Strategy::Chaining => self.chain(initial),
            Strategy::Saturation => self.saturate_all(initial),
        };
        self.failure.take().map_or(Ok(states), Err)
    }

    /// Returns the set of the initial state.
    pub fn initial(&mut self) -> Ldd {
        let initial = self.to_levels(&self.model.initial());
        self.manager.singleton(&initial)
    }
    /// Converts a state to level order.
    pub fn to_levels(&self, state: &[u32]) -> Vec<u32> {
        self.order.iter().map(|&s| state[s as usize]).collect()
    }
    /// Converts a vector to slot order.
    pub fn to_slots(&self, vector: &[u32]) -> Vec<u32> {
        let mut state = vec![0; vector.len()];
        for (&slot, &value) in self.order.iter().zip(vector) {
            state[slot as usize] = value;
        }
        state
    }
    /// Returns the steps from a state, which is by level; their targets are by slot.
    pub fn steps_from(&mut self, state: &[u32]) -> Result<Vec<(LabelId, Vec<u32>)>, Diagnostic> {
        let from = self.to_slots(state);
        let mut all = Vec::new();
        let groups = self.model.groups();
        for member in self.relations.iter().flat_map(|r| &r.members) {
            all.extend(member.steps_from(&groups[member.group], &mut self.evaluator, &from)?);
        }
        Ok(all)
    }
    /// Returns the level of a slot.
    pub fn level(&self, slot: Slot) -> usize {
        self.order
            .iter()
            .position(|&s| s == slot)
            .expect("the order holds each slot of the model once")
    }

    /// True if the search must end now.
    #[inline]
    pub fn is_halted(&self) -> bool {
        self.manager.halt_reason().is_some()
    }
    /// Resumes a search that ended at its goal.
    pub fn resume(&mut self) {
        if self.stop.borrow().is_none() {
            self.manager.resume();
        }
    }
    /// Ends the search with a reason.
    pub fn halt(&mut self, why: Stop) {
        self.stop.replace(Some(why));
        self.manager.halt();
    }

    /// Lets relation `i` learn from a set.
    pub fn learn(&mut self, i: usize, set: Ldd, from_top: bool) {
        let (relation, manager) = (&mut self.relations[i], &mut self.manager);
        if let Some((board, known)) = &mut self.board {
            board.read(i, &mut known[i], relation, manager);
        }
        match relation.learn(manager, &mut self.evaluator, set, from_top) {
            Ok(false) => {}
            Ok(true) => {
                if let Some((board, known)) = &mut self.board {
                    board.write(i, &mut known[i], relation, manager);
                }
            }
            Err(error) => match error.stop {
                Some(stop) => self.halt(stop),
                None => {
                    self.failure = Some(error);
                    self.manager.halt();
                }
            },
        }
        if self.stops_at_goal && self.evaluator.found {
            self.manager.halt();
        }
    }

    /// Lets all relations learn from a set, including those that write nothing and take no part in
    /// saturation.
    pub fn learn_all(&mut self, states: Ldd) {
        self.post(HelperTask::Projections {
            set: states,
            plans: self.relations.iter().map(Relation::projection).collect(),
        });
        for i in 0..self.relations.len() {
            self.learn(i, states, false);
            self.tidy(&[states]);
        }
        self.withdraw();
    }

    /// Lets the relations that a search skips learn from all states: saturation skips those that
    /// write nothing, other searches none.
    pub fn learn_rest(&mut self, states: Ldd) {
        for i in
            (0..self.relations.len()).filter(|&i| !self.relations[i].writes).collect::<Vec<_>>()
        {
            self.learn(i, states, false);
            self.tidy(&[states]);
        }
    }

    /// Collects dead nodes if a collection is due; preserves relations, the manager's stack, and
    /// `roots`.
    pub fn tidy(&mut self, roots: &[Ldd]) {
        if self.manager.collection_due() {
            // Results that helpers publish during the collection would be lost.
            let task = self.manager.recall();
            let board = self.board.as_ref().map_or(Vec::new(), |(board, _)| board.roots());
            let relations = self.relations.iter().flat_map(Relation::roots);
            let others = self.retained.iter().chain(&self.pinned).chain(roots).copied();
            self.manager.collect(relations.chain(others).chain(board).chain([self.reached]));
            if let Some(task) = task {
                self.manager.offer(task);
            }
        }
    }

    /// Searches breadth first. Passes the search and each layer (the initial one first) to `each`,
    /// which returns true to stop. After a halt, returns the states of the completed layers.
    pub fn layers(&mut self, initial: Ldd, mut each: impl FnMut(&mut Self, Ldd) -> bool) -> Ldd {
        let (mut states, mut frontier) = (initial, initial);
        let mut count = 0;
        (self.levels, self.reached_goal) = (None, false);
        self.retained.clear();
        while !frontier.is_empty() {
            self.retained.push(frontier);
            self.reached = states;
            if each(self, frontier) {
                self.reached_goal = true;
                return states;
            }
            let mut next = Ldd::EMPTY;
            self.learn_all(frontier);
            let writing = self.relations.iter().filter(|r| r.writes);
            let relations: Arc<[(Ldd, Plan)]> = writing.map(|r| (r.relation, r.image[0])).collect();
            self.post(HelperTask::Images { set: frontier, relations: relations.clone() });
            for &(relation, plan) in &*relations {
                let image = self.manager.relprod(frontier, relation, plan);
                next = self.manager.union(next, image);
                self.tidy(&[states, frontier, next]);
            }
            self.withdraw();
            let fresh = self.manager.minus(next, states);
            let all = self.manager.union(states, fresh);
            if self.is_halted() {
                return states;
            }
            (states, frontier) = (all, fresh);
            if !frontier.is_empty() {
                count += 1;
            }
            self.poll(states);
        }
        self.levels = Some(count);
        self.retained.clear();
        self.reached = Ldd::EMPTY;
        states
    }

    /// Offers an image to the helpers.
    fn post_image(&mut self, set: Ldd, relation: Ldd, plan: Plan) {
        self.post(HelperTask::Images { set, relations: [(relation, plan)].into() });
    }

    fn chain(&mut self, initial: Ldd) -> Ldd {
        let (mut states, mut frontier) = (initial, initial);
        let mut rounds = 0;
        while !frontier.is_empty() {
            let mut all = frontier;
            for i in 0..self.relations.len() {
                self.learn(i, all, false);
                if self.relations[i].writes {
                    let (relation, plan) = (self.relations[i].relation, self.relations[i].image[0]);
                    self.post_image(all, relation, plan);
                    let image = self.manager.relprod(all, relation, plan);
                    self.withdraw();
                    all = self.manager.union(all, image);
                }
                self.tidy(&[states, frontier, all]);
            }
            frontier = self.manager.minus(all, states);
            let all = self.manager.union(states, frontier);
            if self.is_halted() {
                return states;
            }
            states = all;
            rounds += 1;
            self.poll(states);
        }
        self.levels = Some(rounds);
        states
    }

    /// Polls limits, including the number of states.
    fn poll(&mut self, states: Ldd) {
        if self
            .budget
            .limits()
            .max_states
            .is_some_and(|max| self.manager.count(states) > BigUint::from(max))
        {
            self.halt(Stop::States);
        }
        if let Err(why) = self.budget.check(0).and_then(|()| self.budget.check_memory()) {
            self.halt(why);
        }
    }

    /// Computes the counts at the end of the search.
    pub fn outcome(mut self, states: Ldd) -> Result<ReachOutcome, Diagnostic> {
        let (mut transitions, mut deadlocks) = (None, None);
        let count = self.manager.count(states);
        if !self.is_halted()
            && !self.reached_goal
            && (self.options.transitions || self.options.deadlocks)
        {
            self.learn_rest(states);
            if self.options.deadlocks {
                let set = self.deadlocks(states);
                deadlocks = Some(self.manager.count(set));
            }
            if self.options.transitions {
                transitions = Some(self.transitions(states)?);
            }
            if self.is_halted() {
                (transitions, deadlocks) = (None, None);
            }
        }
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let stop = match self.manager.halt_reason() {
            None => Stop::Complete,
            Some(Halt::Memory | Halt::Effort) => Stop::Memory,
            Some(Halt::Watch) => self
                .stop
                .take()
                .ok_or_else(|| Diagnostic::internal("the search was halted without a reason"))?,
        };
        Ok(ReachOutcome {
            stop,
            states: count,
            transitions,
            deadlocks,
            levels: self.levels,
            nodes: self.manager.nodes_of([states]),
            relation_nodes: self.manager.nodes_of(self.relations.iter().map(|r| r.relation)),
            peak_nodes: self.manager.peak(),
            bytes: self.manager.bytes(),
            collections: self.manager.collections(),
            relations: self.relations.len(),
            calls: self.evaluator.calls,
            order: self.order,
        })
    }
}

fn bad_order(model: &dyn Model) -> Diagnostic {
    let names: Vec<&str> = model.slots().iter().map(|s| s.name.as_str()).collect();
    Diagnostic::new(Stage::Usage, "the slot order is not a permutation of the model's slots")
        .note(format!("the slots are {}", names.join(", ")))
}
