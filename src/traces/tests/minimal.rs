//! Minimal forbidden parts, and pairs of a load-reserve and a store-conditional.

use mu_base::Budget;
use mu_traces::minimal::minimal;
use mu_traces::readers::{Collected, ReadOptions, readers};
use mu_traces::{DecisionOptions, Trace, TraceModel, Verdict, decide};

fn read_one(format: &str, log: &str) -> Trace {
    let reader = readers().iter().find(|r| r.name() == format).expect("a reader");
    let mut collected = Collected::default();
    let options = ReadOptions { file: "log".into(), repair: false };
    reader.read(&mut log.as_bytes(), &options, &mut collected).expect("a correct log");
    collected.traces.into_iter().next().expect("a trace")
}

fn verdict(trace: &Trace, model: &TraceModel) -> Verdict {
    decide(trace, model, &DecisionOptions::default(), &Budget::default()).expect("it is decided")
}

/// A part keeps the store of a required final value: without it, it is forbidden for no reason.
#[test]
fn parts_keep_the_stores_of_final_values() {
    for (log, operations, finals) in [
        ("0: M[0] := 1\n0: M[0] := 2\nfinal M[0] == 1\n", 2, 1),
        (
            "0: M[0] := 2\n0: sync\n0: M[1] == 0\n1: M[1] := 2\n1: sync\n1: M[0] := 3\nfinal M[0] == 2\n",
            6,
            1,
        ),
        (
            "1: M[0] := 1\n0: M[0] := 2\n0: sync\n0: {M[1] == 0; M[1] := 1}\n1: M[1] := 2\n1: sync\n1: M[0] := 3\nfinal M[0] == 2\n",
            6,
            1,
        ),
        // A final value that has nothing to do with the conflict.
        ("0: M[0] := 1\n0: M[0] == 0\n1: M[1] := 2\nfinal M[1] == 2\n", 2, 0),
    ] {
        let trace = read_one("axe", log);
        for model in [TraceModel::Rvwmo, TraceModel::Armv8] {
            let Verdict::Forbidden { conflict } = verdict(&trace, &model) else {
                panic!("{} allows {log}", model.name())
            };
            let options = DecisionOptions::default();
            let part =
                minimal(&trace, &conflict, &model, &options, &Budget::default()).expect("ok");
            assert_eq!(part.operations.len(), operations, "{log}: {part:?}");
            assert_eq!(part.finals.len(), finals, "{log}: {part:?}");
        }
    }
}

/// The conflict has the load that implies an edge of the cycle, and is forbidden alone.
#[test]
fn conflicts_have_the_loads_that_imply_their_edges() {
    for (log, operations, finals, because) in [
        ("0: M[0] := 1\n0: M[0] := 2\n0: M[0] == 1\n", 3, 0, "because of line 3"),
        ("0: M[0] := 1\n1: M[0] := 2\n1: M[0] == 1\nfinal M[0] == 2\n", 3, 1, "because of line 3"),
        // Two loads disagree about the order of two stores.
        (
            "0: M[0] := 1\n1: M[0] := 2\n2: M[0] == 1\n2: M[0] == 2\n3: M[0] == 2\n3: M[0] == 1\n3: M[1] == 0\n",
            6,
            0,
            "line",
        ),
    ] {
        let trace = read_one("axe", log);
        for model in [TraceModel::Sc, TraceModel::Tso, TraceModel::Pso, TraceModel::Wmo] {
            let Verdict::Forbidden { conflict } = verdict(&trace, &model) else {
                panic!("{} allows {log}", model.name())
            };
            assert_eq!(conflict.operations.len(), operations, "{log}: {conflict:?}");
            assert_eq!(conflict.finals.len(), finals, "{log}: {conflict:?}");
            assert!(conflict.message.contains(because), "{}", conflict.message);
            let alone = verdict(&conflict.part(&trace), &model);
            assert_eq!(alone.truth(), Some(false), "{log}: {conflict:?}");
        }
    }
}

/// A source that is an update counts as a store: its own source is no part of the conflict.
#[test]
fn updates_that_are_only_sources_count_as_stores() {
    let log = "0: M[0] := 1\n0: M[5] == 2\n0: M[1] == 0\n1: M[1] := 1\n1: M[0] == 0\n2: { M[5] == 0; M[5] := 1 }\n2: { M[5] == 1; M[5] := 2 }\n";
    let trace = read_one("axe", log);
    let Verdict::Forbidden { conflict } = verdict(&trace, &TraceModel::Sc) else {
        panic!("allowed")
    };
    let alone = conflict.part(&trace);
    assert_eq!(verdict(&alone, &TraceModel::Sc).truth(), Some(false), "{conflict:?}");
    assert!(!conflict.only_stores.is_empty(), "{conflict:?}");
    let loads = (0..alone.len()).filter(|i| alone.kind(*i).loads());
    for value in loads.map(|i| alone.loaded_value(i)) {
        let is_source = |i: usize| alone.kind(i).stores() && alone.stored_value(i) == value;
        assert!(value == 0 || (0..alone.len()).any(is_source), "{conflict:?}");
    }
}

/// A load that reads what its own thread stores later is named with its line.
#[test]
fn loads_of_later_stores_have_lines() {
    for (log, lines) in [
        ("thread,operation,address,value,stored\n0,update,x,7,7\n", &["line 2", "only it"][..]),
        ("thread,operation,address,value\n0,load,x,7\n0,store,x,7\n", &["line 2", "line 3"]),
    ] {
        for model in TraceModel::BUILT_IN {
            let Verdict::Forbidden { conflict } = verdict(&read_one("csv", log), &model) else {
                panic!("{} allows {log}", model.name())
            };
            for text in lines {
                assert!(conflict.message.contains(text), "{}", conflict.message);
            }
        }
    }
}

/// Store buffering with a synchronisation between store and load, in both threads: is it allowed?
#[test]
fn annotations_of_pairs_are_those_of_their_parts() {
    let head = "thread,operation,address,value,stored,fence,acquire,release,atomic\n";
    let pair = |load: &str, store: &str| {
        let one = |t: u32, mine: &str, own: &str, other: &str| {
            format!(
                "{t},store,{mine},1,,,,,\n{t},load,{own},0,,,{load},true\n{t},store,{own},1,,,{store},true\n{t},load,{other},0,,,,,\n"
            )
        };
        format!("{head}{}{}", one(0, "x", "z", "y"), one(1, "y", "w", "x"))
    };
    let update = |before: &str, marks: &str, after: &str| {
        let fence = |t: u32, kind: &str| match kind {
            "" => String::new(),
            kind => format!("{t},fence,,,,\"{kind}\",,,\n"),
        };
        let one = |t: u32, mine: &str, own: &str, other: &str| {
            format!(
                "{t},store,{mine},1,,,,,\n{}{t},update,{own},0,1,,{marks},\n{}{t},load,{other},0,,,,,\n",
                fence(t, before),
                fence(t, after)
            )
        };
        format!("{head}{}{}", one(0, "x", "z", "y"), one(1, "y", "w", "x"))
    };
    for (log, rvwmo, armv8) in [
        // Nothing orders the store before the load.
        (pair(",", ","), true, true),
        (pair("true,", ",true"), true, true),
        (pair("true,true", "true,true"), false, false),
        // RISC-V: the store-conditional orders both.
        (pair("true,", "true,true"), false, true),
        (update("", ",", ""), true, true),
        (update("", "true,true", ""), false, false),
        // An update is one operation of RISC-V, and a load and a store of Armv8.
        (update("w,w", ",", "r,r"), false, true),
        (update("w,w", ",", ""), true, true),
    ] {
        let trace = read_one("csv", &log);
        assert_eq!(verdict(&trace, &TraceModel::Rvwmo).truth(), Some(rvwmo), "{log}");
        if !log.contains("true,true\n") && !log.contains("true,true,true") {
            assert_eq!(verdict(&trace, &TraceModel::Armv8).truth(), Some(armv8), "{log}");
        }
        assert_eq!(verdict(&trace, &TraceModel::Tso).truth(), Some(false), "{log}");
    }
}

/// Two fences of a thread order nothing that none of them orders: a node of the first that collects
/// loads and stores must not carry stores into the second.
#[test]
fn partial_fences_do_not_add_up() {
    let kinds = ["r,r", "r,w", "r,rw", "w,r", "w,w", "w,rw", "rw,r", "rw,w", "rw,rw", "tso"];
    let orders = |kind: &str, before: char, after: char| match kind {
        "tso" => before == 'r' || after == 'w',
        kind => kind.split_once(',').is_some_and(|(b, a)| b.contains(before) && a.contains(after)),
    };
    for first in kinds {
        for second in kinds {
            for between in ["", "0,store,q,1,\n", "0,load,p,0,\n"] {
                // Store buffering, message passing (writer and reader), load buffering.
                for (own, other, before, after) in [
                    (["store,x,1", "load,y,0"], ["store,y,1", "load,x,0"], 'w', 'r'),
                    (["store,x,1", "store,y,1"], ["load,y,1", "load,x,0"], 'w', 'w'),
                    (["load,y,1", "load,x,0"], ["store,x,1", "store,y,1"], 'r', 'r'),
                    (["load,x,1", "store,y,1"], ["load,y,1", "store,x,1"], 'r', 'w'),
                ] {
                    let log = format!(
                        "thread,operation,address,value,fence\n0,{},\n0,fence,,,\"{first}\"\n{between}0,fence,,,\"{second}\"\n0,{},\n1,{},\n1,fence,,,full\n1,{},\n",
                        own[0], own[1], other[0], other[1]
                    );
                    // A part of the fences orders the access between with one of the two.
                    let chained = match between {
                        "" => false,
                        b => {
                            let kind = if b.contains("store") { 'w' } else { 'r' };
                            orders(first, before, kind) && orders(second, kind, after)
                        }
                    };
                    let ordered = orders(first, before, after) || orders(second, before, after);
                    let trace = read_one("csv", &log);
                    for model in [TraceModel::Rvwmo, TraceModel::Armv8, TraceModel::Wmo] {
                        let allowed = verdict(&trace, &model).truth();
                        let expected = Some(!(ordered || chained));
                        assert_eq!(allowed, expected, "{} {log}", model.name());
                    }
                }
            }
        }
    }
}

/// A weak acquire may overtake an earlier release, also in an update.
#[test]
fn weak_acquires_of_updates_are_weak() {
    let head = "thread,operation,address,value,stored,acquire,release\n";
    let riscv = format!(
        "{head}0,update,y,2,1,,true\n0,update,x,0,1,weak,\n1,load,x,1,,,\n1,store,y,2,,,true\n"
    );
    let arm = format!(
        "{head}0,update,y,0,1,weak,true\n0,load,x,0,,,\n1,update,x,0,1,weak,true\n1,load,y,0,,,\n"
    );
    assert_eq!(verdict(&read_one("csv", &riscv), &TraceModel::Rvwmo).truth(), Some(true));
    assert_eq!(verdict(&read_one("csv", &arm), &TraceModel::Armv8).truth(), Some(true));
    let strong = arm.replace("weak", "true");
    assert_eq!(verdict(&read_one("csv", &strong), &TraceModel::Armv8).truth(), Some(false));
}

/// The order of the stores to a location is that of the log, if the log has it.
#[test]
fn positions_in_memory_order_stores() {
    let head = "thread,operation,address,value,stored,commit\n";
    let allows = |rows: &str, expected: bool| {
        let trace = read_one("csv", &format!("{head}{rows}"));
        for model in TraceModel::BUILT_IN {
            assert_eq!(verdict(&trace, &model).truth(), Some(expected), "{} {rows}", model.name());
        }
    };
    allows("0,store,x,1,,2\n1,store,x,2,,1\n2,load,x,1,,\n2,load,x,2,,\n", false);
    allows("0,store,x,1,,2\n1,store,x,2,,1\n2,load,x,2,,\n2,load,x,1,,\n", true);
    allows("0,store,x,1,,5\n0,store,x,2,,3\n", false);
    allows("0,store,x,1,,3\n0,store,x,2,,5\n", true);
    allows("0,update,x,0,1,2\n1,update,x,1,2,1\n", false);
    allows("0,update,x,0,1,1\n1,update,x,1,2,2\n", true);
    allows("0,store,x,1,,2\n1,store,x,2,,1\n0,final,x,2,,\n", false);
    // Stores at one position, and stores without one, are not ordered.
    allows("0,store,x,1,,2\n1,store,x,2,,2\n2,load,x,1,,\n2,load,x,2,,\n", true);
    allows("0,store,x,1,,2\n1,store,x,2,,\n2,load,x,1,,\n2,load,x,2,,\n", true);
}

/// Traces of few values are decided by a run of a stronger model, without a choice of sources.
#[test]
fn locks_are_decided() {
    let mut log = String::new();
    // Three threads take a lock and write under it, one after the other, with the values 0 and 1.
    for round in 0..60 {
        let t = round % 3;
        log += &format!("{t}: {{ M[0] == 0; M[0] := 1 }}\n{t}: M[1] == {}\n", round % 2);
        log += &format!("{t}: M[1] := {}\n{t}: sync\n{t}: M[0] := 0\n", (round + 1) % 2);
    }
    let trace = read_one("axe", &log);
    for model in
        [TraceModel::Sc, TraceModel::Tso, TraceModel::Pso, TraceModel::Rvwmo, TraceModel::Armv8]
    {
        assert_eq!(verdict(&trace, &model).truth(), Some(true), "{}", model.name());
    }
}

/// Store buffering: a store, plain or by an update, and a load of an atomic instruction that stores
/// nothing. Expected: the verdict of `litmus --model rvwmo` on the same instructions.
#[test]
fn annotations_of_loads_without_stores_order() {
    let sw = "(0x00a5a023) mem MINE 0x00000001";
    let amoswap_rl = "(0x0aa5a2af) x5  0x0000000000000000 mem MINE mem MINE 0x00000001";
    let load = |word: &str| format!("({word}) x13 0x0000000000000000 mem OTHER");
    for (store, word, is_allowed) in [
        (sw, "0x100626af", true),          // lr.w
        (sw, "0x140626af", true),          // lr.w.aq
        (sw, "0x120626af", false),         // lr.w.rl
        (sw, "0x160626af", false),         // lr.w.aqrl
        (amoswap_rl, "0x100626af", true),  // lr.w
        (amoswap_rl, "0x140626af", false), // lr.w.aq: both annotations are of atomics
        (amoswap_rl, "0x00062683", true),  // lw
        (amoswap_rl, "0x340626af", true),  // lw.aq: as a plain load, without Zalasr
        (sw, "0x360626af", false),         // lw.aqrl
        (sw, "0x2ea626af", true),          // amocas.w.aqrl that fails: it does not release
        (amoswap_rl, "0x2ca626af", false), // amocas.w.aq that fails
    ] {
        let thread = |hart: u32, mine: &str, other: &str| {
            let line = |at: u32, text: &str| {
                let text = text.replace("MINE", mine).replace("OTHER", other);
                format!("core   {hart}: 3 0x00000000800000{at:02x} {text}\n")
            };
            line(0, "(0x00100513) x10 0x0000000000000001") + &line(4, store) + &line(8, &load(word))
        };
        let (x, y) = ("0x0000000080001000", "0x0000000080002000");
        let trace = read_one("spike", &(thread(0, x, y) + &thread(1, y, x)));
        let rvwmo = verdict(&trace, &TraceModel::Rvwmo);
        assert_eq!(rvwmo.truth(), Some(is_allowed), "{store}, {word}");
    }
}

/// Logs with a verdict that depends on initial values, final values, and annotations that few logs
/// have.
#[test]
fn initial_and_final_values_of_bytes_decide() {
    let every = [TraceModel::Sc, TraceModel::Tso, TraceModel::Pso, TraceModel::Rvwmo];
    let access = |thread: u32, operation: &str, address: &str, value: &str, more: &str| {
        format!(
            "{{\"thread\": {thread}, \"operation\": \"{operation}\", \"address\": {address}, \
             \"value\": {value}{more}}}\n"
        )
    };
    let byte = ", \"size\": 1";
    let finally = |value: &str| {
        format!("{{\"operation\": \"final\", \"address\": 64, \"size\": 1, \"value\": {value}}}\n")
    };
    // Two stores of one byte, of which no load needs either; the final value orders them.
    let two = access(0, "store", "64", "1", byte)
        + &access(1, "store", "64", "2", byte)
        + &access(2, "load", "64", "0", ", \"size\": 2");
    // A byte with an unknown initial value, and a neighbour that is 0.
    let beside = |loaded: &str| {
        "{\"operation\": \"initial\", \"address\": 65, \"size\": 1, \"value\": \"?\"}\n".to_string()
            + &access(0, "load", "64", loaded, byte)
            + &access(1, "load", "64", "5", ", \"size\": 2")
    };
    // A required final value of a location that nobody stores to.
    let unknown = |value: &str| {
        "{\"operation\": \"initial\", \"address\": \"x\", \"value\": \"?\"}\n".to_string()
            + &access(0, "load", "\"x\"", value, "")
            + "{\"operation\": \"final\", \"address\": \"x\", \"value\": 7}\n"
    };
    let never_loaded = "{\"operation\": \"initial\", \"address\": \"x\", \"value\": \"?\"}\n"
        .to_string()
        + &access(0, "store", "\"y\"", "1", "")
        + "{\"operation\": \"final\", \"address\": \"x\", \"value\": 7}\n";
    for (log, is_allowed) in [
        (two.clone() + &finally("1"), true),
        (two.clone() + &finally("2"), true),
        (two.clone() + &finally("0"), false),
        (two + &finally("3"), false),
        (beside("5"), false),
        (unknown("7"), true),
        (unknown("6"), false),
        (never_loaded, true),
    ] {
        for model in &every {
            let found = verdict(&read_one("json", &log), model).truth();
            assert_eq!(found, Some(is_allowed), "{}: {log}", model.name());
        }
    }
    // Store buffering with stores that acquire: they come before the loads in RISC-V.
    let acquire = ", \"acquire\": true";
    let log = access(0, "store", "\"x\"", "1", acquire)
        + &access(0, "load", "\"y\"", "0", "")
        + &access(1, "store", "\"y\"", "1", acquire)
        + &access(1, "load", "\"x\"", "0", "");
    assert_eq!(verdict(&read_one("json", &log), &TraceModel::Rvwmo).truth(), Some(false));
    assert_eq!(verdict(&read_one("json", &log), &TraceModel::Tso).truth(), Some(true));
}
