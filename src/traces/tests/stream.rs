//! Streams against the decision of whole traces: random runs of machines with and without store
//! buffers, with faults, in windows of several sizes.
//!
//! A failure prints its seed; `SEED=17 cargo test -p mu-check-traces --test stream` replays it.

use mu_base::Budget;
use mu_base::random::Random;
use mu_traces::readers::{ReadOptions, Sink, TraceReader, axe::Axe};
use mu_traces::{
    DecisionOptions, Fence, FinalAnswer, Operation, Recount, Stream, StreamAnswer, Trace,
    TraceBuilder, TraceModel, decide,
};

/// Returns the operations of a run of a machine in the order of time; `depth` is the limit on the
/// stores in a buffer. Every value of an address is stored once.
fn run(random: &mut Random, length: usize, depth: usize) -> Vec<(u32, Operation)> {
    let (threads, places) = (2 + random.below(3), 1 + random.below(6));
    let mut memory = vec![0u64; places];
    let mut next = vec![0u64; places];
    let mut buffers: Vec<Vec<(usize, u64)>> = vec![Vec::new(); threads];
    let mut out = Vec::new();
    while out.len() < length {
        let (t, a, line) = (random.below(threads), random.below(places), out.len() as u32 + 1);
        let place = a as u32;
        let flush = |buffer: &mut Vec<(usize, u64)>, memory: &mut Vec<u64>, left: usize| {
            while buffer.len() > left {
                let (a, value) = buffer.remove(0);
                memory[a] = value;
            }
        };
        let operation = match random.below(20) {
            0..9 => {
                let own = buffers[t].iter().rev().find(|b| b.0 == a).map(|b| b.1);
                Operation::load(place, own.unwrap_or(memory[a]), line)
            }
            9..16 => {
                next[a] += 1;
                buffers[t].push((a, next[a]));
                flush(&mut buffers[t], &mut memory, depth);
                Operation::store(place, next[a], line)
            }
            16 => {
                flush(&mut buffers[t], &mut memory, 0);
                let loaded = memory[a];
                next[a] += 1;
                memory[a] = next[a];
                Operation::update(place, loaded, next[a], line)
            }
            17 => {
                flush(&mut buffers[t], &mut memory, 0);
                Operation::fence(Fence::FULL, line)
            }
            _ => {
                let left = buffers[t].len().saturating_sub(1);
                flush(&mut buffers[t], &mut memory, left);
                continue;
            }
        };
        out.push((t as u32, operation));
    }
    out
}

/// Injects a fault: another value for a load, or two operations of a thread in another order.
fn inject(run: &mut [(u32, Operation)], random: &mut Random) {
    let at = random.below(run.len());
    let (thread, o) = run[at];
    if o.kind.loads() {
        let all = run.iter().map(|r| r.1).filter(|s| s.kind.stores() && s.location == o.location);
        let mut values: Vec<u64> = all.map(|s| s.stored).collect();
        values.extend([0, 1_000_000]);
        run[at].1.loaded = *random.choose(&values);
    } else if let Some(next) = (at + 1..run.len()).find(|k| run[*k].0 == thread) {
        let (a, b) = (run[at].1, run[next].1);
        run[at].1 = Operation { line: a.line, ..b };
        run[next].1 = Operation { line: b.line, ..a };
    }
}

fn builder() -> TraceBuilder {
    let mut builder = TraceBuilder::new("random", 1);
    for i in 0..6 {
        builder.thread(&i.to_string());
        builder.named_location(&i.to_string());
    }
    builder
}

fn whole(run: &[(u32, Operation)]) -> Trace {
    let mut builder = builder();
    for (t, o) in run {
        builder.push(*t, *o);
    }
    builder.finish().expect("a trace")
}

/// Returns the answer of a stream.
fn stream_answer(run: &[(u32, Operation)], model: &TraceModel, window: usize) -> FinalAnswer {
    let mut builder = builder();
    let mut stream =
        Stream::new(model, &DecisionOptions::default(), window).expect("it has streams");
    let budget = Budget::default();
    for part in run.chunks(17) {
        for (t, o) in part {
            builder.push(*t, *o);
        }
        let operations = builder.drain();
        stream.add(&builder, &operations, &budget).expect("ok");
    }
    assert_eq!(stream.len(), run.len() as u64);
    let streamed = stream.finish(&builder, &budget).expect("ok");
    let mut count = Recount::new(streamed.doubts());
    count.add(&builder, run, true);
    streamed.settle(Some(&count))
}

#[test]
fn streams_agree_with_whole_traces() {
    let seeds = match std::env::var("SEED").ok().and_then(|s| s.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..150,
    };
    let many = seeds.end - seeds.start > 1;
    let mut counts = [[0u32; 3]; 3];
    for seed in seeds {
        let mut random = Random::new(seed);
        let depth = [0, 4][random.below(2)];
        let mut run = run(&mut random, 400, depth);
        let faults = random.below(2);
        (0..faults).for_each(|_| inject(&mut run, &mut random));
        for model in [TraceModel::Sc, TraceModel::Tso] {
            let verdict =
                decide(&whole(&run), &model, &DecisionOptions::default(), &Budget::default());
            let truth = verdict.expect("ok").truth().expect("it is decided");
            for (k, window) in [30, 100, 1_000].into_iter().enumerate() {
                let answer = match stream_answer(&run, &model, window) {
                    FinalAnswer::Allowed => Some(true),
                    FinalAnswer::Forbidden { part, conflict } => {
                        let alone = conflict.part(&part);
                        let alone =
                            decide(&alone, &model, &DecisionOptions::default(), &Budget::default());
                        assert_eq!(alone.expect("ok").truth(), Some(false), "seed {seed}");
                        Some(false)
                    }
                    FinalAnswer::Unknown { .. } => None,
                };
                counts[k][answer.map_or(2, usize::from)] += 1;
                let name = model.name();
                assert!(answer.is_none_or(|a| a == truth), "seed {seed}, {name}, window {window}");
            }
        }
    }
    println!("forbidden, allowed, unknown in windows of 30, 100, 1,000: {counts:?}");
    if many {
        assert_eq!(counts[2][2], 0, "a window with the whole trace decides");
        assert!(counts[1][0] > 50 && counts[1][1] > 50 && counts[1][2] < 60, "{counts:?}");
    }
}

/// Collects nothing but the largest number of operations that are in memory at once.
struct LargestWindow {
    operations: usize,
    all: usize,
    is_done: bool,
}

impl Sink for LargestWindow {
    fn trace(&mut self, _: Trace) -> Result<bool, mu_base::Diagnostic> {
        panic!("the sink takes parts")
    }
    fn part(
        &mut self,
        builder: &mut TraceBuilder,
        is_end: bool,
    ) -> Result<Option<bool>, mu_base::Diagnostic> {
        self.operations = self.operations.max(builder.len());
        self.all += builder.drain().len();
        self.is_done |= is_end;
        Ok(Some(true))
    }
    fn report_skipped(&mut self, error: mu_base::Diagnostic) {
        panic!("{error}")
    }
}

#[test]
fn readers_give_parts() {
    let mut log = String::new();
    for k in 1..20_000 {
        log += &format!("{}: M[{}] := {k}\n", k % 3, k % 5);
    }
    let mut sink = LargestWindow { operations: 0, all: 0, is_done: false };
    let options = ReadOptions { file: "log".into(), repair: false };
    Axe.read(&mut log.as_bytes(), &options, &mut sink).expect("a log");
    assert!(sink.is_done && sink.all == 19_999 && sink.operations < 5_000);
}

/// An initial value that the log gives behind operations is not known when they are decided.
#[test]
fn late_initial_values_are_not_decided() {
    let (options, budget) = (DecisionOptions::default(), Budget::default());
    let mut stream = Stream::new(&TraceModel::Sc, &options, 2).expect("sc has streams");
    let mut builder = builder();
    let (thread, place) = (builder.thread("0"), builder.named_location("late"));
    for line in 1..5 {
        builder.push(thread, Operation::load(place, 0, line));
    }
    let operations = builder.drain();
    stream.add(&builder, &operations, &budget).expect("ok");
    builder.set_initial(place, 0, mu_traces::Initial::Value(5));
    let answer = stream.finish(&builder, &budget).expect("ok");
    assert!(matches!(answer, StreamAnswer::Unknown { .. }), "{answer:?}");
}

/// A stream never refutes a load of an older value that the log stores twice.
#[test]
fn repeated_values_are_no_conflict() {
    let mut run: Vec<(u32, Operation)> = Vec::new();
    for k in 1..200u64 {
        run.push((0, Operation::store(0, k, run.len() as u32 + 1)));
        run.push((1, Operation::load(0, k, run.len() as u32 + 1)));
    }
    // Thread 2 is late: sequential consistency has no clock.
    run.push((2, Operation::load(0, 3, 1_000)));
    for window in [20, 100] {
        let answer = stream_answer(&run, &TraceModel::Sc, window);
        assert!(matches!(answer, FinalAnswer::Unknown { .. }), "{answer:?}");
        let unsupplied = [&run[..], &[(2, Operation::load(0, 7_777, 1_001))]].concat();
        let answer = stream_answer(&unsupplied, &TraceModel::Sc, window);
        assert!(!matches!(answer, FinalAnswer::Allowed), "{answer:?}");
    }
    let verdict =
        decide(&whole(&run), &TraceModel::Sc, &DecisionOptions::default(), &Budget::default());
    assert_eq!(verdict.expect("ok").truth(), Some(true));
    let StreamAnswer::Allowed = Stream::new(&TraceModel::Tso, &DecisionOptions::default(), 10)
        .expect("tso has streams")
        .finish(&builder(), &Budget::default())
        .expect("ok")
    else {
        panic!("an empty trace is allowed")
    };
}
