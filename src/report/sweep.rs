//! Rows of a sweep, one for each combination of parameters and job, as JSON, CSV, Markdown and plot
//! series.
//!
//! Invariants: [`Sweep::read`] restores the rows that [`Sweep::json`] writes; rows have the order
//! of [`Sweep::sort`]; the columns of CSV and the keys of JSON are a contract with scripts.

use super::plot::{Plot, Point, PointMark, Series, Unit};
use super::reference::{PublishedFigures, Reference};
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Bytes of the unit of memory in tables and plots.
const MEBIBYTE: f64 = (1u64 << 20) as f64;

/// The job that explores, instead of checking a formula.
pub const EXPLORE: &str = "explore";
/// The stop reason of a complete row.
pub const COMPLETE: &str = "complete";

/// Result of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// [`EXPLORE`], or the name of the formula.
    pub job: String,
    /// The formula's file.
    pub formula: Option<String>,
    /// Given parameters, ascending by name.
    pub parameters: Vec<(String, String)>,
    /// The steps with priority: `none`, `auto` or names. `None`: a row of an older version.
    pub confluence: Option<String>,
    /// Distinct states.
    pub states: Option<BigUint>,
    /// Transitions, of an exploration.
    pub transitions: Option<BigUint>,
    /// Boolean equations, of a formula.
    pub equations: Option<BigUint>,
    /// `true`, `false` or `unknown`, of a formula.
    pub verdict: Option<String>,
    /// Wall time of the whole process.
    pub seconds: f64,
    /// Its peak resident memory.
    pub memory: u64,
    /// [`COMPLETE`], or another stop reason.
    pub stop: String,
    /// The engine that gave the answer.
    pub engine: Option<String>,
    /// The limits, if one of them ended the run.
    pub limits: Option<String>,
    /// The file with the evidence of a formula, if the user requested one and it exists.
    pub evidence: Option<String>,
    /// The message of a row that failed.
    pub error: Option<String>,
    /// Version of the program.
    pub version: String,
    /// Fingerprint of all inputs except limits.
    pub inputs: String,
}

impl Row {
    /// True if the row is complete.
    pub fn is_complete(&self) -> bool {
        self.stop == COMPLETE
    }
    fn mark(&self) -> PointMark {
        match self.verdict.as_deref() {
            _ if !self.is_complete() => PointMark::Stopped,
            Some("false") => PointMark::False,
            _ => PointMark::Full,
        }
    }
    /// Returns a parameter's value; `None` if the row has no such parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|p| p.0 == name).map(|p| p.1.as_str())
    }
    /// Returns the states of an exploration, or the equations of a formula; `None` if the row
    /// has no such number.
    pub fn size(&self) -> Option<&BigUint> {
        if self.job == EXPLORE { self.states.as_ref() } else { self.equations.as_ref() }
    }
    /// Returns the row as an object.
    pub fn json(&self) -> Value {
        let number = |n: &Option<BigUint>| {
            n.as_ref().map(|n| u64::try_from(n).map_or_else(|_| n.to_string().into(), Value::from))
        };
        let parameters: Map<String, Value> =
            self.parameters.iter().map(|(n, v)| (n.clone(), v.clone().into())).collect();
        json!({
            "job": self.job,
            "formula": self.formula,
            "parameters": parameters,
            "confluence": self.confluence,
            "states": number(&self.states),
            "transitions": number(&self.transitions),
            "equations": number(&self.equations),
            "verdict": self.verdict,
            "seconds": self.seconds,
            "peak_memory_bytes": self.memory,
            "stop": self.stop,
            "engine": self.engine,
            "limits": self.limits,
            "evidence": self.evidence,
            "error": self.error,
            "version": self.version,
            "inputs": self.inputs,
        })
    }
    /// Reads the object of [`Row::json`]; `None` if a part is missing.
    pub fn read(value: &Value) -> Option<Row> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(String::from);
        let parameters = value.get("parameters")?.as_object()?;
        Some(Row {
            job: text("job")?,
            formula: text("formula"),
            parameters: parameters
                .iter()
                .map(|(n, v)| Some((n.clone(), v.as_str()?.to_string())))
                .collect::<Option<_>>()?,
            confluence: text("confluence"),
            states: number(value.get("states")),
            transitions: number(value.get("transitions")),
            equations: number(value.get("equations")),
            verdict: text("verdict"),
            seconds: value.get("seconds")?.as_f64()?,
            memory: value.get("peak_memory_bytes")?.as_u64()?,
            stop: text("stop")?,
            engine: text("engine"),
            limits: text("limits"),
            evidence: text("evidence"),
            error: text("error"),
            version: text("version")?,
            inputs: text("inputs")?,
        })
    }
}

/// Reads a number from JSON; large ones are strings. `None` if the value is absent or not a natural
/// number.
pub fn number(value: Option<&Value>) -> Option<BigUint> {
    match value? {
        Value::String(digits) => digits.parse().ok(),
        value => value.as_u64().map(BigUint::from),
    }
}

/// All rows of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// The model's file.
    pub model: String,
    /// The command, so that the sweep can be repeated.
    pub command: String,
    /// Names of the parameters in the order in which they vary; the first is the axis of the plots.
    pub order: Vec<String>,
    /// The completed rows of this command.
    pub rows: Vec<Row>,
    /// The rows that this command requests and does not run.
    pub not_run: Vec<NotRun>,
    /// Valid rows of earlier commands that this command does not request; they are in no table and
    /// no plot.
    pub kept: Vec<Row>,
}

/// Requested row without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRun {
    /// [`EXPLORE`], or the name of the formula.
    pub job: String,
    /// Its parameters.
    pub parameters: Vec<(String, String)>,
    /// The reason.
    pub reason: String,
}

impl NotRun {
    fn json(&self) -> Value {
        let parameters: Map<String, Value> =
            self.parameters.iter().map(|(n, v)| (n.clone(), v.clone().into())).collect();
        json!({ "job": self.job, "parameters": parameters, "reason": self.reason })
    }
    fn text(&self) -> String {
        let parameters: Vec<String> =
            self.parameters.iter().map(|(n, v)| format!("{n}={v}")).collect();
        format!("{} {} ({})", self.job, parameters.join(" "), self.reason)
    }
}

/// Maximum number of rows without a result in a table; the others are counted.
const MAX_NOT_RUN: usize = 12;

impl Sweep {
    /// Returns the sweep as one object, one row per line.
    pub fn json(&self) -> String {
        let lines = |rows: &[Row]| {
            rows.iter().map(|r| format!("\n    {}", r.json())).collect::<Vec<_>>().join(",")
        };
        let not_run: Vec<Value> = self.not_run.iter().map(NotRun::json).collect();
        let not_run = json!(not_run);
        let (model, command, order) = (json!(self.model), json!(self.command), json!(self.order));
        format!(
            "{{\n  \"model\": {model},\n  \"command\": {command},\n  \"order\": {order},\n  \"not_run\": {not_run},\n  \"rows\": [{}\n  ],\n  \"kept\": [{}\n  ]\n}}\n",
            lines(&self.rows),
            lines(&self.kept)
        )
    }
    /// Reads the text of [`Sweep::json`].
    pub fn read(text: &str) -> Result<Sweep, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let text =
            |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        let read = |rows: &[Value]| {
            let row = |(i, r)| Row::read(r).ok_or_else(|| format!("row {} lacks a key", i + 1));
            rows.iter().enumerate().map(row).collect::<Result<Vec<_>, String>>()
        };
        let rows = read(value.get("rows").and_then(Value::as_array).ok_or("no list of rows")?)?;
        let kept = read(value.get("kept").and_then(Value::as_array).map_or(&[], Vec::as_slice))?;
        let order = value.get("order").and_then(Value::as_array).into_iter().flatten();
        let order = order.filter_map(|n| n.as_str().map(String::from)).collect();
        let (model, command) = (text("model"), text("command"));
        Ok(Sweep { model, command, order, rows, not_run: Vec::new(), kept })
    }

    /// Sorts rows by job in the given order, then by parameter values.
    pub fn sort(&mut self, jobs: &[String]) {
        let rank = |r: &Row| jobs.iter().position(|j| *j == r.job).unwrap_or(jobs.len());
        let names: Vec<String> = self.parameters().into_iter().map(String::from).collect();
        let values = |a: &Row, b: &Row| {
            let each = names
                .iter()
                .rev()
                .map(|n| compare(a.parameter(n).unwrap_or(""), b.parameter(n).unwrap_or("")));
            each.fold(Ordering::Equal, |so_far, o| so_far.then(o))
        };
        let job = |a: &Row, b: &Row| {
            rank(a)
                .cmp(&rank(b))
                .then_with(|| a.job.cmp(&b.job))
                .then_with(|| a.confluence.cmp(&b.confluence))
        };
        let order = |a: &Row, b: &Row| job(a, b).then_with(|| values(a, b));
        self.rows.sort_by(order);
        self.kept.sort_by(order);
    }

    /// Returns the names of all parameters in any row, ordered ones first.
    fn parameters(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.order.iter().map(String::as_str).collect();
        for (name, _) in self.rows.iter().flat_map(|r| &r.parameters) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
    /// Returns the names of parameters with several values.
    pub fn varied_parameters(&self) -> Vec<&str> {
        let mut names = self.parameters();
        names.retain(|n| self.rows.windows(2).any(|w| w[0].parameter(n) != w[1].parameter(n)));
        names
    }

    /// Returns the settings of confluence of the rows.
    fn settings(&self) -> BTreeSet<&str> {
        self.rows.iter().filter_map(|r| r.confluence.as_deref()).collect()
    }

    /// Returns comma-separated values, one line per row, after a line of names.
    pub fn csv(&self) -> String {
        let parameters = self.parameters();
        let mut out = String::from("job");
        parameters.iter().for_each(|p| out += &format!(",{}", field(p)));
        out += ",states,transitions,equations,verdict,seconds,peak_memory_bytes,stop,engine,confluence\n";
        for row in &self.rows {
            out += &field(&row.job);
            for p in &parameters {
                let _ = write!(out, ",{}", field(row.parameter(p).unwrap_or("")));
            }
            for n in [&row.states, &row.transitions, &row.equations] {
                let _ = write!(out, ",{}", n.as_ref().map_or_else(String::new, BigUint::to_string));
            }
            let verdict = row.verdict.as_deref().unwrap_or("");
            let engine = row.engine.as_deref().unwrap_or("");
            let confluence = field(row.confluence.as_deref().unwrap_or(""));
            let _ = writeln!(
                out,
                ",{verdict},{:.3},{},{},{engine},{confluence}",
                row.seconds,
                row.memory,
                field(&row.stop)
            );
        }
        out
    }

    /// Returns a table for people; columns that are empty throughout are left out. Reference
    /// figures are shown next to ours, by the first parameter that varies.
    pub fn to_markdown(&self, reference: &Reference) -> String {
        let varied = self.varied_parameters();
        let mut fixed: Vec<String> = Vec::new();
        for name in self.parameters().into_iter().filter(|n| !varied.contains(n)) {
            fixed.extend(
                self.rows.first().and_then(|r| r.parameter(name)).map(|v| format!("`{name}={v}`")),
            );
        }
        let mut columns: Vec<(String, bool, Vec<String>)> =
            vec![("job".into(), false, self.column(|r| r.job.clone()))];
        let several = self.settings().len() > 1;
        columns.push((
            "confluence".into(),
            false,
            self.column(|r| r.confluence.clone().filter(|_| several).unwrap_or_default()),
        ));
        for name in &varied {
            columns.push((
                name.to_string(),
                true,
                self.column(|r| r.parameter(name).unwrap_or("").into()),
            ));
        }
        let grouped = |n: &Option<BigUint>| {
            n.as_ref().map_or_else(String::new, |n| thousands(&n.to_string()))
        };
        columns.push(("states".into(), true, self.column(|r| grouped(&r.states))));
        columns.push(("transitions".into(), true, self.column(|r| grouped(&r.transitions))));
        columns.push(("equations".into(), true, self.column(|r| grouped(&r.equations))));
        columns.push((
            "verdict".into(),
            false,
            self.column(|r| r.verdict.clone().unwrap_or_default()),
        ));
        columns.push(("seconds".into(), true, self.column(|r| seconds(r.seconds))));
        columns.push((
            "peak MiB".into(),
            true,
            self.column(|r| thousands(&format!("{:.0}", r.memory as f64 / MEBIBYTE))),
        ));
        columns.push((
            "stopped by".into(),
            false,
            self.column(|r| if r.is_complete() { String::new() } else { r.stop.clone() }),
        ));
        let at = |r: &Row| {
            let value = varied.first().and_then(|n| r.parameter(n)).unwrap_or("");
            reference.at(&r.job, value, r.confluence.as_deref().unwrap_or("none"))
        };
        let published = |get: &dyn Fn(&PublishedFigures) -> String| {
            self.column(|r| at(r).map(get).unwrap_or_default())
        };
        columns.push((
            "published states or equations".into(),
            true,
            published(&|p| thousands(&p.size)),
        ));
        columns.push((
            "published seconds".into(),
            true,
            published(&|p| p.seconds.parse().map_or(p.seconds.clone(), seconds)),
        ));
        columns.push((
            "published MiB".into(),
            true,
            published(&|p| {
                p.memory.parse::<f64>().map_or(p.memory.clone(), |m| format!("{:.0}", m / MEBIBYTE))
            }),
        ));
        // Times are compared only if the same was counted.
        let ratio = |of: &dyn Fn(&PublishedFigures) -> f64,
                     own: &dyn Fn(&Row) -> f64,
                     digits: &dyn Fn(f64) -> String| {
            self.column(|r| {
                let same = at(r).filter(|p| r.is_complete() && r.size().is_some_and(|n| p.is(n)));
                let ratio = same.map(|p| of(p) / own(r)).filter(|q| q.is_finite());
                ratio.map_or_else(String::new, digits)
            })
        };
        let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        columns.push((
            "published / own seconds".into(),
            true,
            ratio(&|p| number(&p.seconds), &|r| r.seconds, &|q| thousands(&format!("{q:.0}"))),
        ));
        columns.push((
            "published / own MiB".into(),
            true,
            ratio(&|p| number(&p.memory), &|r| r.memory as f64, &|q| format!("{q:.1}")),
        ));
        columns.retain(|(_, _, cells)| cells.iter().any(|c| !c.is_empty()));
        let mut out = format!("Sweep of `{}`", self.model);
        if !fixed.is_empty() {
            let _ = write!(out, " with {}", fixed.join(", "));
        }
        let _ = writeln!(out, ", made by:\n\n```text\n{}\n```\n", self.command);
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        out += &line(columns.iter().map(|c| c.0.clone()).collect());
        out += &format!(
            "|{}|\n",
            columns.iter().map(|c| if c.1 { "--:" } else { "---" }).collect::<Vec<_>>().join("|")
        );
        for i in 0..self.rows.len() {
            out += &line(columns.iter().map(|c| c.2[i].replace('|', "\\|")).collect());
        }
        if !self.not_run.is_empty() {
            out += "\nNot run:\n\n";
            for row in self.not_run.iter().take(MAX_NOT_RUN) {
                let _ = writeln!(out, "- {}", row.text());
            }
            if self.not_run.len() > MAX_NOT_RUN {
                let _ = writeln!(out, "- and {} more", self.not_run.len() - MAX_NOT_RUN);
            }
        }
        out
    }
    fn column(&self, cell: impl Fn(&Row) -> String) -> Vec<String> {
        self.rows.iter().map(cell).collect()
    }

    /// Returns the plots as file names and pictures; empty if no parameter varies.
    pub fn plots(&self, reference: &Reference) -> Vec<(&'static str, String)> {
        let size = |r: &Row| r.size().and_then(ToPrimitive::to_f64);
        let plots = [
            (
                "states.svg",
                "States of the exploration, equations of the formulas",
                Unit::Count,
                &size as &dyn Fn(&Row) -> Option<f64>,
            ),
            ("seconds.svg", "Wall time", Unit::Seconds, &|r: &Row| Some(r.seconds)),
            ("memory.svg", "Peak memory", Unit::Mebibytes, &|r: &Row| {
                Some(r.memory as f64 / MEBIBYTE)
            }),
        ];
        plots
            .into_iter()
            .filter_map(|(name, title, unit, get)| {
                Some((name, self.plot(title, unit, get, reference)?.draw()?))
            })
            .collect()
    }

    fn plot(
        &self,
        title: &str,
        unit: Unit,
        get: &dyn Fn(&Row) -> Option<f64>,
        reference: &Reference,
    ) -> Option<Plot> {
        let varied = self.varied_parameters();
        let (axis, others) = varied.split_first()?;
        // Numeric values are placed to scale, others at equal distances.
        let mut values: Vec<&str> = self.rows.iter().filter_map(|r| r.parameter(axis)).collect();
        let jobs = |r: &Row| r.job.clone();
        let mut names: Vec<String> = Vec::new();
        self.rows.iter().map(jobs).for_each(|j| {
            if !names.contains(&j) {
                names.push(j)
            }
        });
        let published: Vec<&PublishedFigures> =
            names.iter().flat_map(|n| reference.of(n)).collect();
        values.sort_by(|a, b| compare(a, b));
        values.dedup();
        let numeric = values.iter().all(|v| v.parse::<f64>().is_ok_and(f64::is_finite));
        let place = |v: &str| {
            if numeric {
                v.parse::<f64>().ok()
            } else {
                values.iter().position(|w| *w == v).map(|i| i as f64)
            }
        };
        let several = self.settings().len() > 1;
        let mut plot = Plot {
            title: title.to_string(),
            subtitle: self.model.clone(),
            x_label: axis.to_string(),
            unit,
            ..Plot::default()
        };
        plot.ticks = values.iter().filter_map(|v| Some((place(v)?, v.to_string()))).collect();
        for row in &self.rows {
            let Some((x, y)) = row.parameter(axis).and_then(place).zip(get(row)) else { continue };
            let mut name = row.job.clone();
            if let Some(setting) = row.confluence.as_deref().filter(|_| several) {
                let _ = write!(name, ", {setting}");
            }
            for o in others {
                let _ = write!(name, ", {o}={}", row.parameter(o).unwrap_or("-"));
            }
            let point = Point { x, y, mark: row.mark() };
            match plot.series.iter_mut().find(|s| s.name == name) {
                Some(series) => series.points.push(point),
                None => {
                    let color = plot.series.len();
                    plot.series.push(Series { name, color, dashed: false, points: vec![point] });
                }
            }
        }
        // A reference belongs to a job, for any values of other parameters: it gets the colour of
        // that job's first series.
        let last = plot.ticks.iter().map(|t| t.0).fold(f64::MIN, f64::max);
        for job in &names {
            let color = plot
                .series
                .iter()
                .find(|s| s.name == *job || s.name.starts_with(&format!("{job}, ")))
                .map_or(0, |s| s.color);
            let of = published.iter().filter(|p| p.job == *job);
            let figure = |p: &PublishedFigures| {
                let (text, factor) = match unit {
                    Unit::Count => (&p.size, 1.0),
                    Unit::Seconds => (&p.seconds, 1.0),
                    Unit::Mebibytes => (&p.memory, MEBIBYTE),
                };
                let y = text.parse::<f64>().ok()? / factor;
                Some(Point { x: place(&p.value)?, y, mark: PointMark::Hollow })
            };
            let points: Vec<Point> = of.filter_map(|p| figure(p)).filter(|p| p.x <= last).collect();
            if !points.is_empty() {
                plot.series.push(Series {
                    name: format!("{job} (published)"),
                    color,
                    dashed: true,
                    points,
                });
            }
        }
        Some(plot)
    }
}

/// Compares two values: numbers by value, before all texts. Equal only if the texts are equal.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

/// Escapes a field of separated values.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// Groups digits by thousands; other texts do not change.
fn thousands(digits: &str) -> String {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits.to_string();
    }
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats seconds with significant digits only.
fn seconds(s: f64) -> String {
    match s {
        s if s < 10.0 => format!("{s:.2}"),
        s if s < 100.0 => format!("{s:.1}"),
        s => thousands(&format!("{s:.0}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(job: &str, n: u32, states: u64, stop: &str) -> Row {
        Row {
            job: job.into(),
            parameters: vec![("k".into(), "1,2".into()), ("n".into(), n.to_string())],
            states: Some(states.into()),
            equations: (job != EXPLORE).then(|| BigUint::from(states) * 3u32),
            verdict: (job != EXPLORE).then(|| "true".into()),
            seconds: 0.25 * f64::from(n + 1),
            memory: 5_000_000 << n,
            stop: stop.into(),
            version: "1".into(),
            inputs: "ab".into(),
            ..Row::default()
        }
    }

    fn sweep() -> Sweep {
        let rows = vec![
            row("f|g", 2, 500, "complete"),
            row(EXPLORE, 10, 1 << 40, "timeout"),
            row(EXPLORE, 9, 1234, "complete"),
        ];
        let mut sweep = Sweep {
            model: "m.mcrl2".into(),
            command: "mu-check sweep \"m\"".into(),
            order: vec!["n".into()],
            rows,
            not_run: Vec::new(),
            kept: Vec::new(),
        };
        sweep.sort(&[EXPLORE.to_string(), "f|g".to_string()]);
        sweep
    }

    #[test]
    fn json_is_read_back() {
        let mut sweep = sweep();
        sweep.rows[0].states = Some(BigUint::from(7u32).pow(90));
        sweep
            .kept
            .push(Row { evidence: Some("why.svg".into()), ..row(EXPLORE, 8, 77, "complete") });
        assert_eq!(Sweep::read(&sweep.json()), Ok(sweep));
        assert!(Sweep::read("{\"rows\": [{}]}").is_err() && Sweep::read("[").is_err());
    }

    #[test]
    fn tables_have_a_line_a_row() {
        let sweep = sweep();
        let csv = sweep.csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "job,n,k,states,transitions,equations,verdict,seconds,peak_memory_bytes,stop,engine,confluence"
        );
        assert_eq!(lines[1], "explore,9,\"1,2\",1234,,,,2.500,2560000000,complete,,");
        assert_eq!(lines[3], "f|g,2,\"1,2\",500,,1500,true,0.750,20000000,complete,,");
        let reference = Reference::read("explore,9,1234,99.5\nexplore,10,OOM,OOM\n").unwrap();
        let markdown = sweep.to_markdown(&reference);
        assert!(
            markdown.contains("with `k=1,2`") && markdown.contains("mu-check sweep \"m\""),
            "{markdown}"
        );
        assert!(
            markdown
                .contains("| explore | 9 | 1,234 |  |  | 2.50 | 2,441 |  | 1,234 | 99.5 | 40 |"),
            "{markdown}"
        );
        assert!(
            markdown.contains("| 1,099,511,627,776 |")
                && markdown.contains("| timeout | OOM | OOM |  |"),
            "{markdown}"
        );
        assert!(markdown.contains("| f\\|g | 2 |"), "{markdown}");
        assert!(!markdown.contains("transitions"), "{markdown}");
    }

    #[test]
    fn plots_have_a_series_for_each_job_and_its_reference() {
        let reference = Reference::read(
            "explore,9,1234,99.5\nexplore,10,5000,OOM\nexplore,11,5000,1\nother,9,1,1\n",
        )
        .unwrap();
        let plot = sweep()
            .plot("t", Unit::Count, &|r| r.size().and_then(ToPrimitive::to_f64), &reference)
            .unwrap();
        let names: Vec<(&str, usize, bool)> =
            plot.series.iter().map(|s| (s.name.as_str(), s.points.len(), s.dashed)).collect();
        assert_eq!(
            names,
            [("explore", 2, false), ("f|g", 1, false), ("explore (published)", 2, true)]
        );
        assert_eq!(
            (plot.x_label.as_str(), plot.series[0].points[1].mark),
            ("n", PointMark::Stopped)
        );
        assert_eq!(sweep().plots(&reference).len(), 3);
        let mut single = sweep();
        single.rows.truncate(1);
        assert!(single.plots(&reference).is_empty());
    }
}
