//! Readable positions of components: a control location is shown by its next actions, and a
//! parameter that is not live there is hidden.
//!
//! In: a slot's value, a state. Out: text, or true if the slot is live. Users do not know the
//! numbers of locations and the values of parameters that are not live, which are internal. Cost: a
//! pass over the component's summands for each text.

use super::Compiled;
use super::offers::location_of;
use mu_data::expr::Expr;
use mu_model::Slot;

/// Limit on the actions that a position lists; the others are counted.
const MAX_ACTIONS: usize = 3;

/// Returns the name of a component's control location.
pub(super) fn name(components: &[String], component: u32) -> String {
    match components.get(component as usize) {
        Some(of) if components.len() > 1 => format!("position of {of}"),
        _ => "position".into(),
    }
}

impl Compiled {
    /// Describes a value of a control location; `None` for other slots.
    pub(super) fn position(&self, slot: Slot, value: &Expr) -> Option<String> {
        let info = &self.slots[slot as usize];
        let automaton = self
            .process
            .anatomy
            .components
            .get(info.component as usize)
            .filter(|_| info.control)?;
        let location = location_of(value)?;
        if automaton.is_phase {
            return Some(if location == automaton.initial {
                "before the first step".into()
            } else {
                "after the first step".into()
            });
        }
        let Some(here) = automaton.locations.get(location) else { return Some("ended".into()) };
        let mut next: Vec<String> = Vec::new();
        for edge in automaton.edges.iter().filter(|e| e.from == location) {
            let names: Vec<&str> = edge
                .acts
                .iter()
                .map(|a| self.process.actions[a.action.index()].name.as_str())
                .collect();
            let text = if names.is_empty() { "tau".into() } else { names.join("|") };
            if !next.contains(&text) {
                next.push(text);
            }
        }
        Some(match &next[..] {
            [] if here.terminated => "at its end".into(),
            [] => "stopped".into(),
            [one] => format!("before {one}"),
            all if all.len() > MAX_ACTIONS => {
                format!(
                    "before {} or {} others",
                    all[..MAX_ACTIONS - 1].join(", "),
                    all.len() + 1 - MAX_ACTIONS
                )
            }
            [all @ .., last] => format!("before {} or {last}", all.join(", ")),
        })
    }

    /// True if a parameter is live at the location of its component.
    pub(super) fn is_parameter_live(&self, slot: Slot, state: &[u32]) -> bool {
        let info = &self.slots[slot as usize];
        let anatomy = &self.process.anatomy;
        let Some(automaton) =
            anatomy.components.get(info.component as usize).filter(|_| !info.control)
        else {
            return true;
        };
        let control = self.slots.iter().position(|s| s.control && s.component == info.component);
        let location = match control {
            Some(c) => location_of(&self.value(c as Slot, state[c])),
            None => Some(0),
        };
        let Some(location) = location else { return true };
        let Some(here) = automaton.locations.get(location) else { return false };
        let var = self.process.params[slot as usize].var;
        here.live.iter().any(|v| match anatomy.defined.get(v) {
            None => *v == var,
            Some(record) => {
                let mut fields = Vec::new();
                record.free_vars(&mut fields);
                fields.contains(&var)
            }
        })
    }
}
