//! `conform`: machines of ours against all memory models, and what it writes.
//!
//! A machine that implements a model shows exactly the outcomes that its axioms allow: both inclusions, by enumeration of all histories of two processors
//! and two addresses. From the same enumeration follows which other models the machine breaks, and the smallest test for each.

use crate::support::{faults, mu_check, package};
use mu_check::axioms::Kind;
use mu_check::axioms::history::{History, Judge, Operation};
use mu_check::axioms::models::{KNOWN, Mark, by_name};
use mu_check::base::{Budget, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::conform::interface::Interface;
use mu_check::conform::machine::Machine;
use mu_check::conform::search::{Bound, search};
use mu_check::conform::symmetry::Group;
use mu_check::explore::{Options, Silent};
use mu_check::process::{linearise, typecheck::check_specification};
use mu_check::syntax::{parse_specification, template};
use serde_json::Value;
use std::collections::BTreeSet;

/// The histories of a specification's text, with what its interface says, up to `operations` of each processor.
fn histories(text: &str, interface: &str, defines: &[(&str, u32)], operations: usize) -> BTreeSet<History> {
    let mut sources = SourceMap::new();
    let defines: Vec<(String, String)> = defines.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let expanded = template::expand("machine", text, &defines, &mut sources).unwrap();
    let spec = check_specification(&parse_specification(expanded.source, &expanded.text).unwrap()).unwrap();
    let model = Compiled::new(linearise::linearise(&spec, &linearise::Options::default()).unwrap(), &Confluence::None).unwrap();
    let interface = std::fs::read_to_string(package(interface)).unwrap();
    let source = sources.add("interface", interface.clone());
    let interface = Interface::parse(source, &interface).unwrap();
    let budget = Budget::default();
    let machine = Machine::explore(&model, &interface, &Options::default(), &budget, &Silent).unwrap();
    let group = Group::find(&machine.alphabet, &machine.lts, 2);
    assert!(group.elements.len() > 1);
    let bound = Bound { operations, threads: 2, keep: true };
    search(&interface, &machine, &group, &[], bound, &budget).unwrap().kept.into_iter().collect()
}

/// The least history with other names for threads, locations and values; the longest thread first. A value that is 0 stays.
fn least(threads: &[&Vec<Operation>]) -> History {
    let order = |list: &[&Vec<Operation>]| {
        let mut locations: Vec<u32> = Vec::new();
        let mut values: Vec<Vec<u64>> = Vec::new();
        let mut out = History::default();
        for thread in list.iter().filter(|t| !t.is_empty()) {
            let mut renamed = Vec::new();
            for o in *thread {
                if !locations.contains(&o.location) {
                    locations.push(o.location);
                    values.push(vec![0]);
                }
                let location = locations.iter().position(|l| *l == o.location).unwrap();
                let names = &mut values[location];
                if !names.contains(&o.value) {
                    names.push(o.value);
                }
                let value = names.iter().position(|v| *v == o.value).unwrap() as u64;
                renamed.push(Operation { location: location as u32, value, ..*o });
            }
            out.threads.push(renamed);
        }
        out
    };
    let turned: Vec<&Vec<Operation>> = threads.iter().rev().copied().collect();
    let longest_first = |list: &[&Vec<Operation>]| list.windows(2).all(|w| w[0].len() >= w[1].len());
    [threads, &turned].into_iter().filter(|l| longest_first(l)).map(order).min().unwrap()
}

/// All histories of two processors with at most `most` operations each, on two addresses with two values that are stored.
fn all(most: usize) -> BTreeSet<History> {
    let mut lists: Vec<Vec<Operation>> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..most {
        let to = lists.len();
        for i in from..to {
            for (location, value) in (0..2).flat_map(|l| (0..3).map(move |v| (l, v))) {
                for kind in [Kind::Read, Kind::Write] {
                    if kind == Kind::Read || value > 0 {
                        let mut longer = lists[i].clone();
                        longer.push(Operation { kind, location, value, read: 0, mark: Mark::Plain });
                        lists.push(longer);
                    }
                }
            }
        }
        from = to;
    }
    let mut out = BTreeSet::new();
    for a in &lists {
        for b in lists.iter().filter(|b| !(a.is_empty() && b.is_empty())) {
            out.insert(least(&[a, b]));
        }
    }
    out
}

/// Those that a model allows.
fn allowed(name: &str, all: &BTreeSet<History>) -> BTreeSet<History> {
    let known = by_name(name).unwrap();
    let model = known.compile(&mut SourceMap::new()).unwrap();
    let mut judge = Judge::new(&model, known.dialect);
    all.iter().filter(|h| judge.allows(h).unwrap()).cloned().collect()
}

fn specification(name: &str) -> String {
    std::fs::read_to_string(package(&format!("specs/machines/{name}.spec"))).unwrap()
}

const OWN: &str = "specs/machines/machine.interface";
const MSI: &str = "specs/machines/msi.interface";
/// Each machine with its interface and the model that it implements.
const MACHINES: [(&str, &str, &str); 4] = [("sc", OWN, "sc"), ("tso", OWN, "tso"), ("pso", OWN, "pso"), ("msi", MSI, "sc")];

fn machines_show_what_their_models_allow(most: usize) {
    let all = all(most);
    for (machine, interface, model) in MACHINES {
        let slots: &[(&str, u32)] = if ["tso", "pso"].contains(&machine) { &[("slots", most as u32)] } else { &[] };
        let shown = histories(&specification(machine), interface, slots, most);
        let expected = allowed(model, &all);
        let first = |a: &BTreeSet<History>, b: &BTreeSet<History>| a.difference(b).next().map(History::text);
        assert_eq!(first(&shown, &expected), None, "{machine} shows what {model} forbids");
        assert_eq!(first(&expected, &shown), None, "{machine} does not show what {model} allows");
    }
}

#[test]
fn machines_show_exactly_what_their_models_allow() {
    machines_show_what_their_models_allow(2);
}

/// About a minute.
#[test]
#[ignore]
fn machines_show_exactly_what_their_models_allow_to_three_operations() {
    machines_show_what_their_models_allow(3);
}

/// Which models a machine breaks follows from the models alone: those that forbid something that the machine's model allows.
#[test]
fn machines_break_the_models_that_are_not_weaker() {
    let all = all(2);
    for (machine, interface, model) in MACHINES {
        let shown = allowed(model, &all);
        let outcome = mu_check(&["conform", &package(&format!("specs/machines/{machine}.spec")), "--interface", &package(interface)]);
        assert_eq!((outcome.code, outcome.json["stop"].as_str()), (0, Some("complete")), "{}", outcome.stderr);
        assert_eq!(outcome.json["executions"], shown.len(), "{machine}");
        for (known, told) in KNOWN.iter().zip(outcome.json["models"].as_array().unwrap()) {
            let weaker = allowed(known.name, &shown);
            let expected = shown.difference(&weaker).min_by_key(|h| (h.len(), (*h).clone()));
            let test = expected.map(History::text);
            assert_eq!((told["name"].as_str(), told["test"].as_str()), (Some(known.name), test.as_deref()), "{machine}");
            assert_eq!(told["verdict"], if test.is_some() { "false" } else { "true" });
            if test.is_some() {
                assert_eq!(told["confirmed"]["replay"], true);
                assert_eq!(told["confirmed"]["litmus"], true, "{machine}, {}: {told}", known.name);
            }
        }
    }
}

#[test]
fn arcx_shows_store_buffering_and_what_is_written_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let arcx = [package("specs/arcx.spec"), "--interface".into(), package("specs/arcx.interface")];
    let conform = |more: &[&str]| {
        let mut words = vec!["conform".to_string()];
        words.extend(arcx.iter().cloned());
        words.extend(["-D", "max_operation_id=1", "-D", "address_size=2"].map(String::from));
        words.extend(more.iter().map(ToString::to_string));
        mu_check(&words)
    };
    let table = conform(&["-D", "byte_size=1"]);
    let broken: Vec<&Value> = table.json["models"].as_array().unwrap().iter().filter(|m| m["verdict"] != "true").collect();
    assert_eq!((broken.len(), broken[0]["name"].as_str()), (1, Some("sc")), "{}", table.json);
    assert_eq!(broken[0]["test"], "W x 1; R y 0 || W y 1; R x 0");
    let (litmus, run, svg, cycle) = (path("SB.litmus"), path("run.json"), path("run.svg"), path("cycle.svg"));
    let against = ["-D", "byte_size=1", "--against", "sc", "--litmus", &litmus];
    let outcome = conform(&[&against[..], &["--evidence", &run, "--execution", &cycle]].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert_eq!(conform(&[&against[..], &["--evidence", &svg]].concat()).code, 1);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));
    assert!(std::fs::read_to_string(&cycle).unwrap().contains("<svg"));
    // The other command agrees on the test, with both of its routes.
    for (model, code) in [("sc", 1), ("tso", 0), (&package("specs/memory/sc.cat"), 1), (&package("specs/memory/tso.cat"), 0)] {
        assert_eq!(mu_check(&["litmus", &litmus, "--model", model]).code, code, "{model}");
    }
    // With a second command of the memory a processor loads what was there before its own store.
    let table = conform(&["-D", "byte_size=1", "-D", "memcommands_size=2", "--against", "slow", "--against", "tso"]);
    assert_eq!((table.code, table.json["models"][0]["test"].as_str()), (1, Some("W x 1; R x 0")));
}

/// Message passing and store buffering on ARCx, with one command of the memory and with two, and on the machine of total store order.
#[test]
fn litmus_tests_are_looked_up_in_what_a_machine_does() {
    let folder = tempfile::tempdir().unwrap();
    let columns = |name: &str, threads: [[&str; 2]; 2], condition: &str| {
        let [a, b] = threads;
        let text = format!("X86 {name}\n{{ x=0; y=0; }}\n P0 | P1 ;\n {} | {} ;\n {} | {} ;\n{condition}\n", a[0], b[0], a[1], b[1]);
        std::fs::write(folder.path().join(format!("{name}.litmus")), text).unwrap();
    };
    columns("MP", [["MOV [x],$1", "MOV [y],$1"], ["MOV EAX,[y]", "MOV EBX,[x]"]], "exists (1:EAX=1 /\\ 1:EBX=0)");
    columns("SB", [["MOV [x],$1", "MOV EAX,[y]"], ["MOV [y],$1", "MOV EAX,[x]"]], "exists (0:EAX=0 /\\ 1:EAX=0)");
    columns("fence", [["MOV [x],$1", "MFENCE"], ["MOV [y],$1", "MOV EAX,[x]"]], "exists (1:EAX=0)");
    columns("last", [["MOV [x],$1", "MOV [y],$2"], ["MOV [y],$1", "MOV [x],$2"]], "exists (x=1 /\\ y=1)");
    let tests = folder.path().display().to_string();
    let run = |machine: &[&str]| {
        let mut words = vec!["litmus", &tests, "--machine"];
        words.extend(machine);
        mu_check(&words)
    };
    let of = |json: &Value, name: &str| {
        let named = |t: &&Value| t["file"].as_str().unwrap().ends_with(&format!("/{name}.litmus"));
        json["tests"].as_array().unwrap().iter().find(named).unwrap().clone()
    };
    let (arcx, interface) = (package("specs/arcx.spec"), package("specs/arcx.interface"));
    let small = ["-D", "max_operation_id=1", "-D", "byte_size=1"];
    let one = run(&[&[arcx.as_str(), "--interface", &interface][..], &small].concat());
    assert_eq!(one.code, 0, "{}", one.stderr);
    for (name, outcomes) in [("MP", 3), ("SB", 4)] {
        let test = of(&one.json, name);
        assert_eq!((test["shown"].as_array().unwrap().len(), &test["shown"]), (outcomes, &test["allowed"]), "{name}");
    }
    assert!(of(&one.json, "fence")["not_asked"].as_str().unwrap().contains("no program of the machine"));
    assert!(of(&one.json, "last")["not_asked"].as_str().unwrap().contains("what memory holds at last"));
    let two = run(&[&[arcx.as_str(), "--interface", &interface, "-D", "memcommands_size=2"][..], &small].concat());
    assert_eq!(two.code, 1);
    assert_eq!(of(&two.json, "MP")["forbidden_but_shown"], serde_json::json!(["1:EAX=1; 1:EBX=0;"]));
    assert_eq!(of(&two.json, "SB")["forbidden_but_shown"], serde_json::json!([]));
    // The machine of a model shows what the litmus route says that the model allows.
    let (tso, own) = (package("specs/machines/tso.spec"), package(OWN));
    let exact = run(&[&tso, "--interface", &own, "-D", "fences=1"]);
    assert_eq!(exact.code, 0);
    for name in ["MP", "SB", "fence"] {
        assert_eq!(of(&exact.json, name)["shown"], of(&exact.json, name)["allowed"], "{name}");
    }
    let under_sc = run(&[&tso, "--interface", &own, "--model", "sc"]);
    assert_eq!((under_sc.code, of(&under_sc.json, "SB")["forbidden_but_shown"].as_array().unwrap().len()), (1, 1));
}

#[test]
fn limits_give_unknown_and_bad_input_is_refused() {
    let tso = package("specs/machines/tso.spec");
    let limited = mu_check(&["conform", &tso, "--interface", &package(OWN), "--max-states", "100", "--against", "tso"]);
    assert_eq!((limited.code, limited.json["models"][0]["verdict"].as_str()), (3, Some("unknown")));
    // What was found stays true: the part of the machine that was seen shows it.
    let limited = mu_check(&["conform", &tso, "--interface", &package(OWN), "--max-states", "2000", "--against", "sc"]);
    assert_eq!((limited.code, limited.json["models"][0]["test"].as_str()), (1, Some("W x 1; R y 0 || W y 1; R x 0")));
    for (words, message) in [
        (&["--against", "none"][..], "`none` is no memory model"),
        (&["--litmus", "x.litmus"], "`--litmus` is for one memory model"),
        (&["--interface", &package("specs/arcx.interface")], "cannot be used multiple times"),
    ] {
        let mut all = vec!["conform", &tso, "--interface"];
        let own = package(OWN);
        all.push(&own);
        all.extend(words);
        let outcome = mu_check(&all);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    let wrong = mu_check(&["conform", &tso, "--interface", &package("specs/arcx.interface")]);
    assert!(
        wrong.code == 2 && wrong.stderr.contains("arcx.interface:7:6: error: the machine has no action `start_load`"),
        "{}",
        wrong.stderr
    );
}

/// A fault of a machine: its name, the machine, an edit, parameters.
type Fault = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const FAULTS: &[Fault] = &[
    (
        "no forwarding",
        "tso",
        &[
            ("holds(b, a) -> load(p, a, last(b, a)) . Core(p, b)", "false -> load(p, a, last(b, a)) . Core(p, b)"),
            ("(!holds(b, a)) -> c_read", "true -> c_read"),
        ],
        &[],
    ),
    ("forwards the oldest entry", "tso", &[("address(e) == a && !holds(b, a), value(e)", "address(e) == a, value(e)")], &[]),
    (
        "forwards whatever the address",
        "tso",
        &[
            ("holds(e |> b, a) = address(e) == a || holds(b, a)", "holds(e |> b, a) = true"),
            ("if(address(e) == a && !holds(b, a), value(e), last(b, a))", "value(e)"),
        ],
        &[],
    ),
    (
        "the buffer is a stack",
        "tso",
        &[(
            "(b != []) -> c_write(p, address(head(b)), value(head(b))) . Core(p, tail(b))",
            "(b != []) -> c_write(p, address(rhead(b)), value(rhead(b))) . Core(p, rtail(b))",
        )],
        &[],
    ),
    (
        "an entry may be lost",
        "tso",
        &[("  + (b != []) -> c_write", "  + (b != []) -> tau . Core(p, tail(b))\n  + (b != []) -> c_write")],
        &[],
    ),
    (
        "entries of two addresses change places",
        "tso",
        &[(
            "  + (b != []) -> c_write",
            "  + (#b > 1 && address(b . 0) != address(b . 1)) -> tau . Core(p, b . 1 |> b . 0 |> tail(tail(b)))\n  + (b != []) -> c_write",
        )],
        &[],
    ),
    ("a fence does not wait", "tso", &[("(${fences} == 1 && b == [])", "(${fences} == 1)")], &["fences=1", "slots=3"]),
    ("an update does not wait", "tso", &[("(${updates} == 1 && b == [] && w != v0)", "(${updates} == 1 && w != v0)")], &["updates=1"]),
    ("an update writes without reading", "tso", &[("m_update(p, a, m(a), w)", "m_update(p, a, v0, w)")], &["updates=1"]),
    (
        "a load may miss the store before it",
        "sc",
        &[("c_write(p, a, v) . Core(p)", "c_write(p, a, v) . (Core(p) + load(p, a, v0) . Core(p))")],
        &[],
    ),
    (
        "the memory forgets the other address",
        "sc",
        &[("m_write(p, a, v) . Memory(m[a -> v])", "m_write(p, a, v) . Memory((lambda b: Address. v0)[a -> v])")],
        &[],
    ),
    (
        "an entry goes to another address",
        "pso",
        &[("c_write(p, a, first(b, a)) . Core(p, without(b, a))", "c_write(p, a0, first(b, a)) . Core(p, without(b, a))")],
        &[],
    ),
    (
        "the oldest entry of an address is kept",
        "pso",
        &[("if(address(e) == a, value(e), first(b, a))", "if(address(e) == a && !holds(b, a), value(e), first(b, a))")],
        &[],
    ),
    (
        "stores to one address change places",
        "pso",
        &[
            ("first(e |> b, a) = if(address(e) == a, value(e), first(b, a))", "first(e |> b, a) = last(e |> b, a)"),
            (
                "without(e |> b, a) = if(address(e) == a, b, e |> without(b, a))",
                "without(e |> b, a) = if(address(e) == a && !holds(b, a), b, e |> without(b, a))",
            ),
        ],
        &[],
    ),
    (
        "a copy is not invalidated",
        "msi",
        &[(
            "(sum q: Processor. (q in s) -> d_invalidate(q, a) . Clear(a, m, s - {q}, p))",
            "(sum q: Processor. (q in s) -> tau . Clear(a, m, s - {q}, p))",
        )],
        &[],
    ),
    ("a reader is not registered", "msi", &[("d_data(p, a, m) . Directory(a, m, s + {p})", "d_data(p, a, m) . Directory(a, m, s)")], &[]),
    (
        "the answer does not wait for invalidations",
        "msi",
        &[
            ("d_get_modified(p, a) . Clear(a, m, s - {p}, p)", "d_get_modified(p, a) . d_data(p, a, m) . Late(a, m, s - {p}, p)"),
            (
                "% Invalidates the copies",
                "proc Late(a: Address, m: Value, s: FSet(Processor), p: Processor) =\n    (s == {}) -> tau . Owned(a, p)\n  + (sum q: Processor. (q in s) -> d_invalidate(q, a) . Late(a, m, s - {q}, p));\n\n% Invalidates the copies",
            ),
        ],
        &[],
    ),
    (
        "a store hits a shared copy",
        "msi",
        &[
            (
                "(is_writing(w) && is_modified(line(at(w)))) -> end_store(p, at(w), new(w)) . Core(p, line[at(w) -> modified(new(w))], idle)",
                "(is_writing(w) && line(at(w)) != invalid) -> end_store(p, at(w), new(w)) . Core(p, line[at(w) -> if(is_shared(line(at(w))), shared(new(w)), modified(new(w)))], idle)",
            ),
            ("(is_writing(w) && !is_modified(line(at(w))))", "(is_writing(w) && line(at(w)) == invalid)"),
        ],
        &[],
    ),
    (
        "a fetched value is not written back",
        "msi",
        &[(
            "d_get_shared(p, a) .\n      (sum v: Value. d_fetch(o, a, v) . d_data(p, a, v) .",
            "d_get_shared(p, a) .\n      (sum v: Value. d_fetch(o, a, v) . d_data(p, a, v0) .",
        )],
        &[],
    ),
    (
        "the owner keeps its copy",
        "msi",
        &[(
            "c_take(p, a, copy(line(a))) . Core(p, line[a -> invalid], w)",
            "c_take(p, a, copy(line(a))) . Core(p, line[a -> shared(copy(line(a)))], w)",
        )],
        &[],
    ),
    (
        "an owner stays modified when it is read",
        "msi",
        &[(
            "c_fetch(p, a, copy(line(a))) . Core(p, line[a -> shared(copy(line(a)))], w)",
            "c_fetch(p, a, copy(line(a))) . Core(p, line, w)",
        )],
        &[],
    ),
];

/// Every fault is found, with the number of operations at which it is. Prints the table of `results/conform.md`.
#[test]
#[ignore]
fn faults_are_found() {
    let folder = tempfile::tempdir().unwrap();
    println!("| machine | fault | against | K | smallest test |\n|---|---|---|---|---|");
    let mut missed = Vec::new();
    let mut found = |machine: &str, name: &str, text: &str, interface: &str, model: &str, defines: &[String]| {
        let path = folder.path().join("machine.spec").display().to_string();
        std::fs::write(&path, text).unwrap();
        for k in ["1", "2", "3", "4"] {
            let mut words = vec!["conform", &path, "--interface", interface, "--against", model, "--operations", k];
            defines.iter().for_each(|d| words.extend(["-D", d]));
            let outcome = mu_check(&words);
            assert!(outcome.code < 2, "{machine}, {name}: {}", outcome.stderr);
            let told = &outcome.json["models"][0];
            if outcome.code == 1 {
                assert_eq!(told["confirmed"]["replay"], true);
                println!("| {machine} | {name} | {model} | {k} | `{}` |", told["test"].as_str().unwrap());
                return;
            }
        }
        missed.push(format!("{machine}: {name}"));
    };
    for (name, machine, edits, defines) in FAULTS {
        let text = faults::patch(&specification(machine), edits);
        let (_, interface, model) = MACHINES.iter().find(|m| m.0 == *machine).unwrap();
        let defines: Vec<String> = defines.iter().map(ToString::to_string).collect();
        found(machine, name, &text, &package(interface), model, &defines);
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
