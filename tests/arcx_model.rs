//! Sizes of the ARCx model: the published ones, those of an independent program, and equal ones
//! with any number of threads.

use crate::support::{defines, explore, package};
use std::path::PathBuf;

fn model() -> PathBuf {
    PathBuf::from(package("specs/arcx.spec"))
}

fn sizes(values: &[(&str, u32)], options: &[&str]) -> (u64, u64) {
    let mut arguments = defines(values);
    arguments.extend(options.iter().map(|o| o.to_string()));
    let (states, transitions, _) = explore(&model(), &arguments);
    (states, transitions)
}

#[test]
fn all_transitions() {
    assert_eq!(sizes(&[("max_operation_id", 0)], &[]), (6_052, 13_828));
    assert_eq!(sizes(&[("max_operation_id", 1)], &[]), (275_528, 692_652));
}

#[test]
#[ignore = "some seconds: run with --ignored"]
fn all_transitions_of_three_operations() {
    assert_eq!(sizes(&[], &[]), (2_771_160, 7_147_580));
}

#[test]
fn confluent_steps_taken_at_once() {
    assert_eq!(sizes(&[("max_operation_id", 0)], &["--confluence", "auto"]), (2_909, 5_966));
    assert_eq!(sizes(&[("max_operation_id", 1)], &["--confluence", "auto"]), (171_413, 417_116));
    let named = ["--confluence", "reset,mem_wb_sync_store_finish"];
    assert_eq!(sizes(&[("max_operation_id", 1)], &named), (171_413, 417_116));
}

#[test]
fn quotients() {
    let reduced = |values: &[(&str, u32)], equivalence: &str| {
        let mut arguments = defines(values);
        arguments.extend(["--reduce".to_string(), equivalence.to_string()]);
        let (_, _, json) = explore(&model(), &arguments);
        (
            json["reduced"]["states"].as_u64().unwrap(),
            json["reduced"]["transitions"].as_u64().unwrap(),
        )
    };
    assert_eq!(reduced(&[("max_operation_id", 0)], "strong").0, 2_797);
    assert_eq!(reduced(&[("max_operation_id", 0)], "branching"), (767, 2_092));
    assert_eq!(reduced(&[("max_operation_id", 1)], "strong").0, 109_693);
    assert_eq!(reduced(&[("max_operation_id", 1)], "branching"), (37_683, 112_106));
}

/// Counts of an independent program for this one model.
#[test]
fn other_parameters() {
    let names = [
        "address_size",
        "byte_size",
        "num_cores",
        "memcommands_size",
        "nr_wb_buffers",
        "max_operation_id",
    ];
    let table = [
        ([1, 1, 1, 1, 1, 0], 25, 32),
        ([2, 2, 1, 1, 1, 2], 3_278, 5_584),
        ([2, 2, 1, 2, 2, 2], 36_538, 74_420),
        ([1, 2, 3, 1, 1, 0], 46_741, 143_496),
        ([2, 2, 2, 1, 2, 0], 11_044, 27_140),
        ([1, 1, 2, 1, 2, 1], 18_690, 47_204),
        ([2, 2, 2, 2, 1, 0], 7_312, 16_844),
        ([1, 1, 2, 2, 1, 1], 10_039, 24_054),
        ([1, 1, 2, 2, 2, 1], 32_589, 84_796),
        ([2, 1, 2, 1, 1, 1], 47_687, 115_484),
        ([2, 3, 2, 1, 1, 0], 11_844, 27_376),
        ([1, 2, 2, 1, 1, 1], 20_870, 51_532),
        ([1, 1, 2, 1, 1, 2], 13_817, 32_544),
    ];
    for (values, states, transitions) in table {
        let values: Vec<(&str, u32)> = names.into_iter().zip(values).collect();
        assert_eq!(sizes(&values, &[]), (states, transitions), "{values:?}");
    }
}

#[test]
fn threads_do_not_matter() {
    for threads in ["1", "2", "5"] {
        assert_eq!(
            sizes(&[("max_operation_id", 1)], &["--threads", threads]),
            (275_528, 692_652),
            "{threads} threads"
        );
    }
}

/// `expand` prints plain mCRL2: expanding it again changes nothing, and its state space is the
/// same.
#[test]
fn the_expansion_is_plain() {
    let expand = |path: &str, options: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["expand", path])
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text =
        expand(&package("specs/arcx.spec"), &["-D", "max_operation_id=0", "-D", "num_cores=1"]);
    let code = text.lines().map(|l| l.split('%').next().unwrap_or("")).collect::<String>();
    assert!(!code.contains('$'), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.mcrl2");
    std::fs::write(&path, &text).unwrap();
    assert_eq!(expand(&path.display().to_string(), &[]), text);
    let (states, transitions, _) = explore(&path, &[]);
    assert_eq!((states, transitions), sizes(&[("max_operation_id", 0), ("num_cores", 1)], &[]));
}
