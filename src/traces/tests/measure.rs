//! Measurement: time and memory of decisions for files of the environment, and of streams.
//!
//! `TRACES="a.axe b.axe" MODELS="tso pso" cargo test --release -p mu-check-traces --test measure \
//! files -- --ignored --nocapture`
//!
//! `OPERATIONS=10000000 cargo test --release -p mu-check-traces --test measure streams -- \
//! --ignored --nocapture`: a machine with 16 threads, 16 addresses, and store buffers (`DEPTH=8`;
//! 0: none) writes its log with times while it is read. `FAULT=1`: one load in the middle is stale.

use std::io::{BufReader, Read};
use std::time::Instant;

use mu_base::limits::{Limits, peak_resident_bytes};
use mu_base::random::Random;
use mu_base::{Budget, Diagnostic};
use mu_traces::readers::{ReadOptions, Sink, TraceReader, axe::Axe};
use mu_traces::stream::WINDOW;
use mu_traces::{
    DecisionOptions, FinalAnswer, Recount, Stream, Trace, TraceBuilder, TraceModel, Verdict, decide,
};

struct Timed {
    models: Vec<TraceModel>,
    file: String,
    start: Instant,
    wrong: usize,
}

impl Sink for Timed {
    fn trace(&mut self, trace: Trace) -> Result<bool, Diagnostic> {
        let reading = self.start.elapsed();
        for model in &self.models {
            let start = Instant::now();
            let limits =
                Limits { timeout: Some(std::time::Duration::from_secs(120)), ..Limits::default() };
            let verdict = decide(&trace, model, &DecisionOptions::default(), &Budget::new(limits))?;
            self.wrong += usize::from(verdict.truth().is_none());
            let text = match verdict {
                Verdict::Allowed { .. } => "allowed".to_string(),
                Verdict::Forbidden { conflict } => {
                    format!("forbidden ({} operations)", conflict.operations.len())
                }
                Verdict::Unknown { reason, .. } => format!("unknown: {reason}"),
            };
            println!(
                "{}\t{}\t{}\tread {:.2} s\tdecide {:.3} s\tpeak {} MiB\t{text}",
                self.file,
                trace.len(),
                model.name(),
                reading.as_secs_f64(),
                start.elapsed().as_secs_f64(),
                peak_resident_bytes() >> 20,
            );
        }
        self.start = Instant::now();
        Ok(true)
    }
    fn report_skipped(&mut self, error: Diagnostic) {
        panic!("{error}");
    }
}

#[test]
#[ignore = "needs files; the head of this file has the command"]
fn files_of_the_environment() {
    let models = std::env::var("MODELS").unwrap_or_else(|_| "sc tso pso wmo".to_string());
    let mut wrong = 0;
    for file in std::env::var("TRACES").expect("files").split_whitespace() {
        let mut timed = Timed {
            models: models.split_whitespace().filter_map(TraceModel::by_name).collect(),
            file: file.rsplit('/').next().unwrap_or(file).to_string(),
            start: Instant::now(),
            wrong: 0,
        };
        let mut log = BufReader::new(std::fs::File::open(file).expect("the file opens"));
        let options = ReadOptions { file: file.to_string(), repair: false };
        Axe.read(&mut log, &options, &mut timed).expect("the log is correct");
        wrong += timed.wrong;
    }
    println!("{wrong} unknown");
}

/// A log of a machine with store buffers, written while it is read.
struct Log {
    random: Random,
    left: u64,
    fault: u64,
    depth: usize,
    time: u64,
    memory: [u64; 16],
    next: [u64; 16],
    buffers: Vec<Vec<(usize, u64)>>,
    /// The last two values that each thread loaded from each address.
    seen: Vec<[(u64, u64); 16]>,
    text: Vec<u8>,
    at: usize,
}

impl Log {
    fn new(operations: u64, depth: usize, is_faulty: bool) -> Log {
        Log {
            random: Random::new(1),
            left: operations,
            fault: if is_faulty { operations / 2 } else { 0 },
            depth,
            time: 0,
            memory: [0; 16],
            next: [0; 16],
            buffers: vec![Vec::new(); 16],
            seen: vec![[(0, 0); 16]; 16],
            text: Vec::new(),
            at: 0,
        }
    }
    fn drain(&mut self, t: usize, left: usize) {
        while self.buffers[t].len() > left {
            let (a, value) = self.buffers[t].remove(0);
            self.memory[a] = value;
        }
    }
    /// Writes a line.
    fn step(&mut self) {
        use std::io::Write;
        let (t, a) = (self.random.below(16), self.random.below(16));
        self.time += 1;
        let time = 2 * self.time;
        match self.random.below(100) {
            0..35 => {
                let left = self.buffers[t].len().saturating_sub(1);
                self.drain(t, left);
                return;
            }
            35..70 => {
                let own = self.buffers[t].iter().rev().find(|b| b.0 == a).map(|b| b.1);
                let mut value = own.unwrap_or(self.memory[a]);
                let (before, now) = self.seen[t][a];
                if self.fault > self.left && before != now {
                    println!("thread {t} loads {before} from {a} again after {now}");
                    (value, self.fault) = (before, 0);
                }
                if value != now {
                    self.seen[t][a] = (now, value);
                }
                writeln!(self.text, "{t}: M[{a}] == {value} @ {time}:{}", time + 1)
            }
            70..95 => {
                self.next[a] += 1;
                self.buffers[t].push((a, self.next[a]));
                self.drain(t, self.depth);
                writeln!(self.text, "{t}: M[{a}] := {} @ {time}:", self.next[a])
            }
            95..98 => {
                self.drain(t, 0);
                self.next[a] += 1;
                let (old, new) = (self.memory[a], self.next[a]);
                self.memory[a] = new;
                writeln!(
                    self.text,
                    "{t}: {{ M[{a}] == {old}; M[{a}] := {new} }} @ {time}:{}",
                    time + 1
                )
            }
            _ => {
                self.drain(t, 0);
                writeln!(self.text, "{t}: sync")
            }
        }
        .expect("text is in memory");
        self.left -= 1;
    }
}

impl Read for Log {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.text.len() {
            self.text.clear();
            self.at = 0;
            while self.left > 0 && self.text.len() < 1 << 16 {
                self.step();
            }
        }
        let length = into.len().min(self.text.len() - self.at);
        into[..length].copy_from_slice(&self.text[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

struct Streams<'m> {
    streams: Vec<Stream<'m>>,
    answers: Vec<mu_traces::StreamAnswer>,
    count: Option<Recount>,
}

impl Sink for Streams<'_> {
    fn trace(&mut self, _: Trace) -> Result<bool, Diagnostic> {
        panic!("the sink takes parts")
    }
    fn part(
        &mut self,
        builder: &mut TraceBuilder,
        is_end: bool,
    ) -> Result<Option<bool>, Diagnostic> {
        let (operations, budget) = (builder.drain(), Budget::default());
        if let Some(count) = &mut self.count {
            count.add(builder, &operations, is_end);
        }
        for stream in &mut self.streams {
            stream.add(builder, &operations, &budget)?;
        }
        for stream in self.streams.drain(..if is_end { self.streams.len() } else { 0 }) {
            self.answers.push(stream.finish(builder, &budget)?);
        }
        Ok(Some(true))
    }
    fn report_skipped(&mut self, error: Diagnostic) {
        panic!("{error}");
    }
}

/// Returns the processor seconds of this process.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |k: usize| fields.get(k).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

#[test]
#[ignore = "minutes; the head of this file has the command"]
fn streams_of_a_machine() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let operations = number("OPERATIONS", 1_000_000);
    let depth = usize::try_from(number("DEPTH", 8)).expect("a depth");
    let is_faulty = number("FAULT", 0) != 0;
    let log = || BufReader::with_capacity(1 << 20, Log::new(operations, depth, is_faulty));
    let options = ReadOptions { file: "log".to_string(), repair: false };
    let models = std::env::var("MODELS").unwrap_or_else(|_| "tso".to_string());
    let start = processor_seconds();
    let mut none = Streams { streams: Vec::new(), answers: Vec::new(), count: None };
    Axe.read(&mut log(), &options, &mut none).expect("the log is correct");
    println!("writing and reading alone: {:.2} processor seconds", processor_seconds() - start);
    for name in models.split_whitespace() {
        let model = TraceModel::by_name(name).expect("a model");
        let start = processor_seconds();
        let stream =
            Stream::new(&model, &DecisionOptions::default(), WINDOW).expect("it has streams");
        let mut sink = Streams { streams: vec![stream], answers: Vec::new(), count: None };
        Axe.read(&mut log(), &options, &mut sink).expect("the log is correct");
        let streamed = sink.answers.remove(0);
        let doubts = streamed.doubts();
        let mut second =
            Streams { streams: Vec::new(), answers: Vec::new(), count: Some(Recount::new(doubts)) };
        if !streamed.doubts().is_empty() {
            Axe.read(&mut log(), &options, &mut second).expect("the log is correct");
        }
        let text = match streamed.settle(second.count.as_ref()) {
            FinalAnswer::Allowed => "allowed".to_string(),
            FinalAnswer::Forbidden { conflict, .. } => {
                format!("forbidden ({} operations)", conflict.operations.len())
            }
            FinalAnswer::Unknown { reason, .. } => format!("unknown: {reason}"),
        };
        println!(
            "{operations} operations, {name}: {:.2} processor seconds, peak {} MiB, {text}",
            processor_seconds() - start,
            peak_resident_bytes() >> 20
        );
    }
}
