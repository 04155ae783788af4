//! Parallel product search: obligations of a conjunctive (dually disjunctive) formula as
//! annotations of the explorer's search.
//!
//! In: model, automaton, analysis of the formula, initial obligations. Out: as [`super::product`];
//! here the sets of obligations are hash-consed trees ([`super::obligations`]) that all threads
//! share, propagated by [`mu_explore::annotate`]. One search handles all instances of outer
//! quantifiers: a step costs the nodes in which sets differ, not the number of instances.
//!
//! The calling thread owns the automaton and answers the other threads' queries about single
//! formula states; each thread sends a query once while its cache has the answer. A search by one
//! thread runs in the calling thread, without queries.
//!
//! A cycle of obligations refutes a least fixed point (dually a greatest one). There is none if
//! every annotated step led forward, or if the model is acyclic; otherwise a search over stored
//! states decides.
//!
//! A symmetry of the model is used if it is a symmetry of the formula too. That is, it preserves
//! the initial obligations, and it commutes with the successors of formula states along labels. The
//! second condition holds if the formula mentions none of the permuted constants
//! (`mentioned_constants`). Otherwise each answer is verified; if one fails, the search is void and
//! is repeated without symmetries.
//!
//! Cost: that of the exploration, two numbers a state, and the sets. Invariant: verdicts and the
//! number of obligations of a complete search do not depend on threads.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::automaton_client::{
    AutomatonAccess, CachedAutomaton, Query, missing_automaton, send_query,
};
use super::obligations::{EMPTY, ObligationAnswer, Operations, Set, Sets};
use super::priority::{self, Priority};
use super::product::{
    ObligationKind, ProductAnalysis, ProductCounts, ProductResult, closure,
    has_cycle_without_transitions, local_value,
};
use super::proviso::{self, ReductionUse};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, OpId, StateId};
use mu_base::mixing::{FNV_BASIS, fnv};
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use mu_data::engine::image_of;
use mu_explore::{
    AnnotateExtras, AnnotationTable, AnnotationWorker, Annotator, CheckpointWriter, Cyclic, Peers,
    Progress, RejectedSymmetry, RestoredSearch, Symmetries, SymmetryGroup, Transfer, Visibility,
    with_verified_symmetries,
};
use mu_model::{Model, Worker};
use mu_process::labels::ActionLabels;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Obligations as annotations.
struct Obligations<'a> {
    sets: &'a Sets,
    initial: Set,
    /// True if some formula states are local.
    locals: bool,
    queries: Sender<Query>,
}

impl Annotator for Obligations<'_> {
    fn initial(&self) -> u32 {
        self.initial
    }
    fn annotation_worker(&self) -> Box<dyn AnnotationWorker + '_> {
        Box::new(ObligationWorker::new(self.sets, self.queries.clone(), self.locals))
    }
    fn save(&self) -> Result<AnnotationTable, Diagnostic> {
        let names = send_query(&self.queries, |reply| Query::States { reply })?;
        Ok(AnnotationTable { names, records: self.sets.records() })
    }
    fn load(&self, records: &[u64]) -> Result<(), Diagnostic> {
        let states = send_query(&self.queries, |reply| Query::States { reply })?.len();
        if self.sets.load(records, narrow::index(states)) {
            return Ok(());
        }
        Err(Diagnostic::new(
            Stage::File,
            "the obligations in the checkpoint are not those of this formula",
        ))
    }
}

impl AutomatonAccess for &RefCell<AutomatonOwner<'_>> {
    fn steps(&self, states: Vec<u32>, label: u32) -> Result<Vec<ObligationAnswer>, Diagnostic> {
        self.borrow_mut().steps(&states, label)
    }
    fn locals(&self, states: Vec<u32>) -> Result<Vec<u32>, Diagnostic> {
        Ok(self.borrow().locals(states))
    }
    fn decide(&self, states: Vec<u32>, labels: Vec<LabelId>) -> Result<bool, Diagnostic> {
        self.borrow_mut().decide(&states, labels)
    }
    fn representative(&self, label: u32) -> Result<u32, Diagnostic> {
        self.borrow_mut().representative(label)
    }
    fn images_of(&self, states: Vec<u32>, element: u32) -> Result<Vec<u32>, Diagnostic> {
        self.borrow_mut().images_of(&states, element)
    }
}

/// Annotation worker of one search thread.
pub(super) struct ObligationWorker<'a, Q> {
    pub operations: Operations<'a>,
    automaton: CachedAutomaton<Q>,
    locals: bool,
    /// By set: the members with successors, and the local members.
    split: AHashMap<Set, (Set, Set)>,
    /// By local members and outgoing labels.
    decided: AHashMap<(Set, Vec<LabelId>), bool>,
}

impl<'a, Q: AutomatonAccess> ObligationWorker<'a, Q> {
    /// Creates a worker with empty caches. `locals`: some formula states are local.
    pub fn new(sets: &'a Sets, queries: Q, locals: bool) -> Self {
        let (split, decided) = (AHashMap::new(), AHashMap::new());
        Self {
            operations: Operations::new(sets),
            automaton: CachedAutomaton::new(queries),
            locals,
            split,
            decided,
        }
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

impl<Q: AutomatonAccess> AnnotationWorker for ObligationWorker<'_, Q> {
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
        let joined = self.operations.join(old, new);
        self.result(joined)
    }
    fn enter(&mut self, pending: u32, labels: &[LabelId]) -> Result<Transfer, Diagnostic> {
        if !self.locals {
            return Ok(Transfer::Value(pending));
        }
        let (propagated, local) = match self.split.get(&pending) {
            Some(parts) => *parts,
            None => {
                let sets = self.operations.sets();
                let members = sets.members(pending);
                let local = self.automaton.access.locals(members.clone())?;
                let propagated: Vec<u32> =
                    members.into_iter().filter(|q| local.binary_search(q).is_err()).collect();
                let parts = (sets.from_members(&propagated), sets.from_members(&local));
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
                    let decided = self.automaton.access.decide(states, key.1.clone())?;
                    self.decided.insert(key, decided);
                    decided
                }
            };
            if decided {
                return Ok(Transfer::Decided);
            }
        }
        self.result(Transfer::Value(propagated))
    }
    fn step(&mut self, propagated: u32, label: LabelId) -> Result<Transfer, Diagnostic> {
        let label = self.automaton.representative(label)?;
        let next = self.operations.step(propagated, label, &mut self.automaton)?;
        self.result(next.map_or(Transfer::Decided, Transfer::Value))
    }
    fn image(&mut self, element: usize, annotation: u32) -> Result<u32, Diagnostic> {
        let image =
            self.operations.image(annotation, narrow::index(element), &mut self.automaton)?;
        self.result(image)
    }
}

/// Owner of the automaton, which answers queries.
pub(super) struct AutomatonOwner<'a> {
    pub automaton: &'a mut Automaton,
    labels: &'a dyn ActionLabels,
    analysis: &'a ProductAnalysis,
    sets: &'a Sets,
    /// By obligations: its closure at one state; `None` if decided.
    closures: AHashMap<ObligationSet, Option<Set>>,
    /// Representative of the labels with action names that occur in no multi-action of the formula.
    other: Option<u32>,
    pub symmetry: Option<Symmetry<'a>>,
    /// The symmetry group in use, which records refuted elements.
    pub group: Option<&'a Symmetries>,
    /// For a reduced search: a formula state that distinguishes steps with labels that the formula
    /// does not name.
    reduced: bool,
    distinguishing: Option<FormulaState>,
}

/// The automaton's view of the symmetries in use.
pub(super) struct Symmetry<'a> {
    worker: Box<dyn Worker + 'a>,
    /// By element: its word of candidates, and its permutation of constants.
    elements: Vec<(Vec<usize>, Vec<(OpId, OpId)>)>,
    /// Images of formula states by element.
    images: AHashMap<(u32, u32), Option<u32>>,
    labels: AHashMap<(u32, u32), Option<LabelId>>,
    /// True if the formula is known to be symmetric.
    proven: bool,
    /// Pairs of formula state and label verified under all elements.
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
            .or_insert_with(|| automaton.image(FormulaState::of(q), map).map(|q| q.number()))
    }
    fn label(&mut self, element: u32, label: u32) -> Result<Option<LabelId>, Diagnostic> {
        if let Some(image) = self.labels.get(&(element, label)) {
            return Ok(*image);
        }
        let mut image = Some(LabelId::of(label));
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

impl<'a> AutomatonOwner<'a> {
    /// Creates the owner of an automaton. `reduced`: the search uses partial-order reduction.
    pub fn new(
        automaton: &'a mut Automaton,
        labels: &'a dyn ActionLabels,
        analysis: &'a ProductAnalysis,
        sets: &'a Sets,
        reduced: bool,
    ) -> Self {
        let closures = AHashMap::new();
        Self {
            automaton,
            labels,
            analysis,
            sets,
            closures,
            other: None,
            symmetry: None,
            group: None,
            reduced,
            distinguishing: None,
        }
    }
    /// Returns the closure of some formula states at one system state; `None`: decided.
    pub fn start(&mut self, roots: &[FormulaState]) -> Result<Option<Set>, Diagnostic> {
        let obligations = self.automaton.intern_set(roots.to_vec());
        self.closure(obligations)
    }
    /// True if some formula states are decided at a system state by its labels alone.
    pub fn has_locals(&self) -> bool {
        self.analysis.kinds.values().any(|k| *k == ObligationKind::Local)
    }
    fn serve(&mut self, queries: Receiver<Query>) {
        for query in queries {
            // A failed send means that the thread ended with its own error.
            match query {
                Query::Steps { states, label, reply } => {
                    drop(reply.send(self.steps(&states, label)))
                }
                Query::Representative { label, reply } => {
                    drop(reply.send(self.representative(label)))
                }
                Query::Images { states, element, reply } => {
                    drop(reply.send(self.images_of(&states, element)))
                }
                Query::States { reply } => drop(reply.send(self.automaton.export_states())),
                Query::Locals { states, reply } => drop(reply.send(Ok(self.locals(states)))),
                Query::Decide { states, labels, reply } => {
                    drop(reply.send(self.decide(&states, labels)))
                }
            }
        }
    }
    fn steps(&mut self, states: &[u32], label: u32) -> Result<Vec<ObligationAnswer>, Diagnostic> {
        self.check_reduction(states, label)?;
        states
            .iter()
            .map(|q| self.confirmed_step(FormulaState::of(*q), LabelId::of(label)))
            .collect()
    }
    fn representative(&mut self, label: u32) -> Result<u32, Diagnostic> {
        let named = self.automaton.names(LabelId::of(label), self.labels)?;
        Ok(if named { label } else { *self.other.get_or_insert(label) })
    }
    fn images_of(&mut self, states: &[u32], element: u32) -> Result<Vec<u32>, Diagnostic> {
        states.iter().map(|q| self.image(element, *q).ok_or_else(|| self.refute(element))).collect()
    }
    /// Returns the members under a least fixed point.
    pub fn lfp_members(&self, mut states: Vec<u32>) -> Vec<u32> {
        states
            .retain(|q| self.analysis.hostile.contains(&self.automaton.node(FormulaState::of(*q))));
        states
    }
    fn locals(&self, mut states: Vec<u32>) -> Vec<u32> {
        states.retain(|q| {
            self.analysis.kinds.get(&self.automaton.node(FormulaState::of(*q)))
                == Some(&ObligationKind::Local)
        });
        states
    }
    fn decide(&mut self, states: &[u32], labels: Vec<LabelId>) -> Result<bool, Diagnostic> {
        // The targets appear only in evidence, which is computed elsewhere.
        let steps: Vec<(LabelId, StateId)> =
            labels.into_iter().map(|l| (l, StateId::of(0))).collect();
        let decided = self.decides_against(states, &steps)?;
        self.confirm_decision(states, &steps, decided)?;
        Ok(decided)
    }
    /// Ends a reduced search with an error if a formula state distinguishes steps that are left
    /// out.
    fn check_reduction(&mut self, states: &[u32], label: u32) -> Result<(), Diagnostic> {
        if !self.reduced || self.automaton.names(LabelId::of(label), self.labels)? {
            return Ok(());
        }
        for q in states.iter().map(|q| FormulaState::of(*q)) {
            if proviso::distinguishes_unnamed(self.automaton, q)? {
                self.distinguishing = Some(q);
                return Err(Diagnostic::new(
                    Stage::Unsupported,
                    "the formula distinguishes steps that were left out",
                ));
            }
        }
        Ok(())
    }
    /// True if a state with these steps decides one of the formula states against the formula.
    fn decides_against(
        &mut self,
        states: &[u32],
        steps: &[(LabelId, StateId)],
    ) -> Result<bool, Diagnostic> {
        for q in states {
            if local_value(
                self.automaton,
                FormulaState::of(*q),
                steps,
                self.labels,
                &mut Vec::new(),
            )? != self.analysis.conjunctive
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    fn image(&mut self, element: u32, q: u32) -> Option<u32> {
        self.symmetry.as_mut()?.image(self.automaton, element, q)
    }
    /// Restricts the symmetries to the elements that fix the initial obligations; `None` if none is
    /// left.
    pub fn stabiliser<'s>(
        &mut self,
        symmetries: Option<&'s mut Symmetries>,
        task: ProductTask<'a>,
        initial: Set,
    ) -> Option<&'s Symmetries> {
        let all = symmetries?;
        self.symmetry = Symmetry::new(all, task.model, task.labels, self.automaton);
        let count = self.symmetry.as_ref().map_or(0, |s| narrow::index(s.elements.len()));
        let keep: Vec<bool> =
            (0..count).map(|e| self.image_set(e, initial) == Some(initial)).collect();
        all.retain(|e| keep.get(e).copied().unwrap_or(false));
        Some(&*all).filter(|a| a.order() > 1)
    }
    /// Returns the image of a set.
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
        self.symmetry.as_mut().map_or(Ok(None), |s| s.label(element, label.number()))
    }
    fn refute(&self, element: u32) -> Diagnostic {
        self.group.map_or_else(missing_automaton, |group| group.refute_element(element as usize))
    }
    /// Returns the successors along a label, verified under all symmetries.
    fn confirmed_step(
        &mut self,
        q: FormulaState,
        label: LabelId,
    ) -> Result<ObligationAnswer, Diagnostic> {
        let answer = self.step(q, label)?;
        let Some(symmetry) = &self.symmetry else { return Ok(answer) };
        if symmetry.proven || symmetry.confirmed.contains(&(q.number(), label.number())) {
            return Ok(answer);
        }
        let elements = narrow::index(symmetry.elements.len());
        let mut orbit = vec![(q.number(), label.number())];
        let own = self.as_set(q, answer);
        for element in 0..elements {
            let (Some(q2), Some(label2)) =
                (self.image(element, q.number()), self.image_label(element, label)?)
            else {
                return Err(self.refute(element));
            };
            let expected = match own {
                None => None,
                Some(set) => match self.image_set(element, set) {
                    Some(image) => Some(image),
                    None => return Err(self.refute(element)),
                },
            };
            match self.step(FormulaState::of(q2), label2) {
                Ok(found) if self.as_set(FormulaState::of(q2), found) == expected => {
                    orbit.push((q2, label2.number()))
                }
                Err(limit) if limit.stop.is_some() => return Err(limit),
                // An image that cannot be evaluated need not be reachable without symmetries.
                _ => return Err(self.refute(element)),
            }
        }
        if let Some(symmetry) = &mut self.symmetry {
            symmetry.confirmed.extend(orbit);
        }
        Ok(answer)
    }
    /// Returns an answer as a set; `None`: decided.
    fn as_set(&self, q: FormulaState, answer: ObligationAnswer) -> Option<Set> {
        match answer {
            ObligationAnswer::Same => Some(self.sets.from_members(&[q.number()])),
            ObligationAnswer::States(set) => Some(set),
            ObligationAnswer::Decided => None,
        }
    }
    fn confirm_decision(
        &mut self,
        states: &[u32],
        steps: &[(LabelId, StateId)],
        decided: bool,
    ) -> Result<(), Diagnostic> {
        for element in 0..self
            .symmetry
            .as_ref()
            .filter(|s| !s.proven)
            .map_or(0, |s| narrow::index(s.elements.len()))
        {
            let images: Option<Vec<u32>> = states.iter().map(|q| self.image(element, *q)).collect();
            let mut image_steps = Vec::new();
            for (label, target) in steps {
                image_steps.extend(self.image_label(element, *label)?.map(|l| (l, *target)));
            }
            let Some(images) = images.filter(|_| image_steps.len() == steps.len()) else {
                return Err(self.refute(element));
            };
            match self.decides_against(&images, &image_steps) {
                Ok(image) if image == decided => {}
                Err(limit) if limit.stop.is_some() => return Err(limit),
                _ => return Err(self.refute(element)),
            }
        }
        Ok(())
    }
    fn step(&mut self, q: FormulaState, label: LabelId) -> Result<ObligationAnswer, Diagnostic> {
        let obligations = self.automaton.step(q, label, self.labels)?;
        let set = match self.closures.get(&obligations) {
            Some(set) => *set,
            None => {
                let set = self.closure(obligations)?;
                self.closures.insert(obligations, set);
                set
            }
        };
        Ok(match set {
            None => ObligationAnswer::Decided,
            // Most steps leave a formula state as it is.
            Some(set)
                if obligations != ObligationSet::EMPTY
                    && self.automaton.set(obligations)[..] == [q]
                    && self.sets.members(set) == [q.number()] =>
            {
                ObligationAnswer::Same
            }
            Some(set) => ObligationAnswer::States(set),
        })
    }
    /// Returns the closure of obligations at one system state; `None`: decided.
    fn closure(&mut self, obligations: ObligationSet) -> Result<Option<Set>, Diagnostic> {
        if obligations == ObligationSet::Decided {
            return Ok(None);
        }
        let Some(members) =
            closure(self.automaton, self.analysis, &self.automaton.set(obligations).clone())?
                .members()
        else {
            return Ok(None);
        };
        let mut members: Vec<u32> = members.into_iter().map(|q| q.number()).collect();
        members.sort_unstable();
        members.dedup();
        Ok(Some(self.sets.from_members(&members)))
    }
}

/// A product search.
#[derive(Clone, Copy)]
pub struct ProductTask<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Multi-actions of its labels.
    pub labels: &'a dyn ActionLabels,
    /// Options of the exploration.
    pub explore: &'a mu_explore::Options,
    /// Limits.
    pub budget: &'a Budget,
    /// Receives progress reports.
    pub progress: &'a dyn Progress,
    /// Checkpoint store.
    pub checkpoint_store: Option<&'a dyn CheckpointStore>,
    /// The search's name in the checkpoint store.
    pub name: &'a str,
    /// True if all runs are known to end, so that cycles do not matter.
    pub runs_end: bool,
    /// The other processes of a distributed search; `None`: this one alone.
    pub peers: Option<&'a dyn Peers>,
}

/// Checkpoint store for the searches of one formula, each by its name. All searches of a run, and
/// of the runs that it resumes, number formula states alike.
pub trait CheckpointStore: Sync {
    /// Returns the formula states of the stored searches by number; see [`AnnotationTable::names`].
    fn names(&self) -> Vec<Vec<String>>;
    /// Returns the writer for a search.
    fn checkpoints(&self, search: &str) -> Box<dyn CheckpointWriter + '_>;
    /// Returns the stored state of a search, if any.
    fn restore(&self, search: &str) -> Result<Option<RestoredSearch>, Diagnostic>;
}

/// Result of a search, with the reductions used.
pub struct SearchResult {
    /// Outcome and counts; `None` if there are too many sets to number.
    pub found: Option<(ProductResult, ProductCounts)>,
    /// Use of confluent steps.
    pub priority: Priority,
    /// Use of partial-order reduction.
    pub order: ReductionUse,
    /// Candidate symmetries that were not used, because the model or the formula refutes them.
    pub dropped: Vec<RejectedSymmetry>,
}

/// Searches from the initial state with the given obligations; no outcome if there are too many
/// sets to number.
///
/// Confluent steps get priority, and steps are left out, only under two conditions. The verdict of
/// the formula depends only on weak traces and on states without steps. And no reached formula
/// state distinguishes a tau step, or a step that the formula does not name, from no step.
pub fn search(
    task: ProductTask,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
) -> Result<SearchResult, Diagnostic> {
    let plain = task.explore.without_confluence();
    let all_steps = ProductTask { explore: &plain, ..task };
    if let Some(peers) = task.peers {
        return super::distributed_product::search(task, peers, automaton, analysis, roots);
    }
    let priority = match task.explore.confluent.iter().any(|c| *c) {
        false => Priority::None,
        true => match priority::violated_condition(automaton, analysis) {
            Some(forbidden) => forbidden,
            None => {
                let mut observations = Observations::default();
                let result =
                    search_symmetric(task, automaton, analysis, roots, None, &mut observations)?;
                // Otherwise a path may decide that does not exist in the full system, which has tau
                // steps between its steps.
                let priority = match &result.found {
                    Some((ProductResult::Verdict(_), _)) => {
                        priority::priority_of_states(automaton, task.labels, &observations.reached)?
                    }
                    _ => Priority::Used,
                };
                if priority == Priority::Used {
                    return Ok(SearchResult { priority, ..result });
                }
                priority
            }
        },
    };
    let order = match proviso::visibility(all_steps, automaton, analysis) {
        Err(why) => why,
        Ok(visibility) => {
            let mut observations = Observations::default();
            let result = search_symmetric(
                all_steps,
                automaton,
                analysis,
                roots,
                Some(&visibility),
                &mut observations,
            );
            let order = match (observations.distinguishing, &result) {
                (Some(q), _) => proviso::unnamed_label_obstacle(automaton, q),
                // A decision by a taken step is final.
                (
                    None,
                    Ok(SearchResult { found: Some((ProductResult::Verdict(value), _)), .. }),
                ) if *value == analysis.conjunctive => proviso::first_unnamed_label_obstacle(
                    automaton,
                    analysis,
                    &observations.reached,
                )?
                .unwrap_or(observations.order),
                _ => observations.order,
            };
            if !matches!(order, ReductionUse::Forbidden(..)) {
                return Ok(SearchResult { priority, order, ..result? });
            }
            order
        }
    };
    Ok(SearchResult {
        priority,
        order,
        ..search_symmetric(
            all_steps,
            automaton,
            analysis,
            roots,
            None,
            &mut Observations::default(),
        )?
    })
}

/// Observations of a reduced search.
#[derive(Default)]
struct Observations {
    /// Formula states reached.
    reached: Vec<u32>,
    /// A formula state that distinguishes a step that may have been left out.
    distinguishing: Option<FormulaState>,
    order: ReductionUse,
}

/// Searches with verified symmetries. `visibility`: the steps to preserve, for a reduced search.
fn search_symmetric(
    task: ProductTask,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
    visibility: Option<&Visibility>,
    observations: &mut Observations,
) -> Result<SearchResult, Diagnostic> {
    let search = |symmetries: Option<&mut Symmetries>| {
        search_with(task, automaton, analysis, roots, symmetries, (visibility, &mut *observations))
    };
    let (found, dropped) = with_verified_symmetries(task.model, task.explore, search)?;
    Ok(SearchResult { found, priority: Priority::None, order: ReductionUse::None, dropped })
}

fn search_with(
    task: ProductTask,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
    symmetries: Option<&mut Symmetries>,
    (visibility, observations): (Option<&Visibility>, &mut Observations),
) -> Result<Option<(ProductResult, ProductCounts)>, Diagnostic> {
    let sets = Sets::default();
    let mut oracle =
        AutomatonOwner::new(&mut *automaton, task.labels, analysis, &sets, visibility.is_some());
    let start = oracle.start(roots)?;
    let Some(initial) = start else {
        return Ok(Some((ProductResult::Verdict(!analysis.conjunctive), ProductCounts::default())));
    };
    if initial == EMPTY {
        return Ok(Some((ProductResult::Verdict(analysis.conjunctive), ProductCounts::default())));
    }
    let symmetries = oracle.stabiliser(symmetries, task, initial);
    oracle.symmetry =
        symmetries.and_then(|s| Symmetry::new(s, task.model, task.labels, oracle.automaton));
    oracle.group = symmetries;
    // Symmetries take precedence; the search reports this.
    oracle.reduced &= symmetries.is_none();
    let (queries, requests) = channel();
    let locals = oracle.has_locals();
    let annotator = Obligations { sets: &sets, initial, locals, queries: queries.clone() };
    let (sets, confluent_priority) = (&sets, task.explore.confluent.iter().any(|c| *c));
    let priority = if confluent_priority { "p" } else { "" };
    let stored_as = task.checkpoint_store.map(|checkpoint_store| {
        (checkpoint_store, format!("{}{priority}{}", task.name, group_name(symmetries)))
    });
    let ProductTask { model, explore, budget, progress, .. } = task;
    let search = OneSearch {
        model,
        explore,
        budget,
        progress,
        stored_as,
        sets,
        annotator,
        symmetries,
        visibility,
        confluent_priority,
    };
    let (run, distinguishing) =
        if task.explore.thread_count() == 1 && task.checkpoint_store.is_none() {
            let oracle = RefCell::new(oracle);
            let annotation_worker = Box::new(ObligationWorker::new(sets, &oracle, locals));
            let run = search.run(&oracle, Some(annotation_worker));
            (run, oracle.into_inner().distinguishing)
        } else {
            let run = std::thread::scope(|scope| {
                // Owns the senders of queries, so that the oracle's loop ends with the search.
                let search = scope.spawn(move || search.run(queries, None));
                // A panic must not leave the search threads waiting: dropping the receiver wakes
                // them.
                let served = catch_unwind(AssertUnwindSafe(|| oracle.serve(requests)));
                let run = search.join().unwrap_or_else(|panic| Err(mu_explore::panicked(&panic)));
                served.map_err(|panic| mu_explore::panicked(&panic)).and(run)
            });
            let distinguishing = oracle.distinguishing;
            drop(oracle);
            (run, distinguishing)
        };
    observations.distinguishing = distinguishing;
    if sets.is_full() {
        return Ok(None);
    }
    let (mut found, mut counts) = run?;
    counts.symmetries = found.symmetries;
    (observations.reached, observations.order) = (std::mem::take(&mut found.reached), found.order);
    Ok(Some((conclude(found, task, automaton, analysis, symmetries)?, counts)))
}

/// Returns the name of a group of symmetries in the checkpoint store. A search that rejects a
/// candidate starts again, sometimes with as many symmetries, but not with the same candidates.
pub(super) fn group_name(symmetries: Option<&Symmetries>) -> String {
    let SymmetryGroup { candidates, order } = SymmetryGroup::of(symmetries);
    let hash = fnv(FNV_BASIS, candidates.iter().flat_map(|c| c.to_le_bytes())) & 0xffff_ffff;
    format!("s{order}-{hash:08x}")
}

/// A search, independent of the thread that answers its queries.
struct OneSearch<'a> {
    model: &'a dyn Model,
    explore: &'a mu_explore::Options,
    budget: &'a Budget,
    progress: &'a dyn Progress,
    /// Checkpoint store, and the search's name in it.
    stored_as: Option<(&'a dyn CheckpointStore, String)>,
    sets: &'a Sets,
    annotator: Obligations<'a>,
    symmetries: Option<&'a Symmetries>,
    visibility: Option<&'a Visibility>,
    /// True if confluent steps have priority.
    confluent_priority: bool,
}

impl OneSearch<'_> {
    /// Runs the search. `queries`: access to the automaton while the pairs are counted.
    /// `annotation_worker`: worker of a search by this thread alone.
    fn run<'l>(
        self,
        queries: impl AutomatonAccess,
        annotation_worker: Option<Box<dyn AnnotationWorker + 'l>>,
    ) -> Result<(ExplorationResult, ProductCounts), Diagnostic> {
        let Self {
            model,
            explore,
            budget,
            progress,
            stored_as,
            sets,
            annotator,
            symmetries,
            visibility,
            confluent_priority,
        } = self;
        let checkpoints =
            stored_as.as_ref().map(|(checkpoint_store, name)| checkpoint_store.checkpoints(name));
        let restored = stored_as
            .as_ref()
            .map(|(checkpoint_store, name)| checkpoint_store.restore(name))
            .transpose()?
            .flatten();
        let extras = AnnotateExtras {
            checkpoints: checkpoints.as_deref(),
            restored,
            visibility,
            annotation_worker,
        };
        let annotated =
            mu_explore::annotate(model, explore, budget, progress, &annotator, symmetries, extras)?;
        let counts = count(&annotated, sets, CachedAutomaton::new(queries))?;
        let mut known = AHashSet::new();
        if confluent_priority || visibility.is_some() {
            annotated.for_each_state(&mut |set, _, _| {
                known.insert(set);
                Ok(())
            })?;
        }
        let found = ExplorationResult {
            reached: sets.union(known),
            decided: annotated.is_decided(),
            forward: annotated.forward(),
            stop: annotated.outcome().stop.clone(),
            symmetries: annotated.outcome().symmetries,
            order: annotated.outcome().partial_order.into(),
        };
        Ok((found, counts))
    }
}

/// Derives the outcome for the formula.
fn conclude(
    found: ExplorationResult,
    task: ProductTask,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    symmetries: Option<&Symmetries>,
) -> Result<ProductResult, Diagnostic> {
    if found.decided {
        return Ok(ProductResult::Verdict(!analysis.conjunctive));
    }
    if found.stop != Stop::Complete {
        return Ok(ProductResult::Stopped(found.stop));
    }
    if analysis.hostile.is_empty() {
        return Ok(ProductResult::Verdict(analysis.conjunctive));
    }
    let all: Vec<FormulaState> = FormulaState::all(automaton.state_count()).collect();
    if has_cycle_without_transitions(automaton, analysis, &all)? {
        return Ok(ProductResult::Cycle);
    }
    if found.forward || task.runs_end {
        return Ok(ProductResult::Verdict(analysis.conjunctive));
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
            Cyclic::No(_) => ProductResult::Verdict(analysis.conjunctive),
            Cyclic::Yes(..) => ProductResult::Cycle,
            Cyclic::Unknown(outcome) => ProductResult::Stopped(outcome.stop),
        },
    )
}

/// Result of the exploration.
struct ExplorationResult {
    /// Formula states reached, if confluent steps had priority or steps were left out.
    reached: Vec<u32>,
    order: ReductionUse,
    decided: bool,
    forward: bool,
    stop: Stop,
    symmetries: usize,
}

/// Counts states and pairs (state, obligation) of the full system. All states of an orbit have
/// equally many obligations: those of the representative, closed under the elements that fix it. So
/// an orbit of `n` states has `n * |closure|` pairs.
fn count(
    annotated: &mu_explore::AnnotatedSearch,
    sets: &Sets,
    mut automaton: CachedAutomaton<impl AutomatonAccess>,
) -> Result<ProductCounts, Diagnostic> {
    let outcome = annotated.outcome();
    let mut counts =
        ProductCounts { states: 0, steps: outcome.transitions, ..ProductCounts::default() };
    let mut sizes = Vec::new();
    let mut operations = Operations::new(sets);
    annotated.for_each_state(&mut |set, orbit, fixed| {
        let mut all = set;
        for element in fixed {
            let image = operations.image(set, element - 1, &mut automaton)?;
            all = operations.join(all, image).0;
        }
        counts.states += orbit;
        counts.equations += orbit * sets.size(all, &mut sizes);
        Ok(())
    })?;
    Ok(counts)
}
