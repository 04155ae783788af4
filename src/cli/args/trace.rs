//! Arguments of `trace`.

use super::Common;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mu_traces::TraceReader;
use mu_traces::generate::ProgramLanguage;
use std::path::PathBuf;

/// A reader of the registry, or the outcomes of litmus7.
#[derive(Clone, Copy)]
pub enum LogFormat {
    /// Operations of threads.
    Operations(&'static dyn TraceReader),
    /// Histograms of outcomes of litmus tests.
    Litmus7,
}

impl std::fmt::Debug for LogFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl LogFormat {
    /// The name of the format of outcomes.
    pub const LITMUS7: &'static str = "litmus7";

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Operations(reader) => reader.name(),
            LogFormat::Litmus7 => Self::LITMUS7,
        }
    }
}

/// Parses the name of a format; the help lists the readers.
fn format() -> impl TypedValueParser<Value = LogFormat> {
    let known = mu_traces::readers().iter().map(|r| PossibleValue::new(r.name()).help(r.summary()));
    let outcomes = PossibleValue::new(LogFormat::LITMUS7)
        .help("litmus7: `Histogram (4 states)`, `96    *>0:EAX=0; 1:EAX=0;`");
    PossibleValuesParser::new(known.chain([outcomes])).try_map(|name| {
        let reader = mu_traces::readers().iter().find(|r| r.name() == name);
        match (reader, name.as_str()) {
            (Some(reader), _) => Ok(LogFormat::Operations(*reader)),
            (None, LogFormat::LITMUS7) => Ok(LogFormat::Litmus7),
            _ => Err(format!("no format is called `{name}`")),
        }
    })
}

/// Parses the name of a language of generated programs.
fn language() -> impl TypedValueParser<Value = ProgramLanguage> {
    let known = ProgramLanguage::ALL.iter().map(|l| PossibleValue::new(l.name()).help(l.summary()));
    PossibleValuesParser::new(known).try_map(|name| {
        ProgramLanguage::by_name(&name).ok_or_else(|| format!("no language is called `{name}`"))
    })
}

/// `trace`
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 every trace is allowed, 1 some trace is forbidden, 2 bad input, 3 a limit left a trace open, 4 internal error. Without `--against` the result is a table of all memory models, and a trace counts as allowed if some model allows it.

Examples:
  mu-check trace specs/traces/store_buffering.axe --against tso
  mu-check trace specs/traces/store_buffering.axe --against sc --explain
  mu-check trace specs/traces/message_passing.csv specs/traces/tracegen.log
  mu-check trace specs/traces/spike.log --against rvwmo,sc --format json
  mu-check trace specs/traces/store_buffering.axe --against sc --litmus SB.litmus --evidence sb.html
  mu-check trace specs/traces/store_buffering.axe --machine specs/machines/tso.spec --interface specs/machines/machine.interface
  mu-check trace --generate --threads 4 --addresses 8 --operations 1000 --seed 1 --language c --out program"
)]
pub struct TraceArgs {
    /// Logs; `-` is standard input. A name that ends in `.gz` is decompressed.
    #[arg(required_unless_present = "generate", conflicts_with = "generate")]
    pub files: Vec<PathBuf>,
    /// Memory models, strongest first in the result: names, or `.cat` and `.views` files for small
    /// traces (default: all built-in models).
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub against: Vec<String>,
    /// A machine, instead of memory models: does one of its runs have the trace? For small traces.
    #[arg(long, value_name = "MODEL", requires = "interface", conflicts_with = "against")]
    pub machine: Option<PathBuf>,
    /// File that says which labels of the machine are memory operations (see
    /// docs/memory-models.md).
    #[arg(long, value_name = "FILE", requires = "machine")]
    pub interface: Option<PathBuf>,
    /// Format of the logs (default: recognised by their content).
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub from: Option<LogFormat>,
    /// Skip lines with errors, and report them.
    #[arg(long)]
    pub repair: bool,
    /// Decide each trace while it is read, with memory for the operations that are open, not for
    /// the whole trace. For `sc` and `tso`; the log has to be in the order of time.
    #[arg(long, requires = "against", conflicts_with_all = ["machine", "witness", "generate"])]
    pub stream: bool,
    /// Print the cycle of each forbidden trace with the lines of the log.
    #[arg(long)]
    pub explain: bool,
    /// Print an order of all operations for each allowed trace.
    #[arg(long)]
    pub witness: bool,
    /// Write the minimal forbidden part of the first forbidden trace as a litmus test; to a folder
    /// (a name without `.litmus`), one for each forbidden trace.
    #[arg(long, value_name = "FILE")]
    pub litmus: Option<PathBuf>,
    /// Draw the cycle of the first forbidden trace, with threads as lanes: `.svg`, `.dot`, `.json`,
    /// or `.html` (a page with all traces).
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Folder of the litmus tests of outcomes (default: that of the log; else the test in the log).
    #[arg(long, value_name = "DIR")]
    pub tests: Option<PathBuf>,
    /// Maximum number of choices that a search revises per trace and model.
    #[arg(long, value_name = "N")]
    pub max_revisions: Option<u64>,
    /// Write a random program that logs its own accesses. `--threads` is the number of its threads.
    #[arg(long)]
    pub generate: bool,
    /// Number of addresses of the program.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "generate", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub addresses: u32,
    /// Number of operations of each thread of the program.
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "generate", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub operations: u32,
    /// Seed of the program.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "generate")]
    pub seed: u64,
    /// Language of the program.
    #[arg(long, value_name = "LANGUAGE", default_value = "c", requires = "generate", value_parser = language())]
    pub language: ProgramLanguage,
    /// Folder of the program (default: standard output, for C).
    #[arg(long, value_name = "DIR", requires = "generate")]
    pub out: Option<PathBuf>,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}
