//! Client of the formula automaton for one search thread: sends queries to the thread that owns the
//! automaton, or calls it directly.
//!
//! Cost: a query is sent once while the thread's cache has the answer; a million answers take some
//! tens of megabytes. Invariant: answers equal those of the automaton.

use super::obligations::{Images, ObligationAnswer, SuccessorSource};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};
use std::sync::mpsc::{Sender, channel};

/// A query to the automaton.
pub(super) enum Query {
    /// Successors of formula states along a label.
    Steps { states: Vec<u32>, label: u32, reply: Sender<Result<Vec<ObligationAnswer>, Diagnostic>> },
    /// Formula states decided at a system state by its labels alone.
    Locals { states: Vec<u32>, reply: Sender<Result<Vec<u32>, Diagnostic>> },
    /// True if a formula state is decided against the formula at a system state with these outgoing
    /// labels.
    Decide { states: Vec<u32>, labels: Vec<LabelId>, reply: Sender<Result<bool, Diagnostic>> },
    /// The representative of a label: equal for all labels that no formula state distinguishes.
    Representative { label: u32, reply: Sender<Result<u32, Diagnostic>> },
    /// All formula states so far.
    States { reply: Sender<Result<Vec<Vec<String>>, Diagnostic>> },
    /// Images of formula states under an element of the symmetry group.
    Images { states: Vec<u32>, element: u32, reply: Sender<Result<Vec<u32>, Diagnostic>> },
}

/// Access to the automaton, in another thread or in the same one.
pub(super) trait AutomatonAccess {
    /// Returns the successors of formula states along a label.
    fn steps(&self, states: Vec<u32>, label: u32) -> Result<Vec<ObligationAnswer>, Diagnostic>;
    /// Returns the formula states decided at a system state by its labels alone.
    fn locals(&self, states: Vec<u32>) -> Result<Vec<u32>, Diagnostic>;
    /// True if a formula state is decided against the formula at a system state with these outgoing
    /// labels.
    fn decide(&self, states: Vec<u32>, labels: Vec<LabelId>) -> Result<bool, Diagnostic>;
    /// Returns the representative of a label: equal for all labels that no formula state
    /// distinguishes.
    fn representative(&self, label: u32) -> Result<u32, Diagnostic>;
    /// Returns the images of formula states under an element of the symmetry group.
    fn images_of(&self, states: Vec<u32>, element: u32) -> Result<Vec<u32>, Diagnostic>;
}

impl AutomatonAccess for Sender<Query> {
    fn steps(&self, states: Vec<u32>, label: u32) -> Result<Vec<ObligationAnswer>, Diagnostic> {
        send_query(self, |reply| Query::Steps { states, label, reply })
    }
    fn locals(&self, states: Vec<u32>) -> Result<Vec<u32>, Diagnostic> {
        send_query(self, |reply| Query::Locals { states, reply })
    }
    fn decide(&self, states: Vec<u32>, labels: Vec<LabelId>) -> Result<bool, Diagnostic> {
        send_query(self, |reply| Query::Decide { states, labels, reply })
    }
    fn representative(&self, label: u32) -> Result<u32, Diagnostic> {
        send_query(self, |reply| Query::Representative { label, reply })
    }
    fn images_of(&self, states: Vec<u32>, element: u32) -> Result<Vec<u32>, Diagnostic> {
        send_query(self, |reply| Query::Images { states, element, reply })
    }
}

/// Sends a query and waits for the reply.
pub(super) fn send_query<T>(
    queries: &Sender<Query>,
    make: impl FnOnce(Sender<Result<T, Diagnostic>>) -> Query,
) -> Result<T, Diagnostic> {
    let (reply, answer) = channel();
    queries.send(make(reply)).map_err(|_| missing_automaton())?;
    answer.recv().map_err(|_| missing_automaton())?
}

pub(super) fn missing_automaton() -> Diagnostic {
    Diagnostic::new(Stage::Internal, "the automaton of the formula is missing")
}

/// The automaton as seen by one search thread, with a cache.
pub(super) struct CachedAutomaton<Q> {
    pub access: Q,
    answers: AHashMap<(u32, u32), ObligationAnswer>,
    images: AHashMap<(u32, u32), u32>,
    /// By label: its representative.
    representative: Vec<Option<u32>>,
}

/// Limit on cached answers; beyond it the cache is cleared.
const MAX_ANSWERS: usize = 1 << 22;

impl<Q: AutomatonAccess> CachedAutomaton<Q> {
    pub fn new(access: Q) -> Self {
        Self {
            access,
            answers: AHashMap::new(),
            images: AHashMap::new(),
            representative: Vec::new(),
        }
    }
    pub fn representative(&mut self, label: LabelId) -> Result<u32, Diagnostic> {
        if let Some(Some(known)) = self.representative.get(label.index()) {
            return Ok(*known);
        }
        let one = self.access.representative(label.number())?;
        if self.representative.len() <= label.index() {
            self.representative.resize(label.index() + 1, None);
        }
        self.representative[label.index()] = Some(one);
        Ok(one)
    }
}

impl<Q: AutomatonAccess> SuccessorSource for CachedAutomaton<Q> {
    type Error = Diagnostic;
    fn answers(
        &mut self,
        states: &[u32],
        label: u32,
        out: &mut Vec<ObligationAnswer>,
    ) -> Result<(), Diagnostic> {
        let mut missing = Vec::new();
        for &q in states {
            out.push(self.answers.get(&(q, label)).copied().unwrap_or_else(|| {
                missing.push((out.len(), q));
                ObligationAnswer::Decided
            }));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let requested = missing.iter().map(|m| m.1).collect();
        let answers = self.access.steps(requested, label)?;
        if self.answers.len() > MAX_ANSWERS {
            self.answers.clear();
        }
        for ((at, q), answer) in missing.into_iter().zip(answers) {
            out[at] = answer;
            self.answers.insert((q, label), answer);
        }
        Ok(())
    }
}

impl<Q: AutomatonAccess> Images for CachedAutomaton<Q> {
    type Error = Diagnostic;
    fn images(&mut self, states: &[u32], permutation: u32) -> Result<Vec<u32>, Diagnostic> {
        let missing: Vec<u32> = states
            .iter()
            .copied()
            .filter(|q| !self.images.contains_key(&(*q, permutation)))
            .collect();
        if !missing.is_empty() {
            let images = self.access.images_of(missing.clone(), permutation)?;
            self.images.extend(missing.into_iter().map(|q| (q, permutation)).zip(images));
        }
        Ok(states.iter().map(|q| self.images[&(*q, permutation)]).collect())
    }
}
