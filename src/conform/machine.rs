//! The machine as the search needs it: a transition system over words, without all that is
//! internal.
//!
//! In: a model, an interface. Out: its quotient by branching bisimilarity, which has the same weak
//! traces and so the same histories. The model may take steps first that commute with all others,
//! if they are internal, or ends of operations with numbers ([`Interface::ends`]): an end moved
//! forward gives the same history once all operations have ended, and a circle of ends alone there
//! is not. Cost: one exploration that keeps the transitions (12 bytes each), and one reduction. If
//! a limit ends the exploration, all histories of what was seen are real.

use crate::alphabet::Alphabet;
use crate::interface::Interface;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage};
use mu_explore::{Options, Outcome, Progress, explore_lts};
use mu_lts::reduce::{Equivalence, reduce};
use mu_lts::{Labels, Lts};
use mu_model::Model;

/// See the module's head.
pub struct Machine {
    /// Its words.
    pub alphabet: Alphabet,
    /// Label `i + 1` is word `i`; label 0 is tau.
    pub lts: Lts,
    /// Figures of the exploration.
    pub outcome: Outcome,
}

/// What is said of a machine that does no memory operation.
pub const IDLE: &str = "no label of the machine is a memory operation of the interface";

impl Machine {
    /// Explores and reduces a model. Error: no label is a memory operation, or one that makes no
    /// sense.
    pub fn explore(
        model: &dyn Model,
        interface: &Interface,
        options: &Options,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Machine, Diagnostic> {
        let (outcome, mut lts) = explore_lts(model, options, budget, progress)?;
        let alphabet = Alphabet::of(interface, lts.table.texts.iter().skip(1).map(String::as_str))?;
        if alphabet.words.is_empty() {
            return Err(Diagnostic::new(Stage::Type, IDLE)
                .note("hidden actions have no labels: the machine must show them"));
        }
        let word =
            |text: &String| alphabet.of_label.get(text).map_or(LabelId::TAU, |w| LabelId(w + 1));
        let names: Vec<LabelId> = lts.table.texts.iter().map(word).collect();
        lts.labels.iter_mut().for_each(|l| *l = names[l.index()]);
        lts.table = Labels {
            texts: (0..=alphabet.words.len())
                .map(|i| if i == 0 { "tau".into() } else { format!("w{i}") })
                .collect(),
        };
        let lts = reduce(&lts, Equivalence::Branching, options.thread_count());
        Ok(Machine { alphabet, lts, outcome })
    }
}
