//! Arguments of `sweep`. Here `-D` accepts lists and ranges of values.

use super::{Common, Counting, EngineRef, ReadArgs, engine};
use clap::{Args, ValueEnum};
use mu_base::{Diagnostic, Stage};
use std::path::PathBuf;

/// Limit on the values of one parameter and on combinations of parameters; more are a usage error.
const MAX_COMBINATIONS: usize = 100_000;

/// `sweep`
#[derive(Args, Debug)]
#[command(
    after_help = "With `-D NAME=0..=6`, `-D NAME=0..7` or `-D NAME=1,2,4` a parameter takes several values; all combinations are run, low \
values first. The first such parameter is the horizontal axis of the plots. Each row runs in its own process, so that peak memory is measured per row; \
`--max-states`, `--max-memory` and `--timeout` apply to each row. A row that reaches a limit ends its series over the first parameter, not the \
sweep. Values that violate a constraint of a parameter (`where`) are left out; `not run` lists all rows without a result. The same command resumes an interrupted sweep. Rows from earlier runs that this run does not request are kept in sweep.json (`kept`) but not \
shown. An existing row is run again only if the model, the formula, its parameters, the options or the program version changed.

Output: sweep.json, sweep.csv, sweep.md, states.svg, seconds.svg, memory.svg.

Exit codes: 0 every formula holds, 1 some formula does not, 2 bad input, 3 some row is unknown because of a limit or an interrupt, 4 internal error.

Examples:
  mu-check sweep specs/arcx.spec formulas/1a.gos.mcf -D max_operation_id=0..=6 --max-memory 4GB --timeout 1h --out sweep
  mu-check sweep specs/arcx.spec -D max_operation_id=0..=9 -D num_cores=1,2 --engine symbolic --out sizes
  mu-check sweep specs/arcx.spec formulas/1a.gos.mcf -D max_operation_id=1 -D memcommands_size=1,2 --out sweep --evidence why --junit sweep.xml
  mu-check sweep specs/arcx.spec -D max_operation_id=0..=2 --confluence auto --reference results/published.tsv --out sweep
  mu-check sweep specs/arcx.spec -D max_operation_id=0..=4 --confluence auto --confluence mem_wb_sync_store_finish --out settings"
)]
pub struct SweepArgs {
    /// Specification, or Murphi model.
    pub model: PathBuf,
    /// Formula files.
    pub formulas: Vec<PathBuf>,
    /// Folder for tables and plots; created if missing.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Reference figures to print next to the results: lines of job, value of the first parameter,
    /// states or equations, seconds, bytes of memory.
    #[arg(long, value_name = "FILE.csv|FILE.tsv")]
    pub reference: Option<PathBuf>,
    /// Write the evidence of each formula to this folder, one file per row; the folder is created
    /// if missing.
    #[arg(long, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// Format of the evidence.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = EvidenceForm::Svg, requires = "evidence")]
    pub evidence_form: EvidenceForm,
    /// Write the rows as a JUnit report, one test case each.
    #[arg(long, value_name = "FILE.xml")]
    pub junit: Option<PathBuf>,
    /// Check the formulas, but do not explore.
    #[arg(long, requires = "formulas")]
    pub no_explore: bool,
    /// Confluent tau steps that take priority: `none`, `auto`, or names of hidden actions; used for
    /// formulas that permit it. If given several times, all rows are run with each value.
    #[arg(long, value_name = "WHICH", default_value = "none")]
    pub confluence: Vec<String>,
    /// Counting of equations.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Counting::Merged)]
    pub count: Counting,
    /// Search engine.
    #[arg(long, value_name = "ENGINE", value_parser = engine(), default_value = mu_engines::engines()[0].name())]
    pub engine: EngineRef,
    /// Options for reading models other than specifications.
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Common options.
    #[command(flatten)]
    pub common: Common,
}

/// Formats of the evidence of a sweep.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceForm {
    /// A chart.
    Svg,
    /// For scripts, and for `simulate --trace`.
    Json,
}

impl EvidenceForm {
    /// Returns the file name extension.
    pub fn file_extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Json => "json",
        }
    }
}

/// A parameter with its values: numbers first, ascending, then other expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The parameter.
    pub name: String,
    /// Its values, at least one.
    pub values: Vec<String>,
}

/// Parses the parameters of `-D` arguments: each is an axis of the sweep.
pub fn axes(define: &[String]) -> Result<Vec<Axis>, Diagnostic> {
    let usage = |message: String| {
        Diagnostic::new(Stage::Usage, message)
            .note("expected NAME=VALUE, NAME=1,2,4, NAME=0..=6 or NAME=0..7")
    };
    let mut axes: Vec<Axis> = Vec::new();
    for d in define {
        let (name, list) = d.split_once('=').unwrap_or((d, ""));
        let (name, list) = (name.trim(), list.trim());
        if name.is_empty() {
            return Err(usage(format!("`-D {d}` has no name of a parameter")));
        }
        if list.is_empty() {
            return Err(usage(format!("`-D {d}` gives no value")));
        }
        if axes.iter().any(|a| a.name == name) {
            return Err(usage(format!(
                "`-D {d}`: {name} has values already; list them all in one `-D`"
            )));
        }
        let mut values: Vec<String> = Vec::new();
        for item in super::lts::split_at_commas(list) {
            let new = match item.split_once("..") {
                Some((from, to)) => range(from, to).ok_or_else(|| {
                    usage(format!("`{item}` in `-D {d}` is not a range, or the range is empty"))
                })?,
                None => vec![item],
            };
            values.extend(new);
            if values.len() > MAX_COMBINATIONS {
                return Err(usage(format!("`-D {d}` has more than {MAX_COMBINATIONS} values")));
            }
        }
        if values.is_empty() {
            return Err(usage(format!("`-D {d}` gives no value")));
        }
        values.sort_by(|a, b| mu_report::sweep::compare(a, b));
        values.dedup();
        axes.push(Axis { name: name.to_string(), values });
    }
    Ok(axes)
}

/// Returns the numbers of a range, at most one more than the limit, so that the caller rejects a
/// longer one; `None` if it is empty or not a range of numbers.
fn range(from: &str, to: &str) -> Option<Vec<String>> {
    let (to, inclusive) = to.strip_prefix('=').map_or((to, false), |t| (t, true));
    let (from, to): (i64, i64) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    let end = if inclusive { to.checked_add(1)? } else { to };
    (from < end).then(|| (from..end).take(MAX_COMBINATIONS + 1).map(|v| v.to_string()).collect())
}

/// Returns all combinations of values; the first parameter varies slowest.
pub fn combinations(axes: &[Axis]) -> Result<Vec<Vec<(String, String)>>, Diagnostic> {
    let count =
        axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.values.len())).unwrap_or(usize::MAX);
    if count > MAX_COMBINATIONS {
        return Err(Diagnostic::new(
            Stage::Usage,
            format!("the parameters have more than {MAX_COMBINATIONS} combinations"),
        ));
    }
    let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for axis in axes {
        let with = |c: &Vec<(String, String)>| {
            let c = c.clone();
            let one = move |v: &String| {
                c.iter().cloned().chain([(axis.name.clone(), v.clone())]).collect::<Vec<_>>()
            };
            axis.values.iter().map(one).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let values =
            |d: &str| axes(&[d.to_string()]).map(|a| a[0].values.join(" ")).map_err(|e| e.message);
        assert_eq!(values("n=0..=3").unwrap(), "0 1 2 3");
        assert_eq!(values("n = 9..12,2 , 10").unwrap(), "2 9 10 11");
        assert_eq!(values("b=true,false").unwrap(), "false true");
        assert_eq!(values("n=2+min(1,2)").unwrap(), "2+min(1,2)");
        // Numbers come before other values, whatever their order in the text.
        assert_eq!(values("n=10,2*3,3,9..=11,4,2*3").unwrap(), "3 4 9 10 11 2*3");
        assert_eq!(
            values("n=9007199254740993,9007199254740992,9007199254740993").unwrap(),
            "9007199254740992 9007199254740993"
        );
        for wrong in [
            "n",
            "n=",
            "=1",
            "n=3..3",
            "n=a..b",
            "n=,",
            "n=0..9999999999",
            "n=0..=9223372036854775807",
        ] {
            assert!(values(wrong).is_err(), "{wrong}");
        }
        assert!(axes(&["n=1".into(), "n=2".into()]).is_err());
    }

    #[test]
    fn low_values_first() {
        let axes = axes(&["n=0..2".into(), "k=1,2".into(), "c=7".into()]).unwrap();
        let all: Vec<String> = combinations(&axes)
            .unwrap()
            .iter()
            .map(|c| c.iter().map(|p| p.1.as_str()).collect::<Vec<_>>().join(""))
            .collect();
        assert_eq!(all, ["017", "027", "117", "127"]);
        assert_eq!(combinations(&[]).unwrap(), [Vec::new()]);
        let wide = Axis { name: "w".into(), values: (0..1000).map(|i| i.to_string()).collect() };
        assert!(combinations(&[wide.clone(), wide]).is_err());
    }
}
