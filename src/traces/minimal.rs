//! Minimal forbidden parts of traces: a set of operations that a model forbids, from which no
//! operation can be left out.
//!
//! In: a trace and a conflict that [`decide`] found. Out: the part as operations in ascending
//! order. A store stays while a load of its value stays, so that no part is forbidden only because
//! a store is missing. Deletion one by one (Zeller, Hildebrandt: delta debugging. TSE 2002), with
//! one decision for each operation of the conflict; conflicts with more than [`LIMIT`] operations
//! are returned as they are.

use crate::decide::{Conflict, Options, Verdict, decide};
use crate::model::Model;
use crate::trace::Trace;
use mu_base::{Budget, Diagnostic};

/// Limit on the operations of a conflict that is minimised; a larger one is returned as it is.
pub const LIMIT: usize = 400;

/// A forbidden part of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The operations, in ascending order.
    pub operations: Vec<u32>,
    /// True if the required final values belong to it.
    pub finals: bool,
}

/// True if the value of one of the loads of a part comes from a store.
fn is_source(trace: &Trace, store: u32, part: &[u32]) -> bool {
    let s = trace.operation(store as usize);
    s.kind.stores()
        && part.iter().any(|&load| {
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
    model: &Model,
    options: &Options,
    budget: &Budget,
) -> Result<Part, Diagnostic> {
    let mut part = Part { operations: conflict.operations.clone(), finals: false };
    for edge in &conflict.cycle {
        part.operations.extend([edge.from, edge.to]);
    }
    part.operations.sort_unstable();
    part.operations.dedup();
    let forbidden = |operations: &[u32], finals: bool| -> Result<bool, Diagnostic> {
        let verdict = decide(&trace.part(operations, finals), model, options, budget)?;
        Ok(matches!(verdict, Verdict::Forbidden { .. }))
    };
    add_sources(trace, &mut part.operations);
    if part.operations.len() > LIMIT || !forbidden(&part.operations, false)? {
        part.finals = true;
        if part.operations.len() > LIMIT || !forbidden(&part.operations, true)? {
            // The conflict needs more than its operations: the whole trace is forbidden.
            part.operations = (0..trace.len() as u32).collect();
            if part.operations.len() > LIMIT {
                return Ok(part);
            }
        }
    }
    let mut at = part.operations.len();
    while at > 0 {
        at -= 1;
        let mut rest = part.operations.clone();
        let omitted = rest.remove(at);
        if !is_source(trace, omitted, &rest) && forbidden(&rest, part.finals)? {
            part.operations = rest;
            at = at.min(part.operations.len());
        }
    }
    Ok(part)
}

/// Adds stores of the values that the operations load, if no store of such a value is there yet.
fn add_sources(trace: &Trace, operations: &mut Vec<u32>) {
    let mut missing: Vec<(u32, u64)> = Vec::new();
    for &load in operations.iter() {
        let l = trace.operation(load as usize);
        let has = operations.iter().any(|&s| {
            let s = trace.operation(s as usize);
            s.kind.stores() && s.location == l.location && s.stored == l.loaded
        });
        if l.kind.loads() && !has {
            missing.push((l.location, l.loaded));
        }
    }
    if missing.is_empty() {
        return;
    }
    let sources = (0..trace.len()).filter(|&i| {
        trace.kind(i).stores() && missing.contains(&(trace.location(i), trace.stored(i)))
    });
    operations.extend(sources.map(|i| i as u32));
    operations.sort_unstable();
    operations.dedup();
}
