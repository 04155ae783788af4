//! Questions about the automaton of a formula, as a searching thread asks them: of the thread that
//! has the automaton, or of itself.
//!
//! Cost: a question is asked once while the thread's cache holds the answer; a million answers are
//! some tens of megabytes. Invariant: answers are those of the automaton, whoever gives them.

use super::obligations::{Answer, Images, Steps};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};
use std::sync::mpsc::{Sender, channel};

/// What is asked of the automaton.
pub(super) enum Question {
    /// What these formula states become along a label.
    Steps { states: Vec<u32>, label: u32, reply: Sender<Result<Vec<Answer>, Diagnostic>> },
    /// Which of these are decided at a system state by its labels alone.
    Locals { states: Vec<u32>, reply: Sender<Result<Vec<u32>, Diagnostic>> },
    /// Whether one of these is decided against the formula where these labels leave.
    Decide { states: Vec<u32>, labels: Vec<LabelId>, reply: Sender<Result<bool, Diagnostic>> },
    /// A label that no formula state tells from this one: the same for all that are alike.
    Alike { label: u32, reply: Sender<Result<u32, Diagnostic>> },
    /// The formula states met so far.
    States { reply: Sender<Result<Vec<Vec<String>>, Diagnostic>> },
    /// What an element of the group of symmetries makes of these.
    Images { states: Vec<u32>, element: u32, reply: Sender<Result<Vec<u32>, Diagnostic>> },
}

/// The automaton as a searching thread asks it: in another thread, or its own.
pub(super) trait Automata {
    /// What these formula states become along a label.
    fn steps(&self, states: Vec<u32>, label: u32) -> Result<Vec<Answer>, Diagnostic>;
    /// Which of these are decided at a system state by its labels alone.
    fn locals(&self, states: Vec<u32>) -> Result<Vec<u32>, Diagnostic>;
    /// Whether one of these is decided against the formula where these labels leave.
    fn decide(&self, states: Vec<u32>, labels: Vec<LabelId>) -> Result<bool, Diagnostic>;
    /// A label that no formula state tells from this one: the same for all that are alike.
    fn alike(&self, label: u32) -> Result<u32, Diagnostic>;
    /// What an element of the group of symmetries makes of these.
    fn images_of(&self, states: Vec<u32>, element: u32) -> Result<Vec<u32>, Diagnostic>;
}

impl Automata for Sender<Question> {
    fn steps(&self, states: Vec<u32>, label: u32) -> Result<Vec<Answer>, Diagnostic> {
        put(self, |reply| Question::Steps { states, label, reply })
    }
    fn locals(&self, states: Vec<u32>) -> Result<Vec<u32>, Diagnostic> {
        put(self, |reply| Question::Locals { states, reply })
    }
    fn decide(&self, states: Vec<u32>, labels: Vec<LabelId>) -> Result<bool, Diagnostic> {
        put(self, |reply| Question::Decide { states, labels, reply })
    }
    fn alike(&self, label: u32) -> Result<u32, Diagnostic> {
        put(self, |reply| Question::Alike { label, reply })
    }
    fn images_of(&self, states: Vec<u32>, element: u32) -> Result<Vec<u32>, Diagnostic> {
        put(self, |reply| Question::Images { states, element, reply })
    }
}

/// Asks and waits for the reply.
pub(super) fn put<T>(
    questions: &Sender<Question>,
    make: impl FnOnce(Sender<Result<T, Diagnostic>>) -> Question,
) -> Result<T, Diagnostic> {
    let (reply, answer) = channel();
    questions.send(make(reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

pub(super) fn gone() -> Diagnostic {
    Diagnostic::new(Stage::Internal, "the automaton of the formula is missing")
}

/// The automaton from a searching thread's view.
pub(super) struct Ask<Q> {
    pub questions: Q,
    answers: AHashMap<(u32, u32), Answer>,
    images: AHashMap<(u32, u32), u32>,
    /// By label: one that stands for it.
    alike: Vec<Option<u32>>,
}

/// Answers that a thread remembers.
const MOST_ANSWERS: usize = 1 << 22;

impl<Q: Automata> Ask<Q> {
    pub fn new(questions: Q) -> Self {
        Self { questions, answers: AHashMap::new(), images: AHashMap::new(), alike: Vec::new() }
    }
    pub fn alike(&mut self, label: LabelId) -> Result<u32, Diagnostic> {
        if let Some(Some(known)) = self.alike.get(label.index()) {
            return Ok(*known);
        }
        let one = self.questions.alike(label.0)?;
        if self.alike.len() <= label.index() {
            self.alike.resize(label.index() + 1, None);
        }
        self.alike[label.index()] = Some(one);
        Ok(one)
    }
}

impl<Q: Automata> Steps for Ask<Q> {
    type Error = Diagnostic;
    fn answers(
        &mut self,
        states: &[u32],
        label: u32,
        out: &mut Vec<Answer>,
    ) -> Result<(), Diagnostic> {
        let mut missing = Vec::new();
        for &q in states {
            out.push(self.answers.get(&(q, label)).copied().unwrap_or_else(|| {
                missing.push((out.len(), q));
                Answer::Decided
            }));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let asked = missing.iter().map(|m| m.1).collect();
        let answers = self.questions.steps(asked, label)?;
        if self.answers.len() > MOST_ANSWERS {
            self.answers.clear();
        }
        for ((at, q), answer) in missing.into_iter().zip(answers) {
            out[at] = answer;
            self.answers.insert((q, label), answer);
        }
        Ok(())
    }
}

impl<Q: Automata> Images for Ask<Q> {
    type Error = Diagnostic;
    fn images(&mut self, states: &[u32], permutation: u32) -> Result<Vec<u32>, Diagnostic> {
        let missing: Vec<u32> = states
            .iter()
            .copied()
            .filter(|q| !self.images.contains_key(&(*q, permutation)))
            .collect();
        if !missing.is_empty() {
            let images = self.questions.images_of(missing.clone(), permutation)?;
            self.images.extend(missing.into_iter().map(|q| (q, permutation)).zip(images));
        }
        Ok(states.iter().map(|q| self.images[&(*q, permutation)]).collect())
    }
}
