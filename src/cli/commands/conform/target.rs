//! The machine of a proof for programs of every length: the model that is searched, and the machine
//! or the instances on which commits and values are checked.
//!
//! An abstraction of numbers has at least the runs of every instance, so a search of it covers all
//! of them. That stores can commit and values can be replaced holds of a machine and not of an
//! abstraction: it is checked on the instance with one operation, and on the next ones as long as
//! they are small.

use super::LoadedMachine;
use super::numbers::CHECKED_VALUE;
use super::sorts::TypedMachine;
use crate::pipeline::Session;
use mu_base::limits::Limits;
use mu_base::{Budget, Diagnostic, Span, Stage};
use mu_conform::every_length::decide::{Checks, Subject, Survey};
use mu_conform::every_length::values::Merging;
use mu_conform::interface::Interface;
use mu_model::Model;

/// Limit on the states of instances beyond the first one on which commits and values are checked.
const SMALL_INSTANCE: u64 = 10_000;

/// A machine as it is searched.
pub(super) struct TargetMachine<'a> {
    /// The model that is searched: the machine, or an abstraction with the runs of all instances.
    pub searched: &'a dyn Model,
    pub interface: &'a Interface,
    pub typed: TypedMachine<'a>,
    pub declared: &'a [(String, Span)],
    /// The machine, or some of its instances.
    pub instances: &'a [LoadedMachine],
    /// The values of the parameters without a value in these instances, ascending.
    pub values: &'a [usize],
    /// Parameters without a value.
    pub any: &'a [String],
    /// Numbers of processors, addresses, or values without a value, with that of this machine.
    pub sizes: &'a [(String, String)],
}

impl<'a> TargetMachine<'a> {
    /// Returns a machine in which every parameter has a value.
    pub(super) fn of(machine: &'a LoadedMachine) -> Self {
        Self {
            searched: &**machine.searched_model(),
            interface: &machine.interface,
            typed: machine.typed_machine(),
            declared: &machine.declared,
            instances: std::slice::from_ref(machine),
            values: &[],
            any: &[],
            sizes: &[],
        }
    }
}

impl TargetMachine<'_> {
    /// Returns the position of the least instance on which commits and values are checked.
    fn checked_place(&self) -> usize {
        let last = self.instances.len() - 1;
        self.values.iter().position(|v| *v >= CHECKED_VALUE).unwrap_or(last)
    }
    /// Returns the machine on which commits and values are checked.
    pub(super) fn checked_machine(&self) -> &LoadedMachine {
        &self.instances[self.checked_place()]
    }
    /// Describes the instances on which commits and values are checked; empty if all parameters
    /// have values.
    pub(super) fn instances_text(&self, checked: &InstanceChecks) -> String {
        let range = self.values.get(checked.first..=checked.last).unwrap_or(&[]);
        let range = match range {
            [first, .., last] => format!("{first} to {last}"),
            [one] => one.to_string(),
            [] => return String::new(),
        };
        let set: Vec<String> = self.any.iter().map(|p| format!("{p}={range}")).collect();
        format!(", for {}", set.join(", "))
    }
}

/// The checks of a machine, or of instances.
pub(super) struct InstanceChecks {
    pub checks: Checks,
    /// The position of the first instance.
    first: usize,
    /// The position of the last instance.
    last: usize,
}

/// Checks what the answer rests on: on the machine, or on the first instance with operations and
/// the next ones, as long as they are small.
pub(super) fn checks_of(
    session: &Session,
    machine: &TargetMachine<'_>,
    (subject, survey): (&Subject<'_>, &Survey),
) -> Result<InstanceChecks, Diagnostic> {
    if machine.any.is_empty() {
        return Ok(InstanceChecks { checks: subject.checks(survey, false)?, first: 0, last: 0 });
    }
    let of = |place: usize, budget: &Budget| {
        let searched = machine.instances[place].searched_model();
        let options = session.explore_options(&**searched, &[]);
        let concrete = Subject { machine: &**searched, options: &options, budget, ..*subject };
        let own = concrete.survey()?;
        let mut checks = concrete.checks(&own, true)?;
        // A value that the instance does not have is not checked.
        let known = &own.alphabet.names.values;
        if let Some(v) = survey.alphabet.names.values.iter().find(|v| !known.contains(*v)) {
            checks.merging =
                Merging::NotInterchangeable(v.clone(), known[own.roles.first as usize].clone());
        }
        Ok::<_, Diagnostic>(checks)
    };
    let mut places = machine.checked_place()..machine.instances.len();
    let mut refused = None;
    let found = places.by_ref().find_map(|place| match of(place, &session.budget) {
        Ok(checks) => Some(Ok((place, checks))),
        Err(d) if d.stop.is_none() && d.stage != Stage::Internal => {
            refused.get_or_insert(d);
            None
        }
        Err(d) => Some(Err(d)),
    });
    let Some(found) = found else {
        return Err(refused.unwrap_or_else(|| Diagnostic::internal("a machine has no instance")));
    };
    let (first, mut checks) = found?;
    let limits = session.budget.limits();
    let most = limits.max_states.map_or(SMALL_INSTANCE, |n| n.min(SMALL_INSTANCE));
    let small = session.budget.with_limits(Limits { max_states: Some(most), ..*limits });
    let mut last = first;
    for place in places {
        // The least instance that fails is the answer.
        let holds = checks.continuation.stuck.is_none();
        if !holds || !matches!(checks.merging, Merging::Verified(_)) {
            break;
        }
        let next = match of(place, &small) {
            Ok(next) if next.merging != Merging::Omitted => next,
            Err(d) if d.stage == Stage::Internal => return Err(d),
            // It is too large.
            _ => break,
        };
        let states = checks.continuation.states + next.continuation.states;
        checks = next;
        checks.continuation.states = states;
        last = place;
    }
    Ok(InstanceChecks { checks, first, last })
}
