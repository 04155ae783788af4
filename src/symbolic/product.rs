//! Symbolic product of a model and an observer of its labels: which obligations reach which states,
//! and if one is decided.
//!
//! Input -> output: a [`Model`] and an [`Observer`] (such as a formula: obligations are its states
//! with their data) -> [`ProductOutcome`]: the number of pairs of state and obligation, or a run
//! that decides an obligation.
//!
//! First the model alone is searched by saturation, which completes the relations. Then each
//! obligation has its own set of states. The steps that preserve it form a saturation context
//! (`saturation.rs`). So its set is closed at once, and shares the work below the levels where
//! contexts differ with all other obligations and with the model's own search. This is most of the
//! work, since an observer distinguishes few labels. Steps that change the obligation carry images
//! to other obligations' sets, in order of discovery.
//!
//! Cost: (obligations x classes of labels) queries to the observer; for each obligation at most a
//! search of the model. Invariants: a set is closed under its context once its obligation has been
//! visited; live diagrams are in `kept` and `pinned`.

use super::label_classes::Classes;
use super::ldd::Ldd;
use super::reach::{ReachOutcome, ReachSearch, SymbolicOptions, with_threads};
use super::saturation::Context;
use super::{GoalPath, Strategy};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stop};
use mu_model::Model;
use num_bigint::BigUint;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Observer of the labels of runs. Obligations are numbers chosen by the implementation.
pub trait Observer {
    /// Returns the representative of the labels that the observer does not distinguish from this
    /// one.
    fn class(&mut self, label: LabelId) -> Result<LabelId, Diagnostic>;
    /// Returns the successors of an obligation along a label (ascending); `None`: it is decided.
    fn step(&mut self, obligation: u32, label: LabelId) -> Result<Option<Rc<[u32]>>, Diagnostic>;
    /// Returns the condition for not being decided, if the outgoing labels of a state decide the
    /// obligation there; `None` for other obligations. `labels`: all labels, one a class.
    fn test(
        &mut self,
        obligation: u32,
        labels: &[LabelId],
    ) -> Result<Option<LabelTest>, Diagnostic>;
    /// True if an infinite run under such obligations decides.
    fn hostile(&mut self, obligation: u32) -> bool;
}

/// A condition on the outgoing labels of a state.
#[derive(Clone, Debug)]
pub enum LabelTest {
    /// A constant.
    Constant(bool),
    /// A step of one of these classes leaves.
    Leaves(Vec<LabelId>),
    /// Negation.
    Not(Box<LabelTest>),
    /// Conjunction.
    All(Vec<LabelTest>),
    /// Disjunction.
    Any(Vec<LabelTest>),
}

/// Result of an observed search.
#[derive(Clone, Debug)]
pub struct ProductOutcome {
    /// Result and cost of the search of the model. If it is not complete, only a decision is
    /// reliable.
    pub outcome: ReachOutcome,
    /// Number of pairs of state and obligation.
    pub pairs: BigUint,
    /// Number of obligations.
    pub obligations: usize,
    /// True if an obligation is decided.
    pub decided: bool,
    /// The deciding run; `None` if nothing is decided, or at a limit.
    pub run: Option<ProductRun>,
}

/// A run that decides.
#[derive(Clone, Debug)]
pub struct ProductRun {
    /// Its steps.
    pub trace: GoalPath,
    /// Kind of the decision.
    pub end: DecisionKind,
}

/// Kind of a run's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// Its last label decides.
    Label,
    /// The outgoing labels of its last state decide this obligation.
    Test(u32),
    /// The run is infinite: its last state equals that after this number of steps.
    Back(usize),
}

/// Steps of a relation that lead from one obligation to another.
pub(super) struct ObligationEdge {
    pub to: u32,
    pub relation: usize,
    pub rows: Ldd,
}

/// Effect of the model's steps on an obligation.
pub(super) struct Outline {
    /// Steps that preserve it: relations, whole or in part.
    pub keeps: Vec<(usize, Option<Ldd>)>,
    context: Arc<Context>,
    /// Steps that change it.
    pub edges: Vec<ObligationEdge>,
    /// Steps that decide it.
    pub decides: Vec<(usize, Ldd)>,
}

/// An obligation that is not a test. Its states are at twice its index in `ReachSearch::kept`, the
/// unprocessed ones at the next index.
pub(super) struct ObligationPlace {
    pub obligation: u32,
    outline: Option<Rc<Outline>>,
    /// Places that it was reached from.
    pub from: Vec<usize>,
}

/// A search with its observer.
pub(super) struct ObservedSearch<'a, 'm> {
    pub search: ReachSearch<'m>,
    pub observer: &'a mut dyn Observer,
    /// The states of the model.
    pub all: Ldd,
    classes: Classes,
    pub places: Vec<ObligationPlace>,
    pub place_of: AHashMap<u32, usize>,
    tests: AHashMap<u32, Option<Rc<LabelTest>>>,
    queue: BTreeSet<usize>,
}

/// Searches a model with an observer, from some obligations at the initial state. Always uses
/// saturation.
pub fn watch(
    model: &dyn Model,
    observer: &mut dyn Observer,
    start: &[u32],
    options: &SymbolicOptions,
    budget: &Budget,
) -> Result<ProductOutcome, Diagnostic> {
    with_threads(model, options, budget, |team| {
        let mut search = ReachSearch::new(model, options, budget, None)?;
        search.set_helpers(team);
        let states = search.run(Strategy::Saturation)?;
        let nothing = |outcome| ProductOutcome {
            outcome,
            pairs: BigUint::default(),
            obligations: 0,
            decided: false,
            run: None,
        };
        if search.is_halted() {
            return Ok(nothing(search.outcome(states)?));
        }
        search.learn_rest(states);
        if let Some(error) = search.failure.take() {
            return Err(error);
        }
        search.pinned.push(states);
        let mut watch = ObservedSearch::new(search, observer, states)?;
        let decided = watch.run(start)?;
        let pairs =
            (0..watch.places.len()).map(|i| watch.search.manager.count(watch.states(i))).sum();
        let obligations = watch.places.len();
        let complete = !watch.search.is_halted();
        let (decided, run) = match decided {
            _ if !complete => (false, None),
            Some(end) => (true, watch.path(end, start)?),
            None => match watch.cycle(start)? {
                Some(run) => (true, run),
                None => (false, None),
            },
        };
        let mut outcome = watch.search.outcome(states)?;
        if decided {
            // The limit may have been reached only during the reconstruction of the run.
            outcome.stop = Stop::Complete;
        }
        Ok(ProductOutcome { outcome, pairs, obligations, decided, run })
    })
}

/// Location of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// A label decides, under the obligation of this place.
    Label(usize),
    /// A test decides after a step from this place; `None`: at the start.
    Test(Option<usize>, u32),
}

impl<'a, 'm> ObservedSearch<'a, 'm> {
    /// Starts from a search with complete relations. `all`: the states of the model, which must
    /// survive collections.
    fn new(
        mut search: ReachSearch<'m>,
        observer: &'a mut dyn Observer,
        all: Ldd,
    ) -> Result<Self, Diagnostic> {
        let classes = Classes::new(&mut search, &mut |label| observer.class(label))?;
        let (places, place_of, tests, queue) =
            (Vec::new(), AHashMap::new(), AHashMap::new(), BTreeSet::new());
        Ok(Self { search, observer, all, classes, places, place_of, tests, queue })
    }

    /// Returns the states reached under the obligation of a place.
    pub fn states(&self, place: usize) -> Ldd {
        self.search.retained[2 * place]
    }

    fn run(&mut self, start: &[u32]) -> Result<Option<Decision>, Diagnostic> {
        let initial = self.search.initial();
        self.search.pinned.push(initial);
        for &q in start {
            if self.bring(None, q, initial)? {
                return Ok(Some(Decision::Test(None, q)));
            }
        }
        while let Some(i) = self.queue.pop_first() {
            let decision = self.visit(i)?;
            if decision.is_some() || self.search.is_halted() {
                return Ok(decision);
            }
        }
        Ok(None)
    }

    /// Processes the new states of a place.
    fn visit(&mut self, i: usize) -> Result<Option<Decision>, Diagnostic> {
        let outline = self.outline(i)?;
        let seen = self.search.retained[2 * i];
        let new = self.search.manager.minus(self.search.retained[2 * i + 1], seen);
        self.search.retained[2 * i + 1] = new;
        if new.is_empty() {
            return Ok(None);
        }
        let closure = self.search.saturate_in(&outline.context, new);
        let fresh = self.search.manager.minus(closure, seen);
        self.search.retained[2 * i] = self.search.manager.union(seen, closure);
        // Protected while its images are computed; no obligation has edges to itself.
        self.search.retained[2 * i + 1] = fresh;
        for &(relation, rows) in &outline.decides {
            if !self.image(fresh, relation, rows).is_empty() {
                return Ok(Some(Decision::Label(i)));
            }
        }
        for edge in &outline.edges {
            let image = self.image(fresh, edge.relation, edge.rows);
            if !image.is_empty() && self.bring(Some(i), edge.to, image)? {
                return Ok(Some(Decision::Test(Some(i), edge.to)));
            }
            self.search.tidy(&[]);
            if self.search.is_halted() {
                return Ok(None);
            }
        }
        self.search.retained[2 * i + 1] = Ldd::EMPTY;
        Ok(None)
    }

    /// Returns the image of a set under some steps of a relation.
    pub fn image(&mut self, set: Ldd, relation: usize, rows: Ldd) -> Ldd {
        let plan = self.search.relations[relation].image[0];
        self.search.manager.relprod(set, rows, plan)
    }

    /// Adds states to an obligation. Returns true if that decides.
    fn bring(&mut self, from: Option<usize>, to: u32, set: Ldd) -> Result<bool, Diagnostic> {
        if self.test(to)?.is_some() {
            return Ok(!self.deciding_states(to, set)?.is_empty());
        }
        let fresh = self.places.len();
        let place = *self.place_of.entry(to).or_insert(fresh);
        if place == fresh {
            self.places.push(ObligationPlace { obligation: to, outline: None, from: Vec::new() });
            self.search.retained.extend([Ldd::EMPTY; 2]);
        }
        if let Some(from) = from
            && !self.places[place].from.contains(&from)
        {
            self.places[place].from.push(from);
        }
        let old = self.search.retained[2 * place + 1];
        let new = self.search.manager.minus(set, self.search.retained[2 * place]);
        self.search.retained[2 * place + 1] = self.search.manager.union(old, new);
        if !new.is_empty() {
            self.queue.insert(place);
        }
        Ok(false)
    }

    /// Returns the test of an obligation, if it is one.
    pub fn test(&mut self, obligation: u32) -> Result<Option<Rc<LabelTest>>, Diagnostic> {
        if let Some(test) = self.tests.get(&obligation) {
            return Ok(test.clone());
        }
        let test = self.observer.test(obligation, &self.classes.labels)?.map(Rc::new);
        self.tests.insert(obligation, test.clone());
        Ok(test)
    }

    /// Returns the states of a set that decide an obligation that is a test.
    pub fn deciding_states(&mut self, obligation: u32, set: Ldd) -> Result<Ldd, Diagnostic> {
        let Some(test) = self.test(obligation)? else { return Ok(Ldd::EMPTY) };
        let fine = self.states_that_pass(&test, set);
        Ok(self.search.manager.minus(set, fine))
    }

    fn states_that_pass(&mut self, test: &LabelTest, set: Ldd) -> Ldd {
        match test {
            LabelTest::Constant(true) => set,
            LabelTest::Constant(false) => Ldd::EMPTY,
            LabelTest::Not(test) => {
                let passing = self.states_that_pass(test, set);
                self.search.manager.minus(set, passing)
            }
            LabelTest::All(list) => {
                list.iter().fold(set, |set, test| self.states_that_pass(test, set))
            }
            LabelTest::Any(list) => list.iter().fold(Ldd::EMPTY, |done, test| {
                let passing = self.states_that_pass(test, set);
                self.search.manager.union(done, passing)
            }),
            LabelTest::Leaves(labels) => {
                let wanted: BTreeSet<usize> =
                    labels.iter().filter_map(|l| self.classes.number(*l)).collect();
                let mut passing = Ldd::EMPTY;
                for i in 0..self.classes.relations() {
                    let rows = self.part(i, &|class| wanted.contains(&class));
                    let able = self.sources(set, i, rows);
                    passing = self.search.manager.union(passing, able);
                }
                passing
            }
        }
    }

    /// Returns the states of a set that have some of these steps.
    pub fn sources(&mut self, set: Ldd, relation: usize, rows: Ldd) -> Ldd {
        self.search.sources(set, relation, rows)
    }

    /// Returns the steps of a relation in the selected classes.
    fn part(&mut self, relation: usize, wanted: &dyn Fn(usize) -> bool) -> Ldd {
        self.classes.part(&mut self.search, relation, wanted)
    }

    /// Returns the effect of the model's steps on the obligation of a place.
    pub fn outline(&mut self, place: usize) -> Result<Rc<Outline>, Diagnostic> {
        if let Some(outline) = &self.places[place].outline {
            return Ok(outline.clone());
        }
        let q = self.places[place].obligation;
        let mut answers = Vec::with_capacity(self.classes.labels.len());
        let mut targets: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for (class, &label) in self.classes.labels.iter().enumerate() {
            let answer = self.observer.step(q, label)?;
            for &to in answer.iter().flat_map(|a| a.iter()).filter(|to| **to != q) {
                targets.entry(to).or_default().insert(class);
            }
            answers.push(answer);
        }
        let (mut keeps, mut decides, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        let keep = |class: usize| answers[class].as_ref().is_some_and(|a| a.contains(&q));
        let decided = |class: usize| answers[class].is_none();
        for i in 0..self.classes.relations() {
            if self.classes.of(i).all(keep) {
                keeps.push((i, None));
            } else {
                let part = self.part(i, &keep);
                if !part.is_empty() {
                    keeps.push((i, Some(part)));
                }
            }
            let rows = self.part(i, &decided);
            if !rows.is_empty() {
                decides.push((i, rows));
            }
            let here: BTreeSet<usize> = self.classes.of(i).collect();
            for (&to, classes) in &targets {
                if classes.is_disjoint(&here) {
                    continue;
                }
                let rows = self.part(i, &|class| classes.contains(&class));
                edges.push(ObligationEdge { to, relation: i, rows });
            }
        }
        let parts = keeps.iter().filter_map(|k: &(usize, Option<Ldd>)| k.1);
        let used: Vec<Ldd> =
            parts.chain(edges.iter().map(|e| e.rows)).chain(decides.iter().map(|d| d.1)).collect();
        self.search.pinned.extend(used);
        let context = Arc::new(self.search.context(&keeps, false));
        let outline = Rc::new(Outline { keeps, context, edges, decides });
        self.places[place].outline = Some(outline.clone());
        Ok(outline)
    }
}
