//! Facts that a log leaves open: loaded values that it does not have, pairs of load-reserved and
//! store-conditional with other operations between them, skipped lines, sizes of names and of
//! initial values.

use mu_base::Budget;
use mu_base::random::Random;
use mu_traces::readers::{Collected, ReadOptions, readers};
use mu_traces::riscv::AtomicOperation;
use mu_traces::trace::fits;
use mu_traces::{DecisionOptions, OpenFact, Trace, TraceModel, Verdict, decide};

fn read(name: &str, log: &str, repair: bool) -> Collected {
    let reader = readers().iter().find(|r| r.name() == name).expect("a reader");
    let options = ReadOptions { file: "log".into(), repair };
    let mut collected = Collected::default();
    let read = reader.read(&mut log.as_bytes(), &options, &mut collected);
    read.unwrap_or_else(|e| panic!("{name}: {e:?}\n{log}"));
    collected
}

fn read_one(name: &str, log: &str) -> Trace {
    let mut traces = read(name, log, false).traces;
    assert_eq!(traces.len(), 1, "{log}");
    traces.remove(0)
}

fn verdict(trace: &Trace, model: &TraceModel) -> Verdict {
    decide(trace, model, &DecisionOptions::default(), &Budget::default()).expect("it decides")
}

fn truth(trace: &Trace, model: &TraceModel) -> Option<bool> {
    verdict(trace, model).truth()
}

/// Checks the answer of all models.
fn check_all_models(name: &str, log: &str, expected: Option<bool>) {
    let trace = read_one(name, log);
    for model in TraceModel::BUILT_IN {
        assert_eq!(truth(&trace, &model), expected, "{} {log}", model.name());
    }
}

/// Compares the rules of known operands with the operations, and those of unknown ones with all
/// operands of one byte.
#[test]
fn values_fit_if_some_operand_maps_them() {
    let functions = [
        AtomicOperation::Swap,
        AtomicOperation::Add,
        AtomicOperation::Xor,
        AtomicOperation::And,
        AtomicOperation::Or,
        AtomicOperation::Min,
        AtomicOperation::Max,
        AtomicOperation::UnsignedMin,
        AtomicOperation::UnsignedMax,
    ];
    let value = |f: AtomicOperation, l: u8, o: u8| match f {
        AtomicOperation::Swap => o,
        AtomicOperation::Add => l.wrapping_add(o),
        AtomicOperation::Xor => l ^ o,
        AtomicOperation::And => l & o,
        AtomicOperation::Or => l | o,
        AtomicOperation::Min => (l as i8).min(o as i8) as u8,
        AtomicOperation::Max => (l as i8).max(o as i8) as u8,
        AtomicOperation::UnsignedMin => l.min(o),
        _ => l.max(o),
    };
    let samples = [0u8, 1, 2, 3, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff];
    for f in functions {
        for l in samples {
            for s in samples {
                let (loaded, stored) = (u64::from(l), u64::from(s));
                let any = (0..=255).any(|o| value(f, l, o) == s);
                assert_eq!(fits(Some((f, None)), loaded, stored, 1), any, "{f:?} {l} {s}");
                for o in samples.into_iter().filter(|_| f != AtomicOperation::Swap) {
                    let known = fits(Some((f, Some(u64::from(o)))), loaded, stored, 1);
                    assert_eq!(known, value(f, l, o) == s, "{f:?} {l} {o} {s}");
                }
            }
        }
    }
}

/// `lr.d x12,(x11)`, `ld x14,8(x11)`, `sc.d x13,x10,(x11)` of hart 0; hart 1 loads the value.
const PAIR: &str = "core   0: 3 0x0000000080000000 (0x1005b62f) x12 0x0000000000000000 mem 0x0000000080001000
core   0: 3 0x0000000080000004 (0x0085b703) x14 0x0000000000000000 mem 0x0000000080001008
core   0: 3 0x0000000080000008 (0x18a5b6af) x13 0x0000000000000000 mem 0x0000000080001000 0x0000000000000001
core   1: 3 0x0000000080000100 (0x0005b603) x12 0x0000000000000001 mem 0x0000000080001000
";

#[test]
fn pairs_with_accesses_between_them() {
    check_all_models("spike", PAIR, Some(true));
    assert_eq!(read_one("spike", PAIR).open, [OpenFact::Pair { load: 0, store: 2 }]);
    // Hart 1 stores 7 between the two: loads of hart 2 give the order 0, 7, 1.
    let between =
        "core   1: 3 0x0000000080000100 (0x00a5b023) mem 0x0000000080001000 0x0000000000000007
core   2: 3 0x0000000080000200 (0x0005b603) x12 0x0000000000000007 mem 0x0000000080001000
core   2: 3 0x0000000080000204 (0x0005b603) x12 0x0000000000000001 mem 0x0000000080001000
core   2: 3 0x0000000080000208 (0x0005b603) x12 0x0000000000000001 mem 0x0000000080001000
";
    let log = format!("{PAIR}{between}");
    let trace = read_one("spike", &log);
    for model in TraceModel::BUILT_IN {
        assert_ne!(truth(&trace, &model), Some(true), "{}", model.name());
    }
    // A value that nobody stores is forbidden with and without the pair.
    let wrong = PAIR.replace("x14 0x0000000000000000", "x14 0x0000000000000009");
    let zero = "core   1: 3 0x0000000080000104 (0x0085b603) x12 0x0000000000000004 mem 0x0000000080001008\n";
    check_all_models("spike", &format!("{wrong}{zero}"), Some(false));
    // Repair has nothing to skip.
    assert!(read("spike", PAIR, true).skipped.is_empty());
}

#[test]
fn pairs_of_tables_and_of_trace_generators() {
    let head = "thread,operation,address,value,atomic\n";
    let log =
        format!("{head}0,load,x,0,1\n0,store,y,1,\n0,store,x,2,1\n1,load,x,2,\n1,load,y,1,\n");
    check_all_models("csv", &log, Some(true));
    let log = format!("{head}0,load,x,0,1\n0,fence,,,\n0,store,x,2,1\n1,load,x,2,\n");
    check_all_models("csv", &log, Some(true));
    let log = "0: load-reserve-req 0x10 #1 @1
0: resp 0 #1 @2
0: load-req 0x20 #2 @3
0: resp 0 #2 @4
0: store-cond-req 8 0x10 #3 @5
0: resp 0 #3 @6
1: load-req 0x10 #1 @7
1: resp 8 #1 @8
";
    check_all_models("tracegen", log, None);
    let failed = log.replace("resp 0 #3", "resp 1 #3").replace("resp 8", "resp 0");
    check_all_models("tracegen", &failed, Some(true));
}

/// A store-conditional without a reservation is a fault of the processor; one with a reservation
/// that the log does not have is open.
#[test]
fn store_conditionals_without_a_pair() {
    let conditional = "core   0: 3 0x0000000080000008 (0x18a5b6af) x13 0x0000000000000000 mem 0x0000000080001000 0x0000000000000001\n";
    check_all_models("spike", conditional, None);
    let twice = conditional.replace("0000000001\n", "0000000002\n");
    check_all_models("spike", &format!("{PAIR}{twice}"), Some(false));
    let Verdict::Forbidden { conflict } =
        verdict(&read_one("spike", &format!("{PAIR}{twice}")), &TraceModel::Sc)
    else {
        panic!("it is forbidden")
    };
    assert!(conflict.message.contains("line 5") && conflict.message.contains("line 3"));
    let elsewhere = conditional.replace("80001000", "80001040");
    let reserve = PAIR.lines().next().unwrap();
    check_all_models("spike", &format!("{reserve}\n{elsewhere}"), None);
    check_all_models("tracegen", "0: store-cond-req 8 0x10 #2 @1\n0: resp 0 #2 @2\n", Some(false));
}

/// `ld` 0 by hart 2; `sd` 1 by hart 1; `amoswap.d x0, x10, (x11)` that stores 3, then `ld` 1, by
/// hart 0: the update loads 0.
const SWAP: &str = "core   2: 3 0x0000000080000200 (0x0005b503) x10 0x0000000000000000 mem 0x0000000080001000
core   1: 3 0x0000000080000100 (0x00a5b023) mem 0x0000000080001000 0x0000000000000001
core   0: 3 0x0000000080000000 (0x08a5b02f) mem 0x0000000080001000 mem 0x0000000080001000 0x0000000000000003
core   0: 3 0x0000000080000004 (0x0005b603) x12 0x0000000000000001 mem 0x0000000080001000
";

#[test]
fn values_of_updates_into_x0_are_open() {
    check_all_models("spike", SWAP, Some(true));
    // amoor, with an unknown operand: 0 may become 3, and 1 too.
    let or = SWAP.replace("(0x08a5b02f)", "(0x40a5b02f)");
    check_all_models("spike", &or, Some(true));
    // amoand: no value of the trace becomes 3.
    let and = SWAP.replace("(0x08a5b02f)", "(0x60a5b02f)");
    let trace = read_one("spike", &and);
    assert_eq!(truth(&trace, &TraceModel::Sc), Some(false));
    // amomaxu, with the operand 0: the loaded value is 3, which nobody stores before.
    let operand = "core   0: 3 0x0000000080000000 (0x00000513) x10 0x0000000000000000\n";
    let max = SWAP.replace("(0x08a5b02f)", "(0xe0a5b02f)");
    assert_eq!(truth(&read_one("spike", &format!("{operand}{max}")), &TraceModel::Sc), Some(false));
    assert_eq!(truth(&read_one("spike", &max), &TraceModel::Sc), Some(true));
}

/// A load without a value counts where it adds order: between fences that are not full.
#[test]
fn loads_without_a_value_add_order() {
    let log = |value: &str| {
        format!(
            "thread,operation,address,value,fence\n0,store,x,1,\n0,fence,,,\"w,r\"\n0,load,z,{value},\n0,fence,,,\"r,w\"\n0,store,y,1,\n1,load,y,1,\n1,fence,,,full\n1,load,x,0,\n"
        )
    };
    assert_eq!(truth(&read_one("csv", &log("?")), &TraceModel::Rvwmo), Some(false));
    assert_eq!(truth(&read_one("csv", &log("0")), &TraceModel::Rvwmo), Some(false));
    let free = log("?").replace("\"w,r\"", "full").replace("\"r,w\"", "full");
    assert_eq!(truth(&read_one("csv", &free), &TraceModel::Rvwmo), Some(false));
    assert_eq!(
        truth(&read_one("csv", &free.replace("1,load,x,0", "1,load,x,1")), &TraceModel::Sc),
        Some(true)
    );
}

/// Hides values of updates and loads of random traces, and compares the answer with all values.
#[test]
fn open_values_are_some_value() {
    let seed = std::env::var("MU_CHECK_SEED").map_or(20261127, |s| s.parse().unwrap());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let (mut allowed, mut forbidden) = (0, 0);
    for round in 0..400 {
        let mut rows: Vec<(usize, String)> = Vec::new();
        let mut hidden = None;
        for _ in 0..3 + random.below(5) {
            let (thread, value) = (random.below(3), random.below(3));
            let place = ["x", "y"][random.below(2)];
            match random.below(4) {
                0 => rows.push((thread, format!("{thread},store,{place},{value},,"))),
                1 => rows.push((thread, format!("{thread},load,{place},{value},,"))),
                2 => rows.push((thread, format!("{thread},fence,,,,full"))),
                _ => {
                    hidden = Some(rows.len());
                    rows.push((thread, format!("{thread},update,{place},?,{value},")));
                }
            }
        }
        let Some(hidden) = hidden else { continue };
        let log = |value: &str| {
            let mut out = "thread,operation,address,value,stored,fence\n".to_string();
            for (i, (_, row)) in rows.iter().enumerate() {
                let value = if i == hidden { value } else { "0" };
                out += &(row.replace('?', value) + "\n");
            }
            out
        };
        let open = read_one("csv", &log("?"));
        for model in [
            TraceModel::Sc,
            TraceModel::Tso,
            TraceModel::Pso,
            TraceModel::Rvwmo,
            TraceModel::Armv8,
            TraceModel::Wmo,
        ] {
            let known = |v: u64| truth(&read_one("csv", &log(&v.to_string())), &model);
            let expected = (0..3).any(|v| known(v) == Some(true));
            let found = truth(&open, &model);
            assert_eq!(found, Some(expected), "round {round} {}\n{}", model.name(), log("?"));
            *(if expected { &mut allowed } else { &mut forbidden }) += 1;
        }
    }
    println!("{allowed} allowed, {forbidden} forbidden");
    assert!(allowed > 100 && forbidden > 100);
}

/// No trace with a skipped line is forbidden.
#[test]
fn repaired_logs_are_never_forbidden() {
    let log = "thread,operation,address,value\n0,store,x,one\n1,load,x,1\n";
    let read = read("csv", log, true);
    assert_eq!((read.skipped.len(), read.traces[0].skipped.as_slice()), (1, [2].as_slice()));
    for model in TraceModel::BUILT_IN {
        let Verdict::Unknown { reason, .. } = verdict(&read.traces[0], &model) else {
            panic!("{}", model.name())
        };
        assert!(reason.contains("(2)") && reason.contains("line 3 loads 1"), "{reason}");
    }
    // A line between two traces can be of either one.
    let log = "trace,thread,operation,address,value\nA,0,store,x,1\nB,0,store,x\nB,0,load,x,2\n";
    let border = self::read("csv", log, true);
    assert_eq!(border.traces.len(), 2);
    for trace in &border.traces {
        assert_eq!(trace.skipped, [3]);
        assert_ne!(truth(trace, &TraceModel::Sc), Some(false));
    }
    // Another trace of the log is as it was.
    let log = "thread,operation,address,value\n0,store,x,one\n1,load,x,1\n";
    let log = format!("{log}check\n0,load,x,5\n");
    let read = self::read("csv", &log, true);
    assert_eq!(read.traces.len(), 2);
    assert_eq!(truth(&read.traces[1], &TraceModel::Sc), Some(false));
}

/// Sizes at names and of initial values share bytes, as those at numbers do.
#[test]
fn sizes_of_names_and_of_initial_values() {
    let head = "thread,operation,address,value,size\n";
    for rows in [
        "0,store,x,0x100000001,8\n0,load,x,1,4\n",
        "0,initial,0x1000,0x500000000,8\n0,load,0x1004,5,4\n",
        "0,initial,0x1000,0x105,2\n0,load,0x1000,5,1\n",
        "0,initial,x,0x105,2\n0,load,x,5,1\n",
    ] {
        let trace = read_one("csv", &format!("{head}{rows}"));
        assert!(trace.has_mixed_sizes(), "{rows}");
        assert_ne!(truth(&trace, &TraceModel::Sc), Some(false), "{rows}");
    }
    for rows in [
        "0,initial,0x1000,0x500000000,8\n0,load,0x1004,0,4\n",
        "0,initial,x,0x105,2\n0,load,x,6,1\n",
    ] {
        let trace = read_one("csv", &format!("{head}{rows}"));
        assert_ne!(truth(&trace, &TraceModel::Sc), Some(true), "{rows}");
    }
    // One size at a name is no overlap.
    check_all_models("csv", &format!("{head}0,store,x,1,4\n0,load,x,1,4\n"), Some(true));
    // Initial values that contradict each other have a place.
    let log = format!("{head}0,initial,0x1000,1,8\n0,initial,0x1004,5,4\n");
    let options = ReadOptions { file: "log".into(), repair: false };
    let reader = readers().iter().find(|r| r.name() == "csv").expect("a reader");
    let error = reader.read(&mut log.as_bytes(), &options, &mut Collected::default());
    let error = error.expect_err("a contradiction");
    assert_eq!(error.line.as_ref().map(|l| l.number), Some(3));
    assert!(error.message.contains("0x1004"), "{}", error.message);
}

/// Initial values and times of a trace are not those of the next one.
#[test]
fn traces_of_tables_share_nothing() {
    let log = "trace,thread,operation,address,value,begin\na,,initial,x,5,\na,0,load,x,5,50\nb,,initial,x,7,\nb,0,load,x,7,10\n";
    let read = read("csv", log, false);
    assert_eq!(read.traces.len(), 2);
    for trace in &read.traces {
        assert_eq!(truth(trace, &TraceModel::Sc), Some(true));
    }
}

/// A run of a sequentially consistent memory with repeated values is allowed by every model, and
/// at once: a stronger model decides.
#[test]
fn runs_of_sc_decide_weaker_models() {
    let log = "0: M[0] == 0
2: M[0] := 0
2: { M[0] == 0; M[0] := 1 }
1: M[0] == 1
2: M[0] := 1
1: M[0] == 1
0: M[0] := 0
0: M[0] == 0
0: M[0] := 1
2: M[0] == 1
2: sync
0: M[0] == 1
0: M[0] == 1
2: M[0] := 1
1: M[0] := 1
2: { M[0] == 1; M[0] := 0 }
1: M[0] := 1
2: M[0] := 0
2: M[0] == 0
0: { M[0] == 0; M[0] := 1 }
";
    check_all_models("axe", log, Some(true));
}

/// An access without a size may have any bytes near accesses with one.
#[test]
fn accesses_without_a_size_near_others_are_unknown() {
    let head = "thread,operation,address,value,size\n";
    for (rows, is_unknown) in [
        ("0,store,64,513,\n0,load,65,2,1\n", true),
        ("0,store,64,513,\n0,load,65,2,1\n0,load,64,513,2\n", true),
        ("0,store,64,513,\n0,store,60,1,8\n", true),
        ("0,store,64,513,\n0,store,60,1,4\n", false),
        ("0,store,64,513,\n0,load,64,513,4\n0,load,72,0,4\n", false),
        ("0,store,x,513,\n0,load,65,0,1\n", false),
        ("0,store,64,513,\n0,load,65,0,\n", false),
    ] {
        let trace = read_one("csv", &format!("{head}{rows}"));
        assert_eq!(truth(&trace, &TraceModel::Sc).is_none(), is_unknown, "{rows}");
    }
}
