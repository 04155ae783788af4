//! The reduced transition system of a machine: labels are words of memory operations, and all other
//! labels are hidden.
//!
//! Input: a model, an interface. Output: its quotient by branching bisimilarity, which has the same
//! weak traces and so the same histories. The exploration may give priority to confluent steps that
//! are internal, or that are ends of numbered operations ([`Interface::ends`]). An earlier end
//! gives the same history once all operations have ended, and no cycle consists of such ends alone.
//! Cost: one exploration that stores the transitions (12 bytes each), and one reduction. If a limit
//! stops the exploration, all histories of the explored part are still histories of the machine.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage};
use mu_explore::{Options, Outcome, Progress, explore_lts};
use mu_lts::equivalence::{Equivalence, reduce};
use mu_lts::{Labels, Lts};
use mu_model::Model;

/// A reduced machine with its words.
pub struct ReducedMachine {
    /// Its events and words.
    pub alphabet: Alphabet,
    /// Label `i + 1` is word `i`; label 0 is tau.
    pub lts: Lts,
    /// Statistics of the exploration.
    pub outcome: Outcome,
}

/// The message for a machine without memory operations.
pub const IDLE: &str = "no label of the machine is a memory operation of the interface";

impl ReducedMachine {
    /// Explores and reduces a model. Error: no label is a memory operation, a label contradicts the
    /// interface, or the machine fails.
    pub fn explore(
        model: &dyn Model,
        interface: &Interface,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<ReducedMachine, Diagnostic> {
        let (outcome, lts) = explore_lts(model, options, budget, progress)?;
        let mut lts = with_used_labels(lts);
        if let Some(failure) =
            lts.table.texts.iter().find(|t| interface.failure.as_ref() == Some(t))
        {
            return Err(interface.failure_error(failure));
        }
        let alphabet = Alphabet::of(interface, lts.table.texts.iter().skip(1).map(String::as_str))?;
        if alphabet.words.is_empty() {
            return Err(Diagnostic::new(Stage::Type, IDLE)
                .note("hidden actions have no labels: do not hide the actions of the interface"));
        }
        let word = |text: &String| {
            alphabet.of_label.get(text).map_or(LabelId::TAU, |w| LabelId::of(w + 1))
        };
        let names: Vec<LabelId> = lts.table.texts.iter().map(word).collect();
        lts.labels.iter_mut().for_each(|l| *l = names[l.index()]);
        lts.table = Labels {
            texts: (0..=alphabet.words.len())
                .map(|i| if i == 0 { "tau".into() } else { format!("w{i}") })
                .collect(),
        };
        let lts = reduce(&lts, Equivalence::BRANCHING, options.thread_count());
        Ok(ReducedMachine { alphabet, lts, outcome })
    }
}

/// Drops the labels of no transition: a stored system has those of unreachable states, too.
pub(crate) fn with_used_labels(mut lts: Lts) -> Lts {
    let mut is_used = vec![false; lts.table.texts.len()];
    is_used[LabelId::TAU.index()] = true;
    lts.labels.iter().for_each(|l| is_used[l.index()] = true);
    let mut ids = Vec::with_capacity(is_used.len());
    let mut texts = Vec::new();
    for (text, is_used) in std::mem::take(&mut lts.table.texts).into_iter().zip(is_used) {
        ids.push(LabelId::new(texts.len()));
        texts.extend(is_used.then_some(text));
    }
    lts.labels.iter_mut().for_each(|l| *l = ids[l.index()]);
    lts.table.texts = texts;
    lts
}
