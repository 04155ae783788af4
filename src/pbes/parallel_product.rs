//! The product route in parallel: obligations of a conjunctive (dually disjunctive) formula as
//! annotations of the explorer's search.
//!
//! In: model, automaton, shape of the formula, initial obligations. Out: as [`super::product`];
//! here the sets of obligations are hash-consed trees ([`super::obligations`]) that all threads
//! share, propagated by [`mu_explore::annotate`]. One search handles all instances of outer
//! quantifiers: a step costs the nodes in which sets differ, not the number of instances.
//!
//! The automaton belongs to the calling thread, which answers the other threads' questions about
//! single formula states; each thread asks a question once while its cache holds the answer. A
//! search by one thread is the calling thread's, which answers itself: no other is started.
//!
//! A cycle of obligations refutes a least fixed point (dually a greatest one). There is none if
//! every annotated step led forward, or if the model is acyclic; otherwise the search over stored
//! states decides.
//!
//! A symmetry of the model is used if it is a symmetry of the formula too: it preserves the initial
//! obligations, and the image of what a formula state becomes along a label is what its image
//! becomes along the image of the label. The second condition holds if the formula mentions none of
//! the constants that are permuted (`mentions`). Otherwise each answer is verified; if one
//! fails, the search is void and is repeated without symmetries.
//!
//! Cost: that of the exploration, two numbers a state, and the sets. Invariant: verdicts and the
//! number of obligations of a complete search do not depend on threads.

use super::automaton::{Automaton, Demand, FormulaState};
use super::automaton_client::{Ask, Automata, Question, gone, put};
use super::confluence::{self, Priority};
use super::obligations::{Answer, EMPTY, Operations, Set, Sets};
use super::product::{Figures, Kind, Outcome, Shape, close, local_value, loops_here};
use super::proviso::{self, Order};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, OpId, StateId};
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_data::engine::image_of;
use mu_explore::{
    AnnotateExtras, AnnotationTable, AnnotationWorker, Annotator, CheckpointWriter, Cyclic, Peers,
    Progress, RejectedSymmetry, RestoredSearch, Symmetries, Transfer, Visibility,
    with_verified_symmetries,
};
use mu_labels::ActionLabels;
use mu_model::{Model, Worker};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Obligations as an annotation.
struct Obligations<'a> {
    sets: &'a Sets,
    initial: Set,
    /// Whether some formula states are local.
    locals: bool,
    questions: Sender<Question>,
}

impl Annotator for Obligations<'_> {
    fn initial(&self) -> u32 {
        self.initial
    }
    fn annotation_worker(&self) -> Box<dyn AnnotationWorker + '_> {
        Box::new(Thread::new(self.sets, self.questions.clone(), self.locals))
    }
    fn save(&self) -> Result<AnnotationTable, Diagnostic> {
        let names = put(&self.questions, |reply| Question::States { reply })?;
        Ok(AnnotationTable { names, records: self.sets.records() })
    }
    fn load(&self, records: &[u64]) -> Result<(), Diagnostic> {
        let states = put(&self.questions, |reply| Question::States { reply })?.len();
        if self.sets.load(records, states as u32) {
            return Ok(());
        }
        Err(Diagnostic::new(
            Stage::File,
            "the obligations in the checkpoint are not those of this formula",
        ))
    }
}

impl Automata for &RefCell<Oracle<'_>> {
    fn steps(&self, states: Vec<u32>, label: u32) -> Result<Vec<Answer>, Diagnostic> {
        self.borrow_mut().steps(&states, label)
    }
    fn locals(&self, states: Vec<u32>) -> Result<Vec<u32>, Diagnostic> {
        Ok(self.borrow().locals(states))
    }
    fn decide(&self, states: Vec<u32>, labels: Vec<LabelId>) -> Result<bool, Diagnostic> {
        self.borrow_mut().decide(&states, labels)
    }
    fn alike(&self, label: u32) -> Result<u32, Diagnostic> {
        self.borrow_mut().alike(label)
    }
    fn images_of(&self, states: Vec<u32>, element: u32) -> Result<Vec<u32>, Diagnostic> {
        self.borrow_mut().images_of(&states, element)
    }
}

/// One searching thread.
pub(super) struct Thread<'a, Q> {
    pub operations: Operations<'a>,
    ask: Ask<Q>,
    locals: bool,
    /// By set: what flows on, and the local members.
    split: AHashMap<Set, (Set, Set)>,
    /// By local members and outgoing labels.
    decided: AHashMap<(Set, Vec<LabelId>), bool>,
}

impl<'a, Q: Automata> Thread<'a, Q> {
    /// With empty caches. `locals`: whether some formula states are local.
    pub fn new(sets: &'a Sets, questions: Q, locals: bool) -> Self {
        let (split, decided) = (AHashMap::new(), AHashMap::new());
        Self { operations: Operations::new(sets), ask: Ask::new(questions), locals, split, decided }
    }
    pub fn result<T>(&self, value: T) -> Result<T, Diagnostic> {
        if self.operations.sets().is_full() {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                "too many different sets of obligations to be numbered",
            ));
        }
        Ok(value)
    }
}

impl<Q: Automata> AnnotationWorker for Thread<'_, Q> {
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
        let joined = self.operations.join(old, new);
        self.result(joined)
    }
    fn enter(&mut self, pending: u32, labels: &[LabelId]) -> Result<Transfer, Diagnostic> {
        if !self.locals {
            return Ok(Transfer::Value(pending));
        }
        let (flow, local) = match self.split.get(&pending) {
            Some(parts) => *parts,
            None => {
                let sets = self.operations.sets();
                let members = sets.members(pending);
                let local = self.ask.questions.locals(members.clone())?;
                let flow: Vec<u32> =
                    members.into_iter().filter(|q| local.binary_search(q).is_err()).collect();
                let parts = (sets.from_members(&flow), sets.from_members(&local));
                self.split.insert(pending, parts);
                parts
            }
        };
        if local != EMPTY {
            let mut labels = labels.to_vec();
            labels.sort_unstable();
            labels.dedup();
            let key = (local, labels);
            let decided = match self.decided.get(&key) {
                Some(d) => *d,
                None => {
                    let states = self.operations.sets().members(local);
                    let decided = self.ask.questions.decide(states, key.1.clone())?;
                    self.decided.insert(key, decided);
                    decided
                }
            };
            if decided {
                return Ok(Transfer::Decided);
            }
        }
        self.result(Transfer::Value(flow))
    }
    fn step(&mut self, flow: u32, label: LabelId) -> Result<Transfer, Diagnostic> {
        let label = self.ask.alike(label)?;
        let next = self.operations.step(flow, label, &mut self.ask)?;
        self.result(next.map_or(Transfer::Decided, Transfer::Value))
    }
    fn image(&mut self, element: usize, annotation: u32) -> Result<u32, Diagnostic> {
        let image = self.operations.image(annotation, element as u32, &mut self.ask)?;
        self.result(image)
    }
}

/// The automaton's side.
pub(super) struct Oracle<'a> {
    pub automaton: &'a mut Automaton,
    labels: &'a dyn ActionLabels,
    shape: &'a Shape,
    sets: &'a Sets,
    /// Demands with all that they demand at the same system state; none: decided.
    closed: AHashMap<Demand, Option<Set>>,
    /// A label that no multi-action of the formula has the names of: it stands for all such.
    other: Option<u32>,
    pub symmetry: Option<Symmetry<'a>>,
    /// The group of symmetries in use, to be told if something is none.
    pub group: Option<&'a Symmetries>,
    /// If steps are left out: a formula state that tells a step whose label the formula does not
    /// name.
    reduced: bool,
    told: Option<FormulaState>,
}

/// What the automaton's side knows of the symmetries in use.
pub(super) struct Symmetry<'a> {
    worker: Box<dyn Worker + 'a>,
    /// By element: the candidates that it is made of, and what it makes of constants.
    elements: Vec<(Vec<usize>, Vec<(OpId, OpId)>)>,
    /// Images of formula states by element.
    images: AHashMap<(u32, u32), Option<u32>>,
    labels: AHashMap<(u32, u32), Option<LabelId>>,
    /// Whether the formula is known to be symmetric.
    proven: bool,
    /// Pairs of formula state and label whose answer was compared with those of all images.
    confirmed: AHashSet<(u32, u32)>,
}

impl<'a> Symmetry<'a> {
    pub fn new(
        of: &Symmetries,
        model: &'a dyn Model,
        labels: &dyn ActionLabels,
        automaton: &Automaton,
    ) -> Option<Self> {
        let mut elements = Vec::new();
        for word in of.words() {
            let mut map: Vec<(OpId, OpId)> = Vec::new();
            for &candidate in word {
                let next = labels.constructor_images(candidate)?;
                let fresh: Vec<(OpId, OpId)> =
                    next.iter().copied().filter(|n| map.iter().all(|m| m.0 != n.0)).collect();
                map.iter_mut().for_each(|m| m.1 = image_of(next, m.1));
                map.extend(fresh);
            }
            elements.push((word.to_vec(), map));
        }
        let (images, known, confirmed) = (AHashMap::new(), AHashMap::new(), AHashSet::new());
        let proven = elements.iter().all(|e| automaton.ignores(&e.1));
        Some(Self { worker: model.worker(), elements, proven, images, labels: known, confirmed })
    }
    fn image(&mut self, automaton: &mut Automaton, element: u32, q: u32) -> Option<u32> {
        let map = &self.elements[element as usize].1;
        *self
            .images
            .entry((element, q))
            .or_insert_with(|| automaton.image(FormulaState(q), map).map(|q| q.0))
    }
    fn label(&mut self, element: u32, label: u32) -> Result<Option<LabelId>, Diagnostic> {
        if let Some(image) = self.labels.get(&(element, label)) {
            return Ok(*image);
        }
        let mut image = Some(LabelId(label));
        for &candidate in &self.elements[element as usize].0 {
            image = match image {
                Some(label) => self.worker.image_label(candidate, label)?,
                None => None,
            };
        }
        self.labels.insert((element, label), image);
        Ok(image)
    }
}

impl<'a> Oracle<'a> {
    /// `reduced`: whether steps are left out.
    pub fn new(
        automaton: &'a mut Automaton,
        labels: &'a dyn ActionLabels,
        shape: &'a Shape,
        sets: &'a Sets,
        reduced: bool,
    ) -> Self {
        let closed = AHashMap::new();
        Self {
            automaton,
            labels,
            shape,
            sets,
            closed,
            other: None,
            symmetry: None,
            group: None,
            reduced,
            told: None,
        }
    }
    /// The obligations of some formula states with all that they demand at the same system state;
    /// none: decided.
    pub fn start(&mut self, roots: &[FormulaState]) -> Result<Option<Set>, Diagnostic> {
        let demand = self.automaton.intern_set(roots.to_vec());
        self.close(demand)
    }
    /// Whether some formula states are decided at a system state by its labels alone.
    pub fn has_locals(&self) -> bool {
        self.shape.kinds.values().any(|k| *k == Kind::Local)
    }
    fn serve(&mut self, questions: Receiver<Question>) {
        for question in questions {
            // A thread that does not wait any more has met an error of its own.
            match question {
                Question::Steps { states, label, reply } => {
                    drop(reply.send(self.steps(&states, label)))
                }
                Question::Alike { label, reply } => drop(reply.send(self.alike(label))),
                Question::Images { states, element, reply } => {
                    drop(reply.send(self.images_of(&states, element)))
                }
                Question::States { reply } => drop(reply.send(self.automaton.export_states())),
                Question::Locals { states, reply } => drop(reply.send(Ok(self.locals(states)))),
                Question::Decide { states, labels, reply } => {
                    drop(reply.send(self.decide(&states, labels)))
                }
            }
        }
    }
    fn steps(&mut self, states: &[u32], label: u32) -> Result<Vec<Answer>, Diagnostic> {
        self.stays_blind(states, label)?;
        states.iter().map(|q| self.confirmed_step(FormulaState(*q), LabelId(label))).collect()
    }
    fn alike(&mut self, label: u32) -> Result<u32, Diagnostic> {
        let named = self.automaton.names(LabelId(label), self.labels)?;
        Ok(if named { label } else { *self.other.get_or_insert(label) })
    }
    fn images_of(&mut self, states: &[u32], element: u32) -> Result<Vec<u32>, Diagnostic> {
        states.iter().map(|q| self.image(element, *q).ok_or_else(|| self.refuse(element))).collect()
    }
    /// Those of some formula states that must not go on for ever.
    pub fn lfp_members(&self, mut states: Vec<u32>) -> Vec<u32> {
        states.retain(|q| self.shape.hostile.contains(&self.automaton.node(FormulaState(*q))));
        states
    }
    fn locals(&self, mut states: Vec<u32>) -> Vec<u32> {
        states.retain(|q| {
            self.shape.kinds.get(&self.automaton.node(FormulaState(*q))) == Some(&Kind::Local)
        });
        states
    }
    fn decide(&mut self, states: &[u32], labels: Vec<LabelId>) -> Result<bool, Diagnostic> {
        // The targets are shown in evidence only, which is looked for elsewhere.
        let steps: Vec<(LabelId, StateId)> = labels.into_iter().map(|l| (l, StateId(0))).collect();
        let decided = self.decided(states, &steps)?;
        self.confirm_decision(states, &steps, decided)?;
        Ok(decided)
    }
    /// Ends a search in which steps are left out that a formula state tells.
    fn stays_blind(&mut self, states: &[u32], label: u32) -> Result<(), Diagnostic> {
        if !self.reduced || self.automaton.names(LabelId(label), self.labels)? {
            return Ok(());
        }
        for q in states.iter().map(|q| FormulaState(*q)) {
            if proviso::tells(self.automaton, q)? {
                self.told = Some(q);
                return Err(Diagnostic::new(
                    Stage::Unsupported,
                    "the formula tells steps that were left out",
                ));
            }
        }
        Ok(())
    }
    /// Whether one of these is decided against the formula where such steps leave.
    fn decided(
        &mut self,
        states: &[u32],
        steps: &[(LabelId, StateId)],
    ) -> Result<bool, Diagnostic> {
        for q in states {
            if local_value(self.automaton, FormulaState(*q), steps, self.labels, &mut Vec::new())?
                != self.shape.universal
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    fn image(&mut self, element: u32, q: u32) -> Option<u32> {
        self.symmetry.as_mut()?.image(self.automaton, element, q)
    }
    /// Of the symmetries those that take the obligations at the start to themselves, if there are
    /// any.
    pub fn stabiliser<'s>(
        &mut self,
        symmetries: Option<&'s mut Symmetries>,
        task: Task<'a>,
        initial: Set,
    ) -> Option<&'s Symmetries> {
        let all = symmetries?;
        self.symmetry = Symmetry::new(all, task.model, task.labels, self.automaton);
        let count = self.symmetry.as_ref().map_or(0, |s| s.elements.len() as u32);
        let keep: Vec<bool> =
            (0..count).map(|e| self.image_set(e, initial) == Some(initial)).collect();
        all.retain(|e| keep.get(e).copied().unwrap_or(false));
        Some(&*all).filter(|a| a.order() > 1)
    }
    /// The images of a set's members.
    fn image_set(&mut self, element: u32, set: Set) -> Option<Set> {
        let mut members: Vec<u32> = self
            .sets
            .members(set)
            .into_iter()
            .map(|q| self.image(element, q))
            .collect::<Option<_>>()?;
        members.sort_unstable();
        Some(self.sets.from_members(&members))
    }
    fn image_label(&mut self, element: u32, label: LabelId) -> Result<Option<LabelId>, Diagnostic> {
        self.symmetry.as_mut().map_or(Ok(None), |s| s.label(element, label.0))
    }
    fn refuse(&self, element: u32) -> Diagnostic {
        self.group.map_or_else(gone, |group| group.refuse_element(element as usize))
    }
    /// A step whose images, if there are symmetries, were found to be those of its images.
    fn confirmed_step(&mut self, q: FormulaState, label: LabelId) -> Result<Answer, Diagnostic> {
        let answer = self.step(q, label)?;
        let Some(symmetry) = &self.symmetry else { return Ok(answer) };
        if symmetry.proven || symmetry.confirmed.contains(&(q.0, label.0)) {
            return Ok(answer);
        }
        let elements = symmetry.elements.len() as u32;
        let mut orbit = vec![(q.0, label.0)];
        let own = self.as_set(q, answer);
        for element in 0..elements {
            let (Some(q2), Some(label2)) =
                (self.image(element, q.0), self.image_label(element, label)?)
            else {
                return Err(self.refuse(element));
            };
            let expected = match own {
                None => None,
                Some(set) => match self.image_set(element, set) {
                    Some(image) => Some(image),
                    None => return Err(self.refuse(element)),
                },
            };
            match self.step(FormulaState(q2), label2) {
                Ok(found) if self.as_set(FormulaState(q2), found) == expected => {
                    orbit.push((q2, label2.0))
                }
                Err(limit) if limit.stop.is_some() => return Err(limit),
                // An image that cannot be evaluated need not be met without symmetries.
                _ => return Err(self.refuse(element)),
            }
        }
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.confirmed.extend(orbit);
        }
        Ok(answer)
    }
    /// An answer as a set; none: decided.
    fn as_set(&self, q: FormulaState, answer: Answer) -> Option<Set> {
        match answer {
            Answer::Same => Some(self.sets.from_members(&[q.0])),
            Answer::States(set) => Some(set),
            Answer::Decided => None,
        }
    }
    fn confirm_decision(
        &mut self,
        states: &[u32],
        steps: &[(LabelId, StateId)],
        decided: bool,
    ) -> Result<(), Diagnostic> {
        for element in
            0..self.symmetry.as_ref().filter(|s| !s.proven).map_or(0, |s| s.elements.len() as u32)
        {
            let images: Option<Vec<u32>> = states.iter().map(|q| self.image(element, *q)).collect();
            let mut image_steps = Vec::new();
            for (label, target) in steps {
                image_steps.extend(self.image_label(element, *label)?.map(|l| (l, *target)));
            }
            let Some(images) = images.filter(|_| image_steps.len() == steps.len()) else {
                return Err(self.refuse(element));
            };
            match self.decided(&images, &image_steps) {
                Ok(image) if image == decided => {}
                Err(limit) if limit.stop.is_some() => return Err(limit),
                _ => return Err(self.refuse(element)),
            }
        }
        Ok(())
    }
    fn step(&mut self, q: FormulaState, label: LabelId) -> Result<Answer, Diagnostic> {
        let demand = self.automaton.step(q, label, self.labels)?;
        let set = match self.closed.get(&demand) {
            Some(set) => *set,
            None => {
                let set = self.close(demand)?;
                self.closed.insert(demand, set);
                set
            }
        };
        Ok(match set {
            None => Answer::Decided,
            // Most steps leave a formula state as it is.
            Some(set)
                if demand != Demand::NOTHING
                    && self.automaton.set(demand)[..] == [q]
                    && self.sets.members(set) == [q.0] =>
            {
                Answer::Same
            }
            Some(set) => Answer::States(set),
        })
    }
    fn close(&mut self, demand: Demand) -> Result<Option<Set>, Diagnostic> {
        if demand == Demand::Decided {
            return Ok(None);
        }
        let Some((flow, local)) =
            close(self.automaton, self.shape, &self.automaton.set(demand).clone())?
        else {
            return Ok(None);
        };
        let mut members: Vec<u32> = flow.into_iter().chain(local).map(|q| q.0).collect();
        members.sort_unstable();
        members.dedup();
        Ok(Some(self.sets.from_members(&members)))
    }
}

/// What is searched.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Multi-actions of its labels.
    pub labels: &'a dyn ActionLabels,
    /// How to explore it.
    pub explore: &'a mu_explore::Options,
    /// Limits.
    pub budget: &'a Budget,
    /// Who watches.
    pub progress: &'a dyn Progress,
    /// Where the search is kept.
    pub shelf: Option<&'a dyn Shelf>,
    /// The search's name there.
    pub name: &'a str,
    /// Whether each run is known to end, so that cycles of steps do not matter.
    pub runs_end: bool,
    /// Processes that search together; none: this one alone.
    pub peers: Option<&'a dyn Peers>,
}

/// Where the searches of one formula are kept, each by its name. All searches of a run, and of
/// those before it that left something here, number formula states alike.
pub trait Shelf: Sync {
    /// Formula states by number, as far as searches that are kept speak of them; see
    /// [`AnnotationTable::names`].
    fn names(&self) -> Vec<Vec<String>>;
    /// Who keeps a search.
    fn checkpoints(&self, search: &str) -> Box<dyn CheckpointWriter + '_>;
    /// What was kept of it.
    fn restored(&self, search: &str) -> Result<Option<RestoredSearch>, Diagnostic>;
}

/// What a search gave, and which reductions it used.
pub struct Searched {
    /// Outcome and figures; none if the sets are too many to be numbered.
    pub found: Option<(Outcome, Figures)>,
    /// Whether confluent steps were taken at once.
    pub priority: Priority,
    /// Whether steps were left out.
    pub order: Order,
    /// Candidates for symmetries of the model that were not used, since they are none of it or of
    /// the formula.
    pub dropped: Vec<RejectedSymmetry>,
}

/// Searches from the initial state with the given obligations; no outcome if the sets are too many
/// to be numbered.
///
/// Confluent steps are taken at once, and steps left out, only for formulas whose verdict depends
/// on weak traces and states without steps, and if no formula state met sees tau, or labels that
/// the formula does not name.
pub fn search(
    task: Task,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
) -> Result<Searched, Diagnostic> {
    let plain = task.explore.without_confluence();
    let all_steps = Task { explore: &plain, ..task };
    if let Some(peers) = task.peers {
        return super::distributed_product::search(task, peers, automaton, shape, roots);
    }
    let priority = match task.explore.confluent.iter().any(|c| *c) {
        false => Priority::None,
        true => match confluence::forbidden(automaton, shape) {
            Some(forbidden) => forbidden,
            None => {
                let mut seen = Seen::default();
                let result = search_symmetric(task, automaton, shape, roots, None, &mut seen)?;
                // Else a path may decide that is none of the full system, where steps of tau lie
                // between its steps.
                let priority = match &result.found {
                    Some((Outcome::Verdict(_), _)) => {
                        confluence::of_states(automaton, task.labels, &seen.met)?
                    }
                    _ => Priority::Used,
                };
                if priority == Priority::Used {
                    return Ok(Searched { priority, ..result });
                }
                priority
            }
        },
    };
    let order = match proviso::visibility(all_steps, automaton, shape) {
        Err(why) => why,
        Ok(visibility) => {
            let mut seen = Seen::default();
            let result =
                search_symmetric(all_steps, automaton, shape, roots, Some(&visibility), &mut seen);
            let order = match (seen.told, &result) {
                (Some(q), _) => proviso::of_state(automaton, q),
                // What a step that was taken decides is decided.
                (None, Ok(Searched { found: Some((Outcome::Verdict(value), _)), .. }))
                    if *value == shape.universal =>
                {
                    proviso::of_states(automaton, shape, &seen.met)?.unwrap_or(seen.order)
                }
                _ => seen.order,
            };
            if !matches!(order, Order::Forbidden(..)) {
                return Ok(Searched { priority, order, ..result? });
            }
            order
        }
    };
    Ok(Searched {
        priority,
        order,
        ..search_symmetric(all_steps, automaton, shape, roots, None, &mut Seen::default())?
    })
}

/// What a reduced search saw.
#[derive(Default)]
struct Seen {
    /// Formula states.
    met: Vec<u32>,
    /// One that tells a step that may have been left out.
    told: Option<FormulaState>,
    order: Order,
}

/// `visibility`: what is to be kept, if steps are left out.
fn search_symmetric(
    task: Task,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
    visibility: Option<&Visibility>,
    seen: &mut Seen,
) -> Result<Searched, Diagnostic> {
    let search = |symmetries: Option<&mut Symmetries>| {
        search_with(task, automaton, shape, roots, symmetries, (visibility, &mut *seen))
    };
    let (found, dropped) = with_verified_symmetries(task.model, task.explore, search)?;
    Ok(Searched { found, priority: Priority::None, order: Order::None, dropped })
}

fn search_with(
    task: Task,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
    symmetries: Option<&mut Symmetries>,
    (visibility, seen): (Option<&Visibility>, &mut Seen),
) -> Result<Option<(Outcome, Figures)>, Diagnostic> {
    let sets = Sets::default();
    let mut oracle = Oracle::new(&mut *automaton, task.labels, shape, &sets, visibility.is_some());
    let start = oracle.start(roots)?;
    let Some(initial) = start else {
        return Ok(Some((Outcome::Verdict(!shape.universal), Figures::default())));
    };
    if initial == EMPTY {
        return Ok(Some((Outcome::Verdict(shape.universal), Figures::default())));
    }
    let symmetries = oracle.stabiliser(symmetries, task, initial);
    oracle.symmetry =
        symmetries.and_then(|s| Symmetry::new(s, task.model, task.labels, oracle.automaton));
    oracle.group = symmetries;
    // Symmetries come first: the search says so.
    oracle.reduced &= symmetries.is_none();
    let (questions, asked) = channel();
    let locals = oracle.has_locals();
    let annotator = Obligations { sets: &sets, initial, locals, questions: questions.clone() };
    let (sets, at_once) = (&sets, task.explore.confluent.iter().any(|c| *c));
    let priority = if at_once { "p" } else { "" };
    let kept = task.shelf.map(|shelf| {
        (shelf, format!("{}{priority}s{}", task.name, symmetries.map_or(1, Symmetries::order)))
    });
    let Task { model, explore, budget, progress, .. } = task;
    let search = OneSearch {
        model,
        explore,
        budget,
        progress,
        kept,
        sets,
        annotator,
        symmetries,
        visibility,
        at_once,
    };
    let (run, told) = if task.explore.thread_count() == 1 && task.shelf.is_none() {
        let oracle = RefCell::new(oracle);
        let annotation_worker = Box::new(Thread::new(sets, &oracle, locals));
        let run = search.run(&oracle, Some(annotation_worker));
        (run, oracle.into_inner().told)
    } else {
        let run = std::thread::scope(|scope| {
            // Owns the questions' senders, so that the oracle's loop ends with the search.
            let search = scope.spawn(move || search.run(questions, None));
            // A panic must not leave the searching threads waiting: dropping the receiver tells
            // them.
            let served = catch_unwind(AssertUnwindSafe(|| oracle.serve(asked)));
            let run = search.join().unwrap_or_else(|panic| Err(mu_explore::panicked(&panic)));
            served.map_err(|panic| mu_explore::panicked(&panic)).and(run)
        });
        let told = oracle.told;
        drop(oracle);
        (run, told)
    };
    seen.told = told;
    if sets.is_full() {
        return Ok(None);
    }
    let (mut found, mut figures) = run?;
    figures.symmetries = found.symmetries;
    (seen.met, seen.order) = (std::mem::take(&mut found.met), found.order);
    Ok(Some((conclude(found, task, automaton, shape, symmetries)?, figures)))
}

/// A search, whoever answers its questions.
struct OneSearch<'a> {
    model: &'a dyn Model,
    explore: &'a mu_explore::Options,
    budget: &'a Budget,
    progress: &'a dyn Progress,
    /// Where it is kept, and its name there.
    kept: Option<(&'a dyn Shelf, String)>,
    sets: &'a Sets,
    annotator: Obligations<'a>,
    symmetries: Option<&'a Symmetries>,
    visibility: Option<&'a Visibility>,
    /// Whether confluent steps are taken at once.
    at_once: bool,
}

impl OneSearch<'_> {
    /// Searches. `questions`: who answers when the pairs are counted. `annotation_worker`: what a search by this
    /// thread alone computes with.
    fn run<'l>(
        self,
        questions: impl Automata,
        annotation_worker: Option<Box<dyn AnnotationWorker + 'l>>,
    ) -> Result<(Found, Figures), Diagnostic> {
        let Self {
            model,
            explore,
            budget,
            progress,
            kept,
            sets,
            annotator,
            symmetries,
            visibility,
            at_once,
        } = self;
        let checkpoints = kept.as_ref().map(|(shelf, name)| shelf.checkpoints(name));
        let restored =
            kept.as_ref().map(|(shelf, name)| shelf.restored(name)).transpose()?.flatten();
        let kept = AnnotateExtras {
            checkpoints: checkpoints.as_deref(),
            restored,
            visibility,
            annotation_worker,
        };
        let annotated =
            mu_explore::annotate(model, explore, budget, progress, &annotator, symmetries, kept)?;
        let figures = count(&annotated, sets, Ask::new(questions))?;
        let mut known = AHashSet::new();
        if at_once || visibility.is_some() {
            annotated.each(&mut |set, _, _| {
                known.insert(set);
                Ok(())
            })?;
        }
        let found = Found {
            met: sets.union(known),
            decided: annotated.decided(),
            forward: annotated.forward(),
            stop: annotated.outcome().stop.clone(),
            symmetries: annotated.outcome().symmetries,
            order: annotated.outcome().partial_order.into(),
        };
        Ok((found, figures))
    }
}

/// What a search says of the formula.
fn conclude(
    found: Found,
    task: Task,
    automaton: &mut Automaton,
    shape: &Shape,
    symmetries: Option<&Symmetries>,
) -> Result<Outcome, Diagnostic> {
    if found.decided {
        return Ok(Outcome::Verdict(!shape.universal));
    }
    if found.stop != Stop::Complete {
        return Ok(Outcome::Stopped(found.stop));
    }
    if shape.hostile.is_empty() {
        return Ok(Outcome::Verdict(shape.universal));
    }
    let all: Vec<FormulaState> = (0..automaton.state_count() as u32).map(FormulaState).collect();
    if loops_here(automaton, shape, &all)? {
        return Ok(Outcome::Cycle);
    }
    if found.forward || task.runs_end {
        return Ok(Outcome::Verdict(shape.universal));
    }
    Ok(
        match mu_explore::is_acyclic(
            task.model,
            task.explore,
            task.budget,
            task.progress,
            None,
            symmetries,
        )? {
            Cyclic::No(_) => Outcome::Verdict(shape.universal),
            Cyclic::Yes(..) => Outcome::Cycle,
            Cyclic::Unknown(outcome) => Outcome::Stopped(outcome.stop),
        },
    )
}

/// What a search found.
struct Found {
    /// Formula states that were met, if confluent steps were taken at once or steps left out.
    met: Vec<u32>,
    order: Order,
    decided: bool,
    forward: bool,
    stop: Stop,
    symmetries: usize,
}

/// Numbers of states and of pairs (state, obligation) in the full system. All states of an orbit
/// have equally many obligations: those of the representative, closed under the elements that fix
/// it. So an orbit of `n` states has `n * |closure|` pairs.
fn count(
    annotated: &mu_explore::Annotated,
    sets: &Sets,
    mut ask: Ask<impl Automata>,
) -> Result<Figures, Diagnostic> {
    let outcome = annotated.outcome();
    let mut figures = Figures { states: 0, steps: outcome.transitions, ..Figures::default() };
    let mut sizes = Vec::new();
    let mut operations = Operations::new(sets);
    annotated.each(&mut |set, orbit, fixed| {
        let mut all = set;
        for element in fixed {
            let image = operations.image(set, element - 1, &mut ask)?;
            all = operations.join(all, image).0;
        }
        figures.states += orbit;
        figures.configurations += orbit * sets.size(all, &mut sizes);
        Ok(())
    })?;
    Ok(figures)
}
