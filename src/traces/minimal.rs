//! Minimal forbidden parts of traces: a set of operations that a model forbids, from which no
//! operation can be left out.
//!
//! In: a trace and a conflict that [`decide`] found; updates of which only the store matters have
//! to be stores already ([`Conflict::simplify`]). Out: the part as operations in ascending
//! order, and required final values. A store stays while a load of its value or a required final
//! value stays, so that no part is forbidden only because a store is missing. Deletion one by one
//! (Zeller, Hildebrandt: delta debugging. TSE 2002), with one decision for each operation of the
//! conflict; conflicts with more than [`LIMIT`] operations
//! are returned as they are.

use crate::decide::{Conflict, DecisionOptions, Verdict, decide};
use crate::model::TraceModel;
use crate::trace::Trace;
use mu_base::{Budget, Diagnostic, narrow};

/// Limit on the operations of a conflict that is minimised; a larger one is returned as it is.
pub const LIMIT: usize = 400;

/// A forbidden part of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForbiddenPart {
    /// The operations, in ascending order.
    pub operations: Vec<u32>,
    /// Indices of the required final values that belong to it.
    pub finals: Vec<usize>,
}

/// True if the value of one of the loads of a part, or a required final value, comes from a store.
fn is_source(trace: &Trace, store: u32, part: &ForbiddenPart) -> bool {
    let s = trace.operation(store as usize);
    let is_final = |f: &usize| {
        let f = &trace.finals[*f];
        let is_other = |o: &u32| {
            let o = trace.operation(*o as usize);
            o.kind.stores() && o.location == f.location && o.stored == f.value
        };
        f.location == s.location
            && (f.value == s.stored || f.size != s.size)
            && !part.operations.iter().any(is_other)
    };
    s.kind.stores() && part.finals.iter().any(is_final)
        || s.kind.stores()
            && part.operations.iter().any(|&load| {
                let l = trace.operation(load as usize);
                load != store
                    && l.kind.loads()
                    && l.location == s.location
                    && (l.loaded == s.stored || l.size != s.size)
            })
}

/// Returns a minimal part of a forbidden trace.
///
/// # Errors
/// Those of [`decide`].
pub fn minimal(
    trace: &Trace,
    conflict: &Conflict,
    model: &TraceModel,
    options: &DecisionOptions,
    budget: &Budget,
) -> Result<ForbiddenPart, Diagnostic> {
    let operations = conflict.operations.clone();
    let mut part = ForbiddenPart { operations, finals: conflict.finals.clone() };
    let forbidden = |part: &ForbiddenPart| -> Result<bool, Diagnostic> {
        let judged = trace.part(&part.operations, &part.finals);
        let verdict = decide(&judged, model, options, budget)?;
        Ok(matches!(verdict, Verdict::Forbidden { .. }))
    };
    add_sources(trace, &mut part);
    if part.operations.len() > LIMIT || !forbidden(&part)? {
        part.finals = (0..trace.finals.len()).collect();
        add_sources(trace, &mut part);
        if part.operations.len() > LIMIT || !forbidden(&part)? {
            // The conflict needs more than its operations: the whole trace is forbidden.
            part.operations = (0..narrow::index(trace.len())).collect();
            if part.operations.len() > LIMIT {
                return Ok(part);
            }
        }
    }
    for at in (0..part.finals.len()).rev() {
        let mut rest = part.clone();
        rest.finals.remove(at);
        if forbidden(&rest)? {
            part = rest;
        }
    }
    let mut at = part.operations.len();
    while at > 0 {
        at -= 1;
        let mut rest = part.clone();
        let omitted = rest.operations.remove(at);
        if !is_source(trace, omitted, &rest) && forbidden(&rest)? {
            part = rest;
            at = at.min(part.operations.len());
        }
    }
    Ok(part)
}

/// Adds stores of the values that the operations load and of the required final values, if no
/// store of such a value is there yet.
fn add_sources(trace: &Trace, part: &mut ForbiddenPart) {
    let mut missing: Vec<(u32, u64)> = Vec::new();
    let loads = part.operations.iter().map(|i| trace.operation(*i as usize));
    let loaded = loads.filter(|o| o.kind.loads()).map(|o| (o.location, o.loaded));
    let finals = part.finals.iter().map(|f| &trace.finals[*f]);
    for (location, value) in loaded.chain(finals.map(|f| (f.location, f.value))) {
        let has = part.operations.iter().any(|&s| {
            let s = trace.operation(s as usize);
            s.kind.stores() && s.location == location && s.stored == value
        });
        if !has {
            missing.push((location, value));
        }
    }
    if missing.is_empty() {
        return;
    }
    let sources = (0..trace.len()).filter(|&i| {
        trace.kind(i).stores() && missing.contains(&(trace.location(i), trace.stored_value(i)))
    });
    part.operations.extend(sources.map(narrow::index));
    part.operations.sort_unstable();
    part.operations.dedup();
}
