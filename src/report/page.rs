//! HTML page of results: the JSON of commands becomes one HTML file that a browser opens without a
//! network.
//!
//! The page computes no verdict: its script only displays the JSON in an embedded data block.
//! Script and style are built from the sources in `studio/` (`npm run build` there) and are
//! committed next to this file, so that a build of this crate needs no node. In: values that match
//! their schemas in `docs/schema`. Cost: linear.
//!
//! Invariant: nothing from a model becomes markup. In the data block, `<`, `>` and `&` are written
//! as `\u003c` and so on, so that no text ends the block. The script sets texts, never markup. The
//! page's content security policy allows the script and the style by their hashes, and no
//! connection.

use super::schema::Schema;
use super::svg::escape;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The bundle of the script.
pub const SCRIPT: &str = include_str!("page/report.js");
/// The style.
pub const STYLE: &str = include_str!("page/report.css");
/// The SHA-256 hashes of script and style, one per line, in the format of a content security
/// policy.
pub const HASHES: &str = include_str!("page/hashes.txt");

/// The version of the schemas that the page shows.
const SCHEMA_VERSION: u64 = 2;
/// Largest number that a browser represents exactly.
const EXACT: u64 = 1 << 53;

/// A result on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageResult {
    /// Its schema: that of a command in the table of commands, or `evidence`.
    pub kind: &'static str,
    /// The file it was read from, if any.
    pub file: Option<String>,
    /// The result.
    pub value: Value,
}

impl PageResult {
    /// Creates a result that was not read from a file.
    pub fn of(kind: &'static str, value: Value) -> Self {
        Self { kind, file: None, value }
    }

    /// Reads the result in a file. Error: the reason why the page cannot display it.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|e| format!("this is not JSON: {e}"))?;
        let kind = kind(&value)?;
        if let Some(version) = value.get("schema_version").filter(|v| **v != SCHEMA_VERSION) {
            return Err(format!(
                "its schema has version {version}; this program shows version {SCHEMA_VERSION}"
            ));
        }
        let schema = serde_json::from_str(schema(kind))
            .map_err(|e| format!("the schema of `{kind}` cannot be read: {e}"))?;
        Schema::new(schema).validate(&value).map_err(|why| {
            format!("not a result of `{kind}`, see docs/schema/{kind}.json: {why}")
        })?;
        Ok(Self { kind, file: Some(file.to_string()), value })
    }
}

fn schema(kind: &str) -> &'static str {
    match kind {
        "check" => include_str!("schemas/check.json"),
        "sweep" => include_str!("schemas/sweep.json"),
        "litmus" => include_str!("schemas/litmus.json"),
        "conform" => include_str!("schemas/conform.json"),
        "evidence" => include_str!("schemas/evidence.json"),
        "trace" => include_str!("schemas/trace.json"),
        "models" => include_str!("schemas/models.json"),
        "compare" => include_str!("schemas/compare.json"),
        "reduce" => include_str!("schemas/reduce.json"),
        "info" => include_str!("schemas/info.json"),
        "prove" => include_str!("schemas/prove.json"),
        "program" => include_str!("schemas/program.json"),
        "robust" => include_str!("schemas/robust.json"),
        _ => include_str!("schemas/explore.json"),
    }
}

/// Kinds of results with keys that only they have together; the first that fits decides.
const KINDS: [(&str, &[&str]); 17] = [
    ("check", &["results"]),
    ("sweep", &["rows", "order"]),
    ("conform", &["interface", "models"]),
    ("litmus", &["tests"]),
    ("explore", &["ways"]),
    ("evidence", &["steps", "linear"]),
    ("trace", &["traces", "models"]),
    ("models", &["classes", "edges"]),
    ("compare", &["a", "b", "preorder"]),
    ("info", &["actions", "branching"]),
    ("explore", &["failed", "rules"]),
    ("prove", &["property", "search"]),
    ("program", &["property", "bound_reached"]),
    ("robust", &["property", "threads"]),
    ("explore", &["states", "deadlocks"]),
    ("reduce", &["equivalence", "reduced"]),
    ("explore", &["stop", "stage"]),
];

/// Determines the command of a result by its keys.
fn kind(value: &Value) -> Result<&'static str, String> {
    let expected = "expected the output of a command with `--format json`, evidence as JSON, or a `sweep.json`";
    let has = |keys: &[&str]| keys.iter().all(|k| value.get(k).is_some());
    if !value.is_object() {
        return Err(format!("not a result; {expected}"));
    }
    if let Some(message) = value.pointer("/error/message").and_then(Value::as_str) {
        return Err(format!("it contains no result, because the command failed: {message}"));
    }
    match KINDS.into_iter().find(|(_, keys)| has(keys)) {
        Some((kind, _)) => Ok(kind),
        None => Err(format!("not a result that a page can show; {expected}")),
    }
}

/// Writes a page. `command`: the command that created it.
pub fn write(
    mut out: impl Write,
    title: &str,
    command: &str,
    shown: &[PageResult],
) -> io::Result<()> {
    let mut hashes = HASHES.lines();
    let (script, style) = (hashes.next().unwrap_or_default(), hashes.next().unwrap_or_default());
    let policy = format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"
    );
    let name = escape(title);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"mu-check {}\">\n\
         <title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <noscript><h1>{name}</h1><p>This page needs JavaScript. The results are also in it as JSON, in its last block of data.</p></noscript>\n\
         <div id=\"app\"></div>\n<script type=\"application/json\" id=\"data\">",
        env!("CARGO_PKG_VERSION")
    )?;
    let mut data = Escaping(&mut out);
    write!(data, "{{\"title\":{},\"command\":{},\"shown\":[", json!(title), json!(command))?;
    for (i, one) in shown.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(
            data,
            "{comma}{{\"kind\":{},\"file\":{},\"value\":",
            json!(one.kind),
            json!(one.file)
        )?;
        let mut value = one.value.clone();
        exact(&mut value);
        serde_json::to_writer(&mut data, &value)?;
        write!(data, "}}")?;
    }
    write!(data, "]}}")?;
    write!(out, "</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")?;
    out.flush()
}

/// Converts whole numbers that a browser would round to text.
fn exact(value: &mut Value) {
    match value {
        Value::Number(n) if n.as_u64().is_some_and(|n| n > EXACT) => *value = n.to_string().into(),
        Value::Array(items) => items.iter_mut().for_each(exact),
        Value::Object(map) => map.values_mut().for_each(exact),
        _ => {}
    }
}

/// JSON writer that escapes the characters that could end a data block; they occur only in strings.
struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|b| matches!(b, b'<' | b'>' | b'&')) {
            self.0.write_all(&rest[..at])?;
            write!(self.0, "\\u{:04x}", rest[at])?;
            rest = &rest[at + 1..];
        }
        self.0.write_all(rest)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(title: &str, shown: &[PageResult]) -> String {
        let mut out = Vec::new();
        write(&mut out, title, "mu-check", shown).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns the data block of a page.
    fn data(page: &str) -> Value {
        let from = page.find("id=\"data\">").unwrap() + 10;
        serde_json::from_str(&page[from..from + page[from..].find("</script>").unwrap()]).unwrap()
    }

    #[test]
    fn no_text_becomes_markup() {
        let bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&amp;<!-- ]]>\u{2028}'\"";
        let value = json!({ "model": bad, bad: [bad], "states": u64::MAX, "few": 7 });
        let shown = [PageResult { kind: "explore", file: Some(bad.into()), value }];
        let text = page(bad, &shown);
        assert_eq!(
            text.matches("</script>").count(),
            2,
            "the block of data and the script end, nothing else"
        );
        assert!(!text.contains("<img") && !text.contains("<!--"));
        let data = data(&text);
        assert_eq!((&data["title"], &data["shown"][0]["file"]), (&json!(bad), &json!(bad)));
        let value = &data["shown"][0]["value"];
        assert_eq!((&value["model"], &value[bad][0]), (&json!(bad), &json!(bad)));
        assert_eq!((&value["states"], &value["few"]), (&json!("18446744073709551615"), &json!(7)));
    }

    #[test]
    fn the_bundle_can_stand_in_a_page() {
        // An end tag in the script or the style would end it early.
        let lower = SCRIPT.to_lowercase();
        assert!(!lower.contains("</script") && !lower.contains("<!--") && !STYLE.contains("</"));
        for part in [SCRIPT, STYLE] {
            assert!(
                !part.contains("http:")
                    || part.matches("http:").count()
                        == part.matches("http://www.w3.org/2000/svg").count()
            );
            assert!(
                !part.contains("https:") && !part.contains("innerHTML") && !part.contains("url(")
            );
        }
        assert_eq!(HASHES.lines().filter(|l| l.starts_with("sha256-") && l.len() == 51).count(), 2);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let tool = json!({ "name": "mu-check", "version": "0" });
        let good = json!({ "results": [], "peak_memory_bytes": 0, "tool": tool, "schema_version": 2, "model": "m" });
        let read = |value: &Value| PageResult::read("f.json", &value.to_string()).map(|s| s.kind);
        assert_eq!(read(&good), Ok("check"));
        let murphi = json!({ "verdict": "ok", "failed": [], "states": 1, "rules": 1, "depth": 0, "symmetries": 1, "store_bytes": 1, "seconds": 0, "peak_memory_bytes": 0, "stop": "complete", "tool": tool, "schema_version": 2, "model": "m" });
        assert_eq!(kind(&murphi), Ok("explore"));
        assert_eq!(kind(&json!({ "traces": [], "models": [] })), Ok("trace"));
        let with = |key: &str, value: Value| {
            let mut object = good.clone();
            object[key] = value;
            object
        };
        for (value, why) in [
            (json!([]), "not a result; expected the output of a command"),
            (json!({ "winner": "even" }), "not a result that a page can show"),
            (json!({ "error": { "message": "no such file" } }), "the command failed: no such file"),
            (with("schema_version", json!(1)), "version 1; this program shows version 2"),
            (
                with("surprise", json!(1)),
                "docs/schema/check.json: /surprise: no value is allowed here",
            ),
            (with("results", json!([{ "verdict": 3 }])), "/results/0"),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.contains(why), "{value}: {error}");
        }
        assert!(PageResult::read("f.json", "{").unwrap_err().starts_with("this is not JSON"));
    }
}
