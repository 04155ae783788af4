//! Tests of the systems of `specs/cubicle`: parsing, printing, and the results of the machines of
//! two and three processes. Also rejected inputs, with their positions.

use mu_base::{Budget, SourceId, SourceMap};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::system::System;
use mu_cubicle::{check, parse};
use std::path::Path;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/cubicle")
}

fn read(name: &str) -> System {
    let text =
        std::fs::read_to_string(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let tree = parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("{name}: {}", d));
    let system = check(&tree).unwrap_or_else(|d| panic!("{name}: {}", d));
    let again =
        parse(SourceId::FIRST, &tree.to_string()).unwrap_or_else(|d| panic!("{name}: {}", d));
    assert_eq!(again, tree, "{name}");
    assert_eq!(check(&again).as_ref(), Ok(&system), "{name}");
    system
}

/// Returns whether an unsafe state is reachable with buffers of at most two entries.
fn is_unsafe(system: &System, n: u32, memory: Memory) -> bool {
    let setup = Setup { buffer: Some(2), ..Setup::default() };
    let machine = Machine::new(system, n, memory, setup).unwrap_or_else(|d| panic!("{}", d));
    let reach =
        machine.reach(1_000_000, true, &Budget::default()).unwrap_or_else(|d| panic!("{}", d));
    assert!(reach.states.len() < 1_000_000);
    reach.violation.is_some()
}

#[test]
fn systems_of_the_repository_have_their_verdicts() {
    // Name, unsafe under sequential consistency, unsafe under total store order.
    let all = [
        ("naive_mutex_unsafe.cub", false, true),
        ("naive_mutex.cub", false, false),
        ("lamport_unsafe.cub", false, true),
        ("lamport.cub", false, false),
        ("lamport_full.cub", false, false),
        ("spinlock.cub", false, false),
        ("sense_barrier.cub", false, false),
        ("arbiter_v1.cub", false, false),
        ("arbiter_v2.cub", false, false),
        ("two_phase_commit.cub", false, false),
    ];
    for (name, sc, tso) in all {
        let system = read(name);
        let numbers: &[u32] = if name == "lamport_full.cub" { &[2] } else { &[2, 3] };
        for n in numbers {
            assert_eq!(
                is_unsafe(&system, *n, Memory::Sc),
                sc,
                "{name}, {n} processes, sequential consistency"
            );
            assert_eq!(
                is_unsafe(&system, *n, Memory::Tso),
                tso,
                "{name}, {n} processes, total store order"
            );
        }
    }
    let files = std::fs::read_dir(folder()).unwrap_or_else(|e| panic!("{e}")).count();
    assert_eq!(files, all.len(), "a file of specs/cubicle without a verdict here");
}

const HEAD: &str = "type t = A | B
var X : t
array P[proc] : t
weak var W : int
const N : int
init (p) { X = A && P[p] = A && W = 0 }
";

#[test]
fn errors_have_places() {
    // The text after the head, the line and column of the fault (the head has six lines), and part
    // of the message.
    let faults = [
        ("unsafe (p) { P[p] = 3 }", 7, 21, "`3` is of type `int`, expected `t`"),
        ("unsafe (p) { P[q] = A }", 7, 16, "`q` is not a process"),
        ("unsafe (p) { P = A }", 7, 14, "`P` has one index, but is used with no index"),
        ("unsafe (p) { Q[p] = A }", 7, 14, "`Q` is not declared"),
        ("unsafe (p) { P[p] < A }", 7, 14, "have no order"),
        ("unsafe (p) { P[p] }", 7, 14, "expected a formula"),
        ("unsafe (p) { P[p] = A", 7, 21, "found the end of the file, expected `}`"),
        ("unsafe (p p) { P[p] = A }", 7, 11, "`p` is bound twice"),
        ("unsafe (p) { p @ X = A }", 7, 14, "`X` is not in memory"),
        ("unsafe () { W * W = 1 }", 7, 13, "multiplies two variables"),
        ("unsafe () { fence() }", 7, 13, "`fence` is for guards"),
        ("unsafe () { X == A }", 7, 15, "expected `=`"),
        ("transition t () { W := 1 }", 7, 19, "expected a process that writes it"),
        ("transition t ([p]) { N := 1 }", 7, 22, "`N` is a constant"),
        ("transition t ([p] [q]) { X := A }", 7, 20, "one process accesses memory"),
        ("transition t (p q) requires { p @ W = 1 } { q @ W := 2 }", 7, 45, "by one process"),
        ("transition t (p) { P[p] := A; P[p] := B }", 7, 31, "updated twice"),
        ("transition t (p) { P[p] := case | _ : A }", 7, 22, "`p` is a process already"),
        (
            "transition t (p) requires { exists q <> r. P[q] = A } { }",
            7,
            36,
            "one quantified process",
        ),
        ("transition t (p) { X := A Y := B }", 7, 27, "found `Y`, expected `;`"),
        ("transition t ([p]) requires { not fence() } { }", 7, 35, "cannot be negated"),
        ("type t = C", 7, 6, "the type `t` is declared twice"),
        ("type u = C | A", 7, 14, "the constructor `A` is declared already"),
        ("var X : int", 7, 5, "`X` is declared twice"),
        ("var Z : nat", 7, 9, "`nat` is not a type"),
        ("array Z[int] : t", 7, 9, "cannot be an index"),
        (
            "predicate p (x) { q(x) } predicate q (x) { p(x) } unsafe (x) { p(x) }",
            7,
            44,
            "uses itself",
        ),
        ("unsafe (p) { P[p] = A } (* no end", 7, 25, "this comment is not closed"),
        ("unsafe (p) { P[p] = A $ }", 7, 23, "unexpected character"),
        ("number_procs 2 unsafe () { P[#3] = A }", 7, 1, "the file names process #3"),
        ("init () { X = B }", 7, 1, "a second `init`"),
        (
            "transition t (p) requires { forall_other q. exists_other r. P[r] = A } { }",
            7,
            58,
            "a quantifier is not supported here",
        ),
    ];
    let mut wrong = Vec::new();
    for (text, line, column, message) in faults {
        let text = format!("{HEAD}{text}");
        let mut sources = SourceMap::new();
        let source = sources.add("x.cub", text.clone());
        let fault =
            parse(source, &text).and_then(|tree| check(&tree)).map(|_| ()).expect_err(&text);
        let at = fault.span.map(|s| sources.line_column(s));
        if !fault.message.contains(message) || at != Some((line, column)) {
            wrong.push(format!(
                "{text}\n{at:?} {}, expected {line}:{column} {message}",
                fault.message
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn deep_formulas_are_refused_and_long_ones_are_read() {
    let deep = format!("{HEAD}unsafe () {{ {}X = A{} }}", "(".repeat(100_000), ")".repeat(100_000));
    let fault = parse(SourceId::FIRST, &deep).map(|_| ()).expect_err("deep");
    assert!(fault.message.contains("nested more than 500 levels deep"), "{}", fault.message);
    let long = format!("{HEAD}unsafe () {{ X = A{} }}", " && X <> B".repeat(50_000));
    let system =
        parse(SourceId::FIRST, &long).and_then(|t| check(&t)).unwrap_or_else(|d| panic!("{}", d));
    assert_eq!(system.unsafes[0].cube.len(), 2);
    let wide =
        format!("{HEAD}unsafe () {{ (X = A || X = B){} }}", " && (X = A || P[#1] = B)".repeat(40));
    let fault =
        parse(SourceId::FIRST, &wide).and_then(|t| check(&t)).map(|_| ()).expect_err("wide");
    assert!(fault.message.contains("disjunctive normal form"), "{}", fault.message);
}

#[test]
fn a_transition_has_another_name_than_the_step_of_a_buffer() {
    let of = |text: &str| parse(SourceId::FIRST, text).and_then(|t| check(&t)).map(|_| ());
    let plain = "var X : bool init () { X = True } transition flush (p) { X := False }";
    of(plain).unwrap_or_else(|d| panic!("{d}"));
    let weak = "weak var X : bool init () { X = True } transition flush ([p]) { X := False }";
    let fault = of(weak).expect_err("the name of a step");
    assert!(fault.message.contains("`flush`"), "{}", fault.message);
    assert_eq!(fault.span.map(|s| s.start), weak.find("flush").map(|at| at as u32));
}

#[test]
fn older_spellings_are_one_tree() {
    let guards = [
        "transition t (p) requires { p @ W = 1 } { p @ W := 2 }",
        "transition t (p) requires { [p]W = 1 } { [p]W := 2 }",
        "transition t (p) requires { read(p, W) = 1 } { write(p, W, 2) }",
    ];
    let trees: Vec<_> = guards
        .iter()
        .map(|g| {
            parse(SourceId::FIRST, &format!("{HEAD}{g}")).unwrap_or_else(|d| panic!("{g}: {}", d))
        })
        .collect();
    assert!(trees.windows(2).all(|t| t[0] == t[1]));
    let system = check(&trees[0]).unwrap_or_else(|d| panic!("{}", d));
    assert!(system.transitions[0].locked);
}
