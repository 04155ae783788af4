//! Labels in which a term has no value, as `a(head([]))`.
//!
//! Such a term stands in a label as it is, as in the reference toolset; it is told with the place
//! where the action is written. Each thread looks at a label when it meets it first, and at one
//! that is found so whenever it comes from another place too: so what is told does not depend on
//! threads. Cost: nothing for labels of data.

use super::{Compiled, GroupCode};
use ahash::AHashMap;
use mu_base::Span;
use mu_base::ids::{ActId, LabelId};
use mu_data::engine::{Engine, Value};
use mu_model::UndefinedLabel;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The first such label of each place: the shortest, and of those the first in the order of texts.
#[derive(Default)]
pub(super) struct UndefinedLabelRegister(Mutex<BTreeMap<Span, UndefinedLabel>>);

impl UndefinedLabelRegister {
    pub(super) fn list(&self) -> Vec<UndefinedLabel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn add(&self, new: UndefinedLabel) {
        let rank = |v: &UndefinedLabel| (v.action.len(), v.action.clone(), v.term.clone());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = known.entry(new.place).or_insert_with(|| new.clone());
        if rank(&new) < rank(entry) {
            *entry = new;
        }
    }
}

/// What a thread knows of such labels: the action among those of the group, by position, its text,
/// and the term.
#[derive(Default)]
pub(super) struct UndefinedLabelCache(AHashMap<LabelId, (usize, String, String)>);

/// Longest text of a label or a term that is told.
const SHOWN: usize = 80;

impl UndefinedLabelCache {
    /// Looks at a label that is new to the thread.
    pub(super) fn look(
        &mut self,
        model: &Compiled,
        engine: &Engine,
        code: &GroupCode,
        label: LabelId,
        multi: &[(ActId, Vec<Value>)],
    ) {
        for (i, (action, args)) in multi.iter().enumerate() {
            let Some(term) =
                args.iter().filter(|v| !v.is_data()).find_map(|v| engine.undefined_subterm(v))
            else {
                continue;
            };
            let texts: Vec<String> = args.iter().map(|v| engine.text(v, SHOWN)).collect();
            let action =
                format!("{}({})", model.process.actions[action.index()].name, texts.join(", "));
            self.0.insert(label, (i, action, engine.text(&term, SHOWN)));
            self.again(model, code, label);
            return;
        }
    }

    /// Notes the place of a label that the thread has met before.
    pub(super) fn again(&self, model: &Compiled, code: &GroupCode, label: LabelId) {
        if let Some((i, action, term)) = self.0.get(&label) {
            let place = code.actions.get(*i).map_or(code.span, |act| act.place.0);
            model.undefined_labels.add(UndefinedLabel {
                place,
                action: action.clone(),
                term: term.clone(),
            });
        }
    }
}
