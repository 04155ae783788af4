//! Readers of logs: operations of good logs, places of errors in damaged ones, and that no damage
//! makes a reader panic.

use mu_base::Diagnostic;
use mu_base::random::Random;
use mu_traces::readers::{Collected, ReadOptions, TraceReader, reader_for, readers};
use mu_traces::{Initial, Trace, TraceModel};

fn reader(name: &str) -> &'static dyn TraceReader {
    *readers().iter().find(|r| r.name() == name).unwrap_or_else(|| panic!("no reader {name}"))
}

fn read_bytes(name: &str, log: &[u8], repair: bool) -> Result<Collected, Diagnostic> {
    let mut collected = Collected::default();
    let options = ReadOptions { file: "log".into(), repair };
    let mut bytes = log;
    reader(name).read(&mut bytes, &options, &mut collected).map(|()| collected)
}

/// Returns the operations of a trace, a line each: thread, operation, times.
fn text(trace: &Trace) -> Vec<String> {
    let mut out = Vec::new();
    for thread in 0..trace.threads.len() {
        for i in trace.range(thread) {
            let o = trace.operation(i);
            let time = |t: Option<u64>| t.map_or(String::new(), |t| t.to_string());
            let times = match (o.begin, o.end, o.commit) {
                (None, None, None) => String::new(),
                (begin, end, None) => format!(" @{}:{}", time(begin), time(end)),
                (.., commit) => format!(" commit {}", time(commit)),
            };
            let size = if o.size == 0 { String::new() } else { format!(" /{}", o.size) };
            out.push(format!("{}: {}{size}{times}", trace.threads[thread], trace.text(i)));
        }
    }
    out
}

fn read_one(name: &str, log: &str) -> Trace {
    let read = read_bytes(name, log.as_bytes(), false).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    assert_eq!(read.traces.len(), 1, "{name}");
    read.traces.into_iter().next().unwrap()
}

/// Checks that a log is recognised, and that its single trace has the operations.
fn expect(name: &str, log: &str, expected: &[&str]) {
    assert_eq!(reader_for("log", log).map(|r| r.name()), Some(name));
    assert_eq!(text(&read_one(name, log)), expected, "{name}");
}

/// Checks the place and message of the error of a log, and that repair skips it.
fn refuse(name: &str, log: &str, place: (u64, usize), message: &str) {
    let Err(error) = read_bytes(name, log.as_bytes(), false) else {
        panic!("{name}: no error in {log:?}")
    };
    let line = error.line.as_ref().unwrap_or_else(|| panic!("{name}: no place: {error:?}"));
    assert_eq!((line.number, line.column), place, "{name}: {error:?}");
    assert_eq!(line.file, "log");
    assert_eq!(log.lines().nth(place.0 as usize - 1), Some(line.text.as_str()));
    assert!(error.message.contains(message), "{name}: {}", error.message);
    assert_eq!(error.exit_code(), 2);
    let repaired = read_bytes(name, log.as_bytes(), true).expect("repair skips errors");
    assert!(repaired.skipped.iter().any(|e| e.message == error.message), "{name}");
}

const TABLE: &str = "# message passing
thread,operation,address,value,begin,end,fence
0,store,x,1,10,,
0,fence,,,,,\"w,w\"
0,store,y,1,20,,
1,load,y,1,15,30,
1,load,x,0,31,40,
";

#[test]
fn table() {
    expect(
        "csv",
        TABLE,
        &[
            "0: M[x] := 1 @10:",
            "0: fence w,w",
            "0: M[y] := 1 @20:",
            "1: M[y] == 1 @15:30",
            "1: M[x] == 0 @31:40",
        ],
    );
    assert_eq!(read_one("csv", TABLE).name.as_deref(), Some("message passing"));
    let log = "hart;op;addr;data;new;bytes;aq;rl\n7;amo;0x10;1;2;4;1;0\n7;st;16;3;;4;0;1\n";
    expect(
        "csv",
        log,
        &["7: { M[0x10] == 1; M[0x10] := 2 } acquire /4", "7: M[0x10] := 3 release /4"],
    );
}

#[test]
fn table_with_several_traces() {
    let log = "trace,thread,operation,address,value\nA,0,store,x,1\nB,0,store,x,2\nB,1,load,x,2\n";
    let read = read_bytes("csv", log.as_bytes(), false).unwrap();
    let names: Vec<String> = read.traces.iter().map(Trace::title).collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!(read.traces[1].len(), 2);
    let log = "thread,operation,address,value\n0,store,x,1\ncheck\n# two\n1,load,x,0\n,final,x,1\n";
    let read = read_bytes("csv", log.as_bytes(), false).unwrap();
    let names: Vec<String> = read.traces.iter().map(Trace::title).collect();
    assert_eq!(names, ["1", "two"]);
    assert_eq!(read.traces[1].finals.len(), 1);
}

/// Initial values, times, and values without operations belong to one trace.
#[test]
fn traces_of_a_log_are_independent() {
    for log in [
        "trace,thread,operation,address,value\na,,initial,x,5\na,0,load,x,5\nb,,initial,x,7\nb,0,load,x,7\n",
        "thread,operation,address,value\n,initial,x,5\n0,load,x,5\ncheck\n,initial,x,7\n0,load,x,7\n",
        "trace,thread,operation,address,value,begin\na,0,load,x,0,50\nb,0,load,x,0,10\n",
        "trace,thread,operation,address,value\na,0,store,x,1\nb,,initial,x,7\nc,0,load,x,0\n",
    ] {
        let read = read_bytes("csv", log.as_bytes(), false);
        let read = read.unwrap_or_else(|e| panic!("{}: {log}", e.message));
        assert_eq!(read.traces.len(), 2, "{log}");
        for trace in &read.traces {
            let (options, budget) =
                (mu_traces::DecisionOptions::default(), mu_base::Budget::default());
            let verdict = mu_traces::decide(trace, &TraceModel::BUILT_IN[0], &options, &budget);
            assert_eq!(verdict.expect("it decides").truth(), Some(true), "{log}");
        }
    }
}

/// Returns the verdict of a table with one trace under sequential consistency.
fn table_verdict(log: &str) -> Option<bool> {
    let (options, budget) = (mu_traces::DecisionOptions::default(), mu_base::Budget::default());
    mu_traces::decide(&read_one("csv", log), &TraceModel::Sc, &options, &budget)
        .expect("ok")
        .truth()
}

#[test]
fn initial_values_before_the_first_name_belong_to_its_trace() {
    let log = "trace,thread,operation,address,value\n,,initial,x,5\na,0,load,x,5\n";
    assert_eq!(table_verdict(log), Some(true));
    assert_eq!(read_one("csv", log).title(), "a");
}

/// An unknown initial value of one byte leaves the bytes behind it at 0.
#[test]
fn initial_values_are_as_wide_as_the_log_says() {
    for place in ["64", "x"] {
        for (value, initial, allowed) in
            [(256, "?", false), (255, "?", true), (5, "5", true), (6, "5", false)]
        {
            let head = "thread,operation,address,value,size";
            let log = format!("{head}\n,initial,{place},{initial},1\n0,load,{place},{value},4\n");
            assert_eq!(table_verdict(&log), Some(allowed), "{log}");
        }
    }
}

#[test]
fn table_errors() {
    let head = "thread,operation,address,value\n";
    let log = |row: &str| format!("{head}{row}\n");
    refuse("csv", &log("0,store,x"), (2, 10), "4 columns, this row has 3");
    refuse("csv", &log("0,jump,x,1"), (2, 3), "found `jump`");
    refuse("csv", &log("0,load,x,one"), (2, 10), "expected a value, found `one`");
    refuse("csv", &log("0,load,x,"), (2, 10), "needs a value in `value`");
    refuse("csv", &log(",load,x,1"), (2, 1), "needs a value in `thread`");
    refuse("csv", &log("0,load,x,18446744073709551616"), (2, 10), "more than 64 bits");
    refuse("csv", &log("é,load,x,y"), (2, 10), "found `y`");
    refuse("csv", "thread,operation,adress\n", (1, 18), "there is no column `adress`");
    refuse("csv", "thread,address\n", (1, 1), "no column `operation`");
    refuse("csv", "thread,thread,operation\n", (1, 8), "occurs twice");
    refuse("csv", "thread,operation,address,value,size\n0,store,x,256,1\n", (2, 11), "1 byte");
    refuse("csv", "thread,operation,fence\n0,fence,strong\n", (2, 9), "a kind of fence");
    let atomic = "thread,operation,address,value,atomic\n0,load,x,0,1\n";
    refuse("csv", atomic, (2, 1), "no atomic store completes");
    refuse("csv", &format!("{atomic}0,store,y,1,1\n"), (3, 1), "of line 2");
}

#[test]
fn json_lines() {
    let log = r#"{"thread": 0, "operation": "store", "address": "x", "value": 1, "release": true}
{"thread": 1, "operation": "load", "address": "x", "value": 1, "acquire": "weak", "atomic": true}
{"thread": 1, "operation": "store", "address": "x", "value": 3, "atomic": true}
{"thread": "one", "operation": "fence", "fence": "r,rw"}
{"operation": "final", "address": "x", "value": 3}
{"operation": "initial", "address": 64, "value": 9}
"#;
    expect(
        "json",
        log,
        &["0: M[x] := 1 release", "1: { M[x] == 1; M[x] := 3 } acquire", "one: fence r,rw"],
    );
    let trace = read_one("json", log);
    assert_eq!(trace.finals[0].value, 3);
    assert_eq!(trace.locations[1].initial, Initial::Value(9));
    refuse("json", "{\"thread\": 0,\n", (1, 14), "expected `\"`, found the end of the line");
    refuse("json", "{\"thread\": {}}\n", (1, 12), "expected a number");
    refuse("json", "{\"thread\": 0, \"thread\": 1}\n", (1, 16), "occurs twice");
    refuse("json", "{\"colour\": 0}\n", (1, 3), "no column `colour`");
    refuse("json", "{\"thread\": 0} x\n", (1, 15), "expected the end of the line");
    let negative = "{\"thread\":0,\"operation\":\"load\",\"address\":1,\"value\":-1}\n";
    refuse("json", negative, (1, 52), "expected a value, found `-1`");
}

const TRACEGEN: &str = "0: store-req 5 0x80000008 #1 @65
1: load-req 0x80000008 #1 @66
 1: store-req          6 0x0080000010 #2 @67
0: resp 0 #1 @71
1: resp 0 #2 @80
1: resp 5 #1 @90
0: fence-req @99
0: fence-resp @104
0: load-reserve-req 0x80000010 #1 @110
0: resp 6 #1 @115
0: store-cond-req 8 0x80000010 #2 @120
1: swap-req 7 0x80000008 #1 @121
0: resp 0 #2 @125
1: resp 5 #1 @130
1: load-reserve-req 0x80000008 #0 @140
1: resp 7 #0 @144
1: store-cond-req 9 0x80000008 #1 @150
1: resp 1 #1 @151
FINISHED 2
FINISHED 2
";

#[test]
fn tracegen() {
    expect(
        "tracegen",
        TRACEGEN,
        &[
            "0: M[0x80000008] := 5 @65:",
            "0: sync @99:104",
            "0: { M[0x80000010] == 6; M[0x80000010] := 8 } @110:115",
            "1: M[0x80000008] == 5 @66:90",
            "1: M[0x80000010] := 6 @67:",
            "1: { M[0x80000008] == 5; M[0x80000008] := 7 } @121:",
            "1: M[0x80000008] == 7 @140:144",
        ],
    );
}

#[test]
fn tracegen_errors() {
    refuse("tracegen", "0: load-req 8 #1 @1\n0: load-req 9 #1 @2\n", (2, 16), "tag 1 of thread 0");
    refuse("tracegen", "0: resp 8 #1 @1\n", (1, 12), "no request with tag 1");
    refuse("tracegen", "0: load-req 8 #1 @5\n0: resp 8 #1 @4\n", (2, 9), "precedes its request");
    refuse("tracegen", "0: load-req 8 #1 @1\n", (1, 1), "has no response");
    refuse("tracegen", "0: fence-req @1\n", (1, 1), "has no response");
    refuse("tracegen", "0: fence-resp @1\n", (1, 1), "no fence");
    refuse("tracegen", "0: load-req 8 1 @1\n", (1, 15), "expected `#`, found `1`");
    refuse("tracegen", "0: jump 8\n", (1, 4), "expected a command");
    refuse("tracegen", "0: store-req 99999999999999999999 8 #1 @1\n", (1, 14), "64 bits");
    refuse("tracegen", "x: load-req 8 #1 @1\n", (1, 1), "number of a thread");
    // A store without a response stays.
    assert_eq!(text(&read_one("tracegen", "0: store-req 1 8 #1 @1\n")), ["0: M[0x8] := 1 @1:"]);
}

const SPIKE: &str = "core   0: 0x0000000080000000 (0x00001597) auipc   a1, 0x1
core   0: 3 0x0000000080000000 (0x00001597) x11 0x0000000080002000
core   0: 3 0x0000000080000004 (0x00a5b023) mem 0x0000000080002000 0x0000000000000007
core   0: 3 0x0000000080000008 (0x0330000f)
core   1: 3 0x0000000080000010 (0x0005b503) x10 0x0000000000000007 mem 0x0000000080002000
core   1: 3 0x0000000080000014 (0x4188) x10 0xfffffffffffffff7 mem 0x0000000080002008
core   1: exception trap_machine_ecall, epc 0x0000000080000018
core   0: 3 0x000000008000000c (0x1006252f) x10 0x0000000000000009 mem 0x0000000080002010
core   0: 3 0x0000000080000010 (0x1ab6252f) x10 0x0000000000000000 mem 0x0000000080002010 0x00000005
core   0: 3 0x0000000080000014 (0x1ab6252f) x10 0x0000000000000001
core   1: 3 0x0000000080000018 (0x04b6252f) x10 0x0000000000000005 mem 0x0000000080002010 mem 0x0000000080002010 0x00000006
core   1: 3 0x000000008000001c (0x0ab6202f) mem 0x0000000080002010 mem 0x0000000080002010 0x00000000
core   1: 3 0x0000000080000020 (0x0005b003) mem 0x0000000080002000
";

#[test]
fn spike() {
    expect(
        "spike",
        SPIKE,
        &[
            "0: M[0x80002000] := 7 /8",
            "0: sync",
            "0: { M[0x80002010] == 9; M[0x80002010] := 5 } release /4",
            "1: M[0x80002000] == 7 /8",
            "1: M[0x80002008] == 4294967287 /4",
            "1: { M[0x80002010] == 5; M[0x80002010] := 6 } acquire /4",
            "1: { M[0x80002010] == ?; M[0x80002010] := 0 } release /4",
            "1: M[0x80002000] == ? /8",
        ],
    );
    assert!(read_one("spike", SPIKE).locations.iter().all(|l| l.initial == Initial::Unknown));
}

#[test]
fn spike_errors() {
    let log = |rest: &str| format!("core   0: 3 0x0000000080000000 {rest}\n");
    refuse("spike", &log("(0x0005b503) x10 0x7"), (1, 33), "1 address to load from");
    refuse("spike", &log("(0x0005b503) mem 0x8"), (1, 33), "does not have the register");
    refuse("spike", &log("(0x00a5b023) mem 0x8 0x07"), (1, 33), "stores 8 bytes");
    refuse("spike", &log("(0x00a5b023) mem 0x8 0x123"), (1, 53), "hexadecimal digits");
    refuse("spike", &log("(0x00b50533) x10 0x7 mem 0x8"), (1, 33), "unknown form");
    refuse("spike", &log("(0x02056007) mem 0x8"), (1, 33), "a vector load");
    refuse("spike", &log("(0xzz) x10 0x7"), (1, 33), "expected an instruction");
    refuse("spike", &log("(0x0005b503 x10"), (1, 44), "expected `)`");
    refuse("spike", &log("(0x0005b503) x10 0x7 what 0x8"), (1, 53), "expected a register");
    refuse("spike", &log("(0x0005b503) x10 0x7 mem 0x11112222333344445"), (1, 57), "64 bits");
    refuse("spike", "bore   0: 3 0x80 (0x0005b503)\n", (1, 1), "not a line of Spike");
}

const RVFI: &str = "hart=0 rvfi_order=1 rvfi_insn=0x00a5b023 rvfi_trap=0 rvfi_mem_addr=0x80 rvfi_mem_rmask=0 rvfi_mem_wmask=0xff rvfi_mem_wdata=0x7 rvfi_rd_addr=0
hart=1 rvfi_order=1 rvfi_insn=0x0005a503 rvfi_mem_addr=0x80 rvfi_mem_rmask=0x0f rvfi_mem_rdata=0x7
hart=0 rvfi_order=2 rvfi_insn=0x0330000f rvfi_mem_addr=0
hart=0 rvfi_order=3 rvfi_insn=0x0005a503 rvfi_mem_addr=0x80 rvfi_mem_rmask=0xf0 rvfi_mem_rdata=0x0000000900000007
hart=0 rvfi_order=4 rvfi_insn=0x04b6252f rvfi_mem_addr=0x90 rvfi_mem_rmask=0xf rvfi_mem_rdata=1 rvfi_mem_wmask=0xf rvfi_mem_wdata=2
hart=0 rvfi_order=5 rvfi_insn=0x0005a503 rvfi_trap=1 rvfi_mem_addr=0x80 rvfi_mem_rmask=0xf rvfi_mem_rdata=3
";

#[test]
fn rvfi() {
    let expected = [
        "0: M[0x80+0:8] := 7 /8",
        "0: sync",
        "0: M[0x80+4:4] == 9 /4",
        "0: { M[0x90] == 1; M[0x90] := 2 } acquire /4",
        "1: M[0x80+0:4] == 7 /4",
    ];
    expect("rvfi", RVFI, &expected);
    let table = "hart,rvfi_insn,rvfi_mem_addr,rvfi_mem_rmask,rvfi_mem_wmask,rvfi_mem_rdata,rvfi_mem_wdata,rvfi_csr_x
3,0x00a5b023,0x80,0,255,0,8,1
";
    expect("rvfi", table, &["3: M[0x80] := 8 /8"]);
    // The compressed load of 8 bytes in RV64 is one of a float in RV32, as the mask says.
    let float = "rvfi_insn=0x6188 rvfi_mem_addr=0x80 rvfi_mem_rmask=0xf rvfi_mem_rdata=7\n";
    expect("rvfi", float, &["0: M[0x80] == 7 /4"]);
    expect("rvfi", &float.replace("0xf", "0xff"), &["0: M[0x80] == 7 /8"]);
    let json = "{\"hart\": 2, \"rvfi_insn\": \"0x00a5a023\", \"rvfi_mem_addr\": 128, \"rvfi_mem_wmask\": 15, \"rvfi_mem_wdata\": 4}\n";
    expect("rvfi", json, &["2: M[0x80] := 4 /4"]);
    let engine = "Trap: False, PCWD: 0x0000000080000004, RD: 10, RWD: 0x0000000000000001, MA: 0x0000000080001000, MWM: 0b00000000, MRD: 0x0000000000000001, MRM: 0b00001111 I: 0x0005a503 M XL:64 (lw a0, a1[0])\nhalt token\n";
    expect("rvfi", engine, &["0: M[0x80001000] == 1 /4"]);
    // Without the signals of loads, a loaded value is that of the target register.
    let short = |written: &str, value: u64, mask: &str, code: &str| {
        format!(
            "Trap: False, PCWD: 0x0000000080000004, RD: 10, RWD: {written}, MA: 0x0000000080001000, MWD: 0x{value:016x}, MWM: 0b{mask}, I: {code} M XL:64 (x)\n"
        )
    };
    let engine = [
        short("0x0000000000000007", 0, "00000000", "0x0005a503"),
        short("0xfffffffffffffffe", 2, "00001111", "0x04b6252f"),
        short("0x0000000000000000", 5, "11111111", "0x00a5b023"),
        short("0x0000000000000000", 0, "00000000", "0x0005a003"),
        short("0x0000000000000001", 0, "00000000", "0x18b6252f"),
        short("0x0000000000000000", 0, "00000000", "0x00000013"),
    ];
    let expected = [
        "0: M[0x80001000+0:4] == 7 /4",
        "0: { M[0x80001000+0:4] == 4294967294; M[0x80001000+0:4] := 2 } acquire /4",
        "0: M[0x80001000+0:8] := 5 /8",
        "0: M[0x80001000+0:4] == ? /4",
    ];
    expect("rvfi", &engine.concat(), &expected);
}

#[test]
fn rvfi_errors() {
    let log = |more: &str| format!("rvfi_insn=0x0005a503 rvfi_mem_addr=0x80 {more}\n");
    refuse("rvfi", &log("rvfi_mem_rmask=0x5 rvfi_mem_rdata=1"), (1, 56), "in a row");
    refuse("rvfi", &log("rvfi_mem_rmask=0xff rvfi_mem_rdata=1"), (1, 11), "masks have 8 bytes");
    refuse("rvfi", &log("rvfi_mem_rmask=0xf"), (1, 56), "no value in `rvfi_mem_rdata`");
    refuse("rvfi", &log("rvfi_mem_rmask=0xg"), (1, 56), "a number in `rvfi_mem_rmask`");
    refuse("rvfi", &log("what"), (1, 41), "expected `name=value`");
    refuse("rvfi", &log("what=3"), (1, 41), "no signal of RVFI");
    refuse("rvfi", &log(""), (1, 11), "no address");
    let order = "rvfi_order=2 rvfi_insn=0x13 rvfi_mem_addr=0\n";
    refuse("rvfi", &order.repeat(2), (2, 12), "does not grow");
}

const WHISPER: &str = "hart=0 time=90 step 1 11
time=100 hart=0 mread 12 0x80001000 8 0x0 e
hart=1 time=101 mbinsert 9 0x80001000 4 0x8 0 0
hart=1 time=102 mbinsert 10 0x80001004 4 0x9 0 0
hart=0 time=103 step 1 12
hart=1 time=104 step 1 9
hart=1 time=105 step 1 10
hart=1 time=140 mbwrite 0x80001000 0x00000000000000000000000900000008 0x00ff
hart=1 time=150 mbbypass 11 0x80001008 8 0x1 0 0 1
hart=1 time=151 step 1 11
hart=0 time=160 mread 14 0x80001008 8 0x1 0 0 1
hart=0 time=150 mread 13 0x80001000 4 0x8 0 0 1
hart=0 time=161 step 1 13
hart=0 time=162 step 1 14
hart=0 time=163 mread 15 0x80001010 8 0x1 0 0 1
hart=0 time=170 mbbypass 16 0x80001018 4 0x3 0 0 1
hart=0 time=170 mread 16 0x80001018 4 0x2 0 0 1
hart=0 time=171 step 1 16
";

#[test]
fn whisper() {
    expect(
        "whisper",
        WHISPER,
        &[
            "0: M[0x80001000+0:8] == 0 /8",
            "0: M[0x80001000+0:4] == 8 /4",
            "0: M[0x80001008] == 1 /8",
            "0: { M[0x80001018] == 2; M[0x80001018] := 3 } /4 commit 170",
            "1: M[0x80001000+0:4] := 8 /4 commit 140",
            "1: M[0x80001000+4:4] := 9 /4 commit 140",
            "1: M[0x80001008] := 1 /8 commit 150",
        ],
    );
    // Without steps, all accesses count; a vector access is split.
    let log = "time=1 mread 1 0x10 16 0x00000000000000020000000000000001\n";
    expect("whisper", log, &["0: M[0x10] == 1 /8", "0: M[0x18] == 2 /8"]);
}

#[test]
fn whisper_errors() {
    let insert = "time=1 mbinsert 9 0x80 4 0x8\n";
    refuse("whisper", "time=1 mread 1 0x10 8\n", (1, 22), "expected a value");
    refuse("whisper", "time=1 mread 1 0x10 0 0x0\n", (1, 21), "1 to 4096 bytes");
    refuse("whisper", "time=1 mread 1 0x10 1 0x1234\n", (1, 23), "more than 1 bytes");
    refuse("whisper", "mbinsert 9 0x80 4 0x8\n", (1, 1), "needs `time=N`");
    refuse("whisper", "time=1 melt 9\n", (1, 8), "a command of Whisper");
    refuse("whisper", "core=1 mread 9\n", (1, 1), "`hart=N`");
    refuse(
        "whisper",
        &format!("{insert}time=2 mbwrite 0x80 0x00000009 0x0f\n"),
        (2, 21),
        "another value",
    );
    refuse(
        "whisper",
        &format!("{insert}time=2 mbwrite 0x80 0x0008 0x03\n"),
        (2, 16),
        "only a part",
    );
    refuse("whisper", "time=2 mbwrite 0x80 0x0008 0x03\n", (1, 16), "no store in the merge buffer");
}

const GEM5: &str = "gem5 Simulator System.  http://gem5.org
warn: something
   1000: system.cpu0: A0 T0 : 0x80000010 @main+8    : sd a0, 0(a1)              : MemWrite :  D=0x0000000000000001 A=0x80002000
   1200: system.cpu0: A0 T0 : 0x80000014 @main+12    : fence rw, rw              : MemBarrier :   flags=(IsSerializeAfter)
   1500: system.cpu1: A0 T0 : 0x80000020 @main+4    : lw a2, 0(a1)              : MemRead :  D=0xfffffffffffffff1 A=0x80002008  FetchSeq=3
   1600: system.cpu1 T0 : @main+20    : c_ldsp ra, 8(sp)          : MemRead :  D=0x0000000000000001 A=0x80002000
   1700: system.cpu1 T0 : @main+24    : addi a0, a0, 1            : IntAlu :  D=0x0000000000000002
   1800: system.cpu2: T0 : 0x11be @f+26. 1 :   XCHG : ldstl   t1, DS:[rax] : MemRead :  D=0x0000000000000001 A=0x52a0
   1800: system.cpu2: T0 : 0x11be @f+26. 2 :   XCHG : stul   rbx, DS:[rax] : MemWrite :  D=0x0000000000000005 A=0x52a0
";

#[test]
fn gem5() {
    expect(
        "gem5",
        GEM5,
        &[
            "system.cpu0: M[0x80002000] := 1 /8",
            "system.cpu0: sync",
            "system.cpu1: M[0x80002008] == 4294967281 /4",
            "system.cpu1: M[0x80002000] == 1 /8",
            "system.cpu2: { M[0x52a0] == 1; M[0x52a0] := 5 }",
        ],
    );
    let log = |code: &str| format!("10: system.cpu: T0 : 0x8 @f : {code}\n");
    refuse("gem5", &log("amoswap_w a0, a1, (a2) : MemWrite : D=0x1 A=0x8"), (1, 31), "amoswap_w");
    refuse("gem5", &log("ld a0, 0(a1) : MemRead : A=0x8"), (1, 46), "no value");
    refuse(
        "gem5",
        &log("ld a0, 0(a1) : MemRead : D=0x11112222333344445 A=0x8"),
        (1, 58),
        "64 bits",
    );
    // Atomic operations of Arm: their loads or stores have no value.
    for code in
        ["ldset x0, x1, [x2]", "stclr x0, [x2]", "ldumaxal x0, x1, [x2]", "stlxp w0, x1, x2, [x3]"]
    {
        let name = code.split(' ').next().unwrap();
        refuse("gem5", &log(&format!("{code} : MemWrite : D=0x1 A=0x8")), (1, 31), name);
    }
    // The micro-operation `ld` of x86 has any size.
    expect(
        "gem5",
        &log("MOV_R_M : ld   r11d, DS:[rbx] : MemRead :  D=0x7 A=0x80"),
        &["system.cpu: M[0x80] == 7"],
    );
    // Barriers of Arm by name and by number.
    for (code, fence) in [
        ("dmb", "sync"),
        ("dmb   ish", "sync"),
        ("dmb oshld", "fence r,rw"),
        ("dsb ishst", "fence w,rw"),
        ("dmb #0xa", "fence w,w"),
        ("dsb   #15", "sync"),
        ("dmb #9", "fence r,rw"),
    ] {
        let expected = format!("system.cpu: {fence}");
        expect("gem5", &log(&format!("{code} : MemBarrier : ")), &[&expected]);
    }
    for code in ["dmb full", "dmb ishsy", "dsb #16", "dmb ish ld"] {
        refuse("gem5", &log(&format!("{code} : MemBarrier : ")), (1, 31), "no barrier of Arm");
    }
    refuse("gem5", "1x0: system.cpu: ld : MemRead : D=0x1 A=0x8\n", (1, 23), "no processor");
}

/// Logs of all formats of this file.
const LOGS: [(&str, &str); 6] = [
    ("csv", TABLE),
    ("tracegen", TRACEGEN),
    ("spike", SPIKE),
    ("rvfi", RVFI),
    ("whisper", WHISPER),
    ("gem5", GEM5),
];

#[test]
fn empty_logs_have_no_traces() {
    for reader in readers() {
        for log in ["", "\n\n", "\u{feff}"] {
            let read = read_bytes(reader.name(), log.as_bytes(), false);
            let traces = read.unwrap_or_else(|e| panic!("{}: {e:?}", reader.name())).traces;
            assert!(traces.iter().all(Trace::is_empty), "{}", reader.name());
        }
    }
}

#[test]
fn text_that_is_not_utf8_has_a_place() {
    for (name, log) in LOGS {
        let mut bytes = log.as_bytes().to_vec();
        let end = bytes.iter().position(|b| *b == b'\n').unwrap();
        bytes.insert(end, 0xff);
        let error = read_bytes(name, &bytes, false).err().unwrap_or_else(|| panic!("{name}"));
        let line = error.line.unwrap();
        let column = log.lines().next().unwrap().chars().count() + 1;
        assert_eq!((line.number, line.column), (1, column), "{name}");
        assert!(error.message.contains("not UTF-8"), "{name}: {}", error.message);
        let repaired = read_bytes(name, &bytes, true).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(!repaired.skipped.is_empty());
    }
}

#[test]
fn lines_have_a_limit() {
    let mut log = "thread,operation,address,value\n0,store,x,1\n".to_string();
    log.push_str(&"0".repeat(2 << 20));
    let error = read_bytes("csv", log.as_bytes(), false).unwrap_err();
    assert!(error.message.contains("at most 1048576 bytes"), "{}", error.message);
    assert_eq!(error.line.unwrap().number, 3);
    assert_eq!(read_bytes("csv", log.as_bytes(), true).unwrap().traces.len(), 1);
}

/// Cuts and edits logs at random. No reader panics, every error has a line of the log, and repair
/// reads to the end.
#[test]
fn damaged_logs() {
    let seed = std::env::var("MU_CHECK_SEED").map_or(20260101, |s| s.parse().unwrap());
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let (mut errors, mut successes) = (0, 0);
    for round in 0..1500 {
        let (name, log) = LOGS[round % LOGS.len()];
        let mut bytes = log.as_bytes().to_vec();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            match random.below(5) {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] = random.next_u64() as u8,
                2 => bytes[at] = b" 0x9:#@\n,="[random.below(10)],
                3 => {
                    bytes.remove(at);
                    bytes.push(b'\n');
                }
                _ => {
                    let to = (at + random.below(40)).min(bytes.len());
                    let part = bytes[at..to].to_vec();
                    let target = random.below(bytes.len());
                    bytes.splice(target..target, part);
                }
            }
        }
        match read_bytes(name, &bytes, false) {
            Ok(_) => successes += 1,
            Err(error) => {
                errors += 1;
                let line = error.line.unwrap_or_else(|| panic!("{name}: no line"));
                let lines = bytes.split(|b| *b == b'\n').count() as u64;
                assert!((1..=lines).contains(&line.number) && line.column > 0, "{name}");
            }
        }
        read_bytes(name, &bytes, true).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    assert!(errors > 100 && successes > 100, "{errors} errors, {successes} successes");
}

/// A value that no operation explains is a forbidden trace in every format, not an error of the
/// log, and no repair removes it.
#[test]
fn impossible_values_are_forbidden_in_every_format() {
    let logs = [
        ("axe", "0: M[0] == 5\n1: M[0] := 1\n"),
        ("axe", "0: M[0] == 1\n0: M[0] := 1\n"),
        ("axe", "0: { M[0] == 1; M[0] := 1 }\n"),
        ("axe", "0: M[0] := 1\nfinal M[0] == 5\n"),
        ("axe", "0: M[0] := 1\nfinal M[0] == 0\nfinal M[0] == 1\n"),
        ("csv", "thread,operation,address,value\n0,load,0,5\n1,store,0,1\n"),
        ("csv", "thread,operation,address,value\n0,load,0,1\n0,store,0,1\n"),
        ("csv", "thread,operation,address,value\n0,store,0,1\n0,final,0,5\n"),
    ];
    for (name, log) in logs {
        for repair in [false, true] {
            let read = read_bytes(name, log.as_bytes(), repair).expect("no error");
            assert!(read.skipped.is_empty() && read.traces.len() == 1, "{log}");
            for model in TraceModel::BUILT_IN {
                let options = mu_traces::DecisionOptions::default();
                let budget = mu_base::Budget::default();
                let verdict = mu_traces::decide(&read.traces[0], &model, &options, &budget);
                assert_eq!(verdict.expect("it decides").truth(), Some(false), "{log}");
            }
        }
    }
}

/// Stores of a value that another one has, or of the initial value, are allowed by every model.
#[test]
fn repeated_stores_are_allowed() {
    for log in ["0: M[0] := 1\n0: M[0] := 1\n", "0: M[0] := 0\n", "0: M[0] := 0\n1: M[0] == 0\n"] {
        let trace = read_one("axe", log);
        for model in TraceModel::BUILT_IN {
            let verdict = mu_traces::decide(
                &trace,
                &model,
                &mu_traces::DecisionOptions::default(),
                &mu_base::Budget::default(),
            );
            assert_eq!(verdict.expect("it decides").truth(), Some(true), "{log}");
        }
    }
}

/// Times of a table are those of a thread that goes on: as in the text of Axe.
#[test]
fn times_of_tables_grow() {
    let head = "thread,operation,address,value,begin,end\n";
    refuse("csv", &format!("{head}1,load,y,1,100,90\n0,store,y,1,,\n"), (2, 16), "not after");
    refuse("csv", &format!("{head}1,load,y,0,100,110\n1,load,x,0,95,120\n"), (3, 12), "before 100");
    refuse("csv", &format!("{head}0,store,y,1,10,20\n0,load,y,1,,\n"), (2, 16), "no end time");
    // Those of a fence too.
    refuse("csv", &format!("{head}0,fence,,,20,10\n"), (2, 14), "not after");
    refuse("csv", &format!("{head}0,fence,,,18446744073709551615,\n"), (2, 11), "below 2^64");
    refuse("csv", &format!("{head}0,load,y,0,20,\n0,fence,,,10,\n"), (3, 11), "before 20");
    refuse("csv", &format!("{head}0,fence,,,20,\n0,load,y,0,10,\n"), (3, 12), "before 20");
}

/// Returns a packet of RVFI-DII, version 1.
fn first_packet(
    order: u64,
    insn: u64,
    addr: u64,
    load: Option<u64>,
    store: Option<u64>,
) -> Vec<u8> {
    let mut packet = vec![0u8; 88];
    for (at, value) in [
        (0, order),
        (8, 0x8000_0000 + 4 * order),
        (24, insn),
        (56, addr),
        (64, load.unwrap_or(0)),
        (72, store.unwrap_or(0)),
    ] {
        packet[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    packet[80] = if load.is_some() { 0xff } else { 0 };
    packet[81] = if store.is_some() { 0xff } else { 0 };
    packet
}

/// Returns the same packet in version 2.
fn second_packet(first: &[u8]) -> Vec<u8> {
    let mut packet = b"trace-v2".to_vec();
    packet.extend((64u64 + 40 + 88).to_le_bytes());
    packet.extend(&first[0..8]);
    packet.extend(&first[24..32]);
    packet.extend([first[85], first[86], first[87], 3, 2, 1, 0, 0]);
    packet.extend(&first[8..24]);
    packet.extend(3u64.to_le_bytes());
    packet.extend(b"int-data");
    packet.extend(&first[48..56]);
    packet.extend([0; 24]);
    packet.extend(b"mem-data");
    packet.extend(&first[64..72]);
    packet.extend([0; 24]);
    packet.extend(&first[72..80]);
    packet.extend([0; 24]);
    packet.extend([first[80], 0, 0, 0, first[81], 0, 0, 0]);
    packet.extend(&first[56..64]);
    packet
}

#[test]
fn rvfi_packets_are_lines() {
    // `sd a0, 0(a1)`, `ld a0, 0(a1)`, and the answer to the end of a test.
    let mut halt = vec![0u8; 88];
    halt[86] = 1;
    let packets = [
        first_packet(1, 0x00a5_b023, 0x8000_1000, None, Some(7)),
        first_packet(2, 0x0005_b503, 0x8000_1000, Some(7), None),
        first_packet(3, 0x0000_0013, 0, None, None),
        halt,
        first_packet(1, 0x0005_b503, 0x8000_1000, Some(9), None),
    ];
    let first = packets.concat();
    let second = [
        b"version=\x02\0\0\0\0\0\0\0".to_vec(),
        packets.iter().flat_map(|p| second_packet(p)).collect(),
    ]
    .concat();
    let reader = readers().iter().find(|r| r.name() == "rvfi").expect("a reader");
    for (log, line) in [(&first, 1), (&second, 2)] {
        assert!(reader.recognises(&String::from_utf8_lossy(log)));
        let mut collected = Collected::default();
        let options = ReadOptions { file: "log".into(), repair: false };
        reader.read(&mut &log[..], &options, &mut collected).expect("a log");
        let [one, two] = &collected.traces[..] else { panic!("{collected:?}") };
        assert_eq!((one.len(), two.len()), (2, 1));
        assert_eq!(one.text(0), "M[0x80001000] := 7");
        assert_eq!(one.text(1), "M[0x80001000] == 7");
        assert_eq!(one.line(0), line);
        // A log that is cut off, and one with a wrong instruction.
        let cut = reader.read(&mut &log[..log.len() - 3], &options, &mut Collected::default());
        assert!(cut.expect_err("it is cut off").message.contains("cut off"));
        let mut wrong = log.clone();
        let at = if line == 1 { 81 } else { wrong.len() - 88 + 76 };
        wrong[at] = 0x5;
        let error = reader.read(&mut &wrong[..], &options, &mut Collected::default());
        assert!(error.expect_err("a wrong mask").message.contains("mask"));
    }
}
