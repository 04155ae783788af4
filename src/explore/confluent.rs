//! Priority of confluent steps: the representative state that replaces a state with confluent
//! steps.
//!
//! It is the state without confluent steps that they lead to, or the least vector of the terminal
//! strongly connected component (Groote, van de Pol: "State Space Reduction Using Partial
//! tau-Confluence", 2000; Blom: "Partial tau-confluence for efficient state space generation",
//! 2001). Cost: an expansion by the confluent groups for each state on the path. Invariant: all
//! states from which confluent steps lead to a component have one representative.

use super::expander::{Expander, Halt, Successor};
use super::store::Store;
use mu_base::narrow;
use mu_base::{Diagnostic, Stage};
use std::collections::HashMap;

/// Length of a chain of confluent steps beyond which a cycle is suspected.
const CHAIN: u32 = 64;

impl Expander<'_> {
    /// Returns the representative of a state.
    pub fn representative(&mut self, store: &Store, key: u64) -> Result<u64, Halt> {
        if !self.any_confluent {
            return Ok(key);
        }
        let mut raw = std::mem::take(&mut self.raw);
        let mut at = key;
        let mut result = Ok(());
        for length in 0..=CHAIN {
            raw.clear();
            result = self.confluent_steps(store, at, &mut raw);
            if result.is_err() {
                break;
            }
            match raw.iter().find(|s| s.key != at) {
                None => break,
                Some(_) if length == CHAIN => {
                    match self.terminal(store, at) {
                        Ok(least) => at = least,
                        Err(halt) => result = Err(halt),
                    }
                    break;
                }
                Some(step) => at = step.key,
            }
        }
        self.raw = raw;
        result.map(|()| at)
    }

    /// Computes the confluent steps of a state without replacing targets.
    pub fn confluent_steps(
        &mut self,
        store: &Store,
        key: u64,
        out: &mut Vec<Successor>,
    ) -> Result<(), Halt> {
        let mask = std::mem::take(&mut self.confluent_mask);
        let result = self.steps(store, key, Some(&mask), out);
        self.confluent_mask = mask;
        result
    }

    /// Returns the least vector of the terminal component reached by confluent steps. Runs Tarjan's
    /// algorithm up to the first completed component, which no step leaves.
    fn terminal(&mut self, store: &Store, key: u64) -> Result<u64, Halt> {
        struct SearchFrame {
            key: u64,
            next: usize,
            steps: Vec<u64>,
        }
        let mut index: HashMap<u64, (u32, u32), ahash::RandomState> = HashMap::default();
        let mut stack = Vec::new();
        let mut frames: Vec<SearchFrame> = Vec::new();
        let mut raw = Vec::new();
        let mut entered = Some(key);
        loop {
            if let Some(key) = entered.take() {
                raw.clear();
                self.confluent_steps(store, key, &mut raw)?;
                let n = narrow::index(index.len());
                index.insert(key, (n, n));
                stack.push(key);
                frames.push(SearchFrame {
                    key,
                    next: 0,
                    steps: raw.iter().map(|s| s.key).collect(),
                });
            }
            let frame = frames
                .last_mut()
                .ok_or_else(|| Diagnostic::internal("confluent steps end in no component"))?;
            let at = frame.key;
            if let Some(&target) = frame.steps.get(frame.next) {
                frame.next += 1;
                match index.get(&target) {
                    Some(&(n, _)) => {
                        let low = index.get_mut(&at).map(|e| &mut e.1);
                        low.into_iter().for_each(|l| *l = (*l).min(n));
                    }
                    None => entered = Some(target),
                }
                continue;
            }
            let (n, low) = index[&at];
            if n == low {
                let from = stack
                    .iter()
                    .position(|&k| k == at)
                    .ok_or_else(|| Diagnostic::internal("the root of a component is not open"))?;
                if self.distributed && from + 1 < stack.len() {
                    // The least vector depends on local numbers of values.
                    let message = "confluent tau steps form a cycle, which a distributed search does not support";
                    return Err(Diagnostic::new(Stage::Unsupported, message)
                        .note("omit `--confluence`")
                        .into());
                }
                if let Some(symmetries) = self.symmetries
                    && from + 1 < stack.len()
                {
                    // The least vector of the image need not be the image of the least vector.
                    return Err(symmetries.refute().into());
                }
                return Ok(stack[from..]
                    .iter()
                    .copied()
                    .min_by_key(|&k| store.vector(k))
                    .expect("a component has a state"));
            }
            frames.pop();
            if let Some(parent) = frames.last()
                && let Some(entry) = index.get_mut(&parent.key)
            {
                entry.1 = entry.1.min(low);
            }
        }
    }
}
