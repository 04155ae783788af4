//! Labels with a term that has no value, as `a(head([]))`.
//!
//! Such a term remains in a label unevaluated, as in the reference toolset; it is reported with the
//! place of the action. Each thread examines a label when it first creates it, and notes further
//! places of labels with such terms. So the report does not depend on threads. Cost: nothing for
//! labels of data.

use super::{Compiled, GroupCode};
use ahash::AHashMap;
use mu_base::Span;
use mu_base::ids::{ActId, LabelId};
use mu_data::engine::{Engine, Value};
use mu_model::UndefinedLabel;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// One such label for each place: the shortest, and of those the first in lexicographic order.
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

/// Undefined labels of one thread: position of the action in the group, its text, and the term.
#[derive(Default)]
pub(super) struct UndefinedLabelCache(AHashMap<LabelId, (usize, String, String)>);

/// Limit on the length of a reported label or term; longer ones are truncated.
const MAX_TEXT: usize = 80;

impl UndefinedLabelCache {
    /// Examines a label that is new to the thread.
    pub(super) fn examine(
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
            let texts: Vec<String> = args.iter().map(|v| engine.text(v, MAX_TEXT)).collect();
            let action =
                format!("{}({})", model.process.actions[action.index()].name, texts.join(", "));
            self.0.insert(label, (i, action, engine.text(&term, MAX_TEXT)));
            self.note_place(model, code, label);
            return;
        }
    }

    /// Notes the place of a label that the thread has examined before.
    pub(super) fn note_place(&self, model: &Compiled, code: &GroupCode, label: LabelId) {
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
