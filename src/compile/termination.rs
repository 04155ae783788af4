//! Successful termination in linear processes that are read from files: the state after the action
//! `Terminate`.
//!
//! A lineariser adds the action `Terminate` where the whole process terminates successfully; the
//! linear process has no other trace of it. So a state without steps is a successful termination if
//! every step that can lead to it is `Terminate` alone, as in a transition system. The constants of
//! the summands decide this, by two criteria:
//!
//! - *Predecessors.* A summand does not lead to the state if it sets a parameter to another
//!   constant, or leaves a parameter unchanged and requires another constant of it. All other
//!   summands must be `Terminate`.
//! - *Markers.* A `Terminate` after which every summand requires another constant of some parameter
//!   is *final*. Suppose it sets a parameter to a constant that no other summand sets and that is
//!   not the initial value. Then each state with this value is the one after that `Terminate`: only
//!   it sets the value, and no step follows.
//!
//! An unclear case counts as a deadlock. Parameters that are not live at some location are ignored,
//! since they hold arbitrary values there. Cost: a comparison for each constant of each group, for
//! each state without steps; nothing if no action is `Terminate`.

use super::Compiled;
use mu_base::Diagnostic;
use mu_data::engine::Engine;
use mu_model::Slot;
use mu_process::labels::TERMINATE;

/// Constants before and after the step of a group.
struct GroupConstants {
    /// True if the step is `Terminate` alone.
    terminates: bool,
    /// Slots and their required values before the step.
    requires: Vec<(Slot, u32)>,
    /// Slots that the step sets; the value if it is constant.
    writes: Vec<(Slot, Option<u32>)>,
    /// Slots and their known values after the step.
    fixed: Vec<(Slot, u32)>,
}

/// Constants of all groups of a model. Empty if no action is `Terminate`.
#[derive(Default)]
pub(super) struct TerminationAnalysis {
    all: Vec<GroupConstants>,
    markers: Vec<(Slot, u32)>,
}

/// True if a slot has different values in the two lists.
fn conflict(a: &[(Slot, u32)], b: &[(Slot, u32)]) -> bool {
    a.iter().any(|x| b.iter().any(|y| x.0 == y.0 && x.1 != y.1))
}

impl TerminationAnalysis {
    /// Reads the groups of a model.
    ///
    /// # Errors
    /// A constant cannot be evaluated, or a limit is reached.
    pub fn new(model: &Compiled) -> Result<Self, Diagnostic> {
        let named = |a: &mu_process::linear::Act| {
            model.process.actions[a.action.index()].name == TERMINATE && a.args.is_empty()
        };
        let terminates =
            |group: usize| matches!(&model.codes[group].actions[..], [only] if named(only));
        if !(0..model.codes.len()).any(terminates) {
            return Ok(Self::default());
        }
        // Control locations, and parameters of components with one location.
        let always = |slot: Slot| {
            let info = &model.slots[slot as usize];
            let component = model.process.anatomy.components.get(info.component as usize);
            info.control || component.is_some_and(|c| c.locations.len() == 1)
        };
        let mut engine = Engine::new(model.program.clone()).with_budget(&model.budget());
        let mut expr_engine = model.expr_engine();
        let mut all = Vec::new();
        for (group, (info, code)) in model.groups.iter().zip(&model.codes).enumerate() {
            let requires: Vec<(Slot, u32)> =
                info.requires.iter().copied().filter(|r| always(r.0)).collect();
            let mut writes = Vec::new();
            for (&slot, update) in info.writes.iter().zip(&code.updates) {
                let mut used = Vec::new();
                update.free_vars(&mut used);
                let constant = always(slot) && used.is_empty();
                let value = if constant { Some(engine.from_expr(update)?) } else { None };
                let value =
                    value.map(|value| engine.to_expr_at(&value, model.sort_of[slot as usize]));
                writes.push((
                    slot,
                    value.map(|value| model.number(&mut expr_engine, slot, &value)).transpose()?,
                ));
            }
            let unchanged =
                requires.iter().copied().filter(|(slot, _)| !info.writes.contains(slot));
            let fixed = writes
                .iter()
                .filter_map(|(slot, value)| Some((*slot, (*value)?)))
                .chain(unchanged)
                .collect();
            all.push(GroupConstants { terminates: terminates(group), requires, writes, fixed });
        }
        let markers = markers(model, &all);
        Ok(Self { all, markers })
    }

    /// True if only `Terminate` leads to this state without steps. The initial state needs no step.
    pub fn only_terminate(&self, model: &Compiled, state: &[u32]) -> bool {
        if self.all.is_empty() || starts(model).any(|start| start == state) {
            return false;
        }
        let has = |(slot, value): &(Slot, u32)| state[*slot as usize] == *value;
        let mut before = self.all.iter().filter(|arrival| arrival.fixed.iter().all(has)).peekable();
        self.markers.iter().any(has)
            || before.peek().is_some() && before.all(|arrival| arrival.terminates)
    }
}

fn starts(model: &Compiled) -> impl Iterator<Item = &[u32]> {
    model.starts.iter().map(|s| &s.1[..]).chain([&model.initial[..]])
}

/// Returns the values that only a final `Terminate` sets, see the module header.
fn markers(model: &Compiled, all: &[GroupConstants]) -> Vec<(Slot, u32)> {
    let is_final = |t: &GroupConstants| {
        t.terminates && all.iter().all(|other| conflict(&other.requires, &t.fixed))
    };
    let finals: Vec<bool> = all.iter().map(is_final).collect();
    let mut markers = Vec::new();
    for (t, _) in all.iter().zip(&finals).filter(|(_, is_final)| **is_final) {
        for &(slot, value) in &t.writes {
            let Some(value) = value else { continue };
            let others = all.iter().zip(&finals).filter(|(_, is_final)| !**is_final);
            let gives = |other: &GroupConstants| {
                other.writes.iter().any(|(s, v)| *s == slot && v.is_none_or(|v| v == value))
            };
            if starts(model).all(|start| start[slot as usize] != value)
                && !others.into_iter().any(|(other, _)| gives(other))
            {
                markers.push((slot, value));
            }
        }
    }
    markers
}
