//! `check -D max_operation_id=any` on the ARCx model: true formulas are true for every number of
//! operations; each seeded fault is found, with the least number of operations that shows it. The
//! same for every number of values and of addresses.

use crate::support::faults::{FAULTS, FORMULAS, SMALL, STORED, narrow, patch};
use crate::support::{defines, mu_check, package};
use mu_check::base::SourceMap;
use mu_check::syntax::template;

fn specification() -> String {
    std::fs::read_to_string(package("specs/arcx.spec")).unwrap()
}

/// Returns the results of formulas for every number of operations, with other parameters as in
/// [`SMALL`] where `changes` does not say otherwise.
fn results(
    specification: &str,
    changes: &[(&'static str, u32)],
    formulas: &[&str],
) -> Vec<serde_json::Value> {
    let folder = tempfile::tempdir().unwrap();
    let (model, arguments) = write_specification(folder.path(), specification, formulas);
    with_any(&["max_operation_id"], &model, arguments, changes, formulas.len())
}

/// Returns a specification in a folder, and the beginning of a command that checks formulas of it;
/// cache consistency without stores that never occur.
fn write_specification(
    folder: &std::path::Path,
    specification: &str,
    formulas: &[&str],
) -> (std::path::PathBuf, Vec<String>) {
    write_specification_with(folder, specification, formulas, STORED)
}

/// Does the same, with cache consistency of these instances only.
fn write_specification_with(
    folder: &std::path::Path,
    specification: &str,
    formulas: &[&str],
    instances: &str,
) -> (std::path::PathBuf, Vec<String>) {
    let model = folder.join("model.spec");
    std::fs::write(&model, specification).unwrap();
    let mut arguments = vec!["check".to_string(), model.display().to_string()];
    for f in formulas {
        let path = package(&format!("formulas/{f}.mcf"));
        if !f.ends_with("3.cacheconsistency") {
            arguments.push(path);
            continue;
        }
        let narrowed = folder.join(format!("{}.mcf", f.replace('/', ".")));
        std::fs::write(&narrowed, narrow(&std::fs::read_to_string(path).unwrap(), instances))
            .unwrap();
        arguments.push(narrowed.display().to_string());
    }
    (model, arguments)
}

/// Returns the results of a command, with any value for these parameters.
fn with_any(
    any: &[&str],
    model: &std::path::Path,
    mut arguments: Vec<String>,
    changes: &[(&'static str, u32)],
    formulas: usize,
) -> Vec<serde_json::Value> {
    let values: Vec<(&str, u32)> =
        SMALL.iter().map(|s| *changes.iter().rev().find(|c| c.0 == s.0).unwrap_or(s)).collect();
    let values: Vec<(&str, u32)> = values.into_iter().filter(|v| !any.contains(&v.0)).collect();
    arguments.extend(defines(&values));
    any.iter().for_each(|name| arguments.extend(["-D".into(), format!("{name}=any")]));
    let outcome = mu_check(&arguments);
    let results = outcome.json["results"]
        .as_array()
        .unwrap_or_else(|| panic!("{}: {}", model.display(), outcome.stderr))
        .clone();
    assert_eq!(results.len(), formulas, "{}", outcome.stderr);
    results
}

#[test]
fn local_consistency_holds_for_every_number_of_operations() {
    for result in results(&specification(), &[], &FORMULAS[..5]) {
        assert_eq!(
            (&result["verdict"], &result["for"]),
            (&"true".into(), &"max_operation_id = any".into()),
            "{result}"
        );
    }
}

/// A memory that queues two commands: its steps read up to five numbers. A store may be carried out
/// after a later load then, which 1a forbids.
#[test]
fn memories_that_queue_commands_are_decided_for_every_number_of_operations() {
    let results = results(&specification(), &[("memcommands_size", 2)], &FORMULAS[..5]);
    let found: Vec<(&str, &str)> = results
        .iter()
        .map(|r| (r["verdict"].as_str().unwrap(), r["for"].as_str().unwrap()))
        .collect();
    assert_eq!(found[0], ("false", "max_operation_id = 1"));
    assert!(found[1..].iter().all(|f| *f == ("true", "max_operation_id = any")), "{found:?}");
}

/// A least fixed point: programs end for every number of operations.
#[test]
fn cache_consistency_holds_for_every_number_of_operations() {
    let result = &results(&specification(), &[], &FORMULAS[5..])[0];
    assert_eq!(
        (&result["verdict"], &result["for"]),
        (&"true".into(), &"max_operation_id = any".into()),
        "{result}"
    );
    // The proof that runs end: each core's number of operations grows below the bound.
    let measures = result["measures"].as_array().unwrap();
    let components: Vec<&str> = measures.iter().filter_map(|m| m["component"].as_str()).collect();
    assert_eq!(
        components,
        ["P_IP(c_processor_core_0_id)", "P_IP(c_processor_core_1_id)"],
        "{result}"
    );
    assert!(
        measures.iter().all(|m| m["below"] == "max_operation_id" && m["summands"] == 2),
        "{result}"
    );
}

/// Sets of states give the verdicts and counts of single states, of least fixed points too.
#[test]
fn the_symbolic_engine_agrees_for_every_number_of_operations() {
    let folder = tempfile::tempdir().unwrap();
    let (_, arguments) =
        write_specification(folder.path(), &specification(), &["1a.gos", "1c.gos"]);
    let ends = ["-f".to_string(), "mu X. [true] X".into()];
    let sizes = ["address_size=1", "byte_size=1", "max_operation_id=any"]
        .map(|d| ["-D".to_string(), d.into()])
        .concat();
    let arguments = [&arguments[..], &ends, &sizes].concat();
    let figures = |outcome: crate::support::Outcome, engine: &str| -> Vec<serde_json::Value> {
        let results = outcome.json["results"]
            .as_array()
            .unwrap_or_else(|| panic!("{}", outcome.stderr))
            .clone();
        assert!(
            results.iter().all(|r| r["verdict"] == "true" && r["engine"] == engine),
            "{results:?}"
        );
        results
            .iter()
            .flat_map(|r| ["equations", "cases", "measures"].map(|k| r[k].clone()))
            .collect()
    };
    let engine = ["--engine".to_string(), "symbolic".into()];
    let sets = figures(mu_check(&[&arguments[..], &engine].concat()), "symbolic");
    assert_eq!(figures(mu_check(&arguments), "explicit"), sets);
}

/// Where no engine is chosen, sets of states take over from single states that grow many, to the
/// same figures; `--engine explicit` goes on with single states.
#[test]
fn engines_take_turns_for_every_number_of_operations() {
    let arguments = [
        "check".into(),
        package("specs/arcx.spec"),
        package("formulas/1c.gos.mcf"),
        "-D".into(),
        "max_operation_id=any".into(),
    ];
    let figures = |chosen: &[&str], by: &str| {
        let outcome = mu_check(
            &[&arguments[..], &chosen.iter().map(|c| c.to_string()).collect::<Vec<_>>()].concat(),
        );
        let result = &outcome.json["results"][0];
        assert_eq!(
            (&result["verdict"], &result["engine"]),
            (&"true".into(), &by.into()),
            "{chosen:?}: {}",
            outcome.stderr
        );
        ["states", "equations", "cases"].map(|key| result[key].clone())
    };
    let sets = figures(&["--engine", "symbolic"], "symbolic");
    assert_eq!(figures(&[], "symbolic"), sets);
    assert_eq!(figures(&["--engine", "explicit"], "explicit"), sets);
}

/// Components of any number are checked against instances with few and with many of them.
#[test]
fn components_of_any_number_are_sampled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring.spec");
    let text = "$param n: Pos = 2;
        sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
        act ask, grant, start, leave, free, stop: I;
        proc P(id: I, k: Nat) = (k == 0) -> ask(id) . P(id, 1) + (k == 1) -> leave(id) . P(id, 0);
        proc Gate(h: I) = sum p: I. (h == nobody) -> grant(p) . Gate(p) + (h != nobody) -> free(h) . Gate(nobody);
        init allow({start, stop}, comm({ask | grant -> start, leave | free -> stop},
          $for i in 0 .. n join \"\" { P(i${i}, 0) || } Gate(nobody)));";
    std::fs::write(&path, text).unwrap();
    let formula = "forall p, q: I. [true* . start(p) . (!stop(p))* . start(q)] false";
    let outcome = mu_check(&["check", &path.display().to_string(), "-f", formula, "-D", "n=any"]);
    let result = &outcome.json["results"][0];
    assert_eq!(result["verdict"], "true", "{}", outcome.stderr);
    let checked = &result["checked"];
    assert!(
        checked["samples"].as_u64().is_some_and(|n| n > 10) && checked["unchecked"].is_null(),
        "{checked}"
    );
}

/// An obstacle to the answer for all values is reported with its place; a value for which the
/// formula is false is found all the same.
#[test]
fn a_parameter_that_cannot_have_any_value_is_unknown_and_not_an_error() {
    let model = package("specs/arcx.spec");
    let run = |formula: &str, defines: &[&str]| {
        let mut arguments =
            vec!["check".to_string(), model.clone(), package(&format!("formulas/{formula}.mcf"))];
        arguments.extend(defines.iter().flat_map(|d| ["-D".to_string(), d.to_string()]));
        mu_check(&arguments)
    };
    let small = ["address_size=1", "byte_size=1", "max_operation_id=0"];
    for (any, line, why) in [
        ("nr_wb_buffers=any", 74, "`$for` needs a value"),
        ("memcommands_size=any", 424, "is a size here"),
    ] {
        let outcome = run("1c.gos", &[&small[..], &[any]].concat());
        let result = &outcome.json["results"][0];
        assert_eq!(
            (outcome.code, &result["verdict"]),
            (3, &"unknown".into()),
            "{any}: {}",
            outcome.stderr
        );
        assert!(result["reason"].as_str().unwrap().contains(why), "{any}: {result}");
        assert!(
            outcome.stderr.contains(&format!("arcx.spec:{line}:")),
            "{any}: {}",
            outcome.stderr
        );
    }
    let outcome = run(
        "1a.gos",
        &[
            "address_size=1",
            "byte_size=2",
            "max_operation_id=1",
            "memcommands_size=2",
            "num_cores=any",
        ],
    );
    let result = &outcome.json["results"][0];
    assert_eq!(
        (outcome.code, &result["verdict"], &result["for"]),
        (1, &"false".into(), &"num_cores = 1".into()),
        "{result}"
    );
}

/// Others than the cores that a formula names are known by their local states only, which is enough
/// here; also together with any number of operations.
#[test]
fn local_consistency_holds_for_every_number_of_cores() {
    let model = package("specs/arcx.spec");
    let mut arguments = vec!["check".to_string(), model.clone()];
    arguments.extend(FORMULAS[..5].iter().map(|f| package(&format!("formulas/{f}.mcf"))));
    for any in [&["num_cores"][..], &["num_cores", "max_operation_id"]] {
        for result in with_any(any, model.as_ref(), arguments.clone(), &[], 5) {
            assert_eq!(
                (&result["verdict"], &result["reason"]),
                (&"true".into(), &"regions".into()),
                "{result}"
            );
        }
    }
}

/// Cache consistency where the two cores that observe are the two that store.
const FEW: &str =
    "wib1 != c_data_undefined && wjb1 != c_data_undefined && pi != pj && wip1 == pi && wjp1 == pj";

/// A least fixed point: untracked components may always take steps in the abstraction, but each run
/// of each instance ends.
#[test]
fn runs_end_for_every_number_of_cores() {
    let folder = tempfile::tempdir().unwrap();
    let (model, mut arguments) =
        write_specification_with(folder.path(), &specification(), &FORMULAS[5..], FEW);
    arguments.extend(["-f".into(), "mu X. [true] X".into()]);
    let results =
        with_any(&["num_cores"], &model, arguments.clone(), &[("max_operation_id", 1)], 2);
    for result in &results {
        assert_eq!(
            (&result["verdict"], &result["reason"]),
            (&"true".into(), &"regions".into()),
            "{result}"
        );
        assert_eq!(
            (&result["lists"][0]["component"], &result["measures"]),
            (&"P_Memory".into(), &serde_json::Value::Null),
            "{result}"
        );
    }
    let any = ["num_cores", "max_operation_id", "byte_size", "address_size"];
    let ends =
        ["check".to_string(), package("specs/arcx.spec"), "-f".into(), "mu X. [true] X".into()];
    let result = &with_any(&any, &model, ends.to_vec(), &[], 1)[0];
    assert_eq!(
        (&result["verdict"], &result["for"].as_str().unwrap().split(", ").count()),
        (&"true".into(), &4),
        "{result}"
    );
    let measures = result["measures"].as_array().unwrap();
    assert_eq!(
        (measures.len(), &measures[0]["below"]),
        (1, &"max_operation_id".into()),
        "{result}"
    );
}

/// All runs of this end, since who has heard is in the list and leaves it; but that is forgotten.
const BEYOND: &str = "$param n: Pos = 2;
sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
map all: List(I); without: I # List(I) -> List(I);
var p, c: I; cs: List(I);
eqn all = [$for i in 0 .. n join \", \" { i${i} }];
    without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];
act put, get, puts, tell, told, hears: I; look;
proc P(id: I) = put(id) . Q(id) + told(id) . P(id);
     Q(id: I) = told(id) . Q(id);
     M(l: List(I)) = (l == []) -> sum p: I. get(p) . M(all) + (l != []) -> tell(head(l)) . R(head(l), l);
     R(h: I, l: List(I)) = look . M(without(h, l));
init allow({puts, hears, look}, comm({put | get -> puts, tell | told -> hears}, $for i in 0 .. n join \"\" { P(i${i}) || } M([])));";

#[test]
fn what_may_go_on_for_ever_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("beyond.spec");
    std::fs::write(&path, BEYOND).unwrap();
    let reason = |formula: &str| {
        let path = path.display().to_string();
        let outcome =
            mu_check(&["check", &path, "-f", formula, "-D", "n=any", "--max-states", "300"]);
        let result = &outcome.json["results"][0];
        assert_eq!(
            (outcome.code, &result["verdict"]),
            (3, &"unknown".into()),
            "{formula}: {}",
            outcome.stderr
        );
        result["reason"].as_str().unwrap().to_string()
    };
    assert!(reason("mu X. [true] X").contains("no proof that these steps end: `hears`, `look`"));
    assert!(
        reason("mu X. ([true*] X || [true] X)")
            .contains("a least fixed point is not below a modality that takes a step")
    );
    let greatest = ["check", &path.display().to_string(), "-f", "nu X. [true] X", "-D", "n=any"];
    assert_eq!(mu_check(&greatest).json["results"][0]["verdict"], "true");
}

/// The published formula: half a minute for one operation each, two for two.
#[test]
#[ignore = "some minutes"]
fn cache_consistency_holds_for_every_number_of_cores() {
    for operations in [0, 1] {
        let arguments = vec![
            "check".to_string(),
            package("specs/arcx.spec"),
            package("formulas/3.cacheconsistency.mcf"),
        ];
        let result = &with_any(
            &["num_cores"],
            "arcx".as_ref(),
            arguments,
            &[("max_operation_id", operations)],
            1,
        )[0];
        assert_eq!(
            (&result["verdict"], &result["reason"]),
            (&"true".into(), &"regions".into()),
            "{result}"
        );
    }
}

/// Formulas that are false for one, two, or three cores are not proved for every number: a third of
/// the seeded faults, and one that two cores do not show, since it makes only the first of the
/// other cores observe a store.
#[test]
fn no_fault_is_proved_absent_for_every_number_of_cores() {
    let (proved, wrong) = proved_of_faults(&FORMULAS[..5], 20_000, 3);
    assert!(proved > 15 && wrong > 3, "{proved} proved, {wrong} false");
}

/// The same for cache consistency. The faults that make it false need more states than these.
#[test]
fn no_fault_is_proved_cache_consistent_for_every_number_of_cores() {
    let (proved, _) = proved_of_faults(&FORMULAS[5..], 20_000, 3);
    assert!(proved > 0, "{proved} proved");
}

#[test]
#[ignore = "some minutes"]
fn no_fault_of_all_is_proved_absent_for_every_number_of_cores() {
    let (proved, wrong) = proved_of_faults(&FORMULAS[..5], 20_000, 1);
    assert!(proved > 50 && wrong > 10, "{proved} proved, {wrong} false");
    let (proved, wrong) = proved_of_faults(&FORMULAS[5..], 200_000, 1);
    assert!(proved > 8 && wrong > 2, "{proved} proved, {wrong} false");
}

/// Counts the formulas that are proved of every `step`-th fault, and those that are false for one,
/// two, or three cores, within a limit on states. No formula is both.
fn proved_of_faults(formulas: &[&str], limit: u64, step: usize) -> (usize, usize) {
    const SECOND: [(&str, &str); 1] = [(
        "P_Observe_All(m, cmds, tail(clist), a, d, n, c)",
        "P_Observe_All(m, cmds, if(tail(clist) == [], tail(clist), tail(tail(clist))), a, d, n, c)",
    )];
    let faults = FAULTS.iter().step_by(step).map(|f| (f.name, f.edits, f.defines)).chain([(
        "second_other_does_not_observe",
        &SECOND[..],
        &[][..],
    )]);
    let folder = tempfile::tempdir().unwrap();
    let (mut proved, mut wrong) = (0, 0);
    for (name, edits, defines_of) in faults {
        let (model, arguments) =
            write_specification_with(folder.path(), &patch(&specification(), edits), formulas, FEW);
        let limits = ["--max-states".to_string(), limit.to_string()];
        let arguments = [&arguments[..], &limits].concat();
        let any = with_any(&["num_cores"], &model, arguments.clone(), defines_of, formulas.len());
        let each: Vec<_> = (1..4)
            .map(|n| {
                with_any(
                    &[],
                    &model,
                    arguments.clone(),
                    &[defines_of, &[("num_cores", n)]].concat(),
                    formulas.len(),
                )
            })
            .collect();
        for (i, result) in any.iter().enumerate() {
            let fails = each.iter().any(|row| row[i]["verdict"] == "false");
            assert!(!(fails && result["verdict"] == "true"), "{name}, {}: {result}", formulas[i]);
            proved += usize::from(result["verdict"] == "true");
            wrong += usize::from(fails);
        }
        if name == "second_other_does_not_observe" && formulas.len() > 1 {
            assert_eq!(
                [0, 1, 2].map(|n| each[n][1]["verdict"].as_str().unwrap()),
                ["true", "true", "false"],
                "{name}"
            );
        }
    }
    println!("{proved} proved for every number of cores, {wrong} false for up to three");
    (proved, wrong)
}

/// A limit leaves the answer open, with the cases that were true before it.
#[test]
fn a_limit_reports_the_covered_cases() {
    let arguments = [
        "check",
        &package("specs/arcx.spec"),
        &package("formulas/1c.gos.mcf"),
        "-D",
        "max_operation_id=any",
        "-D",
    ];
    let outcome = mu_check(
        &[&arguments[..], &["byte_size=1", "-D", "address_size=1", "--max-states", "9000"]]
            .concat(),
    );
    let result = &outcome.json["results"][0];
    assert_eq!(
        (outcome.code, &result["verdict"], &result["reason"]),
        (3, &"unknown".into(), &"max-states".into()),
        "{result}"
    );
    let (of, covered) = (result["cases"].as_u64().unwrap(), result["cases_true"].as_u64().unwrap());
    assert!(
        covered < of && result["open_case"].as_str().unwrap().contains("max_operation_id"),
        "{result}"
    );
}

#[test]
fn local_consistency_holds_for_every_number_of_values_and_of_addresses() {
    let model = package("specs/arcx.spec");
    let mut arguments = vec!["check".to_string(), model.clone()];
    arguments.extend(FORMULAS[..5].iter().map(|f| package(&format!("formulas/{f}.mcf"))));
    for result in with_any(&["byte_size", "address_size"], model.as_ref(), arguments, &[], 5) {
        assert_eq!(
            (&result["verdict"], &result["for"]),
            (&"true".into(), &"byte_size = any, address_size = any".into()),
            "{result}"
        );
    }
}

#[test]
fn a_seeded_fault_is_found_with_the_least_numbers_of_values_and_of_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.spec");
    for fault in FAULTS
        .iter()
        .filter(|f| f.defines.iter().all(|d| ["byte_size", "address_size"].contains(&d.0)))
    {
        let Some(false_one) =
            FORMULAS[..5].iter().zip(fault.verdicts.bytes()).find(|f| f.1 == b'F').map(|f| f.0)
        else {
            continue;
        };
        std::fs::write(&model, patch(&specification(), fault.edits)).unwrap();
        let arguments = vec![
            "check".to_string(),
            model.display().to_string(),
            package(&format!("formulas/{false_one}.mcf")),
        ];
        let result = &with_any(&["byte_size", "address_size"], &model, arguments, &[], 1)[0];
        assert_eq!(result["verdict"], "false", "{}: {result}", fault.name);
        let most = |name: &str| fault.defines.iter().find(|d| d.0 == name).map_or(1, |d| d.1);
        let (values, addresses) = (most("byte_size"), most("address_size"));
        let numbers = result["for"]
            .as_str()
            .unwrap()
            .split(", ")
            .map(|t| t.split(" = ").nth(1).unwrap().parse::<u32>().unwrap());
        assert!(numbers.sum::<u32>() <= values + addresses, "{}: {result}", fault.name);
        assert!(!result["evidence"].as_array().unwrap().is_empty(), "{}", fault.name);
    }
}

#[test]
fn each_seeded_fault_is_found_with_the_least_number_of_operations() {
    let specification = specification();
    for fault in FAULTS {
        let false_ones: Vec<&str> = FORMULAS
            .iter()
            .zip(fault.verdicts.bytes())
            .filter(|f| f.1 == b'F')
            .map(|f| *f.0)
            .collect();
        let false_ones: Vec<&str> =
            false_ones.into_iter().filter(|f| !f.ends_with("3.cacheconsistency")).collect();
        if false_ones.is_empty() {
            continue;
        }
        let most = fault.defines.iter().find(|d| d.0 == "max_operation_id").map_or(0, |d| d.1);
        for result in results(&patch(&specification, fault.edits), fault.defines, &false_ones) {
            assert_eq!(result["verdict"], "false", "{}: {result}", fault.name);
            let at: u32 = result["for"]
                .as_str()
                .and_then(|t| t.strip_prefix("max_operation_id = "))
                .unwrap()
                .parse()
                .unwrap();
            assert!(at <= most, "{}: {result}", fault.name);
            assert!(!result["evidence"].as_array().unwrap().is_empty(), "{}", fault.name);
        }
    }
}

/// Instances that a search of states does not decide, that the formula does not fit, or that the
/// file excludes.
#[test]
fn instances_are_checked_as_models_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.spec").display().to_string();
    let check = |text: &str, formula: &str, any: &[&str]| {
        std::fs::write(&path, text).unwrap();
        let mut arguments = vec!["check", &path, "-f", formula];
        any.iter().for_each(|name| arguments.extend(["-D", *name]));
        let outcome = mu_check(&arguments);
        (outcome.code, outcome.json["results"][0].clone(), outcome.stderr)
    };
    // `Nat2Pos(0)` has no value, which the equation system of the formula does not need.
    let text = "$param N: Nat = 3;\nmap M: Nat;\neqn M = ${N};\nact u: Pos;\n\
        proc C(n: Pos) = (n < M) -> u(n) . C(n + 1);\ninit C(1);";
    let formula = "[true*.(exists x: Nat. val(x < 2) && u(Nat2Pos(x)))]false";
    let (code, result, errors) = check(text, formula, &["N=any"]);
    assert_eq!((code, &result["for"]), (1, &"N = 2".into()), "{result} {errors}");
    // A constant that few values do not have.
    let text = "$param K: Nat = 4;\nsort D = struct $for i in 0 .. K join \" | \" { d${i} };\n\
        act a: D;\nproc P(x: D) = sum d: D. (d != x) -> a(d) . P(d);\ninit sum d: D. P(d);";
    let (code, result, errors) = check(text, "[true*.a(d3)]false", &["K=any"]);
    assert_eq!((code, &result["for"]), (1, &"K = 4".into()), "{result} {errors}");
    let (code, result, errors) = check(text, "[true*.a(d3).a(d3)]false", &["K=any"]);
    let reason = format!("{}", result["tried"]);
    assert_eq!((code, &result["verdict"]), (3, &"unknown".into()), "{result} {errors}");
    assert!(reason.contains("the model or the formula is not defined for 0 to 3"), "{result}");
    let (code, _, errors) = check(text, "[true*.a(x3)]false", &["K=any"]);
    assert!(code == 2 && errors.contains("`x3` is not declared"), "{code} {errors}");
    // More values than a search tries.
    let text = "$param A: Nat = 299 where A >= 299;\n$param B: Nat = 3;\n$param C: Nat = 3;\n\
        act a: Nat;\nproc P(n: Nat) = (n < ${A} + ${B} * ${C}) -> a(n) . P(n + 1);\ninit P(0);";
    let (code, result, errors) = check(text, "[true*.a(2000)]false", &["A=any", "B=any", "C=any"]);
    assert_eq!((code, &result["verdict"]), (3, &"unknown".into()), "{result} {errors}");
}

#[test]
fn a_text_that_depends_on_the_value_is_refused() {
    let mut sources = SourceMap::new();
    let mut expand =
        |text: &str| template::expand("x", text, &[("n".into(), "any".into())], &mut sources);
    let plain = expand("$param n: Nat = 2;\nact a: Nat; init a(${n + 1});").unwrap();
    assert!(
        plain.text.contains("init a((n_any + 1));") && plain.text.ends_with("map n_any: Nat;"),
        "{}",
        plain.text
    );
    for text in [
        "$param n: Nat = 2;\ninit $for i in 0 .. n join \"|\" { a };",
        "$param n: Nat = 2;\ninit $if n > 1 { a };",
        "$param n: Nat = 2;\ninit a(${2 * n});",
    ] {
        let error = expand(text).unwrap_err();
        assert!(
            error.message.contains("needs a value") && error.span.is_some(),
            "{text}: {}",
            error.message
        );
    }
    assert!(
        expand("$param n: Bool = true;\ninit a;").unwrap_err().message.contains("not of sort Bool")
    );
}

/// The verdict for every number of operations and those for 0 to 5, for the published formulas and
/// the stricter ones, of the model and each seeded fault: a table. Half an hour: `cargo test
/// --release --test suite -- --ignored --nocapture the_verdict_for_every_number`;
/// `ORACLE_FAULT=name` for one row.
#[test]
#[ignore = "half an hour of runs"]
fn the_verdict_for_every_number_is_that_of_all() {
    const MOST: u32 = 5;
    let formulas =
        [&FORMULAS[..], &["strict/2.selfobserving", "strict/3.cacheconsistency", "cores/3.order"]]
            .concat();
    let only = std::env::var("ORACLE_FAULT").ok();
    for fault in FAULTS.iter().filter(|f| only.as_ref().is_none_or(|o| f.name == o)) {
        let folder = tempfile::tempdir().unwrap();
        // As large as the fault's table says for what it makes false, for the rest one address and
        // one value.
        let sizes: Vec<(&str, u32)> =
            SMALL.iter().filter(|s| s.0 != "max_operation_id").copied().collect();
        let sizes: Vec<(&str, u32)> =
            sizes.iter().map(|s| *fault.defines.iter().find(|c| c.0 == s.0).unwrap_or(s)).collect();
        let small: Vec<(&str, u32)> = sizes
            .iter()
            .map(|s| if ["address_size", "byte_size"].contains(&s.0) { (s.0, 1) } else { *s })
            .collect();
        let is_false = |f: &&&str| {
            FORMULAS
                .iter()
                .zip(fault.verdicts.bytes())
                .any(|(name, v)| f.ends_with(name) && v == b'F')
        };
        let (large, others): (Vec<&str>, Vec<&str>) = formulas.iter().partition(|f| is_false(f));
        let formulas = [others.as_slice(), &large].concat();
        let run = |number: &str| -> Vec<serde_json::Value> {
            let limits = [
                "-D".into(),
                format!("max_operation_id={number}"),
                "--timeout".into(),
                "600s".into(),
                "--max-memory".into(),
                "4G".into(),
            ];
            let of = |formulas: &[&str], sizes: &[(&str, u32)]| {
                let (_, arguments) = write_specification(
                    folder.path(),
                    &patch(&specification(), fault.edits),
                    formulas,
                );
                mu_check(&[arguments, defines(sizes), limits.to_vec()].concat()).json["results"]
                    .as_array()
                    .unwrap()
                    .clone()
            };
            [of(&others, &small), if large.is_empty() { Vec::new() } else { of(&large, &sizes) }]
                .concat()
        };
        let any = run("any");
        let each: Vec<_> = (0..=MOST).map(|n| run(&n.to_string())).collect();
        for (i, formula) in formulas.iter().enumerate() {
            let word = |r: &serde_json::Value| r["verdict"].as_str().unwrap().to_string();
            let row: Vec<String> = each.iter().map(|r| word(&r[i])).collect();
            // An answer of unknown is for no number.
            let values = any[i]["for"].as_str().unwrap_or("no number");
            println!(
                "| {} | {formula} | {} for {values} | {} |",
                fault.name,
                word(&any[i]),
                row.join(" ")
            );
            match word(&any[i]).as_str() {
                "true" => assert!(!row.contains(&"false".into()), "{} {formula}", fault.name),
                "false" => {
                    let least: u32 =
                        values.strip_prefix("max_operation_id = ").unwrap().parse().unwrap();
                    // A run that a limit ended gives no result for its number.
                    let contradicts = |(n, v): (u32, &String)| {
                        if n < least { v == "false" } else { n == least && v == "true" }
                    };
                    assert!(
                        !(0u32..).zip(&row).any(contradicts),
                        "{} {formula}: {values}",
                        fault.name
                    );
                }
                _ => {}
            }
        }
    }
}

/// A formula brings sorts that the model does not have: what it quantifies over them is refused as
/// well.
#[test]
fn formulas_quantify_over_no_sets_of_constants() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sets.spec").display().to_string();
    std::fs::write(
        &path,
        "$param K: Pos = 3;\nsort V = struct $for i in 0 .. K join \"|\" { w${i} }; act a: V; proc P = sum z: V. a(z) . P; init P;",
    )
    .unwrap();
    let formulas = [
        "forall s: FSet(V). val(#s < 3 * 3)",
        "val(forall s: FSet(V). #s < 3 * 3)",
        "[exists s: FSet(V). val(#s == 3 * 3) && true]false",
        "map big: Bool; eqn big = exists s: FSet(V). #s == 3 * 3; form [true*]val(!big);",
        "forall l: List(V). val(#l < 3 * 3)",
    ];
    let words = ["check", &path, "-D", "K=any", "--max-states", "2000"].map(String::from);
    let words: Vec<String> = words
        .into_iter()
        .chain(formulas.iter().flat_map(|f| ["-f".to_string(), f.to_string()]))
        .collect();
    let outcome = mu_check(&words);
    let results =
        outcome.json["results"].as_array().unwrap_or_else(|| panic!("{}", outcome.stderr));
    assert!(
        results.len() == formulas.len() && results.iter().all(|r| r["verdict"] != "true"),
        "{}",
        outcome.json
    );
}
