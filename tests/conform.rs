//! `conform`: the machines of the project against all memory models, and its output.
//!
//! A machine that implements a model shows exactly the outcomes that its axioms allow: both
//! inclusions, by enumeration of all histories of two processors and two addresses. From the same
//! enumeration follows which other models the machine breaks, and the smallest test for each.

use crate::support::{faults, mu_check, package};
use mu_check::axioms::EventKind;
use mu_check::axioms::history::{History, HistoryChecker, Operation};
use mu_check::axioms::models::{KNOWN, by_name};
use mu_check::base::{Budget, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::conform::faults::MachineFault;
use mu_check::conform::interface::Interface;
use mu_check::conform::machine::ReducedMachine;
use mu_check::conform::search::{Bound, search};
use mu_check::conform::symmetry::SymmetryGroup;
use mu_check::explore::{Options, Silent};
use mu_check::process::{linearise, typecheck::check_specification};
use mu_check::syntax::{parse_specification, template};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the histories of a specification's text, with what its interface says, up to
/// `operations` of each processor.
fn histories(
    text: &str,
    interface: &str,
    defines: &[(&str, u32)],
    operations: usize,
) -> BTreeSet<History> {
    search_histories(text, interface, defines, operations, false).0
}

/// Does the same with the states that were explored; where steps that commute are taken at once, or
/// all by themselves.
fn search_histories(
    text: &str,
    interface: &str,
    defines: &[(&str, u32)],
    operations: usize,
    commuting: bool,
) -> (BTreeSet<History>, u64) {
    let mut sources = SourceMap::new();
    let defines: Vec<(String, String)> =
        defines.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    let expanded = template::expand("machine", text, &defines, &mut sources).unwrap();
    let spec = check_specification(&parse_specification(expanded.source, &expanded.text).unwrap())
        .unwrap();
    let interface = std::fs::read_to_string(package(interface)).unwrap();
    let source = sources.add("interface", interface.clone());
    let interface = Interface::parse(source, &interface).unwrap();
    let confluence =
        if commuting { Confluence::Commuting(interface.ends()) } else { Confluence::None };
    let model = Compiled::new(
        linearise::linearise(&spec, &linearise::LineariserOptions::default()).unwrap(),
        &confluence,
    )
    .unwrap();
    let budget = Budget::default();
    let options = Options::default().with_confluence_of(&model);
    let machine = ReducedMachine::explore(&model, &interface, &options, &budget, &Silent).unwrap();
    let group = SymmetryGroup::find(&machine.alphabet, &machine.lts, 2);
    assert!(group.elements.len() > 1);
    let bound = Bound { collect: usize::MAX, ..Bound::of(operations, 2) };
    let histories = search(&interface, &machine, &group, &[], bound, &budget)
        .unwrap()
        .judged_histories
        .into_iter()
        .collect();
    (histories, machine.outcome.states)
}

/// Steps that commute with all others, ends of operations among them, lose no history and add none:
/// on ARCx in all its forms, and on some of its faults.
#[test]
fn steps_that_commute_keep_all_histories() {
    let arcx = std::fs::read_to_string(package("specs/arcx.spec")).unwrap();
    // What the interface speaks of is not hidden; observations are.
    let shown = arcx.replace(
        "mem_read, mem_write, start_load, start_load_acquire, start_store, reset, next_instr,\n    ip_",
        "mem_read, mem_write, reset, observe, next_instr,\n    ip_",
    );
    assert_ne!(arcx, shown);
    let faults = std::fs::read_to_string(package("specs/arcx.faults")).unwrap();
    let mut texts = vec![shown.clone()];
    for fault in MachineFault::parse(mu_check::base::SourceId::FIRST, &faults)
        .unwrap()
        .iter()
        .filter(|f| f.defines.is_empty())
        .step_by(4)
    {
        texts.push(fault.apply(&shown).unwrap());
    }
    assert!(texts.len() > 4);
    let small = [("max_operation_id", 1), ("byte_size", 1)];
    let (mut states_of_all, mut states_kept) = (0, 0);
    for (i, text) in texts.iter().enumerate() {
        for more in [("memcommands_size", 1), ("memcommands_size", 2), ("nr_wb_buffers", 2)] {
            if i > 0 && more.1 > 1 {
                continue;
            }
            let defines = [small[0], small[1], more];
            let (all, states) = search_histories(text, "specs/arcx.interface", &defines, 2, false);
            let (same, fewer) = search_histories(text, "specs/arcx.interface", &defines, 2, true);
            let counts =
                format!("{} and {} histories, {states} and {fewer} states", all.len(), same.len());
            assert!(all == same && fewer <= states, "{i} {more:?}: {counts}");
            states_of_all += states;
            states_kept += fewer;
        }
    }
    assert!(states_kept * 3 < states_of_all * 2, "{states_kept} of {states_of_all}");
}

/// Returns the least history with other names for threads, locations and values; the longest thread
/// first. A value that is 0 stays.
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
    let longest_first =
        |list: &[&Vec<Operation>]| list.windows(2).all(|w| w[0].len() >= w[1].len());
    [threads, &turned].into_iter().filter(|l| longest_first(l)).map(order).min().unwrap()
}

/// Returns all histories of two processors with at most `most` operations each, on two addresses
/// with two values that are stored.
fn all_histories(most: usize) -> BTreeSet<History> {
    let mut lists: Vec<Vec<Operation>> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..most {
        let to = lists.len();
        for i in from..to {
            for (location, value) in (0..2).flat_map(|l| (0..3).map(move |v| (l, v))) {
                for kind in [EventKind::Read, EventKind::Write] {
                    if kind == EventKind::Read || value > 0 {
                        let mut longer = lists[i].clone();
                        longer.push(Operation::plain(kind, location, value));
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

/// Returns those that a model allows.
fn allowed_histories(name: &str, all: &BTreeSet<History>) -> BTreeSet<History> {
    let known = by_name(name).unwrap();
    let model = known.compile(&mut SourceMap::new()).unwrap();
    let mut judge = HistoryChecker::new(&model, known.dialect);
    all.iter().filter(|h| judge.allows(h).unwrap()).cloned().collect()
}

fn specification(name: &str) -> String {
    std::fs::read_to_string(package(&format!("specs/machines/{name}.spec"))).unwrap()
}

const OWN: &str = "specs/machines/machine.interface";
const MSI: &str = "specs/machines/msi.interface";
/// Each machine with its interface and the model that it implements.
const MACHINES: [(&str, &str, &str); 4] =
    [("sc", OWN, "sc"), ("tso", OWN, "tso"), ("pso", OWN, "pso"), ("msi", MSI, "sc")];

fn machines_show_what_their_models_allow(most: usize) {
    let all = all_histories(most);
    for (machine, interface, model) in MACHINES {
        let slots: &[(&str, u32)] =
            if ["tso", "pso"].contains(&machine) { &[("slots", most as u32)] } else { &[] };
        let shown = histories(&specification(machine), interface, slots, most);
        let expected = allowed_histories(model, &all);
        let first = |a: &BTreeSet<History>, b: &BTreeSet<History>| {
            a.difference(b).next().map(History::text)
        };
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

/// The models alone determine the violated ones: those that forbid an outcome that the machine's
/// model allows.
#[test]
fn machines_break_the_models_that_are_not_weaker() {
    let all = all_histories(2);
    for (machine, interface, model) in MACHINES {
        let shown = allowed_histories(model, &all);
        let outcome = mu_check(&[
            "conform",
            &package(&format!("specs/machines/{machine}.spec")),
            "--interface",
            &package(interface),
        ]);
        assert_eq!(
            (outcome.code, outcome.json["stop"].as_str()),
            (0, Some("complete")),
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.json["executions"], shown.len(), "{machine}");
        for (known, model_result) in KNOWN.iter().zip(outcome.json["models"].as_array().unwrap()) {
            let weaker = allowed_histories(known.name, &shown);
            let expected = shown.difference(&weaker).min_by_key(|h| (h.len(), (*h).clone()));
            let test = expected.map(History::text);
            assert_eq!(
                (model_result["name"].as_str(), model_result["test"].as_str()),
                (Some(known.name), test.as_deref()),
                "{machine}"
            );
            assert_eq!(model_result["verdict"], if test.is_some() { "false" } else { "true" });
            if test.is_some() {
                assert_eq!(model_result["confirmed"]["replay"], true);
                assert_eq!(
                    model_result["confirmed"]["litmus"], true,
                    "{machine}, {}: {model_result}",
                    known.name
                );
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
    let broken: Vec<&Value> = table.json["models"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["verdict"] != "true")
        .collect();
    assert_eq!((broken.len(), broken[0]["name"].as_str()), (1, Some("sc")), "{}", table.json);
    assert_eq!(broken[0]["test"], "W x 1; R y 0 || W y 1; R x 0");
    let (litmus, run, svg, cycle) =
        (path("SB.litmus"), path("run.json"), path("run.svg"), path("cycle.svg"));
    let against = ["-D", "byte_size=1", "--against", "sc", "--litmus", &litmus];
    let outcome = conform(&[&against[..], &["--evidence", &run, "--execution", &cycle]].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert_eq!(conform(&[&against[..], &["--evidence", &svg]].concat()).code, 1);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));
    assert!(std::fs::read_to_string(&cycle).unwrap().contains("<svg"));
    // The other command agrees on the test, with both of its routes.
    for (model, code) in [
        ("sc", 1),
        ("tso", 0),
        (&package("specs/memory/sc.cat"), 1),
        (&package("specs/memory/tso.cat"), 0),
    ] {
        assert_eq!(mu_check(&["litmus", &litmus, "--model", model]).code, code, "{model}");
    }
    // With a second command of the memory a processor loads the value before its own store.
    let table = conform(&[
        "-D",
        "byte_size=1",
        "-D",
        "memcommands_size=2",
        "--against",
        "slow",
        "--against",
        "tso",
    ]);
    let model_result = &table.json["models"][0];
    assert_eq!((table.code, model_result["test"].as_str()), (1, Some("W x 1; R x 0")));
    // What the cores observe in the run: its own store is known to the core that then loads
    // something older.
    let labels = model_result["run"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|l| l.as_str().filter(|l| l.starts_with("observe(")));
    let text = |o: &Value| {
        let of = |key: &str| o[key].as_str().unwrap().to_string();
        format!(
            "observe({}, {}, {}, {}, {})",
            of("processor"),
            of("address"),
            of("value"),
            of("number"),
            of("of")
        )
    };
    let texts: Vec<String> =
        model_result["observed"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(texts, labels.collect::<Vec<_>>());
    assert_eq!(
        model_result["observed"][0]["processor"], model_result["observed"][0]["of"],
        "{model_result}"
    );
}

/// Message passing and store buffering on ARCx, with one command of the memory and with two, and on
/// the machine of total store order.
#[test]
fn litmus_tests_are_looked_up_in_what_a_machine_does() {
    let folder = tempfile::tempdir().unwrap();
    let columns = |name: &str, threads: [[&str; 2]; 2], condition: &str| {
        let [a, b] = threads;
        let text = format!(
            "X86 {name}\n{{ x=0; y=0; }}\n P0 | P1 ;\n {} | {} ;\n {} | {} ;\n{condition}\n",
            a[0], b[0], a[1], b[1]
        );
        std::fs::write(folder.path().join(format!("{name}.litmus")), text).unwrap();
    };
    columns(
        "MP",
        [["MOV [x],$1", "MOV [y],$1"], ["MOV EAX,[y]", "MOV EBX,[x]"]],
        "exists (1:EAX=1 /\\ 1:EBX=0)",
    );
    columns(
        "SB",
        [["MOV [x],$1", "MOV EAX,[y]"], ["MOV [y],$1", "MOV EAX,[x]"]],
        "exists (0:EAX=0 /\\ 1:EAX=0)",
    );
    columns("fence", [["MOV [x],$1", "MFENCE"], ["MOV [y],$1", "MOV EAX,[x]"]], "exists (1:EAX=0)");
    columns(
        "last",
        [["MOV [x],$1", "MOV [y],$2"], ["MOV [y],$1", "MOV [x],$2"]],
        "exists (x=1 /\\ y=1)",
    );
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
        assert_eq!(
            (test["shown"].as_array().unwrap().len(), &test["shown"]),
            (outcomes, &test["allowed"]),
            "{name}"
        );
    }
    assert!(of(&one.json, "fence")["not_asked"].as_str().unwrap().contains("has no such program"));
    assert!(
        of(&one.json, "last")["not_asked"]
            .as_str()
            .unwrap()
            .contains("depends on the final memory")
    );
    let two =
        run(&[&[arcx.as_str(), "--interface", &interface, "-D", "memcommands_size=2"][..], &small]
            .concat());
    assert_eq!(two.code, 1);
    assert_eq!(
        of(&two.json, "MP")["forbidden_but_shown"],
        serde_json::json!(["1:EAX=1; 1:EBX=0;"])
    );
    assert_eq!(of(&two.json, "SB")["forbidden_but_shown"], serde_json::json!([]));
    // The machine of a model shows the outcomes that the litmus route allows for the model.
    let (tso, own) = (package("specs/machines/tso.spec"), package(OWN));
    let exact = run(&[&tso, "--interface", &own, "-D", "fences=1"]);
    assert_eq!(exact.code, 0);
    for name in ["MP", "SB", "fence"] {
        assert_eq!(of(&exact.json, name)["shown"], of(&exact.json, name)["allowed"], "{name}");
    }
    // The same tests in other languages, if they are plain loads and stores.
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(format!("{name}.litmus")), text).unwrap()
    };
    let riscv = |name: &str, between: &str| {
        let head = format!(
            "RISCV {name}\n{{ 0:x6=x; 0:x8=y; 1:x6=x; 1:x8=y; }}\n P0 | P1 ;\n ori x5,x0,1 | ori x5,x0,1 ;\n sw x5,0(x6) | sw x5,0(x8) ;\n"
        );
        write(
            name,
            &format!(
                "{head} {between} | {between} ;\n lw x7,0(x8) | lw x7,0(x6) ;\nexists (0:x7=0 /\\ 1:x7=0)\n"
            ),
        );
    };
    riscv("riscv", "nop");
    riscv("riscv-fences", "fence rw,rw");
    riscv("riscv-other", "fence w,r");
    write(
        "aarch64",
        "AArch64 aarch64\n{ 0:X1=x; 0:X3=y; 1:X1=x; 1:X3=y; }\n P0 | P1 ;\n MOV W0,#1 | LDR W0,[X3] ;\n STR W0,[X1] | LDR W2,[X1] ;\n \
         STR W0,[X3] | ;\nexists (1:X0=1 /\\ 1:X2=0)\n",
    );
    write(
        "depends",
        "AArch64 depends\n{ 0:X1=x; 0:X3=y; }\n P0 ;\n LDR W0,[X1] ;\n STR W0,[X3] ;\nexists (0:X0=1)\n",
    );
    write(
        "exchange",
        "RISCV exchange\n{ 0:x6=x; }\n P0 ;\n amoswap.w.aq x7,x5,(x6) ;\nexists (0:x7=1)\n",
    );
    write("c", "C c\n{}\nP0 (atomic_int* x) { int r = atomic_load(x); }\nexists (0:r=1)\n");
    let others = run(&[&tso, "--interface", &own, "-D", "fences=1", "--operations", "3"]);
    assert_eq!(others.code, 0, "{}", others.stderr);
    for (name, outcomes) in [("riscv", 4), ("riscv-fences", 3), ("aarch64", 3)] {
        let test = of(&others.json, name);
        assert_eq!(
            (test["shown"].as_array().unwrap().len(), &test["shown"]),
            (outcomes, &test["allowed"]),
            "{test}"
        );
    }
    let two = run(&[
        arcx.as_str(),
        "--interface",
        &interface,
        "-D",
        "memcommands_size=2",
        "-D",
        "max_operation_id=1",
        "-D",
        "byte_size=1",
    ]);
    assert_eq!(
        of(&two.json, "aarch64")["forbidden_but_shown"],
        serde_json::json!(["1:X0=1; 1:X2=0;"])
    );
    for (name, why) in [
        ("riscv-other", "no such program"),
        ("depends", "it has dependencies"),
        ("exchange", "no such program"),
        ("c", "tests in C cannot be run"),
    ] {
        assert!(
            of(&others.json, name)["not_asked"].as_str().unwrap().contains(why),
            "{name}: {}",
            of(&others.json, name)
        );
    }
    let under_sc = run(&[&tso, "--interface", &own, "--model", "sc"]);
    assert_eq!(
        (under_sc.code, of(&under_sc.json, "SB")["forbidden_but_shown"].as_array().unwrap().len()),
        (1, 1)
    );
}

/// Without `--against` a machine that conforms to some model is no failure, and one that conforms
/// to none is.
#[test]
fn the_exit_code_of_a_table_shows_a_machine_that_conforms_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let interface = path("machine.interface");
    std::fs::write(&interface, "initial 0; load load(p, a, v); store store(p, a, v);\n").unwrap();
    let run = |labels: &[&str], more: &[&str]| {
        let machine = path("machine.aut");
        let edges = labels
            .iter()
            .enumerate()
            .map(|(i, l)| format!("({i},\"{l}\",{})\n", i + 1))
            .collect::<String>();
        std::fs::write(&machine, format!("des (0,{},{})\n{edges}", labels.len(), labels.len() + 1))
            .unwrap();
        mu_check(
            &[&["conform", &machine, "--interface", &interface, "--operations", "3"][..], more]
                .concat(),
        )
    };
    let right = ["store(0, 0, 1)", "load(0, 0, 1)"];
    let wrong = ["load(0, 0, 1)", "store(0, 0, 1)"];
    for (labels, code) in [(right, 0), (wrong, 1)] {
        let outcome = run(&labels, &[]);
        assert_eq!(outcome.code, code, "{}{}", outcome.json, outcome.stderr);
        assert_eq!(run(&labels, &["--against", "sc"]).code, code);
    }
    // A second processor sees two stores in the other order: only weak models allow it.
    let weak = ["store(0, 0, 1)", "store(0, 1, 1)", "load(1, 1, 1)", "load(1, 0, 0)"];
    assert_eq!((run(&weak, &[]).code, run(&weak, &["--against", "sc"]).code), (0, 1));
}

#[test]
fn limits_give_unknown_and_bad_input_is_refused() {
    let tso = package("specs/machines/tso.spec");
    let limited = mu_check(&[
        "conform",
        &tso,
        "--interface",
        &package(OWN),
        "--max-states",
        "100",
        "--against",
        "tso",
    ]);
    assert_eq!((limited.code, limited.json["models"][0]["verdict"].as_str()), (3, Some("unknown")));
    // What was found stays true: the part of the machine that was seen shows it.
    let limited = mu_check(&[
        "conform",
        &tso,
        "--interface",
        &package(OWN),
        "--max-states",
        "2000",
        "--against",
        "sc",
    ]);
    assert_eq!(
        (limited.code, limited.json["models"][0]["test"].as_str()),
        (1, Some("W x 1; R y 0 || W y 1; R x 0"))
    );
    for (words, message) in [
        (&["--against", "none"][..], "`none` is not a memory model"),
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
        wrong.code == 2
            && wrong
                .stderr
                .contains("arcx.interface:8:6: error: the model has no action `start_load`"),
        "{}",
        wrong.stderr
    );
}

/// A machine that waits for a program gets the most general one. Where it cannot be known which,
/// the machine is refused with the text of a program to add; with it, it is answered.
#[test]
fn a_machine_that_waits_for_a_program_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.spec").display().to_string();
    let own = package(OWN);
    let waits = specification("sc")
        .replace("-> load,", "| do_load -> load,")
        .replace("load, store, c_read", "load, store, do_load, do_store, do_too, do_two, c_read")
        .replace("-> store,", "| do_store -> store,");
    let run = || mu_check(&["conform", &path, "--interface", &own, "--against", "sc"]);
    let without = mu_check(&[
        "conform",
        &package("specs/machines/sc.spec"),
        "--interface",
        &own,
        "--against",
        "sc",
    ]);
    assert!(without.json.get("program").is_none());
    // The communications determine its actions.
    std::fs::write(&path, &waits).unwrap();
    let outcome = run();
    let program = outcome.json["program"].as_str().unwrap_or_else(|| panic!("{}", outcome.stderr));
    assert!(
        program.contains("(n < 2 && v != v0) -> do_store(p, a, v)")
            && program.contains("-> do_load(p, a, v)"),
        "{program}"
    );
    assert_eq!(
        (outcome.code, &outcome.json["executions"]),
        (0, &without.json["executions"]),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.json["programs"], without.json["programs"]);
    // If no component does two actions, the one of the program is unknown.
    std::fs::write(
        &path,
        waits
            .replace("| do_load ->", "| do_load | do_too ->")
            .replace("| do_store ->", "| do_store | do_two ->"),
    )
    .unwrap();
    let outcome = run();
    assert_eq!(outcome.code, 2);
    let load = "(sum x1: Processor, x2: Address, x3: Value . do_load(x1, x2, x3) . Program)";
    assert!(
        outcome.stderr.contains("no label of the machine is a memory operation")
            && outcome.stderr.contains(load),
        "{}",
        outcome.stderr
    );
    let program = outcome
        .stderr
        .lines()
        .find_map(|l| l.trim().strip_prefix("note: proc Program = "))
        .unwrap()
        .to_string();
    let program =
        program.replace("update", "load").split(" + ").take(2).collect::<Vec<_>>().join(" + ");
    let text = waits.replace("init allow", &format!("proc Program = {program};\ninit allow"));
    std::fs::write(
        &path,
        text.replace(" || \" { Core", " || \" { Program || Core")
            .replace("join \"\" { Core(p${i}) ||", "join \"\" { Core(p${i}) || Program ||"),
    )
    .unwrap();
    let outcome = run();
    assert_eq!(
        (outcome.code, &outcome.json["executions"]),
        (0, &without.json["executions"]),
        "{}",
        outcome.stderr
    );
    assert!(outcome.json.get("program").is_none());
    let refused = mu_check(&["conform", &package("specs/x86/dekker.asm"), "--interface", &own]);
    assert!(
        refused.code == 2
            && refused
                .stderr
                .contains("is a program, but `conform` checks a machine with every program"),
        "{}",
        refused.stderr
    );
}

/// A machine that fetches instructions and numbers them without end; what `program` lines say it
/// runs, up to the bound.
const FETCHES: &str = "sort P = struct p0 | p1; A = struct x | y; V = struct v0 | v1 | v2; Instruction = struct ld(A) | st(A, V);
act issue, fetch, fetched: P # Instruction; answer, take, taken: P # V; lonely: P;
    load, c_read, m_read, store, c_write, m_write: P # A # V # Nat;
proc Core(p: P, n: Nat) =
    (sum a: A . fetch(p, ld(a)) . sum v: V . c_read(p, a, v, n) . answer(p, v) . Core(p, n + 1))
  + (sum a: A, v: V . fetch(p, st(a, v)) . c_write(p, a, v, n) . Core(p, n + 1));
proc Memory(m: A -> V) =
    (sum p: P, a: A, n: Nat . m_read(p, a, m(a), n) . Memory(m)) + (sum p: P, a: A, v: V, n: Nat . m_write(p, a, v, n) . Memory(m[a -> v]));
proc System = allow({fetched, taken, load, store},
  comm({issue | fetch -> fetched, answer | take -> taken, c_read | m_read -> load, c_write | m_write -> store},
    Core(p0, 0) || Core(p1, 0) || Memory(lambda a: A . v0)));
init System;
";

#[test]
fn program_lines_say_what_the_most_general_program_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (machine, interface) = (path("machine.spec"), path("machine.interface"));
    let labels = "initial v0; load load(p, a, v, n); store store(p, a, v, n);\n";
    let lines = "program load issue(p, \"ld(a)\") -> take(p, v); program store issue(p, \"st(a, v)\"); internal fetched, taken;";
    let run = |text: &str, more: &str| {
        std::fs::write(&machine, text).unwrap();
        std::fs::write(&interface, format!("{labels}{more}")).unwrap();
        mu_check(&[
            "conform",
            &machine,
            "--interface",
            &interface,
            "--against",
            "sc",
            "--against",
            "cache",
            "--operations",
            "2",
        ])
    };
    let own = package(OWN);
    let expected = |defines: &[&str]| {
        let mut words = vec![
            "conform".to_string(),
            package("specs/machines/sc.spec"),
            "--interface".into(),
            own.clone(),
        ];
        words.extend(defines.iter().flat_map(|d| ["-D".to_string(), d.to_string()]));
        words.extend(["--against", "sc"].map(String::from));
        let json = mu_check(&words).json;
        (json["executions"].clone(), json["programs"].clone())
    };
    let of_numbers = FETCHES
        .replace("sort P = struct p0 | p1;", "sort P = Nat;")
        .replace("Core(p0, 0) || Core(p1, 0)", "Core(0, 0) || Core(1, 0)");
    for (text, more, defines) in [
        (FETCHES, String::new(), &[][..]),
        (FETCHES, "values v2;".into(), &["values=1"]),
        (FETCHES, "addresses y;".into(), &["addresses=1"]),
        (&of_numbers, "processors 0, 1;".into(), &[]),
    ] {
        let outcome = run(text, &format!("{lines} {more}"));
        assert_eq!(
            (outcome.code, outcome.json["stop"].as_str()),
            (0, Some("complete")),
            "{more}: {}",
            outcome.stderr
        );
        assert_eq!(
            (outcome.json["executions"].clone(), outcome.json["programs"].clone()),
            expected(defines),
            "{more}"
        );
    }
    // A broken machine is found, and its run goes through the program.
    let broken = run(&FETCHES.replace("Memory(m[a -> v])", "Memory(m)"), lines);
    assert_eq!(
        (broken.code, broken.json["models"][0]["test"].as_str()),
        (1, Some("W x 1; R x 0")),
        "{}",
        broken.stderr
    );
    let fetched = |l: &Value| l.as_str().unwrap().starts_with("fetched(p");
    assert!(
        broken.json["models"][0]["run"].as_array().unwrap().iter().any(fetched),
        "{}",
        broken.json["models"][0]["run"]
    );
    // Litmus tests on it.
    let test = path("SB.litmus");
    let code = "P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;";
    std::fs::write(
        &test,
        format!("X86 SB\n{{ x=0; y=0; }}\n {code}\nexists (0:EAX=0 /\\ 1:EAX=0)\n"),
    )
    .unwrap();
    run(FETCHES, lines);
    let shown = mu_check(&[
        "litmus",
        &test,
        "--machine",
        &machine,
        "--interface",
        &interface,
        "--model",
        "sc",
        "--operations",
        "2",
    ]);
    assert_eq!(
        (shown.code, shown.json["tests"][0]["shown"].as_array().map(Vec::len)),
        (0, Some(3)),
        "{}",
        shown.stderr
    );
    for (text, more, message) in [
        (FETCHES, "program load fetch(p, \"ld(a)\");", "the machine performs `fetch` itself"),
        (FETCHES, "program load nothing(p);", "the model has no action `nothing`"),
        (FETCHES, "program load issue(p);", "`issue` has 2 arguments in the model, 1 here"),
        (FETCHES, "program load lonely(p);", "no `comm` of the machine contains `lonely`"),
        (
            FETCHES,
            "program load issue(p, \"ld(b)\");",
            "`ld(b)` is not an expression of the sort Instruction",
        ),
        (
            FETCHES,
            "program load issue(p, \"ld(w)\");",
            "argument 1 of `ld` has sort V, where A is expected",
        ),
        (&of_numbers, lines, "the processors are unknown"),
        (
            &FETCHES.replace(
                "init System;",
                "init System || comm({issue | fetch -> fetched}, Core(p0, 0));",
            ),
            lines,
            "in more than one `comm`",
        ),
        (
            &FETCHES.replace("init System;", "init System || System;"),
            lines,
            "in more than one `comm`",
        ),
    ] {
        let outcome = run(text, more);
        assert!(
            outcome.code == 2 && outcome.stderr.contains(message),
            "{more}: {}",
            outcome.stderr
        );
    }
    let aut = path("machine.aut");
    std::fs::write(&aut, "des (0,1,2)\n(0,\"load(p0, x, v0, 0)\",1)\n").unwrap();
    let outcome = mu_check(&["conform", &aut, "--interface", &interface]);
    assert!(
        outcome.code == 2
            && outcome.stderr.contains("a program can only be added to a specification"),
        "{}",
        outcome.stderr
    );
}

/// Returns the conformance of a machine with its seeded faults.
fn with_faults(
    machine: &str,
    interface: &str,
    model: &str,
    more: &[&str],
) -> crate::support::Outcome {
    let (spec, faults) =
        (package(&format!("specs/{machine}.spec")), package(&format!("specs/{machine}.faults")));
    let mut words = vec!["conform", &spec, "--fault", &faults];
    let interface = package(interface);
    words.extend(["--interface", &interface]);
    if !model.is_empty() {
        words.extend(["--against", model]);
    }
    words.extend(more);
    mu_check(&words)
}

/// A suite finds the faults by another route: `litmus --machine` shows a forbidden outcome on each
/// faulty machine and none on the right one.
#[test]
fn a_suite_finds_each_seeded_fault() {
    let folder = tempfile::tempdir().unwrap();
    for (machine, tests) in [("sc", 1), ("pso", 1)] {
        let suite = folder.path().join(machine).display().to_string();
        let outcome = with_faults(
            &format!("machines/{machine}"),
            OWN,
            machine,
            &["--operations", "3", "--suite", &suite],
        );
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let faults = outcome.json["faults"].as_array().unwrap();
        let suite_json = &outcome.json["suite"];
        assert_eq!(
            (suite_json["tests"].as_array().unwrap().len(), &suite_json["least"]),
            (tests, &Value::from(true)),
            "{machine}"
        );
        let readme = std::fs::read_to_string(format!("{suite}/README.md")).unwrap();
        let under_model = mu_check(&["litmus", &suite, "--model", machine]);
        assert_eq!(
            (under_model.code, &under_model.json["summary"]["no"]),
            (0, &Value::from(0)),
            "{}",
            under_model.stderr
        );
        let on = |spec: &str| {
            let own = package(OWN);
            mu_check(&[
                "litmus",
                &suite,
                "--machine",
                spec,
                "--interface",
                &own,
                "--operations",
                "3",
                "--model",
                machine,
            ])
        };
        assert_eq!(on(&package(&format!("specs/machines/{machine}.spec"))).code, 0);
        let text =
            std::fs::read_to_string(package(&format!("specs/machines/{machine}.faults"))).unwrap();
        let list = MachineFault::parse(mu_check::base::SourceId::FIRST, &text).unwrap();
        assert_eq!(list.len(), faults.len());
        for (fault, model_result) in list.iter().zip(faults) {
            assert!(
                model_result["confirmed"]["replay"] == true
                    && model_result["confirmed"]["litmus"] == true,
                "{model_result}"
            );
            assert!(
                readme.contains(&format!(
                    "| {} | {} | {machine}-0",
                    fault.name, model_result["operations"]
                )),
                "{readme}"
            );
            let faulty = folder.path().join("faulty.spec").display().to_string();
            std::fs::write(&faulty, fault.apply(&specification(machine)).unwrap()).unwrap();
            assert_eq!(on(&faulty).code, 1, "{machine}: {}", fault.name);
        }
    }
}

#[test]
fn faulty_machines_are_given_as_files_and_what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    std::fs::create_dir(path("faulty")).unwrap();
    let right = specification("sc");
    // A fault, and a machine that is right: it is not found, so the exit code is 1.
    write(
        "faulty/a.spec",
        &right.replace("c_read(p, a, v) . Core(p)", "(c_read(p, a, v) + load(p, a, v0)) . Core(p)"),
    );
    write("faulty/b.spec", &right);
    let (sc, own) = (package("specs/machines/sc.spec"), package(OWN));
    let run = |more: &[&str]| {
        let mut words = vec!["conform", &sc, "--interface", &own];
        words.extend(more);
        mu_check(&words)
    };
    std::fs::create_dir(path("notes")).unwrap();
    write("notes/README.md", "my notes");
    let suite = |to: &str| run(&["--fault", &path("faulty"), "--against", "sc", "--suite", to]);
    assert!(suite(&path("notes")).stderr.contains("would be overwritten"));
    assert_eq!(std::fs::read_to_string(path("notes/README.md")).unwrap(), "my notes");
    let outcome = suite(&path("suite"));
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let faults = outcome.json["faults"].as_array().unwrap();
    assert_eq!(
        (faults[0]["name"].as_str(), faults[0]["test"].as_str()),
        (Some("a"), Some("W x 1; R x 0"))
    );
    assert_eq!((faults[1]["name"].as_str(), &faults[1]["test"]), (Some("b"), &Value::Null));
    assert!(
        std::fs::read_to_string(path("suite/README.md"))
            .unwrap()
            .contains("| b | – |  | not found within the bound |")
    );
    // Without `--against` all models to which the machine conforms find a fault.
    let all = run(&["--fault", &path("faulty/a.spec")]);
    assert_eq!(
        (all.code, all.json["faults"][0]["models"].as_array().unwrap().len()),
        (0, KNOWN.len())
    );
    // A machine that does not conform is reported itself.
    let tso = package("specs/machines/tso.spec");
    let broken = mu_check(&[
        "conform",
        &tso,
        "--interface",
        &own,
        "--against",
        "sc",
        "--fault",
        &path("faulty"),
    ]);
    assert_eq!((broken.code, &broken.json["faults"]), (1, &Value::Null));
    for (text, message) in [
        (
            "fault \"f\"; replace \"nowhere\" with \"x\";",
            "1:20: error: this text occurs 0 times in the machine, not once",
        ),
        ("fault \"f\"; replace \"Core\" with \"x\";", "times in the machine, not once"),
        ("fault \"f\";", "1:7: error: the fault has no edits"),
        ("replace \"a\" with \"b\";", "`replace` occurs before the first fault"),
        ("fault \"f\"; replace \"a\" by \"b\";", "expected `with` and a text in quotes"),
        ("fault \"f\"; replace \"\" with \"b\";", "an empty text cannot be replaced"),
        ("// nothing", "the file contains no faults"),
        ("fault f;", "expected the name of the fault, in quotes"),
        ("fault \"f\"; remove \"a\";", "unknown keyword `remove`"),
        (
            "fault \"f\"; replace \"a, v) . Core(p)\n  + (sum a: Address, v: Value. (v\" with \"b\"; fault \"f\";",
            "two faults have the name \"f\"",
        ),
        ("fault \"f\"; replace \"init allow\" with \"init allowed\";", "with the fault \"f\""),
    ] {
        write("wrong.faults", text);
        let outcome = run(&["--fault", &path("wrong.faults"), "--against", "sc"]);
        assert!(
            outcome.code == 2 && outcome.stderr.contains(message),
            "{text}: {}",
            outcome.stderr
        );
    }
    for (more, message) in [
        (&["--suite", "x"][..], "--fault"),
        (&["--suite", "x", "--fault", "y.spec"], "`--suite` is for one memory model"),
        (&["--fault", "missing.spec"], "missing.spec"),
    ] {
        let outcome = run(more);
        assert!(outcome.code == 2 && outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    // What parameters change is not taken for the fault.
    write(
        "parameter.faults",
        "fault \"f\"; define slots = 2; replace \"(!holds(b, a)) -> c_read\" with \"true -> c_read\";",
    );
    let outcome = mu_check(&[
        "conform",
        &tso,
        "--interface",
        &own,
        "--against",
        "tso",
        "--fault",
        &path("parameter.faults"),
    ]);
    assert_eq!(
        (outcome.code, outcome.json["faults"][0]["test"].as_str()),
        (0, Some("W x 1; R x 0")),
        "{}",
        outcome.stderr
    );
    let arcx = [package("specs/arcx.spec"), "--interface".into(), package("specs/arcx.interface")];
    write(
        "slots.faults",
        "fault \"f\"; define memcommands_size = 2; replace \"P_Observe_All(m_mem_set(m, a, d), \" with \"P_Observe_All(m, \";",
    );
    let mut words = vec!["conform".to_string()];
    words.extend(arcx);
    words.extend(
        [
            "-D",
            "max_operation_id=1",
            "-D",
            "byte_size=1",
            "--against",
            "tso",
            "--fault",
            &path("slots.faults"),
        ]
        .map(String::from),
    );
    let outcome = mu_check(&words);
    let message = "with memcommands_size=2 the machine without the fault does not conform either";
    assert!(outcome.code == 2 && outcome.stderr.contains(message), "{}", outcome.stderr);
}

/// ARCx: a few of its faults, with the smallest tests; its formulas detect the same faults.
#[test]
fn faults_of_arcx_are_found() {
    let text = std::fs::read_to_string(package("specs/arcx.faults")).unwrap();
    let list = MachineFault::parse(mu_check::base::SourceId::FIRST, &text).unwrap();
    let arcx = std::fs::read_to_string(package("specs/arcx.spec")).unwrap();
    let mut shared = 0;
    for fault in &list {
        let faulty = fault.apply(&arcx).unwrap();
        if let Some(known) =
            faults::FAULTS.iter().chain(faults::RELEASE_FAULTS).find(|f| f.name == fault.name)
        {
            assert_eq!(faulty, faults::patch(&arcx, known.edits), "{}", fault.name);
            shared += 1;
        }
    }
    assert_eq!((list.len(), shared), (25, 6));
    let folder = tempfile::tempdir().unwrap();
    let few = folder.path().join("few.faults").display().to_string();
    let of = |name: &str| {
        let from = text.find(&format!("fault \"{name}\"")).unwrap();
        let to = text[from + 1..].find("\nfault ").map_or(text.len(), |i| from + 1 + i);
        text[from..to].to_string()
    };
    let expected = [
        ("addresses_alias", 1, "R x 1 || W y 1"),
        ("load_passes_buffer", 2, "W x 1; R x 0"),
        ("a load clears what it reads", 2, "R x 1; R x 0 || W x 1"),
        (
            "commands of a core to different addresses change places",
            2,
            "R x 1; R y 0 || W y 1; W x 1",
        ),
    ];
    std::fs::write(&few, expected.iter().map(|e| of(e.0)).collect::<String>()).unwrap();
    let (spec, interface) = (package("specs/arcx.spec"), package("specs/arcx.interface"));
    let small =
        ["-D", "max_operation_id=1", "-D", "byte_size=1", "--against", "tso", "--fault", &few];
    let outcome = mu_check(&[&["conform", &spec, "--interface", &interface][..], &small].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for ((name, operations, test), model_result) in
        expected.iter().zip(outcome.json["faults"].as_array().unwrap())
    {
        assert_eq!(
            (
                model_result["name"].as_str(),
                &model_result["operations"],
                model_result["test"].as_str()
            ),
            (Some(*name), &Value::from(*operations), Some(*test))
        );
    }
}

/// Theorem 3 of the study, in its own direction: where the formulas of listings 3.1 to 3.5 hold,
/// each processor has a serial view of its operations and all writes.
fn theorem_3(names: &[&str], byte_size: u32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.spec").display().to_string();
    let arcx = std::fs::read_to_string(package("specs/arcx.spec")).unwrap();
    let forms =
        [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(commands, slots)| (arcx.clone(), commands, slots));
    let faults = std::fs::read_to_string(package("specs/arcx.faults")).unwrap();
    let faults = MachineFault::parse(mu_check::base::SourceId::FIRST, &faults).unwrap();
    let faulty = faults
        .iter()
        .filter(|f| f.defines.is_empty() && (names.is_empty() || names.contains(&f.name.as_str())))
        .map(|f| (f.apply(&arcx).unwrap(), 1, 1));
    let formulas = ["1a.gos", "1b.gos", "1c.gos", "1d.gos", "2.selfobserving"]
        .map(|f| package(&format!("formulas/{f}.mcf")));
    let (interface, local) = (package("specs/arcx.interface"), package("specs/memory/local.views"));
    let (mut visited, mut others) = (0, 0);
    for (text, commands, slots) in forms.into_iter().chain(faulty) {
        std::fs::write(&path, &text).unwrap();
        let defines = [
            ("max_operation_id", 1),
            ("byte_size", byte_size),
            ("memcommands_size", commands),
            ("nr_wb_buffers", slots),
        ];
        let defines: Vec<String> =
            defines.iter().flat_map(|(n, v)| ["-D".to_string(), format!("{n}={v}")]).collect();
        let mut words = vec!["check".to_string(), path.clone()];
        words.extend(formulas.iter().chain(&defines).cloned());
        let checked = mu_check(&words);
        let holds =
            checked.json["results"].as_array().unwrap().iter().all(|r| r["verdict"] == "true");
        assert_eq!(checked.code, i32::from(!holds), "{}", checked.stderr);
        let mut words = ["conform", &path, "--interface", &interface, "--against", &local]
            .map(String::from)
            .to_vec();
        words.extend(defines.clone());
        let outcome = mu_check(&words);
        assert!(
            !holds || outcome.json["models"][0]["verdict"] == "true",
            "{defines:?}: {}",
            outcome.json["models"][0]
        );
        *if holds { &mut visited } else { &mut others } += 1;
    }
    assert!(visited > 2 && others > 2, "{visited} {others}");
}

#[test]
fn formulas_of_theorem_3_give_local_views() {
    let hold = [
        "a store overwrites one that waits",
        "commands of a core to different addresses change places",
        "each core has a memory, which changes when the core observes",
    ];
    theorem_3(&[&hold[..], &["load_passes_buffer", "addresses_alias"]].concat(), 1);
}

/// Some minutes.
#[test]
#[ignore]
fn formulas_of_theorem_3_give_local_views_with_all_faults() {
    theorem_3(&[], 2);
}

/// All seeded faults, each with its smallest test: `results/conform.sh faults` prints them. About
/// two minutes in the test profile.
#[test]
#[ignore]
fn all_faults_are_found() {
    let mut count = 0;
    let arcx = ["-D", "max_operation_id=1", "--operations", "3"];
    for (machine, interface, model, more) in [
        ("machines/sc", OWN, "sc", &["--operations", "3"][..]),
        ("machines/tso", OWN, "tso", &["--operations", "3"]),
        ("machines/pso", OWN, "pso", &["--operations", "3"]),
        ("machines/msi", MSI, "sc", &["--operations", "4"]),
        ("arcx", "specs/arcx.interface", "", &arcx),
    ] {
        let outcome = with_faults(machine, interface, model, more);
        assert_eq!(outcome.code, 0, "{machine}: {}", outcome.stderr);
        count += outcome.json["faults"].as_array().unwrap().len();
    }
    assert!(count >= 40, "{count} faults");
}
