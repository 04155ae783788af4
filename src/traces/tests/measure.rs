//! Measurement: time and memory of decisions for files of the environment.
//!
//! `TRACES="a.axe b.axe" MODELS="tso pso" cargo test --release -p mu-check-traces --test measure \
//! -- --ignored --nocapture`

use std::io::BufReader;
use std::time::Instant;

use mu_base::limits::{Limits, peak_resident_bytes};
use mu_base::{Budget, Diagnostic};
use mu_traces::readers::{ReadOptions, Sink, TraceReader, axe::Axe};
use mu_traces::{Model, Options, Trace, Verdict, decide};

struct Timed {
    models: Vec<Model>,
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
            let verdict = decide(&trace, model, &Options::default(), &Budget::new(limits))?;
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
    fn skipped(&mut self, error: Diagnostic) {
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
            models: models.split_whitespace().filter_map(Model::by_name).collect(),
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
