//! The numbers of the ARCx study: states of both settings of confluence, equations of the reduced
//! system by two routes, and reports of the reductions that were used.

use crate::support::{explore, mu_check, package};
use serde_json::Value;
use std::path::Path;

/// The published equations for two operations a core, in full: the study prints them cut off at
/// thousands. mCRL2 gives those of 1b and 1c.
const EQUATIONS: [(&str, u64); 4] =
    [("1a.gos", 625_277), ("1b.gos", 343_949), ("1c.gos", 709_301), ("2.selfobserving", 1_976_013)];
const FINISH: &str = "mem_wb_sync_store_finish";

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn check(model: &str, formulas: &[&str], options: &str) -> Vec<Value> {
    let formulas = formulas.iter().map(|f| package(&format!("formulas/{f}.mcf")));
    let arguments: Vec<String> = ["check".to_string(), model.to_string()]
        .into_iter()
        .chain(formulas)
        .chain(words(options))
        .collect();
    let outcome = mu_check(&arguments);
    outcome.json["results"]
        .as_array()
        .unwrap_or_else(|| panic!("{options}: {}", outcome.stderr))
        .clone()
}

#[test]
fn equations_of_the_reduced_system_by_two_routes() {
    let spec = package("specs/arcx.spec");
    let names = EQUATIONS.map(|e| e.0);
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("reduced.lts").display().to_string();
    explore(
        Path::new(&spec),
        &words(&format!("-D max_operation_id=1 --confluence auto --out {saved}")),
    );
    let count = "-D max_operation_id=1 --count all-parameters";
    let direct = check(&spec, &names, &format!("{count} --confluence auto"));
    let stored = check(&saved, &names, &format!("{count} --data {spec}"));
    for ((name, equations), results) in EQUATIONS.iter().zip(direct.iter().zip(&stored)) {
        for result in [results.0, results.1] {
            assert_eq!(
                (result["verdict"].as_str(), result["equations"].as_u64()),
                (Some("true"), Some(*equations)),
                "{name}: {result}"
            );
        }
        assert_eq!(results.0["confluence"]["used"], true, "{name}");
        assert!(results.1.get("confluence").is_none(), "{name}: a stored system is as it is");
    }
    // What the rest of a formula cannot test is not counted otherwise, nor is the fixed point that
    // a translation puts before 1b and 2.
    let merged = check(&spec, &names, "-D max_operation_id=1 --confluence auto");
    assert_eq!(
        merged.iter().map(|r| r["equations"].as_u64().unwrap()).collect::<Vec<_>>(),
        [530_253, 343_948, 709_301, 1_976_012]
    );
    let small = "-D max_operation_id=0 --count all-parameters";
    let (symbolic, explicit) =
        (check(&spec, &names, &format!("{small} --engine symbolic")), check(&spec, &names, small));
    symbolic
        .iter()
        .zip(&explicit)
        .for_each(|(s, e)| assert_eq!(s["equations"], e["equations"], "{s}"));
}

#[test]
fn a_part_of_a_formula_forbids_confluence() {
    let spec = package("specs/arcx.spec");
    let formulas = [
        "[true*]<true>true",
        "mu X. [true]X",
        "[true* . tau]false",
        "[true*](mu X. (<tau>X || <!tau>true))",
    ];
    let mut arguments = words(&format!("check {spec} --confluence auto -D max_operation_id=0"));
    arguments.extend(formulas.iter().flat_map(|f| ["-f".to_string(), f.to_string()]));
    let outcome = mu_check(&arguments);
    let by: Vec<(bool, &str, u64)> = (outcome.json["results"].as_array().unwrap().iter())
        .map(|r| &r["confluence"])
        .map(|c| {
            (
                c["used"].as_bool().unwrap(),
                c["forbidden_by"].as_str().unwrap(),
                c["column"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        by,
        [
            (false, "next steps", 8),
            (false, "least fixed point", 1),
            (false, "hidden steps", 1),
            (false, "game", 1)
        ]
    );
}

/// Both settings of the published table are explored with all symmetries; each row is compared with
/// its own.
#[test]
fn both_settings_of_the_published_table() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let (spec, published) = (package("specs/arcx.spec"), package("results/published.tsv"));
    let settings = format!("--confluence auto --confluence {FINISH} --threads 1");
    let outcome = mu_check(&words(&format!(
        "sweep {spec} -D max_operation_id=0,1 {settings} --reference {published} --out {out}"
    )));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let rows: Vec<(&str, u64)> = (outcome.json["rows"].as_array().unwrap().iter())
        .map(|r| (r["confluence"].as_str().unwrap(), r["states"].as_u64().unwrap()))
        .collect();
    // Those of the second setting are the same without symmetries.
    assert_eq!(rows, [("auto", 2_909), ("auto", 171_413), (FINISH, 5_140), (FINISH, 238_984)]);
    let table = std::fs::read_to_string(folder.path().join("sweep.md")).unwrap();
    let last = |setting: &str| {
        let line =
            table.lines().rfind(|l| l.contains(&format!("| explore | {setting} | 1 |"))).unwrap();
        line.rsplit(" | ").next().unwrap().trim_end_matches(" |").to_string()
    };
    // A busy machine may need longer than the published one.
    assert!(last("auto").replace(',', "").parse::<f64>().is_ok_and(|ratio| ratio > 0.0), "{table}");
    assert!(
        last(FINISH).is_empty(),
        "no ratio where the published row is of the other setting: {table}"
    );
}

/// Dropped symmetries are named, and verified ones are used.
#[test]
fn symmetries_that_hold_survive_those_that_do_not() {
    let spec = package("specs/arcx.spec");
    let said = |options: &str| {
        let arguments = words(&format!("explore {spec} {options} -v --threads 1"));
        let outcome = mu_check(&arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        (outcome.json["states"].as_u64().unwrap(), outcome.stderr)
    };
    let three = "-D num_cores=3 -D max_operation_id=0";
    let (states, text) = said(three);
    assert!(text.contains("one state represents up to 4"), "values and addresses: {text}");
    assert_eq!(text.matches("symmetries: without c_processor_core").count(), 3, "{text}");
    assert_eq!(said(&format!("{three} --without symmetry")).0, states);
    for setting in ["auto", FINISH, "reset"] {
        let (states, text) = said(&format!("-D max_operation_id=1 --confluence {setting}"));
        assert!(text.contains("one state represents up to 8"), "{setting}: {text}");
        assert_eq!(
            said(&format!("-D max_operation_id=1 --confluence {setting} --without symmetry")).0,
            states,
            "{setting}"
        );
    }
    // Transitions without a proof of confluence: no symmetry may depend on their targets.
    assert!(
        said("-D max_operation_id=0 --confluence mem_wb_sync_store")
            .1
            .contains("not proven confluent")
    );
}

/// The published formulas stand without some parentheses. Where that changes what is meant, the
/// error says where they go.
#[test]
fn listings_without_their_parentheses_are_answered_with_the_correction() {
    let folder = tempfile::tempdir().unwrap();
    let spec = package("specs/arcx.spec");
    let without = [
        (
            "1a.gos",
            "[true*] (forall p1: CoreID. (forall w1p1: CoreID, w1a1: Address, w1b1: Byte, w1n1: Nat. (",
            "[true*] forall p1: CoreID. forall w1p1: CoreID, w1a1: Address, w1b1: Byte, w1n1: Nat. ",
        ),
        (
            "1d.gos",
            "[true*] (forall p1: CoreID, w1a1: Address, w1b1: Byte, w1n1: Nat. (",
            "[true*] forall p1: CoreID, w1a1: Address, w1b1: Byte, w1n1: Nat. ",
        ),
    ];
    for (name, with, printed) in without {
        let text = std::fs::read_to_string(package(&format!("formulas/{name}.mcf"))).unwrap();
        let open = text.find(with).unwrap() + "[true*] ".len();
        // As many close at the end as are gone at the beginning, each on its line or not.
        let gone = with.len() - printed.len();
        let mut printed = text.replacen(with, printed, 1);
        (0..gone).for_each(|_| printed.truncate(printed.rfind(')').unwrap()));
        let printed = format!("{}\n", printed.trim_end());
        let file = folder.path().join(format!("{name}.mcf"));
        std::fs::write(&file, &printed).unwrap();
        let outcome = mu_check(&["check".to_string(), spec.clone(), file.display().to_string()]);
        assert_eq!(outcome.code, 2);
        let place = |at: usize| {
            format!(
                "{}:{}",
                printed[..at].matches('\n').count() + 1,
                at - printed[..at].rfind('\n').unwrap()
            )
        };
        let (first, last) = (place(open), place(printed.trim_end().len()));
        let expected = format!(
            "the formula is well typed with `(` at {first} and `)` at {last}, around `forall p1"
        );
        assert!(
            outcome.stderr.contains(&expected) || outcome.json.to_string().contains(&expected),
            "{expected}\n{}",
            outcome.stderr
        );
    }
}
