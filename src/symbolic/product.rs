//! A model beside an observer of its labels, over sets of states: which obligations can meet which
//! states, and whether one is decided.
//!
//! Input -> output: a [`Model`] and an [`Observer`] (such as a formula: obligations are its states
//! with their data) -> [`Watched`]: the number of pairs of state and obligation, or a run that
//! decides an obligation.
//!
//! First the model alone is searched by saturation, which leaves the relations whole. Then each
//! obligation has its own set of states. The steps that leave it as it is make a saturation context
//! (`saturation.rs`), so its set is closed at once and shares with all other obligations, and with
//! the model's own search, the work below the levels where they differ: that is most of it, since
//! an observer looks at few labels. Steps that change the obligation carry images to other
//! obligations' sets, first met first served.
//!
//! Cost: (obligations x classes of labels) questions to the observer; for each obligation at most a
//! search of the model. Invariants: a set is closed under its context once its obligation has been
//! visited; live diagrams are in `kept` and `pinned`.

use super::label_classes::Classes;
use super::ldd::Ldd;
use super::reach::{Options, Outcome, Search, with_threads};
use super::saturation::Context;
use super::{Strategy, Trace};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stop};
use mu_model::Model;
use num_bigint::BigUint;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Watches the labels of runs. Obligations are numbers of its own.
pub trait Observer {
    /// A label of the model's that is observed just as this one is; one for all labels that are.
    fn class(&mut self, label: LabelId) -> Result<LabelId, Diagnostic>;
    /// What an obligation becomes along a label (ascending); none: it is decided.
    fn step(&mut self, obligation: u32, label: LabelId) -> Result<Option<Rc<[u32]>>, Diagnostic>;
    /// If the labels that leave a state tell whether the obligation is decided there: when it is
    /// not. `labels` are all that there are, one a class. Other obligations flow.
    fn test(&mut self, obligation: u32, labels: &[LabelId]) -> Result<Option<Test>, Diagnostic>;
    /// Whether a run that never ends under such obligations decides.
    fn hostile(&mut self, obligation: u32) -> bool;
}

/// A condition on the labels that leave a state.
#[derive(Clone, Debug)]
pub enum Test {
    /// True or false.
    Constant(bool),
    /// A step of one of these classes leaves.
    Leaves(Vec<LabelId>),
    /// The contrary.
    Not(Box<Test>),
    /// All of these.
    All(Vec<Test>),
    /// Some of these.
    Any(Vec<Test>),
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Watched {
    /// What the search of the model found and cost. If it is not complete, nothing is known unless
    /// something is decided.
    pub outcome: Outcome,
    /// Pairs of state and obligation met.
    pub pairs: BigUint,
    /// Obligations met.
    pub obligations: usize,
    /// Whether an obligation is decided.
    pub decided: bool,
    /// How; none if nothing is decided, or a limit came before it was found.
    pub run: Option<Run>,
}

/// A run that decides.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its steps.
    pub trace: Trace,
    /// How it decides.
    pub end: End,
}

/// How a run decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By its last label.
    Label,
    /// By the labels that leave its last state, as to this obligation.
    Test(u32),
    /// By going on for ever: its last state is that after so many steps.
    Back(usize),
}

/// Steps of a relation that lead from one obligation to another.
pub(super) struct Edge {
    pub to: u32,
    pub relation: usize,
    pub rows: Ldd,
}

/// What the steps of the model are to an obligation.
pub(super) struct Outline {
    /// Steps that leave it as it is: relations, whole or in part.
    pub keeps: Vec<(usize, Option<Ldd>)>,
    context: Arc<Context>,
    /// Steps that change it.
    pub edges: Vec<Edge>,
    /// Steps that decide it.
    pub decides: Vec<(usize, Ldd)>,
}

/// An obligation that flows. Its states are at twice its place in `Search::kept`, those still to be
/// carried on next to them.
pub(super) struct Place {
    pub obligation: u32,
    outline: Option<Rc<Outline>>,
    /// Places that it was reached from.
    pub from: Vec<usize>,
}

/// A search with its observer.
pub(super) struct Watch<'a, 'm> {
    pub search: Search<'m>,
    pub observer: &'a mut dyn Observer,
    /// The states of the model.
    pub all: Ldd,
    classes: Classes,
    pub places: Vec<Place>,
    pub place_of: AHashMap<u32, usize>,
    tests: AHashMap<u32, Option<Rc<Test>>>,
    queue: BTreeSet<usize>,
}

/// Searches a model under observation, from some obligations at the initial state. The strategy is
/// saturation, whatever the options say.
pub fn watch(
    model: &dyn Model,
    observer: &mut dyn Observer,
    start: &[u32],
    options: &Options,
    budget: &Budget,
) -> Result<Watched, Diagnostic> {
    with_threads(model, options, budget, |team| {
        let mut search = Search::new(model, options, budget, None)?;
        search.engage(team);
        let states = search.run(Strategy::Saturation)?;
        let nothing = |outcome| Watched {
            outcome,
            pairs: BigUint::default(),
            obligations: 0,
            decided: false,
            run: None,
        };
        if search.halted() {
            return Ok(nothing(search.outcome(states)?));
        }
        search.learn_rest(states);
        if let Some(error) = search.failure.take() {
            return Err(error);
        }
        search.pinned.push(states);
        let mut watch = Watch::new(search, observer, states)?;
        let decided = watch.run(start)?;
        let pairs =
            (0..watch.places.len()).map(|i| watch.search.manager.count(watch.states(i))).sum();
        let obligations = watch.places.len();
        let complete = !watch.search.halted();
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
            // A limit may have come when only the run was looked for.
            outcome.stop = Stop::Complete;
        }
        Ok(Watched { outcome, pairs, obligations, decided, run })
    })
}

/// Where a decision was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// By a label, under the obligation of this place.
    Label(usize),
    /// By a test on the way from this place; none: at the start.
    Test(Option<usize>, u32),
}

impl<'a, 'm> Watch<'a, 'm> {
    /// Begins with a search whose relations are whole; `all` are the states of the model, which
    /// must be kept.
    fn new(
        mut search: Search<'m>,
        observer: &'a mut dyn Observer,
        all: Ldd,
    ) -> Result<Self, Diagnostic> {
        let classes = Classes::new(&mut search, &mut |label| observer.class(label))?;
        let (places, place_of, tests, queue) =
            (Vec::new(), AHashMap::new(), AHashMap::new(), BTreeSet::new());
        Ok(Self { search, observer, all, classes, places, place_of, tests, queue })
    }

    /// The states met under the obligation of a place.
    pub fn states(&self, place: usize) -> Ldd {
        self.search.kept[2 * place]
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
            if decision.is_some() || self.search.halted() {
                return Ok(decision);
            }
        }
        Ok(None)
    }

    /// Carries on what is new at a place.
    fn visit(&mut self, i: usize) -> Result<Option<Decision>, Diagnostic> {
        let outline = self.outline(i)?;
        let seen = self.search.kept[2 * i];
        let new = self.search.manager.minus(self.search.kept[2 * i + 1], seen);
        self.search.kept[2 * i + 1] = new;
        if new.is_empty() {
            return Ok(None);
        }
        let closure = self.search.saturate_in(&outline.context, new);
        let fresh = self.search.manager.minus(closure, seen);
        self.search.kept[2 * i] = self.search.manager.union(seen, closure);
        // Kept alive while its images are made; no obligation's edges lead to itself.
        self.search.kept[2 * i + 1] = fresh;
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
            if self.search.halted() {
                return Ok(None);
            }
        }
        self.search.kept[2 * i + 1] = Ldd::EMPTY;
        Ok(None)
    }

    /// The image of a set under some steps of a relation.
    pub fn image(&mut self, set: Ldd, relation: usize, rows: Ldd) -> Ldd {
        let plan = self.search.relations[relation].image[0];
        self.search.manager.relprod(set, rows, plan)
    }

    /// Brings an obligation to states; whether that decides.
    fn bring(&mut self, from: Option<usize>, to: u32, set: Ldd) -> Result<bool, Diagnostic> {
        if self.test(to)?.is_some() {
            return Ok(!self.failing(to, set)?.is_empty());
        }
        let fresh = self.places.len();
        let place = *self.place_of.entry(to).or_insert(fresh);
        if place == fresh {
            self.places.push(Place { obligation: to, outline: None, from: Vec::new() });
            self.search.kept.extend([Ldd::EMPTY; 2]);
        }
        if let Some(from) = from
            && !self.places[place].from.contains(&from)
        {
            self.places[place].from.push(from);
        }
        let old = self.search.kept[2 * place + 1];
        let new = self.search.manager.minus(set, self.search.kept[2 * place]);
        self.search.kept[2 * place + 1] = self.search.manager.union(old, new);
        if !new.is_empty() {
            self.queue.insert(place);
        }
        Ok(false)
    }

    /// The test that an obligation is, if it is one.
    pub fn test(&mut self, obligation: u32) -> Result<Option<Rc<Test>>, Diagnostic> {
        if let Some(test) = self.tests.get(&obligation) {
            return Ok(test.clone());
        }
        let test = self.observer.test(obligation, &self.classes.labels)?.map(Rc::new);
        self.tests.insert(obligation, test.clone());
        Ok(test)
    }

    /// The states of a set that an obligation that is a test is decided by.
    pub fn failing(&mut self, obligation: u32, set: Ldd) -> Result<Ldd, Diagnostic> {
        let Some(test) = self.test(obligation)? else { return Ok(Ldd::EMPTY) };
        let fine = self.passing(&test, set);
        Ok(self.search.manager.minus(set, fine))
    }

    fn passing(&mut self, test: &Test, set: Ldd) -> Ldd {
        match test {
            Test::Constant(true) => set,
            Test::Constant(false) => Ldd::EMPTY,
            Test::Not(test) => {
                let passing = self.passing(test, set);
                self.search.manager.minus(set, passing)
            }
            Test::All(list) => list.iter().fold(set, |set, test| self.passing(test, set)),
            Test::Any(list) => list.iter().fold(Ldd::EMPTY, |done, test| {
                let passing = self.passing(test, set);
                self.search.manager.union(done, passing)
            }),
            Test::Leaves(labels) => {
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

    /// The states of a set that have some of these steps.
    pub fn sources(&mut self, set: Ldd, relation: usize, rows: Ldd) -> Ldd {
        self.search.sources(set, relation, rows)
    }

    /// The steps of a relation whose class is wanted.
    fn part(&mut self, relation: usize, wanted: &dyn Fn(usize) -> bool) -> Ldd {
        self.classes.part(&mut self.search, relation, wanted)
    }

    /// What the steps of the model are to the obligation of a place.
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
                edges.push(Edge { to, relation: i, rows });
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
