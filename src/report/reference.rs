//! Figures to compare with, from a table of separated values: text -> rows by job and parameter.
//!
//! Lines that start with `#` are comments; fields are separated by tabs, or by commas if no line has a tab. A first line whose second
//! field is no number names the columns: `job`, the parameter (any other name), `size` or `states` or `equations`, `seconds`, `memory`
//! (bytes). Without it the columns are job, parameter, size, seconds, memory. A field that is no number, such as `OOM`, stands for itself.

/// Figures of one job at one value of the parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
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
}

/// A table of figures to compare with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    rows: Vec<Published>,
}

impl Reference {
    /// Reads a table. Error: the number of the line and what is wrong with it.
    pub fn read(text: &str) -> Result<Self, (usize, String)> {
        let separator = if text.contains('\t') { '\t' } else { ',' };
        let mut columns: Vec<Column> = vec![Column::Job, Column::Value, Column::Size, Column::Seconds, Column::Memory];
        let mut rows = Vec::new();
        let lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'));
        for (n, (at, line)) in lines.enumerate() {
            let fields: Vec<&str> = line.split(separator).map(|f| f.trim().trim_matches('"')).collect();
            if n == 0 && fields.get(1).is_some_and(|f| f.parse::<f64>().is_err()) {
                columns = header(&fields).map_err(|e| (at + 1, e))?;
                continue;
            }
            if fields.len() < 2 || fields.len() > columns.len() {
                return Err((at + 1, format!("{} fields, expected 2 to {}", fields.len(), columns.len())));
            }
            let mut row = Published::default();
            for (field, column) in fields.iter().zip(&columns) {
                let place = match column {
                    Column::Job => &mut row.job,
                    Column::Value => &mut row.value,
                    Column::Size => &mut row.size,
                    Column::Seconds => &mut row.seconds,
                    Column::Memory => &mut row.memory,
                };
                *place = if *field == "-" { String::new() } else { field.to_string() };
            }
            rows.push(row);
        }
        Ok(Self { rows })
    }

    /// The figures of a job at a value.
    pub fn at(&self, job: &str, value: &str) -> Option<&Published> {
        self.rows.iter().find(|r| r.job == job && r.value == value)
    }
    /// All figures of a job.
    pub fn of<'a>(&'a self, job: &'a str) -> impl Iterator<Item = &'a Published> {
        self.rows.iter().filter(move |r| r.job == job)
    }
    /// Whether there are none.
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
}

fn header(fields: &[&str]) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for name in fields {
        let column = match name.to_lowercase().as_str() {
            "job" | "formula" => Column::Job,
            "size" | "states" | "equations" => Column::Size,
            "seconds" => Column::Seconds,
            "memory" | "peak_memory_bytes" => Column::Memory,
            _ => Column::Value,
        };
        if columns.contains(&column) {
            return Err(format!("a second column of the kind of `{name}`; expected job, a parameter, size, seconds, memory"));
        }
        columns.push(column);
    }
    if columns.contains(&Column::Job) && columns.contains(&Column::Value) {
        Ok(columns)
    } else {
        Err("the columns `job` and that of the parameter are needed".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_and_without_names() {
        let plain = Reference::read("# published\nexplore\t1\t171413\t35.7\n1a\t6\tOOM\tOOM\n1a\t7\t-\t2\n").unwrap();
        assert_eq!(plain.at("explore", "1").unwrap().size, "171413");
        assert_eq!((plain.at("1a", "6").unwrap().seconds.as_str(), plain.at("1a", "7").unwrap().size.as_str()), ("OOM", ""));
        assert!(plain.at("1a", "8").is_none() && plain.of("1a").count() == 2);
        let named = Reference::read("seconds,N,job\n35.7,1,explore\n").unwrap();
        assert_eq!(named.at("explore", "1").unwrap().seconds, "35.7");
        assert_eq!(Reference::read("job,N,states,equations\n").unwrap_err().0, 1);
        assert_eq!(Reference::read("a,1,2,3\n\na\n").unwrap_err().0, 3);
        assert_eq!(Reference::read("seconds,job\n").unwrap_err().0, 1);
    }
}
