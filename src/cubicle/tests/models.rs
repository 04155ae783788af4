//! Tests of instances as models: unsafe states that the groups of the model reach, and those that
//! the small engine reaches. Invariants about open numbers, `fence` below quantifiers, elements of
//! abstract types in store buffers.

use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, SourceId};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::model::{SystemModel, UNSAFE};
use mu_cubicle::{System, check, parse};
use mu_model::{Model, Steps};
use std::collections::BTreeSet;

fn system(text: &str) -> System {
    parse(SourceId::FIRST, text).and_then(|t| check(&t)).unwrap_or_else(|d| panic!("{text}: {d}"))
}

fn setup(candidates: &[i64]) -> Setup {
    let candidates =
        candidates.iter().map(|n| num_rational::BigRational::from_integer((*n).into())).collect();
    Setup { buffer: Some(2), candidates, ..Setup::default() }
}

/// Returns whether the model has a step `unsafe`.
fn model_is_unsafe(text: &str, n: u32, memory: Memory) -> Result<bool, Diagnostic> {
    let system = system(text);
    let model = SystemModel::new(Machine::new(&system, n, memory, setup(&[]))?)?;
    let (mut seen, mut todo) = (BTreeSet::new(), vec![model.initial()]);
    let mut worker = model.worker();
    while let Some(state) = todo.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        for (at, group) in model.groups().iter().enumerate() {
            if group.requires.iter().any(|(slot, value)| state[*slot as usize] != *value) {
                continue;
            }
            let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
            let mut steps = Steps::default();
            worker.steps(at, &reads, &mut steps)?;
            for (i, label) in steps.labels.iter().enumerate() {
                if model.label_text(*label) == UNSAFE {
                    return Ok(true);
                }
                let mut next = state.clone();
                for (j, slot) in group.writes.iter().enumerate() {
                    next[*slot as usize] = steps.values[i * group.writes.len() + j];
                }
                todo.push(next);
            }
        }
    }
    Ok(false)
}

/// Returns whether the small engine reaches an unsafe state.
fn engine_is_unsafe(text: &str, n: u32, memory: Memory, candidates: &[i64]) -> bool {
    let system = system(text);
    let machine = Machine::new(&system, n, memory, setup(candidates)).expect("a machine");
    let reach = machine.reach(100_000, true, &Budget::default()).unwrap_or_else(|d| panic!("{d}"));
    assert!(reach.complete || reach.violation.is_some());
    reach.violation.is_some()
}

/// Each value of `X` is excluded at one of the places between.
const BETWEEN: &str = "type place = A | B | C | D
var X : int
var At : place
init () { At = A }
invariant () { X > 5 && At = B }
invariant () { X < 6 && At = C }
unsafe () { At = D }
transition one () requires { At = A } { At := B }
transition two () requires { At = B } { At := C }
transition three () requires { At = C } { At := D }
";

#[test]
fn an_open_number_has_a_value_in_states_that_an_invariant_excludes() {
    assert!(!engine_is_unsafe(BETWEEN, 1, Memory::Sc, &[0, 5, 6, 7]));
    let error = model_is_unsafe(BETWEEN, 1, Memory::Sc).expect_err("`X` has no value");
    assert!(error.message.contains("`X` is read before it has a value"), "{error}");
    for (init, x) in [("init () { At = A && X = 5", 5), ("init () { At = A && X = 6", 6)] {
        let text = BETWEEN.replace("init () { At = A", init);
        assert!(!model_is_unsafe(&text, 1, Memory::Sc).unwrap_or_else(|d| panic!("{d}")), "{x}");
    }
    // A number that a step stores.
    let stored = BETWEEN
        .replace("At = A }", "At = A && X = 0 }")
        .replace("{ At := B }", "{ At := B; X := . }");
    assert!(!engine_is_unsafe(&stored, 1, Memory::Sc, &[0, 5, 6, 7]));
    assert!(model_is_unsafe(&stored, 1, Memory::Sc).is_err());
    // Without the second invariant a number is left.
    let one = BETWEEN.replace("invariant () { X < 6 && At = C }", "");
    assert!(engine_is_unsafe(&one, 1, Memory::Sc, &[0, 5, 6, 7]));
}

#[test]
fn a_fence_below_a_quantifier_waits_for_the_buffer() {
    let text = "weak var X : bool
array Wrote[proc] : bool
array Passed[proc] : bool
init (p) { X = False && Wrote[p] = False && Passed[p] = False }
unsafe (p q) { Passed[p] = True && q @ X = False }
transition write ([p]) requires { Wrote[p] = False } { X := True; Wrote[p] := True }
transition pass ([p]) requires { Wrote[p] = True && forall_other q. fence() } { Passed[p] := True }
";
    for processes in [2, 3] {
        let found = model_is_unsafe(text, processes, Memory::Tso).unwrap_or_else(|d| panic!("{d}"));
        assert!(!found && !engine_is_unsafe(text, processes, Memory::Tso, &[]), "{processes}");
    }
    let without = text.replace("forall_other q. fence()", "true");
    assert!(model_is_unsafe(&without, 2, Memory::Tso).unwrap_or_else(|d| panic!("{d}")));
}

/// Memory, a store buffer, and two cells contain four different elements: more than cells.
#[test]
fn store_buffers_contain_further_elements_of_an_abstract_type() {
    let text = "type t
weak var X : t
array K[proc] : t
array Done[proc] : bool
init (p) { Done[p] = False }
unsafe (p q) { p @ X <> q @ X && p @ X <> K[p] && p @ X <> K[q] && q @ X <> K[p]
    && q @ X <> K[q] && K[p] <> K[q] }
transition store ([p]) requires { Done[p] = False } { X := .; Done[p] := True }
";
    assert!(engine_is_unsafe(text, 2, Memory::Tso, &[]));
    assert!(model_is_unsafe(text, 2, Memory::Tso).unwrap_or_else(|d| panic!("{d}")));
    assert!(!engine_is_unsafe(text, 2, Memory::Sc, &[]));
    assert!(!model_is_unsafe(text, 2, Memory::Sc).unwrap_or_else(|d| panic!("{d}")));
    // Two cells that one step assigns contain different elements.
    let pair = "type t
weak var X : t
weak var Y : t
array Done[proc] : bool
init (p) { Done[p] = False && X = Y }
unsafe (p q) { p @ X <> p @ Y && p @ X <> q @ X && p @ Y <> q @ X }
transition store ([p]) requires { Done[p] = False } { X := .; Y := .; Done[p] := True }
";
    assert!(engine_is_unsafe(pair, 2, Memory::Tso, &[]));
    assert!(model_is_unsafe(pair, 2, Memory::Tso).unwrap_or_else(|d| panic!("{d}")));
}

#[test]
fn a_process_that_only_stores_is_named() {
    let text = "weak var X : bool init () { X = False } unsafe (p) { p @ X = True }
transition store () { #2 @ X := True }";
    assert_eq!(system(text).fixed, 2);
    assert!(Machine::new(&system(text), 1, Memory::Tso, setup(&[])).is_err());
    assert!(engine_is_unsafe(text, 2, Memory::Tso, &[]));
}

#[test]
fn a_transition_tau_is_not_hidden() {
    let text = "array A[proc] : bool
init (p) { A[p] = False }
unsafe (p) { A[p] = True }
transition tau () { }
transition tau_2 ([p]) { A[p] := True }
transition other () { }";
    let system = system(text);
    let machine = Machine::new(&system, 1, Memory::Sc, setup(&[])).expect("a machine");
    let model = SystemModel::new(machine).expect("a model");
    assert_eq!(model.action_of_tau().as_deref(), Some("tau_3"));
    let mut worker = model.worker();
    let mut labels = BTreeSet::new();
    for (at, group) in model.groups().iter().enumerate() {
        let state = model.initial();
        let reads: Vec<u32> = group.reads.iter().map(|s| state[*s as usize]).collect();
        let mut steps = Steps::default();
        worker.steps(at, &reads, &mut steps).expect("steps");
        assert!(!steps.labels.contains(&LabelId::TAU), "{}", group.name);
        labels.extend(steps.labels.iter().map(|l| model.label_text(*l)));
    }
    assert!(labels.contains("tau_3") && labels.contains("other"), "{labels:?}");
}
