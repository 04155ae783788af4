//! Reference figures from a table of separated values: rows by job and parameter.
//!
//! Lines that start with `#` are comments. Fields are separated by tabs, or by commas if no line
//! has a tab. A first line with a second field that is not a number names the columns: `job`, the
//! parameter (any other name), `size` or `states` or `equations`, `seconds`, `memory` (bytes),
//! `confluence` (its setting). Without such a line the columns are job, parameter, size, seconds,
//! memory. A field that is not a number, such as `OOM`, is printed as it is.

use num_bigint::BigUint;

/// Figures of one job at one value of the parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedFigures {
    /// The job: `explore` or the name of a formula.
    pub job: String,
    /// The parameter's value.
    pub value: String,
    /// States of an exploration, equations of a formula.
    pub size: String,
    /// Seconds.
    pub seconds: String,
    /// Bytes.
    pub memory: String,
    /// The setting of confluence; empty: any.
    pub confluence: String,
}

impl PublishedFigures {
    /// True if a number of states or equations equals this one. A published number that ends in
    /// three zeros counts as truncated to thousands.
    pub fn is(&self, size: &BigUint) -> bool {
        let Ok(own) = self.size.parse::<BigUint>() else { return false };
        let thousand = BigUint::from(1000u32);
        own == *size
            || (&own % &thousand == BigUint::ZERO
                && own > thousand
                && size / &thousand == own / &thousand)
    }
}

/// A table of reference figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    rows: Vec<PublishedFigures>,
}

impl Reference {
    /// Parses a table. Error: the line number and the message.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let separator = if text.contains('\t') { '\t' } else { ',' };
        let mut columns: Vec<Column> =
            vec![Column::Job, Column::Value, Column::Size, Column::Seconds, Column::Memory];
        let mut rows = Vec::new();
        let lines =
            text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
        for (n, (at, line)) in lines.enumerate() {
            let fields: Vec<&str> =
                line.split(separator).map(|f| f.trim().trim_matches('"')).collect();
            if n == 0 && fields.get(1).is_some_and(|f| f.parse::<f64>().is_err()) {
                columns = header(&fields).map_err(|e| (at + 1, e))?;
                continue;
            }
            if fields.len() < 2 || fields.len() > columns.len() {
                return Err((
                    at + 1,
                    format!("{} fields, expected 2 to {}", fields.len(), columns.len()),
                ));
            }
            let mut row = PublishedFigures::default();
            for (field, column) in fields.iter().zip(&columns) {
                let place = match column {
                    Column::Job => &mut row.job,
                    Column::Value => &mut row.value,
                    Column::Size => &mut row.size,
                    Column::Seconds => &mut row.seconds,
                    Column::Memory => &mut row.memory,
                    Column::Confluence => &mut row.confluence,
                };
                *place = if *field == "-" { String::new() } else { field.to_string() };
            }
            rows.push(row);
        }
        Ok(Self { rows })
    }

    /// Returns the figures of a job at a value, for a setting of confluence. Figures without a
    /// setting apply to all settings. `None` if none are published.
    pub fn at(&self, job: &str, value: &str, confluence: &str) -> Option<&PublishedFigures> {
        self.rows.iter().find(|r| {
            r.job == job
                && r.value == value
                && (r.confluence.is_empty() || r.confluence == confluence)
        })
    }
    /// Returns all figures of a job.
    pub fn of<'a>(&'a self, job: &'a str) -> impl Iterator<Item = &'a PublishedFigures> {
        self.rows.iter().filter(move |r| r.job == job)
    }
    /// True if there are no figures.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Job,
    Value,
    Size,
    Seconds,
    Memory,
    Confluence,
}

fn header(fields: &[&str]) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for name in fields {
        let column = match name.to_lowercase().as_str() {
            "job" | "formula" => Column::Job,
            "size" | "states" | "equations" => Column::Size,
            "seconds" => Column::Seconds,
            "memory" | "peak_memory_bytes" => Column::Memory,
            "confluence" => Column::Confluence,
            _ => Column::Value,
        };
        if columns.contains(&column) {
            return Err(format!(
                "a second column like `{name}`; expected job, a parameter, size, seconds, memory, confluence"
            ));
        }
        columns.push(column);
    }
    if columns.contains(&Column::Job) && columns.contains(&Column::Value) {
        Ok(columns)
    } else {
        Err("expected a column `job` and a column for the parameter".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_and_without_names() {
        let plain = Reference::read(
            "# published\nexplore\t1\t171413\t35.7\n1a\t6\tOOM\tOOM\n1a\t7\t-\t2\n",
        )
        .unwrap();
        assert_eq!(plain.at("explore", "1", "auto").unwrap().size, "171413");
        assert_eq!(
            (
                plain.at("1a", "6", "none").unwrap().seconds.as_str(),
                plain.at("1a", "7", "none").unwrap().size.as_str()
            ),
            ("OOM", "")
        );
        assert!(plain.at("1a", "8", "none").is_none() && plain.of("1a").count() == 2);
        let named = Reference::read("seconds,N,job\n35.7,1,explore\n").unwrap();
        assert_eq!(named.at("explore", "1", "auto").unwrap().seconds, "35.7");
        let settings = Reference::read(
            "job,N,confluence,states\nexplore,1,auto,5\nexplore,2,x,6\n1a,1,-,7000\n",
        )
        .unwrap();
        assert_eq!(settings.at("explore", "1", "auto").unwrap().size, "5");
        assert!(
            settings.at("explore", "2", "auto").is_none()
                && settings.at("1a", "1", "auto").is_some()
        );
        let cut = settings.at("1a", "1", "x").unwrap();
        assert!(
            cut.is(&7000u32.into())
                && cut.is(&7999u32.into())
                && !cut.is(&8000u32.into())
                && !cut.is(&6999u32.into())
        );
        assert!(!settings.at("explore", "1", "auto").unwrap().is(&6u32.into()));
        assert_eq!(Reference::read("job,N,states,equations\n").unwrap_err().0, 1);
        assert_eq!(Reference::read("a,1,2,3\n\na\n").unwrap_err().0, 3);
        assert_eq!(Reference::read("seconds,job\n").unwrap_err().0, 1);
    }
}
